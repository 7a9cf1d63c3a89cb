//! What do x86 instructions mean? Shared by all front ends that read x86 code, as text or as machine code.
//!
//! `registers`, `flags` and `mnemonics` are tables of what the processor has; `operands` is an instruction as
//! a front end hands it over; `width` settles how wide it is and refuses what makes no sense; `lower` turns
//! it into steps of the model; `value` is how numbers of fewer than 64 bits look there, and `overflow` shows
//! that most need no care. Nothing here knows a file format. What an operand names is a symbol: where it
//! lies, and how wide it is, is asked through two small traits, [`Resolver`] and [`Widths`].

mod flags;
mod lower;
mod mnemonics;
mod operands;
mod overflow;
mod registers;
mod value;
mod width;

pub(crate) use flags::Flag;
pub(crate) use lower::{Form, Lowering, Resolver};
pub(crate) use mnemonics::{Bit, MNEMONICS, Op, SUPPORTED, Two, mnemonic};
pub(crate) use operands::{Instruction, Mem, Operand};
pub(crate) use overflow::{BitBound, nothing_is_cut_off};
pub(crate) use registers::{EAX, Gpr, GprPart, Own, POINTER, ThreadRegisters, register};
pub(crate) use value::{fits, fitted};
pub(crate) use width::{DEFAULT_BITS, Widths, check, settle, tells_width};

/// How wide registers are, and how many of them there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arch {
    /// 32 bits.
    X86,
    /// 64 bits.
    X86_64,
}

impl Arch {
    /// Bits of a whole register.
    pub(crate) fn bits(self) -> u32 {
        match self {
            Arch::X86 => 32,
            Arch::X86_64 => 64,
        }
    }
}

//! Which instruction stands at an address, which flags will somebody look at behind it, and how is it written?

use super::bytes::{Bytes, Kind};
use super::refusal::{Refusal, Result};
use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Formatter, GasFormatter, Instruction, Mnemonic, Register,
    RflagsBits,
};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

/// The longest instruction.
const LONGEST: usize = 15;
/// Whoever looks at flags does so within so many instructions.
const FAR: usize = 1024;
const ALL_FLAGS: u32 = RflagsBits::CF | RflagsBits::ZF | RflagsBits::SF | RflagsBits::OF | RflagsBits::PF;

/// What leaves flags alone if it shifts by no places.
const SHIFTS: [Mnemonic; 10] = [
    Mnemonic::Shl,
    Mnemonic::Sal,
    Mnemonic::Shr,
    Mnemonic::Sar,
    Mnemonic::Rol,
    Mnemonic::Ror,
    Mnemonic::Rcl,
    Mnemonic::Rcr,
    Mnemonic::Shld,
    Mnemonic::Shrd,
];

/// Instructions by address, each decoded once.
pub(super) struct Code64<'a> {
    bytes: &'a Bytes,
    known: RefCell<HashMap<u64, Instruction>>,
    needed: RefCell<HashMap<u64, u32>>,
}

impl<'a> Code64<'a> {
    pub(super) fn new(bytes: &'a Bytes) -> Code64<'a> {
        Code64 { bytes, known: RefCell::default(), needed: RefCell::default() }
    }

    pub(super) fn at(&self, address: u64) -> Result<Instruction> {
        if let Some(known) = self.known.borrow().get(&address) {
            return Ok(*known);
        }
        if self.bytes.region(address).is_none_or(|r| r.kind != Kind::Code) {
            return Err(Refusal::new(format!("control goes to {address:#x}, where no code is")));
        }
        let bytes = self.bytes.slice(address, LONGEST);
        let instruction = Decoder::with_ip(64, &bytes, address, DecoderOptions::NONE).decode();
        if instruction.code() == Code::INVALID {
            let why = "these bytes are no instruction that is known";
            return Err(Refusal::new(why)
                .at(address)
                .help("compile without -march=native, or for x86-64-v1"));
        }
        self.known.borrow_mut().insert(address, instruction);
        Ok(instruction)
    }

    /// The flags that are looked at from this address on, before others are set: bits of `RflagsBits`. Functions
    /// neither take flags nor hand them on.
    pub(super) fn flags_needed(&self, address: u64) -> u32 {
        if let Some(known) = self.needed.borrow().get(&address) {
            return *known;
        }
        let mut needed = 0;
        let (mut todo, mut seen) = (vec![(address, ALL_FLAGS)], HashSet::new());
        while let Some((at, open)) = todo.pop() {
            if !seen.insert((at, open)) {
                continue;
            }
            if seen.len() > FAR {
                needed = ALL_FLAGS;
                break;
            }
            let Ok(instruction) = self.at(at) else { continue };
            needed |= instruction.rflags_read() & open;
            // A shift by no places leaves the flags as they are.
            let may_keep = (0..instruction.op_count()).any(|n| instruction.op_register(n) == Register::CL);
            let shifts = may_keep && SHIFTS.contains(&instruction.mnemonic());
            let open = if shifts { open } else { open & !instruction.rflags_modified() };
            if open == 0 {
                continue;
            }
            match instruction.flow_control() {
                FlowControl::Next => todo.push((instruction.next_ip(), open)),
                FlowControl::UnconditionalBranch => todo.push((instruction.near_branch_target(), open)),
                FlowControl::ConditionalBranch => {
                    todo.push((instruction.next_ip(), open));
                    todo.push((instruction.near_branch_target(), open));
                }
                _ => {}
            }
        }
        self.needed.borrow_mut().insert(address, needed);
        needed
    }

    /// As an assembler writes it.
    pub(super) fn text(&self, address: u64) -> String {
        let Ok(instruction) = self.at(address) else { return String::new() };
        let mut text = String::new();
        let mut formatter = GasFormatter::new();
        formatter.options_mut().set_space_after_operand_separator(false);
        formatter.format(&instruction, &mut text);
        text
    }
}

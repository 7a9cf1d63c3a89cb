//! How is an instruction spelled? Intel's order and capital letters for 32 bits, AT&T's order and widths on
//! mnemonics for 64 bits, as litmus tests of either processor have it. And which of them does herd read?

use crate::front::x86::{Arch, Gpr, GprPart};
use crate::model::Value;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    Const(Value),
    /// The address of a location, as a value.
    Symbol(String),
    Reg(Gpr),
    Mem(Mem),
}

/// A place in memory: the sum of what is there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mem {
    pub name: Option<String>,
    pub offset: Value,
    pub base: Option<Gpr>,
    pub index: Option<(Gpr, Value)>,
}

impl Mem {
    pub(crate) fn uses(&self, gpr: Gpr) -> bool {
        self.base == Some(gpr) || self.index.is_some_and(|(index, _)| index == gpr)
    }

    /// The same with another register in the place of one.
    pub(crate) fn with(mut self, old: Gpr, new: Gpr) -> Mem {
        self.base = self.base.map(|base| if base == old { new } else { base });
        self.index = self.index.map(|(index, factor)| (if index == old { new } else { index }, factor));
        self
    }

    /// `x+8`, `8`, or nothing.
    fn known(&self) -> String {
        match (&self.name, self.offset) {
            (Some(name), 0) => name.clone(),
            (Some(name), offset) => format!("{name}{offset:+}"),
            (None, 0) => String::new(),
            (None, offset) => offset.to_string(),
        }
    }
}

/// Instructions that herd has for both processors.
const OF_HERD: &[&str] = &[
    "mov", "add", "or", "xor", "inc", "dec", "cmp", "xchg", "mfence", "jmp", "je", "jne", "lock add",
    "lock xor", "lock inc", "lock dec",
];
/// Those that it has for 64 bits only. Its `jlt` jumps if both sides are equal too, so it does not belong
/// here.
const OF_HERD_WIDE: &[&str] = &["jle", "jge", "lock cmpxchg"];

/// Does herd have the instruction?
pub(crate) fn herd_has(arch: Arch, mnemonic: &str) -> bool {
    OF_HERD.contains(&mnemonic) || arch == Arch::X86_64 && OF_HERD_WIDE.contains(&mnemonic)
}

/// Does herd read the operand? A place is a name or a register there, and no sum but that of a register and a
/// number.
pub(crate) fn herd_reads(arch: Arch, operand: &Operand) -> bool {
    match operand {
        Operand::Const(_) | Operand::Reg(_) => true,
        Operand::Symbol(_) => false,
        Operand::Mem(Mem { name, offset, base, index }) => {
            let shifts = arch == Arch::X86_64 && base.is_some();
            index.is_none() && name.is_some() != base.is_some() && (*offset == 0 || shifts)
        }
    }
}

/// An instruction of so many bits; the destination comes first.
pub(crate) fn instruction(arch: Arch, mnemonic: &str, bits: u32, operands: &[Operand]) -> String {
    let mut shown: Vec<String> = operands.iter().map(|o| operand(arch, o, bits)).collect();
    match arch {
        Arch::X86 => format!("{} {}", mnemonic.to_uppercase(), shown.join(",")),
        // herd has the memory of this one in front, against the order of all others.
        Arch::X86_64 if mnemonic == "lock cmpxchg" => {
            format!("{mnemonic}{} {}", suffix(bits), shown.join(","))
        }
        Arch::X86_64 => {
            shown.reverse();
            format!("{mnemonic}{} {}", suffix(bits), shown.join(","))
        }
    }
}

/// A load of fewer bits than 32, with zeros before them.
pub(crate) fn extending_load(arch: Arch, to: Gpr, from: &Mem, bits: u32) -> String {
    let from = operand(arch, &Operand::Mem(from.clone()), bits);
    match arch {
        Arch::X86 => format!("MOVZX {},{from}", part(arch, to, 32)),
        Arch::X86_64 => format!("movz{}l {from},{}", suffix(bits), part(arch, to, 32)),
    }
}

/// An instruction without operands.
pub(crate) fn bare(arch: Arch, mnemonic: &str) -> String {
    if arch == Arch::X86 { mnemonic.to_uppercase() } else { mnemonic.to_string() }
}

fn suffix(bits: u32) -> char {
    match bits {
        8 => 'b',
        16 => 'w',
        32 => 'l',
        _ => 'q',
    }
}

fn part(arch: Arch, gpr: Gpr, bits: u32) -> String {
    let name = GprPart { gpr, bits, shift: 0 }.name(arch);
    if arch == Arch::X86 { name } else { format!("%{name}") }
}

fn operand(arch: Arch, operand: &Operand, bits: u32) -> String {
    match operand {
        Operand::Const(value) => format!("${value}"),
        Operand::Symbol(name) => format!("${name}"),
        Operand::Reg(gpr) => part(arch, *gpr, bits),
        Operand::Mem(mem) => match arch {
            Arch::X86 => intel(mem, bits),
            Arch::X86_64 => att(mem),
        },
    }
}

fn intel(mem: &Mem, bits: u32) -> String {
    let width = match bits {
        8 => "BYTE PTR ",
        16 => "WORD PTR ",
        _ => "",
    };
    let register = |gpr| part(Arch::X86, gpr, 32);
    let index = mem.index.map(|(gpr, factor)| format!("{}*{factor}", register(gpr)));
    let known = Some(mem.known()).filter(|known| !known.is_empty());
    let sum: Vec<String> = mem.base.map(register).into_iter().chain(index).chain(known).collect();
    format!("{width}[{}]", sum.join("+").replace("+-", "-"))
}

fn att(mem: &Mem) -> String {
    let register = |gpr| part(Arch::X86_64, gpr, 64);
    let base = mem.base.map(register).unwrap_or_default();
    match mem.index {
        Some((index, factor)) => format!("{}({base},{},{factor})", mem.known(), register(index)),
        None if mem.base.is_none() => format!("({})", mem.known()),
        None => format!("{}({base})", mem.known()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_processors_have_their_own_order() {
        let x = || Operand::Mem(Mem { name: Some("x".into()), ..Mem::default() });
        assert_eq!(instruction(Arch::X86, "mov", 32, &[x(), Operand::Const(1)]), "MOV [x],$1");
        assert_eq!(instruction(Arch::X86_64, "mov", 64, &[x(), Operand::Const(-1)]), "movq $-1,(x)");
        assert_eq!(instruction(Arch::X86_64, "xchg", 32, &[x(), Operand::Reg(Gpr(8))]), "xchgl %r8d,(x)");
        let cas = instruction(Arch::X86_64, "lock cmpxchg", 64, &[x(), Operand::Reg(Gpr(8))]);
        assert_eq!(cas, "lock cmpxchgq (x),%r8");
    }

    #[test]
    fn herd_knows_few_places() {
        let name = Some("x".to_string());
        let places = [
            Mem { name: name.clone(), ..Mem::default() },
            Mem { base: Some(Gpr(1)), ..Mem::default() },
            Mem { base: Some(Gpr(1)), offset: 8, ..Mem::default() },
            Mem { name: name.clone(), offset: 8, ..Mem::default() },
            Mem { name: name.clone(), base: Some(Gpr(1)), ..Mem::default() },
            Mem { name, index: Some((Gpr(1), 8)), ..Mem::default() },
        ];
        let read = |arch| places.clone().map(|mem| herd_reads(arch, &Operand::Mem(mem)));
        assert_eq!(read(Arch::X86_64), [true, true, true, false, false, false]);
        assert_eq!(read(Arch::X86), [true, true, false, false, false, false]);
    }

    #[test]
    fn places_are_sums() {
        let name = Some("t".to_string());
        let mem = Mem { name: name.clone(), offset: -8, base: None, index: Some((Gpr(1), 8)) };
        assert_eq!((att(&mem), intel(&mem, 8)), ("t-8(,%rbx,8)".into(), "BYTE PTR [EBX*8+t-8]".into()));
        let mem = Mem { name, offset: 8, ..Mem::default() };
        assert_eq!((att(&mem), intel(&mem, 32)), ("(t+8)".into(), "[t+8]".into()));
        let mem = Mem { offset: -4, base: Some(Gpr(0)), ..Mem::default() };
        assert_eq!((att(&mem), intel(&mem, 32)), ("-4(%rax)".into(), "[EAX-4]".into()));
    }
}

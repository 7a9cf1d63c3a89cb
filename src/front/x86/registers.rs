//! Which registers does the processor have, what are their parts called, and which registers of the model are
//! they?

use super::Arch;
use super::flags::Flag;
use crate::model::Reg;
use std::collections::HashMap;

/// A general register, by its place in the order in which states show them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Gpr(pub u8);

pub(crate) const EAX: Gpr = Gpr(0);

/// The instruction pointer. As for herd it is a register that instructions do not touch and do not move, so
/// it keeps the value that a test gives it.
pub(crate) const POINTER: Gpr = Gpr(16);

const LETTERS: [&str; 8] = ["ax", "bx", "cx", "dx", "si", "di", "bp", "sp"];

/// A register or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GprPart {
    pub gpr: Gpr,
    pub bits: u32,
    /// The place of its lowest bit: 8 for `ah` and its like.
    pub shift: u32,
}

impl Gpr {
    /// The name of the whole register, as final states show it.
    pub(crate) fn name(self, arch: Arch) -> String {
        match (arch, LETTERS.get(self.0 as usize)) {
            (Arch::X86, _) if self == POINTER => "EIP".to_string(),
            (Arch::X86_64, _) if self == POINTER => "rip".to_string(),
            (Arch::X86, Some(letters)) => format!("E{}", letters.to_uppercase()),
            (_, Some(letters)) => format!("r{letters}"),
            (_, None) => format!("r{}", self.0),
        }
    }
}

impl GprPart {
    /// The name of the part, as instructions write it.
    pub(crate) fn name(self, arch: Arch) -> String {
        let name = match (LETTERS.get(self.gpr.0 as usize), self.bits) {
            (Some(letters), 64) => format!("r{letters}"),
            (Some(letters), 32) => format!("e{letters}"),
            (Some(letters), 16) => letters.to_string(),
            (Some(letters), _) if self.gpr.0 >= 4 => format!("{letters}l"),
            (Some(letters), _) => format!("{}{}", &letters[..1], if self.shift == 0 { 'l' } else { 'h' }),
            (None, 64) => format!("r{}", self.gpr.0),
            (None, 32) => format!("r{}d", self.gpr.0),
            (None, 16) => format!("r{}w", self.gpr.0),
            (None, _) => format!("r{}b", self.gpr.0),
        };
        if arch == Arch::X86 { name.to_uppercase() } else { name }
    }
}

/// The register with this name, in any case.
pub(crate) fn register(name: &str, arch: Arch) -> Option<GprPart> {
    let name = name.to_ascii_lowercase();
    let part = lettered(&name).or_else(|| numbered(&name))?;
    let exists = arch == Arch::X86_64 || part.bits <= 32 && part.gpr.0 < 8;
    exists.then_some(part)
}

fn lettered(name: &str) -> Option<GprPart> {
    let at = |letters: &str| LETTERS.iter().position(|l| *l == letters).map(|i| Gpr(i as u8));
    let part = |gpr, bits, shift| Some(GprPart { gpr, bits, shift });
    if let Some(gpr) = at(name) {
        return part(gpr, 16, 0);
    }
    match name.as_bytes() {
        [b'r', ..] => part(at(&name[1..])?, 64, 0),
        [b'e', ..] => part(at(&name[1..])?, 32, 0),
        [first @ b'a'..=b'd', b'l'] => part(Gpr(first - b'a'), 8, 0),
        [first @ b'a'..=b'd', b'h'] => part(Gpr(first - b'a'), 8, 8),
        [_, _, b'l'] => part(at(&name[..2]).filter(|g| g.0 >= 4)?, 8, 0),
        _ => None,
    }
}

fn numbered(name: &str) -> Option<GprPart> {
    let rest = name.strip_prefix('r')?;
    let (digits, bits) = match rest.as_bytes().last()? {
        b'd' => (&rest[..rest.len() - 1], 32),
        b'w' => (&rest[..rest.len() - 1], 16),
        b'b' => (&rest[..rest.len() - 1], 8),
        _ => (rest, 64),
    };
    let known = matches!(digits, "8" | "9" | "10" | "11" | "12" | "13" | "14" | "15");
    known.then(|| GprPart { gpr: Gpr(digits.parse().unwrap_or(15)), bits, shift: 0 })
}

/// Something of a thread that has a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Own {
    Gpr(Gpr),
    Flag(Flag),
}

/// A register of the model's thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Slot {
    Own(Own),
    /// A value on its way, by its place in the instruction.
    Temporary(u8),
}

/// The registers that a thread has in the model, in the order in which they were first needed.
#[derive(Default)]
pub(crate) struct ThreadRegisters {
    slots: HashMap<Slot, Reg>,
    pub names: Vec<String>,
}

impl ThreadRegisters {
    fn get(&mut self, slot: Slot, name: impl FnOnce() -> String) -> Reg {
        let next = Reg(self.names.len() as u16);
        let reg = *self.slots.entry(slot).or_insert(next);
        if reg == next {
            self.names.push(name());
        }
        reg
    }

    pub(crate) fn own(&mut self, own: Own, arch: Arch) -> Reg {
        self.get(Slot::Own(own), || match own {
            Own::Gpr(gpr) => gpr.name(arch),
            Own::Flag(flag) => flag.name().to_string(),
        })
    }

    pub(crate) fn temporary(&mut self, n: u8) -> Reg {
        self.get(Slot::Temporary(n), || format!("t{n}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_have_parts() {
        let part = |name| register(name, Arch::X86_64).map(|p| (p.gpr.name(Arch::X86_64), p.bits, p.shift));
        assert_eq!(part("RAX"), Some(("rax".into(), 64, 0)));
        assert_eq!(part("ebx"), Some(("rbx".into(), 32, 0)));
        assert_eq!(part("si"), Some(("rsi".into(), 16, 0)));
        assert_eq!(part("ch"), Some(("rcx".into(), 8, 8)));
        assert_eq!(part("dil"), Some(("rdi".into(), 8, 0)));
        assert_eq!(part("r12d"), Some(("r12".into(), 32, 0)));
        for no in ["x", "r16", "r7", "el", "axl", "eal", "rip", "r", ""] {
            assert_eq!(part(no), None, "{no}");
        }
        for gpr in (0..16).map(Gpr) {
            for bits in [8, 16, 32, 64] {
                let part = GprPart { gpr, bits, shift: 0 };
                assert_eq!(register(&part.name(Arch::X86_64), Arch::X86_64), Some(part));
            }
        }
        assert_eq!(GprPart { gpr: EAX, bits: 8, shift: 8 }.name(Arch::X86), "AH");
        assert_eq!(register("rax", Arch::X86), None);
        assert_eq!(register("r8d", Arch::X86), None);
        assert_eq!(register("EDI", Arch::X86).map(|p| p.gpr.name(Arch::X86)), Some("EDI".into()));
    }
}

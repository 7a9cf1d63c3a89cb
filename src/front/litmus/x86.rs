//! What does the processor have? Its registers and their parts, its flags, and the words for its instructions.
//!
//! Tables and nothing else: how an instruction is written is `parse`'s business, what it does `lower`'s.

/// Which operands come first, and how wide registers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arch {
    /// 32 bits, Intel's order: destination first.
    X86,
    /// 64 bits, AT&T's order: destination last.
    X86_64,
}

impl Arch {
    pub fn named(name: &str) -> Option<Arch> {
        match name {
            "X86" => Some(Arch::X86),
            "X86_64" => Some(Arch::X86_64),
            _ => None,
        }
    }

    /// Bits of a whole register.
    pub fn bits(self) -> u32 {
        match self {
            Arch::X86 => 32,
            Arch::X86_64 => 64,
        }
    }
}

/// A general register, by its place in the order in which states show them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Gpr(pub u8);

pub const EAX: Gpr = Gpr(0);

/// The instruction pointer. As for herd it is a register that instructions do not touch and do not move, so it keeps the
/// value that a test gives it.
pub const POINTER: Gpr = Gpr(16);

const LETTERS: [&str; 8] = ["ax", "bx", "cx", "dx", "si", "di", "bp", "sp"];

/// A register or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    pub gpr: Gpr,
    pub bits: u32,
    /// The place of its lowest bit: 8 for `ah` and its like.
    pub shift: u32,
}

impl Gpr {
    /// The name of the whole register, as final states show it.
    pub fn name(self, arch: Arch) -> String {
        match (arch, LETTERS.get(self.0 as usize)) {
            (Arch::X86, _) if self == POINTER => "EIP".to_string(),
            (Arch::X86_64, _) if self == POINTER => "rip".to_string(),
            (Arch::X86, Some(letters)) => format!("E{}", letters.to_uppercase()),
            (_, Some(letters)) => format!("r{letters}"),
            (_, None) => format!("r{}", self.0),
        }
    }
}

impl Part {
    /// The name of the part, as instructions write it.
    pub fn name(self, arch: Arch) -> String {
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
pub fn register(name: &str, arch: Arch) -> Option<Part> {
    let name = name.to_ascii_lowercase();
    let part = lettered(&name).or_else(|| numbered(&name))?;
    let exists = arch == Arch::X86_64 || part.bits <= 32 && part.gpr.0 < 8;
    exists.then_some(part)
}

fn lettered(name: &str) -> Option<Part> {
    let at = |letters: &str| LETTERS.iter().position(|l| *l == letters).map(|i| Gpr(i as u8));
    let part = |gpr, bits, shift| Some(Part { gpr, bits, shift });
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

fn numbered(name: &str) -> Option<Part> {
    let rest = name.strip_prefix('r')?;
    let (digits, bits) = match rest.as_bytes().last()? {
        b'd' => (&rest[..rest.len() - 1], 32),
        b'w' => (&rest[..rest.len() - 1], 16),
        b'b' => (&rest[..rest.len() - 1], 8),
        _ => (rest, 64),
    };
    let known = matches!(digits, "8" | "9" | "10" | "11" | "12" | "13" | "14" | "15");
    known.then(|| Part { gpr: Gpr(digits.parse().unwrap_or(15)), bits, shift: 0 })
}

/// What arithmetic leaves behind for jumps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Flag {
    /// The result is 0.
    Zero,
    /// The result is negative.
    Sign,
    /// The result does not fit as an unsigned number.
    Carry,
    /// The result does not fit as a signed number.
    Overflow,
    /// `Sign` differs from `Overflow`: the true result is negative. No flag of the processor, but what most jumps
    /// look at.
    Less,
}

impl Flag {
    pub const ALL: [Flag; 5] = [Flag::Zero, Flag::Sign, Flag::Carry, Flag::Overflow, Flag::Less];

    pub fn name(self) -> &'static str {
        match self {
            Flag::Zero => "ZF",
            Flag::Sign => "SF",
            Flag::Carry => "CF",
            Flag::Overflow => "OF",
            Flag::Less => "LT",
        }
    }

    /// The flag that a test may ask for by name.
    pub fn named(name: &str) -> Option<Flag> {
        Flag::ALL.into_iter().find(|f| *f != Flag::Less && f.name().eq_ignore_ascii_case(name))
    }
}

/// When a conditional instruction acts: one of these flags is set, or none of them is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    pub flags: &'static [Flag],
    pub set: bool,
}

/// The conditions by the letters behind `j`, `set` and `cmov`.
fn condition(letters: &str) -> Option<Condition> {
    let (flags, set): (&'static [Flag], bool) = match letters {
        "e" | "z" => (&[Flag::Zero], true),
        "ne" | "nz" => (&[Flag::Zero], false),
        "b" | "c" | "nae" => (&[Flag::Carry], true),
        "ae" | "nb" | "nc" => (&[Flag::Carry], false),
        "be" | "na" => (&[Flag::Carry, Flag::Zero], true),
        "a" | "nbe" => (&[Flag::Carry, Flag::Zero], false),
        "l" | "lt" | "nge" => (&[Flag::Less], true),
        "ge" | "nl" => (&[Flag::Less], false),
        "le" | "ng" => (&[Flag::Less, Flag::Zero], true),
        "g" | "gt" | "nle" => (&[Flag::Less, Flag::Zero], false),
        "s" => (&[Flag::Sign], true),
        "ns" => (&[Flag::Sign], false),
        "o" => (&[Flag::Overflow], true),
        "no" => (&[Flag::Overflow], false),
        _ => return None,
    };
    Some(Condition { flags, set })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Mov,
    /// The source may be narrower; it is filled up with zeros or with its sign.
    Extend {
        signed: bool,
        from: Option<u32>,
    },
    Lea,
    Xchg,
    Xadd,
    Cmpxchg,
    Two(Two),
    /// Signed, into a register.
    Multiply,
    One(One),
    Shift(Shift),
    Bit(Bit),
    Jump(Option<Condition>),
    Set(Condition),
    MoveIf(Condition),
    Fence,
    Nop,
    Ret,
}

/// Destination and source to a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Two {
    Add,
    Sub,
    And,
    Or,
    Xor,
    /// `Sub` for its flags.
    Cmp,
    /// `And` for its flags.
    Test,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum One {
    Inc,
    Dec,
    Neg,
    Not,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shift {
    Left,
    Right,
    Arithmetic,
}

/// A bit is read into the carry flag, and then:
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bit {
    Keep,
    Set,
    Reset,
    Complement,
}

impl Op {
    /// May it have a `LOCK` before it, if its destination is memory?
    pub fn may_lock(self) -> bool {
        match self {
            Op::Two(two) => !matches!(two, Two::Cmp | Two::Test),
            Op::Bit(bit) => bit != Bit::Keep,
            Op::Xchg | Op::Xadd | Op::Cmpxchg | Op::One(_) => true,
            _ => false,
        }
    }
}

/// The instructions, for whoever used another one.
pub const SUPPORTED: &str = "MOV MOVZX MOVSX LEA XCHG ADD SUB IMUL AND OR XOR CMP TEST INC DEC NEG NOT SHL SHR SAR \
                             BT BTS BTR BTC XADD CMPXCHG JMP Jcc SETcc CMOVcc MFENCE LFENCE SFENCE NOP PAUSE RET";

/// All mnemonics that have a fixed spelling, for suggestions.
pub const MNEMONICS: [&str; 42] = [
    "mov", "movzx", "movsx", "lea", "xchg", "add", "sub", "imul", "and", "or", "xor", "cmp", "test", "inc",
    "dec", "neg", "not", "shl", "shr", "sar", "bt", "bts", "btr", "btc", "xadd", "cmpxchg", "jmp", "je",
    "jne", "jl", "jle", "jg", "jge", "jb", "ja", "mfence", "lfence", "sfence", "nop", "pause", "ret", "lock",
];

/// What a mnemonic means, with the width that its last letter gives.
pub fn mnemonic(word: &str) -> Option<(Op, Option<u32>)> {
    let word = word.to_ascii_lowercase();
    if let Some(op) = plain(&word).or_else(|| conditional(&word)) {
        return Some((op, None));
    }
    if let Some(found) = extending(&word) {
        return Some(found);
    }
    let bits = suffix(*word.as_bytes().last()?)?;
    let stem = &word[..word.len() - 1];
    let op = plain(stem)
        .filter(|op| has_widths(*op))
        .or_else(|| conditional(stem).filter(|op| has_widths(*op)))?;
    Some((op, Some(bits)))
}

fn suffix(letter: u8) -> Option<u32> {
    match letter {
        b'b' => Some(8),
        b'w' => Some(16),
        b'l' => Some(32),
        b'q' => Some(64),
        _ => None,
    }
}

fn has_widths(op: Op) -> bool {
    !matches!(op, Op::Jump(_) | Op::Set(_) | Op::Fence | Op::Extend { .. })
}

fn plain(word: &str) -> Option<Op> {
    Some(match word {
        "mov" | "movabs" => Op::Mov,
        "movzx" => Op::Extend { signed: false, from: None },
        "movsx" | "movsxd" => Op::Extend { signed: true, from: None },
        "lea" => Op::Lea,
        "xchg" => Op::Xchg,
        "xadd" => Op::Xadd,
        "cmpxchg" => Op::Cmpxchg,
        "add" => Op::Two(Two::Add),
        "sub" => Op::Two(Two::Sub),
        "and" => Op::Two(Two::And),
        "or" => Op::Two(Two::Or),
        "xor" => Op::Two(Two::Xor),
        "cmp" => Op::Two(Two::Cmp),
        "test" => Op::Two(Two::Test),
        "imul" => Op::Multiply,
        "inc" => Op::One(One::Inc),
        "dec" => Op::One(One::Dec),
        "neg" => Op::One(One::Neg),
        "not" => Op::One(One::Not),
        "shl" | "sal" => Op::Shift(Shift::Left),
        "shr" => Op::Shift(Shift::Right),
        "sar" => Op::Shift(Shift::Arithmetic),
        "bt" => Op::Bit(Bit::Keep),
        "bts" => Op::Bit(Bit::Set),
        "btr" => Op::Bit(Bit::Reset),
        "btc" => Op::Bit(Bit::Complement),
        "jmp" => Op::Jump(None),
        "mfence" => Op::Fence,
        // Under TSO loads stay in order, and so do stores: these two have nothing left to do.
        "lfence" | "sfence" | "nop" | "pause" | "endbr32" | "endbr64" => Op::Nop,
        "ret" | "retq" => Op::Ret,
        _ => return None,
    })
}

fn conditional(word: &str) -> Option<Op> {
    let of = |prefix: &str| word.strip_prefix(prefix).and_then(condition);
    of("j")
        .map(|c| Op::Jump(Some(c)))
        .or_else(|| of("set").map(Op::Set))
        .or_else(|| of("cmov").map(Op::MoveIf))
}

/// AT&T's `movzbl` and the like: from which width to which.
fn extending(word: &str) -> Option<(Op, Option<u32>)> {
    let (signed, widths) = match (word.strip_prefix("movz"), word.strip_prefix("movs")) {
        (Some(widths), _) => (false, widths),
        (_, Some(widths)) => (true, widths),
        _ => return None,
    };
    let [from, to] = *widths.as_bytes() else { return None };
    let (from, to) = (suffix(from)?, suffix(to)?);
    (from < to).then_some((Op::Extend { signed, from: Some(from) }, Some(to)))
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
                let part = Part { gpr, bits, shift: 0 };
                assert_eq!(register(&part.name(Arch::X86_64), Arch::X86_64), Some(part));
            }
        }
        assert_eq!(Part { gpr: EAX, bits: 8, shift: 8 }.name(Arch::X86), "AH");
        assert_eq!(register("rax", Arch::X86), None);
        assert_eq!(register("r8d", Arch::X86), None);
        assert_eq!(register("EDI", Arch::X86).map(|p| p.gpr.name(Arch::X86)), Some("EDI".into()));
    }

    #[test]
    fn the_last_letter_may_be_a_width_or_not() {
        assert_eq!(mnemonic("sub"), Some((Op::Two(Two::Sub), None)));
        assert_eq!(mnemonic("subb"), Some((Op::Two(Two::Sub), Some(8))));
        assert_eq!(mnemonic("SHL"), Some((Op::Shift(Shift::Left), None)));
        assert_eq!(mnemonic("shll"), Some((Op::Shift(Shift::Left), Some(32))));
        assert_eq!(mnemonic("btsq"), Some((Op::Bit(Bit::Set), Some(64))));
        assert_eq!(mnemonic("movzbl"), Some((Op::Extend { signed: false, from: Some(8) }, Some(32))));
        assert_eq!(mnemonic("movslq"), Some((Op::Extend { signed: true, from: Some(32) }, Some(64))));
        assert!(matches!(mnemonic("jl"), Some((Op::Jump(Some(_)), None))));
        assert_eq!(mnemonic("movnti"), None);
        assert_eq!(mnemonic("jmpl"), None);
        assert_eq!(mnemonic("movzlb"), None);
        assert_eq!(mnemonic(""), None);
    }

    #[test]
    fn every_suggestion_is_a_mnemonic() {
        for word in MNEMONICS.iter().filter(|w| **w != "lock") {
            assert!(mnemonic(word).is_some(), "{word}");
        }
    }
}

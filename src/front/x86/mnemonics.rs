//! Which instructions are there, and what are they called?
//!
//! Tables and nothing else: what an instruction does is `lower`'s business.

use super::flags::{Condition, condition};
use crate::model::FenceKinds;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
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
    /// LFENCE, SFENCE
    Partial(FenceKinds),
    Nop,
    Ret,
}

/// Destination and source to a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Two {
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
pub(crate) enum One {
    Inc,
    Dec,
    Neg,
    Not,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shift {
    Left,
    Right,
    Arithmetic,
}

/// A bit is read into the carry flag, and then:
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bit {
    Keep,
    Set,
    Reset,
    Complement,
}

impl Op {
    /// May it have a `LOCK` before it, if its destination is memory?
    pub(crate) fn may_lock(self) -> bool {
        match self {
            Op::Two(two) => !matches!(two, Two::Cmp | Two::Test),
            Op::Bit(bit) => bit != Bit::Keep,
            Op::Xchg | Op::Xadd | Op::Cmpxchg | Op::One(_) => true,
            _ => false,
        }
    }

    /// How few operands it takes, and how many.
    pub(crate) fn operands(self) -> (usize, usize) {
        match self {
            Op::Nop | Op::Ret | Op::Fence | Op::Partial(_) => (0, 0),
            Op::Jump(_) | Op::One(_) | Op::Set(_) => (1, 1),
            Op::Shift(_) => (1, 2),
            _ => (2, 2),
        }
    }

    /// What has to hold for it to act.
    pub(crate) fn condition(self) -> Option<Condition> {
        match self {
            Op::Jump(condition) => condition,
            Op::Set(condition) | Op::MoveIf(condition) => Some(condition),
            _ => None,
        }
    }
}

/// The instructions, for whoever used another one.
pub(crate) const SUPPORTED: &str = "MOV MOVZX MOVSX LEA XCHG ADD SUB IMUL AND OR XOR CMP TEST INC DEC NEG NOT SHL SHR SAR \
                             BT BTS BTR BTC XADD CMPXCHG JMP Jcc SETcc CMOVcc MFENCE LFENCE SFENCE NOP PAUSE RET";

/// All mnemonics that have a fixed spelling, for suggestions.
pub(crate) const MNEMONICS: [&str; 42] = [
    "mov", "movzx", "movsx", "lea", "xchg", "add", "sub", "imul", "and", "or", "xor", "cmp", "test", "inc",
    "dec", "neg", "not", "shl", "shr", "sar", "bt", "bts", "btr", "btc", "xadd", "cmpxchg", "jmp", "je",
    "jne", "jl", "jle", "jg", "jge", "jb", "ja", "mfence", "lfence", "sfence", "nop", "pause", "ret", "lock",
];

/// What a mnemonic means, with the width that its last letter gives.
pub(crate) fn mnemonic(word: &str) -> Option<(Op, Option<u32>)> {
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
    !matches!(op, Op::Jump(_) | Op::Set(_) | Op::Fence | Op::Partial(_) | Op::Extend { .. })
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
        "lfence" => Op::Partial(FenceKinds::LFENCE),
        "sfence" => Op::Partial(FenceKinds::SFENCE),
        "nop" | "pause" | "endbr32" | "endbr64" => Op::Nop,
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

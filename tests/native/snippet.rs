//! What is a snippet? One thread without loops, with its registers and variables.

/// How wide registers are, and how litmus tests write operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arch {
    X86,
    X86_64,
}

impl Arch {
    pub(crate) fn bits(self) -> u32 {
        if self == Arch::X86 { 32 } else { 64 }
    }

    pub(crate) fn registers(self) -> usize {
        if self == Arch::X86 { 8 } else { 16 }
    }
}

const LETTERS: [&str; 8] = ["ax", "bx", "cx", "dx", "si", "di", "bp", "sp"];
/// The stack pointer, which cannot be an index.
pub(crate) const SP: usize = 7;

/// A register or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub reg: usize,
    pub bits: u32,
    /// The second byte.
    pub high: bool,
}

impl Part {
    pub(crate) fn name(self) -> String {
        match (LETTERS.get(self.reg), self.bits) {
            (Some(letters), 64) => format!("r{letters}"),
            (Some(letters), 32) => format!("e{letters}"),
            (Some(letters), 16) => letters.to_string(),
            (Some(letters), _) if self.reg >= 4 => format!("{letters}l"),
            (Some(letters), _) => format!("{}{}", &letters[..1], if self.high { 'h' } else { 'l' }),
            (None, 64) => format!("r{}", self.reg),
            (None, 32) => format!("r{}d", self.reg),
            (None, 16) => format!("r{}w", self.reg),
            (None, _) => format!("r{}b", self.reg),
        }
    }

    /// Does it need the prefix that hides the second bytes of registers?
    pub(crate) fn is_new(self) -> bool {
        self.reg >= 8 || self.bits == 64 || self.bits == 8 && self.reg >= 4
    }
}

/// A place in memory: the sum of what is there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Place {
    pub var: Option<usize>,
    pub offset: i64,
    pub base: Option<Part>,
    pub index: Option<(Part, i64)>,
}

impl Place {
    pub(crate) fn is_direct(&self) -> bool {
        self.base.is_none() && self.index.is_none()
    }

    pub(crate) fn parts(&self) -> impl Iterator<Item = Part> + '_ {
        self.base.into_iter().chain(self.index.map(|(part, _)| part))
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Operand {
    Number(i64),
    Address(usize),
    Reg(Part),
    Mem(Place),
}

/// The flags that a test can name, as bits.
pub(crate) const ZERO: u8 = 1;
pub(crate) const SIGN: u8 = 2;
pub(crate) const CARRY: u8 = 4;
pub(crate) const OVERFLOW: u8 = 8;
pub(crate) const FLAGS: [(&str, u8); 4] = [("ZF", ZERO), ("SF", SIGN), ("CF", CARRY), ("OF", OVERFLOW)];
pub(crate) const ALL: u8 = 15;

/// The letters of a condition and the flags that it looks at.
pub(crate) type Condition = (&'static str, u8);

pub(crate) const CONDITIONS: [Condition; 28] = [
    ("e", ZERO),
    ("z", ZERO),
    ("ne", ZERO),
    ("nz", ZERO),
    ("b", CARRY),
    ("c", CARRY),
    ("nae", CARRY),
    ("ae", CARRY),
    ("nb", CARRY),
    ("nc", CARRY),
    ("be", CARRY | ZERO),
    ("na", CARRY | ZERO),
    ("a", CARRY | ZERO),
    ("nbe", CARRY | ZERO),
    ("l", SIGN | OVERFLOW),
    ("nge", SIGN | OVERFLOW),
    ("ge", SIGN | OVERFLOW),
    ("nl", SIGN | OVERFLOW),
    ("le", SIGN | OVERFLOW | ZERO),
    ("ng", SIGN | OVERFLOW | ZERO),
    ("g", SIGN | OVERFLOW | ZERO),
    ("nle", SIGN | OVERFLOW | ZERO),
    ("s", SIGN),
    ("ns", SIGN),
    ("o", OVERFLOW),
    ("no", OVERFLOW),
    // More often: most tests use them.
    ("e", ZERO),
    ("ne", ZERO),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Mov,
    Extend {
        signed: bool,
        from: u32,
    },
    Lea,
    Xchg,
    Xadd,
    Cmpxchg,
    /// `add`, `sub`, `and`, `or`, `xor`, `cmp`, `test`.
    Two(&'static str),
    Imul,
    /// `inc`, `dec`, `neg`, `not`.
    One(&'static str),
    /// `shl`, `sal`, `shr`, `sar`.
    Shift(&'static str),
    /// `bt`, `bts`, `btr`, `btc`.
    Bit(&'static str),
    Set(Condition),
    MoveIf(Condition),
    /// Nothing that one thread could notice.
    Still(&'static str),
}

#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub op: Op,
    pub locked: bool,
    pub bits: u32,
    /// Destination first.
    pub operands: Vec<Operand>,
    /// Decides between ways to write it.
    pub spelling: u64,
}

#[derive(Clone, Debug)]
pub(crate) enum Unit {
    Do(Line),
    /// A jump over what follows, always or on a condition.
    Skip(Option<Condition>, Vec<Unit>),
}

#[derive(Clone, Debug)]
pub(crate) struct Variable {
    pub bits: u32,
    pub signed: bool,
    pub init: Vec<i64>,
    /// Whether its type is written.
    pub typed: bool,
}

/// What a register starts with.
#[derive(Clone, Copy, Debug)]
pub(crate) enum First {
    Number(i64),
    Address(usize),
}

#[derive(Clone, Debug)]
pub(crate) struct Snippet {
    pub arch: Arch,
    /// The registers that are in play.
    pub registers: Vec<(usize, First)>,
    pub flags: u8,
    pub variables: Vec<Variable>,
    /// One more variable, which holds the address of this one.
    pub pointer: Option<usize>,
    pub units: Vec<Unit>,
}

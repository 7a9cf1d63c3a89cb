//! What can one step of a thread do? The instructions on the edges of a control-flow graph.
//!
//! Branches are pairs of `Assume` edges, as in the papers; jumps are edges' targets. A locked
//! read-modify-write is one indivisible step; `Lock` and `Unlock` bracket a block of several.
//! How an instruction acts on memory is `semantics`'s business.

use super::bytes::Bytes;
use super::expr::{BinOp, Expr, Value};
use serde::{Deserialize, Serialize};

/// A register of one thread, by its place in the thread's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Reg(pub u16);

pub type RegExpr = Expr<Reg>;

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Instr {
    /// `dst` gets these bytes of the cell, in their places, and 0 elsewhere.
    Load {
        dst: Reg,
        addr: RegExpr,
        #[serde(default, skip_serializing_if = "Bytes::is_whole")]
        bytes: Bytes,
    },
    /// These bytes of the cell get those of the value.
    Store {
        addr: RegExpr,
        value: RegExpr,
        #[serde(default, skip_serializing_if = "Bytes::is_whole")]
        bytes: Bytes,
    },
    /// Orders all earlier accesses before all later ones.
    Fence,
    /// Orders accesses of some kinds only. Without `sl` it does nothing under SC and TSO.
    Partial(FenceKinds),
    /// Waits until all threads' stores are in memory. A program with one is for engines that know of it.
    Membarrier,
    Assign {
        dst: Reg,
        value: RegExpr,
    },
    /// `dst` gets any value from `lo` to `hi`, both included.
    Any {
        dst: Reg,
        lo: Value,
        hi: Value,
    },
    Assume(RegExpr),
    Assert(RegExpr),
    /// `dst` gets the old value. Operands are evaluated before `dst` changes; only in `RmwOp::New` it stands
    /// for the old value.
    Rmw {
        dst: Reg,
        addr: RegExpr,
        op: RmwOp,
    },
    Lock,
    Unlock,
    Nop,
}

/// Which pairs of accesses a fence orders: earlier ones of the first kind before later ones of the second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct FenceKinds {
    /// Loads before loads.
    pub ll: bool,
    /// Loads before stores.
    pub ls: bool,
    /// Stores before loads.
    pub sl: bool,
    /// Stores before stores.
    pub ss: bool,
}

impl FenceKinds {
    pub const NONE: FenceKinds = FenceKinds { ll: false, ls: false, sl: false, ss: false };
    pub const ALL: FenceKinds = FenceKinds { ll: true, ls: true, sl: true, ss: true };
    pub const WORDS: [&str; 4] = ["ll", "ls", "sl", "ss"];

    /// What x86 calls LFENCE: all that its loads are ordered by.
    pub const LFENCE: FenceKinds = FenceKinds { ll: true, ls: true, ..FenceKinds::NONE };
    /// What x86 calls SFENCE.
    pub const SFENCE: FenceKinds = FenceKinds { ss: true, ..FenceKinds::NONE };

    /// In the order of [`FenceKinds::WORDS`].
    pub fn each(self) -> [bool; 4] {
        [self.ll, self.ls, self.sl, self.ss]
    }

    /// The kind of this number alone.
    pub fn one(number: usize) -> FenceKinds {
        let is = |n| n == number;
        FenceKinds { ll: is(0), ls: is(1), sl: is(2), ss: is(3) }
    }

    pub fn named(word: &str) -> Option<FenceKinds> {
        FenceKinds::WORDS.iter().position(|w| *w == word).map(FenceKinds::one)
    }

    pub fn and(self, other: FenceKinds) -> FenceKinds {
        FenceKinds {
            ll: self.ll || other.ll,
            ls: self.ls || other.ls,
            sl: self.sl || other.sl,
            ss: self.ss || other.ss,
        }
    }

    /// Does it order an access that loads or stores before a later one that does?
    pub fn orders(self, (first_loads, first_stores): (bool, bool), (loads, stores): (bool, bool)) -> bool {
        self.ll && first_loads && loads
            || self.ls && first_loads && stores
            || self.sl && first_stores && loads
            || self.ss && first_stores && stores
    }

    /// As the native language has them: `ll, ls`.
    pub fn words(self) -> String {
        let named = FenceKinds::WORDS.iter().zip(self.each()).filter(|(_, on)| *on);
        named.map(|(word, _)| *word).collect::<Vec<_>>().join(", ")
    }
}

/// What a locked read-modify-write leaves in memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum RmwOp {
    Swap(RegExpr),
    Add(RegExpr),
    And(RegExpr),
    Or(RegExpr),
    Xor(RegExpr),
    Cas {
        old: RegExpr,
        new: RegExpr,
    },
    /// Whatever the expression says, in which the destination is the old value. It never divides by zero.
    New(RegExpr),
}

impl RmwOp {
    /// The operator and the operand that the old value is combined with, where the new one is made so.
    pub fn combines(&self) -> Option<(BinOp, &RegExpr)> {
        match self {
            RmwOp::Add(v) => Some((BinOp::Add, v)),
            RmwOp::And(v) => Some((BinOp::BitAnd, v)),
            RmwOp::Or(v) => Some((BinOp::BitOr, v)),
            RmwOp::Xor(v) => Some((BinOp::BitXor, v)),
            RmwOp::Swap(_) | RmwOp::Cas { .. } | RmwOp::New(_) => None,
        }
    }

    /// As the native language calls it.
    pub fn word(&self) -> &'static str {
        match self {
            RmwOp::Swap(_) => "xchg",
            RmwOp::Add(_) => "add",
            RmwOp::And(_) => "and",
            RmwOp::Or(_) => "or",
            RmwOp::Xor(_) => "xor",
            RmwOp::Cas { .. } => "cas",
            RmwOp::New(_) => "rmw",
        }
    }

    /// What it computes with, in the order of the text.
    pub fn operands(&self) -> Vec<&RegExpr> {
        match self {
            RmwOp::Cas { old, new } => vec![old, new],
            RmwOp::Swap(v) | RmwOp::New(v) => vec![v],
            RmwOp::Add(v) | RmwOp::And(v) | RmwOp::Or(v) | RmwOp::Xor(v) => vec![v],
        }
    }

    pub fn operands_mut(&mut self) -> Vec<&mut RegExpr> {
        match self {
            RmwOp::Cas { old, new } => vec![old, new],
            RmwOp::Swap(v) | RmwOp::New(v) => vec![v],
            RmwOp::Add(v) | RmwOp::And(v) | RmwOp::Or(v) | RmwOp::Xor(v) => vec![v],
        }
    }
}

impl Instr {
    /// The address expression, if the instruction accesses memory.
    pub fn address(&self) -> Option<&RegExpr> {
        match self {
            Instr::Load { addr, .. } | Instr::Store { addr, .. } | Instr::Rmw { addr, .. } => Some(addr),
            _ => None,
        }
    }

    /// The register that the instruction changes.
    pub fn target(&self) -> Option<Reg> {
        match self {
            Instr::Load { dst, .. }
            | Instr::Assign { dst, .. }
            | Instr::Any { dst, .. }
            | Instr::Rmw { dst, .. } => Some(*dst),
            _ => None,
        }
    }

    /// Every expression in the instruction.
    pub fn exprs(&self) -> Vec<&RegExpr> {
        match self {
            Instr::Load { addr, .. } => vec![addr],
            Instr::Store { addr, value, .. } => vec![addr, value],
            Instr::Assign { value, .. } => vec![value],
            Instr::Assume(e) | Instr::Assert(e) => vec![e],
            Instr::Rmw { addr, op, .. } => [vec![addr], op.operands()].concat(),
            Instr::Fence
            | Instr::Partial(_)
            | Instr::Membarrier
            | Instr::Any { .. }
            | Instr::Lock
            | Instr::Unlock
            | Instr::Nop => vec![],
        }
    }

    /// Every register whose value before the instruction it uses, once for each use.
    pub fn uses(&self, mut visit: impl FnMut(Reg)) {
        let brought = match self {
            Instr::Rmw { dst, op: RmwOp::New(new), .. } => Some((*dst, new)),
            _ => None,
        };
        for e in self.exprs() {
            let brought = brought.filter(|(_, new)| std::ptr::eq(*new, e));
            e.for_each_atom(&mut |r| {
                if brought.is_none_or(|(dst, _)| dst != *r) {
                    visit(*r);
                }
            });
        }
    }

    /// The bytes of its cell that it touches, if it accesses memory.
    pub fn bytes(&self) -> Option<Bytes> {
        match self {
            Instr::Load { bytes, .. } | Instr::Store { bytes, .. } => Some(*bytes),
            Instr::Rmw { .. } => Some(Bytes::WHOLE),
            _ => None,
        }
    }

    pub fn reads_memory(&self) -> bool {
        matches!(self, Instr::Load { .. } | Instr::Rmw { .. })
    }

    pub fn writes_memory(&self) -> bool {
        matches!(self, Instr::Store { .. } | Instr::Rmw { .. })
    }

    /// Does it keep later loads behind earlier stores, and do nothing else that TSO knows of?
    pub fn is_fence(&self) -> bool {
        matches!(self, Instr::Fence | Instr::Partial(FenceKinds { sl: true, .. }))
    }

    /// What it orders, if it is a fence under some memory model.
    pub fn fence_kinds(&self) -> Option<FenceKinds> {
        match self {
            Instr::Fence => Some(FenceKinds::ALL),
            Instr::Partial(kinds) => Some(*kinds),
            _ => None,
        }
    }

    /// Does the thread wait here, under TSO, until its own store buffer is empty? No store stays in the
    /// buffer past it.
    pub fn drains_buffer(&self) -> bool {
        self.is_fence() || matches!(self, Instr::Membarrier | Instr::Rmw { .. } | Instr::Lock | Instr::Unlock)
    }

    /// Does it touch nothing but the thread's own registers, whatever the memory model?
    pub fn is_local(&self) -> bool {
        use Instr::*;
        matches!(
            self,
            Assign { .. } | Any { .. } | Assume(_) | Assert(_) | Nop | Partial(FenceKinds { sl: false, .. })
        )
    }
}

//! What can one step of a thread do? The instructions on the edges of a control-flow graph.
//!
//! Branches are pairs of `Assume` edges, as in the papers; jumps are edges' targets. A locked
//! read-modify-write is one indivisible step; `Lock` and `Unlock` bracket a block of several.
//! How an instruction acts on memory is `semantics`'s business.

use super::expr::{BinOp, Expr, Value};
use serde::{Deserialize, Serialize};

/// A register of one thread, by its place in the thread's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Reg(pub u16);

pub type RegExpr = Expr<Reg>;

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Instr {
    Load {
        dst: Reg,
        addr: RegExpr,
    },
    Store {
        addr: RegExpr,
        value: RegExpr,
    },
    Fence,
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
    /// `dst` gets the old value. The operands are evaluated before `dst` changes.
    Rmw {
        dst: Reg,
        addr: RegExpr,
        op: RmwOp,
    },
    Lock,
    Unlock,
    Nop,
}

/// What a locked read-modify-write leaves in memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum RmwOp {
    Swap(RegExpr),
    Add(RegExpr),
    And(RegExpr),
    Or(RegExpr),
    Xor(RegExpr),
    Cas { old: RegExpr, new: RegExpr },
}

impl RmwOp {
    /// The operator and the operand that the old value is combined with, where the new one is made so.
    pub fn combines(&self) -> Option<(BinOp, &RegExpr)> {
        match self {
            RmwOp::Add(v) => Some((BinOp::Add, v)),
            RmwOp::And(v) => Some((BinOp::BitAnd, v)),
            RmwOp::Or(v) => Some((BinOp::BitOr, v)),
            RmwOp::Xor(v) => Some((BinOp::BitXor, v)),
            RmwOp::Swap(_) | RmwOp::Cas { .. } => None,
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
        }
    }

    /// What it computes with, in the order of the text.
    pub fn operands(&self) -> Vec<&RegExpr> {
        match self {
            RmwOp::Swap(v) | RmwOp::Add(v) | RmwOp::And(v) | RmwOp::Or(v) | RmwOp::Xor(v) => vec![v],
            RmwOp::Cas { old, new } => vec![old, new],
        }
    }

    pub fn operands_mut(&mut self) -> Vec<&mut RegExpr> {
        match self {
            RmwOp::Swap(v) | RmwOp::Add(v) | RmwOp::And(v) | RmwOp::Or(v) | RmwOp::Xor(v) => vec![v],
            RmwOp::Cas { old, new } => vec![old, new],
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
            Instr::Store { addr, value } => vec![addr, value],
            Instr::Assign { value, .. } => vec![value],
            Instr::Assume(e) | Instr::Assert(e) => vec![e],
            Instr::Rmw { addr, op, .. } => [vec![addr], op.operands()].concat(),
            Instr::Fence | Instr::Any { .. } | Instr::Lock | Instr::Unlock | Instr::Nop => vec![],
        }
    }

    pub fn reads_memory(&self) -> bool {
        matches!(self, Instr::Load { .. } | Instr::Rmw { .. })
    }

    pub fn writes_memory(&self) -> bool {
        matches!(self, Instr::Store { .. } | Instr::Rmw { .. })
    }

    /// Does the thread wait here, under TSO, until its own store buffer is empty? No store stays in the
    /// buffer past it.
    pub fn drains_buffer(&self) -> bool {
        matches!(self, Instr::Fence | Instr::Rmw { .. } | Instr::Lock | Instr::Unlock)
    }

    /// Does it touch nothing but the thread's own registers, whatever the memory model?
    pub fn is_local(&self) -> bool {
        use Instr::*;
        matches!(self, Assign { .. } | Any { .. } | Assume(_) | Assert(_) | Nop)
    }
}

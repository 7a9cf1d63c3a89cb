//! What can one step of a thread do? The instructions on the edges of a control-flow graph.
//!
//! Branches are pairs of `Assume` edges, as in the papers; jumps are edges' targets. A locked
//! read-modify-write is one indivisible step; `Lock` and `Unlock` bracket a block of several.
//! How an instruction acts on memory is `semantics`'s business.

use super::expr::{Expr, Value};
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
    Cas { old: RegExpr, new: RegExpr },
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
            Instr::Rmw { addr, op, .. } => match op {
                RmwOp::Swap(e) | RmwOp::Add(e) => vec![addr, e],
                RmwOp::Cas { old, new } => vec![addr, old, new],
            },
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

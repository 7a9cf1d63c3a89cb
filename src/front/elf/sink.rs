//! Who wants to know what a thread does? While numbers are still looked for, nobody; then the emitter.

use super::ops::{Var, VarExpr};

/// A place in what is emitted.
pub(super) type EmittedAt = u32;

/// A locked instruction, on terms that are as short as they get.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum RmwChange {
    Swap(VarExpr),
    Cas {
        old: VarExpr,
        new: VarExpr,
    },
    /// A term over `Var::Old`.
    Update(VarExpr),
}

pub(super) trait Sink {
    fn here(&mut self) -> EmittedAt;
    fn fresh(&mut self) -> EmittedAt;
    /// What follows stands there.
    fn go(&mut self, to: EmittedAt);
    /// Control goes on there.
    fn jump(&mut self, to: EmittedAt);
    fn assign(&mut self, to: Var, value: VarExpr);
    fn any(&mut self, to: Var, lo: i64, hi: i64);
    fn assume(&mut self, condition: VarExpr);
    fn assert(&mut self, condition: VarExpr, why: &str);
    fn load(&mut self, to: Var, address: u64, bytes: u8);
    fn store(&mut self, address: u64, bytes: u8, value: VarExpr);
    fn locked(&mut self, to: Var, address: u64, bytes: u8, change: RmwChange);
    /// Nobody knows any more what these bytes are.
    fn forget(&mut self, address: u64, bytes: u64);
    fn fence(&mut self);
    /// What the instruction accesses, it may access in parts.
    fn in_parts(&mut self);
    /// The thread ends.
    fn end(&mut self);
}

/// Nobody.
pub(super) struct Silent;

impl Sink for Silent {
    fn here(&mut self) -> EmittedAt {
        0
    }
    fn fresh(&mut self) -> EmittedAt {
        0
    }
    fn go(&mut self, _: EmittedAt) {}
    fn jump(&mut self, _: EmittedAt) {}
    fn assign(&mut self, _: Var, _: VarExpr) {}
    fn any(&mut self, _: Var, _: i64, _: i64) {}
    fn assume(&mut self, _: VarExpr) {}
    fn assert(&mut self, _: VarExpr, _: &str) {}
    fn load(&mut self, _: Var, _: u64, _: u8) {}
    fn store(&mut self, _: u64, _: u8, _: VarExpr) {}
    fn locked(&mut self, _: Var, _: u64, _: u8, _: RmwChange) {}
    fn forget(&mut self, _: u64, _: u64) {}
    fn fence(&mut self) {}
    fn in_parts(&mut self) {}
    fn end(&mut self) {}
}

//! How is a function of a library written down? Operations that are added one by one.

use super::super::ops::*;

pub(super) const RAX: Var = Var::Gpr(0);
const RCX: Var = Var::Gpr(1);
const RDX: Var = Var::Gpr(2);
pub(super) const RSP: Var = Var::Gpr(4);
const RSI: Var = Var::Gpr(6);
const RDI: Var = Var::Gpr(7);

/// Operations in the making.
#[derive(Default)]
pub(super) struct Make {
    pub ops: Vec<MicroOp>,
    temps: u8,
    /// Where what `pthread_once` calls returns to.
    pub(super) once: u64,
}

impl Make {
    pub(super) fn new(once: u64) -> Make {
        Make { once, ..Make::default() }
    }

    pub(super) fn temp(&mut self) -> Var {
        self.temps += 1;
        Var::Temp(self.temps - 1)
    }

    pub(super) fn here(&self) -> OpLabel {
        self.ops.len() as OpLabel
    }

    pub(super) fn load(&mut self, addr: VarExpr, bytes: u8) -> VarExpr {
        let dst = self.temp();
        self.ops.push(MicroOp::Load { dst, addr, bytes });
        var(dst)
    }

    pub(super) fn store(&mut self, addr: VarExpr, value: VarExpr, bytes: u8) {
        self.ops.push(MicroOp::Store { addr, value, bytes });
    }

    pub(super) fn rmw(&mut self, addr: VarExpr, bytes: u8, new: New) -> VarExpr {
        let dst = self.temp();
        self.ops.push(MicroOp::Rmw { dst, addr, bytes, new });
        var(dst)
    }

    pub(super) fn cas(&mut self, addr: VarExpr, old: VarExpr, new: VarExpr) -> VarExpr {
        self.rmw(addr, 4, New::Cas { old, new })
    }

    pub(super) fn jump_if(&mut self, condition: VarExpr, to: OpLabel) {
        self.ops.push(MicroOp::If(condition, to));
    }

    /// A jump forward, to be patched.
    pub(super) fn forward_if(&mut self, condition: VarExpr) -> usize {
        self.ops.push(MicroOp::If(condition, 0));
        self.ops.len() - 1
    }

    pub(super) fn forward(&mut self) -> usize {
        self.ops.push(MicroOp::Goto(0));
        self.ops.len() - 1
    }

    pub(super) fn land(&mut self, from: usize) {
        let here = self.here();
        if let MicroOp::If(_, label) | MicroOp::Goto(label) = &mut self.ops[from] {
            *label = here;
        }
    }

    pub(super) fn fail(&mut self, why: &str) {
        self.ops.push(MicroOp::Fail(why.to_string()));
    }

    pub(super) fn set(&mut self, to: Var, value: VarExpr) {
        self.ops.push(MicroOp::Set(to, value));
    }

    pub(super) fn kept(&mut self, value: VarExpr) -> VarExpr {
        let temp = self.temp();
        self.set(temp, value);
        var(temp)
    }

    /// Returns the value. What a function may change, it has changed.
    pub(super) fn give(&mut self, value: VarExpr) {
        self.set(RAX, value);
        self.leave();
    }

    /// Returns nothing that anybody may look at.
    pub(super) fn give_nothing(&mut self) {
        self.set(RAX, nobody());
        self.leave();
    }

    pub(super) fn leave(&mut self) {
        let lost = [1, 2, 6, 7, 8, 9, 10, 11].map(Var::Gpr).into_iter();
        for lost in lost.chain((0..16).flat_map(|n| [Var::Xmm(n, 0), Var::Xmm(n, 1)])) {
            self.set(lost, nobody());
        }
        let back = self.load(var(RSP), 8);
        self.set(RSP, add(var(RSP), constant(8)));
        self.ops.push(MicroOp::Return(back));
    }

    pub(super) fn done(self, next: u64) -> Lifted {
        Lifted { ops: self.ops, flags: Flags::Lost, next }
    }
}

pub(super) fn arg(n: usize) -> VarExpr {
    var([RDI, RSI, RDX, RCX, Var::Gpr(8), Var::Gpr(9)][n])
}

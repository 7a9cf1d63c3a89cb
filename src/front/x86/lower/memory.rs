//! Instructions that read a place and write it: exchanges, and arithmetic with a destination in memory.
//!
//! With `LOCK` before it, and for an XCHG always, the two accesses are one step; where the model has no such
//! step they stand in a `lock` … `unlock` block. Without, they are a load and a store.

use super::super::mnemonics::Two;
use super::super::operands::{Mem, Operand};
use super::super::registers::{EAX, GprPart};
use super::super::value::{binary, choose, cut, unary};
use super::{Form, Lowering, Resolver};
use crate::model::{BinOp, Bytes, Expr, Instr, RegExpr, RmwOp, UnOp};

/// What becomes of a value.
pub(super) enum Modification {
    Add(RegExpr),
    Sub(RegExpr),
    Negate,
    Invert,
    Bits(BinOp, RegExpr),
}

impl<R: Resolver> Lowering<'_, R> {
    pub(super) fn xchg(&mut self, a: &Operand<R::Symbol>, b: &Operand<R::Symbol>, bits: u32) {
        let Operand::Reg(part) = b else { unreachable!("`width` has looked at the operands") };
        let theirs = self.read(b, bits);
        match a {
            Operand::Mem(mem) => {
                let addr = self.cell(mem, bits);
                let direct = self.is_whole(*part);
                let dst = if direct { self.whole(*part) } else { self.temporary(0) };
                self.step(Instr::Rmw { dst, addr, op: RmwOp::Swap(theirs) });
                if !direct {
                    self.write(b, Expr::Atom(dst), bits);
                }
            }
            _ => {
                let kept = self.temporary(0);
                let own = self.read(a, bits);
                self.assign(kept, own);
                self.write(a, theirs, bits);
                self.write(b, Expr::Atom(kept), bits);
            }
        }
    }

    pub(super) fn xadd(
        &mut self,
        to: &Operand<R::Symbol>,
        from: &Operand<R::Symbol>,
        bits: u32,
        locked: bool,
    ) {
        let amount = self.read(from, bits);
        if let Operand::Mem(mem) = to {
            let old = self.modify(mem, bits, locked, Modification::Add(amount.clone()));
            self.set_flags(Two::Add, old.clone(), amount, bits);
            return self.write(from, old, bits);
        }
        let old = self.read(to, bits);
        let kept = self.temporary(0);
        let sum = self.wrapped(binary(BinOp::Add, old.clone(), amount.clone()), bits);
        self.set_flags(Two::Add, old.clone(), amount, bits);
        self.assign(kept, sum);
        self.write(from, old, bits);
        self.write(to, Expr::Atom(kept), bits);
    }

    pub(super) fn cmpxchg(
        &mut self,
        to: &Operand<R::Symbol>,
        from: &Operand<R::Symbol>,
        bits: u32,
        locked: bool,
    ) {
        let accumulator = GprPart { gpr: EAX, bits, shift: 0 };
        let (expected, new) = (self.part(accumulator), self.read(from, bits));
        let kept = self.temporary(0);
        let old: RegExpr = Expr::Atom(kept);
        if let (Operand::Mem(mem), true) = (to, locked) {
            let addr = self.cell(mem, bits);
            self.step(Instr::Rmw { dst: kept, addr, op: RmwOp::Cas { old: expected.clone(), new } });
            self.set_flags(Two::Cmp, expected.clone(), old.clone(), bits);
            let equal = binary(BinOp::Eq, expected, old.clone());
            return self.take(accumulator, equal, old);
        }
        let there = self.read(to, bits);
        if there != old {
            self.assign(kept, there);
        }
        let equal = self.temporary(1);
        self.assign(equal, binary(BinOp::Eq, expected.clone(), old.clone()));
        self.set_flags(Two::Cmp, expected, old.clone(), bits);
        match to {
            // A register that is not what was expected keeps even the upper half that a write would clear.
            Operand::Reg(part) => {
                let (dst, value) = (self.whole(*part), self.inserted(*part, new));
                self.assign(dst, choose(Expr::Atom(equal), value, Expr::Atom(dst)));
            }
            // Memory is written in any case: with what was read, if that is not what was expected.
            _ => self.write(to, choose(Expr::Atom(equal), new, old.clone()), bits),
        }
        self.take(accumulator, Expr::Atom(equal), old);
    }

    /// The accumulator gets what was read; if that is equal, it is not written at all, not even its upper
    /// half.
    fn take(&mut self, accumulator: GprPart, equal: RegExpr, old: RegExpr) {
        let dst = self.whole(accumulator);
        let value = self.inserted(accumulator, old);
        self.assign(dst, choose(equal, Expr::Atom(dst), value));
    }

    /// Reads a place in memory and writes it; the value that was there.
    pub(super) fn modify(
        &mut self,
        mem: &Mem<R::Symbol>,
        bits: u32,
        locked: bool,
        change: Modification,
    ) -> RegExpr {
        let (addr, dst) = (self.cell(mem, bits), self.temporary(0));
        let old: RegExpr = Expr::Atom(dst);
        let adds = match &change {
            Modification::Add(amount) => Some(amount.clone()),
            Modification::Sub(amount) => Some(unary(UnOp::Neg, amount.clone())),
            _ => None,
        };
        // The model's own addition has 64 bits.
        let fits = bits == 64 || self.form == Form::Plain;
        let result = self.changed(&change, old.clone(), bits);
        match adds {
            Some(amount) if locked && fits => self.step(Instr::Rmw { dst, addr, op: RmwOp::Add(amount) }),
            _ => {
                if locked {
                    self.step(Instr::Lock);
                }
                self.step(Instr::Load { dst, addr: addr.clone(), bytes: Bytes::WHOLE });
                self.step(Instr::Store { addr, value: result, bytes: Bytes::WHOLE });
                if locked {
                    self.step(Instr::Unlock);
                }
            }
        }
        old
    }

    pub(super) fn changed(&mut self, change: &Modification, old: RegExpr, bits: u32) -> RegExpr {
        match change {
            Modification::Add(b) => self.wrapped(binary(BinOp::Add, old, b.clone()), bits),
            Modification::Sub(b) => self.wrapped(binary(BinOp::Sub, old, b.clone()), bits),
            Modification::Negate => self.wrapped(unary(UnOp::Neg, old), bits),
            Modification::Invert => cut(unary(UnOp::BitNot, old), bits, self.arch),
            Modification::Bits(op, b) => binary(*op, old, b.clone()),
        }
    }
}

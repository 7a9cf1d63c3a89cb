//! What do exchanges do? With memory they are one step, and so are compare-and-swaps with a lock.

use super::super::ops::*;
use super::super::refusal::Result;
use super::operands::RegisterPart;
use super::{Lift, RAX, RBX, RCX, RDX, gpr};
use crate::model::BinOp;

impl Lift {
    pub(super) fn xchg(&mut self) -> Result<()> {
        let bits = self.bits(0);
        if !self.is_memory(0) && !self.is_memory(1) {
            let (a, b) = (self.read(0, bits)?, self.read(1, bits)?);
            let (a, b) = (self.kept(a), self.kept(b));
            self.write(0, b)?;
            return self.write(1, a);
        }
        self.segment()?;
        let register = if self.is_memory(0) { 1 } else { 0 };
        let value = self.read(register, bits)?;
        let dst = self.temp();
        self.ops.push(MicroOp::Rmw { dst, addr: self.address(), bytes: bits / 8, new: New::Swap(value) });
        self.write(register, var(dst))
    }

    pub(super) fn xadd(&mut self) -> Result<()> {
        let bits = self.bits(0);
        let right = self.read(1, bits)?;
        let right = self.kept(right);
        let same = self.same_register();
        let old = self.update(bits, |old| cut(add(old, right.clone()), bits))?;
        if !same {
            self.write(1, old.clone())?;
        }
        self.flags_of(old, right, Flags::Add(bits));
        Ok(())
    }

    pub(super) fn cmpxchg(&mut self) -> Result<()> {
        let bits = self.bits(0);
        let expected = self.kept(cut(gpr(RAX), bits));
        let new = self.read(1, bits)?;
        let new = self.kept(new);
        let accumulator = RegisterPart { number: RAX, bits, high: false };
        if self.is_memory(0) && self.i.has_lock_prefix() {
            self.segment()?;
            let dst = self.temp();
            let cas = New::Cas { old: expected.clone(), new };
            self.ops.push(MicroOp::Rmw { dst, addr: self.address(), bytes: bits / 8, new: cas });
            self.flags_of(expected.clone(), var(dst), Flags::Sub(bits));
            self.accumulate(accumulator, expected, var(dst));
            return Ok(());
        }
        let old = self.read(0, bits)?;
        let old = self.kept(old);
        self.flags_of(expected.clone(), old.clone(), Flags::Sub(bits));
        let equal = self.skip_if(eq(expected.clone(), old.clone()));
        if self.is_memory(0) {
            // It is written in any case.
            self.write(0, old.clone())?;
        }
        self.write_part(accumulator, old);
        self.ops.push(MicroOp::Goto(0));
        let done = self.ops.len() - 1;
        self.here(equal);
        self.write(0, new)?;
        self.here(done);
        Ok(())
    }

    /// The accumulator gets what was found, unless it was what was expected.
    fn accumulate(&mut self, accumulator: RegisterPart, expected: VarExpr, found: VarExpr) {
        if accumulator.bits != 32 {
            // Then it would not change anything.
            return self.write_part(accumulator, found);
        }
        let whole = cut(gpr(accumulator.number), 64);
        let upper = and(whole, constant(!mask(32)));
        let kept = binary(BinOp::Mul, eq(expected, found.clone()), upper);
        self.ops.push(MicroOp::Set(Var::Gpr(accumulator.number), or(found, kept)));
    }

    pub(super) fn cmpxchg8b(&mut self) -> Result<()> {
        if !self.i.has_lock_prefix() {
            return Err(self.uncovered());
        }
        self.segment()?;
        let pair = |high: u8, low: u8| or(shl(cut(gpr(high), 32), constant(32)), cut(gpr(low), 32));
        let expected = self.kept(pair(RDX, RAX));
        let new = self.kept(pair(RCX, RBX));
        let dst = self.temp();
        let cas = New::Cas { old: expected.clone(), new };
        self.ops.push(MicroOp::Rmw { dst, addr: self.address(), bytes: 8, new: cas });
        let equal = self.kept(eq(expected, var(dst)));
        self.single([
            (StatusFlag::Carry, None),
            (StatusFlag::Zero, Some(equal.clone())),
            (StatusFlag::Sign, None),
            (StatusFlag::Overflow, None),
            (StatusFlag::Parity, None),
        ])?;
        let done = self.skip_if(equal);
        self.set(Var::Gpr(RAX), cut(var(dst), 32));
        self.set(Var::Gpr(RDX), shr(var(dst), constant(32), 64));
        self.here(done);
        Ok(())
    }
}

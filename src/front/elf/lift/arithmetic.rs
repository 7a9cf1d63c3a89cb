//! What do sums, products and quotients leave behind, in registers and in flags?

use super::super::ops::*;
use super::super::refusal::{Refusal, Result};
use super::operands::RegisterPart;
use super::{Lift, RAX, RDX, gpr};
use crate::model::BinOp;
use iced_x86::{Mnemonic, RflagsBits};

impl Lift {
    pub(super) fn two(&mut self) -> Result<()> {
        use Mnemonic as M;
        let (bits, which) = (self.bits(0), self.i.mnemonic());
        if self.same_register() && matches!(which, M::Xor | M::Sub) {
            self.write(0, constant(0))?;
            self.flags_of_result(constant(0), bits);
            return Ok(());
        }
        let right = self.read(1, bits)?;
        if which == M::Or && right == constant(mask(bits)) && !self.is_memory(0) {
            // All ones, whatever was there.
            self.write(0, right.clone())?;
            self.flags_of_result(right, bits);
            return Ok(());
        }
        match which {
            M::Cmp => {
                let left = self.read(0, bits)?;
                self.flags_of(left, right, Flags::Sub(bits));
            }
            M::Test => {
                let left = self.read(0, bits)?;
                let result = if self.same_register() { left } else { and(left, right) };
                self.flags_of_result(result, bits);
            }
            M::Add | M::Sub => {
                let right = self.kept(right);
                let how = if which == M::Add { Flags::Add(bits) } else { Flags::Sub(bits) };
                let op = if which == M::Add { BinOp::Add } else { BinOp::Sub };
                let old = self.update(bits, |old| cut(binary(op, old, right.clone()), bits))?;
                self.flags_of(old, right, how);
            }
            _ => {
                let right = self.kept(right);
                let op = match which {
                    M::And => BinOp::BitAnd,
                    M::Or => BinOp::BitOr,
                    _ => BinOp::BitXor,
                };
                let old = self.update(bits, |old| binary(op, old, right.clone()))?;
                self.flags_of_result(binary(op, old, right), bits);
            }
        }
        Ok(())
    }

    pub(super) fn with_carry(&mut self, adds: bool) -> Result<()> {
        let bits = self.bits(0);
        let lost = || Refusal::new("nobody knows what set the carry flag");
        let carry = flag(StatusFlag::Carry, self.flags).ok_or_else(lost)?;
        let carry = self.kept(carry);
        if !adds && self.same_register() && self.needed == 0 {
            return self.write(0, cut(sub(constant(0), carry), bits));
        }
        let right = self.read(1, bits)?;
        let right = self.kept(right);
        let op = if adds { BinOp::Add } else { BinOp::Sub };
        let new = |old| cut(binary(op, binary(op, old, right.clone()), carry.clone()), bits);
        let old = self.update(bits, new)?;
        let result = self.kept(new(old.clone()));
        let carried = if adds {
            below(result.clone(), old.clone(), bits)
        } else {
            below(old.clone(), right.clone(), bits)
        };
        let carried =
            either(carried, both(carry, eq(if adds { result.clone() } else { right.clone() }, old.clone())));
        let overflow = match adds {
            true => and(xor(old.clone(), result.clone()), xor(right, result.clone())),
            false => and(xor(old.clone(), right), xor(old, result.clone())),
        };
        self.single([
            (StatusFlag::Carry, Some(carried)),
            (StatusFlag::Zero, Some(eq(result.clone(), constant(0)))),
            (StatusFlag::Sign, Some(sign(result.clone(), bits))),
            (StatusFlag::Overflow, Some(sign(overflow, bits))),
            (StatusFlag::Parity, Some(parity(result))),
        ])
    }

    pub(super) fn one(&mut self) -> Result<()> {
        use Mnemonic as M;
        let (bits, which) = (self.bits(0), self.i.mnemonic());
        let change = |old: VarExpr| match which {
            M::Inc => cut(add(old, constant(1)), bits),
            M::Dec => cut(sub(old, constant(1)), bits),
            M::Neg => cut(sub(constant(0), old), bits),
            _ => xor(old, constant(mask(bits))),
        };
        let carry = if self.needs(RflagsBits::CF) { flag(StatusFlag::Carry, self.flags) } else { None };
        let keeps = matches!(which, M::Inc | M::Dec) && self.needs(RflagsBits::CF);
        let carry = match carry {
            Some(carry) if keeps => Some(self.kept(carry)),
            None if keeps => return Err(Refusal::new("nobody knows what set the carry flag")),
            _ => None,
        };
        let old = self.update(bits, change)?;
        match which {
            M::Not => {}
            M::Neg => self.flags_of(constant(0), old, Flags::Sub(bits)),
            _ => {
                let how = if which == M::Inc { Flags::Add(bits) } else { Flags::Sub(bits) };
                self.flags_of(old, constant(1), how);
                if let Some(carry) = carry {
                    let of = |f| flag(f, how);
                    self.single([
                        (StatusFlag::Carry, Some(carry)),
                        (StatusFlag::Zero, of(StatusFlag::Zero)),
                        (StatusFlag::Sign, of(StatusFlag::Sign)),
                        (StatusFlag::Overflow, of(StatusFlag::Overflow)),
                        (StatusFlag::Parity, of(StatusFlag::Parity)),
                    ])?;
                }
            }
        }
        Ok(())
    }

    /// The upper half of a product of two numbers of 64 bits without sign, from products of halves.
    fn high(&mut self, a: VarExpr, b: VarExpr) -> VarExpr {
        let (low, high) = (|x: VarExpr| cut(x, 32), |x: VarExpr| shr(x, constant(32), 64));
        let times = |x, y| binary(BinOp::Mul, x, y);
        let (a0, a1) = (self.kept(low(a.clone())), self.kept(high(a)));
        let (b0, b1) = (self.kept(low(b.clone())), self.kept(high(b)));
        let t = self.kept(times(a0.clone(), b0.clone()));
        let u = self.kept(add(times(a1.clone(), b0), high(t)));
        let v = self.kept(add(times(a0, b1.clone()), low(u.clone())));
        add(add(times(a1, b1), high(u)), high(v))
    }

    fn high_signed(&mut self, a: VarExpr, b: VarExpr) -> VarExpr {
        let high = self.high(a.clone(), b.clone());
        let less = |x: VarExpr, y: VarExpr| binary(BinOp::Mul, binary(BinOp::Lt, x, constant(0)), y);
        sub(sub(high, less(a.clone(), b.clone())), less(b, a))
    }

    fn carry_and_overflow(&mut self, set: VarExpr) -> Result<()> {
        let set = self.kept(set);
        // The other flags are undefined; somebody who looks at them all the same gets some value.
        let none = || Some(constant(0));
        self.single([
            (StatusFlag::Carry, Some(set.clone())),
            (StatusFlag::Zero, none()),
            (StatusFlag::Sign, none()),
            (StatusFlag::Overflow, Some(set)),
            (StatusFlag::Parity, none()),
        ])
    }

    pub(super) fn imul(&mut self) -> Result<()> {
        if self.i.op_count() == 1 {
            return self.multiply(true);
        }
        let bits = self.bits(0);
        let (first, second) = if self.i.op_count() == 3 { (1, 2) } else { (0, 1) };
        let a = self.read(first, bits)?;
        let b = self.read(second, bits)?;
        let (a, b) = (self.kept(a), self.kept(b));
        let result = cut(binary(BinOp::Mul, a.clone(), b.clone()), bits);
        if !self.needs(RflagsBits::CF | RflagsBits::OF) {
            self.flags = Flags::Lost;
            return self.write(0, result);
        }
        let result = self.kept(result);
        let set = match bits {
            64 => {
                let high = self.high_signed(a, b);
                ne(high, binary(BinOp::Shr, result.clone(), constant(63)))
            }
            _ => ne(binary(BinOp::Mul, signed(a, bits), signed(b, bits)), signed(result.clone(), bits)),
        };
        self.carry_and_overflow(set)?;
        self.write(0, result)
    }

    pub(super) fn mul(&mut self) -> Result<()> {
        self.multiply(false)
    }

    /// rdx and rax get the product of rax and the operand.
    fn multiply(&mut self, is_signed: bool) -> Result<()> {
        let bits = self.bits(0);
        let a = self.read(0, bits)?;
        let a = self.kept(a);
        let b = self.kept(cut(gpr(RAX), bits));
        let (low, high) = if bits == 64 {
            let low = self.kept(binary(BinOp::Mul, a.clone(), b.clone()));
            let high = if is_signed { self.high_signed(a, b) } else { self.high(a, b) };
            (low, self.kept(high))
        } else {
            let wide = |x: VarExpr| if is_signed { signed(x, bits) } else { x };
            let product = self.kept(binary(BinOp::Mul, wide(a), wide(b)));
            let high = cut(shr(product.clone(), constant(u64::from(bits)), 64), bits);
            (self.kept(cut(product, bits)), self.kept(high))
        };
        let spare = match is_signed {
            true => cut(binary(BinOp::Shr, signed(low.clone(), bits), constant(63)), bits),
            false => constant(0),
        };
        if self.needs(RflagsBits::CF | RflagsBits::OF) {
            self.carry_and_overflow(ne(high.clone(), spare))?;
        } else {
            self.flags = Flags::Lost;
        }
        self.write_pair(bits, low, high);
        Ok(())
    }

    /// The halves of a result to rax and rdx, or to ax alone.
    fn write_pair(&mut self, bits: u8, low: VarExpr, high: VarExpr) {
        if bits == 8 {
            let value = or(low, shl(high, constant(8)));
            self.ops.push(MicroOp::SetLow { var: Var::Gpr(RAX), bits: 16, value });
            return;
        }
        self.write_part(RegisterPart { number: RAX, bits, high: false }, low);
        self.write_part(RegisterPart { number: RDX, bits, high: false }, high);
    }

    fn dividend(&mut self, bits: u8) -> (VarExpr, VarExpr) {
        match bits {
            8 => (self.kept(shr(cut(gpr(RAX), 16), constant(8), 16)), self.kept(cut(gpr(RAX), 8))),
            _ => (self.kept(cut(gpr(RDX), bits)), self.kept(cut(gpr(RAX), bits))),
        }
    }

    pub(super) fn div(&mut self) -> Result<()> {
        let bits = self.bits(0);
        let divisor = self.read(0, bits)?;
        let d = self.kept(divisor);
        let (high, low) = self.dividend(bits);
        self.fail_if(eq(d.clone(), constant(0)), "a division by zero");
        let (quotient, remainder) = if bits == 64 {
            self.refuse_if(ne(high, constant(0)), "a division of 128 bits is not covered");
            self.unsigned_division(low, d)
        } else {
            self.fail_if(
                negated(below(high.clone(), d.clone(), bits)),
                "a quotient is too large for its register",
            );
            // In two steps of half the width, so that nothing is larger than 63 bits.
            let half = u64::from(bits / 2);
            let first = or(shl(high, constant(half)), shr(low.clone(), constant(half), bits));
            let first = self.kept(first);
            let rest = binary(BinOp::Rem, first.clone(), d.clone());
            let second = self.kept(or(shl(rest, constant(half)), cut(low, bits / 2)));
            let q = or(
                shl(binary(BinOp::Div, first, d.clone()), constant(half)),
                binary(BinOp::Div, second.clone(), d.clone()),
            );
            (self.kept(q), self.kept(binary(BinOp::Rem, second, d)))
        };
        self.flags = Flags::Lost;
        self.write_pair(bits, quotient, remainder);
        Ok(())
    }

    /// Of numbers of 64 bits, by halving the first once.
    fn unsigned_division(&mut self, n: VarExpr, d: VarExpr) -> (VarExpr, VarExpr) {
        let large = binary(BinOp::Lt, d.clone(), constant(0));
        let half = shr(n.clone(), constant(1), 64);
        // A divisor with its highest bit set goes into any number once at most.
        let small = add(
            binary(BinOp::Mul, large.clone(), constant(1)),
            binary(BinOp::Mul, negated(large.clone()), d.clone()),
        );
        let estimate = shl(binary(BinOp::Div, half, small), constant(1));
        let q = self.kept(binary(BinOp::Mul, negated(large), estimate));
        let r = self.kept(sub(n, binary(BinOp::Mul, q.clone(), d.clone())));
        let more = self.kept(negated(below(r.clone(), d.clone(), 64)));
        (self.kept(add(q, more.clone())), self.kept(sub(r, binary(BinOp::Mul, more, d))))
    }

    pub(super) fn idiv(&mut self) -> Result<()> {
        let bits = self.bits(0);
        let divisor = self.read(0, bits)?;
        let d = self.kept(signed(divisor, bits));
        let (high, low) = self.dividend(bits);
        self.fail_if(eq(d.clone(), constant(0)), "a division by zero");
        let n = if bits == 64 {
            let same = eq(high, binary(BinOp::Shr, low.clone(), constant(63)));
            self.refuse_if(negated(same), "a division of 128 bits is not covered");
            let least = both(eq(low.clone(), VarExpr::Const(i64::MIN)), eq(d.clone(), VarExpr::Const(-1)));
            self.fail_if(least, "a quotient is too large for its register");
            low
        } else {
            let places = constant(u64::from(bits));
            self.kept(signed(or(shl(high, places), low), 2 * bits))
        };
        let q = self.kept(binary(BinOp::Div, n.clone(), d.clone()));
        let r = self.kept(binary(BinOp::Rem, n, d));
        if bits < 64 {
            self.fail_if(ne(signed(q.clone(), bits), q.clone()), "a quotient is too large for its register");
        }
        self.flags = Flags::Lost;
        self.write_pair(bits, cut(q, bits), cut(r, bits));
        Ok(())
    }
}

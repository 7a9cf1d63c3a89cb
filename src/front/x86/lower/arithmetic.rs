//! Instructions that compute, in registers or in memory: sums, products, shifts and single bits.
//!
//! The old value decides the flags, so they are set before a register is written.

use super::super::flags::Flag;
use super::super::mnemonics::{Bit, One, Shift, Two};
use super::super::operands::Operand;
use super::super::value::{binary, cut, less_than_zero, sign_extended, unary, with_sign};
use super::memory::Modification;
use super::{Lowering, Resolver};
use crate::model::{BinOp, Expr, RegExpr, UnOp, Value};

impl<R: Resolver> Lowering<'_, R> {
    pub(super) fn two(
        &mut self,
        two: Two,
        to: &Operand<R::Symbol>,
        from: &Operand<R::Symbol>,
        bits: u32,
        locked: bool,
    ) {
        let b = self.read(from, bits);
        let change = match two {
            Two::Cmp | Two::Test => {
                let a = self.read(to, bits);
                return self.set_flags(two, a, b, bits);
            }
            // A register is set to 0 like this, whatever was in it.
            Two::Xor | Two::Sub if is_same_register(to, from) => {
                self.set_flags(Two::Cmp, Expr::Const(0), Expr::Const(0), bits);
                return self.write(to, Expr::Const(0), bits);
            }
            Two::Add => Modification::Add(b.clone()),
            Two::Sub => Modification::Sub(b.clone()),
            Two::And => Modification::Bits(BinOp::BitAnd, b.clone()),
            Two::Or => Modification::Bits(BinOp::BitOr, b.clone()),
            Two::Xor => Modification::Bits(BinOp::BitXor, b.clone()),
        };
        match to {
            Operand::Mem(mem) => {
                let old = self.modify(mem, bits, locked, change);
                self.set_flags(two, old, b, bits);
            }
            _ => {
                let a = self.read(to, bits);
                let result = self.changed(&change, a.clone(), bits);
                self.set_flags(two, a, b, bits);
                self.write(to, result, bits);
            }
        }
    }

    pub(super) fn one(&mut self, one: One, to: &Operand<R::Symbol>, bits: u32, locked: bool) {
        let change = match one {
            One::Inc => Modification::Add(Expr::Const(1)),
            One::Dec => Modification::Sub(Expr::Const(1)),
            One::Neg => Modification::Negate,
            One::Not => Modification::Invert,
        };
        let (old, result) = match to {
            Operand::Mem(mem) => (self.modify(mem, bits, locked, change), None),
            _ => {
                let old = self.read(to, bits);
                let result = self.changed(&change, old.clone(), bits);
                (old, Some(result))
            }
        };
        self.set_flags_of_one(one, old, bits);
        if let Some(result) = result {
            self.write(to, result, bits);
        }
    }

    /// The other flags are left open by the processor, and stay as they are.
    pub(super) fn multiply(&mut self, to: &Operand<R::Symbol>, from: &Operand<R::Symbol>, bits: u32) {
        let arch = self.arch;
        let (b, a) = (self.read(from, bits), self.read(to, bits));
        let (left, right) = (with_sign(a.clone(), bits, arch), with_sign(b.clone(), bits, arch));
        let product = binary(BinOp::Mul, left.clone(), right.clone());
        let too_large = match bits {
            64 => {
                let is = |op, e: &RegExpr, c| binary(op, e.clone(), Expr::Const(c));
                let quotient = Expr::binary(BinOp::Div, product, left.clone());
                let inexact =
                    binary(BinOp::And, is(BinOp::Ne, &left, 0), binary(BinOp::Ne, quotient, right.clone()));
                // The one product that wraps and divides back all the same.
                let least = binary(BinOp::And, is(BinOp::Eq, &left, -1), is(BinOp::Eq, &right, Value::MIN));
                binary(BinOp::Or, least, inexact)
            }
            _ => binary(BinOp::Ne, sign_extended(product.clone(), bits), product),
        };
        self.flags([(Flag::Carry, too_large.clone()), (Flag::Overflow, too_large)]);
        let result = self.wrapped(binary(BinOp::Mul, a, b), bits);
        self.write(to, result, bits);
    }

    pub(super) fn shift(&mut self, shift: Shift, to: &Operand<R::Symbol>, count: Value, bits: u32) {
        let arch = self.arch;
        let old = self.read(to, bits);
        // The processor looks at the low bits of the count alone.
        let count = count & if bits == 64 { 63 } else { 31 };
        if count == 0 {
            // Flags stay as they are. The destination is written all the same: the upper half of a register
            // is cleared, and a place in memory is stored to.
            return self.write(to, old, bits);
        }
        let by = || Expr::Const(count);
        let signed = with_sign(old.clone(), bits, arch);
        let bit = |of: &RegExpr, n: Value| {
            binary(BinOp::BitAnd, binary(BinOp::Shr, of.clone(), Expr::Const(n)), Expr::Const(1))
        };
        let exact = match shift {
            Shift::Left => cut(binary(BinOp::Shl, old.clone(), by()), bits, arch),
            Shift::Arithmetic => cut(binary(BinOp::Shr, signed.clone(), by()), bits, arch),
            Shift::Right => {
                // Zeros come in from the left: the copies of the sign are masked out.
                let mask = ((u64::MAX >> (64 - bits)) >> count) as Value;
                binary(BinOp::BitAnd, binary(BinOp::Shr, signed.clone(), by()), Expr::Const(mask))
            }
        };
        let carry = match shift {
            // Left open by the processor if all bits are gone.
            Shift::Left if count > Value::from(bits) => Expr::Const(0),
            Shift::Left => bit(&old, Value::from(bits) - count),
            Shift::Right => bit(&old, count - 1),
            Shift::Arithmetic => bit(&signed, count - 1),
        };
        let negative = less_than_zero(with_sign(exact.clone(), bits, arch));
        // Defined for shifts by one; other shifts leave it open.
        let overflow = match shift {
            Shift::Left => binary(BinOp::BitXor, negative.clone(), carry.clone()),
            Shift::Right => less_than_zero(signed),
            Shift::Arithmetic => Expr::Const(0),
        };
        let less = binary(BinOp::Ne, negative.clone(), overflow.clone());
        let zero = unary(UnOp::Not, exact.clone());
        self.flags([
            (Flag::Zero, zero),
            (Flag::Sign, negative),
            (Flag::Carry, carry),
            (Flag::Overflow, overflow),
            (Flag::Less, less),
        ]);
        let result = match shift {
            Shift::Left => self.wrapped(binary(BinOp::Shl, old, by()), bits),
            _ => exact,
        };
        self.write(to, result, bits);
    }

    pub(super) fn bit(
        &mut self,
        bit: Bit,
        to: &Operand<R::Symbol>,
        number: &Operand<R::Symbol>,
        bits: u32,
        locked: bool,
    ) {
        let number = self.read(number, bits);
        let number = binary(BinOp::BitAnd, number, Expr::Const(Value::from(bits) - 1));
        let mask = cut(binary(BinOp::Shl, Expr::Const(1), number.clone()), bits, self.arch);
        let change = match bit {
            Bit::Keep => None,
            Bit::Set => Some(Modification::Bits(BinOp::BitOr, mask)),
            Bit::Complement => Some(Modification::Bits(BinOp::BitXor, mask)),
            Bit::Reset => {
                let others = cut(unary(UnOp::BitNot, mask), bits, self.arch);
                Some(Modification::Bits(BinOp::BitAnd, others))
            }
        };
        let (old, result) = match (to, change) {
            (Operand::Mem(mem), Some(change)) => (self.modify(mem, bits, locked, change), None),
            (_, change) => {
                let old = self.read(to, bits);
                let result = change.map(|c| self.changed(&c, old.clone(), bits));
                (old, result)
            }
        };
        self.flags([(Flag::Carry, binary(BinOp::BitAnd, binary(BinOp::Shr, old, number), Expr::Const(1)))]);
        if let Some(result) = result {
            self.write(to, result, bits);
        }
    }
}

fn is_same_register<S>(a: &Operand<S>, b: &Operand<S>) -> bool {
    matches!((a, b), (Operand::Reg(a), Operand::Reg(b)) if a == b)
}

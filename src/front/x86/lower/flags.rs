//! What do instructions leave in the flags, and which value does a condition have?
//!
//! A flag that nothing in the thread looks at is not computed. The others are, in true x86 meaning.

use super::super::flags::{Condition, Flag};
use super::super::mnemonics::{One, Two};
use super::super::value::{binary, cut, less_than_zero, unary, unsigned_less, with_sign};
use super::{Lowering, Resolver};
use crate::model::{BinOp, Expr, RegExpr, UnOp, Value};

impl<R: Resolver> Lowering<'_, R> {
    /// 1 if the condition holds, else 0.
    pub(super) fn condition(&mut self, condition: Condition) -> RegExpr {
        let flags: Vec<RegExpr> = condition.flags.iter().map(|f| Expr::Atom(self.flag(*f))).collect();
        let any = flags.into_iter().reduce(|a, b| binary(BinOp::BitOr, a, b)).unwrap_or(Expr::Const(0));
        if condition.set { any } else { unary(UnOp::Not, any) }
    }

    pub(super) fn flags(&mut self, values: impl IntoIterator<Item = (Flag, RegExpr)>) {
        for (flag, value) in values {
            if self.used.contains(&flag) {
                let dst = self.flag(flag);
                self.assign(dst, value);
            }
        }
    }

    /// The flags after an instruction of two operands.
    pub(super) fn set_flags(&mut self, two: Two, a: RegExpr, b: RegExpr, bits: u32) {
        let arch = self.arch;
        let signed = |e: RegExpr| with_sign(e, bits, arch);
        let (left, right) = (signed(a.clone()), signed(b.clone()));
        let sum_overflows = |r: RegExpr| {
            let differ = |x: &RegExpr| binary(BinOp::BitXor, x.clone(), r.clone());
            less_than_zero(binary(BinOp::BitAnd, differ(&left), differ(&right)))
        };
        let (zero, result, carry, overflow, less) = match two {
            Two::Add => {
                let sum = cut(binary(BinOp::Add, a.clone(), b), bits, arch);
                let result = signed(sum.clone());
                let carry = unsigned_less(sum, a, bits, arch);
                let overflow = sum_overflows(result.clone());
                let less = match bits {
                    64 => binary(BinOp::Ne, less_than_zero(result.clone()), overflow.clone()),
                    _ => less_than_zero(binary(BinOp::Add, left, right)),
                };
                (unary(UnOp::Not, result.clone()), result, carry, overflow, less)
            }
            Two::Sub | Two::Cmp => {
                let result = signed(cut(binary(BinOp::Sub, a.clone(), b.clone()), bits, arch));
                let differ = |x: &RegExpr, y: &RegExpr| binary(BinOp::BitXor, x.clone(), y.clone());
                let overflow =
                    less_than_zero(binary(BinOp::BitAnd, differ(&left, &right), differ(&left, &result)));
                let carry = unsigned_less(a.clone(), b.clone(), bits, arch);
                (binary(BinOp::Eq, a, b), result, carry, overflow, binary(BinOp::Lt, left, right))
            }
            Two::And | Two::Test | Two::Or | Two::Xor => {
                let op = match two {
                    Two::Or => BinOp::BitOr,
                    Two::Xor => BinOp::BitXor,
                    _ => BinOp::BitAnd,
                };
                let result = if a == b && op == BinOp::BitAnd { left } else { signed(binary(op, a, b)) };
                let negative = less_than_zero(result.clone());
                (unary(UnOp::Not, result.clone()), result, Expr::Const(0), Expr::Const(0), negative)
            }
        };
        self.flags([
            (Flag::Zero, zero),
            (Flag::Sign, less_than_zero(result)),
            (Flag::Carry, carry),
            (Flag::Overflow, overflow),
            (Flag::Less, less),
        ]);
    }

    pub(super) fn set_flags_of_one(&mut self, one: One, old: RegExpr, bits: u32) {
        let arch = self.arch;
        let signed = with_sign(old.clone(), bits, arch);
        let least = Value::MIN >> (64 - bits);
        let (result, extreme) = match one {
            One::Not => return,
            One::Inc => (binary(BinOp::Add, old.clone(), Expr::Const(1)), !least),
            One::Dec => (binary(BinOp::Sub, old.clone(), Expr::Const(1)), least),
            One::Neg => (unary(UnOp::Neg, old.clone()), least),
        };
        let result = with_sign(cut(result, bits, arch), bits, arch);
        let negative = less_than_zero(result.clone());
        let overflow = binary(BinOp::Eq, signed, Expr::Const(extreme));
        let less = binary(BinOp::Ne, negative.clone(), overflow.clone());
        self.flags([
            (Flag::Zero, unary(UnOp::Not, result)),
            (Flag::Sign, negative),
            (Flag::Overflow, overflow),
            (Flag::Less, less),
        ]);
        // INC and DEC leave the carry as it is.
        if one == One::Neg {
            self.flags([(Flag::Carry, binary(BinOp::Ne, old, Expr::Const(0)))]);
        }
    }
}

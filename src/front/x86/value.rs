//! How do numbers of fewer than 64 bits look in the model, and how are they computed with?
//!
//! Numbers as wide as registers are kept with their sign, narrower ones without: they are *fitted*. So loads,
//! stores and moves of either kind copy them as they are. Expressions are folded as they are built.

use super::Arch;
use crate::front::const_fold;
use crate::model::{BinOp, Expr, RegExpr, UnOp, Value};

/// The number with these low bits that stands for them in the model.
pub(crate) fn fitted(value: Value, bits: u32, arch: Arch) -> Value {
    let unused = 64 - bits;
    match bits == arch.bits() {
        true => value << unused >> unused,
        false => ((value as u64) << unused >> unused) as Value,
    }
}

/// Can the number be written with so many bits, with or without a sign?
pub(crate) fn fits(value: Value, bits: u32) -> bool {
    let unused = 64 - bits;
    value << unused >> unused == value || ((value as u64) << unused >> unused) as Value == value
}

pub(crate) fn unary(op: UnOp, a: RegExpr) -> RegExpr {
    const_fold::unary(op, a)
}

pub(crate) fn binary(op: BinOp, a: RegExpr, b: RegExpr) -> RegExpr {
    const_fold::binary(op, a, b).expect("nothing here divides by zero")
}

/// One of two values; the condition is 0 or 1.
pub(crate) fn choose(condition: RegExpr, yes: RegExpr, no: RegExpr) -> RegExpr {
    let not = unary(UnOp::Not, condition.clone());
    binary(BinOp::Add, binary(BinOp::Mul, condition, yes), binary(BinOp::Mul, not, no))
}

pub(crate) fn less_than_zero(e: RegExpr) -> RegExpr {
    binary(BinOp::Lt, e, Expr::Const(0))
}

/// The low bits of a value, `fitted`.
pub(crate) fn cut(e: RegExpr, bits: u32, arch: Arch) -> RegExpr {
    match bits {
        64 => e,
        _ if bits == arch.bits() => sign_extended(e, bits),
        _ => binary(BinOp::BitAnd, e, Expr::Const((u64::MAX >> (64 - bits)) as Value)),
    }
}

pub(crate) fn sign_extended(e: RegExpr, bits: u32) -> RegExpr {
    let unused = || Expr::Const(Value::from(64 - bits));
    binary(BinOp::Shr, binary(BinOp::Shl, e, unused()), unused())
}

/// A `fitted` value as a signed number.
pub(crate) fn with_sign(e: RegExpr, bits: u32, arch: Arch) -> RegExpr {
    if bits == arch.bits() { e } else { sign_extended(e, bits) }
}

/// Is the one less than the other, both as numbers without sign?
pub(crate) fn unsigned_less(a: RegExpr, b: RegExpr, bits: u32, arch: Arch) -> RegExpr {
    let plain = |e: RegExpr| match bits {
        // Turning the highest bit round maps the order without sign to that with sign.
        64 => binary(BinOp::BitXor, e, Expr::Const(Value::MIN)),
        _ if bits == arch.bits() => binary(BinOp::BitAnd, e, Expr::Const((u64::MAX >> (64 - bits)) as Value)),
        _ => e,
    };
    binary(BinOp::Lt, plain(a), plain(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_as_wide_as_registers_have_a_sign() {
        assert_eq!(fitted(0xffff_ffff, 32, Arch::X86), -1);
        assert_eq!(fitted(-1, 32, Arch::X86_64), 0xffff_ffff);
        assert_eq!(fitted(-1, 64, Arch::X86_64), -1);
        assert_eq!(fitted(0x1ff, 8, Arch::X86), 0xff);
        assert!(fits(255, 8) && fits(-128, 8) && !fits(256, 8) && !fits(-129, 8) && fits(i64::MIN, 64));
    }
}

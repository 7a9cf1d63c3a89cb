//! How short can a term be, for what is known? Between which numbers it lies, and rules that are true of all numbers
//! there.

use super::super::ops::*;
use super::State;
use crate::model::{BinOp, Expr, UnOp};

impl State {
    /// Between which numbers without sign the term is.
    pub(in super::super) fn bounds(&self, term: &VarExpr) -> (u64, u64) {
        const ANY: (u64, u64) = (0, u64::MAX);
        match term {
            Expr::Const(c) => (*c as u64, *c as u64),
            Expr::Atom(var) => self.get(*var).numbers.bounds().unwrap_or(ANY),
            Expr::Unary(UnOp::Not, _) => (0, 1),
            Expr::Unary(UnOp::BitNot, a) => {
                let (lo, hi) = self.bounds(a);
                (!hi, !lo)
            }
            Expr::Unary(UnOp::Neg, _) => ANY,
            Expr::Binary(op, a, b) => {
                let ((al, ah), (bl, bh)) = (self.bounds(a), self.bounds(b));
                let positive = ah <= i64::MAX as u64;
                match op {
                    BinOp::Add => match (al.checked_add(bl), ah.checked_add(bh)) {
                        (Some(lo), Some(hi)) => (lo, hi),
                        // Both wrap: the second is a negative number.
                        (None, None) => (al.wrapping_add(bl), ah.wrapping_add(bh)),
                        _ => ANY,
                    },
                    BinOp::Sub => match (al.checked_sub(bh), ah.checked_sub(bl)) {
                        (Some(lo), Some(hi)) => (lo, hi),
                        _ => ANY,
                    },
                    BinOp::Mul => match ah.checked_mul(bh) {
                        Some(hi) => (al * bl, hi),
                        None => ANY,
                    },
                    BinOp::BitAnd => (0, ah.min(bh)),
                    BinOp::BitOr | BinOp::BitXor => (0, mask_over(ah | bh)),
                    BinOp::Shl if bl == bh => {
                        match 1u64.checked_shl(bl as u32 & 63).and_then(|f| ah.checked_mul(f)) {
                            Some(hi) => (al << (bl & 63), hi),
                            None => ANY,
                        }
                    }
                    BinOp::Shr if positive && bl == bh => (al >> (bl & 63), ah >> (bl & 63)),
                    BinOp::Shr | BinOp::Rem | BinOp::Div if positive && bh <= i64::MAX as u64 => (0, ah),
                    BinOp::Eq | BinOp::Ne if al == ah && (al, ah) == (bl, bh) => {
                        let equal = u64::from(*op == BinOp::Eq);
                        (equal, equal)
                    }
                    BinOp::Or
                    | BinOp::And
                    | BinOp::Eq
                    | BinOp::Ne
                    | BinOp::Lt
                    | BinOp::Le
                    | BinOp::Gt
                    | BinOp::Ge => (0, 1),
                    _ => ANY,
                }
            }
        }
    }

    /// The term as short as what is known allows.
    pub(in super::super) fn simplified(&self, term: &VarExpr) -> VarExpr {
        let term = match term {
            Expr::Const(_) => return term.clone(),
            Expr::Atom(var) => {
                return self.known(*var).map_or_else(|| term.clone(), constant);
            }
            Expr::Unary(UnOp::Not, a) => negated(self.simplified(a)),
            Expr::Unary(UnOp::BitNot, a) => not(self.simplified(a)),
            Expr::Unary(op, a) => Expr::unary(*op, self.simplified(a)),
            Expr::Binary(op, a, b) => binary(*op, self.simplified(a), self.simplified(b)),
        };
        self.shortened(term)
    }

    fn shortened(&self, term: VarExpr) -> VarExpr {
        let Expr::Binary(op, a, b) = &term else { return term };
        let least = Expr::Const(i64::MIN);
        match (op, &**a, &**b) {
            (BinOp::BitAnd | BinOp::Mul, _, Expr::Const(0))
            | (BinOp::BitAnd | BinOp::Mul, Expr::Const(0), _) => constant(0),
            // The mask of what is short already.
            (BinOp::BitAnd, x, Expr::Const(m)) if (*m as u64).wrapping_add(1) & *m as u64 == 0 => {
                if self.bounds(x).1 <= *m as u64 { x.clone() } else { term }
            }
            (BinOp::BitAnd, x, Expr::Const(m))
                if self.bounds(x).1 < 1 << (*m as u64).trailing_zeros().min(63) =>
            {
                constant(0)
            }
            (BinOp::Add | BinOp::BitOr | BinOp::BitXor, Expr::Const(0), x) => x.clone(),
            (BinOp::Mul, Expr::Const(1), x) => x.clone(),
            // The sign of what has none.
            (BinOp::Shr, Expr::Binary(BinOp::Shl, x, n), m) if **n == *m => match m {
                Expr::Const(places) if self.bounds(x).1 <= i64::MAX as u64 >> (*places & 63) => (**x).clone(),
                _ => term,
            },
            (BinOp::Shr, Expr::Binary(BinOp::Shr, x, n), m) => match (&**n, m) {
                (Expr::Const(n), Expr::Const(m)) if *n >= 0 && *m >= 0 && n + m < 64 => {
                    binary(BinOp::Shr, (**x).clone(), Expr::Const(n + m))
                }
                _ => term,
            },
            // Sums of constants.
            (BinOp::Add, Expr::Binary(BinOp::Add, x, n), Expr::Const(m)) => match &**n {
                Expr::Const(n) => binary(BinOp::Add, (**x).clone(), Expr::Const(n.wrapping_add(*m))),
                _ => term,
            },
            (BinOp::Add, Expr::Binary(BinOp::Sub, x, n), Expr::Const(m)) => match &**n {
                Expr::Const(n) => binary(BinOp::Add, (**x).clone(), Expr::Const(m.wrapping_sub(*n))),
                _ => term,
            },
            // Numbers that have no sign are in the order that they have with one.
            (BinOp::Lt | BinOp::Ge, Expr::Binary(BinOp::BitXor, x, m), y) if **m == least => {
                let y = match y {
                    Expr::Binary(BinOp::BitXor, y, n) if **n == least => (**y).clone(),
                    Expr::Const(c) => Expr::Const(c ^ i64::MIN),
                    _ => return term,
                };
                let short = |e: &VarExpr| self.bounds(e).1 <= i64::MAX as u64;
                if short(x) && short(&y) { Expr::binary(*op, (**x).clone(), y) } else { term }
            }
            (BinOp::Lt | BinOp::Ge, Expr::Const(c), Expr::Binary(BinOp::BitXor, y, n)) if **n == least => {
                let x = c ^ i64::MIN;
                let short = x >= 0 && self.bounds(y).1 <= i64::MAX as u64;
                if short { Expr::binary(*op, Expr::Const(x), (**y).clone()) } else { term }
            }
            // A truth that is compared with 0 or 1.
            (BinOp::Ne, x, Expr::Const(0)) if is_truth(x) => x.clone(),
            (BinOp::Eq, x, Expr::Const(0)) if is_truth(x) => negated(x.clone()),
            (BinOp::Eq, x, Expr::Const(1)) if is_truth(x) => x.clone(),
            (BinOp::And, Expr::Const(c), x) if *c != 0 && is_truth(x) => x.clone(),
            (BinOp::And, x, Expr::Const(c)) if *c != 0 && is_truth(x) => x.clone(),
            (BinOp::Or, Expr::Const(0), x) if is_truth(x) => x.clone(),
            (BinOp::Or, x, Expr::Const(0)) if is_truth(x) => x.clone(),
            (BinOp::And, Expr::Const(0), _) | (BinOp::And, _, Expr::Const(0)) => constant(0),
            (BinOp::Eq | BinOp::Ne, x, y) if disjoint(self.bounds(x), self.bounds(y)) => {
                constant(u64::from(*op == BinOp::Ne))
            }
            _ => term,
        }
    }
}

fn disjoint(a: (u64, u64), b: (u64, u64)) -> bool {
    a.1 < b.0 || b.1 < a.0
}

/// The least number of ones only that is not less.
fn mask_over(n: u64) -> u64 {
    if n == 0 { 0 } else { u64::MAX >> n.leading_zeros() }
}

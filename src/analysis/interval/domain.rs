//! What can an operation give, if its operands lie in intervals? The interval domain: join, arithmetic, and
//! what a comparison leaves of an operand once it is known to hold.
//!
//! Every result covers all values that the operands can give; one that may wrap is the full range.

use crate::model::{BinOp, Expr, UnOp, Value};

/// All values from `lo` to `hi`, both included; never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    pub lo: Value,
    pub hi: Value,
}

impl Interval {
    pub const FULL: Interval = Interval { lo: Value::MIN, hi: Value::MAX };
    pub const BOOL: Interval = Interval { lo: 0, hi: 1 };

    pub fn constant(v: Value) -> Interval {
        Interval { lo: v, hi: v }
    }

    pub fn new(lo: Value, hi: Value) -> Option<Interval> {
        (lo <= hi).then_some(Interval { lo, hi })
    }

    pub fn join(self, other: Interval) -> Interval {
        Interval { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi) }
    }

    pub(super) fn meet(self, other: Interval) -> Option<Interval> {
        Interval::new(self.lo.max(other.lo), self.hi.min(other.hi))
    }

    fn contains(self, v: Value) -> bool {
        self.lo <= v && v <= self.hi
    }

    /// How many values there are beyond the first.
    pub fn more(self) -> u64 {
        self.hi.wrapping_sub(self.lo) as u64
    }

    /// Bits that tell its values apart.
    pub fn width(self) -> u32 {
        64 - (self.hi.wrapping_sub(self.lo) as u64).leading_zeros()
    }

    /// From the corners of an operation that is monotone in each operand, if none of them overflows.
    fn corners(a: Interval, b: Interval, op: impl Fn(Value, Value) -> Option<Value>) -> Interval {
        let corners = [op(a.lo, b.lo), op(a.lo, b.hi), op(a.hi, b.lo), op(a.hi, b.hi)];
        match corners {
            [Some(p), Some(q), Some(r), Some(s)] => {
                Interval { lo: p.min(q).min(r).min(s), hi: p.max(q).max(r).max(s) }
            }
            _ => Interval::FULL,
        }
    }
}

/// The values that an expression can have if each atom has those of its interval.
pub fn range<A>(e: &Expr<A>, atom: &impl Fn(&A) -> Interval) -> Interval {
    match e {
        Expr::Const(c) => Interval::constant(*c),
        Expr::Atom(a) => atom(a),
        Expr::Unary(op, a) => unary(*op, range(a, atom)),
        Expr::Binary(op, a, b) => binary(*op, range(a, atom), range(b, atom)),
    }
}

fn unary(op: UnOp, a: Interval) -> Interval {
    match op {
        UnOp::Not => match truth(a) {
            Some(t) => Interval::constant(!t as Value),
            None => Interval::BOOL,
        },
        UnOp::Neg if a.lo != Value::MIN => Interval { lo: -a.hi, hi: -a.lo },
        UnOp::Neg => Interval::FULL,
        UnOp::BitNot => Interval { lo: !a.hi, hi: !a.lo },
    }
}

pub(super) fn truth(a: Interval) -> Option<bool> {
    if a == Interval::constant(0) {
        Some(false)
    } else if a.contains(0) {
        None
    } else {
        Some(true)
    }
}

fn decided(t: Option<bool>) -> Interval {
    t.map_or(Interval::BOOL, |t| Interval::constant(t as Value))
}

pub(super) fn binary(op: BinOp, a: Interval, b: Interval) -> Interval {
    let non_negative = a.lo >= 0 && b.lo >= 0;
    match op {
        BinOp::Add => Interval::corners(a, b, Value::checked_add),
        BinOp::Sub => Interval::corners(a, b, Value::checked_sub),
        BinOp::Mul => Interval::corners(a, b, Value::checked_mul),
        BinOp::Div if b.lo > 0 => Interval::corners(a, b, Value::checked_div),
        BinOp::Rem if b.lo > 0 && a.lo >= 0 => Interval { lo: 0, hi: a.hi.min(b.hi - 1) },
        BinOp::Shl if b.lo == b.hi && (0..63).contains(&b.lo) => {
            Interval::corners(a, Interval::constant(1 << b.lo), Value::checked_mul)
        }
        BinOp::Shr if b.lo == b.hi && (0..64).contains(&b.lo) => {
            Interval { lo: a.lo >> b.lo, hi: a.hi >> b.lo }
        }
        BinOp::BitAnd if non_negative => Interval { lo: 0, hi: a.hi.min(b.hi) },
        // A mask leaves nothing outside itself, whatever it is put on.
        BinOp::BitAnd if a.lo >= 0 => Interval { lo: 0, hi: a.hi },
        BinOp::BitAnd if b.lo >= 0 => Interval { lo: 0, hi: b.hi },
        BinOp::BitOr | BinOp::BitXor if non_negative => {
            let bits = 64 - (a.hi | b.hi).leading_zeros();
            Interval { lo: 0, hi: if bits >= 63 { Value::MAX } else { (1 << bits) - 1 } }
        }
        BinOp::Div | BinOp::Rem | BinOp::Shl | BinOp::Shr => Interval::FULL,
        BinOp::BitAnd | BinOp::BitOr | BinOp::BitXor => Interval::FULL,
        BinOp::Or => decided(match (truth(a), truth(b)) {
            (Some(true), _) | (_, Some(true)) => Some(true),
            (Some(false), Some(false)) => Some(false),
            _ => None,
        }),
        BinOp::And => decided(match (truth(a), truth(b)) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            _ => None,
        }),
        BinOp::Eq => decided(equal(a, b)),
        BinOp::Ne => decided(equal(a, b).map(|t| !t)),
        BinOp::Lt => decided(less(a, b)),
        BinOp::Ge => decided(less(a, b).map(|t| !t)),
        BinOp::Gt => decided(less(b, a)),
        BinOp::Le => decided(less(b, a).map(|t| !t)),
    }
}

fn equal(a: Interval, b: Interval) -> Option<bool> {
    if a.lo == a.hi && a == b {
        Some(true)
    } else if a.meet(b).is_none() {
        Some(false)
    } else {
        None
    }
}

fn less(a: Interval, b: Interval) -> Option<bool> {
    if a.hi < b.lo {
        Some(true)
    } else if a.lo >= b.hi {
        Some(false)
    } else {
        None
    }
}

pub(super) fn mirrored(op: BinOp) -> Option<BinOp> {
    Some(match op {
        BinOp::Eq => BinOp::Eq,
        BinOp::Ne => BinOp::Ne,
        BinOp::Lt => BinOp::Gt,
        BinOp::Le => BinOp::Ge,
        BinOp::Gt => BinOp::Lt,
        BinOp::Ge => BinOp::Le,
        _ => return None,
    })
}

/// The part of `a` for which `a op b` can be `wanted`.
pub(super) fn narrowed(op: BinOp, wanted: bool, a: Interval, b: Interval) -> Option<Interval> {
    let op = match (op, wanted) {
        (op, true) => op,
        (BinOp::Eq, false) => BinOp::Ne,
        (BinOp::Ne, false) => BinOp::Eq,
        (BinOp::Lt, false) => BinOp::Ge,
        (BinOp::Le, false) => BinOp::Gt,
        (BinOp::Gt, false) => BinOp::Le,
        (BinOp::Ge, false) => BinOp::Lt,
        _ => return Some(a),
    };
    match op {
        BinOp::Eq => a.meet(b),
        BinOp::Ne => without(a, b),
        BinOp::Lt => Interval::new(a.lo, a.hi.min(b.hi.checked_sub(1)?)),
        BinOp::Le => Interval::new(a.lo, a.hi.min(b.hi)),
        BinOp::Gt => Interval::new(a.lo.max(b.lo.checked_add(1)?), a.hi),
        BinOp::Ge => Interval::new(a.lo.max(b.lo), a.hi),
        _ => Some(a),
    }
}

/// `a` without the single value `b`, where that is at an end of it.
pub(super) fn without(a: Interval, b: Interval) -> Option<Interval> {
    match b.lo == b.hi {
        true if a.lo == b.lo => Interval::new(a.lo.checked_add(1)?, a.hi),
        true if a.hi == b.lo => Interval::new(a.lo, a.hi.checked_sub(1)?),
        _ => Some(a),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn i(lo: Value, hi: Value) -> Interval {
        Interval { lo, hi }
    }

    #[test]
    fn widths_are_those_of_the_spread() {
        assert_eq!(i(7, 7).width(), 0);
        assert_eq!(i(5, 6).width(), 1);
        assert_eq!(i(-1, 2).width(), 2);
        assert_eq!(Interval::FULL.width(), 64);
    }

    #[test]
    fn what_may_overflow_is_full() {
        assert_eq!(binary(BinOp::Add, i(0, Value::MAX), i(0, 1)), Interval::FULL);
        assert_eq!(binary(BinOp::Add, i(0, 3), i(1, 1)), i(1, 4));
    }

    /// Every operation on every pair of small intervals covers every pair of values in them.
    #[test]
    fn operations_cover_their_values() {
        use BinOp::*;
        let ends = [-3, -1, 0, 1, 2, 5];
        let intervals: Vec<Interval> =
            ends.iter().flat_map(|&a| ends.iter().filter_map(move |&b| Interval::new(a, b))).collect();
        let ops = [Or, And, BitOr, BitXor, BitAnd, Eq, Ne, Lt, Le, Gt, Ge, Shl, Shr, Add, Sub, Mul, Div, Rem];
        for (&a, &b) in intervals.iter().flat_map(|a| intervals.iter().map(move |b| (a, b))) {
            for op in ops {
                let cover = binary(op, a, b);
                for (x, y) in (a.lo..=a.hi).flat_map(|x| (b.lo..=b.hi).map(move |y| (x, y))) {
                    if let Ok(v) = op.apply(x, y) {
                        assert!(cover.contains(v), "{x} {op:?} {y} = {v} not in {cover:?}");
                    }
                    for wanted in [true, false] {
                        let holds = op.apply(x, y).map(|v| (v != 0) == wanted);
                        let kept = narrowed(op, wanted, a, b).is_some_and(|n| n.contains(x));
                        assert!(kept || holds != Ok(true), "{x} {op:?} {y} lost for {wanted}");
                    }
                }
            }
        }
    }
}

//! Can two branches of a location be open at once, and is one of them always open?
//!
//! A condition that compares something with a constant is a set of values of that something; what cannot be
//! said like that is compared as it stands, with its opposite.

use crate::analysis::interval::Interval;
use crate::model::{BinOp, Expr, Loc, RegExpr, UnOp, Value};

/// A condition: the expression is not 0, or it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Open<'a> {
    pub expr: &'a RegExpr,
    pub sense: bool,
}

impl<'a> Open<'a> {
    pub(crate) fn when(expr: &'a RegExpr) -> Open<'a> {
        Open { expr, sense: true }.plain()
    }

    /// Without negations.
    fn plain(self) -> Open<'a> {
        match self.expr {
            Expr::Unary(UnOp::Not, a) => Open { expr: a, sense: !self.sense }.plain(),
            _ => self,
        }
    }

    /// What is compared, and the values for which the condition holds, as ranges.
    fn values(&self) -> Option<(&'a RegExpr, Vec<Interval>)> {
        let (op, subject, constant) = match self.expr {
            Expr::Binary(op, a, b) if is_comparison(*op) => match (&**a, &**b) {
                (a, Expr::Const(c)) => (*op, a, *c),
                (Expr::Const(c), b) => (turned(*op), b, *c),
                _ => return None,
            },
            e => (BinOp::Ne, e, 0),
        };
        let op = if self.sense { op } else { opposite(op) };
        let below = |c: Value| c.checked_sub(1).map(|hi| Interval { lo: Value::MIN, hi });
        let above = |c: Value| c.checked_add(1).map(|lo| Interval { lo, hi: Value::MAX });
        let here = Some(Interval::constant(constant));
        let (a, b, c) = match op {
            BinOp::Eq => (None, here, None),
            BinOp::Ne => (below(constant), None, above(constant)),
            BinOp::Lt => (below(constant), None, None),
            BinOp::Le => (below(constant), here, None),
            BinOp::Gt => (None, None, above(constant)),
            _ => (None, here, above(constant)),
        };
        Some((subject, a.into_iter().chain(b).chain(c).collect()))
    }

    fn is_opposite(&self, other: &Open) -> bool {
        let (sense, swapped) = (self.sense != other.sense, |a: &RegExpr| match a {
            Expr::Binary(op, x, y) if is_comparison(*op) => {
                Some(Expr::Binary(opposite(*op), x.clone(), y.clone()))
            }
            _ => None,
        });
        sense && self.expr == other.expr || !sense && swapped(self.expr).as_ref() == Some(other.expr)
    }
}

/// Is at most one of the two open?
pub(crate) fn exclusive(a: &Open, b: &Open) -> bool {
    let disjoint = || {
        let ((x, of_a), (y, of_b)) = (a.values()?, b.values()?);
        let meet = |i: &Interval, j: &Interval| i.lo <= j.hi && j.lo <= i.hi;
        Some(x == y && !of_a.iter().any(|i| of_b.iter().any(|j| meet(i, j))))
    };
    a.is_opposite(b) || disjoint().unwrap_or(false)
}

/// Is one of these always open?
pub(crate) fn exhaustive(branches: &[(Open, Loc)]) -> bool {
    if let [(open, _)] = branches {
        return open.expr.constant().is_some_and(|c| (c != 0) == open.sense);
    }
    if let [(a, _), (b, _)] = branches
        && a.is_opposite(b)
    {
        return true;
    }
    let all: Option<Vec<_>> = branches.iter().map(|(open, _)| open.values()).collect();
    let Some(all) = all else { return false };
    let mut ranges: Vec<Interval> = all.iter().flat_map(|(_, ranges)| ranges).copied().collect();
    ranges.sort_by_key(|r| r.lo);
    let adjoining = ranges.windows(2).all(|w| w[0].hi.checked_add(1) == Some(w[1].lo));
    let ends =
        ranges.first().map(|r| r.lo) == Some(Value::MIN) && ranges.last().map(|r| r.hi) == Some(Value::MAX);
    all.windows(2).all(|w| w[0].0 == w[1].0) && adjoining && ends
}

pub(crate) fn is_comparison(op: BinOp) -> bool {
    matches!(op, BinOp::Eq | BinOp::Ne | BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge)
}

/// The comparison that holds where this one does not.
pub(crate) fn opposite(op: BinOp) -> BinOp {
    match op {
        BinOp::Eq => BinOp::Ne,
        BinOp::Ne => BinOp::Eq,
        BinOp::Lt => BinOp::Ge,
        BinOp::Ge => BinOp::Lt,
        BinOp::Le => BinOp::Gt,
        BinOp::Gt => BinOp::Le,
        other => other,
    }
}

/// The same comparison with its sides exchanged.
pub(crate) fn turned(op: BinOp) -> BinOp {
    match op {
        BinOp::Lt => BinOp::Gt,
        BinOp::Gt => BinOp::Lt,
        BinOp::Le => BinOp::Ge,
        BinOp::Ge => BinOp::Le,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Reg;

    fn compare(op: BinOp, c: Value) -> RegExpr {
        Expr::binary(op, Expr::Atom(Reg(0)), Expr::Const(c))
    }

    #[test]
    fn branches_on_one_register_are_sets_of_values() {
        let (one, two, more, less) =
            (compare(BinOp::Eq, 1), compare(BinOp::Eq, 2), compare(BinOp::Gt, 2), compare(BinOp::Le, 0));
        let open = [&one, &two, &more, &less].map(Open::when);
        assert!((0..4).all(|i| (0..i).all(|j| exclusive(&open[i], &open[j]))));
        let branches = |open: &[Open<'_>]| exhaustive(&open.iter().map(|o| (*o, Loc(0))).collect::<Vec<_>>());
        assert!(branches(&open) && !branches(&open[1..]) && !branches(&open[..3]));
        let zero = Open { expr: &Expr::Atom(Reg(0)), sense: false };
        assert!(exclusive(&zero, &open[0]) && !exclusive(&zero, &open[3]));
        assert!(!exclusive(&Open::when(&compare(BinOp::Ne, 1)), &open[1]));
    }

    #[test]
    fn opposites_are_recognised_whatever_is_compared() {
        let less = Expr::binary(BinOp::Lt, Expr::Atom(Reg(0)), Expr::Atom(Reg(1)));
        let not = Expr::unary(UnOp::Not, less.clone());
        let at_least = Expr::binary(BinOp::Ge, Expr::Atom(Reg(0)), Expr::Atom(Reg(1)));
        for (a, b) in [(&less, &not), (&less, &at_least), (&at_least, &less)] {
            let (a, b) = (Open::when(a), Open::when(b));
            assert!(exclusive(&a, &b) && exhaustive(&[(a, Loc(0)), (b, Loc(1))]));
        }
        assert!(!exclusive(&Open::when(&less), &Open::when(&less)));
    }
}

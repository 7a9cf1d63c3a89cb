//! Which of many equal expressions do we keep? Constants folded, long conjunctions balanced.
//!
//! Reading and printing both build expressions here, which is why printing what was read and reading what
//! was printed leave a program as it is.

use crate::model::{Atom, BinOp, DivisionByZero, Expr, Loc, Reg, UnOp};

/// Up to here `a || b || …` is a chain from the left, as C has it; longer ones are balanced, so that a list
/// of hundreds of alternatives stays within the depth a model may have. The value is the same.
const LONGEST_CHAIN: usize = 64;

/// What stands at the leaves of an expression.
pub(crate) trait Leaf: Sized {
    /// One leaf for `a || b`, if there is one.
    fn either(_a: &Self, _b: &Self) -> Option<Self> {
        None
    }
}

impl Leaf for Reg {}

impl Leaf for Atom {
    /// `t@a || t@b` is one question: is t at one of these?
    fn either(a: &Atom, b: &Atom) -> Option<Atom> {
        match (a, b) {
            (Atom::At(t, here), Atom::At(u, there)) if t == u => {
                Some(Atom::At(*t, places(here.iter().chain(there).copied())))
            }
            _ => None,
        }
    }
}

/// Locations in order, each once.
pub(crate) fn places(locations: impl IntoIterator<Item = Loc>) -> Vec<Loc> {
    let mut places: Vec<Loc> = locations.into_iter().collect();
    places.sort_unstable();
    places.dedup();
    places
}

pub(crate) fn unary<A>(op: UnOp, a: Expr<A>) -> Expr<A> {
    match a {
        Expr::Const(c) => Expr::Const(op.apply(c)),
        a => Expr::unary(op, a),
    }
}

pub(crate) fn binary<A: Leaf>(op: BinOp, a: Expr<A>, b: Expr<A>) -> Result<Expr<A>, DivisionByZero> {
    match (op, &a, &b) {
        (BinOp::And, Expr::Const(0), _) => Ok(Expr::Const(0)),
        (BinOp::Or, Expr::Const(c), _) if *c != 0 => Ok(Expr::Const(1)),
        (_, Expr::Const(a), Expr::Const(b)) => op.apply(*a, *b).map(Expr::Const),
        (BinOp::Or, Expr::Atom(x), Expr::Atom(y)) => Ok(match A::either(x, y) {
            Some(both) => Expr::Atom(both),
            None => Expr::binary(op, a, b),
        }),
        _ => Ok(Expr::binary(op, a, b)),
    }
}

/// `a && b && …` or `a || b || …`; `None` without operands.
pub(crate) fn join<T>(operands: Vec<T>, combine: &mut impl FnMut(T, T) -> T) -> Option<T> {
    if operands.len() <= LONGEST_CHAIN {
        return operands.into_iter().reduce(combine);
    }
    let mut level = operands;
    while level.len() > 1 {
        let mut pairs = level.into_iter();
        let mut next = Vec::with_capacity(pairs.len().div_ceil(2));
        while let Some(a) = pairs.next() {
            next.push(match pairs.next() {
                Some(b) => combine(a, b),
                None => a,
            });
        }
        level = next;
    }
    level.pop()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ThreadId;

    #[test]
    fn long_chains_are_balanced() {
        let mut or = |a, b| binary(BinOp::Or, a, b).unwrap();
        let atoms = |n| (0..n).map(|i| Expr::Atom(Reg(i))).collect::<Vec<_>>();
        assert_eq!(join(atoms(64), &mut or).unwrap().depth(), 64);
        assert_eq!(join(atoms(65), &mut or).unwrap().depth(), 8);
        assert_eq!(join(atoms(0), &mut or), None);
    }

    #[test]
    fn places_of_one_thread_are_one_atom() {
        let at = |t, l| Expr::Atom(Atom::At(ThreadId(t), vec![Loc(l)]));
        let both = binary(BinOp::Or, at(0, 5), at(0, 2)).unwrap();
        assert_eq!(both, Expr::Atom(Atom::At(ThreadId(0), vec![Loc(2), Loc(5)])));
        assert!(matches!(binary(BinOp::Or, at(0, 5), at(1, 2)), Ok(Expr::Binary(..))));
    }

    #[test]
    fn what_decides_alone_is_folded() {
        let r = || Expr::Atom(Reg(0));
        assert_eq!(binary(BinOp::And, Expr::Const(0), r()), Ok(Expr::Const(0)));
        assert_eq!(binary(BinOp::Or, Expr::Const(7), r()), Ok(Expr::Const(1)));
        assert!(matches!(binary(BinOp::And, r(), Expr::Const(0)), Ok(Expr::Binary(..))));
        assert_eq!(binary::<Reg>(BinOp::Rem, Expr::Const(1), Expr::Const(0)), Err(DivisionByZero));
    }
}

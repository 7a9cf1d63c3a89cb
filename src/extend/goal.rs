//! What does the goal mean in an extended program, and which steps can change it?
//!
//! A clause counts only while all buffers are empty. In the emulation a thread holds issued stores in
//! registers, so it stands where no clause counts; but if a clause does not look at memory, what is issued
//! may as well drain first: then a location of the emulation satisfies a clause that asks for the location it
//! stands for. All other clauses do not hold inside the emulation at all. Clauses about final states need
//! nothing: no thread ends inside.

use crate::model::property::at_also;
use crate::model::{Atom, BinOp, Edge, Expr, Loc, Pred, ThreadId, UnOp};
use crate::query::{Clause, Goal, When};

/// What the fresh locations of an emulation are to the goal.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    /// Fresh locations with the old ones where the thread would stand if what is issued were in its buffer.
    pub stand_for: Vec<(Loc, Loc)>,
    /// All fresh locations.
    pub inside: Vec<Loc>,
}

pub(crate) fn translate(goal: &Goal, t: ThreadId, places: &Places) -> Goal {
    let translated = |c: &Clause| match c.when {
        When::Always => Clause { pred: inside_too(&c.pred, t, places), ..c.clone() },
        When::Final => c.clone(),
    };
    Goal { clauses: goal.clauses.iter().map(translated).collect(), ..*goal }
}

fn inside_too(pred: &Pred, t: ThreadId, places: &Places) -> Pred {
    if looks_at_memory(pred) || !asks_only_for(pred, t) {
        return except_at(pred.clone(), t, &places.inside);
    }
    at_also(pred, t, &places.stand_for)
}

fn looks_at_memory(pred: &Pred) -> bool {
    let mut looks = false;
    pred.for_each_atom(&mut |a| looks |= matches!(a, Atom::Mem(_)));
    looks
}

/// Does it stay true if the thread is said to be at more locations than before?
fn asks_only_for(pred: &Pred, t: ThreadId) -> bool {
    match pred {
        Expr::Atom(_) | Expr::Const(_) => true,
        Expr::Binary(BinOp::And | BinOp::Or, a, b) => asks_only_for(a, t) && asks_only_for(b, t),
        other => {
            let mut places = false;
            other.for_each_atom(&mut |a| places |= matches!(a, Atom::At(u, _) if *u == t));
            !places
        }
    }
}

/// The predicate and that the thread is at none of the locations.
fn except_at(pred: Pred, t: ThreadId, locs: &[Loc]) -> Pred {
    more_kept_out(&pred, t, locs).unwrap_or_else(|| Expr::binary(BinOp::And, pred, not_at(t, locs.to_vec())))
}

/// The predicate with the conjunct of an earlier extension grown, if there was one: many extensions must not
/// make a deep tree.
fn more_kept_out(pred: &Pred, t: ThreadId, locs: &[Loc]) -> Option<Pred> {
    let Expr::Binary(BinOp::And, a, b) = pred else { return None };
    Some(match kept_out(b, t) {
        Some(before) => Expr::binary(BinOp::And, (**a).clone(), not_at(t, [before, locs].concat())),
        None => Expr::binary(BinOp::And, more_kept_out(a, t, locs)?, (**b).clone()),
    })
}

fn not_at(t: ThreadId, locs: Vec<Loc>) -> Pred {
    Expr::unary(UnOp::Not, Expr::Atom(Atom::At(t, locs)))
}

/// The locations that a conjunct `!At` keeps the thread out of.
fn kept_out(pred: &Pred, t: ThreadId) -> Option<&[Loc]> {
    match pred {
        Expr::Unary(UnOp::Not, a) => match &**a {
            Expr::Atom(Atom::At(u, locs)) if *u == t => Some(locs),
            _ => None,
        },
        _ => None,
    }
}

/// Can the predicate hold while the thread is at the location? `true` if in doubt.
fn may_hold_at(pred: &Pred, t: ThreadId, loc: Loc) -> bool {
    match pred {
        Expr::Binary(BinOp::And, a, b) => may_hold_at(a, t, loc) && may_hold_at(b, t, loc),
        _ => kept_out(pred, t).is_none_or(|locs| !locs.contains(&loc)),
    }
}

/// Can taking the edge make a clause false that held before it?
pub(crate) fn is_visible(goal: &Goal, t: ThreadId, edge: &Edge) -> bool {
    let asked = goal.clauses.iter().filter(|c| c.when == When::Always);
    asked.filter(|c| may_hold_at(&c.pred, t, edge.from)).any(|c| {
        let mut changes = false;
        c.pred.for_each_atom(&mut |atom| {
            changes |= match atom {
                Atom::At(u, locs) => *u == t && (locs.contains(&edge.from) || locs.contains(&edge.to)),
                Atom::Reg(u, r) => *u == t && edge.instr.target() == Some(*r),
                Atom::Mem(cell) => {
                    let address = edge.instr.address().and_then(|a| a.constant());
                    edge.instr.writes_memory() && address.is_none_or(|a| a == cell.0 as i64)
                }
            }
        });
        changes
    })
}

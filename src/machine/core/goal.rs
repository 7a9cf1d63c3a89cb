//! What is a state to the goal: is it one, how far is it from one, can one still follow, what does it come to
//! at the end?
//!
//! All of it is read off a state; nothing here takes a step.

use super::super::compile::{CClause, CThread, FAR, SlotAtom, steps_to};
use super::{Core, Work};
use crate::analysis::interval::{Interval, range};
use crate::model::{BinOp, Expr, Value};
use crate::query::When;
use crate::reach::Look;

/// Is a state the end of a run?
pub(crate) enum Ending {
    None,
    /// All threads are at their ends and all buffers are empty, but for those that a block freezes: what each
    /// clause of the goal is worth there.
    Final {
        values: Vec<Value>,
        frozen: bool,
    },
    /// A thread has gone wrong by itself.
    Wrong,
}

/// Farther than this is all the same.
const FARTHEST: usize = 4095;

impl Core {
    /// Is the packed state a goal, and if not, how far from one?
    #[inline]
    pub(in super::super) fn look(&self, work: &mut Work, state: &[u64]) -> Look {
        if !self.ranking && self.is_plain(state) {
            return Look::Rank(0);
        }
        self.unpack(state, work);
        match self.reaches_goal(work) {
            true => Look::Goal(0),
            false => Look::Rank(if self.ranking { self.distance(work) } else { 0 }),
        }
    }

    /// Is the state no goal, as its locations alone tell? A test that settles most cases.
    #[inline]
    fn is_plain(&self, state: &[u64]) -> bool {
        self.code.by_location
            && (0..self.threads()).all(|t| {
                let location = self.code.locations[t];
                self.code.threads[t].nodes[location.value(location.get(state)) as usize].plain
            })
    }

    /// Is it a goal?
    pub(crate) fn reaches_goal(&self, work: &Work) -> bool {
        if self.errors_count && (0..self.threads()).any(|t| self.is_trapped(work, t)) {
            return true;
        }
        if !self.is_drained(work) {
            return false;
        }
        let ended = |(t, thread): (usize, &CThread)| work.vals[t] == thread.end as Value;
        let finished = || self.code.threads.iter().enumerate().all(ended);
        let named = (0..self.threads()).any(|t| self.node(work, t).named);
        let counts = |c: &CClause| (named || !c.needs_named) && (c.when == When::Always || finished());
        self.code.clauses.iter().any(|c| counts(c) && self.holds(work, &c.pred))
    }

    /// Are all buffers empty, but for those that a block freezes?
    fn is_drained(&self, work: &Work) -> bool {
        (0..work.buffers.len()).all(|t| !work.has_pending(t) || self.is_blocked(work, t))
    }

    /// What becomes of a state for whoever gathers final ones.
    pub(crate) fn ending(&self, work: &mut Work, state: &[u64]) -> Ending {
        self.unpack(state, work);
        if (0..self.threads()).any(|t| self.is_trapped(work, t)) {
            return Ending::Wrong;
        }
        let mut at = work.vals.iter().zip(&self.code.threads);
        let ended = at.all(|(node, thread)| *node == thread.end as Value);
        if !ended || !self.is_drained(work) {
            return Ending::None;
        }
        Ending::Final {
            values: self.code.clauses.iter().map(|c| self.value(work, &c.pred)).collect(),
            frozen: (0..work.buffers.len()).any(|t| work.has_pending(t)),
        }
    }

    /// How far the state is from the nearest clause: steps in the graphs to the locations it names, and one
    /// for each comparison that does not hold.
    fn distance(&self, work: &Work) -> usize {
        let ends = || (0..self.threads()).map(|t| self.code.threads[t].to_end[work.vals[t] as usize]);
        let of = |c: &CClause| match c.when {
            When::Always => self.pred_distance(work, &c.pred),
            When::Final => ends().fold(self.pred_distance(work, &c.pred), |sum, d| sum + d as usize),
        };
        self.code.clauses.iter().map(of).min().unwrap_or(0).min(FARTHEST)
    }

    /// How often threads have to be switched at least until a goal is reached, if this one acted last.
    pub(in super::super) fn switches_left(&self, work: &Work, last: Option<usize>) -> u32 {
        if self.threads() > u64::BITS as usize {
            return 0;
        }
        let busy = |t: usize| work.has_pending(t) && !self.is_blocked(work, t);
        let waiting = self.threads_that(busy);
        let others = |moving: u64| (moving & !last.map_or(0, |t| 1 << t)).count_ones();
        // The first step of all is no switch.
        let switches = |moving: u64| others(moving | waiting).saturating_sub(u32::from(last.is_none()));
        let ended = |t: usize| work.vals[t] == self.code.threads[t].end as Value;
        let of = |c: &CClause| match c.when {
            When::Always => self.fewest(work, &c.pred, &switches),
            When::Final => switches(self.threads_that(|t| !ended(t))),
        };
        let wrong = || {
            let may_trap = (0..self.threads()).filter(|&t| self.node(work, t).may_trap);
            may_trap.map(|t| others(1 << t).saturating_sub(u32::from(last.is_none()))).min()
        };
        let errors = self.errors_count.then(wrong).flatten();
        self.code.clauses.iter().map(of).chain(errors).min().unwrap_or(0)
    }

    /// How many events there are at least until a goal is reached: of each thread as many as the clause asks of
    /// it alone, and a flush for everything that waits. A state that is no goal takes one at least.
    pub(in super::super) fn events_left(&self, work: &Work) -> u32 {
        if self.errors_count && (0..self.threads()).any(|t| self.node(work, t).may_trap) {
            return 1;
        }
        let waiting = (0..work.buffers.len()).filter(|&t| !self.is_blocked(work, t));
        let flushes: usize = waiting.map(|t| work.buffers[t].len()).sum();
        let steps = |c: &CClause, t: usize| match c.when {
            When::Always => steps_of(work, &c.pred, t),
            When::Final => self.code.threads[t].to_end[work.vals[t] as usize],
        };
        let of = |c: &CClause| (0..self.threads()).map(|t| steps(c, t) as usize).sum::<usize>() + flushes;
        self.code.clauses.iter().map(of).min().unwrap_or(0).clamp(1, FARTHEST) as u32
    }

    fn threads_that(&self, are: impl Fn(usize) -> bool) -> u64 {
        (0..self.threads()).filter(|&t| are(t)).fold(0, |set, t| set | 1 << t)
    }

    /// The least that any of the alternatives takes.
    fn fewest(&self, work: &Work, pred: &Expr<SlotAtom>, switches: &impl Fn(u64) -> u32) -> u32 {
        match pred {
            Expr::Binary(BinOp::Or, a, b) => {
                self.fewest(work, a, switches).min(self.fewest(work, b, switches))
            }
            other => switches(self.moving(work, other)),
        }
    }

    /// Threads that have to move before the predicate holds.
    fn moving(&self, work: &Work, pred: &Expr<SlotAtom>) -> u64 {
        match pred {
            Expr::Binary(BinOp::And, a, b) => self.moving(work, a) | self.moving(work, b),
            Expr::Binary(BinOp::Or, a, b) => self.moving(work, a) & self.moving(work, b),
            Expr::Atom(SlotAtom::At { thread, .. }) if !self.holds(work, pred) => 1 << thread,
            _ => 0,
        }
    }

    fn pred_distance(&self, work: &Work, pred: &Expr<SlotAtom>) -> usize {
        match pred {
            Expr::Binary(BinOp::And, a, b) => self.pred_distance(work, a) + self.pred_distance(work, b),
            Expr::Binary(BinOp::Or, a, b) => self.pred_distance(work, a).min(self.pred_distance(work, b)),
            Expr::Atom(SlotAtom::At { thread, distance, .. }) => {
                steps_to(distance, work.vals[*thread as usize]) as usize
            }
            other => !self.holds(work, other) as usize,
        }
    }

    fn holds(&self, work: &Work, pred: &Expr<SlotAtom>) -> bool {
        self.value(work, pred) != 0
    }

    fn value(&self, work: &Work, pred: &Expr<SlotAtom>) -> Value {
        let atom = |a: &SlotAtom| match a {
            SlotAtom::At { thread, nodes, .. } => {
                nodes.contains(&(work.vals[*thread as usize] as u32)) as Value
            }
            SlotAtom::Value(slot) => work.vals[*slot as usize],
        };
        pred.eval(&atom).expect("validity refuses predicates that may divide by zero")
    }

    /// Can no goal state follow any more, whatever happens?
    #[inline]
    pub(crate) fn is_hopeless(&self, work: &Work) -> bool {
        // If no thread has moved away from the goal since it was last in reach, it still is.
        let lost = work.moved.iter().any(|&t| self.node(work, t).lost);
        lost && self.reductions.prune && self.has_no_hope(work)
    }

    pub(in super::super) fn has_no_hope(&self, work: &Work) -> bool {
        let wrong = |t: usize| self.node(work, t).may_trap || self.is_trapped(work, t);
        if self.errors_count && (0..self.threads()).any(wrong) {
            return false;
        }
        let cannot_end = |t: usize| self.code.threads[t].to_end[work.vals[t] as usize] == FAR;
        let atom = |a: &SlotAtom| match a {
            SlotAtom::At { thread, distance, .. } => match steps_to(distance, work.vals[*thread as usize]) {
                FAR => Interval::constant(0),
                _ => Interval::BOOL,
            },
            SlotAtom::Value(_) => Interval::FULL,
        };
        self.code.clauses.iter().all(|c| match c.when {
            When::Final => (0..self.threads()).any(cannot_end),
            When::Always => range(&c.pred, &atom) == Interval::constant(0),
        })
    }
}

/// How many steps at least a thread takes before the predicate holds.
fn steps_of(work: &Work, pred: &Expr<SlotAtom>, t: usize) -> u16 {
    match pred {
        Expr::Binary(BinOp::And, a, b) => steps_of(work, a, t).max(steps_of(work, b, t)),
        Expr::Binary(BinOp::Or, a, b) => steps_of(work, a, t).min(steps_of(work, b, t)),
        Expr::Atom(SlotAtom::At { thread, distance, .. }) if *thread as usize == t => {
            steps_to(distance, work.vals[t])
        }
        _ => 0,
    }
}

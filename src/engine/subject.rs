//! What is left of the question once the program's text has been read? Edges that no run can take and clauses that no state
//! can satisfy, by the values that registers and cells can have at all (`model::interval`), are left out before any
//! engine begins. Often nothing is left to search.
//!
//! A run never takes an infeasible edge, under either memory model, so the program without it has the same runs;
//! analyses that look at graphs alone (futures, attacks, paths to the goal) see fewer of them. Locations and registers
//! keep their numbers. Edges do not, but each has its origin: `tell` turns an engine's decisions into those of the
//! user's program, and only there are they judged.

use super::{Internal, Pruning, internal};
use crate::model::interval::{Interval, Intervals, range};
use crate::model::{Atom, Edge, EdgeId, Origin, Program, ThreadId};
use crate::sem::replay::follow;
use crate::verdict::{Act, Action, Clause, Event, Goal, Model, When};

/// A program and a goal as engines get them.
pub struct Subject<'a> {
    /// What the user asks about.
    pub user: &'a Program,
    pub asked: &'a Goal,
    /// The goal without clauses that no state satisfies.
    pub goal: Goal,
    /// The program without edges that no run takes, if it has any.
    trimmed: Option<Program>,
    /// Neither can a clause hold nor a thread go wrong.
    pub refuted: bool,
}

impl<'a> Subject<'a> {
    pub fn of(user: &'a Program, asked: &'a Goal, pruning: Pruning) -> Subject<'a> {
        if pruning == Pruning::Off {
            return Subject { user, asked, goal: asked.clone(), trimmed: None, refuted: false };
        }
        let intervals = Intervals::of(user);
        let mut goal = asked.clone();
        goal.clauses.retain(|c| may_hold(user, &intervals, c));
        let refuted = goal.clauses.is_empty() && !may_trap(user, &intervals);
        Subject { user, asked, goal, trimmed: without_infeasible(user, &intervals), refuted }
    }

    pub fn program(&self) -> &Program {
        self.trimmed.as_ref().unwrap_or(self.user)
    }

    /// Decisions about the program as those of the user's.
    pub fn tell(&self, actions: &[Action]) -> Vec<Action> {
        actions.iter().map(|&action| self.tell_one(action)).collect()
    }

    /// A run of the program as one of the user's, event by event.
    pub fn tell_run(&self, model: Model, events: &[Event]) -> Result<Vec<Event>, Internal> {
        let actions = events.iter().map(|e| self.tell_one(e.action));
        follow(self.user, model, actions)
            .map_err(|m| internal(&format!("a run of the trimmed program does not replay: {m}")))
    }

    fn tell_one(&self, action: Action) -> Action {
        let Act::Step { edge, choice } = action.act else { return action };
        let edge = match self.program().thread(action.thread).edge(edge).origin {
            Some(Origin::Whole(origin)) if self.trimmed.is_some() => origin,
            _ => edge,
        };
        Action { act: Act::Step { edge, choice }, ..action }
    }
}

/// The program without edges that no run takes; `None` if it has none of them.
fn without_infeasible(program: &Program, intervals: &Intervals) -> Option<Program> {
    let feasible = |t: ThreadId, edge: &Edge| intervals.is_feasible(t, edge);
    let complete = program.thread_ids().all(|t| program.thread(t).edges().all(|(_, e)| feasible(t, e)));
    if complete {
        return None;
    }
    let mut parts = program.to_parts();
    for (t, thread) in program.thread_ids().zip(&mut parts.threads) {
        for (i, edge) in thread.edges.iter_mut().enumerate() {
            edge.origin = Some(Origin::Whole(EdgeId(i as u32)));
        }
        thread.edges.retain(|edge| feasible(t, edge));
    }
    Some(Program::new(parts).expect("a valid program is valid with fewer edges"))
}

/// Can a state satisfy the clause, by where threads can stand and the values that they and memory can have?
fn may_hold(program: &Program, intervals: &Intervals, clause: &Clause) -> bool {
    let end = |t: ThreadId| program.thread(t).end();
    let is_final = clause.when == When::Final;
    if is_final && !program.thread_ids().all(|t| intervals.is_reachable(t, end(t))) {
        return false;
    }
    let atom = |a: &Atom| match a {
        Atom::At(t, locs) if !locs.iter().any(|&l| intervals.is_reachable(*t, l)) => Interval::constant(0),
        Atom::At(..) => Interval::BOOL,
        Atom::Reg(t, r) if is_final => intervals.register(*t, end(*t), *r).unwrap_or(Interval::FULL),
        Atom::Reg(t, r) => intervals.register_anywhere(*t, *r),
        Atom::Mem(cell) => intervals.cell(cell.index()),
    };
    range(&clause.pred, &atom) != Interval::constant(0)
}

/// Might a thread go wrong by itself?
fn may_trap(program: &Program, intervals: &Intervals) -> bool {
    let wrong = |t: ThreadId, edge: &Edge| {
        intervals.is_feasible(t, edge)
            && (intervals.may_compute_wrongly(t, edge) || intervals.may_fail(t, edge))
    };
    program.thread_ids().any(|t| program.thread(t).edges().any(|(_, e)| wrong(t, e)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Options, check};
    use crate::front::tso;
    use crate::verdict::{Answer, Limits, Proof};

    fn program(source: &str) -> Program {
        tso::read(source, &[]).expect("a program").program
    }

    /// Is the question settled by the text, and if so, does a search say the same?
    fn is_refuted(source: &str) -> bool {
        let program = program(source);
        let goal = Goal::of(&program);
        let ask = |pruning| {
            let options = Options { pruning, workers: 1, ..Options::default() };
            check(&program, &goal, &options, &Limits::default()).expect("no internal error")
        };
        let (with, without) = (ask(Pruning::On), ask(Pruning::Off));
        assert_eq!(with.verdict(), without.verdict());
        matches!(with.answer, Answer::Safe(Proof::Infeasible))
    }

    #[test]
    fn what_values_rule_out_is_safe_at_once() {
        assert!(is_refuted("shared x; thread p; store [x], 1; assume r == 1; on: nop; end; forbid p@on"));
        assert!(is_refuted("shared x; thread p; store [x], 1; load r, [x]; end; forbid p.r == 2"));
        assert!(is_refuted("shared x; thread p; store [x], 1; assume r; end; exists [x] == 1"));
        assert!(is_refuted("shared x; thread p; load r, [x]; assert r == 0; end; forbid [x] == 1"));
        assert!(!is_refuted("shared x; thread p; store [x], 1; load r, [x]; end; forbid p.r == 1"));
    }

    #[test]
    fn errors_are_looked_for_whatever_the_clauses_say() {
        assert!(!is_refuted("shared x; thread p; load r, [x]; r = 1 / r; end; forbid [x] == 1"));
        assert!(!is_refuted("shared x; thread p; assume 1 / r && 0; end; forbid [x] == 1"));
        assert!(!is_refuted("shared x; thread p; load r, [x + 1]; end; forbid [x] == 1"));
        assert!(!is_refuted("shared x; thread p; assert r; end; forbid [x] == 1"));
        // Dead code goes wrong for nobody.
        assert!(is_refuted("shared x; thread p; assume r; r = 1 / s; assert 0; end; forbid [x] == 1"));
    }

    #[test]
    fn decisions_are_told_of_the_users_program() {
        let source = "shared x; thread p; if r goto dead; store [x], 1; halt; dead: store [x], 2; end; forbid [x] == 1";
        let (user, goal) = (program(source), Goal::default());
        let subject = Subject::of(&user, &goal, Pruning::On);
        let thread = ThreadId(0);
        let (before, after) = (user.thread(thread), subject.program().thread(thread));
        assert!(after.graph().edge_count() < before.graph().edge_count());
        for (id, edge) in after.edges() {
            let told = subject.tell(&[Action { thread, act: Act::Step { edge: id, choice: None } }]);
            let Act::Step { edge: origin, .. } = told[0].act else { panic!("a step stays one") };
            assert_eq!(before.edge(origin).instr, edge.instr);
            assert_eq!(before.edge(origin).from, edge.from);
        }
    }
}

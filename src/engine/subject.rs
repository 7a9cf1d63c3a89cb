//! What is left of the question once the program's text has been read? Edges that no run can take and clauses
//! that no state can satisfy, by the values that registers and cells can have at all (`analysis::interval`),
//! are left out before any engine begins. Often nothing is left to search.
//!
//! A run never takes an infeasible edge, under either memory model, so the program without it has the same
//! runs; analyses that look at graphs alone (futures, attacks, paths to the goal) see fewer of them.
//! Locations and registers keep their numbers. Edges do not, but each has its origin: `tell` turns an
//! engine's decisions into those of the user's program, and only there are they judged.
//!
//! Where the question is a goal, loads and stores of cells that nobody really reads (`analysis::faint`) are
//! left out too: each becomes a step that does nothing. A run of the one program is a run of the other, under
//! either memory model, but for such cells and registers that come to nothing. Under TSO, whatever waits in a
//! buffer of the user's program is either such a store, which can be flushed whenever it is the oldest, or
//! waits in the other's too: `drain` adds those flushes. Blocks would forbid them, so that programs with
//! blocks keep everything; so do programs whose buffers are bounded, for what is left out would take room
//! there.

use super::{Options, Pruning};
use crate::analysis::faint::Faint;
use crate::analysis::interval::{Interval, Intervals, range};
use crate::machine::faint;
use crate::model::{Atom, Edge, EdgeId, Instr, Origin, Program, Reg, ThreadId};
use crate::query::{Act, Action, Clause, Goal, Limit, Limits, Model, When};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};

/// A program and a goal as engines get them.
pub(crate) struct Subject<'a> {
    /// What the user asks about.
    pub user: &'a Program,
    pub asked: &'a Goal,
    /// The goal without clauses that no state satisfies.
    pub goal: Goal,
    /// The program without edges that no run takes, if it has any.
    trimmed: Option<Program>,
    /// Neither can a clause hold nor a thread go wrong.
    pub refuted: bool,
    /// What was left out because nobody really reads it, if anything was.
    faint: Option<Faint>,
}

impl<'a> Subject<'a> {
    /// With all that any thread touches.
    pub(crate) fn of(
        user: &'a Program,
        asked: &'a Goal,
        pruning: Pruning,
        limits: &Limits,
    ) -> Result<Subject<'a>, Limit> {
        let everything =
            Subject { user, asked, goal: asked.clone(), trimmed: None, refuted: false, faint: None };
        match pruning {
            Pruning::On => everything.pruned(&Intervals::of(user, limits)?, limits),
            Pruning::Off => Ok(everything),
        }
    }

    /// Only as far as the goal is concerned.
    pub(crate) fn of_goal(
        user: &'a Program,
        asked: &'a Goal,
        options: &Options,
        limits: &Limits,
    ) -> Result<Subject<'a>, Limit> {
        let intervals = Intervals::of(user, limits)?;
        let faint = match options.explicit.buffer {
            None => Some(faint(user, asked, &intervals, options.reductions, limits)?),
            Some(_) => None,
        };
        let faint = faint.filter(|faint| !faint.is_nothing());
        let trimmed = faint.as_ref().map(|faint| without_faint(user, faint));
        let subject = Subject { user, asked, goal: asked.clone(), trimmed, refuted: false, faint };
        match options.pruning {
            Pruning::On => subject.pruned(&intervals, limits),
            Pruning::Off => Ok(subject),
        }
    }

    /// Without what the values of the user's program do not let happen.
    fn pruned(self, intervals: &Intervals, limits: &Limits) -> Result<Subject<'a>, Limit> {
        let edges = self.user.threads().iter().map(|t| t.graph().edge_count());
        limits.spend(4 * edges.sum::<usize>())?;
        let clauses = possible(self.user, intervals, &self.goal, limits)?;
        let goal = Goal { clauses, ..self.goal };
        let refuted = goal.clauses.is_empty() && (goal.ignores_errors || !may_trap(self.user, intervals));
        let trimmed = without_infeasible(self.trimmed.as_ref().unwrap_or(self.user), intervals);
        Ok(Subject { goal, refuted, trimmed: trimmed.or(self.trimmed), ..self })
    }

    /// Was anything left out that threads touch and nobody really reads?
    pub(crate) fn is_quiet(&self) -> bool {
        self.faint.is_some()
    }

    pub(crate) fn program(&self) -> &Program {
        self.trimmed.as_ref().unwrap_or(self.user)
    }

    /// The program, if it is not the user's.
    pub(crate) fn into_program(self) -> Option<Program> {
        self.trimmed
    }

    /// Decisions about the program as those of the user's.
    pub(crate) fn tell(&self, model: Model, actions: &[Action]) -> Vec<Action> {
        let told = actions.iter().map(|&action| self.tell_one(action)).collect();
        if model == Model::Sc { told } else { self.drain(told) }
    }

    /// Decisions about the user's program under TSO, with the flushes of stores that were left out: each at
    /// once, or when those before it are gone.
    pub(crate) fn drain(&self, told: Vec<Action>) -> Vec<Action> {
        let Some(faint) = &self.faint else { return told };
        // Per thread, whether each store that waits was left out.
        let mut waiting = vec![VecDeque::new(); self.user.threads().len()];
        let mut run = Vec::with_capacity(told.len());
        for action in told {
            let own = &mut waiting[action.thread.index()];
            match action.act {
                Act::Flush => drop(own.pop_front()),
                Act::Step { edge, .. } => {
                    let instr = &self.user.thread(action.thread).edge(edge).instr;
                    if matches!(instr, Instr::Store { .. }) {
                        own.push_back(faint.is_faint(action.thread, edge));
                    }
                }
            }
            run.push(action);
            while own.front() == Some(&true) {
                own.pop_front();
                run.push(Action { act: Act::Flush, ..action });
            }
        }
        run
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

/// The program without touching what nobody really reads. Edges keep their numbers.
fn without_faint(program: &Program, faint: &Faint) -> Program {
    let mut parts = program.to_parts();
    for (t, thread) in program.thread_ids().zip(&mut parts.threads) {
        for (i, edge) in thread.edges.iter_mut().enumerate() {
            let id = EdgeId(i as u32);
            edge.origin = Some(Origin::Whole(id));
            if faint.is_faint(t, id) {
                edge.instr = Instr::Nop;
            }
        }
    }
    Program::new(parts).expect("a valid program is valid with steps that do nothing")
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

/// The clauses that a state may satisfy.
fn possible(
    program: &Program,
    intervals: &Intervals,
    goal: &Goal,
    limits: &Limits,
) -> Result<Vec<Clause>, Limit> {
    // Many clauses look at the same registers.
    let mut anywhere: HashMap<(ThreadId, Reg), Interval> = HashMap::new();
    let mut clauses = Vec::new();
    for clause in &goal.clauses {
        limits.spend(1 + program.threads().len())?;
        let mut registers = Vec::new();
        clause.pred.for_each_atom(&mut |atom| {
            if let Atom::Reg(t, r) = atom {
                registers.push((*t, *r));
            }
        });
        for (t, r) in registers {
            if let Entry::Vacant(unknown) = anywhere.entry((t, r)) {
                limits.spend(program.thread(t).graph().node_count())?;
                unknown.insert(intervals.register_anywhere(t, r));
            }
        }
        if may_hold(program, intervals, clause, &anywhere) {
            clauses.push(clause.clone());
        }
    }
    Ok(clauses)
}

/// Can a state satisfy the clause, by where threads can stand and the values that they and memory can have?
fn may_hold(
    program: &Program,
    intervals: &Intervals,
    clause: &Clause,
    anywhere: &HashMap<(ThreadId, Reg), Interval>,
) -> bool {
    let end = |t: ThreadId| program.thread(t).end();
    let is_final = clause.when == When::Final;
    if is_final && !program.thread_ids().all(|t| intervals.is_reachable(t, end(t))) {
        return false;
    }
    let atom = |a: &Atom| match a {
        Atom::At(t, locs) if !locs.iter().any(|&l| intervals.is_reachable(*t, l)) => Interval::constant(0),
        Atom::At(..) => Interval::BOOL,
        Atom::Reg(t, r) if is_final => intervals.register(*t, end(*t), *r).unwrap_or(Interval::FULL),
        Atom::Reg(t, r) => anywhere[&(*t, *r)],
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
    use crate::engine::{Choice, LAZY, Options, check};
    use crate::front::tso;
    use crate::query::Reductions;
    use crate::query::{Answer, EventKind, Limits, Proof};

    fn program(source: &str) -> Program {
        tso::read(source, &[], &Limits::default()).expect("a program").program
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
        assert_eq!(with.answer.verdict(), without.answer.verdict());
        matches!(with.answer, Answer::Holds(Proof::Infeasible))
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
        let subject = Subject::of(&user, &goal, Pruning::On, &Limits::default()).unwrap();
        let thread = ThreadId(0);
        let (before, after) = (user.thread(thread), subject.program().thread(thread));
        assert!(after.graph().edge_count() < before.graph().edge_count());
        for (id, edge) in after.edges() {
            let told =
                subject.tell(Model::Sc, &[Action { thread, act: Act::Step { edge: id, choice: None } }]);
            let Act::Step { edge: origin, .. } = told[0].act else { panic!("a step stays one") };
            assert_eq!(before.edge(origin).instr, edge.instr);
            assert_eq!(before.edge(origin).from, edge.from);
        }
    }

    /// Nobody reads `z`, and its stores lie around those that matter.
    const QUIET: &str = "shared x, y, z
        thread p; store [z], 1; store [x], 1; store [z], 2; load r, [y]; load s, [z]; end
        thread q; store [y], 1; store [z], 3; load r, [x]; fence; load s, [z]; end";

    #[test]
    fn stores_that_were_left_out_are_flushed_in_runs() {
        let program = program(&format!("{QUIET}\nexists p.r == 0 && q.r == 0"));
        let goal = Goal::of(&program);
        for engine in Choice::all() {
            let options = Options { engine, ..Options::with_workers(1) };
            assert!(Subject::of_goal(&program, &goal, &options, &Limits::default()).unwrap().is_quiet());
            let outcome = check(&program, &goal, &options, &Limits::default()).expect("no internal error");
            let Answer::Fails(trace) = outcome.answer else { panic!("{engine:?}: {:?}", outcome.answer) };
            let of = |kind| trace.events.iter().filter(|e| e.kind == kind).count();
            assert_eq!(of(EventKind::Store), of(EventKind::Flush), "{engine:?}");
        }
    }

    #[test]
    fn what_the_goal_looks_at_is_not_left_out() {
        for property in ["[z] == 1", "p.s == 3", "q.s == 2"] {
            let program = program(&format!("{QUIET}\nexists p.r == 0 && q.r == 0 && {property}"));
            let (goal, options) = (Goal::of(&program), Options::with_workers(1));
            assert!(
                !Subject::of_goal(&program, &goal, &options, &Limits::default()).unwrap().is_quiet(),
                "{property}"
            );
        }
    }

    #[test]
    fn a_program_may_be_robust_apart_from_what_nobody_reads() {
        let source = "shared a, b, c
            thread p; store [a], 1; load r, [b]; fence; store [c], 1; end
            thread q; store [b], 1; load r, [a]; load s, [c]; assert s < 2; end";
        let program = program(source);
        let goal = Goal::of(&program);
        let loud = Reductions { faint: false, ..Reductions::ALL };
        for (reductions, quiet) in [(Reductions::ALL, true), (loud, false)] {
            let options = Options {
                engine: Choice::Only(&LAZY),
                pruning: Pruning::Off,
                reductions,
                ..Options::with_workers(1)
            };
            let outcome = check(&program, &goal, &options, &Limits::default()).expect("no internal error");
            let Answer::Holds(Proof::Robust { delays, apart }) = outcome.answer else {
                panic!("{:?}", outcome.answer)
            };
            assert_eq!((delays == 0, apart), (quiet, quiet));
        }
    }
}

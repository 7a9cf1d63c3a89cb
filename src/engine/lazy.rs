//! Lazy TSO reachability (lazy-tso-reachability, Algorithm 1): explore under SC, ask the oracle where store
//! buffering could matter, build just that delay into the program, repeat.
//!
//! If the goal is SC-reachable in the program with its delays, its run projects to a TSO run of the user's program:
//! violated. If that program is robust, SC has shown all that TSO can do: safe. The exact extension neither
//! adds nor removes anything that TSO can reach, whatever the path, so both answers are right after any number of
//! rounds, and threads of the same shape may be extended alongside the one that the oracle named. Programs
//! without loops run out of paths to delay. With loops the rounds may go on for ever.
//! Not here: goals that can hold inside a `lock` block. There the others' buffers are frozen and count as they are,
//! which no SC run of an extended program shows; this engine says so and does not answer.

use super::{Internal, Options, confirm};
use crate::extend::{DelayedPath, Extended, extend, project};
use crate::model::interval::{Interval, range};
use crate::model::{Atom, EdgeId, Instr, Loc, Origin, Program, Thread, ThreadId};
use crate::reach::{Memory, ProgramMachine, explore};
use crate::robust::oracle;
use crate::verdict::{
    Answer, Clause, Delay, Goal, Limit, Limits, Model, Outcome, Proof, RobustAnswer, Round, Stats, When, Witness,
};
use std::sync::atomic::Ordering;
use std::time::Instant;

pub fn check(
    program: &Program,
    goal: &Goal,
    options: &Options,
    limits: &Limits,
) -> Result<Outcome, Internal> {
    let mut lazy = Lazy {
        program,
        goal,
        options,
        limits,
        current: Extended { program: program.clone(), goal: goal.clone() },
        stats: Stats { workers: options.workers, ..Stats::default() },
        delays: 0,
    };
    let answer = match sees_all(program, goal) {
        true => lazy.run()?,
        false => Answer::Unknown(Limit::FrozenBuffers),
    };
    Ok(Outcome { answer, model: Model::Tso, engine: "lazy", stats: lazy.stats, warnings: vec![] })
}

/// Can this engine answer for the goal?
pub fn sees_all(program: &Program, goal: &Goal) -> bool {
    let held: Vec<Vec<bool>> = program.threads().iter().map(inside_blocks).collect();
    goal.clauses.iter().all(|c| !may_hold_in_block(program, c, &held))
}

struct Lazy<'a> {
    program: &'a Program,
    goal: &'a Goal,
    options: &'a Options,
    limits: &'a Limits,
    current: Extended,
    stats: Stats,
    /// Paths built in so far.
    delays: usize,
}

impl Lazy<'_> {
    fn run(&mut self) -> Result<Answer, Internal> {
        loop {
            let (first, mut round) = (self.delays == 0, self.new_round());
            self.limits.round.store(self.stats.iterations + 1, Ordering::Relaxed);
            if let Some(answer) = self.reach(first, &mut round)? {
                self.end(round);
                return Ok(answer);
            }
            let witness = self.ask(&mut round)?;
            let witness = match witness {
                Ok(witness) => witness,
                Err(answer) => {
                    self.end(round);
                    return Ok(answer);
                }
            };
            if self.options.iterations.is_some_and(|most| self.stats.rounds.len() as u64 >= most) {
                self.end(round);
                return Ok(Answer::Unknown(Limit::Iterations(self.stats.rounds.len() as u64 - 1)));
            }
            let grown = self.grow(&witness, &mut round);
            self.end(round);
            if let Err(limit) = grown {
                return Ok(Answer::Unknown(limit));
            }
        }
    }

    fn new_round(&self) -> Round {
        let threads = self.current.program.threads();
        Round {
            locations: threads.iter().map(|t| t.graph().node_count()).sum(),
            edges: threads.iter().map(|t| t.graph().edge_count()).sum(),
            ..Round::default()
        }
    }

    fn end(&mut self, round: Round) {
        self.stats.iterations += 1;
        self.stats.rounds.push(round);
    }

    /// Is the goal SC-reachable in the program with its delays? `None` if not.
    fn reach(&mut self, first: bool, round: &mut Round) -> Result<Option<Answer>, Internal> {
        let start = Instant::now();
        let Extended { program, goal } = &self.current;
        let machine = ProgramMachine::new(program, goal, Memory::Sc, self.options.reductions);
        let found = explore(&machine, self.limits, self.options.order, self.options.workers);
        round.states = found.states;
        round.time = start.elapsed();
        self.stats.states += found.states;
        self.stats.transitions += found.transitions;
        self.stats.words = machine.words();
        self.stats.bytes_per_state = found.bytes as f64 / found.states.max(1) as f64;
        Ok(match (found.goal, found.limit) {
            (Some(actions), _) if first => {
                Some(Answer::Violated(confirm(self.program, self.goal, Model::Sc, &actions)?))
            }
            (Some(actions), _) => {
                let actions = project(program, &actions);
                let mut trace = confirm(self.program, self.goal, Model::Tso, &actions)?;
                trace.safe_under_sc = true;
                Some(Answer::Violated(trace))
            }
            (None, Some(limit)) => Some(Answer::Unknown(limit)),
            (None, None) if machine.too_large() => Some(Answer::Unknown(Limit::StateSize(machine.words()))),
            (None, None) => None,
        })
    }

    /// A witness that TSO adds something to the program with its delays, or the answer if there is none.
    fn ask(&mut self, round: &mut Round) -> Result<Result<Witness, Answer>, Internal> {
        let asked = oracle::ask(&self.current.program, self.options.search(), self.limits)?;
        round.attacks = asked.attacks;
        round.oracle_states = asked.stats.states;
        round.oracle_time = asked.stats.time;
        self.stats.states += asked.stats.states;
        self.stats.transitions += asked.stats.transitions;
        Ok(match asked.answer {
            RobustAnswer::Robust => Err(Answer::Safe(Proof::Robust { delays: self.delays })),
            RobustAnswer::Unknown(limit) => Err(Answer::Unknown(limit)),
            RobustAnswer::NotRobust(witness) => Ok(witness),
        })
    }

    /// Builds the witness's delay into its thread, and into those that have the same path.
    fn grow(&mut self, witness: &Witness, round: &mut Round) -> Result<(), Limit> {
        let edges: Vec<EdgeId> = witness.path().iter().map(|&k| witness.events[k].edge).collect();
        for thread in alike(&self.current.program, witness.thread(), &edges) {
            round.delays.push(self.delay(thread, &edges));
            let path = DelayedPath { thread, edges: edges.clone() };
            let Extended { program, goal } = &self.current;
            let grown = extend(program, goal, &path, self.options.form);
            self.current = grown.map_err(|e| Limit::ProgramSize(e.to_string()))?;
            self.delays += 1;
        }
        Ok(())
    }

    fn delay(&self, thread: ThreadId, edges: &[EdgeId]) -> Delay {
        let origin = |edge: EdgeId| match self.current.program.thread(thread).edge(edge).origin {
            None => edge,
            Some(Origin::Whole(e) | Origin::Issue(e) | Origin::Flush(e)) => e,
            Some(Origin::Nothing) => unreachable!("stores and loads come from the user's program"),
        };
        Delay { thread, store: origin(edges[0]), load: origin(edges[edges.len() - 1]), length: edges.len() }
    }
}

/// The thread, and all others that have the same instructions between the same locations along the path.
fn alike(program: &Program, thread: ThreadId, path: &[EdgeId]) -> Vec<ThreadId> {
    let edge = |t: ThreadId, e: EdgeId| {
        let thread = program.thread(t);
        (e.index() < thread.graph().edge_count()).then(|| thread.edge(e))
    };
    let same = |u: ThreadId, e: EdgeId| match (edge(thread, e), edge(u, e)) {
        (Some(a), Some(b)) => a.from == b.from && a.to == b.to && kind(&a.instr) == kind(&b.instr),
        _ => false,
    };
    let others = program.thread_ids().filter(|&u| u != thread);
    std::iter::once(thread).chain(others.filter(|&u| path.iter().all(|&e| same(u, e)))).collect()
}

fn kind(instr: &Instr) -> std::mem::Discriminant<Instr> {
    std::mem::discriminant(instr)
}

/// Per location of a thread whether it may hold the lock there.
fn inside_blocks(thread: &Thread) -> Vec<bool> {
    let mut inside = vec![false; thread.graph().node_count()];
    let mut todo: Vec<Loc> =
        thread.edges().filter(|(_, e)| matches!(e.instr, Instr::Lock)).map(|(_, e)| e.to).collect();
    while let Some(loc) = todo.pop() {
        if !std::mem::replace(&mut inside[loc.index()], true) {
            let edges = thread.edges_from(loc).into_iter();
            todo.extend(edges.filter(|(_, e)| !matches!(e.instr, Instr::Unlock)).map(|(_, e)| e.to));
        }
    }
    inside
}

/// Can the clause hold while a thread is inside a block, so that it matters what is in the others' buffers? What is
/// asked of one thread alone does not depend on them: their waiting stores might as well not have been issued.
fn may_hold_in_block(program: &Program, clause: &Clause, held: &[Vec<bool>]) -> bool {
    let mut threads = Vec::new();
    let mut memory = false;
    clause.pred.for_each_atom(&mut |atom| match atom {
        Atom::At(t, _) | Atom::Reg(t, _) => threads.push(*t),
        Atom::Mem(_) => memory = true,
    });
    threads.dedup();
    if clause.when == When::Always && !memory && threads.len() <= 1 {
        return false;
    }
    let holder = |u: ThreadId| {
        let inside = &held[u.index()];
        let atom = |a: &Atom| match a {
            Atom::At(t, locs) if *t == u && !locs.iter().any(|l| inside[l.index()]) => Interval::constant(0),
            Atom::At(..) => Interval::BOOL,
            Atom::Reg(..) | Atom::Mem(_) => Interval::FULL,
        };
        let possible = match clause.when {
            When::Always => inside.contains(&true),
            When::Final => inside[program.thread(u).end().index()],
        };
        possible && range(&clause.pred, &atom) != Interval::constant(0)
    };
    program.thread_ids().any(holder)
}

//! Lazy TSO reachability ([LazyTSO], Algorithm 1): explore under SC, ask the oracle where store
//! buffering could matter, build just that delay into the program, repeat.
//!
//! If the goal is SC-reachable in the program with its delays, its run projects to a TSO run of the user's program:
//! violated. If that program is robust, SC has shown all that TSO can do: safe. The exact extension neither
//! adds nor removes anything that TSO can reach, whatever the path, so both answers are right after any number of
//! rounds, and threads of the same shape may be extended alongside the one that the oracle named. Programs
//! without loops run out of paths to delay. With loops the rounds may go on for ever.
//! Not here: goals that can hold inside a `lock` block. There the others' buffers are frozen and count as they are,
//! which no SC run of an extended program shows; this engine says so and does not answer.

use super::{Internal, Options, Subject, confirm, settled};
use crate::analysis::interval::{Interval, range};
use crate::certify::{self, Checked, Outcome};
use crate::extend::{DelayedPath, Extended, Form, Refused, extend, project};
use crate::machine::{MemoryModel, ProgramMachine};
use crate::model::{Atom, EdgeId, Instr, Origin, Program, Thread, ThreadId};
use crate::query::{Answer, Clause, Delay, Goal, Limit, Limits, Model, Proof, Round, Stats, When, Witness};
use crate::reach::visited::MAX_WORDS;
use crate::reach::{Found, Goals, Order, Search, explore};
use crate::robust::attack::Attacks;
use crate::robust::known::KnownPaths;
use crate::robust::oracle::{self, OracleOptions};
use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// States of the search for a short run.
pub const BRIEF: u64 = 20_000;
/// States that the oracle may store to find more than one witness.
const PATIENCE: u64 = 2_000;

/// The loop, which may be left between rounds and gone on with.
pub struct Lazy<'a> {
    subject: &'a Subject<'a>,
    options: &'a Options,
    limits: &'a Limits,
    current: Extended,
    stats: Stats,
    /// Paths built in so far.
    delays: usize,
    /// The paths that are built in and still there beside their emulation.
    known: KnownPaths,
    patience: Patience,
}

/// How many states each search may store before the engine pauses, if that is not to last for ever.
#[derive(Clone, Copy, Default)]
pub struct Patience {
    /// The SC check of the user's program.
    pub first: Option<u64>,
    /// The hunt for a run of a program with delays.
    pub hunt: Option<u64>,
    /// The oracle.
    pub oracle: Option<u64>,
}

/// What a round came to.
pub enum Progress {
    Answered(Checked),
    /// There are more delays now.
    Grown,
    /// Patience has come to an end; the next round does the same again.
    Paused,
}

pub fn check(subject: &Subject, options: &Options, limits: &Limits) -> Result<Outcome, Internal> {
    let mut lazy = Lazy::new(subject, options, limits);
    let answer = match sees_all(subject.program(), &subject.goal) {
        true => loop {
            if let Progress::Answered(answer) = lazy.round()? {
                break answer;
            }
        },
        false => Answer::Unknown(Limit::FrozenBuffers),
    };
    Ok(lazy.outcome(answer))
}

/// The program with the delays of so many rounds built in, or of all that there are.
pub fn extended(
    subject: &Subject,
    options: &Options,
    limits: &Limits,
    rounds: u64,
) -> Result<Result<Program, Limit>, Internal> {
    let mut lazy = Lazy::new(subject, options, limits);
    for _ in 0..rounds {
        let mut round = Round::default();
        match lazy.ask(&mut round)? {
            Ok(delay) => {
                if let Err(limit) = lazy.grow(&delay, &mut round) {
                    return Ok(Err(limit));
                }
            }
            Err(Answer::Unknown(limit)) => return Ok(Err(limit)),
            Err(_) => break,
        }
    }
    Ok(Ok(lazy.current.program))
}

/// Can this engine answer for the goal?
pub fn sees_all(program: &Program, goal: &Goal) -> bool {
    if !program.has_locks() {
        return true;
    }
    let held: Vec<Vec<bool>> = program.threads().iter().map(Thread::inside_blocks).collect();
    goal.clauses.iter().all(|c| !may_hold_in_block(program, c, &held))
}

impl<'a> Lazy<'a> {
    pub fn new(subject: &'a Subject, options: &'a Options, limits: &'a Limits) -> Self {
        Lazy {
            subject,
            options,
            limits,
            current: Extended { program: subject.program().clone(), goal: subject.goal.clone() },
            stats: Stats { workers: options.workers, ..Stats::default() },
            delays: 0,
            known: KnownPaths::default(),
            patience: Patience::default(),
        }
    }

    /// From now on.
    pub fn be_patient(&mut self, patience: Patience) {
        self.patience = patience;
    }

    /// Has the SC check of the first round ended without a violation, so that delays were built in?
    pub fn has_delays(&self) -> bool {
        self.delays > 0
    }

    /// States stored so far.
    pub fn states(&self) -> u64 {
        self.stats.states
    }

    pub fn outcome(self, answer: Checked) -> Outcome {
        let (model, engine, safe_under_sc) = (Model::Tso, "lazy", self.has_delays());
        Outcome { answer, model, engine, safe_under_sc, stats: self.stats, warnings: vec![] }
    }

    pub fn rounds(&self) -> u64 {
        self.stats.iterations
    }

    /// Another engine has the answer; what the rounds cost is told along with it.
    pub fn hand_over(self, mut outcome: Outcome) -> Outcome {
        outcome.safe_under_sc = self.has_delays();
        outcome.stats.states += self.stats.states;
        outcome.stats.transitions += self.stats.transitions;
        outcome.stats.iterations = self.stats.iterations;
        outcome.stats.rounds = self.stats.rounds;
        outcome
    }

    /// One more round.
    pub fn round(&mut self) -> Result<Progress, Internal> {
        let mut round = self.new_round();
        self.limits.round.store(self.stats.iterations + 1, Ordering::Relaxed);
        let answer = self.take_round(&mut round)?;
        self.stats.iterations += 1;
        self.stats.rounds.push(round);
        Ok(match answer {
            Some(Answer::Unknown(limit)) if self.is_own(&limit) => Progress::Paused,
            Some(answer) => Progress::Answered(answer),
            None => Progress::Grown,
        })
    }

    /// Is it a limit that the user did not set?
    fn is_own(&self, limit: &Limit) -> bool {
        let Patience { first, hunt, oracle } = self.patience;
        let brief = hunt.map(|_| BRIEF);
        let own =
            |n: &u64| [first, hunt, oracle, brief].contains(&Some(*n)) && self.limits.states != Some(*n);
        matches!(limit, Limit::States(n) if own(n))
    }

    /// An SC check, a question to the oracle, and the delays it asks for; the answer, if there is one.
    fn take_round(&mut self, round: &mut Round) -> Result<Option<Checked>, Internal> {
        if let Some(answer) = self.reach(round)? {
            return Ok(Some(answer));
        }
        let delay = match self.ask(round)? {
            Ok(delay) => delay,
            Err(answer) => return Ok(Some(answer)),
        };
        if let Some(most) = self.options.iterations.filter(|&most| self.stats.iterations + 1 >= most) {
            return Ok(Some(Answer::Unknown(Limit::Iterations(most))));
        }
        Ok(self.grow(&delay, round).err().map(Answer::Unknown))
    }

    fn new_round(&self) -> Round {
        let threads = self.current.program.threads();
        Round {
            locations: threads.iter().map(|t| t.graph().node_count()).sum(),
            edges: threads.iter().map(|t| t.graph().edge_count()).sum(),
            ..Round::default()
        }
    }

    /// Is the goal SC-reachable in the program with its delays? `None` if not.
    fn reach(&mut self, round: &mut Round) -> Result<Option<Checked>, Internal> {
        let start = Instant::now();
        let first = self.delays == 0;
        let searched = self.search(first, round);
        round.time = start.elapsed();
        let (found, words) = match searched {
            Ok(found) => found,
            Err(limit) => return Ok(Some(Answer::Unknown(limit))),
        };
        Ok(match (found.goals.first(), found.limit) {
            (Some((_, actions)), _) if first => {
                let actions = self.subject.tell(Model::Sc, actions);
                Some(confirm(self.subject, Model::Sc, &actions, self.limits)?)
            }
            (Some((_, actions)), _) => {
                let actions = self.subject.drain(project(&self.current.program, actions));
                Some(confirm(self.subject, Model::Tso, &actions, self.limits)?)
            }
            (None, Some(limit)) => Some(Answer::Unknown(limit)),
            (None, None) if words > MAX_WORDS => Some(Answer::Unknown(Limit::StateSize(words))),
            (None, None) => None,
        })
    }

    /// The SC check. Once there are delays, a goal is likely: a brief search for a short run, and then one that
    /// heads for the goal.
    fn search(&mut self, first: bool, round: &mut Round) -> Result<(Found, usize), Limit> {
        let Extended { program, goal } = &self.current;
        let Options { order, workers, reductions, .. } = *self.options;
        let machine = ProgramMachine::new(program, goal, MemoryModel::Sc, reductions, self.limits)?;
        let words = machine.words();
        self.stats.interchangeable = machine.interchangeable();
        let full = Search::new(order, workers);
        let mut found = match first {
            true => explore(&machine, self.limits, Search { most: self.patience.first, ..full }),
            false => explore(&machine, self.limits, Search { most: Some(BRIEF), ..full }),
        };
        self.count(&found, words, round);
        let hunt = self.patience.hunt.is_none_or(|most| most > BRIEF);
        if found.goals.is_empty() && found.limit == Some(Limit::States(BRIEF)) && hunt {
            let hunt = Search { most: self.patience.hunt, ..Search::new(Order::Hunt, workers) };
            found = explore(&machine.ranking(), self.limits, hunt);
            self.count(&found, words, round);
        }
        Ok((found, words))
    }

    fn count(&mut self, found: &Found, words: usize, round: &mut Round) {
        round.states += found.states;
        self.stats.states += found.states;
        self.stats.transitions += found.transitions;
        self.stats.words = words;
        self.stats.bytes_per_state = found.bytes as f64 / found.states.max(1) as f64;
    }

    /// A delay by which TSO adds something to the program with its delays, or the answer if there is none.
    fn ask(&mut self, round: &mut Round) -> Result<Result<WantedDelay, Checked>, Internal> {
        let goals = Goals::Several { patience: PATIENCE };
        let (known, most) = (self.known.clone(), self.patience.oracle);
        let options = OracleOptions { known, most, ..self.options.oracle(goals) };
        let program = &self.current.program;
        let reply = oracle::ask(program, &options, self.limits);
        round.attacks = reply.attacks.count;
        round.oracle_states = reply.stats.states;
        round.oracle_time = reply.stats.time;
        self.stats.states += reply.stats.states;
        self.stats.transitions += reply.stats.transitions;
        let best = reply.suspects.iter().rev().max_by_key(|s| worth(&s.path(program)));
        Ok(match (best, reply.limit) {
            (Some(suspect), _) => match settled(certify::witness(program, &suspect.actions, self.limits))? {
                Ok(witness) => Ok(WantedDelay { path: path(&witness), attacks: reply.attacks }),
                Err(limit) => Err(Answer::Unknown(limit)),
            },
            (None, Some(limit)) => Err(Answer::Unknown(limit)),
            (None, None) if !self.known.is_empty() => Err(Answer::Unknown(Limit::Additive)),
            (None, None) => {
                Err(Answer::Holds(Proof::Robust { delays: self.delays, apart: self.subject.is_quiet() }))
            }
        })
    }

    /// Builds the delay into its thread, and into those that have the same path and could use it for an attack.
    fn grow(&mut self, wanted: &WantedDelay, round: &mut Round) -> Result<(), Limit> {
        let WantedDelay { path: DelayedPath { thread, edges }, attacks } = wanted;
        let (store, load) = (edges[0], edges[edges.len() - 1]);
        let mut alike = alike(&self.current.program, *thread, edges);
        alike.retain(|&t| attacks.contain(t, store, load));
        for thread in alike {
            let path = DelayedPath { thread, edges: edges.clone() };
            round.delays.push(self.delay(&path));
            if self.options.form == Form::Additive {
                self.known.add(&self.current.program, thread, &path.edges);
            }
            let Extended { program, goal } = &self.current;
            let grown = extend(program, goal, &path, self.options.form, self.limits);
            self.current = grown.map_err(|refused| match refused {
                Refused::Limit(limit) => limit,
                other => Limit::ProgramSize(other.to_string()),
            })?;
            self.delays += 1;
        }
        Ok(())
    }

    fn delay(&self, path: &DelayedPath) -> Delay {
        let thread = self.current.program.thread(path.thread);
        let origin = |edge: EdgeId| match thread.edge(edge).origin {
            None => edge,
            Some(Origin::Whole(e) | Origin::Issue(e) | Origin::Flush(e)) => e,
            Some(Origin::Nothing) => unreachable!("stores and loads come from the user's program"),
        };
        let (store, load) = (path.edges[0], path.edges[path.edges.len() - 1]);
        Delay { thread: path.thread, store: origin(store), load: origin(load), length: path.edges.len() }
    }
}

/// A delay to be built in, and the attacks that it is one of.
struct WantedDelay {
    path: DelayedPath,
    attacks: Attacks,
}

/// Which of several paths is best built in? The longest covers most of what is to come, unless it goes round a loop: then
/// its length says how often the search happened to go round, every time is built in, and a path without a loop is
/// worth more. If all have loops, it is the shortest.
fn worth(path: &[EdgeId]) -> (bool, isize) {
    let different: HashSet<&EdgeId> = path.iter().collect();
    let (simple, length) = (different.len() == path.len(), path.len() as isize);
    (simple, if simple { length } else { -length })
}

/// What the witness's thread does from its store to its load.
fn path(witness: &Witness) -> DelayedPath {
    let edges = witness.path().iter().map(|&k| witness.events[k].edge).collect();
    DelayedPath { thread: witness.thread(), edges }
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

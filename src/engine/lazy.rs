//! Lazy TSO reachability ([LazyTSO], Algorithm 1): explore under SC, ask the oracle where store
//! buffering could matter, build just that delay into the program, repeat.
//!
//! If the goal is SC-reachable in the program with its delays, its run projects to a TSO run of the user's
//! program: violated. If that program is robust, SC has shown all that TSO can do: safe. The exact extension
//! neither adds nor removes anything that TSO can reach, whatever the path, so both answers are right after
//! any number of rounds, and threads of the same shape may be extended alongside the one that the oracle
//! named. Programs without loops run out of paths to delay. With loops the rounds may go on for ever. Not
//! here: goals that can hold inside a `lock` block. There the others' buffers are frozen and count as they
//! are, which no SC run of an extended program shows; this engine says so and does not answer.

use super::{
    Allowance, Engine, EngineEntry, Internal, Options, Subject, Turn, confirm, mixed_sizes, settled,
    unknown_membarrier,
};
use crate::certify::{self, Checked};
use crate::extend::{DelayedPath, Extended, Form, Refused, extend, project};
use crate::machine::{MemoryModel, ProgramMachine, may_hold_in_block};
use crate::model::{EdgeId, Instr, Origin, Program, ThreadId};
use crate::query::{Answer, Delay, Limit, Limits, Model, Proof, Round, Stats, Witness};
use crate::reach::visited::MAX_WORDS;
use crate::reach::{Budget, Found, Goals, Order, Search, Spent, explore_within};
use crate::robust::attack::Attacks;
use crate::robust::known::KnownPaths;
use crate::robust::oracle::{self, OracleOptions, Suspect};
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// States of the search for a short run.
const BRIEF: u64 = 20_000;
/// States that the oracle may store to find more than one witness.
const PATIENCE: u64 = 2_000;

pub(crate) const ENTRY: EngineEntry = EngineEntry {
    name: "lazy",
    about: "Explore under SC, and build in store buffering where it could matter",
    refuses,
    blind_spot: |subject| {
        let inside = may_hold_in_block(subject.program(), &subject.goal);
        let unknown = unknown_membarrier(subject.program()).or(mixed_sizes(subject.program()));
        unknown.or(inside.then_some(Limit::FrozenBuffers))
    },
    start: |subject, options, limits| Box::new(Lazy::new(subject, options, limits)),
};

fn refuses(options: &Options) -> Option<&'static str> {
    match (options.model, options.explicit.buffer) {
        (_, Some(_)) => {
            Some("--buffer bounds store buffers, and the lazy engine has none: use --engine explicit")
        }
        (Model::Sc, None) => Some("the lazy engine answers for TSO; under SC there is nothing to delay"),
        (Model::Tso, None) => None,
    }
}

/// What belongs to this engine alone.
#[derive(Clone, Copy, Debug)]
pub struct LazyOptions {
    /// How delays are built in.
    pub form: Form,
    /// Most rounds.
    pub iterations: Option<u64>,
}

impl Default for LazyOptions {
    fn default() -> Self {
        LazyOptions { form: Form::Exact, iterations: None }
    }
}

/// The loop; a turn is a round of it.
struct Lazy<'a> {
    subject: &'a Subject<'a>,
    options: &'a Options,
    limits: &'a Limits,
    workers: usize,
    stats: Stats,
    grown: Grown,
    /// What the last round left aside: the program before it, and the delays that were not built in, the best
    /// first.
    passed_over: Option<(Grown, Vec<WantedDelay>)>,
    /// The sets of delays that this run and its rivals have built in: none takes the way of another.
    tried: Arc<Mutex<HashSet<BTreeSet<UsersPath>>>>,
}

/// The program with its delays.
#[derive(Clone)]
struct Grown {
    current: Extended,
    /// Paths built in so far.
    delays: usize,
    /// The paths that are built in and still there beside their emulation.
    known: KnownPaths,
    /// All of them.
    built_in: BTreeSet<UsersPath>,
}

/// A thread's path, by what its edges are in the user's program.
type UsersPath = (ThreadId, Vec<Origin>);

/// What ends a round before there are more delays.
enum Stop {
    Answered(Checked),
    Spent,
    Bug(Internal),
}

impl From<Limit> for Stop {
    fn from(limit: Limit) -> Stop {
        Stop::Answered(Answer::Unknown(limit))
    }
}

impl From<Internal> for Stop {
    fn from(bug: Internal) -> Stop {
        Stop::Bug(bug)
    }
}

impl<'a> Engine<'a> for Lazy<'a> {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn turn(&mut self, allowance: Allowance) -> Result<Turn, Internal> {
        let mut round = self.new_round();
        self.limits.round.store(self.stats.iterations + 1, Ordering::Relaxed);
        let turn = match self.take_round(allowance, &mut round) {
            Ok(()) => Turn::Progress,
            Err(Stop::Answered(answer)) => Turn::Answered(answer),
            Err(Stop::Spent) => Turn::Spent,
            Err(Stop::Bug(bug)) => return Err(bug),
        };
        self.stats.iterations += 1;
        self.stats.rounds.push(round);
        Ok(turn)
    }

    fn stats(&self) -> &Stats {
        &self.stats
    }

    fn set_workers(&mut self, workers: usize) {
        self.workers = workers;
    }

    /// For each delay that the last round passed over, one that builds in that instead.
    fn rivals(&self, limits: &'a [Limits]) -> Result<Vec<Box<dyn Engine<'a> + 'a>>, Internal> {
        let Some((before, delays)) = &self.passed_over else { return Ok(vec![]) };
        let mut rivals: Vec<Box<dyn Engine<'a> + 'a>> = Vec::new();
        for (delay, limits) in delays.iter().zip(limits) {
            let mut rival = Lazy {
                limits,
                stats: self.stats.clone(),
                grown: before.clone(),
                passed_over: None,
                tried: self.tried.clone(),
                ..*self
            };
            let mut round = Round::default();
            if rival.grow(delay, &mut round).is_ok() {
                rival.stats.rounds.last_mut().expect("a round passed them over").delays = round.delays;
                rivals.push(Box::new(rival));
            }
        }
        Ok(rivals)
    }

    /// Delays are built in once the SC check of the user's program has ended without a violation.
    fn safe_under_sc(&self) -> bool {
        self.grown.delays > 0
    }
}

/// The program with the delays of so many rounds built in, or of all that there are.
pub(crate) fn extended(
    subject: &Subject,
    options: &Options,
    limits: &Limits,
    rounds: u64,
) -> Result<Result<Program, Limit>, Internal> {
    let mut lazy = Lazy::new(subject, options, limits);
    for _ in 0..rounds {
        let mut round = Round::default();
        let asked = lazy.ask(Budget::UNLIMITED, &mut round);
        match asked.and_then(|delays| Ok(lazy.grow(&delays[0], &mut round)?)) {
            Ok(()) => {}
            Err(Stop::Answered(Answer::Unknown(limit))) => return Ok(Err(limit)),
            Err(Stop::Bug(bug)) => return Err(bug),
            Err(Stop::Answered(_) | Stop::Spent) => break,
        }
    }
    Ok(Ok(lazy.grown.current.program))
}

impl<'a> Lazy<'a> {
    fn new(subject: &'a Subject, options: &'a Options, limits: &'a Limits) -> Self {
        Lazy {
            subject,
            options,
            limits,
            workers: options.workers,
            stats: Stats { workers: options.workers, ..Stats::default() },
            grown: Grown {
                current: Extended { program: subject.program().clone(), goal: subject.goal.clone() },
                delays: 0,
                known: KnownPaths::default(),
                built_in: BTreeSet::new(),
            },
            passed_over: None,
            tried: Arc::default(),
        }
    }

    /// An SC check, a question to the oracle, and the delays it asks for.
    fn take_round(&mut self, allowance: Allowance, round: &mut Round) -> Result<(), Stop> {
        self.reach(allowance, round)?;
        let mut delays = self.ask(allowance.ask, round)?;
        if let Some(most) = self.options.lazy.iterations.filter(|&most| self.stats.iterations + 1 >= most) {
            return Err(Limit::Iterations(most).into());
        }
        let delay = delays.remove(self.untried(&delays));
        self.passed_over = (self.workers > 1 && !delays.is_empty()).then(|| (self.grown.clone(), delays));
        Ok(self.grow(&delay, round)?)
    }

    /// The best of the delays with which this run does not come to where a rival has been; the best, if there
    /// is none.
    fn untried(&self, delays: &[WantedDelay]) -> usize {
        let tried = self.tried.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = |delay: &WantedDelay| {
            let mut all = self.grown.built_in.clone();
            !all.insert(self.in_users_terms(&delay.path)) || !tried.contains(&all)
        };
        delays.iter().position(is_new).unwrap_or(0)
    }

    fn in_users_terms(&self, path: &DelayedPath) -> UsersPath {
        let thread = self.grown.current.program.thread(path.thread);
        let origin = |&edge: &EdgeId| thread.edge(edge).origin.unwrap_or(Origin::Whole(edge));
        (path.thread, path.edges.iter().map(origin).collect())
    }

    fn new_round(&self) -> Round {
        let threads = self.grown.current.program.threads();
        Round {
            locations: threads.iter().map(|t| t.graph().node_count()).sum(),
            edges: threads.iter().map(|t| t.graph().edge_count()).sum(),
            ..Round::default()
        }
    }

    /// Is the goal out of reach under SC in the program with its delays?
    fn reach(&mut self, allowance: Allowance, round: &mut Round) -> Result<(), Stop> {
        let start = Instant::now();
        let first = self.grown.delays == 0;
        let searched = self.search(allowance, round);
        round.time = start.elapsed();
        let (found, words) = searched?;
        let confirmed = match (found.goals.first(), found.limit) {
            (Some((_, actions)), _) if first => {
                confirm(self.subject, Model::Sc, &self.subject.tell(Model::Sc, actions), self.limits)?
            }
            (Some((_, actions)), _) => {
                let actions = self.subject.drain(project(&self.grown.current.program, actions));
                confirm(self.subject, Model::Tso, &actions, self.limits)?
            }
            (None, Some(limit)) => Answer::Unknown(limit),
            (None, None) if words > MAX_WORDS => Answer::Unknown(Limit::StateSize(words)),
            (None, None) => return Ok(()),
        };
        Err(Stop::Answered(confirmed))
    }

    /// The SC check. Once there are delays, a goal is likely: a brief search for a short run, and then one
    /// that heads for the goal.
    fn search(&mut self, allowance: Allowance, round: &mut Round) -> Result<(Found, usize), Stop> {
        let Extended { program, goal } = &self.grown.current;
        let Options { order, reductions, .. } = *self.options;
        let workers = self.workers;
        let machine = ProgramMachine::new(program, goal, MemoryModel::Sc, reductions, self.limits)?;
        let words = machine.words();
        self.stats.interchangeable = machine.interchangeable();
        let peers = self.options.peers.as_ref();
        let full = Search::new(order, workers).among(peers);
        let first = if self.grown.delays == 0 { allowance.exhaust } else { Budget::states(BRIEF) };
        let mut found = explore_within(&machine, self.limits, full, first);
        self.count(&found, words, round);
        if self.grown.delays > 0 && found.is_err() && allowance.hunt.exceeds(BRIEF) {
            let hunt = Search::new(Order::Hunt, workers).among(peers);
            found = explore_within(&machine.ranking(), self.limits, hunt, allowance.hunt);
            self.count(&found, words, round);
        }
        found.map(|found| (found, words)).map_err(|Spent(_)| Stop::Spent)
    }

    fn count(&mut self, found: &Result<Found, Spent<Found>>, words: usize, round: &mut Round) {
        let (Ok(found) | Err(Spent(found))) = found;
        round.states += found.states;
        self.stats.states += found.states;
        self.stats.transitions += found.transitions;
        self.stats.words = words;
        self.stats.bytes_per_state = found.bytes as f64 / found.states.max(1) as f64;
    }

    /// Delays by which TSO adds something to the program with its delays, the best first; if there is none,
    /// that is an answer.
    fn ask(&mut self, budget: Budget, round: &mut Round) -> Result<Vec<WantedDelay>, Stop> {
        let goals = Goals::Several { patience: PATIENCE };
        let workers = self.workers;
        let options =
            OracleOptions { known: self.grown.known.clone(), workers, ..self.options.oracle(goals) };
        let program = &self.grown.current.program;
        let asked = oracle::ask_within(program, &options, budget, self.limits);
        let reply = match &asked {
            Ok(reply) => reply,
            Err(Spent(reply)) => &**reply,
        };
        round.attacks = reply.attacks.count;
        round.oracle_states = reply.stats.states;
        round.oracle_time = reply.stats.time;
        self.stats.states += reply.stats.states;
        self.stats.transitions += reply.stats.transitions;
        let reply = asked.map_err(|Spent(_)| Stop::Spent)?;
        let mut suspects: Vec<&Suspect> = reply.suspects.iter().collect();
        suspects.sort_by_cached_key(|s| Reverse(worth(&s.path(program))));
        // Those that are passed over are for rivals, and judged where there may be some.
        let wanted = if workers > 1 { suspects.len() } else { 1 };
        match (suspects.first(), reply.limit) {
            (Some(_), _) => {
                let attacks = Arc::new(reply.attacks);
                let judged = suspects.iter().take(wanted).map(|suspect| {
                    let witness = settled(certify::witness(program, &suspect.actions, self.limits))??;
                    Ok(WantedDelay { path: path(&witness), attacks: attacks.clone() })
                });
                judged.collect()
            }
            (None, Some(limit)) => Err(limit.into()),
            (None, None) if !self.grown.known.is_empty() => Err(Limit::Additive.into()),
            (None, None) => {
                let proof = Proof::Robust { delays: self.grown.delays, apart: self.subject.is_quiet() };
                Err(Stop::Answered(Answer::Holds(proof)))
            }
        }
    }

    /// Builds the delay into its thread, and into those that have the same path and could use it for an
    /// attack.
    fn grow(&mut self, wanted: &WantedDelay, round: &mut Round) -> Result<(), Limit> {
        let WantedDelay { path: DelayedPath { thread, edges }, attacks } = wanted;
        let (store, load) = (edges[0], edges[edges.len() - 1]);
        let mut threads = with_same_path(&self.grown.current.program, *thread, edges);
        threads.retain(|&t| attacks.contain(t, store, load));
        for thread in threads {
            let path = DelayedPath { thread, edges: edges.clone() };
            round.delays.push(self.delay(&path));
            self.grown.built_in.insert(self.in_users_terms(&path));
            if self.options.lazy.form == Form::Additive {
                self.grown.known.add(&self.grown.current.program, thread, &path.edges);
            }
            let Extended { program, goal } = &self.grown.current;
            let grown = extend(program, goal, &path, self.options.lazy.form, self.limits);
            self.grown.current = grown.map_err(|refused| match refused {
                Refused::Limit(limit) => limit,
                other => Limit::ProgramSize(other.to_string()),
            })?;
            self.grown.delays += 1;
        }
        let mut tried = self.tried.lock().unwrap_or_else(PoisonError::into_inner);
        tried.insert(self.grown.built_in.clone());
        Ok(())
    }

    fn delay(&self, path: &DelayedPath) -> Delay {
        let thread = self.grown.current.program.thread(path.thread);
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
    attacks: Arc<Attacks>,
}

/// Which of several paths is best built in? The longest covers most of what is to come, unless it goes round
/// a loop: then its length says how often the search happened to go round, every time is built in, and a path
/// without a loop is worth more. If all have loops, it is the shortest.
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
fn with_same_path(program: &Program, thread: ThreadId, path: &[EdgeId]) -> Vec<ThreadId> {
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

//! Is there a witness? One search for all attacks, and the computation it finds.
//!
//! All attacks share a search, and so the SC states of its phase 1. Attacks that have begun come before new SC
//! states, and what began earlier comes before what began later, so that the first witness has few steps before its
//! store and few after it. What is found is a sequence of decisions, a *suspect*. To be judged they are followed on the plain
//! TSO machine, events that do not happen after the load are moved before it, and `hb` checks conditions W1 to W5 on the
//! result: a witness that does not pass is a bug of ours and never an answer.

use super::attack::{Attacks, Pruning};
use super::hb::{Attack, HappensBefore, check_witness, normalised};
use super::known::KnownPaths;
use super::machine::AttackMachine;
use crate::model::{EdgeId, Program, ThreadId};
use crate::query::Reductions;
use crate::query::{Act, Action, Event, Kind, Limit, Limits, Model, Stats, Witness};
use crate::reach::{Goals, Order, Search, explore};
use crate::semantics::replay::{Stopped, follow};
use std::collections::HashMap;
use std::time::Instant;
use thiserror::Error;

/// A bug of ours.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the witness {0}")]
pub struct Refuted(String);

/// How to look for witnesses.
#[derive(Clone, Debug)]
pub struct Question {
    pub pruning: Pruning,
    /// Paths that have been handed out before and are not wanted again.
    pub known: KnownPaths,
    pub reductions: Reductions,
    pub workers: usize,
    pub goals: Goals,
    /// Gives up after so many states, whatever the limits say.
    pub most: Option<u64>,
}

/// What the search came to. Without suspects and without a limit, the program is robust.
#[derive(Debug)]
pub struct Reply {
    /// Of different attacks, the first found first.
    pub suspects: Vec<Suspect>,
    pub limit: Option<Limit>,
    pub attacks: Attacks,
    pub stats: Stats,
}

/// Decisions that the search takes for a witness, up to the event that happens after the load and touches the cell of
/// the delayed store.
#[derive(Clone, Debug)]
pub struct Suspect {
    actions: Vec<Action>,
}

/// Does the program have witnesses?
pub fn ask(program: &Program, question: &Question, limits: &Limits) -> Reply {
    let start = Instant::now();
    let stats = Stats { workers: question.workers, ..Stats::default() };
    let mut reply = Reply { suspects: vec![], limit: None, attacks: Attacks::default(), stats };
    if let Err(limit) = reply.search(program, question, limits) {
        reply.limit = Some(limit);
    }
    reply.stats.time = start.elapsed();
    reply
}

impl Reply {
    /// What there is to say if a limit was reached before anything was asked.
    pub fn unasked(workers: usize, limit: Limit) -> Reply {
        let stats = Stats { workers, ..Stats::default() };
        Reply { suspects: vec![], limit: Some(limit), attacks: Attacks::default(), stats }
    }

    fn search(&mut self, program: &Program, question: &Question, limits: &Limits) -> Result<(), Limit> {
        self.attacks = Attacks::of(program, question.pruning, limits)?;
        if self.attacks.stores.is_empty() {
            return Ok(());
        }
        let Question { goals, most, workers, reductions, .. } = *question;
        let machine = AttackMachine::new(program, &self.attacks, &question.known, reductions, limits)?;
        let search = Search { goals, most, ..Search::new(Order::BestFirst, workers) };
        let found = explore(&machine, limits, search);
        self.stats.states = found.states;
        self.stats.transitions = found.transitions;
        self.stats.bytes_per_state = found.bytes as f64 / found.states.max(1) as f64;
        self.stats.words = machine.words();
        let too_large = || machine.too_large().then(|| Limit::StateSize(machine.words()));
        self.limit = found.limit.or_else(too_large);
        self.suspects = found.goals.into_iter().map(|(_, actions)| Suspect { actions }).collect();
        Ok(())
    }
}

/// Why a suspect is no witness.
enum Doubt {
    Refuted(Refuted),
    Limit(Limit),
}

impl From<Limit> for Doubt {
    fn from(limit: Limit) -> Doubt {
        Doubt::Limit(limit)
    }
}

impl From<Stopped> for Doubt {
    fn from(stopped: Stopped) -> Doubt {
        match stopped {
            Stopped::Mismatch(m) => refuted(&format!("does not replay: {m}")),
            Stopped::Limit(limit) => Doubt::Limit(limit),
        }
    }
}

fn refuted(why: &str) -> Doubt {
    Doubt::Refuted(Refuted(why.to_string()))
}

impl Suspect {
    /// The edges of the delaying thread from its store to its load.
    pub fn path(&self, program: &Program) -> Vec<EdgeId> {
        let kind = |a: &Action| match a.act {
            Act::Step { edge, .. } => Kind::of(&program.thread(a.thread).edge(edge).instr),
            Act::Flush => Kind::Flush,
        };
        let flushed = |k: usize| self.actions.get(k + 1).is_some_and(|next| next.act == Act::Flush);
        let delayed = |k: &usize| kind(&self.actions[*k]) == Kind::Store && !flushed(*k);
        let Some(store) = (0..self.actions.len()).find(delayed) else { return vec![] };
        let own = self.actions[store..].iter().filter(|a| a.thread == self.actions[store].thread);
        let own: Vec<&Action> = own.collect();
        let load = own.iter().rposition(|a| kind(a) == Kind::Load);
        let edge = |a: &&Action| match a.act {
            Act::Step { edge, .. } => Some(edge),
            Act::Flush => None,
        };
        own[..load.map_or(0, |load| load + 1)].iter().filter_map(edge).collect()
    }

    /// The computation of the decisions, once the attacker has flushed, as a checked witness.
    pub fn judged(&self, program: &Program, limits: &Limits) -> Result<Result<Witness, Limit>, Refuted> {
        match self.witness(program, limits) {
            Ok(witness) => Ok(Ok(witness)),
            Err(Doubt::Limit(limit)) => Ok(Err(limit)),
            Err(Doubt::Refuted(refuted)) => Err(refuted),
        }
    }

    fn witness(&self, program: &Program, limits: &Limits) -> Result<Witness, Doubt> {
        let mut actions = self.actions.clone();
        let walk = |actions: &[Action]| follow(program, Model::Tso, actions.iter().copied(), limits);
        let (attacker, pending) = delaying(&walk(&actions)?).ok_or_else(|| refuted("delays nothing"))?;
        actions.extend(std::iter::repeat_n(Action { thread: attacker, act: Act::Flush }, pending));
        let events = walk(&actions)?;
        let attack = attack(&events, attacker).ok_or_else(|| refuted("has no load that overtakes"))?;
        let (actions, attack) = normalised(&events, &attack);
        let events = walk(&actions)?;
        check_witness(&events, &attack).map_err(|broken| refuted(&broken.to_string()))?;
        let cycle = HappensBefore::of(&events).cycle(limits)?.ok_or_else(|| refuted("has no cycle"))?;
        Ok(Witness { events, store: attack.store, load: attack.load, cycle })
    }
}

/// The thread that still has stores in its buffer, and how many.
fn delaying(events: &[Event]) -> Option<(ThreadId, usize)> {
    let mut pending: HashMap<ThreadId, usize> = HashMap::new();
    for event in events.iter().filter(|e| e.trap.is_none()) {
        match event.kind {
            Kind::Store => *pending.entry(event.thread()).or_default() += 1,
            Kind::Flush => *pending.entry(event.thread()).or_default() -= 1,
            _ => {}
        }
    }
    let waiting = |t: ThreadId| pending.get(&t).copied().filter(|&stores| stores > 0);
    events.iter().map(|e| e.thread()).find_map(|t| Some((t, waiting(t)?)))
}

/// The attacker's first store that is not flushed at once, and its last load.
fn attack(events: &[Event], attacker: ThreadId) -> Option<Attack> {
    let own = |k: &usize| events[*k].thread() == attacker;
    let at_once = |k: usize| events.get(k + 1).is_some_and(|e| e.store == Some(k));
    let mut stores = (0..events.len()).filter(own).filter(|&k| events[k].kind == Kind::Store);
    let store = stores.find(|&k| !at_once(k) && events[k].trap.is_none())?;
    let load = (0..events.len()).filter(own).rfind(|&k| events[k].kind == Kind::Load)?;
    Some(Attack { store, load })
}

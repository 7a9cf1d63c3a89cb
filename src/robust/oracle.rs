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
use crate::reach::{Goals, Order, Reductions, Search, explore};
use crate::sem::replay::follow;
use crate::verdict::{Act, Action, Event, Kind, Limit, Limits, Model, Stats, Witness};
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
    let attacks = Attacks::of(program, question.pruning);
    let stats = Stats { workers: question.workers, ..Stats::default() };
    let mut reply = Reply { suspects: vec![], limit: None, attacks, stats };
    if !reply.attacks.stores.is_empty() {
        let machine = AttackMachine::new(program, &reply.attacks, &question.known, question.reductions);
        let Question { goals, most, workers, .. } = *question;
        let search = Search { goals, most, ..Search::new(Order::BestFirst, workers) };
        let found = explore(&machine, limits, search);
        reply.stats.states = found.states;
        reply.stats.transitions = found.transitions;
        reply.stats.bytes_per_state = found.bytes as f64 / found.states.max(1) as f64;
        reply.stats.words = machine.words();
        let too_large = || machine.too_large().then(|| Limit::StateSize(machine.words()));
        reply.limit = found.limit.or_else(too_large);
        reply.suspects = found.goals.into_iter().map(|(_, actions)| Suspect { actions }).collect();
    }
    reply.stats.time = start.elapsed();
    reply
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
    pub fn judged(&self, program: &Program) -> Result<Witness, Refuted> {
        let mut actions = self.actions.clone();
        let refuted = |why: String| Refuted(why);
        let walk = |actions: &[Action]| {
            let events = follow(program, Model::Tso, actions.iter().copied());
            events.map_err(|m| refuted(format!("does not replay: {m}")))
        };
        let (attacker, pending) =
            delaying(&walk(&actions)?).ok_or_else(|| refuted("delays nothing".into()))?;
        actions.extend(std::iter::repeat_n(Action { thread: attacker, act: Act::Flush }, pending));
        let events = walk(&actions)?;
        let attack = attack(&events, attacker).ok_or_else(|| refuted("has no load that overtakes".into()))?;
        let (actions, attack) = normalised(&events, &attack);
        let events = walk(&actions)?;
        check_witness(&events, &attack).map_err(|broken| refuted(broken.to_string()))?;
        let cycle = HappensBefore::of(&events).cycle().ok_or_else(|| refuted("has no cycle".into()))?;
        Ok(Witness { events, store: attack.store, load: attack.load, cycle })
    }
}

/// The thread that still has stores in its buffer, and how many.
fn delaying(events: &[Event]) -> Option<(ThreadId, usize)> {
    let pending = |t: ThreadId| {
        let of = |kind: Kind| {
            events.iter().filter(|e| e.thread() == t && e.kind == kind && e.trap.is_none()).count()
        };
        of(Kind::Store) - of(Kind::Flush)
    };
    events.iter().map(|e| e.thread()).find(|&t| pending(t) > 0).map(|t| (t, pending(t)))
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

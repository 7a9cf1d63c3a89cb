//! Is there a witness? One search for all attacks, and the computation it finds.
//!
//! All attacks share a search, and so the SC states of its phase 1. Attacks that have begun come before new
//! SC states, and what began earlier comes before what began later, so that the first witness has few steps
//! before its store and few after it. What is found is a sequence of decisions, a *suspect*: `certify` makes
//! a witness of it, or refutes it.

use super::attack::{Attacks, Pruning};
use super::known::KnownPaths;
use super::machine::AttackMachine;
use crate::model::{EdgeId, Program};
use crate::query::{Act, Action, EventKind, Limit, Limits, Reductions, Stats};
use crate::reach::{Budget, Goals, Order, Peers, Search, Spent, explore_within};
use std::time::Instant;

/// How to look for witnesses.
#[derive(Clone, Debug)]
pub struct OracleOptions {
    pub pruning: Pruning,
    /// Paths that have been handed out before and are not wanted again.
    pub known: KnownPaths,
    pub reductions: Reductions,
    pub workers: usize,
    pub peers: Option<Peers>,
    pub goals: Goals,
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

/// Decisions that the search takes for a witness, up to the event that happens after the load and touches the
/// cell of the delayed store.
#[derive(Clone, Debug)]
pub struct Suspect {
    pub actions: Vec<Action>,
}

/// Does the program have witnesses?
pub fn ask(program: &Program, options: &OracleOptions, limits: &Limits) -> Reply {
    match ask_within(program, options, Budget::UNLIMITED, limits) {
        Ok(reply) => reply,
        Err(Spent(_)) => unreachable!("what has no bound cannot be spent"),
    }
}

/// The same within a budget.
pub fn ask_within(
    program: &Program,
    options: &OracleOptions,
    budget: Budget,
    limits: &Limits,
) -> Result<Reply, Spent<Box<Reply>>> {
    let start = Instant::now();
    let stats = Stats { workers: options.workers, ..Stats::default() };
    let mut reply = Reply { suspects: vec![], limit: None, attacks: Attacks::default(), stats };
    let searched = reply.search(program, options, budget, limits);
    reply.stats.traffic = options.peers.as_ref().map(Peers::traffic);
    reply.stats.time = start.elapsed();
    match searched {
        Ok(Ok(())) => Ok(reply),
        Ok(Err(Spent(()))) => Err(Spent(Box::new(reply))),
        Err(limit) => Ok(Reply { limit: Some(limit), ..reply }),
    }
}

impl Reply {
    /// What there is to say if a limit was reached before anything was asked.
    pub fn unasked(workers: usize, limit: Limit) -> Reply {
        let stats = Stats { workers, ..Stats::default() };
        Reply { suspects: vec![], limit: Some(limit), attacks: Attacks::default(), stats }
    }

    fn search(
        &mut self,
        program: &Program,
        options: &OracleOptions,
        budget: Budget,
        limits: &Limits,
    ) -> Result<Result<(), Spent<()>>, Limit> {
        self.attacks = Attacks::of(program, options.pruning, limits)?;
        if self.attacks.stores.is_empty() {
            return Ok(Ok(()));
        }
        let OracleOptions { goals, workers, reductions, ref peers, .. } = *options;
        let machine = AttackMachine::new(program, &self.attacks, &options.known, reductions, limits)?;
        let search = Search { goals, ..Search::new(Order::BestFirst, workers) }.among(peers.as_ref());
        let (found, spent) = match explore_within(&machine, limits, search, budget) {
            Ok(found) => (found, Ok(())),
            Err(Spent(found)) => (found, Err(Spent(()))),
        };
        self.stats.states = found.states;
        self.stats.transitions = found.transitions;
        self.stats.bytes_per_state = found.bytes as f64 / found.states.max(1) as f64;
        self.stats.words = machine.words();
        let too_large = || machine.too_large().then(|| Limit::StateSize(machine.words()));
        self.limit = found.limit.or_else(too_large);
        self.suspects = found.goals.into_iter().map(|(_, actions)| Suspect { actions }).collect();
        Ok(spent)
    }
}

impl Suspect {
    /// The edges of the delaying thread from its store to its load.
    pub fn path(&self, program: &Program) -> Vec<EdgeId> {
        let kind = |a: &Action| match a.act {
            Act::Step { edge, .. } => EventKind::of(&program.thread(a.thread).edge(edge).instr),
            Act::Flush => EventKind::Flush,
        };
        let flushed = |k: usize| self.actions.get(k + 1).is_some_and(|next| next.act == Act::Flush);
        let delayed = |k: &usize| kind(&self.actions[*k]) == EventKind::Store && !flushed(*k);
        let Some(store) = (0..self.actions.len()).find(delayed) else { return vec![] };
        let own = self.actions[store..].iter().filter(|a| a.thread == self.actions[store].thread);
        let own: Vec<&Action> = own.collect();
        let load = own.iter().rposition(|a| kind(a) == EventKind::Load);
        let edge = |a: &&Action| match a.act {
            Act::Step { edge, .. } => Some(edge),
            Act::Flush => None,
        };
        own[..load.map_or(0, |load| load + 1)].iter().filter_map(edge).collect()
    }
}

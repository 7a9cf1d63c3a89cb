//! Is the program free of triangular races? Owens' condition (`[Owens10]`), which is sufficient for
//! robustness and cheaper to ask.
//!
//! A *triangular race* is an SC run in which a thread stores, then loads another cell while its store could
//! still be in its buffer, and then another thread writes that cell: the load could have overtaken the store,
//! and another thread could tell. (`certify::race` says what else counts as a write.) Without one, TSO adds
//! nothing; with one it may or may not. `history` turns the question into one of SC reachability, once for
//! each thread; the search is `reach`'s; `certify` judges what was found from the run alone.

mod history;
#[cfg(test)]
mod tests;

use crate::analysis::interval::Intervals;
use crate::certify::{self, Confirmed, Doubt, Refuted};
use crate::machine::{MemoryModel, ProgramMachine};
use crate::model::{Instr, Program, ThreadId, Value};
use crate::query::{Act, Action, Event, EventKind, Limit, Limits, Model, Race, Reductions, Stats};
use crate::reach::{Order, Peers, Search, explore};
use crate::semantics::replay::{Stopped, follow, replay};
use crate::semantics::sc;
use history::{Accesses, Attacker};
use std::time::Instant;

/// How to look for a race.
#[derive(Clone, Debug)]
pub struct RaceOptions {
    pub reductions: Reductions,
    pub order: Order,
    pub workers: usize,
    pub peers: Option<Peers>,
}

/// What the search came to. Without a race and without a limit, the program is free of them.
#[derive(Debug)]
pub struct Reply {
    pub race: Option<Confirmed<Race>>,
    pub limit: Option<Limit>,
    /// The threads that the text leaves to the search.
    pub attackers: usize,
    pub stats: Stats,
}

/// Does the program have a triangular race?
pub fn ask(program: &Program, options: &RaceOptions, limits: &Limits) -> Result<Reply, Refuted> {
    let start = Instant::now();
    let stats = Stats { workers: options.workers, ..Stats::default() };
    let mut reply = Reply { race: None, limit: None, attackers: 0, stats };
    match reply.try_all(program, options, limits) {
        Err(Doubt::Refuted(refuted)) => return Err(refuted),
        Err(Doubt::Limit(limit)) => reply.limit = Some(limit),
        Ok(()) => {}
    }
    reply.stats.time = start.elapsed();
    Ok(reply)
}

impl Reply {
    /// One thread after the other, up to the first race.
    fn try_all(&mut self, program: &Program, options: &RaceOptions, limits: &Limits) -> Result<(), Doubt> {
        let accesses = Accesses::new(program, limits)?;
        for t in program.thread_ids() {
            let Some(attacker) = history::attacker(&accesses, t, limits)? else { continue };
            self.attackers += 1;
            match attacker {
                Ok(attacker) => self.search(program, &accesses.intervals, t, &attacker, options, limits)?,
                Err(invalid) => self.limit = Some(Limit::ProgramSize(invalid.to_string())),
            }
            if self.race.is_some() {
                break;
            }
        }
        Ok(())
    }

    fn search(
        &mut self,
        program: &Program,
        known: &Intervals,
        t: ThreadId,
        attacker: &Attacker,
        options: &RaceOptions,
        limits: &Limits,
    ) -> Result<(), Doubt> {
        let RaceOptions { reductions, order, workers, ref peers } = *options;
        let machine =
            ProgramMachine::new(&attacker.program, &attacker.goal, MemoryModel::Sc, reductions, limits)?;
        let machine = machine.ignoring_errors();
        let found = explore(&machine, limits, Search::new(order, workers).among(peers.as_ref()));
        let stats = &mut self.stats;
        stats.states += found.states;
        stats.transitions += found.transitions;
        stats.words = stats.words.max(machine.words());
        stats.bytes_per_state = stats.bytes_per_state.max(found.bytes as f64 / found.states.max(1) as f64);
        if let Some((_, actions)) = found.goals.first() {
            let run = history::project(&attacker.program, actions);
            self.race = Some(race(program, known, t, run, limits)?);
        }
        let too_large = || machine.too_large().then(|| Limit::StateSize(machine.words()));
        self.limit = self.limit.take().or(found.limit).or_else(too_large);
        Ok(())
    }
}

/// The race that a run to a state of the goal leads to: the attacker's last step is the load, and somebody
/// has written what it loaded, or can do so now.
fn race(
    program: &Program,
    known: &Intervals,
    t: ThreadId,
    run: Vec<Action>,
    limits: &Limits,
) -> Result<Confirmed<Race>, Doubt> {
    let refuted = |why: &str| Doubt::refuted(format!("the race {why}"));
    let stopped = |stopped: Stopped| Doubt::stopped("the race", stopped);
    let runs = [Some(run.clone()), without_open_block(program, &run)];
    for run in runs.into_iter().flatten() {
        let mut events = follow(program, Model::Sc, run.iter().copied(), limits).map_err(stopped)?;
        let load = events.iter().rposition(|e| e.thread() == t);
        let load = load.ok_or_else(|| refuted("has no attacker"))?;
        if let Some(write) = certify::race::first_write(program, &events, load) {
            events.truncate(write + 1);
        } else if let Some(step) = next_write(program, known, &events, load, limits).map_err(stopped)? {
            let longer = events.iter().map(|e| e.action).chain([step]);
            events = follow(program, Model::Sc, longer, limits).map_err(stopped)?;
        } else {
            continue;
        }
        let is_store = |e: &Event| e.thread() == t && e.kind == EventKind::Store;
        let store = events[..load].iter().rposition(is_store);
        let store = store.ok_or_else(|| refuted("has no store"))?;
        return certify::race(program, Race { write: events.len() - 1, events, store, load }, limits);
    }
    Err(refuted("has no write"))
}

/// The decision of another thread that writes what the load has read, in the state after the events; or that
/// begins a block which counts as a write.
fn next_write(
    program: &Program,
    known: &Intervals,
    events: &[Event],
    load: usize,
    limits: &Limits,
) -> Result<Option<Action>, Stopped> {
    let state = replay(program, Model::Sc, events, limits)?;
    let (t, cell) = (events[load].thread(), events[load].address);
    let steps = sc::steps(program, &state).into_iter().map(|step| step.event);
    let others: Vec<Event> = steps.filter(|e| e.thread() != t).collect();
    let writes = |e: &&Event| e.address == cell && certify::race::writes(program, e);
    let begins = |e: &&Event| {
        cell.is_some_and(|cell| certify::race::begins_block(program, known, t, e, cell.0 as Value))
    };
    let found = others.iter().find(writes).or_else(|| others.iter().find(begins));
    Ok(found.map(|event| event.action))
}

/// The run without the block that a thread is still in, if there is one. No other thread has touched memory since
/// it began, so they can do what they did.
fn without_open_block(program: &Program, run: &[Action]) -> Option<Vec<Action>> {
    let instr = |a: &Action| match a.act {
        Act::Step { edge, .. } => Some(&program.thread(a.thread).edge(edge).instr),
        Act::Flush => None,
    };
    let last = run.iter().rposition(|a| matches!(instr(a), Some(Instr::Lock | Instr::Unlock)))?;
    let outside = |a: &&Action| a.thread != run[last].thread;
    let open = matches!(instr(&run[last]), Some(Instr::Lock));
    open.then(|| run[..last].iter().chain(run[last..].iter().filter(outside)).copied().collect())
}

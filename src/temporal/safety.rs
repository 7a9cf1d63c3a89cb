//! How many states has a model, and can a bad one be reached?

use super::{TemporalOptions, judged};
use crate::certify::{DveClaim, DveOutcome, Refuted, dve_run};
use crate::dve::System;
use crate::machine::dve::{DveGoal, DveGoals, DveMachine};
use crate::query::{Answer, Limit, Limits, Stats};
use crate::reach::{Found, Order, Search, explore};
use std::time::Instant;

/// A whole state space.
#[derive(Clone, Debug)]
pub struct StateSpace {
    pub states: u64,
    pub transitions: u64,
    /// States without any step.
    pub deadlocks: u64,
    /// 1 if the model can go wrong.
    pub errors: u64,
    /// What ended the count, if it is not complete.
    pub limit: Option<Limit>,
    pub stats: Stats,
}

/// Visits everything.
pub fn count(system: &System, options: &TemporalOptions, limits: &Limits) -> StateSpace {
    let begun = Instant::now();
    let machine = match DveMachine::new(system, &options.memory, &DveGoals::default()) {
        Ok(machine) => machine,
        Err(limit) => {
            let (stats, limit) = (Stats::default(), Some(limit));
            return StateSpace { states: 0, transitions: 0, deadlocks: 0, errors: 0, limit, stats };
        }
    };
    let found = explore(&machine, limits, Search::new(Order::BreadthFirst, options.workers));
    // The search counts the way into the initial state.
    let transitions = found.transitions.saturating_sub(1);
    StateSpace {
        states: found.states,
        transitions,
        deadlocks: machine.deadlocks(),
        errors: machine.errors().min(1),
        stats: stats(&found, &machine, options, begun),
        limit: found.limit,
    }
}

/// Is one of the goals reachable?
pub fn reach(
    system: &System,
    goals: &DveGoals,
    options: &TemporalOptions,
    limits: &Limits,
) -> Result<DveOutcome, Refuted> {
    let begun = Instant::now();
    let machine = match DveMachine::new(system, &options.memory, goals) {
        Ok(machine) => machine,
        Err(limit) => return Ok(DveOutcome { answer: Answer::Unknown(limit), stats: Stats::default() }),
    };
    let machine = match options.por {
        true => machine.reduced(system, &options.memory, &goals.asked(system)),
        false => machine,
    };
    let mut found = explore(&machine, limits, Search::new(Order::BreadthFirst, options.workers));
    let stats = stats(&found, &machine, options, begun);
    let answer = match found.goals.pop() {
        Some((number, steps)) => {
            let claim = match machine.goal(number) {
                DveGoal::Error => DveClaim::Error,
                DveGoal::Deadlock => DveClaim::Deadlock,
                DveGoal::Assertion(p, i) => DveClaim::Assertion(p, i),
                DveGoal::Forbidden(i) => DveClaim::Forbidden(&goals.forbidden[i]),
            };
            match judged(dve_run(system, &options.memory, &steps, claim, limits))? {
                Ok(run) => Answer::Fails(run),
                Err(limit) => Answer::Unknown(limit),
            }
        }
        None => match (found.limit, machine.undefined()) {
            (Some(limit), _) => Answer::Unknown(limit),
            (None, Some(error)) => Answer::Unknown(Limit::Undefined(system.show_error(&error))),
            (None, None) => Answer::Holds(()),
        },
    };
    Ok(DveOutcome { answer, stats })
}

fn stats<S>(found: &Found<S>, machine: &DveMachine, options: &TemporalOptions, begun: Instant) -> Stats {
    Stats {
        states: found.states,
        transitions: found.transitions,
        bytes_per_state: found.bytes as f64 / found.states.max(1) as f64,
        words: machine.words(),
        workers: options.workers,
        time: begun.elapsed(),
        ..Stats::default()
    }
}

//! The one door: a program and a goal go in, an [`Outcome`] comes out.
//!
//! Engines live side by side in this folder and do not know each other. Whatever they claim passes through
//! `confirm`: no `violated` leaves before `sem` has walked its trace on the plain machine of the asked model
//! and, since every SC run is a TSO run too, on the plain TSO machine. A trace that does not replay is a bug
//! of ours and is reported as one, never as a verdict.

mod explicit;
mod vacuity;

use crate::model::Program;
use crate::reach::{Order, Reductions};
use crate::sem::replay;
use crate::verdict::{Action, Goal, Limits, Model, Outcome, Trace};
use std::time::Instant;
use thiserror::Error;

/// How to look for the answer.
#[derive(Clone, Debug)]
pub struct Options {
    pub model: Model,
    pub engine: Engine,
    /// Bounds the buffers under TSO.
    pub buffer: Option<usize>,
    pub reductions: Reductions,
    pub order: Order,
    pub workers: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            model: Model::Tso,
            engine: Engine::Auto,
            buffer: None,
            reductions: Reductions::ALL,
            order: Order::BreadthFirst,
            workers: std::thread::available_parallelism().map_or(1, |n| n.get()),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Whatever suits the question best.
    Auto,
    /// Enumerates the states of the model itself.
    Explicit,
}

/// A bug of ours. The sentence is for the report that we ask for.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Internal(String);

/// Can a state against the goal be reached?
pub fn check(
    program: &Program,
    goal: &Goal,
    options: &Options,
    limits: &Limits,
) -> Result<Outcome, Internal> {
    let start = Instant::now();
    let mut outcome = match options.engine {
        Engine::Auto | Engine::Explicit => explicit::check(program, goal, options, limits)?,
    };
    outcome.warnings = vacuity::warnings(program, goal);
    outcome.stats.time = start.elapsed();
    Ok(outcome)
}

/// Walks an engine's decisions on the plain machines, and makes the trace that the user sees.
fn confirm(program: &Program, goal: &Goal, model: Model, actions: &[Action]) -> Result<Trace, Internal> {
    let bug = |what: &str| Internal(format!("the trace of a violation {what}"));
    let perform = |model, actions: &[Action]| {
        let done = replay::perform(program, model, goal, actions.iter().copied());
        done.map_err(|mismatch| bug(&format!("does not replay: {mismatch}")))
    };
    let (events, against) = perform(model, actions)?;
    let against = against.ok_or_else(|| bug("does not reach the goal"))?;
    replay::replay(program, model, &events).map_err(|m| bug(&format!("does not replay twice: {m}")))?;
    if model == Model::Sc {
        let (_, under_tso) = perform(Model::Tso, &replay::as_tso(&events))?;
        under_tso.ok_or_else(|| bug("does not reach the goal under TSO"))?;
    }
    Ok(Trace { model, events, against })
}

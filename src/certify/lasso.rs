//! Is a lasso of a program what it is said to be? Its decisions are walked on the plain machine of the asked
//! model, which has to come back to where the cycle begins; nobody may be kept waiting on the cycle, if the
//! run is to be fair; and the formula is evaluated on it by its definition.

use super::{Confirmed, Doubt};
use crate::limits::Limits;
use crate::model::formula::Formula;
use crate::model::{Pred, Program};
use crate::query::{Action, Answer, Event, Model, Stats};
use crate::semantics::liveness::{Actor, thread_steps};
use crate::semantics::ltl::{Word, holds};
use crate::semantics::replay::follow;
use crate::semantics::{State, Step};

/// What a step costs to walk.
const STEP: usize = 100;

/// What is claimed of a lasso: that the formula does not hold on it.
#[derive(Clone, Copy, Debug)]
pub struct LassoClaim<'a> {
    pub model: Model,
    pub formula: &'a Formula,
    pub propositions: &'a [Pred],
    pub fair: bool,
    /// The decision that follows the last one. If it is behind them all, nothing happens any more.
    pub cycle_from: usize,
}

/// A run that ends in a cycle.
#[derive(Clone, Debug)]
pub struct ProgramLasso {
    pub events: Vec<Event>,
    /// The number of events if nothing happens any more.
    pub cycle_from: usize,
}

/// What came of a question about infinite runs. A proof is that everything was visited.
#[derive(Clone, Debug)]
pub struct LivenessOutcome {
    pub answer: Answer<(), Confirmed<ProgramLasso>>,
    pub stats: Stats,
}

pub fn program_lasso(
    program: &Program,
    actions: &[Action],
    claim: LassoClaim,
    limits: &Limits,
) -> Result<Confirmed<ProgramLasso>, Doubt> {
    let no = |what: &str| Doubt::refuted(format!("the lasso of a program {what}"));
    let steps = |state: &State| {
        let threads = program.thread_ids();
        threads.flat_map(|t| thread_steps(program, claim.model, state, t)).collect::<Vec<Step>>()
    };
    let (mut states, mut taken) = (vec![State::initial(program)], Vec::new());
    for action in actions {
        limits.spend(STEP)?;
        let next = steps(&states[states.len() - 1]).into_iter().find(|s| s.event.action == *action);
        let next = next.ok_or_else(|| no("has a step that nobody can take"))?;
        states.push(next.state.clone());
        taken.push(next);
    }
    let last = &states[states.len() - 1];
    let is_end = claim.cycle_from == actions.len();
    if is_end && !steps(last).is_empty() {
        return Err(no("stops where something can happen"));
    }
    if !is_end && states[claim.cycle_from] != *last {
        return Err(no("does not come back"));
    }
    let cycle = claim.cycle_from..actions.len();
    let waits = |actor: &Actor| {
        let is_ready = |state: &State| steps(state).iter().any(|s| actor.took(s));
        !cycle.is_empty()
            && !cycle.clone().any(|i| actor.took(&taken[i]))
            && cycle.clone().all(|i| is_ready(&states[i]))
    };
    if claim.fair && Actor::all(program).iter().any(waits) {
        return Err(no("keeps somebody waiting for ever"));
    }
    let letter = |state: &State| claim.propositions.iter().map(|p| state.has(p)).collect();
    let letters: Vec<Vec<bool>> = states[..states.len() - !is_end as usize].iter().map(letter).collect();
    if holds(claim.formula, &Word { letters, cycle_from: claim.cycle_from }) {
        return Err(no("satisfies the formula"));
    }
    // Which store an event is about is something that only a walk from the beginning knows.
    let events = follow(program, claim.model, actions.iter().copied(), limits)
        .map_err(|stopped| Doubt::stopped("the lasso of a program", stopped))?;
    Ok(Confirmed(ProgramLasso { events, cycle_from: claim.cycle_from }))
}

//! Is a run of a DVE model what it is said to be? Its steps are walked by the plain definition, and the end of
//! the run, or the whole lasso, is held against what was asked.

use super::{Confirmed, Doubt};
use crate::dve::{Configuration, DveError, DveExpr, DveStep, Memory, System};
use crate::limits::Limits;
use crate::model::formula::Formula;
use crate::query::{Answer, Stats};
use crate::semantics::dve::{property_moves, steps};
use crate::semantics::ltl::{Word, holds};

/// What a step costs to walk, apart from what there is to copy.
const STEP: usize = 100;

/// What a search says that it found.
#[derive(Clone, Copy, Debug)]
pub enum DveClaim<'a> {
    /// The last step goes wrong.
    Error,
    /// The last state fails this assertion of this process.
    Assertion(usize, usize),
    /// The last state satisfies this.
    Forbidden(&'a DveExpr),
    /// Nothing follows the last state.
    Deadlock,
    /// The run is a lasso on which the formula does not hold.
    Formula(Lasso<'a>),
    /// The run is a lasso on which the property process, taking these transitions, accepts.
    Property(&'a [usize], usize),
}

#[derive(Clone, Copy, Debug)]
pub struct Lasso<'a> {
    pub formula: &'a Formula,
    pub propositions: &'a [DveExpr],
    /// The step that follows the last one.
    pub cycle_from: usize,
    /// Is each slot to be empty again and again?
    pub fair: bool,
}

/// A run, and what it is against.
#[derive(Clone, Debug)]
pub struct DveRun {
    pub steps: Vec<DveStep>,
    /// What each step leads from, and, unless the last one goes wrong, what it leads to.
    pub states: Vec<Configuration>,
    pub cycle_from: Option<usize>,
    pub against: DveAgainst,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DveAgainst {
    Error(DveError),
    Assertion(usize, usize),
    Forbidden(DveExpr),
    Deadlock,
    Formula,
    Property,
}

/// What came of a question about a model. A proof is that everything was visited.
#[derive(Clone, Debug)]
pub struct DveOutcome {
    pub answer: Answer<(), Confirmed<DveRun>>,
    pub stats: Stats,
}

/// The run that the steps determine, if it is what is claimed.
pub fn dve_run(
    system: &System,
    memory: &Memory,
    taken: &[DveStep],
    claim: DveClaim,
    limits: &Limits,
) -> Result<Confirmed<DveRun>, Doubt> {
    let no = |what: &str| Doubt::refuted(format!("the run of a model {what}"));
    let mut states = vec![Configuration::initial(system)];
    let mut error = None;
    let values: usize = system.variables.iter().map(|v| 1 + v.initial.len()).sum();
    for (i, step) in taken.iter().enumerate() {
        limits.spend(STEP + values)?;
        if error.is_some() {
            return Err(no("goes on after an error"));
        }
        let from = &states[i];
        let all = steps(system, memory, from);
        let next = match step {
            DveStep::Stutter if all.is_empty() => Ok(from.clone()),
            step => match all.into_iter().find(|(s, _)| s == step) {
                Some((_, next)) => next,
                None => return Err(no("has a step that nobody can take")),
            },
        };
        match next {
            Ok(next) => states.push(next),
            Err(wrong) => error = Some(wrong),
        }
    }
    let last = &states[states.len() - 1];
    let (against, cycle_from) = match (claim, error) {
        (DveClaim::Error, Some(error)) => (DveAgainst::Error(error), None),
        (_, Some(_)) => return Err(no("goes wrong")),
        (DveClaim::Assertion(p, i), None) if fails(system, last, p, i) => (DveAgainst::Assertion(p, i), None),
        (DveClaim::Forbidden(e), None) if last.value(system, None, e).is_ok_and(|v| v != 0) => {
            (DveAgainst::Forbidden(e.clone()), None)
        }
        (DveClaim::Deadlock, None) if steps(system, memory, last).is_empty() => (DveAgainst::Deadlock, None),
        (DveClaim::Formula(lasso), None) if violates(system, &states, &lasso) => {
            (DveAgainst::Formula, Some(lasso.cycle_from))
        }
        (DveClaim::Property(moves, from), None) if accepts(system, &states, moves, from) => {
            (DveAgainst::Property, Some(from))
        }
        _ => return Err(no("does not end as it is said to")),
    };
    Ok(Confirmed(DveRun { steps: taken.to_vec(), states, cycle_from, against }))
}

fn fails(system: &System, at: &Configuration, process: usize, assertion: usize) -> bool {
    let assertion = &system.processes[process].asserts[assertion];
    let value = at.value(system, Some(process), &assertion.condition);
    at.at[process] == assertion.state && !value.is_ok_and(|v| v != 0)
}

/// Does the run come back to where its cycle begins?
fn returns(states: &[Configuration], cycle_from: usize) -> bool {
    cycle_from + 1 < states.len() && states[cycle_from] == states[states.len() - 1]
}

fn violates(system: &System, states: &[Configuration], lasso: &Lasso) -> bool {
    let Lasso { formula, propositions, cycle_from, fair } = *lasso;
    if !returns(states, cycle_from) {
        return false;
    }
    let cycle = &states[cycle_from..states.len() - 1];
    let drained = |slot| cycle.iter().any(|s| !s.slots.contains_key(slot));
    if fair && !cycle.iter().flat_map(|s| s.slots.keys()).all(drained) {
        return false;
    }
    let letter = |state: &Configuration| {
        let value = |e: &DveExpr| state.value(system, None, e).ok().map(|v| v != 0);
        propositions.iter().map(value).collect::<Option<Vec<bool>>>()
    };
    let letters = states[..states.len() - 1].iter().map(letter).collect::<Option<Vec<_>>>();
    letters.is_some_and(|letters| !holds(formula, &Word { letters, cycle_from }))
}

/// Can the property process take these transitions along the run, and does it accept?
fn accepts(system: &System, states: &[Configuration], moves: &[usize], cycle_from: usize) -> bool {
    let Some(property) = system.property() else { return false };
    let own = system.processes.len() - 1;
    let (mut at, mut visited) = (property.initial, vec![]);
    for (state, number) in states.iter().zip(moves) {
        visited.push(at);
        let mut here = state.clone();
        here.at[own] = at;
        let moved = property_moves(system, &here).into_iter().find(|(n, _)| n == number);
        let Some((_, Ok(to))) = moved else { return false };
        at = to;
    }
    moves.len() + 1 == states.len()
        && returns(states, cycle_from)
        && visited[cycle_from] == at
        && visited[cycle_from..].iter().any(|&q| property.states[q].accepting)
}

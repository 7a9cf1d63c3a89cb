//! Why is a program robust? Every attack fails: a set of states of the attack machine that contains the
//! initial one, is closed under every step, and has none in which an attack has succeeded.
//!
//! An *attack* is a thread, a store that it delays and a load of its own that overtakes the store. A program is
//! robust iff none succeeds (`[LazyTSO15]`, Lemma 6 and Section 4); that theorem is taken for granted here.
//! Attacks that the program's text refutes (`text`) need no states. For the others, `machine` has the runs
//! that could become witnesses. Here is the set as plain data, and its checker. Nothing in this folder knows
//! how robustness is decided elsewhere.

mod machine;
mod text;

pub use machine::Attempts;

use super::Doubt;
use super::invariant::Place;
use crate::limits::Limits;
use crate::model::{Program, Value};
use std::collections::HashSet;

/// A set of states of the attack machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Harmless {
    /// Per thread, per location; nothing is relevant. Empty if there are no states.
    pub places: Vec<Vec<Place>>,
    /// Empty if the text refutes every attack. What the numbers of a row are, [`Attempts`] says.
    pub states: Vec<Vec<Value>>,
}

/// Nothing if no attack can succeed; otherwise the first condition that fails.
pub fn check(program: &Program, harmless: &Harmless, limits: &Limits) -> Result<(), Doubt> {
    if text::open(program, limits)?.is_empty() {
        return Ok(());
    }
    let mut attempts = Attempts::new(program, &harmless.places, limits)?;
    for (k, state) in harmless.states.iter().enumerate() {
        if !attempts.is_row(state) {
            return Err(Doubt::refuted(format!("state {k} is none of the program")));
        }
    }
    limits.reserve(harmless.states.len() * 2 * size_of::<&[Value]>())?;
    let had: HashSet<&[Value], foldhash::fast::FixedState> =
        harmless.states.iter().map(|state| &state[..]).collect();
    if !attempts.initial()?.iter().all(|state| had.contains(&state[..])) {
        return Err(Doubt::refuted("the initial state is not in the set".to_string()));
    }
    let mut next = Vec::new();
    for (k, state) in harmless.states.iter().enumerate() {
        if attempts.succeeds(state) {
            return Err(Doubt::refuted(format!("an attack has succeeded in state {k}")));
        }
        attempts.steps(state, &mut next)?;
        if !next.drain(..).all(|state| had.contains(&state[..])) {
            return Err(Doubt::refuted(format!("a step in state {k} leads out of the set")));
        }
    }
    Ok(())
}

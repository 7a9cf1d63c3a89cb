//! How many states has a program? All of them, by the plain machines and with nothing left out.

use super::safety::StateSpace;
use crate::model::{Loc, Program};
use crate::query::{Limit, Limits, Model, Stats};
use crate::semantics::tso::{self, Bound};
use crate::semantics::{State, Step, sc};
use foldhash::fast::FixedState;
use std::collections::{HashSet, VecDeque};
use std::time::Instant;

/// What a state costs to expand, in steps.
const EXPANSION: usize = 200;

/// Visits everything. A deadlock is a state without steps in which some thread has not come to its end; an
/// error is a state in which one has gone wrong.
pub fn count(program: &Program, model: Model, limits: &Limits) -> StateSpace {
    let begun = Instant::now();
    let mut space = StateSpace {
        states: 0,
        transitions: 0,
        deadlocks: 0,
        errors: 0,
        limit: None,
        stats: Stats { workers: 1, ..Stats::default() },
    };
    let start = State::initial(program);
    let mut seen: HashSet<State, FixedState> = HashSet::from_iter([start.clone()]);
    let mut todo = VecDeque::from([start]);
    while let Some(state) = todo.pop_front() {
        if let Err(limit) = limits.spend(EXPANSION) {
            space.limit = Some(limit);
            break;
        }
        let steps: Vec<Step> = match model {
            Model::Sc => sc::steps(program, &state),
            Model::Tso => tso::steps(program, &state, Bound::Unbounded).0,
        };
        let wrong = state.at.contains(&Loc::TRAP);
        let ended = program.thread_ids().all(|t| state.at[t.index()] == program.thread(t).end());
        space.states += 1;
        space.transitions += steps.len() as u64;
        space.deadlocks += (steps.is_empty() && !ended && !wrong) as u64;
        space.errors += wrong as u64;
        for step in steps {
            if seen.insert(step.state.clone()) {
                todo.push_back(step.state);
            }
        }
        if let Some(most) = limits.states.filter(|&most| space.states >= most) {
            space.limit = Some(Limit::States(most));
            break;
        }
    }
    space.stats.time = begun.elapsed();
    (space.stats.states, space.stats.transitions) = (space.states, space.transitions);
    space
}

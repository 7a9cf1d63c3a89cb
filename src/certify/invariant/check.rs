//! Is it an inductive invariant? It has the initial states, every step from one of its states leads to one
//! that it has, and none is against the goal.
//!
//! A state is *had* if the invariant has one with the same key, or an image of it under the symmetry, whose
//! pasts are above. Stored states are found by their keys; pasts are numbered, and compared once for each pair
//! of numbers.

use super::forbidden::Forbidden;
use super::machine::{Machine, Point};
use super::symmetry::Symmetry;
use super::{Ideal, Invariant, Past, STUCK};
use crate::certify::Doubt;
use crate::limits::Limits;
use crate::model::{Loc, Program, Value};
use crate::query::{Goal, Model};
use std::collections::HashMap;

/// Nothing if the invariant is one and excludes the goal; otherwise the first condition that fails.
pub fn check(
    program: &Program,
    goal: &Goal,
    model: Model,
    invariant: &Invariant,
    limits: &Limits,
) -> Result<(), Doubt> {
    check_shape(program, invariant, limits)?;
    let mut machine = Machine::new(program, goal, model, &invariant.places, limits)?;
    let symmetry = Symmetry::verified(program, goal, invariant)?;
    let mut stored = Stored::new(symmetry, limits);
    let numbers: Vec<u32> = invariant.pasts.iter().map(|past| machine.number(past.clone())).collect();
    let mut points = Vec::with_capacity(invariant.states.len());
    for (k, state) in invariant.states.iter().enumerate() {
        limits.spend(32 + program.cells() / 8)?;
        let pasts: Vec<u32> = state.pasts.iter().map(|&past| numbers[past as usize]).collect();
        let point = machine.point(state, &pasts);
        let point = point.ok_or_else(|| {
            Doubt::refuted(format!(
                "state {k} is none: a dead register has a value, or a thread lags that cannot"
            ))
        })?;
        stored.insert(&mut machine, &point);
        points.push(point);
    }
    for point in machine.initial()? {
        if !stored.has(&mut machine, &point)? {
            return Err(Doubt::refuted("the initial state is not in the set".to_string()));
        }
    }
    let (mut forbidden, mut next) = (Forbidden::by(goal, limits), Vec::new());
    for (k, point) in points.iter().enumerate() {
        if forbidden.may_be(&machine, point)? {
            return Err(Doubt::refuted(format!("state {k} is forbidden, or may be")));
        }
        for (t, thread) in program.threads().iter().enumerate() {
            machine.steps(point, t, &mut next)?;
            for point in next.drain(..) {
                if !stored.has(&mut machine, &point)? {
                    let leaves =
                        format!("a step of thread {} in state {k} leads out of the set", thread.name());
                    return Err(Doubt::refuted(leaves));
                }
            }
        }
    }
    Ok(())
}

/// Do all numbers in the invariant name something of this program?
fn check_shape(program: &Program, invariant: &Invariant, limits: &Limits) -> Result<(), Doubt> {
    let refuted = |what: String| Err(Doubt::refuted(what));
    let ascending = |list: &[u32], end: usize| {
        list.windows(2).all(|pair| pair[0] < pair[1]) && list.last().is_none_or(|&last| (last as usize) < end)
    };
    let threads = program.threads();
    let sizes = |t: &crate::model::Thread| t.graph().node_count();
    if !invariant.places.iter().map(Vec::len).eq(threads.iter().map(sizes)) {
        return refuted("it is not about threads with as many locations".to_string());
    }
    for (thread, places) in threads.iter().zip(&invariant.places) {
        for place in places {
            limits.spend(1 + place.live.len() + place.relevant.len())?;
            let live: Vec<u32> = place.live.iter().map(|r| r.0.into()).collect();
            let relevant: Vec<u32> = place.relevant.iter().map(|cell| cell.0).collect();
            if !ascending(&live, thread.registers().len()) || !ascending(&relevant, program.cells()) {
                return refuted(format!("a list of registers or cells of thread {} is none", thread.name()));
            }
        }
    }
    let first_is_empty = invariant.pasts.first().is_some_and(Past::is_empty);
    if let Some(k) = invariant.pasts.iter().position(|past| !is_past(past, program.cells())) {
        return refuted(format!("past {k} is none"));
    }
    if !first_is_empty {
        return refuted("the first past is not the empty one".to_string());
    }
    for (k, state) in invariant.states.iter().enumerate() {
        limits.spend(4 + state.registers.len())?;
        if !is_state(program, invariant, state) {
            return refuted(format!("state {k} is none of the program"));
        }
    }
    Ok(())
}

fn is_past(past: &Past, cells: usize) -> bool {
    let mut marked: Vec<u32> = past.marks.iter().map(|(cell, _)| cell.0).collect();
    marked.sort_unstable();
    let once = marked.windows(2).all(|pair| pair[0] != pair[1]);
    let shape =
        past.segments.len() == past.marks.len() + 1 || past.segments.is_empty() && past.marks.is_empty();
    let ordered = past.segments.iter().flatten().all(|set| set.windows(2).all(|pair| pair[0] < pair[1]));
    let mut pairs = past.marks.iter().chain(past.segments.iter().flatten().flatten());
    once && shape && ordered && pairs.all(|(cell, _)| cell.index() < cells)
}

fn is_state(program: &Program, invariant: &Invariant, state: &Ideal) -> bool {
    let threads = program.threads();
    let stands = |(t, loc): (usize, &Loc)| {
        *loc == STUCK || invariant.places[t].get(loc.index()).is_some_and(|place| place.stop)
    };
    state.at.len() == threads.len()
        && state.at.iter().enumerate().all(stands)
        && state.registers.iter().map(Vec::len).eq(threads.iter().map(|t| t.registers().len()))
        && state.memory.len() == program.cells()
        && state.lock.is_none_or(|t| t.index() < threads.len())
        && state.pasts.len() == threads.len()
        && state.pasts.iter().all(|&past| (past as usize) < invariant.pasts.len())
}

/// The stored states by their keys: the pasts of each, spelled out.
pub struct Stored<'a> {
    symmetry: Symmetry,
    by_key: HashMap<Vec<Value>, Vec<Vec<u32>>, foldhash::fast::FixedState>,
    /// Pairs of pasts, and whether the one is below the other.
    below: HashMap<(u32, u32), bool, foldhash::fast::FixedState>,
    limits: &'a Limits,
}

impl<'a> Stored<'a> {
    pub fn new(symmetry: Symmetry, limits: &'a Limits) -> Stored<'a> {
        Stored { symmetry, by_key: HashMap::default(), below: HashMap::default(), limits }
    }

    pub fn insert(&mut self, machine: &mut Machine<'_>, point: &Point) {
        let point = self.symmetry.images(machine, point).next(&self.symmetry, machine).expect("there is one");
        let pasts = (0..point.pasts.len()).map(|t| machine.spelled_out(&point, t)).collect();
        self.by_key.entry(point.key).or_default().push(pasts);
    }

    /// Is there a state above this one?
    pub fn has(&mut self, machine: &mut Machine<'_>, point: &Point) -> Result<bool, Doubt> {
        let mut images = self.symmetry.images(machine, point);
        while let Some(image) = images.next(&self.symmetry, machine) {
            self.limits.spend(16 + image.key.len() / 8)?;
            let Some(stored) = self.by_key.get(&image.key) else { continue };
            let pasts: Vec<u32> = (0..image.pasts.len()).map(|t| machine.spelled_out(&image, t)).collect();
            for candidate in stored {
                self.limits.spend(pasts.len())?;
                let mut pairs = pasts.iter().zip(candidate);
                let below = &mut self.below;
                if pairs.all(|(&a, &b)| a == b || is_below(below, machine, a, b)) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

fn is_below(
    known: &mut HashMap<(u32, u32), bool, foldhash::fast::FixedState>,
    machine: &Machine<'_>,
    a: u32,
    b: u32,
) -> bool {
    *known.entry((a, b)).or_insert_with(|| machine.pasts()[a as usize].is_below(&machine.pasts()[b as usize]))
}

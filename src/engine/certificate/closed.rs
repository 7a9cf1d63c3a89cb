//! Sets of states that are closed under every step, by plain search with the machines of `certify` themselves:
//! invariants for SC, where nobody lags, and sets without a successful attack for robustness.

use crate::analysis::liveness::{Live, Watched};
use crate::certify::Doubt;
use crate::certify::attacks::{Attempts, Harmless};
use crate::certify::invariant::{Invariant, Machine, Past, Place, Point};
use crate::model::{Atom, Edge, Loc, Program, Reg, ThreadId, Value};
use crate::query::{Goal, Limit, Limits, Model};
use foldhash::fast::FixedState;
use std::collections::HashSet;
use std::hash::Hash;
use std::sync::atomic::Ordering;

/// All that SC reaches.
pub(crate) fn under_sc(program: &Program, goal: &Goal, limits: &Limits) -> Result<Invariant, Doubt> {
    let places = places(program, goal, limits)?;
    let mut machine = Machine::new(program, goal, Model::Sc, &places, limits)?;
    let initial = machine.initial()?;
    let points = all(initial, limits, |point: &Point, next| {
        (0..program.threads().len()).try_for_each(|t| machine.steps(point, t, next))
    })?;
    let states = points.iter().map(|point| machine.ideal(point)).collect();
    Ok(Invariant { places, pasts: vec![Past::default()], states, ..Invariant::default() })
}

/// All that attacks come to; nothing if the program's text refutes every one.
pub(crate) fn attacks(program: &Program, limits: &Limits) -> Result<Harmless, Doubt> {
    let places = places(program, &Goal::default(), limits)?;
    let mut attempts = Attempts::new(program, &places, limits)?;
    if attempts.is_refuted() {
        return Ok(Harmless::default());
    }
    let initial = attempts.initial()?;
    let states = all(initial, limits, |row: &Vec<Value>, next| attempts.steps(row, next))?;
    Ok(Harmless { places, states })
}

/// Whatever can be reached.
fn all<S: Clone + Eq + Hash>(
    initial: Vec<S>,
    limits: &Limits,
    mut steps: impl FnMut(&S, &mut Vec<S>) -> Result<(), Doubt>,
) -> Result<Vec<S>, Doubt> {
    let mut seen: HashSet<S, FixedState> = HashSet::default();
    let (mut states, mut next) = (Vec::new(), initial);
    let mut at = 0;
    loop {
        for state in next.drain(..) {
            if seen.insert(state.clone()) {
                states.push(state);
            }
        }
        limits.progress.store(states.len() as u64, Ordering::Relaxed);
        if let Some(most) = limits.states.filter(|&most| states.len() as u64 > most) {
            return Err(Limit::States(most).into());
        }
        let Some(state) = states.get(at) else { return Ok(states) };
        limits.spend(64)?;
        steps(state, &mut next)?;
        at += 1;
    }
}

/// What is said of each location. Nothing is relevant where nobody lags.
fn places(program: &Program, goal: &Goal, limits: &Limits) -> Result<Vec<Vec<Place>>, Limit> {
    let mut watched = Watched::nothing(program);
    let mut named = vec![HashSet::new(); program.threads().len()];
    goal.for_each_lasting_atom(&mut |atom| match atom {
        Atom::At(t, locs) => named[t.index()].extend(locs.iter().copied()),
        Atom::Reg(t, r) => watched.always[t.index()].push(*r),
        Atom::Mem(_) => {}
    });
    for clause in &goal.clauses {
        clause.pred.for_each_atom(&mut |atom| {
            if let Atom::Reg(t, r) = atom {
                watched.at_end[t.index()].push(*r);
            }
        });
    }
    let live = Live::of(program, &watched, |_, _| false, limits)?;
    let one = |t: ThreadId| {
        let (named, watched) = (&named[t.index()], &watched.always[t.index()]);
        let place = |loc: Loc| Place {
            stop: is_stop(program, t, loc, named, watched),
            live: live.at(t, loc).iter().map(|r| Reg(r as u16)).collect(),
            relevant: vec![],
        };
        program.thread(t).locations().map(place).collect()
    };
    Ok(program.thread_ids().map(one).collect())
}

/// A thread passes where all is local, the goal sees nothing, and every way leads to a higher number: so that
/// no cycle is without a stop.
fn is_stop(program: &Program, t: ThreadId, loc: Loc, named: &HashSet<Loc>, watched: &[Reg]) -> bool {
    let passes = |edge: &Edge| {
        edge.instr.is_local()
            && edge.to > loc
            && !named.contains(&edge.to)
            && edge.instr.target().is_none_or(|r| !watched.contains(&r))
    };
    let thread = program.thread(t);
    loc == thread.end() || named.contains(&loc) || !thread.edges_from(loc).iter().all(|(_, e)| passes(e))
}

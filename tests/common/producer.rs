//! Invariants by plain breadth-first search with the machine of the checker itself: slow, and exact unless sets
//! are joined. It does not look at the goal, so that what it finds for a program that is not safe is closed, too.

use overtake::certify::invariant::{Invariant, Machine, Past, Place, Point, Stored, Symmetry};
use overtake::limits::Limits;
use overtake::model::*;
use overtake::query::{Goal, Model};
use std::collections::{BTreeSet, HashSet, VecDeque};

/// What becomes of pasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Joining {
    /// They stay as they are.
    Exact,
    /// All sets of a segment become one.
    Segments,
}

/// Which locations are stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stops {
    All,
    /// As few as the goal and the graph allow, by a simple rule.
    Few,
}

/// An invariant with at most so many states, goal states included.
pub(crate) fn produce(
    program: &Program,
    goal: &Goal,
    model: Model,
    (stops, joining): (Stops, Joining),
    most: usize,
) -> Option<Invariant> {
    let limits = Limits::default();
    let places = places(program, goal, stops);
    let mut machine = Machine::new(program, goal, model, &places, &limits).expect("the tables are right");
    let mut stored = Stored::new(Symmetry::default(), &limits);
    let mut found: Vec<Point> = Vec::new();
    // A thread that goes wrong has no further steps.
    let mut todo: VecDeque<Point> = machine.initial().unwrap_or_default().into();
    while let Some(mut point) = todo.pop_front() {
        join(&mut machine, &mut point, joining);
        if stored.has(&mut machine, &point).expect("there are no limits") {
            continue;
        }
        if found.len() == most {
            return None;
        }
        stored.insert(&mut machine, &point);
        found.push(point.clone());
        for t in 0..program.threads().len() {
            let mut next = Vec::new();
            let _wrong = machine.steps(&point, t, &mut next);
            todo.extend(next);
        }
    }
    let states = found.iter().map(|point| machine.ideal(point)).collect();
    let pasts = machine.pasts().iter().map(|past| Past::clone(past)).collect();
    Some(Invariant { places, pasts, states, ..Invariant::default() })
}

/// Whatever can be reached, unless it is too much.
pub(crate) fn reach<S: Clone + Eq + std::hash::Hash>(
    initial: Vec<S>,
    most: usize,
    mut steps: impl FnMut(&S, &mut Vec<S>),
) -> Option<Vec<S>> {
    let mut seen: HashSet<S> = initial.iter().cloned().collect();
    let mut states: Vec<S> = seen.iter().cloned().collect();
    let mut at = 0;
    while let Some(state) = states.get(at).cloned() {
        let mut next = Vec::new();
        steps(&state, &mut next);
        states.extend(next.into_iter().filter(|state| seen.insert(state.clone())));
        at += 1;
        if states.len() > most {
            return None;
        }
    }
    Some(states)
}

fn join(machine: &mut Machine<'_>, point: &mut Point, joining: Joining) {
    if joining == Joining::Exact {
        return;
    }
    for number in point.pasts.iter_mut().filter(|number| **number != 0) {
        let mut past = Past::clone(&machine.pasts()[*number as usize]);
        for segment in past.segments.iter_mut().filter(|segment| segment.len() > 1) {
            let union: BTreeSet<(Addr, Value)> = segment.iter().flatten().copied().collect();
            *segment = vec![union.into_iter().collect()];
        }
        *number = machine.number(past);
    }
}

/// What can be said of each location, by plain fixpoints.
pub(crate) fn places(program: &Program, goal: &Goal, stops: Stops) -> Vec<Vec<Place>> {
    let one = |t: ThreadId| {
        let thread = program.thread(t);
        let (live, relevant) = (live(program, goal, t), relevant(program, t));
        let place = |loc: Loc| Place {
            stop: stops == Stops::All || is_stop(thread, goal, t, loc),
            live: live[loc.index()].iter().copied().collect(),
            relevant: relevant[loc.index()].iter().copied().collect(),
        };
        thread.locations().map(place).collect()
    };
    program.thread_ids().map(one).collect()
}

fn live(program: &Program, goal: &Goal, t: ThreadId) -> Vec<BTreeSet<Reg>> {
    let thread = program.thread(t);
    let mut always = BTreeSet::new();
    goal.for_each_lasting_atom(&mut |atom| {
        if let Atom::Reg(u, r) = atom
            && *u == t
        {
            always.insert(*r);
        }
    });
    let mut live = vec![always; thread.locations().count()];
    for clause in &goal.clauses {
        clause.pred.for_each_atom(&mut |atom| {
            if let Atom::Reg(u, r) = atom
                && *u == t
            {
                live[thread.end().index()].insert(*r);
            }
        });
    }
    to_fixpoint(thread, live, |edge, after| {
        let mut before: BTreeSet<Reg> =
            after.iter().copied().filter(|r| Some(*r) != edge.instr.target()).collect();
        edge.instr.uses(|r| {
            before.insert(r);
        });
        before
    })
}

fn relevant(program: &Program, t: ThreadId) -> Vec<BTreeSet<Addr>> {
    let thread = program.thread(t);
    let all = || (0..program.cells() as u32).map(Addr).collect::<BTreeSet<_>>();
    to_fixpoint(thread, vec![BTreeSet::new(); thread.locations().count()], |edge, after| {
        if edge.instr.drains_buffer() {
            return BTreeSet::new();
        }
        let Instr::Load { addr, .. } = &edge.instr else { return after.clone() };
        let loaded = match addr.constant() {
            Some(address) => program.cell(address).into_iter().collect(),
            None => all(),
        };
        after.union(&loaded).copied().collect()
    })
}

fn to_fixpoint<T: Ord + Clone>(
    thread: &Thread,
    mut sets: Vec<BTreeSet<T>>,
    before: impl Fn(&Edge, &BTreeSet<T>) -> BTreeSet<T>,
) -> Vec<BTreeSet<T>> {
    loop {
        let old = sets.clone();
        for (_, edge) in thread.edges() {
            let more = before(edge, &sets[edge.to.index()]);
            sets[edge.from.index()].extend(more);
        }
        if sets == old {
            return sets;
        }
    }
}

/// A thread need not stop where all is local, the goal looks at nothing, and all edges lead to higher numbers.
fn is_stop(thread: &Thread, goal: &Goal, t: ThreadId, loc: Loc) -> bool {
    let (mut named, mut watched) = (BTreeSet::new(), BTreeSet::new());
    goal.for_each_lasting_atom(&mut |atom| match atom {
        Atom::At(u, locs) if *u == t => named.extend(locs.iter().copied()),
        Atom::Reg(u, r) if *u == t => watched.extend([*r]),
        _ => {}
    });
    let passes = |edge: &Edge| {
        (edge.instr.is_local() || edge.instr == Instr::Fence)
            && edge.to > loc
            && !named.contains(&edge.to)
            && edge.instr.target().is_none_or(|r| !watched.contains(&r))
    };
    loc == thread.end() || named.contains(&loc) || !thread.edges_from(loc).iter().all(|(_, e)| passes(e))
}

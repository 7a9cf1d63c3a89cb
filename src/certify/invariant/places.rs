//! What does the invariant say of each location, and may it?
//!
//! Two kinds of claims need no run to be judged. *Passing through*: a thread need not stand at a location in any
//! stored state if all edges there are local, or fences, and no lasting clause can tell whether the thread is there,
//! already further on, or not yet there; since no cycle passes through such locations alone, it always comes to a
//! stop, or is stuck. *Being enough*: what is live or relevant at an edge's source includes what its instruction
//! uses, and what is live or relevant at its target. The latter is asked only of edges that are met in some state,
//! for values may rule the others out.

use super::Place;
use crate::certify::Doubt;
use crate::limits::{Limit, Limits};
use crate::model::{Addr, Atom, Edge, Instr, Loc, Program, Reg, Thread, ThreadId};
use crate::query::{Goal, Model};
use bit_set::BitSet;

/// A thread as the machine walks it.
pub(super) struct Course<'a> {
    pub spots: Vec<Spot<'a>>,
    /// The registers that lasting clauses look at.
    pub watched: BitSet,
}

/// A location, with what the invariant says of it.
pub(super) struct Spot<'a> {
    pub stop: bool,
    /// One of the edges is a store.
    pub stores: bool,
    pub live: BitSet,
    /// The registers that are not.
    pub dead: Vec<usize>,
    pub relevant: Vec<Addr>,
    pub relevant_set: BitSet,
    pub ways: Vec<PassedThrough<'a>>,
}

/// An edge.
pub(super) struct PassedThrough<'a> {
    pub edge: &'a Edge,
    /// Why it may not be taken, if the invariant says too little for that.
    pub flaw: Option<&'static str>,
}

/// The threads of a program, if what is said of their locations may be said.
pub(super) fn graphs<'a>(
    program: &'a Program,
    goal: &Goal,
    model: Model,
    places: &[Vec<Place>],
    limits: &Limits,
) -> Result<Vec<Course<'a>>, Doubt> {
    let one = |t: ThreadId| graph(program, goal, model, t, &places[t.index()], limits);
    program.thread_ids().map(one).collect()
}

fn graph<'a>(
    program: &'a Program,
    goal: &Goal,
    model: Model,
    t: ThreadId,
    places: &[Place],
    limits: &Limits,
) -> Result<Course<'a>, Doubt> {
    let thread = program.thread(t);
    let sight = Sight::of(goal, t);
    let registers = thread.registers().len();
    let mut spots = Vec::with_capacity(places.len());
    for (place, loc) in places.iter().zip(thread.locations()) {
        limits.spend(4 + registers + place.relevant.len())?;
        let live: BitSet = place.live.iter().map(|r| r.index()).collect();
        spots.push(Spot {
            stop: place.stop,
            stores: false,
            dead: (0..registers).filter(|&r| !live.contains(r)).collect(),
            live,
            relevant: place.relevant.clone(),
            relevant_set: place.relevant.iter().map(|cell| cell.index()).collect(),
            ways: thread
                .edges_from(loc)
                .into_iter()
                .map(|(_, edge)| PassedThrough { edge, flaw: None })
                .collect(),
        });
    }
    for loc in thread.locations() {
        for k in 0..spots[loc.index()].ways.len() {
            limits.spend(4 + registers / 8)?;
            let edge = spots[loc.index()].ways[k].edge;
            let flaw = flaw(edge, &spots[loc.index()], &spots[edge.to.index()], model);
            spots[loc.index()].ways[k].flaw = flaw;
            spots[loc.index()].stores |= matches!(edge.instr, Instr::Store { .. });
        }
    }
    if let Some((loc, why)) = wrongly_passed(thread, places, &sight) {
        let (name, place) = (thread.name(), thread.location_name(loc));
        return Err(Doubt::refuted(format!("thread {name} must stop at {place}: {why}")));
    }
    if let Some(loc) = endless(&spots, limits)? {
        let (name, place) = (thread.name(), thread.location_name(loc));
        return Err(Doubt::refuted(format!("thread {name} stops nowhere on a cycle through {place}")));
    }
    Ok(Course { spots, watched: sight.registers })
}

/// What says too little about the ends of an edge for it to be taken?
fn flaw(edge: &Edge, from: &Spot<'_>, to: &Spot<'_>, model: Model) -> Option<&'static str> {
    let mut unknown = false;
    edge.instr.uses(|r| unknown |= !from.live.contains(r.index()));
    let target = edge.instr.target().map(Reg::index);
    if unknown {
        return Some("uses a register that is not live before it");
    }
    if to.live.iter().any(|r| Some(r) != target && !from.live.contains(r)) {
        return Some("leads to where a register is live that is not live before it");
    }
    let lags_on = model == Model::Tso && !edge.instr.drains_buffer();
    (lags_on && !to.relevant_set.is_subset(&from.relevant_set))
        .then_some("leads to where a cell is relevant that is not relevant before it")
}

/// What lasting clauses see of a thread.
struct Sight {
    registers: BitSet,
    locations: BitSet,
    /// Arriving at a location can only help them to hold.
    growing: bool,
}

impl Sight {
    fn of(goal: &Goal, t: ThreadId) -> Sight {
        let (mut registers, mut locations) = (BitSet::new(), BitSet::new());
        goal.for_each_lasting_atom(&mut |atom| match atom {
            Atom::At(u, locs) if *u == t => locations.extend(locs.iter().map(|l| l.index())),
            Atom::Reg(u, r) if *u == t => registers.extend([r.index()]),
            _ => {}
        });
        Sight { registers, locations, growing: goal.grows_with_arrivals() }
    }

    /// Does the goal say the same of the thread before and after the edge? Or, if `growing` goals only gain by
    /// its arrival at `gained`, no less where that is.
    fn misses(&self, edge: &Edge, gained: Loc, lost: Loc) -> bool {
        let assigns = edge.instr.target().is_some_and(|r| self.registers.contains(r.index()));
        let named = |loc: Loc| self.locations.contains(loc.index());
        !assigns && !named(lost) && (self.growing || !named(gained))
    }
}

/// Does the instruction concern nobody else? A fence only makes its thread drop its past.
pub(super) fn is_passed(instr: &Instr) -> bool {
    instr.is_local() || instr.is_fence()
}

/// A location through which a thread may not pass, if there is one, and why.
///
/// Let a clause hold while the thread is at such a location, whatever the others have done meanwhile. Then it
/// holds after the thread has gone on to its next stop, or it did when the thread was at its last one: if all
/// that it does on the way to the one is local and missed by the goal, or all that it did since the other.
fn wrongly_passed(thread: &Thread, places: &[Place], sight: &Sight) -> Option<(Loc, &'static str)> {
    let passing = |loc: Loc| !places[loc.index()].stop;
    for loc in thread.locations().filter(|&loc| passing(loc)) {
        if loc == thread.end() {
            return Some((loc, "that is its end"));
        }
        if !thread.edges_from(loc).iter().all(|(_, e)| is_passed(&e.instr)) {
            return Some((loc, "not all that it can do there is local"));
        }
        if sight.locations.contains(loc.index()) {
            return Some((loc, "the goal names the place"));
        }
    }
    let open = |e: &Edge| passing(e.to);
    let harmless = |i: &Instr| is_passed(i) || matches!(i, Instr::Load { .. });
    let seen_ahead = thread.edges().filter(|(_, e)| passing(e.from) && !sight.misses(e, e.to, e.from));
    let seen_ahead = thread.reaching(seen_ahead.map(|(_, e)| e.from), open);
    let seen_behind = thread.edges().filter(|(_, e)| !harmless(&e.instr) || !sight.misses(e, e.from, e.to));
    let seen_behind = seen_behind.map(|(_, e)| e.to).chain([thread.initial()]);
    let seen_behind = thread.reachable_from(seen_behind.filter(|&loc| passing(loc)), open);
    let seen = |loc: &Loc| passing(*loc) && seen_ahead[loc.index()] && seen_behind[loc.index()];
    thread.locations().find(seen).map(|loc| (loc, "the goal sees what happens on the way"))
}

/// A location on a cycle without stops, if there is one. Locations without an edge to one that is left are
/// taken away until there are none.
fn endless(spots: &[Spot<'_>], limits: &Limits) -> Result<Option<Loc>, Limit> {
    let passing = |loc: usize| !spots[loc].stop;
    let mut left = vec![0usize; spots.len()];
    let mut before = vec![Vec::new(); spots.len()];
    for (loc, spot) in spots.iter().enumerate().filter(|(loc, _)| passing(*loc)) {
        limits.spend(1 + spot.ways.len())?;
        for way in spot.ways.iter().filter(|way| passing(way.edge.to.index())) {
            left[loc] += 1;
            before[way.edge.to.index()].push(loc);
        }
    }
    let mut done: Vec<usize> = (0..spots.len()).filter(|&loc| left[loc] == 0).collect();
    while let Some(loc) = done.pop() {
        limits.spend(1)?;
        for &from in &before[loc] {
            left[from] -= 1;
            if left[from] == 0 {
                done.push(from);
            }
        }
    }
    Ok(left.iter().position(|&edges| edges > 0).map(|loc| Loc(loc as u32)))
}

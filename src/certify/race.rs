//! Is this a triangular race? Judged from the run alone, with the plain SC machine.
//!
//! The conditions are those of the definition (`[Owens10]`), one by one; nothing here knows how the run was
//! found. Blocks ask for one more. A block is one step, and whether it writes may depend on what it reads:
//! under TSO it may read what was there before the thread's stores, which no SC run with these stores shows.
//! So a block counts as a write when it begins, if by its text it may write what was loaded and read
//! something else that the thread stores. What no value lets a thread come to is no part of its text here.

use super::{Confirmed, Doubt, MIXED_SIZES};
use crate::analysis::interval::{Interval, Intervals};
use crate::limits::{Limit, Limits};
use crate::model::{Edge, Instr, Loc, Program, ThreadId, Value};
use crate::query::{Event, EventKind, Model, Race};
use crate::semantics::replay::{Mismatch, Stopped, replay};
use thiserror::Error;

/// The condition that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Broken {
    #[error("does not replay: {0}")]
    Replay(Mismatch),
    #[error("does not have a store, a load and a write in this order")]
    Order,
    #[error("is not between two threads")]
    Threads,
    #[error("begins with something that is not a store outside blocks")]
    Store,
    #[error("does not go on with a load")]
    Load,
    #[error("has a step between store and load that waits for the buffer")]
    Barrier,
    #[error("has a load that the own buffer answers")]
    Buffered,
    #[error("has a step of its thread between load and write")]
    Moved,
    #[error("does not end with a write to what was loaded")]
    Write,
}

/// The claim, if it is a triangular race of the program.
pub fn race(program: &Program, claim: Race, limits: &Limits) -> Result<Confirmed<Race>, Doubt> {
    if program.mixes_sizes() {
        return Err(Doubt::refuted(format!("the race {MIXED_SIZES}")));
    }
    let verdict = check(program, &claim, limits)?;
    verdict.map_err(|broken| Doubt::refuted(format!("the race {broken}")))?;
    Ok(Confirmed(claim))
}

/// Is the run a computation under SC, and are the three events a triangular race in it?
pub fn check(program: &Program, race: &Race, limits: &Limits) -> Result<Result<(), Broken>, Limit> {
    match replay(program, Model::Sc, &race.events, limits) {
        Ok(_) => {}
        Err(Stopped::Mismatch(mismatch)) => return Ok(Err(Broken::Replay(mismatch))),
        Err(Stopped::Limit(limit)) => return Err(limit),
    }
    let known = Intervals::of(program, limits)?;
    Ok(conditions(program, &known, race))
}

/// The conditions on the events of a computation.
fn conditions(program: &Program, known: &Intervals, race: &Race) -> Result<(), Broken> {
    let Race { events, store, load, write } = race;
    let (store, load, write) = (*store, *load, *write);
    let require = |holds: bool, broken: Broken| if holds { Ok(()) } else { Err(broken) };
    require(store < load && load < write && write < events.len(), Broken::Order)?;
    let t = events[store].thread();
    require(events[load].thread() == t && events[write].thread() != t, Broken::Threads)?;
    let own = |from: usize, to: usize| events[from..to].iter().filter(move |e| e.thread() == t);
    let fine = |e: &Event, kind: EventKind| e.kind == kind && e.trap.is_none();
    let lock = |e: &&Event| matches!(instr(program, e), Instr::Lock | Instr::Unlock);
    let held = own(0, store).rfind(lock).is_some_and(|e| *instr(program, e) == Instr::Lock);
    require(fine(&events[store], EventKind::Store) && !held, Broken::Store)?;
    require(fine(&events[load], EventKind::Load), Broken::Load)?;
    require(
        !own(store, load).any(|e| matches!(e.kind, EventKind::Fence | EventKind::Locked)),
        Broken::Barrier,
    )?;
    let answers = |e: &Event| e.kind == EventKind::Store && e.address == events[load].address;
    require(!own(store, load).any(answers), Broken::Buffered)?;
    require(own(load + 1, write).next().is_none(), Broken::Moved)?;
    let cell = events[load].address.map(|a| a.0 as Value);
    let block = cell.is_some_and(|cell| begins_block(program, known, t, &events[write], cell));
    let first = first_write(program, &events[..=write], load);
    require(first == Some(write) || first.is_none() && block, Broken::Write)
}

/// Does another thread begin a block that may write the cell, and reads something else that thread `t`
/// stores?
pub fn begins_block(program: &Program, known: &Intervals, t: ThreadId, event: &Event, cell: Value) -> bool {
    let u = event.thread();
    let edge = program.thread(u).edge(event.edge);
    let pairs = || in_block(program, known, t, u, edge);
    edge.instr == Instr::Lock && pairs().iter().any(|pair| pair.matters(cell))
}

/// A write and a read of one block, by what their addresses may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    pub written: Interval,
    pub read: Interval,
}

impl Pair {
    fn matters(self, cell: Value) -> bool {
        let may_write = self.written.lo <= cell && cell <= self.written.hi;
        may_write && self.read != Interval::constant(cell)
    }
}

/// The writes of a block of thread `u`, each with the reads of other cells that thread `t` may store.
pub fn in_block(program: &Program, known: &Intervals, t: ThreadId, u: ThreadId, lock: &Edge) -> Vec<Pair> {
    let inside = inside(program, known, u, lock.to);
    let last = program.cells() as Value - 1;
    let address = |t: ThreadId, e: &Edge| {
        let Interval { lo, hi } = known.address(t, e);
        Interval { lo: lo.max(0), hi: hi.min(last) }
    };
    let is_store = |e: &Edge| matches!(e.instr, Instr::Store { .. }) && known.is_feasible(t, e);
    let stores = program.thread(t).edges().filter(|(_, e)| is_store(e));
    let stored: Vec<Interval> = stores.map(|(_, e)| address(t, e)).collect();
    let may_store = |read: Interval| stored.iter().any(|s| s.lo.max(read.lo) <= s.hi.min(read.hi));
    let mut pairs = Vec::new();
    for write in inside.iter().filter(|e| e.instr.writes_memory()) {
        for read in inside.iter().filter(|e| e.instr.reads_memory()) {
            let pair = Pair { written: address(u, write), read: address(u, read) };
            let same = pair.read.lo == pair.read.hi && pair.read == pair.written;
            if !same && may_store(pair.read) && !pairs.contains(&pair) {
                pairs.push(pair);
            }
        }
    }
    pairs
}

/// The edges of a thread that may be taken before the next `unlock`.
fn inside<'a>(program: &'a Program, known: &Intervals, u: ThreadId, start: Loc) -> Vec<&'a Edge> {
    let thread = program.thread(u);
    let mut seen = vec![false; thread.graph().node_count()];
    let (mut edges, mut todo) = (Vec::new(), vec![start]);
    while let Some(loc) = todo.pop() {
        if !std::mem::replace(&mut seen[loc.index()], true) {
            let from = thread.edges_from(loc).into_iter().map(|(_, e)| e);
            let on = |e: &&Edge| e.instr != Instr::Unlock && known.is_feasible(u, e);
            let from: Vec<&Edge> = from.filter(on).collect();
            todo.extend(from.iter().map(|e| e.to));
            edges.extend(from);
        }
    }
    edges
}

/// The first event after a load that writes what it has read.
pub fn first_write(program: &Program, events: &[Event], load: usize) -> Option<usize> {
    let writes = |e: &Event| e.address == events[load].address && writes(program, e);
    events[load + 1..].iter().position(writes).map(|k| load + 1 + k)
}

/// Does the event write? A locked instruction always does: a `cas` that fails leaves what it found, and that
/// is a write as happens-before has it.
pub fn writes(program: &Program, event: &Event) -> bool {
    instr(program, event).writes_memory() && event.trap.is_none()
}

fn instr<'a>(program: &'a Program, event: &Event) -> &'a Instr {
    &program.thread(event.thread()).edge(event.edge).instr
}

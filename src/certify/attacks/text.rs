//! Which attacks does the program's text leave open? Those that it refutes cannot succeed: there is no way from
//! the store to the load without a fence or a locked instruction, the load finds the store's own value, nobody
//! else writes what is loaded or touches what is stored, or no chain of conflicts leads from the load back to
//! the store (`[ShashaSnir88]`).
//!
//! Plain graphs and plain sets: an address that is not a constant may be any cell.

use crate::limits::{Limit, Limits};
use crate::model::{EdgeId, Instr, Loc, Program, Thread, ThreadId};
use bit_set::BitSet;
use std::collections::BTreeMap;

/// Cells that are read and written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Touched {
    pub reads: BitSet,
    pub writes: BitSet,
}

impl Touched {
    fn by(program: &Program, instr: &Instr) -> Touched {
        let cells: BitSet = match instr.address().map(|address| address.constant()) {
            None => BitSet::new(),
            Some(Some(address)) => program.cell(address).map(|cell| cell.index()).into_iter().collect(),
            Some(None) => (0..program.cells()).collect(),
        };
        let if_so = |so: bool| if so { cells.clone() } else { BitSet::new() };
        Touched { reads: if_so(instr.reads_memory()), writes: if_so(instr.writes_memory()) }
    }

    fn add(&mut self, other: &Touched) {
        self.reads.union_with(&other.reads);
        self.writes.union_with(&other.writes);
    }

    fn conflicts(&self, other: &Touched) -> bool {
        !self.writes.is_disjoint(&other.writes)
            || !self.writes.is_disjoint(&other.reads)
            || !self.reads.is_disjoint(&other.writes)
    }

    pub(crate) fn touches(&self, cell: usize) -> bool {
        self.reads.contains(cell) || self.writes.contains(cell)
    }

    fn meets(&self, cells: &BitSet) -> bool {
        !self.reads.is_disjoint(cells) || !self.writes.is_disjoint(cells)
    }
}

/// Per thread and store, the loads that are left.
pub(super) type Open = BTreeMap<(ThreadId, EdgeId), Vec<EdgeId>>;

pub(super) fn open(program: &Program, limits: &Limits) -> Result<Open, Limit> {
    let mut open = Open::new();
    let futures = futures(program, limits)?;
    for t in program.thread_ids() {
        let thread = program.thread(t);
        let is = |kind: fn(&Instr) -> bool| thread.edges().filter(move |(_, e)| kind(&e.instr));
        let loads: Vec<_> = is(|i| matches!(i, Instr::Load { .. })).collect();
        let mut after = Vec::new();
        for (_, load) in &loads {
            after.push(after_load(program, t, &Touched::by(program, &load.instr), &futures, limits)?);
        }
        for (id, store) in is(|i| matches!(i, Instr::Store { .. })) {
            limits.spend(thread.graph().edge_count() + loads.len())?;
            let stored = Touched::by(program, &store.instr).writes;
            let ahead = thread.reachable_from([store.to], |e| !e.instr.drains_buffer());
            let own = |i: &Instr| {
                let address = |i: &Instr| i.address().and_then(|a| a.constant());
                address(i).is_some() && address(i) == address(&store.instr)
            };
            let left = loads.iter().zip(&after).filter(|((_, load), after)| {
                ahead[load.from.index()] && !own(&load.instr) && after.meets(&stored)
            });
            let left: Vec<EdgeId> = left.map(|((load, _), _)| *load).collect();
            if !left.is_empty() {
                open.insert((t, id), left);
            }
        }
    }
    Ok(open)
}

/// All that other threads may touch by events that happen after a load of the thread.
fn after_load(
    program: &Program,
    t: ThreadId,
    load: &Touched,
    futures: &[Vec<Touched>],
    limits: &Limits,
) -> Result<Touched, Limit> {
    let mut after = Touched::default();
    loop {
        let mut known = after.clone();
        known.add(load);
        let mut more = after.clone();
        for u in program.thread_ids().filter(|&u| u != t) {
            let thread = program.thread(u);
            // A block is one event: with one of its accesses, those before it happen after the load too.
            let whole = thread.edges().any(|(_, e)| e.instr == Instr::Lock);
            for (_, edge) in thread.edges() {
                limits.spend(4 + program.cells() / 32)?;
                if known.conflicts(&Touched::by(program, &edge.instr)) {
                    let from = if whole { thread.initial() } else { edge.from };
                    more.add(&futures[u.index()][from.index()]);
                }
            }
        }
        if more == after {
            return Ok(after);
        }
        after = more;
    }
}

/// Per thread and location, what the thread may touch from there on.
pub(super) fn futures(program: &Program, limits: &Limits) -> Result<Vec<Vec<Touched>>, Limit> {
    let one = |thread: &Thread| {
        let at = |loc: Loc| {
            limits.spend(thread.graph().edge_count() * (1 + program.cells() / 32))?;
            let reachable = thread.reachable_from([loc], |_| true);
            let mut touched = Touched::default();
            for (_, edge) in thread.edges().filter(|(_, e)| reachable[e.from.index()]) {
                touched.add(&Touched::by(program, &edge.instr));
            }
            Ok(touched)
        };
        thread.locations().map(at).collect()
    };
    program.threads().iter().map(one).collect()
}

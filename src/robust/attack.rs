//! Which stores could be overtaken by which loads, and matter? An *attack* is a thread, a store that it delays
//! and a later load that overtakes it. One delaying thread suffices (lazy-tso-reachability, Lemma 6), so trying
//! all attacks settles robustness.
//!
//! Most attacks are refuted by the program's text: every way from the store to the load has a fence or a
//! locked instruction; nobody else writes what is loaded or touches what is stored; or the other threads have
//! no chain of conflicts from the load back to the store (the critical cycles of Shasha and Snir). What is left
//! goes to `machine`, which looks for a run.
//! Invariant: sets of cells are over-approximated, so an attack that is dropped here cannot succeed.

use crate::model::access::{self, Access, Futures};
use crate::model::interval::Intervals;
use crate::model::{Edge, EdgeId, Instr, Loc, Program, Thread, ThreadId};
use crate::verdict::AttackCount;
use std::collections::HashMap;

/// A store that may be worth delaying.
#[derive(Clone, Debug)]
pub struct DelayedStore {
    pub thread: ThreadId,
    pub edge: EdgeId,
    /// Per edge of the thread whether it is a load that may be worth overtaking the store.
    pub loads: Vec<bool>,
    /// Per location whether such a load can still be reached from it without a fence.
    pub leads_on: Vec<bool>,
}

/// The attacks that the program's text does not refute.
#[derive(Clone, Debug, Default)]
pub struct Attacks {
    pub stores: Vec<DelayedStore>,
    pub count: AttackCount,
}

/// Whether attacks are refuted by the text, or all of them are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pruning {
    On,
    Off,
}

impl Attacks {
    pub fn of(program: &Program, pruning: Pruning) -> Attacks {
        let mut text = Text::new(program);
        let mut attacks = Attacks::default();
        for t in program.thread_ids() {
            for (edge, _) in edges_where(program.thread(t), |i| matches!(i, Instr::Store { .. })) {
                attacks.add(program, &mut text, t, edge, pruning);
            }
        }
        attacks
    }

    /// Is the attack one of those that are left?
    pub fn contain(&self, thread: ThreadId, store: EdgeId, load: EdgeId) -> bool {
        let of = |s: &&DelayedStore| s.thread == thread && s.edge == store;
        self.stores.iter().find(of).is_some_and(|s| s.loads[load.index()])
    }

    fn add(&mut self, program: &Program, text: &mut Text, t: ThreadId, store: EdgeId, pruning: Pruning) {
        let thread = program.thread(t);
        let between = unfenced(thread, thread.edge(store).to);
        let mut loads = vec![false; thread.graph().edge_count()];
        for (load, edge) in edges_where(thread, |i| matches!(i, Instr::Load { .. })) {
            self.count.total += 1;
            let verdict = match between[edge.from.index()] {
                false => Refuted::ByFence,
                true if pruning == Pruning::On => text.judge(t, store, load),
                true => Refuted::Not,
            };
            match verdict {
                Refuted::ByFence => self.count.fenced += 1,
                Refuted::ByAccess => self.count.private += 1,
                Refuted::ByCycle => self.count.acyclic += 1,
                Refuted::Not => {
                    self.count.left += 1;
                    loads[load.index()] = true;
                }
            }
        }
        if loads.contains(&true) {
            let leads_on = leading_on(thread, &loads);
            self.stores.push(DelayedStore { thread: t, edge: store, loads, leads_on });
        }
    }
}

enum Refuted {
    /// There is no way from the store to the load, or a fence on each.
    ByFence,
    /// Nobody else writes what is loaded, or touches what is stored; or the load reads the store's own value.
    ByAccess,
    /// No chain of conflicts leads from the load back to the store.
    ByCycle,
    Not,
}

/// What instructions may touch, and what may come to happen after a load.
struct Text<'a> {
    program: &'a Program,
    intervals: Intervals,
    futures: Futures,
    has_blocks: Vec<bool>,
    /// Per thread and cells loaded, all that other threads may touch after such a load.
    after: HashMap<(ThreadId, u64), Access>,
}

impl<'a> Text<'a> {
    fn new(program: &'a Program) -> Self {
        let intervals = Intervals::of(program);
        let futures = Futures::of(program, &intervals, |_, _| false);
        let has_blocks = |t: &Thread| t.edges().any(|(_, e)| matches!(e.instr, Instr::Lock));
        let has_blocks = program.threads().iter().map(has_blocks).collect();
        Text { program, intervals, futures, has_blocks, after: HashMap::new() }
    }

    fn access(&self, t: ThreadId, edge: &Edge) -> Access {
        access::of_instr(self.program, &edge.instr, || self.intervals.address(t, edge)).cells()
    }

    fn judge(&mut self, t: ThreadId, store: EdgeId, load: EdgeId) -> Refuted {
        let thread = self.program.thread(t);
        let (store, load) = (thread.edge(store), thread.edge(load));
        let constant = |e: &Edge| e.instr.address().and_then(|a| a.constant());
        if constant(store).is_some() && constant(store) == constant(load) {
            return Refuted::ByAccess;
        }
        let stored = self.access(t, store).writes;
        let loaded = self.access(t, load).reads;
        let others = self.others(t);
        if loaded & others.writes == 0 || stored & (others.reads | others.writes) == 0 {
            return Refuted::ByAccess;
        }
        let after = self.after_load(t, loaded);
        if stored & (after.reads | after.writes) == 0 { Refuted::ByCycle } else { Refuted::Not }
    }

    /// All that threads other than `t` ever touch.
    fn others(&self, t: ThreadId) -> Access {
        let others = self.program.thread_ids().filter(|&u| u != t);
        others
            .map(|u| self.futures.at(u, self.program.thread(u).initial()).cells())
            .fold(Access::NONE, Access::union)
    }

    /// All that threads other than `t` may touch by events that happen after a load of `t`.
    fn after_load(&mut self, t: ThreadId, loaded: u64) -> Access {
        if let Some(&known) = self.after.get(&(t, loaded)) {
            return known;
        }
        let load = Access { reads: loaded, writes: 0 };
        let mut after = Access::NONE;
        loop {
            let more = self.helped(t, after.union(load)).union(after);
            if more == after {
                break;
            }
            after = more;
        }
        self.after.insert((t, loaded), after);
        after
    }

    /// What other threads may touch once they have done something that conflicts with `after`.
    fn helped(&self, t: ThreadId, after: Access) -> Access {
        let of = |u: ThreadId| {
            let thread = self.program.thread(u);
            // A block is one event: with one of its accesses, those before it happen after the load too.
            let all = move |edge: &Edge| if self.has_blocks[u.index()] { thread.initial() } else { edge.from };
            let helping = thread.edges().filter(move |(_, e)| after.conflicts(self.access(u, e)));
            helping.map(move |(_, e)| self.futures.at(u, all(e)).cells())
        };
        self.program.thread_ids().filter(|&u| u != t).flat_map(of).fold(Access::NONE, Access::union)
    }
}

fn edges_where(thread: &Thread, which: impl Fn(&Instr) -> bool) -> impl Iterator<Item = (EdgeId, &Edge)> {
    thread.edges().filter(move |(_, e)| which(&e.instr))
}

/// Can a delayed store stay in the buffer past this instruction?
fn may_be_overtaken_by(instr: &Instr) -> bool {
    !matches!(instr, Instr::Fence | Instr::Rmw { .. } | Instr::Lock | Instr::Unlock)
}

/// The locations that can be reached from one without a fence or locked instruction.
fn unfenced(thread: &Thread, from: Loc) -> Vec<bool> {
    let mut reached = vec![false; thread.graph().node_count()];
    let mut todo = vec![from];
    while let Some(loc) = todo.pop() {
        if !std::mem::replace(&mut reached[loc.index()], true) {
            let edges = thread.edges_from(loc).into_iter().filter(|(_, e)| may_be_overtaken_by(&e.instr));
            todo.extend(edges.map(|(_, e)| e.to));
        }
    }
    reached
}

/// The locations from which one of the loads can be reached without a fence or locked instruction.
fn leading_on(thread: &Thread, loads: &[bool]) -> Vec<bool> {
    let mut into: Vec<Vec<Loc>> = vec![Vec::new(); thread.graph().node_count()];
    for (_, edge) in edges_where(thread, may_be_overtaken_by) {
        into[edge.to.index()].push(edge.from);
    }
    let mut todo: Vec<Loc> =
        thread.edges().filter(|(id, _)| loads[id.index()]).map(|(_, e)| e.from).collect();
    let mut reached = vec![false; into.len()];
    while let Some(loc) = todo.pop() {
        if !std::mem::replace(&mut reached[loc.index()], true) {
            todo.extend(&into[loc.index()]);
        }
    }
    reached
}

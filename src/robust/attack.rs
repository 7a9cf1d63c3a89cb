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
use crate::model::{Edge, EdgeId, Instr, Loc, Program, Thread, ThreadId, Value};
use crate::verdict::{AttackCount, Limit, Limits};
use std::collections::HashMap;

/// A store that may be worth delaying.
#[derive(Clone, Debug)]
pub struct DelayedStore {
    pub thread: ThreadId,
    pub edge: EdgeId,
    /// The loads that may be worth overtaking it, in ascending order.
    pub loads: Vec<EdgeId>,
    /// The locations on the way from it to such a load.
    pub leads_on: Vec<Loc>,
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
    pub fn of(program: &Program, pruning: Pruning, limits: &Limits) -> Result<Attacks, Limit> {
        let text = Text::new(program, limits)?;
        let mut attacks = Attacks::default();
        for t in program.thread_ids() {
            attacks.add(&text, t, pruning, limits)?;
        }
        Ok(attacks)
    }

    /// Is the attack one of those that are left?
    pub fn contain(&self, thread: ThreadId, store: EdgeId, load: EdgeId) -> bool {
        let of = |s: &&DelayedStore| s.thread == thread && s.edge == store;
        self.stores.iter().find(of).is_some_and(|s| s.loads.contains(&load))
    }

    /// Are the same attacks left of all these threads, whose graphs are the same?
    pub fn are_alike(&self, threads: &[usize]) -> bool {
        let of = |t: usize| {
            let own = self.stores.iter().filter(move |s| s.thread.index() == t);
            own.map(|s| (s.edge, &s.loads))
        };
        threads.windows(2).all(|pair| of(pair[0]).eq(of(pair[1])))
    }

    fn add(&mut self, text: &Text<'_>, t: ThreadId, pruning: Pruning, limits: &Limits) -> Result<(), Limit> {
        let thread = text.program.thread(t);
        let all_loads = edges_where(thread, |i| matches!(i, Instr::Load { .. })).count();
        let (mut roads, mut judge) = (Roads::new(thread), Judge::new(text, t));
        for (store, edge) in edges_where(thread, |i| matches!(i, Instr::Store { .. })) {
            let region = roads.mark_unfenced(edge.to);
            limits.spend(4 * region.len())?;
            let mut loads: Vec<EdgeId> =
                region.iter().flat_map(|l| &roads.loads[l.index()]).copied().collect();
            loads.sort_unstable();
            self.count.total += all_loads as u64;
            self.count.fenced += (all_loads - loads.len()) as u64;
            loads.retain(|&load| {
                let verdict = if pruning == Pruning::On { judge.verdict(store, load) } else { Refuted::Not };
                let count = match verdict {
                    Refuted::ByAccess => &mut self.count.private,
                    Refuted::ByCycle => &mut self.count.acyclic,
                    Refuted::Not => &mut self.count.left,
                };
                *count += 1;
                verdict == Refuted::Not
            });
            let leads_on = roads.unmark_leading_to(loads.iter().map(|&l| thread.edge(l).from).collect());
            roads.unmark(&region);
            if !loads.is_empty() {
                self.stores.push(DelayedStore { thread: t, edge: store, loads, leads_on });
            }
        }
        Ok(())
    }
}

/// Why the search can do without an attack that no fence forbids.
#[derive(Clone, Copy, PartialEq)]
enum Refuted {
    /// Nobody else writes what is loaded, or touches what is stored; or the load reads the store's own value.
    ByAccess,
    /// No chain of conflicts leads from the load back to the store.
    ByCycle,
    Not,
}

/// What instructions may touch.
struct Text<'a> {
    program: &'a Program,
    /// Per thread and edge.
    access: Vec<Vec<Access>>,
    futures: Futures,
    has_blocks: Vec<bool>,
}

impl<'a> Text<'a> {
    fn new(program: &'a Program, limits: &Limits) -> Result<Self, Limit> {
        let intervals = Intervals::of(program, limits)?;
        let of =
            |t: ThreadId, e: &Edge| access::of_instr(program, &e.instr, || intervals.address(t, e)).cells();
        let all = |t: ThreadId| program.thread(t).edges().map(|(_, e)| of(t, e)).collect();
        let has_blocks = |t: &Thread| t.edges().any(|(_, e)| matches!(e.instr, Instr::Lock));
        Ok(Text {
            program,
            access: program.thread_ids().map(all).collect(),
            futures: Futures::of(program, &intervals, |_, _| false, limits)?,
            has_blocks: program.threads().iter().map(has_blocks).collect(),
        })
    }

    fn others(&self, t: ThreadId) -> impl Iterator<Item = ThreadId> {
        self.program.thread_ids().filter(move |&u| u != t)
    }

    /// All that threads other than `t` may touch by events that happen after a load of `t`.
    fn after_load(&self, t: ThreadId, loaded: u64) -> Access {
        let load = Access { reads: loaded, writes: 0 };
        let mut after = Access::NONE;
        loop {
            let more = self.helped(t, after.union(load)).union(after);
            if more == after {
                return after;
            }
            after = more;
        }
    }

    /// What other threads may touch once they have done something that conflicts with `after`.
    fn helped(&self, t: ThreadId, after: Access) -> Access {
        let of = |u: ThreadId| {
            let thread = self.program.thread(u);
            // A block is one event: with one of its accesses, those before it happen after the load too.
            let all =
                move |edge: &Edge| if self.has_blocks[u.index()] { thread.initial() } else { edge.from };
            let helps = move |id: EdgeId| after.conflicts(self.access[u.index()][id.index()]);
            let helping = thread.edges().filter(move |(id, _)| helps(*id));
            helping.map(move |(_, e)| self.futures.at(u, all(e)).cells())
        };
        self.others(t).flat_map(of).fold(Access::NONE, Access::union)
    }
}

/// What the text says against the attacks of one thread.
struct Judge<'a> {
    text: &'a Text<'a>,
    t: ThreadId,
    /// All that other threads ever touch.
    others: Access,
    /// Per cells loaded, all that other threads may touch after such a load.
    after: HashMap<u64, Access>,
}

impl<'a> Judge<'a> {
    fn new(text: &'a Text<'a>, t: ThreadId) -> Self {
        let all = |u: ThreadId| text.futures.at(u, text.program.thread(u).initial()).cells();
        let others = text.others(t).map(all).fold(Access::NONE, Access::union);
        Judge { text, t, others, after: HashMap::new() }
    }

    fn verdict(&mut self, store: EdgeId, load: EdgeId) -> Refuted {
        let access = &self.text.access[self.t.index()];
        let (stored, loaded) = (access[store.index()].writes, access[load.index()].reads);
        let unseen = loaded & self.others.writes == 0 || stored & touched(self.others) == 0;
        if unseen || self.address(store).is_some_and(|a| Some(a) == self.address(load)) {
            return Refuted::ByAccess;
        }
        let after = *self.after.entry(loaded).or_insert_with(|| self.text.after_load(self.t, loaded));
        if stored & touched(after) == 0 { Refuted::ByCycle } else { Refuted::Not }
    }

    /// The address, if it is a constant.
    fn address(&self, edge: EdgeId) -> Option<Value> {
        self.text.program.thread(self.t).edge(edge).instr.address()?.constant()
    }
}

fn touched(access: Access) -> u64 {
    access.reads | access.writes
}

/// A thread's graph without fences and locked instructions: where a delayed store can stay in the buffer.
struct Roads {
    from: Vec<Vec<Loc>>,
    into: Vec<Vec<Loc>>,
    /// Per location the loads that begin there.
    loads: Vec<Vec<EdgeId>>,
    /// All false between questions.
    marked: Vec<bool>,
}

impl Roads {
    fn new(thread: &Thread) -> Roads {
        let locations = thread.graph().node_count();
        let (mut from, mut into) = (vec![Vec::new(); locations], vec![Vec::new(); locations]);
        let mut loads = vec![Vec::new(); locations];
        for (_, edge) in edges_where(thread, may_be_overtaken_by) {
            from[edge.from.index()].push(edge.to);
            into[edge.to.index()].push(edge.from);
        }
        for (load, edge) in edges_where(thread, |i| matches!(i, Instr::Load { .. })) {
            loads[edge.from.index()].push(load);
        }
        Roads { from, into, loads, marked: vec![false; locations] }
    }

    /// Marks the locations that can be reached from one.
    fn mark_unfenced(&mut self, start: Loc) -> Vec<Loc> {
        let (mut reached, mut todo) = (Vec::new(), vec![start]);
        while let Some(loc) = todo.pop() {
            if !std::mem::replace(&mut self.marked[loc.index()], true) {
                reached.push(loc);
                todo.extend(&self.from[loc.index()]);
            }
        }
        reached
    }

    /// Takes the marks from those that lead to some locations.
    fn unmark_leading_to(&mut self, mut todo: Vec<Loc>) -> Vec<Loc> {
        let mut leading = Vec::new();
        while let Some(loc) = todo.pop() {
            if std::mem::take(&mut self.marked[loc.index()]) {
                leading.push(loc);
                todo.extend(&self.into[loc.index()]);
            }
        }
        leading
    }

    fn unmark(&mut self, locations: &[Loc]) {
        locations.iter().for_each(|l| self.marked[l.index()] = false);
    }
}

fn edges_where(thread: &Thread, which: impl Fn(&Instr) -> bool) -> impl Iterator<Item = (EdgeId, &Edge)> {
    thread.edges().filter(move |(_, e)| which(&e.instr))
}

/// Can a delayed store stay in the buffer past this instruction?
fn may_be_overtaken_by(instr: &Instr) -> bool {
    !matches!(instr, Instr::Fence | Instr::Rmw { .. } | Instr::Lock | Instr::Unlock)
}

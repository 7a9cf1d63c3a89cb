//! Which stores could be overtaken by which loads, and matter? An *attack* is a thread, a store that it
//! delays and a later load that overtakes it. One delaying thread suffices (`[LazyTSO15]`, Lemma 6), so
//! trying all attacks settles robustness.
//!
//! Most attacks are refuted by the program's text: every way from the store to the load has a fence or a
//! locked instruction; no other thread writes what is loaded or touches what is stored; or the other threads have
//! no chain of conflicts from the load back to the store (the critical cycles of `[ShashaSnir88]`). What is
//! left goes to `machine`, which looks for a run. Invariant: sets of cells are over-approximated, so an
//! attack that is dropped here cannot succeed.

use crate::analysis::access::{self, Access, Futures};
use crate::analysis::interval::Intervals;
use crate::machine::bits;
use crate::model::{Edge, EdgeId, Instr, Program, Thread, ThreadId, Value};
use crate::query::{AttackCount, Limit, Limits};
use bit_set::BitSet;
use petgraph::algo::kosaraju_scc;
use petgraph::visit::{EdgeFiltered, EdgeRef};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

/// A store that may be worth delaying.
#[derive(Clone, Debug)]
pub struct DelayedStore {
    pub thread: ThreadId,
    pub edge: EdgeId,
    /// Its loads, as an index into `Attacks::overtakers`.
    pub overtakers: usize,
    /// So many of them can be reached from it without a fence on the way.
    pub loads: usize,
}

/// The loads of a thread that may be worth overtaking a store, for all stores of which the text says the
/// same. Not all of them need be ahead of each: a thread that comes to one has come there without a fence.
#[derive(Clone, Debug, Default)]
pub struct Overtakers {
    /// By the numbers of their edges.
    pub loads: BitSet,
    /// By their numbers, the locations from which such a load can be reached without a fence.
    pub leads_on: BitSet,
}

/// The attacks that the program's text does not refute.
#[derive(Clone, Debug, Default)]
pub struct Attacks {
    pub stores: Vec<DelayedStore>,
    pub overtakers: Vec<Overtakers>,
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

    /// Is the attack one of those that are left, if its load can be reached from its store?
    pub fn contain(&self, thread: ThreadId, store: EdgeId, load: EdgeId) -> bool {
        let of = |s: &&DelayedStore| s.thread == thread && s.edge == store;
        self.stores
            .iter()
            .find(of)
            .is_some_and(|s| self.overtakers[s.overtakers].loads.contains(load.index()))
    }

    /// Are the same attacks left of all these threads, whose graphs are the same?
    pub fn are_alike(&self, threads: &[usize]) -> bool {
        let of = |t: usize| {
            let own = self.stores.iter().filter(move |s| s.thread.index() == t);
            own.map(|s| (s.edge, &self.overtakers[s.overtakers].loads))
        };
        threads.windows(2).all(|pair| of(pair[0]).eq(of(pair[1])))
    }

    fn add(&mut self, text: &Text<'_>, t: ThreadId, pruning: Pruning, limits: &Limits) -> Result<(), Limit> {
        let thread = text.program.thread(t);
        let loads = Loads::of(text, t);
        let stores = edges_where(thread, |i| matches!(i, Instr::Store { .. }));
        let stores: Vec<Stored> = stores.map(|(id, edge)| Stored::new(text, t, id, edge, pruning)).collect();
        if loads.edges.is_empty() || stores.is_empty() {
            return Ok(());
        }
        let mut judge = Judge::new(text, t, pruning);
        let mut sentences: HashMap<u64, Vec<Refuted>> = HashMap::new();
        for stored in &stores {
            if let Entry::Vacant(unknown) = sentences.entry(stored.cells) {
                unknown.insert(judge.sentence(stored.cells, &loads, limits)?);
            }
        }
        let mut left = Vec::new();
        self.count.total += (stores.len() * loads.edges.len()) as u64;
        for_each_ahead(thread, &stores, &loads, limits, |stored, ahead| {
            let sentence = &sentences[&stored.cells];
            let own = stored.address.and_then(|a| loads.by_address.get(&a));
            let own = own.map(|kind| (kind.cells, ahead.of_kind(kind.number)));
            let seen = |verdict: Refuted| {
                let of = |cells: usize| match own {
                    Some((of_own, count)) if of_own == cells => ahead.of_cells[cells] - count,
                    _ => ahead.of_cells[cells],
                };
                let such = (0..sentence.len()).filter(|&cells| sentence[cells] == verdict);
                such.map(|cells| of(cells) as usize).sum::<usize>()
            };
            let all = ahead.of_cells.iter().map(|&count| count as usize).sum::<usize>();
            let (open, acyclic) = (seen(Refuted::Not), seen(Refuted::ByCycle));
            self.count.fenced += (loads.edges.len() - all) as u64;
            self.count.acyclic += acyclic as u64;
            self.count.left += open as u64;
            self.count.private += (all - open - acyclic) as u64;
            if open > 0 {
                left.push((stored, open));
            }
        })?;
        left.sort_by_key(|(stored, _)| stored.edge);
        self.take(text.program, t, &loads, &sentences, left, limits)
    }

    /// Adds the stores of a thread of which so many attacks are left.
    fn take(
        &mut self,
        program: &Program,
        t: ThreadId,
        loads: &Loads,
        sentences: &HashMap<u64, Vec<Refuted>>,
        left: Vec<(&Stored, usize)>,
        limits: &Limits,
    ) -> Result<(), Limit> {
        // With many cells there would be many sets of loads. Loads of a store's own cell may stay among its
        // overtakers, for they never overtake it anyway.
        let apart = access::is_exact(program);
        let mut known: HashMap<(u64, Option<Value>), usize> = HashMap::new();
        for (stored, count) in left {
            let address = stored.address.filter(|_| apart);
            let overtakers = match known.get(&(stored.cells, address)) {
                Some(&known) => known,
                None => {
                    let own = address.and_then(|a| loads.by_address.get(&a)).map(|kind| kind.number);
                    let sentence = &sentences[&stored.cells];
                    let wanted = |load: &&Load| {
                        sentence[load.kind.cells] == Refuted::Not && Some(load.kind.number) != own
                    };
                    let edges = loads.edges.iter().filter(wanted).map(|load| load.edge.index()).collect();
                    self.overtakers.push(Overtakers::new(program.thread(t), edges, limits)?);
                    known.insert((stored.cells, address), self.overtakers.len() - 1);
                    self.overtakers.len() - 1
                }
            };
            self.stores.push(DelayedStore { thread: t, edge: stored.edge, overtakers, loads: count });
        }
        Ok(())
    }
}

impl Overtakers {
    fn new(thread: &Thread, loads: BitSet, limits: &Limits) -> Result<Overtakers, Limit> {
        limits.spend(2 * thread.graph().edge_count())?;
        let before = loads.iter().map(|id| thread.edge(EdgeId(id as u32)).from);
        let reaching = thread.reaching(before, |e| !e.instr.drains_buffer());
        let leads_on = (0..reaching.len()).filter(|&loc| reaching[loc]).collect();
        Ok(Overtakers { loads, leads_on })
    }
}

/// A store of a thread, by what it may touch.
struct Stored {
    edge: EdgeId,
    to: usize,
    cells: u64,
    /// The address, if it is a constant: its loads read the store's own value.
    address: Option<Value>,
}

impl Stored {
    fn new(text: &Text<'_>, t: ThreadId, id: EdgeId, edge: &Edge, pruning: Pruning) -> Stored {
        let cells = text.access[t.index()][id.index()].writes;
        let address = constant_address(edge).filter(|_| pruning == Pruning::On);
        Stored { edge: id, to: edge.to.index(), cells, address }
    }
}

fn constant_address(edge: &Edge) -> Option<Value> {
    edge.instr.address()?.constant()
}

/// The loads of a thread.
struct Loads {
    edges: Vec<Load>,
    /// The different sets of cells that they may touch.
    cells: Vec<u64>,
    /// How many kinds there are.
    kinds: usize,
    by_address: HashMap<Value, LoadClass>,
    /// Per location the numbers of the loads that begin there.
    at: BTreeMap<usize, Vec<usize>>,
}

struct Load {
    edge: EdgeId,
    kind: LoadClass,
}

/// Loads that may touch the same cells and have the same address, if that is a constant.
#[derive(Clone, Copy)]
struct LoadClass {
    number: usize,
    /// The cells, by their place in the list.
    cells: usize,
}

impl Loads {
    fn of(text: &Text<'_>, t: ThreadId) -> Loads {
        let thread = text.program.thread(t);
        let (mut all_cells, mut kinds) = (HashMap::new(), HashMap::new());
        let mut loads =
            Loads { edges: vec![], cells: vec![], kinds: 0, by_address: HashMap::new(), at: BTreeMap::new() };
        for (edge, e) in edges_where(thread, |i| matches!(i, Instr::Load { .. })) {
            let (touched, address) = (text.access[t.index()][edge.index()].reads, constant_address(e));
            let fresh = all_cells.len();
            let cells = *all_cells.entry(touched).or_insert(fresh);
            if cells == loads.cells.len() {
                loads.cells.push(touched);
            }
            let fresh = kinds.len();
            let kind = LoadClass { number: *kinds.entry((touched, address)).or_insert(fresh), cells };
            loads.by_address.extend(address.map(|address| (address, kind)));
            loads.at.entry(e.from.index()).or_default().push(loads.edges.len());
            loads.edges.push(Load { edge, kind });
        }
        loads.kinds = kinds.len();
        loads
    }
}

/// Some loads of a thread, by their numbers, and how many there are of each kind. In pieces, which sets share
/// where they are the same.
#[derive(Clone)]
struct Ahead {
    loads: Vec<Rc<[u64]>>,
    kinds: Vec<Rc<[u32]>>,
    of_cells: Vec<u32>,
}

/// Words of one piece.
const PIECE: usize = 16;

impl Ahead {
    fn none(loads: &Loads) -> Ahead {
        let (piece, counts): (Rc<[u64]>, Rc<[u32]>) = ([0; PIECE].into(), [0; PIECE].into());
        Ahead {
            loads: vec![piece; loads.edges.len().div_ceil(64 * PIECE)],
            kinds: vec![counts; loads.kinds.div_ceil(PIECE)],
            of_cells: vec![0; loads.cells.len()],
        }
    }

    /// How many loads of the kind there are.
    fn of_kind(&self, kind: usize) -> u32 {
        self.kinds[kind / PIECE][kind % PIECE]
    }

    fn insert(&mut self, load: usize, loads: &Loads) {
        let word = &mut Rc::make_mut(&mut self.loads[load / (64 * PIECE)])[load / 64 % PIECE];
        let LoadClass { number, cells } = loads.edges[load].kind;
        if *word >> (load % 64) & 1 == 0 {
            *word |= 1 << (load % 64);
            Rc::make_mut(&mut self.kinds[number / PIECE])[number % PIECE] += 1;
            self.of_cells[cells] += 1;
        }
    }

    fn add(&mut self, others: &Ahead, loads: &Loads) {
        for (k, other) in others.loads.iter().enumerate() {
            if Rc::ptr_eq(&self.loads[k], other) {
                continue;
            }
            let new: Vec<u64> = other.iter().zip(&*self.loads[k]).map(|(b, a)| b & !a).collect();
            bits(&new).for_each(|load| self.insert(64 * PIECE * k + load, loads));
        }
    }
}

/// Tells of every store which loads lie ahead of it with no fence in between. From the end of the thread's
/// graph to its beginning, cycles taken as one: the loads ahead of a place are those of the places that
/// follow, and its own.
fn for_each_ahead<'a>(
    thread: &Thread,
    stores: &'a [Stored],
    loads: &Loads,
    limits: &Limits,
    mut tell: impl FnMut(&'a Stored, &Ahead),
) -> Result<(), Limit> {
    let graph = thread.graph();
    let open = EdgeFiltered::from_fn(graph, |e| !e.weight().instr.drains_buffer());
    limits.spend(8 * graph.edge_count())?;
    let parts = kosaraju_scc(&open);
    let mut part_of = vec![0; graph.node_count()];
    for (k, part) in parts.iter().enumerate() {
        part.iter().for_each(|node| part_of[node.index()] = k);
    }
    let mut next: Vec<Vec<usize>> = vec![Vec::new(); parts.len()];
    for edge in graph.edge_references().filter(|e| !e.weight().instr.drains_buffer()) {
        let (from, to) = (part_of[edge.source().index()], part_of[edge.target().index()]);
        if from != to {
            next[from].push(to);
        }
    }
    // How many still have to ask what lies ahead of a part.
    let mut asking = vec![0; parts.len()];
    for list in &mut next {
        list.sort_unstable();
        list.dedup();
        list.iter().for_each(|&to| asking[to] += 1);
    }
    let mut into: Vec<Vec<&Stored>> = vec![Vec::new(); parts.len()];
    stores.iter().for_each(|stored| into[part_of[stored.to]].push(stored));
    let mut known: Vec<Option<Ahead>> = vec![None; parts.len()];
    for (k, part) in parts.iter().enumerate() {
        let width = loads.edges.len() / (64 * PIECE) + loads.kinds / PIECE;
        let (joins, told) = (next[k].len().saturating_sub(1), into[k].len());
        limits.spend(part.len() + joins * width + told * loads.cells.len())?;
        let mut ahead: Option<Ahead> = None;
        for &to in &next[k] {
            asking[to] -= 1;
            let there = if asking[to] == 0 { known[to].take() } else { known[to].clone() };
            let there = there.expect("a part comes behind those that it leads to");
            match &mut ahead {
                None => ahead = Some(there),
                Some(ahead) => ahead.add(&there, loads),
            }
        }
        let mut ahead = ahead.unwrap_or_else(|| Ahead::none(loads));
        let own = part.iter().filter_map(|node| loads.at.get(&node.index()));
        own.flatten().for_each(|&load| ahead.insert(load, loads));
        into[k].iter().for_each(|stored| tell(stored, &ahead));
        known[k] = Some(ahead).filter(|_| asking[k] > 0);
    }
    Ok(())
}

/// What instructions may touch.
struct Text<'a> {
    program: &'a Program,
    /// Per thread and edge.
    access: Vec<Vec<Access>>,
    futures: Futures,
    /// Per thread: what an instruction touches, and all that the thread may touch once it has done that, with
    /// everything before it in a block. Each pair once.
    helping: Vec<HashSet<(Access, Access)>>,
}

impl<'a> Text<'a> {
    fn new(program: &'a Program, limits: &Limits) -> Result<Self, Limit> {
        let intervals = Intervals::of(program, limits)?;
        let of =
            |t: ThreadId, e: &Edge| access::of_instr(program, &e.instr, || intervals.address(t, e)).cells();
        let all = |t: ThreadId| program.thread(t).edges().map(|(_, e)| of(t, e)).collect();
        let access: Vec<Vec<Access>> = program.thread_ids().map(all).collect();
        let futures = Futures::of(program, &intervals, |_, _| false, limits)?;
        let helping = |t: ThreadId| {
            let thread = program.thread(t);
            // A block is one event: with one of its accesses, those before it happen after the load too.
            let blocks = thread.edges().any(|(_, e)| matches!(e.instr, Instr::Lock));
            let from = |e: &Edge| if blocks { thread.initial() } else { e.from };
            let pair =
                |(id, e): (EdgeId, &Edge)| (access[t.index()][id.index()], futures.at(t, from(e)).cells());
            thread.edges().map(pair).filter(|(access, _)| !access.is_none()).collect()
        };
        let helping = program.thread_ids().map(helping).collect();
        Ok(Text { program, access, futures, helping })
    }

    fn others(&self, t: ThreadId) -> impl Iterator<Item = ThreadId> {
        self.program.thread_ids().filter(move |&u| u != t)
    }

    /// All that threads other than `t` may touch by events that happen after a load of `t`.
    fn after_load(&self, t: ThreadId, loaded: u64, limits: &Limits) -> Result<Access, Limit> {
        let load = Access { reads: loaded, writes: 0 };
        let mut after = Access::NONE;
        loop {
            let more = self.helped(t, after.union(load), limits)?.union(after);
            if more == after {
                return Ok(after);
            }
            after = more;
        }
    }

    /// What other threads may touch once they have done something that conflicts with `after`.
    fn helped(&self, t: ThreadId, after: Access, limits: &Limits) -> Result<Access, Limit> {
        let mut helped = Access::NONE;
        for u in self.others(t) {
            let helping = &self.helping[u.index()];
            limits.spend(1 + helping.len())?;
            let conflicting = helping.iter().filter(|(access, _)| after.conflicts(*access));
            helped = conflicting.fold(helped, |all, (_, future)| all.union(*future));
        }
        Ok(helped)
    }
}

/// What the text says against the attacks of one thread.
struct Judge<'a> {
    text: &'a Text<'a>,
    t: ThreadId,
    pruning: Pruning,
    /// All that other threads ever touch.
    others: Access,
    /// Per cells loaded, all that other threads may touch after such a load.
    after: HashMap<u64, Access>,
}

/// Why the search can do without an attack that no fence forbids.
#[derive(Clone, Copy, PartialEq)]
enum Refuted {
    /// No other thread writes what is loaded, or touches what is stored; or the load reads the store's own value.
    ByAccess,
    /// No chain of conflicts leads from the load back to the store.
    ByCycle,
    Not,
}

impl<'a> Judge<'a> {
    fn new(text: &'a Text<'a>, t: ThreadId, pruning: Pruning) -> Self {
        let all = |u: ThreadId| text.futures.at(u, text.program.thread(u).initial()).cells();
        let others = text.others(t).map(all).fold(Access::NONE, Access::union);
        Judge { text, t, pruning, others, after: HashMap::new() }
    }

    /// What the text says of each set of cells that is loaded, against the stores that may touch certain
    /// cells. Of loads of a store's own address, more is known.
    fn sentence(&mut self, stored: u64, loads: &Loads, limits: &Limits) -> Result<Vec<Refuted>, Limit> {
        loads.cells.iter().map(|&loaded| self.verdict(stored, loaded, limits)).collect()
    }

    /// Of stores and loads that may touch these cells, at different addresses.
    fn verdict(&mut self, stored: u64, loaded: u64, limits: &Limits) -> Result<Refuted, Limit> {
        if self.pruning == Pruning::Off {
            return Ok(Refuted::Not);
        }
        if loaded & self.others.writes == 0 || stored & touched(self.others) == 0 {
            return Ok(Refuted::ByAccess);
        }
        let after = match self.after.get(&loaded) {
            Some(after) => *after,
            None => self.text.after_load(self.t, loaded, limits)?,
        };
        self.after.insert(loaded, after);
        Ok(if stored & touched(after) == 0 { Refuted::ByCycle } else { Refuted::Not })
    }
}

fn touched(access: Access) -> u64 {
    access.reads | access.writes
}

fn edges_where(thread: &Thread, which: impl Fn(&Instr) -> bool) -> impl Iterator<Item = (EdgeId, &Edge)> {
    thread.edges().filter(move |(_, e)| which(&e.instr))
}

//! What may be changed, and at what cost? Elements for the hitting set: places for fences, stores that may be
//! locked, fences that may go.
//!
//! An element is a *remedy*: one change of the text, with what it changes in all the copies that the text
//! unfolds to. A fence sits between everything that leads to its place and everything that goes on from there.
//! Only places behind a store with no fence in between can matter, and nothing can be inserted in the middle
//! of one instruction of the user's text. A fence at a thread's end, behind its last instruction, keeps
//! states with a store of the thread in its buffer from being final: those that another thread's block has
//! frozen. Among remedies of the same cost, those in fewer loops are preferred, then those of fewer copies.

use crate::analysis::loops::LoopDepths;
use crate::hitting::Cost;
use crate::model::expr::MAX_DEPTH;
use crate::model::source_map::{Passage, SourcePlace, Statement};
use crate::model::{
    Edge, EdgeId, FenceKinds, Instr, Loc, MAX_REGISTERS, Program, PropertyKind, SourceMap, Thread, ThreadId,
};
use crate::query::repair::{Change, Remedy};
use crate::query::{Limit, Limits};
use std::collections::{BTreeSet, HashMap};

/// The kinds of changes that are allowed, each with its cost, and where.
#[derive(Clone, Debug, Default)]
pub struct Allowed {
    pub fence: Option<u64>,
    pub atomic: Option<u64>,
    /// If there are any, no other thread is touched.
    pub only: Vec<ThreadId>,
    /// No fence goes here.
    pub forbidden: Vec<(ThreadId, Loc)>,
    /// What is one change in the text; by default every thread has a text of its own.
    pub text: Option<SourceMap>,
}

/// What a remedy costs, and by what it is preferred among equals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Price {
    pub cost: u64,
    loops: u64,
    copies: u64,
}

impl Cost for Price {
    const NOTHING: Price = Price { cost: 0, loops: 0, copies: 0 };
    const MOST: Price = Price { cost: u64::MAX, loops: u64::MAX, copies: u64::MAX };

    fn plus(self, other: Price) -> Price {
        Price {
            cost: self.cost.saturating_add(other.cost),
            loops: self.loops.saturating_add(other.loops),
            copies: self.copies.saturating_add(other.copies),
        }
    }
}

/// All allowed changes, numbered in the order of the text.
#[derive(Clone, Debug)]
pub(crate) struct Candidates {
    pub remedies: Vec<Remedy>,
    pub prices: Vec<Price>,
    /// What each costs, whatever else is preferred.
    pub costs: Vec<u64>,
    /// The remedies that a change is part of.
    numbers: HashMap<Change, Vec<usize>>,
}

impl Candidates {
    /// Fences and locked stores that can be put into the program.
    pub(crate) fn of(program: &Program, allowed: &Allowed, limits: &Limits) -> Result<Candidates, Limit> {
        let plain;
        let text = match &allowed.text {
            Some(text) => text,
            None => {
                plain = SourceMap::per_thread(program);
                &plain
            }
        };
        let gathering = Gathering::of(program, allowed, limits)?;
        let mut found: Vec<(Remedy, Price)> = Vec::new();
        if let Some(cost) = allowed.fence {
            let fences = text.places.iter().filter(|place| gathering.is_free(place));
            found.extend(fences.map(|place| gathering.fence(place, cost)));
        }
        if let Some(cost) = allowed.atomic {
            let stores = text.statements.iter().filter(|statement| gathering.is_store(statement));
            found.extend(stores.map(|statement| gathering.atomic(statement, cost)));
        }
        Ok(Candidates::priced(found))
    }

    /// Each kind of fence wherever it stands between two accesses that it orders.
    pub(crate) fn of_kinds(
        program: &Program,
        allowed: &Allowed,
        limits: &Limits,
    ) -> Result<Candidates, Limit> {
        let text = allowed.text.clone().unwrap_or_else(|| SourceMap::per_thread(program));
        let gathering = Gathering::of(program, allowed, limits)?;
        let between: Vec<Between> = program.threads().iter().map(Between::of).collect();
        let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
        for place in text.places.iter().filter(|place| !gathering.is_barred(place)) {
            limits.spend(64 * place.copies.len())?;
            // Where nothing but steps of its own lies between two places, they are one.
            if !seen.insert(place.copies.iter().map(|copy| gathering.until_access(copy)).collect::<Vec<_>>())
            {
                continue;
            }
            for kind in 0..FenceKinds::WORDS.len() {
                let orders = |copy: &Passage| between[copy.thread().index()].orders(program, copy, kind);
                if place.copies.iter().any(orders) {
                    let (remedy, price) = gathering.fence(place, 1);
                    found.push((Remedy { kind: Some(kind), ..remedy }, price));
                }
            }
        }
        Ok(Candidates::priced(found))
    }

    /// The program's own fences, each of which may go.
    pub(crate) fn of_own_fences(program: &Program, text: &SourceMap) -> Candidates {
        let is_fence = |(t, e): &(ThreadId, EdgeId)| program.thread(*t).edge(*e).instr.is_fence();
        let keep = |statement: &Statement| {
            let change = |&(thread, fence)| Change::Keep { thread, fence };
            let changes: Vec<Change> = statement.edges.iter().map(change).collect();
            let copies = changes.len();
            let price = Price { cost: 1, loops: 0, copies: copies as u64 };
            (Remedy { changes, copies, offset: statement.offset, kind: None }, price)
        };
        let own = text.statements.iter().filter(|s| s.edges.iter().any(is_fence));
        Candidates::priced(own.map(keep).collect())
    }

    /// Places that come to the same are one: the first in the text.
    fn priced(found: Vec<(Remedy, Price)>) -> Candidates {
        let mut seen: BTreeSet<(Vec<Change>, Option<usize>)> = BTreeSet::new();
        let (mut remedies, mut prices) = (Vec::new(), Vec::new());
        let mut numbers: HashMap<Change, Vec<usize>> = HashMap::new();
        for (mut remedy, price) in found {
            remedy.changes.sort();
            if !seen.insert((remedy.changes.clone(), remedy.kind)) {
                continue;
            }
            for &change in &remedy.changes {
                numbers.entry(change).or_default().push(remedies.len());
            }
            remedies.push(remedy);
            prices.push(price);
        }
        let costs = prices.iter().map(|p: &Price| p.cost).collect();
        Candidates { remedies, prices, costs, numbers }
    }

    /// The remedies that would keep a state from being final while a store of the thread, which took this edge
    /// last, is in its buffer.
    pub(crate) fn against_ending(&self, program: &Program, thread: ThreadId, last: EdgeId) -> Vec<usize> {
        let at = program.thread(thread).end();
        self.with([Change::Fence { thread, at }, Change::FenceBehind { thread, edge: last }])
    }

    /// The remedies that would keep a thread from taking these edges with the first one's store in its buffer
    /// until the last one is taken. The last may be a store that never reaches memory: locked, it could not
    /// have come then.
    pub(crate) fn against(&self, program: &Program, thread: ThreadId, path: &[EdgeId]) -> Vec<usize> {
        let own = program.thread(thread);
        let fences = path[1..].iter().map(|&e| Change::Fence { thread, at: own.edge(e).from });
        let behind = path[..path.len() - 1].iter().map(|&edge| Change::FenceBehind { thread, edge });
        let atomics = path.iter().map(|&store| Change::Atomic { thread, store });
        let kept = path.iter().map(|&fence| Change::Keep { thread, fence });
        self.with(fences.chain(behind).chain(atomics).chain(kept))
    }

    /// The remedies that have one of these changes.
    fn with(&self, changes: impl IntoIterator<Item = Change>) -> Vec<usize> {
        changes.into_iter().filter_map(|c| self.numbers.get(&c)).flatten().copied().collect()
    }

    pub(crate) fn numbers(&self, set: &[Remedy]) -> Vec<usize> {
        (0..self.remedies.len()).filter(|&i| set.contains(&self.remedies[i])).collect()
    }

    pub(crate) fn choose(&self, numbers: &[usize]) -> Vec<Remedy> {
        numbers.iter().map(|&i| self.remedies[i].clone()).collect()
    }

    pub(crate) fn changes(&self, numbers: &[usize]) -> Vec<Change> {
        let changes: BTreeSet<Change> =
            numbers.iter().flat_map(|&i| self.remedies[i].changes.iter().copied()).collect();
        changes.into_iter().collect()
    }
}

/// What is known of the program while its remedies are gathered.
struct Gathering<'a> {
    program: &'a Program,
    allowed: &'a Allowed,
    /// For each thread.
    roads: Vec<Roads>,
    depths: Vec<LoopDepths>,
    ends_matter: bool,
}

impl<'a> Gathering<'a> {
    fn of(program: &'a Program, allowed: &'a Allowed, limits: &Limits) -> Result<Gathering<'a>, Limit> {
        let asks_for_ends = program.properties().iter().any(|p| p.kind != PropertyKind::Forbid);
        let threads = program.threads();
        Ok(Gathering {
            program,
            allowed,
            roads: threads.iter().map(Roads::of).collect(),
            depths: threads.iter().map(|t| LoopDepths::of(t, limits)).collect::<Result<_, _>>()?,
            ends_matter: program.has_locks() && asks_for_ends,
        })
    }

    fn is_touched(&self, t: ThreadId) -> bool {
        self.allowed.only.is_empty() || self.allowed.only.contains(&t)
    }

    /// May a fence go there, and can it matter?
    fn is_free(&self, place: &SourcePlace) -> bool {
        !self.is_barred(place) && place.copies.iter().any(|copy| self.matters(copy))
    }

    fn is_barred(&self, place: &SourcePlace) -> bool {
        place.copies.iter().any(|copy| {
            let (t, at) = (copy.thread(), self.leads_to(copy));
            let within = self.program.thread(t).location(at).within;
            within || !self.is_touched(t) || self.allowed.forbidden.contains(&(t, at))
        })
    }

    /// Where a thread that comes through gets to before it accesses memory or its way meets or leaves others; and
    /// the edges, if it is only some of those that lead there.
    fn until_access(&self, copy: &Passage) -> (ThreadId, Loc, Vec<EdgeId>) {
        let own = self.program.thread(copy.thread());
        let mut at = match copy {
            Passage::All(_, at) => *at,
            Passage::Some(t, edges) => return (*t, self.leads_to(copy), edges.clone()),
        };
        let ways_to = |to: Loc| own.edges().filter(|(_, e)| e.to == to).count();
        for _ in own.locations() {
            match own.edges_from(at)[..] {
                [(_, e)] if e.instr.address().is_none() && ways_to(e.to) == 1 => at = e.to,
                _ => break,
            }
        }
        (copy.thread(), at, vec![])
    }

    fn matters(&self, copy: &Passage) -> bool {
        let (t, at) = (copy.thread(), self.leads_to(copy));
        let (own, roads) = (self.program.thread(t), &self.roads[t.index()]);
        let waits = match copy {
            Passage::All(..) => roads.places[at.index()],
            Passage::Some(_, edges) => edges.iter().any(|&e| roads.waits_behind(own.edge(e))),
        };
        waits && (at != own.end() || self.ends_matter)
    }

    fn leads_to(&self, copy: &Passage) -> Loc {
        match copy {
            Passage::All(_, at) => *at,
            Passage::Some(t, edges) => self.program.thread(*t).edge(edges[0]).to,
        }
    }

    fn fence(&self, place: &SourcePlace, cost: u64) -> (Remedy, Price) {
        let depth = |copy: &Passage| {
            let depths = &self.depths[copy.thread().index()];
            match copy {
                Passage::All(_, at) => depths.location(*at),
                Passage::Some(_, edges) => edges.iter().map(|&e| depths.edge(e)).max().unwrap_or(0),
            }
        };
        let changes = |copy: &Passage| match copy {
            Passage::All(thread, at) => vec![Change::Fence { thread: *thread, at: *at }],
            Passage::Some(thread, edges) => {
                edges.iter().map(|&edge| Change::FenceBehind { thread: *thread, edge }).collect()
            }
        };
        let copies = place.copies.len();
        let loops = place.copies.iter().map(depth).max().unwrap_or(0);
        let changes = place.copies.iter().flat_map(changes).collect();
        let price = Price { cost, loops: loops as u64, copies: copies as u64 };
        (Remedy { changes, copies, offset: place.offset, kind: None }, price)
    }

    /// May the statement be made a locked store?
    fn is_store(&self, statement: &Statement) -> bool {
        statement.edges.iter().all(|&(t, e)| {
            let own = self.program.thread(t);
            // The value of a locked store to a part of a cell is computed after the cell is read.
            let is_store = match &own.edge(e).instr {
                Instr::Store { value, bytes, .. } => {
                    bytes.is_whole() || !value.may_divide_by_zero() && value.depth() + 2 <= MAX_DEPTH
                }
                _ => false,
            };
            is_store && self.is_touched(t) && own.registers().len() < MAX_REGISTERS
        })
    }

    fn atomic(&self, statement: &Statement, cost: u64) -> (Remedy, Price) {
        let change = |&(thread, store)| Change::Atomic { thread, store };
        let depth = |&(t, e): &(ThreadId, EdgeId)| self.depths[t.index()].edge(e);
        let loops = statement.edges.iter().map(depth).max().unwrap_or(0);
        let changes: Vec<Change> = statement.edges.iter().map(change).collect();
        let copies = changes.len();
        let price = Price { cost, loops: loops as u64, copies: copies as u64 };
        (Remedy { changes, copies, offset: statement.offset, kind: None }, price)
    }
}

/// Where a thread may have loaded or stored before, and where it still may.
struct Between {
    behind: [Vec<bool>; 2],
    ahead: [Vec<bool>; 2],
}

impl Between {
    fn of(thread: &Thread) -> Between {
        let which = |stores: bool| thread.edges().map(|(_, e)| e).filter(move |e| accesses(e, stores));
        let behind = |stores| thread.reachable_from(which(stores).map(|e| e.to), |_| true);
        let ahead = |stores| thread.reaching(which(stores).map(|e| e.from), |_| true);
        Between { behind: [false, true].map(behind), ahead: [false, true].map(ahead) }
    }

    /// Is the passage on a way from an access of the kind's first letter to one of its second?
    fn orders(&self, program: &Program, copy: &Passage, kind: usize) -> bool {
        let (first, second) = (kind / 2, kind % 2);
        let (behind, ahead) = (&self.behind[first], &self.ahead[second]);
        match copy {
            Passage::All(_, at) => behind[at.index()] && ahead[at.index()],
            Passage::Some(t, edges) => edges.iter().any(|&e| {
                let edge = program.thread(*t).edge(e);
                (behind[edge.from.index()] || accesses(edge, first == 1)) && ahead[edge.to.index()]
            }),
        }
    }
}

/// Does the edge store, or load?
fn accesses(edge: &Edge, stores: bool) -> bool {
    match edge.instr {
        Instr::Load { .. } => !stores,
        Instr::Store { .. } => stores,
        Instr::Rmw { .. } => true,
        _ => false,
    }
}

/// Where a store of the thread may be waiting in the buffer.
struct Roads {
    /// Per location whether one is behind a store, without a fence or a locked instruction in between.
    places: Vec<bool>,
}

impl Roads {
    fn of(thread: &Thread) -> Roads {
        let stores = thread.edges().filter(|(_, e)| matches!(e.instr, Instr::Store { .. }));
        Roads { places: thread.reachable_from(stores.map(|(_, e)| e.to), |e| !e.instr.drains_buffer()) }
    }

    fn waits_behind(&self, edge: &Edge) -> bool {
        matches!(edge.instr, Instr::Store { .. })
            || self.places[edge.from.index()] && !edge.instr.drains_buffer()
    }
}

//! What may be changed, and at what cost? Elements for the hitting set: places for fences, stores that may be
//! locked, fences that may go.
//!
//! A place is a location; a fence there sits between everything that enters it and everything that leaves it.
//! Only places behind a store with no fence in between can matter, and nothing can be inserted in the middle
//! of one instruction of the user's text. A fence at a thread's end, behind its last instruction, keeps
//! states with a store of the thread in its buffer from being final: those that another thread's block has
//! frozen.

use crate::model::{Edge, EdgeId, Instr, Loc, MAX_REGISTERS, Program, PropertyKind, Thread, ThreadId};
use crate::query::repair::Change;
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
}

/// All allowed changes, numbered in the order in which they are preferred among equals: as in the text.
#[derive(Clone, Debug)]
pub struct Candidates {
    pub changes: Vec<Change>,
    pub costs: Vec<u64>,
    numbers: HashMap<Change, usize>,
}

impl Candidates {
    /// Fences and locked stores that can be put into the program.
    pub fn of(program: &Program, allowed: &Allowed) -> Candidates {
        let mut priced: BTreeSet<(Change, u64)> = BTreeSet::new();
        let asks_for_ends = program.properties().iter().any(|p| p.kind != PropertyKind::Forbid);
        let ends_matter = program.has_locks() && asks_for_ends;
        let touched = |t: &ThreadId| allowed.only.is_empty() || allowed.only.contains(t);
        for thread in program.thread_ids().filter(touched) {
            let own = program.thread(thread);
            let free = |at: &Loc| {
                !own.location(*at).within
                    && !allowed.forbidden.contains(&(thread, *at))
                    && (*at != own.end() || ends_matter)
            };
            let roads = Roads::of(own);
            if let Some(cost) = allowed.fence {
                let places = roads.places.into_iter().filter(free);
                priced.extend(places.map(|at| (Change::Fence { thread, at }, cost)));
            }
            let has_room = own.registers().len() < MAX_REGISTERS;
            if let Some(cost) = allowed.atomic.filter(|_| has_room) {
                priced.extend(roads.stores.into_iter().map(|store| (Change::Atomic { thread, store }, cost)));
            }
        }
        Candidates::priced(priced)
    }

    /// The program's own fences, each of which may go.
    pub fn of_own_fences(program: &Program) -> Candidates {
        let of = |thread: ThreadId| {
            let fences = program
                .thread(thread)
                .edges()
                .filter(|(_, e)| matches!(e.instr, Instr::Fence))
                .map(|(f, _)| f);
            fences.map(|fence| (Change::Keep { thread, fence }, 1)).collect::<Vec<_>>()
        };
        Candidates::priced(program.thread_ids().flat_map(of).collect())
    }

    fn priced(priced: BTreeSet<(Change, u64)>) -> Candidates {
        let (changes, costs): (Vec<Change>, Vec<u64>) = priced.into_iter().unzip();
        let numbers = changes.iter().enumerate().map(|(i, &c)| (c, i)).collect();
        Candidates { changes, costs, numbers }
    }

    /// The change that would keep a state from being final while a store of the thread is in its buffer.
    pub fn against_ending(&self, program: &Program, thread: ThreadId) -> Option<usize> {
        let at = program.thread(thread).end();
        self.numbers.get(&Change::Fence { thread, at }).copied()
    }

    /// The changes that would keep a thread from taking these edges with the first one's store in its buffer
    /// until the last one is taken. The last may be a store that never reaches memory: locked, it could not
    /// have come then.
    pub fn against(&self, program: &Program, thread: ThreadId, path: &[EdgeId]) -> Vec<usize> {
        let own = program.thread(thread);
        let fences = path[1..].iter().map(|&e| Change::Fence { thread, at: own.edge(e).from });
        let atomics = path.iter().map(|&store| Change::Atomic { thread, store });
        let kept = path.iter().map(|&fence| Change::Keep { thread, fence });
        fences.chain(atomics).chain(kept).filter_map(|c| self.numbers.get(&c).copied()).collect()
    }

    pub fn numbers(&self, changes: &[Change]) -> Vec<usize> {
        changes.iter().map(|change| self.numbers[change]).collect()
    }

    pub fn choose(&self, numbers: &[usize]) -> Vec<Change> {
        numbers.iter().map(|&i| self.changes[i]).collect()
    }
}

/// Where a store of the thread may be waiting in the buffer.
struct Roads {
    /// Locations behind a store, without a fence or a locked instruction in between.
    places: BTreeSet<Loc>,
    /// The stores that such ways begin with.
    stores: Vec<EdgeId>,
}

impl Roads {
    fn of(thread: &Thread) -> Roads {
        let stores: Vec<(EdgeId, &Edge)> =
            thread.edges().filter(|(_, e)| matches!(e.instr, Instr::Store { .. })).collect();
        let places = thread.reachable_from(stores.iter().map(|(_, e)| e.to), |e| !e.instr.drains_buffer());
        let places = thread.locations().filter(|loc| places[loc.index()]).collect();
        Roads { places, stores: stores.into_iter().map(|(store, _)| store).collect() }
    }
}

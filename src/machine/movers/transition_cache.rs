//! What can a thread do from where it stands? Worked out once for every local state, and then looked up.
//!
//! A *local state* is all that a thread has to itself: its location and its registers, as they lie in a
//! packed state. What it can do next depends on nothing else, but for the value that a load or a locked
//! instruction finds. So its transitions, with the local instructions that follow each of them, are kept: a
//! step is then a few bits of the packed state exchanged for others, and nothing has to be unpacked. The
//! meaning of instructions is not repeated here: a transition that is not known yet is taken by `core`.
//! Invariant: this is a cache. It may be emptied at any time between two expansions, and is, before it grows
//! large.

use super::super::compile::{CEdge, CInstr, lock_slot};
use super::super::core::{Core, Taken, Work};
use crate::analysis::access::Access;
use crate::model::{EdgeId, Value};
use crate::query::Act;
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};
use std::ops::Range;

/// Cells of at most so many bits have the landings of their loads in a table.
const NARROW: u32 = 5;
/// A cache with more than this is emptied.
const MOST_LOCALS: usize = 1 << 14;
const MOST_LANDINGS: usize = 1 << 16;
const MOST_WORDS: usize = 1 << 18;

/// The number of a local state in the cache.
pub(super) type LocalId = u32;

/// The table of a cell that may hold many values.
const WIDE: u32 = u32::MAX;

const NOT_YET: LocalId = LocalId::MAX;

/// A landing that is not known yet.
const UNKNOWN: Landing = Landing { to: NOT_YET, raw: 0 };

/// A local state of a thread.
#[derive(Clone, Copy)]
pub(super) struct LocalState {
    /// The thread's part of the first word it touches in a packed state.
    bits: u64,
    /// Where those of all words are kept.
    start: u32,
    pub mover: Mover,
    pub visible: bool,
    /// The goal can see the next step otherwise than by an arrival.
    pub visible_effect: bool,
    pub lost: bool,
    pub may_be_ample: bool,
    /// The thread's end, where it stands after an error of its own, or a location that the goal names.
    pub arrived: bool,
    /// It will never move again, and has neither ended nor gone wrong.
    pub stuck: bool,
    pub future: Access,
    /// The cells of which the thread may still read what they hold now.
    pub live_cells: u64,
    /// What its next step touches.
    pub next: Access,
    first: u32,
    count: u32,
    /// The cell and the table of a load that is a mover.
    cell: u32,
    table: u32,
}

impl LocalState {
    /// The cell of a load that is a mover.
    #[inline]
    pub(crate) fn cell(&self) -> u32 {
        self.cell
    }

    /// The numbers of its transitions, once they are known.
    #[inline]
    pub(crate) fn transitions(&self) -> Range<usize> {
        self.first as usize..(self.first + self.count) as usize
    }
}

/// What the next step of a local state is to the steps of other threads (`movers`).
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Mover {
    /// Not asked for yet.
    Unknown,
    /// One load, which the goal cannot see unless the thread arrives somewhere by it.
    Load,
    /// One store.
    Store,
    /// One fence, which the goal cannot see in the same way.
    Fence,
    /// No mover: nothing, or anything else.
    None,
}

/// One step that a thread may take: an edge of its graph, and the value of an `any`.
#[derive(Clone, Copy)]
pub(super) struct Transition {
    pub edge: EdgeId,
    pub choice: Option<Value>,
    pub effect: Effect,
    /// The edge among those of the node.
    index: u32,
}

/// What a transition does to memory, and where its thread stands then.
#[derive(Clone, Copy)]
pub(super) enum Effect {
    Local {
        to: LocalId,
    },
    Fence {
        to: LocalId,
    },
    Store {
        cell: u32,
        raw: u64,
        to: LocalId,
    },
    /// What follows depends on what the cell holds.
    Load {
        cell: u32,
        table: u32,
    },
    Rmw {
        cell: u32,
        table: u32,
    },
}

/// Where a transition that reads leads, and what the cell that it touches holds then.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Landing {
    pub to: LocalId,
    pub raw: u64,
}

/// What one worker knows of the threads' transitions.
#[derive(Default)]
pub(super) struct TransitionCache {
    /// Per thread, by the bits.
    known: Vec<HashTable<LocalId>>,
    /// The same for threads of few bits, by their value; `NOT_YET` for those that have not been met.
    few: Vec<Vec<LocalId>>,
    hasher: FixedState,
    locals: Vec<LocalState>,
    bits: Vec<u64>,
    transitions: Vec<Transition>,
    /// Per value of a narrow cell.
    landings: Vec<Landing>,
    /// By transition and value, for wide cells.
    rare: HashMap<(u32, u64), Landing, FixedState>,
    from: Work,
    work: Work,
    words: Vec<u64>,
}

impl TransitionCache {
    /// Empties the cache if it has become large; no number of a local state is good after that.
    pub(crate) fn evict(&mut self, core: &Core) {
        let threads = core.threads();
        let large = self.locals.len() > MOST_LOCALS
            || self.bits.len() > MOST_WORDS
            || self.landings.len() + self.rare.len() + self.transitions.len() > MOST_LANDINGS;
        if large || self.known.len() != threads {
            self.known.clear();
            self.known.resize(threads, HashTable::new());
            let numbers = |t| vec![NOT_YET; core.fields.thread(t).numbers()];
            self.few = (0..threads).map(numbers).collect();
            self.locals.clear();
            self.bits.clear();
            self.transitions.clear();
            self.landings.clear();
            self.rare.clear();
        }
    }

    #[inline]
    pub(crate) fn get(&self, id: LocalId) -> &LocalState {
        &self.locals[id as usize]
    }

    /// Puts a thread into a local state.
    #[inline]
    pub(crate) fn put(&self, core: &Core, t: usize, id: LocalId, words: &mut [u64]) {
        let local = self.get(id);
        let part = core.fields.thread(t);
        part.set_first(words, local.bits);
        if part.words() > 1 {
            part.set(words, &self.bits[local.start as usize..]);
        }
    }

    /// The local state of a thread in a packed state.
    #[inline]
    pub(crate) fn find(&mut self, core: &Core, t: usize, words: &[u64]) -> LocalId {
        let part = core.fields.thread(t);
        if let Some(few) = part.number(words) {
            let id = self.few[t][few];
            return if id == NOT_YET { self.add_few(core, t, words, few) } else { id };
        }
        let TransitionCache { known, hasher, locals, bits, .. } = self;
        let of = |id: &LocalId| bits[locals[*id as usize].start as usize..][..part.words()].iter().copied();
        let is_it = |id: &LocalId| part.bits(words).eq(of(id));
        let hash = hash(hasher, part.bits(words));
        if let Some(&id) = known[t].find(hash, is_it) {
            return id;
        }
        known[t].insert_unique(hash, locals.len() as LocalId, |id| self::hash(hasher, of(id)));
        self.add(core, t, words)
    }

    #[cold]
    fn add_few(&mut self, core: &Core, t: usize, words: &[u64], few: usize) -> LocalId {
        let id = self.add(core, t, words);
        self.few[t][few] = id;
        id
    }

    fn add(&mut self, core: &Core, t: usize, words: &[u64]) -> LocalId {
        let TransitionCache { locals, bits, .. } = self;
        let id = locals.len() as LocalId;
        let thread = &core.code.threads[t];
        let location = core.code.locations[t];
        let number = location.value(location.get(words)) as usize;
        let node = &thread.nodes[number];
        locals.push(LocalState {
            bits: core.fields.thread(t).bits(words).next().unwrap_or(0),
            start: bits.len() as u32,
            mover: Mover::Unknown,
            visible: node.visible,
            visible_effect: node.visible_effect,
            lost: node.lost,
            may_be_ample: node.may_be_ample,
            arrived: node.named || number == thread.end as usize || number == thread.trap as usize,
            stuck: number == thread.stuck as usize,
            future: node.future,
            live_cells: node.live_cells,
            next: Access::NONE,
            first: 0,
            count: 0,
            cell: 0,
            table: WIDE,
        });
        bits.extend(core.fields.thread(t).bits(words));
        id
    }

    /// The same local state, with its transitions known.
    #[inline(always)]
    pub(crate) fn with_transitions(&mut self, core: &Core, t: usize, id: LocalId) -> &LocalState {
        if self.locals[id as usize].mover == Mover::Unknown {
            self.find_transitions(core, t, id);
        }
        &self.locals[id as usize]
    }

    #[inline]
    pub(crate) fn transition(&self, i: usize) -> Transition {
        self.transitions[i]
    }

    /// The decision that the transition is.
    pub(crate) fn act(&self, i: usize) -> Act {
        Act::Step { edge: self.transitions[i].edge, choice: self.transitions[i].choice }
    }

    #[cold]
    fn find_transitions(&mut self, core: &Core, t: usize, id: LocalId) {
        self.unpack(core, t, id);
        let node = core.node(&self.from, t);
        let mut found = Vec::new();
        for (index, edge) in node.edges.iter().enumerate() {
            for choice in edge.instr.choices() {
                let effect = self.effect_of(core, t, edge, choice);
                let index = index as u32;
                found.extend(effect.map(|effect| Transition { edge: edge.id, choice, effect, index }));
            }
        }
        let touched = |t: &Transition| match t.effect {
            Effect::Local { .. } | Effect::Fence { .. } => Access::NONE,
            Effect::Load { cell, .. } => Access::read(cell),
            Effect::Store { cell, .. } => Access::write(cell),
            Effect::Rmw { cell, .. } => Access::read_write(cell),
        };
        let local = &mut self.locals[id as usize];
        local.mover = Mover::None;
        if let [Transition { effect, .. }] = found[..]
            && node.edges.len() == 1
        {
            match effect {
                Effect::Load { cell, table } if !local.visible_effect => {
                    (local.mover, local.cell, local.table) = (Mover::Load, cell, table);
                }
                Effect::Store { .. } => local.mover = Mover::Store,
                Effect::Fence { .. } if !local.visible_effect => local.mover = Mover::Fence,
                Effect::Local { .. } | Effect::Load { .. } | Effect::Fence { .. } | Effect::Rmw { .. } => {}
            }
        }
        local.next = found.iter().map(touched).fold(Access::NONE, Access::union);
        local.first = self.transitions.len() as u32;
        local.count = found.len() as u32;
        self.transitions.extend(found);
    }

    /// What taking an edge means, if it is possible.
    fn effect_of(&mut self, core: &Core, t: usize, edge: &CEdge, choice: Option<Value>) -> Option<Effect> {
        let cell = edge.instr.address().and_then(|addr| core.cell(&self.from, addr));
        // What a cell holds that nobody really reads is not stored.
        let cell = cell.filter(|c| core.code.bounds[core.code.memory + c].is_some()).map(|c| c as u32);
        let stored = match &edge.instr {
            CInstr::Store { value, .. } => value.eval(&self.from.vals),
            _ => None,
        };
        if let (Some(cell), Some(value)) = (cell, stored) {
            // The store has happened even if a local step after it goes wrong.
            self.work.copy(&self.from, t);
            self.work.vals[t] = edge.to as Value;
            let raw = core.fields.cell(cell).raw(value);
            return Some(Effect::Store { cell, raw, to: self.arrive(core, t) });
        }
        match (&edge.instr, cell) {
            (CInstr::Load { .. }, Some(cell)) => Some(Effect::Load { cell, table: self.table(core, cell) }),
            (CInstr::Rmw { .. }, Some(cell)) => Some(Effect::Rmw { cell, table: self.table(core, cell) }),
            (CInstr::Fence | CInstr::Membarrier, _) => {
                Some(Effect::Fence { to: self.take(core, t, edge, choice)? })
            }
            _ => Some(Effect::Local { to: self.take(core, t, edge, choice)? }),
        }
    }

    /// The table of landings for a transition that finds what the cell holds; `WIDE` if it may hold many
    /// values.
    fn table(&mut self, core: &Core, cell: u32) -> u32 {
        let start = self.landings.len();
        let width = core.fields.cell(cell).width();
        if width > NARROW {
            return WIDE;
        }
        self.landings.resize(start + (1 << width), UNKNOWN);
        start as u32
    }

    /// Where a load that is a mover leads if it finds a value in its cell.
    #[inline(always)]
    pub(crate) fn load(&mut self, core: &Core, t: usize, at: LocalId, raw: u64) -> LocalId {
        let local = &self.locals[at as usize];
        if local.table != WIDE {
            let to = self.landings[local.table as usize + raw as usize].to;
            if to != NOT_YET {
                return to;
            }
        }
        self.landing(core, t, at, local.first as usize, raw).to
    }

    /// What follows when the transition finds a value in its cell.
    fn landing(&mut self, core: &Core, t: usize, at: LocalId, i: usize, raw: u64) -> Landing {
        let (Effect::Load { cell, table } | Effect::Rmw { cell, table }) = self.transitions[i].effect else {
            unreachable!("only what reads has a landing")
        };
        let known = match table {
            WIDE => self.rare.get(&(i as u32, raw)).copied().unwrap_or(UNKNOWN),
            narrow => self.landings[narrow as usize + raw as usize],
        };
        if known.to != NOT_YET {
            return known;
        }
        let landing = self.find_landing(core, t, at, i, cell, raw);
        match table {
            WIDE => drop(self.rare.insert((i as u32, raw), landing)),
            narrow => self.landings[narrow as usize + raw as usize] = landing,
        }
        landing
    }

    /// Where a transition leads if the thread finds these values in cells, and the cell that it sets, with
    /// what it holds then.
    #[inline(always)]
    pub(crate) fn effect(
        &mut self,
        core: &Core,
        t: usize,
        at: LocalId,
        i: usize,
        now: impl Fn(u32) -> u64,
    ) -> (LocalId, Option<(u32, u64)>) {
        match self.transitions[i].effect {
            Effect::Local { to } | Effect::Fence { to } => (to, None),
            Effect::Load { cell, .. } => (self.landing(core, t, at, i, now(cell)).to, None),
            Effect::Store { cell, raw, to } => (to, Some((cell, raw))),
            Effect::Rmw { cell, .. } => {
                let Landing { to, raw } = self.landing(core, t, at, i, now(cell));
                (to, Some((cell, raw)))
            }
        }
    }

    #[cold]
    fn find_landing(&mut self, core: &Core, t: usize, at: LocalId, i: usize, cell: u32, raw: u64) -> Landing {
        self.unpack(core, t, at);
        self.from.vals[core.code.memory + cell as usize] = core.fields.cell(cell).value(raw);
        let edge = &core.node(&self.from, t).edges[self.transitions[i].index as usize];
        let to = self.take(core, t, edge, None).expect("nothing holds up a step that reads");
        Landing { to, raw: self.stored(core, cell) }
    }

    /// Takes an edge, and the local steps after it, from the state that is unpacked.
    fn take(&mut self, core: &Core, t: usize, edge: &CEdge, choice: Option<Value>) -> Option<LocalId> {
        self.work.copy(&self.from, t);
        if core.take(&mut self.work, t, edge, choice) == Taken::No {
            return None;
        }
        Some(self.arrive(core, t))
    }

    /// Takes the local steps after a step: the local state they lead to.
    fn arrive(&mut self, core: &Core, t: usize) -> LocalId {
        core.run(&mut self.work, t, &mut ());
        core.clear_dead_registers(&mut self.work);
        let mut words = std::mem::take(&mut self.words);
        core.fields.thread(t).pack(&self.work.vals, &mut words);
        let to = self.find(core, t, &words);
        self.words = words;
        to
    }

    /// What the cell holds after a step.
    fn stored(&self, core: &Core, cell: u32) -> u64 {
        core.fields.cell(cell).raw(self.work.vals[core.code.memory + cell as usize])
    }

    /// Puts the thread into its local state; whatever else there is does not matter.
    fn unpack(&mut self, core: &Core, t: usize, id: LocalId) {
        let part = core.fields.thread(t);
        self.words.clear();
        self.words.resize(core.words(), 0);
        let start = self.get(id).start as usize;
        part.set(&mut self.words, &self.bits[start..]);
        self.from.vals.clone_from(&core.code.template);
        self.from.vals[lock_slot(core.threads())] = 0;
        part.unpack(&self.words, &mut self.from.vals);
    }
}

#[inline]
fn hash(hasher: &FixedState, bits: impl Iterator<Item = u64>) -> u64 {
    let mut hasher = hasher.build_hasher();
    bits.for_each(|word| hasher.write_u64(word));
    hasher.finish()
}

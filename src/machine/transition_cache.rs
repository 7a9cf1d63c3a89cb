//! What can a thread do from where it stands? Worked out once for every local state, and then looked up.
//!
//! A *local state* is all that a thread has to itself: its location and its registers, as they lie in a packed
//! state. What it can do next depends on nothing else, but for the value that a load or a locked
//! instruction finds. So its steps, with the local instructions that follow each of them, are kept: a step is then
//! a few bits of the packed state exchanged for others, and nothing has to be unpacked.
//! The meaning of instructions is not repeated here: a step that is not known yet is taken by `machine`.
//! Invariant: this is a cache. It may be emptied at any time between two expansions, and is, before it grows large.

use super::compile::{CEdge, Compiled, Op, lock_slot};
use super::core::{ProgramMachine, Taken, Work};
use crate::analysis::access::Access;
use crate::analysis::interval::Interval;
use crate::model::{EdgeId, Value};
use crate::query::Act as Decision;
use crate::reach::pack::{Field, Part};
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};
use std::ops::Range;

/// Cells of at most so many bits have their outcomes in a table.
const NARROW: u32 = 5;
/// A cache with more than this is emptied.
const MOST_LOCALS: usize = 1 << 14;
const MOST_OUTCOMES: usize = 1 << 16;
const MOST_WORDS: usize = 1 << 18;
/// An `any` of more values than this is not kept.
const MOST_CHOICES: u64 = 256;

pub(crate) type LocalId = u32;

/// The table of a cell that may hold many values.
const WIDE: u32 = u32::MAX;

const NOT_YET: LocalId = LocalId::MAX;

/// A place in the table of outcomes that is not filled yet.
const UNKNOWN: Outcome = Outcome { to: NOT_YET, raw: 0 };

#[derive(Clone, Copy)]
pub(crate) struct Local {
    /// The thread's part of the first word it touches in a packed state.
    bits: u64,
    /// Where those of all words are kept.
    start: u32,
    pub kind: Kind,
    pub visible: bool,
    /// The goal can see the next step otherwise than by an arrival.
    pub seen: bool,
    pub lost: bool,
    pub may_hurry: bool,
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
    /// The cell and the table of a load that can wait.
    cell: u32,
    table: u32,
}

impl Local {
    /// The cell of a load that can wait.
    #[inline]
    pub fn cell(&self) -> u32 {
        self.cell
    }

    /// The numbers of its steps, once they are known.
    #[inline]
    pub fn moves(&self) -> Range<usize> {
        self.first as usize..(self.first + self.count) as usize
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Kind {
    /// Nobody has asked yet.
    Unknown,
    /// One load, which the goal cannot see unless the thread arrives somewhere by it.
    Load,
    /// One store.
    Store,
    /// One fence, which the goal cannot see in the same way.
    Fence,
    /// Nothing, or anything else.
    Other,
}

/// One step that a thread may take: an edge of its graph, and the value of an `any`.
#[derive(Clone, Copy)]
pub(crate) struct Move {
    pub edge: EdgeId,
    pub choice: Option<Value>,
    pub act: Act,
    /// The edge among those of the node.
    index: u32,
}

#[derive(Clone, Copy)]
pub(crate) enum Act {
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

/// What follows a step, and what the cell it touches holds then.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Outcome {
    pub to: LocalId,
    pub raw: u64,
}

#[derive(Default)]
pub(crate) struct Locals {
    /// Per thread, by the bits.
    known: Vec<HashTable<LocalId>>,
    /// The same for threads of few bits, by their value; `NOT_YET` for those that have not been seen.
    few: Vec<Vec<LocalId>>,
    hasher: FixedState,
    locals: Vec<Local>,
    bits: Vec<u64>,
    moves: Vec<Move>,
    /// Per value of a narrow cell.
    outcomes: Vec<Outcome>,
    /// By move and value, for wide cells.
    rare: HashMap<(u32, u64), Outcome, FixedState>,
    from: Work,
    work: Work,
    words: Vec<u64>,
}

impl Locals {
    /// Empties the cache if it has become large; no number of a local state is good after that.
    pub fn tidy(&mut self, machine: &ProgramMachine) {
        let threads = machine.threads();
        let large = self.locals.len() > MOST_LOCALS
            || self.bits.len() > MOST_WORDS
            || self.outcomes.len() + self.rare.len() + self.moves.len() > MOST_OUTCOMES;
        if large || self.known.len() != threads {
            self.known.clear();
            self.known.resize(threads, HashTable::new());
            let numbers = |t| vec![NOT_YET; machine.parts().thread(t).numbers()];
            self.few = (0..threads).map(numbers).collect();
            self.locals.clear();
            self.bits.clear();
            self.moves.clear();
            self.outcomes.clear();
            self.rare.clear();
        }
    }

    #[inline]
    pub fn get(&self, id: LocalId) -> &Local {
        &self.locals[id as usize]
    }

    /// Puts a thread into a local state.
    #[inline]
    pub fn put(&self, machine: &ProgramMachine, t: usize, id: LocalId, words: &mut [u64]) {
        let local = self.get(id);
        let part = machine.parts().thread(t);
        part.set_first(words, local.bits);
        if part.words() > 1 {
            part.set(words, &self.bits[local.start as usize..]);
        }
    }

    /// The local state of a thread in a packed state.
    #[inline]
    pub fn find(&mut self, machine: &ProgramMachine, t: usize, words: &[u64]) -> LocalId {
        let part = machine.parts().thread(t);
        if let Some(few) = part.number(words) {
            let id = self.few[t][few];
            return if id == NOT_YET { self.add_few(machine, t, words, few) } else { id };
        }
        let Locals { known, hasher, locals, bits, .. } = self;
        let of = |id: &LocalId| bits[locals[*id as usize].start as usize..][..part.words()].iter().copied();
        let is_it = |id: &LocalId| part.bits(words).eq(of(id));
        let hash = hash(hasher, part.bits(words));
        if let Some(&id) = known[t].find(hash, is_it) {
            return id;
        }
        known[t].insert_unique(hash, locals.len() as LocalId, |id| self::hash(hasher, of(id)));
        self.add(machine, t, words)
    }

    #[cold]
    fn add_few(&mut self, machine: &ProgramMachine, t: usize, words: &[u64], few: usize) -> LocalId {
        let id = self.add(machine, t, words);
        self.few[t][few] = id;
        id
    }

    fn add(&mut self, machine: &ProgramMachine, t: usize, words: &[u64]) -> LocalId {
        let Locals { locals, bits, .. } = self;
        let id = locals.len() as LocalId;
        let thread = &machine.code.threads[t];
        let location = machine.code.locations[t];
        let number = location.value(location.get(words)) as usize;
        let node = &thread.nodes[number];
        locals.push(Local {
            bits: machine.parts().thread(t).bits(words).next().unwrap_or(0),
            start: bits.len() as u32,
            kind: Kind::Unknown,
            visible: node.visible,
            seen: node.seen,
            lost: node.lost,
            may_hurry: node.may_hurry,
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
        bits.extend(machine.parts().thread(t).bits(words));
        id
    }

    /// The same local state, with its steps known.
    #[inline(always)]
    pub fn with_moves(&mut self, machine: &ProgramMachine, t: usize, id: LocalId) -> &Local {
        if self.locals[id as usize].kind == Kind::Unknown {
            self.find_moves(machine, t, id);
        }
        &self.locals[id as usize]
    }

    #[inline]
    pub fn a_move(&self, i: usize) -> Move {
        self.moves[i]
    }

    /// The decision that the move is.
    pub fn told(&self, i: usize) -> Decision {
        Decision::Step { edge: self.moves[i].edge, choice: self.moves[i].choice }
    }

    #[cold]
    fn find_moves(&mut self, machine: &ProgramMachine, t: usize, id: LocalId) {
        self.unpack(machine, t, id);
        let node = machine.node(&self.from, t);
        let mut found = Vec::new();
        for (index, edge) in node.edges.iter().enumerate() {
            let (lo, hi, any) = match edge.op {
                Op::Any { lo, hi, .. } => (lo, hi, true),
                _ => (0, 0, false),
            };
            for choice in lo..=hi {
                let choice = any.then_some(choice);
                let act = self.act(machine, t, edge, choice);
                found.extend(act.map(|act| Move { edge: edge.id, choice, act, index: index as u32 }));
            }
        }
        let touched = |m: &Move| match m.act {
            Act::Local { .. } | Act::Fence { .. } => Access::NONE,
            Act::Load { cell, .. } => Access::read(cell),
            Act::Store { cell, .. } => Access::write(cell),
            Act::Rmw { cell, .. } => Access::read_write(cell),
        };
        let local = &mut self.locals[id as usize];
        local.kind = Kind::Other;
        if let [Move { act, .. }] = found[..]
            && node.edges.len() == 1
        {
            match act {
                Act::Load { cell, table } if !local.seen => {
                    (local.kind, local.cell, local.table) = (Kind::Load, cell, table);
                }
                Act::Store { .. } => local.kind = Kind::Store,
                Act::Fence { .. } if !local.seen => local.kind = Kind::Fence,
                Act::Local { .. } | Act::Load { .. } | Act::Fence { .. } | Act::Rmw { .. } => {}
            }
        }
        local.next = found.iter().map(touched).fold(Access::NONE, Access::union);
        local.first = self.moves.len() as u32;
        local.count = found.len() as u32;
        self.moves.extend(found);
    }

    /// What taking an edge means, if it is possible.
    fn act(
        &mut self,
        machine: &ProgramMachine,
        t: usize,
        edge: &CEdge,
        choice: Option<Value>,
    ) -> Option<Act> {
        let cell = edge.op.address().and_then(|addr| machine.cell(&self.from, addr));
        // What a cell holds that nobody really reads is not stored.
        let cell = cell.filter(|c| machine.code.bounds[machine.code.memory + c].is_some()).map(|c| c as u32);
        let stored = match &edge.op {
            Op::Store { value, .. } => value.eval(&self.from.vals),
            _ => None,
        };
        if let (Some(cell), Some(value)) = (cell, stored) {
            // The store has happened even if a local step after it goes wrong.
            self.work.copy(&self.from, t);
            self.work.vals[t] = edge.to as Value;
            let raw = machine.parts().cell(cell).raw(value);
            return Some(Act::Store { cell, raw, to: self.arrive(machine, t) });
        }
        match (&edge.op, cell) {
            (Op::Load { .. }, Some(cell)) => Some(Act::Load { cell, table: self.table(machine, cell) }),
            (Op::Rmw { .. }, Some(cell)) => Some(Act::Rmw { cell, table: self.table(machine, cell) }),
            (Op::Fence, _) => Some(Act::Fence { to: self.take(machine, t, edge, choice)? }),
            _ => Some(Act::Local { to: self.take(machine, t, edge, choice)? }),
        }
    }

    /// The table of outcomes for a move that finds what the cell holds; `WIDE` if it may hold many values.
    fn table(&mut self, machine: &ProgramMachine, cell: u32) -> u32 {
        let start = self.outcomes.len();
        let width = machine.parts().cell(cell).width();
        if width > NARROW {
            return WIDE;
        }
        self.outcomes.resize(start + (1 << width), UNKNOWN);
        start as u32
    }

    /// Where a load that can wait leads if it finds a value in its cell.
    #[inline(always)]
    pub fn load(&mut self, machine: &ProgramMachine, t: usize, at: LocalId, raw: u64) -> LocalId {
        let local = &self.locals[at as usize];
        if local.table != WIDE {
            let to = self.outcomes[local.table as usize + raw as usize].to;
            if to != NOT_YET {
                return to;
            }
        }
        self.outcome(machine, t, at, local.first as usize, raw).to
    }

    /// What follows when the move finds a value in its cell.
    fn outcome(&mut self, machine: &ProgramMachine, t: usize, at: LocalId, i: usize, raw: u64) -> Outcome {
        let (Act::Load { cell, table } | Act::Rmw { cell, table }) = self.moves[i].act else {
            unreachable!("only what reads has outcomes")
        };
        let known = match table {
            WIDE => self.rare.get(&(i as u32, raw)).copied().unwrap_or(UNKNOWN),
            narrow => self.outcomes[narrow as usize + raw as usize],
        };
        if known.to != NOT_YET {
            return known;
        }
        let outcome = self.find_outcome(machine, t, at, i, cell, raw);
        match table {
            WIDE => drop(self.rare.insert((i as u32, raw), outcome)),
            narrow => self.outcomes[narrow as usize + raw as usize] = outcome,
        }
        outcome
    }

    /// Where a move leads if the thread finds these values in cells, and the cell that it sets, with what it holds then.
    #[inline(always)]
    pub fn effect(
        &mut self,
        machine: &ProgramMachine,
        t: usize,
        at: LocalId,
        i: usize,
        now: impl Fn(u32) -> u64,
    ) -> (LocalId, Option<(u32, u64)>) {
        match self.moves[i].act {
            Act::Local { to } | Act::Fence { to } => (to, None),
            Act::Load { cell, .. } => (self.outcome(machine, t, at, i, now(cell)).to, None),
            Act::Store { cell, raw, to } => (to, Some((cell, raw))),
            Act::Rmw { cell, .. } => {
                let Outcome { to, raw } = self.outcome(machine, t, at, i, now(cell));
                (to, Some((cell, raw)))
            }
        }
    }

    #[cold]
    fn find_outcome(
        &mut self,
        machine: &ProgramMachine,
        t: usize,
        at: LocalId,
        i: usize,
        cell: u32,
        raw: u64,
    ) -> Outcome {
        self.unpack(machine, t, at);
        self.from.vals[machine.code.memory + cell as usize] = machine.parts().cell(cell).value(raw);
        let edge = &machine.node(&self.from, t).edges[self.moves[i].index as usize];
        let to = self.take(machine, t, edge, None).expect("nothing holds up a step that reads");
        Outcome { to, raw: self.stored(machine, cell) }
    }

    /// Takes an edge, and the local steps after it, from the state that is unpacked.
    fn take(
        &mut self,
        machine: &ProgramMachine,
        t: usize,
        edge: &CEdge,
        choice: Option<Value>,
    ) -> Option<LocalId> {
        self.work.copy(&self.from, t);
        if machine.take(&mut self.work, t, edge, choice.unwrap_or(0)) == Taken::No {
            return None;
        }
        Some(self.arrive(machine, t))
    }

    /// Takes the local steps after a step: the local state they lead to.
    fn arrive(&mut self, machine: &ProgramMachine, t: usize) -> LocalId {
        machine.run(&mut self.work, t, &mut ());
        machine.bury(&mut self.work);
        let mut words = std::mem::take(&mut self.words);
        machine.parts().thread(t).pack(&self.work.vals, &mut words);
        let to = self.find(machine, t, &words);
        self.words = words;
        to
    }

    /// What the cell holds after a step.
    fn stored(&self, machine: &ProgramMachine, cell: u32) -> u64 {
        machine.parts().cell(cell).raw(self.work.vals[machine.code.memory + cell as usize])
    }

    /// Puts the thread into its local state; whatever else there is does not matter.
    fn unpack(&mut self, machine: &ProgramMachine, t: usize, id: LocalId) {
        let part = machine.parts().thread(t);
        self.words.clear();
        self.words.resize(machine.code.layout.words(), 0);
        let start = self.get(id).start as usize;
        part.set(&mut self.words, &self.bits[start..]);
        self.from.vals.clone_from(&machine.code.template);
        self.from.vals[lock_slot(machine.threads())] = 0;
        part.unpack(&self.words, &mut self.from.vals);
    }
}

#[inline]
fn hash(hasher: &FixedState, bits: impl Iterator<Item = u64>) -> u64 {
    let mut hasher = hasher.build_hasher();
    bits.for_each(|word| hasher.write_u64(word));
    hasher.finish()
}

/// Where threads and cells lie in a packed state.
pub(crate) struct Parts {
    threads: Vec<Part>,
    cells: Vec<Field>,
}

impl Parts {
    /// `None` if some local states have too many steps to be kept.
    pub fn of(code: &Compiled) -> Option<Parts> {
        let own = |t: usize| {
            let base = &code.register_base;
            let registers = base[t]..base.get(t + 1).copied().unwrap_or(code.memory);
            code.layout.part(|slot| slot == t || registers.contains(&slot))
        };
        let fields = code.layout.by_slot(code.template.len());
        let cell = |slot: usize| fields[slot].unwrap_or_else(|| Field::constant(code.template[slot]));
        let too_many = |edge: &CEdge| match edge.op {
            Op::Any { lo, hi, .. } => Interval { lo, hi }.more() >= MOST_CHOICES,
            _ => false,
        };
        let mut nodes = code.threads.iter().flat_map(|t| &t.nodes);
        if nodes.any(|n| n.edges.iter().any(too_many)) {
            return None;
        }
        Some(Parts {
            threads: (0..code.threads.len()).map(own).collect(),
            cells: (code.memory..code.template.len()).map(cell).collect(),
        })
    }

    #[inline]
    pub fn thread(&self, t: usize) -> &Part {
        &self.threads[t]
    }

    #[inline]
    pub fn cell(&self, cell: u32) -> Field {
        self.cells[cell as usize]
    }
}

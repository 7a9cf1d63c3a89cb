//! Where do the threads stand, and how far would each come by itself? The *row* of a thread: its loads, stores and fences
//! up to its anchor, as it would take them with memory as it is.
//!
//! Not here: which part of a row matters to others.

use super::super::core::{LONGEST_BUFFER, Pending, ProgramMachine, leave};
use super::super::transition_cache::{Act, Kind, LocalId, Locals};
use crate::analysis::access::Access;
use crate::model::Value;
use crate::reach::visited::MAX_WORDS;

/// More steps than this are not taken at once.
const LONGEST: usize = 32;

/// The packed locations, registers and cells of a state, the local state of each thread, and what waits in buffers.
#[derive(Clone, Default)]
pub(super) struct Standing {
    pub words: Vec<u64>,
    pub at: Vec<LocalId>,
    /// Oldest store first; no buffers under SC.
    pub buffers: Vec<Vec<Pending>>,
}

impl Standing {
    pub fn become_like(&mut self, other: &Standing) {
        self.words.clone_from(&other.words);
        self.at.clone_from(&other.at);
        self.buffers.clone_from(&other.buffers);
    }

    pub fn unpack(&mut self, machine: &ProgramMachine, locals: &mut Locals, state: &[u64]) {
        let (words, buffers) = state.split_at(machine.words());
        self.words.clear();
        self.words.extend_from_slice(words);
        if machine.has_buffers() {
            machine.unpack_buffers(buffers, &mut self.buffers);
        }
        self.at.clear();
        self.at.extend((0..machine.threads()).map(|t| locals.find(machine, t, words)));
    }

    /// Is there nothing in any buffer?
    #[inline]
    pub fn is_drained(&self) -> bool {
        self.buffers.iter().all(Vec::is_empty)
    }

    #[inline]
    pub fn buffer(&self, t: usize) -> &[Pending] {
        self.buffers.get(t).map_or(&[], |b| b)
    }

    /// What the cell holds, as it is written down.
    #[inline]
    pub fn memory(&self, machine: &ProgramMachine, cell: u32) -> u64 {
        machine.parts().cell(cell).get(&self.words)
    }

    #[inline]
    pub fn set(&mut self, machine: &ProgramMachine, cell: u32, raw: u64) {
        machine.parts().cell(cell).set(&mut self.words, raw);
    }

    /// The oldest store of the buffer reaches memory, and more of the same may stay.
    pub fn flush(&mut self, machine: &ProgramMachine, t: usize, stays: bool) {
        let Pending { cell, value, .. } = leave(&mut self.buffers[t], stays);
        self.set(machine, cell, machine.parts().cell(cell).raw(value));
    }

    /// Everything as words; `false` if that would be too many.
    pub fn pack(&self, machine: &ProgramMachine, out: &mut Vec<u64>) -> bool {
        out.clear();
        if self.buffers.iter().any(|b| b.len() > LONGEST_BUFFER) {
            return false;
        }
        out.extend_from_slice(&self.words);
        machine.pack_buffers(&self.buffers, out);
        out.len() <= MAX_WORDS
    }
}

#[derive(Clone, Copy)]
pub(super) struct Step {
    pub from: LocalId,
    pub to: LocalId,
    pub what: What,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum What {
    /// A load from memory.
    Load(u32),
    /// A store enters the buffer.
    Store(Pending),
    /// Nobody else has to do with it: a load from the own buffer, a silent store or one more of many, a fence with nothing
    /// to wait for.
    Own,
}

#[derive(Clone, Copy, Default, PartialEq)]
pub(super) enum End {
    /// The thread stands before its anchor.
    #[default]
    Anchor,
    /// It can do no more for now, or goes round in a circle.
    Nothing,
    /// There are more steps.
    Cut,
}

/// What a thread does before its anchor.
#[derive(Clone, Default)]
pub(super) struct Row {
    pub steps: Vec<Step>,
    /// The cells that it reads in memory.
    pub reads: Access,
    pub end: End,
    /// Steps up to the last store that enters the buffer.
    stored: usize,
}

impl Row {
    pub fn fill(&mut self, machine: &ProgramMachine, locals: &mut Locals, base: &Standing, t: usize) {
        self.steps.clear();
        self.reads = Access::NONE;
        self.stored = 0;
        let mut from = base.at[t];
        self.end = loop {
            let kind = locals.with_moves(machine, t, from).kind;
            let known = kind == Kind::Load || machine.has_buffers() && kind != Kind::Other;
            if !known {
                let stays = locals.get(from).moves().is_empty();
                break if stays { End::Nothing } else { End::Anchor };
            }
            if self.steps.len() == LONGEST {
                break End::Cut;
            }
            let Some((what, to)) = self.next(machine, locals, base, t, from) else { break End::Nothing };
            // A store that enters the buffer is followed by its flush before the goal counts.
            if !matches!(what, What::Store(_)) {
                if locals.get(to).arrived || locals.get(from).seen {
                    break End::Anchor;
                }
                if self.has_been_at(base.at[t], to) {
                    break End::Nothing;
                }
            }
            if machine.repeats() && self.closes_loop(what, to) {
                break End::Nothing;
            }
            self.push(Step { from, to, what });
            from = to;
        };
    }

    /// What the thread does at a local state, and where that leads; `None` if a fence has to wait.
    #[inline]
    fn next(
        &self,
        machine: &ProgramMachine,
        locals: &mut Locals,
        base: &Standing,
        t: usize,
        from: LocalId,
    ) -> Option<(What, LocalId)> {
        let local = locals.get(from);
        if local.kind == Kind::Load {
            let cell = local.cell();
            let own = self.buffered(base, t, cell).map(|value| machine.parts().cell(cell).raw(value));
            let to = locals.load(machine, t, from, own.unwrap_or_else(|| base.memory(machine, cell)));
            return Some((own.map_or(What::Load(cell), |_| What::Own), to));
        }
        match locals.a_move(local.moves().start).act {
            Act::Store { cell, raw, to } => {
                let store = Pending::one(cell, machine.parts().cell(cell).value(raw));
                let known = self.newest(base, t).is_some_and(|last| last.many && last.is_like(store))
                    || self.is_silent(machine, base, t, cell, raw);
                Some((if known { What::Own } else { What::Store(store) }, to))
            }
            Act::Fence { to } => (!self.has_pending(base, t)).then_some((What::Own, to)),
            Act::Local { .. } | Act::Load { .. } | Act::Rmw { .. } => {
                unreachable!("kinds are those of moves")
            }
        }
    }

    fn push(&mut self, step: Step) {
        self.steps.push(step);
        match step.what {
            What::Load(cell) => self.reads = self.reads.union(Access::read(cell)),
            What::Store(_) => self.stored = self.steps.len(),
            What::Own => {}
        }
    }

    /// Does a store bring the thread back to where it stood after the last one, which was the same? Then it can go round
    /// as often as it likes, and the last one is many.
    fn closes_loop(&mut self, what: What, to: LocalId) -> bool {
        let Some(last) = self.stored.checked_sub(1).map(|last| &mut self.steps[last]) else { return false };
        match (&mut last.what, what) {
            (What::Store(first), What::Store(again)) if last.to == to && first.is_like(again) => {
                first.many = true;
                true
            }
            _ => false,
        }
    }

    /// Has the thread been at the local state with the buffer as it is now?
    fn has_been_at(&self, first: LocalId, to: LocalId) -> bool {
        let since = if self.stored == 0 { first } else { self.steps[self.stored - 1].to };
        to == since || self.steps[self.stored..].iter().any(|s| s.to == to)
    }

    /// Where the thread stands after so many steps.
    #[inline]
    pub fn after(&self, base: &Standing, t: usize, steps: usize) -> LocalId {
        if steps == 0 { base.at[t] } else { self.steps[steps - 1].to }
    }

    /// Stores among so many steps.
    #[inline]
    pub fn stores(&self, steps: usize) -> impl DoubleEndedIterator<Item = Pending> {
        let stored = &self.steps[..steps.min(self.stored)];
        stored.iter().filter_map(|s| match s.what {
            What::Store(store) => Some(store),
            What::Load(_) | What::Own => None,
        })
    }

    /// Steps up to the first store that enters the buffer, and what it writes.
    pub fn first_store(&self) -> Option<(usize, Pending)> {
        let first = self.steps.iter().position(|s| matches!(s.what, What::Store(_)))?;
        Some((first + 1, self.stores(first + 1).next()?))
    }

    /// At its end, the newest own store to a cell that is not in memory.
    pub fn buffered(&self, base: &Standing, t: usize, cell: u32) -> Option<Value> {
        self.newest_first(base, t).find(|store| store.cell == cell).map(|store| store.value)
    }

    /// At its end, what entered the buffer last.
    fn newest(&self, base: &Standing, t: usize) -> Option<Pending> {
        self.newest_first(base, t).next()
    }

    fn newest_first(&self, base: &Standing, t: usize) -> impl Iterator<Item = Pending> {
        self.stores(self.steps.len()).rev().chain(base.buffer(t).iter().rev().copied())
    }

    /// At its end, what the thread finds in a cell.
    pub fn view(&self, machine: &ProgramMachine, base: &Standing, t: usize, cell: u32) -> u64 {
        match self.buffered(base, t, cell) {
            Some(value) => machine.parts().cell(cell).raw(value),
            None => base.memory(machine, cell),
        }
    }

    /// At its end, are there stores that are not in memory?
    #[inline]
    pub fn has_pending(&self, base: &Standing, t: usize) -> bool {
        self.stored > 0 || !base.buffer(t).is_empty()
    }

    /// Does any store of it enter the buffer?
    pub fn has_stores(&self) -> bool {
        self.stored > 0
    }

    /// At its end, would the store change nothing?
    pub fn is_silent(
        &self,
        machine: &ProgramMachine,
        base: &Standing,
        t: usize,
        cell: u32,
        raw: u64,
    ) -> bool {
        machine.writes_alone(t, cell) && self.view(machine, base, t, cell) == raw
    }
}

//! What does a thread's instruction do to a state? The meaning of `semantics`, on slots, and up to the next
//! scheduling point.
//!
//! Under TSO, stores enter the thread's buffer and flushes take the oldest of them to memory `[Owens09]`. A
//! store is *silent* `[LepakLipasti00]`, and does not enter the buffer, if no other thread ever writes the cell
//! and its thread wrote the same value last: whenever it reached memory, it would find that value there.
//! Loops that repeat a store then have finitely many states. In a block, a thread may read its own buffer
//! while memory is held by another: then it matters what is in there; and with a bound it matters how much.
//! So no store is silent there.

use super::super::compile::{CEdge, CInstr, Code, Modify, Node, lock_slot};
use super::{Core, MemoryModel, Pending, Record, Work, leave};
use crate::model::{Bytes, Value};
use crate::query::Act;
use std::sync::atomic::Ordering;

/// Was a step taken?
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Taken {
    Yes,
    /// Not possible in this state.
    No,
}

impl Core {
    #[inline]
    pub(crate) fn node(&self, work: &Work, t: usize) -> &Node {
        &self.code.threads[t].nodes[work.vals[t] as usize]
    }

    /// Has the thread gone wrong?
    pub(crate) fn is_trapped(&self, work: &Work, t: usize) -> bool {
        work.vals[t] == self.code.threads[t].trap as Value
    }

    /// Can the thread never move again, though it has neither ended nor gone wrong?
    #[inline]
    pub(crate) fn is_stuck(&self, work: &Work, t: usize) -> bool {
        work.vals[t] == self.code.threads[t].stuck as Value
    }

    /// Is memory held by another thread's block?
    #[inline]
    pub(crate) fn is_blocked(&self, work: &Work, t: usize) -> bool {
        let owner = work.vals[lock_slot(self.threads())];
        owner != 0 && owner != t as Value + 1
    }

    /// Is memory held by the thread's own block?
    #[inline]
    pub(crate) fn owns_lock(&self, work: &Work, t: usize) -> bool {
        work.vals[lock_slot(self.threads())] == t as Value + 1
    }

    #[inline]
    pub(crate) fn lock_is_free(&self, work: &Work) -> bool {
        work.vals[lock_slot(self.threads())] == 0
    }

    /// Does a store of any thread wait in its buffer?
    fn any_pending(&self, work: &Work) -> bool {
        (0..self.threads()).any(|t| work.has_pending(t))
    }

    /// The cell at an address, if there is one.
    #[inline]
    pub(crate) fn cell(&self, work: &Work, addr: &Code) -> Option<usize> {
        let address = addr.eval(&work.vals)?;
        ((address as u64) < self.code.cells as u64).then_some(address as usize)
    }

    /// Takes one edge. `choice` is the value of an `any`. A step that goes wrong leads to the trap.
    #[inline]
    pub(crate) fn take(&self, work: &mut Work, t: usize, edge: &CEdge, choice: Option<Value>) -> Taken {
        match self.act(work, t, &edge.instr, choice) {
            Some(Taken::Yes) => work.vals[t] = edge.to as Value,
            Some(Taken::No) => return Taken::No,
            None => work.vals[t] = self.code.threads[t].trap as Value,
        }
        Taken::Yes
    }

    /// What an instruction does to everything but the location; `None` if it goes wrong.
    #[inline]
    fn act(&self, work: &mut Work, t: usize, instr: &CInstr, choice: Option<Value>) -> Option<Taken> {
        match instr {
            CInstr::Assign { dst, value } => work.vals[*dst as usize] = value.eval(&work.vals)?,
            CInstr::Any { dst, .. } => {
                work.vals[*dst as usize] = choice.expect("an `any` is taken with a value");
            }
            CInstr::Assume(e) if e.eval(&work.vals)? == 0 => return Some(Taken::No),
            CInstr::Assert(e) if e.eval(&work.vals)? == 0 => return None,
            CInstr::Assume(_) | CInstr::Assert(_) | CInstr::Nop => {}
            CInstr::Load { dst, addr, bytes } => {
                let cell = self.cell(work, addr)?;
                let (found, needs_memory) = self.seen(work, t, cell, *bytes);
                if needs_memory && self.is_blocked(work, t) {
                    return Some(Taken::No);
                }
                work.vals[*dst as usize] = found;
            }
            CInstr::Store { addr, value, bytes } => {
                let cell = self.cell(work, addr)?;
                let value = value.eval(&work.vals)?;
                return Some(self.store(work, t, cell, value, *bytes));
            }
            CInstr::Rmw { dst, addr, op } => {
                let cell = self.cell(work, addr)?;
                let slot = self.code.memory + cell;
                let new = modified(op, *dst, &work.vals, work.vals[slot])?;
                if self.is_blocked(work, t) || work.has_pending(t) {
                    return Some(Taken::No);
                }
                work.vals[*dst as usize] = work.vals[slot];
                work.vals[slot] = new;
            }
            CInstr::Fence if work.has_pending(t) => return Some(Taken::No),
            CInstr::Membarrier if self.any_pending(work) => return Some(Taken::No),
            CInstr::Fence | CInstr::Membarrier => {}
            CInstr::Lock => {
                if !self.lock_is_free(work) || work.has_pending(t) {
                    return Some(Taken::No);
                }
                work.vals[lock_slot(self.threads())] = t as Value + 1;
            }
            CInstr::Unlock => {
                if !self.owns_lock(work, t) || work.has_pending(t) {
                    return Some(Taken::No);
                }
                work.vals[lock_slot(self.threads())] = 0;
            }
        }
        Some(Taken::Yes)
    }

    /// What a thread sees in these bytes of a cell, and whether some of that is in memory.
    #[inline]
    pub(crate) fn seen(&self, work: &Work, t: usize, cell: usize, bytes: Bytes) -> (Value, bool) {
        let memory = work.vals[self.code.memory + cell];
        if !self.code.mixes_sizes {
            let own = work.buffered(t, cell);
            return (own.unwrap_or(memory), own.is_none());
        }
        // Each byte comes from the newest store that has it.
        let (mut found, mut missing) = (0, bytes);
        for store in work.buffer(t).iter().rev().filter(|p| p.cell as usize == cell) {
            let taken = missing.and(store.bytes);
            found |= taken.of(store.value);
            missing = missing.without(taken);
        }
        (found | missing.of(memory), !missing.is_empty())
    }

    fn store(&self, work: &mut Work, t: usize, cell: usize, value: Value, bytes: Bytes) -> Taken {
        match self.model {
            MemoryModel::Sc if self.is_blocked(work, t) => return Taken::No,
            MemoryModel::Sc => {
                let held = &mut work.vals[self.code.memory + cell];
                *held = if bytes.is_whole() { value } else { bytes.put(*held, value) };
            }
            MemoryModel::Tso(_) if self.is_silent(work, t, cell, value, bytes) => {}
            MemoryModel::Tso(bound) => {
                let buffer = &mut work.buffers[t];
                if bound.is_some_and(|most| buffer.len() >= most) {
                    self.overflowed.store(true, Ordering::Relaxed);
                    return Taken::No;
                }
                let part = |value| bytes.put(self.code.initial[self.code.memory + cell], value);
                let value = if bytes.is_whole() { value } else { part(value) };
                buffer.push(Pending { bytes, ..Pending::one(cell as u32, value) });
                self.note_length(buffer.len());
            }
        }
        Taken::Yes
    }

    /// Would the store change nothing, whenever it reached memory? So it is if no other thread writes the cell,
    /// and the thread itself wrote the same value last, or found it there.
    fn is_silent(&self, work: &Work, t: usize, cell: usize, value: Value, bytes: Bytes) -> bool {
        self.writes_alone(t, cell as u32) && self.seen(work, t, cell, bytes).0 == bytes.of(value)
    }

    /// Does no other thread ever write the cell? If it matters for stores that change nothing.
    #[inline]
    pub(in super::super) fn writes_alone(&self, t: usize, cell: u32) -> bool {
        self.others_ever.as_ref().is_some_and(|others| !others[t].may_write(cell))
    }

    /// The oldest store of the thread's buffer goes to memory.
    pub(in super::super) fn flush(&self, work: &mut Work, t: usize) -> Taken {
        if !work.has_pending(t) || self.is_blocked(work, t) {
            return Taken::No;
        }
        let store = leave(&mut work.buffers[t], false);
        self.write(work, store);
        Taken::Yes
    }

    /// A store reaches memory.
    #[inline]
    pub(super) fn write(&self, work: &mut Work, store: Pending) {
        let held = &mut work.vals[self.code.memory + store.cell as usize];
        *held = if store.bytes.is_whole() { store.value } else { store.bytes.put(*held, store.value) };
    }

    /// Can the thread take a step of its own in this state?
    pub(in super::super) fn can_step(&self, work: &Work, t: usize) -> bool {
        let possible = |instr: &CInstr| match instr {
            CInstr::Assume(e) => e.eval(&work.vals) != Some(0),
            CInstr::Load { addr, bytes, .. } => {
                let cell = self.cell(work, addr);
                cell.is_none_or(|c| !self.is_blocked(work, t) || !self.seen(work, t, c, *bytes).1)
            }
            CInstr::Store { .. } => match self.model {
                MemoryModel::Sc => !self.is_blocked(work, t),
                MemoryModel::Tso(bound) => bound.is_none_or(|most| work.buffers[t].len() < most),
            },
            CInstr::Rmw { .. } => !self.is_blocked(work, t) && !work.has_pending(t),
            CInstr::Fence => !work.has_pending(t),
            CInstr::Membarrier => !self.any_pending(work),
            CInstr::Lock => self.lock_is_free(work) && !work.has_pending(t),
            CInstr::Unlock => self.owns_lock(work, t) && !work.has_pending(t),
            CInstr::Assign { .. } | CInstr::Any { .. } | CInstr::Assert(_) | CInstr::Nop => true,
        };
        self.node(work, t).edges.iter().any(|e| possible(&e.instr))
    }

    /// Takes the first possible edge of a node whose edges exclude each other.
    #[inline]
    pub(in super::super) fn take_any(&self, work: &mut Work, t: usize, record: &mut impl Record) -> Taken {
        for edge in &self.node(work, t).edges {
            if self.take(work, t, edge, None) == Taken::Yes {
                record.push(t, Act::Step { edge: edge.id, choice: None });
                return Taken::Yes;
            }
        }
        Taken::No
    }

    /// Runs the thread's local steps up to its next scheduling point.
    #[inline]
    pub(crate) fn run<R: Record>(&self, work: &mut Work, t: usize, record: &mut R) {
        while !self.node(work, t).scheduling_point {
            if !R::WANTED
                && let Some((table, entry)) = self.node(work, t).jump
            {
                let table = &self.code.threads[t].jump_tables[table as usize];
                work.vals[t] = table.follow(entry as usize, &work.vals) as Value;
                continue;
            }
            if self.take_any(work, t, record) == Taken::No {
                // It never will go on: its registers are its own.
                work.vals[t] = self.code.threads[t].stuck as Value;
            }
        }
    }
}

#[inline]
fn modified(op: &Modify, dst: u32, vals: &[Value], old: Value) -> Option<Value> {
    Some(match op {
        Modify::Swap(v) => v.eval(vals)?,
        Modify::Add(v) => old.wrapping_add(v.eval(vals)?),
        Modify::Bits(op, v) => op.apply(old, v.eval(vals)?).ok()?,
        Modify::Cas { old: expected, new } => {
            let (expected, new) = (expected.eval(vals)?, new.eval(vals)?);
            if old == expected { new } else { old }
        }
        Modify::New(v) => v.eval_by(|s| if s == dst { old } else { vals[s as usize] })?,
    })
}

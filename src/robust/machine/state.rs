//! A state of an attack: an SC state, the attacker's buffer, and what has happened after the load.

use super::super::attack::Attacks;
use super::AttackMachine;
use crate::analysis::interval::{Interval, Intervals};
use crate::machine::{Pending, Work};
use crate::model::{Program, Value};
use crate::query::{Limit, Limits, Reductions};

/// How a cell was touched by events that happen after the load.
pub(super) const NOT: Value = 0;
pub(super) const READ: Value = 1;
pub(super) const WRITTEN: Value = 2;

/// Where things are in the part of a state that belongs to the attack.
#[derive(Clone, Copy)]
pub(super) struct Slots {
    pub cells: usize,
    pub threads: usize,
}

impl Slots {
    pub(crate) const TARGET: usize = 0;
    pub(crate) const CELL: usize = 1;
    pub(crate) const PHASE: usize = 2;
    pub(crate) const CLAIM: usize = 3;
    /// In phase 3, the number of the load.
    pub(crate) const LOAD: usize = 4;
    /// In phase 2, where the attacker's path stands among the known ones.
    pub(crate) const TRAIL: usize = 5;
    pub(crate) const FIXED: usize = 6;

    pub(crate) fn buffered(self, cell: usize) -> usize {
        Slots::FIXED + cell
    }
    pub(crate) fn value(self, cell: usize) -> usize {
        self.buffered(self.cells) + cell
    }
    pub(crate) fn after(self, cell: usize) -> usize {
        self.value(self.cells) + cell
    }
    /// Touched by a block that has not earned its claim.
    pub(crate) fn noted(self, cell: usize) -> usize {
        self.after(self.cells) + cell
    }
    pub(crate) fn helper(self, thread: usize) -> usize {
        self.noted(self.cells) + thread
    }
    pub(crate) fn count(self) -> usize {
        self.helper(self.threads)
    }
}

/// A state of phase 2 or 3 in the making. The attacker's buffer is in `work`.
#[derive(Clone, Default)]
pub(super) struct AttackState {
    pub work: Work,
    pub vals: Vec<Value>,
}

impl AttackState {
    pub(crate) fn copy(&mut self, other: &AttackState, t: usize) {
        self.work.copy(&other.work, t);
        self.vals.clone_from(&other.vals);
    }
}

impl AttackMachine<'_> {
    /// Is the packed state one of plain SC?
    pub(super) fn is_phase_1(&self, state: &[u64]) -> bool {
        state.len() == self.base.core.words()
    }

    pub(super) fn unpack_phase_1(&self, state: &[u64], attack: &mut AttackState) {
        self.base.core.unpack(state, &mut attack.work);
        attack.work.buffers.resize(self.slots.threads, Vec::new());
        attack.work.buffers.iter_mut().for_each(Vec::clear);
    }

    pub(super) fn unpack(&self, state: &[u64], attack: &mut AttackState) {
        let (sc, own) = state.split_at(self.base.core.words());
        self.base.core.unpack(sc, &mut attack.work);
        attack.vals.clear();
        attack.vals.resize(self.slots.count(), 0);
        self.layout.unpack(own, &mut attack.vals);
        let buffers = &mut attack.work.buffers;
        buffers.resize(self.slots.threads, Vec::new());
        buffers.iter_mut().for_each(Vec::clear);
        let attacker = self.targets[attack.vals[Slots::TARGET] as usize].thread;
        for cell in 0..self.slots.cells {
            if attack.vals[self.slots.buffered(cell)] != 0 {
                buffers[attacker].push(Pending::one(cell as u32, attack.vals[self.slots.value(cell)]));
            }
        }
    }

    pub(super) fn pack(&self, attack: &mut AttackState, out: &mut Vec<u64>) {
        self.base.core.clear_dead_registers(&mut attack.work);
        let (from, to) = (self.slots.buffered(0), self.slots.after(0));
        attack.vals[from..to].fill(0);
        for &Pending { cell, value, .. } in attack.work.buffers.iter().flatten() {
            attack.vals[self.slots.buffered(cell as usize)] = 1;
            attack.vals[self.slots.value(cell as usize)] = value;
        }
        out.clear();
        self.base.core.pack(&attack.work, out);
        self.layout.pack(&attack.vals, out);
    }
}

/// What the slots of an attack may hold.
pub(super) fn intervals(
    program: &Program,
    attacks: &Attacks,
    slots: Slots,
    reductions: Reductions,
    limits: &Limits,
) -> Result<Vec<Interval>, Limit> {
    let known = Intervals::of(program, limits)?;
    let up_to = |hi: usize| Interval { lo: 0, hi: hi as Value };
    let mut all = vec![Interval::constant(0); slots.count()];
    all[Slots::TARGET] = up_to(attacks.stores.len().saturating_sub(1));
    all[Slots::CELL] = up_to(program.cells().saturating_sub(1));
    all[Slots::PHASE] = Interval::BOOL;
    let blocks = program.has_locks();
    all[Slots::CLAIM] = up_to(blocks as usize);
    for cell in 0..slots.cells {
        all[slots.buffered(cell)] = Interval::BOOL;
        let value = if reductions.packing { known.cell(cell) } else { Interval::FULL };
        all[slots.value(cell)] = value.join(Interval::constant(0));
        all[slots.after(cell)] = up_to(WRITTEN as usize);
        all[slots.noted(cell)] = up_to(if blocks { WRITTEN as usize } else { 0 });
    }
    for thread in 0..slots.threads {
        all[slots.helper(thread)] = Interval::BOOL;
    }
    Ok(all)
}

//! Which cells hold what will not be read again? States that differ in such cells alone are stored as one.
//!
//! A cell is *dead* in a state if it is dead for every thread (`analysis::liveness`) and no goal names it. It
//! is stored as a fixed value. Why this is sound: whatever the cell holds, the same steps are possible and
//! lead to states that differ in that cell alone, until it is written; so a state and the one that is stored
//! for it reach the same goals by the same decisions, in as many steps. Whether a store is silent does go by
//! what its cell holds, so cells of which that is asked are never dead: one thread alone writes them, and few
//! of them would ever be.
//! Not here: programs with so many cells that sets of them are not exact; no cell is dead there.

use super::{Core, Pending, Work};
use crate::analysis::access::Access;

impl Core {
    /// The dead cells, given per thread those that are live for it, and its buffer. Of a cell that it has in
    /// its buffer, a thread reads what is there or comes later.
    #[inline]
    pub(in super::super) fn dead_cells<'a>(
        &self,
        threads: impl Iterator<Item = (u64, &'a [Pending])>,
    ) -> Cells {
        if self.may_be_dead == 0 {
            return Cells(0);
        }
        let whole = |store: &&Pending| store.bytes.is_whole();
        let stored =
            |buffer: &[Pending]| buffer.iter().filter(whole).fold(0, |all, store| all | 1 << store.cell);
        let read = |(live, buffer): (u64, &[Pending])| live & !stored(buffer);
        Cells(self.may_be_dead & !threads.map(read).fold(0, |all, own| all | own))
    }

    pub(super) fn dead_cells_in(&self, work: &Work) -> Cells {
        self.dead_cells((0..self.threads()).map(|t| (self.node(work, t).live_cells, work.buffer(t))))
    }

    /// Sets the cells to the value that stands for that.
    pub(super) fn clear_cells(&self, work: &mut Work, cells: Cells) {
        for cell in cells {
            let slot = self.code.memory + cell as usize;
            work.vals[slot] = self.code.template[slot];
        }
    }
}

/// Some cells of a program with few of them.
#[derive(Clone)]
pub(in super::super) struct Cells(u64);

impl Cells {
    #[inline]
    pub(crate) fn contains(&self, cell: usize) -> bool {
        cell < u64::BITS as usize && self.0 >> cell & 1 != 0
    }
}

impl Iterator for Cells {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        let first = (self.0 != 0).then(|| self.0.trailing_zeros())?;
        self.0 &= self.0 - 1;
        Some(first)
    }
}

/// The cells that one thread alone writes, if any: whether a store changes nothing goes by what they hold.
pub(super) fn written_alone(others: &[Access]) -> u64 {
    !others.iter().fold(u64::MAX, |all, others| all & others.writes)
}

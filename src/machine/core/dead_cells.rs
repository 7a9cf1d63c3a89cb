//! Which cells hold what nobody will read? States that differ in such cells alone are stored as one.
//!
//! A cell is forgotten where it is dead for every thread (`live`) and no goal names it. Why this is sound: whatever the cell
//! holds, the same steps are possible and lead to states that differ in that cell alone, until it is written; so a
//! state and the one that is stored for it reach the same goals by the same decisions, in as many steps.
//! Whether a store is silent does go by what its cell holds, so cells of which that is asked are not forgotten: one thread
//! alone writes them, and few of them are ever dead.
//! Not here: programs with so many cells that sets of them are not exact; nothing is forgotten there.

use super::{Pending, ProgramMachine, Work};
use crate::analysis::access::Access;

impl ProgramMachine {
    /// The cells of which nobody may still read what they hold, if they are forgettable: per thread those that are live
    /// for it, and its buffer. Of a cell that it has in its buffer, a thread reads what is there or comes later.
    #[inline]
    pub(in super::super) fn forgotten<'a>(
        &self,
        threads: impl Iterator<Item = (u64, &'a [Pending])>,
    ) -> Cells {
        if self.forgettable == 0 {
            return Cells(0);
        }
        let stored = |buffer: &[Pending]| buffer.iter().fold(0, |all, store| all | 1 << store.cell);
        let read = |(live, buffer): (u64, &[Pending])| live & !stored(buffer);
        Cells(self.forgettable & !threads.map(read).fold(0, |all, own| all | own))
    }

    pub(super) fn forgotten_in(&self, work: &Work) -> Cells {
        self.forgotten((0..self.threads()).map(|t| (self.node(work, t).live_cells, work.buffer(t))))
    }

    /// Sets the cells to the value that stands for that.
    pub(super) fn forget(&self, work: &mut Work, cells: Cells) {
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
    pub fn contains(&self, cell: usize) -> bool {
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

//! Where do threads and cells lie in a packed state?

use super::super::compile::Compiled;
use crate::reach::pack::{Field, Part};

pub(in super::super) struct Fields {
    threads: Vec<Part>,
    cells: Vec<Field>,
}

impl Fields {
    pub(crate) fn of(code: &Compiled) -> Fields {
        let own = |t: usize| code.layout.part(|slot| slot == t || code.registers(t).contains(&slot));
        let fields = code.layout.by_slot(code.template.len());
        let cell = |slot: usize| fields[slot].unwrap_or_else(|| Field::constant(code.template[slot]));
        Fields {
            threads: (0..code.threads.len()).map(own).collect(),
            cells: (code.memory..code.template.len()).map(cell).collect(),
        }
    }

    /// The thread's location and registers.
    #[inline]
    pub(crate) fn thread(&self, t: usize) -> &Part {
        &self.threads[t]
    }

    #[inline]
    pub(crate) fn cell(&self, cell: u32) -> Field {
        self.cells[cell as usize]
    }
}

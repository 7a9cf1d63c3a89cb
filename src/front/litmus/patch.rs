//! How are fences put into a litmus test? In a row of their own, in which the other threads have nothing to
//! do.

use crate::front::patch::{Dialect, Edit, What, labels};

pub const DIALECT: Dialect = Dialect { columns: true, fence, edited };

/// In the letters that the test is written in.
fn fence(instruction: &str) -> &'static str {
    if instruction.trim_start().starts_with(char::is_lowercase) { "mfence" } else { "MFENCE" }
}

fn edited(row: &str, edit: &Edit) -> Option<Vec<String>> {
    match &edit.what {
        What::Fence => fence_row(row, edit.column),
        // A locked store needs a register that is free; and no thread can end inside a block, which alone
        // makes a fence at its end useful.
        What::Atomic { .. } | What::FenceBehind => None,
    }
}

fn fence_row(row: &str, column: usize) -> Option<Vec<String>> {
    let body = row.trim_end().strip_suffix(';')?;
    let mut cells: Vec<&str> = body.split('|').collect();
    let cell = *cells.get(column)?;
    let (label, rest) = cell.split_at(labels(cell, |_| false));
    let fence = format!("{label} {} ", fence(rest));
    let fences: Vec<&str> =
        (0..cells.len()).map(|i| if i == column { fence.trim_end() } else { " " }).collect();
    cells[column] = rest;
    Some(vec![format!("{} ;", fences.join(" | ")), format!("{};", cells.join("|"))])
}

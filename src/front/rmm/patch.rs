//! How are fences and locked stores put into a text of Memorax's language?

use crate::front::patch::{Dialect, Edit, What, fence_line, labels, replace_word};

pub const DIALECT: Dialect = Dialect { columns: false, fence: |_| "fence", edited };

fn edited(row: &str, edit: &Edit) -> Option<Vec<String>> {
    match &edit.what {
        What::Fence => Some(fence_line(row, "fence;", labels(row, is_statement))),
        What::Atomic { .. } => Some(vec![replace_word(row, "write", "locked write")?]),
        // No thread of this language can end inside a block, which alone makes such a fence useful.
        What::FenceBehind => None,
    }
}

/// Words that have a colon behind them and are no labels.
fn is_statement(word: &str) -> bool {
    matches!(word, "read" | "write" | "assume" | "syncwr" | "syncrd")
}

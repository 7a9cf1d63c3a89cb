//! How are fences and locked stores put into a text of the native language?

use crate::front::patch::{Dialect, Edit, What, fence_line, labels, replace_word};

const FENCE: &str = "fence";

pub const DIALECT: Dialect = Dialect { columns: false, fence: |_| FENCE, edited };

fn edited(row: &str, edit: &Edit) -> Option<Vec<String>> {
    match &edit.what {
        What::Fence => Some(fence_line(row, FENCE, labels(row, |_| false))),
        What::Atomic { old } => Some(vec![replace_word(row, "store", &format!("xchg {old},"))?]),
        What::FenceBehind => Some(vec![row.to_string(), fence_behind(row)]),
    }
}

/// In line with the instruction, behind its labels.
fn fence_behind(row: &str) -> String {
    let (labels, rest) = row.split_at(labels(row, |_| false));
    let indent = rest.len() - rest.trim_start().len();
    format!("{}{FENCE}", " ".repeat(labels.chars().count() + indent))
}

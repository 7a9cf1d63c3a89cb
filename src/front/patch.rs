//! The user's own text with fences put in, comments and layout and all.
//!
//! Instructions are found by their lines alone, so what comes out is a guess: several instructions on one line, or
//! one line for several threads, can make it wrong. Whoever asks reads the text again and compares the programs
//! (`analysis::isomorphism`); where the guess was wrong, the program can still be written anew by its format's
//! writer. Where places are known to the byte (`insert`), there is nothing to guess. How each language says things is
//! its [`Dialect`], in its own folder.

use crate::model::source_map::Spot;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// How a language marks labels and writes a fence and a locked store.
#[derive(Debug)]
pub struct Dialect {
    /// Do instructions of several threads share a row, each thread in a column of its own?
    pub columns: bool,
    /// The word for a fence beside an instruction, without what separates it from the next one.
    pub fence: fn(instruction: &str) -> &'static str,
    /// The rows that take the place of one; the last is that of the instruction, unless the fence is behind
    /// it: such an edit comes after all others of its line.
    pub edited: fn(row: &str, edit: &Edit) -> Option<Vec<String>>,
}

/// One change of the text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edit {
    /// The line of the instruction, from 1.
    pub line: u32,
    /// Where the instruction's thread stands in the file, from 0.
    pub column: usize,
    pub what: What,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// A fence before the instruction, behind its labels.
    Fence,
    /// The store becomes a locked one; what it finds goes to this register, where a language needs one.
    Atomic { old: String },
    /// A fence behind the instruction.
    FenceBehind,
}

/// The text with all edits made, if there is a way to make them.
pub fn patch(source: &str, dialect: &Dialect, edits: &[Edit]) -> Option<String> {
    let mut patched = String::with_capacity(source.len() + 64);
    for (i, line) in source.split_inclusive('\n').enumerate() {
        let mut here: Vec<&Edit> = edits.iter().filter(|e| e.line as usize == i + 1).collect();
        if !dialect.columns {
            // One line of a template stands for all its threads.
            here.dedup_by(|a, b| a.what == b.what);
        }
        let (body, end) = match line.strip_suffix('\n') {
            Some(body) => (body, "\n"),
            None => (line, ""),
        };
        let mut rows = vec![body.to_string()];
        for edit in here {
            let last = rows.pop().expect("there is always the instruction's own row");
            rows.extend((dialect.edited)(&last, edit)?);
        }
        patched += &rows.join("\n");
        patched += end;
    }
    Some(patched)
}

/// The text with a fence, on a line of its own, before what stands at each of these bytes.
pub fn insert(source: &str, fence: &str, bytes: &[usize]) -> Option<String> {
    let mut text = source.to_string();
    let latest_first: BTreeSet<Reverse<usize>> = bytes.iter().map(|&byte| Reverse(byte)).collect();
    for Reverse(byte) in latest_first {
        let spot = Spot::at(&text, byte)?;
        let rows: Vec<String> = spot.rows(&text, fence).into_iter().flatten().collect();
        let from = text[..byte].rfind('\n').map_or(0, |end| end + 1);
        let to = text[byte..].find('\n').map_or(text.len(), |end| byte + end);
        text.replace_range(from..to, &rows.join("\n"));
    }
    Some(text)
}

/// The row with a fence before it, on a line of its own behind the row's labels, which take so many bytes.
pub fn fence_line(row: &str, fence: &str, labels: usize) -> Vec<String> {
    let (labels, rest) = row.split_at(labels);
    let indent = &rest[..rest.len() - rest.trim_start().len()];
    match labels.trim().is_empty() {
        true => vec![format!("{indent}{fence}"), row.to_string()],
        false => {
            let margin = &row[..row.len() - row.trim_start().len()];
            let inner = format!("{margin}    ");
            vec![
                labels.trim_end().to_string(),
                format!("{inner}{fence}"),
                format!("{inner}{}", rest.trim_start()),
            ]
        }
    }
}

/// How much of the row its labels take: words with a colon behind them, unless they are statements.
pub fn labels(row: &str, is_statement: impl Fn(&str) -> bool) -> usize {
    let mut end = 0;
    loop {
        let rest = &row[end..];
        let start = rest.len() - rest.trim_start().len();
        let name: usize =
            rest[start..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').map(char::len_utf8).sum();
        let word = &rest[start..start + name];
        let after = rest[start + name..].trim_start();
        let colon = after.strip_prefix(':').filter(|more| !more.starts_with('='));
        if word.is_empty() || colon.is_none() || is_statement(word) {
            return end;
        }
        end = row.len() - after.len() + 1;
    }
}

/// The row with its first such word replaced.
pub fn replace_word(row: &str, word: &str, by: &str) -> Option<String> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let found = row
        .match_indices(word)
        .map(|(at, _)| at)
        .find(|&at| !row[..at].ends_with(is_part) && !row[at + word.len()..].starts_with(is_part))?;
    Some(format!("{}{by}{}", &row[..found], &row[found + word.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::{litmus, rmm, tso};

    fn fence(line: u32, column: usize) -> Edit {
        Edit { line, column, what: What::Fence }
    }

    #[track_caller]
    fn check(source: &str, dialect: &Dialect, edits: &[Edit], expected: &str) {
        assert_eq!(patch(source, dialect, edits).as_deref(), Some(expected));
    }

    #[test]
    fn a_fence_stands_before_its_instruction_and_behind_labels() {
        check(
            "  store [x], 1\n  load r, [y]\n",
            &tso::DIALECT,
            &[fence(2, 0)],
            "  store [x], 1\n  fence\n  load r, [y]\n",
        );
        check(
            "  wait: load r, [y]",
            &tso::DIALECT,
            &[fence(1, 0)],
            "  wait:\n      fence\n      load r, [y]",
        );
        check("wait:\n  load r, [y]", &tso::DIALECT, &[fence(2, 0)], "wait:\n  fence\n  load r, [y]");
    }

    #[test]
    fn a_fence_stands_behind_the_last_instruction() {
        let behind = Edit { line: 1, column: 0, what: What::FenceBehind };
        check(
            "  store [x], 1\nend\n",
            &tso::DIALECT,
            std::slice::from_ref(&behind),
            "  store [x], 1\n  fence\nend\n",
        );
        check("L: store [x], 1\nend\n", &tso::DIALECT, &[behind], "L: store [x], 1\n   fence\nend\n");
    }

    #[test]
    fn a_fence_is_put_before_a_byte() {
        let text =
            "thread p\n  repeat k in 0..2 {\n    store [x], k; load r, [y]\n  }\nwait: load s, [y]\nend\n";
        let at = |word: &str| text.find(word).expect("the text has it");
        let all = ["repeat", "load r", "}", "wait", "load s", "end"].map(at);
        let expected = "thread p\n  fence\n  repeat k in 0..2 {\n    store [x], k;\n        fence\n        load r, [y]\n    \
                        fence\n  }\n  fence\nwait:\n    fence\n    load s, [y]\n    fence\nend\n";
        assert_eq!(insert(text, "fence", &all).as_deref(), Some(expected));
    }

    #[test]
    fn one_line_of_a_template_is_edited_once() {
        check("  load r, [y]\n", &tso::DIALECT, &[fence(1, 0), fence(1, 1)], "  fence\n  load r, [y]\n");
    }

    #[test]
    fn statements_of_memorax_end_in_semicolons() {
        check("  read: $r := x", &rmm::DIALECT, &[fence(1, 0)], "  fence;\n  read: $r := x");
        check("L1: read: $r := x", &rmm::DIALECT, &[fence(1, 0)], "L1:\n    fence;\n    read: $r := x");
        check("$r := 1", &rmm::DIALECT, &[fence(1, 0)], "fence;\n$r := 1");
    }

    #[test]
    fn a_litmus_test_gets_a_row() {
        let row = " MOV EAX,[y] | L: MOV EAX,[x] ;\n";
        check(row, &litmus::DIALECT, &[fence(1, 0)], " MFENCE |   ;\n MOV EAX,[y] | L: MOV EAX,[x] ;\n");
        check(row, &litmus::DIALECT, &[fence(1, 1)], "  |  L: MFENCE ;\n MOV EAX,[y] | MOV EAX,[x] ;\n");
        let both = "  |  L: MFENCE ;\n MFENCE |   ;\n MOV EAX,[y] | MOV EAX,[x] ;\n";
        check(row, &litmus::DIALECT, &[fence(1, 1), fence(1, 0)], both);
    }

    #[test]
    fn a_store_becomes_a_locked_one() {
        let edit = |column| Edit { line: 1, column, what: What::Atomic { old: "old".into() } };
        check(" L: store [store_x], 1", &tso::DIALECT, &[edit(0)], " L: xchg old, [store_x], 1");
        check("write: x := 1", &rmm::DIALECT, &[edit(0)], "locked write: x := 1");
        assert_eq!(patch("MOV [x],$1 ;", &litmus::DIALECT, &[edit(0)]), None);
    }
}

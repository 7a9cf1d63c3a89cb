//! What tests of readers share: texts to try, and what is to come of them.
//!
//! Texts are any at all, mixtures of the words of a sample, and the sample with a few changes.

use super::{Diagnostic, Input, Severity, Unread, tso};
use crate::limits::Limits;
use proptest::prelude::*;

/// A word of the sample, cut behind these characters, or something else.
fn piece(sample: &str, ends: &[char], others: &[&str]) -> impl Strategy<Value = String> + use<> {
    let owned = |words: &mut dyn Iterator<Item = &str>| words.map(str::to_string).collect::<Vec<_>>();
    let words = owned(&mut sample.split_inclusive(ends));
    let others = owned(&mut others.iter().copied());
    prop_oneof![
        1 => prop::sample::select(words),
        1 => "\\PC{0,3}",
        2 => prop::sample::select(others),
    ]
}

/// The text with these characters taken out at a place, and others put there.
fn changed(text: &str, index: prop::sample::Index, removed: usize, inserted: &str) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    let at = index.index(chars.len() + 1);
    let end = (at + removed).min(chars.len());
    chars.splice(at..end, inserted.chars());
    chars.into_iter().collect()
}

/// Texts for the reader of a language, of which the sample should use all.
pub(super) fn texts(sample: &'static str, ends: &[char], others: &[&str]) -> impl Strategy<Value = String> {
    let piece = || piece(sample, ends, others);
    let change = (any::<prop::sample::Index>(), 0..4usize, piece());
    prop_oneof![
        any::<String>(),
        prop::collection::vec(piece(), 0..60).prop_map(|words| words.concat()),
        prop::collection::vec(change, 1..5).prop_map(move |changes| {
            let change = |text: String, (index, removed, inserted): &(_, usize, String)| {
                changed(&text, *index, *removed, inserted)
            };
            changes.iter().fold(sample.to_string(), change)
        }),
    ]
}

/// The complaints about a text, as `line:column: message`, those of warnings with a `?`.
#[track_caller]
pub(super) fn complains(source: &str, read: Result<Input, Unread>, expect: &[&str]) {
    let found = match read {
        Ok(input) => input.warnings,
        Err(unread) => unread.diagnostics().to_vec(),
    };
    let show = |d: &Diagnostic| {
        let (line, column) = d.place(source).unwrap_or((1, 1));
        let mark = if d.severity == Severity::Warning { "?" } else { "" };
        let help = d.help.as_ref().map_or(String::new(), |h| format!(" ({h})"));
        format!("{line}:{column}{mark}: {}{help}", d.message)
    };
    assert_eq!(found.iter().map(show).collect::<Vec<_>>(), expect, "{source}");
}

/// Whatever is read can be written in the native language; whatever is not has a reason.
pub(super) fn survives(source: &str, read: Result<Input, Unread>) {
    match read {
        Ok(input) => {
            let text = tso::write(&input.program, &Limits::default()).unwrap();
            tso::read(&text, &[], &Limits::default())
                .unwrap_or_else(|errors| panic!("{errors:?}\n{source}\n{text}"));
        }
        Err(wrong) => {
            assert!(wrong.diagnostics().iter().any(|d| d.severity == Severity::Error), "{wrong:?}\n{source}")
        }
    }
}

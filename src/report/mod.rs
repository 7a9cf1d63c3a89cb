//! What do people and scripts get to see? Programs and answers as text, JSON and graphs.
//!
//! For each question a file says what there is to tell (`check`, `robust`, `triangular`, `fence`, with `site`
//! for places in the user's text); what comes of it is a [`Document`](document::Document), with runs as
//! tables of `steps`, and renderers know nothing else: `text` for people, `json` for scripts. `outcomes`
//! lists final states as herd does; `listing` and `dot` show programs. Nothing here searches, reads files or
//! knows a terminal; width and colour are arguments.

pub mod axioms;
pub mod certificate;
pub mod check;
pub mod datatype;
pub mod document;
pub mod dot;
pub mod dve;
pub mod fence;
pub mod hang;
pub mod json;
pub mod junit;
pub mod listing;
pub mod liveness;
pub mod outcomes;
pub mod page;
pub(crate) mod picture;
pub mod pictures;
pub mod recorded;
pub mod robust;
pub mod sarif;
pub mod scene;
pub mod site;
pub mod steps;
pub mod synthesis;
pub mod table;
pub mod text;
pub mod triangular;
pub mod unread;

use crate::model::Value;
use crate::query::{Limit, Trap};
use document::Fact;
use std::time::Duration;

/// Which limit ended a run.
pub fn limit_reached(limit: &Limit) -> String {
    match limit {
        Limit::Time(allowed) => format!("the time limit of {} was reached", seconds(*allowed)),
        Limit::Memory(bytes) => format!("the memory limit of {} MiB was reached", bytes >> 20),
        Limit::States(count) => format!("the limit of {} was reached", count_of(*count, "state")),
        Limit::Cancelled => "the run was cancelled".to_string(),
        Limit::Lost(what) => format!("the processes cannot go on together: {what}"),
        Limit::Buffer(bound) => {
            format!("a buffer would have held more than {}", count_of(*bound as u64, "store"))
        }
        Limit::StateSize(words) => format!("one state takes {words} words, more than the engine stores"),
        Limit::Iterations(rounds) => format!("the limit of {} was reached", count_of(*rounds, "round")),
        Limit::ProgramSize(why) => format!("the program with its delays became too large: {why}"),
        Limit::Additive => {
            "no further delay is left to add; only exact extension can prove safety".to_string()
        }
        Limit::Overshadowed => {
            "an error of a thread comes first, so that it cannot be told whether the assertion fails"
                .to_string()
        }
        Limit::Inexpressible(what) => format!("the formula cannot say {what}"),
        Limit::Rounds(rounds) => {
            format!("loops may go round more than {rounds} times")
        }
        Limit::Growing => {
            "what a waiting thread can still do has no end in sight; its registers may grow".to_string()
        }
        Limit::FrozenBuffers => {
            "the property may hold inside a `lock` block, where other threads' buffers are \
                                 frozen; the lazy engine cannot see that, the explicit one can"
                .to_string()
        }
        Limit::Membarrier(place) => format!(
            "there is a `membarrier` in {place}, which only the engines `explicit` and `past` know (`past` only where no \
             thread has a `lock` block), and `--hang`"
        ),
        Limit::MixedSizes => {
            "accesses of several sizes touch the same cell, and only searches through all states (`check`, \
             `--engine explicit`) tell its bytes apart"
                .to_string()
        }
        Limit::InParts(place) => format!(
            "{place} accesses memory across a border of eight bytes, and the answer depends on whether a processor does \
             that at once"
        ),
        Limit::Undefined(why) => {
            format!("what is asked about has no value in a state that can be reached: {why}")
        }
    }
}

/// `1 state`, `2 states`.
fn count_of(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Items that a report lists before it only counts them.
const LISTED: usize = 4;

/// A list that stays short: equal items once with their number, in the order in which they first come, and
/// how many more there are.
fn shortened(items: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut groups: Vec<(String, u64)> = Vec::new();
    for item in items {
        match groups.iter_mut().find(|(known, _)| *known == item) {
            Some((_, count)) => *count += 1,
            None => groups.push((item, 1)),
        }
    }
    let more: u64 = groups.iter().skip(LISTED).map(|(_, count)| count).sum();
    groups.truncate(LISTED);
    let line = |(item, count)| if count == 1 { item } else { format!("{item} ({count} times)") };
    let lines = groups.into_iter().map(line);
    lines.chain((more > 0).then(|| format!("and {more} more"))).collect()
}

/// The most memory that the process had, if that is known.
fn peak_memory(peak_kb: Option<u64>) -> Option<Fact> {
    peak_kb.map(|kb| Fact::new("peak memory", format!("{:.1} MiB", kb as f64 / 1024.0)))
}

/// A sentence's first letter.
fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}

/// The error by which a thread ends a run.
fn trap_words(trap: Trap) -> String {
    match trap {
        Trap::Assertion => "the assertion fails".to_string(),
        Trap::DivisionByZero => "division by zero".to_string(),
        Trap::OutOfRange(address) => format!("address {address} lies outside the shared memory"),
    }
}

/// `x = 3`, as reports write that something has a value.
fn equation(name: &str, value: Value) -> String {
    format!("{name} = {value}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_stays_short() {
        let list = |items: &str| shortened(items.chars().map(String::from)).join(" ");
        assert_eq!(list(""), "");
        assert_eq!(list("abab"), "a (2 times) b (2 times)");
        assert_eq!(list("abcd"), "a b c d");
        assert_eq!(list("abccdefef"), "a b c (2 times) d and 4 more");
    }
}

//! What do people and scripts get to see? Programs and outcomes as text, JSON and graphs.
//!
//! Every report is a function from a program, and perhaps an outcome, to a string or a JSON value. Nothing here
//! searches, reads files or knows a terminal; width and colour are arguments.

pub mod answer;
pub mod dot;
pub mod fence;
pub mod json;
pub mod listing;
pub mod outcomes;
pub mod robust;
pub mod table;
pub mod text;
pub mod triangular;

use crate::model::Value;
use crate::query::{Answer, Limit, Model, Outcome, Proof, Trace, Trap};
use std::time::Duration;
use table::{Color, Tone, paint};

/// Why the answer is what it is, in a few words.
pub fn reason(outcome: &Outcome) -> String {
    match &outcome.answer {
        Answer::Violated(trace) => format!("goal reached and replayed{}", under(outcome, trace)),
        Answer::Safe(Proof::Exhausted) => {
            "no forbidden state is reachable: every state that could lead to one was visited".to_string()
        }
        Answer::Safe(Proof::Infeasible) => {
            "no forbidden state is reachable: the values that registers and memory can hold rule it out"
                .to_string()
        }
        Answer::Safe(Proof::Robust { delays, apart }) => {
            let robust = if *apart {
                "the program is robust, apart from cells that nobody really reads"
            } else {
                "the program is robust"
            };
            let none = "no forbidden state is reachable under SC";
            match delays {
                0 => format!("{none}, and {robust}: TSO adds nothing"),
                1 => format!("{none}, nor with the one delay that matters; with it built in, {robust}"),
                _ => {
                    format!("{none}, nor with the {delays} delays that matter; with them built in, {robust}")
                }
            }
        }
        Answer::Unknown(limit) => limit_reached(limit),
    }
}

/// Which memory model it takes to violate the property, as far as that is known.
fn under(outcome: &Outcome, trace: &Trace) -> &'static str {
    match (outcome.model, trace.model) {
        (Model::Tso, Model::Sc) => ", under SC already",
        _ if trace.safe_under_sc => ", only under TSO",
        _ => "",
    }
}

/// Which limit ended a run.
pub fn limit_reached(limit: &Limit) -> String {
    match limit {
        Limit::Time(allowed) => format!("the time limit of {} was reached", seconds(*allowed)),
        Limit::Memory(bytes) => format!("the memory limit of {} MiB was reached", bytes >> 20),
        Limit::States(count) => format!("the limit of {} was reached", count_of(*count, "state")),
        Limit::Cancelled => "the run was cancelled".to_string(),
        Limit::Buffer(bound) => {
            format!("a buffer would have held more than {}", count_of(*bound as u64, "store"))
        }
        Limit::StateSize(words) => format!("one state takes {words} words, more than the engine stores"),
        Limit::Iterations(rounds) => format!("the limit of {} was reached", count_of(*rounds, "round")),
        Limit::ProgramSize(why) => format!("the program with its delays became too large: {why}"),
        Limit::Additive => {
            "no further delay is left to add; only exact extension can prove safety".to_string()
        }
        Limit::FrozenBuffers => {
            "the property may hold inside a `lock` block, where other threads' buffers are \
                                 frozen; the lazy engine cannot see that, the explicit one can"
                .to_string()
        }
    }
}

/// `1 state`, `2 states`.
fn count_of(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Items that a report lists before it only counts them.
const LISTED: usize = 4;

/// A list that stays short: equal items once with their number, in the order in which they first come, and how many
/// more there are.
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

/// The first line of an answer, behind the file's name if there are several files.
fn first_line(verdict: &str, tone: Tone, file: Option<&str>, color: bool) -> String {
    let color = if color { Color::On } else { Color::Off };
    let verdict = paint(verdict, tone, color);
    match file {
        Some(file) => format!("{file}: {verdict}\n"),
        None => format!("{verdict}\n"),
    }
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

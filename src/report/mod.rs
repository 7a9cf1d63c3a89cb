//! What do people and scripts get to see? Programs and outcomes as text, JSON and graphs.
//!
//! Every report is a function from a program, and perhaps an outcome, to a string or a JSON value. Nothing here
//! searches, reads files or knows a terminal; width and colour are arguments.

pub mod answer;
pub mod dot;
pub mod json;
pub mod listing;
pub mod outcomes;
pub mod robust;
mod table;
pub mod text;

use crate::model::Value;
use crate::verdict::{Answer, Limit, Model, Outcome, Proof, Trace, Trap};
use std::time::Duration;

/// Why the answer is what it is, in a few words.
pub fn reason(outcome: &Outcome) -> String {
    match &outcome.answer {
        Answer::Violated(trace) => format!("goal reached and replayed{}", under(outcome, trace)),
        Answer::Safe(Proof::Exhausted) => {
            "no forbidden state is reachable: every state that could lead to one was visited".to_string()
        }
        Answer::Safe(Proof::Robust { delays: 0 }) => {
            "no forbidden state is reachable under SC, and the program is robust: TSO adds nothing".to_string()
        }
        Answer::Safe(Proof::Robust { delays }) => format!(
            "no forbidden state is reachable under SC, nor with the {delays} delay{} that matter; with them \
             built in, the program is robust",
            if *delays == 1 { "" } else { "s" }
        ),
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
        Limit::States(count) => format!("the limit of {count} states was reached"),
        Limit::Cancelled => "the run was cancelled".to_string(),
        Limit::Buffer(bound) => format!("a buffer would have held more than {bound} stores"),
        Limit::StateSize(words) => format!("one state takes {words} words, more than the engine stores"),
        Limit::Iterations(rounds) => format!("the limit of {rounds} rounds was reached"),
        Limit::ProgramSize(why) => format!("the program with its delays became too large: {why}"),
        Limit::Additive => "no further delay is left to add; only exact extension can prove safety".to_string(),
        Limit::FrozenBuffers => "the property may hold inside a `lock` block, where other threads' buffers are \
                                 frozen; the lazy engine cannot see that, the explicit one can"
            .to_string(),
    }
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

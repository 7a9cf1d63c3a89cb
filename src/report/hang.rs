//! Does the program hang? The run that leads there, and who waits for what.

use super::document::{Block, Document, Fact};
use super::{capitalised, count_of, json, limit_reached, peak_memory, steps};
use crate::certify::Outcome;
use crate::model::Program;
use crate::query::{Answer, Question, Waiting};
use serde_json::{Map, Value, json};

/// The program is the one whose waits try again.
pub fn document<'a>(
    program: &'a Program,
    file: &'a str,
    outcome: &'a Outcome,
    waiting: &'a [Waiting],
    peak_kb: Option<u64>,
) -> Document<'a> {
    Document {
        question: Question::Check,
        verdict: outcome.answer.verdict(),
        file: file.to_string(),
        explanation: Box::new(|| explanation(program, outcome, waiting)),
        costs: Box::new(move || vec![Block::Facts(costs(outcome, peak_kb))]),
        warnings: outcome.warnings.clone(),
        fields: Box::new(move || fields(program, file, outcome, waiting, peak_kb)),
    }
}

pub(super) fn reason(outcome: &Outcome) -> String {
    let model = outcome.model.name().to_uppercase();
    match &outcome.answer {
        Answer::Holds(_) => format!("under {model}, no run ends in a hang: every state was visited"),
        Answer::Fails(trace) => {
            let weakest = trace.model.name().to_uppercase();
            format!("under {weakest}, a run leads to where memory never changes and not all end")
        }
        Answer::Unknown(limit) => {
            format!("under {model}, {}: whether the program can hang is not known", limit_reached(limit))
        }
    }
}

pub(super) fn explanation(program: &Program, outcome: &Outcome, waiting: &[Waiting]) -> Vec<Block> {
    let states = count_of(outcome.stats.states, "state");
    let Answer::Fails(trace) = &outcome.answer else {
        return vec![Block::line(format!("{} ({states} visited).", capitalised(&reason(outcome))))];
    };
    let events = count_of(trace.events.len() as u64, "event");
    let head = format!("A run of {events} under {} ends in a hang:", trace.model.name().to_uppercase());
    let waits = waiting.iter().map(|w| told(program, w)).collect();
    let [run, ending] = steps::trace(program, trace);
    vec![Block::line(head), run, ending, Block::list(vec!["Who waits for what:".to_string()], waits)]
}

/// `thread p, in lines 7 to 9: reads x, which stays 0`.
fn told(program: &Program, waiting: &Waiting) -> String {
    let name = program.thread(waiting.thread).name();
    let place = match (waiting.lines.first(), waiting.lines.last()) {
        (Some(first), Some(last)) if first == last => format!(", in line {first}"),
        (Some(first), Some(last)) => format!(", in lines {first} to {last}"),
        _ => String::new(),
    };
    let cell = |(cell, value): &(_, i64)| format!("{}, which stays {value}", program.cell_name(*cell));
    let reads: Vec<String> = waiting.reads.iter().map(cell).collect();
    match reads.is_empty() {
        true => format!("thread {name}{place}: can do nothing more"),
        false => format!("thread {name}{place}: reads {}", reads.join(", and ")),
    }
}

fn costs(outcome: &Outcome, peak_kb: Option<u64>) -> Vec<Fact> {
    let stats = &outcome.stats;
    let facts = [
        Fact::new("engine", outcome.engine),
        Fact::new("states", stats.states),
        Fact::new("transitions", stats.transitions),
        Fact::new("time", format!("{:.3} s", stats.time.as_secs_f64())),
    ];
    facts.into_iter().chain(peak_memory(peak_kb)).collect()
}

fn fields(
    program: &Program,
    file: &str,
    outcome: &Outcome,
    waiting: &[Waiting],
    peak_kb: Option<u64>,
) -> Map<String, Value> {
    let verdict = outcome.answer.verdict();
    let mut fields = json::common(Question::Check, verdict, file, &outcome.stats, peak_kb);
    let mut put = |more: Value| json::put(&mut fields, more);
    put(json!({
        "property": "no hang",
        "model": outcome.model.name(),
        "engine": outcome.engine,
        "reason": reason(outcome),
        "warnings": outcome.warnings,
    }));
    match &outcome.answer {
        Answer::Fails(trace) => put(json!({
            "waiting": waiting_of(program, waiting),
            "trace_model": trace.model.name(),
            "trace": json::events(program, &trace.events),
        })),
        Answer::Unknown(limit) => put(json!({ "limit": json::limit_name(limit) })),
        Answer::Holds(_) => {}
    }
    fields
}

/// Who waits for what.
pub(super) fn waiting_of(program: &Program, waiting: &[Waiting]) -> Value {
    waiting.iter().map(|w| waiting_fields(program, w)).collect()
}

fn waiting_fields(program: &Program, waiting: &Waiting) -> Value {
    let cell = |(cell, value): &(_, i64)| json!({ "address": program.cell_name(*cell), "value": value });
    json!({
        "thread": program.thread(waiting.thread).name(),
        "lines": waiting.lines,
        "reads": waiting.reads.iter().map(cell).collect::<Value>(),
    })
}

//! Does a formula hold on every run of a program? A run on which it does not, with a star in front of the
//! events that are repeated for ever.

use super::document::{Block, Document, Fact, Paragraph};
use super::table::Tone;
use super::{capitalised, count_of, json, limit_reached, peak_memory, steps};
use crate::certify::{LivenessOutcome, ProgramLasso};
use crate::model::Program;
use crate::query::{Answer, Model, Question};
use serde_json::{Map, Value, json};

/// What was asked of a program.
pub struct LivenessAsked<'a> {
    pub program: &'a Program,
    pub file: &'a str,
    pub model: Model,
    pub formula: String,
}

pub fn document<'a>(
    asked: &'a LivenessAsked<'_>,
    outcome: &'a LivenessOutcome,
    peak_kb: Option<u64>,
) -> Document<'a> {
    Document {
        question: Question::Check,
        verdict: outcome.answer.verdict(),
        file: asked.file.to_string(),
        explanation: Box::new(|| explanation(asked, outcome)),
        costs: Box::new(move || vec![costs(outcome, peak_kb)]),
        warnings: vec![],
        fields: Box::new(move || fields(asked, outcome, peak_kb)),
    }
}

fn reason(asked: &LivenessAsked, outcome: &LivenessOutcome) -> String {
    match &outcome.answer {
        Answer::Holds(()) => format!("all runs were looked at, and this holds: {}", asked.formula),
        Answer::Fails(_) => format!("{} does not hold on this run", asked.formula),
        Answer::Unknown(limit) => limit_reached(limit),
    }
}

fn explanation(asked: &LivenessAsked, outcome: &LivenessOutcome) -> Vec<Block> {
    let (reason, states) = (capitalised(&reason(asked, outcome)), outcome.stats.states);
    match &outcome.answer {
        Answer::Holds(()) => vec![Block::line(format!("{reason} ({states} states stored)."))],
        Answer::Unknown(_) => vec![Block::line(format!("{reason}; {states} states were visited."))],
        Answer::Fails(lasso) => {
            let ending = Paragraph { lines: vec![format!("{reason}.")], items: vec![], tone: Tone::Bad };
            let starred: Vec<usize> = (lasso.cycle_from..lasso.events.len()).collect();
            let run = steps::run(asked.program, asked.model, &lasso.events, &starred);
            vec![Block::line(headline(lasso)), run, Block::Paragraph(ending)]
        }
    }
}

fn headline(lasso: &ProgramLasso) -> String {
    let events = count_of(lasso.events.len() as u64, "event");
    match lasso.events.len() - lasso.cycle_from {
        0 => format!("A run of {events}, after which nothing happens any more:"),
        cycle => format!("A run of {events}, the last {cycle} for ever:"),
    }
}

fn costs(outcome: &LivenessOutcome, peak_kb: Option<u64>) -> Block {
    let mut facts = vec![
        Fact::new("states", outcome.stats.states),
        Fact::new("transitions", outcome.stats.transitions),
        Fact::new("time", format!("{:.3} s", outcome.stats.time.as_secs_f64())),
    ];
    facts.extend(peak_memory(peak_kb));
    Block::Facts(facts)
}

fn fields(asked: &LivenessAsked, outcome: &LivenessOutcome, peak_kb: Option<u64>) -> Map<String, Value> {
    let verdict = outcome.answer.verdict();
    let mut fields = json::common(Question::Check, verdict, asked.file, &outcome.stats, peak_kb);
    let reason = reason(asked, outcome);
    json::put(&mut fields, json!({ "model": asked.model.name(), "asked": asked.formula, "reason": reason }));
    match &outcome.answer {
        Answer::Fails(lasso) => {
            let trace = json::events(asked.program, &lasso.events);
            json::put(&mut fields, json!({ "trace": trace, "cycle_from": lasso.cycle_from }));
        }
        Answer::Unknown(limit) => json::put(&mut fields, json!({ "limit": json::limit_name(limit) })),
        Answer::Holds(()) => {}
    }
    fields
}

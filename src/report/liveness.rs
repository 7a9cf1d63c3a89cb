//! Does a formula hold on every run of a program? A run on which it does not, with a star in front of the
//! events that are repeated for ever.

use super::document::{Block, Document, Fact, Paragraph};
use super::table::Tone;
use super::{capitalised, count_of, json, limit_reached, peak_memory, steps};
use crate::certify::{LivenessOutcome, ProgramLasso};
use crate::model::Program;
use crate::model::formula::StatedFormula;
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

/// A formula that the file states, with its number among the properties, and what came of it.
pub struct StatedAnswer<'a> {
    pub number: usize,
    pub stated: &'a StatedFormula,
    pub asked: LivenessAsked<'a>,
    pub outcome: LivenessOutcome,
}

/// The answers to formulas of a file, beside that to its other properties, if it has any. The worst decides.
pub fn together<'a>(
    states: Option<Document<'a>>,
    answers: &'a [StatedAnswer<'a>],
    peak_kb: Option<u64>,
) -> Option<Document<'a>> {
    let verdict = |a: &StatedAnswer| a.outcome.answer.verdict();
    // The first one of the worst.
    let Some(worst) = answers.iter().rev().max_by_key(|a| verdict(a)) else { return states };
    let formulas = document(&worst.asked, &worst.outcome, peak_kb);
    let states_worst = states.as_ref().is_some_and(|states| states.verdict >= formulas.verdict);
    let mut warnings = formulas.warnings;
    let (mut told, mut cost) = (vec![], vec![]);
    let (mut states_fields, mut states_verdict) = (None, None);
    if let Some(states) = states {
        states_verdict = Some(states.verdict);
        warnings.extend(states.warnings);
        told.push(states.explanation);
        cost.push(states.costs);
        states_fields = Some(states.fields);
    }
    for answer in answers {
        told.push(Box::new(|| {
            let word = Question::Check.word(answer.outcome.answer.verdict());
            let head = format!("Property {}, {}: {word}", answer.number, answer.stated.text);
            let head = Block::line(head);
            std::iter::once(head).chain(explanation(&answer.asked, &answer.outcome)).collect()
        }));
        cost.push(Box::new(move || vec![costs(&answer.outcome, peak_kb)]));
    }
    Some(Document {
        question: Question::Check,
        verdict: formulas.verdict.max(states_verdict.unwrap_or(formulas.verdict)),
        file: formulas.file,
        explanation: Box::new(move || told.iter().flat_map(|blocks| blocks()).collect()),
        costs: Box::new(move || cost.iter().flat_map(|blocks| blocks()).collect()),
        warnings,
        fields: Box::new(move || {
            let of_states = states_fields.as_ref().map(|fields| fields());
            let mut each: Vec<Value> = match of_states.as_ref().and_then(|fields| fields.get("properties")) {
                Some(Value::Array(properties)) => properties.clone(),
                _ => vec![],
            };
            each.extend(answers.iter().map(|answer| property(answer)));
            each.sort_by_key(|property| property["number"].as_u64());
            let mut fields = match of_states {
                Some(fields) if states_worst => fields,
                _ => (formulas.fields)(),
            };
            fields.remove("properties");
            json::put(&mut fields, json!({ "properties": each }));
            fields
        }),
    })
}

/// A formula among the properties of a file, for scripts.
fn property(answer: &StatedAnswer) -> Value {
    let StatedAnswer { number, stated, asked, outcome } = answer;
    let mut fields = Map::new();
    let own = json!({
        "number": number,
        "name": stated.name,
        "line": asked.program.place(stated.line).line,
        "text": stated.text,
        "verdict": Question::Check.word(outcome.answer.verdict()),
        "only_under_tso": Value::Null,
        "reason": reason(asked, outcome),
    });
    json::put(&mut fields, own);
    json::put(&mut fields, told(asked, outcome));
    fields.into()
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
    json::put(&mut fields, told(asked, outcome));
    fields
}

fn told(asked: &LivenessAsked, outcome: &LivenessOutcome) -> Value {
    match &outcome.answer {
        Answer::Fails(lasso) => {
            let trace = json::events(asked.program, &lasso.events);
            json!({ "trace": trace, "cycle_from": lasso.cycle_from })
        }
        Answer::Unknown(limit) => json!({ "limit": json::limit_name(limit) }),
        Answer::Holds(()) => json!({}),
    }
}

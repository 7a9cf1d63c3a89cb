//! What came of asking a solver about the runs that a model's axioms allow? The verdict, and the accesses of a run
//! in the order in which they take effect.

use super::datatype::{access_text, event};
use super::document::{Block, Document};
use super::{capitalised, count_of, json, limit_reached};
use crate::certify::{AllowedExecution, AxiomaticOutcome};
use crate::model::Program;
use crate::query::{Answer, Axioms, Question, Stats};
use crate::semantics::axioms::AxiomAccess;
use serde_json::{Value, json as fields};
use std::time::Duration;

/// The file that was asked about, under which model, and how long it took.
#[derive(Clone, Copy)]
pub struct AskedByAxioms<'a> {
    pub program: &'a Program,
    pub file: &'a str,
    pub model: Axioms,
    pub time: Duration,
}

pub fn document<'a>(
    asked: AskedByAxioms<'a>,
    outcome: &'a AxiomaticOutcome,
    peak_kb: Option<u64>,
) -> Document<'a> {
    let stats = Stats { workers: 1, time: asked.time, ..Stats::default() };
    let all = move || {
        let mut all = json::common(Question::Check, outcome.answer.verdict(), asked.file, &stats, peak_kb);
        json::put(
            &mut all,
            fields!({
                "model": asked.model.name(), "engine": "sat", "reason": reason(outcome), "bound": outcome.bound,
                "variables": outcome.variables, "clauses": outcome.clauses,
            }),
        );
        match &outcome.answer {
            Answer::Unknown(limit) => json::put(&mut all, fields!({ "limit": json::limit_name(limit) })),
            Answer::Fails(run) => {
                json::put(&mut all, fields!({ "trace": trace(asked.program, run) }));
            }
            Answer::Holds(()) => {}
        }
        all
    };
    Document {
        question: Question::Check,
        verdict: outcome.answer.verdict(),
        file: asked.file.to_string(),
        explanation: Box::new(move || explanation(asked, outcome)),
        costs: Box::new(move || {
            let rounds = count_of(u64::from(outcome.bound), "round");
            let size =
                format!("{} variables, {} clauses; loops: {rounds}", outcome.variables, outcome.clauses);
            vec![Block::line(size)]
        }),
        warnings: vec![],
        fields: Box::new(all),
    }
}

fn reason(outcome: &AxiomaticOutcome) -> String {
    match &outcome.answer {
        Answer::Holds(()) => "no run that the axioms allow reaches the goal".to_string(),
        Answer::Fails(_) => "goal reached and performed by the axioms".to_string(),
        Answer::Unknown(limit) => limit_reached(limit),
    }
}

fn explanation(asked: AskedByAxioms<'_>, outcome: &AxiomaticOutcome) -> Vec<Block> {
    let sentence = format!("{} (engine sat, model {}).", capitalised(&reason(outcome)), asked.model.name());
    let mut blocks = vec![Block::line(sentence)];
    if let Answer::Fails(run) = &outcome.answer {
        blocks.push(accesses(asked.program, run));
    }
    blocks
}

/// What a run does to memory.
pub(super) fn accesses(program: &Program, run: &AllowedExecution) -> Block {
    let line = |a: &AxiomAccess| {
        let edge = run.execution.threads[a.thread][a.step].edge;
        let (line, text) = access_text(program, a.thread, edge, a.addr, a.read, a.written);
        format!("{:>4}  {}: {text}", line, program.threads()[a.thread].name())
    };
    let items = run.performed.accesses.iter().map(line).collect();
    Block::list(vec!["Accesses in the order in which they take effect:".to_string()], items)
}

/// The same for scripts.
pub(super) fn trace(program: &Program, run: &AllowedExecution) -> Value {
    run.performed.accesses.iter().map(|a| event(program, &run.execution, a)).collect()
}

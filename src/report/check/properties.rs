//! What became of each property? A table of verdicts, a run for each that fails, and what the rest rests on.

use super::{Answers, against, delay_fields};
use crate::certify::Outcome;
use crate::model::Program;
use crate::query::{Answer, Asked, Model, Question};
use crate::report::document::Block;
use crate::report::json;
use crate::report::table::{Align, Cell, Table, Tone};
use serde_json::{Value, json};

/// All verdicts, and then what they rest on.
pub(crate) fn explanation(answers: &Answers<'_>) -> Vec<Block> {
    let Answers { program, each, formulas, .. } = *answers;
    let mut blocks = vec![Block::Table(table(program, each, formulas))];
    let mut told: Vec<String> = Vec::new();
    for (asked, outcome) in each {
        let fails = matches!(outcome.answer, Answer::Fails(_));
        if fails {
            blocks.push(Block::line(format!("Property {}:", number(program, *asked, formulas))));
        }
        // What holds together is told once.
        let why = answers.reason(*asked, outcome);
        if fails || !told.contains(&why) {
            blocks.extend(answers.explanation(*asked, outcome));
        }
        told.push(why);
    }
    blocks
}

fn table(program: &Program, each: &[(Asked, Outcome)], formulas: &[u32]) -> Table {
    let mut table = Table::new(vec![Align::Right, Align::Right, Align::Left, Align::Left, Align::Left]);
    let heads = ["", "line", "", "", ""];
    table.row(heads.map(|head| Cell::new(head, Tone::Quiet)).to_vec());
    for (asked, outcome) in each {
        let (words, tone) = verdict(program, *asked, outcome);
        let line = match line(program, *asked) {
            0 => String::new(),
            line => line.to_string(),
        };
        table.row(vec![
            Cell::new(number(program, *asked, formulas).to_string(), Tone::Head),
            Cell::new(line, Tone::Quiet),
            Cell::new(asked.name(program).unwrap_or_default(), Tone::Head),
            Cell::new(asked.text(program), Tone::Plain),
            Cell::new(words, tone),
        ]);
    }
    table
}

/// In its own file.
fn line(program: &Program, asked: Asked) -> u32 {
    program.place(asked.line(program)).line
}

/// From 1 on, in the order of the file; errors of threads come last.
fn number(program: &Program, asked: Asked, formulas: &[u32]) -> usize {
    let all = Asked::of(program);
    match all.iter().position(|a| *a == asked) {
        Some(own) => 1 + own + formulas.iter().filter(|&&line| line < asked.line(program)).count(),
        None => 1 + all.len() + formulas.len(),
    }
}

fn verdict(program: &Program, asked: Asked, outcome: &Outcome) -> (String, Tone) {
    let word = Question::Check.word(outcome.answer.verdict());
    match &outcome.answer {
        Answer::Holds(_) => (word.to_string(), Tone::Good),
        Answer::Unknown(_) => (word.to_string(), Tone::Doubtful),
        Answer::Fails(_) => {
            let how = match only_under_tso(outcome) {
                Some(true) => " only under TSO",
                Some(false) => " under SC",
                None => "",
            };
            let asked_for = if asked.is_wish(program) { ": reachable, as asked" } else { "" };
            (format!("{word}{how}{asked_for}"), Tone::Bad)
        }
    }
}

/// Does it take store buffering to get there, as far as that is known?
fn only_under_tso(outcome: &Outcome) -> Option<bool> {
    match &outcome.answer {
        Answer::Fails(trace) if trace.model == Model::Sc => Some(false),
        Answer::Fails(_) if outcome.safe_under_sc => Some(true),
        _ => None,
    }
}

/// One object for each property.
pub(crate) fn fields(answers: &Answers<'_>) -> Value {
    let Answers { program, each, formulas, .. } = *answers;
    let one = |(asked, outcome): &(Asked, Outcome)| {
        let mut fields = json!({
            "number": number(program, *asked, formulas),
            "name": asked.name(program),
            "line": line(program, *asked),
            "text": asked.text(program),
            "verdict": Question::Check.word(outcome.answer.verdict()),
            "only_under_tso": only_under_tso(outcome),
            "reason": answers.reason(*asked, outcome),
        });
        if let (Answer::Fails(trace), Some(fields)) = (&outcome.answer, fields.as_object_mut()) {
            let run = json!({
                "against": against(program, trace),
                "trace_model": trace.model.name(),
                "delays": delay_fields(trace),
                "trace": json::events(program, &trace.events),
            });
            json::put(fields, run);
        }
        fields
    };
    each.iter().map(one).collect()
}

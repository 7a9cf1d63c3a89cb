//! What became of each property? A table of verdicts, a run for each that fails, and what the rest rests on.

use super::{Answers, against, delay_fields};
use crate::certify::Outcome;
use crate::model::Program;
use crate::query::{Answer, Asked, AskedTexts, Model, Question};
use crate::report::document::Block;
use crate::report::json;
use crate::report::table::{Align, Cell, Table, Tone};
use serde_json::{Value, json};
use std::collections::HashMap;

/// All verdicts, and then what they rest on.
pub(crate) fn explanation(answers: &Answers<'_>) -> Vec<Block> {
    let Answers { program, each, formulas, .. } = *answers;
    let all = AllAsked::of(program, formulas);
    let mut blocks = vec![Block::Table(table(&all, each))];
    // What holds for the same reason is told once.
    let mut holding: HashMap<String, Vec<usize>> = HashMap::new();
    for (asked, outcome) in each.iter().filter(|(_, outcome)| !fails(outcome)) {
        holding.entry(answers.reason(*asked, outcome)).or_default().push(all.number(*asked));
    }
    for (asked, outcome) in each {
        let numbers = match fails(outcome) {
            true => Some(vec![all.number(*asked)]),
            false => holding.remove(&answers.reason(*asked, outcome)),
        };
        let Some(numbers) = numbers else { continue };
        if numbers.len() < each.len() {
            let properties = if numbers.len() == 1 { "Property" } else { "Properties" };
            blocks.push(Block::line(format!("{properties} {}:", ranges(&numbers))));
        }
        blocks.extend(answers.explanation(*asked, outcome));
    }
    blocks
}

fn fails(outcome: &Outcome) -> bool {
    matches!(outcome.answer, Answer::Fails(_))
}

/// Numbers in rising order, those that follow each other as one: `1–3, 7`.
fn ranges(numbers: &[usize]) -> String {
    let groups = numbers.chunk_by(|one, next| one + 1 == *next);
    let words = groups.map(|group| match *group {
        [first, .., last] => format!("{first}–{last}"),
        _ => group[0].to_string(),
    });
    words.collect::<Vec<_>>().join(", ")
}

fn table(all: &AllAsked<'_>, each: &[(Asked, Outcome)]) -> Table {
    let program = all.program;
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
            Cell::new(all.number(*asked).to_string(), Tone::Head),
            Cell::new(line, Tone::Quiet),
            Cell::new(asked.name(program).unwrap_or_default(), Tone::Head),
            Cell::new(all.texts.text(*asked), Tone::Plain),
            Cell::new(words, tone),
        ]);
    }
    table
}

/// In its own file.
fn line(program: &Program, asked: Asked) -> u32 {
    program.place(asked.line(program)).line
}

/// All that the file asks.
struct AllAsked<'a> {
    program: &'a Program,
    texts: AskedTexts<'a>,
    numbers: HashMap<Asked, usize>,
    /// How many there are, formulas too.
    count: usize,
}

impl<'a> AllAsked<'a> {
    fn of(program: &'a Program, formulas: &[u32]) -> AllAsked<'a> {
        let all = Asked::of(program);
        let count = all.len() + formulas.len();
        let before = |asked: Asked| formulas.iter().filter(|&&line| line < asked.line(program)).count();
        let numbers = all.into_iter().enumerate().map(|(k, asked)| (asked, 1 + k + before(asked))).collect();
        AllAsked { program, texts: AskedTexts::of(program), numbers, count }
    }

    /// From 1 on, in the order of the file; errors of threads come last.
    fn number(&self, asked: Asked) -> usize {
        self.numbers.get(&asked).copied().unwrap_or(1 + self.count)
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
    let all = AllAsked::of(program, formulas);
    let one = |(asked, outcome): &(Asked, Outcome)| {
        let mut fields = json!({
            "number": all.number(*asked),
            "name": asked.name(program),
            "line": line(program, *asked),
            "text": all.texts.text(*asked),
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

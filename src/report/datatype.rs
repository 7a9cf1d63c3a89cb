//! What came of a test of a data type? The verdict, and a failing run in the order in which its accesses took
//! effect, a column for each thread, with what was observed and what could have been.

use super::document::{Block, Paragraph};
use super::table::{Align, Cell, Table, Tone};
use super::{count_of, json, limit_reached};
use crate::datatype::{DataOutcome, Failure, FailureKind};
use crate::model::datatype::{DataTest, DataType};
use crate::model::{Addr, EdgeId, Program, ThreadId, Value as Number};
use crate::query::{Answer, Axioms, Limit, Trap};
use crate::semantics::axioms::{AxiomAccess, Execution, Wrong};
use serde_json::{Value, json as fields};
use std::fmt::Write;

/// Wider columns are cut.
const COLUMN: usize = 34;

/// The word for an answer.
pub fn word<P, E>(answer: &Answer<P, E>) -> &'static str {
    match answer {
        Answer::Holds(_) => "passes",
        Answer::Fails(_) => "fails",
        Answer::Unknown(_) => "unknown",
    }
}

fn reason(outcome: &DataOutcome) -> String {
    match &outcome.answer {
        Answer::Holds(()) => "every run is explained by a serial one".to_string(),
        Answer::Unknown(limit) => {
            let answered = count_of(outcome.answered as u64, "question");
            let hint = match limit {
                Limit::Rounds(_) => "; --bound says how far to look",
                _ => "",
            };
            format!("{}; {answered} had been answered{hint}", limit_reached(limit))
        }
        Answer::Fails(failure) => match &failure.kind {
            FailureKind::Serial(fault) => {
                format!("one after the other, the operations go wrong: {}", fault.what)
            }
            FailureKind::Error => "an operation goes wrong".to_string(),
            FailureKind::Deadlock => "threads wait for good".to_string(),
            FailureKind::Observation { .. } => "a run is explained by no serial one".to_string(),
        },
    }
}

/// One line for the verdict, and what belongs to it.
pub fn verdict(test: &DataTest, model: Axioms, outcome: &DataOutcome) -> String {
    let enough = match (outcome.bound_is_enough, &outcome.answer) {
        (true, Answer::Holds(())) => ", which no run exceeds",
        (false, Answer::Holds(())) => ", which runs can exceed",
        _ => "",
    };
    let rounds = count_of(u64::from(outcome.bound), "round");
    let word = word(&outcome.answer);
    format!("{}: {word} on {} ({}; loops: {rounds}{enough})\n", test.name, model.name(), reason(outcome))
}

/// How large the question was.
pub fn costs(outcome: &DataOutcome) -> String {
    let size = outcome.size;
    let mut text = format!(
        "  {} instructions, {} loads, {} stores, {} nodes; {} variables, {} clauses; {}\n",
        size.instructions,
        size.loads,
        size.stores,
        size.nodes,
        size.variables,
        size.clauses,
        count_of(outcome.observations as u64, "serial observation"),
    );
    if let Some(proved) = outcome.proved {
        let checked = if proved { "was checked" } else { "could not be checked" };
        let _ = writeln!(text, "  that there is no such run {checked}, step by step");
    }
    text
}

/// Calls with what they were given and gave back.
fn observation(test: &DataTest, values: &[Number]) -> String {
    let mut values = values.iter();
    let mut columns = Vec::new();
    for thread in &test.threads {
        let mut calls = Vec::new();
        for call in &thread.calls {
            let mut next = |count: usize| -> String {
                let taken: Vec<String> = values.by_ref().take(count).map(Number::to_string).collect();
                taken.join(", ")
            };
            let args = next(call.args.len());
            let results = next(call.results.len());
            let arrow = if results.is_empty() { String::new() } else { format!(" -> {results}") };
            calls.push(format!("{}({args}){arrow}", call.operation));
        }
        columns.push(calls.join("; "));
    }
    columns.join(" | ")
}

/// The failing run, for people.
pub fn failure(test: &DataTest, failure: &Failure) -> String {
    let mut text = String::new();
    if let FailureKind::Serial(fault) = &failure.kind {
        for action in &fault.actions {
            if let crate::query::Act::Step { edge, .. } = action.act {
                let edge = failure.program.thread(action.thread).edge(edge);
                let _ = writeln!(text, "  {:>4}  {}", edge.line, edge.text);
            }
        }
        return text;
    }
    let Some(run) = &failure.run else { return text };
    let program = &failure.program;
    text += "  accesses in the order in which they take effect:\n";
    let heads: Vec<String> = program.threads().iter().map(|t| format!("{:<COLUMN$}", t.name())).collect();
    let _ = writeln!(text, "        {}", heads.join(" ").trim_end());
    for access in &run.performed.accesses {
        let edge = run.execution.threads[access.thread][access.step].edge;
        let shown = access_text(program, access.thread, edge, access.addr, access.read, access.written);
        let cut: String = shown.1.chars().take(COLUMN).collect();
        let _ = writeln!(text, "  {:>4}  {}{cut}", shown.0, " ".repeat(access.thread * (COLUMN + 1)));
    }
    for (t, wrong) in &run.performed.wrong {
        let last = run.execution.threads[*t]
            .last()
            .map(|taken| program.thread(ThreadId(*t as u16)).edge(taken.edge));
        let (line, what) = last.map_or((0, ""), |e| (e.line, &e.text[..]));
        let _ = writeln!(
            text,
            "  {} goes wrong on line {line}, `{what}`: {}",
            program.threads()[*t].name(),
            wrong_text(*wrong)
        );
    }
    match &failure.kind {
        FailureKind::Observation { seen, nearest } => {
            let _ = writeln!(text, "  observed: {}", observation(test, seen));
            for near in nearest {
                let _ = writeln!(text, "  nearest serial run: {}", observation(test, near));
            }
        }
        FailureKind::Deadlock => {
            for t in program.thread_ids().filter(|t| run.performed.at[t.index()] != program.thread(*t).end())
            {
                let waits = program.thread(t).edges_from(run.performed.at[t.index()]);
                let line = waits.first().map_or(0, |(_, e)| e.line);
                let _ = writeln!(text, "  {} waits on line {line}", program.thread(t).name());
            }
        }
        FailureKind::Error | FailureKind::Serial(_) => {}
    }
    text
}

/// The same as a table, with a column for each thread.
pub fn run(test: &DataTest, failure: &Failure) -> Vec<Block> {
    let text = self::failure(test, failure);
    let Some(run) = &failure.run else {
        return vec![Block::lines(text.lines().map(|line| line.trim().to_string()).collect())];
    };
    let program = &failure.program;
    let threads = program.threads();
    let mut table =
        Table::new(std::iter::once(Align::Right).chain(threads.iter().map(|_| Align::Left)).collect());
    let head = |name: &str| Cell::new(name, Tone::Head);
    table.row(std::iter::once(head("line")).chain(threads.iter().map(|t| head(t.name()))).collect());
    for access in &run.performed.accesses {
        let edge = run.execution.threads[access.thread][access.step].edge;
        let (line, what) =
            access_text(program, access.thread, edge, access.addr, access.read, access.written);
        let mut cells = vec![Cell::default(); threads.len() + 1];
        cells[0] = Cell::new(line.to_string(), Tone::Quiet);
        cells[access.thread + 1] = Cell::new(what, Tone::Plain);
        table.row(cells);
    }
    // What is said below the accesses.
    let more: Vec<String> =
        text.lines().skip(table.rows().len() + 1).map(|line| line.trim().to_string()).collect();
    let heading = Block::line("Accesses in the order in which they take effect:");
    vec![
        heading,
        Block::Table(table),
        Block::Paragraph(Paragraph { lines: more, items: vec![], tone: Tone::Bad }),
    ]
}

fn wrong_text(wrong: Wrong) -> String {
    match wrong {
        Wrong::Trap(Trap::Assertion) => "the assertion fails".to_string(),
        Wrong::Trap(Trap::DivisionByZero) => "a division by zero".to_string(),
        Wrong::Trap(Trap::OutOfRange(address)) => format!("nothing is at address {address}"),
        Wrong::DoubleFree => "the block is free already".to_string(),
        Wrong::LoudWait => "a round of waiting changes memory".to_string(),
    }
}

/// The line, and what happens there.
pub(super) fn access_text(
    program: &Program,
    thread: usize,
    edge: EdgeId,
    addr: Number,
    read: Option<Number>,
    written: Option<Number>,
) -> (u32, String) {
    let edge = program.thread(ThreadId(thread as u16)).edge(edge);
    let cell = usize::try_from(addr).ok().filter(|a| *a < program.cells());
    let cell = cell.map_or(addr.to_string(), |a| program.cell_name(Addr(a as u32)));
    let what = match (read, written) {
        (Some(read), Some(written)) => format!("[{cell}] {read} -> {written}"),
        (Some(read), None) => format!("[{cell}] is {read}"),
        (None, Some(written)) => format!("[{cell}] := {written}"),
        (None, None) => format!("[{cell}]"),
    };
    (edge.line, format!("{what}  {}", edge.text))
}

/// The fields of one test, for scripts.
pub fn object(test: &DataTest, model: Axioms, outcome: &DataOutcome) -> Value {
    let size = outcome.size;
    let mut all = fields!({
        "test": test.name,
        "model": model.name(),
        "verdict": word(&outcome.answer),
        "reason": reason(outcome),
        "observations": outcome.observations,
        "bound": outcome.bound,
        "bound_is_enough": outcome.bound_is_enough,
        "instructions": size.instructions,
        "loads": size.loads,
        "stores": size.stores,
        "nodes": size.nodes,
        "variables": size.variables,
        "clauses": size.clauses,
        "proved": outcome.proved,
    });
    let Value::Object(fields) = &mut all else { return all };
    if let Answer::Unknown(limit) = &outcome.answer {
        json::put(fields, fields!({ "limit": json::limit_name(limit) }));
    }
    let Answer::Fails(failure) = &outcome.answer else { return all };
    let kind = match &failure.kind {
        FailureKind::Serial(_) => "serial",
        FailureKind::Error => "error",
        FailureKind::Deadlock => "deadlock",
        FailureKind::Observation { .. } => "observation",
    };
    json::put(fields, fields!({ "failure": kind }));
    if let FailureKind::Observation { seen, nearest } = &failure.kind {
        json::put(fields, fields!({ "observation": seen, "nearest": nearest }));
    }
    if let Some(run) = &failure.run {
        let event = |a: &AxiomAccess| event(&failure.program, &run.execution, a);
        let trace: Vec<Value> = run.performed.accesses.iter().map(event).collect();
        json::put(fields, fields!({ "trace": trace }));
    }
    all
}

/// An access of a run, for scripts.
pub(super) fn event(program: &Program, execution: &Execution, a: &AxiomAccess) -> Value {
    let edge = execution.threads[a.thread][a.step].edge;
    let thread = program.thread(ThreadId(a.thread as u16));
    let kind = match (a.read, a.written) {
        (Some(_), Some(_)) => "locked",
        (Some(_), None) => "load",
        _ => "store",
    };
    let cell = usize::try_from(a.addr).ok().filter(|c| *c < program.cells());
    fields!({
        "thread": thread.name(),
        "kind": kind,
        "line": thread.edge(edge).line,
        "text": thread.edge(edge).text,
        "address": cell.map(|c| program.cell_name(Addr(c as u32))),
        "value": a.read.or(a.written),
        "written": a.written,
    })
}

/// A set of places as the user writes it: `publish:ss, consume:ll`.
pub fn places(datatype: &DataType, set: &[(usize, usize)]) -> Vec<String> {
    let mut named: Vec<String> = set
        .iter()
        .map(|(place, kind)| {
            let word = crate::model::FenceKinds::WORDS[*kind];
            format!("{}:{word}", datatype.candidates[*place].name)
        })
        .collect();
    named.sort();
    named
}

/// The sentence for a search for fences.
pub fn fences(datatype: &DataType, found: &crate::datatype::FenceSets, model: Axioms) -> String {
    let bound = count_of(u64::from(found.bound), "round");
    match &found.answer {
        Answer::Unknown(limit) => {
            let runs = count_of(found.cores as u64, "run");
            format!("unknown: {} (loops: {bound}; {runs} that fail had been found)\n", limit_reached(limit))
        }
        Answer::Fails(why) => format!("none: {why} on {} (loops: {bound})\n", model.name()),
        Answer::Holds(sets) => {
            let size = sets.first().map_or(0, Vec::len);
            let mut text = format!(
                "found: {} needed on {} (loops: {bound}; {} of {} and kinds)\n",
                count_of(size as u64, "fence"),
                model.name(),
                size,
                count_of(found.candidates as u64, "place"),
            );
            for set in sets {
                let _ = writeln!(text, "  {}", places(datatype, set).join(", "));
            }
            if found.more {
                text += "  and more\n";
            }
            text
        }
    }
}

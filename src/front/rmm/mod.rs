//! The language of Memorax, `.rmm`: text to program.
//!
//! Reading goes one way: `lex` makes tokens, `macros` replaces calls by what they stand for, `parse` builds
//! the tree of `ast`; then `names` says what there is (cells, registers, domains), `flow` turns statements
//! into a graph, `start` brings in the initial values, and `goals` the forbidden states. Every stage reports
//! what is wrong to `diagnostics`, and all mistakes of a file come out of one run.
//!
//! What the language means is its documentation, read for TSO: `fence` waits for the own buffer, `ssfence`
//! and `llfence` do nothing, `syncwr` is a locked write, `syncrd` a load, `slocked write` a store. A
//! statement that blocks is a step followed by an `assume`; where that fails the process stops instead of
//! waiting, which makes no difference to what can be reached, since it need not have begun. Integers have 64
//! bits.

mod ast;
mod flow;
mod goals;
mod lex;
mod macros;
mod names;
mod parse;
mod patch;
mod start;

pub use patch::DIALECT;

use super::diagnostics::{Problem, Problems, Reported};
use super::{Input, Unread};
use crate::limits::Limits;
use crate::model::Program;
use crate::model::program::ProgramParts;
use names::RmmNames;
use std::ops::Range;

/// Reads a program.
pub fn read(source: &str, limits: &Limits) -> Result<Input, Unread> {
    let mut problems = Problems::new(source, limits);
    let program = program(source, &mut problems);
    problems.finish(program).map(|(program, warnings)| Input { program, formulas: vec![], warnings })
}

/// The numbers of the threads that each process of the text becomes.
pub fn copies(source: &str, limits: &Limits) -> Result<Vec<Range<u16>>, Unread> {
    let mut problems = Problems::new(source, limits);
    let file = file(source, &mut problems);
    let (file, _) = problems.finish(file)?;
    let mut next = 0;
    let of = |process: &ast::Process| {
        let first = next;
        next += process.copies as u16;
        first..next
    };
    Ok(file.processes.iter().map(of).collect())
}

fn file<'s>(source: &'s str, problems: &mut Problems<'s>) -> Result<ast::File<'s>, Reported> {
    let tokens = lex::tokens(source, problems);
    let tokens = macros::expand(tokens, problems)?;
    Ok(parse::parse(tokens, problems))
}

fn program<'s>(source: &'s str, problems: &mut Problems<'s>) -> Result<Program, Reported> {
    let file = file(source, problems)?;
    if file.processes.is_empty() && !problems.has_errors() {
        let problem = Problem::error("there are no processes in this file");
        problems.report(problem.help("a program looks like `forbidden CS process text CS: nop`"));
    }
    let names = RmmNames::declare(&file, problems)?;
    let threads = flow::threads(&file, &names, problems)?;
    let properties = goals::properties(&file, &names, &threads, problems);
    if problems.has_errors() {
        return Err(Reported);
    }
    let parts = ProgramParts {
        memory: names.variables(),
        threads: threads.into_iter().map(|t| t.parts).collect(),
        properties,
        no_hang: None,
        stretches: vec![],
        code: vec![],
    };
    let program = problems.program(parts)?;
    let parts = start::with_initial_values(program, &names, problems)?;
    problems.program(parts)
}

#[cfg(test)]
mod tests;

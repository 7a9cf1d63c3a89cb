//! Which program does the file describe? Parameters get values, templates become threads, names become
//! numbers.
//!
//! The order is that of dependence: constants and memory (`names`), then each thread (`labels` on its text,
//! `thread` for its statements, `instr` for its instructions, `cfg` for its graph, `text` for the way back),
//! then properties over all of them (`query`).
//! Everything that is wrong is reported, except that reading stops once a program unfolds to more than fits.

mod datatype;
mod formulas;
mod inlines;
mod instr;
mod labels;
mod lower;
mod names;
mod operations;
mod query;
mod registers;
mod text;
mod thread;

use super::ast::{File, ThreadDecl, ThreadIndex};
use crate::front::diagnostics::{Problem, Problems, Reported, Span};
use crate::model::formula::StatedFormula;
use crate::model::program::ProgramParts;
use crate::model::{MAX_THREADS, SourceMap, ThreadId, Value};
pub(super) use datatype::data_type;
use inlines::Inlines;
use names::{Local, TsoNames};
use query::{Cast, Query};
use std::collections::HashMap;
use thread::{Budget, GrowingMemory, Unroller};

/// The parts of the program; where its text has come to lie is told as well if that is wanted.
pub(crate) fn expand<'s>(
    source: &'s str,
    file: &File<'s>,
    defines: &[(String, Value)],
    mapped: Option<&mut SourceMap>,
    problems: &mut Problems<'s>,
) -> Result<(ProgramParts, Vec<StatedFormula>), Reported> {
    let (names, variables) = names::declare(file, defines, problems);
    let cells = variables.iter().map(|v| v.init.len()).sum();
    let mut memory = GrowingMemory { variables, cells };
    let inlines = Inlines::new(file, problems);
    let mut unfolding = Unfolding { inlines: &inlines, memory: &mut memory, mapped: mapped.is_some() };
    let cast = threads(source, file, &names, &mut unfolding, problems)?;
    if let Some(map) = mapped {
        *map = text::map(&cast);
    }
    let mut query = Query {
        source,
        names: &names,
        cast: &cast,
        cells: memory.cells,
        problems,
        locals: Vec::new(),
        atoms: 0,
    };
    query.check_names(file);
    let properties = file.properties.iter().filter_map(|p| query.property(p).ok()).collect();
    let formulas = file.formulas.iter().filter_map(|f| query.formula(f).ok()).collect();
    let threads = cast.threads.into_iter().map(|t| t.parts).collect();
    let stretches = problems.stretches().to_vec();
    let no_hang = no_hang(&file.no_hang, problems);
    let memory = memory.variables;
    let stated = ProgramParts { memory, threads, properties, no_hang, stretches, code: vec![] };
    Ok((stated, formulas))
}

/// The line of the one `no hang` that there may be.
fn no_hang(asked: &[Span], problems: &mut Problems) -> Option<u32> {
    let (first, more) = asked.split_first()?;
    let line = problems.line(*first);
    for span in more {
        let problem = Problem::error("`no hang` is asked for twice").at(*span);
        problems.report(problem.label(format!("first on line {line}")));
    }
    Some(line)
}

/// What all threads unfold with.
struct Unfolding<'a, 's, 'f> {
    inlines: &'a Inlines<'s, 'f>,
    memory: &'a mut GrowingMemory,
    /// Is it to be told where the text comes to lie?
    mapped: bool,
}

fn threads<'s>(
    source: &'s str,
    file: &File<'s>,
    names: &TsoNames<'s, '_>,
    unfolding: &mut Unfolding<'_, 's, '_>,
    problems: &mut Problems<'s>,
) -> Result<Cast<'s>, Reported> {
    let mut cast = Cast::default();
    let mut defined: HashMap<String, Span> = HashMap::new();
    let mut budget = Budget::new();
    for thread in &file.threads {
        labels::check(&thread.body, problems);
        let Ok(indices) = indices(thread, cast.threads.len(), names, problems) else {
            // Its members are unknown; the name is not.
            cast.by_name.entry(thread.name.text).or_default();
            continue;
        };
        for index in indices {
            let name = match index {
                Some(index) => format!("{}[{index}]", thread.name.text),
                None => thread.name.text.to_string(),
            };
            if let Some(first) = defined.get(&name) {
                let line = problems.line_name(*first);
                let problem = Problem::error(format!("thread `{name}` is defined twice"));
                problems.report(problem.at(thread.name.span).label(format!("first on line {line}")));
                continue;
            }
            defined.insert(name.clone(), thread.name.span);
            let named = cast.by_name.entry(thread.name.text).or_default();
            let id = ThreadId(cast.threads.len() as u16);
            match index {
                Some(index) => {
                    named.indexed.insert(index, id);
                }
                None => named.alone = Some(id),
            }
            let locals = match (&thread.index, index) {
                (ThreadIndex::Each(var, _), Some(index)) => vec![(var.text, Local::Constant(index))],
                _ => Vec::new(),
            };
            cast.owners.push(match thread.index {
                ThreadIndex::Each(..) => thread.name.text.to_string(),
                ThreadIndex::None | ThreadIndex::One(_) => name.clone(),
            });
            let Unfolding { inlines, memory, mapped } = unfolding;
            let (mapped, budget) = (*mapped, &mut budget);
            let unroller = Unroller { source, names, inlines, locals, memory, problems, budget, mapped };
            cast.threads.push(unroller.thread(name, &thread.body)?);
        }
    }
    Ok(cast)
}

/// The indices of the threads that one definition makes.
fn indices<'s>(
    thread: &ThreadDecl<'s>,
    threads_before: usize,
    names: &TsoNames<'s, '_>,
    problems: &mut Problems<'s>,
) -> Result<Vec<Option<Value>>, Reported> {
    let none = Vec::new();
    let (lo, hi, span) = match &thread.index {
        ThreadIndex::None => (0, 0, thread.name.span),
        ThreadIndex::One(e) => {
            let index = names.constant(e, &none, problems)?;
            (index, index, e.span())
        }
        ThreadIndex::Each(_, range) => {
            let (lo, hi) = names.range(range, &none, problems)?;
            (lo, hi, range.span)
        }
    };
    if lo > hi {
        let problem = Problem::error(format!("there are no threads `{}`", thread.name.text)).at(span);
        return Err(problems.report(problem.label(format!("no value from {lo} up to {hi}"))));
    }
    let count = i128::from(hi) - i128::from(lo) + 1;
    if count + threads_before as i128 > MAX_THREADS as i128 {
        let problem = Problem::error(format!("a program has at most {MAX_THREADS} threads")).at(span);
        let total = count + threads_before as i128;
        return Err(problems.report(problem.label(format!("{total} with these"))));
    }
    Ok(match thread.index {
        ThreadIndex::None => vec![None],
        _ => (lo..=hi).map(Some).collect(),
    })
}

#[cfg(test)]
mod tests;

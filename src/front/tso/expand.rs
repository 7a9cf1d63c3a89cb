//! Which program does the file describe? Parameters get values, templates become threads, names become
//! numbers.
//!
//! The order is that of dependence: constants and memory (`names`), then each thread (`labels` on its text,
//! `thread` for its instructions, `flow` for its graph), then properties over all of them (`query`).
//! Everything that is wrong is reported; parts come back as long as there are any worth checking further.

mod flow;
mod labels;
mod lower;
mod names;
mod query;
mod thread;

use super::ast::{File, Thread, ThreadIndex};
use super::fold;
use super::problems::{Problem, Problems, Reported, Span};
use crate::model::program::ProgramParts;
use crate::model::{MAX_THREADS, RegExpr, ThreadId, UnOp, Value};
use names::Names;
use query::{Cast, Query};
use std::collections::HashMap;
use thread::{Budget, Unroller};

pub fn expand<'s>(
    source: &'s str,
    file: &File<'s>,
    defines: &[(String, Value)],
    problems: &mut Problems,
) -> ProgramParts {
    let (names, memory) = names::declare(file, defines, problems);
    let cast = threads(source, file, &names, problems);
    let mut query = Query {
        source,
        names: &names,
        cast: &cast,
        cells: memory.iter().map(|v| v.init.len()).sum(),
        problems,
        locals: Vec::new(),
        atoms: 0,
    };
    let properties = file.properties.iter().filter_map(|p| query.property(p).ok()).collect();
    let threads = cast.threads.into_iter().map(|t| t.parts).collect();
    ProgramParts { memory, threads, properties }
}

/// What an `if` needs to hold in order to go on instead of jumping.
fn negation(e: RegExpr) -> RegExpr {
    fold::unary(UnOp::Not, e)
}

fn threads<'s>(source: &'s str, file: &File<'s>, names: &Names<'s, '_>, problems: &mut Problems) -> Cast<'s> {
    let mut cast = Cast::default();
    let mut defined: HashMap<String, Span> = HashMap::new();
    let mut budget = Budget::new();
    for thread in &file.threads {
        labels::check(thread, problems);
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
                let line = problems.line(*first);
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
                (ThreadIndex::Each(var, _), Some(index)) => vec![(var.text, index)],
                _ => Vec::new(),
            };
            let unroller = Unroller { source, names, locals, problems, budget: &mut budget };
            cast.threads.push(unroller.thread(name, &thread.body));
            if budget.is_spent() {
                return cast;
            }
        }
    }
    cast
}

/// The indices of the threads that one definition makes.
fn indices<'s>(
    thread: &Thread<'s>,
    threads_before: usize,
    names: &Names<'s, '_>,
    problems: &mut Problems,
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

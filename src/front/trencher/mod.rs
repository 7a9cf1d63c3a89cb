//! The input format of Trencher, the robustness and reachability tool: text to program, and program to text.
//!
//! Threads are automata there as here. Reading has two stages: `parse` says what the file says, with names
//! and places, and `layout` decides which cells there are, since the format has none: every integer is an
//! address. Both dialects are read, that of the robustness tool and that with `final` states, `/` and `%`.
//! Writing is in `write`.
//!
//! `lock` freezes the other threads altogether there, and keeps them from memory alone here. The difference
//! cannot be seen: what the others can do meanwhile touches their own registers and buffers only, so they
//! could as well have done it before the lock was taken. Values have 64 bits here and 32 there, where
//! overflow is left open.

mod layout;
mod parse;
mod write;

pub use write::{write, write_goal, write_plain};

use super::diagnostics::{Problem, Problems, Reported};
use super::{Input, Unread};
use crate::limits::Limits;
use crate::model::Program;

/// Reads a program.
pub fn read(source: &str, limits: &Limits) -> Result<Input, Unread> {
    let mut problems = Problems::new(source, limits);
    let program = program(source, &mut problems);
    problems.finish(program).map(|(program, warnings)| Input { program, formulas: vec![], warnings })
}

fn program<'s>(source: &'s str, problems: &mut Problems<'s>) -> Result<Program, Reported> {
    let threads = parse::parse(source, problems);
    if threads.is_empty() && !problems.has_errors() {
        let problem = Problem::error("there are no threads in this file");
        problems
            .report(problem.help("a program looks like `thread p  initial q0  transition q0 q1 noop  end`"));
    }
    if problems.has_errors() { Err(Reported) } else { layout::program(&threads, problems) }
}

/// The text of a program without its final states: for questions of robustness, which builds ask that do not
/// know the word.
pub fn without_finals(source: &str) -> String {
    let limits = Limits::default();
    let threads = parse::parse(source, &mut Problems::new(source, &limits));
    let mut text = source.to_string();
    let mut spans: Vec<_> = threads.iter().flat_map(|thread| &thread.finals).collect();
    spans.sort_by_key(|span| std::cmp::Reverse(span.start));
    for span in spans {
        text.replace_range(span.start..span.end, "");
    }
    text
}

#[cfg(test)]
mod tests;

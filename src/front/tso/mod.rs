//! The native language, `.tso`, as LANGUAGE.md describes it: text to program, and program to text.
//!
//! Reading goes one way: `lex` and `parse` turn text into the tree of `ast`, `expand` turns the tree into the
//! parts of a program, and each reports what is wrong to `problems`. All mistakes of a file come out of one
//! run. Nothing here recurses deeper than the input may be nested, and nothing unfolds without a limit.

mod ast;
mod expand;
mod fold;
mod lex;
mod parse;
mod problems;

use crate::front::{Diagnostic, Input};
use crate::model::{Program, Value};
use problems::{Problem, Problems};

/// Reads a program. `defines` are values for parameters, the last one counting for each. An `Err` holds all
/// errors, and the warnings too.
pub fn read(source: &str, defines: &[(String, Value)]) -> Result<Input, Vec<Diagnostic>> {
    let mut problems = Problems::new(source);
    let file = parse::parse(source, &mut problems);
    if file.threads.is_empty() && !problems.has_errors() {
        let problem = Problem::error("there are no threads in this file");
        problems.report(problem.help("a program looks like `thread p0; nop; end`"));
    }
    let parts = expand::expand(source, &file, defines, &mut problems);
    if problems.has_errors() {
        return Err(problems.finish());
    }
    match Program::new(parts) {
        Ok(program) => Ok(Input { program, warnings: problems.finish() }),
        Err(invalid) => {
            for rule in invalid {
                problems.report(Problem::error(rule.to_string()));
            }
            Err(problems.finish())
        }
    }
}

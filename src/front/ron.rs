//! How does a program look as plain data? The parts of the model in RON, written and read back unchanged.
//!
//! The format is serde's view of [`ProgramParts`] and nothing more, so it says everything the model can say;
//! it is the one format for programs that other tools generate. Newtypes are written bare (`from: 3`).
//! Invariant: reading what `write` wrote gives the same parts, down to expressions of the greatest depth
//! that validity allows; anything nested deeper is an error with its place, never a full stack.
//! Serde knows nothing of limits: `spending` puts them around it when reading, [`Text`] when writing.

mod spending;

use super::diagnostics::Problems;
use super::{Diagnostic, Input, Severity, Unread};
use crate::limits::{Limit, Limits, Text};
use crate::model::program::ProgramParts;
use crate::model::{Edge, Loc, Location, Program, Property, Variable};
use ron::error::{Position, SpannedError};
use ron::extensions::Extensions;
use ron::ser::PrettyConfig;
use serde::Serialize;
use spending::Purse;
use std::cell::OnceCell;
use std::fmt::{self, Write};
use std::ops::Range;

/// One level of an expression costs ron three of its own (the variant, its tuple, the member); the rest is
/// what surrounds an expression. The tests walk all of it on the two megabytes of a test's stack.
const RECURSION_LIMIT: usize = 3 * crate::model::expr::MAX_DEPTH + 64;

/// Deeper than this, values stay on one line: an edge with its instruction is a line.
const LINE_BY_LINE: usize = 4;

pub fn read(source: &str, limits: &Limits) -> Result<Input, Unread> {
    let mut parts = parts(source, limits)?;
    // What is read is the user's own program, whatever it was derived from.
    parts.threads.iter_mut().flat_map(|t| &mut t.edges).for_each(|edge| edge.origin = None);
    let mut problems = Problems::new("", limits);
    let program = problems.program(parts);
    problems.finish(program).map(|(program, warnings)| Input { program, formulas: vec![], warnings })
}

fn parts(source: &str, limits: &Limits) -> Result<ProgramParts, Unread> {
    let purse = Purse { limits, reached: OnceCell::new() };
    options().from_str_seed(source, purse.seed()).map_err(|e| match purse.reached.get() {
        Some(limit) => Unread::Limit(limit.clone()),
        None => Unread::Wrong(vec![unreadable(source, &e)]),
    })
}

pub fn write(program: &Program, limits: &Limits) -> Result<String, Limit> {
    let pretty = PrettyConfig::new().depth_limit(LINE_BY_LINE).new_line("\n").indentor("  ");
    Text::of(limits, |text| {
        // A valid program is plain data of bounded depth, so that nothing goes wrong but the writing.
        options().to_writer_pretty(&mut *text, &Parts::of(program), pretty).map_err(|_| fmt::Error)?;
        text.write_str("\n")
    })
}

/// [`ProgramParts`] as they lie in the program.
#[derive(Serialize)]
struct Parts<'a> {
    memory: &'a [Variable],
    threads: Vec<ThreadParts<'a>>,
    properties: &'a [Property],
    #[serde(skip_serializing_if = "Option::is_none")]
    no_hang: Option<u32>,
}

#[derive(Serialize)]
struct ThreadParts<'a> {
    name: &'a str,
    registers: &'a [String],
    locations: Vec<&'a Location>,
    edges: Vec<&'a Edge>,
    initial: Loc,
    end: Loc,
}

impl Parts<'_> {
    fn of(program: &Program) -> Parts<'_> {
        let threads = program.threads().iter().map(|thread| ThreadParts {
            name: thread.name(),
            registers: thread.registers(),
            locations: thread.graph().node_weights().collect(),
            edges: thread.graph().edge_weights().collect(),
            initial: thread.initial(),
            end: thread.end(),
        });
        let (memory, properties) = (program.variables(), program.properties());
        Parts { memory, threads: threads.collect(), properties, no_hang: program.no_hang() }
    }
}

fn options() -> ron::Options {
    ron::Options::default()
        .with_recursion_limit(RECURSION_LIMIT)
        .with_default_extension(Extensions::UNWRAP_NEWTYPES | Extensions::IMPLICIT_SOME)
}

fn unreadable(source: &str, e: &SpannedError) -> Diagnostic {
    let message = match &e.code {
        ron::Error::ExceededRecursionLimit => "this is nested too deeply".to_string(),
        code => code.to_string(),
    };
    let (start, end) = (offset(source, &e.span.start), offset(source, &e.span.end));
    Diagnostic { span: Some(visible(source, start..end.max(start))), ..error(message) }
}

fn error(message: String) -> Diagnostic {
    Diagnostic { severity: Severity::Error, message, span: None, label: String::new(), help: None }
}

/// ron marks what it skipped last, which may be the space before the culprit; then the next letter is meant.
fn visible(source: &str, span: Range<usize>) -> Range<usize> {
    if !source[span.clone()].trim().is_empty() {
        return span;
    }
    let next = source[span.end..].chars().next().map_or(0, char::len_utf8);
    span.end..span.end + next
}

/// The byte at a line and column, both counted from 1 and in characters, as ron does.
fn offset(source: &str, position: &Position) -> usize {
    let line_start: usize =
        source.split_inclusive('\n').take(position.line.saturating_sub(1)).map(str::len).sum();
    let within = source[line_start..].char_indices().nth(position.col.saturating_sub(1));
    within.map_or(source.len(), |(bytes, _)| line_start + bytes)
}

#[cfg(test)]
mod tests {
    #[test]
    fn origins_are_left_behind() {
        use crate::model::{EdgeId, Origin, Program};
        let source = "shared x; thread p; store [x], 1; end";
        let program = crate::front::tso::read(source, &[], &Limits::default()).expect("a program").program;
        let mut parts = program.to_parts();
        parts.threads[0].edges[0].origin = Some(Origin::Flush(EdgeId(7)));
        let derived = Program::new(parts).expect("still valid");
        let back = read(&write(&derived, &Limits::default()).unwrap(), &Limits::default())
            .expect("what is written can be read")
            .program;
        assert_eq!(back.to_parts(), program.to_parts());
    }

    use super::*;
    use crate::model::expr::MAX_DEPTH;
    use crate::model::{Expr, Instr, Reg, RegExpr, UnOp};

    const SMALL: &str = r#"(
        memory: [(name: "x", init: [0]), (name: "a", init: [1, 2])],
        threads: [(
            name: "p",
            registers: ["r"],
            locations: [(labels: ["start"]), (), ()],
            edges: [
                (from: 0, to: 1, instr: Load(dst: 0, addr: Const(1)), line: 4, text: "load r, [a]"),
                (from: 1, to: 2, instr: Store(addr: Const(0), value: Binary(Add, Atom(0), Const(1)))),
            ],
            initial: 0,
            end: 2,
        )],
        properties: [(kind: Forbid, pred: Binary(Eq, Atom(Mem(0)), Const(2)))],
    )"#;

    fn program(source: &str) -> Program {
        read(source, &Limits::default()).expect("the test's source is readable").program
    }

    fn only_error(source: &str) -> Diagnostic {
        let unread = read(source, &Limits::default()).expect_err("the source is wrong");
        let [error] = unread.diagnostics() else { panic!("{unread:?}") };
        error.clone()
    }

    #[test]
    fn what_is_written_reads_back_as_the_same_program() {
        let p = program(SMALL);
        let text = write(&p, &Limits::default()).unwrap();
        assert_eq!(program(&text).to_parts(), p.to_parts(), "{text}");
        assert!(text.contains("(from: 0, to: 1, instr: Load(dst: 0, addr: Const(1)), line: 4"), "{text}");
    }

    #[test]
    fn an_error_marks_its_place() {
        let source = SMALL.replace("Load(", "Lead(");
        let wrong = only_error(&source);
        let span = wrong.span.expect("ron knows where");
        assert!(source[span].contains("Lead"), "{}", wrong.message);
    }

    #[test]
    fn an_error_after_letters_of_several_bytes_marks_its_place() {
        let source = "// çé→\n(memory: [], /* ü */ threads: 7, properties: [])";
        let wrong = only_error(source);
        let span = wrong.span.expect("ron knows where");
        assert_eq!(&source[span], "7");
    }

    #[test]
    fn an_invalid_program_is_reported_in_full() {
        let source = SMALL.replace("to: 2,", "to: 9,").replace("Mem(0)", "Mem(7)");
        let errors = read(&source, &Limits::default()).expect_err("two ids are out of range");
        assert_eq!(errors.diagnostics().len(), 2, "{errors:?}");
    }

    fn nested(depth: usize) -> Program {
        let mut e: RegExpr = Expr::Atom(Reg(0));
        for _ in 1..depth {
            e = Expr::unary(UnOp::Neg, e);
        }
        let mut parts = program(SMALL).to_parts();
        parts.threads[0].edges[0].instr = Instr::Assume(e);
        Program::new(parts).expect("the depth is allowed")
    }

    #[test]
    fn the_deepest_valid_expression_survives() {
        let p = nested(MAX_DEPTH);
        assert_eq!(program(&write(&p, &Limits::default()).unwrap()).to_parts(), p.to_parts());
    }

    #[test]
    fn deeper_nesting_is_an_error_of_the_input() {
        let deep = |levels: usize| {
            let e = format!("{}Const(1){}", "Unary(Neg, ".repeat(levels), ")".repeat(levels));
            SMALL.replace("addr: Const(1)", &format!("addr: {e}"))
        };
        assert!(only_error(&deep(MAX_DEPTH)).message.contains("nested more than"));
        for levels in [1_000, 100_000] {
            assert_eq!(only_error(&deep(levels)).message, "this is nested too deeply");
        }
    }

    #[test]
    fn garbage_is_an_error_and_nothing_worse() {
        let brackets = "[(".repeat(100_000);
        let unknown = format!("(extra: {brackets}");
        for source in ["", "(", "\u{0}", "é", "(memory: 1e999)", &brackets, &unknown, "/* /*"] {
            let errors = read(source, &Limits::default()).expect_err("this is no program");
            let span = errors.diagnostics()[0].span.clone().expect("ron knows where");
            assert!(source.get(span).is_some(), "the span lies inside {source:.20}");
        }
    }
}

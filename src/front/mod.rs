//! From bytes to a [`Program`], and back: one file or folder per format.
//!
//! A front end sees the model, and the limits of what it may spend, and nothing else. Bad input is a list of
//! [`Diagnostic`]s, each with its place in the file; who prints them, and how, is not decided here. A limit
//! ends reading ([`Unread`]) and writing ([`Unwritten`]) as it ends everything else.

mod cfg;
mod const_fold;
mod diagnostics;
pub mod dve;
pub mod elf;
pub mod formats;
pub mod litmus;
pub mod ltl;
pub mod patch;
pub mod promela;
pub mod rmm;
pub mod ron;
pub mod trencher;
#[cfg(test)]
mod trial;
pub mod tso;
mod x86;

use crate::limits::Limit;
use crate::model::Program;
use crate::model::formula::StatedFormula;
use std::fmt;
use std::ops::Range;
use thiserror::Error;

/// A program that was read, and what is doubtful about it.
#[derive(Clone, Debug)]
pub struct Input {
    pub program: Program,
    /// What is asked of its infinite runs.
    pub formulas: Vec<StatedFormula>,
    pub warnings: Vec<Diagnostic>,
}

/// One thing that is wrong, or doubtful, in an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub severity: Severity,
    /// What is wrong, in one line.
    pub message: String,
    /// The bytes of the source that the message is about, if it is about any.
    pub span: Option<Range<usize>>,
    /// A few words under the marked text, such as what was expected there.
    pub label: String,
    /// A way out, if one is near.
    pub help: Option<String>,
}

impl Diagnostic {
    /// Line and column, from 1, of what it is about, if it is about a part of the source.
    pub fn place(&self, source: &str) -> Option<(usize, usize)> {
        let start = self.span.as_ref()?.start.min(source.len());
        let before = source.as_bytes()[..start].iter();
        let line = 1 + before.clone().filter(|&&byte| byte == b'\n').count();
        let begins = before.rev().position(|&byte| byte == b'\n').map_or(0, |back| start - back);
        Some((line, 1 + source.get(begins..start).map_or(start - begins, |text| text.chars().count())))
    }

    /// The message with its place in the source in front: `3:7: error: …`.
    pub fn in_source(&self, source: &str) -> String {
        let place = self.place(source).map_or(String::new(), |(line, column)| format!("{line}:{column}: "));
        format!("{place}{self}")
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(f, "{word}: {}", self.message)?;
        match self.label.as_str() {
            "" => {}
            label => write!(f, " ({label})")?,
        }
        self.help.as_ref().map_or(Ok(()), |help| write!(f, "; {help}"))
    }
}

impl std::error::Error for Diagnostic {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    Error,
    Warning,
}

/// Why a program was not read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unread {
    /// All errors, and the warnings too.
    #[error("{}", .0.first().map_or("", |first| &first.message))]
    Wrong(Vec<Diagnostic>),
    #[error("a limit was reached before the program was read")]
    Limit(Limit),
}

impl From<Limit> for Unread {
    fn from(limit: Limit) -> Unread {
        Unread::Limit(limit)
    }
}

impl Unread {
    /// What is wrong with the file, as far as is known.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        match self {
            Unread::Wrong(diagnostics) => diagnostics,
            Unread::Limit(_) => &[],
        }
    }
}

/// Why a program was not written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unwritten {
    #[error(transparent)]
    Inexpressible(#[from] Inexpressible),
    #[error("programs are not written in the format {0}")]
    NoWriter(&'static str),
    #[error("a limit was reached before the program was written")]
    Limit(Limit),
}

impl From<Limit> for Unwritten {
    fn from(limit: Limit) -> Unwritten {
        Unwritten::Limit(limit)
    }
}

/// What no other tool's language says of a whole program, if the program does.
fn only_ours(program: &Program, format: &'static str) -> Result<(), Inexpressible> {
    let Some(line) = program.no_hang() else { return Ok(()) };
    let place =
        if line == 0 { "the properties".to_string() } else { format!("line {}", program.place(line)) };
    let why = "there are no words for that".to_string();
    Err(Inexpressible { format, place, construct: "`no hang`".to_string(), why })
}

/// Something that a program says and the format it is being written in cannot say.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{place}: {construct} cannot be written as {format}: {why}")]
pub struct Inexpressible {
    pub format: &'static str,
    /// The thread and line, the variable, or the property.
    pub place: String,
    pub construct: String,
    pub why: String,
}

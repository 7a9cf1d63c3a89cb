//! From bytes to a [`Program`], and back: one file or folder per format.
//!
//! A front end sees the model, and the limits of what it may spend, and nothing else. Bad input is a list of
//! [`Diagnostic`]s, each with its place in the file; who prints them, and how, is not decided here. A limit
//! ends reading ([`Unread`]) and writing ([`Unwritten`]) as it ends everything else.

mod cfg;
mod const_fold;
mod diagnostics;
pub mod dve;
pub mod formats;
pub mod litmus;
pub mod ltl;
pub mod patch;
pub mod promela;
pub mod rmm;
pub mod ron;
pub mod trencher;
pub mod tso;
mod x86;

use crate::limits::Limit;
use crate::model::Program;
use std::ops::Range;
use thiserror::Error;

/// A program that was read, and what is doubtful about it.
#[derive(Clone, Debug)]
pub struct Input {
    pub program: Program,
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

//! What does a file say, once its macros are gone? The tree that `parse` builds, with names still as text.
//!
//! Expressions are those of the model, over names instead of registers. What names mean is not decided here.

use crate::analysis::interval::Interval;
use crate::front::diagnostics::Span;
use crate::model::{Expr, FenceKinds, Value};
use std::collections::HashSet;

#[derive(Default)]
pub(crate) struct File<'s> {
    pub goals: Vec<Goal<'s>>,
    pub globals: Vec<Decl<'s>>,
    pub processes: Vec<Process<'s>>,
    /// Names in what could not be read; complaints about them would be about something that was reported.
    pub doubtful: HashSet<&'s str>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Name<'s> {
    pub text: &'s str,
    pub span: Span,
}

/// A label for each process, or `*`.
pub(crate) struct Goal<'s> {
    pub entries: Vec<Option<Name<'s>>>,
    pub span: Span,
}

/// A memory location or a register.
#[derive(Clone)]
pub(crate) struct Decl<'s> {
    pub name: Name<'s>,
    /// `None` is any value of the domain.
    pub init: Option<Value>,
    pub domain: Interval,
}

pub(crate) struct Process<'s> {
    pub span: Span,
    pub copies: usize,
    pub locals: Vec<Decl<'s>>,
    pub registers: Vec<Decl<'s>>,
    pub body: Vec<Stmt<'s>>,
}

/// An arithmetic or Boolean expression.
pub(crate) struct Term<'s> {
    pub expr: Expr<Name<'s>>,
    pub span: Span,
}

/// Where in memory.
pub(crate) struct RmmPlace<'s> {
    pub kind: PlaceKind<'s>,
    pub span: Span,
}

pub(crate) enum PlaceKind<'s> {
    Global(Name<'s>),
    /// `x[my]`
    Own(Name<'s>),
    /// `x[k]`: that of the k-th of the other processes.
    Other(Name<'s>, Value),
    /// `[e]`: the global with that number.
    Pointer(Term<'s>),
}

pub(crate) struct Stmt<'s> {
    pub label: Option<Name<'s>>,
    pub kind: StmtKind<'s>,
    pub span: Span,
    /// As it was written, for traces.
    pub text: String,
}

pub(crate) enum StmtKind<'s> {
    Nop,
    /// `ssfence`, `llfence`
    Partial(FenceKinds),
    Assign(Name<'s>, Term<'s>),
    Assume(Term<'s>),
    Load(Name<'s>, RmmPlace<'s>),
    /// Blocks unless the place holds this value.
    Expect(RmmPlace<'s>, Term<'s>),
    Store(RmmPlace<'s>, Term<'s>),
    /// With an empty buffer, and into memory at once.
    LockedStore(RmmPlace<'s>, Term<'s>),
    Cas(RmmPlace<'s>, Term<'s>, Term<'s>),
    Fence,
    Locked(Vec<Vec<Stmt<'s>>>),
    Block(Vec<Stmt<'s>>),
    If(Term<'s>, Box<Stmt<'s>>, Option<Box<Stmt<'s>>>),
    While(Term<'s>, Box<Stmt<'s>>),
    Either(Vec<Vec<Stmt<'s>>>),
    Goto(Name<'s>),
}

//! What did the user write? The file as a tree, with places, before any name is looked up.
//!
//! Statements that could not be read stand in the tree as `Bad`: they have been reported, and whoever walks
//! the tree knows that something is missing there. Here are files and what they declare; the folder has
//! `statement` and `expr`.

mod expr;
mod statement;

pub(crate) use expr::{Bound, Expr, LabelRef, Range, ThreadRef};
pub(crate) use statement::{Arm, CellRef, Locked, LockedKind, Op, Stmt, Width, own_labels};

use crate::front::diagnostics::Span;
use crate::model::PropertyKind;
use crate::model::formula::Connective;
use std::collections::HashSet;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Name<'s> {
    pub text: &'s str,
    pub span: Span,
}

#[derive(Debug, Default)]
pub(crate) struct File<'s> {
    pub params: Vec<Param<'s>>,
    pub structs: Vec<Struct<'s>>,
    pub shared: Vec<Shared<'s>>,
    pub inlines: Vec<Inline<'s>>,
    pub threads: Vec<ThreadDecl<'s>>,
    pub properties: Vec<Property<'s>>,
    pub formulas: Vec<FormulaDecl<'s>>,
    /// `no hang`, wherever it stands.
    pub no_hang: Vec<Span>,
    /// What a data type has beside that; nothing in a program.
    pub datatype: Option<DataTypeText<'s>>,
    /// Names in declarations that could not be read: what they mean is unknown, and no fault of their uses.
    pub doubtful: HashSet<&'s str>,
}

/// What `datatype NAME` and the declarations that belong to it say.
#[derive(Debug)]
pub(super) struct DataTypeText<'s> {
    pub name: Name<'s>,
    pub alloc: Option<(AllocText, Span)>,
    pub init: Option<Vec<Stmt<'s>>>,
    pub operations: Vec<Operation<'s>>,
    pub tests: Vec<TestText<'s>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AllocText {
    Fresh,
    Reuse,
    Unfenced,
}

/// `op NAME(a, b) -> r … end`
#[derive(Debug)]
pub(super) struct Operation<'s> {
    pub name: Name<'s>,
    pub params: Vec<Name<'s>>,
    pub results: Vec<Name<'s>>,
    pub body: Vec<Stmt<'s>>,
}

/// `test T = push ; push*2 pop | pop`
#[derive(Debug)]
pub(super) struct TestText<'s> {
    pub name: Name<'s>,
    pub initial: Vec<Invocation<'s>>,
    pub threads: Vec<Vec<Invocation<'s>>>,
    /// What stands behind the `=`.
    pub span: Span,
}

/// `push`, `push(7)`, `push(any(0..2))*3`
#[derive(Debug)]
pub(super) struct Invocation<'s> {
    pub operation: Name<'s>,
    pub args: Option<Vec<ArgText<'s>>>,
    pub times: Option<Expr<'s>>,
    pub span: Span,
}

#[derive(Debug)]
pub(super) enum ArgText<'s> {
    Given(Expr<'s>),
    Any(Range<'s>),
}

#[derive(Debug)]
pub(crate) struct Param<'s> {
    pub name: Name<'s>,
    pub value: Expr<'s>,
    pub kind: ParamKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParamKind {
    /// `param`: the command line may give it another value.
    Open,
    /// `const`
    Fixed,
}

/// `struct node { value, next }`
#[derive(Debug)]
pub(crate) struct Struct<'s> {
    pub name: Name<'s>,
    pub fields: Vec<Name<'s>>,
}

/// `inline NAME(x) … end`
#[derive(Debug)]
pub(crate) struct Inline<'s> {
    pub name: Name<'s>,
    pub params: Vec<Name<'s>>,
    pub body: Vec<Stmt<'s>>,
}

/// `x`, `x = 3`, `a[4]`, `a[4] = 7`, `a[4] = {1, 2}`
#[derive(Debug)]
pub(crate) struct Shared<'s> {
    pub name: Name<'s>,
    pub size: Option<Expr<'s>>,
    pub init: Init<'s>,
}

#[derive(Debug)]
pub(crate) enum Init<'s> {
    Zero,
    Each(Expr<'s>),
    List(Vec<Expr<'s>>),
}

#[derive(Debug)]
pub(crate) struct ThreadDecl<'s> {
    pub name: Name<'s>,
    pub index: ThreadIndex<'s>,
    pub body: Vec<Stmt<'s>>,
}

#[derive(Debug)]
pub(crate) enum ThreadIndex<'s> {
    /// `thread p`
    None,
    /// `thread p[3]`
    One(Expr<'s>),
    /// `thread p[i in 1..=3]`
    Each(Name<'s>, Range<'s>),
}

#[derive(Debug)]
pub(crate) struct Property<'s> {
    pub kind: PropertyKind,
    pub name: Option<Name<'s>>,
    pub quantifiers: Vec<Quantifier<'s>>,
    pub body: Expr<'s>,
    pub span: Span,
}

/// `ltl F`, or `terminates`.
#[derive(Debug)]
pub(crate) struct FormulaDecl<'s> {
    pub name: Option<Name<'s>>,
    pub quantifiers: Vec<Quantifier<'s>>,
    pub body: Temporal<'s>,
    pub span: Span,
}

/// A formula of temporal logic over conditions.
#[derive(Debug)]
pub(crate) enum Temporal<'s> {
    State(Expr<'s>),
    /// All threads have ended.
    Terminated,
    Not(Box<Temporal<'s>>),
    Next(Box<Temporal<'s>>),
    Finally(Box<Temporal<'s>>),
    Globally(Box<Temporal<'s>>),
    Binary(Connective, Box<Temporal<'s>>, Box<Temporal<'s>>),
}

#[derive(Debug)]
pub(crate) struct Quantifier<'s> {
    pub how_many: HowMany,
    pub var: Name<'s>,
    pub range: Option<Range<'s>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HowMany {
    All,
    Two,
    Some,
}

//! What did the user write? The file as a tree, with places, before any name is looked up.
//!
//! Statements that could not be read stand in the tree as `Bad`: they have been reported, and whoever walks
//! the tree knows that something is missing there.

use crate::front::diagnostics::Span;
use crate::model::{BinOp, PropertyKind, UnOp, Value};
use std::collections::HashSet;

#[derive(Clone, Copy, Debug)]
pub struct Name<'s> {
    pub text: &'s str,
    pub span: Span,
}

#[derive(Debug, Default)]
pub struct File<'s> {
    pub params: Vec<Param<'s>>,
    pub shared: Vec<Shared<'s>>,
    pub threads: Vec<ThreadDecl<'s>>,
    pub properties: Vec<Property<'s>>,
    /// Names in declarations that could not be read: what they mean is unknown, and no fault of their uses.
    pub doubtful: HashSet<&'s str>,
}

#[derive(Debug)]
pub struct Param<'s> {
    pub name: Name<'s>,
    pub value: Expr<'s>,
}

/// `x`, `x = 3`, `a[4]`, `a[4] = 7`, `a[4] = {1, 2}`
#[derive(Debug)]
pub struct Shared<'s> {
    pub name: Name<'s>,
    pub size: Option<Expr<'s>>,
    pub init: Init<'s>,
}

#[derive(Debug)]
pub enum Init<'s> {
    Zero,
    Each(Expr<'s>),
    List(Vec<Expr<'s>>),
}

#[derive(Debug)]
pub struct ThreadDecl<'s> {
    pub name: Name<'s>,
    pub index: ThreadIndex<'s>,
    pub body: Vec<Stmt<'s>>,
}

#[derive(Debug)]
pub enum ThreadIndex<'s> {
    /// `thread p`
    None,
    /// `thread p[3]`
    One(Expr<'s>),
    /// `thread p[i in 1..=3]`
    Each(Name<'s>, Range<'s>),
}

#[derive(Debug)]
pub struct Range<'s> {
    pub lo: Expr<'s>,
    pub hi: Expr<'s>,
    pub bound: Bound,
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    Excluded,
    Included,
}

#[derive(Debug)]
pub enum Stmt<'s> {
    Label(Name<'s>),
    Instr(Op<'s>, Span),
    Repeat { var: Name<'s>, range: Range<'s>, body: Vec<Stmt<'s>> },
    Bad,
}

#[derive(Debug)]
pub enum Op<'s> {
    Load(Name<'s>, Expr<'s>),
    Store(Expr<'s>, Expr<'s>),
    Fence,
    Assign(Name<'s>, Expr<'s>),
    Any(Name<'s>, Range<'s>),
    Assume(Expr<'s>),
    Assert(Expr<'s>),
    Goto(Name<'s>),
    If(Expr<'s>, Name<'s>),
    Choose(Vec<Name<'s>>),
    Xchg(Name<'s>, Expr<'s>, Expr<'s>),
    Add(Name<'s>, Expr<'s>, Expr<'s>),
    Cas(Name<'s>, Expr<'s>, Expr<'s>, Expr<'s>),
    Lock,
    Unlock,
    Halt,
    Nop,
}

#[derive(Debug)]
pub struct Property<'s> {
    pub kind: PropertyKind,
    pub quantifiers: Vec<Quantifier<'s>>,
    pub body: Expr<'s>,
    pub span: Span,
}

#[derive(Debug)]
pub struct Quantifier<'s> {
    pub how_many: HowMany,
    pub var: Name<'s>,
    pub range: Option<Range<'s>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HowMany {
    All,
    Two,
    Some,
}

/// Instructions and properties share one grammar of expressions; which leaves are allowed where is checked
/// later, when it can be said what to write instead.
#[derive(Debug)]
pub enum Expr<'s> {
    Number(Value, Span),
    Name(Name<'s>),
    Unary(UnOp, Span, Box<Expr<'s>>),
    /// Operators of one precedence, from left to right. A list, because `1 + 1 + …` may be long, and a tree
    /// of it would be as deep.
    Chain(Box<Expr<'s>>, Vec<(BinOp, Span, Expr<'s>)>),
    /// `[e]`
    Memory(Box<Expr<'s>>, Span),
    /// `t@label`
    At(ThreadRef<'s>, Name<'s>),
    /// `t.r`
    Register(ThreadRef<'s>, Name<'s>),
    /// `a[e]`, which is not of this language but of many others
    Index(Name<'s>, Box<Expr<'s>>, Span),
}

#[derive(Debug)]
pub struct ThreadRef<'s> {
    pub name: Name<'s>,
    pub index: Option<Box<Expr<'s>>>,
}

impl<'s> Expr<'s> {
    pub fn span(&self) -> Span {
        match self {
            Expr::Number(_, span) | Expr::Memory(_, span) | Expr::Index(_, _, span) => *span,
            Expr::Name(name) => name.span,
            Expr::Unary(_, span, a) => span.to(a.span()),
            Expr::Chain(first, rest) => {
                let first = first.span();
                first.to(rest.last().map_or(first, |(_, _, e)| e.span()))
            }
            Expr::At(t, name) | Expr::Register(t, name) => t.name.span.to(name.span),
        }
    }

    /// Every name that stands for a value, from left to right.
    pub fn for_each_name(&self, visit: &mut impl FnMut(&Name<'s>)) {
        match self {
            Expr::Number(..) => {}
            Expr::Name(name) => visit(name),
            Expr::Unary(_, _, a) | Expr::Memory(a, _) => a.for_each_name(visit),
            Expr::Chain(first, rest) => {
                first.for_each_name(visit);
                rest.iter().for_each(|(_, _, e)| e.for_each_name(visit));
            }
            Expr::At(t, _) | Expr::Register(t, _) => {
                if let Some(index) = &t.index {
                    index.for_each_name(visit);
                }
            }
            Expr::Index(name, index, _) => {
                visit(name);
                index.for_each_name(visit);
            }
        }
    }
}

impl<'s> Op<'s> {
    pub fn exprs(&self) -> Vec<&Expr<'s>> {
        match self {
            Op::Load(_, e) | Op::Assign(_, e) | Op::Assume(e) | Op::Assert(e) | Op::If(e, _) => vec![e],
            Op::Store(a, b) | Op::Xchg(_, a, b) | Op::Add(_, a, b) => vec![a, b],
            Op::Any(_, range) => vec![&range.lo, &range.hi],
            Op::Cas(_, a, b, c) => vec![a, b, c],
            Op::Fence | Op::Goto(_) | Op::Choose(_) | Op::Lock | Op::Unlock | Op::Halt | Op::Nop => vec![],
        }
    }

    /// The labels it may jump to.
    pub fn jumps(&self) -> &[Name<'s>] {
        match self {
            Op::Goto(label) | Op::If(_, label) => std::slice::from_ref(label),
            Op::Choose(labels) => labels,
            _ => &[],
        }
    }

    /// Does the text behind it follow only if something jumps there?
    pub fn never_goes_on(&self) -> bool {
        matches!(self, Op::Goto(_) | Op::Choose(_) | Op::Halt)
    }
}

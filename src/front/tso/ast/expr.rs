//! Which values are meant? Expressions as they are written, and ranges.

use super::Name;
use crate::front::diagnostics::Span;
use crate::model::{BinOp, UnOp, Value};

/// Instructions and properties share one grammar of expressions; which leaves are allowed where is checked
/// later, when it can be said what to write instead.
#[derive(Debug)]
pub(crate) enum Expr<'s> {
    Number(Value, Span),
    Name(Name<'s>),
    Unary(UnOp, Span, Box<Expr<'s>>),
    /// Operators of one precedence, from left to right. A list, because `1 + 1 + …` may be long, and a tree
    /// of it would be as deep.
    Chain(Box<Expr<'s>>, Vec<(BinOp, Span, Expr<'s>)>),
    /// `[e]`
    Memory(Box<Expr<'s>>, Span),
    /// `t@label`
    At(ThreadRef<'s>, LabelRef<'s>),
    /// `t.r` in a property; `n.field`, which is an address
    Dot(ThreadRef<'s>, Name<'s>),
    /// `a[e]`, which is not of this language but of many others
    Index(Name<'s>, Box<Expr<'s>>, Span),
}

#[derive(Debug)]
pub(crate) struct ThreadRef<'s> {
    pub name: Name<'s>,
    pub index: Option<Box<Expr<'s>>>,
}

/// `label`, or `NAME.label` for one of an `inline`.
#[derive(Debug)]
pub(crate) struct LabelRef<'s> {
    pub inline: Option<Name<'s>>,
    pub name: Name<'s>,
}

impl<'s> Expr<'s> {
    pub(crate) fn span(&self) -> Span {
        match self {
            Expr::Number(_, span) | Expr::Memory(_, span) | Expr::Index(_, _, span) => *span,
            Expr::Name(name) => name.span,
            Expr::Unary(_, span, a) => span.to(a.span()),
            Expr::Chain(first, rest) => {
                let first = first.span();
                first.to(rest.last().map_or(first, |(_, _, e)| e.span()))
            }
            Expr::At(t, LabelRef { name, .. }) | Expr::Dot(t, name) => t.name.span.to(name.span),
        }
    }

    /// Every name that stands for a value, from left to right.
    pub(crate) fn for_each_name(&self, visit: &mut impl FnMut(&Name<'s>)) {
        match self {
            Expr::Number(..) => {}
            Expr::Name(name) => visit(name),
            Expr::Unary(_, _, a) | Expr::Memory(a, _) => a.for_each_name(visit),
            Expr::Chain(first, rest) => {
                first.for_each_name(visit);
                rest.iter().for_each(|(_, _, e)| e.for_each_name(visit));
            }
            Expr::At(ThreadRef { index: Some(index), .. }, _)
            | Expr::Dot(ThreadRef { index: Some(index), .. }, _) => index.for_each_name(visit),
            Expr::At(..) => {}
            Expr::Dot(base, _) => visit(&base.name),
            Expr::Index(name, index, _) => {
                visit(name);
                index.for_each_name(visit);
            }
        }
    }
}

#[derive(Debug)]
pub(crate) struct Range<'s> {
    pub lo: Expr<'s>,
    pub hi: Expr<'s>,
    pub bound: Bound,
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    Excluded,
    Included,
}

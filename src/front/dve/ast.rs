//! A DVE model as it is written: names are not resolved yet, and every part has its place.

use crate::dve::DveType;
use crate::front::diagnostics::Span;
use crate::model::{BinOp, UnOp, Value};

#[derive(Clone, Copy, Debug)]
pub(crate) struct DveName<'s> {
    pub text: &'s str,
    pub span: Span,
}

#[derive(Debug, Default)]
pub(crate) struct SystemText<'s> {
    pub variables: Vec<Declaration<'s>>,
    pub channels: Vec<ChannelText<'s>>,
    pub processes: Vec<ProcessText<'s>>,
    pub property: Option<DveName<'s>>,
}

#[derive(Debug)]
pub(crate) struct Declaration<'s> {
    pub name: DveName<'s>,
    pub kind: DveType,
    pub constant: bool,
    pub size: Option<usize>,
    pub initial: Vec<ExprText<'s>>,
}

#[derive(Debug)]
pub(crate) struct ChannelText<'s> {
    pub name: DveName<'s>,
    pub types: Option<Vec<DveType>>,
    pub capacity: usize,
}

#[derive(Debug)]
pub(crate) struct ProcessText<'s> {
    pub name: DveName<'s>,
    pub variables: Vec<Declaration<'s>>,
    pub states: Vec<DveName<'s>>,
    pub initial: Option<DveName<'s>>,
    pub committed: Vec<DveName<'s>>,
    pub accepting: Vec<DveName<'s>>,
    pub asserts: Vec<(DveName<'s>, ExprText<'s>)>,
    pub transitions: Vec<TransitionText<'s>>,
}

#[derive(Debug)]
pub(crate) struct TransitionText<'s> {
    pub from: DveName<'s>,
    pub to: DveName<'s>,
    /// From the first word to the closing brace.
    pub span: Span,
    pub guard: Option<ExprText<'s>>,
    pub sync: Option<SyncText<'s>>,
    pub effects: Vec<(LvalueText<'s>, ExprText<'s>)>,
}

#[derive(Debug)]
pub(crate) struct SyncText<'s> {
    pub channel: DveName<'s>,
    pub direction: DirectionText<'s>,
}

#[derive(Debug)]
pub(crate) enum DirectionText<'s> {
    Send(Vec<ExprText<'s>>),
    Receive(Vec<LvalueText<'s>>),
}

#[derive(Debug)]
pub(crate) struct LvalueText<'s> {
    pub name: DveName<'s>,
    pub index: Option<Box<ExprText<'s>>>,
}

#[derive(Debug)]
pub(crate) enum ExprText<'s> {
    Number(Value),
    Read(LvalueText<'s>),
    /// `P.s`.
    At(DveName<'s>, DveName<'s>),
    /// `P->x`.
    Other(DveName<'s>, LvalueText<'s>),
    Unary(UnOp, Box<ExprText<'s>>),
    Binary(BinOp, Box<ExprText<'s>>, Box<ExprText<'s>>),
}

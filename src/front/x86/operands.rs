//! What is an instruction made of? One shape for all front ends: destination first, whatever the syntax was.

use super::mnemonics::Op;
use super::registers::GprPart;
use crate::front::diagnostics::Span;
use crate::model::Value;

/// An instruction whose operands name memory and labels by symbols `S`.
pub(crate) struct Instruction<S> {
    pub op: Op,
    pub locked: bool,
    /// The width that the mnemonic gives; once it is settled, that of the instruction.
    pub bits: Option<u32>,
    /// Destination first.
    pub operands: Vec<(Operand<S>, Span)>,
    /// The name it goes by in messages.
    pub mnemonic: String,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub(crate) enum Operand<S> {
    Const(Value),
    /// The address of a symbol, as a value.
    AddressOf(S),
    Reg(GprPart),
    Mem(Mem<S>),
    Label(S),
}

/// A place in memory: the sum of what is there.
#[derive(Clone, Debug)]
pub(crate) struct Mem<S> {
    pub symbol: Option<S>,
    pub offset: Value,
    pub base: Option<GprPart>,
    pub index: Option<(GprPart, Value)>,
    /// The width of the place, if the operand gives it.
    pub bits: Option<u32>,
}

impl<S> Instruction<S> {
    /// May it have a `LOCK` before it?
    pub(crate) fn may_lock(&self) -> bool {
        let is_mem = |(operand, _): &(Operand<S>, Span)| matches!(operand, Operand::Mem(_));
        let either = matches!(self.op, Op::Xchg | Op::Cmpxchg | Op::Xadd);
        let places = if either { &self.operands[..] } else { &self.operands[..self.operands.len().min(1)] };
        self.op.may_lock() && places.iter().any(is_mem)
    }
}

impl<S> Default for Mem<S> {
    fn default() -> Mem<S> {
        Mem { symbol: None, offset: 0, base: None, index: None, bits: None }
    }
}

impl<S> Mem<S> {
    /// Is it the same place whatever registers hold?
    pub(crate) fn is_direct(&self) -> bool {
        self.base.is_none() && self.index.is_none()
    }

    /// The registers that it is made from.
    pub(crate) fn parts(&self) -> impl Iterator<Item = GprPart> {
        self.base.into_iter().chain(self.index.map(|(part, _)| part))
    }
}

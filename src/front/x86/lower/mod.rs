//! What does each instruction do? From x86 to steps of the model.
//!
//! A plain load, store or locked instruction becomes one step; one that reads memory and writes it without
//! `LOCK` a load and a store; locked arithmetic that the model has no step for a `lock` … `unlock` block.
//! Flags are registers of the thread, computed where something in the thread looks at them, in true x86
//! meaning.
//!
//! A result of fewer than 64 bits has to be cut to its width. Where it can be proved that nothing is ever cut
//! off the cutting is left out ([`Form::Plain`]), and so steps and expressions stay as short as the
//! instructions are; `overflow` knows how large values can get. Invariant: every register, cell and
//! intermediate value is `fitted` to its width.

mod arithmetic;
mod flags;
mod memory;
mod moves;
mod operands;

use super::Arch;
use super::flags::{Condition, Flag};
use super::mnemonics::Op;
use super::operands::{Instruction, Operand};
use super::registers::{GprPart, Own, ThreadRegisters};
use crate::front::cfg::{Action, CfgStep, LabelId};
use crate::front::diagnostics::Span;
use crate::model::{Expr, Instr, Reg, RegExpr, Value};
use std::collections::BTreeSet;

/// How results are cut to their width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Not at all.
    Plain,
    /// Always.
    Exact,
}

/// Where symbols lie. Addresses are numbers of bytes, and cells are what the model calls an address.
pub(crate) trait Resolver {
    /// A name that operands use for memory or for an instruction.
    type Symbol: Copy;

    /// An address: the sum of registers, if there are any, with so many bytes behind a symbol, or behind 0.
    fn displaced(&self, registers: Option<RegExpr>, symbol: Option<Self::Symbol>, offset: Value) -> RegExpr;

    /// The cell so many bytes behind a symbol. If there is none this is reported, and any cell will do.
    fn cell(&mut self, symbol: Self::Symbol, offset: Value) -> RegExpr;

    /// The cell of so many bits that lies at an address.
    fn cell_at(&self, address: RegExpr, bits: u32) -> RegExpr;

    /// Where a jump leads to. If there is no such label this is reported, with the place of the operand.
    fn label(&mut self, label: Self::Symbol, at: Span) -> Option<LabelId>;
}

/// The steps of one thread, in the making.
pub(crate) struct Lowering<'r, R> {
    pub resolver: R,
    arch: Arch,
    form: Form,
    registers: &'r mut ThreadRegisters,
    /// Flags that something looks at.
    used: Vec<Flag>,
    steps: Vec<CfgStep>,
    /// The first step of the instruction at hand.
    begin: usize,
    uncut: BTreeSet<u32>,
    line: u32,
    text: String,
}

impl<'r, R: Resolver> Lowering<'r, R> {
    /// Nothing yet. `used` are the flags that the thread's own instructions or others look at.
    pub(crate) fn new(
        arch: Arch,
        form: Form,
        registers: &'r mut ThreadRegisters,
        used: Vec<Flag>,
        resolver: R,
    ) -> Lowering<'r, R> {
        Lowering {
            resolver,
            arch,
            form,
            registers,
            used,
            steps: vec![],
            begin: 0,
            uncut: BTreeSet::new(),
            line: 0,
            text: String::new(),
        }
    }

    /// The place of the step that comes next.
    pub(crate) fn next_step(&self) -> usize {
        self.steps.len()
    }

    /// All steps, and the widths to which something was not cut, if the form is plain.
    pub(crate) fn finish(self) -> (Vec<CfgStep>, BTreeSet<u32>) {
        (self.steps, self.uncut)
    }

    /// What comes next stands in this line, and reads like this.
    pub(crate) fn at(&mut self, line: u32, text: String) {
        self.begin = self.steps.len();
        self.line = line;
        self.text = text;
    }

    /// A value that a register starts with.
    pub(crate) fn start_with(&mut self, own: Own, value: Value) {
        let dst = self.registers.own(own, self.arch);
        self.assign(dst, Expr::Const(value));
    }

    /// Flags that a thread begins with say something about `Less`, too.
    pub(crate) fn start_with_flags(&mut self, is_set: impl Fn(Flag) -> bool) {
        if is_set(Flag::Sign) != is_set(Flag::Overflow) {
            self.flags([(Flag::Less, Expr::Const(1))]);
        }
    }

    /// An instruction that makes sense and whose width is settled.
    pub(crate) fn instruction(&mut self, i: &Instruction<R::Symbol>) {
        let bits = i.bits.unwrap_or(self.arch.bits());
        let operand = |n: usize| &i.operands[n].0;
        match i.op {
            Op::Nop => self.step(Instr::Nop),
            Op::Fence => self.step(Instr::Fence),
            Op::Partial(kinds) => self.step(Instr::Partial(kinds)),
            Op::Ret => self.push(Action::Halt),
            Op::Jump(condition) => self.jump(condition, &i.operands[0]),
            Op::Mov => self.mov(operand(0), operand(1), bits),
            Op::Extend { signed, from } => {
                self.extend(operand(0), operand(1), bits, signed, from.unwrap_or(bits))
            }
            Op::Lea => self.lea(operand(0), operand(1), bits),
            Op::Set(condition) => {
                let value = self.condition(condition);
                self.write(operand(0), value, bits);
            }
            Op::MoveIf(condition) => self.move_if(condition, operand(0), operand(1), bits),
            Op::Xchg => self.xchg(operand(0), operand(1), bits),
            Op::Xadd => self.xadd(operand(0), operand(1), bits, i.locked),
            Op::Cmpxchg => self.cmpxchg(operand(0), operand(1), bits, i.locked),
            Op::Two(two) => self.two(two, operand(0), operand(1), bits, i.locked),
            Op::Multiply => self.multiply(operand(0), operand(1), bits),
            Op::One(one) => self.one(one, operand(0), bits, i.locked),
            Op::Shift(shift) => {
                let count = match i.operands.get(1) {
                    Some((Operand::Const(count), _)) => *count,
                    _ => 1,
                };
                self.shift(shift, operand(0), count, bits);
            }
            Op::Bit(bit) => self.bit(bit, operand(0), operand(1), bits, i.locked),
        }
    }

    fn jump(&mut self, condition: Option<Condition>, target: &(Operand<R::Symbol>, Span)) {
        let (Operand::Label(label), span) = target else { unreachable!("a jump was read with its label") };
        let Some(label) = self.resolver.label(*label, *span) else { return };
        match condition {
            None => self.push(Action::Goto(label)),
            Some(condition) => {
                let holds = self.condition(condition);
                self.push(Action::If(holds, label));
            }
        }
    }

    fn push(&mut self, action: Action) {
        let continues = self.steps.len() > self.begin;
        self.steps.push(CfgStep { action, line: self.line, text: self.text.clone(), continues });
    }

    fn step(&mut self, instr: Instr) {
        self.push(Action::Do(instr));
    }

    fn assign(&mut self, dst: Reg, value: RegExpr) {
        self.step(Instr::Assign { dst, value });
    }

    fn temporary(&mut self, n: u8) -> Reg {
        self.registers.temporary(n)
    }

    /// The register that the part is of.
    fn whole(&mut self, part: GprPart) -> Reg {
        self.registers.own(Own::Gpr(part.gpr), self.arch)
    }

    fn flag(&mut self, flag: Flag) -> Reg {
        self.registers.own(Own::Flag(flag), self.arch)
    }
}

#[cfg(test)]
mod tests;

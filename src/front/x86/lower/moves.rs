//! Instructions that copy: MOV and its kin, LEA and CMOVcc.

use super::super::flags::Condition;
use super::super::operands::Operand;
use super::super::value::{choose, cut, with_sign};
use super::{Lowering, Resolver};
use crate::model::{Bytes, Instr};

impl<R: Resolver> Lowering<'_, R> {
    pub(super) fn mov(&mut self, to: &Operand<R::Symbol>, from: &Operand<R::Symbol>, bits: u32) {
        match (to, from) {
            (Operand::Reg(part), Operand::Mem(mem)) if self.is_whole(*part) => {
                let addr = self.cell(mem, bits);
                let dst = self.whole(*part);
                self.step(Instr::Load { dst, addr, bytes: Bytes::WHOLE });
            }
            _ => {
                let value = self.read(from, bits);
                self.write(to, value, bits);
            }
        }
    }

    pub(super) fn extend(
        &mut self,
        to: &Operand<R::Symbol>,
        from: &Operand<R::Symbol>,
        bits: u32,
        signed: bool,
        narrow: u32,
    ) {
        let value = self.read(from, narrow);
        let value = if signed { cut(with_sign(value, narrow, self.arch), bits, self.arch) } else { value };
        self.write(to, value, bits);
    }

    pub(super) fn lea(&mut self, to: &Operand<R::Symbol>, place: &Operand<R::Symbol>, bits: u32) {
        let Operand::Mem(mem) = place else { unreachable!("`width` has looked at the operands") };
        let address = self.address(mem);
        let value = self.wrapped(address, bits);
        self.write(to, value, bits);
    }

    /// A conditional move reads its source in any case, and writes its destination in any case.
    pub(super) fn move_if(
        &mut self,
        condition: Condition,
        to: &Operand<R::Symbol>,
        from: &Operand<R::Symbol>,
        bits: u32,
    ) {
        let value = self.read(from, bits);
        let old = self.read(to, bits);
        let condition = self.condition(condition);
        self.write(to, choose(condition, value, old), bits);
    }
}

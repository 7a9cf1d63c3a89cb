//! How are operands read and written? Registers by their parts, places in memory by their addresses.

use super::super::operands::{Mem, Operand};
use super::super::registers::GprPart;
use super::super::value::{binary, cut, fitted};
use super::{Form, Lowering, Resolver};
use crate::model::{BinOp, Bytes, Expr, Instr, RegExpr, Value};

impl<R: Resolver> Lowering<'_, R> {
    /// The value of an operand; one in memory is loaded first.
    pub(super) fn read(&mut self, operand: &Operand<R::Symbol>, bits: u32) -> RegExpr {
        match operand {
            Operand::Const(value) => Expr::Const(fitted(*value, bits, self.arch)),
            Operand::AddressOf(symbol) => self.resolver.displaced(None, Some(*symbol), 0),
            Operand::Reg(part) => self.part(*part),
            Operand::Mem(mem) => {
                let (addr, dst) = (self.cell(mem, bits), self.temporary(0));
                self.step(Instr::Load { dst, addr, bytes: Bytes::WHOLE });
                Expr::Atom(dst)
            }
            Operand::Label(_) => unreachable!("labels stand behind jumps alone"),
        }
    }

    pub(super) fn write(&mut self, operand: &Operand<R::Symbol>, value: RegExpr, bits: u32) {
        match operand {
            Operand::Reg(part) => {
                let dst = self.whole(*part);
                let value = self.inserted(*part, value);
                self.assign(dst, value);
            }
            Operand::Mem(mem) => {
                let addr = self.cell(mem, bits);
                self.step(Instr::Store { addr, value, bytes: Bytes::WHOLE });
            }
            Operand::Const(_) | Operand::AddressOf(_) | Operand::Label(_) => {
                unreachable!("`width` has looked at the operands")
            }
        }
    }

    pub(super) fn part(&mut self, part: GprPart) -> RegExpr {
        let whole: RegExpr = Expr::Atom(self.whole(part));
        if part.bits == self.arch.bits() {
            return whole;
        }
        if part.shift == 0 {
            return self.wrapped(whole, part.bits);
        }
        cut(binary(BinOp::Shr, whole, Expr::Const(Value::from(part.shift))), part.bits, self.arch)
    }

    /// Does a write to the part replace the whole register? A write to 32 of 64 bits does: the others become
    /// 0.
    pub(super) fn is_whole(&self, part: GprPart) -> bool {
        part.bits >= 32
    }

    /// The whole register once the part has this value.
    pub(super) fn inserted(&mut self, part: GprPart, value: RegExpr) -> RegExpr {
        if self.is_whole(part) {
            return value;
        }
        let whole: RegExpr = Expr::Atom(self.whole(part));
        let hole = !((u64::MAX >> (64 - part.bits)) << part.shift) as Value;
        let moved = match part.shift {
            0 => value,
            shift => binary(BinOp::Shl, value, Expr::Const(Value::from(shift))),
        };
        binary(BinOp::BitOr, binary(BinOp::BitAnd, whole, Expr::Const(hole)), moved)
    }

    /// A result that may have left its width, cut to it or noted.
    pub(super) fn wrapped(&mut self, e: RegExpr, bits: u32) -> RegExpr {
        match self.form {
            Form::Exact => cut(e, bits, self.arch),
            Form::Plain if bits == 64 || e.constant().is_some_and(|c| fitted(c, bits, self.arch) == c) => e,
            Form::Plain => {
                self.uncut.insert(bits);
                e
            }
        }
    }

    /// The address that a place stands for, as a number of bytes.
    pub(super) fn address(&mut self, mem: &Mem<R::Symbol>) -> RegExpr {
        let base = mem.base.map(|part| self.part(part));
        let index = mem.index.map(|(part, factor)| {
            let index = self.part(part);
            if factor == 1 { index } else { binary(BinOp::Mul, index, Expr::Const(factor)) }
        });
        let registers = base.into_iter().chain(index).reduce(|a, b| binary(BinOp::Add, a, b));
        let sum = self.resolver.displaced(registers, mem.symbol, mem.offset);
        // Registers of 32 bits make an address of 32 bits.
        let narrow = mem.parts().any(|part| part.bits < self.arch.bits());
        if narrow { cut(sum, 32, self.arch) } else { sum }
    }

    /// The cell of an access, as the model addresses it.
    pub(super) fn cell(&mut self, mem: &Mem<R::Symbol>, bits: u32) -> RegExpr {
        if let (Some(symbol), true) = (mem.symbol, mem.is_direct()) {
            return self.resolver.cell(symbol, mem.offset);
        }
        let address = match self.address(mem) {
            register @ Expr::Atom(_) => register,
            sum => cut(sum, self.arch.bits(), self.arch),
        };
        self.resolver.cell_at(address, bits)
    }
}

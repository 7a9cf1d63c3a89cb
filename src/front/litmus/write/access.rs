//! How does a thread access memory? Places and their widths, locked instructions, and what has to be kept out
//! of their way.
//!
//! A block that reads a cell and writes it is a locked instruction if the processor has it, or else tries
//! compare-and-exchange until nobody has come between.

use super::body::Block;
use super::code::Assembly;
use super::syntax::{self, Mem, Operand};
use crate::analysis::interval::Interval;
use crate::front::Inexpressible;
use crate::front::x86::{EAX, Gpr};
use crate::model::{BinOp, Expr, Reg, RegExpr, RmwOp, Value};

/// An instruction on a register, and the locked one on memory.
type Combination = (&'static str, &'static str);
const ADD: Combination = ("add", "lock add");
const AND: Combination = ("and", "lock and");
const OR: Combination = ("or", "lock or");
const XOR: Combination = ("xor", "lock xor");

impl<'a> Assembly<'a> {
    pub(crate) fn load(&mut self, to: Gpr, mem: &Mem, bits: u32) {
        match bits {
            8 | 16 => self.plain(syntax::extending_load(self.writer.arch, to, mem, bits)),
            _ => self.op("mov", bits, &[Operand::Reg(to), Operand::Mem(mem.clone())]),
        }
    }

    pub(crate) fn rmw(&mut self, reg: Reg, addr: &RegExpr, op: &RmwOp) -> Result<(), Inexpressible> {
        let dst = self.registers.get(reg);
        let (mem, bits) = self.access(addr)?;
        let (value, mnemonic) = match op {
            RmwOp::Swap(value) => (value, "xchg"),
            RmwOp::Add(value) if self.has("lock xadd") => (value, "lock xadd"),
            RmwOp::Add(value) => return self.combine((reg, dst), mem, bits, (ADD, value)),
            RmwOp::And(value) => return self.combine((reg, dst), mem, bits, (AND, value)),
            RmwOp::Or(value) => return self.combine((reg, dst), mem, bits, (OR, value)),
            RmwOp::Xor(value) => return self.combine((reg, dst), mem, bits, (XOR, value)),
            RmwOp::New(value) => {
                return self.attempts(dst, mem, bits, |assembly, new| assembly.into(new, value));
            }
            RmwOp::Cas { old, new } => {
                let mem = self.apart(mem, EAX)?;
                let new = match self.reg(new)? {
                    EAX => self.copied(EAX)?,
                    new => new,
                };
                let kept = self.keep_accumulator(dst)?;
                self.into(EAX, old)?;
                self.op("lock cmpxchg", bits, &[Operand::Mem(mem), Operand::Reg(new)]);
                self.mov(dst, EAX);
                self.restore_accumulator(kept);
                return Ok(());
            }
        };
        let mem = self.apart(mem, dst)?;
        self.into(dst, value)?;
        self.op(mnemonic, bits, &[Operand::Mem(mem), Operand::Reg(dst)]);
        Ok(())
    }

    /// The old value combined with another one, where no instruction gives the old value back.
    fn combine(
        &mut self,
        (reg, dst): (Reg, Gpr),
        mem: Mem,
        bits: u32,
        ((plain, locked), value): (Combination, &RegExpr),
    ) -> Result<(), Inexpressible> {
        let other = self.operand(value)?;
        let unused = self.edge.is_some_and(|edge| !self.live.is_live(self.t, edge.to, reg));
        if unused && self.has(locked) {
            self.op(locked, bits, &[Operand::Mem(mem), other]);
            return Ok(());
        }
        let other = match other {
            Operand::Reg(gpr) if gpr == dst || gpr == EAX => Operand::Reg(self.copied(gpr)?),
            other => other,
        };
        self.attempts(dst, mem, bits, |assembly, new| {
            assembly.mov(new, dst);
            assembly.op(plain, assembly.bits(), &[Operand::Reg(new), other]);
            Ok(())
        })
    }

    pub(crate) fn block(&mut self, block: &Block<'a>) -> Result<(), Inexpressible> {
        self.edge = Some(block.load);
        let (mem, bits) = self.access(block.addr)?;
        if !self.live.is_live(self.t, block.to, block.dst)
            && let Some((mnemonic, value)) = self.locked_instruction(block, bits)
        {
            let value = self.operand(&value)?;
            self.op(mnemonic, bits, &[Operand::Mem(mem), value]);
            return Ok(());
        }
        let dst = self.registers.get(block.dst);
        self.attempts(dst, mem, bits, |assembly, new| assembly.into(new, block.value))
    }

    /// Loads the cell, computes what is to be there instead, and exchanges them unless somebody has come
    /// between: then it begins anew.
    fn attempts(
        &mut self,
        dst: Gpr,
        mem: Mem,
        bits: u32,
        compute: impl FnOnce(&mut Self, Gpr) -> Result<(), Inexpressible>,
    ) -> Result<(), Inexpressible> {
        let mem = self.apart(mem, EAX)?;
        let mem = self.apart(mem, dst)?;
        let kept = self.keep_accumulator(dst)?;
        let (again, new) = (self.fresh(), self.scratch()?);
        self.label(again);
        self.load(dst, &mem, bits);
        compute(self, new)?;
        self.mov(EAX, dst);
        self.op("lock cmpxchg", bits, &[Operand::Mem(mem), Operand::Reg(new)]);
        // Before the next attempt too: the value may depend on it. Moves leave flags as they are.
        self.restore_accumulator(kept);
        self.jump("jne", again);
        Ok(())
    }

    /// The accumulator's value, put elsewhere if it is one of the program's and `dst` is another.
    fn keep_accumulator(&mut self, dst: Gpr) -> Result<Option<Gpr>, Inexpressible> {
        let holds = dst != EAX && self.registers.holds(EAX);
        holds.then(|| self.copied(EAX)).transpose()
    }

    fn restore_accumulator(&mut self, kept: Option<Gpr>) {
        if let Some(kept) = kept {
            self.mov(EAX, kept);
        }
    }

    /// The place without a register that is about to change.
    fn apart(&mut self, mem: Mem, gpr: Gpr) -> Result<Mem, Inexpressible> {
        if !mem.uses(gpr) {
            return Ok(mem);
        }
        let copy = self.copied(gpr)?;
        Ok(mem.with(gpr, copy))
    }

    fn copied(&mut self, gpr: Gpr) -> Result<Gpr, Inexpressible> {
        let copy = self.scratch()?;
        self.mov(copy, gpr);
        Ok(copy)
    }

    /// The place that an address means, and how wide it is.
    pub(crate) fn access(&mut self, addr: &RegExpr) -> Result<(Mem, u32), Inexpressible> {
        let program = self.writer.program;
        if let Some(address) = addr.constant() {
            return match program.cell(address) {
                Some(cell) => self.at_cell(cell.index()),
                None => Err(self.refuse("the address is none of the memory's")),
            };
        }
        for zone in self.layout.zones() {
            if let Some(address) = zone.address_in(addr) {
                let bits = zone.bytes as u32 * 8;
                return Ok((self.at_address(address)?, bits));
            }
        }
        let range = match self.edge {
            Some(edge) if edge.instr.address().is_some() => self.writer.intervals.address(self.t, edge),
            _ => Interval::FULL,
        };
        if range.lo < 0 || range.hi >= program.cells() as Value {
            return Err(self.refuse("the address may be none of the memory's, and herd would not tell"));
        }
        if range.lo == range.hi {
            return self.at_cell(range.lo as usize);
        }
        let (group, _) = self.layout.place(range.lo as usize);
        let bits = group.width.bits;
        let (rest, known) = summands(addr);
        let offset = known.wrapping_sub(group.first as Value).wrapping_mul(Value::from(bits / 8));
        let array = self.base(&group.name)?;
        let place = self.scratch()?;
        self.into(place, rest)?;
        // herd computes addresses by additions alone.
        self.double(place, (bits / 8).trailing_zeros());
        self.op("add", self.bits(), &[Operand::Reg(place), Operand::Reg(array)]);
        Ok((Mem { offset, base: Some(place), ..Mem::default() }, bits))
    }

    /// A cell by its name, or as an element of its array.
    fn at_cell(&mut self, cell: usize) -> Result<(Mem, u32), Inexpressible> {
        let (group, element) = self.layout.place(cell);
        let (name, bits) = (group.name.clone(), group.width.bits);
        let offset = element as Value * Value::from(bits / 8);
        // Tests that were read have their own ways to a place.
        let mem = match offset != 0 && self.writer.kept.is_none() {
            true => Mem { offset, base: Some(self.base(&name)?), ..Mem::default() },
            false => Mem { name: Some(name), offset, ..Mem::default() },
        };
        Ok((mem, bits))
    }

    /// An address of a test that was read, in bytes.
    fn at_address(&mut self, address: &RegExpr) -> Result<Mem, Inexpressible> {
        let (rest, known) = summands(self.uncut(address));
        let (name, offset) = match self.writer.location_at(self.layout, known) {
            Some((name, offset)) => (Some(name), offset),
            None => (None, known),
        };
        Ok(Mem { name, offset, base: Some(self.reg(rest)?), index: None })
    }
}

/// A sum as something and a constant.
fn summands(e: &RegExpr) -> (&RegExpr, Value) {
    match e {
        Expr::Binary(BinOp::Add, a, b) => match (&**a, &**b) {
            (rest, Expr::Const(known)) | (Expr::Const(known), rest) => (rest, *known),
            _ => (e, 0),
        },
        _ => (e, 0),
    }
}

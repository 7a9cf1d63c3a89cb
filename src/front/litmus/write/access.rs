//! How does a thread access memory? Places and their widths, locked instructions, and what has to be kept out of their way.
//!
//! A block that reads a cell and writes it is a locked instruction if the processor has it, or else tries
//! compare-and-exchange until nobody has come between.

use super::super::x86::{EAX, Gpr};
use super::body::Block;
use super::code::Assembly;
use super::syntax::{self, Mem, Operand};
use crate::front::Inexpressible;
use crate::model::interval::Interval;
use crate::model::{BinOp, Expr, Reg, RegExpr, RmwOp, Value};

/// Addresses further away than this are compared with the size of memory first: times eight they might come round.
const FAR: Value = 1 << 40;

impl<'a> Assembly<'a> {
    pub fn load(&mut self, to: Gpr, mem: &Mem, bits: u32) {
        match bits {
            8 | 16 => self.plain(syntax::extending_load(self.writer.arch, to, mem, bits)),
            _ => self.op("mov", bits, &[Operand::Reg(to), Operand::Mem(mem.clone())]),
        }
    }

    pub fn rmw(&mut self, dst: Reg, addr: &RegExpr, op: &RmwOp) -> Result<(), Inexpressible> {
        let dst = self.registers.get(dst);
        let (mem, bits) = self.access(addr)?;
        let (value, mnemonic) = match op {
            RmwOp::Swap(value) => (value, "xchg"),
            RmwOp::Add(value) => (value, "lock xadd"),
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

    pub fn block(&mut self, block: &Block<'a>) -> Result<(), Inexpressible> {
        self.edge = Some(block.load);
        let (mem, bits) = self.access(block.addr)?;
        if !self.live.is_live(self.t, block.to, block.dst)
            && let Some((mnemonic, value)) = self.locked_instruction(block, bits)
        {
            let value = self.operand(value)?;
            self.op(mnemonic, bits, &[Operand::Mem(mem), value]);
            return Ok(());
        }
        let dst = self.registers.get(block.dst);
        let mem = self.apart(mem, EAX)?;
        let mem = self.apart(mem, dst)?;
        let kept = self.keep_accumulator(dst)?;
        let (again, new) = (self.fresh(), self.scratch()?);
        self.label(again);
        self.load(dst, &mem, bits);
        self.into(new, block.value)?;
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
    pub fn access(&mut self, addr: &RegExpr) -> Result<(Mem, u32), Inexpressible> {
        let program = self.writer.program;
        if let Some(address) = addr.constant() {
            return match program.cell(address) {
                Some(cell) => {
                    let (group, element) = self.layout.place(cell.index());
                    let offset = element as Value * Value::from(group.width.bits / 8);
                    Ok((Mem { name: Some(group.name.clone()), offset, ..Mem::default() }, group.width.bits))
                }
                None => self.nowhere(),
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
        let Some(last) = program.cells().checked_sub(1) else { return self.nowhere() };
        let (group, _) = self.layout.place(usize::try_from(range.lo).unwrap_or(0).min(last));
        let (name, bits) = (Some(group.name.clone()), group.width.bits);
        let bytes = Value::from(bits / 8);
        let is_far = range.lo < -FAR || range.hi > FAR;
        let (rest, known) = if is_far { (addr, 0) } else { summands(addr) };
        let offset = known.wrapping_sub(group.first as Value).wrapping_mul(bytes);
        let index = self.reg(rest)?;
        if is_far {
            self.within_memory(index)?;
        }
        Ok((Mem { name, offset, base: None, index: Some((index, bytes)) }, bits))
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

    /// Goes wrong here unless the register has the number of a cell.
    fn within_memory(&mut self, index: Gpr) -> Result<(), Inexpressible> {
        let fine = self.fresh();
        let cells = Operand::Const(self.writer.program.cells() as Value);
        self.op("cmp", self.bits(), &[Operand::Reg(index), cells]);
        self.jump("jb", fine);
        let (mem, bits) = self.nowhere()?;
        let Some(base) = mem.base else { unreachable!("nowhere is behind a register") };
        self.op("mov", bits, &[Operand::Reg(base), Operand::Mem(mem)]);
        self.label(fine);
        Ok(())
    }

    /// A place where nothing lies.
    fn nowhere(&mut self) -> Result<(Mem, u32), Inexpressible> {
        let null = self.scratch()?;
        self.into(null, &Expr::Const(0))?;
        Ok((Mem { base: Some(null), ..Mem::default() }, self.bits()))
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

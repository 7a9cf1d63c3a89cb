//! What does an operand stand for? Registers and their parts, places in memory, and numbers.

use super::super::ops::*;
use super::super::refusal::{Refusal, Result};
use super::{Lift, gpr};
use crate::model::BinOp;
use iced_x86::{OpKind, Register};

/// A part of a general register.
#[derive(Clone, Copy)]
pub(super) struct RegisterPart {
    pub number: u8,
    pub bits: u8,
    pub high: bool,
}

impl Lift {
    pub(super) fn part(register: Register) -> Option<RegisterPart> {
        register.is_gpr().then(|| RegisterPart {
            number: register.full_register().number() as u8,
            bits: 8 * register.size() as u8,
            high: matches!(register, Register::AH | Register::BH | Register::CH | Register::DH),
        })
    }

    pub(super) fn read_part(part: RegisterPart) -> VarExpr {
        let whole = gpr(part.number);
        match part.high {
            true => cut(shr(cut(whole, 16), constant(8), 16), 8),
            false => cut(whole, part.bits),
        }
    }

    pub(super) fn write_part(&mut self, part: RegisterPart, value: VarExpr) {
        let to = Var::Gpr(part.number);
        match part.bits {
            64 | 32 => self.set(to, value),
            _ if part.high => {
                let low = cut(gpr(part.number), 8);
                self.ops.push(MicroOp::SetLow { var: to, bits: 16, value: or(low, shl(value, constant(8))) });
            }
            bits => self.ops.push(MicroOp::SetLow { var: to, bits, value }),
        }
    }

    /// Where a memory operand is, without the thread's own pointer.
    pub(super) fn effective(&self) -> VarExpr {
        let i = &self.i;
        if i.is_ip_rel_memory_operand() {
            return constant(i.ip_rel_memory_address());
        }
        let (base, index) = (i.memory_base(), i.memory_index());
        let mut sum = None;
        let mut plus = |term: VarExpr| {
            sum = Some(match sum.take() {
                Some(before) => add(before, term),
                None => term,
            });
        };
        if let Some(part) = Lift::part(base) {
            plus(Lift::read_part(part));
        }
        if let Some(part) = Lift::part(index) {
            plus(binary(BinOp::Mul, Lift::read_part(part), constant(u64::from(i.memory_index_scale()))));
        }
        let displacement = i.memory_displacement64();
        let sum = match sum {
            Some(sum) => add(sum, constant(displacement)),
            None => constant(displacement),
        };
        let narrow = base.size() == 4 && base.is_gpr() || index.size() == 4 && index.is_gpr();
        if narrow { cut(sum, 32) } else { sum }
    }

    pub(in super::super) fn address(&self) -> VarExpr {
        let at = self.effective();
        match self.i.memory_segment() {
            Register::FS => add(var(Var::Own), at),
            _ => at,
        }
    }

    pub(in super::super) fn bits(&self, operand: u32) -> u8 {
        match self.i.op_kind(operand) {
            OpKind::Register => 8 * self.i.op_register(operand).size().min(16) as u8,
            OpKind::Memory => 8 * self.i.memory_size().size().min(16) as u8,
            _ => 64,
        }
    }

    pub(in super::super) fn is_memory(&self, operand: u32) -> bool {
        self.i.op_kind(operand) == OpKind::Memory
    }

    /// The operand as a number of so many bits without sign.
    pub(super) fn read(&mut self, operand: u32, bits: u8) -> Result<VarExpr> {
        match self.i.op_kind(operand) {
            OpKind::Register => match Lift::part(self.i.op_register(operand)) {
                Some(part) => Ok(Lift::read_part(part)),
                None => Err(self.uncovered()),
            },
            OpKind::Memory => {
                self.segment()?;
                Ok(self.load(self.address(), bits / 8))
            }
            kind if is_immediate(kind) => Ok(constant(self.i.immediate(operand) & mask(bits))),
            _ => Err(self.uncovered()),
        }
    }

    pub(in super::super) fn segment(&self) -> Result<()> {
        match self.i.memory_segment() {
            Register::GS => Err(Refusal::new("memory of the segment gs is not known")),
            _ => Ok(()),
        }
    }

    pub(super) fn write(&mut self, operand: u32, value: VarExpr) -> Result<()> {
        match self.i.op_kind(operand) {
            OpKind::Register => match Lift::part(self.i.op_register(operand)) {
                Some(part) => self.write_part(part, value),
                None => return Err(self.uncovered()),
            },
            OpKind::Memory => {
                self.segment()?;
                let bytes = self.bits(operand) / 8;
                self.store(self.address(), value, bytes);
            }
            _ => return Err(self.uncovered()),
        }
        Ok(())
    }

    /// Reads the place that the first operand names, has `change` make the new value of the old one, and writes it
    /// back; with a lock in one step. What comes back is the old value.
    pub(super) fn update(&mut self, bits: u8, change: impl FnOnce(VarExpr) -> VarExpr) -> Result<VarExpr> {
        if self.is_memory(0) && self.i.has_lock_prefix() {
            self.segment()?;
            return Ok(self.update_at(self.address(), bits, change));
        }
        let old = self.read(0, bits)?;
        let old = self.kept(old);
        let new = change(old.clone());
        self.write(0, new)?;
        Ok(old)
    }

    /// Changes memory there, in one step if the instruction has a lock.
    pub(super) fn update_at(
        &mut self,
        addr: VarExpr,
        bits: u8,
        change: impl FnOnce(VarExpr) -> VarExpr,
    ) -> VarExpr {
        if self.i.has_lock_prefix() {
            let dst = self.temp();
            let new = New::Update(change(var(Var::Old)));
            self.ops.push(MicroOp::Rmw { dst, addr, bytes: bits / 8, new });
            return var(dst);
        }
        let addr = self.kept(addr);
        let old = self.load(addr.clone(), bits / 8);
        self.store(addr, change(old.clone()), bits / 8);
        old
    }

    /// Is the same register given twice?
    pub(super) fn same_register(&self) -> bool {
        let i = &self.i;
        let both = i.op_kind(0) == OpKind::Register && i.op_kind(1) == OpKind::Register;
        both && i.op_register(0) == i.op_register(1)
    }
}

pub(super) fn is_immediate(kind: OpKind) -> bool {
    matches!(
        kind,
        OpKind::Immediate8
            | OpKind::Immediate8_2nd
            | OpKind::Immediate16
            | OpKind::Immediate32
            | OpKind::Immediate64
            | OpKind::Immediate8to16
            | OpKind::Immediate8to32
            | OpKind::Immediate8to64
            | OpKind::Immediate32to64
    )
}

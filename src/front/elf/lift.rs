//! What does an x86-64 instruction do? Its operations, written once for running, analysing and translating.
//!
//! The instructions are one table, and so one file.

use super::decode::Code64;
use super::ops::*;
use super::refusal::{Refusal, Result};
use super::vector;
use crate::model::BinOp;
use iced_x86::{ConditionCode, Instruction, Mnemonic, OpKind, Register, RflagsBits};

/// The operations of the instruction at an address, if the flags are where `flags` says.
pub(super) fn lift(code: &Code64, address: u64, flags: Flags) -> Result<Lifted> {
    let i = code.at(address)?;
    let mut lift = Lift { i, ops: Vec::new(), flags, needed: code.flags_needed(i.next_ip()), temps: 0 };
    let done = lift.instruction();
    let refusal = |r: Refusal| r.at(address);
    done.map_err(refusal)?;
    Ok(Lifted { ops: lift.ops, flags: lift.flags, next: i.next_ip() })
}

/// The number of rsp and rbp.
pub(super) const RSP: u8 = 4;
const RBP: u8 = 5;
const RAX: u8 = 0;
const RCX: u8 = 1;
const RDX: u8 = 2;
const RSI: u8 = 6;
const RDI: u8 = 7;

pub(super) struct Lift {
    pub i: Instruction,
    pub ops: Vec<MicroOp>,
    flags: Flags,
    needed: u32,
    temps: u8,
}

/// A part of a general register.
#[derive(Clone, Copy)]
struct RegisterPart {
    number: u8,
    bits: u8,
    high: bool,
}

fn gpr(number: u8) -> VarExpr {
    var(Var::Gpr(number))
}

impl Lift {
    pub(super) fn temp(&mut self) -> Var {
        self.temps += 1;
        Var::Temp(self.temps - 1)
    }

    pub(super) fn set(&mut self, to: Var, value: VarExpr) {
        self.ops.push(MicroOp::Set(to, value));
    }

    /// The value in a variable of its own.
    fn kept(&mut self, value: VarExpr) -> VarExpr {
        let temp = self.temp();
        self.set(temp, value);
        var(temp)
    }

    pub(super) fn load(&mut self, addr: VarExpr, bytes: u8) -> VarExpr {
        let dst = self.temp();
        self.ops.push(MicroOp::Load { dst, addr, bytes });
        var(dst)
    }

    pub(super) fn store(&mut self, addr: VarExpr, value: VarExpr, bytes: u8) {
        self.ops.push(MicroOp::Store { addr, value, bytes });
    }

    /// Goes on behind what is added until `here`, if the condition holds.
    fn skip_if(&mut self, condition: VarExpr) -> usize {
        self.ops.push(MicroOp::If(condition, 0));
        self.ops.len() - 1
    }

    fn here(&mut self, from: usize) {
        let end = self.ops.len() as OpLabel;
        match &mut self.ops[from] {
            MicroOp::If(_, label) | MicroOp::Goto(label) => *label = end,
            _ => unreachable!("only jumps are patched"),
        }
    }

    fn fail_if(&mut self, condition: VarExpr, what: &str) {
        let past = self.skip_if(negated(condition));
        self.ops.push(MicroOp::Fail(what.to_string()));
        self.here(past);
    }

    fn refuse_if(&mut self, condition: VarExpr, why: &str) {
        let past = self.skip_if(negated(condition));
        self.ops.push(MicroOp::Special(Special::Refuse(why.to_string(), None)));
        self.here(past);
    }

    pub(super) fn uncovered(&self) -> Refusal {
        let name = format!("{:?}", self.i.mnemonic()).to_lowercase();
        let help = match self.i.is_vex_or_floating() {
            true => "compile without -march=native and -ffast-math; floating point is not covered",
            false => "keep it out of the code that is checked, or replace the function with --stub",
        };
        Refusal::new(format!("the instruction `{name}` is not covered")).help(help)
    }

    fn part(register: Register) -> Option<RegisterPart> {
        register.is_gpr().then(|| RegisterPart {
            number: register.full_register().number() as u8,
            bits: 8 * register.size() as u8,
            high: matches!(register, Register::AH | Register::BH | Register::CH | Register::DH),
        })
    }

    fn read_part(part: RegisterPart) -> VarExpr {
        let whole = gpr(part.number);
        match part.high {
            true => cut(shr(cut(whole, 16), constant(8), 16), 8),
            false => cut(whole, part.bits),
        }
    }

    fn write_part(&mut self, part: RegisterPart, value: VarExpr) {
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
    fn effective(&self) -> VarExpr {
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

    pub(super) fn address(&self) -> VarExpr {
        let at = self.effective();
        match self.i.memory_segment() {
            Register::FS => add(var(Var::Own), at),
            _ => at,
        }
    }

    pub(super) fn bits(&self, operand: u32) -> u8 {
        match self.i.op_kind(operand) {
            OpKind::Register => 8 * self.i.op_register(operand).size().min(16) as u8,
            OpKind::Memory => 8 * self.i.memory_size().size().min(16) as u8,
            _ => 64,
        }
    }

    pub(super) fn is_memory(&self, operand: u32) -> bool {
        self.i.op_kind(operand) == OpKind::Memory
    }

    /// The operand as a number of so many bits without sign.
    fn read(&mut self, operand: u32, bits: u8) -> Result<VarExpr> {
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

    pub(super) fn segment(&self) -> Result<()> {
        match self.i.memory_segment() {
            Register::GS => Err(Refusal::new("memory of the segment gs is not known")),
            _ => Ok(()),
        }
    }

    fn write(&mut self, operand: u32, value: VarExpr) -> Result<()> {
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

    fn needs(&self, flags: u32) -> bool {
        self.needed & flags != 0
    }

    /// The flags are those of an operation on these two.
    fn flags_of(&mut self, left: VarExpr, right: VarExpr, how: Flags) {
        if self.needed == 0 {
            self.flags = Flags::Lost;
            return;
        }
        self.set(Var::Left, left);
        self.set(Var::Right, right);
        self.flags = how;
    }

    fn flags_of_result(&mut self, result: VarExpr, bits: u8) {
        if self.needed == 0 {
            self.flags = Flags::Lost;
            return;
        }
        self.set(Var::Left, result);
        self.flags = Flags::Logic(bits);
    }

    /// Each flag by itself: what is `None` stays as it was.
    fn single(&mut self, new: [(StatusFlag, Option<VarExpr>); 5]) -> Result<()> {
        let bit = |flag| match flag {
            StatusFlag::Carry => RflagsBits::CF,
            StatusFlag::Zero => RflagsBits::ZF,
            StatusFlag::Sign => RflagsBits::SF,
            StatusFlag::Overflow => RflagsBits::OF,
            StatusFlag::Parity => RflagsBits::PF,
        };
        let mut sets = Vec::new();
        for (one, value) in new {
            if !self.needs(bit(one)) {
                continue;
            }
            let old =
                || flag(one, self.flags).ok_or_else(|| Refusal::new("nobody knows what set these flags"));
            let value = match value {
                Some(value) => value,
                None => old()?,
            };
            sets.push((one, value));
        }
        // All are computed before the first is changed.
        let kept: Vec<(StatusFlag, VarExpr)> =
            sets.into_iter().map(|(one, value)| (one, self.kept(value))).collect();
        for (one, value) in kept {
            self.set(Var::Flag(one), value);
        }
        self.flags = Flags::Single;
        Ok(())
    }

    fn condition(&self) -> Result<VarExpr> {
        use ConditionCode as Cc;
        let (which, set) = match self.i.condition_code() {
            Cc::o => (JumpCondition::Overflow, true),
            Cc::no => (JumpCondition::Overflow, false),
            Cc::b => (JumpCondition::Below, true),
            Cc::ae => (JumpCondition::Below, false),
            Cc::e => (JumpCondition::Equal, true),
            Cc::ne => (JumpCondition::Equal, false),
            Cc::be => (JumpCondition::BelowOrEqual, true),
            Cc::a => (JumpCondition::BelowOrEqual, false),
            Cc::s => (JumpCondition::Sign, true),
            Cc::ns => (JumpCondition::Sign, false),
            Cc::p => (JumpCondition::Parity, true),
            Cc::np => (JumpCondition::Parity, false),
            Cc::l => (JumpCondition::Less, true),
            Cc::ge => (JumpCondition::Less, false),
            Cc::le => (JumpCondition::LessOrEqual, true),
            Cc::g => (JumpCondition::LessOrEqual, false),
            Cc::None => return Err(self.uncovered()),
        };
        let term = condition(which, self.flags);
        let term =
            term.ok_or_else(|| Refusal::new("nobody knows what set the flags that are looked at here"))?;
        Ok(if set { term } else { negated(term) })
    }

    fn push(&mut self, value: VarExpr) {
        let below = sub(gpr(RSP), constant(8));
        self.store(below.clone(), value, 8);
        self.set(Var::Gpr(RSP), below);
    }

    fn pop(&mut self) -> VarExpr {
        let value = self.load(gpr(RSP), 8);
        self.set(Var::Gpr(RSP), add(gpr(RSP), constant(8)));
        value
    }

    fn instruction(&mut self) -> Result<()> {
        use Mnemonic as M;
        let i = self.i;
        match i.mnemonic() {
            M::Nop
            | M::Endbr64
            | M::Pause
            | M::Lfence
            | M::Sfence
            | M::Prefetcht0
            | M::Prefetcht1
            | M::Prefetcht2
            | M::Prefetchnta
            | M::Prefetchw
            | M::Cld => {}
            M::Mfence => self.ops.push(MicroOp::Fence),
            M::Mov => {
                let bits = self.bits(0);
                let value = self.read(1, bits)?;
                self.write(0, value)?;
            }
            M::Movzx => {
                let value = self.read(1, self.bits(1))?;
                self.write(0, value)?;
            }
            M::Movsx | M::Movsxd => {
                let from = self.bits(1);
                let value = self.read(1, from)?;
                self.write(0, cut(signed(value, from), self.bits(0)))?;
            }
            M::Lea => self.write(0, cut(self.effective(), self.bits(0)))?,
            M::Add | M::Sub | M::Cmp | M::And | M::Or | M::Xor | M::Test => self.two()?,
            M::Adc | M::Sbb => self.with_carry(i.mnemonic() == M::Adc)?,
            M::Inc | M::Dec | M::Neg | M::Not => self.one()?,
            M::Imul => self.imul()?,
            M::Mul => self.mul()?,
            M::Div => self.div()?,
            M::Idiv => self.idiv()?,
            M::Shl | M::Sal | M::Shr | M::Sar | M::Rol | M::Ror => self.shift()?,
            M::Shld | M::Shrd => self.double_shift()?,
            M::Bt | M::Bts | M::Btr | M::Btc => self.bit()?,
            M::Bsf | M::Bsr | M::Tzcnt | M::Lzcnt | M::Popcnt => self.count()?,
            M::Bswap => self.bswap()?,
            M::Xchg => self.xchg()?,
            M::Xadd => self.xadd()?,
            M::Cmpxchg => self.cmpxchg()?,
            M::Cmpxchg8b => self.cmpxchg8b()?,
            M::Push => {
                let value = match i.op_kind(0) {
                    OpKind::Memory | OpKind::Register => self.read(0, 64)?,
                    _ => constant(i.immediate(0)),
                };
                self.push(value);
            }
            M::Pop => {
                let value = self.pop();
                self.write(0, value)?;
            }
            M::Leave => {
                self.set(Var::Gpr(RSP), gpr(RBP));
                let value = self.pop();
                self.set(Var::Gpr(RBP), value);
            }
            M::Call => {
                let target = self.target()?;
                self.push(constant(i.next_ip()));
                self.ops.push(MicroOp::Call(target));
                self.flags = Flags::Lost;
            }
            M::Ret => {
                let back = self.pop();
                let to = self.kept(back);
                if i.op_count() > 0 && is_immediate(i.op_kind(0)) {
                    self.set(Var::Gpr(RSP), add(gpr(RSP), constant(i.immediate(0))));
                }
                self.ops.push(MicroOp::Return(to));
                self.flags = Flags::Lost;
            }
            M::Jmp => {
                let target = self.target()?;
                self.ops.push(MicroOp::Jump(target));
            }
            M::Cwde => self.set(Var::Gpr(RAX), cut(signed(cut(gpr(RAX), 16), 16), 32)),
            M::Cdqe => self.set(Var::Gpr(RAX), signed(cut(gpr(RAX), 32), 32)),
            M::Cbw => {
                let value = cut(signed(cut(gpr(RAX), 8), 8), 16);
                self.ops.push(MicroOp::SetLow { var: Var::Gpr(RAX), bits: 16, value });
            }
            M::Cwd => {
                let value = cut(binary(BinOp::Shr, signed(cut(gpr(RAX), 16), 16), constant(15)), 16);
                self.ops.push(MicroOp::SetLow { var: Var::Gpr(RDX), bits: 16, value });
            }
            M::Cdq => {
                let value = cut(binary(BinOp::Shr, signed(cut(gpr(RAX), 32), 32), constant(31)), 32);
                self.set(Var::Gpr(RDX), value);
            }
            M::Cqo => self.set(Var::Gpr(RDX), binary(BinOp::Shr, gpr(RAX), constant(63))),
            M::Stosb | M::Stosd | M::Stosw | M::Stosq => self.stos()?,
            M::Movsb | M::Movsw | M::Movsd | M::Movsq if i.is_string_instruction() => self.movs()?,
            M::Ud2 | M::Int3 | M::Hlt | M::Ud1 | M::Int => {
                let what = format!("`{}` is reached", format!("{:?}", i.mnemonic()).to_lowercase());
                self.ops.push(MicroOp::Fail(what));
            }
            _ if i.is_jcc_short_or_near() => {
                let condition = self.condition()?;
                let past = self.skip_if(negated(condition));
                self.ops.push(MicroOp::Jump(constant(i.near_branch_target())));
                self.here(past);
            }
            M::Jrcxz | M::Jecxz => {
                let bits = if i.mnemonic() == M::Jrcxz { 64 } else { 32 };
                let past = self.skip_if(ne(cut(gpr(RCX), bits), constant(0)));
                self.ops.push(MicroOp::Jump(constant(i.near_branch_target())));
                self.here(past);
            }
            _ if i.is_setcc() => {
                let value = self.condition()?;
                self.write(0, value)?;
            }
            _ if i.is_cmovcc() => self.cmov()?,
            _ => vector::lift(self)?,
        }
        Ok(())
    }

    fn target(&mut self) -> Result<VarExpr> {
        match self.i.op_kind(0) {
            OpKind::NearBranch64 | OpKind::NearBranch32 => Ok(constant(self.i.near_branch_target())),
            _ => {
                let target = self.read(0, 64)?;
                Ok(self.kept(target))
            }
        }
    }

    /// Is the same register given twice?
    fn same_register(&self) -> bool {
        let i = &self.i;
        let both = i.op_kind(0) == OpKind::Register && i.op_kind(1) == OpKind::Register;
        both && i.op_register(0) == i.op_register(1)
    }

    /// Reads the place that the first operand names, has `change` make the new value of the old one, and writes it
    /// back; with a lock in one step. What comes back is the old value.
    fn update(&mut self, bits: u8, change: impl FnOnce(VarExpr) -> VarExpr) -> Result<VarExpr> {
        if self.is_memory(0) && self.i.has_lock_prefix() {
            self.segment()?;
            let dst = self.temp();
            let new = New::Update(change(var(Var::Old)));
            self.ops.push(MicroOp::Rmw { dst, addr: self.address(), bytes: bits / 8, new });
            return Ok(var(dst));
        }
        let old = self.read(0, bits)?;
        let old = self.kept(old);
        let new = change(old.clone());
        self.write(0, new)?;
        Ok(old)
    }

    fn two(&mut self) -> Result<()> {
        use Mnemonic as M;
        let (bits, which) = (self.bits(0), self.i.mnemonic());
        if self.same_register() && matches!(which, M::Xor | M::Sub) {
            self.write(0, constant(0))?;
            self.flags_of_result(constant(0), bits);
            return Ok(());
        }
        let right = self.read(1, bits)?;
        match which {
            M::Cmp => {
                let left = self.read(0, bits)?;
                self.flags_of(left, right, Flags::Sub(bits));
            }
            M::Test => {
                let left = self.read(0, bits)?;
                let result = if self.same_register() { left } else { and(left, right) };
                self.flags_of_result(result, bits);
            }
            M::Add | M::Sub => {
                let right = self.kept(right);
                let how = if which == M::Add { Flags::Add(bits) } else { Flags::Sub(bits) };
                let op = if which == M::Add { BinOp::Add } else { BinOp::Sub };
                let old = self.update(bits, |old| cut(binary(op, old, right.clone()), bits))?;
                self.flags_of(old, right, how);
            }
            _ => {
                let right = self.kept(right);
                let op = match which {
                    M::And => BinOp::BitAnd,
                    M::Or => BinOp::BitOr,
                    _ => BinOp::BitXor,
                };
                let old = self.update(bits, |old| binary(op, old, right.clone()))?;
                self.flags_of_result(binary(op, old, right), bits);
            }
        }
        Ok(())
    }

    fn with_carry(&mut self, adds: bool) -> Result<()> {
        let bits = self.bits(0);
        let lost = || Refusal::new("nobody knows what set the carry flag");
        let carry = flag(StatusFlag::Carry, self.flags).ok_or_else(lost)?;
        let carry = self.kept(carry);
        if !adds && self.same_register() && self.needed == 0 {
            return self.write(0, cut(sub(constant(0), carry), bits));
        }
        let right = self.read(1, bits)?;
        let right = self.kept(right);
        let op = if adds { BinOp::Add } else { BinOp::Sub };
        let new = |old| cut(binary(op, binary(op, old, right.clone()), carry.clone()), bits);
        let old = self.update(bits, new)?;
        let result = self.kept(new(old.clone()));
        let carried = if adds {
            below(result.clone(), old.clone(), bits)
        } else {
            below(old.clone(), right.clone(), bits)
        };
        let carried =
            either(carried, both(carry, eq(if adds { result.clone() } else { right.clone() }, old.clone())));
        let overflow = match adds {
            true => and(xor(old.clone(), result.clone()), xor(right, result.clone())),
            false => and(xor(old.clone(), right), xor(old, result.clone())),
        };
        self.single([
            (StatusFlag::Carry, Some(carried)),
            (StatusFlag::Zero, Some(eq(result.clone(), constant(0)))),
            (StatusFlag::Sign, Some(sign(result.clone(), bits))),
            (StatusFlag::Overflow, Some(sign(overflow, bits))),
            (StatusFlag::Parity, Some(parity(result))),
        ])
    }

    fn one(&mut self) -> Result<()> {
        use Mnemonic as M;
        let (bits, which) = (self.bits(0), self.i.mnemonic());
        let change = |old: VarExpr| match which {
            M::Inc => cut(add(old, constant(1)), bits),
            M::Dec => cut(sub(old, constant(1)), bits),
            M::Neg => cut(sub(constant(0), old), bits),
            _ => xor(old, constant(mask(bits))),
        };
        let carry = if self.needs(RflagsBits::CF) { flag(StatusFlag::Carry, self.flags) } else { None };
        let keeps = matches!(which, M::Inc | M::Dec) && self.needs(RflagsBits::CF);
        let carry = match carry {
            Some(carry) if keeps => Some(self.kept(carry)),
            None if keeps => return Err(Refusal::new("nobody knows what set the carry flag")),
            _ => None,
        };
        let old = self.update(bits, change)?;
        match which {
            M::Not => {}
            M::Neg => self.flags_of(constant(0), old, Flags::Sub(bits)),
            _ => {
                let how = if which == M::Inc { Flags::Add(bits) } else { Flags::Sub(bits) };
                self.flags_of(old, constant(1), how);
                if let Some(carry) = carry {
                    let of = |f| flag(f, how);
                    self.single([
                        (StatusFlag::Carry, Some(carry)),
                        (StatusFlag::Zero, of(StatusFlag::Zero)),
                        (StatusFlag::Sign, of(StatusFlag::Sign)),
                        (StatusFlag::Overflow, of(StatusFlag::Overflow)),
                        (StatusFlag::Parity, of(StatusFlag::Parity)),
                    ])?;
                }
            }
        }
        Ok(())
    }

    /// The upper half of a product of two numbers of 64 bits without sign, from products of halves.
    fn high(&mut self, a: VarExpr, b: VarExpr) -> VarExpr {
        let (low, high) = (|x: VarExpr| cut(x, 32), |x: VarExpr| shr(x, constant(32), 64));
        let times = |x, y| binary(BinOp::Mul, x, y);
        let (a0, a1) = (self.kept(low(a.clone())), self.kept(high(a)));
        let (b0, b1) = (self.kept(low(b.clone())), self.kept(high(b)));
        let t = self.kept(times(a0.clone(), b0.clone()));
        let u = self.kept(add(times(a1.clone(), b0), high(t)));
        let v = self.kept(add(times(a0, b1.clone()), low(u.clone())));
        add(add(times(a1, b1), high(u)), high(v))
    }

    fn high_signed(&mut self, a: VarExpr, b: VarExpr) -> VarExpr {
        let high = self.high(a.clone(), b.clone());
        let less = |x: VarExpr, y: VarExpr| binary(BinOp::Mul, binary(BinOp::Lt, x, constant(0)), y);
        sub(sub(high, less(a.clone(), b.clone())), less(b, a))
    }

    fn carry_and_overflow(&mut self, set: VarExpr) -> Result<()> {
        let set = self.kept(set);
        // The other flags are undefined; somebody who looks at them all the same gets some value.
        let none = || Some(constant(0));
        self.single([
            (StatusFlag::Carry, Some(set.clone())),
            (StatusFlag::Zero, none()),
            (StatusFlag::Sign, none()),
            (StatusFlag::Overflow, Some(set)),
            (StatusFlag::Parity, none()),
        ])
    }

    fn imul(&mut self) -> Result<()> {
        if self.i.op_count() == 1 {
            return self.multiply(true);
        }
        let bits = self.bits(0);
        let (first, second) = if self.i.op_count() == 3 { (1, 2) } else { (0, 1) };
        let a = self.read(first, bits)?;
        let b = self.read(second, bits)?;
        let (a, b) = (self.kept(a), self.kept(b));
        let result = cut(binary(BinOp::Mul, a.clone(), b.clone()), bits);
        if !self.needs(RflagsBits::CF | RflagsBits::OF) {
            self.flags = Flags::Lost;
            return self.write(0, result);
        }
        let result = self.kept(result);
        let set = match bits {
            64 => {
                let high = self.high_signed(a, b);
                ne(high, binary(BinOp::Shr, result.clone(), constant(63)))
            }
            _ => ne(binary(BinOp::Mul, signed(a, bits), signed(b, bits)), signed(result.clone(), bits)),
        };
        self.carry_and_overflow(set)?;
        self.write(0, result)
    }

    fn mul(&mut self) -> Result<()> {
        self.multiply(false)
    }

    /// rdx and rax get the product of rax and the operand.
    fn multiply(&mut self, is_signed: bool) -> Result<()> {
        let bits = self.bits(0);
        let a = self.read(0, bits)?;
        let a = self.kept(a);
        let b = self.kept(cut(gpr(RAX), bits));
        let (low, high) = if bits == 64 {
            let low = self.kept(binary(BinOp::Mul, a.clone(), b.clone()));
            let high = if is_signed { self.high_signed(a, b) } else { self.high(a, b) };
            (low, self.kept(high))
        } else {
            let wide = |x: VarExpr| if is_signed { signed(x, bits) } else { x };
            let product = self.kept(binary(BinOp::Mul, wide(a), wide(b)));
            let high = cut(shr(product.clone(), constant(u64::from(bits)), 64), bits);
            (self.kept(cut(product, bits)), self.kept(high))
        };
        let spare = match is_signed {
            true => cut(binary(BinOp::Shr, signed(low.clone(), bits), constant(63)), bits),
            false => constant(0),
        };
        if self.needs(RflagsBits::CF | RflagsBits::OF) {
            self.carry_and_overflow(ne(high.clone(), spare))?;
        } else {
            self.flags = Flags::Lost;
        }
        self.write_pair(bits, low, high);
        Ok(())
    }

    /// The halves of a result to rax and rdx, or to ax alone.
    fn write_pair(&mut self, bits: u8, low: VarExpr, high: VarExpr) {
        if bits == 8 {
            let value = or(low, shl(high, constant(8)));
            self.ops.push(MicroOp::SetLow { var: Var::Gpr(RAX), bits: 16, value });
            return;
        }
        self.write_part(RegisterPart { number: RAX, bits, high: false }, low);
        self.write_part(RegisterPart { number: RDX, bits, high: false }, high);
    }

    fn dividend(&mut self, bits: u8) -> (VarExpr, VarExpr) {
        match bits {
            8 => (self.kept(shr(cut(gpr(RAX), 16), constant(8), 16)), self.kept(cut(gpr(RAX), 8))),
            _ => (self.kept(cut(gpr(RDX), bits)), self.kept(cut(gpr(RAX), bits))),
        }
    }

    fn div(&mut self) -> Result<()> {
        let bits = self.bits(0);
        let divisor = self.read(0, bits)?;
        let d = self.kept(divisor);
        let (high, low) = self.dividend(bits);
        self.fail_if(eq(d.clone(), constant(0)), "a division by zero");
        let (quotient, remainder) = if bits == 64 {
            self.refuse_if(ne(high, constant(0)), "a division of 128 bits is not covered");
            self.unsigned_division(low, d)
        } else {
            self.fail_if(
                negated(below(high.clone(), d.clone(), bits)),
                "a quotient is too large for its register",
            );
            // In two steps of half the width, so that nothing is larger than 63 bits.
            let half = u64::from(bits / 2);
            let first = or(shl(high, constant(half)), shr(low.clone(), constant(half), bits));
            let first = self.kept(first);
            let rest = binary(BinOp::Rem, first.clone(), d.clone());
            let second = self.kept(or(shl(rest, constant(half)), cut(low, bits / 2)));
            let q = or(
                shl(binary(BinOp::Div, first, d.clone()), constant(half)),
                binary(BinOp::Div, second.clone(), d.clone()),
            );
            (self.kept(q), self.kept(binary(BinOp::Rem, second, d)))
        };
        self.flags = Flags::Lost;
        self.write_pair(bits, quotient, remainder);
        Ok(())
    }

    /// Of numbers of 64 bits, by halving the first once.
    fn unsigned_division(&mut self, n: VarExpr, d: VarExpr) -> (VarExpr, VarExpr) {
        let large = binary(BinOp::Lt, d.clone(), constant(0));
        let half = shr(n.clone(), constant(1), 64);
        // A divisor with its highest bit set goes into any number once at most.
        let small = add(
            binary(BinOp::Mul, large.clone(), constant(1)),
            binary(BinOp::Mul, negated(large.clone()), d.clone()),
        );
        let estimate = shl(binary(BinOp::Div, half, small), constant(1));
        let q = self.kept(binary(BinOp::Mul, negated(large), estimate));
        let r = self.kept(sub(n, binary(BinOp::Mul, q.clone(), d.clone())));
        let more = self.kept(negated(below(r.clone(), d.clone(), 64)));
        (self.kept(add(q, more.clone())), self.kept(sub(r, binary(BinOp::Mul, more, d))))
    }

    fn idiv(&mut self) -> Result<()> {
        let bits = self.bits(0);
        let divisor = self.read(0, bits)?;
        let d = self.kept(signed(divisor, bits));
        let (high, low) = self.dividend(bits);
        self.fail_if(eq(d.clone(), constant(0)), "a division by zero");
        let n = if bits == 64 {
            let same = eq(high, binary(BinOp::Shr, low.clone(), constant(63)));
            self.refuse_if(negated(same), "a division of 128 bits is not covered");
            let least = both(eq(low.clone(), VarExpr::Const(i64::MIN)), eq(d.clone(), VarExpr::Const(-1)));
            self.fail_if(least, "a quotient is too large for its register");
            low
        } else {
            let places = constant(u64::from(bits));
            self.kept(signed(or(shl(high, places), low), 2 * bits))
        };
        let q = self.kept(binary(BinOp::Div, n.clone(), d.clone()));
        let r = self.kept(binary(BinOp::Rem, n, d));
        if bits < 64 {
            self.fail_if(ne(signed(q.clone(), bits), q.clone()), "a quotient is too large for its register");
        }
        self.flags = Flags::Lost;
        self.write_pair(bits, cut(q, bits), cut(r, bits));
        Ok(())
    }

    fn shift_count(&mut self, operand: u32, bits: u8) -> Result<VarExpr> {
        let count = match self.i.op_count() > operand {
            true => self.read(operand, 8)?,
            false => constant(1),
        };
        Ok(and(count, constant(if bits == 64 { 63 } else { 31 })))
    }

    fn shift(&mut self) -> Result<()> {
        use Mnemonic as M;
        let (bits, which) = (self.bits(0), self.i.mnemonic());
        let count = self.shift_count(1, bits)?;
        if count == constant(0) {
            return self.touch(bits);
        }
        let count = if matches!(count, VarExpr::Const(_)) { count } else { self.kept(count) };
        let varies = !matches!(count, VarExpr::Const(_));
        let width = constant(u64::from(bits));
        let rotates = matches!(which, M::Rol | M::Ror);
        let places = match rotates && bits < 32 {
            true => and(count.clone(), constant(u64::from(bits) - 1)),
            false => count.clone(),
        };
        let change = |old: VarExpr| match which {
            M::Shl | M::Sal => cut(shl(old, count.clone()), bits),
            M::Shr => shr(old, count.clone(), bits),
            M::Sar => cut(binary(BinOp::Shr, signed(old, bits), count.clone()), bits),
            M::Rol | M::Ror => {
                let back = and(sub(width.clone(), places.clone()), constant(u64::from(bits) - 1));
                let (left, right) =
                    if which == M::Rol { (places.clone(), back) } else { (back, places.clone()) };
                cut(or(shl(old.clone(), left), shr(old, right, bits)), bits)
            }
            _ => unreachable!("no other instruction shifts"),
        };
        let flags_before = self.flags;
        if varies && self.needed != 0 {
            // By zero places a shift leaves all flags alone.
            self.single(
                [
                    StatusFlag::Carry,
                    StatusFlag::Zero,
                    StatusFlag::Sign,
                    StatusFlag::Overflow,
                    StatusFlag::Parity,
                ]
                .map(|f| (f, Some(flag(f, flags_before).unwrap_or(var(Var::Temp(u8::MAX - 2)))))),
            )?;
        }
        let old = self.update(bits, change)?;
        let result = change(old.clone());
        let done = (varies && self.needed != 0).then(|| self.skip_if(eq(count.clone(), constant(0))));
        if self.needed == 0 {
            self.flags = Flags::Lost;
        } else if !varies && !rotates && !self.needs(RflagsBits::CF | RflagsBits::OF) {
            self.flags_of_result(result, bits);
        } else {
            let result = self.kept(result);
            let last = sub(count.clone(), constant(1));
            let (carry, overflow) = match which {
                M::Shl | M::Sal => {
                    let out = and(shr(shl(old, last), sub(width, constant(1)), bits.max(33)), constant(1));
                    let out = self.kept(out);
                    (out.clone(), xor(sign(result.clone(), bits), out))
                }
                M::Shr => (and(shr(old.clone(), last, bits), constant(1)), sign(old, bits)),
                M::Sar => (and(binary(BinOp::Shr, signed(old, bits), last), constant(1)), constant(0)),
                M::Rol => {
                    let out = and(result.clone(), constant(1));
                    (out.clone(), xor(sign(result.clone(), bits), out))
                }
                _ => {
                    let top = sign(result.clone(), bits);
                    let second = and(shr(result.clone(), constant(u64::from(bits) - 2), bits), constant(1));
                    (top.clone(), xor(top, second))
                }
            };
            let of_result = |value| if rotates { None } else { Some(value) };
            self.single([
                (StatusFlag::Carry, Some(carry)),
                (StatusFlag::Zero, of_result(eq(result.clone(), constant(0)))),
                (StatusFlag::Sign, of_result(sign(result.clone(), bits))),
                (StatusFlag::Overflow, Some(overflow)),
                (StatusFlag::Parity, of_result(parity(result))),
            ])?;
        }
        if let Some(done) = done {
            self.here(done);
        }
        Ok(())
    }

    /// A register of 32 bits loses its upper half even if nothing else changes.
    fn touch(&mut self, bits: u8) -> Result<()> {
        let old = self.read(0, bits)?;
        if bits == 32 && !self.is_memory(0) { self.write(0, old) } else { Ok(()) }
    }

    fn double_shift(&mut self) -> Result<()> {
        let (bits, left) = (self.bits(0), self.i.mnemonic() == Mnemonic::Shld);
        if self.needed != 0 || bits == 16 {
            return Err(self.uncovered());
        }
        let count = self.shift_count(2, bits)?;
        let count = self.kept(count);
        let filler = self.read(1, bits)?;
        let filler = self.kept(filler);
        let last = constant(u64::from(bits) - 1);
        let rest = sub(last, count.clone());
        self.update(bits, |old| {
            // By one place less and one more, since a shift by all places is one by none.
            let (moved, filled) = match left {
                true => (shl(old, count.clone()), shr(shr(filler, rest, bits), constant(1), bits)),
                false => (shr(old, count.clone(), bits), shl(shl(filler, rest), constant(1))),
            };
            cut(or(moved, filled), bits)
        })?;
        self.flags = Flags::Lost;
        Ok(())
    }

    fn bit(&mut self) -> Result<()> {
        use Mnemonic as M;
        let (bits, which) = (self.bits(0), self.i.mnemonic());
        let of_register = self.i.op_kind(1) == OpKind::Register;
        if self.is_memory(0) && of_register {
            return Err(self.uncovered());
        }
        let number = self.read(1, bits)?;
        let number = self.kept(and(number, constant(u64::from(bits) - 1)));
        let one = shl(constant(1), number.clone());
        let old = match which {
            M::Bt => self.read(0, bits)?,
            _ => self.update(bits, |old| match which {
                M::Bts => or(old, one),
                M::Btr => and(old, not(one)),
                _ => xor(old, one),
            })?,
        };
        let carry = and(shr(old, number, bits), constant(1));
        if self.needed == RflagsBits::CF || self.flags != Flags::Lost {
            self.single([
                (StatusFlag::Carry, Some(carry)),
                (StatusFlag::Zero, None),
                (StatusFlag::Sign, None),
                (StatusFlag::Overflow, None),
                (StatusFlag::Parity, None),
            ])
        } else {
            self.flags = Flags::Lost;
            Ok(())
        }
    }

    fn count(&mut self) -> Result<()> {
        use Mnemonic as M;
        let (bits, which) = (self.bits(0), self.i.mnemonic());
        let source = self.read(1, bits)?;
        let source = self.kept(source);
        let width = u64::from(bits);
        let zero = self.kept(eq(source.clone(), constant(0)));
        let result = match which {
            M::Popcnt => self.ones(source.clone()),
            M::Tzcnt | M::Bsf => {
                let trailing = and(not(source.clone()), sub(source.clone(), constant(1)));
                self.ones(cut(trailing, bits))
            }
            _ => {
                let mut smeared = source.clone();
                for n in [1, 2, 4, 8, 16, 32] {
                    if n < width {
                        smeared = self.kept(or(smeared.clone(), shr(smeared, constant(n), bits)));
                    }
                }
                let bits_used = self.ones(smeared);
                match which {
                    M::Lzcnt => sub(constant(width), bits_used),
                    _ => sub(bits_used, constant(1)),
                }
            }
        };
        let result = self.kept(result);
        match which {
            M::Bsf | M::Bsr => {
                // Without a bit the destination keeps its value, as both makers' processors do it.
                let past = self.skip_if(zero.clone());
                self.write(0, result.clone())?;
                self.here(past);
            }
            _ => self.write(0, result.clone())?,
        }
        let carry = if which == M::Popcnt { constant(0) } else { zero.clone() };
        let zero = match which {
            M::Tzcnt | M::Lzcnt => eq(result, constant(0)),
            _ => zero,
        };
        let none = || Some(constant(0));
        self.single([
            (StatusFlag::Carry, Some(carry)),
            (StatusFlag::Zero, Some(zero)),
            (StatusFlag::Sign, none()),
            (StatusFlag::Overflow, none()),
            (StatusFlag::Parity, none()),
        ])
    }

    /// How many bits are set.
    fn ones(&mut self, a: VarExpr) -> VarExpr {
        let a = self.kept(a);
        let pairs = sub(a.clone(), and(shr(a, constant(1), 64), constant(0x5555_5555_5555_5555)));
        let pairs = self.kept(pairs);
        let three = constant(0x3333_3333_3333_3333);
        let fours = add(and(pairs.clone(), three.clone()), and(shr(pairs, constant(2), 64), three));
        let fours = self.kept(fours);
        let bytes = and(add(fours.clone(), shr(fours, constant(4), 64)), constant(0x0f0f_0f0f_0f0f_0f0f));
        shr(binary(BinOp::Mul, bytes, constant(0x0101_0101_0101_0101)), constant(56), 64)
    }

    fn bswap(&mut self) -> Result<()> {
        let bits = self.bits(0);
        let old = self.read(0, bits)?;
        let old = self.kept(old);
        let bytes = u64::from(bits / 8);
        let place =
            |n: u64| shl(cut(shr(old.clone(), constant(8 * n), bits), 8), constant(8 * (bytes - 1 - n)));
        let swapped = (0..bytes).map(place).reduce(or).expect("a register has bytes");
        self.write(0, swapped)
    }

    fn xchg(&mut self) -> Result<()> {
        let bits = self.bits(0);
        if !self.is_memory(0) && !self.is_memory(1) {
            let (a, b) = (self.read(0, bits)?, self.read(1, bits)?);
            let (a, b) = (self.kept(a), self.kept(b));
            self.write(0, b)?;
            return self.write(1, a);
        }
        self.segment()?;
        let register = if self.is_memory(0) { 1 } else { 0 };
        let value = self.read(register, bits)?;
        let dst = self.temp();
        self.ops.push(MicroOp::Rmw { dst, addr: self.address(), bytes: bits / 8, new: New::Swap(value) });
        self.write(register, var(dst))
    }

    fn xadd(&mut self) -> Result<()> {
        let bits = self.bits(0);
        let right = self.read(1, bits)?;
        let right = self.kept(right);
        let same = self.same_register();
        let old = self.update(bits, |old| cut(add(old, right.clone()), bits))?;
        if !same {
            self.write(1, old.clone())?;
        }
        self.flags_of(old, right, Flags::Add(bits));
        Ok(())
    }

    fn cmpxchg(&mut self) -> Result<()> {
        let bits = self.bits(0);
        let expected = self.kept(cut(gpr(RAX), bits));
        let new = self.read(1, bits)?;
        let new = self.kept(new);
        let accumulator = RegisterPart { number: RAX, bits, high: false };
        if self.is_memory(0) && self.i.has_lock_prefix() {
            self.segment()?;
            let dst = self.temp();
            let cas = New::Cas { old: expected.clone(), new };
            self.ops.push(MicroOp::Rmw { dst, addr: self.address(), bytes: bits / 8, new: cas });
            self.flags_of(expected.clone(), var(dst), Flags::Sub(bits));
            self.accumulate(accumulator, expected, var(dst));
            return Ok(());
        }
        let old = self.read(0, bits)?;
        let old = self.kept(old);
        self.flags_of(expected.clone(), old.clone(), Flags::Sub(bits));
        let equal = self.skip_if(eq(expected.clone(), old.clone()));
        if self.is_memory(0) {
            // It is written in any case.
            self.write(0, old.clone())?;
        }
        self.write_part(accumulator, old);
        self.ops.push(MicroOp::Goto(0));
        let done = self.ops.len() - 1;
        self.here(equal);
        self.write(0, new)?;
        self.here(done);
        Ok(())
    }

    /// The accumulator gets what was found, unless it was what was expected.
    fn accumulate(&mut self, accumulator: RegisterPart, expected: VarExpr, found: VarExpr) {
        if accumulator.bits != 32 {
            // Then it would not change anything.
            return self.write_part(accumulator, found);
        }
        let whole = cut(gpr(accumulator.number), 64);
        let upper = and(whole, constant(!mask(32)));
        let kept = binary(BinOp::Mul, eq(expected, found.clone()), upper);
        self.ops.push(MicroOp::Set(Var::Gpr(accumulator.number), or(found, kept)));
    }

    fn cmpxchg8b(&mut self) -> Result<()> {
        if !self.i.has_lock_prefix() {
            return Err(self.uncovered());
        }
        self.segment()?;
        let pair = |high: u8, low: u8| or(shl(cut(gpr(high), 32), constant(32)), cut(gpr(low), 32));
        let expected = self.kept(pair(RDX, RAX));
        let new = self.kept(pair(3, RCX));
        let dst = self.temp();
        let cas = New::Cas { old: expected.clone(), new };
        self.ops.push(MicroOp::Rmw { dst, addr: self.address(), bytes: 8, new: cas });
        let equal = self.kept(eq(expected, var(dst)));
        self.single([
            (StatusFlag::Carry, None),
            (StatusFlag::Zero, Some(equal.clone())),
            (StatusFlag::Sign, None),
            (StatusFlag::Overflow, None),
            (StatusFlag::Parity, None),
        ])?;
        let done = self.skip_if(equal);
        self.set(Var::Gpr(RAX), cut(var(dst), 32));
        self.set(Var::Gpr(RDX), shr(var(dst), constant(32), 64));
        self.here(done);
        Ok(())
    }

    fn cmov(&mut self) -> Result<()> {
        let bits = self.bits(0);
        let value = self.read(1, bits)?;
        let value = self.kept(value);
        let condition = self.condition()?;
        let taken = self.skip_if(condition);
        if bits == 32 {
            self.touch(32)?;
        }
        self.ops.push(MicroOp::Goto(0));
        let done = self.ops.len() - 1;
        self.here(taken);
        self.write(0, value)?;
        self.here(done);
        Ok(())
    }

    fn stos(&mut self) -> Result<()> {
        use Mnemonic as M;
        let bytes: u8 = match self.i.mnemonic() {
            M::Stosb => 1,
            M::Stosw => 2,
            M::Stosd => 4,
            _ => 8,
        };
        let value = self.kept(cut(gpr(RAX), 8 * bytes));
        self.repeated(bytes, |lift| lift.store(gpr(RDI), value.clone(), bytes), &[RDI]);
        Ok(())
    }

    fn movs(&mut self) -> Result<()> {
        use Mnemonic as M;
        let bytes: u8 = match self.i.mnemonic() {
            M::Movsb => 1,
            M::Movsw => 2,
            M::Movsd => 4,
            _ => 8,
        };
        let step = |lift: &mut Lift| {
            let value = lift.load(gpr(RSI), bytes);
            lift.store(gpr(RDI), value, bytes);
        };
        self.repeated(bytes, step, &[RDI, RSI]);
        Ok(())
    }

    /// Once, or as often as rcx says.
    fn repeated(&mut self, bytes: u8, step: impl Fn(&mut Lift), moved: &[u8]) {
        let repeats = self.i.has_rep_prefix() || self.i.has_repne_prefix();
        let start = self.ops.len() as OpLabel;
        let end = repeats.then(|| self.skip_if(eq(gpr(RCX), constant(0))));
        step(self);
        for register in moved {
            self.set(Var::Gpr(*register), add(gpr(*register), constant(u64::from(bytes))));
        }
        if let Some(end) = end {
            self.set(Var::Gpr(RCX), sub(gpr(RCX), constant(1)));
            self.ops.push(MicroOp::Goto(start));
            self.here(end);
        }
    }
}

fn is_immediate(kind: OpKind) -> bool {
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

/// What the decoder's crate does not say by itself.
trait Kinds {
    fn is_setcc(&self) -> bool;
    fn is_cmovcc(&self) -> bool;
    fn is_vex_or_floating(&self) -> bool;
}

impl Kinds for Instruction {
    fn is_setcc(&self) -> bool {
        self.condition_code() != ConditionCode::None && self.op_count() == 1 && !self.is_jcc_short_or_near()
    }

    fn is_cmovcc(&self) -> bool {
        self.condition_code() != ConditionCode::None && self.op_count() == 2
    }

    fn is_vex_or_floating(&self) -> bool {
        (0..self.op_count()).any(|n| {
            let register = self.op_register(n);
            self.op_kind(n) == OpKind::Register && (register.is_vector_register() || register.is_st())
        })
    }
}

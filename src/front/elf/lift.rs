//! What does an x86-64 instruction do? Its operations, written once for running, analysing and translating.
//!
//! Here are the table of instructions and what is short; the files beside it have the rest, each an idea of its own.

mod arithmetic;
mod bits;
mod exchange;
mod operands;

use self::operands::is_immediate;
use super::decode::Code64;
use super::ops::*;
use super::refusal::{Refusal, Result};
use super::vector;
use crate::model::BinOp;
use iced_x86::{ConditionCode, Instruction, Mnemonic, OpKind, RflagsBits};

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
const RBX: u8 = 3;
const RSI: u8 = 6;
const RDI: u8 = 7;

pub(super) struct Lift {
    pub i: Instruction,
    pub ops: Vec<MicroOp>,
    flags: Flags,
    needed: u32,
    temps: u8,
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

    /// An access to each half of a vector in memory, in either order.
    pub(super) fn halves(&mut self, at: &VarExpr, access: impl Fn(usize, VarExpr) -> MicroOp) {
        let half = |n: usize| access(n, add(at.clone(), constant(8 * n as u64)));
        let first = self.ops.len() as OpLabel;
        self.ops.push(MicroOp::Special(Special::Halves { at: at.clone(), backwards: first + 4 }));
        self.ops.extend([half(0), half(1), MicroOp::Goto(first + 6), half(1), half(0)]);
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

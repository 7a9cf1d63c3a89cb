//! What does each instruction do? From x86 to steps of the model.
//!
//! A plain load, store or locked instruction becomes one step; one that reads memory and writes it without `LOCK` a
//! load and a store; locked arithmetic that the model has no step for a `lock` … `unlock` block. Flags are registers
//! of the thread, computed where something in the thread looks at them, in true x86 meaning.
//!
//! A result of fewer than 64 bits has to be cut to its width. Where it can be proved that nothing is ever cut off the
//! cutting is left out ([`Form::Plain`]), and so steps and expressions stay as short as the instructions are; `bound`
//! knows how large values can get.
//! Invariant: every register, cell and intermediate value is `fitted` to its width.

use super::init::Own;
use super::memory::{Memory, fitted};
use super::parse::{Instruction, Mem, Operand, Thread};
use super::x86::{Arch, Bit, Condition, EAX, Flag, One, Op, Part, Shift, Two};
use crate::front::cfg::{self, Action, Label, LabelId, Step};
use crate::front::const_fold;
use crate::front::diagnostics::{INSTRUCTION, Problem, Problems, Reported, Span};
use crate::model::{BinOp, Expr, Instr, Reg, RegExpr, RmwOp, UnOp, Value};
use std::collections::HashMap;

/// How results are cut to their width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Not at all.
    Plain,
    /// Always.
    Exact,
}

/// A register of the model's thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Slot {
    Own(Own),
    /// A value on its way, by its place in the instruction.
    Temporary(u8),
}

/// The registers that a thread has in the model, in the order in which they were first needed.
#[derive(Default)]
pub struct Registers {
    slots: HashMap<Slot, Reg>,
    pub names: Vec<String>,
}

impl Registers {
    fn get(&mut self, slot: Slot, arch: Arch) -> Reg {
        let next = Reg(self.names.len() as u16);
        let reg = *self.slots.entry(slot).or_insert(next);
        if reg == next {
            self.names.push(match slot {
                Slot::Own(Own::Gpr(gpr)) => gpr.name(arch),
                Slot::Own(Own::Flag(flag)) => flag.name().to_string(),
                Slot::Temporary(n) => format!("t{n}"),
            });
        }
        reg
    }

    pub fn own(&mut self, own: Own, arch: Arch) -> Reg {
        self.get(Slot::Own(own), arch)
    }
}

pub struct Lowered {
    pub graph: cfg::Graph,
    /// The widths to which something was not cut, if the form is plain.
    pub uncut: Vec<u32>,
}

/// What all threads have in common.
pub struct Context<'s, 'a> {
    pub source: &'s str,
    pub memory: &'a Memory<'s>,
    pub form: Form,
}

/// One thread. `first` are the values that its registers start with; `flags` those that the test looks at.
pub fn lower<'s>(
    thread: &Thread<'s>,
    first: &[(Own, Value, Span)],
    flags: &[Flag],
    registers: &mut Registers,
    context: &Context<'s, '_>,
    problems: &mut Problems,
) -> Result<Lowered, Reported> {
    let conditions = thread.instructions.iter().filter_map(|i| condition_of(i.op));
    let used = conditions.flat_map(|c| c.flags).chain(flags).copied().collect();
    let mut lowering = Lowering {
        context,
        registers,
        problems,
        used,
        steps: vec![],
        begin: 0,
        uncut: vec![],
        span: Span::default(),
        line: 0,
        text: String::new(),
        labels: &thread.by_label,
    };
    for (own, value, span) in first {
        lowering.at(*span);
        let dst = lowering.registers.own(*own, context.memory.arch);
        lowering.step(Instr::Assign { dst, value: Expr::Const(*value) });
    }
    lowering.first_less(first);
    let mut begins = Vec::with_capacity(thread.instructions.len() + 1);
    for i in &thread.instructions {
        begins.push(lowering.steps.len());
        lowering.problems.spend(INSTRUCTION)?;
        lowering.at(i.span);
        lowering.instruction(i);
    }
    begins.push(lowering.steps.len());
    let label = |(name, at): &(&str, usize)| Label { name: name.to_string(), step: begins[*at] };
    let labels = thread.labels.iter().map(label).collect();
    let (steps, uncut) = (lowering.steps, lowering.uncut);
    Ok(Lowered { graph: cfg::graph(steps, labels, problems)?, uncut })
}

fn condition_of(op: Op) -> Option<Condition> {
    match op {
        Op::Jump(condition) => condition,
        Op::Set(condition) | Op::MoveIf(condition) => Some(condition),
        _ => None,
    }
}

struct Lowering<'s, 'a, 'l> {
    context: &'a Context<'s, 'a>,
    registers: &'a mut Registers,
    problems: &'a mut Problems<'l>,
    /// Flags that something looks at.
    used: Vec<Flag>,
    steps: Vec<Step>,
    /// The first step of the instruction at hand.
    begin: usize,
    uncut: Vec<u32>,
    span: Span,
    line: u32,
    text: String,
    labels: &'a HashMap<&'s str, usize>,
}

impl<'s> Lowering<'s, '_, '_> {
    fn arch(&self) -> Arch {
        self.context.memory.arch
    }

    /// Flags that the test begins with say something about `Less`, too.
    fn first_less(&mut self, first: &[(Own, Value, Span)]) {
        let is_set = |flag| first.iter().any(|(own, value, _)| *own == Own::Flag(flag) && *value != 0);
        if is_set(Flag::Sign) != is_set(Flag::Overflow) {
            self.flags([(Flag::Less, Expr::Const(1))]);
        }
    }

    fn at(&mut self, span: Span) {
        self.span = span;
        self.begin = self.steps.len();
        self.line = self.problems.line(span);
        let text = &self.context.source[span.start..span.end];
        self.text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    }

    fn push(&mut self, action: Action) {
        let continues = self.steps.len() > self.begin;
        self.steps.push(Step { action, line: self.line, text: self.text.clone(), continues });
    }

    fn step(&mut self, instr: Instr) {
        self.push(Action::Do(instr));
    }

    fn assign(&mut self, dst: Reg, value: RegExpr) {
        self.step(Instr::Assign { dst, value });
    }

    fn temporary(&mut self, n: u8) -> Reg {
        let arch = self.arch();
        self.registers.get(Slot::Temporary(n), arch)
    }

    fn whole(&mut self, part: Part) -> Reg {
        let arch = self.arch();
        self.registers.own(Own::Gpr(part.gpr), arch)
    }

    fn flag(&mut self, flag: Flag) -> Reg {
        let arch = self.arch();
        self.registers.own(Own::Flag(flag), arch)
    }

    fn instruction(&mut self, i: &Instruction<'s>) {
        let bits = i.bits.unwrap_or(self.arch().bits());
        let operand = |n: usize| &i.operands[n].0;
        match i.op {
            Op::Nop => self.step(Instr::Nop),
            Op::Fence => self.step(Instr::Fence),
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
            Op::MoveIf(condition) => {
                let value = self.read(operand(1), bits);
                let old = self.read(operand(0), bits);
                let condition = self.condition(condition);
                self.write(operand(0), choose(condition, value, old), bits);
            }
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

    fn jump(&mut self, condition: Option<Condition>, target: &(Operand<'s>, Span)) {
        let (Operand::Label(name), span) = target else { unreachable!("a jump was read with its label") };
        let Some(&label) = self.labels.get(name) else {
            let meant = self.problems.nearest(name, self.labels.keys().copied());
            let unknown = Problem::error(format!("unknown label `{name}`")).at(*span);
            let help = unknown.label("no such label in this thread").suggest(meant);
            self.problems.report(help);
            return;
        };
        match condition {
            None => self.push(Action::Goto(LabelId(label))),
            Some(condition) => {
                let holds = self.condition(condition);
                self.push(Action::If(holds, LabelId(label)));
            }
        }
    }

    /// 1 if the condition holds, else 0.
    fn condition(&mut self, condition: Condition) -> RegExpr {
        let flags: Vec<RegExpr> = condition.flags.iter().map(|f| Expr::Atom(self.flag(*f))).collect();
        let any = flags.into_iter().reduce(|a, b| binary(BinOp::BitOr, a, b)).unwrap_or(Expr::Const(0));
        if condition.set { any } else { unary(UnOp::Not, any) }
    }

    fn mov(&mut self, to: &Operand<'s>, from: &Operand<'s>, bits: u32) {
        match (to, from) {
            (Operand::Reg(part), Operand::Mem(mem)) if self.is_whole(*part) => {
                let addr = self.cell(mem, bits);
                let dst = self.whole(*part);
                self.step(Instr::Load { dst, addr });
            }
            _ => {
                let value = self.read(from, bits);
                self.write(to, value, bits);
            }
        }
    }

    fn extend(&mut self, to: &Operand<'s>, from: &Operand<'s>, bits: u32, signed: bool, narrow: u32) {
        let value = self.read(from, narrow);
        let value =
            if signed { cut(with_sign(value, narrow, self.arch()), bits, self.arch()) } else { value };
        self.write(to, value, bits);
    }

    fn lea(&mut self, to: &Operand<'s>, place: &Operand<'s>, bits: u32) {
        let Operand::Mem(mem) = place else { unreachable!("`width` has looked at the operands") };
        let address = self.address(mem);
        let value = self.wrapped(address, bits);
        self.write(to, value, bits);
    }

    fn xchg(&mut self, a: &Operand<'s>, b: &Operand<'s>, bits: u32) {
        let Operand::Reg(part) = b else { unreachable!("`width` has looked at the operands") };
        let theirs = self.read(b, bits);
        match a {
            Operand::Mem(mem) => {
                let addr = self.cell(mem, bits);
                let direct = self.is_whole(*part);
                let dst = if direct { self.whole(*part) } else { self.temporary(0) };
                self.step(Instr::Rmw { dst, addr, op: RmwOp::Swap(theirs) });
                if !direct {
                    self.write(b, Expr::Atom(dst), bits);
                }
            }
            _ => {
                let kept = self.temporary(0);
                let own = self.read(a, bits);
                self.assign(kept, own);
                self.write(a, theirs, bits);
                self.write(b, Expr::Atom(kept), bits);
            }
        }
    }

    fn xadd(&mut self, to: &Operand<'s>, from: &Operand<'s>, bits: u32, locked: bool) {
        let amount = self.read(from, bits);
        if let Operand::Mem(mem) = to {
            let old = self.modify(mem, bits, locked, Change::Add(amount.clone()));
            self.set_flags(Two::Add, old.clone(), amount, bits);
            return self.write(from, old, bits);
        }
        let old = self.read(to, bits);
        let kept = self.temporary(0);
        let sum = self.wrapped(binary(BinOp::Add, old.clone(), amount.clone()), bits);
        self.set_flags(Two::Add, old.clone(), amount, bits);
        self.assign(kept, sum);
        self.write(from, old, bits);
        self.write(to, Expr::Atom(kept), bits);
    }

    fn cmpxchg(&mut self, to: &Operand<'s>, from: &Operand<'s>, bits: u32, locked: bool) {
        let accumulator = Part { gpr: EAX, bits, shift: 0 };
        let (expected, new) = (self.part(accumulator), self.read(from, bits));
        let kept = self.temporary(0);
        let old: RegExpr = Expr::Atom(kept);
        if let (Operand::Mem(mem), true) = (to, locked) {
            let addr = self.cell(mem, bits);
            self.step(Instr::Rmw { dst: kept, addr, op: RmwOp::Cas { old: expected.clone(), new } });
            self.set_flags(Two::Cmp, expected.clone(), old.clone(), bits);
            let equal = binary(BinOp::Eq, expected, old.clone());
            return self.take(accumulator, equal, old);
        }
        let there = self.read(to, bits);
        if there != old {
            self.assign(kept, there);
        }
        let equal = self.temporary(1);
        self.assign(equal, binary(BinOp::Eq, expected.clone(), old.clone()));
        self.set_flags(Two::Cmp, expected, old.clone(), bits);
        match to {
            // A register that is not what was expected keeps even the upper half that a write would clear.
            Operand::Reg(part) => {
                let (dst, value) = (self.whole(*part), self.inserted(*part, new));
                self.assign(dst, choose(Expr::Atom(equal), value, Expr::Atom(dst)));
            }
            // Memory is written in any case: with what was read, if that is not what was expected.
            _ => self.write(to, choose(Expr::Atom(equal), new, old.clone()), bits),
        }
        self.take(accumulator, Expr::Atom(equal), old);
    }

    /// The accumulator gets what was read; if that is equal, it is not written at all, not even its upper half.
    fn take(&mut self, accumulator: Part, equal: RegExpr, old: RegExpr) {
        let dst = self.whole(accumulator);
        let value = self.inserted(accumulator, old);
        self.assign(dst, choose(equal, Expr::Atom(dst), value));
    }

    fn two(&mut self, two: Two, to: &Operand<'s>, from: &Operand<'s>, bits: u32, locked: bool) {
        let b = self.read(from, bits);
        let change = match two {
            Two::Cmp | Two::Test => {
                let a = self.read(to, bits);
                return self.set_flags(two, a, b, bits);
            }
            // A register is set to 0 like this, whatever was in it.
            Two::Xor | Two::Sub if is_same_register(to, from) => {
                self.set_flags(Two::Cmp, Expr::Const(0), Expr::Const(0), bits);
                return self.write(to, Expr::Const(0), bits);
            }
            Two::Add => Change::Add(b.clone()),
            Two::Sub => Change::Sub(b.clone()),
            Two::And => Change::Bits(BinOp::BitAnd, b.clone()),
            Two::Or => Change::Bits(BinOp::BitOr, b.clone()),
            Two::Xor => Change::Bits(BinOp::BitXor, b.clone()),
        };
        match to {
            Operand::Mem(mem) => {
                let old = self.modify(mem, bits, locked, change);
                self.set_flags(two, old, b, bits);
            }
            _ => {
                let a = self.read(to, bits);
                let result = self.changed(&change, a.clone(), bits);
                self.set_flags(two, a, b, bits);
                self.write(to, result, bits);
            }
        }
    }

    fn one(&mut self, one: One, to: &Operand<'s>, bits: u32, locked: bool) {
        let change = match one {
            One::Inc => Change::Add(Expr::Const(1)),
            One::Dec => Change::Sub(Expr::Const(1)),
            One::Neg => Change::Negate,
            One::Not => Change::Invert,
        };
        let (old, result) = match to {
            Operand::Mem(mem) => (self.modify(mem, bits, locked, change), None),
            _ => {
                let old = self.read(to, bits);
                let result = self.changed(&change, old.clone(), bits);
                (old, Some(result))
            }
        };
        self.set_flags_of_one(one, old, bits);
        if let Some(result) = result {
            self.write(to, result, bits);
        }
    }

    /// The other flags are left open by the processor, and stay as they are.
    fn multiply(&mut self, to: &Operand<'s>, from: &Operand<'s>, bits: u32) {
        let arch = self.arch();
        let (b, a) = (self.read(from, bits), self.read(to, bits));
        let (left, right) = (with_sign(a.clone(), bits, arch), with_sign(b.clone(), bits, arch));
        let product = binary(BinOp::Mul, left.clone(), right.clone());
        let too_large = match bits {
            64 => {
                let is = |op, e: &RegExpr, c| binary(op, e.clone(), Expr::Const(c));
                let quotient = Expr::binary(BinOp::Div, product, left.clone());
                let inexact =
                    binary(BinOp::And, is(BinOp::Ne, &left, 0), binary(BinOp::Ne, quotient, right.clone()));
                // The one product that wraps and divides back all the same.
                let least = binary(BinOp::And, is(BinOp::Eq, &left, -1), is(BinOp::Eq, &right, Value::MIN));
                binary(BinOp::Or, least, inexact)
            }
            _ => binary(BinOp::Ne, sign_extended(product.clone(), bits), product),
        };
        self.flags([(Flag::Carry, too_large.clone()), (Flag::Overflow, too_large)]);
        let result = self.wrapped(binary(BinOp::Mul, a, b), bits);
        self.write(to, result, bits);
    }

    fn shift(&mut self, shift: Shift, to: &Operand<'s>, count: Value, bits: u32) {
        let arch = self.arch();
        let old = self.read(to, bits);
        // The processor looks at the low bits of the count alone.
        let count = count & if bits == 64 { 63 } else { 31 };
        if count == 0 {
            // Flags stay as they are. The destination is written all the same: the upper half of a register is
            // cleared, and a place in memory is stored to.
            return self.write(to, old, bits);
        }
        let by = || Expr::Const(count);
        let signed = with_sign(old.clone(), bits, arch);
        let bit = |of: &RegExpr, n: Value| {
            binary(BinOp::BitAnd, binary(BinOp::Shr, of.clone(), Expr::Const(n)), Expr::Const(1))
        };
        let exact = match shift {
            Shift::Left => cut(binary(BinOp::Shl, old.clone(), by()), bits, arch),
            Shift::Arithmetic => cut(binary(BinOp::Shr, signed.clone(), by()), bits, arch),
            Shift::Right => {
                // Zeros come in from the left: the copies of the sign are masked out.
                let mask = ((u64::MAX >> (64 - bits)) >> count) as Value;
                binary(BinOp::BitAnd, binary(BinOp::Shr, signed.clone(), by()), Expr::Const(mask))
            }
        };
        let carry = match shift {
            // Left open by the processor if all bits are gone.
            Shift::Left if count > Value::from(bits) => Expr::Const(0),
            Shift::Left => bit(&old, Value::from(bits) - count),
            Shift::Right => bit(&old, count - 1),
            Shift::Arithmetic => bit(&signed, count - 1),
        };
        let negative = less_than_zero(with_sign(exact.clone(), bits, arch));
        // Defined for shifts by one; other shifts leave it open.
        let overflow = match shift {
            Shift::Left => binary(BinOp::BitXor, negative.clone(), carry.clone()),
            Shift::Right => less_than_zero(signed),
            Shift::Arithmetic => Expr::Const(0),
        };
        let less = binary(BinOp::Ne, negative.clone(), overflow.clone());
        let zero = unary(UnOp::Not, exact.clone());
        self.flags([
            (Flag::Zero, zero),
            (Flag::Sign, negative),
            (Flag::Carry, carry),
            (Flag::Overflow, overflow),
            (Flag::Less, less),
        ]);
        let result = match shift {
            Shift::Left => self.wrapped(binary(BinOp::Shl, old, by()), bits),
            _ => exact,
        };
        self.write(to, result, bits);
    }

    fn bit(&mut self, bit: Bit, to: &Operand<'s>, number: &Operand<'s>, bits: u32, locked: bool) {
        let number = self.read(number, bits);
        let number = binary(BinOp::BitAnd, number, Expr::Const(Value::from(bits) - 1));
        let mask = cut(binary(BinOp::Shl, Expr::Const(1), number.clone()), bits, self.arch());
        let change = match bit {
            Bit::Keep => None,
            Bit::Set => Some(Change::Bits(BinOp::BitOr, mask)),
            Bit::Complement => Some(Change::Bits(BinOp::BitXor, mask)),
            Bit::Reset => {
                let others = cut(unary(UnOp::BitNot, mask), bits, self.arch());
                Some(Change::Bits(BinOp::BitAnd, others))
            }
        };
        let (old, result) = match (to, change) {
            (Operand::Mem(mem), Some(change)) => (self.modify(mem, bits, locked, change), None),
            (_, change) => {
                let old = self.read(to, bits);
                let result = change.map(|c| self.changed(&c, old.clone(), bits));
                (old, result)
            }
        };
        self.flags([(Flag::Carry, binary(BinOp::BitAnd, binary(BinOp::Shr, old, number), Expr::Const(1)))]);
        if let Some(result) = result {
            self.write(to, result, bits);
        }
    }

    /// Reads a place in memory and writes it; the value that was there.
    fn modify(&mut self, mem: &Mem<'s>, bits: u32, locked: bool, change: Change) -> RegExpr {
        let (addr, dst) = (self.cell(mem, bits), self.temporary(0));
        let old: RegExpr = Expr::Atom(dst);
        let adds = match &change {
            Change::Add(amount) => Some(amount.clone()),
            Change::Sub(amount) => Some(unary(UnOp::Neg, amount.clone())),
            _ => None,
        };
        // The model's own addition has 64 bits.
        let fits = bits == 64 || self.context.form == Form::Plain;
        let result = self.changed(&change, old.clone(), bits);
        match adds {
            Some(amount) if locked && fits => self.step(Instr::Rmw { dst, addr, op: RmwOp::Add(amount) }),
            _ => {
                if locked {
                    self.step(Instr::Lock);
                }
                self.step(Instr::Load { dst, addr: addr.clone() });
                self.step(Instr::Store { addr, value: result });
                if locked {
                    self.step(Instr::Unlock);
                }
            }
        }
        old
    }

    fn changed(&mut self, change: &Change, old: RegExpr, bits: u32) -> RegExpr {
        match change {
            Change::Add(b) => self.wrapped(binary(BinOp::Add, old, b.clone()), bits),
            Change::Sub(b) => self.wrapped(binary(BinOp::Sub, old, b.clone()), bits),
            Change::Negate => self.wrapped(unary(UnOp::Neg, old), bits),
            Change::Invert => cut(unary(UnOp::BitNot, old), bits, self.arch()),
            Change::Bits(op, b) => binary(*op, old, b.clone()),
        }
    }

    /// A result that may have left its width, cut to it or noted.
    fn wrapped(&mut self, e: RegExpr, bits: u32) -> RegExpr {
        match self.context.form {
            Form::Exact => cut(e, bits, self.arch()),
            Form::Plain if bits == 64 || e.constant().is_some_and(|c| fitted(c, bits, self.arch()) == c) => e,
            Form::Plain => {
                self.uncut.push(bits);
                e
            }
        }
    }

    /// The value of an operand; one in memory is loaded first.
    fn read(&mut self, operand: &Operand<'s>, bits: u32) -> RegExpr {
        match operand {
            Operand::Const(value) => Expr::Const(fitted(*value, bits, self.arch())),
            Operand::AddressOf(name) => Expr::Const(self.context.memory.address(name)),
            Operand::Reg(part) => self.part(*part),
            Operand::Mem(mem) => {
                let (addr, dst) = (self.cell(mem, bits), self.temporary(0));
                self.step(Instr::Load { dst, addr });
                Expr::Atom(dst)
            }
            Operand::Label(_) => unreachable!("labels stand behind jumps alone"),
        }
    }

    fn part(&mut self, part: Part) -> RegExpr {
        let whole: RegExpr = Expr::Atom(self.whole(part));
        if part.bits == self.arch().bits() {
            return whole;
        }
        if part.shift == 0 {
            return self.wrapped(whole, part.bits);
        }
        cut(binary(BinOp::Shr, whole, Expr::Const(Value::from(part.shift))), part.bits, self.arch())
    }

    /// Does a write to the part replace the whole register? A write to 32 of 64 bits does: the others become 0.
    fn is_whole(&self, part: Part) -> bool {
        part.bits >= 32
    }

    fn write(&mut self, operand: &Operand<'s>, value: RegExpr, bits: u32) {
        match operand {
            Operand::Reg(part) => {
                let dst = self.whole(*part);
                let value = self.inserted(*part, value);
                self.assign(dst, value);
            }
            Operand::Mem(mem) => {
                let addr = self.cell(mem, bits);
                self.step(Instr::Store { addr, value });
            }
            Operand::Const(_) | Operand::AddressOf(_) | Operand::Label(_) => {
                unreachable!("`width` has looked at the operands")
            }
        }
    }

    /// The whole register once the part has this value.
    fn inserted(&mut self, part: Part, value: RegExpr) -> RegExpr {
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

    /// The address that a place stands for, as a number of bytes.
    fn address(&mut self, mem: &Mem<'s>) -> RegExpr {
        let begin = mem.name.map(|name| self.context.memory.address(name));
        // A constant that is part of an address has to look like one.
        let (known, far) = match begin.map(|begin| begin.wrapping_add(mem.offset)) {
            Some(known) if self.context.memory.is_near(known) => (known, None),
            _ => (mem.offset, begin),
        };
        let base = mem.base.map(|part| self.part(part));
        let index = mem.index.map(|(part, factor)| {
            let index = self.part(part);
            if factor == 1 { index } else { binary(BinOp::Mul, index, Expr::Const(factor)) }
        });
        let known = (known != 0).then_some(Expr::Const(known));
        let sum = base.into_iter().chain(index).chain(known).reduce(|a, b| binary(BinOp::Add, a, b));
        let sum = sum.unwrap_or(Expr::Const(0));
        let sum = match far {
            Some(begin) => Expr::binary(BinOp::Add, sum, Expr::Const(begin)),
            None => sum,
        };
        // Registers of 32 bits make an address of 32 bits.
        let narrow = mem.parts().any(|part| part.bits < self.arch().bits());
        if narrow { cut(sum, 32, self.arch()) } else { sum }
    }

    /// The cell of an access, as the model addresses it.
    fn cell(&mut self, mem: &Mem<'s>, bits: u32) -> RegExpr {
        if let (Some(name), true) = (mem.name, mem.is_direct()) {
            return self.direct_cell(name, mem.offset);
        }
        let address = match self.address(mem) {
            register @ Expr::Atom(_) => register,
            sum => cut(sum, self.arch().bits(), self.arch()),
        };
        self.context.memory.zone(bits).cell_at(address)
    }

    fn direct_cell(&mut self, name: &'s str, offset: Value) -> RegExpr {
        match self.context.memory.cell(name, offset) {
            Some(cell) => Expr::Const(cell as Value),
            None => {
                let message = format!("nothing lies {offset} bytes behind the beginning of `{name}`");
                self.problems.report(Problem::error(message).at(self.span));
                Expr::Const(0)
            }
        }
    }

    fn flags(&mut self, values: impl IntoIterator<Item = (Flag, RegExpr)>) {
        for (flag, value) in values {
            if self.used.contains(&flag) {
                let dst = self.flag(flag);
                self.assign(dst, value);
            }
        }
    }

    /// The flags after an instruction of two operands.
    fn set_flags(&mut self, two: Two, a: RegExpr, b: RegExpr, bits: u32) {
        let arch = self.arch();
        let signed = |e: RegExpr| with_sign(e, bits, arch);
        let (left, right) = (signed(a.clone()), signed(b.clone()));
        let sum_overflows = |r: RegExpr| {
            let differ = |x: &RegExpr| binary(BinOp::BitXor, x.clone(), r.clone());
            less_than_zero(binary(BinOp::BitAnd, differ(&left), differ(&right)))
        };
        let (zero, result, carry, overflow, less) = match two {
            Two::Add => {
                let sum = cut(binary(BinOp::Add, a.clone(), b), bits, arch);
                let result = signed(sum.clone());
                let carry = unsigned_less(sum, a, bits, arch);
                let overflow = sum_overflows(result.clone());
                let less = match bits {
                    64 => binary(BinOp::Ne, less_than_zero(result.clone()), overflow.clone()),
                    _ => less_than_zero(binary(BinOp::Add, left, right)),
                };
                (unary(UnOp::Not, result.clone()), result, carry, overflow, less)
            }
            Two::Sub | Two::Cmp => {
                let result = signed(cut(binary(BinOp::Sub, a.clone(), b.clone()), bits, arch));
                let differ = |x: &RegExpr, y: &RegExpr| binary(BinOp::BitXor, x.clone(), y.clone());
                let overflow =
                    less_than_zero(binary(BinOp::BitAnd, differ(&left, &right), differ(&left, &result)));
                let carry = unsigned_less(a.clone(), b.clone(), bits, arch);
                (binary(BinOp::Eq, a, b), result, carry, overflow, binary(BinOp::Lt, left, right))
            }
            Two::And | Two::Test | Two::Or | Two::Xor => {
                let op = match two {
                    Two::Or => BinOp::BitOr,
                    Two::Xor => BinOp::BitXor,
                    _ => BinOp::BitAnd,
                };
                let result = if a == b && op == BinOp::BitAnd { left } else { signed(binary(op, a, b)) };
                let negative = less_than_zero(result.clone());
                (unary(UnOp::Not, result.clone()), result, Expr::Const(0), Expr::Const(0), negative)
            }
        };
        self.flags([
            (Flag::Zero, zero),
            (Flag::Sign, less_than_zero(result)),
            (Flag::Carry, carry),
            (Flag::Overflow, overflow),
            (Flag::Less, less),
        ]);
    }

    fn set_flags_of_one(&mut self, one: One, old: RegExpr, bits: u32) {
        let arch = self.arch();
        let signed = with_sign(old.clone(), bits, arch);
        let least = Value::MIN >> (64 - bits);
        let (result, extreme) = match one {
            One::Not => return,
            One::Inc => (binary(BinOp::Add, old.clone(), Expr::Const(1)), !least),
            One::Dec => (binary(BinOp::Sub, old.clone(), Expr::Const(1)), least),
            One::Neg => (unary(UnOp::Neg, old.clone()), least),
        };
        let result = with_sign(cut(result, bits, arch), bits, arch);
        let negative = less_than_zero(result.clone());
        let overflow = binary(BinOp::Eq, signed, Expr::Const(extreme));
        let less = binary(BinOp::Ne, negative.clone(), overflow.clone());
        self.flags([
            (Flag::Zero, unary(UnOp::Not, result)),
            (Flag::Sign, negative),
            (Flag::Overflow, overflow),
            (Flag::Less, less),
        ]);
        // INC and DEC leave the carry as it is.
        if one == One::Neg {
            self.flags([(Flag::Carry, binary(BinOp::Ne, old, Expr::Const(0)))]);
        }
    }
}

/// What becomes of a value.
enum Change {
    Add(RegExpr),
    Sub(RegExpr),
    Negate,
    Invert,
    Bits(BinOp, RegExpr),
}

fn is_same_register(a: &Operand, b: &Operand) -> bool {
    matches!((a, b), (Operand::Reg(a), Operand::Reg(b)) if a == b)
}

fn unary(op: UnOp, a: RegExpr) -> RegExpr {
    const_fold::unary(op, a)
}

fn binary(op: BinOp, a: RegExpr, b: RegExpr) -> RegExpr {
    const_fold::binary(op, a, b).expect("nothing here divides by zero")
}

/// One of two values; the condition is 0 or 1.
fn choose(condition: RegExpr, yes: RegExpr, no: RegExpr) -> RegExpr {
    let not = unary(UnOp::Not, condition.clone());
    binary(BinOp::Add, binary(BinOp::Mul, condition, yes), binary(BinOp::Mul, not, no))
}

fn less_than_zero(e: RegExpr) -> RegExpr {
    binary(BinOp::Lt, e, Expr::Const(0))
}

/// The low bits of a value, `fitted`.
fn cut(e: RegExpr, bits: u32, arch: Arch) -> RegExpr {
    match bits {
        64 => e,
        _ if bits == arch.bits() => sign_extended(e, bits),
        _ => binary(BinOp::BitAnd, e, Expr::Const((u64::MAX >> (64 - bits)) as Value)),
    }
}

fn sign_extended(e: RegExpr, bits: u32) -> RegExpr {
    let unused = || Expr::Const(Value::from(64 - bits));
    binary(BinOp::Shr, binary(BinOp::Shl, e, unused()), unused())
}

/// A `fitted` value as a signed number.
fn with_sign(e: RegExpr, bits: u32, arch: Arch) -> RegExpr {
    if bits == arch.bits() { e } else { sign_extended(e, bits) }
}

/// Is the one less than the other, both as numbers without sign?
fn unsigned_less(a: RegExpr, b: RegExpr, bits: u32, arch: Arch) -> RegExpr {
    let plain = |e: RegExpr| match bits {
        // Turning the highest bit round maps the order without sign to that with sign.
        64 => binary(BinOp::BitXor, e, Expr::Const(Value::MIN)),
        _ if bits == arch.bits() => binary(BinOp::BitAnd, e, Expr::Const((u64::MAX >> (64 - bits)) as Value)),
        _ => e,
    };
    binary(BinOp::Lt, plain(a), plain(b))
}

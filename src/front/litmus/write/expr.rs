//! How is an expression computed? In registers: its own, and those that nobody else uses.
//!
//! Arithmetic goes to the target from the left, each operator with an operand that is a constant or a
//! register; comparisons set flags for jumps. `&&` and `||` become jumps, or 0 and 1 where their value is
//! wanted. What has no instruction is computed by additions and bitwise operators, in two's complement.

use super::body::{Block, mentions};
use super::branch::{is_comparison, opposite, turned};
use super::code::{Assembly, Label};
use super::narrow;
use super::syntax::{Mem, Operand};
use crate::front::x86::{Arch, Gpr};
use crate::front::{Inexpressible, const_fold};
use crate::model::{BinOp, Expr, RegExpr, UnOp, Value};

impl<'a> Assembly<'a> {
    /// The value in a register, one of the program's if it is there already.
    pub(crate) fn reg(&mut self, e: &RegExpr) -> Result<Gpr, Inexpressible> {
        if let Expr::Atom(r) = e {
            return Ok(self.registers.get(*r));
        }
        let target = self.scratch()?;
        self.into(target, e)?;
        Ok(target)
    }

    /// The value as an operand: a constant that instructions may contain, or a register.
    pub(crate) fn operand(&mut self, e: &RegExpr) -> Result<Operand, Inexpressible> {
        match e.constant() {
            Some(c) => match self.symbol(c) {
                Some((name, 0)) => Ok(Operand::Symbol(name)),
                None if i32::try_from(c).is_ok() => Ok(Operand::Const(c)),
                _ => self.reg(&Expr::Const(c)).map(Operand::Reg),
            },
            None => self.reg(e).map(Operand::Reg),
        }
    }

    /// The location that a constant is the address of, and how far behind its beginning.
    fn symbol(&self, constant: Value) -> Option<(String, Value)> {
        self.writer.location_at(self.layout, constant)
    }

    /// Computes the value into a register.
    pub(crate) fn into(&mut self, target: Gpr, e: &RegExpr) -> Result<(), Inexpressible> {
        let taken = self.taken();
        if let Some((condition, yes, no)) = chosen(e) {
            self.choose(target, condition, yes, no)?;
        } else if self.overwrites(target, e) {
            let elsewhere = self.scratch()?;
            self.compute(elsewhere, e)?;
            self.mov(target, elsewhere);
        } else {
            self.compute(target, e)?;
        }
        self.release(taken);
        Ok(())
    }

    /// Would the target lose a value that is still needed when the leftmost operand is in it?
    fn overwrites(&self, target: Gpr, e: &RegExpr) -> bool {
        let needs = |e: &RegExpr| {
            let mut found = false;
            e.for_each_atom(&mut |r| found |= self.registers.get(*r) == target);
            found
        };
        match e {
            Expr::Const(_) | Expr::Atom(_) => false,
            Expr::Unary(_, a) => self.overwrites(target, a),
            Expr::Binary(_, a, b) => needs(b) || self.overwrites(target, a),
        }
    }

    fn compute(&mut self, target: Gpr, e: &RegExpr) -> Result<(), Inexpressible> {
        let taken = self.taken();
        let bits = self.bits();
        match self.uncut(e) {
            Expr::Const(c) => match self.symbol(*c) {
                Some((name, 0)) => self.op("mov", bits, &[Operand::Reg(target), Operand::Symbol(name)]),
                Some((name, offset)) => {
                    let mem = Mem { name: Some(name), offset, ..Mem::default() };
                    self.op("lea", bits, &[Operand::Reg(target), Operand::Mem(mem)]);
                }
                None => self.number(target, *c),
            },
            Expr::Atom(r) => self.mov(target, self.registers.get(*r)),
            Expr::Unary(UnOp::Neg, a) => {
                self.compute(target, a)?;
                if self.has("neg") {
                    self.op("neg", bits, &[Operand::Reg(target)]);
                } else {
                    self.complement(target);
                    self.op("inc", bits, &[Operand::Reg(target)]);
                }
            }
            Expr::Unary(UnOp::BitNot, a) => {
                self.compute(target, a)?;
                self.complement(target);
            }
            Expr::Binary(BinOp::BitAnd, a, mask) if **mask == LOW_HALF && bits == 64 => {
                self.compute(target, a)?;
                // Writing half of a register clears the other half.
                self.op("mov", 32, &[Operand::Reg(target), Operand::Reg(target)]);
            }
            Expr::Binary(BinOp::Sub, a, b) if !self.has("sub") => {
                self.compute(target, a)?;
                self.subtract(target, b)?;
            }
            Expr::Binary(BinOp::BitAnd, a, b) if !self.has("and") => {
                self.compute(target, a)?;
                self.complement(target);
                let other = self.operand(&const_fold::unary(UnOp::BitNot, (**b).clone()))?;
                self.op("or", bits, &[Operand::Reg(target), other]);
                self.complement(target);
            }
            Expr::Binary(op, a, b) if arithmetic(*op).is_some() => {
                self.compute(target, a)?;
                let b = self.operand(b)?;
                self.op(arithmetic(*op).unwrap_or_default(), bits, &[Operand::Reg(target), b]);
            }
            Expr::Binary(op @ (BinOp::Shl | BinOp::Shr | BinOp::Mul | BinOp::Div | BinOp::Rem), a, b) => {
                self.compute(target, a)?;
                self.scale(target, *op, b)?;
            }
            truth => self.truth(target, truth)?,
        }
        self.release(taken);
        Ok(())
    }

    /// Operators that need a constant on their right side, or are cheaper with one.
    fn scale(&mut self, target: Gpr, op: BinOp, b: &RegExpr) -> Result<(), Inexpressible> {
        let bits = self.bits();
        let power = b.constant().filter(|c| *c > 0 && c.count_ones() == 1).map(|c| c.trailing_zeros());
        match (op, b.constant(), power) {
            (BinOp::Shl, Some(by), _) => self.double(target, by as u32 & 63),
            (BinOp::Shr, Some(by), _) => self.shift("sar", target, by as u32 & 63),
            (BinOp::Shl | BinOp::Shr, None, _) => {
                return Err(self.refuse("shifts by something that is not constant are not read"));
            }
            (BinOp::Mul, _, Some(power)) => self.double(target, power),
            (BinOp::Mul, Some(factor), _) if !self.has("imul") => self.multiply(target, factor)?,
            (BinOp::Mul, _, _) => {
                let b = self.reg(b)?;
                self.op("imul", bits, &[Operand::Reg(target), Operand::Reg(b)]);
            }
            (BinOp::Div | BinOp::Rem, _, Some(power)) => {
                // Rounding is towards 0: a negative number has to be made larger first.
                let more = self.scratch()?;
                self.mov(more, target);
                self.shift("sar", more, bits - 1);
                let mask = self.operand(&Expr::Const((1 << power) - 1))?;
                self.op("and", bits, &[Operand::Reg(more), mask.clone()]);
                self.op("add", bits, &[Operand::Reg(target), Operand::Reg(more)]);
                if op == BinOp::Div {
                    self.shift("sar", target, power);
                } else {
                    self.op("and", bits, &[Operand::Reg(target), mask]);
                    self.op("sub", bits, &[Operand::Reg(target), Operand::Reg(more)]);
                }
            }
            _ => return Err(self.refuse("only divisions by 1, 2, 4, 8 and so on can be written")),
        }
        Ok(())
    }

    /// herd's numbers have 63 bits, so a larger one is twice its half.
    fn number(&mut self, target: Gpr, c: Value) {
        let bits = self.bits();
        if self.writer.test.is_some() || OF_HERD.contains(&c) {
            return self.op("mov", bits, &[Operand::Reg(target), Operand::Const(c)]);
        }
        self.op("mov", bits, &[Operand::Reg(target), Operand::Const(c >> 1)]);
        self.double(target, 1);
        if c & 1 == 1 {
            self.op("inc", bits, &[Operand::Reg(target)]);
        }
    }

    /// Turns every bit.
    fn complement(&mut self, target: Gpr) {
        match self.has("not") {
            true => self.op("not", self.bits(), &[Operand::Reg(target)]),
            false => self.op("xor", self.bits(), &[Operand::Reg(target), Operand::Const(-1)]),
        }
    }

    /// `a - b` is `~(~a + b)`.
    fn subtract(&mut self, target: Gpr, b: &RegExpr) -> Result<(), Inexpressible> {
        let bits = self.bits();
        if let Some(c) = b.constant() {
            let summand = self.operand(&Expr::Const(c.wrapping_neg()))?;
            self.op("add", bits, &[Operand::Reg(target), summand]);
            return Ok(());
        }
        self.complement(target);
        let summand = self.operand(b)?;
        self.op("add", bits, &[Operand::Reg(target), summand]);
        self.complement(target);
        Ok(())
    }

    /// So many times over.
    pub(crate) fn double(&mut self, target: Gpr, times: u32) {
        if self.has("shl") {
            return self.shift("shl", target, times);
        }
        for _ in 0..times {
            self.op("add", self.bits(), &[Operand::Reg(target), Operand::Reg(target)]);
        }
    }

    /// Doubles for every bit of the factor, the highest first, and adds for those that are set.
    fn multiply(&mut self, target: Gpr, factor: Value) -> Result<(), Inexpressible> {
        let (bits, size) = (self.bits(), factor.unsigned_abs());
        let Some(highest) = size.checked_ilog2() else {
            self.op("mov", bits, &[Operand::Reg(target), Operand::Const(0)]);
            return Ok(());
        };
        let once = self.scratch()?;
        self.mov(once, target);
        for bit in (0..highest).rev() {
            self.double(target, 1);
            if size >> bit & 1 == 1 {
                self.op("add", bits, &[Operand::Reg(target), Operand::Reg(once)]);
            }
        }
        if factor < 0 {
            self.complement(target);
            self.op("inc", bits, &[Operand::Reg(target)]);
        }
        Ok(())
    }

    fn shift(&mut self, mnemonic: &str, target: Gpr, by: u32) {
        if by > 0 {
            let by = Operand::Const(Value::from(by));
            self.op(mnemonic, self.bits(), &[Operand::Reg(target), by]);
        }
    }

    /// 1 if the condition holds, else 0.
    fn truth(&mut self, target: Gpr, e: &RegExpr) -> Result<(), Inexpressible> {
        let (no, end) = (self.fresh(), self.fresh());
        self.jump_if(e, false, no)?;
        self.op("mov", self.bits(), &[Operand::Reg(target), Operand::Const(1)]);
        self.jump("jmp", end);
        self.label(no);
        self.op("mov", self.bits(), &[Operand::Reg(target), Operand::Const(0)]);
        self.label(end);
        Ok(())
    }

    fn choose(&mut self, target: Gpr, c: &RegExpr, yes: &RegExpr, no: &RegExpr) -> Result<(), Inexpressible> {
        let is_there = |e: &RegExpr| matches!(e, Expr::Atom(r) if self.registers.get(*r) == target);
        let (keeps_yes, keeps_no) = (is_there(yes), is_there(no));
        let end = self.fresh();
        match (keeps_yes, keeps_no) {
            (true, _) => {
                self.jump_if(c, true, end)?;
                self.into(target, no)?;
            }
            (_, true) => {
                self.jump_if(c, false, end)?;
                self.into(target, yes)?;
            }
            _ => {
                let other = self.fresh();
                self.jump_if(c, false, other)?;
                self.into(target, yes)?;
                self.jump("jmp", end);
                self.label(other);
                self.into(target, no)?;
            }
        }
        self.label(end);
        Ok(())
    }

    /// Jumps if the expression is not 0, or if it is.
    pub(crate) fn jump_if(&mut self, e: &RegExpr, sense: bool, to: Label) -> Result<(), Inexpressible> {
        if let Some(c) = e.constant() {
            if (c != 0) == sense {
                self.jump("jmp", to);
            }
            return Ok(());
        }
        let taken = self.taken();
        match e {
            Expr::Unary(UnOp::Not, a) => self.jump_if(a, !sense, to)?,
            Expr::Binary(op @ (BinOp::And | BinOp::Or), a, b) => {
                if (*op == BinOp::Or) == sense {
                    self.jump_if(a, sense, to)?;
                    self.jump_if(b, sense, to)?;
                } else {
                    let past = self.fresh();
                    self.jump_if(a, !sense, past)?;
                    self.jump_if(b, sense, to)?;
                    self.label(past);
                }
            }
            Expr::Binary(op, a, b) if is_comparison(*op) => {
                let (op, a, b) = if a.constant().is_some() { (turned(*op), b, a) } else { (*op, a, b) };
                let op = if sense { op } else { opposite(op) };
                match self.without_strictness(op, b) {
                    Some((op, bound)) => {
                        self.compare(a, &Expr::Const(bound))?;
                        self.jump_on(op, to);
                    }
                    None => {
                        self.compare(a, b)?;
                        self.jump_on(op, to);
                    }
                }
            }
            value => {
                self.compare(value, &Expr::Const(0))?;
                self.jump(if sense { "jne" } else { "je" }, to);
            }
        }
        self.release(taken);
        Ok(())
    }

    /// Jumps if what was compared last compares like that.
    pub(crate) fn jump_on(&mut self, op: BinOp, to: Label) {
        if self.has(jump(op)) || !self.has(jump(opposite(op))) {
            return self.jump(jump(op), to);
        }
        let past = self.fresh();
        self.jump(jump(opposite(op)), past);
        self.jump("jmp", to);
        self.label(past);
    }

    /// Less than a constant is at most the number before it, which may be a jump less.
    fn without_strictness(&self, op: BinOp, b: &RegExpr) -> Option<(BinOp, Value)> {
        let bound = b.constant().filter(|_| !self.has(jump(op)))?;
        let (op, bound) = match op {
            BinOp::Lt => (BinOp::Le, bound.checked_sub(1)?),
            BinOp::Gt => (BinOp::Ge, bound.checked_add(1)?),
            _ => return None,
        };
        self.has(jump(op)).then_some((op, bound))
    }

    fn compare(&mut self, a: &RegExpr, b: &RegExpr) -> Result<(), Inexpressible> {
        let a = self.reg(a)?;
        let b = self.operand(b)?;
        self.op("cmp", self.bits(), &[Operand::Reg(a), b]);
        Ok(())
    }

    /// The expression without what 32-bit registers cut off by themselves.
    pub(crate) fn uncut<'e>(&self, e: &'e RegExpr) -> &'e RegExpr {
        match self.writer.arch {
            Arch::X86 => narrow::uncut(e).unwrap_or(e),
            Arch::X86_64 => e,
        }
    }

    /// The locked instruction that does what a block does to its cell, with its second operand.
    pub(crate) fn locked_instruction(&self, block: &Block, bits: u32) -> Option<(&'static str, RegExpr)> {
        let value = match block.value {
            Expr::Binary(BinOp::BitAnd, a, mask) if cuts(mask, bits) && bits < self.bits() => a,
            e if bits == self.bits() => self.uncut(e),
            e => e,
        };
        let Expr::Binary(op, a, b) = value else { return None };
        let mnemonic = match op {
            BinOp::Add => "lock add",
            BinOp::Sub => "lock sub",
            BinOp::BitAnd => "lock and",
            BinOp::BitOr => "lock or",
            BinOp::BitXor => "lock xor",
            _ => return None,
        };
        let (mnemonic, value) = match mnemonic {
            known if self.has(known) => (known, (**b).clone()),
            "lock sub" => ("lock add", const_fold::unary(UnOp::Neg, (**b).clone())),
            _ => return None,
        };
        (**a == Expr::Atom(block.dst) && !mentions(b, block.dst)).then_some((mnemonic, value))
    }
}

const OF_HERD: std::ops::Range<Value> = -(1 << 62)..1 << 62;
const LOW_HALF: RegExpr = Expr::Const(0xffff_ffff);

fn cuts(mask: &RegExpr, bits: u32) -> bool {
    *mask == Expr::Const((u64::MAX >> (64 - bits)) as Value)
}

fn arithmetic(op: BinOp) -> Option<&'static str> {
    match op {
        BinOp::Add => Some("add"),
        BinOp::Sub => Some("sub"),
        BinOp::BitAnd => Some("and"),
        BinOp::BitOr => Some("or"),
        BinOp::BitXor => Some("xor"),
        _ => None,
    }
}

fn jump(op: BinOp) -> &'static str {
    match op {
        BinOp::Eq => "je",
        BinOp::Ne => "jne",
        BinOp::Lt => "jl",
        BinOp::Le => "jle",
        BinOp::Gt => "jg",
        _ => "jge",
    }
}

/// `c * yes + !c * no`, where c is a comparison.
fn chosen(e: &RegExpr) -> Option<(&RegExpr, &RegExpr, &RegExpr)> {
    let Expr::Binary(BinOp::Add, a, b) = e else { return None };
    let (Expr::Binary(BinOp::Mul, c, yes), Expr::Binary(BinOp::Mul, not, no)) = (&**a, &**b) else {
        return None;
    };
    let is_truth = matches!(&**c, Expr::Binary(op, ..) if is_comparison(*op));
    let opposite = matches!(&**not, Expr::Unary(UnOp::Not, d) if d == c);
    (is_truth && opposite).then_some((&**c, &**yes, &**no))
}

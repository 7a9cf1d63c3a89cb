//! Expressions and instructions over slots of the working state, so that nothing has to be looked up by name.
//!
//! Not here: what taking an instruction does (`core/step`).

use crate::model::{BinOp, EdgeId, Expr, Instr, Reg, RegExpr, RmwOp, Value};

/// An expression over slots of the working state.
#[derive(Clone, Debug)]
pub enum Code {
    Const(Value),
    Slot(u32),
    SlotConst(BinOp, u32, Value),
    SlotSlot(BinOp, u32, u32),
    Tree(Expr<u32>),
}

impl Code {
    fn new(e: &RegExpr, base: usize) -> Code {
        let slot = |e: &RegExpr| match e {
            Expr::Atom(r) => Some((base + r.index()) as u32),
            _ => None,
        };
        if let Some(c) = e.constant() {
            return Code::Const(c);
        }
        if let Some(s) = slot(e) {
            return Code::Slot(s);
        }
        // `&&` and `||` agree with their short-circuit forms when no side can fail.
        if let Expr::Binary(op, a, b) = e
            && let Some(a) = slot(a)
        {
            match (&**b, slot(b)) {
                (Expr::Const(c), _) => return Code::SlotConst(*op, a, *c),
                (_, Some(b)) => return Code::SlotSlot(*op, a, b),
                _ => {}
            }
        }
        Code::Tree(rebased(e, base))
    }

    /// The expression as a tree.
    pub fn tree(&self) -> Expr<u32> {
        match self {
            Code::Const(c) => Expr::Const(*c),
            Code::Slot(s) => Expr::Atom(*s),
            Code::SlotConst(op, s, c) => Expr::binary(*op, Expr::Atom(*s), Expr::Const(*c)),
            Code::SlotSlot(op, a, b) => Expr::binary(*op, Expr::Atom(*a), Expr::Atom(*b)),
            Code::Tree(e) => e.clone(),
        }
    }

    /// `None` on a division by zero.
    #[inline]
    pub fn eval(&self, vals: &[Value]) -> Option<Value> {
        match self {
            Code::Const(c) => Some(*c),
            Code::Slot(s) => Some(vals[*s as usize]),
            Code::SlotConst(op, s, c) => op.apply(vals[*s as usize], *c).ok(),
            Code::SlotSlot(op, a, b) => op.apply(vals[*a as usize], vals[*b as usize]).ok(),
            Code::Tree(e) => e.eval(&|s| vals[*s as usize]).ok(),
        }
    }
}

fn rebased(e: &RegExpr, base: usize) -> Expr<u32> {
    match e {
        Expr::Const(c) => Expr::Const(*c),
        Expr::Atom(r) => Expr::Atom((base + r.index()) as u32),
        Expr::Unary(op, a) => Expr::unary(*op, rebased(a, base)),
        Expr::Binary(op, a, b) => Expr::binary(*op, rebased(a, base), rebased(b, base)),
    }
}

/// An instruction.
#[derive(Clone, Debug)]
pub enum CInstr {
    Assign { dst: u32, value: Code },
    Any { dst: u32, lo: Value, hi: Value },
    Assume(Code),
    Assert(Code),
    Nop,
    Load { dst: u32, addr: Code },
    Store { addr: Code, value: Code },
    Rmw { dst: u32, addr: Code, op: Modify },
    Fence,
    Lock,
    Unlock,
}

impl CInstr {
    /// The instruction of a thread whose registers begin at slot `base`.
    pub fn new(instr: &Instr, base: usize) -> CInstr {
        let code = |e: &RegExpr| Code::new(e, base);
        let slot = |r: &Reg| (base + r.index()) as u32;
        match instr {
            Instr::Load { dst, addr } => CInstr::Load { dst: slot(dst), addr: code(addr) },
            Instr::Store { addr, value } => CInstr::Store { addr: code(addr), value: code(value) },
            Instr::Fence => CInstr::Fence,
            Instr::Assign { dst, value } => CInstr::Assign { dst: slot(dst), value: code(value) },
            Instr::Any { dst, lo, hi } => CInstr::Any { dst: slot(dst), lo: *lo, hi: *hi },
            Instr::Assume(e) => CInstr::Assume(code(e)),
            Instr::Assert(e) => CInstr::Assert(code(e)),
            Instr::Rmw { dst, addr, op } => {
                let op = match op {
                    RmwOp::Swap(v) => Modify::Swap(code(v)),
                    RmwOp::Add(v) => Modify::Add(code(v)),
                    RmwOp::And(v) => Modify::Bits(BinOp::BitAnd, code(v)),
                    RmwOp::Or(v) => Modify::Bits(BinOp::BitOr, code(v)),
                    RmwOp::Xor(v) => Modify::Bits(BinOp::BitXor, code(v)),
                    RmwOp::Cas { old, new } => Modify::Cas { old: code(old), new: code(new) },
                };
                CInstr::Rmw { dst: slot(dst), addr: code(addr), op }
            }
            Instr::Lock => CInstr::Lock,
            Instr::Unlock => CInstr::Unlock,
            Instr::Nop => CInstr::Nop,
        }
    }

    /// The ways to take it: one for each value of an `any`, and one if there is no choice.
    #[inline]
    pub fn choices(&self) -> impl Iterator<Item = Option<Value>> + use<> {
        let (values, is_any) = match self {
            CInstr::Any { lo, hi, .. } => (*lo..=*hi, true),
            _ => (0..=0, false),
        };
        values.map(move |value| is_any.then_some(value))
    }

    pub fn address(&self) -> Option<&Code> {
        match self {
            CInstr::Load { addr, .. } | CInstr::Store { addr, .. } | CInstr::Rmw { addr, .. } => Some(addr),
            _ => None,
        }
    }

    /// Every expression in it.
    pub fn codes(&self) -> Vec<&Code> {
        match self {
            CInstr::Assign { value, .. } => vec![value],
            CInstr::Assume(e) | CInstr::Assert(e) => vec![e],
            CInstr::Load { addr, .. } => vec![addr],
            CInstr::Store { addr, value } => vec![addr, value],
            CInstr::Rmw { addr, op: Modify::Swap(v) | Modify::Add(v) | Modify::Bits(_, v), .. } => {
                vec![addr, v]
            }
            CInstr::Rmw { addr, op: Modify::Cas { old, new }, .. } => vec![addr, old, new],
            CInstr::Any { .. } | CInstr::Nop | CInstr::Fence | CInstr::Lock | CInstr::Unlock => vec![],
        }
    }
}

/// What a locked instruction makes of the cell that it reads.
#[derive(Clone, Debug)]
pub enum Modify {
    Swap(Code),
    Add(Code),
    Bits(BinOp, Code),
    Cas { old: Code, new: Code },
}

/// An edge of a thread's graph.
#[derive(Clone, Debug)]
pub struct CEdge {
    pub id: EdgeId,
    pub instr: CInstr,
    pub to: u32,
}

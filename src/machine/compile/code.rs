//! Expressions and instructions over slots of the working state, so that nothing has to be looked up by name.
//!
//! Not here: what taking an instruction does (`core/step`).

use crate::model::{BinOp, Bytes, EdgeId, Expr, FenceKinds, Instr, Reg, RegExpr, RmwOp, Value};

/// An expression over slots of the working state.
#[derive(Clone, Debug)]
pub(crate) enum Code {
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
    pub(crate) fn tree(&self) -> Expr<u32> {
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
    pub(crate) fn eval(&self, vals: &[Value]) -> Option<Value> {
        self.eval_by(|s| vals[s as usize])
    }

    #[inline]
    pub(crate) fn eval_by(&self, value: impl Fn(u32) -> Value) -> Option<Value> {
        match self {
            Code::Const(c) => Some(*c),
            Code::Slot(s) => Some(value(*s)),
            Code::SlotConst(op, s, c) => op.apply(value(*s), *c).ok(),
            Code::SlotSlot(op, a, b) => op.apply(value(*a), value(*b)).ok(),
            Code::Tree(e) => e.eval(&|s| value(*s)).ok(),
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
pub(crate) enum CInstr {
    Assign { dst: u32, value: Code },
    Any { dst: u32, lo: Value, hi: Value },
    Assume(Code),
    Assert(Code),
    Nop,
    Load { dst: u32, addr: Code, bytes: Bytes },
    Store { addr: Code, value: Code, bytes: Bytes },
    Rmw { dst: u32, addr: Code, op: Modify },
    Fence,
    Membarrier,
    Lock,
    Unlock,
}

impl CInstr {
    /// The instruction of a thread whose registers begin at slot `base`.
    pub(crate) fn new(instr: &Instr, base: usize) -> CInstr {
        let code = |e: &RegExpr| Code::new(e, base);
        let slot = |r: &Reg| (base + r.index()) as u32;
        match instr {
            Instr::Load { dst, addr, bytes } => {
                CInstr::Load { dst: slot(dst), addr: code(addr), bytes: *bytes }
            }
            Instr::Store { addr, value, bytes } => {
                CInstr::Store { addr: code(addr), value: code(value), bytes: *bytes }
            }
            Instr::Fence | Instr::Partial(FenceKinds { sl: true, .. }) => CInstr::Fence,
            Instr::Partial(_) => CInstr::Nop,
            Instr::Membarrier => CInstr::Membarrier,
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
                    RmwOp::New(v) => Modify::New(code(v)),
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
    pub(crate) fn choices(&self) -> impl Iterator<Item = Option<Value>> + use<> {
        let (values, is_any) = match self {
            CInstr::Any { lo, hi, .. } => (*lo..=*hi, true),
            _ => (0..=0, false),
        };
        values.map(move |value| is_any.then_some(value))
    }

    pub(crate) fn address(&self) -> Option<&Code> {
        match self {
            CInstr::Load { addr, .. } | CInstr::Store { addr, .. } | CInstr::Rmw { addr, .. } => Some(addr),
            _ => None,
        }
    }

    /// Every expression in it.
    pub(crate) fn codes(&self) -> Vec<&Code> {
        match self {
            CInstr::Assign { value, .. } => vec![value],
            CInstr::Assume(e) | CInstr::Assert(e) => vec![e],
            CInstr::Load { addr, .. } => vec![addr],
            CInstr::Store { addr, value, .. } => vec![addr, value],
            CInstr::Rmw { addr, op, .. } => match op {
                Modify::Swap(v) | Modify::Add(v) | Modify::Bits(_, v) | Modify::New(v) => vec![addr, v],
                Modify::Cas { old, new } => vec![addr, old, new],
            },
            CInstr::Any { .. }
            | CInstr::Nop
            | CInstr::Fence
            | CInstr::Membarrier
            | CInstr::Lock
            | CInstr::Unlock => vec![],
        }
    }
}

/// What a locked instruction makes of the cell that it reads.
#[derive(Clone, Debug)]
pub(crate) enum Modify {
    Swap(Code),
    Add(Code),
    Bits(BinOp, Code),
    Cas {
        old: Code,
        new: Code,
    },
    /// The slot that gets the old value stands for it here.
    New(Code),
}

/// An edge of a thread's graph.
#[derive(Clone, Debug)]
pub(crate) struct CEdge {
    pub id: EdgeId,
    pub instr: CInstr,
    pub to: u32,
}

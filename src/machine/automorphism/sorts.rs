//! Which slots hold the same kind of thing? Slots between which values are copied, or that are compared with
//! each other.

use super::super::compile::{CInstr, CThread, Code, Compiled, Modify, SlotAtom};
use crate::model::{BinOp, Expr, Value};
use petgraph::unionfind::UnionFind;

/// Classes of slots.
pub(super) struct Sorts(UnionFind<u32>);

impl Sorts {
    pub(crate) fn of(code: &Compiled) -> Sorts {
        let mut sorts = Sorts(UnionFind::new(code.memory + code.cells));
        for instr in code.threads.iter().flat_map(CThread::instrs) {
            sorts.learn(code, instr);
        }
        for clause in &code.clauses {
            sorts.compare(&clause.pred, &|a| match a {
                SlotAtom::Value(slot) => Some(*slot),
                SlotAtom::At { .. } => None,
            });
        }
        sorts
    }

    fn join(&mut self, a: u32, b: u32) {
        self.0.union(a, b);
    }

    /// Per slot its sort.
    pub(crate) fn into_labels(self) -> Vec<u32> {
        self.0.into_labeling()
    }

    /// The slot gets what is at an address. Where that has to be computed it may be any cell, so all are of
    /// one sort.
    fn join_cells(&mut self, code: &Compiled, slot: u32, addr: &Code) {
        let any = (code.cells > 0).then_some(code.memory as u32);
        if let Some(cell) = cell_slot(code, addr).or(any) {
            self.join(slot, cell);
        }
    }

    /// A cell at the address gets what an expression is worth.
    fn store(&mut self, code: &Compiled, addr: &Code, value: &Code) {
        if let Code::Slot(s) = value {
            self.join_cells(code, *s, addr);
        }
    }

    fn learn(&mut self, code: &Compiled, instr: &CInstr) {
        for code in instr.codes() {
            self.compare(&code.tree(), &|s| Some(*s));
        }
        if instr.address().is_some_and(|a| !matches!(a, Code::Const(_))) {
            let cells = code.memory..code.memory + code.cells;
            cells.for_each(|cell| self.join(code.memory as u32, cell as u32));
        }
        match instr {
            CInstr::Assign { dst, value: Code::Slot(s) } => self.join(*dst, *s),
            CInstr::Load { dst, addr, .. } => self.join_cells(code, *dst, addr),
            CInstr::Store { addr, value, .. } => self.store(code, addr, value),
            CInstr::Rmw { dst, addr, op } => {
                self.join_cells(code, *dst, addr);
                match op {
                    Modify::Swap(v) => self.store(code, addr, v),
                    Modify::Cas { old, new } => [old, new].iter().for_each(|v| self.store(code, addr, v)),
                    Modify::Add(_) | Modify::Bits(..) | Modify::New(_) => {}
                }
            }
            _ => {}
        }
    }

    /// Slots that are compared with each other.
    fn compare<A>(&mut self, e: &Expr<A>, slot: &impl Fn(&A) -> Option<u32>) {
        match e {
            Expr::Const(_) | Expr::Atom(_) => {}
            Expr::Unary(_, a) => self.compare(a, slot),
            Expr::Binary(op, a, b) => {
                if let (BinOp::Eq | BinOp::Ne, Expr::Atom(a), Expr::Atom(b)) = (op, &**a, &**b)
                    && let (Some(a), Some(b)) = (slot(a), slot(b))
                {
                    self.join(a, b);
                }
                self.compare(a, slot);
                self.compare(b, slot);
            }
        }
    }

    /// Threads that may change places have the same sorts, and so have the cells that they touch in the same
    /// place.
    pub(crate) fn join_threads(&mut self, code: &Compiled, t: usize, u: usize) {
        for (r, s) in code.registers(t).zip(code.registers(u)) {
            self.join(r as u32, s as u32);
        }
        let cell = |instr: &CInstr| cell_slot(code, instr.address()?);
        for (p, q) in code.threads[t].instrs().zip(code.threads[u].instrs()) {
            if let (Some(c), Some(d)) = (cell(p), cell(q)) {
                self.join(c, d);
            }
        }
    }
}

/// The slot of the cell at a constant address.
pub(super) fn cell_slot(code: &Compiled, addr: &Code) -> Option<u32> {
    match addr {
        Code::Const(a) if (0..code.cells as Value).contains(a) => Some((code.memory as Value + a) as u32),
        _ => None,
    }
}

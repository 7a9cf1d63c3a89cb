//! Two threads that change places: what has to move with them, and is that an automorphism?
//!
//! The same comparison of tables serves twice: first it *grows* the swap by the constants in which the two
//! threads differ, then it checks that the swap turns every table into itself.

use super::super::compile::{CClause, CInstr, CThread, Code, Compiled, Fold, Modify, Node, SlotAtom};
use super::sorts::cell_slot;
use crate::analysis::access::Access;
use crate::model::{BinOp, Bytes, Expr, UnOp, Value};
use crate::query::When;
use std::collections::{BTreeMap, BTreeSet};

/// Two threads that change places, and what has to move with them.
pub(super) struct Swap<'a> {
    code: &'a Compiled,
    sorts: &'a [u32],
    pub a: usize,
    pub b: usize,
    /// Cells that change places, both ways, and of each pair the first that was met.
    cells: BTreeMap<u32, u32>,
    pub new_cells: Vec<u32>,
    /// Values of a sort that do, likewise.
    values: BTreeMap<(u32, Value), Value>,
    pub new_values: Vec<(u32, Value)>,
    /// While the swap is being proposed, constants that differ make it grow.
    growing: bool,
}

/// What an expression is used for.
#[derive(Clone, Copy, PartialEq)]
enum Use {
    /// Its exact value matters.
    Number,
    /// It matters whether it is 0.
    Truth,
    /// It is a value of this sort.
    Sort(u32),
}

impl<'a> Swap<'a> {
    /// The swap that the two threads propose, if it is an automorphism.
    pub(crate) fn checked(code: &'a Compiled, sorts: &'a [u32], a: usize, b: usize) -> Option<Swap<'a>> {
        let mut swap = Swap {
            code,
            sorts,
            a,
            b,
            cells: BTreeMap::new(),
            new_cells: vec![],
            values: BTreeMap::new(),
            new_values: vec![],
            growing: true,
        };
        let mut pairs = code.threads[a].instrs().zip(code.threads[b].instrs());
        let proposed = pairs.all(|(p, q)| swap.same_instr(p, q));
        swap.growing = false;
        (proposed && swap.is_automorphism()).then_some(swap)
    }

    fn is_automorphism(&mut self) -> bool {
        let code = self.code;
        (0..code.threads.len()).all(|t| self.same_thread(&code.threads[t], &code.threads[self.thread(t)]))
            && (0..code.bounds.len() as u32).all(|s| self.same_bounds(s))
            && code.observed_cells.iter().all(|c| code.observed_cells.contains(&self.cell(*c)))
            && self.same_goal()
    }

    fn thread(&self, t: usize) -> usize {
        match t {
            t if t == self.a => self.b,
            t if t == self.b => self.a,
            t => t,
        }
    }

    pub(crate) fn cell(&self, cell: u32) -> u32 {
        self.cells.get(&cell).copied().unwrap_or(cell)
    }

    pub(crate) fn value(&self, sort: u32, v: Value) -> Value {
        self.values.get(&(sort, v)).copied().unwrap_or(v)
    }

    /// Does the swap move values of the sort?
    fn moves(&self, sort: u32) -> bool {
        self.values.range((sort, Value::MIN)..=(sort, Value::MAX)).next().is_some()
    }

    fn slot(&self, slot: u32) -> u32 {
        let (code, s) = (self.code, slot as usize);
        if s >= code.memory {
            return code.memory as u32 + self.cell((s - code.memory) as u32);
        }
        if s <= code.threads.len() {
            return if s == code.threads.len() { slot } else { self.thread(s) as u32 };
        }
        let t = code.register_base.partition_point(|&base| base <= s) - 1;
        (code.register_base[self.thread(t)] + s - code.register_base[t]) as u32
    }

    fn same_cell(&mut self, x: Value, y: Value) -> bool {
        let valid = |a: Value| (0..self.code.cells as Value).contains(&a);
        if !valid(x) || !valid(y) {
            return x == y;
        }
        let (x, y) = (x as u32, y as u32);
        let known = self.cells.contains_key(&x) || self.cells.contains_key(&y);
        if x != y && self.growing && !known {
            self.cells.extend([(x, y), (y, x)]);
            self.new_cells.push(x);
        }
        self.growing && x == y || self.cell(x) == y
    }

    fn same_value(&mut self, sort: u32, x: Value, y: Value) -> bool {
        let known = self.values.contains_key(&(sort, x)) || self.values.contains_key(&(sort, y));
        if x != y && self.growing && !known {
            self.values.extend([((sort, x), y), ((sort, y), x)]);
            self.new_values.push((sort, x));
        }
        self.growing && x == y || self.value(sort, x) == y
    }

    fn same_thread(&mut self, t: &CThread, u: &CThread) -> bool {
        let places = |t: &CThread| (t.end, t.trap, t.stuck);
        t.nodes.len() == u.nodes.len()
            && places(t) == places(u)
            && t.to_end == u.to_end
            && t.nodes.iter().zip(&u.nodes).all(|(m, n)| self.same_node(m, n))
    }

    fn same_node(&mut self, m: &Node, n: &Node) -> bool {
        let facts = |n: &Node| (n.scheduling_point, n.may_be_ample, n.may_trap, n.lost, n.visible);
        facts(m) == facts(n)
            && self.access(m.future) == n.future
            && m.next.map(|a| self.access(a)) == n.next
            && m.dead == n.dead
            && m.folded.len() == n.folded.len()
            && m.folded.iter().zip(&n.folded).all(|(d, e)| self.same_fold(d, e))
            && m.edges.len() == n.edges.len()
            && m.edges
                .iter()
                .zip(&n.edges)
                .all(|(d, e)| d.id == e.id && d.to == e.to && self.same_instr(&d.instr, &e.instr))
    }

    fn same_fold(&self, d: &Fold, e: &Fold) -> bool {
        let sort = self.sorts[d.slot as usize];
        let kept: BTreeSet<Value> = d.kept.iter().map(|&v| self.value(sort, v)).collect();
        self.slot(d.slot) == e.slot
            && d.other == e.other
            && self.value(sort, d.other) == d.other
            && kept == e.kept.iter().copied().collect()
    }

    fn access(&self, access: Access) -> Access {
        let moved = |set: u64| {
            let kept = self.cells.keys().fold(set, |set, c| set & !(1 << c));
            let all = self.cells.iter().filter(|(c, _)| set >> **c & 1 != 0);
            all.fold(kept, |set, (_, d)| set | 1 << d)
        };
        Access { reads: moved(access.reads), writes: moved(access.writes) }
    }

    /// Values of the slot and of its image are written down alike, and so is every value that another may
    /// become.
    fn same_bounds(&self, slot: u32) -> bool {
        let sort = self.sorts[slot as usize];
        let bounds = self.code.bounds[slot as usize];
        let moved = self.values.range((sort, Value::MIN)..=(sort, Value::MAX));
        bounds == self.code.bounds[self.slot(slot) as usize]
            && bounds.is_none_or(|i| moved.clone().all(|(_, v)| i.lo <= *v && *v <= i.hi))
    }

    fn same_instr(&mut self, p: &CInstr, q: &CInstr) -> bool {
        let target = |swap: &Swap, d: u32, e: u32| swap.slot(d) == e;
        match (p, q) {
            (CInstr::Assign { dst: d, value: x }, CInstr::Assign { dst: e, value: y }) => {
                target(self, *d, *e) && self.same(x, y, Use::Sort(self.sorts[*d as usize]))
            }
            (CInstr::Any { dst: d, lo, hi }, CInstr::Any { dst: e, lo: l, hi: h }) => {
                target(self, *d, *e) && (lo, hi) == (l, h) && !self.moves(self.sorts[*d as usize])
            }
            (CInstr::Assume(x), CInstr::Assume(y)) | (CInstr::Assert(x), CInstr::Assert(y)) => {
                self.same(x, y, Use::Truth)
            }
            (CInstr::Load { dst: d, addr: a, bytes: p }, CInstr::Load { dst: e, addr: b, bytes: q }) => {
                p == q && self.may_cut(a, *p) && target(self, *d, *e) && self.same_address(a, b)
            }
            (
                CInstr::Store { addr: a, value: x, bytes: p },
                CInstr::Store { addr: b, value: y, bytes: q },
            ) => {
                let used = if p.is_whole() { self.contents(a) } else { Use::Number };
                p == q && self.may_cut(a, *p) && self.same_address(a, b) && self.same(x, y, used)
            }
            (CInstr::Rmw { dst: d, addr: a, op: f }, CInstr::Rmw { dst: e, addr: b, op: g }) => {
                target(self, *d, *e)
                    && self.same_address(a, b)
                    && self.same_modification(f, g, self.contents(a))
            }
            (CInstr::Nop, CInstr::Nop)
            | (CInstr::Fence, CInstr::Fence)
            | (CInstr::Membarrier, CInstr::Membarrier) => true,
            (CInstr::Lock, CInstr::Lock) | (CInstr::Unlock, CInstr::Unlock) => true,
            _ => false,
        }
    }

    fn same_modification(&mut self, f: &Modify, g: &Modify, contents: Use) -> bool {
        match (f, g) {
            (Modify::Swap(x), Modify::Swap(y)) => self.same(x, y, contents),
            (Modify::Bits(o, _), Modify::Bits(p, _)) if o != p => false,
            (Modify::Add(x), Modify::Add(y))
            | (Modify::Bits(_, x), Modify::Bits(_, y))
            | (Modify::New(x), Modify::New(y)) => {
                let plain = !matches!(contents, Use::Sort(sort) if self.moves(sort));
                plain && self.same(x, y, Use::Number)
            }
            (Modify::Cas { old: x, new: v }, Modify::Cas { old: y, new: w }) => {
                self.same(x, y, contents) && self.same(v, w, contents)
            }
            _ => false,
        }
    }

    /// May these bytes of the cell be touched alone? A part of a name is no name.
    fn may_cut(&self, addr: &Code, bytes: Bytes) -> bool {
        bytes.is_whole() || !matches!(self.contents(addr), Use::Sort(sort) if self.moves(sort))
    }

    /// What is stored at an address. Where it has to be computed, all cells are of one sort.
    fn contents(&self, addr: &Code) -> Use {
        let any = || (self.code.cells > 0).then_some(self.code.memory as u32);
        cell_slot(self.code, addr).or_else(any).map_or(Use::Number, |s| Use::Sort(self.sorts[s as usize]))
    }

    fn same_address(&mut self, a: &Code, b: &Code) -> bool {
        match (a, b) {
            (Code::Const(x), Code::Const(y)) => self.same_cell(*x, *y),
            _ => (self.growing || self.cells.is_empty()) && self.same(a, b, Use::Number),
        }
    }

    fn same(&mut self, x: &Code, y: &Code, used: Use) -> bool {
        self.same_expr(&x.tree(), &y.tree(), used)
    }

    fn same_expr(&mut self, x: &Expr<u32>, y: &Expr<u32>, used: Use) -> bool {
        match (x, y) {
            (Expr::Const(c), Expr::Const(d)) => match used {
                Use::Sort(sort) => self.same_value(sort, *c, *d),
                Use::Number | Use::Truth => c == d,
            },
            (Expr::Atom(s), Expr::Atom(u)) => self.slot(*s) == *u && self.may_use(*s, used),
            // The result of an operation is a number, and no other's name.
            _ if matches!(used, Use::Sort(sort) if self.moves(sort)) => false,
            (Expr::Unary(op, a), Expr::Unary(other, b)) => {
                let used = if *op == UnOp::Not { Use::Truth } else { Use::Number };
                op == other && self.same_expr(a, b, used)
            }
            (Expr::Binary(op, a, b), Expr::Binary(other, c, d)) => {
                let used = self.operands(*op, a, b);
                op == other && self.same_expr(a, c, used) && self.same_expr(b, d, used)
            }
            _ => false,
        }
    }

    /// How an operator uses its operands.
    fn operands(&self, op: BinOp, a: &Expr<u32>, b: &Expr<u32>) -> Use {
        match (op, a, b) {
            (BinOp::And | BinOp::Or, ..) => Use::Truth,
            (BinOp::Eq | BinOp::Ne, Expr::Atom(s), _) | (BinOp::Eq | BinOp::Ne, _, Expr::Atom(s)) => {
                Use::Sort(self.sorts[*s as usize])
            }
            _ => Use::Number,
        }
    }

    /// May what is in the slot be used like this, although the swap moves some values?
    fn may_use(&self, slot: u32, used: Use) -> bool {
        let own = self.sorts[slot as usize];
        match used {
            Use::Sort(sort) => sort == own || !self.moves(sort) && !self.moves(own),
            Use::Truth => self.value(own, 0) == 0,
            Use::Number => !self.moves(own),
        }
    }

    /// Does the goal say the same of the image of a state as of the state?
    fn same_goal(&self) -> bool {
        let all = |moved: bool| {
            let one = |c: &CClause| Some((c.when == When::Final, self.term(&c.pred, moved, Use::Truth)?));
            self.code.clauses.iter().map(one).collect::<Option<BTreeSet<_>>>()
        };
        let plain = all(false);
        plain.is_some() && plain == all(true)
    }

    /// A predicate, or its image, in a form that does not depend on the order in which things are said;
    /// `None` if it does arithmetic with values that move.
    fn term(&self, pred: &Expr<SlotAtom>, moved: bool, used: Use) -> Option<Term> {
        Some(match pred {
            Expr::Const(c) => match used {
                Use::Sort(sort) if moved => Term::Const(self.value(sort, *c)),
                _ => Term::Const(*c),
            },
            Expr::Atom(SlotAtom::At { thread, nodes, .. }) => {
                let t = *thread as usize;
                Term::At(if moved { self.thread(t) } else { t }, nodes.iter().copied().collect())
            }
            Expr::Atom(SlotAtom::Value(s)) => {
                self.may_use(*s, used).then_some(())?;
                Term::Value(if moved { self.slot(*s) } else { *s })
            }
            _ if matches!(used, Use::Sort(sort) if self.moves(sort)) => return None,
            Expr::Unary(op, a) => {
                let used = if *op == UnOp::Not { Use::Truth } else { Use::Number };
                Term::Of(op.symbol(), vec![self.term(a, moved, used)?])
            }
            Expr::Binary(op, a, b) => {
                let slot = |e: &Expr<SlotAtom>| match e {
                    Expr::Atom(SlotAtom::Value(s)) => Some(self.sorts[*s as usize]),
                    _ => None,
                };
                let used = match op {
                    BinOp::And | BinOp::Or => Use::Truth,
                    BinOp::Eq | BinOp::Ne => slot(a).or_else(|| slot(b)).map_or(Use::Number, Use::Sort),
                    _ => Use::Number,
                };
                let (a, b) = (self.term(a, moved, used)?, self.term(b, moved, used)?);
                Term::binary(*op, a, b)
            }
        })
    }
}

/// A predicate in which the order of operands that may change places does not show.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Term {
    Const(Value),
    At(usize, BTreeSet<u32>),
    Value(u32),
    Of(&'static str, Vec<Term>),
}

impl Term {
    fn binary(op: BinOp, a: Term, b: Term) -> Term {
        let same = |t: &Term| matches!(t, Term::Of(name, _) if *name == op.symbol());
        let parts = |t: Term| match t {
            Term::Of(_, parts) if matches!(op, BinOp::And | BinOp::Or) => parts,
            other => vec![other],
        };
        let flat = |t: Term| if same(&t) { parts(t) } else { vec![t] };
        let mut all = flat(a);
        all.extend(flat(b));
        if matches!(op, BinOp::And | BinOp::Or | BinOp::Eq | BinOp::Ne) {
            all.sort();
        }
        Term::Of(op.symbol(), all)
    }
}

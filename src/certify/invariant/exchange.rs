//! May two threads change places? Exchanging them, with the cells and values that stand for them, must turn
//! the program into itself, and the goal, and what the invariant says of locations.
//!
//! An exchanged value may be copied and compared with `==` and `!=`, nothing else, and only within its sort;
//! an exchanged cell may be named by constants alone. Then whatever a state can do, its image can do in the
//! image's terms. The initial state need not be its own image: a state and its images are all covered. This
//! is the automorphism of `[EmersonSistla96]`, verified on the program's text.

use super::{Interchangeable, Invariant, Members, Place};
use crate::certify::Doubt;
use crate::model::{
    Addr, Atom, BinOp, Edge, Expr, Instr, Pred, Program, Reg, RegExpr, RmwOp, ThreadId, UnOp, Value,
};
use crate::query::{Goal, When};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// What an expression is used for.
#[derive(Clone, Copy, PartialEq)]
enum UsedAs {
    /// Its exact value matters.
    Number,
    /// It matters whether it is 0.
    Truth,
    /// It is a value of this sort.
    Sort(u32),
}

/// Two members of a group that change places.
struct Exchange<'a> {
    with: &'a Interchangeable,
    threads: (ThreadId, ThreadId),
    cells: BTreeMap<Addr, Addr>,
    values: BTreeMap<(u32, Value), Value>,
}

/// Nothing if every exchange of two members of a group is an automorphism.
pub(super) fn check(program: &Program, goal: &Goal, invariant: &Invariant) -> Result<(), Doubt> {
    let with = &invariant.symmetry;
    if with.groups.is_empty() {
        return Ok(());
    }
    let registers = program.threads().iter().map(|t| t.registers().len());
    let sorted =
        with.register_sorts.iter().map(Vec::len).eq(registers) && with.cell_sorts.len() == program.cells();
    if !sorted || !with.groups.iter().all(|group| is_group(program, group)) {
        return Err(Doubt::refuted("the symmetry is not about this program".to_string()));
    }
    for group in &with.groups {
        for k in 1..group.threads.len() {
            let exchange = Exchange::of(with, group, k);
            let name = |t: ThreadId| program.thread(t).name();
            if let Err(why) = exchange.check(program, goal, &invariant.places) {
                let (a, b) = (name(group.threads[0]), name(group.threads[k]));
                return Err(Doubt::refuted(format!("threads {a} and {b} may not change places: {why}")));
            }
        }
    }
    Ok(())
}

/// Does a group name threads, cells and values, each once?
fn is_group(program: &Program, group: &Members) -> bool {
    let size = group.threads.len();
    let threads: HashSet<ThreadId> = group.threads.iter().copied().collect();
    let cells: HashSet<Addr> = group.cells.iter().flatten().copied().collect();
    let sorts: HashSet<u32> = group.values.iter().map(|(sort, _)| *sort).collect();
    let once = |list: &[Value]| list.len() == size && list.iter().collect::<HashSet<_>>().len() == size;
    threads.len() == size
        && threads.iter().all(|t| t.index() < program.threads().len())
        && group.cells.iter().all(|list| list.len() == size)
        && cells.len() == size * group.cells.len()
        && cells.iter().all(|cell| cell.index() < program.cells())
        && sorts.len() == group.values.len()
        && group.values.iter().all(|(_, list)| once(list))
}

impl<'a> Exchange<'a> {
    /// Of the first member and another.
    fn of(with: &'a Interchangeable, group: &Members, k: usize) -> Exchange<'a> {
        let cells = group.cells.iter().flat_map(|list| [(list[0], list[k]), (list[k], list[0])]);
        let values = group.values.iter();
        let values = values.flat_map(|(s, list)| [((*s, list[0]), list[k]), ((*s, list[k]), list[0])]);
        Exchange {
            with,
            threads: (group.threads[0], group.threads[k]),
            cells: cells.collect(),
            values: values.collect(),
        }
    }

    fn check(&self, program: &Program, goal: &Goal, places: &[Vec<Place>]) -> Result<(), &'static str> {
        for t in program.thread_ids() {
            let (one, other) = (program.thread(t), program.thread(self.thread(t)));
            let sorts = |t: ThreadId| &self.with.register_sorts[t.index()];
            let size = |t: &crate::model::Thread| (t.graph().node_count(), t.graph().edge_count(), t.end());
            if size(one) != size(other) || sorts(t) != sorts(self.thread(t)) {
                return Err("their threads have different shapes");
            }
            let mut edges = one.edges().zip(other.edges());
            if !edges.all(|((_, d), (_, e))| self.same_edge(program, t, d, e)) {
                return Err("an instruction would become another one");
            }
            let mut places = places[t.index()].iter().zip(&places[self.thread(t).index()]);
            if !places.all(|(p, q)| self.same_place(p, q)) {
                return Err("different things are said of their locations");
            }
        }
        let sort = |cell: Addr| self.with.cell_sorts[cell.index()];
        if self.cells.iter().any(|(&c, &d)| sort(c) != sort(d)) {
            return Err("their cells are of different sorts");
        }
        if self.same_goal(goal) { Ok(()) } else { Err("the goal would become another one") }
    }

    fn thread(&self, t: ThreadId) -> ThreadId {
        match t {
            t if t == self.threads.0 => self.threads.1,
            t if t == self.threads.1 => self.threads.0,
            t => t,
        }
    }

    fn cell(&self, cell: Addr) -> Addr {
        self.cells.get(&cell).copied().unwrap_or(cell)
    }

    fn value(&self, sort: u32, v: Value) -> Value {
        self.values.get(&(sort, v)).copied().unwrap_or(v)
    }

    /// Are values of the sort exchanged?
    fn moves(&self, sort: u32) -> bool {
        self.values.range((sort, Value::MIN)..=(sort, Value::MAX)).next().is_some()
    }

    /// May a value go from the one sort to the other as it is?
    fn flows(&self, from: u32, to: u32) -> bool {
        from == to || !self.moves(from) && !self.moves(to)
    }

    fn same_place(&self, p: &Place, q: &Place) -> bool {
        let relevant: BTreeSet<Addr> = p.relevant.iter().map(|&cell| self.cell(cell)).collect();
        p.stop == q.stop && p.live == q.live && relevant.into_iter().eq(q.relevant.iter().copied())
    }

    fn same_edge(&self, program: &Program, t: ThreadId, d: &Edge, e: &Edge) -> bool {
        (d.from, d.to) == (e.from, e.to) && self.same_instr(program, t, &d.instr, &e.instr)
    }

    fn same_instr(&self, program: &Program, t: ThreadId, p: &Instr, q: &Instr) -> bool {
        let sort = |r: Reg| self.with.register_sorts[t.index()][r.index()];
        let same = |x: &RegExpr, y: &RegExpr, used: UsedAs| self.same(t, x, y, used);
        match (p, q) {
            (Instr::Assign { dst, value: x }, Instr::Assign { dst: to, value: y }) => {
                dst == to && same(x, y, UsedAs::Sort(sort(*dst)))
            }
            (Instr::Any { dst, .. }, Instr::Any { .. }) => p == q && !self.moves(sort(*dst)),
            (Instr::Assume(x), Instr::Assume(y)) | (Instr::Assert(x), Instr::Assert(y)) => {
                same(x, y, UsedAs::Truth)
            }
            (Instr::Load { dst, addr: a, .. }, Instr::Load { dst: to, addr: b, .. }) => {
                dst == to
                    && self.same_address(program, t, a, b).is_some_and(|held| self.flows(held, sort(*dst)))
            }
            (Instr::Store { addr: a, value: x, .. }, Instr::Store { addr: b, value: y, .. }) => {
                let held = self.same_address(program, t, a, b);
                held.is_some_and(|held| same(x, y, UsedAs::Sort(held)))
            }
            (Instr::Rmw { dst, addr: a, op: f }, Instr::Rmw { dst: to, addr: b, op: g }) => {
                let held = self.same_address(program, t, a, b);
                let modifies = |held: u32| match (f, g) {
                    _ if f.combines().is_some() => {
                        let (one, other) = (f.combines(), g.combines());
                        let alike = |((p, x), (q, y)): ((BinOp, &RegExpr), (BinOp, &RegExpr))| {
                            p == q && !self.moves(held) && same(x, y, UsedAs::Number)
                        };
                        one.zip(other).is_some_and(alike)
                    }
                    (RmwOp::New(x), RmwOp::New(y)) => !self.moves(held) && same(x, y, UsedAs::Number),
                    (RmwOp::Swap(x), RmwOp::Swap(y)) => same(x, y, UsedAs::Sort(held)),
                    (RmwOp::Cas { old: x, new: v }, RmwOp::Cas { old: y, new: w }) => {
                        same(x, y, UsedAs::Sort(held)) && same(v, w, UsedAs::Sort(held))
                    }
                    _ => false,
                };
                dst == to && held.is_some_and(|held| self.flows(held, sort(*dst)) && modifies(held))
            }
            (Instr::Nop, Instr::Nop)
            | (Instr::Fence, Instr::Fence)
            | (Instr::Membarrier, Instr::Membarrier) => true,
            (Instr::Partial(kinds), Instr::Partial(others)) => kinds == others,
            (Instr::Lock, Instr::Lock) | (Instr::Unlock, Instr::Unlock) => true,
            _ => false,
        }
    }

    /// The sort of what is at an address, if the other address is its image.
    fn same_address(&self, program: &Program, t: ThreadId, a: &RegExpr, b: &RegExpr) -> Option<u32> {
        let sorts = &self.with.cell_sorts;
        if let (Expr::Const(x), Expr::Const(y)) = (a, b) {
            // Outside memory there is nothing to exchange, and nothing held.
            let Some(cell) = program.cell(*x) else { return (x == y).then(|| sorts.first().copied())? };
            return (program.cell(*y) == Some(self.cell(cell))).then_some(sorts[cell.index()]);
        }
        // It may be any cell: none may be exchanged, and values of all are alike.
        let first = *sorts.first()?;
        let alike = self.cells.is_empty() && sorts.iter().all(|&sort| self.flows(sort, first));
        (alike && self.same(t, a, b, UsedAs::Number)).then_some(first)
    }

    /// Is the one expression worth, to the thread's image, what the image of the other is worth to the thread?
    fn same(&self, t: ThreadId, x: &RegExpr, y: &RegExpr, used: UsedAs) -> bool {
        let sort = |r: &Reg| self.with.register_sorts[t.index()][r.index()];
        let atom = |r: &Reg, s: &Reg, used| r == s && self.may_be(sort(r), used);
        self.same_expr(x, y, used, &atom, &|e| match e {
            Expr::Atom(r) => Some(sort(r)),
            _ => None,
        })
    }

    fn same_expr<A>(
        &self,
        x: &Expr<A>,
        y: &Expr<A>,
        used: UsedAs,
        atom: &impl Fn(&A, &A, UsedAs) -> bool,
        sort: &impl Fn(&Expr<A>) -> Option<u32>,
    ) -> bool {
        match (x, y) {
            (Expr::Const(c), Expr::Const(d)) => match used {
                UsedAs::Sort(sort) => self.value(sort, *c) == *d,
                UsedAs::Number | UsedAs::Truth => c == d,
            },
            (Expr::Atom(a), Expr::Atom(b)) => atom(a, b, used),
            // The result of an operation is a number, and stands for nobody.
            _ if matches!(used, UsedAs::Sort(sort) if self.moves(sort)) => false,
            (Expr::Unary(op, a), Expr::Unary(other, b)) => {
                op == other && self.same_expr(a, b, operand(*op), atom, sort)
            }
            (Expr::Binary(op, a, b), Expr::Binary(other, c, d)) => {
                let used = operands(*op, sort(a).or_else(|| sort(b)));
                op == other
                    && self.same_expr(a, c, used, atom, sort)
                    && self.same_expr(b, d, used, atom, sort)
            }
            _ => false,
        }
    }

    /// May a value of the sort be used like this, although some are exchanged?
    fn may_be(&self, own: u32, used: UsedAs) -> bool {
        match used {
            UsedAs::Sort(sort) => self.flows(own, sort),
            UsedAs::Truth => self.value(own, 0) == 0,
            UsedAs::Number => !self.moves(own),
        }
    }

    /// Does the goal say the same of a state's image as of the state?
    fn same_goal(&self, goal: &Goal) -> bool {
        let all = |exchanged: bool| {
            let clauses = goal.clauses.iter();
            let term = |pred| self.term(pred, exchanged, UsedAs::Truth);
            clauses.map(|c| Some((c.when == When::Final, term(&c.pred)?))).collect::<Option<BTreeSet<_>>>()
        };
        let plain = all(false);
        plain.is_some() && plain == all(true)
    }

    /// A predicate or its image, however it is written; `None` if it computes with values that are exchanged.
    fn term(&self, pred: &Pred, exchanged: bool, used: UsedAs) -> Option<Formula> {
        let thread = |t: ThreadId| if exchanged { self.thread(t) } else { t };
        Some(match pred {
            Expr::Const(c) => match used {
                UsedAs::Sort(sort) if exchanged => Formula::Const(self.value(sort, *c)),
                _ => Formula::Const(*c),
            },
            Expr::Atom(Atom::At(t, locs)) => Formula::At(thread(*t), locs.iter().map(|loc| loc.0).collect()),
            Expr::Atom(atom) => {
                self.may_be(self.sort_of(atom)?, used).then_some(())?;
                match atom {
                    Atom::Reg(t, r) => Formula::Register(thread(*t), *r),
                    Atom::Mem(cell) => Formula::Cell(if exchanged { self.cell(*cell) } else { *cell }),
                    Atom::At(..) => unreachable!("places were looked at above"),
                }
            }
            _ if matches!(used, UsedAs::Sort(sort) if self.moves(sort)) => return None,
            Expr::Unary(op, a) => Formula::of(op.symbol(), vec![self.term(a, exchanged, operand(*op))?]),
            Expr::Binary(op, a, b) => {
                let sort = |e: &Pred| match e {
                    Expr::Atom(atom) => self.sort_of(atom),
                    _ => None,
                };
                let used = operands(*op, sort(a).or_else(|| sort(b)));
                let (a, b) = (self.term(a, exchanged, used)?, self.term(b, exchanged, used)?);
                Formula::binary(*op, a, b)
            }
        })
    }

    fn sort_of(&self, atom: &Atom) -> Option<u32> {
        match atom {
            Atom::At(..) => None,
            Atom::Reg(t, r) => Some(self.with.register_sorts[t.index()][r.index()]),
            Atom::Mem(cell) => Some(self.with.cell_sorts[cell.index()]),
        }
    }
}

/// How an operator uses its operand.
fn operand(op: UnOp) -> UsedAs {
    if op == UnOp::Not { UsedAs::Truth } else { UsedAs::Number }
}

/// How an operator uses its operands, of which one has this sort.
fn operands(op: BinOp, sort: Option<u32>) -> UsedAs {
    match (op, sort) {
        (BinOp::And | BinOp::Or, _) => UsedAs::Truth,
        (BinOp::Eq | BinOp::Ne, Some(sort)) => UsedAs::Sort(sort),
        _ => UsedAs::Number,
    }
}

/// A predicate in which the order of operands that may change places does not show.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Formula {
    Const(Value),
    At(ThreadId, BTreeSet<u32>),
    Register(ThreadId, Reg),
    Cell(Addr),
    Of(&'static str, Vec<Formula>),
}

impl Formula {
    fn of(op: &'static str, operands: Vec<Formula>) -> Formula {
        Formula::Of(op, operands)
    }

    fn binary(op: BinOp, a: Formula, b: Formula) -> Formula {
        let name = op.symbol();
        let mut operands = match op {
            // Both sides are taken apart as far as they are made with the same operator.
            BinOp::And | BinOp::Or => [a, b].into_iter().flat_map(|part| part.parts(name)).collect(),
            _ => vec![a, b],
        };
        if matches!(op, BinOp::And | BinOp::Or | BinOp::Eq | BinOp::Ne) {
            operands.sort();
        }
        Formula::Of(name, operands)
    }

    fn parts(self, name: &str) -> Vec<Formula> {
        match self {
            Formula::Of(op, parts) if op == name => parts,
            other => vec![other],
        }
    }
}

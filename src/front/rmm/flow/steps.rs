//! What does one statement do? Steps of the model for reads, writes and locked blocks, with their domains.
//!
//! A value outside the domain of where it goes blocks the process: an `assume` beside the step, left out
//! where the domains of the registers show that it holds. A location's domain thus bounds what is read from
//! it, too. A locked block with a write is a `lock` block; `cas` and `locked write` alone are single locked
//! instructions. A block without a write is no fence: with one read at most it is its statements, since
//! no thread sees the steps between; with several it needs the lock, which `flow` allows where it makes no
//! difference.

use super::{Builder, Built};
use crate::analysis::interval::{self, Interval};
use crate::front::const_fold;
use crate::front::diagnostics::{Problem, Reported};
use crate::front::rmm::ast::{Name, PlaceKind, RmmPlace, Stmt, StmtKind, Term};
use crate::model::{BinOp, Bytes, Expr, Instr, Loc, Reg, RegExpr, RmwOp, Value};
use std::ops::Range;

/// A memory location once names are known.
struct Target {
    addr: RegExpr,
    /// Holds if the address is one.
    guard: Option<RegExpr>,
    /// The cells it may mean.
    cells: Range<usize>,
}

impl<'s> Builder<'s, '_, '_> {
    /// A statement without statements inside, or a locked block.
    pub(super) fn simple(&mut self, stmt: &Stmt<'s>, from: Loc, to: Loc) -> Built<()> {
        if let StmtKind::Locked(lists) = &stmt.kind {
            return match lists.as_slice() {
                [list] if is_locked_instruction(list) => self.locked_instruction(stmt, &list[0], from, to),
                _ => self.block(stmt, lists, from, to),
            };
        }
        match self.steps(stmt, Inside::Process) {
            Ok(steps) => self.chain(stmt, from, to, steps),
            Err(Reported) => Ok(()),
        }
    }

    fn locked_instruction(&mut self, block: &Stmt<'s>, inner: &Stmt<'s>, from: Loc, to: Loc) -> Built<()> {
        self.check_label(inner);
        let steps = match &inner.kind {
            StmtKind::Store(place, value) => self.store(place, value, true),
            _ => self.steps(inner, Inside::Process),
        };
        match steps {
            Ok(steps) => self.chain(block, from, to, steps),
            Err(Reported) => Ok(()),
        }
    }

    fn block(&mut self, stmt: &Stmt<'s>, lists: &[Vec<Stmt<'s>>], from: Loc, to: Loc) -> Built<()> {
        let writes = lists.iter().any(|list| list.iter().any(is_write));
        let reads = lists.iter().map(|list| list.iter().map(reads).sum::<usize>()).max().unwrap_or(0);
        if !writes && reads <= 1 {
            return lists.iter().try_for_each(|list| self.inner_list(stmt, list, from, to));
        }
        if !writes {
            self.reading_blocks.push((from, stmt.span));
        }
        let (begin, end) = (self.fresh_within(), self.fresh_within());
        self.edge(stmt, from, begin, Instr::Lock)?;
        lists.iter().try_for_each(|list| self.inner_list(stmt, list, begin, end))?;
        self.edge(stmt, end, to, Instr::Unlock)
    }

    fn inner_list(&mut self, block: &Stmt<'s>, list: &[Stmt<'s>], from: Loc, to: Loc) -> Built<()> {
        let mut at = from;
        for (i, stmt) in list.iter().enumerate() {
            let next = if i + 1 == list.len() { to } else { self.fresh_within() };
            self.inner(stmt, at, next)?;
            at = next;
        }
        if list.is_empty() { self.jump(block, from, to) } else { Ok(()) }
    }

    /// A statement of a locked block.
    fn inner(&mut self, stmt: &Stmt<'s>, from: Loc, to: Loc) -> Built<()> {
        self.check_label(stmt);
        match &stmt.kind {
            StmtKind::Block(list) => self.inner_list(stmt, list, from, to),
            StmtKind::Locked(lists) => {
                lists.iter().try_for_each(|list| self.inner_list(stmt, list, from, to))
            }
            StmtKind::If(..)
            | StmtKind::While(..)
            | StmtKind::Either(_)
            | StmtKind::Goto(_)
            | StmtKind::Fence => {
                let word = stmt.text.split([' ', '{']).next().unwrap_or_default();
                let problem = Problem::error(format!("`{word}` inside a locked block")).at(stmt.span);
                let help = "it has `nop`, `:=`, `assume`, `read`, `write`, `cas` and locked blocks; ways part with `or`";
                self.problems.report(problem.help(help));
                Ok(())
            }
            _ => match self.steps(stmt, Inside::Block) {
                Ok(steps) => self.chain(stmt, from, to, steps),
                Err(Reported) => Ok(()),
            },
        }
    }

    fn check_label(&mut self, stmt: &Stmt<'s>) {
        if let Some(label) = &stmt.label {
            let problem = Problem::error("a label inside a locked block").at(label.span);
            self.problems.report(problem.help("nobody can see a process there"));
        }
    }

    fn chain(&mut self, stmt: &Stmt<'s>, from: Loc, to: Loc, steps: Vec<Instr>) -> Built<()> {
        let (mut at, last) = (from, steps.len().saturating_sub(1));
        for (i, instr) in steps.into_iter().enumerate() {
            let next = if i == last { to } else { self.fresh_within() };
            self.edge(stmt, at, next, instr)?;
            at = next;
        }
        Ok(())
    }

    fn steps(&mut self, stmt: &Stmt<'s>, inside: Inside) -> Built<Vec<Instr>> {
        let locked = inside == Inside::Process;
        match &stmt.kind {
            StmtKind::Assign(register, value) => {
                let dst = self.register(register);
                let value = self.expr(value)?;
                let dst = dst?;
                let range = self.range(&value);
                let fits = within(&Expr::Atom(dst), range, self.domain(dst));
                Ok([Some(Instr::Assign { dst, value }), fits.map(Instr::Assume)]
                    .into_iter()
                    .flatten()
                    .collect())
            }
            StmtKind::Assume(condition) => Ok(vec![Instr::Assume(self.expr(condition)?)]),
            StmtKind::Load(register, place) => {
                let dst = self.register(register);
                let Target { addr, guard, cells } = self.target(place)?;
                let dst = dst?;
                let fits = within(&Expr::Atom(dst), self.contents(cells), self.domain(dst));
                let load = Instr::Load { dst, addr, bytes: Bytes::WHOLE };
                Ok([guard.map(Instr::Assume), Some(load), fits.map(Instr::Assume)]
                    .into_iter()
                    .flatten()
                    .collect())
            }
            StmtKind::Expect(place, value) => {
                let target = self.target(place);
                let value = self.expr(value)?;
                let Target { addr, guard, .. } = target?;
                let load = Instr::Load { dst: self.scratch, addr, bytes: Bytes::WHOLE };
                let equal = Instr::Assume(self.scratch_is(value));
                Ok(guard.map(Instr::Assume).into_iter().chain([load, equal]).collect())
            }
            StmtKind::Store(place, value) => self.store(place, value, false),
            StmtKind::LockedStore(place, value) => self.store(place, value, locked),
            StmtKind::Cas(place, old, new) => self.cas(place, old, new, locked),
            StmtKind::Fence => Ok(vec![Instr::Fence]),
            StmtKind::Partial(kinds) => Ok(vec![Instr::Partial(*kinds)]),
            _ => Ok(vec![Instr::Nop]),
        }
    }

    fn store(&mut self, place: &RmmPlace<'s>, value: &Term<'s>, locked: bool) -> Built<Vec<Instr>> {
        let target = self.target(place);
        let value = self.expr(value)?;
        let target = target?;
        let fits = self.fits(&target, &value);
        let Target { addr, guard, .. } = target;
        let store = match locked {
            true => Instr::Rmw { dst: self.scratch, addr, op: RmwOp::Swap(value) },
            false => Instr::Store { addr, value, bytes: Bytes::WHOLE },
        };
        Ok(guard.into_iter().chain(fits).map(Instr::Assume).chain([store]).collect())
    }

    fn cas(
        &mut self,
        place: &RmmPlace<'s>,
        old: &Term<'s>,
        new: &Term<'s>,
        locked: bool,
    ) -> Built<Vec<Instr>> {
        let (target, old, new) = (self.target(place), self.expr(old), self.expr(new));
        let (target, old, new) = (target?, old?, new?);
        let fits = self.fits(&target, &new);
        let Target { addr, guard, .. } = target;
        let equal = Instr::Assume(self.scratch_is(old.clone()));
        let steps = match locked {
            true => vec![Instr::Rmw { dst: self.scratch, addr, op: RmwOp::Cas { old, new } }, equal],
            false => {
                let load = Instr::Load { dst: self.scratch, addr: addr.clone(), bytes: Bytes::WHOLE };
                vec![load, equal, Instr::Store { addr, value: new, bytes: Bytes::WHOLE }]
            }
        };
        Ok(guard.into_iter().chain(fits).map(Instr::Assume).chain(steps).collect())
    }

    fn scratch_is(&self, value: RegExpr) -> RegExpr {
        Expr::binary(BinOp::Eq, Expr::Atom(self.scratch), value)
    }

    fn target(&mut self, place: &RmmPlace<'s>) -> Built<Target> {
        let PlaceKind::Pointer(pointer) = &place.kind else {
            let cell = self.names.resolve(place, self.number, self.problems)?;
            return Ok(Target { addr: Expr::Const(cell as Value), guard: None, cells: cell..cell + 1 });
        };
        let addr = self.expr(pointer)?;
        let range = self.range(&addr);
        let cells = self.names.pointed_at(range);
        if cells.is_empty() {
            let problem = Problem::error("this points at nothing").at(place.span);
            let count = self.names.globals;
            let label = match range.lo == range.hi {
                true => format!("{}, and there are {count} globals, from 0 up", range.lo),
                false => format!("{} to {}, and there are {count} globals, from 0 up", range.lo, range.hi),
            };
            return Err(self.problems.report(problem.label(label)));
        }
        let all = Interval { lo: 0, hi: self.names.globals as Value - 1 };
        let guard = within(&addr, range, all);
        Ok(Target { addr, guard, cells })
    }

    /// What must hold for the value to be in the domain of where it goes, if that is not certain.
    fn fits(&self, target: &Target, value: &RegExpr) -> Option<RegExpr> {
        let range = self.range(value);
        let domain = |cell: usize| self.names.cells[cell].decl.domain;
        let first = domain(target.cells.start);
        if target.cells.clone().all(|cell| domain(cell) == first) {
            return within(value, range, first);
        }
        if target.cells.clone().all(|cell| within(value, range, domain(cell)).is_none()) {
            return None;
        }
        let one = |cell: usize| {
            let here = Expr::binary(BinOp::Eq, target.addr.clone(), Expr::Const(cell as Value));
            match within(value, range, domain(cell)) {
                Some(fits) => Expr::binary(BinOp::And, here, fits),
                None => here,
            }
        };
        const_fold::join(target.cells.clone().map(one).collect(), &mut |a, b| Expr::binary(BinOp::Or, a, b))
    }

    /// The values that these cells can hold.
    fn contents(&self, cells: Range<usize>) -> Interval {
        let domains = cells.map(|cell| self.names.cells[cell].decl.domain);
        domains.reduce(Interval::join).unwrap_or(Interval::FULL)
    }

    fn domain(&self, register: Reg) -> Interval {
        let declared = &self.names.processes[self.number].process.registers;
        declared.get(register.index()).map_or(Interval::FULL, |r| r.domain)
    }

    fn range(&self, e: &RegExpr) -> Interval {
        interval::range(e, &|r| self.domain(*r))
    }

    fn register(&mut self, name: &Name<'s>) -> Built<Reg> {
        if let Some(register) = self.registers.get(name.text) {
            return Ok(*register);
        }
        if self.names.is_doubtful(name.text) {
            return Err(Reported);
        }
        let meant = self.problems.nearest(name.text, self.registers.keys().copied());
        let problem = Problem::error(format!("unknown register `{}`", name.text)).at(name.span);
        let problem = match meant {
            Some(_) => problem.suggest(meant),
            None => problem.help(format!("declare it before `text`: `registers {} = 0`", name.text)),
        };
        Err(self.problems.report(problem))
    }

    pub(super) fn expr(&mut self, term: &Term<'s>) -> Built<RegExpr> {
        self.tree(&term.expr)
    }

    fn tree(&mut self, e: &Expr<Name<'s>>) -> Built<RegExpr> {
        Ok(match e {
            Expr::Const(c) => Expr::Const(*c),
            Expr::Atom(name) => Expr::Atom(self.register(name)?),
            Expr::Unary(op, a) => Expr::unary(*op, self.tree(a)?),
            Expr::Binary(op, a, b) => {
                let (a, b) = (self.tree(a), self.tree(b));
                Expr::binary(*op, a?, b?)
            }
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Inside {
    Process,
    /// Between `lock` and `unlock`.
    Block,
}

/// What is left to check for an expression with values in `range` to be in `domain`.
fn within(e: &RegExpr, range: Interval, domain: Interval) -> Option<RegExpr> {
    let low = (range.lo < domain.lo).then(|| Expr::binary(BinOp::Ge, e.clone(), Expr::Const(domain.lo)));
    let high = (range.hi > domain.hi).then(|| Expr::binary(BinOp::Le, e.clone(), Expr::Const(domain.hi)));
    match (low, high) {
        (Some(low), Some(high)) => Some(Expr::binary(BinOp::And, low, high)),
        (low, high) => low.or(high),
    }
}

fn is_locked_instruction(list: &[Stmt]) -> bool {
    let one =
        |s: &Stmt| matches!(s.kind, StmtKind::Store(..) | StmtKind::LockedStore(..) | StmtKind::Cas(..));
    matches!(list, [only] if one(only))
}

fn is_write(stmt: &Stmt) -> bool {
    match &stmt.kind {
        StmtKind::Store(..) | StmtKind::LockedStore(..) | StmtKind::Cas(..) => true,
        StmtKind::Block(list) => list.iter().any(is_write),
        StmtKind::Locked(lists) => lists.iter().flatten().any(is_write),
        _ => false,
    }
}

/// How many reads of memory there are, on the way with the most of them.
fn reads(stmt: &Stmt) -> usize {
    let sum = |list: &Vec<Stmt>| list.iter().map(reads).sum::<usize>();
    match &stmt.kind {
        StmtKind::Load(..) | StmtKind::Expect(..) => 1,
        StmtKind::Block(list) => sum(list),
        StmtKind::Locked(lists) => lists.iter().map(sum).max().unwrap_or(0),
        _ => 0,
    }
}

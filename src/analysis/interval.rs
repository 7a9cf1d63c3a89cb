//! How large can values become? An interval for every register at every location and for every cell.
//!
//! Abstract interpretation with intervals `[Cousot77]`: registers flow-sensitively along each thread's graph,
//! refined by `assume`; memory as one interval per cell, joined over all stores of all threads, which holds
//! under every interleaving and every buffering. Widening climbs the constants of the program, then gives up
//! at the full 64-bit range, so the analysis always ends. Used for the widths of packed states and for the
//! cells that computed addresses may touch; a wider answer costs memory, never correctness.

mod domain;
mod registers;

pub use domain::{Interval, range};

use domain::{binary, mirrored, narrowed, truth, without};
use registers::{PIECE, Registers, grow};

use crate::limits::{Limit, Limits};
use crate::model::{
    BinOp, Edge, Expr, Instr, Loc, Program, Reg, RegExpr, RmwOp, Thread, ThreadId, UnOp, Value,
};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

/// Analyses of larger threads would cost more than they save; they get full ranges.
const MAX_WORK: usize = 20_000_000;
/// A store to a wider range of addresses is kept once for all cells, not cell by cell.
const MAX_RANGE: i64 = 4096;
const MAX_THRESHOLDS: usize = 64;
/// Visits of a location, or rounds over memory, before widening.
const PATIENCE: u32 = 3;
/// Values that wander from cell to cell for longer than this may be anywhere.
const MAX_ROUNDS: u32 = 64;

#[derive(Clone, Debug)]
pub struct Intervals {
    cells: Vec<Interval>,
    /// Values stored to addresses of a wide range: they may be in any cell.
    anywhere: Option<Interval>,
    /// Per thread and location the registers; `None` where no path leads.
    registers: Vec<Vec<Option<Registers>>>,
    /// The analysis was skipped: everything may be anything.
    skipped: bool,
}

impl Intervals {
    pub fn of(program: &Program, limits: &Limits) -> Result<Intervals, Limit> {
        let work: usize = program.threads().iter().map(size).sum();
        if work > MAX_WORK {
            return Ok(Intervals::skipped(program));
        }
        let (thresholds, result) = (thresholds(program), Intervals::bottom(program));
        let mut analysis =
            Analysis { program, thresholds, result, limits, growth: 0, ranges: HashMap::new() };
        analysis.run()?;
        Ok(analysis.result)
    }

    fn bottom(program: &Program) -> Intervals {
        let cells = program.initial_memory().iter().map(|&v| Interval::constant(v)).collect();
        let registers = program.threads().iter().map(|t| vec![None; t.graph().node_count()]).collect();
        Intervals { cells, anywhere: None, registers, skipped: false }
    }

    /// No knowledge at all, which is always right.
    pub fn skipped(program: &Program) -> Intervals {
        Intervals {
            cells: vec![Interval::FULL; program.cells()],
            anywhere: None,
            registers: Vec::new(),
            skipped: true,
        }
    }

    pub fn cell(&self, a: usize) -> Interval {
        match self.anywhere {
            Some(i) => self.cells[a].join(i),
            None => self.cells[a],
        }
    }

    /// The register's values at the location; `None` where no path leads.
    pub fn register(&self, t: ThreadId, loc: Loc, r: Reg) -> Option<Interval> {
        if self.skipped {
            return Some(Interval::FULL);
        }
        self.registers[t.index()][loc.index()].as_ref().map(|regs| regs.get(r))
    }

    /// May a register, somewhere, hold such values?
    pub fn any_register(
        &self,
        program: &Program,
        such: impl Fn(Interval) -> bool,
        limits: &Limits,
    ) -> Result<bool, Limit> {
        if self.skipped {
            return Ok(program.threads().iter().any(|t| !t.registers().is_empty()) && such(Interval::FULL));
        }
        for thread in &self.registers {
            let mut last: &[Rc<[Interval]>] = &[];
            for here in thread.iter().flatten().map(Registers::pieces) {
                limits.spend(1 + here.len())?;
                let known =
                    |k: usize, piece: &Rc<[Interval]>| last.get(k).is_some_and(|l| Rc::ptr_eq(l, piece));
                let mut new = here.iter().enumerate().filter(|(k, piece)| !known(*k, piece));
                if new.any(|(_, piece)| piece.iter().any(|&i| such(i))) {
                    return Ok(true);
                }
                last = here;
            }
        }
        Ok(false)
    }

    pub fn is_reachable(&self, t: ThreadId, loc: Loc) -> bool {
        self.skipped || self.registers[t.index()][loc.index()].is_some()
    }

    /// Can a run take the edge? Not if no path leads to it, and not if it assumes what no value there makes
    /// true. What goes wrong on an edge takes it.
    pub fn is_feasible(&self, t: ThreadId, edge: &Edge) -> bool {
        if self.skipped {
            return true;
        }
        match (&self.registers[t.index()][edge.from.index()], &edge.instr) {
            (None, _) => false,
            (Some(regs), Instr::Assume(e)) if !e.may_divide_by_zero() => {
                refine(e, true, &mut regs.clone()).is_some()
            }
            (Some(_), _) => true,
        }
    }

    /// Might a run that takes the edge divide by zero there, or access what lies outside memory?
    pub fn may_compute_wrongly(&self, t: ThreadId, edge: &Edge) -> bool {
        let outside = edge.instr.address().is_some() && {
            let Interval { lo, hi } = self.address(t, edge);
            lo < 0 || hi >= self.cells.len() as Value
        };
        outside || edge.instr.exprs().iter().any(|e| e.may_divide_by_zero())
    }

    /// Might a run that takes the edge find the assertion on it false?
    pub fn may_fail(&self, t: ThreadId, edge: &Edge) -> bool {
        let Instr::Assert(e) = &edge.instr else { return false };
        let registers = self.registers.get(t.index()).and_then(|at| at[edge.from.index()].clone());
        registers.is_none_or(|mut regs| refine(e, false, &mut regs).is_some())
    }

    /// The register's values wherever its thread may stand.
    pub fn register_anywhere(&self, t: ThreadId, r: Reg) -> Interval {
        let start = Interval::constant(0);
        if self.skipped {
            return Interval::FULL;
        }
        let known = self.registers[t.index()].iter().flatten();
        known.map(|regs| regs.get(r)).fold(start, Interval::join)
    }

    /// The addresses an edge may access.
    pub fn address(&self, t: ThreadId, edge: &Edge) -> Interval {
        let Some(addr) = edge.instr.address() else { return Interval::FULL };
        if let Some(a) = addr.constant() {
            return Interval::constant(a);
        }
        if self.skipped {
            return Interval::FULL;
        }
        match &self.registers[t.index()][edge.from.index()] {
            Some(regs) => eval(addr, regs),
            None => Interval::FULL,
        }
    }
}

fn size(thread: &Thread) -> usize {
    thread.graph().node_count().saturating_mul(thread.registers().len() + 1)
}

/// Bounds worth stopping at: the constants of the program and their neighbours.
fn thresholds(program: &Program) -> Vec<Value> {
    fn constants(e: &RegExpr, out: &mut BTreeSet<Value>) {
        match e {
            Expr::Const(c) => out.extend([c.saturating_sub(1), *c, c.saturating_add(1)]),
            Expr::Atom(_) => {}
            Expr::Unary(_, a) => constants(a, out),
            Expr::Binary(_, a, b) => {
                constants(a, out);
                constants(b, out);
            }
        }
    }
    let mut all = BTreeSet::from([0, 1, program.cells() as Value - 1]);
    for (_, edge) in program.threads().iter().flat_map(|t| t.edges()) {
        edge.instr.exprs().into_iter().for_each(|e| constants(e, &mut all));
    }
    let mut nearest: Vec<Value> = all.into_iter().collect();
    nearest.sort_by_key(|v| v.unsigned_abs());
    nearest.truncate(MAX_THRESHOLDS);
    nearest.sort();
    nearest
}

struct Analysis<'a> {
    program: &'a Program,
    thresholds: Vec<Value>,
    result: Intervals,
    limits: &'a Limits,
    /// How often a cell has grown.
    growth: u64,
    /// What wide ranges of cells held, and when: many loads and stores with a computed address have the same.
    ranges: HashMap<(Value, Value), Range>,
}

/// What is known of a range of cells.
#[derive(Clone, Copy, Default)]
struct Range {
    /// All that they held when so much had grown.
    held: Option<(u64, Interval)>,
    /// The value that was stored last, which is in them all, as of so much growth.
    stored: Option<(u64, Interval)>,
}

/// Ranges of fewer cells are as soon looked at.
const WIDE: Value = 16;

impl Analysis<'_> {
    /// Rounds over all threads until memory no longer grows.
    fn run(&mut self) -> Result<(), Limit> {
        for round in 0.. {
            self.limits.spend(self.program.cells())?;
            if round == MAX_ROUNDS {
                self.result.anywhere = Some(Interval::FULL);
            }
            let before = (self.growth, self.result.anywhere);
            for t in self.program.thread_ids() {
                self.thread(t, round)?;
            }
            if before == (self.growth, self.result.anywhere) {
                break;
            }
        }
        Ok(())
    }

    fn thread(&mut self, t: ThreadId, round: u32) -> Result<(), Limit> {
        let thread = self.program.thread(t);
        let start = Registers::new(thread.registers().len());
        let effort = 1 + thread.registers().len() / PIECE;
        let mut visits = vec![0u32; thread.graph().node_count()];
        let mut todo = Vec::new();
        self.flow(t, thread.initial(), start, &mut visits, &mut todo);
        // Memory may have grown since the last round, so every known location is looked at again. The first
        // comes off the stack first, and takes with it what follows: the other way round, each of many loads
        // would send its own wave through the rest of the thread.
        todo.extend(thread.locations().filter(|&l| self.result.is_reachable(t, l)));
        todo.reverse();
        while let Some(loc) = todo.pop() {
            let Some(regs) = self.result.registers[t.index()][loc.index()].clone() else { continue };
            for (_, edge) in thread.edges_from(loc) {
                self.limits.spend(effort)?;
                self.store(&edge.instr, &regs, round)?;
                if let Some(after) = self.after(&edge.instr, &regs)? {
                    self.flow(t, edge.to, after, &mut visits, &mut todo);
                }
            }
        }
        Ok(())
    }

    /// Joins `regs` into what is known at `loc`.
    fn flow(&mut self, t: ThreadId, loc: Loc, regs: Registers, visits: &mut [u32], todo: &mut Vec<Loc>) {
        let thresholds = &self.thresholds;
        let known = &mut self.result.registers[t.index()][loc.index()];
        match known {
            None => *known = Some(regs),
            Some(old) => {
                visits[loc.index()] += 1;
                let widen = visits[loc.index()] > PATIENCE;
                if !old.grow(&regs, widen, thresholds) {
                    return;
                }
            }
        }
        todo.push(loc);
    }

    fn store(&mut self, instr: &Instr, regs: &Registers, round: u32) -> Result<(), Limit> {
        let (address, value) = match instr {
            Instr::Store { addr, value, bytes } => {
                let (address, value) = (eval(addr, regs), eval(value, regs));
                if bytes.is_whole() {
                    (address, value)
                } else {
                    // Whatever the cell may hold keeps its other bytes. So does what a thread sees that merges its
                    // own stores with memory: it is what memory would hold if they had reached it.
                    let Some(old) = self.read(address)? else { return Ok(()) };
                    let bits = |i, bits| binary(BinOp::BitAnd, i, Interval::constant(bits));
                    (address, binary(BinOp::BitOr, bits(old, !bytes.bits()), bits(value, bytes.bits())))
                }
            }
            Instr::Rmw { dst, addr, op } => {
                let address = eval(addr, regs);
                let Some(old) = self.read(address)? else { return Ok(()) };
                let new = match op {
                    RmwOp::Swap(v) => eval(v, regs),
                    RmwOp::Add(v) => binary(BinOp::Add, old, eval(v, regs)),
                    RmwOp::And(v) => binary(BinOp::BitAnd, old, eval(v, regs)),
                    RmwOp::Or(v) => binary(BinOp::BitOr, old, eval(v, regs)),
                    RmwOp::Xor(v) => binary(BinOp::BitXor, old, eval(v, regs)),
                    RmwOp::Cas { new, .. } => eval(new, regs),
                    RmwOp::New(v) => {
                        let mut with_old = regs.clone();
                        with_old.set(*dst, old);
                        eval(v, &with_old)
                    }
                };
                (address, new)
            }
            _ => return Ok(()),
        };
        let Some(range) = self.cells_in(address) else { return Ok(()) };
        let widen = round > PATIENCE;
        if range.hi - range.lo > MAX_RANGE {
            let old = self.result.anywhere.unwrap_or(value);
            self.result.anywhere = Some(grow(old, value, widen, &self.thresholds));
            return Ok(());
        }
        let known = self.range(range);
        if known.stored == Some((self.growth, value)) {
            return Ok(());
        }
        self.limits.spend(range.more() as usize)?;
        for cell in &mut self.result.cells[range.lo as usize..=range.hi as usize] {
            let grown = grow(*cell, value, widen, &self.thresholds);
            self.growth += (grown != *cell) as u64;
            *cell = grown;
        }
        if range.hi - range.lo >= WIDE {
            let stored = Some((self.growth, value));
            self.ranges.insert((range.lo, range.hi), Range { stored, ..known });
        }
        Ok(())
    }

    /// What is known of a range, if it is wide.
    fn range(&self, cells: Interval) -> Range {
        match cells.hi - cells.lo >= WIDE {
            true => self.ranges.get(&(cells.lo, cells.hi)).copied().unwrap_or_default(),
            false => Range::default(),
        }
    }

    /// The part of a range of addresses that is memory.
    fn cells_in(&self, address: Interval) -> Option<Interval> {
        Interval::new(address.lo.max(0), address.hi.min(self.program.cells() as Value - 1))
    }

    /// All that cells in a range of addresses may hold.
    fn read(&mut self, address: Interval) -> Result<Option<Interval>, Limit> {
        let Some(range) = self.cells_in(address) else { return Ok(None) };
        let known = self.range(range);
        let held = match known.held {
            Some((growth, held)) if growth == self.growth => held,
            _ => {
                self.limits.spend(range.more() as usize)?;
                let cells = self.result.cells[range.lo as usize..=range.hi as usize].iter().copied();
                cells.reduce(Interval::join).expect("a range has cells")
            }
        };
        if range.hi - range.lo >= WIDE {
            let held = Some((self.growth, held));
            self.ranges.insert((range.lo, range.hi), Range { held, ..known });
        }
        Ok(Some(self.result.anywhere.map_or(held, |i| held.join(i))))
    }

    /// The registers after the instruction, or `None` if it cannot be passed.
    fn after(&mut self, instr: &Instr, regs: &Registers) -> Result<Option<Registers>, Limit> {
        let mut after = regs.clone();
        match instr {
            Instr::Load { dst, addr, bytes } if !bytes.is_whole() => match self.read(eval(addr, regs))? {
                Some(value) => {
                    after.set(*dst, binary(BinOp::BitAnd, value, Interval::constant(bytes.bits())))
                }
                None => return Ok(None),
            },
            Instr::Load { dst, addr, .. } | Instr::Rmw { dst, addr, .. } => {
                match self.read(eval(addr, regs))? {
                    Some(value) => after.set(*dst, value),
                    None => return Ok(None),
                }
            }
            Instr::Assign { dst, value } => after.set(*dst, eval(value, regs)),
            Instr::Any { dst, lo, hi } => after.set(*dst, Interval { lo: *lo, hi: *hi }),
            Instr::Assume(e) | Instr::Assert(e) => {
                if refine(e, true, &mut after).is_none() {
                    return Ok(None);
                }
            }
            Instr::Store { .. } | Instr::Fence | Instr::Partial(_) | Instr::Membarrier => {}
            Instr::Lock | Instr::Unlock | Instr::Nop => {}
        }
        Ok(Some(after))
    }
}

fn eval(e: &RegExpr, regs: &Registers) -> Interval {
    range(e, &|r| regs.get(*r))
}

/// Narrows the registers by the fact that `e` is true (or false); `None` if it cannot be.
fn refine(e: &RegExpr, wanted: bool, regs: &mut Registers) -> Option<()> {
    match e {
        Expr::Unary(UnOp::Not, a) => return refine(a, !wanted, regs),
        Expr::Binary(BinOp::And, a, b) if wanted => {
            refine(a, true, regs)?;
            return refine(b, true, regs);
        }
        Expr::Binary(BinOp::Or, a, b) if !wanted => {
            refine(a, false, regs)?;
            return refine(b, false, regs);
        }
        Expr::Atom(r) => {
            let zero = Interval::constant(0);
            let i = regs.get(*r);
            regs.set(*r, if wanted { without(i, zero)? } else { i.meet(zero)? });
            return Some(());
        }
        Expr::Binary(op, a, b) => {
            let (ia, ib) = (eval(a, regs), eval(b, regs));
            if let Expr::Atom(r) = &**a {
                regs.set(*r, narrowed(*op, wanted, ia, ib)?);
            }
            if let (Expr::Atom(r), Some(op)) = (&**b, mirrored(*op)) {
                regs.set(*r, narrowed(op, wanted, ib, ia)?);
            }
        }
        Expr::Const(_) | Expr::Unary(..) => {}
    }
    match truth(eval(e, regs)) {
        Some(t) if t != wanted => None,
        _ => Some(()),
    }
}

/// Might a run divide by zero or access what lies outside memory?
pub fn may_go_wrong(program: &Program, limits: &Limits) -> Result<bool, Limit> {
    let fixed = |e: &RegExpr| e.constant().is_some_and(|a| program.cell(a).is_some());
    let risky = |instr: &Instr| {
        instr.exprs().iter().any(|e| e.may_divide_by_zero()) || instr.address().is_some_and(|e| !fixed(e))
    };
    let at_first_sight = program.threads().iter().any(|t| t.edges().any(|(_, e)| risky(&e.instr)));
    if !at_first_sight {
        return Ok(false);
    }
    let intervals = Intervals::of(program, limits)?;
    let wrong = |t: ThreadId, edge: &Edge| {
        intervals.is_reachable(t, edge.from) && intervals.may_compute_wrongly(t, edge)
    };
    Ok(program.thread_ids().any(|t| program.thread(t).edges().any(|(_, e)| wrong(t, e))))
}

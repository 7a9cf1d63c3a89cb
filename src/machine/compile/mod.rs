//! The program as the machines want it: flat tables, with everything known beforehand computed once.
//!
//! `compiled` has the tables, and `code` the instructions in them. `scheduling` says at which locations a
//! thread may stand in a stored state, `visibility` which steps the goal can see, `slots` where values lie
//! and how many bits they need, `nodes` what is known at each location, `goal` what the goal says of a state,
//! and `jump_table` shortens rows of comparisons. What all of this is for is said by `core` and
//! `partial_order`.

mod code;
mod compiled;
mod goal;
mod jump_table;
mod nodes;
mod scheduling;
mod slots;
mod visibility;

pub(crate) use code::{CEdge, CInstr, Code, Modify};
pub(crate) use compiled::{CThread, Compiled, Fold, Node, bits, lock_slot};
pub(crate) use goal::{CClause, FAR, SlotAtom, steps_to};
pub(crate) use visibility::{faint, watched};

use super::MemoryModel;
use crate::analysis::access::Futures;
use crate::analysis::comparisons::LiveComparisons;
use crate::analysis::faint::Faint;
use crate::analysis::interval::{Interval, Intervals};
use crate::analysis::liveness::{Live, LiveCells};
use crate::model::{Program, Reg, ThreadId, Value};
use crate::query::{Goal, Limit, Limits, Reductions, When};
use slots::Numbering;
use std::collections::BTreeMap;
use visibility::{Observed, named_cells};

/// What is a store to an unbounded buffer?
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Stores {
    /// A local step, unless the goal looks at its cell: no other thread can see it.
    Local,
    /// A step of its own: the location before it is a scheduling point.
    Scheduled,
}

pub(crate) fn compile(
    program: &Program,
    goal: &Goal,
    model: MemoryModel,
    stores: Stores,
    reductions: Reductions,
    limits: &Limits,
) -> Result<Compiled, Limit> {
    Compiler::new(program, goal, model, stores, reductions, limits)?.run()
}

/// What the parts of the compiler share: the question, and what the analyses know.
struct Compiler<'a> {
    program: &'a Program,
    goal: &'a Goal,
    model: MemoryModel,
    stores: Stores,
    reductions: Reductions,
    limits: &'a Limits,
    intervals: Intervals,
    futures: Futures,
    live: Live,
    live_cells: LiveCells,
    faint: Faint,
    comparisons: LiveComparisons,
    /// Per thread, the value of a register that stands in for those which cannot be told apart.
    stand_ins: Vec<BTreeMap<Reg, Value>>,
    observed: Observed,
    register_base: Vec<usize>,
    memory: usize,
}

impl<'a> Compiler<'a> {
    fn new(
        program: &'a Program,
        goal: &'a Goal,
        model: MemoryModel,
        stores: Stores,
        reductions: Reductions,
        limits: &'a Limits,
    ) -> Result<Self, Limit> {
        let intervals = Intervals::of(program, limits)?;
        let observed = Observed::by(goal, program);
        let (faint, live) = if !reductions.liveness {
            (Faint::nothing(program), Live::everything(program))
        } else if reductions.faint && model == MemoryModel::Sc && !program.has_locks() {
            Faint::of(program, &intervals, &observed.registers, &named_cells(goal), limits)?
        } else {
            (Faint::nothing(program), Live::of(program, &observed.registers, |_, _| false, limits)?)
        };
        let comparisons = match reductions.liveness {
            true => LiveComparisons::of(program, &observed.registers, |t, e| faint.is_faint(t, e), limits)?,
            false => LiveComparisons::nothing(program),
        };
        let futures = Futures::of(program, &intervals, |t, e| faint.is_faint(t, e), limits)?;
        let live_cells = LiveCells::of(program, &intervals, |t, e| faint.is_faint(t, e), limits)?;
        let mut next = lock_slot(program.threads().len()) + 1;
        let mut register_base = Vec::new();
        for thread in program.threads() {
            register_base.push(next);
            next += thread.registers().len();
        }
        Ok(Compiler {
            program,
            goal,
            model,
            stores,
            reductions,
            limits,
            intervals,
            futures,
            live,
            live_cells,
            faint,
            comparisons,
            stand_ins: Vec::new(),
            observed,
            register_base,
            memory: next,
        })
    }

    fn run(mut self) -> Result<Compiled, Limit> {
        let numbering: Vec<Numbering> =
            self.program.thread_ids().map(|t| Numbering::new(&self.scheduling_points(t))).collect();
        let stand_ins = |t: ThreadId| self.stand_ins(t, &numbering[t.index()]);
        self.stand_ins = self.program.thread_ids().map(stand_ins).collect::<Result<_, _>>()?;
        let slots = self.slots(&numbering)?;
        let thread = |t: ThreadId| self.thread(t, &numbering[t.index()], &slots);
        let threads: Vec<CThread> = self.program.thread_ids().map(thread).collect::<Result<_, _>>()?;
        let clauses = self.clauses(&numbering)?;
        let layout = self.layout(&slots);
        let fields = layout.by_slot(slots.len());
        let cells = (0..self.program.cells()).map(|a| self.intervals.cell(a));
        let contents = cells.reduce(Interval::join).unwrap_or(Interval::constant(0));
        Ok(Compiled {
            by_location: clauses.iter().all(|c| c.needs_named || c.when == When::Final),
            clauses,
            locations: (0..threads.len()).map(|t| fields[t].expect("a location varies")).collect(),
            layout,
            initial: self.initial(&numbering),
            template: slots.iter().map(|i| i.map_or(0, |i| i.lo)).collect(),
            bounds: slots,
            contents: if self.reductions.packing { contents } else { Interval::FULL },
            may_be_dead: self.may_be_dead(),
            mixes_sizes: self.program.mixes_sizes(),
            cells: self.program.cells(),
            memory: self.memory,
            register_base: self.register_base,
            observed_cells: self.observed.cells,
            threads,
        })
    }
}

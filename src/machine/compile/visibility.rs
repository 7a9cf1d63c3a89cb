//! What does the goal look at, and which steps can change what it says?
//!
//! A step is *visible* if it can: it touches a register or a cell that the goal names, or begins or ends at a
//! location that it names. Only what the goal looks at in states that are not final counts here; at the end
//! no thread moves any more.

use super::Compiler;
use crate::analysis::faint::Faint;
use crate::analysis::interval::Intervals;
use crate::analysis::liveness::Watched;
use crate::machine::MemoryModel;
use crate::model::{Addr, Atom, Edge, Instr, Loc, Program, Reg, ThreadId, Value};
use crate::query::{Goal, Limit, Limits, Reductions};

/// What the goal looks at in states that are not final, each list in ascending order.
pub(super) struct Observed {
    pub registers: Watched,
    pub cells: Vec<u32>,
    /// Per thread.
    pub locations: Vec<Vec<Loc>>,
}

/// The registers that the goal looks at.
pub(crate) fn watched(program: &Program, goal: &Goal) -> Watched {
    Observed::by(goal, program).registers
}

impl Observed {
    pub(crate) fn by(goal: &Goal, program: &Program) -> Observed {
        let mut registers = Watched::nothing(program);
        let mut cells = Vec::new();
        let mut locations = vec![Vec::new(); program.threads().len()];
        goal.for_each_lasting_atom(&mut |atom| match atom {
            Atom::At(t, named) => locations[t.index()].extend(named.iter().copied()),
            Atom::Reg(t, r) => registers.always[t.index()].push(*r),
            Atom::Mem(a) => cells.push(a.0),
        });
        for clause in &goal.clauses {
            clause.pred.for_each_atom(&mut |atom| {
                if let Atom::Reg(t, r) = atom {
                    registers.at_end[t.index()].push(*r);
                }
            });
        }
        sort_and_dedup(&mut cells);
        locations.iter_mut().for_each(sort_and_dedup);
        registers.always.iter_mut().chain(&mut registers.at_end).for_each(sort_and_dedup);
        Observed { registers, cells, locations }
    }

    pub(crate) fn is_location(&self, t: ThreadId, loc: Loc) -> bool {
        self.locations[t.index()].binary_search(&loc).is_ok()
    }

    pub(crate) fn is_register(&self, t: ThreadId, r: Reg) -> bool {
        self.registers.always[t.index()].binary_search(&r).is_ok()
    }

    fn assigned_by(&self, t: ThreadId, instr: &Instr) -> bool {
        instr.target().is_some_and(|r| self.is_register(t, r))
    }
}

fn sort_and_dedup<T: Ord>(list: &mut Vec<T>) {
    list.sort();
    list.dedup();
}

impl Compiler<'_> {
    /// May the instruction touch a cell that the goal looks at?
    pub(super) fn may_touch_observed(&self, t: ThreadId, edge: &Edge) -> bool {
        let range = self.intervals.address(t, edge);
        let first = self.observed.cells.partition_point(|&c| (c as Value) < range.lo);
        self.observed.cells.get(first).is_some_and(|&c| c as Value <= range.hi)
    }

    /// Can taking the edge change what the goal says of the state?
    pub(super) fn is_visible(&self, t: ThreadId, edge: &Edge) -> bool {
        // Inside a block the others' buffers count as they are, so a goal on memory may come and go with it.
        let block = matches!(edge.instr, Instr::Lock | Instr::Unlock) && !self.observed.cells.is_empty();
        self.observed.is_location(t, edge.from)
            || self.observed.is_location(t, edge.to)
            || self.observed.assigned_by(t, &edge.instr)
            || edge.instr.writes_memory() && self.may_touch_observed(t, edge)
            || block && self.model != MemoryModel::Sc
    }

    /// Does the edge change what the goal says by arriving at a location alone, if at all?
    pub(super) fn only_arrives(&self, t: ThreadId, edge: &Edge) -> bool {
        let changes = edge.instr.writes_memory() || matches!(edge.instr, Instr::Lock | Instr::Unlock);
        !changes && !self.observed.assigned_by(t, &edge.instr) && !self.observed.is_location(t, edge.from)
    }
}

/// What nobody really reads, as far as the goal is concerned: nothing, if that is not to be left out.
pub(crate) fn faint(
    program: &Program,
    goal: &Goal,
    intervals: &Intervals,
    reductions: Reductions,
    limits: &Limits,
) -> Result<Faint, Limit> {
    if !reductions.liveness || !reductions.faint || program.has_locks() {
        return Ok(Faint::nothing(program));
    }
    let observed = Observed::by(goal, program);
    Ok(Faint::of(program, intervals, &observed.registers, &named_cells(goal), limits)?.0)
}

/// The cells that the goal looks at, in final states too.
pub(super) fn named_cells(goal: &Goal) -> Vec<Addr> {
    let mut cells = Vec::new();
    for clause in &goal.clauses {
        clause.pred.for_each_atom(&mut |atom| {
            if let Atom::Mem(a) = atom {
                cells.push(*a);
            }
        });
    }
    cells
}

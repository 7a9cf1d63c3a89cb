//! Which cells does nobody really read? A cell is *faint* `[Giegerich81]` if whatever is loaded from it ends
//! in registers that no longer matter, no locked instruction touches it and the goal does not look at it. Its
//! contents then change nothing that anyone can see, and an instruction that touches faint cells alone might
//! as well do nothing: `engine` leaves it out under either memory model, and for the SC machine it is a local
//! step.
//!
//! A register does not matter either if all it ever comes to is a store to a faint cell. So cells and
//! registers are found together, beginning with all cells that may be faint and taking away those that turn
//! out to be read: what is left influences nothing outside itself. Not for robustness, where two threads that
//! touch a cell depend on each other whatever is in it; not for programs with `lock`, where touching any cell
//! has to wait.

use super::interval::Intervals;
use super::liveness::{Live, Watched};
use crate::limits::{Limit, Limits};
use crate::model::{Addr, Edge, EdgeId, Instr, Program, ThreadId, Value};
use std::ops::Range;

/// A program may hand a value from cell to cell and show it in the end. If so many rounds do not settle who
/// does, no cell is taken for faint.
const ROUNDS: usize = 20;

#[derive(Clone, Debug)]
pub struct Faint {
    cells: Vec<bool>,
    /// Per thread and edge, whether it touches faint cells alone and cannot go wrong.
    edges: Vec<Vec<bool>>,
}

impl Faint {
    pub fn nothing(program: &Program) -> Faint {
        let edges = program.threads().iter().map(|t| vec![false; t.graph().edge_count()]).collect();
        Faint { cells: vec![false; program.cells()], edges }
    }

    /// The faint cells, and the live registers that go with them. `watched_cells` are those that the goal
    /// names.
    pub fn of(
        program: &Program,
        intervals: &Intervals,
        watched: &Watched,
        watched_cells: &[Addr],
        limits: &Limits,
    ) -> Result<(Faint, Live), Limit> {
        let mut cells = vec![true; program.cells()];
        watched_cells.iter().for_each(|a| cells[a.index()] = false);
        let locked = edges(program).filter(|(_, _, e)| matches!(e.instr, Instr::Rmw { .. }));
        speak(&mut cells, locked.map(|(t, _, edge)| touched(program, intervals, t, edge)));
        for _ in 0..ROUNDS {
            limits.spend(program.cells())?;
            let faint = Faint { edges: silent(program, intervals, &cells), cells };
            let live = Live::of(program, watched, |t, e| faint.is_faint(t, e), limits)?;
            let read = |(t, _, edge): &(ThreadId, EdgeId, &Edge)| match edge.instr {
                Instr::Load { dst, .. } => live.is_live(*t, edge.to, dst),
                _ => false,
            };
            let mut left = faint.cells.clone();
            let read = edges(program).filter(read);
            speak(&mut left, read.map(|(t, _, edge)| touched(program, intervals, t, edge)));
            if left == faint.cells {
                return Ok((faint, live));
            }
            cells = left;
        }
        Ok((Faint::nothing(program), Live::of(program, watched, |_, _| false, limits)?))
    }

    /// Is there no edge that touches faint cells alone?
    pub fn is_nothing(&self) -> bool {
        !self.edges.iter().flatten().any(|&faint| faint)
    }

    pub fn is_faint(&self, t: ThreadId, edge: EdgeId) -> bool {
        self.edges[t.index()][edge.index()]
    }

    pub fn is_faint_cell(&self, cell: usize) -> bool {
        self.cells[cell]
    }
}

fn edges(program: &Program) -> impl Iterator<Item = (ThreadId, EdgeId, &Edge)> {
    program.thread_ids().flat_map(|t| program.thread(t).edges().map(move |(id, e)| (t, id, e)))
}

/// The cells that an edge may touch.
fn touched(program: &Program, intervals: &Intervals, t: ThreadId, edge: &Edge) -> Range<usize> {
    let range = intervals.address(t, edge);
    let last = program.cells() as Value - 1;
    if range.hi < 0 || range.lo > last {
        return 0..0;
    }
    range.lo.max(0) as usize..range.hi.min(last) as usize + 1
}

/// Cells in one of the ranges are not faint. Ranges may be wide and many, so their ends are counted, not
/// their cells.
fn speak(cells: &mut [bool], ranges: impl Iterator<Item = Range<usize>>) {
    let mut ends = vec![0i64; cells.len() + 1];
    for range in ranges {
        ends[range.start] += 1;
        ends[range.end] -= 1;
    }
    let mut inside = 0;
    for (cell, end) in cells.iter_mut().zip(ends) {
        inside += end;
        *cell &= inside == 0;
    }
}

/// Per thread and edge, whether all it may touch is faint, and nothing can go wrong on the way.
fn silent(program: &Program, intervals: &Intervals, cells: &[bool]) -> Vec<Vec<bool>> {
    // Per cell how many before it are not faint.
    let loud: Vec<u32> = std::iter::once(0)
        .chain(cells.iter().scan(0, |loud, &faint| {
            *loud += !faint as u32;
            Some(*loud)
        }))
        .collect();
    let all_faint = |range: Range<usize>| range.is_empty() || loud[range.start] == loud[range.end];
    let one = |t: ThreadId, edge: &Edge| {
        let access = matches!(edge.instr, Instr::Load { .. } | Instr::Store { .. });
        access && {
            let range = intervals.address(t, edge);
            range.lo >= 0
                && range.hi < program.cells() as Value
                && !edge.instr.exprs().iter().any(|e| e.may_divide_by_zero())
                && all_faint(touched(program, intervals, t, edge))
        }
    };
    let all = |t: ThreadId| program.thread(t).edges().map(|(_, e)| one(t, e)).collect();
    program.thread_ids().map(all).collect()
}

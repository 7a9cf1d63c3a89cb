//! Which cells can a lagging thread still read? Per location those that it may load from there on before it
//! is in step again, at a fence or a locked instruction at the latest. Of a past nothing else matters.
//!
//! Backward data flow on each thread's graph, over the addresses that `analysis::interval` gives to loads. A
//! store to a cell hides from its own thread all that the cell held before, so what comes after it does not
//! make the cell relevant; not so if cells are to be [`Overwritten::Kept`], for then nothing but the graph
//! and the addresses says what is relevant.

use super::interval::{Interval, Intervals};
use super::solver::backward;
use crate::limits::{Limit, Limits};
use crate::model::{Edge, EdgeId, Instr, Loc, Program, Thread, ThreadId, Value};
use bit_set::BitSet;
use std::collections::HashMap;

/// What keeping a cell of a new set counts for.
const STEPS_PER_CELL: usize = 4;

/// Is a cell relevant before its thread surely overwrites it?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overwritten {
    Kept,
    Dropped,
}

/// Cells in ascending order, and the same as bits.
#[derive(Debug, Default)]
pub struct Cells {
    pub list: Vec<u32>,
    bits: BitSet,
}

impl Cells {
    #[inline]
    pub fn contain(&self, cell: u32) -> bool {
        self.bits.contains(cell as usize)
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

/// The relevant cells at all locations; equal ones are kept once.
#[derive(Debug)]
pub struct Relevance {
    cells: Vec<Cells>,
    /// Per thread and location which they are.
    at: Vec<Vec<u32>>,
}

impl Relevance {
    pub fn of(
        program: &Program,
        intervals: &Intervals,
        overwritten: Overwritten,
        limits: &Limits,
    ) -> Result<Relevance, Limit> {
        let mut numbers = HashMap::from([(BitSet::new(), 0)]);
        let mut relevance = Relevance { cells: vec![Cells::default()], at: Vec::new() };
        for t in program.thread_ids() {
            let access = |edge: &Edge| Access::by(program, intervals, t, edge, overwritten);
            let relevant = relevant(program.thread(t), access, program.cells(), limits)?;
            let mut at = Vec::with_capacity(relevant.len());
            for bits in relevant {
                limits.spend(1 + program.cells() / 64)?;
                let number = match numbers.get(&bits) {
                    Some(&number) => number,
                    None => {
                        let list: Vec<u32> = bits.iter().map(|cell| cell as u32).collect();
                        // Many large sets outgrow memory long before the clock would be looked at.
                        limits.spend(STEPS_PER_CELL * list.len())?;
                        let number = relevance.cells.len() as u32;
                        relevance.cells.push(Cells { list, bits: bits.clone() });
                        numbers.insert(bits, number);
                        number
                    }
                };
                at.push(number);
            }
            relevance.at.push(at);
        }
        Ok(relevance)
    }

    /// The number of the set of relevant cells at a location; 0 is the empty set.
    #[inline]
    pub fn number(&self, t: ThreadId, loc: Loc) -> u32 {
        self.at[t.index()][loc.index()]
    }

    #[inline]
    pub fn cells(&self, number: u32) -> &Cells {
        &self.cells[number as usize]
    }
}

/// What an edge does to relevance.
#[derive(Clone, Copy)]
enum Access {
    /// Nothing that comes after it matters before it.
    Drains,
    Loads(Interval),
    Overwrites(u32),
    Nothing,
}

impl Access {
    fn by(
        program: &Program,
        intervals: &Intervals,
        t: ThreadId,
        edge: &Edge,
        overwritten: Overwritten,
    ) -> Access {
        let last = program.cells() as Value - 1;
        match &edge.instr {
            instr if instr.drains_buffer() => Access::Drains,
            Instr::Load { .. } => {
                let Interval { lo, hi } = intervals.address(t, edge);
                Interval::new(lo.max(0), hi.min(last)).map_or(Access::Nothing, Access::Loads)
            }
            Instr::Store { .. } if overwritten == Overwritten::Dropped => {
                let Interval { lo, hi } = intervals.address(t, edge);
                let cell = Some(lo).filter(|_| lo == hi).and_then(|a| program.cell(a));
                cell.map_or(Access::Nothing, |cell| Access::Overwrites(cell.0))
            }
            _ => Access::Nothing,
        }
    }
}

fn relevant(
    thread: &Thread,
    access: impl Fn(&Edge) -> Access,
    cells: usize,
    limits: &Limits,
) -> Result<Vec<BitSet>, Limit> {
    let accesses: Vec<Access> = thread.edges().map(|(_, edge)| access(edge)).collect();
    let width = 1 + cells / 64;
    limits.reserve(thread.graph().node_count() * width * size_of::<u64>())?;
    let mut relevant = vec![BitSet::new(); thread.graph().node_count()];
    let mut before = BitSet::new();
    backward(thread, &mut relevant, limits, |id: EdgeId, edge, relevant| {
        limits.spend(width)?;
        before.clone_from(&relevant[edge.to.index()]);
        match accesses[id.index()] {
            Access::Drains => return Ok(false),
            Access::Nothing => {}
            Access::Overwrites(cell) => drop(before.remove(cell as usize)),
            Access::Loads(range) => {
                limits.spend(range.more() as usize)?;
                before.extend(range.lo as usize..=range.hi as usize);
            }
        }
        let grows = !before.is_subset(&relevant[edge.from.index()]);
        if grows {
            relevant[edge.from.index()].union_with(&before);
        }
        Ok(grows)
    })?;
    Ok(relevant)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::tso;

    /// The cells that are relevant where the first thread begins.
    fn at_first(body: &str, overwritten: Overwritten) -> Vec<u32> {
        let source = format!("shared x, y, z; thread p; {body}; end; exists p.r == 0");
        let limits = Limits::default();
        let program = tso::read(&source, &[], &limits).unwrap().program;
        let intervals = Intervals::of(&program, &limits).unwrap();
        let relevance = Relevance::of(&program, &intervals, overwritten, &limits).unwrap();
        let number = relevance.number(ThreadId(0), program.thread(ThreadId(0)).initial());
        relevance.cells(number).list.clone()
    }

    #[test]
    fn what_is_loaded_before_a_fence_is_relevant() {
        let relevant = |body: &str| at_first(body, Overwritten::Dropped);
        assert_eq!(relevant("store [x], 1; load r, [y]; fence; load r, [z]"), [1]);
        assert_eq!(relevant("store [x], 1; load r, [y]; store [y], 1; load r, [z]"), [1, 2]);
        assert_eq!(relevant("store [x], 1; xchg r, [y], 1; load r, [z]"), Vec::<u32>::new());
        assert_eq!(relevant("again: store [x], 1; load r, [y]; goto again"), [1]);
        assert_eq!(relevant("i = any(0..=1); store [x], 1; load r, [y + i]"), [1, 2]);
    }

    #[test]
    fn what_is_overwritten_first_is_relevant_only_if_it_is_to_be_kept() {
        let body = "store [x], 1; load r, [x]; load r, [y]";
        assert_eq!(at_first(body, Overwritten::Dropped), [1]);
        assert_eq!(at_first(body, Overwritten::Kept), [0, 1]);
    }
}

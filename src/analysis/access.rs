//! Which memory may a thread still touch? Per location, the cells it may read and write from there on.
//!
//! A set of cells is one machine word: cell `a` is bit `a mod 62`. Up to 62 cells that is exact; beyond,
//! cells share bits, which makes sets larger than they are and never smaller, so "no conflict" stays a proof.
//! Bit 63 stands for the lock around memory: every access reads it, `lock` and `unlock` write it, so that a
//! block conflicts with all that it would hold up. Computed addresses get the range that `interval` found.

use super::interval::{Interval, Intervals};
use super::solver::backward;
use crate::limits::{Limit, Limits};
use crate::model::{Edge, EdgeId, Instr, Loc, Program, Thread, ThreadId};

const CLASSES: u32 = 62;
const LOCK: u64 = 1 << 63;

/// Cells read and cells written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Access {
    pub reads: u64,
    pub writes: u64,
}

impl Access {
    pub const NONE: Access = Access { reads: 0, writes: 0 };
    /// What `lock` and `unlock` do.
    pub const LOCKING: Access = Access { reads: 0, writes: LOCK };

    #[inline]
    pub fn read(cell: u32) -> Access {
        Access { reads: bit(cell) | LOCK, writes: 0 }
    }

    #[inline]
    pub fn write(cell: u32) -> Access {
        Access { reads: LOCK, writes: bit(cell) }
    }

    #[inline]
    pub fn read_write(cell: u32) -> Access {
        Access { reads: LOCK, writes: bit(cell) }
    }

    /// May the two not be swapped?
    #[inline]
    pub fn conflicts(self, other: Access) -> bool {
        self.writes & (other.reads | other.writes) | self.reads & other.writes != 0
    }

    #[inline]
    pub fn union(self, other: Access) -> Access {
        Access { reads: self.reads | other.reads, writes: self.writes | other.writes }
    }

    /// The cells alone, without the lock around them.
    #[inline]
    pub fn cells(self) -> Access {
        Access { reads: self.reads & !LOCK, writes: self.writes & !LOCK }
    }

    /// Does it touch memory at all?
    #[inline]
    pub fn is_none(self) -> bool {
        self == Access::NONE
    }

    pub fn may_read(self, cell: u32) -> bool {
        self.reads & bit(cell) != 0
    }

    pub fn may_write(self, cell: u32) -> bool {
        self.writes & bit(cell) != 0
    }
}

#[inline]
fn bit(cell: u32) -> u64 {
    1 << (cell % CLASSES)
}

/// Does every cell of the program have a bit of its own?
pub fn is_exact(program: &Program) -> bool {
    program.cells() <= CLASSES as usize
}

/// The bits of a range of addresses, cut to those that exist.
pub fn cells_in(program: &Program, range: Interval) -> u64 {
    let last = program.cells() as i64 - 1;
    let (lo, hi) = (range.lo.max(0), range.hi.min(last));
    match hi.checked_sub(lo) {
        Some(more) if more >= CLASSES as i64 => (1 << CLASSES) - 1,
        Some(more) if more >= 0 => (lo..=hi).fold(0, |set, a| set | bit(a as u32)),
        _ => 0,
    }
}

/// What an instruction may touch if its address lies in `range`.
pub fn of_instr(program: &Program, instr: &Instr, range: impl FnOnce() -> Interval) -> Access {
    match instr {
        Instr::Load { .. } => Access { reads: cells_in(program, range()) | LOCK, writes: 0 },
        Instr::Store { .. } => Access { reads: LOCK, writes: cells_in(program, range()) },
        Instr::Rmw { .. } => {
            let cells = cells_in(program, range());
            Access { reads: cells | LOCK, writes: cells }
        }
        Instr::Lock | Instr::Unlock => Access::LOCKING,
        _ => Access::NONE,
    }
}

/// Per thread and location: everything the thread may touch from there on.
#[derive(Clone, Debug)]
pub struct Futures(Vec<Vec<Access>>);

impl Futures {
    /// Edges that are `ignored` touch nothing.
    pub fn of(
        program: &Program,
        intervals: &Intervals,
        ignored: impl Fn(ThreadId, EdgeId) -> bool,
        limits: &Limits,
    ) -> Result<Futures, Limit> {
        let access = |t: ThreadId, id: EdgeId, edge: &Edge| match ignored(t, id) {
            true => Access::NONE,
            false => of_instr(program, &edge.instr, || intervals.address(t, edge)),
        };
        let one = |t: ThreadId| future(program.thread(t), |id, edge| access(t, id, edge), limits);
        Ok(Futures(program.thread_ids().map(one).collect::<Result<_, _>>()?))
    }

    #[inline]
    pub fn at(&self, t: ThreadId, loc: Loc) -> Access {
        self.0[t.index()][loc.index()]
    }
}

fn future(
    thread: &Thread,
    access: impl Fn(EdgeId, &Edge) -> Access,
    limits: &Limits,
) -> Result<Vec<Access>, Limit> {
    let own: Vec<Access> = thread.edges().map(|(id, edge)| access(id, edge)).collect();
    let mut future = vec![Access::NONE; thread.graph().node_count()];
    backward(thread, &mut future, limits, |id, edge, future| {
        let before = future[edge.from.index()];
        let more = before.union(own[id.index()]).union(future[edge.to.index()]);
        future[edge.from.index()] = more;
        Ok(more != before)
    })?;
    Ok(future)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_do_not_conflict_and_a_write_does() {
        assert!(!Access::read(1).conflicts(Access::read(1)));
        assert!(Access::read(1).conflicts(Access::write(1)));
        assert!(Access::write(1).conflicts(Access::write(1)));
        assert!(!Access::write(1).conflicts(Access::write(2)));
        assert!(Access::read_write(1).conflicts(Access::read(1)));
    }

    #[test]
    fn a_block_holds_up_every_access() {
        assert!(Access::LOCKING.conflicts(Access::read(7)));
        assert!(Access::LOCKING.conflicts(Access::LOCKING));
        assert!(!Access::LOCKING.conflicts(Access::NONE));
    }

    #[test]
    fn cells_that_share_a_bit_conflict() {
        assert!(Access::write(0).conflicts(Access::read(62)));
    }
}

//! Partial-order reduction on a state in the making.

use super::super::compile::{CInstr, Code};
use super::super::core::{Core, Record, Taken, Work, others};
use super::{Ample, Position, normalise};
use crate::analysis::access::Access;
use crate::query::Act;

/// A state in the making, and what is told of the steps taken in it.
pub(in super::super) struct Working<'a, R> {
    pub core: &'a Core,
    pub work: &'a mut Work,
    pub record: &'a mut R,
}

impl<R: Record> Position for Working<'_, R> {
    #[inline]
    fn threads(&self) -> usize {
        self.core.threads()
    }

    #[inline]
    fn moved(&self) -> &[usize] {
        &self.work.moved
    }

    #[inline]
    fn future(&self, t: usize) -> Access {
        future(self.core, self.work, t)
    }

    #[inline]
    fn oldest_store(&self, t: usize) -> Option<u32> {
        self.work.buffer(t).first().map(|store| store.cell)
    }

    #[inline]
    fn is_observed(&self, cell: u32) -> bool {
        self.core.is_observed(cell)
    }

    #[inline]
    fn candidate(&mut self, t: usize) -> Option<Access> {
        self.core.node(self.work, t).may_be_ample.then(|| next_step(self.core, self.work, t))
    }

    #[inline]
    fn can_step(&self, t: usize) -> bool {
        self.core.can_step(self.work, t)
    }

    #[inline]
    fn owns_memory(&self, t: usize) -> bool {
        self.core.owns_lock(self.work, t)
    }

    #[inline]
    fn is_blocked(&self, t: usize) -> bool {
        self.core.is_blocked(self.work, t)
    }

    #[inline]
    fn is_quiet(&self) -> bool {
        is_quiet(self.core, self.work)
    }

    fn take(&mut self, t: usize, ample: Ample) {
        let Working { core, work, record } = self;
        work.moved.push(t);
        let taken = match ample {
            Ample::Step => core.take_any(work, t, *record),
            Ample::Flush => {
                record.push(t, Act::Flush);
                core.flush(work, t)
            }
        };
        assert!(taken == Taken::Yes, "an ample step is possible");
        core.run(work, t, *record);
    }
}

/// The normal form of the initial state.
pub(in super::super) fn beginning<R: Record>(core: &Core) -> (Work, R) {
    let (mut work, mut record) = (core.start(), R::default());
    for t in 0..core.threads() {
        core.run(&mut work, t, &mut record);
    }
    if core.reductions.por {
        normalise(&mut Working { core, work: &mut work, record: &mut record }, &mut Vec::new());
    }
    (work, record)
}

/// Is nothing in any buffer, and memory not locked?
#[inline]
pub(in super::super) fn is_quiet(core: &Core, work: &Work) -> bool {
    core.lock_is_free(work) && work.buffers.iter().all(Vec::is_empty)
}

/// Per thread, everything that the others may still touch.
#[inline]
pub(in super::super) fn futures(core: &Core, work: &Work, out: &mut Vec<Access>) {
    out.clear();
    out.extend((0..core.threads()).map(|t| future(core, work, t)));
    others(out);
}

/// Everything the thread may still touch.
#[inline]
fn future(core: &Core, work: &Work, t: usize) -> Access {
    let stores = work.buffer(t).iter().map(|p| Access::write(p.cell));
    stores.fold(core.node(work, t).future, Access::union)
}

/// What the thread may touch next, by its flush too.
#[inline]
pub(in super::super) fn next_access(core: &Core, work: &Work, t: usize) -> Access {
    let step = next_step(core, work, t);
    match work.buffer(t).first() {
        Some(store) => step.union(Access::write(store.cell)),
        None => step,
    }
}

/// What the thread's own next step touches in this state, whether or not it is possible now.
#[inline]
fn next_step(core: &Core, work: &Work, t: usize) -> Access {
    let node = core.node(work, t);
    if let Some(access) = node.next {
        return access;
    }
    let cell = |addr: &Code| core.cell(work, addr).map(|c| c as u32);
    let touched = |instr: &CInstr| match instr {
        CInstr::Load { addr, .. } => cell(addr).map(Access::read),
        CInstr::Store { addr, .. } if !core.has_buffers() => cell(addr).map(Access::write),
        CInstr::Rmw { addr, .. } => cell(addr).map(Access::read_write),
        CInstr::Lock | CInstr::Unlock => Some(Access::LOCKING),
        _ => None,
    };
    node.edges.iter().filter_map(|e| touched(&e.instr)).fold(Access::NONE, Access::union)
}

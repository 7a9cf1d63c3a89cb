//! The mover machine: loads, and under TSO stores, are done only where they begin to matter.
//!
//! A load that the goal cannot see commutes with whatever the other threads do, except with a write that
//! changes what it leads to: it is a *mover* `[Lipton75]`. So every run can be put in an order in which such
//! a load comes right before what makes it matter: a step of its own thread that is more than a mover (its
//! *commit*: a write, a choice, a step that the goal sees, an arrival at the end or at an error), or another
//! thread's write that would change its outcome. A thread's movers up to its commit are its *transaction*.
//! One step of the search is then: one thread does its transaction up to its commit, each of the others does
//! nothing or as much of its own transaction as it takes to read the commit's cell before it changes, and the
//! commit is taken. States in the middle of a transaction are not stored, except where a load has read what
//! is no longer there.
//!
//! Lipton's movers are steps of the text that move past every step of every other thread, and a reduced block
//! is atomic: right movers, one step that is none, left movers. Ours move to the right only, and only as far
//! as memory stays as they found it; that is decided in each state, and where it fails both orders are
//! explored. So every load may be one, protected by a lock or not, and nothing behind the commit belongs to
//! the transaction but local steps.
//!
//! Under TSO the writes are the flushes. Entering the buffer is nothing to others, so stores belong to
//! transactions, and so do fences that have nothing to wait for. A flush is a commit of its own: that of the
//! oldest store in the buffer, before whatever its thread does next; or, if the buffer is empty, that of the
//! transaction's first store, right after it. So a store waits in the buffer only if its thread loads
//! something later that another thread then changes, or comes to a commit of the first kind: where that never
//! happens, the states are those of SC.
//!
//! Why this is sound: take a shortest run from a stored state to a goal, and its first commit. All before it
//! are steps of transactions: memory stays as it is, so they commute with each other. Those of the commit's
//! thread are its transaction, or the part of it that the flush needs; whatever else the thread did before
//! the flush it can do after it, for it finds in its buffer, or in memory after the flush, the same value. Of
//! those of another thread, all after the last load whose outcome the commit changes can come after the
//! commit; the others are one of the choices. What is left of the run is shorter and leads to a goal from the
//! state that is stored. A shortest run has no step that brings its thread back to a local state and a buffer
//! it has had in the same memory, so a transaction ends there. If the run has no commit, no store enters a
//! buffer in it, for a goal counts with empty buffers only; and the goal says of its first state what it says
//! of its last. For the same reason a store may be in a transaction even if the goal sees it, unless it is
//! silent. Ample steps (`partial_order`) are at most taken out of the rest of the run. A transaction that is
//! long is cut, and a commit with many choices is preceded by movers alone: those are steps of the run too,
//! and shorten the rest of it.
//!
//! There are no sleep sets here: they would save few steps, and exploring again states that wake up costs
//! more.
//! Not here: `lock` … `unlock` blocks and bounded buffers; `eager` has the steps of such programs.

mod configuration;
mod expansion;
mod transaction;
mod transition_cache;

use super::MemoryModel;
use super::compile::Stores;
use super::core::{Canonical, Core, Decision, Retold, Work, walk};
use super::partial_order::beginning;
use crate::analysis::interval::Interval;
use crate::model::{Edge, Instr, Program, Thread};
use crate::query::{Action, Goal, Limit, Limits, Reductions};
use crate::reach::{Look, Machine, Sink, Sleep, Wanted};
use expansion::Expansion;
use std::ops::ControlFlow;

/// The local states of a thread with more locations and registers than this, one times the other, could take
/// more memory than all states.
const MOST_LOCALS: usize = 1 << 24;
/// The transitions of an `any` of more values than this are not kept.
const MOST_VALUES: u64 = 256;

pub(super) struct MoverMachine {
    pub core: Core,
}

/// One worker's space.
#[derive(Default)]
pub(super) struct MoverScratch {
    base: Work,
    work: Work,
    canonical: Canonical,
    twins: Vec<(usize, usize)>,
    expansion: Expansion,
}

/// Is this the machine for a program?
pub(super) fn suit(program: &Program, model: MemoryModel, reductions: Reductions) -> bool {
    let size = |t: &Thread| t.graph().node_count().saturating_mul(t.registers().len() + 1);
    let has_few_choices = |e: &Edge| match e.instr {
        Instr::Any { lo, hi, .. } => Interval { lo, hi }.more() < MOST_VALUES,
        _ => true,
    };
    let fits = |t: &Thread| size(t) <= MOST_LOCALS && t.edges().all(|(_, e)| has_few_choices(e));
    reductions.movers
        && matches!(model, MemoryModel::Sc | MemoryModel::Tso(None))
        && !program.has_locks()
        && program.membarrier().is_none()
        && !program.mixes_sizes()
        && program.threads().iter().all(fits)
}

impl MoverMachine {
    /// For a program that it suits.
    pub(crate) fn new(
        program: &Program,
        goal: &Goal,
        model: MemoryModel,
        reductions: Reductions,
        limits: &Limits,
    ) -> Result<MoverMachine, Limit> {
        Ok(MoverMachine { core: Core::new(program, goal, model, Stores::Scheduled, reductions, limits)? })
    }

    fn hand_over(&self, found: &Expansion, work: &mut Work, canonical: &mut Canonical, sink: &mut impl Sink) {
        let core = &self.core;
        if core.has_buffers() {
            core.note_length(found.longest_buffer());
        }
        if found.is_too_large() {
            return core.note_too_large();
        }
        let lost = core.reductions.prune && found.has_lost();
        if core.symmetry.is_none() && !lost {
            return sink.state(found.found(), 0);
        }
        core.unpack(found.found(), work);
        if lost && core.has_no_hope(work) {
            return;
        }
        core.canonicalise(work, &mut canonical.renaming);
        core.pack(work, &mut canonical.packed);
        sink.state(&canonical.packed, 0);
    }
}

impl Machine for MoverMachine {
    type Scratch = MoverScratch;
    type Step = Action;

    fn scratch(&self) -> MoverScratch {
        MoverScratch::default()
    }

    fn initial(&self, scratch: &mut MoverScratch, sink: &mut impl Sink) {
        let (mut work, ()) = beginning(&self.core);
        self.core.hand_over(&mut work, &mut scratch.canonical, 0, sink);
    }

    fn look(&self, scratch: &mut MoverScratch, state: &[u64]) -> Look {
        self.core.look(&mut scratch.base, state)
    }

    fn expand(
        &self,
        scratch: &mut MoverScratch,
        state: &[u64],
        _wanted: Wanted,
        _sleep: Sleep,
        sink: &mut impl Sink,
    ) {
        let core = &self.core;
        let MoverScratch { base, work, canonical, twins, expansion } = scratch;
        twins.clear();
        if !core.symmetry.is_none() {
            core.unpack(state, base);
            core.twins(base, &mut canonical.renaming, twins);
        }
        expansion.begin(core, state);
        for t in (0..core.threads()).filter(|t| twins.iter().all(|(later, _)| later != t)) {
            let _ = expansion.successors::<()>(core, t, |found, ()| {
                self.hand_over(found, work, canonical, sink);
                ControlFlow::Continue(())
            });
        }
    }

    fn trace(&self, line: &[Vec<u64>], limits: &Limits) -> Result<Vec<Action>, Limit> {
        Ok(walk(self, line, limits)?.0)
    }
}

impl Retold for MoverMachine {
    fn core(&self) -> &Core {
        &self.core
    }

    fn beginning(&self) -> (Work, Vec<Decision>) {
        beginning(&self.core)
    }

    fn retell(
        &self,
        scratch: &mut MoverScratch,
        from: &[u64],
        mut done: impl FnMut(&mut Work, &Vec<Decision>) -> ControlFlow<()>,
    ) {
        let MoverScratch { work, expansion, .. } = scratch;
        expansion.begin(&self.core, from);
        let _ = (0..self.core.threads()).try_for_each(|t| {
            expansion.successors(&self.core, t, |found, record| {
                if found.is_too_large() {
                    return ControlFlow::Continue(());
                }
                self.core.unpack(found.found(), work);
                done(work, record)
            })
        });
    }

    fn in_full(&self, from: &[u64], decisions: Vec<Decision>) -> Vec<Decision> {
        self.core.in_full(from, &decisions)
    }
}

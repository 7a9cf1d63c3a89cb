//! The eager machine: every action on memory is a step of its own, taken where it stands.
//!
//! One step of the search is: a thread acts, runs its local instructions up to its next scheduling point, and
//! then every ample step is taken at once (`partial_order`). From the normal form that this leads to all
//! threads are explored, but for those that sleep and those that have a twin (`canonical`).
//!
//! Under TSO a store is local unless the goal looks at its cell; a flush belongs to its thread.
//!
//! Two kinds of states are not stored at all (`prune`): those from which no goal state can be reached in the
//! threads' graphs, and those that differ from their parent by a thread that only read and then got stuck.
//! This is the machine for every program; the one in `movers` has fewer states where it applies. Where a `membarrier`
//! waits for all buffers, no orders of steps are left out: no step of a thread that stores is independent of it.

use super::MemoryModel;
use super::compile::{CInstr, Stores};
use super::core::{Canonical, Core, Decision, Record, Retold, Taken, Work, walk};
use super::partial_order::sleep::{Settled, set_of};
use super::partial_order::{Working, beginning, futures, is_quiet, next_access, normalise, stays_normal};
use crate::analysis::access::Access;
use crate::model::Program;
use crate::query::{Act, Action, Goal, Limit, Limits, Reductions};
use crate::reach::{Look, Machine, Sink, Sleep, Wanted};
use std::ops::ControlFlow;

pub(crate) struct EagerMachine {
    pub core: Core,
}

/// One worker's space: the state being expanded, and the successors being made.
#[derive(Default)]
pub(crate) struct EagerScratch {
    base: Work,
    work: Work,
    canonical: Canonical,
    /// Per thread, what its next step touches in the state being expanded.
    next: Vec<Access>,
    others: Others,
    twins: Vec<(usize, usize)>,
}

/// Per thread what the others may still touch: in the state being expanded, and in a successor.
#[derive(Default)]
struct Others {
    of_base: Vec<Access>,
    of_work: Vec<Access>,
}

impl EagerMachine {
    pub(crate) fn new(
        program: &Program,
        goal: &Goal,
        model: MemoryModel,
        reductions: Reductions,
        limits: &Limits,
    ) -> Result<EagerMachine, Limit> {
        // Who waits for all buffers sees when a store is issued.
        let (stores, reductions) = match program.membarrier() {
            None => (Stores::Local, reductions),
            Some(_) => {
                let (por, sleep, silent, repeats) = (false, false, false, false);
                (Stores::Scheduled, Reductions { por, sleep, silent, repeats, ..reductions })
            }
        };
        Ok(EagerMachine { core: Core::new(program, goal, model, stores, reductions, limits)? })
    }

    /// All normal forms that follow when thread `t` acts in `base`.
    #[inline]
    fn successors<R: Record>(
        &self,
        base: &Work,
        work: &mut Work,
        t: usize,
        others: &mut Others,
        mut done: impl FnMut(&mut Work, &R) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let core = &self.core;
        for edge in &core.node(base, t).edges {
            for choice in edge.instr.choices() {
                work.copy(base, t);
                if core.take(work, t, edge, choice) == Taken::No {
                    continue;
                }
                let mut record = R::default();
                record.push(t, Act::Step { edge: edge.id, choice });
                core.run(work, t, &mut record);
                if self.is_idle_end(base, work, t, &edge.instr) {
                    continue;
                }
                self.settle(base, work, others, &mut record);
                done(work, &record)?;
            }
        }
        if base.has_pending(t) {
            work.copy(base, t);
            if core.flush(work, t) == Taken::Yes {
                let mut record = R::default();
                record.push(t, Act::Flush);
                self.settle(base, work, others, &mut record);
                done(work, &record)?;
            }
        }
        ControlFlow::Continue(())
    }

    /// Brings a state that has just followed from the normal form `base` into its own.
    #[inline]
    fn settle(&self, base: &Work, work: &mut Work, others: &mut Others, record: &mut impl Record) {
        let core = &self.core;
        if !core.reductions.por {
            return;
        }
        let mut position = Working { core, work, record };
        let before = |t: usize| core.node(base, t).future;
        let settled = is_quiet(core, base) && stays_normal(&mut position, before, &others.of_base);
        if !settled {
            normalise(&mut position, &mut others.of_work);
        }
    }

    /// Did the step only read, and end where its thread never moves again? Then whatever the others do next
    /// they can do without it.
    #[inline]
    fn is_idle_end(&self, base: &Work, work: &Work, t: usize, instr: &CInstr) -> bool {
        let writes =
            matches!(instr, CInstr::Store { .. } | CInstr::Rmw { .. } | CInstr::Lock | CInstr::Unlock);
        self.core.is_stuck(work, t)
            && self.core.reductions.prune
            && !self.core.node(base, t).visible
            && !writes
            && work.buffer(t).len() == base.buffer(t).len()
    }

    /// The decisions along a line of stored states, and per thread of the last one the thread of the run.
    pub(crate) fn walk(
        &self,
        line: &[Vec<u64>],
        limits: &Limits,
    ) -> Result<(Vec<Action>, Vec<usize>), Limit> {
        walk(self, line, limits)
    }
}

impl Machine for EagerMachine {
    type Scratch = EagerScratch;
    type Step = Action;

    fn scratch(&self) -> EagerScratch {
        EagerScratch::default()
    }

    fn initial(&self, scratch: &mut EagerScratch, sink: &mut impl Sink) {
        let (mut work, ()) = beginning(&self.core);
        self.core.hand_over(&mut work, &mut scratch.canonical, 0, sink);
    }

    fn look(&self, scratch: &mut EagerScratch, state: &[u64]) -> Look {
        self.core.look(&mut scratch.base, state)
    }

    fn expand(
        &self,
        scratch: &mut EagerScratch,
        state: &[u64],
        wanted: Wanted,
        sleep: Sleep,
        sink: &mut impl Sink,
    ) {
        let core = &self.core;
        let EagerScratch { base, work, canonical, next, others, twins } = scratch;
        core.unpack(state, base);
        core.twins(base, &mut canonical.renaming, twins);
        futures(core, base, &mut others.of_base);
        next.clear();
        next.extend((0..core.threads()).map(|t| next_access(core, base, t)));
        let mut settled = Settled::new(sleep, core.reductions.sleep);
        // Threads that this task has explored, or a twin of theirs.
        let mut covered = 0u64;
        for t in (0..core.threads()).filter(|&t| wanted.contains(t)) {
            if settled.contains(t) {
                continue;
            }
            let mut twin = twins.iter().filter(|(later, _)| *later == t);
            if twin.any(|(_, first)| covered >> first & 1 != 0) {
                covered |= 1 << t;
                continue;
            }
            if !twins.is_empty() {
                covered |= 1 << t;
            }
            let asleep = settled.asleep_after(t, next);
            let mut any = false;
            let _ = self.successors::<()>(base, work, t, others, |work, ()| {
                any = true;
                let awake = set_of(&work.moved[1..]);
                core.hand_over(work, canonical, asleep & !awake, sink);
                ControlFlow::Continue(())
            });
            // Where memory is held by another, some of its steps may have been left out.
            if any && !core.is_blocked(base, t) {
                settled.insert(t);
            }
        }
    }

    fn trace(&self, line: &[Vec<u64>], limits: &Limits) -> Result<Vec<Action>, Limit> {
        Ok(self.walk(line, limits)?.0)
    }
}

impl Retold for EagerMachine {
    fn core(&self) -> &Core {
        &self.core
    }

    fn beginning(&self) -> (Work, Vec<Decision>) {
        beginning(&self.core)
    }

    fn retell(
        &self,
        scratch: &mut EagerScratch,
        from: &[u64],
        mut done: impl FnMut(&mut Work, &Vec<Decision>) -> ControlFlow<()>,
    ) {
        let EagerScratch { base, work, others, .. } = scratch;
        self.core.unpack(from, base);
        futures(&self.core, base, &mut others.of_base);
        let _ = (0..self.core.threads()).try_for_each(|t| self.successors(base, work, t, others, &mut done));
    }
}

//! How far would a thread come by itself? Its *transaction*: the loads, stores and fences up to its commit,
//! as it would take them with memory as it is.
//!
//! A transaction that comes back to where it stood after its last store, with the same store, could go on
//! filling the buffer for ever: that store enters as an accelerated entry (`core::store_buffer`), and the
//! transaction ends. What the loop reads must still be there for that; if another thread's commit changes it,
//! the choices have the thread past its last load of it, and from there it comes round to the store once
//! more.
//! Not here: which part of a transaction matters to others (`expansion`).

use super::super::core::{Core, Pending};
use super::configuration::Configuration;
use super::transition_cache::{Effect, LocalId, Mover, TransitionCache};
use crate::analysis::access::Access;
use crate::model::Value;

/// More steps than this are not taken at once.
const LONGEST: usize = 32;

#[derive(Clone, Copy)]
pub(super) struct MoverStep {
    pub from: LocalId,
    pub to: LocalId,
    pub touch: Touch,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Touch {
    /// A load from memory.
    Load(u32),
    /// A store enters the buffer.
    Store(Pending),
    /// It concerns no other thread: a load from the own buffer, a silent store or one more of an
    /// accelerated entry, a fence with nothing to wait for.
    Own,
}

#[derive(Clone, Copy, Default, PartialEq)]
pub(super) enum TransactionEnd {
    /// The thread stands before its commit.
    #[default]
    Commit,
    /// It can do no more for now, or goes round a cycle.
    Blocked,
    /// There are more steps.
    Cut,
}

/// The movers of a thread before its commit.
#[derive(Clone, Default)]
pub(super) struct Transaction {
    pub steps: Vec<MoverStep>,
    /// The cells that it reads in memory.
    pub reads: Access,
    pub end: TransactionEnd,
    /// Steps up to the last store that enters the buffer.
    stored: usize,
}

impl Transaction {
    /// Extends the transaction from where the thread stands as far as it goes.
    pub(crate) fn fill(&mut self, core: &Core, cache: &mut TransitionCache, base: &Configuration, t: usize) {
        self.steps.clear();
        self.reads = Access::NONE;
        self.stored = 0;
        let mut from = base.at[t];
        self.end = loop {
            let mover = cache.with_transitions(core, t, from).mover;
            let known = mover == Mover::Load || core.has_buffers() && mover != Mover::None;
            if !known {
                let stays = cache.get(from).transitions().is_empty();
                break if stays { TransactionEnd::Blocked } else { TransactionEnd::Commit };
            }
            if self.steps.len() == LONGEST {
                break TransactionEnd::Cut;
            }
            let Some((touch, to)) = self.next(core, cache, base, t, from) else {
                break TransactionEnd::Blocked;
            };
            // A store that enters the buffer is followed by its flush before the goal counts.
            if !matches!(touch, Touch::Store(_)) {
                if cache.get(to).arrived || cache.get(from).visible_effect {
                    break TransactionEnd::Commit;
                }
                if self.has_been_at(base.at[t], to) {
                    break TransactionEnd::Blocked;
                }
            }
            if core.accelerates() && self.closes_loop(touch, to) {
                break TransactionEnd::Blocked;
            }
            self.push(MoverStep { from, to, touch });
            from = to;
        };
    }

    /// What the thread does at a local state, and where that leads; `None` if a fence has to wait.
    #[inline]
    fn next(
        &self,
        core: &Core,
        cache: &mut TransitionCache,
        base: &Configuration,
        t: usize,
        from: LocalId,
    ) -> Option<(Touch, LocalId)> {
        let local = cache.get(from);
        if local.mover == Mover::Load {
            let cell = local.cell();
            let own = self.buffered(base, t, cell).map(|value| core.fields.cell(cell).raw(value));
            let to = cache.load(core, t, from, own.unwrap_or_else(|| base.memory(core, cell)));
            return Some((own.map_or(Touch::Load(cell), |_| Touch::Own), to));
        }
        match cache.transition(local.transitions().start).effect {
            Effect::Store { cell, raw, to } => {
                let store = Pending::one(cell, core.fields.cell(cell).value(raw));
                let known = self.newest(base, t).is_some_and(|last| last.accelerated && last.is_like(store))
                    || self.is_silent(core, base, t, cell, raw);
                Some((if known { Touch::Own } else { Touch::Store(store) }, to))
            }
            Effect::Fence { to } => (!self.has_pending(base, t)).then_some((Touch::Own, to)),
            Effect::Local { .. } | Effect::Load { .. } | Effect::Rmw { .. } => {
                unreachable!("movers are those transitions")
            }
        }
    }

    fn push(&mut self, step: MoverStep) {
        self.steps.push(step);
        match step.touch {
            Touch::Load(cell) => self.reads = self.reads.union(Access::read(cell)),
            Touch::Store(_) => self.stored = self.steps.len(),
            Touch::Own => {}
        }
    }

    /// Does a store bring the thread back to where it stood after the last one, which was the same? Then it
    /// can go round as often as it likes, and the last one is accelerated.
    fn closes_loop(&mut self, touch: Touch, to: LocalId) -> bool {
        let Some(last) = self.stored.checked_sub(1).map(|last| &mut self.steps[last]) else { return false };
        match (&mut last.touch, touch) {
            (Touch::Store(first), Touch::Store(again)) if last.to == to && first.is_like(again) => {
                first.accelerated = true;
                true
            }
            _ => false,
        }
    }

    /// Has the thread been at the local state with the buffer as it is now?
    fn has_been_at(&self, first: LocalId, to: LocalId) -> bool {
        let since = if self.stored == 0 { first } else { self.steps[self.stored - 1].to };
        to == since || self.steps[self.stored..].iter().any(|s| s.to == to)
    }

    /// Where the thread stands after so many steps.
    #[inline]
    pub(crate) fn after(&self, base: &Configuration, t: usize, steps: usize) -> LocalId {
        if steps == 0 { base.at[t] } else { self.steps[steps - 1].to }
    }

    /// Stores among so many steps.
    #[inline]
    pub(crate) fn stores(&self, steps: usize) -> impl DoubleEndedIterator<Item = Pending> {
        let stored = &self.steps[..steps.min(self.stored)];
        stored.iter().filter_map(|s| match s.touch {
            Touch::Store(store) => Some(store),
            Touch::Load(_) | Touch::Own => None,
        })
    }

    /// Steps up to the first store that enters the buffer, and what it writes.
    pub(crate) fn first_store(&self) -> Option<(usize, Pending)> {
        let first = self.steps.iter().position(|s| matches!(s.touch, Touch::Store(_)))?;
        Some((first + 1, self.stores(first + 1).next()?))
    }

    /// At its end, the newest own store to a cell that is not in memory.
    pub(crate) fn buffered(&self, base: &Configuration, t: usize, cell: u32) -> Option<Value> {
        self.newest_first(base, t).find(|store| store.cell == cell).map(|store| store.value)
    }

    /// At its end, what entered the buffer last.
    fn newest(&self, base: &Configuration, t: usize) -> Option<Pending> {
        self.newest_first(base, t).next()
    }

    fn newest_first(&self, base: &Configuration, t: usize) -> impl Iterator<Item = Pending> {
        self.stores(self.steps.len()).rev().chain(base.buffer(t).iter().rev().copied())
    }

    /// At its end, what the thread finds in a cell.
    pub(crate) fn view(&self, core: &Core, base: &Configuration, t: usize, cell: u32) -> u64 {
        match self.buffered(base, t, cell) {
            Some(value) => core.fields.cell(cell).raw(value),
            None => base.memory(core, cell),
        }
    }

    /// At its end, are there stores that are not in memory?
    #[inline]
    pub(crate) fn has_pending(&self, base: &Configuration, t: usize) -> bool {
        self.stored > 0 || !base.buffer(t).is_empty()
    }

    /// Does any store of it enter the buffer?
    pub(crate) fn has_stores(&self) -> bool {
        self.stored > 0
    }

    /// At its end, would the store change nothing?
    pub(crate) fn is_silent(&self, core: &Core, base: &Configuration, t: usize, cell: u32, raw: u64) -> bool {
        core.writes_alone(t, cell) && self.view(core, base, t, cell) == raw
    }
}

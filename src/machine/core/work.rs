//! A state in the making, and what is told of the steps that make it.

use super::Pending;
use crate::model::{ThreadId, Value};
use crate::query::{Act, Action};

/// A state in the making: one value for each slot.
#[derive(Clone, Debug, Default)]
pub(crate) struct Work {
    pub vals: Vec<Value>,
    /// Oldest store first; empty lists under SC.
    pub buffers: Vec<Vec<Pending>>,
    /// Threads that have moved since the step began.
    pub moved: Vec<usize>,
}

impl Work {
    /// Becomes `other` as thread `t` begins to move.
    #[inline]
    pub(crate) fn copy(&mut self, other: &Work, t: usize) {
        self.vals.clone_from(&other.vals);
        self.buffers.clone_from(&other.buffers);
        self.moved.clear();
        self.moved.push(t);
    }

    /// What waits to reach memory, oldest first; nothing under SC.
    #[inline]
    pub(crate) fn buffer(&self, t: usize) -> &[Pending] {
        self.buffers.get(t).map_or(&[], |b| b)
    }

    #[inline]
    pub(crate) fn has_pending(&self, t: usize) -> bool {
        !self.buffer(t).is_empty()
    }

    /// The thread's newest store to the cell that has not reached memory.
    #[inline]
    pub(crate) fn buffered(&self, t: usize, cell: usize) -> Option<Value> {
        self.buffer(t).iter().rev().find(|p| p.cell as usize == cell).map(|p| p.value)
    }
}

/// What is kept of the decisions on the way, if anything.
pub(crate) trait Record: Clone + Default {
    /// Whether anything is.
    const WANTED: bool;

    fn push(&mut self, thread: usize, act: Act);

    /// A store that enters the buffer as an accelerated entry, or a flush that leaves more of the same there.
    fn push_accelerated(&mut self, thread: usize, act: Act) {
        self.push(thread, act);
    }
}

impl Record for () {
    const WANTED: bool = false;

    #[inline]
    fn push(&mut self, _: usize, _: Act) {}
}

impl Record for Vec<Action> {
    const WANTED: bool = true;

    fn push(&mut self, thread: usize, act: Act) {
        Vec::push(self, Action { thread: ThreadId(thread as u16), act });
    }
}

//! A state as the mover machine holds it: packed, with the local state of each thread and the buffers at
//! hand.

use super::super::core::{Core, LONGEST_BUFFER, Pending, leave};
use super::transition_cache::{LocalId, TransitionCache};
use crate::analysis::access::Access;
use crate::reach::visited::MAX_WORDS;

/// The packed locations, registers and cells of a state, the local state of each thread, and what waits in
/// buffers.
#[derive(Clone, Default)]
pub(super) struct Configuration {
    pub words: Vec<u64>,
    pub at: Vec<LocalId>,
    /// Oldest store first; no buffers under SC.
    pub buffers: Vec<Vec<Pending>>,
    /// Threads that have moved since the step began.
    pub moved: Vec<usize>,
}

impl Configuration {
    /// Becomes `other` as a step begins.
    pub(crate) fn copy(&mut self, other: &Configuration) {
        self.words.clone_from(&other.words);
        self.at.clone_from(&other.at);
        self.buffers.clone_from(&other.buffers);
        self.moved.clear();
    }

    pub(crate) fn unpack(&mut self, core: &Core, cache: &mut TransitionCache, state: &[u64]) {
        let (words, buffers) = state.split_at(core.words());
        self.words.clear();
        self.words.extend_from_slice(words);
        if core.has_buffers() {
            core.unpack_buffers(buffers, &mut self.buffers);
        }
        self.at.clear();
        self.at.extend((0..core.threads()).map(|t| cache.find(core, t, words)));
    }

    /// Is there nothing in any buffer?
    #[inline]
    pub(crate) fn is_drained(&self) -> bool {
        self.buffers.iter().all(Vec::is_empty)
    }

    #[inline]
    pub(crate) fn buffer(&self, t: usize) -> &[Pending] {
        self.buffers.get(t).map_or(&[], |b| b)
    }

    /// What the cell holds, as it is written down.
    #[inline]
    pub(crate) fn memory(&self, core: &Core, cell: u32) -> u64 {
        core.fields.cell(cell).get(&self.words)
    }

    #[inline]
    pub(crate) fn set(&mut self, core: &Core, cell: u32, raw: u64) {
        core.fields.cell(cell).set(&mut self.words, raw);
    }

    /// Puts the thread into a local state.
    #[inline]
    pub(crate) fn go(&mut self, core: &Core, cache: &TransitionCache, t: usize, to: LocalId) {
        self.moved.push(t);
        self.at[t] = to;
        cache.put(core, t, to, &mut self.words);
    }

    /// Everything the thread may still touch.
    #[inline]
    pub(crate) fn future(&self, cache: &TransitionCache, t: usize) -> Access {
        let waiting = self.buffer(t).iter().map(|store| Access::write(store.cell));
        waiting.fold(cache.get(self.at[t]).future, Access::union)
    }

    /// The oldest store of the buffer reaches memory, and more of the same may stay.
    pub(crate) fn flush(&mut self, core: &Core, t: usize, stays: bool) {
        let Pending { cell, value, .. } = leave(&mut self.buffers[t], stays);
        self.set(core, cell, core.fields.cell(cell).raw(value));
    }

    /// Everything as words; `false` if that would be too many.
    pub(crate) fn pack(&self, core: &Core, out: &mut Vec<u64>) -> bool {
        out.clear();
        if self.buffers.iter().any(|b| b.len() > LONGEST_BUFFER) {
            return false;
        }
        out.extend_from_slice(&self.words);
        core.pack_buffers(&self.buffers, out);
        out.len() <= MAX_WORDS
    }
}

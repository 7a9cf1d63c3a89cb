//! What all machines of a program share: the compiled program, how its states are written down and which of
//! several is stored, what a step does, what a state is to the goal, and how a run of stored states is told
//! as decisions.
//!
//! `step` takes steps, on a state in the making (`work`); `store_buffer` has what waits to reach memory;
//! `fields` says where things lie in a packed state; `dead_cells` finds what will not be read again; `goal` judges
//! states; `concretise` leads runs back to decisions. Which steps there are from a state, and which may be
//! left out, is not said here: that is what makes a machine (`eager`, `movers`), with the help of
//! `partial_order`. Nor is the plain meaning of instructions (`semantics`), against which all of this is
//! tested, or why the goal counts only with empty buffers (`query::Goal`).
//!
//! Stored states are *canonical*: dead registers and cells have a fixed value, and of states that differ by
//! the names of interchangeable threads alone one is stored (`canonical`). Whatever machines decide is
//! decided by tables that such a renaming leaves as they are.

mod concretise;
mod dead_cells;
mod fields;
mod goal;
mod step;
mod store_buffer;
mod work;

pub(crate) use concretise::renamed;
pub(super) use concretise::{Decision, Retold, walk};
pub(super) use dead_cells::Cells;
pub(crate) use goal::Ending;
pub(crate) use step::Taken;
pub(crate) use store_buffer::{LONGEST_BUFFER, Pending, enter, leave};
pub(crate) use work::{Record, Work};

use super::MemoryModel;
use super::automorphism::{Group, groups};
use super::canonical::{Carried, Renaming, Symmetry};
use super::compile::{CThread, Compiled, Stores, bits, compile};
use crate::analysis::access::Access;
use crate::model::{Program, Value};
use crate::query::{Goal, Limit, Limits, Reductions};
use crate::reach::visited::MAX_WORDS;
use crate::reach::{Sink, Sleep};
use fields::Fields;
use std::mem::take;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use store_buffer::Entries;

pub(crate) struct Core {
    pub(crate) code: Compiled,
    pub(super) fields: Fields,
    pub(super) symmetry: Symmetry,
    model: MemoryModel,
    pub(super) reductions: Reductions,
    /// Cells that are stored as a fixed value where they are dead, as a set of `access`.
    may_be_dead: u64,
    /// Per thread, what the others ever touch, if silent stores are left out.
    others_ever: Option<Vec<Access>>,
    /// Whether stores that a loop repeats are one accelerated entry of a buffer.
    accelerates: bool,
    entries: Entries,
    /// Whether states are ranked by how far they are from the goal.
    ranking: bool,
    /// Whether a thread's own error is a goal.
    errors_count: bool,
    /// A buffer wanted to grow past its bound.
    overflowed: AtomicBool,
    /// A state did not fit.
    too_large: AtomicBool,
    longest_buffer: AtomicUsize,
}

/// One worker's space for the form in which a state is stored.
#[derive(Default)]
pub(super) struct Canonical {
    pub packed: Vec<u64>,
    pub renaming: Renaming,
}

impl Core {
    pub(crate) fn new(
        program: &Program,
        goal: &Goal,
        model: MemoryModel,
        stores: Stores,
        reductions: Reductions,
        limits: &Limits,
    ) -> Result<Core, Limit> {
        let code = compile(program, goal, model, stores, reductions, limits)?;
        // Not in blocks and not with a bound: see `step`.
        let silent = reductions.silent && model == MemoryModel::Tso(None) && !program.has_locks();
        let others_ever = silent.then(|| others_ever(&code));
        let accelerates = stores == Stores::Scheduled && reductions.repeats && model != MemoryModel::Sc;
        Ok(Core {
            may_be_dead: code.may_be_dead & !others_ever.as_deref().map_or(0, dead_cells::written_alone),
            others_ever,
            accelerates,
            fields: Fields::of(&code),
            entries: Entries::new(code.cells, code.contents, accelerates, code.mixes_sizes),
            symmetry: if reductions.symmetry { Symmetry::of(&code) } else { Symmetry::default() },
            code,
            model,
            reductions,
            ranking: false,
            errors_count: !goal.ignores_errors,
            overflowed: AtomicBool::new(false),
            too_large: AtomicBool::new(false),
            longest_buffer: AtomicUsize::new(0),
        })
    }

    /// From now on, states are ranked for a search that is best first.
    pub(crate) fn rank(&mut self) {
        self.ranking = true;
    }

    /// From now on, a thread that has gone wrong just stands still.
    pub(crate) fn ignore_errors(&mut self) {
        self.errors_count = false;
    }

    /// From now on, no thread changes places with others, unless something is the same of all threads of each
    /// group.
    pub(crate) fn symmetric_if(&mut self, same: impl Fn(&[usize]) -> bool) {
        if !self.symmetry.members().all(same) {
            self.symmetry = Symmetry::default();
        }
    }

    /// How many threads may change places with others.
    pub(crate) fn interchangeable(&self) -> usize {
        self.symmetry.interchangeable()
    }

    /// Which threads may change places, with which cells and values, and the sort of each slot.
    pub(crate) fn groups(&self) -> (Vec<Group>, Vec<u32>) {
        if self.symmetry.is_none() { (vec![], vec![]) } else { groups(&self.code) }
    }

    /// The threads that may take the place of this one, with it.
    pub(crate) fn alike(&self, t: usize) -> Vec<usize> {
        self.symmetry.members().find(|m| m.contains(&t)).map_or(vec![t], <[usize]>::to_vec)
    }

    /// Words of a packed state, without the contents of buffers.
    #[inline]
    pub(crate) fn words(&self) -> usize {
        self.code.layout.words()
    }

    /// Did a buffer want to grow past its bound? Then an exhausted search is no proof.
    pub(crate) fn overflowed(&self) -> bool {
        self.overflowed.load(Ordering::Relaxed)
    }

    /// Was a state left out because it needs too many words? Then an exhausted search is no proof.
    pub(crate) fn too_large(&self) -> bool {
        self.too_large.load(Ordering::Relaxed)
    }

    #[cold]
    pub(super) fn note_too_large(&self) {
        self.too_large.store(true, Ordering::Relaxed);
    }

    pub(crate) fn longest_buffer(&self) -> usize {
        self.longest_buffer.load(Ordering::Relaxed)
    }

    /// Reads before it writes: workers would wait for each other at every step.
    #[inline]
    pub(super) fn note_length(&self, length: usize) {
        if length > self.longest_buffer() {
            self.longest_buffer.fetch_max(length, Ordering::Relaxed);
        }
    }

    /// What was noticed so far, for others who search the same states.
    pub(crate) fn knowledge(&self) -> Vec<u64> {
        vec![self.overflowed() as u64, self.too_large() as u64, self.longest_buffer() as u64]
    }

    pub(crate) fn learn(&self, knowledge: &[u64]) {
        let [overflowed, too_large, longest] = *knowledge else { return };
        self.overflowed.fetch_or(overflowed != 0, Ordering::Relaxed);
        self.too_large.fetch_or(too_large != 0, Ordering::Relaxed);
        self.note_length(longest as usize);
    }

    #[inline]
    pub(crate) fn threads(&self) -> usize {
        self.code.threads.len()
    }

    #[inline]
    pub(super) fn has_buffers(&self) -> bool {
        self.model != MemoryModel::Sc
    }

    #[inline]
    pub(super) fn accelerates(&self) -> bool {
        self.accelerates
    }

    /// Does the goal look at the cell in states that are not final?
    pub(super) fn is_observed(&self, cell: u32) -> bool {
        self.code.observed_cells.contains(&cell)
    }

    /// The initial state, before any thread runs.
    pub(crate) fn start(&self) -> Work {
        let buffers = if self.has_buffers() { vec![Vec::new(); self.threads()] } else { Vec::new() };
        Work { vals: self.code.initial.clone(), buffers, moved: (0..self.threads()).collect() }
    }

    pub(crate) fn unpack(&self, words: &[u64], work: &mut Work) {
        work.vals.clear();
        work.vals.extend_from_slice(&self.code.template);
        work.moved.clear();
        self.code.layout.unpack(words, &mut work.vals);
        if self.has_buffers() {
            self.unpack_buffers(&words[self.words()..], &mut work.buffers);
        }
    }

    pub(super) fn unpack_buffers(&self, words: &[u64], buffers: &mut Vec<Vec<Pending>>) {
        buffers.resize(self.threads(), Vec::new());
        self.entries.unpack(words, buffers);
    }

    pub(crate) fn pack(&self, work: &Work, out: &mut Vec<u64>) {
        out.clear();
        self.code.layout.pack(&work.vals, out);
        if self.has_buffers() {
            self.pack_buffers(&work.buffers, out);
        }
    }

    /// Appends what waits in the buffers.
    pub(super) fn pack_buffers(&self, buffers: &[Vec<Pending>], out: &mut Vec<u64>) {
        self.entries.pack(buffers, out);
    }

    /// Sets registers that no longer matter to the value that stands for that, and values that can no longer
    /// be told apart to one, where threads have moved.
    #[inline]
    pub(crate) fn clear_dead_registers(&self, work: &mut Work) {
        for &t in &work.moved {
            let node = &self.code.threads[t].nodes[work.vals[t] as usize];
            for slot in bits(&node.dead).map(|r| self.code.register_base[t] + r) {
                work.vals[slot] = self.code.template[slot];
            }
            for fold in &node.folded {
                let value = &mut work.vals[fold.slot as usize];
                if !fold.kept.contains(value) {
                    *value = fold.other;
                }
            }
        }
    }

    /// Turns the state into the one that is stored for it; `renaming` says which thread was which.
    pub(super) fn canonicalise(&self, work: &mut Work, renaming: &mut Renaming) {
        let dead = self.clear_dead(work);
        let mut buffers = take(&mut work.buffers);
        let moved = self.symmetry.represent(&self.code, work, &mut buffers, &dead, renaming);
        work.buffers = buffers;
        if moved {
            self.clear_cells(work, self.dead_cells_in(work));
        }
    }

    /// The same where threads have no buffers, and carry something else.
    pub(crate) fn canonicalise_with(
        &self,
        work: &mut Work,
        carried: &mut impl Carried,
        renaming: &mut Renaming,
    ) {
        let dead = self.clear_dead(work);
        if self.symmetry.represent(&self.code, work, carried, &dead, renaming) {
            self.clear_cells(work, self.dead_cells_in(work));
        }
    }

    /// Clears registers and cells that no longer matter; those cells.
    fn clear_dead(&self, work: &mut Work) -> Cells {
        self.clear_dead_registers(work);
        let dead = self.dead_cells_in(work);
        self.clear_cells(work, dead.clone());
        dead
    }

    /// Threads whose steps need not be explored because a twin's are: each with that twin.
    pub(super) fn twins(&self, work: &Work, renaming: &mut Renaming, twins: &mut Vec<(usize, usize)>) {
        self.twins_with(work, &work.buffers, renaming, twins);
    }

    /// The same where threads have no buffers, and carry something else.
    pub(crate) fn twins_with(
        &self,
        work: &Work,
        carried: &impl Carried,
        renaming: &mut Renaming,
        twins: &mut Vec<(usize, usize)>,
    ) {
        self.symmetry.twins(work, carried, &self.dead_cells_in(work), renaming, twins);
    }

    /// A value in a cell of a representative, as the run calls it: per thread there, `names` has the thread
    /// of the run.
    pub(crate) fn in_run(&self, names: &[usize], cell: u32, value: Value) -> Value {
        self.symmetry.in_run(names, cell, value)
    }

    /// From now on, states keep what cells hold though nobody will read it, and values of registers that can
    /// no longer be told apart.
    pub(crate) fn keep_contents(&mut self) {
        self.may_be_dead = 0;
        self.code.threads.iter_mut().flat_map(|t| &mut t.nodes).for_each(|node| node.folded.clear());
    }

    /// Hands the state to the sink in the form in which it is stored, unless no goal can follow it.
    #[inline]
    pub(super) fn hand_over(
        &self,
        work: &mut Work,
        canonical: &mut Canonical,
        mut sleep: Sleep,
        sink: &mut impl Sink,
    ) {
        if self.is_hopeless(work) {
            return;
        }
        let Canonical { packed, renaming } = canonical;
        let long = work.buffers.iter().any(|b| b.len() > LONGEST_BUFFER);
        if !long {
            self.canonicalise(work, renaming);
            if !self.symmetry.is_none() {
                sleep = renaming.sleep(sleep);
            }
            self.pack(work, packed);
        }
        if long || packed.len() > MAX_WORDS {
            return self.note_too_large();
        }
        sink.state(packed, sleep);
    }
}

/// Per thread, what the others touch anywhere. From where they begin it may be less, but not for whoever
/// takes their place: interchangeable threads may begin at different locations.
fn others_ever(code: &Compiled) -> Vec<Access> {
    let anywhere = |thread: &CThread| thread.nodes.iter().map(|n| n.future).fold(Access::NONE, Access::union);
    let mut futures: Vec<Access> = code.threads.iter().map(anywhere).collect();
    others(&mut futures);
    futures
}

/// From what each thread may touch to what all others may.
#[inline]
pub(super) fn others(futures: &mut [Access]) {
    let (mut all, mut twice) = (Access::NONE, Access::NONE);
    for future in &*futures {
        twice.reads |= all.reads & future.reads;
        twice.writes |= all.writes & future.writes;
        all = all.union(*future);
    }
    for own in futures {
        own.reads = all.reads & !own.reads | twice.reads;
        own.writes = all.writes & !own.writes | twice.writes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_threads_touch_is_touched_by_others_of_each() {
        let (x, y, z) = (Access::write(0), Access::write(1), Access::read(2));
        let mut futures = [x, x.union(y), z];
        others(&mut futures);
        assert_eq!(futures[0], x.union(y).union(z));
        assert_eq!(futures[1], x.union(z));
        assert_eq!(futures[2], x.union(y));
    }
}

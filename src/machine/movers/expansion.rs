//! The steps from one state: each thread's commit, with every choice of what comes before it.
//!
//! A step is one thread's transaction up to its commit, for each of the others either nothing or a prefix of
//! its own transaction, and then the commit. A prefix ends with a load that the commit would change; `movers`
//! says why no others are needed.

use super::super::core::{Core, Pending, Record, enter, others};
use super::super::partial_order::{Ample, Position, normalise, stays_normal};
use super::configuration::Configuration;
use super::transaction::{MoverStep, Touch, Transaction, TransactionEnd};
use super::transition_cache::{Effect, LocalId, TransitionCache};
use crate::analysis::access::Access;
use crate::query::Act;
use std::ops::{ControlFlow, Range};

/// With more choices than this, loads that matter to a commit are steps of their own.
const MOST_CHOICES: usize = 16;

/// A way to end the transaction of a thread.
#[derive(Clone, Copy)]
struct Commit {
    thread: usize,
    /// Steps of its transaction that come before.
    steps: usize,
    how: How,
    to: LocalId,
    /// The cell that it changes, and to what.
    write: Option<(u32, u64)>,
    /// What enters the buffer.
    buffered: Option<Pending>,
}

#[derive(Clone, Copy, PartialEq)]
enum How {
    /// The thread takes this transition of its local state.
    Transition(usize),
    /// The oldest store of its buffer reaches memory, and of an accelerated one, more may stay.
    Flush { stays: bool },
}

/// A thread of whose transaction a prefix may come before a commit: how long it may be is some of `lengths`.
#[derive(Clone, Copy)]
struct Prefixes {
    thread: usize,
    first: usize,
    count: usize,
}

/// One worker's space: the state being expanded, and the successor being made.
#[derive(Default)]
pub(super) struct Expansion {
    cache: TransitionCache,
    base: Configuration,
    next: Configuration,
    /// The latter as words, with the buffers.
    packed: Vec<u64>,
    too_large: bool,
    transactions: Vec<Transaction>,
    commits: Vec<Commit>,
    /// Per thread, some of them.
    of_thread: Vec<Range<usize>>,
    /// Per thread, what it and what the others may still touch in `base`.
    futures: Vec<Access>,
    others: Vec<Access>,
    others_next: Vec<Access>,
    choices: Vec<Prefixes>,
    /// Numbers of steps.
    lengths: Vec<usize>,
    /// Per choice, none or one of its numbers.
    chosen: Vec<usize>,
}

impl Expansion {
    /// Prepares for the steps from a state.
    pub(crate) fn begin(&mut self, core: &Core, state: &[u64]) {
        let threads = core.threads();
        self.cache.evict(core);
        self.base.unpack(core, &mut self.cache, state);
        self.futures.clear();
        self.futures.extend((0..threads).map(|t| self.base.future(&self.cache, t)));
        self.others.clone_from(&self.futures);
        others(&mut self.others);
        self.transactions.resize(threads, Transaction::default());
        self.commits.clear();
        self.of_thread.clear();
        for t in 0..threads {
            self.transactions[t].fill(core, &mut self.cache, &self.base, t);
            let first = self.commits.len();
            self.find_flush(core, t);
            self.find_transitions(core, t);
            self.of_thread.push(first..self.commits.len());
        }
    }

    /// The state that was found last.
    pub(crate) fn found(&self) -> &[u64] {
        if self.next.buffers.is_empty() { &self.next.words } else { &self.packed }
    }

    /// Does the state that was found last not fit?
    pub(crate) fn is_too_large(&self) -> bool {
        self.too_large
    }

    /// In the state that was found last.
    pub(crate) fn longest_buffer(&self) -> usize {
        self.next.buffers.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// The oldest store of the thread's buffer may reach memory; if the buffer is empty, the next store that
    /// enters it.
    fn find_flush(&mut self, core: &Core, t: usize) {
        let (base, transaction) = (&self.base, &self.transactions[t]);
        let oldest = base.buffer(t).first().map(|&store| (0, store));
        let Some((steps, store)) = oldest.or_else(|| transaction.first_store()) else { return };
        let raw = core.fields.cell(store.cell).raw(store.value);
        let write = (raw != base.memory(core, store.cell)).then_some((store.cell, raw));
        let to = transaction.after(base, t, steps);
        let flush = |stays| Commit { thread: t, steps, how: How::Flush { stays }, to, write, buffered: None };
        self.commits.push(flush(false));
        if store.accelerated && write.is_some() {
            self.commits.push(flush(true));
        }
    }

    /// What the thread may do where its transaction ends.
    fn find_transitions(&mut self, core: &Core, t: usize) {
        let Expansion { cache, base, transactions, commits, .. } = self;
        let transaction = &transactions[t];
        if transaction.end != TransactionEnd::Commit {
            return;
        }
        let steps = transaction.steps.len();
        let from = transaction.after(base, t, steps);
        for number in cache.get(from).transitions() {
            let effect = cache.transition(number).effect;
            if transaction.has_pending(base, t) && matches!(effect, Effect::Rmw { .. } | Effect::Fence { .. })
            {
                continue;
            }
            let now = |cell: u32| transaction.view(core, base, t, cell);
            let (to, set) = cache.effect(core, t, from, number, now);
            let buffers = core.has_buffers() && matches!(effect, Effect::Store { .. });
            let value = |(cell, raw): (u32, u64)| Pending::one(cell, core.fields.cell(cell).value(raw));
            let (write, buffered) = match set {
                Some((cell, raw)) if buffers && transaction.is_silent(core, base, t, cell, raw) => {
                    (None, None)
                }
                set if buffers => (None, set.map(value)),
                set => (set.filter(|&(cell, raw)| raw != now(cell)), None),
            };
            commits.push(Commit { thread: t, steps, how: How::Transition(number), to, write, buffered });
        }
    }

    /// Would writing the cell change where that step leads?
    fn changes(&mut self, core: &Core, t: usize, step: usize, cell: u32, raw: u64) -> bool {
        let MoverStep { from, to, touch } = self.transactions[t].steps[step];
        touch == Touch::Load(cell) && self.cache.load(core, t, from, raw) != to
    }

    /// Which prefixes of other transactions may come before the commit, because it would change their last
    /// load.
    fn find_choices(&mut self, core: &Core, commit: Commit) {
        self.choices.clear();
        self.lengths.clear();
        let Some((cell, raw)) = commit.write else { return };
        for thread in 0..self.transactions.len() {
            if thread == commit.thread || !self.transactions[thread].reads.may_read(cell) {
                continue;
            }
            let first = self.lengths.len();
            for step in 0..self.transactions[thread].steps.len() {
                if self.changes(core, thread, step, cell, raw)
                    && !self.cache.get(self.transactions[thread].steps[step].to).stuck
                {
                    self.lengths.push(step + 1);
                }
            }
            let count = self.lengths.len() - first;
            if count > 0 {
                self.choices.push(Prefixes { thread, first, count });
            }
        }
    }

    /// All normal forms that follow when thread `t` takes its commit, each left in `found`.
    pub(crate) fn successors<R: Record>(
        &mut self,
        core: &Core,
        t: usize,
        mut done: impl FnMut(&Expansion, &R) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if self.transactions[t].end == TransactionEnd::Cut {
            let record = self.advance_alone::<R>(core, t, self.transactions[t].steps.len());
            done(self, &record)?;
        }
        for i in self.of_thread[t].clone() {
            let commit = self.commits[i];
            if self.is_idle(core, commit) {
                continue;
            }
            self.find_choices(core, commit);
            let choices = self.choices.iter().map(|c| c.count + 1).try_fold(1, usize::checked_mul);
            if choices.is_none_or(|choices| choices > MOST_CHOICES) {
                for choice in std::mem::take(&mut self.choices) {
                    let record = self.advance_alone::<R>(core, choice.thread, self.lengths[choice.first]);
                    done(self, &record)?;
                }
            }
            self.chosen.clear();
            self.chosen.resize(self.choices.len(), 0);
            loop {
                let record = self.take::<R>(core, commit);
                done(self, &record)?;
                if !self.choose_next() {
                    break;
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// The next combination of choices; `false` if there is none.
    fn choose_next(&mut self) -> bool {
        for (chosen, choice) in self.chosen.iter_mut().zip(&self.choices) {
            if *chosen < choice.count {
                *chosen += 1;
                return true;
            }
            *chosen = 0;
        }
        false
    }

    /// The thread whose prefix comes before the commit by the `i`th choice, and its length.
    #[inline]
    fn chosen_prefix(&self, i: usize) -> Option<(usize, usize)> {
        let Prefixes { thread, first, .. } = self.choices[i];
        let number = self.chosen[i].checked_sub(1)?;
        Some((thread, self.lengths[first + number]))
    }

    /// Does the commit only lead to where its thread never moves again? Then whatever the others do next they
    /// can do without it.
    fn is_idle(&self, core: &Core, commit: Commit) -> bool {
        let How::Transition(number) = commit.how else { return false };
        let transaction = &self.transactions[commit.thread];
        let from = transaction.after(&self.base, commit.thread, commit.steps);
        let silent =
            matches!(self.cache.transition(number).effect, Effect::Local { .. } | Effect::Load { .. });
        core.reductions.prune
            && silent
            && !transaction.has_stores()
            && self.cache.get(commit.to).stuck
            && !self.cache.get(from).visible
    }

    /// Some steps of a thread's transaction, and nothing else.
    fn advance_alone<R: Record>(&mut self, core: &Core, t: usize, steps: usize) -> R {
        let mut record = R::default();
        self.next.copy(&self.base);
        self.advance(core, t, steps, &mut record);
        self.settle(core, &mut record);
        record
    }

    /// The thread takes so many steps of its transaction.
    #[inline]
    fn advance<R: Record>(&mut self, core: &Core, t: usize, steps: usize, record: &mut R) {
        if R::WANTED {
            for step in &self.transactions[t].steps[..steps] {
                let act = self.cache.act(self.cache.get(step.from).transitions().start);
                match step.touch {
                    Touch::Store(store) if store.accelerated => record.push_accelerated(t, act),
                    _ => record.push(t, act),
                }
            }
        }
        let to = self.transactions[t].after(&self.base, t, steps);
        self.next.go(core, &self.cache, t, to);
        if core.has_buffers() {
            self.transactions[t].stores(steps).for_each(|store| enter(&mut self.next.buffers[t], store));
        }
    }

    /// The commit, after the prefixes of other transactions that are chosen.
    fn take<R: Record>(&mut self, core: &Core, commit: Commit) -> R {
        let mut record = R::default();
        self.next.copy(&self.base);
        self.advance(core, commit.thread, commit.steps, &mut record);
        for i in 0..self.chosen.len() {
            if let Some((u, steps)) = self.chosen_prefix(i) {
                self.advance(core, u, steps, &mut record);
            }
        }
        match commit.how {
            How::Flush { stays } => {
                match stays {
                    true => record.push_accelerated(commit.thread, Act::Flush),
                    false => record.push(commit.thread, Act::Flush),
                }
                self.next.flush(core, commit.thread, stays);
            }
            How::Transition(number) => {
                record.push(commit.thread, self.cache.act(number));
                self.next.go(core, &self.cache, commit.thread, commit.to);
                if let Some((cell, raw)) = commit.write {
                    self.next.set(core, cell, raw);
                }
                if let Some(store) = commit.buffered {
                    enter(&mut self.next.buffers[commit.thread], store);
                }
            }
        }
        self.settle(core, &mut record);
        record
    }

    /// Takes every ample step, and writes down what is found.
    #[inline]
    fn settle(&mut self, core: &Core, record: &mut impl Record) {
        if core.reductions.por {
            let Expansion { cache, base, next, futures, others, others_next, .. } = self;
            let mut position = Moving { core, cache, next, record };
            let settled = base.is_drained() && stays_normal(&mut position, |t| futures[t], others);
            if !settled {
                normalise(&mut position, others_next);
            }
        }
        self.clear_dead_cells(core);
        if core.has_buffers() {
            self.too_large = !self.next.pack(core, &mut self.packed);
        }
    }

    /// Sets cells that no thread may read any more before writing them to the value that stands for that.
    #[inline]
    fn clear_dead_cells(&mut self, core: &Core) {
        let Expansion { cache, next, .. } = self;
        let thread = |(t, &id): (usize, &LocalId)| (cache.get(id).live_cells, next.buffer(t));
        for cell in core.dead_cells(next.at.iter().enumerate().map(thread)) {
            next.set(core, cell, 0);
        }
    }

    /// Has a thread that moved lost something that a goal may ask for?
    pub(crate) fn has_lost(&self) -> bool {
        self.next.moved.iter().any(|&t| self.cache.get(self.next.at[t]).lost)
    }
}

/// Partial-order reduction on a configuration.
struct Moving<'a, R> {
    core: &'a Core,
    cache: &'a mut TransitionCache,
    next: &'a mut Configuration,
    record: &'a mut R,
}

impl<R: Record> Position for Moving<'_, R> {
    #[inline]
    fn threads(&self) -> usize {
        self.next.at.len()
    }

    #[inline]
    fn moved(&self) -> &[usize] {
        &self.next.moved
    }

    #[inline]
    fn future(&self, t: usize) -> Access {
        self.next.future(self.cache, t)
    }

    #[inline]
    fn oldest_store(&self, t: usize) -> Option<u32> {
        self.next.buffer(t).first().map(|store| store.cell)
    }

    #[inline]
    fn is_observed(&self, cell: u32) -> bool {
        self.core.is_observed(cell)
    }

    /// A thread whose buffer is not empty flushes before it goes on.
    #[inline]
    fn candidate(&mut self, t: usize) -> Option<Access> {
        let at = self.next.at[t];
        if !self.next.buffer(t).is_empty() || !self.cache.get(at).may_be_ample {
            return None;
        }
        let local = self.cache.with_transitions(self.core, t, at);
        (!local.transitions().is_empty()).then_some(local.next)
    }

    #[inline]
    fn can_step(&self, _: usize) -> bool {
        true
    }

    #[inline]
    fn owns_memory(&self, _: usize) -> bool {
        false
    }

    #[inline]
    fn is_blocked(&self, _: usize) -> bool {
        false
    }

    #[inline]
    fn is_quiet(&self) -> bool {
        self.next.is_drained()
    }

    fn take(&mut self, t: usize, ample: Ample) {
        match ample {
            Ample::Step => self.step(t),
            Ample::Flush => {
                self.record.push(t, Act::Flush);
                self.next.flush(self.core, t, false);
            }
        }
    }
}

impl<R: Record> Moving<'_, R> {
    /// The thread takes its next step. Nothing waits in its buffer, nor does a store of this step.
    fn step(&mut self, t: usize) {
        let Moving { core, cache, next, record } = self;
        let from = next.at[t];
        let number = cache.get(from).transitions().start;
        let (to, set) = cache.effect(core, t, from, number, |cell| next.memory(core, cell));
        record.push(t, cache.act(number));
        if let Some((cell, raw)) = set {
            let silent = core.writes_alone(t, cell) && next.memory(core, cell) == raw;
            let is_store = matches!(cache.transition(number).effect, Effect::Store { .. });
            if core.has_buffers() && is_store && !silent {
                record.push(t, Act::Flush);
            }
            next.set(core, cell, raw);
        }
        next.go(core, cache, t, to);
    }
}

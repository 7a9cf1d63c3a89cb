//! Loads, and stores, as late as they can be: the steps of a machine in which nobody reads before it matters.
//!
//! A load that the goal cannot see commutes with whatever the other threads do, except with a write that changes what
//! it leads to. So every run can be put in an order in which such a load comes right before what makes it matter: a
//! step of its own thread that is more than such a load (an *anchor*: a write, a choice, a step that the goal
//! sees, an arrival at the end or at an error), or another thread's write that would change its outcome. One
//! step of the search is then: one thread does its *row* of loads up to its anchor, each of the others
//! does nothing or as many loads of its own row as it takes to see the anchor's cell before it changes, and the anchor is
//! taken. States in the middle of a row are not stored, except where a load has seen what is no longer there.
//!
//! Under TSO the writes are the flushes. Entering the buffer is nothing to others, so stores belong to rows, and so do
//! fences that have nothing to wait for. A flush is an anchor of its own: that of the oldest store in the buffer, before
//! whatever its thread does next; or, if the buffer is empty, that of the row's first store, right after it. So a store
//! waits in the buffer only if its thread loads something later that another thread then changes, or comes to an anchor
//! of the first kind: where that never happens, the states are those of SC.
//!
//! Why this is sound: take a shortest run from a stored state to a goal, and its first anchor. All before it are steps of
//! rows: memory stays as it is, so they commute with each other. Those of the anchor's thread are its row, or the part
//! of it that the flush needs; whatever else the thread did before the flush it can do after it, for it finds in its
//! buffer, or in memory after the flush, the same value. Of those of another thread, all
//! after the last load whose outcome the anchor changes can come after the anchor; the others are one of the
//! choices. What is left of the run is shorter and leads to a goal from the state that is stored. A shortest run has
//! no step that brings its thread back to a local state and a buffer it has had in the same memory, so a row ends there.
//! If the run has no anchor, no store enters a buffer in it, for a goal counts with empty buffers only; and
//! the goal says of its first state what it says of its last. For the same reason a store may be in a row even if the goal
//! sees it, unless it is silent. Steps that hurry (`machine`) are at most taken
//! out of the rest of the run. A row that is long is cut, and an anchor with many choices is preceded by steps of
//! rows alone: those are steps of the run too, and shorten the rest of it.
//!
//! A row that comes back to where it stood after its last store, with the same store, could go on filling the buffer for
//! ever: that store enters as many (`machine/pending`), and the row ends. What the loop reads must still be there for that;
//! if another's anchor changes it, the choices have the thread past its last load of it, and from there it comes round to
//! the store once more.
//!
//! There are no sleep sets here: they would save few steps, and looking again at states that wake up costs more.
//! Not here: `lock` … `unlock` blocks and bounded buffers; `machine` has the steps of such programs.

mod row;

use super::core::{Pending, ProgramMachine, Record, enter};
use super::transition_cache::{Act as Effect, LocalId, Locals};
use crate::analysis::access::Access;
use crate::query::Act;
use row::{End, Row, Standing, What};
use std::ops::{ControlFlow, Range};

/// With more choices than this, loads that matter to an anchor are steps of their own.
const MANY: usize = 16;

/// A way to take the anchor of a thread.
#[derive(Clone, Copy)]
struct Anchor {
    thread: usize,
    /// Steps of its row that come before.
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
    /// The thread takes this one of the local state's moves.
    Move(usize),
    /// The oldest store of its buffer reaches memory, and of many, more may stay.
    Flush { stays: bool },
}

/// A thread that may load before an anchor, and how far: some of `how_far`.
#[derive(Clone, Copy)]
struct Choice {
    thread: usize,
    first: usize,
    count: usize,
}

/// What may be taken at once.
enum Hurry {
    Step,
    Flush,
}

/// One worker's space.
#[derive(Default)]
pub(crate) struct Late {
    locals: Locals,
    base: Standing,
    next: Standing,
    /// The latter as words, with the buffers.
    packed: Vec<u64>,
    too_large: bool,
    /// Threads that have moved from the one to the other.
    moved: Vec<usize>,
    rows: Vec<Row>,
    anchors: Vec<Anchor>,
    /// Per thread, some of them.
    of_thread: Vec<Range<usize>>,
    /// Per thread, what the others may still touch in `base`.
    others: Vec<Access>,
    others_next: Vec<Access>,
    choices: Vec<Choice>,
    /// Numbers of steps.
    how_far: Vec<usize>,
    /// Per choice, none or one of its numbers.
    chosen: Vec<usize>,
}

impl Late {
    /// Prepares for the steps from a state.
    pub fn begin(&mut self, machine: &ProgramMachine, state: &[u64]) {
        let threads = machine.threads();
        self.locals.tidy(machine);
        self.base.unpack(machine, &mut self.locals, state);
        others_futures(&self.locals, &self.base, &mut self.others);
        self.rows.resize(threads, Row::default());
        self.anchors.clear();
        self.of_thread.clear();
        for t in 0..threads {
            self.rows[t].fill(machine, &mut self.locals, &self.base, t);
            let first = self.anchors.len();
            self.find_flush(machine, t);
            self.find_moves(machine, t);
            self.of_thread.push(first..self.anchors.len());
        }
    }

    /// The state that was found last.
    pub fn found(&self) -> &[u64] {
        if self.next.buffers.is_empty() { &self.next.words } else { &self.packed }
    }

    /// Does the state that was found last not fit?
    pub fn is_too_large(&self) -> bool {
        self.too_large
    }

    /// In the state that was found last.
    pub fn longest_buffer(&self) -> usize {
        self.next.buffers.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// The oldest store of the thread's buffer may reach memory; if the buffer is empty, the next store that enters it.
    fn find_flush(&mut self, machine: &ProgramMachine, t: usize) {
        let (base, row) = (&self.base, &self.rows[t]);
        let oldest = base.buffer(t).first().map(|&store| (0, store));
        let Some((steps, store)) = oldest.or_else(|| row.first_store()) else { return };
        let raw = machine.parts().cell(store.cell).raw(store.value);
        let write = (raw != base.memory(machine, store.cell)).then_some((store.cell, raw));
        let to = row.after(base, t, steps);
        let flush = |stays| Anchor { thread: t, steps, how: How::Flush { stays }, to, write, buffered: None };
        self.anchors.push(flush(false));
        if store.many && write.is_some() {
            self.anchors.push(flush(true));
        }
    }

    /// What the thread may do where its row ends.
    fn find_moves(&mut self, machine: &ProgramMachine, t: usize) {
        let Late { locals, base, rows, anchors, .. } = self;
        let row = &rows[t];
        if row.end != End::Anchor {
            return;
        }
        let steps = row.steps.len();
        let from = row.after(base, t, steps);
        for number in locals.get(from).moves() {
            let act = locals.a_move(number).act;
            if row.has_pending(base, t) && matches!(act, Effect::Rmw { .. } | Effect::Fence { .. }) {
                continue;
            }
            let now = |cell: u32| row.view(machine, base, t, cell);
            let (to, set) = locals.effect(machine, t, from, number, now);
            let buffers = machine.has_buffers() && matches!(act, Effect::Store { .. });
            let value = |(cell, raw): (u32, u64)| Pending::one(cell, machine.parts().cell(cell).value(raw));
            let (write, buffered) = match set {
                Some((cell, raw)) if buffers && row.is_silent(machine, base, t, cell, raw) => (None, None),
                set if buffers => (None, set.map(value)),
                set => (set.filter(|&(cell, raw)| raw != now(cell)), None),
            };
            anchors.push(Anchor { thread: t, steps, how: How::Move(number), to, write, buffered });
        }
    }

    /// Would writing the cell change the outcome of that step?
    fn changes(&mut self, machine: &ProgramMachine, t: usize, step: usize, cell: u32, raw: u64) -> bool {
        let row::Step { from, to, what } = self.rows[t].steps[step];
        what == What::Load(cell) && self.locals.load(machine, t, from, raw) != to
    }

    /// Who may load before the anchor, so that it matters.
    fn find_choices(&mut self, machine: &ProgramMachine, anchor: Anchor) {
        self.choices.clear();
        self.how_far.clear();
        let Some((cell, raw)) = anchor.write else { return };
        for thread in 0..self.rows.len() {
            if thread == anchor.thread || !self.rows[thread].reads.may_read(cell) {
                continue;
            }
            let first = self.how_far.len();
            for step in 0..self.rows[thread].steps.len() {
                if self.changes(machine, thread, step, cell, raw)
                    && !self.locals.get(self.rows[thread].steps[step].to).stuck
                {
                    self.how_far.push(step + 1);
                }
            }
            let count = self.how_far.len() - first;
            if count > 0 {
                self.choices.push(Choice { thread, first, count });
            }
        }
    }

    /// All normal forms that follow when thread `t` takes its anchor, each left in `found`.
    pub fn successors<R: Record>(
        &mut self,
        machine: &ProgramMachine,
        t: usize,
        mut done: impl FnMut(&Late, &R) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if self.rows[t].end == End::Cut {
            let record = self.advance_alone::<R>(machine, t, self.rows[t].steps.len());
            done(self, &record)?;
        }
        for i in self.of_thread[t].clone() {
            let anchor = self.anchors[i];
            if self.is_idle(machine, anchor) {
                continue;
            }
            self.find_choices(machine, anchor);
            let many = self.choices.iter().map(|c| c.count + 1).try_fold(1, usize::checked_mul);
            if many.is_none_or(|many| many > MANY) {
                for choice in std::mem::take(&mut self.choices) {
                    let record = self.advance_alone::<R>(machine, choice.thread, self.how_far[choice.first]);
                    done(self, &record)?;
                }
            }
            self.chosen.clear();
            self.chosen.resize(self.choices.len(), 0);
            loop {
                let record = self.take::<R>(machine, anchor);
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

    /// Who loads before the anchor by the `i`th choice, and how much.
    #[inline]
    fn loads_chosen(&self, i: usize) -> Option<(usize, usize)> {
        let Choice { thread, first, .. } = self.choices[i];
        let number = self.chosen[i].checked_sub(1)?;
        Some((thread, self.how_far[first + number]))
    }

    /// Does the anchor only lead to where its thread never moves again? Then whatever the others do next they can do
    /// without it.
    fn is_idle(&self, machine: &ProgramMachine, anchor: Anchor) -> bool {
        let How::Move(number) = anchor.how else { return false };
        let row = &self.rows[anchor.thread];
        let from = row.after(&self.base, anchor.thread, anchor.steps);
        let silent = matches!(self.locals.a_move(number).act, Effect::Local { .. } | Effect::Load { .. });
        machine.prunes()
            && silent
            && !row.has_stores()
            && self.locals.get(anchor.to).stuck
            && !self.locals.get(from).visible
    }

    /// Some steps of a thread's row, and nothing else.
    fn advance_alone<R: Record>(&mut self, machine: &ProgramMachine, t: usize, steps: usize) -> R {
        let mut record = R::default();
        self.next.become_like(&self.base);
        self.moved.clear();
        self.advance(machine, t, steps, &mut record);
        self.settle(machine, &mut record);
        record
    }

    /// The thread takes so many steps of its row.
    #[inline]
    fn advance<R: Record>(&mut self, machine: &ProgramMachine, t: usize, steps: usize, record: &mut R) {
        if R::WANTED {
            for step in &self.rows[t].steps[..steps] {
                let told = self.locals.told(self.locals.get(step.from).moves().start);
                match step.what {
                    What::Store(store) if store.many => record.push_many(t, told),
                    _ => record.push(t, told),
                }
            }
        }
        let to = self.rows[t].after(&self.base, t, steps);
        self.go(machine, t, to);
        if machine.has_buffers() {
            self.rows[t].stores(steps).for_each(|store| enter(&mut self.next.buffers[t], store));
        }
    }

    /// The anchor, and the loads before it that are chosen.
    fn take<R: Record>(&mut self, machine: &ProgramMachine, anchor: Anchor) -> R {
        let mut record = R::default();
        self.next.become_like(&self.base);
        self.moved.clear();
        self.advance(machine, anchor.thread, anchor.steps, &mut record);
        for i in 0..self.chosen.len() {
            if let Some((u, steps)) = self.loads_chosen(i) {
                self.advance(machine, u, steps, &mut record);
            }
        }
        match anchor.how {
            How::Flush { stays } => {
                match stays {
                    true => record.push_many(anchor.thread, Act::Flush),
                    false => record.push(anchor.thread, Act::Flush),
                }
                self.next.flush(machine, anchor.thread, stays);
            }
            How::Move(number) => {
                record.push(anchor.thread, self.locals.told(number));
                self.go(machine, anchor.thread, anchor.to);
                if let Some((cell, raw)) = anchor.write {
                    self.next.set(machine, cell, raw);
                }
                if let Some(store) = anchor.buffered {
                    enter(&mut self.next.buffers[anchor.thread], store);
                }
            }
        }
        self.settle(machine, &mut record);
        record
    }

    #[inline]
    fn go(&mut self, machine: &ProgramMachine, t: usize, to: LocalId) {
        self.moved.push(t);
        self.next.at[t] = to;
        self.locals.put(machine, t, to, &mut self.next.words);
    }

    /// Takes every step that may hurry, and writes down what is found.
    #[inline]
    fn settle(&mut self, machine: &ProgramMachine, record: &mut impl Record) {
        if machine.hurries() && !self.is_plainly_normal(machine) {
            self.normalise(machine, record);
        }
        self.forget(machine);
        if machine.has_buffers() {
            self.too_large = !self.next.pack(machine, &mut self.packed);
        }
    }

    /// Sets cells that nobody may read any more before writing them to what stands for that.
    #[inline]
    fn forget(&mut self, machine: &ProgramMachine) {
        let Late { locals, next, .. } = self;
        let thread = |(t, &id): (usize, &LocalId)| (locals.get(id).live_cells, next.buffer(t));
        for cell in machine.forgotten(next.at.iter().enumerate().map(thread)) {
            next.set(machine, cell, 0);
        }
    }

    fn normalise(&mut self, machine: &ProgramMachine, record: &mut impl Record) {
        while let Some((t, hurry)) = self.find_hurry(machine) {
            match hurry {
                Hurry::Step => self.hurry(machine, t, record),
                Hurry::Flush => {
                    record.push(t, Act::Flush);
                    self.next.flush(machine, t, false);
                }
            }
        }
    }

    /// The thread takes its next step. Nothing waits in its buffer, nor does a store of this step.
    fn hurry(&mut self, machine: &ProgramMachine, t: usize, record: &mut impl Record) {
        let Late { locals, next, .. } = self;
        let from = next.at[t];
        let number = locals.get(from).moves().start;
        let (to, set) = locals.effect(machine, t, from, number, |cell| next.memory(machine, cell));
        record.push(t, locals.told(number));
        if let Some((cell, raw)) = set {
            let silent = machine.writes_alone(t, cell) && next.memory(machine, cell) == raw;
            if machine.has_buffers() && !silent && matches!(locals.a_move(number).act, Effect::Store { .. }) {
                record.push(t, Act::Flush);
            }
            next.set(machine, cell, raw);
        }
        self.go(machine, t, to);
    }

    /// A look that settles most cases: nothing has changed for those who have not moved if the futures of the others
    /// have not.
    fn is_plainly_normal(&mut self, machine: &ProgramMachine) -> bool {
        let Late { locals, base, next, moved, others, .. } = self;
        base.is_drained()
            && next.is_drained()
            && moved.iter().all(|&t| {
                let future = locals.get(base.at[t]).future;
                let local = *locals.get(next.at[t]);
                local.future == future
                    && (!local.may_hurry
                        || others[t].conflicts(locals.with_moves(machine, t, next.at[t]).next))
            })
    }

    /// A thread whose oldest store, or whose next step if it has none, may be taken at once.
    fn find_hurry(&mut self, machine: &ProgramMachine) -> Option<(usize, Hurry)> {
        let Late { locals, next, others_next, .. } = self;
        others_futures(locals, next, others_next);
        (0..next.at.len()).find_map(|t| {
            if let Some(&Pending { cell, .. }) = next.buffer(t).first() {
                let free = !machine.is_watched(cell) && !others_next[t].conflicts(Access::write(cell));
                return free.then_some((t, Hurry::Flush));
            }
            if !locals.get(next.at[t]).may_hurry {
                return None;
            }
            let local = locals.with_moves(machine, t, next.at[t]);
            let free = !local.moves().is_empty() && !others_next[t].conflicts(local.next);
            free.then_some((t, Hurry::Step))
        })
    }

    /// Has somebody who moved lost something that a goal may ask for?
    pub fn has_lost(&self) -> bool {
        self.moved.iter().any(|&t| self.locals.get(self.next.at[t]).lost)
    }
}

/// Per thread, everything that the others may still touch.
fn others_futures(locals: &Locals, standing: &Standing, out: &mut Vec<Access>) {
    let future = |(t, &id): (usize, &LocalId)| {
        let waiting = standing.buffer(t).iter().map(|store| Access::write(store.cell));
        waiting.fold(locals.get(id).future, Access::union)
    };
    out.clear();
    out.extend(standing.at.iter().enumerate().map(future));
    super::core::without_own(out);
}

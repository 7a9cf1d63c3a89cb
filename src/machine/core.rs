//! What can happen next? The states and steps of a program under SC or TSO, as few of them as tell the truth.
//!
//! One step of the search is: a thread acts, runs its local instructions up to its next stop, and then every
//! step that may *hurry* is taken at once. A thread's next step may hurry if it is independent of everything
//! that the other threads may still do (their futures), cannot change the goal, and cannot close a cycle of its
//! thread's graph: alone it is a persistent set (Godefroid 1996), and the last condition is the cycle
//! proviso, decided on the graph, so that it does not depend on the order of the search. Inside a
//! `lock` … `unlock` block nobody else can touch memory, so the owner's steps hurry too.
//!
//! Hurrying leads to a unique normal form: such steps commute with each other and stay harmless whatever the
//! others do. Stored states are normal forms, and all threads are explored from each of them; therefore sleep
//! sets may be used on top without more ado: if p and q are independent in s, then q after p and p after q have
//! the same normal forms, and one of the two orders is enough. A thread that moved while hurrying is awake.
//!
//! Two kinds of states are not stored at all (`prune`): those from which no goal state can be reached in the
//! threads' graphs, and those that differ from their parent by a thread that only read and then got stuck.
//!
//! Stored states are also representatives of those that differ by the names of interchangeable threads alone
//! (`symmetry`): all of the above is decided by tables that such a renaming leaves as they are.
//!
//! Under TSO a store is local unless the goal looks at its cell; a flush belongs to its thread, and hurries if
//! nobody else may ever touch the cell. A store is *silent*, and does not enter the buffer, if nobody else ever writes
//! the cell and its thread wrote the same value last: whenever it reached memory, it would find that value there. Loops
//! that repeat a store then have finitely many states.
//! Without blocks and bounds, the steps are those of `late`, in which loads and stores wait until they matter.
//! Not here: why the goal counts only with empty buffers (`query::Goal`), and the plain meaning of
//! instructions (`semantics`), against which all of this is tested.

mod concretise;
mod dead_cells;
mod goal;
mod store_buffer;

pub(crate) use concretise::renamed;
pub(crate) use goal::Ending;
pub(crate) use store_buffer::{LONGEST_BUFFER, Pending, enter, leave};

pub(super) use dead_cells::Cells;

use store_buffer::Entries;

use super::canonical::{Renaming, Symmetry};
use super::compile::{CThread, Code, Compiled, Modify, Op, bits, compile, lock_slot, waits};
use super::movers::Late;
use super::transition_cache::Parts;
use crate::analysis::access::Access;
use crate::model::{Program, ThreadId, Value};
use crate::query::Reductions;
use crate::query::{Act, Action, Goal, Limit, Limits, Model};
use crate::reach::visited::MAX_WORDS;
use crate::reach::{Look, Machine, Sink, Sleep, Wanted};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The memory model that a machine follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    Sc,
    /// With buffers of at most so many entries.
    Tso(Option<usize>),
}

impl Memory {
    pub fn model(self) -> Model {
        match self {
            Memory::Sc => Model::Sc,
            Memory::Tso(_) => Model::Tso,
        }
    }
}

pub struct ProgramMachine {
    pub(crate) code: Compiled,
    symmetry: Symmetry,
    memory: Memory,
    reductions: Reductions,
    /// Cells that are forgotten where nobody may read what they hold, as a set of `access`.
    forgettable: u64,
    /// Where threads and cells lie, if loads are as late as they can be.
    late: Option<Parts>,
    /// Per thread, what the others ever touch, if stores that change nothing are left out.
    others_ever: Option<Vec<Access>>,
    /// Whether stores that a loop repeats are one entry of a buffer.
    repeats: bool,
    entries: Entries,
    /// Whether somebody wants to know how far from the goal a state is.
    ranking: bool,
    /// Whether a thread's own error is a goal.
    errors_count: bool,
    /// A buffer wanted to grow past its bound.
    overflowed: AtomicBool,
    /// A state did not fit.
    too_large: AtomicBool,
    longest_buffer: AtomicUsize,
}

/// A state in the making.
#[derive(Clone, Debug, Default)]
pub(crate) struct Work {
    pub vals: Vec<Value>,
    /// Oldest store first; empty lists under SC.
    pub buffers: Vec<Vec<Pending>>,
    /// Threads that have moved since the step began.
    pub moved: Vec<usize>,
}

/// What happens on the way, if anyone wants to know.
pub(crate) trait Record: Clone + Default {
    /// Whether anyone does.
    const WANTED: bool;

    fn push(&mut self, thread: usize, act: Act);

    /// The same of many: a store that enters the buffer as many, or a flush that leaves more of the same there.
    fn push_many(&mut self, thread: usize, act: Act) {
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

/// One worker's space: the state being expanded, and the successors being made.
#[derive(Default)]
pub struct Scratch {
    base: Work,
    work: Work,
    packed: Vec<u64>,
    next: Vec<Access>,
    others: Others,
    renaming: Renaming,
    twins: Vec<(usize, usize)>,
    late: Late,
}

/// Per thread what the others may still touch: in the state being expanded, and in a successor.
#[derive(Default)]
struct Others {
    of_base: Vec<Access>,
    of_work: Vec<Access>,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Taken {
    Yes,
    /// Not possible in this state.
    No,
}

impl ProgramMachine {
    pub fn new(
        program: &Program,
        goal: &Goal,
        memory: Memory,
        reductions: Reductions,
        limits: &Limits,
    ) -> Result<ProgramMachine, Limit> {
        let code = compile(program, goal, memory, reductions, limits)?;
        let late = waits(program, memory, reductions);
        // In a block, a thread may read its own buffer while memory is held by another: then it matters what is in there.
        // And with a bound it matters how much.
        let silent = reductions.silent && memory == Memory::Tso(None) && !program.has_locks();
        let others_ever = silent.then(|| others_ever(&code));
        let repeats = late && reductions.repeats && memory != Memory::Sc;
        Ok(ProgramMachine {
            forgettable: code.forgettable & !others_ever.as_deref().map_or(0, dead_cells::written_alone),
            others_ever,
            late: if late { Parts::of(&code) } else { None },
            repeats,
            entries: Entries::new(code.cells, code.contents, repeats),
            symmetry: if reductions.symmetry { Symmetry::of(&code) } else { Symmetry::default() },
            code,
            memory,
            reductions,
            ranking: false,
            errors_count: true,
            overflowed: AtomicBool::new(false),
            too_large: AtomicBool::new(false),
            longest_buffer: AtomicUsize::new(0),
        })
    }

    /// The same machine, for a search that is best first.
    pub fn ranking(self) -> ProgramMachine {
        ProgramMachine { ranking: true, ..self }
    }

    /// The same machine, for a search of clauses alone: a thread that has gone wrong just stands still.
    pub fn ignoring_errors(self) -> ProgramMachine {
        ProgramMachine { errors_count: false, ..self }
    }

    /// Words of a packed state, without the contents of buffers.
    pub fn words(&self) -> usize {
        self.code.layout.words()
    }

    /// Did a buffer want to grow past its bound? Then an exhausted search is no proof.
    pub fn overflowed(&self) -> bool {
        self.overflowed.load(Ordering::Relaxed)
    }

    /// Was a state left out because it needs too many words? Then an exhausted search is no proof.
    pub fn too_large(&self) -> bool {
        self.too_large.load(Ordering::Relaxed)
    }

    /// How many threads may change places with others.
    pub fn interchangeable(&self) -> usize {
        self.symmetry.interchangeable()
    }

    /// The same machine, unless something is not the same of all threads of a group: then nobody changes places.
    pub(crate) fn symmetric_if(self, same: impl Fn(&[usize]) -> bool) -> ProgramMachine {
        let alike = self.symmetry.members().all(same);
        let symmetry = if alike { self.symmetry } else { Symmetry::default() };
        ProgramMachine { symmetry, ..self }
    }

    pub fn longest_buffer(&self) -> usize {
        self.longest_buffer.load(Ordering::Relaxed)
    }

    /// Looks before it writes: workers would wait for each other at every step.
    #[inline]
    fn note_length(&self, length: usize) {
        if length > self.longest_buffer() {
            self.longest_buffer.fetch_max(length, Ordering::Relaxed);
        }
    }

    pub(crate) fn threads(&self) -> usize {
        self.code.threads.len()
    }

    pub(crate) fn node(&self, work: &Work, t: usize) -> &super::compile::Node {
        &self.code.threads[t].nodes[work.vals[t] as usize]
    }

    /// Has the thread gone wrong?
    pub(crate) fn is_trapped(&self, work: &Work, t: usize) -> bool {
        work.vals[t] == self.code.threads[t].trap as Value
    }

    /// Where threads and cells lie in a packed state, for a machine whose loads are late.
    #[inline]
    pub(super) fn parts(&self) -> &Parts {
        self.late.as_ref().expect("only machines whose loads are late ask")
    }

    /// Does the goal look at the cell in states that are not final?
    pub(super) fn is_watched(&self, cell: u32) -> bool {
        self.code.watched_cells.contains(&cell)
    }

    pub(super) fn hurries(&self) -> bool {
        self.reductions.por
    }

    pub(super) fn prunes(&self) -> bool {
        self.reductions.prune
    }

    pub(super) fn repeats(&self) -> bool {
        self.repeats
    }

    pub(super) fn has_buffers(&self) -> bool {
        self.memory != Memory::Sc
    }

    /// Is memory held by another thread's block?
    #[inline]
    pub(crate) fn held_up(&self, work: &Work, t: usize) -> bool {
        let owner = work.vals[lock_slot(self.threads())];
        owner != 0 && owner != t as Value + 1
    }

    fn owns_lock(&self, work: &Work, t: usize) -> bool {
        work.vals[lock_slot(self.threads())] == t as Value + 1
    }

    pub(crate) fn unpack(&self, words: &[u64], work: &mut Work) {
        work.vals.clear();
        work.vals.extend_from_slice(&self.code.template);
        work.moved.clear();
        self.code.layout.unpack(words, &mut work.vals);
        if self.has_buffers() {
            self.unpack_buffers(&words[self.code.layout.words()..], &mut work.buffers);
        }
    }

    pub(super) fn unpack_buffers(&self, words: &[u64], buffers: &mut Vec<Vec<Pending>>) {
        buffers.resize(self.threads(), Vec::new());
        self.entries.unpack(words, buffers);
    }

    pub(crate) fn pack(&self, work: &Work, out: &mut Vec<u64>) {
        out.clear();
        self.code.layout.pack(&work.vals, out);
        if !self.has_buffers() {
            return;
        }
        self.pack_buffers(&work.buffers, out);
    }

    /// Appends what waits in the buffers.
    pub(super) fn pack_buffers(&self, buffers: &[Vec<Pending>], out: &mut Vec<u64>) {
        self.entries.pack(buffers, out);
    }

    /// The cell at an address, if there is one.
    #[inline]
    pub(crate) fn cell(&self, work: &Work, addr: &Code) -> Option<usize> {
        let address = addr.eval(&work.vals)?;
        ((address as u64) < self.code.cells as u64).then_some(address as usize)
    }

    /// Takes one edge. `choice` is the value of an `any`. A step that goes wrong leads to the trap.
    #[inline]
    pub(crate) fn take(
        &self,
        work: &mut Work,
        t: usize,
        edge: &super::compile::CEdge,
        choice: Value,
    ) -> Taken {
        let thread = &self.code.threads[t];
        match self.act(work, t, &edge.op, choice) {
            Some(Taken::Yes) => work.vals[t] = edge.to as Value,
            Some(Taken::No) => return Taken::No,
            None => work.vals[t] = thread.trap as Value,
        }
        Taken::Yes
    }

    /// What an instruction does to everything but the location; `None` if it goes wrong.
    #[inline]
    fn act(&self, work: &mut Work, t: usize, op: &Op, choice: Value) -> Option<Taken> {
        match op {
            Op::Assign { dst, value } => work.vals[*dst as usize] = value.eval(&work.vals)?,
            Op::Any { dst, .. } => work.vals[*dst as usize] = choice,
            Op::Assume(e) if e.eval(&work.vals)? == 0 => return Some(Taken::No),
            Op::Assert(e) if e.eval(&work.vals)? == 0 => return None,
            Op::Assume(_) | Op::Assert(_) | Op::Nop => {}
            Op::Load { dst, addr } => {
                let cell = self.cell(work, addr)?;
                let own = self.buffered(work, t, cell);
                if own.is_none() && self.held_up(work, t) {
                    return Some(Taken::No);
                }
                work.vals[*dst as usize] = own.unwrap_or(work.vals[self.code.memory + cell]);
            }
            Op::Store { addr, value } => {
                let cell = self.cell(work, addr)?;
                let value = value.eval(&work.vals)?;
                return Some(self.store(work, t, cell, value));
            }
            Op::Rmw { dst, addr, op } => {
                let cell = self.cell(work, addr)?;
                let slot = self.code.memory + cell;
                let new = modified(op, &work.vals, work.vals[slot])?;
                if self.held_up(work, t) || self.has_pending(work, t) {
                    return Some(Taken::No);
                }
                work.vals[*dst as usize] = work.vals[slot];
                work.vals[slot] = new;
            }
            Op::Fence if self.has_pending(work, t) => return Some(Taken::No),
            Op::Fence => {}
            Op::Lock => {
                let lock = lock_slot(self.threads());
                if work.vals[lock] != 0 || self.has_pending(work, t) {
                    return Some(Taken::No);
                }
                work.vals[lock] = t as Value + 1;
            }
            Op::Unlock => {
                if !self.owns_lock(work, t) || self.has_pending(work, t) {
                    return Some(Taken::No);
                }
                work.vals[lock_slot(self.threads())] = 0;
            }
        }
        Some(Taken::Yes)
    }

    fn store(&self, work: &mut Work, t: usize, cell: usize, value: Value) -> Taken {
        match self.memory {
            Memory::Sc if self.held_up(work, t) => return Taken::No,
            Memory::Sc => work.vals[self.code.memory + cell] = value,
            Memory::Tso(_) if self.is_silent(work, t, cell, value) => {}
            Memory::Tso(bound) => {
                let buffer = &mut work.buffers[t];
                if bound.is_some_and(|most| buffer.len() >= most) {
                    self.overflowed.store(true, Ordering::Relaxed);
                    return Taken::No;
                }
                buffer.push(Pending::one(cell as u32, value));
                let length = buffer.len();
                self.note_length(length);
            }
        }
        Taken::Yes
    }

    /// Would the store change nothing, whenever it reached memory? So it is if nobody else writes the cell, and the thread
    /// itself wrote the same value last, or found it there.
    fn is_silent(&self, work: &Work, t: usize, cell: usize, value: Value) -> bool {
        let now = || self.buffered(work, t, cell).unwrap_or(work.vals[self.code.memory + cell]);
        self.writes_alone(t, cell as u32) && now() == value
    }

    /// Does nobody else ever write the cell? If it matters for stores that change nothing.
    #[inline]
    pub(super) fn writes_alone(&self, t: usize, cell: u32) -> bool {
        self.others_ever.as_ref().is_some_and(|others| !others[t].may_write(cell))
    }

    /// The newest own store to the cell that has not reached memory.
    #[inline]
    pub(crate) fn buffered(&self, work: &Work, t: usize, cell: usize) -> Option<Value> {
        work.buffer(t).iter().rev().find(|p| p.cell as usize == cell).map(|p| p.value)
    }

    #[inline]
    pub(crate) fn has_pending(&self, work: &Work, t: usize) -> bool {
        !work.buffer(t).is_empty()
    }

    /// The oldest store of the thread's buffer goes to memory.
    fn flush(&self, work: &mut Work, t: usize) -> Taken {
        if !self.has_pending(work, t) || self.held_up(work, t) {
            return Taken::No;
        }
        let store = leave(&mut work.buffers[t], false);
        work.vals[self.code.memory + store.cell as usize] = store.value;
        Taken::Yes
    }

    /// What the thread's own next step touches in this state, whether or not it is possible now.
    #[inline]
    fn next_step(&self, work: &Work, t: usize) -> Access {
        let node = self.node(work, t);
        if let Some(access) = node.next {
            return access;
        }
        let touched = |op: &Op| match op {
            Op::Load { addr, .. } => self.cell(work, addr).map(|c| Access::read(c as u32)),
            Op::Store { addr, .. } if !self.has_buffers() => {
                self.cell(work, addr).map(|c| Access::write(c as u32))
            }
            Op::Rmw { addr, .. } => self.cell(work, addr).map(|c| Access::read_write(c as u32)),
            Op::Lock | Op::Unlock => Some(Access::LOCKING),
            _ => None,
        };
        node.edges.iter().filter_map(|e| touched(&e.op)).fold(Access::NONE, Access::union)
    }

    /// What the thread may touch next, its flush included.
    #[inline]
    fn next(&self, work: &Work, t: usize) -> Access {
        let step = self.next_step(work, t);
        match work.buffer(t).first() {
            Some(store) => step.union(Access::write(store.cell)),
            None => step,
        }
    }

    /// Everything the thread may still touch.
    #[inline]
    fn future(&self, work: &Work, t: usize) -> Access {
        let stores = work.buffer(t).iter().map(|p| Access::write(p.cell));
        stores.fold(self.node(work, t).future, Access::union)
    }

    /// Per thread, everything that the others may still touch.
    #[inline]
    fn others_futures(&self, work: &Work, out: &mut Vec<Access>) {
        out.clear();
        out.extend((0..self.threads()).map(|t| self.future(work, t)));
        without_own(out);
    }

    /// A thread whose step, or whose flush, may be taken at once.
    fn find_hurry(&self, work: &Work, others: &mut Vec<Access>) -> Option<(usize, Hurry)> {
        self.others_futures(work, others);
        (0..self.threads()).find_map(|t| Some((t, self.hurry(work, t, others[t])?)))
    }

    fn hurry(&self, work: &Work, t: usize, others: Access) -> Option<Hurry> {
        let alone = self.owns_lock(work, t);
        if let Some(&Pending { cell, .. }) = work.buffer(t).first()
            && !self.is_watched(cell)
            && (alone || !others.conflicts(Access::write(cell)))
            && !self.held_up(work, t)
        {
            return Some(Hurry::Flush);
        }
        let free = self.node(work, t).may_hurry
            && (alone || !others.conflicts(self.next_step(work, t)))
            && self.can_step(work, t);
        free.then_some(Hurry::Step)
    }

    /// Can the thread take a step of its own in this state?
    fn can_step(&self, work: &Work, t: usize) -> bool {
        let possible = |op: &Op| match op {
            Op::Assume(e) => e.eval(&work.vals) != Some(0),
            Op::Load { addr, .. } => {
                let cell = self.cell(work, addr);
                cell.is_none_or(|c| !self.held_up(work, t) || self.buffered(work, t, c).is_some())
            }
            Op::Store { .. } => match self.memory {
                Memory::Sc => !self.held_up(work, t),
                Memory::Tso(bound) => bound.is_none_or(|most| work.buffers[t].len() < most),
            },
            Op::Rmw { .. } => !self.held_up(work, t) && !self.has_pending(work, t),
            Op::Fence => !self.has_pending(work, t),
            Op::Lock => work.vals[lock_slot(self.threads())] == 0 && !self.has_pending(work, t),
            Op::Unlock => self.owns_lock(work, t) && !self.has_pending(work, t),
            Op::Assign { .. } | Op::Any { .. } | Op::Assert(_) | Op::Nop => true,
        };
        self.node(work, t).edges.iter().any(|e| possible(&e.op))
    }

    /// Takes the first possible edge of a node whose edges exclude each other.
    #[inline]
    fn take_any(&self, work: &mut Work, t: usize, record: &mut impl Record) -> Taken {
        for edge in &self.node(work, t).edges {
            if self.take(work, t, edge, 0) == Taken::Yes {
                record.push(t, Act::Step { edge: edge.id, choice: None });
                return Taken::Yes;
            }
        }
        Taken::No
    }

    /// Runs the thread's local steps up to its next stop.
    #[inline]
    pub(crate) fn run<R: Record>(&self, work: &mut Work, t: usize, record: &mut R) {
        while !self.node(work, t).stop {
            if !R::WANTED
                && let Some((chain, link)) = self.node(work, t).chain
            {
                let chain = &self.code.threads[t].chains[chain as usize];
                work.vals[t] = chain.follow(link as usize, &work.vals) as Value;
                continue;
            }
            if self.take_any(work, t, record) == Taken::No {
                // It never will go on: its registers are its own.
                work.vals[t] = self.code.threads[t].stuck as Value;
            }
        }
    }

    /// Takes every step that may hurry.
    fn normalise(&self, work: &mut Work, others: &mut Vec<Access>, record: &mut impl Record) {
        if !self.reductions.por {
            return;
        }
        while let Some((t, hurry)) = self.find_hurry(work, others) {
            work.moved.push(t);
            let taken = match hurry {
                Hurry::Step => self.take_any(work, t, record),
                Hurry::Flush => {
                    record.push(t, Act::Flush);
                    self.flush(work, t)
                }
            };
            assert!(taken == Taken::Yes, "what hurries is possible");
            self.run(work, t, record);
        }
    }

    /// Is a state in which thread `t` has just moved from the normal form `base` one too? A cheap look that
    /// settles most cases: nothing has changed for the other threads if t's future has not. `others` is what
    /// they may still touch.
    #[inline]
    fn is_plainly_normal(&self, base: &Work, work: &Work, t: usize, others: Access) -> bool {
        let lock = lock_slot(self.threads());
        let node = self.node(work, t);
        !self.has_buffers()
            && work.vals[lock] == 0
            && base.vals[lock] == 0
            && node.future == self.node(base, t).future
            && (!node.may_hurry || others.conflicts(self.next_step(work, t)))
    }

    /// Sets registers that no longer matter to the value that stands for that, and values that can no longer be told
    /// apart to one, where threads have moved.
    #[inline]
    pub(crate) fn bury(&self, work: &mut Work) {
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

    /// Turns the state into the one that is stored for it; `renaming` says who was who.
    fn represent(&self, work: &mut Work, renaming: &mut Renaming) {
        self.bury(work);
        let forgotten = self.forgotten_in(work);
        self.forget(work, forgotten.clone());
        if self.symmetry.represent(&self.code, work, &forgotten, renaming) {
            self.forget(work, self.forgotten_in(work));
        }
    }

    /// Did the step only read, and end where its thread never moves again? Then whatever the others do next they
    /// can do without it.
    #[inline]
    fn is_idle_end(&self, base: &Work, work: &Work, t: usize, op: &Op) -> bool {
        work.vals[t] == self.code.threads[t].stuck as Value
            && self.reductions.prune
            && !self.node(base, t).visible
            && !matches!(op, Op::Store { .. } | Op::Rmw { .. } | Op::Lock | Op::Unlock)
            && work.buffer(t).len() == base.buffer(t).len()
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
        for edge in &self.node(base, t).edges {
            let (lo, hi, any) = match edge.op {
                Op::Any { lo, hi, .. } => (lo, hi, true),
                _ => (0, 0, false),
            };
            for choice in lo..=hi {
                work.copy(base, t);
                if self.take(work, t, edge, choice) == Taken::No {
                    continue;
                }
                let mut record = R::default();
                record.push(t, Act::Step { edge: edge.id, choice: any.then_some(choice) });
                self.run(work, t, &mut record);
                if self.is_idle_end(base, work, t, &edge.op) {
                    continue;
                }
                if !self.is_plainly_normal(base, work, t, others.of_base[t]) {
                    self.normalise(work, &mut others.of_work, &mut record);
                }
                done(work, &record)?;
            }
        }
        if self.has_pending(base, t) {
            work.copy(base, t);
            if self.flush(work, t) == Taken::Yes {
                let mut record = R::default();
                record.push(t, Act::Flush);
                self.normalise(work, &mut others.of_work, &mut record);
                done(work, &record)?;
            }
        }
        ControlFlow::Continue(())
    }

    /// The normal form of the initial state.
    fn beginning<R: Record>(&self) -> (Work, R) {
        let buffers = if self.has_buffers() { vec![Vec::new(); self.threads()] } else { Vec::new() };
        let moved = (0..self.threads()).collect();
        let mut work = Work { vals: self.code.initial.clone(), buffers, moved };
        let mut record = R::default();
        for t in 0..self.threads() {
            self.run(&mut work, t, &mut record);
        }
        self.normalise(&mut work, &mut Vec::new(), &mut record);
        (work, record)
    }
}

/// What may be taken at once.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Hurry {
    Step,
    Flush,
}

impl Work {
    /// Becomes `other` as thread `t` begins to move.
    #[inline]
    pub fn copy(&mut self, other: &Work, t: usize) {
        self.vals.clone_from(&other.vals);
        self.buffers.clone_from(&other.buffers);
        self.moved.clear();
        self.moved.push(t);
    }

    /// What waits to reach memory, oldest first; nothing under SC.
    #[inline]
    pub fn buffer(&self, t: usize) -> &[Pending] {
        self.buffers.get(t).map_or(&[], |b| b)
    }

    /// The threads that moved after the first.
    fn hurried(&self) -> Sleep {
        let bit = |&t: &usize| if t < Sleep::BITS as usize { 1 << t } else { 0 };
        self.moved[1..].iter().map(bit).fold(0, |all, bit| all | bit)
    }
}

#[inline]
fn modified(op: &Modify, vals: &[Value], old: Value) -> Option<Value> {
    Some(match op {
        Modify::Swap(v) => v.eval(vals)?,
        Modify::Add(v) => old.wrapping_add(v.eval(vals)?),
        Modify::Cas { old: expected, new } => {
            let (expected, new) = (expected.eval(vals)?, new.eval(vals)?);
            if old == expected { new } else { old }
        }
    })
}

impl Machine for ProgramMachine {
    type Scratch = Scratch;

    fn scratch(&self) -> Scratch {
        Scratch::default()
    }

    fn initial(&self, scratch: &mut Scratch, sink: &mut impl Sink) {
        let (mut work, ()) = self.beginning();
        self.hand_over(&mut work, &mut scratch.packed, &mut scratch.renaming, 0, sink);
    }

    fn look(&self, scratch: &mut Scratch, state: &[u64]) -> Look {
        if !self.ranking && self.is_plain(state) {
            return Look::Rank(0);
        }
        self.unpack(state, &mut scratch.base);
        match self.reaches_goal(&scratch.base) {
            true => Look::Goal(0),
            false => Look::Rank(if self.ranking { self.distance(&scratch.base) } else { 0 }),
        }
    }

    fn expand(
        &self,
        scratch: &mut Scratch,
        state: &[u64],
        wanted: Wanted,
        sleep: Sleep,
        sink: &mut impl Sink,
    ) {
        if self.late.is_some() {
            return self.expand_late(scratch, state, sink);
        }
        let Scratch { base, work, packed, next, others, renaming, twins, .. } = scratch;
        self.unpack(state, base);
        self.symmetry.twins(base, &self.forgotten_in(base), renaming, twins);
        self.others_futures(base, &mut others.of_base);
        next.clear();
        next.extend((0..self.threads()).map(|t| self.next(base, t)));
        // Threads whose steps from here are, or have been, taken care of elsewhere.
        let mut settled = sleep;
        // Threads that this task has explored, or a twin of theirs.
        let mut covered = 0u64;
        for t in (0..self.threads()).filter(|&t| wanted.contains(t)) {
            let asleep = t < Sleep::BITS as usize && settled >> t & 1 != 0;
            if asleep {
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
            let inherited = if self.reductions.sleep { independent(settled, next, t) } else { 0 };
            let mut any = false;
            let _ = self.successors::<()>(base, work, t, others, |work, ()| {
                any = true;
                let sleep = inherited & !work.hurried();
                self.hand_over(work, packed, renaming, sleep, sink);
                ControlFlow::Continue(())
            });
            // Where memory is held by another, some of its steps may have been left out.
            if any && t < Sleep::BITS as usize && self.reductions.sleep && !self.held_up(base, t) {
                settled |= 1 << t;
            }
        }
    }

    fn trace(&self, line: &[Vec<u64>], limits: &Limits) -> Result<Vec<Action>, Limit> {
        Ok(self.walk(line, limits)?.0)
    }
}

impl ProgramMachine {
    fn expand_late(&self, scratch: &mut Scratch, state: &[u64], sink: &mut impl Sink) {
        let Scratch { base, work, packed, renaming, twins, late, .. } = scratch;
        twins.clear();
        if !self.symmetry.is_none() {
            self.unpack(state, base);
            self.symmetry.twins(base, &self.forgotten_in(base), renaming, twins);
        }
        late.begin(self, state);
        for t in (0..self.threads()).filter(|t| twins.iter().all(|(later, _)| later != t)) {
            let _ = late.successors::<()>(self, t, |late, ()| {
                self.hand_over_late(late, work, packed, renaming, sink);
                ControlFlow::Continue(())
            });
        }
    }

    fn hand_over_late(
        &self,
        late: &Late,
        work: &mut Work,
        packed: &mut Vec<u64>,
        renaming: &mut Renaming,
        sink: &mut impl Sink,
    ) {
        if self.has_buffers() {
            self.note_length(late.longest_buffer());
        }
        if late.is_too_large() {
            return self.too_large.store(true, Ordering::Relaxed);
        }
        let lost = self.reductions.prune && late.has_lost();
        if self.symmetry.is_none() && !lost {
            return sink.state(late.found(), 0);
        }
        self.unpack(late.found(), work);
        if lost && self.has_no_hope(work) {
            return;
        }
        self.represent(work, renaming);
        self.pack(work, packed);
        sink.state(packed, 0);
    }

    #[inline]
    fn hand_over(
        &self,
        work: &mut Work,
        packed: &mut Vec<u64>,
        renaming: &mut Renaming,
        mut sleep: Sleep,
        sink: &mut impl Sink,
    ) {
        if self.is_hopeless(work) {
            return;
        }
        let long = work.buffers.iter().any(|b| b.len() > LONGEST_BUFFER);
        if !long {
            self.represent(work, renaming);
            if !self.symmetry.is_none() {
                sleep = renaming.sleep(sleep);
            }
            self.pack(work, packed);
        }
        if long || packed.len() > MAX_WORDS {
            self.too_large.store(true, Ordering::Relaxed);
            return;
        }
        sink.state(packed, sleep);
    }
}

/// Per thread, what the others touch anywhere. From where they begin it may be less, but not for whoever takes their
/// place: interchangeable threads may begin at different locations.
fn others_ever(code: &Compiled) -> Vec<Access> {
    let anywhere = |thread: &CThread| thread.nodes.iter().map(|n| n.future).fold(Access::NONE, Access::union);
    let mut futures: Vec<Access> = code.threads.iter().map(anywhere).collect();
    without_own(&mut futures);
    futures
}

/// From what each thread may touch to what all others may.
#[inline]
pub(super) fn without_own(futures: &mut [Access]) {
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

/// The threads among `settled` whose next steps are independent of t's.
#[inline]
fn independent(settled: Sleep, next: &[Access], t: usize) -> Sleep {
    let mut left = settled;
    let mut kept = 0;
    while left != 0 {
        let u = left.trailing_zeros();
        left &= left - 1;
        if !next[u as usize].conflicts(next[t]) {
            kept |= 1 << u;
        }
    }
    kept
}

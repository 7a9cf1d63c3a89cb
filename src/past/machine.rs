//! The machine of *lagging readers*: TSO seen from the reader's side, the dual of store buffers
//! `[DualTSO18]`. A store is in memory at once, and a thread that has stored may go on reading from an older
//! memory than the present one.
//!
//! A state has locations, registers, memory and the owner of the lock, as under SC, and for each thread a
//! *past* (`ideal`): the memories since some point of time at which the thread still is. Without one it is
//! *in step*, and everything it does is done as under SC. Only a thread at a location with a store has a
//! past; in step, its past is the present memory.
//!
//! - *Store*: memory changes at once. The past of every other thread at a store grows by the new memory.
//!   The thread's own grows by a mark and the new memory. Then it *runs ahead*, in the same step, over local
//!   instructions and loads that read from its past. It may stop at a store and keep its past, or anywhere
//!   else without it: in step.
//! - *At a store with other edges*, a load or a local step goes on in the past; all else drops it first.
//! - *Fences and locked instructions* are done in step; what the latter write goes into the others' pasts.
//! - *`membarrier`*: every thread is in step. (What a thread does in its past it can as well do before that; and what it
//!   stores later is issued later, and so are the loads behind it.) Not beside blocks: a past inside a block has no end.
//! - *Blocks*: the owner is in step. While it holds the lock no other thread moves, and what it writes goes
//!   into the others' pasts at `unlock` only. From `lock` on, a past that is the memory at that time alone is
//!   spelled out.
//! - *Goal*: a clause that holds of locations, registers and memory, whatever the pasts; and inside a block,
//!   a clause that holds when other threads have gone on, at a store, with stores that reach memory too late:
//!   *phantoms*.
//!
//! **Why this is TSO.** *Every TSO run is one of these.* All that a thread does while another's block holds
//! memory (local steps, loads from its own buffer, issuing stores, fences with an empty buffer) depends on
//! the thread alone, so it can as well be done before the block: nobody but the owner moves in a block. Take
//! a run that ends with empty buffers. Do each store when it is flushed, and each other instruction at its own
//! time or when the last store before it in its thread is flushed, whichever is later. If its own time is
//! later, no store of its thread waits in the buffer then: it is done in step. Otherwise it is done right
//! after that flush, by running ahead, and a load reads from the past: the thread's own newest store, if that
//! had not been flushed when the load was done, which is the mark; or the memory of that time. Fences and
//! locked instructions wait for empty buffers, so they are done in step. Between two flushes the thread stops
//! in step where the first instruction has a time of its own that is later than the first flush; if there is
//! none, it stops at the next store, with a past that begins at the time of the last instruction. Inside a
//! block the buffers of others may be full at the end. Their stores are never done here; all that a thread did
//! after issuing the first of them it did before the `lock`, reading its buffer or what the past has, and that
//! is what phantoms do.
//!
//! *Every run of this machine is one of TSO.* A load was done at the time of the memory that it read, or if it
//! read a mark, at that of the thread's last load before it: a thread's place in its past only moves forward,
//! so this is an order of the thread's instructions. A store is issued at its thread's place in the past,
//! and flushed when it is done here. At any place, the buffer has the stores of which the past has the mark
//! still ahead: of each cell, the newest is what a load takes. Nobody reads or flushes inside another's
//! block, for there is no memory in any past between `lock` and `unlock`. Dropping a past is to wait. So a goal
//! state has empty buffers, but for phantoms.
//!
//! Steps are those of `machine::core` under SC, up to scheduling points, at each of which a thread may stop in
//! step. That suffices here too: a step that runs on to the next point passes places at which the goal says
//! what it says at one of its ends (`compile::scheduling`), whether what is read is old or new.
//! Steps and the argument for them are one algorithm, and one file. Not here: searching (`search`), and which
//! TSO run it is (`concretise`).

use super::ideal::Level;
use super::table::{IN_STEP, PastId, PastTable};
use crate::analysis::interval::Intervals;
use crate::analysis::relevance::{Cells, Overwritten, Relevance};
use crate::machine::{CEdge, CInstr, Core, MemoryModel, Record, Stores, Taken, Work, may_hold_in_block};
use crate::model::{Loc, Program, ThreadId, Value};
use crate::query::{Act, Action, Goal, Limit, Limits, Reductions};
use std::collections::HashSet;
use std::ops::ControlFlow;

/// What a state keeps beside what is needed for the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Cells that nobody will read are cleared, and values that cannot be told apart are one.
    Needed,
    /// All of memory, and all values of live registers.
    All,
}

/// A program as a machine of lagging readers.
pub(crate) struct LaggingMachine {
    pub(super) core: Core,
    pub(super) relevance: Relevance,
    /// Per thread and node.
    nodes: Vec<Vec<NodeFacts>>,
    /// Whether the goal may look into blocks.
    pub(super) looks_inside: bool,
}

#[derive(Clone, Copy, Default)]
pub(super) struct NodeFacts {
    /// The number of the set of relevant cells.
    pub relevant: u32,
    /// A store leads on from here.
    pub stores: bool,
}

/// One decision, and what it read from the past if it did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Move {
    pub action: Action,
    pub read: Option<(u32, Value)>,
    /// The store never reaches memory.
    pub phantom: bool,
}

/// What is kept of the moves on the way, if anything.
pub(crate) trait Telling: Record {
    /// The last decision was a load from the past.
    fn read(&mut self, cell: u32, value: Value);

    /// All stores were phantoms.
    fn are_phantoms(&mut self);
}

impl Telling for () {
    fn read(&mut self, _: u32, _: Value) {}

    fn are_phantoms(&mut self) {}
}

impl Record for Vec<Move> {
    const WANTED: bool = true;

    fn push(&mut self, thread: usize, act: Act) {
        let action = Action { thread: ThreadId(thread as u16), act };
        Vec::push(self, Move { action, read: None, phantom: false });
    }
}

impl Telling for Vec<Move> {
    fn read(&mut self, cell: u32, value: Value) {
        self.last_mut().expect("a load was told").read = Some((cell, value));
    }

    fn are_phantoms(&mut self) {
        self.iter_mut().for_each(|m| m.phantom = true);
    }
}

/// Where a thread is while it runs ahead.
struct Ahead<R> {
    /// Its location and registers.
    own: Box<[Value]>,
    past: PastId,
    told: R,
}

/// What expanding states needs again and again.
#[derive(Default)]
pub(crate) struct Space {
    work: Work,
    out: Work,
    pasts: Vec<PastId>,
    out_pasts: Vec<PastId>,
    seen: HashSet<(Box<[Value]>, PastId)>,
    /// Places that threads have run through, all together, and how many they may at most.
    pub passed: u64,
    pub most: u64,
}

/// Why a step is not done.
#[derive(Debug)]
pub(crate) enum Stop {
    Limit(Limit),
    /// A thread has run ahead through too many places.
    TooFar,
}

impl From<Limit> for Stop {
    fn from(limit: Limit) -> Stop {
        Stop::Limit(limit)
    }
}

/// Who takes the states that follow.
pub(crate) trait Successors<R> {
    fn state(&mut self, table: &mut PastTable, work: &mut Work, pasts: &mut [PastId], told: &R) -> Flow;
}

/// What a step comes to: on with the next, or enough.
pub(crate) type Flow = Result<ControlFlow<()>, Stop>;

/// Steps that it takes to run to the next place.
const PLACE: usize = 16;

impl LaggingMachine {
    pub(crate) fn new(
        program: &Program,
        goal: &Goal,
        reductions: Reductions,
        contents: Keep,
        limits: &Limits,
    ) -> Result<LaggingMachine, Limit> {
        // Faint cells are left out before, if at all: a run has to be told with them.
        let reductions = Reductions { faint: false, ..reductions };
        let mut core = Core::new(program, goal, MemoryModel::Sc, Stores::Scheduled, reductions, limits)?;
        let overwritten = match contents {
            Keep::All => {
                core.keep_contents();
                Overwritten::Kept
            }
            Keep::Needed if reductions.liveness => Overwritten::Dropped,
            Keep::Needed => Overwritten::Kept,
        };
        let relevance = Relevance::of(program, &Intervals::of(program, limits)?, overwritten, limits)?;
        let facts = |t: ThreadId| {
            let thread = &core.code.threads[t.index()];
            let stores = |e: &CEdge| matches!(e.instr, CInstr::Store { .. });
            let stores = thread.nodes.iter().map(|n| n.edges.iter().any(stores));
            let mut facts: Vec<NodeFacts> = stores.map(|stores| NodeFacts { relevant: 0, stores }).collect();
            for (loc, &node) in thread.node_of.iter().enumerate() {
                facts[node as usize].relevant = relevance.number(t, Loc(loc as u32));
            }
            facts
        };
        let nodes = program.thread_ids().map(facts).collect();
        let looks_inside = may_hold_in_block(program, goal);
        Ok(LaggingMachine { nodes, relevance, looks_inside, core })
    }

    /// The initial state.
    pub(crate) fn start<R: Telling>(&self) -> (Work, Vec<PastId>, R) {
        let (mut work, mut told) = (self.core.start(), R::default());
        (0..self.core.threads()).for_each(|t| self.core.run(&mut work, t, &mut told));
        (work, vec![IN_STEP; self.core.threads()], told)
    }

    pub(super) fn facts(&self, work: &Work, t: usize) -> NodeFacts {
        self.nodes[t][work.vals[t] as usize]
    }

    /// The relevant cells of a node, and their number.
    fn relevant(&self, facts: NodeFacts) -> (u32, &Cells) {
        (facts.relevant, self.relevance.cells(facts.relevant))
    }

    fn memory<'a>(&self, work: &'a Work) -> &'a [Value] {
        &work.vals[self.core.code.memory..]
    }

    /// The set of what is relevant of memory to the thread.
    fn seen_by(&self, table: &mut PastTable, work: &Work, t: usize) -> u32 {
        table.memory(&self.relevance, self.facts(work, t).relevant, self.memory(work))
    }

    pub(super) fn save(&self, work: &Work, t: usize) -> Box<[Value]> {
        let registers = self.core.code.registers(t);
        std::iter::once(work.vals[t]).chain(work.vals[registers].iter().copied()).collect()
    }

    pub(super) fn restore(&self, work: &mut Work, t: usize, own: &[Value]) {
        work.vals[t] = own[0];
        work.vals[self.core.code.registers(t)].copy_from_slice(&own[1..]);
    }

    /// Hands over every state that follows when the thread moves.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn expand<R: Telling>(
        &self,
        space: &mut Space,
        table: &mut PastTable,
        levels: &[Level],
        (base, pasts): (&Work, &[PastId]),
        t: usize,
        limits: &Limits,
        sink: &mut impl Successors<R>,
    ) -> Flow {
        if self.core.is_blocked(base, t) {
            return Ok(ControlFlow::Continue(()));
        }
        let mut step = Step { machine: self, space, table, levels, limits, sink, t };
        for edge in &self.core.node(base, t).edges {
            for choice in edge.instr.choices() {
                step.space.work.copy(base, t);
                step.space.pasts.clear();
                step.space.pasts.extend_from_slice(pasts);
                if step.take::<R>(base, edge, choice)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// A thread's step in the making.
struct Step<'a, S> {
    machine: &'a LaggingMachine,
    space: &'a mut Space,
    table: &'a mut PastTable,
    levels: &'a [Level],
    limits: &'a Limits,
    sink: &'a mut S,
    t: usize,
}

impl<S> Step<'_, S> {
    fn take<R: Telling>(&mut self, base: &Work, edge: &CEdge, choice: Option<Value>) -> Flow
    where
        S: Successors<R>,
    {
        let (core, t, past) = (&self.machine.core, self.t, self.space.pasts[self.t]);
        self.limits.spend(PLACE)?;
        let mut told = R::default();
        let act = Act::Step { edge: edge.id, choice };
        if let (CInstr::Load { addr, dst, .. }, true) = (&edge.instr, past != IN_STEP)
            && let Some(cell) = core.cell(&self.space.work, addr)
        {
            let own = self.machine.save(&self.space.work, t);
            for which in self.table.reads(past, cell as u32) {
                self.machine.restore(&mut self.space.work, t, &own);
                let mut told = R::default();
                told.push(t, act);
                let left = self.load(edge, *dst, cell, which, &mut told);
                if self.run_ahead(left, told)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            return Ok(ControlFlow::Continue(()));
        }
        let stored = match &edge.instr {
            CInstr::Store { addr, .. } => core.cell(&self.space.work, addr),
            _ => None,
        };
        if core.take(&mut self.space.work, t, edge, choice) == Taken::No {
            return Ok(ControlFlow::Continue(()));
        }
        told.push(t, act);
        let past = match &edge.instr {
            _ if core.is_trapped(&self.space.work, t) => IN_STEP,
            CInstr::Store { .. } => {
                self.publish(base);
                let cell = stored.expect("a store that does not go wrong has a cell");
                self.store(past, cell as u32)
            }
            CInstr::Rmw { .. } => {
                self.publish(base);
                IN_STEP
            }
            CInstr::Lock => {
                self.spell_out();
                IN_STEP
            }
            CInstr::Unlock => {
                self.publish_block();
                IN_STEP
            }
            CInstr::Fence => IN_STEP,
            CInstr::Membarrier => {
                self.space.pasts.fill(IN_STEP);
                IN_STEP
            }
            _ => past,
        };
        self.run_ahead(past, told)
    }

    /// A load from the past; what is left of it then.
    fn load<R: Telling>(
        &mut self,
        edge: &CEdge,
        dst: u32,
        cell: usize,
        which: usize,
        told: &mut R,
    ) -> PastId {
        let (value, left) = self.table.read(which);
        self.space.work.vals[dst as usize] = value;
        self.space.work.vals[self.t] = edge.to as Value;
        told.read(cell as u32, value);
        left
    }

    /// The thread's own past after its store.
    fn store(&mut self, past: PastId, cell: u32) -> PastId {
        let Step { machine, space, table, t, .. } = self;
        let facts = machine.facts(&space.work, *t);
        if past == IN_STEP || facts.relevant == 0 {
            return IN_STEP;
        }
        let memory = machine.seen_by(table, &space.work, *t);
        let pair = (cell, machine.memory(&space.work)[cell as usize]);
        table.stored(past, pair, memory, machine.relevant(facts), self.levels[*t])
    }

    /// The others' pasts grow by the memory now, if it has changed for them. Inside a block nobody sees it.
    fn publish(&mut self, base: &Work) {
        let Step { machine, space, table, t, .. } = self;
        let Space { work, pasts, .. } = &mut **space;
        if machine.core.owns_lock(work, *t) {
            return;
        }
        for u in (0..pasts.len()).filter(|u| u != t) {
            let facts = machine.facts(work, u);
            if !facts.stores || facts.relevant == 0 {
                continue;
            }
            let (before, now) = (machine.seen_by(table, base, u), machine.seen_by(table, work, u));
            if before == now {
                continue;
            }
            let past = if pasts[u] == IN_STEP { table.of_memory(before) } else { pasts[u] };
            let past = table.appended(past, now, self.levels[u]);
            pasts[u] = table.settled(past, now);
        }
    }

    /// At `lock`, the pasts of others that are the present memory alone are spelled out.
    fn spell_out(&mut self) {
        let Step { machine, space, table, t, .. } = self;
        let Space { work, pasts, .. } = &mut **space;
        for u in (0..pasts.len()).filter(|u| u != t) {
            let facts = machine.facts(work, u);
            if facts.stores && facts.relevant != 0 && pasts[u] == IN_STEP {
                let now = machine.seen_by(table, work, u);
                pasts[u] = table.of_memory(now);
            }
        }
    }

    /// At `unlock`, the others' pasts grow by what the block has left.
    fn publish_block(&mut self) {
        let Step { machine, space, table, t, .. } = self;
        let Space { work, pasts, .. } = &mut **space;
        for u in (0..pasts.len()).filter(|u| u != t) {
            if pasts[u] != IN_STEP {
                let now = machine.seen_by(table, work, u);
                let past = table.appended(pasts[u], now, self.levels[u]);
                pasts[u] = table.settled(past, now);
            }
        }
    }

    /// The thread goes on by itself, with its past, until it stops.
    fn run_ahead<R: Telling>(&mut self, past: PastId, told: R) -> Flow
    where
        S: Successors<R>,
    {
        if past == IN_STEP {
            return self.stop_in_step(told);
        }
        self.space.seen.clear();
        let mut todo = vec![Ahead { own: self.machine.save(&self.space.work, self.t), past, told }];
        while let Some(Ahead { own, past, mut told }) = todo.pop() {
            self.limits.spend(PLACE)?;
            self.space.passed += 1;
            if self.space.passed > self.space.most {
                return Err(Stop::TooFar);
            }
            self.machine.restore(&mut self.space.work, self.t, &own);
            let past = self.run(past, &mut told);
            if past == IN_STEP {
                if self.stop_in_step(told)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                continue;
            }
            let own = self.machine.save(&self.space.work, self.t);
            if !self.space.seen.insert((own.clone(), past)) {
                continue;
            }
            let waits = self.machine.facts(&self.space.work, self.t).stores;
            if self.emit(if waits { past } else { IN_STEP }, &told)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            if !waits {
                self.go_on(&own, past, &told, &mut todo);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The thread runs up to its next scheduling point; its past there.
    fn run<R: Telling>(&mut self, mut past: PastId, told: &mut R) -> PastId {
        let Step { machine, space, table, t, .. } = self;
        let (core, work, t) = (&machine.core, &mut space.work, *t);
        while past != IN_STEP && !core.node(work, t).scheduling_point {
            let edges = &core.node(work, t).edges;
            match edges.iter().find(|edge| core.take(work, t, edge, None) == Taken::Yes) {
                None => work.vals[t] = core.code.threads[t].stuck as Value,
                Some(edge) => {
                    told.push(t, Act::Step { edge: edge.id, choice: None });
                    if matches!(edge.instr, CInstr::Fence) {
                        past = IN_STEP;
                    }
                }
            }
        }
        if past == IN_STEP {
            return IN_STEP;
        }
        core.clear_dead_registers(work);
        let facts = machine.facts(work, t);
        let past = table.restricted(past, machine.relevant(facts), self.levels[t]);
        let now = machine.seen_by(table, work, t);
        table.settled(past, now)
    }

    /// In step, the thread runs up to its next scheduling point and stops there.
    fn stop_in_step<R: Telling>(&mut self, mut told: R) -> Flow
    where
        S: Successors<R>,
    {
        self.machine.core.run(&mut self.space.work, self.t, &mut told);
        self.emit(IN_STEP, &told)
    }

    /// Where a thread that does not stop gets to by loads and local steps.
    fn go_on<R: Telling>(&mut self, own: &[Value], past: PastId, told: &R, todo: &mut Vec<Ahead<R>>) {
        let (machine, t) = (self.machine, self.t);
        let core = &machine.core;
        for edge in &core.node(&self.space.work, t).edges {
            machine.restore(&mut self.space.work, t, own);
            for choice in edge.instr.choices() {
                machine.restore(&mut self.space.work, t, own);
                let act = Act::Step { edge: edge.id, choice };
                let mut told = told.clone();
                match &edge.instr {
                    CInstr::Load { dst, addr, .. } => {
                        // One that goes wrong does so in step, too.
                        let Some(cell) = core.cell(&self.space.work, addr) else { continue };
                        told.push(t, act);
                        for which in self.table.reads(past, cell as u32) {
                            machine.restore(&mut self.space.work, t, own);
                            let mut told = told.clone();
                            let left = self.load(edge, *dst, cell, which, &mut told);
                            let own = machine.save(&self.space.work, t);
                            todo.push(Ahead { own, past: left, told });
                        }
                    }
                    CInstr::Store { .. }
                    | CInstr::Fence
                    | CInstr::Membarrier
                    | CInstr::Rmw { .. }
                    | CInstr::Lock
                    | CInstr::Unlock => {}
                    _ => {
                        if core.take(&mut self.space.work, t, edge, choice) == Taken::Yes {
                            told.push(t, act);
                            let own = machine.save(&self.space.work, t);
                            todo.push(Ahead { own, past, told });
                        }
                    }
                }
            }
        }
    }

    fn emit<R: Telling>(&mut self, past: PastId, told: &R) -> Flow
    where
        S: Successors<R>,
    {
        let Space { work, out, pasts, out_pasts, .. } = &mut *self.space;
        out.copy(work, self.t);
        out_pasts.clone_from(pasts);
        out_pasts[self.t] = past;
        self.sink.state(self.table, out, out_pasts, told)
    }
}

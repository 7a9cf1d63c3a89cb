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
//! Not here: how steps are done (`step`), searching (`search`), and which TSO run it is (`concretise`).

use super::table::{IN_STEP, PastId, PastTable};
use crate::analysis::interval::Intervals;
use crate::analysis::relevance::{Cells, Overwritten, Relevance};
use crate::machine::{CEdge, CInstr, Core, MemoryModel, Record, Stores, Work, may_hold_in_block};
use crate::model::{Loc, Program, ThreadId, Value};
use crate::query::{Act, Action, Goal, Limit, Limits, Reductions};

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
    pub(super) fn relevant(&self, facts: NodeFacts) -> (u32, &Cells) {
        (facts.relevant, self.relevance.cells(facts.relevant))
    }

    pub(super) fn memory<'a>(&self, work: &'a Work) -> &'a [Value] {
        &work.vals[self.core.code.memory..]
    }

    /// The set of what is relevant of memory to the thread.
    pub(super) fn seen_by(&self, table: &mut PastTable, work: &Work, t: usize) -> u32 {
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
}

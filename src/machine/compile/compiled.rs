//! The tables that a program is compiled to.
//!
//! A *scheduling point* is a location at which its thread may stand in a stored state; the other locations
//! are passed in the same step as what came before them (`scheduling`). Two nodes are beyond the program:
//! `trap`, where a thread stands after an error of its own, and `stuck`, for a thread that can never move
//! again.
//! Invariant: scheduling points have the lowest numbers, so that a stored location needs few bits.

use super::code::{CEdge, CInstr};
use super::goal::CClause;
use super::jump_table::JumpTable;
use crate::analysis::access::Access;
use crate::analysis::interval::Interval;
use crate::model::Value;
use crate::reach::pack::{Field, Layout};
use std::ops::Range;
use std::sync::Arc;

/// A program and its goal.
#[derive(Clone, Debug)]
pub(crate) struct Compiled {
    pub threads: Vec<CThread>,
    pub clauses: Vec<CClause>,
    pub layout: Layout,
    /// The initial working state: locations, lock, registers, memory.
    pub initial: Vec<Value>,
    /// A working state with every value that never varies in stored states.
    pub template: Vec<Value>,
    /// Per slot the values it may hold in a stored state; `None` for registers that will not be read again.
    pub bounds: Vec<Option<Interval>>,
    /// Where each thread's location lies in a packed state.
    pub locations: Vec<Field>,
    /// Whether every goal state has a thread at its end or at a location that the goal names.
    pub by_location: bool,
    /// Where each thread's registers begin.
    pub register_base: Vec<usize>,
    /// Where memory begins in it.
    pub memory: usize,
    pub cells: usize,
    /// Any value that a cell may hold.
    pub contents: Interval,
    /// Cells that the goal looks at in states that are not final.
    pub observed_cells: Vec<u32>,
    /// Cells that matter only to threads for which they are live, so that they may be dead in a state: a set
    /// of `access` in which every cell has its bit.
    pub may_be_dead: u64,
    /// Whether some accesses touch a part of their cell only.
    pub mixes_sizes: bool,
}

impl Compiled {
    /// The slots of the thread's registers.
    pub(crate) fn registers(&self, t: usize) -> Range<usize> {
        self.register_base[t]..self.register_base.get(t + 1).copied().unwrap_or(self.memory)
    }
}

/// A location of a thread.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub edges: Vec<CEdge>,
    pub scheduling_point: bool,
    /// Everything the thread may touch from here on.
    pub future: Access,
    /// The accesses of all edges, if no address has to be computed.
    pub next: Option<Access>,
    /// The next step is determined, invisible and closes no cycle: alone it is an ample set if it is
    /// independent of what the other threads will do (`partial_order`).
    pub may_be_ample: bool,
    /// From here on, the thread may go wrong by itself.
    pub may_trap: bool,
    /// Something that a goal state may ask for can no longer happen: the end, a location that the goal names,
    /// an error.
    pub lost: bool,
    /// The next step, with the local steps after it, can change what the goal says.
    pub visible: bool,
    /// It can do so otherwise than by arriving at a location that the goal names.
    pub visible_effect: bool,
    /// The goal names this location in states that are not final.
    pub named: bool,
    /// With all threads at such nodes the state is no goal, if goals go by locations.
    pub plain: bool,
    /// Registers of the thread that have a field and no longer matter here, one bit each. Many nodes have the
    /// same.
    pub dead: Arc<[u64]>,
    /// Registers of which some values can no longer be told apart here.
    pub folded: Vec<Fold>,
    /// The cells of which the thread may still read what they hold now, as a set of `access`.
    pub live_cells: u64,
    /// The jump table of the thread that it is an entry of, and which one.
    pub jump: Option<(u32, u32)>,
}

/// All values of the register but those that are kept are stored as one.
#[derive(Clone, Debug)]
pub(crate) struct Fold {
    pub slot: u32,
    pub kept: Vec<Value>,
    pub other: Value,
}

/// A thread.
#[derive(Clone, Debug)]
pub(crate) struct CThread {
    pub nodes: Vec<Node>,
    pub jump_tables: Vec<JumpTable>,
    /// The node of each location.
    pub node_of: Vec<u32>,
    /// Per node the steps to the end, or `FAR`.
    pub to_end: Vec<u16>,
    pub end: u32,
    pub trap: u32,
    pub stuck: u32,
}

impl CThread {
    pub(crate) fn instrs(&self) -> impl Iterator<Item = &CInstr> {
        self.nodes.iter().flat_map(|n| &n.edges).map(|e| &e.instr)
    }
}

/// The slot of the lock's owner, as a thread's number plus one.
#[inline]
pub(crate) fn lock_slot(threads: usize) -> usize {
    threads
}

/// The numbers of the bits in a set.
#[inline]
pub(crate) fn bits(set: &[u64]) -> impl Iterator<Item = usize> {
    set.iter().enumerate().flat_map(|(k, &word)| {
        let rest = |left: &u64| Some(left & (left - 1)).filter(|&left| left != 0);
        let words = std::iter::successors(Some(word).filter(|&word| word != 0), rest);
        words.map(move |left| k * u64::BITS as usize + left.trailing_zeros() as usize)
    })
}

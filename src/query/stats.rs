//! What did it take to find an answer?

use crate::model::{EdgeId, ThreadId};
use std::time::Duration;

/// What became of the attacks that robustness is decided by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttackCount {
    /// Pairs of a store and a load of one thread.
    pub total: u64,
    /// Refuted because a fence lies on every way from the store to the load, or there is no way.
    pub fenced: u64,
    /// Refuted because no other thread writes what is loaded, or touches what is stored.
    pub private: u64,
    /// Refuted because no chain of conflicts leads from the load back to the store.
    pub acyclic: u64,
    /// Left to the search.
    pub left: u64,
}

#[derive(Clone, Debug, Default)]
pub struct Stats {
    pub states: u64,
    pub transitions: u64,
    /// Bytes of memory per stored state, table and links included.
    pub bytes_per_state: f64,
    /// Machine words of one packed state.
    pub words: usize,
    pub workers: usize,
    /// What went between processes, if several searched together.
    pub traffic: Option<Traffic>,
    /// Rounds of refinement; 0 for an engine that has none.
    pub iterations: u64,
    /// What each round came to, for engines that have rounds.
    pub rounds: Vec<Round>,
    /// The longest buffer met, under TSO.
    pub longest_buffer: usize,
    /// Threads that may change places with others, in the last program explored.
    pub interchangeable: usize,
    /// Who was asked, in this order, where several engines took turns.
    pub turns: Vec<EngineTurn>,
    /// Engines and candidates that ran side by side, if that was needed.
    pub contest: Option<Contest>,
    /// For an engine whose states stand for many: what its languages came to.
    pub languages: Option<Languages>,
    pub time: Duration,
}

/// What processes that searched together sent each other, all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    pub processes: usize,
    pub messages: u64,
    pub bytes: u64,
}

/// What a search through sets of states, with regular languages for the contents of buffers, came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Languages {
    /// States of the largest automaton.
    pub largest: usize,
    /// Times that a loop that fills a buffer was accelerated.
    pub accelerated: u64,
    /// The longest stack of the depth-first search.
    pub depth: usize,
}

/// An engine's turn, or several of them for the same reason.
#[derive(Clone, Copy, Debug)]
pub struct EngineTurn {
    pub engine: &'static str,
    /// Why it was its turn.
    pub why: &'static str,
    /// Stored by then, all of its turns together; an engine that begins anew tells of the last one.
    pub states: u64,
}

/// Runs side by side, of which the first answer counts.
#[derive(Clone, Copy, Debug)]
pub struct Contest {
    pub runs: usize,
    /// The candidates among them: runs of the lazy engine that build in different delays.
    pub candidates: usize,
    /// The candidate that had the answer, counted from 1; `None` if another engine had it.
    pub won_by: Option<usize>,
}

/// One round of refinement: an SC check, and what the oracle said.
#[derive(Clone, Debug, Default)]
pub struct Round {
    /// Locations and edges of the program, delays included.
    pub locations: usize,
    pub edges: usize,
    /// Stored by the SC check.
    pub states: u64,
    pub time: Duration,
    pub attacks: AttackCount,
    /// Stored by the oracle.
    pub oracle_states: u64,
    pub oracle_time: Duration,
    /// The delayed paths built in after this round.
    pub delays: Vec<Delay>,
}

/// A store that was delayed past a load, for the story: the thread, and the edges of the user's program.
#[derive(Clone, Copy, Debug)]
pub struct Delay {
    pub thread: ThreadId,
    pub store: EdgeId,
    pub load: EdgeId,
    /// Instructions from the one to the other.
    pub length: usize,
}

//! Can the goal be reached? One search, made fast by storing little.
//!
//! `machine` says what can happen (SC or TSO, with the reductions), `compile` prepares the program for it, `late` lets
//! loads wait until they matter, `locals` keeps what a thread can do from each of its local states, `alike` finds threads
//! that may change places, `symmetry` picks one state of those that differ by that alone, `pack` writes states
//! down, `seen` remembers them, `frontier` says which comes next, `explore` is the loop. The loop is generic over
//! machines and knows no memory model; machines know nothing of frontiers, workers and limits. Every reduction has
//! a switch, so that tests can compare with and without.
//! Not here: judging traces. What comes out is a sequence of decisions; `semantics` replays it.

mod alike;
mod chain;
mod compile;
mod explore;
mod frontier;
mod late;
mod locals;
mod machine;
pub mod pack;
pub mod seen;
mod shorten;
mod symmetry;

pub use explore::{Found, Goals, Order, Search, explore};
pub use machine::{Memory, ProgramMachine};
// For the machines that other modules build on this one.
pub(crate) use compile::{CEdge, Node, Op, bits, lock_slot, mute};
pub(crate) use machine::{Ending, Pending, Record, Scratch, Taken, Work, renamed};

use crate::query::{Action, Limit, Limits};

/// Which reductions are on; all of them, by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reductions {
    /// Local steps run together with the action before them.
    pub steps: bool,
    /// Registers and cells that no longer matter are stored as 0.
    pub liveness: bool,
    /// A step that conflicts with nobody's future is taken alone.
    pub por: bool,
    /// Of two independent steps only one order is taken, where the other leads to the same states.
    pub sleep: bool,
    /// Values are stored in as few bits as they need.
    pub packing: bool,
    /// States that cannot lead to the goal are left out.
    pub prune: bool,
    /// Cells that nobody really reads are not stored, and touching them is a local step.
    pub mute: bool,
    /// Of states that differ by the names of interchangeable threads alone one is stored.
    pub symmetry: bool,
    /// A load that the goal cannot see waits until it matters, and so does a store under TSO.
    pub late: bool,
    /// Under TSO, a store of what its cell holds anyway does not enter the buffer.
    pub silent: bool,
    /// Under TSO, a store that a loop repeats while nothing that it reads changes is one entry of the buffer.
    pub repeats: bool,
}

impl Reductions {
    pub const ALL: Reductions = Reductions::all(true);
    pub const NONE: Reductions = Reductions::all(false);

    const fn all(on: bool) -> Reductions {
        Reductions {
            steps: on,
            liveness: on,
            por: on,
            sleep: on,
            packing: on,
            prune: on,
            mute: on,
            symmetry: on,
            late: on,
            silent: on,
            repeats: on,
        }
    }
}

/// Threads that may sleep: the first few, one bit each.
pub type Sleep = u16;

/// Which threads a task explores: those of the bits, and the threads that have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub threads: Sleep,
    pub others: bool,
}

impl Wanted {
    pub const ALL: Wanted = Wanted { threads: Sleep::MAX, others: true };

    #[inline]
    pub fn contains(self, thread: usize) -> bool {
        if thread < Sleep::BITS as usize { self.threads >> thread & 1 != 0 } else { self.others }
    }
}

/// Something with states to explore. States are packed into words; equal words are equal states.
pub trait Machine: Sync {
    /// One worker's working space.
    type Scratch: Send;

    fn scratch(&self) -> Self::Scratch;

    fn initial(&self, scratch: &mut Self::Scratch, sink: &mut impl Sink);

    /// Hands every successor by a wanted thread to the sink. Threads in `sleep` are not taken, and pass their
    /// sleep on to successors by independent steps.
    fn expand(
        &self,
        scratch: &mut Self::Scratch,
        state: &[u64],
        wanted: Wanted,
        sleep: Sleep,
        sink: &mut impl Sink,
    );

    /// Is the state a goal, and if not, how far from one?
    fn look(&self, scratch: &mut Self::Scratch, state: &[u64]) -> Look;

    /// A goal with this number was reached.
    fn reached(&self, _number: usize) {}

    /// The decisions along a line of stored states, each found from the one before it, from an initial state on.
    fn trace(&self, line: &[Vec<u64>], limits: &Limits) -> Result<Vec<Action>, Limit>;
}

/// What a state is to the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// A goal; machines that have several kinds number them.
    Goal(usize),
    /// The lower, the sooner it should be explored, if the order of the search is best first.
    Rank(usize),
}

/// Who takes the states that a machine finds.
pub trait Sink {
    fn state(&mut self, words: &[u64], sleep: Sleep);
}

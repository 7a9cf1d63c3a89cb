//! Can the goal be reached? One search that knows no program and no memory model.
//!
//! A [`Machine`] says what can happen; `pack` writes states down, `visited` remembers them, `frontier` says which
//! comes next, `explore` is the loop, within a `budget` if there is one, and `shorten` makes the run that was found
//! shorter; with several processes (`peers`), `partition` says who has which states; `cheapest` looks for the way
//! that costs least, `cycles` for cycles. Machines know nothing of frontiers and workers. Not here: judging runs.
//! What comes out is a sequence of decisions; `semantics` replays it.

mod budget;
mod cheapest;
pub mod cycles;
mod explore;
mod frontier;
pub mod pack;
mod partition;
mod peers;
mod search;
mod shorten;
pub mod visited;

pub use budget::{Budget, Spent};
pub use cheapest::{Cheapest, Outlook, Price, Priced, cheapest};
pub use explore::{LEFT_TO_ONE, explore, explore_within};
pub use peers::{Arrival, Exchange, Peers};
pub use search::{Found, Goals, Order, Search};

use crate::query::{Limit, Limits};

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
    /// A decision: what a run is told by.
    type Step;

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

    /// What was noticed on the way, and what others have noticed on theirs.
    fn knowledge(&self) -> Vec<u64> {
        vec![]
    }

    fn learn(&self, _knowledge: &[u64]) {}

    /// The decisions along a line of stored states, each found from the one before it, from an initial state
    /// on.
    fn trace(&self, line: &[Vec<u64>], limits: &Limits) -> Result<Vec<Self::Step>, Limit>;
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

//! The words of repair: what may be changed in a program, what the change is for, and what came of looking for the
//! cheapest.

use super::{Event, Limit, Race, Stats, Trace, Witness};
use crate::model::{EdgeId, Loc, Program, ThreadId};

/// What the repaired program is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// SC and TSO have the same behaviours.
    Robustness,
    /// No forbidden state is reachable under TSO.
    Property,
    /// No triangular race, which is more than robustness and often cheaper to see.
    Triangular,
}

/// One thing that may be changed in a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Change {
    /// A fence between everything that enters the location and everything that leaves it.
    Fence { thread: ThreadId, at: Loc },
    /// The store becomes a locked one.
    Atomic { thread: ThreadId, store: EdgeId },
    /// A fence that the program has may not go.
    Keep { thread: ThreadId, fence: EdgeId },
}

impl Change {
    pub fn thread(self) -> ThreadId {
        match self {
            Change::Fence { thread, .. } | Change::Atomic { thread, .. } | Change::Keep { thread, .. } => {
                thread
            }
        }
    }
}

/// A run that the aim forbids.
#[derive(Clone, Debug)]
pub enum Counterexample {
    Witness(Witness),
    Trace(Trace),
    Race(Race),
}

impl Counterexample {
    pub fn events(&self) -> &[Event] {
        match self {
            Counterexample::Witness(witness) => &witness.events,
            Counterexample::Trace(trace) => &trace.events,
            Counterexample::Race(race) => &race.events,
        }
    }
}

/// What came of the search for the cheapest changes.
#[derive(Clone, Debug)]
pub struct Repair {
    pub aim: Aim,
    pub answer: RepairAnswer,
    /// Changes that were allowed.
    pub allowed: usize,
    /// Runs that were found, each as the changes of which one is needed to prevent it.
    pub cores: usize,
    /// Programs that were looked at.
    pub checks: u64,
    /// No cheaper set is enough.
    pub lower_bound: u64,
    pub stats: Stats,
}

#[derive(Clone, Debug)]
pub enum RepairAnswer {
    Enough(Enough),
    /// The property fails under SC, where there is nothing to fence.
    FailsUnderSc(Trace),
    /// This run remains, whatever of the allowed is changed. It was found in a program with changes that do not help.
    Remains {
        run: Counterexample,
        changed: Box<Program>,
    },
    Unknown(Limit),
}

/// Changes that are enough.
#[derive(Clone, Debug)]
pub struct Enough {
    /// Of the same cost: the first that was found, or all if they were asked for.
    pub sets: Vec<Vec<Change>>,
    pub cost: u64,
    /// Whether a cheaper set was excluded, and if not, why.
    pub cheapest: Cheapest,
    /// Sets of the same cost exist beyond those listed, if all were asked for.
    pub more: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cheapest {
    Proved,
    /// So many cheaper sets were tried and could not be decided, the first because of this limit.
    Open {
        undecided: usize,
        limit: Limit,
    },
}

impl Repair {
    pub fn verdict(&self) -> &'static str {
        match &self.answer {
            RepairAnswer::Enough(_) => "found",
            RepairAnswer::FailsUnderSc(_) | RepairAnswer::Remains { .. } => "none",
            RepairAnswer::Unknown(_) => "unknown",
        }
    }
}

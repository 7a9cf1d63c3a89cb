//! The words of repair: what may be changed in a program, what the change is for, and which changes are
//! enough.

use crate::limits::Limit;
use crate::model::{EdgeId, Loc, ThreadId};

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

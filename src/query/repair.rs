//! The words of repair: what may be changed in a program, what the change is for, and which changes are
//! enough.

use crate::limits::Limit;
use crate::model::{EdgeId, Loc, ThreadId};

/// What the repaired program is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// SC and TSO have the same behaviours.
    Robustness,
    /// No forbidden state is reachable under TSO, or whichever model is asked about.
    Property,
    /// No run ends in a hang.
    NoHang,
    /// No triangular race, which is more than robustness and often cheaper to see.
    Triangular,
}

/// One thing that may be changed in a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Change {
    /// A fence between everything that enters the location and everything that leaves it.
    Fence { thread: ThreadId, at: Loc },
    /// A fence behind the edge, before the location it leads to.
    FenceBehind { thread: ThreadId, edge: EdgeId },
    /// The store becomes a locked one.
    Atomic { thread: ThreadId, store: EdgeId },
    /// A fence that the program has may not go.
    Keep { thread: ThreadId, fence: EdgeId },
}

impl Change {
    pub fn thread(self) -> ThreadId {
        match self {
            Change::Fence { thread, .. }
            | Change::FenceBehind { thread, .. }
            | Change::Atomic { thread, .. }
            | Change::Keep { thread, .. } => thread,
        }
    }
}

/// One change of the text: what it changes in all the copies that the text unfolds to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Remedy {
    pub changes: Vec<Change>,
    /// In how many copies.
    pub copies: usize,
    /// The byte of the text that it is before or at, where places are as fine as that.
    pub offset: Option<usize>,
    /// The kind of fence, by its number, where kinds are told apart.
    pub kind: Option<usize>,
}

/// All changes of a set of remedies.
pub fn changes(set: &[Remedy]) -> Vec<Change> {
    set.iter().flat_map(|remedy| remedy.changes.iter().copied()).collect()
}

/// Changes that are enough.
#[derive(Clone, Debug)]
pub struct Enough {
    /// Of the same cost: the first that was found, or all if they were asked for.
    pub sets: Vec<Vec<Remedy>>,
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

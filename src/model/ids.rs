//! By which numbers do a program's parts go? Threads, locations, edges and cells, each with a type of its own, so that
//! one cannot be taken for another.

use super::Reg;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ThreadId(pub u16);

/// A location of one thread's graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Loc(pub u32);

/// An edge of one thread's graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EdgeId(pub u32);

/// A cell of shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Addr(pub u32);

impl ThreadId {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl Loc {
    /// Where a thread stands after an error of its own.
    pub const TRAP: Loc = Loc(u32::MAX);

    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl EdgeId {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl Addr {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl Reg {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

//! Which runs show that something fails? A [`Trace`] to a forbidden state, a [`Witness`] against robustness,
//! a triangular [`Race`]. Here they are claims; `certify` makes evidence of those that are true.

use super::goal::Model;
use super::trace::{Event, Trap, delays};
use crate::model::{Addr, ThreadId, Value};
use std::collections::BTreeSet;

/// A run from the initial state to a goal state.
#[derive(Clone, Debug)]
pub struct Trace {
    pub model: Model,
    pub events: Vec<Event>,
    pub against: Against,
}

impl Trace {
    /// The stores that a load of their own thread overtook, each with the last such load. A run under SC has
    /// none, and no flushes to tell by.
    pub fn delays(&self) -> Vec<(usize, usize)> {
        match self.model {
            Model::Sc => vec![],
            Model::Tso => delays(&self.events),
        }
    }
}

/// Where the run that is shown comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provenance {
    /// A search for the simplest one. With the fewest delays that there are, if that came to its end for
    /// every smaller number.
    Searched { fewest_delays: bool },
    /// That search was too large: it is the run that an engine found, made shorter.
    Shortened,
}

/// What the last state of a trace is against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Against {
    /// This property of the program.
    Property(usize),
    /// This thread's own error.
    Trap(ThreadId, Trap),
    /// From there on memory never changes, and not all threads end.
    Hang,
}

/// A thread that never comes to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    pub thread: ThreadId,
    /// The lines that it is at.
    pub lines: BTreeSet<u32>,
    /// What it reads there, and finds, over and over.
    pub reads: BTreeSet<(Addr, Value)>,
}

/// A run that no SC run is like: a thread delays a store past a load of its own, and what other threads do
/// after the load leads back to the store (`[LazyTSO15]`, Figure 5).
#[derive(Clone, Debug)]
pub struct Witness {
    /// The whole computation, from the initial state.
    pub events: Vec<Event>,
    /// The event of the store that is overtaken.
    pub store: usize,
    /// The event of the load that overtakes it.
    pub load: usize,
    /// A cycle of the happens-before relation: events, each with what leads from it to the next.
    pub cycle: Vec<(usize, Relation)>,
}

impl Witness {
    pub fn thread(&self) -> ThreadId {
        self.events[self.store].thread()
    }

    /// The delaying thread's events from the store to the load.
    pub fn path(&self) -> Vec<usize> {
        (self.store..=self.load).filter(|&k| self.events[k].thread() == self.thread()).collect()
    }
}

/// A triangular race: an SC run in which a thread stores, then loads another cell while its store could still
/// be in its buffer, and then another thread writes that cell.
#[derive(Clone, Debug)]
pub struct Race {
    /// The whole run, from the initial state to the write.
    pub events: Vec<Event>,
    /// The thread's last store before the load.
    pub store: usize,
    pub load: usize,
    /// The other thread's write to what was loaded, the first since; or the beginning of a block that may
    /// write it.
    pub write: usize,
}

impl Race {
    /// The thread that stores and loads.
    pub fn thread(&self) -> ThreadId {
        self.events[self.store].thread()
    }

    /// Its events from the store to the load.
    pub fn path(&self) -> Vec<usize> {
        (self.store..=self.load).filter(|&k| self.events[k].thread() == self.thread()).collect()
    }
}

/// Why one event happens before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Relation {
    /// The thread does the one before the other.
    ProgramOrder,
    /// A `membarrier` of another thread lies between.
    Membarrier,
    /// They are one event: a store and its flush, or parts of one block.
    Same,
    /// The one reads what the other wrote.
    ReadsFrom,
    /// The one write reaches memory before the other.
    Coherence,
    /// The one reads what the other overwrites.
    FromRead,
}

impl Relation {
    pub fn name(self) -> &'static str {
        match self {
            Relation::ProgramOrder => "po",
            Relation::Membarrier => "membarrier",
            Relation::Same => "same",
            Relation::ReadsFrom => "rf",
            Relation::Coherence => "co",
            Relation::FromRead => "fr",
        }
    }
}

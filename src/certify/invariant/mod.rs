//! Why is a program safe? An *inductive invariant*: a set of states that contains the initial one, is closed
//! under every step, and has no state that is against the goal.
//!
//! The states are those of the machine of *lagging readers*, a view of TSO from the reader's side. A store is
//! in memory at once. A thread that is going to store may read, once it has, from an older memory than the
//! one that there is: from its *past*, the memories since it came to that store. Loads that overtake a store
//! under TSO are loads from the past here, and a buffer that grows without bound is a past of few memories.
//! A stored state stands for all that have the same locations, live registers, memory and lock, and whose
//! pasts offer no more to read; so finitely many states can stand for infinitely many.
//!
//! Here is the invariant as plain data. Everything in it is said of the user's program, by the numbers of its
//! threads, locations, registers and cells. Whoever finds an invariant is not believed: nothing here names an
//! engine, a machine or an analysis.

mod check;
mod exchange;
mod forbidden;
mod machine;
mod past;
mod places;
mod symmetry;

pub use check::{Stored, check};
pub use machine::{Machine, Point};
pub use symmetry::Symmetry;

use crate::model::{Addr, Loc, Reg, ThreadId, Value};

/// A set of states, with all that is needed to see that it is inductive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Invariant {
    /// Per thread, per location.
    pub places: Vec<Vec<Place>>,
    pub symmetry: Interchangeable,
    /// The pasts that occur in states, each once. The first is the empty one.
    pub pasts: Vec<Past>,
    pub states: Vec<Ideal>,
}

/// What is known of a location.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// A thread may stand here in a stored state. Elsewhere it only passes through, in one step with what led
    /// it there: all edges are local or fences, no lasting clause of the goal can tell the difference, and no
    /// cycle passes through such places alone.
    pub stop: bool,
    /// The registers whose values may be used from here on, in ascending order: at least those.
    pub live: Vec<Reg>,
    /// The cells that the thread may load from here on before it comes to a fence or a locked instruction, in
    /// ascending order: at least those.
    pub relevant: Vec<Addr>,
}

/// A stored state. It stands for every state with the same locations, live registers, memory and lock whose
/// pasts are below its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ideal {
    /// Where each thread stands: at a stop, or [`STUCK`].
    pub at: Vec<Loc>,
    /// Per thread all registers; 0 for those that are not live. Of a thread that is stuck, those count that
    /// lasting clauses of the goal name.
    pub registers: Vec<Vec<Value>>,
    pub memory: Vec<Value>,
    /// The thread inside a `lock` … `unlock` block.
    pub lock: Option<ThreadId>,
    /// Per thread, by its number: what it may still read from. The empty one (number 0) of a thread that is
    /// *in step*: it reads memory.
    ///
    /// Only a thread at a location with a store has another. There the empty past is short for the one that
    /// has nothing but the present memory. While a block is held, what its owner writes is not yet part of
    /// the others' pasts, so that each of them that stands at a store has its past spelled out, of the memory
    /// at the `lock` if there is nothing else.
    pub pasts: Vec<u32>,
}

/// Where a thread stands that never moves again: it has come, in local steps and not at a stop, to where no
/// condition holds; or it has gone wrong, and the goal ignores that.
pub const STUCK: Loc = Loc(u32::MAX - 1);

/// What a thread may read from, oldest first: segments with one of its own stores, a *mark*, between each two.
/// Only cells that are relevant where the thread stands occur in it.
///
/// The thread is about to read from the first segment. A load of a cell that has a mark may take the mark's
/// value. Or the thread goes to a set behind the cell's mark, if there is one, and takes a value that the
/// cell has there; what lies before that set is left behind, marks too.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Past {
    /// One more than there are marks; none at all in the empty past.
    pub segments: Vec<Segment>,
    /// At most one for each cell.
    pub marks: Vec<(Addr, Value)>,
}

/// Memories, one after the other. Each is a set of pairs: what may be read there, any number of times. Those
/// that come from one memory have one value for each relevant cell, others have several.
pub type Segment = Vec<Vec<(Addr, Value)>>;

/// Which threads may change places? A state stands for its images, too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interchangeable {
    /// What each register holds, per thread, and what each cell does: values of different sorts are never
    /// copied into each other or compared. Empty, both, if there are no groups.
    pub register_sorts: Vec<Vec<u32>>,
    pub cell_sorts: Vec<u32>,
    pub groups: Vec<Members>,
}

/// Threads of the same shape that may be permuted. With them move the cells and the values that stand for
/// them: a permutation takes the i-th of each list to its k-th if it takes the i-th thread to the k-th.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    pub threads: Vec<ThreadId>,
    /// Lists of cells, one for each thread.
    pub cells: Vec<Vec<Addr>>,
    /// Lists of values, one for each thread, of the registers and cells of a sort.
    pub values: Vec<(u32, Vec<Value>)>,
}

//! Which programs are safe though their buffers have no bound? Those whose *lagging readers* see nothing
//! forbidden: the machine of this folder has no store buffers, and finitely many states where data are finite.
//!
//! `machine` is TSO from the reader's side, and says why; `step` does its steps. A thread's *past* is what it may
//! still read; `ideal` has the pasts and their order, `table` their numbers, `interned` lists that are kept once.
//! `search` looks for goals at a level of approximation, `phantoms` into blocks, and `concretise` makes a TSO run of
//! what was found, or says that there is none. `readers` is all of this from outside. `invariant` tells why a program
//! is safe.
//! Not here: which level comes next (`engine::past`), and judging runs and invariants (`certify`).

mod concretise;
mod ideal;
mod interned;
mod invariant;
mod machine;
mod phantoms;
mod readers;
mod search;
mod step;
mod table;

pub use ideal::Level;
pub use invariant::{Interchange, prove};
pub use machine::Keep;
pub use readers::{Readers, Seen};

//! Which runs does a memory model allow, by its axioms? A program without loops, or with its loops unrolled to a
//! bound, as a formula for a SAT solver, after `[BurckhardtAlurMartin06]`.
//!
//! `graph` takes the loops out of a thread, `unroll` makes `streams` of guarded accesses of it, whose values are
//! `terms`; `ranges` says which values and aliases are possible, `order` what comes before what in any case, and
//! `encode` puts it together, out of `bits` and the gates of `cnf`. `sat` is the solver, `proof` checks what it
//! says.

mod bits;
mod cnf;
mod domain;
mod encode;
mod execution;
mod graph;
mod order;
mod proof;
mod ranges;
mod sat;
mod streams;
mod terms;
mod unroll;

pub use bits::{BitVector, constant};
pub use encode::{Encoding, Solution};
pub use graph::copies;
pub use sat::Lit;
pub use streams::{NoStreams, Streams, What};
pub use terms::TermId;
pub use unroll::{Plan, Runs};

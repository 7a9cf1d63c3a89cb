//! The program as a machine: its states under SC or TSO, and as few steps between them as tell the truth.
//!
//! `compile` prepares the program, with `jump_table` for rows of comparisons; `core` says what can happen, with the goal, the
//! store buffer and dead cells beside it, and leads runs back to decisions (`core/concretise`); `movers` lets loads and
//! stores wait until they matter, on top of `transition_cache`, which keeps what a thread can do from each of its local
//! states; `automorphism` finds threads that may change places, and `canonical` picks one state of those that differ by
//! that alone. Machines know nothing of frontiers and workers. Every reduction has a switch, so that tests can compare with
//! and without.

mod automorphism;
mod canonical;
mod compile;
mod core;
mod jump_table;
mod movers;
mod transition_cache;

pub use self::core::{Memory, ProgramMachine};
// For the machines that other modules build on this one.
pub(crate) use self::core::{Ending, Pending, Record, Scratch, Taken, Work, renamed};
pub(crate) use compile::{CEdge, Node, Op, bits, faint, lock_slot};

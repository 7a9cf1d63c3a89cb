//! Do SC and TSO differ for this program? The robustness oracle (lazy-tso-reachability, section 4).
//!
//! A program is robust if every TSO run has the happens-before relation of some SC run. It is not robust if and
//! only if some run has the shape of a *witness*: one thread delays a store past a load of its own, and events
//! of other threads lead from the load back to the store. `attack` lists which stores and loads are worth
//! trying, `machine` has the states of such runs, `oracle` searches them, `known` remembers paths that it need not find again, and `hb` judges what was found from the
//! run alone.
//! `triangular` asks for less: a condition that is sufficient for robustness, on SC runs alone.

pub mod attack;
pub mod hb;
pub mod known;
mod machine;
pub mod oracle;
pub mod triangular;

//! Do SC and TSO differ for this program? The robustness oracle (`[LazyTSO15]`, section 4; `[Robust13]`).
//!
//! A program is robust if every TSO run has the happens-before relation of some SC run. It is not robust if
//! and only if some run has the shape of a *witness*: one thread delays a store past a load of its own, and
//! events of other threads lead from the load back to the store. `attack` lists which stores and loads are
//! worth trying, `machine` has the states of such runs, `oracle` searches them, and `known` remembers paths
//! that it need not find again. `triangular` asks for less: a condition that is sufficient for robustness, on
//! SC runs alone. Not here: judging what was found, which `certify` does from the run alone.

pub mod attack;
pub mod known;
mod machine;
pub mod oracle;
pub mod triangular;

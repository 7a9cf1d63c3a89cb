//! Does a model do what is asked of it, now and for ever? States that must not be reached, and temporal
//! formulas on infinite runs.
//!
//! `safety` explores states with the one search of `reach`. `ltl` puts the model beside an observer
//! (`product`), an `automaton` made from a formula (`tableau`), and looks for cycles. `synthesis` finds the
//! fewest changes that make formulas hold with slots, from the `hazards` of runs. `program` asks the same of programs,
//! and `space` counts their states. What is
//! found is confirmed by `certify`.

pub mod automaton;
pub mod hazards;
pub mod ltl;
mod product;
pub mod program;
pub mod safety;
pub mod space;
pub mod synthesis;
mod tableau;

use crate::certify::{Doubt, Refuted};
use crate::dve::Memory;
use crate::query::Limit;

/// How a model is looked at.
#[derive(Clone, Debug)]
pub struct TemporalOptions {
    pub memory: Memory,
    pub workers: usize,
    /// Is every write to reach memory some time? Runs on which one does not count for nothing then.
    pub fair: bool,
    /// Are steps that nobody notices taken alone?
    pub por: bool,
}

/// A claim that did not pass is a bug; a limit on the way is an answer.
fn judged<T>(claim: Result<T, Doubt>) -> Result<Result<T, Limit>, Refuted> {
    match claim {
        Ok(confirmed) => Ok(Ok(confirmed)),
        Err(Doubt::Limit(limit)) => Ok(Err(limit)),
        Err(Doubt::Refuted(bug)) => Err(bug),
    }
}

//! Is the claim true? Every judge of what engines and oracles say, and the answers that only they let
//! through.
//!
//! A search hands over decisions, nothing more. `run` judges runs to forbidden states, `witness` those
//! against robustness, on top of `happens_before`, and `race` triangular races: each walks the decisions on
//! the plain machines of `semantics` and holds what comes of that against the definition. What passes is
//! [`Confirmed`], which nothing outside this folder can make, and which every answer that something fails has
//! to contain ([`Outcome`], [`Robustness`], [`RaceFreedom`], [`Repair`]). What does not pass is a bug in
//! overtake and never an answer.
//!
//! That nothing fails can be certified too: `invariant` judges why a program is safe, `attacks` why it is
//! robust, and `certificate` is the file in which an answer of either kind goes to others.
//!
//! Nothing here knows how a claim was found: not the machines, not the search, not the engines.

mod answer;
pub mod attacks;
pub mod certificate;
mod dve;
mod execution;
mod hang;
pub mod happens_before;
pub mod invariant;
mod lasso;
pub mod race;
mod run;
pub mod witness;

pub use answer::{Checked, Counterexample, Outcome, RaceFreedom, Remaining, Repair, Robustness};
pub use dve::{DveAgainst, DveClaim, DveOutcome, DveRun, Lasso, dve_run};
pub use execution::{AllowedExecution, AxiomaticOutcome, ExecutionClaim, execution, observation};
pub use hang::hang;
pub use lasso::{LassoClaim, LivenessOutcome, ProgramLasso, program_lasso};
pub use race::race;
pub use run::run;
pub use witness::witness;

use crate::limits::Limit;
use crate::semantics::replay::Stopped;
use std::ops::Deref;
use thiserror::Error;

/// Of which claims only runs are judged: what is said of attacks, races and pasts is not said byte by byte.
const MIXED_SIZES: &str = "is of a program with accesses of several sizes to one cell, which is not judged";

/// Evidence that has passed its judge.
#[derive(Clone, Debug)]
pub struct Confirmed<T>(T);

impl<T> Deref for Confirmed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// Why a claim does not count.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Doubt {
    /// It is not true.
    #[error(transparent)]
    Refuted(Refuted),
    /// A limit was reached before that was known.
    #[error("a limit was reached on the way")]
    Limit(Limit),
}

/// A claim that is not true: a bug in overtake. The sentence is for the report that we ask for.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Refuted(String);

impl Doubt {
    /// For those who find that a claim is not even one.
    pub fn refuted(why: String) -> Doubt {
        Doubt::Refuted(Refuted(why))
    }

    /// The walk of a claim's decisions has not come to its end.
    pub fn stopped(claim: &str, stopped: Stopped) -> Doubt {
        match stopped {
            Stopped::Mismatch(mismatch) => Doubt::refuted(format!("{claim} does not replay: {mismatch}")),
            Stopped::Limit(limit) => Doubt::Limit(limit),
        }
    }
}

impl From<Limit> for Doubt {
    fn from(limit: Limit) -> Doubt {
        Doubt::Limit(limit)
    }
}

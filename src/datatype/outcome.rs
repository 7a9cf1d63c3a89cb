//! What is asked of a test of a data type, and what comes of it?

use super::serial::SerialFault;
use crate::certify::{AllowedExecution, Confirmed, Doubt};
use crate::model::{Program, Value};
use crate::query::{Answer, Axioms, Limit};
use crate::symbolic::NoStreams;
use std::collections::BTreeSet;

/// What a run is held against.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spec {
    /// Everything that some serial run gives.
    #[default]
    Mined,
    /// What the serial run in the order of the commit points gives.
    Commit,
}

#[derive(Clone, Debug)]
pub struct DataOptions {
    pub model: Axioms,
    pub spec: Spec,
    /// Rounds of each loop; by default as many as any run needs.
    pub bound: Option<u32>,
    /// Places and kinds of fences that are there.
    pub with: BTreeSet<(usize, usize)>,
    /// Check what the solver says when it finds nothing.
    pub proving: bool,
}

/// How large the question was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    pub instructions: usize,
    pub loads: usize,
    pub stores: usize,
    pub nodes: usize,
    pub variables: usize,
    pub clauses: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The operations go wrong even one after the other.
    Serial(SerialFault),
    /// A thread goes wrong.
    Error,
    /// Threads wait for good.
    Deadlock,
    /// Something is observed that no serial run gives, or none in the order of the commit points; these are the
    /// nearest that one gives.
    Observation { seen: Vec<Value>, nearest: Vec<Vec<Value>> },
}

#[derive(Clone, Debug)]
pub struct Failure {
    pub kind: FailureKind,
    /// The program that the run is one of, with the fences that were there.
    pub program: Program,
    /// None for serial runs, which are shown by their actions.
    pub run: Option<Confirmed<AllowedExecution>>,
}

#[derive(Clone, Debug)]
pub struct DataOutcome {
    pub answer: Answer<(), Box<Failure>>,
    pub observations: usize,
    pub bound: u32,
    /// No run of the test exceeds the bound.
    pub bound_is_enough: bool,
    /// Serial runs that do not end.
    pub serial_blocks: bool,
    pub size: Size,
    /// Questions to the solver that no run answers.
    pub answered: usize,
    /// Has the solver's word that there is nothing been checked?
    pub proved: Option<bool>,
}

/// Why a check has no outcome.
#[derive(Clone, Debug)]
pub(super) enum CheckEnd {
    Limit(Limit),
    /// A claim of ours was refuted.
    Doubt(String),
}

impl From<Limit> for CheckEnd {
    fn from(limit: Limit) -> CheckEnd {
        CheckEnd::Limit(limit)
    }
}

impl From<NoStreams> for CheckEnd {
    fn from(why: NoStreams) -> CheckEnd {
        CheckEnd::Limit(match why {
            NoStreams::Limit(limit) => limit,
            NoStreams::Unsupported(what) => Limit::Inexpressible(what.to_string()),
        })
    }
}

impl From<Doubt> for CheckEnd {
    fn from(doubt: Doubt) -> CheckEnd {
        match doubt {
            Doubt::Limit(limit) => CheckEnd::Limit(limit),
            Doubt::Refuted(refuted) => CheckEnd::Doubt(refuted.to_string()),
        }
    }
}

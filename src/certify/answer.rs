//! What is the answer to each question, with all that was found on the way? That something fails can only be
//! said with evidence that has been confirmed.

use super::{AllowedExecution, Confirmed};
use crate::limits::Limit;
use crate::model::Program;
use crate::query::repair::{Aim, Enough};
use crate::query::{Answer, AttackCount, Event, Model, Proof, Provenance, Race, Stats, Trace, Witness};

/// The answer to `check`: a proof, or a run to a forbidden state.
pub type Checked = Answer<Proof, Confirmed<Trace>>;

/// Can a forbidden state be reached?
#[derive(Clone, Debug)]
pub struct Outcome {
    pub answer: Checked,
    pub model: Model,
    pub engine: &'static str,
    /// Has it been proved on the way that no SC run reaches a forbidden state?
    pub safe_under_sc: bool,
    /// Where the run comes from, if it is to be shown.
    pub provenance: Option<Provenance>,
    /// A run that is one only if accesses are done in parts that a processor may do at once: nothing is known then.
    pub approximate: Option<Confirmed<Trace>>,
    pub stats: Stats,
    /// Things the user should know whatever the answer is.
    pub warnings: Vec<String>,
}

/// Do SC and TSO have the same behaviours?
#[derive(Clone, Debug)]
pub struct Robustness {
    pub answer: Answer<(), Confirmed<Witness>>,
    /// All pairs of a store and a load for which there is a witness, if all were asked for; one of them is the
    /// answer's. The limit that was reached before all were known, if there is one.
    pub all: Option<(Vec<Confirmed<Witness>>, Option<Limit>)>,
    pub attacks: AttackCount,
    pub stats: Stats,
}

/// Is the program free of triangular races?
#[derive(Clone, Debug)]
pub struct RaceFreedom {
    pub answer: Answer<(), Confirmed<Race>>,
    /// The threads whose stores and loads had to be searched, because the program's text does not settle
    /// them.
    pub attackers: usize,
    pub stats: Stats,
}

/// Which cheapest changes are enough?
#[derive(Clone, Debug)]
pub struct Repair {
    pub aim: Aim,
    pub answer: Answer<Enough, Remaining>,
    /// Changes that were allowed.
    pub allowed: usize,
    /// Runs that were found, each as the changes of which one is needed to prevent it.
    pub cores: usize,
    /// Programs that were looked at.
    pub checks: u64,
    /// No cheaper set is enough.
    pub lower_bound: u64,
    pub stats: Stats,
}

/// Why no repair helps.
#[derive(Clone, Debug)]
pub enum Remaining {
    /// The property fails under SC, where there is nothing to fence.
    UnderSc(Confirmed<Trace>),
    /// This run remains, whatever of the allowed is changed. It was found in a program with changes that do
    /// not help.
    Whatever { run: Counterexample, changed: Box<Program> },
    /// The same of a model that is given by axioms, in a program with a fence of each kind wherever one is allowed.
    ByAxioms { run: Confirmed<AllowedExecution>, changed: Box<Program> },
}

/// A run that the aim of a repair forbids.
#[derive(Clone, Debug)]
pub enum Counterexample {
    Witness(Confirmed<Witness>),
    Trace(Confirmed<Trace>),
    Race(Confirmed<Race>),
}

impl Counterexample {
    pub fn events(&self) -> &[Event] {
        match self {
            Counterexample::Witness(witness) => &witness.events,
            Counterexample::Trace(trace) => &trace.events,
            Counterexample::Race(race) => &race.events,
        }
    }
}

//! Which memory models are there, beside SC and TSO? Those that are given by axioms on the order of accesses.

use super::Model;

/// A memory model, by what it keeps in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Axioms {
    /// Everything is kept in order.
    Sc,
    /// A load may come before earlier stores.
    Tso,
    /// So may a store to another address; locked instructions wait for all earlier stores.
    Pso,
    /// The same, and locked instructions do not wait, as SPARC has it.
    PsoSparc,
    /// Only a store behind an earlier access to the same address is kept in order.
    Relaxed,
}

impl Axioms {
    pub const ALL: [Axioms; 5] = [Axioms::Sc, Axioms::Tso, Axioms::Pso, Axioms::PsoSparc, Axioms::Relaxed];

    pub fn name(self) -> &'static str {
        match self {
            Axioms::Sc => "sc",
            Axioms::Tso => "tso",
            Axioms::Pso => "pso",
            Axioms::PsoSparc => "pso-sparc",
            Axioms::Relaxed => "relaxed",
        }
    }
}

impl From<Model> for Axioms {
    fn from(model: Model) -> Axioms {
        match model {
            Model::Sc => Axioms::Sc,
            Model::Tso => Axioms::Tso,
        }
    }
}

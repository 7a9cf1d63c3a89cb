//! On what grounds is an answer right? Whoever found it, its certificate is made afterwards, from the user's
//! program, and judged before anybody gets it.
//!
//! That something fails is certified by its run. That a program is safe needs an inductive invariant; that it is
//! robust, a set of states without a successful attack. If there is none before a limit is reached, the answer
//! stands all the same, and is not certified.

mod closed;

use crate::certify::certificate::{About, Certificate, Grounds};
use crate::certify::witness::flush_of;
use crate::certify::{Doubt, Outcome, Robustness};
use crate::past::{self, Interchange};
use crate::query::{Action, Answer, Event, Limit, Limits, Model};
use thiserror::Error;

/// Why an answer comes without a certificate.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Uncertified {
    #[error("there is no answer to certify")]
    Unknown,
    #[error("a limit was reached")]
    Limit(Limit),
    #[error("certificates are not about `no hang`: --property N asks about one of the others")]
    NoHang,
    /// The judge has refused it.
    #[error("{0}")]
    Refused(String),
}

impl From<Doubt> for Uncertified {
    fn from(doubt: Doubt) -> Uncertified {
        match doubt {
            Doubt::Limit(limit) => Uncertified::Limit(limit),
            Doubt::Refuted(why) => Uncertified::Refused(why.to_string()),
        }
    }
}

impl From<Limit> for Uncertified {
    fn from(limit: Limit) -> Uncertified {
        Uncertified::Limit(limit)
    }
}

/// The certificate of an answer to `check`.
pub fn of_outcome(about: &About<'_>, outcome: &Outcome, limits: &Limits) -> Result<Certificate, Uncertified> {
    let (aside, goal) = about.question().ok_or(Uncertified::Unknown)?;
    let program = aside.as_ref().unwrap_or(about.program);
    let grounds = match (&outcome.answer, outcome.model) {
        (Answer::Unknown(_), _) => return Err(Uncertified::Unknown),
        (Answer::Holds(_), _) if program.mixes_sizes() => return Err(Limit::MixedSizes.into()),
        (Answer::Fails(trace), _) => Grounds::Run(trace.model, decisions(&trace.events)),
        (Answer::Holds(_), Model::Sc) => Grounds::Invariant(closed::under_sc(program, &goal, limits)?),
        (Answer::Holds(_), Model::Tso) => {
            let invariant = past::prove(program, &goal, Interchange::Allowed, limits)?;
            let none = || Uncertified::Refused("lagging readers find the goal within reach".to_string());
            Grounds::Invariant(invariant.ok_or_else(none)?)
        }
    };
    judged(Certificate::new(about, outcome.model, grounds), about, limits)
}

/// The certificate of an answer to `robust`.
pub fn of_robustness(
    about: &About<'_>,
    found: &Robustness,
    limits: &Limits,
) -> Result<Certificate, Uncertified> {
    let grounds = match &found.answer {
        Answer::Unknown(_) => return Err(Uncertified::Unknown),
        // Up to where the attacker flushes: the judge adds that itself.
        Answer::Fails(witness) => {
            let flush = flush_of(&witness.events, witness.store).unwrap_or(witness.events.len());
            Grounds::Witness(decisions(&witness.events[..flush]))
        }
        Answer::Holds(()) => Grounds::Harmless(closed::attacks(about.program, limits)?),
    };
    judged(Certificate::new(about, Model::Tso, grounds), about, limits)
}

fn decisions(events: &[Event]) -> Vec<Action> {
    events.iter().map(|event| event.action).collect()
}

fn judged(certificate: Certificate, about: &About<'_>, limits: &Limits) -> Result<Certificate, Uncertified> {
    certificate.verify(about.program, about.define, limits)?;
    Ok(certificate)
}

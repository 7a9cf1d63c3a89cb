//! An answer with all that a stranger needs to see that it is right, as a file: what was asked and answered, and
//! why that is so. `verify` judges it against the program alone, with the judges of this folder's neighbours.
//!
//! The file is described on the page docs/certificates.md, for whoever wants to write another checker: a line
//! that names the format and its version, a line of JSON (`header`), and a compressed body (`body`) of numbers
//! (`numbers`). Certificates come from anywhere, so reading one trusts nothing in it: not its counts, not its
//! size.

mod body;
mod header;
mod numbers;

pub use header::{Header, digest};

use super::attacks::{self, Harmless};
use super::invariant::{self, Invariant};
use super::{Doubt, MIXED_SIZES, run, witness};
use crate::limits::{Limit, Limits};
use crate::model::Program;
use crate::query::{Action, Asked, Goal, Model, Question, Verdict, question};
use thiserror::Error;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    pub header: Header,
    pub grounds: Grounds,
}

/// Why an answer is right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grounds {
    /// `safe`: no forbidden state is in a set that has all that are reachable.
    Invariant(Invariant),
    /// `violated`: the decisions of a run under this model that reaches one.
    Run(Model, Vec<Action>),
    /// `robust`: no attack succeeds.
    Harmless(Harmless),
    /// `not-robust`: the decisions of a witness.
    Witness(Vec<Action>),
}

impl Grounds {
    /// What is answered with such grounds.
    pub fn answers(&self) -> (Question, Verdict) {
        match self {
            Grounds::Invariant(_) => (Question::Check, Verdict::Holds),
            Grounds::Run(..) => (Question::Check, Verdict::Fails),
            Grounds::Harmless(_) => (Question::Robust, Verdict::Holds),
            Grounds::Witness(_) => (Question::Robust, Verdict::Fails),
        }
    }
}

/// Why a file is no certificate that can be judged.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unreadable {
    #[error("{0}")]
    Wrong(String),
    #[error("a limit was reached on the way")]
    Limit(Limit),
}

impl From<Limit> for Unreadable {
    fn from(limit: Limit) -> Unreadable {
        Unreadable::Limit(limit)
    }
}

/// A program, and what was asked about it.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    pub program: &'a Program,
    /// The definitions with which it was read.
    pub define: &'a [(String, i64)],
    /// The number of the property that was asked about, counted from 1; all of them, and errors, if there is
    /// none.
    pub property: Option<usize>,
}

impl About<'_> {
    /// What was asked, if the program has it.
    fn asked(&self) -> Option<Vec<Asked>> {
        let all = Asked::of(self.program);
        match self.property {
            None => Some(all),
            Some(number) => Some(vec![*all.get(number.checked_sub(1)?)?]),
        }
    }

    /// The goal, and the program if asserts that were not asked about have to be left aside.
    pub fn question(&self) -> Option<(Option<Program>, Goal)> {
        let mut asked = self.asked()?;
        asked.extend(self.property.is_none().then_some(Asked::Errors));
        Some(question(self.program, &asked))
    }
}

impl Certificate {
    pub fn new(about: &About<'_>, model: Model, grounds: Grounds) -> Certificate {
        let (question, verdict) = grounds.answers();
        Certificate { header: Header::of(about, question, verdict, model), grounds }
    }

    pub fn write(&self, limits: &Limits) -> Result<Vec<u8>, Limit> {
        let mut file = self.header.to_lines().into_bytes();
        file.extend(body::write(&self.grounds, limits)?);
        Ok(file)
    }

    pub fn read(file: &[u8], limits: &Limits) -> Result<Certificate, Unreadable> {
        let (header, body) = Header::read(file)?;
        let grounds = body::read(body, limits)?;
        let (question, verdict) = grounds.answers();
        if (header.command.as_str(), header.verdict.as_str()) != (question.command(), question.word(verdict))
        {
            let why = "its body is not one for the command and verdict in its header";
            return Err(Unreadable::Wrong(why.to_string()));
        }
        Ok(Certificate { header, grounds })
    }

    /// Nothing if the program, with these definitions, is what the certificate is about and the answer is
    /// right; otherwise the first condition that fails.
    pub fn verify(&self, program: &Program, define: &[(String, i64)], limits: &Limits) -> Result<(), Doubt> {
        let model = self.header.model;
        let (asked, verdict) = self.grounds.answers();
        let about = About { program, define, property: self.header.property };
        let differences = self.header.differences(&Header::of(&about, asked, verdict, model));
        if !differences.is_empty() {
            return Err(Doubt::refuted(differences.join("; ")));
        }
        let Some((aside, goal)) = about.question() else {
            return Err(Doubt::refuted("property: the program has fewer".to_string()));
        };
        let subject = aside.as_ref().unwrap_or(program);
        let is_run = matches!(self.grounds, Grounds::Run(..));
        if subject.mixes_sizes() && !is_run {
            return Err(Doubt::refuted(format!("the certificate {MIXED_SIZES}")));
        }
        match &self.grounds {
            Grounds::Invariant(invariant) => invariant::check(subject, &goal, model, invariant, limits),
            Grounds::Run(under, _) if *under != model && model == Model::Sc => {
                Err(Doubt::refuted("a run under TSO says nothing about SC".to_string()))
            }
            Grounds::Run(under, actions) => run(subject, &goal, *under, actions, limits).map(drop),
            Grounds::Harmless(harmless) => attacks::check(program, harmless, limits),
            Grounds::Witness(actions) => witness(program, actions, limits).map(drop),
        }
    }
}

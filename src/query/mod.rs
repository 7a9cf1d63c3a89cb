//! The words that every engine and every report share: what is asked ([`Goal`]), what may be spent
//! ([`Limits`], of the module of that name), what happened ([`Event`]), what that shows ([`Trace`],
//! [`Witness`], [`Race`]) and what the answer is ([`Answer`]).
//!
//! All of it is plain data. Who finds an answer is the engines' business, who believes it that of `certify`,
//! who prints it the reports'.

mod answer;
mod asked;
mod axioms;
mod evidence;
mod goal;
mod named;
mod reductions;
pub mod repair;
mod stats;
mod trace;

pub use crate::limits::{Limit, Limits};
pub use answer::{Answer, Outcomes, Proof, Question, Verdict};
pub use asked::{Asked, AskedTexts, question};
pub use axioms::Axioms;
pub use evidence::{Against, Provenance, Race, Relation, Trace, Waiting, Witness};
pub use goal::{Clause, Goal, Model, When, at, clause_holds};
pub use named::NamedEvent;
pub use reductions::{Reduction, Reductions};
pub use stats::{AttackCount, Contest, Delay, EngineTurn, Languages, Round, Stats, Traffic};
pub use trace::{Act, Action, Event, EventKind, Source, Trap, delays};

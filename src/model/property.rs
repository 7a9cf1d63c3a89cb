//! What may be asked of a program? Predicates over its states, and when they count.
//!
//! `check` asks of each property whether a state against it can be reached; `Goal` in `verdict` turns the
//! properties of a program into that one question.

use super::{Addr, Expr, Loc, Program, Reg, ThreadId};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// A fact about a state: 0 or 1 for `At`, the value for the others.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Atom {
    /// The thread stands at one of these locations.
    At(ThreadId, Vec<Loc>),
    Reg(ThreadId, Reg),
    Mem(Addr),
}

pub type Pred = Expr<Atom>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PropertyKind {
    /// No reachable state has the predicate.
    Forbid,
    /// A litmus question: does some final state have the predicate? Reached counts as violated.
    Exists,
    /// No final state has the predicate.
    Never,
    /// Every final state has the predicate.
    Forall,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Property {
    pub kind: PropertyKind,
    /// What the file calls it, if it has a name there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub pred: Pred,
    #[serde(default)]
    pub line: u32,
    /// As the file has it, its quantifiers included; empty if the file has no such text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Where the predicate begins with quantifiers: the ways in which a state can be against the property.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cases: Vec<Case>,
}

/// One of the ways in which a state can be against a quantified property.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// The indices, in words: `i = 0 and 2`.
    pub indices: String,
    /// What such a state has.
    pub pred: Pred,
}

/// The predicate with fresh locations of a thread wherever it names the old ones that they stand for.
pub fn at_also(pred: &Pred, t: ThreadId, stand_for: &[(Loc, Loc)]) -> Pred {
    pred.map_atoms(&|atom| match atom {
        Atom::At(u, locs) if *u == t => {
            let named: HashSet<Loc> = locs.iter().copied().collect();
            let fresh = stand_for.iter().filter(|(_, old)| named.contains(old)).map(|(new, _)| *new);
            Atom::At(t, locs.iter().copied().chain(fresh).collect())
        }
        other => other.clone(),
    })
}

impl PropertyKind {
    pub fn word(self) -> &'static str {
        match self {
            PropertyKind::Forbid => "forbid",
            PropertyKind::Exists => "exists",
            PropertyKind::Never => "never",
            PropertyKind::Forall => "forall",
        }
    }
}

impl Property {
    /// One without a name, and without any text of its own.
    pub fn new(kind: PropertyKind, pred: Pred, line: u32) -> Property {
        Property { kind, name: None, pred, line, text: String::new(), cases: Vec::new() }
    }

    /// Changes all that it says of states.
    pub fn map_preds(&mut self, change: impl Fn(&Pred) -> Pred) {
        self.pred = change(&self.pred);
        for case in &mut self.cases {
            case.pred = change(&case.pred);
        }
    }

    /// The property in the native language, as it was written if that is known.
    pub fn show(&self, program: &Program) -> String {
        if !self.text.is_empty() {
            return self.text.clone();
        }
        let name = self.name.as_ref().map_or(String::new(), |name| format!("{name}: "));
        format!("{} {name}{}", self.kind.word(), self.pred.show(&|a| program.show_atom(a)))
    }
}

//! What may be asked of infinite runs? Formulas of linear temporal logic `[Pnueli77]` over propositions, which
//! are numbers here: what each says of a state is known elsewhere.

use super::Pred;
use std::fmt;

/// A formula speaks of at most so many propositions: one bit of a letter each.
pub const MOST_PROPOSITIONS: usize = u64::BITS as usize;

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Formula {
    True,
    False,
    Proposition(usize),
    Not(Box<Formula>),
    Next(Box<Formula>),
    Finally(Box<Formula>),
    Globally(Box<Formula>),
    Binary(Connective, Box<Formula>, Box<Formula>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Connective {
    And,
    Or,
    Implies,
    Iff,
    Xor,
    Until,
    /// Until, or for ever.
    WeakUntil,
    Release,
}

/// A formula that a program's file states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatedFormula {
    /// What the file calls it, if it has a name there.
    pub name: Option<String>,
    pub formula: Formula,
    /// What each proposition says of a state.
    pub propositions: Vec<Pred>,
    pub line: u32,
    /// As the file has it.
    pub text: String,
}

impl StatedFormula {
    /// The text without what stands before the formula.
    pub fn body(&self) -> String {
        let text = self.text.strip_prefix("ltl").unwrap_or(&self.text).trim_start();
        let own =
            self.name.as_ref().and_then(|name| text.strip_prefix(&name[..])?.trim_start().strip_prefix(':'));
        own.unwrap_or(text).trim_start().to_string()
    }
}

impl Connective {
    /// The higher, the tighter.
    pub fn precedence(self) -> u8 {
        match self {
            Connective::Iff => 0,
            Connective::Implies => 1,
            Connective::Or => 2,
            Connective::Xor => 3,
            Connective::And => 4,
            Connective::Until | Connective::WeakUntil | Connective::Release => 5,
        }
    }

    pub fn symbol(self) -> &'static str {
        match self {
            Connective::And => "&&",
            Connective::Or => "||",
            Connective::Implies => "->",
            Connective::Iff => "<->",
            Connective::Xor => "^",
            Connective::Until => "U",
            Connective::WeakUntil => "W",
            Connective::Release => "R",
        }
    }
}

impl Formula {
    pub fn negated(self) -> Formula {
        Formula::Not(Box::new(self))
    }

    pub fn binary(connective: Connective, a: Formula, b: Formula) -> Formula {
        Formula::Binary(connective, Box::new(a), Box::new(b))
    }

    /// The formulas right below.
    pub fn parts(&self) -> Vec<&Formula> {
        match self {
            Formula::True | Formula::False | Formula::Proposition(_) => vec![],
            Formula::Not(a) | Formula::Next(a) | Formula::Finally(a) | Formula::Globally(a) => vec![a],
            Formula::Binary(_, a, b) => vec![a, b],
        }
    }

    /// Does it look at the very next state? Then it tells runs apart that only stutter differently.
    pub fn has_next(&self) -> bool {
        matches!(self, Formula::Next(_)) || self.parts().into_iter().any(Formula::has_next)
    }

    /// Is it about the present state alone?
    pub fn is_present(&self) -> bool {
        use Connective::{Release, Until, WeakUntil};
        let temporal = matches!(
            self,
            Formula::Next(_)
                | Formula::Finally(_)
                | Formula::Globally(_)
                | Formula::Binary(Until | WeakUntil | Release, ..)
        );
        !temporal && self.parts().into_iter().all(Formula::is_present)
    }

    /// With the names of its propositions.
    pub fn show(&self, names: &[String]) -> String {
        let part = |f: &Formula| match f {
            Formula::Binary(..) => format!("({})", f.show(names)),
            _ => f.show(names),
        };
        match self {
            Formula::True => "true".to_string(),
            Formula::False => "false".to_string(),
            Formula::Proposition(p) => match names.get(*p) {
                None => format!("p{p}"),
                Some(name) if name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') => name.clone(),
                Some(condition) => format!("{{{condition}}}"),
            },
            Formula::Not(a) => format!("!{}", part(a)),
            Formula::Next(a) => format!("X {}", part(a)),
            Formula::Finally(a) => format!("F {}", part(a)),
            Formula::Globally(a) => format!("G {}", part(a)),
            Formula::Binary(c, a, b) => format!("{} {} {}", part(a), c.symbol(), part(b)),
        }
    }
}

impl fmt::Display for Formula {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.show(&[]))
    }
}

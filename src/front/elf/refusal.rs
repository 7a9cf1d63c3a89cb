//! Why is a program in machine code not translated? A sentence, the place in the code, and what to do.

use crate::front::{Diagnostic, Severity, Unread};
use crate::limits::Limit;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Something that is not covered, or not right.
    Because {
        why: String,
        at: Option<u64>,
        help: Option<String>,
    },
    Limit(Limit),
}

impl Refusal {
    pub(super) fn new(why: impl Into<String>) -> Refusal {
        Refusal::Because { why: why.into(), at: None, help: None }
    }

    pub(super) fn at(self, address: u64) -> Refusal {
        match self {
            Refusal::Because { why, at, help } => Refusal::Because { why, at: at.or(Some(address)), help },
            limit => limit,
        }
    }

    pub(super) fn help(self, words: impl Into<String>) -> Refusal {
        match self {
            Refusal::Because { why, at, .. } => Refusal::Because { why, at, help: Some(words.into()) },
            limit => limit,
        }
    }

    /// With the place in words, which `place` finds.
    pub(super) fn unread(self, place: impl FnOnce(u64) -> String) -> Unread {
        match self {
            Refusal::Limit(limit) => Unread::Limit(limit),
            Refusal::Because { why, at, help } => {
                let message = match at {
                    Some(at) => format!("{}: {why}", place(at)),
                    None => why,
                };
                let severity = Severity::Error;
                Unread::Wrong(vec![Diagnostic { severity, message, span: None, label: String::new(), help }])
            }
        }
    }
}

impl From<Limit> for Refusal {
    fn from(limit: Limit) -> Refusal {
        Refusal::Limit(limit)
    }
}

pub(super) type Result<T> = std::result::Result<T, Refusal>;

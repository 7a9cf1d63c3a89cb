//! How does the process end? Each way has a code that scripts rely on.

use std::process::ExitCode;

/// How the process ends. Later variants outrank earlier ones when several files are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    Good,
    Unknown,
    Violated,
    /// Wrong usage, or an input that cannot be read.
    BadInput,
    /// A bug of ours.
    Internal,
}

impl Exit {
    pub(crate) fn code(self) -> u8 {
        match self {
            Exit::Good => 0,
            Exit::Violated => 10,
            Exit::Unknown => 5,
            Exit::BadInput => 2,
            Exit::Internal => 70,
        }
    }

    /// What another process has ended with.
    #[cfg(feature = "distributed")]
    pub(super) fn of_code(code: u8) -> Option<Exit> {
        let all = [Exit::Good, Exit::Violated, Exit::Unknown, Exit::BadInput, Exit::Internal];
        all.into_iter().find(|exit| exit.code() == code)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}

//! Assertions for tests: is a program safe, robust, or violated as it should be? A failure shows the run.
//!
//! ```
//! use overtake::limits::Limits;
//! let locked = "shared x; thread p; xchg r, [x], 1; end; thread q; xchg r, [x], 1; end; never p.r == q.r";
//! let program = overtake::front::tso::read(locked, &[], &Limits::default())?.program;
//! overtake::assert_safe!(program);
//! overtake::assert_robust!(program);
//! # Ok::<(), overtake::front::Unread>(())
//! ```

use crate::engine::{self, Options};
use crate::limits::Limits;
use crate::model::Program;
use crate::query::{Answer, Asked, Model};

/// Panics, with a run or a reason, unless all that the program asks holds under TSO. See [`crate::assert_safe!`].
#[track_caller]
pub fn assert_safe(program: &Program) {
    if let Some(why) = not_safe(program, Model::Tso) {
        panic!("the program is not safe under TSO: {why}");
    }
}

/// Panics unless all that the program asks holds under SC. See [`crate::assert_safe_under_sc!`].
#[track_caller]
pub fn assert_safe_under_sc(program: &Program) {
    if let Some(why) = not_safe(program, Model::Sc) {
        panic!("the program is not safe under SC: {why}");
    }
}

/// Panics unless something that the program asks is violated under TSO. See [`crate::assert_violated!`].
#[track_caller]
pub fn assert_violated(program: &Program) {
    match checked(program, Model::Tso).answer {
        Answer::Fails(_) => {}
        Answer::Holds(_) => panic!("the program is safe under TSO, and should not be"),
        Answer::Unknown(limit) => panic!("it is not known whether the program is safe: {limit:?}"),
    }
}

/// Panics, with a run, unless TSO adds no behaviour to those of SC. See [`crate::assert_robust!`].
#[track_caller]
pub fn assert_robust(program: &Program) {
    let robust = engine::robust(program, &Options::default(), &Limits::default());
    match robust.unwrap_or_else(|bug| panic!("{bug}")).answer {
        Answer::Holds(()) => {}
        Answer::Fails(witness) => {
            let run: String = witness.events.iter().map(|e| format!("{}\n", e.named(program))).collect();
            panic!("the program is not robust; no SC run is like this one:\n{run}");
        }
        Answer::Unknown(limit) => panic!("it is not known whether the program is robust: {limit:?}"),
    }
}

fn checked(program: &Program, model: Model) -> crate::certify::Outcome {
    let options = Options { model, ..Options::default() };
    let found = engine::check_each(program, &Asked::of(program), true, &options, &Limits::default());
    found.unwrap_or_else(|bug| panic!("{bug}")).worst
}

fn not_safe(program: &Program, model: Model) -> Option<String> {
    match checked(program, model).answer {
        Answer::Holds(_) => None,
        Answer::Fails(trace) => {
            // The run to a hang may go back to where a thread waits, which the program's own graph does not say.
            let retrying = engine::retrying(program).ok();
            let told = match trace.against {
                crate::query::Against::Hang => retrying.as_ref().unwrap_or(program),
                _ => program,
            };
            Some(format!("this run is a violation:\n{}", trace.named(told)))
        }
        Answer::Unknown(limit) => Some(format!("it is not known whether it is: {limit:?}")),
    }
}

/// All that the program asks holds under TSO; otherwise the test fails, and shows a run.
#[macro_export]
macro_rules! assert_safe {
    ($program:expr $(,)?) => {
        $crate::testing::assert_safe(&$program)
    };
}

/// All that the program asks holds under SC; otherwise the test fails, and shows a run.
#[macro_export]
macro_rules! assert_safe_under_sc {
    ($program:expr $(,)?) => {
        $crate::testing::assert_safe_under_sc(&$program)
    };
}

/// Something that the program asks is violated under TSO; otherwise the test fails.
#[macro_export]
macro_rules! assert_violated {
    ($program:expr $(,)?) => {
        $crate::testing::assert_violated(&$program)
    };
}

/// TSO adds no behaviour to those of SC; otherwise the test fails, and shows a run.
#[macro_export]
macro_rules! assert_robust {
    ($program:expr $(,)?) => {
        $crate::testing::assert_robust(&$program)
    };
}

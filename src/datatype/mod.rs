//! Does every bounded test of a concurrent data type behave like some serial order of its operations? And if
//! not, which fences repair it? After `[BurckhardtAlurMartin06]` and `[BurckhardtAlurMartin07]`.
//!
//! `serial` mines what may be observed, by performing all orders; `check` asks a solver for a run of the test
//! that goes wrong, that waits for good, or in which something else is observed; `fences` looks for the fewest
//! fences that leave none.

mod check;
mod fences;
mod serial;

pub use check::{DataOptions, DataOutcome, Failure, FailureKind, Size, Spec, check, written};
pub use fences::{FenceSets, fence_sets};
pub use serial::SerialFault;

use crate::model::datatype::DataTest;
use crate::model::{Reg, ThreadId};

/// The registers that are observed: arguments and results of all calls.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    pub observed: Vec<(ThreadId, Reg)>,
}

impl Calls {
    pub fn of(test: &DataTest) -> Calls {
        let mut calls = Calls::default();
        for (t, thread) in test.threads.iter().enumerate() {
            for call in &thread.calls {
                let registers = call.args.iter().chain(&call.results);
                calls.observed.extend(registers.map(|r| (ThreadId(t as u16), *r)));
            }
        }
        calls
    }
}

//! Does every bounded test of a concurrent data type behave like some serial order of its operations? And if
//! not, which fences repair it? After `[BurckhardtAlurMartin06]` and `[BurckhardtAlurMartin07]`.
//!
//! `start` makes the program of a test; `serial` mines what may be observed, by performing all orders; `check` asks a
//! solver for a run of the test that goes wrong, that waits for good, or in which something else is observed
//! (`asking` has the formulas, `outcome` the answers); `fences` looks for the fewest fences that leave none.

mod asking;
mod check;
mod fences;
mod outcome;
mod serial;
mod start;

pub use check::check;
pub use fences::{FenceSets, fence_sets};
pub use outcome::{DataOptions, DataOutcome, Failure, FailureKind, Size, Spec};
pub use serial::SerialFault;
pub use start::written;

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

    /// For each thread the places of what it observes.
    fn by_thread(&self) -> Vec<Vec<usize>> {
        let mut places: Vec<Vec<usize>> = Vec::new();
        for (k, (t, _)) in self.observed.iter().enumerate() {
            places.resize(places.len().max(t.index() + 1), Vec::new());
            places[t.index()].push(k);
        }
        places
    }
}

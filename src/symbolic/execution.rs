//! A solution as what it claims: the edges that each thread takes, what it reads, and the order of accesses.

use super::encode::Solution;
use super::streams::{ErrorAt, Streams, What};
use super::terms::TermId;
use crate::semantics::axioms::{Execution, Taken};

impl Solution {
    pub fn holds(&self, t: TermId) -> bool {
        self.values[t.index()] != 0
    }

    /// The run, and the last edge of whoever goes wrong in it.
    pub fn execution(&self, streams: &Streams) -> Execution {
        let mut execution = Execution::default();
        let mut step_of = vec![None; streams.accesses.len()];
        for (t, stream) in streams.threads.iter().enumerate() {
            let mut taken = Vec::new();
            for step in stream.steps.iter().filter(|s| self.holds(s.guard)) {
                let access = step.access.map(|k| &streams.accesses[k]);
                let read = access.filter(|a| !a.ghost).and_then(|a| a.load);
                if let Some(k) = step.access {
                    step_of[k] = Some((t, taken.len()));
                }
                let silent = step
                    .access
                    .is_some_and(|k| streams.waits.iter().any(|w| w.access == k && self.holds(w.guard)));
                taken.push(Taken {
                    edge: step.edge,
                    choice: step.choice.map(|c| self.values[c.index()]),
                    read: read.map(|l| self.values[l.index()]),
                    silent,
                });
            }
            execution.threads.push(taken);
        }
        for node in &self.order {
            let all = streams.accesses.iter().enumerate().filter(|(_, a)| a.node == *node);
            let together: Vec<(usize, usize)> = all.filter_map(|(k, _)| step_of[k]).collect();
            if !together.is_empty() {
                execution.order.push(together);
            }
        }
        for error in self.errors(streams) {
            let own = &mut execution.threads[error.thread];
            let is_there = own.last().is_some_and(|last| last.edge == error.edge);
            if !is_there || matches!(error.what, What::Trap(_)) {
                own.push(Taken { edge: error.edge, choice: None, read: None, silent: false });
            }
        }
        execution
    }

    /// What goes wrong, at most once in each thread.
    pub fn errors<'s>(&self, streams: &'s Streams) -> Vec<&'s ErrorAt> {
        streams.errors.iter().filter(|e| self.holds(e.guard)).collect()
    }
}

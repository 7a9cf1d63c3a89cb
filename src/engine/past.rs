//! Looks at the program through its readers: stores reach memory at once, and threads that have stored may
//! read from the past (`past`). Finite data make a finite search, whatever loops put into buffers.
//!
//! Pasts are approximated, at first as coarsely as can be. If nothing forbidden is seen, the program is safe,
//! at every level. If something is, it is made a run, which `certify` judges; if there is none, the thread
//! that read what was not there has its past approximated less, and the search begins anew. A program that is
//! violated is found to be so at some level. For one that is safe no level need suffice, though one of the
//! first two nearly always does. A turn goes on where the last one ended.

use super::{
    Allowance, Engine, EngineEntry, Internal, Options, Subject, Turn, confirm, mixed_sizes,
    unknown_membarrier,
};
use crate::certify::Checked;
use crate::past::{Keep, Level, Readers, Seen};
use crate::query::{Answer, Limit, Limits, Model, Proof, Stats};
use crate::reach::Budget;
use std::sync::atomic::Ordering;

pub(crate) const ENTRY: EngineEntry = EngineEntry {
    name: "past",
    about: "Let readers lag behind memory, and join what they may still read",
    refuses,
    blind_spot: |subject| {
        let program = subject.program();
        unknown_membarrier(program).filter(|_| program.has_locks()).or(mixed_sizes(program))
    },
    start: |subject, options, limits| {
        let stats = Stats { workers: 1, ..Stats::default() };
        Box::new(Lagging { subject, options, limits, readers: None, stats, earlier: Earlier::default() })
    },
};

fn refuses(options: &Options) -> Option<&'static str> {
    match (options.model, options.explicit.buffer) {
        (_, Some(_)) => {
            Some("--buffer bounds store buffers, and lagging readers have none: use --engine explicit")
        }
        (Model::Sc, None) => Some("lagging readers answer for TSO; under SC nobody lags"),
        (Model::Tso, None) => None,
    }
}

struct Lagging<'a> {
    subject: &'a Subject<'a>,
    options: &'a Options,
    limits: &'a Limits,
    readers: Option<Readers<'a>>,
    stats: Stats,
    earlier: Earlier,
}

/// What levels have cost that were too coarse.
#[derive(Clone, Copy, Default)]
struct Earlier {
    states: u64,
    transitions: u64,
    levels: u64,
}

impl<'a> Lagging<'a> {
    /// One level, or as much of it as the budget allows.
    fn look(&mut self, budget: Budget) -> Result<Seen, Limit> {
        let Lagging { subject, options, limits, .. } = *self;
        let readers = match &mut self.readers {
            Some(readers) => readers,
            none => none.insert(Readers::new(
                subject.program(),
                &subject.goal,
                Level::Joined,
                options.reductions,
                Keep::Needed,
                limits,
            )?),
        };
        limits.round.store(self.earlier.levels + 1, Ordering::Relaxed);
        let seen = readers.look(limits, budget);
        self.stats = Stats {
            states: self.earlier.states + readers.states(),
            transitions: self.earlier.transitions + readers.transitions(),
            bytes_per_state: readers.bytes() as f64 / readers.states().max(1) as f64,
            words: readers.words(),
            workers: 1,
            iterations: self.earlier.levels + 1,
            interchangeable: readers.interchangeable(),
            ..Stats::default()
        };
        if seen.is_err() {
            // A step may have been left half done.
            self.readers = None;
        } else if let Ok(Seen::Spurious(thread)) = seen {
            let Stats { states, transitions, iterations: levels, .. } = self.stats;
            self.earlier = Earlier { states, transitions, levels };
            readers.refine(thread);
        }
        seen
    }
}

impl<'a> Engine<'a> for Lagging<'a> {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn turn(&mut self, allowance: Allowance) -> Result<Turn, Internal> {
        let Lagging { subject, options, limits, .. } = *self;
        let answer: Checked = loop {
            match self.look(allowance.exhaust) {
                Err(limit) => break Answer::Unknown(limit),
                Ok(Seen::Nothing) => break Answer::Holds(Proof::Covered),
                Ok(Seen::Forbidden(actions)) => {
                    break confirm(subject, options.model, &subject.tell(options.model, &actions), limits)?;
                }
                Ok(Seen::Spurious(_)) => {}
                Ok(Seen::Spent) => return Ok(Turn::Spent),
            }
        };
        Ok(Turn::Answered(answer))
    }

    fn set_workers(&mut self, _: usize) {}

    fn stats(&self) -> &Stats {
        &self.stats
    }
}

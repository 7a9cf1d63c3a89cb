//! Enumerates the states of TSO with sets of buffer contents in them instead of single ones
//! (`crate::automata`): each node of the search stands for all states with the same configuration and any
//! content of a regular language for each buffer. Loops that fill a buffer without end are accelerated.
//!
//! An exhausted search is a proof. A run is made of what was found and judged like any other. A turn goes on
//! from where the last one ended.

use super::{
    Allowance, Engine, EngineEntry, Internal, Options, Subject, Turn, confirm, mixed_sizes,
    unknown_membarrier,
};
use crate::automata::{AutomataSearch, Cost, Errors, Progress};
use crate::query::{Answer, Languages, Limit, Limits, Model, Proof, Stats};

pub(crate) const ENTRY: EngineEntry = EngineEntry {
    name: "automata",
    about: "Enumerate the states of TSO, with regular languages for the contents of buffers",
    refuses,
    blind_spot: |subject| unknown_membarrier(subject.program()).or(mixed_sizes(subject.program())),
    start: |subject, options, limits| {
        let search = AutomataSearch::new(subject.program(), &subject.goal, options.reductions, limits);
        let stats = Stats { workers: 1, ..Stats::default() };
        Box::new(Automata { subject, limits, search, stats })
    },
};

fn refuses(options: &Options) -> Option<&'static str> {
    match (options.model, options.explicit.buffer) {
        (_, Some(_)) => Some(
            "--buffer bounds store buffers, and the automata engine has none that end: use --engine explicit",
        ),
        (Model::Sc, None) => Some("the automata engine answers for TSO; under SC there are no buffers"),
        (Model::Tso, None) => None,
    }
}

struct Automata<'a> {
    subject: &'a Subject<'a>,
    limits: &'a Limits,
    /// Or the limit that was reached while it was prepared.
    search: Result<AutomataSearch<'a>, Limit>,
    stats: Stats,
}

impl<'a> Engine<'a> for Automata<'a> {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn turn(&mut self, allowance: Allowance) -> Result<Turn, Internal> {
        let search = match &mut self.search {
            Ok(search) => search,
            Err(limit) => return Ok(Turn::Answered(Answer::Unknown(limit.clone()))),
        };
        let explored = search.explore(allowance.exhaust, Errors::First);
        let Cost { stored, visited, depth, cycles, .. } = search.cost();
        let languages = Languages { largest: search.largest(), accelerated: cycles, depth };
        self.stats = Stats {
            states: stored,
            transitions: visited,
            languages: Some(languages),
            workers: 1,
            ..Stats::default()
        };
        Ok(Turn::Answered(match explored {
            Ok(Progress::Spent) => return Ok(Turn::Spent),
            Ok(Progress::Exhausted) => Answer::Holds(Proof::Exhausted),
            Ok(Progress::Found(run)) => {
                confirm(self.subject, Model::Tso, &self.subject.tell(Model::Tso, &run), self.limits)?
            }
            Err(limit) => Answer::Unknown(limit),
        }))
    }

    fn stats(&self) -> &Stats {
        &self.stats
    }

    /// There is one worker, whatever is offered.
    fn set_workers(&mut self, _workers: usize) {}
}

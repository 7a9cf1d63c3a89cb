//! Enumerates the states of the program under the asked memory model, SC or TSO.
//!
//! Under SC an exhausted search is a proof for finite programs. Under TSO with unbounded buffers it is one
//! too, but a loop that stores ever new things has no finite space, and then a limit ends the search. With
//! bounded buffers an exhausted search is a proof only if no buffer ever wanted to grow past the bound. Each
//! turn begins anew.

use super::{Allowance, Engine, EngineEntry, Internal, Options, Subject, Turn, confirm};
use crate::certify::Checked;
use crate::machine::{MemoryModel, ProgramMachine};
use crate::query::{Answer, Limit, Limits, Model, Proof, Stats};
use crate::reach::{Search, Spent, explore_within};

pub(crate) const ENTRY: EngineEntry = EngineEntry {
    name: "explicit",
    about: "Enumerate the states of the memory model itself",
    refuses: |_| None,
    blind_spot: |_| None,
    start: |subject, options, limits| {
        let stats = Stats { workers: options.workers, ..Stats::default() };
        Box::new(Explicit { subject, options, limits, workers: options.workers, stats })
    },
};

/// What belongs to this engine alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExplicitOptions {
    /// Bounds the buffers under TSO.
    pub buffer: Option<usize>,
}

struct Explicit<'a> {
    subject: &'a Subject<'a>,
    options: &'a Options,
    limits: &'a Limits,
    workers: usize,
    stats: Stats,
}

impl<'a> Engine<'a> for Explicit<'a> {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn turn(&mut self, allowance: Allowance) -> Result<Turn, Internal> {
        let Explicit { subject, options, limits, workers, .. } = *self;
        let memory = match options.model {
            Model::Sc => MemoryModel::Sc,
            Model::Tso => MemoryModel::Tso(options.explicit.buffer),
        };
        let (program, goal) = (subject.program(), &subject.goal);
        let machine = match ProgramMachine::new(program, goal, memory, options.reductions, limits) {
            Ok(machine) => machine,
            Err(limit) => return Ok(Turn::Answered(Answer::Unknown(limit))),
        };
        let search = Search::new(options.order, workers).among(options.peers.as_ref());
        let (found, spent) = match explore_within(&machine, limits, search, allowance.exhaust) {
            Ok(found) => (found, false),
            Err(Spent(found)) => (found, true),
        };
        self.stats = Stats {
            states: found.states,
            transitions: found.transitions,
            bytes_per_state: found.bytes as f64 / found.states.max(1) as f64,
            words: machine.words(),
            workers,
            longest_buffer: machine.longest_buffer(),
            interchangeable: machine.interchangeable(),
            ..Stats::default()
        };
        if spent {
            return Ok(Turn::Spent);
        }
        Ok(Turn::Answered(match (found.goals.first(), found.limit) {
            (Some((_, actions)), _) => {
                confirm(subject, options.model, &subject.tell(options.model, actions), limits)?
            }
            (None, Some(limit)) => Answer::Unknown(limit),
            (None, None) => exhausted(&machine, options),
        }))
    }

    fn set_workers(&mut self, workers: usize) {
        self.workers = workers;
    }

    fn stats(&self) -> &Stats {
        &self.stats
    }
}

fn exhausted(machine: &ProgramMachine, options: &Options) -> Checked {
    match options.explicit.buffer {
        _ if machine.too_large() => Answer::Unknown(Limit::StateSize(machine.words())),
        Some(bound) if machine.overflowed() => Answer::Unknown(Limit::Buffer(bound)),
        _ => Answer::Holds(Proof::Exhausted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Pruning;
    use crate::front::tso;
    use crate::query::Goal;
    use crate::reach::Budget;

    /// Without end, since every store is another.
    const ENDLESS: &str = "shared x, y; thread p; again: store [x], r; r = r + 1; goto again; end
                           thread q; load r, [x]; store [y], r; end; forbid [y] == 0 - 1";

    fn turn(limit: Option<u64>, budget: Budget) -> Turn {
        let program = tso::read(ENDLESS, &[], &Limits::default()).expect("a program").program;
        let goal = Goal::of(&program);
        let options = Options { model: Model::Sc, ..Options::with_workers(1) };
        let limits = Limits { states: limit, ..Limits::default() };
        let subject = Subject::of(&program, &goal, Pruning::Off, &limits).expect("no limit");
        let mut engine = (ENTRY.start)(&subject, &options, &limits);
        let turn = engine.turn(Allowance { exhaust: budget, ..Allowance::default() });
        assert!(engine.stats().states > 0, "it has cost something");
        turn.expect("no bug in overtake")
    }

    #[test]
    fn a_budget_is_never_told_as_a_limit_of_the_users() {
        let limit = |turn| match turn {
            Turn::Answered(Answer::Unknown(limit)) => Some(limit),
            Turn::Spent => None,
            turn => panic!("{turn:?}"),
        };
        let few = Budget::states(100);
        assert_eq!(limit(turn(None, few)), None);
        assert_eq!(limit(turn(Some(1_000), few)), None);
        assert_eq!(limit(turn(Some(100), few)), Some(Limit::States(100)));
        assert_eq!(limit(turn(Some(50), few)), Some(Limit::States(50)));
        assert_eq!(limit(turn(Some(50), Budget::UNLIMITED)), Some(Limit::States(50)));
    }
}

//! Enumerates the states of the program under the asked memory model, SC or TSO.
//!
//! Under SC an exhausted search is a proof for finite programs. Under TSO with unbounded buffers it is one too,
//! but a loop that stores ever new things has no finite space, and then a limit ends the search. With bounded
//! buffers an exhausted search is a proof only if no buffer ever wanted to grow past the bound.

use super::{Internal, Options, Subject, confirm};
use crate::certify::{Checked, Outcome};
use crate::machine::{MemoryModel, ProgramMachine};
use crate::query::{Answer, Limit, Limits, Model, Proof, Stats};
use crate::reach::{Search, explore};

pub fn check(
    subject: &Subject,
    options: &Options,
    limits: &Limits,
    most: Option<u64>,
) -> Result<Outcome, Internal> {
    let memory = match options.model {
        Model::Sc => MemoryModel::Sc,
        Model::Tso => MemoryModel::Tso(options.buffer),
    };
    let unknown = |limit: Limit| Outcome {
        answer: Answer::Unknown(limit),
        model: options.model,
        engine: "explicit",
        safe_under_sc: false,
        stats: Stats { workers: options.workers, ..Stats::default() },
        warnings: vec![],
    };
    let machine =
        match ProgramMachine::new(subject.program(), &subject.goal, memory, options.reductions, limits) {
            Ok(machine) => machine,
            Err(limit) => return Ok(unknown(limit)),
        };
    let search = Search { most, ..Search::new(options.order, options.workers) };
    let found = explore(&machine, limits, search);
    let answer = match (found.goals.first(), found.limit) {
        (Some((_, actions)), _) => {
            confirm(subject, options.model, &subject.tell(options.model, actions), limits)?
        }
        (None, Some(limit)) => Answer::Unknown(limit),
        (None, None) => exhausted(&machine, options),
    };
    let stats = Stats {
        states: found.states,
        transitions: found.transitions,
        bytes_per_state: found.bytes as f64 / found.states.max(1) as f64,
        words: machine.words(),
        workers: options.workers,
        longest_buffer: machine.longest_buffer(),
        interchangeable: machine.interchangeable(),
        ..Stats::default()
    };
    let (model, engine) = (options.model, "explicit");
    Ok(Outcome { answer, model, engine, safe_under_sc: false, stats, warnings: vec![] })
}

fn exhausted(machine: &ProgramMachine, options: &Options) -> Checked {
    match options.buffer {
        _ if machine.too_large() => Answer::Unknown(Limit::StateSize(machine.words())),
        Some(bound) if machine.overflowed() => Answer::Unknown(Limit::Buffer(bound)),
        _ => Answer::Holds(Proof::Exhausted),
    }
}

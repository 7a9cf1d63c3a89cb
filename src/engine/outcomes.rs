//! Which final states are there? Every combination of values that the observed registers and cells can end
//! with.
//!
//! The explorer visits the states of the asked memory model as for a goal that looks at everything observed
//! in final states, and at nothing else; what would be the goal's value is gathered instead. Its reductions
//! keep every final state that such a goal could tell from others, whatever it says of them; so nothing is
//! missing, and since every state is one that a run reaches, nothing is there that should not be.

use super::Options;
use crate::machine::{Ending, MemoryModel, ProgramMachine};
use crate::model::{Atom, Expr, Pred, Program, Value};
use crate::query::Reductions;
use crate::query::{Action, Clause, Goal, Limit, Limits, Model, Outcomes, Stats, When};
use crate::reach::{Look, Machine, Search, Sink, Sleep, Wanted, explore};
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

pub(crate) fn find(program: &Program, observed: &[Atom], options: &Options, limits: &Limits) -> Outcomes {
    let start = Instant::now();
    let memory = match options.model {
        Model::Sc => MemoryModel::Sc,
        Model::Tso => MemoryModel::Tso(options.explicit.buffer),
    };
    // Who ends with which value matters here.
    let mut reductions = Reductions { symmetry: false, ..options.reductions };
    if program.may_end_inside_block() {
        // And so does what else is in the buffers, observed or not.
        reductions = Reductions { por: false, faint: false, ..reductions };
    }
    let machine = match ProgramMachine::new(program, &looking_at(observed), memory, reductions, limits) {
        Ok(machine) => machine,
        Err(limit) => {
            let stats = Stats {
                workers: options.workers,
                traffic: options.traffic(),
                time: start.elapsed(),
                ..Stats::default()
            };
            return Outcomes::unsearched(options.model, limit, stats);
        }
    };
    let columns = observed.len();
    let gatherer = Gatherer { machine, columns, found: Mutex::default(), wrong: AtomicBool::new(false) };
    let search = Search::new(options.order, options.workers).among(options.peers.as_ref());
    let explored = explore(&gatherer, limits, search);
    let Gatherer { machine, found, wrong, .. } = gatherer;
    let limit = explored.limit.or_else(|| left_out(&machine, options));
    let stats = Stats {
        states: explored.states,
        transitions: explored.transitions,
        bytes_per_state: explored.bytes as f64 / explored.states.max(1) as f64,
        words: machine.words(),
        workers: options.workers,
        longest_buffer: machine.longest_buffer(),
        traffic: options.traffic(),
        time: start.elapsed(),
        ..Stats::default()
    };
    let Finals { drained, mut frozen } = found.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    frozen.retain(|values| !drained.contains(values));
    let states = drained.union(&frozen).cloned().collect();
    Outcomes {
        states: limit.map_or(Ok(states), Err),
        frozen,
        goes_wrong: wrong.into_inner(),
        model: options.model,
        stats,
    }
}

/// A goal with one clause for each place, and one more, without which a goal that looks at nothing would be
/// hopeless everywhere.
fn looking_at(observed: &[Atom]) -> Goal {
    let clause = |pred: Pred| Clause { when: When::Final, pred, property: 0 };
    let atoms = observed.iter().map(|atom| clause(Expr::Atom(atom.clone())));
    Goal { clauses: atoms.chain([clause(Expr::Const(1))]).collect(), ignores_errors: false }
}

/// What the search passed over, although no limit ended it.
fn left_out(machine: &ProgramMachine, options: &Options) -> Option<Limit> {
    match options.explicit.buffer {
        _ if machine.too_large() => Some(Limit::StateSize(machine.words())),
        Some(bound) if machine.overflowed() => Some(Limit::Buffer(bound)),
        _ => None,
    }
}

/// The values in final states with all buffers empty, and in those with stores that a block has frozen.
#[derive(Default)]
struct Finals {
    drained: BTreeSet<Vec<Value>>,
    frozen: BTreeSet<Vec<Value>>,
}

/// The program's machine, for which no state is a goal.
struct Gatherer {
    machine: ProgramMachine,
    columns: usize,
    found: Mutex<Finals>,
    /// Some thread has gone wrong in some run.
    wrong: AtomicBool,
}

impl Machine for Gatherer {
    type Scratch = <ProgramMachine as Machine>::Scratch;
    type Step = Action;

    fn scratch(&self) -> Self::Scratch {
        self.machine.scratch()
    }

    fn initial(&self, scratch: &mut Self::Scratch, sink: &mut impl Sink) {
        self.machine.initial(scratch, sink);
    }

    fn expand(
        &self,
        scratch: &mut Self::Scratch,
        state: &[u64],
        wanted: Wanted,
        sleep: Sleep,
        sink: &mut impl Sink,
    ) {
        self.machine.expand(scratch, state, wanted, sleep, sink);
    }

    fn look(&self, scratch: &mut Self::Scratch, state: &[u64]) -> Look {
        match self.machine.ending(scratch, state) {
            Ending::None => {}
            Ending::Wrong => self.wrong.store(true, Ordering::Relaxed),
            Ending::Final { mut values, frozen } => {
                values.truncate(self.columns);
                let mut found = self.found.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                if frozen {
                    found.frozen.insert(values)
                } else {
                    found.drained.insert(values)
                };
            }
        }
        Look::Rank(0)
    }

    fn trace(&self, line: &[Vec<u64>], limits: &Limits) -> Result<Vec<Action>, Limit> {
        self.machine.trace(line, limits)
    }

    fn knowledge(&self) -> Vec<u64> {
        let found = self.found.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let noticed = self.machine.knowledge();
        let mut told = vec![self.wrong.load(Ordering::Relaxed) as u64, noticed.len() as u64];
        told.extend(noticed);
        told.extend([&found.drained, &found.frozen].map(|states| states.len() as u64));
        told.extend(found.drained.iter().chain(&found.frozen).flatten().map(|&value| value as u64));
        told
    }

    fn learn(&self, knowledge: &[u64]) {
        let [wrong, noticed, ref rest @ ..] = *knowledge else { return };
        let Some((noticed, rest)) = rest.split_at_checked(noticed as usize) else { return };
        self.machine.learn(noticed);
        if wrong != 0 {
            self.wrong.store(true, Ordering::Relaxed);
        }
        let [drained, frozen, ref values @ ..] = *rest else { return };
        let mut found = self.found.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let mut values = values.iter().map(|&word| word as Value);
        for k in 0..drained + frozen {
            let state = values.by_ref().take(self.columns).collect();
            let known = if k < drained { &mut found.drained } else { &mut found.frozen };
            known.insert(state);
        }
    }
}

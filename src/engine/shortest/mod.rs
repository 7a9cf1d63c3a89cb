//! Which run is shown? The simplest one: the fewest delayed stores, then the fewest switches between threads,
//! then the fewest events.
//!
//! It comes from a search of its own, from the program and the goal and not from the run that an engine found:
//! what an engine comes by depends on its workers and on luck, and the same file is to give the same run every
//! time. For no delay, one, two and so on, the cheapest run is looked for with a bounded number of states: first
//! with local steps joined to what comes before them, and once a run is there, step by step, which is exact and
//! takes more states. If that brings nothing, or if a limit of the user's comes first, the run that was found is
//! simplified instead, and the answer says so.

mod simplify;

use super::{Internal, Options, ShownRun, settled};
use crate::certify::{self, Confirmed, Outcome};
use crate::machine::{MemoryModel, SparingMachine};
use crate::model::Program;
use crate::query::{Action, Answer, Goal, Limit, Limits, Model, Provenance, Reductions, Trace};
use crate::reach::{Budget, Cheapest, cheapest};
use simplify::{simplified, tidied};
use std::ops::RangeInclusive;

/// States that each number of delays is worth.
const STATES: u64 = 60_000;
/// States that the same search is worth once more, step by step.
const SINGLE_STEPS: u64 = 3_000;
/// Where all threads are too many, runs of so many are looked for.
const FEW_THREADS: RangeInclusive<u32> = 2..=3;
/// Runs with more delays than this are not looked for.
const MOST_DELAYS: usize = 6;
/// After so many numbers of delays that took more states than they are worth, there is little hope.
const MOST_SPENT: usize = 2;

/// What the search found out.
enum Simplest {
    /// The run of this memory model.
    Run {
        model: Model,
        actions: Vec<Action>,
        fewest_delays: bool,
    },
    Nothing,
}

/// The outcome with the run that is shown.
pub(crate) fn show(
    program: &Program,
    goal: &Goal,
    options: &Options,
    limits: &Limits,
    mut outcome: Outcome,
) -> Result<Outcome, Internal> {
    let Answer::Fails(found) = &outcome.answer else { return Ok(outcome) };
    if options.run == ShownRun::AsFound {
        return Ok(outcome);
    }
    let mut hunt = Hunt { program, goal, options, limits, safe_under_sc: outcome.safe_under_sc };
    let searched = match options.run {
        ShownRun::Simplest => hunt.search(found.model).unwrap_or(Simplest::Nothing),
        _ => Simplest::Nothing,
    };
    outcome.safe_under_sc = hunt.safe_under_sc;
    let (model, actions, provenance) = match searched {
        Simplest::Run { model, actions, fewest_delays } => {
            (model, tidied(program, goal, model, actions, limits), Provenance::Searched { fewest_delays })
        }
        Simplest::Nothing => {
            let actions = found.events.iter().map(|e| e.action).collect();
            (found.model, simplified(program, goal, found.model, actions, limits), Provenance::Shortened)
        }
    };
    // A run that no limit lets be judged is not shown; the one that was found has been.
    let judged: Result<Confirmed<Trace>, Limit> =
        settled(certify::run(program, goal, model, &actions, limits))?;
    if let Ok(trace) = judged {
        outcome.answer = Answer::Fails(trace);
        outcome.provenance = Some(provenance);
    }
    Ok(outcome)
}

struct Hunt<'a> {
    program: &'a Program,
    goal: &'a Goal,
    options: &'a Options,
    limits: &'a Limits,
    safe_under_sc: bool,
}

impl Hunt<'_> {
    /// The simplest run to the goal, given that there is one under the model.
    fn search(&mut self, model: Model) -> Result<Simplest, Limit> {
        let mut fewest = true;
        if !self.safe_under_sc {
            let mut sc = self.machine(0, self.options.reductions)?;
            match self.cheapest(&mut sc)? {
                Cheapest::Way(line) => return self.run(&sc, 0, &line, true),
                Cheapest::None if model == Model::Tso => self.safe_under_sc = true,
                Cheapest::None | Cheapest::Spent => fewest = false,
            }
        }
        if model == Model::Sc {
            return Ok(Simplest::Nothing);
        }
        let mut tso = self.machine(1, self.options.reductions)?;
        let mut spent = 0;
        for delays in 1..=MOST_DELAYS {
            tso.delay(delays);
            match self.cheapest(&mut tso)? {
                Cheapest::Way(line) => return self.run(&tso, delays, &line, fewest),
                Cheapest::None => {}
                Cheapest::Spent => {
                    spent += 1;
                    fewest = false;
                }
            }
            if spent == MOST_SPENT {
                break;
            }
        }
        Ok(Simplest::Nothing)
    }

    /// The cheapest run of the machine; if that takes too many states, the cheapest one in which few threads
    /// take part.
    fn cheapest(&self, machine: &mut SparingMachine) -> Result<Cheapest, Limit> {
        machine.restrict(None);
        let all = cheapest(machine, self.budget(STATES), self.limits)?;
        if all != Cheapest::Spent {
            return Ok(all);
        }
        for threads in FEW_THREADS.filter(|&few| few < self.program.threads().len() as u32) {
            machine.restrict(Some(threads));
            if let way @ Cheapest::Way(_) = cheapest(machine, self.budget(STATES), self.limits)? {
                return Ok(way);
            }
        }
        Ok(Cheapest::Spent)
    }

    /// Without delays, TSO is SC.
    fn machine(&self, delays: usize, reductions: Reductions) -> Result<SparingMachine, Limit> {
        let memory = match delays {
            0 => MemoryModel::Sc,
            _ => MemoryModel::Tso(self.options.explicit.buffer),
        };
        let mut machine = SparingMachine::new(self.program, self.goal, memory, reductions, self.limits)?;
        machine.delay(delays);
        Ok(machine)
    }

    fn budget(&self, most: u64) -> Budget {
        Budget::states(self.limits.states.map_or(most, |asked| asked.min(most)))
    }

    /// The run along the states of a joined search, or a cheaper one step by step.
    fn run(
        &self,
        joined: &SparingMachine,
        delays: usize,
        line: &[Vec<u64>],
        fewest_delays: bool,
    ) -> Result<Simplest, Limit> {
        let single = self.machine(delays, Reductions { steps: false, ..self.options.reductions })?;
        let actions = match cheapest(&single, self.budget(SINGLE_STEPS), self.limits)? {
            Cheapest::Way(exact) => single.trace(&exact, self.limits)?,
            Cheapest::None | Cheapest::Spent => joined.trace(line, self.limits)?,
        };
        let model = if delays == 0 { Model::Sc } else { Model::Tso };
        Ok(Simplest::Run { model, actions, fewest_delays })
    }
}

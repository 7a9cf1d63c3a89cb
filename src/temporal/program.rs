//! Does a formula hold on every run of a program, under SC or TSO?
//!
//! The states are those of the plain machines: reductions that are right for states that must not be reached
//! (persistent and sleep sets, pruning, silent stores) leave out runs, and are not used. Each thread and each
//! buffer is an acceptance set: a run is fair if whoever could do something from some time on does. Repeated
//! reachability with unbounded buffers is undecidable, so buffers are bounded: what holds although a buffer
//! wanted more is not known to hold, and a lasso is a real run all the same.

use super::automaton::{Automaton, Letter};
use super::judged;
use crate::certify::{LassoClaim, LivenessOutcome, Refuted, program_lasso};
use crate::model::formula::{Formula, StatedFormula};
use crate::model::{Pred, Program};
use crate::query::{Action, Answer, Limit, Limits, Model, Stats};
use crate::reach::cycles::{MarkedGraph, Marks, accepting_lasso};
use crate::semantics::liveness::{Actor, thread_steps};
use crate::semantics::{State, Step};
use foldhash::fast::FixedState;
use std::cell::Cell;
use std::collections::HashMap;
use std::time::Instant;

/// A formula over predicates of a program.
#[derive(Clone, Debug)]
pub struct ProgramFormula {
    pub formula: Formula,
    pub propositions: Vec<Pred>,
}

impl ProgramFormula {
    pub fn of(stated: &StatedFormula) -> ProgramFormula {
        ProgramFormula { formula: stated.formula.clone(), propositions: stated.propositions.clone() }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct LivenessOptions {
    pub model: Model,
    /// Most entries of a buffer.
    pub buffer: usize,
    pub fair: bool,
}

struct ProgramProduct<'a> {
    program: &'a Program,
    asked: &'a ProgramFormula,
    automaton: Automaton,
    options: LivenessOptions,
    actors: Vec<Actor>,
    /// A buffer wanted to be longer.
    overflowed: Cell<bool>,
}

/// States by number.
#[derive(Default)]
struct States {
    list: Vec<State>,
    numbers: HashMap<State, u64, FixedState>,
}

impl States {
    fn number(&mut self, state: State) -> u64 {
        let next = self.list.len() as u64;
        *self.numbers.entry(state).or_insert_with_key(|state| {
            self.list.push(state.clone());
            next
        })
    }
}

impl ProgramProduct<'_> {
    fn letter(&self, state: &State) -> Letter {
        let holds = |(i, p): (usize, &Pred)| (state.has(p) as Letter) << i;
        self.asked.propositions.iter().enumerate().map(holds).sum()
    }

    /// The sets of fairness that an edge meets: those of whoever takes it, and of whoever has none.
    fn fairness(&self, ready: &[Step], taken: Option<&Step>) -> Marks {
        if !self.options.fair {
            return 0;
        }
        let is_met =
            |actor: &Actor| taken.is_some_and(|s| actor.took(s)) || !ready.iter().any(|s| actor.took(s));
        let met = self.actors.iter().enumerate().filter(|(_, actor)| is_met(actor));
        met.map(|(i, _)| 1 << (self.automaton.sets + i)).sum()
    }
}

impl MarkedGraph for ProgramProduct<'_> {
    type Scratch = States;
    /// Nothing, if nothing happens any more.
    type Step = Option<Action>;

    fn scratch(&self) -> States {
        States::default()
    }

    fn sets(&self) -> Marks {
        let actors = if self.options.fair { self.actors.len() } else { 0 };
        self.automaton.all_marks() | ((1 << actors) - 1) << self.automaton.sets
    }

    fn roots(&self, states: &mut States, each: &mut impl FnMut(&[u64])) {
        each(&[states.number(State::initial(self.program)), 0]);
    }

    fn follow(
        &self,
        states: &mut States,
        state: &[u64],
        each: &mut impl FnMut(&[u64], Marks, Option<Action>),
    ) {
        let from = states.list[state[0] as usize].clone();
        let here = self.letter(&from);
        let threads = self.program.thread_ids();
        let ready: Vec<Step> =
            threads.flat_map(|t| thread_steps(self.program, self.options.model, &from, t)).collect();
        let edges: Vec<_> =
            self.automaton.states[state[1] as usize].iter().filter(|e| e.guard.admits(here)).collect();
        let mut go = |to: u64, marks: Marks, action: Option<Action>| {
            for edge in &edges {
                each(&[to, edge.to as u64], edge.marks | marks, action);
            }
        };
        if ready.is_empty() {
            return go(state[0], self.fairness(&ready, None), None);
        }
        for step in &ready {
            if step.state.buffers[step.event.thread().index()].len() > self.options.buffer {
                self.overflowed.set(true);
                continue;
            }
            let to = states.number(step.state.clone());
            go(to, self.fairness(&ready, Some(step)), Some(step.event.action));
        }
    }
}

/// Does the formula hold on every run, or on every fair one?
pub fn formula(
    program: &Program,
    asked: &ProgramFormula,
    options: LivenessOptions,
    limits: &Limits,
) -> Result<LivenessOutcome, Refuted> {
    let begun = Instant::now();
    let unknown = |limit| LivenessOutcome { answer: Answer::Unknown(limit), stats: Stats::default() };
    if let Some(place) = program.parted() {
        return Ok(unknown(Limit::InParts(place)));
    }
    let automaton = match Automaton::of(&asked.formula.clone().negated(), limits) {
        Ok(automaton) => automaton,
        Err(limit) => return Ok(unknown(limit)),
    };
    let actors = Actor::all(program);
    let sets = automaton.sets + actors.len();
    if sets >= Marks::BITS as usize {
        return Ok(unknown(Limit::ProgramSize(format!("there are {sets} acceptance sets"))));
    }
    let product = ProgramProduct { program, asked, automaton, options, actors, overflowed: Cell::new(false) };
    let found = accepting_lasso(&product, limits);
    let stats = Stats {
        states: found.states,
        transitions: found.transitions,
        bytes_per_state: found.bytes as f64 / found.states.max(1) as f64,
        words: 2,
        workers: 1,
        time: begun.elapsed(),
        ..Stats::default()
    };
    let answer = match (found.lasso, found.limit) {
        (Some(lasso), _) => {
            let cycle_from = lasso.prefix.len();
            let actions: Vec<Action> = lasso.prefix.into_iter().chain(lasso.cycle).flatten().collect();
            let claim = LassoClaim {
                model: options.model,
                formula: &asked.formula,
                propositions: &asked.propositions,
                fair: options.fair,
                cycle_from: cycle_from.min(actions.len()),
            };
            match judged(program_lasso(program, &actions, claim, limits))? {
                Ok(lasso) => Answer::Fails(lasso),
                Err(limit) => Answer::Unknown(limit),
            }
        }
        (None, Some(limit)) => Answer::Unknown(limit),
        (None, None) if product.overflowed.get() => Answer::Unknown(Limit::Buffer(options.buffer)),
        (None, None) => Answer::Holds(()),
    };
    Ok(LivenessOutcome { answer, stats })
}

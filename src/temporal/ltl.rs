//! Does a formula hold on every run of a model, and does its property process accept none?
//!
//! The model is put beside an observer that accepts what is wrong, and searched for a cycle that it accepts.
//! That a condition holds always needs no observer: a search of states alone finds a state where it does not,
//! and any way to go on from there completes the lasso.

use super::automaton::Automaton;
use super::product::{ObservedStep, Product};
use super::{TemporalOptions, judged, safety};
use crate::certify::{Confirmed, DveClaim, DveOutcome, DveRun, Lasso, Refuted, dve_run};
use crate::dve::{DveExpr, DveStep, System};
use crate::machine::dve::{DveGoals, DveMachine};
use crate::model::formula::{Connective, Formula, MOST_PROPOSITIONS};
use crate::model::{BinOp, Value};
use crate::query::{Answer, Limit, Limits, Stats};
use crate::reach::cycles::{Emptiness, FoundLasso, accepting_lasso};
use std::ops::ControlFlow;
use std::time::Instant;

/// A formula over expressions of a model.
#[derive(Clone, Debug)]
pub struct TemporalFormula {
    pub formula: Formula,
    /// What each proposition says of a state.
    pub propositions: Vec<DveExpr>,
}

impl TemporalFormula {
    /// What must never be, if the formula says just that: `G a` or `! F a`, and `a` is about the present.
    pub fn never(&self) -> Option<DveExpr> {
        let present = |a: &Formula| a.is_present().then(|| present(a, &self.propositions));
        match &self.formula {
            Formula::Globally(a) => present(a).map(DveExpr::negated),
            Formula::Not(a) => match &**a {
                Formula::Finally(a) => present(a),
                _ => None,
            },
            _ => None,
        }
    }
}

/// Does the formula hold on every run?
pub fn formula(
    system: &System,
    asked: &TemporalFormula,
    options: &TemporalOptions,
    limits: &Limits,
) -> Result<DveOutcome, Refuted> {
    let mut before = None;
    if let Some(bad) = asked.never() {
        let goals = DveGoals { forbidden: vec![bad], ..DveGoals::default() };
        let outcome = safety::reach(system, &goals, options, limits)?;
        let run = match &outcome.answer {
            Answer::Fails(run) => run.steps.clone(),
            _ => return Ok(outcome),
        };
        let stats = outcome.stats;
        match completed(system, asked, options, limits, run)? {
            Some(answer) => return Ok(DveOutcome { answer, stats }),
            // Every run from there goes wrong; another may not.
            None => before = Some(stats),
        }
    }
    let begun = Instant::now();
    let wrong = asked.formula.clone().negated();
    let stutters = !wrong.has_next();
    let automaton = match Automaton::of(&wrong, limits) {
        Ok(automaton) => automaton,
        Err(limit) => return Ok(unknown(limit)),
    };
    let mut outcome =
        observed(system, &automaton, &asked.propositions, stutters, options, limits, |lasso| {
            confirmed(system, asked, options, limits, steps(&lasso.prefix), steps(&lasso.cycle))
        })?;
    outcome.stats.time = begun.elapsed();
    if let Some(before) = before {
        outcome.stats.states += before.states;
        outcome.stats.transitions += before.transitions;
    }
    Ok(outcome)
}

/// Does the property process accept no run?
pub fn property(system: &System, options: &TemporalOptions, limits: &Limits) -> Result<DveOutcome, Refuted> {
    let Some((automaton, property)) = Automaton::of_property(system).zip(system.property()) else {
        let why = format!("the property process has more than {MOST_PROPOSITIONS} transitions");
        return Ok(unknown(Limit::ProgramSize(why)));
    };
    let guard = |g: &Option<DveExpr>| g.clone().unwrap_or(DveExpr::Number(1));
    let guards: Vec<DveExpr> = property.transitions.iter().map(|t| guard(&t.guard)).collect();
    let begun = Instant::now();
    // Nobody knows whether a property process counts steps.
    let mut outcome = observed(system, &automaton, &guards, false, options, limits, |lasso| {
        let all: Vec<ObservedStep> = [&lasso.prefix[..], &lasso.cycle].concat();
        let moves: Vec<usize> = all.iter().map(|s| s.edge).collect();
        let claim = DveClaim::Property(&moves, lasso.prefix.len());
        Ok(match judged(dve_run(system, &options.memory, &steps(&all), claim, limits))? {
            Ok(run) => Answer::Fails(run),
            Err(limit) => Answer::Unknown(limit),
        })
    })?;
    outcome.stats.time = begun.elapsed();
    Ok(outcome)
}

fn unknown(limit: Limit) -> DveOutcome {
    DveOutcome { answer: Answer::Unknown(limit), stats: Stats::default() }
}

type DveTold = Answer<(), Confirmed<DveRun>>;

/// Searches the model beside an observer, which may not count steps if it `stutters`; what is found is for
/// the judge.
fn observed(
    system: &System,
    automaton: &Automaton,
    propositions: &[DveExpr],
    stutters: bool,
    options: &TemporalOptions,
    limits: &Limits,
    judge: impl FnOnce(FoundLasso<ObservedStep>) -> Result<DveTold, Refuted>,
) -> Result<DveOutcome, Refuted> {
    let machine = DveMachine::observed(system, &options.memory, automaton.states.len());
    let machine = match machine {
        Ok(machine) => machine,
        Err(limit) => return Ok(unknown(limit)),
    };
    let machine = match stutters && options.por {
        true => machine.reduced(system, &options.memory, propositions),
        false => machine,
    };
    let start = machine.start().to_vec();
    let product = match Product::new(system, &machine, automaton, propositions, options.fair, start) {
        Ok(product) => product,
        Err(limit) => return Ok(unknown(limit)),
    };
    let Emptiness { lasso, limit, states, transitions, bytes } = accepting_lasso(&product, limits);
    let stats = Stats {
        states,
        transitions,
        bytes_per_state: bytes as f64 / states.max(1) as f64,
        words: machine.words(),
        workers: 1,
        ..Stats::default()
    };
    let answer = match (machine.undefined(), lasso, limit) {
        (Some(error), ..) => Answer::Unknown(Limit::Undefined(system.show_error(&error))),
        (None, Some(lasso), _) => judge(lasso)?,
        (None, None, Some(limit)) => Answer::Unknown(limit),
        (None, None, None) => Answer::Holds(()),
    };
    Ok(DveOutcome { answer, stats })
}

fn steps(observed: &[ObservedStep]) -> Vec<DveStep> {
    observed.iter().map(|s| s.step).collect()
}

fn confirmed(
    system: &System,
    asked: &TemporalFormula,
    options: &TemporalOptions,
    limits: &Limits,
    mut run: Vec<DveStep>,
    cycle: Vec<DveStep>,
) -> Result<DveTold, Refuted> {
    let cycle_from = run.len();
    run.extend(cycle);
    let TemporalFormula { formula, propositions } = asked;
    let judge = |run: &[DveStep], cycle_from| {
        let claim = DveClaim::Formula(Lasso { formula, propositions, cycle_from, fair: options.fair });
        judged(dve_run(system, &options.memory, run, claim, limits))
    };
    let found = match judge(&run, cycle_from)? {
        Ok(found) => found,
        Err(limit) => return Ok(Answer::Unknown(limit)),
    };
    let turns = rolled(&found);
    if turns == 0 {
        return Ok(Answer::Fails(found));
    }
    run.truncate(run.len() - turns);
    Ok(judge(&run, cycle_from - turns)?.map_or_else(Answer::Unknown, Answer::Fails))
}

/// How many steps earlier the cycle could begin: where the last steps before it are its own last ones.
fn rolled(run: &DveRun) -> usize {
    let (last, from) = (run.steps.len(), run.cycle_from.unwrap_or(0));
    let same = |k: &usize| {
        let (a, b) = (from - k, last - k);
        run.steps[a] == run.steps[b] && run.states[a] == run.states[b]
    };
    (1..=from).take_while(same).count()
}

/// A run to a bad state as a lasso, if there is a way to go on from there.
fn completed(
    system: &System,
    asked: &TemporalFormula,
    options: &TemporalOptions,
    limits: &Limits,
    mut run: Vec<DveStep>,
) -> Result<Option<DveTold>, Refuted> {
    let all = Automaton::all();
    let machine = match DveMachine::observed(system, &options.memory, 1) {
        Ok(machine) => machine,
        Err(limit) => return Ok(Some(Answer::Unknown(limit))),
    };
    let end = walked(&machine, &run);
    let product = match Product::new(system, &machine, &all, &[], options.fair, end) {
        Ok(product) => product,
        Err(limit) => return Ok(Some(Answer::Unknown(limit))),
    };
    let found = accepting_lasso(&product, limits);
    match (found.lasso, found.limit) {
        (Some(lasso), _) => {
            run.extend(steps(&lasso.prefix));
            confirmed(system, asked, options, limits, run, steps(&lasso.cycle)).map(Some)
        }
        (None, Some(limit)) => Ok(Some(Answer::Unknown(limit))),
        (None, None) => Ok(None),
    }
}

/// Where a run leads.
fn walked(machine: &DveMachine, run: &[DveStep]) -> Vec<Value> {
    let (mut at, mut work, mut message) = (machine.start().to_vec(), vec![], vec![]);
    for wanted in run {
        let _ = machine.steps(&at.clone(), &mut work, &mut message, |step, next| match next {
            Ok(vals) if step == *wanted => {
                at.clone_from(vals);
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        });
    }
    at
}

/// A formula about the present state as an expression.
fn present(formula: &Formula, propositions: &[DveExpr]) -> DveExpr {
    let both = |op, a: &Formula, b: &Formula| {
        DveExpr::binary(op, present(a, propositions), present(b, propositions))
    };
    match formula {
        Formula::True => DveExpr::Number(1),
        Formula::False => DveExpr::Number(0),
        Formula::Proposition(p) => propositions[*p].clone(),
        Formula::Not(a) => present(a, propositions).negated(),
        Formula::Binary(connective, a, b) => match connective {
            Connective::And => both(BinOp::And, a, b),
            Connective::Or => both(BinOp::Or, a, b),
            Connective::Implies => {
                DveExpr::binary(BinOp::Or, present(a, propositions).negated(), present(b, propositions))
            }
            Connective::Iff | Connective::Xor => {
                let truth = |f: &Formula| present(f, propositions).negated();
                let op = if *connective == Connective::Iff { BinOp::Eq } else { BinOp::Ne };
                DveExpr::binary(op, truth(a), truth(b))
            }
            _ => unreachable!("the formula is about the present"),
        },
        _ => unreachable!("the formula is about the present"),
    }
}

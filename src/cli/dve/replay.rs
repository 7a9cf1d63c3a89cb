//! `overtake replay` of a DVE model's run: each of its steps is one that the definition offers, and what it is said to
//! show is judged anew.

use super::super::InputArgs;
use super::super::input::DveSource;
use super::super::replay::{Replay, Undone};
use super::super::terminal::Terminal;
use super::{Typed, site, transition};
use crate::certify::{Doubt, DveClaim, dve_run};
use crate::dve::{Configuration, DveStep, Memory, System};
use crate::query::Limits;
use crate::report;
use crate::report::recorded::{Recorded, unlike};
use crate::semantics::dve::steps;
use serde_json::Value;

pub(crate) fn run(
    model: &DveSource,
    answer: &Value,
    run: &Recorded,
    given: &InputArgs,
    limits: &Limits,
    terminal: &Terminal,
) -> Result<Replay, Undone> {
    let system = &model.system;
    let memory = memory(system, answer).map_err(Undone::NoRun)?;
    let mut at = Configuration::initial(system);
    let mut taken = Vec::new();
    for (index, told) in run.events.iter().enumerate() {
        limits.spend(100)?;
        let offered = steps(system, &memory, &at);
        let stutter = offered.is_empty().then(|| (DveStep::Stutter, Ok(at.clone())));
        let mut same = offered.into_iter().chain(stutter);
        let found = same.find(|(step, _)| unlike(told, &report::dve::event(system, step)).is_none());
        let Some((step, next)) = found else {
            return Ok(Replay::DoesNot(Some(index), "no step that is possible here is this one".to_string()));
        };
        taken.push(step);
        match next {
            Ok(next) => at = next,
            Err(_) if index + 1 == run.events.len() => {}
            Err(_) => {
                return Ok(Replay::DoesNot(Some(index + 1), "the step before it goes wrong".to_string()));
            }
        }
    }
    let judged = judged(model, &memory, answer, &taken, given, limits, terminal)?;
    Ok(match judged {
        true => Replay::Replays,
        false => Replay::DoesNot(None, "its end is not what it is said to be".to_string()),
    })
}

/// The memory of the answer, with what was atomic and what was a barrier.
pub(crate) fn memory(system: &System, answer: &Value) -> Result<Memory, String> {
    let all = |name: &str| answer[name].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    match answer["model"].as_str() {
        Some("slots") => {
            let atomic =
                all("atomic").iter().map(|one| site(system, &text(one))).collect::<Result<_, _>>()?;
            let barriers =
                all("barrier").iter().map(|one| transition(system, &text(one))).collect::<Result<_, _>>()?;
            Ok(Memory::Slots { atomic, barriers })
        }
        _ => Ok(Memory::Sc),
    }
}

/// Is the run against what it is said to be against?
fn judged(
    model: &DveSource,
    memory: &Memory,
    answer: &Value,
    taken: &[DveStep],
    given: &InputArgs,
    limits: &Limits,
    terminal: &Terminal,
) -> Result<bool, Undone> {
    let system = &model.system;
    let (against, number) = (&answer["against"], |value: &Value| value.as_u64().map(|n| n as usize));
    let from = number(&answer["cycle_from"]).unwrap_or(usize::MAX);
    let is = |claim: DveClaim| match dve_run(system, memory, taken, claim, limits) {
        Ok(_) => Ok(true),
        Err(Doubt::Limit(limit)) => Err(Undone::Limit(limit)),
        Err(Doubt::Refuted(_)) => Ok(false),
    };
    let text = |name: &str| against[name].as_str().unwrap_or_default();
    let typed = Typed::new(model, given, limits, terminal).map_err(Undone::Shown)?;
    match text("kind") {
        "error" => is(DveClaim::Error),
        "deadlock" => is(DveClaim::Deadlock),
        "forbidden" => {
            let forbidden = typed.expression("RUN.json", text("text")).map_err(Undone::Shown)?;
            is(DveClaim::Forbidden(&forbidden))
        }
        "assertion" => {
            let process = system.processes.iter().position(|p| p.name == text("thread"));
            let known = process.zip(number(&against["assertion"]));
            let known = known.filter(|(p, i)| *i < system.processes[*p].asserts.len());
            known.map_or(Ok(false), |(p, i)| is(DveClaim::Assertion(p, i)))
        }
        // Of formulas and the property process, only that the run comes back to where its cycle begins.
        "lasso" => Ok(returns(model, memory, taken, from)),
        // Such as a run that was explored.
        _ => Ok(true),
    }
}

/// Is the configuration before the step of this number the last one as well?
fn returns(model: &DveSource, memory: &Memory, taken: &[DveStep], from: usize) -> bool {
    let mut at = Configuration::initial(&model.system);
    let mut begin = None;
    for (index, step) in taken.iter().enumerate() {
        if index == from {
            begin = Some(at.clone());
        }
        let next = steps(&model.system, memory, &at).into_iter().find(|(s, _)| s == step);
        at = match next {
            Some((_, Ok(next))) => next,
            _ => at,
        };
    }
    begin == Some(at)
}

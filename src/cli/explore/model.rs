//! What can be done with a DVE model, one step after the other, by its definition.
//!
//! A step is written `2.7` (process 2 takes its transition 7), `2.7-3.1` (a handshake with the other one's), or
//! `f2.4.0` (process 2's value for variable 4, element 0, goes to memory).

use super::super::input::DveSource;
use crate::certify::{DveAgainst, DveRun};
use crate::dve::{Configuration, DveStep, Memory, System};
use crate::limits::Limits;
use crate::machine::dve::DveGoals;
use crate::query::Answer;
use crate::report::document::Block;
use crate::report::{dve, pictures};
use crate::semantics::dve::steps;
use crate::temporal::{TemporalOptions, safety};
use serde_json::{Value, json};
use std::collections::{HashSet, VecDeque};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(5);
const BUG: Duration = Duration::from_secs(60);

pub(super) struct ModelWalked<'a> {
    system: &'a System,
    memory: Memory,
    run: DveRun,
    at: Configuration,
    wrong: Option<String>,
}

fn key(step: &DveStep) -> String {
    match *step {
        DveStep::Internal { process, transition } => format!("{process}.{transition}"),
        DveStep::Handshake { sender: (p, t), receiver: (q, u) } => format!("{p}.{t}-{q}.{u}"),
        DveStep::Flush { process, variable, element } => format!("f{process}.{variable}.{element}"),
        DveStep::Stutter => "s".to_string(),
    }
}

fn memory(model: &str) -> Memory {
    if model == "slots" { Memory::slots() } else { Memory::Sc }
}

impl<'a> ModelWalked<'a> {
    pub(super) fn new(
        source: &'a DveSource,
        model: &str,
        keys: &[String],
    ) -> Result<ModelWalked<'a>, String> {
        let system = &source.system;
        let (memory, mut at, mut taken) = (memory(model), Configuration::initial(system), vec![]);
        let mut states = vec![at.clone()];
        let mut wrong = None;
        for (k, wanted) in keys.iter().enumerate() {
            let found = steps(system, &memory, &at).into_iter().find(|(step, _)| key(step) == *wanted);
            let (step, next) =
                found.filter(|_| wrong.is_none()).ok_or(format!("step {} is not possible", k + 1))?;
            taken.push(step);
            match next {
                Ok(next) => {
                    states.push(next.clone());
                    at = next;
                }
                Err(error) => {
                    wrong = Some(format!("the last step goes wrong: {}", system.show_error(&error)))
                }
            }
        }
        // What it is against is told beside it.
        let run = DveRun { steps: taken, states, cycle_from: None, against: DveAgainst::Deadlock };
        Ok(ModelWalked { system, memory, run, at, wrong })
    }

    fn against(&self) -> Option<String> {
        let failing = || {
            let (p, number) = self.at.failing_assertion(self.system)?;
            let (process, assertion) = (&self.system.processes[p], &self.system.processes[p].asserts[number]);
            let condition = self.system.show_expr(&assertion.condition);
            Some(format!("the assertion of {} in line {} fails: {condition}", process.name, assertion.line))
        };
        self.wrong.clone().or_else(failing)
    }

    fn run(&self) -> Block {
        let [_, table] = dve::run_blocks(self.system, &self.run);
        table
    }

    pub(super) fn view(&self) -> Value {
        let system = self.system;
        let threads = system.processes[..system.active()].iter().enumerate().map(|(p, process)| {
            let lines = || process.transitions.iter().map(|t| t.line).filter(|&line| line > 0);
            let next = process.transitions.iter().filter(|t| t.from == self.at.at[p]).map(|t| t.line);
            let waiting = self.at.slots.iter().filter(|((q, ..), _)| *q == p);
            let waiting = waiting.map(|((_, v, i), value)| json!([system.element_name(*v, *i), value.to_string()]));
            json!({
                "name": process.name, "from": lines().min(), "to": lines().max(), "next": next.collect::<Vec<u32>>(),
                "at": process.states[self.at.at[p]].name, "ended": false, "trapped": false, "registers": [],
                "buffer": waiting.collect::<Value>(),
            })
        });
        let cells = self.at.values.iter().enumerate().flat_map(|(v, elements)| {
            elements
                .iter()
                .enumerate()
                .map(move |(i, value)| json!([system.element_name(v, i), value.to_string()]))
        });
        let offers = steps(system, &self.memory, &self.at).into_iter().filter(|_| self.wrong.is_none());
        let offers = offers.map(|(step, next)| {
            let kind = if matches!(step, DveStep::Flush { .. }) { "flush" } else { "step" };
            let effect = next.map_or_else(|e| format!("goes wrong: {}", system.show_error(&e)), |to| dve::changes(system, &self.at, &to));
            let thread = dve::actor(&step).unwrap_or(0);
            json!({ "key": key(&step), "thread": thread, "text": system.show_step(&step), "effect": effect, "kind": kind })
        });
        json!({
            "threads": threads.collect::<Value>(), "memory": cells.collect::<Value>(), "lock": null,
            "offers": offers.collect::<Value>(), "against": self.against(), "picture": pictures::inline(&self.run()),
        })
    }

    /// Every state that can follow, as far as time allows.
    pub(super) fn still(&self) -> Value {
        if self.against().is_some() {
            return json!({ "answer": "yes", "words": "It has gone wrong already.", "run": [] });
        }
        let limits = Limits::default().with_timeout(PATIENCE);
        let mut seen = HashSet::from([self.at.clone()]);
        let mut open = VecDeque::from([(self.at.clone(), Vec::<String>::new())]);
        while let Some((at, way)) = open.pop_front() {
            for (step, next) in steps(self.system, &self.memory, &at) {
                if let Err(limit) = limits.spend(1_000) {
                    let words = format!("Unknown: {}.", crate::report::limit_reached(&limit));
                    return json!({ "answer": "unknown", "words": words });
                }
                let way: Vec<String> = way.iter().cloned().chain([key(&step)]).collect();
                match next {
                    Ok(next) if next.failing_assertion(self.system).is_none() => {
                        if seen.insert(next.clone()) {
                            open.push_back((next, way));
                        }
                    }
                    _ => {
                        return json!({ "answer": "yes", "words": format!("Yes, in {} more steps.", way.len()), "run": way });
                    }
                }
            }
        }
        json!({ "answer": "no", "words": "No: whatever follows, nothing goes wrong." })
    }

    pub(super) fn answer(&self, file: &str, model: &str) -> Value {
        json!({
            "tool": "overtake", "version": env!("CARGO_PKG_VERSION"), "file": file, "command": "explore",
            "verdict": "explored", "model": model, "reason": self.against().unwrap_or_default(),
            "trace": dve::events(self.system, &self.run),
        })
    }

    pub(super) fn blocks(&self) -> Vec<Block> {
        [self.run()].into_iter().chain(self.against().map(Block::line)).collect()
    }
}

/// A run to an error of the model.
pub(super) fn bug(source: &DveSource, model: &str) -> Value {
    let options = TemporalOptions { memory: memory(model), workers: 1, fair: false, por: true };
    let goals = DveGoals { errors: true, ..DveGoals::default() };
    let limits = Limits::default().with_timeout(BUG);
    match safety::reach(&source.system, &goals, &options, &limits).map(|outcome| outcome.answer) {
        Ok(Answer::Fails(run)) => {
            let keys: Vec<String> = run.steps.iter().map(key).collect();
            json!({ "words": format!("A run of {} steps; go back and forth in it.", keys.len()), "run": keys })
        }
        Ok(Answer::Holds(())) => {
            json!({ "words": "No assertion fails and nothing goes wrong: there is no bug to go to." })
        }
        Ok(Answer::Unknown(limit)) => {
            json!({ "words": format!("Unknown: {}.", crate::report::limit_reached(&limit)) })
        }
        Err(bug) => json!({ "words": format!("A bug in overtake: {bug}") }),
    }
}

//! What is a search of a model's states to find? Errors, assertions that fail, forbidden states, deadlocks.

use super::code::DveCode;
use super::compile::DveTables;
use super::{DveMachine, DveScratch, WRONG};
use crate::dve::{DveExpr, System};
use crate::model::Value;
use crate::reach::Look;
use std::ops::ControlFlow;

/// What counts as found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DveGoals {
    /// Steps that go wrong, and assertions that fail.
    pub errors: bool,
    /// States that satisfy one of these, by what is in memory.
    pub forbidden: Vec<DveExpr>,
    /// States in which nothing can happen.
    pub deadlocks: bool,
}

impl DveGoals {
    /// All expressions whose values the goals depend on.
    pub fn asked(&self, system: &System) -> Vec<DveExpr> {
        let mut all = self.forbidden.clone();
        for (process, p) in system.processes.iter().enumerate().filter(|_| self.errors) {
            for a in &p.asserts {
                all.extend([a.condition.clone(), DveExpr::At { process, state: a.state }]);
            }
        }
        all
    }
}

/// What was found, as the search numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DveGoal {
    Error,
    Deadlock,
    /// Of this process, the assertion of this number.
    Assertion(usize, usize),
    Forbidden(usize),
}

pub(crate) struct Goals {
    errors: bool,
    deadlocks: bool,
    /// Per process and state, assertions by their number.
    asserts: Vec<Vec<Vec<(usize, DveCode)>>>,
    forbidden: Vec<DveCode>,
    /// By number.
    kinds: Vec<DveGoal>,
}

impl Goals {
    pub(crate) fn new(system: &System, tables: &DveTables, goals: &DveGoals) -> Goals {
        let mut kinds = vec![DveGoal::Error, DveGoal::Deadlock];
        let mut asserts = Vec::new();
        for (p, process) in system.processes[..system.active()].iter().enumerate() {
            let mut by_state = vec![vec![]; process.states.len()];
            for (i, a) in process.asserts.iter().enumerate().filter(|_| goals.errors) {
                by_state[a.state].push((kinds.len(), tables.code(system, Some(p), &a.condition)));
                kinds.push(DveGoal::Assertion(p, i));
            }
            asserts.push(by_state);
        }
        let forbidden = goals.forbidden.iter().map(|e| tables.code(system, None, e)).collect();
        kinds.extend((0..goals.forbidden.len()).map(DveGoal::Forbidden));
        Goals { errors: goals.errors, deadlocks: goals.deadlocks, asserts, forbidden, kinds }
    }
}

impl DveMachine {
    /// What a goal of this number is.
    pub fn goal(&self, number: usize) -> DveGoal {
        self.goals.kinds[number]
    }

    fn failing(&self, vals: &[Value]) -> Option<usize> {
        let here = self.goals.asserts.iter().zip(vals).flat_map(|(states, at)| &states[*at as usize]);
        // An assertion without a value fails.
        let fails = |code: &DveCode| !code.holds(vals).unwrap_or(false);
        here.filter(|(_, code)| fails(code)).map(|(number, _)| *number).next()
    }
}

/// Is the state a goal, and which? A deadlock is one that has no step, not even one that goes wrong.
pub(crate) fn look(machine: &DveMachine, scratch: &mut DveScratch, state: &[u64]) -> Look {
    let goals = &machine.goals;
    if state == WRONG {
        return if goals.errors { Look::Goal(0) } else { Look::Rank(0) };
    }
    if !goals.errors && !goals.deadlocks && goals.forbidden.is_empty() {
        return Look::Rank(0);
    }
    let DveScratch { base, work, message, .. } = scratch;
    machine.unpack(state, base);
    if let Some(number) = machine.failing(base) {
        return Look::Goal(number);
    }
    let first = goals.kinds.len() - goals.forbidden.len();
    let mut forbidden = goals.forbidden.iter();
    if let Some(i) = forbidden.position(|code| machine.defined(code.holds(base))) {
        return Look::Goal(first + i);
    }
    if goals.deadlocks && machine.steps(base, work, message, |_, _| ControlFlow::Break(())).is_continue() {
        return Look::Goal(1);
    }
    Look::Rank(0)
}

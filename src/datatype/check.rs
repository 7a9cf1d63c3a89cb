//! Does one test pass under one memory model?
//!
//! A formula of partial runs is asked for errors, for threads that wait for good, and for loops that go round
//! more often than the bound; one of complete runs for an observation that no serial run has. The bound grows
//! until no run exceeds it, unless it is given. What is found is performed by the axioms before anyone sees it.

use super::Calls;
use super::asking::Asking;
use super::outcome::{CheckEnd, DataOptions, DataOutcome, Failure, FailureKind, Size, Spec};
use super::serial::{self, NoSerial, Serial, SerialMemory};
use super::start::{LARGEST_BOUND, edges, endless, filled, initial, plan, ready, serial_failure};
use crate::certify::{self, AllowedExecution, Confirmed, ExecutionClaim};
use crate::model::datatype::{Candidate, DataTest};
use crate::model::{Program, Value};
use crate::query::{Answer, Axioms, Limit, Limits};
use crate::semantics::axioms::{Execution, Setting};
use crate::symbolic::{Encoding, Runs, Solution, Streams};
use std::collections::BTreeSet;

/// What a checker looks at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scope {
    pub bound: u32,
    /// Runs in which a thread goes round more often than the bound count for nothing, whatever goes wrong in them.
    pub within: bool,
    /// Each question says which places for fences are filled; otherwise the options do, once and for all.
    pub open: bool,
}

/// A test with what is known of it under one bound.
pub(super) struct Checker<'a> {
    pub test: &'a DataTest,
    candidates: &'a [Candidate],
    model: Axioms,
    spec: Spec,
    proving: bool,
    limits: &'a Limits,
    pub program: Program,
    memory: SerialMemory,
    pub serial: Serial,
    calls: Calls,
    scope: Scope,
    partial: Asking<'a>,
    complete: Option<Asking<'a>>,
    pub size: Size,
}

/// What a check of a bounded test comes to.
enum TestFound {
    Fails(Box<Failure>),
    Passes,
}

/// Checks a test; the bound grows if none is given.
pub fn check(
    test: &DataTest,
    candidates: &[Candidate],
    options: &DataOptions,
    limits: &Limits,
) -> Result<DataOutcome, String> {
    let mut outcome = DataOutcome {
        answer: Answer::Holds(()),
        observations: 0,
        bound: options.bound.unwrap_or(1),
        bound_is_enough: false,
        serial_blocks: false,
        size: Size::default(),
        answered: 0,
        proved: None,
    };
    loop {
        match attempt(test, candidates, options, limits, &mut outcome) {
            Ok(true) => return Ok(outcome),
            Ok(false) => outcome.bound += 1,
            Err(CheckEnd::Limit(limit)) => {
                outcome.answer = Answer::Unknown(limit);
                return Ok(outcome);
            }
            Err(CheckEnd::Doubt(what)) => return Err(what),
        }
    }
}

/// Whether that settles it.
fn attempt(
    test: &DataTest,
    candidates: &[Candidate],
    options: &DataOptions,
    limits: &Limits,
    outcome: &mut DataOutcome,
) -> Result<bool, CheckEnd> {
    limits.take_note(format!("test {}, bound {}", test.name, outcome.bound));
    let scope = Scope { bound: outcome.bound, within: options.bound.is_some(), open: false };
    let mut checker = match Checker::new(test, candidates, options, scope, limits)? {
        Ok(checker) => checker,
        Err(failure) => {
            outcome.answer = Answer::Fails(failure);
            return Ok(true);
        }
    };
    outcome.observations = checker.serial.observations.len();
    outcome.serial_blocks = checker.serial.blocks;
    let with: Vec<(usize, usize)> = options.with.iter().copied().collect();
    let found = checker.look(&with);
    outcome.size = checker.size;
    outcome.answered = checker.answered();
    if let TestFound::Fails(failure) = found? {
        outcome.answer = Answer::Fails(failure);
        return Ok(true);
    }
    outcome.proved = checker.proved()?;
    outcome.bound_is_enough = !checker.overruns(&with)?;
    if outcome.bound_is_enough || options.bound.is_some() {
        return Ok(true);
    }
    if outcome.bound >= LARGEST_BOUND {
        return Err(CheckEnd::Limit(Limit::Rounds(outcome.bound)));
    }
    Ok(false)
}

/// How large a formula is, and what it is about.
fn size(asking: &Asking<'_>) -> Size {
    let Encoding { streams, cnf, .. } = &asking.encoding;
    Size {
        instructions: streams.threads.iter().map(|s| s.instructions).sum(),
        loads: streams.accesses.iter().filter(|a| a.load.is_some() && !a.ghost).count(),
        stores: streams.accesses.iter().filter(|a| a.store.is_some()).count(),
        nodes: streams.nodes,
        variables: cnf.variables(),
        clauses: cnf.clauses(),
    }
}

impl<'a> Checker<'a> {
    /// The checker, or how the operations fail by themselves.
    pub(super) fn new(
        test: &'a DataTest,
        candidates: &'a [Candidate],
        options: &DataOptions,
        scope: Scope,
        limits: &'a Limits,
    ) -> Result<Result<Checker<'a>, Box<Failure>>, CheckEnd> {
        let (mut program, memory) = match ready(test, scope.bound, limits)? {
            Ok(ready) => ready,
            Err(failure) => return Ok(Err(failure)),
        };
        if !scope.open {
            let with: Vec<(usize, usize)> = options.with.iter().copied().collect();
            program = filled(&program, &test.threads, &with);
        }
        let calls = Calls::of(test);
        let serial = match serial::mine(test, &program, &memory, &calls, limits) {
            Ok(serial) => serial,
            Err(NoSerial::Limit(limit)) => return Err(limit.into()),
            Err(NoSerial::Endless | NoSerial::Fault(_)) => return Err(endless()),
        };
        if let Some(fault) = &serial.fault {
            return Ok(Err(serial_failure(fault.clone(), program)));
        }
        let plan = plan(test, candidates, scope);
        let streams = Streams::new(&program, &plan, Runs::Partial, limits)?;
        let initial = initial(&memory);
        let encoding = Encoding::new(streams, &initial, options.model, options.proving, limits)?;
        let partial = Asking::new(encoding, scope.within)?;
        let size = size(&partial);
        Ok(Ok(Checker {
            test,
            candidates,
            model: options.model,
            spec: options.spec,
            proving: options.proving,
            limits,
            program,
            memory,
            serial,
            calls,
            scope,
            partial,
            complete: None,
            size,
        }))
    }

    /// Questions to the solver that no run answers.
    fn answered(&self) -> usize {
        self.partial.refuted.len() + self.complete.as_ref().map_or(0, |complete| complete.refuted.len())
    }

    /// What to tell the solver of places for fences.
    fn fences(&self, with: &[(usize, usize)]) -> Vec<(usize, usize)> {
        if !self.scope.open {
            return Vec::new();
        }
        let possible = |(place, kind): &&(usize, usize)| self.candidates[*place].kinds.each()[*kind];
        with.iter().filter(possible).copied().collect()
    }

    /// Can a loop go round more often than the bound?
    fn overruns(&mut self, with: &[(usize, usize)]) -> Result<bool, CheckEnd> {
        let fences = self.fences(with);
        let asked = self.partial.overrun;
        Ok(self.partial.ask(&[asked], &fences)?.is_some())
    }

    /// Has the last word that there is nothing been checked?
    fn proved(&mut self) -> Result<Option<bool>, CheckEnd> {
        if !self.proving {
            return Ok(None);
        }
        for asking in std::iter::once(&self.partial).chain(&self.complete) {
            for core in &asking.refuted {
                if asking.encoding.cnf.proved(core, self.limits)? != Some(true) {
                    return Ok(Some(false));
                }
            }
        }
        Ok(Some(true))
    }

    /// Looks for a run that fails, with these fences.
    fn look(&mut self, with: &[(usize, usize)]) -> Result<TestFound, CheckEnd> {
        let fences = self.fences(with);
        if let Some(solution) = self.partial.ask(&[self.partial.deadlock], &fences)? {
            return self.partial_failure(&solution, &fences, false).map(TestFound::Fails);
        }
        if let Some(solution) = self.partial.error(&fences)? {
            return self.partial_failure(&solution, &fences, true).map(TestFound::Fails);
        }
        self.prepare_complete()?;
        let Some(complete) = &mut self.complete else { return Ok(TestFound::Passes) };
        match complete.difference(&fences)? {
            Some(solution) => self.unexplained(&solution, &fences).map(TestFound::Fails),
            None => Ok(TestFound::Passes),
        }
    }

    /// Places of which at least one more is needed, for the run that fails with these fences: as few as the
    /// solver can be brought to say. Nothing if no run fails.
    pub(super) fn core(
        &mut self,
        with: &[(usize, usize)],
        all: &[(usize, usize)],
    ) -> Result<Option<Vec<(usize, usize)>>, CheckEnd> {
        if let TestFound::Passes = self.look(with)? {
            return Ok(None);
        }
        // More and more places are filled, as long as some run still fails.
        let mut filled: Vec<(usize, usize)> = with.to_vec();
        let mut core = Vec::new();
        for place in all.iter().filter(|p| !with.contains(p)) {
            filled.push(*place);
            if !self.fails(&filled)? {
                filled.pop();
                core.push(*place);
            }
        }
        Ok(Some(core))
    }

    fn fails(&mut self, with: &[(usize, usize)]) -> Result<bool, CheckEnd> {
        let fences = self.fences(with);
        let deadlock = self.partial.ask(&[self.partial.deadlock], &fences)?;
        if deadlock.is_some() || self.partial.error(&fences)?.is_some() {
            return Ok(true);
        }
        self.prepare_complete()?;
        match &mut self.complete {
            Some(complete) => Ok(complete.difference(&fences)?.is_some()),
            None => Ok(false),
        }
    }

    /// The formula of complete runs in which something is observed that is not allowed.
    fn prepare_complete(&mut self) -> Result<(), CheckEnd> {
        if self.complete.is_some() {
            return Ok(());
        }
        let plan = plan(self.test, self.candidates, self.scope);
        let streams = Streams::new(&self.program, &plan, Runs::Complete, self.limits)?;
        let initial = initial(&self.memory);
        let encoding = Encoding::new(streams, &initial, self.model, self.proving, self.limits)?;
        let ordered = (self.spec == Spec::Commit).then_some(self.test);
        let complete = Asking::unexplained(encoding, ordered, &self.serial, &self.calls)?;
        self.size = size(&complete);
        self.complete = Some(complete);
        Ok(())
    }

    fn confirmed(
        &self,
        execution: Execution,
        program: &Program,
        claim: ExecutionClaim<'_>,
    ) -> Result<Confirmed<AllowedExecution>, CheckEnd> {
        let (initial, frees) = (initial(&self.memory), edges(self.test, |t| &t.frees));
        let (model, first_cell) = (self.model, self.test.first_cell);
        let setting = Setting { program, model, initial: &initial, first_cell, frees: &frees };
        Ok(certify::execution(&setting, execution, claim)?)
    }

    fn partial_failure(
        &mut self,
        solution: &Solution,
        fences: &[(usize, usize)],
        is_error: bool,
    ) -> Result<Box<Failure>, CheckEnd> {
        let execution = solution.execution(&self.partial.encoding.streams);
        let program = filled(&self.program, &self.test.threads, fences);
        let waits = edges(self.test, |t| &t.waits);
        let (kind, claim) = match is_error {
            true => (FailureKind::Error, ExecutionClaim::Wrong),
            false => (FailureKind::Deadlock, ExecutionClaim::Deadlock { waits: &waits }),
        };
        let run = Some(self.confirmed(execution, &program, claim)?);
        Ok(Box::new(Failure { kind, program, run }))
    }

    fn unexplained(&self, solution: &Solution, fences: &[(usize, usize)]) -> Result<Box<Failure>, CheckEnd> {
        let Some(complete) = &self.complete else { return Err(CheckEnd::Doubt("no formula".to_string())) };
        let execution = solution.execution(&complete.encoding.streams);
        let program = filled(&self.program, &self.test.threads, fences);
        let allowed: BTreeSet<Vec<Value>> = match self.spec {
            Spec::Mined => self.serial.observations.keys().cloned().collect(),
            // An observation can be right for other commit points.
            Spec::Commit => BTreeSet::new(),
        };
        let claim = ExecutionClaim::Unexplained { observed: &self.calls.observed, allowed: &allowed };
        let run = self.confirmed(execution, &program, claim)?;
        let seen = certify::observation(&run.performed, &self.calls.observed);
        let distance = |o: &Vec<Value>| o.iter().zip(&seen).filter(|(a, b)| a != b).count();
        let least = self.serial.observations.keys().map(distance).min().unwrap_or(0);
        let near = self.serial.observations.keys().filter(|o| distance(o) == least);
        let kind = FailureKind::Observation { nearest: near.take(3).cloned().collect(), seen };
        Ok(Box::new(Failure { kind, program, run: Some(run) }))
    }
}

//! Does one test pass under one memory model?
//!
//! A formula of partial runs is asked for errors, for threads that wait for good, and for loops that go round
//! more often than the bound; one of complete runs for an observation that no serial run has. The bound grows
//! until no run exceeds it, unless it is given. What is found is performed by the axioms before anyone sees it.
//! These questions are one algorithm on one solver, and so one file.

use super::Calls;
use super::serial::{self, NoSerial, Serial, SerialFault, SerialMemory};
use crate::certify::{self, AllowedExecution, Confirmed, Doubt, ExecutionClaim};
use crate::model::datatype::{Allocation, Candidate, DataTest, DataThread};
use crate::model::{EdgeId, FenceKinds, Instr, Program, ThreadId, Value};
use crate::query::{Answer, Axioms};
use crate::query::{Limit, Limits};
use crate::semantics::axioms::Setting;
use crate::symbolic::{Encoding, Lit, NoStreams, Plan, Runs, Solution, Streams, copies};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Where the bound stops growing by itself.
const LARGEST_BOUND: u32 = 6;

/// What a run is held against.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spec {
    /// Everything that some serial run gives.
    #[default]
    Mined,
    /// What the serial run in the order of the commit points gives.
    Commit,
}

#[derive(Clone, Debug)]
pub struct DataOptions {
    pub model: Axioms,
    pub spec: Spec,
    /// Rounds of each loop; by default as many as any run needs.
    pub bound: Option<u32>,
    /// Places and kinds of fences that are there.
    pub with: BTreeSet<(usize, usize)>,
    /// Check what the solver says when it finds nothing.
    pub proving: bool,
}

/// How large the question was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    pub instructions: usize,
    pub loads: usize,
    pub stores: usize,
    pub nodes: usize,
    pub variables: usize,
    pub clauses: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The operations go wrong even one after the other.
    Serial(SerialFault),
    /// A thread goes wrong.
    Error,
    /// Threads wait for good.
    Deadlock,
    /// Something is observed that no serial run gives, or none in the order of the commit points; these are the
    /// nearest that one gives.
    Observation { seen: Vec<Value>, nearest: Vec<Vec<Value>> },
}

#[derive(Clone, Debug)]
pub struct Failure {
    pub kind: FailureKind,
    /// The program that the run is one of, with the fences that were there.
    pub program: Program,
    /// None for serial runs, which are shown by their actions.
    pub run: Option<Confirmed<AllowedExecution>>,
}

#[derive(Clone, Debug)]
pub struct DataOutcome {
    pub answer: Answer<(), Box<Failure>>,
    pub observations: usize,
    pub bound: u32,
    /// No run of the test exceeds the bound.
    pub bound_is_enough: bool,
    /// Serial runs that do not end.
    pub serial_blocks: bool,
    pub size: Size,
    /// Has the solver's word that there is nothing been checked?
    pub proved: Option<bool>,
}

/// Why a check has no outcome.
#[derive(Clone, Debug)]
pub(super) enum CheckEnd {
    Limit(Limit),
    /// A claim of ours was refuted.
    Doubt(String),
}

impl From<Limit> for CheckEnd {
    fn from(limit: Limit) -> CheckEnd {
        CheckEnd::Limit(limit)
    }
}

impl From<NoStreams> for CheckEnd {
    fn from(why: NoStreams) -> CheckEnd {
        CheckEnd::Limit(match why {
            NoStreams::Limit(limit) => limit,
            NoStreams::Unsupported(what) => Limit::Inexpressible(what.to_string()),
        })
    }
}

impl From<Doubt> for CheckEnd {
    fn from(doubt: Doubt) -> CheckEnd {
        match doubt {
            Doubt::Limit(limit) => CheckEnd::Limit(limit),
            Doubt::Refuted(refuted) => CheckEnd::Doubt(refuted.to_string()),
        }
    }
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
    pub bound: u32,
    partial: Asking<'a>,
    complete: Option<Asking<'a>>,
    pub size: Size,
}

/// A formula, and the literals that ask it.
struct Asking<'a> {
    encoding: Encoding<'a>,
    error: Lit,
    deadlock: Lit,
    overrun: Lit,
    /// Assumptions under which there was no solution.
    refuted: Vec<Vec<Lit>>,
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
    let mut checker = match Checker::new(test, candidates, options, outcome.bound, limits)? {
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

/// The fences that are there, as edges of the program.
fn filled(program: &Program, threads: &[DataThread], with: &[(usize, usize)]) -> Program {
    let mut parts = program.to_parts();
    for (thread, own) in threads.iter().zip(&mut parts.threads) {
        for (edge, place) in &thread.candidates {
            let here = with.iter().filter(|(p, _)| p == place);
            let kinds = here.fold(FenceKinds::NONE, |kinds, (_, k)| kinds.and(FenceKinds::one(*k)));
            if kinds != FenceKinds::NONE {
                own.edges[edge.index()].instr = Instr::Partial(kinds);
            }
        }
    }
    Program::new(parts).expect("a valid program is valid with fences in place of steps that do nothing")
}

type Ready = (Program, SerialMemory);

/// The program of the test with memory as the preparation leaves it.
fn ready(test: &DataTest, bound: u32, limits: &Limits) -> Result<Result<Ready, Box<Failure>>, CheckEnd> {
    let invalid = |_| CheckEnd::Limit(Limit::ProgramSize("more blocks than memory has room for".to_string()));
    let own = |thread: &DataThread| -> Result<usize, Limit> {
        let counts = copies(&thread.parts, bound, limits)?;
        Ok(thread.allocs.iter().map(|e| counts.get(e).copied().unwrap_or(0)).sum())
    };
    let counts = test.threads.iter().map(own).collect::<Result<Vec<_>, Limit>>()?;
    let needed = match test.heap.allocation {
        Allocation::Fresh => counts.iter().copied().max().unwrap_or(0),
        Allocation::Reuse => counts.iter().sum(),
    };
    let setup = std::slice::from_ref(&test.setup);
    let mut blocks = test.setup.allocs.len().max(1);
    let memory = loop {
        let program = test.program(setup, blocks, None).map_err(invalid)?;
        let again = blocks < 64 * test.setup.allocs.len().max(1);
        match serial::prepare(test, &program, limits) {
            Ok(Some(memory)) => break memory,
            Ok(None) | Err(NoSerial::Fault(_)) if again && !test.setup.allocs.is_empty() => blocks *= 4,
            Ok(None) => {
                let what = "the operations before `;` do not come to their end".to_string();
                return Ok(Err(serial_failure(SerialFault { what, actions: vec![] }, program)));
            }
            Err(NoSerial::Fault(fault)) => return Ok(Err(serial_failure(fault, program))),
            Err(NoSerial::Limit(limit)) => return Err(limit.into()),
            Err(NoSerial::Endless) => return Err(endless()),
        }
    };
    let held = |k: usize| memory.values.get(test.heap.base + k * test.heap.stride) != Some(&0);
    let blocks = match test.heap.allocation {
        Allocation::Fresh => needed.max(blocks),
        Allocation::Reuse => {
            let taken: Vec<usize> = (0..blocks).filter(|k| held(*k)).collect();
            let highest = taken.last().map_or(0, |k| k + 1);
            highest.max(taken.len() + needed).max(1)
        }
    };
    let program = test.program(&test.threads, blocks, Some(&memory.values)).map_err(invalid)?;
    let mut written = memory.written;
    written.resize(program.cells(), false);
    for (cell, written) in written.iter_mut().enumerate() {
        *written |= !test.is_field(cell);
    }
    Ok(Ok((program.clone(), SerialMemory { values: program.initial_memory().to_vec(), written })))
}

/// The test as a program, with the fences that are there; or why it cannot begin.
pub fn written(
    test: &DataTest,
    options: &DataOptions,
    limits: &Limits,
) -> Result<Result<Program, Limit>, String> {
    let with: Vec<(usize, usize)> = options.with.iter().copied().collect();
    match ready(test, options.bound.unwrap_or(LARGEST_BOUND), limits) {
        Ok(Ok((program, _))) => Ok(Ok(filled(&program, &test.threads, &with))),
        Ok(Err(failure)) => match failure.kind {
            FailureKind::Serial(fault) => Err(fault.what),
            _ => Err("the test goes wrong before it begins".to_string()),
        },
        Err(CheckEnd::Limit(limit)) => Ok(Err(limit)),
        Err(CheckEnd::Doubt(what)) => Err(what),
    }
}

fn endless() -> CheckEnd {
    CheckEnd::Limit(Limit::Inexpressible("an operation that does not end when it runs alone".to_string()))
}

fn serial_failure(fault: SerialFault, program: Program) -> Box<Failure> {
    Box::new(Failure { kind: FailureKind::Serial(fault), program, run: None })
}

impl<'a> Checker<'a> {
    /// The checker, or how the operations fail by themselves.
    pub(super) fn new(
        test: &'a DataTest,
        candidates: &'a [Candidate],
        options: &DataOptions,
        bound: u32,
        limits: &'a Limits,
    ) -> Result<Result<Checker<'a>, Box<Failure>>, CheckEnd> {
        let (program, memory) = match ready(test, bound, limits)? {
            Ok(ready) => ready,
            Err(failure) => return Ok(Err(failure)),
        };
        let calls = Calls::of(test);
        let serial = match serial::mine(test, &program, &memory, &calls, limits) {
            Ok(serial) => serial,
            Err(NoSerial::Limit(limit)) => return Err(limit.into()),
            Err(NoSerial::Endless | NoSerial::Fault(_)) => return Err(endless()),
        };
        if let Some(fault) = &serial.fault {
            return Ok(Err(serial_failure(fault.clone(), program)));
        }
        let plan = plan(test, candidates, bound);
        let streams = Streams::new(&program, &plan, Runs::Partial, limits)?;
        let initial = initial(&memory);
        let encoding = Encoding::new(streams, &initial, options.model, options.proving, limits)?;
        let partial = Asking::new(encoding)?;
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
            bound,
            partial,
            complete: None,
            size: Size::default(),
        }))
    }

    fn fences(&self, with: &[(usize, usize)]) -> Vec<(usize, usize)> {
        let possible = |(place, kind): &&(usize, usize)| self.candidates[*place].kinds.each()[*kind];
        with.iter().filter(possible).copied().collect()
    }

    /// Can a loop go round more often than the bound?
    fn overruns(&mut self, with: &[(usize, usize)]) -> Result<bool, CheckEnd> {
        let fences = self.fences(with);
        let asked = self.partial.overrun;
        Ok(asked != Lit::FALSE && self.partial.ask(asked, &fences)?.is_some())
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
        for asked in [self.partial.deadlock, self.partial.error] {
            if asked == Lit::FALSE {
                continue;
            }
            if let Some(solution) = self.partial.ask(asked, &fences)? {
                let is_error = asked == self.partial.error;
                return self.partial_failure(&solution, &fences, is_error).map(TestFound::Fails);
            }
        }
        self.prepare_complete()?;
        let Some(complete) = &mut self.complete else { return Ok(TestFound::Passes) };
        let found = complete.ask(Lit::TRUE, &fences)?;
        self.size.variables = complete.encoding.cnf.variables();
        self.size.clauses = complete.encoding.cnf.clauses();
        match found {
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
        for asked in [self.partial.deadlock, self.partial.error] {
            if asked != Lit::FALSE && self.partial.ask(asked, &fences)?.is_some() {
                return Ok(true);
            }
        }
        self.prepare_complete()?;
        match &mut self.complete {
            Some(complete) => Ok(complete.ask(Lit::TRUE, &fences)?.is_some()),
            None => Ok(false),
        }
    }

    /// The formula of complete runs in which something is observed that is not allowed.
    fn prepare_complete(&mut self) -> Result<(), CheckEnd> {
        if self.complete.is_some() {
            return Ok(());
        }
        let plan = plan(self.test, self.candidates, self.bound);
        let streams = Streams::new(&self.program, &plan, Runs::Complete, self.limits)?;
        self.size.instructions = streams.threads.iter().map(|s| s.instructions).sum();
        self.size.loads = streams.accesses.iter().filter(|a| a.load.is_some()).count();
        self.size.stores = streams.accesses.iter().filter(|a| a.store.is_some()).count();
        self.size.nodes = streams.nodes;
        let initial = initial(&self.memory);
        let encoding = Encoding::new(streams, &initial, self.model, self.proving, self.limits)?;
        let mut asking = Asking {
            encoding,
            error: Lit::FALSE,
            deadlock: Lit::FALSE,
            overrun: Lit::FALSE,
            refuted: vec![],
        };
        let encoding = &mut asking.encoding;
        let ends: Vec<_> = encoding.streams.threads.iter().map(|s| s.ends.clone()).collect();
        for end in &ends {
            let ended = match end {
                Some((guard, _)) => encoding.holds(*guard)?,
                None => Lit::FALSE,
            };
            encoding.cnf.clause(&[ended]);
        }
        let commits = match self.spec {
            Spec::Commit => Some(self.test.commits(encoding)?),
            Spec::Mined => None,
        };
        for (observation, orders) in &self.serial.observations {
            let mut differs = Vec::new();
            for ((t, r), value) in self.calls.observed.iter().zip(observation) {
                if let Some((_, registers)) = &ends[t.index()] {
                    differs.push(!encoding.is(registers[r.index()], *value)?);
                }
            }
            match &commits {
                None => encoding.cnf.clause(&differs),
                Some(commits) => {
                    for order in orders {
                        let mut clause = differs.clone();
                        clause.extend(commits.against(order));
                        encoding.cnf.clause(&clause);
                    }
                }
            }
        }
        self.complete = Some(asking);
        Ok(())
    }

    fn confirmed(
        &self,
        execution: crate::semantics::axioms::Execution,
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

fn edges(test: &DataTest, of: impl Fn(&DataThread) -> &Vec<EdgeId>) -> HashSet<(ThreadId, EdgeId)> {
    let all = test.threads.iter().enumerate();
    all.flat_map(|(t, thread)| of(thread).iter().map(move |e| (ThreadId(t as u16), *e))).collect()
}

fn plan(test: &DataTest, candidates: &[Candidate], bound: u32) -> Plan {
    let mut places = HashMap::new();
    for (t, thread) in test.threads.iter().enumerate() {
        for (edge, place) in &thread.candidates {
            places.insert((ThreadId(t as u16), *edge), (*place, candidates[*place].kinds));
        }
    }
    Plan {
        bound,
        waits: edges(test, |t| &t.waits),
        candidates: places,
        frees: edges(test, |t| &t.frees),
        first_cell: test.first_cell,
    }
}

fn initial(memory: &SerialMemory) -> Vec<Option<Value>> {
    memory.values.iter().zip(&memory.written).map(|(value, written)| written.then_some(*value)).collect()
}

impl<'a> Asking<'a> {
    /// A formula of partial runs.
    fn new(mut encoding: Encoding<'a>) -> Result<Asking<'a>, CheckEnd> {
        let guards: Vec<_> = encoding.streams.errors.iter().map(|e| e.guard).collect();
        let errors = guards.into_iter().map(|g| encoding.holds(g)).collect::<Result<Vec<_>, _>>()?;
        let error = encoding.cnf.any(errors);
        let rounds = encoding.streams.overruns.clone();
        let rounds = rounds.into_iter().map(|g| encoding.holds(g)).collect::<Result<Vec<_>, _>>()?;
        let overrun = encoding.cnf.any(rounds);
        let deadlock = Asking::deadlock(&mut encoding)?;
        Ok(Asking { encoding, error, deadlock, overrun, refuted: vec![] })
    }

    /// All threads have ended or wait for good, and some wait.
    fn deadlock(encoding: &mut Encoding<'a>) -> Result<Lit, CheckEnd> {
        let waits = encoding.streams.waits.clone();
        if waits.is_empty() {
            return Ok(Lit::FALSE);
        }
        let deadlock = encoding.cnf.fresh();
        let mut waiting = Vec::new();
        for wait in &waits {
            let here = encoding.holds(wait.guard)?;
            let both = encoding.cnf.and(deadlock, here);
            encoding.reads_last(both, wait.access)?;
            waiting.push((wait.thread, here));
        }
        for t in 0..encoding.streams.threads.len() {
            let mut done: Vec<Lit> = waiting.iter().filter(|(u, _)| *u == t).map(|(_, l)| *l).collect();
            if let Some((guard, _)) = encoding.streams.threads[t].ends.clone() {
                done.push(encoding.holds(guard)?);
            }
            done.push(!deadlock);
            encoding.cnf.clause(&done);
        }
        let mut some: Vec<Lit> = waiting.iter().map(|(_, l)| *l).collect();
        some.push(!deadlock);
        encoding.cnf.clause(&some);
        Ok(deadlock)
    }

    fn ask(&mut self, asked: Lit, fences: &[(usize, usize)]) -> Result<Option<Solution>, CheckEnd> {
        let mut assumptions = vec![asked];
        assumptions.extend(fences.iter().map(|(place, kind)| self.encoding.place(*place, *kind)));
        match self.encoding.solve(&assumptions)? {
            Ok(solution) => Ok(Some(solution)),
            Err(core) => {
                self.refuted.push(core);
                Ok(None)
            }
        }
    }
}

/// Which operation's commit point comes before which.
struct Commits {
    /// For each thread its calls, by their numbers.
    numbers: Vec<Vec<usize>>,
    before: Vec<Vec<Lit>>,
}

impl Commits {
    /// Literals of which one holds if the commit points are not in this order of threads.
    fn against(&self, order: &[usize]) -> Vec<Lit> {
        let mut next = vec![0; self.numbers.len()];
        let calls: Vec<usize> = order
            .iter()
            .map(|t| {
                next[*t] += 1;
                self.numbers[*t][next[*t] - 1]
            })
            .collect();
        calls.windows(2).map(|pair| !self.before[pair[0]][pair[1]]).collect()
    }
}

impl DataTest {
    fn commits(&self, encoding: &mut Encoding<'_>) -> Result<Commits, CheckEnd> {
        let mut numbers = Vec::new();
        let mut points: Vec<Vec<(usize, Lit)>> = Vec::new();
        for (t, thread) in self.threads.iter().enumerate() {
            let mut own = Vec::new();
            for call in &thread.calls {
                own.push(points.len());
                let accesses = 0..encoding.streams.accesses.len();
                let is_commit = |k: &usize| {
                    let access = &encoding.streams.accesses[*k];
                    access.thread == t && call.commits.contains(&access.edge)
                };
                let own_points: Vec<usize> = accesses.filter(is_commit).collect();
                let mut executed = Vec::new();
                for k in own_points {
                    let guard = encoding.streams.accesses[k].guard;
                    executed.push((k, encoding.holds(guard)?));
                }
                points.push(executed);
            }
            numbers.push(own);
        }
        let count = points.len();
        let mut before = vec![vec![Lit::FALSE; count]; count];
        for a in 0..count {
            for b in (0..count).filter(|b| *b != a) {
                let mut ways = Vec::new();
                for &(x, x_there) in &points[a] {
                    for &(y, y_there) in &points[b] {
                        let order = encoding.access_before(x, y);
                        ways.push(encoding.cnf.all([x_there, y_there, order]));
                    }
                }
                before[a][b] = encoding.cnf.any(ways);
            }
        }
        Ok(Commits { numbers, before })
    }
}

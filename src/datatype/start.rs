//! What does a test start from? Its program, with as many blocks as its runs can take and memory as the operations
//! before `;` leave it.

use super::check::Scope;
use super::outcome::{CheckEnd, DataOptions, Failure, FailureKind};
use super::serial::{self, NoSerial, SerialFault, SerialMemory};
use crate::model::datatype::{Allocation, Candidate, DataTest, DataThread};
use crate::model::{EdgeId, FenceKinds, Instr, Program, ThreadId, Value};
use crate::query::{Limit, Limits};
use crate::symbolic::{Plan, copies};
use std::collections::{HashMap, HashSet};

/// Where the bound stops growing by itself.
pub(super) const LARGEST_BOUND: u32 = 6;

/// The fences that are there, as edges of the program.
pub(super) fn filled(program: &Program, threads: &[DataThread], with: &[(usize, usize)]) -> Program {
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

/// The program, and memory as it is when the threads begin.
pub(super) type Ready = (Program, SerialMemory);

/// The program of the test with memory as the preparation leaves it.
pub(super) fn ready(
    test: &DataTest,
    bound: u32,
    limits: &Limits,
) -> Result<Result<Ready, Box<Failure>>, CheckEnd> {
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

pub(super) fn endless() -> CheckEnd {
    CheckEnd::Limit(Limit::Inexpressible("an operation that does not end when it runs alone".to_string()))
}

pub(super) fn serial_failure(fault: SerialFault, program: Program) -> Box<Failure> {
    Box::new(Failure { kind: FailureKind::Serial(fault), program, run: None })
}

pub(super) fn edges(
    test: &DataTest,
    of: impl Fn(&DataThread) -> &Vec<EdgeId>,
) -> HashSet<(ThreadId, EdgeId)> {
    let all = test.threads.iter().enumerate();
    all.flat_map(|(t, thread)| of(thread).iter().map(move |e| (ThreadId(t as u16), *e))).collect()
}

pub(super) fn plan(test: &DataTest, candidates: &[Candidate], scope: Scope) -> Plan {
    let mut places = HashMap::new();
    for (t, thread) in test.threads.iter().enumerate().filter(|_| scope.open) {
        for (edge, place) in &thread.candidates {
            places.insert((ThreadId(t as u16), *edge), (*place, candidates[*place].kinds));
        }
    }
    Plan {
        bound: scope.bound,
        waits: edges(test, |t| &t.waits),
        candidates: places,
        frees: edges(test, |t| &t.frees),
        first_cell: test.first_cell,
    }
}

pub(super) fn initial(memory: &SerialMemory) -> Vec<Option<Value>> {
    memory.values.iter().zip(&memory.written).map(|(value, written)| written.then_some(*value)).collect()
}

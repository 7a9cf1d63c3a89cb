//! What does a data type do if its operations come one after the other? Every order that keeps each thread's own,
//! performed on plain memory.
//!
//! A block that is free is as good as any other, so the first one is taken. A run that goes wrong, or that reads
//! what nobody has written, is a mistake that has nothing to do with memory models.

use super::Calls;
use crate::model::datatype::{Allocation, DataTest, DataThread};
use crate::model::{Instr, Loc, Program, Reg, ThreadId, Value};
use crate::query::{Action, Event, EventKind, Trap};
use crate::query::{Limit, Limits};
use crate::semantics::{State, sc};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// Steps of one operation; what takes more has a loop without end.
const LONGEST: usize = 20_000;
/// Orders that are remembered one by one.
const MOST_ORDERS: usize = 200_000;

/// Memory, and which cells have been written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SerialMemory {
    pub values: Vec<Value>,
    pub written: Vec<bool>,
}

/// How operations went wrong although nothing ran beside them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SerialFault {
    pub what: String,
    pub actions: Vec<Action>,
}

/// All that serial runs come to.
#[derive(Clone, Debug, Default)]
pub(super) struct Serial {
    /// What can be observed, and for each the orders of threads in which it is.
    pub observations: BTreeMap<Vec<Value>, BTreeSet<Vec<usize>>>,
    pub fault: Option<SerialFault>,
    /// Some order does not come to its end.
    pub blocks: bool,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NoSerial {
    Limit(Limit),
    Fault(SerialFault),
    /// An operation does not end.
    Endless,
}

impl From<Limit> for NoSerial {
    fn from(limit: Limit) -> NoSerial {
        NoSerial::Limit(limit)
    }
}

#[derive(Clone)]
struct Point {
    state: State,
    written: Vec<bool>,
    actions: Vec<Action>,
}

struct Runner<'a> {
    test: &'a DataTest,
    program: &'a Program,
    threads: &'a [DataThread],
    limits: &'a Limits,
}

/// Runs `init` and the initial operations: what memory holds when the test begins. Nothing if they block.
pub(super) fn prepare(
    test: &DataTest,
    program: &Program,
    limits: &Limits,
) -> Result<Option<SerialMemory>, NoSerial> {
    let threads = std::slice::from_ref(&test.setup);
    let runner = Runner { test, program, threads, limits };
    let state = State::initial(program);
    let written: Vec<bool> = (0..state.memory.len()).map(|cell| !test.is_field(cell)).collect();
    let start = Point { state, written, actions: vec![] };
    let ends = runner.until(start, 0, test.setup.parts.end)?;
    Ok(ends.into_iter().next().map(|p| SerialMemory { values: p.state.memory, written: p.written }))
}

/// All serial runs of the test.
pub(super) fn mine(
    test: &DataTest,
    program: &Program,
    memory: &SerialMemory,
    observed: &Calls,
    limits: &Limits,
) -> Result<Serial, NoSerial> {
    let runner = Runner { test, program, threads: &test.threads, limits };
    let mut serial = Serial::default();
    let start = Point { state: State::initial(program), written: memory.written.clone(), actions: vec![] };
    let done = vec![0; test.threads.len()];
    match runner.orders(start, &done, &mut Vec::new(), observed, &mut serial) {
        Err(NoSerial::Fault(fault)) => serial.fault = Some(fault),
        Err(other) => return Err(other),
        Ok(()) => {}
    }
    Ok(serial)
}

impl Runner<'_> {
    fn orders(
        &self,
        point: Point,
        done: &[usize],
        order: &mut Vec<usize>,
        observed: &Calls,
        serial: &mut Serial,
    ) -> Result<(), NoSerial> {
        let mut ended = true;
        for (t, thread) in self.threads.iter().enumerate() {
            if done[t] == thread.calls.len() {
                continue;
            }
            ended = false;
            let border = thread.borders()[done[t] + 1];
            let ends = self.until(point.clone(), t, border)?;
            serial.blocks |= ends.is_empty();
            let mut done = done.to_vec();
            done[t] += 1;
            order.push(t);
            for end in ends {
                self.orders(end, &done, order, observed, serial)?;
            }
            order.pop();
        }
        if ended {
            let value = |(t, r): &(ThreadId, Reg)| point.state.registers[t.index()][r.index()];
            let seen = observed.observed.iter().map(value).collect();
            let orders = serial.observations.entry(seen).or_default();
            if orders.len() < MOST_ORDERS {
                orders.insert(order.clone());
            }
        }
        Ok(())
    }

    /// The thread goes on to this place, in every way that it can.
    fn until(&self, start: Point, t: usize, border: Loc) -> Result<Vec<Point>, NoSerial> {
        let (mut ends, mut todo) = (Vec::new(), vec![(start, 0)]);
        let mut seen: HashSet<State> = HashSet::new();
        while let Some((point, steps)) = todo.pop() {
            self.limits.spend(64 + point.state.memory.len())?;
            if point.state.at[t] == border && (steps > 0 || self.threads[t].calls.is_empty()) {
                if seen.insert(point.state.clone()) {
                    ends.push(point);
                }
                continue;
            }
            if steps > LONGEST {
                return Err(NoSerial::Endless);
            }
            let next = sc::thread_steps(self.program, &point.state, ThreadId(t as u16));
            for step in next.into_iter().filter(|s| self.takes(&point.state, t, &s.event)) {
                let mut actions = point.actions.clone();
                actions.push(step.event.action);
                if let Some(what) = self.fault(&point, t, &step.event) {
                    return Err(NoSerial::Fault(SerialFault { what, actions }));
                }
                let mut written = point.written.clone();
                let writes = step.event.kind == EventKind::Store || step.event.written.is_some();
                if let (true, Some(cell)) = (writes, step.event.address) {
                    written[cell.index()] = true;
                }
                todo.push((Point { state: step.state, written, actions }, steps + 1));
            }
        }
        Ok(ends)
    }

    /// Of all blocks the first free one.
    fn takes(&self, state: &State, t: usize, event: &Event) -> bool {
        let heap = self.test.heap;
        if heap.allocation == Allocation::Fresh || !self.threads[t].allocs.contains(&event.edge) {
            return true;
        }
        let lock = |k: Value| state.memory.get(heap.base + k as usize * heap.stride);
        let is_alloc =
            matches!(self.program.thread(ThreadId(t as u16)).edge(event.edge).instr, Instr::Any { .. });
        match event.value {
            Some(k) if is_alloc => {
                let first = (0..).take_while(|k| lock(*k).is_some()).find(|k| lock(*k) == Some(&0));
                first.is_none_or(|first| first == k)
            }
            _ => true,
        }
    }

    fn fault(&self, point: &Point, t: usize, event: &Event) -> Option<String> {
        match event.trap {
            Some(Trap::Assertion) => return Some("an assertion fails".to_string()),
            Some(Trap::DivisionByZero) => return Some("a division by zero".to_string()),
            Some(Trap::OutOfRange(address)) => {
                return Some(format!("an access outside memory, at {address}"));
            }
            None => {}
        }
        let cell = event.address?;
        if (cell.index() as Value) < self.test.first_cell {
            return Some("an access at null".to_string());
        }
        let reads = matches!(event.kind, EventKind::Load | EventKind::Locked);
        if reads && !point.written[cell.index()] {
            return Some("a field is read that nobody has written".to_string());
        }
        let frees = self.threads[t].frees.contains(&event.edge);
        (frees && point.state.memory[cell.index()] == 0)
            .then(|| "a block is given back that is free".to_string())
    }
}

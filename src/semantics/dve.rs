//! What does a DVE model mean? Its configurations and steps, plainly.
//!
//! A step is a transition of one process, a handshake of two, or, where writes wait in slots `[Havel12]`, the
//! flush of one. Guards are evaluated before anything changes, effects one after the other; in a handshake
//! the receiver's come first. While some process is in a committed state, only transitions from committed
//! states are taken. Whoever goes wrong ends the run. The property process only looks: it moves with every
//! step, by a guard that held before it.

use crate::dve::{
    Assignment, Configuration, Direction, DveError, DveExpr, DveStep, DveTransition, Lvalue, Memory, Sync,
    System,
};
use crate::model::{BinOp, Value};
use std::collections::{BTreeMap, VecDeque};

impl Configuration {
    pub fn initial(system: &System) -> Configuration {
        Configuration {
            at: system.processes.iter().map(|p| p.initial).collect(),
            values: system.variables.iter().map(|v| v.initial.clone()).collect(),
            channels: system.channels.iter().map(|_| VecDeque::new()).collect(),
            slots: BTreeMap::new(),
        }
    }

    /// What an expression is to a process, or, where nobody is named, by what is in memory.
    pub fn value(&self, system: &System, reader: Option<usize>, expr: &DveExpr) -> Result<Value, DveError> {
        Ok(match expr {
            DveExpr::Number(n) => *n,
            &DveExpr::At { process, state } => (self.at[process] == state) as Value,
            DveExpr::Read(place) => {
                let element = self.element(system, reader, place)?;
                let waiting = reader.and_then(|p| self.slots.get(&(p, place.variable, element)));
                waiting.copied().unwrap_or(self.values[place.variable][element])
            }
            DveExpr::Unary(op, a) => op.apply(self.value(system, reader, a)?),
            DveExpr::Binary(op, a, b) => {
                let a = self.value(system, reader, a)?;
                match (op, a != 0) {
                    (BinOp::And, false) => 0,
                    (BinOp::Or, true) => 1,
                    _ => {
                        let b = self.value(system, reader, b)?;
                        op.apply(a, b).map_err(|_| DveError::DivisionByZero)?
                    }
                }
            }
        })
    }

    fn element(&self, system: &System, reader: Option<usize>, place: &Lvalue) -> Result<usize, DveError> {
        let index = place.index.as_ref().map(|index| self.value(system, reader, index)).transpose()?;
        system.element(place, index)
    }

    /// An assertion that fails here: its process, and its number there. One that has no value fails.
    pub fn failing_assertion(&self, system: &System) -> Option<(usize, usize)> {
        let processes = system.processes.iter().enumerate();
        let mut all = processes.flat_map(|(p, process)| {
            let here = process.asserts.iter().enumerate().filter(move |(_, a)| a.state == self.at[p]);
            here.map(move |(number, assertion)| (p, number, assertion))
        });
        let fails = |p, a: &DveExpr| !self.value(system, Some(p), a).is_ok_and(|v| v != 0);
        all.find(|(p, _, a)| fails(*p, &a.condition)).map(|(p, number, _)| (p, number))
    }
}

/// Every step from a configuration, with what it leads to.
pub fn steps(
    system: &System,
    memory: &Memory,
    from: &Configuration,
) -> Vec<(DveStep, Result<Configuration, DveError>)> {
    let machine = DveRules { system, memory, from };
    let mut all = Vec::new();
    for process in 0..system.active() {
        for (transition, t) in machine.offered(process) {
            let step = DveStep::Internal { process, transition };
            match (machine.is_open(process, transition, t), &t.sync) {
                (Ok(false), _) => {}
                (Err(error), _) => all.push((step, Err(error))),
                (Ok(true), Some(sync)) if system.channels[sync.channel].capacity == 0 => {
                    all.extend(machine.handshakes((process, transition), sync));
                }
                (Ok(true), Some(sync)) => {
                    all.extend(machine.buffered(process, transition, sync).map(|to| (step, to)));
                }
                (Ok(true), None) => {
                    let mut to = from.clone();
                    let done = machine.perform(&mut to, process, transition);
                    all.push((step, done.map(|()| to)));
                }
            }
        }
    }
    for (&(process, variable, element), &value) in &from.slots {
        let mut to = from.clone();
        to.slots.remove(&(process, variable, element));
        to.values[variable][element] = value;
        all.push((DveStep::Flush { process, variable, element }, Ok(to)));
    }
    all
}

/// The states that the property process may move to while the system leaves a configuration, by transition.
pub fn property_moves(system: &System, from: &Configuration) -> Vec<(usize, Result<usize, DveError>)> {
    let Some(property) = system.property() else { return vec![] };
    let here = from.at[system.processes.len() - 1];
    let mut all = Vec::new();
    for (number, t) in property.transitions.iter().enumerate().filter(|(_, t)| t.from == here) {
        match t.guard.as_ref().map_or(Ok(1), |guard| from.value(system, None, guard)) {
            Ok(0) => {}
            Ok(_) => all.push((number, Ok(t.to))),
            Err(error) => all.push((number, Err(error))),
        }
    }
    all
}

struct DveRules<'a> {
    system: &'a System,
    memory: &'a Memory,
    from: &'a Configuration,
}

impl<'a> DveRules<'a> {
    /// The transitions of a process from where it is, unless somebody else has to go first.
    fn offered(&self, process: usize) -> impl Iterator<Item = (usize, &'a DveTransition)> {
        let (system, at) = (self.system, self.from.at[process]);
        let committed = |p: usize| system.processes[p].states[self.from.at[p]].committed;
        let hurried = (0..system.active()).any(committed) && !committed(process);
        let all = system.processes[process].transitions.iter().enumerate();
        all.filter(move |(_, t)| t.from == at && !hurried)
    }

    /// Does the guard hold, and has a barrier what it waits for?
    fn is_open(&self, process: usize, transition: usize, t: &DveTransition) -> Result<bool, DveError> {
        let waiting = self.from.slots.keys().any(|(p, ..)| *p == process);
        if waiting && self.memory.is_barrier(process, transition) {
            return Ok(false);
        }
        let holds = |guard| self.from.value(self.system, Some(process), guard);
        Ok(t.guard.as_ref().map_or(Ok(1), holds)? != 0)
    }

    /// All handshakes in which the transition sends.
    fn handshakes(
        &self,
        (p, t): (usize, usize),
        sync: &Sync,
    ) -> Vec<(DveStep, Result<Configuration, DveError>)> {
        let Direction::Send(values) = &sync.direction else { return vec![] };
        let mut all = Vec::new();
        for q in (0..self.system.active()).filter(|&q| q != p) {
            for (u, receiver) in self.offered(q) {
                let Some(Sync { channel, direction: Direction::Receive(places) }) = &receiver.sync else {
                    continue;
                };
                if *channel != sync.channel || self.is_open(q, u, receiver) != Ok(true) {
                    continue;
                }
                let step = DveStep::Handshake { sender: (p, t), receiver: (q, u) };
                all.push((step, self.handshake((p, t, values), (q, u, places), sync.channel)));
            }
        }
        all
    }

    fn handshake(
        &self,
        (p, t, values): (usize, usize, &[DveExpr]),
        (q, u, places): (usize, usize, &[Lvalue]),
        channel: usize,
    ) -> Result<Configuration, DveError> {
        let message = self.message(p, values, channel)?;
        let mut to = self.from.clone();
        for (place, value) in places.iter().zip(message) {
            self.write(&mut to, (q, u), place, value)?;
        }
        self.perform(&mut to, q, u)?;
        self.perform(&mut to, p, t)?;
        Ok(to)
    }

    fn message(&self, sender: usize, values: &[DveExpr], channel: usize) -> Result<Vec<Value>, DveError> {
        let types = self.system.channels[channel].types.as_deref().unwrap_or_default();
        let part = |(i, expr): (usize, &DveExpr)| {
            let value = self.from.value(self.system, Some(sender), expr)?;
            match types.get(i) {
                Some(kind) if !kind.holds(value) => Err(DveError::Message { channel, value }),
                _ => Ok(value),
            }
        };
        values.iter().enumerate().map(part).collect()
    }

    /// A step to or from a channel with room for messages; none if it is full, or empty.
    fn buffered(
        &self,
        process: usize,
        transition: usize,
        sync: &Sync,
    ) -> Option<Result<Configuration, DveError>> {
        let waiting = &self.from.channels[sync.channel];
        let mut to = self.from.clone();
        let synced = match &sync.direction {
            Direction::Send(values) => {
                if waiting.len() == self.system.channels[sync.channel].capacity {
                    return None;
                }
                self.message(process, values, sync.channel).map(|m| to.channels[sync.channel].push_back(m))
            }
            Direction::Receive(places) => {
                let message = to.channels[sync.channel].pop_front()?;
                places
                    .iter()
                    .zip(message)
                    .try_for_each(|(place, value)| self.write(&mut to, (process, transition), place, value))
            }
        };
        Some(synced.and_then(|()| self.perform(&mut to, process, transition)).map(|()| to))
    }

    /// The effects, one after the other; then the process moves.
    fn perform(&self, to: &mut Configuration, process: usize, transition: usize) -> Result<(), DveError> {
        let t = self.system.transition(process, transition);
        for Assignment { target, value } in &t.effects {
            let value = to.value(self.system, Some(process), value)?;
            self.write(to, (process, transition), target, value)?;
        }
        to.at[process] = t.to;
        Ok(())
    }

    fn write(
        &self,
        to: &mut Configuration,
        (process, transition): (usize, usize),
        place: &Lvalue,
        value: Value,
    ) -> Result<(), DveError> {
        let (element, variable) = (to.element(self.system, Some(process), place)?, place.variable);
        if !self.system.variables[variable].kind.holds(value) {
            return Err(DveError::Range { variable, value });
        }
        if self.memory.delays(self.system, process, transition, variable) {
            to.slots.insert((process, variable, element), value);
        } else {
            to.slots.remove(&(process, variable, element));
            to.values[variable][element] = value;
        }
        Ok(())
    }
}

//! Where does each value of a model lie, and what does each transition do to them?
//!
//! The working state is a flat list: the states of the processes, the elements of the variables that are ever
//! written, channels with room (their count, then their messages), and the slots.

use super::code::{DveCode, Storage, Target};
use super::range;
use crate::analysis::interval::Interval;
use crate::dve::{Direction, DveExpr, DveTransition, DveType, Lvalue, Memory, System};
use crate::model::{BinOp, Value};
use std::collections::BTreeSet;

/// One transition, ready to be taken.
#[derive(Clone, Debug)]
pub(crate) struct DveMove {
    pub number: usize,
    pub to: Value,
    pub guard: Option<DveCode>,
    pub sync: Syncing,
    pub effects: Vec<(Target, DveCode)>,
    /// Waits until all slots of its process are empty.
    pub barrier: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Syncing {
    None,
    /// The sender's side of a handshake, with its values.
    Send(usize, Vec<DveCode>),
    Receive(usize, Vec<Target>),
    /// To a channel with room.
    Put(usize, Vec<DveCode>),
    Take(usize, Vec<Target>),
}

/// A channel with room: where its count lies, and behind it so many messages of so many parts.
#[derive(Clone, Debug)]
pub(crate) struct Room {
    pub count: usize,
    pub capacity: usize,
    pub parts: usize,
}

/// A slot that can be filled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    pub process: usize,
    pub variable: usize,
    pub element: usize,
    /// Whether something waits; what waits is the cell behind it.
    pub cell: usize,
    pub memory: usize,
}

pub(crate) struct DveTables {
    pub initial: Vec<Value>,
    pub intervals: Vec<Interval>,
    /// Per process and state.
    pub moves: Vec<Vec<Vec<DveMove>>>,
    /// Per process and state, if there are any at all.
    pub committed: Option<Vec<Vec<bool>>>,
    pub rooms: Vec<Option<Room>>,
    pub types: Vec<Vec<DveType>>,
    pub slots: Vec<Slot>,
    /// Per variable, where its first element lies.
    cells: Vec<usize>,
    /// Per process and variable, where its first slot lies.
    buffers: Vec<Vec<Option<usize>>>,
}

pub(crate) fn tables(system: &System, memory: &Memory) -> DveTables {
    let mut tables = layout(system, memory);
    for process in 0..system.active() {
        let mut by_state = vec![vec![]; system.processes[process].states.len()];
        for (number, t) in system.processes[process].transitions.iter().enumerate() {
            by_state[t.from].push(tables.compiled(system, memory, process, number, t));
        }
        tables.moves.push(by_state);
    }
    tables
}

fn layout(system: &System, memory: &Memory) -> DveTables {
    let ranges = range::ranges(system);
    let (mut initial, mut intervals): (Vec<Value>, Vec<Interval>) = (vec![], vec![]);
    let mut cell = |value: Value, interval: Interval| {
        initial.push(value);
        intervals.push(interval);
        initial.len() - 1
    };
    for p in &system.processes[..system.active()] {
        cell(p.initial as Value, Interval { lo: 0, hi: p.states.len() as Value - 1 });
    }
    let mut cells = Vec::new();
    for (v, range) in system.variables.iter().zip(&ranges) {
        let all: Vec<usize> = v.initial.iter().map(|value| cell(*value, *range)).collect();
        cells.push(all[0]);
    }
    let mut rooms = Vec::new();
    for channel in &system.channels {
        let types = channel.types.as_deref().unwrap_or_default();
        rooms.push((channel.capacity > 0).then(|| {
            let count = cell(0, Interval { lo: 0, hi: channel.capacity as Value });
            for kind in (0..channel.capacity).flat_map(|_| types) {
                // What is gone is 0.
                let (lo, hi) = kind.range();
                cell(0, Interval { lo, hi });
            }
            Room { count, capacity: channel.capacity, parts: types.len() }
        }));
    }
    let mut buffers = vec![vec![None; system.variables.len()]; system.active()];
    let mut slots = Vec::new();
    if !memory.is_sc() {
        let written: BTreeSet<(usize, usize)> =
            system.sites().into_iter().map(|s| (s.process, s.variable)).collect();
        for (process, variable) in written {
            let waiting = ranges[variable].join(Interval::constant(0));
            for element in 0..system.variables[variable].initial.len() {
                let at = cell(0, Interval::BOOL);
                cell(0, waiting);
                slots.push(Slot { process, variable, element, cell: at, memory: cells[variable] + element });
                buffers[process][variable].get_or_insert(at);
            }
        }
    }
    let committed = |p: usize| system.processes[p].states.iter().map(|s| s.committed).collect::<Vec<_>>();
    let committed: Vec<Vec<bool>> = (0..system.active()).map(committed).collect();
    DveTables {
        initial,
        intervals,
        moves: vec![],
        committed: committed.iter().flatten().any(|c| *c).then_some(committed),
        rooms,
        types: system.channels.iter().map(|c| c.types.clone().unwrap_or_default()).collect(),
        slots,
        cells,
        buffers,
    }
}

impl DveTables {
    fn compiled(
        &self,
        system: &System,
        memory: &Memory,
        process: usize,
        number: usize,
        t: &DveTransition,
    ) -> DveMove {
        let code = |e: &DveExpr| self.code(system, Some(process), e);
        let target = |place: &Lvalue| Target {
            storage: self.storage(system, Some(process), place.variable),
            index: place.index.as_ref().map(|index| code(index)),
            range: system.variables[place.variable].kind.range(),
            delayed: memory.delays(system, process, number, place.variable),
        };
        let sync = match t.sync.as_ref().map(|s| (s.channel, &s.direction)) {
            None => Syncing::None,
            Some((c, direction)) => match (direction, self.rooms[c].is_some()) {
                (Direction::Send(values), false) => Syncing::Send(c, values.iter().map(code).collect()),
                (Direction::Send(values), true) => Syncing::Put(c, values.iter().map(code).collect()),
                (Direction::Receive(to), false) => Syncing::Receive(c, to.iter().map(target).collect()),
                (Direction::Receive(to), true) => Syncing::Take(c, to.iter().map(target).collect()),
            },
        };
        DveMove {
            number,
            to: t.to as Value,
            guard: t.guard.as_ref().map(code),
            sync,
            effects: t.effects.iter().map(|e| (target(&e.target), code(&e.value))).collect(),
            barrier: memory.is_barrier(process, number),
        }
    }

    fn storage(&self, system: &System, reader: Option<usize>, variable: usize) -> Storage {
        Storage {
            variable,
            memory: self.cells[variable],
            size: system.variables[variable].initial.len(),
            slots: reader.and_then(|p| self.buffers[p][variable]),
        }
    }

    /// An expression as a process reads it or, where nobody is named, by what is in memory.
    pub(crate) fn code(&self, system: &System, reader: Option<usize>, expr: &DveExpr) -> DveCode {
        let boxed = |e: &DveExpr| Box::new(self.code(system, reader, e));
        match expr {
            DveExpr::Number(n) => DveCode::Number(*n),
            &DveExpr::At { process, state } => DveCode::Is(process, state as Value),
            DveExpr::Read(place) => {
                let storage = self.storage(system, reader, place.variable);
                match &place.index {
                    Some(index) => DveCode::Element(storage, boxed(index)),
                    None if storage.slots.is_none() => DveCode::Cell(storage.memory),
                    None => DveCode::Read(storage),
                }
            }
            DveExpr::Unary(op, a) => DveCode::Unary(*op, boxed(a)),
            DveExpr::Binary(BinOp::And, a, b) => DveCode::And(boxed(a), boxed(b)),
            DveExpr::Binary(BinOp::Or, a, b) => DveCode::Or(boxed(a), boxed(b)),
            DveExpr::Binary(op, a, b) => DveCode::Binary(*op, boxed(a), boxed(b)),
        }
    }
}

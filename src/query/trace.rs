//! What happened? Scheduling decisions, the events they lead to, and runs made of them.
//!
//! A sequence of [`Action`]s determines a run; its [`Event`]s say what a reader wants to know about each
//! step. Which runs count as evidence, and for what, is in `evidence`.

use crate::model::{Addr, EdgeId, Instr, ThreadId, Value};
use std::collections::HashMap;

/// One way a thread can go wrong by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Trap {
    Assertion,
    DivisionByZero,
    OutOfRange(Value),
}

/// One scheduling decision: which thread does what. A sequence of them determines a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Action {
    pub thread: ThreadId,
    pub act: Act,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Act {
    /// The thread takes this edge; `choice` is the value that an `any` picks.
    Step { edge: EdgeId, choice: Option<Value> },
    /// The oldest store in the thread's buffer goes to memory.
    Flush,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    Load,
    Store,
    Flush,
    Fence,
    /// A fence for all threads.
    Membarrier,
    Assign,
    Assume,
    Locked,
}

impl EventKind {
    pub fn of(instr: &Instr) -> EventKind {
        match instr {
            Instr::Load { .. } => EventKind::Load,
            Instr::Store { .. } => EventKind::Store,
            instr if instr.is_fence() => EventKind::Fence,
            Instr::Membarrier => EventKind::Membarrier,
            Instr::Assign { .. } | Instr::Any { .. } => EventKind::Assign,
            Instr::Assume(_) | Instr::Assert(_) | Instr::Nop => EventKind::Assume,
            Instr::Fence | Instr::Partial(_) => EventKind::Assume,
            Instr::Rmw { .. } | Instr::Lock | Instr::Unlock => EventKind::Locked,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            EventKind::Load => "load",
            EventKind::Store => "store",
            EventKind::Flush => "flush",
            EventKind::Fence => "fence",
            EventKind::Membarrier => "membarrier",
            EventKind::Assign => "assign",
            EventKind::Assume => "assume",
            EventKind::Locked => "locked",
        }
    }
}

/// Where a load's value came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    Memory,
    /// The own buffered store that is this event of the trace.
    Buffer(usize),
    /// Each byte the newest own buffered store that has it, or else memory: more than one of these.
    Merged,
}

/// One step of a run, with everything a reader wants to know about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub action: Action,
    pub kind: EventKind,
    /// The edge of the instruction; for a flush, that of its store.
    pub edge: EdgeId,
    pub address: Option<Addr>,
    /// The value read by a load or locked instruction, stored by a store, flushed, or assigned.
    pub value: Option<Value>,
    /// What a locked instruction left in memory.
    pub written: Option<Value>,
    pub source: Option<Source>,
    /// For a flush, the event of its store.
    pub store: Option<usize>,
    pub trap: Option<Trap>,
}

impl Event {
    pub fn thread(&self) -> ThreadId {
        self.action.thread
    }
}

/// The stores that a load of their own thread overtook, each with the last such load: one that found its
/// value in memory, or in an older store, while the store was waiting.
pub fn delays(events: &[Event]) -> Vec<(usize, usize)> {
    let mut flushed = vec![events.len(); events.len()];
    let mut loads: HashMap<ThreadId, Vec<usize>> = HashMap::new();
    for (k, event) in events.iter().enumerate() {
        if let Some(store) = event.store {
            flushed[store] = k;
        }
        if event.kind == EventKind::Load && event.source.is_some() {
            loads.entry(event.thread()).or_default().push(k);
        }
    }
    let overtaker = |store: usize| {
        let own = loads.get(&events[store].thread())?;
        let passes = |load: usize| match events[load].source {
            Some(Source::Buffer(older)) => older < store,
            _ => true,
        };
        let waiting = &own[..own.partition_point(|&load| load < flushed[store])];
        waiting.iter().rev().copied().take_while(|&load| load > store).find(|&load| passes(load))
    };
    let stores = (0..events.len()).filter(|&k| events[k].kind == EventKind::Store);
    stores.filter_map(|store| Some((store, overtaker(store)?))).collect()
}

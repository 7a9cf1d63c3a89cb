//! Total store order: a FIFO buffer per thread between it and memory (`[LazyTSO15]`, Figure 2;
//! `[Owens09]` is where x86 gets it from).
//!
//! (ST) a store appends to the own buffer; (MEM) the oldest entry goes to memory at any time; (LB) a load
//! takes the newest matching entry of the own buffer, (LM) else memory, byte by byte where sizes are mixed; (F) a
//! fence needs the own buffer empty, and a `membarrier` those of all threads. Locked instructions need the own
//! buffer empty and act on memory directly. While a `lock` … `unlock`
//! block is held, no other thread reads memory or flushes.

use super::{Pending, State, Step, choices, decided, edges, local_step, modified, sc, step};
use crate::model::{Addr, Bytes, Edge, EdgeId, Instr, Program, ThreadId, Value};
use crate::query::{Act, Action, Event, EventKind, Source};
use std::collections::VecDeque;

/// How long a buffer may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    Unbounded,
    Entries(usize),
}

impl Bound {
    pub fn allows(self, entries: usize) -> bool {
        match self {
            Bound::Unbounded => true,
            Bound::Entries(most) => entries <= most,
        }
    }
}

/// Everything that can happen in the state, and whether the bound kept a store from happening.
pub fn steps(program: &Program, state: &State, bound: Bound) -> (Vec<Step>, bool) {
    let mut all: Vec<Step> = program.thread_ids().flat_map(|t| thread_steps(program, state, t)).collect();
    let before = all.len();
    all.retain(|s| bound.allows(s.state.buffers[s.event.thread().index()].len()));
    let kept = all.len() < before;
    (all, kept)
}

/// Everything that one thread and its buffer can do.
pub fn thread_steps(program: &Program, state: &State, t: ThreadId) -> Vec<Step> {
    let all = edges(program, state, t).into_iter().flat_map(|(id, edge)| {
        choices(&edge.instr).filter_map(move |c| edge_step(program, state, t, (id, edge), c))
    });
    all.chain(flush(state, t)).collect()
}

/// What comes of a decision; nothing if it cannot be taken.
pub fn decide(program: &Program, state: &State, Action { thread, act }: Action) -> Option<Step> {
    match act {
        Act::Flush => flush(state, thread),
        Act::Step { edge, choice } => {
            edge_step(program, state, thread, decided(program, state, thread, edge, choice)?, choice)
        }
    }
}

fn edge_step(
    program: &Program,
    state: &State,
    t: ThreadId,
    (id, edge): (EdgeId, &Edge),
    choice: Option<Value>,
) -> Option<Step> {
    if let Some(step) = local_step(program, state, t, (id, edge), choice) {
        return step;
    }
    let own = &state.buffers[t.index()];
    let free = own.is_empty() && !state.held_up(t);
    let mut next = step(state, t, id, edge, None);
    match &edge.instr {
        // (ST)
        Instr::Store { addr, value, bytes } => {
            let addr = sc::cell(program, state, t, addr);
            let value = state.eval(t, value).expect("an expression that divides by zero has trapped");
            let (value, bytes) = (bytes.of(value), *bytes);
            next.state.buffers[t.index()].push_back(Pending { addr, value, bytes, edge: id });
            next.event.address = Some(addr);
            next.event.value = Some(value);
        }
        Instr::Load { dst, addr, bytes } => {
            let cell = sc::cell(program, state, t, addr);
            let Forwarded { value, missing, from } = forwarded(own, cell, *bytes);
            // (LM)
            if !missing.is_empty() && state.held_up(t) {
                return None;
            }
            next.set(t, *dst, value | missing.of(state.memory[cell.index()]));
            next.event.address = Some(cell);
            next.event.source = Some(match from[..] {
                [] => Source::Memory,
                // (LB); `replay` turns the place in the buffer into the event of the store.
                [i] if missing.is_empty() => Source::Buffer(i),
                _ => Source::Merged,
            });
        }
        // (F)
        Instr::Fence | Instr::Partial(_) if own.is_empty() => {}
        // All buffers go to memory in one step, which is as if one flush came after the other, and then this.
        Instr::Membarrier if state.buffers.iter().all(VecDeque::is_empty) => {}
        Instr::Rmw { dst, addr, op } if free => {
            sc::read(program, &mut next, state, t, *dst, addr, Bytes::WHOLE);
            let cell = sc::cell(program, state, t, addr);
            let new = modified(&state.registers[t.index()], *dst, op, state.memory[cell.index()]);
            next.state.memory[cell.index()] = new;
            next.event.written = Some(new);
        }
        Instr::Lock if free && state.lock.is_none() => next.state.lock = Some(t),
        Instr::Unlock if own.is_empty() && state.lock == Some(t) => next.state.lock = None,
        Instr::Fence
        | Instr::Partial(_)
        | Instr::Membarrier
        | Instr::Rmw { .. }
        | Instr::Lock
        | Instr::Unlock => return None,
        _ => unreachable!("local instructions were handled above"),
    }
    Some(next)
}

/// What a load finds in its thread's own buffer.
struct Forwarded {
    value: Value,
    /// The bytes that are not there.
    missing: Bytes,
    /// The places of the stores that have some, the newest first.
    from: Vec<usize>,
}

/// Each byte comes from the newest store that has it.
fn forwarded(own: &VecDeque<Pending>, cell: Addr, bytes: Bytes) -> Forwarded {
    let mut found = Forwarded { value: 0, missing: bytes, from: Vec::new() };
    for (i, store) in own.iter().enumerate().rev().filter(|(_, store)| store.addr == cell) {
        let taken = found.missing.and(store.bytes);
        if !taken.is_empty() {
            found.value |= taken.of(store.value);
            found.missing = found.missing.without(taken);
            found.from.push(i);
        }
    }
    found
}

/// (MEM)
fn flush(state: &State, t: ThreadId) -> Option<Step> {
    if state.held_up(t) {
        return None;
    }
    let mut state = state.clone();
    let Pending { addr, value, bytes, edge } = state.buffers[t.index()].pop_front()?;
    let held = &mut state.memory[addr.index()];
    *held = bytes.put(*held, value);
    let event = Event {
        action: Action { thread: t, act: Act::Flush },
        kind: EventKind::Flush,
        edge,
        address: Some(addr),
        value: Some(value),
        written: None,
        source: None,
        store: None,
        trap: None,
    };
    Some(Step { event, state })
}

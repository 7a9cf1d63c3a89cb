//! Sequential consistency `[Lamport79]`: every instruction acts on memory at once (`[LazyTSO15]`, Section 2).

use super::{State, Step, choices, decided, edges, local_step, modified, step};
use crate::model::{Addr, Bytes, Edge, EdgeId, Instr, Program, RegExpr, ThreadId, Value};
use crate::query::{Act, Action, Source};

/// Everything that can happen in the state.
pub fn steps(program: &Program, state: &State) -> Vec<Step> {
    program.thread_ids().flat_map(|t| thread_steps(program, state, t)).collect()
}

/// Everything that one thread can do. A thread that has gone wrong does nothing more.
pub fn thread_steps(program: &Program, state: &State, t: ThreadId) -> Vec<Step> {
    let all = edges(program, state, t).into_iter().flat_map(|(id, edge)| {
        choices(&edge.instr).filter_map(move |c| edge_step(program, state, t, (id, edge), c))
    });
    all.collect()
}

/// What comes of a decision; nothing if it cannot be taken.
pub fn decide(program: &Program, state: &State, Action { thread, act }: Action) -> Option<Step> {
    let Act::Step { edge, choice } = act else { return None };
    edge_step(program, state, thread, decided(program, state, thread, edge, choice)?, choice)
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
    if state.held_up(t) && !edge.instr.is_fence() && edge.instr != Instr::Membarrier {
        return None;
    }
    let mut next = step(state, t, id, edge, None);
    match &edge.instr {
        Instr::Load { dst, addr, bytes } => read(program, &mut next, state, t, *dst, addr, *bytes),
        Instr::Store { addr, value, bytes } => {
            let cell = cell(program, state, t, addr);
            let value = state.eval(t, value).expect("an expression that divides by zero has trapped");
            let held = &mut next.state.memory[cell.index()];
            *held = bytes.put(*held, value);
            next.event.address = Some(cell);
            next.event.value = Some(bytes.of(value));
        }
        Instr::Rmw { dst, addr, op } => {
            read(program, &mut next, state, t, *dst, addr, Bytes::WHOLE);
            let cell = cell(program, state, t, addr);
            let new = modified(&state.registers[t.index()], *dst, op, state.memory[cell.index()]);
            next.state.memory[cell.index()] = new;
            next.event.written = Some(new);
        }
        Instr::Lock if state.lock.is_none() => next.state.lock = Some(t),
        Instr::Unlock if state.lock == Some(t) => next.state.lock = None,
        Instr::Lock | Instr::Unlock => return None,
        Instr::Fence | Instr::Partial(_) | Instr::Membarrier => {}
        _ => unreachable!("local instructions were handled above"),
    }
    Some(next)
}

/// The register gets what these bytes of memory hold.
pub(super) fn read(
    program: &Program,
    next: &mut Step,
    state: &State,
    t: ThreadId,
    dst: crate::model::Reg,
    addr: &RegExpr,
    bytes: Bytes,
) {
    let cell = cell(program, state, t, addr);
    next.set(t, dst, bytes.of(state.memory[cell.index()]));
    next.event.address = Some(cell);
    next.event.source = Some(Source::Memory);
}

pub(super) fn cell(program: &Program, state: &State, t: ThreadId, addr: &RegExpr) -> Addr {
    let address = state.eval(t, addr).expect("an expression that divides by zero has trapped");
    program.cell(address).expect("an access outside memory has trapped")
}

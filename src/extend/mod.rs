//! Which larger program does under SC what this one does under TSO when it delays the stores of a path?
//!
//! The extension R ⊕ σ of `[LazyTSO15]`, Section 3: along σ, from a store to a load, stores are *issued* into
//! auxiliary registers instead of memory, loads look there first, and the stores reach memory when the path
//! is over or left. `Exact` is the paper's construction: the program reaches the same goal states under TSO
//! as before, and the first store of σ can no longer be delayed past σ's last load other than by the
//! emulation. `Additive` is the form of its Section 5: everything of the old program stays and the path is
//! added. Corrections to the paper: buffered stores are compared newest first; a path may also be returned
//! from where it may block and where the goal looks, not before loads alone.
//!
//! Every edge of an extended program carries its origin in the user's program, also after several extensions;
//! `project` turns a run of the one into a run of the other with it. Invariant: locations, registers and
//! edges of the old program keep their numbers. Not here: which path to take, which the oracle knows, and
//! what is then reachable. `emulate` builds the thread, `goal` says what the goal means in it.

mod emulate;
mod goal;
#[cfg(test)]
mod tests;

use crate::model::{EdgeId, Instr, Invalid, MAX_REGISTERS, Origin, Program, Thread, ThreadId};
use crate::query::{Act, Action, Goal, Limit, Limits};
use emulate::Emulation;
use thiserror::Error;

/// A walk in a thread's graph from a store to a load that overtakes it, with nothing on it that waits for the
/// buffer. It may pass an edge several times.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DelayedPath {
    pub thread: ThreadId,
    pub edges: Vec<EdgeId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// The path's first store is replaced; the goal is TSO-reachable as before.
    Exact,
    /// The path is added; under TSO nothing is gained or lost, under SC only this delay is gained.
    Additive,
}

#[derive(Clone, Debug)]
pub struct Extended {
    pub program: Program,
    /// The goal in the extended program.
    pub goal: Goal,
}

/// Why there is no extension.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refused {
    #[error("the path is in thread {0}, which the program does not have")]
    NoSuchThread(u16),
    #[error("step {0} of the path is an edge that the thread does not have")]
    NoSuchEdge(usize),
    #[error("the path does not go from a store to a load")]
    Ends,
    #[error("step {0} of the path does not begin where the step before it ends")]
    Gap(usize),
    #[error("step {0} of the path waits for the buffer")]
    Barrier(usize),
    #[error("thread `{0}` would need more than {MAX_REGISTERS} registers to hold delayed stores")]
    TooManyRegisters(String),
    #[error("with the delayed path, {0}")]
    Invalid(Invalid),
    #[error("a limit was reached")]
    Limit(Limit),
}

impl From<Limit> for Refused {
    fn from(limit: Limit) -> Refused {
        Refused::Limit(limit)
    }
}

/// What it costs to copy an edge, in steps.
const COPY: usize = 16;

/// The program that emulates, under SC, the delay of the path's stores under TSO; and the goal in it.
pub fn extend(
    program: &Program,
    goal: &Goal,
    path: &DelayedPath,
    form: Form,
    limits: &Limits,
) -> Result<Extended, Refused> {
    check(program, path)?;
    let edges = program.threads().iter().map(|t| t.graph().edge_count());
    limits.spend(COPY * edges.sum::<usize>())?;
    let mut parts = program.to_parts();
    for (t, thread) in program.thread_ids().zip(&mut parts.threads) {
        for (i, edge) in thread.edges.iter_mut().enumerate() {
            edge.origin = Some(origin(program.thread(t), EdgeId(i as u32)));
        }
    }
    let thread = parts.threads[path.thread.index()].clone();
    let emulation = Emulation::of(program, goal, path, form, thread, limits)?;
    let goal = goal::translate(goal, path.thread, &emulation.places);
    parts.threads[path.thread.index()] = emulation.thread;
    let first = |mut wrong: Vec<Invalid>| Refused::Invalid(wrong.swap_remove(0));
    Ok(Extended { program: Program::new(parts).map_err(first)?, goal })
}

fn check(program: &Program, path: &DelayedPath) -> Result<(), Refused> {
    let thread = program.threads().get(path.thread.index());
    let thread = thread.ok_or(Refused::NoSuchThread(path.thread.0))?;
    let edges = thread.graph().edge_count();
    if let Some(i) = path.edges.iter().position(|e| e.index() >= edges) {
        return Err(Refused::NoSuchEdge(i));
    }
    let steps: Vec<_> = path.edges.iter().map(|e| thread.edge(*e)).collect();
    let ends = (steps.first().map(|e| &e.instr), steps.last().map(|e| &e.instr));
    if !matches!(ends, (Some(Instr::Store { .. }), Some(Instr::Load { .. }))) {
        return Err(Refused::Ends);
    }
    if let Some(i) = steps.windows(2).position(|w| w[0].to != w[1].from) {
        return Err(Refused::Gap(i + 1));
    }
    if let Some(i) = steps.iter().position(|e| e.instr.drains_buffer()) {
        return Err(Refused::Barrier(i));
    }
    // At most an address and a value for each store, and one register for the way back.
    let stores = steps.iter().filter(|e| matches!(e.instr, Instr::Store { .. })).count();
    if thread.registers().len() + 2 * stores + 1 > MAX_REGISTERS {
        return Err(Refused::TooManyRegisters(thread.name().to_string()));
    }
    Ok(())
}

/// What an edge stands for in the user's program; in that program itself, each for itself.
fn origin(thread: &Thread, id: EdgeId) -> Origin {
    thread.edge(id).origin.unwrap_or(Origin::Whole(id))
}

/// The run of the user's program under TSO that an SC run of an extended program emulates. At the end, what
/// is still issued is flushed.
pub fn project(program: &Program, actions: &[Action]) -> Vec<Action> {
    let mut run = Vec::new();
    let mut issued = vec![0usize; program.threads().len()];
    let mut owner = None;
    for &Action { thread: t, act } in actions {
        // Under SC nothing waits in a buffer.
        let Act::Step { edge, choice } = act else { continue };
        let step = |edge| Action { thread: t, act: Act::Step { edge, choice } };
        let instr = &program.thread(t).edge(edge).instr;
        match origin(program.thread(t), edge) {
            Origin::Whole(e) if matches!(instr, Instr::Store { .. }) => run.extend([step(e), flush(t)]),
            Origin::Whole(e) => run.push(step(e)),
            Origin::Issue(e) => {
                run.push(step(e));
                issued[t.index()] += 1;
            }
            Origin::Flush(_) => {
                run.push(flush(t));
                issued[t.index()] -= 1;
            }
            Origin::Nothing => {}
        }
        match instr {
            Instr::Lock => owner = Some(t),
            Instr::Unlock => owner = None,
            _ => {}
        }
    }
    // Inside a block only its own thread can flush; the other buffers are frozen and count as they are.
    let rest = program.thread_ids().filter(|t| Some(*t) != owner);
    for t in owner.into_iter().chain(rest) {
        run.extend(std::iter::repeat_n(flush(t), issued[t.index()]));
    }
    run
}

fn flush(thread: ThreadId) -> Action {
    Action { thread, act: Act::Flush }
}

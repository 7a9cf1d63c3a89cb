//! What do programs mean? The two memory models as definitions, and what it is to be a computation.
//!
//! Plain code beside the papers' rules, for reading and for judging what the fast engines claim; nothing here
//! is fast. `sc` and `tso` give the steps of a state, `replay` walks a sequence of events. The parts that
//! do not depend on the memory model (states, local instructions, goals) are in this file.
//! Not here: searching. Who explores states is `reach`.

pub mod replay;
pub mod sc;
pub mod tso;

use crate::model::{Addr, Atom, DivisionByZero, Edge, EdgeId, Instr, Loc, Program, RegExpr, ThreadId, Value};
use crate::verdict::{Act, Action, Against, Event, Goal, Kind, Trap, at, clause_holds};
use std::collections::VecDeque;

/// A store on its way to memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pending {
    pub addr: Addr,
    pub value: Value,
    pub edge: EdgeId,
}

/// A state of the program. Under SC the buffers are always empty.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub at: Vec<Loc>,
    pub registers: Vec<Vec<Value>>,
    pub memory: Vec<Value>,
    /// The thread inside a `lock` … `unlock` block.
    pub lock: Option<ThreadId>,
    /// Oldest store first.
    pub buffers: Vec<VecDeque<Pending>>,
}

/// One thing that can happen in a state.
#[derive(Clone, Debug)]
pub struct Step {
    pub event: Event,
    pub state: State,
}

impl State {
    pub fn initial(program: &Program) -> State {
        let threads = program.threads();
        State {
            at: threads.iter().map(|t| t.initial()).collect(),
            registers: threads.iter().map(|t| vec![0; t.registers().len()]).collect(),
            memory: program.initial_memory().to_vec(),
            lock: None,
            buffers: vec![VecDeque::new(); threads.len()],
        }
    }

    fn eval(&self, t: ThreadId, e: &RegExpr) -> Result<Value, DivisionByZero> {
        e.eval(&|r| self.registers[t.index()][r.index()])
    }

    /// Is memory held by another thread's block?
    fn held_up(&self, t: ThreadId) -> bool {
        self.lock.is_some_and(|owner| owner != t)
    }

    /// What the state is against, if it counts as a goal state.
    pub fn against(&self, program: &Program, goal: &Goal) -> Option<Against> {
        let finished = || program.thread_ids().all(|t| self.at[t.index()] == program.thread(t).end());
        let atom = |a: &Atom| match a {
            Atom::At(t, locs) => at(self.at[t.index()], locs),
            Atom::Reg(t, r) => self.registers[t.index()][r.index()],
            Atom::Mem(a) => self.memory[a.index()],
        };
        let drained = |t: ThreadId| self.buffers[t.index()].is_empty() || self.held_up(t);
        if !program.thread_ids().all(drained) {
            return None;
        }
        let clause = goal.clauses.iter().find(|c| clause_holds(c, finished, &atom))?;
        Some(Against::Property(clause.property))
    }
}

/// Why a thread goes wrong on this edge, if it does: by its own registers, whatever memory holds.
fn trap(program: &Program, state: &State, t: ThreadId, instr: &Instr) -> Option<Trap> {
    if instr.exprs().iter().any(|e| state.eval(t, e).is_err()) {
        return Some(Trap::DivisionByZero);
    }
    if let Some(Ok(address)) = instr.address().map(|e| state.eval(t, e))
        && program.cell(address).is_none()
    {
        return Some(Trap::OutOfRange(address));
    }
    match instr {
        Instr::Assert(e) if state.eval(t, e) == Ok(0) => Some(Trap::Assertion),
        _ => None,
    }
}

/// The steps of a thread on one edge that need neither memory nor buffers: local ones, and errors.
/// `None` if the instruction is one that the memory model has to explain.
fn local_steps(program: &Program, state: &State, t: ThreadId, id: EdgeId, edge: &Edge) -> Option<Vec<Step>> {
    if let Some(trap) = trap(program, state, t, &edge.instr) {
        let mut step = step(state, t, id, edge, None);
        step.state.at[t.index()] = Loc::TRAP;
        step.event.trap = Some(trap);
        return Some(vec![step]);
    }
    let eval = |e| state.eval(t, e).expect("an expression that divides by zero has trapped");
    Some(match &edge.instr {
        Instr::Assign { dst, value } => {
            let mut step = step(state, t, id, edge, None);
            step.set(t, *dst, eval(value));
            vec![step]
        }
        Instr::Any { dst, lo, hi } => {
            let pick = |v| {
                let mut step = step(state, t, id, edge, Some(v));
                step.set(t, *dst, v);
                step
            };
            (*lo..=*hi).map(pick).collect()
        }
        Instr::Assume(e) if eval(e) == 0 => vec![],
        Instr::Assume(_) | Instr::Assert(_) | Instr::Nop => vec![step(state, t, id, edge, None)],
        _ => return None,
    })
}

/// The step along an edge that changes nothing but the location.
fn step(state: &State, t: ThreadId, id: EdgeId, edge: &Edge, choice: Option<Value>) -> Step {
    let mut state = state.clone();
    state.at[t.index()] = edge.to;
    let event = Event {
        action: Action { thread: t, act: Act::Step { edge: id, choice } },
        kind: Kind::of(&edge.instr),
        edge: id,
        address: None,
        value: None,
        written: None,
        source: None,
        store: None,
        trap: None,
    };
    Step { event, state }
}

impl Step {
    /// The register gets the value, and the event shows it.
    fn set(&mut self, t: ThreadId, dst: crate::model::Reg, value: Value) {
        self.state.registers[t.index()][dst.index()] = value;
        self.event.value = Some(value);
    }
}

/// A locked read-modify-write on memory: what it leaves there.
fn modified(state: &State, t: ThreadId, op: &crate::model::RmwOp, old: Value) -> Value {
    use crate::model::RmwOp;
    let eval = |e| state.eval(t, e).expect("an expression that divides by zero has trapped");
    match op {
        RmwOp::Swap(v) => eval(v),
        RmwOp::Add(v) => old.wrapping_add(eval(v)),
        RmwOp::Cas { old: expected, new } if old == eval(expected) => eval(new),
        RmwOp::Cas { .. } => old,
    }
}

//! What do programs mean? The two memory models as definitions, and what it is to be a computation.
//!
//! Plain code beside the papers' rules, for reading and for judging what the fast engines claim; nothing here
//! is fast. `sc` and `tso` give the steps of a state, `replay` walks a sequence of events, `hang` says when nothing
//! can happen any more. The parts that
//! do not depend on the memory model (states, local instructions, goals) are in this file.
//! Not here: searching. Who explores states is `reach`.

pub mod axioms;
pub mod dve;
pub mod hang;
pub mod liveness;
pub mod ltl;
pub mod replay;
pub mod sc;
pub mod tso;

use crate::model::{
    Addr, Atom, Bytes, DivisionByZero, Edge, EdgeId, Instr, Loc, Program, RegExpr, ThreadId, Value,
};
use crate::query::{Act, Action, Against, Event, EventKind, Goal, Trap, at, clause_holds};
use std::collections::VecDeque;

/// A store on its way to memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pending {
    pub addr: Addr,
    pub value: Value,
    /// Those of the cell that it changes.
    pub bytes: Bytes,
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
        eval(&self.registers[t.index()], e)
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

/// What an expression is worth to a thread with these registers.
pub fn eval(registers: &[Value], e: &RegExpr) -> Result<Value, DivisionByZero> {
    e.eval(&|r| registers[r.index()])
}

/// Why a thread goes wrong on this edge, if it does: by its own registers, whatever memory holds.
pub fn trap(program: &Program, registers: &[Value], instr: &Instr) -> Option<Trap> {
    if instr.exprs().iter().any(|e| eval(registers, e).is_err()) {
        return Some(Trap::DivisionByZero);
    }
    if let Some(Ok(address)) = instr.address().map(|e| eval(registers, e))
        && program.cell(address).is_none()
    {
        return Some(Trap::OutOfRange(address));
    }
    match instr {
        Instr::Assert(e) if eval(registers, e) == Ok(0) => Some(Trap::Assertion),
        _ => None,
    }
}

/// What a thread may pick when it takes an edge: a value of the range of an `any`, and nothing elsewhere.
/// With that, an edge has at most one step.
pub fn choices(instr: &Instr) -> impl Iterator<Item = Option<Value>> + use<> {
    let (lo, hi, any) = match instr {
        Instr::Any { lo, hi, .. } => (*lo, *hi, true),
        _ => (0, 0, false),
    };
    (lo..=hi).map(move |value| any.then_some(value))
}

/// The edges that the thread stands before. None if it has gone wrong.
fn edges<'a>(program: &'a Program, state: &State, t: ThreadId) -> Vec<(EdgeId, &'a Edge)> {
    let loc = state.at[t.index()];
    if loc == Loc::TRAP { vec![] } else { program.thread(t).edges_from(loc) }
}

/// The edge of a decision, if the thread stands before it and can pick what was decided.
fn decided<'a>(
    program: &'a Program,
    state: &State,
    t: ThreadId,
    edge: EdgeId,
    choice: Option<Value>,
) -> Option<(EdgeId, &'a Edge)> {
    let picked = |instr: &Instr| match (instr, choice) {
        (Instr::Any { lo, hi, .. }, Some(value)) => (*lo..=*hi).contains(&value),
        (Instr::Any { .. }, None) => false,
        (_, choice) => choice.is_none(),
    };
    edges(program, state, t).into_iter().find(|(id, e)| *id == edge && picked(&e.instr))
}

/// The step of a thread on one edge, if neither memory nor buffers have a say in it: a local one, or an
/// error. `None` if the instruction is one that the memory model has to explain, and nothing in place of the
/// step if there is none.
fn local_step(
    program: &Program,
    state: &State,
    t: ThreadId,
    (id, edge): (EdgeId, &Edge),
    choice: Option<Value>,
) -> Option<Option<Step>> {
    let trap = trap(program, &state.registers[t.index()], &edge.instr);
    if trap.is_none() && !edge.instr.is_local() {
        return None;
    }
    let mut step = step(state, t, id, edge, choice);
    if trap.is_some() {
        step.state.at[t.index()] = Loc::TRAP;
        step.event.trap = trap;
        return Some(Some(step));
    }
    let eval = |e| state.eval(t, e).expect("an expression that divides by zero has trapped");
    match (&edge.instr, choice) {
        (Instr::Assign { dst, value }, _) => step.set(t, *dst, eval(value)),
        (Instr::Any { dst, .. }, Some(value)) => step.set(t, *dst, value),
        (Instr::Assume(e), _) if eval(e) == 0 => return Some(None),
        _ => {}
    }
    Some(Some(step))
}

/// The step along an edge that changes nothing but the location.
fn step(state: &State, t: ThreadId, id: EdgeId, edge: &Edge, choice: Option<Value>) -> Step {
    let mut state = state.clone();
    state.at[t.index()] = edge.to;
    let event = Event {
        action: Action { thread: t, act: Act::Step { edge: id, choice } },
        kind: EventKind::of(&edge.instr),
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

/// A locked read-modify-write on memory: what it leaves there. `dst` gets the old value.
pub fn modified(registers: &[Value], dst: crate::model::Reg, op: &crate::model::RmwOp, old: Value) -> Value {
    use crate::model::RmwOp;
    let eval = |e| eval(registers, e).expect("an expression that divides by zero has trapped");
    match op {
        RmwOp::Swap(v) => eval(v),
        RmwOp::Add(v) => old.wrapping_add(eval(v)),
        RmwOp::And(v) => old & eval(v),
        RmwOp::Or(v) => old | eval(v),
        RmwOp::Xor(v) => old ^ eval(v),
        RmwOp::Cas { old: expected, new } if old == eval(expected) => eval(new),
        RmwOp::Cas { .. } => old,
        RmwOp::New(v) => {
            let value = |r: &crate::model::Reg| if *r == dst { old } else { registers[r.index()] };
            v.eval(&value).expect("validity refuses a new value that may divide by zero")
        }
    }
}

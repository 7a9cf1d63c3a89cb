//! What can a program do next, for whoever asks about infinite runs? The steps of `sc` and `tso`, but that
//! waits wait: a load whose value the `assume` behind it refuses is not done yet, so that a thread written
//! like that waits for another value instead of being stuck with this one.

use super::{State, Step, eval, sc, tso};
use crate::model::{Atom, Instr, Pred, Program, ThreadId, Value};
use crate::query::{Act, EventKind, Model, at};

/// Everything that one thread and its buffer can do.
pub fn thread_steps(program: &Program, model: Model, state: &State, t: ThreadId) -> Vec<Step> {
    let mut steps = match model {
        Model::Sc => sc::thread_steps(program, state, t),
        Model::Tso => tso::thread_steps(program, state, t),
    };
    steps.retain(|step| step.event.kind != EventKind::Load || !is_refused(program, &step.state, t));
    steps
}

/// Has the thread nothing before it but conditions that do not hold?
fn is_refused(program: &Program, state: &State, t: ThreadId) -> bool {
    let ahead = program.thread(t).edges_from(state.at[t.index()]);
    let fails = |instr: &Instr| match instr {
        Instr::Assume(e) => eval(&state.registers[t.index()], e) == Ok(0),
        _ => false,
    };
    !ahead.is_empty() && ahead.iter().all(|(_, edge)| fails(&edge.instr))
}

/// Who may be kept waiting: a thread, or its buffer. Each of them that can do something until it does has to
/// do something some time, if a run is fair (weak fairness).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actor {
    Thread(ThreadId),
    Buffer(ThreadId),
}

impl Actor {
    pub fn all(program: &Program) -> Vec<Actor> {
        let threads = program.thread_ids();
        threads.flat_map(|t| [Actor::Thread(t), Actor::Buffer(t)]).collect()
    }

    /// Is it the actor's own step?
    pub fn took(self, step: &Step) -> bool {
        let is_flush = step.event.action.act == Act::Flush;
        match self {
            Actor::Thread(t) => step.event.thread() == t && !is_flush,
            Actor::Buffer(t) => step.event.thread() == t && is_flush,
        }
    }
}

impl State {
    /// Does the state have what a predicate says, by what is in memory?
    pub fn has(&self, pred: &Pred) -> bool {
        let atom = |a: &Atom| -> Value {
            match a {
                Atom::At(t, locs) => at(self.at[t.index()], locs),
                Atom::Reg(t, r) => self.registers[t.index()][r.index()],
                Atom::Mem(a) => self.memory[a.index()],
            }
        };
        pred.eval(&atom).is_ok_and(|value| value != 0)
    }
}

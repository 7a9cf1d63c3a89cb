//! Is this a triangular race? Judged from the run alone, with the plain SC machine.
//!
//! The conditions are those of the definition, one by one; nothing here knows how the run was found.

use crate::model::{Instr, Program, RmwOp};
use crate::sem::replay::{Mismatch, replay};
use crate::sem::{State, sc};
use crate::verdict::{Event, Kind, Model, Race};
use thiserror::Error;

/// The condition that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Broken {
    #[error("does not replay: {0}")]
    Replay(#[from] Mismatch),
    #[error("does not have a store, a load and a write in this order")]
    Order,
    #[error("is not between two threads")]
    Threads,
    #[error("begins with something that is not a store outside blocks")]
    Store,
    #[error("does not go on with a load")]
    Load,
    #[error("has a step between store and load that waits for the buffer")]
    Barrier,
    #[error("has a load that the own buffer answers")]
    Buffered,
    #[error("has a step of its thread between load and write")]
    Moved,
    #[error("does not end with a write to what was loaded")]
    Write,
}

/// Is the run a computation under SC, and are the three events a triangular race in it?
pub fn check(program: &Program, race: &Race) -> Result<(), Broken> {
    let Race { events, store, load, write } = race;
    let (store, load, write) = (*store, *load, *write);
    let require = |holds: bool, broken: Broken| if holds { Ok(()) } else { Err(broken) };
    replay(program, Model::Sc, events)?;
    require(store < load && load < write && write < events.len(), Broken::Order)?;
    let t = events[store].thread();
    require(events[load].thread() == t && events[write].thread() != t, Broken::Threads)?;
    let own = |from: usize, to: usize| events[from..to].iter().filter(move |e| e.thread() == t);
    let fine = |e: &Event, kind: Kind| e.kind == kind && e.trap.is_none();
    let lock = |e: &&Event| matches!(instr(program, e), Instr::Lock | Instr::Unlock);
    let held = own(0, store).filter(lock).next_back().is_some_and(|e| *instr(program, e) == Instr::Lock);
    require(fine(&events[store], Kind::Store) && !held, Broken::Store)?;
    require(fine(&events[load], Kind::Load), Broken::Load)?;
    require(!own(store, load).any(|e| matches!(e.kind, Kind::Fence | Kind::Locked)), Broken::Barrier)?;
    let answers = |e: &Event| e.kind == Kind::Store && e.address == events[load].address;
    require(!own(store, load).any(answers), Broken::Buffered)?;
    require(own(load + 1, write).next().is_none(), Broken::Moved)?;
    require(first_write(program, events, load)? == Some(write), Broken::Write)
}

/// The first event after a load that writes what it has read.
pub fn first_write(program: &Program, events: &[Event], load: usize) -> Result<Option<usize>, Mismatch> {
    let mut state = replay(program, Model::Sc, &events[..=load])?;
    for (k, event) in events.iter().enumerate().skip(load + 1) {
        if event.address == events[load].address && writes(program, &state, event) {
            return Ok(Some(k));
        }
        let mut steps = sc::thread_steps(program, &state, event.thread()).into_iter();
        let step = steps.find(|s| s.event.action == event.action);
        let why = || Mismatch { index: k, why: "the machine does not do this".into() };
        state = step.ok_or_else(why)?.state;
    }
    Ok(None)
}

/// Does the event write, if it happens in this state? A `cas` does so only if it finds its old value.
pub fn writes(program: &Program, state: &State, event: &Event) -> bool {
    let registers = &state.registers[event.thread().index()];
    let writes = match instr(program, event) {
        Instr::Rmw { op: RmwOp::Cas { old, .. }, .. } => {
            old.eval(&|r| registers[r.index()]).ok() == event.value
        }
        instr => instr.writes_memory(),
    };
    writes && event.trap.is_none()
}

fn instr<'a>(program: &'a Program, event: &Event) -> &'a Instr {
    &program.thread(event.thread()).edge(event.edge).instr
}

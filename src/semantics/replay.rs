//! Is this sequence of events a computation of the program? If not, at which event, and why?
//!
//! The small judge of the clever engines. `perform` turns an engine's decisions into events by walking them
//! on the plain machine; `replay` walks finished events again and compares every address, value and source.
//! The events' indices (which store a load read from, which store a flush completes) are kept here, because
//! states do not remember where their buffered stores came from.

use super::{State, Step, sc, tso};
use crate::model::{Program, ThreadId};
use crate::query::{Act, Action, Against, Event, EventKind, Goal, Limit, Limits, Model, Source};
use std::collections::VecDeque;
use thiserror::Error;

/// The first event that cannot happen.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("event {index} is not possible: {why}")]
pub struct Mismatch {
    pub index: usize,
    pub why: String,
}

/// Why a walk has not come to its end.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Stopped {
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    #[error("a limit was reached on the way")]
    Limit(Limit),
}

impl From<Limit> for Stopped {
    fn from(limit: Limit) -> Stopped {
        Stopped::Limit(limit)
    }
}

/// Walks the decisions from the initial state up to the first goal state; the events, and what that state is
/// against. `None` if there is no goal state on the way.
pub fn perform(
    program: &Program,
    model: Model,
    goal: &Goal,
    actions: impl IntoIterator<Item = Action>,
    limits: &Limits,
) -> Result<(Vec<Event>, Option<Against>), Stopped> {
    let mut walk = Walk::new(program, model, limits);
    let mut actions = actions.into_iter();
    loop {
        if let Some(against) = walk.against(goal) {
            return Ok((walk.events, Some(against)));
        }
        match actions.next() {
            Some(action) => walk.take(action)?,
            None => return Ok((walk.events, None)),
        }
    }
}

/// Walks all decisions from the initial state, whatever they come by.
pub fn follow(
    program: &Program,
    model: Model,
    actions: impl IntoIterator<Item = Action>,
    limits: &Limits,
) -> Result<Vec<Event>, Stopped> {
    let mut walk = Walk::new(program, model, limits);
    actions.into_iter().try_for_each(|action| walk.take(action))?;
    Ok(walk.events)
}

/// Walks the events from the initial state to the state they lead to.
pub fn replay(program: &Program, model: Model, events: &[Event], limits: &Limits) -> Result<State, Stopped> {
    let mut walk = Walk::new(program, model, limits);
    for (index, event) in events.iter().enumerate() {
        walk.take(event.action)?;
        if walk.events[index] != *event {
            let why = format!("the machine does {:?} where the trace has {event:?}", walk.events[index]);
            return Err(Mismatch { index, why }.into());
        }
    }
    Ok(walk.state)
}

/// The same run under TSO: every store followed at once by its flush.
pub fn as_tso(events: &[Event]) -> Vec<Action> {
    let flush = |t: ThreadId| Action { thread: t, act: Act::Flush };
    let drained = |e: &Event| {
        [Some(e.action), (e.kind == EventKind::Store && e.trap.is_none()).then(|| flush(e.thread()))]
    };
    events.iter().flat_map(drained).flatten().collect()
}

struct Walk<'a> {
    program: &'a Program,
    model: Model,
    state: State,
    events: Vec<Event>,
    /// Per thread the events of the stores in its buffer, oldest first.
    stores: Vec<VecDeque<usize>>,
    limits: &'a Limits,
    /// What a step costs: it makes new states.
    cost: usize,
}

impl<'a> Walk<'a> {
    fn new(program: &'a Program, model: Model, limits: &'a Limits) -> Self {
        let stores = vec![VecDeque::new(); program.threads().len()];
        let registers: usize = program.threads().iter().map(|t| 1 + t.registers().len()).sum();
        let cost = 32 + (registers + program.cells()) / 8;
        Walk { program, model, state: State::initial(program), events: Vec::new(), stores, limits, cost }
    }

    fn take(&mut self, action: Action) -> Result<(), Stopped> {
        self.limits.spend(self.cost)?;
        let known = action.thread.index() < self.program.threads().len();
        let step = match self.model {
            _ if !known => None,
            Model::Sc => sc::decide(self.program, &self.state, action),
            Model::Tso => tso::decide(self.program, &self.state, action),
        };
        let Some(Step { mut event, state }) = step else {
            return Err(Mismatch { index: self.events.len(), why: self.refusal(action) }.into());
        };
        let own = &mut self.stores[action.thread.index()];
        if let Some(Source::Buffer(place)) = event.source {
            event.source = Some(Source::Buffer(own[place]));
        }
        match event.kind {
            EventKind::Flush => event.store = own.pop_front(),
            EventKind::Store if self.model == Model::Tso && event.trap.is_none() => {
                own.push_back(self.events.len())
            }
            _ => {}
        }
        self.events.push(event);
        self.state = state;
        Ok(())
    }

    /// What the present state is against, if it is a goal state or the last event went wrong.
    fn against(&self, goal: &Goal) -> Option<Against> {
        let trapped = self.events.last().and_then(|e| Some(Against::Trap(e.thread(), e.trap?)));
        trapped.filter(|_| !goal.ignores_errors).or_else(|| self.state.against(self.program, goal))
    }

    /// Why the machine does not do this in its present state.
    fn refusal(&self, action: Action) -> String {
        let t = action.thread;
        let Some(thread) = self.program.threads().get(t.index()) else {
            return format!("there is no thread {}", t.0);
        };
        let name = thread.name();
        let buffered = self.state.buffers[t.index()].len();
        match action.act {
            Act::Flush if self.state.lock.is_some_and(|o| o != t) => {
                format!("thread `{name}` cannot flush while another thread's block holds memory")
            }
            Act::Flush => format!("thread `{name}` has nothing to flush"),
            Act::Step { edge, .. } => {
                let at = thread.location_name(self.state.at[t.index()]);
                if edge.index() >= thread.graph().edge_count() {
                    return format!("thread `{name}` has no edge {}", edge.0);
                }
                let text = thread.show_instr(self.program, &thread.edge(edge).instr);
                format!("thread `{name}`, at {at} with {buffered} buffered stores, cannot do `{text}`")
            }
        }
    }
}

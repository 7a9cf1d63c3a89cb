//! Which TSO run does a line of states stand for, if any?
//!
//! The steps along the line are taken again, and told this time: edges, choices, and what was read from the
//! past. Then every moment of the run gets a number: it passes whenever memory or the lock changes. A
//! thread's place in its past is such a moment. A load from the past was done at the first moment, from the
//! thread's place on, at which it finds what it has read; if there is none, the past was joined from others
//! and the line stands for no run. A store is issued when the instructions after it let it be, as late as
//! can be, and flushed at the moment that it makes. Sorted by their moments, the decisions are a run of TSO
//! (see `machine`), and `certify` will judge it.

use super::machine::{LaggingMachine, Move};
use super::phantoms::goal_inside;
use super::search::{Cover, StateId};
use super::step::{Flow, Space, StepTools, Stop, Successors};
use super::table::{PastId, PastTable, Pasts};
use crate::machine::{Renaming, Work, renamed};
use crate::model::{Instr, Program, Reg, RegExpr, Thread, ThreadId, Value};
use crate::query::{Act, Action, Limit, Limits};
use crate::semantics::modified;
use std::ops::ControlFlow;

/// What a line of states comes to.
pub(crate) enum Concrete {
    /// A run.
    Run(Vec<Action>),
    /// No run: what this thread read was not there.
    Spurious(ThreadId),
}

/// The run that leads to a goal, if it is one.
pub(crate) fn concretise(
    program: &Program,
    machine: &LaggingMachine,
    search: &mut Cover,
    goal: StateId,
    limits: &Limits,
) -> Result<Concrete, Limit> {
    let moves = retell(machine, search, goal, limits)?;
    let mut clock = Clock::new(program);
    for one in &moves {
        limits.spend(8 + clock.moments())?;
        if clock.tick(one).is_err() {
            return Ok(Concrete::Spurious(one.action.thread));
        }
    }
    Ok(Concrete::Run(clock.sorted()))
}

/// The moves along the line to a goal, in the names of the run.
fn retell(
    machine: &LaggingMachine,
    search: &mut Cover,
    goal: StateId,
    limits: &Limits,
) -> Result<Vec<Move>, Limit> {
    let core = &machine.core;
    let line = search.states.line(goal);
    let Cover { table, levels, states, .. } = search;
    let (mut work, mut pasts, mut moves) = machine.start::<Vec<Move>>();
    let (mut renaming, mut space) = (Renaming::default(), Space::default());
    space.most = u64::MAX;
    core.canonicalise_with(&mut work, &mut Pasts { table, of: &mut pasts }, &mut renaming);
    let mut names = renaming.was.clone();
    let in_run = |names: &[usize], one: Move| Move {
        action: renamed(one.action, names),
        read: one.read.map(|(cell, value)| (cell, core.in_run(names, cell, value))),
        ..one
    };
    for pair in line.windows(2) {
        core.unpack(states.key(pair[0]), &mut work);
        let (key, next) = (states.key(pair[1]), states.pasts(pair[1]));
        let mut sought = Sought { machine, key, pasts: next, renaming: &mut renaming, found: None };
        for t in 0..core.threads() {
            let of = (&work, states.pasts(pair[0]));
            let tools = StepTools { space: &mut space, table, levels, limits };
            match machine.expand(tools, of, t, &mut sought) {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => break,
                Err(Stop::Limit(limit)) => return Err(limit),
                Err(Stop::TooFar) => unreachable!("nobody runs too far without a bound"),
            }
        }
        let steps = sought.found.expect("a stored state has a step from its parent");
        moves.extend(steps.into_iter().map(|one| in_run(&names, one)));
        names = renaming.was.iter().map(|&t| names[t]).collect();
    }
    core.unpack(states.key(goal), &mut work);
    if machine.looks_inside && !core.lock_is_free(&work) {
        let phantoms = goal_inside::<Vec<Move>>(machine, table, &mut work, states.pasts(goal), limits)?;
        let phantoms = phantoms.expect("the goal was seen").into_iter().flatten();
        moves.extend(phantoms.map(|one| in_run(&names, one)));
    }
    Ok(moves)
}

/// The step to one stored state.
struct Sought<'a> {
    machine: &'a LaggingMachine,
    key: &'a [u64],
    pasts: &'a [PastId],
    renaming: &'a mut Renaming,
    found: Option<Vec<Move>>,
}

impl Successors<Vec<Move>> for Sought<'_> {
    fn state(
        &mut self,
        table: &mut PastTable,
        work: &mut Work,
        pasts: &mut [PastId],
        told: &Vec<Move>,
    ) -> Flow {
        let core = &self.machine.core;
        core.canonicalise_with(work, &mut Pasts { table, of: pasts }, self.renaming);
        let mut packed = Vec::new();
        core.pack(work, &mut packed);
        if packed != self.key || pasts != self.pasts {
            return Ok(ControlFlow::Continue(()));
        }
        self.found = Some(told.clone());
        Ok(ControlFlow::Break(()))
    }
}

/// A moment of the run.
type Moment = usize;

/// A run in the making.
struct Clock<'a> {
    program: &'a Program,
    threads: Vec<Runner>,
    /// Per cell what it has held, and since when.
    history: Vec<Vec<(Moment, Value)>>,
    /// Per moment whether it lies inside a block, where nobody but the owner reads.
    inside: Vec<bool>,
    events: Vec<Event>,
}

#[derive(Default)]
struct Runner {
    registers: Vec<Value>,
    /// Its place in its past.
    place: Moment,
    /// Its stores: cell, value, and when they reached memory.
    stores: Vec<(u32, Value, Moment)>,
}

struct Event {
    action: Action,
    moment: Moment,
    /// The moment begins with it.
    begins: bool,
    /// It may as well happen later, before this moment.
    latest: Option<Moment>,
}

/// What a load is said to have read was not there.
struct NotThere;

impl Clock<'_> {
    fn new(program: &Program) -> Clock<'_> {
        let reader = |t: &Thread| Runner { registers: vec![0; t.registers().len()], ..Runner::default() };
        Clock {
            program,
            threads: program.threads().iter().map(reader).collect(),
            history: program.initial_memory().iter().map(|&v| vec![(0, v)]).collect(),
            inside: vec![false],
            events: Vec::new(),
        }
    }

    fn moments(&self) -> usize {
        self.inside.len()
    }

    fn now(&self) -> Moment {
        self.inside.len() - 1
    }

    /// One more move.
    fn tick(&mut self, one: &Move) -> Result<(), NotThere> {
        let Act::Step { edge, choice } = one.action.act else { unreachable!("threads move by edges") };
        let (action, t) = (one.action, one.action.thread);
        let instr = &self.program.thread(t).edge(edge).instr;
        let fails = instr.exprs().iter().any(|e| e.eval(&|r| self.register(t, *r)).is_err());
        let cell = instr.address().map(|a| self.program.cell(self.value(t, a)));
        match (fails, cell) {
            // It goes wrong, by its own registers.
            (true, _) | (_, Some(None)) => self.happen(action),
            (false, Some(Some(cell))) => self.access(one, instr, cell.0)?,
            (false, None) => self.act(action, instr, choice),
        }
        Ok(())
    }

    /// A step that touches no cell.
    fn act(&mut self, action: Action, instr: &Instr, choice: Option<Value>) {
        let t = action.thread;
        match instr {
            Instr::Assign { dst, value } => self.set(t, *dst, self.value(t, value)),
            Instr::Any { dst, .. } => self.set(t, *dst, choice.expect("an `any` is taken with a value")),
            instr if instr.is_fence() => self.threads[t.index()].place = self.now(),
            Instr::Membarrier => {
                let now = self.now();
                self.threads.iter_mut().for_each(|own| own.place = now);
            }
            Instr::Lock => return self.begin(action, true),
            Instr::Unlock => return self.begin(action, false),
            _ => {}
        }
        self.happen(action);
    }

    /// A step that touches a cell.
    fn access(&mut self, one: &Move, instr: &Instr, cell: u32) -> Result<(), NotThere> {
        let (action, t, inside) = (one.action, one.action.thread, self.inside[self.now()]);
        match instr {
            Instr::Load { dst, .. } => {
                let (place, value) = match one.read {
                    None => (self.now(), self.held(cell, self.now())),
                    Some((_, value)) => (self.place_of(t.index(), cell, value).ok_or(NotThere)?, value),
                };
                self.threads[t.index()].place = place;
                self.set(t, *dst, value);
                self.happen(action);
            }
            Instr::Store { value, .. } => {
                let value = self.value(t, value);
                let reaches = if one.phantom { Moment::MAX } else { self.moments() };
                self.threads[t.index()].stores.push((cell, value, reaches));
                self.happen(action);
                self.events.last_mut().expect("it has happened").latest = Some(reaches - 1);
                if !one.phantom {
                    let place = self.threads[t.index()].place;
                    self.begin(Action { act: Act::Flush, ..action }, inside);
                    self.threads[t.index()].place = place;
                    self.write(cell, value);
                }
            }
            Instr::Rmw { dst, op, .. } => {
                let old = self.held(cell, self.now());
                let new = modified(&self.threads[t.index()].registers, *dst, op, old);
                self.set(t, *dst, old);
                self.begin(action, inside);
                self.write(cell, new);
            }
            _ => unreachable!("no other instruction has an address"),
        }
        Ok(())
    }

    /// The decision is taken at its thread's place.
    fn happen(&mut self, action: Action) {
        let moment = self.threads[action.thread.index()].place;
        self.events.push(Event { action, moment, begins: false, latest: None });
    }

    /// A moment begins with this decision.
    fn begin(&mut self, action: Action, inside: bool) {
        self.inside.push(inside);
        self.threads[action.thread.index()].place = self.now();
        self.events.push(Event { action, moment: self.now(), begins: true, latest: None });
    }

    fn write(&mut self, cell: u32, value: Value) {
        let now = self.now();
        self.history[cell as usize].push((now, value));
    }

    fn register(&self, t: ThreadId, r: Reg) -> Value {
        self.threads[t.index()].registers[r.index()]
    }

    /// What an expression is worth that does not fail; it is not used if another one does.
    fn value(&self, t: ThreadId, e: &RegExpr) -> Value {
        e.eval(&|r| self.register(t, *r)).unwrap_or(0)
    }

    fn set(&mut self, t: ThreadId, dst: Reg, value: Value) {
        self.threads[t.index()].registers[dst.index()] = value;
    }

    /// What memory held then.
    fn held(&self, cell: u32, moment: Moment) -> Value {
        let held = &self.history[cell as usize];
        held[held.partition_point(|(since, _)| *since <= moment) - 1].1
    }

    /// The first moment, from the thread's place on, at which it finds the value in the cell.
    fn place_of(&self, t: usize, cell: u32, value: Value) -> Option<Moment> {
        let Runner { place, stores, .. } = &self.threads[t];
        let own = stores.iter().rev().find(|(of, ..)| *of == cell);
        (*place..self.moments()).filter(|&moment| !self.inside[moment]).find(|&moment| {
            let waits = own.filter(|(.., reaches)| *reaches > moment);
            waits.map_or_else(|| self.held(cell, moment), |(_, own, _)| *own) == value
        })
    }

    /// The decisions in the order of their moments.
    fn sorted(mut self) -> Vec<Action> {
        let mut next = vec![Moment::MAX; self.threads.len()];
        for event in self.events.iter_mut().rev() {
            // A flush does not keep what comes after it from being done before it.
            if event.action.act == Act::Flush {
                continue;
            }
            let next = &mut next[event.action.thread.index()];
            if let Some(latest) = event.latest {
                event.moment = event.moment.max(latest.min(*next));
            }
            *next = event.moment;
        }
        let mut order: Vec<usize> = (0..self.events.len()).collect();
        order.sort_by_key(|&k| (self.events[k].moment, !self.events[k].begins, k));
        order.into_iter().map(|k| self.events[k].action).collect()
    }
}

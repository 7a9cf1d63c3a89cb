//! A DVE model as a machine, under SC or with slots: its states in a few words, and the steps between them.
//!
//! `range` finds how many bits a variable needs, `compile` lays the state out and prepares transitions, `code`
//! evaluates them, `ample` finds steps that can be taken alone. What the model does when it goes wrong is one state
//! without words, where nothing follows. `semantics::dve` is the definition that this is held to; nothing here is
//! shared with it but the model.

mod ample;
mod code;
mod compile;
mod goal;
mod range;

pub use goal::{DveGoal, DveGoals};

use crate::analysis::interval::Interval;
use crate::dve::{DveError, DveExpr, DveStep, Memory, System};
use crate::model::Value;
use crate::query::{Limit, Limits};
use crate::reach::pack::Layout;
use crate::reach::visited::MAX_WORDS;
use crate::reach::{Look, Machine, Sink, Sleep, Wanted};
use code::{DveCode, Target};
use compile::{DveMove, DveTables, Slot, Syncing};
use goal::Goals;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// The state of a model that has gone wrong, as it is written down.
pub const WRONG: &[u64] = &[];

/// What a transition costs to look at, in steps.
const STEP: usize = 8;

pub struct DveMachine {
    tables: DveTables,
    layout: Layout,
    /// Cells that keep their initial values have no fields.
    initial: Vec<Value>,
    goals: Goals,
    /// Per process and state, whether its moves may be taken alone.
    ample: Option<Vec<Vec<bool>>>,
    deadlocks: AtomicU64,
    errors: AtomicU64,
    /// What was wrong with an expression that somebody asked about.
    undefined: Mutex<Option<DveError>>,
}

/// One worker's space.
#[derive(Default)]
pub struct DveScratch {
    base: Vec<Value>,
    work: Vec<Value>,
    message: Vec<Value>,
    words: Vec<u64>,
}

/// The two states that a step is made from: the one it leaves, and the one being made.
struct Making<'a> {
    base: &'a [Value],
    work: &'a mut Vec<Value>,
    message: &'a mut Vec<Value>,
}

impl DveMachine {
    pub fn new(system: &System, memory: &Memory, goals: &DveGoals) -> Result<DveMachine, Limit> {
        DveMachine::with(system, memory, goals, 1)
    }

    /// With a cell for an observer that has so many states.
    pub fn observed(system: &System, memory: &Memory, states: usize) -> Result<DveMachine, Limit> {
        DveMachine::with(system, memory, &DveGoals::default(), states)
    }

    fn with(
        system: &System,
        memory: &Memory,
        goals: &DveGoals,
        observer: usize,
    ) -> Result<DveMachine, Limit> {
        let mut tables = compile::tables(system, memory);
        tables.initial.push(0);
        tables.intervals.push(Interval { lo: 0, hi: observer.saturating_sub(1) as Value });
        let layout = Layout::loose(tables.intervals.iter().copied().enumerate());
        if layout.words() >= MAX_WORDS {
            return Err(Limit::StateSize(layout.words()));
        }
        Ok(DveMachine {
            layout,
            initial: tables.initial.clone(),
            goals: Goals::new(system, &tables, goals),
            ample: None,
            tables,
            deadlocks: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            undefined: Mutex::new(None),
        })
    }

    /// The same machine with steps that nobody notices taken alone, where these expressions are all that is
    /// asked about, in formulas without X.
    pub fn reduced(mut self, system: &System, memory: &Memory, asked: &[DveExpr]) -> DveMachine {
        self.ample = Some(ample::ample(system, memory, asked));
        self
    }

    /// Words of a packed state.
    pub fn words(&self) -> usize {
        self.layout.words().max(1)
    }

    /// States that were expanded and have no successor, the one that is wrong not among them.
    pub fn deadlocks(&self) -> u64 {
        self.deadlocks.load(Ordering::Relaxed)
    }

    /// Steps that went wrong.
    pub fn errors(&self) -> u64 {
        self.errors.load(Ordering::Relaxed)
    }

    /// Why something that was asked about had no value, if that happened.
    pub fn undefined(&self) -> Option<DveError> {
        *self.undefined.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// How many slots there are.
    pub fn slots(&self) -> usize {
        self.tables.slots.len()
    }

    pub fn is_empty(&self, slot: usize, vals: &[Value]) -> bool {
        vals[self.tables.slots[slot].cell] == 0
    }

    /// An expression over what is in memory.
    pub fn proposition(&self, system: &System, expr: &DveExpr) -> Proposition {
        Proposition(self.tables.code(system, None, expr))
    }

    pub fn holds(&self, proposition: &Proposition, vals: &[Value]) -> bool {
        self.defined(proposition.0.holds(vals))
    }

    /// What has no value does not hold, and is remembered.
    fn defined(&self, value: Result<bool, DveError>) -> bool {
        value.unwrap_or_else(|error| {
            *self.undefined.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(error);
            false
        })
    }

    pub fn unpack(&self, words: &[u64], vals: &mut Vec<Value>) {
        vals.clone_from(&self.initial);
        self.layout.unpack(words, vals);
    }

    pub fn pack(&self, vals: &[Value], words: &mut Vec<u64>) {
        words.clear();
        self.layout.pack(vals, words);
        if words.is_empty() {
            words.push(0);
        }
    }

    /// The cell of the observer, the last one.
    pub fn observer(&self) -> usize {
        self.initial.len() - 1
    }

    /// The initial state, unpacked.
    pub fn start(&self) -> &[Value] {
        &self.initial
    }

    /// Every step from a state, with what it leads to, until the callback has had enough.
    pub fn steps(
        &self,
        base: &[Value],
        work: &mut Vec<Value>,
        message: &mut Vec<Value>,
        mut each: impl FnMut(DveStep, Result<&mut Vec<Value>, DveError>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut making = Making { base, work, message };
        if let Some(alone) = self.alone(&mut making) {
            return self.moves_of(&mut making, alone, false, &mut each);
        }
        let hurried = self
            .tables
            .committed
            .as_ref()
            .is_some_and(|committed| committed.iter().zip(base).any(|(states, at)| states[*at as usize]));
        for process in 0..self.tables.moves.len() {
            self.moves_of(&mut making, process, hurried, &mut each)?;
        }
        for &Slot { process, variable, element, cell, memory } in &self.tables.slots {
            if base[cell] != 0 {
                making.work.clear();
                making.work.extend_from_slice(base);
                making.work[memory] = base[cell + 1];
                (making.work[cell], making.work[cell + 1]) = (0, 0);
                each(DveStep::Flush { process, variable, element }, Ok(making.work))?;
            }
        }
        ControlFlow::Continue(())
    }

    /// A process whose moves may be taken alone here, if there is one that can move and does not go wrong.
    fn alone(&self, making: &mut Making) -> Option<usize> {
        let ample = self.ample.as_ref()?;
        (0..ample.len()).filter(|&p| ample[p][making.base[p] as usize]).find(|&process| {
            let mut any = false;
            for m in self.offered(making.base, process, false) {
                match self.is_open(making.base, process, m) {
                    Ok(false) => {}
                    Ok(true) if self.internal(making, process, m).is_ok() => any = true,
                    _ => return false,
                }
            }
            any
        })
    }

    /// All steps that a process takes, or sends in.
    fn moves_of(
        &self,
        making: &mut Making,
        process: usize,
        hurried: bool,
        each: &mut impl FnMut(DveStep, Result<&mut Vec<Value>, DveError>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        for m in self.offered(making.base, process, hurried) {
            let step = DveStep::Internal { process, transition: m.number };
            match self.is_open(making.base, process, m) {
                Ok(false) => {}
                Err(error) => each(step, Err(error))?,
                Ok(true) => match &m.sync {
                    Syncing::Receive(..) => {}
                    Syncing::Send(channel, values) => {
                        self.handshakes(making, (process, m), (*channel, values), hurried, each)?;
                    }
                    Syncing::None | Syncing::Put(..) | Syncing::Take(..) => {
                        match self.internal(making, process, m) {
                            Ok(true) => each(step, Ok(making.work))?,
                            Ok(false) => {}
                            Err(error) => each(step, Err(error))?,
                        }
                    }
                },
            }
        }
        ControlFlow::Continue(())
    }

    fn offered(&self, base: &[Value], process: usize, hurried: bool) -> &[DveMove] {
        let at = base[process] as usize;
        match &self.tables.committed {
            Some(committed) if hurried && !committed[process][at] => &[],
            _ => &self.tables.moves[process][at],
        }
    }

    #[inline]
    fn is_open(&self, base: &[Value], process: usize, m: &DveMove) -> Result<bool, DveError> {
        let own = |slot: &&Slot| slot.process == process;
        if m.barrier && self.tables.slots.iter().filter(own).any(|slot| base[slot.cell] != 0) {
            return Ok(false);
        }
        m.guard.as_ref().map_or(Ok(true), |guard| guard.holds(base))
    }

    /// All handshakes in which this move sends.
    fn handshakes(
        &self,
        making: &mut Making,
        (process, m): (usize, &DveMove),
        (channel, values): (usize, &[DveCode]),
        hurried: bool,
        each: &mut impl FnMut(DveStep, Result<&mut Vec<Value>, DveError>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        for other in (0..self.tables.moves.len()).filter(|&other| other != process) {
            for receiver in self.offered(making.base, other, hurried) {
                let Syncing::Receive(to, places) = &receiver.sync else { continue };
                if *to != channel || self.is_open(making.base, other, receiver) != Ok(true) {
                    continue;
                }
                let step =
                    DveStep::Handshake { sender: (process, m.number), receiver: (other, receiver.number) };
                let done = self.message(making, channel, values).and_then(|()| {
                    copy(making);
                    receive(making, places)?;
                    perform(making.work, other, receiver)?;
                    perform(making.work, process, m)
                });
                each(step, done.map(|()| &mut *making.work))?;
            }
        }
        ControlFlow::Continue(())
    }

    /// A step of one process alone; `false` if its channel is full, or empty.
    fn internal(&self, making: &mut Making, process: usize, m: &DveMove) -> Result<bool, DveError> {
        copy(making);
        match &m.sync {
            Syncing::Put(channel, values) => {
                let room = self.tables.rooms[*channel].as_ref().expect("the channel has room");
                let count = making.base[room.count] as usize;
                if count == room.capacity {
                    return Ok(false);
                }
                self.message(making, *channel, values)?;
                let free = room.count + 1 + count * room.parts;
                making.work[free..][..room.parts].copy_from_slice(making.message);
                making.work[room.count] += 1;
            }
            Syncing::Take(channel, places) => {
                let room = self.tables.rooms[*channel].as_ref().expect("the channel has room");
                if making.base[room.count] == 0 {
                    return Ok(false);
                }
                let messages = room.count + 1..room.count + 1 + room.capacity * room.parts;
                making.message.clear();
                making.message.extend_from_slice(&making.base[messages.start..][..room.parts]);
                making.work[messages.clone()].rotate_left(room.parts);
                making.work[messages.end - room.parts..messages.end].fill(0);
                making.work[room.count] -= 1;
                receive(making, places)?;
            }
            _ => {}
        }
        perform(making.work, process, m).map(|()| true)
    }

    fn message(&self, making: &mut Making, channel: usize, values: &[DveCode]) -> Result<(), DveError> {
        making.message.clear();
        for (i, code) in values.iter().enumerate() {
            let value = code.value(making.base)?;
            if self.tables.types[channel].get(i).is_some_and(|kind| !kind.holds(value)) {
                return Err(DveError::Message { channel, value });
            }
            making.message.push(value);
        }
        Ok(())
    }

    /// The step that leads from one stored state to another.
    fn between(&self, scratch: &mut DveScratch, from: &[u64], to: &[u64]) -> Option<DveStep> {
        let DveScratch { base, work, message, words } = scratch;
        self.unpack(from, base);
        let mut found = None;
        let _ = self.steps(base, work, message, |step, next| {
            match next {
                Ok(vals) => self.pack(vals, words),
                Err(_) => words.clear(),
            }
            if words[..] == *to {
                found = Some(step);
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        found
    }
}

/// Something that is asked of states.
#[derive(Clone, Debug)]
pub struct Proposition(DveCode);

fn copy(making: &mut Making) {
    making.work.clear();
    making.work.extend_from_slice(making.base);
}

fn receive(making: &mut Making, places: &[Target]) -> Result<(), DveError> {
    let mut parts = places.iter().zip(&*making.message);
    parts.try_for_each(|(place, value)| place.write(making.work, *value))
}

fn perform(work: &mut [Value], process: usize, m: &DveMove) -> Result<(), DveError> {
    for (target, code) in &m.effects {
        let value = code.value(work)?;
        target.write(work, value)?;
    }
    work[process] = m.to;
    Ok(())
}

impl Machine for DveMachine {
    type Scratch = DveScratch;
    type Step = DveStep;

    fn scratch(&self) -> DveScratch {
        DveScratch::default()
    }

    fn initial(&self, scratch: &mut DveScratch, sink: &mut impl Sink) {
        self.pack(&self.initial, &mut scratch.words);
        sink.state(&scratch.words, 0);
    }

    fn expand(&self, scratch: &mut DveScratch, state: &[u64], _: Wanted, _: Sleep, sink: &mut impl Sink) {
        if state == WRONG {
            return;
        }
        let DveScratch { base, work, message, words } = scratch;
        self.unpack(state, base);
        let (mut any, mut errors) = (false, 0);
        let _ = self.steps(base, work, message, |_, next| {
            any = true;
            match next {
                Ok(vals) => {
                    self.pack(vals, words);
                    sink.state(words, 0);
                }
                Err(_) => {
                    errors += 1;
                    sink.state(WRONG, 0);
                }
            }
            ControlFlow::Continue(())
        });
        if !any {
            self.deadlocks.fetch_add(1, Ordering::Relaxed);
        }
        if errors > 0 {
            self.errors.fetch_add(errors, Ordering::Relaxed);
        }
    }

    fn look(&self, scratch: &mut DveScratch, state: &[u64]) -> Look {
        goal::look(self, scratch, state)
    }

    fn trace(&self, line: &[Vec<u64>], limits: &Limits) -> Result<Vec<DveStep>, Limit> {
        let mut scratch = self.scratch();
        let pairs = line.windows(2).map(|pair| {
            limits.spend(STEP)?;
            Ok(self.between(&mut scratch, &pair[0], &pair[1]).expect("stored states follow by steps"))
        });
        pairs.collect()
    }
}

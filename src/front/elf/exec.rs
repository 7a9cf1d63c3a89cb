//! What does a thread do from one place on? Performs operations on what is known of it.
//!
//! The same steps find out which numbers there can be, run `main` alone, where all of them are known, and translate:
//! then a [`Sink`] is told what remains to be done. A variable whose number is known has no register in the
//! translation; one that is not known has.

mod control;

use self::control::{Branch, fork};
use super::access::MemoryTouch;
use super::bytes::{Bytes, Kind};
use super::calls::Calls;
use super::decode::Code64;
use super::facts::{AccessKind, CodeFacts};
use super::heap::Reuse;
use super::image::Image;
use super::lift::{RSP, lift};
use super::ops::*;
use super::refusal::Result;
use super::sink::Sink;
use super::state::State;
use super::value::{Numbers, POISON, Value};
use crate::limits::Limits;
use crate::model::{BinOp, Expr};
use std::collections::HashMap;
use std::rc::Rc;

/// What a function may use below the end of its stack.
pub(super) const RED_ZONE: u64 = 128;

/// Where a thread is: which calls it is in, at which address, at which of its operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct CodePlace {
    pub context: u32,
    pub address: u64,
    pub op: OpLabel,
    pub flags: Flags,
}

/// The calls that a thread can be in, each by the address it returns to.
#[derive(Default)]
pub(super) struct Contexts {
    known: Vec<(u32, u64)>,
    numbers: HashMap<(u32, u64), u32>,
}

impl Contexts {
    /// Outside all calls.
    pub(super) const NONE: u32 = 0;

    pub(super) fn enter(&mut self, from: u32, back: u64) -> u32 {
        let next = self.known.len() as u32 + 1;
        let number = *self.numbers.entry((from, back)).or_insert(next);
        if number == next {
            self.known.push((from, back));
        }
        number
    }

    /// Where the innermost call returns to, and what is around it.
    pub(super) fn innermost(&self, context: u32) -> Option<(u32, u64)> {
        self.known.get((context as usize).checked_sub(1)?).copied()
    }

    pub(super) fn calls(&self, mut context: u32) -> Vec<u64> {
        let mut calls = Vec::new();
        while let Some((outer, back)) = self.innermost(context) {
            calls.push(back);
            context = outer;
        }
        calls
    }
}

/// A thread, before it does anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Root {
    pub name: String,
    pub state: State,
    pub start: CodePlace,
    /// Its stack.
    pub stack: (u64, u64),
    /// What it is that creates it: a thread and a place in it.
    pub creator: Option<(u16, CodePlace)>,
}

/// A thread that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Creation {
    pub place: CodePlace,
    pub function: u64,
    pub argument: u64,
}

/// What all threads have in common.
pub(super) struct World<'a> {
    pub image: &'a Image,
    pub code: Code64<'a>,
    pub calls: Calls<'a>,
    pub limits: &'a Limits,
    /// Bytes of each thread's heap.
    pub heap: u64,
    pub reuse: Reuse,
}

/// What a thread that is alone has touched, and may do.
pub(super) struct Alone {
    pub touched: Vec<(u64, u8, AccessKind)>,
    /// The classes of blocks that it has asked for.
    pub asked: Vec<u64>,
    /// How many blocks it may give back.
    pub frees: usize,
}

/// Where a thread may go on.
pub(super) struct Continuation {
    pub place: CodePlace,
    pub state: State,
    /// What decides whether it goes this way, if there are others.
    pub condition: Option<VarExpr>,
}

/// Why operations end.
pub(super) enum PathEnd {
    Next(Vec<Continuation>),
    /// What comes is not for a thread that is alone.
    NotAlone,
}

pub(super) struct Exec<'e, 'a> {
    pub world: &'e World<'a>,
    pub thread: u16,
    pub stack: (u64, u64),
    pub contexts: &'e mut Contexts,
    /// Memory at the beginning; all of it, for a thread that is alone.
    pub memory: &'e mut Bytes,
    pub facts: &'e mut CodeFacts,
    pub created: &'e mut dyn FnMut(Creation) -> Result<u64>,
    /// Is there no other thread?
    pub alone: Option<&'e mut Alone>,
    pub lifted: &'e mut HashMap<(u64, Flags), Rc<Lifted>>,
}

/// So many times an instruction that repeats itself is gone through one by one.
const MOST_REPEATS: usize = 1024;

/// Does the thread go on?
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum GoesOn {
    On,
    /// It has failed, or waits for good.
    Ended,
}

impl Exec<'_, '_> {
    pub(super) fn lifted(&mut self, address: u64, flags: Flags) -> Result<Rc<Lifted>> {
        if let Some(known) = self.lifted.get(&(address, flags)) {
            return Ok(known.clone());
        }
        let made = match self.world.image.libraries.get(&address) {
            Some(name) => self.world.calls.routine(name)?,
            None => lift(&self.world.code, address, flags)?,
        };
        let made = Rc::new(made);
        self.lifted.insert((address, flags), made.clone());
        Ok(made)
    }

    /// From a place to those behind the next branch or the end of the instruction.
    pub(super) fn run(&mut self, place: CodePlace, mut state: State, sink: &mut dyn Sink) -> Result<PathEnd> {
        let lifted = self.lifted(place.address, place.flags)?;
        let (mut at, mut repeats) = (place.op, 0);
        let one = |place, state| Ok(PathEnd::Next(vec![Continuation { place, state, condition: None }]));
        loop {
            self.world.limits.spend(64)?;
            let Some(op) = lifted.ops.get(usize::from(at)) else {
                let next = self.arrive(place.context, lifted.next, lifted.flags, &mut state);
                return one(next, state);
            };
            let mut flow = GoesOn::On;
            match op {
                MicroOp::Set(to, value) => flow = self.set(&mut state, *to, value, sink)?,
                MicroOp::SetLow { var, bits, value } => {
                    flow = self.set_low(&mut state, *var, *bits, value, sink)?
                }
                MicroOp::Load { dst, addr, bytes } => {
                    let access = MemoryTouch::Load(*dst);
                    flow = self.access(place, &mut state, addr, *bytes, &access, sink)?;
                }
                MicroOp::Store { addr, value, bytes } => {
                    let access = MemoryTouch::Store(value);
                    flow = self.access(place, &mut state, addr, *bytes, &access, sink)?;
                }
                MicroOp::Rmw { dst, addr, bytes, new } => {
                    let access = MemoryTouch::Locked(*dst, new);
                    flow = self.access(place, &mut state, addr, *bytes, &access, sink)?;
                }
                MicroOp::Fence => sink.fence(),
                MicroOp::Goto(label) if *label <= at => {
                    let head = &lifted.ops[usize::from(*label)];
                    if repeats == MOST_REPEATS || !self.goes_on_for_certain(place, &state, head) {
                        return one(CodePlace { op: *label, ..place }, state);
                    }
                    repeats += 1;
                    at = *label;
                    continue;
                }
                MicroOp::Goto(label) => {
                    at = *label;
                    continue;
                }
                MicroOp::If(condition, label) => match self.branch(&mut state, condition, sink)? {
                    Branch::Known(true) if *label <= at => {
                        return one(CodePlace { op: *label, ..place }, state);
                    }
                    Branch::Known(true) => {
                        at = *label;
                        continue;
                    }
                    Branch::Known(false) => {}
                    Branch::Ended => return Ok(PathEnd::Next(vec![])),
                    Branch::Open(condition) if self.alone.is_none() => {
                        return Ok(PathEnd::Next(fork(place, &state, &condition, *label, at + 1)));
                    }
                    Branch::Open(_) => return Ok(PathEnd::NotAlone),
                },
                MicroOp::Any { .. } | MicroOp::Wait | MicroOp::Special(Special::Assume(_))
                    if self.alone.is_some() =>
                {
                    return Ok(PathEnd::NotAlone);
                }
                MicroOp::Wait => {}
                MicroOp::Any { dst, lo, hi } => {
                    sink.any(*dst, *lo, *hi);
                    state.put(*dst, Value::of(Numbers::Range(0, u64::MAX).within(*lo as u64, *hi as u64)));
                }
                MicroOp::Jump(to) => return self.go(place, state, to, lifted.flags, None, sink),
                MicroOp::Call(to) => return self.go(place, state, to, Flags::Lost, Some(lifted.next), sink),
                MicroOp::Return(to) => return self.back(place, state, to),
                MicroOp::Fail(_) if self.alone.is_some() => return Ok(PathEnd::NotAlone),
                MicroOp::Fail(why) => {
                    sink.assert(constant(0), why);
                    flow = GoesOn::Ended;
                }
                MicroOp::Stop => {
                    sink.end();
                    flow = GoesOn::Ended;
                }
                MicroOp::Special(Special::Halves { at: start, backwards })
                    if self.tells_halves(place, &state, start)? =>
                {
                    sink.in_parts();
                    let ways = [at + 1, *backwards].map(|op| Continuation {
                        place: CodePlace { op, ..place },
                        state: state.clone(),
                        condition: None,
                    });
                    return Ok(PathEnd::Next(ways.into()));
                }
                MicroOp::Special(special) => match self.special(place, &mut state, special, sink)? {
                    Some(then) => flow = then,
                    None => return Ok(PathEnd::NotAlone),
                },
            }
            if flow == GoesOn::Ended {
                return Ok(if self.alone.is_some() { PathEnd::NotAlone } else { PathEnd::Next(vec![]) });
            }
            at += 1;
        }
    }

    /// Does an instruction that repeats itself know whether it is done? Then each time is for itself, and none has to
    /// be true of all.
    fn goes_on_for_certain(&self, place: CodePlace, state: &State, head: &MicroOp) -> bool {
        let MicroOp::If(condition, _) = head else { return false };
        self.alone.is_none()
            && !self.world.image.libraries.contains_key(&place.address)
            && state.poisonous(condition).is_empty()
            && state.number(condition).is_some()
    }

    /// What is of no use behind an instruction is forgotten.
    fn arrive(&self, context: u32, address: u64, flags: Flags, state: &mut State) -> CodePlace {
        let is_code = self.world.image.bytes.region(address).is_some_and(|r| r.kind == Kind::Code);
        let needed = is_code && !self.world.image.libraries.contains_key(&address);
        let flags = if needed && self.world.code.flags_needed(address) != 0 { flags } else { Flags::Lost };
        let low = state.known(Var::Gpr(RSP)).map_or(0, |rsp| rsp.saturating_sub(RED_ZONE));
        let (bottom, top) = self.stack;
        let dead = |at: u64| (bottom..top).contains(&at) && at < low && low <= top;
        state.retain(|var| match var {
            Var::Temp(_) | Var::Old => false,
            Var::Left | Var::Right => matches!(flags, Flags::Sub(_) | Flags::Add(_) | Flags::Logic(_)),
            Var::Flag(_) => flags == Flags::Single,
            Var::Slot(at, bytes) => !dead(at + u64::from(bytes) - 1),
            _ => true,
        });
        CodePlace { context, address, op: 0, flags }
    }

    /// Makes sure that what the term is made of was initialised. Nothing comes back if it was not, whatever happens.
    pub(super) fn meant(&mut self, state: &mut State, term: &VarExpr, sink: &mut dyn Sink) -> Option<()> {
        for var in state.poisonous(term) {
            if state.get(var).is_undefined() {
                return None;
            }
            sink.assert(ne(super::ops::var(var), Expr::Const(POISON)), UNINITIALISED);
            state.cleanse(var);
        }
        state.check(term).ok()
    }

    pub(super) fn set(
        &mut self,
        state: &mut State,
        to: Var,
        term: &VarExpr,
        sink: &mut dyn Sink,
    ) -> Result<GoesOn> {
        if let Expr::Atom(from) = term {
            if *from != to {
                if state.get(*from).is_held() {
                    sink.assign(to, term.clone());
                }
                state.copy(to, *from);
            }
            return Ok(GoesOn::On);
        }
        if state.check(term).is_err() || self.meant(state, term, sink).is_none() {
            let defined = state.defined(term);
            let low = cut(term.clone(), defined);
            match absorbed(term) {
                Some(number) => state.put(to, Value::constant(number)),
                // The low bits are made of low bits alone.
                None if (1..64).contains(&defined) && self.meant(state, &low, sink).is_some() => {
                    self.define(state, to, &low, sink);
                    let value = state.get(to);
                    if !value.is_undefined() {
                        state.put(to, Value { defined, ..value });
                    }
                }
                None => state.put(to, Value::undefined()),
            }
            return Ok(GoesOn::On);
        }
        self.define(state, to, term, sink);
        Ok(GoesOn::On)
    }

    /// The variable gets what the term is, which somebody knows.
    fn define(&mut self, state: &mut State, to: Var, term: &VarExpr, sink: &mut dyn Sink) {
        let Ok(numbers) = state.numbers(term) else { return state.put(to, Value::undefined()) };
        if let Some(number) = numbers.constant() {
            return state.put(to, Value::constant(number));
        }
        let short = state.simplified(term);
        match short {
            // What is short holds nothing above, and now all of it is meant.
            Expr::Atom(from) if from == to => state.limit(to, Value::of(numbers)),
            Expr::Atom(from) => {
                sink.assign(to, short);
                state.copy(to, from);
                state.limit(to, Value::of(numbers));
            }
            short => {
                sink.assign(to, short);
                state.put(to, Value::of(numbers));
            }
        }
    }

    fn set_low(
        &mut self,
        state: &mut State,
        to: Var,
        bits: u8,
        value: &VarExpr,
        sink: &mut dyn Sink,
    ) -> Result<GoesOn> {
        let old = state.get(to);
        if state.check(value).is_err() {
            if !old.is_undefined() {
                state.put(to, Value::undefined());
            }
            return Ok(GoesOn::On);
        }
        // What may be uninitialised is not merged with.
        if old.poison || old.defined <= bits {
            let flow = self.set(state, to, value, sink)?;
            let new = state.get(to);
            if !new.is_undefined() {
                state.put(to, Value { defined: bits, ..new });
            }
            return Ok(flow);
        }
        let defined = old.defined;
        if defined < 64 {
            // What is not meant is 0 here.
            state.put(to, Value { defined: 64, ..old });
        }
        let merged = or(and(var(to), constant(!mask(bits))), value.clone());
        let flow = self.set(state, to, &merged, sink)?;
        if defined < 64 {
            let new = state.get(to);
            state.put(to, Value { defined, ..new });
        }
        Ok(flow)
    }
}

pub(super) const UNINITIALISED: &str = "what was never initialised decides here";

/// What the term is, whatever the number is that nobody knows.
fn absorbed(term: &VarExpr) -> Option<u64> {
    let Expr::Binary(op, a, b) = term else { return None };
    match (op, &**a, &**b) {
        (BinOp::BitAnd, _, Expr::Const(0)) => Some(0),
        (BinOp::BitOr, _, Expr::Const(-1)) => Some(u64::MAX),
        (BinOp::BitOr, Expr::Binary(BinOp::BitAnd, _, m), Expr::Const(c)) if **m == Expr::Const(*c) => {
            Some(*c as u64)
        }
        _ => None,
    }
}

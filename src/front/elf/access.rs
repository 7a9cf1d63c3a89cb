//! What does a thread do to memory? Its own is in slots, which are registers of the translation; what others touch too
//! is in cells. Which of the two it is, and what follows, is one algorithm and so one file.

mod special;

use super::bytes::Kind;
use super::exec::{CodePlace, Exec, GoesOn, UNINITIALISED};
use super::facts::AccessKind;
use super::ops::*;
use super::refusal::{Refusal, Result};
use super::sink::{RmwChange, Silent, Sink};
use super::state::State;
use super::value::{Numbers, POISON, Value};
use crate::model::{BinOp, Expr};

/// What is done with each of a few numbers.
type ForEach<'f, E> = dyn Fn(&mut E, &mut State, u64, &mut dyn Sink) -> Result<GoesOn> + 'f;

/// An access, and what it needs.
pub(super) enum MemoryTouch<'t> {
    Load(Var),
    Store(&'t VarExpr),
    Locked(Var, &'t New),
}

impl MemoryTouch<'_> {
    fn kind(&self) -> AccessKind {
        match self {
            MemoryTouch::Load(_) => AccessKind::Load,
            MemoryTouch::Store(_) => AccessKind::Store,
            MemoryTouch::Locked(..) => AccessKind::Locked,
        }
    }
}

impl Exec<'_, '_> {
    /// An access to one of the addresses that the term can be.
    pub(super) fn access(
        &mut self,
        place: CodePlace,
        state: &mut State,
        addr: &VarExpr,
        bytes: u8,
        access: &MemoryTouch,
        sink: &mut dyn Sink,
    ) -> Result<GoesOn> {
        if self.meant(state, addr, sink).is_none() {
            sink.assert(constant(0), UNINITIALISED);
            return Ok(GoesOn::Ended);
        }
        let numbers = state.numbers(addr).map_err(|_| Refusal::new(UNINITIALISED).at(place.address))?;
        match numbers {
            Numbers::Few(few) => {
                let act = |exec: &mut Self, state: &mut State, at: u64, sink: &mut dyn Sink| {
                    exec.access_at(place, state, at, bytes, access, sink)
                };
                self.one_of(state, addr, &few, sink, &act)
            }
            Numbers::Range(lo, hi) => {
                let why =
                    format!("the address of a memory access is not known: anything from {lo:#x} to {hi:#x}");
                let help = "loops over arrays need bounds that are known, of at most 32 elements";
                Err(Refusal::new(why).at(place.address).help(help))
            }
        }
    }

    /// Does something with a number that is one of a few, each in turn.
    pub(super) fn one_of(
        &mut self,
        state: &mut State,
        term: &VarExpr,
        few: &[u64],
        sink: &mut dyn Sink,
        act: &ForEach<Self>,
    ) -> Result<GoesOn> {
        if let [one] = few {
            return act(self, state, *one, sink);
        }
        let short = state.simplified(term);
        let mut ends: Vec<(u64, State)> = Vec::new();
        let mut joined: Option<State> = None;
        for at in few {
            let mut way = state.clone();
            if !way.refine(&eq(short.clone(), constant(*at))) {
                continue;
            }
            ends.push((*at, way.clone()));
            if act(self, &mut way, *at, &mut Silent)? == GoesOn::On {
                joined = Some(match joined {
                    Some(before) => before.join(&way, self.memory),
                    None => way,
                });
            }
        }
        let (here, after) = (sink.here(), sink.fresh());
        // Nothing else can be, or what is known is wrong: that is not to be passed over in silence.
        sink.assume(none_of(&short, ends.iter().map(|(at, _)| *at)));
        sink.assert(constant(0), "an address that was thought to be impossible");
        for (at, mut way) in ends {
            sink.go(here);
            sink.assume(eq(short.clone(), constant(at)));
            if act(self, &mut way, at, sink)? == GoesOn::On
                && let Some(joined) = &joined
            {
                self.convert(&way, joined, sink);
                sink.jump(after);
            }
        }
        sink.go(after);
        match joined {
            Some(joined) => {
                *state = joined;
                Ok(GoesOn::On)
            }
            None => Ok(GoesOn::Ended),
        }
    }

    /// Registers get what they hold where the second state is, which is less precise.
    pub(super) fn convert(&self, from: &State, to: &State, sink: &mut dyn Sink) {
        for (var, wanted) in to.entries() {
            if !wanted.is_held() {
                continue;
            }
            if !from.has(var) && matches!(var, Var::Slot(..)) {
                let Var::Slot(at, bytes) = var else { continue };
                let (term, defined) = from.memory(at, bytes, self.memory);
                let value = from.value(&term, defined, 8 * bytes);
                let term = if value.is_undefined() { Expr::Const(POISON) } else { from.simplified(&term) };
                sink.assign(var, term);
                continue;
            }
            let value = from.get(var);
            let low = mask(wanted.defined);
            match value.known() {
                Some(number) => sink.assign(var, constant(number & low)),
                None if value.is_undefined() => sink.assign(var, Expr::Const(POISON)),
                None if wanted.defined < value.defined
                    && value.numbers.bounds().is_some_and(|(_, hi)| hi > low) =>
                {
                    sink.assign(var, and(super::ops::var(var), constant(low)));
                }
                None => {}
            }
        }
    }

    fn access_at(
        &mut self,
        place: CodePlace,
        state: &mut State,
        at: u64,
        bytes: u8,
        access: &MemoryTouch,
        sink: &mut dyn Sink,
    ) -> Result<GoesOn> {
        let kind = match self.memory.region(at) {
            Some(region) if self.memory.holds(at, u64::from(bytes)) => region.clone(),
            _ => {
                let why = match at {
                    0..0x1000 => format!("a null pointer is used: the address is {at:#x}"),
                    _ => format!("an access outside memory, at {at:#x}"),
                };
                sink.assert(constant(0), &why);
                return Ok(GoesOn::Ended);
            }
        };
        if kind.kind == Kind::Library {
            let name = self.world.image.libraries.range(..=at).next_back().map_or("?", |(_, name)| name);
            let why = format!("what `{name}` holds is not known: no file defines it");
            return Err(Refusal::new(why)
                .at(place.address)
                .help("give the object file or archive that defines it"));
        }
        if !kind.is_writable() && access.kind() != AccessKind::Load {
            sink.assert(constant(0), &format!("a constant is written, at {at:#x}"));
            return Ok(GoesOn::Ended);
        }
        if kind.kind == Kind::Heap && self.use_block(place, state, at, sink)? == GoesOn::Ended {
            return Ok(GoesOn::Ended);
        }
        if let Some(log) = &mut self.alone {
            log.touched.push((at, bytes, access.kind()));
            return self.access_alone(state, at, bytes, access);
        }
        if kind.is_writable() {
            self.facts.touch(self.thread, at, bytes, access.kind(), place.address);
        }
        match self.facts.is_shared(at, bytes) {
            true => self.access_shared(state, at, bytes, access, sink),
            false => self.access_own(state, at, bytes, access, sink),
        }
    }

    /// The term as it is stored: what nobody knows is poison.
    fn stored(&mut self, state: &mut State, term: &VarExpr, sink: &mut dyn Sink) -> (VarExpr, Value) {
        if let Expr::Atom(var) = term {
            let value = state.get(*var);
            let term = if value.is_undefined() { Expr::Const(POISON) } else { state.simplified(term) };
            return (term, Value { defined: 64, ..value });
        }
        if state.check(term).is_err() || self.meant(state, term, sink).is_none() {
            return match absorbed_by_mask(state, term) {
                Some(value) => value,
                None => (Expr::Const(POISON), Value::undefined()),
            };
        }
        match state.numbers(term) {
            Ok(numbers) => match numbers.constant() {
                Some(number) => (constant(number), Value::constant(number)),
                None => (state.simplified(term), Value::of(numbers)),
            },
            Err(_) => (Expr::Const(POISON), Value::undefined()),
        }
    }

    fn access_shared(
        &mut self,
        state: &mut State,
        at: u64,
        bytes: u8,
        access: &MemoryTouch,
        sink: &mut dyn Sink,
    ) -> Result<GoesOn> {
        match access {
            MemoryTouch::Load(dst) => {
                sink.load(*dst, at, bytes);
                let value = self.facts.load(at, bytes, self.memory);
                state.put(*dst, value);
            }
            MemoryTouch::Store(value) => {
                let (term, value) = self.stored(state, value, sink);
                self.facts.store(at, bytes, &value);
                sink.store(at, bytes, term);
            }
            MemoryTouch::Locked(dst, new) => {
                let old = self.facts.load(at, bytes, self.memory);
                let change = match new {
                    New::Swap(value) => {
                        let (term, value) = self.stored(state, value, sink);
                        self.facts.store(at, bytes, &value);
                        RmwChange::Swap(term)
                    }
                    New::Cas { old, .. } if self.meant(state, old, sink).is_none() => {
                        sink.assert(constant(0), UNINITIALISED);
                        return Ok(GoesOn::Ended);
                    }
                    New::Cas { old, new } => {
                        let (old, _) = self.stored(state, old, sink);
                        let (new, value) = self.stored(state, new, sink);
                        self.facts.store(at, bytes, &value);
                        RmwChange::Cas { old, new }
                    }
                    New::Update(new) if !self.is_meant_apart_from_old(state, new, bytes, sink) => {
                        self.facts.store(at, bytes, &Value::undefined());
                        RmwChange::Swap(Expr::Const(POISON))
                    }
                    New::Update(new) => {
                        state.put(Var::Old, Value { poison: false, ..old.clone() });
                        let numbers = state.numbers(new).unwrap_or(Numbers::all(8 * bytes));
                        self.facts.store(at, bytes, &Value::of(numbers));
                        // Whatever is found: not the one number that is known now.
                        let held = Numbers::all(8 * bytes);
                        state.put(
                            Var::Old,
                            Value::of(old.numbers.bounds().map_or(held.clone(), |(lo, hi)| {
                                if lo == hi { held } else { Numbers::Range(lo, hi) }
                            })),
                        );
                        let term = state.simplified(new);
                        state.remove(Var::Old);
                        RmwChange::Update(term)
                    }
                };
                sink.locked(*dst, at, bytes, change);
                state.put(*dst, old);
            }
        }
        Ok(GoesOn::On)
    }

    /// Was what the term is made of initialised, whatever a locked instruction finds?
    fn is_meant_apart_from_old(
        &mut self,
        state: &mut State,
        term: &VarExpr,
        bytes: u8,
        sink: &mut dyn Sink,
    ) -> bool {
        state.put(Var::Old, Value::of(Numbers::all(8 * bytes)));
        let meant = self.meant(state, term, sink).is_some();
        state.remove(Var::Old);
        meant
    }

    pub(super) fn access_own(
        &mut self,
        state: &mut State,
        at: u64,
        bytes: u8,
        access: &MemoryTouch,
        sink: &mut dyn Sink,
    ) -> Result<GoesOn> {
        match access {
            MemoryTouch::Load(dst) => self.load_own(state, *dst, at, bytes, sink),
            MemoryTouch::Store(value) => {
                let target = Var::Slot(at, bytes);
                if let Expr::Atom(from) = state.simplified(value)
                    && from == target
                {
                    return Ok(GoesOn::On);
                }
                // Pieces of the old may be in the way, and may be what is stored.
                let kept = Var::Temp(u8::MAX);
                self.set(state, kept, value, sink)?;
                self.split(state, at, bytes, sink);
                self.set(state, target, &var(kept), sink)?;
                if !state.has(target) {
                    state.put(target, Value::undefined());
                }
                state.remove(kept);
                Ok(GoesOn::On)
            }
            MemoryTouch::Locked(dst, new) => {
                // Nobody else looks, but the thread waits until its stores are done.
                sink.fence();
                let value = match new {
                    New::Swap(value) => (*value).clone(),
                    New::Update(value) => value.map_atoms(&|v| if *v == Var::Old { *dst } else { *v }),
                    New::Cas { old, new } => choose(eq(var(*dst), old.clone()), new.clone(), var(*dst)),
                };
                self.load_own(state, *dst, at, bytes, sink)?;
                self.access_own(state, at, bytes, &MemoryTouch::Store(&value), sink)
            }
        }
    }

    fn load_own(
        &mut self,
        state: &mut State,
        dst: Var,
        at: u64,
        bytes: u8,
        sink: &mut dyn Sink,
    ) -> Result<GoesOn> {
        let (term, defined) = state.memory(at, bytes, self.memory);
        if defined == 0 {
            state.put(dst, Value::undefined());
            return Ok(GoesOn::On);
        }
        self.set(state, dst, &term, sink)?;
        if defined < 8 * bytes {
            let value = state.get(dst);
            if !value.is_undefined() {
                state.limit(dst, Value { defined, ..value });
            }
        }
        Ok(GoesOn::On)
    }

    /// Slots that only partly share bytes with these are cut.
    fn split(&mut self, state: &mut State, at: u64, bytes: u8, sink: &mut dyn Sink) {
        let end = at + u64::from(bytes);
        for (start, size) in state.slots(at, u64::from(bytes)) {
            if (start, size) == (at, bytes) {
                continue;
            }
            let upto = start + u64::from(size);
            let rests = [(start, at.max(start)), (end.min(upto), upto)];
            for (from, to) in rests.into_iter().filter(|(from, to)| from < to) {
                let piece = Var::Slot(from, (to - from) as u8);
                let (term, defined) = state.memory(from, (to - from) as u8, self.memory);
                let value = state.value(&term, defined, 8 * (to - from) as u8);
                if value.is_held() {
                    sink.assign(piece, state.simplified(&term));
                }
                state.put(piece, value);
            }
            state.remove(Var::Slot(start, size));
        }
    }

    /// All memory is bytes that are known, or are not.
    fn access_alone(
        &mut self,
        state: &mut State,
        at: u64,
        bytes: u8,
        access: &MemoryTouch,
    ) -> Result<GoesOn> {
        let found = self.found_alone(at, bytes);
        let mut put = |state: &mut State, term: &VarExpr| {
            let value = state.meaning(term);
            for n in 0..u64::from(bytes) {
                match value.known() {
                    Some(number) if 8 * n < u64::from(value.defined) => {
                        self.memory.set(at + n, (number >> (8 * n)) as u8)
                    }
                    _ => self.memory.forget(at + n),
                }
            }
        };
        match access {
            MemoryTouch::Load(dst) => state.put(*dst, found),
            MemoryTouch::Store(value) => put(state, value),
            MemoryTouch::Locked(dst, new) => {
                let value = match new {
                    New::Swap(value) => value.clone(),
                    New::Update(value) => {
                        state.put(Var::Old, found.clone());
                        value.clone()
                    }
                    New::Cas { old, new } => {
                        state.put(Var::Old, found.clone());
                        choose(eq(var(Var::Old), old.clone()), new.clone(), var(Var::Old))
                    }
                };
                put(state, &value);
                state.remove(Var::Old);
                state.put(*dst, found);
            }
        }
        Ok(GoesOn::On)
    }

    fn found_alone(&self, at: u64, bytes: u8) -> Value {
        let known = (0..bytes).take_while(|n| self.memory.get(at + u64::from(*n)).is_some()).count() as u8;
        match self.memory.number(at, known) {
            Some(_) if known == 0 => Value::undefined(),
            Some(number) if known == bytes => Value::constant(number),
            Some(number) => Value { defined: 8 * known, ..Value::constant(number) },
            None => Value::undefined(),
        }
    }
}

/// The term is none of these.
pub(super) fn none_of(term: &VarExpr, numbers: impl Iterator<Item = u64>) -> VarExpr {
    let others = numbers.map(|number| ne(term.clone(), constant(number)));
    others.reduce(both).unwrap_or(constant(1))
}

/// The low bits of a variable of which fewer are meant than are stored.
fn absorbed_by_mask(state: &State, term: &VarExpr) -> Option<(VarExpr, Value)> {
    let Expr::Binary(BinOp::BitAnd, a, _) = term else { return None };
    let Expr::Atom(from) = &**a else { return None };
    let value = state.get(*from);
    (!value.is_undefined()).then(|| (state.simplified(&var(*from)), Value { defined: 64, ..value }))
}

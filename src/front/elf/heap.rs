//! What becomes of memory that is given back? Each block has a word that says whether it is in use, beside the heap.
//!
//! Whoever uses a block that may be given back looks at its word first, and whoever gives it back writes it: both as
//! the rest of the program does, by plain loads and stores, so that no fence comes from here that a real library may
//! not have. A thread that gives a block back chooses at once who may get it next. So nobody else looks for it,
//! taking it needs no locked instruction, and yet every way in which blocks can go from thread to thread is there.
//! What was in the block is nobody's any more once it is taken.

use super::access::MemoryTouch;
use super::exec::{CodePlace, Exec, GoesOn, UNINITIALISED};
use super::facts::{AccessKind, HeapBlock};
use super::ops::*;
use super::refusal::{Refusal, Result};
use super::sink::{Silent, Sink};
use super::state::State;
use super::threads;
use super::value::{Numbers, Value};
use std::collections::BTreeSet;

/// What becomes of memory that is given back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reuse {
    /// It is given out again to whoever wants a block of the same size, or is not.
    #[default]
    Reuse,
    /// No address is given out twice.
    Fresh,
}

/// The word of a block that is in use.
const USED: u64 = 0;
/// The word of a block that nobody will get.
const FREED: u64 = 1;
const WORD: Var = Var::Temp(u8::MAX - 3);
const CHOICE: Var = Var::Temp(u8::MAX - 4);

/// The word of a block that this thread may get.
fn for_thread(thread: u16) -> u64 {
    2 + u64::from(thread)
}

impl Exec<'_, '_> {
    fn word(&self, block: u64) -> u64 {
        block + threads::words_behind(self.world.heap)
    }

    /// The block may have been given back: then it is an error to use it.
    pub(super) fn use_block(
        &mut self,
        place: CodePlace,
        state: &mut State,
        at: u64,
        sink: &mut dyn Sink,
    ) -> Result<GoesOn> {
        if let Some(log) = &mut self.alone
            && let Some(block) = self.facts.block_around(at)
        {
            log.touched.push((block + threads::words_behind(self.world.heap), 8, AccessKind::Load));
        }
        match self.facts.freed(at) {
            Some(block) => self.in_use(place, state, block, "memory is used that has been given back", sink),
            None => Ok(GoesOn::On),
        }
    }

    fn in_use(
        &mut self,
        place: CodePlace,
        state: &mut State,
        block: u64,
        why: &str,
        sink: &mut dyn Sink,
    ) -> Result<GoesOn> {
        let word = self.word(block);
        if self.alone.is_some() {
            let used = self.memory.number(word, 8) == Some(USED);
            return Ok(if used { GoesOn::On } else { GoesOn::Ended });
        }
        self.access(place, state, &constant(word), 8, &MemoryTouch::Load(WORD), sink)?;
        let used = state.simplified(&eq(var(WORD), constant(USED)));
        if used != constant(1) {
            sink.assert(used.clone(), why);
        }
        let on = state.refine(&used);
        state.remove(WORD);
        Ok(if on { GoesOn::On } else { GoesOn::Ended })
    }

    /// A new block, or one that was given back. Nothing comes back if a thread that is alone cannot do it.
    pub(super) fn allocate(
        &mut self,
        place: CodePlace,
        state: &mut State,
        request: &BlockRequest,
        sink: &mut dyn Sink,
    ) -> Result<Option<GoesOn>> {
        let BlockRequest { dst, fresh, length, class } = request;
        let few = |state: &State, term: &VarExpr| match state.numbers(term) {
            Ok(Numbers::Few(few)) => few,
            _ => vec![],
        };
        let classes = few(state, class);
        let class = if let [one] = classes[..] { Some(one) } else { None };
        let bytes = few(state, length).last().copied().unwrap_or(0);
        for at in few(state, fresh) {
            self.facts.allocated(at, HeapBlock { bytes, class });
        }
        self.set(state, *dst, fresh, sink)?;
        let Some(class) = class.filter(|_| self.world.reuse == Reuse::Reuse) else {
            return Ok(Some(GoesOn::On));
        };
        let others = self.facts.freed_of(class);
        let own = |at: &u64| self.memory.number(self.word(*at), 8) == Some(for_thread(self.thread));
        let has_own = others.iter().any(own);
        if let Some(log) = &mut self.alone {
            log.asked.push(class);
            return Ok((!has_own).then_some(GoesOn::On));
        }
        self.facts.takes(self.thread, class);
        if !others.is_empty() {
            self.take(place, state, *dst, &others, sink)?;
        }
        Ok(Some(GoesOn::On))
    }

    /// One of these blocks perhaps, instead of the one that is there.
    fn take(
        &mut self,
        place: CodePlace,
        state: &mut State,
        dst: Var,
        blocks: &[u64],
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let mut joined = state.clone();
        let mut possible = Vec::new();
        for block in blocks {
            let mut looked = state.clone();
            let is_own = self.look(place, &mut looked, *block, &mut Silent)?;
            let mut got = looked.clone();
            if got.refine(&is_own) {
                self.claim(place, &mut got, dst, *block, &mut Silent)?;
                looked.remove(WORD);
                joined = joined.join(&got, self.memory).join(&looked, self.memory);
                possible.push(*block);
            }
        }
        let (here, after) = (sink.here(), sink.fresh());
        self.convert(state, &joined, sink);
        sink.jump(after);
        for block in possible {
            sink.go(here);
            let mut got = state.clone();
            let is_own = self.look(place, &mut got, block, sink)?;
            let there = sink.here();
            // It is not there for this thread: then the new block it is, so that nobody is stuck.
            let mut missed = got.clone();
            if missed.refine(&negated(is_own.clone())) {
                sink.assume(negated(is_own.clone()));
                missed.remove(WORD);
                self.convert(&missed, &joined, sink);
                sink.jump(after);
                sink.go(there);
            }
            got.refine(&is_own);
            sink.assume(is_own);
            self.claim(place, &mut got, dst, block, sink)?;
            self.convert(&got, &joined, sink);
            sink.jump(after);
        }
        sink.go(after);
        *state = joined;
        Ok(())
    }

    /// Is the block there for this thread?
    fn look(
        &mut self,
        place: CodePlace,
        state: &mut State,
        block: u64,
        sink: &mut dyn Sink,
    ) -> Result<VarExpr> {
        let word = constant(self.word(block));
        self.access(place, state, &word, 8, &MemoryTouch::Load(WORD), sink)?;
        Ok(state.simplified(&eq(var(WORD), constant(for_thread(self.thread)))))
    }

    /// The thread gets the block.
    fn claim(
        &mut self,
        place: CodePlace,
        state: &mut State,
        dst: Var,
        block: u64,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        state.remove(WORD);
        let word = constant(self.word(block));
        self.access(place, state, &word, 8, &MemoryTouch::Store(&constant(USED)), sink)?;
        self.forget(state, block, sink)?;
        state.put(dst, Value::constant(block));
        Ok(())
    }

    /// Nobody knows what is in the block.
    fn forget(&mut self, state: &mut State, block: u64, sink: &mut dyn Sink) -> Result<()> {
        let bytes = self.facts.block(block).map_or(0, |b| b.bytes);
        self.world.limits.spend(bytes as usize)?;
        self.facts.taken(self.thread, block);
        sink.forget(block, bytes);
        let nothing = nobody();
        for at in (block..block + bytes).step_by(8) {
            let length = (block + bytes - at).min(8) as u8;
            let initial = (0..u64::from(length)).any(|n| self.memory.get(at + n).is_some());
            if initial || !state.slots(at, u64::from(length)).is_empty() {
                self.access_own(state, at, length, &MemoryTouch::Store(&nothing), sink)?;
            }
        }
        Ok(())
    }

    /// A block is given back. Nothing comes back if a thread that is alone cannot do it.
    pub(super) fn free(
        &mut self,
        place: CodePlace,
        state: &mut State,
        at: &VarExpr,
        sink: &mut dyn Sink,
    ) -> Result<Option<GoesOn>> {
        if self.meant(state, at, sink).is_none() {
            sink.assert(constant(0), UNINITIALISED);
            return Ok(Some(GoesOn::Ended));
        }
        let Ok(Numbers::Few(few)) = state.numbers(at) else {
            return Err(Refusal::new("which memory is given back is not known").at(place.address));
        };
        if self.alone.is_some() {
            return Ok(few.first().and_then(|one| self.free_alone(*one)));
        }
        let one = |exec: &mut Self, state: &mut State, block: u64, sink: &mut dyn Sink| {
            exec.free_one(place, state, block, sink)
        };
        self.one_of(state, at, &few, sink, &one).map(Some)
    }

    fn free_one(
        &mut self,
        place: CodePlace,
        state: &mut State,
        block: u64,
        sink: &mut dyn Sink,
    ) -> Result<GoesOn> {
        if block == 0 {
            return Ok(GoesOn::On);
        }
        let Some(HeapBlock { class, .. }) = self.facts.block(block) else {
            sink.assert(constant(0), "what is given back is no block that was allocated");
            return Ok(GoesOn::Ended);
        };
        self.facts.free(block);
        self.facts.gives(self.thread, class);
        if self.in_use(place, state, block, "memory is given back twice", sink)? == GoesOn::Ended {
            return Ok(GoesOn::Ended);
        }
        let takers = class.map_or_else(BTreeSet::new, |class| self.facts.takers(class));
        let next = match (takers.first(), takers.last()) {
            (Some(one), Some(last)) if one == last => constant(for_thread(*one)),
            (Some(first), Some(last)) => {
                let (lo, hi) = (for_thread(*first), for_thread(*last));
                sink.any(CHOICE, lo as i64, hi as i64);
                state.put(CHOICE, Value::of(Numbers::Range(0, u64::MAX).within(lo, hi)));
                var(CHOICE)
            }
            _ => constant(FREED),
        };
        let word = constant(self.word(block));
        let flow = self.access(place, state, &word, 8, &MemoryTouch::Store(&next), sink);
        state.remove(CHOICE);
        flow
    }

    /// What `main` gives back while it is alone, it alone may get.
    fn free_alone(&mut self, block: u64) -> Option<GoesOn> {
        if block == 0 {
            return Some(GoesOn::On);
        }
        let HeapBlock { bytes, class } = self.facts.block(block)?;
        let word = self.word(block);
        let log = self.alone.as_mut()?;
        if self.memory.number(word, 8) != Some(USED) || log.frees == 0 {
            return None;
        }
        log.frees -= 1;
        log.touched.push((word, 8, AccessKind::Store));
        log.touched.extend((0..bytes).map(|n| (block + n, 1, AccessKind::Store)));
        self.memory.write_number(word, for_thread(self.thread), 8);
        self.facts.free(block);
        self.facts.given_back_alone(class);
        Some(GoesOn::On)
    }
}

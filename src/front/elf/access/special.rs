//! What do operations do that more than terms are needed for? Threads are created, and blocks copied or filled.

use super::super::exec::{CodePlace, Creation, Exec, GoesOn, UNINITIALISED};
use super::super::facts::AccessKind;
use super::super::ops::*;
use super::super::refusal::{Refusal, Result};
use super::super::sink::Sink;
use super::super::state::State;
use super::super::threads;
use super::super::value::{Numbers, Value};
use super::MemoryTouch;
use crate::model::BinOp;

/// Longer blocks are not copied piece by piece.
const LONGEST_BLOCK: u64 = 1 << 16;

impl Exec<'_, '_> {
    /// What more than terms is needed for. Nothing comes back if a thread that is alone cannot do it.
    pub(in super::super) fn special(
        &mut self,
        place: CodePlace,
        state: &mut State,
        special: &Special,
        sink: &mut dyn Sink,
    ) -> Result<Option<GoesOn>> {
        let one = |state: &State, term: &VarExpr, what: &str| {
            let why = format!("{what} is not known");
            state.number(term).ok_or_else(|| Refusal::new(why).at(place.address))
        };
        let flow = match special {
            Special::Create { handle, function, argument } => {
                let function = one(state, function, "the function of the thread that is created")?;
                let argument = match state.check(argument) {
                    Ok(()) => one(state, argument, "the argument of the thread that is created")?,
                    Err(_) => 0,
                };
                let own = (self.created)(Creation { place, function, argument })?;
                self.access(place, state, handle, 8, &MemoryTouch::Store(&constant(own)), sink)?;
                let start = own + threads::START;
                if self.alone.is_some() {
                    self.memory.write_number(start, 1, 8);
                    return Ok(Some(GoesOn::On));
                }
                let (old, swap) = (Var::Temp(u8::MAX - 1), New::Swap(constant(1)));
                self.access(place, state, &constant(start), 8, &MemoryTouch::Locked(old, &swap), sink)?
            }
            Special::Allocate(request) => return self.allocate(place, state, request, sink),
            Special::Free(at) => return self.free(place, state, at, sink),
            Special::Copy { to, from, length } => {
                let length = one(state, length, "the number of bytes that are copied")?;
                self.copy(place, state, to, from, length, sink)?
            }
            Special::Fill { to, byte, length } => {
                let length = one(state, length, "the number of bytes that are filled")?;
                self.fill(place, state, to, byte, length, sink)?
            }
            Special::Assume(condition) => {
                if self.alone.is_some() {
                    return Ok(None);
                }
                if self.meant(state, condition, sink).is_none() {
                    sink.assert(constant(0), UNINITIALISED);
                    return Ok(Some(GoesOn::Ended));
                }
                sink.assume(state.simplified(condition));
                if state.refine(&state.simplified(condition)) { GoesOn::On } else { GoesOn::Ended }
            }
            Special::Length { dst, at } => {
                let at = one(state, at, "the address of the text")?;
                let length = self.memory.text(at).map(|text| text.len() as u64);
                let why = "the length of the text is not known";
                let length = length.ok_or_else(|| Refusal::new(why).at(place.address))?;
                state.put(*dst, Value::constant(length));
                GoesOn::On
            }
            Special::Halves { .. } => GoesOn::On,
            Special::BlockLength { dst, at, most } => {
                let block = one(state, at, "which memory is made larger or smaller")?;
                let most = one(state, most, "the number of bytes that are asked for")?;
                let length = self.facts.block(block).map_or(0, |block| block.bytes.min(most));
                state.put(*dst, Value::constant(length));
                GoesOn::On
            }
            Special::Refuse(why, help) => {
                let refusal = Refusal::new(why.clone()).at(place.address);
                return Err(match help {
                    Some(help) => refusal.help(help.clone()),
                    None => refusal,
                });
            }
        };
        Ok(Some(flow))
    }

    /// Can other threads tell in which order the halves of sixteen bytes are accessed?
    pub(in super::super) fn tells_halves(
        &self,
        place: CodePlace,
        state: &State,
        at: &VarExpr,
    ) -> Result<bool> {
        let Ok(Numbers::Few(starts)) = state.numbers(at) else { return Ok(false) };
        if self.alone.is_some() {
            return Ok(false);
        }
        let halves = |start: &u64| [*start, start.wrapping_add(8)];
        let tells = |start: &u64| halves(start).iter().all(|half| self.facts.is_shared(*half, 8));
        if !starts.iter().any(tells) {
            return Ok(false);
        }
        if starts.iter().any(|start| start % 8 != 0) {
            self.unshared(place, state, at, 16)?;
        }
        Ok(true)
    }

    /// Refuses a block that other threads touch, and that is not accessed at once.
    fn unshared(&self, place: CodePlace, state: &State, at: &VarExpr, length: u64) -> Result<()> {
        let starts = match state.numbers(at) {
            Ok(Numbers::Few(few)) => few,
            // The access itself is refused.
            _ => return Ok(()),
        };
        for start in starts {
            let shared = (0..length).find(|n| self.facts.is_shared(start.wrapping_add(*n), 1));
            if let Some(offset) = shared {
                let at = super::super::layout::name(start + offset, self.memory, self.world.image);
                let why =
                    format!("`{at}` is accessed in a block of {length} bytes, and by other threads as well");
                let help = "how such a block is cut is not known: access it in eight bytes or fewer (-fno-tree-vectorize)";
                return Err(Refusal::new(why).at(place.address).help(help));
            }
        }
        Ok(())
    }

    fn copy(
        &mut self,
        place: CodePlace,
        state: &mut State,
        to: &VarExpr,
        from: &VarExpr,
        length: u64,
        sink: &mut dyn Sink,
    ) -> Result<GoesOn> {
        let pieces = self.pieces(place, length)?;
        // All of it is read before any of it is written: blocks may overlap.
        if self.alone.is_some() {
            let (Some(to), Some(from)) = (state.number(to), state.number(from)) else {
                return Ok(GoesOn::Ended);
            };
            for at in [to, from] {
                let held = self.memory.holds(at, length);
                if !held || self.use_block(place, state, at, sink)? == GoesOn::Ended {
                    return Ok(GoesOn::Ended);
                }
            }
            if let Some(log) = &mut self.alone {
                log.touched.extend(
                    (0..length)
                        .flat_map(|n| [(from + n, 1, AccessKind::Load), (to + n, 1, AccessKind::Store)]),
                );
            }
            let bytes: Vec<Option<u8>> = (0..length).map(|n| self.memory.get(from + n)).collect();
            for (n, byte) in bytes.into_iter().enumerate() {
                match byte {
                    Some(byte) => self.memory.set(to + n as u64, byte),
                    None => self.memory.forget(to + n as u64),
                }
            }
            return Ok(GoesOn::On);
        }
        for at in [to, from] {
            self.unshared(place, state, at, length)?;
        }
        let mut held = Vec::new();
        for (n, (offset, bytes)) in pieces.iter().enumerate() {
            let Some(number) = u8::try_from(n + 64).ok().filter(|number| *number < 200) else {
                return Err(
                    Refusal::new("a block of this size is copied while other threads run").at(place.address)
                );
            };
            let temp = Var::Temp(number);
            let at = add(from.clone(), constant(*offset));
            if self.access(place, state, &at, *bytes, &MemoryTouch::Load(temp), sink)? == GoesOn::Ended {
                return Ok(GoesOn::Ended);
            }
            held.push(temp);
        }
        for ((offset, bytes), temp) in pieces.iter().zip(held) {
            let at = add(to.clone(), constant(*offset));
            if self.access(place, state, &at, *bytes, &MemoryTouch::Store(&var(temp)), sink)? == GoesOn::Ended
            {
                return Ok(GoesOn::Ended);
            }
        }
        Ok(GoesOn::On)
    }

    fn fill(
        &mut self,
        place: CodePlace,
        state: &mut State,
        to: &VarExpr,
        byte: &VarExpr,
        length: u64,
        sink: &mut dyn Sink,
    ) -> Result<GoesOn> {
        self.unshared(place, state, to, length)?;
        let word = binary(BinOp::Mul, cut(byte.clone(), 8), constant(0x0101_0101_0101_0101));
        for (offset, bytes) in self.pieces(place, length)? {
            let at = add(to.clone(), constant(offset));
            let value = cut(word.clone(), 8 * bytes);
            if self.access(place, state, &at, bytes, &MemoryTouch::Store(&value), sink)? == GoesOn::Ended {
                return Ok(GoesOn::Ended);
            }
        }
        Ok(GoesOn::On)
    }

    /// A block in pieces: how far behind its beginning each is, and of how many bytes.
    fn pieces(&self, place: CodePlace, length: u64) -> Result<Vec<(u64, u8)>> {
        let most = if self.alone.is_some() { 1 << 24 } else { LONGEST_BLOCK };
        if length > most {
            return Err(Refusal::new(format!("a block of {length} bytes is too long")).at(place.address));
        }
        self.world.limits.spend(length as usize)?;
        let mut pieces: Vec<(u64, u8)> = (0..length / 8).map(|n| (8 * n, 8)).collect();
        let mut at = length / 8 * 8;
        for bytes in [4, 2, 1] {
            if length - at >= u64::from(bytes) {
                pieces.push((at, bytes));
                at += u64::from(bytes);
            }
        }
        Ok(pieces)
    }
}

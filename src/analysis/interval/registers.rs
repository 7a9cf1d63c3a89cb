//! What do the registers of a thread hold, at every location? Lists of intervals that grow, and share what is the
//! same.

use super::domain::Interval;
use crate::model::{Reg, Value};
use std::rc::Rc;

/// What the registers of a thread hold at a location, in pieces of which neighbouring locations share most.
#[derive(Clone, Debug)]
pub(super) struct Registers(Rc<[Rc<[Interval]>]>);

/// Registers of one piece.
pub(super) const PIECE: usize = 16;

impl Registers {
    pub(super) fn new(count: usize) -> Registers {
        let zero = [Interval::constant(0); PIECE];
        let starts = (0..count).step_by(PIECE);
        Registers(starts.map(|start| Rc::from(&zero[..PIECE.min(count - start)])).collect())
    }

    pub(super) fn pieces(&self) -> &[Rc<[Interval]>] {
        &self.0
    }

    pub(super) fn get(&self, r: Reg) -> Interval {
        self.0[r.index() / PIECE][r.index() % PIECE]
    }

    pub(super) fn set(&mut self, r: Reg, to: Interval) {
        if self.get(r) != to {
            Rc::make_mut(&mut Rc::make_mut(&mut self.0)[r.index() / PIECE])[r.index() % PIECE] = to;
        }
    }

    /// Joins others into these; whether they grew by that.
    pub(super) fn grow(&mut self, others: &Registers, widen: bool, thresholds: &[Value]) -> bool {
        let mut grown = false;
        for (k, (own, other)) in self.0.clone().iter().zip(&*others.0).enumerate() {
            if Rc::ptr_eq(own, other) {
                continue;
            }
            for (r, (o, n)) in own.iter().zip(&**other).enumerate() {
                let joined = grow(*o, *n, widen, thresholds);
                if joined != *o {
                    self.set(Reg((k * PIECE + r) as u16), joined);
                    grown = true;
                }
            }
        }
        grown
    }
}

/// The join, widened to the next threshold where it grows if `widen`.
pub(super) fn grow(old: Interval, new: Interval, widen: bool, thresholds: &[Value]) -> Interval {
    let mut joined = old.join(new);
    if widen && joined.lo < old.lo {
        let below = thresholds.partition_point(|&t| t <= joined.lo);
        joined.lo = if below > 0 { thresholds[below - 1] } else { Value::MIN };
    }
    if widen && joined.hi > old.hi {
        let above = thresholds.partition_point(|&t| t < joined.hi);
        joined.hi = thresholds.get(above).copied().unwrap_or(Value::MAX);
    }
    joined
}

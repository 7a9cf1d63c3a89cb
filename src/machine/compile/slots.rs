//! Where do values lie, and how many bits does each need in a stored state?
//!
//! A working state is a row of slots: per thread its location, the owner of the lock, registers, memory. A
//! slot whose value can vary in stored states has a field in the packed state, wide enough for the interval
//! that the analysis gives it. Where some values of a register can no longer be told apart, one value *stands
//! in* for them all.

use super::Compiler;
use super::compiled::{Fold, bits, lock_slot};
use super::visibility::named_cells;
use crate::analysis::access::{self, Access};
use crate::analysis::interval::Interval;
use crate::model::{Addr, Loc, Reg, ThreadId, Value};
use crate::query::Limit;
use crate::reach::pack::Layout;
use std::collections::BTreeMap;

/// What a register holds where it is live.
#[derive(Clone, Copy, Default)]
struct Held {
    values: Option<Interval>,
    /// How many places that are.
    places: usize,
}

impl Compiler<'_> {
    /// Per slot the values it may hold in a stored state; `None` for registers that will not be read again.
    pub(super) fn slots(&self, numbering: &[Numbering]) -> Result<Vec<Option<Interval>>, Limit> {
        let threads = self.program.threads().len();
        let mut slots = Vec::with_capacity(self.memory + self.program.cells());
        slots.extend(numbering.iter().map(|n| Some(Interval { lo: 0, hi: n.points as Value - 1 })));
        let owners = if self.program.has_locks() { threads as Value } else { 0 };
        slots.push(Some(Interval { lo: 0, hi: owners }));
        for t in self.program.thread_ids() {
            let registers = self.program.thread(t).registers().len() as u16;
            let held = self.held(t, &numbering[t.index()])?;
            slots.extend((0..registers).map(|r| self.register(t, Reg(r), &held)));
        }
        let spoken = |a: usize| (!self.faint.is_faint_cell(a)).then(|| self.intervals.cell(a));
        slots.extend((0..self.program.cells()).map(spoken));
        if !self.reductions.packing {
            slots.iter_mut().flatten().for_each(|i| *i = Interval::FULL);
        }
        Ok(slots)
    }

    /// What a thread has to itself lies together.
    pub(super) fn layout(&self, slots: &[Option<Interval>]) -> Layout {
        let varying = |slot: usize| Some((slot, slots[slot]?));
        let thread = |t: ThreadId| {
            let base = self.register_base[t.index()];
            let registers = base..base + self.program.thread(t).registers().len();
            std::iter::once(t.index()).chain(registers).filter_map(varying).collect()
        };
        let others = std::iter::once(lock_slot(self.program.threads().len())).chain(self.memory..slots.len());
        let others = others.filter_map(varying).map(|slot| vec![slot]);
        Layout::new(self.program.thread_ids().map(thread).chain(others))
    }

    /// The cells that may be dead in a state: sets of them are exact, no goal names them, and they are not
    /// faint.
    pub(super) fn may_be_dead(&self) -> u64 {
        if !self.reductions.liveness || !access::is_exact(self.program) {
            return 0;
        }
        let named = named_cells(self.goal);
        let unnamed = (0..self.program.cells() as u32).filter(|&c| !named.contains(&Addr(c)));
        unnamed
            .filter(|&c| !self.faint.is_faint_cell(c as usize))
            .fold(0, |set, c| set | Access::write(c).writes)
    }

    /// The values of a register over all scheduling points where it is live; everywhere, if it is looked at
    /// or kept everywhere.
    fn register(&self, t: ThreadId, r: Reg, held: &[Held]) -> Option<Interval> {
        let values = held[r.index()].values;
        if !self.reductions.liveness || self.observed.is_register(t, r) {
            return Some(values.map_or(Interval::constant(0), |i| i.join(Interval::constant(0))));
        }
        match self.stand_ins[t.index()].get(&r) {
            Some(other) => values.map(|i| i.join(Interval::constant(*other))),
            None => values,
        }
    }

    /// Per register of the thread what it holds where it is live: at scheduling points, or anywhere if it is
    /// looked at or kept everywhere.
    fn held(&self, t: ThreadId, numbering: &Numbering) -> Result<Vec<Held>, Limit> {
        let thread = self.program.thread(t);
        let registers = thread.registers().len();
        let everywhere: Vec<bool> = (0..registers as u16)
            .map(|r| !self.reductions.liveness || self.observed.is_register(t, Reg(r)))
            .collect();
        let any = everywhere.contains(&true);
        let mut held = vec![Held::default(); registers];
        for loc in thread.locations() {
            let point = numbering.is_scheduling_point(loc);
            if !point && !any {
                continue;
            }
            let live = self.live.at(t, loc);
            self.limits.spend(1 + registers / 64)?;
            for r in live.iter().filter(|&r| point || everywhere[r]) {
                held[r].places += 1;
                if let Some(values) = self.intervals.register(t, loc, Reg(r as u16)) {
                    held[r].values = Some(held[r].values.map_or(values, |known| known.join(values)));
                }
            }
        }
        Ok(held)
    }

    /// Per register of the thread a value that it never has and is never compared with, to stand in for those
    /// which cannot be told apart; none for a register that would gain nothing by it.
    pub(super) fn stand_ins(
        &self,
        t: ThreadId,
        numbering: &Numbering,
    ) -> Result<BTreeMap<Reg, Value>, Limit> {
        let mut stand_ins = BTreeMap::new();
        if self.comparisons.is_nothing(t) {
            return Ok(stand_ins);
        }
        let held = self.held(t, numbering)?;
        for (r, constants) in self.comparisons.compared(t) {
            let Held { values: Some(values), places } = held[r.index()] else { continue };
            let live = |l: Loc| numbering.is_scheduling_point(l) && self.live.is_live(t, l, r);
            self.limits.spend(self.comparisons.places(t, r).len())?;
            let matters = self.comparisons.places(t, r).iter().filter(|(l, _)| live(*l));
            let few = |bits: u64| bits.count_ones() as u64 <= values.more();
            let gains = matters.clone().count() < places || matters.clone().any(|(_, bits)| few(*bits));
            let highest = constants.last().map_or(values.hi, |&c| values.hi.max(c));
            if let Some(other) = highest.checked_add(1).filter(|_| gains) {
                stand_ins.insert(r, other);
            }
        }
        Ok(stand_ins)
    }

    /// Registers of which some values can no longer be told apart at a location, out of those of a set.
    pub(super) fn folded(&self, t: ThreadId, loc: Loc, candidates: &[u64]) -> Vec<Fold> {
        let live: Vec<u64> = candidates.iter().zip(self.live.words(t, loc)).map(|(a, b)| a & b).collect();
        let one = |r: usize| {
            let (slot, r) = ((self.register_base[t.index()] + r) as u32, Reg(r as u16));
            let kept = self.comparisons.constants(t, loc, r)?;
            Some(Fold { slot, kept, other: self.stand_ins[t.index()][&r] })
        };
        bits(&live).filter_map(one).collect()
    }

    /// The initial working state.
    pub(super) fn initial(&self, numbering: &[Numbering]) -> Vec<Value> {
        let mut vals = vec![0; self.memory];
        for (t, thread) in self.program.threads().iter().enumerate() {
            vals[t] = numbering[t].node(thread.initial()) as Value;
        }
        vals.extend(self.program.initial_memory());
        vals
    }
}

/// The numbers of a thread's nodes: scheduling points first, then `trap` and `stuck`, then the rest.
pub(super) struct Numbering {
    pub nodes: Vec<u32>,
    /// How many there are, with `trap` and `stuck`.
    points: u32,
}

impl Numbering {
    pub(crate) fn new(is_point: &[bool]) -> Numbering {
        let points = is_point.iter().filter(|p| **p).count() as u32;
        let (mut next_point, mut next_other) = (0, points + 2);
        let number = |&p: &bool| {
            let next = if p { &mut next_point } else { &mut next_other };
            *next += 1;
            *next - 1
        };
        Numbering { nodes: is_point.iter().map(number).collect(), points: points + 2 }
    }

    pub(crate) fn node(&self, loc: Loc) -> u32 {
        self.nodes[loc.index()]
    }

    pub(crate) fn is_scheduling_point(&self, loc: Loc) -> bool {
        self.node(loc) < self.points
    }

    /// A fact about locations as one about nodes, with one for those beyond the program.
    pub(crate) fn spread<T: Copy>(&self, fact: &[T], beyond: T) -> Vec<T> {
        let mut nodes = vec![beyond; fact.len() + 2];
        for (node, fact) in self.nodes.iter().zip(fact) {
            nodes[*node as usize] = *fact;
        }
        nodes
    }

    pub(crate) fn trap(&self) -> u32 {
        self.points - 2
    }

    pub(crate) fn stuck(&self) -> u32 {
        self.points - 1
    }
}

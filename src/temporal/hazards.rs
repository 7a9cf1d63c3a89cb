//! Which writes of a run matter because they waited? Hazard intervals with an inconsistent access `[Havel12]`.
//!
//! A write waits from its step to the flush that takes it to memory. If meanwhile no other process touches
//! the element, and its own does not write it again, nobody could tell had it been atomic, or had the flush
//! come before any later step of its process. So of the others, at least one has to be prevented: its write
//! made atomic, or one of its process's steps while it waits made a barrier.

use crate::certify::DveRun;
use crate::dve::{Configuration, Direction, DveExpr, DveStep, Lvalue, Memory, Site, System};
use std::collections::{BTreeMap, BTreeSet};

/// A change to a model that runs with slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fix {
    /// This write is atomic.
    Atomic(Site),
    /// This transition, of this process, waits until all slots of the process are empty.
    Barrier(usize, usize),
}

/// A cycle is walked so often: what waits at its end is accessed in the next round or never.
const ROUNDS: usize = 3;

/// By process, variable and element.
type SlotId = (usize, usize, usize);

/// A write that waits, and what its process has done since.
struct Waiting {
    site: Site,
    taken: BTreeSet<(usize, usize)>,
    /// Has somebody accessed the element?
    hazard: bool,
}

/// The changes of which at least one is needed to prevent the run; up to the first state that must never be,
/// if that is what the run is against.
pub fn core(system: &System, memory: &Memory, run: &DveRun, never: Option<&DveExpr>) -> Vec<Fix> {
    let bad =
        |state: &Configuration| never.is_some_and(|e| state.value(system, None, e).is_ok_and(|v| v != 0));
    let line: Vec<usize> = match run.states.iter().position(bad) {
        Some(end) => (0..end).collect(),
        None => {
            let cycle = run.cycle_from.unwrap_or(run.steps.len())..run.steps.len();
            (0..run.steps.len()).chain((1..ROUNDS).flat_map(|_| cycle.clone())).collect()
        }
    };
    let mut walk = Hazards { system, memory, waiting: BTreeMap::new(), found: BTreeSet::new() };
    line.into_iter().for_each(|i| walk.step(&run.states[i], &run.steps[i]));
    let left: Vec<SlotId> = walk.waiting.keys().copied().collect();
    left.into_iter().for_each(|slot| walk.end(slot));
    walk.found.into_iter().collect()
}

struct Hazards<'a> {
    system: &'a System,
    memory: &'a Memory,
    waiting: BTreeMap<SlotId, Waiting>,
    found: BTreeSet<Fix>,
}

impl Hazards<'_> {
    fn step(&mut self, from: &Configuration, step: &DveStep) {
        match *step {
            DveStep::Stutter => {}
            DveStep::Flush { process, variable, element } => {
                // A flush is a write to memory, which others that wait for the same element come after.
                self.access(process, variable, Some(element));
                self.end((process, variable, element));
            }
            DveStep::Internal { process, transition } => self.transition(from, process, transition),
            DveStep::Handshake { sender: (p, t), receiver: (q, u) } => {
                self.transition(from, q, u);
                self.transition(from, p, t);
            }
        }
    }

    fn transition(&mut self, from: &Configuration, process: usize, transition: usize) {
        let t = self.system.transition(process, transition);
        for (_, waiting) in self.waiting.iter_mut().filter(|((p, ..), _)| *p == process) {
            waiting.taken.insert((process, transition));
        }
        let written: BTreeSet<usize> = t.targets().map(|place| place.variable).collect();
        let receives = matches!(t.sync.as_ref().map(|s| &s.direction), Some(Direction::Receive(_)));
        for expr in t.expressions() {
            expr.visit(&mut |part| {
                if let DveExpr::Read(place) = part {
                    let element = self.element(from, process, place, &written, receives);
                    self.access(process, place.variable, element);
                }
            });
        }
        for place in t.targets() {
            let variable = place.variable;
            if self.system.variables[variable].owner.is_some() {
                continue;
            }
            let element = self.element(from, process, place, &written, receives);
            self.access(process, variable, element);
            let all = match element {
                Some(element) => element..element + 1,
                None => 0..self.system.variables[variable].initial.len(),
            };
            for slot in all.map(|element| (process, variable, element)) {
                if let Some(before) = self.waiting.get_mut(&slot) {
                    before.hazard = true;
                }
                if element.is_some() {
                    self.end(slot);
                }
                if self.memory.delays(self.system, process, transition, variable) {
                    let site = Site { process, transition, variable };
                    let hazard = element.is_none();
                    self.waiting.entry(slot).or_insert(Waiting { site, taken: BTreeSet::new(), hazard });
                }
            }
        }
    }

    /// Which element a place is, if that is the same all through the transition.
    fn element(
        &self,
        from: &Configuration,
        process: usize,
        place: &Lvalue,
        written: &BTreeSet<usize>,
        receives: bool,
    ) -> Option<usize> {
        let Some(index) = &place.index else { return Some(0) };
        let mut changes = receives;
        index.visit(&mut |part| {
            if let DveExpr::Read(place) = part {
                changes |= written.contains(&place.variable);
            }
        });
        if changes {
            return None;
        }
        let value = from.value(self.system, Some(process), index).ok()?;
        self.system.element(place, Some(value)).ok()
    }

    /// A process touches an element, or one that is not known: whoever else waits for it has a hazard.
    fn access(&mut self, process: usize, variable: usize, element: Option<usize>) {
        for ((p, v, e), waiting) in &mut self.waiting {
            if *p != process && *v == variable && element.is_none_or(|element| element == *e) {
                waiting.hazard = true;
            }
        }
    }

    /// The slot is empty again, or holds a later write.
    fn end(&mut self, slot: SlotId) {
        let Some(Waiting { site, taken, hazard }) = self.waiting.remove(&slot) else { return };
        if hazard {
            self.found.insert(Fix::Atomic(site));
            self.found.extend(taken.into_iter().map(|(p, t)| Fix::Barrier(p, t)));
        }
    }
}

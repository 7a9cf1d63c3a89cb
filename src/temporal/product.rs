//! The model beside an observer: a graph whose cycles are runs that the observer accepts.
//!
//! A state is one of the model, with the state of the observer in a cell of its own. With every step of the
//! model the observer takes an edge that what it sees admits; where the model can do nothing any more it
//! stutters. States from which the observer cannot go on are left out. Beside the sets of the observer there
//! is one for each slot, if flushing is to be fair: those edges that leave a state in which it is empty.

use super::automaton::{Automaton, Letter};
use crate::dve::{DveExpr, DveStep, System};
use crate::machine::dve::{DveMachine, Proposition};
use crate::model::Value;
use crate::query::Limit;
use crate::reach::cycles::{MarkedGraph, Marks};
use std::ops::ControlFlow;

pub(crate) struct Product<'a> {
    machine: &'a DveMachine,
    automaton: &'a Automaton,
    propositions: Vec<Proposition>,
    /// Is each slot to be empty again and again?
    fair: bool,
    start: Vec<Value>,
}

/// A step of the model, and the name of the observer's edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ObservedStep {
    pub step: DveStep,
    pub edge: usize,
}

#[derive(Default)]
pub(crate) struct ProductScratch {
    base: Vec<Value>,
    work: Vec<Value>,
    message: Vec<Value>,
    words: Vec<u64>,
}

impl<'a> Product<'a> {
    /// From a state of the model on; the machine has a cell for the observer.
    pub(crate) fn new(
        system: &System,
        machine: &'a DveMachine,
        automaton: &'a Automaton,
        propositions: &[DveExpr],
        fair: bool,
        start: Vec<Value>,
    ) -> Result<Product<'a>, Limit> {
        let sets = automaton.sets + if fair { machine.slots() } else { 0 };
        if sets >= Marks::BITS as usize {
            return Err(Limit::ProgramSize(format!("there are {sets} acceptance sets")));
        }
        let propositions = propositions.iter().map(|e| machine.proposition(system, e)).collect();
        Ok(Product { machine, automaton, propositions, fair, start })
    }

    fn letter(&self, vals: &[Value]) -> Letter {
        let holds = |(i, p): (usize, &Proposition)| (self.machine.holds(p, vals) as Letter) << i;
        self.propositions.iter().enumerate().map(holds).sum()
    }

    fn empty_slots(&self, vals: &[Value]) -> Marks {
        if !self.fair {
            return 0;
        }
        let empty = (0..self.machine.slots()).filter(|&slot| self.machine.is_empty(slot, vals));
        empty.map(|slot| 1 << (self.automaton.sets + slot)).sum()
    }
}

impl MarkedGraph for Product<'_> {
    type Scratch = ProductScratch;
    type Step = ObservedStep;

    fn scratch(&self) -> ProductScratch {
        ProductScratch::default()
    }

    fn sets(&self) -> Marks {
        let slots = if self.fair { self.machine.slots() } else { 0 };
        self.automaton.all_marks() | ((1 << slots) - 1) << self.automaton.sets
    }

    fn roots(&self, scratch: &mut ProductScratch, each: &mut impl FnMut(&[u64])) {
        if self.automaton.admits(0, self.letter(&self.start)) {
            self.machine.pack(&self.start, &mut scratch.words);
            each(&scratch.words);
        }
    }

    fn follow(
        &self,
        scratch: &mut ProductScratch,
        state: &[u64],
        each: &mut impl FnMut(&[u64], Marks, ObservedStep),
    ) {
        let ProductScratch { base, work, message, words } = scratch;
        self.machine.unpack(state, base);
        let observer = self.machine.observer();
        let (here, slots) = (self.letter(base), self.empty_slots(base));
        let edges = &self.automaton.states[base[observer] as usize];
        let mut any = false;
        let mut observe = |vals: &mut Vec<Value>, step: DveStep, words: &mut Vec<u64>| {
            let there = self.letter(vals);
            for edge in edges.iter().filter(|e| e.guard.admits(here)) {
                if self.automaton.admits(edge.to, there) {
                    vals[observer] = edge.to as Value;
                    self.machine.pack(vals, words);
                    each(words, edge.marks | slots, ObservedStep { step, edge: edge.name });
                }
            }
        };
        let _ = self.machine.steps(base, work, message, |step, next| {
            any = true;
            // A run that goes wrong ends, and is no infinite one.
            if let Ok(vals) = next {
                observe(vals, step, words);
            }
            ControlFlow::Continue(())
        });
        if !any {
            let mut same = base.clone();
            observe(&mut same, DveStep::Stutter, words);
        }
    }
}

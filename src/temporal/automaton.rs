//! Which runs does an observer accept? Generalised Büchi automata whose edges have guards over propositions
//! and belong to acceptance sets: those of formulas, and those that models bring along.
//!
//! The observer looks at the state that the system is about to leave, and takes an edge whose guard holds
//! there. A run is accepted if some way through it meets every set again and again.

use super::tableau;
use crate::dve::System;
use crate::model::formula::{Formula, MOST_PROPOSITIONS};
use crate::query::{Limit, Limits};
use crate::reach::cycles::Marks;
use std::collections::HashMap;

/// Propositions that hold in a state, one bit each.
pub type Letter = u64;

/// Some propositions hold and others do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Guard {
    pub hold: Letter,
    pub fail: Letter,
}

impl Guard {
    #[inline]
    pub fn admits(self, letter: Letter) -> bool {
        self.hold & !letter == 0 && self.fail & letter == 0
    }

    /// Does it admit all that the other does?
    fn is_weaker(self, other: Guard) -> bool {
        self.hold & !other.hold == 0 && self.fail & !other.fail == 0
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AutomatonEdge {
    pub guard: Guard,
    pub to: usize,
    pub marks: Marks,
    /// What the edge is called where it comes from: the number of a transition.
    pub name: usize,
}

#[derive(Clone, Debug)]
pub struct Automaton {
    /// The edges of each state; the first state is the initial one.
    pub states: Vec<Vec<AutomatonEdge>>,
    /// How many acceptance sets there are.
    pub sets: usize,
}

impl Automaton {
    /// Accepts the runs on which the formula holds.
    pub fn of(formula: &Formula, limits: &Limits) -> Result<Automaton, Limit> {
        let mut automaton = tableau::automaton(formula, limits)?;
        automaton.simplify(limits)?;
        Ok(automaton)
    }

    /// Accepts every run.
    pub fn all() -> Automaton {
        let edge = AutomatonEdge { guard: Guard::default(), to: 0, marks: 0, name: 0 };
        Automaton { states: vec![vec![edge]], sets: 0 }
    }

    /// The property process of a model: the guard of each transition is a proposition. Unless there are too
    /// many of them.
    pub fn of_property(system: &System) -> Option<Automaton> {
        let property = system.property()?;
        if property.transitions.len() > MOST_PROPOSITIONS {
            return None;
        }
        // The initial state is to come first.
        let number = |state: usize| match state {
            state if state == property.initial => 0,
            0 => property.initial,
            state => state,
        };
        let mut states = vec![vec![]; property.states.len()];
        for (name, t) in property.transitions.iter().enumerate() {
            let hold = if t.guard.is_some() { 1 << name } else { 0 };
            let marks = property.states[t.from].accepting as Marks;
            let edge = AutomatonEdge { guard: Guard { hold, fail: 0 }, to: number(t.to), marks, name };
            states[number(t.from)].push(edge);
        }
        Some(Automaton { states, sets: 1 })
    }

    pub fn all_marks(&self) -> Marks {
        (1 << self.sets) - 1
    }

    /// Can the observer go on from a state when it sees this?
    pub fn admits(&self, state: usize, letter: Letter) -> bool {
        self.states[state].iter().any(|edge| edge.guard.admits(letter))
    }

    /// Leaves out what changes nothing: edges beside better ones, states that accept nothing, copies.
    fn simplify(&mut self, limits: &Limits) -> Result<(), Limit> {
        loop {
            limits.spend(self.states.iter().map(Vec::len).sum())?;
            let before = (self.states.len(), self.states.iter().map(Vec::len).sum::<usize>());
            self.states.iter_mut().for_each(drop_beaten);
            self.drop_dead();
            self.merge_equal();
            if (self.states.len(), self.states.iter().map(Vec::len).sum::<usize>()) == before {
                return Ok(());
            }
        }
    }

    /// Edges to states from which no cycle meets all sets lead nowhere.
    fn drop_dead(&mut self) {
        let alive = self.alive();
        for edges in &mut self.states {
            edges.retain(|edge| alive[edge.to]);
        }
    }

    /// Per state, whether a component that meets all sets can be reached from it.
    fn alive(&self) -> Vec<bool> {
        let mut graph = petgraph::graph::DiGraph::<(), Marks>::new();
        let nodes: Vec<_> = self.states.iter().map(|_| graph.add_node(())).collect();
        for (from, edges) in self.states.iter().enumerate() {
            for edge in edges {
                graph.add_edge(nodes[from], nodes[edge.to], edge.marks);
            }
        }
        let mut alive = vec![false; nodes.len()];
        // Components come in an order in which successors are first.
        for component in petgraph::algo::tarjan_scc(&graph) {
            let inside = |node: &usize| component.iter().any(|n| n.index() == *node);
            let (mut any, mut marks, mut reaches) = (false, 0, false);
            for node in &component {
                for edge in &self.states[node.index()] {
                    reaches |= alive[edge.to];
                    if inside(&edge.to) {
                        any = true;
                        marks |= edge.marks;
                    }
                }
            }
            let good = reaches || any && marks == self.all_marks();
            component.iter().for_each(|node| alive[node.index()] = good);
        }
        alive
    }

    /// States with the same edges are one; states that cannot be reached are none.
    fn merge_equal(&mut self) {
        let mut first: HashMap<Vec<AutomatonEdge>, usize> = HashMap::new();
        let mut stands_for = Vec::new();
        for (state, edges) in self.states.iter_mut().enumerate() {
            edges.sort_unstable();
            edges.dedup();
            stands_for.push(*first.entry(edges.clone()).or_insert(state));
        }
        let mut new = vec![None; self.states.len()];
        let mut order = vec![stands_for[0]];
        new[stands_for[0]] = Some(0);
        let mut next = 0;
        while let Some(&state) = order.get(next) {
            next += 1;
            for edge in &self.states[state] {
                let to = stands_for[edge.to];
                if new[to].is_none() {
                    new[to] = Some(order.len());
                    order.push(to);
                }
            }
        }
        let renamed = |edge: &AutomatonEdge| AutomatonEdge {
            to: new[stands_for[edge.to]].expect("what an edge leads to was numbered"),
            ..*edge
        };
        self.states = order.iter().map(|&state| self.states[state].iter().map(renamed).collect()).collect();
    }
}

/// An edge is beaten by one to the same state that admits more and meets more.
fn drop_beaten(edges: &mut Vec<AutomatonEdge>) {
    edges.sort_unstable();
    edges.dedup();
    let all = edges.clone();
    let beats = |a: &AutomatonEdge, b: &AutomatonEdge| {
        a != b && a.to == b.to && a.guard.is_weaker(b.guard) && b.marks & !a.marks == 0
    };
    edges.retain(|edge| !all.iter().any(|other| beats(other, edge)));
}

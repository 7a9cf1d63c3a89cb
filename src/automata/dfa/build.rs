//! How is an automaton brought into its canonical form? By subsets (an [`Nfa`] becomes deterministic), by
//! leaving out what leads nowhere, by Moore's refinement of partitions, and by numbering states in the order
//! of a breadth-first walk.

use super::{Dfa, DfaState, Letter};
use crate::limits::{Limit, Limits};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

/// An automaton with choices and silent steps. Words begin in the first state.
#[derive(Default)]
pub(super) struct Nfa {
    states: Vec<NfaState>,
}

#[derive(Default)]
struct NfaState {
    accepting: bool,
    edges: Vec<(Letter, usize)>,
    silent: Vec<usize>,
}

impl Nfa {
    pub(crate) fn add_state(&mut self, accepting: bool) -> usize {
        self.states.push(NfaState { accepting, ..NfaState::default() });
        self.states.len() - 1
    }

    pub(crate) fn add_silent(&mut self, from: usize, to: usize) {
        self.states[from].silent.push(to);
    }

    #[cfg(test)]
    pub(crate) fn add_edge(&mut self, from: usize, letter: Letter, to: usize) {
        self.states[from].edges.push((letter, to));
    }

    /// Adds a copy of an automaton; its first state, and those in which its words end, which are not
    /// accepting here.
    pub(crate) fn add_copy(&mut self, dfa: &Dfa) -> (usize, Vec<usize>) {
        let base = self.states.len();
        for state in &dfa.states {
            let at = self.add_state(false);
            self.states[at].edges = state.edges.iter().map(|&(l, to)| (l, base + to as usize)).collect();
        }
        let ends = (0..dfa.states.len()).filter(|&s| dfa.states[s].accepting).map(|s| base + s);
        (base, ends.collect())
    }

    /// The language as a canonical automaton, by the subset construction.
    pub(crate) fn into_dfa(self, limits: &Limits) -> Result<Dfa, Limit> {
        let begin = self.closure(vec![0], limits)?;
        let mut numbers = HashMap::from([(begin.clone(), 0)]);
        let mut todo = VecDeque::from([begin]);
        let mut states = Vec::new();
        while let Some(subset) = todo.pop_front() {
            let mut targets: BTreeMap<Letter, Vec<usize>> = BTreeMap::new();
            for &state in &subset {
                for &(letter, to) in &self.states[state].edges {
                    targets.entry(letter).or_default().push(to);
                }
            }
            let mut edges = Vec::with_capacity(targets.len());
            for (letter, to) in targets {
                let next = self.closure(to, limits)?;
                let fresh = numbers.len() as u32;
                let number = *numbers.entry(next.clone()).or_insert(fresh);
                if number == fresh {
                    todo.push_back(next);
                }
                edges.push((letter, number));
            }
            let accepting = subset.iter().any(|&state| self.states[state].accepting);
            states.push(DfaState { accepting, edges });
        }
        canonical(states, limits)
    }

    /// The states and all that silent steps lead to, in ascending order.
    fn closure(&self, mut todo: Vec<usize>, limits: &Limits) -> Result<Vec<usize>, Limit> {
        let mut reached = BTreeSet::new();
        while let Some(state) = todo.pop() {
            limits.spend(1)?;
            if reached.insert(state) {
                todo.extend(&self.states[state].silent);
            }
        }
        Ok(reached.into_iter().collect())
    }
}

/// The canonical automaton with the same language as a deterministic one whose words begin in its first
/// state.
pub(super) fn canonical(mut states: Vec<DfaState>, limits: &Limits) -> Result<Dfa, Limit> {
    let distances = distances(&states, limits)?;
    for state in &mut states {
        state.edges.retain(|&(_, to)| distances[to as usize] != FOR_EVER);
    }
    let classes = classes(&states, distances, limits)?;
    Ok(Dfa { states: numbered(&states, &classes) })
}

/// The distance of a state from which no word can end any more.
const FOR_EVER: u32 = u32::MAX;

/// Per state, how many letters it takes until a word can end.
fn distances(states: &[DfaState], limits: &Limits) -> Result<Vec<u32>, Limit> {
    let mut before = vec![Vec::new(); states.len()];
    for (s, state) in states.iter().enumerate() {
        limits.spend(1 + state.edges.len())?;
        state.edges.iter().for_each(|&(_, to)| before[to as usize].push(s));
    }
    let mut distances = vec![FOR_EVER; states.len()];
    let mut todo: VecDeque<usize> = (0..states.len()).filter(|&s| states[s].accepting).collect();
    todo.iter().for_each(|&s| distances[s] = 0);
    while let Some(state) = todo.pop_front() {
        for &other in &before[state] {
            if distances[other] == FOR_EVER {
                distances[other] = distances[state] + 1;
                todo.push_back(other);
            }
        }
    }
    Ok(distances)
}

/// Per state its class: states of one class have the same words before them. States with different distances
/// are of different classes, which is where the refinement begins: long words would take many rounds
/// otherwise.
fn classes(states: &[DfaState], distances: Vec<u32>, limits: &Limits) -> Result<Vec<u32>, Limit> {
    let (mut class, mut count) = (distances, 0);
    loop {
        let mut numbers = HashMap::new();
        let mut refined = Vec::with_capacity(states.len());
        for (s, state) in states.iter().enumerate() {
            limits.spend(1 + state.edges.len())?;
            let edges: Vec<_> = state.edges.iter().map(|&(l, to)| (l, class[to as usize])).collect();
            let fresh = numbers.len() as u32;
            refined.push(*numbers.entry((class[s], edges)).or_insert(fresh));
        }
        class = refined;
        // Classes are only ever split.
        if numbers.len() == count {
            return Ok(class);
        }
        count = numbers.len();
    }
}

/// One state for each class that can be reached, in the order of a breadth-first walk by ascending letters.
fn numbered(states: &[DfaState], classes: &[u32]) -> Vec<DfaState> {
    let mut numbers = HashMap::from([(classes[0], 0)]);
    let mut order = vec![0];
    let mut all: Vec<DfaState> = Vec::new();
    while let Some(&state) = order.get(all.len()) {
        let DfaState { accepting, edges } = &states[state];
        let mut renamed = Vec::with_capacity(edges.len());
        for &(letter, to) in edges {
            let fresh = order.len() as u32;
            let number = *numbers.entry(classes[to as usize]).or_insert(fresh);
            if number == fresh {
                order.push(to as usize);
            }
            renamed.push((letter, number));
        }
        all.push(DfaState { accepting: *accepting, edges: renamed });
    }
    all
}

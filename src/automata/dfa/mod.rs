//! Which words may it be? Regular languages as minimal deterministic automata.
//!
//! A [`Dfa`] is partial (a missing edge rejects), minimal, without states that lead nowhere, and numbered in
//! the order in which a breadth-first walk by ascending letters meets its states. So two automata with the
//! same language are equal values, which is what makes languages comparable and hashable. `build` brings
//! automata into this form, `operations` makes new languages of old ones. Nothing here knows what a letter
//! stands for.

mod build;
mod operations;

pub use operations::Split;

use crate::limits::{Limit, Limits};
use std::collections::VecDeque;

/// A letter of the alphabet, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Letter(pub u32);

/// A language of finite words. Invariant: the automaton is canonical, as said above.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Dfa {
    /// The first one is where words begin.
    states: Vec<DfaState>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct DfaState {
    accepting: bool,
    /// In ascending order, at most one for each letter.
    edges: Vec<(Letter, u32)>,
}

impl DfaState {
    fn next(&self, letter: Letter) -> Option<usize> {
        let found = self.edges.binary_search_by_key(&letter, |&(l, _)| l).ok()?;
        Some(self.edges[found].1 as usize)
    }
}

impl Dfa {
    /// The language of the empty word alone.
    pub fn empty_word() -> Dfa {
        Dfa { states: vec![DfaState { accepting: true, edges: vec![] }] }
    }

    /// The language of one word of one letter.
    pub fn letter(letter: Letter) -> Dfa {
        let begin = DfaState { accepting: false, edges: vec![(letter, 1)] };
        Dfa { states: vec![begin, DfaState { accepting: true, edges: vec![] }] }
    }

    /// Has it no word at all?
    pub fn is_empty(&self) -> bool {
        !self.states[0].accepting && self.states[0].edges.is_empty()
    }

    /// Is the empty word one of its words?
    pub fn has_empty_word(&self) -> bool {
        self.states[0].accepting
    }

    pub fn accepts(&self, word: &[Letter]) -> bool {
        let end = word.iter().try_fold(0, |state, &letter| self.states[state].next(letter));
        end.is_some_and(|state| self.states[state].accepting)
    }

    /// The letters with which words begin.
    pub fn first(&self) -> impl Iterator<Item = Letter> {
        self.states[0].edges.iter().map(|&(letter, _)| letter)
    }

    /// How many states the automaton has.
    pub fn size(&self) -> usize {
        self.states.len()
    }

    /// What the automaton takes to look at: its states and edges.
    fn weight(&self) -> usize {
        self.states.iter().map(|state| 1 + state.edges.len()).sum()
    }

    /// The first of the shortest words; `None` if there is no word.
    pub fn shortest(&self, limits: &Limits) -> Result<Option<Vec<Letter>>, Limit> {
        limits.spend(self.weight())?;
        let mut from: Vec<Option<(usize, Letter)>> = vec![None; self.states.len()];
        let mut todo = VecDeque::from([0]);
        while let Some(state) = todo.pop_front() {
            if self.states[state].accepting {
                let back = std::iter::successors(from[state], |&(before, _)| from[before]);
                let mut word: Vec<Letter> = back.map(|(_, letter)| letter).collect();
                word.reverse();
                return Ok(Some(word));
            }
            for &(letter, to) in &self.states[state].edges {
                if to != 0 && from[to as usize].is_none() {
                    from[to as usize] = Some((state, letter));
                    todo.push_back(to as usize);
                }
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests;

//! Which languages come of others? Concatenation, repetition, quotient, the words whose newest letter of a
//! kind is a wanted one, inclusion, and how a word is put together from others.

use super::build::{Nfa, canonical};
use super::{Dfa, DfaState, Letter};
use crate::limits::{Limit, Limits};
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::ops::Range;

/// How a word of `base · (w0 | w1 | …)*` is put together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// So many letters are a word of the base.
    pub base: usize,
    /// The parts behind it, each with the number of its language. None is empty.
    pub parts: Vec<(usize, Range<usize>)>,
}

impl Dfa {
    /// The words of this language, each followed by one of the other.
    pub fn then(&self, other: &Dfa, limits: &Limits) -> Result<Dfa, Limit> {
        let mut nfa = Nfa::default();
        let (_, ends) = nfa.add_copy(self);
        let (begin, others) = nfa.add_copy(other);
        ends.into_iter().for_each(|end| nfa.add_silent(end, begin));
        let accept = nfa.add_state(true);
        others.into_iter().for_each(|end| nfa.add_silent(end, accept));
        nfa.into_dfa(limits)
    }

    /// The words of this language, each followed by any number of words of the others.
    pub fn then_any_of(&self, others: &[&Dfa], limits: &Limits) -> Result<Dfa, Limit> {
        let mut nfa = Nfa::default();
        let (_, ends) = nfa.add_copy(self);
        let hub = nfa.add_state(true);
        ends.into_iter().for_each(|end| nfa.add_silent(end, hub));
        for other in others {
            let (begin, ends) = nfa.add_copy(other);
            nfa.add_silent(hub, begin);
            ends.into_iter().for_each(|end| nfa.add_silent(end, hub));
        }
        nfa.into_dfa(limits)
    }

    /// What is left of the words that begin with the letter: the left quotient.
    pub fn after(&self, letter: Letter, limits: &Limits) -> Result<Dfa, Limit> {
        limits.spend(self.weight())?;
        let Some(begin) = self.states[0].next(letter) else {
            return canonical(vec![DfaState::default()], limits);
        };
        let mut states = self.states.clone();
        // The old beginning moves to the end, a copy of the new one takes its place.
        let old = states.len() as u32;
        states.push(states[0].clone());
        states[0] = states[begin].clone();
        for (_, to) in states.iter_mut().flat_map(|state| &mut state.edges) {
            *to = if *to == 0 { old } else { *to };
        }
        canonical(states, limits)
    }

    /// The words whose newest letter of a kind is a wanted one; `None` stands for no letter of that kind.
    pub fn with_newest(
        &self,
        of_kind: impl Fn(Letter) -> bool,
        wanted: impl Fn(Option<Letter>) -> bool,
        limits: &Limits,
    ) -> Result<Dfa, Limit> {
        let mut numbers = HashMap::from([((0, None), 0)]);
        let mut todo = VecDeque::from([(0, None)]);
        let mut states = Vec::new();
        while let Some((at, newest)) = todo.pop_front() {
            let state = &self.states[at];
            limits.spend(1 + state.edges.len())?;
            let mut edges = Vec::with_capacity(state.edges.len());
            for &(letter, to) in &state.edges {
                let next = (to as usize, if of_kind(letter) { Some(letter) } else { newest });
                let fresh = numbers.len() as u32;
                let number = *numbers.entry(next).or_insert(fresh);
                if number == fresh {
                    todo.push_back(next);
                }
                edges.push((letter, number));
            }
            states.push(DfaState { accepting: state.accepting && wanted(newest), edges });
        }
        canonical(states, limits)
    }

    /// The newest letters of a kind that words have; `None` stands for words that have no letter of that kind.
    pub fn newest(
        &self,
        of_kind: impl Fn(Letter) -> bool,
        limits: &Limits,
    ) -> Result<BTreeSet<Option<Letter>>, Limit> {
        let mut seen = HashSet::from([(0, None)]);
        let mut todo = vec![(0, None)];
        let mut found = BTreeSet::new();
        while let Some((at, newest)) = todo.pop() {
            let state = &self.states[at];
            limits.spend(1 + state.edges.len())?;
            if state.accepting {
                found.insert(newest);
            }
            for &(letter, to) in &state.edges {
                let next = (to as usize, if of_kind(letter) { Some(letter) } else { newest });
                if seen.insert(next) {
                    todo.push(next);
                }
            }
        }
        Ok(found)
    }

    /// Is every word of the other language one of this language?
    pub fn includes(&self, other: &Dfa, limits: &Limits) -> Result<bool, Limit> {
        // Every state of the other automaton that can be reached has a word before it, but for the beginning
        // of the one that has none at all.
        if other.is_empty() {
            return Ok(true);
        }
        let mut seen = HashSet::from([(0, 0)]);
        let mut todo = vec![(0, 0)];
        while let Some((own, others)) = todo.pop() {
            let (own, others) = (&self.states[own], &other.states[others]);
            limits.spend(1 + others.edges.len())?;
            if others.accepting && !own.accepting {
                return Ok(false);
            }
            for &(letter, to) in &others.edges {
                let Some(next) = own.next(letter) else { return Ok(false) };
                if seen.insert((next, to as usize)) {
                    todo.push((next, to as usize));
                }
            }
        }
        Ok(true)
    }

    /// How the word is one of this language followed by as few as possible of the others; `None` if it is
    /// not.
    pub fn split(&self, others: &[&Dfa], word: &[Letter], limits: &Limits) -> Result<Option<Split>, Limit> {
        // Per number of letters, how a way there ends: with the base, or with a part that begins somewhere.
        let mut reached: Vec<Option<Option<(usize, usize)>>> = vec![None; word.len() + 1];
        let mut todo = VecDeque::from(self.ends(word));
        todo.iter().for_each(|&end| reached[end] = Some(None));
        while let Some(at) = todo.pop_front() {
            limits.spend(1 + others.len() * (word.len() - at))?;
            for (number, other) in others.iter().enumerate() {
                for end in other.ends(&word[at..]).into_iter().map(|length| at + length) {
                    if reached[end].is_none() {
                        reached[end] = Some(Some((number, at)));
                        todo.push_back(end);
                    }
                }
            }
        }
        let (mut base, mut parts) = (word.len(), Vec::new());
        loop {
            match reached[base] {
                None => return Ok(None),
                Some(None) => break,
                Some(Some((number, begin))) => {
                    parts.push((number, begin..base));
                    base = begin;
                }
            }
        }
        parts.reverse();
        Ok(Some(Split { base, parts }))
    }

    /// The lengths of the word's beginnings that are words of the language.
    fn ends(&self, word: &[Letter]) -> Vec<usize> {
        let steps = word.iter().scan(0, |state, &letter| {
            *state = self.states[*state].next(letter)?;
            Some(*state)
        });
        let visited = std::iter::once(0).chain(steps);
        visited.enumerate().filter(|&(_, state)| self.states[state].accepting).map(|(n, _)| n).collect()
    }
}

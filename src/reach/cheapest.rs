//! Which way to the goal costs least? A best-first search with a lower bound of what is still to come (A*,
//! `[HartNilssonRaphael68]`), by one worker, in an order that nothing but the machine determines.
//!
//! A state may be found again by a cheaper way; then it is expanded again. The way is the cheapest one if the
//! machine's estimates never exceed the truth. Not here: what a step costs, which a [`Priced`] machine says.

use super::Budget;
use crate::query::{Limit, Limits};
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hash::BuildHasher;
use std::ops::Add;

/// What it costs to expand a state, in steps.
const EXPANSION: usize = 500;

/// What a way costs: of two costs, the first number decides, and then the second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Price(pub u32, pub u32);

impl Add for Price {
    type Output = Price;

    fn add(self, other: Price) -> Price {
        Price(self.0.saturating_add(other.0), self.1.saturating_add(other.1))
    }
}

/// How far a state is from a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outlook {
    Goal,
    /// At least so much is still to be paid.
    AtLeast(Price),
}

/// Something with states to explore, whose steps have prices. Equal words are equal states.
pub trait Priced {
    type Scratch: Default;

    fn initial(&self, scratch: &mut Self::Scratch, found: &mut impl FnMut(&[u64], Price));

    /// Tells every successor, with the price of the step.
    fn expand(&self, scratch: &mut Self::Scratch, state: &[u64], found: &mut impl FnMut(&[u64], Price));

    fn outlook(&self, scratch: &mut Self::Scratch, state: &[u64]) -> Outlook;
}

/// What came of the search.
#[derive(Debug, PartialEq, Eq)]
pub enum Cheapest {
    /// The states along the way, from an initial one to a goal.
    Way(Vec<Vec<u64>>),
    /// No goal can be reached.
    None,
    /// The budget was spent before that was known.
    Spent,
}

pub fn cheapest<M: Priced>(machine: &M, budget: Budget, limits: &Limits) -> Result<Cheapest, Limit> {
    let mut search = Quest::new(machine);
    let mut expanding = M::Scratch::default();
    machine.initial(&mut expanding, &mut |words, price| search.find(words, price, None));
    while let Some((number, price)) = search.next() {
        if search.nodes[number].is_goal {
            return Ok(Cheapest::Way(search.way(number)));
        }
        if budget.spent_by(search.nodes.len() as u64).is_some() {
            return Ok(Cheapest::Spent);
        }
        limits.spend(EXPANSION)?;
        let state = search.words(number).to_vec();
        let found = &mut |words: &[u64], step| search.find(words, price + step, Some(number));
        machine.expand(&mut expanding, &state, found);
    }
    Ok(Cheapest::None)
}

struct Quest<'a, M: Priced> {
    machine: &'a M,
    scratch: M::Scratch,
    nodes: Vec<Reached>,
    /// The words of all states, one after the other.
    words: Vec<u64>,
    numbers: HashTable<usize>,
    hasher: FixedState,
    /// By estimated price of the whole way, the older first among equals; with the price so far.
    waiting: BinaryHeap<Reverse<(Price, usize, usize, Price)>>,
    pushed: usize,
}

struct Reached {
    start: usize,
    end: usize,
    price: Price,
    rest: Price,
    parent: Option<usize>,
    is_goal: bool,
}

impl<'a, M: Priced> Quest<'a, M> {
    fn new(machine: &'a M) -> Self {
        Quest {
            machine,
            scratch: M::Scratch::default(),
            nodes: Vec::new(),
            words: Vec::new(),
            numbers: HashTable::new(),
            hasher: FixedState::default(),
            waiting: BinaryHeap::new(),
            pushed: 0,
        }
    }

    fn words(&self, number: usize) -> &[u64] {
        &self.words[self.nodes[number].start..self.nodes[number].end]
    }

    /// The state to be expanded next, unless it has been found by a cheaper way since.
    fn next(&mut self) -> Option<(usize, Price)> {
        while let Some(Reverse((_, _, number, price))) = self.waiting.pop() {
            if self.nodes[number].price == price {
                return Some((number, price));
            }
        }
        None
    }

    fn find(&mut self, words: &[u64], price: Price, parent: Option<usize>) {
        let Quest { nodes, words: all, hasher, .. } = self;
        let of = |n: usize, nodes: &[Reached]| nodes[n].start..nodes[n].end;
        let hash = hasher.hash_one(words);
        let entry = self.numbers.entry(
            hash,
            |&n| all[of(n, nodes)] == *words,
            |&n| hasher.hash_one(&all[of(n, nodes)]),
        );
        let number = match entry {
            Entry::Occupied(known) => {
                let number = *known.get();
                let node = &mut nodes[number];
                if node.price <= price {
                    return;
                }
                (node.price, node.parent) = (price, parent);
                number
            }
            Entry::Vacant(free) => {
                let (start, number) = (all.len(), nodes.len());
                all.extend_from_slice(words);
                let (is_goal, rest) = match self.machine.outlook(&mut self.scratch, words) {
                    Outlook::Goal => (true, Price::default()),
                    Outlook::AtLeast(rest) => (false, rest),
                };
                nodes.push(Reached { start, end: all.len(), price, rest, parent, is_goal });
                free.insert(number);
                number
            }
        };
        self.pushed += 1;
        let estimate = price + self.nodes[number].rest;
        self.waiting.push(Reverse((estimate, self.pushed, number, price)));
    }

    fn way(&self, goal: usize) -> Vec<Vec<u64>> {
        let back = std::iter::successors(Some(goal), |&n| self.nodes[n].parent);
        let mut way: Vec<Vec<u64>> = back.map(|n| self.words(n).to_vec()).collect();
        way.reverse();
        way
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From 0 up to 6: one at a time is cheap, three at a time costs the first number.
    struct Stairs {
        goal: u64,
    }

    impl Priced for Stairs {
        type Scratch = ();

        fn initial(&self, _: &mut (), found: &mut impl FnMut(&[u64], Price)) {
            found(&[0], Price::default());
        }

        fn expand(&self, _: &mut (), state: &[u64], found: &mut impl FnMut(&[u64], Price)) {
            let mut step = |to: u64, price| {
                if to <= 6 {
                    found(&[to], price)
                }
            };
            step(state[0] + 3, Price(1, 1));
            step(state[0] + 1, Price(0, 1));
            if state[0] == 2 {
                step(5, Price(0, 1));
            }
        }

        fn outlook(&self, _: &mut (), state: &[u64]) -> Outlook {
            if state[0] == self.goal { Outlook::Goal } else { Outlook::AtLeast(Price(0, 1)) }
        }
    }

    #[test]
    fn the_first_number_decides_and_cheaper_ways_are_taken_when_found() {
        let way = |goal| cheapest(&Stairs { goal }, Budget::UNLIMITED, &Limits::default());
        let states = |of: &[u64]| Ok(Cheapest::Way(of.iter().map(|&n| vec![n]).collect()));
        assert_eq!(way(6), states(&[0, 1, 2, 5, 6]));
        assert_eq!(way(4), states(&[0, 1, 2, 3, 4]));
        assert_eq!(way(9), Ok(Cheapest::None));
        assert_eq!(cheapest(&Stairs { goal: 9 }, Budget::states(3), &Limits::default()), Ok(Cheapest::Spent));
    }
}

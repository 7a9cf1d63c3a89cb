//! What is a search to look for, in which order, and what came of it?

use super::Peers;
use crate::query::{Action, Limit};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    BreadthFirst,
    DepthFirst,
    /// States that the machine ranks lowest come first; among equals, the older ones.
    BestFirst,
    /// For goals that are likely: every other worker goes depth first, the rest take what the machine ranks
    /// lowest; among equals, the newer ones. What one has seen the others need not look at.
    Hunt,
}

/// How to search.
#[derive(Clone, Copy, Debug)]
pub struct Search<'a> {
    pub order: Order,
    pub workers: usize,
    pub goals: Goals,
    /// Who searches together with this process, if anybody does; then it has one worker.
    pub peers: Option<&'a Peers>,
}

impl<'a> Search<'a> {
    /// For a first goal, as long as it takes.
    pub fn new(order: Order, workers: usize) -> Search<'a> {
        Search { order, workers, goals: Goals::First, peers: None }
    }

    /// The same together with others.
    pub fn among(self, peers: Option<&'a Peers>) -> Search<'a> {
        Search { peers, ..self }
    }
}

/// How many goals are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goals {
    First,
    /// One for each number that the machine gives to goals, as far as they are found before so many states
    /// are stored after the first goal.
    Several {
        patience: u64,
    },
}

/// What a search found.
#[derive(Debug)]
pub struct Found<S = Action> {
    /// The numbers of goals, and the decisions that lead to them.
    pub goals: Vec<(usize, Vec<S>)>,
    /// What ended the search before it was complete.
    pub limit: Option<Limit>,
    pub states: u64,
    pub transitions: u64,
    /// Of the set of states and the frontier, at the end.
    pub bytes: u64,
}

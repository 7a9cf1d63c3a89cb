//! What is the answer to each question, and why?

use super::evidence::{Race, Trace, Witness};
use super::goal::Model;
use super::stats::{AttackCount, Stats};
use crate::limits::Limit;
use crate::model::Value;
use std::collections::BTreeSet;

#[derive(Clone, Debug)]
pub enum Answer {
    Violated(Trace),
    Safe(Proof),
    Unknown(Limit),
}

/// Why `safe` is a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// Every state of the model was visited, and none is a goal state.
    Exhausted,
    /// No path through the threads leads to a goal state with the values that registers and cells can have at all.
    Infeasible,
    /// No SC run reaches the goal, and the program, with so many delays built into it, is robust: TSO adds nothing. If
    /// `apart`, it is so apart from cells that nobody really reads.
    Robust { delays: usize, apart: bool },
}

/// Do SC and TSO have the same behaviours?
#[derive(Clone, Debug)]
pub enum RobustAnswer {
    Robust,
    NotRobust(Witness),
    Unknown(Limit),
}

#[derive(Clone, Debug)]
pub struct Robustness {
    pub answer: RobustAnswer,
    pub attacks: AttackCount,
    pub stats: Stats,
}

impl Robustness {
    pub fn verdict(&self) -> &'static str {
        match self.answer {
            RobustAnswer::Robust => "robust",
            RobustAnswer::NotRobust(_) => "not-robust",
            RobustAnswer::Unknown(_) => "unknown",
        }
    }
}

/// Is the program free of triangular races?
#[derive(Clone, Debug)]
pub enum RaceAnswer {
    RaceFree,
    Racy(Race),
    Unknown(Limit),
}

#[derive(Clone, Debug)]
pub struct RaceFreedom {
    pub answer: RaceAnswer,
    /// The threads whose stores and loads had to be searched, because the program's text does not settle them.
    pub attackers: usize,
    pub stats: Stats,
}

impl RaceFreedom {
    pub fn verdict(&self) -> &'static str {
        match self.answer {
            RaceAnswer::RaceFree => "race-free",
            RaceAnswer::Racy(_) => "racy",
            RaceAnswer::Unknown(_) => "unknown",
        }
    }
}

#[derive(Clone, Debug)]
pub struct Outcome {
    pub answer: Answer,
    pub model: Model,
    pub engine: &'static str,
    pub stats: Stats,
    /// Things the user should know whatever the answer is.
    pub warnings: Vec<String>,
}

impl Outcome {
    pub fn verdict(&self) -> &'static str {
        match self.answer {
            Answer::Violated(_) => "violated",
            Answer::Safe(_) => "safe",
            Answer::Unknown(_) => "unknown",
        }
    }
}

/// The final states of a program, as far as somebody looks at them.
#[derive(Clone, Debug)]
pub struct Outcomes {
    /// The values of what is observed, in the order in which it was asked for: each combination once, all that there
    /// are. Or the limit that ended the search before that was known.
    pub states: Result<BTreeSet<Vec<Value>>, Limit>,
    /// Those of them that no run reaches with all buffers empty: a thread ends inside a block, and stores of others never
    /// reach memory.
    pub frozen: BTreeSet<Vec<Value>>,
    /// Whether some run ends in an error of a thread, and so in no final state.
    pub goes_wrong: bool,
    pub model: Model,
    pub stats: Stats,
}

impl Outcomes {
    /// What there is to say if a limit was reached before anything was searched.
    pub fn unsearched(model: Model, limit: Limit, stats: Stats) -> Outcomes {
        Outcomes { states: Err(limit), frozen: BTreeSet::new(), goes_wrong: false, model, stats }
    }
}

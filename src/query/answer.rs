//! What can the answer to a question be, and by which word is it told?
//!
//! Every question is asked so that it *holds* or *fails*: no forbidden state is reachable, SC and TSO are the
//! same, there is no race, there is a repair. What an answer rests on differs from question to question and
//! is left to the types; what counts as evidence is for `certify` to say.

use super::goal::Model;
use super::stats::Stats;
use crate::limits::Limit;
use crate::model::Value;
use std::collections::BTreeSet;

/// The answer to a question, with what it rests on.
#[derive(Clone, Debug)]
pub enum Answer<P, E> {
    /// With the proof.
    Holds(P),
    /// With the evidence against it.
    Fails(E),
    /// This limit was reached first.
    Unknown(Limit),
}

/// An answer without what it rests on, the better before the worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    Holds,
    Unknown,
    Fails,
}

impl<P, E> Answer<P, E> {
    pub fn verdict(&self) -> Verdict {
        match self {
            Answer::Holds(_) => Verdict::Holds,
            Answer::Fails(_) => Verdict::Fails,
            Answer::Unknown(_) => Verdict::Unknown,
        }
    }
}

/// What is asked of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// Is every forbidden state out of reach?
    Check,
    /// Do SC and TSO have the same behaviours?
    Robust,
    /// Is there no triangular race?
    Triangular,
    /// Is there a repair?
    Fence,
}

impl Question {
    /// The command that asks it.
    pub fn command(self) -> &'static str {
        match self {
            Question::Check => "check",
            Question::Robust | Question::Triangular => "robust",
            Question::Fence => "fence",
        }
    }

    /// The word for an answer.
    pub fn word(self, verdict: Verdict) -> &'static str {
        let (holds, fails) = match self {
            Question::Check => ("safe", "violated"),
            Question::Robust => ("robust", "not-robust"),
            Question::Triangular => ("race-free", "racy"),
            Question::Fence => ("found", "none"),
        };
        match verdict {
            Verdict::Holds => holds,
            Verdict::Fails => fails,
            Verdict::Unknown => "unknown",
        }
    }
}

/// Why `safe` is a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// Every state of the model was visited, and none is a goal state.
    Exhausted,
    /// No state is a goal state of a set that covers all states of the model: each has one that can do whatever
    /// it can.
    Covered,
    /// No path through the threads leads to a goal state with the values that registers and cells can have at
    /// all.
    Infeasible,
    /// No SC run reaches the goal, and the program, with so many delays built into it, is robust: TSO adds
    /// nothing. If `apart`, it is so apart from cells that nobody really reads.
    Robust { delays: usize, apart: bool },
}

/// The final states of a program, as far as they are looked at.
#[derive(Clone, Debug)]
pub struct Outcomes {
    /// The values of what is observed, in the order in which it was asked for: each combination once, all
    /// that there are. Or the limit that ended the search before that was known.
    pub states: Result<BTreeSet<Vec<Value>>, Limit>,
    /// Those of them that no run reaches with all buffers empty: a thread ends inside a block, and stores of
    /// others never reach memory.
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

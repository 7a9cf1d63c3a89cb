//! What does a process tell the others at the end of its round? A status, as words.

use crate::query::Limit;
use std::time::Duration;

/// What a process has to tell at the end of its round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Status {
    /// No tasks are left here.
    pub idle: bool,
    /// Something was sent in this round.
    pub sent: bool,
    /// The process takes no more tasks, nor states: goals, a limit or a budget are why.
    pub stopped: bool,
    pub limit: Option<Limit>,
    /// What the process had looked at alone, as a number: the same for all, or something is wrong.
    pub beginning: u64,
    /// Since the search is shared.
    pub states: u64,
    pub words: u64,
    pub goals: Vec<(usize, u64)>,
}

impl Status {
    pub(super) fn to_words(&self) -> Vec<u64> {
        let [kind, value] = limit_to_words(self.limit.as_ref());
        let flags = self.idle as u64 | (self.sent as u64) << 1 | (self.stopped as u64) << 2;
        let goals = self.goals.iter().flat_map(|&(number, offset)| [number as u64, offset]);
        [flags, kind, value, self.beginning, self.states, self.words].into_iter().chain(goals).collect()
    }

    pub(super) fn from_words(words: &[u64]) -> Option<Status> {
        let [flags, kind, value, beginning, states, words, ref goals @ ..] = *words else { return None };
        Some(Status {
            idle: flags & 1 != 0,
            sent: flags & 2 != 0,
            stopped: flags & 4 != 0,
            limit: limit_from_words([kind, value]),
            beginning,
            states,
            words,
            goals: goals.chunks_exact(2).map(|pair| (pair[0] as usize, pair[1])).collect(),
        })
    }
}

/// Limits that a search can hit by itself, as words.
fn limit_to_words(limit: Option<&Limit>) -> [u64; 2] {
    match limit {
        None => [0, 0],
        Some(Limit::Time(time)) => [1, time.as_millis() as u64],
        Some(Limit::Memory(bytes)) => [2, *bytes],
        Some(Limit::States(states)) => [3, *states],
        Some(_) => [4, 0],
    }
}

fn limit_from_words(words: [u64; 2]) -> Option<Limit> {
    match words {
        [0, _] => None,
        [1, millis] => Some(Limit::Time(Duration::from_millis(millis))),
        [2, bytes] => Some(Limit::Memory(bytes)),
        [3, states] => Some(Limit::States(states)),
        _ => Some(Limit::Cancelled),
    }
}

//! A shorter way to the same state. A search that hunts goes far afield, and nobody reads a trace of a
//! hundred thousand steps.
//!
//! The states along the line are searched breadth first for steps that lead from one to a much later one;
//! what lies aside of the line is not looked at, so this costs little beside the search that found it. Every
//! two neighbours of the result are a step of the machine, as they were before.

use super::{Machine, Sink, Sleep, Wanted};
use crate::query::Limits;
use foldhash::fast::FixedState;
use std::collections::{HashMap, VecDeque};

/// What it costs to expand a state, in steps.
const EXPANSION: usize = 500;

/// Shorter lines than this are left alone.
const LONG: usize = 100;

type Numbers<'a> = HashMap<&'a [u64], usize, FixedState>;

/// The states of a line that are successors of one of them, by number.
struct Known<'a> {
    numbers: &'a Numbers<'a>,
    found: Vec<usize>,
}

impl Sink for Known<'_> {
    fn state(&mut self, words: &[u64], _: Sleep) {
        self.found.extend(self.numbers.get(words));
    }
}

/// If a limit is reached on the way, the line stays as it is.
pub(crate) fn shortened<M: Machine>(machine: &M, line: Vec<Vec<u64>>, limits: &Limits) -> Vec<Vec<u64>> {
    if line.len() < LONG {
        return line;
    }
    let numbers: Numbers = line.iter().enumerate().map(|(i, words)| (&words[..], i)).collect();
    let mut known = Known { numbers: &numbers, found: Vec::new() };
    let mut scratch = machine.scratch();
    let mut from: Vec<Option<usize>> = vec![None; line.len()];
    let mut todo = VecDeque::from([0]);
    while let Some(i) = todo.pop_front()
        && from[line.len() - 1].is_none()
        && limits.spend(EXPANSION).is_ok()
    {
        machine.expand(&mut scratch, &line[i], Wanted::ALL, 0, &mut known);
        for next in known.found.drain(..).filter(|&next| next != 0) {
            if from[next].is_none() {
                from[next] = Some(i);
                todo.push_back(next);
            }
        }
    }
    let last = line.len() - 1;
    let mut way: Vec<usize> = std::iter::successors(Some(last), |&i| from[i]).collect();
    // A machine may leave out steps to what was found already, and there may be no time; then the line is as
    // good as any.
    if way.last() != Some(&0) {
        return line;
    }
    way.reverse();
    way.into_iter().map(|i| line[i].clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Look;
    use super::*;
    use crate::query::{Action, Limit};

    /// Counts up by one, or by ten.
    struct Counter;

    impl Machine for Counter {
        type Scratch = ();
        type Step = Action;

        fn scratch(&self) {}

        fn initial(&self, _: &mut (), sink: &mut impl Sink) {
            sink.state(&[0], 0);
        }

        fn look(&self, _: &mut (), _: &[u64]) -> Look {
            Look::Rank(0)
        }

        fn expand(&self, _: &mut (), state: &[u64], _: Wanted, _: Sleep, sink: &mut impl Sink) {
            sink.state(&[state[0] + 10], 0);
            sink.state(&[state[0] + 1], 0);
        }

        fn trace(&self, _: &[Vec<u64>], _: &Limits) -> Result<Vec<Action>, Limit> {
            Ok(vec![])
        }
    }

    fn line(to: u64) -> Vec<Vec<u64>> {
        (0..=to).map(|n| vec![n]).collect()
    }

    #[test]
    fn a_long_line_takes_the_shortcuts_among_its_states() {
        let short = shortened(&Counter, line(1005), &Limits::default());
        assert_eq!((&short[0][..], &short[short.len() - 1][..]), (&[0][..], &[1005][..]));
        assert_eq!(short.len(), 1 + 100 + 5);
        let steps = short.windows(2).map(|pair| pair[1][0] - pair[0][0]);
        assert!(steps.into_iter().all(|step| step == 1 || step == 10));
    }

    #[test]
    fn what_lies_aside_is_no_shortcut() {
        let odd: Vec<Vec<u64>> = (0..200).map(|n| vec![11 * n]).collect();
        assert_eq!(shortened(&Counter, odd.clone(), &Limits::default()), odd);
        assert_eq!(shortened(&Counter, line(50), &Limits::default()), line(50));
    }
}

//! Which engine, and for how long? The two take turns, each with more to spend than before.
//!
//! The lazy one begins: it proves robust programs safe, and finds short runs. Some programs that are safe and not robust
//! have few states under TSO, and no end of delays: those are for the explicit one. So are runs with many delays, which a
//! search often finds at once that goes straight ahead. Many programs of few threads that are not robust are so small that a
//! brief look at all their states settles them: that comes before the first delay is tried.

use super::lazy::{self, BRIEF, Lazy, Patience, Progress};
use super::{Internal, Options, Subject, explicit};
use crate::analysis::interval::{Interval, Intervals};
use crate::certify::Outcome;
use crate::model::Program;
use crate::query::{Answer, Limit, Limits, Model};
use crate::reach::Order;

/// States that are worth spending in any case.
const LITTLE: u64 = 5_000;
/// States of the brief look at a program that is not robust: so many for two threads, half of that for three, and so on,
/// up to the last number of threads for which it pays.
const LOOK: u64 = 1_000;
const FEW_THREADS: usize = 3;
/// States of a first round after which the next ones are short too, and tell more than a look would.
const SHORT: u64 = 500;
/// States of a search that goes straight ahead, once there are delays and a brief search has found no short run.
const STRAIGHT: u64 = 3_000;
/// With each turn, there are so many times as many states to spend.
const GROWTH: u64 = 4;
/// The explicit engine's later turns are so many times as long as the lazy one's: if its search comes to an end, that is an
/// answer.
const LONGER: u64 = 3;

/// States that the first SC check may store before that where values grow, perhaps for ever.
const FIRST: u64 = 100_000;
/// A value that needs more bits than this is taken to grow.
const MANY_BITS: u32 = 32;

pub fn check(subject: &Subject, options: &Options, limits: &Limits) -> Result<Outcome, Internal> {
    let sees_all = || lazy::sees_all(subject.program(), &subject.goal);
    if options.model == Model::Sc || options.buffer.is_some() || !sees_all() {
        return explicit::check(subject, options, limits, options.effort);
    }
    // The explicit engine's answer, unless it has spent what it may.
    let explicit = |order: Order, most: Option<u64>| -> Result<Option<Outcome>, Internal> {
        let options = Options { order, ..options.clone() };
        let bound = most.into_iter().chain(options.effort).min();
        let outcome = explicit::check(subject, &options, limits, bound)?;
        let spent = matches!(outcome.answer, Answer::Unknown(Limit::States(n)) if Some(n) == most);
        Ok(Some(outcome).filter(|_| !spent || limits.states == most))
    };
    let mut lazy = Lazy::new(subject, options, limits);
    let first = match grows(subject.program(), limits) {
        Ok(grows) => grows.then_some(FIRST),
        Err(limit) => return Ok(lazy.outcome(Answer::Unknown(limit))),
    };
    lazy.be_patient(Patience { first, hunt: Some(BRIEF), oracle: None });
    let (mut budget, mut straight) = (LITTLE, true);
    loop {
        let most = match lazy.round()? {
            // What was too much for the one may do for the other.
            Progress::Answered(Answer::Unknown(
                Limit::ProgramSize(_) | Limit::StateSize(_) | Limit::States(_),
            )) => None,
            Progress::Answered(answer) => return Ok(lazy.outcome(answer)),
            _ if options.effort.is_some_and(|most| lazy.states() >= most) => {
                let states = lazy.states();
                return Ok(lazy.outcome(Answer::Unknown(Limit::States(states))));
            }
            Progress::Grown if lazy.rounds() == 1 => {
                if let Some(most) = brief_look(subject.program(), lazy.states())
                    && let Some(outcome) = explicit(options.order, Some(most))?
                    && !matches!(outcome.answer, Answer::Unknown(_))
                {
                    return Ok(lazy.hand_over(outcome));
                }
                let oracle = Some(GROWTH * lazy.states().max(LITTLE));
                lazy.be_patient(Patience { first, hunt: Some(BRIEF), oracle });
                continue;
            }
            Progress::Grown if lazy.states() < budget => continue,
            Progress::Grown | Progress::Paused => {
                budget = budget.max(lazy.states());
                Some(if straight { budget } else { LONGER * budget })
            }
        };
        if lazy.has_delays()
            && std::mem::take(&mut straight)
            && let Some(outcome) = explicit(Order::DepthFirst, Some(STRAIGHT))?
        {
            return Ok(lazy.hand_over(outcome));
        }
        if let Some(outcome) = explicit(options.order, most)? {
            return Ok(lazy.hand_over(outcome));
        }
        budget *= GROWTH;
        lazy.be_patient(Patience { first: None, hunt: Some(budget), oracle: Some(budget) });
    }
}

/// States that are worth spending on a program that is not robust, before its delays are built in: few beside those that
/// it took to find that out.
fn brief_look(program: &Program, so_far: u64) -> Option<u64> {
    let threads = program.threads().len();
    let most = LOOK / (threads as u64).saturating_sub(1).max(1);
    (threads <= FEW_THREADS && so_far > SHORT).then_some(most.min(so_far / 2))
}

/// May some value grow without a bound that the text shows?
fn grows(program: &Program, limits: &Limits) -> Result<bool, Limit> {
    let intervals = Intervals::of(program, limits)?;
    let large = |i: Interval| i.width() > MANY_BITS;
    if (0..program.cells()).any(|a| large(intervals.cell(a))) {
        return Ok(true);
    }
    intervals.any_register(program, large, limits)
}

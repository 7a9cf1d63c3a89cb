//! Which engine, and for how long? They take turns, each with more to spend than before.
//!
//! The lazy one begins: it proves robust programs safe, and finds short runs. Some programs that are safe and
//! not robust have few states under TSO, and no end of delays: those are for the explicit one. So are runs
//! with many delays, which a search often finds at once that goes straight ahead. Many programs of few
//! threads that are not robust are so small that a brief look at all their states settles them: that comes
//! before the first delay is tried. Engines are known here by the table and by their trait alone.

mod contest;

use super::{Allowance, EXPLICIT, Engine, Internal, LAZY, Options, Subject, Turn, outcome};
use crate::analysis::interval::{Interval, Intervals};
use crate::certify::{Checked, Outcome};
use crate::model::Program;
use crate::query::{Answer, Contest, Limit, Limits};
use crate::reach::{Budget, Order};
use contest::Contestant;

/// States that are worth spending in any case.
const LITTLE: u64 = 5_000;
/// States of the brief look at a program that is not robust: so many for two threads, half of that for three,
/// and so on, up to the last number of threads for which it pays.
const LOOK: u64 = 1_000;
const FEW_THREADS: usize = 3;
/// States of a first round after which the next ones are short too, and tell more than a look would.
const SHORT: u64 = 500;
/// States of a search that goes straight ahead, once there are delays and a brief search has found no short
/// run.
const STRAIGHT: u64 = 3_000;
/// With each turn, there are so many times as many states to spend.
const GROWTH: u64 = 4;
/// The explicit engine's later turns are so many times as long as the lazy one's: if its search comes to an
/// end, that is an answer.
const LONGER: u64 = 3;

/// The engines that take turns; their rivals come after them.
const MOST_TURNS: usize = 2;

/// States that the first SC check may store before that where values grow, perhaps for ever.
const FIRST: u64 = 100_000;
/// A value that needs more bits than this is taken to grow.
const MANY_BITS: u32 = 32;

pub fn check(subject: &Subject, options: &Options, limits: &Limits) -> Result<Outcome, Internal> {
    let one_of_several = |_| limits.for_one_of_several();
    let each: Vec<Limits> = (0..options.workers.max(MOST_TURNS)).map(one_of_several).collect();
    let mut explicit = (EXPLICIT.start)(subject, options, &each[1]);
    if (LAZY.refuses)(options).is_some() || (LAZY.blind_spot)(subject).is_some() {
        let answer = exhaust(&mut *explicit, Budget::UNLIMITED, options.effort)?;
        let answer = answer.expect("nothing but the effort bounds the turn");
        return Ok(outcome(&*explicit, answer, options));
    }
    let depth_first = Options { order: Order::DepthFirst, ..options.clone() };
    let straight = (EXPLICIT.start)(subject, &depth_first, &each[1]);
    let lazy = (LAZY.start)(subject, options, &each[0]);
    Turns { subject, options, limits, each: &each, lazy, explicit, straight: Some(straight) }.take()
}

/// The engines that take turns.
struct Turns<'a> {
    subject: &'a Subject<'a>,
    options: &'a Options,
    limits: &'a Limits,
    /// For each engine its own: the lazy one, the explicit one, and rivals of the lazy one.
    each: &'a [Limits],
    lazy: Box<dyn Engine<'a> + 'a>,
    explicit: Box<dyn Engine<'a> + 'a>,
    /// The explicit engine once more, going straight ahead, until it has had its turn.
    straight: Option<Box<dyn Engine<'a> + 'a>>,
}

impl Turns<'_> {
    fn take(mut self) -> Result<Outcome, Internal> {
        let effort = self.options.effort;
        let first = match grows(self.subject.program(), self.limits) {
            Ok(true) => Budget::states(FIRST),
            Ok(false) => Budget::UNLIMITED,
            Err(limit) => return Ok(outcome(&*self.lazy, Answer::Unknown(limit), self.options)),
        };
        let mut allowance = Allowance { exhaust: first, hunt: Budget::NONE, ask: Budget::UNLIMITED };
        let mut budget = LITTLE;
        loop {
            let turn = self.lazy.turn(allowance)?;
            let (states, rounds) = (self.lazy.stats().states, self.lazy.stats().iterations);
            let most = match turn {
                // What was too much for the one may do for the other.
                Turn::Answered(Answer::Unknown(
                    Limit::ProgramSize(_) | Limit::StateSize(_) | Limit::States(_),
                )) => Budget::UNLIMITED,
                Turn::Answered(answer) => return Ok(outcome(&*self.lazy, answer, self.options)),
                _ if effort.is_some_and(|most| states >= most) => {
                    let answer = Answer::Unknown(Limit::States(states));
                    return Ok(outcome(&*self.lazy, answer, self.options));
                }
                Turn::Progress if rounds == 1 => {
                    if let Some(most) = brief_look(self.subject.program(), states)
                        && let Some(answer) = exhaust(&mut *self.explicit, most, effort)?
                        && !matches!(answer, Answer::Unknown(_))
                    {
                        return Ok(self.handed_over(&*self.explicit, answer));
                    }
                    if self.runs_side_by_side() {
                        return self.contest(budget.max(states));
                    }
                    allowance.ask = Budget::states(GROWTH * states.max(LITTLE));
                    continue;
                }
                Turn::Progress if states < budget => continue,
                Turn::Progress | Turn::Spent => {
                    budget = budget.max(states);
                    Budget::states(if self.straight.is_some() { budget } else { LONGER * budget })
                }
            };
            if self.lazy.safe_under_sc()
                && let Some(mut straight) = self.straight.take()
                && let Some(answer) = exhaust(&mut *straight, Budget::states(STRAIGHT), effort)?
            {
                return Ok(self.handed_over(&*straight, answer));
            }
            if self.runs_side_by_side() {
                return self.contest(budget);
            }
            if let Some(answer) = exhaust(&mut *self.explicit, most, effort)? {
                return Ok(self.handed_over(&*self.explicit, answer));
            }
            budget *= GROWTH;
            let more = Budget::states(budget);
            allowance = Allowance { exhaust: Budget::UNLIMITED, hunt: more, ask: more };
        }
    }

    fn runs_side_by_side(&self) -> bool {
        let Options { side_by_side, workers, effort, .. } = *self.options;
        side_by_side && workers > 1 && effort.is_none()
    }

    /// The engines side by side, and rivals of the lazy one that build in other delays, as many as there are
    /// workers.
    fn contest(mut self, budget: u64) -> Result<Outcome, Internal> {
        let mut rivals = self.lazy.rivals(&self.each[MOST_TURNS..])?;
        let lazily: fn(u64) -> Allowance = |states| {
            let more = Budget::states(states);
            Allowance { exhaust: Budget::UNLIMITED, hunt: more, ask: more }
        };
        let explicitly: fn(u64) -> Allowance =
            |states| Allowance { exhaust: Budget::states(LONGER * states), ..Allowance::default() };
        let mut contestants = vec![
            Contestant { engine: &mut self.lazy, limits: &self.each[0], allow: lazily, begins_anew: false },
            Contestant {
                engine: &mut self.explicit,
                limits: &self.each[1],
                allow: explicitly,
                begins_anew: true,
            },
        ];
        for (rival, limits) in rivals.iter_mut().zip(&self.each[MOST_TURNS..]) {
            contestants.push(Contestant { engine: rival, limits, allow: lazily, begins_anew: false });
        }
        let mut contest =
            Contest { runs: contestants.len(), candidates: contestants.len() - 1, won_by: None };
        let (winner, answer) = contest::run(contestants, budget, GROWTH)?;
        let mut outcome = match winner {
            1 => self.handed_over(&*self.explicit, answer),
            0 => outcome(&*self.lazy, answer, self.options),
            rival => outcome(&*rivals[rival - MOST_TURNS], answer, self.options),
        };
        contest.won_by = (winner != 1).then_some(winner.max(1));
        outcome.stats.contest = Some(contest);
        Ok(outcome)
    }

    /// The other engine has the answer; what the lazy one's rounds cost is told along with it.
    fn handed_over(&self, engine: &dyn Engine<'_>, answer: Checked) -> Outcome {
        let lazy = self.lazy.stats();
        let mut outcome = outcome(engine, answer, self.options);
        outcome.safe_under_sc = self.lazy.safe_under_sc();
        outcome.stats.states += lazy.states;
        outcome.stats.transitions += lazy.transitions;
        outcome.stats.iterations = lazy.iterations;
        outcome.stats.rounds = lazy.rounds.clone();
        outcome
    }
}

/// The engine's answer, unless it has spent its turn. If the effort is less than that, there is no point in
/// further turns.
fn exhaust(
    engine: &mut dyn Engine<'_>,
    most: Budget,
    effort: Option<u64>,
) -> Result<Option<Checked>, Internal> {
    let budget = most.and(effort.map_or(Budget::UNLIMITED, Budget::states));
    Ok(match engine.turn(Allowance { exhaust: budget, ..Allowance::default() })? {
        Turn::Answered(answer) => Some(answer),
        Turn::Progress | Turn::Spent => {
            effort.filter(|&effort| most.exceeds(effort)).map(|effort| Answer::Unknown(Limit::States(effort)))
        }
    })
}

/// States that are worth spending on a program that is not robust, before its delays are built in: few beside
/// those that it took to find that out.
fn brief_look(program: &Program, so_far: u64) -> Option<Budget> {
    let threads = program.threads().len();
    let most = LOOK / (threads as u64).saturating_sub(1).max(1);
    (threads <= FEW_THREADS && so_far > SHORT).then_some(Budget::states(most.min(so_far / 2)))
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

//! Which engine, and for how long? They take turns, each with more to spend than before.
//!
//! The lazy one begins: it proves robust programs safe. Of those that are safe under SC and not robust, lagging
//! readers settle most at once, whatever their loops put into buffers: they come next, before the first delay
//! is built in. Where threads scan many cells they take long; then some programs have few states under TSO,
//! and no end of delays, which is for the explicit engine, and others have a run with few delays, which is for
//! the lazy one. Runs with many delays are often found at once by a search that goes straight ahead. Goals
//! that look into blocks are beyond the lazy engine: there the other two share the work.
//!
//! Readers cost more for each state than the explicit engine, and where both have the answer it is often the
//! quicker one. So they get a small share of what it gets, until its buffers show that its search has no
//! end. Engines are known here by the table and by their trait alone.

mod contest;

use super::{Allowance, EXPLICIT, Engine, Internal, LAZY, Options, PAST, Subject, Turn, outcome};
use crate::analysis::interval::{Interval, Intervals};
use crate::certify::{Checked, Outcome};
use crate::model::{Edge, Instr, Program};
use crate::query::{Answer, Contest, EngineTurn, Limit, Limits};
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

/// States of lagging readers before the first delay is built in: so many, or as many as it took to find that
/// there is one, if that is less.
const LAG: u64 = 2_000;
const SHORTEST_LAG: u64 = 400;
/// Later on, a state of theirs is taken for so many of the explicit engine's.
const SHARE: u64 = 12;
/// A buffer of more entries than all stores of the program times this one is filled by a loop, and may well
/// have no end.
const ENDLESS: usize = 3;

/// The engines that take turns; their rivals come after them.
const MOST_TURNS: usize = 3;

/// States that the first SC check may store before that where values grow, perhaps for ever.
const FIRST: u64 = 100_000;
/// A value that needs more bits than this is taken to grow.
const MANY_BITS: u32 = 32;

pub(crate) fn check(subject: &Subject, options: &Options, limits: &Limits) -> Result<Outcome, Internal> {
    let one_of_several = |_| limits.for_one_of_several();
    let each: Vec<Limits> = (0..options.workers.max(MOST_TURNS)).map(one_of_several).collect();
    let depth_first = Options { order: Order::DepthFirst, ..options.clone() };
    let past = (PAST.refuses)(options).is_none() && (PAST.blind_spot)(subject).is_none();
    let turns = Turns {
        subject,
        options,
        limits,
        each: &each,
        lazy: (LAZY.start)(subject, options, &each[0]),
        explicit: (EXPLICIT.start)(subject, options, &each[1]),
        straight: Some((EXPLICIT.start)(subject, &depth_first, &each[1])),
        past: past.then(|| (PAST.start)(subject, options, &each[2])),
        taken: Vec::new(),
    };
    if (LAZY.refuses)(options).is_some() || (LAZY.blind_spot)(subject).is_some() {
        return turns.take_without_delays();
    }
    turns.take()
}

/// The engines that take turns.
struct Turns<'a> {
    subject: &'a Subject<'a>,
    options: &'a Options,
    limits: &'a Limits,
    /// For each engine its own: the lazy one, the explicit one, lagging readers, and rivals of the lazy one.
    each: &'a [Limits],
    lazy: Box<dyn Engine<'a> + 'a>,
    explicit: Box<dyn Engine<'a> + 'a>,
    /// The explicit engine once more, going straight ahead, until it has had its turn.
    straight: Option<Box<dyn Engine<'a> + 'a>>,
    /// Lagging readers, unless they cannot answer.
    past: Option<Box<dyn Engine<'a> + 'a>>,
    /// For the story: who was asked, and why.
    taken: Vec<EngineTurn>,
}

/// The engine that has the answer.
#[derive(Clone, Copy)]
enum Who {
    Explicit,
    Past,
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
            let why = if self.taken.is_empty() { "robust programs first" } else { "a few delays may do" };
            let turn = self.lazy.turn(allowance)?;
            let (states, rounds) = (self.lazy.stats().states, self.lazy.stats().iterations);
            self.note(LAZY.name, why, states);
            let most = match turn {
                // What was too much for the one may do for the other.
                Turn::Answered(Answer::Unknown(
                    Limit::ProgramSize(_) | Limit::StateSize(_) | Limit::States(_),
                )) => Budget::UNLIMITED,
                Turn::Answered(answer) => return Ok(self.told(outcome(&*self.lazy, answer, self.options))),
                _ if effort.is_some_and(|most| states >= most) => {
                    let answer = Answer::Unknown(Limit::States(states));
                    return Ok(self.told(outcome(&*self.lazy, answer, self.options)));
                }
                Turn::Progress if rounds == 1 => {
                    let most = states.clamp(SHORTEST_LAG, LAG);
                    let why = "safe under SC and not robust";
                    if let Some(answer) = self.look_back(Budget::states(most), why)? {
                        return Ok(self.handed_over(Who::Past, answer));
                    }
                    if let Some(most) = brief_look(self.subject.program(), states)
                        && let Some(answer) = self.look_at_all(most, "few threads, and not robust")?
                        && !matches!(answer, Answer::Unknown(_))
                    {
                        return Ok(self.handed_over(Who::Explicit, answer));
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
            {
                let answer = exhaust(&mut *straight, Budget::states(STRAIGHT), effort)?;
                self.note(EXPLICIT.name, "a long run may lie straight ahead", straight.stats().states);
                if let Some(answer) = answer {
                    self.explicit = straight;
                    return Ok(self.handed_over(Who::Explicit, answer));
                }
            }
            if self.runs_side_by_side() {
                return self.contest(budget);
            }
            if let Some((who, answer)) = self.without_delays(most, budget)? {
                return Ok(self.handed_over(who, answer));
            }
            budget *= GROWTH;
            let more = Budget::states(budget);
            allowance = Allowance { exhaust: Budget::UNLIMITED, hunt: more, ask: more };
        }
    }

    /// For goals that the lazy engine cannot see, and options that it refuses.
    fn take_without_delays(mut self) -> Result<Outcome, Internal> {
        let mut budget = LITTLE;
        let first = Budget::states(LAG);
        if let Some(answer) = self.look_back(first, "delays do not show what the goal asks for")? {
            return Ok(self.handed_over(Who::Past, answer));
        }
        loop {
            let most = match self.past {
                Some(_) => Budget::states(SHARE * GROWTH * budget),
                None => Budget::UNLIMITED,
            };
            if let Some((who, answer)) = self.without_delays(most, budget)? {
                return Ok(self.handed_over(who, answer));
            }
            // The explicit engine begins anew with each turn: few and long ones waste least.
            budget *= GROWTH * GROWTH;
        }
    }

    /// A turn for lagging readers, and one for the explicit engine.
    fn without_delays(&mut self, most: Budget, budget: u64) -> Result<Option<(Who, Checked)>, Internal> {
        let (share, why) = match self.is_endless() {
            true => (budget, "buffers grow without end"),
            false => (budget / SHARE, "loops may fill buffers without end"),
        };
        if let Some(answer) = self.look_back(Budget::states(share.max(LAG)), why)? {
            return Ok(Some((Who::Past, answer)));
        }
        let answer = self.look_at_all(most, "buffers may have an end")?;
        Ok(answer.map(|answer| (Who::Explicit, answer)))
    }

    /// Lagging readers' answer, unless they have spent their turn. One that they are too large for leaves the
    /// others going.
    fn look_back(&mut self, most: Budget, why: &'static str) -> Result<Option<Checked>, Internal> {
        let Some(past) = &mut self.past else { return Ok(None) };
        let answer = exhaust(&mut **past, most, self.options.effort)?;
        let states = past.stats().states;
        self.note(PAST.name, why, states);
        if let Some(Answer::Unknown(Limit::StateSize(_) | Limit::States(_))) = answer {
            self.past = None;
            return Ok(None);
        }
        Ok(answer)
    }

    fn look_at_all(&mut self, most: Budget, why: &'static str) -> Result<Option<Checked>, Internal> {
        let answer = exhaust(&mut *self.explicit, most, self.options.effort)?;
        self.note(EXPLICIT.name, why, self.explicit.stats().states);
        Ok(answer)
    }

    /// Do the explicit engine's buffers look as if a loop went on filling them?
    fn is_endless(&self) -> bool {
        let is_store = |edge: &Edge| matches!(edge.instr, Instr::Store { .. });
        let threads = self.subject.program().threads().iter();
        let stores: usize = threads.map(|t| t.edges().filter(|(_, e)| is_store(e)).count()).sum();
        self.explicit.stats().longest_buffer > ENDLESS * stores
    }

    fn note(&mut self, engine: &'static str, why: &'static str, states: u64) {
        match self.taken.last_mut() {
            Some(last) if last.engine == engine && last.why == why => last.states = states,
            _ => self.taken.push(EngineTurn { engine, why, states }),
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
        let candidates = 1 + rivals.len();
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
        if let Some(past) = &mut self.past {
            let limits = &self.each[2];
            contestants.push(Contestant { engine: past, limits, allow: explicitly, begins_anew: false });
        }
        let mut contest = Contest { runs: contestants.len(), candidates, won_by: None };
        let (winner, answer) = contest::run(contestants, budget, GROWTH)?;
        // The lazy engine, the explicit one, rivals of the lazy one, and lagging readers last.
        let (mut outcome, won_by) = match winner {
            0 => (outcome(&*self.lazy, answer, self.options), Some(1)),
            1 => (self.handed_over(Who::Explicit, answer), None),
            rival if rival <= candidates => (outcome(&*rivals[rival - 2], answer, self.options), Some(rival)),
            _ => (self.handed_over(Who::Past, answer), None),
        };
        contest.won_by = won_by;
        outcome.stats.contest = Some(contest);
        Ok(outcome)
    }

    /// Another engine has the answer; what the lazy one's rounds cost is told along with it.
    fn handed_over(&mut self, who: Who, answer: Checked) -> Outcome {
        let engine = match (who, &self.past) {
            (Who::Past, Some(past)) => past,
            _ => &self.explicit,
        };
        let lazy = self.lazy.stats();
        let mut outcome = outcome(&**engine, answer, self.options);
        outcome.safe_under_sc = self.lazy.safe_under_sc();
        outcome.stats.states += lazy.states;
        outcome.stats.transitions += lazy.transitions;
        outcome.stats.rounds = lazy.rounds.clone();
        outcome.stats.iterations = lazy.iterations;
        self.told(outcome)
    }

    fn told(&mut self, mut outcome: Outcome) -> Outcome {
        outcome.stats.turns = std::mem::take(&mut self.taken);
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

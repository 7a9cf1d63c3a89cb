//! Several engines side by side, each on a thread of its own: the first answer stops the rest.
//!
//! Each goes on in turns, with more to spend whenever a turn was too short, until it has an answer or another
//! one has. The first contestant's limits are the user's; one that the program outgrows leaves the others
//! going, and so does any other contestant that comes to a limit. What an engine answers has been judged by
//! `certify` before it gets here, whichever thread it comes from.

use crate::certify::Checked;
use crate::engine::{Allowance, Engine, Internal, Turn};
use crate::query::{Answer, Limit, Limits};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Of the memory that there is, one that begins anew with each turn may take this part while others need some
/// too.
const PART: u64 = 4;
/// How often it looks whether they still do.
const WHILE: Duration = Duration::from_millis(5);

/// One that takes part.
pub(crate) struct Contestant<'e, 'a> {
    pub engine: &'e mut Box<dyn Engine<'a> + 'a>,
    /// The limits that the engine goes by, and no other one.
    pub limits: &'e Limits,
    /// What a turn may spend, given a number of states.
    pub allow: fn(u64) -> Allowance,
    /// Does a turn begin anew? Then a longer one takes more memory, and what was spent before is lost.
    pub begins_anew: bool,
}

/// The number of the contestant that has the answer, and the answer.
pub(crate) fn run(
    contestants: Vec<Contestant<'_, '_>>,
    budget: u64,
    growth: u64,
) -> Result<(usize, Checked), Internal> {
    let stops: Vec<&Limits> = contestants.iter().map(|c| c.limits).collect();
    let ended = Mutex::new(Ended::default());
    let going = AtomicUsize::new(contestants.len());
    std::thread::scope(|scope| {
        for (number, mut contestant) in contestants.into_iter().enumerate() {
            let (ended, stops, going) = (&ended, &stops, &going);
            scope.spawn(move || {
                let answer = contestant.play(budget, growth, going);
                going.fetch_sub(1, Ordering::Relaxed);
                let mut ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
                if ended.hear(number, answer) {
                    stops.iter().for_each(|limits| limits.superseded.store(true, Ordering::Relaxed));
                }
            });
        }
    });
    ended.into_inner().unwrap_or_else(PoisonError::into_inner).verdict()
}

/// What has been heard so far.
#[derive(Default)]
struct Ended {
    first: Option<Result<(usize, Checked), Internal>>,
    undecided: Vec<(usize, Limit)>,
}

impl Ended {
    /// Is this the end of it?
    fn hear(&mut self, number: usize, answer: Result<Checked, Internal>) -> bool {
        match answer {
            // An error matters whoever has won: it is a bug.
            Err(bug) => self.first = Some(Err(bug)),
            Ok(Answer::Unknown(limit)) if number > 0 || outgrown(&limit) => {
                self.undecided.push((number, limit));
                return false;
            }
            Ok(answer) if self.first.is_none() => self.first = Some(Ok((number, answer))),
            Ok(_) => {}
        }
        true
    }

    fn verdict(self) -> Result<(usize, Checked), Internal> {
        let Ended { first, undecided } = self;
        first.unwrap_or_else(|| {
            let (number, limit) = undecided.into_iter().min_by_key(|(number, _)| *number).expect("all ended");
            Ok((number, Answer::Unknown(limit)))
        })
    }
}

/// Has the program become too large for the engine?
fn outgrown(limit: &Limit) -> bool {
    matches!(limit, Limit::ProgramSize(_) | Limit::StateSize(_) | Limit::States(_))
}

impl Contestant<'_, '_> {
    fn play(&mut self, mut budget: u64, growth: u64, going: &AtomicUsize) -> Result<Checked, Internal> {
        self.engine.set_workers(1);
        loop {
            match self.engine.turn((self.allow)(budget))? {
                Turn::Answered(answer) => return Ok(answer),
                Turn::Progress => {}
                Turn::Spent => budget = budget.saturating_mul(growth),
            }
            while self.takes_too_much(budget) && going.load(Ordering::Relaxed) > 1 {
                if let Some(limit) = self.limits.expired() {
                    return Ok(Answer::Unknown(limit));
                }
                std::thread::sleep(WHILE);
            }
        }
    }

    /// Would a turn of so many states take more memory than one of several engines should have?
    fn takes_too_much(&self, states: u64) -> bool {
        let bytes = self.engine.stats().bytes_per_state * states as f64;
        self.begins_anew && self.limits.memory.is_some_and(|memory| bytes > (memory / PART) as f64)
    }
}

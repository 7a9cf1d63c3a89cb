//! What becomes of each property? One search for all that are open; the one that its run is against is
//! settled, and the rest are asked about again, until the rest are safe or a limit is reached. So a file whose
//! properties all hold costs no more than one property, and a violation of one hides no other.
//!
//! An error of a thread is nobody's property; it is looked for with all of them, and told as one if found.

use super::{Internal, Options, check, settled};
use crate::certify::{self, Outcome};
use crate::model::Program;
use crate::query::{Answer, Asked, Limit, Limits, Verdict, question};

/// What was found out.
#[derive(Clone, Debug)]
pub struct PropertyOutcomes {
    /// For each property that was asked about, in their order; for errors of threads only if there are some.
    pub each: Vec<(Asked, Outcome)>,
    /// The worst of them, with what all of them cost.
    pub worst: Outcome,
}

/// Which of the properties fail? With `errors`, errors of threads are looked for too.
pub fn check_each(
    program: &Program,
    asked: &[Asked],
    errors: bool,
    options: &Options,
    limits: &Limits,
) -> Result<PropertyOutcomes, Internal> {
    let mut rounds = Rounds { program, options, limits, told: vec![], latest: None };
    let mut open = asked.to_vec();
    open.extend(errors.then_some(Asked::Errors));
    rounds.settle(open)?;
    Ok(rounds.outcomes(asked))
}

struct Rounds<'a> {
    program: &'a Program,
    options: &'a Options,
    limits: &'a Limits,
    told: Vec<(Asked, Outcome)>,
    /// The last outcome, with what all of them cost.
    latest: Option<Outcome>,
}

impl Rounds<'_> {
    fn settle(&mut self, mut open: Vec<Asked>) -> Result<(), Internal> {
        loop {
            let outcome = self.ask(&open)?;
            match &outcome.answer {
                Answer::Fails(trace) => {
                    let culprit = Asked::against_by(self.program, trace);
                    if open.contains(&culprit) {
                        open.retain(|asked| *asked != culprit);
                        self.told.push((culprit, outcome));
                    } else {
                        // Whether an assert fails cannot be told where an error, known already, comes first.
                        let hidden = Answer::Unknown(Limit::Overshadowed);
                        let asserts = open.extract_if(.., |asked| matches!(asked, Asked::Asserts(_)));
                        let untold = Outcome { answer: hidden, provenance: None, ..outcome };
                        self.told.extend(asserts.map(|asked| (asked, untold.clone())));
                    }
                }
                Answer::Unknown(limit) if of_the_file(&open).count() > 1 && !ends_all(limit) => {
                    return of_the_file(&open).try_for_each(|asked| self.settle(vec![asked]));
                }
                Answer::Holds(_) | Answer::Unknown(_) => {
                    self.told.extend(open.into_iter().map(|asked| (asked, outcome.clone())));
                    return Ok(());
                }
            }
            if open.is_empty() {
                return Ok(());
            }
        }
    }

    /// Does any of these fail?
    fn ask(&mut self, open: &[Asked]) -> Result<Outcome, Internal> {
        let (aside, goal) = question(self.program, open);
        let mut outcome = check(aside.as_ref().unwrap_or(self.program), &goal, self.options, self.limits)?;
        if let (Some(_), Answer::Fails(trace)) = (&aside, &outcome.answer) {
            let actions: Vec<_> = trace.events.iter().map(|e| e.action).collect();
            let judged = certify::run(self.program, &goal, trace.model, &actions, self.limits);
            outcome.answer = settled(judged)?.map_or_else(Answer::Unknown, Answer::Fails);
        }
        let before = self.latest.take();
        let mut latest = outcome.clone();
        if let Some(before) = before {
            latest.stats.states += before.stats.states;
            latest.stats.transitions += before.stats.transitions;
            latest.stats.time += before.stats.time;
            latest.warnings.extend(before.warnings);
            latest.warnings.sort();
            latest.warnings.dedup();
        }
        self.latest = Some(latest);
        Ok(outcome)
    }

    fn outcomes(self, asked: &[Asked]) -> PropertyOutcomes {
        let Rounds { mut told, latest, .. } = self;
        let cost = latest.expect("something was asked");
        let verdict = |(_, outcome): &(Asked, Outcome)| outcome.answer.verdict();
        // Of several that are equally bad, the one that was found first.
        let worst = told.iter().rev().max_by_key(|told| verdict(told)).map_or(&cost, |(_, outcome)| outcome);
        let stats = match told.len() {
            0 | 1 => worst.stats.clone(),
            _ => crate::query::Stats {
                states: cost.stats.states,
                transitions: cost.stats.transitions,
                time: cost.stats.time,
                ..worst.stats.clone()
            },
        };
        let worst = Outcome { stats, warnings: cost.warnings.clone(), ..worst.clone() };
        told.retain(|told| told.0 != Asked::Errors || verdict(told) == Verdict::Fails);
        told.sort_by_key(|(of, _)| asked.iter().position(|a| a == of).unwrap_or(asked.len()));
        PropertyOutcomes { each: told, worst }
    }
}

/// What is asked but for errors of threads.
fn of_the_file(asked: &[Asked]) -> impl Iterator<Item = Asked> {
    asked.iter().copied().filter(|asked| *asked != Asked::Errors)
}

/// Does the limit leave nothing for others?
fn ends_all(limit: &Limit) -> bool {
    matches!(limit, Limit::Time(_) | Limit::Memory(_) | Limit::Cancelled)
}

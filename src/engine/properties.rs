//! What becomes of each property? One search for all that are open; the one that its run is against is
//! settled, and the rest are asked about again, until the rest are safe or a limit is reached. So a file whose
//! properties all hold costs no more than one property, and a violation of one hides no other.
//!
//! An error of a thread is nobody's property; it is looked for with all of them, and told as one if found.

use super::{
    Hanging, Internal, Options, check, hang_of_retrying, of_final_states, settled, whether_it_hangs,
};
use crate::analysis::interval;
use crate::certify::{self, Outcome};
use crate::model::{Program, PropertyKind};
use crate::query::{Answer, Asked, Limit, Limits, Model, Verdict, question};
use std::collections::HashMap;

/// What was found out.
#[derive(Clone, Debug)]
pub struct PropertyOutcomes {
    /// For each property that was asked about, in their order; for errors of threads only if there are some.
    pub each: Vec<(Asked, Outcome)>,
    /// The worst of them, with what all of them cost.
    pub worst: Outcome,
    /// What was found out about `no hang`, if that was asked: its run is one of a program with ways back from
    /// where threads wait.
    pub hanging: Option<Hanging>,
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
    let of_states = asked.iter().copied().filter(|asked| *asked != Asked::NoHang);
    let mut open: Vec<Asked> = of_states.chain(errors.then_some(Asked::Errors)).collect();
    if asked.contains(&Asked::NoHang) {
        // Where nothing else is asked, only what may go wrong is looked at beside it.
        open.retain(|one| *one != Asked::Errors || asked.len() > 1 || program_may_go_wrong(program, limits));
    }
    if !open.is_empty() {
        rounds.settle(open)?;
    }
    let hanging = match asked.contains(&Asked::NoHang) {
        true => Some(rounds.hang()?),
        false => None,
    };
    let vacuous = rounds.vacuous()?;
    let mut outcomes = rounds.outcomes(asked);
    outcomes.worst.warnings.extend(vacuous);
    Ok(PropertyOutcomes { hanging, ..outcomes })
}

fn program_may_go_wrong(program: &Program, limits: &Limits) -> bool {
    interval::may_go_wrong(program, limits) != Ok(false)
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
        self.add_cost(&outcome);
        Ok(outcome)
    }

    /// Does the program hang?
    fn hang(&mut self) -> Result<Hanging, Internal> {
        let mut found = whether_it_hangs(self.program, self.options.model, self.limits)?;
        // Only under TSO, if no run under SC does.
        if matches!(found.outcome.answer, Answer::Fails(_)) && self.options.model == Model::Tso {
            let sc = hang_of_retrying(found.program.clone(), Model::Sc, self.limits)?;
            match sc.outcome.answer {
                Answer::Fails(_) => {
                    found = Hanging { outcome: Outcome { model: Model::Tso, ..sc.outcome }, ..sc }
                }
                Answer::Holds(_) => found.outcome.safe_under_sc = true,
                Answer::Unknown(_) => {}
            }
        }
        self.told.push((Asked::NoHang, found.outcome.clone()));
        self.add_cost(&found.outcome);
        Ok(found)
    }

    fn add_cost(&mut self, outcome: &Outcome) {
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
    }

    /// The warning that there is no final state, or that nobody knows, if a property of final states holds.
    fn vacuous(&self) -> Result<Option<String>, Internal> {
        let is_of_final = |asked: &Asked| match asked {
            Asked::Property(k) => self.program.properties()[*k].kind != PropertyKind::Forbid,
            _ => false,
        };
        let holds = |(asked, outcome): &&(Asked, Outcome)| {
            is_of_final(asked) && matches!(outcome.answer, Answer::Holds(_))
        };
        let held: Vec<Asked> = self.told.iter().filter(holds).map(|(asked, _)| *asked).collect();
        let Some(first) = held.first() else { return Ok(None) };
        let said = self.latest.iter().flat_map(|latest| &latest.warnings);
        if said.into_iter().any(|warning| warning.contains("is vacuous")) {
            return Ok(None);
        }
        let line = first.line(self.program);
        let which = match (held.len(), line) {
            (1, 0) => "the property of final states holds".to_string(),
            (1, line) => format!("the property on line {} holds", self.program.place(line)),
            (several, _) => format!("{several} properties of final states hold"),
        };
        of_final_states(self.program, &which, self.options, self.limits)
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
        let places: HashMap<Asked, usize> = asked.iter().enumerate().map(|(k, a)| (*a, k)).collect();
        told.sort_by_key(|(of, _)| places.get(of).copied().unwrap_or(asked.len()));
        PropertyOutcomes { each: told, worst, hanging: None }
    }
}

/// What is asked but for errors of threads.
fn of_the_file(asked: &[Asked]) -> impl Iterator<Item = Asked> {
    asked.iter().copied().filter(|asked| *asked != Asked::Errors)
}

/// Does the limit leave nothing for others?
fn ends_all(limit: &Limit) -> bool {
    matches!(limit, Limit::Time(_) | Limit::Memory(_) | Limit::Cancelled | Limit::Lost(_))
}

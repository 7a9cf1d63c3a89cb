//! Which fewest fences keep a model that is given by axioms from what is forbidden, if each orders one kind of
//! access before one other?
//!
//! The same loop of the implicit hitting set. All places are steps of one program, filled by what the solver
//! is to assume; a core is what is missing in a set of fences as large as a run against the property can
//! stand. So each core comes with a run that has been performed, and what is least misses none of them. What is
//! given is built into the program as it was, and that is checked from scratch.

use super::apply::with_steps;
use super::candidates::{Allowed, Candidates};
use super::{RepairAnswer, internal, unsearched};
use crate::certify::{Remaining, Repair};
use crate::engine::{self, FencePlaces, FencedProgram, Internal, Unanswered};
use crate::hitting::{Cores, cost};
use crate::model::{FenceKinds, Instr, Invalid, Program};
use crate::query::repair::{Aim, Change, Cheapest, Enough};
use crate::query::{Answer, Axioms, Goal, Limits, Stats};
use std::collections::BTreeSet;
use std::time::Instant;

/// The fewest fences of the four kinds with which the properties hold under the model; up to so many sets of them.
pub fn repair_by_axioms(
    program: &Program,
    model: Axioms,
    list: usize,
    allowed: &Allowed,
    limits: &Limits,
) -> Result<Repair, Internal> {
    let start = Instant::now();
    let candidates = match Candidates::of_kinds(program, allowed, limits) {
        Ok(candidates) => candidates,
        Err(limit) => return Ok(unsearched(Aim::Property, limit)),
    };
    let mut search = KindSearch { program, model, candidates, limits, cores: Cores::default(), checks: 0 };
    let answer = match search.answer(list) {
        Ok(answer) => answer,
        Err(Unanswered::Limit(limit)) => Answer::Unknown(limit),
        Err(Unanswered::Doubt(bug)) => return Err(bug),
    };
    let costs = &search.candidates.costs;
    let lower_bound = search.cores.cheapest(costs, limits).map_or(0, |choice| cost(&choice, costs));
    Ok(Repair {
        aim: Aim::Property,
        answer,
        allowed: search.candidates.remedies.len(),
        cores: search.cores.count(),
        checks: search.checks,
        lower_bound,
        stats: Stats { workers: 1, time: start.elapsed(), ..Stats::default() },
    })
}

struct KindSearch<'a> {
    program: &'a Program,
    model: Axioms,
    candidates: Candidates,
    limits: &'a Limits,
    cores: Cores,
    checks: u64,
}

/// The place and the kind of each candidate.
type Numbered = Vec<(usize, usize)>;

impl KindSearch<'_> {
    fn answer(&mut self, list: usize) -> Result<RepairAnswer, Unanswered> {
        let (stepped, places, numbered) = self.steps()?;
        let goal = Goal::of(&stepped);
        let mut fenced = FencedProgram::new(&stepped, &places, &goal, self.model, self.limits)?;
        let choice = loop {
            let choice = self.cores.cheapest(&self.candidates.prices, self.limits)?;
            match self.core(&mut fenced, &numbered, &choice)? {
                None => break choice,
                Some(core) if core.is_empty() => return self.none(fenced, &numbered),
                Some(core) => {
                    self.cores.add(core);
                }
            }
        };
        let least = cost(&choice, &self.candidates.costs);
        let (choices, more) = match list {
            0 | 1 => (vec![choice], false),
            most => self.all(&mut fenced, &numbered, choice, most)?,
        };
        let mut sets = Vec::new();
        for choice in &choices {
            self.confirm(choice)?;
            sets.push(self.candidates.choose(choice));
        }
        Ok(Answer::Holds(Enough { sets, cost: least, cheapest: Cheapest::Proved, more }))
    }

    /// The program with a step that does nothing at each place.
    fn steps(&self) -> Result<(Program, FencePlaces, Numbered), Unanswered> {
        let (mut all, mut places): (Vec<&[Change]>, Vec<(Change, usize)>) = (Vec::new(), Vec::new());
        let mut numbered = Numbered::new();
        for remedy in &self.candidates.remedies {
            let number =
                all.iter().position(|changes| *changes == &remedy.changes[..]).unwrap_or_else(|| {
                    places.extend(remedy.changes.iter().map(|change| (*change, all.len())));
                    all.push(&remedy.changes);
                    all.len() - 1
                });
            numbered.extend(remedy.kind.map(|kind| (number, kind)));
        }
        let steps: Vec<(Change, Instr)> = places.iter().map(|(change, _)| (*change, Instr::Nop)).collect();
        let (stepped, edges) = with_steps(self.program, &steps).map_err(invalid)?;
        let at = |((change, number), edge): (&(Change, usize), _)| ((change.thread(), edge), *number);
        let places = places.iter().zip(edges).map(at).collect();
        Ok((stepped, places, numbered))
    }

    /// Fences of which one is missing beside these; nothing if they are enough. As many others as possible are
    /// added as long as some run is still against the property.
    fn core(
        &mut self,
        fenced: &mut FencedProgram<'_>,
        numbered: &Numbered,
        choice: &[usize],
    ) -> Result<Option<Vec<usize>>, Unanswered> {
        let mut fences: Numbered = choice.iter().map(|&c| numbered[c]).collect();
        self.limits.take_note(format!("{} cores, {} fences", self.cores.count(), choice.len()));
        self.checks += 1;
        if fenced.fails(&fences)?.is_none() {
            return Ok(None);
        }
        let mut core = Vec::new();
        for c in (0..numbered.len()).filter(|c| !choice.contains(c)) {
            fences.push(numbered[c]);
            self.checks += 1;
            if fenced.fails(&fences)?.is_none() {
                fences.pop();
                core.push(c);
            }
        }
        Ok(Some(core))
    }

    /// A run remains, whatever fences there are.
    fn none(
        &mut self,
        mut fenced: FencedProgram<'_>,
        numbered: &Numbered,
    ) -> Result<RepairAnswer, Unanswered> {
        match fenced.fails(numbered)? {
            Some(run) => {
                let changed = Box::new(fenced.with(numbered));
                Ok(Answer::Fails(Remaining::ByAxioms { run, changed }))
            }
            None => Err(doubt("a run is there with some fences, and then is not")),
        }
    }

    /// All choices that cost as little as this one and are enough.
    fn all(
        &mut self,
        fenced: &mut FencedProgram<'_>,
        numbered: &Numbered,
        first: Vec<usize>,
        most: usize,
    ) -> Result<(Vec<Vec<usize>>, bool), Unanswered> {
        let mut good = BTreeSet::from([first]);
        loop {
            let (all, more) = self.cores.all_cheapest(&self.candidates.costs, most, self.limits)?;
            let Some(next) = all.into_iter().find(|choice| !good.contains(choice)) else {
                return Ok((good.into_iter().collect(), more));
            };
            match self.core(fenced, numbered, &next)? {
                None => {
                    good.insert(next);
                }
                Some(core) if core.is_empty() => {
                    return Err(doubt("a run remains where another choice prevents all"));
                }
                Some(core) => {
                    self.cores.add(core);
                }
            }
        }
    }

    /// Asks from scratch whether the program with these fences is what it is to be.
    fn confirm(&mut self, choice: &[usize]) -> Result<(), Unanswered> {
        let mut steps: Vec<(Change, Instr)> = Vec::new();
        for remedy in self.candidates.choose(choice) {
            let fence = Instr::Partial(remedy.kind.map_or(FenceKinds::NONE, FenceKinds::one));
            steps.extend(remedy.changes.iter().map(|change| (*change, fence.clone())));
        }
        let (repaired, _) = with_steps(self.program, &steps).map_err(invalid)?;
        self.checks += 1;
        let outcome = engine::axiomatic_check(&repaired, &Goal::of(&repaired), self.model, self.limits);
        match outcome.map_err(Unanswered::Doubt)?.answer {
            Answer::Holds(()) => Ok(()),
            Answer::Fails(_) => Err(doubt("the repaired program fails where it was said to hold")),
            Answer::Unknown(limit) => Err(limit.into()),
        }
    }
}

fn doubt(what: &str) -> Unanswered {
    Unanswered::Doubt(engine::internal(what))
}

fn invalid(wrong: Vec<Invalid>) -> Unanswered {
    Unanswered::Doubt(internal(wrong))
}

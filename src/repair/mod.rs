//! Which fewest fences repair the program? An implicit hitting set (`[MorenoKarp13]`), which gives optimal
//! answers.
//!
//! A run against the aim is a *core*: the changes of which at least one is needed to prevent it. For a
//! witness these are the places between its store and its load; for a trace those of each store that its
//! thread's later steps overtook, since where nothing overtakes a store, the store might as well have come
//! later, behind any fence. A cheapest choice that hits all cores known so far is put into the program, which
//! is then checked from scratch: a new run is a new core, and none means that the choice is enough. It is
//! optimal, for whatever is enough hits every core. Each core misses the choice it refutes, so the search
//! ends. Not here: solving the hitting sets (`hitting`), what may be changed (`candidates`), changing it
//! (`apply`), what threads do while stores wait (`waiting`), the same for models that are given by axioms
//! (`axiomatic`). Nothing here knows text or files.

mod apply;
mod axiomatic;
mod candidates;
mod waiting;

pub use apply::{apply, unused};
pub use axiomatic::repair_by_axioms;
pub use candidates::Allowed;

use crate::certify::{Counterexample, Outcome, Remaining, Repair};
use crate::engine::{self, Internal, LazyOptions, Options, ShownRun};
use crate::hitting::{Cores, cost};
use crate::model::{Invalid, Program, SourceMap};
use crate::query::repair::{Aim, Cheapest, Enough, Remedy};
use crate::query::{Answer, Goal, Limit, Limits, Model, Stats};
use candidates::Candidates;
use std::collections::BTreeSet;
use std::time::Instant;
use waiting::{delayed_paths, frozen_at_the_end};

type RepairAnswer = Answer<Enough, Remaining>;

/// What is wanted beside the aim.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub aim: Aim,
    /// List up to so many of the cheapest sets, instead of one.
    pub list: usize,
}

/// The cheapest changes that are enough for the aim.
pub fn repair(
    program: &Program,
    wanted: &Wanted,
    allowed: &Allowed,
    options: &Options,
    limits: &Limits,
) -> Result<Repair, Internal> {
    // Ways back from where threads wait have no place in the text.
    let base = match (wanted.aim, engine::retrying(program)) {
        (Aim::NoHang, Ok(base)) => base,
        (Aim::NoHang, Err(wrong)) => return Err(internal(wrong)),
        _ => program.clone(),
    };
    let candidates = match Candidates::of(program, allowed, limits) {
        Ok(candidates) => candidates,
        Err(limit) => return Ok(unsearched(wanted.aim, limit)),
    };
    Search::new(base, candidates, wanted, options, limits).run()
}

/// The fewest of the program's own fences that have to stay, as changes that keep them.
pub fn prune(
    program: &Program,
    wanted: &Wanted,
    text: &SourceMap,
    options: &Options,
    limits: &Limits,
) -> Result<Repair, Internal> {
    let candidates = Candidates::of_own_fences(program, text);
    let base = apply::without_fences(program).map_err(internal)?;
    Search::new(base, candidates, wanted, options, limits).run()
}

/// The program's own fences, as [`prune`] counts them.
pub fn own_fences(program: &Program, text: &SourceMap) -> Vec<Remedy> {
    Candidates::of_own_fences(program, text).remedies
}

/// What there is to say if a limit was reached before anything was searched.
fn unsearched(aim: Aim, limit: Limit) -> Repair {
    let (allowed, cores, checks, lower_bound) = (0, 0, 0, 0);
    Repair {
        aim,
        answer: Answer::Unknown(limit),
        allowed,
        cores,
        checks,
        lower_bound,
        stats: Stats::default(),
    }
}

/// States that may be stored to find more than one witness at a time: so many at first, twice as many each
/// time that many were found, and so many at most. Where there are very many, few searches find them all.
const PATIENCE: u64 = 2_000;
const MOST_PATIENCE: u64 = 128 * PATIENCE;
const MANY_WITNESSES: usize = 5;

/// Rounds of the lazy engine after which a choice is left undecided, unless the user says otherwise: one that
/// loops can delay without end may take for ever.
const ROUNDS: u64 = 40;

/// States that the check of one choice may store at first, and how many times as many as all SC states. If
/// choices are left undecided that are cheaper than what is known to be enough, they are tried once more with
/// so many times the effort, up to the last.
const EFFORT: u64 = 200_000;
const TIMES_SC: u64 = 5;
const HARDER: u64 = 6;
const MOST_EFFORT: u64 = 20_000_000;

/// Choices that may be left undecided before more effort is made, or what is known to be enough is taken.
const MOST_UNDECIDED: usize = 8;

struct Search<'a> {
    base: Program,
    candidates: Candidates,
    wanted: &'a Wanted,
    options: Options,
    limits: &'a Limits,
    cores: Cores,
    /// Cores that stand for choices which could not be decided: something else is tried instead.
    detours: Cores,
    undecided: Vec<(u64, Limit)>,
    /// The cheapest choice that is known to be enough; at first what makes the program robust, if the aim is
    /// less.
    known_enough: Option<Vec<usize>>,
    /// Robustness is wanted only as far as the property is concerned.
    only_property: bool,
    /// States that may be stored to find more witnesses after the first.
    patience: u64,
    checks: u64,
    stats: Stats,
}

/// What the check of one choice came to.
enum Judgement {
    Good,
    Bad(Vec<Counterexample>),
    Undecided(Limit),
}

/// What one choice added to what is known.
enum Trial {
    Enough,
    Cores,
    Remains { run: Counterexample, choice: Vec<usize> },
    Undecided(Limit),
}

impl<'a> Search<'a> {
    fn new(
        base: Program,
        candidates: Candidates,
        wanted: &'a Wanted,
        options: &Options,
        limits: &'a Limits,
    ) -> Self {
        let iterations = options.lazy.iterations.or(Some(ROUNDS));
        let lazy = LazyOptions { iterations, ..options.lazy };
        let options = Options { lazy, run: ShownRun::Simplified, ..options.clone() };
        Search {
            base,
            candidates,
            wanted,
            options,
            limits,
            cores: Cores::default(),
            detours: Cores::default(),
            undecided: vec![],
            known_enough: None,
            only_property: false,
            patience: PATIENCE,
            checks: 0,
            stats: Stats::default(),
        }
    }

    fn run(mut self) -> Result<Repair, Internal> {
        let start = Instant::now();
        let answer = self.answer()?;
        self.stats.time = start.elapsed();
        self.stats.workers = self.options.workers;
        Ok(Repair {
            aim: self.wanted.aim,
            answer,
            allowed: self.candidates.remedies.len(),
            cores: self.cores.count(),
            checks: self.checks,
            lower_bound: self.lower_bound(),
            stats: self.stats,
        })
    }

    /// What every repair costs, as far as that can be told within the limits.
    fn lower_bound(&self) -> u64 {
        let cheapest = self.cores.cheapest(&self.candidates.costs, self.limits);
        cheapest.map_or(0, |choice| cost(&choice, &self.candidates.costs))
    }

    fn answer(&mut self) -> Result<RepairAnswer, Internal> {
        if matches!(self.wanted.aim, Aim::Property | Aim::NoHang) {
            if let Some(answer) = self.under_sc()? {
                return Ok(answer);
            }
            if engine::robustness_suffices(&self.base, &Goal::of(&self.base)) {
                self.known_enough = self.robust()?;
            }
        }
        loop {
            let choice = match self.next_choice() {
                Ok(choice) => choice,
                Err(limit) => match self.leave(&[], limit)? {
                    Some(answer) => return Ok(answer),
                    None => continue,
                },
            };
            let (choice, trial) = match self.instead_of(&choice) {
                Some(known) => (known, Trial::Enough),
                None => {
                    let trial = self.try_choice(&choice)?;
                    (choice, trial)
                }
            };
            match trial {
                Trial::Cores => {}
                Trial::Enough if self.tries_harder(&choice) => self.known_enough = Some(choice),
                Trial::Enough => return self.enough(choice),
                Trial::Remains { run, choice } => {
                    let changed = Box::new(self.changed(&choice)?);
                    return Ok(Answer::Fails(Remaining::Whatever { run, changed }));
                }
                Trial::Undecided(limit) => {
                    if let Some(answer) = self.leave(&choice, limit)? {
                        return Ok(answer);
                    }
                }
            }
        }
    }

    /// What makes the program robust, as far as the property is concerned: enough for whatever holds under
    /// SC, quickly found, and so an upper bound.
    fn robust(&mut self) -> Result<Option<Vec<usize>>, Internal> {
        let wanted = Wanted { aim: Aim::Robustness, list: 1 };
        let mut search =
            Search::new(self.base.clone(), self.candidates.clone(), &wanted, &self.options, self.limits);
        search.only_property = self.wanted.aim == Aim::Property;
        let answer = search.answer()?;
        self.checks += search.checks;
        self.count(&search.stats);
        Ok(match answer {
            Answer::Holds(enough) => Some(self.candidates.numbers(&enough.sets[0])),
            _ => None,
        })
    }

    /// The choice could not be decided. Where something is known to be enough, others are tried, unless the
    /// limit stands for all of them.
    fn leave(&mut self, choice: &[usize], limit: Limit) -> Result<Option<RepairAnswer>, Internal> {
        let Some(known) = self.known_enough.clone() else { return Ok(Some(Answer::Unknown(limit))) };
        let local = is_local(&limit);
        self.undecided.push((cost(choice, &self.candidates.costs), limit));
        let rest: Vec<usize> = (0..self.candidates.remedies.len()).filter(|e| !choice.contains(e)).collect();
        if !local || rest.is_empty() {
            return self.enough(known).map(Some);
        }
        self.detours.add(rest);
        Ok(None)
    }

    /// What is known to be enough, if the choice is no cheaper or many have been left undecided.
    fn instead_of(&self, choice: &[usize]) -> Option<Vec<usize>> {
        let of = |choice: &[usize]| cost(choice, &self.candidates.costs);
        let tried_enough = self.undecided.len() > MOST_UNDECIDED;
        self.known_enough.clone().filter(|known| tried_enough || of(choice) >= of(known))
    }

    /// The choice is enough. Are there cheaper ones that were left undecided for want of effort, and is there
    /// more to be made? Then they are open again.
    fn tries_harder(&mut self, choice: &[usize]) -> bool {
        let least = cost(choice, &self.candidates.costs);
        let effort = self.options.effort.map_or(u64::MAX, |effort| effort.saturating_mul(HARDER));
        let mut cheaper = self.undecided.iter().filter(|(cost, _)| *cost < least);
        if effort > MOST_EFFORT || !cheaper.any(|(_, limit)| matches!(limit, Limit::States(_))) {
            return false;
        }
        self.options.effort = Some(effort);
        self.undecided.clear();
        self.detours = Cores::default();
        true
    }

    /// If the property fails under SC, no fence helps.
    fn under_sc(&mut self) -> Result<Option<RepairAnswer>, Internal> {
        let options = Options { model: Model::Sc, ..self.options.clone() };
        let outcome = match self.wanted.aim {
            Aim::NoHang => engine::hang_of_retrying(self.base.clone(), Model::Sc, self.limits)?.outcome,
            _ => engine::check(&self.base, &Goal::of(&self.base), &options, self.limits)?,
        };
        self.count(&outcome.stats);
        self.options.effort = Some(EFFORT.max(outcome.stats.states.saturating_mul(TIMES_SC)));
        Ok(match outcome.answer {
            Answer::Holds(_) => None,
            Answer::Fails(trace) => Some(Answer::Fails(Remaining::UnderSc(trace))),
            Answer::Unknown(limit) => Some(Answer::Unknown(limit)),
        })
    }

    /// A cheapest choice that no run refutes so far.
    fn next_choice(&self) -> Result<Vec<usize>, Limit> {
        let mut all = self.cores.clone();
        self.detours.join_into(&mut all);
        let choice = all.cheapest(&self.candidates.prices, self.limits)?;
        let (cores, least) = (self.cores.count(), cost(&choice, &self.candidates.costs));
        self.limits
            .take_note(format!("{cores} cores, cost at least {least}, {} changes on trial", choice.len()));
        Ok(choice)
    }

    /// Checks the program with the choice built in. A run against the aim is a new core; all changes of that
    /// core are then built in as well, for what else there is, since heavily fenced programs are quickly
    /// checked.
    fn try_choice(&mut self, choice: &[usize]) -> Result<Trial, Internal> {
        let mut tried: BTreeSet<usize> = choice.iter().copied().collect();
        let mut trial = Trial::Enough;
        loop {
            let built_in: Vec<usize> = tried.iter().copied().collect();
            match self.judge(&built_in)? {
                Judgement::Good => return Ok(trial),
                Judgement::Undecided(limit) if matches!(trial, Trial::Enough) || !is_local(&limit) => {
                    return Ok(Trial::Undecided(limit));
                }
                Judgement::Undecided(_) => return Ok(trial),
                Judgement::Bad(runs) => {
                    for run in runs {
                        let core = self.core(&run);
                        if core.is_empty() {
                            return Ok(Trial::Remains { run, choice: built_in });
                        }
                        if core.iter().any(|e| built_in.binary_search(e).is_ok()) {
                            return Err(engine::internal("a run passes a fence with a store in its buffer"));
                        }
                        tried.extend(&core);
                        self.cores.add(core);
                    }
                    trial = Trial::Cores;
                }
            }
        }
    }

    fn judge(&mut self, choice: &[usize]) -> Result<Judgement, Internal> {
        self.checks += 1;
        let program = self.changed(choice)?;
        match self.wanted.aim {
            Aim::Robustness => self.judge_robustness(&program),
            Aim::Property => self.judge_property(&program),
            Aim::NoHang => self.judge_hang(program),
            Aim::Triangular => self.judge_races(&program),
        }
    }

    fn changed(&self, choice: &[usize]) -> Result<Program, Internal> {
        apply(&self.base, &self.candidates.changes(choice)).map_err(internal)
    }

    fn judge_robustness(&mut self, program: &Program) -> Result<Judgement, Internal> {
        let quiet = || engine::quiet(program, &Goal::of(program), &self.options, self.limits);
        let quiet = match if self.only_property { quiet() } else { Ok(None) } {
            Ok(quiet) => quiet,
            Err(limit) => return Ok(Judgement::Undecided(limit)),
        };
        let program = quiet.as_ref().unwrap_or(program);
        let found = engine::witnesses(program, &self.options, self.limits, self.patience)?;
        self.count(&found.stats);
        if found.witnesses.len() >= MANY_WITNESSES {
            self.patience = MOST_PATIENCE.min(2 * self.patience);
        }
        Ok(match found.limit {
            _ if !found.witnesses.is_empty() => {
                Judgement::Bad(found.witnesses.into_iter().map(Counterexample::Witness).collect())
            }
            Some(limit) => Judgement::Undecided(limit),
            None => Judgement::Good,
        })
    }

    fn judge_property(&mut self, program: &Program) -> Result<Judgement, Internal> {
        let outcome = engine::check(program, &Goal::of(program), &self.options, self.limits)?;
        Ok(self.judged(outcome))
    }

    fn judge_hang(&mut self, program: Program) -> Result<Judgement, Internal> {
        let outcome = engine::hang_of_retrying(program, Model::Tso, self.limits)?.outcome;
        Ok(self.judged(outcome))
    }

    fn judged(&mut self, outcome: Outcome) -> Judgement {
        self.count(&outcome.stats);
        match outcome.answer {
            Answer::Holds(_) => Judgement::Good,
            Answer::Fails(trace) => Judgement::Bad(vec![Counterexample::Trace(trace)]),
            Answer::Unknown(limit) => Judgement::Undecided(limit),
        }
    }

    fn judge_races(&mut self, program: &Program) -> Result<Judgement, Internal> {
        let freedom = engine::triangular(program, &self.options, self.limits)?;
        self.count(&freedom.stats);
        Ok(match freedom.answer {
            Answer::Holds(()) => Judgement::Good,
            Answer::Fails(race) => Judgement::Bad(vec![Counterexample::Race(race)]),
            Answer::Unknown(limit) => Judgement::Undecided(limit),
        })
    }

    fn count(&mut self, stats: &Stats) {
        self.stats.states += stats.states;
        self.stats.transitions += stats.transitions;
    }

    /// The changes of which one is needed to prevent the run.
    fn core(&self, run: &Counterexample) -> Vec<usize> {
        let mut core = BTreeSet::new();
        for (thread, path) in delayed_paths(run) {
            core.extend(self.candidates.against(&self.base, thread, &path));
        }
        for (thread, last) in frozen_at_the_end(&self.base, run) {
            core.extend(self.candidates.against_ending(&self.base, thread, last));
        }
        core.into_iter().collect()
    }

    /// The choice is enough: with it, all others of the same cost, if they were asked for.
    fn enough(&mut self, choice: Vec<usize>) -> Result<RepairAnswer, Internal> {
        let least = cost(&choice, &self.candidates.costs);
        let cheaper: Vec<Limit> =
            self.undecided.iter().filter(|(c, _)| *c < least).map(|(_, l)| l.clone()).collect();
        let cheapest = match cheaper.first() {
            None => Cheapest::Proved,
            Some(first) => Cheapest::Open { undecided: cheaper.len(), limit: first.clone() },
        };
        let (choices, more) = match self.wanted.list {
            0 | 1 => (vec![choice], false),
            most => self.all(choice, most)?,
        };
        let sets = choices.iter().map(|c| self.candidates.choose(c)).collect();
        Ok(Answer::Holds(Enough { sets, cost: least, cheapest, more }))
    }

    /// All choices of the cost of this one that are enough, up to so many; and whether there may be more.
    fn all(&mut self, first: Vec<usize>, most: usize) -> Result<(Vec<Vec<usize>>, bool), Internal> {
        let mut good = BTreeSet::from([first.clone()]);
        let mut doubtful = BTreeSet::new();
        let least = cost(&first, &self.candidates.costs);
        loop {
            let Ok((all, more)) = self.cores.all_cheapest(&self.candidates.costs, most, self.limits) else {
                return Ok((good.into_iter().collect(), true));
            };
            let of_least = all.into_iter().filter(|c| cost(c, &self.candidates.costs) == least);
            let Some(next) = of_least.into_iter().find(|c| !good.contains(c) && !doubtful.contains(c)) else {
                return Ok((good.into_iter().collect(), more || !doubtful.is_empty()));
            };
            match self.try_choice(&next)? {
                Trial::Enough => {
                    good.insert(next);
                }
                Trial::Cores => {}
                Trial::Remains { .. } => {
                    return Err(engine::internal("a run remains where another choice prevents all"));
                }
                Trial::Undecided(limit) if is_local(&limit) => {
                    doubtful.insert(next);
                }
                Trial::Undecided(_) => return Ok((good.into_iter().collect(), true)),
            }
        }
    }
}

/// Does the limit stand for one choice alone, so that others may still be tried?
fn is_local(limit: &Limit) -> bool {
    !matches!(limit, Limit::Time(_) | Limit::Memory(_) | Limit::Cancelled | Limit::Lost(_))
}

fn internal(wrong: Vec<Invalid>) -> Internal {
    let wrong: Vec<String> = wrong.iter().map(Invalid::to_string).collect();
    engine::internal(&format!("a changed program is not valid: {}", wrong.join("; ")))
}

//! Which fewest writes have to be atomic, or transitions barriers, for formulas to hold with slots?
//!
//! For formulas without X over what processes know of themselves, in models whose transitions write nothing
//! twice, more atomic writes and more barriers only take runs away. So a run against a formula is a *core*
//! (`hazards`): the changes of which at least one is needed to prevent it; and a cheapest choice that hits all
//! cores, if the formulas hold with it, is optimal (`[MorenoKarp13]`), where the thesis takes the write with
//! the most hazards and is not `[Havel12]`. Otherwise neither is true: few candidates are tried in all
//! combinations, and with many one change after the other is taken back as long as the formulas hold, which
//! proves nothing beyond that.

use super::TemporalOptions;
use super::hazards::{Fix, core};
use super::ltl::{self, TemporalFormula};
use crate::certify::{Confirmed, DveRun, Refuted};
use crate::dve::{DveExpr, Memory, System};
use crate::hitting::{Cores, cost};
use crate::query::{Answer, Limit, Limits, Stats};
use std::collections::BTreeSet;
use std::time::Instant;

/// What a change of each kind costs, if it is allowed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Prices {
    pub atomic: Option<u64>,
    pub barrier: Option<u64>,
}

/// Sets of changes that are enough.
#[derive(Clone, Debug)]
pub struct SufficientSets {
    pub sets: Vec<Vec<Fix>>,
    pub cost: u64,
    /// No cheaper set is enough.
    pub optimal: bool,
    /// There are more sets of this cost.
    pub more: bool,
}

/// Why no change helps.
#[derive(Clone, Debug)]
pub struct Beyond {
    pub run: Confirmed<DveRun>,
    /// The formula that fails.
    pub formula: usize,
    /// It does so under SC already.
    pub under_sc: bool,
}

#[derive(Clone, Debug)]
pub struct Synthesis {
    pub answer: Answer<SufficientSets, Beyond>,
    pub candidates: usize,
    pub cores: usize,
    /// How often the formulas were checked.
    pub checks: u64,
    pub stats: Stats,
}

/// Combinations of so few candidates are all tried where nothing better is known to be right.
const FEW: usize = 12;

/// The cheapest changes with which all formulas hold, up to so many sets of them.
pub fn synthesise(
    system: &System,
    formulas: &[TemporalFormula],
    prices: Prices,
    list: usize,
    options: &TemporalOptions,
    limits: &Limits,
) -> Result<Synthesis, Refuted> {
    let begun = Instant::now();
    let (candidates, costs) = candidates(system, prices);
    let stats = Stats { workers: options.workers, ..Stats::default() };
    let mut search = Repairing { system, formulas, candidates, costs, options, limits, checks: 0, stats };
    let (answer, cores) = match search.run(list)? {
        Ok((answer, cores)) => (answer, cores),
        Err(limit) => (Answer::Unknown(limit), 0),
    };
    let Repairing { candidates, checks, mut stats, .. } = search;
    stats.time = begun.elapsed();
    Ok(Synthesis { answer, candidates: candidates.len(), cores, checks, stats })
}

fn candidates(system: &System, prices: Prices) -> (Vec<Fix>, Vec<u64>) {
    let atomic = system.sites().into_iter().map(Fix::Atomic);
    let mut all: Vec<(Fix, u64)> =
        prices.atomic.iter().flat_map(|p| atomic.clone().map(|f| (f, *p))).collect();
    for (p, process) in system.processes[..system.active()].iter().enumerate() {
        let barriers = (0..process.transitions.len()).map(|t| Fix::Barrier(p, t));
        all.extend(prices.barrier.iter().flat_map(|price| barriers.clone().map(|f| (f, *price))));
    }
    all.into_iter().unzip()
}

struct Repairing<'a> {
    system: &'a System,
    formulas: &'a [TemporalFormula],
    candidates: Vec<Fix>,
    costs: Vec<u64>,
    options: &'a TemporalOptions,
    limits: &'a Limits,
    checks: u64,
    stats: Stats,
}

/// What a step of the search comes to, unless a limit is reached.
type Within<T> = Result<Result<T, Limit>, Refuted>;
type SynthesisAnswer = Answer<SufficientSets, Beyond>;

/// Lets a limit end what is being done.
macro_rules! within {
    ($step:expr) => {
        match $step {
            Ok(done) => done,
            Err(limit) => return Ok(Err(limit)),
        }
    };
}

impl Repairing<'_> {
    /// The answer, and how many cores it took.
    fn run(&mut self, list: usize) -> Within<(SynthesisAnswer, usize)> {
        if let Some((run, formula)) = within!(self.check(Memory::Sc)?) {
            return Ok(Ok((Answer::Fails(Beyond { run, formula, under_sc: true }), 0)));
        }
        if self.only_takes_away() {
            return self.hit(list);
        }
        let answer = match self.candidates.len() <= FEW {
            true => within!(self.combinations(list)?),
            false => within!(self.take_back()?),
        };
        Ok(Ok((answer, 0)))
    }

    /// Does every change only take runs away, as far as the formulas can tell?
    fn only_takes_away(&self) -> bool {
        let own = |expr: &DveExpr| {
            let mut own = true;
            expr.visit(&mut |part| {
                if let DveExpr::Read(place) = part {
                    own &= self.system.variables[place.variable].owner.is_some();
                }
            });
            own
        };
        let plain = |f: &TemporalFormula| !f.formula.has_next() && f.propositions.iter().all(own);
        let transitions = self.system.processes.iter().flat_map(|p| &p.transitions);
        let mut once = transitions.map(|t| {
            let written: Vec<usize> = t.targets().map(|place| place.variable).collect();
            written.len() == written.iter().collect::<BTreeSet<_>>().len()
        });
        self.formulas.iter().all(plain) && once.all(|once| once)
    }

    /// A run against one of the formulas, unless all hold.
    fn check(&mut self, memory: Memory) -> Within<Option<(Confirmed<DveRun>, usize)>> {
        self.checks += 1;
        self.limits.round.store(self.checks, std::sync::atomic::Ordering::Relaxed);
        let fair = self.options.fair && !memory.is_sc();
        let options = TemporalOptions { memory, fair, ..self.options.clone() };
        for (i, formula) in self.formulas.iter().enumerate() {
            let outcome = ltl::formula(self.system, formula, &options, self.limits)?;
            self.stats.states += outcome.stats.states;
            self.stats.transitions += outcome.stats.transitions;
            match outcome.answer {
                Answer::Holds(()) => {}
                Answer::Fails(run) => return Ok(Ok(Some((run, i)))),
                Answer::Unknown(limit) => return Ok(Err(limit)),
            }
        }
        Ok(Ok(None))
    }

    /// The memory with these candidates changed.
    fn memory(&self, choice: &[usize]) -> Memory {
        let (mut atomic, mut barriers) = (BTreeSet::new(), BTreeSet::new());
        for &i in choice {
            match self.candidates[i] {
                Fix::Atomic(site) => drop(atomic.insert(site)),
                Fix::Barrier(p, t) => drop(barriers.insert((p, t))),
            }
        }
        Memory::Slots { atomic, barriers }
    }

    /// The implicit hitting set.
    fn hit(&mut self, list: usize) -> Within<(SynthesisAnswer, usize)> {
        let mut cores = Cores::default();
        loop {
            let (choices, more) = match list {
                0 | 1 => (vec![within!(cores.cheapest(&self.costs, self.limits))], false),
                _ => within!(cores.all_cheapest(&self.costs, list, self.limits)),
            };
            let mut refuted = false;
            for choice in &choices {
                let memory = self.memory(choice);
                let Some((run, formula)) = within!(self.check(memory.clone())?) else { continue };
                let needed = core(self.system, &memory, &run, self.formulas[formula].never().as_ref());
                let number = |fix: &Fix| self.candidates.iter().position(|c| c == fix);
                let mut core: Vec<usize> = needed.iter().filter_map(number).collect();
                // Where an element is not known, all may seem to wait, even at a barrier.
                core.retain(|i| !choice.contains(i));
                if core.is_empty() {
                    let beyond = Beyond { run, formula, under_sc: false };
                    return Ok(Ok((Answer::Fails(beyond), cores.count())));
                }
                cores.add(core);
                refuted = true;
                break;
            }
            if !refuted {
                let answer = self.enough(choices, true, more);
                return Ok(Ok((Answer::Holds(answer), cores.count())));
            }
        }
    }

    fn enough(&self, choices: Vec<Vec<usize>>, optimal: bool, more: bool) -> SufficientSets {
        let price = choices.first().map_or(0, |choice| cost(choice, &self.costs));
        let named = |choice: &Vec<usize>| choice.iter().map(|&i| self.candidates[i]).collect();
        SufficientSets { sets: choices.iter().map(named).collect(), cost: price, optimal, more }
    }

    /// Every combination, the cheapest ones first.
    fn combinations(&mut self, list: usize) -> Within<SynthesisAnswer> {
        let chosen =
            |bits: u32| (0..self.candidates.len()).filter(|i| bits >> i & 1 != 0).collect::<Vec<_>>();
        let mut all: Vec<Vec<usize>> = (0..1u32 << self.candidates.len()).map(chosen).collect();
        all.sort_by_key(|choice| (cost(choice, &self.costs), choice.clone()));
        let (mut good, mut last, mut more): (Vec<Vec<usize>>, _, _) = (vec![], None, false);
        for choice in all {
            if good.first().is_some_and(|best| cost(best, &self.costs) < cost(&choice, &self.costs)) {
                break;
            }
            if good.len() == list.max(1) {
                more = true;
                break;
            }
            match within!(self.check(self.memory(&choice))?) {
                None => good.push(choice),
                Some(found) => last = Some(found),
            }
        }
        Ok(Ok(match (good.is_empty(), last) {
            (true, Some((run, formula))) => Answer::Fails(Beyond { run, formula, under_sc: false }),
            _ => Answer::Holds(self.enough(good, true, more && list > 1)),
        }))
    }

    /// From all changes, takes back one after the other.
    fn take_back(&mut self) -> Within<SynthesisAnswer> {
        let mut choice: Vec<usize> = (0..self.candidates.len()).collect();
        if let Some((run, formula)) = within!(self.check(self.memory(&choice))?) {
            return Ok(Ok(Answer::Fails(Beyond { run, formula, under_sc: false })));
        }
        for i in 0..self.candidates.len() {
            let without: Vec<usize> = choice.iter().copied().filter(|c| *c != i).collect();
            if within!(self.check(self.memory(&without))?).is_none() {
                choice = without;
            }
        }
        Ok(Ok(Answer::Holds(self.enough(vec![choice], false, false))))
    }
}

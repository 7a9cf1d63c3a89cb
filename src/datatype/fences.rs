//! Which fewest fences make all tests pass? The loop of the implicit hitting set `[MorenoKarp13]`: a run that
//! fails with some fences tells of which others at least one is needed; the cheapest choice that hits all of
//! these is tried next, until no run fails. Then so are all others that cost as little.

use super::check::{Checker, Scope};
use super::outcome::{CheckEnd, DataOptions};
use crate::hitting::Cores;
use crate::model::datatype::DataType;
use crate::query::Answer;
use crate::query::Limits;
use std::collections::BTreeSet;

/// Choices that are listed.
const MOST: usize = 1000;

/// What the search came to.
#[derive(Clone, Debug)]
pub struct FenceSets {
    /// All smallest sets of places and kinds; what fails with every fence there is.
    pub answer: Answer<Vec<Vec<(usize, usize)>>, String>,
    /// There are more sets as small as these.
    pub more: bool,
    pub candidates: usize,
    pub cores: usize,
    pub bound: u32,
}

/// The fewest fences with which all these tests pass.
pub fn fence_sets(
    datatype: &DataType,
    tests: &[usize],
    options: &DataOptions,
    limits: &Limits,
) -> Result<FenceSets, String> {
    let all: Vec<(usize, usize)> = datatype
        .candidates
        .iter()
        .enumerate()
        .flat_map(|(place, c)| (0..4).filter(|k| c.kinds.each()[*k]).map(move |k| (place, k)))
        .collect();
    let mut sets = FenceSets {
        answer: Answer::Holds(vec![]),
        more: false,
        candidates: all.len(),
        cores: 0,
        bound: options.bound.unwrap_or(2),
    };
    match search(datatype, tests, options, &all, &mut sets, limits) {
        Ok(()) => Ok(sets),
        Err(CheckEnd::Limit(limit)) => {
            sets.answer = Answer::Unknown(limit);
            Ok(sets)
        }
        Err(CheckEnd::Doubt(what)) => Err(what),
    }
}

fn search(
    datatype: &DataType,
    tests: &[usize],
    options: &DataOptions,
    all: &[(usize, usize)],
    sets: &mut FenceSets,
    limits: &Limits,
) -> Result<(), CheckEnd> {
    let scope = Scope { bound: sets.bound, within: true, open: true };
    let mut checkers = Vec::new();
    for &t in tests {
        let test = &datatype.tests[t];
        match Checker::new(test, &datatype.candidates, options, scope, limits)? {
            Ok(checker) => checkers.push(checker),
            Err(_) => {
                sets.answer = Answer::Fails(format!("test {} goes wrong even serially", test.name));
                return Ok(());
            }
        }
    }
    let always: Vec<(usize, usize)> = options.with.iter().copied().collect();
    let costs = vec![1u64; all.len()];
    let mut cores = Cores::default();
    let mut good: BTreeSet<Vec<usize>> = BTreeSet::new();
    loop {
        sets.cores = cores.count();
        let (choices, more) = cores.all_cheapest(&costs, MOST, limits)?;
        let mut new = false;
        for choice in choices.iter().filter(|c| !good.contains(*c)).cloned().collect::<Vec<_>>() {
            limits.take_note(format!("{} cores, {} fences", cores.count(), choice.len()));
            let chosen: Vec<(usize, usize)> = choice.iter().map(|k| all[*k]).chain(always.clone()).collect();
            match first_core(&mut checkers, &chosen, all)? {
                None => {
                    good.insert(choice);
                }
                Some((test, core)) if core.is_empty() => {
                    let name = &checkers[test].test.name;
                    sets.answer = Answer::Fails(format!("test {name} fails with every fence there is"));
                    return Ok(());
                }
                Some((_, core)) => {
                    let numbers = core.iter().filter_map(|p| all.iter().position(|q| q == p));
                    cores.add(numbers.collect());
                    new = true;
                    break;
                }
            }
        }
        if !new {
            let named = |choice: &Vec<usize>| choice.iter().map(|k| all[*k]).collect();
            sets.answer = Answer::Holds(choices.iter().map(named).collect());
            sets.more = more;
            return Ok(());
        }
    }
}

type Core = Vec<(usize, usize)>;

/// What the first test that fails is missing.
fn first_core(
    checkers: &mut [Checker<'_>],
    chosen: &[(usize, usize)],
    all: &[(usize, usize)],
) -> Result<Option<(usize, Core)>, CheckEnd> {
    for (k, checker) in checkers.iter_mut().enumerate() {
        if let Some(core) = checker.core(chosen, all)? {
            return Ok(Some((k, core)));
        }
    }
    Ok(None)
}

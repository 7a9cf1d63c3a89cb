//! Are the cheapest repairs enough, and is nothing cheaper? Every subset of all places, and of all stores, of small
//! programs says what the least cost is; each set that is found is checked from scratch, and without each of its parts.
//!
//! `OVERTAKE_PROGRAMS=2000 cargo test --release --test repair` tries more programs than the default.

mod common;

use common::{SMALL, Shape, Taste, cases, program};
use overtake::engine::{self, Options};
use overtake::model::{Instr, Program};
use overtake::repair::{Allowed, Wanted, apply, prune, repair};
use overtake::verdict::repair::{Aim, Change, Cheapest, RepairAnswer};
use overtake::verdict::{Answer, Goal, Limits, Model, RobustAnswer};
use proptest::prelude::*;

/// Most places and stores of programs whose subsets are all tried.
const MOST: usize = 12;

fn options() -> Options {
    Options { workers: 1, iterations: Some(40), ..Options::default() }
}

/// Does the program meet the aim? `None` if that cannot be told.
fn holds(program: &Program, aim: Aim) -> Option<bool> {
    match aim {
        Aim::Robustness => {
            match engine::robust(program, &options(), &limits()).expect("no internal error").answer {
                RobustAnswer::Robust => Some(true),
                RobustAnswer::NotRobust(_) => Some(false),
                RobustAnswer::Unknown(_) => None,
            }
        }
        Aim::Property => {
            let goal = Goal::of(program);
            match engine::check(program, &goal, &options(), &limits()).expect("no internal error").answer {
                Answer::Safe(_) => Some(true),
                Answer::Violated(_) => Some(false),
                Answer::Unknown(_) => None,
            }
        }
    }
}

/// Values may grow without end.
fn limits() -> Limits {
    Limits { states: Some(100_000), ..Limits::default() }
}

fn fails_under_sc(program: &Program) -> Option<bool> {
    let options = Options { model: Model::Sc, ..options() };
    match engine::check(program, &Goal::of(program), &options, &limits()).expect("no internal error").answer {
        Answer::Safe(_) => Some(false),
        Answer::Violated(_) => Some(true),
        Answer::Unknown(_) => None,
    }
}

/// All that could be changed, wanted or not, with its cost.
fn all_changes(program: &Program, allowed: &Allowed) -> Vec<(Change, u64)> {
    let mut all = Vec::new();
    for thread in program.thread_ids() {
        let own = program.thread(thread);
        if let Some(cost) = allowed.fence {
            let places = own.locations().filter(|&l| l != own.end());
            all.extend(places.map(|at| (Change::Fence { thread, at }, cost)));
        }
        if let Some(cost) = allowed.atomic {
            let stores = own.edges().filter(|(_, e)| matches!(e.instr, Instr::Store { .. }));
            all.extend(stores.map(|(store, _)| (Change::Atomic { thread, store }, cost)));
        }
    }
    all
}

/// The least cost and all sets of that cost, by trying all subsets in the order of their cost. `None` if some program
/// is undecided before that.
fn by_force(program: &Program, aim: Aim, changes: &[(Change, u64)]) -> Option<(u64, Vec<Vec<Change>>)> {
    let subset = |bits: u32| (0..changes.len()).filter(move |i| bits >> i & 1 == 1);
    let cost = |bits: u32| subset(bits).map(|i| changes[i].1).sum::<u64>();
    let mut subsets: Vec<(u64, u32)> = (0..1 << changes.len()).map(|bits| (cost(bits), bits)).collect();
    subsets.sort();
    let mut found: Option<(u64, Vec<Vec<Change>>)> = None;
    for (cost, bits) in subsets {
        if found.as_ref().is_some_and(|(least, _)| cost > *least) {
            break;
        }
        let set: Vec<Change> = subset(bits).map(|i| changes[i].0).collect();
        let changed = apply(program, &set).expect("changed programs are valid");
        if holds(&changed, aim)? {
            found.get_or_insert((cost, vec![])).1.push(set);
        }
    }
    found
}

/// The search agrees with brute force on the least cost and on all sets of that cost, and what it gives is needed.
/// Whether there was anything to compare.
fn agrees(program: &Program, aim: Aim, allowed: &Allowed) -> Result<bool, TestCaseError> {
    let changes = all_changes(program, allowed);
    if changes.len() > MOST {
        return Ok(false);
    }
    let wanted = Wanted { aim, list: 10_000 };
    let found = repair(program, &wanted, allowed, &options(), &limits()).expect("no internal error");
    if aim == Aim::Property && fails_under_sc(program) == Some(true) {
        prop_assert!(matches!(found.answer, RepairAnswer::FailsUnderSc(_)), "{:?}", found.answer);
        return Ok(true);
    }
    let forced = by_force(program, aim, &changes);
    match (found.answer, forced) {
        (RepairAnswer::Enough(enough), Some((least, sets))) if enough.cheapest == Cheapest::Proved => {
            prop_assert_eq!(enough.cost, least, "found {:?}, brute force {:?}", enough.sets, sets);
            prop_assert!(!enough.more);
            let sorted = |sets: Vec<Vec<Change>>| {
                let mut sets = sets;
                sets.iter_mut().for_each(|s| s.sort());
                sets.sort();
                sets
            };
            prop_assert_eq!(sorted(enough.sets.clone()), sorted(sets));
            for set in &enough.sets {
                prop_assert_eq!(holds(&apply(program, set).expect("valid"), aim), Some(true));
                for i in 0..set.len() {
                    let mut less = set.clone();
                    less.remove(i);
                    prop_assert_eq!(holds(&apply(program, &less).expect("valid"), aim), Some(false));
                }
            }
            Ok(true)
        }
        // A program was undecided on the way.
        (_, None) | (RepairAnswer::Enough(_) | RepairAnswer::Unknown(_), _) => Ok(false),
        (answer, forced) => {
            prop_assert!(false, "found {answer:?}, brute force {forced:?}");
            Ok(false)
        }
    }
}

fn fences() -> Allowed {
    Allowed { fence: Some(1), ..Allowed::default() }
}

/// The program's own fences that stay are enough, and none of them can go.
fn pruned(program: &Program) -> Result<(), TestCaseError> {
    let wanted = Wanted { aim: Aim::Robustness, list: 1 };
    let found = prune(program, &wanted, &options(), &limits()).expect("no internal error");
    let as_it_is = holds(program, Aim::Robustness);
    match found.answer {
        RepairAnswer::Enough(enough) => {
            prop_assert_eq!(as_it_is, Some(true));
            let with = |kept: &[Change]| {
                let mut parts = program.to_parts();
                for (t, thread) in program.thread_ids().zip(&mut parts.threads) {
                    for (i, edge) in thread.edges.iter_mut().enumerate() {
                        let fence = overtake::model::EdgeId(i as u32);
                        if edge.instr == Instr::Fence && !kept.contains(&Change::Keep { thread: t, fence }) {
                            edge.instr = Instr::Nop;
                        }
                    }
                }
                Program::new(parts).expect("valid")
            };
            let kept = &enough.sets[0];
            prop_assert_eq!(holds(&with(kept), Aim::Robustness), Some(true));
            for i in 0..kept.len() {
                let mut less = kept.clone();
                less.remove(i);
                prop_assert_eq!(holds(&with(&less), Aim::Robustness), Some(false));
            }
        }
        RepairAnswer::Remains(_) => prop_assert_eq!(as_it_is, Some(false)),
        other => prop_assert!(as_it_is.is_none(), "{other:?}"),
    }
    Ok(())
}

const TINY: Shape = Shape { threads: (2, 2), lines: (2, 5), taste: Taste::Dense, ..SMALL };

proptest! {
    #![proptest_config(cases(120))]

    #[test]
    fn fewest_fences_for_robustness(p in program(TINY)) {
        agrees(&p.0, Aim::Robustness, &fences())?;
    }

    #[test]
    fn fewest_fences_for_robustness_without_loops(p in program(Shape { loops: false, taste: Taste::Tame, ..TINY })) {
        agrees(&p.0, Aim::Robustness, &fences())?;
    }

    #[test]
    fn fewest_fences_for_the_property(p in program(Shape { loops: false, ..TINY })) {
        agrees(&p.0, Aim::Property, &fences())?;
    }

    #[test]
    fn fewest_fences_for_the_property_with_loops(p in program(Shape { taste: Taste::Tame, ..TINY })) {
        agrees(&p.0, Aim::Property, &fences())?;
    }

    #[test]
    fn cheapest_fences_and_locked_stores(p in program(TINY), fence in 1..4u64, atomic in 1..4u64) {
        let allowed = Allowed { fence: Some(fence), atomic: Some(atomic), ..Allowed::default() };
        agrees(&p.0, Aim::Robustness, &allowed)?;
        agrees(&p.0, Aim::Property, &allowed)?;
    }

    #[test]
    fn superfluous_fences_are_found(p in program(SMALL)) {
        pruned(&p.0)?;
    }
}

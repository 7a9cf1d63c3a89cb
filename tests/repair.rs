//! Are the cheapest repairs enough, and is nothing cheaper? Every subset of all places, and of all stores, of
//! small programs says what the least cost is; each set that is found is checked from scratch, and without
//! each of its parts. For places of the source, lines are put into the text itself.
//!
//! `OVERTAKE_PROGRAMS=2000 cargo test --release --test repair` tries more programs than the default.

mod common;

use common::{SMALL, Shape, Taste, cases, program};
use overtake::certify::Remaining;
use overtake::engine::{self, LazyOptions, Options};
use overtake::model::{Instr, Loc, Program, SourceMap, ThreadId};
use overtake::query::repair::{self as words, Aim, Change, Cheapest, Enough};
use overtake::query::{Answer, Goal, Limit, Limits, Model};
use overtake::repair::{Allowed, Wanted, apply, prune, repair};
use proptest::prelude::*;

/// Most places and stores of programs whose subsets are all tried.
const MOST: usize = 12;

fn options() -> Options {
    let lazy = LazyOptions { iterations: Some(12), ..LazyOptions::default() };
    Options { workers: 1, lazy, ..Options::default() }
}

/// Does the program meet the aim? `None` if that cannot be told.
fn holds(program: &Program, aim: Aim) -> Option<bool> {
    match aim {
        Aim::Robustness => {
            match engine::robust(program, &options(), &limits()).expect("no internal error").answer {
                Answer::Holds(()) => Some(true),
                Answer::Fails(_) => Some(false),
                Answer::Unknown(_) => None,
            }
        }
        Aim::Property => {
            let goal = Goal::of(program);
            match engine::check(program, &goal, &options(), &limits()).expect("no internal error").answer {
                Answer::Holds(_) => Some(true),
                Answer::Fails(_) => Some(false),
                Answer::Unknown(_) => None,
            }
        }
        Aim::Triangular => {
            match engine::triangular(program, &options(), &limits()).expect("no internal error").answer {
                Answer::Holds(()) => Some(true),
                Answer::Fails(_) => Some(false),
                Answer::Unknown(_) => None,
            }
        }
        Aim::NoHang => unreachable!("`tests/hang.rs` is for hangs"),
    }
}

/// Values may grow without end, and every subset is asked about.
fn limits() -> Limits {
    Limits { states: Some(1_500), ..Limits::default() }
}

fn fails_under_sc(program: &Program) -> Option<bool> {
    let options = Options { model: Model::Sc, ..options() };
    match engine::check(program, &Goal::of(program), &options, &limits()).expect("no internal error").answer {
        Answer::Holds(_) => Some(false),
        Answer::Fails(_) => Some(true),
        Answer::Unknown(_) => None,
    }
}

/// All that could be changed, wanted or not, with its cost.
fn all_changes(program: &Program, allowed: &Allowed) -> Vec<(Change, u64)> {
    let mut all = Vec::new();
    for thread in program.thread_ids() {
        let own = program.thread(thread);
        if let Some(cost) = allowed.fence {
            all.extend(own.locations().map(|at| (Change::Fence { thread, at }, cost)));
        }
        if let Some(cost) = allowed.atomic {
            let stores = own.edges().filter(|(_, e)| matches!(e.instr, Instr::Store { .. }));
            all.extend(stores.map(|(store, _)| (Change::Atomic { thread, store }, cost)));
        }
    }
    all
}

/// The least cost and all sets of that cost, if any, by trying all subsets in the order of their cost. `None`
/// if some program is undecided before that.
fn by_force(
    program: &Program,
    aim: Aim,
    changes: &[(Change, u64)],
) -> Option<Option<(u64, Vec<Vec<Change>>)>> {
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
    Some(found)
}

/// The search agrees with brute force on the least cost and on all sets of that cost, and what it gives is
/// needed. Whether there was anything to compare.
fn agrees(program: &Program, aim: Aim, allowed: &Allowed) -> Result<bool, TestCaseError> {
    agrees_on(program, aim, allowed, |_, _| true)
}

/// The same, with those changes alone that can matter.
fn agrees_on(
    program: &Program,
    aim: Aim,
    allowed: &Allowed,
    matters: impl Fn(&Program, &Change) -> bool,
) -> Result<bool, TestCaseError> {
    let mut changes = all_changes(program, allowed);
    changes.retain(|(change, _)| matters(program, change));
    if changes.len() > MOST {
        return Ok(false);
    }
    let wanted = Wanted { aim, list: 10_000 };
    let found = repair(program, &wanted, allowed, &options(), &limits()).expect("no internal error");
    if aim == Aim::Property && fails_under_sc(program) == Some(true) {
        prop_assert!(matches!(found.answer, Answer::Fails(Remaining::UnderSc(_))), "{:?}", found.answer);
        return Ok(true);
    }
    let forced = by_force(program, aim, &changes);
    match (found.answer, forced) {
        (Answer::Holds(enough), Some(Some((least, sets)))) if enough.cheapest == Cheapest::Proved => {
            prop_assert_eq!(enough.cost, least, "found {:?}, brute force {:?}", enough.sets, sets);
            prop_assert!(!enough.more);
            let sorted = |sets: Vec<Vec<Change>>| {
                let mut sets = sets;
                sets.iter_mut().for_each(|s| s.sort());
                sets.sort();
                sets
            };
            let found: Vec<Vec<Change>> = enough.sets.iter().map(|set| words::changes(set)).collect();
            prop_assert_eq!(sorted(found.clone()), sorted(sets));
            for set in &found {
                prop_assert_eq!(holds(&apply(program, set).expect("valid"), aim), Some(true));
                for i in 0..set.len() {
                    let mut less = set.clone();
                    less.remove(i);
                    prop_assert_eq!(holds(&apply(program, &less).expect("valid"), aim), Some(false));
                }
            }
            Ok(true)
        }
        (Answer::Fails(Remaining::Whatever { .. }), Some(None)) => Ok(true),
        // A program was undecided on the way.
        (_, None) | (Answer::Unknown(_), _) => Ok(false),
        (Answer::Holds(enough), Some(Some(_))) if enough.cheapest != Cheapest::Proved => Ok(false),
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
    let text = SourceMap::per_thread(program);
    let found = prune(program, &wanted, &text, &options(), &limits()).expect("no internal error");
    let as_it_is = holds(program, Aim::Robustness);
    match found.answer {
        Answer::Holds(enough) => {
            prop_assert_eq!(as_it_is, Some(true));
            let with = |kept: &[Change]| {
                let mut parts = program.to_parts();
                for (t, thread) in program.thread_ids().zip(&mut parts.threads) {
                    for (i, edge) in thread.edges.iter_mut().enumerate() {
                        let fence = overtake::model::EdgeId(i as u32);
                        if edge.instr.is_fence() && !kept.contains(&Change::Keep { thread: t, fence }) {
                            edge.instr = Instr::Nop;
                        }
                    }
                }
                Program::new(parts).expect("valid")
            };
            let kept = &words::changes(&enough.sets[0]);
            prop_assert_eq!(holds(&with(kept), Aim::Robustness), Some(true));
            for i in 0..kept.len() {
                let mut less = kept.clone();
                less.remove(i);
                prop_assert_eq!(holds(&with(&less), Aim::Robustness), Some(false));
            }
        }
        Answer::Fails(Remaining::Whatever { .. }) => prop_assert_eq!(as_it_is, Some(false)),
        // Without its fences the program may have more states than the limit.
        Answer::Unknown(Limit::States(_)) => {}
        other => prop_assert!(false, "{other:?}"),
    }
    Ok(())
}

/// A part of a template: a line, or a few that belong together. `i` is the thread, `#` a number of its own.
const PARTS: &[&str] = &[
    "store [x], 1",
    "store [a + i], 1",
    "store [a + i], 0",
    "load r, [a + (1 - i)]",
    "load r, [x]",
    "load s, [y]",
    "store [y], i + 1",
    "xchg s, [y], 1",
    "fence",
    "nop\ngoto l#\nl#:",
    "repeat k in 0..2 {\nstore [a + k], 1\nload r, [y + k]\n}",
    "repeat k in 0..2 {\nload s, [a + k]\nstore [x + k], 1\n}",
    "repeat k in 0..2 {\nif k == i goto l#\nload r, [a + k]\nl#:\n}",
    "l#:\nload r, [a + (1 - i)]\nif r == 1 goto l#",
    "l#:\nload s, [x]\nm#:\nif s == 0 goto l#",
    "if r == 1 goto l#\nload s, [y]\nl#:",
    "choose l#, m#\nl#:\nstore [y], 1\nm#:",
];

const ASKED: &[&str] = &[
    "exists p[0].r == 0 && p[1].r == 0",
    "exists p[0].s == 0 && p[1].r == 0",
    "forbid two i: p[i]@c",
    "forbid p[0]@c && p[1].r == 0",
    "forall p[0].r + p[1].s != 0",
];

const OTHERS: &[&str] =
    &["", "thread q; store [x], 2; load r, [a]; end", "thread q; store [y], 1; load r, [x]; end"];

/// Random texts with a template, and what each of their lines is behind the declarations.
fn text_with_copies() -> impl Strategy<Value = Vec<String>> {
    let parts = prop::collection::vec(prop::sample::select(PARTS), 2..4);
    (parts, prop::sample::select(ASKED), prop::sample::select(OTHERS)).prop_map(|(parts, asked, other)| {
        let numbered = parts.iter().enumerate().map(|(n, part)| part.replace('#', &n.to_string()));
        let body: Vec<String> = numbered.collect();
        let text = format!(
            "shared x, y, z, a[3]; thread p[i in 0..2]\n{}\nc: nop; halt; r = 0; s = 0\nend\n{other}\n{asked}",
            body.join("\n")
        );
        text.lines().map(str::to_string).collect()
    })
}

/// The text with fences before these lines.
fn fenced(lines: &[String], before: &[usize]) -> String {
    let line = |(n, line): (usize, &String)| match before.contains(&n) {
        true => format!("fence\n{line}\n"),
        false => format!("{line}\n"),
    };
    lines.iter().enumerate().map(line).collect()
}

/// The fewest fences in the source are as many as brute force over the text itself finds, and what is found
/// can be put into the text. Whether there was anything to compare.
fn agrees_on_source(lines: &[String], aim: Aim) -> Result<bool, TestCaseError> {
    let source = fenced(lines, &[]);
    let program = read(&source);
    let text = overtake::front::tso::source_map(&source, &[], &Limits::default()).expect("it was read");
    // Between the thread's head and the line of its last label; the others' text is one line.
    let last = lines.iter().position(|line| line.starts_with("c:")).expect("the label");
    let gaps: Vec<usize> = (1..=last).collect();
    if gaps.len() > MOST {
        return Ok(false);
    }
    let template: Vec<ThreadId> = program.thread_ids().take(2).collect();
    let allowed = Allowed { text: Some(text), only: template, ..fences() };
    let wanted = Wanted { aim, list: 1 };
    let found = repair(&program, &wanted, &allowed, &options(), &limits()).expect("no internal error");
    let mut subsets: Vec<u32> = (0..1 << gaps.len()).collect();
    subsets.sort_by_key(|bits| (bits.count_ones(), *bits));
    let mut least = None;
    for bits in subsets {
        let chosen: Vec<usize> = (0..gaps.len()).filter(|i| bits >> i & 1 == 1).map(|i| gaps[i]).collect();
        match holds(&read(&fenced(lines, &chosen)), aim) {
            Some(true) => {
                least = Some(chosen.len() as u64);
                break;
            }
            Some(false) => {}
            None => return Ok(false),
        }
    }
    match (found.answer, least) {
        (Answer::Holds(enough), Some(least)) if enough.cheapest == Cheapest::Proved => {
            prop_assert_eq!(enough.cost, least, "found {:?}", enough.sets);
            let bytes: Option<Vec<usize>> = enough.sets[0].iter().map(|remedy| remedy.offset).collect();
            let patched = overtake::front::patch::insert(&source, "fence", &bytes.expect("they are known"));
            let patched = patched.expect("the places are in the text");
            prop_assert_eq!(holds(&read(&patched), aim), Some(true), "{}", patched);
            let added = patched.matches("fence").count() - source.matches("fence").count();
            prop_assert_eq!(added as u64, least);
            Ok(true)
        }
        (Answer::Fails(_), None) => Ok(true),
        (Answer::Unknown(_), _) => Ok(false),
        (Answer::Holds(enough), Some(_)) if enough.cheapest != Cheapest::Proved => Ok(false),
        (answer, least) => {
            prop_assert!(false, "found {answer:?}, brute force {least:?}");
            Ok(false)
        }
    }
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
    fn fewest_fences_against_triangular_races(p in program(TINY)) {
        agrees(&p.0, Aim::Triangular, &fences())?;
    }

    #[test]
    fn superfluous_fences_are_found(p in program(SMALL)) {
        pruned(&p.0)?;
    }
}

proptest! {
    #![proptest_config(cases(40))]

    #[test]
    fn fewest_fences_in_the_source_for_robustness(lines in text_with_copies()) {
        agrees_on_source(&lines, Aim::Robustness)?;
    }

    #[test]
    fn fewest_fences_in_the_source_for_the_property(lines in text_with_copies()) {
        agrees_on_source(&lines, Aim::Property)?;
    }
}

proptest! {
    #![proptest_config(cases(600))]

    #[test]
    fn fewest_fences_where_threads_end_inside_blocks(
        p in program(Shape { loops: false, unfinished: true, lines: (1, 3), ..TINY }),
    ) {
        agrees(&p.0, Aim::Property, &fences())?;
        agrees(&p.0, Aim::Robustness, &fences())?;
    }
}

fn read(source: &str) -> Program {
    overtake::front::tso::read(source, &[], &Limits::default())
        .expect("the test's source is readable")
        .program
}

#[track_caller]
fn answer(source: &str, aim: Aim, allowed: &Allowed) -> Answer<Enough, Remaining> {
    let wanted = Wanted { aim, list: 1 };
    repair(&read(source), &wanted, allowed, &options(), &Limits::default()).expect("no internal error").answer
}

const SB: &str = "shared x, y; thread p; store [x], 1; M: load r, [y]; end; \
                  thread q; store [y], 1; load r, [x]; end; exists p.r == 0 && q.r == 0";

#[test]
fn store_buffering_needs_a_fence_in_each_thread() {
    for aim in [Aim::Robustness, Aim::Property, Aim::Triangular] {
        match answer(SB, aim, &fences()) {
            Answer::Holds(enough) => assert_eq!((enough.cost, enough.cheapest), (2, Cheapest::Proved)),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn what_is_cheaper_is_taken() {
    let allowed = Allowed { fence: Some(3), atomic: Some(2), ..Allowed::default() };
    match answer(SB, Aim::Robustness, &allowed) {
        Answer::Holds(enough) => {
            assert_eq!(enough.cost, 4);
            let all = words::changes(&enough.sets[0]);
            assert!(all.iter().all(|c| matches!(c, Change::Atomic { .. })), "{all:?}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_run_remains_where_nothing_is_allowed() {
    let program = read(SB);
    let p = program.thread_ids().next().expect("there are threads");
    let own = program.thread(p);
    let m = own.locations().find(|&l| own.location(l).labels == ["M"]).expect("the label");
    for allowed in [
        Allowed { only: vec![p], ..fences() },
        Allowed { forbidden: vec![(p, m)], ..fences() },
        Allowed::default(),
    ] {
        let answer = answer(SB, Aim::Robustness, &allowed);
        assert!(matches!(answer, Answer::Fails(Remaining::Whatever { .. })), "{allowed:?}: {answer:?}");
    }
}

#[test]
fn no_fence_helps_against_what_sc_does() {
    let source = "shared x; thread p; load r, [x]; store [x], r + 1; end; \
                  thread q; load r, [x]; store [x], r + 1; end; exists [x] == 1";
    assert!(matches!(answer(source, Aim::Property, &fences()), Answer::Fails(Remaining::UnderSc(_))));
}

/// A run inside a block can be against the property though the program is robust: the others' stores are
/// frozen.
#[test]
fn frozen_stores_can_be_fenced_too() {
    let source = "shared x; thread p; store [x], 1; nop; L: nop; end; \
                  thread q; lock; load r, [x]; M: nop; unlock; end; forbid p@L && q@M && q.r == 0";
    assert_eq!(holds(&read(source), Aim::Robustness), Some(true));
    assert_eq!(holds(&read(source), Aim::Property), Some(false));
    assert!(agrees(&read(source), Aim::Property, &fences()).expect("brute force agrees"));
}

/// A store that is frozen as its thread's last step can be locked, with no place for a fence behind it.
#[test]
fn a_frozen_last_store_can_be_locked() {
    let source = "shared x; thread p; store [x], 1; L: nop; end; \
                  thread q; lock; load r, [x]; M: nop; unlock; end; forbid p@L && q@M && q.r == 0";
    let allowed = Allowed { atomic: Some(1), ..fences() };
    assert!(agrees(&read(source), Aim::Property, &allowed).expect("brute force agrees"));
    match answer(source, Aim::Property, &allowed) {
        Answer::Holds(enough) => assert_eq!(enough.cost, 1, "{:?}", enough.sets),
        other => panic!("{other:?}"),
    }
}

/// A state is final once all threads are at their ends, with frozen buffers as they are: a fence at a
/// thread's end, behind its last store, keeps it from ending before.
#[test]
fn a_store_that_a_final_state_freezes_can_be_fenced_at_the_end() {
    let block = "thread q; lock; halt; end; never [x] == 0";
    let sources = [
        format!("shared x; thread p; store [x], 1; end; {block}"),
        format!("shared x; thread p; if r goto on; store [x], 1; halt; on: nop; end; {block} && p.r == 0"),
        format!("shared x, y; thread p; store [x], 1; load r, [y]; end; {block}"),
        "shared x; thread p; store [x], 1; end; thread q; lock; store [x], 2; fence; halt; end; never [x] == 2".to_string(),
    ];
    for source in sources {
        assert!(agrees(&read(&source), Aim::Property, &fences()).expect("brute force agrees"), "{source}");
        match answer(&source, Aim::Property, &fences()) {
            Answer::Holds(enough) => assert_eq!(enough.cost, 1, "{source}: {:?}", enough.sets),
            Answer::Fails(Remaining::UnderSc(_)) if source.contains("store [x], 2") => {}
            other => panic!("{source}: {other:?}"),
        }
    }
}

/// All bundled programs, with their places: what is small enough is compared with brute force.
#[test]
fn bundled_programs_get_the_fewest_fences() {
    let mut compared = 0;
    for entry in walk(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("programs")) {
        let source = std::fs::read_to_string(&entry).expect("bundled programs can be read");
        let program = overtake::front::tso::read(&source, &[], &Limits::default())
            .expect("bundled programs are right")
            .program;
        for aim in [Aim::Robustness, Aim::Property] {
            let has_property = !program.properties().is_empty() || program.has_asserts();
            if aim == Aim::Robustness || has_property {
                let agreed = agrees_on_places(&program, aim);
                let agreed = agreed.unwrap_or_else(|e| panic!("{}: {e}", entry.display()));
                compared += agreed as usize;
            }
        }
    }
    assert!(compared > 200, "only {compared} programs were compared");
}

/// Like [`agrees`], with the places alone at which a store can be waiting.
fn agrees_on_places(program: &Program, aim: Aim) -> Result<bool, TestCaseError> {
    agrees_on(program, aim, &fences(), |program, change| match change {
        Change::Fence { thread, at } => may_wait(program, *thread, *at),
        _ => true,
    })
}

/// Can a store of the thread be in its buffer at the location, by the text?
fn may_wait(program: &Program, t: ThreadId, at: Loc) -> bool {
    let thread = program.thread(t);
    let waits = Instr::drains_buffer;
    let mut reached: Vec<Loc> =
        thread.edges().filter(|(_, e)| matches!(e.instr, Instr::Store { .. })).map(|(_, e)| e.to).collect();
    let mut next = 0;
    while next < reached.len() {
        for (_, edge) in thread.edges_from(reached[next]) {
            if !waits(&edge.instr) && !reached.contains(&edge.to) {
                reached.push(edge.to);
            }
        }
        next += 1;
    }
    reached.contains(&at)
}

fn walk(dir: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut all = Vec::new();
    for entry in dir.read_dir().expect("it can be listed") {
        let path = entry.expect("it can be listed").path();
        if path.is_dir() {
            all.extend(walk(&path));
        } else if path.extension().is_some_and(|e| e == "tso") {
            all.push(path);
        }
    }
    all.sort();
    all
}

/// The numbers of fences that another tool gave for its own programs.
#[test]
fn recorded_numbers_of_fences_agree() {
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpora/trencher");
    let Ok(rows) = std::fs::read_to_string(corpus.join("expected.jsonl")) else {
        eprintln!("skipped: there is no corpus at {}", corpus.display());
        return;
    };
    for row in rows.lines() {
        let row: serde_json::Value = serde_json::from_str(row).expect("a row is JSON");
        if row["field"] != "fences" {
            continue;
        }
        let file = row["file"].as_str().expect("a row names its file");
        let source = std::fs::read_to_string(corpus.join(file)).expect("the file is there");
        let program =
            overtake::front::trencher::read(&source, &Limits::default()).expect("it is a program").program;
        let wanted = Wanted { aim: Aim::Robustness, list: 1 };
        let found = repair(&program, &wanted, &fences(), &options(), &Limits::default());
        match found.expect("no internal error").answer {
            Answer::Holds(enough) => {
                assert_eq!(Some(enough.sets[0].len() as u64), row["expect"].as_u64(), "{file}");
            }
            other => panic!("{file}: {other:?}"),
        }
    }
}

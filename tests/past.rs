//! Do lagging readers see what the plain TSO machine does? Random programs with loops, computed addresses,
//! locked instructions, blocks, choices and errors go through the plain machine, explored naively, and through
//! the machine of lagging readers at every level of approximation, and without any. Every run that is found is
//! performed on the plain machine, and every proof is judged by a checker that knows nothing of the search.
//!
//! `OVERTAKE_PROGRAMS=20000 cargo test --release --test past` tries more programs than the default.

mod common;

use common::{
    Naive, SMALL, Shape, Taste, cases, naive, overseen_program, pointed_program, program, template_program,
};
use overtake::certify::{self, invariant};
use overtake::engine::{self, Choice, Options, PAST, Pruning};
use overtake::front::{rmm, trencher, tso};
use overtake::model::Program;
use overtake::past::{Interchange, Keep, Level, Readers, Seen, prove};
use overtake::query::{Answer, Goal, Limit, Limits, Model, Question, Reductions};
use overtake::reach::Budget;
use proptest::prelude::*;
use std::io::Write;
use std::path::Path;

const MOST: usize = 20_000;
/// For searches that may have no end.
const FEW: u64 = 3_000;

const LEVELS: [Level; 4] = [Level::Joined, Level::Repeated(1), Level::Repeated(2), Level::Exact];

/// What the readers see at one level; `None` if there is no end to it.
fn look(program: &Program, level: Level, reductions: Reductions, contents: Keep) -> Option<Seen> {
    let (goal, limits) = (Goal::of(program), Limits { states: Some(FEW), ..Limits::default() });
    let mut readers = Readers::new(program, &goal, level, reductions, contents, &limits).expect("no limit");
    match readers.look(&limits, Budget::UNLIMITED) {
        Ok(seen) => Some(seen),
        Err(Limit::States(_)) => None,
        Err(limit) => panic!("{limit:?}"),
    }
}

/// At each level, what is seen does not contradict the plain machine, and without approximation nothing is
/// spurious.
fn levels_agree(program: &Program, plain: Naive) -> Result<(), TestCaseError> {
    let goal = Goal::of(program);
    for level in LEVELS {
        for (reductions, contents) in
            [(Reductions::ALL, Keep::Needed), (Reductions::NONE, Keep::Needed), (Reductions::ALL, Keep::All)]
        {
            let what = format!("{level:?}, {reductions:?}, {contents:?}");
            match look(program, level, reductions, contents) {
                Some(Seen::Nothing) => prop_assert!(plain != Naive::Violated, "{what}: nothing is seen"),
                Some(Seen::Forbidden(actions)) => {
                    prop_assert!(plain != Naive::Safe, "{what}: something forbidden is seen");
                    let judged = certify::run(program, &goal, Model::Tso, &actions, &Limits::default());
                    prop_assert!(judged.is_ok(), "{what}: {:?}", judged.err());
                }
                Some(Seen::Spurious(_)) => prop_assert!(level != Level::Exact, "{what}: spurious"),
                Some(Seen::Spent) | None => {}
            }
        }
    }
    Ok(())
}

/// If a proof is found, the program is safe, and a judge that knows nothing of the search accepts it.
fn proofs_hold(program: &Program, plain: Naive) -> Result<(), TestCaseError> {
    let (goal, limits) = (Goal::of(program), Limits { states: Some(FEW), ..Limits::default() });
    for exchange in [Interchange::Allowed, Interchange::Not] {
        match prove(program, &goal, exchange, &limits) {
            Ok(Some(invariant)) => {
                prop_assert!(plain != Naive::Violated, "{exchange:?}: proved, and violated");
                let judged = invariant::check(program, &goal, Model::Tso, &invariant, &Limits::default());
                prop_assert!(judged.is_ok(), "{exchange:?}: {:?}", judged.err());
            }
            Ok(None) => prop_assert!(plain != Naive::Safe, "{exchange:?}: something forbidden is seen"),
            Err(Limit::States(_)) => {}
            Err(limit) => panic!("{limit:?}"),
        }
    }
    Ok(())
}

/// All on, all off, each alone off, each alone on.
fn reductions() -> Vec<Reductions> {
    let mut all = vec![Reductions::ALL, Reductions::NONE];
    all.extend(Reductions::TABLE.iter().flat_map(|r| [Reductions::all_but(r), Reductions::only(r)]));
    all
}

/// The engine's answer, with every reduction on and off, is that of the plain machine where both are certain.
fn answers_agree(program: &Program, plain: Naive) -> Result<(), TestCaseError> {
    for reductions in reductions() {
        let pruning = if reductions == Reductions::ALL { Pruning::On } else { Pruning::Off };
        let options =
            Options { engine: Choice::Only(&PAST), reductions, pruning, ..Options::with_workers(1) };
        let limits = Limits { states: Some(FEW), ..Limits::default() };
        let found = engine::check(program, &Goal::of(program), &options, &limits).expect("no internal error");
        let agree = match (plain, &found.answer) {
            (_, Answer::Unknown(Limit::States(_))) => true,
            (_, Answer::Unknown(_)) => false,
            (Naive::Violated, answer) => matches!(answer, Answer::Fails(_)),
            (Naive::Safe, answer) => matches!(answer, Answer::Holds(_)),
            (Naive::Bounded | Naive::Unknown, _) => true,
        };
        prop_assert!(
            agree,
            "{reductions:?}: the plain machine says {plain:?}, the readers {:?}",
            found.answer
        );
    }
    Ok(())
}

/// Without loops the plain machine has all the room that it wants.
fn compare(program: &Program) -> Result<(), TestCaseError> {
    let plain = naive(program, &Goal::of(program), Model::Tso, None, MOST);
    if plain == Naive::Unknown {
        return Ok(());
    }
    levels_agree(program, plain)?;
    proofs_hold(program, plain)?;
    answers_agree(program, plain)
}

/// With loops its buffers are short, and it may find less.
fn compare_with_loops(program: &Program) -> Result<(), TestCaseError> {
    let plain = naive(program, &Goal::of(program), Model::Tso, Some(4), MOST / 4);
    levels_agree(program, plain)?;
    proofs_hold(program, plain)?;
    answers_agree(program, plain)
}

const STRAIGHT: Shape = Shape { loops: false, ..SMALL };
const WILD: Shape = Shape { taste: Taste::Wild, lines: (1, 5), ..STRAIGHT };
const READING: Shape = Shape { taste: Taste::Reading, lines: (2, 5), ..STRAIGHT };
const DENSE: Shape = Shape { taste: Taste::Dense, lines: (2, 5), ..STRAIGHT };
const CROWD: Shape = Shape { threads: (4, 5), lines: (1, 2), ..STRAIGHT };

proptest! {
    #![proptest_config(cases(16))]

    #[test]
    fn answers_agree_on_programs_without_loops(
        any in program(STRAIGHT),
        wild in program(WILD),
        dense in program(DENSE),
        reading in program(READING),
    ) {
        compare(&any.0)?;
        compare(&wild.0)?;
        compare(&dense.0)?;
        compare(&reading.0)?;
    }

    #[test]
    fn answers_agree_where_threads_end_inside_blocks(
        any in program(Shape { unfinished: true, ..STRAIGHT }),
        dense in program(Shape { unfinished: true, ..DENSE }),
    ) {
        compare(&any.0)?;
        compare(&dense.0)?;
    }

    #[test]
    fn answers_agree_on_crowds_and_large_memories(
        crowd in program(CROWD),
        apart in program(Shape { cells: 125, ..STRAIGHT }),
        faulty in program(Shape { faults: 25, ..STRAIGHT }),
    ) {
        compare(&crowd.0)?;
        compare(&apart.0)?;
        compare(&faulty.0)?;
    }

    #[test]
    fn what_a_run_shows_is_seen(
        any in pointed_program(STRAIGHT, Model::Tso),
        wild in pointed_program(WILD, Model::Tso),
        dense in pointed_program(DENSE, Model::Tso),
        overseen in overseen_program(READING),
        unfinished in pointed_program(Shape { unfinished: true, ..DENSE }, Model::Tso),
    ) {
        for shown in [any, wild, dense, overseen, unfinished] {
            compare(&shown.0)?;
        }
    }

    #[test]
    fn with_loops_nobody_is_contradicted(
        any in program(SMALL),
        dense in program(Shape { loops: true, ..DENSE }),
        reading in program(Shape { loops: true, ..READING }),
        wild in program(Shape { loops: true, ..WILD }),
        pointed in pointed_program(Shape { loops: true, ..DENSE }, Model::Tso),
    ) {
        for shown in [any, dense, reading, wild, pointed] {
            compare_with_loops(&shown.0)?;
        }
    }

    #[test]
    fn answers_agree_on_templates(straight in template_program(3, false), looping in template_program(3, true)) {
        compare(&straight.0)?;
        compare_with_loops(&looping.0)?;
    }
}

/// Programs around what is special to lagging readers, with the verdict of the plain machine.
const LESSONS: &[(&str, &str)] = &[
    (
        "a thread that waits at a store does not read half of a block",
        "shared x, y, z
         thread p; choose a, b; a: store [z], 1; load r, [x]; load s, [y]; goto on; b: nop; on: nop; end
         thread q; lock; store [x], 1; store [y], 1; unlock; end
         exists p.r == 1 && p.s == 0",
    ),
    (
        "a goal inside a block counts stores that others have issued",
        "shared x, y
         thread p; lock; nop; mid: nop; unlock; end
         thread q; store [y], 2; L: load a, [x]; end
         forbid q@L && p@mid && [y] == 0",
    ),
    (
        "a store that is too late for a block is seen by its thread alone",
        "shared x, y
         thread p; lock; load r, [y]; mid: nop; unlock; end
         thread q; store [y], 2; load s, [y]; L: load a, [x]; end
         forbid q@L && p@mid && p.r == 0 && q.s == 2",
    ),
    (
        "nobody gets past a fence with a store that is too late",
        "shared x, y
         thread p; lock; mid: nop; unlock; end
         thread q; store [y], 2; fence; L: load a, [x]; end
         forbid q@L && p@mid && [y] == 0",
    ),
    (
        "a late store may be followed by loads of what was there before the block, and of nothing newer",
        "shared x, y, z
         thread p; lock; store [x], 1; mid: nop; unlock; end
         thread q; store [y], 1; load r, [x]; L: nop; end
         thread s; store [x], 2; end
         forbid q@L && p@mid && [y] == 0 && q.r == 1",
    ),
    (
        "a thread reads its own store until it is in memory, and not an older one",
        "shared x, y
         thread p; store [x], 1; load r, [x]; load s, [y]; load u, [x]; end
         thread q; store [x], 2; store [y], 1; end
         exists p.r == 1 && p.s == 0 && p.u == 2",
    ),
    (
        "of two own stores the newer one is read",
        "shared x, y
         thread p; store [x], 1; store [x], 2; load r, [x]; load s, [y]; end
         thread q; store [y], 1; load r, [x]; end
         exists p.r == 1 || p.s == 0 && q.r == 0 && p.r == 3",
    ),
    (
        "stores become visible in order",
        "shared x, y, z
         thread p; store [x], 1; store [y], 1; end
         thread q; store [z], 1; load r, [y]; load s, [x]; end
         exists q.r == 1 && q.s == 0",
    ),
    (
        "what was read later is not forgotten",
        "shared x, y, z
         thread p; store [z], 1; load r, [x]; load s, [x]; end
         thread q; store [x], 1; store [x], 0; store [x], 1; store [x], 0; end
         exists p.r == 1 && p.s == 0",
    ),
    (
        "an own store between two loads of others' does not bring the old back",
        "shared x, y, z
         thread p; store [z], 1; load r, [x]; store [y], 2; load s, [x]; end
         thread q; store [x], 1; fence; load r, [y]; end
         exists p.r == 1 && p.s == 0",
    ),
    (
        "a block of the thread itself puts it in step",
        "shared x, y
         thread p; store [x], 1; lock; load r, [y]; unlock; end
         thread q; store [y], 1; lock; load r, [x]; unlock; end
         exists p.r == 0 && q.r == 0",
    ),
    (
        "a lagging thread may still go another way than to its store",
        "shared x, y, z
         thread p; store [x], 1; load r, [y]; choose a, b; a: store [z], 1; goto on; b: load s, [y]; on: nop; end
         thread q; store [y], 1; load r, [x]; end
         exists p.r == 0 && p.s == 0 && q.r == 0",
    ),
    (
        "a lagging thread goes wrong by what it reads",
        "shared x, y
         thread p; store [x], 1; load r, [y]; load s, [x]; assert r == 1 || s == 2; end
         thread q; store [y], 1; load r, [x]; assume r == 0; store [x], 2; end
         forbid p.r == 5",
    ),
    (
        "a goal may name the place between two loads from the past",
        "shared x, y, z
         thread p; store [x], 1; load r, [y]; L: load s, [z]; end
         thread q; store [y], 1; load r, [x]; end
         forbid p@L && p.r == 0 && q.r == 0 && [y] == 1",
    ),
    (
        "a goal that is lost on arrival was there before",
        "shared x, y
         thread p; store [x], 1; load r, [y]; L: nop; end
         thread q; store [y], 1; load r, [x]; end
         forbid !p@L && q.r == 1 && [y] == 1",
    ),
];

#[test]
fn lessons_stay_learned() {
    for (lesson, source) in LESSONS {
        let program = tso::read(source, &[], &Limits::default()).expect(lesson).program;
        compare(&program).unwrap_or_else(|e| panic!("{lesson}: {e}"));
    }
}

#[derive(serde::Deserialize)]
struct Row {
    file: String,
    command: Vec<String>,
    expect: serde_json::Value,
}

/// Recorded verdicts under TSO, if the collections lie beside this repository: none is too much for lagging
/// readers.
#[test]
fn recorded_programs_are_decided() {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpora");
    for name in ["open", "rmm", "trencher"] {
        let folder = corpora.join(name);
        let Ok(rows) = std::fs::read_to_string(folder.join("expected.jsonl")) else {
            let _ = writeln!(std::io::stderr(), "skipped: no programs at {}", folder.display());
            continue;
        };
        for line in rows.lines() {
            let row: Row = serde_json::from_str(line).expect("a row");
            if row.command == ["check"] {
                let source = std::fs::read_to_string(folder.join(&row.file)).expect("the program is there");
                assert_eq!(recorded(&row.file, &source), row.expect, "{}", row.file);
            }
        }
    }
}

/// The word for what lagging readers say of a program in whatever format.
fn recorded(file: &str, source: &str) -> &'static str {
    let limits = Limits::default();
    let program = match file.rsplit('.').next() {
        Some("tso") => tso::read(source, &[], &limits).map(|input| input.program),
        Some("rmm") => rmm::read(source, &limits).map(|input| input.program),
        _ => trencher::read(source, &limits).map(|input| input.program),
    };
    let program = program.unwrap_or_else(|wrong| panic!("{file}: {wrong:?}"));
    let options = Options { engine: Choice::Only(&PAST), ..Options::with_workers(1) };
    let limits = Limits { states: Some(100_000), ..Limits::default() };
    let found = engine::check(&program, &Goal::of(&program), &options, &limits).expect("no internal error");
    Question::Check.word(found.answer.verdict())
}

//! Is a `membarrier` what it should be to all who know it? Random programs with some go through the engines, and
//! through the plain machines, which say what is right. Whoever does not know it says so, and no more.
//!
//! `OVERTAKE_PROGRAMS=5000 cargo test --release --test membarrier` tries more programs than the default.

mod common;
#[path = "common/ran.rs"]
mod ran;

use common::{Naive, SMALL, Shape, Shown, Taste, cases, naive, program};
use overtake::certify::happens_before::HappensBefore;
use overtake::engine::{self, AUTOMATA, Choice, EXPLICIT, LAZY, Options, PAST};
use overtake::limits::Limits;
use overtake::model::{Instr, Program};
use overtake::query::{
    Action, Answer, EventKind, Goal, Limit, Model, Reduction, Reductions, Relation, Verdict,
};
use overtake::semantics::replay::{follow, replay};
use overtake::semantics::{State, tso};
use proptest::prelude::*;
use ran::overtake;

/// States of the plain machine that are worth a program.
const MOST: usize = 20_000;

const SHAPE: Shape = Shape { loops: false, ..SMALL };
const DENSE: Shape = Shape { taste: Taste::Dense, loops: false, lines: (3, 6), ..SMALL };

/// All events of a block are one, and not in any order.
const APART: Shape = Shape { blocks: false, ..DENSE };

/// The program with a `membarrier` in place of its fences, and of some of its local instructions and locked ones.
fn with_membarriers(program: &Program, choices: u64) -> Program {
    let mut parts = program.to_parts();
    let edges = parts.threads.iter_mut().flat_map(|t| &mut t.edges);
    for (k, edge) in edges.enumerate() {
        let chosen = choices >> (k % 64) & 1 != 0;
        let fits = matches!(edge.instr, Instr::Fence)
            || matches!(edge.instr, Instr::Assign { .. } | Instr::Rmw { .. }) && chosen;
        if fits {
            edge.instr = Instr::Membarrier;
        }
    }
    Program::new(parts).expect("a valid program is valid with another fence")
}

fn verdict(program: &Program, options: &Options) -> Verdict {
    let limits = Limits { states: Some(200_000), ..Limits::default() };
    let outcome = engine::check(program, &Goal::of(program), options, &limits).expect("no bug in overtake");
    outcome.answer.verdict()
}

/// All who answer say what the plain machine says.
fn agrees(program: &Program) -> Result<(), TestCaseError> {
    let goal = Goal::of(program);
    let plain = match naive(program, &goal, Model::Tso, None, MOST) {
        Naive::Violated => Verdict::Fails,
        Naive::Safe => Verdict::Holds,
        Naive::Bounded | Naive::Unknown => return Ok(()),
    };
    let mut asked = vec![
        Options::with_workers(1),
        Options::with_workers(2),
        Options { reductions: Reductions::NONE, engine: Choice::Only(&EXPLICIT), ..Options::with_workers(1) },
    ];
    let reductions = Reductions::TABLE.iter();
    let only = |r: &Reduction| Options {
        reductions: Reductions::only(r),
        engine: Choice::Only(&EXPLICIT),
        ..Options::with_workers(1)
    };
    asked.extend(reductions.map(only));
    if !program.has_locks() || program.membarrier().is_none() {
        asked.push(Options { engine: Choice::Only(&PAST), ..Options::with_workers(1) });
    }
    for options in &asked {
        let found = verdict(program, options);
        prop_assert!(
            found == plain || options.engine.name() == "past" && found == Verdict::Unknown,
            "{}: {found:?}, and not {plain:?}",
            options.engine.name()
        );
    }
    let sc = naive(program, &goal, Model::Sc, None, MOST);
    let found = verdict(program, &Options { model: Model::Sc, ..Options::with_workers(1) });
    prop_assert_eq!(found == Verdict::Fails, sc == Naive::Violated);
    Ok(())
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn answers_agree(Shown(program) in program(SHAPE), choices: u64) {
        agrees(&with_membarriers(&program, choices))?;
    }

    #[test]
    fn answers_agree_on_dense_programs(Shown(program) in program(DENSE), choices: u64) {
        agrees(&with_membarriers(&program, choices))?;
    }

    #[test]
    fn a_membarrier_is_a_fence_in_all_threads_at_once(Shown(program) in program(APART), choices: u64, steps: u64) {
        let program = with_membarriers(&program, choices);
        let actions = some_run(&program, steps);
        let limits = Limits::default();
        let events = follow(&program, Model::Tso, actions.into_iter(), &limits).expect("a run");
        prop_assert!(replay(&program, Model::Tso, &events, &limits).is_ok());
        let order = HappensBefore::of(&events);
        for (k, event) in events.iter().enumerate() {
            let flushed = |store: usize| events[..k].iter().any(|e| e.store == Some(store));
            if event.kind == EventKind::Membarrier && event.trap.is_none() {
                for (earlier, before) in events[..k].iter().enumerate() {
                    prop_assert!(before.kind != EventKind::Store || flushed(earlier), "a store waits");
                    prop_assert!(order.after(earlier).contains(k), "it comes after all that was done");
                }
                let after = order.after(k);
                prop_assert!((k + 1..events.len()).all(|later| after.contains(later)), "and before all to come");
            }
        }
    }
}

/// Decisions of a run that goes where the numbers say.
fn some_run(program: &Program, mut numbers: u64) -> Vec<Action> {
    let (mut state, mut actions) = (State::initial(program), Vec::new());
    for _ in 0..40 {
        let mut steps = tso::steps(program, &state, tso::Bound::Unbounded).0;
        steps.retain(|step| step.event.trap.is_none());
        if steps.is_empty() {
            break;
        }
        numbers = numbers.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let step = steps.swap_remove((numbers >> 33) as usize % steps.len());
        actions.push(step.event.action);
        state = step.state;
    }
    actions
}

/// Dekker's idea with one cheap side: a plain store and load here, and a membarrier there.
const ASYMMETRIC: &str = "shared x, y
thread fast
    store [x], 1
    load  r, [y]
end
thread slow
    store [y], 1
    membarrier
    load  r, [x]
end
never fast.r == 0 && slow.r == 0
";

#[test]
fn one_membarrier_does_for_both_sides_and_a_fence_does_not() {
    let read = |source: &str| {
        overtake::front::tso::read(source, &[], &Limits::default()).expect("it is a program").program
    };
    let (asymmetric, fenced) = (read(ASYMMETRIC), read(&ASYMMETRIC.replace("membarrier", "fence")));
    assert_eq!(verdict(&asymmetric, &Options::with_workers(1)), Verdict::Holds);
    assert_eq!(verdict(&fenced, &Options::with_workers(1)), Verdict::Fails);
}

#[test]
fn whoever_does_not_know_it_says_so() {
    let program = overtake::front::tso::read(ASYMMETRIC, &[], &Limits::default()).expect("a program").program;
    for engine in [&LAZY, &AUTOMATA] {
        let options = Options { engine: Choice::Only(engine), ..Options::with_workers(1) };
        let outcome = engine::check(&program, &Goal::of(&program), &options, &Limits::default());
        let answer = outcome.expect("no bug in overtake").answer;
        assert!(matches!(answer, Answer::Unknown(Limit::Membarrier(_))), "{}: {answer:?}", engine.name);
    }
    let robust = engine::robust(&program, &Options::with_workers(1), &Limits::default());
    assert!(matches!(robust.expect("no bug").answer, Answer::Unknown(Limit::Membarrier(_))));
    let file = std::env::temp_dir().join(format!("overtake-membarrier-{}.tso", std::process::id()));
    std::fs::write(&file, ASYMMETRIC).expect("a file can be written");
    let name = file.display().to_string();
    for refused in [
        &["check", "--engine", "lazy", &name][..],
        &["check", "--engine", "automata", &name],
        &["robust", &name],
        &["robust", "--triangular", &name],
        &["fence", "--for", "robustness", &name],
        &["convert", "--to", "litmus", &name],
        &["convert", "--to", "trencher", &name],
    ] {
        let ran = overtake(refused);
        assert_eq!(ran.code, 2, "{refused:?}");
        assert!(ran.err.contains("line 8"), "{refused:?}: {}", ran.err);
    }
    let _ = std::fs::remove_file(file);
}

#[test]
fn the_order_of_a_run_has_edges_of_its_own() {
    let program = overtake::front::tso::read(ASYMMETRIC, &[], &Limits::default()).expect("a program").program;
    let events = follow(&program, Model::Tso, some_run(&program, 7), &Limits::default());
    let order = HappensBefore::of(&events.expect("a run"));
    assert!(order.graph().edge_weights().any(|relation| *relation == Relation::Membarrier));
}

//! Does the lazy engine say what the plain TSO machine says? Random programs with computed addresses, locked
//! instructions, blocks, fences and errors; without loops the lazy engine must always end, with loops it must
//! not contradict bounded buffers. Every trace is replayed on the way (`engine::check` fails otherwise).
//!
//! `OVERTAKE_PROGRAMS=20000 cargo test --release --test lazy` tries more programs than the default.

mod common;

use common::robustness::brute_robust;
use common::{Naive, SMALL, Shape, Shown, Taste, cases, naive, pointed_program, program, template_program};
use overtake::certify::Checked;
use overtake::engine::{self, Choice, Form, LAZY, LazyOptions, Options, Pruning};
use overtake::front::tso;
use overtake::model::Program;
use overtake::query::{Answer, Goal, Limit, Limits, Model, Reductions};
use proptest::prelude::*;

const MOST: usize = 20_000;

fn lazy(program: &Program, iterations: Option<u64>, pruning: Pruning) -> Checked {
    let own = LazyOptions { iterations, ..LazyOptions::default() };
    let engine = Choice::Only(&LAZY);
    let options = Options { engine, lazy: own, pruning, workers: 1, ..Options::default() };
    let states = iterations.map(|_| 10 * MOST as u64);
    let limits = Limits { states, ..Limits::default() };
    engine::check(program, &Goal::of(program), &options, &limits).expect("no internal error").answer
}

/// Without loops both end, and say the same.
fn same(program: &Program) -> Result<(), TestCaseError> {
    let plain = naive(program, &Goal::of(program), Model::Tso, None, MOST);
    if plain == Naive::Unknown {
        return Ok(());
    }
    for pruning in [Pruning::On, Pruning::Off] {
        let answer = lazy(program, None, pruning);
        let agree = matches!(
            (plain, &answer),
            (Naive::Violated, Answer::Fails(_))
                | (Naive::Safe, Answer::Holds(_))
                | (_, Answer::Unknown(Limit::FrozenBuffers))
        );
        prop_assert!(agree, "{pruning:?}: the plain machine says {plain:?}, the lazy engine {answer:?}");
    }
    Ok(())
}

/// Engines side by side do not contradict the plain machine, and without its limits say what it says.
fn side_by_side(program: &Program) -> Result<(), TestCaseError> {
    let plain = naive(program, &Goal::of(program), Model::Tso, None, MOST);
    let options = Options { side_by_side: true, pruning: Pruning::Off, workers: 4, ..Options::default() };
    let limits = Limits { states: Some(10 * MOST as u64), ..Limits::default() };
    let found = engine::check(program, &Goal::of(program), &options, &limits).expect("no internal error");
    let agree = match (plain, &found.answer) {
        (Naive::Violated, answer) => matches!(answer, Answer::Fails(_)),
        (Naive::Safe, answer) => matches!(answer, Answer::Holds(_)),
        (Naive::Unknown | Naive::Bounded, _) => true,
    };
    prop_assert!(agree, "the plain machine says {plain:?}, engines side by side {found:?}");
    Ok(())
}

/// Without loops, delays that are added one after the other find whatever there is; they prove nothing.
fn additive(program: &Program) -> Result<(), TestCaseError> {
    let plain = naive(program, &Goal::of(program), Model::Tso, None, MOST);
    let own = LazyOptions { form: Form::Additive, iterations: None };
    let engine = Choice::Only(&LAZY);
    let options = Options { engine, lazy: own, workers: 1, ..Options::default() };
    let limits = Limits { states: Some(10 * MOST as u64), ..Limits::default() };
    let goal = Goal::of(program);
    let answer = engine::check(program, &goal, &options, &limits).expect("no internal error").answer;
    let agree = match (plain, &answer) {
        (Naive::Violated, answer) => {
            matches!(answer, Answer::Fails(_) | Answer::Unknown(Limit::FrozenBuffers | Limit::States(_)))
        }
        (Naive::Safe, answer) => !matches!(answer, Answer::Fails(_)),
        _ => true,
    };
    prop_assert!(agree, "the plain machine says {plain:?}, the lazy engine {answer:?}");
    Ok(())
}

/// With loops neither may refute the other.
fn compatible(program: &Program) -> Result<(), TestCaseError> {
    let plain = naive(program, &Goal::of(program), Model::Tso, Some(3), MOST);
    for pruning in [Pruning::On, Pruning::Off] {
        let answer = lazy(program, Some(8), pruning);
        let contradict =
            matches!((plain, &answer), (Naive::Violated, Answer::Holds(_)) | (Naive::Safe, Answer::Fails(_)));
        prop_assert!(
            !contradict,
            "{pruning:?}: the plain machine says {plain:?}, the lazy engine {answer:?}"
        );
    }
    Ok(())
}

/// Steps that brute force may take for one program.
const STEPS: usize = 30_000;

/// The oracle says what an enumeration of all computations says, with and without its reductions.
fn robust(program: &Program) -> Result<(), TestCaseError> {
    let Some(expected) = brute_robust(program, STEPS) else { return Ok(()) };
    let without = |change: fn(&mut Reductions)| {
        let mut reductions = Reductions::ALL;
        change(&mut reductions);
        reductions
    };
    let ways = [
        (Reductions::ALL, Pruning::On, 1),
        (Reductions::ALL, Pruning::Off, 1),
        (Reductions::NONE, Pruning::On, 1),
        (Reductions::NONE, Pruning::Off, 2),
        (without(|r| r.por = false), Pruning::Off, 1),
        (without(|r| r.sleep = false), Pruning::Off, 1),
        (without(|r| r.steps = false), Pruning::Off, 1),
        (without(|r| r.symmetry = false), Pruning::Off, 1),
    ];
    for (reductions, pruning, workers) in ways {
        let options = Options { reductions, pruning, workers, ..Options::default() };
        let found = engine::robust(program, &options, &Limits::default()).expect("no internal error");
        let is_robust = match found.answer {
            Answer::Holds(()) => true,
            Answer::Fails(_) => false,
            Answer::Unknown(limit) => panic!("{limit:?} without limits"),
        };
        prop_assert_eq!(is_robust, expected, "{:?}, {:?}", reductions, pruning);
    }
    Ok(())
}

/// With loops, the oracle says the same with and without its reductions.
fn robust_either_way(program: &Program) -> Result<(), TestCaseError> {
    let ask = |reductions, pruning| {
        let options = Options { reductions, pruning, workers: 1, ..Options::default() };
        let limits = Limits { states: Some(10 * MOST as u64), ..Limits::default() };
        engine::robust(program, &options, &limits).expect("no internal error").answer
    };
    let (with, without) = (ask(Reductions::ALL, Pruning::On), ask(Reductions::NONE, Pruning::Off));
    let contradict = matches!(
        (&with, &without),
        (Answer::Holds(()), Answer::Fails(_)) | (Answer::Fails(_), Answer::Holds(()))
    );
    prop_assert!(!contradict, "with reductions {with:?}, without {without:?}");
    Ok(())
}

/// What the text refutes of one thread it may not refute of its namesake.
fn agree_on(source: &str) {
    let program = tso::read(source, &[], &Limits::default()).expect("a program").program;
    same(&program).expect("the same answers");
    robust(&program).expect("the same answers");
}

#[test]
fn threads_that_begin_elsewhere_are_not_attacked_in_each_others_place() {
    let text = "up: store [x], 1; load r, [y]; halt; down: store [y], 1; load r, [x]";
    for (first, second) in [("up", "up"), ("up", "down"), ("down", "up"), ("down", "down")] {
        agree_on(&format!(
            "shared x, y; thread p; goto {first}; {text}; end; thread q; goto {second}; {text}; end
             never p.r == 0 && q.r == 0"
        ));
    }
}

#[test]
fn threads_that_point_elsewhere_are_not_attacked_in_each_others_place() {
    let source = "shared x, y, w, v = 1
         thread p[i in 0..2]; if r == i goto other; k = 1; goto on; other: k = 2; on: store [x], 1; load q, [k]
             fence; load k, [v]; fence; load s, [k]; end
         thread c; store [y], 1; fence; load a, [x]; store [v], 2; end
         never p[1].q == 0 && c.a == 0";
    agree_on(source);
    agree_on(&source.replace("k = 1; goto on; other: k = 2", "k = 2; goto on; other: k = 1"));
}

#[test]
fn helpers_that_go_wrong_help_nobody() {
    let helpers = [
        "store [y], 1 / r",
        "store [1 / r], 1",
        "store [y + 7], 1",
        "xchg t, [y], 1 / r",
        "xchg t, [1 % r], 1",
        "add t, [y], 1 / r",
        "cas t, [y], 1 / r, 1",
        "cas t, [y], 0, 1 / r",
        "lock; store [y], 1 / r; unlock",
        "store [y], 1; t = 1 / r",
    ];
    for helper in helpers {
        agree_on(&format!(
            "shared x, y; thread p; {helper}; r = 0; end
             thread q; store [x], 1; load a, [y]; end
             thread s; load b, [y]; store [x], 2; end
             never q.a == 0 && s.b == 1"
        ));
    }
}

/// So small that all computations can be enumerated.
const TINY: Shape = Shape { lines: (1, 3), threads: (2, 3), loops: false, ..SMALL };
const CONFLICTS: Shape = Shape { lines: (2, 4), taste: Taste::Dense, registers: 1, ..TINY };
const STRAIGHT: Shape = Shape { loops: false, lines: (2, 6), ..SMALL };
const WILD: Shape = Shape { taste: Taste::Wild, lines: (1, 5), ..STRAIGHT };
/// Little variety, many meetings.
const DENSE: Shape = Shape { taste: Taste::Dense, lines: (2, 5), ..STRAIGHT };

/// An access to a cell, `c`; each of its expressions may divide by a register that may be 0.
fn chained_access() -> impl Strategy<Value = String> {
    const KINDS: [&str; 6] = [
        "load r, [A]",
        "store [A], V",
        "xchg r, [A], V",
        "add r, [A], V",
        "cas r, [A], O, V",
        "lock; load r, [A]; store [A], V; unlock",
    ];
    let address = prop_oneof![8 => Just("c"), 1 => Just("c + 1 / z"), 1 => Just("c + 0 % z")];
    let value = || prop_oneof![6 => Just("1"), 2 => Just("2"), 2 => Just("1 / z"), 1 => Just("1 % r")];
    let parts = (prop::sample::select(&KINDS[..]), address, value(), value());
    parts.prop_map(|(kind, a, v, o)| kind.replace('A', a).replace('V', v).replace('O', o))
}

/// Programs that are likely to have a witness: one thread stores to the first cell and loads the second, and
/// one or two others each touch a cell and then the next, the last of them the first cell again. Whoever
/// divides by 0 on the way breaks it.
fn chain_program() -> impl Strategy<Value = Shown> {
    let helper = (chained_access(), chained_access(), prop::bool::weighted(0.3));
    (prop::collection::vec(helper, 1..=2), prop::option::of(chained_access())).prop_map(
        |(helpers, bystander)| {
            let cells = helpers.len() + 1;
            let on = |access: &str, cell: usize| access.replace("[c", &format!("[x{cell}"));
            let names: Vec<String> = (0..=cells).map(|c| format!("x{c}")).collect();
            let mut text = format!("shared {}\n", names.join(", "));
            text += "thread q; store [x0], 1; load a, [x1]; end\n";
            for (i, (first, second, sound)) in helpers.iter().enumerate() {
                let (first, second) = (on(first, i + 1), on(second, (i + 2) % cells));
                text +=
                    &format!("thread p{i}; {}{first}; {second}; end\n", if *sound { "z = 1; " } else { "" });
            }
            if let Some(access) = bystander {
                text += &format!("thread b; {}; end\n", on(&access, cells));
            }
            text += "forbid q.a == 5";
            let read = tso::read(&text, &[], &Limits::default());
            Shown(read.unwrap_or_else(|e| panic!("{text}\n{e:?}")).program)
        },
    )
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn without_loops_it_ends_and_agrees(shown in program(STRAIGHT)) {
        same(&shown.0)?;
    }

    #[test]
    fn without_loops_it_ends_and_agrees_on_dense_programs(shown in program(DENSE)) {
        same(&shown.0)?;
    }

    #[test]
    fn without_loops_it_ends_and_agrees_on_wild_programs(shown in program(WILD)) {
        same(&shown.0)?;
    }

    #[test]
    fn without_loops_it_agrees_on_threads_that_end_inside_blocks(shown in program(Shape { unfinished: true, ..DENSE })) {
        same(&shown.0)?;
        robust(&shown.0)?;
    }

    #[test]
    fn it_finds_what_a_run_has_shown(shown in pointed_program(DENSE, Model::Tso)) {
        same(&shown.0)?;
    }

    #[test]
    fn added_delays_find_whatever_there_is(shown in program(STRAIGHT)) {
        additive(&shown.0)?;
    }

    #[test]
    fn added_delays_find_what_a_run_has_shown(shown in pointed_program(DENSE, Model::Tso)) {
        additive(&shown.0)?;
    }

    #[test]
    fn the_oracle_says_what_all_computations_say(shown in program(TINY)) {
        robust(&shown.0)?;
    }

    #[test]
    fn the_oracle_says_what_all_computations_of_a_dense_program_say(shown in program(CONFLICTS)) {
        robust(&shown.0)?;
    }

    #[test]
    fn the_oracle_says_what_all_computations_of_a_faulty_program_say(shown in program(Shape { faults: 25, ..TINY })) {
        robust(&shown.0)?;
    }

    #[test]
    fn the_oracle_says_what_all_computations_of_a_broken_chain_say(shown in chain_program()) {
        robust(&shown.0)?;
    }

    #[test]
    fn the_oracle_says_the_same_without_its_reductions(shown in program(SMALL)) {
        robust_either_way(&shown.0)?;
    }

    #[test]
    fn with_loops_it_contradicts_nobody(shown in program(SMALL)) {
        compatible(&shown.0)?;
    }

    #[test]
    fn with_loops_it_contradicts_nobody_on_dense_programs(shown in program(Shape { loops: true, ..DENSE })) {
        compatible(&shown.0)?;
    }
}

proptest! {
    #![proptest_config(cases(100))]

    #[test]
    fn answers_on_templates_agree(program in template_program(3, false)) {
        same(&program.0)?;
        side_by_side(&program.0)?;
        additive(&program.0)?;
        robust(&program.0)?;
    }

    #[test]
    fn answers_on_templates_with_loops_do_not_contradict(program in template_program(3, true)) {
        compatible(&program.0)?;
        side_by_side(&program.0)?;
        robust_either_way(&program.0)?;
    }
}

//! Do all ways to an answer agree? Random programs with loops, computed addresses, locked instructions,
//! blocks, choices and errors go through the plain machines of `semantics`, explored naively, and through the
//! explorer with every reduction on and off, one worker and several, both orders. Every trace is replayed on
//! the way (`engine::check` does nothing else with it, and fails otherwise).
//!
//! `OVERTAKE_PROGRAMS=20000 cargo test --release --test agree` tries more programs than the default.

mod common;

use common::{
    Naive, SMALL, Shape, Taste, cases, naive, overseen_program, pointed_program, program, template_program,
};
use overtake::certify::Checked;
use overtake::engine::{self, Choice, EXPLICIT, ExplicitOptions, Options, Pruning};
use overtake::model::Program;
use overtake::query::Reductions;
use overtake::query::{Answer, Goal, Limit, Limits, Model};
use overtake::reach::Order;
use proptest::prelude::*;
use std::cell::OnceCell;

const MOST: usize = 20_000;
/// For searches that may have no end.
const FEW: u64 = 1_000;

/// All on, all off, each alone off, each alone on.
fn reductions() -> Vec<Reductions> {
    let mut all = vec![Reductions::ALL, Reductions::NONE];
    all.extend(Reductions::TABLE.iter().flat_map(|r| [Reductions::all_but(r), Reductions::only(r)]));
    all
}

/// Whatever the program's text says: reductions are to be tried on programs that it refutes, too.
fn searching() -> Options {
    Options { pruning: Pruning::Off, ..Options::default() }
}

fn ask(program: &Program, options: &Options) -> Checked {
    ask_within(10 * MOST as u64, program, options)
}

fn ask_within(states: u64, program: &Program, options: &Options) -> Checked {
    let limits = Limits { states: Some(states), ..Limits::default() };
    let options = Options { engine: Choice::Only(&EXPLICIT), ..options.clone() };
    engine::check(program, &Goal::of(program), &options, &limits).expect("no internal error").answer
}

/// The explorer's answer must not contradict the plain machine's, and must equal it where both are certain.
fn same(plain: Naive, answer: &Checked, what: &str) -> Result<(), TestCaseError> {
    let agree = matches!(
        (plain, answer),
        (Naive::Violated, Answer::Fails(_))
            | (Naive::Safe, Answer::Holds(_))
            | (Naive::Bounded, Answer::Unknown(Limit::Buffer(_)))
            | (_, Answer::Unknown(Limit::States(_)))
    );
    prop_assert!(agree, "{what}: the plain machine says {plain:?}, the explorer {answer:?}");
    Ok(())
}

fn compare(program: &Program, model: Model, buffer: Option<usize>) -> Result<(), TestCaseError> {
    let plain = naive(program, &Goal::of(program), model, buffer, MOST);
    if plain == Naive::Unknown {
        return Ok(());
    }
    // A reduced search may need less buffer than the plain one, and then it proves more.
    let unbounded = OnceCell::new();
    let check = |options: Options, what: &str| match ask(program, &options) {
        Answer::Holds(_) if plain == Naive::Bounded => {
            let answer = unbounded.get_or_init(|| naive(program, &Goal::of(program), model, None, MOST / 4));
            prop_assert!(*answer != Naive::Violated, "{what}: safe with bounded buffers, violated without");
            Ok(())
        }
        answer => same(plain, &answer, what),
    };
    for reductions in reductions() {
        let options =
            Options { model, explicit: ExplicitOptions { buffer }, reductions, workers: 1, ..searching() };
        check(options, &format!("{reductions:?}"))?;
    }
    for (order, workers) in [(Order::DepthFirst, 1), (Order::BreadthFirst, 2), (Order::DepthFirst, 3)] {
        let options =
            Options { model, explicit: ExplicitOptions { buffer }, order, workers, ..Options::default() };
        check(options, &format!("{order:?}, {workers} workers"))?;
    }
    Ok(())
}

/// The goal was true at the end of a run, so every way to look for it must find it.
fn find(program: &Program, model: Model) -> Result<(), TestCaseError> {
    find_within(10 * MOST as u64, program, model)
}

fn find_within(states: u64, program: &Program, model: Model) -> Result<(), TestCaseError> {
    for reductions in reductions() {
        let options = Options { model, reductions, workers: 1, ..searching() };
        let answer = ask_within(states, program, &options);
        let found = matches!(answer, Answer::Fails(_) | Answer::Unknown(Limit::States(_)));
        prop_assert!(found, "{reductions:?}: the explorer says {answer:?}");
    }
    Ok(())
}

/// Loops may fill buffers without end: then the plain machine has short ones. What it finds there must be
/// found.
fn find_with_short_buffers(program: &Program) -> Result<(), TestCaseError> {
    let plain = naive(program, &Goal::of(program), Model::Tso, Some(4), MOST / 4);
    for reductions in reductions() {
        let options = Options { model: Model::Tso, reductions, workers: 1, ..searching() };
        let answer = ask_within(FEW, program, &options);
        let wrong = match plain {
            Naive::Violated => matches!(answer, Answer::Holds(_)),
            Naive::Safe => matches!(answer, Answer::Fails(_)),
            Naive::Bounded | Naive::Unknown => false,
        };
        prop_assert!(!wrong, "{reductions:?}: the plain machine says {plain:?}, the explorer {answer:?}");
    }
    Ok(())
}

const STRAIGHT: Shape = Shape { loops: false, ..SMALL };
/// Many threads of a line or two.
const CROWD: Shape = Shape { threads: (4, 5), lines: (1, 2), ..SMALL };
/// So many that some never sleep.
const HORDE: Shape = Shape { bystanders: 14, ..SMALL };
/// Cells that share a class of accesses.
const APART: Shape = Shape { cells: 125, ..SMALL };
const WILD: Shape = Shape { taste: Taste::Wild, lines: (1, 5), ..SMALL };
/// Loads that may wait.
const READING: Shape = Shape { taste: Taste::Reading, lines: (2, 5), ..SMALL };
/// Accesses of several sizes.
const MIXED: Shape = Shape { mixed: true, ..SMALL };
/// Little variety, many meetings.
const DENSE: Shape = Shape { taste: Taste::Dense, lines: (1, 4), ..STRAIGHT };

/// Programs that some version of the explorer, or a wrong idea for one, got wrong.
const LESSONS: &[(&str, &str)] = &[
    (
        "others may act between a store and a local step that the goal sees",
        "shared x
         thread p; store [x], 1; r = 5; end
         thread q
             load a, [x]; assume a == 1
         L:  nop
         end
         forbid p.r == 0 && q@L",
    ),
    (
        "a goal inside a block counts with the others' buffers as they are",
        "shared x, y
         thread p; lock; r = any(1..=2); unlock; xchg r, [x], 0; end
         thread q
             store [y], 2
         L:  load a, [x]
         end
         forbid q@L && p.r == 1 && [y] != 2",
    ),
    (
        "a store that changes nothing for its thread may undo another's",
        "shared x, y
         thread p; store [x], 1; store [y], 1; store [x], 1; end
         thread q
             load r, [y]
             store [x], 2
             fence
             load s, [x]
             load u, [x]
         end
         forbid q.r == 1 && q.s == 2 && q.u == 1",
    ),
    (
        "a store that changes nothing takes its turn in the run all the same",
        "shared x, y, z
         thread p; store [z], 0; store [x], 1; store [z], 0; store [y], 1; load r, [y]; fence; L: store [z], 1; end
         thread q; load u, [x]; load v, [y]; load w, [z]; end
         forbid p@L && q.u == 1 && q.v == 0",
    ),
    (
        "what waits in a buffer can be read while another holds memory",
        "shared x
         thread p; lock; nop; M: nop; unlock; end
         thread q; store [x], 0; load r, [x]; L: nop; end
         forbid p@M && q@L",
    ),
    (
        "the goal may hold before the first step",
        "shared x
         thread p; r = 1; load s, [x]; end
         thread q; load r, [x]; end
         forbid p.r == 0",
    ),
    (
        "a value that is overwritten at once was there",
        "thread p; r = 1; r = 2; r = 3; end
         forbid p.r == 2",
    ),
    (
        "what a thread stored before it got stuck is seen",
        "shared x
         thread p; store [x], 1; assume 0; end
         thread q; load r, [x]; end
         forbid q.r == 1",
    ),
    (
        "what a thread exchanged before it got stuck is seen",
        "shared x
         thread p; xchg r, [x], 1; assume r; end
         thread q; load r, [x]; end
         forbid q.r == 1",
    ),
    (
        "a thread that gets stuck behind its block has let go of memory",
        "shared x
         thread p; lock; store [x], 1; unlock; assume 0; end
         thread q; load r, [x]; end
         forbid q.r == 1",
    ),
    (
        "a block waits for nobody, but others may read before it",
        "shared x
         thread p; lock; store [x], 1; unlock; end
         thread q; load r, [x]; end
         exists q.r == 0",
    ),
    (
        "a computed address may be any of its range",
        "shared x, a[2]
         thread p; store [a + 1], 1; end
         thread q; load r, [x]; load s, [a + (r & 1)]; end
         thread s; store [x], 1; end
         exists q.s == 0 && q.r == 1",
    ),
    (
        "a place that has copies is reached at any of them",
        "shared x
         thread p; repeat k in 0..2 { l: load r, [x]; store [x], 1 }; fence; end
         forbid p@l && [x] == 1",
    ),
    (
        "a store waits in its buffer while the thread reads on",
        "shared x, y
         thread p; store [x], 1; load r, [y]; end
         thread q; store [y], 1; load r, [x]; end
         exists p.r == 0 && q.r == 0",
    ),
    (
        "a load may come before a write that its thread still waits to answer",
        "shared x, y
         thread p; load a, [x]; load b, [y]; store [x], 2; end
         thread q; store [x], 1; load c, [x]; store [y], 1; end
         exists p.a == 0 && p.b == 1 && q.c == 1",
    ),
    (
        "of two loads in a row the first may be old and the second not",
        "shared x, y, z
         thread p; load a, [x]; load b, [y]; store [z], a + 2 * b; end
         thread q; store [x], 1; store [y], 1; end
         exists [z] == 2",
    ),
    (
        "a row of loads may be longer than is taken at once",
        "shared x, y
         thread p; s = 0; repeat k in 0..40 { load r, [x]; s = s + r }; load t, [y]; end
         thread q; store [x], 1; store [y], 1; store [x], 0; end
         exists p.s == 7 && p.t == 1",
    ),
    (
        "more threads may read before a write than choose together",
        "shared x, z[6]
         thread p[i in 0..6]; load r, [x]; store [z + i], 1 + r; end
         thread q; store [x], 1; end
         exists [z] == 1 && [z + 1] == 2 && [z + 2] == 1 && [z + 3] == 2 && [z + 4] == 1 && [z + 5] == 1",
    ),
    (
        "waiting in a loop that only reads changes nothing",
        "shared x, y
         thread p; w: load a, [x]; load b, [y]; if a == b goto w; store [x], 5; end
         thread q; store [y], 1; load c, [x]; store [y], 0; end
         exists q.c == 5 && p.b == 1",
    ),
    (
        "a thread may be seen between its exchange and its arrival",
        "shared x
         thread p; xchg r, [x], 1; if r != 0 goto E; L: load s, [x]; E: t = 0; end
         thread q; load r, [x]; M: load s, [x]; end
         forbid q@M && q.r == 1 && !p@L",
    ),
    (
        "an arrival does not hide what came before it",
        "shared x
         thread p; load r, [x]; if r != 0 goto E; L: r = 1; M: r = 2; E: t = 0; end
         thread q; store [x], 1; N: store [x], 0; end
         forbid p@M && p.r == 1 && q@N",
    ),
];

#[test]
fn lessons_stay_learned() {
    for (lesson, source) in LESSONS {
        let program = overtake::front::tso::read(source, &[], &Limits::default()).expect(lesson).program;
        for (model, buffer) in [(Model::Sc, None), (Model::Tso, None), (Model::Tso, Some(2))] {
            compare(&program, model, buffer).unwrap_or_else(|e| panic!("{lesson}: {e}"));
        }
    }
}

/// It may be entered in the middle, and it ends where a constant comes again.
#[test]
fn a_row_of_comparisons_leads_where_each_of_them_would() {
    for seen in [11, 12, 20] {
        let source = format!(
            "shared x
             thread p
                 r = any(0..=3)
                 choose start, mid
             start: if r == 0 goto hit; if r == 1 goto hit
             mid: if r == 2 goto hit; if r == 4 goto hit; if r == 5 goto hit; if r == 6 goto hit; if r == 7 goto hit
                 if r == 8 goto hit; if r == 9 goto hit; if r == 0 goto twice
                 store [x], r + 10
                 goto leave
             twice: store [x], 20
                 goto leave
             hit: store [x], r + 30
             leave: nop
             end
             exists [x] == {seen}"
        );
        let program = overtake::front::tso::read(&source, &[], &Limits::default()).expect("readable").program;
        for model in [Model::Sc, Model::Tso] {
            compare(&program, model, None).unwrap_or_else(|e| panic!("{seen}: {e}"));
        }
    }
}

/// Two stores of the same value wait at once, which takes a cycle of the first thread in unchanged memory.
#[test]
fn a_thread_may_come_back_with_more_in_its_buffer() {
    let source = "shared x, y
                  thread p
                  L:  store [x], 1
                      load  r, [y]
                      if r == 0 goto L
                  end
                  thread q; xchg z, [y], 1; xchg a, [x], 2; xchg c, [x], 3; load d, [x]; end
                  forbid q.c == 1 && q.d == 1";
    let program = overtake::front::tso::read(source, &[], &Limits::default()).expect("readable").program;
    for reductions in reductions() {
        let options = Options { model: Model::Tso, reductions, workers: 1, ..searching() };
        let answer = ask(&program, &options);
        assert!(matches!(answer, Answer::Fails(_)), "{reductions:?}: {answer:?}");
    }
}

/// The loop of the first thread fills its buffer as often as it likes before `y` is 1, and at most once after
/// that.
#[test]
fn a_store_that_a_loop_repeats_can_be_flushed_many_times() {
    let source = |last: &str| {
        format!(
            "shared x, y
             thread p
             L:  store [x], 1
                 load  r, [y]
                 if r == 0 goto L
             end
             thread q
                 xchg s, [y], 1
                 repeat k in 0..5 {{ load a, [x]; assume a == 1; xchg b, [x], 0 }}
                 load a, [x]
             end
             exists q.a == {last}"
        )
    };
    let answer = |last: &str, repeats: bool| {
        let program =
            overtake::front::tso::read(&source(last), &[], &Limits::default()).expect("readable").program;
        let reductions = Reductions { repeats, ..Reductions::ALL };
        let options = Options { model: Model::Tso, reductions, workers: 1, ..searching() };
        ask_within(4 * FEW, &program, &options)
    };
    assert!(matches!(answer("1", true), Answer::Fails(_)));
    assert!(matches!(answer("1", false), Answer::Fails(_)));
    assert!(matches!(answer("2", true), Answer::Holds(_)));
    assert!(matches!(answer("2", false), Answer::Unknown(Limit::States(_))));
}

/// A fence and a load leave the same location, and only the fence is possible while the other holds memory.
/// The native language would write a choice between the two.
#[test]
fn what_is_held_up_is_not_asleep() {
    let memory = r#"(name: "x", init: [0]), (name: "z", init: [0])"#;
    let p = r#"(name: "p", registers: ["r"], locations: [(), (), ()], initial: 0, end: 2, edges: [
        (from: 0, to: 1, instr: Store(addr: Const(1), value: Const(0)), line: 1, text: ""),
        (from: 1, to: 2, instr: Fence, line: 2, text: ""),
        (from: 1, to: 0, instr: Load(dst: 0, addr: Const(1)), line: 3, text: "")])"#;
    let q = r#"(name: "q", registers: ["r"], locations: [(), (), (), (), (), ()], initial: 0, end: 5, edges: [
        (from: 0, to: 1, instr: Load(dst: 0, addr: Const(0)), line: 4, text: ""),
        (from: 1, to: 2, instr: Lock, line: 5, text: ""),
        (from: 2, to: 3, instr: Store(addr: Const(1), value: Const(1)), line: 6, text: ""),
        (from: 3, to: 4, instr: Any(dst: 0, lo: 0, hi: 0), line: 7, text: ""),
        (from: 4, to: 5, instr: Unlock, line: 8, text: "")])"#;
    let seen = "Binary(Eq, Atom(Reg(0, 0)), Const(1))";
    let property =
        format!("(kind: Exists, pred: Binary(And, {seen}, Binary(Eq, Atom(Mem(1)), Const(0))), line: 9)");
    let source = format!("(memory: [{memory}], threads: [{p}, {q}], properties: [{property}])");
    let program = overtake::front::ron::read(&source, &Limits::default()).expect("readable").program;
    compare(&program, Model::Sc, None).expect("all ways agree");
}

#[test]
fn litmus_tests_agree() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/litmus");
    let files = folder.read_dir().expect("litmus tests are bundled").map(|f| f.expect("readable").path());
    for file in files.filter(|f| f.extension().is_some_and(|e| e == "tso")) {
        let source = std::fs::read_to_string(&file).expect("readable");
        let program = overtake::front::tso::read(&source, &[], &Limits::default())
            .expect("bundled programs are readable")
            .program;
        for (model, buffer) in [(Model::Sc, None), (Model::Tso, None), (Model::Tso, Some(1))] {
            compare(&program, model, buffer).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        }
    }
}

proptest! {
    #![proptest_config(cases(220))]

    #[test]
    fn sc_answers_agree(program in program(SMALL)) {
        compare(&program.0, Model::Sc, None)?;
    }

    #[test]
    fn what_a_run_shows_is_found_under_sc(program in pointed_program(SMALL, Model::Sc)) {
        find(&program.0, Model::Sc)?;
    }

    #[test]
    fn answers_agree_where_threads_end_inside_blocks(program in program(Shape { unfinished: true, ..STRAIGHT })) {
        compare(&program.0, Model::Sc, None)?;
        compare(&program.0, Model::Tso, None)?;
    }

    #[test]
    fn sc_answers_agree_on_programs_that_read(program in program(READING)) {
        compare(&program.0, Model::Sc, None)?;
    }

    #[test]
    fn what_becomes_of_what_is_read_is_found(
        short in overseen_program(READING),
        straight in overseen_program(Shape { loops: false, lines: (2, 6), ..READING }),
    ) {
        find(&short.0, Model::Sc)?;
        find(&straight.0, Model::Sc)?;
    }

    #[test]
    fn what_a_run_of_a_dense_program_shows_is_found(
        sc in pointed_program(DENSE, Model::Sc),
        tso in pointed_program(DENSE, Model::Tso),
    ) {
        find(&sc.0, Model::Sc)?;
        find(&tso.0, Model::Tso)?;
    }

    #[test]
    fn what_a_run_shows_is_found_under_tso(program in pointed_program(STRAIGHT, Model::Tso)) {
        find(&program.0, Model::Tso)?;
    }

    #[test]
    fn tso_answers_agree_with_bounded_buffers(program in program(SMALL), bound in 1usize..4) {
        compare(&program.0, Model::Tso, Some(bound))?;
    }

    #[test]
    fn tso_answers_agree_on_programs_without_loops(program in program(STRAIGHT)) {
        compare(&program.0, Model::Tso, None)?;
    }

    #[test]
    fn tso_answers_agree_where_loads_and_stores_wait(
        any in program(Shape { blocks: false, ..STRAIGHT }),
        dense in program(Shape { blocks: false, ..DENSE }),
        reading in program(Shape { loops: false, ..READING }),
    ) {
        compare(&any.0, Model::Tso, None)?;
        compare(&dense.0, Model::Tso, None)?;
        compare(&reading.0, Model::Tso, None)?;
    }

    #[test]
    fn what_a_run_shows_is_found_where_loads_and_stores_wait(
        any in pointed_program(Shape { blocks: false, lines: (3, 6), ..STRAIGHT }, Model::Tso),
        dense in pointed_program(Shape { blocks: false, lines: (3, 6), ..DENSE }, Model::Tso),
        reading in pointed_program(Shape { loops: false, lines: (3, 6), ..READING }, Model::Tso),
        overseen in overseen_program(Shape { loops: false, lines: (2, 6), ..READING }),
    ) {
        find(&any.0, Model::Tso)?;
        find(&dense.0, Model::Tso)?;
        find(&reading.0, Model::Tso)?;
        find(&overseen.0, Model::Tso)?;
    }
}

proptest! {
    #![proptest_config(cases(35))]

    #[test]
    fn what_loops_put_into_buffers_is_found(
        any in program(Shape { blocks: false, ..SMALL }),
        dense in program(Shape { blocks: false, loops: true, ..DENSE }),
        reading in program(Shape { blocks: false, ..READING }),
        template in template_program(2, true),
    ) {
        find_with_short_buffers(&any.0)?;
        find_with_short_buffers(&dense.0)?;
        find_with_short_buffers(&reading.0)?;
        find_with_short_buffers(&template.0)?;
    }

    #[test]
    fn what_a_run_shows_is_found_in_spite_of_loops(
        any in pointed_program(Shape { blocks: false, ..SMALL }, Model::Tso),
        dense in pointed_program(Shape { blocks: false, loops: true, ..DENSE }, Model::Tso),
        reading in pointed_program(Shape { blocks: false, ..READING }, Model::Tso),
    ) {
        find_within(FEW, &any.0, Model::Tso)?;
        find_within(FEW, &dense.0, Model::Tso)?;
        find_within(FEW, &reading.0, Model::Tso)?;
    }
}

proptest! {
    #![proptest_config(cases(80))]

    #[test]
    fn sc_answers_agree_on_wild_programs(program in program(WILD)) {
        compare(&program.0, Model::Sc, None)?;
    }

    #[test]
    fn tso_answers_agree_on_wild_programs(program in program(WILD), bound in 1usize..3) {
        compare(&program.0, Model::Tso, Some(bound))?;
    }

    #[test]
    fn sc_answers_agree_on_crowds(program in program(CROWD)) {
        compare(&program.0, Model::Sc, None)?;
    }

    #[test]
    fn tso_answers_agree_on_crowds(program in program(CROWD), bound in 1usize..3) {
        compare(&program.0, Model::Tso, Some(bound))?;
    }

    #[test]
    fn sc_answers_agree_on_more_threads_than_can_sleep(program in program(HORDE)) {
        compare(&program.0, Model::Sc, None)?;
    }

    #[test]
    fn sc_answers_agree_on_large_memories(program in program(APART)) {
        compare(&program.0, Model::Sc, None)?;
    }

    #[test]
    fn what_a_run_of_a_special_program_shows_is_found(
        wild in pointed_program(WILD, Model::Sc),
        crowd in pointed_program(CROWD, Model::Sc),
        horde in pointed_program(HORDE, Model::Sc),
        apart in pointed_program(APART, Model::Sc),
        buffered in pointed_program(Shape { loops: false, ..CROWD }, Model::Tso),
    ) {
        find(&wild.0, Model::Sc)?;
        find(&crowd.0, Model::Sc)?;
        find(&horde.0, Model::Sc)?;
        find(&apart.0, Model::Sc)?;
        find(&buffered.0, Model::Tso)?;
    }
}

proptest! {
    #![proptest_config(cases(160))]

    #[test]
    fn sc_answers_agree_on_templates(program in template_program(4, true)) {
        compare(&program.0, Model::Sc, None)?;
    }

    #[test]
    fn tso_answers_agree_on_templates(program in template_program(3, true), bound in 1usize..3) {
        compare(&program.0, Model::Tso, Some(bound))?;
    }

    #[test]
    fn tso_answers_agree_on_templates_without_loops(program in template_program(3, false)) {
        compare(&program.0, Model::Tso, None)?;
    }
}

/// Threads of one text that begin in different places may change them, but not what is known of each from its
/// beginning.
#[test]
fn who_writes_alone_does_not_change_places() {
    let thread = |name: &str, own: &str, other: &str| {
        format!(
            "thread {name}
             choose far, near
             far: store [y], 1; store [{own}], 1; store [{other}], 1; fence; load r, [{other}]; load u, [z]
             assert !(r == 0 && u == 1)
             goto leave
             near: load u, [y]; store [{own}], 0; load r, [y]; store [z], r + 1
             leave: nop
             end\n"
        )
    };
    let source = format!("shared y, z, b, c\n{}{}", thread("p", "b", "c"), thread("q", "c", "b"));
    let program =
        overtake::front::tso::read(&source, &[], &Limits::default()).expect("it is readable").program;
    for begins in [[0, 1], [1, 0]] {
        let mut parts = program.to_parts();
        for (thread, begin) in parts.threads.iter_mut().zip(begins) {
            let mut ways = thread.edges.iter().filter(|e| e.from == thread.initial).map(|e| e.to);
            thread.initial = ways.nth(begin).expect("there are two ways");
        }
        let program = Program::new(parts).expect("threads may begin anywhere");
        compare(&program, Model::Tso, None).unwrap_or_else(|e| panic!("{begins:?}: {e}"));
    }
}

proptest! {
    #![proptest_config(cases(35))]

    #[test]
    fn answers_agree_where_sizes_are_mixed(program in program(MIXED)) {
        compare(&program.0, Model::Sc, None)?;
        compare(&program.0, Model::Tso, None)?;
    }

    #[test]
    fn what_a_run_of_mixed_sizes_shows_is_found(
        sc in pointed_program(MIXED, Model::Sc),
        tso in pointed_program(Shape { loops: false, ..MIXED }, Model::Tso),
        dense in pointed_program(Shape { mixed: true, ..DENSE }, Model::Tso),
    ) {
        find(&sc.0, Model::Sc)?;
        find(&tso.0, Model::Tso)?;
        find(&dense.0, Model::Tso)?;
    }
}

//! Do several processes that share their searches say what one says? Random and bundled programs, every question,
//! two to four processes, and searches that are shared from the first states on. Searches that visit everything
//! also have the same number of states. What the processes send goes through memory here (`common/together`);
//! `tests/cluster.rs` has the network.
//!
//! `OVERTAKE_PROGRAMS=1000 cargo test --release --test together` tries more programs than the default.

mod common;

use common::finals::everything;
use common::together::together;
use common::{SMALL, Shape, Shown, cases, overseen_program, pointed_program, program, template_program};
use overtake::cli::expectations::{self, LIST};
use overtake::engine::{self, Choice, EXPLICIT, LAZY, Options};
use overtake::front::tso;
use overtake::model::Program;
use overtake::query::repair::{Aim, Cheapest};
use overtake::query::{Answer, Goal, Limits, Model, Verdict};
use overtake::reach::{Order, Peers};
use overtake::repair::{Allowed, Wanted, repair};
use proptest::prelude::*;
use std::path::Path;

/// States of one search.
const MOST: u64 = 20_000;

const LOOPS: Shape = Shape { threads: (2, 3), loops: true, ..SMALL };

fn limits() -> Limits {
    Limits { states: Some(MOST), ..Limits::default() }
}

/// What there is to compare of an answer: its verdict, and how many states it rests on where that is not up to
/// luck.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Essence {
    verdict: Verdict,
    states: Option<u64>,
}

fn check(program: &Program, options: &Options) -> Essence {
    let outcome = engine::check(program, &Goal::of(program), options, &limits()).expect("no internal error");
    let exhausted = matches!(options.engine, Choice::Only(engine) if engine.name == EXPLICIT.name)
        && matches!(outcome.answer, Answer::Holds(_));
    Essence { verdict: outcome.answer.verdict(), states: exhausted.then_some(outcome.stats.states) }
}

/// All of several processes say what one says, unless that one came to its limit.
fn agree<T: PartialEq + std::fmt::Debug + Send>(
    (count, alone): (usize, u64),
    is_unknown: impl Fn(&T) -> bool,
    ask: impl Fn(Option<Peers>) -> T + Sync,
) -> Result<(), TestCaseError> {
    let one = ask(None);
    let several = together(count, alone, |peers| ask(Some(peers)));
    for (process, told) in several.iter().enumerate() {
        prop_assert_eq!(told, &several[0], "process {} of {} and process 0 differ", process, count);
    }
    if !is_unknown(&one) {
        prop_assert_eq!(&several[0], &one, "{} processes, {} states alone", count, alone);
    }
    Ok(())
}

fn agree_on_check(
    program: &Program,
    crew: (usize, u64),
    how: impl Fn(Options) -> Options + Sync,
) -> Result<(), TestCaseError> {
    agree(
        crew,
        |essence: &Essence| essence.verdict == Verdict::Unknown,
        |peers| check(program, &how(Options { peers, ..Options::with_workers(1) })),
    )
}

/// How many processes, and how many states they look at alone.
fn crew() -> impl Strategy<Value = (usize, u64)> {
    (2usize..5, prop_oneof![Just(0u64), 1u64..20])
}

fn order() -> impl Strategy<Value = Order> {
    prop_oneof![Just(Order::BreadthFirst), Just(Order::DepthFirst)]
}

proptest! {
    #![proptest_config(cases(40))]

    #[test]
    fn all_states_are_visited_under_sc(
        Shown(program) in overseen_program(LOOPS), crew in crew(), order in order(),
    ) {
        let engine = Choice::Only(&EXPLICIT);
        agree_on_check(&program, crew, |options| Options { model: Model::Sc, engine, order, ..options })?;
    }

    #[test]
    fn all_states_are_visited_under_tso(
        Shown(program) in pointed_program(SMALL, Model::Tso), crew in crew(), order in order(),
    ) {
        let engine = Choice::Only(&EXPLICIT);
        agree_on_check(&program, crew, |options| Options { engine, order, ..options })?;
    }

    #[test]
    fn loops_and_bounded_buffers_are_no_exception(Shown(program) in program(LOOPS), crew in crew()) {
        let explicit = engine::ExplicitOptions { buffer: Some(1) };
        let engine = Choice::Only(&EXPLICIT);
        agree_on_check(&program, crew, |options| Options { engine, explicit, ..options })?;
    }

    #[test]
    fn delays_are_found_together(Shown(program) in pointed_program(SMALL, Model::Tso), crew in crew()) {
        agree_on_check(&program, crew, |options| Options { engine: Choice::Only(&LAZY), ..options })?;
    }

    #[test]
    fn engines_take_turns_together(Shown(program) in template_program(3, true), crew in crew()) {
        agree_on_check(&program, crew, |options| options)?;
    }

    #[test]
    fn witnesses_are_found_together(Shown(program) in program(LOOPS), crew in crew(), all in any::<bool>()) {
        agree(crew, |told: &(Verdict, usize)| told.0 == Verdict::Unknown, |peers| {
            let options = Options { peers, ..Options::with_workers(1) };
            let ask = if all { engine::robust_all } else { engine::robust };
            let robust = ask(&program, &options, &limits()).expect("no internal error");
            let pairs = robust.all.as_ref().map_or(0, |(witnesses, _)| witnesses.len());
            let complete = robust.all.is_none_or(|(_, limit)| limit.is_none());
            (if complete { robust.answer.verdict() } else { Verdict::Unknown }, pairs)
        })?;
    }

    #[test]
    fn races_are_found_together(Shown(program) in program(LOOPS), crew in crew()) {
        agree(crew, |told| *told == Verdict::Unknown, |peers| {
            let options = Options { peers, ..Options::with_workers(1) };
            engine::triangular(&program, &options, &limits()).expect("no internal error").answer.verdict()
        })?;
    }

    #[test]
    fn final_states_are_gathered_together(
        Shown(program) in program(Shape { threads: (2, 3), ..SMALL }), crew in crew(), some in 0usize..9,
    ) {
        let mut observed = everything(&program);
        observed.truncate(some);
        agree(crew, |told: &Option<_>| told.is_none(), |peers| {
            let options = Options { peers, ..Options::with_workers(1) };
            // Buffers grow with the states where loops fill them, and each state is as long as its buffers.
            let few = Limits { states: Some(MOST / 10), ..limits() };
            let outcomes = engine::outcomes(&program, &observed, &options, &few);
            outcomes.states.ok().map(|states| (states, outcomes.frozen, outcomes.goes_wrong))
        })?;
    }

    #[test]
    fn repairs_are_found_together(Shown(program) in program(SMALL), crew in crew(), robust in any::<bool>()) {
        let aim = if robust { Aim::Robustness } else { Aim::Property };
        agree(crew, |told: &Option<_>| told.is_none(), |peers| {
            let options = Options { peers, ..Options::with_workers(1) };
            let wanted = Wanted { aim, list: 1 };
            let found = repair(&program, &wanted, &Allowed { fence: Some(1), ..Allowed::default() }, &options, &limits());
            match found.expect("no internal error").answer {
                Answer::Holds(enough) => Some(Ok((enough.cost, enough.cheapest == Cheapest::Proved))),
                Answer::Fails(_) => Some(Err(())),
                Answer::Unknown(_) => None,
            }
        })?;
    }
}

/// Every bundled program with the parameters of its rows, under both models.
#[test]
fn bundled_programs_have_the_same_answers() {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs");
    let mut tried = 0;
    for folder in programs.read_dir().expect("programs are bundled") {
        let folder = folder.expect("it can be listed").path();
        let Ok(list) = std::fs::read_to_string(folder.join(LIST)) else { continue };
        for row in expectations::list(&list).expect("the list can be read") {
            let define: Vec<(String, i64)> = row.define.clone().into_iter().collect();
            let text = std::fs::read_to_string(folder.join(&row.file)).expect("the file is there");
            let Ok(input) = tso::read(&text, &define, &Limits::default()) else { continue };
            for model in [Model::Sc, Model::Tso] {
                let same = agree_on_check(&input.program, (2 + tried % 3, 100), |options| {
                    let engine = if model == Model::Sc { Choice::Only(&EXPLICIT) } else { Choice::Auto };
                    Options { model, engine, ..options }
                });
                same.unwrap_or_else(|wrong| panic!("{}/{} {model:?}: {wrong}", folder.display(), row.file));
                tried += 1;
            }
        }
    }
    assert!(tried > 200, "{tried} questions were asked");
}

//! Does every property get the verdict that it has alone? Random programs with several properties, asserts on
//! lines of their own and errors of threads, against all states of the plain machines.
//!
//! `OVERTAKE_PROGRAMS=20000 cargo test --release --test properties` tries more programs than the default.

mod common;

use common::{SMALL, Shape, Shown, cases, program_with};
use overtake::engine::{self, Options};
use overtake::front::tso as native;
use overtake::model::Program;
use overtake::query::{Answer, Asked, Goal, Limit, Limits, Model, Trap, Verdict, question};
use overtake::semantics::{State, Step, sc, tso};
use proptest::prelude::*;
use std::collections::{HashSet, VecDeque};

/// States of the plain search that are worth a program.
const MOST: usize = 20_000;

/// All that some run is against; a thread that goes wrong stands still, and the others go on. `None` if there
/// are too many states.
fn violated(program: &Program, model: Model) -> Option<HashSet<Asked>> {
    let start = State::initial(program);
    let mut seen = HashSet::from([start.clone()]);
    let mut todo = VecDeque::from([start]);
    let mut found = HashSet::new();
    while let Some(state) = todo.pop_front() {
        for clause in Goal::of(program).clauses {
            let asked = Asked::Property(clause.property);
            let alone = Goal { clauses: vec![clause], ignores_errors: true };
            found.extend(state.against(program, &alone).map(|_| asked));
        }
        let steps = match model {
            Model::Sc => sc::steps(program, &state),
            Model::Tso => tso::steps(program, &state, tso::Bound::Unbounded).0,
        };
        for Step { event, state } in steps {
            found.extend(event.trap.map(|trap| match trap {
                Trap::Assertion => Asked::Asserts(program.thread(event.thread()).edge(event.edge).line),
                _ => Asked::Errors,
            }));
            if seen.insert(state.clone()) {
                todo.push_back(state);
            }
        }
        if seen.len() > MOST {
            return None;
        }
    }
    Some(found)
}

/// The program with a line for each instruction, so that asserts are properties of their own.
fn with_lines(program: &Program) -> Program {
    let mut parts = program.to_parts();
    let edges = parts.threads.iter_mut().flat_map(|t| &mut t.edges);
    edges.zip(1..).for_each(|(edge, line)| edge.line = line);
    Program::new(parts).expect("lines change nothing")
}

fn agrees(program: &Program) -> Result<(), TestCaseError> {
    let (Some(sc), Some(tso)) = (violated(program, Model::Sc), violated(program, Model::Tso)) else {
        return Ok(());
    };
    let options = Options::with_workers(1);
    let asked = Asked::of(program);
    let found = engine::check_each(program, &asked, true, &options, &Limits::default());
    let found = found.expect("no internal error");
    for (asked, outcome) in &found.each {
        match &outcome.answer {
            Answer::Fails(trace) => {
                prop_assert!(tso.contains(asked), "{asked:?} holds");
                prop_assert_eq!(Asked::against_by(program, trace), *asked);
                prop_assert_eq!(trace.model == Model::Sc, sc.contains(asked), "{:?}", asked);
            }
            Answer::Holds(_) => prop_assert!(!tso.contains(asked), "{asked:?} fails"),
            Answer::Unknown(Limit::Overshadowed) => prop_assert!(tso.contains(&Asked::Errors)),
            Answer::Unknown(limit) => prop_assert!(false, "{asked:?}: {limit:?}"),
        }
    }
    let told = |asked: &Asked| found.each.iter().any(|(of, _)| of == asked);
    prop_assert!(asked.iter().all(told), "every property is told");
    prop_assert_eq!(told(&Asked::Errors), tso.contains(&Asked::Errors));
    let worst = found.each.iter().map(|(_, o)| o.answer.verdict()).max().unwrap_or(Verdict::Holds);
    prop_assert_eq!(found.worst.answer.verdict(), worst);
    for one in &asked {
        let alone = engine::check_each(program, &[*one], false, &options, &Limits::default());
        let alone = alone.expect("no internal error").worst.answer.verdict();
        let expected = if tso.contains(one) { Verdict::Fails } else { Verdict::Holds };
        prop_assert!(alone == expected || alone == Verdict::Unknown, "{one:?} alone: {alone:?}");
        prop_assert!(alone != Verdict::Unknown || tso.contains(&Asked::Errors), "{one:?} alone");
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn every_property_gets_its_own_verdict(
        Shown(program) in program_with(Shape { loops: false, faults: 4, ..SMALL }, 2..5)
    ) {
        agrees(&with_lines(&program))?;
    }
}

#[test]
fn asserts_that_are_not_asked_about_stop_their_thread_and_no_more() {
    let source = "shared x\nthread p\nassert x\nload r, [x]\nassert r\nstore [x], 1\nend\nforbid [x] == 1";
    let program = native::read(source, &[], &Limits::default()).expect("a program").program;
    let all = Asked::of(&program);
    assert_eq!(all, [Asked::Asserts(3), Asked::Asserts(5), Asked::Property(0)]);
    let (aside, goal) = question(&program, &all);
    assert!(aside.is_none() && goal.clauses.len() == 1 && !goal.ignores_errors);
    let (aside, goal) = question(&program, &all[2..]);
    assert!(aside.is_none() && goal.clauses.len() == 1 && goal.ignores_errors);
    let (aside, goal) = question(&program, &all[1..2]);
    assert!(goal.clauses.is_empty() && aside.is_some_and(|p| p.has_asserts()));
}

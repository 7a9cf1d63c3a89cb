//! Does the lazy engine say what the plain TSO machine says? Random programs with computed addresses, locked
//! instructions, blocks, fences and errors; without loops the lazy engine must always end, with loops it must
//! not contradict bounded buffers. Every trace is replayed on the way (`engine::check` fails otherwise).
//!
//! `OVERTAKE_PROGRAMS=20000 cargo test --release --test lazy` tries more programs than the default.

mod common;

use common::{Naive, SMALL, Shape, Taste, cases, naive, pointed_program, program};
use overtake::engine::{self, Engine, Options};
use overtake::model::Program;
use overtake::verdict::{Answer, Goal, Limit, Limits, Model};
use proptest::prelude::*;

const MOST: usize = 20_000;

fn lazy(program: &Program, iterations: Option<u64>) -> Answer {
    let options = Options { engine: Engine::Lazy, iterations, workers: 1, ..Options::default() };
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
    let answer = lazy(program, None);
    let agree = matches!(
        (plain, &answer),
        (Naive::Violated, Answer::Violated(_))
            | (Naive::Safe, Answer::Safe(_))
            | (_, Answer::Unknown(Limit::FrozenBuffers))
    );
    prop_assert!(agree, "the plain machine says {plain:?}, the lazy engine {answer:?}");
    Ok(())
}

/// With loops neither may refute the other.
fn compatible(program: &Program) -> Result<(), TestCaseError> {
    let plain = naive(program, &Goal::of(program), Model::Tso, Some(3), MOST);
    let answer = lazy(program, Some(8));
    let contradict = matches!(
        (plain, &answer),
        (Naive::Violated, Answer::Safe(_)) | (Naive::Safe, Answer::Violated(_))
    );
    prop_assert!(!contradict, "the plain machine says {plain:?}, the lazy engine {answer:?}");
    Ok(())
}

const STRAIGHT: Shape = Shape { loops: false, lines: (2, 6), ..SMALL };
const WILD: Shape = Shape { taste: Taste::Wild, lines: (1, 5), ..STRAIGHT };
/// Little variety, many meetings.
const DENSE: Shape = Shape { taste: Taste::Dense, lines: (2, 5), ..STRAIGHT };

proptest! {
    #![proptest_config(cases(500))]

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
    fn it_finds_what_a_run_has_shown(shown in pointed_program(DENSE, Model::Tso)) {
        same(&shown.0)?;
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

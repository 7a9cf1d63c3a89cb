//! Is the run that is shown the simplest one, and the same every time? On random programs without loops, the
//! plain machines are searched for the fewest delays, then the fewest switches, then the fewest events.
//!
//! `OVERTAKE_PROGRAMS=20000 cargo test --release --test shortest` tries more programs than the default.

mod common;

use common::{SMALL, Shape, Shown, Taste, cases, pointed_program, program};
use overtake::certify::Outcome;
use overtake::engine::{self, Choice, EXPLICIT, LAZY, Options};
use overtake::front::tso as native;
use overtake::model::{Program, ThreadId};
use overtake::query::{Answer, EventKind, Goal, Limits, Model, Provenance, Source, Trace};
use overtake::semantics::{State, Step, sc, tso};
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::path::Path;

/// States of the plain search that are worth a program.
const MOST: usize = 30_000;

/// Delays, switches, events.
type Cost = (usize, usize, usize);

/// A state, which of the stores in the buffers have been overtaken, and who acted last.
type Point = (State, Vec<Vec<bool>>, Option<ThreadId>);

/// The cheapest run to a goal; `None` if there is none, or it takes too many states to know.
fn cheapest(program: &Program, goal: &Goal, model: Model) -> Option<Cost> {
    let overtaken = vec![vec![]; program.threads().len()];
    let start: Point = (State::initial(program), overtaken, None);
    let mut best: HashMap<Point, Cost> = HashMap::from([(start.clone(), (0, 0, 0))]);
    let mut points = vec![start];
    let mut waiting = BinaryHeap::from([Reverse(((0, 0, 0), 0))]);
    while let Some(Reverse((cost, number))) = waiting.pop() {
        let point = points[number].clone();
        if best[&point] < cost {
            continue;
        }
        // A point with a trapped thread ends the run.
        let wrong = |t: ThreadId| point.0.at[t.index()] == overtake::model::Loc::TRAP;
        if program.thread_ids().any(wrong) || point.0.against(program, goal).is_some() {
            return Some(cost);
        }
        if points.len() > MOST {
            return None;
        }
        let steps = match model {
            Model::Sc => sc::steps(program, &point.0),
            Model::Tso => tso::steps(program, &point.0, tso::Bound::Unbounded).0,
        };
        for step in steps {
            let (next, more) = follow(&point, step);
            let cost = (cost.0 + more.0, cost.1 + more.1, cost.2 + more.2);
            if best.get(&next).is_none_or(|known| cost < *known) {
                best.insert(next.clone(), cost);
                waiting.push(Reverse((cost, points.len())));
                points.push(next);
            }
        }
    }
    None
}

fn follow((_, overtaken, last): &Point, Step { event, state }: Step) -> (Point, Cost) {
    let t = event.thread();
    let mut overtaken = overtaken.clone();
    let own = &mut overtaken[t.index()];
    match (event.kind, event.source) {
        (EventKind::Flush, _) => drop(own.remove(0)),
        // Under SC buffers stay empty.
        (EventKind::Store, _) => own.resize(state.buffers[t.index()].len(), false),
        _ => {}
    }
    let passed = match (event.kind, event.source) {
        (EventKind::Load, Some(Source::Memory)) => 0,
        (EventKind::Load, Some(Source::Buffer(older))) => older + 1,
        _ => own.len(),
    };
    let delays = own[passed..].iter().filter(|known| !**known).count();
    own[passed..].fill(true);
    let switches = usize::from(last.is_some_and(|last| last != t));
    ((state, overtaken, Some(t)), (delays, switches, 1))
}

fn cost(trace: &Trace) -> Cost {
    let switches = trace.events.windows(2).filter(|pair| pair[0].thread() != pair[1].thread()).count();
    (trace.delays().len(), switches, trace.events.len())
}

fn check(program: &Program, engine: Choice, workers: usize) -> Outcome {
    let options = Options { engine, ..Options::with_workers(workers) };
    engine::check(program, &Goal::of(program), &options, &Limits::default()).expect("no internal error")
}

/// The run that is shown has as few delays, switches and events as any: these programs are small enough to be
/// searched step by step.
fn simplest(program: &Program) -> Result<(), TestCaseError> {
    let outcome = check(program, Choice::Auto, 1);
    let Answer::Fails(trace) = &outcome.answer else { return Ok(()) };
    prop_assert_eq!(outcome.provenance, Some(Provenance::Searched { fewest_delays: true }));
    let goal = Goal::of(program);
    if let Some(least) = cheapest(program, &goal, trace.model) {
        let shown = cost(trace);
        prop_assert_eq!(shown, least);
    }
    if trace.model == Model::Tso
        && let Some(least) = cheapest(program, &goal, Model::Tso)
    {
        prop_assert!(least.0 > 0, "a run without delays is one under SC");
    }
    Ok(())
}

/// Whoever finds a run, and with how many workers, the same one is shown.
fn same(program: &Program) -> Result<(), TestCaseError> {
    let shown = |engine, workers| match check(program, engine, workers).answer {
        Answer::Fails(trace) => Some((trace.model, trace.events.clone())),
        _ => None,
    };
    let first = shown(Choice::Auto, 1);
    for workers in [2, 4] {
        prop_assert_eq!(&shown(Choice::Auto, workers), &first);
    }
    for engine in [&LAZY, &EXPLICIT] {
        let alone = shown(Choice::Only(engine), 1);
        prop_assert!(alone.is_none() || alone == first, "{} shows another run", engine.name);
    }
    Ok(())
}

const STRAIGHT: Shape = Shape { loops: false, blocks: false, ..SMALL };

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn runs_have_the_fewest_delays_and_switches(Shown(program) in program(STRAIGHT)) {
        simplest(&program)?;
    }

    #[test]
    fn runs_to_states_that_are_there_do_too(
        Shown(program) in pointed_program(Shape { taste: Taste::Dense, ..STRAIGHT }, Model::Tso)
    ) {
        simplest(&program)?;
    }

    #[test]
    fn runs_are_the_same_every_time(
        Shown(program) in pointed_program(Shape { loops: false, ..SMALL }, Model::Tso)
    ) {
        same(&program)?;
    }
}

/// Bundled programs, small enough for every number of workers.
#[test]
fn bundled_programs_show_the_same_run_with_any_number_of_workers() {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs");
    for file in ["peterson/filter.tso", "dijkstra/dijkstra.tso", "lamport/lamport2.tso", "delays/nested.tso"]
    {
        let source = std::fs::read_to_string(programs.join(file)).expect("the program is bundled");
        let program = native::read(&source, &[], &Limits::default()).expect("a program").program;
        let shown = |workers| match check(&program, Choice::Auto, workers) {
            Outcome { answer: Answer::Fails(trace), provenance, .. } => (trace.events.clone(), provenance),
            outcome => panic!("{file}: {outcome:?}"),
        };
        let first = shown(1);
        assert_eq!(first.1, Some(Provenance::Searched { fewest_delays: true }), "{file}");
        assert!([2, 4].into_iter().all(|workers| shown(workers) == first), "{file}");
    }
}

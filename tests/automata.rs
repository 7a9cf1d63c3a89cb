//! Does the engine of buffer automata say what the plain TSO machine says? Random programs with loops, blocks,
//! computed addresses, locked instructions and errors, with sleep sets, acceleration and liveness on and off.
//! Whatever a plain search reaches, a search that has come to its end must stand for. Every run is replayed
//! on the way (`engine::check` fails otherwise), which holds acceleration to be exact.
//!
//! `OVERTAKE_PROGRAMS=20000 cargo test --release --test automata` tries more programs than the default.

mod common;

use common::{Naive, SMALL, Shape, Taste, cases, naive, pointed_program, program, template_program};
use overtake::automata::{AutomataSearch, Cost, Errors, Progress};
use overtake::certify::Checked;
use overtake::engine::{self, AUTOMATA, Choice, Options, Pruning};
use overtake::front::tso;
use overtake::model::Program;
use overtake::query::{Answer, Goal, Limit, Limits, Model, Reductions};
use overtake::reach::Budget;
use overtake::semantics::{State, tso as plain};
use proptest::prelude::*;
use std::collections::{HashSet, VecDeque};

/// States of the plain machine.
const MOST: usize = 3_000;
/// Nodes of the engine.
const MOST_NODES: u64 = 300;

/// All on, all off, and each of those that the engine has alone off.
fn reductions() -> Vec<Reductions> {
    let all = Reductions::ALL;
    vec![
        all,
        Reductions::NONE,
        Reductions { sleep: false, ..all },
        Reductions { repeats: false, ..all },
        Reductions { liveness: false, ..all },
        Reductions { steps: false, ..all },
    ]
}

fn ask(program: &Program, reductions: Reductions) -> Checked {
    ask_within(MOST_NODES, program, reductions)
}

fn ask_within(nodes: u64, program: &Program, reductions: Reductions) -> Checked {
    let options = Options {
        engine: Choice::Only(&AUTOMATA),
        pruning: Pruning::Off,
        reductions,
        ..Options::with_workers(1)
    };
    let limits = Limits { states: Some(nodes), ..Limits::default() };
    engine::check(program, &Goal::of(program), &options, &limits).expect("no internal error").answer
}

/// The engine does not contradict the plain machine: one with buffers without bound and, where that has no
/// end, one with short ones.
fn agree(program: &Program) -> Result<(), TestCaseError> {
    let goal = Goal::of(program);
    let unbounded = naive(program, &goal, Model::Tso, None, MOST);
    let plain = match unbounded {
        Naive::Unknown => naive(program, &goal, Model::Tso, Some(3), MOST),
        known => known,
    };
    for reductions in reductions() {
        let answer = ask(program, reductions);
        let agree = match (plain, &answer) {
            (_, Answer::Unknown(limit)) => *limit == Limit::States(MOST_NODES),
            (Naive::Violated, answer) => matches!(answer, Answer::Fails(_)),
            (Naive::Safe, answer) => matches!(answer, Answer::Holds(_)),
            (Naive::Bounded | Naive::Unknown, _) => true,
        };
        prop_assert!(agree, "{reductions:?}: the plain machine says {plain:?}, the automata {answer:?}");
    }
    Ok(())
}

/// The goal was true at the end of a run.
fn find(program: &Program) -> Result<(), TestCaseError> {
    for reductions in reductions() {
        let answer = ask(program, reductions);
        let found = matches!(answer, Answer::Fails(_) | Answer::Unknown(Limit::States(_)));
        prop_assert!(found, "{reductions:?}: the automata say {answer:?}");
    }
    Ok(())
}

/// The states that the plain machine reaches, as far as errors, so many states and buffers of a few entries
/// let it.
fn reached(program: &Program) -> HashSet<State> {
    let start = State::initial(program);
    let mut seen = HashSet::from([start.clone()]);
    let mut todo = VecDeque::from([start]);
    while let Some(state) = todo.pop_front() {
        for step in plain::steps(program, &state, plain::Bound::Entries(4)).0 {
            let new = step.event.trap.is_none() && seen.len() < MOST && seen.insert(step.state.clone());
            if new {
                todo.push_back(step.state);
            }
        }
    }
    seen
}

/// A search that has come to its end stands for everything that is reached.
fn cover(program: &Program) -> Result<(), TestCaseError> {
    let (goal, limits) = (Goal::default(), Limits::default());
    let mut reached = None;
    for (sleep, repeats) in [(true, true), (false, true), (true, false)] {
        let reductions = Reductions { sleep, repeats, ..Reductions::NONE };
        let mut search = AutomataSearch::new(program, &goal, reductions, &limits).expect("no limit");
        if search.explore(Budget::states(MOST_NODES), Errors::Count) != Ok(Progress::Exhausted) {
            continue;
        }
        for state in reached.get_or_insert_with(|| self::reached(program)).iter() {
            prop_assert!(search.stands_for(state), "sleep {sleep}, repeats {repeats}: {state:?} is missing");
        }
    }
    Ok(())
}

const STRAIGHT: Shape = Shape { loops: false, ..SMALL };
const WILD: Shape = Shape { taste: Taste::Wild, lines: (1, 5), ..SMALL };
/// Little variety, many meetings, and loops.
const DENSE: Shape = Shape { taste: Taste::Dense, lines: (2, 5), ..SMALL };
const READING: Shape = Shape { taste: Taste::Reading, ..SMALL };

fn read(source: &str) -> Program {
    tso::read(source, &[], &Limits::default()).unwrap_or_else(|e| panic!("{source}\n{e:?}")).program
}

/// Nodes that are enough for what is tested by name.
const ENOUGH: u64 = 1_000;

fn answer(source: &str, repeats: bool) -> Checked {
    ask_within(ENOUGH, &read(source), Reductions { repeats, ..Reductions::ALL })
}

/// Neither buffer has a bound; the program is not robust and safe all the same.
#[test]
fn loops_that_fill_buffers_without_end_are_proved() {
    let source = "shared x, y
        thread p; up: store [x], 1; store [x], 0; choose up, on; on: load r, [y]; done: end
        thread q; up: store [y], 1; store [y], 0; choose up, on; on: load r, [x]; done: end
        forbid p@done && q@done && [x] == 1";
    assert!(matches!(answer(source, true), Answer::Holds(_)));
    assert!(matches!(answer(source, false), Answer::Unknown(Limit::States(ENOUGH))));
}

/// What a way round the outer loop appends is no single word.
#[test]
fn loops_around_loops_are_accelerated() {
    let source = |last: &str| {
        format!(
            "shared x, y
             thread p
             outer: store [x], 1
             inner: store [x], 2
                 choose inner, out
             out: store [x], 3
                 choose outer, leave
             leave: load r, [y]
             end
             thread q; store [y], 1; fence; load a, [x]; load b, [x]; load c, [x]; load d, [x]; end
             exists p.r == 0 && q.a == 1 && q.b == 2 && q.c == 3 && q.d == {last}"
        )
    };
    assert!(matches!(answer(&source("1"), true), Answer::Fails(_)));
    assert!(!matches!(answer(&source("0"), true), Answer::Fails(_)));
}

/// Each way round loads what the last one has stored, so that going round once is no cycle; twice is.
#[test]
fn loops_that_read_what_they_stored_are_not_taken_for_shorter_ones() {
    let source = |third: i64| {
        format!(
            "shared x, y, z
             thread p; up: load r, [x]; store [x], 1 - r; choose up, on; on: load s, [y]; end
             thread q
                 store [y], 1; fence; load a, [x]; assume a == 1; store [z], 1; fence
                 load b, [x]; assume b == 0; load c, [x]
             end
             exists p.s == 0 && q.c == {third}"
        )
    };
    assert!(matches!(answer(&source(1), true), Answer::Fails(_)));
    assert!(matches!(answer(&source(2), true), Answer::Holds(_)));
    // The value is 1 at most once for each way there and back.
    let twice = "shared x, y
        thread p; up: load r, [x]; if r == 1 goto on; store [x], 1; goto up; on: load s, [y]; end
        thread q; xchg a, [y], 1; load b, [x]; xchg c, [x], 0; load d, [x]; end
        exists p.s == 0 && q.b == 1 && q.d == 1";
    assert!(matches!(answer(twice, true), Answer::Holds(_)));
}

/// The second thread goes round only while commits of the first do.
#[test]
fn a_cycle_may_need_commits_of_others() {
    let source = include_str!("../programs/cycles/consume.tso");
    let (program, goal, limits) = (read(source), Goal::default(), Limits::default());
    let mut search = AutomataSearch::new(&program, &goal, Reductions::ALL, &limits).expect("no limit");
    assert_eq!(search.explore(Budget::states(3 * ENOUGH), Errors::Count), Ok(Progress::Exhausted));
    assert!(search.cost().cycles > 1, "{:?}", search.cost());
    assert!(matches!(answer(source, true), Answer::Fails(_)));
}

/// The runs that are found here reach the goal sooner once they are simplified.
#[test]
fn runs_may_become_shorter_while_they_are_simplified() {
    let source = "shared x, y, z
        thread t0; L1: store [x], -1; store [y], 0; L2: r = r; choose L3, L4; L3: assume r == 0; halt
                   L4: assume r == 0; goto L1; end
        thread t1; lock; fence; r = any(0..=0); unlock; L1: end
        thread t2; load r, [x]; end
        forbid t0@L2 && t1@L1";
    find(&read(source)).expect("the goal is found");
}

/// The programs of the paper's Table 2, and those after its figures.
const TABLE: &[&str] = &[
    "dekker/dekker.tso",
    "dekker/dekker-fenced.tso",
    "dekker/dekker-loop.tso",
    "dekker/dekker-loop-fenced.tso",
    "peterson/peterson.tso",
    "peterson/peterson-fenced.tso",
    "peterson/peterson-loop.tso",
    "peterson/peterson-loop-fenced.tso",
    "cycles/cycle.tso",
    "cycles/unlock.tso",
    "cycles/unlock-fenced.tso",
    "cycles/consume.tso",
];

/// What exploring all of a program comes to, whatever errors there are on the way.
fn counts(file: &str) -> String {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("programs");
    let program = read(&std::fs::read_to_string(folder.join(file)).expect("bundled programs are readable"));
    let (goal, limits, all) = (Goal::of(&program), Limits::default(), Reductions::ALL);
    let ways = [("all reductions", all), ("local steps apart", Reductions { steps: false, ..all })];
    let line = |(how, reductions)| {
        let mut search = AutomataSearch::new(&program, &goal, reductions, &limits).expect("no limit");
        let ended = search.explore(Budget::UNLIMITED, Errors::Count);
        assert_eq!(ended, Ok(Progress::Exhausted), "{file}, {how}");
        let Cost { stored, visited, depth, errors, cycles } = search.cost();
        format!(
            "{file}, {how}: {stored} stored, {visited} visited, depth {depth}, {errors} errors, {cycles} accelerated\n"
        )
    };
    ways.into_iter().map(line).collect()
}

/// `OVERTAKE_BLESS=1` writes the file anew; `results/automata.py` puts it beside the paper's counts.
#[test]
fn the_programs_of_the_paper_take_as_many_states_as_before() {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/automata.txt");
    let now: String = TABLE.iter().map(|file| counts(file)).collect();
    if std::env::var_os("OVERTAKE_BLESS").is_some() {
        std::fs::write(&file, &now).expect("the file can be written");
    }
    assert_eq!(now, std::fs::read_to_string(&file).expect("the counts are kept"));
}

#[test]
fn a_search_goes_on_where_its_budget_ended() {
    let program = read(include_str!("../programs/peterson/peterson-loop-fenced.tso"));
    let (goal, limits) = (Goal::of(&program), Limits::default());
    let new = || AutomataSearch::new(&program, &goal, Reductions::ALL, &limits).expect("no limit");
    let (mut once, mut often) = (new(), new());
    assert_eq!(once.explore(Budget::UNLIMITED, Errors::First), Ok(Progress::Exhausted));
    let turns =
        (1..).take_while(|&n| often.explore(Budget::states(10 * n), Errors::First) == Ok(Progress::Spent));
    assert!(turns.count() > 3);
    assert_eq!(often.cost(), once.cost());
}

/// What was lost when a limit was reached is not made up for later.
#[test]
fn a_search_that_met_a_limit_never_comes_to_an_end() {
    let program = read(include_str!("../programs/dekker/dekker-fenced.tso"));
    let (goal, limits) = (Goal::of(&program), Limits { states: Some(5), ..Limits::default() });
    let mut search = AutomataSearch::new(&program, &goal, Reductions::ALL, &limits).expect("no limit yet");
    for _ in 0..2 {
        assert_eq!(search.explore(Budget::UNLIMITED, Errors::First), Err(Limit::States(5)));
    }
}

proptest! {
    #![proptest_config(cases(40))]

    #[test]
    fn answers_agree(program in program(SMALL)) {
        agree(&program.0)?;
    }

    #[test]
    fn answers_agree_without_loops(program in program(STRAIGHT)) {
        agree(&program.0)?;
    }

    #[test]
    fn answers_agree_on_dense_programs(program in program(DENSE)) {
        agree(&program.0)?;
    }

    #[test]
    fn answers_agree_on_wild_programs(program in program(WILD)) {
        agree(&program.0)?;
    }

    #[test]
    fn answers_agree_where_threads_end_inside_blocks(program in program(Shape { unfinished: true, ..SMALL })) {
        agree(&program.0)?;
    }

    #[test]
    fn answers_agree_on_templates(program in template_program(3, true)) {
        agree(&program.0)?;
    }

    #[test]
    fn what_a_run_shows_is_found(small in pointed_program(SMALL, Model::Tso), dense in pointed_program(DENSE, Model::Tso)) {
        find(&small.0)?;
        find(&dense.0)?;
    }

    #[test]
    fn everything_that_is_reached_is_stood_for(
        small in program(SMALL),
        dense in program(DENSE),
        reading in program(READING),
    ) {
        cover(&small.0)?;
        cover(&dense.0)?;
        cover(&reading.0)?;
    }
}

#[test]
fn a_thread_that_goes_wrong_only_stops_where_errors_do_not_count() {
    let source = "shared x, y
        thread p; r = 0; store [x], 2; store [y], 1 / r; end
        thread q; store [x], 1; load a, [y]; end
        forbid q.a == 1";
    let program = tso::read(source, &[], &Limits::default()).expect("a program").program;
    let holds = |ignores_errors| {
        let goal = Goal { ignores_errors, ..Goal::of(&program) };
        let options = Options { engine: Choice::Only(&AUTOMATA), ..Options::with_workers(1) };
        let answer = engine::check(&program, &goal, &options, &Limits::default()).expect("no bug").answer;
        matches!(answer, Answer::Holds(_))
    };
    assert!(holds(true) && !holds(false));
}

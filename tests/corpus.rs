//! Does every bundled program get the verdict that stands beside it in `expected.ron`?
//!
//! Under SC each program goes through the explorer with many combinations of its reductions, one worker and
//! several, both orders: all of them decide, and say the same. Under TSO the buffers are unbounded first;
//! where a loop stores without end and the states run out, they are bounded to 1, 2, 3 and 4 entries. No
//! answer may contradict the expectation, and the programs that stay undecided are listed here by name. The
//! lazy engine and the automatic choice are held to the same, within limits that keep this quick, and the
//! oracle to the last column.
//!
//! `OVERTAKE_COMBINATIONS=all cargo test --release --test corpus` tries all 512 combinations on every
//! program.

use overtake::certify::Outcome;
use overtake::cli::expectations::{self, Expected, LIST, Row};
use overtake::engine::{
    self, AUTOMATA, Choice, ENGINES, EXPLICIT, ExplicitOptions, Form, LAZY, LazyOptions, Options, PAST,
    Pruning,
};
use overtake::front::tso;
use overtake::model::Program;
use overtake::query::{Answer, Goal, Limit, Limits, Model, Proof, Question, Trace, Verdict};
use overtake::query::{Reduction, Reductions};
use overtake::reach::Order;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

struct Case {
    row: Row,
    /// The file, and the parameters if there are any: `lamport/lamport1.tso N=4`.
    name: String,
    program: Program,
}

/// With no reduction at all, programs of at most this many states go through all combinations.
const SMALL: u64 = 3_000;
/// A combination may run out of this many states where another has answered.
const MOST: u64 = 150_000;
/// Beyond this many states under TSO, some loop is taken to store without end; beyond a few, if buffers are
/// long by then.
const MOST_TSO: u64 = 100_000;
const FEW_TSO: u64 = 5_000;
/// States with a language for each buffer, which cost as much more as they stand for.
const FEW_LANGUAGES: u64 = 300;
const LONG_BUFFER: usize = 100;

/// Programs whose loops fill buffers without end, so that enumerating states proves nothing. Those that are
/// violated are found anyway.
const UNDECIDED_UNDER_TSO: &[&str] =
    &["cycles/unlock-fenced.tso", "loop/loop-fenced.tso", "loop/loop-fenced.tso N=20"];

/// What the lazy engine alone may spend: states for each of its searches, and rounds.
const MOST_LAZY: u64 = 30_000;
const MOST_ROUNDS: u64 = 12;
/// States for each search of the automatic choice. Once the rounds have cost 100,000, it asks the explicit
/// engine too.
const MOST_AUTO: u64 = 200_000;

/// Programs that the lazy engine does not decide within its limits.
const UNDECIDED_BY_LAZY: &[&str] = &[
    // The goal stands in a block, where the others' buffers are frozen.
    "blocks/inside.tso",
    // Safe and not robust, and the loops always have one more delay to offer.
    "burns/burns-lean.tso",
    "dekker/dekker-loop-lean.tso",
    "dijkstra/dijkstra-lean.tso",
    "eisenberg-mcguire/eisenberg-mcguire-lean.tso",
    "knuth/knuth-lean.tso",
    "lamport/lamport2-lean.tso N=3",
    "nbw/nbw-duplex.tso",
];

/// Programs that are not robust, and proved safe by building in all the delays that matter.
const PROVED_WITH_DELAYS: &[&str] = &[
    "benign/cancel.tso",
    "benign/dekker-retreat.tso",
    "benign/polite-lock.tso",
    "benign/progress.tso",
    "benign/tally.tso",
    "benign/tally.tso N=5",
    "deque/idempotent.tso",
    "hang/lost-wakeup.tso",
    "systems/futex-mutex.tso",
    "systems/io-uring.tso",
];

/// Robust once what nobody really reads is left out.
const ROBUST_APART: &[&str] = &[
    "benign/double-checked.tso",
    "benign/hint-lock.tso",
    "benign/lazy-init.tso",
    "diamond/diamond-fenced.tso",
    "diamond/diamond-fenced.tso N=8",
    "diamond/diamond-lean.tso",
    "systems/percpu-rwsem-fenced.tso",
];

/// Violations and the stores that their traces delay: as few as can be.
const FEWEST_DELAYS: &[(&str, usize)] = &[
    ("blocks/block.tso", 1),
    ("dekker/simple.tso", 1),
    ("delays/between-loads.tso", 1),
    ("delays/drained.tso", 1),
    ("delays/nested.tso", 2),
    ("delays/watcher.tso", 2),
    ("litmus/r.tso", 1),
    ("litmus/sb.tso", 1),
    ("litmus/sb3.tso", 1),
];

fn folders() -> Vec<PathBuf> {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs");
    let entries = programs.read_dir().expect("programs are bundled");
    let mut folders: Vec<PathBuf> = entries.map(|e| e.expect("it can be listed").path()).collect();
    folders.retain(|f| f.is_dir());
    folders.sort();
    folders
}

fn rows(folder: &Path) -> Vec<Row> {
    let path = folder.join(LIST);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    expectations::list(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn cases() -> Vec<Case> {
    let of = |folder: PathBuf| {
        let family = folder.file_name().expect("it has a name").to_string_lossy().into_owned();
        rows(&folder).into_iter().map(move |row| case(&folder, &family, row))
    };
    folders().into_iter().flat_map(of).collect()
}

fn case(folder: &Path, family: &str, row: Row) -> Case {
    let define: Vec<(String, i64)> = row.define.clone().into_iter().collect();
    let parameters: String = define.iter().map(|(name, value)| format!(" {name}={value}")).collect();
    let name = format!("{family}/{}{parameters}", row.file);
    let source = std::fs::read_to_string(folder.join(&row.file)).unwrap_or_else(|e| panic!("{name}: {e}"));
    let input =
        tso::read(&source, &define, &Limits::default()).unwrap_or_else(|wrong| panic!("{name}: {wrong:?}"));
    Case { row, name, program: input.program }
}

fn ask(case: &Case, options: &Options, most: u64) -> Outcome {
    ask_within(case, options, &Limits { states: Some(most), ..Limits::default() })
}

fn verdict(outcome: &Outcome) -> &'static str {
    Question::Check.word(outcome.answer.verdict())
}

/// With unbounded buffers, as long as they do not seem to grow without end.
fn ask_tso(case: &Case) -> Outcome {
    let few = ask(case, &plain(Model::Tso), FEW_TSO);
    let may_end = few.answer.verdict() == Verdict::Unknown && few.stats.longest_buffer < LONG_BUFFER;
    if may_end { ask(case, &plain(Model::Tso), MOST_TSO) } else { few }
}

fn ask_within(case: &Case, options: &Options, limits: &Limits) -> Outcome {
    let goal = Goal::of(&case.program);
    engine::check(&case.program, &goal, options, limits).unwrap_or_else(|e| panic!("{}: {e}", case.name))
}

/// One worker of the lazy engine, within its limits.
fn lazy(case: &Case, form: Form) -> Outcome {
    let engine = Choice::Only(&LAZY);
    let lazy = LazyOptions { form, iterations: Some(MOST_ROUNDS) };
    let options = Options { engine, lazy, workers: 1, ..Options::default() };
    ask_within(case, &options, &Limits { states: Some(MOST_LAZY), ..Limits::default() })
}

/// One worker of the explicit engine.
fn plain(model: Model) -> Options {
    Options { model, engine: Choice::Only(&EXPLICIT), workers: 1, ..Options::default() }
}

/// Is the answer certain? Panics if it contradicts the expectation or, where there is none, the explicit
/// engine.
fn decides_under_tso(case: &Case, outcome: &Outcome, how: &str) -> bool {
    let known = match case.row.tso {
        Expected::Unproved => match ask_tso(case).answer {
            Answer::Holds(_) => Expected::Safe,
            Answer::Fails(_) => Expected::Violated,
            Answer::Unknown(_) => Expected::Unproved,
        },
        known => known,
    };
    decides(case, known, outcome, how)
}

/// Is the answer certain? Panics if it contradicts the expectation.
fn decides(case: &Case, expected: Expected, outcome: &Outcome, how: &str) -> bool {
    let contradicts = matches!(
        (expected, &outcome.answer),
        (Expected::Safe, Answer::Fails(_)) | (Expected::Violated, Answer::Holds(_))
    );
    assert!(!contradicts, "{} is {}, not {expected:?} ({how})", case.name, verdict(outcome));
    !matches!(outcome.answer, Answer::Unknown(_))
}

/// All ways to switch the reductions of SC searches on and off. Under SC there is no buffer, and nothing to
/// reduce in it.
fn combinations() -> Vec<Reductions> {
    let under_sc = |r: &&Reduction| !matches!(r.switch, "no-silent" | "no-repeats");
    let mut all = vec![Reductions::ALL];
    for reduction in Reductions::TABLE.iter().filter(under_sc) {
        let without = |mut reductions: Reductions| {
            *(reduction.field)(&mut reductions) = false;
            reductions
        };
        all.extend(all.clone().into_iter().map(without));
    }
    all
}

/// All on, all off, and each one off alone.
fn some_combinations() -> Vec<Reductions> {
    let one_off = Reductions::TABLE.iter().map(Reductions::all_but);
    one_off.chain([Reductions::ALL, Reductions::NONE]).collect()
}

fn bundled(name: &str) -> Case {
    cases().into_iter().find(|c| c.name == name).unwrap_or_else(|| panic!("no row for {name}"))
}

/// Cases with something in common, collected from several threads.
#[derive(Default)]
struct Names(Mutex<BTreeSet<String>>);

impl Names {
    fn add(&self, case: &Case) {
        self.0.lock().expect("nobody panicked").insert(case.name.clone());
    }

    fn are(self, listed: &[&str]) {
        let listed: BTreeSet<String> = listed.iter().map(|s| s.to_string()).collect();
        assert_eq!(self.0.into_inner().expect("nobody panicked"), listed);
    }
}

/// Calls `check` on every case, from as many threads as there are cores.
fn for_each_case(check: impl Fn(&Case) + Sync) {
    let (cases, next) = (cases(), AtomicUsize::new(0));
    let work = || {
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            check(case);
        }
    };
    std::thread::scope(|scope| {
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
        (0..cores).for_each(|_| {
            scope.spawn(work);
        });
    });
}

#[test]
fn every_program_has_a_row_and_every_row_a_program() {
    for folder in folders() {
        let entries = folder.read_dir().expect("a folder");
        let names = entries.map(|e| e.expect("it can be listed").file_name().to_string_lossy().into_owned());
        let files: BTreeSet<String> = names.filter(|name| name != LIST).collect();
        let named: BTreeSet<String> = rows(&folder).into_iter().map(|r| r.file).collect();
        assert_eq!(files, named, "{}", folder.display());
    }
}

/// What a user would run.
#[test]
fn the_bundled_programs_pass_the_test_command() {
    let ran = std::process::Command::new(env!("CARGO_BIN_EXE_overtake"))
        .args(["test", "programs", "--quiet", "--deny-warnings"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("the binary starts");
    let told = String::from_utf8(ran.stdout).expect("output is text");
    let files: usize = folders().iter().map(|f| f.read_dir().expect("a folder").count() - 1).sum();
    assert_eq!(told, format!("{files} passed, 0 failed\n"), "{}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn no_program_has_two_rows_with_the_same_parameters() {
    let mut seen = BTreeSet::new();
    for case in cases() {
        assert!(seen.insert(case.name.clone()), "{} has two rows", case.name);
    }
}

#[test]
fn sc_verdicts_are_as_expected_with_every_combination_of_reductions() {
    let everything = std::env::var("OVERTAKE_COMBINATIONS").is_ok_and(|v| v == "all");
    for_each_case(|case| {
        let none = Options { reductions: Reductions::NONE, ..plain(Model::Sc) };
        let small = decides(case, case.row.sc, &ask(case, &none, SMALL), "no reductions");
        let chosen = if small || everything { combinations() } else { some_combinations() };
        for reductions in chosen {
            let options = Options { reductions, ..plain(Model::Sc) };
            let most = if everything { u64::MAX } else { MOST };
            let outcome = ask(case, &options, most);
            let decided = decides(case, case.row.sc, &outcome, &format!("{reductions:?}"));
            let must = small || everything || reductions == Reductions::ALL;
            assert!(decided || !must, "{} is undecided with {reductions:?}", case.name);
        }
    });
}

#[test]
fn sc_verdicts_do_not_depend_on_order_and_workers() {
    for_each_case(|case| {
        for (order, workers) in [(Order::DepthFirst, 1), (Order::BreadthFirst, 2), (Order::DepthFirst, 3)] {
            let options = Options { order, workers, ..plain(Model::Sc) };
            let outcome = ask(case, &options, u64::MAX);
            let how = format!("{order:?}, {workers} workers");
            assert!(decides(case, case.row.sc, &outcome, &how), "{} is undecided: {how}", case.name);
        }
    });
}

#[test]
fn tso_verdicts_are_as_expected_or_the_buffers_grow_without_end() {
    let undecided = Names::default();
    for_each_case(|case| {
        let outcome = ask_tso(case);
        let mut decided = decides(case, case.row.tso, &outcome, "unbounded buffers");
        let endless = matches!(outcome.answer, Answer::Unknown(Limit::States(_)));
        assert!(decided || endless, "{}: {:?}", case.name, outcome.answer);
        // Where unbounded buffers have decided, bounded ones must agree as far as they get.
        for bound in if outcome.stats.states > SMALL && decided { 1..=2 } else { 1..=4 } {
            let options = Options { explicit: ExplicitOptions { buffer: Some(bound) }, ..plain(Model::Tso) };
            let how = format!("buffers of {bound}");
            decided |= decides(case, case.row.tso, &ask(case, &options, MOST_TSO), &how);
        }
        if !decided {
            undecided.add(case);
        }
    });
    undecided.are(UNDECIDED_UNDER_TSO);
}

#[test]
fn the_lazy_engine_says_what_is_expected_and_proves_more_than_robust_programs() {
    let (undecided, with_delays, apart) = (Names::default(), Names::default(), Names::default());
    for_each_case(|case| {
        let outcome = lazy(case, Form::Exact);
        if !decides_under_tso(case, &outcome, "lazy") {
            undecided.add(case);
        }
        match &outcome.answer {
            Answer::Holds(Proof::Robust { delays: 0, apart: false }) => {
                assert!(case.row.robust, "{}", case.name)
            }
            Answer::Holds(Proof::Robust { delays: 0, apart: true }) => apart.add(case),
            Answer::Holds(Proof::Robust { .. }) => with_delays.add(case),
            Answer::Holds(Proof::Infeasible) => assert!(case.row.sc == Expected::Safe, "{}", case.name),
            Answer::Holds(Proof::Exhausted | Proof::Covered) => {
                panic!("{}: nothing exhausts TSO lazily", case.name)
            }
            Answer::Fails(trace) => judge_trace(case, trace, outcome.safe_under_sc),
            Answer::Unknown(_) => {}
        }
    });
    undecided.are(UNDECIDED_BY_LAZY);
    with_delays.are(PROVED_WITH_DELAYS);
    apart.are(ROBUST_APART);
}

/// A violation that SC has too is shown under SC, and any other has a store that is overtaken.
fn judge_trace(case: &Case, trace: &Trace, safe_under_sc: bool) {
    let (name, delays) = (&case.name, trace.delays().len());
    let only_tso = case.row.sc == Expected::Safe;
    assert_eq!(safe_under_sc, only_tso, "{name}");
    assert_eq!(trace.model == Model::Tso, only_tso, "{name}");
    assert_eq!(delays > 0, only_tso, "{name} delays {delays} stores");
    if let Some((_, fewest)) = FEWEST_DELAYS.iter().find(|(n, _)| n == name) {
        assert_eq!(delays, *fewest, "{name}");
    }
}

#[test]
fn violations_with_known_delays_are_bundled_and_found_with_additive_delays_too() {
    for (name, _) in FEWEST_DELAYS {
        let case = bundled(name);
        let outcome = lazy(&case, Form::Additive);
        assert_eq!(verdict(&outcome), "violated", "{name}");
    }
}

#[test]
fn a_delay_within_a_delay_takes_a_round_for_each() {
    let outcome = lazy(&bundled("delays/nested.tso"), Form::Exact);
    assert!(outcome.stats.iterations >= 3, "{} rounds", outcome.stats.iterations);
    let threads: BTreeSet<_> =
        outcome.stats.rounds.iter().flat_map(|r| &r.delays).map(|d| d.thread.index()).collect();
    assert_eq!(threads, BTreeSet::from([0, 1]));
}

#[test]
fn no_engine_of_the_table_contradicts_what_is_expected() {
    for_each_case(|case| {
        for entry in ENGINES {
            let lazy = LazyOptions { iterations: Some(2), ..LazyOptions::default() };
            let options = Options { engine: Choice::Only(entry), lazy, workers: 1, ..Options::default() };
            let most = if entry.name == AUTOMATA.name { FEW_LANGUAGES } else { FEW_TSO };
            decides_under_tso(case, &ask(case, &options, most), entry.name);
        }
    });
}

#[test]
fn lagging_readers_decide_every_program() {
    for_each_case(|case| {
        let options = Options { engine: Choice::Only(&PAST), workers: 1, ..Options::default() };
        let outcome = ask(case, &options, 10 * MOST);
        assert!(decides_under_tso(case, &outcome, "past"), "{}: {:?}", case.name, outcome.answer);
    });
}

#[test]
fn the_automatic_choice_says_what_is_expected() {
    for_each_case(|case| {
        let options = Options { workers: 1, ..Options::default() };
        let outcome = ask_within(case, &options, &Limits { states: Some(MOST_AUTO), ..Limits::default() });
        assert!(decides_under_tso(case, &outcome, "auto"), "{}: {:?}", case.name, outcome.answer);
        if let Answer::Fails(_) = &outcome.answer {
            let explicit = case.name == "blocks/inside.tso";
            assert!(outcome.safe_under_sc == (case.row.sc == Expected::Safe) || explicit, "{}", case.name);
        }
    });
}

#[test]
fn robustness_is_as_expected_with_static_pruning_and_without() {
    for_each_case(|case| {
        for (pruning, workers) in [(Pruning::On, 1), (Pruning::On, 2), (Pruning::Off, 1), (Pruning::Off, 2)] {
            let options = Options { pruning, workers, ..Options::default() };
            let limits = Limits { states: Some(MOST), ..Limits::default() };
            let found = engine::robust(&case.program, &options, &limits);
            let found = found.unwrap_or_else(|e| panic!("{}: {e}", case.name));
            let verdict = if case.row.robust { Verdict::Holds } else { Verdict::Fails };
            assert_eq!(found.answer.verdict(), verdict, "{}, {pruning:?}, {workers} workers", case.name);
            if let Answer::Fails(witness) = &found.answer {
                assert!(witness.path().len() > 1 && witness.cycle.len() > 1, "{}", case.name);
            }
        }
    });
}

#[test]
fn triangular_races_are_where_they_are_expected() {
    for_each_case(|case| {
        let options = Options { workers: 1, ..Options::default() };
        let limits = Limits { states: Some(MOST), ..Limits::default() };
        let found = engine::triangular(&case.program, &options, &limits);
        let found = found.unwrap_or_else(|e| panic!("{}: {e}", case.name));
        if let Some(racy) = case.row.racy.or((!case.row.robust).then_some(true)) {
            assert_eq!(
                found.answer.verdict(),
                if racy { Verdict::Fails } else { Verdict::Holds },
                "{}",
                case.name
            );
        }
    });
}

/// The count is the point here: it changes when a reduction does.
#[test]
fn well_understood_programs_have_as_many_states_as_ever() {
    let count = |name: &str, model: Model| ask(&bundled(name), &plain(model), u64::MAX).stats.states;
    assert_eq!(count("lamport/lamport1.tso", Model::Sc), 45);
    assert_eq!(count("lamport/lamport1.tso N=4", Model::Sc), 99);
    assert_eq!(count("peterson/peterson.tso", Model::Sc), 7);
    assert_eq!(count("litmus/iriw.tso", Model::Sc), 34);
    assert_eq!(count("litmus/mp.tso", Model::Tso), 5);
}

//! DVE models: the machine against the plain definition on random models, and the published counts of the
//! corpus, as far as they are small (`OVERTAKE_STATES=2000000` tries the larger ones).

mod common;

use common::dve::{CONDITIONS, Dice, PlainSpace, Taste, model, read, slots, space, with_one_access};
use overtake::dve::{DveExpr, Memory, System};
use overtake::engine::{self, Options};
use overtake::front::dve;
use overtake::limits::{Limit, Limits};
use overtake::machine::dve::DveGoals;
use overtake::model::{Atom, BinOp, Expr, Instr, Loc, Program, Property, PropertyKind, ThreadId};
use overtake::query::{Answer, Goal, Model, Verdict};
use overtake::temporal::{TemporalOptions, safety};
use proptest::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Larger random state spaces are left alone.
const MOST: usize = 3_000;

fn corpus() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpora/dve");
    if !folder.is_dir() {
        eprintln!("skipped: there is no corpus of DVE models");
    }
    folder.is_dir().then_some(folder)
}

fn with(memory: &Memory, por: bool) -> TemporalOptions {
    TemporalOptions { memory: memory.clone(), workers: 1, fair: false, por }
}

fn taste(dice: &mut Dice) -> Taste {
    Taste { errors: dice.one_in(2), channels: dice.one_in(2), property: false }
}

/// States, transitions, deadlocks and errors.
fn sizes(space: &PlainSpace) -> [u64; 4] {
    let wrong = space.states.iter().filter(|s| s.is_none()).count();
    let stuck = space.edges.iter().filter(|e| e.is_empty()).count() - wrong;
    let edges = space.edges.iter().map(Vec::len).sum::<usize>();
    [space.states.len(), edges, stuck, wrong].map(|n| n as u64)
}

fn counted(system: &System, memory: &Memory) -> [u64; 4] {
    let space = safety::count(system, &with(memory, false), &Limits::default());
    assert_eq!(space.limit, None);
    [space.states, space.transitions, space.deadlocks, space.errors]
}

/// With and without reduction.
fn verdicts(system: &System, memory: &Memory, goals: &DveGoals) -> [Verdict; 2] {
    [false, true].map(|por| {
        let outcome = safety::reach(system, goals, &with(memory, por), &Limits::default());
        outcome.expect("what is found is confirmed").answer.verdict()
    })
}

/// A random model with its memory and its whole state space.
fn random(seed: u64) -> Option<(String, System, Memory, PlainSpace)> {
    let mut dice = Dice::new(seed);
    let taste = taste(&mut dice);
    let text = model(&mut dice, taste);
    let system = read(&text);
    let memory = if dice.one_in(2) { Memory::Sc } else { slots(&mut dice, &system) };
    let space = space(&system, &memory, MOST)?;
    Some((text, system, memory, space))
}

proptest! {
    #![proptest_config(common::cases(300))]

    #[test]
    fn the_machine_has_the_states_of_the_definition(seed in any::<u64>()) {
        if let Some((text, system, memory, space)) = random(seed) {
            prop_assert_eq!(counted(&system, &memory), sizes(&space), "{}\n{:?}", text, memory);
        }
    }

    #[test]
    fn what_is_reachable_is_found_and_nothing_else(seed in any::<u64>()) {
        if let Some((text, system, memory, space)) = random(seed) {
            let states = || space.states.iter().flatten();
            let told = |bad: bool| if bad { Verdict::Fails } else { Verdict::Holds };
            let condition = CONDITIONS[seed as usize % CONDITIONS.len()];
            let expr = dve::expression(condition, &system, &[], &Limits::default());
            let expr = expr.expect("it is one");
            let forbidden = states().any(|s| s.value(&system, None, &expr).is_ok_and(|v| v != 0));
            let wrong = space.states.contains(&None) || states().any(|s| s.failing_assertion(&system).is_some());
            let stuck = sizes(&space)[2] > 0;
            let errors = DveGoals { errors: true, ..DveGoals::default() };
            let deadlocks = DveGoals { deadlocks: true, ..DveGoals::default() };
            let goals = DveGoals { forbidden: vec![expr], ..DveGoals::default() };
            for (goals, bad) in [(goals, forbidden), (errors, wrong), (deadlocks, stuck)] {
                prop_assert_eq!(verdicts(&system, &memory, &goals), [told(bad); 2], "{}\n{:?} {:?}", text, memory, goals);
            }
        }
    }
}

/// `name.number.dve`, its states, its edges if they were published.
fn published(folder: &Path) -> Vec<(String, u64, Option<u64>)> {
    let table = std::fs::read_to_string(folder.join("beem-counts.csv")).expect("the counts are there");
    let rows = table.lines().skip(1).map(|line| {
        // Parameters are quoted if there are several.
        let plain: String = line.split('"').enumerate().filter(|(i, _)| i % 2 == 0).map(|(_, s)| s).collect();
        plain.split(',').map(str::to_string).collect::<Vec<_>>()
    });
    let complete =
        rows.filter(|row| row[4] == "yes" && !(row[0] == "anderson" && ["1", "3"].contains(&&row[1][..])));
    complete
        .map(|row| {
            let states = row[3].parse().expect("a count");
            (format!("{}.{}.dve", row[0], row[1]), states, row[6].parse().ok())
        })
        .collect()
}

#[test]
fn published_counts_are_met() {
    let Some(folder) = corpus() else { return };
    let most = std::env::var("OVERTAKE_STATES").ok().and_then(|n| n.parse().ok()).unwrap_or(40_000);
    let mut tried = 0;
    for (name, states, edges) in published(&folder).into_iter().filter(|(_, states, _)| *states <= most) {
        let text = std::fs::read_to_string(folder.join(&name)).expect("the model is there");
        let [found, transitions, ..] = counted(&read(&text), &Memory::Sc);
        assert_eq!((found, transitions), (states, edges.unwrap_or(transitions)), "{name}");
        tried += 1;
    }
    assert!(tried > 15, "{tried} models are all that was found");
}

#[test]
fn one_slot_buffers_have_the_states_of_the_thesis() {
    let Some(folder) = corpus() else { return };
    for (name, states, edges) in
        [("peterson.n2", 7_267, 29_356), ("fischer.n2", 16_746, 72_357), ("mcs.n2", 30_448, 126_009)]
    {
        let text = std::fs::read_to_string(folder.join(format!("{name}.dve"))).expect("the model is there");
        let system = read(&text);
        let [found, transitions, ..] = counted(&system, &Memory::slots());
        assert_eq!((found, transitions), (states, edges), "{name}");
        let atomic =
            Memory::Slots { atomic: system.sites().into_iter().collect(), barriers: Default::default() };
        assert_eq!(counted(&system, &atomic)[..2], counted(&system, &Memory::Sc)[..2], "{name}");
    }
}

#[test]
fn a_search_that_is_cut_short_proves_nothing() {
    let system = read(
        "byte x; process P { state s; init s; trans s -> s { guard x < 9; effect x = x + 1; }; } system async;",
    );
    let limits = Limits { states: Some(2), ..Limits::default() };
    let goals = DveGoals { errors: true, ..DveGoals::default() };
    let outcome = safety::reach(&system, &goals, &with(&Memory::Sc, true), &limits).expect("no bug");
    assert!(matches!(outcome.answer, Answer::Unknown(Limit::States(2))));
    assert_eq!(counted(&system, &Memory::Sc), [10, 9, 1, 0]);
}

/// The model as a program, and what asks whether both processes can be in these states at once.
fn translated(system: &System, together: [usize; 2]) -> [Program; 2] {
    let program =
        dve::program::program(system, "tso", &Limits::default()).expect("it has one access per step");
    let at = |p: usize, state: usize| {
        let name = &system.processes[p].states[state].name;
        let locations = program.threads()[p].to_parts().locations;
        let own = locations.iter().position(|l| l.labels.contains(name)).expect("a state is a label");
        Expr::Atom(Atom::At(ThreadId(p as u16), vec![Loc(own as u32)]))
    };
    let both = Expr::binary(BinOp::And, at(0, together[0]), at(1, together[1]));
    let mut parts = program.to_parts();
    parts.properties = vec![Property::new(PropertyKind::Forbid, both, 0)];
    // A step that goes wrong is a run that ends.
    for edge in parts.threads.iter_mut().flat_map(|t| &mut t.edges) {
        if let Instr::Assert(e) = &edge.instr {
            edge.instr = Instr::Assume(e.clone());
        }
    }
    [program, Program::new(parts).expect("it is as valid as before")]
}

proptest! {
    #![proptest_config(common::cases(60))]

    #[test]
    fn a_model_and_its_program_give_the_same_answers(seed in any::<u64>()) {
        let mut dice = Dice::new(seed);
        let text = with_one_access(&mut dice);
        let system = read(&text);
        let together = [dice.roll(system.processes[0].states.len()), dice.roll(system.processes[1].states.len())];
        let programs = translated(&system, together);
        let at = |p: usize| DveExpr::At { process: p, state: together[p] };
        let forbidden = vec![DveExpr::binary(BinOp::And, at(0), at(1))];
        let errors = DveGoals { errors: true, ..DveGoals::default() };
        let goals = DveGoals { forbidden, ..DveGoals::default() };
        for (program, goals) in programs.iter().zip([errors, goals]) {
            let options = Options { model: Model::Sc, ..Options::with_workers(1) };
            let outcome = engine::check(program, &Goal::of(program), &options, &Arc::new(Limits::default()));
            let outcome = outcome.expect("what is found is confirmed");
            prop_assert_eq!([outcome.answer.verdict(); 2], verdicts(&system, &Memory::Sc, &goals), "{}\n{:?}", text, goals);
        }
    }
}

#[test]
fn what_accesses_more_than_one_element_is_no_program() {
    let refused = |process: &str| {
        let system = read(&format!("byte x, y; process P {{ byte l; byte m[2]; {process} }} system async;"));
        dve::program::program(&system, "tso", &Limits::default()).expect_err("it is refused").to_string()
    };
    for (body, why) in [
        ("guard x == 0; effect y = 1;", "accesses memory more than once"),
        ("effect x = x + 1;", "accesses memory more than once"),
        ("guard x == y;", "accesses memory more than once"),
        ("effect x = 1, x = 2;", "accesses memory more than once"),
        ("guard m[l] == 1;", "by a computed index"),
        ("guard P.a;", "looks at other processes"),
        ("effect m[x] = 1;", "by a computed index"),
    ] {
        let told = refused(&format!("state a; init a; trans a -> a {{ {body} }};"));
        assert!(told.contains("transition P:0") && told.contains(why), "{body}: {told}");
    }
}

/// The command line on a model: the exit code, and what it prints as an object.
fn overtake(args: &[&str], source: &str) -> (Option<i32>, serde_json::Value) {
    use std::io::Write;
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_overtake"))
        .args(args)
        .args(["--json", "--from", "dve", "-"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the binary runs");
    child.stdin.take().expect("it is piped").write_all(source.as_bytes()).expect("it reads");
    let done = child.wait_with_output().expect("it ends");
    (done.status.code(), serde_json::from_slice(&done.stdout).unwrap_or_default())
}

const LOCK: &str = "byte lock;
process P { state out, in; init out; trans out -> in { guard lock == 0; effect lock = 1; }, in -> out { effect lock = 0; }; }
process Q { state out, in; init out; trans out -> in { guard lock == 0; effect lock = 1; }, in -> out { effect lock = 0; }; }
system async;";

#[test]
fn commands_answer_with_their_words_and_codes() {
    let (code, counts) = overtake(&["show", "--states"], LOCK);
    let fields = ["states", "transitions", "deadlocks", "errors"].map(|name| counts[name].as_u64());
    assert_eq!((code, fields), (Some(0), [Some(3), Some(4), Some(0), Some(0)]));
    let check = |more: &[&str]| overtake(&[&["check"], more].concat(), LOCK);
    assert_eq!(check(&[]).0, Some(0));
    let (code, safe) = check(&["--forbid", "P.in and Q.in"]);
    assert_eq!((code, safe["verdict"].as_str()), (Some(0), Some("safe")));
    let (code, slots) = check(&["--forbid", "P.in and Q.in", "--model", "slots"]);
    assert_eq!((code, slots["verdict"].as_str()), (Some(10), Some("violated")));
    assert!(slots["trace"].as_array().is_some_and(|trace| trace.len() >= 2));
    let (code, starved) = check(&["--ltl", "G F p", "--define", "p=P.in"]);
    assert_eq!((code, starved["cycle_from"].as_u64()), (Some(10), Some(0)));
    assert_eq!(check(&["--ltl", "G !(p && q)", "-D", "p=P.in", "-D", "q=Q.in"]).0, Some(0));
    for wrong in [
        &["--ltl", "G p"][..],
        &["--ltl", "a U b && c"],
        &["--forbid", "Z.in"],
        &["--model", "tso"],
        &["--barrier", "P:9"],
    ] {
        assert_eq!(check(wrong).0, Some(2), "{wrong:?}");
    }
    let ask =
        ["fence", "--for", "ltl", "--ltl", "G !(p && q)", "-D", "p=P.in", "-D", "q=Q.in", "--with", "atomic"];
    let (code, found) = overtake(&ask, LOCK);
    assert_eq!((code, found["optimal"].as_bool()), (Some(0), Some(true)));
    assert_eq!(found["sets"][0].as_array().map(Vec::len), Some(2));
    assert_eq!(found["sets"][0][0]["variable"], "lock");
    assert_eq!(overtake(&["robust"], LOCK).0, Some(2));
}

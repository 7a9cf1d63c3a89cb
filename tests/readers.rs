//! Do programs in the formats of other tools get the verdicts they should? Small programs for every rule of
//! Trencher's and Memorax's languages, with the plain machines as judges; the bundled programs, written for
//! Trencher and read back; and, where they are at hand, collections of programs with recorded verdicts.

mod common;

use common::{Naive, naive};
use overtake::engine::{self, Choice, EXPLICIT, Options};
use overtake::front::{Input, Unread, rmm, trencher, tso};
use overtake::model::Program;
use overtake::query::{Answer, Goal, Limits, Model};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

type Reader = fn(&str, &Limits) -> Result<Input, Unread>;

fn program(read: Reader, source: &str) -> Program {
    read(source, &Limits::default()).unwrap_or_else(|wrong| panic!("{wrong:?}\n{source}")).program
}

fn verdict(program: &Program, model: Model, engine: Choice, limits: &Limits) -> &'static str {
    let options = Options { model, engine, workers: 1, ..Options::default() };
    match engine::check(program, &Goal::of(program), &options, limits).expect("no internal error").answer {
        Answer::Fails(_) => "violated",
        Answer::Holds(_) => "safe",
        Answer::Unknown(_) => "unknown",
    }
}

fn robustness(program: &Program, limits: &Limits) -> &'static str {
    let options = Options { workers: 1, ..Options::default() };
    match engine::robust(program, &options, limits).expect("no internal error").answer {
        Answer::Holds(()) => "robust",
        Answer::Fails(_) => "not-robust",
        Answer::Unknown(_) => "unknown",
    }
}

/// The verdicts under SC and under TSO, of both engines and of the plain machines.
#[track_caller]
fn check(read: Reader, source: &str, sc: &str, tso: &str) {
    let program = program(read, source);
    for (model, expect) in [(Model::Sc, sc), (Model::Tso, tso)] {
        for engine in [Choice::Auto, Choice::Only(&EXPLICIT)] {
            let found = verdict(&program, model, engine, &Limits::default());
            assert_eq!(found, expect, "{model:?} {engine:?}\n{source}");
        }
        let plain = match naive(&program, &Goal::of(&program), model, None, 100_000) {
            Naive::Violated => "violated",
            Naive::Safe => "safe",
            _ => "unknown",
        };
        assert_eq!(plain, expect, "plain {model:?}\n{source}");
    }
}

#[track_caller]
fn check_robust(read: Reader, source: &str, expect: &str) {
    assert_eq!(robustness(&program(read, source), &Limits::default()), expect, "{source}");
}

/// Two threads that store to one cell each and look at the other's, with something between.
fn trencher_sb(between: &str) -> String {
    let thread = |name: &str, own: u8, other: u8| {
        format!(
            "thread {name} initial a final d transition a b write 1 {own} transition b b2 {between}
             transition b2 c read r {other} transition c d check == r 0 end\n"
        )
    };
    thread("p", 0, 1) + &thread("q", 1, 0)
}

#[test]
fn trencher_threads_buffer_their_stores() {
    check(trencher::read, &trencher_sb("noop"), "safe", "violated");
    check(trencher::read, &trencher_sb("mfence"), "safe", "safe");
    check_robust(trencher::read, &trencher_sb("noop"), "not-robust");
    check_robust(trencher::read, &trencher_sb("mfence"), "robust");
    check_robust(trencher::read, &trencher_sb("lock"), "robust");
}

#[test]
fn final_states_count_at_the_same_time() {
    let other = |last: &str| {
        format!("thread q initial a final {last} transition a b read r 0 transition b c check r end")
    };
    let p = "thread p initial a final a transition a b write 1 0 end\n";
    check(trencher::read, &format!("{p}{}", other("a")), "violated", "violated");
    check(trencher::read, &format!("{p}{}", other("c")), "safe", "safe");
}

#[test]
fn a_lock_freezes_the_others() {
    let q = "thread q initial a final c transition a b read r 0 transition b c check r end";
    let p = |inside: &str| format!("thread p initial a final c transition a b lock {inside} end\n{q}");
    check(trencher::read, &p("transition b c write 1 0"), "safe", "safe");
    check(trencher::read, &p("transition b b1 write 1 0 transition b1 c unlock"), "violated", "violated");
    check(trencher::read, &p("transition b b1 write 1 0 transition b1 c lock"), "safe", "safe");
    check(trencher::read, "thread p initial a final b transition a b unlock end", "safe", "safe");
}

#[test]
fn what_others_do_during_a_lock_they_could_have_done_before() {
    let source = "thread p initial a final b transition a b lock end
        thread q initial a final d transition a b write 1 0 transition b c read r 0 transition c d check r end";
    check(trencher::read, source, "violated", "violated");
}

#[test]
fn memory_has_every_address() {
    let source = "thread p initial a final d transition a b write 7 -3
        transition b c read r - 0 3 transition c d check == r 7 end";
    check(trencher::read, source, "violated", "violated");
    let pointers = "thread p initial a final f transition a b write 40 0 transition b c read p 0
        transition c d write 5 + p 1 transition d e read r 41 transition e f check == r 5 end";
    check(trencher::read, pointers, "violated", "violated");
}

#[test]
fn without_final_states_there_is_robustness_alone() {
    let source = trencher_sb("noop").replace("final d", "");
    assert!(program(trencher::read, &source).properties().is_empty());
    check_robust(trencher::read, &source, "not-robust");
}

/// The same in Memorax's language.
fn rmm_sb(store: &str, between: &str) -> String {
    let process = |own: &str, other: &str| {
        format!("process text {store} {own} := 1; {between}; read: {other} = 0; CS: nop\n")
    };
    format!("forbidden CS CS data x = 0 y = 0 z = 0\n{}{}", process("x", "y"), process("y", "x"))
}

#[test]
fn rmm_processes_buffer_their_stores() {
    for (store, between, tso) in [
        ("write:", "nop", "violated"),
        ("slocked write:", "nop", "violated"),
        ("write:", "ssfence", "violated"),
        ("write:", "llfence", "violated"),
        ("write:", "fence", "safe"),
        ("write:", "cas(z,0,0)", "safe"),
        ("write:", "locked{ read: z = 0 or nop }", "violated"),
        ("write:", "locked{ read: z = 0 or write: z := 1 }", "safe"),
        ("locked write:", "nop", "safe"),
        ("syncwr:", "nop", "safe"),
    ] {
        check(rmm::read, &rmm_sb(store, between), "safe", tso);
    }
    check_robust(rmm::read, &rmm_sb("write:", "nop"), "not-robust");
    check_robust(rmm::read, &rmm_sb("write:", "fence"), "robust");
}

/// One process, and whether it gets to its end.
#[track_caller]
fn reaches(declarations: &str, text: &str, expect: bool) {
    let verdict = if expect { "violated" } else { "safe" };
    let source = format!("forbidden CS {declarations} text {text}; CS: nop");
    check(rmm::read, &source, verdict, verdict);
}

#[test]
fn cas_waits_for_its_value() {
    reaches("data x = 0 process", "cas(x,0,1); read: x = 1", true);
    reaches("data x = 1 process", "cas(x,0,1)", false);
    reaches("data x = 0 : [0:1] process", "cas(x,0,2)", false);
}

#[test]
fn registers_take_what_is_read_more_than_once() {
    let declarations = "data x = 1 y = 2 process registers $f = 0";
    reaches(declarations, "read: $f := x; assume: $f = 1; read: $f := y; assume: $f = 2", true);
    reaches(declarations, "read: $f := x; read: $f := y; assume: $f = 1", false);
}

#[test]
fn domains_block_whatever_is_outside() {
    reaches("data x = 2 process registers $a = 0 : [0:1]", "read: $a := x", false);
    reaches("data x = 0 : [0:1] process", "write: x := 2", false);
    reaches("process registers $a = 0 : [0:1]", "$a := $a + 1", true);
    reaches("process registers $a = 0 : [0:1]", "$a := $a + 1; $a := $a + 1", false);
}

#[test]
fn pointers_block_outside_the_globals() {
    let declarations = "data x = 5 y = 1 process data z = 6 registers $p = * : [-1:2] $r = 0";
    reaches(declarations, "read: $r := [$p]; assume: $r = 5", true);
    reaches(declarations, "read: $r := [$p]; assume: $r = 6", false);
    reaches(declarations, "write: [$p] := 7; fence; read: y = 7", true);
    reaches(declarations, "assume: $p = 2; read: $r := [$p]", false);
}

#[test]
fn branches_are_chosen_once() {
    reaches("process", "either{ CS2: assume: false or assume: false }", false);
    let loops = "registers $a = 0 : [0:2] text either{ while $a = 0 do $a := 1 or $a := 2 }; assume: $a = 2; CS: assume: $a = 1";
    check(rmm::read, &format!("forbidden CS process {loops}"), "violated", "violated");
    let again = "registers $a = 0 : [0:1] $b = 0 : [0:3] text
        either{ while $a = 0 do { $a := 1; $b := $b + 1 } or $b := $b + 2 }; assume: $b = 3; CS: nop";
    check(rmm::read, &format!("forbidden CS process {again}"), "safe", "safe");
    check(rmm::read, "forbidden CS process text either{ CS: assume: false or nop }", "violated", "violated");
}

#[test]
fn any_goal_will_do() {
    let source = "forbidden A B ; B A process text A: nop; B: nop process text goto B; A: nop; B: nop";
    check(rmm::read, source, "violated", "violated");
    check(
        rmm::read,
        "forbidden A process(0) text A: nop process text nop; goto B; A: nop; B: nop",
        "safe",
        "safe",
    );
}

#[test]
fn a_block_is_seen_as_a_whole() {
    let source = "forbidden * CS data x = 0 y = 0
        process text locked{ write: x := 1; write: y := 1 }
        process text read: x = 1; read: y = 0; CS: nop";
    check(rmm::read, source, "safe", "safe");
    let stuck = "forbidden * CS data x = 0 y = 0
        process text locked{ write: x := 1; read: y = 1 }
        process text read: x = 1; CS: nop";
    check(rmm::read, stuck, "safe", "safe");
    let free = "forbidden * CS data x = 0 y = 0
        process text locked{ read: y = 1; write: x := 1 }
        process text write: y := 1; read: x = 1; CS: nop";
    check(rmm::read, free, "violated", "violated");
}

/// Two processes that look at memory of any value.
fn any(p: &str, q: &str) -> String {
    format!(
        "forbidden CS CS data x = * : [0:1] y = * : [0:2] process text {p}; CS: nop process text {q}; CS: nop"
    )
}

#[test]
fn memory_of_any_value_has_one_value_for_all() {
    for value in 0..2 {
        check(
            rmm::read,
            &any(&format!("read: x = {value}"), &format!("read: x = {value}")),
            "violated",
            "violated",
        );
    }
    check(rmm::read, &any("read: x = 0", "read: x = 1"), "safe", "safe");
    check(rmm::read, &any("read: x = 1", "read: y = 2"), "violated", "violated");
    check(rmm::read, &any("read: x = 2", "nop"), "safe", "safe");
}

#[test]
fn memory_of_any_value_leaves_robustness_as_it_is() {
    check_robust(rmm::read, &any("read: x = 0; read: y = 1", "write: y := 1; write: x := 1"), "robust");
    check_robust(rmm::read, &any("write: x := 1; read: y = 1", "write: y := 1; read: x = 0"), "not-robust");
    check_robust(
        rmm::read,
        &any("write: x := 1; fence; read: y = 1", "write: y := 1; fence; read: x = 0"),
        "robust",
    );
}

fn small() -> Limits {
    Limits { states: Some(50_000), ..Limits::default() }.with_timeout(Duration::from_secs(5))
}

#[test]
fn what_is_written_for_trencher_is_read_back_with_the_same_behaviour() {
    let folders =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("programs").read_dir().expect("programs are bundled");
    let files = folders.map(|f| f.expect("readable").path()).filter(|f| f.is_dir());
    let files = files.flat_map(|f| f.read_dir().expect("a folder").map(|f| f.expect("readable").path()));
    let (mut asked, mut compared, mut refused) = (0, 0, Vec::new());
    for file in files.filter(|f| f.extension().is_some_and(|e| e == "tso")) {
        let source = std::fs::read_to_string(&file).expect("readable");
        let before =
            tso::read(&source, &[], &Limits::default()).expect("bundled programs are readable").program;
        let Ok(text) = trencher::write(&before, &Limits::default()) else { continue };
        // Memory has no fixed size there: an address for which the reader finds no bound is refused.
        let Ok(Input { program: after, .. }) = trencher::read(&text, &Limits::default()) else {
            refused.push(file);
            continue;
        };
        let mut same = |what: &str, before: &str, after: &str| {
            if before != "unknown" && after != "unknown" {
                compared += 1;
                assert_eq!(after, before, "{what} {}\n{text}", file.display());
            }
        };
        same("robust", robustness(&before, &small()), robustness(&after, &small()));
        if after.properties().is_empty() {
            continue;
        }
        asked += 1;
        for model in [Model::Sc, Model::Tso] {
            let found = |p| verdict(p, model, Choice::Auto, &small());
            same("check", found(&before), found(&after));
        }
    }
    assert!(asked > 20 && compared > 60, "{asked} files with a goal, {compared} verdicts");
    assert!(refused.iter().all(|file| file.ends_with("demos/structured.tso")), "{refused:?}");
}

#[derive(serde::Deserialize)]
struct Row {
    file: String,
    command: Vec<String>,
    expect: serde_json::Value,
}

/// Recorded verdicts, if the collection lies beside this repository. What is not decided soon is counted and
/// passed over.
fn collection(name: &str, read: Reader) {
    let folder: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpora").join(name);
    let Ok(rows) = std::fs::read_to_string(folder.join("expected.jsonl")) else {
        return say(&format!("skipped: no programs at {}", folder.display()));
    };
    let (mut right, mut open, mut wrong) = (0, Vec::new(), Vec::new());
    for line in rows.lines() {
        let row: Row = serde_json::from_str(line).expect("a row");
        let words: Vec<&str> = row.command.iter().map(|w| &w[..]).collect();
        let source = std::fs::read_to_string(folder.join(&row.file)).expect("the program is there");
        let found = match words[..] {
            ["check"] => verdict(&program(read, &source), Model::Tso, Choice::Auto, &small()),
            ["check", "--model", "sc"] => verdict(&program(read, &source), Model::Sc, Choice::Auto, &small()),
            ["robust"] => robustness(&program(read, &source), &small()),
            // Other commands have their own tests; the file must be readable all the same.
            _ => {
                program(read, &source);
                continue;
            }
        };
        match found {
            "unknown" => open.push(format!("{} {}", row.file, words.join(" "))),
            found if row.expect == found => right += 1,
            found => wrong.push(format!("{} {}: {found}, not {}", row.file, words.join(" "), row.expect)),
        }
    }
    say(&format!("{name}: {right} verdicts as recorded, {} not decided: {open:?}", open.len()));
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(right > open.len(), "{right} verdicts");
}

/// Past the capture of tests that pass.
fn say(what: &str) {
    let _ = writeln!(std::io::stderr(), "{what}");
}

#[test]
fn recorded_verdicts_of_trencher_programs() {
    collection("trencher", trencher::read);
}

#[test]
fn recorded_verdicts_of_rmm_programs() {
    collection("rmm", rmm::read);
}

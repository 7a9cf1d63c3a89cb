//! `overtake compare` with peers that are small shell scripts: one that is right, one that lies, one that
//! crashes, one that hangs, one that eats memory. And with SPIN, where it is installed.
#![cfg(target_os = "linux")]

#[path = "common/ran.rs"]
mod ran;

use ran::{BAD_INPUT, Ran};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const AGREED: i32 = 0;
const DIFFER: i32 = 10;
const INTERRUPTED: i32 = 5;

/// What a contestant came to, in the only group there is.
fn outcome_of(ran: &Ran, contestant: &str) -> Value {
    let objects = ran.objects();
    assert_eq!(objects.len(), 1, "{}{}", ran.out, ran.err);
    let results = objects[0]["results"].as_array().expect("a list").clone();
    results.into_iter().find(|r| r["contestant"] == contestant).expect("it took part")
}

/// Nothing is found on the search path but what a shell needs.
fn compare(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_overtake"));
    command.arg("compare").args(args).current_dir(env!("CARGO_MANIFEST_DIR")).env_remove("COLUMNS");
    command.env("PATH", folder("path").display().to_string()).stdin(Stdio::null());
    command
}

fn run(args: &[&str]) -> Ran {
    finish(compare(args))
}

fn finish(mut command: Command) -> Ran {
    Ran::new(command.output().expect("the binary starts"))
}

fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("compare-{name}"));
    std::fs::create_dir_all(&path).expect("the folder for tests is writable");
    path
}

/// A peer that does what the script says, as the value of `--peer`.
fn peer(tool: &str, name: &str, script: &str) -> String {
    let path = folder("peers").join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("the folder for tests is writable");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("it is ours");
    format!("{tool}={}", path.display())
}

/// Trencher, if it said this to everything.
fn trencher(name: &str, sentence: &str) -> String {
    peer("trencher", name, &format!("echo '{sentence}'"))
}

const LAMPORT: &[&str] = &["--family", "lamport", "--sizes", "2"];

fn lamport(question: &str, peer: &str, more: &[&str]) -> Ran {
    run(&[LAMPORT, &["--runs", "2", "--question", question, "--peer", peer], more].concat())
}

/// Without what differs from run to run: times, ratios, memory, states.
fn steady(text: &str) -> String {
    let cells = |line: &str| {
        let kept = line.split("  ").map(str::trim).filter(|c| !c.is_empty());
        let kept = kept.filter(|c| !c.contains(" ms") && !c.contains("MiB") && *c != "little");
        kept.filter(|c| !c.starts_with(|d: char| d.is_ascii_digit())).collect::<Vec<_>>().join(" | ")
    };
    text.lines().map(|line| cells(line) + "\n").collect()
}

#[test]
fn peers_that_agree_are_a_table() {
    let right = trencher("right", "Final state IS reachable under TSO.");
    let ran = lamport("tso", &right, &[]);
    let expected = "\
program | asked | tool | answer | states | bytes each | time | memory | to overtake
lamport, N = 2 | tso | overtake | violated
trencher | violated

Tools: overtake VERSION; trencher (which tells no version)
"
    .replace("VERSION", env!("CARGO_PKG_VERSION"));
    assert_eq!((ran.code, steady(&ran.out)), (AGREED, expected), "{}{}", ran.out, ran.err);
}

#[test]
fn a_peer_that_is_refuted_by_a_replayed_run_comes_first_and_loud() {
    let liar = trencher("liar-safe", "Final state IS NOT reachable under TSO.");
    let ran = lamport("tso", &liar, &[]);
    let expected = "\
DISAGREEMENT about lamport, N = 2 (tso)
overtake says violated, trencher says safe
trencher is REFUTED: overtake's run was replayed step by step on the plain machine; the answer is violated

program | asked | tool | answer | states | bytes each | time | memory | to overtake
lamport, N = 2 | tso | overtake | violated
trencher | WRONG: safe
";
    assert_eq!(ran.code, DIFFER);
    assert!(steady(&ran.out).starts_with(expected), "{}{}", ran.out, ran.err);
}

#[test]
fn a_peer_that_sees_violations_where_there_are_none_is_judged_by_the_explicit_engine() {
    let liar = trencher("liar-violated", "Final state IS reachable under SC.");
    let ran = lamport("sc", &liar, &["--json"]);
    let disagreement = &ran.objects()[0]["disagreement"];
    assert_eq!(ran.code, DIFFER);
    assert_eq!((&disagreement["truth"], &disagreement["refuted"][0]), (&"safe".into(), &"trencher".into()));
    let because = disagreement["because"].as_str().expect("a reason");
    assert_eq!(because, "the explicit engine without reductions visited every state");
}

#[test]
fn about_robustness_the_matter_stays_open() {
    let liar = trencher("liar-robust", "Program IS NOT robust.");
    let args = ["--family", "sb-fenced", "--sizes", "2", "--runs", "1", "--question", "robust", "--json"];
    let ran = run(&[&args[..], &["--peer", &liar]].concat());
    let disagreement = &ran.objects()[0]["disagreement"];
    assert_eq!((ran.code, &disagreement["truth"]), (DIFFER, &Value::Null), "{}", ran.out);
}

#[test]
fn a_crash_is_a_crash_and_is_not_repeated() {
    let crash = peer("trencher", "crash", "echo so far; kill -SEGV $$");
    let result = outcome_of(&lamport("tso", &crash, &["--json"]), "trencher");
    assert_eq!((&result["verdict"], &result["runs"]), (&"failed".into(), &1.into()));
    assert_eq!(result["detail"], "ended by SIGSEGV: so far");
    let complaint = peer("trencher", "complaint", "echo 'unknown option: -rtso' >&2; exit 1");
    let result = outcome_of(&lamport("tso", &complaint, &["--json"]), "trencher");
    assert_eq!(result["detail"], "exit code 1: unknown option: -rtso");
}

#[test]
fn whoever_hangs_runs_out_of_time_and_is_not_tried_with_more() {
    let slow = peer("trencher", "slow", "echo 'Final state IS reachable under TSO.'; /bin/sleep 50 & wait");
    let args =
        ["--family", "lamport", "--from", "2", "--to", "3", "--question", "tso", "--timeout", "3s", "--json"];
    let ran = run(&[&args[..], &["--runs", "2", "--peer", &slow]].concat());
    let objects = ran.objects();
    let (small, large) = (&objects[0]["results"][1], &objects[1]["results"][1]);
    assert_eq!((&small["verdict"], &small["runs"]), (&"out-of-time".into(), &1.into()), "{}", ran.out);
    assert!(small["to_overtake"]["more_than"].as_f64().is_some_and(|r| r > 1.0), "{small}");
    assert_eq!(
        (&large["verdict"], &large["detail"]),
        (&"not-run".into(), &"it ran out at lamport, N = 2".into())
    );
    assert_eq!(ran.code, AGREED);
}

#[test]
fn whoever_eats_memory_runs_out_of_it() {
    let hungry = peer("trencher", "hungry", "exec /usr/bin/tail /dev/zero");
    let result = outcome_of(&lamport("tso", &hungry, &["--json", "--memory", "192MiB"]), "trencher");
    assert_eq!(result["verdict"], "out-of-memory", "{result}");
}

#[test]
fn whoever_gets_no_thread_lacks_memory_too() {
    let script = "echo \"terminate called after throwing an instance of 'std::system_error'\" >&2
        echo '  what():  Resource temporarily unavailable' >&2; kill -ABRT $$";
    let result = outcome_of(&lamport("tso", &peer("trencher", "threads", script), &["--json"]), "trencher");
    assert_eq!(result["verdict"], "out-of-memory", "{result}");
}

#[test]
fn trencher_sees_final_states_only_where_it_is_asked_for_them() {
    let text = "thread p\ninitial q\nfinal r\ntransition q r write 1 0\nend\n";
    let file = folder("trencher").join("final.txt");
    std::fs::write(&file, text).expect("the folder for tests is writable");
    // It does not know the word, as the version for robustness does not.
    let script = "while read word state; do case $word in final) echo \"syntax error: $word\"; exit 1;; esac; done < $2
        case $1 in -r) echo 'Program IS robust.';; *) echo 'Computed fences for enforcing robustness (0 total):';; esac";
    let master = peer("trencher", "master", script);
    let file = file.display().to_string();
    let verdict = |question: &str| {
        let ran = run(&["--runs", "1", "--question", question, "--json", "--peer", &master, &file]);
        outcome_of(&ran, "trencher")["verdict"].clone()
    };
    assert_eq!([verdict("robust"), verdict("fences")], ["robust", "0 fences"]);
    assert_eq!(verdict("tso"), "failed");
}

#[test]
fn large_diamonds_go_to_trencher() {
    let right = trencher("right-large", "Final state IS reachable under TSO.");
    let args = ["--family", "diamond", "--sizes", "300", "--runs", "1", "--question", "tso", "--json"];
    let ran = run(&[&args[..], &["--peer", &right]].concat());
    assert_eq!(outcome_of(&ran, "trencher")["verdict"], "violated");
}

#[test]
fn what_cannot_be_exported_says_why() {
    let right = trencher("right-too", "Final state IS NOT reachable under SC.");
    let cbmc = peer("cbmc", "cbmc", "exit 0");
    let args = ["--family", "burns", "--sizes", "3", "--runs", "1", "--question", "sc,tso", "--json"];
    let ran = run(&[&args[..], &["--peer", &right, "--peer", &cbmc]].concat());
    let objects = ran.objects();
    let trencher = &objects[0]["results"][1];
    assert_eq!(trencher["verdict"], "not-run");
    assert!(
        trencher["detail"].as_str().expect("a reason").contains("no conjunction of locations"),
        "{trencher}"
    );
    let cbmc = &objects[1]["results"][2];
    assert_eq!((&cbmc["contestant"], &cbmc["verdict"]), (&"cbmc".into(), &"not-run".into()));
    assert_eq!(cbmc["detail"], "it reads C, which overtake does not write");
}

#[test]
fn litmus_tests_go_to_herd_as_they_stand() {
    let text = "X86 SB\n{ }\n P0 | P1 ;\n MOV [x],$1 | MOV [y],$1 ;\n MOV EAX,[y] | MOV EAX,[x] ;\nexists (0:EAX=0 /\\ 1:EAX=0)\n";
    let test = folder("litmus").join("sb.litmus");
    std::fs::write(&test, text).expect("the folder for tests is writable");
    // It answers if it is given the very file, and an observation that is wrong under SC.
    let script = "for f; do :; done\nread arch name < $f\necho \"Test $name Allowed\"\necho 'States 4'\necho \"Observation $name Sometimes 1 3\"";
    let herd = peer("herd7", "herd7", script);
    let test = test.display().to_string();
    let args = ["--runs", "1", "--question", "sc,tso", "--json", "--peer", &herd, &test];
    let ran = run(&args);
    let objects = ran.objects();
    assert_eq!(
        (ran.code, &objects[0]["disagreement"]["refuted"][0]),
        (DIFFER, &"herd7".into()),
        "{}",
        ran.out
    );
    assert_eq!(objects[1]["results"][1]["verdict"], "violated");
    assert!(objects[1]["disagreement"].is_null());
    // What it says when it is asked for its version has its name in front, and only then.
    assert!(objects[1]["tools"][1].as_str().is_some_and(|tool| tool.starts_with("herd7 ")), "{}", ran.out);
}

#[test]
fn results_are_written_whole() {
    let liar = trencher("liar-kept", "Final state IS NOT reachable under TSO.");
    let output = folder("results");
    std::fs::remove_dir_all(&output).expect("it is ours");
    let place = output.display().to_string();
    let args = ["--family", "lamport", "--from", "2", "--to", "3", "--runs", "1", "--question", "tso"];
    let ran = run(&[&args[..], &["--peer", &liar, "-o", &place]].concat());
    assert_eq!(ran.code, DIFFER);
    assert!(ran.out.ends_with("compare.md\n"), "{}", ran.out);
    let entries = output.read_dir().expect("it was made");
    let mut names: Vec<String> =
        entries.map(|e| e.expect("it can be listed").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    let expected = [
        "compare-disagreement-1.tso",
        "compare-disagreement-1.txt",
        "compare-disagreement-2.tso",
        "compare-disagreement-2.txt",
        "compare-lamport.svg",
        "compare.csv",
        "compare.md",
        "compare.ron",
    ];
    assert_eq!(names, expected);
    let read = |name: &str| std::fs::read_to_string(output.join(name)).expect("it is there");
    assert_eq!(read("compare.csv").lines().count(), 5);
    assert!(read("compare.md").contains("## Disagreements\n\n- **DISAGREEMENT about lamport, N = 2 (tso)**"));
    assert!(read("compare-disagreement-1.txt").contains("\nfinal "));
}

#[test]
fn ctrl_c_keeps_what_is_finished() {
    let output = folder("interrupted");
    let (csv, begun) = (output.join("compare.csv"), output.join("begun"));
    for old in [&csv, &begun] {
        let _ = std::fs::remove_file(old);
    }
    // The first question is over in a moment, the second hangs.
    let script = format!(
        "case $1 in -r) echo > '{}'; /bin/sleep 50;; *) echo 'Final state IS reachable under TSO.';; esac",
        begun.display()
    );
    let slow = peer("trencher", "slow-robust", &script);
    let place = output.display().to_string();
    let mut command =
        compare(&[LAMPORT, &["--question", "tso,robust", "--peer", &slow, "-o", &place]].concat());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
    let patience = Instant::now() + Duration::from_secs(60);
    while !begun.exists() && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(20));
    }
    let kill = Command::new("/bin/sh").arg("-c").arg(format!("kill -INT {}", child.id())).status();
    assert!(kill.is_ok_and(|s| s.success()));
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(INTERRUPTED), "{text}");
    assert!(text.contains("Interrupted: rows are missing."), "{text}");
    let rows = std::fs::read_to_string(csv).expect("it was written");
    assert!(rows.contains("lamport,2,tso,trencher,2,violated"), "{rows}");
}

/// Reading a large program and writing it for the others takes many seconds.
#[test]
fn ctrl_c_ends_what_comes_before_the_first_run() {
    let one = |k: usize| format!("load r, [x]\nif r == {k} goto l{k}\nstore [y], r\nl{k}:\n");
    let body: String = (0..300_000).map(one).collect();
    let source = format!("shared x, y\nthread p\n{body}end\nthread q\nstore [x], 1\nend\nnever [y] == 7\n");
    let file = folder("large").join("large.tso");
    std::fs::write(&file, source).expect("the folder for tests is writable");
    let peer = trencher("never-run", "Final state IS reachable under TSO.");
    let mut command = compare(&[&file.display().to_string(), "--peer", &peer]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
    std::thread::sleep(Duration::from_millis(300));
    let kill = Command::new("/bin/sh").arg("-c").arg(format!("kill -INT {}", child.id())).status();
    assert!(kill.is_ok_and(|s| s.success()));
    let start = Instant::now();
    let output = child.wait_with_output().expect("it ends");
    assert!(start.elapsed() < Duration::from_secs(8), "it took {:?}", start.elapsed());
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(INTERRUPTED), "{text}");
}

#[test]
fn wrong_usage_is_told() {
    let cases: [(&[&str], &str); 7] = [
        (&[], "nothing to compare on"),
        (&["--family", "nobody"], "there is no family `nobody`; there are lamport, "),
        (&["--family", "lamport", "--from", "5", "--to", "2"], "--from 5 --to 2 are not 1 to 1000 sizes"),
        (
            &["--family", "lamport", "--tools", "hammer"],
            "there is no tool `hammer`; there are overtake, spin, ",
        ),
        (&["--family", "lamport", "--tools", "herd7"], "herd7 is not on the search path"),
        (&["--family", "lamport", "--peer", "hammer=/bin/sh"], "`hammer` is no peer"),
        (&["--family", "lamport", "--peer", "spin=/nowhere"], "is no file that can be run"),
    ];
    for (args, message) in cases {
        let ran = run(args);
        assert_eq!(ran.code, BAD_INPUT, "{args:?}: {}", ran.err);
        assert!(ran.err.contains(message), "{args:?}: {}", ran.err);
    }
}

#[test]
fn without_peers_overtake_is_alone_and_says_so() {
    let ran = run(&["--family", "lamport", "--sizes", "2", "--runs", "1", "--threads", "1,2"]);
    assert!(ran.err.starts_with("warning: no peer was found"), "{}", ran.err);
    assert!(ran.out.contains("overtake-2-workers") && ran.code == AGREED, "{}", ran.out);
}

#[test]
fn engines_race_each_other() {
    let ran = run(&[LAMPORT, &["--engines", "--runs", "1", "--json"]].concat());
    assert_eq!((ran.code, ran.err.as_str()), (AGREED, ""), "{}", ran.out);
    for engine in ["overtake", "overtake-lazy", "overtake-explicit"] {
        assert_eq!(outcome_of(&ran, engine)["verdict"], "violated", "{engine}");
    }
    let ran = run(&[LAMPORT, &["--engines", "--tools", "spin"]].concat());
    assert_eq!(ran.code, BAD_INPUT, "{}", ran.out);
}

#[test]
fn families_may_come_from_a_folder() {
    let args = ["--family", "mcs", "--sizes", "2", "--runs", "1", "--question", "sc"];
    let ran = run(&[&args[..], &["--programs", "programs"]].concat());
    assert_eq!(ran.code, AGREED, "{}", ran.err);
    let ran = run(&[&args[..], &["--programs", "nowhere"]].concat());
    assert_eq!(ran.code, BAD_INPUT);
    assert!(ran.err.contains("nowhere/mcs/mcs.tso"), "{}", ran.err);
}

#[test]
fn spin_is_generated_compiled_and_run() {
    if Command::new("spin").arg("-V").output().is_err()
        || Command::new("gcc").arg("--version").output().is_err()
    {
        return eprintln!("skipped: `spin` and `gcc` are not both here");
    }
    let args = ["--family", "lamport", "--sizes", "2", "--runs", "2", "--question", "sc", "--json"];
    let mut command = compare(&[&args[..], &["--tools", "overtake,spin"]].concat());
    command.env("PATH", std::env::var_os("PATH").expect("there is a search path"));
    let ran = finish(command);
    let result = outcome_of(&ran, "spin");
    assert_eq!(
        (ran.code, &result["verdict"], &result["states"]),
        (AGREED, &"safe".into(), &83.into()),
        "{}",
        ran.out
    );
    assert!(result["preparation_ms"].as_f64().is_some_and(|ms| ms > 0.0));
    let commands = result["commands"].as_array().expect("a list");
    assert_eq!((&commands[0], commands.len()), (&"spin -a program.pml".into(), 4));
}

//! Do several processes on real sockets answer like one, and what becomes of them when one dies, hangs, or is another?
//! Everything runs on this machine: on loopback, and in network namespaces of its own where such can be made.
//!
//! `cargo test --features distributed --test cluster`

#[path = "common/ran.rs"]
mod ran;

use ran::{BAD_INPUT, Ran, UNKNOWN, VIOLATED, command, file, overtake};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const TOKEN: &str = "known-to-few";
/// Within so long a process that lacks another has to end.
const SOON: Duration = Duration::from_secs(10);
/// A search that takes a while.
const LONG: &[&str] = &["check", "programs/burns/burns.tso", "-DN=7", "--model", "sc", "--timeout", "120s"];

/// A hosts file for so many processes of this machine.
fn hosts(name: &str, count: usize) -> (PathBuf, Vec<u16>) {
    let held: Vec<TcpListener> =
        (0..count).map(|_| TcpListener::bind(("127.0.0.1", 0)).expect("a port is free")).collect();
    let ports: Vec<u16> = held.iter().map(|l| l.local_addr().expect("it has one").port()).collect();
    let lines: String = ports.iter().map(|port| format!("127.0.0.1:{port}\n")).collect();
    (file(&format!("hosts-{name}"), format!("token {TOKEN}\n{lines}").as_bytes()), ports)
}

/// One process of several.
fn start(args: &[&str], hosts: &Path, process: usize) -> Child {
    let mut own = command(args);
    own.arg("--hosts").arg(hosts).args(["--process", &process.to_string()]);
    own.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts")
}

fn start_all(args: &[&str], hosts: &Path, count: usize) -> Vec<Child> {
    (0..count).map(|process| start(args, hosts, process)).collect()
}

fn end(child: Child) -> Ran {
    Ran::new(child.wait_with_output().expect("it ends"))
}

fn ends(children: Vec<Child>) -> Vec<Ran> {
    children.into_iter().map(end).collect()
}

/// All of them end soon, as unknown, and the first says why.
fn assert_lost(children: Vec<Child>, why: &str) {
    let begun = Instant::now();
    let ended = ends(children);
    assert!(begun.elapsed() < SOON, "it took {:?}", begun.elapsed());
    for (k, ran) in ended.iter().enumerate() {
        assert_eq!(ran.code, UNKNOWN, "process {k}: {}{}", ran.out, ran.err);
        assert!(!ran.err.contains("panic") && !ran.err.contains("bug"), "process {k}: {}", ran.err);
    }
    let first = &ended[0];
    assert!(first.out.starts_with("unknown") || first.out.is_empty(), "{}", first.out);
    let said = format!("{}{}", first.out, first.err).replace('\n', " ");
    assert!(said.contains(why), "{said}");
}

/// Long enough for a search of `LONG` to be under way.
fn under_way() {
    std::thread::sleep(Duration::from_millis(1500));
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([name, &child.id().to_string()]).status();
    assert!(sent.expect("kill is there").success());
}

/// The answer of so many processes, which share a search from the start.
fn together(count: usize, args: &[&str]) -> Ran {
    let count = count.to_string();
    overtake(&[&["cluster", "-n", &count, "--"], args, &["--json", "--share-after", "0"]].concat())
}

/// Counts of states where all are visited, and verdicts everywhere.
#[test]
fn answers_and_counts_do_not_depend_on_the_number_of_processes() {
    let questions: &[&[&str]] = &[
        &["check", "programs/peterson/peterson.tso"],
        &["check", "programs/dekker/dekker-loop-lean.tso", "--engine", "explicit"],
        &["check", "programs/lamport/lamport1.tso", "-DN=4", "--model", "sc"],
        &["check", "programs/mcs/mcs.tso", "-DN=4", "--model", "sc"],
        &["robust", "programs/peterson/peterson.tso"],
        &["robust", "programs/peterson/peterson-fenced.tso"],
        &["fence", "programs/dekker/simple.tso"],
        &["outcomes", "programs/litmus/sb.tso"],
    ];
    for args in questions {
        let one = overtake(&[args, &["--json", "--threads", "1"][..]].concat());
        let told = |ran: &Ran| ran.objects().pop().unwrap_or_default();
        let expected = told(&one);
        for count in 1..=4 {
            let several = together(count, args);
            let found = told(&several);
            let what = format!("{args:?} with {count} processes: {}{}", several.out, several.err);
            assert_eq!(several.code, one.code, "{what}");
            for field in ["verdict", "cost", "observation", "states_found"] {
                assert_eq!(found[field], expected[field], "{field}, {what}");
            }
            if expected["engine"] == "explicit" && one.code == 0 {
                assert_eq!(found["states"], expected["states"], "{what}");
            }
        }
    }
}

/// What one process sends at the beginning of a search must not be lost on another that has not begun it.
#[test]
fn nothing_is_lost_between_searches() {
    let args = ["check", "programs/dekker/dekker-loop-lean.tso", "--engine", "explicit"];
    let alone = overtake(&[&args[..], &["--json", "--threads", "1"]].concat());
    for _ in 0..10 {
        let several = together(4, &args);
        assert_eq!(several.objects()[0]["states"], alone.objects()[0]["states"], "{}", several.out);
    }
}

#[test]
fn a_run_that_was_found_together_is_replayed() {
    let ran = together(3, &["check", "programs/eisenberg-mcguire/eisenberg-mcguire.tso"]);
    assert_eq!(ran.code, VIOLATED, "{}", ran.err);
    let answer = file("together.json", ran.out.as_bytes());
    let answer = answer.display().to_string();
    let replayed = overtake(&["replay", "programs/eisenberg-mcguire/eisenberg-mcguire.tso", &answer]);
    assert_eq!(replayed.code, 0, "{}{}", replayed.out, replayed.err);
}

#[test]
fn process_0_tells_the_answer_and_all_have_its_code() {
    let (hosts, _) = hosts("codes", 3);
    let ended =
        ends(start_all(&["check", "programs/peterson/peterson.tso", "--share-after", "0"], &hosts, 3));
    assert_eq!(ended.iter().map(|ran| ran.code).collect::<Vec<_>>(), [VIOLATED; 3]);
    assert!(ended[0].out.starts_with("violated\n"), "{}", ended[0].out);
    assert!(ended[1..].iter().all(|ran| ran.out.is_empty() && ran.err.is_empty()));
}

#[test]
fn a_process_that_is_killed_ends_the_run() {
    for victim in [0, 1] {
        let (hosts, _) = hosts(&format!("killed-{victim}"), 3);
        let mut all = start_all(LONG, &hosts, 3);
        under_way();
        let mut gone = all.remove(victim);
        gone.kill().expect("it can be killed");
        gone.wait().expect("it ends");
        assert_lost(all, &format!("process {victim} ("));
    }
}

#[test]
fn a_process_that_is_stopped_ends_the_run_and_ends_when_it_goes_on() {
    let (hosts, _) = hosts("stopped", 2);
    let mut all = start_all(LONG, &hosts, 2);
    under_way();
    let stopped = all.pop().expect("there are two");
    signal(&stopped, "-STOP");
    assert_lost(all, "process 1 (127.0.0.1:");
    signal(&stopped, "-CONT");
    // It may first hear how the run has ended, or first that it was given up.
    assert_lost(vec![stopped], "");
}

#[test]
fn ctrl_c_at_any_process_ends_all() {
    let (hosts, _) = hosts("cancelled", 3);
    let all = start_all(LONG, &hosts, 3);
    under_way();
    signal(&all[2], "-INT");
    assert_lost(all, "cancelled");
}

#[test]
fn a_limit_is_a_limit_for_all() {
    let ran =
        together(2, &["check", "programs/burns/burns.tso", "-DN=7", "--model", "sc", "--timeout", "2s"]);
    let answer = &ran.objects()[0];
    assert_eq!((ran.code, &answer["verdict"]), (UNKNOWN, &Value::from("unknown")), "{}", ran.out);
    let ran =
        together(2, &["check", "programs/burns/burns.tso", "-DN=6", "--model", "sc", "--states", "1000"]);
    assert_eq!((ran.code, &ran.objects()[0]["limit"]), (UNKNOWN, &Value::from("states")), "{}", ran.out);
}

#[test]
fn another_program_or_another_question_is_noticed() {
    let (list, _) = hosts("another", 2);
    let one = start(&["check", "programs/peterson/peterson.tso"], &list, 0);
    let other = start(&["check", "programs/peterson/peterson-fenced.tso"], &list, 1);
    assert_lost(vec![one, other], "has another program");
    let (list, _) = hosts("question", 2);
    let one = start(&["check", "programs/peterson/peterson.tso"], &list, 0);
    let other = start(&["check", "programs/peterson/peterson.tso", "--no-por"], &list, 1);
    assert_lost(vec![one, other], "was asked something else");
}

#[test]
fn another_token_keeps_a_process_out() {
    let (list, _) = hosts("token", 2);
    let text = std::fs::read_to_string(&list).expect("it was written");
    let other = file("hosts-other-token", text.replace(TOKEN, "not-the-same").as_bytes());
    let first = start(&["check", "programs/peterson/peterson.tso", "--timeout", "5s"], &list, 0);
    let second = start(&["check", "programs/peterson/peterson.tso", "--timeout", "5s"], &other, 1);
    assert_lost(vec![second], "process 0 (127.0.0.1:");
    assert_lost(vec![first], "the time limit of 5 s was reached");
}

/// The visitor's side of a greeting, by somebody who has the token and another version.
#[test]
fn another_version_is_noticed() {
    let (hosts, ports) = hosts("version", 2);
    let first = start(&["check", "programs/peterson/peterson.tso"], &hosts, 0);
    let begun = Instant::now();
    let mut stream = loop {
        match TcpStream::connect(("127.0.0.1", ports[0])) {
            Ok(stream) => break stream,
            Err(error) => assert!(begun.elapsed() < SOON, "{error}"),
        }
    };
    let mut lines = BufReader::new(stream.try_clone().expect("it can be")).lines();
    writeln!(stream, "overtake-cluster-1 0.0.1 control 1 0 2 abc").expect("it is there");
    let answer = lines.next().expect("a line").expect("it can be read");
    let words: Vec<&str> = answer.split(' ').collect();
    let mut digest = Sha256::new();
    digest.update(Sha256::digest(TOKEN.as_bytes()));
    digest.update(format!("guest abc {} control 1", words[2]));
    let proof: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    writeln!(stream, "{proof} whatever").expect("it is there");
    assert_lost(vec![first], "process 1 is overtake 0.0.1");
}

#[test]
fn strangers_are_left_alone() {
    let (hosts, ports) = hosts("strangers", 2);
    let first = start(&["check", "programs/peterson/peterson.tso"], &hosts, 0);
    let begun = Instant::now();
    for said in ["", "GET / HTTP/1.1\r\n\r\n", "overtake-cluster-1 0.1.0 data 1 0 2 abc\nno proof\n"] {
        loop {
            match TcpStream::connect(("127.0.0.1", ports[0])) {
                Ok(mut stream) => break drop(stream.write_all(said.as_bytes())),
                Err(error) => assert!(begun.elapsed() < SOON, "{error}"),
            }
        }
    }
    let second = start(&["check", "programs/peterson/peterson.tso"], &hosts, 1);
    assert_eq!(ends(vec![first, second]).iter().map(|ran| ran.code).collect::<Vec<_>>(), [VIOLATED; 2]);
}

#[test]
fn what_cannot_be_is_said_before_anything_is_searched() {
    let (list, ports) = hosts("mistakes", 2);
    let list = list.display().to_string();
    let wrong = |more: &[&str], why: &str| {
        let ran = overtake(&[&["check", "programs/peterson/peterson.tso"], more].concat());
        assert_eq!(ran.code, BAD_INPUT, "{more:?}: {}", ran.err);
        assert!(ran.err.contains(why), "{more:?}: {}", ran.err);
    };
    wrong(&["--hosts", &list, "--process", "2"], "names 2 processes, counted from 0");
    wrong(&["--hosts", "nowhere", "--process", "0"], "nowhere: ");
    wrong(&["--hosts", &list, "--process", "0", "--hang"], "this is for one process");
    wrong(&["--hosts", &list, "--process", "0", "--engine", "past"], "this is for one process");
    wrong(&["--hosts", &list, "--process", "0", "--threads", "2"], "each process has one worker");
    wrong(&["programs/litmus/sb.tso", "--hosts", &list, "--process", "0"], "one file at a time");
    let typo = file("hosts-typo", b"127.0.0.1:2101\n127.0.0.1;2102\n").display().to_string();
    wrong(&["--hosts", &typo, "--process", "0"], "hosts-typo:2:1: `127.0.0.1;2102` has no port");
    let _taken = TcpListener::bind(("127.0.0.1", ports[0])).expect("it was free");
    wrong(&["--hosts", &list, "--process", "0"], "cannot listen on 127.0.0.1:");
    let ran = overtake(&["cluster", "-n", "2", "--", "show", "programs/litmus/sb.tso"]);
    assert_eq!(ran.code, BAD_INPUT, "{}", ran.err);
}

/// Two hosts, each in a network namespace of its own, with one wire between them.
struct Namespaces(String);

impl Namespaces {
    fn make() -> Option<Namespaces> {
        let own = Namespaces(format!("overtake{}", std::process::id()));
        let Namespaces(name) = &own;
        let (a, b) = (format!("{name}a"), format!("{name}b"));
        let ip = |args: &str| {
            let run = Command::new("ip").args(args.split(' ')).stderr(Stdio::null()).status();
            run.is_ok_and(|status| status.success())
        };
        let made = ip(&format!("netns add {a}"))
            && ip(&format!("netns add {b}"))
            && ip(&format!("-n {a} link add wire type veth peer name wire netns {b}"))
            && ip(&format!("-n {a} addr add 10.77.0.1/24 dev wire"))
            && ip(&format!("-n {b} addr add 10.77.0.2/24 dev wire"))
            && ip(&format!("-n {a} link set wire up"))
            && ip(&format!("-n {b} link set wire up"));
        made.then_some(own)
    }

    fn start(&self, side: char, args: &[&str]) -> Child {
        let mut within = Command::new("ip");
        within
            .args(["netns", "exec", &format!("{}{side}", self.0), env!("CARGO_BIN_EXE_overtake")])
            .args(args);
        within.current_dir(env!("CARGO_MANIFEST_DIR")).stdout(Stdio::piped()).stderr(Stdio::piped());
        within.spawn().expect("ip is there")
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for side in ['a', 'b'] {
            let _ = Command::new("ip")
                .args(["netns", "del", &format!("{}{side}", self.0)])
                .stderr(Stdio::null())
                .status();
        }
    }
}

#[test]
fn hosts_with_networks_of_their_own_answer_together() {
    let Some(namespaces) = Namespaces::make() else {
        println!("skipped: no network namespaces can be made here");
        return;
    };
    let list =
        file("hosts-namespaces", format!("token {TOKEN}\n10.77.0.1:2101\n10.77.0.2:2101\n").as_bytes());
    let list = list.display().to_string();
    let args = |process| {
        [
            "check",
            "programs/lamport/lamport1.tso",
            "-DN=4",
            "--share-after",
            "0",
            "--hosts",
            &list,
            "--process",
            process,
        ]
    };
    let both = vec![namespaces.start('a', &args("0")), namespaces.start('b', &args("1"))];
    let ended = ends(both);
    assert_eq!(ended.iter().map(|ran| ran.code).collect::<Vec<_>>(), [VIOLATED; 2], "{}", ended[0].err);
}

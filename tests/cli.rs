//! What does a user see? The built binary with real arguments: whole outputs, exit codes, and what scripts rely on.
//! Nothing here asks how long anything takes.

use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const VIOLATED: i32 = 10;
const UNKNOWN: i32 = 5;
const BAD_INPUT: i32 = 2;

/// What a run printed, and how it ended.
struct Ran {
    code: i32,
    out: String,
    err: String,
}

impl Ran {
    fn new(output: Output) -> Ran {
        let text = |bytes| String::from_utf8(bytes).expect("output is text");
        let code = output.status.code().expect("no signal ended it");
        Ran { code, out: text(output.stdout), err: text(output.stderr) }
    }

    fn first_line(&self) -> &str {
        self.out.lines().next().unwrap_or_default()
    }

    /// The JSON objects, one per line.
    fn objects(&self) -> Vec<Value> {
        let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        self.out.lines().map(parse).collect()
    }
}

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_overtake"));
    command.args(args).current_dir(env!("CARGO_MANIFEST_DIR")).env_remove("COLUMNS");
    command
}

fn overtake(args: &[&str]) -> Ran {
    Ran::new(command(args).stdin(Stdio::null()).output().expect("the binary starts"))
}

/// With `input` on standard input.
fn fed(args: &[&str], input: &[u8]) -> Ran {
    let mut child = command(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    // Who does not read to the end is free not to.
    let _ = child.stdin.take().expect("it is piped").write_all(input);
    Ran::new(child.wait_with_output().expect("the binary ends"))
}

/// A program of the native language on standard input.
fn check(source: &str, more: &[&str]) -> Ran {
    fed(&[&["check", "-", "--from", "tso"], more].concat(), source.as_bytes())
}

/// A file of our own, in the folder that cargo keeps for tests.
fn file(name: &str, contents: &[u8]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, contents).expect("the folder for tests is writable");
    path
}

const SB: &str = "programs/litmus/sb.tso";
const MP: &str = "programs/litmus/mp.tso";
/// Far more states than any test here waits for.
const LARGE: &str = "programs/lamport/lamport1-fenced.tso";
const LARGE_DEFINE: &str = "-DN=8";

#[test]
fn a_violation_comes_first_and_with_its_run() {
    let ran = overtake(&["check", SB]);
    assert_eq!((ran.code, ran.first_line(), &ran.err[..]), (VIOLATED, "violated", ""));
    assert!(ran.out.contains("A run of 6 events under TSO:"), "{}", ran.out);
    assert!(ran.out.contains("store [x], 1"), "{}", ran.out);
}

#[test]
fn safe_is_said_with_its_reason() {
    let ran = overtake(&["check", "--model", "sc", SB]);
    assert_eq!((ran.code, ran.first_line(), &ran.err[..]), (0, "safe", ""));
    assert_eq!(ran.out.lines().count(), 2, "{}", ran.out);
}

#[test]
fn quiet_prints_verdicts_alone() {
    assert_eq!(overtake(&["check", "-q", SB]).out, "violated\n");
    assert_eq!(overtake(&["check", "--quiet", MP]).out, "safe\n");
    let ran = overtake(&["check", "--quiet", "--states", "10", LARGE, LARGE_DEFINE]);
    assert_eq!((&ran.out[..], ran.code), ("unknown\n", UNKNOWN));
}

#[test]
fn verbose_says_what_it_cost() {
    let ran = overtake(&["check", "-v", MP]);
    for word in ["engine", "states", "transitions", "workers", "time", "buffers", "peak memory"] {
        assert!(ran.out.lines().any(|l| l.starts_with(word)), "{word} is missing: {}", ran.out);
    }
    let sc = overtake(&["check", "-v", "--model", "sc", MP]);
    assert!(!sc.out.contains("buffers"), "{}", sc.out);
}

#[test]
fn the_worst_of_several_files_decides_and_their_order_is_kept() {
    let ran = overtake(&["check", "-q", MP, SB, MP]);
    assert_eq!(ran.out, format!("{MP}: safe\n{SB}: violated\n{MP}: safe\n"));
    assert_eq!(ran.code, VIOLATED);
    let ran = overtake(&["check", "-q", "--states", "1", "programs/litmus/wrc.tso", MP]);
    assert_eq!(ran.code, UNKNOWN, "{}", ran.out);
    let ran = overtake(&["check", "-q", "missing.tso", SB]);
    assert_eq!((ran.code, &ran.out[..]), (BAD_INPUT, &format!("{SB}: violated\n")[..]));
}

#[test]
fn json_has_one_object_per_file_with_the_promised_fields() {
    let ran = overtake(&["check", "--json", SB, MP]);
    let objects = ran.objects();
    assert_eq!((ran.code, objects.len()), (VIOLATED, 2));
    for object in &objects {
        for field in [
            "tool",
            "version",
            "file",
            "command",
            "model",
            "verdict",
            "engine",
            "iterations",
            "states",
            "time_ms",
            "peak_kb",
            "reason",
        ] {
            assert!(!object[field].is_null(), "{field} is missing: {object}");
        }
    }
    let (sb, mp) = (&objects[0], &objects[1]);
    assert_eq!((&sb["file"], &sb["verdict"]), (&Value::from(SB), &Value::from("violated")));
    assert_eq!((&mp["file"], &mp["verdict"]), (&Value::from(MP), &Value::from("safe")));
    assert_eq!(
        (&sb["tool"], &sb["command"], &sb["model"]),
        (&"overtake".into(), &"check".into(), &"tso".into())
    );
    let trace = sb["trace"].as_array().expect("a violation has a trace");
    let kinds: Vec<&str> = trace.iter().map(|e| e["kind"].as_str().expect("a word")).collect();
    let known = ["load", "store", "flush", "fence", "assign", "assume", "locked"];
    assert!(kinds.iter().all(|k| known.contains(k)), "{kinds:?}");
    assert_eq!(kinds.iter().filter(|k| **k == "store").count(), 2);
    let store = trace.iter().find(|e| e["kind"] == "store").expect("there are two");
    for field in ["thread", "line", "text", "address", "value"] {
        assert!(!store[field].is_null(), "{field} is missing: {store}");
    }
}

#[test]
fn pipes_get_no_colour_and_no_progress() {
    let ran = overtake(&["check", SB, MP, "missing.tso"]);
    assert!(!ran.out.contains('\x1b') && !ran.err.contains('\x1b'), "{}{}", ran.out, ran.err);
    let ran = overtake(&["check", "--timeout", "1500ms", LARGE, LARGE_DEFINE]);
    assert_eq!((ran.code, &ran.err[..]), (UNKNOWN, ""));
    let colored = overtake(&["check", "--color", "always", SB]);
    assert!(colored.out.contains('\x1b'), "{}", colored.out);
}

#[test]
fn wrong_usage_ends_with_two() {
    for args in [
        &[][..],
        &["check"],
        &["chek", SB],
        &["check", "--no-such-option", SB],
        &["check", "--model", "arm", SB],
        &["check", "--timeout", "soon", SB],
        &["check", "--timeout", "-1s", SB],
        &["check", "--memory", "0", SB],
        &["check", "--threads", "0", SB],
        &["check", "--buffer", "-1", SB],
        &["check", "--buffer", "2", "--model", "sc", SB],
        &["check", "-q", "-v", SB],
        &["check", "-D", "N", SB],
        &["check", "-DN=1e9", SB],
        &["convert", SB],
        &["convert", SB, "--to", "cobol"],
        &["completions", "abacus"],
    ] {
        let ran = overtake(args);
        assert_eq!((ran.code, &ran.out[..]), (BAD_INPUT, ""), "{args:?}");
        assert!(!ran.err.is_empty(), "{args:?}");
    }
}

#[test]
fn help_and_version_are_no_errors() {
    assert_eq!(overtake(&["--help"]).code, 0);
    assert_eq!(overtake(&["check", "--help"]).code, 0);
    let version = overtake(&["--version"]);
    assert_eq!((version.code, &version.out[..]), (0, concat!("overtake ", env!("CARGO_PKG_VERSION"), "\n")));
}

#[test]
fn files_that_cannot_be_read_are_bad_input() {
    for (path, says) in [
        ("missing.tso", "missing.tso: "),
        ("programs", "the name does not say what format this is"),
        ("Cargo.toml", "the name does not say what format this is"),
        ("-", "standard input needs --from"),
    ] {
        let ran = overtake(&["check", path]);
        assert_eq!((ran.code, &ran.out[..]), (BAD_INPUT, ""), "{path}");
        assert!(ran.err.starts_with("error: ") && ran.err.contains(says), "{path}: {}", ran.err);
    }
    let folder = overtake(&["check", "--from", "tso", "programs"]);
    assert_eq!(folder.code, BAD_INPUT, "{}", folder.err);
}

#[test]
fn standard_input_is_a_file_like_any_other() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(SB);
    let source = std::fs::read(path).expect("it is bundled");
    let ran = fed(&["check", "-", "--from", "tso", "-q"], &source);
    assert_eq!((&ran.out[..], ran.code), ("violated\n", VIOLATED));
}

#[test]
fn parameters_are_defined_on_the_command_line() {
    let states = |define: &[&str]| {
        let args = [&["check", "--json", "--model", "sc", "programs/lamport/lamport1.tso"], define].concat();
        overtake(&args).objects()[0]["states"].as_u64().expect("a count")
    };
    assert!(states(&["-D", "N=2"]) < states(&["-DN=3"]));
    let unknown = overtake(&["check", SB, "-DN=2"]);
    assert_eq!((unknown.code, &unknown.out[..]), (BAD_INPUT, ""), "{}", unknown.err);
    assert!(unknown.err.contains('N'), "{}", unknown.err);
}

#[test]
fn a_file_without_a_property_has_nothing_to_check() {
    let ran = check("shared x\nthread p\n    store [x], 1\nend\n", &[]);
    assert_eq!((ran.code, &ran.out[..]), (BAD_INPUT, ""));
    assert!(ran.err.contains("nothing to check"), "{}", ran.err);
}

#[test]
fn a_vacuous_property_is_safe_with_a_warning() {
    let source = "shared x\nthread p\n    halt\nl:  load r, [x]\nend\nforbid p@l\n";
    let ran = check(source, &["-q"]);
    assert_eq!((ran.code, &ran.out[..]), (0, "safe\n"));
    assert!(ran.err.contains("warning") && ran.err.contains("vacuous"), "{}", ran.err);
    let json = &check(source, &["--json"]).objects()[0];
    assert_eq!(json["warnings"].as_array().map(Vec::len), Some(1), "{json}");
}

#[test]
fn a_bound_on_buffers_makes_no_proof_unless_it_was_never_needed() {
    let source = "shared x, y\nthread p\n    store [x], 1\n    store [x], 2\n    load r, [y]\nend\n\
                  thread q\n    load r, [x]\nend\nforbid q.r == 3\n";
    let too_small = check(source, &["--buffer", "1"]);
    assert_eq!((too_small.code, too_small.first_line()), (UNKNOWN, "unknown"));
    assert!(too_small.out.contains('1') && too_small.out.contains("buffer"), "{}", too_small.out);
    let enough = check(source, &["--buffer", "2"]);
    assert_eq!((enough.code, enough.first_line()), (0, "safe"));
    let violated = overtake(&["check", "-q", "--buffer", "1", SB]);
    assert_eq!((violated.code, &violated.out[..]), (VIOLATED, "violated\n"));
}

#[test]
fn limits_end_in_unknown_and_are_named() {
    for (option, value, name) in
        [("--timeout", "1ms", "time"), ("--states", "10", "states"), ("--memory", "16MiB", "memory")]
    {
        let ran = overtake(&["check", "--json", option, value, LARGE, LARGE_DEFINE]);
        let object = &ran.objects()[0];
        assert_eq!((ran.code, &object["verdict"]), (UNKNOWN, &"unknown".into()), "{option}");
        assert_eq!(object["limit"], name);
        let text = overtake(&["check", option, value, LARGE, LARGE_DEFINE]);
        assert_eq!((text.code, text.first_line()), (UNKNOWN, "unknown"));
        assert_eq!(text.out.lines().count(), 2, "{}", text.out);
    }
}

/// The limit is one on the process; a tenth more is forgiven. Large states fill the memory sooner.
#[test]
fn memory_stays_within_its_limit() {
    for (limit, mib, more) in [
        ("64MiB", 64, &["--search", "bfs"][..]),
        ("64MiB", 64, &["--search", "dfs", "--no-packing"]),
        ("200MiB", 200, &["--search", "bfs", "--no-packing", "--no-por"]),
        ("200MiB", 200, &["--search", "dfs", "--no-packing", "--threads", "3"]),
    ] {
        let ran = overtake(&[&["check", "--json", "--memory", limit, LARGE, LARGE_DEFINE], more].concat());
        let object = &ran.objects()[0];
        assert_eq!((ran.code, &object["limit"]), (UNKNOWN, &"memory".into()), "{object}");
        let peak = object["peak_kb"].as_u64().expect("it is known here");
        assert!(peak * 10 <= mib * 1024 * 11, "{more:?}: {peak} KiB with a limit of {limit}");
        assert!(peak * 4 >= mib * 1024, "{more:?}: {peak} KiB of a limit of {limit}, most of it unused");
    }
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_in_unknown() {
    let child = command(&["check", LARGE, LARGE_DEFINE, "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    // Long enough for the handler to be in place; the search would go on for minutes.
    std::thread::sleep(std::time::Duration::from_millis(700));
    let sent = Command::new("kill").args(["-s", "INT", &child.id().to_string()]).status();
    assert!(sent.is_ok_and(|s| s.success()), "the signal was sent");
    let ran = Ran::new(child.wait_with_output().expect("it ends"));
    let object = &ran.objects()[0];
    assert_eq!((ran.code, &object["verdict"]), (UNKNOWN, &"unknown".into()));
    assert_eq!(object["limit"], "cancelled");
}

const LITMUS_SB: &str = r"X86 SB
{}
 P0          | P1          ;
 MOV [x],$1  | MOV [y],$1  ;
 MOV EAX,[y] | MOV EAX,[x] ;
~exists (0:EAX=0 /\ 1:EAX=0)
";

#[test]
fn final_states_are_listed_as_herd_does() {
    let ran = fed(&["outcomes", "-", "--from", "litmus"], LITMUS_SB.as_bytes());
    let expected = r"Test SB Forbidden
States 4
0:EAX=0; 1:EAX=0;
0:EAX=0; 1:EAX=1;
0:EAX=1; 1:EAX=0;
0:EAX=1; 1:EAX=1;
No
Witnesses
Positive: 3 Negative: 1
Condition ~exists (0:EAX=0 /\ 1:EAX=0)
Observation SB Sometimes 1 3
Time SB ";
    assert!(ran.out.starts_with(expected) && ran.out.ends_with("\n\n"), "{}", ran.out);
    assert_eq!((ran.code, &ran.err[..]), (0, ""));
    let quiet = fed(&["outcomes", "-", "--from", "litmus", "-q", "--model", "sc"], LITMUS_SB.as_bytes());
    assert_eq!((&quiet.out[..], quiet.code), ("Observation SB Never 0 3\n", 0));
    let checked = fed(&["check", "-", "--from", "litmus", "-q"], LITMUS_SB.as_bytes());
    assert_eq!((&checked.out[..], checked.code), ("violated\n", VIOLATED));
}

#[test]
fn final_states_of_many_files_come_in_the_order_of_the_files() {
    let name = |i: usize| format!("outcomes-{i}.litmus");
    let path = |i: usize| file(&name(i), LITMUS_SB.replace("SB", &format!("SB{i}")).as_bytes());
    let wrong = file("outcomes-wrong.litmus", LITMUS_SB.replace("MOV [x]", "MOVE [x]").as_bytes());
    let mut paths: Vec<PathBuf> = (0..20).map(path).collect();
    paths.insert(7, wrong);
    let mut args = vec!["outcomes", "--json"];
    args.extend(paths.iter().map(|p| p.to_str().expect("the path is text")));
    let ran = overtake(&args);
    assert_eq!(ran.code, BAD_INPUT);
    assert!(
        ran.err.contains("instruction `MOVE` is not supported") && ran.err.contains(":4:2"),
        "{}",
        ran.err
    );
    let objects = ran.objects();
    let names: Vec<&str> = objects.iter().map(|o| o["test"].as_str().expect("it has a name")).collect();
    assert_eq!(names, (0..20).map(|i| format!("SB{i}")).collect::<Vec<_>>());
    for object in &objects {
        assert_eq!((&object["observation"], &object["verdict"]), (&"Sometimes".into(), &"No".into()));
        assert_eq!(object["states"][0], serde_json::json!({ "0:EAX": 0, "1:EAX": 0 }));
        assert_eq!((&object["model"], &object["command"]), (&"tso".into(), &"outcomes".into()));
    }
}

#[test]
fn a_list_of_final_states_is_complete_or_not_given() {
    let ran = fed(&["outcomes", "-", "--from", "litmus", "--states", "2", "--json"], LITMUS_SB.as_bytes());
    let object = &ran.objects()[0];
    assert_eq!(
        (ran.code, &object["verdict"], &object["limit"]),
        (UNKNOWN, &"unknown".into(), &"states".into())
    );
    assert!(object.get("states").is_none() && object.get("observation").is_none());
    let endless = "X86 T\n{}\nP0 ;\nL: MOV [x],$1 ;\nJMP L ;\nexists (x=1)\n";
    let ran = fed(&["outcomes", "-", "--from", "litmus", "--states", "1000"], endless.as_bytes());
    assert_eq!(ran.out.lines().nth(1), Some("States 0"), "no run ends: {}", ran.out);
    let native = overtake(&["outcomes", SB, "-q"]);
    assert_eq!(native.code, 0, "{}", native.err);
    let none = fed(&["outcomes", "-", "--from", "tso"], b"shared x\nthread p\nnop\nend\nforbid [x] == 1\n");
    assert_eq!((none.code, &none.out[..]), (BAD_INPUT, ""));
}

#[test]
fn show_lists_a_program() {
    let ran = overtake(&["show", SB]);
    assert_eq!((ran.code, &ran.err[..]), (0, ""));
    for word in ["p0", "p1", "store [x], 1", "load r, [y]"] {
        assert!(ran.out.contains(word), "{word} is missing: {}", ran.out);
    }
    let dot = overtake(&["show", "--dot", SB]);
    assert_eq!((dot.code, dot.first_line().starts_with("digraph")), (0, true), "{}", dot.out);
    assert_eq!(dot.out.matches('{').count(), dot.out.matches('}').count());
}

#[test]
fn what_is_converted_can_be_read_back_with_the_same_verdict() {
    for (program, verdict) in
        [(SB, "violated\n"), (MP, "safe\n"), ("programs/peterson/peterson-loop.tso", "violated\n")]
    {
        for format in ["tso", "ron"] {
            let text = overtake(&["convert", program, "--to", format]);
            assert_eq!((text.code, &text.err[..]), (0, ""), "{program} to {format}");
            let ran = fed(&["check", "-", "--from", format, "-q"], text.out.as_bytes());
            assert_eq!(ran.out, verdict, "{program} as {format}: {}", ran.err);
            let again = fed(&["convert", "-", "--from", format, "--to", format], text.out.as_bytes());
            assert_eq!(again.out, text.out, "{program} to {format} and again");
        }
    }
}

#[test]
fn conversions_for_other_tools_look_like_theirs() {
    let trencher = overtake(&["convert", SB, "--to", "trencher"]);
    assert_eq!((trencher.code, trencher.out.contains("thread")), (0, true), "{}", trencher.err);
    let promela = overtake(&["convert", SB, "--to", "promela"]);
    assert_eq!((promela.code, promela.out.contains("proctype")), (0, true), "{}", promela.err);
}

#[test]
fn conversions_may_go_to_a_file() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("converted.ron");
    let name = path.to_str().expect("it is text");
    let ran = overtake(&["convert", SB, "--to", "ron", "-o", name]);
    assert_eq!((ran.code, &ran.out[..], &ran.err[..]), (0, "", ""));
    assert_eq!(overtake(&["check", "-q", name]).out, "violated\n");
    let nowhere = overtake(&["convert", SB, "--to", "ron", "-o", "no/such/folder/x.ron"]);
    assert_eq!(nowhere.code, BAD_INPUT);
}

#[test]
fn completions_are_scripts() {
    let ran = overtake(&["completions", "bash"]);
    assert_eq!((ran.code, ran.out.contains("complete -F _overtake")), (0, true));
}

#[test]
fn a_mistake_is_shown_where_it_is() {
    let ran = check("shared x\nthread p\n    laod r, [x]\nend\nforbid p.r == 1\n", &[]);
    assert_eq!((ran.code, &ran.out[..]), (BAD_INPUT, ""));
    assert!(ran.err.contains("--> -:3:5") && ran.err.contains("^^^^"), "{}", ran.err);
}

#[test]
fn bytes_that_are_no_text_are_bad_input() {
    let path = file("binary.tso", &[0x7f, b'E', b'L', b'F', 0, 0xff, 0xfe, 0]);
    let ran = overtake(&["check", path.to_str().expect("it is text")]);
    assert_eq!((ran.code, &ran.out[..]), (BAD_INPUT, ""));
    assert!(ran.err.contains("not UTF-8"), "{}", ran.err);
}

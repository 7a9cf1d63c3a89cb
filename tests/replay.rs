//! Is what `--json` tells of a run enough to perform it again, and is a run that is tampered with refused?

#[path = "common/ran.rs"]
mod ran;

use ran::*;
use serde_json::{Value, json};

/// The answer to a question, saved; and what replaying it says.
fn saved(name: &str, args: &[&str]) -> (Value, String) {
    let answer = overtake(&[args, &["--json"]].concat()).objects().remove(0);
    let path = file(&format!("replay-{name}.json"), answer.to_string().as_bytes());
    (answer, path.to_string_lossy().into_owned())
}

#[track_caller]
fn replayed(program: &str, run: &str) -> Ran {
    overtake(&["replay", program, run])
}

/// The answer with a change, replayed.
#[track_caller]
fn tampered(name: &str, program: &str, answer: &Value, change: impl FnOnce(&mut Value)) -> Ran {
    let mut changed = answer.clone();
    change(&mut changed);
    assert_ne!(*answer, changed, "{name} changes nothing");
    let path = file(&format!("replay-{name}.json"), changed.to_string().as_bytes());
    replayed(program, &path.to_string_lossy())
}

#[test]
fn every_kind_of_run_replays() {
    let runs: [(&str, &[&str]); 11] = [
        ("check-tso", &["check", "programs/litmus/sb.tso"]),
        ("check-sc", &["check", "programs/demos/assert.tso"]),
        ("define", &["check", "programs/loop/loop-deep.tso", "-DN=20"]),
        ("robust", &["robust", "programs/litmus/sb.tso"]),
        ("all", &["robust", "--all", "programs/peterson/peterson.tso"]),
        ("triangular", &["robust", "--triangular", "programs/litmus/sb.tso"]),
        ("hang", &["check", "--hang", "programs/hang/lost-wakeup.tso"]),
        ("lasso", &["check", "programs/litmus/mp.tso", "--ltl", "F{[ready]==7}"]),
        ("litmus", &["check", "tests/data/replay/sb.litmus"]),
        (
            "dve",
            &[
                "check",
                "tests/data/replay/slots.dve",
                "--model",
                "slots",
                "--forbid",
                "a == 0 && b == 0 && P.done && Q.done",
            ],
        ),
        (
            "dve-lasso",
            &[
                "check",
                "tests/data/replay/slots.dve",
                "--model",
                "slots",
                "--ltl",
                "F (done)",
                "-Ddone=P.done && Q.done && a == 1",
            ],
        ),
    ];
    for (name, args) in runs {
        let (answer, run) = saved(name, args);
        let program = args.iter().find(|arg| arg.contains('/')).expect("a program is named");
        assert!(
            ["violated", "not-robust", "racy"].map(Value::from).contains(&answer["verdict"]),
            "{name}: {answer}"
        );
        let ran = replayed(program, &run);
        assert_eq!((ran.code, &ran.out[..]), (0, "replays\n"), "{name}: {}{}", ran.out, ran.err);
    }
}

#[test]
fn a_run_that_was_changed_is_refused_with_its_event() {
    let program = "programs/litmus/sb.tso";
    let (answer, _) = saved("whole", &["check", program]);
    let refused = |name, change: &dyn Fn(&mut Value)| {
        let ran = tampered(name, program, &answer, change);
        assert_eq!((ran.code, ran.first_line()), (VIOLATED, "does not replay"), "{name}: {}", ran.err);
        ran.out.lines().nth(1).unwrap_or_default().to_string()
    };
    let value = refused("value", &|answer| answer["trace"][1]["value"] = json!(1));
    assert_eq!(value, "Event 1, row 2: its `value` is 0, not 1.");
    let source = refused("source", &|answer| answer["trace"][4]["source"] = json!(2));
    assert_eq!(source, "Event 4, row 5: its `source` is \"memory\", not 2.");
    let thread = refused("thread", &|answer| answer["trace"][2]["thread"] = json!("p2"));
    assert_eq!(thread, "Event 2, row 3: there is no thread `p2`.");
    let order = refused("order", &|answer| {
        answer["trace"].as_array_mut().expect("a list").swap(0, 1);
    });
    assert!(order.starts_with("Event 0, row 1: thread `p0`, at "), "{order}");
    let early = refused("early", &|answer| {
        answer["trace"].as_array_mut().expect("a list").pop();
    });
    assert_eq!(early, "All events are possible, but its last state is not forbidden.");
    // Under SC no store waits.
    let model = refused("model", &|answer| answer["trace_model"] = json!("sc"));
    assert!(model.contains("Event 3"), "{model}");
}

#[test]
fn a_witness_that_is_none_is_refused() {
    let program = "programs/litmus/sb.tso";
    let (answer, _) = saved("cyclic", &["robust", program]);
    let ran = tampered("acyclic", program, &answer, |answer| answer["witness"]["at"]["load"] = json!(0));
    assert_eq!((ran.code, ran.first_line()), (VIOLATED, "does not replay"));
    assert!(ran.out.contains("it is no witness"), "{}", ran.out);
}

#[test]
fn what_is_no_run_is_wrong_input() {
    let program = "programs/litmus/sb.tso";
    for (name, text, why) in [
        ("nothing", "", "this is no answer of overtake"),
        ("no-json", "{", "this is no JSON: EOF"),
        ("other", "{\"tool\": \"other\"}", "this is no answer of overtake"),
        ("safe", "{\"tool\": \"overtake\", \"verdict\": \"safe\"}", "it has no run"),
        ("deep", &"[".repeat(10_000), "this is no JSON: recursion limit"),
    ] {
        let path = file(&format!("replay-{name}.json"), text.as_bytes());
        let ran = replayed(program, &path.to_string_lossy());
        assert_eq!((ran.code, &ran.out[..]), (BAD_INPUT, ""), "{name}");
        assert!(ran.err.contains(why), "{name}: {}", ran.err);
    }
}

#[test]
fn the_answer_for_the_file_is_picked_and_definitions_are_its_own() {
    let all = overtake(&["check", "--json", "programs/litmus/mp.tso", "programs/litmus/sb.tso"]);
    let path = file("replay-several.json", all.out.as_bytes());
    let path = path.to_string_lossy();
    assert_eq!(replayed("programs/litmus/sb.tso", &path).code, 0);
    let other = replayed("programs/demos/assert.tso", &path);
    assert!(
        other.code == BAD_INPUT && other.err.contains("there are 2 answers, and none is for"),
        "{}",
        other.err
    );
    let (answer, run) = saved("defined", &["check", "programs/loop/loop-deep.tso", "-DN=20"]);
    assert_eq!(answer["define"], json!({ "N": 20 }));
    let ran = overtake(&["replay", "--json", "programs/loop/loop-deep.tso", "-DN=3", &run]);
    assert_eq!((ran.code, &ran.objects()[0]["verdict"]), (VIOLATED, &json!("does not replay")));
}

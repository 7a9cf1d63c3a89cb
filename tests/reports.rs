//! What is written beside the output: is the log for code scanning one by its published schema, is the report for build
//! servers one, do pages and pictures hold what they should, and nothing from outside?

#[path = "common/ran.rs"]
mod ran;

use ran::*;
use serde_json::{Value, json};
use std::path::PathBuf;

/// What the option writes when the command is run.
#[track_caller]
fn written(name: &str, option: &str, args: &[&str], code: i32) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("reports-{name}"));
    let path = path.to_string_lossy().into_owned();
    let ran = overtake(&[args, &[option, &path]].concat());
    assert_eq!(ran.code, code, "{args:?}: {}", ran.err);
    std::fs::read_to_string(&path).expect("it was written")
}

fn schema() -> jsonschema::Validator {
    let text = include_str!("data/sarif-2.1.0.schema.json");
    // As it was published, the pattern of languages has a bracket too many.
    let text = text.replace("[a-zA-Z]{2}]?$", "[a-zA-Z]{2}$");
    let schema: Value = serde_json::from_str(&text).expect("the schema is JSON");
    jsonschema::validator_for(&schema).expect("the schema is one")
}

#[track_caller]
fn sarif(name: &str, args: &[&str], code: i32) -> Value {
    let log: Value = serde_json::from_str(&written(name, "--sarif", args, code)).expect("it is JSON");
    let wrong: Vec<String> =
        schema().iter_errors(&log).map(|e| format!("{e} at {}", e.instance_path())).collect();
    assert!(wrong.is_empty(), "{name}: {wrong:#?}");
    log
}

#[test]
fn the_schema_refuses_what_is_no_log() {
    assert!(!schema().is_valid(&json!({ "version": "2.1.0" })));
    assert!(!schema().is_valid(&json!({ "version": "2.1.0", "runs": [{ "tool": {}, "results": [] }] })));
}

#[test]
fn logs_for_code_scanning_keep_to_their_schema() {
    let sb = "programs/litmus/sb.tso";
    let log = sarif("sb.sarif", &["check", sb, "programs/litmus/mp.tso"], VIOLATED);
    let results = log["runs"][0]["results"].as_array().expect("a list");
    assert_eq!(results.len(), 1, "one violation, and a program that is safe");
    assert_eq!(results[0]["ruleId"], "violated");
    let place = &results[0]["locations"][0]["physicalLocation"];
    assert_eq!((&place["artifactLocation"]["uri"], &place["region"]["startLine"]), (&sb.into(), &16.into()));
    let steps = results[0]["codeFlows"][0]["threadFlows"][0]["locations"].as_array().expect("a list");
    let line = |step: &Value| step["location"]["physicalLocation"]["region"]["startLine"].as_u64();
    assert_eq!(steps.iter().filter_map(line).collect::<Vec<_>>(), [7, 8, 12, 12, 13, 7]);

    let robust = sarif("all.sarif", &["robust", "--all", "programs/peterson/peterson.tso"], VIOLATED);
    let several = robust["runs"][0]["results"].as_array().map_or(0, Vec::len);
    assert!(several > 1, "every pair is a result");
    for (name, args, code) in [
        ("race.sarif", &["robust", "--triangular", sb][..], VIOLATED),
        ("hang.sarif", &["check", "--hang", "programs/hang/lost-wakeup.tso"], VIOLATED),
        ("lasso.sarif", &["check", "programs/litmus/mp.tso", "--ltl", "F{[ready]==7}"], VIOLATED),
        ("dve.sarif", &["check", "tests/data/replay/slots.dve", "--deadlock"], VIOLATED),
        (
            "unknown.sarif",
            &[
                "check",
                "programs/lamport/lamport2-fenced.tso",
                "-DN=8",
                "--engine",
                "explicit",
                "--states",
                "20",
            ],
            UNKNOWN,
        ),
        ("fence.sarif", &["fence", sb], 0),
        ("missing.sarif", &["check", "no/such file.tso"], BAD_INPUT),
    ] {
        let results = sarif(name, args, code)["runs"][0]["results"].as_array().map_or(0, Vec::len);
        let expected = usize::from(matches!(code, VIOLATED | UNKNOWN));
        assert_eq!(results, expected, "{name}");
    }
}

#[test]
fn each_property_that_fails_is_a_result() {
    let source = b"shared x\nthread p\n store [x], 1\nend\nforbid [x] == 1\nforbid [x] == 2\nforbid p@end && [x] == 1\n";
    let source = String::from_utf8_lossy(source).replace("p@end", "1 == 1");
    let path = file("reports-two.tso", source.as_bytes());
    let log = sarif("two.sarif", &["check", &path.to_string_lossy()], VIOLATED);
    let results = log["runs"][0]["results"].as_array().expect("a list");
    let lines = results.iter().map(|r| r["locations"][0]["physicalLocation"]["region"]["startLine"].as_u64());
    assert_eq!(lines.collect::<Vec<_>>(), [Some(5), Some(7)]);
}

#[test]
fn build_servers_get_one_case_for_each_file() {
    let files = ["programs/litmus/sb.tso", "programs/litmus/mp.tso", "no/such.tso"];
    let text = written("all.xml", "--junit", &[&["check"], &files[..]].concat(), BAD_INPUT);
    let count = |what: &str| text.matches(what).count();
    assert_eq!((count("<testcase "), count("<failure "), count("<error ")), (3, 1, 1), "{text}");
    assert!(
        text.contains("<testsuite name=\"overtake\" tests=\"3\" failures=\"1\" errors=\"1\" time=\""),
        "{text}"
    );
    assert!(text.contains(
        "classname=\"overtake check\" name=\"programs/litmus/sb.tso\" file=\"programs/litmus/sb.tso\""
    ));
    let tests = written("tests.xml", "--junit", &["test", "programs/litmus"], 0);
    assert!(tests.matches("<testcase ").count() > 10 && !tests.contains("<failure"), "{tests}");
}

#[test]
fn a_page_is_complete_without_anything_else() {
    let text = written("sb.html", "--html", &["robust", "programs/litmus/sb.tso"], VIOLATED);
    assert!(text.len() < 100_000, "{} bytes", text.len());
    let verdict = text.find(">not-robust<").expect("the verdict is there");
    assert!(verdict < text.find("class=\"program\"").expect("the text is there"), "the verdict comes first");
    assert_eq!(text.matches("class=\"node\"").count(), 4, "a store and its flush are one");
    for outside in ["http://", "https://", "src=", "@import", "url("] {
        let known = ["http://www.w3.org/2000/svg", "url(#"];
        let rest = known.iter().fold(text.clone(), |rest, known| rest.replace(known, ""));
        assert!(!rest.contains(outside), "a page refers to {outside}");
    }
}

#[test]
fn several_files_are_sections_of_one_page() {
    let files = ["programs/litmus/sb.tso", "programs/litmus/mp.tso", "no/such.tso"];
    let text = written("all.html", "--html", &[&["check"], &files[..]].concat(), BAD_INPUT);
    assert_eq!(text.matches("<section ").count(), 3);
    assert!(text.contains("no/such.tso") && text.contains("No such file"), "what cannot be read is told");
}

#[test]
fn every_command_with_a_verdict_writes_files_beside_its_output() {
    let (stack, sb) = ("datatypes/treiber_stack.dt", "programs/litmus/sb.tso");
    let test = ["datatype", stack, "--model", "relaxed", "--test", "T0"];
    let page = written("datatype.html", "--html", &test, VIOLATED);
    for part in ["treiber_stack.dt, T0", "fails", "take effect", "heap[2]", "nearest serial run"] {
        assert!(page.contains(part), "{part}");
    }
    let log = sarif("datatype.sarif", &test, VIOLATED);
    assert_eq!(log["runs"][0]["results"][0]["ruleId"], "fails");
    let fences = written("fences.html", "--html", &["datatype", stack, "--fences", "--model", "pso"], 0);
    assert!(fences.contains("found"));

    let run = written("sb.json", "--html", &["check", sb], VIOLATED);
    assert!(run.contains("violated"));
    let recorded = file("reports-run.json", overtake(&["check", sb, "--json"]).out.as_bytes());
    let recorded = recorded.to_string_lossy().into_owned();
    assert!(written("replay.junit", "--junit", &["replay", sb, &recorded], 0).contains("failures=\"0\""));
    let other = ["replay", "programs/litmus/mp.tso", &recorded];
    assert_eq!(sarif("replay.sarif", &other, VIOLATED)["runs"][0]["results"][0]["ruleId"], "does not replay");

    let mp = "programs/litmus/mp.tso";
    let certificate = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("reports-mp.cert");
    let certificate = certificate.to_string_lossy().into_owned();
    assert_eq!(overtake(&["check", mp, "--certificate", &certificate]).code, 0);
    assert!(written("verify.html", "--html", &["verify", mp, &certificate], 0).contains("accepted"));
}

#[test]
fn pages_of_object_code_show_its_instructions_and_its_source() {
    let page = written("handoff.html", "--html", &["check", "examples/code/handoff.o"], VIOLATED);
    assert!(page.contains("handoff.c:22"), "lines have their places");
    assert!(page.contains("lock xadd") && page.contains("atomic_fetch_add"), "and both their texts");
    let run = overtake(&["check", "examples/code/handoff.o", "--json"]);
    let events = run.objects()[0]["trace"].as_array().expect("a run").clone();
    let texts: Vec<&str> = events.iter().filter_map(|event| event["text"].as_str()).collect();
    assert!(texts.iter().any(|text| text.contains("atomic_fetch_add")), "{texts:?}");
}

#[test]
fn pictures_stand_alone() {
    let text = written("sb.svg", "--svg", &["robust", "programs/litmus/sb.tso"], VIOLATED);
    assert!(text.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\"") && text.ends_with("</svg>\n"));
    assert_eq!(text.matches("class=\"node\"").count(), 4);
    let empty = written("mp.svg", "--svg", &["check", "programs/litmus/mp.tso"], 0);
    assert!(empty.contains("</svg>"), "{empty}");
}

/// A loop that counts, and so a run as long as one likes.
fn counting(rounds: u32) -> String {
    format!(
        "shared x\nthread p\n r = 0\nagain:\n load v, [x]\n store [x], v + 1\n fence\n r = r + 1\n if r < {rounds} goto again\n\
         end\nforbid [x] == {rounds}\n"
    )
}

#[test]
fn long_runs_stay_below_two_megabytes() {
    // Six events a round.
    let path = file("reports-count.tso", counting(1_700).as_bytes());
    let text =
        written("count.html", "--html", &["check", &path.to_string_lossy(), "--model", "tso"], VIOLATED);
    assert!(text.contains("<details class=\"piece\""), "it comes in pieces");
    assert!(text.len() < 2_000_000, "{} bytes", text.len());
    let events = text.rsplit("\"steps\":").next().map_or(0, |steps| steps.matches("],[").count());
    assert!(events > 10_000 - 2_000, "{events} events");
}

#[test]
fn what_cannot_be_written_is_said() {
    let ran = overtake(&["check", "programs/litmus/sb.tso", "--html", "no/such/folder.html"]);
    assert_eq!(ran.code, BAD_INPUT);
    assert!(ran.err.contains("no/such/folder.html"), "{}", ran.err);
    assert_eq!(ran.first_line(), "violated", "the answer is printed all the same");
}

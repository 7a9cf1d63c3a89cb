//! Repairs as users see them: whole outputs, exit codes, JSON, and programs that are written in their own
//! format.

#[path = "common/ran.rs"]
mod ran;

use ran::*;
use std::path::Path;

const SB: &str = "programs/litmus/sb.tso";
const PARKER: &str = "programs/parker/parker.tso";

#[test]
fn a_repair_is_shown_in_the_users_own_text() {
    let ran = overtake(&["fence", PARKER]);
    let expected = "\
found
1 fence makes the property hold, and nothing cheaper does.

";
    assert_eq!((ran.code, &ran.err[..]), (0, ""));
    assert!(ran.out.starts_with(expected), "{}", ran.out);
    let inserted: Vec<&str> = ran.out.lines().filter(|l| l.trim_start().starts_with('+')).collect();
    assert_eq!(inserted.len(), 1, "{}", ran.out);
    assert!(inserted[0].ends_with("fence"), "{}", ran.out);
}

#[test]
fn what_is_right_needs_nothing() {
    let ran = overtake(&["fence", "programs/peterson/peterson-fenced.tso"]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (0, "found\nThe property holds as it is: nothing has to change.\n")
    );
}

#[test]
fn json_lists_fences_and_all_sets() {
    let ran = overtake(&["fence", "--for", "robustness", "--all", "--json", SB]);
    let object = ran.objects().remove(0);
    assert_eq!((ran.code, object["verdict"].as_str()), (0, Some("found")));
    assert_eq!(object["cost"], 2);
    assert_eq!(object["optimal"], true);
    assert_eq!(object["fences"].as_array().map(Vec::len), Some(2));
    assert_eq!(object["sets"].as_array().map(Vec::len), Some(1));
    let first = &object["fences"][0];
    assert_eq!((first["thread"].as_str(), first["kind"].as_str()), (Some("p0"), Some("fence")));
    assert!(first["after_line"].as_u64() < first["line"].as_u64(), "{first}");
}

/// What jumps to the end would pass a line behind the last instruction by, and behind dead code nothing
/// comes.
#[test]
fn all_ways_to_an_end_are_named() {
    let ask = |p: &str, json: &[&str]| {
        let source = format!(
            "shared x\nthread p\n{p}\nend\nthread q\n lock\n load r, [x]\nend\nnever [x] == 0 && q.r == 0\n"
        );
        fed(&[&["fence", "-", "--from", "tso"], json].concat(), source.as_bytes())
    };
    let (jumping, dead) = (
        " load r, [x]\n if r goto out\n store [x], 1\n halt\nout:\n store [x], 2",
        " store [x], 1\n halt\n store [x], 2",
    );
    let cases = [(jumping, "lines 5 and 8", vec![5, 8], 0), (dead, "line 3: `store [x], 1`", vec![3], 1)];
    for (p, words, lines, shown) in cases {
        let ran = ask(p, &[]);
        assert!(ran.out.contains(&format!("a fence at its end, behind {words}\n")), "{}", ran.out);
        assert_eq!(ran.out.lines().filter(|l| l.trim_start().starts_with('+')).count(), shown, "{}", ran.out);
        let object = ask(p, &["--json"]).objects().remove(0);
        assert_eq!(object["fences"][0]["after_lines"], serde_json::json!(lines));
    }
}

#[test]
fn no_fence_helps_against_what_sc_does_already() {
    let racy = "shared x\nthread p\n load r, [x]\n store [x], r + 1\nend\nthread q\n load r, [x]\n store [x], r + 1\nend\n\
                exists [x] == 1\n";
    let ran = fed(&["fence", "-", "--from", "tso"], racy.as_bytes());
    assert_eq!((ran.code, ran.first_line()), (VIOLATED, "none"));
    assert!(ran.out.contains("fails under SC already"), "{}", ran.out);
    assert!(ran.out.contains("load r, [x]"), "the run is shown: {}", ran.out);
}

#[test]
fn a_run_that_remains_is_shown() {
    let ran = overtake(&["fence", "--only", "p0", SB]);
    assert_eq!((ran.code, ran.first_line()), (VIOLATED, "none"));
    assert!(ran.out.contains("none of the allowed changes prevents"), "{}", ran.out);
    let object =
        overtake(&["fence", "--only", "p0", "--for", "robustness", "--json", SB]).objects().remove(0);
    assert!(object["trace"].as_array().is_some_and(|t| !t.is_empty()), "{object}");
}

#[test]
fn superfluous_fences_are_named() {
    let source = "shared x, y\nthread p\n fence\n store [x], 1\n fence\n load r, [y]\nend\n\
                  thread q\n store [y], 1\n fence\n load r, [x]\n fence\nend\nexists p.r == 0 && q.r == 0\n";
    let path = file("superfluous.tso", source.as_bytes());
    let ran = overtake(&["fence", "--prune", &path.display().to_string()]);
    let expected = "found\n2 of 4 fences can go together, and the property still holds:\n  \
                    thread p: the fence in line 3\n  thread q: the fence in line 12\n";
    assert_eq!((ran.code, ran.out.as_str()), (0, expected));
    let object = overtake(&["fence", "--prune", "--json", &path.display().to_string()]).objects().remove(0);
    assert_eq!(object["superfluous"].as_array().map(Vec::len), Some(2));
    assert_eq!(object["kept"].as_array().map(Vec::len), Some(2));
}

#[test]
fn time_may_run_out() {
    let large = ["fence", "-DN=8", "programs/lamport/lamport1.tso", "--timeout", "1ms"];
    let ran = overtake(&large);
    assert_eq!((ran.code, ran.first_line()), (UNKNOWN, "unknown"), "{}", ran.out);
    assert!(ran.out.contains("time limit"), "{}", ran.out);
}

#[test]
fn wrong_wishes_are_refused() {
    for (args, why) in [
        (&["--only", "nobody"][..], "there is no thread `nobody`; there are p0, p1"),
        (&["--forbid-at", "p0:nowhere"], "thread `p0` has no label `nowhere`"),
        (&["--forbid-at", "p0"], "it has to be thread:label"),
        (&["--cost", "fence=0"], "whole number from 1 up"),
        (&["--cost", "lock=2"], "there is no kind `lock`"),
        (&["--cost", "atomic=2"], "which --with does not allow"),
        (&["--prune", "-o", "x.tso"], "cannot be used with"),
        (&["-o", "x.tso", SB], "several files"),
    ] {
        let ran = overtake(&[&["fence", SB], args].concat());
        assert_eq!(ran.code, BAD_INPUT, "{args:?}: {}", ran.out);
        assert!(ran.err.contains(why), "{args:?}: {}", ran.err);
    }
    let ran = fed(
        &["fence", "-", "--from", "tso", "--for", "property"],
        b"shared x\nthread p\n store [x], 1\nend\n",
    );
    assert_eq!(ran.code, BAD_INPUT);
    assert!(ran.err.contains("there is no property"), "{}", ran.err);
}

/// Writes the repair of a file, and gives it back. That it was checked again is said.
#[track_caller]
fn written(input: &Path, output: &str, args: &[&str]) -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(output);
    let (from, to) = (input.display().to_string(), path.display().to_string());
    let ran = overtake(&[&["fence", &from, "-o", &to], args].concat());
    assert_eq!((ran.code, &ran.err[..]), (0, ""), "{}", ran.out);
    assert!(ran.out.contains("read again and checked again"), "{}", ran.out);
    let aim = if args.contains(&"robustness") { "robust" } else { "check" };
    assert_eq!(overtake(&[aim, &to]).code, 0, "what was written holds");
    std::fs::read_to_string(path).expect("it was written")
}

#[test]
fn the_native_text_keeps_its_comments_and_templates() {
    let source = "// Store buffering.\nparam N = 2\nshared x[N]\nthread p[i in 0..N]\n    store [x + i], 1 // mine\n\
                  look: load r, [x + (1 - i)]\nend\nexists p[0].r == 0 && p[1].r == 0\n";
    let text = written(&file("sb-template.tso", source.as_bytes()), "sb-template-out.tso", &[]);
    assert_eq!(text, source.replace("look: load", "look:\n    fence\n    load"));
}

#[test]
fn a_place_that_the_text_cannot_name_makes_it_written_anew() {
    let source = "shared x, y; thread p; store [x], 1; load r, [y]; end; thread q; store [y], 1; load r, [x]; end; \
                  exists p.r == 0 && q.r == 0";
    let text = written(&file("sb-line.tso", source.as_bytes()), "sb-line-out.tso", &[]);
    assert_eq!(text.matches("fence").count(), 2, "{text}");
}

#[test]
fn locked_stores_are_written() {
    let text = written(Path::new(SB), "sb-atomic.tso", &["--with", "atomic"]);
    assert_eq!(text.matches("xchg old, [").count(), 2, "{text}");
}

const LITMUS: &str = "X86 SB\n{ x=0; y=0; }\n P0          | P1          ;\n MOV [x],$1  | MOV [y],$1  ;\n \
                      MOV EAX,[y] | MOV EAX,[x] ;\nexists (0:EAX=0 /\\ 1:EAX=0)\n";

#[test]
fn litmus_tests_get_rows() {
    let path = file("sb-in.litmus", LITMUS.as_bytes());
    let text = written(&path, "sb-out.litmus", &[]);
    assert_eq!(text.matches("MFENCE").count(), 2, "{text}");
    assert!(text.contains(" MOV EAX,[y] | MOV EAX,[x] ;"), "the rest stays: {text}");
    let text = written(&path, "sb-atomic.litmus", &["--with", "atomic"]);
    assert_eq!(text.matches("XCHG").count(), 2, "{text}");
}

/// An instruction that reads and writes memory without `LOCK` is a load and a store; nothing goes between
/// them.
#[test]
fn nothing_is_inserted_into_the_middle_of_an_instruction() {
    let test = "X86 INC\n{ x=0; y=0; }\n P0          | P1          ;\n ADD [x],$1  | ADD [y],$1  ;\n \
                ADD [y],$1 | ADD [x],$1 ;\nexists (x=0)\n";
    let path = file("inc.litmus", test.as_bytes());
    let text = written(&path, "inc-out.litmus", &["--for", "robustness"]);
    assert!(text.contains("MFENCE"), "{text}");
    assert!(text.contains("ADD [x],$1  | ADD [y],$1  ;"), "the text was edited, not written anew: {text}");
}

const RMM: &str = "forbidden CS CS\ndata x = 0 : [0:1] y = 0 : [0:1]\nprocess\ntext\n  write: x := 1;\n  read: y = 0;\n  \
                   CS: nop\nprocess\ntext\n  write: y := 1;\n  L: read: x = 0;\n  CS: nop\n";

#[test]
fn programs_of_memorax_keep_their_text() {
    let path = file("dekker-in.rmm", RMM.as_bytes());
    let text = written(&path, "dekker-out.rmm", &[]);
    assert_eq!(
        text,
        RMM.replace("  read: y", "  fence;\n  read: y").replace("L: read", "L:\n      fence;\n      read")
    );
    let text = written(&path, "dekker-atomic.rmm", &["--with", "fence,atomic", "--cost", "fence=3,atomic=2"]);
    assert_eq!(text, RMM.replace("write:", "locked write:"));
}

#[test]
fn programs_of_trencher_and_data_are_written_anew() {
    let trencher = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sb-in.txt");
    let ron = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sb-in.ron");
    for (to, path, out) in [("trencher", &trencher, "sb-out.txt"), ("ron", &ron, "sb-out.ron")] {
        let source = if to == "ron" { SB } else { "programs/dekker/simple.tso" };
        let ran = overtake(&["convert", source, "--to", to, "-o", &path.display().to_string()]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        written(path, out, &["--for", "robustness"]);
    }
}

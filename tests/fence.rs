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
1 fence in the source makes the property hold, and nothing cheaper does.

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
        fed(&[&["fence", "-", "--from", "tso", "--per-thread"], json].concat(), source.as_bytes())
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
    let defined: Vec<&str> = args.iter().copied().filter(|arg| arg.starts_with("-D")).collect();
    assert_eq!(overtake(&[&[aim, &to], &defined[..]].concat()).code, 0, "what was written holds");
    std::fs::read_to_string(path).expect("it was written")
}

#[test]
fn the_native_text_keeps_its_comments_and_templates() {
    let source = "// Store buffering.\nparam N = 2\nshared x[N]\nthread p[i in 0..N]\n    store [x + i], 1 // mine\n\
                  look: load r, [x + (1 - i)]\nend\nexists p[0].r == 0 && p[1].r == 0\n";
    let text = written(&file("sb-template.tso", source.as_bytes()), "sb-template-out.tso", &[]);
    assert_eq!(text, source.replace("look: load", "    fence\nlook: load"));
}

/// Readers that announce themselves in cells of their own, as with a percpu rw-semaphore, and a writer that
/// looks at all of them.
const READERS: &str = "param N = 4\nshared writing, reading[N]\nthread reader[i in 0..N]\n    store [reading + i], 1\n    \
                       load w, [writing]\n    if w != 0 goto out\ninside:\n    nop\nout:\n    store [reading + i], 0\nend\n\
                       thread writer\n    xchg w, [writing], 1\n    repeat j in 0..N {\n    wait:\n        \
                       load r, [reading + j]\n        if r != 0 goto wait\n    }\ninside:\n    nop\n    \
                       store [writing], 0\nend\nforbid some i: reader[i]@inside && writer@inside\n";

/// The number of fences, and what is said of the first.
fn fences(args: &[&str], source: &str) -> (usize, serde_json::Value) {
    let ran = fed(&[&["fence", "-", "--from", "tso", "--json"], args].concat(), source.as_bytes());
    let object = ran.objects().remove(0);
    let fences = object["fences"].as_array().unwrap_or_else(|| panic!("{object}")).clone();
    assert_eq!(object["cost"], fences.len(), "{object}");
    (fences.len(), fences[0].clone())
}

#[test]
fn one_line_of_a_template_is_one_fence() {
    let (count, first) = fences(&[], READERS);
    let said = |field: &str| first[field].clone();
    assert_eq!((count, said("copies"), said("per")), (1, 4.into(), "source".into()), "{first}");
    assert_eq!((said("thread"), said("line"), said("after_line")), ("reader".into(), 5.into(), 4.into()));
    let (count, first) = fences(&["--per-thread"], READERS);
    assert_eq!((count, first["copies"].clone(), first["per"].clone()), (4, 1.into(), "thread".into()));
    assert_eq!(first["thread"], "reader[0]");
}

/// All copies of a template, or one of them, which then has places of its own.
#[test]
fn a_template_and_its_copies_can_be_picked() {
    assert_eq!(fences(&["--only", "reader"], READERS).0, 1);
    let source = READERS.replace("4", "1");
    assert_eq!(fences(&["--only", "reader[0]"], &source).1["per"], "source");
    let ran = fed(&["fence", "-", "--from", "tso", "--only", "reader[0]"], READERS.as_bytes());
    assert_eq!((ran.code, ran.first_line()), (VIOLATED, "none"));
}

#[test]
fn a_fence_stays_out_of_the_loop() {
    for lock in ["peterson/peterson", "dekker/dekker", "burns/burns"] {
        let path = format!("programs/{lock}.tso");
        let text = written(Path::new(&path), "out-of-the-loop.tso", &[]);
        let source = std::fs::read_to_string(&path).expect("bundled programs can be read");
        let added = text.lines().count() - source.lines().count();
        assert_eq!(text.lines().filter(|l| l.trim() != "fence").count(), source.lines().count(), "{text}");
        assert_eq!(text.matches("fence\n").count() - source.matches("fence\n").count(), added, "{text}");
    }
    let source = std::fs::read_to_string("programs/peterson/peterson.tso").expect("it can be read");
    let (count, first) = fences(&[], &source);
    assert_eq!(
        (count, &first["place"], &first["label"], &first["line"]),
        (2, &"edge".into(), &"wait".into(), &9.into())
    );
}

#[test]
fn a_large_text_keeps_its_lines() {
    let bakery = Path::new("programs/bakery/bakery.tso");
    let text = written(bakery, "bakery-out.tso", &["-DN=3"]);
    let source = std::fs::read_to_string(bakery).expect("it can be read");
    let kept: Vec<&str> = text.lines().filter(|line| line.trim() != "fence").collect();
    assert_eq!(kept, source.lines().collect::<Vec<_>>());
    assert_eq!((kept.len(), text.lines().count()), (34, 36));
}

#[test]
fn processes_of_memorax_are_copies() {
    let source = "forbidden CS CS\ndata x = 0 : [0:1] y = 0 : [0:1]\nprocess(2)\ntext\n  either {\n    write: x := 1;\n    \
                  read: y = 0\n  or\n    write: y := 1;\n    read: x = 0\n  };\n  CS: nop\n";
    let ran = fed(&["fence", "-", "--from", "rmm", "--json", "--for", "robustness"], source.as_bytes());
    let object = ran.objects().remove(0);
    let fences = object["fences"].as_array().unwrap_or_else(|| panic!("{object}"));
    assert_eq!(fences.len(), 2, "{object}");
    assert!(fences.iter().all(|f| f["copies"] == 2 && f["thread"] == "P0..=P1"), "{object}");
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

const MP: &str = "programs/litmus/mp.tso";

#[test]
fn weaker_models_take_fences_of_four_kinds() {
    let ran = overtake(&["fence", "--model", "pso", MP]);
    let expected = "\
found
1 fence in the source makes the property hold, and nothing cheaper does (engine sat, model pso).

  thread writer: a store-store fence before line 7: `store [ready], 1`
";
    assert_eq!((ran.code, &ran.err[..]), (0, ""));
    assert!(ran.out.starts_with(expected), "{}", ran.out);
    assert!(ran.out.lines().any(|l| l.starts_with("    + ") && l.ends_with("fence ss")), "{}", ran.out);

    let ran = overtake(&["fence", "--model", "relaxed", "--all", "--json", MP]);
    let object = ran.objects().remove(0);
    assert_eq!((ran.code, object["verdict"].as_str()), (0, Some("found")));
    let fields = ["model", "engine", "for"].map(|field| object[field].as_str());
    assert_eq!(fields, [Some("relaxed"), Some("sat"), Some("property")]);
    assert_eq!((object["cost"].as_u64(), object["optimal"].as_bool()), (Some(2), Some(true)));
    assert_eq!(object["sets"].as_array().map(Vec::len), Some(1));
    let kind = |k: usize| (object["fences"][k]["line"].as_u64(), object["fences"][k]["kind"].as_str());
    assert_eq!((kind(0), kind(1)), ((Some(7), Some("ss")), (Some(12), Some("ll"))));
}

#[test]
fn one_line_of_a_template_is_one_fence_under_weaker_models_too() {
    let source = "shared x[2]\nthread p[i in 0..2]\n store [x + i], 1\n load r, [x + 1 - i]\nend\nnever p[0].r == 0 && p[1].r == 0\n";
    for (more, cost, copies) in [(&[][..], 1, 2), (&["--per-thread"], 2, 1)] {
        let args = [&["fence", "-", "--from", "tso", "--model", "pso", "--json"], more].concat();
        let ran = fed(&args, source.as_bytes());
        let object = ran.objects().remove(0);
        assert_eq!(
            (ran.code, object["cost"].as_u64(), object["fences"][0]["copies"].as_u64()),
            (0, Some(cost), Some(copies)),
            "{} {}",
            ran.out,
            ran.err
        );
    }
}

#[test]
fn a_fence_where_ways_meet_is_one() {
    let source = "shared x, y
        thread p
            c = any(0..2)
            if c == 1 { store [x], 1 } else { store [x], 2; s = 1 }
            load r, [y]
        end
        thread q
            store [y], 1
            fence
            load r, [x]
        end
        never p.r == 0 && q.r == 0
        ";
    for model in ["pso", "pso-sparc", "relaxed"] {
        let ran = fed(&["fence", "-", "--from", "tso", "--model", model, "--json"], source.as_bytes());
        let object = ran.objects().remove(0);
        assert_eq!((ran.code, object["cost"].as_u64()), (0, Some(1)), "{object}");
        assert_eq!(
            (object["fences"][0]["kind"].as_str(), object["fences"][0]["line"].as_u64()),
            (Some("sl"), Some(5))
        );
    }
}

#[test]
fn what_no_fence_of_a_kind_prevents_is_shown_as_a_run() {
    let source = b"shared x\nthread p\n store [x], 1\nend\nnever [x] == 1\n";
    let ran = fed(&["fence", "-", "--from", "tso", "--model", "relaxed", "--json"], source);
    let object = ran.objects().remove(0);
    assert_eq!((ran.code, object["verdict"].as_str()), (10, Some("none")));
    assert_eq!(object["trace"].as_array().map(Vec::len), Some(1));
}

#[test]
fn what_weaker_models_cannot_be_asked_is_refused_or_unknown() {
    let ran = overtake(&["fence", "--model", "relaxed", "--json", "programs/peterson/peterson.tso"]);
    let object = ran.objects().remove(0);
    assert_eq!((ran.code, object["verdict"].as_str()), (5, Some("unknown")));
    assert!(object["reason"].as_str().is_some_and(|why| why.contains("loops")), "{object}");

    for more in [
        &["--with", "atomic"][..],
        &["--cost", "fence=2"],
        &["--prune"],
        &["--iterations", "3"],
        &["-o", "never-written.tso"],
        &["--for", "robustness"],
        &["--for", "no-hang"],
    ] {
        let ran = overtake(&[&["fence", "--model", "pso", MP], more].concat());
        assert_eq!(ran.code, 2, "{more:?}: {}", ran.out);
        assert!(ran.err.contains("--model pso"), "{}", ran.err);
    }
    let ran = overtake(&["fence", "--model", "sc", MP]);
    assert_eq!(ran.code, 2, "{}", ran.out);
    let trencher = overtake(&["convert", SB, "--to", "trencher"]).out;
    let vague = fed(&["fence", "-", "--from", "trencher", "--model", "pso"], trencher.as_bytes());
    assert_eq!((vague.code, vague.err.contains("what fences order")), (2, true), "{}", vague.err);
    // TSO is what it always was.
    let (with, without) = (overtake(&["fence", "--model", "tso", SB]), overtake(&["fence", SB]));
    assert_eq!((with.code, with.out), (without.code, without.out));
}

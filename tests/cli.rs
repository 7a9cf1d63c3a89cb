//! What does a user see? The built binary with real arguments: whole outputs, exit codes, and what scripts
//! rely on. Nothing here asks how long anything takes.

#[path = "common/ran.rs"]
mod ran;

use ran::*;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const SB: &str = "programs/litmus/sb.tso";
const MP: &str = "programs/litmus/mp.tso";
/// Safe, and not robust.
const BENIGN: &str = "programs/benign/cancel.tso";
/// What becomes of its properties.
const BENIGN_TABLE: &str = "     line
  1    15  assert found == 0 || found == 7  safe
  2    18  never worker.stop > 1            safe
  3    19  forall [result] == 7             safe

";
/// Far more states than any test here waits for.
const LARGE: &str = "programs/lamport/lamport2-fenced.tso";
const LARGE_DEFINE: &str = "-DN=8";

#[test]
fn a_violation_comes_first_and_with_its_run() {
    let ran = overtake(&["check", SB]);
    assert_eq!((ran.code, ran.first_line(), &ran.err[..]), (VIOLATED, "violated", ""));
    let expected = "\
violated
A run of 6 events under TSO; no run under SC does this:
  p0 delays `store [x], 1` past `load r, [y]`

     p0            p1            line                                 buffer
  1  store [x], 1                   7  x = 1 waits in the buffer      x=1
  2  load r, [y]                    8  r = 0, from memory
  3                store [y], 1    12  y = 1 waits in the buffer      y=1
  4                flush y         12  y: 0 -> 1                      empty
  5                load r, [x]     13  r = 0, from memory
  6  flush x                        7  x: 0 -> 1, the store in row 1  empty

forbidden in line 16: never p0.r == 0 && p1.r == 0 (p0.r = 0, p1.r = 0)
";
    assert_eq!(ran.out, expected, "\n{}", ran.out);
    // Whoever finds a run, the simplest one is shown.
    assert_eq!(overtake(&["check", "--engine", "explicit", SB]).out, expected);
}

#[test]
fn a_violation_that_needs_no_buffers_is_called_one() {
    let expected = "\
violated
A run of 4 events under SC, and so under TSO:

     writer          reader          line
  1  store [low], 1                     6  low: 0 -> 1
  2                  load l, [low]     11  l = 1, from memory
  3                  load h, [high]    12  h = 0, from memory
  4                  assert l <= h     13  the assertion fails

error of thread reader: the assertion fails in line 13: assert l <= h
";
    let ran = overtake(&["check", "programs/demos/assert.tso"]);
    assert_eq!((ran.code, &ran.out[..]), (VIOLATED, expected), "\n{}", ran.out);
    let json = &overtake(&["check", "--json", "programs/demos/assert.tso"]).objects()[0];
    assert_eq!((&json["trace_model"], &json["safe_under_sc"]), (&"sc".into(), &false.into()));
    assert_eq!(json["reason"], "goal reached and replayed, under SC already");
}

#[test]
fn many_delays_are_told_in_few_lines() {
    let ran = overtake(&["check", "programs/loop/loop-deep.tso", "-DN=20"]);
    let lines: Vec<&str> = ran.out.lines().collect();
    assert_eq!((ran.code, lines[0]), (VIOLATED, "violated"));
    assert!(lines[1].ends_with("events under TSO; no run under SC does this:"), "{}", ran.out);
    assert_eq!(lines[2..4], ["  t1 delays `store [x], v` past `load r, [y]` (20 times)", ""], "{}", ran.out);
}

#[test]
fn safe_is_said_with_its_reason() {
    let ran = overtake(&["check", "--model", "sc", SB]);
    assert_eq!((ran.code, ran.first_line(), &ran.err[..]), (0, "safe", ""));
    assert_eq!(ran.out.lines().count(), 2, "{}", ran.out);
    let robust = overtake(&["check", "programs/litmus/sb-fences.tso"]);
    let expected = "safe\nNo forbidden state is reachable under SC, and the program is robust: TSO adds nothing \
                    (4 states stored).\n";
    assert_eq!((robust.code, &robust.out[..]), (0, expected));
    let lagging = overtake(&["check", BENIGN]);
    let expected = format!(
        "safe\n{BENIGN_TABLE}Under TSO, no forbidden state is reachable, whatever waits in store buffers: states that \
         cover all others were visited (23 stored).\n"
    );
    assert_eq!((lagging.code, lagging.out), (0, expected));
    let delays = overtake(&["check", "--engine", "lazy", BENIGN]);
    let expected = format!(
        "safe\n{BENIGN_TABLE}No forbidden state is reachable under SC, nor with the 2 delays that matter; with them \
         built in, the program is robust (23 states stored).\n"
    );
    assert_eq!((delays.code, delays.out), (0, expected));
    let explicit = overtake(&["check", "--engine", "explicit", BENIGN]);
    let expected = format!(
        "safe\n{BENIGN_TABLE}Under TSO, no forbidden state is reachable: every state that could lead to one was \
         visited (6 stored).\n"
    );
    assert_eq!((explicit.code, explicit.out), (0, expected));
}

#[test]
fn answers_and_help_fit_the_lines_there_are() {
    let words = |text: &str| text.split_whitespace().map(str::to_string).collect::<Vec<_>>();
    for width in [80, 40] {
        let asked: [&[&str]; 3] =
            [&["robust", SB], &["robust", "--all", SB], &["check", "programs/demos/several.tso"]];
        for args in asked {
            let [plain, fitted] = [vec![], vec!["--width".to_string(), width.to_string()]].map(|more| {
                let args: Vec<&str> = args.iter().copied().chain(more.iter().map(String::as_str)).collect();
                overtake(&args).out
            });
            let longest = fitted.lines().map(|line| line.chars().count()).max();
            assert!(longest <= Some(width), "{args:?} in {width}:\n{fitted}");
            if args[0] == "robust" && width == 80 {
                assert_eq!(words(&fitted), words(&plain), "{args:?} in {width}");
            }
        }
    }
    for command in ["check", "robust", "fence", "outcomes"] {
        for args in [["help", command], [command, "-h"]] {
            let help = overtake(&args).out;
            let long: Vec<&str> = help.lines().filter(|line| line.chars().count() > 80).collect();
            assert!(!help.is_empty() && long.is_empty(), "{args:?}: {long:#?}");
        }
    }
}

#[test]
fn a_narrow_load_shows_nothing_but_its_bits() {
    let text = "shared x = 0x1ff\nthread p\n load8 r, [x]\nend\n";
    let asked = |property: &str, args: &[&str]| {
        let path = file("narrow.tso", format!("{text}{property}\n").as_bytes());
        overtake(&[&["check", path.to_str().unwrap()], args].concat())
    };
    for engine in ["auto", "lazy", "explicit", "automata", "past"] {
        let ran = asked("forbid p.r == 0x1ff", &["--engine", engine]);
        assert_eq!((ran.code, ran.first_line()), (0, "safe"), "{engine}: {}", ran.out);
    }
    let ran = asked("exists p.r == 0xff", &[]);
    assert_eq!(ran.code, VIOLATED);
    assert!(ran.out.contains("3  r = 255, from memory\n"), "{}", ran.out);
}

#[test]
fn a_fence_in_a_procedure_is_one_for_all_threads_that_call_it() {
    let text = "shared a, b\ninline enter(me, other)\n store [me], 1\n load r, [other]\n if r != 0 goto out\ncrit:\n nop\n\
                out:\nend\nthread p\n enter(a, b)\nend\nthread q\n enter(b, a)\nend\n\
                forbid p@enter.crit && q@enter.crit\n";
    let ran = overtake(&["fence", file("procedure.tso", text.as_bytes()).to_str().unwrap()]);
    let told = "\n  threads p, q, in 2 copies: a fence before line 4: `load r, [other]`\n";
    assert!(ran.code == 0 && ran.out.contains(told), "{}", ran.out);
}

#[test]
fn a_run_without_events_is_no_empty_table() {
    let text = "shared x\nthread p\nl:\n load r, [x]\n if r == 0 goto l\nend\n";
    let ran = overtake(&["check", "--hang", file("at-once.tso", text.as_bytes()).to_str().unwrap()]);
    let told = "A run of 0 events under TSO ends in a hang:\n\nfrom here on memory never changes";
    assert!(ran.code == VIOLATED && ran.out.contains(told), "{}", ran.out);
}

#[test]
fn what_holds_is_told_with_its_numbers() {
    let told = |text: &str| overtake(&["check", file("numbered.tso", text.as_bytes()).to_str().unwrap()]).out;
    let threads = "shared x, y\nthread p\n store [x], 1\nend\nthread q\n load r, [x]\nend\n";
    let mixed = told(&format!("{threads}never q.r == 7\nexists q.r == 1\nnever q.r == 8\n"));
    assert!(mixed.contains("\n\nProperties 1, 3:\n\nUnder TSO, no forbidden state"), "{mixed}");
    let alike = told(&format!("{threads}never q.r == 7\nnever q.r == 8\n"));
    assert!(!alike.contains("Propert"), "{alike}");
}

#[test]
fn every_property_is_told() {
    let several = "programs/demos/several.tso";
    let ran = overtake(&["check", several]);
    let table = "\
violated
     line
  1     8          assert r <= 1                        safe
  2    16  both    exists both: p.r == 0 && q.r == 0    violated only under TSO: reachable, as asked
  3    17  late    never late: p.r == 1                 violated under SC
  4    18  stored  forall stored: [x] == 1 && [y] == 1  safe
";
    assert_eq!(ran.code, VIOLATED);
    assert!(ran.out.starts_with(table), "\n{}", ran.out);
    assert!(ran.out.contains("\nreachable, as asked in line 16: exists both: "), "\n{}", ran.out);
    let json = &overtake(&["check", "--json", several]).objects()[0];
    let told = json["properties"].as_array().expect("a list").iter().map(|p| {
        let known = (p["number"].as_u64(), p["name"].as_str(), p["only_under_tso"].as_bool());
        (known, p["verdict"].as_str().unwrap_or_default(), p["trace"].is_array())
    });
    let expected = [
        ((Some(1), None, None), "safe", false),
        ((Some(2), Some("both"), Some(true)), "violated", true),
        ((Some(3), Some("late"), Some(false)), "violated", true),
        ((Some(4), Some("stored"), None), "safe", false),
    ];
    assert_eq!(told.collect::<Vec<_>>(), expected);
    let one = |wanted: &str| overtake(&["check", several, "-q", "--property", wanted]);
    assert_eq!(["1", "both", "3", "stored"].map(|wanted| one(wanted).code), [0, VIOLATED, VIOLATED, 0]);
    for wanted in ["0", "5", "nobody"] {
        let ran = one(wanted);
        assert_eq!(ran.code, BAD_INPUT, "{}", ran.err);
        assert!(ran.err.contains("the file has 4; named are both, late, stored"), "{}", ran.err);
    }
}

#[test]
fn quantified_properties_are_told_with_the_indices_that_fail() {
    let ran = overtake(&["check", "programs/dijkstra/dijkstra.tso"]);
    assert!(ran.out.contains(": forbid two i: "), "{}", ran.out);
    assert!(
        ran.out.trim_end().ends_with(" and 2)") || ran.out.trim_end().ends_with(" and 1)"),
        "{}",
        ran.out
    );
}

#[test]
fn all_harmful_pairs_are_listed_on_request() {
    let ran = overtake(&["robust", "--all", SB]);
    let listed = "not-robust\n2 store–load pairs with effect:\n  p0 delays `store [x], 1` (line 7) past `load r, [y]` \
                  (line 8)\n  p1 delays `store [y], 1` (line 12) past `load r, [x]` (line 13)\n";
    assert_eq!(ran.code, VIOLATED);
    assert!(ran.out.starts_with(listed), "{}", ran.out);
    let json = &overtake(&["robust", "--all", "--json", SB]).objects()[0];
    assert_eq!(json["witnesses"].as_array().map(Vec::len), Some(2));
    assert_eq!(json["all_witnesses"], true);
    assert_eq!(overtake(&["robust", "--all", "-q", MP]).code, 0);
}

#[test]
fn local_steps_are_folded_unless_asked_for() {
    let rows = |args: &[&str]| {
        let ran = overtake(&[&["check", "programs/dekker/simple.tso"], args].concat());
        let numbered = |line: &&str| line.trim_start().starts_with(|c: char| c.is_ascii_digit());
        ran.out.lines().filter(numbered).count()
    };
    let (folded, full) = (rows(&[]), rows(&["-v"]));
    assert!(folded < full, "{folded} of {full} rows");
}

#[test]
fn quiet_prints_verdicts_alone() {
    assert_eq!(overtake(&["check", "-q", SB]).out, "violated\n");
    assert_eq!(overtake(&["check", "--quiet", MP]).out, "safe\n");
    let ran = overtake(&["check", "--quiet", "--states", "10", LARGE, LARGE_DEFINE]);
    assert_eq!((&ran.out[..], ran.code), ("unknown\n", UNKNOWN));
}

/// Without what differs from run to run: times, memory, and the machine's cores.
fn steady(text: &str) -> String {
    let varies = ["per state ", "workers ", "time ", "peak memory "];
    let keep = |line: &&str| !varies.iter().any(|word| line.starts_with(word));
    let timeless = |line: &str| match line.rsplit_once(", ") {
        Some((rest, time)) if time.ends_with(" s") => format!("{rest}\n"),
        _ => format!("{line}\n"),
    };
    text.lines().filter(keep).map(timeless).collect()
}

#[test]
fn verbose_says_what_it_cost() {
    let ran = overtake(&["check", "-v", MP]);
    for word in ["engine", "states", "transitions", "workers", "time", "peak memory"] {
        assert!(ran.out.lines().any(|l| l.starts_with(word)), "{word} is missing: {}", ran.out);
    }
    let buffers = |args: &[&str]| overtake(&[&["check", "-v", MP], args].concat()).out.contains("\nbuffers ");
    assert!(buffers(&["--engine", "explicit"]) && !buffers(&["--model", "sc"]));
}

#[test]
fn verbose_tells_the_rounds() {
    let lazily = ["--engine", "lazy", "--threads", "1", BENIGN];
    let ran = overtake(&[&["check", "-v"], &lazily[..]].concat());
    let expected = "\
safe
     line
  1    15  assert found == 0 || found == 7  safe
  2    18  never worker.stop > 1            safe
  3    19  forall [result] == 7             safe

No forbidden state is reachable under SC, nor with the 2 delays that matter; with them built in, the program is \
robust (23 states stored).

engine        lazy
states        23
transitions   39

round 1: 7 locations, 5 edges
  SC check: 2 states
  oracle: 2 attacks, 0 of them refuted by the text, 12 states
  built in: worker delays store [result], 7 (line 8) past load stop, [cancelled] (line 9), 2 instructions
  built in: canceller delays store [cancelled], 1 (line 13) past load found, [result] (line 14), 2 instructions

round 2: 13 locations, 13 edges
  SC check: 9 states
  oracle: 8 attacks, 8 of them refuted by the text, 0 states
";
    assert_eq!((ran.code, &steady(&ran.out)[..]), (0, expected), "\n{}", ran.out);
    let json = &overtake(&[&["check", "--json"], &lazily[..]].concat()).objects()[0];
    assert_eq!((&json["engine"], &json["iterations"]), (&"lazy".into(), &2.into()));
    let delays = json["rounds"][0]["delays"].as_array().expect("a list");
    assert_eq!(
        (delays.len(), &delays[0]["thread"], &delays[0]["store_line"]),
        (2, &"worker".into(), &8.into())
    );
}

#[test]
fn who_was_asked_and_why_is_told() {
    let ran = overtake(&["check", "-v", "--threads", "1", BENIGN]);
    let turns = "\nturns:\n  lazy: robust programs first (14 states)\n  past: safe under SC and not robust (9 states)\n";
    assert!(ran.out.contains(turns), "{}", ran.out);
    let json = &overtake(&["check", "--json", BENIGN]).objects()[0];
    assert_eq!((&json["engine"], json["turns"].as_array().map(Vec::len)), (&"past".into(), Some(2)));
    assert_eq!(json["turns"][1]["why"], "safe under SC and not robust");
}

#[test]
fn rounds_may_be_limited() {
    let ran = overtake(&["check", "--engine", "lazy", "--iterations", "1", SB]);
    let expected = "unknown\nUnder TSO, the limit of 1 round was reached; 15 states were visited, none of them \
                    forbidden.\n";
    assert_eq!((ran.code, &ran.out[..]), (UNKNOWN, expected));
    let ran = overtake(&["check", "-q", "--engine", "lazy", "--iterations", "2", SB]);
    assert_eq!((ran.code, &ran.out[..]), (VIOLATED, "violated\n"));
}

#[test]
fn additive_delays_find_violations_and_prove_little() {
    let additive = |file| overtake(&["check", "--engine", "lazy", "--extension", "additive", file]);
    assert_eq!((additive(SB).code, additive(MP).code), (VIOLATED, 0));
    let ran = additive("programs/benign/polite-lock.tso");
    assert_eq!((ran.code, ran.first_line()), (UNKNOWN, "unknown"));
    assert!(ran.out.contains("only exact extension can prove safety"), "{}", ran.out);
}

#[test]
fn the_lazy_engine_says_what_it_cannot_see() {
    let inside = "programs/blocks/inside.tso";
    let lazy = overtake(&["check", "--engine", "lazy", inside]);
    let expected = "unknown\nUnder TSO, the property may hold inside a `lock` block, where other threads' buffers are \
                    frozen; the lazy engine cannot see that, the explicit one can; 0 states were visited, none of \
                    them forbidden.\n";
    assert_eq!((lazy.code, &lazy.out[..]), (UNKNOWN, expected));
    let auto = &overtake(&["check", "--json", inside]).objects()[0];
    assert_eq!((&auto["verdict"], &auto["engine"]), (&"violated".into(), &"past".into()));
}

#[test]
fn a_witness_is_told_with_its_cycle_and_its_run() {
    let expected = "\
not-robust
Thread p0 delays `store [x], 1` (line 7) past `load r, [y]` (line 8).

No SC run can look like this. Each of these steps would have to come before the next, in a cycle:

  row  1  p0  store [x], 1  comes before row 2 in its thread
  row  2  p0  load r, [y]   reads y as it was before row 4 writes it
  row  4  p1  flush y       is where the store of row 3 reaches memory
  row  3  p1  store [y], 1  comes before row 5 in its thread
  row  5  p1  load r, [x]   reads x as it was before row 6 writes it
  row  6  p0  flush x       is where the store of row 1 reaches memory: the cycle is closed

The run, with the steps of the cycle marked:

        p0            p1            line                                 buffer
  *  1  store [x], 1                   7  x = 1 waits in the buffer      x=1
  *  2  load r, [y]                    8  r = 0, from memory
  *  3                store [y], 1    12  y = 1 waits in the buffer      y=1
  *  4                flush y         12  y: 0 -> 1                      empty
  *  5                load r, [x]     13  r = 0, from memory
  *  6  flush x                        7  x: 0 -> 1, the store in row 1  empty
";
    let ran = overtake(&["robust", SB]);
    assert_eq!((ran.code, &ran.out[..], &ran.err[..]), (VIOLATED, expected, ""), "\n{}", ran.out);
    let costs = "\nattacks       2 pairs of a store and a load\n  \
                 fenced      0, or without a way from the store to the load\n  \
                 private     0, where no other thread takes part\n  \
                 acyclic     0, without a chain of conflicts back to the store\n  searched    2\n\
                 states        9\ntransitions   8\n";
    let verbose = overtake(&["robust", "-v", "--threads", "1", SB]);
    assert_eq!(steady(&verbose.out), format!("{expected}{costs}"), "\n{}", verbose.out);
}

#[test]
fn a_robust_program_is_said_to_be_one() {
    let expected = "robust\nSC and TSO have the same behaviours: the program's text leaves no store that a load could \
                    overtake with effect.\n";
    let ran = overtake(&["robust", "programs/litmus/sb-fences.tso"]);
    assert_eq!((ran.code, &ran.out[..], &ran.err[..]), (0, expected, ""));
    let searched = overtake(&["robust", "--no-static", "programs/litmus/n5.tso"]);
    let expected = "robust\nSC and TSO have the same behaviours: no store that a load overtakes leads to a cycle of \
                    happens-before.\n";
    assert_eq!((searched.code, &searched.out[..]), (0, expected));
    let verbose = overtake(&["robust", "-v", "programs/litmus/sb-fences.tso"]);
    assert!(
        verbose.out.contains("\nattacks       2 pairs of a store and a load\n  fenced      2,"),
        "{}",
        verbose.out
    );
}

#[test]
fn a_triangular_race_is_told_with_its_run() {
    let expected = "\
racy
Thread p0 may delay `store [x], 1` (line 7) past `load r, [y]` (line 8),
and thread p1 then overwrites what was loaded: `store [y], 1` (line 12).

A race is a warning: the program may still be robust, which `overtake robust` without `--triangular` decides.

The run under SC, with the three accesses marked:

        p0            p1            line
  *  1  store [x], 1                   7  x: 0 -> 1
  *  2  load r, [y]                    8  r = 0, from memory
  *  3                store [y], 1    12  y: 0 -> 1
";
    let ran = overtake(&["robust", "--triangular", SB]);
    assert_eq!((ran.code, &ran.out[..], &ran.err[..]), (VIOLATED, expected, ""), "\n{}", ran.out);
    let verbose = overtake(&["robust", "--triangular", "-v", "--threads", "1", SB]);
    let attackers = "\nattackers     1 thread with a load behind a store, of what others may write\n";
    assert!(verbose.out.starts_with(&format!("{expected}{attackers}states ")), "\n{}", verbose.out);
}

#[test]
fn a_program_without_triangular_races_is_said_to_be_robust() {
    let fenced = overtake(&["robust", "--triangular", "programs/litmus/sb-fences.tso"]);
    let expected = "race-free\nThere is no triangular race, so SC and TSO have the same behaviours: the program's text \
                    leaves no load behind a store that another thread could race with.\n";
    assert_eq!((fenced.code, &fenced.out[..], &fenced.err[..]), (0, expected, ""));
    let source = b"shared x, y; thread p; store [x], 1; load r, [y]; end
          thread q; load a, [x]; load b, [x]; assume a == 1 && b == 0; store [y], 1; end";
    let searched = fed(&["robust", "--triangular", "-", "--from", "tso"], source);
    let expected = "race-free\nThere is no triangular race, so SC and TSO have the same behaviours: no SC run has a store, \
                    a load that could overtake it, and then another thread's write to what was loaded.\n";
    assert_eq!((searched.code, &searched.out[..]), (0, expected));
}

#[test]
fn triangular_races_as_json() {
    let ran = overtake(&["robust", "--triangular", "--json", SB, MP]);
    let objects = ran.objects();
    assert_eq!((ran.code, objects.len()), (VIOLATED, 2));
    let (sb, mp) = (&objects[0], &objects[1]);
    assert_eq!((&sb["verdict"], &mp["verdict"]), (&"racy".into(), &"race-free".into()));
    assert_eq!((&sb["triangular"], &sb["attackers"], mp.get("race")), (&true.into(), &1.into(), None));
    let race = &sb["race"];
    let line = |event: &str| race[event]["line"].as_u64();
    assert_eq!((line("store"), line("load"), line("write")), (Some(7), Some(8), Some(12)));
    let list = |field: &str| race[field].as_array().expect("a list").clone();
    assert_eq!((list("path").len(), list("trace").len()), (2, 3));
    let ran =
        overtake(&["robust", "--triangular", "--json", "--timeout", "0ms", "programs/bakery/bakery.tso"]);
    let object = &ran.objects()[0];
    let told = (ran.code, &object["verdict"], &object["limit"]);
    assert_eq!(told, (UNKNOWN, &"unknown".into(), &"time".into()));
    let text = overtake(&["robust", "--triangular", "--states", "1", "programs/bakery/bakery.tso"]);
    assert!(text.out.ends_with("and no race was found.\n"), "{}", text.out);
}

#[test]
fn robustness_may_stay_unknown() {
    for (option, value, name, says, ends) in [
        ("--timeout", "0ms", "time", "The time limit of 0 s was reached", " while the file was read."),
        ("--states", "1", "states", "The limit of 1 state was reached; ", "no witness was found."),
    ] {
        let ran = overtake(&["robust", option, value, SB]);
        let lines: Vec<&str> = ran.out.lines().collect();
        assert_eq!((ran.code, lines[0], lines.len()), (UNKNOWN, "unknown", 2), "{}", ran.out);
        assert!(lines[1].starts_with(says) && lines[1].ends_with(ends), "{}", ran.out);
        let json = &overtake(&["robust", "--json", option, value, SB]).objects()[0];
        assert_eq!((&json["verdict"], &json["limit"]), (&"unknown".into(), &name.into()));
    }
}

#[test]
fn the_worst_robustness_of_several_files_decides() {
    let ran = overtake(&["robust", "-q", MP, SB, MP]);
    assert_eq!(ran.out, format!("{MP}: robust\n{SB}: not-robust\n{MP}: robust\n"));
    assert_eq!(ran.code, VIOLATED);
    let ran = overtake(&["robust", "-q", "--states", "1", MP, SB]);
    assert_eq!((ran.code, &ran.out[..]), (UNKNOWN, &format!("{MP}: robust\n{SB}: unknown\n")[..]));
    let ran = overtake(&["robust", "-q", "missing.tso", SB]);
    assert_eq!((ran.code, &ran.out[..]), (BAD_INPUT, &format!("{SB}: not-robust\n")[..]));
}

#[test]
fn robustness_as_json_has_its_witness() {
    let ran = overtake(&["robust", "--json", SB, MP]);
    let objects = ran.objects();
    assert_eq!((ran.code, objects.len()), (VIOLATED, 2));
    for object in &objects {
        for field in [
            "tool", "version", "file", "command", "model", "verdict", "states", "time_ms", "peak_kb",
            "reason",
        ] {
            assert!(!object[field].is_null(), "{field} is missing: {object}");
        }
        for field in ["total", "fenced", "private", "acyclic", "searched"] {
            assert!(object["attacks"][field].is_u64(), "{field} is missing: {object}");
        }
        assert_eq!(object["command"], "robust");
    }
    let (sb, mp) = (&objects[0], &objects[1]);
    assert_eq!((&sb["verdict"], &mp["verdict"]), (&"not-robust".into(), &"robust".into()));
    assert!(mp.get("witness").is_none());
    let witness = &sb["witness"];
    assert_eq!((&witness["thread"], &witness["store"]["line"]), (&"p0".into(), &7.into()));
    assert_eq!((&witness["load"]["line"], &witness["load"]["value"]), (&8.into(), &0.into()));
    let list = |field: &str| witness[field].as_array().expect("a list").clone();
    let (path, trace, cycle) = (list("path"), list("trace"), list("cycle"));
    assert_eq!((&path[0], &path[path.len() - 1]), (&witness["store"], &witness["load"]));
    assert_eq!((trace.len(), cycle.len()), (6, 6));
    for step in &cycle {
        let event = step["event"].as_u64().expect("a number") as usize;
        assert!(event < trace.len(), "{step}");
        let relation = step["relation"].as_str().expect("a word");
        assert!(["po", "same", "rf", "co", "fr"].contains(&relation), "{step}");
    }
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
        &["check", "--engine", "lazy", "--model", "sc", SB],
        &["check", "--engine", "lazy", "--buffer", "2", SB],
        &["check", "--engine", "eager", SB],
        &["check", "--extension", "vague", SB],
        &["check", "--iterations", "-1", SB],
        &["robust"],
        &["robust", "--model", "sc", SB],
        &["robust", "-q", "-v", SB],
        &["show", "--extend", "one", SB],
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

/// The help of a command begins with what the list of commands says of it, not with a comment on its arguments.
#[test]
fn every_command_says_what_it_is_for() {
    let list = overtake(&["--help"]).out;
    let commands = list.split("\nCommands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let mut seen = 0;
    for line in commands.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   ")) {
        let (name, purpose) = line.trim().split_once(' ').unwrap();
        if name != "help" {
            let help = overtake(&[name, "--help"]).out;
            let first: Vec<&str> = purpose.split_whitespace().take(4).collect();
            assert!(help.starts_with(&first.join(" ")), "{name}: {purpose}\n{help}");
            seen += 1;
        }
    }
    assert!(seen >= 7, "{list}");
}

#[test]
fn files_that_cannot_be_read_are_bad_input() {
    for (path, says) in [
        ("missing.tso", "missing.tso: "),
        ("programs", "this is a directory, not a program"),
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
                  thread q\n    load r, [x]\n    load s, [x]\nend\nforbid q.r == 2 && q.s == 1\n";
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
fn send(child: &std::process::Child, signal: &str) {
    // Long enough for the handler to be in place.
    std::thread::sleep(std::time::Duration::from_millis(700));
    let sent = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status();
    assert!(sent.is_ok_and(|s| s.success()), "the signal was sent");
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_the_waiting_for_input() {
    for signal in ["INT", "TERM", "HUP"] {
        let mut child = command(&["check", "-", "--from", "tso", "--json"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let open = child.stdin.take();
        send(&child, signal);
        let ran = Ran::new(child.wait_with_output().expect("it ends"));
        assert_eq!((ran.code, &ran.objects()[0]["limit"]), (UNKNOWN, &"cancelled".into()), "{signal}");
        drop(open);
    }
}

/// Nobody reads what is printed, so the first one is of no use.
#[cfg(unix)]
#[test]
fn a_second_interrupt_ends_the_process() {
    let long = file("cli-long.tso", format!("thread p; {}end", "nop; ".repeat(10_000)).as_bytes());
    let long = long.to_str().expect("the folder for tests has a plain name");
    let mut child = command(&["show", long]).stdout(Stdio::piped()).spawn().expect("the binary starts");
    let mut out = child.stdout.take().expect("it is piped");
    std::io::Read::read_exact(&mut out, &mut [0]).expect("it prints");
    send(&child, "TERM");
    send(&child, "INT");
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_in_unknown() {
    let child = command(&["check", LARGE, LARGE_DEFINE, "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    send(&child, "INT"); // The search would go on for minutes.
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
    let mut objects = ran.objects();
    let unread = objects.remove(7);
    assert_eq!(unread["verdict"], "error");
    assert!(unread["reason"].as_str().is_some_and(|r| r.contains("`MOVE` is not supported")), "{unread}");
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
fn an_extended_program_is_a_program() {
    let expected = "\
shared x, y

thread p0
    choose L1, L2
L1:
    store [x], 1
    goto L4
L2:
    nop
    goto L5
L3:
    load r, [y]
    halt
L4:
    fence
    goto L3
L5:
    load r, [y]
    store [x], 1
end

thread p1
    choose L1, L2
L1:
    store [y], 1
    goto L4
L2:
    nop
    goto L5
L3:
    load r, [x]
    halt
L4:
    fence
    goto L3
L5:
    load r, [x]
    store [y], 1
end

never p0.r == 0 && p1.r == 0
";
    let ran = overtake(&["show", "--extend", "1", SB]);
    assert_eq!((ran.code, &ran.out[..], &ran.err[..]), (0, expected, ""), "\n{}", ran.out);
    // What TSO does to the program, SC does to the extended one.
    let read_back = check(&ran.out, &["-q", "--model", "sc"]);
    assert_eq!((read_back.code, &read_back.out[..]), (VIOLATED, "violated\n"), "{}", read_back.err);
    let robust = fed(&["robust", "-", "--from", "tso", "-q"], ran.out.as_bytes());
    assert_eq!((robust.code, &robust.out[..]), (0, "robust\n"));
    // There is no second round.
    assert_eq!(overtake(&["show", "--extend", "2", SB]).out, expected);
}

#[test]
fn an_extended_program_can_be_drawn() {
    let (plain, extended) =
        (overtake(&["show", "--dot", SB]), overtake(&["show", "--extend", "1", "--dot", SB]));
    assert_eq!((extended.code, extended.first_line()), (0, "digraph program {"));
    let arrows = |dot: &Ran| dot.out.matches(" -> ").count();
    assert_eq!((arrows(&plain), arrows(&extended)), (6, 14), "{}", extended.out);
    assert!(extended.out.contains("t0_3 -> t0_1 [label=\"fence\"];"), "{}", extended.out);
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
fn formats_of_other_tools_are_read_by_their_extension() {
    let folder = std::env::temp_dir().join(format!("overtake-formats-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let thread = "initial a transition a b write 1 0 transition b c read r 1 transition c d check == r 0";
    let trencher =
        |last: &str| format!("thread p {thread} {last} end thread q {} {last} end", swapped(thread));
    let rmm = "forbidden CS CS process(2) data x = 0 text write: x[my] := 1; read: x[0] = 0; CS: nop";
    let files = [("sb.txt", trencher("final d")), ("open.txt", trencher("")), ("sb.rmm", rmm.to_string())];
    let path = |name: &str| folder.join(name).display().to_string();
    for (name, text) in &files {
        std::fs::write(folder.join(name), text).expect("it can be written");
    }
    for name in ["sb.txt", "sb.rmm"] {
        assert_eq!(overtake(&["check", "-q", &path(name)]).out, "violated\n", "{name}");
        assert_eq!(overtake(&["check", "-q", "--model", "sc", &path(name)]).out, "safe\n", "{name}");
        let define = overtake(&["check", "-D", "N=1", &path(name)]);
        assert_eq!(
            (define.code, define.err.contains("have parameters")),
            (BAD_INPUT, true),
            "{}",
            define.err
        );
    }
    let nothing = overtake(&["check", &path("open.txt")]);
    assert_eq!((nothing.code, &nothing.out[..]), (BAD_INPUT, ""));
    assert!(nothing.err.contains("there is nothing to check"), "{}", nothing.err);
    assert_eq!(overtake(&["robust", "-q", &path("open.txt")]).out, "not-robust\n");
    std::fs::remove_dir_all(&folder).expect("it is ours");
}

/// The same thread with the two cells exchanged.
fn swapped(thread: &str) -> String {
    thread.replace("write 1 0", "write 1 1").replace("read r 1", "read r 0")
}

#[test]
fn conversions_for_other_tools_look_like_theirs() {
    let trencher = overtake(&["convert", SB, "--to", "trencher"]);
    assert_eq!((trencher.code, trencher.out.contains("thread")), (0, true), "{}", trencher.err);
    let litmus = overtake(&["convert", SB, "--to", "litmus"]);
    assert_eq!((litmus.code, litmus.first_line()), (0, "X86 sb"), "{}", litmus.err);
    let outcomes = fed(&["outcomes", "-", "--from", "litmus", "-q"], litmus.out.as_bytes());
    assert!(outcomes.out.contains("Sometimes"), "{}{}", outcomes.out, outcomes.err);
    let refused = overtake(&["convert", "programs/peterson/peterson.tso", "--to", "litmus"]);
    assert_eq!(refused.code, BAD_INPUT);
    assert!(refused.err.contains("a test asks about final states alone"), "{}", refused.err);
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
    let path = file("binary.tso", &[b't', b'h', b'r', b'e', 0, 0xff, 0xfe, 0]);
    let ran = overtake(&["check", path.to_str().expect("it is text")]);
    assert_eq!((ran.code, &ran.out[..]), (BAD_INPUT, ""));
    assert!(ran.err.contains("not UTF-8"), "{}", ran.err);
}

/// Files in a folder of their own.
fn written(folder: &str, files: &[(&str, &str)]) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("overtake-{folder}-{}", std::process::id()));
    for (name, text) in files {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
        std::fs::write(path, text).expect("it can be written");
    }
    folder
}

#[test]
fn included_files_are_named_in_messages_and_traces() {
    let lock = "inline acquire(l)\nwait:\n    load r, [l]\n    if r != 0 goto wait\n    store [l], 1\nend\n";
    let main = "include \"lib/lock.tso\"\nshared l\nthread p[i in 1..=2]\n    acquire(l)\ncritical:\n    nop\nend\n\
                forbid all i: p[i]@critical\n";
    let folder = written("include", &[("main.tso", main), ("lib/lock.tso", lock)]);
    let file = folder.join("main.tso");
    let file = file.to_str().expect("a name");
    let ran = overtake(&["check", file]);
    assert_eq!((ran.code, &ran.err[..]), (VIOLATED, ""), "{}", ran.out);
    assert!(ran.out.contains("lib/lock.tso:3") && ran.out.contains("in line 8: forbid"), "{}", ran.out);
    let json = &overtake(&["check", "--json", file]).objects()[0];
    assert!(json["trace"][0]["file"].as_str().is_some_and(|f| f.ends_with("lib/lock.tso")), "{json}");
    assert_eq!(json["trace"][0]["line"], 3);

    std::fs::write(folder.join("lib/lock.tso"), lock.replace("load r", "laod r")).expect("it can be written");
    let ran = overtake(&["check", file]);
    assert_eq!(ran.code, BAD_INPUT);
    assert!(ran.err.contains("lib/lock.tso:3:5") && ran.err.contains("did you mean `load`?"), "{}", ran.err);

    std::fs::write(folder.join("lib/lock.tso"), "include \"../main.tso\"\n").expect("it can be written");
    let ran = overtake(&["check", file]);
    assert_eq!(ran.code, BAD_INPUT);
    assert!(ran.err.contains("`../main.tso` includes itself"), "{}", ran.err);
    std::fs::remove_dir_all(folder).expect("it is ours");
}

#[test]
fn a_folder_is_no_program() {
    let ran = overtake(&["check", "--from", "tso", "programs"]);
    assert_eq!(
        (ran.code, &ran.err[..]),
        (BAD_INPUT, "error: programs: this is a directory, not a program\n")
    );
}

#[test]
fn programs_are_tested_against_what_their_files_say() {
    let sb = "shared x, y\nthread p\nstore [x], 1; load r, [y]\nend\nthread q\nstore [y], 1; load r, [x]\nend\n\
              never p.r == 0 && q.r == 0\n";
    let right = format!("// expect tso violated, sc safe, robust no, fences 2 per-thread, fences 2\n{sb}");
    let wrong = format!("// expect tso safe, robust no\n# expect fences 1\n{sb}");
    let doubtful = "// expect sc safe\nshared x\nthread p\nload r, [x]; r = s\nend\nnever p.r == 1\n";
    let files = [
        ("a/right.tso", &right[..]),
        ("b.tso", &wrong),
        ("c.tso", doubtful),
        ("silent.tso", sb),
        ("d.md", ""),
    ];
    let folder = written("test", &files);
    let ran = |args: &[&str]| {
        let output = command(&[&["test"], args].concat()).current_dir(&folder).output();
        let Ran { code, out, err } = Ran::new(output.expect("the binary starts"));
        (code, out, err)
    };
    let (code, out, _) = ran(&["."]);
    let expected = "passed ./a/right.tso\nFAILED ./b.tso\n    expected tso safe, found violated\n    \
                    expected fences 1, found 2\npassed ./c.tso\n2 passed, 1 failed\n";
    assert_eq!((code, &out[..]), (VIOLATED, expected), "{out}");
    let (code, out, err) = ran(&["a", "c.tso", "--jobs", "2"]);
    assert_eq!((code, &out[..]), (0, "passed a/right.tso\npassed c.tso\n2 passed, 0 failed\n"), "{out}");
    assert!(err.contains("register `s` is read but never assigned"), "{err}");
    let (code, out, _) = ran(&["c.tso", "--deny-warnings", "--quiet"]);
    assert_eq!((code, &out[..]), (VIOLATED, "FAILED c.tso\n    there are warnings\n0 passed, 1 failed\n"));
    for nothing in ["silent.tso", "nowhere"] {
        assert_eq!(ran(&[nothing]).0, BAD_INPUT, "{nothing}");
    }
    std::fs::remove_dir_all(folder).expect("it is ours");
}

/// Does the value agree with the schema? As much of the language of schemas as ours uses.
fn agrees(value: &Value, schema: &Value, root: &Value) -> Result<(), String> {
    let wrong = || Err(format!("{value} is not {schema}"));
    if let Some(name) = schema["$ref"].as_str().and_then(|r| r.strip_prefix("#/$defs/")) {
        return agrees(value, &root["$defs"][name], root);
    }
    let is_type = match schema["type"].as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        _ => true,
    };
    let listed = schema["enum"].as_array().is_none_or(|all| all.contains(value));
    let constant = schema.get("const").is_none_or(|one| one == value);
    let required = schema["required"].as_array().into_iter().flatten();
    let complete = required.filter_map(Value::as_str).all(|name| value.get(name).is_some());
    if !(is_type && listed && constant && complete) {
        return wrong();
    }
    for (name, part) in schema["properties"].as_object().into_iter().flatten() {
        value.get(name).filter(|v| !v.is_null()).map_or(Ok(()), |v| agrees(v, part, root))?;
    }
    let items = value.as_array().filter(|_| schema.get("items").is_some()).into_iter().flatten();
    items.into_iter().try_for_each(|item| agrees(item, &schema["items"], root))
}

#[test]
fn every_file_gets_an_object_and_every_field_is_explained() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let page = std::fs::read_to_string(docs.join("json.md")).expect("the page is there");
    let schema = std::fs::read_to_string(docs.join("json.schema.json")).expect("the schema is there");
    let schema: Value = serde_json::from_str(&schema).expect("it is JSON");
    let asked: [&[&str]; 12] = [
        &["check", SB, MP],
        &["check", "programs/demos/assert.tso"],
        &["check", SB, "missing.tso", "--states", "1"],
        &["robust", SB, BENIGN],
        &["robust", "--triangular", SB],
        &["robust", "--all", SB],
        &["fence", SB, "missing.tso"],
        &["outcomes", SB, MP, "missing.tso"],
        &["show", "--states", SB],
        &["show", "--states", "missing.tso"],
        &["verify", SB, "/dev/null"],
        &["verify", "missing.tso", "/dev/null"],
    ];
    for args in asked {
        let ran = overtake(&[args, &["--json"]].concat());
        let objects = ran.objects();
        let files = args.iter().filter(|a| a.ends_with(".tso")).count();
        assert_eq!(objects.len(), files, "{args:?}\n{}", ran.out);
        for object in &objects {
            agrees(object, &schema, &schema).unwrap_or_else(|why| panic!("{args:?}: {why}"));
            for field in object.as_object().expect("an object").keys() {
                assert!(page.contains(&format!("`{field}`")), "docs/json.md does not explain `{field}`");
            }
        }
        let wrong = objects.iter().find(|o| o["verdict"] == "error");
        let at_fault = args.iter().find(|a| ["missing.tso", "/dev/null"].contains(a));
        assert_eq!(wrong.is_some(), at_fault.is_some(), "{args:?}");
        assert!(wrong.is_none_or(|o| o["reason"].as_str().is_some_and(|r| r.contains(at_fault.unwrap()))));
    }
    let ran = overtake(&["show", "--states", "--timeout", "0s", "--json", SB]);
    assert_eq!((ran.code, &ran.objects()[0]["verdict"]), (UNKNOWN, &"unknown".into()));
    let assertion = &overtake(&["check", "--json", "programs/demos/assert.tso"]).objects()[0];
    let last = assertion["trace"].as_array().and_then(|t| t.last()).expect("a run");
    assert_eq!(last["kind"], "assert");
}

/// The place of a certificate, and what came of asking for it.
fn certified(name: &str, args: &[&str]) -> (String, Ran) {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_file(&path);
    let path = path.to_str().expect("it is text").to_string();
    let ran = overtake(&[args, &["--certificate", &path]].concat());
    (path, ran)
}

#[test]
fn answers_of_every_kind_have_certificates() {
    let fenced = "programs/peterson/peterson-fenced.tso";
    let questions: [&[&str]; 6] = [
        &["check", fenced],
        &["check", fenced, "--model", "sc"],
        &["check", SB],
        &["check", "programs/demos/assert.tso", "--model", "sc"],
        &["robust", fenced],
        &["robust", SB],
    ];
    for (k, question) in questions.iter().enumerate() {
        let (certificate, ran) = certified(&format!("kind{k}.cert"), question);
        let plain = overtake(question);
        assert_eq!((ran.code, ran.first_line()), (plain.code, plain.first_line()));
        assert!(ran.out.contains(&format!("Certificate: {certificate} (")), "{}", ran.out);
        let verified = overtake(&["verify", question[1], &certificate]);
        assert_eq!(
            (verified.code, verified.first_line()),
            (0, "accepted"),
            "{}{}",
            verified.out,
            verified.err
        );
        let told = certified(&format!("kind{k}.cert"), &[question, &["--json"][..]].concat()).1;
        assert_eq!(told.objects()[0]["certified"], true);
    }
}

#[test]
fn a_certificate_is_about_one_question() {
    let (certificate, ran) = certified("one.cert", &["check", "programs/dekker/dekker-fenced.tso"]);
    assert_eq!(ran.code, 0, "{}", ran.out);
    let other = overtake(&["verify", "programs/dekker/dekker.tso", &certificate]);
    assert_eq!((other.code, other.first_line()), (VIOLATED, "rejected"));
    assert!(other.out.contains("Program: the certificate is about another one"), "{}", other.out);
    let json = &overtake(&["verify", "programs/dekker/dekker.tso", &certificate, "--json"]).objects()[0];
    assert_eq!((&json["command"], &json["verdict"]), (&"verify".into(), &"rejected".into()));
    assert_eq!(json["claim"]["verdict"], "safe");
    let two = overtake(&["check", SB, MP, "--certificate", &certificate]);
    assert_eq!(two.code, BAD_INPUT, "{}", two.out);
}

#[test]
fn definitions_and_properties_that_differ_are_named() {
    let burns = "programs/burns/burns-fenced.tso";
    let (certificate, ran) = certified("defined.cert", &["check", burns, "-DN=2"]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert_eq!(overtake(&["verify", burns, &certificate, "-DN=2"]).first_line(), "accepted");
    let other = overtake(&["verify", burns, &certificate, "-DN=3"]);
    assert_eq!(other.code, VIOLATED);
    assert!(other.out.contains("efinition: N is 2 in the certificate, and 3 here"), "{}", other.out);
    let text = "shared x; thread p; store [x], 1; load r, [x]; end\n";
    let asks = |name: &str, what: &str| file(name, format!("{text}exists p.r == {what}\n").as_bytes());
    let (one, two) = (asks("one.tso", "0"), asks("two.tso", "2"));
    let name = |path: &PathBuf| path.to_str().expect("it is text").to_string();
    let (certificate, ran) = certified("asked.cert", &["check", &name(&one)]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let other = overtake(&["verify", &name(&two), &certificate]);
    assert!(other.out.contains("roperty: `exists p.r == 0` in the certificate"), "{}", other.out);
}

#[test]
fn a_certificate_may_be_about_one_property() {
    let text = "shared x, y\nthread p\n store [x], 1\n load r, [y]\n assert r == 0\nend\n\
                thread q\n store [y], 1\n load r, [x]\nend\nforbid [x] == 2\nexists p.r == 0 && q.r == 0\n";
    let path = file("several.tso", text.as_bytes());
    let name = path.to_str().expect("it is text");
    for (number, code) in [(1, VIOLATED), (2, 0), (3, VIOLATED)] {
        let asked = ["check", name, "--property", &number.to_string()];
        let (certificate, ran) = certified("several.cert", &asked);
        assert_eq!(ran.code, code, "{number}: {}{}", ran.out, ran.err);
        let verified = overtake(&["verify", name, &certificate]);
        assert_eq!(verified.first_line(), "accepted", "{number}: {}{}", ran.out, verified.out);
        let json = &overtake(&["verify", name, &certificate, "--json"]).objects()[0];
        assert_eq!(json["claim"]["property"], number);
    }
    // The program is not safe, and nobody may think that a certificate says so.
    let (certificate, _) = certified("several.cert", &["check", name, "--property", "2"]);
    let verified = overtake(&["verify", name, &certificate]);
    let claim = "The program is safe under TSO, if only `forbid [x] == 2` is asked about.";
    assert!(verified.out.contains(claim), "{}", verified.out);
}

#[test]
fn what_is_no_certificate_is_refused() {
    let (certificate, _) = certified("whole.cert", &["robust", "programs/peterson/peterson-fenced.tso"]);
    let whole = std::fs::read(&certificate).expect("it was written");
    let newer =
        [b"overtake certificate 99", &whole[whole.iter().position(|b| *b == b'\n').unwrap()..]].concat();
    let broken: [(&[u8], &str); 5] = [
        (b"", "this is no certificate"),
        (b"\x7fELF\n\n", "this is no certificate"),
        (&whole[..whole.len() / 2], "early"),
        (&whole[..whole.len() - 9], "the body is damaged"),
        (&newer, "has version 99"),
    ];
    for (bytes, why) in broken {
        let path = file("broken.cert", bytes);
        let ran = overtake(&["verify", "programs/peterson/peterson-fenced.tso", path.to_str().unwrap()]);
        assert_eq!((ran.code, &ran.out[..]), (BAD_INPUT, ""));
        assert!(ran.err.contains(why), "{}", ran.err);
    }
    assert_eq!(overtake(&["verify", SB, "no/such/file"]).code, BAD_INPUT);
}

#[test]
fn an_answer_stands_without_its_certificate() {
    let (_, ran) = certified("none.cert", &["check", LARGE, LARGE_DEFINE, "--states", "1000", "--json"]);
    let told = &ran.objects()[0];
    assert_eq!((ran.code, &told["certified"]), (UNKNOWN, &false.into()));
    assert_eq!(told["certificate_reason"], "there is no answer to certify");
    let nowhere = overtake(&["check", SB, "--certificate", "no/such/folder/x.cert"]);
    assert_eq!((nowhere.code, nowhere.first_line()), (BAD_INPUT, "violated"), "{}", nowhere.err);
}

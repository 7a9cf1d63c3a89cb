//! Do limits hold in every phase? A run that is cancelled, or whose time is over, ends before it prepares
//! anything, at every door; large programs, which take a while to read, to prepare and to write, end soon
//! after their time is over, within their memory; and what is said then is `unknown`.

#[path = "common/ran.rs"]
mod ran;

use overtake::analysis::interval::Intervals;
use overtake::engine::{self, Choice, Options};
use overtake::front::{Unread, litmus, promela, rmm, ron, trencher, tso};
use overtake::limits::{Limit, Limits};
use overtake::model::Program;
use overtake::model::litmus::Litmus;
use overtake::query::repair::Aim;
use overtake::query::{Answer, Goal, Model};
use overtake::repair::{self, Allowed, Wanted};
use overtake::report;
use ran::*;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const SB: &str = "shared x, y
    thread p; store [x], 1; load r, [y]; end
    thread q; store [y], 1; load r, [x]; end
    exists p.r == 0 && q.r == 0";

fn program(source: &str) -> Program {
    tso::read(source, &[], &Limits::default()).unwrap_or_else(|wrong| panic!("{source}\n{wrong:?}")).program
}

/// Limits that have been reached, and what is to be said of them.
fn reached() -> [(Limits, Limit); 2] {
    let cancelled = Limits::default();
    cancelled.cancelled.store(true, Ordering::Relaxed);
    let late = Limits { deadline: Some(Instant::now()), ..Limits::default() };
    [(cancelled, Limit::Cancelled), (late, Limit::Time(Duration::ZERO))]
}

#[test]
fn nothing_is_checked_once_a_limit_is_reached() {
    let program = program(SB);
    for engine in Choice::all() {
        for (limits, limit) in reached() {
            let options = Options { engine, ..Options::with_workers(1) };
            let outcome = engine::check(&program, &Goal::of(&program), &options, &limits).unwrap();
            assert!(matches!(outcome.answer, Answer::Unknown(l) if l == limit), "{engine:?} {limit:?}");
            assert_eq!(outcome.stats.states, 0, "{engine:?}");
        }
    }
}

#[test]
fn no_other_door_opens_either() {
    let program = program(SB);
    let options = Options::with_workers(1);
    for (limits, limit) in reached() {
        let robust = engine::robust(&program, &options, &limits).unwrap();
        assert!(matches!(robust.answer, Answer::Unknown(l) if l == limit), "{limit:?}");
        let races = engine::triangular(&program, &options, &limits).unwrap();
        assert!(matches!(races.answer, Answer::Unknown(l) if l == limit), "{limit:?}");
        assert_eq!(engine::outcomes(&program, &[], &options, &limits).states, Err(limit.clone()));
        let extended = engine::extended(&program, &Goal::of(&program), &options, &limits, 1).unwrap();
        assert_eq!(extended.err(), Some(limit));
    }
}

#[test]
fn nothing_is_repaired_once_a_limit_is_reached() {
    let program = program(SB);
    for aim in [Aim::Robustness, Aim::Property, Aim::Triangular] {
        for (limits, limit) in reached() {
            let allowed = Allowed { fence: Some(1), ..Allowed::default() };
            let (wanted, options) = (Wanted { aim, list: 1 }, Options::with_workers(1));
            let repair = repair::repair(&program, &wanted, &allowed, &options, &limits).unwrap();
            assert!(matches!(repair.answer, Answer::Unknown(l) if l == limit), "{aim:?} {limit:?}");
        }
    }
}

/// A large file of each format, so many instructions long.
fn files(size: usize) -> Vec<(Reader, String)> {
    let each = |one: &dyn Fn(usize) -> String| (0..size).map(one).collect::<String>();
    let tso: Reader = |source, limits| tso::read(source, &[], limits).map(|input| input.program);
    let text = format!("shared x\nthread p\n{}end\n", each(&|k| format!("l{k}: store [x], {k}\n")));
    let program = program(&text);
    vec![
        (tso, text),
        (tso, format!("shared x\nthread p\nrepeat k in 0..{size} {{ l: store [x], k }}\nend\nforbid p@l\n")),
        (
            |source, limits| ron::read(source, limits).map(|input| input.program),
            ron::write(&program, &Limits::default()).unwrap(),
        ),
        (
            |source, limits| trencher::read(source, limits).map(|input| input.program),
            trencher::write(&program, &Limits::default()).unwrap(),
        ),
        (
            |source, limits| rmm::read(source, limits).map(|input| input.program),
            format!(
                "forbidden * data x = 0 process text {}nop",
                each(&|k| format!("l{k}: write: x := {k};\n"))
            ),
        ),
        (
            |source, limits| litmus::read(source, limits).map(|input| input.program),
            format!("X86 T\n{{}}\nP0;\n{}exists (x=0)", each(&|k| format!("MOV [x],${k};\n"))),
        ),
    ]
}

type Reader = fn(&str, &Limits) -> Result<Program, Unread>;

/// Every writer, and whether a limit kept it from writing.
fn writers() -> Vec<fn(&Program, &Limits) -> bool> {
    vec![
        |program, limits| tso::write(program, limits).is_err(),
        |program, limits| ron::write(program, limits).is_err(),
        |program, limits| trencher::write(program, limits).is_err(),
        |program, limits| promela::write(program, promela::Joining::Joined, limits).is_err(),
        |program, limits| litmus::write(program, "T", Litmus::of(program, "T").as_ref(), limits).is_err(),
        |program, limits| report::listing::listing(program, false, limits).is_err(),
        |program, limits| report::dot::dot(program, limits).is_err(),
    ]
}

#[test]
fn nothing_is_read_once_a_limit_is_reached() {
    for (read, source) in files(1_000) {
        for (limits, limit) in reached() {
            let unread = read(&source, &limits).map(|_| ());
            assert_eq!((unread, limits.spent()), (Err(Unread::Limit(limit)), 1), "{source:.60}");
        }
    }
}

#[test]
fn nothing_is_shown_or_written_once_a_limit_is_reached() {
    let program = program(SB);
    for (i, is_kept) in writers().into_iter().enumerate() {
        for (limits, _) in reached() {
            assert!(is_kept(&program, &limits), "writer {i}");
        }
    }
}

/// The clock is looked at every 2^13 steps, and memory every 16th time.
const BETWEEN_LOOKS: u64 = 1 << 17;

#[test]
#[cfg(target_os = "linux")]
fn reading_and_writing_end_where_memory_does() {
    let too_little = || Limits { memory: Some(1), ..Limits::default() };
    for (read, source) in files(30_000) {
        let (all, few) = (Limits::default(), too_little());
        let program = read(&source, &all).unwrap_or_else(|wrong| panic!("{source:.60}\n{wrong:?}"));
        assert!(all.spent() > 2 * BETWEEN_LOOKS, "{} steps for\n{source:.60}", all.spent());
        assert_eq!(read(&source, &few).map(|_| ()), Err(Unread::Limit(Limit::Memory(1))), "{source:.60}");
        assert!(few.spent() < 2 * BETWEEN_LOOKS, "{} steps for\n{source:.60}", few.spent());
        for (i, is_kept) in writers().into_iter().enumerate() {
            let few = too_little();
            // What no text of the format can say is refused before there is much to write.
            if !is_kept(&program, &Limits::default()) {
                assert!(is_kept(&program, &few), "writer {i} of\n{source:.60}");
                assert!(few.spent() < 2 * BETWEEN_LOOKS, "writer {i}: {} steps", few.spent());
            }
        }
    }
}

/// Whenever the time is over, nothing is said to be wrong with a file that is right.
#[test]
fn a_limit_that_comes_at_any_time_ends_the_reading() {
    for (read, source) in files(300) {
        for micros in (0..12).map(|k| 3 << k) {
            let limits = Limits::default().with_timeout(Duration::from_micros(micros));
            let late = Unread::Limit(Limit::Time(Duration::from_micros(micros)));
            let read = read(&source, &limits).map(|_| ());
            assert!(read.is_ok() || read == Err(late), "{read:?} of\n{source:.60}");
        }
    }
}

#[test]
fn reading_takes_steps_in_proportion() {
    for ((read, small), (_, large)) in files(1_000).into_iter().zip(files(4_000)) {
        let effort = |source: &str| {
            let limits = Limits::default();
            read(source, &limits).unwrap_or_else(|wrong| panic!("{source:.60}\n{wrong:?}"));
            limits.spent()
        };
        let (a, b) = (effort(&small), effort(&large));
        assert!(3 * a < b && b < 5 * a, "{a} steps, and {b} for four times the program\n{small:.60}");
    }
}

/// A limit that is reached later, however late: there is an answer, or the limit is told.
#[test]
fn a_limit_that_comes_at_any_time_ends_the_run() {
    let program = program(include_str!("../programs/bakery/bakery.tso"));
    let goal = Goal::of(&program);
    for micros in [1, 10, 100, 300, 1_000, 3_000, 10_000] {
        for engine in Choice::all() {
            let limits = Limits::default().with_timeout(Duration::from_micros(micros));
            let options = Options { engine, ..Options::with_workers(1) };
            let outcome = engine::check(&program, &goal, &options, &limits).unwrap();
            let late = Limit::Time(Duration::from_micros(micros));
            assert!(
                matches!(&outcome.answer, Answer::Fails(t) if t.model == Model::Tso)
                    || matches!(&outcome.answer, Answer::Unknown(l) if *l == late),
                "{:?}",
                outcome.answer
            );
        }
    }
}

/// Programs of this size and shape take long to prepare.
fn shapes(size: usize) -> Vec<(&'static str, String)> {
    let each = |one: &dyn Fn(usize) -> String| (0..size).map(one).collect::<String>();
    let with = |p: String, goal: &str| {
        format!("shared x, y, a[{size}]\nthread p\n{p}end\nthread q\nstore [y], 1\nload r, [x]\nend\n{goal}")
    };
    vec![
        ("pairs", with(each(&|_| "store [x], 1\nload r, [y]\n".into()), "forbid q.r == 2")),
        ("registers", {
            let loads = each(&|k| format!("load r{}, [x]\n", k % 5_000));
            with(loads + &each(&|k| format!("store [y], r{}\n", k % 5_000)), "forbid q.r == 2")
        }),
        (
            "cells",
            with(each(&|k| format!("store [a + {k}], 1\nload r, [a + {}]\n", k / 2)), "forbid q.r == 2"),
        ),
        ("computed", {
            let body = each(&|_| "store [a + i], 1\nload j, [a + i]\n".into());
            with(format!("i = any(0..1000)\n{body}"), "forbid q.r == 2")
        }),
        ("branches", {
            let one = |k: usize| format!("load r, [x]\nif r == {k} goto l{k}\nstore [y], {k}\nl{k}:\n");
            with(each(&one) + "nop\n", "forbid q.r == 2")
        }),
        ("properties", {
            let labels = each(&|k| format!("l{k}: store [x], 1\n"));
            with(labels, &each(&|k| format!("forbid p@l{k} && q.r == 2\n")))
        }),
    ]
}

/// What a limit of the process's whole time comes to, with much to spare for a machine that is busy with
/// other things.
const SPARE: Duration = Duration::from_secs(8);

#[test]
fn large_programs_end_soon_after_their_time_is_over() {
    for (name, source) in shapes(20_000) {
        let path = file(&format!("limits-{name}.tso"), source.as_bytes());
        let path = path.to_str().expect("the folder for tests has a plain name");
        for command in [&["check"][..], &["robust"], &["robust", "--triangular"], &["fence"], &["show"]] {
            // One millisecond is over before the file has been read; in fifty there may be an answer.
            for (limit, surely) in [("1ms", true), ("50ms", false)] {
                let start = Instant::now();
                let ran = overtake(&[command, &["--timeout", limit, path]].concat());
                assert!(start.elapsed() < SPARE, "{command:?} of {name} took {:?}", start.elapsed());
                let said = (ran.out + &ran.err).to_lowercase();
                let named = said.contains("the time limit of ");
                assert!(named || !surely, "{command:?} of {name}: {said}");
                assert_eq!(ran.code == UNKNOWN, named, "{command:?} of {name}: {said}");
            }
        }
    }
}

/// What is long but simple: nothing about it may take time that grows with the square of its length.
#[test]
fn long_models_and_runs_are_done_with_soon() {
    let each = |one: &dyn Fn(usize) -> String| (1..80_000).map(one).collect::<String>();
    let straight =
        format!("shared x\nthread p\n{}end\nexists [x] == 7\n", each(&|k| format!("store [x], {}\n", k % 9)));
    let states = each(&|k| format!(", q{k}"));
    let moves = each(&|k| format!("q{} -> q{k} {{ effect x = x + 1 - x; }},\n", k - 1));
    let moves = moves.trim_end().trim_end_matches(',');
    let model =
        format!("int x = 0;\nprocess P {{ state q0{states};\ninit q0;\ntrans {moves};\n}}\nsystem async;\n");
    let asserts = format!("shared x\nthread p\nload r, [x]\n{}end\n", each(&|k| format!("assert r < {k}\n")));
    let properties =
        format!("shared x\nthread p\nload r, [x]\nend\n{}", each(&|k| format!("forbid p.r == {k}\n")));
    let files = [
        ("limits-straight.tso", straight),
        ("limits-line.dve", model),
        ("limits-asserts.tso", asserts),
        ("limits-properties.tso", properties),
    ];
    for (name, source) in files {
        let path = file(name, source.as_bytes());
        let path = path.to_str().expect("the folder for tests has a plain name");
        let start = Instant::now();
        let ran = overtake(&["check", "--timeout", "5s", path]);
        assert!(start.elapsed() < 2 * SPARE, "{name} took {:?}", start.elapsed());
        assert!(!ran.out.is_empty(), "{}", ran.err);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn large_programs_stay_within_their_memory() {
    for (name, source) in shapes(20_000) {
        let path = file(&format!("limits-memory-{name}.tso"), source.as_bytes());
        let path = path.to_str().expect("the folder for tests has a plain name");
        for command in ["check", "robust"] {
            let args = [command, "--timeout", "3s", "--memory", "100MiB", "--json", path];
            let object = &overtake(&args).objects()[0];
            let peak = object["peak_kb"].as_u64().expect("Linux tells");
            assert!(peak < 130 << 10, "{command} of {name} used {peak} KiB: {}", object["reason"]);
        }
    }
}

/// The run of a model has a state for each of its steps, with all variables in it.
#[test]
#[cfg(target_os = "linux")]
fn long_runs_of_large_models_stay_within_their_memory() {
    let each = |one: &dyn Fn(usize) -> String, between: &str| {
        (0..2_500).map(one).collect::<Vec<String>>().join(between)
    };
    let variables = each(&|k| format!("byte v{k};"), "\n");
    let states = each(&|k| format!("s{k}"), ", ");
    let moves = each(&|k| format!("s{k} -> s{} {{ guard v{k} == 0; effect v{k} = 1; }}", k + 1), ",\n");
    let source = format!(
        "{variables}\nprocess P {{ state {states}, s2500;\ninit s0;\ntrans {moves};\n}}\nsystem async;\n"
    );
    let path = file("limits-long-run.dve", source.as_bytes());
    let path = path.to_str().expect("the folder for tests has a plain name");
    let object = &overtake(&["check", "--deadlock", "--memory", "100MiB", "--json", path]).objects()[0];
    let peak = object["peak_kb"].as_u64().expect("Linux tells");
    assert!(peak < 130 << 10, "{peak} KiB were used: {}", object["reason"]);
    assert_eq!(object["limit"], "memory");
}

#[test]
#[cfg(unix)]
fn a_signal_ends_the_preparation_too() {
    use std::process::Stdio;
    let (name, source) = shapes(200_000).swap_remove(1);
    let path = file(&format!("limits-signal-{name}.tso"), source.as_bytes());
    let path = path.to_str().expect("the folder for tests has a plain name");
    let mut run = command(&["check", path]);
    let child = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
    std::thread::sleep(Duration::from_millis(100));
    let kill = std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
    assert!(kill.expect("there is a `kill`").success());
    let (start, ran) = (Instant::now(), Ran::new(child.wait_with_output().expect("the binary ends")));
    assert!(start.elapsed() < SPARE, "it took {:?}", start.elapsed());
    assert_eq!((ran.code, ran.first_line()), (UNKNOWN, "unknown"), "{}{}", ran.out, ran.err);
    assert!(ran.out.to_lowercase().contains("the run was cancelled"), "{}", ran.out);
}

/// Every command that gives a verdict gives `unknown`, in all its forms.
#[test]
fn a_file_that_was_not_read_leaves_the_answer_unknown() {
    let path = file("limits-unread.litmus", files(5_000).swap_remove(5).1.as_bytes());
    let path = path.to_str().expect("the folder for tests has a plain name");
    for command in [&["check"][..], &["robust"], &["robust", "--triangular"], &["fence"], &["outcomes"]] {
        let args = [command, &["--timeout=0ms", path]].concat();
        let ran = overtake(&args);
        assert_eq!((ran.code, &ran.err[..]), (UNKNOWN, ""), "{args:?}");
        let said = ran.out.to_lowercase();
        assert!(said.contains("unknown") && said.contains("the time limit of"), "{args:?}: {said}");
        let object = &overtake(&[&args[..], &["--json"]].concat()).objects()[0];
        assert_eq!((object["verdict"].as_str(), object["limit"].as_str()), (Some("unknown"), Some("time")));
        assert_eq!(object["command"].as_str(), Some(command[0]));
    }
}

/// A pipe may keep its reader waiting for ever.
#[test]
fn nobody_waits_for_input_longer_than_allowed() {
    use std::process::Stdio;
    let mut run = command(&["check", "--from", "tso", "--timeout", "50ms", "-"]);
    let run = run.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = run.spawn().expect("the binary starts");
    let open = child.stdin.take();
    let ran = Ran::new(child.wait_with_output().expect("the binary ends"));
    assert_eq!((ran.code, ran.first_line()), (UNKNOWN, "unknown"), "{}{}", ran.out, ran.err);
    drop(open);
}

/// `show` and `convert` have limits as well, and name them.
#[test]
fn commands_without_a_verdict_name_the_limit() {
    let path = file("limits-show.tso", shapes(5_000)[0].1.as_bytes());
    let path = path.to_str().expect("the folder for tests has a plain name");
    for args in [&["show", path][..], &["show", "--dot", path], &["convert", path, "--to", "ron"]] {
        for (limit, says) in
            [("--timeout=0ms", "the time limit of"), ("--memory=1MiB", "the memory limit of 1 MiB")]
        {
            let ran = overtake(&[args, &[limit]].concat());
            assert_eq!((ran.code, &ran.out[..]), (UNKNOWN, ""), "{args:?} {limit}");
            assert!(ran.err.contains(says), "{args:?} {limit}: {}", ran.err);
        }
    }
}

/// The steps that an analysis spends grow with the program, not with its square.
#[test]
fn analyses_of_large_programs_take_steps_in_proportion() {
    let steps = |limits: &Limits| limits.spent();
    for ((name, small), (_, large)) in shapes(1_000).into_iter().zip(shapes(4_000)) {
        let effort = |source: &str| {
            let program = program(source);
            let limits = Limits::default();
            Intervals::of(&program, &limits).unwrap();
            let intervals = steps(&limits);
            let attacks = Limits::default();
            overtake::robust::attack::Attacks::of(&program, engine::Pruning::On, &attacks).unwrap();
            (intervals, steps(&attacks))
        };
        let ((a, b), (c, d)) = (effort(&small), effort(&large));
        assert!(
            c < 5 * a && d < 6 * b,
            "{name}: {a} and {b} steps, and {c} and {d} for four times the program"
        );
    }
}

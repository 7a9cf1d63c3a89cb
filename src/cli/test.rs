//! `overtake test`: do programs do what their files say they do?
//!
//! Everything runs in one process, many files at a time. A file whose answers are those that stand in its comments,
//! or in the list beside it, has passed; `unknown` is no such answer.

use super::expectations::{self, Claim, Expectation, Expected, LIST};
use super::input::{self, Failure, Source};
use super::interrupt::Interrupt;
use super::side_by_side::side_by_side;
use super::terminal::Terminal;
use super::{Exit, InputArgs, TestArgs, fence, liveness};
use crate::engine::{self, Internal, Options, ShownRun};
use crate::front::formats;
use crate::model::{Program, SourceMap};
use crate::query::repair::{Aim, Cheapest};
use crate::query::{Answer, Asked, Limits, Model, Question, Verdict};
use crate::repair::{self, Allowed, Wanted};
use crate::report;
use crate::report::fence::Per;
use crate::report::junit::{Case, CaseResult};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) const EXPECTATIONS: &str = "A comment line such as `// expect N=3: tso violated, sc safe, robust no, racy yes, fences 1` \
                                says what is expected; so does a file `expected.ron` of the files beside \
                                it. Files that nothing is said of are passed over.\n\nExit codes: 0 all files passed, 10 \
                                some failed, 2 wrong usage, 70 a bug in overtake.";

/// A file, and what is said of it.
struct Tested {
    file: PathBuf,
    /// Or why that could not be read.
    expected: Result<Vec<Expectation>, String>,
}

/// What came of a file.
#[derive(Default)]
struct Told {
    /// One sentence for each thing that is wrong.
    failures: Vec<String>,
    /// As they are shown.
    warnings: String,
    internal: bool,
    time: Duration,
}

pub(crate) fn run(args: &TestArgs, terminal: &Terminal) -> Exit {
    let mut tested = BTreeMap::new();
    for path in &args.paths {
        if let Err(why) = find(path, Given::ByName, &mut tested) {
            terminal.error(&why);
            return Exit::BadInput;
        }
    }
    let tested: Vec<Tested> = tested.into_values().collect();
    let jobs = args.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get()));
    let interrupt = Interrupt::new();
    let (mut passed, mut failed, mut exit) = (0, 0, Exit::Good);
    let work = |one: &Tested| (one.file.display().to_string(), test(one, args, &interrupt, terminal));
    side_by_side(&tested, jobs, work, |(name, told)| {
        terminal.complain(&told.warnings);
        let denied = args.deny_warnings && !told.warnings.is_empty();
        let is_good = told.failures.is_empty() && !denied;
        if !args.quiet || !is_good {
            terminal.print(&format!("{} {name}\n", if is_good { "passed" } else { "FAILED" }));
        }
        terminal.parts().add_case(case(name, &told, denied));
        for failure in &told.failures {
            terminal.print(&format!("    {failure}\n"));
        }
        if denied {
            terminal.print("    there are warnings\n");
        }
        *(if is_good { &mut passed } else { &mut failed }) += 1;
        let own = if told.internal { Exit::Internal } else { Exit::Violated };
        exit = exit.max(if is_good { Exit::Good } else { own });
    });
    terminal.print(&format!("{passed} passed, {failed} failed\n"));
    exit.max(terminal.parts().write(&args.output(), terminal))
}

/// What build servers get of a file.
fn case(name: String, told: &Told, denied: bool) -> Case {
    let mut output = told.failures.join("\n");
    if denied {
        output += "\nthere are warnings\n";
        output += &told.warnings;
    }
    let first = output.trim().lines().next().unwrap_or_default().to_string();
    let result = match (first.is_empty(), told.internal) {
        (true, _) => CaseResult::Passed,
        (_, true) => CaseResult::Error(first),
        _ => CaseResult::Failed(first),
    };
    let seconds = told.time.as_secs_f64();
    Case { class: "overtake test".to_string(), name, seconds, result, output }
}

/// How a file came to be looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Given {
    ByName,
    ByFolder,
}

/// Files below a path, in order, with what is said of them.
fn find(path: &Path, given: Given, tested: &mut BTreeMap<PathBuf, Tested>) -> Result<(), String> {
    let said = |e: std::io::Error| format!("{}: {e}", path.display());
    if path.is_dir() {
        let mut entries: Vec<PathBuf> =
            path.read_dir().map_err(said)?.filter_map(|e| Some(e.ok()?.path())).collect();
        entries.sort();
        // A link to a folder may lead round in a cycle.
        entries.retain(|entry| !(entry.is_symlink() && entry.is_dir()));
        return entries.iter().try_for_each(|entry| find(entry, Given::ByFolder, tested));
    }
    let is_list = path.file_name().is_some_and(|name| name == LIST);
    if is_list || given == Given::ByFolder && formats::of_path(path).is_none() {
        return Ok(());
    }
    let bytes = std::fs::read(path).map_err(said)?;
    let expected = expected(path, &String::from_utf8_lossy(&bytes));
    let silent = expected.as_ref().is_ok_and(Vec::is_empty);
    if silent && given == Given::ByName {
        return Err(format!("{}: nothing says what is expected of this file", path.display()));
    }
    if !silent {
        tested.insert(path.to_path_buf(), Tested { file: path.to_path_buf(), expected });
    }
    Ok(())
}

/// What a file's own comments and the list beside it say.
fn expected(path: &Path, text: &str) -> Result<Vec<Expectation>, String> {
    let mut expected = expectations::lines(text)?;
    let list = path.with_file_name(LIST);
    if let Ok(text) = std::fs::read_to_string(&list) {
        let rows = expectations::list(&text).map_err(|why| format!("{}: {why}", list.display()))?;
        let own = rows.iter().filter(|row| path.file_name().is_some_and(|name| name == row.file.as_str()));
        expected.extend(own.map(|row| row.expectation()));
    }
    Ok(expected)
}

fn test(one: &Tested, args: &TestArgs, interrupt: &Interrupt, terminal: &Terminal) -> Told {
    let (mut told, start) = (Told::default(), Instant::now());
    match &one.expected {
        Err(why) => told.failures.push(why.clone()),
        Ok(expected) => {
            for expectation in expected {
                told.expectation(&one.file, expectation, args, interrupt, terminal);
            }
        }
    }
    told.time = start.elapsed();
    told
}

impl Told {
    fn expectation(
        &mut self,
        file: &Path,
        expectation: &Expectation,
        args: &TestArgs,
        interrupt: &Interrupt,
        terminal: &Terminal,
    ) {
        let with: String =
            expectation.define.iter().map(|(name, value)| format!("{name}={value} ")).collect();
        let limits = || interrupt.watch(args.limits());
        let define =
            expectation.define.iter().map(|(name, value)| (name.clone(), value.to_string())).collect();
        let input = InputArgs { define, ..InputArgs::default() };
        let source = match input::load_program(file, &input, &limits(), terminal.color_errors) {
            Ok((source, warnings)) => {
                if !self.warnings.contains(&warnings) {
                    self.warnings += &warnings;
                }
                source
            }
            Err(Failure::Said(why)) => return self.failures.push(format!("{with}{why}")),
            Err(Failure::Shown(places)) => {
                self.warnings += &places;
                return self.failures.push(format!("{with}the file is wrong"));
            }
            Err(Failure::Limit(limit)) => {
                return self.failures.push(format!("{with}{}", report::limit_reached(&limit)));
            }
        };
        for claim in &expectation.claims {
            match answer(file, &source, &input, *claim, &mut self.warnings, &limits()) {
                Ok(None) => {}
                Ok(Some(found)) => self.failures.push(format!("{with}expected {claim}, found {found}")),
                Err(bug) => {
                    self.internal = true;
                    self.failures.push(format!("{with}{claim}: internal error: {bug}"));
                }
            }
        }
    }
}

/// What was found instead of what is claimed.
fn answer(
    file: &Path,
    source: &Source,
    input: &InputArgs,
    claim: Claim,
    warnings: &mut String,
    limits: &Arc<Limits>,
) -> Result<Option<String>, Internal> {
    let program = &source.program;
    // Files run side by side, so each has one worker; nobody looks at runs.
    let options = Options { run: ShownRun::AsFound, ..Options::with_workers(1) };
    let mut check = |model| -> Result<Verdict, Internal> {
        let options = Options { model, ..options.clone() };
        let found = engine::check_each(program, &Asked::of(program), true, &options, limits)?;
        for warning in &found.worst.warnings {
            let warning = format!("warning: {}: {warning}\n", file.display());
            if !warnings.contains(&warning) {
                *warnings += &warning;
            }
        }
        Ok(found.worst.answer.verdict())
    };
    let (question, expected, found) = match claim {
        Claim::Sc(Expected::Unproved) | Claim::Tso(Expected::Unproved) => return Ok(None),
        Claim::Sc(expected) => (Question::Check, expected == Expected::Safe, check(Model::Sc)?),
        Claim::Tso(expected) => (Question::Check, expected == Expected::Safe, check(Model::Tso)?),
        Claim::Hang { model, hangs } => {
            let found = engine::hang(program, model, limits)?.outcome.answer.verdict();
            let expected = if hangs { Verdict::Fails } else { Verdict::Holds };
            let word = match found {
                Verdict::Fails => "yes",
                Verdict::Holds => "no",
                Verdict::Unknown => "unknown",
            };
            return Ok((found != expected).then(|| word.to_string()));
        }
        Claim::Robust(robust) => {
            (Question::Robust, robust, engine::robust(program, &options, limits)?.answer.verdict())
        }
        Claim::Racy(racy) => {
            (Question::Triangular, !racy, engine::triangular(program, &options, limits)?.answer.verdict())
        }
        Claim::Ltl(_, Expected::Unproved) => return Ok(None),
        Claim::Ltl(_, _) if source.formulas.is_empty() => {
            return Ok(Some("that the file states no formula".to_string()));
        }
        Claim::Ltl(model, expected) => {
            (Question::Check, expected == Expected::Safe, liveness::worst(source, model, limits)?)
        }
        Claim::Fences { count, per, aim } => {
            let text = match per {
                Per::Thread => Ok(SourceMap::per_thread(program)),
                Per::Source => fence::source_map(file, source, input, limits),
            };
            return match text {
                Ok(text) => fences(program, count, text, aim, &options, limits),
                Err(why) => Ok(Some(why)),
            };
        }
    };
    let expected = if expected { Verdict::Holds } else { Verdict::Fails };
    Ok((found != expected).then(|| question.word(found).to_string()))
}

fn fences(
    program: &Program,
    count: u64,
    text: SourceMap,
    aim: Option<Aim>,
    options: &Options,
    limits: &Arc<Limits>,
) -> Result<Option<String>, Internal> {
    let stated = !program.properties().is_empty() || program.has_asserts();
    let aim = aim.unwrap_or(match (stated, program.no_hang()) {
        (true, _) => Aim::Property,
        (false, Some(_)) => Aim::NoHang,
        (false, None) => Aim::Robustness,
    });
    let allowed = Allowed { fence: Some(1), text: Some(text), ..Allowed::default() };
    let found = repair::repair(program, &Wanted { aim, list: 1 }, &allowed, options, limits)?;
    Ok(match found.answer {
        Answer::Holds(enough) if enough.cheapest != Cheapest::Proved => {
            Some(format!("{}, and perhaps fewer do", enough.cost))
        }
        Answer::Holds(enough) if enough.cost == count => None,
        Answer::Holds(enough) => Some(enough.cost.to_string()),
        Answer::Fails(_) => Some("that no fence helps".to_string()),
        Answer::Unknown(_) => Some("unknown".to_string()),
    })
}

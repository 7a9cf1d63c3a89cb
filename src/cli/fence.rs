//! `overtake fence`: which fewest fences repair the program? What was found is shown in the user's own text
//! and, on request, written, read again and checked again.

use super::input::{self, Source};
use super::interrupt::Interrupt;
use super::terminal::Terminal;
use super::{Exit, FenceArgs, answer, limits};
use crate::analysis::interval;
use crate::certify::Repair;
use crate::engine::{LazyOptions, Options};
use crate::front::formats::{Reading, Writing};
use crate::front::patch::{Edit, What};
use crate::front::promela::Joining;
use crate::front::{Diagnostic, Severity, Unread, Unwritten};
use crate::model::{Instr, Loc, Program, ThreadId};
use crate::query::repair::{Aim, Change};
use crate::query::{Answer, Limit, Limits, Model, Question};
use crate::repair::{self, Allowed, Wanted};
use crate::report;
use crate::report::fence::Patient;
use crate::report::site::{Side, Site};
use clap::ValueEnum;
use std::path::Path;

pub const PLACES: &str = "A place for a fence is a location of a thread's control flow: the fence sits between everything \
                          that leads there and everything that goes on from there.";

/// Sets that `--all` lists before it says that there are more.
const MOST_SETS: usize = 1_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AimArg {
    /// SC and TSO have the same behaviours
    Robustness,
    /// No forbidden state is reachable under TSO
    Property,
    /// There is no triangular race
    Triangular,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum KindArg {
    /// Insert a fence
    Fence,
    /// Make a store a locked one (xchg)
    Atomic,
}

/// `fence=2`.
pub fn cost(text: &str) -> Result<(KindArg, u64), String> {
    let (kind, cost) = text.split_once('=').ok_or("a cost looks like fence=2")?;
    let kind = KindArg::from_str(kind.trim(), false)
        .map_err(|_| format!("there is no kind `{}`; known are fence and atomic", kind.trim()))?;
    match cost.trim().parse() {
        Ok(0) | Err(_) => Err(format!("`{}` is no cost: it has to be a whole number from 1 up", cost.trim())),
        Ok(cost) => Ok((kind, cost)),
    }
}

pub fn run(args: &FenceArgs, terminal: &Terminal) -> Exit {
    if args.output.is_some() && args.search.files.len() > 1 {
        terminal.error("--output writes one program, and there are several files");
        return Exit::BadInput;
    }
    let interrupt = Interrupt::new();
    let files = args.search.files.iter();
    files.map(|file| fence(file, args, &interrupt, terminal)).max().unwrap_or(Exit::Good)
}

/// One file, and what is asked of it.
struct Task<'a> {
    file: &'a Path,
    source: Source,
    wanted: Wanted,
    allowed: Allowed,
    options: Options,
}

fn fence(file: &Path, args: &FenceArgs, interrupt: &Interrupt, terminal: &Terminal) -> Exit {
    let limits = interrupt.watch(args.search.limits());
    let unknown =
        |limit: &Limit| answer::show_unread(Question::Fence, file, Model::Tso, limit, &args.search, terminal);
    let source = match input::read_any(file, &args.search.input, &limits, terminal, unknown) {
        Ok(source) => source,
        Err(exit) => return exit,
    };
    let task = match task(file, source, args, &limits) {
        Ok(task) => task,
        Err(message) => {
            terminal.error(&format!("{}: {message}", file.display()));
            return Exit::BadInput;
        }
    };
    let result = {
        let _progress = (!args.search.json && !args.search.quiet).then(|| terminal.progress(&limits));
        match args.prune {
            true => repair::prune(&task.source.program, &task.wanted, &task.options, &limits),
            false => {
                repair::repair(&task.source.program, &task.wanted, &task.allowed, &task.options, &limits)
            }
        }
    };
    match result {
        Ok(repair) => {
            show(&task, args, &repair, terminal).max(write(&task, args, &repair, &limits, terminal))
        }
        Err(bug) => terminal.internal_error(file, &bug.to_string()),
    }
}

fn task<'a>(file: &'a Path, source: Source, args: &FenceArgs, limits: &Limits) -> Result<Task<'a>, String> {
    let program = &source.program;
    let stated = !program.properties().is_empty() || program.has_asserts();
    // A limit that is reached here is for the engines to tell.
    let has_property = stated || interval::may_go_wrong(program, limits) != Ok(false);
    let aim = match args.aim {
        Some(AimArg::Robustness) => Aim::Robustness,
        Some(AimArg::Triangular) => Aim::Triangular,
        Some(AimArg::Property) if !has_property => {
            return Err("there is no property to repair the program for: use --for robustness".to_string());
        }
        Some(AimArg::Property) => Aim::Property,
        None if has_property => Aim::Property,
        None => Aim::Robustness,
    };
    let allowed = allowed(program, args)?;
    let options = args.search.options();
    let options = Options { lazy: LazyOptions { iterations: args.iterations, ..options.lazy }, ..options };
    let wanted = Wanted { aim, list: if args.all { MOST_SETS } else { 1 } };
    Ok(Task { file, source, wanted, allowed, options })
}

fn allowed(program: &Program, args: &FenceArgs) -> Result<Allowed, String> {
    let price = |kind: KindArg| {
        let said = args.cost.iter().rev().find(|(k, _)| *k == kind);
        args.with.contains(&kind).then(|| said.map_or(1, |(_, cost)| *cost))
    };
    if let Some((kind, _)) = args.cost.iter().find(|(k, _)| !args.with.contains(k)) {
        let name = kind.to_possible_value().map_or(String::new(), |v| v.get_name().to_string());
        return Err(format!("--cost says what {name} costs, which --with does not allow"));
    }
    Ok(Allowed {
        fence: price(KindArg::Fence),
        atomic: price(KindArg::Atomic),
        only: args.only.iter().map(|name| thread(program, name)).collect::<Result<_, _>>()?,
        forbidden: args.forbid_at.iter().map(|place| labelled(program, place)).collect::<Result<_, _>>()?,
    })
}

fn thread(program: &Program, name: &str) -> Result<ThreadId, String> {
    program.thread_ids().find(|&t| program.thread(t).name() == name).ok_or_else(|| {
        let names: Vec<&str> = program.threads().iter().map(|t| t.name()).collect();
        format!("there is no thread `{name}`; there are {}", names.join(", "))
    })
}

/// `thread:label`.
fn labelled(program: &Program, place: &str) -> Result<(ThreadId, Loc), String> {
    let (name, label) =
        place.rsplit_once(':').ok_or_else(|| format!("`{place}` is no place: it has to be thread:label"))?;
    let t = thread(program, name)?;
    let own = program.thread(t);
    let at = own.locations().find(|&l| own.location(l).labels.iter().any(|x| x == label));
    at.map(|at| (t, at)).ok_or_else(|| format!("thread `{name}` has no label `{label}`"))
}

fn show(task: &Task, args: &FenceArgs, repair: &Repair, terminal: &Terminal) -> Exit {
    let own = args.prune.then(|| own_fences(&task.source.program));
    // The lines of a program that is data are those of the text that it once came from.
    let is_data = input::format(task.file, &args.search.input).is_ok_and(|format| !format.lines);
    let patient = Patient {
        program: &task.source.program,
        file: &task.file.display().to_string(),
        source: if is_data { "" } else { &task.source.text },
        fence: fence_word(task, args),
        own: own.as_deref(),
    };
    answer::show(report::fence::document(&patient, repair, limits::peak_kb()), &args.search, terminal)
}

fn own_fences(program: &Program) -> Vec<Change> {
    let of = |thread: ThreadId| {
        let edges = program.thread(thread).edges();
        edges.filter(|(_, e)| e.instr == Instr::Fence).map(move |(fence, _)| Change::Keep { thread, fence })
    };
    program.thread_ids().flat_map(of).collect()
}

/// As it is written beside the program's first instruction.
fn fence_word(task: &Task, args: &FenceArgs) -> &'static str {
    let edges = || task.source.program.threads().iter().flat_map(|t| t.edges());
    let text = edges().next().map_or("", |(_, e)| &e.text);
    let format = input::format(task.file, &args.search.input);
    format.map_or("fence", |format| (format.fence)(text))
}

/// Writes the repaired program, if that was asked for and there is one.
fn write(task: &Task, args: &FenceArgs, repair: &Repair, limits: &Limits, terminal: &Terminal) -> Exit {
    let (Some(path), Answer::Holds(enough)) = (&args.output, &repair.answer) else {
        return Exit::Good;
    };
    let written = repaired(task, &enough.sets[0], path, args, limits)
        .and_then(|text| std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display())));
    if let Err(message) = written {
        terminal.error(&message);
        return Exit::BadInput;
    }
    check_again(task, path, args, limits, terminal)
}

/// The repaired program as text: the user's own with the changes in it where that can be done, or else
/// written anew.
fn repaired(
    task: &Task,
    set: &[Change],
    path: &Path,
    args: &FenceArgs,
    limits: &Limits,
) -> Result<String, String> {
    let from = input::format(task.file, &args.search.input)?;
    let to = input::format_of(path).unwrap_or(from);
    let program = repair::apply(&task.source.program, set)
        .map_err(|wrong| wrong.iter().map(|w| w.to_string()).collect::<Vec<_>>().join("; "))?;
    let reading = Reading { define: &args.search.input.define, limits };
    if from == to
        && let Some(text) = from.patched(&task.source.text, &edits(task, set), &program, &reading)
    {
        return Ok(text);
    }
    let Source { name, litmus, .. } = &task.source;
    let writing = Writing { name, litmus: litmus.as_ref(), steps: Joining::Joined, limits };
    to.written(&program, &writing).map_err(|e| match e {
        Unwritten::Limit(limit) => report::limit_reached(&limit),
        Unwritten::NoWriter(format) => format!(
            "the changes cannot be put into the text of the .{format} file, and programs are not written anew in that \
             language: name a .tso file instead"
        ),
        Unwritten::Inexpressible(why) => why.to_string(),
    })
}

/// What the changes are in the user's text.
fn edits(task: &Task, set: &[Change]) -> Vec<Edit> {
    let edit = |&change: &Change| {
        let t = change.thread();
        let old = || repair::unused(task.source.program.thread(t).registers());
        let site = Site::of(&task.source.program, change);
        let what = match change {
            Change::Fence { .. } if site.side == Side::Behind => What::FenceBehind,
            Change::Fence { .. } => What::Fence,
            Change::Atomic { .. } => What::Atomic { old: old() },
            Change::Keep { .. } => unreachable!("nothing is written when fences are pruned"),
        };
        Edit { line: site.line, column: t.index(), what }
    };
    let mut edits: Vec<Edit> = set.iter().map(edit).collect();
    edits.sort();
    edits
}

/// Reads what was written and asks whether it is what was wanted: nothing has to be changed any more.
fn check_again(task: &Task, path: &Path, args: &FenceArgs, limits: &Limits, terminal: &Terminal) -> Exit {
    let not_checked = |limit: &Limit| {
        let why = report::limit_reached(limit);
        terminal.warning(&format!("{}: written, but not checked again: {why}", path.display()));
        Exit::Unknown
    };
    let again = match reread(task, path, args, limits) {
        Ok(again) => again,
        Err(Unread::Limit(limit)) => return not_checked(&limit),
        Err(wrong) => {
            let why = format!("the program that was written cannot be read: {wrong}");
            return terminal.internal_error(path, &why);
        }
    };
    let asked = Wanted { list: 1, ..task.wanted.clone() };
    match repair::repair(&again, &asked, &Allowed::default(), &task.options, limits) {
        Ok(Repair { answer: Answer::Holds(_), .. }) => {
            if !args.search.json && !args.search.quiet {
                let what = "read again and checked again";
                terminal.print(&format!("\nWritten to {}, {what}.\n", path.display()));
            }
            Exit::Good
        }
        Ok(Repair { answer: Answer::Unknown(limit), .. }) => not_checked(&limit),
        Ok(_) => terminal.internal_error(path, "the program that was written is not repaired"),
        Err(bug) => terminal.internal_error(path, &bug.to_string()),
    }
}

/// What was written. Its parameters are those of the user's text, unless it was written anew and has none.
fn reread(task: &Task, path: &Path, args: &FenceArgs, limits: &Limits) -> Result<Program, Unread> {
    let given = &args.search.input;
    let format = input::format_of(path).or_else(|_| input::format(task.file, given)).map_err(unread)?;
    let bytes = std::fs::read(path).map_err(|e| unread(e.to_string()))?;
    let read =
        |define: &[_]| format.parse(&bytes, &Reading { define, limits }).map(|(input, _)| input.program);
    read(&given.define).or_else(|first| if given.define.is_empty() { Err(first) } else { read(&[]) })
}

fn unread(message: String) -> Unread {
    let (span, label, help) = (None, String::new(), None);
    Unread::Wrong(vec![Diagnostic { severity: Severity::Error, message, span, label, help }])
}

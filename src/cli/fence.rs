//! `overtake fence`: which fewest fences repair the program? What was found is shown in the user's own text
//! and, on request, written, read again and checked again.

use super::datatype::AxiomsArg;
use super::input::{self, Loaded, Source};
use super::interrupt::Interrupt;
use super::terminal::Terminal;
use super::{Exit, FenceArgs, InputArgs, answer, dve, limits};
use crate::analysis::interval;
use crate::certify::{Counterexample, Repair};
use crate::engine::{self, LazyOptions, Options};
use crate::front::formats::{Reading, Writing};
use crate::front::patch::{Edit, What};
use crate::front::promela::Joining;
use crate::front::{Diagnostic, Severity, Unread, Unwritten};
use crate::model::{Loc, Program, SourceMap, ThreadId};
use crate::query::repair::{Aim, Change, Remedy, changes};
use crate::query::{Answer, Axioms, Goal, Limit, Limits, Question};
use crate::repair::{self, Allowed, Wanted};
use crate::report;
use crate::report::fence::{Patient, Per, Prevented};
use crate::report::site::{Side, Site};
use clap::ValueEnum;
use std::path::Path;

pub(crate) const PLACES: &str = "A place for a fence is a place of the source: one line, counted once, that lies in all threads of \
                          its template and all rounds of its `repeat`. With --per-thread it is a location of one thread's \
                          control flow: the fence sits between everything that leads there and everything that goes on \
                          from there.";

/// Sets that `--all` lists before it says that there are more.
pub(crate) const MOST_SETS: usize = 1_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AimArg {
    /// SC and TSO have the same behaviours
    Robustness,
    /// No forbidden state is reachable under TSO
    Property,
    /// No run ends in a hang
    NoHang,
    /// There is no triangular race
    Triangular,
    /// The formulas of --ltl hold with slots (DVE models)
    Ltl,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KindArg {
    /// Insert a fence
    Fence,
    /// Make a store a locked one (xchg); in DVE models, a write atomic
    Atomic,
    /// Let a transition wait until all slots of its process are empty (DVE models)
    Barrier,
}

/// `fence=2`.
pub(crate) fn cost(text: &str) -> Result<(KindArg, u64), String> {
    let (kind, cost) = text.split_once('=').ok_or("a cost looks like fence=2")?;
    let kind = KindArg::from_str(kind.trim(), false)
        .map_err(|_| format!("there is no kind `{}`; known are fence, atomic and barrier", kind.trim()))?;
    match cost.trim().parse() {
        Ok(0) | Err(_) => Err(format!("`{}` is no cost: it has to be a whole number from 1 up", cost.trim())),
        Ok(cost) => Ok((kind, cost)),
    }
}

pub(crate) fn run(args: &FenceArgs, terminal: &Terminal) -> Exit {
    if args.output.is_some() && args.search.files.len() > 1 {
        terminal.error("--output writes one program, and there are several files");
        return Exit::BadInput;
    }
    let interrupt = Interrupt::new();
    let ask = |file: &Path| fence(file, args, &interrupt, terminal);
    answer::each_file(Question::Fence, &args.search, terminal, ask)
}

/// One file, and what is asked of it.
struct Task<'a> {
    file: &'a Path,
    source: Source,
    wanted: Wanted,
    allowed: Allowed,
    text: SourceMap,
    per: Per,
    /// A model weaker than TSO.
    model: Option<Axioms>,
    options: Options,
}

fn fence(file: &Path, args: &FenceArgs, interrupt: &Interrupt, terminal: &Terminal) -> Exit {
    let limits = interrupt.watch(args.search.limits());
    let model = args.model.map_or(Axioms::Tso, AxiomsArg::axioms);
    let unknown =
        |limit: &Limit| answer::show_unread(Question::Fence, file, model, limit, &args.search, terminal);
    let source = match input::read_loaded(file, &args.search.input, &limits, terminal, unknown) {
        Ok(Loaded::Program(source)) => *source,
        Ok(Loaded::Model(model)) => return dve::fence::run(file, &model, args, &limits, terminal),
        Err(exit) => return exit,
    };
    if !source.formulas.is_empty() {
        terminal.warning(&format!("{}: changes are not held to formulas (ltl)", file.display()));
    }
    let task = match task(file, source, args, &limits) {
        Ok(task) => task,
        Err(message) => {
            terminal.error(&format!("{}: {message}", file.display()));
            return Exit::BadInput;
        }
    };
    let result = {
        let _progress = (!args.search.json && !args.search.quiet).then(|| terminal.progress(&limits));
        let program = &task.source.program;
        match (task.model, args.prune) {
            (Some(model), _) => {
                repair::repair_by_axioms(program, model, task.wanted.list, &task.allowed, &limits)
            }
            (None, true) => repair::prune(program, &task.wanted, &task.text, &task.options, &limits),
            (None, false) => repair::repair(program, &task.wanted, &task.allowed, &task.options, &limits),
        }
    };
    match result {
        Ok(repair) => {
            show(&task, args, &repair, &limits, terminal).max(write(&task, args, &repair, &limits, terminal))
        }
        Err(bug) => terminal.internal_error(file, &bug.to_string()),
    }
}

fn task<'a>(file: &'a Path, source: Source, args: &FenceArgs, limits: &Limits) -> Result<Task<'a>, String> {
    let program = &source.program;
    let model = weaker_model(args)?;
    if let Some(model) = model {
        input::says_fences(file, &args.search.input, model)?;
    }
    let stated = !program.properties().is_empty() || program.has_asserts();
    // A limit that is reached here is for the engines to tell.
    let has_property = stated || interval::may_go_wrong(program, limits) != Ok(false);
    let aim = match args.aim {
        Some(AimArg::Robustness) => Aim::Robustness,
        Some(AimArg::Triangular) => Aim::Triangular,
        Some(AimArg::Ltl) => return Err("--for ltl is for DVE models".to_string()),
        Some(AimArg::NoHang) => Aim::NoHang,
        Some(AimArg::Property) if !has_property => {
            return Err("there is no property to repair the program for: use --for robustness".to_string());
        }
        Some(AimArg::Property) => Aim::Property,
        None if !stated && program.no_hang().is_some() => Aim::NoHang,
        None if has_property => Aim::Property,
        None => Aim::Robustness,
    };
    if let Some(model) = model.filter(|_| aim != Aim::Property) {
        return Err(format!("--model {} asks for a property; other aims are for TSO", model.name()));
    }
    if matches!(aim, Aim::Robustness | Aim::Triangular)
        && let Some(why) = answer::refused(Question::Robust, program, &args.search.options())
    {
        return Err(why);
    }
    let mapped = source_map(file, &source, &args.search.input, limits)?;
    let (text, per) = match args.per_thread || of_one_copy(program, &mapped, args) {
        true => (SourceMap::per_thread(program), Per::Thread),
        false => (mapped, Per::Source),
    };
    let allowed = Allowed { text: Some(text.clone()), ..allowed(program, &text, args)? };
    let options = args.search.options();
    let options = Options { lazy: LazyOptions { iterations: args.iterations, ..options.lazy }, ..options };
    let wanted = Wanted { aim, list: if args.all { MOST_SETS } else { 1 } };
    Ok(Task { file, source, wanted, allowed, text, per, model, options })
}

/// The model that is asked about, if it is weaker than TSO.
fn weaker_model(args: &FenceArgs) -> Result<Option<Axioms>, String> {
    let model = match args.model.map(AxiomsArg::axioms) {
        None | Some(Axioms::Tso) => return Ok(None),
        Some(Axioms::Sc) => return Err("under --model sc there is nothing that a fence prevents".to_string()),
        Some(weaker) => weaker,
    };
    let given = [
        (args.with != [KindArg::Fence], "--with"),
        (!args.cost.is_empty(), "--cost"),
        (args.prune, "--prune"),
        (args.iterations.is_some(), "--iterations"),
        (args.output.is_some(), "--output"),
    ];
    match given.into_iter().find(|(given, _)| *given) {
        Some((_, option)) => Err(format!("--model {} has no {option}", model.name())),
        None => Ok(Some(model)),
    }
}

/// Where the text lies in the program. A limit that is reached here is for the engines to tell.
pub(crate) fn source_map(
    file: &Path,
    source: &Source,
    args: &InputArgs,
    limits: &Limits,
) -> Result<SourceMap, String> {
    let format = input::format(file, args)?;
    let define = args.parameters()?;
    let reading = Reading::of_text(&define, limits);
    match (format.source_map)(&source.text, &source.program, &reading) {
        Ok(map) => Ok(map),
        Err(Unread::Limit(_)) => Ok(SourceMap::per_thread(&source.program)),
        Err(wrong) => Err(wrong.to_string()),
    }
}

/// Is one of several copies of a text alone to be changed?
fn of_one_copy(program: &Program, text: &SourceMap, args: &FenceArgs) -> bool {
    let named = |name: &String| thread(program, name).ok();
    args.only.iter().filter_map(named).any(|t| text.has_siblings(t))
}

fn allowed(program: &Program, text: &SourceMap, args: &FenceArgs) -> Result<Allowed, String> {
    if args.with.contains(&KindArg::Barrier) {
        return Err("--with barrier is for DVE models".to_string());
    }
    if let Some((kind, _)) = args.cost.iter().find(|(k, _)| !args.with.contains(k)) {
        let name = kind.to_possible_value().map_or(String::new(), |v| v.get_name().to_string());
        return Err(format!("--cost says what {name} costs, which --with does not allow"));
    }
    Ok(Allowed {
        fence: price(args, KindArg::Fence),
        atomic: price(args, KindArg::Atomic),
        only: each(args.only.iter().map(|name| threads(program, text, name)))?,
        forbidden: each(args.forbid_at.iter().map(|place| labelled(program, text, place)))?,
        text: None,
    })
}

/// What a change of this kind costs, if it is allowed.
pub(crate) fn price(args: &FenceArgs, kind: KindArg) -> Option<u64> {
    let said = args.cost.iter().rev().find(|(k, _)| *k == kind);
    args.with.contains(&kind).then(|| said.map_or(1, |(_, cost)| *cost))
}

/// All of what each says, if none is wrong.
fn each<T>(found: impl Iterator<Item = Result<Vec<T>, String>>) -> Result<Vec<T>, String> {
    found.collect::<Result<Vec<_>, _>>().map(|all| all.into_iter().flatten().collect())
}

/// The threads that were made from a template of this name, or else the one that has it.
fn threads(program: &Program, text: &SourceMap, name: &str) -> Result<Vec<ThreadId>, String> {
    let made = program.thread_ids().filter(|t| text.owners.get(t.index()).is_some_and(|o| o == name));
    match made.collect::<Vec<ThreadId>>() {
        none if none.is_empty() => thread(program, name).map(|t| vec![t]),
        made => Ok(made),
    }
}

fn thread(program: &Program, name: &str) -> Result<ThreadId, String> {
    program.thread_ids().find(|&t| program.thread(t).name() == name).ok_or_else(|| {
        let names: Vec<&str> = program.threads().iter().map(|t| t.name()).collect();
        format!("there is no thread `{name}`; there are {}", names.join(", "))
    })
}

/// `thread:label`.
fn labelled(program: &Program, text: &SourceMap, place: &str) -> Result<Vec<(ThreadId, Loc)>, String> {
    let (name, label) =
        place.rsplit_once(':').ok_or_else(|| format!("`{place}` is no place: it has to be thread:label"))?;
    let at = |t: ThreadId| {
        let own = program.thread(t);
        let at = own.locations().find(|&l| own.location(l).labels.iter().any(|x| x == label));
        at.map(|at| (t, at)).ok_or_else(|| format!("thread `{name}` has no label `{label}`"))
    };
    threads(program, text, name)?.into_iter().map(at).collect()
}

fn show(task: &Task, args: &FenceArgs, repair: &Repair, limits: &Limits, terminal: &Terminal) -> Exit {
    let prevented = prevented(task, args, repair, limits);
    let own = args.prune.then(|| repair::own_fences(&task.source.program, &task.text));
    // The lines of a program that is data are those of the text that it once came from.
    let is_data = input::format(task.file, &args.search.input).is_ok_and(|format| !format.lines);
    // The run to a hang is one of the program whose waits try again; what is the user's has the same numbers.
    let retrying = (repair.aim == Aim::NoHang).then(|| engine::retrying(&task.source.program).ok()).flatten();
    let patient = Patient {
        program: retrying.as_ref().unwrap_or(&task.source.program),
        file: &task.file.display().to_string(),
        source: if is_data { "" } else { &task.source.text },
        fence: fence_word(task, args),
        own: own.as_deref(),
        text: &task.text,
        per: task.per,
        model: task.model,
        prevented: &prevented,
    };
    answer::show(&report::fence::document(&patient, repair, limits::peak_kb()), &args.search, terminal)
}

/// For pages: the run that each change prevents. Nothing where a limit is reached, or the rest of the changes would do.
fn prevented(task: &Task, args: &FenceArgs, repair: &Repair, limits: &Limits) -> Vec<Prevented> {
    let Answer::Holds(enough) = &repair.answer else { return vec![] };
    if args.search.output.html.is_none() || args.prune || task.model.is_some() {
        return vec![];
    }
    let without = |change: usize| {
        let mut others = enough.sets[0].clone();
        others.remove(change);
        let program = repair::apply(&task.source.program, &changes(&others)).ok()?;
        let run = counterexample(&program, repair.aim, &task.options, limits)?;
        Some(Prevented { change, program, run })
    };
    (0..enough.sets[0].len()).filter_map(without).collect()
}

/// A run that is against the aim.
fn counterexample(program: &Program, aim: Aim, options: &Options, limits: &Limits) -> Option<Counterexample> {
    // Other processes write nothing, and do not ask this.
    let options = &Options { peers: None, ..options.clone() };
    match aim {
        Aim::Robustness => match engine::robust(program, options, limits).ok()?.answer {
            Answer::Fails(witness) => Some(Counterexample::Witness(witness)),
            _ => None,
        },
        Aim::Triangular => match engine::triangular(program, options, limits).ok()?.answer {
            Answer::Fails(race) => Some(Counterexample::Race(race)),
            _ => None,
        },
        Aim::Property => match engine::check(program, &Goal::of(program), options, limits).ok()?.answer {
            Answer::Fails(trace) => Some(Counterexample::Trace(trace)),
            _ => None,
        },
        // Its runs are those of yet another program.
        Aim::NoHang => None,
    }
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
    set: &[Remedy],
    path: &Path,
    args: &FenceArgs,
    limits: &Limits,
) -> Result<String, String> {
    let from = input::format(task.file, &args.search.input)?;
    let to = input::format_of(path).unwrap_or(from);
    let program = repair::apply(&task.source.program, &changes(set))
        .map_err(|wrong| wrong.iter().map(|w| w.to_string()).collect::<Vec<_>>().join("; "))?;
    let define = args.search.input.parameters()?;
    let reading = Reading::of_text(&define, limits);
    if from == to {
        let patched = match insertions(set) {
            Some(places) => from.inserted(&task.source.text, &places, &program, &reading),
            None => from.patched(&task.source.text, &edits(task, set), &program, &reading),
        };
        if let Some(text) = patched {
            return Ok(text);
        }
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

/// The bytes before which the text gets fences, if that is all that changes, and it is known.
fn insertions(set: &[Remedy]) -> Option<Vec<usize>> {
    let is_fence = |c: &Change| matches!(c, Change::Fence { .. } | Change::FenceBehind { .. });
    set.iter().map(|remedy| remedy.offset.filter(|_| is_fence(&remedy.changes[0]))).collect()
}

/// What the changes are in the user's text, by its lines.
fn edits(task: &Task, set: &[Remedy]) -> Vec<Edit> {
    let edit = |change: Change| {
        let t = change.thread();
        let old = || repair::unused(task.source.program.thread(t).registers());
        let site = Site::of(&task.source.program, change);
        let what = match change {
            Change::Fence { .. } if site.side == Side::Behind => What::FenceBehind,
            Change::Fence { .. } | Change::FenceBehind { .. } => What::Fence,
            Change::Atomic { .. } => What::Atomic { old: old() },
            Change::Keep { .. } => unreachable!("nothing is written when fences are pruned"),
        };
        Edit { line: site.line, column: t.index(), what }
    };
    let mut edits: Vec<Edit> = changes(set).into_iter().map(edit).collect();
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
    let options = Options { peers: None, ..task.options.clone() };
    match repair::repair(&again, &asked, &Allowed::default(), &options, limits) {
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
    let read = |define: &[_]| {
        format.parse(&bytes, &Reading::of_text(define, limits)).map(|(input, _)| input.program)
    };
    let define = given.parameters().map_err(unread)?;
    read(&define).or_else(|first| if define.is_empty() { Err(first) } else { read(&[]) })
}

fn unread(message: String) -> Unread {
    let (span, label, help) = (None, String::new(), None);
    Unread::Wrong(vec![Diagnostic { severity: Severity::Error, message, span, label, help }])
}

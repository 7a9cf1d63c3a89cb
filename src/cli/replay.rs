//! `overtake replay`: is a run that was told as JSON one of the program? It is performed on the plain machine of its
//! model, every event is compared, and what it is said to show is judged anew.

use super::input::{self, Loaded};
use super::interrupt::Interrupt;
use super::terminal::Terminal;
use super::written::{self, OutputArgs, ToldAnswer};
use super::{Exit, InputArgs, LimitArgs, dve};
use crate::certify::race::check as check_race;
use crate::certify::witness::{Attack, check_witness};
use crate::certify::{self, Doubt};
use crate::engine;
use crate::model::Program;
use crate::query::{Action, Event, Goal, Limit, Limits, Model, Race, Verdict};
use crate::report::document::Block;
use crate::report::recorded::{self, Recorded, RunClaim};
use crate::semantics::liveness::thread_steps;
use crate::semantics::replay::{Stopped, follow, replay};
use clap::Args;
use serde_json::{Value, json as fields};
use std::path::{Path, PathBuf};

pub(crate) const REPLAYED: &str = "Every event is performed on the plain machine of the run's memory model, its addresses, values and \
                        sources are compared, and what the run is said to show is judged anew. Parameters are those \
                        of the answer unless -D gives others. Exit codes: 0 `replays`, 10 `does not replay`, with the \
                        event.";

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The program; `-` is standard input (with --from)
    pub(super) file: PathBuf,
    /// What --json printed, or the explorer saved; of several answers, the one for FILE
    pub(super) run: PathBuf,
    #[command(flatten)]
    pub(super) input: InputArgs,
    #[command(flatten)]
    pub(super) limits: LimitArgs,
    #[command(flatten)]
    pub(super) output: OutputArgs,
    /// Prints a JSON object
    #[arg(long)]
    pub(super) json: bool,
}

/// What came of a run.
pub(crate) enum Replay {
    Replays,
    /// The event that is not possible, or not what it is said to be, and why; or what is wrong with the whole.
    DoesNot(Option<usize>, String),
}

/// Why that is not known.
pub(crate) enum Undone {
    /// There is no run that could be tried.
    NoRun(String),
    Limit(Limit),
    /// Something has been shown.
    Shown(Exit),
}

impl From<Limit> for Undone {
    fn from(limit: Limit) -> Undone {
        Undone::Limit(limit)
    }
}

pub(crate) fn run(args: &ReplayArgs, terminal: &Terminal) -> Exit {
    written::with_object("replay", &args.file, args.json, terminal, || performed(args, terminal))
}

fn performed(args: &ReplayArgs, terminal: &Terminal) -> Exit {
    let limits = Interrupt::new().watch(args.limits.limits());
    terminal.parts().wanted = args.output.wants_any();
    let of_run = |limit: &Limit| terminal.limit_reached(&args.run, limit);
    let bytes = match input::read_bytes(&args.run, &limits, terminal, of_run) {
        Ok(bytes) => bytes,
        Err(exit) => return exit,
    };
    let wrong = |why: String| {
        terminal.error(&format!("{}: {why}", args.run.display()));
        Exit::BadInput
    };
    let answers = match answers(&bytes) {
        Ok(answers) => answers,
        Err(why) => return wrong(why),
    };
    let answer = match pick(&answers, &args.file) {
        Ok(answer) => answer,
        Err(why) => return wrong(why),
    };
    let given = with_definitions(&args.input, answer);
    let of_file = |limit: &Limit| terminal.limit_reached(&args.file, limit);
    let loaded = match input::read_loaded(&args.file, &given, &limits, terminal, of_file) {
        Ok(loaded) => loaded,
        Err(exit) => return exit,
    };
    let tried = recorded::run(answer).map_err(Undone::NoRun).and_then(|run| match loaded {
        Loaded::Program(source) => program_run(source.program, &run, &limits),
        Loaded::Model(model) => dve::replay::run(&model, answer, &run, &given, &limits, terminal),
    });
    match tried {
        Ok(replay) => show(&replay, answer, args, terminal),
        Err(Undone::NoRun(why)) => wrong(why),
        Err(Undone::Limit(limit)) => terminal.limit_reached(&args.file, &limit),
        Err(Undone::Shown(exit)) => exit,
    }
}

/// All answers of a file: JSON objects, one after the other.
fn answers(bytes: &[u8]) -> Result<Vec<Value>, String> {
    let all = serde_json::Deserializer::from_slice(bytes).into_iter::<Value>();
    let all = all.collect::<Result<Vec<Value>, _>>().map_err(|e| format!("this is no JSON: {e}"))?;
    match all.iter().all(|answer| answer["tool"] == "overtake") {
        true if !all.is_empty() => Ok(all),
        _ => Err("this is no answer of overtake".to_string()),
    }
}

/// The only one, or the one for the file.
fn pick<'a>(answers: &'a [Value], file: &Path) -> Result<&'a Value, String> {
    let name = file.display().to_string();
    match answers {
        [one] => Ok(one),
        several => several
            .iter()
            .find(|answer| answer["file"] == name)
            .ok_or_else(|| format!("there are {} answers, and none is for {name}", several.len())),
    }
}

/// The definitions of the answer, unless others are given.
fn with_definitions(input: &InputArgs, answer: &Value) -> InputArgs {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_string);
    let told = answer["define"].as_object().into_iter().flatten();
    let told = told.filter(|_| input.define.is_empty()).map(|(name, value)| (name.clone(), text(value)));
    InputArgs { define: input.define.iter().cloned().chain(told).collect(), ..input.clone() }
}

fn show(replay: &Replay, answer: &Value, args: &ReplayArgs, terminal: &Terminal) -> Exit {
    let (word, event, reason, verdict) = match replay {
        Replay::Replays => ("replays", None, String::new(), Verdict::Holds),
        Replay::DoesNot(event, why) => ("does not replay", *event, why.clone(), Verdict::Fails),
    };
    let object = fields!({
        "tool": "overtake", "version": env!("CARGO_PKG_VERSION"), "file": args.file.display().to_string(),
        "command": "replay", "verdict": word, "run": args.run.display().to_string(), "event": event,
        "reason": reason, "of": answer["command"],
    });
    let why = match (event, &reason[..]) {
        (_, "") => String::new(),
        (Some(event), why) => format!("Event {event}, row {}: {why}.\n", event + 1),
        (None, why) => format!("All events are possible, but {why}.\n"),
    };
    let text = format!("{word}\n{why}");
    let told = ToldAnswer {
        object: &object,
        verdict,
        question: "Is the run one of the program?",
        blocks: &[Block::line(why.trim())],
        costs: &[],
        output: text.clone(),
    };
    let mut parts = terminal.parts();
    parts.add_told(told, &args.output);
    let exit = Exit::from(verdict).max(parts.write(&args.output, terminal));
    drop(parts);
    terminal.print(&if args.json { format!("{object}\n") } else { text });
    exit
}

fn program_run(program: Program, run: &Recorded, limits: &Limits) -> Result<Replay, Undone> {
    let program = match run.claim {
        RunClaim::Hang => engine::retrying(&program)
            .map_err(|_| Undone::NoRun("the program cannot be asked about hangs".to_string()))?,
        _ => program,
    };
    let model = recorded::model(run.model).map_err(Undone::NoRun)?;
    let mut actions = Vec::new();
    for (index, told) in run.events.iter().enumerate() {
        match recorded::action(&program, told) {
            Ok(action) => actions.push(action),
            Err(why) => return Ok(Replay::DoesNot(Some(index), why)),
        }
    }
    let events = match follow(&program, model, actions.iter().copied(), limits) {
        Ok(events) => events,
        Err(Stopped::Limit(limit)) => return Err(limit.into()),
        Err(Stopped::Mismatch(mismatch)) => {
            // What came before may not be what it is said to be either.
            let before = actions[..mismatch.index].iter().copied();
            let before = follow(&program, model, before, limits).unwrap_or_default();
            let first = differing(&program, run, &before);
            return Ok(first.unwrap_or(Replay::DoesNot(Some(mismatch.index), mismatch.why)));
        }
    };
    if let Some(different) = differing(&program, run, &events) {
        return Ok(different);
    }
    let flaw = flaw(&program, model, run.claim, &actions, &events, limits)?;
    Ok(flaw.map_or(Replay::Replays, |why| Replay::DoesNot(None, why)))
}

/// The first event that is not what it is said to be.
fn differing(program: &Program, run: &Recorded, events: &[Event]) -> Option<Replay> {
    let pairs = run.events.iter().zip(events).enumerate();
    let mut unlike =
        pairs.filter_map(|(k, (told, event))| Some((k, recorded::difference(program, told, event)?)));
    unlike.next().map(|(index, why)| Replay::DoesNot(Some(index), why))
}

/// Why a possible run does not show what it is said to.
fn flaw(
    program: &Program,
    model: Model,
    claim: RunClaim,
    actions: &[Action],
    events: &[Event],
    limits: &Limits,
) -> Result<Option<String>, Undone> {
    let state = || match replay(program, model, events, limits) {
        Ok(state) => Ok(state),
        Err(Stopped::Limit(limit)) => Err(Undone::Limit(limit)),
        Err(Stopped::Mismatch(mismatch)) => Err(Undone::NoRun(mismatch.to_string())),
    };
    let no = |holds: bool, why: &str| Ok((!holds).then(|| why.to_string()));
    match claim {
        RunClaim::Possible => Ok(None),
        RunClaim::Forbidden => {
            let against = state()?.against(program, &Goal::of(program)).is_some();
            no(against || events.last().is_some_and(|e| e.trap.is_some()), "its last state is not forbidden")
        }
        RunClaim::Hang => match certify::hang(program, model, actions, limits) {
            Ok(_) => Ok(None),
            Err(Doubt::Limit(limit)) => Err(limit.into()),
            Err(Doubt::Refuted(_)) => no(false, "something can still happen at its end"),
        },
        RunClaim::Lasso(from) if from >= events.len() => {
            let last = state()?;
            let stuck = program.thread_ids().all(|t| thread_steps(program, model, &last, t).is_empty());
            no(from == events.len() && stuck, "something can still happen at its end")
        }
        RunClaim::Lasso(from) => {
            let begin = follow(program, model, actions[..from].iter().copied(), limits);
            let begin = begin.ok().map(|events| replay(program, model, &events, limits));
            let returns =
                begin.and_then(Result::ok).is_some_and(|begin| state().is_ok_and(|end| begin == end));
            no(returns, "it does not come back to where its cycle begins")
        }
        RunClaim::Witness { store, load } => {
            let broken = check_witness(events, &Attack { store, load }).err();
            Ok(broken.map(|broken| format!("it is no witness: {broken}")))
        }
        RunClaim::Race { store, load, write } => {
            if [store, load, write].into_iter().any(|k| k >= events.len()) {
                return no(false, "its race has no such events");
            }
            let race = Race { events: events.to_vec(), store, load, write };
            let broken = check_race(program, &race, limits)?.err();
            Ok(broken.map(|broken| format!("the race {broken}")))
        }
    }
}

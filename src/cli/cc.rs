//! `overtake cc`: is a forbidden state reachable in what the user's compiler makes of these sources, at each level of
//! optimisation?
//!
//! Compiles everything first, then asks `check` about each level, with what it prints kept back until all have
//! answered: where levels differ, that is said first.

use super::compile::{self, Language, Level};
use super::input::Failure;
use super::interrupt::Interrupt;
use super::terminal::{Kept, Terminal};
use super::{CheckArgs, Exit, answer, check, written};
use crate::query::{Limits, Model, Question};
use clap::{Arg, Args};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

pub(crate) const COMPILERS: &str = "Sources are compiled with debug information: C with $CC, gcc or clang, C++ with $CXX, g++ or clang++, \
                                    Rust with $RUSTC or rustc, each as an object file of one codegen unit whose panics \
                                    abort. Several files are one program; object files and archives among them are \
                                    linked with the others.\n\nExit codes: as `check`, of the worst level; 2 if something \
                                    does not compile, with what the compiler says.";

/// The levels if nobody says which.
const LEVELS: [&str; 2] = ["O0", "O2"];

#[derive(Clone, Debug, Args)]
#[command(mut_args(for_sources))]
pub(super) struct CcArgs {
    /// Levels of optimisation, each checked by itself; by default O0,O2, or what the flags say
    #[arg(long, value_delimiter = ',', value_name = "LEVELS", value_parser = Level::parse)]
    levels: Vec<Level>,
    #[command(flatten)]
    check: CheckArgs,
    /// For the compiler
    #[arg(last = true, value_name = "FLAGS")]
    flags: Vec<String>,
}

/// What `check` takes, where sources are given instead of programs.
fn for_sources(arg: Arg) -> Arg {
    match arg.get_id().as_str() {
        "files" => arg.help("Sources in C, C++ and Rust, assembly, object files: one program"),
        "from" | "certificate" => arg.hide(true),
        _ => arg,
    }
}

/// What was said of the program as it is compiled at one level.
struct Answered {
    level: String,
    exit: Exit,
    /// As `check` says it.
    told: Kept,
}

impl Answered {
    fn verdict(&self) -> &'static str {
        match self.exit {
            Exit::Good => "safe",
            Exit::Unknown => "unknown",
            Exit::Violated => "violated",
            Exit::BadInput | Exit::Internal => "error",
        }
    }
}

pub(super) fn run(args: CcArgs, terminal: &Terminal) -> Exit {
    let levels = match levels(&args) {
        Ok(levels) => levels,
        Err(why) => {
            terminal.error(&why);
            return Exit::BadInput;
        }
    };
    let interrupt = Interrupt::new();
    let objects = {
        let limits = interrupt.watch(args.check.search.limits());
        let compiled = |level: &Option<Level>| compiled(&args, level.as_ref(), &limits);
        levels.iter().map(compiled).collect::<Result<Vec<_>, Failure>>()
    };
    let objects = match objects {
        Ok(objects) => objects,
        Err(failure) => return failed(failure, &args, terminal),
    };
    let mut answers = Vec::new();
    for (level, objects) in levels.iter().zip(objects) {
        let level = level.as_ref().map_or_else(|| told_level(&args.flags), Level::name);
        let mut own = args.check.clone();
        terminal.parts().aspect = level.clone();
        own.search.input.code.compiled = Arc::new(objects);
        own.search.input.code.linked = own.search.files.split_off(1);
        let (exit, told) = terminal.kept(|| check::run_until(&own, &interrupt, terminal));
        answers.push(Answered { level, exit, told });
    }
    match args.check.search.json {
        true => {
            answers.iter().for_each(|answered| complain(answered, terminal));
            terminal.print(&as_json(&answers, &args));
        }
        false => show(&answers, terminal),
    }
    answers.iter().map(|answered| answered.exit).max().unwrap_or(Exit::Good)
}

/// The levels that are asked for; none where the flags tell the one.
fn levels(args: &CcArgs) -> Result<Vec<Option<Level>>, String> {
    if args.check.search.input.from.is_some() || args.check.certificate.is_some() {
        let what = if args.check.certificate.is_some() { "--certificate" } else { "--from" };
        return Err(format!("{what} is not for sources: compile them, and `overtake check` the object file"));
    }
    let told = args.flags.iter().find(|flag| compile::tells_level(flag));
    match (told, args.levels.is_empty()) {
        (Some(flag), false) => Err(format!("`{flag}` among the flags tells the level, and so does --levels")),
        (Some(_), true) => Ok(vec![None]),
        (None, true) => LEVELS.iter().map(|level| Level::parse(level).map(Some)).collect(),
        (None, false) => {
            let mut levels: Vec<Option<Level>> = Vec::new();
            for level in &args.levels {
                if !levels.iter().flatten().any(|known| known == level) {
                    levels.push(Some(level.clone()));
                }
            }
            Ok(levels)
        }
    }
}

/// The level in the words of the flags, of which the last one counts.
fn told_level(flags: &[String]) -> String {
    let last = flags.iter().rfind(|flag| compile::tells_level(flag));
    last.map_or_else(String::new, |flag| flag.trim_start_matches('-').to_string())
}

/// The object files of all sources, at this level.
fn compiled(
    args: &CcArgs,
    level: Option<&Level>,
    limits: &Limits,
) -> Result<BTreeMap<PathBuf, Vec<u8>>, Failure> {
    let mut objects = BTreeMap::new();
    for path in &args.check.search.files {
        let Some(language) = Language::of(path) else { continue };
        let flags = if language == Language::Assembly { &[][..] } else { &args.flags };
        objects.insert(path.clone(), compile::object(path, language, level, flags, limits)?);
    }
    if objects.is_empty() {
        let first = args.check.search.files[0].display();
        let known = "there are .c, .cc, .cpp, .cxx, .rs, .s and .S";
        return Err(Failure::Said(format!("{first}: the name is not that of a source; {known}")));
    }
    Ok(objects)
}

/// Nothing was checked.
fn failed(failure: Failure, args: &CcArgs, terminal: &Terminal) -> Exit {
    let search = &args.check.search;
    let file = &search.files[0];
    terminal.heard();
    match failure {
        Failure::Said(why) => terminal.error(&why),
        Failure::Shown(complaint) => terminal.complain(&complaint),
        Failure::Limit(limit) => {
            let model = args.check.model.unwrap_or_default().of_programs().unwrap_or(Model::Tso);
            return answer::show_unread(Question::Check, file, model, &limit, search, terminal);
        }
    }
    if search.json {
        terminal.print(&format!("{}\n", written::error_object("cc", file, &terminal.heard())));
    }
    Exit::BadInput
}

/// Differences first, then each level with what was said of it.
fn show(answers: &[Answered], terminal: &Terminal) {
    let verdicts: Vec<String> =
        answers.iter().map(|answered| format!("{} at -{}", answered.verdict(), answered.level)).collect();
    if answers.windows(2).any(|two| two[0].verdict() != two[1].verdict()) {
        terminal.print(&format!("levels differ: {}\n\n", verdicts.join(", ")));
    }
    for (n, answered) in answers.iter().enumerate() {
        complain(answered, terminal);
        let told = match answered.told.printed.is_empty() {
            true => "error\n",
            false => &answered.told.printed,
        };
        let gap = if n > 0 { "\n" } else { "" };
        terminal.print(&format!("{gap}-{}: {told}", answered.level));
    }
}

/// Warnings and errors, with their level.
fn complain(answered: &Answered, terminal: &Terminal) {
    let complaints = &answered.told.complaints;
    if !complaints.is_empty() {
        terminal.complain(&format!("-{}: {complaints}", answered.level));
    }
}

/// The answer of the worst level, and the verdicts of all.
fn as_json(answers: &[Answered], args: &CcArgs) -> String {
    let mut objects: Vec<Value> = answers
        .iter()
        .map(|answered| {
            let object =
                answered.told.printed.lines().next().and_then(|line| serde_json::from_str(line).ok());
            object.unwrap_or_else(|| written::error_object("cc", &args.check.search.files[0], ""))
        })
        .collect();
    let worst = answers.iter().map(|answered| answered.exit).max();
    // Of several the first.
    let decides = answers.iter().position(|answered| Some(answered.exit) == worst).unwrap_or(0);
    let levels: Vec<Value> = answers
        .iter()
        .zip(&objects)
        .map(|(answered, object)| {
            let mut level = json!({ "level": answered.level, "verdict": answered.verdict() });
            for field in ["reason", "engine", "states", "time_ms"] {
                if let Some(value) = object.get(field) {
                    level[field] = value.clone();
                }
            }
            level
        })
        .collect();
    let files: Vec<String> = args.check.search.files.iter().map(|file| file.display().to_string()).collect();
    let mut object = objects.swap_remove(decides);
    object["command"] = "cc".into();
    object["level"] = answers[decides].level.as_str().into();
    object["levels"] = levels.into();
    object["files"] = files.into();
    format!("{object}\n")
}

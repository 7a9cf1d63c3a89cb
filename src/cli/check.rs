//! `overtake check`: is a forbidden state reachable?

use super::terminal::Terminal;
use super::{CheckArgs, EngineArg, Exit, ModelArg, SearchArg, input, limits};
use crate::engine::{self, Engine, Options};
use crate::model::Program;
use crate::reach::{Order, Reductions};
use crate::report;
use crate::verdict::{Answer, Goal, Limits, Model, Outcome};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

pub fn run(args: &CheckArgs, terminal: &Terminal) -> Exit {
    let options = match options(args) {
        Ok(options) => options,
        Err(message) => {
            terminal.error(&message);
            return Exit::BadInput;
        }
    };
    let interrupt = Interrupt::new();
    let files = args.files.iter();
    files.map(|file| check(file, args, &options, &interrupt, terminal)).max().unwrap_or(Exit::Good)
}

fn options(args: &CheckArgs) -> Result<Options, String> {
    let model = match args.model {
        ModelArg::Sc => Model::Sc,
        ModelArg::Tso => Model::Tso,
    };
    if model == Model::Sc && args.buffer.is_some() {
        return Err("--buffer bounds store buffers, and --model sc has none".to_string());
    }
    let default = Options::default();
    Ok(Options {
        model,
        engine: match args.engine {
            EngineArg::Auto => Engine::Auto,
            EngineArg::Explicit => Engine::Explicit,
        },
        buffer: args.buffer,
        reductions: Reductions {
            steps: !args.without.no_steps,
            liveness: !args.without.no_liveness,
            por: !args.without.no_por,
            sleep: !args.without.no_sleep,
            packing: !args.without.no_packing,
            prune: !args.without.no_prune,
        },
        order: match args.search {
            SearchArg::Bfs => Order::BreadthFirst,
            SearchArg::Dfs => Order::DepthFirst,
        },
        workers: args.threads.unwrap_or(default.workers),
    })
}

fn check(
    file: &Path,
    args: &CheckArgs,
    options: &Options,
    interrupt: &Interrupt,
    terminal: &Terminal,
) -> Exit {
    let Some(program) = input::read(file, &args.input, terminal) else { return Exit::BadInput };
    if program.properties().is_empty() && !program.has_asserts() {
        let none = "the program has no property (forbid, exists, never, forall) and no assert";
        if !program.may_go_wrong() {
            terminal.error(&format!("{}: there is nothing to check: {none}", file.display()));
            return Exit::BadInput;
        }
        terminal.warning(&format!(
            "{}: {none}; only divisions by zero and accesses outside memory are looked for",
            file.display()
        ));
    }
    let limits = interrupt.watch(limits_of(args));
    let result = {
        let _progress = (!args.json && !args.quiet).then(|| terminal.progress(&limits));
        engine::check(&program, &Goal::of(&program), options, &limits)
    };
    match result {
        Ok(outcome) => {
            show(file, args, &program, &outcome, terminal);
            exit(&outcome)
        }
        Err(bug) => {
            terminal.error(&format!("{}: internal error: {bug}", file.display()));
            terminal.complain("This is a bug of overtake. Please report it with the program.\n");
            Exit::Internal
        }
    }
}

fn limits_of(args: &CheckArgs) -> Limits {
    let memory = args.memory.or_else(limits::default_memory);
    let limits = Limits { memory, states: args.states, ..Limits::default() };
    match args.timeout {
        Some(timeout) => limits.with_timeout(timeout),
        None => limits,
    }
}

fn exit(outcome: &Outcome) -> Exit {
    match outcome.answer {
        Answer::Safe(_) => Exit::Good,
        Answer::Violated(_) => Exit::Violated,
        Answer::Unknown(_) => Exit::Unknown,
    }
}

fn show(file: &Path, args: &CheckArgs, program: &Program, outcome: &Outcome, terminal: &Terminal) {
    let name = file.display().to_string();
    if args.json {
        let object = report::json::outcome(program, &name, "check", outcome, limits::peak_kb());
        return terminal.print(&format!("{object}\n"));
    }
    for warning in &outcome.warnings {
        terminal.warning(&format!("{name}: {warning}"));
    }
    let several = args.files.len() > 1;
    let mut text = report::answer::verdict(outcome, several.then_some(&name), terminal.color);
    if !args.quiet {
        let style = report::text::Style { width: terminal.width, color: terminal.color };
        text += &report::answer::explanation(program, outcome, style);
    }
    if args.verbose {
        text += &report::answer::costs(outcome, limits::peak_kb());
    }
    terminal.print(&text);
}

/// Ctrl-C ends the running search, which then tells what it knows; a second one ends the process.
struct Interrupt(Arc<Mutex<Arc<Limits>>>);

impl Interrupt {
    fn new() -> Interrupt {
        let current = Arc::new(Mutex::new(Arc::new(Limits::default())));
        let watched = current.clone();
        // Without a handler Ctrl-C still ends the process, only less politely.
        let _ = ctrlc::set_handler(move || {
            let limits = watched.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            if limits.cancelled.swap(true, Ordering::Relaxed) {
                std::process::exit(130);
            }
        });
        Interrupt(current)
    }

    /// From now on, Ctrl-C is for these. One that has come already is not forgotten.
    fn watch(&self, limits: Limits) -> Arc<Limits> {
        let limits = Arc::new(limits);
        let mut current = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        limits.cancelled.store(current.cancelled.load(Ordering::Relaxed), Ordering::Relaxed);
        *current = limits.clone();
        limits
    }
}

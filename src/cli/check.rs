//! `overtake check`: is a forbidden state reachable?

use super::interrupt::Interrupt;
use super::terminal::Terminal;
use super::{CheckArgs, EngineArg, Exit, ExtensionArg, ModelArg, OrderArg, answer, input, limits};
use crate::analysis::interval;
use crate::engine::{self, Engine, Form, Options};
use crate::query::{Goal, Limit, Model, Question};
use crate::reach::Order;
use crate::report;
use std::path::Path;

pub fn run(args: &CheckArgs, terminal: &Terminal) -> Exit {
    let options = match options(args) {
        Ok(options) => options,
        Err(message) => {
            terminal.error(&message);
            return Exit::BadInput;
        }
    };
    let interrupt = Interrupt::new();
    let files = args.search.files.iter();
    files.map(|file| check(file, args, &options, &interrupt, terminal)).max().unwrap_or(Exit::Good)
}

fn options(args: &CheckArgs) -> Result<Options, String> {
    let model = match args.model {
        ModelArg::Sc => Model::Sc,
        ModelArg::Tso => Model::Tso,
    };
    let engine = match args.engine {
        EngineArg::Auto => Engine::Auto,
        EngineArg::Lazy => Engine::Lazy,
        EngineArg::Explicit => Engine::Explicit,
    };
    match (model, engine, args.buffer) {
        (Model::Sc, _, Some(_)) => {
            return Err("--buffer bounds store buffers, and --model sc has none".to_string());
        }
        (_, Engine::Lazy, Some(_)) => {
            return Err("--buffer bounds store buffers, and the lazy engine has none: use --engine explicit"
                .to_string());
        }
        (Model::Sc, Engine::Lazy, _) => {
            return Err("the lazy engine answers for TSO; under SC there is nothing to delay".to_string());
        }
        _ => {}
    }
    Ok(Options {
        model,
        engine,
        buffer: args.buffer,
        iterations: args.iterations,
        form: match args.extension {
            ExtensionArg::Exact => Form::Exact,
            ExtensionArg::Additive => Form::Additive,
        },
        order: match args.order {
            OrderArg::Bfs => Order::BreadthFirst,
            OrderArg::Dfs => Order::DepthFirst,
        },
        ..args.search.options()
    })
}

fn check(
    file: &Path,
    args: &CheckArgs,
    options: &Options,
    interrupt: &Interrupt,
    terminal: &Terminal,
) -> Exit {
    let search = &args.search;
    let limits = interrupt.watch(search.limits());
    let unknown =
        |limit: &Limit| answer::show_unread(Question::Check, file, options.model, limit, search, terminal);
    let program = match input::read(file, &search.input, &limits, terminal, unknown) {
        Ok(program) => program,
        Err(exit) => return exit,
    };
    if program.properties().is_empty() && !program.has_asserts() {
        let none = "the program has no property (forbid, exists, never, forall, final states) and no assert";
        match interval::may_go_wrong(&program, &limits) {
            Ok(false) => {
                terminal.error(&format!("{}: there is nothing to check: {none}", file.display()));
                return Exit::BadInput;
            }
            Ok(true) => terminal.warning(&format!(
                "{}: {none}; only divisions by zero and accesses outside memory are looked for",
                file.display()
            )),
            // The engine will find the same limit.
            Err(_) => {}
        }
    }
    let result = {
        let _progress = (!search.json && !search.quiet).then(|| terminal.progress(&limits));
        engine::check(&program, &Goal::of(&program), options, &limits)
    };
    match result {
        Ok(outcome) => {
            let name = file.display().to_string();
            let document = report::check::document(&program, &name, &outcome, limits::peak_kb());
            answer::show(document, search, terminal)
        }
        Err(bug) => terminal.internal_error(file, &bug.to_string()),
    }
}

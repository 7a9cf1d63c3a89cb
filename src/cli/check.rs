//! `overtake check`: is a forbidden state reachable?

use super::interrupt::Interrupt;
use super::terminal::Terminal;
use super::{CheckArgs, Exit, ExtensionArg, ModelArg, OrderArg, answer, input, limits};
use crate::analysis::interval;
use crate::engine::{self, Choice, ExplicitOptions, Form, LazyOptions, Options};
use crate::query::{Goal, Limit, Model, Question};
use crate::reach::Order;
use crate::report;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
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
    if model == Model::Sc && args.buffer.is_some() {
        return Err("--buffer bounds store buffers, and --model sc has none".to_string());
    }
    let form = match args.extension {
        ExtensionArg::Exact => Form::Exact,
        ExtensionArg::Additive => Form::Additive,
    };
    let options = Options {
        model,
        engine: args.engine,
        lazy: LazyOptions { form, iterations: args.iterations },
        explicit: ExplicitOptions { buffer: args.buffer },
        order: match args.order {
            OrderArg::Bfs => Order::BreadthFirst,
            OrderArg::Dfs => Order::DepthFirst,
        },
        side_by_side: args.side_by_side,
        ..args.search.options()
    };
    options.refusal().map_or(Ok(options), |refusal| Err(refusal.to_string()))
}

/// Reads the name of an engine.
pub fn engine() -> impl TypedValueParser<Value = Choice> {
    let value = |choice: Choice| PossibleValue::new(choice.name()).help(choice.about());
    let named = |name: String| Choice::all().find(|choice| choice.name() == name);
    PossibleValuesParser::new(Choice::all().map(value))
        .map(move |name| named(name).expect("no other name is let through"))
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

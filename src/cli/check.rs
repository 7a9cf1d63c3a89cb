//! `overtake check`: is a forbidden state reachable?

use super::input::{self, Loaded};
use super::interrupt::Interrupt;
use super::terminal::Terminal;
use super::{CheckArgs, Exit, ExtensionArg, OrderArg, answer, certificate, dve, limits, liveness};
use crate::analysis::interval;
use crate::certify::certificate::About;
use crate::engine::{self, Choice, ExplicitOptions, Form, LazyOptions, Options, PropertyOutcomes};
use crate::model::Program;
use crate::query::{Asked, Limit, Limits, Model, Question};
use crate::reach::Order;
use crate::report;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use std::path::Path;
use std::sync::Arc;

pub fn run(args: &CheckArgs, terminal: &Terminal) -> Exit {
    let options = match options(args) {
        Ok(options) => options,
        Err(message) => {
            terminal.error(&message);
            return Exit::BadInput;
        }
    };
    if let Some(refusal) = certificate::refusal(args.certificate.as_deref(), &args.search) {
        terminal.error(refusal);
        return Exit::BadInput;
    }
    let interrupt = Interrupt::new();
    let ask = |file: &Path| check(file, args, &options, &interrupt, terminal);
    answer::each_file(Question::Check, &args.search, terminal, ask)
}

fn options(args: &CheckArgs) -> Result<Options, String> {
    // What programs do not have is refused once one is read.
    let model = args.model.unwrap_or_default().of_programs().unwrap_or(Model::Sc);
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

/// Why a program cannot be asked what the arguments ask.
fn refusal(args: &CheckArgs) -> Option<String> {
    let given = args.dve.given().map(|option| format!("{option} is for DVE models"));
    given.or_else(|| args.model.unwrap_or_default().of_programs().err())
}

/// Reads the name of an engine.
pub fn engine() -> impl TypedValueParser<Value = Choice> {
    let value = |choice: Choice| PossibleValue::new(choice.name()).help(choice.about());
    let named = |name: String| Choice::all().find(|choice| choice.name() == name);
    PossibleValuesParser::new(Choice::all().map(value))
        .map(move |name| named(name).expect("no other name is let through"))
}

/// The property of this number or name.
fn pick(program: &Program, all: &[Asked], wanted: &str) -> Result<Asked, String> {
    let named = all.iter().find(|asked| asked.name(program) == Some(wanted));
    let numbered = || wanted.parse::<usize>().ok().and_then(|n| all.get(n.checked_sub(1)?));
    let names: Vec<&str> = all.iter().filter_map(|asked| asked.name(program)).collect();
    named.or_else(numbered).copied().ok_or_else(|| {
        let names =
            if names.is_empty() { String::new() } else { format!("; named are {}", names.join(", ")) };
        format!("there is no property `{wanted}`: the file has {}{names}", all.len())
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
    let source = match input::read_loaded(file, &search.input, &limits, terminal, unknown) {
        Ok(Loaded::Program(source)) => source,
        Ok(Loaded::Model(model)) => return dve::check::run(file, &model, args, &limits, terminal),
        Err(exit) => return exit,
    };
    if let Some(why) = refusal(args) {
        terminal.error(&format!("{}: {why}", file.display()));
        return Exit::BadInput;
    }
    if let Some(text) = args.dve.ltl() {
        return liveness::run(file, &source, text, args, &limits, terminal);
    }
    let program = source.program;
    if args.hang {
        return hang(&program, file, args, options, &limits, terminal);
    }
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
    let all = Asked::of(&program);
    let (asked, errors) = match args.property.as_deref().map(|wanted| pick(&program, &all, wanted)) {
        None => (all, true),
        Some(Ok(one)) => (vec![one], false),
        Some(Err(why)) => {
            terminal.error(&format!("{}: {why}", file.display()));
            return Exit::BadInput;
        }
    };
    let progress = (!search.json && !search.quiet).then(|| terminal.progress(&limits));
    let PropertyOutcomes { each, worst } =
        match engine::check_each(&program, &asked, errors, options, &limits) {
            Ok(outcomes) => outcomes,
            Err(bug) => return terminal.internal_error(file, &bug.to_string()),
        };
    let written = args.certificate.as_deref().map(|path| {
        let define = search.input.parameters().expect("the program was read with them");
        let number = |one: &Asked| Asked::of(&program).iter().position(|asked| asked == one).map(|k| k + 1);
        let property = args.property.as_ref().and_then(|_| number(&asked[0]));
        let about = About { program: &program, define: &define, property };
        let made = engine::certificate::of_outcome(&about, &worst, &limits);
        certificate::write(made, path, &limits, terminal)
    });
    drop(progress);
    let name = file.display().to_string();
    let document = report::check::document(&program, &name, &worst, &each, limits::peak_kb());
    certificate::show(document, written, search, terminal)
}

/// Does the program hang?
fn hang(
    program: &Program,
    file: &Path,
    args: &CheckArgs,
    options: &Options,
    limits: &Arc<Limits>,
    terminal: &Terminal,
) -> Exit {
    let search = &args.search;
    let progress = (!search.json && !search.quiet).then(|| terminal.progress(limits));
    let found = engine::hang(program, options.model, limits);
    drop(progress);
    match found {
        Ok(found) => {
            let name = file.display().to_string();
            let document = report::hang::document(
                &found.program,
                &name,
                &found.outcome,
                &found.waiting,
                limits::peak_kb(),
            );
            answer::show(&document, search, terminal)
        }
        Err(bug) => terminal.internal_error(file, &bug.to_string()),
    }
}

//! `overtake show`: the program as overtake sees it.

use super::input::{self, Loaded};
use super::interrupt::Interrupt;
use super::terminal::Terminal;
use super::{Exit, InputArgs, LimitArgs, ModelArg, dve, limits, written};
use crate::engine::{self, Choice, Internal, Options};
use crate::model::Program;
use crate::query::{Goal, Limit, Limits, Question};
use crate::report::dve::Sizes;
use crate::temporal::safety::StateSpace;
use crate::temporal::space;
use crate::{front, report};
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// The program; `-` is standard input (with --from)
    pub(super) file: PathBuf,
    #[command(flatten)]
    pub(super) input: InputArgs,
    /// Writes the control-flow graphs for Graphviz instead
    #[arg(long)]
    pub(super) dot: bool,
    /// Writes a picture of the control flow to this file instead
    #[arg(long, value_name = "FILE", conflicts_with_all = ["dot", "extend", "states"])]
    pub(super) svg: Option<PathBuf>,
    /// Shows the program that the lazy engine has after K rounds, with its delays built in, in the native
    /// language
    #[arg(long, value_name = "K")]
    pub(super) extend: Option<u64>,
    /// Counts all states, transitions, deadlocks and errors instead
    #[arg(long)]
    pub(super) states: bool,
    /// The memory model for --states
    #[arg(long, value_enum, requires = "states")]
    pub(super) model: Option<ModelArg>,
    #[command(flatten)]
    pub(super) given: dve::GivenArgs,
    /// Prints the counts as a JSON object
    #[arg(long, requires = "states")]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) limits: LimitArgs,
}

pub(crate) fn run(args: &ShowArgs, terminal: &Terminal) -> Exit {
    written::with_object("show", &args.file, args.json, terminal, || shown(args, terminal))
}

fn shown(args: &ShowArgs, terminal: &Terminal) -> Exit {
    let limits = Interrupt::new().watch(args.limits.limits());
    let unknown = |limit: &Limit| terminal.limit_reached(&args.file, limit);
    let program = match input::read_loaded(&args.file, &args.input, &limits, terminal, unknown) {
        Ok(Loaded::Program(source)) => source.program,
        Ok(Loaded::Model(model)) => return dve::show::run(&model, args, &limits, terminal),
        Err(exit) => return exit,
    };
    if args.states {
        return match args.model.unwrap_or_default().of_programs() {
            Ok(model) => sizes(args, model.name(), space::count(&program, model, &limits), terminal),
            Err(why) => {
                terminal.error(&format!("{}: {why}", args.file.display()));
                Exit::BadInput
            }
        };
    }
    if let Some(path) = &args.svg {
        let picture = report::pictures::control_flow(&program, &args.file.display().to_string());
        return match std::fs::write(path, picture) {
            Ok(()) => Exit::Good,
            Err(e) => {
                terminal.error(&format!("{}: {e}", path.display()));
                Exit::BadInput
            }
        };
    }
    match text(args, &program, terminal, &limits) {
        Ok(Ok(text)) => {
            terminal.print(&text);
            Exit::Good
        }
        Ok(Err(limit)) => unknown(&limit),
        Err(bug) => terminal.internal_error(&args.file, &bug.to_string()),
    }
}

/// Shows how large a state space is, unless a limit was reached.
pub(crate) fn sizes(args: &ShowArgs, model: &str, space: StateSpace, terminal: &Terminal) -> Exit {
    if let Some(limit) = &space.limit {
        return terminal.limit_reached(&args.file, limit);
    }
    let StateSpace { states, transitions, deadlocks, errors, stats, .. } = space;
    let (sizes, file) = (Sizes { states, transitions, deadlocks, errors }, args.file.display().to_string());
    terminal.print(&match args.json {
        true => format!("{}\n", report::dve::sizes_json(&file, model, &sizes, &stats, limits::peak_kb())),
        false => report::dve::sizes_text(&sizes),
    });
    Exit::Good
}

fn text(
    args: &ShowArgs,
    program: &Program,
    terminal: &Terminal,
    limits: &Limits,
) -> Result<Result<String, Limit>, Internal> {
    if let Err(limit) = limits.check() {
        return Ok(Err(limit));
    }
    let Some(rounds) = args.extend else {
        return Ok(match args.dot {
            true => report::dot::dot(program, limits),
            false => report::listing::listing(program, terminal.color, limits),
        });
    };
    let lazily = Options { engine: Choice::Only(&engine::LAZY), ..Options::default() };
    if let Some(limit) = engine::refusal(program, Question::Check, &lazily) {
        return Ok(Err(limit));
    }
    let extended = engine::extended(program, &Goal::of(program), &Options::default(), limits, rounds)?;
    Ok(extended.and_then(|extended| match args.dot {
        true => report::dot::dot(&extended, limits),
        false => front::tso::write(&extended, limits),
    }))
}

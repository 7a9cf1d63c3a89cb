//! `overtake convert`: the program in another format, or the reason why that format cannot say it.

use super::input::{self, Loaded};
use super::interrupt::Interrupt;
use super::terminal::Terminal;
use super::{Exit, InputArgs, LimitArgs};
use crate::front::Unwritten;
use crate::front::dve::program::program;
use crate::front::dve::promela;
use crate::front::formats::{self, Format, Writing};
use crate::front::promela::Joining;
use crate::query::Limit;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(super) struct ConvertArgs {
    /// The program; `-` is standard input (with --from)
    file: PathBuf,
    #[command(flatten)]
    input: InputArgs,
    /// The format to write
    #[arg(long, value_name = "FORMAT", value_parser = input::format_parser(formats::writable()))]
    to: &'static Format,
    /// One step per instruction, even where nobody can see the difference (only with --to promela)
    #[arg(long)]
    literal: bool,
    /// Writes to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    limits: LimitArgs,
}

pub(crate) fn run(args: &ConvertArgs, terminal: &Terminal) -> Exit {
    if args.literal && args.to.name != "promela" {
        terminal.error("--literal is about the steps of a SPIN model, and goes with --to promela alone");
        return Exit::BadInput;
    }
    let steps = if args.literal { Joining::Literal } else { Joining::Joined };
    let limits = Interrupt::new().watch(args.limits.limits());
    let unknown = |limit: &Limit| terminal.limit_reached(&args.file, limit);
    let loaded = match input::read_loaded(&args.file, &args.input, &limits, terminal, unknown) {
        Ok(loaded) => loaded,
        Err(exit) => return exit,
    };
    let written = match &loaded {
        Loaded::Program(source) => {
            if !source.formulas.is_empty() {
                terminal.warning(&format!("{}: formulas (ltl) are not written", args.file.display()));
            }
            let with = Writing { name: &source.name, litmus: source.litmus.as_ref(), steps, limits: &limits };
            args.to.written(&source.program, &with)
        }
        Loaded::Model(model) if args.to.name == "promela" => promela::write(&model.system, &limits),
        Loaded::Model(model) => {
            let name = input::stem(&args.file);
            let with = Writing { name: &name, litmus: None, steps, limits: &limits };
            program(&model.system, args.to.name, &limits).and_then(|program| args.to.written(&program, &with))
        }
    };
    let text = match written {
        Ok(text) => text,
        Err(Unwritten::Limit(limit)) => return unknown(&limit),
        Err(why) => {
            terminal.error(&format!("{}: {why}", args.file.display()));
            return Exit::BadInput;
        }
    };
    match &args.output {
        None => terminal.print(&text),
        Some(path) => {
            if let Err(e) = std::fs::write(path, text) {
                terminal.error(&format!("{}: {e}", path.display()));
                return Exit::BadInput;
            }
        }
    }
    Exit::Good
}

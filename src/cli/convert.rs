//! `overtake convert`: the program in another format, or the reason why that format cannot say it.

use super::input::Source;
use super::interrupt::Interrupt;
use super::terminal::Terminal;
use super::{ConvertArgs, Exit, input};
use crate::front::promela::Steps;
use crate::front::{self, Unwritten};
use crate::query::{Limit, Limits};
use clap::ValueEnum;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Target {
    /// The native language
    Tso,
    /// The program model itself
    Ron,
    /// An x86 litmus test
    Litmus,
    /// For Trencher
    Trencher,
    /// A model under SC for SPIN
    Promela,
}

pub fn run(args: &ConvertArgs, terminal: &Terminal) -> Exit {
    if args.literal && args.to != Target::Promela {
        terminal.error("--literal is about the steps of a SPIN model, and goes with --to promela alone");
        return Exit::BadInput;
    }
    let steps = if args.literal { Steps::Literal } else { Steps::Joined };
    let limits = Interrupt::new().watch(args.limits.limits());
    let unknown = |limit: &Limit| terminal.limit_reached(&args.file, limit);
    let source = match input::read_any(&args.file, &args.input, &limits, terminal, unknown) {
        Ok(source) => source,
        Err(exit) => return exit,
    };
    let text = match write(&source, args.to, steps, &limits) {
        Ok(text) => text,
        Err(Unwritten::Limit(limit)) => return unknown(&limit),
        Err(Unwritten::Inexpressible(why)) => {
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

fn write(source: &Source, target: Target, steps: Steps, limits: &Limits) -> Result<String, Unwritten> {
    let program = &source.program;
    limits.check()?;
    match target {
        Target::Tso => Ok(front::tso::write(program, limits)?),
        Target::Ron => Ok(front::ron::write(program, limits)?),
        Target::Litmus => front::litmus::write(program, &source.name, source.litmus.as_ref(), limits),
        Target::Trencher => front::trencher::write(program, limits),
        Target::Promela => front::promela::write(program, steps, limits),
    }
}

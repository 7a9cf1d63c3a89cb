//! `overtake convert`: the program in another format, or the reason why that format cannot say it.

use super::input::Source;
use super::terminal::Terminal;
use super::{ConvertArgs, Exit, input};
use crate::front::promela::Steps;
use crate::front::{self, Inexpressible};
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
    let Some(source) = input::read_any(&args.file, &args.input, terminal) else { return Exit::BadInput };
    match write(&source, args.to, steps).map_err(|e| format!("{}: {e}", args.file.display())).and_then(
        |text| match &args.output {
            Some(path) => std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display())),
            None => {
                terminal.print(&text);
                Ok(())
            }
        },
    ) {
        Ok(()) => Exit::Good,
        Err(message) => {
            terminal.error(&message);
            Exit::BadInput
        }
    }
}

fn write(source: &Source, target: Target, steps: Steps) -> Result<String, Inexpressible> {
    let program = &source.program;
    match target {
        Target::Tso => Ok(front::tso::write(program)),
        Target::Ron => Ok(front::ron::write(program)),
        Target::Litmus => front::litmus::write(program, &source.name, source.litmus.as_ref()),
        Target::Trencher => front::trencher::write(program),
        Target::Promela => front::promela::write(program, steps),
    }
}

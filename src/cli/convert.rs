//! `overtake convert`: the program in another format, or the reason why that format cannot say it.

use super::input::{self, Loaded};
use super::interrupt::Interrupt;
use super::terminal::Terminal;
use super::{ConvertArgs, Exit};
use crate::front::Unwritten;
use crate::front::dve::promela;
use crate::front::formats::Writing;
use crate::front::promela::Joining;
use crate::query::Limit;

pub fn run(args: &ConvertArgs, terminal: &Terminal) -> Exit {
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
            let with = Writing { name: &source.name, litmus: source.litmus.as_ref(), steps, limits: &limits };
            args.to.written(&source.program, &with)
        }
        Loaded::Model(model) if args.to.name == "promela" => promela::write(&model.system, &limits),
        Loaded::Model(_) => {
            terminal.error(&format!("{}: DVE models are written --to promela alone", args.file.display()));
            return Exit::BadInput;
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

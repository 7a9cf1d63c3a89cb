//! `overtake convert`: the program in another format, or the reason why that format cannot say it.

use super::interrupt::Interrupt;
use super::terminal::Terminal;
use super::{ConvertArgs, Exit, input};
use crate::front::Unwritten;
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
    let source = match input::read_any(&args.file, &args.input, &limits, terminal, unknown) {
        Ok(source) => source,
        Err(exit) => return exit,
    };
    let with = Writing { name: &source.name, litmus: source.litmus.as_ref(), steps, limits: &limits };
    let text = match args.to.written(&source.program, &with) {
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

//! `overtake show`: the program as overtake sees it.

use super::interrupt::Interrupt;
use super::terminal::Terminal;
use super::{Exit, ShowArgs, input};
use crate::engine::{self, Internal, Options};
use crate::model::Program;
use crate::query::{Goal, Limit, Limits};
use crate::{front, report};

pub fn run(args: &ShowArgs, terminal: &Terminal) -> Exit {
    let limits = Interrupt::new().watch(args.limits.limits());
    let unknown = |limit: &Limit| terminal.limit_reached(&args.file, limit);
    let program = match input::read(&args.file, &args.input, &limits, terminal, unknown) {
        Ok(program) => program,
        Err(exit) => return exit,
    };
    match text(args, &program, terminal, &limits) {
        Ok(Ok(text)) => {
            terminal.print(&text);
            Exit::Good
        }
        Ok(Err(limit)) => unknown(&limit),
        Err(bug) => terminal.internal_error(&args.file, &bug.to_string()),
    }
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
    let extended = engine::extended(program, &Goal::of(program), &Options::default(), limits, rounds)?;
    Ok(extended.and_then(|extended| match args.dot {
        true => report::dot::dot(&extended, limits),
        false => front::tso::write(&extended, limits),
    }))
}

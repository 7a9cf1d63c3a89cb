//! `overtake show`: the program as overtake sees it.

use super::interrupt::Interrupt;
use super::terminal::Terminal;
use super::{Exit, ShowArgs, input};
use crate::engine::{self, Options};
use crate::model::Program;
use crate::verdict::{Goal, Limits};
use crate::{front, report};

pub fn run(args: &ShowArgs, terminal: &Terminal) -> Exit {
    let Some(program) = input::read(&args.file, &args.input, terminal) else { return Exit::BadInput };
    let Some(rounds) = args.extend else {
        let text = match args.dot {
            true => report::dot::dot(&program),
            false => report::listing::listing(&program, terminal.color),
        };
        terminal.print(&text);
        return Exit::Good;
    };
    let limits = Interrupt::new().watch(Limits::default());
    match engine::extended(&program, &Goal::of(&program), &Options::default(), &limits, rounds) {
        Ok(Ok(extended)) => show_extended(args, &extended, terminal),
        Ok(Err(limit)) => {
            terminal.error(&format!("{}: {}", args.file.display(), report::limit_reached(&limit)));
            Exit::Unknown
        }
        Err(bug) => terminal.internal_error(&args.file, &bug.to_string()),
    }
}

fn show_extended(args: &ShowArgs, extended: &Program, terminal: &Terminal) -> Exit {
    terminal.print(&match args.dot {
        true => report::dot::dot(extended),
        false => front::tso::write(extended),
    });
    Exit::Good
}

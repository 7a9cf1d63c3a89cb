//! `overtake show`: the program as overtake sees it.

use super::terminal::Terminal;
use super::{Exit, ShowArgs, input};
use crate::report;

pub fn run(args: &ShowArgs, terminal: &Terminal) -> Exit {
    let Some(program) = input::read(&args.file, &args.input, terminal) else { return Exit::BadInput };
    let text = match args.dot {
        true => report::dot::dot(&program),
        false => report::listing::listing(&program, terminal.color),
    };
    terminal.print(&text);
    Exit::Good
}

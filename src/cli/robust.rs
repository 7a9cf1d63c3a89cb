//! `overtake robust`: do SC and TSO have the same behaviours? With `--triangular`: is there a race that could
//! make them differ?

use super::interrupt::Interrupt;
use super::limits::peak_kb;
use super::terminal::Terminal;
use super::{Exit, RobustArgs, answer, input};
use crate::engine;
use crate::query::{Limit, Model, Question};
use crate::report;
use std::path::Path;

pub fn run(args: &RobustArgs, terminal: &Terminal) -> Exit {
    let interrupt = Interrupt::new();
    let files = args.search.files.iter();
    files.map(|file| robust(file, args, &interrupt, terminal)).max().unwrap_or(Exit::Good)
}

fn robust(file: &Path, args: &RobustArgs, interrupt: &Interrupt, terminal: &Terminal) -> Exit {
    let RobustArgs { search, triangular } = args;
    let limits = interrupt.watch(search.limits());
    let question = if *triangular { Question::Triangular } else { Question::Robust };
    let unknown = |limit: &Limit| answer::show_unread(question, file, Model::Tso, limit, search, terminal);
    let program = match input::read(file, &search.input, &limits, terminal, unknown) {
        Ok(program) => program,
        Err(exit) => return exit,
    };
    let (name, options) = (file.display().to_string(), search.options());
    let progress = (!search.json && !search.quiet).then(|| terminal.progress(&limits));
    let found = match triangular {
        false => engine::robust(&program, &options, &limits)
            .map(|found| report::robust::document(&program, &name, &found, peak_kb())),
        true => engine::triangular(&program, &options, &limits)
            .map(|found| report::triangular::document(&program, &name, &found, peak_kb())),
    };
    drop(progress);
    match found {
        Ok(document) => answer::show(document, search, terminal),
        Err(bug) => terminal.internal_error(file, &bug.to_string()),
    }
}

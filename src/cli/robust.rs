//! `overtake robust`: do SC and TSO have the same behaviours? With `--triangular`: is there a race that could
//! make them differ?

use super::interrupt::Interrupt;
use super::limits::peak_kb;
use super::terminal::Terminal;
use super::{Exit, RobustArgs, answer, certificate, input};
use crate::certify::certificate::About;
use crate::engine;
use crate::query::{Limit, Model, Question};
use crate::report;
use std::path::Path;

pub(crate) fn run(args: &RobustArgs, terminal: &Terminal) -> Exit {
    if let Some(refusal) = certificate::refusal(args.certificate.as_deref(), &args.search) {
        terminal.error(refusal);
        return Exit::BadInput;
    }
    let interrupt = Interrupt::new();
    let ask = |file: &Path| robust(file, args, &interrupt, terminal);
    answer::each_file(Question::Robust, &args.search, terminal, ask)
}

fn robust(file: &Path, args: &RobustArgs, interrupt: &Interrupt, terminal: &Terminal) -> Exit {
    let RobustArgs { search, triangular, certificate, all } = args;
    let limits = interrupt.watch(search.limits());
    let question = if *triangular { Question::Triangular } else { Question::Robust };
    let unknown = |limit: &Limit| answer::show_unread(question, file, Model::Tso, limit, search, terminal);
    let program = match input::read(file, &search.input, &limits, terminal, unknown) {
        Ok(program) => program,
        Err(exit) => return exit,
    };
    let (name, options) = (file.display().to_string(), search.options());
    if let Some(why) = answer::refused(question, &program, &options) {
        terminal.error(&format!("{name}: {why}"));
        return Exit::BadInput;
    }
    let progress = (!search.json && !search.quiet).then(|| terminal.progress(&limits));
    let shown = if *triangular {
        let found = engine::triangular(&program, &options, &limits);
        drop(progress);
        found.map(|found| {
            let document = report::triangular::document(&program, &name, &found, peak_kb());
            answer::show(&document, search, terminal)
        })
    } else {
        let found = match all {
            true => engine::robust_all(&program, &options, &limits),
            false => engine::robust(&program, &options, &limits),
        };
        found.map(|found| {
            let written = certificate.as_deref().map(|path| {
                let define = search.input.parameters().expect("the program was read with them");
                let about = About { program: &program, define: &define, property: None };
                let made = engine::certificate::of_robustness(&about, &found, &limits);
                certificate::write(made, path, &limits, terminal)
            });
            drop(progress);
            let document = report::robust::document(&program, &name, &found, peak_kb());
            certificate::show(document, written, search, terminal)
        })
    };
    shown.unwrap_or_else(|bug| terminal.internal_error(file, &bug.to_string()))
}

//! `overtake robust`: do SC and TSO have the same behaviours?

use super::interrupt::Interrupt;
use super::terminal::Terminal;
use super::{Exit, RobustArgs, SearchArgs, input, limits};
use crate::engine;
use crate::model::Program;
use crate::report;
use crate::verdict::{RobustAnswer, Robustness};
use std::path::Path;

pub fn run(args: &RobustArgs, terminal: &Terminal) -> Exit {
    let interrupt = Interrupt::new();
    let files = args.search.files.iter();
    files.map(|file| robust(file, &args.search, &interrupt, terminal)).max().unwrap_or(Exit::Good)
}

fn robust(file: &Path, args: &SearchArgs, interrupt: &Interrupt, terminal: &Terminal) -> Exit {
    let Some(program) = input::read(file, &args.input, terminal) else { return Exit::BadInput };
    let limits = interrupt.watch(args.limits());
    let result = {
        let _progress = (!args.json && !args.quiet).then(|| terminal.progress(&limits));
        engine::robust(&program, &args.options(), &limits)
    };
    match result {
        Ok(robustness) => {
            show(file, args, &program, &robustness, terminal);
            exit(&robustness)
        }
        Err(bug) => terminal.internal_error(file, &bug.to_string()),
    }
}

fn exit(robustness: &Robustness) -> Exit {
    match robustness.answer {
        RobustAnswer::Robust => Exit::Good,
        RobustAnswer::NotRobust(_) => Exit::Violated,
        RobustAnswer::Unknown(_) => Exit::Unknown,
    }
}

fn show(file: &Path, args: &SearchArgs, program: &Program, robustness: &Robustness, terminal: &Terminal) {
    let name = file.display().to_string();
    if args.json {
        let object = report::json::robustness(program, &name, robustness, limits::peak_kb());
        return terminal.print(&format!("{object}\n"));
    }
    let several = args.files.len() > 1;
    let mut text = report::robust::verdict(robustness, several.then_some(&name), terminal.color);
    if !args.quiet {
        text += &report::robust::explanation(program, robustness, terminal.style());
    }
    if args.verbose {
        text += &report::robust::costs(robustness, limits::peak_kb());
    }
    terminal.print(&text);
}

//! `overtake robust`: do SC and TSO have the same behaviours? With `--triangular`: is there a race that could make them
//! differ?

use super::interrupt::Interrupt;
use super::terminal::Terminal;
use super::{Exit, RobustArgs, SearchArgs, input, limits};
use crate::engine;
use crate::model::Program;
use crate::query::{RaceAnswer, RaceFreedom, RobustAnswer, Robustness};
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
    let Some(program) = input::read(file, &search.input, terminal) else { return Exit::BadInput };
    let result = {
        let _progress = (!search.json && !search.quiet).then(|| terminal.progress(&limits));
        match triangular {
            false => engine::robust(&program, &search.options(), &limits).map(Found::Robustness),
            true => engine::triangular(&program, &search.options(), &limits).map(Found::Races),
        }
    };
    match result {
        Ok(found) => {
            show(file, search, &program, &found, terminal);
            exit(&found)
        }
        Err(bug) => terminal.internal_error(file, &bug.to_string()),
    }
}

/// The answer to what was asked.
enum Found {
    Robustness(Robustness),
    Races(RaceFreedom),
}

fn exit(found: &Found) -> Exit {
    match found {
        Found::Robustness(robustness) => match robustness.answer {
            RobustAnswer::Robust => Exit::Good,
            RobustAnswer::NotRobust(_) => Exit::Violated,
            RobustAnswer::Unknown(_) => Exit::Unknown,
        },
        Found::Races(races) => match races.answer {
            RaceAnswer::RaceFree => Exit::Good,
            RaceAnswer::Racy(_) => Exit::Violated,
            RaceAnswer::Unknown(_) => Exit::Unknown,
        },
    }
}

fn show(file: &Path, args: &SearchArgs, program: &Program, found: &Found, terminal: &Terminal) {
    let name = file.display().to_string();
    let (peak, style) = (limits::peak_kb(), terminal.style());
    if args.json {
        let object = match found {
            Found::Robustness(found) => report::json::robustness(program, &name, found, peak),
            Found::Races(found) => report::json::races(program, &name, found, peak),
        };
        return terminal.print(&format!("{object}\n"));
    }
    let name = (args.files.len() > 1).then_some(&name[..]);
    let (mut text, explanation, costs) = match found {
        Found::Robustness(found) => (
            report::robust::verdict(found, name, terminal.color),
            report::robust::explanation(program, found, style),
            report::robust::costs(found, peak),
        ),
        Found::Races(found) => (
            report::triangular::verdict(found, name, terminal.color),
            report::triangular::explanation(program, found, style),
            report::triangular::costs(found, peak),
        ),
    };
    if !args.quiet {
        text += &explanation;
    }
    if args.verbose {
        text += &costs;
    }
    terminal.print(&text);
}

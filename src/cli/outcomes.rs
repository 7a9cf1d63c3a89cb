//! `overtake outcomes`: all final states of litmus tests, many files side by side, answers in the order of
//! the files.

use super::input::Failure;
use super::interrupt::Interrupt;
use super::side_by_side::side_by_side;
use super::terminal::Terminal;
use super::{Exit, OutcomesArgs, answer, input, limits};
use crate::engine::{self, Options};
use crate::report;
use std::path::{Path, PathBuf};

/// What the numbers in the output are.
pub const COUNTS: &str = "The numbers behind Positive, Negative and Observation count final states. herd counts \
                          executions there, and so has other numbers; states, verdicts and Never, Sometimes and Always \
                          mean the same.\n\nExit codes: 0 all states were found, whatever the condition says of them; 5 \
                          unknown (a limit was reached); 2 wrong usage or input.";

/// What one file came to.
struct Told {
    text: String,
    complaints: String,
    exit: Exit,
}

pub fn run(args: &OutcomesArgs, terminal: &Terminal) -> Exit {
    let (files, interrupt) = (&args.search.files, Interrupt::new());
    let options = match args.model.of_programs() {
        Ok(model) => Options { model, ..args.search.options() },
        Err(why) => {
            terminal.error(&why);
            return Exit::BadInput;
        }
    };
    if let [file] = &files[..] {
        let answer = outcomes(file, args, &options, &interrupt, terminal);
        return show(&answer, terminal);
    }
    let workers = options.workers;
    let options = Options { workers: 1, ..options };
    let work = |file: &PathBuf| outcomes(file, args, &options, &interrupt, terminal);
    let mut worst = Exit::Good;
    side_by_side(files, workers, work, |answer| worst = worst.max(show(&answer, terminal)));
    worst
}

fn show(answer: &Told, terminal: &Terminal) -> Exit {
    terminal.complain(&answer.complaints);
    terminal.print(&answer.text);
    answer.exit
}

/// What is said of a file that gave no test.
fn unread(file: &Path, args: &OutcomesArgs, options: &Options, failure: Failure) -> Told {
    let wrong = |complaints: String| {
        let text = match args.search.json {
            true => format!("{}\n", answer::error_object("outcomes", file, &complaints)),
            false => String::new(),
        };
        Told { text, complaints, exit: Exit::BadInput }
    };
    let limit = match failure {
        Failure::Said(message) => return wrong(format!("error: {message}\n")),
        Failure::Shown(places) => return wrong(places),
        Failure::Limit(limit) => limit,
    };
    let (name, test) = (file.display().to_string(), input::stem(file));
    let text = match (args.search.json, args.search.quiet) {
        (true, _) => {
            let peak = limits::peak_kb();
            format!("{}\n", report::outcomes::unread_object(&test, &name, options.model, &limit, peak))
        }
        (_, true) => report::outcomes::summary_of_unknown(&test, &limit),
        _ => report::outcomes::unread(&test, &limit),
    };
    Told { text, complaints: String::new(), exit: Exit::Unknown }
}

fn outcomes(
    file: &Path,
    args: &OutcomesArgs,
    options: &Options,
    interrupt: &Interrupt,
    terminal: &Terminal,
) -> Told {
    let search = &args.search;
    let limits = interrupt.watch(search.limits());
    let test = match input::read_test(file, &search.input, &limits, terminal.color_errors) {
        Ok(test) => test,
        Err(failure) => return unread(file, args, options, failure),
    };
    let atoms: Vec<_> = test.litmus.observed.iter().map(|o| o.atom.clone()).collect();
    let found = {
        let alone = search.files.len() == 1 && !search.json && !search.quiet;
        let _progress = alone.then(|| terminal.progress(&limits));
        engine::outcomes(&test.program, &atoms, options, &limits)
    };
    let name = file.display().to_string();
    let mut complaints = test.warnings;
    if found.goes_wrong {
        let what =
            "some runs access memory outside all locations, or go wrong otherwise, and have no final state";
        complaints += &format!("warning: {name}: {what}; `overtake check` shows one\n");
    }
    let text = match (search.json, search.quiet) {
        (true, _) => {
            let object =
                report::outcomes::object(&test.program, &test.litmus, &name, &found, limits::peak_kb());
            format!("{object}\n")
        }
        (_, true) => report::outcomes::summary(&test.program, &test.litmus, &found),
        _ => report::outcomes::block(&test.program, &test.litmus, &found),
    };
    let exit = if found.states.is_ok() { Exit::Good } else { Exit::Unknown };
    Told { text, complaints, exit }
}

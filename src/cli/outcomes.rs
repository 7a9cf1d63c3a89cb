//! `overtake outcomes`: all final states of litmus tests, many files side by side, answers in the order of
//! the files.

use super::input::{Failure, Test};
use super::interrupt::Interrupt;
use super::side_by_side::side_by_side;
use super::terminal::Terminal;
use super::{Exit, OutcomesArgs, input, limits, written};
use crate::certify::Outcome;
use crate::engine::{self, Options};
use crate::model::{Atom, BinOp, Expr};
use crate::query::{Answer, Clause, Goal, Limits, Model, Outcomes, Stats, Verdict, When};
use crate::report;
use crate::report::document::Block;
use crate::report::outcomes::StateRuns;
use crate::report::page::ProgramText;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// What the numbers in the output are.
pub(crate) const COUNTS: &str = "The numbers behind Positive, Negative and Observation count final states. herd counts \
                          executions there, and so has other numbers; states, verdicts and Never, Sometimes and Always \
                          mean the same.\n\nExit codes: 0 all states were found, whatever the condition says of them; 5 \
                          unknown (a limit was reached); 2 wrong usage or input.";

/// The name of the engine that is asked about axioms.
const SAT: &str = "sat";

/// What one file came to.
struct Told {
    text: String,
    complaints: String,
    exit: Exit,
    /// What goes into files beside the output, if any are written.
    part: Option<OutcomePart>,
}

struct OutcomePart {
    object: Value,
    verdict: Verdict,
    blocks: Vec<Block>,
    text: Option<ProgramText>,
    printed: String,
}

/// States for which runs are looked for.
const MOST_RUNS: usize = 64;

pub(crate) fn run(args: &OutcomesArgs, terminal: &Terminal) -> Exit {
    let (files, interrupt) = (&args.search.files, Interrupt::new());
    let by_axioms = args.engine == SAT;
    let asked = match by_axioms {
        // What is said of the model comes from its axioms.
        true => args.model.axioms().map(|_| args.model.of_programs().unwrap_or(Model::Tso)),
        false => args.model.of_programs(),
    };
    let options = match asked {
        Ok(model) => Options { model, ..args.search.options() },
        Err(why) => {
            terminal.error(&why);
            return Exit::BadInput;
        }
    };
    if let [file] = &files[..] {
        let answer = outcomes(file, args, &options, &interrupt, terminal);
        let exit = show(answer, args, terminal);
        return exit.max(terminal.parts().write(&args.search.output, terminal));
    }
    let workers = options.workers;
    let options = Options { workers: 1, ..options };
    let work = |file: &PathBuf| outcomes(file, args, &options, &interrupt, terminal);
    let mut worst = Exit::Good;
    side_by_side(files, workers, work, |answer| worst = worst.max(show(answer, args, terminal)));
    worst.max(terminal.parts().write(&args.search.output, terminal))
}

fn show(answer: Told, args: &OutcomesArgs, terminal: &Terminal) -> Exit {
    terminal.complain(&answer.complaints);
    terminal.print(&answer.text);
    if let Some(OutcomePart { object, verdict, blocks, text, printed }) = answer.part {
        let mut parts = terminal.parts();
        parts.text = text;
        let question = "Which final states are there?";
        let told = written::ToldAnswer {
            object: &object,
            verdict,
            question,
            blocks: &blocks,
            costs: &[],
            output: printed,
        };
        parts.add_told(told, &args.search.output);
    }
    answer.exit
}

/// What is said of a file that gave no test.
fn unread(file: &Path, args: &OutcomesArgs, options: &Options, failure: Failure) -> Told {
    let wrong = |complaints: String| {
        let text = match args.search.json {
            true => format!("{}\n", written::error_object("outcomes", file, &complaints)),
            false => String::new(),
        };
        let object = written::error_object("outcomes", file, &complaints);
        let part = part(args, object, Verdict::Unknown, vec![], &complaints);
        Told { text, complaints, exit: Exit::BadInput, part }
    };
    let limit = match failure {
        Failure::Said(message) => return wrong(format!("error: {message}\n")),
        Failure::Shown(places) => return wrong(places),
        Failure::Limit(limit) => limit,
    };
    let (name, test) = (file.display().to_string(), input::stem(file));
    let object = report::outcomes::unread_object(&test, &name, options.model, &limit, limits::peak_kb());
    let text = match (args.search.json, args.search.quiet) {
        (true, _) => format!("{object}\n"),
        (_, true) => report::outcomes::summary_of_unknown(&test, &limit),
        _ => report::outcomes::unread(&test, &limit),
    };
    let part = part(args, object, Verdict::Unknown, vec![Block::line(report::limit_reached(&limit))], &text);
    Told { text, complaints: String::new(), exit: Exit::Unknown, part }
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
        match args.engine == SAT {
            true => by_axioms(file, args, &test, options, &limits),
            false => Ok(engine::outcomes(&test.program, &atoms, options, &limits)),
        }
    };
    let found = match found {
        Ok(found) => found,
        Err(why) => return unread(file, args, options, Failure::Said(why)),
    };
    let name = file.display().to_string();
    let mut complaints = test.warnings.clone();
    if found.goes_wrong {
        let what =
            "some runs access memory outside all locations, or go wrong otherwise, and have no final state";
        complaints += &format!("warning: {name}: {what}; `overtake check` shows one\n");
    }
    let text = match (search.json, search.quiet) {
        (true, _) => {
            let mut object =
                report::outcomes::object(&test.program, &test.litmus, &name, &found, limits::peak_kb());
            if let (SAT, Ok(model)) = (&args.engine[..], args.model.axioms()) {
                object["model"] = model.name().into();
                object["engine"] = SAT.into();
            }
            format!("{object}\n")
        }
        (_, true) => report::outcomes::summary(&test.program, &test.litmus, &found),
        _ => report::outcomes::block(&test.program, &test.litmus, &found),
    };
    let (exit, verdict) = match found.states {
        Ok(_) => (Exit::Good, Verdict::Holds),
        Err(_) => (Exit::Unknown, Verdict::Unknown),
    };
    let part = search.output.wants_any().then(|| {
        let runs = runs(&test, &atoms, &found, options, &limits);
        let blocks = report::outcomes::blocks(&test.program, &test.litmus, &found, &runs);
        let object = report::outcomes::object(&test.program, &test.litmus, &name, &found, limits::peak_kb());
        OutcomePart {
            text: test.text.clone(),
            ..part(args, object, verdict, blocks, &text).expect("files are written")
        }
    });
    Told { text, complaints, exit, part }
}

fn part(
    args: &OutcomesArgs,
    object: Value,
    verdict: Verdict,
    blocks: Vec<Block>,
    printed: &str,
) -> Option<OutcomePart> {
    let printed = printed.to_string();
    args.search.output.wants_any().then_some(OutcomePart { object, verdict, blocks, text: None, printed })
}

/// A run to each final state, for the first of them.
fn runs(test: &Test, atoms: &[Atom], found: &Outcomes, options: &Options, limits: &Limits) -> StateRuns {
    let mut runs = StateRuns::new();
    for values in found.states.iter().flatten().take(MOST_RUNS) {
        let equals = |(atom, value): (&Atom, &i64)| {
            Expr::binary(BinOp::Eq, Expr::Atom(atom.clone()), Expr::Const(*value))
        };
        let all = atoms.iter().zip(values).map(equals).reduce(|a, b| Expr::binary(BinOp::And, a, b));
        let clause = Clause { when: When::Final, pred: all.unwrap_or(Expr::Const(1)), property: 0 };
        let goal = Goal { clauses: vec![clause], ignores_errors: true };
        // Without a run the state is listed all the same.
        if let Ok(Outcome { answer: Answer::Fails(trace), .. }) =
            engine::check(&test.program, &goal, options, limits)
        {
            runs.insert(values.clone(), trace);
        }
    }
    runs
}

/// The final states that the axioms of the model allow.
fn by_axioms(
    file: &Path,
    args: &OutcomesArgs,
    test: &Test,
    options: &Options,
    limits: &Limits,
) -> Result<Outcomes, String> {
    let model = args.model.axioms()?;
    input::says_fences(file, &args.search.input, model)?;
    let atoms: Vec<_> = test.litmus.observed.iter().map(|o| o.atom.clone()).collect();
    let start = std::time::Instant::now();
    let found =
        engine::axiomatic_outcomes(&test.program, &atoms, model, limits).map_err(|bug| bug.to_string())?;
    let stats = Stats { workers: 1, time: start.elapsed(), ..Stats::default() };
    Ok(match found.states {
        Err(limit) => Outcomes::unsearched(options.model, limit, stats),
        Ok(states) => Outcomes {
            states: Ok(states.into_iter().collect()),
            frozen: Default::default(),
            goes_wrong: false,
            model: options.model,
            stats,
        },
    })
}

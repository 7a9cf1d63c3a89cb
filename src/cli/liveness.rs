//! `overtake check --ltl` of a program: does a formula hold on all its fair runs? Predicates stand in braces,
//! in the native language, which reads them as a property of the program.

use super::input::Source;
use super::terminal::Terminal;
use super::{CheckArgs, Exit, answer, diagnose, input, limits};
use crate::certify::{LivenessOutcome, Refuted};
use crate::front::Unread;
use crate::front::formats::Reading;
use crate::front::ltl::{self, Grouping, NamedFormula};
use crate::model::formula::{MOST_PROPOSITIONS, StatedFormula};
use crate::model::{Atom, BinOp, Expr, Pred, Program};
use crate::query::{Limits, Model, Verdict};
use crate::report;
use crate::report::liveness::LivenessAsked;
use crate::temporal::program::{LivenessOptions, ProgramFormula, formula};
use std::path::Path;
use std::sync::Arc;

/// Most entries of a buffer, unless the user says otherwise.
const BUFFER: usize = 8;
/// The proposition that all threads have ended.
const TERMINATED: &str = "terminated";

pub(crate) fn run(
    file: &Path,
    source: &Source,
    text: &str,
    args: &CheckArgs,
    limits: &Arc<Limits>,
    terminal: &Terminal,
) -> Exit {
    let model = match args.model.unwrap_or_default().of_programs() {
        Ok(model) => model,
        Err(why) => return refused(file, &why, terminal),
    };
    if let Some(why) = refusal(&source.program, model) {
        return refused(file, &why, terminal);
    }
    let named = match ltl::formula(text, Grouping::Precedence, limits) {
        Ok(named) => named,
        Err(unread) => return complain("--ltl", text, &unread, terminal),
    };
    if named.names.len() > MOST_PROPOSITIONS {
        let why = format!("a formula has at most {MOST_PROPOSITIONS} propositions");
        return refused(file, &why, terminal);
    }
    let asked = match resolved(file, source, &named, args, limits, terminal) {
        Ok(asked) => asked,
        Err(exit) => return exit,
    };
    let options = options(model, args);
    let outcome = {
        let _progress = (!args.search.json && !args.search.quiet).then(|| terminal.progress(limits));
        formula(&source.program, &asked, options, limits)
    };
    match outcome {
        Ok(outcome) => {
            let name = file.display().to_string();
            let asked = LivenessAsked { program: &source.program, file: &name, model, formula: named.show() };
            let document = report::liveness::document(&asked, &outcome, limits::peak_kb());
            answer::show(&document, &args.search, terminal)
        }
        Err(bug) => terminal.internal_error(file, &bug.to_string()),
    }
}

fn options(model: Model, args: &CheckArgs) -> LivenessOptions {
    let fair = !args.dve.no_fairness();
    LivenessOptions { buffer: args.buffer.unwrap_or(usual(model).buffer), fair, ..usual(model) }
}

fn usual(model: Model) -> LivenessOptions {
    LivenessOptions { model, buffer: if model == Model::Sc { 0 } else { BUFFER }, fair: true }
}

/// The worst that comes of the formulas that the file states.
pub(super) fn worst(source: &Source, model: Model, limits: &Limits) -> Result<Verdict, Refuted> {
    let each = source.formulas.iter().map(|stated| {
        let outcome = formula(&source.program, &ProgramFormula::of(stated), usual(model), limits)?;
        Ok(outcome.answer.verdict())
    });
    each.collect::<Result<Vec<_>, Refuted>>().map(|all| all.into_iter().max().unwrap_or(Verdict::Holds))
}

/// Does what the file states hold?
pub(super) fn stated(
    program: &Program,
    asked: &StatedFormula,
    model: Model,
    args: &CheckArgs,
    limits: &Limits,
) -> Result<LivenessOutcome, Refuted> {
    formula(program, &ProgramFormula::of(asked), options(model, args), limits)
}

/// Why formulas cannot be asked of the program: a thread that waits for all buffers may wait for ever in a fair run,
/// where they should be drained in one step.
pub(super) fn refusal(program: &Program, model: Model) -> Option<String> {
    let (_, edge) = program.membarrier().filter(|_| model == Model::Tso)?;
    let line = program.place(edge.line);
    Some(format!("formulas are not asked of programs with a `membarrier` (line {line})"))
}

fn refused(file: &Path, why: &str, terminal: &Terminal) -> Exit {
    terminal.error(&format!("{}: {why}", file.display()));
    Exit::BadInput
}

fn complain(name: &str, text: &str, unread: &Unread, terminal: &Terminal) -> Exit {
    match unread {
        Unread::Wrong(wrong) => {
            terminal.complain(&diagnose::render(name, text, wrong, terminal.color_errors));
            Exit::BadInput
        }
        Unread::Limit(limit) => terminal.limit_reached(Path::new(name), limit),
    }
}

/// The predicate of each name, as the program's own language reads it.
fn resolved(
    file: &Path,
    source: &Source,
    named: &NamedFormula,
    args: &CheckArgs,
    limits: &Limits,
    terminal: &Terminal,
) -> Result<ProgramFormula, Exit> {
    let format = input::format(file, &args.search.input).map_err(|why| refused(file, &why, terminal))?;
    if format.name != "tso" {
        return Err(refused(file, "formulas are asked of programs in the native language", terminal));
    }
    let define = args.search.input.parameters().map_err(|why| refused(file, &why, terminal))?;
    let mut propositions = Vec::new();
    for name in &named.names {
        if name == TERMINATED {
            propositions.push(terminated(&source.program));
            continue;
        }
        let with = format!("{}\nforbid {name}\n", source.text);
        let read = format.parse(with.as_bytes(), &Reading::of_text(&define, limits));
        let (input, _) =
            read.map_err(|unread| complain(&format!("--ltl {{{name}}}"), &with, &unread, terminal))?;
        match input.program.properties().last() {
            Some(property) => propositions.push(property.pred.clone()),
            None => return Err(refused(file, &format!("`{name}` is no predicate"), terminal)),
        }
    }
    Ok(ProgramFormula { formula: named.formula.clone(), propositions })
}

fn terminated(program: &Program) -> Pred {
    let ended = |t| Expr::Atom(Atom::At(t, vec![program.thread(t).end()]));
    let all = program.thread_ids().map(ended);
    all.reduce(|a, b| Expr::binary(BinOp::And, a, b)).unwrap_or(Expr::Const(1))
}

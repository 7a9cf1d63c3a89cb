//! `overtake check` of a DVE model: assertions, errors and the property process, or what was asked for
//! instead.

use super::super::input::DveSource;
use super::super::terminal::Terminal;
use super::super::{CheckArgs, Exit, answer, limits};
use super::typed::TypedFormula;
use super::{Typed, memory, refused};
use crate::certify::{DveOutcome, Refuted};
use crate::engine::Options;
use crate::machine::dve::DveGoals;
use crate::query::Limits;
use crate::report;
use crate::report::dve::{DveAnswer, DveAsked};
use crate::temporal::{TemporalOptions, ltl, safety};
use std::path::Path;
use std::sync::Arc;

/// One question, and what holds if nothing is found.
enum DveQuestion {
    States(DveGoals),
    Property,
    Formula(Box<TypedFormula>),
}

pub(crate) fn run(
    file: &Path,
    model: &DveSource,
    args: &CheckArgs,
    limits: &Arc<Limits>,
    terminal: &Terminal,
) -> Exit {
    let (memory, memory_name) = match memory(&model.system, args.model, &args.dve.given) {
        Ok(memory) => memory,
        Err(why) => return refused(file, &why, terminal),
    };
    let questions = match questions(model, args, limits, terminal) {
        Ok(questions) => questions,
        Err(exit) => return exit,
    };
    let fair = !memory.is_sc() && !args.dve.no_fairness;
    let por = args.search.without.reductions.por;
    let options = TemporalOptions { memory, workers: workers(args), fair, por };
    let answers = {
        let shown = !args.search.json && !args.search.quiet;
        let _progress = shown.then(|| terminal.progress(limits));
        let answers = questions.iter().map(|asked| ask(model, asked, &options, limits));
        answers.collect::<Result<Vec<DveOutcome>, Refuted>>()
    };
    let answers = match answers {
        Ok(answers) => answers,
        Err(bug) => return terminal.internal_error(file, &bug.to_string()),
    };
    let name = file.display().to_string();
    let asked = |q: &DveQuestion| DveAsked {
        system: &model.system,
        file: &name,
        model: memory_name,
        memory: &options.memory,
        what: words(q, model),
    };
    let all: Vec<DveAnswer> = questions.iter().map(asked).zip(answers).collect();
    answer::show(&report::dve::document(&all, limits::peak_kb()), &args.search, terminal)
}

/// What the options ask for; without them, all that the model itself says.
fn questions(
    model: &DveSource,
    args: &CheckArgs,
    limits: &Limits,
    terminal: &Terminal,
) -> Result<Vec<DveQuestion>, Exit> {
    let mut typed = Typed::new(model, &args.search.input, limits, terminal)?;
    let forbidden = args.search.input.code.forbid.iter().map(|text| typed.expression("--forbid", text));
    let forbidden = forbidden.collect::<Result<Vec<_>, Exit>>()?;
    let mut questions = Vec::new();
    if !forbidden.is_empty() || args.dve.deadlock {
        let goals = DveGoals { errors: false, forbidden, deadlocks: args.dve.deadlock };
        questions.push(DveQuestion::States(goals));
    }
    if let Some(text) = &args.dve.formula.ltl {
        let formulas = typed.formulas(text)?;
        questions.extend(formulas.into_iter().map(|formula| DveQuestion::Formula(Box::new(formula))));
    }
    if questions.is_empty() {
        questions.push(DveQuestion::States(DveGoals { errors: true, ..DveGoals::default() }));
        questions.extend(model.system.property().map(|_| DveQuestion::Property));
    }
    Ok(questions)
}

fn ask(
    model: &DveSource,
    asked: &DveQuestion,
    options: &TemporalOptions,
    limits: &Limits,
) -> Result<DveOutcome, Refuted> {
    match asked {
        DveQuestion::States(goals) => safety::reach(&model.system, goals, options, limits),
        DveQuestion::Property => ltl::property(&model.system, options, limits),
        DveQuestion::Formula(typed) => ltl::formula(&model.system, &typed.formula, options, limits),
    }
}

fn workers(args: &CheckArgs) -> usize {
    args.search.threads.map_or_else(Options::default, Options::with_workers).workers
}

fn words(asked: &DveQuestion, model: &DveSource) -> String {
    match asked {
        DveQuestion::Property => "what the property process watches for does not happen".to_string(),
        DveQuestion::Formula(typed) => typed.text.clone(),
        DveQuestion::States(goals) if goals.errors => "no assertion fails and nothing goes wrong".to_string(),
        DveQuestion::States(goals) => {
            let shown = |e| format!("never {}", model.system.show_expr(e));
            let mut all: Vec<String> = goals.forbidden.iter().map(shown).collect();
            all.extend(goals.deadlocks.then(|| "no deadlock".to_string()));
            all.join(", ")
        }
    }
}

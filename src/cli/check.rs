//! `overtake check`: is a forbidden state reachable?

use super::input::{self, Loaded, Source};
use super::interrupt::Interrupt;
use super::terminal::Terminal;
use super::{CheckArgs, Exit, ExtensionArg, OrderArg, answer, certificate, dve, limits, liveness};
use crate::analysis::interval;
use crate::certify::Refuted;
use crate::certify::certificate::About;
use crate::engine::{self, Choice, ExplicitOptions, Form, LazyOptions, Options, PropertyOutcomes};
use crate::model::Program;
use crate::model::formula::StatedFormula;
use crate::query::{Asked, AskedTexts, Goal, Limit, Limits, Model, Question};
use crate::reach::Order;
use crate::report;
use crate::report::liveness::{LivenessAsked, StatedAnswer};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use std::path::Path;
use std::sync::Arc;

/// The name of the engine that is asked about axioms.
const SAT: &str = "sat";

/// Who is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EngineArg {
    Search(Choice),
    /// A SAT solver, about what the axioms of the model allow.
    Axioms,
}

pub(crate) fn run(args: &CheckArgs, terminal: &Terminal) -> Exit {
    run_until(args, &Interrupt::new(), terminal)
}

/// The same, where Ctrl-C ends more than this.
pub(crate) fn run_until(args: &CheckArgs, interrupt: &Interrupt, terminal: &Terminal) -> Exit {
    if let EngineArg::Axioms = args.engine {
        return by_axioms(args, terminal);
    }
    let options = match options(args) {
        Ok(options) => options,
        Err(message) => {
            terminal.error(&message);
            return Exit::BadInput;
        }
    };
    if let Some(refusal) = certificate::refusal(args.certificate.as_deref(), &args.search) {
        terminal.error(refusal);
        return Exit::BadInput;
    }
    let ask = |file: &Path| check(file, args, &options, interrupt, terminal);
    answer::each_file(Question::Check, &args.search, terminal, ask)
}

fn options(args: &CheckArgs) -> Result<Options, String> {
    // What programs do not have is refused once one is read.
    let model = args.model.unwrap_or_default().of_programs().unwrap_or(Model::Sc);
    if model == Model::Sc && args.buffer.is_some() {
        return Err("--buffer bounds store buffers, and --model sc has none".to_string());
    }
    let form = match args.extension {
        ExtensionArg::Exact => Form::Exact,
        ExtensionArg::Additive => Form::Additive,
    };
    let options = Options {
        model,
        engine: match args.engine {
            EngineArg::Search(choice) => choice,
            EngineArg::Axioms => Choice::Auto,
        },
        lazy: LazyOptions { form, iterations: args.iterations },
        explicit: ExplicitOptions { buffer: args.buffer },
        order: match args.order {
            OrderArg::Bfs => Order::BreadthFirst,
            OrderArg::Dfs => Order::DepthFirst,
        },
        side_by_side: args.side_by_side,
        ..args.search.options()
    };
    options.refusal().map_or(Ok(options), |refusal| Err(refusal.to_string()))
}

/// Why a program cannot be asked what the arguments ask.
fn refusal(args: &CheckArgs) -> Option<String> {
    let given = args.dve.given().map(|option| format!("{option} is for DVE models"));
    given.or_else(|| args.model.unwrap_or_default().of_programs().err())
}

/// Reads the name of an engine.
pub(crate) fn engine() -> impl TypedValueParser<Value = EngineArg> {
    let value = |choice: Choice| PossibleValue::new(choice.name()).help(choice.about());
    let named = |name: String| Choice::all().find(|choice| choice.name() == name);
    let sat = PossibleValue::new(SAT).help("Ask a SAT solver about what the axioms of the model allow");
    PossibleValuesParser::new(Choice::all().map(value).chain([sat])).map(move |name| match &name[..] {
        SAT => EngineArg::Axioms,
        _ => EngineArg::Search(named(name).expect("no other name is let through")),
    })
}

/// `--engine sat`
fn by_axioms(args: &CheckArgs, terminal: &Terminal) -> Exit {
    let asked = match args.model.unwrap_or_default().axioms() {
        Ok(_) if args.certificate.is_some() || args.property.is_some() || args.buffer.is_some() => {
            Err("--engine sat has no --certificate, no --property and no --buffer".to_string())
        }
        Ok(model) => args.dve.given().map_or(Ok(model), |option| Err(format!("{option} is for DVE models"))),
        Err(why) => Err(why),
    };
    let model = match asked {
        Ok(model) => model,
        Err(why) => {
            terminal.error(&why);
            return Exit::BadInput;
        }
    };
    let interrupt = Interrupt::new();
    answer::each_file(Question::Check, &args.search, terminal, |path| {
        let limits = interrupt.watch(args.search.limits());
        let start = std::time::Instant::now();
        let unknown = |limit: &Limit| terminal.limit_reached(path, limit);
        let program = match input::read(path, &args.search.input, &limits, terminal, unknown) {
            Ok(program) => program,
            Err(exit) => return exit,
        };
        if let Err(why) = input::says_fences(path, &args.search.input, model) {
            terminal.error(&why);
            return Exit::BadInput;
        }
        let goal = Goal::of(&program);
        let outcome = match engine::axiomatic_check(&program, &goal, model, &limits) {
            Ok(outcome) => outcome,
            Err(bug) => return terminal.internal_error(path, &bug.to_string()),
        };
        let file = path.display().to_string();
        let asked =
            report::axioms::AskedByAxioms { program: &program, file: &file, model, time: start.elapsed() };
        answer::show(&report::axioms::document(asked, &outcome, limits::peak_kb()), &args.search, terminal)
    })
}

/// A property of either kind.
#[derive(Clone, Copy)]
enum AnyProperty<'a> {
    States(Asked),
    Formula(&'a StatedFormula),
}

impl<'a> AnyProperty<'a> {
    /// All that the file states, in its order.
    fn of(source: &'a Source) -> Vec<AnyProperty<'a>> {
        let states = Asked::of(&source.program).into_iter().map(AnyProperty::States);
        let mut all: Vec<AnyProperty> =
            states.chain(source.formulas.iter().map(AnyProperty::Formula)).collect();
        all.sort_by_key(|property| property.line(&source.program));
        all
    }

    fn line(self, program: &Program) -> u32 {
        match self {
            AnyProperty::States(asked) => asked.line(program),
            AnyProperty::Formula(formula) => formula.line,
        }
    }

    fn name(self, program: &'a Program) -> Option<&'a str> {
        match self {
            AnyProperty::States(asked) => asked.name(program),
            AnyProperty::Formula(formula) => formula.name.as_deref(),
        }
    }
}

/// The property of this number or name, and its place among all.
fn pick<'a>(
    program: &'a Program,
    all: &[AnyProperty<'a>],
    wanted: &str,
) -> Result<(usize, AnyProperty<'a>), String> {
    let is_it = |property: &AnyProperty| match property {
        AnyProperty::States(Asked::NoHang) => AskedTexts::of(program).text(Asked::NoHang) == wanted,
        _ => property.name(program) == Some(wanted),
    };
    let named = all.iter().position(is_it);
    let numbered = || wanted.parse::<usize>().ok()?.checked_sub(1).filter(|&k| k < all.len());
    let names: Vec<&str> = all.iter().filter_map(|property| property.name(program)).collect();
    named.or_else(numbered).map(|k| (k, all[k])).ok_or_else(|| {
        let names =
            if names.is_empty() { String::new() } else { format!("; named are {}", names.join(", ")) };
        format!("there is no property `{wanted}`: the file has {}{names}", all.len())
    })
}

fn check(
    file: &Path,
    args: &CheckArgs,
    options: &Options,
    interrupt: &Interrupt,
    terminal: &Terminal,
) -> Exit {
    let search = &args.search;
    let limits = interrupt.watch(search.limits());
    let unknown =
        |limit: &Limit| answer::show_unread(Question::Check, file, options.model, limit, search, terminal);
    let source = match input::read_loaded(file, &search.input, &limits, terminal, unknown) {
        Ok(Loaded::Program(source)) => source,
        Ok(Loaded::Model(model)) => return dve::check::run(file, &model, args, &limits, terminal),
        Err(exit) => return exit,
    };
    if let Some(why) = refusal(args) {
        terminal.error(&format!("{}: {why}", file.display()));
        return Exit::BadInput;
    }
    if let Some(text) = args.dve.ltl() {
        return liveness::run(file, &source, text, args, &limits, terminal);
    }
    if args.hang {
        return hang(&source.program, file, args, options, &limits, terminal);
    }
    let stated = match Stated::picked(&source, args.property.as_deref(), args.certificate.is_some()) {
        Ok(stated) => stated,
        Err(why) => {
            terminal.error(&format!("{}: {why}", file.display()));
            return Exit::BadInput;
        }
    };
    let program = &source.program;
    if stated.is_empty() {
        let none =
            "the program has no property (forbid, exists, never, forall, final states, ltl) and no assert";
        match interval::may_go_wrong(program, &limits) {
            Ok(false) if program.code(1).is_some() => terminal.warning(&format!(
                "{}: no failing call can be reached in this code: the compiler may have removed the assertions",
                file.display()
            )),
            Ok(false) => {
                terminal.error(&format!("{}: there is nothing to check: {none}", file.display()));
                return Exit::BadInput;
            }
            Ok(true) => terminal.warning(&format!(
                "{}: {none}; only divisions by zero and accesses outside memory are looked for",
                file.display()
            )),
            // The engine will find the same limit.
            Err(_) => {}
        }
    }
    if let Some(why) = answer::refused(Question::Check, program, options) {
        terminal.error(&format!("{}: {why}", file.display()));
        return Exit::BadInput;
    }
    if !stated.formulas.is_empty()
        && let Some(why) = liveness::refusal(program, options.model)
    {
        terminal.error(&format!("{}: {why}", file.display()));
        return Exit::BadInput;
    }
    let progress = (!search.json && !search.quiet).then(|| terminal.progress(&limits));
    // Formulas alone say nothing of states, unless something can go wrong in them.
    let formulas_alone = stated.asked.is_empty() && !stated.formulas.is_empty();
    let states_asked =
        !formulas_alone || stated.errors && interval::may_go_wrong(program, &limits) != Ok(false);
    let states =
        states_asked.then(|| engine::check_each(program, &stated.asked, stated.errors, options, &limits));
    let states = match states.transpose() {
        Ok(states) => states,
        Err(bug) => return terminal.internal_error(file, &bug.to_string()),
    };
    let name = file.display().to_string();
    let answers = stated.formulas.iter().map(|&(number, formula)| {
        let outcome = liveness::stated(program, formula, options.model, args, &limits)?;
        let asked = LivenessAsked { program, file: &name, model: options.model, formula: formula.body() };
        Ok(StatedAnswer { number, stated: formula, asked, outcome })
    });
    let answers = match answers.collect::<Result<Vec<_>, Refuted>>() {
        Ok(answers) => answers,
        Err(bug) => return terminal.internal_error(file, &bug.to_string()),
    };
    let written = args.certificate.as_deref().zip(states.as_ref()).map(|(path, states)| {
        let define = search.input.parameters().expect("the program was read with them");
        let number = |one: &Asked| Asked::of(program).iter().position(|asked| asked == one).map(|k| k + 1);
        let property = args.property.as_ref().and_then(|_| number(&stated.asked[0]));
        let about = About { program, define: &define, property };
        let made = match stated.asked.contains(&Asked::NoHang) {
            true => Err(engine::certificate::Uncertified::NoHang),
            false => engine::certificate::of_outcome(&about, &states.worst, &limits),
        };
        certificate::write(made, path, &limits, terminal)
    });
    drop(progress);
    let lines: Vec<u32> = source.formulas.iter().map(|f| f.line).collect();
    let hanging = states.as_ref().and_then(|states| states.hanging.as_ref());
    let retrying = hanging.map(|hanging| hanging.asked_of(program));
    let document = states.as_ref().map(|PropertyOutcomes { each, worst, .. }| {
        let answers = report::check::Answers {
            program: retrying.as_ref().unwrap_or(program),
            worst,
            each,
            formulas: &lines,
            waiting: hanging.map_or(&[], |hanging| &hanging.waiting),
        };
        report::check::document(answers, &name, limits::peak_kb())
    });
    let document = report::liveness::together(document, &answers, limits::peak_kb());
    certificate::show(document.expect("something was asked"), written, search, terminal)
}

/// What the file states, or the one property of it that is asked about.
struct Stated<'a> {
    asked: Vec<Asked>,
    /// Is it also asked whether something goes wrong?
    errors: bool,
    /// With their numbers.
    formulas: Vec<(usize, &'a StatedFormula)>,
}

impl<'a> Stated<'a> {
    fn is_empty(&self) -> bool {
        self.asked.is_empty() && self.formulas.is_empty()
    }

    fn picked(source: &'a Source, wanted: Option<&str>, certificate: bool) -> Result<Stated<'a>, String> {
        let all = AnyProperty::of(source);
        let all = match wanted {
            Some(wanted) => vec![pick(&source.program, &all, wanted)?],
            None => all.into_iter().enumerate().collect(),
        };
        let mut stated = Stated { asked: vec![], errors: wanted.is_none(), formulas: vec![] };
        for (k, property) in all {
            match property {
                AnyProperty::States(asked) => stated.asked.push(asked),
                AnyProperty::Formula(formula) => stated.formulas.push((k + 1, formula)),
            }
        }
        if certificate && !stated.formulas.is_empty() {
            return Err(
                "there are no certificates of formulas: --property picks another property".to_string()
            );
        }
        Ok(stated)
    }
}

/// Does the program hang?
fn hang(
    program: &Program,
    file: &Path,
    args: &CheckArgs,
    options: &Options,
    limits: &Arc<Limits>,
    terminal: &Terminal,
) -> Exit {
    let search = &args.search;
    let progress = (!search.json && !search.quiet).then(|| terminal.progress(limits));
    let found = engine::hang(program, options.model, limits);
    drop(progress);
    match found {
        Ok(found) => {
            let name = file.display().to_string();
            let document = report::hang::document(
                &found.program,
                &name,
                &found.outcome,
                &found.waiting,
                limits::peak_kb(),
            );
            answer::show(&document, search, terminal)
        }
        Err(bug) => terminal.internal_error(file, &bug.to_string()),
    }
}

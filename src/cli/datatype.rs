//! `overtake datatype`: tests of a concurrent data type against its serial runs, and the fences that it needs.

use super::input;
use super::interrupt::Interrupt;
use super::limits::peak_kb;
use super::terminal::Terminal;
use super::written::{self, OutputArgs, ToldAnswer};
use super::{Exit, InputArgs, LimitArgs};
use crate::datatype::{self, DataOptions, DataOutcome, Spec, check, fence_sets};
use crate::front::tso;
use crate::model::FenceKinds;
use crate::model::datatype::{DataTest, DataType};
use crate::query::{Answer, Axioms, Limit, Limits, Stats, Verdict};
use crate::report::document::Block;
use crate::report::{self, json};
use clap::{Args, ValueEnum};
use serde_json::{Value, json as fields};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) const AFTER_HELP: &str = "Exit codes: 0 all tests pass, or fences were found; 10 a test fails, or no fences help; 5 unknown (a limit was \
                                     reached); 2 wrong usage or input.";

#[derive(Debug, Args)]
pub(crate) struct DatatypeArgs {
    /// The data type; `-` is standard input
    file: PathBuf,
    #[command(flatten)]
    input: InputArgs,
    /// Looks at this test alone (several times for several); by default at all of them
    #[arg(long = "test", value_name = "NAME")]
    tests: Vec<String>,
    /// The memory model
    #[arg(long, value_enum, default_value_t)]
    model: AxiomsArg,
    /// What runs are held against
    #[arg(long, value_enum, default_value_t)]
    spec: SpecArg,
    /// Rounds of each loop; by default as many as any run of the test needs
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    bound: Option<u32>,
    /// Puts fences at these places, each with all kinds that the place lists, or one
    #[arg(long, value_delimiter = ',', value_name = "NAME[:KIND]")]
    with: Vec<String>,
    /// Looks for all smallest sets of fences with which the tests pass (loops: two rounds, unless --bound says)
    #[arg(long)]
    fences: bool,
    /// Writes the test as a program instead
    #[arg(long, value_name = "FORMAT", value_parser = ["tso"])]
    to: Option<String>,
    /// Checks what the solver has learnt where it finds nothing
    #[arg(long)]
    prove: bool,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    output: OutputArgs,
    /// Prints a JSON object
    #[arg(long)]
    json: bool,
    /// Prints verdicts alone
    #[arg(short, long, conflicts_with = "verbose")]
    quiet: bool,
    /// Prints how large the questions were
    #[arg(short, long)]
    verbose: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum AxiomsArg {
    /// Sequential consistency
    #[default]
    Sc,
    /// x86's total store order
    Tso,
    /// Partial store order; locked instructions wait for earlier stores
    Pso,
    /// The same, and locked instructions do not wait
    PsoSparc,
    /// More relaxed than any processor
    Relaxed,
}

impl AxiomsArg {
    pub(crate) fn axioms(self) -> Axioms {
        match self {
            AxiomsArg::Sc => Axioms::Sc,
            AxiomsArg::Tso => Axioms::Tso,
            AxiomsArg::Pso => Axioms::Pso,
            AxiomsArg::PsoSparc => Axioms::PsoSparc,
            AxiomsArg::Relaxed => Axioms::Relaxed,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum SpecArg {
    /// All observations of serial runs
    #[default]
    Mined,
    /// The serial run in the order of the commit points
    Commit,
}

pub(crate) fn run(args: &DatatypeArgs, terminal: &Terminal) -> Exit {
    terminal.heard();
    let exit = answered(args, terminal);
    if matches!(exit, Exit::BadInput | Exit::Internal) {
        let said = terminal.heard();
        terminal.parts().add_error("datatype", &args.file, &said, &args.output);
        if args.json {
            terminal.print(&format!("{}\n", written::error_object("datatype", &args.file, &said)));
        }
    }
    exit.max(terminal.parts().write(&args.output, terminal))
}

fn answered(args: &DatatypeArgs, terminal: &Terminal) -> Exit {
    let limits = Interrupt::new().watch(args.limits.limits());
    let unknown = |limit: &Limit| match args.json {
        true => unread(args, limit, terminal),
        false => terminal.limit_reached(&args.file, limit),
    };
    let (datatype, text) = match input::read_datatype(&args.file, &args.input, &limits, terminal, unknown) {
        Ok(read) => read,
        Err(exit) => return exit,
    };
    let asked = options(args, &datatype).and_then(|options| Ok((options, chosen(args, &datatype)?)));
    let (options, tests) = match asked {
        Ok(asked) => asked,
        Err(why) => {
            terminal.error(&why);
            return Exit::BadInput;
        }
    };
    let asked = TestsAsked {
        args,
        datatype: &datatype,
        text: &text,
        tests: &tests,
        options: &options,
        limits: &limits,
        terminal,
    };
    let exit = match (&args.to, args.fences) {
        (Some(_), _) => return asked.convert(),
        (None, true) => asked.fences(),
        (None, false) => asked.each_test(),
    };
    exit.unwrap_or_else(|exit| exit)
}

/// A limit that was reached before the file had been read.
fn unread(args: &DatatypeArgs, limit: &Limit, terminal: &Terminal) -> Exit {
    let file = args.file.display().to_string();
    let mut object = json::headed("datatype", "unknown", &file, &Stats::default(), peak_kb());
    let (reason, name) = (report::limit_reached(limit), json::limit_name(limit));
    json::put(&mut object, fields!({ "reason": reason, "limit": name }));
    terminal.print(&format!("{}\n", Value::Object(object)));
    Exit::Unknown
}

fn options(args: &DatatypeArgs, datatype: &DataType) -> Result<DataOptions, String> {
    let mut options = DataOptions {
        model: args.model.axioms(),
        spec: match args.spec {
            SpecArg::Mined => Spec::Mined,
            SpecArg::Commit => Spec::Commit,
        },
        bound: args.bound,
        with: Default::default(),
        proving: args.prove,
    };
    for word in &args.with {
        let (name, kind) = word.split_once(':').map_or((&word[..], None), |(name, kind)| (name, Some(kind)));
        let Some(place) = datatype.candidates.iter().position(|c| c.name == name) else {
            return Err(format!("{}: there is no place `{name}` for a fence", args.file.display()));
        };
        let kinds = match kind {
            None => datatype.candidates[place].kinds,
            Some(kind) => FenceKinds::named(kind)
                .ok_or(format!("`{kind}` is no kind of fence: there are ll, ls, sl and ss"))?,
        };
        for k in (0..4).filter(|k| kinds.each()[*k]) {
            if !datatype.candidates[place].kinds.each()[k] {
                return Err(format!("`{name}` lists no `{}`", FenceKinds::WORDS[k]));
            }
            options.with.insert((place, k));
        }
    }
    let has_commits = |t: &usize| {
        let calls = datatype.tests[*t].threads.iter().flat_map(|t| &t.calls);
        calls.clone().all(|c| !c.commits.is_empty())
    };
    if options.spec == Spec::Commit && !chosen(args, datatype)?.iter().all(has_commits) {
        return Err("an operation has no `commit`, which --spec commit needs".to_string());
    }
    Ok(options)
}

/// The tests that are asked about, by their numbers.
fn chosen(args: &DatatypeArgs, datatype: &DataType) -> Result<Vec<usize>, String> {
    if args.tests.is_empty() {
        return Ok((0..datatype.tests.len()).collect());
    }
    let number = |name: &String| {
        let found = datatype.tests.iter().position(|t| t.name == *name);
        let all: Vec<&str> = datatype.tests.iter().map(|t| &t.name[..]).collect();
        found.ok_or_else(|| {
            format!("{}: there is no test `{name}`; there are {}", args.file.display(), all.join(", "))
        })
    };
    args.tests.iter().map(number).collect()
}

fn exit_of<P, E>(answer: &Answer<P, E>) -> Exit {
    match answer {
        Answer::Holds(_) => Exit::Good,
        Answer::Fails(_) => Exit::Violated,
        Answer::Unknown(_) => Exit::Unknown,
    }
}

/// Which tests are asked about, and how.
#[derive(Clone, Copy)]
struct TestsAsked<'a> {
    args: &'a DatatypeArgs,
    datatype: &'a DataType,
    text: &'a str,
    tests: &'a [usize],
    options: &'a DataOptions,
    limits: &'a Arc<Limits>,
    terminal: &'a Terminal,
}

impl TestsAsked<'_> {
    /// Does the work and says how far it is; a bug of ours is reported.
    fn with_progress<T>(&self, work: impl FnOnce() -> Result<T, String>) -> Result<T, Exit> {
        let TestsAsked { args, limits, terminal, .. } = *self;
        let done = {
            let _progress = (!args.json && !args.quiet).then(|| terminal.progress(limits));
            work()
        };
        done.map_err(|bug| terminal.internal_error(&args.file, &bug))
    }

    fn each_test(&self) -> Result<Exit, Exit> {
        let TestsAsked { args, datatype, tests, options, limits, .. } = *self;
        let start = Instant::now();
        let mut worst = Exit::Good;
        let mut objects = Vec::new();
        for &t in tests {
            let test = &datatype.tests[t];
            let begin = Instant::now();
            let outcome = self.with_progress(|| check(test, &datatype.candidates, options, limits))?;
            worst = worst.max(exit_of(&outcome.answer));
            let mut object = report::datatype::object(test, options.model, &outcome);
            object["time_ms"] = json::milliseconds(begin.elapsed()).into();
            if args.output.wants_any() {
                self.add_test(test, &outcome, &object);
            }
            if args.json {
                objects.push(object);
            } else {
                self.show(test, &outcome);
            }
        }
        if args.json {
            self.print_objects(objects, worst, start.elapsed());
        }
        Ok(worst)
    }

    /// The part of a test in the files beside the output.
    fn add_test(&self, test: &DataTest, outcome: &DataOutcome, object: &Value) {
        let mut object = object.clone();
        object["file"] = self.args.file.display().to_string().into();
        object["command"] = "datatype".into();
        let mut output = report::datatype::verdict(test, self.options.model, outcome);
        let mut blocks = vec![Block::line(output.trim())];
        if let Answer::Fails(failure) = &outcome.answer {
            blocks.extend(report::datatype::run(test, failure));
            output += &report::datatype::failure(test, failure);
        }
        self.add_part(&test.name, &object, outcome.answer.verdict(), &blocks, output);
    }

    fn add_part(&self, aspect: &str, object: &Value, verdict: Verdict, blocks: &[Block], output: String) {
        let mut parts = self.terminal.parts();
        parts.aspect = aspect.to_string();
        parts.text = Some(written::lines(self.text, &[]));
        let question = match self.args.fences {
            true => "Which fences does it need?",
            false => "Is every run like a serial one?",
        };
        parts.add_told(
            ToldAnswer { object, verdict, question, blocks, costs: &[], output },
            &self.args.output,
        );
    }

    /// One object for all tests: if there is one test, it is told there, and else in a list.
    fn print_objects(&self, objects: Vec<Value>, worst: Exit, time: Duration) {
        let TestsAsked { args, options, terminal, .. } = *self;
        let verdict = match worst {
            Exit::Violated => "fails",
            Exit::Unknown => "unknown",
            _ => "passes",
        };
        let stats = Stats { time, ..Stats::default() };
        let file = args.file.display().to_string();
        let mut fields = json::headed("datatype", verdict, &file, &stats, peak_kb());
        json::put(&mut fields, fields!({ "model": options.model.name(), "engine": "sat" }));
        if let [Value::Object(single)] = &objects[..] {
            let own = single.iter().filter(|(name, _)| !fields.contains_key(*name));
            let own: Vec<_> = own.map(|(name, value)| (name.clone(), value.clone())).collect();
            fields.extend(own);
        } else {
            json::put(&mut fields, fields!({ "tests": objects }));
        }
        terminal.print(&format!("{}\n", Value::Object(fields)));
    }

    fn show(&self, test: &DataTest, outcome: &DataOutcome) {
        let TestsAsked { args, options, terminal, .. } = *self;
        let mut text = report::datatype::verdict(test, options.model, outcome);
        if args.verbose {
            text += &report::datatype::costs(outcome);
        }
        if outcome.serial_blocks && !args.quiet {
            terminal.warning(&format!(
                "{}: test {}: some serial runs wait for good",
                args.file.display(),
                test.name
            ));
        }
        if let (Answer::Fails(failure), false) = (&outcome.answer, args.quiet) {
            text += &report::datatype::failure(test, failure);
        }
        terminal.print(&text);
    }

    fn fences(&self) -> Result<Exit, Exit> {
        let TestsAsked { args, datatype, tests, options, limits, terminal, .. } = *self;
        let start = Instant::now();
        let found = self.with_progress(|| fence_sets(datatype, tests, options, limits))?;
        let stats = Stats { time: start.elapsed(), ..Stats::default() };
        let (verdict, sets) = match &found.answer {
            Answer::Holds(sets) => ("found", sets.clone()),
            Answer::Fails(_) => ("none", vec![]),
            Answer::Unknown(_) => ("unknown", vec![]),
        };
        let sets: Vec<Vec<String>> = sets.iter().map(|set| report::datatype::places(datatype, set)).collect();
        let file = args.file.display().to_string();
        let mut fields = json::headed("datatype", verdict, &file, &stats, peak_kb());
        json::put(
            &mut fields,
            fields!({
                "model": options.model.name(), "engine": "sat", "sets": sets, "more": found.more,
                "candidates": found.candidates, "bound": found.bound,
            }),
        );
        match &found.answer {
            Answer::Fails(why) => json::put(&mut fields, fields!({ "reason": why })),
            Answer::Unknown(limit) => json::put(&mut fields, fields!({ "limit": json::limit_name(limit) })),
            Answer::Holds(_) => {}
        }
        let object = Value::Object(fields);
        let told = report::datatype::fences(datatype, &found, options.model);
        if args.output.wants_any() {
            let blocks = [Block::lines(told.lines().map(|line| line.trim().to_string()).collect())];
            self.add_part("", &object, found.answer.verdict(), &blocks, told.clone());
        }
        terminal.print(&if args.json { format!("{object}\n") } else { told });
        Ok(exit_of(&found.answer))
    }

    /// `--to tso`
    fn convert(&self) -> Exit {
        let TestsAsked { args, datatype, tests, options, limits, terminal, .. } = *self;
        let [test] = tests else {
            terminal.error("name one test with --test: a program is one test");
            return Exit::BadInput;
        };
        let program = match datatype::written(&datatype.tests[*test], options, limits) {
            Ok(Ok(program)) => program,
            Ok(Err(limit)) => return terminal.limit_reached(&args.file, &limit),
            Err(why) => {
                terminal.error(&format!("{}: {why}", args.file.display()));
                return Exit::BadInput;
            }
        };
        match tso::write(&program, limits) {
            Ok(text) => {
                terminal.print(&text);
                Exit::Good
            }
            Err(limit) => terminal.limit_reached(&args.file, &limit),
        }
    }
}

//! What was typed, and what it means: the only place that knows files, terminals and processes.
//!
//! One file per command; `input` reads programs, `includes` the files that they
//! include, `answer` shows what came of them, `limits` turns words like
//! `60s` and `4GiB` into numbers, `interrupt` is Ctrl-C, `terminal` decides on colour, width and progress,
//! `diagnose` shows what is wrong with a file. Every command ends in an [`Exit`], which is the process's exit
//! code.

mod answer;
mod cc;
mod certificate;
mod check;
#[cfg(feature = "distributed")]
mod cluster;
mod code;
#[cfg(all(feature = "compare", target_os = "linux"))]
mod compare;
mod compile;
mod convert;
mod datatype;
mod definitions;
pub mod diagnose;
mod dve;
mod exit;
pub mod expectations;
mod explore;
mod fence;
mod hosts;
mod includes;
mod input;
mod interrupt;
#[cfg(feature = "distributed")]
mod joined;
mod limits;
mod liveness;
mod outcomes;
mod reductions;
mod replay;
mod robust;
mod show;
mod side_by_side;
mod sources;
mod terminal;
mod test;
mod written;

pub use self::exit::Exit;
use self::reductions::Without;
use crate::engine::{Options, Pruning, ShownRun};
use crate::front::formats::{self, Format};
use crate::query::{Axioms, Limits, Model};
use crate::reach::Peers;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// Finds the bugs that x86's store buffers put into concurrent programs, and proves programs free of them.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 80, after_help = EXIT_CODES)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
    /// When to use colours
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    color: When,
    /// Letters in a line; by default those of the terminal
    #[arg(long, global = true, value_name = "N")]
    width: Option<usize>,
}

const EXIT_CODES: &str = "Exit codes: 0 safe, robust or race-free, 10 violated, not robust or racy, 5 unknown (a limit was reached), \
                          2 wrong usage or input, 70 a bug in overtake. `fence`: 0 if a repair was found, 10 if \
                          none can help. `verify`: 0 if the certificate is accepted, 10 if it is rejected. `show` and `convert`: 5 if a \
                          limit was reached.";

/// Only the arguments of the command that is named are built.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
enum Command {
    /// Is a forbidden state reachable?
    Check(CheckArgs),
    /// Compiles sources in C, C++ or Rust at several levels of optimisation, and checks what comes of them
    #[command(after_help = cc::COMPILERS)]
    Cc(Box<cc::CcArgs>),
    /// Do SC and TSO have the same behaviours?
    Robust(RobustArgs),
    /// Is a certificate right?
    Verify(certificate::VerifyArgs),
    /// Is a run out of an answer of --json one of the program?
    #[command(after_help = replay::REPLAYED)]
    Replay(replay::ReplayArgs),
    /// Shows a program in the browser, to walk through by hand
    Explore(explore::ExploreArgs),
    /// Which fewest fences repair the program?
    #[command(after_help = fence::PLACES)]
    Fence(FenceArgs),
    /// Does a concurrent data type behave like a serial one, and which fences does it need?
    #[command(after_help = datatype::AFTER_HELP)]
    Datatype(datatype::DatatypeArgs),
    /// Lists all final states, in the shape of herd's output (litmus tests)
    #[command(after_help = outcomes::COUNTS)]
    Outcomes(OutcomesArgs),
    /// Shows a program: its memory, its threads step by step, what each may still touch
    Show(show::ShowArgs),
    /// Writes a program in another format
    Convert(convert::ConvertArgs),
    /// Do programs do what their files say they do?
    #[command(after_help = test::EXPECTATIONS)]
    Test(TestArgs),
    /// Runs overtake and the other tools that are found on the same programs, and compares answers, times and
    /// memory
    #[cfg(all(feature = "compare", target_os = "linux"))]
    #[command(after_help = compare::AFTER_HELP)]
    Compare(Box<compare::CompareArgs>),
    /// Starts several processes on this machine that answer together, to try --hosts
    #[cfg(feature = "distributed")]
    Cluster(cluster::ClusterArgs),
    /// Writes a completion script for a shell
    Completions { shell: clap_complete::Shell },
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum When {
    #[default]
    Auto,
    Always,
    Never,
}

#[derive(Clone, Debug, Default, Args)]
struct InputArgs {
    /// The format of the input; by default what the file's extension says
    #[arg(long, value_name = "FORMAT", value_parser = input::format_parser(formats::readable()))]
    from: Option<&'static Format>,
    /// Gives a parameter of the program a value, or, for DVE models, an expression a name
    #[arg(short = 'D', long = "define", value_name = "NAME=VALUE", value_parser = limits::definition)]
    define: Vec<(String, String)>,
    #[command(flatten)]
    code: code::CodeArgs,
    /// The processes that have to have read the same.
    #[arg(skip)]
    peers: Option<Peers>,
}

impl InputArgs {
    /// The definitions as scripts get them: a number where it is one.
    fn defined(&self) -> serde_json::Value {
        let number = |text: &String| text.parse::<i64>().ok().map(serde_json::Value::from);
        let value = |text: &String| number(text).unwrap_or_else(|| text.clone().into());
        self.define.iter().map(|(name, text)| (name.clone(), value(text))).collect()
    }

    /// The definitions as a program has them: whole numbers.
    fn parameters(&self) -> Result<Vec<(String, i64)>, String> {
        self.define.iter().map(|(name, text)| limits::define(&format!("{name}={text}"))).collect()
    }
}

// What a command may spend on a file, reading it included. (Not a doc comment, as with all arguments that are
// flattened: clap would take it for the help of the command that they are flattened into.)
#[derive(Clone, Debug, Args)]
struct LimitArgs {
    /// Gives up on a file after this time, for example 60s or 500ms
    #[arg(long, value_name = "TIME", value_parser = limits::duration)]
    timeout: Option<Duration>,
    /// Gives up before using more memory than this, for example 4GiB; by default most of the machine's
    #[arg(long, value_name = "SIZE", value_parser = limits::size)]
    memory: Option<u64>,
}

impl LimitArgs {
    /// Time runs from now on.
    fn limits(&self) -> Limits {
        let limits = Limits { memory: self.memory.or_else(limits::default_memory), ..Limits::default() };
        match self.timeout {
            Some(timeout) => limits.with_timeout(timeout),
            None => limits,
        }
    }
}

// What all commands that search have in common.
#[derive(Clone, Debug, Args)]
struct SearchArgs {
    /// Programs to look at; `-` is standard input (with --from)
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    input: InputArgs,
    /// Workers; by default one per core
    #[arg(long, value_name = "N", value_parser = limits::workers)]
    threads: Option<usize>,
    #[command(flatten)]
    limits: LimitArgs,
    /// Gives up when one search has stored this many states
    #[arg(long, value_name = "N")]
    states: Option<u64>,
    /// Prints one JSON object per file
    #[arg(long)]
    json: bool,
    /// Prints verdicts alone
    #[arg(short, long, conflicts_with = "verbose")]
    quiet: bool,
    /// Prints how the answer was found, and what it cost
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    without: Without,
    #[command(flatten)]
    output: written::OutputArgs,
    #[command(flatten)]
    hosts: hosts::HostArgs,
    /// This is one of several files, and so named.
    #[arg(skip)]
    among_others: bool,
}

#[derive(Clone, Debug, Args)]
struct CheckArgs {
    /// The memory model; by default tso, and sc for DVE models
    #[arg(long, value_enum)]
    model: Option<ModelArg>,
    /// Asks about this property alone: by its number, counted from 1 in the order of the file, or by its name.
    /// The asserts of one line are one property
    #[arg(long, value_name = "N|NAME")]
    property: Option<String>,
    /// Asks instead whether the program can hang: memory never changes again, and not all threads end
    #[arg(long, conflicts_with_all = ["engine", "buffer", "extension", "iterations", "certificate", "side_by_side", "property"])]
    hang: bool,
    /// How to look for the answer
    #[arg(long, value_parser = check::engine(), default_value = "auto")]
    engine: check::EngineArg,
    /// Bounds every store buffer to K entries (explicit engine); `safe` then means that none ever needed more
    #[arg(long, value_name = "K")]
    buffer: Option<usize>,
    /// Gives up after this many rounds of the lazy engine
    #[arg(long, value_name = "N")]
    iterations: Option<u64>,
    /// Runs engines, and candidates for the first delay, side by side with one worker each, instead of letting
    /// engines take turns with all workers
    #[arg(long)]
    side_by_side: bool,
    /// How the lazy engine builds delays into the program
    #[arg(long, value_enum, default_value_t)]
    extension: ExtensionArg,
    /// The order of the search
    #[arg(long = "search", value_enum, default_value_t)]
    order: OrderArg,
    /// Writes a certificate of the answer to this file, for `overtake verify`
    #[arg(long, value_name = "FILE")]
    certificate: Option<PathBuf>,
    #[command(flatten)]
    search: SearchArgs,
    #[command(flatten)]
    dve: dve::DveArgs,
}

#[derive(Clone, Debug, Args)]
struct RobustArgs {
    /// Lists every pair of a store and a load that overtakes it with effect, not one alone
    #[arg(long, conflicts_with = "triangular")]
    all: bool,
    /// Asks for triangular races instead: a program without any is robust, and one that has some may be
    #[arg(long)]
    triangular: bool,
    /// Writes a certificate of the answer to this file, for `overtake verify`
    #[arg(long, value_name = "FILE", conflicts_with = "triangular")]
    certificate: Option<PathBuf>,
    #[command(flatten)]
    search: SearchArgs,
}

#[derive(Clone, Debug, Args)]
struct FenceArgs {
    /// What the repaired program is to be; by default `property` if the file has one, else `robustness`
    #[arg(long = "for", value_enum, value_name = "AIM")]
    aim: Option<fence::AimArg>,
    /// The memory model that a property is to hold under. Where it is weaker than TSO, the fewest fences are looked for
    /// that each order loads or stores before loads or stores, in programs whose loops have an end
    #[arg(long, value_enum)]
    model: Option<datatype::AxiomsArg>,
    /// The kinds of changes that are allowed
    #[arg(long, value_enum, value_delimiter = ',', default_value = "fence", value_name = "KINDS")]
    with: Vec<fence::KindArg>,
    /// What each kind costs, for example fence=2,atomic=3; 1 where nothing is said
    #[arg(long, value_delimiter = ',', value_parser = fence::cost, value_name = "KIND=COST")]
    cost: Vec<(fence::KindArg, u64)>,
    /// Lists all sets of the least cost
    #[arg(long)]
    all: bool,
    /// Counts places of each thread by itself, also where threads come from one template
    #[arg(long)]
    per_thread: bool,
    /// Puts no fence at this label (several times for several)
    #[arg(long, value_name = "THREAD:LABEL")]
    forbid_at: Vec<String>,
    /// Changes this thread alone (several times for several); one copy of a template implies --per-thread
    #[arg(long, value_name = "THREAD")]
    only: Vec<String>,
    /// Says instead which of the program's own fences can go
    #[arg(long, conflicts_with_all = ["with", "cost", "all", "forbid_at", "only", "output"])]
    prune: bool,
    /// Leaves a choice undecided after this many rounds of the lazy engine (--for property)
    #[arg(long, value_name = "N")]
    iterations: Option<u64>,
    /// Writes the repaired program to this file, reads it again and checks it again
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    search: SearchArgs,
    #[command(flatten)]
    dve: dve::RepairArgs,
}

#[derive(Clone, Debug, Args)]
struct OutcomesArgs {
    /// The memory model
    #[arg(long, value_enum, default_value_t)]
    model: ModelArg,
    /// Who looks for the states: the explorer, or a SAT solver by the axioms of the model
    #[arg(long, value_parser = ["explicit", "sat"], default_value = "explicit")]
    engine: String,
    #[command(flatten)]
    search: SearchArgs,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum ModelArg {
    /// Sequential consistency
    Sc,
    /// x86's total store order
    #[default]
    Tso,
    /// Partial store order; locked instructions wait for earlier stores (--engine sat)
    Pso,
    /// The same, and locked instructions do not wait (--engine sat)
    PsoSparc,
    /// More relaxed than any processor (--engine sat)
    Relaxed,
    /// One slot for each process and element, in which a write waits (DVE models)
    Slots,
}

impl ModelArg {
    /// As a program knows it.
    fn of_programs(self) -> Result<Model, String> {
        match self {
            ModelArg::Sc => Ok(Model::Sc),
            ModelArg::Tso => Ok(Model::Tso),
            ModelArg::Slots => Err("--model slots is for DVE models".to_string()),
            ModelArg::Pso | ModelArg::PsoSparc | ModelArg::Relaxed => {
                Err("--model pso, pso-sparc and relaxed are for `check` and `outcomes` with --engine sat"
                    .to_string())
            }
        }
    }

    /// As a program knows it, by its axioms.
    fn axioms(self) -> Result<Axioms, String> {
        Ok(match self {
            ModelArg::Pso => Axioms::Pso,
            ModelArg::PsoSparc => Axioms::PsoSparc,
            ModelArg::Relaxed => Axioms::Relaxed,
            ModelArg::Sc | ModelArg::Tso | ModelArg::Slots => self.of_programs()?.into(),
        })
    }
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum ExtensionArg {
    /// Nothing that TSO can reach is added or lost: `safe` and `violated` are both possible
    #[default]
    Exact,
    /// Delays are added beside what was there: for hunting, never `safe` unless the program is robust
    Additive,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum OrderArg {
    /// Breadth first: short traces
    #[default]
    Bfs,
    /// Depth first
    Dfs,
}

#[derive(Debug, Args)]
struct TestArgs {
    /// Files, and folders with files, that say what is expected of them
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Files that are tested at the same time; by default one per core
    #[arg(long, value_name = "N", value_parser = limits::workers)]
    jobs: Option<usize>,
    /// Files with warnings have failed
    #[arg(long)]
    deny_warnings: bool,
    /// Writes a report as build servers read it (JUnit)
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Prints what failed, and the summary
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    limits: LimitArgs,
}

/// What the answer to one expectation may take if the user does not say: a test is to end.
const PATIENCE: Duration = Duration::from_secs(60);

impl TestArgs {
    fn output(&self) -> written::OutputArgs {
        written::OutputArgs { junit: self.junit.clone(), ..written::OutputArgs::default() }
    }

    /// Time runs from now on.
    fn limits(&self) -> Limits {
        let LimitArgs { timeout, memory } = self.limits;
        LimitArgs { timeout: timeout.or(Some(PATIENCE)), memory }.limits()
    }
}

impl SearchArgs {
    /// Several files with machine code are one program.
    fn link(&mut self) {
        let is_code = |path: &PathBuf| input::is_code(path);
        if self.input.from.is_none() && self.files.len() > 1 && self.files.iter().all(is_code) {
            self.input.code.linked = self.files.split_off(1);
        }
    }

    fn options(&self) -> Options {
        let Without { reductions, no_static } = self.without;
        let default = self.threads.map_or_else(Options::default, Options::with_workers);
        let pruning = if no_static { Pruning::Off } else { Pruning::On };
        let peers = self.input.peers.clone();
        Options { reductions, pruning, run: self.run(), peers, ..default }
    }

    /// With verdicts alone, nobody looks at runs.
    fn run(&self) -> ShownRun {
        match self.quiet && !self.json && !self.output.wants_any() {
            true => ShownRun::AsFound,
            false => ShownRun::Simplest,
        }
    }

    fn limits(&self) -> Limits {
        Limits { states: self.states, lost: self.hosts.lost.clone(), ..self.limits.limits() }
    }
}

impl Cli {
    /// Does what was asked.
    pub fn run(self) -> Exit {
        let terminal = terminal::Terminal::new(self.color, self.width);
        match self.command {
            Command::Check(args) => hosts::run(args, check::run, &terminal),
            Command::Cc(args) => cc::run(*args, &terminal),
            Command::Robust(args) => hosts::run(args, robust::run, &terminal),
            Command::Verify(args) => certificate::verify(&args, &terminal),
            Command::Explore(args) => explore::run(&args, &terminal),
            Command::Replay(args) => replay::run(&args, &terminal),
            Command::Fence(args) => hosts::run(args, fence::run, &terminal),
            Command::Outcomes(args) => hosts::run(args, outcomes::run, &terminal),
            #[cfg(feature = "distributed")]
            Command::Cluster(args) => cluster::run(&args, &terminal),
            Command::Datatype(args) => datatype::run(&args, &terminal),
            Command::Show(args) => show::run(&args, &terminal),
            Command::Convert(args) => convert::run(&args, &terminal),
            Command::Test(args) => test::run(&args, &terminal),
            #[cfg(all(feature = "compare", target_os = "linux"))]
            Command::Compare(args) => compare::run(&args, &terminal),
            Command::Completions { shell } => {
                let mut script = Vec::new();
                clap_complete::generate(shell, &mut Cli::command(), "overtake", &mut script);
                terminal.print(&String::from_utf8_lossy(&script));
                Exit::Good
            }
        }
    }
}

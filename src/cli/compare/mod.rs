//! `overtake compare`: this tool and its peers on the same programs, within the same limits, in the same run.
//!
//! `subjects` says which programs, `peers` which tools, `contest` lets them take turns, `dispute` is for
//! answers that differ, `process` runs and measures one tool, `machine` describes where all that happens, and
//! `files` writes it down.

mod contest;
mod dispute;
mod files;
mod machine;
mod peers;
mod process;
mod show;
mod subjects;

use super::interrupt::Interrupt;
use super::terminal::Terminal;
use super::{Exit, limits};
use crate::compare::record::Comparison;
use crate::compare::{Discipline, family};
use clap::{Args, ValueEnum};
use contest::{Contest, Rules};
use std::path::PathBuf;
use std::time::Duration;

pub(crate) const AFTER_HELP: &str = "\
Peers are trencher, memorax, spin, herd7, cbmc, nidhugg, genmc and dartagnan, where they are found. A program is exported \
to a peer's format where `overtake convert` can write it; elsewhere the row says why the peer was not run.\n\n\
Every run is a process of its own, overtake's too. Where answers differ, the run that overtake replayed decides, or else \
its explicit engine; both are shown first.\n\n\
Exit codes: 0 no two tools disagreed, 10 some did, 70 overtake was refuted (a bug in overtake), 5 interrupted by Ctrl-C \
(what was finished is kept), 2 wrong usage or input.";

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// Programs to compare on; with --from and --to, or --sizes, with growing N
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Bundled programs that grow with N: lamport, peterson, burns, dijkstra, bakery, szymanski, diamond,
    /// loop, sb (each also as NAME-fenced), ticket, mcs; or `all`
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    family: Vec<String>,
    /// The smallest N
    #[arg(long, value_name = "N", requires = "to")]
    from: Option<i64>,
    /// The largest N
    #[arg(long, value_name = "N", requires = "from")]
    to: Option<i64>,
    /// These values of N, instead of --from and --to; by default those of the published tables
    #[arg(long, value_name = "N", value_delimiter = ',', conflicts_with = "from")]
    sizes: Vec<i64>,
    /// Gives another parameter of the programs a value
    #[arg(short = 'D', long = "define", value_name = "NAME=VALUE", value_parser = limits::define)]
    define: Vec<(String, i64)>,
    /// Takes the families' programs from this folder, as `programs` has them, instead of those built in
    #[arg(long, value_name = "DIR")]
    programs: Option<PathBuf>,
    /// Where a peer lies, if it is not on the search path
    #[arg(long, value_name = "NAME=PATH", value_parser = peers::place)]
    peer: Vec<(String, PathBuf)>,
    /// Who takes part; by default all that are found. There are also spin-defaults (no fitted hash table),
    /// spin-collapse (compressed states) and spin-literal (one step per instruction)
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    tools: Vec<String>,
    /// Our own engines take part, each alone, instead of other tools
    #[arg(long, conflicts_with_all = ["tools", "peer", "published"])]
    engines: bool,
    /// What is asked; of engines by default `tso`
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "sc,tso,robust",
        default_value_if("engines", "true", "tso")
    )]
    question: Vec<QuestionArg>,
    /// How often everybody is run, taking turns
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    runs: u16,
    /// The time that each run has
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = limits::duration)]
    timeout: Duration,
    /// The memory that each run has, as address space
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = limits::size)]
    memory: u64,
    /// Workers of overtake: several numbers for several rows. The peers have one, but for Trencher, which
    /// takes all cores for `tso` and `fences`
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1", value_parser = limits::workers)]
    threads: Vec<usize>,
    /// Writes compare.csv, compare.ron, compare.md and pictures of the growth to this folder
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Makes the published tables anew, by default in the folder `results`
    #[arg(long, conflicts_with_all = ["files", "family", "from", "sizes", "tools", "question", "threads", "define"])]
    published: bool,
    /// Prints one JSON object for each question about each program
    #[arg(long)]
    json: bool,
    /// Writes the comparison as a page: a table that can be sorted, and the curves
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum QuestionArg {
    /// Is a forbidden state reachable under SC?
    Sc,
    /// Is one reachable under TSO?
    Tso,
    /// Do SC and TSO have the same behaviours?
    Robust,
    /// How many fences make them the same?
    Fences,
}

impl From<QuestionArg> for Discipline {
    fn from(question: QuestionArg) -> Discipline {
        match question {
            QuestionArg::Sc => Discipline::Sc,
            QuestionArg::Tso => Discipline::Tso,
            QuestionArg::Robust => Discipline::Robust,
            QuestionArg::Fences => Discipline::Fences,
        }
    }
}

/// One comparison to be made: what its files begin with, and what goes into it.
struct Plan {
    stem: &'static str,
    families: Vec<String>,
    sizes: Vec<i64>,
    questions: Vec<Discipline>,
    tools: Vec<String>,
    threads: Vec<usize>,
}

/// The published tables: all families, and two of them under SC against every way to run SPIN.
fn published() -> Vec<Plan> {
    let words = |words: &[&str]| words.iter().map(|w| w.to_string()).collect();
    let all = Plan {
        stem: "compare",
        families: words(&["all"]),
        sizes: vec![],
        questions: Discipline::USUAL.to_vec(),
        tools: vec![],
        threads: vec![1, 2],
    };
    let spin = Plan {
        stem: "spin",
        families: words(&["lamport", "peterson"]),
        sizes: vec![3, 4, 5, 6],
        questions: vec![Discipline::Sc],
        tools: words(&["overtake", "spin", "spin-defaults", "spin-collapse", "spin-literal"]),
        threads: vec![1, 2],
    };
    vec![all, spin]
}

/// More sizes than this are a slip of the finger.
const MAX_SIZES: i64 = 1000;

fn typed(args: &CompareArgs) -> Result<Plan, String> {
    let sizes = match (args.from, args.to) {
        (Some(from), Some(to)) if to.checked_sub(from).is_some_and(|d| (0..MAX_SIZES).contains(&d)) => {
            (from..=to).collect()
        }
        (Some(from), Some(to)) => {
            return Err(format!("--from {from} --to {to} are not 1 to {MAX_SIZES} sizes"));
        }
        _ => args.sizes.clone(),
    };
    let mut questions: Vec<Discipline> = args.question.iter().map(|q| (*q).into()).collect();
    questions.sort();
    questions.dedup();
    Ok(Plan {
        stem: if args.engines { "engines" } else { "compare" },
        families: args.family.clone(),
        sizes,
        questions,
        tools: args.tools.clone(),
        threads: args.threads.clone(),
    })
}

pub(crate) fn run(args: &CompareArgs, terminal: &Terminal) -> Exit {
    let plans = match typed(args) {
        _ if args.published => published(),
        Ok(plan) => vec![plan],
        Err(message) => {
            terminal.error(&message);
            return Exit::BadInput;
        }
    };
    let interrupt = Interrupt::new();
    let mut exit = Exit::Good;
    for plan in &plans {
        match compare(args, plan, &interrupt, terminal) {
            Ok(comparison) => {
                exit = exit.max(judged(&comparison));
                if comparison.circumstances.interrupted {
                    break;
                }
            }
            Err(_) if interrupt.has_come() => return Exit::Unknown,
            Err(message) => {
                if !message.is_empty() {
                    terminal.error(&message);
                }
                return Exit::BadInput;
            }
        }
    }
    exit
}

/// An error whose message is empty has been shown already.
fn compare(
    args: &CompareArgs,
    plan: &Plan,
    interrupt: &Interrupt,
    terminal: &Terminal,
) -> Result<Comparison, String> {
    let contestants = match args.engines {
        true => peers::engines(&plan.threads)?,
        false => peers::find(&args.peer, &plan.tools, &plan.threads)?,
    };
    let stop = interrupt.watch(Default::default());
    let subjects = subjects::all(args, plan, &stop, terminal)?;
    if !args.engines && contestants.iter().all(|c| c.way.tool == crate::compare::own::NAME) {
        terminal.warning("no peer was found: put one on the search path, or name it with --peer NAME=PATH");
    }
    let output = args.output.clone().or(args.published.then(|| PathBuf::from("results")));
    let folder = output.as_deref().map(files::Folder::open).transpose()?;
    let rules = Rules {
        runs: args.runs.into(),
        limits: process::Limits { time: args.timeout, memory: args.memory },
        stop,
    };
    let contest = Contest::new(&contestants, &plan.questions, rules, terminal)?;
    let mut comparison = contest.begin();
    for subject in &subjects {
        contest.compare(subject, &mut comparison, folder.as_ref().map(|f| (f, plan.stem)))?;
        if let Some(folder) = &folder {
            folder.write(&comparison, plan.stem)?;
        }
        if comparison.circumstances.interrupted {
            break;
        }
    }
    show::comparison(&comparison, args.json, terminal);
    if let Some(path) = &args.html {
        let text = show::page(&comparison)?;
        std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    if let (Some(folder), false) = (&folder, args.json) {
        terminal.print(&format!("\nWritten to {}\n", folder.main(plan.stem).display()));
    }
    Ok(comparison)
}

fn judged(comparison: &Comparison) -> Exit {
    let wrong = &comparison.disagreements;
    match () {
        _ if wrong.iter().any(|d| d.overtake_is_wrong) => Exit::Internal,
        _ if !wrong.is_empty() => Exit::Violated,
        _ if comparison.circumstances.interrupted => Exit::Unknown,
        _ => Exit::Good,
    }
}

/// The names of all families, for a message.
fn family_names() -> String {
    family::FAMILIES.iter().map(|f| f.name).collect::<Vec<_>>().join(", ")
}

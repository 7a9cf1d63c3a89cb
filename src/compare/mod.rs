//! How do other tools answer the same questions, how soon, and with how much memory?
//!
//! One file per tool says which questions it answers, which format it reads, which commands ask it, and what
//! its output means. `export` is the table of formats, `family` has programs that grow with a parameter,
//! `judge` says who is wrong where answers differ, `record` is what was measured, and `table`, `summary`,
//! `json` and `plot` show it. Nothing here starts a process or opens a file: commands go out as data, and
//! what came of them comes back as data. [`Finished`] is what the one who runs them hands over.

mod c;
mod dartagnan;
pub mod export;
pub mod family;
mod herd;
pub mod json;
pub mod judge;
mod memorax;
pub mod own;
pub mod plot;
pub mod record;
mod spin;
pub mod summary;
pub mod table;
mod trencher;

use crate::model::PropertyKind;
use export::Export;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What is asked of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Discipline {
    /// Is a forbidden state reachable under SC?
    Sc,
    /// Is one reachable under TSO?
    Tso,
    /// Do SC and TSO have the same behaviours?
    Robust,
    /// How many fences make them the same?
    Fences,
}

impl Discipline {
    pub const ALL: [Discipline; 4] =
        [Discipline::Sc, Discipline::Tso, Discipline::Robust, Discipline::Fences];
    /// Those of the published tables.
    pub const USUAL: [Discipline; 3] = [Discipline::Sc, Discipline::Tso, Discipline::Robust];

    pub fn name(self) -> &'static str {
        match self {
            Discipline::Sc => "sc",
            Discipline::Tso => "tso",
            Discipline::Robust => "robust",
            Discipline::Fences => "fences",
        }
    }

    /// Is it about the program's property?
    pub fn needs_property(self) -> bool {
        matches!(self, Discipline::Sc | Discipline::Tso)
    }
}

/// A certain answer. A program that is not robust counts as violated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Safe,
    Violated,
    /// So many fences.
    Fences(u64),
}

impl Verdict {
    /// The word for it, as an answer to this question.
    pub fn word(self, question: Discipline) -> String {
        let word = match (self, question) {
            (Verdict::Safe, Discipline::Robust) => "robust",
            (Verdict::Violated, Discipline::Robust) => "not-robust",
            (Verdict::Safe, _) => "safe",
            (Verdict::Violated, _) => "violated",
            (Verdict::Fences(1), _) => return "1 fence".to_string(),
            (Verdict::Fences(n), _) => return format!("{n} fences"),
        };
        word.to_string()
    }
}

/// What one run of a tool came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    Answer(Verdict),
    /// It came to its end without an answer, for this reason.
    Unknown(String),
    OutOfTime,
    OutOfMemory,
    /// It crashed, complained, or printed what is no answer.
    Failed(String),
}

impl Said {
    pub fn verdict(&self) -> Option<Verdict> {
        match self {
            Said::Answer(verdict) => Some(*verdict),
            _ => None,
        }
    }

    /// Would a larger program have a chance?
    pub fn ran_out(&self) -> bool {
        matches!(self, Said::OutOfTime | Said::OutOfMemory)
    }
}

/// What was read out of a tool's output.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    pub said: Said,
    /// States stored, for tools that tell.
    pub states: Option<u64>,
    /// Bytes that each of them takes, in the same way.
    pub state_bytes: Option<f64>,
}

impl From<Said> for Reading {
    fn from(said: Said) -> Reading {
        Reading { said, states: None, state_bytes: None }
    }
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Exit(i32),
    Signal(i32),
    /// It was stopped when its time was over.
    OutOfTime,
    /// It printed more than anyone wants to read.
    TooTalkative,
}

/// A process that has come to its end, and what it left.
#[derive(Clone, Debug)]
pub struct Finished {
    pub end: End,
    pub out: String,
    pub err: String,
    pub wall: Duration,
    pub cpu: Duration,
    /// The most memory it had, in KiB; `None` if that is less than can be told.
    pub peak_kb: Option<u64>,
}

impl Finished {
    /// The last line of what it had to say, complaints first: for failures.
    fn last_words(&self) -> String {
        let last = |text: &str| text.lines().rev().map(str::trim).find(|l| !l.is_empty()).map(str::to_string);
        let words = last(&self.err).or_else(|| last(&self.out)).unwrap_or("it printed nothing".to_string());
        words.chars().take(200).collect()
    }

    /// A failure that shows how the process ended.
    fn failure(&self) -> Said {
        Said::Failed(match self.end {
            End::Exit(0) => self.last_words(),
            End::Exit(code) => format!("exit code {code}: {}", self.last_words()),
            End::Signal(signal) => format!("ended by {}: {}", signal_name(signal), self.last_words()),
            End::OutOfTime => "out of time".to_string(),
            End::TooTalkative => "it printed more than is read".to_string(),
        })
    }
}

fn signal_name(signal: i32) -> String {
    match signal {
        4 => "SIGILL".to_string(),
        6 => "SIGABRT".to_string(),
        8 => "SIGFPE".to_string(),
        9 => "SIGKILL".to_string(),
        11 => "SIGSEGV".to_string(),
        15 => "SIGTERM".to_string(),
        other => format!("signal {other}"),
    }
}

/// What is to be started: in a folder of its own, which has the program in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    pub program: Executable,
    pub args: Vec<String>,
    pub env: Vec<(&'static str, String)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Executable {
    /// The tool itself, wherever it lies.
    Tool,
    /// Something on the search path, or made in the folder.
    Other(&'static str),
}

impl Command {
    fn tool<S: Into<String>>(args: impl IntoIterator<Item = S>) -> Command {
        Command {
            program: Executable::Tool,
            args: args.into_iter().map(Into::into).collect(),
            env: Vec::new(),
        }
    }

    fn other(program: &'static str, args: &[&str]) -> Command {
        Command { program: Executable::Other(program), ..Command::tool(args.iter().copied()) }
    }

    /// As a person would type it.
    pub fn shown(&self, tool: &str) -> String {
        let program = match self.program {
            Executable::Tool => tool,
            Executable::Other(name) => name,
        };
        let words = [program].into_iter().chain(self.args.iter().map(String::as_str));
        words.collect::<Vec<_>>().join(" ")
    }
}

/// What a tool is told beside the program.
#[derive(Clone, Debug)]
pub struct Asked<'a> {
    pub question: Discipline,
    /// The file with the program, in the folder of the run.
    pub file: &'a str,
    /// Parameters of a program in the native language.
    pub define: &'a [(String, i64)],
    /// Workers, for tools that have them.
    pub workers: usize,
    /// One of overtake's engines, where it is not left to overtake which one answers.
    pub engine: Option<&'static str>,
    /// The limit of memory, in bytes.
    pub memory: u64,
    /// What kind of property the program has, if it has a single one.
    pub property: Option<PropertyKind>,
    /// The folder with Dartagnan's memory models.
    pub cat: &'a str,
}

/// One way to ask a tool.
pub struct Way {
    pub name: &'static str,
    /// The tool, by the name that it has on the search path.
    pub tool: &'static str,
    /// Whether it takes part where nobody says who should.
    pub usual: bool,
    pub answers: &'static [Discipline],
    pub reads: Export,
    /// What has to be done once before the search, such as compiling. It is no part of the search and has
    /// time enough.
    pub prepare: fn(&Asked) -> Vec<Command>,
    /// A first search, within the limits, that only shows how the others are best made.
    pub rehearse: Option<fn() -> Command>,
    /// The search itself, given what the rehearsal left.
    pub search: fn(&Asked, Option<&Finished>) -> Command,
    /// What the search's output means; processes that were stopped, or ran out of memory, do not come here.
    pub read: fn(&Finished, &Asked) -> Reading,
}

/// All ways there are, overtake's own first.
pub const WAYS: &[&Way] = &[
    &own::WAY,
    &spin::WAY,
    &spin::DEFAULTS,
    &spin::COLLAPSE,
    &spin::LITERAL,
    &trencher::WAY,
    &memorax::DUAL,
    &memorax::SB,
    &herd::WAY,
    &dartagnan::WAY,
    &c::CBMC,
    &c::NIDHUGG,
    &c::GENMC,
];

/// The arguments that make a tool tell its version.
pub fn version_args(tool: &str) -> Option<&'static [&'static str]> {
    match tool {
        "spin" => Some(&["-V"]),
        "herd7" => Some(&["-version"]),
        // Trencher takes every word for an option or a file.
        "trencher" => None,
        _ => Some(&["--version"]),
    }
}

/// What a finished search says, whatever the tool: time and memory first, then the tool's own words.
pub fn reading(way: &Way, finished: &Finished, asked: &Asked) -> Reading {
    match finished.end {
        End::OutOfTime => Said::OutOfTime.into(),
        End::TooTalkative => finished.failure().into(),
        End::Exit(_) | End::Signal(_) if lacks_memory(finished, asked.memory) => Said::OutOfMemory.into(),
        End::Signal(_) => finished.failure().into(),
        End::Exit(_) => (way.read)(finished, asked),
    }
}

/// Why there can be no search after this preparation, if there cannot: that is no answer, and no lack of it.
pub fn preparation_failed(finished: &Finished) -> Option<Said> {
    let why = match finished.failure() {
        _ if finished.end == End::Exit(0) => return None,
        Said::Failed(why) => why,
        _ => String::new(),
    };
    Some(Said::Failed(format!("it could not be prepared: {why}")))
}

/// Why there is no need for a search after this rehearsal, if there is none.
pub fn rehearsal_failed(finished: &Finished, asked: &Asked) -> Option<Said> {
    match finished.end {
        End::OutOfTime => Some(Said::OutOfTime),
        _ if lacks_memory(finished, asked.memory) => Some(Said::OutOfMemory),
        End::Exit(0) => None,
        _ => Some(finished.failure()),
    }
}

/// Phrases by which programs say that an allocation has failed, or a thread that would have needed one for
/// its stack.
const NO_MEMORY: &[&str] = &[
    "out of memory",
    "outofmemory",
    "bad_alloc",
    "memory allocation of",
    "cannot allocate",
    "memoryerror",
    "out of space",
    "could not reserve enough space",
    "reached -dmemlim bound",
    "memory exhausted",
    "resource temporarily unavailable",
    "cannot create thread",
    "create native thread",
    "failed to spawn thread",
    "pthread_create",
];

/// A process that failed, and says that it was for want of memory or was past the half of it: tables that
/// grow by doubling fail there, and not every tool looks whether it got what it asked for.
fn lacks_memory(finished: &Finished, memory: u64) -> bool {
    let said = |text: &str| {
        let text = text.to_lowercase();
        NO_MEMORY.iter().any(|phrase| text.contains(phrase))
    };
    let close = finished.peak_kb.is_some_and(|kb| kb << 10 >= memory / 2);
    match finished.end {
        End::Exit(0) => said(&finished.err) || spin::is_out_of_memory(&finished.out),
        End::Exit(_) => said(&finished.err) || said(&finished.out),
        End::Signal(_) => close || said(&finished.err) || said(&finished.out),
        End::OutOfTime | End::TooTalkative => false,
    }
}

/// No preparation.
fn nothing(_: &Asked) -> Vec<Command> {
    Vec::new()
}

#[cfg(test)]
pub mod testing {
    use super::*;

    /// A process that ended by itself.
    pub fn printed(out: &str) -> Finished {
        finished(End::Exit(0), out, "")
    }

    pub fn finished(end: End, out: &str, err: &str) -> Finished {
        let wall = Duration::from_millis(20);
        Finished { end, out: out.to_string(), err: err.to_string(), wall, cpu: wall, peak_kb: Some(7_000) }
    }

    pub fn asked(question: Discipline, file: &str) -> Asked<'_> {
        let (memory, cat) = (1 << 30, "cat");
        Asked { question, file, define: &[], workers: 1, engine: None, memory, property: None, cat }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::*;
    use super::*;

    fn said(end: End, out: &str, err: &str) -> Said {
        reading(&trencher::WAY, &finished(end, out, err), &asked(Discipline::Tso, "program.txt")).said
    }

    #[test]
    fn names_are_told_apart_and_overtake_comes_first() {
        let mut names: Vec<_> = WAYS.iter().map(|w| w.name).collect();
        assert_eq!(names[0], own::NAME);
        names.sort();
        names.dedup();
        assert_eq!(names.len(), WAYS.len());
    }

    #[test]
    fn time_and_memory_come_before_words() {
        let words = "Final state IS reachable under TSO.\n";
        assert_eq!(said(End::Exit(0), words, ""), Said::Answer(Verdict::Violated));
        assert_eq!(said(End::OutOfTime, words, ""), Said::OutOfTime);
        let aborted = "terminate called after throwing an instance of 'std::bad_alloc'\n";
        assert_eq!(said(End::Signal(6), "", aborted), Said::OutOfMemory);
        assert_eq!(said(End::Exit(1), "", "Out of memory!\n"), Said::OutOfMemory);
        for no_thread in [
            "terminate called after throwing an instance of 'std::system_error'\n  what():  Resource temporarily unavailable\n",
            "Fatal error: exception Failure(\"cannot create thread\")\n",
            "[warning][os,thread] Failed to start thread \"C2\" - pthread_create failed (EAGAIN)\n",
            "java.lang.Error: unable to create native thread: possibly process/resource limits reached\n",
        ] {
            assert_eq!(said(End::Signal(6), "", no_thread), Said::OutOfMemory, "{no_thread}");
            assert_eq!(said(End::Exit(2), "", no_thread), Said::OutOfMemory, "{no_thread}");
        }
        let large = Finished { peak_kb: Some(1 << 20), ..finished(End::Signal(9), "", "") };
        assert_eq!(
            reading(&trencher::WAY, &large, &asked(Discipline::Tso, "program.txt")).said,
            Said::OutOfMemory
        );
    }

    #[test]
    fn a_slow_compiler_is_no_slow_search() {
        let slow = finished(End::OutOfTime, "", "");
        assert!(matches!(preparation_failed(&slow), Some(Said::Failed(why)) if why.ends_with("out of time")));
        assert_eq!(rehearsal_failed(&slow, &asked(Discipline::Sc, "m")), Some(Said::OutOfTime));
        assert_eq!(
            (preparation_failed(&printed("")), rehearsal_failed(&printed(""), &asked(Discipline::Sc, "m"))),
            (None, None)
        );
    }

    #[test]
    fn a_crash_is_shown_with_its_signal_and_last_words() {
        let crash = said(End::Signal(11), "working\n", "");
        assert_eq!(crash, Said::Failed("ended by SIGSEGV: working".to_string()));
        assert_eq!(
            said(End::Exit(3), "", "a\nno such file\n\n"),
            Said::Failed("exit code 3: no such file".into())
        );
        assert!(matches!(said(End::TooTalkative, "", ""), Said::Failed(_)));
    }
}

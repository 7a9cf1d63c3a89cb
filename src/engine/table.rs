//! Which engines are there, and what is an engine? A new one is a file of this folder and a line in
//! [`ENGINES`]: the command line and its help read the table.
//!
//! An engine looks for the answer to one question, in turns: each goes on from where the last one ended,
//! within a budget for each kind of search. Spending a budget is no answer and no limit of the user's. Who
//! gets a turn, and when, is for `auto` to say; engines do not know each other.

use super::{Internal, Options, Subject, automata, explicit, lazy, past};
use crate::certify::Checked;
use crate::model::Program;
use crate::query::{Limit, Limits, Stats};
use crate::reach::Budget;
use std::fmt;

/// Every engine, the first to be tried first.
pub const ENGINES: &[&EngineEntry] = &[&LAZY, &EXPLICIT, &AUTOMATA, &PAST];

/// Explores under SC, and builds in delays where they could matter.
pub static LAZY: EngineEntry = lazy::ENTRY;
/// Enumerates the states of the memory model.
pub static EXPLICIT: EngineEntry = explicit::ENTRY;
/// Enumerates the states of TSO with sets of buffer contents.
pub static AUTOMATA: EngineEntry = automata::ENTRY;
/// Lets readers lag behind memory, and joins what they may still read.
pub static PAST: EngineEntry = past::ENTRY;

/// Why a program with a `membarrier` is nothing for those who do not know it.
pub(super) fn unknown_membarrier(program: &Program) -> Option<Limit> {
    let (thread, edge) = program.membarrier()?;
    let place = match edge.line {
        0 => format!("thread {}", thread.name()),
        line => format!("line {}", program.place(line)),
    };
    Some(Limit::Membarrier(place))
}

/// Something that looks for the answer to one question.
pub(crate) trait Engine<'a>: Send {
    fn name(&self) -> &'static str;

    /// Goes on for a turn.
    fn turn(&mut self, allowance: Allowance) -> Result<Turn, Internal>;

    /// What it has cost so far. An engine that begins anew with each turn tells of the last one.
    fn stats(&self) -> &Stats;

    /// From now on it has so many workers.
    fn set_workers(&mut self, workers: usize);

    /// Others of its kind that go on from where it stands by another way, one for each of the limits at most.
    fn rivals(&self, _limits: &'a [Limits]) -> Result<Vec<Box<dyn Engine<'a> + 'a>>, Internal> {
        Ok(vec![])
    }

    /// Has it been proved on the way that no SC run reaches the goal?
    fn safe_under_sc(&self) -> bool {
        false
    }
}

/// What the searches of one turn may spend, each by what it is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Allowance {
    /// To visit all states of the program itself.
    pub exhaust: Budget,
    /// To find a run that is likely to be there.
    pub hunt: Budget,
    /// To find out whether anything is missing still.
    pub ask: Budget,
}

/// What a turn came to.
#[derive(Clone, Debug)]
pub(crate) enum Turn {
    Answered(Checked),
    /// A part of the work is done, and there is more.
    Progress,
    /// A budget was spent; with the same, the next turn comes to the same.
    Spent,
}

/// An engine in the table.
pub struct EngineEntry {
    pub name: &'static str,
    /// How it looks for the answer, for the help.
    pub about: &'static str,
    /// Why it cannot be asked in this way, if that is so.
    pub(super) refuses: fn(&Options) -> Option<&'static str>,
    /// What keeps it from answering for this program and goal, if anything does.
    pub(super) blind_spot: fn(&Subject<'_>) -> Option<Limit>,
    pub(super) start: for<'a> fn(&'a Subject<'a>, &'a Options, &'a Limits) -> Box<dyn Engine<'a> + 'a>,
}

/// Whom to ask.
#[derive(Clone, Copy, Default)]
pub enum Choice {
    /// Whoever suits the question best, in turns.
    #[default]
    Auto,
    Only(&'static EngineEntry),
}

impl Choice {
    /// All that there are to choose from.
    pub fn all() -> impl Iterator<Item = Choice> {
        [Choice::Auto].into_iter().chain(ENGINES.iter().copied().map(Choice::Only))
    }

    pub fn name(self) -> &'static str {
        match self {
            Choice::Auto => "auto",
            Choice::Only(entry) => entry.name,
        }
    }

    pub fn about(self) -> &'static str {
        match self {
            Choice::Auto => "Whatever suits best",
            Choice::Only(entry) => entry.about,
        }
    }
}

impl fmt::Debug for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

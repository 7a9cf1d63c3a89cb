//! Which commands can several processes answer together, and what does each do for that? The options are here for
//! all; `joined` has what happens when they are given.

use super::terminal::Terminal;
use super::{CheckArgs, Exit, FenceArgs, OutcomesArgs, RobustArgs, SearchArgs, definitions};
#[cfg(feature = "distributed")]
use super::{check::EngineArg, fence::AimArg, joined, written::OutputArgs};
#[cfg(feature = "distributed")]
use crate::engine::{Choice, EXPLICIT, LAZY};
#[cfg(feature = "distributed")]
use crate::reach::LEFT_TO_ONE;
use clap::Args;
use std::sync::{Arc, OnceLock};

// Several processes that search together. (No doc comment: clap would take it for the help of the commands.)
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Several processes")]
pub(crate) struct HostArgs {
    /// Searches together with other processes: the file has a line `host:port` for each of them, and a line
    /// `token WORD`
    #[cfg(feature = "distributed")]
    #[arg(long, value_name = "FILE", requires = "process")]
    pub hosts: Option<std::path::PathBuf>,
    /// Which of them this one is, counted from 0. All are started with the same options otherwise, and 0 tells
    /// the answer
    #[cfg(feature = "distributed")]
    #[arg(long, value_name = "I", requires = "hosts")]
    pub process: Option<usize>,
    /// States of a search that each process visits by itself before they share it
    #[cfg(feature = "distributed")]
    #[arg(long, value_name = "N", default_value_t = LEFT_TO_ONE, requires = "hosts")]
    pub share_after: u64,
    /// Set when the processes cannot go on together.
    #[arg(skip)]
    pub lost: Arc<OnceLock<String>>,
}

/// A command that several processes can answer together.
pub(super) trait Together: Clone {
    fn search(&mut self) -> &mut SearchArgs;

    /// Why it cannot be asked of them in this way.
    #[cfg(feature = "distributed")]
    fn refusal(&self) -> Option<&'static str>;

    /// Leaves out what the first process alone writes.
    #[cfg(feature = "distributed")]
    fn write_nothing(&mut self) {
        self.search().output = OutputArgs::default();
    }
}

/// Does what is asked, together with others if they are named.
pub(super) fn run<A: Together>(args: A, run: fn(&A, &Terminal) -> Exit, terminal: &Terminal) -> Exit {
    let alone = |args, terminal: &Terminal| definitions::shared(args, A::search, run, terminal);
    #[cfg(feature = "distributed")]
    return joined::run(args, terminal, alone);
    #[cfg(not(feature = "distributed"))]
    alone(args, terminal)
}

#[cfg(feature = "distributed")]
const ONE_PROCESS: &str =
    "this is for one process; several share the searches of `--engine auto`, `lazy` and `explicit`";

impl Together for CheckArgs {
    fn search(&mut self) -> &mut SearchArgs {
        &mut self.search
    }

    #[cfg(feature = "distributed")]
    fn refusal(&self) -> Option<&'static str> {
        let searches = match self.engine {
            EngineArg::Search(Choice::Auto) => true,
            EngineArg::Search(Choice::Only(engine)) => [LAZY.name, EXPLICIT.name].contains(&engine.name),
            EngineArg::Axioms => false,
        };
        (!searches
            || self.hang
            || self.side_by_side
            || self.dve.given().is_some()
            || self.dve.ltl().is_some())
        .then_some(ONE_PROCESS)
    }

    #[cfg(feature = "distributed")]
    fn write_nothing(&mut self) {
        self.certificate = None;
        self.search.output = OutputArgs::default();
    }
}

impl Together for RobustArgs {
    fn search(&mut self) -> &mut SearchArgs {
        &mut self.search
    }

    #[cfg(feature = "distributed")]
    fn refusal(&self) -> Option<&'static str> {
        None
    }

    #[cfg(feature = "distributed")]
    fn write_nothing(&mut self) {
        self.certificate = None;
        self.search.output = OutputArgs::default();
    }
}

impl Together for FenceArgs {
    fn search(&mut self) -> &mut SearchArgs {
        &mut self.search
    }

    #[cfg(feature = "distributed")]
    fn refusal(&self) -> Option<&'static str> {
        matches!(self.aim, Some(AimArg::NoHang | AimArg::Ltl)).then_some(ONE_PROCESS)
    }

    #[cfg(feature = "distributed")]
    fn write_nothing(&mut self) {
        self.output = None;
        self.search.output = OutputArgs::default();
    }
}

impl Together for OutcomesArgs {
    fn search(&mut self) -> &mut SearchArgs {
        &mut self.search
    }

    #[cfg(feature = "distributed")]
    fn refusal(&self) -> Option<&'static str> {
        (self.engine != "explicit").then_some(ONE_PROCESS)
    }
}

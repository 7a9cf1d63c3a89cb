//! How is the answer looked for? What all searches have in common, and what belongs to one engine alone.

use super::{Choice, ExplicitOptions, LazyOptions, Pruning};
use crate::query::{Model, Reductions, Traffic};
use crate::reach::{Goals, Order, Peers};
use crate::robust::known::KnownPaths;
use crate::robust::oracle::OracleOptions;

#[derive(Clone, Debug)]
pub struct Options {
    pub model: Model,
    pub engine: Choice,
    pub lazy: LazyOptions,
    pub explicit: ExplicitOptions,
    /// States after which `auto` gives up, all searches together.
    pub effort: Option<u64>,
    pub reductions: Reductions,
    /// Whether what the program's text refutes is left out: attacks, edges that no run takes, clauses that
    /// cannot hold.
    pub pruning: Pruning,
    pub order: Order,
    pub workers: usize,
    /// The processes that share searches with this one, if there are any; then it has one worker.
    pub peers: Option<Peers>,
    /// The run that shows a violation.
    pub run: ShownRun,
    /// Whether engines, and candidates of the lazy one, run side by side with a worker each once the first
    /// round has brought no answer. Otherwise engines take turns, with all workers each.
    pub side_by_side: bool,
}

/// Which run is good enough to be shown?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShownRun {
    /// The simplest one, which takes a search of its own.
    Simplest,
    /// The one that was found, made somewhat simpler.
    Simplified,
    /// The one that was found: nobody looks at it.
    AsFound,
}

impl Default for Options {
    /// With a worker for each core.
    fn default() -> Self {
        Options::with_workers(std::thread::available_parallelism().map_or(1, |n| n.get()))
    }
}

impl Options {
    /// Whatever is usual but the number of workers, which takes the system a while to tell.
    pub fn with_workers(workers: usize) -> Self {
        Options {
            model: Model::Tso,
            engine: Choice::Auto,
            lazy: LazyOptions::default(),
            explicit: ExplicitOptions::default(),
            effort: None,
            reductions: Reductions::ALL,
            pruning: Pruning::On,
            order: Order::BreadthFirst,
            workers,
            peers: None,
            run: ShownRun::Simplest,
            side_by_side: false,
        }
    }

    /// Why the engine that was chosen cannot be asked in this way, if that is so.
    pub fn refusal(&self) -> Option<&'static str> {
        match self.engine {
            Choice::Auto => None,
            Choice::Only(entry) => (entry.refuses)(self),
        }
    }

    /// What has been sent to other processes so far, if there are any.
    pub(super) fn traffic(&self) -> Option<Traffic> {
        self.peers.as_ref().map(Peers::traffic)
    }

    pub(super) fn oracle(&self, goals: Goals) -> OracleOptions {
        OracleOptions {
            pruning: self.pruning,
            known: KnownPaths::default(),
            reductions: self.reductions,
            workers: self.workers,
            peers: self.peers.clone(),
            goals,
        }
    }
}

//! The program as a machine: its states under SC or TSO, and as few steps between them as tell the truth.
//!
//! `compile` prepares the program. `core` is what machines share: what a step does, how a state is written
//! down, what the goal says of it, how a run is told. `partial_order` finds steps that can be taken alone and
//! orders that need not be tried. `automorphism` finds threads that may change places, and `canonical` picks
//! one state of those that differ by that alone. On top of these are the machines, which say which steps
//! there are from a state: `eager` takes each where it stands, and `movers` only where it begins to matter. A
//! further machine is a file beside them, and a case of [`ProgramMachine`], which picks the one that suits.
//!
//! Machines know nothing of frontiers and workers. Every reduction has a switch, so that tests can compare
//! with and without.

mod automorphism;
mod blocks;
mod canonical;
mod compile;
mod core;
pub mod dve;
mod eager;
mod movers;
mod partial_order;
mod sparing;

// For the machines that other modules build on these.
pub(crate) use self::core::{Core, Ending, Pending, Record, Taken, Work, renamed};
pub(crate) use canonical::{Carried, Names, Renamed, Renaming, Said};
pub(crate) use compile::{CEdge, CInstr, Node, Stores, bits, faint, lock_slot, watched};
pub(crate) use eager::{EagerMachine, EagerScratch};
pub use sparing::SparingMachine;

pub use blocks::may_hold_in_block;

use crate::model::Program;
use crate::query::{Action, Goal, Limit, Limits, Model, Reductions};
use crate::reach::{Look, Machine, Sink, Sleep, Wanted};
use movers::{MoverMachine, MoverScratch};

/// The memory model that a machine follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryModel {
    Sc,
    /// With buffers of at most so many entries.
    Tso(Option<usize>),
}

impl MemoryModel {
    pub fn model(self) -> Model {
        match self {
            MemoryModel::Sc => Model::Sc,
            MemoryModel::Tso(_) => Model::Tso,
        }
    }
}

/// The machine that suits a program best.
pub struct ProgramMachine(Suited);

enum Suited {
    Eager(EagerMachine),
    Movers(MoverMachine),
}

/// One worker's space, for whichever machine it is.
#[derive(Default)]
pub struct ProgramScratch {
    eager: EagerScratch,
    movers: MoverScratch,
    work: Work,
}

impl ProgramMachine {
    pub fn new(
        program: &Program,
        goal: &Goal,
        model: MemoryModel,
        reductions: Reductions,
        limits: &Limits,
    ) -> Result<ProgramMachine, Limit> {
        Ok(ProgramMachine(match movers::suit(program, model, reductions) {
            true => Suited::Movers(MoverMachine::new(program, goal, model, reductions, limits)?),
            false => Suited::Eager(EagerMachine::new(program, goal, model, reductions, limits)?),
        }))
    }

    fn core(&self) -> &Core {
        match &self.0 {
            Suited::Eager(machine) => &machine.core,
            Suited::Movers(machine) => &machine.core,
        }
    }

    fn core_mut(&mut self) -> &mut Core {
        match &mut self.0 {
            Suited::Eager(machine) => &mut machine.core,
            Suited::Movers(machine) => &mut machine.core,
        }
    }

    /// The same machine, for a search that is best first.
    pub fn ranking(mut self) -> ProgramMachine {
        self.core_mut().rank();
        self
    }

    /// The same machine, for a search of clauses alone: a thread that has gone wrong just stands still.
    pub fn ignoring_errors(mut self) -> ProgramMachine {
        self.core_mut().ignore_errors();
        self
    }

    /// Words of a packed state, without the contents of buffers.
    pub fn words(&self) -> usize {
        self.core().words()
    }

    /// Did a buffer want to grow past its bound? Then an exhausted search is no proof.
    pub fn overflowed(&self) -> bool {
        self.core().overflowed()
    }

    /// Was a state left out because it needs too many words? Then an exhausted search is no proof.
    pub fn too_large(&self) -> bool {
        self.core().too_large()
    }

    /// How many threads may change places with others.
    pub fn interchangeable(&self) -> usize {
        self.core().interchangeable()
    }

    pub fn longest_buffer(&self) -> usize {
        self.core().longest_buffer()
    }

    /// What becomes of a state for whoever gathers final ones.
    pub(crate) fn ending(&self, scratch: &mut ProgramScratch, state: &[u64]) -> Ending {
        self.core().ending(&mut scratch.work, state)
    }
}

impl Machine for ProgramMachine {
    type Scratch = ProgramScratch;
    type Step = Action;

    fn scratch(&self) -> ProgramScratch {
        ProgramScratch::default()
    }

    fn initial(&self, scratch: &mut ProgramScratch, sink: &mut impl Sink) {
        match &self.0 {
            Suited::Eager(machine) => machine.initial(&mut scratch.eager, sink),
            Suited::Movers(machine) => machine.initial(&mut scratch.movers, sink),
        }
    }

    fn look(&self, scratch: &mut ProgramScratch, state: &[u64]) -> Look {
        self.core().look(&mut scratch.work, state)
    }

    #[inline]
    fn expand(
        &self,
        scratch: &mut ProgramScratch,
        state: &[u64],
        wanted: Wanted,
        sleep: Sleep,
        sink: &mut impl Sink,
    ) {
        match &self.0 {
            Suited::Eager(machine) => machine.expand(&mut scratch.eager, state, wanted, sleep, sink),
            Suited::Movers(machine) => machine.expand(&mut scratch.movers, state, wanted, sleep, sink),
        }
    }

    fn knowledge(&self) -> Vec<u64> {
        self.core().knowledge()
    }

    fn learn(&self, knowledge: &[u64]) {
        self.core().learn(knowledge);
    }

    fn trace(&self, line: &[Vec<u64>], limits: &Limits) -> Result<Vec<Action>, Limit> {
        match &self.0 {
            Suited::Eager(machine) => machine.trace(line, limits),
            Suited::Movers(machine) => machine.trace(line, limits),
        }
    }
}

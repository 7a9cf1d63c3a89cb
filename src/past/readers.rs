//! The question whether lagging readers see something forbidden, from the program to the answer at a level.

use super::concretise::{Concrete, concretise};
use super::ideal::Level;
use super::machine::{Keep, LaggingMachine};
use super::search::{Cover, Reached};
use crate::model::{Program, ThreadId};
use crate::query::{Action, Goal, Limit, Limits, Reductions};
use crate::reach::Budget;

/// Lagging readers of a program.
pub struct Readers<'a> {
    pub(super) program: &'a Program,
    pub(super) machine: LaggingMachine,
    pub(super) search: Cover,
}

/// What they see.
#[derive(Debug)]
pub enum Seen {
    /// Nothing forbidden: the program is safe.
    Nothing,
    /// Something forbidden, by this run of TSO.
    Forbidden(Vec<Action>),
    /// Something that this thread would not have seen, had its past not been approximated.
    Spurious(ThreadId),
    /// The budget was spent first.
    Spent,
}

impl<'a> Readers<'a> {
    /// All threads begin with the same level.
    pub fn new(
        program: &'a Program,
        goal: &Goal,
        level: Level,
        reductions: Reductions,
        contents: Keep,
        limits: &Limits,
    ) -> Result<Readers<'a>, Limit> {
        let machine = LaggingMachine::new(program, goal, reductions, contents, limits)?;
        let search = Cover::new(&machine, vec![level; program.threads().len()], 0);
        Ok(Readers { program, machine, search })
    }

    /// Goes on with the search. The budget is for all states so far, at coarser levels too.
    pub fn look(&mut self, limits: &Limits, budget: Budget) -> Result<Seen, Limit> {
        Ok(match self.search.run(&self.machine, limits, budget)? {
            Reached::Nothing => Seen::Nothing,
            Reached::Spent => Seen::Spent,
            Reached::Goal(goal) => {
                match concretise(self.program, &self.machine, &mut self.search, goal, limits)? {
                    Concrete::Run(actions) => Seen::Forbidden(actions),
                    Concrete::Spurious(thread) => Seen::Spurious(thread),
                }
            }
        })
    }

    /// Begins anew with less approximation of the thread's past, and of those that may change places with it.
    pub fn refine(&mut self, thread: ThreadId) {
        let mut levels = self.search.levels.clone();
        let alike = self.machine.core.alike(thread.index());
        levels.iter_mut().enumerate().filter(|(t, _)| alike.contains(t)).for_each(|(_, level)| {
            *level = level.refined();
        });
        self.search = Cover::new(&self.machine, levels, self.search.cost());
    }

    /// States stored at these levels.
    pub fn states(&self) -> u64 {
        self.search.states.len() as u64
    }

    pub fn transitions(&self) -> u64 {
        self.search.transitions
    }

    /// Different pasts at these levels.
    pub fn pasts(&self) -> usize {
        self.search.table.len()
    }

    pub fn bytes(&self) -> usize {
        self.search.bytes()
    }

    /// Words of what is packed of a state.
    pub fn words(&self) -> usize {
        self.machine.core.words()
    }

    /// How many threads may change places with others.
    pub fn interchangeable(&self) -> usize {
        self.machine.core.interchangeable()
    }
}

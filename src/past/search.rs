//! Can a goal be reached by lagging readers, as far as a level tells? A breadth-first search that keeps, of
//! all states with the same locations, registers, memory and lock, only those whose pasts are not below
//! another's: an *antichain*.
//!
//! Steps are monotone: what a state can do, every state above it can do too. Joining sets of a past leads to
//! a state above. So if the search ends, the states that are left cover all that are reachable, at every
//! level; if none of them is a goal, none is reachable. It ends for finite data at every level but the exact
//! one: there are finitely many sets, and each occurs so many times at most between two marks. A goal that it
//! finds may be due to what was joined; `concretise` tells.
//! States that are covered stay in memory, for others were found from them.

use super::ideal::Level;
use super::interned::Interned;
use super::machine::LaggingMachine;
use super::phantoms::goal_inside;
use super::step::{Flow, Space, StepTools, Stop, Successors};
use super::table::{PastId, PastTable, Pasts};
use crate::machine::{Renaming, Work};
use crate::query::{Limit, Limits};
use crate::reach::Budget;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

/// The number of a stored state.
pub(crate) type StateId = u32;

const NOBODY: u32 = u32::MAX;
/// Steps that it takes to store a state.
const STATE: usize = 64;
/// Places that are run through count as much as a state.
const PLACES: u64 = 16;

/// A search, which may be interrupted and go on.
pub(crate) struct Cover {
    pub table: PastTable,
    pub levels: Vec<Level>,
    pub states: States,
    pub transitions: u64,
    space: Space,
    base: Work,
    renaming: Renaming,
    /// The next state to be expanded; `None` before the first is stored.
    next: Option<StateId>,
    /// What searches at coarser levels have cost, in states.
    before: u64,
}

/// What a search came to.
pub(crate) enum Reached {
    /// All that is reachable is covered, and there is no goal.
    Nothing,
    Goal(StateId),
    /// The budget is spent.
    Spent,
}

/// The states that were stored, in this order.
#[derive(Default)]
pub(crate) struct States {
    /// Locations, registers, memory and lock, packed.
    keys: Interned<u64>,
    /// Per key the newest state that is not covered.
    newest: Vec<StateId>,
    all: Vec<Kept>,
    pasts: Vec<PastId>,
    threads: usize,
}

struct Kept {
    key: u32,
    parent: StateId,
    /// The next older state with the same key that is not covered.
    older: StateId,
    covered: bool,
}

impl Cover {
    /// Searches before it have cost so many states.
    pub(crate) fn new(machine: &LaggingMachine, levels: Vec<Level>, before: u64) -> Cover {
        Cover {
            table: PastTable::new(machine.core.code.cells),
            levels,
            states: States { threads: machine.core.threads(), ..States::default() },
            transitions: 0,
            space: Space::default(),
            base: Work::default(),
            renaming: Renaming::default(),
            next: None,
            before,
        }
    }

    /// Goes on until a goal is found, nothing is left, or the budget is spent, which is for all states so far, those of
    /// searches before it too.
    pub(crate) fn run(
        &mut self,
        machine: &LaggingMachine,
        limits: &Limits,
        budget: Budget,
    ) -> Result<Reached, Limit> {
        loop {
            let count = self.cost();
            limits.progress.store(count, Ordering::Relaxed);
            if let Some(most) = limits.states.filter(|&most| count > most) {
                return Err(Limit::States(most));
            }
            if budget.spent_by(count).is_some() {
                return Ok(Reached::Spent);
            }
            let most = limits.states.into_iter().chain(budget.spent_by(u64::MAX)).min();
            let left = most.map_or(u64::MAX, |most| PLACES * (1 + most - count));
            self.space.most = self.space.passed.saturating_add(left);
            match self.step(machine, limits) {
                Ok(None) => {}
                Ok(Some(reached)) => return Ok(reached),
                // The state is expanded once more, if ever.
                Err(Stop::TooFar) => self.next = self.next.map(|next| next - 1),
                Err(Stop::Limit(limit)) => return Err(limit),
            }
        }
    }

    /// Expands the next state, or begins with the first one.
    fn step(&mut self, machine: &LaggingMachine, limits: &Limits) -> Result<Option<Reached>, Stop> {
        let Cover { table, levels, states, transitions, space, base, renaming, next, .. } = self;
        let parent = next.unwrap_or(NOBODY);
        let mut storing = Storing { machine, limits, states, renaming, parent, goal: None, count: 0 };
        if parent == NOBODY {
            *next = Some(0);
            let (mut work, mut pasts, ()) = machine.start();
            let _ = storing.state(table, &mut work, &mut pasts, &())?;
        } else {
            let Some(state) = storing.states.all.get(parent as usize) else {
                return Ok(Some(Reached::Nothing));
            };
            *next = Some(parent + 1);
            if state.covered {
                return Ok(None);
            }
            machine.core.unpack(storing.states.key(parent), base);
            let mut pasts = storing.states.pasts(parent).to_vec();
            let mut twins = Vec::new();
            let carried = Pasts { table, of: &mut pasts };
            machine.core.twins_with(base, &carried, storing.renaming, &mut twins);
            for t in (0..pasts.len()).filter(|t| twins.iter().all(|(later, _)| later != t)) {
                let of = (&*base, &pasts[..]);
                let tools = StepTools { space, table, levels, limits };
                if machine.expand(tools, of, t, &mut storing)?.is_break() {
                    break;
                }
            }
        }
        *transitions += storing.count;
        Ok(storing.goal.map(Reached::Goal))
    }

    /// What it has cost, in states, and those before it.
    pub(crate) fn cost(&self) -> u64 {
        self.before + self.states.len() as u64 + self.space.passed / PLACES
    }

    /// Bytes that states and pasts take.
    pub(crate) fn bytes(&self) -> usize {
        self.states.bytes() + self.table.bytes()
    }
}

/// Stores what follows a state.
struct Storing<'a> {
    machine: &'a LaggingMachine,
    limits: &'a Limits,
    states: &'a mut States,
    renaming: &'a mut Renaming,
    parent: StateId,
    goal: Option<StateId>,
    /// Transitions.
    count: u64,
}

impl Successors<()> for Storing<'_> {
    fn state(&mut self, table: &mut PastTable, work: &mut Work, pasts: &mut [PastId], (): &()) -> Flow {
        let (machine, core) = (self.machine, &self.machine.core);
        self.limits.spend(STATE)?;
        self.count += 1;
        if core.is_hopeless(work) {
            return Ok(ControlFlow::Continue(()));
        }
        core.canonicalise_with(work, &mut Pasts { table, of: pasts }, self.renaming);
        let mut packed = Vec::new();
        core.pack(work, &mut packed);
        let Some(state) = self.states.insert(table, &packed, pasts, self.parent) else {
            return Ok(ControlFlow::Continue(()));
        };
        let goal = match machine.looks_inside && !core.lock_is_free(work) {
            true => goal_inside::<()>(machine, table, work, pasts, self.limits)?.is_some(),
            false => core.reaches_goal(work),
        };
        if goal {
            self.goal = Some(state);
            return Ok(ControlFlow::Break(()));
        }
        Ok(ControlFlow::Continue(()))
    }
}

impl States {
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn key(&self, state: StateId) -> &[u64] {
        self.keys.get(self.all[state as usize].key)
    }

    pub(crate) fn pasts(&self, state: StateId) -> &[PastId] {
        &self.pasts[state as usize * self.threads..][..self.threads]
    }

    /// The states from the first on that lead to this one, with it.
    pub(crate) fn line(&self, state: StateId) -> Vec<StateId> {
        let before = |&state: &StateId| Some(self.all[state as usize].parent).filter(|&p| p != NOBODY);
        let mut line: Vec<StateId> = std::iter::successors(Some(state), before).collect();
        line.reverse();
        line
    }

    /// Those that are not covered by others.
    pub(crate) fn living(&self) -> impl Iterator<Item = StateId> {
        (0..self.all.len() as StateId).filter(|&state| !self.all[state as usize].covered)
    }

    /// Adds a state unless it is covered; what it covers itself is taken out.
    fn insert(
        &mut self,
        table: &mut PastTable,
        packed: &[u64],
        pasts: &[PastId],
        parent: StateId,
    ) -> Option<StateId> {
        let (key, new) = self.keys.insert(packed);
        if new {
            self.newest.push(NOBODY);
        }
        let mut other = self.newest[key as usize];
        while other != NOBODY {
            if is_below(table, pasts, self.pasts(other)) {
                return None;
            }
            other = self.all[other as usize].older;
        }
        let state = self.all.len() as StateId;
        self.uncover(table, key, pasts);
        let older = self.newest[key as usize];
        self.newest[key as usize] = state;
        self.all.push(Kept { key, parent, older, covered: false });
        self.pasts.extend_from_slice(pasts);
        Some(state)
    }

    /// Takes out the states with the key that are below these pasts.
    fn uncover(&mut self, table: &mut PastTable, key: u32, pasts: &[PastId]) {
        let (mut last, mut other) = (NOBODY, self.newest[key as usize]);
        while other != NOBODY {
            let older = self.all[other as usize].older;
            if is_below(table, self.pasts(other), pasts) {
                self.all[other as usize].covered = true;
                match last {
                    NOBODY => self.newest[key as usize] = older,
                    last => self.all[last as usize].older = older,
                }
            } else {
                last = other;
            }
            other = older;
        }
    }

    fn bytes(&self) -> usize {
        self.keys.bytes()
            + self.newest.capacity() * size_of::<StateId>()
            + self.all.capacity() * size_of::<Kept>()
            + self.pasts.capacity() * size_of::<PastId>()
    }
}

/// Thread by thread.
#[inline]
fn is_below(table: &mut PastTable, low: &[PastId], high: &[PastId]) -> bool {
    low.iter().zip(high).all(|(&low, &high)| table.is_below(low, high))
}

//! Why is the program safe, in terms that others can check? The states that a search has left, which cover all
//! that are reachable, are an inductive invariant.
//!
//! The search is one of the user's program as it is, without the reductions that a checker would have to know.
//! What remains is what the invariant itself says: where threads stop, which registers are live and which
//! cells relevant, and which threads may change places. Not here: checking it (`certify::invariant`).

use super::ideal::{Factor, Level};
use super::machine::Keep;
use super::readers::{Readers, Seen};
use super::table::{IN_STEP, PastId, PastTable};
use crate::analysis::liveness::Live;
use crate::certify::invariant::{Ideal, Interchangeable, Invariant, Members, Past, Place, STUCK};
use crate::machine::{Work, lock_slot, watched};
use crate::model::{Addr, Loc, Program, Reg, ThreadId, Value};
use crate::query::{Goal, Limit, Limits, Reductions};
use crate::reach::Budget;
use std::collections::HashMap;

/// Whether one state may stand for those in which threads have changed places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interchange {
    Allowed,
    Not,
}

/// An inductive invariant without the goal, if the program is safe; `None` if it is not.
pub fn prove(
    program: &Program,
    goal: &Goal,
    exchange: Interchange,
    limits: &Limits,
) -> Result<Option<Invariant>, Limit> {
    let reductions = Reductions {
        steps: true,
        liveness: true,
        packing: true,
        symmetry: exchange == Interchange::Allowed,
        ..Reductions::NONE
    };
    let mut readers = Readers::new(program, goal, Level::Joined, reductions, Keep::All, limits)?;
    loop {
        match readers.look(limits, Budget::UNLIMITED)? {
            Seen::Nothing => return readers.invariant(goal, limits).map(Some),
            Seen::Forbidden(_) => return Ok(None),
            Seen::Spurious(thread) => readers.refine(thread),
            Seen::Spent => unreachable!("what has no bound cannot be spent"),
        }
    }
}

impl Readers<'_> {
    /// The states that cover all others, after a search that has seen nothing.
    fn invariant(&self, goal: &Goal, limits: &Limits) -> Result<Invariant, Limit> {
        let live = Live::of(self.program, &watched(self.program, goal), |_, _| false, limits)?;
        let mut invariant = Invariant {
            places: self.program.thread_ids().map(|t| self.places(t, &live)).collect(),
            symmetry: self.exchanges(),
            pasts: vec![Past::default()],
            states: Vec::new(),
        };
        let mut numbers = HashMap::from([(IN_STEP, 0)]);
        let mut work = Work::default();
        for state in self.search.states.living() {
            limits.spend(16 + self.program.cells())?;
            self.machine.core.unpack(self.search.states.key(state), &mut work);
            let number = |&past: &PastId| {
                *numbers.entry(past).or_insert_with(|| {
                    invariant.pasts.push(told(&self.search.table, past));
                    invariant.pasts.len() as u32 - 1
                })
            };
            let pasts = self.search.states.pasts(state).iter().map(number).collect();
            invariant.states.push(self.ideal(&work, pasts, &invariant.places));
        }
        Ok(invariant)
    }

    fn places(&self, t: ThreadId, live: &Live) -> Vec<Place> {
        let (code, relevance) = (&self.machine.core.code.threads[t.index()], &self.machine.relevance);
        let place = |loc: Loc| Place {
            stop: code.nodes[code.node_of[loc.index()] as usize].scheduling_point,
            live: live.at(t, loc).iter().map(|r| Reg(r as u16)).collect(),
            relevant: relevance.cells(relevance.number(t, loc)).list.iter().map(|&c| Addr(c)).collect(),
        };
        self.program.thread(t).locations().map(place).collect()
    }

    fn ideal(&self, work: &Work, pasts: Vec<u32>, places: &[Vec<Place>]) -> Ideal {
        let code = &self.machine.core.code;
        let at = |t: ThreadId| {
            let node = work.vals[t.index()] as u32;
            let loc = code.threads[t.index()].node_of.iter().position(|&n| n == node);
            loc.map_or(STUCK, |loc| Loc(loc as u32))
        };
        let registers = |t: ThreadId| {
            let (values, loc) = (&work.vals[code.registers(t.index())], at(t));
            let mut registers = vec![0; values.len()];
            match loc {
                // Where nothing is live but what the goal looks at, nothing else has been kept.
                STUCK => {
                    let dead = &code.threads[t.index()].nodes[work.vals[t.index()] as usize].dead;
                    let kept = |r: &usize| {
                        let field = code.bounds[code.registers(t.index()).start + r].is_some();
                        field && dead[r / 64] >> (r % 64) & 1 == 0
                    };
                    (0..values.len()).filter(kept).for_each(|r| registers[r] = values[r]);
                }
                _ => {
                    let live = &places[t.index()][loc.index()].live;
                    live.iter().for_each(|r| registers[r.index()] = values[r.index()]);
                }
            }
            registers
        };
        let owner = work.vals[lock_slot(pasts.len())];
        Ideal {
            at: self.program.thread_ids().map(at).collect(),
            registers: self.program.thread_ids().map(registers).collect(),
            memory: work.vals[code.memory..].to_vec(),
            lock: (owner != 0).then(|| ThreadId((owner - 1) as u16)),
            pasts,
        }
    }

    /// Which threads have changed places.
    fn exchanges(&self) -> Interchangeable {
        let core = &self.machine.core;
        let (groups, sorts) = core.groups();
        if groups.is_empty() {
            return Interchangeable::default();
        }
        let registers = |t: usize| sorts[core.code.registers(t)].to_vec();
        Interchangeable {
            register_sorts: (0..core.threads()).map(registers).collect(),
            cell_sorts: sorts[core.code.memory..].to_vec(),
            groups: groups
                .into_iter()
                .map(|group| Members {
                    threads: group.members.iter().map(|&t| ThreadId(t as u16)).collect(),
                    cells: group.cells.iter().map(|cs| cs.iter().map(|&c| Addr(c)).collect()).collect(),
                    values: group.values,
                })
                .collect(),
        }
    }
}

/// A past as others know it.
fn told(table: &PastTable, past: PastId) -> Past {
    let pair = |pair: u32| -> (Addr, Value) {
        let (cell, value) = table.sets().value_of(pair);
        (Addr(cell), value)
    };
    let mut told = Past { segments: vec![vec![]], marks: vec![] };
    for factor in table.factors(past) {
        match *factor {
            Factor::Mark(own) => {
                told.marks.push(pair(own));
                told.segments.push(vec![]);
            }
            Factor::Set(set) => {
                let mut pairs: Vec<(Addr, Value)> = table.sets().get(set).iter().map(|&p| pair(p)).collect();
                pairs.sort_unstable();
                told.segments.last_mut().expect("there is one").push(pairs);
            }
        }
    }
    told
}

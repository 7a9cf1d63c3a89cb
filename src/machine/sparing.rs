//! The sparing machine: TSO with at most so many delayed stores, for runs that people read.
//!
//! A store is *delayed* if a later load of its own thread overtakes it: the load reads memory, or an older
//! store of the buffer, while the store still waits. Every run can be put in an order in which a store that is
//! not delayed reaches memory at once, from an empty buffer: nothing that its thread does until then touches
//! memory, so all of it can be done later, right before the store is flushed. That takes no more switches
//! between threads and no more events. So it is enough to decide of each store whether it is delayed, and the
//! states are those of SC but for the few stores that wait: delay-bounded exploration `[EmmiQadeerRakamaric11]`
//! with the delays of TSO. Where memory is held by a block, a goal counts with stores in the buffers that are
//! frozen; these are taken for delayed ones.
//!
//! A step is one action and, where local steps are joined, those after it; it costs a switch if another thread
//! took the last one, and its events. No order of steps is left out, for the number of switches is what is
//! minimised. Joined steps are few, but count local steps that may turn out not to matter, and those at the
//! beginning without a switch.

use super::MemoryModel;
use super::compile::{CInstr, Stores};
use super::core::{Canonical, Core, Record, Taken, Work, renamed};
use super::partial_order::beginning;
use crate::model::Program;
use crate::query::{Act, Action, Goal, Limit, Limits, Reductions};
use crate::reach::{Outlook, Price, Priced};

pub struct SparingMachine {
    core: Core,
    /// Stores that may be delayed.
    delays: usize,
    /// Threads that may move, if not all.
    threads: Option<u32>,
}

#[derive(Default)]
pub struct SparingScratch {
    base: Work,
    work: Work,
    canonical: Canonical,
}

/// What a state has beside those of other machines, in its last words.
#[derive(Clone, Copy, Default)]
struct Past {
    /// The thread that took the last step.
    last: Option<usize>,
    /// Stores that have been delayed.
    delays: usize,
    /// The threads that have moved, if not all may.
    moved: u64,
}

impl Past {
    const WORDS: usize = 2;

    /// A stored state without its past, and that.
    fn split(state: &[u64]) -> (&[u64], Past) {
        let (state, past) = state.split_at(state.len() - Past::WORDS);
        let last = (past[0] as u32 as usize).checked_sub(1);
        (state, Past { last, delays: (past[0] >> 32) as usize, moved: past[1] })
    }

    fn words(self) -> [u64; Past::WORDS] {
        [(self.delays as u64) << 32 | self.last.map_or(0, |t| t as u64 + 1), self.moved]
    }

    /// The same where each thread is called by the place of its old name.
    fn renamed(self, was: &[usize]) -> Past {
        let last = self.last.and_then(|last| was.iter().position(|&old| old == last));
        let moved = was.iter().enumerate().filter(|(_, old)| self.moved >> (**old).min(63) & 1 != 0);
        let moved = moved.fold(0, |set, (t, _)| set | 1 << t);
        Past { last, moved, ..self }
    }
}

/// How many decisions there are.
#[derive(Clone, Default)]
struct Tally(u32);

impl Record for Tally {
    const WANTED: bool = true;

    fn push(&mut self, _: usize, _: Act) {
        self.0 += 1;
    }
}

impl SparingMachine {
    /// For runs of such a memory model; no store is delayed at first.
    pub fn new(
        program: &Program,
        goal: &Goal,
        model: MemoryModel,
        reductions: Reductions,
        limits: &Limits,
    ) -> Result<SparingMachine, Limit> {
        let told = Reductions { por: false, silent: false, repeats: false, faint: false, ..reductions };
        let core = Core::new(program, goal, model, Stores::Scheduled, told, limits)?;
        Ok(SparingMachine { core, delays: 0, threads: None })
    }

    /// From now on, so many stores may be delayed.
    pub fn delay(&mut self, stores: usize) {
        self.delays = stores;
    }

    /// From now on, only so many threads may move, whichever they are. Programs of very many threads have no
    /// such bound.
    pub fn restrict(&mut self, threads: Option<u32>) {
        self.threads = threads.filter(|_| self.core.threads() < u64::BITS as usize);
    }

    /// The decisions along a line of states, each of which follows from the one before.
    pub fn trace(&self, line: &[Vec<u64>], limits: &Limits) -> Result<Vec<Action>, Limit> {
        let mut scratch = SparingScratch::default();
        let (mut work, mut actions): (Work, Vec<Action>) = beginning(&self.core);
        self.core.canonicalise(&mut work, &mut scratch.canonical.renaming);
        // Per thread of the state, the thread of the run.
        let mut names = scratch.canonical.renaming.was.clone();
        for pair in line.windows(2) {
            limits.spend(1 + self.core.threads())?;
            let mut found = None;
            self.successors(&mut scratch, &pair[0], |to, _, record: &Vec<Action>, was| {
                if found.is_none() && *to == pair[1][..] {
                    found = Some((record.clone(), was.to_vec()));
                }
            });
            let (steps, was) = found.expect("a state of the line follows from the one before");
            actions.extend(steps.into_iter().map(|action| renamed(action, &names)));
            names = was.into_iter().map(|t| names[t]).collect();
        }
        Ok(actions)
    }

    /// All states that follow, each with whether threads were switched, what led there, and per thread which
    /// one it was before.
    fn successors<R: Record>(
        &self,
        scratch: &mut SparingScratch,
        state: &[u64],
        mut done: impl FnMut(&[u64], bool, &R, &[usize]),
    ) {
        let core = &self.core;
        let (state, past) = Past::split(state);
        let SparingScratch { base, work, canonical } = scratch;
        core.unpack(state, base);
        for t in (0..core.threads()).filter(|&t| self.may_move(past, t)) {
            let moved = self.threads.map_or(0, |_| past.moved | 1 << t);
            let switched = past.last.is_some_and(|last| last != t);
            let mut finish = |work: &mut Work, mut record: R, delays: usize| {
                core.run(work, t, &mut record);
                let past = Past { last: Some(t), delays: past.delays + delays, moved };
                if self.pack(work, canonical, past) {
                    done(&canonical.packed, switched, &record, &canonical.renaming.was);
                }
            };
            for edge in &core.node(base, t).edges {
                for choice in edge.instr.choices() {
                    work.copy(base, t);
                    if core.take(work, t, edge, choice) == Taken::No {
                        continue;
                    }
                    let mut record = R::default();
                    record.push(t, Act::Step { edge: edge.id, choice });
                    let waits = matches!(edge.instr, CInstr::Store { .. }) && work.has_pending(t);
                    if !waits || core.is_trapped(work, t) {
                        finish(work, record, 0);
                        continue;
                    }
                    let mut at_once = work.clone();
                    if past.delays < self.delays {
                        finish(work, record.clone(), 1);
                    }
                    if !base.has_pending(t) && core.flush(&mut at_once, t) == Taken::Yes {
                        record.push(t, Act::Flush);
                        finish(&mut at_once, record, 0);
                    }
                }
            }
            if base.has_pending(t) {
                work.copy(base, t);
                if core.flush(work, t) == Taken::Yes {
                    let mut record = R::default();
                    record.push(t, Act::Flush);
                    finish(work, record, 0);
                }
            }
        }
    }

    fn may_move(&self, past: Past, t: usize) -> bool {
        self.threads.is_none_or(|most| past.moved >> t & 1 != 0 || past.moved.count_ones() < most)
    }

    /// Writes the state down in the form in which it is stored, unless no goal can follow it.
    fn pack(&self, work: &mut Work, canonical: &mut Canonical, past: Past) -> bool {
        if self.core.reductions.prune && self.core.has_no_hope(work) {
            return false;
        }
        let Canonical { packed, renaming } = canonical;
        self.core.canonicalise(work, renaming);
        self.core.pack(work, packed);
        packed.extend(past.renamed(&renaming.was).words());
        true
    }
}

impl Priced for SparingMachine {
    type Scratch = SparingScratch;

    fn initial(&self, scratch: &mut SparingScratch, found: &mut impl FnMut(&[u64], Price)) {
        let (mut work, Tally(events)) = beginning(&self.core);
        if self.pack(&mut work, &mut scratch.canonical, Past::default()) {
            found(&scratch.canonical.packed, Price(0, events));
        }
    }

    fn expand(&self, scratch: &mut SparingScratch, state: &[u64], found: &mut impl FnMut(&[u64], Price)) {
        self.successors(scratch, state, |to, switched, Tally(events), _| {
            found(to, Price(u32::from(switched), *events))
        });
    }

    fn outlook(&self, scratch: &mut SparingScratch, state: &[u64]) -> Outlook {
        let SparingScratch { work, .. } = scratch;
        let (state, past) = Past::split(state);
        self.core.unpack(state, work);
        if self.core.reaches_goal(work) {
            return Outlook::Goal;
        }
        let switches = self.core.switches_left(work, past.last);
        Outlook::AtLeast(Price(switches, self.core.events_left(work)))
    }
}

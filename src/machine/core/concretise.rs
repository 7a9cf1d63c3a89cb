//! Which decisions lead along a line of stored states? The machine's steps are taken again, and told this
//! time.
//!
//! Stored states are representatives and normal forms, so one step between two of them is several decisions,
//! perhaps in other names. `plainly` tells them as decisions of a machine that buffers every store: silent
//! ones, which the search leaves out of buffers, are flushed, and a loop whose store entered as an
//! accelerated entry is gone round as often as that takes.

use super::super::compile::CInstr;
use super::{Canonical, Core, Pending, Record, Work, enter, leave};
use crate::model::{EdgeId, ThreadId, Value};
use crate::query::{Act, Action, Limit, Limits};
use crate::reach::Machine;
use std::collections::VecDeque;
use std::ops::ControlFlow;

/// What it costs to expand a state, in steps.
const EXPANSION: usize = 500;

/// A decision of the search.
#[derive(Clone, Copy)]
pub(in super::super) struct Decision {
    action: Action,
    /// The store enters the buffer as an accelerated entry, or the flush leaves more of the same there.
    accelerated: bool,
}

impl Record for Vec<Decision> {
    const WANTED: bool = true;

    fn push(&mut self, thread: usize, act: Act) {
        let action = Action { thread: ThreadId(thread as u16), act };
        Vec::push(self, Decision { action, accelerated: false });
    }

    fn push_accelerated(&mut self, thread: usize, act: Act) {
        let action = Action { thread: ThreadId(thread as u16), act };
        Vec::push(self, Decision { action, accelerated: true });
    }
}

/// What telling a run needs of a machine beyond the core: its steps, taken again.
pub(in super::super) trait Retold: Machine {
    fn core(&self) -> &Core;

    /// The normal form of the initial state, and what leads to it.
    fn beginning(&self) -> (Work, Vec<Decision>);

    /// Every state that follows a stored one, before it is made canonical, and what leads to it.
    fn retell(
        &self,
        scratch: &mut Self::Scratch,
        from: &[u64],
        done: impl FnMut(&mut Work, &Vec<Decision>) -> ControlFlow<()>,
    );

    /// The same decisions with the local steps after each of them, if `retell` leaves these out.
    fn in_full(&self, _from: &[u64], decisions: Vec<Decision>) -> Vec<Decision> {
        decisions
    }
}

/// The decisions along a line of stored states, and which thread is which in the last of them: per thread
/// there, the thread of the run. Stored states are representatives, so every step may give the threads other
/// names.
pub(in super::super) fn walk<M: Retold>(
    machine: &M,
    line: &[Vec<u64>],
    limits: &Limits,
) -> Result<(Vec<Action>, Vec<usize>), Limit> {
    let core = machine.core();
    let (mut work, mut decisions) = machine.beginning();
    let (mut scratch, mut canonical) = (machine.scratch(), Canonical::default());
    core.canonicalise(&mut work, &mut canonical.renaming);
    let mut names = canonical.renaming.was.clone();
    for pair in line.windows(2) {
        limits.spend(EXPANSION)?;
        let (steps, was) = step(machine, &mut scratch, &mut canonical, &pair[0], &pair[1]);
        decisions.extend(steps.into_iter().map(|d| Decision { action: renamed(d.action, &names), ..d }));
        names = was.into_iter().map(|t| names[t]).collect();
    }
    Ok((core.plainly(&decisions, limits)?, names))
}

/// The decisions that lead from one stored state to the next, and per thread of the next which one it was
/// before.
fn step<M: Retold>(
    machine: &M,
    scratch: &mut M::Scratch,
    canonical: &mut Canonical,
    from: &[u64],
    to: &[u64],
) -> (Vec<Decision>, Vec<usize>) {
    let core = machine.core();
    let mut found = None;
    machine.retell(scratch, from, |work, record| {
        core.canonicalise(work, &mut canonical.renaming);
        core.pack(work, &mut canonical.packed);
        if canonical.packed != to {
            return ControlFlow::Continue(());
        }
        found = Some((record.clone(), canonical.renaming.was.clone()));
        ControlFlow::Break(())
    });
    let (decisions, was) = found.expect("a stored state has a step from its parent");
    (machine.in_full(from, decisions), was)
}

impl Core {
    /// Moves with the local steps that follow each of them.
    pub(in super::super) fn in_full(&self, from: &[u64], moves: &[Decision]) -> Vec<Decision> {
        let (mut work, mut decisions) = (Work::default(), Vec::new());
        self.unpack(from, &mut work);
        for &Decision { action, accelerated } in moves {
            let t = action.thread.index();
            Vec::push(&mut decisions, Decision { action, accelerated });
            let Act::Step { edge, choice } = action.act else {
                let store = leave(&mut work.buffers[t], accelerated);
                self.write(&mut work, store);
                continue;
            };
            if let Some(store) = self.step_by(&mut work, t, edge, choice).flatten() {
                work.buffers[t].pop();
                enter(&mut work.buffers[t], Pending { accelerated, ..store });
            }
            self.run(&mut work, t, &mut decisions);
        }
        decisions
    }

    /// The thread takes an edge: `None` if it is no store, or one that goes wrong; then what entered the
    /// buffer, which is nothing if the store is silent.
    fn step_by(
        &self,
        work: &mut Work,
        t: usize,
        edge: EdgeId,
        choice: Option<Value>,
    ) -> Option<Option<Pending>> {
        let node = self.node(work, t);
        let taken = node.edges.iter().find(|e| e.id == edge).expect("a decision begins at its node");
        let before = work.buffer(t).len();
        self.take(work, t, taken, choice);
        let went_right = work.vals[t] == taken.to as Value;
        let entered = || work.buffer(t).get(before).copied();
        (went_right && matches!(taken.instr, CInstr::Store { .. })).then(entered)
    }

    /// The same run of a machine that buffers every store, one by one.
    fn plainly(&self, decisions: &[Decision], limits: &Limits) -> Result<Vec<Action>, Limit> {
        if self.others_ever.is_none() && !self.accelerates {
            return Ok(decisions.iter().map(|d| d.action).collect());
        }
        let mut rounds = vec![0; decisions.len()];
        loop {
            limits.spend(decisions.len())?;
            match Plainly::new(self).run(decisions, &rounds) {
                Ok(actions) => return Ok(actions),
                Err(TooFew { store }) => rounds[store] += 1,
            }
        }
    }
}

/// Of what the decision stored as an accelerated entry there are not enough copies.
struct TooFew {
    store: usize,
}

/// A run in the making.
struct Plainly<'a> {
    core: &'a Core,
    /// Without silent stores.
    work: Work,
    buffers: Vec<PlainBuffer>,
    actions: Vec<Action>,
}

/// What a thread has in its buffer.
#[derive(Clone, Default)]
struct PlainBuffer {
    /// As the search sees it.
    entries: VecDeque<Entry>,
    /// One by one: is it a silent store?
    silent: VecDeque<bool>,
}

#[derive(Clone, Copy)]
struct Entry {
    store: Pending,
    copies: usize,
    /// The decision that made it accelerated.
    from: usize,
}

impl<'a> Plainly<'a> {
    fn new(core: &'a Core) -> Plainly<'a> {
        let buffers = vec![PlainBuffer::default(); core.threads()];
        Plainly { core, work: core.start(), buffers, actions: Vec::new() }
    }

    /// Each loop is gone round as often as `rounds` says of its decision.
    fn run(mut self, decisions: &[Decision], rounds: &[usize]) -> Result<Vec<Action>, TooFew> {
        // Where a loop begins, once the thread has arrived there.
        let mut begins = None;
        for (number, &Decision { action, accelerated }) in decisions.iter().enumerate() {
            let t = action.thread.index();
            match action.act {
                Act::Flush => self.flush(t, accelerated)?,
                Act::Step { edge, choice } => {
                    self.step(t, edge, choice, accelerated.then_some(number));
                    begins = if accelerated { Some(number) } else { begins };
                }
            }
            if self.core.node(&self.work, t).scheduling_point
                && let Some(store) = begins.take()
            {
                (0..rounds[store]).for_each(|_| self.go_round(t));
            }
            self.flush_silent(t);
        }
        Ok(self.actions)
    }

    fn step(&mut self, t: usize, edge: EdgeId, choice: Option<Value>, accelerated: Option<usize>) {
        Record::push(&mut self.actions, t, Act::Step { edge, choice });
        let Some(entered) = self.core.step_by(&mut self.work, t, edge, choice) else { return };
        self.buffers[t].silent.push_back(entered.is_none());
        let Some(store) = entered else { return };
        let store = Pending { accelerated: accelerated.is_some(), ..store };
        match self.buffers[t].entries.back_mut() {
            Some(last) if last.store.is_like(store) && (last.store.accelerated || store.accelerated) => {
                if !last.store.accelerated {
                    *last = Entry { store, from: accelerated.unwrap_or(last.from), ..*last };
                }
                last.copies += 1;
            }
            _ => {
                let entry = Entry { store, copies: 1, from: accelerated.unwrap_or(0) };
                self.buffers[t].entries.push_back(entry);
            }
        }
    }

    /// The thread goes on alone until it has stored once more, and stands where it stood.
    fn go_round(&mut self, t: usize) {
        let copies = |plainly: &Plainly| plainly.buffers[t].entries.back().map(|e| e.copies);
        let before = copies(self);
        while copies(self) == before || !self.core.node(&self.work, t).scheduling_point {
            let mut taken: Vec<Action> = Vec::new();
            let mut ahead = self.work.clone();
            self.core.take_any(&mut ahead, t, &mut taken);
            let Some(&Action { act: Act::Step { edge, choice }, .. }) = taken.first() else {
                unreachable!("a loop of loads and stores can be gone round again")
            };
            self.step(t, edge, choice, None);
        }
    }

    /// One copy of the oldest entry reaches memory if more of the same stay, and all copies if not.
    fn flush(&mut self, t: usize, stays: bool) -> Result<(), TooFew> {
        let oldest = self.buffers[t].entries.front_mut().expect("something waits to be flushed");
        if stays && oldest.copies == 1 {
            return Err(TooFew { store: oldest.from });
        }
        let mut leaving = if stays { 1 } else { oldest.copies };
        oldest.copies -= leaving;
        while leaving > 0 {
            let silent = self.buffers[t].silent.pop_front().expect("every copy waits");
            Record::push(&mut self.actions, t, Act::Flush);
            if !silent {
                self.core.flush(&mut self.work, t);
                leaving -= 1;
            }
        }
        if !stays {
            self.buffers[t].entries.pop_front();
        }
        Ok(())
    }

    /// Silent stores reach memory as soon as it is their turn.
    fn flush_silent(&mut self, t: usize) {
        while self.buffers[t].silent.front() == Some(&true) {
            self.buffers[t].silent.pop_front();
            Record::push(&mut self.actions, t, Act::Flush);
        }
    }
}

/// A decision of a state's thread as one of the run's.
pub(crate) fn renamed(action: Action, names: &[usize]) -> Action {
    Action { thread: ThreadId(names[action.thread.index()] as u16), ..action }
}

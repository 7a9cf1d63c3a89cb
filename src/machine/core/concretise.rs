//! Which decisions lead along a line of stored states? The machine's steps are taken again, and told this time.
//!
//! Stored states are representatives and normal forms, so one step between two of them is several decisions, perhaps in
//! other names. `plainly` tells them as decisions of a machine that buffers every store: silent ones, which the search
//! leaves out of buffers, are flushed, and a loop whose store entered as many is gone round as often as that takes.

use super::super::compile::Op;
use super::{Pending, ProgramMachine, Record, Scratch, Work, enter, leave};
use crate::model::{EdgeId, ThreadId, Value};
use crate::query::{Act, Action, Limit, Limits};
use std::collections::VecDeque;
use std::ops::ControlFlow;

/// What it costs to expand a state, in steps.
const EXPANSION: usize = 500;

/// A decision of the search.
#[derive(Clone, Copy)]
struct Decision {
    action: Action,
    /// The store enters the buffer as many, or the flush leaves more of the same there.
    many: bool,
}

impl Record for Vec<Decision> {
    const WANTED: bool = true;

    fn push(&mut self, thread: usize, act: Act) {
        let action = Action { thread: ThreadId(thread as u16), act };
        Vec::push(self, Decision { action, many: false });
    }

    fn push_many(&mut self, thread: usize, act: Act) {
        let action = Action { thread: ThreadId(thread as u16), act };
        Vec::push(self, Decision { action, many: true });
    }
}

impl ProgramMachine {
    /// The decisions along a line of stored states, and who is who in the last of them: per thread there, the thread of
    /// the run. Stored states are representatives, so every step may give the threads other names.
    pub(crate) fn walk(
        &self,
        line: &[Vec<u64>],
        limits: &Limits,
    ) -> Result<(Vec<Action>, Vec<usize>), Limit> {
        let (mut work, mut decisions) = self.beginning::<Vec<Decision>>();
        let mut scratch = Scratch::default();
        self.represent(&mut work, &mut scratch.renaming);
        let mut names = scratch.renaming.was.clone();
        for pair in line.windows(2) {
            limits.spend(EXPANSION)?;
            let (steps, was) = self.step(&mut scratch, &pair[0], &pair[1]);
            decisions.extend(steps.into_iter().map(|d| Decision { action: renamed(d.action, &names), ..d }));
            names = was.into_iter().map(|t| names[t]).collect();
        }
        Ok((self.plainly(&decisions, limits)?, names))
    }

    /// The decisions that lead from one stored state to the next, and per thread of the next who it was before.
    fn step(&self, scratch: &mut Scratch, from: &[u64], to: &[u64]) -> (Vec<Decision>, Vec<usize>) {
        let Scratch { base, work, packed, others, renaming, late, .. } = scratch;
        self.unpack(from, base);
        let mut found = None;
        let mut is_it = |work: &mut Work, record: &Vec<Decision>| {
            self.represent(work, renaming);
            self.pack(work, packed);
            if packed != to {
                return ControlFlow::Continue(());
            }
            found = Some((record.clone(), renaming.was.clone()));
            ControlFlow::Break(())
        };
        let mut threads = 0..self.threads();
        if self.late.is_none() {
            self.others_futures(base, &mut others.of_base);
            let _ = threads.try_for_each(|t| self.successors(base, work, t, others, &mut is_it));
            return found.expect("a stored state has a step from its parent");
        }
        late.begin(self, from);
        let _ = threads.try_for_each(|t| {
            late.successors(self, t, |late, record| {
                if late.is_too_large() {
                    return ControlFlow::Continue(());
                }
                self.unpack(late.found(), work);
                is_it(work, record)
            })
        });
        let (moves, was) = found.expect("a stored state has a step from its parent");
        (self.in_full(base, &moves), was)
    }

    /// Moves with the local steps that follow each of them.
    fn in_full(&self, from: &Work, moves: &[Decision]) -> Vec<Decision> {
        let (mut work, mut decisions) = (from.clone(), Vec::new());
        for &Decision { action, many } in moves {
            let t = action.thread.index();
            Vec::push(&mut decisions, Decision { action, many });
            let Act::Step { edge, choice } = action.act else {
                let store = leave(&mut work.buffers[t], many);
                work.vals[self.code.memory + store.cell as usize] = store.value;
                continue;
            };
            if let Some(store) = self.step_by(&mut work, t, edge, choice).flatten() {
                work.buffers[t].pop();
                enter(&mut work.buffers[t], Pending { many, ..store });
            }
            self.run(&mut work, t, &mut decisions);
        }
        decisions
    }

    /// The thread takes an edge: `None` if it is no store, or one that goes wrong; then what entered the buffer, which
    /// is nothing if the store is silent.
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
        self.take(work, t, taken, choice.unwrap_or(0));
        let went_right = work.vals[t] == taken.to as Value;
        let entered = || work.buffer(t).get(before).copied();
        (went_right && matches!(taken.op, Op::Store { .. })).then(entered)
    }

    /// The same run of a machine that buffers every store, one by one.
    fn plainly(&self, decisions: &[Decision], limits: &Limits) -> Result<Vec<Action>, Limit> {
        if self.others_ever.is_none() && !self.repeats {
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

/// Of what the decision stored as many there are not enough copies.
struct TooFew {
    store: usize,
}

/// A run in the making.
struct Plainly<'a> {
    machine: &'a ProgramMachine,
    /// Without silent stores.
    work: Work,
    threads: Vec<Thread>,
    actions: Vec<Action>,
}

/// What a thread has in its buffer.
#[derive(Clone, Default)]
struct Thread {
    /// As the search sees it.
    entries: VecDeque<Entry>,
    /// One by one: is it a silent store?
    silent: VecDeque<bool>,
}

#[derive(Clone, Copy)]
struct Entry {
    store: Pending,
    copies: usize,
    /// The decision that made it many.
    from: usize,
}

impl<'a> Plainly<'a> {
    fn new(machine: &'a ProgramMachine) -> Plainly<'a> {
        let threads = machine.threads();
        let buffers = vec![Vec::new(); threads];
        let work = Work { vals: machine.code.initial.clone(), buffers, moved: Vec::new() };
        Plainly { machine, work, threads: vec![Thread::default(); threads], actions: Vec::new() }
    }

    /// Each loop is gone round as often as `rounds` says of its decision.
    fn run(mut self, decisions: &[Decision], rounds: &[usize]) -> Result<Vec<Action>, TooFew> {
        // Where a loop begins, once the thread has arrived there.
        let mut begins = None;
        for (number, &Decision { action, many }) in decisions.iter().enumerate() {
            let t = action.thread.index();
            match action.act {
                Act::Flush => self.flush(t, many)?,
                Act::Step { edge, choice } => {
                    self.step(t, edge, choice, many.then_some(number));
                    begins = if many { Some(number) } else { begins };
                }
            }
            if self.machine.node(&self.work, t).stop
                && let Some(store) = begins.take()
            {
                (0..rounds[store]).for_each(|_| self.go_round(t));
            }
            self.flush_silent(t);
        }
        Ok(self.actions)
    }

    fn step(&mut self, t: usize, edge: EdgeId, choice: Option<Value>, many: Option<usize>) {
        Record::push(&mut self.actions, t, Act::Step { edge, choice });
        let Some(entered) = self.machine.step_by(&mut self.work, t, edge, choice) else { return };
        self.threads[t].silent.push_back(entered.is_none());
        let Some(store) = entered else { return };
        let store = Pending { many: many.is_some(), ..store };
        match self.threads[t].entries.back_mut() {
            Some(last) if last.store.is_like(store) && (last.store.many || store.many) => {
                if !last.store.many {
                    *last = Entry { store, from: many.unwrap_or(last.from), ..*last };
                }
                last.copies += 1;
            }
            _ => {
                let entry = Entry { store, copies: 1, from: many.unwrap_or(0) };
                self.threads[t].entries.push_back(entry);
            }
        }
    }

    /// The thread goes on alone until it has stored once more, and stands where it stood.
    fn go_round(&mut self, t: usize) {
        let copies = |plainly: &Plainly| plainly.threads[t].entries.back().map(|e| e.copies);
        let before = copies(self);
        while copies(self) == before || !self.machine.node(&self.work, t).stop {
            let mut taken: Vec<Action> = Vec::new();
            let mut ahead = self.work.clone();
            self.machine.take_any(&mut ahead, t, &mut taken);
            let Some(&Action { act: Act::Step { edge, choice }, .. }) = taken.first() else {
                unreachable!("a loop of loads and stores can be gone round again")
            };
            self.step(t, edge, choice, None);
        }
    }

    /// One copy of the oldest entry reaches memory if more of the same stay, and all copies if not.
    fn flush(&mut self, t: usize, stays: bool) -> Result<(), TooFew> {
        let oldest = self.threads[t].entries.front_mut().expect("something waits to be flushed");
        if stays && oldest.copies == 1 {
            return Err(TooFew { store: oldest.from });
        }
        let mut leaving = if stays { 1 } else { oldest.copies };
        oldest.copies -= leaving;
        while leaving > 0 {
            let silent = self.threads[t].silent.pop_front().expect("every copy waits");
            Record::push(&mut self.actions, t, Act::Flush);
            if !silent {
                self.machine.flush(&mut self.work, t);
                leaving -= 1;
            }
        }
        if !stays {
            self.threads[t].entries.pop_front();
        }
        Ok(())
    }

    /// Silent stores reach memory as soon as it is their turn.
    fn flush_silent(&mut self, t: usize) {
        while self.threads[t].silent.front() == Some(&true) {
            self.threads[t].silent.pop_front();
            Record::push(&mut self.actions, t, Act::Flush);
        }
    }
}

/// A decision of a state's thread as one of the run's.
pub(crate) fn renamed(action: Action, names: &[usize]) -> Action {
    Action { thread: ThreadId(names[action.thread.index()] as u16), ..action }
}

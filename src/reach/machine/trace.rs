//! Which decisions lead along a line of stored states? The machine's steps are taken again, and told this time.
//!
//! Stored states are representatives and normal forms, so one step between two of them is several decisions, perhaps in
//! other names. Silent stores, which the search leaves out of buffers, are flushed here.

use super::super::compile::Op;
use super::{ProgramMachine, Record, Scratch, Work};
use crate::model::{ThreadId, Value};
use crate::verdict::{Act, Action};
use std::collections::VecDeque;
use std::ops::ControlFlow;

impl ProgramMachine {
    /// The decisions along a line of stored states, and who is who in the last of them: per thread there, the thread of
    /// the run. Stored states are representatives, so every step may give the threads other names.
    pub(crate) fn walk(&self, line: &[Vec<u64>]) -> (Vec<Action>, Vec<usize>) {
        let (mut work, mut actions) = self.beginning::<Vec<Action>>();
        let mut scratch = Scratch::default();
        self.represent(&mut work, &mut scratch.renaming);
        let mut names = scratch.renaming.was.clone();
        for pair in line.windows(2) {
            let (steps, was) = self.step(&mut scratch, &pair[0], &pair[1]);
            actions.extend(steps.into_iter().map(|a| renamed(a, &names)));
            names = was.into_iter().map(|t| names[t]).collect();
        }
        (actions, names)
    }

    /// The decisions that lead from one stored state to the next, and per thread of the next who it was before.
    fn step(&self, scratch: &mut Scratch, from: &[u64], to: &[u64]) -> (Vec<Action>, Vec<usize>) {
        let Scratch { base, work, packed, others, renaming, late, .. } = scratch;
        self.unpack(from, base);
        let mut found = None;
        let mut is_it = |work: &mut Work, record: &Vec<Action>| {
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
    fn in_full(&self, from: &Work, moves: &[Action]) -> Vec<Action> {
        let (mut work, mut actions) = (from.clone(), Vec::new());
        for &Action { thread, act } in moves {
            let t = thread.index();
            let Act::Step { edge, choice } = act else {
                self.flush(&mut work, t);
                Record::push(&mut actions, t, act);
                continue;
            };
            let node = self.node(&work, t);
            let taken = node.edges.iter().find(|e| e.id == edge).expect("a move begins at its node");
            self.take(&mut work, t, taken, choice.unwrap_or(0));
            Record::push(&mut actions, t, act);
            self.run(&mut work, t, &mut actions);
        }
        actions
    }

    /// The run of a machine that buffers every store: silent ones reach memory as soon as it is their turn.
    pub(super) fn with_silent_flushes(&self, actions: &[Action]) -> Vec<Action> {
        let buffers = vec![Vec::new(); self.threads()];
        let mut work = Work { vals: self.code.initial.clone(), buffers, moved: Vec::new() };
        let mut silent: Vec<VecDeque<bool>> = vec![VecDeque::new(); self.threads()];
        let mut all = Vec::new();
        for &Action { thread, act } in actions {
            let t = thread.index();
            Record::push(&mut all, t, act);
            match act {
                Act::Flush => {
                    self.flush(&mut work, t);
                    silent[t].pop_front();
                }
                Act::Step { edge, choice } => {
                    let taken = self.node(&work, t).edges.iter().find(|e| e.id == edge);
                    let taken = taken.expect("a decision begins at its node");
                    let before = work.buffers[t].len();
                    self.take(&mut work, t, taken, choice.unwrap_or(0));
                    let went_right = work.vals[t] == taken.to as Value;
                    if went_right && matches!(taken.op, Op::Store { .. }) {
                        silent[t].push_back(work.buffers[t].len() == before);
                    }
                }
            }
            while silent[t].front() == Some(&true) {
                silent[t].pop_front();
                Record::push(&mut all, t, Act::Flush);
            }
        }
        all
    }
}

/// A decision of a state's thread as one of the run's.
pub(crate) fn renamed(action: Action, names: &[usize]) -> Action {
    Action { thread: ThreadId(names[action.thread.index()] as u16), ..action }
}

//! The decisions of a run of the attack machine, as those of a TSO run.

use super::AttackMachine;
use super::state::AttackState;
use crate::machine::{Work, renamed};
use crate::model::Instr;
use crate::query::{Act, Action, Limit, Limits};
use std::ops::ControlFlow;

/// What it costs to expand a state, in steps.
const EXPANSION: usize = 500;

impl AttackMachine<'_> {
    /// The decisions along a line of stored states.
    pub(super) fn tell(&self, line: &[Vec<u64>], limits: &Limits) -> Result<Vec<Action>, Limit> {
        let begun = line.iter().position(|state| !self.is_phase_1(state)).unwrap_or(line.len());
        let (mut actions, names) = self.base.walk(&line[..begun], limits)?;
        self.leave_out_errors(&mut actions, &line[begun - 1], &names);
        let mut actions = self.drained(actions, None);
        for pair in line[begun - 1..].windows(2) {
            limits.spend(EXPANSION)?;
            actions.extend(self.step(&pair[0], &pair[1]).into_iter().map(|a| renamed(a, &names)));
        }
        Ok(actions)
    }

    /// The decisions that lead from one state to the next, which is one of phase 2 or 3.
    fn step(&self, from: &[u64], to: &[u64]) -> Vec<Action> {
        let (mut base, mut next, mut packed) = (AttackState::default(), AttackState::default(), Vec::new());
        let mut found = None;
        let mut is_it = |attack: &mut AttackState, record: &Vec<Action>| {
            self.pack(attack, &mut packed);
            if packed != to {
                return ControlFlow::Continue(());
            }
            found = Some(record.clone());
            ControlFlow::Break(())
        };
        if self.is_phase_1(from) {
            self.unpack_phase_1(from, &mut base);
            let _ = self.beginnings(&base, &mut next, &mut is_it);
        } else {
            self.unpack(from, &mut base);
            let mut threads = 0..self.slots.threads;
            let _ = threads.try_for_each(|u| self.successors(&base, &mut next, u, &mut is_it));
        }
        self.unpack(to, &mut base);
        let attacker = self.target(&base).thread;
        self.drained(found.expect("a stored state has a step from its parent"), Some(attacker))
    }

    /// A thread that has gone wrong in phase 1 did so in its last step, which changed nothing for the others:
    /// the run can do without it. `names` says which thread is which in the phase's last state.
    fn leave_out_errors(&self, actions: &mut Vec<Action>, last: &[u64], names: &[usize]) {
        let mut work = Work::default();
        self.base.core.unpack(last, &mut work);
        for t in (0..self.slots.threads).filter(|&t| self.base.core.is_trapped(&work, t)) {
            let step = actions.iter().rposition(|a| a.thread.index() == names[t]);
            actions.remove(step.expect("a thread goes wrong by a step"));
        }
    }

    /// The decisions of an SC run as those of a TSO run in which only the attacker's stores stay in its
    /// buffer.
    fn drained(&self, actions: Vec<Action>, attacker: Option<usize>) -> Vec<Action> {
        let is_store = |a: &Action| match a.act {
            Act::Step { edge, .. } => {
                matches!(self.program.thread(a.thread).edge(edge).instr, Instr::Store { .. })
            }
            Act::Flush => false,
        };
        let mut all = Vec::new();
        for action in actions {
            all.push(action);
            if is_store(&action) && attacker != Some(action.thread.index()) {
                all.push(Action { thread: action.thread, act: Act::Flush });
            }
        }
        all
    }
}

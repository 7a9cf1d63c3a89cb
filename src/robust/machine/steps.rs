//! The steps of phases 2 and 3: how attacks begin, what the attacker does before its load, and what the
//! others may do.

use super::super::known::KnownPaths;
use super::AttackMachine;
use super::state::{AttackState, NOT, READ, Slots, WRITTEN};
use crate::machine::{CEdge, CInstr, Pending, Record, Taken, Work};
use crate::model::{EdgeId, ThreadId, Value};
use crate::query::Act;
use std::ops::ControlFlow;

impl AttackMachine<'_> {
    /// Can the attack still succeed, by the graphs alone? Another thread has to touch the delayed store's
    /// cell, and before that the attacker has to come to its load.
    fn has_hope(&self, attack: &AttackState) -> bool {
        let target = self.target(attack);
        let node = attack.work.vals[target.thread] as usize;
        if attack.vals[Slots::PHASE] == 0 && !self.overtakers[target.overtakers].leads_on.contains(node) {
            return false;
        }
        let cell = attack.vals[Slots::CELL] as u32;
        let touches = |u: usize| {
            let future = self.node(attack, u).future;
            future.may_read(cell) || future.may_write(cell)
        };
        attack.vals[self.slots.after(cell as usize)] != NOT
            || attack.vals[self.slots.noted(cell as usize)] != NOT
            || (0..self.slots.threads).any(|u| u != target.thread && touches(u))
    }

    /// Every state in which an attack has just begun, from a state of phase 1. A thread that holds memory in
    /// a block cannot attack, for no other thread could close the cycle before it flushes; and while another one does,
    /// it may as well wait, for it cannot load from memory before the block ends.
    pub(super) fn beginnings<R: Record>(
        &self,
        base: &AttackState,
        next: &mut AttackState,
        mut done: impl FnMut(&mut AttackState, &R) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if !self.base.core.lock_is_free(&base.work) {
            return ControlFlow::Continue(());
        }
        for t in 0..self.slots.threads {
            let node = base.work.vals[t] as usize;
            for &i in &self.begin[t][node] {
                let target = &self.targets[i];
                let edge = self.node(base, t).edges.iter().find(|e| e.id == target.edge);
                let edge = edge.expect("an attack begins where its store is");
                next.work.copy(&base.work, t);
                next.vals.clear();
                next.vals.resize(self.slots.count(), 0);
                next.vals[Slots::TARGET] = i as Value;
                let Some(cell) = self.issue(&mut next.work, t, edge) else { continue };
                next.vals[Slots::CELL] = cell as Value;
                let mut record = Walked::<R>::default();
                record.push(t, Act::Step { edge: edge.id, choice: None });
                self.base.core.run(&mut next.work, t, &mut record);
                next.vals[Slots::TRAIL] = self.follow(t, KnownPaths::START, &record.edges);
                if self.has_hope(next) {
                    done(next, &record.record)?;
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// The store goes into the thread's buffer; its cell, if it does not go wrong.
    fn issue(&self, work: &mut Work, t: usize, edge: &CEdge) -> Option<usize> {
        let CInstr::Store { addr, value, .. } = &edge.instr else { return None };
        let cell = self.base.core.cell(work, addr)?;
        let value = value.eval(&work.vals)?;
        let buffer = &mut work.buffers[t];
        buffer.retain(|store| store.cell as usize != cell);
        buffer.push(Pending::one(cell as u32, value));
        work.vals[t] = edge.to as Value;
        Some(cell)
    }

    /// Every state that follows when thread `u` moves in phase 2 or 3.
    pub(super) fn successors<R: Record>(
        &self,
        base: &AttackState,
        next: &mut AttackState,
        u: usize,
        mut done: impl FnMut(&mut AttackState, &R) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let attacker = self.target(base).thread;
        if u == attacker && base.vals[Slots::PHASE] != 0 {
            return ControlFlow::Continue(());
        }
        for edge in &self.node(base, u).edges {
            for choice in edge.instr.choices() {
                let mut record = Walked::<R>::default();
                record.push(u, Act::Step { edge: edge.id, choice });
                if u == attacker
                    && let Some(attack) = self.attack_load(base, edge)
                {
                    next.copy(base, u);
                    self.overtake(next, u, edge, attack);
                    if self.has_hope(next) {
                        done(next, &record.record)?;
                    }
                }
                next.copy(base, u);
                let taken = if u == attacker {
                    self.attacker_step(next, u, edge, choice)
                } else {
                    self.other_step(next, u, edge, choice)
                };
                if taken == Taken::Yes {
                    self.base.core.run(&mut next.work, u, &mut record);
                    if u == attacker {
                        let trail = base.vals[Slots::TRAIL] as usize;
                        next.vals[Slots::TRAIL] = self.follow(u, trail, &record.edges);
                    }
                    if self.has_hope(next) {
                        done(next, &record.record)?;
                    }
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// The load with which the attacker can begin phase 3, if the edge is one. It has to read memory, not its
    /// own buffer.
    fn attack_load(&self, attack: &AttackState, edge: &CEdge) -> Option<usize> {
        let target = self.target(attack);
        let CInstr::Load { addr, .. } = &edge.instr else { return None };
        let cell = self.base.core.cell(&attack.work, addr)?;
        if !self.overtakers[target.overtakers].edges.contains(edge.id.index()) {
            return None;
        }
        let number = self.numbers[target.thread][edge.id.index()];
        let end = self.follow(target.thread, attack.vals[Slots::TRAIL] as usize, &[edge.id]);
        let counts = self.reads_memory(attack, target.thread, cell) && !self.known.ends_at(end as usize);
        counts.then_some(number)
    }

    /// Where among the known paths the attacker stands after these edges.
    fn follow(&self, t: usize, from: usize, edges: &[EdgeId]) -> Value {
        let thread = ThreadId(t as u16);
        edges.iter().fold(from, |at, &e| self.known.next(at, self.program, thread, e)) as Value
    }

    fn reads_memory(&self, attack: &AttackState, t: usize, cell: usize) -> bool {
        attack.work.buffered(t, cell).is_none() && !self.base.core.is_blocked(&attack.work, t)
    }

    /// The attack's load: phase 3 begins. What the attacker holds no longer matters.
    fn overtake(&self, attack: &mut AttackState, t: usize, edge: &CEdge, number: usize) {
        let cell = match &edge.instr {
            CInstr::Load { addr, .. } => {
                self.base.core.cell(&attack.work, addr).expect("it was looked at before")
            }
            _ => unreachable!("only loads overtake"),
        };
        let (target, delayed) = (attack.vals[Slots::TARGET], attack.vals[Slots::CELL]);
        attack.vals.fill(0);
        attack.vals[Slots::TARGET] = target;
        attack.vals[Slots::CELL] = delayed;
        attack.vals[Slots::PHASE] = 1;
        attack.vals[Slots::LOAD] = number as Value;
        attack.vals[self.slots.after(cell)] = READ;
        attack.work.buffers[t].clear();
        attack.work.vals[t] = self.base.core.code.threads[t].stuck as Value;
    }

    /// A step of the attacker in phase 2 that is not the attack's load.
    fn attacker_step(
        &self,
        attack: &mut AttackState,
        t: usize,
        edge: &CEdge,
        choice: Option<Value>,
    ) -> Taken {
        match &edge.instr {
            CInstr::Store { .. } => match self.issue(&mut attack.work, t, edge) {
                Some(_) => Taken::Yes,
                None => Taken::No,
            },
            CInstr::Load { addr, .. } => {
                let Some(cell) = self.base.core.cell(&attack.work, addr) else { return Taken::No };
                if self.reads_memory(attack, t, cell) {
                    self.note(attack, cell, READ);
                }
                self.base.core.take(&mut attack.work, t, edge, choice)
            }
            _ => self.base.core.take(&mut attack.work, t, edge, choice),
        }
    }

    /// A step of another thread, if it happens after the load or is local. One that goes wrong touches
    /// nothing and is its thread's last, so whatever follows can follow without it.
    fn other_step(&self, attack: &mut AttackState, u: usize, edge: &CEdge, choice: Option<Value>) -> Taken {
        let helper = attack.vals[self.slots.helper(u)] != 0;
        match &edge.instr {
            CInstr::Load { addr, .. } => match self.base.core.cell(&attack.work, addr) {
                Some(cell) if self.may_happen(attack, u, cell, READ) => {}
                _ => return Taken::No,
            },
            CInstr::Store { addr, .. } | CInstr::Rmw { addr, .. } => {
                match self.base.core.cell(&attack.work, addr) {
                    Some(cell) if self.may_happen(attack, u, cell, WRITTEN) => {}
                    _ => return Taken::No,
                }
            }
            CInstr::Lock if !helper => attack.vals[Slots::CLAIM] = 1,
            CInstr::Unlock if attack.vals[Slots::CLAIM] != 0 => return Taken::No,
            _ => {}
        }
        let taken = self.base.core.take(&mut attack.work, u, edge, choice);
        if self.base.core.is_trapped(&attack.work, u) { Taken::No } else { taken }
    }

    /// May thread `u` read or write the cell now, because that happens after the load, or is claimed to?
    /// Notes it if so.
    fn may_happen(&self, attack: &mut AttackState, u: usize, cell: usize, access: Value) -> bool {
        let touched = attack.vals[self.slots.after(cell)];
        let conflicts = touched != NOT && (touched == WRITTEN || access == WRITTEN);
        let claimed = attack.vals[Slots::CLAIM] != 0;
        if conflicts && claimed {
            self.earn(attack);
        }
        if conflicts {
            attack.vals[self.slots.helper(u)] = 1;
        }
        if attack.vals[self.slots.helper(u)] != 0 {
            self.note(attack, cell, access);
        } else if claimed {
            let noted = &mut attack.vals[self.slots.noted(cell)];
            *noted = (*noted).max(access);
        } else {
            return false;
        }
        true
    }

    fn note(&self, attack: &mut AttackState, cell: usize, access: Value) {
        let after = &mut attack.vals[self.slots.after(cell)];
        *after = (*after).max(access);
    }

    /// The block does happen after the load, and with it what it did before.
    fn earn(&self, attack: &mut AttackState) {
        attack.vals[Slots::CLAIM] = 0;
        for cell in 0..self.slots.cells {
            let noted = std::mem::take(&mut attack.vals[self.slots.noted(cell)]);
            let after = &mut attack.vals[self.slots.after(cell)];
            *after = (*after).max(noted);
        }
    }
}

/// A record that also keeps the edges.
#[derive(Clone, Default)]
struct Walked<R> {
    record: R,
    edges: Vec<EdgeId>,
}

impl<R: Record> Record for Walked<R> {
    const WANTED: bool = true;

    fn push(&mut self, thread: usize, act: Act) {
        if let Act::Step { edge, .. } = act {
            self.edges.push(edge);
        }
        self.record.push(thread, act);
    }
}

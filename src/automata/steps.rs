//! What can happen next? The successors of a node, and what the steps of a process touch.
//!
//! A step changes the configuration as the plain machine of `semantics` says, and one buffer's language as
//! `buffers` says. The plain machine is asked with the one buffer entry that matters: none, the one that a
//! load finds, or the one that is committed. A step has as many successors as there are values that it may
//! find; together they stand for exactly what the step makes of the states that the node stands for.

use super::buffers::{Buffers, Lang};
use super::tree::{Activity, BufferEffect, NodeId, SearchTree};
use crate::analysis::access::Access;
use crate::model::{Addr, Bytes, Edge, EdgeId, Instr, Loc, RegExpr, ThreadId, Value};
use crate::query::{Act, Action, Limit};
use crate::semantics::{Pending, State, choices, tso};
use std::collections::BTreeSet;

/// What comes of a decision.
pub(crate) struct Successor {
    pub state: State,
    pub thread: ThreadId,
    /// The decision, and local steps that the thread takes at once.
    pub decisions: Vec<Action>,
    pub effect: BufferEffect,
    /// The language of the buffer of the thread whose decision it is.
    pub buffer: Lang,
    /// The thread has gone wrong.
    pub trapped: bool,
}

impl Successor {
    fn new((state, trapped): (State, bool), action: Action, effect: BufferEffect, buffer: Lang) -> Self {
        Successor { state, thread: action.thread, decisions: vec![action], effect, buffer, trapped }
    }
}

impl<'a> SearchTree<'a> {
    /// What the next step of a process leads to.
    pub(crate) fn successors(&mut self, node: NodeId, process: Activity) -> Result<Vec<Successor>, Limit> {
        let mut found = Vec::new();
        match process {
            Activity::Commits(t) => self.commits(node, t, &mut found)?,
            Activity::Thread(t) => {
                for (id, edge) in self.edges(node, t) {
                    for choice in choices(&edge.instr) {
                        let act = Act::Step { edge: id, choice };
                        self.take(node, &edge.instr, Action { thread: t, act }, &mut found)?;
                    }
                }
                let stopped: Result<Vec<_>, Limit> = found.into_iter().map(|one| self.run_on(one)).collect();
                found = stopped?.into_iter().flatten().collect();
            }
        }
        Ok(found)
    }

    /// The edges before which the thread stands. A thread that has gone wrong has none.
    fn edges(&self, node: NodeId, t: ThreadId) -> Vec<(EdgeId, &'a Edge)> {
        match self.state(node).at[t.index()] {
            Loc::TRAP => vec![],
            loc => self.program.thread(t).edges_from(loc),
        }
    }

    fn commits(&mut self, node: NodeId, t: ThreadId, found: &mut Vec<Successor>) -> Result<(), Limit> {
        if self.held_up(node, t) {
            return Ok(());
        }
        let lang = self.buffer(node, t);
        let letters: Vec<_> = self.buffers.dfa(lang).first().collect();
        for letter in letters {
            let action = Action { thread: t, act: Act::Flush };
            let with = Some(self.buffers.entry(letter));
            let buffer = self.buffers.commit(lang, letter)?;
            let effect = BufferEffect::Commit(letter);
            let plain = self.decide(self.state(node), action, with)?;
            found.extend(plain.map(|plain| Successor::new(plain, action, effect, buffer)));
        }
        Ok(())
    }

    /// Takes an edge.
    fn take(
        &mut self,
        node: NodeId,
        instr: &Instr,
        action: Action,
        found: &mut Vec<Successor>,
    ) -> Result<(), Limit> {
        let lang = self.buffer(node, action.thread);
        let plain = self.decide(self.state(node), action, None)?;
        let trapped = plain.as_ref().is_some_and(|(_, trapped)| *trapped);
        if let (Instr::Load { addr, .. }, false) = (instr, trapped) {
            return self.load(node, addr, action, found);
        }
        let Some((mut state, trapped)) = plain else { return Ok(()) };
        let stored = state.buffers[action.thread.index()].pop_front();
        let (effect, buffer) = match stored {
            _ if trapped => (BufferEffect::Nothing, lang),
            Some(Pending { addr, value, .. }) => {
                let letter = self.buffers.letter(addr, value);
                (BufferEffect::Store(letter), self.buffers.store(lang, letter)?)
            }
            None if instr.drains_buffer() && !self.buffers.may_be_empty(lang) => return Ok(()),
            None if instr.drains_buffer() => (BufferEffect::Drain, Buffers::EMPTY),
            None => (BufferEffect::Nothing, lang),
        };
        found.push(Successor::new((state, trapped), action, effect, buffer));
        Ok(())
    }

    /// A load has a successor for each value that it may find.
    fn load(
        &mut self,
        node: NodeId,
        addr: &RegExpr,
        action: Action,
        found: &mut Vec<Successor>,
    ) -> Result<(), Limit> {
        let t = action.thread;
        let lang = self.buffer(node, t);
        let Some(addr) = self.cell(node, t, addr) else { return Ok(()) };
        let in_memory = self.state(node).memory[addr.index()];
        let newest = self.buffers.newest(lang, addr)?;
        let values: BTreeSet<Value> = newest.iter().map(|value| value.unwrap_or(in_memory)).collect();
        for value in values {
            let memory_tells = value == in_memory && !self.held_up(node, t);
            let Some(buffer) = self.buffers.load(lang, addr, value, memory_tells)? else { continue };
            let effect = BufferEffect::Load { addr, value, memory_tells };
            let plain = self.decide(self.state(node), action, Some((addr, value)))?;
            found.extend(plain.map(|(mut state, trapped)| {
                state.buffers[t.index()].clear();
                Successor::new((state, trapped), action, effect, buffer)
            }));
        }
        Ok(())
    }

    /// The cell at a computed address, if there is one.
    fn cell(&self, node: NodeId, t: ThreadId, addr: &RegExpr) -> Option<Addr> {
        let registers = &self.state(node).registers[t.index()];
        addr.eval(&|r| registers[r.index()]).ok().and_then(|address| self.program.cell(address))
    }

    /// What the plain machine makes of the decision, if the thread's buffer has this entry alone, or none; and
    /// whether it goes wrong. Registers that are dead then are 0.
    pub(super) fn decide(
        &self,
        state: &State,
        action: Action,
        entry: Option<(Addr, Value)>,
    ) -> Result<Option<(State, bool)>, Limit> {
        let t = action.thread;
        let mut state = state.clone();
        self.limits.spend(16 + (state.memory.len() + state.registers.len()) / 8)?;
        // Which edge stored it is for those who follow runs.
        let pending = |(addr, value)| Pending { addr, value, bytes: Bytes::WHOLE, edge: EdgeId(0) };
        state.buffers[t.index()].extend(entry.map(pending));
        let Some(step) = tso::decide(self.program, &state, action) else { return Ok(None) };
        let (mut state, trapped) = (step.state, step.event.trap.is_some());
        let at = state.at[t.index()];
        // What a thread has left that has gone wrong, a property may look at.
        if at != Loc::TRAP {
            let registers = state.registers[t.index()].iter_mut().enumerate();
            let dead = registers.filter(|(r, _)| !self.live.at(t, at).contains(*r));
            dead.for_each(|(_, value)| *value = 0);
        }
        Ok(Some((state, trapped)))
    }

    /// Are steps of the two processes independent in all states that the node stands for? Then neither can
    /// make the other possible or impossible, and their order does not matter `[Godefroid96]`.
    ///
    /// Those of one thread never are. Others meet in memory alone, and where a block holds it. A load that is
    /// sure to find its value in its buffer does not look there, and neither does a fence.
    pub(crate) fn are_independent(
        &mut self,
        node: NodeId,
        one: Activity,
        other: Activity,
    ) -> Result<bool, Limit> {
        if one.thread() == other.thread() {
            return Ok(false);
        }
        Ok(!self.access(node, one)?.conflicts(self.access(node, other)?))
    }

    /// The memory that the next step of a process may touch.
    fn access(&mut self, node: NodeId, process: Activity) -> Result<Access, Limit> {
        let t = process.thread();
        let lang = self.buffer(node, t);
        let mut access = Access::NONE;
        match process {
            Activity::Commits(_) => {
                for letter in self.buffers.dfa(lang).first() {
                    access = access.union(Access::write(self.buffers.entry(letter).0.0));
                }
            }
            Activity::Thread(_) => {
                for (_, edge) in self.edges(node, t) {
                    let cell = edge.instr.address().and_then(|addr| self.cell(node, t, addr));
                    access = access.union(self.access_of(lang, &edge.instr, cell)?);
                }
            }
        }
        Ok(access)
    }

    fn access_of(&mut self, lang: Lang, instr: &Instr, cell: Option<Addr>) -> Result<Access, Limit> {
        Ok(match (instr, cell) {
            (Instr::Load { .. }, Some(cell)) if self.buffers.newest(lang, cell)?.contains(&None) => {
                Access::read(cell.0)
            }
            (Instr::Rmw { .. }, Some(cell)) => Access::read_write(cell.0),
            (Instr::Lock | Instr::Unlock, _) => Access::LOCKING,
            _ => Access::NONE,
        })
    }
}

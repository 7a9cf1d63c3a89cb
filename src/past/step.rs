//! What follows when a thread of lagging readers moves? The rules, and why they are TSO's, stand at the head of
//! `machine`; this is how they are followed: what becomes of every past, and running ahead.

use super::ideal::Level;
use super::machine::{LaggingMachine, Telling};
use super::table::{IN_STEP, PastId, PastTable};
use crate::machine::{CEdge, CInstr, Taken, Work};
use crate::model::Value;
use crate::query::{Act, Limit, Limits};
use std::collections::HashSet;
use std::ops::ControlFlow;

/// Where a thread is while it runs ahead.
struct Ahead<R> {
    /// Its location and registers.
    own: Box<[Value]>,
    past: PastId,
    told: R,
}

/// What expanding states needs again and again.
#[derive(Default)]
pub(crate) struct Space {
    work: Work,
    out: Work,
    pasts: Vec<PastId>,
    out_pasts: Vec<PastId>,
    seen: HashSet<(Box<[Value]>, PastId)>,
    /// Places that threads have run through, all together, and how many they may at most.
    pub passed: u64,
    pub most: u64,
}

/// What is at hand while a state is expanded.
pub(crate) struct StepTools<'a> {
    pub space: &'a mut Space,
    pub table: &'a mut PastTable,
    pub levels: &'a [Level],
    pub limits: &'a Limits,
}

/// Why a step is not done.
#[derive(Debug)]
pub(crate) enum Stop {
    Limit(Limit),
    /// A thread has run ahead through too many places.
    TooFar,
}

impl From<Limit> for Stop {
    fn from(limit: Limit) -> Stop {
        Stop::Limit(limit)
    }
}

/// Who takes the states that follow.
pub(crate) trait Successors<R> {
    fn state(&mut self, table: &mut PastTable, work: &mut Work, pasts: &mut [PastId], told: &R) -> Flow;
}

/// What a step comes to: on with the next, or enough.
pub(crate) type Flow = Result<ControlFlow<()>, Stop>;

/// Steps that it takes to run to the next place.
const PLACE: usize = 16;

impl LaggingMachine {
    /// Hands over every state that follows when the thread moves.
    pub(crate) fn expand<R: Telling>(
        &self,
        StepTools { space, table, levels, limits }: StepTools<'_>,
        (base, pasts): (&Work, &[PastId]),
        t: usize,
        sink: &mut impl Successors<R>,
    ) -> Flow {
        if self.core.is_blocked(base, t) {
            return Ok(ControlFlow::Continue(()));
        }
        let mut step = Step { machine: self, space, table, levels, limits, sink, t };
        for edge in &self.core.node(base, t).edges {
            for choice in edge.instr.choices() {
                step.space.work.copy(base, t);
                step.space.pasts.clear();
                step.space.pasts.extend_from_slice(pasts);
                if step.take::<R>(base, edge, choice)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// A thread's step in the making.
struct Step<'a, S> {
    machine: &'a LaggingMachine,
    space: &'a mut Space,
    table: &'a mut PastTable,
    levels: &'a [Level],
    limits: &'a Limits,
    sink: &'a mut S,
    t: usize,
}

impl<S> Step<'_, S> {
    fn take<R: Telling>(&mut self, base: &Work, edge: &CEdge, choice: Option<Value>) -> Flow
    where
        S: Successors<R>,
    {
        let (core, t, past) = (&self.machine.core, self.t, self.space.pasts[self.t]);
        self.limits.spend(PLACE)?;
        let mut told = R::default();
        let act = Act::Step { edge: edge.id, choice };
        if let (CInstr::Load { addr, dst, .. }, true) = (&edge.instr, past != IN_STEP)
            && let Some(cell) = core.cell(&self.space.work, addr)
        {
            let own = self.machine.save(&self.space.work, t);
            for which in self.table.reads(past, cell as u32) {
                self.machine.restore(&mut self.space.work, t, &own);
                let mut told = R::default();
                told.push(t, act);
                let left = self.load(edge, *dst, cell, which, &mut told);
                if self.run_ahead(left, told)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            return Ok(ControlFlow::Continue(()));
        }
        let stored = match &edge.instr {
            CInstr::Store { addr, .. } => core.cell(&self.space.work, addr),
            _ => None,
        };
        if core.take(&mut self.space.work, t, edge, choice) == Taken::No {
            return Ok(ControlFlow::Continue(()));
        }
        told.push(t, act);
        let past = match &edge.instr {
            _ if core.is_trapped(&self.space.work, t) => IN_STEP,
            CInstr::Store { .. } => {
                self.publish(base);
                let cell = stored.expect("a store that does not go wrong has a cell");
                self.store(past, cell as u32)
            }
            CInstr::Rmw { .. } => {
                self.publish(base);
                IN_STEP
            }
            CInstr::Lock => {
                self.spell_out();
                IN_STEP
            }
            CInstr::Unlock => {
                self.publish_block();
                IN_STEP
            }
            CInstr::Fence => IN_STEP,
            CInstr::Membarrier => {
                self.space.pasts.fill(IN_STEP);
                IN_STEP
            }
            _ => past,
        };
        self.run_ahead(past, told)
    }

    /// A load from the past; what is left of it then.
    fn load<R: Telling>(
        &mut self,
        edge: &CEdge,
        dst: u32,
        cell: usize,
        which: usize,
        told: &mut R,
    ) -> PastId {
        let (value, left) = self.table.read(which);
        self.space.work.vals[dst as usize] = value;
        self.space.work.vals[self.t] = edge.to as Value;
        told.read(cell as u32, value);
        left
    }

    /// The thread's own past after its store.
    fn store(&mut self, past: PastId, cell: u32) -> PastId {
        let Step { machine, space, table, t, .. } = self;
        let facts = machine.facts(&space.work, *t);
        if past == IN_STEP || facts.relevant == 0 {
            return IN_STEP;
        }
        let memory = machine.seen_by(table, &space.work, *t);
        let pair = (cell, machine.memory(&space.work)[cell as usize]);
        table.stored(past, pair, memory, machine.relevant(facts), self.levels[*t])
    }

    /// The others' pasts grow by the memory now, if it has changed for them. Inside a block nobody sees it.
    fn publish(&mut self, base: &Work) {
        let Step { machine, space, table, t, .. } = self;
        let Space { work, pasts, .. } = &mut **space;
        if machine.core.owns_lock(work, *t) {
            return;
        }
        for u in (0..pasts.len()).filter(|u| u != t) {
            let facts = machine.facts(work, u);
            if !facts.stores || facts.relevant == 0 {
                continue;
            }
            let (before, now) = (machine.seen_by(table, base, u), machine.seen_by(table, work, u));
            if before == now {
                continue;
            }
            let past = if pasts[u] == IN_STEP { table.of_memory(before) } else { pasts[u] };
            let past = table.appended(past, now, self.levels[u]);
            pasts[u] = table.settled(past, now);
        }
    }

    /// At `lock`, the pasts of others that are the present memory alone are spelled out.
    fn spell_out(&mut self) {
        let Step { machine, space, table, t, .. } = self;
        let Space { work, pasts, .. } = &mut **space;
        for u in (0..pasts.len()).filter(|u| u != t) {
            let facts = machine.facts(work, u);
            if facts.stores && facts.relevant != 0 && pasts[u] == IN_STEP {
                let now = machine.seen_by(table, work, u);
                pasts[u] = table.of_memory(now);
            }
        }
    }

    /// At `unlock`, the others' pasts grow by what the block has left.
    fn publish_block(&mut self) {
        let Step { machine, space, table, t, .. } = self;
        let Space { work, pasts, .. } = &mut **space;
        for u in (0..pasts.len()).filter(|u| u != t) {
            if pasts[u] != IN_STEP {
                let now = machine.seen_by(table, work, u);
                let past = table.appended(pasts[u], now, self.levels[u]);
                pasts[u] = table.settled(past, now);
            }
        }
    }

    /// The thread goes on by itself, with its past, until it stops.
    fn run_ahead<R: Telling>(&mut self, past: PastId, told: R) -> Flow
    where
        S: Successors<R>,
    {
        if past == IN_STEP {
            return self.stop_in_step(told);
        }
        self.space.seen.clear();
        let mut todo = vec![Ahead { own: self.machine.save(&self.space.work, self.t), past, told }];
        while let Some(Ahead { own, past, mut told }) = todo.pop() {
            self.limits.spend(PLACE)?;
            self.space.passed += 1;
            if self.space.passed > self.space.most {
                return Err(Stop::TooFar);
            }
            self.machine.restore(&mut self.space.work, self.t, &own);
            let past = self.run(past, &mut told);
            if past == IN_STEP {
                if self.stop_in_step(told)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                continue;
            }
            let own = self.machine.save(&self.space.work, self.t);
            if !self.space.seen.insert((own.clone(), past)) {
                continue;
            }
            let waits = self.machine.facts(&self.space.work, self.t).stores;
            if self.emit(if waits { past } else { IN_STEP }, &told)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            if !waits {
                self.go_on(&own, past, &told, &mut todo);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The thread runs up to its next scheduling point; its past there.
    fn run<R: Telling>(&mut self, mut past: PastId, told: &mut R) -> PastId {
        let Step { machine, space, table, t, .. } = self;
        let (core, work, t) = (&machine.core, &mut space.work, *t);
        while past != IN_STEP && !core.node(work, t).scheduling_point {
            let edges = &core.node(work, t).edges;
            match edges.iter().find(|edge| core.take(work, t, edge, None) == Taken::Yes) {
                None => work.vals[t] = core.code.threads[t].stuck as Value,
                Some(edge) => {
                    told.push(t, Act::Step { edge: edge.id, choice: None });
                    if matches!(edge.instr, CInstr::Fence) {
                        past = IN_STEP;
                    }
                }
            }
        }
        if past == IN_STEP {
            return IN_STEP;
        }
        core.clear_dead_registers(work);
        let facts = machine.facts(work, t);
        let past = table.restricted(past, machine.relevant(facts), self.levels[t]);
        let now = machine.seen_by(table, work, t);
        table.settled(past, now)
    }

    /// In step, the thread runs up to its next scheduling point and stops there.
    fn stop_in_step<R: Telling>(&mut self, mut told: R) -> Flow
    where
        S: Successors<R>,
    {
        self.machine.core.run(&mut self.space.work, self.t, &mut told);
        self.emit(IN_STEP, &told)
    }

    /// Where a thread that does not stop gets to by loads and local steps.
    fn go_on<R: Telling>(&mut self, own: &[Value], past: PastId, told: &R, todo: &mut Vec<Ahead<R>>) {
        let (machine, t) = (self.machine, self.t);
        let core = &machine.core;
        for edge in &core.node(&self.space.work, t).edges {
            machine.restore(&mut self.space.work, t, own);
            for choice in edge.instr.choices() {
                machine.restore(&mut self.space.work, t, own);
                let act = Act::Step { edge: edge.id, choice };
                let mut told = told.clone();
                match &edge.instr {
                    CInstr::Load { dst, addr, .. } => {
                        // One that goes wrong does so in step, too.
                        let Some(cell) = core.cell(&self.space.work, addr) else { continue };
                        told.push(t, act);
                        for which in self.table.reads(past, cell as u32) {
                            machine.restore(&mut self.space.work, t, own);
                            let mut told = told.clone();
                            let left = self.load(edge, *dst, cell, which, &mut told);
                            let own = machine.save(&self.space.work, t);
                            todo.push(Ahead { own, past: left, told });
                        }
                    }
                    CInstr::Store { .. }
                    | CInstr::Fence
                    | CInstr::Membarrier
                    | CInstr::Rmw { .. }
                    | CInstr::Lock
                    | CInstr::Unlock => {}
                    _ => {
                        if core.take(&mut self.space.work, t, edge, choice) == Taken::Yes {
                            told.push(t, act);
                            let own = machine.save(&self.space.work, t);
                            todo.push(Ahead { own, past, told });
                        }
                    }
                }
            }
        }
    }

    fn emit<R: Telling>(&mut self, past: PastId, told: &R) -> Flow
    where
        S: Successors<R>,
    {
        let Space { work, out, pasts, out_pasts, .. } = &mut *self.space;
        out.copy(work, self.t);
        out_pasts.clone_from(pasts);
        out_pasts[self.t] = past;
        self.sink.state(self.table, out, out_pasts, told)
    }
}

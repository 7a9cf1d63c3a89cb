//! How does a program become streams of guarded accesses? Loops are taken out up to a bound, and each thread's text
//! is followed once, from its beginning.
//!
//! Where control meets again, registers become choices between what they were. In a stream of *complete* runs every
//! condition that must hold (`assume`) is required once and for all, and guards are branches alone; in one of
//! *partial* runs a thread stops where a condition fails, where it goes wrong, or where the bound is reached,
//! so that errors, waits and rounds too many can be asked about.

use super::graph::{Acyclic, StreamWay};
use super::streams::{ErrorAt, Fence, Item, NoStreams, StepOf, Stream, StreamAccess, Streams, Wait, What};
use super::terms::{TermId, Terms};
use crate::model::{
    BinOp, Bytes, Edge, EdgeId, FenceKinds, Instr, Loc, Program, Reg, RegExpr, RmwOp, ThreadId, Value,
};
use crate::query::{Limits, Trap};
use std::collections::{HashMap, HashSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runs {
    /// Every thread comes to its end.
    Complete,
    /// Threads may stop on the way.
    Partial,
}

/// What is known of a program beside itself.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Rounds of each loop.
    pub bound: u32,
    /// Conditions that a thread waits for in a loop, right behind the locked instruction that asks.
    pub waits: HashSet<(ThreadId, EdgeId)>,
    /// Places for fences, with a number and what may be put there.
    pub candidates: HashMap<(ThreadId, EdgeId), (usize, FenceKinds)>,
    /// Stores that give a block back: the cell must hold something else than 0.
    pub frees: HashSet<(ThreadId, EdgeId)>,
    /// Cells below this one may not be accessed.
    pub first_cell: Value,
}

impl Streams {
    pub fn new(program: &Program, plan: &Plan, runs: Runs, limits: &Limits) -> Result<Streams, NoStreams> {
        let streams = Streams {
            terms: Terms::default(),
            threads: Vec::new(),
            accesses: Vec::new(),
            fences: Vec::new(),
            nodes: 0,
            required: Vec::new(),
            errors: Vec::new(),
            overruns: Vec::new(),
            waits: Vec::new(),
            picks: Vec::new(),
        };
        let mut unroller =
            Unroller { program, plan, runs, streams, stream: Stream::default(), thread: ThreadId(0) };
        for t in program.thread_ids() {
            unroller.thread(t, limits)?;
        }
        Ok(unroller.streams)
    }
}

/// Where a thread stands: whether it does, with what in its registers, and the block it is in.
#[derive(Clone, Debug)]
struct Standing {
    guard: TermId,
    registers: Vec<TermId>,
    block: Option<usize>,
}

struct Unroller<'a> {
    program: &'a Program,
    plan: &'a Plan,
    runs: Runs,
    streams: Streams,
    stream: Stream,
    thread: ThreadId,
}

impl Unroller<'_> {
    fn thread(&mut self, t: ThreadId, limits: &Limits) -> Result<(), NoStreams> {
        let program = self.program;
        let thread = program.thread(t);
        self.thread = t;
        let graph = Acyclic::new(thread, self.plan.bound, limits)?;
        let mut arrived: Vec<Vec<Standing>> = vec![Vec::new(); graph.copies.len()];
        let registers = vec![TermId::FALSE; thread.registers().len()];
        arrived[0].push(Standing { guard: TermId::TRUE, registers, block: None });
        for (k, copy) in graph.copies.iter().enumerate() {
            limits.spend(64 + copy.edges.len() * thread.registers().len())?;
            let Some(here) = self.meet(std::mem::take(&mut arrived[k]))? else { continue };
            if copy.loc == thread.end() {
                self.end(here);
                continue;
            }
            let edges: Vec<(EdgeId, &Edge, StreamWay)> =
                copy.edges.iter().map(|(id, way)| (*id, thread.edge(*id), *way)).collect();
            self.stream.instructions += edges.len().min(1);
            for (standing, way) in self.leave(here, &edges)? {
                match way {
                    _ if standing.guard == TermId::FALSE => {}
                    StreamWay::To(to) => arrived[to].push(standing),
                    StreamWay::Overrun => self.overrun(standing.guard),
                }
            }
        }
        self.streams.threads.push(std::mem::take(&mut self.stream));
        Ok(())
    }

    fn end(&mut self, here: Standing) {
        let ends = match self.stream.ends.take() {
            None => (here.guard, here.registers),
            Some((guard, registers)) => {
                let terms = &mut self.streams.terms;
                let both = here.registers.iter().zip(registers);
                let registers = both.map(|(a, b)| terms.choice(here.guard, *a, b)).collect();
                (terms.or(guard, here.guard), registers)
            }
        };
        self.stream.ends = Some(ends);
    }

    fn overrun(&mut self, guard: TermId) {
        self.streams.overruns.push((self.thread.index(), guard));
        if self.runs == Runs::Complete {
            let never = self.streams.terms.not(guard);
            self.streams.required.push(never);
        }
    }

    /// Those that come to one place from several sides. Ways that part at one branch meet first, so that
    /// guards become what they were before it.
    fn meet(&mut self, mut all: Vec<Standing>) -> Result<Option<Standing>, NoStreams> {
        loop {
            let terms = &mut self.streams.terms;
            let pairs = (0..all.len()).flat_map(|i| (i + 1..all.len()).map(move |j| (i, j)));
            let found = pairs
                .rev()
                .find_map(|(i, j)| terms.parting(all[i].guard, all[j].guard).map(|(g, c)| (i, j, g, c)));
            let (i, j, guard, condition) = match found {
                Some(found) => found,
                None if all.len() > 1 => {
                    let (a, b) = (all[all.len() - 2].guard, all[all.len() - 1].guard);
                    (all.len() - 2, all.len() - 1, terms.or(a, b), a)
                }
                None => return Ok(all.pop()),
            };
            let second = all.remove(j);
            let first = &mut all[i];
            if first.block != second.block {
                return Err(NoStreams::Unsupported("a `lock` block that begins in several places"));
            }
            first.guard = guard;
            for (a, b) in first.registers.iter_mut().zip(second.registers) {
                *a = terms.choice(condition, *a, b);
            }
        }
    }

    /// What becomes of a thread along each of the edges.
    fn leave(
        &mut self,
        here: Standing,
        edges: &[(EdgeId, &Edge, StreamWay)],
    ) -> Result<Vec<(Standing, StreamWay)>, NoStreams> {
        if edges.is_empty() {
            // Nothing leads on from here, and this is not the end.
            let mut stuck = here;
            self.narrow(&mut stuck, TermId::FALSE);
            return Ok(Vec::new());
        }
        if let [(id, edge, way)] = edges {
            return Ok(self.take(here, *id, edge)?.map(|next| (next, *way)).into_iter().collect());
        }
        let branches = match edges {
            [(_, Edge { instr: Instr::Assume(a), .. }, _), (_, Edge { instr: Instr::Assume(b), .. }, _)] => {
                let (a, b) = (self.expr(a, &here.registers), self.expr(b, &here.registers));
                let (a, b) = (self.streams.terms.truth(a), self.streams.terms.truth(b));
                (self.streams.terms.not(a) == b).then_some([a, b])
            }
            _ => None,
        };
        let mut all = Vec::new();
        let here = match branches {
            Some(_) => match self.defined(here, edges[0].0, &edges[0].1.instr) {
                Some(here) => here,
                None => return Ok(all),
            },
            None => here,
        };
        let picked = match branches {
            None if edges.len() > 1 => Some(self.pick(0, edges.len() as Value - 1)),
            _ => None,
        };
        for (k, (id, edge, way)) in edges.iter().enumerate() {
            let terms = &mut self.streams.terms;
            let mut next = here.clone();
            if let Some(picked) = picked {
                let number = terms.constant(k as Value);
                let taken = terms.binary(BinOp::Eq, picked, number);
                next.guard = terms.and(here.guard, taken);
            }
            match branches {
                Some(branches) => {
                    next.guard = terms.and(here.guard, branches[k]);
                    let guard = next.guard;
                    self.stream.steps.push(StepOf { edge: *id, guard, choice: None, access: None });
                    all.push((next, *way));
                }
                None => all.extend(self.take(next, *id, edge)?.map(|next| (next, *way))),
            }
        }
        Ok(all)
    }

    fn pick(&mut self, lo: Value, hi: Value) -> TermId {
        self.streams.picks.push(Some((lo, hi)));
        self.streams.terms.input()
    }

    fn expr(&mut self, e: &RegExpr, registers: &[TermId]) -> TermId {
        self.streams.terms.of_expr(e, &|r: &Reg| registers[r.index()])
    }

    /// The condition must hold from here on, or else this is an error.
    fn check(&mut self, mut here: Standing, edge: EdgeId, ok: TermId, what: What) -> Option<Standing> {
        let terms = &mut self.streams.terms;
        let failed = terms.not(ok);
        let guard = terms.and(here.guard, failed);
        if guard == TermId::FALSE {
            return Some(here);
        }
        self.streams.errors.push(ErrorAt { thread: self.thread.index(), edge, guard, what });
        self.narrow(&mut here, ok);
        (here.guard != TermId::FALSE).then_some(here)
    }

    /// Whoever goes on has the condition behind them.
    fn narrow(&mut self, here: &mut Standing, ok: TermId) {
        let terms = &mut self.streams.terms;
        match self.runs {
            Runs::Partial => here.guard = terms.and(here.guard, ok),
            Runs::Complete => {
                let not_here = terms.not(here.guard);
                let required = terms.or(not_here, ok);
                self.streams.required.push(required);
                if terms.and(here.guard, ok) == TermId::FALSE {
                    here.guard = TermId::FALSE;
                }
            }
        }
    }

    /// No division by zero in the instruction.
    fn defined(&mut self, mut here: Standing, id: EdgeId, instr: &Instr) -> Option<Standing> {
        for e in instr.exprs().into_iter().filter(|e| e.may_divide_by_zero()) {
            let ok = self.expr(&e.defined(), &here.registers);
            let ok = self.streams.terms.truth(ok);
            here = self.check(here, id, ok, What::Trap(Trap::DivisionByZero))?;
        }
        Some(here)
    }

    fn take(&mut self, here: Standing, id: EdgeId, edge: &Edge) -> Result<Option<Standing>, NoStreams> {
        if let Instr::Load { bytes, .. } | Instr::Store { bytes, .. } = &edge.instr
            && *bytes != Bytes::WHOLE
        {
            return Err(NoStreams::Unsupported("accesses to a part of a cell"));
        }
        let Some(mut here) = self.defined(here, id, &edge.instr) else { return Ok(None) };
        let mut addr = TermId::FALSE;
        if let Some(e) = edge.instr.address() {
            addr = self.expr(e, &here.registers);
            let terms = &mut self.streams.terms;
            let (lo, hi) =
                (terms.constant(self.plan.first_cell), terms.constant(self.program.cells() as Value));
            let (lo, hi) = (terms.binary(BinOp::Ge, addr, lo), terms.binary(BinOp::Lt, addr, hi));
            let inside = terms.and(lo, hi);
            match self.check(here, id, inside, What::Trap(Trap::OutOfRange(0))) {
                Some(still) => here = still,
                None => return Ok(None),
            }
        }
        let mut step = StepOf { edge: id, guard: here.guard, choice: None, access: None };
        match &edge.instr {
            Instr::Load { dst, .. } => {
                let input = self.load();
                step.access = Some(self.access(&here, id, addr, Some(input), None));
                here.registers[dst.index()] = input;
            }
            Instr::Store { value, .. } => {
                let value = self.expr(value, &here.registers);
                let mut held = None;
                if self.runs == Runs::Partial && self.plan.frees.contains(&(self.thread, id)) {
                    held = Some(self.load());
                }
                step.access = Some(self.access(&here, id, addr, held, Some((here.guard, value))));
                if let Some(held) = held {
                    if let Some(access) = self.streams.accesses.last_mut() {
                        access.ghost = true;
                    }
                    let held = self.streams.terms.truth(held);
                    self.stream.steps.push(step);
                    return Ok(self.check(here, id, held, What::DoubleFree));
                }
            }
            Instr::Rmw { dst, op, .. } => return self.rmw(here, id, edge, addr, *dst, op).map(Some),
            Instr::Fence | Instr::Partial(_) => {
                let kinds = edge.instr.fence_kinds().unwrap_or(FenceKinds::NONE);
                self.fence(here.guard, kinds, None);
            }
            Instr::Assign { dst, value } => here.registers[dst.index()] = self.expr(value, &here.registers),
            Instr::Any { dst, lo, hi } => {
                let picked = if lo == hi { self.streams.terms.constant(*lo) } else { self.pick(*lo, *hi) };
                step.choice = Some(picked);
                here.registers[dst.index()] = picked;
            }
            Instr::Assume(e) => {
                let ok = self.expr(e, &here.registers);
                let ok = self.streams.terms.truth(ok);
                if self.runs == Runs::Partial && self.plan.waits.contains(&(self.thread, id)) {
                    self.wait(&here, ok);
                }
                self.narrow(&mut here, ok);
                step.guard = self.streams.terms.and(step.guard, ok);
            }
            Instr::Assert(e) => {
                let ok = self.expr(e, &here.registers);
                let ok = self.streams.terms.truth(ok);
                match self.check(here, id, ok, What::Trap(Trap::Assertion)) {
                    Some(still) => here = still,
                    None => return Ok(None),
                }
                step.guard = self.streams.terms.and(step.guard, ok);
            }
            Instr::Lock => {
                let node = self.node();
                self.stream.items.push(Item::Locked { node, guard: here.guard });
                here.block = Some(node);
            }
            Instr::Unlock => here.block = None,
            Instr::Membarrier => return Err(NoStreams::Unsupported("`membarrier`")),
            Instr::Nop => {
                if let Some((number, kinds)) = self.plan.candidates.get(&(self.thread, id)) {
                    self.fence(here.guard, *kinds, Some(*number));
                }
            }
        }
        self.stream.steps.push(step);
        Ok(Some(here))
    }

    fn rmw(
        &mut self,
        mut here: Standing,
        id: EdgeId,
        edge: &Edge,
        addr: TermId,
        dst: Reg,
        op: &RmwOp,
    ) -> Result<Standing, NoStreams> {
        let input = self.load();
        let registers = here.registers.clone();
        let mut operand = |e: &RegExpr| self.expr(e, &registers);
        let (written, value) = match op {
            RmwOp::Swap(v) => (TermId::TRUE, operand(v)),
            RmwOp::New(new) => {
                // The register stands for the old value here.
                let mut after = registers.clone();
                after[dst.index()] = input;
                (TermId::TRUE, self.expr(new, &after))
            }
            RmwOp::Cas { old, new } => {
                let (old, new) = (operand(old), operand(new));
                (self.streams.terms.binary(BinOp::Eq, input, old), new)
            }
            _ => {
                let (op, e) =
                    op.combines().ok_or(NoStreams::Unsupported("a locked instruction of this kind"))?;
                let e = operand(e);
                (TermId::TRUE, self.streams.terms.binary(op, input, e))
            }
        };
        here.registers[dst.index()] = input;
        let mut stored = self.streams.terms.and(here.guard, written);
        let wait = self.wait_behind(edge.to).filter(|_| self.runs == Runs::Partial);
        if let Some(condition) = wait {
            // A round of waiting that fails is to leave memory as it was: then none need be told.
            let ok = self.expr(&condition, &here.registers);
            let ok = self.streams.terms.truth(ok);
            let terms = &mut self.streams.terms;
            let (failed, changes) = (terms.not(ok), terms.binary(BinOp::Ne, input, value));
            let loud = terms.and(failed, changes);
            let loud = terms.and(stored, loud);
            stored = terms.and(stored, ok);
            if loud != TermId::FALSE {
                let thread = self.thread.index();
                self.streams.errors.push(ErrorAt { thread, edge: id, guard: loud, what: What::LoudWait });
            }
        }
        let access = self.access(&here, id, addr, Some(input), Some((stored, value)));
        let node = self.streams.accesses[access].node;
        self.stream.items.push(Item::Locked { node, guard: here.guard });
        self.stream.steps.push(StepOf { edge: id, guard: here.guard, choice: None, access: Some(access) });
        Ok(here)
    }

    /// The condition that is waited for at this location, if one is.
    fn wait_behind(&self, loc: Loc) -> Option<RegExpr> {
        match &self.program.thread(self.thread).edges_from(loc)[..] {
            [(id, Edge { instr: Instr::Assume(e), .. })] if self.plan.waits.contains(&(self.thread, *id)) => {
                Some(e.clone())
            }
            _ => None,
        }
    }

    fn wait(&mut self, here: &Standing, ok: TermId) {
        let terms = &mut self.streams.terms;
        let failed = terms.not(ok);
        let guard = terms.and(here.guard, failed);
        let access = self.stream.items.iter().rev().find_map(|item| match item {
            Item::Access(access) => Some(*access),
            _ => None,
        });
        if let Some(access) = access {
            self.streams.waits.push(Wait { thread: self.thread.index(), guard, access });
        }
    }

    fn fence(&mut self, guard: TermId, kinds: FenceKinds, candidate: Option<usize>) {
        self.stream.items.push(Item::Fence(self.streams.fences.len()));
        self.streams.fences.push(Fence { guard, kinds, candidate });
    }

    fn load(&mut self) -> TermId {
        self.streams.picks.push(None);
        self.streams.terms.input()
    }

    fn node(&mut self) -> usize {
        self.streams.nodes += 1;
        self.streams.nodes - 1
    }

    fn access(
        &mut self,
        here: &Standing,
        edge: EdgeId,
        addr: TermId,
        load: Option<TermId>,
        store: Option<(TermId, TermId)>,
    ) -> usize {
        let node = here.block.unwrap_or_else(|| self.node());
        let (thread, guard) = (self.thread.index(), here.guard);
        self.stream.items.push(Item::Access(self.streams.accesses.len()));
        self.streams.accesses.push(StreamAccess {
            thread,
            edge,
            node,
            guard,
            addr,
            load,
            ghost: false,
            store,
        });
        self.streams.accesses.len() - 1
    }
}

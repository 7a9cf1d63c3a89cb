//! The runs that may become witnesses, as states: an SC state and, once a store is delayed, what the attack has
//! come to (`algorithms`, three phases).
//!
//! Phase 1 is plain SC; its states are those of the SC machine, shared by all attacks. Phase 2 begins when the
//! *attacker* issues an attack's store into its buffer: from then on its stores stay there (of several to one
//! cell only the newest is kept, nobody else can see them) and it can pass no fence. Phase 3 begins with the
//! attack's load, from memory, of a cell that is not buffered; the attacker stops for good. The attack succeeds
//! when an event that happens after the load has touched the cell of the delayed store: flushing it closes a cycle.
//!
//! In phase 3 the others move only if their event happens after the load: their thread is a *helper* already, or the
//! event conflicts with one that does (`after`: per cell none, read, written). In phase 2 they move only if their
//! event happens after some load that the attacker made since its store: whatever does not could
//! as well have happened in phase 1. Local steps and fences are free.
//! A `lock` … `unlock` block is one event: if one access happens after the load, all do. A thread that enters a
//! block without being a helper makes a *claim*: the block's accesses are noted apart until one of them earns it, and a
//! block that has not earned it cannot end.
//!
//! Why the SC machine's reductions are right for phase 1: a step that hurries conflicts with nothing the others
//! may still do. So it is neither an attack's store (someone must touch its cell later) nor does it happen
//! after the load, and a witness that has it later, or not at all, has it here as well. Pruning by a goal and
//! faint cells are off, and sleeping threads begin attacks nevertheless.
//! States of phase 1 may be renamed (`reach::symmetry`): if an attack of a thread succeeds from a state, that of its
//! namesake does from the state's image. So that one must not be refuted: threads change places only if the text
//! refutes the same attacks of all of them. An attack itself keeps its names.

use super::attack::{Attacks, DelayedStore, Overtakers};
use super::known::KnownPaths;
use crate::analysis::interval::{Interval, Intervals};
use crate::machine::{
    CEdge, Memory, Node, Op, Pending, ProgramMachine, Record, Scratch, Taken, Work, lock_slot, renamed,
};
use crate::model::{EdgeId, Instr, Program, ThreadId, Value};
use crate::query::Reductions;
use crate::query::{Act, Action, Goal, Limit, Limits};
use crate::reach::pack::Layout;
use crate::reach::visited::MAX_WORDS;
use crate::reach::{Look, Machine, Sink, Sleep, Wanted};
use bit_set::BitSet;
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};

pub struct AttackMachine<'a> {
    program: &'a Program,
    base: ProgramMachine,
    targets: Vec<Target>,
    /// The loads that targets wait for.
    overtakers: Vec<Loads>,
    /// Per thread and edge the number of a load that anybody waits for.
    numbers: Vec<Vec<usize>>,
    /// Per thread and node, the attacks that begin there.
    begin: Vec<Vec<Vec<usize>>>,
    /// More than any load's number.
    stride: usize,
    /// The attacks that have succeeded already: nobody wants to see them succeed again.
    succeeded: RwLock<HashSet<usize>>,
    /// Whether there are any.
    any_succeeded: AtomicBool,
    known: &'a KnownPaths,
    slots: Slots,
    layout: Layout,
}

/// A delayed store in the terms of the compiled program.
struct Target {
    thread: usize,
    edge: EdgeId,
    /// The loads of its attacks, as an index.
    overtakers: usize,
    /// Attacks of this store that have not succeeded yet.
    open: AtomicUsize,
}

/// The loads of a thread that a target waits for.
struct Loads {
    edges: BitSet,
    /// The nodes from which one of them can still be reached.
    leads_on: BitSet,
}

/// What it costs to expand a state, in steps.
const EXPANSION: usize = 500;

/// How a cell was touched by events that happen after the load.
const NOT: Value = 0;
const READ: Value = 1;
const WRITTEN: Value = 2;

/// Where things are in the part of a state that belongs to the attack.
#[derive(Clone, Copy)]
struct Slots {
    cells: usize,
    threads: usize,
}

impl Slots {
    const TARGET: usize = 0;
    const CELL: usize = 1;
    const PHASE: usize = 2;
    const CLAIM: usize = 3;
    /// In phase 3, the number of the load.
    const LOAD: usize = 4;
    /// In phase 2, where the attacker's path stands among the known ones.
    const TRAIL: usize = 5;
    const FIXED: usize = 6;

    fn buffered(self, cell: usize) -> usize {
        Slots::FIXED + cell
    }
    fn value(self, cell: usize) -> usize {
        self.buffered(self.cells) + cell
    }
    fn after(self, cell: usize) -> usize {
        self.value(self.cells) + cell
    }
    /// Touched by a block that has not earned its claim.
    fn noted(self, cell: usize) -> usize {
        self.after(self.cells) + cell
    }
    fn helper(self, thread: usize) -> usize {
        self.noted(self.cells) + thread
    }
    fn count(self) -> usize {
        self.helper(self.threads)
    }
}

/// A state of phase 2 or 3 in the making. The attacker's buffer is in `work`.
#[derive(Clone, Default)]
struct Attack {
    work: Work,
    vals: Vec<Value>,
}

#[derive(Default)]
pub struct AttackScratch {
    phase1: Scratch,
    base: Attack,
    next: Attack,
    packed: Vec<u64>,
}

#[derive(Clone, Copy, PartialEq)]
enum Access {
    Read,
    Write,
}

impl<'a> AttackMachine<'a> {
    /// Attacks along known paths do not count.
    pub fn new(
        program: &'a Program,
        attacks: &Attacks,
        known: &'a KnownPaths,
        reductions: Reductions,
        limits: &Limits,
    ) -> Result<AttackMachine<'a>, Limit> {
        // Known paths are known of certain threads.
        let symmetry = reductions.symmetry && known.is_empty();
        let reductions = Reductions { prune: false, faint: false, movers: false, symmetry, ..reductions };
        let base = ProgramMachine::new(program, &Goal::default(), Memory::Sc, reductions, limits)?
            .symmetric_if(|members| attacks.are_alike(members));
        let targets: Vec<Target> = attacks.stores.iter().map(Target::new).collect();
        let (overtakers, numbers) = overtakers(attacks, &base);
        let stride = numbers.iter().flatten().max().map_or(1, |last| last + 1);
        let mut begin: Vec<Vec<Vec<usize>>> =
            base.code.threads.iter().map(|t| vec![Vec::new(); t.nodes.len()]).collect();
        for (i, target) in targets.iter().enumerate() {
            let from = program.thread(ThreadId(target.thread as u16)).edge(target.edge).from;
            let node = base.code.threads[target.thread].node_of[from.index()];
            begin[target.thread][node as usize].push(i);
        }
        let slots = Slots { cells: program.cells(), threads: program.threads().len() };
        let mut intervals = intervals(program, attacks, slots, reductions, limits)?;
        intervals[Slots::LOAD] = Interval { lo: 0, hi: stride as Value - 1 };
        intervals[Slots::TRAIL] = Interval { lo: 0, hi: known.last_place() as Value };
        let layout = Layout::loose(intervals.into_iter().enumerate());
        Ok(AttackMachine {
            program,
            base,
            targets,
            overtakers,
            numbers,
            begin,
            stride,
            succeeded: RwLock::default(),
            any_succeeded: AtomicBool::new(false),
            known,
            slots,
            layout,
        })
    }

    /// Words of a packed state of phase 2 or 3.
    pub fn words(&self) -> usize {
        self.base.words() + self.layout.words()
    }

    /// Was a state left out because it needs too many words? Then an exhausted search is no proof.
    pub fn too_large(&self) -> bool {
        self.words() > MAX_WORDS
    }

    fn is_phase_1(&self, state: &[u64]) -> bool {
        state.len() == self.base.words()
    }

    fn unpack(&self, state: &[u64], attack: &mut Attack) {
        let (sc, own) = state.split_at(self.base.words());
        self.base.unpack(sc, &mut attack.work);
        attack.vals.clear();
        attack.vals.resize(self.slots.count(), 0);
        self.layout.unpack(own, &mut attack.vals);
        let buffers = &mut attack.work.buffers;
        buffers.resize(self.slots.threads, Vec::new());
        buffers.iter_mut().for_each(Vec::clear);
        let attacker = self.targets[attack.vals[Slots::TARGET] as usize].thread;
        for cell in 0..self.slots.cells {
            if attack.vals[self.slots.buffered(cell)] != 0 {
                buffers[attacker].push(Pending::one(cell as u32, attack.vals[self.slots.value(cell)]));
            }
        }
    }

    fn pack(&self, attack: &mut Attack, out: &mut Vec<u64>) {
        self.base.bury(&mut attack.work);
        let (from, to) = (self.slots.buffered(0), self.slots.after(0));
        attack.vals[from..to].fill(0);
        for &Pending { cell, value, .. } in attack.work.buffers.iter().flatten() {
            attack.vals[self.slots.buffered(cell as usize)] = 1;
            attack.vals[self.slots.value(cell as usize)] = value;
        }
        out.clear();
        self.base.pack(&attack.work, out);
        self.layout.pack(&attack.vals, out);
    }

    fn target(&self, attack: &Attack) -> &Target {
        &self.targets[attack.vals[Slots::TARGET] as usize]
    }

    fn node(&self, attack: &Attack, t: usize) -> &Node {
        self.base.node(&attack.work, t)
    }

    fn lock_is_free(&self, work: &Work) -> bool {
        work.vals[lock_slot(self.slots.threads)] == 0
    }

    /// Is anybody still waiting for the attack to succeed?
    fn is_open(&self, attack: &Attack) -> bool {
        match attack.vals[Slots::PHASE] {
            0 => self.target(attack).open.load(Ordering::Relaxed) > 0,
            _ if !self.any_succeeded.load(Ordering::Relaxed) => true,
            _ => {
                let succeeded = self.succeeded.read().unwrap_or_else(PoisonError::into_inner);
                !succeeded.contains(&self.number(attack))
            }
        }
    }

    /// The number of an attack in phase 3.
    fn number(&self, attack: &Attack) -> usize {
        attack.vals[Slots::TARGET] as usize * self.stride + attack.vals[Slots::LOAD] as usize
    }

    /// Can the attack still succeed, by the graphs alone? Somebody else has to touch the delayed store's cell,
    /// and before that the attacker has to come to its load.
    fn has_hope(&self, attack: &Attack) -> bool {
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

    /// Every state in which an attack has just begun, from a state of phase 1. A thread that holds memory in a block
    /// cannot attack, for nobody could close the cycle before it flushes; and while another one does, it
    /// may as well wait, for it cannot load from memory before the block ends.
    fn beginnings<R: Record>(
        &self,
        base: &Attack,
        next: &mut Attack,
        mut done: impl FnMut(&mut Attack, &R) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if !self.lock_is_free(&base.work) {
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
                self.base.run(&mut next.work, t, &mut record);
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
        let Op::Store { addr, value } = &edge.op else { return None };
        let cell = self.base.cell(work, addr)?;
        let value = value.eval(&work.vals)?;
        let buffer = &mut work.buffers[t];
        buffer.retain(|store| store.cell as usize != cell);
        buffer.push(Pending::one(cell as u32, value));
        work.vals[t] = edge.to as Value;
        Some(cell)
    }

    /// Every state that follows when thread `u` moves in phase 2 or 3.
    fn successors<R: Record>(
        &self,
        base: &Attack,
        next: &mut Attack,
        u: usize,
        mut done: impl FnMut(&mut Attack, &R) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let attacker = self.target(base).thread;
        if u == attacker && base.vals[Slots::PHASE] != 0 {
            return ControlFlow::Continue(());
        }
        for edge in &self.node(base, u).edges {
            let (lo, hi, any) = match edge.op {
                Op::Any { lo, hi, .. } => (lo, hi, true),
                _ => (0, 0, false),
            };
            for choice in lo..=hi {
                let mut record = Walked::<R>::default();
                record.push(u, Act::Step { edge: edge.id, choice: any.then_some(choice) });
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
                    self.base.run(&mut next.work, u, &mut record);
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

    /// The load with which the attacker can begin phase 3, if the edge is one. It has to read memory, not its own buffer.
    fn attack_load(&self, attack: &Attack, edge: &CEdge) -> Option<usize> {
        let target = self.target(attack);
        let Op::Load { addr, .. } = &edge.op else { return None };
        let cell = self.base.cell(&attack.work, addr)?;
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

    fn reads_memory(&self, attack: &Attack, t: usize, cell: usize) -> bool {
        self.base.buffered(&attack.work, t, cell).is_none() && !self.base.held_up(&attack.work, t)
    }

    /// The attack's load: phase 3 begins. What the attacker holds no longer matters to anyone.
    fn overtake(&self, attack: &mut Attack, t: usize, edge: &CEdge, number: usize) {
        let cell = match &edge.op {
            Op::Load { addr, .. } => self.base.cell(&attack.work, addr).expect("it was looked at before"),
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
        attack.work.vals[t] = self.base.code.threads[t].stuck as Value;
    }

    /// A step of the attacker in phase 2 that is not the attack's load.
    fn attacker_step(&self, attack: &mut Attack, t: usize, edge: &CEdge, choice: Value) -> Taken {
        match &edge.op {
            Op::Store { .. } => match self.issue(&mut attack.work, t, edge) {
                Some(_) => Taken::Yes,
                None => Taken::No,
            },
            Op::Load { addr, .. } => {
                let Some(cell) = self.base.cell(&attack.work, addr) else { return Taken::No };
                if self.reads_memory(attack, t, cell) {
                    self.note(attack, cell, Access::Read);
                }
                self.base.take(&mut attack.work, t, edge, choice)
            }
            _ => self.base.take(&mut attack.work, t, edge, choice),
        }
    }

    /// A step of another thread, if it happens after the load or is local. One that goes wrong touches nothing and is its
    /// thread's last, so whatever follows can follow without it.
    fn other_step(&self, attack: &mut Attack, u: usize, edge: &CEdge, choice: Value) -> Taken {
        let helper = attack.vals[self.slots.helper(u)] != 0;
        match &edge.op {
            Op::Load { addr, .. } => match self.base.cell(&attack.work, addr) {
                Some(cell) if self.may_happen(attack, u, cell, Access::Read) => {}
                _ => return Taken::No,
            },
            Op::Store { addr, .. } | Op::Rmw { addr, .. } => match self.base.cell(&attack.work, addr) {
                Some(cell) if self.may_happen(attack, u, cell, Access::Write) => {}
                _ => return Taken::No,
            },
            Op::Lock if !helper => attack.vals[Slots::CLAIM] = 1,
            Op::Unlock if attack.vals[Slots::CLAIM] != 0 => return Taken::No,
            _ => {}
        }
        let taken = self.base.take(&mut attack.work, u, edge, choice);
        if self.base.is_trapped(&attack.work, u) { Taken::No } else { taken }
    }

    /// May thread `u` touch the cell now, because that happens after the load, or is claimed to? Notes it if so.
    fn may_happen(&self, attack: &mut Attack, u: usize, cell: usize, access: Access) -> bool {
        let touched = attack.vals[self.slots.after(cell)];
        let conflicts = match access {
            Access::Read => touched == WRITTEN,
            Access::Write => touched != NOT,
        };
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
            *noted = (*noted).max(level(access));
        } else {
            return false;
        }
        true
    }

    fn note(&self, attack: &mut Attack, cell: usize, access: Access) {
        let after = &mut attack.vals[self.slots.after(cell)];
        *after = (*after).max(level(access));
    }

    /// The block does happen after the load, and with it what it did before.
    fn earn(&self, attack: &mut Attack) {
        attack.vals[Slots::CLAIM] = 0;
        for cell in 0..self.slots.cells {
            let noted = std::mem::take(&mut attack.vals[self.slots.noted(cell)]);
            let after = &mut attack.vals[self.slots.after(cell)];
            *after = (*after).max(noted);
        }
    }

    /// The decisions of an SC run as those of a TSO run in which only the attacker's stores stay in its buffer.
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

fn level(access: Access) -> Value {
    match access {
        Access::Read => READ,
        Access::Write => WRITTEN,
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

impl Target {
    fn new(store: &DelayedStore) -> Target {
        Target {
            thread: store.thread.index(),
            edge: store.edge,
            overtakers: store.overtakers,
            open: AtomicUsize::new(store.loads),
        }
    }
}

/// The loads that are waited for, in the terms of the compiled program; and their numbers, which begin at 0 in each thread.
fn overtakers(attacks: &Attacks, base: &ProgramMachine) -> (Vec<Loads>, Vec<Vec<usize>>) {
    let mut thread_of = vec![0; attacks.overtakers.len()];
    attacks.stores.iter().for_each(|s| thread_of[s.overtakers] = s.thread.index());
    let mut all = vec![BitSet::new(); base.code.threads.len()];
    for (set, &t) in attacks.overtakers.iter().zip(&thread_of) {
        all[t].union_with(&set.loads);
    }
    let numbered = |loads: &BitSet| {
        let mut numbers = vec![0; loads.iter().last().map_or(0, |last| last + 1)];
        loads.iter().enumerate().for_each(|(k, edge)| numbers[edge] = k);
        numbers
    };
    let one = |(set, &t): (&Overtakers, &usize)| {
        let node_of = &base.code.threads[t].node_of;
        let leads_on = set.leads_on.iter().map(|l| node_of[l] as usize).collect();
        Loads { edges: set.loads.clone(), leads_on }
    };
    let overtakers = attacks.overtakers.iter().zip(&thread_of).map(one).collect();
    (overtakers, all.iter().map(numbered).collect())
}

impl Attack {
    fn copy(&mut self, other: &Attack, t: usize) {
        self.work.copy(&other.work, t);
        self.vals.clone_from(&other.vals);
    }
}

/// What the slots of an attack may hold.
fn intervals(
    program: &Program,
    attacks: &Attacks,
    slots: Slots,
    reductions: Reductions,
    limits: &Limits,
) -> Result<Vec<Interval>, Limit> {
    let known = Intervals::of(program, limits)?;
    let up_to = |hi: usize| Interval { lo: 0, hi: hi as Value };
    let mut all = vec![Interval::constant(0); slots.count()];
    all[Slots::TARGET] = up_to(attacks.stores.len().saturating_sub(1));
    all[Slots::CELL] = up_to(program.cells().saturating_sub(1));
    all[Slots::PHASE] = Interval::BOOL;
    let blocks = program.has_locks();
    all[Slots::CLAIM] = up_to(blocks as usize);
    for cell in 0..slots.cells {
        all[slots.buffered(cell)] = Interval::BOOL;
        let value = if reductions.packing { known.cell(cell) } else { Interval::FULL };
        all[slots.value(cell)] = value.join(Interval::constant(0));
        all[slots.after(cell)] = up_to(WRITTEN as usize);
        all[slots.noted(cell)] = up_to(if blocks { WRITTEN as usize } else { 0 });
    }
    for thread in 0..slots.threads {
        all[slots.helper(thread)] = Interval::BOOL;
    }
    Ok(all)
}

impl Machine for AttackMachine<'_> {
    type Scratch = AttackScratch;

    fn scratch(&self) -> AttackScratch {
        AttackScratch::default()
    }

    fn initial(&self, scratch: &mut AttackScratch, sink: &mut impl Sink) {
        self.base.initial(&mut scratch.phase1, sink);
    }

    fn look(&self, scratch: &mut AttackScratch, state: &[u64]) -> Look {
        if self.is_phase_1(state) {
            return Look::Rank(2);
        }
        let attack = &mut scratch.base;
        self.unpack(state, attack);
        let cell = attack.vals[Slots::CELL] as usize;
        match attack.vals[Slots::PHASE] {
            0 => Look::Rank(1),
            _ if attack.vals[self.slots.after(cell)] != NOT && self.lock_is_free(&attack.work) => {
                Look::Goal(self.number(attack))
            }
            _ => Look::Rank(0),
        }
    }

    fn reached(&self, number: usize) {
        let mut succeeded = self.succeeded.write().unwrap_or_else(PoisonError::into_inner);
        if succeeded.insert(number) {
            self.targets[number / self.stride].open.fetch_sub(1, Ordering::Relaxed);
            self.any_succeeded.store(true, Ordering::Relaxed);
        }
    }

    fn expand(
        &self,
        scratch: &mut AttackScratch,
        state: &[u64],
        wanted: Wanted,
        sleep: Sleep,
        sink: &mut impl Sink,
    ) {
        let AttackScratch { phase1, base, next, packed } = scratch;
        let mut hand_over = |attack: &mut Attack, _: &()| {
            if self.is_open(attack) && !self.too_large() {
                self.pack(attack, packed);
                sink.state(packed, 0);
            }
            ControlFlow::Continue(())
        };
        if !self.is_phase_1(state) {
            self.unpack(state, base);
            for u in 0..self.slots.threads {
                let _ = self.successors(base, next, u, &mut hand_over);
            }
            return;
        }
        // A state that is looked at again because a thread woke up has begun its attacks already.
        if wanted.others {
            self.unpack_phase_1(state, base);
            let _ = self.beginnings(base, next, &mut hand_over);
        }
        self.base.expand(phase1, state, wanted, sleep, sink);
    }

    fn trace(&self, line: &[Vec<u64>], limits: &Limits) -> Result<Vec<Action>, Limit> {
        let begun = line.iter().position(|state| !self.is_phase_1(state)).unwrap_or(line.len());
        let (mut actions, names) = self.base.walk(&line[..begun], limits)?;
        self.forget_errors(&mut actions, &line[begun - 1], &names);
        let mut actions = self.drained(actions, None);
        for pair in line[begun - 1..].windows(2) {
            limits.spend(EXPANSION)?;
            actions.extend(self.step(&pair[0], &pair[1]).into_iter().map(|a| renamed(a, &names)));
        }
        Ok(actions)
    }
}

impl AttackMachine<'_> {
    /// The decisions that lead from one state to the next, which is one of phase 2 or 3.
    fn step(&self, from: &[u64], to: &[u64]) -> Vec<Action> {
        let (mut base, mut next, mut packed) = (Attack::default(), Attack::default(), Vec::new());
        let mut found = None;
        let mut look = |attack: &mut Attack, record: &Vec<Action>| {
            self.pack(attack, &mut packed);
            if packed != to {
                return ControlFlow::Continue(());
            }
            found = Some(record.clone());
            ControlFlow::Break(())
        };
        if self.is_phase_1(from) {
            self.unpack_phase_1(from, &mut base);
            let _ = self.beginnings(&base, &mut next, &mut look);
        } else {
            self.unpack(from, &mut base);
            let mut threads = 0..self.slots.threads;
            let _ = threads.try_for_each(|u| self.successors(&base, &mut next, u, &mut look));
        }
        self.unpack(to, &mut base);
        let attacker = self.target(&base).thread;
        self.drained(found.expect("a stored state has a step from its parent"), Some(attacker))
    }

    /// A thread that has gone wrong in phase 1 did so in its last step, which changed nothing for the others: the run can do
    /// without it. `names` says who is who in the phase's last state.
    fn forget_errors(&self, actions: &mut Vec<Action>, last: &[u64], names: &[usize]) {
        let mut work = Work::default();
        self.base.unpack(last, &mut work);
        for t in (0..self.slots.threads).filter(|&t| self.base.is_trapped(&work, t)) {
            let step = actions.iter().rposition(|a| a.thread.index() == names[t]);
            actions.remove(step.expect("a thread goes wrong by a step"));
        }
    }

    fn unpack_phase_1(&self, state: &[u64], attack: &mut Attack) {
        self.base.unpack(state, &mut attack.work);
        attack.work.buffers.resize(self.slots.threads, Vec::new());
        attack.work.buffers.iter_mut().for_each(Vec::clear);
    }
}

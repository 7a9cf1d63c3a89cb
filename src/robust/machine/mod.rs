//! The runs that may become witnesses, as states: an SC state and, once a store is delayed, what the attack
//! has come to (`[Robust13]`, with the shape of witnesses of `[LazyTSO15]`, section 4).
//!
//! Phase 1 is plain SC; its states are those of the eager machine, shared by all attacks. Phase 2 begins when
//! the *attacker* issues an attack's store into its buffer: from then on its stores stay there (of several to
//! one cell only the newest is kept, no other thread can see them) and it can pass no fence. Phase 3 begins with
//! the attack's load, from memory, of a cell that is not buffered; the attacker stops for good. The attack
//! succeeds when an event that happens after the load has touched the cell of the delayed store: flushing it
//! closes a cycle.
//!
//! In phase 3 the others move only if their event happens after the load: their thread is a *helper* already,
//! or the event conflicts with one that does (`after`: per cell none, read, written). In phase 2 they move
//! only if their event happens after some load that the attacker made since its store: whatever does not
//! could as well have happened in phase 1. Local steps and fences are free. A `lock` … `unlock` block is one
//! event: if one access happens after the load, all do. A thread that enters a block without being a helper
//! makes a *claim*: the block's accesses are noted apart until one of them earns it, and a block that has not
//! earned it cannot end.
//!
//! Why the eager machine's reductions are right for phase 1: an ample step conflicts with nothing the others
//! may still do. So it is neither an attack's store (someone must touch its cell later) nor does it happen
//! after the load, and a witness that has it later, or not at all, has it here as well. Pruning by a goal and
//! faint cells are off, and sleeping threads begin attacks nevertheless. States of phase 1 may be renamed
//! (`machine::canonical`): if an attack of a thread succeeds from a state, that of its namesake does from the
//! state's image. So that one must not be refuted: threads change places only if the text refutes the same
//! attacks of all of them. An attack itself keeps its names.
//!
//! `targets` has the attacks, `state` what a state of one is made of, `steps` the steps of phases 2 and 3,
//! and `telling` leads a run back to decisions.

mod state;
mod steps;
mod targets;
mod telling;

use super::attack::Attacks;
use super::known::KnownPaths;
use crate::analysis::interval::Interval;
use crate::machine::{EagerMachine, EagerScratch, MemoryModel, Node};
use crate::model::{Program, ThreadId, Value};
use crate::query::{Action, Goal, Limit, Limits, Reductions};
use crate::reach::pack::Layout;
use crate::reach::visited::MAX_WORDS;
use crate::reach::{Look, Machine, Sink, Sleep, Wanted};
use state::{AttackState, NOT, Slots, intervals};
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};
use targets::{AttackTarget, Loads, overtakers};

pub(crate) struct AttackMachine<'a> {
    program: &'a Program,
    base: EagerMachine,
    targets: Vec<AttackTarget>,
    /// The loads that targets wait for.
    overtakers: Vec<Loads>,
    /// Per thread and edge the number of a load that an attack is to end with.
    numbers: Vec<Vec<usize>>,
    /// Per thread and node, the attacks that begin there.
    begin: Vec<Vec<Vec<usize>>>,
    /// More than any load's number.
    stride: usize,
    /// The attacks that have succeeded already and need not succeed again.
    succeeded: RwLock<HashSet<usize>>,
    /// Whether there are any.
    any_succeeded: AtomicBool,
    known: &'a KnownPaths,
    slots: Slots,
    layout: Layout,
}

#[derive(Default)]
pub(crate) struct AttackScratch {
    phase1: EagerScratch,
    base: AttackState,
    next: AttackState,
    packed: Vec<u64>,
}

impl<'a> AttackMachine<'a> {
    /// Attacks along known paths do not count.
    pub(crate) fn new(
        program: &'a Program,
        attacks: &Attacks,
        known: &'a KnownPaths,
        reductions: Reductions,
        limits: &Limits,
    ) -> Result<AttackMachine<'a>, Limit> {
        // Known paths are known of certain threads.
        let symmetry = reductions.symmetry && known.is_empty();
        let reductions = Reductions { prune: false, faint: false, symmetry, ..reductions };
        let mut base = EagerMachine::new(program, &Goal::default(), MemoryModel::Sc, reductions, limits)?;
        base.core.symmetric_if(|members| attacks.are_alike(members));
        let targets: Vec<AttackTarget> = attacks.stores.iter().map(AttackTarget::new).collect();
        let (overtakers, numbers) = overtakers(attacks, &base.core);
        let stride = numbers.iter().flatten().max().map_or(1, |last| last + 1);
        let mut begin: Vec<Vec<Vec<usize>>> =
            base.core.code.threads.iter().map(|t| vec![Vec::new(); t.nodes.len()]).collect();
        for (i, target) in targets.iter().enumerate() {
            let from = program.thread(ThreadId(target.thread as u16)).edge(target.edge).from;
            let node = base.core.code.threads[target.thread].node_of[from.index()];
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
    pub(crate) fn words(&self) -> usize {
        self.base.core.words() + self.layout.words()
    }

    /// Was a state left out because it needs too many words? Then an exhausted search is no proof.
    pub(crate) fn too_large(&self) -> bool {
        self.words() > MAX_WORDS
    }

    fn target(&self, attack: &AttackState) -> &AttackTarget {
        &self.targets[attack.vals[Slots::TARGET] as usize]
    }

    fn node(&self, attack: &AttackState, t: usize) -> &Node {
        self.base.core.node(&attack.work, t)
    }

    /// Is the attack still to succeed?
    fn is_open(&self, attack: &AttackState) -> bool {
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
    fn number(&self, attack: &AttackState) -> usize {
        attack.vals[Slots::TARGET] as usize * self.stride + attack.vals[Slots::LOAD] as usize
    }
}

impl Machine for AttackMachine<'_> {
    type Scratch = AttackScratch;
    type Step = Action;

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
            _ if attack.vals[self.slots.after(cell)] != NOT && self.base.core.lock_is_free(&attack.work) => {
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
        let mut hand_over = |attack: &mut AttackState, _: &()| {
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
        self.tell(line, limits)
    }
}

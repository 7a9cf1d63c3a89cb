//! The program as the fast machine wants it: flat tables, with everything known beforehand computed once.
//!
//! Locations become nodes. A node is a *stop* if a state may be stored with its thread there: it has an action
//! on memory, has a choice, matters to the goal, closes a cycle of local steps, or is an end. The others are passed in the
//! same step as what came before them. Per node: what the thread may touch from there on, whether its next step
//! can change the goal (*visible*), whether that step may close a cycle of the graph (*sticky*), and what can no
//! longer happen (*lost*); `machine` says what these are for. Two nodes beyond the program: `trap`, where a thread stands after an
//! error of its own, and `stuck`, for a thread that can never move again.
//! Invariant: stops have the lowest numbers, so that a stored location needs few bits.

use super::core::Memory;
use super::jump_table::{self, Chain};
use crate::analysis::access::{self, Access, Futures};
use crate::analysis::comparisons::LiveComparisons;
use crate::analysis::faint::Faint;
use crate::analysis::interval::{Interval, Intervals};
use crate::analysis::liveness::{Live, LiveCells, Watched};
use crate::model::{
    Addr, Atom, BinOp, Edge, EdgeId, Expr, Instr, Loc, Program, Reg, RegExpr, RmwOp, Thread, ThreadId, UnOp,
    Value,
};
use crate::query::Reductions;
use crate::query::{Clause, Goal, Limit, Limits, When};
use crate::reach::pack::{Field, Layout};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

/// No way leads there.
pub const FAR: u16 = u16::MAX;

/// A goal that names more locations of a thread than this is not asked which of them are out of reach.
const MANY_NAMED: usize = 64;
/// Rows of a thread with more locations and registers than this, one times the other, could take more memory than all states:
/// then nothing waits.
const MOST_LOCALS: usize = 1 << 24;
/// With more edges out of a location than this, they are not compared pair by pair.
const MANY_BRANCHES: usize = 64;
/// A goal whose locations would take more distances than this goes without the rest of them.
const MOST_DISTANCES: usize = 1 << 22;

/// An expression over slots of the working state.
#[derive(Clone, Debug)]
pub enum Code {
    Const(Value),
    Slot(u32),
    SlotConst(BinOp, u32, Value),
    SlotSlot(BinOp, u32, u32),
    Tree(Expr<u32>),
}

impl Code {
    fn new(e: &RegExpr, base: usize) -> Code {
        let slot = |e: &RegExpr| match e {
            Expr::Atom(r) => Some((base + r.index()) as u32),
            _ => None,
        };
        if let Some(c) = e.constant() {
            return Code::Const(c);
        }
        if let Some(s) = slot(e) {
            return Code::Slot(s);
        }
        // `&&` and `||` agree with their short-circuit forms when no side can fail.
        if let Expr::Binary(op, a, b) = e
            && let Some(a) = slot(a)
        {
            match (&**b, slot(b)) {
                (Expr::Const(c), _) => return Code::SlotConst(*op, a, *c),
                (_, Some(b)) => return Code::SlotSlot(*op, a, b),
                _ => {}
            }
        }
        Code::Tree(rebased(e, base))
    }

    /// The expression as a tree.
    pub fn tree(&self) -> Expr<u32> {
        match self {
            Code::Const(c) => Expr::Const(*c),
            Code::Slot(s) => Expr::Atom(*s),
            Code::SlotConst(op, s, c) => Expr::binary(*op, Expr::Atom(*s), Expr::Const(*c)),
            Code::SlotSlot(op, a, b) => Expr::binary(*op, Expr::Atom(*a), Expr::Atom(*b)),
            Code::Tree(e) => e.clone(),
        }
    }

    /// `None` on a division by zero.
    #[inline]
    pub fn eval(&self, vals: &[Value]) -> Option<Value> {
        match self {
            Code::Const(c) => Some(*c),
            Code::Slot(s) => Some(vals[*s as usize]),
            Code::SlotConst(op, s, c) => op.apply(vals[*s as usize], *c).ok(),
            Code::SlotSlot(op, a, b) => op.apply(vals[*a as usize], vals[*b as usize]).ok(),
            Code::Tree(e) => e.eval(&|s| vals[*s as usize]).ok(),
        }
    }
}

fn rebased(e: &RegExpr, base: usize) -> Expr<u32> {
    match e {
        Expr::Const(c) => Expr::Const(*c),
        Expr::Atom(r) => Expr::Atom((base + r.index()) as u32),
        Expr::Unary(op, a) => Expr::unary(*op, rebased(a, base)),
        Expr::Binary(op, a, b) => Expr::binary(*op, rebased(a, base), rebased(b, base)),
    }
}

#[derive(Clone, Debug)]
pub enum Op {
    Assign { dst: u32, value: Code },
    Any { dst: u32, lo: Value, hi: Value },
    Assume(Code),
    Assert(Code),
    Nop,
    Load { dst: u32, addr: Code },
    Store { addr: Code, value: Code },
    Rmw { dst: u32, addr: Code, op: Modify },
    Fence,
    Lock,
    Unlock,
}

impl Op {
    pub fn address(&self) -> Option<&Code> {
        match self {
            Op::Load { addr, .. } | Op::Store { addr, .. } | Op::Rmw { addr, .. } => Some(addr),
            _ => None,
        }
    }

    /// Every expression in it.
    pub fn codes(&self) -> Vec<&Code> {
        match self {
            Op::Assign { value, .. } => vec![value],
            Op::Assume(e) | Op::Assert(e) => vec![e],
            Op::Load { addr, .. } => vec![addr],
            Op::Store { addr, value } => vec![addr, value],
            Op::Rmw { addr, op: Modify::Swap(v) | Modify::Add(v), .. } => vec![addr, v],
            Op::Rmw { addr, op: Modify::Cas { old, new }, .. } => vec![addr, old, new],
            Op::Any { .. } | Op::Nop | Op::Fence | Op::Lock | Op::Unlock => vec![],
        }
    }
}

#[derive(Clone, Debug)]
pub enum Modify {
    Swap(Code),
    Add(Code),
    Cas { old: Code, new: Code },
}

#[derive(Clone, Debug)]
pub struct CEdge {
    pub id: EdgeId,
    pub op: Op,
    pub to: u32,
}

#[derive(Clone, Debug)]
pub struct Node {
    pub edges: Vec<CEdge>,
    pub stop: bool,
    /// Everything the thread may touch from here on.
    pub future: Access,
    /// The accesses of all edges, if no address has to be computed.
    pub next: Option<Access>,
    /// The next step is determined, not visible and not sticky: it may be taken alone if it is independent
    /// of what the other threads will do.
    pub may_hurry: bool,
    /// From here on, the thread may go wrong by itself.
    pub may_trap: bool,
    /// Something that a goal state may ask for can no longer happen: the end, a location that the goal names, an error.
    pub lost: bool,
    /// The next step, with the local steps after it, can change what the goal says.
    pub visible: bool,
    /// It can do so otherwise than by arriving at a location that the goal names.
    pub seen: bool,
    /// The goal names this location in states that are not final.
    pub named: bool,
    /// With all threads at such nodes the state is no goal, if goals go by locations.
    pub plain: bool,
    /// Registers of the thread that have a field and no longer matter here, one bit each. Many nodes have the same.
    pub dead: Arc<[u64]>,
    /// Registers of which some values can no longer be told apart here.
    pub folded: Vec<Fold>,
    /// The cells of which the thread may still read what they hold now, as a set of `access`.
    pub live_cells: u64,
    /// The chain of the thread that it is a link of, and which one.
    pub chain: Option<(u32, u32)>,
}

/// The numbers of the bits in a set.
#[inline]
pub fn bits(set: &[u64]) -> impl Iterator<Item = usize> {
    set.iter().enumerate().flat_map(|(k, &word)| {
        let rest = |left: &u64| Some(left & (left - 1)).filter(|&left| left != 0);
        let words = std::iter::successors(Some(word).filter(|&word| word != 0), rest);
        words.map(move |left| k * u64::BITS as usize + left.trailing_zeros() as usize)
    })
}

/// All values of the register but those that are kept are stored as one.
#[derive(Clone, Debug)]
pub struct Fold {
    pub slot: u32,
    pub kept: Vec<Value>,
    pub other: Value,
}

#[derive(Clone, Debug)]
pub struct CThread {
    pub nodes: Vec<Node>,
    pub chains: Vec<Chain>,
    /// The node of each location.
    pub node_of: Vec<u32>,
    /// Per node the steps to the end, or `FAR`.
    pub to_end: Vec<u16>,
    pub end: u32,
    pub trap: u32,
    pub stuck: u32,
}

/// A predicate over slots.
#[derive(Clone, Debug)]
pub enum SlotAtom {
    /// The thread whose location this slot holds stands at one of these nodes.
    At {
        thread: u32,
        nodes: Vec<u32>,
        /// Per node the steps to the nearest of them, or `FAR`; nothing if that would take too much.
        distance: Arc<[u16]>,
    },
    Value(u32),
}

/// How far it is from a node to the nearest of those that an atom names, if that is known.
#[inline]
pub fn steps_to(distance: &[u16], node: Value) -> u16 {
    distance.get(node as usize).copied().unwrap_or(0)
}

#[derive(Clone, Debug)]
pub struct CClause {
    pub when: When,
    /// It cannot hold unless a thread stands at a location that the goal names.
    pub needs_named: bool,
    pub pred: Expr<SlotAtom>,
}

#[derive(Clone, Debug)]
pub struct Compiled {
    pub threads: Vec<CThread>,
    pub clauses: Vec<CClause>,
    pub layout: Layout,
    /// The initial working state: locations, lock, registers, memory.
    pub initial: Vec<Value>,
    /// A working state with every value that never varies in stored states.
    pub template: Vec<Value>,
    /// Per slot the values it may hold in a stored state; `None` for registers that nobody will read again.
    pub bounds: Vec<Option<Interval>>,
    /// Where each thread's location lies in a packed state.
    pub locations: Vec<Field>,
    /// Whether every goal state has a thread at its end or at a location that the goal names.
    pub by_location: bool,
    /// Where each thread's registers begin.
    pub register_base: Vec<usize>,
    /// Where memory begins in it.
    pub memory: usize,
    pub cells: usize,
    /// Any value that a cell may hold.
    pub contents: Interval,
    /// Cells that the goal looks at in states that are not final.
    pub watched_cells: Vec<u32>,
    /// Cells that matter only to threads for which they are live, as a set of `access` in which every cell has its bit.
    pub forgettable: u64,
}

/// The slot of the lock's owner, as a thread's number plus one.
pub fn lock_slot(threads: usize) -> usize {
    threads
}

/// Do loads, and the stores among them, wait until they matter?
pub fn waits(program: &Program, memory: Memory, reductions: Reductions) -> bool {
    let size = |t: &Thread| t.graph().node_count().saturating_mul(t.registers().len() + 1);
    reductions.movers
        && matches!(memory, Memory::Sc | Memory::Tso(None))
        && !program.has_locks()
        && program.threads().iter().all(|t| size(t) <= MOST_LOCALS)
}

pub fn compile(
    program: &Program,
    goal: &Goal,
    memory: Memory,
    reductions: Reductions,
    limits: &Limits,
) -> Result<Compiled, Limit> {
    Compiler::new(program, goal, memory, reductions, limits)?.run()
}

struct Compiler<'a> {
    program: &'a Program,
    goal: &'a Goal,
    model: Memory,
    reductions: Reductions,
    limits: &'a Limits,
    /// Stores wait, and are stops therefore.
    waits: bool,
    intervals: Intervals,
    futures: Futures,
    live: Live,
    live_cells: LiveCells,
    faint: Faint,
    comparisons: LiveComparisons,
    /// Per thread, the value of a register that stands for those which cannot be told apart.
    unlike: Vec<BTreeMap<Reg, Value>>,
    watched: Watched,
    watched_cells: Vec<u32>,
    /// Per thread the locations that the goal names in states that are not final, in ascending order.
    watched_locs: Vec<Vec<Loc>>,
    register_base: Vec<usize>,
    memory: usize,
}

impl<'a> Compiler<'a> {
    fn new(
        program: &'a Program,
        goal: &'a Goal,
        model: Memory,
        reductions: Reductions,
        limits: &'a Limits,
    ) -> Result<Self, Limit> {
        let intervals = Intervals::of(program, limits)?;
        let (watched, watched_cells, watched_locs) = watched(program, goal);
        let (faint, live) = if !reductions.liveness {
            (Faint::nothing(program), Live::everything(program))
        } else if reductions.faint && model == Memory::Sc && !program.has_locks() {
            Faint::of(program, &intervals, &watched, &named_cells(goal), limits)?
        } else {
            (Faint::nothing(program), Live::of(program, &watched, |_, _| false, limits)?)
        };
        let comparisons = match reductions.liveness {
            true => LiveComparisons::of(program, &watched, |t, e| faint.is_faint(t, e), limits)?,
            false => LiveComparisons::nothing(program),
        };
        let futures = Futures::of(program, &intervals, |t, e| faint.is_faint(t, e), limits)?;
        let live_cells = LiveCells::of(program, &intervals, |t, e| faint.is_faint(t, e), limits)?;
        let mut next = lock_slot(program.threads().len()) + 1;
        let mut register_base = Vec::new();
        for thread in program.threads() {
            register_base.push(next);
            next += thread.registers().len();
        }
        Ok(Compiler {
            program,
            goal,
            model,
            reductions,
            limits,
            waits: waits(program, model, reductions),
            intervals,
            futures,
            live,
            live_cells,
            faint,
            comparisons,
            unlike: Vec::new(),
            watched,
            watched_cells,
            watched_locs,
            register_base,
            memory: next,
        })
    }

    fn run(mut self) -> Result<Compiled, Limit> {
        let numbering: Vec<Numbering> =
            self.program.thread_ids().map(|t| Numbering::new(&self.stops(t))).collect();
        let unlike = |t: ThreadId| self.unlike(t, &numbering[t.index()]);
        self.unlike = self.program.thread_ids().map(unlike).collect::<Result<_, _>>()?;
        let slots = self.slots(&numbering)?;
        let thread = |t: ThreadId| self.thread(t, &numbering[t.index()], &slots);
        let threads: Vec<CThread> = self.program.thread_ids().map(thread).collect::<Result<_, _>>()?;
        let clauses = self.clauses(&numbering)?;
        let layout = self.layout(&slots);
        let fields = layout.by_slot(slots.len());
        let cells = (0..self.program.cells()).map(|a| self.intervals.cell(a));
        let contents = cells.reduce(Interval::join).unwrap_or(Interval::constant(0));
        Ok(Compiled {
            by_location: clauses.iter().all(|c| c.needs_named || c.when == When::Final),
            clauses,
            locations: (0..threads.len()).map(|t| fields[t].expect("a location varies")).collect(),
            layout,
            initial: self.initial(&numbering),
            template: slots.iter().map(|i| i.map_or(0, |i| i.lo)).collect(),
            bounds: slots,
            register_base: self.register_base.clone(),
            memory: self.memory,
            cells: self.program.cells(),
            contents: if self.reductions.packing { contents } else { Interval::FULL },
            watched_cells: self.watched_cells.clone(),
            forgettable: self.forgettable(),
            threads,
        })
    }

    /// What a thread has to itself lies together.
    fn layout(&self, slots: &[Option<Interval>]) -> Layout {
        let varying = |slot: usize| Some((slot, slots[slot]?));
        let thread = |t: ThreadId| {
            let base = self.register_base[t.index()];
            let registers = base..base + self.program.thread(t).registers().len();
            std::iter::once(t.index()).chain(registers).filter_map(varying).collect()
        };
        let others = std::iter::once(lock_slot(self.program.threads().len())).chain(self.memory..slots.len());
        let others = others.filter_map(varying).map(|slot| vec![slot]);
        Layout::new(self.program.thread_ids().map(thread).chain(others))
    }

    /// Does the instruction leave everything that other threads or the goal can see as it is?
    fn is_local(&self, t: ThreadId, id: EdgeId, edge: &Edge) -> bool {
        match (&edge.instr, self.model) {
            _ if self.faint.is_faint(t, id) => true,
            (Instr::Fence, Memory::Sc) => true,
            // A store only fills the own buffer. If the goal looks at its cell, it matters nevertheless: a
            // goal state has empty buffers, and filling one too early would hide it.
            (Instr::Store { .. }, Memory::Tso(None)) => !self.waits && !self.may_touch_watched(t, edge),
            (instr, _) => instr.is_local(),
        }
    }

    /// Does the instruction touch nothing but the thread's own buffer for now?
    fn only_buffers(&self, instr: &Instr) -> bool {
        self.model != Memory::Sc && matches!(instr, Instr::Store { .. })
    }

    fn may_touch_watched(&self, t: ThreadId, edge: &Edge) -> bool {
        let range = self.intervals.address(t, edge);
        let first = self.watched_cells.partition_point(|&c| (c as Value) < range.lo);
        self.watched_cells.get(first).is_some_and(|&c| c as Value <= range.hi)
    }

    /// Can taking the edge change what the goal says of the state?
    fn is_visible(&self, t: ThreadId, edge: &Edge) -> bool {
        // Inside a block the others' buffers count as they are, so a goal on memory may come and go with it.
        let block = matches!(edge.instr, Instr::Lock | Instr::Unlock) && !self.watched_cells.is_empty();
        self.is_watched(t, edge.from)
            || self.is_watched(t, edge.to)
            || edge.instr.target().is_some_and(|r| self.is_watched_register(t, r))
            || edge.instr.writes_memory() && self.may_touch_watched(t, edge)
            || block && self.model != Memory::Sc
    }

    fn is_watched(&self, t: ThreadId, loc: Loc) -> bool {
        self.watched_locs[t.index()].binary_search(&loc).is_ok()
    }

    fn is_watched_register(&self, t: ThreadId, r: Reg) -> bool {
        self.watched.always[t.index()].binary_search(&r).is_ok()
    }

    /// Does the edge change what the goal says by arriving at a location alone, if at all?
    fn only_arrives(&self, t: ThreadId, edge: &Edge) -> bool {
        let assigns = edge.instr.target().is_some_and(|r| self.is_watched_register(t, r));
        let changes = edge.instr.writes_memory() || matches!(edge.instr, Instr::Lock | Instr::Unlock);
        !changes && !assigns && !self.is_watched(t, edge.from)
    }

    /// Per location whether it is a stop.
    fn stops(&self, t: ThreadId) -> Vec<bool> {
        let thread = self.program.thread(t);
        if !self.reductions.steps {
            return vec![true; thread.graph().node_count()];
        }
        let mut stop = vec![false; thread.graph().node_count()];
        for loc in thread.locations() {
            let edges = thread.edges_from(loc);
            let local = edges.iter().all(|(id, e)| self.is_local(t, *id, e));
            stop[loc.index()] = edges.is_empty() || !local || !deterministic(&edges);
        }
        for loc in &self.watched_locs[t.index()] {
            stop[loc.index()] = true;
        }
        // What the goal says at the very beginning counts as well.
        let watched = !self.watched_locs[t.index()].is_empty() || !self.watched.always[t.index()].is_empty();
        stop[thread.initial().index()] |= watched;
        self.stop_between_effects(t, &mut stop);
        let closes = retreating(thread, |l| stop[l.index()]);
        for (_, edge) in thread.edges().filter(|(id, _)| closes[id.index()]) {
            stop[edge.to.index()] = true;
        }
        stop
    }

    /// Stops before a visible local step if something that others can see came before it in the same run of
    /// local steps: the others may act between the two, and the goal hold there. So it may between two visible
    /// steps. After another load no such stop is needed: whatever the others do then, they can do before the load, and
    /// the goal says the same. Nor is one before an arrival, if arrivals can only help the goal: what holds
    /// before it holds after it too, and the thread may stay.
    fn stop_between_effects(&self, t: ThreadId, stop: &mut [bool]) {
        let thread = self.program.thread(t);
        let growing = self.goal.grows_with_arrivals();
        let has_effect = |e: &Edge| {
            e.instr.writes_memory() || matches!(e.instr, Instr::Lock | Instr::Unlock) || self.is_visible(t, e)
        };
        let mut todo: Vec<Loc> = thread.edges().filter(|(_, e)| has_effect(e)).map(|(_, e)| e.to).collect();
        let mut seen = vec![false; stop.len()];
        while let Some(loc) = todo.pop() {
            if stop[loc.index()] || std::mem::replace(&mut seen[loc.index()], true) {
                continue;
            }
            let edges = thread.edges_from(loc);
            if edges.iter().any(|(_, e)| self.is_visible(t, e) && !(growing && self.only_arrives(t, e))) {
                stop[loc.index()] = true;
            } else {
                todo.extend(edges.iter().map(|(_, e)| e.to));
            }
        }
    }

    /// Per slot the values it may hold in a stored state; `None` for registers that nobody will read again.
    fn slots(&self, numbering: &[Numbering]) -> Result<Vec<Option<Interval>>, Limit> {
        let threads = self.program.threads().len();
        let mut slots = Vec::with_capacity(self.memory + self.program.cells());
        slots.extend(numbering.iter().map(|n| Some(Interval { lo: 0, hi: n.stops as Value - 1 })));
        let owners = if self.program.has_locks() { threads as Value } else { 0 };
        slots.push(Some(Interval { lo: 0, hi: owners }));
        for t in self.program.thread_ids() {
            let registers = self.program.thread(t).registers().len() as u16;
            let held = self.held(t, &numbering[t.index()])?;
            slots.extend((0..registers).map(|r| self.register(t, Reg(r), &held)));
        }
        let spoken = |a: usize| (!self.faint.is_faint_cell(a)).then(|| self.intervals.cell(a));
        slots.extend((0..self.program.cells()).map(spoken));
        if !self.reductions.packing {
            slots.iter_mut().flatten().for_each(|i| *i = Interval::FULL);
        }
        Ok(slots)
    }

    /// The cells that may be forgotten where they are dead.
    fn forgettable(&self) -> u64 {
        if !self.reductions.liveness || !access::is_exact(self.program) {
            return 0;
        }
        let named = named_cells(self.goal);
        let unnamed = (0..self.program.cells() as u32).filter(|&c| !named.contains(&Addr(c)));
        unnamed
            .filter(|&c| !self.faint.is_faint_cell(c as usize))
            .fold(0, |set, c| set | Access::write(c).writes)
    }

    /// The values of a register over all stops where it is live; everywhere, if it is looked at or kept everywhere.
    fn register(&self, t: ThreadId, r: Reg, held: &[Held]) -> Option<Interval> {
        let values = held[r.index()].values;
        if !self.reductions.liveness || self.is_watched_register(t, r) {
            return Some(values.map_or(Interval::constant(0), |i| i.join(Interval::constant(0))));
        }
        match self.unlike[t.index()].get(&r) {
            Some(other) => values.map(|i| i.join(Interval::constant(*other))),
            None => values,
        }
    }

    /// Per register of the thread what it holds where it is live: at stops, or anywhere if it is looked at or kept
    /// everywhere.
    fn held(&self, t: ThreadId, numbering: &Numbering) -> Result<Vec<Held>, Limit> {
        let thread = self.program.thread(t);
        let registers = thread.registers().len();
        let everywhere: Vec<bool> = (0..registers as u16)
            .map(|r| !self.reductions.liveness || self.is_watched_register(t, Reg(r)))
            .collect();
        let any = everywhere.contains(&true);
        let mut held = vec![Held::default(); registers];
        for loc in thread.locations() {
            let stop = numbering.is_stop(loc);
            if !stop && !any {
                continue;
            }
            let live = self.live.at(t, loc);
            self.limits.spend(1 + registers / 64)?;
            for r in live.iter().filter(|&r| stop || everywhere[r]) {
                held[r].places += 1;
                if let Some(values) = self.intervals.register(t, loc, Reg(r as u16)) {
                    held[r].values = Some(held[r].values.map_or(values, |known| known.join(values)));
                }
            }
        }
        Ok(held)
    }

    /// Per register of the thread a value that it never has and is never compared with, to stand for those which
    /// cannot be told apart; none for a register that would gain nothing by it.
    fn unlike(&self, t: ThreadId, numbering: &Numbering) -> Result<BTreeMap<Reg, Value>, Limit> {
        let mut unlike = BTreeMap::new();
        if self.comparisons.is_nothing(t) {
            return Ok(unlike);
        }
        let held = self.held(t, numbering)?;
        for (r, constants) in self.comparisons.compared(t) {
            let Held { values: Some(values), places } = held[r.index()] else { continue };
            let live = |l: Loc| numbering.is_stop(l) && self.live.is_live(t, l, r);
            self.limits.spend(self.comparisons.places(t, r).len())?;
            let matters = self.comparisons.places(t, r).iter().filter(|(l, _)| live(*l));
            let few = |bits: u64| bits.count_ones() as u64 <= values.more();
            let gains = matters.clone().count() < places || matters.clone().any(|(_, bits)| few(*bits));
            let highest = constants.last().map_or(values.hi, |&c| values.hi.max(c));
            if let Some(other) = highest.checked_add(1).filter(|_| gains) {
                unlike.insert(r, other);
            }
        }
        Ok(unlike)
    }

    fn initial(&self, numbering: &[Numbering]) -> Vec<Value> {
        let mut vals = vec![0; self.memory];
        for (t, thread) in self.program.threads().iter().enumerate() {
            vals[t] = numbering[t].node(thread.initial()) as Value;
        }
        vals.extend(self.program.initial_memory());
        vals
    }

    fn thread(
        &self,
        t: ThreadId,
        numbering: &Numbering,
        slots: &[Option<Interval>],
    ) -> Result<CThread, Limit> {
        let thread = self.program.thread(t);
        let facts = self.facts(t, numbering, slots)?;
        self.limits.reserve(thread.graph().node_count() * size_of::<Node>())?;
        let mut nodes: Vec<Option<Node>> = vec![None; thread.graph().node_count() + 2];
        // Neighbours mostly have the same dead registers.
        let mut last: Arc<[u64]> = [].into();
        for loc in thread.locations() {
            self.limits.spend(8 + facts.fields.len())?;
            let mut node = self.node(t, loc, numbering, &facts);
            match node.dead == last {
                true => node.dead = last.clone(),
                false => last = node.dead.clone(),
            }
            nodes[numbering.node(loc) as usize] = Some(node);
        }
        let kept: Vec<u64> = words(thread.registers().len(), |r| {
            !self.reductions.liveness || self.is_watched_register(t, Reg(r as u16))
        });
        for extra in [numbering.trap(), numbering.stuck()] {
            nodes[extra as usize] = Some(Node {
                edges: vec![],
                stop: true,
                future: Access::NONE,
                next: Some(Access::NONE),
                may_hurry: false,
                may_trap: false,
                lost: true,
                visible: false,
                seen: false,
                named: false,
                plain: extra == numbering.stuck(),
                dead: without(&facts.fields, kept.iter().copied()),
                folded: vec![],
                live_cells: 0,
                chain: None,
            });
        }
        let mut nodes: Vec<Node> = nodes.into_iter().map(|n| n.expect("every number names a node")).collect();
        Ok(CThread {
            chains: jump_table::chains(&mut nodes),
            nodes,
            node_of: numbering.nodes.clone(),
            to_end: numbering.spread(&distance(thread, &[thread.end()]), FAR),
            end: numbering.node(thread.end()),
            trap: numbering.trap(),
            stuck: numbering.stuck(),
        })
    }

    fn node(&self, t: ThreadId, loc: Loc, numbering: &Numbering, facts: &Facts) -> Node {
        let i = loc.index();
        let edges = self.program.thread(t).edges_from(loc);
        let known = |id: EdgeId, e: &Edge| {
            if e.instr.is_local() || self.only_buffers(&e.instr) || self.faint.is_faint(t, id) {
                return Some(Access::NONE);
            }
            let constant = e.instr.address().is_none_or(|a| a.constant().is_some());
            constant.then(|| access::of_instr(self.program, &e.instr, || self.intervals.address(t, e)))
        };
        let next = edges.iter().try_fold(Access::NONE, |all, (id, e)| Some(all.union(known(*id, e)?)));
        Node {
            stop: numbering.is_stop(loc),
            future: self.futures.at(t, loc),
            next,
            may_hurry: self.reductions.por && deterministic(&edges) && !facts.sticky[i] && !facts.visible[i],
            may_trap: facts.may_trap[i],
            lost: facts.lost[i],
            visible: facts.visible[i],
            seen: facts.seen[i],
            named: self.is_watched(t, loc),
            plain: !facts.named[i],
            dead: without(&facts.fields, self.live.words(t, loc)),
            folded: if numbering.is_stop(loc) { self.folded(t, loc, &facts.unlike) } else { vec![] },
            live_cells: self.live_cells.at(t, loc),
            chain: None,
            edges: edges.into_iter().map(|(id, e)| self.edge(t, id, e, numbering)).collect(),
        }
    }

    /// Registers of which some values can no longer be told apart at a location, out of those of a set.
    fn folded(&self, t: ThreadId, loc: Loc, unlike: &[u64]) -> Vec<Fold> {
        let live: Vec<u64> = unlike.iter().zip(self.live.words(t, loc)).map(|(a, b)| a & b).collect();
        let one = |r: usize| {
            let (slot, r) = ((self.register_base[t.index()] + r) as u32, Reg(r as u16));
            let kept = self.comparisons.constants(t, loc, r)?;
            Some(Fold { slot, kept, other: self.unlike[t.index()][&r] })
        };
        bits(&live).filter_map(one).collect()
    }

    fn facts(&self, t: ThreadId, numbering: &Numbering, slots: &[Option<Interval>]) -> Result<Facts, Limit> {
        let thread = self.program.thread(t);
        let registers = thread.registers().len();
        // Some walks over the graph, and one for each location that the goal names.
        self.limits.spend(8 * thread.graph().edge_count())?;
        let closes = retreating(thread, |_| false);
        let sources = |chosen: &dyn Fn(EdgeId, &Edge) -> bool| -> Vec<Loc> {
            thread.edges().filter(|(id, e)| chosen(*id, e)).map(|(_, e)| e.from).collect()
        };
        let passed = |loc: Loc| !numbering.is_stop(loc);
        let named = self.named_locs(t);
        let without_way = |goal: &Loc| reaching(thread, &[*goal]).into_iter().map(|r| !r);
        let may_trap = backward(thread, &sources(&|_, e| self.may_trap(t, e)), |_| true);
        let could_trap = may_trap.contains(&true);
        let harmless = may_trap.iter().map(|may| could_trap && !may).collect();
        // With so many that looking for a way to each would take long, every location counts as a loss.
        let lost = match named.len() {
            0..=MANY_NAMED => named.iter().fold(harmless, |lost: Vec<bool>, l| {
                lost.iter().zip(without_way(l)).map(|(x, y)| *x || y).collect()
            }),
            _ => vec![true; thread.graph().node_count()],
        };
        Ok(Facts {
            sticky: backward(thread, &sources(&|id, _| closes[id.index()]), passed),
            visible: backward(thread, &sources(&|_, e| self.is_visible(t, e)), passed),
            seen: backward(
                thread,
                &sources(&|_, e| self.is_visible(t, e) && !self.only_arrives(t, e)),
                passed,
            ),
            may_trap,
            lost,
            named: thread.locations().map(|l| named.binary_search(&l).is_ok()).collect(),
            fields: words(registers, |r| slots[self.register_base[t.index()] + r].is_some()),
            unlike: words(registers, |r| self.unlike[t.index()].contains_key(&Reg(r as u16))),
        })
    }

    /// The locations of the thread that a goal state may ask for: its end among them if final states are looked at.
    fn named_locs(&self, t: ThreadId) -> Vec<Loc> {
        let mut named = self.watched_locs[t.index()].clone();
        if self.goal.clauses.iter().any(|c| c.when == When::Final) {
            named.push(self.program.thread(t).end());
        }
        named.sort();
        named.dedup();
        named
    }

    /// Can the thread go wrong on this edge, by what its registers may hold?
    fn may_trap(&self, t: ThreadId, edge: &Edge) -> bool {
        let cells = self.program.cells() as Value;
        let outside = |i: Interval| i.lo < 0 || i.hi >= cells;
        matches!(edge.instr, Instr::Assert(_))
            || edge.instr.exprs().iter().any(|e| e.may_divide_by_zero())
            || edge.instr.address().is_some() && outside(self.intervals.address(t, edge))
    }

    fn edge(&self, t: ThreadId, id: EdgeId, edge: &Edge, numbering: &Numbering) -> CEdge {
        let base = self.register_base[t.index()];
        let code = |e: &RegExpr| Code::new(e, base);
        let slot = |r: &Reg| (base + r.index()) as u32;
        let op = match &edge.instr {
            _ if self.faint.is_faint(t, id) => Op::Nop,
            Instr::Load { dst, addr } => Op::Load { dst: slot(dst), addr: code(addr) },
            Instr::Store { addr, value } => Op::Store { addr: code(addr), value: code(value) },
            Instr::Fence => Op::Fence,
            Instr::Assign { dst, value } => Op::Assign { dst: slot(dst), value: code(value) },
            Instr::Any { dst, lo, hi } => Op::Any { dst: slot(dst), lo: *lo, hi: *hi },
            Instr::Assume(e) => Op::Assume(code(e)),
            Instr::Assert(e) => Op::Assert(code(e)),
            Instr::Rmw { dst, addr, op } => {
                let op = match op {
                    RmwOp::Swap(v) => Modify::Swap(code(v)),
                    RmwOp::Add(v) => Modify::Add(code(v)),
                    RmwOp::Cas { old, new } => Modify::Cas { old: code(old), new: code(new) },
                };
                Op::Rmw { dst: slot(dst), addr: code(addr), op }
            }
            Instr::Lock => Op::Lock,
            Instr::Unlock => Op::Unlock,
            Instr::Nop => Op::Nop,
        };
        CEdge { id, op, to: numbering.node(edge.to) }
    }

    fn clauses(&self, numbering: &[Numbering]) -> Result<Vec<CClause>, Limit> {
        let mut places = Places { numbering, distances: HashMap::new(), left: MOST_DISTANCES };
        let mut clauses = Vec::with_capacity(self.goal.clauses.len());
        for Clause { when, pred, .. } in &self.goal.clauses {
            let mut locations_only = true;
            pred.for_each_atom(&mut |a| locations_only &= matches!(a, Atom::At(..)));
            let needs_named = *when == When::Always && locations_only && pred.eval(&|_| 0) == Ok(0);
            clauses.push(CClause { when: *when, needs_named, pred: self.pred(pred, &mut places)? });
        }
        Ok(clauses)
    }

    fn pred<'b>(&self, pred: &'b Expr<Atom>, places: &mut Places<'b>) -> Result<Expr<SlotAtom>, Limit> {
        Ok(match pred {
            Expr::Const(c) => Expr::Const(*c),
            Expr::Unary(op, a) => Expr::unary(*op, self.pred(a, places)?),
            Expr::Binary(op, a, b) => Expr::binary(*op, self.pred(a, places)?, self.pred(b, places)?),
            Expr::Atom(Atom::At(t, locs)) => {
                let nodes = locs.iter().map(|&l| places.numbering[t.index()].node(l)).collect();
                let distance = places.distance(self.program, *t, locs, self.limits)?;
                Expr::Atom(SlotAtom::At { thread: t.0 as u32, nodes, distance })
            }
            Expr::Atom(Atom::Reg(t, r)) => {
                Expr::Atom(SlotAtom::Value((self.register_base[t.index()] + r.index()) as u32))
            }
            Expr::Atom(Atom::Mem(Addr(a))) => Expr::Atom(SlotAtom::Value((self.memory + *a as usize) as u32)),
        })
    }
}

/// How far it is to the locations that a goal names. Many properties name the same ones.
struct Places<'a> {
    numbering: &'a [Numbering],
    distances: HashMap<(ThreadId, &'a [Loc]), Arc<[u16]>>,
    /// Distances that may still be written down.
    left: usize,
}

impl<'a> Places<'a> {
    fn distance(
        &mut self,
        program: &Program,
        t: ThreadId,
        locs: &'a [Loc],
        limits: &Limits,
    ) -> Result<Arc<[u16]>, Limit> {
        if let Some(known) = self.distances.get(&(t, locs)) {
            return Ok(known.clone());
        }
        let thread = program.thread(t);
        let Some(left) = self.left.checked_sub(thread.graph().node_count()) else { return Ok([].into()) };
        self.left = left;
        limits.spend(thread.graph().node_count())?;
        let distance: Arc<[u16]> = self.numbering[t.index()].spread(&distance(thread, locs), FAR).into();
        self.distances.insert((t, locs), distance.clone());
        Ok(distance)
    }
}

/// Is at most one of a location's edges possible, and that in one way, whatever the registers hold?
fn deterministic(edges: &[(EdgeId, &Edge)]) -> bool {
    match edges {
        [] => false,
        [(_, e)] => !matches!(e.instr, Instr::Any { .. }),
        _ if edges.len() > MANY_BRANCHES => is_switch(edges),
        _ => edges.iter().enumerate().all(|(i, (_, a))| {
            edges[i + 1..].iter().all(|(_, b)| match (&a.instr, &b.instr) {
                (Instr::Assume(a), Instr::Assume(b)) => exclusive(a, b),
                _ => false,
            })
        }),
    }
}

/// Does every edge compare the same expression with another constant?
fn is_switch(edges: &[(EdgeId, &Edge)]) -> bool {
    let case = |e: &'_ Edge| match &e.instr {
        Instr::Assume(Expr::Binary(BinOp::Eq, a, b)) => Some((a.clone(), b.constant()?)),
        _ => None,
    };
    let Some((of, _)) = case(edges[0].1) else { return false };
    let mut constants = HashSet::new();
    edges.iter().all(|(_, e)| case(e).is_some_and(|(a, c)| a == of && constants.insert(c)))
}

/// Can the two conditions never hold together?
fn exclusive(a: &RegExpr, b: &RegExpr) -> bool {
    use BinOp::*;
    let negation = |a: &RegExpr, b: &RegExpr| matches!(b, Expr::Unary(UnOp::Not, c) if **c == *a);
    // Unrolled code compares constants.
    let never = |e: &RegExpr| e.constant() == Some(0);
    if negation(a, b) || negation(b, a) || never(a) || never(b) {
        return true;
    }
    let (Expr::Binary(f, a1, a2), Expr::Binary(g, b1, b2)) = (a, b) else { return false };
    let different = matches!((&**a2, &**b2), (Expr::Const(x), Expr::Const(y)) if x != y);
    let complementary = matches!((f, g), (Eq, Ne) | (Ne, Eq) | (Lt, Ge) | (Ge, Lt) | (Gt, Le) | (Le, Gt));
    a1 == b1 && (complementary && a2 == b2 || (f, g) == (&Eq, &Eq) && different)
}

/// What the goal looks at: registers, cells, and locations in states that are not final.
fn watched(program: &Program, goal: &Goal) -> (Watched, Vec<u32>, Vec<Vec<Loc>>) {
    let mut watched = Watched::nothing(program);
    let mut cells = Vec::new();
    let mut locs = vec![Vec::new(); program.threads().len()];
    goal.for_each_lasting_atom(&mut |atom| match atom {
        Atom::At(t, named) => locs[t.index()].extend(named.iter().copied()),
        Atom::Reg(t, r) => watched.always[t.index()].push(*r),
        Atom::Mem(a) => cells.push(a.0),
    });
    for clause in &goal.clauses {
        clause.pred.for_each_atom(&mut |atom| {
            if let Atom::Reg(t, r) = atom {
                watched.at_end[t.index()].push(*r);
            }
        });
    }
    cells.sort();
    cells.dedup();
    for list in &mut locs {
        list.sort();
        list.dedup();
    }
    for list in watched.always.iter_mut().chain(&mut watched.at_end) {
        list.sort();
        list.dedup();
    }
    (watched, cells, locs)
}

/// What nobody really reads, as far as the goal is concerned: nothing, if that is not to be left out.
pub(crate) fn faint(
    program: &Program,
    goal: &Goal,
    intervals: &Intervals,
    reductions: Reductions,
    limits: &Limits,
) -> Result<Faint, Limit> {
    if !reductions.liveness || !reductions.faint || program.has_locks() {
        return Ok(Faint::nothing(program));
    }
    Ok(Faint::of(program, intervals, &watched(program, goal).0, &named_cells(goal), limits)?.0)
}

/// The cells that the goal looks at, in final states too.
fn named_cells(goal: &Goal) -> Vec<Addr> {
    let mut cells = Vec::new();
    for clause in &goal.clauses {
        clause.pred.for_each_atom(&mut |atom| {
            if let Atom::Mem(a) = atom {
                cells.push(*a);
            }
        });
    }
    cells
}

/// What a register holds where it is live.
#[derive(Clone, Copy, Default)]
struct Held {
    values: Option<Interval>,
    /// How many places that are.
    places: usize,
}

/// Per location of a thread, what its node has to know.
struct Facts {
    sticky: Vec<bool>,
    visible: Vec<bool>,
    seen: Vec<bool>,
    may_trap: Vec<bool>,
    lost: Vec<bool>,
    /// Whether a goal state may ask for it.
    named: Vec<bool>,
    /// The registers of the thread that have a field, and those of which not all values can be told apart: one bit each.
    fields: Vec<u64>,
    unlike: Vec<u64>,
}

/// A set of the numbers up to one of which something holds, one bit each.
fn words(count: usize, holds: impl Fn(usize) -> bool) -> Vec<u64> {
    let mut words = vec![0; count.div_ceil(u64::BITS as usize)];
    (0..count).filter(|&k| holds(k)).for_each(|k| words[k / 64] |= 1 << (k % 64));
    words
}

/// One set without another.
fn without(set: &[u64], other: impl Iterator<Item = u64>) -> Arc<[u64]> {
    set.iter().zip(other).map(|(a, b)| a & !b).collect()
}

/// The locations from which one of `seeds` can be reached through locations that `through` lets pass.
fn backward(thread: &Thread, seeds: &[Loc], through: impl Fn(Loc) -> bool) -> Vec<bool> {
    let mut into: Vec<Vec<Loc>> = vec![Vec::new(); thread.graph().node_count()];
    for (_, edge) in thread.edges() {
        into[edge.to.index()].push(edge.from);
    }
    let mut reached = vec![false; into.len()];
    let mut todo = seeds.to_vec();
    while let Some(loc) = todo.pop() {
        if !std::mem::replace(&mut reached[loc.index()], true) && through(loc) {
            todo.extend(&into[loc.index()]);
        }
    }
    reached
}

/// Per location, the steps to the nearest of `goals`, or `FAR`.
fn distance(thread: &Thread, goals: &[Loc]) -> Vec<u16> {
    let mut into: Vec<Vec<Loc>> = vec![Vec::new(); thread.graph().node_count()];
    for (_, edge) in thread.edges() {
        into[edge.to.index()].push(edge.from);
    }
    let mut steps = vec![FAR; into.len()];
    let mut todo: VecDeque<(Loc, u16)> = goals.iter().map(|&goal| (goal, 0)).collect();
    while let Some((loc, far)) = todo.pop_front() {
        if steps[loc.index()] == FAR {
            steps[loc.index()] = far;
            todo.extend(into[loc.index()].iter().map(|&from| (from, (far + 1).min(FAR - 1))));
        }
    }
    steps
}

/// The locations from which one of `goals` can be reached, themselves included.
fn reaching(thread: &Thread, goals: &[Loc]) -> Vec<bool> {
    backward(thread, goals, |_| true)
}

/// Per edge whether it goes back to a location that the depth-first walk is still in: every cycle has such an
/// edge. Edges out of locations that `cut` names are not followed.
fn retreating(thread: &Thread, cut: impl Fn(Loc) -> bool) -> Vec<bool> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    let mut marks = vec![Mark::New; thread.graph().node_count()];
    let mut back = vec![false; thread.graph().edge_count()];
    for root in thread.locations() {
        if marks[root.index()] != Mark::New {
            continue;
        }
        marks[root.index()] = Mark::Open;
        let mut stack = vec![(root, thread.edges_from(root).into_iter())];
        while let Some((loc, edges)) = stack.last_mut() {
            let loc = *loc;
            let Some((id, edge)) = edges.next().filter(|_| !cut(loc)) else {
                marks[loc.index()] = Mark::Done;
                stack.pop();
                continue;
            };
            match marks[edge.to.index()] {
                Mark::New => {
                    marks[edge.to.index()] = Mark::Open;
                    stack.push((edge.to, thread.edges_from(edge.to).into_iter()));
                }
                Mark::Open => back[id.index()] = true,
                Mark::Done => {}
            }
        }
    }
    back
}

/// The numbers of a thread's nodes: stops first, then `trap` and `stuck`, then the rest.
struct Numbering {
    nodes: Vec<u32>,
    stops: u32,
}

impl Numbering {
    fn new(stop: &[bool]) -> Numbering {
        let kept = stop.iter().filter(|s| **s).count() as u32;
        let (mut next_stop, mut next_other) = (0, kept + 2);
        let number = |&s: &bool| {
            let next = if s { &mut next_stop } else { &mut next_other };
            *next += 1;
            *next - 1
        };
        Numbering { nodes: stop.iter().map(number).collect(), stops: kept + 2 }
    }

    fn node(&self, loc: Loc) -> u32 {
        self.nodes[loc.index()]
    }

    fn is_stop(&self, loc: Loc) -> bool {
        self.node(loc) < self.stops
    }

    /// A fact about locations as one about nodes, with one for those beyond the program.
    fn spread<T: Copy>(&self, fact: &[T], beyond: T) -> Vec<T> {
        let mut nodes = vec![beyond; fact.len() + 2];
        for (node, fact) in self.nodes.iter().zip(fact) {
            nodes[*node as usize] = *fact;
        }
        nodes
    }

    fn trap(&self) -> u32 {
        self.stops - 2
    }

    fn stuck(&self) -> u32 {
        self.stops - 1
    }
}

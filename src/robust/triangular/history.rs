//! The program in which one thread remembers its last store, and stops at a load that may race.
//!
//! Program in, program out: the other threads stay as they are, and so does what they can do. The *attacker*
//! gets copies of its locations, one for each thing it may have to remember ([`Mode`]), with the address of
//! its last store in a register. Where its last store may still wait in a buffer, every load that others may
//! overwrite has a second way: to a location where the attacker stops for good, with the address in a
//! register. A race is a state in which it has stopped there and another thread stands before a write to that
//! address. So a goal says it all, and whoever explores the program needs to know nothing of races.
//!
//! Two things keep this small. The last store before the load is all that has to be remembered: if a load
//! races with an earlier store, then with the last one too, since that was to another cell as well. And who
//! stands before a write can do it unless a block holds it up; but then it could have done it before that
//! block. Invariant: every edge keeps its origin, so that a run of the one program is a run of the other.

use crate::analysis::access::{self, Access};
use crate::analysis::interval::Intervals;
use crate::certify::race::{Pair, in_block};
use crate::model::program::{ProgramParts, ThreadParts};
use crate::model::{
    Atom, BinOp, Bytes, Edge, EdgeId, Expr, Instr, Invalid, Loc, Location, Origin, Pred, Program, Reg,
    RegExpr, Thread, ThreadId, Value,
};
use crate::query::{Act, Action, Clause, Goal, Limit, Limits, When};
use std::collections::HashMap;

/// The program of one attacker, and the states in which it has been caught.
#[derive(Debug)]
pub(crate) struct Attacker {
    pub program: Program,
    pub goal: Goal,
}

/// What instructions may touch.
pub(crate) struct Accesses<'a> {
    program: &'a Program,
    pub intervals: Intervals,
    /// Per thread all that it may write.
    written: Vec<Access>,
}

/// What it costs to copy an edge, in steps.
const COPY: usize = 16;

/// What the attacker remembers of its past.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Mode {
    /// None of its stores can be in a buffer, or none that matters for what it may load next.
    Free,
    /// It holds memory in a `lock` block.
    Held,
    /// Its last store may still wait in a buffer.
    Pending,
}

impl<'a> Accesses<'a> {
    pub(crate) fn new(program: &'a Program, limits: &Limits) -> Result<Self, Limit> {
        let intervals = Intervals::of(program, limits)?;
        let access =
            |t: ThreadId, e: &Edge| access::of_instr(program, &e.instr, || intervals.address(t, e)).cells();
        let all = |t: ThreadId| {
            let edges = program.thread(t).edges();
            edges.fold(Access::NONE, |all, (_, e)| all.union(access(t, e)))
        };
        let written = program.thread_ids().map(|t| Access { reads: 0, ..all(t) }).collect();
        Ok(Accesses { program, written, intervals })
    }

    fn access(&self, t: ThreadId, edge: &Edge) -> Access {
        access::of_instr(self.program, &edge.instr, || self.intervals.address(t, edge)).cells()
    }

    /// All that threads other than `t` may write.
    fn written_by_others(&self, t: ThreadId) -> Access {
        let others = self.program.thread_ids().filter(|&u| u != t);
        others.fold(Access::NONE, |all, u| all.union(self.written[u.index()]))
    }
}

/// The program with thread `t` as the attacker; `None` if the text shows that it is none.
pub(crate) fn attacker(
    accesses: &Accesses<'_>,
    t: ThreadId,
    limits: &Limits,
) -> Result<Option<Result<Attacker, Invalid>>, Limit> {
    let thread = accesses.program.thread(t);
    limits.spend(accesses.program.threads().len() + thread.graph().edge_count())?;
    let written = accesses.written_by_others(t);
    let may_race =
        |e: &Edge| matches!(e.instr, Instr::Load { .. }) && written.conflicts(accesses.access(t, e));
    let loads: Vec<bool> = thread.edges().map(|(_, e)| may_race(e)).collect();
    let copies = Copies::of(thread, &loads);
    let Some(watch) = copies.watch else { return Ok(None) };
    let edges = || accesses.program.threads().iter().map(|t| t.graph().edge_count());
    limits.spend(COPY * edges().sum::<usize>())?;
    let mut parts = accesses.program.to_parts();
    let loaded = thread.edges().filter(|(id, _)| loads[id.index()]).map(|(_, e)| accesses.access(t, e));
    let goal = goal(accesses, t, &watch, loaded.fold(Access::NONE, Access::union), limits)?;
    parts.threads[t.index()] = copies.parts;
    mark_origins(&mut parts, t);
    let first = |mut wrong: Vec<Invalid>| wrong.swap_remove(0);
    Ok(Some(Program::new(parts).map_err(first).map(|program| Attacker { program, goal })))
}

/// The run of the user's program that a run of the attacker's program is.
pub(crate) fn project(program: &Program, actions: &[Action]) -> Vec<Action> {
    let step = |action: &Action| match action.act {
        Act::Step { edge, choice } => match program.thread(action.thread).edge(edge).origin {
            Some(Origin::Whole(edge)) => Some(Action { act: Act::Step { edge, choice }, ..*action }),
            _ => None,
        },
        Act::Flush => None,
    };
    actions.iter().filter_map(step).collect()
}

/// Edges of the other threads stand for themselves. An assertion that fails leads nowhere: what goes wrong is
/// for others to ask.
fn mark_origins(parts: &mut ProgramParts, attacker: ThreadId) {
    for (u, thread) in parts.threads.iter_mut().enumerate() {
        for (i, edge) in thread.edges.iter_mut().enumerate() {
            if u != attacker.index() {
                edge.origin = Some(Origin::Whole(EdgeId(i as u32)));
            }
            if let Instr::Assert(e) = &edge.instr {
                edge.instr = Instr::Assume(e.clone());
            }
        }
    }
}

/// Where the attacker stops, and what it has in its registers there.
#[derive(Clone, Copy, Debug)]
struct Watch {
    stop: Loc,
    /// The address of the load.
    address: Reg,
    /// What it got, which is not looked at.
    value: Reg,
}

/// The attacker's graph in the making.
struct Copies<'a> {
    /// Per edge whether it is a load of something that others may write.
    loads: &'a [bool],
    /// Per location whether such a load may come before the next store and the next thing that waits for the
    /// buffer.
    leads_on: Vec<bool>,
    parts: ThreadParts,
    known: HashMap<(Loc, Mode), Loc>,
    todo: Vec<(Loc, Mode)>,
    last: Reg,
    watch: Option<Watch>,
}

impl<'a> Copies<'a> {
    fn of(thread: &Thread, loads: &'a [bool]) -> Self {
        let mut parts = ThreadParts { edges: vec![], ..thread.to_parts() };
        let last = register(&mut parts, "last");
        let leads_on = leads_on(thread, loads);
        let (known, todo) = (HashMap::new(), Vec::new());
        let mut copies = Copies { loads, leads_on, parts, known, todo, last, watch: None };
        copies.place(thread.initial(), Mode::Free);
        while let Some((loc, mode)) = copies.todo.pop() {
            for (id, edge) in thread.edges_from(loc) {
                copies.copy(id, edge, mode);
            }
        }
        copies
    }

    /// The copy of a location for what the attacker remembers there; the location itself if that is nothing.
    fn place(&mut self, loc: Loc, mode: Mode) -> Loc {
        if let Some(&known) = self.known.get(&(loc, mode)) {
            return known;
        }
        let place = if mode == Mode::Free { loc } else { self.location() };
        self.known.insert((loc, mode), place);
        self.todo.push((loc, mode));
        place
    }

    /// The edge in the copy for this mode, if it can be taken there.
    fn copy(&mut self, id: EdgeId, edge: &Edge, mode: Mode) {
        use Mode::*;
        let on = if self.leads_on[edge.to.index()] { Pending } else { Free };
        let next = match (&edge.instr, mode) {
            (Instr::Lock, Held) | (Instr::Unlock, Free | Pending) => return,
            (Instr::Lock, _) => Held,
            (Instr::Unlock, _) => Free,
            (_, Held) => Held,
            (Instr::Rmw { .. }, _) => Free,
            (fence, _) if fence.is_fence() => Free,
            (Instr::Store { .. }, _) => on,
            (_, Pending) => on,
            (_, Free) => Free,
        };
        let (from, to) = (self.place(edge.from, mode), self.place(edge.to, next));
        match &edge.instr {
            Instr::Store { addr, .. } if next == Pending => {
                let stored = self.location();
                self.whole(id, edge, from, stored);
                self.book(stored, to, Instr::Assign { dst: self.last, value: addr.clone() });
            }
            Instr::Load { addr, .. } if mode == Pending && self.loads[id.index()] => {
                self.whole(id, edge, from, to);
                self.stop(id, edge, from, addr);
            }
            _ => self.whole(id, edge, from, to),
        }
    }

    /// The load once more, as the attacker's last step, if its last store was to another cell.
    fn stop(&mut self, id: EdgeId, edge: &Edge, from: Loc, addr: &RegExpr) {
        let watch = self.watch();
        let (loaded, known) = (self.location(), self.location());
        // The load's own register may be part of the address, and is left alone.
        let instr = Instr::Load { dst: watch.value, addr: addr.clone(), bytes: Bytes::WHOLE };
        self.whole(id, &Edge { instr, ..edge.clone() }, from, loaded);
        self.book(loaded, known, Instr::Assign { dst: watch.address, value: addr.clone() });
        let differs = Expr::binary(BinOp::Ne, Expr::Atom(watch.address), Expr::Atom(self.last));
        self.book(known, watch.stop, Instr::Assume(differs));
    }

    fn watch(&mut self) -> Watch {
        if let Some(watch) = self.watch {
            return watch;
        }
        let (address, value) = (register(&mut self.parts, "raced"), register(&mut self.parts, "read"));
        let stop = self.location();
        *self.watch.insert(Watch { stop, address, value })
    }

    fn whole(&mut self, id: EdgeId, edge: &Edge, from: Loc, to: Loc) {
        self.parts.edges.push(Edge { from, to, origin: Some(Origin::Whole(id)), ..edge.clone() });
    }

    /// A step that nothing in the user's program corresponds to.
    fn book(&mut self, from: Loc, to: Loc, instr: Instr) {
        let (line, text, origin) = (0, String::new(), Some(Origin::Nothing));
        self.parts.edges.push(Edge { from, to, instr, line, text, origin });
    }

    fn location(&mut self) -> Loc {
        self.parts.locations.push(Location::default());
        Loc(self.parts.locations.len() as u32 - 1)
    }
}

/// A register with a name that nothing else has.
fn register(parts: &mut ThreadParts, name: &str) -> Reg {
    let mut numbered = (1..).map(|i| format!("{name}{i}"));
    let name = numbered.find(|n| !parts.registers.contains(n)).expect("numbers do not end");
    parts.registers.push(name);
    Reg(parts.registers.len() as u16 - 1)
}

/// Per location whether a load of this kind can be reached from it by local steps and loads.
fn leads_on(thread: &Thread, loads: &[bool]) -> Vec<bool> {
    let mut into: Vec<Vec<Loc>> = vec![Vec::new(); thread.graph().node_count()];
    for (_, edge) in
        thread.edges().filter(|(_, e)| e.instr.is_local() || matches!(e.instr, Instr::Load { .. }))
    {
        into[edge.to.index()].push(edge.from);
    }
    let mut leads = vec![false; into.len()];
    let mut todo: Vec<Loc> =
        thread.edges().filter(|(id, _)| loads[id.index()]).map(|(_, e)| e.from).collect();
    while let Some(loc) = todo.pop() {
        if !std::mem::replace(&mut leads[loc.index()], true) {
            todo.extend(&into[loc.index()]);
        }
    }
    leads
}

/// The attacker has stopped, and another thread stands before a write to what it loaded, or before a block
/// that counts as one.
fn goal(
    accesses: &Accesses<'_>,
    t: ThreadId,
    watch: &Watch,
    loaded: Access,
    limits: &Limits,
) -> Result<Goal, Limit> {
    let mut places: Vec<(ThreadId, Pred, Vec<Loc>)> = Vec::new();
    for u in accesses.program.thread_ids().filter(|&u| u != t) {
        for (_, edge) in accesses.program.thread(u).edges() {
            let writes = Access { reads: 0, ..accesses.access(u, edge) };
            let write = written(t, watch, u, &edge.instr).filter(|_| writes.conflicts(loaded));
            for pred in write.into_iter().chain(blocks(accesses, t, watch, u, edge)) {
                limits.spend(places.len())?;
                match places.iter_mut().find(|(v, p, _)| *v == u && *p == pred) {
                    Some((_, _, locs)) => locs.push(edge.from),
                    None => places.push((u, pred, vec![edge.from])),
                }
            }
        }
    }
    let stopped = Expr::Atom(Atom::At(t, vec![watch.stop]));
    let clause = |(u, pred, locs)| {
        let before = Expr::Atom(Atom::At(u, locs));
        Clause { when: When::Always, pred: and(and(stopped.clone(), before), pred), property: 0 }
    };
    Ok(Goal { clauses: places.into_iter().map(clause).collect(), ignores_errors: false })
}

/// When the instruction of thread `u` writes what the attacker has loaded; `None` if it writes nothing.
fn written(t: ThreadId, watch: &Watch, u: ThreadId, instr: &Instr) -> Option<Pred> {
    let own = |e: &RegExpr| lifted(e, u);
    let addr = instr.address().filter(|_| instr.writes_memory())?;
    let hits = Expr::binary(BinOp::Eq, own(addr), Expr::Atom(Atom::Reg(t, watch.address)));
    let fine = instr.exprs().into_iter().filter(|e| e.may_divide_by_zero()).map(|e| own(&e.defined()));
    // What divides by zero goes wrong and writes nothing; and no predicate may do so itself.
    Some(match fine.reduce(and) {
        Some(fine) => and(fine, hits),
        None => hits,
    })
}

/// When a block that begins here counts as a write to what the attacker has loaded.
fn blocks(accesses: &Accesses<'_>, t: ThreadId, watch: &Watch, u: ThreadId, edge: &Edge) -> Vec<Pred> {
    if edge.instr != Instr::Lock {
        return vec![];
    }
    let address = || Expr::Atom(Atom::Reg(t, watch.address));
    let raced = |op, cell: Value| Expr::binary(op, address(), Expr::Const(cell));
    let pred = |Pair { written, read }: Pair| {
        let hits = and(raced(BinOp::Ge, written.lo), raced(BinOp::Le, written.hi));
        if read.lo == read.hi { and(hits, raced(BinOp::Ne, read.lo)) } else { hits }
    };
    in_block(accesses.program, &accesses.intervals, t, u, edge).into_iter().map(pred).collect()
}

fn and(a: Pred, b: Pred) -> Pred {
    Expr::binary(BinOp::And, a, b)
}

/// A thread's expression as a predicate.
fn lifted(e: &RegExpr, u: ThreadId) -> Pred {
    match e {
        Expr::Const(c) => Expr::Const(*c),
        Expr::Atom(r) => Expr::Atom(Atom::Reg(u, *r)),
        Expr::Unary(op, a) => Expr::unary(*op, lifted(a, u)),
        Expr::Binary(op, a, b) => Expr::binary(*op, lifted(a, u), lifted(b, u)),
    }
}

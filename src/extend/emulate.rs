//! How does a thread emulate, under SC, that the stores of a path wait in a buffer?
//!
//! Let inst_1 … inst_n be the path, q0 its first location, p_i the location behind inst_i. A copy of the path
//! is added, q0 → q̄_1 → … → q̄_n, in which stores are issued and loads look at what is issued, newest first.
//! From q̄_n the issued stores go to memory, in order, and the thread is at p_n again. An edge that leaves
//! the path at p_i leaves the copy at q̄_i: a local one first and then the stores, any other one after them.
//! Nothing makes these stores take effect at once: under TSO they may be delayed further, and in the next
//! extension again.
//!
//! inst_1 itself is fenced in the exact form. That loses runs in which the first store reaches memory while
//! the thread is inside the path, so there are ways back, q̄_i → p_i, behind a fence that waits for that
//! store. Before other steps than loads they are seldom needed: if inst_{i+1} can be taken whatever happens,
//! and changes neither memory nor the goal, it can as well be taken before the store reaches memory. At q̄_1
//! the fenced inst_1 is the way back.
//!
//! All exits share one chain of stores, all ways back another; a register remembers which way out to take. So
//! the emulation is as long as the path, and not its square.

use super::goal::{self, Places};
use super::{COPY, DelayedPath, Form, origin};
use crate::model::program::ThreadParts;
use crate::model::{
    BinOp, Bytes, Edge, EdgeId, Expr, Instr, Loc, Location, Origin, Program, Reg, RegExpr, Thread, UnOp,
    Value,
};
use crate::query::{Goal, Limit, Limits};
use std::collections::HashSet;

/// The extended thread, and what its new locations are to the goal.
pub(crate) struct Emulation {
    pub thread: ThreadParts,
    pub places: Places,
}

impl Emulation {
    /// Needs a path that is one, and a thread whose edges all have origins.
    pub(crate) fn of(
        program: &Program,
        goal: &Goal,
        path: &DelayedPath,
        form: Form,
        thread: ThreadParts,
        limits: &Limits,
    ) -> Result<Emulation, Limit> {
        let old = program.thread(path.thread);
        let first_fresh = thread.locations.len();
        let variables = program.variables().iter().map(|v| &v.name);
        let emulator = Emulator {
            program,
            goal,
            old,
            path,
            form,
            limits,
            taken: variables.chain(&thread.registers).cloned().collect(),
            thread,
            issued: vec![],
            places: Places::default(),
            exits: vec![],
            returns: vec![],
        };
        let mut emulation = emulator.run()?;
        let fresh = first_fresh..emulation.thread.locations.len();
        emulation.places.inside = fresh.map(|l| Loc(l as u32)).collect();
        Ok(emulation)
    }
}

struct Emulator<'a> {
    program: &'a Program,
    goal: &'a Goal,
    /// The thread before the extension.
    old: &'a Thread,
    path: &'a DelayedPath,
    form: Form,
    limits: &'a Limits,
    /// Names that registers cannot have.
    taken: HashSet<String>,
    /// The thread as far as it is extended.
    thread: ThreadParts,
    /// The stores of the path so far.
    issued: Vec<Issued>,
    places: Places,
    exits: Vec<Exit>,
    returns: Vec<Exit>,
}

/// A store that waits: its address and value are constants or auxiliary registers.
struct Issued {
    edge: EdgeId,
    addr: RegExpr,
    value: RegExpr,
}

/// A way out of the emulation: from here, so many stores go to memory, and then the thread is there.
struct Exit {
    from: Loc,
    stores: usize,
    to: Loc,
    /// For the lines of the edges on the way.
    edge: EdgeId,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Chain {
    Plain,
    /// A fence behind the first store.
    Fenced,
}

impl Emulator<'_> {
    fn run(mut self) -> Result<Emulation, Limit> {
        if self.form == Form::Exact {
            self.fence_first();
        }
        // Where the steps begin that issue the first store.
        let issue = self.thread.edges.len();
        let mut at = self.old.edge(self.path.edges[0]).from;
        for (i, &id) in self.path.edges.iter().enumerate() {
            // A load may have to be compared with every store before it.
            self.limits.spend(COPY * (1 + self.issued.len()))?;
            if i > 0 && self.form == Form::Exact {
                self.leave(at, id, issue);
            }
            if i > 1 && self.needs_return(id) {
                let to = self.old.edge(id).from;
                self.returns.push(Exit { from: at, stores: self.issued.len(), to, edge: id });
            }
            let next = self.location();
            self.places.stand_for.push((next, self.old.edge(id).to));
            self.emulate(id, at, next);
            at = next;
        }
        let last = *self.path.edges.last().expect("a path has edges");
        let to = self.old.edge(last).to;
        self.exits.push(Exit { from: at, stores: self.issued.len(), to, edge: last });
        self.chains();
        Ok(Emulation { thread: self.thread, places: self.places })
    }

    /// The first store can no longer be overtaken, except in the emulation.
    fn fence_first(&mut self) {
        let id = self.path.edges[0];
        let fence = self.location();
        let to = std::mem::replace(&mut self.thread.edges[id.index()].to, fence);
        self.edge(id, fence, to, Instr::Fence, Origin::Nothing);
    }

    /// The copy of one step of the path.
    fn emulate(&mut self, id: EdgeId, from: Loc, to: Loc) {
        match &self.old.edge(id).instr {
            Instr::Store { addr, value, .. } => self.issue(id, addr, value, from, to),
            Instr::Load { dst, addr, .. } => self.load(id, *dst, addr, from, to),
            local => self.edge(id, from, to, local.clone(), origin(self.old, id)),
        }
    }

    /// Address and value go to registers of their own. The user's program has issued the store with the first
    /// step, so that what goes wrong in a later one has gone wrong there too.
    fn issue(&mut self, id: EdgeId, addr: &RegExpr, value: &RegExpr, from: Loc, to: Loc) {
        let origin = origin(self.old, id);
        let mut steps = Vec::new();
        let addr = self.hold("addr", addr, &mut steps);
        let value = self.hold("val", value, &mut steps);
        // A store that was issued before has passed the test then.
        if !matches!(origin, Origin::Flush(_)) {
            steps.extend(self.range_test(&addr));
        }
        if steps.is_empty() {
            steps.push(Instr::Nop);
        }
        let first = match origin {
            Origin::Whole(e) => Origin::Issue(e),
            Origin::Issue(_) | Origin::Flush(_) | Origin::Nothing => Origin::Nothing,
        };
        let origins = std::iter::once(first).chain(std::iter::repeat(Origin::Nothing));
        let (mut at, last) = (from, steps.len() - 1);
        for (i, (instr, origin)) in steps.into_iter().zip(origins).enumerate() {
            let next = if i == last { to } else { self.inner(self.old.edge(id).to) };
            self.edge(id, at, next, instr, origin);
            at = next;
        }
        self.issued.push(Issued { edge: id, addr, value });
    }

    /// The expression as it is now, for later: a constant, or a fresh register that a step assigns to.
    fn hold(&mut self, name: &str, e: &RegExpr, steps: &mut Vec<Instr>) -> RegExpr {
        if let Some(c) = e.constant() {
            return Expr::Const(c);
        }
        let dst = self.register(name);
        steps.push(Instr::Assign { dst, value: e.clone() });
        Expr::Atom(dst)
    }

    /// Goes wrong as the store would, if the address is outside memory.
    fn range_test(&self, addr: &RegExpr) -> Option<Instr> {
        if let Some(c) = addr.constant() {
            return self.program.cell(c).is_none().then_some(Instr::Assert(Expr::Const(0)));
        }
        let cells = Expr::Const(self.program.cells() as Value);
        let above = Expr::binary(BinOp::Ge, addr.clone(), Expr::Const(0));
        let below = Expr::binary(BinOp::Lt, addr.clone(), cells);
        Some(Instr::Assert(Expr::binary(BinOp::And, above, below)))
    }

    /// The newest issued store to the address gives the value; memory if there is none.
    fn load(&mut self, id: EdgeId, dst: Reg, addr: &RegExpr, from: Loc, to: Loc) {
        let (origin, here) = (origin(self.old, id), self.old.edge(id).from);
        let load = Instr::Load { dst, addr: addr.clone(), bytes: Bytes::WHOLE };
        let mut at = from;
        if addr.may_divide_by_zero() {
            // The load itself has to go wrong, and not a comparison, which has no counterpart in the user's
            // program.
            let (fine, wrong) = (self.inner(here), self.inner(here));
            self.branch(id, at, addr.defined(), (fine, wrong));
            self.edge(id, wrong, to, load.clone(), origin);
            at = fine;
        }
        for i in (0..self.issued.len()).rev() {
            let Issued { addr: stored, value, .. } = &self.issued[i];
            let hit = Instr::Assign { dst, value: value.clone() };
            match (addr.constant(), stored.constant()) {
                (Some(a), Some(b)) if a == b => return self.edge(id, at, to, hit, origin),
                (Some(_), Some(_)) => {}
                _ => {
                    let same = Expr::binary(BinOp::Eq, addr.clone(), stored.clone());
                    let (here, there) = (self.inner(here), self.inner(here));
                    self.branch(id, at, same, (here, there));
                    self.edge(id, here, to, hit, origin);
                    at = there;
                }
            }
        }
        self.edge(id, at, to, load, origin);
    }

    /// Whatever leaves the path before this step leaves the emulation. `issue` is the edge that begins to
    /// issue the path's first store.
    fn leave(&mut self, at: Loc, step: EdgeId, issue: usize) {
        let here = self.old.edge(step).from;
        let stores = self.issued.len();
        let others = self.old.edges_from(here).into_iter().filter(|(id, _)| *id != step);
        let (local, others): (Vec<_>, Vec<_>) = others.partition(|(_, e)| e.instr.is_local());
        for (id, edge) in local {
            let from = self.location();
            self.edge(id, at, from, edge.instr.clone(), origin(self.old, id));
            self.exits.push(Exit { from, stores, to: edge.to, edge: id });
        }
        let Some((edge, _)) = others.first().copied() else { return };
        // Like `here`, but the path cannot be entered from it.
        let twin = self.inner(here);
        self.exits.push(Exit { from: at, stores, to: twin, edge });
        for (id, _) in others {
            // In place of the path's first store there are two ways by now.
            let second = (id == self.path.edges[0]).then_some(issue);
            for copied in std::iter::once(id.index()).chain(second) {
                let edge = Edge { from: twin, ..self.thread.edges[copied].clone() };
                self.thread.edges.push(edge);
            }
        }
    }

    /// May the first store have to reach memory just before this step?
    fn needs_return(&self, step: EdgeId) -> bool {
        let edge = self.old.edge(step);
        let visible = |e: &Edge| goal::is_visible(self.goal, self.path.thread, e);
        let exact = self.form == Form::Exact;
        match &edge.instr {
            Instr::Load { .. } if exact => true,
            Instr::Assume(e) => {
                let edges = self.old.edges_from(edge.from);
                let other = edges.iter().map(|(_, other)| *other).find(|other| match &other.instr {
                    Instr::Assume(f) => complementary(e, f),
                    _ => false,
                });
                visible(edge) || other.map_or(exact, visible)
            }
            _ => visible(edge),
        }
    }

    fn chains(&mut self) {
        let (exits, returns) = (std::mem::take(&mut self.exits), std::mem::take(&mut self.returns));
        let many = exits.len() > 1 || returns.len() > 1;
        let ret = many.then(|| self.register("ret"));
        self.chain(&exits, Chain::Plain, ret);
        self.chain(&returns, Chain::Fenced, ret);
    }

    /// The issued stores, one after the other, and every exit behind as many as it needs. Built from the end,
    /// so that every step knows where it leads.
    fn chain(&mut self, exits: &[Exit], chain: Chain, ret: Option<Reg>) {
        let Some(last) = exits.last() else { return };
        let ret = ret.map(Expr::Atom).filter(|_| exits.len() > 1);
        let start = if ret.is_some() { self.location() } else { last.from };
        let mut next = None;
        for stores in (1..=last.stores).rev() {
            for (number, exit) in exits.iter().enumerate().rev().filter(|(_, e)| e.stores == stores) {
                next = Some(match (next, &ret) {
                    (Some(on), Some(ret)) => {
                        let test = self.location();
                        let here = Expr::binary(BinOp::Eq, ret.clone(), Expr::Const(number as Value));
                        self.branch(exit.edge, test, here, (exit.to, on));
                        test
                    }
                    _ => exit.to,
                });
            }
            let mut to = next.expect("some exit needs all stores");
            if stores == 1 && chain == Chain::Fenced {
                let fence = self.location();
                self.edge(self.issued[0].edge, fence, to, Instr::Fence, Origin::Nothing);
                to = fence;
            }
            let from = if stores == 1 { start } else { self.location() };
            self.flush(stores - 1, from, to);
            next = Some(from);
        }
        for (number, exit) in exits.iter().enumerate() {
            if let Some(Expr::Atom(dst)) = ret {
                let value = Expr::Const(number as Value);
                self.edge(exit.edge, exit.from, start, Instr::Assign { dst, value }, Origin::Nothing);
            }
        }
    }

    /// An issued store goes to memory.
    fn flush(&mut self, store: usize, from: Loc, to: Loc) {
        let Issued { edge, addr, value } = &self.issued[store];
        let (addr, value) = (addr.clone(), value.clone());
        let (edge, instr) = (*edge, Instr::Store { addr, value, bytes: Bytes::WHOLE });
        let origin = match origin(self.old, edge) {
            Origin::Whole(e) | Origin::Flush(e) => Origin::Flush(e),
            Origin::Issue(_) | Origin::Nothing => unreachable!("a store reaches memory"),
        };
        self.edge(edge, from, to, instr, origin);
    }

    /// Two steps that exclude each other, of which one is always possible.
    fn branch(&mut self, id: EdgeId, from: Loc, condition: RegExpr, (yes, no): (Loc, Loc)) {
        let otherwise = match &condition {
            Expr::Binary(BinOp::Eq, a, b) => Expr::Binary(BinOp::Ne, a.clone(), b.clone()),
            _ => Expr::unary(UnOp::Not, condition.clone()),
        };
        self.edge(id, from, yes, Instr::Assume(condition), Origin::Nothing);
        self.edge(id, from, no, Instr::Assume(otherwise), Origin::Nothing);
    }

    /// A new edge that belongs to the instruction of an old one.
    fn edge(&mut self, of: EdgeId, from: Loc, to: Loc, instr: Instr, origin: Origin) {
        let Edge { line, text, .. } = self.old.edge(of).clone();
        self.thread.edges.push(Edge { from, to, instr, line, text, origin: Some(origin) });
    }

    fn location(&mut self) -> Loc {
        self.thread.locations.push(Location::default());
        Loc(self.thread.locations.len() as u32 - 1)
    }

    /// A location inside the emulation of a step, where the user's program stands at an old one.
    fn inner(&mut self, old: Loc) -> Loc {
        let fresh = self.location();
        self.places.stand_for.push((fresh, old));
        fresh
    }

    /// A register with a name that nothing else has.
    fn register(&mut self, name: &str) -> Reg {
        let mut numbered = (self.issued.len() + 1..).map(|i| format!("{name}{i}"));
        let name = numbered.find(|n| !self.taken.contains(n)).expect("numbers do not end");
        self.taken.insert(name.clone());
        self.thread.registers.push(name);
        Reg(self.thread.registers.len() as u16 - 1)
    }
}

/// Does exactly one of the two conditions hold, whatever the registers hold?
fn complementary(a: &RegExpr, b: &RegExpr) -> bool {
    use BinOp::*;
    let negation = |a: &RegExpr, b: &RegExpr| matches!(b, Expr::Unary(UnOp::Not, c) if **c == *a);
    let opposite = |f: &BinOp, g: &BinOp| {
        matches!((f, g), (Eq, Ne) | (Ne, Eq) | (Lt, Ge) | (Ge, Lt) | (Gt, Le) | (Le, Gt))
    };
    let compared = match (a, b) {
        (Expr::Binary(f, a1, a2), Expr::Binary(g, b1, b2)) => opposite(f, g) && a1 == b1 && a2 == b2,
        _ => false,
    };
    negation(a, b) || negation(b, a) || compared
}

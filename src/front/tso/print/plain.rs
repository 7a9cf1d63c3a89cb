//! Which program means the same and can be written down? One whose every location has a spelling.
//!
//! Text has one instruction at each place, or an `if`, or a `choose`. A location with other ways out is
//! split: it chooses, without a step of memory, and each choice has its own location. A location without a
//! way out waits for ever. Where the original stands at a location, this one stands at it or at one of its
//! choices, so `t@label` becomes a question about all of these, and no property can tell the two programs
//! apart. Invariant: locations come in the order of the text, `end` last; expressions are folded as the
//! reader folds them; names are legal.

use super::LOCATION;
use super::legal;
use crate::front::const_fold::{self, Leaf};
use crate::limits::{Limit, Limits};
use crate::model::expr::MAX_DEPTH;
use crate::model::program::{ProgramParts, ThreadParts};
use crate::model::{Atom, BinOp, Edge, Expr, Instr, Loc, Location, Program, Property, Reg, RegExpr, UnOp};
use std::collections::HashSet;

pub(crate) fn plain(program: &Program, limits: &Limits) -> Result<ProgramParts, Limit> {
    let mut parts = copy(program, limits)?;
    let memory = legal::names(parts.memory.iter().map(|v| v.name.as_str()), &HashSet::new());
    let threads = legal::thread_names(parts.threads.iter().map(|t| t.name.as_str()));
    let asked = registers_asked_for(&parts);
    let reserved: HashSet<String> = memory.iter().cloned().collect();
    let mut places = Vec::new();
    let given = std::mem::take(&mut parts.threads);
    for ((mut thread, name), asked) in given.into_iter().zip(threads).zip(&asked) {
        thread.name = name;
        thread.registers = legal::names(thread.registers.iter().map(String::as_str), &reserved);
        fold_instructions(&mut thread, &reserved, limits)?;
        let mut laid_out = ThreadLayout::new(thread, asked, limits)?.build(limits)?;
        name_labels(&mut laid_out.thread, limits)?;
        parts.threads.push(laid_out.thread);
        places.push(laid_out.places);
    }
    for (variable, name) in parts.memory.iter_mut().zip(memory) {
        variable.name = name;
    }
    let called = parts.properties.iter().filter_map(|p| p.name.as_deref());
    let mut called = legal::names(called, &HashSet::new()).into_iter();
    for property in &mut parts.properties {
        property.name = property.name.take().and_then(|_| called.next());
        let pred = std::mem::replace(&mut property.pred, Expr::Const(0));
        property.pred = folded(pred, &mut |atom| match atom {
            Atom::At(t, locs) => {
                let locs = locs.iter().flat_map(|l| &places[t.index()][l.index()]).copied();
                match const_fold::places(locs) {
                    locs if locs.is_empty() => Expr::Const(0),
                    locs => Expr::Atom(Atom::At(t, locs)),
                }
            }
            atom => Expr::Atom(atom),
        });
    }
    Ok(parts)
}

/// The parts of the program without the users' text, which is not printed.
fn copy(program: &Program, limits: &Limits) -> Result<ProgramParts, Limit> {
    let mut threads = Vec::with_capacity(program.threads().len());
    for thread in program.threads() {
        let mut edges = Vec::with_capacity(thread.graph().edge_count());
        for (_, edge) in thread.edges() {
            limits.spend(LOCATION)?;
            let (from, to, instr) = (edge.from, edge.to, edge.instr.clone());
            edges.push(Edge { from, to, instr, line: 0, text: String::new(), origin: None });
        }
        let mut locations = Vec::with_capacity(thread.graph().node_count());
        for loc in thread.locations() {
            limits.spend(LOCATION)?;
            locations.push(thread.location(loc).clone());
        }
        let (name, registers) = (thread.name().to_string(), thread.registers().to_vec());
        threads.push(ThreadParts {
            name,
            registers,
            locations,
            edges,
            initial: thread.initial(),
            end: thread.end(),
        });
    }
    let memory = program.variables().to_vec();
    let untold =
        |p: &Property| Property { name: p.name.clone(), ..Property::new(p.kind, p.pred.clone(), p.line) };
    let properties = program.properties().iter().map(untold).collect();
    let (no_hang, stretches, code) = (program.no_hang(), vec![], vec![]);
    Ok(ProgramParts { memory, threads, properties, no_hang, stretches, code })
}

/// The registers of each thread that properties name.
fn registers_asked_for(parts: &ProgramParts) -> Vec<HashSet<Reg>> {
    let mut asked = vec![HashSet::new(); parts.threads.len()];
    for property in &parts.properties {
        property.pred.for_each_atom(&mut |atom| {
            if let Atom::Reg(t, r) = atom {
                asked[t.index()].insert(*r);
            }
        });
    }
    asked
}

fn name_labels(thread: &mut ThreadParts, limits: &Limits) -> Result<(), Limit> {
    for location in &mut thread.locations {
        limits.spend(LOCATION)?;
        let mut seen = HashSet::new();
        location.labels.retain(|label| seen.insert(label.clone()));
    }
    let labels = thread.locations.iter().flat_map(|l| &l.labels).map(String::as_str);
    let mut names = legal::names(labels, &HashSet::new()).into_iter();
    for label in thread.locations.iter_mut().flat_map(|l| &mut l.labels) {
        *label = names.next().unwrap_or_default();
    }
    Ok(())
}

/// Folds every expression. A constant division by zero, which no file may contain, becomes a division by a
/// register that is never assigned to.
fn fold_instructions(
    thread: &mut ThreadParts,
    reserved: &HashSet<String>,
    limits: &Limits,
) -> Result<(), Limit> {
    let zero = Reg(thread.registers.len() as u16);
    for edge in &mut thread.edges {
        limits.spend(LOCATION)?;
        for e in exprs(&mut edge.instr) {
            let original = std::mem::replace(e, Expr::Const(0));
            *e = folded_with_zero(original, zero);
        }
    }
    let uses_zero = |e: &RegExpr| {
        let mut found = false;
        e.for_each_atom(&mut |r| found |= *r == zero);
        found
    };
    if thread.edges.iter().any(|edge| edge.instr.exprs().into_iter().any(uses_zero)) {
        let taken = thread.registers.iter().chain(reserved).cloned().collect();
        thread.registers.push(legal::fresh("zero", &taken));
    }
    Ok(())
}

fn exprs(instr: &mut Instr) -> Vec<&mut RegExpr> {
    match instr {
        Instr::Load { addr, .. } => vec![addr],
        Instr::Store { addr, value, .. } => vec![addr, value],
        Instr::Assign { value, .. } => vec![value],
        Instr::Assume(e) | Instr::Assert(e) => vec![e],
        Instr::Rmw { addr, op, .. } => std::iter::once(addr).chain(op.operands_mut()).collect(),
        Instr::Fence
        | Instr::Partial(_)
        | Instr::Membarrier
        | Instr::Any { .. }
        | Instr::Lock
        | Instr::Unlock
        | Instr::Nop => {
            vec![]
        }
    }
}

fn folded_with_zero(e: RegExpr, zero: Reg) -> RegExpr {
    fold_tree(e, &mut Expr::Atom, &mut |op, a| Expr::binary(op, a, Expr::Atom(zero)))
}

/// Properties of a valid program do not divide by zero.
fn folded<A: Leaf>(e: Expr<A>, leaf: &mut impl FnMut(A) -> Expr<A>) -> Expr<A> {
    fold_tree(e, leaf, &mut |_, _| unreachable!("a property divides only by constants other than 0"))
}

/// The tree that the reader makes of the expression's text.
fn fold_tree<A: Leaf>(
    e: Expr<A>,
    leaf: &mut impl FnMut(A) -> Expr<A>,
    by_zero: &mut impl FnMut(BinOp, Expr<A>) -> Expr<A>,
) -> Expr<A> {
    match e {
        Expr::Const(c) => Expr::Const(c),
        Expr::Atom(a) => leaf(a),
        Expr::Unary(op, a) => const_fold::unary(op, fold_tree(*a, leaf, by_zero)),
        Expr::Binary(op @ (BinOp::And | BinOp::Or), a, b) => {
            let mut operands = vec![*b];
            let mut left = *a;
            while let Expr::Binary(same, a, b) = left {
                if same != op {
                    left = Expr::Binary(same, a, b);
                    break;
                }
                operands.push(*b);
                left = *a;
            }
            operands.push(left);
            let operands = operands.into_iter().rev().map(|e| fold_tree(e, leaf, by_zero)).collect();
            let mut combine = |a, b| const_fold::binary(op, a, b).unwrap_or(Expr::Const(0));
            const_fold::join(operands, &mut combine).unwrap_or(Expr::Const(0))
        }
        Expr::Binary(op, a, b) => {
            let (a, b) = (fold_tree(*a, leaf, by_zero), fold_tree(*b, leaf, by_zero));
            match (&a, &b) {
                (Expr::Const(_), Expr::Const(0)) if matches!(op, BinOp::Div | BinOp::Rem) => by_zero(op, a),
                _ => const_fold::binary(op, a, b).unwrap_or(Expr::Const(0)),
            }
        }
    }
}

/// A thread in its new form, and the new locations of each old one.
struct LaidOut {
    thread: ThreadParts,
    places: Vec<Vec<Loc>>,
}

/// What stands at a location.
enum Shape {
    Stuck,
    /// One instruction, or a choice among several locations.
    Plain(Vec<Edge>),
    Branch(RegExpr, Loc, Loc),
    /// A choice among instructions.
    Split(Vec<Edge>),
}

struct ThreadLayout {
    thread: ThreadParts,
    shapes: Vec<Shape>,
    /// Registers that properties name and the text would not mention; they are set to 0 first.
    silent: Vec<Reg>,
}

impl ThreadLayout {
    fn new(mut thread: ThreadParts, asked: &HashSet<Reg>, limits: &Limits) -> Result<ThreadLayout, Limit> {
        let mut edges: Vec<Vec<Edge>> = vec![Vec::new(); thread.locations.len()];
        let mut mentioned = HashSet::new();
        for edge in std::mem::take(&mut thread.edges) {
            limits.spend(LOCATION)?;
            mentioned.extend(edge.instr.target());
            for e in edge.instr.exprs() {
                e.for_each_atom(&mut |r| mentioned.extend([*r]));
            }
            edges[edge.from.index()].push(edge);
        }
        let shapes: Vec<Shape> = edges.into_iter().map(shape).collect();
        let mut silent: Vec<Reg> = asked.difference(&mentioned).copied().collect();
        silent.sort_unstable();
        Ok(ThreadLayout { thread, shapes, silent })
    }

    fn build(self, limits: &Limits) -> Result<LaidOut, Limit> {
        let places = self.places();
        let home = |old: Loc| places[old.index()][0];
        let mut edges = Vec::new();
        let mut add = |from, to, instr| {
            edges.push(Edge { from, to, instr, line: 0, text: String::new(), origin: None });
        };
        let initial = home(self.thread.initial);
        for (i, reg) in self.silent.iter().enumerate() {
            let to = if i + 1 == self.silent.len() { initial } else { Loc(i as u32 + 1) };
            add(Loc(i as u32), to, Instr::Assign { dst: *reg, value: Expr::Const(0) });
        }
        for (old, shape) in self.shapes.into_iter().enumerate() {
            limits.spend(LOCATION)?;
            if old == self.thread.end.index() {
                continue;
            }
            let from = places[old][0];
            match shape {
                Shape::Stuck => add(from, Loc(from.0 + 1), Instr::Assume(Expr::Const(0))),
                Shape::Plain(ways) => ways.into_iter().for_each(|e| add(from, home(e.to), e.instr)),
                Shape::Branch(condition, taken, other) => {
                    add(from, home(taken), Instr::Assume(condition.clone()));
                    add(from, home(other), Instr::Assume(const_fold::unary(UnOp::Not, condition)));
                }
                Shape::Split(ways) => {
                    let choices = from.0 + 1..=from.0 + ways.len() as u32;
                    choices.clone().for_each(|to| add(from, Loc(to), Instr::Nop));
                    choices.zip(ways).for_each(|(at, e)| add(Loc(at), home(e.to), e.instr));
                }
            }
        }
        let mut locations = vec![Location::default(); self.silent.len()];
        let end = places[self.thread.end.index()][0];
        locations.resize(end.index() + 1, Location::default());
        for (old, location) in self.thread.locations.into_iter().enumerate() {
            locations[places[old][0].index()] = location;
        }
        let first = if self.silent.is_empty() { initial } else { Loc(0) };
        let mut places = places;
        if !self.silent.is_empty() {
            places[self.thread.initial.index()].extend((0..self.silent.len() as u32).map(Loc));
        }
        let thread = ThreadParts {
            name: self.thread.name,
            registers: self.thread.registers,
            locations,
            edges,
            initial: first,
            end,
        };
        Ok(LaidOut { thread, places })
    }

    /// Numbers the locations in the order of the text: first the silent registers, last the end.
    fn places(&self) -> Vec<Vec<Loc>> {
        let mut next = self.silent.len() as u32;
        let mut take = |count: usize| {
            next += count as u32;
            (next - count as u32..next).map(Loc).collect::<Vec<_>>()
        };
        let end = self.thread.end.index();
        let size = |shape: &Shape| match shape {
            Shape::Split(ways) => 1 + ways.len(),
            _ => 1,
        };
        let mut places: Vec<Vec<Loc>> = (self.shapes.iter().enumerate())
            .map(|(old, shape)| if old == end { Vec::new() } else { take(size(shape)) })
            .collect();
        places[end] = take(1);
        places
    }
}

fn shape(edges: Vec<Edge>) -> Shape {
    if edges.is_empty() {
        return Shape::Stuck;
    }
    if edges.len() == 1 || edges.iter().all(|e| e.instr == Instr::Nop) {
        return Shape::Plain(edges);
    }
    match edges.as_slice() {
        [Edge { instr: Instr::Assume(a), to: t, .. }, Edge { instr: Instr::Assume(b), to: u, .. }] => {
            if *b == const_fold::unary(UnOp::Not, a.clone()) || is_opposite(a, b) {
                Shape::Branch(a.clone(), *t, *u)
            } else if *a == const_fold::unary(UnOp::Not, b.clone()) {
                Shape::Branch(b.clone(), *u, *t)
            } else {
                Shape::Split(edges)
            }
        }
        _ => Shape::Split(edges),
    }
}

/// `r == 0` and `r != 0`, as other formats write branches.
fn is_opposite(a: &RegExpr, b: &RegExpr) -> bool {
    let (Expr::Binary(op, a1, a2), Expr::Binary(inverse, b1, b2)) = (a, b) else { return false };
    let opposite = match op {
        BinOp::Eq => BinOp::Ne,
        BinOp::Ne => BinOp::Eq,
        BinOp::Lt => BinOp::Ge,
        BinOp::Ge => BinOp::Lt,
        BinOp::Gt => BinOp::Le,
        BinOp::Le => BinOp::Gt,
        _ => return false,
    };
    // The branch's negation is one level higher than the comparison.
    *inverse == opposite && a1 == b1 && a2 == b2 && a.depth() < MAX_DEPTH
}

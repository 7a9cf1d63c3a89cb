//! What is left of a thread once all that is known has been worked out? The graph of the model.

use super::exec::{CodePlace, Exec, PathEnd, Root};
use super::graph::CodeGraph;
use super::layout::{Cell, Layout};
use super::ops::{self, Var, VarExpr, and, constant, cut, mask, or, shl, shr, var};
use super::refusal::Result;
use super::sink::{EmittedAt, RmwChange, Sink};
use super::tidy;
use super::value::POISON;
use crate::model::program::ThreadParts;
use crate::model::{BinOp, Bytes, Edge, Expr, Instr, Loc, Location, Reg, RegExpr, RmwOp};
use std::collections::{BTreeSet, HashMap};

pub(super) struct Emitter<'e> {
    layout: &'e Layout,
    stack: (u64, u64),
    own: u64,
    locations: Vec<Location>,
    edges: Vec<Edge>,
    registers: HashMap<Var, Reg>,
    names: Vec<String>,
    at: Loc,
    end: Loc,
    line: u32,
    /// The lines that access memory in parts.
    parted: BTreeSet<u32>,
}

/// The thread as the model has it, with the lines that access memory in parts.
pub(super) fn thread(
    exec: &mut Exec,
    root: &Root,
    graph: &CodeGraph,
    layout: &Layout,
    name: String,
    mut seen: impl FnMut(&CodePlace) -> u32,
) -> Result<(ThreadParts, BTreeSet<u32>)> {
    let own = root.state.known(Var::Own).unwrap_or(0);
    let mut emitter = Emitter {
        layout,
        stack: root.stack,
        own,
        locations: vec![Location::default(); graph.nodes.len() + 1],
        edges: Vec::new(),
        registers: HashMap::new(),
        names: Vec::new(),
        at: Loc(0),
        end: Loc(graph.nodes.len() as u32),
        line: 0,
        parted: BTreeSet::new(),
    };
    for (n, node) in graph.nodes.iter().enumerate() {
        emitter.at = Loc(n as u32);
        emitter.locations[n].within = node.place.op != 0;
        emitter.line = seen(&node.place);
        let PathEnd::Next(ways) = exec.run(node.place, node.state.clone(), &mut emitter)? else {
            unreachable!("no thread is alone any more")
        };
        let here = emitter.at;
        for way in ways {
            emitter.at = here;
            if let Some(condition) = way.condition {
                emitter.assume(condition);
            }
            let to = graph.node(&way.place).expect("the graph is closed");
            exec.convert(&way.state, &graph.nodes[to].state, &mut emitter);
            emitter.jump(to as EmittedAt);
        }
    }
    // The first place may be come to again, and less be known there than at first.
    let initial = emitter.place(false);
    emitter.at = initial;
    exec.convert(&root.state, &graph.nodes[0].state, &mut emitter);
    emitter.jump(0);
    let parts = ThreadParts {
        name,
        registers: emitter.names,
        locations: emitter.locations,
        edges: emitter.edges,
        initial,
        end: emitter.end,
    };
    Ok((tidy::tidy(parts), emitter.parted))
}

impl Emitter<'_> {
    fn register(&mut self, var: Var) -> Reg {
        if let Some(known) = self.registers.get(&var) {
            return *known;
        }
        let name = self.name(var);
        let register = Reg(self.names.len() as u16);
        self.names.push(name);
        self.registers.insert(var, register);
        register
    }

    fn name(&self, var: Var) -> String {
        const GPR: [&str; 16] = [
            "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
            "r14", "r15",
        ];
        match var {
            Var::Gpr(n) => GPR[usize::from(n) % 16].to_string(),
            Var::Xmm(n, half) => format!("xmm{n}_{half}"),
            Var::Own => "fs".to_string(),
            Var::Left => "left".to_string(),
            Var::Right => "right".to_string(),
            Var::Flag(flag) => format!("{flag:?}").to_lowercase(),
            Var::Temp(n) => format!("t{n}"),
            Var::Old => "old".to_string(),
            Var::Slot(at, bytes) if (self.stack.0..self.stack.1).contains(&at) => {
                format!("sp_{}_{bytes}", self.stack.1 - at)
            }
            // What is relative to the thread's own pointer is alike in all threads.
            Var::Slot(at, bytes) if at < self.own && self.own - at < 1 << 20 => {
                format!("tls_{}_{bytes}", self.own - at)
            }
            Var::Slot(at, bytes) if at >= self.own && at < self.stack.0 => {
                format!("fs_{}_{bytes}", at - self.own)
            }
            Var::Slot(at, bytes) => format!("at_{at:x}_{bytes}"),
        }
    }

    fn expr(&mut self, term: &VarExpr) -> RegExpr {
        let mut vars = Vec::new();
        term.for_each_atom(&mut |var| vars.push(*var));
        let registers: HashMap<Var, Reg> = vars.into_iter().map(|var| (var, self.register(var))).collect();
        term.map_atoms(&|var| registers[var])
    }

    fn place(&mut self, within: bool) -> Loc {
        self.locations.push(Location { labels: vec![], within });
        Loc(self.locations.len() as u32 - 1)
    }

    fn step(&mut self, instr: Instr) {
        let to = self.place(true);
        self.step_to(instr, to);
        self.at = to;
    }

    fn step_to(&mut self, instr: Instr, to: Loc) {
        let (from, line) = (self.at, self.line);
        self.edges.push(Edge { from, to, instr, line, text: String::new(), origin: None });
    }

    fn cell_load(&mut self, to: Var, cell: Cell, bytes: Bytes) {
        let dst = self.register(to);
        self.step(Instr::Load { dst, addr: address(cell), bytes });
    }

    /// Loads what an access that is not one whole cell is made of.
    fn load_pieces(&mut self, at: u64, bytes: u8, cells: &[Cell]) {
        let end = at + u64::from(bytes);
        for cell in cells {
            let named = if cell.mixed { cell.part(at, end) } else { Bytes::WHOLE };
            self.cell_load(piece(*cell), *cell, named);
        }
    }

    /// Makes one number of the pieces.
    fn join_pieces(&mut self, to: Var, at: u64, bytes: u8, cells: &[Cell]) {
        let end = at + u64::from(bytes);
        let mut whole = constant(0);
        for cell in cells {
            whole = or_else(
                whole,
                shl(part(var(piece(*cell)), *cell, at, end), constant(8 * (at.max(cell.address) - at))),
            );
        }
        let value = self.expr(&whole);
        let dst = self.register(to);
        self.step(Instr::Assign { dst, value });
    }

    /// An access to these cells: to each for itself if there are several, in every order.
    fn in_any_order(&mut self, cells: &[Cell], access: impl Fn(&mut Self, &[Cell])) {
        let [first, second] = *cells else { return access(self, cells) };
        self.in_parts();
        let (here, after) = (self.at, self.fresh());
        for order in [[first, second], [second, first]] {
            self.at = here;
            access(self, &order);
            self.jump(after);
        }
        self.go(after);
    }

    /// Stores into cells, of which each is covered or can be changed in part.
    fn store_pieces(&mut self, at: u64, bytes: u8, cells: &[Cell], value: &VarExpr) {
        let end = at + u64::from(bytes);
        for cell in cells {
            let value = self.expr(&in_place(value, *cell, at, end));
            self.step(Instr::Store { addr: address(*cell), value, bytes: cell.part(at, end) });
        }
    }

    fn locked_whole(&mut self, to: Var, bytes: u8, cell: Cell, change: &RmwChange) {
        let op = match change {
            RmwChange::Swap(value) => RmwOp::Swap(self.expr(value)),
            RmwChange::Cas { old, new } => RmwOp::Cas { old: self.expr(old), new: self.expr(new) },
            RmwChange::Update(new) => match combined(new, bytes) {
                Some((op, value)) => {
                    let value = self.expr(&value);
                    match op {
                        BinOp::BitAnd => RmwOp::And(value),
                        BinOp::BitOr => RmwOp::Or(value),
                        BinOp::BitXor => RmwOp::Xor(value),
                        _ => RmwOp::Add(value),
                    }
                }
                None => RmwOp::New(self.expr(&brought(new, to))),
            },
        };
        let dst = self.register(to);
        self.step(Instr::Rmw { dst, addr: address(cell), op });
    }

    /// Changes a part of a cell in one step, as its other bytes stay what they are.
    fn locked_part(&mut self, to: Var, at: u64, bytes: u8, cell: Cell, new: &VarExpr) {
        let end = at + u64::from(bytes);
        let whole = Var::Temp(u8::MAX - 40);
        let own = cell.part(at, end).bits() as u64;
        let old = part(var(whole), cell, at, end);
        let new = replaced(new, to, &old);
        let rest = and(var(whole), constant(mask(8 * cell.bytes) & !own));
        let new = self.expr(&or(rest, in_place(&new, cell, at, end)));
        let dst = self.register(whole);
        self.step(Instr::Rmw { dst, addr: address(cell), op: RmwOp::New(new) });
        let value = self.expr(&old);
        let dst = self.register(to);
        self.step(Instr::Assign { dst, value });
    }
}

/// What a part of an access finds in a cell: one access is about cells side by side.
fn piece(cell: Cell) -> Var {
    Var::Temp(u8::MAX - 40 - (cell.address / 8 % 2) as u8)
}

/// The bytes of a cell that an access is about, as a number.
fn part(whole: VarExpr, cell: Cell, at: u64, end: u64) -> VarExpr {
    let (from, to) = (at.max(cell.address), end.min(cell.address + u64::from(cell.bytes)));
    cut(shr(whole, constant(8 * (from - cell.address)), 64), 8 * (to - from) as u8)
}

/// The bytes of a value that go to a cell, in their places there.
fn in_place(value: &VarExpr, cell: Cell, at: u64, end: u64) -> VarExpr {
    let (from, to) = (at.max(cell.address), end.min(cell.address + u64::from(cell.bytes)));
    let own = cut(shr(value.clone(), constant(8 * (from - at)), 64), 8 * (to - from) as u8);
    shl(own, constant(8 * (from - cell.address)))
}

fn or_else(a: VarExpr, b: VarExpr) -> VarExpr {
    if a == constant(0) { b } else { or(a, b) }
}

fn address(cell: Cell) -> RegExpr {
    Expr::Const(i64::from(cell.cell.0))
}

fn is_whole(cells: &[Cell], at: u64, bytes: u8) -> bool {
    matches!(cells, [one] if one.address == at && one.bytes == bytes)
}

fn mentions(term: &VarExpr, wanted: Var) -> bool {
    let mut found = false;
    term.for_each_atom(&mut |var| found |= *var == wanted);
    found
}

/// The new value over what brings the old one.
fn brought(new: &VarExpr, to: Var) -> VarExpr {
    new.map_atoms(&|v| if *v == Var::Old { to } else { *v })
}

/// The term with another in place of a variable.
fn replaced(term: &VarExpr, from: Var, by: &VarExpr) -> VarExpr {
    match term {
        Expr::Atom(var) if *var == from => by.clone(),
        Expr::Const(_) | Expr::Atom(_) => term.clone(),
        Expr::Unary(op, a) => Expr::unary(*op, replaced(a, from, by)),
        Expr::Binary(op, a, b) => Expr::binary(*op, replaced(a, from, by), replaced(b, from, by)),
    }
}

/// The instruction of the model that changes a cell so, if there is one.
fn combined(new: &VarExpr, bytes: u8) -> Option<(BinOp, VarExpr)> {
    let Expr::Binary(op, a, b) = new else { return None };
    let other = match (&**a, &**b) {
        (Expr::Atom(Var::Old), b) => b,
        (a, Expr::Atom(Var::Old)) if *op != BinOp::Sub => a,
        _ => return None,
    };
    if mentions(other, Var::Old) {
        return None;
    }
    match op {
        BinOp::BitAnd | BinOp::BitOr | BinOp::BitXor => Some((*op, other.clone())),
        BinOp::Add => Some((BinOp::Add, other.clone())),
        BinOp::Sub if bytes == 8 => Some((BinOp::Add, ops::sub(constant(0), other.clone()))),
        _ => None,
    }
}

impl Sink for Emitter<'_> {
    fn here(&mut self) -> EmittedAt {
        self.at.0
    }

    fn fresh(&mut self) -> EmittedAt {
        self.place(true).0
    }

    fn go(&mut self, to: EmittedAt) {
        self.at = Loc(to);
    }

    fn jump(&mut self, to: EmittedAt) {
        self.step_to(Instr::Nop, Loc(to));
    }

    fn assign(&mut self, to: Var, value: VarExpr) {
        let value = self.expr(&value);
        let dst = self.register(to);
        self.step(Instr::Assign { dst, value });
    }

    fn any(&mut self, to: Var, lo: i64, hi: i64) {
        let dst = self.register(to);
        self.step(Instr::Any { dst, lo, hi });
    }

    fn assume(&mut self, condition: VarExpr) {
        let condition = self.expr(&condition);
        self.step(Instr::Assume(condition));
    }

    fn assert(&mut self, condition: VarExpr, why: &str) {
        let condition = self.expr(&condition);
        self.step(Instr::Assert(condition));
        if let Some(edge) = self.edges.last_mut() {
            edge.text = why.to_string();
        }
    }

    fn load(&mut self, to: Var, at: u64, bytes: u8) {
        let cells = self.layout.cells(at, bytes);
        if is_whole(&cells, at, bytes) {
            return self.cell_load(to, cells[0], Bytes::WHOLE);
        }
        self.in_any_order(&cells, |emitter, order| emitter.load_pieces(at, bytes, order));
        self.join_pieces(to, at, bytes, &cells);
    }

    fn store(&mut self, at: u64, bytes: u8, value: VarExpr) {
        let cells = self.layout.cells(at, bytes);
        match is_whole(&cells, at, bytes) {
            true => {
                let value = self.expr(&value);
                self.step(Instr::Store { addr: address(cells[0]), value, bytes: Bytes::WHOLE });
            }
            false => self.in_any_order(&cells, |emitter, order| {
                emitter.store_pieces(at, bytes, order, &value);
            }),
        }
    }

    fn locked(&mut self, to: Var, at: u64, bytes: u8, change: RmwChange) {
        let cells = self.layout.cells(at, bytes);
        if is_whole(&cells, at, bytes) {
            return self.locked_whole(to, bytes, cells[0], &change);
        }
        let new = match change {
            RmwChange::Swap(value) => value,
            RmwChange::Cas { old, new } => ops::choose(ops::eq(var(to), old), new, var(to)),
            RmwChange::Update(new) => brought(&new, to),
        };
        if let [cell] = cells[..]
            && cell.partly
        {
            return self.locked_part(to, at, bytes, cell, &new);
        }
        // Bytes of a cell that it does not touch are in no conflict with others' steps.
        self.step(Instr::Lock);
        self.load_pieces(at, bytes, &cells);
        self.join_pieces(to, at, bytes, &cells);
        self.store_pieces(at, bytes, &cells, &new);
        self.step(Instr::Unlock);
    }

    fn forget(&mut self, at: u64, bytes: u64) {
        for cell in self.layout.between(at, at + bytes) {
            let unknown = Expr::Const(POISON);
            self.step(Instr::Store { addr: address(cell), value: unknown, bytes: Bytes::WHOLE });
        }
    }

    fn fence(&mut self) {
        self.step(Instr::Fence);
    }

    fn in_parts(&mut self) {
        self.parted.insert(self.line);
    }

    fn end(&mut self) {
        self.step_to(Instr::Nop, self.end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::elf::ops::add;

    #[test]
    fn what_the_model_has_an_instruction_for_is_found() {
        let old = || var(Var::Old);
        assert_eq!(combined(&add(old(), constant(1)), 4), Some((BinOp::Add, constant(1))));
        assert_eq!(combined(&cut(add(old(), constant(1)), 32), 4), None);
        assert_eq!(combined(&ops::sub(old(), constant(1)), 8), Some((BinOp::Add, constant(u64::MAX))));
    }
}

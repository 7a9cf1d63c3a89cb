//! Which instructions does a thread become? Location by location, in the order of the program.
//!
//! A branch is a comparison and a jump. Where no branch is open the thread goes round its own comparison for ever, which
//! nobody can tell from one that stands still. A locked instruction is one again; a block that reads a cell and writes it is
//! a locked instruction if the processor has it, or else tries compare-and-exchange until nobody has come between.

use super::super::x86::{Arch, EAX, Gpr};
use super::branch::{Open, exclusive, exhaustive};
use super::layout::{Layout, Registers};
use super::syntax::{self, Mem, Operand};
use super::{FORMAT, Writer};
use crate::front::Inexpressible;
use crate::model::interval::Interval;
use crate::model::live::{Live, Watched};
use crate::model::{BinOp, Edge, Expr, Instr, Loc, Program, Reg, RegExpr, RmwOp, Thread, ThreadId, Value};
use petgraph::visit::Dfs;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Addresses further away than this are compared with the size of memory first: times eight they might come round.
const FAR: Value = 1 << 40;

/// A place to jump to: a location of the thread by its number, or one made up, with numbers behind those.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Label(usize);

enum Line {
    Label(Label),
    Plain(String),
    Jump(&'static str, Label),
}

/// `lock`, a load, a store to the same cell, `unlock`.
pub struct Block<'a> {
    load: &'a Edge,
    pub dst: Reg,
    addr: &'a RegExpr,
    pub value: &'a RegExpr,
    to: Loc,
}

/// The part of a thread that can be reached, and what it needs.
pub struct Body<'a> {
    thread: &'a Thread,
    /// In the order of their numbers, without the end and what lies inside blocks.
    locations: Vec<Loc>,
    blocks: HashMap<Loc, Block<'a>>,
    pub used: BTreeSet<Reg>,
    /// Some instruction needs the accumulator.
    pub accumulates: bool,
}

impl<'a> Body<'a> {
    pub fn new(thread: &'a Thread) -> Body<'a> {
        let reachable = reachable(thread);
        let blocks: HashMap<Loc, Block<'a>> =
            reachable.iter().filter_map(|&l| Some((l, block(thread, &reachable, l)?))).collect();
        let inside: BTreeSet<Loc> = blocks.keys().flat_map(|&l| inside(thread, l)).collect();
        let mut used = BTreeSet::new();
        let mut accumulates = !blocks.is_empty();
        for edge in reachable.iter().flat_map(|&l| open_edges(thread, l)) {
            used.extend(edge.instr.target());
            edge.instr.exprs().iter().for_each(|e| e.for_each_atom(&mut |r| {
                used.insert(*r);
            }));
            accumulates |= matches!(edge.instr, Instr::Rmw { op: RmwOp::Cas { .. }, .. });
        }
        let stays = |l: &Loc| *l != thread.end() && !inside.contains(l);
        let locations = reachable.into_iter().filter(stays).collect();
        Body { thread, locations, blocks, used, accumulates }
    }
}

/// Branches that are never open are left out.
fn open_edges(thread: &Thread, loc: Loc) -> Vec<&Edge> {
    let closed = |e: &Edge| matches!(&e.instr, Instr::Assume(c) if c.constant() == Some(0));
    thread.edges_from(loc).into_iter().map(|(_, e)| e).filter(|e| !closed(e)).collect()
}

fn reachable(thread: &Thread) -> BTreeSet<Loc> {
    let mut seen = BTreeSet::new();
    let mut dfs = Dfs::new(thread.graph(), (thread.initial().0).into());
    while let Some(node) = dfs.next(thread.graph()) {
        seen.insert(Loc(node.index() as u32));
    }
    seen
}

/// The locations behind `lock`, the load and the store.
fn inside(thread: &Thread, loc: Loc) -> Vec<Loc> {
    let mut at = loc;
    let mut step = || {
        at = open_edges(thread, at).first().map_or(at, |e| e.to);
        at
    };
    vec![step(), step(), step()]
}

/// The block that begins at a location, if nothing else leads into it and it is one of those that can be written.
fn block<'a>(thread: &'a Thread, reachable: &BTreeSet<Loc>, loc: Loc) -> Option<Block<'a>> {
    let only = |l: Loc| match open_edges(thread, l)[..] {
        [edge] => Some(edge),
        _ => None,
    };
    let entered = |l: Loc| thread.edges().filter(|(_, e)| e.to == l && reachable.contains(&e.from)).count();
    let lock = only(loc).filter(|e| e.instr == Instr::Lock)?;
    let load = only(lock.to)?;
    let store = only(load.to)?;
    let unlock = only(store.to).filter(|e| e.instr == Instr::Unlock)?;
    let Instr::Load { dst, addr } = &load.instr else { return None };
    let Instr::Store { addr: there, value } = &store.instr else { return None };
    let fits = addr == there && !mentions(addr, *dst);
    let alone = [lock.to, load.to, store.to].into_iter().all(|l| entered(l) == 1 && l != thread.initial());
    (fits && alone).then(|| Block { load, dst: *dst, addr, value, to: unlock.to })
}

pub fn mentions(e: &RegExpr, reg: Reg) -> bool {
    let mut found = false;
    e.for_each_atom(&mut |r| found |= *r == reg);
    found
}

/// Writes one thread.
pub struct Assembly<'a> {
    pub writer: &'a Writer<'a>,
    pub layout: &'a Layout,
    pub registers: &'a Registers,
    pub t: ThreadId,
    live: &'a Live,
    lines: Vec<Line>,
    labels: usize,
    /// Free registers that are in use at the moment.
    busy: usize,
    edge: Option<&'a Edge>,
}

impl<'a> Assembly<'a> {
    pub fn new(
        writer: &'a Writer<'a>,
        layout: &'a Layout,
        registers: &'a Registers,
        t: ThreadId,
        live: &'a Live,
    ) -> Assembly<'a> {
        let labels = writer.program.thread(t).graph().node_count();
        Assembly { writer, layout, registers, t, live, lines: vec![], labels, busy: 0, edge: None }
    }

    /// The cells of the thread's column.
    pub fn cells(mut self, body: &Body<'a>) -> Result<Vec<String>, Inexpressible> {
        let end = body.thread.end();
        let first = body.locations.first().copied().unwrap_or(end);
        self.go(body.thread.initial(), first);
        for (i, &loc) in body.locations.iter().enumerate() {
            let next = body.locations.get(i + 1).copied().unwrap_or(end);
            self.location(body, loc, next)?;
        }
        self.lines.push(Line::Label(at(end)));
        Ok(text(self.lines, self.writer.arch))
    }

    fn location(&mut self, body: &Body<'a>, loc: Loc, next: Loc) -> Result<(), Inexpressible> {
        self.lines.push(Line::Label(at(loc)));
        let edges = open_edges(body.thread, loc);
        self.edge = edges.first().copied();
        self.busy = 0;
        if let Some(block) = body.blocks.get(&loc) {
            self.block(block)?;
            self.go(block.to, next);
            return Ok(());
        }
        match edges[..] {
            [] => self.jump("jmp", at(loc)),
            [edge] if !matches!(edge.instr, Instr::Assume(_)) => {
                self.instr(&edge.instr)?;
                self.go(edge.to, next);
            }
            _ => self.branch(&edges, loc, next)?,
        }
        Ok(())
    }

    fn branch(&mut self, edges: &[&'a Edge], loc: Loc, next: Loc) -> Result<(), Inexpressible> {
        let condition = |e: &&'a Edge| match &e.instr {
            Instr::Assume(c) => Some((Open::when(c), e.to)),
            _ => None,
        };
        let choice = "a test has nothing that chooses between steps";
        let branches: Option<Vec<(Open, Loc)>> = edges.iter().map(condition).collect();
        let Some(mut branches) = branches else { return Err(self.refuse(choice)) };
        for (i, (a, _)) in branches.iter().enumerate() {
            if branches[..i].iter().any(|(b, _)| !exclusive(a, b)) {
                return Err(self.refuse(&format!("{choice}, and more than one may be possible here")));
            }
        }
        if exhaustive(&branches) {
            // What is left when all others are closed needs no test.
            let last = branches.iter().position(|(_, to)| *to == next).unwrap_or(branches.len() - 1);
            let (_, to) = branches.remove(last);
            self.tests(&branches)?;
            self.go(to, next);
        } else if let [(open, to)] = branches[..] {
            self.jump_if(open.expr, !open.sense, at(loc))?;
            self.go(to, next);
        } else {
            self.tests(&branches)?;
            self.jump("jmp", at(loc));
        }
        Ok(())
    }

    fn tests(&mut self, branches: &[(Open<'a>, Loc)]) -> Result<(), Inexpressible> {
        branches.iter().try_for_each(|(open, to)| self.jump_if(open.expr, open.sense, at(*to)))
    }

    fn go(&mut self, to: Loc, next: Loc) {
        if to != next {
            self.jump("jmp", at(to));
        }
    }

    pub fn jump(&mut self, mnemonic: &'static str, to: Label) {
        self.lines.push(Line::Jump(mnemonic, to));
    }

    pub fn fresh(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels - 1)
    }

    pub fn label(&mut self, label: Label) {
        self.lines.push(Line::Label(label));
    }

    fn instr(&mut self, instr: &Instr) -> Result<(), Inexpressible> {
        match instr {
            Instr::Load { dst, addr } => {
                let (mem, bits) = self.access(addr)?;
                self.load(self.registers.get(*dst), &mem, bits);
            }
            Instr::Store { addr, value } => {
                let (mem, bits) = self.access(addr)?;
                let value = self.operand(value)?;
                self.op("mov", bits, &[Operand::Mem(mem), value]);
            }
            Instr::Fence => self.plain(syntax::bare(self.writer.arch, "mfence")),
            Instr::Assign { dst, value } => self.into(self.registers.get(*dst), value)?,
            Instr::Any { dst, lo, hi } if lo == hi => {
                self.into(self.registers.get(*dst), &Expr::Const(*lo))?;
            }
            Instr::Rmw { dst, addr, op } => self.rmw(*dst, addr, op)?,
            Instr::Nop => {}
            Instr::Any { .. } => return Err(self.refuse("a test has nothing that chooses a value")),
            Instr::Assert(_) => return Err(self.refuse("a test asks about final states alone")),
            Instr::Lock | Instr::Unlock => {
                let why = "a test has no blocks, only locked instructions; a block that loads a cell, stores to it \
                           and does nothing else can be one";
                return Err(self.refuse(why));
            }
            Instr::Assume(_) => unreachable!("branches are written together"),
        }
        Ok(())
    }

    fn load(&mut self, to: Gpr, mem: &Mem, bits: u32) {
        match bits {
            8 | 16 => self.plain(syntax::extending_load(self.writer.arch, to, mem, bits)),
            _ => self.op("mov", bits, &[Operand::Reg(to), Operand::Mem(mem.clone())]),
        }
    }

    fn rmw(&mut self, dst: Reg, addr: &RegExpr, op: &RmwOp) -> Result<(), Inexpressible> {
        let dst = self.registers.get(dst);
        let (mem, bits) = self.access(addr)?;
        let (value, mnemonic) = match op {
            RmwOp::Swap(value) => (value, "xchg"),
            RmwOp::Add(value) => (value, "lock xadd"),
            RmwOp::Cas { old, new } => {
                let mem = self.apart(mem, EAX)?;
                let new = match self.reg(new)? {
                    EAX => self.copied(EAX)?,
                    new => new,
                };
                let kept = self.keep_accumulator(dst)?;
                self.into(EAX, old)?;
                self.op("lock cmpxchg", bits, &[Operand::Mem(mem), Operand::Reg(new)]);
                self.mov(dst, EAX);
                self.restore_accumulator(kept);
                return Ok(());
            }
        };
        let mem = self.apart(mem, dst)?;
        self.into(dst, value)?;
        self.op(mnemonic, bits, &[Operand::Mem(mem), Operand::Reg(dst)]);
        Ok(())
    }

    fn block(&mut self, block: &Block<'a>) -> Result<(), Inexpressible> {
        self.edge = Some(block.load);
        let (mem, bits) = self.access(block.addr)?;
        if !self.live.is_live(self.t, block.to, block.dst)
            && let Some((mnemonic, value)) = self.locked_instruction(block, bits)
        {
            let value = self.operand(value)?;
            self.op(mnemonic, bits, &[Operand::Mem(mem), value]);
            return Ok(());
        }
        let dst = self.registers.get(block.dst);
        let mem = self.apart(mem, EAX)?;
        let mem = self.apart(mem, dst)?;
        let kept = self.keep_accumulator(dst)?;
        let (again, new) = (self.fresh(), self.scratch()?);
        self.label(again);
        self.load(dst, &mem, bits);
        self.into(new, block.value)?;
        self.mov(EAX, dst);
        self.op("lock cmpxchg", bits, &[Operand::Mem(mem), Operand::Reg(new)]);
        self.jump("jne", again);
        self.restore_accumulator(kept);
        Ok(())
    }

    /// The accumulator's value, put elsewhere if it is one of the program's and `dst` is another.
    fn keep_accumulator(&mut self, dst: Gpr) -> Result<Option<Gpr>, Inexpressible> {
        let holds = dst != EAX && self.registers.holds(EAX);
        holds.then(|| self.copied(EAX)).transpose()
    }

    fn restore_accumulator(&mut self, kept: Option<Gpr>) {
        if let Some(kept) = kept {
            self.mov(EAX, kept);
        }
    }

    /// The place without a register that is about to change.
    fn apart(&mut self, mem: Mem, gpr: Gpr) -> Result<Mem, Inexpressible> {
        if !mem.uses(gpr) {
            return Ok(mem);
        }
        let copy = self.copied(gpr)?;
        Ok(mem.with(gpr, copy))
    }

    fn copied(&mut self, gpr: Gpr) -> Result<Gpr, Inexpressible> {
        let copy = self.scratch()?;
        self.mov(copy, gpr);
        Ok(copy)
    }

    /// The place that an address means, and how wide it is.
    fn access(&mut self, addr: &RegExpr) -> Result<(Mem, u32), Inexpressible> {
        let program = self.writer.program;
        if let Some(address) = addr.constant() {
            return match program.cell(address) {
                Some(cell) => {
                    let (group, element) = self.layout.place(cell.index());
                    let offset = element as Value * Value::from(group.width.bits / 8);
                    Ok((Mem { name: Some(group.name.clone()), offset, ..Mem::default() }, group.width.bits))
                }
                None => self.nowhere(),
            };
        }
        for zone in self.layout.zones() {
            if let Some(address) = zone.address_in(addr) {
                let bits = zone.bytes as u32 * 8;
                return Ok((self.at_address(address)?, bits));
            }
        }
        let range = match self.edge {
            Some(edge) if edge.instr.address().is_some() => self.writer.intervals.address(self.t, edge),
            _ => Interval::FULL,
        };
        let Some(last) = program.cells().checked_sub(1) else { return self.nowhere() };
        let (group, _) = self.layout.place(usize::try_from(range.lo).unwrap_or(0).min(last));
        let (name, bits) = (Some(group.name.clone()), group.width.bits);
        let bytes = Value::from(bits / 8);
        let is_far = range.lo < -FAR || range.hi > FAR;
        let (rest, known) = if is_far { (addr, 0) } else { summands(addr) };
        let offset = known.wrapping_sub(group.first as Value).wrapping_mul(bytes);
        let index = self.reg(rest)?;
        if is_far {
            self.within_memory(index)?;
        }
        Ok((Mem { name, offset, base: None, index: Some((index, bytes)) }, bits))
    }

    /// An address of a test that was read, in bytes.
    fn at_address(&mut self, address: &RegExpr) -> Result<Mem, Inexpressible> {
        let (rest, known) = summands(self.uncut(address));
        let (name, offset) = match self.writer.location_at(self.layout, known) {
            Some((name, offset)) => (Some(name), offset),
            None => (None, known),
        };
        Ok(Mem { name, offset, base: Some(self.reg(rest)?), index: None })
    }

    /// Goes wrong here unless the register has the number of a cell.
    fn within_memory(&mut self, index: Gpr) -> Result<(), Inexpressible> {
        let fine = self.fresh();
        let cells = Operand::Const(self.writer.program.cells() as Value);
        self.op("cmp", self.bits(), &[Operand::Reg(index), cells]);
        self.jump("jb", fine);
        let (mem, bits) = self.nowhere()?;
        let Some(base) = mem.base else { unreachable!("nowhere is behind a register") };
        self.op("mov", bits, &[Operand::Reg(base), Operand::Mem(mem)]);
        self.label(fine);
        Ok(())
    }

    /// A place where nothing lies.
    fn nowhere(&mut self) -> Result<(Mem, u32), Inexpressible> {
        let null = self.scratch()?;
        self.into(null, &Expr::Const(0))?;
        Ok((Mem { base: Some(null), ..Mem::default() }, self.bits()))
    }

    pub fn bits(&self) -> u32 {
        self.writer.arch.bits()
    }

    pub fn plain(&mut self, line: String) {
        self.lines.push(Line::Plain(line));
    }

    pub fn op(&mut self, mnemonic: &str, bits: u32, operands: &[Operand]) {
        let line = syntax::instruction(self.writer.arch, mnemonic, bits, operands);
        self.plain(line);
    }

    pub fn mov(&mut self, to: Gpr, from: Gpr) {
        if to != from {
            self.op("mov", self.bits(), &[Operand::Reg(to), Operand::Reg(from)]);
        }
    }

    /// A register that nobody uses.
    pub fn scratch(&mut self) -> Result<Gpr, Inexpressible> {
        let gpr = self.registers.free.get(self.busy).copied();
        self.busy += 1;
        gpr.ok_or_else(|| self.refuse("there are not enough registers"))
    }

    /// How many registers are taken; with `release` they are free again.
    pub fn taken(&self) -> usize {
        self.busy
    }

    pub fn release(&mut self, taken: usize) {
        self.busy = taken;
    }

    pub fn refuse(&self, why: &str) -> Inexpressible {
        let thread = self.writer.program.thread(self.t);
        let (line, construct) = match self.edge {
            Some(edge) if edge.text.is_empty() => {
                (edge.line, thread.show_instr(self.writer.program, &edge.instr))
            }
            Some(edge) => (edge.line, edge.text.clone()),
            None => (0, "nothing".to_string()),
        };
        Inexpressible {
            format: FORMAT,
            place: format!("thread `{}`, line {line}", thread.name()),
            construct: format!("`{construct}`"),
            why: why.to_string(),
        }
    }
}

/// A sum as something and a constant.
fn summands(e: &RegExpr) -> (&RegExpr, Value) {
    match e {
        Expr::Binary(BinOp::Add, a, b) => match (&**a, &**b) {
            (rest, Expr::Const(known)) | (Expr::Const(known), rest) => (rest, *known),
            _ => (e, 0),
        },
        _ => (e, 0),
    }
}

fn at(loc: Loc) -> Label {
    Label(loc.index())
}

/// The lines with their labels before them; labels that nobody jumps to are left out.
fn text(lines: Vec<Line>, arch: Arch) -> Vec<String> {
    let targets: BTreeSet<Label> = lines
        .iter()
        .filter_map(|line| match line {
            Line::Jump(_, to) => Some(*to),
            _ => None,
        })
        .collect();
    let mut names: BTreeMap<Label, String> = BTreeMap::new();
    for line in &lines {
        if let Line::Label(label) = line
            && targets.contains(label)
        {
            names.insert(*label, format!("L{}", names.len()));
        }
    }
    let (mut cells, mut pending) = (Vec::new(), String::new());
    for line in lines {
        let instruction = match line {
            Line::Label(label) => {
                if let Some(name) = names.get(&label) {
                    pending += &format!("{name}: ");
                }
                continue;
            }
            Line::Plain(text) => text,
            Line::Jump(mnemonic, to) => format!("{} {}", syntax::bare(arch, mnemonic), names[&to]),
        };
        cells.push(std::mem::take(&mut pending) + &instruction);
    }
    cells.extend(Some(pending.trim_end().to_string()).filter(|label| !label.is_empty()));
    cells
}

/// Registers of the program that its final states are asked for.
pub fn live_at_end(program: &Program, at_end: Vec<Vec<Reg>>) -> Live {
    let mut watched = Watched::nothing(program);
    watched.at_end = at_end;
    Live::of(program, &watched, |_, _| false)
}

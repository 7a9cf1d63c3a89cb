//! Which instructions does a thread become? Location by location, in the order of the program.
//!
//! A branch is a comparison and a jump. Where no branch is open the thread goes round its own comparison for
//! ever, which nobody can tell from one that stands still. What instructions do to memory is in `access`.
//!
//! Other tools are to read the test, so there are only instructions in it that herd has. One that it lacks is
//! said by others, or the program is refused. A program that was read from a test goes back with all the
//! instructions that it had.

use super::body::{Body, open_edges};
use super::branch::{Open, exclusive, exhaustive};
use super::layout::{LitmusLayout, LitmusRegisters};
use super::syntax::{self, Operand};
use super::{FORMAT, LitmusWriter};
use crate::analysis::liveness::Live;
use crate::front::x86::{Arch, Gpr};
use crate::front::{Inexpressible, Unwritten};
use crate::model::{Edge, Expr, FenceKinds, Instr, Loc, ThreadId};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// What it costs to write a location, in steps of an analysis.
const LOCATION: usize = 50;

/// A place to jump to: a location of the thread by its number, or one made up, with numbers behind those.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Label(usize);

enum Line {
    Label(Label),
    Plain(String),
    Jump(&'static str, Label),
}

/// A thread as it is written.
pub(crate) struct Column {
    pub cells: Vec<String>,
    /// Registers that hold the address of an array from the start, and its name.
    pub bases: Vec<(Gpr, String)>,
}

/// Writes one thread.
pub(crate) struct Assembly<'a> {
    pub writer: &'a LitmusWriter<'a>,
    pub layout: &'a LitmusLayout,
    pub registers: &'a LitmusRegisters,
    pub t: ThreadId,
    pub live: &'a Live,
    lines: Vec<Line>,
    labels: usize,
    /// Registers that the program does not use: how many of them are in use at the moment, and were at most.
    free: Vec<Gpr>,
    busy: usize,
    most: usize,
    bases: Vec<(Gpr, String)>,
    /// What is being written.
    pub edge: Option<&'a Edge>,
    /// The first instruction that nobody would read.
    foreign: Option<Inexpressible>,
}

impl<'a> Assembly<'a> {
    pub(crate) fn new(
        writer: &'a LitmusWriter<'a>,
        layout: &'a LitmusLayout,
        registers: &'a LitmusRegisters,
        t: ThreadId,
        live: &'a Live,
    ) -> Assembly<'a> {
        let labels = writer.program.thread(t).graph().node_count();
        Assembly {
            writer,
            layout,
            registers,
            t,
            live,
            lines: vec![],
            labels,
            free: registers.free.clone(),
            busy: 0,
            most: 0,
            bases: vec![],
            edge: None,
            foreign: None,
        }
    }

    /// The thread's column; its labels are new among the names.
    pub(crate) fn column(
        mut self,
        body: &Body<'a>,
        names: &mut HashSet<String>,
    ) -> Result<Column, Unwritten> {
        let end = body.thread.end();
        let first = body.locations.first().copied().unwrap_or(end);
        self.go(body.thread.initial(), first);
        for (i, &loc) in body.locations.iter().enumerate() {
            self.writer.limits.spend(LOCATION)?;
            let next = body.locations.get(i + 1).copied().unwrap_or(end);
            self.location(body, loc, next)?;
        }
        self.lines.push(Line::Label(at(end)));
        match self.foreign {
            Some(foreign) => Err(foreign.into()),
            None => Ok(Column { cells: text(self.lines, self.writer.arch, names), bases: self.bases }),
        }
    }

    /// Will those who read the test know this instruction?
    pub(crate) fn has(&self, mnemonic: &str) -> bool {
        self.writer.test.is_some() || syntax::herd_has(self.writer.arch, mnemonic)
    }

    fn must_have(&mut self, mnemonic: &str) {
        if !self.has(mnemonic) && self.foreign.is_none() {
            let arch = if self.bits() == 32 { "X86" } else { "X86_64" };
            self.foreign =
                Some(self.refuse(&format!("it needs `{mnemonic}`, which herd does not have for {arch}")));
        }
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

    pub(crate) fn jump(&mut self, mnemonic: &'static str, to: Label) {
        self.must_have(mnemonic);
        self.lines.push(Line::Jump(mnemonic, to));
    }

    pub(crate) fn fresh(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels - 1)
    }

    pub(crate) fn label(&mut self, label: Label) {
        self.lines.push(Line::Label(label));
    }

    fn instr(&mut self, instr: &Instr) -> Result<(), Inexpressible> {
        match instr {
            Instr::Load { bytes, .. } | Instr::Store { bytes, .. } if !bytes.is_whole() => {
                return Err(self.refuse("a test is written with accesses of one size for each variable"));
            }
            Instr::Load { dst, addr, .. } => {
                let (mem, bits) = self.access(addr)?;
                self.load(self.registers.get(*dst), &mem, bits);
            }
            Instr::Store { addr, value, .. } => {
                let (mem, bits) = self.access(addr)?;
                let value = self.operand(value)?;
                self.op("mov", bits, &[Operand::Mem(mem), value]);
            }
            Instr::Fence => self.plain(syntax::bare(self.writer.arch, "mfence")),
            Instr::Partial(FenceKinds::LFENCE) => self.plain(syntax::bare(self.writer.arch, "lfence")),
            Instr::Partial(FenceKinds::SFENCE) => self.plain(syntax::bare(self.writer.arch, "sfence")),
            Instr::Partial(_) => {
                return Err(self.refuse("of the fences that order some accesses only, x86 has LFENCE (`ll, ls`) and SFENCE (`ss`)"));
            }
            Instr::Assign { dst, value } => self.into(self.registers.get(*dst), value)?,
            Instr::Any { dst, lo, hi } if lo == hi => {
                self.into(self.registers.get(*dst), &Expr::Const(*lo))?;
            }
            Instr::Rmw { dst, addr, op } => self.rmw(*dst, addr, op)?,
            Instr::Nop => {}
            Instr::Membarrier => {
                return Err(self.refuse("no instruction waits for the buffers of other processors"));
            }
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

    pub(crate) fn bits(&self) -> u32 {
        self.writer.arch.bits()
    }

    pub(crate) fn plain(&mut self, line: String) {
        self.lines.push(Line::Plain(line));
    }

    pub(crate) fn op(&mut self, mnemonic: &str, bits: u32, operands: &[Operand]) {
        self.must_have(mnemonic);
        let readable = |o: &Operand| self.writer.test.is_some() || syntax::herd_reads(self.writer.arch, o);
        assert!(operands.iter().all(readable), "herd does not read {mnemonic} {operands:?}");
        let line = syntax::instruction(self.writer.arch, mnemonic, bits, operands);
        self.plain(line);
    }

    pub(crate) fn mov(&mut self, to: Gpr, from: Gpr) {
        if to != from {
            self.op("mov", self.bits(), &[Operand::Reg(to), Operand::Reg(from)]);
        }
    }

    /// A register that nobody uses.
    pub(crate) fn scratch(&mut self) -> Result<Gpr, Inexpressible> {
        let gpr = self.free.get(self.busy).copied();
        self.busy += 1;
        self.most = self.most.max(self.busy);
        gpr.ok_or_else(|| self.refuse(TOO_FEW))
    }

    /// The register that has the address of an array. It is one that nothing else has been put in, nor will
    /// be.
    pub(crate) fn base(&mut self, array: &str) -> Result<Gpr, Inexpressible> {
        if let Some((gpr, _)) = self.bases.iter().find(|(_, name)| name == array) {
            return Ok(*gpr);
        }
        if self.most >= self.free.len() {
            return Err(self.refuse(TOO_FEW));
        }
        let gpr = self.free.remove(self.most);
        self.bases.push((gpr, array.to_string()));
        Ok(gpr)
    }

    /// How many registers are taken; with `release` they are free again.
    pub(crate) fn taken(&self) -> usize {
        self.busy
    }

    pub(crate) fn release(&mut self, taken: usize) {
        self.busy = taken;
    }

    pub(crate) fn refuse(&self, why: &str) -> Inexpressible {
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

const TOO_FEW: &str = "there are not enough registers";

fn at(loc: Loc) -> Label {
    Label(loc.index())
}

/// The lines with their labels before them; labels that nobody jumps to are left out. herd wants a label only
/// once in a test, whichever thread it is in.
fn text(lines: Vec<Line>, arch: Arch, taken: &mut HashSet<String>) -> Vec<String> {
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
            let name = (0..).map(|k| format!("L{k}")).find(|name| taken.insert(name.clone()));
            names.insert(*label, name.expect("numbers do not end"));
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

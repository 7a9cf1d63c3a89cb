//! Which graph do the statements of a process draw? Every place where something happens is a location, and a
//! label is the location before its statement.
//!
//! A `goto` is no step: whatever comes before it leads to the label at once. Where a loop or a label begins a
//! branch of an `either`, a `nop` leads to it, so that being there means having chosen it and going round
//! does not mean choosing again. What single statements do is in `steps`. Invariant: locations are numbered
//! as they are met, and `end` comes first, which nothing leaves.

mod steps;

use super::ast::{File, Name, Stmt, StmtKind};
use super::names::RmmNames;
use crate::front::diagnostics::{INSTRUCTION, Problem, Problems, Reported, Span, shorten};
use crate::model::program::ThreadParts;
use crate::model::{Edge, Expr, Instr, Loc, Location, MAX_REGISTERS, Reg, RegExpr, UnOp};
use std::collections::HashMap;

/// Of all processes together.
const MAX_EDGES: usize = 1_000_000;

/// A process as a graph, and where its labels are.
pub(crate) struct Process<'s> {
    pub parts: ThreadParts,
    pub labels: HashMap<&'s str, Loc>,
}

pub(crate) fn threads<'s>(
    file: &File<'s>,
    names: &RmmNames<'s, '_>,
    problems: &mut Problems<'s>,
) -> Result<Vec<Process<'s>>, Reported> {
    for process in &file.processes {
        let mut seen = HashMap::new();
        for_each_label(&process.body, &mut |label| {
            if let Some(first) = seen.insert(label.text, label.span) {
                let line = problems.line(first);
                let problem =
                    Problem::error(format!("label `{}` stands twice in its process", shorten(label.text)));
                problems.report(problem.at(label.span).label(format!("first on line {line}")));
            }
        });
    }
    let (mut all, mut edges) = (Vec::new(), 0);
    for number in 0..names.processes.len() {
        let process = Builder::new(number, names, MAX_EDGES - edges, problems)?.process()?;
        edges += process.parts.edges.len();
        all.push(process);
    }
    Ok(all)
}

fn for_each_label<'s>(list: &[Stmt<'s>], visit: &mut impl FnMut(Name<'s>)) {
    for stmt in list {
        stmt.label.into_iter().for_each(&mut *visit);
        match &stmt.kind {
            StmtKind::Block(inner) => for_each_label(inner, visit),
            StmtKind::Either(lists) | StmtKind::Locked(lists) => {
                lists.iter().for_each(|l| for_each_label(l, visit));
            }
            StmtKind::While(_, body) => for_each_label(std::slice::from_ref(body), visit),
            StmtKind::If(_, then, otherwise) => {
                for_each_label(std::slice::from_ref(then), visit);
                otherwise.iter().for_each(|s| for_each_label(std::slice::from_ref(s), visit));
            }
            _ => {}
        }
    }
}

struct Builder<'s, 'f, 'p> {
    number: usize,
    names: &'f RmmNames<'s, 'f>,
    registers: HashMap<&'s str, Reg>,
    /// Takes what is read only to be compared.
    scratch: Reg,
    labels: HashMap<&'s str, Loc>,
    locations: Vec<Location>,
    edges: Vec<Edge>,
    /// Blocks that read several locations and write none: where each begins, and its place in the text.
    reading_blocks: Vec<(Loc, Span)>,
    most_edges: usize,
    problems: &'p mut Problems<'s>,
}

type Built<T> = Result<T, Reported>;

impl<'s, 'f, 'p> Builder<'s, 'f, 'p> {
    fn new(
        number: usize,
        names: &'f RmmNames<'s, 'f>,
        most_edges: usize,
        problems: &'p mut Problems<'s>,
    ) -> Built<Builder<'s, 'f, 'p>> {
        let process = names.processes[number].process;
        let declared = process.registers.len();
        if declared >= MAX_REGISTERS {
            let problem = Problem::error(format!("a process has fewer than {MAX_REGISTERS} registers"));
            return Err(problems.report(problem.at(process.span)));
        }
        let numbered = process.registers.iter().enumerate();
        let mut builder = Builder {
            number,
            names,
            registers: numbered.map(|(i, r)| (r.name.text, Reg(i as u16))).collect(),
            scratch: Reg(declared as u16),
            labels: HashMap::new(),
            locations: vec![Location::default()],
            edges: Vec::new(),
            reading_blocks: Vec::new(),
            most_edges,
            problems,
        };
        for_each_label(&process.body, &mut |label| {
            let loc = Loc(builder.locations.len() as u32);
            builder.locations.push(Location::labelled(vec![label.text.to_string()]));
            builder.labels.insert(label.text, loc);
        });
        Ok(builder)
    }

    fn process(mut self) -> Built<Process<'s>> {
        let process = self.names.processes[self.number].process;
        let end = Loc(0);
        let initial = match process.body.first() {
            Some(Stmt { label: None, kind: StmtKind::Goto(_), .. }) | None => self.fresh(),
            Some(first) => self.entry(first),
        };
        self.list(&process.body, initial, end)?;
        self.check_reading_blocks(initial);
        let mut registers: Vec<String> = process.registers.iter().map(|r| r.name.text.to_string()).collect();
        registers.push("$".to_string());
        let parts = ThreadParts {
            name: format!("P{}", self.number),
            registers,
            locations: self.locations,
            edges: self.edges,
            initial,
            end,
        };
        Ok(Process { parts, labels: self.labels })
    }

    /// Where a statement begins, if one comes to it from elsewhere.
    fn entry(&mut self, stmt: &Stmt<'s>) -> Loc {
        let label = match (&stmt.label, &stmt.kind) {
            (Some(label), _) => Some(label),
            (None, StmtKind::Goto(label)) => Some(label),
            (None, StmtKind::Block(list)) => match list.first() {
                Some(first) => return self.entry(first),
                None => None,
            },
            _ => None,
        };
        match label.and_then(|l| self.labels.get(l.text)) {
            Some(loc) => *loc,
            None => self.fresh(),
        }
    }

    fn list(&mut self, list: &[Stmt<'s>], from: Loc, to: Loc) -> Built<()> {
        let mut at = from;
        for (i, stmt) in list.iter().enumerate() {
            let next = match list.get(i + 1) {
                Some(next) => self.entry(next),
                None => to,
            };
            self.statement(stmt, at, next)?;
            at = next;
        }
        Ok(())
    }

    /// An error only if there is no sense in going on.
    fn statement(&mut self, stmt: &Stmt<'s>, from: Loc, to: Loc) -> Built<()> {
        let from = match &stmt.label {
            Some(label) => {
                let loc = self.labels[label.text];
                self.jump(stmt, from, loc)?;
                loc
            }
            None => from,
        };
        match &stmt.kind {
            StmtKind::Goto(label) => match self.labels.get(label.text).copied() {
                Some(loc) => self.jump(stmt, from, loc),
                None => {
                    self.unknown_label(label);
                    Ok(())
                }
            },
            StmtKind::Block(list) => self.list(list, from, to),
            StmtKind::Either(lists) => lists.iter().try_for_each(|list| self.branch(stmt, list, from, to)),
            StmtKind::If(condition, then, otherwise) => {
                let (yes, no) = self.both_ways(condition);
                let begin = self.entry(then);
                self.edge(stmt, from, begin, Instr::Assume(yes))?;
                self.statement(then, begin, to)?;
                let begin = match otherwise {
                    Some(otherwise) => self.entry(otherwise),
                    None => to,
                };
                self.edge(stmt, from, begin, Instr::Assume(no))?;
                otherwise.iter().try_for_each(|s| self.statement(s, begin, to))
            }
            StmtKind::While(condition, body) => {
                let (yes, no) = self.both_ways(condition);
                let begin = self.entry(body);
                self.edge(stmt, from, begin, Instr::Assume(yes))?;
                self.edge(stmt, from, to, Instr::Assume(no))?;
                self.statement(body, begin, from)
            }
            _ => self.simple(stmt, from, to),
        }
    }

    fn branch(&mut self, stmt: &Stmt<'s>, list: &[Stmt<'s>], from: Loc, to: Loc) -> Built<()> {
        let Some(first) = list.first() else { return self.jump(stmt, from, to) };
        if !begins_apart(first) {
            return self.list(list, from, to);
        }
        let begin = self.entry(first);
        self.jump(stmt, from, begin)?;
        self.list(list, begin, to)
    }

    fn both_ways(&mut self, condition: &super::ast::Term<'s>) -> (RegExpr, RegExpr) {
        // What is wrong with the condition has been reported, and the graph is never used.
        let yes = self.expr(condition).unwrap_or(Expr::Const(0));
        let no = Expr::unary(UnOp::Not, yes.clone());
        (yes, no)
    }

    fn fresh(&mut self) -> Loc {
        self.locations.push(Location::default());
        Loc(self.locations.len() as u32 - 1)
    }

    /// In the middle of a statement.
    fn fresh_within(&mut self) -> Loc {
        self.locations.push(Location { within: true, ..Location::default() });
        Loc(self.locations.len() as u32 - 1)
    }

    /// A step that does nothing, unless one is there already.
    fn jump(&mut self, stmt: &Stmt<'s>, from: Loc, to: Loc) -> Built<()> {
        if from == to { Ok(()) } else { self.edge(stmt, from, to, Instr::Nop) }
    }

    fn edge(&mut self, stmt: &Stmt<'s>, from: Loc, to: Loc, instr: Instr) -> Built<()> {
        if self.edges.len() == self.most_edges {
            let problem = Problem::error(format!("the program unfolds to more than {MAX_EDGES} steps"));
            return Err(self.problems.report(problem.at(stmt.span)));
        }
        self.problems.spend(INSTRUCTION)?;
        let line = self.problems.line(stmt.span);
        let text = match &stmt.kind {
            StmtKind::Locked(_) => "locked".to_string(),
            StmtKind::Either(_) => "either".to_string(),
            _ => stmt.text.clone(),
        };
        self.edges.push(Edge { from, to, instr, line, text, origin: None });
        Ok(())
    }

    fn unknown_label(&mut self, label: &Name<'s>) {
        if !self.names.is_doubtful(label.text) {
            let meant = self.problems.nearest(label.text, self.labels.keys().copied());
            let problem = Problem::error(format!("unknown label `{}`", shorten(label.text))).at(label.span);
            self.problems.report(problem.label("no such label in this process").suggest(meant));
        }
    }

    /// A block that reads several locations at once is a `lock` block, and that has an effect on the buffer.
    /// Where the buffer is empty anyway, it has none.
    fn check_reading_blocks(&mut self, initial: Loc) {
        if self.reading_blocks.is_empty() {
            return;
        }
        let pending = self.may_be_pending(initial);
        for (loc, span) in std::mem::take(&mut self.reading_blocks) {
            if pending[loc.0 as usize] == Some(true) {
                let problem =
                    Problem::error("this block reads several locations at once, and writes none").at(span);
                let label = "a store of the process may still be on its way here";
                let help = "such a block is no fence, and that cannot be expressed; put a `fence` before it if it may be one";
                self.problems.report(problem.label(label).help(help));
            }
        }
    }

    /// May there be a store in the buffer? `None` where no path leads.
    fn may_be_pending(&self, initial: Loc) -> Vec<Option<bool>> {
        let mut after: Vec<Vec<usize>> = vec![Vec::new(); self.locations.len()];
        self.edges.iter().enumerate().for_each(|(i, e)| after[e.from.index()].push(i));
        let mut pending = vec![None; self.locations.len()];
        let mut todo = vec![(initial, false)];
        while let Some((loc, now)) = todo.pop() {
            if pending[loc.index()].is_some_and(|before| before || !now) {
                continue;
            }
            pending[loc.index()] = Some(now);
            for &i in &after[loc.index()] {
                let edge = &self.edges[i];
                let then = match edge.instr {
                    Instr::Store { .. } => true,
                    ref instr if instr.drains_buffer() => false,
                    _ => now,
                };
                todo.push((edge.to, then));
            }
        }
        pending
    }
}

/// Does the statement need a location of its own, one that no other branch begins at?
fn begins_apart(stmt: &Stmt) -> bool {
    match &stmt.kind {
        _ if stmt.label.is_some() => true,
        StmtKind::While(..) | StmtKind::Goto(_) => true,
        StmtKind::Block(list) => list.first().is_some_and(begins_apart),
        _ => false,
    }
}

//! How do the initial values come into the program? A model starts with registers at 0 and one value in each
//! cell.
//!
//! A register that matters at the beginning of its process is set before the first statement, to its value or
//! to any of its domain. Memory that may hold any value is filled by a process of its own, which then raises
//! a flag; all others wait for it before they begin. That adds no behaviour: whoever finds the flag down
//! stops before it has done anything, and all other threads see memory filled. Nor does it add a way to be not
//! robust: the filling is locked, and the load of the flag comes before all stores of its process, so that no
//! store can be delayed past it. Registers that are written before they are read need no value, so those may
//! be any integer.

use super::ast::Decl;
use super::names::{RmmCell, RmmNames};
use crate::analysis::liveness::{Live, Watched};
use crate::front::diagnostics::{Problem, Problems, Reported};
use crate::model::program::{ProgramParts, ThreadParts};
use crate::model::{Bytes, Edge, Expr, Instr, Loc, Location, Program, Reg, RmwOp, ThreadId, Value, Variable};
use std::collections::HashSet;

/// Values that a register or a cell may begin with.
const MAX_VALUES: i128 = 1 << 16;

pub(crate) fn with_initial_values(
    program: Program,
    names: &RmmNames,
    problems: &mut Problems,
) -> Result<ProgramParts, Reported> {
    let watched = Watched::nothing(&program);
    let live = problems.within(|limits| Live::of(&program, &watched, |_, _| false, limits))?;
    let mut parts = program.into_parts();
    let any: Vec<(usize, &RmmCell)> =
        names.cells.iter().enumerate().filter(|(_, c)| is_open(&c.decl)).collect();
    any.iter().for_each(|(_, cell)| check_size(&cell.decl, problems));
    let flag = (!any.is_empty()).then_some(parts.memory.len() as Value);
    for (i, instance) in names.processes.iter().enumerate() {
        let (t, thread) = (ThreadId(i as u16), &mut parts.threads[i]);
        let mut prologue = Prologue::default();
        if let Some(flag) = flag {
            prologue.wait(flag, thread);
        }
        for (r, decl) in instance.process.registers.iter().enumerate() {
            let r = Reg(r as u16);
            if live.is_live(t, thread.initial, r) {
                prologue.register(r, decl, problems);
            }
        }
        prologue.put_before(thread);
    }
    if let Some(flag) = flag {
        parts
            .memory
            .push(Variable { name: free("filled", names.cells.iter().map(|c| &c.name[..])), init: vec![0] });
        parts.threads.push(filling(&any, flag, problems));
    }
    if problems.has_errors() { Err(Reported) } else { Ok(parts) }
}

/// Are there several values it may begin with?
fn is_open(decl: &Decl) -> bool {
    decl.init.is_none() && decl.domain.lo < decl.domain.hi
}

fn check_size(decl: &Decl, problems: &mut Problems) {
    let size = i128::from(decl.domain.hi) - i128::from(decl.domain.lo) + 1;
    if size > MAX_VALUES {
        let problem = Problem::error(format!("`{}` may begin with too many values", decl.name.text));
        let problem =
            problem.at(decl.name.span).label("its initial value is used, and `*` is any of its domain");
        problems
            .report(problem.help(format!("give it a domain of at most {MAX_VALUES} values, as in `[0:3]`")));
    }
}

fn free<'a>(wanted: &str, taken: impl Iterator<Item = &'a str>) -> String {
    let taken: HashSet<&str> = taken.collect();
    let mut name = wanted.to_string();
    while taken.contains(&name[..]) {
        name.push('_');
    }
    name
}

/// Steps before the first statement.
#[derive(Default)]
struct Prologue(Vec<(Instr, u32, String)>);

impl Prologue {
    fn wait(&mut self, flag: Value, thread: &mut ThreadParts) {
        thread.registers.push(free("filled", thread.registers.iter().map(|r| &r[..])));
        let dst = Reg(thread.registers.len() as u16 - 1);
        self.0.push((Instr::Load { dst, addr: Expr::Const(flag), bytes: Bytes::WHOLE }, 0, String::new()));
        self.0.push((Instr::Assume(Expr::Atom(dst)), 0, String::new()));
    }

    fn register(&mut self, dst: Reg, decl: &Decl, problems: &mut Problems) {
        let line = problems.line(decl.name.span);
        let (lo, hi) = (decl.domain.lo, decl.domain.hi);
        match decl.init {
            Some(0) => {}
            Some(value) => {
                let instr = Instr::Assign { dst, value: Expr::Const(value) };
                self.0.push((instr, line, format!("{} = {value}", decl.name.text)));
            }
            None => {
                check_size(decl, problems);
                self.0.push((
                    Instr::Any { dst, lo, hi },
                    line,
                    format!("{} = * : [{lo}:{hi}]", decl.name.text),
                ));
            }
        }
    }

    fn put_before(self, thread: &mut ThreadParts) {
        let (first, last) = (thread.locations.len() as u32, self.0.len());
        if last == 0 {
            return;
        }
        thread.locations.resize(thread.locations.len() + last, Location::default());
        for (i, (instr, line, text)) in self.0.into_iter().enumerate() {
            let from = Loc(first + i as u32);
            let to = if i + 1 == last { thread.initial } else { Loc(from.0 + 1) };
            thread.edges.push(Edge { from, to, instr, line, text, origin: None });
        }
        thread.initial = Loc(first);
    }
}

/// The process that fills memory, then raises the flag.
fn filling(any: &[(usize, &RmmCell)], flag: Value, problems: &Problems) -> ThreadParts {
    let (value, old) = (Reg(0), Reg(1));
    let set = |addr: Value, v| Instr::Rmw { dst: old, addr: Expr::Const(addr), op: RmwOp::Swap(v) };
    let mut steps = Vec::new();
    for (address, RmmCell { name, decl }) in any {
        let (line, text) = (problems.line(decl.name.span), format!("{name} = *"));
        let (lo, hi) = (decl.domain.lo, decl.domain.hi);
        steps.push((Instr::Any { dst: value, lo, hi }, line, text.clone()));
        steps.push((set(*address as Value, Expr::Atom(value)), line, text));
    }
    steps.push((set(flag, Expr::Const(1)), 0, String::new()));
    let end = steps.len() as u32;
    let edge = |(i, (instr, line, text)): (usize, (Instr, u32, String))| Edge {
        from: Loc(i as u32),
        to: Loc(i as u32 + 1),
        instr,
        line,
        text,
        origin: None,
    };
    ThreadParts {
        name: "initial".to_string(),
        registers: vec!["value".to_string(), "old".to_string()],
        locations: vec![Location::default(); end as usize + 1],
        edges: steps.into_iter().enumerate().map(edge).collect(),
        initial: Loc(0),
        end: Loc(end),
    }
}

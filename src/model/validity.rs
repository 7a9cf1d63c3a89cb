//! Is this a program at all? The rules every program keeps, checked once when it is built.
//!
//! A front end reports most of these with a line and a column before it gets here; this is the last gate,
//! and the only one for `.ron` files. All violations are reported, not the first alone.

use super::expr::MAX_DEPTH;
use super::program::{ProgramParts, ThreadParts};
use super::{Atom, Instr, Loc, Pred, Reg, RmwOp};
use std::collections::HashSet;
use thiserror::Error;

pub const MAX_THREADS: usize = 1000;
pub const MAX_CELLS: usize = 1 << 20;
pub const MAX_REGISTERS: usize = 10_000;
/// Values of one `any`; each is a step of its own.
pub(crate) const MAX_CHOICES: i64 = 1 << 16;
/// Locations or edges of one thread.
pub(crate) const MAX_GRAPH: usize = 1 << 24;

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Invalid {
    #[error("the program has no threads")]
    NoThreads,
    #[error("the program has {0} threads; at most {MAX_THREADS} are supported")]
    TooManyThreads(usize),
    #[error("the shared memory has {0} cells; at most {MAX_CELLS} are supported")]
    TooManyCells(usize),
    #[error("shared variable `{0}` is declared twice")]
    DuplicateVariable(String),
    #[error("shared variable `{0}` has no cells")]
    EmptyVariable(String),
    #[error("thread `{0}` is defined twice")]
    DuplicateThread(String),
    #[error("thread `{0}` has more than {MAX_REGISTERS} registers")]
    TooManyRegisters(String),
    #[error("thread `{0}` has more than {MAX_GRAPH} locations or instructions")]
    TooLarge(String),
    #[error("thread `{thread}`: register `{register}` is listed twice")]
    DuplicateRegister { thread: String, register: String },
    #[error("thread `{thread}`: {place} names location {loc}, and there are {count}")]
    NoSuchLocation { thread: String, place: String, loc: u32, count: usize },
    #[error("thread `{thread}`: {place} names register {reg}, and there are {count}")]
    NoSuchRegister { thread: String, place: String, reg: u16, count: usize },
    #[error("thread `{0}` goes on after its end")]
    EdgeFromEnd(String),
    #[error("thread `{thread}`: edge {edge} chooses from the empty range {lo}..={hi}")]
    EmptyRange { thread: String, edge: usize, lo: i64, hi: i64 },
    #[error("thread `{thread}`: edge {edge} chooses from more than {MAX_CHOICES} values, {lo}..={hi}")]
    TooManyChoices { thread: String, edge: usize, lo: i64, hi: i64 },
    #[error("{0} is nested more than {MAX_DEPTH} levels deep")]
    TooDeep(String),
    #[error("property {property} names thread {thread}, and there are {count}")]
    NoSuchThread { property: usize, thread: u16, count: usize },
    #[error("property {property} names address {addr}, and there are {count}")]
    NoSuchCell { property: usize, addr: u32, count: usize },
    #[error("property {0} divides by something that may be zero")]
    PropertyDivides(usize),
    #[error("thread `{thread}`: the new value of edge {edge} divides by something that may be zero")]
    NewValueDivides { thread: String, edge: usize },
    #[error("thread `{thread}`: edge {edge} touches bytes {bytes:#010b}, which do not lie side by side")]
    ScatteredBytes { thread: String, edge: usize, bytes: u8 },
}

pub(super) fn check(parts: &ProgramParts) -> Vec<Invalid> {
    let mut wrong = Vec::new();
    check_memory(parts, &mut wrong);
    if parts.threads.is_empty() {
        wrong.push(Invalid::NoThreads);
    }
    if parts.threads.len() > MAX_THREADS {
        wrong.push(Invalid::TooManyThreads(parts.threads.len()));
        return wrong;
    }
    let mut names = HashSet::new();
    for thread in &parts.threads {
        if !names.insert(&thread.name) {
            wrong.push(Invalid::DuplicateThread(thread.name.clone()));
        }
        check_thread(thread, &mut wrong);
    }
    for (index, property) in parts.properties.iter().enumerate() {
        check_pred(parts, index, &property.pred, &mut wrong);
        property.cases.iter().for_each(|case| check_pred(parts, index, &case.pred, &mut wrong));
    }
    wrong
}

fn check_memory(parts: &ProgramParts, wrong: &mut Vec<Invalid>) {
    let cells: usize = parts.memory.iter().map(|v| v.init.len()).sum();
    if cells > MAX_CELLS {
        wrong.push(Invalid::TooManyCells(cells));
    }
    let mut names = HashSet::new();
    for variable in &parts.memory {
        if !names.insert(&variable.name) {
            wrong.push(Invalid::DuplicateVariable(variable.name.clone()));
        }
        if variable.init.is_empty() {
            wrong.push(Invalid::EmptyVariable(variable.name.clone()));
        }
    }
}

fn check_thread(thread: &ThreadParts, wrong: &mut Vec<Invalid>) {
    if thread.registers.len() > MAX_REGISTERS {
        return wrong.push(Invalid::TooManyRegisters(thread.name.clone()));
    }
    if thread.locations.len() > MAX_GRAPH || thread.edges.len() > MAX_GRAPH {
        return wrong.push(Invalid::TooLarge(thread.name.clone()));
    }
    let mut names = HashSet::new();
    for register in &thread.registers {
        if !names.insert(register) {
            let (thread, register) = (thread.name.clone(), register.clone());
            wrong.push(Invalid::DuplicateRegister { thread, register });
        }
    }
    let mut location = |place: &dyn Fn() -> String, loc: Loc| {
        if loc.index() >= thread.locations.len() {
            wrong.push(Invalid::NoSuchLocation {
                thread: thread.name.clone(),
                place: place(),
                loc: loc.0,
                count: thread.locations.len(),
            });
        }
    };
    location(&|| "its beginning".into(), thread.initial);
    location(&|| "its end".into(), thread.end);
    for (i, edge) in thread.edges.iter().enumerate() {
        location(&|| format!("the source of edge {i}"), edge.from);
        location(&|| format!("the target of edge {i}"), edge.to);
    }
    if thread.edges.iter().any(|e| e.from == thread.end) {
        wrong.push(Invalid::EdgeFromEnd(thread.name.clone()));
    }
    for (i, edge) in thread.edges.iter().enumerate() {
        check_instr(thread, i, &edge.instr, wrong);
    }
}

fn check_instr(thread: &ThreadParts, i: usize, instr: &Instr, wrong: &mut Vec<Invalid>) {
    if let Instr::Any { lo, hi, .. } = *instr {
        let name = || thread.name.clone();
        match hi.checked_sub(lo) {
            Some(more) if more < 0 => wrong.push(Invalid::EmptyRange { thread: name(), edge: i, lo, hi }),
            Some(more) if more < MAX_CHOICES => {}
            None if hi < lo => wrong.push(Invalid::EmptyRange { thread: name(), edge: i, lo, hi }),
            _ => wrong.push(Invalid::TooManyChoices { thread: name(), edge: i, lo, hi }),
        }
    }
    let deep = instr.exprs().iter().any(|e| e.depth() > MAX_DEPTH);
    if deep {
        return wrong
            .push(Invalid::TooDeep(format!("an expression in edge {i} of thread `{}`", thread.name)));
    }
    if let Instr::Rmw { op: RmwOp::New(new), .. } = instr
        && new.may_divide_by_zero()
    {
        wrong.push(Invalid::NewValueDivides { thread: thread.name.clone(), edge: i });
    }
    if let Some(bytes) = instr.bytes().filter(|bytes| bytes.ends().is_none()) {
        wrong.push(Invalid::ScatteredBytes { thread: thread.name.clone(), edge: i, bytes: bytes.0 });
    }
    let mut register = |r: Reg| {
        if r.index() >= thread.registers.len() {
            wrong.push(Invalid::NoSuchRegister {
                thread: thread.name.clone(),
                place: format!("edge {i}"),
                reg: r.0,
                count: thread.registers.len(),
            });
        }
    };
    instr.target().into_iter().for_each(&mut register);
    for e in instr.exprs() {
        e.for_each_atom(&mut |r| register(*r));
    }
}

fn check_pred(parts: &ProgramParts, index: usize, pred: &Pred, wrong: &mut Vec<Invalid>) {
    if pred.depth() > MAX_DEPTH {
        return wrong.push(Invalid::TooDeep(format!("property {index}")));
    }
    if pred.may_divide_by_zero() {
        wrong.push(Invalid::PropertyDivides(index));
    }
    let cells = parts.memory.iter().map(|v| v.init.len()).sum();
    pred.for_each_atom(&mut |atom| {
        let t = match atom {
            Atom::At(t, _) | Atom::Reg(t, _) => *t,
            Atom::Mem(addr) => {
                if addr.index() >= cells {
                    wrong.push(Invalid::NoSuchCell { property: index, addr: addr.0, count: cells });
                }
                return;
            }
        };
        let Some(thread) = parts.threads.get(t.index()) else {
            let count = parts.threads.len();
            return wrong.push(Invalid::NoSuchThread { property: index, thread: t.0, count });
        };
        let (name, place) = (&thread.name, format!("property {index}"));
        match atom {
            Atom::At(_, locs) => {
                for loc in locs.iter().filter(|l| l.index() >= thread.locations.len()) {
                    let count = thread.locations.len();
                    wrong.push(Invalid::NoSuchLocation {
                        thread: name.clone(),
                        place: place.clone(),
                        loc: loc.0,
                        count,
                    });
                }
            }
            Atom::Reg(_, r) if r.index() >= thread.registers.len() => {
                let count = thread.registers.len();
                wrong.push(Invalid::NoSuchRegister { thread: name.clone(), place, reg: r.0, count });
            }
            _ => {}
        }
    });
}

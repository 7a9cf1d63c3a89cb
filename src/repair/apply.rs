//! Program and changes in, changed program out.
//!
//! Invariant: locations, registers and edges of the program keep their numbers, so that a run of the changed
//! program tells which instructions of the old one were taken; what is new has higher numbers. A thread that
//! stands before or behind an inserted fence counts as standing at the location of old.

use crate::model::program::{ProgramParts, ThreadParts};
use crate::model::property::at_also;
use crate::model::{BinOp, Edge, EdgeId, Expr, Instr, Invalid, Loc, Location, Program, Reg, RmwOp, ThreadId};
use crate::query::repair::Change;
use std::collections::{BTreeMap, HashMap};

/// The program with all of the changes.
pub fn apply(program: &Program, changes: &[Change]) -> Result<Program, Vec<Invalid>> {
    let mut parts = program.to_parts();
    let mut fences: BTreeMap<ThreadId, Vec<Loc>> = BTreeMap::new();
    let mut behind: BTreeMap<(ThreadId, Loc), Vec<EdgeId>> = BTreeMap::new();
    for &change in changes {
        match change {
            Change::Fence { thread, at } => fences.entry(thread).or_default().push(at),
            Change::FenceBehind { thread, edge } => {
                let to = program.thread(thread).edge(edge).to;
                behind.entry((thread, to)).or_default().push(edge);
            }
            Change::Atomic { thread, store } => {
                let own = program.thread(thread).registers().len();
                make_atomic(&mut parts.threads[thread.index()], store.index(), own);
            }
            Change::Keep { thread, fence } => {
                // It is missing in the program at hand; whatever kind it was, under TSO it was a full fence.
                parts.threads[thread.index()].edges[fence.index()].instr = Instr::Fence;
            }
        }
    }
    for ((thread, to), edges) in behind {
        redirect(&mut parts, thread, to, &edges);
    }
    for (thread, places) in fences {
        insert_fences(&mut parts, thread, &places);
    }
    Program::new(parts)
}

/// The program with these instructions where fences would be put, each a step of its own, and their edges.
pub(crate) fn with_steps(
    program: &Program,
    steps: &[(Change, Instr)],
) -> Result<(Program, Vec<EdgeId>), Vec<Invalid>> {
    let mut parts = program.to_parts();
    let mut edges = Vec::new();
    for (change, instr) in steps {
        let thread = change.thread();
        match *change {
            Change::Fence { at, .. } => insert_fences(&mut parts, thread, &[at]),
            Change::FenceBehind { edge, .. } => {
                let to = parts.threads[thread.index()].edges[edge.index()].to;
                redirect(&mut parts, thread, to, &[edge]);
            }
            Change::Atomic { .. } | Change::Keep { .. } => unreachable!("only fences are steps"),
        }
        let own = &mut parts.threads[thread.index()].edges;
        edges.push(EdgeId(own.len() as u32 - 1));
        own.last_mut().expect("it has just been put there").instr = instr.clone();
    }
    Ok((Program::new(parts)?, edges))
}

/// The program without its fences. Each leaves a step that does nothing.
pub(crate) fn without_fences(program: &Program) -> Result<Program, Vec<Invalid>> {
    let mut parts = program.to_parts();
    for edge in parts.threads.iter_mut().flat_map(|t| &mut t.edges) {
        if edge.instr.is_fence() {
            edge.instr = Instr::Nop;
        }
    }
    Program::new(parts)
}

/// A fence at each of the places, which differ.
fn insert_fences(parts: &mut ProgramParts, thread: ThreadId, places: &[Loc]) {
    let own = &mut parts.threads[thread.index()];
    let first = own.locations.len() as u32;
    let behind: HashMap<Loc, Loc> = places.iter().copied().zip((first..).map(Loc)).collect();
    own.locations.extend(places.iter().map(|_| Location::default()));
    for edge in &mut own.edges {
        edge.from = behind.get(&edge.from).copied().unwrap_or(edge.from);
    }
    own.edges.extend(places.iter().zip((first..).map(Loc)).map(|(&from, to)| fence(from, to)));
    own.end = behind.get(&own.end).copied().unwrap_or(own.end);
    let fresh_and_old: Vec<(Loc, Loc)> = places.iter().map(|at| (behind[at], *at)).collect();
    stand_for(parts, thread, &fresh_and_old);
}

/// A fence that these edges, which lead to one location, come through before they are there.
fn redirect(parts: &mut ProgramParts, thread: ThreadId, to: Loc, edges: &[EdgeId]) {
    let own = &mut parts.threads[thread.index()];
    let before = Loc(own.locations.len() as u32);
    own.locations.push(Location::default());
    edges.iter().for_each(|edge| own.edges[edge.index()].to = before);
    own.edges.push(fence(before, to));
    stand_for(parts, thread, &[(before, to)]);
}

/// Properties take who is at the fresh locations for being at the old ones.
fn stand_for(parts: &mut ProgramParts, thread: ThreadId, fresh_and_old: &[(Loc, Loc)]) {
    for property in &mut parts.properties {
        property.map_preds(|pred| at_also(pred, thread, fresh_and_old));
    }
}

fn fence(from: Loc, to: Loc) -> Edge {
    Edge { from, to, instr: Instr::Fence, line: 0, text: "fence".to_string(), origin: None }
}

/// The store becomes a swap. What it finds goes to a register that the thread did not have, the same for all
/// its locked stores: it is the one after the `own` registers.
fn make_atomic(thread: &mut ThreadParts, store: usize, own: usize) {
    let Instr::Store { addr, value, bytes } = thread.edges[store].instr.clone() else {
        unreachable!("only stores are made atomic")
    };
    if thread.registers.len() == own {
        thread.registers.push(unused(&thread.registers));
    }
    let dst = Reg(own as u16);
    let masked = |e, bits| Expr::binary(BinOp::BitAnd, e, Expr::Const(bits));
    let op = match bytes.is_whole() {
        true => RmwOp::Swap(value),
        false => {
            let kept = masked(Expr::Atom(dst), !bytes.bits());
            RmwOp::New(Expr::binary(BinOp::BitOr, kept, masked(value, bytes.bits())))
        }
    };
    thread.edges[store].instr = Instr::Rmw { dst, addr, op };
}

/// A name that no register has.
pub fn unused(registers: &[String]) -> String {
    let names = std::iter::once("old".to_string()).chain((2..).map(|n| format!("old{n}")));
    let mut free = names.filter(|name| !registers.contains(name));
    free.next().expect("there are more names than registers")
}

//! When does a program hang? When memory never changes again, whatever happens, and the threads can never all
//! come to their ends. Writing the value that is there counts as reading.
//!
//! In such a state with empty buffers SC and TSO are the same from there on: what is stored is there already.
//! Nothing that a thread does is seen by another one, so what each can still do is found for each by itself;
//! only blocks, which others wait for, make it necessary to look at all of them together, and at buffers that
//! they freeze. If all that follows
//! leaves memory as it is and some thread cannot end, then some terminal strongly connected component of the
//! state graph does so too, and no other components do.
//!
//! A thread that stops at an `assume` right behind a load or a locked instruction *waits*: it may try again
//! (`retrying`). Formats without loops of their own for that say so what they wait for.

use super::{State, Step, sc, tso};
use crate::model::program::ThreadParts;
use crate::model::{
    BinOp, Edge, EdgeId, Expr, Instr, Invalid, Loc, Location, Program, Reg, RegExpr, Thread, ThreadId,
};
use crate::query::{Limit, Limits, Model, Waiting};
use std::collections::{HashSet, VecDeque};

/// States of one thread, or of all together, that are looked at before it is left open what follows: registers
/// may grow without end.
const MOST: usize = 5_000;

/// What can still happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outlook {
    /// Memory may change, all threads may end, or one may go wrong.
    Open,
    /// None of that: who waits, and for what.
    Hangs(Vec<Waiting>),
    /// There is too much to look at.
    Unclear,
}

/// What can follow a state of a program whose waits try again.
pub fn outlook(program: &Program, model: Model, state: &State, limits: &Limits) -> Result<Outlook, Limit> {
    let settled = state.buffers.iter().all(VecDeque::is_empty) && !state.at.contains(&Loc::TRAP);
    if !settled {
        return Ok(Outlook::Open);
    }
    let mut waiting = Vec::new();
    if program.has_locks() {
        let follows = |state: &State| match model {
            Model::Sc => sc::steps(program, state),
            Model::Tso => tso::steps(program, state, tso::Bound::Unbounded).0,
        };
        let ends = |state: &State| program.thread_ids().all(|t| is_at_end(program, state, t));
        match future(state, follows, ends, limits)? {
            Future::Still { ends: false, taken } => {
                let stuck = program.thread_ids().filter(|&t| !is_at_end(program, state, t));
                waiting.extend(stuck.map(|t| waits(program, t, state, &taken)));
            }
            Future::Still { ends: true, .. } | Future::Moves => {}
            Future::Unclear => return Ok(Outlook::Unclear),
        }
    } else {
        for t in program.thread_ids() {
            let follows = |state: &State| sc::thread_steps(program, state, t);
            let ends = |state: &State| is_at_end(program, state, t);
            match future(state, follows, ends, limits)? {
                Future::Still { ends: false, taken } => waiting.push(waits(program, t, state, &taken)),
                Future::Still { ends: true, .. } => {}
                Future::Moves => return Ok(Outlook::Open),
                Future::Unclear => return Ok(Outlook::Unclear),
            }
        }
    }
    Ok(if waiting.is_empty() { Outlook::Open } else { Outlook::Hangs(waiting) })
}

fn is_at_end(program: &Program, state: &State, t: ThreadId) -> bool {
    state.at[t.index()] == program.thread(t).end()
}

/// What follows a state, by some of its steps.
enum Future {
    Moves,
    /// Memory stays as it is; whether an end is reached, and what is done on the way.
    Still {
        ends: bool,
        taken: Vec<crate::query::Event>,
    },
    Unclear,
}

fn future(
    state: &State,
    follows: impl Fn(&State) -> Vec<Step>,
    ends: impl Fn(&State) -> bool,
    limits: &Limits,
) -> Result<Future, Limit> {
    let mut seen: HashSet<State> = HashSet::from([state.clone()]);
    let mut todo = vec![state.clone()];
    let (mut reached, mut taken) = (false, Vec::new());
    while let Some(next) = todo.pop() {
        limits.spend(50)?;
        reached |= ends(&next);
        if seen.len() > MOST {
            return Ok(Future::Unclear);
        }
        for Step { event, state: after } in follows(&next) {
            if event.trap.is_some() || after.memory != state.memory {
                return Ok(Future::Moves);
            }
            taken.push(event);
            if seen.insert(after.clone()) {
                todo.push(after);
            }
        }
    }
    Ok(Future::Still { ends: reached, taken })
}

/// Where the thread is and what it reads there, over and over.
fn waits(program: &Program, t: ThreadId, state: &State, taken: &[crate::query::Event]) -> Waiting {
    let own = program.thread(t);
    let mine = || taken.iter().filter(|e| e.thread() == t);
    let stands = own.edges_from(state.at[t.index()]);
    let lines = mine().map(|e| own.edge(e.edge).line).chain(stands.iter().map(|(_, e)| e.line));
    Waiting {
        thread: t,
        lines: lines.filter(|&line| line != 0).collect(),
        reads: mine()
            .filter(|e| e.source.is_some())
            .filter_map(|e| e.address)
            .map(|cell| (cell, state.memory[cell.index()]))
            .collect(),
    }
}

/// The program with a way back from every `assume` that fails right behind a load or a locked instruction, to
/// before that. Locations and edges keep their numbers; properties are left out. Where other ways lead to the same
/// `assume`, who comes by the instruction gets a location of his own, from which alone the way back leads.
pub fn retrying(program: &Program) -> Result<Program, Vec<Invalid>> {
    let mut parts = program.to_parts();
    parts.properties.clear();
    for (thread, own) in program.threads().iter().zip(&mut parts.threads) {
        add_retries(thread, own);
    }
    Program::new(parts)
}

fn add_retries(thread: &Thread, own: &mut ThreadParts) {
    for (last, back) in waits_behind(thread) {
        let at = thread.edge(last).to;
        let assumes = thread.edges_from(at);
        let Some(failing) = all_fail(&assumes) else { continue };
        let mut stops = at;
        if !comes_only_by(thread, at, last) {
            stops = Loc(own.locations.len() as u32);
            own.locations.push(Location::labelled(vec![]));
            own.edges[last.index()].to = stops;
            own.edges.extend(assumes.iter().map(|(_, e)| Edge { from: stops, ..(*e).clone() }));
        }
        let (line, text) = (assumes[0].1.line, "waits, and tries again".to_string());
        let instr = Instr::Assume(failing);
        own.edges.push(Edge { from: stops, to: back, instr, line, text, origin: None });
    }
}

/// The last edges of what can be repeated, each with where that begins.
fn waits_behind(thread: &Thread) -> Vec<(EdgeId, Loc)> {
    let mut all = Vec::new();
    for (id, edge) in thread.edges().filter(|(_, e)| can_be_repeated(&e.instr)) {
        all.push((id, edge.from));
        let narrow = thread.narrowed(edge);
        let keeps = |cut: &Edge| match narrow {
            Some((_, dst, _)) => !uses(&edge.instr, dst),
            None => cuts_to_width(&cut.instr, edge),
        };
        if comes_only_by(thread, edge.to, id) {
            let cuts = thread.edges_from(edge.to).into_iter().filter(|(_, cut)| keeps(cut));
            all.extend(cuts.map(|(cut, _)| (cut, edge.from)));
        }
    }
    all
}

/// Is there no other way to the location?
fn comes_only_by(thread: &Thread, at: Loc, edge: EdgeId) -> bool {
    at != thread.initial() && thread.edges().all(|(id, e)| id == edge || e.to != at)
}

/// Does it read memory, and the same again if it is done twice?
fn can_be_repeated(instr: &Instr) -> bool {
    instr.reads_memory() && !instr.target().is_some_and(|dst| uses(instr, dst))
}

fn uses(instr: &Instr, wanted: Reg) -> bool {
    let mut found = false;
    instr.uses(|r| found |= r == wanted);
    found
}

/// Does it keep only low bits of what was found, in the same register?
fn cuts_to_width(instr: &Instr, load: &Edge) -> bool {
    let Instr::Assign { dst, value: Expr::Binary(BinOp::BitAnd, found, bits) } = instr else { return false };
    let narrows = **found == Expr::Atom(*dst) && matches!(**bits, Expr::Const(_));
    narrows && load.instr.target() == Some(*dst)
}

/// That none of the edges can be taken, if they are assumptions of which none holds when another one fails.
fn all_fail(edges: &[(EdgeId, &Edge)]) -> Option<RegExpr> {
    let conditions: Option<Vec<&RegExpr>> = edges
        .iter()
        .map(|(_, e)| match &e.instr {
            Instr::Assume(condition) => Some(condition),
            _ => None,
        })
        .collect();
    let conditions = conditions.filter(|all| !all.is_empty())?;
    let opposite = |a: &RegExpr| conditions.contains(&&a.clone().negated());
    if conditions.iter().any(|a| opposite(a)) {
        return None;
    }
    conditions.into_iter().map(|c| c.clone().negated()).reduce(|a, b| Expr::binary(BinOp::And, a, b))
}

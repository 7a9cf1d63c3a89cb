//! What is there to write of a thread? Its locations that can be reached, the registers it uses, and blocks
//! that can be said by other means.

use crate::model::{Edge, Instr, Loc, Reg, RegExpr, RmwOp, Thread};
use std::collections::{BTreeSet, HashMap};

/// `lock`, a load, a store to the same cell, `unlock`.
pub(crate) struct Block<'a> {
    pub load: &'a Edge,
    pub dst: Reg,
    pub addr: &'a RegExpr,
    pub value: &'a RegExpr,
    pub to: Loc,
}

/// The part of a thread that can be reached, and what it needs.
pub(crate) struct Body<'a> {
    pub thread: &'a Thread,
    /// In the order of their numbers, without the end and what lies inside blocks.
    pub locations: Vec<Loc>,
    pub blocks: HashMap<Loc, Block<'a>>,
    pub used: BTreeSet<Reg>,
    /// Some instruction may need the accumulator.
    pub accumulates: bool,
}

impl<'a> Body<'a> {
    pub(crate) fn new(thread: &'a Thread) -> Body<'a> {
        let reachable = thread.reachable();
        let blocks: HashMap<Loc, Block<'a>> =
            reachable.iter().filter_map(|&l| Some((l, block(thread, &reachable, l)?))).collect();
        let inside: BTreeSet<Loc> = blocks.keys().flat_map(|&l| inside(thread, l)).collect();
        let mut used = BTreeSet::new();
        let mut accumulates = !blocks.is_empty();
        for edge in reachable.iter().flat_map(|&l| open_edges(thread, l)) {
            used.extend(edge.instr.target());
            edge.instr.exprs().iter().for_each(|e| {
                e.for_each_atom(&mut |r| {
                    used.insert(*r);
                })
            });
            accumulates |= matches!(&edge.instr, Instr::Rmw { op, .. } if !matches!(op, RmwOp::Swap(_)));
        }
        let stays = |l: &Loc| *l != thread.end() && !inside.contains(l);
        let locations = reachable.into_iter().filter(stays).collect();
        Body { thread, locations, blocks, used, accumulates }
    }
}

/// Branches that are never open are left out.
pub(crate) fn open_edges(thread: &Thread, loc: Loc) -> Vec<&Edge> {
    let closed = |e: &Edge| matches!(&e.instr, Instr::Assume(c) if c.constant() == Some(0));
    thread.edges_from(loc).into_iter().map(|(_, e)| e).filter(|e| !closed(e)).collect()
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

/// The block that begins at a location, if nothing else leads into it and it is one of those that can be
/// written.
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
    let Instr::Load { dst, addr, .. } = &load.instr else { return None };
    let Instr::Store { addr: there, value, .. } = &store.instr else { return None };
    let fits = addr == there && !mentions(addr, *dst);
    let alone = [lock.to, load.to, store.to].into_iter().all(|l| entered(l) == 1 && l != thread.initial());
    (fits && alone).then_some(Block { load, dst: *dst, addr, value, to: unlock.to })
}

pub(crate) fn mentions(e: &RegExpr, reg: Reg) -> bool {
    let mut found = false;
    e.for_each_atom(&mut |r| found |= *r == reg);
    found
}

//! Rows of comparisons, as an unrolled `if r == 1 … if r == 2 …` leaves them: where does a value lead at
//! once?
//!
//! A node that only asks whether a register equals a constant, and passes on to another such node if not, is
//! an *entry*. A row of entries is a *jump table* from values to nodes. The steps along it are local and have
//! no choice, so taking them one by one, as a trace does, leads to the same node.
//! Not here: rows of other conditions, and comparisons of different registers.

use super::code::{CEdge, CInstr};
use super::compiled::Node;
use crate::model::{BinOp, Expr, UnOp, Value};
use foldhash::fast::FixedState;
use std::collections::HashMap;

/// Shorter rows are as soon walked.
const LONG: usize = 8;

#[derive(Clone, Debug)]
pub(crate) struct JumpTable {
    slot: u32,
    /// Per constant the number of its entry, and where equality leads.
    equal: HashMap<Value, (usize, u32), FixedState>,
    /// Where all that equals none of them arrives.
    end: u32,
}

impl JumpTable {
    /// Where a state at the entry with this number arrives.
    #[inline]
    pub(crate) fn follow(&self, entry: usize, vals: &[Value]) -> u32 {
        match self.equal.get(&vals[self.slot as usize]) {
            Some(&(at, to)) if at >= entry => to,
            _ => self.end,
        }
    }
}

/// What an entry asks, and where the two answers lead.
#[derive(Clone, Copy)]
struct Comparison {
    slot: u32,
    constant: Value,
    equal: u32,
    unequal: u32,
}

/// Finds the jump tables of a thread, and notes their entries in the nodes.
pub(crate) fn find(nodes: &mut [Node]) -> Vec<JumpTable> {
    let entries: Vec<Option<Comparison>> = nodes.iter().map(entry).collect();
    let after = |entry: Comparison| passed(nodes, entry.unequal);
    // A table begins where no other entry of its register leads on.
    let mut inner = vec![false; nodes.len()];
    for entry in entries.iter().flatten() {
        let next = after(*entry);
        inner[next as usize] |= entries[next as usize].is_some_and(|e| e.slot == entry.slot);
    }
    let mut tables = Vec::new();
    let mut places = Vec::new();
    for first in (0..nodes.len()).filter(|&n| entries[n].is_some() && !inner[n]) {
        let mut table = JumpTable { slot: 0, equal: HashMap::default(), end: first as u32 };
        let mut members = Vec::new();
        while let Some(entry) = entries[table.end as usize]
            && (members.is_empty() || entry.slot == table.slot)
            && !table.equal.contains_key(&entry.constant)
        {
            table.slot = entry.slot;
            table.equal.insert(entry.constant, (members.len(), entry.equal));
            members.push(table.end);
            table.end = after(entry);
        }
        if members.len() >= LONG {
            places
                .extend(members.iter().enumerate().map(|(k, &node)| (node, (tables.len() as u32, k as u32))));
            tables.push(table);
        }
    }
    for (node, place) in places {
        nodes[node as usize].jump = Some(place);
    }
    tables
}

/// The node behind those that do nothing.
fn passed(nodes: &[Node], mut node: u32) -> u32 {
    for _ in 0..nodes.len() {
        match &nodes[node as usize] {
            Node { scheduling_point: false, edges, .. } => match &edges[..] {
                [CEdge { instr: CInstr::Nop, to, .. }] => node = *to,
                _ => break,
            },
            _ => break,
        }
    }
    node
}

fn entry(node: &Node) -> Option<Comparison> {
    let [
        CEdge { instr: CInstr::Assume(a), to: first, .. },
        CEdge { instr: CInstr::Assume(b), to: second, .. },
    ] = &node.edges[..]
    else {
        return None;
    };
    let ((slot, constant, equal), other) = (comparison(&a.tree())?, comparison(&b.tree())?);
    let complementary = other == (slot, constant, !equal);
    let (equal, unequal) = if equal { (*first, *second) } else { (*second, *first) };
    (complementary && !node.scheduling_point).then_some(Comparison { slot, constant, equal, unequal })
}

/// The slot and the constant that are compared, and whether they should be equal.
fn comparison(e: &Expr<u32>) -> Option<(u32, Value, bool)> {
    match e {
        Expr::Unary(UnOp::Not, e) => comparison(e).map(|(slot, constant, equal)| (slot, constant, !equal)),
        Expr::Binary(op @ (BinOp::Eq | BinOp::Ne), a, b) => match (&**a, &**b) {
            (Expr::Atom(slot), Expr::Const(c)) | (Expr::Const(c), Expr::Atom(slot)) => {
                Some((*slot, *c, *op == BinOp::Eq))
            }
            _ => None,
        },
        _ => None,
    }
}

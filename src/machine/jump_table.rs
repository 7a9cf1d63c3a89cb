//! Rows of comparisons, as an unrolled `if r == 1 … if r == 2 …` leaves them: where does a value lead at once?
//!
//! A node that only asks whether a register equals a constant, and passes on to another such node if not, is a link. A
//! chain of links is a table from values to nodes. The steps along it are local and have no choice, so taking them one by
//! one, as a trace does, leads to the same node.
//! Not here: rows of other conditions, and comparisons of different registers.

use super::compile::{CEdge, Node, Op};
use crate::model::{BinOp, Expr, UnOp, Value};
use foldhash::fast::FixedState;
use std::collections::HashMap;

/// Shorter rows are as soon walked.
const LONG: usize = 8;

#[derive(Clone, Debug)]
pub struct Chain {
    slot: u32,
    /// Per constant the number of its link, and where equality leads.
    equal: HashMap<Value, (usize, u32), FixedState>,
    /// Where all that equals none of them arrives.
    end: u32,
}

impl Chain {
    /// Where a state at the link with this number arrives.
    #[inline]
    pub fn follow(&self, link: usize, vals: &[Value]) -> u32 {
        match self.equal.get(&vals[self.slot as usize]) {
            Some(&(at, to)) if at >= link => to,
            _ => self.end,
        }
    }
}

/// What a link asks, and where the two answers lead.
#[derive(Clone, Copy)]
struct Link {
    slot: u32,
    constant: Value,
    equal: u32,
    unequal: u32,
}

/// Finds the chains of a thread, and tells their nodes.
pub fn chains(nodes: &mut [Node]) -> Vec<Chain> {
    let links: Vec<Option<Link>> = nodes.iter().map(link).collect();
    let after = |link: Link| passed(nodes, link.unequal);
    // A chain begins where no other link of its register leads on.
    let mut inner = vec![false; nodes.len()];
    for link in links.iter().flatten() {
        let next = after(*link);
        inner[next as usize] |= links[next as usize].is_some_and(|l| l.slot == link.slot);
    }
    let mut chains = Vec::new();
    let mut places = Vec::new();
    for first in (0..nodes.len()).filter(|&n| links[n].is_some() && !inner[n]) {
        let mut chain = Chain { slot: 0, equal: HashMap::default(), end: first as u32 };
        let mut members = Vec::new();
        while let Some(link) = links[chain.end as usize]
            && (members.is_empty() || link.slot == chain.slot)
            && !chain.equal.contains_key(&link.constant)
        {
            chain.slot = link.slot;
            chain.equal.insert(link.constant, (members.len(), link.equal));
            members.push(chain.end);
            chain.end = after(link);
        }
        if members.len() >= LONG {
            places
                .extend(members.iter().enumerate().map(|(k, &node)| (node, (chains.len() as u32, k as u32))));
            chains.push(chain);
        }
    }
    for (node, place) in places {
        nodes[node as usize].chain = Some(place);
    }
    chains
}

/// The node behind those that do nothing.
fn passed(nodes: &[Node], mut node: u32) -> u32 {
    for _ in 0..nodes.len() {
        match &nodes[node as usize] {
            Node { stop: false, edges, .. } => match &edges[..] {
                [CEdge { op: Op::Nop, to, .. }] => node = *to,
                _ => break,
            },
            _ => break,
        }
    }
    node
}

fn link(node: &Node) -> Option<Link> {
    let [CEdge { op: Op::Assume(a), to: first, .. }, CEdge { op: Op::Assume(b), to: second, .. }] =
        &node.edges[..]
    else {
        return None;
    };
    let ((slot, constant, equal), other) = (comparison(&a.tree())?, comparison(&b.tree())?);
    let complementary = other == (slot, constant, !equal);
    let (equal, unequal) = if equal { (*first, *second) } else { (*second, *first) };
    (complementary && !node.stop).then_some(Link { slot, constant, equal, unequal })
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

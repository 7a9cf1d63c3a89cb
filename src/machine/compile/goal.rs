//! What does the goal say of a state, in slots and nodes; and how far is it, in a thread's graph, to what it
//! names?

use super::Compiler;
use super::slots::Numbering;
use crate::model::{Addr, Atom, Expr, Loc, Program, Thread, ThreadId, Value};
use crate::query::{Clause, Limit, Limits, When};
use petgraph::Incoming;
use petgraph::graph::NodeIndex;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// No way leads there.
pub(crate) const FAR: u16 = u16::MAX;

/// A goal whose locations would take more distances than this goes without the rest of them.
const MOST_DISTANCES: usize = 1 << 22;

/// A clause of the goal.
#[derive(Clone, Debug)]
pub(crate) struct CClause {
    pub when: When,
    /// It cannot hold unless a thread stands at a location that the goal names.
    pub needs_named: bool,
    pub pred: Expr<SlotAtom>,
}

/// What a predicate over slots is made of.
#[derive(Clone, Debug)]
pub(crate) enum SlotAtom {
    /// The thread whose location this slot holds stands at one of these nodes.
    At {
        thread: u32,
        nodes: Vec<u32>,
        /// Per node the steps to the nearest of them, or `FAR`; nothing if that would take too much.
        distance: Arc<[u16]>,
    },
    Value(u32),
}

/// How far it is from a node to the nearest of those that an atom names, if that is known.
#[inline]
pub(crate) fn steps_to(distance: &[u16], node: Value) -> u16 {
    distance.get(node as usize).copied().unwrap_or(0)
}

impl Compiler<'_> {
    pub(super) fn clauses(&self, numbering: &[Numbering]) -> Result<Vec<CClause>, Limit> {
        let mut distances = Distances { numbering, known: HashMap::new(), left: MOST_DISTANCES };
        let mut clauses = Vec::with_capacity(self.goal.clauses.len());
        for Clause { when, pred, .. } in &self.goal.clauses {
            let mut locations_only = true;
            pred.for_each_atom(&mut |a| locations_only &= matches!(a, Atom::At(..)));
            let needs_named = *when == When::Always && locations_only && pred.eval(&|_| 0) == Ok(0);
            clauses.push(CClause { when: *when, needs_named, pred: self.pred(pred, &mut distances)? });
        }
        Ok(clauses)
    }

    fn pred<'b>(&self, pred: &'b Expr<Atom>, distances: &mut Distances<'b>) -> Result<Expr<SlotAtom>, Limit> {
        Ok(match pred {
            Expr::Const(c) => Expr::Const(*c),
            Expr::Unary(op, a) => Expr::unary(*op, self.pred(a, distances)?),
            Expr::Binary(op, a, b) => Expr::binary(*op, self.pred(a, distances)?, self.pred(b, distances)?),
            Expr::Atom(Atom::At(t, locs)) => {
                let nodes = locs.iter().map(|&l| distances.numbering[t.index()].node(l)).collect();
                let distance = distances.to(self.program, *t, locs, self.limits)?;
                Expr::Atom(SlotAtom::At { thread: t.0 as u32, nodes, distance })
            }
            Expr::Atom(Atom::Reg(t, r)) => {
                Expr::Atom(SlotAtom::Value((self.register_base[t.index()] + r.index()) as u32))
            }
            Expr::Atom(Atom::Mem(Addr(a))) => Expr::Atom(SlotAtom::Value((self.memory + *a as usize) as u32)),
        })
    }
}

/// How far it is to the locations that a goal names. Many properties name the same ones.
struct Distances<'a> {
    numbering: &'a [Numbering],
    known: HashMap<(ThreadId, &'a [Loc]), Arc<[u16]>>,
    /// Distances that may still be written down.
    left: usize,
}

impl<'a> Distances<'a> {
    fn to(
        &mut self,
        program: &Program,
        t: ThreadId,
        locs: &'a [Loc],
        limits: &Limits,
    ) -> Result<Arc<[u16]>, Limit> {
        if let Some(known) = self.known.get(&(t, locs)) {
            return Ok(known.clone());
        }
        let thread = program.thread(t);
        let Some(left) = self.left.checked_sub(thread.graph().node_count()) else { return Ok([].into()) };
        self.left = left;
        limits.spend(thread.graph().node_count())?;
        let distance: Arc<[u16]> = self.numbering[t.index()].spread(&distance(thread, locs), FAR).into();
        self.known.insert((t, locs), distance.clone());
        Ok(distance)
    }
}

/// Per location, the steps to the nearest of `goals`, or `FAR`.
pub(super) fn distance(thread: &Thread, goals: &[Loc]) -> Vec<u16> {
    let graph = thread.graph();
    let mut steps = vec![FAR; graph.node_count()];
    let mut todo: VecDeque<_> = goals.iter().map(|goal| (NodeIndex::new(goal.index()), 0)).collect();
    while let Some((node, far)) = todo.pop_front() {
        if steps[node.index()] == FAR {
            steps[node.index()] = far;
            let next = (far + 1).min(FAR - 1);
            todo.extend(graph.neighbors_directed(node, Incoming).map(|from| (from, next)));
        }
    }
    steps
}

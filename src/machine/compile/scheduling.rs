//! Where may a thread stand in a stored state? Its *scheduling points*: locations between which it runs in
//! one go.
//!
//! A location is one if it has an action on memory, has a choice, matters to the goal, closes a cycle of
//! local steps, or is an end. Whatever lies between is local and has no choice, so it makes no difference when it
//! happens. There is one more kind, for the goal's sake, between two effects
//! ([`Compiler::separate_effects`]).

use super::{Compiler, Stores};
use crate::machine::MemoryModel;
use crate::model::{BinOp, Edge, EdgeId, Expr, Instr, Loc, RegExpr, Thread, ThreadId, UnOp};
use std::collections::HashSet;

/// With more edges out of a location than this, they are not compared pair by pair.
const MANY_BRANCHES: usize = 64;

impl Compiler<'_> {
    /// Per location whether it is a scheduling point.
    pub(super) fn scheduling_points(&self, t: ThreadId) -> Vec<bool> {
        let thread = self.program.thread(t);
        if !self.reductions.steps {
            return vec![true; thread.graph().node_count()];
        }
        let mut point = vec![false; thread.graph().node_count()];
        for loc in thread.locations() {
            let edges = thread.edges_from(loc);
            let local = edges.iter().all(|(id, e)| self.is_local(t, *id, e));
            point[loc.index()] = edges.is_empty() || !local || !deterministic(&edges);
        }
        for loc in &self.observed.locations[t.index()] {
            point[loc.index()] = true;
        }
        // What the goal says at the very beginning counts as well.
        let observed = !self.observed.locations[t.index()].is_empty()
            || !self.observed.registers.always[t.index()].is_empty();
        point[thread.initial().index()] |= observed;
        self.separate_effects(t, &mut point);
        let closes = retreating(thread, |l| point[l.index()]);
        for (_, edge) in thread.edges().filter(|(id, _)| closes[id.index()]) {
            point[edge.to.index()] = true;
        }
        point
    }

    /// A scheduling point before a visible local step, if something that others can see came before it in the
    /// same run of local steps: the others may act between the two, and the goal hold there. So it may
    /// between two visible steps. After another load none is needed: whatever the others do then, they can do
    /// before the load, and the goal says the same. Nor is one before an arrival, if arrivals can only help
    /// the goal: what holds before it holds after it too, and the thread may stay.
    fn separate_effects(&self, t: ThreadId, point: &mut [bool]) {
        let thread = self.program.thread(t);
        let growing = self.goal.grows_with_arrivals();
        let has_effect = |e: &Edge| {
            let waits_for_others = matches!(e.instr, Instr::Lock | Instr::Unlock | Instr::Membarrier);
            e.instr.writes_memory() || waits_for_others || self.is_visible(t, e)
        };
        let mut todo: Vec<Loc> = thread.edges().filter(|(_, e)| has_effect(e)).map(|(_, e)| e.to).collect();
        let mut seen = vec![false; point.len()];
        while let Some(loc) = todo.pop() {
            if point[loc.index()] || std::mem::replace(&mut seen[loc.index()], true) {
                continue;
            }
            let edges = thread.edges_from(loc);
            if edges.iter().any(|(_, e)| self.is_visible(t, e) && !(growing && self.only_arrives(t, e))) {
                point[loc.index()] = true;
            } else {
                todo.extend(edges.iter().map(|(_, e)| e.to));
            }
        }
    }

    /// Does the instruction leave everything that other threads or the goal can see as it is?
    fn is_local(&self, t: ThreadId, id: EdgeId, edge: &Edge) -> bool {
        match (&edge.instr, self.model) {
            _ if self.faint.is_faint(t, id) => true,
            (instr, MemoryModel::Sc) if instr.is_fence() => true,
            // A store only fills the own buffer. If the goal looks at its cell, it matters nevertheless: a
            // goal state has empty buffers, and filling one too early would hide it.
            (Instr::Store { .. }, MemoryModel::Tso(None)) => {
                self.stores == Stores::Local && !self.may_touch_observed(t, edge)
            }
            (instr, _) => instr.is_local(),
        }
    }
}

/// Is at most one of a location's edges possible, and that in one way, whatever the registers hold?
pub(super) fn deterministic(edges: &[(EdgeId, &Edge)]) -> bool {
    match edges {
        [] => false,
        [(_, e)] => !matches!(e.instr, Instr::Any { .. }),
        _ if edges.len() > MANY_BRANCHES => is_switch(edges),
        _ => edges.iter().enumerate().all(|(i, (_, a))| {
            edges[i + 1..].iter().all(|(_, b)| match (&a.instr, &b.instr) {
                (Instr::Assume(a), Instr::Assume(b)) => exclusive(a, b),
                _ => false,
            })
        }),
    }
}

/// Does every edge compare the same expression with another constant?
fn is_switch(edges: &[(EdgeId, &Edge)]) -> bool {
    let case = |e: &'_ Edge| match &e.instr {
        Instr::Assume(Expr::Binary(BinOp::Eq, a, b)) => Some((a.clone(), b.constant()?)),
        _ => None,
    };
    let Some((of, _)) = case(edges[0].1) else { return false };
    let mut constants = HashSet::new();
    edges.iter().all(|(_, e)| case(e).is_some_and(|(a, c)| a == of && constants.insert(c)))
}

/// Can the two conditions never hold together?
fn exclusive(a: &RegExpr, b: &RegExpr) -> bool {
    use BinOp::*;
    let negation = |a: &RegExpr, b: &RegExpr| matches!(b, Expr::Unary(UnOp::Not, c) if **c == *a);
    // Unrolled code compares constants.
    let never = |e: &RegExpr| e.constant() == Some(0);
    if negation(a, b) || negation(b, a) || never(a) || never(b) {
        return true;
    }
    let (Expr::Binary(f, a1, a2), Expr::Binary(g, b1, b2)) = (a, b) else { return false };
    let different = matches!((&**a2, &**b2), (Expr::Const(x), Expr::Const(y)) if x != y);
    let complementary = matches!((f, g), (Eq, Ne) | (Ne, Eq) | (Lt, Ge) | (Ge, Lt) | (Gt, Le) | (Le, Gt));
    a1 == b1 && (complementary && a2 == b2 || (f, g) == (&Eq, &Eq) && different)
}

/// Per edge whether it goes back to a location that the depth-first walk is still in: every cycle has such an
/// edge. Edges out of locations that `cut` names are not followed. The walk keeps its own stack: petgraph's
/// `depth_first_search` recurses, and programs are long.
pub(super) fn retreating(thread: &Thread, cut: impl Fn(Loc) -> bool) -> Vec<bool> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    let mut marks = vec![Mark::New; thread.graph().node_count()];
    let mut back = vec![false; thread.graph().edge_count()];
    for root in thread.locations() {
        if marks[root.index()] != Mark::New {
            continue;
        }
        marks[root.index()] = Mark::Open;
        let mut stack = vec![(root, thread.edges_from(root).into_iter())];
        while let Some((loc, edges)) = stack.last_mut() {
            let loc = *loc;
            let Some((id, edge)) = edges.next().filter(|_| !cut(loc)) else {
                marks[loc.index()] = Mark::Done;
                stack.pop();
                continue;
            };
            match marks[edge.to.index()] {
                Mark::New => {
                    marks[edge.to.index()] = Mark::Open;
                    stack.push((edge.to, thread.edges_from(edge.to).into_iter()));
                }
                Mark::Open => back[id.index()] = true,
                Mark::Done => {}
            }
        }
    }
    back
}

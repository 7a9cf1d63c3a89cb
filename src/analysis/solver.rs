//! Facts about the locations of a thread that follow from what may come after them: the one solver behind the
//! backward analyses.
//!
//! To the least fixpoint by a worklist `[Kildall73]`. Locations come in postorder of the graph: what a fact
//! depends on is mostly settled before it, and only loops are gone round more than once. So the effort is
//! that of the graph times the depth of its loops, whatever the order of the text.

use crate::limits::{Limit, Limits};
use crate::model::{Edge, EdgeId, Loc, Thread};
use petgraph::graph::NodeIndex;
use petgraph::visit::DfsPostOrder;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// Lets facts flow against the edges until nothing changes. `carry` adds to the fact before an edge what
/// follows from that after it, and says whether that was new.
pub(crate) fn backward<F>(
    thread: &Thread,
    facts: &mut [F],
    limits: &Limits,
    carry: impl FnMut(EdgeId, &Edge, &mut [F]) -> Result<bool, Limit>,
) -> Result<(), Limit> {
    Backward::new(thread).run(thread.locations(), facts, limits, carry)
}

/// The same for several questions about one thread, each of which may concern a small part of its graph.
pub(crate) struct Backward<'a> {
    thread: &'a Thread,
    into: Entries,
    /// All locations in postorder, and the place of each in it.
    order: Vec<Loc>,
    rank: Vec<u32>,
    /// Per place in the order, whether it is on the worklist. Nothing is, between two runs that came to their
    /// end.
    waits: Vec<bool>,
}

impl Backward<'_> {
    pub(crate) fn new(thread: &Thread) -> Backward<'_> {
        let order = postorder(thread);
        let mut rank = vec![0; order.len()];
        order.iter().enumerate().for_each(|(k, loc)| rank[loc.index()] = k as u32);
        let waits = vec![false; order.len()];
        Backward { thread, into: Entries::of(thread), order, rank, waits }
    }

    /// Begins with the facts at some locations; the others follow from nothing yet.
    pub(crate) fn run<F>(
        &mut self,
        from: impl IntoIterator<Item = Loc>,
        facts: &mut [F],
        limits: &Limits,
        mut carry: impl FnMut(EdgeId, &Edge, &mut [F]) -> Result<bool, Limit>,
    ) -> Result<(), Limit> {
        let mut todo = BinaryHeap::new();
        for loc in from {
            self.put(loc, &mut todo);
        }
        while let Some(Reverse(next)) = todo.pop() {
            self.waits[next as usize] = false;
            let entries = self.into.range(self.order[next as usize]);
            limits.spend(1 + entries.len())?;
            for k in entries {
                let id = self.into.edges[k];
                let edge = self.thread.edge(id);
                if carry(id, edge, facts)? {
                    self.put(edge.from, &mut todo);
                }
            }
        }
        Ok(())
    }

    fn put(&mut self, loc: Loc, todo: &mut BinaryHeap<Reverse<u32>>) {
        let place = self.rank[loc.index()];
        if !std::mem::replace(&mut self.waits[place as usize], true) {
            todo.push(Reverse(place));
        }
    }
}

/// Per location the edges that enter it.
struct Entries {
    edges: Vec<EdgeId>,
    /// Where those of each location begin.
    starts: Vec<u32>,
}

impl Entries {
    fn of(thread: &Thread) -> Entries {
        let mut starts = vec![0u32; thread.graph().node_count() + 1];
        thread.edges().for_each(|(_, e)| starts[e.to.index() + 1] += 1);
        (1..starts.len()).for_each(|k| starts[k] += starts[k - 1]);
        let mut next = starts.clone();
        let mut edges = vec![EdgeId(0); thread.graph().edge_count()];
        for (id, edge) in thread.edges() {
            let at = &mut next[edge.to.index()];
            edges[*at as usize] = id;
            *at += 1;
        }
        Entries { edges, starts }
    }

    /// Where those of a location stand.
    fn range(&self, loc: Loc) -> Range<usize> {
        self.starts[loc.index()] as usize..self.starts[loc.index() + 1] as usize
    }
}

/// All locations, each behind those that can be reached from it unless a cycle forbids.
fn postorder(thread: &Thread) -> Vec<Loc> {
    let (graph, node) = (thread.graph(), |loc: Loc| NodeIndex::new(loc.index()));
    let mut order = Vec::with_capacity(graph.node_count());
    let mut walk = DfsPostOrder::new(graph, node(thread.initial()));
    for root in std::iter::once(thread.initial()).chain(thread.locations()) {
        walk.move_to(node(root));
        order.extend(std::iter::from_fn(|| walk.next(graph)).map(|node| Loc(node.index() as u32)));
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::tso;

    /// How often edges are looked at until it is known from where the end can be reached.
    fn effort(body: &str) -> usize {
        let program =
            tso::read(&format!("shared x; thread p; {body}; end"), &[], &Limits::default()).unwrap().program;
        let thread = &program.threads()[0];
        let mut facts = vec![false; thread.graph().node_count()];
        facts[thread.end().index()] = true;
        let mut effort = 0;
        let reaches = |_: EdgeId, edge: &Edge, facts: &mut [bool]| {
            effort += 1;
            let new = facts[edge.to.index()] && !facts[edge.from.index()];
            facts[edge.from.index()] |= new;
            Ok(new)
        };
        backward(thread, &mut facts, &Limits::default(), reaches).unwrap();
        assert!(facts.iter().all(|&reached| reached));
        effort
    }

    /// Twice the program is twice the effort, whatever its shape.
    #[test]
    fn the_effort_is_that_of_the_graph() {
        let chain = |n: usize| "load r, [x]; ".repeat(n) + "nop";
        let diamonds = |n: usize| {
            let one = |k: usize| format!("if r == {k} goto l{k}; load r, [x]; l{k}: nop; ");
            (0..n).map(one).collect::<String>() + "nop"
        };
        let loops = |n: usize| {
            let one = |k: usize| format!("l{k}: load r, [x]; if r == {k} goto l{k}; ");
            (0..n).map(one).collect::<String>() + "nop"
        };
        let nest = |n: usize| {
            let heads: String = (0..n).map(|k| format!("l{k}: load r, [x]; ")).collect();
            heads + &(0..n).rev().map(|k| format!("if r == {k} goto l{k}; ")).collect::<String>() + "nop"
        };
        let shapes: [&dyn Fn(usize) -> String; 4] = [&chain, &diamonds, &loops, &nest];
        for shape in shapes {
            let (once, twice) = (effort(&shape(200)), effort(&shape(400)));
            assert!(twice <= 2 * once + 10, "{once} steps, and {twice} for twice the program");
        }
    }
}

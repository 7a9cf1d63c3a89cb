//! How many loops is each location and edge of a thread in?
//!
//! A strongly connected part is a loop. Its heads are the locations at which it is entered; without the edges
//! that lead back to them, what is still strongly connected is a loop inside it (`[Havlak97]`, whose nesting
//! forest this is the depth of).

use crate::limits::{Limit, Limits};
use crate::model::{EdgeId, Loc, Thread};
use petgraph::algo::kosaraju_scc;
use petgraph::graph::NodeIndex;
use petgraph::visit::{EdgeFiltered, EdgeRef};
use std::collections::HashMap;

pub struct LoopDepths {
    locations: Vec<u32>,
    edges: Vec<u32>,
}

impl LoopDepths {
    pub fn of(thread: &Thread, limits: &Limits) -> Result<LoopDepths, Limit> {
        let graph = thread.graph();
        let mut depths =
            LoopDepths { locations: vec![0; graph.node_count()], edges: vec![0; graph.edge_count()] };
        // Edges inside the loops that have been found; of these only those that lead back to no head.
        let mut alive = vec![true; graph.edge_count()];
        loop {
            limits.spend(graph.node_count() + graph.edge_count())?;
            let parts = parts(thread, &alive);
            let mut within = vec![false; graph.edge_count()];
            for edge in graph.edge_references().filter(|e| alive[e.id().index()]) {
                if parts[edge.source().index()] == parts[edge.target().index()] {
                    within[edge.id().index()] = true;
                    depths.edges[edge.id().index()] += 1;
                }
            }
            if !within.contains(&true) {
                return Ok(depths);
            }
            let mut looping = vec![false; graph.node_count()];
            let mut heads = vec![false; graph.node_count()];
            heads[thread.initial().index()] = true;
            for edge in graph.edge_references() {
                let to = edge.target().index();
                match within[edge.id().index()] {
                    true => looping[to] = true,
                    false if alive[edge.id().index()] => heads[to] = true,
                    false => {}
                }
            }
            depths.locations.iter_mut().zip(&looping).for_each(|(depth, &l)| *depth += l as u32);
            let headless = headless(&parts, &heads, &looping);
            for edge in graph.edge_references() {
                let to = edge.target().index();
                alive[edge.id().index()] = within[edge.id().index()] && !heads[to] && !headless.contains(&to);
            }
        }
    }

    pub fn location(&self, loc: Loc) -> u32 {
        self.locations[loc.index()]
    }

    pub fn edge(&self, edge: EdgeId) -> u32 {
        self.edges[edge.index()]
    }
}

/// The number of each location's strongly connected part.
fn parts(thread: &Thread, alive: &[bool]) -> Vec<usize> {
    let graph = thread.graph();
    let mut parts = vec![0; graph.node_count()];
    let open = EdgeFiltered::from_fn(graph, |e| alive[e.id().index()]);
    for (number, part) in kosaraju_scc(&open).into_iter().enumerate() {
        part.into_iter().for_each(|node: NodeIndex| parts[node.index()] = number);
    }
    parts
}

/// For loops that nothing enters any more, one location each to stand for their heads.
fn headless(parts: &[usize], heads: &[bool], looping: &[bool]) -> Vec<usize> {
    let mut first: HashMap<usize, (usize, bool)> = HashMap::new();
    for node in (0..parts.len()).filter(|&n| looping[n]) {
        let (_, entered) = first.entry(parts[node]).or_insert((node, false));
        *entered |= heads[node];
    }
    first.into_values().filter(|(_, entered)| !entered).map(|(node, _)| node).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::tso;

    /// The depths of the edges of the first thread.
    fn check(body: &str, expected: &[u32]) {
        let source = format!("shared x; thread p; {body}; end");
        let program = tso::read(&source, &[], &Limits::default()).expect("the source is readable").program;
        let depths = LoopDepths::of(&program.threads()[0], &Limits::default()).unwrap();
        let found: Vec<u32> = program.threads()[0].edges().map(|(e, _)| depths.edge(e)).collect();
        assert_eq!(found, expected, "{body}");
    }

    #[test]
    fn an_edge_into_a_loop_is_outside() {
        check("nop; l: load r, [x]; if r goto l", &[0, 1, 1, 0]);
    }

    #[test]
    fn loops_nest() {
        check("a: nop; b: nop; if r goto b; if s goto a; r = 0; s = 0", &[1, 2, 2, 1, 1, 0, 0, 0]);
        check("a: b: load r, [x]; if r goto b; load s, [x]; if s goto a", &[1, 1, 1, 1, 1, 0]);
    }

    #[test]
    fn a_loop_that_is_entered_in_two_places_is_one() {
        check("if r goto b; a: nop; b: nop; if r goto a; r = 0", &[0, 0, 1, 1, 1, 0, 0]);
    }
}

//! Which places does a thread come to, and what is known of it there? All of them, until nothing new is found.

use super::exec::{CodePlace, Continuation, Exec, PathEnd};
use super::refusal::{Refusal, Result};
use super::sink::Silent;
use super::state::State;
use std::collections::{HashMap, VecDeque};

/// A place that is come to more often than this has ranges that grow to their ends.
const PATIENCE: usize = 48;
/// More places are not gone through.
const MOST_PLACES: usize = 200_000;

pub(super) struct CodeNode {
    pub place: CodePlace,
    pub state: State,
    visits: usize,
}

#[derive(Default)]
pub(super) struct CodeGraph {
    pub nodes: Vec<CodeNode>,
    index: HashMap<CodePlace, usize>,
    /// Places that lead to places, as far as is known.
    pub next: Vec<Vec<usize>>,
}

impl CodeGraph {
    /// The place, which is there.
    pub(super) fn node(&self, place: &CodePlace) -> Option<usize> {
        self.index.get(place).copied()
    }

    pub(super) fn explore(exec: &mut Exec, start: CodePlace, state: &State) -> Result<CodeGraph> {
        let mut graph = CodeGraph::default();
        graph.arrive(exec, start, state.normal())?;
        let mut todo = VecDeque::from([0]);
        let mut waits = vec![true];
        while let Some(at) = todo.pop_front() {
            waits[at] = false;
            let node = &graph.nodes[at];
            let (place, state) = (node.place, node.state.clone());
            let stop = exec.run(place, state, &mut Silent).map_err(|refusal| refusal.at(place.address))?;
            let PathEnd::Next(ways) = stop else { unreachable!("no thread is alone any more") };
            let mut next = Vec::new();
            for Continuation { place, state, .. } in ways {
                let (to, changed) = graph.arrive(exec, place, state)?;
                waits.resize(graph.nodes.len(), false);
                next.push(to);
                if changed && !waits[to] {
                    waits[to] = true;
                    todo.push_back(to);
                }
            }
            graph.next.resize(graph.nodes.len(), Vec::new());
            graph.next[at] = next;
        }
        graph.next.resize(graph.nodes.len(), Vec::new());
        Ok(graph)
    }

    /// The place, and whether more can be true there than before.
    fn arrive(&mut self, exec: &Exec, place: CodePlace, state: State) -> Result<(usize, bool)> {
        if let Some(&at) = self.index.get(&place) {
            let node = &mut self.nodes[at];
            let mut joined = node.state.join(&state, exec.memory);
            if joined == node.state {
                return Ok((at, false));
            }
            node.visits += 1;
            if node.visits > PATIENCE {
                joined = joined.widened(&node.state).normal();
            }
            let changed = joined != node.state;
            node.state = joined;
            return Ok((at, changed));
        }
        if self.nodes.len() >= MOST_PLACES {
            let why = format!("a thread has more than {MOST_PLACES} places");
            return Err(
                Refusal::new(why).help("is a loop unrolled too far, or are functions nested too deep?")
            );
        }
        self.index.insert(place, self.nodes.len());
        self.nodes.push(CodeNode { place, state: state.normal(), visits: 0 });
        Ok((self.nodes.len() - 1, true))
    }

    /// Can the thread come to the place again from there?
    pub(super) fn is_on_cycle(&self, at: usize) -> bool {
        let (mut todo, mut seen) = (self.next[at].clone(), vec![false; self.nodes.len()]);
        while let Some(node) = todo.pop() {
            if node == at {
                return true;
            }
            if !std::mem::replace(&mut seen[node], true) {
                todo.extend(&self.next[node]);
            }
        }
        false
    }
}

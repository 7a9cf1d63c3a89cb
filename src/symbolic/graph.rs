//! How does a thread's graph look without its loops? Each round is a copy, up to a bound.
//!
//! Loops are the strongly connected parts of the graph. Each has a head, the first of its locations that control
//! comes to; without the edges into the head, what is left inside falls into smaller loops. A copy of a location
//! knows the round of every loop around it. After as many rounds as allowed the head has one more copy, from
//! which control can only leave the loop: so the test of a `while` that comes out false is not a round.

use crate::model::program::{ProgramParts, ThreadParts};
use crate::model::{EdgeId, Loc, Program, Thread, ThreadId};
use crate::query::{Limit, Limits};
use petgraph::algo::tarjan_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use std::collections::HashMap;

/// A thread without loops. Copies are in an order in which edges only lead forward.
pub(super) struct Acyclic {
    pub copies: Vec<Copy>,
}

pub(super) struct Copy {
    pub loc: Loc,
    pub edges: Vec<(EdgeId, StreamWay)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamWay {
    /// To this copy.
    To(usize),
    /// The bound forbids one more round.
    Overrun,
}

/// The loops of a thread's graph, outer ones first.
struct Loops {
    heads: Vec<Loc>,
    /// For each location the loops around it.
    around: Vec<Vec<usize>>,
}

impl Loops {
    fn new(thread: &Thread) -> Loops {
        let count = thread.graph().node_count();
        let mut loops = Loops { heads: Vec::new(), around: vec![Vec::new(); count] };
        let order = first_visits(thread);
        let mut todo = vec![thread.locations().filter(|l| order[l.index()].is_some()).collect::<Vec<_>>()];
        let mut cut = vec![false; count];
        while let Some(part) = todo.pop() {
            for scc in cyclic_parts(thread, &part, &cut) {
                let head = scc.iter().copied().min_by_key(|l| order[l.index()]).expect("a part is not empty");
                cut[head.index()] = true;
                scc.iter().for_each(|l| loops.around[l.index()].push(loops.heads.len()));
                loops.heads.push(head);
                todo.push(scc);
            }
        }
        loops
    }
}

/// When a walk from the beginning comes to each location first.
fn first_visits(thread: &Thread) -> Vec<Option<usize>> {
    let mut order = vec![None; thread.graph().node_count()];
    let (mut todo, mut next) = (vec![thread.initial()], 0);
    while let Some(loc) = todo.pop() {
        if order[loc.index()].is_some() {
            continue;
        }
        order[loc.index()] = Some(next);
        next += 1;
        todo.extend(thread.edges_from(loc).iter().rev().map(|(_, e)| e.to));
    }
    order
}

/// The strongly connected parts with a cycle among these locations, where no edge leads into one that is cut.
fn cyclic_parts(thread: &Thread, part: &[Loc], cut: &[bool]) -> Vec<Vec<Loc>> {
    let number: HashMap<Loc, usize> = part.iter().enumerate().map(|(k, l)| (*l, k)).collect();
    let mut graph: DiGraph<Loc, ()> = DiGraph::new();
    part.iter().for_each(|l| {
        graph.add_node(*l);
    });
    let mut own_cycle = vec![false; part.len()];
    for (_, edge) in thread.edges() {
        if let (Some(&a), Some(&b)) = (number.get(&edge.from), number.get(&edge.to))
            && !cut[edge.to.index()]
        {
            graph.add_edge(NodeIndex::new(a), NodeIndex::new(b), ());
            own_cycle[a] |= a == b;
        }
    }
    let parts = tarjan_scc(&graph).into_iter();
    parts
        .filter(|scc| scc.len() > 1 || own_cycle[scc[0].index()])
        .map(|scc| scc.into_iter().map(|n| graph[n]).collect())
        .collect()
}

/// How many copies of each edge there are.
pub fn copies(parts: &ThreadParts, bound: u32, limits: &Limits) -> Result<HashMap<EdgeId, usize>, Limit> {
    let parts = ProgramParts { threads: vec![parts.clone()], ..ProgramParts::default() };
    let mut counts = HashMap::new();
    let Ok(program) = Program::new(parts) else { return Ok(counts) };
    for copy in Acyclic::new(program.thread(ThreadId(0)), bound, limits)?.copies {
        copy.edges.iter().for_each(|(id, _)| *counts.entry(*id).or_insert(0) += 1);
    }
    Ok(counts)
}

/// A location, and the rounds of the loops around it.
type Key = (Loc, Vec<u32>);

impl Acyclic {
    /// At most so many rounds of each loop.
    pub(super) fn new(thread: &Thread, bound: u32, limits: &Limits) -> Result<Acyclic, Limit> {
        let loops = Loops::new(thread);
        let start: Key = (thread.initial(), vec![0; loops.around[thread.initial().index()].len()]);
        let mut numbers: HashMap<Key, usize> = HashMap::from([(start.clone(), 0)]);
        let mut keys = vec![start];
        let mut copies: Vec<Copy> = Vec::new();
        while copies.len() < keys.len() {
            limits.spend(64)?;
            let key = keys[copies.len()].clone();
            let mut edges = Vec::new();
            for (id, edge) in thread.edges_from(key.0) {
                let way = match next(&loops, &key, edge.to, bound) {
                    None => StreamWay::Overrun,
                    Some(to) => StreamWay::To(*numbers.entry(to.clone()).or_insert_with(|| {
                        keys.push(to);
                        keys.len() - 1
                    })),
                };
                edges.push((id, way));
            }
            copies.push(Copy { loc: key.0, edges });
        }
        Ok(Acyclic { copies: in_order(copies) })
    }
}

/// Where an edge leads; nothing if that would be a round too many.
fn next(loops: &Loops, (from, rounds): &Key, to: Loc, bound: u32) -> Option<Key> {
    let (here, there) = (&loops.around[from.index()], &loops.around[to.index()]);
    let mut next = Vec::with_capacity(there.len());
    for (depth, &l) in there.iter().enumerate() {
        let known = here.get(depth) == Some(&l);
        let round = match known {
            true if loops.heads[l] == to => rounds[depth] + 1,
            true if rounds[depth] >= bound => return None,
            true => rounds[depth],
            false => 0,
        };
        if round > bound {
            return None;
        }
        next.push(round);
    }
    Some((to, next))
}

/// The same copies, so that edges only lead forward, and otherwise in the order of the text.
fn in_order(copies: Vec<Copy>) -> Vec<Copy> {
    let mut arriving = vec![0; copies.len()];
    let ways = |copy: &Copy| {
        let to = copy.edges.iter().filter_map(|(_, way)| match way {
            StreamWay::To(to) => Some(*to),
            StreamWay::Overrun => None,
        });
        to.collect::<Vec<_>>()
    };
    copies.iter().flat_map(ways).for_each(|to| arriving[to] += 1);
    let mut ready = vec![0];
    let (mut place, mut order) = (vec![0; copies.len()], Vec::new());
    while let Some(k) = ready.pop() {
        place[k] = order.len();
        order.push(k);
        for to in ways(&copies[k]).into_iter().rev() {
            arriving[to] -= 1;
            if arriving[to] == 0 {
                ready.push(to);
            }
        }
    }
    let mut copies: Vec<Option<Copy>> = copies.into_iter().map(Some).collect();
    let moved = |copy: Copy| {
        let way = |way| match way {
            StreamWay::To(to) => StreamWay::To(place[to]),
            StreamWay::Overrun => StreamWay::Overrun,
        };
        Copy { loc: copy.loc, edges: copy.edges.into_iter().map(|(id, w)| (id, way(w))).collect() }
    };
    order.into_iter().filter_map(|k| copies[k].take()).map(moved).collect()
}

//! Control flow as layers: a thread's locations from the beginning down, instructions on the arrows. What leads back up
//! goes round on the right.
//!
//! A location's layer is the length of the longest way to it that goes back nowhere; among its layer it lies where
//! most of its arrows are short, after a few sweeps of the barycentre method `[Sugiyama81]`.

use super::{Escaped, Picture, cut};
use crate::model::{Loc, Program, ThreadId};
use crate::report::dot::goals;
use std::collections::HashSet;
use std::fmt::Write;

const DOWN: u32 = 66;
const HEAD: u32 = 30;
const SWEEPS: usize = 8;

/// A thread's graph, laid out: for each location its layer, and its place there.
struct Layers {
    layer: Vec<usize>,
    place: Vec<usize>,
    widest: usize,
    count: usize,
}

impl Layers {
    /// Of a graph with so many nodes, walked from the first on.
    fn of(nodes: usize, initial: usize, edges: &[(usize, usize)]) -> Layers {
        let mut next = vec![Vec::new(); nodes];
        edges.iter().for_each(|&(from, to)| next[from].push(to));
        let (order, back) = walked(initial, &next);
        let mut layer = vec![0; nodes];
        for &from in &order {
            for &to in &next[from] {
                if !back.contains(&(from, to)) {
                    layer[to] = layer[to].max(layer[from] + 1);
                }
            }
        }
        let count = layer.iter().max().map_or(0, |last| last + 1);
        let mut rows = vec![Vec::new(); count];
        (0..nodes).for_each(|node| rows[layer[node]].push(node));
        let mut place = vec![0; nodes];
        let number =
            |row: &[usize], place: &mut Vec<usize>| row.iter().enumerate().for_each(|(k, &n)| place[n] = k);
        rows.iter().for_each(|row| number(row, &mut place));
        let mut near = vec![Vec::new(); nodes];
        for &(a, b) in edges {
            near[a].push(b);
            near[b].push(a);
        }
        for _ in 0..SWEEPS {
            for row in &mut rows {
                let middle = |node: &usize| {
                    let all = &near[*node];
                    all.iter().map(|&n| place[n]).sum::<usize>() * 1_000 / all.len().max(1)
                };
                row.sort_by_key(middle);
                number(row, &mut place);
            }
        }
        let widest = rows.iter().map(Vec::len).max().unwrap_or(1);
        Layers { layer, place, widest, count }
    }
}

/// The nodes in an order in which every one comes behind what leads to it, but for edges that lead back.
fn walked(initial: usize, next: &[Vec<usize>]) -> (Vec<usize>, HashSet<(usize, usize)>) {
    let (mut done, mut open) = (vec![false; next.len()], vec![false; next.len()]);
    let (mut order, mut back) = (Vec::new(), HashSet::new());
    for root in std::iter::once(initial).chain(0..next.len()) {
        let mut stack = if done[root] { vec![] } else { vec![(root, 0)] };
        while let Some((node, at)) = stack.pop() {
            open[node] = true;
            match next[node].get(at) {
                None => {
                    (open[node], done[node]) = (false, true);
                    order.push(node);
                }
                Some(&to) => {
                    stack.push((node, at + 1));
                    if open[to] {
                        back.insert((node, to));
                    } else if !done[to] {
                        stack.push((to, 0));
                    }
                }
            }
        }
    }
    order.reverse();
    (order, back)
}

/// All threads beside each other.
pub(crate) fn picture(program: &Program) -> Picture {
    let goals = goals(program);
    let (mut x, mut height, mut body) = (
        0,
        0,
        String::from(
            "<defs><marker id=\"flow\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" \
         orient=\"auto\"><path fill=\"context-stroke\" d=\"M0 0L8 4L0 8z\"/></marker></defs>",
        ),
    );
    for t in program.thread_ids() {
        let own = thread(program, t, &goals);
        let _ = write!(body, "<g transform=\"translate({x} 0)\">{}</g>", own.body);
        x += own.width + 24;
        height = height.max(own.height);
    }
    Picture { width: x.max(1), height: height.max(1), body }
}

fn thread(program: &Program, t: ThreadId, goals: &HashSet<(ThreadId, Loc)>) -> Picture {
    let thread = program.thread(t);
    let edges: Vec<(usize, usize)> = thread.edges().map(|(_, e)| (e.from.index(), e.to.index())).collect();
    let layers = Layers::of(thread.graph().node_count(), thread.initial().index(), &edges);
    let texts: Vec<String> = thread.edges().map(|(_, e)| thread.show_instr(program, &e.instr)).collect();
    let longest = texts.iter().map(|text| text.chars().count().min(34)).max().unwrap_or(0) as u32;
    let column = (longest * 7 + 60).max(120);
    let middle = |node: usize| {
        (30 + column * layers.place[node] as u32 + 30, HEAD + 24 + DOWN * layers.layer[node] as u32)
    };
    let mut body = format!("<text class=\"title\" x=\"14\" y=\"16\">{}</text>", Escaped(thread.name()));
    let mut round = 0;
    let right = 60 + column * layers.widest as u32;
    for (k, &(from, to)) in edges.iter().enumerate() {
        let ((x, y), (tx, ty)) = (middle(from), middle(to));
        let text = cut(&texts[k], 34);
        let down = layers.layer[to] == layers.layer[from] + 1;
        let (path, at) = if down {
            // Several between the same two lie beside each other.
            let twin = edges[..k].iter().filter(|pair| **pair == (from, to)).count() as u32;
            (
                format!("M{x} {}L{tx} {}", y + 12, ty - 13),
                (x.midpoint(tx) + 8, y.midpoint(ty) + 4 + 12 * twin),
            )
        } else {
            round += 1;
            // A curve of this kind comes as far as three quarters of the way to where it is drawn to.
            let out = x + (right + 14 * round - x) * 4 / 3;
            // The text stands on the side that the curve turns away from.
            let beside = if ty <= y { y + 16 } else { y - 6 };
            (format!("M{} {y}C{out} {y} {out} {ty} {} {ty}", x + 13, tx + 14), (x + 18, beside))
        };
        let class = if ty <= y { "edge cross" } else { "edge" };
        let _ = write!(
            body,
            "<g class=\"{class}\"><title>{}</title><path d=\"{path}\" marker-end=\"url(#flow)\"/><text x=\"{}\" \
             y=\"{}\">{}</text></g>",
            Escaped(&texts[k]),
            at.0,
            at.1,
            Escaped(&text)
        );
    }
    for loc in thread.locations() {
        let (x, y) = middle(loc.index());
        let labels = thread.location(loc).labels.join(" ");
        let class = match () {
            () if goals.contains(&(t, loc)) => "node goal",
            () if loc == thread.initial() => "node start",
            () => "node",
        };
        let inner = if loc == thread.end() {
            format!("<rect x=\"{}\" y=\"{}\" width=\"18\" height=\"18\" rx=\"9\"/>", x - 9, y - 9)
        } else {
            String::new()
        };
        let _ = write!(
            body,
            "<g class=\"{class}\"><title>{}</title><rect x=\"{}\" y=\"{}\" width=\"24\" height=\"24\" rx=\"12\"/>{inner}\
             <text class=\"no\" x=\"{}\" y=\"{}\">{}</text></g>",
            Escaped(&thread.location_name(loc)),
            x - 12,
            y - 12,
            x - 16,
            y + 4,
            Escaped(&cut(&labels, 12))
        );
    }
    Picture { width: right + 14 * round + 20, height: HEAD + 40 + DOWN * layers.count as u32, body }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_lead_down_but_for_loops() {
        let edges = [(0, 1), (1, 2), (2, 1), (1, 3), (0, 3), (4, 3)];
        let layers = Layers::of(5, 0, &edges);
        assert_eq!(layers.layer, [0, 1, 2, 2, 0]);
        assert_eq!((layers.count, layers.widest), (3, 2));
    }
}

//! A cycle of happens-before as a graph: a column for each thread, what is one step is one node, and every edge says
//! what it is.

use super::{Escaped, Picture};
use crate::report::document::{Cycle, CycleNode};
use std::fmt::Write;

const NODE: f64 = 46.0;
const DOWN: f64 = 118.0;
const BETWEEN: f64 = 130.0;
const HEAD: f64 = 34.0;

/// Where a node lies: its middle, and its width.
#[derive(Clone, Copy)]
struct NodeSpot {
    x: f64,
    y: f64,
    width: f64,
}

pub(crate) fn picture(cycle: &Cycle, id: &str) -> Picture {
    let mut columns: Vec<&str> = Vec::new();
    for node in &cycle.nodes {
        if !columns.contains(&&node.thread[..]) {
            columns.push(&node.thread);
        }
    }
    let (mut spots, mut x, mut lowest) =
        (vec![NodeSpot { x: 0.0, y: 0.0, width: 0.0 }; cycle.nodes.len()], 30.0, 0usize);
    let mut heads = String::new();
    for name in columns {
        let own = cycle.nodes.iter().enumerate().filter(|(_, n)| n.thread == name);
        let mut own: Vec<(usize, &CycleNode)> = own.collect();
        own.sort_by_key(|(_, n)| n.rows.first().copied());
        let width = own.iter().map(|(_, n)| width(n)).fold(90.0, f64::max);
        for (level, &(k, node)) in own.iter().enumerate() {
            let y = HEAD + 12.0 + NODE / 2.0 + DOWN * level as f64;
            spots[k] = NodeSpot { x: x + width / 2.0, y, width: self::width(node) };
            lowest = lowest.max(level);
        }
        let _ = write!(
            heads,
            "<text class=\"name\" x=\"{:.0}\" y=\"22\">{}</text>",
            x + width / 2.0,
            Escaped(name)
        );
        x += width + BETWEEN;
    }
    let height = HEAD + 24.0 + NODE + DOWN * lowest as f64;
    let mut body = format!(
        "<defs><marker id=\"{id}h\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" \
         orient=\"auto\"><path fill=\"context-stroke\" d=\"M0 0L8 4L0 8z\"/></marker></defs>{heads}"
    );
    for edge in &cycle.edges {
        let (from, to) = (spots[edge.from], spots[edge.to]);
        let same = cycle.nodes[edge.from].thread == cycle.nodes[edge.to].thread;
        arrow(&mut body, (from, to), same, (edge.name, &edge.words), id);
    }
    for (node, spot) in cycle.nodes.iter().zip(&spots) {
        draw(&mut body, node, *spot);
    }
    Picture { width: (x - BETWEEN + 30.0) as u32, height: height as u32, body }
}

fn width(node: &CycleNode) -> f64 {
    (node.text.chars().count().min(36) as f64 * 7.6 + 26.0).max(90.0)
}

fn draw(text: &mut String, node: &CycleNode, NodeSpot { x, y, width }: NodeSpot) {
    let rows = node.rows.iter().map(|row| row.to_string()).collect::<Vec<_>>().join(" ");
    let shown = super::cut(&node.text, 36);
    let said = node.rows.iter().map(|row| (row + 1).to_string()).collect::<Vec<_>>().join(", ");
    let said = if node.rows.len() == 1 { format!("row {said}") } else { format!("rows {said}") };
    let _ = write!(
        text,
        "<g class=\"node\" data-rows=\"{rows}\" tabindex=\"0\"><rect x=\"{:.0}\" y=\"{:.0}\" width=\"{width:.0}\" \
         height=\"{NODE}\" rx=\"8\"/><text class=\"mid\" x=\"{x:.0}\" y=\"{:.0}\">{}</text><text class=\"e mid\" \
         x=\"{x:.0}\" y=\"{:.0}\">{said}</text></g>",
        x - width / 2.0,
        y - NODE / 2.0,
        y - 3.0,
        Escaped(&shown),
        y + 14.0,
    );
}

fn arrow(
    text: &mut String,
    (from, to): (NodeSpot, NodeSpot),
    same: bool,
    (name, words): (&str, &str),
    id: &str,
) {
    let (dx, dy) = (to.x - from.x, to.y - from.y);
    let class = if same { "edge" } else { "edge cross" };
    // Up its own column, or past a node of it, an arrow goes round.
    let round = same && !(0.0..=DOWN + 1.0).contains(&dy);
    let (path, label) = if round {
        let x = from.x.min(to.x) - from.width.max(to.width) / 2.0;
        let out = x - 26.0;
        let path =
            format!("M{x:.0} {:.0}C{out:.0} {:.0} {out:.0} {:.0} {x:.0} {:.0}", from.y, from.y, to.y, to.y);
        (path, (out + 6.0, (from.y + to.y) / 2.0))
    } else {
        let (begin, end) = (border(from, dx, dy), border(to, -dx, -dy));
        let part = if same { 0.5 } else { 0.28 };
        let label = (begin.0 + (end.0 - begin.0) * part, begin.1 + (end.1 - begin.1) * part + 4.0);
        (format!("M{:.0} {:.0}L{:.0} {:.0}", begin.0, begin.1, end.0, end.1), label)
    };
    let _ = write!(
        text,
        "<g class=\"{class}\"><title>{}</title><path d=\"{path}\" marker-end=\"url(#{id}h)\"/><text class=\"mid\" \
         x=\"{:.0}\" y=\"{:.0}\">{name}</text></g>",
        Escaped(words),
        label.0,
        label.1,
    );
}

/// Where a line from the middle of a node in this direction leaves it.
fn border(spot: NodeSpot, dx: f64, dy: f64) -> (f64, f64) {
    let (half, up) = (spot.width / 2.0 + 3.0, NODE / 2.0 + 3.0);
    let scale = (half / dx.abs().max(1e-9)).min(up / dy.abs().max(1e-9));
    (spot.x + dx * scale, spot.y + dy * scale)
}

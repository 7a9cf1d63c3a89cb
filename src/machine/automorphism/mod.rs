//! Which threads are interchangeable? Groups of threads that may be permuted, together with the cells and the
//! values that stand for them, without changing what the program can do or what the goal says.
//!
//! Two threads with graphs of the same shape propose a *swap*: where their instructions differ, the constants
//! do, and the swap exchanges those: cells where they are addresses, values where they are stored or
//! compared. A value is exchanged only in the slots of its *sort*: slots between which values are copied, or
//! that are compared with each other, are of one sort. So in Lamport's mutex the 1 in `x` becomes a 2 when
//! the first two threads change places, and the 1 in a flag stays.
//!
//! A proposal is worth nothing until it is *checked*: swapping must turn every table of the machine into
//! itself, thread by thread, node by node, the goal included. A value that moves may only be copied and
//! compared with `==` and `!=`; cells move only where all addresses are constants. Then the swap is an
//! automorphism of the machine. The initial state need not be its own image: what can be reached from the one
//! image can be reached from the other, image by image. So whatever else is known of a thread, because it
//! begins where it does or because memory does, must be the same of all members before it may be used of
//! representatives. Swaps of one thread with each of several others, over the same cells and values, generate
//! all permutations of them: a *group*. `sorts` finds the sorts, `swap` proposes and checks, and [`groups`]
//! puts swaps together. This is the automorphism group of `[EmersonSistla96]` and the scalarsets of
//! `[IpDill96]`, found in the tables and not declared in the text. Not here: what the machine does with
//! groups (`canonical`).

mod sorts;
mod swap;

use super::compile::{CInstr, CThread, Compiled, Node};
use crate::model::Value;
use sorts::Sorts;
use std::collections::BTreeSet;
use swap::Swap;

/// With more threads than this no groups are looked for.
const MOST_THREADS: usize = 32;
/// Cells beyond this share bits in sets of accesses, which a swap would not respect.
const MOST_CELLS: usize = 62;

/// Threads that may be permuted, and what moves with them.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// In ascending order.
    pub members: Vec<usize>,
    /// Each a cell for every member.
    pub cells: Vec<Vec<u32>>,
    /// Per sort that holds values which stand for members: these values.
    pub values: Vec<(u32, Vec<Value>)>,
}

/// All groups of a program, and the sort of each slot.
pub(crate) fn groups(code: &Compiled) -> (Vec<Group>, Vec<u32>) {
    let threads = code.threads.len();
    if threads > MOST_THREADS || code.cells > MOST_CELLS {
        return (vec![], vec![]);
    }
    let leader = leaders(code);
    if leader.iter().enumerate().all(|(t, l)| t == *l) {
        return (vec![], vec![]);
    }
    let mut sorts = Sorts::of(code);
    for (t, &l) in leader.iter().enumerate().filter(|(t, l)| t != *l) {
        sorts.join_threads(code, l, t);
    }
    let sorts = sorts.into_labels();
    let mut groups = Vec::new();
    let mut taken = vec![false; threads];
    for first in 0..threads {
        if std::mem::replace(&mut taken[first], true) {
            continue;
        }
        let others = (first + 1..threads).filter(|&t| leader[t] == leader[first] && !taken[t]);
        let swaps: Vec<Swap> = others.filter_map(|t| Swap::checked(code, &sorts, first, t)).collect();
        let group = gathered(swaps);
        group.iter().flat_map(|g| &g.members).for_each(|&t| taken[t] = true);
        groups.extend(group);
    }
    (groups, sorts)
}

/// Per thread the first one whose graph has the same shape.
fn leaders(code: &Compiled) -> Vec<usize> {
    let threads = &code.threads;
    let same = |t: usize, u: usize| {
        code.registers(t).len() == code.registers(u).len() && same_shape(&threads[t], &threads[u])
    };
    (0..threads.len()).map(|t| (0..t).find(|&u| same(t, u)).unwrap_or(t)).collect()
}

/// Do the graphs agree up to constants and expressions?
fn same_shape(t: &CThread, u: &CThread) -> bool {
    let kind = |op: &CInstr| std::mem::discriminant(op);
    let same_node = |(m, n): (&Node, &Node)| {
        let mut edges = m.edges.iter().zip(&n.edges);
        m.edges.len() == n.edges.len()
            && edges.all(|(d, e)| d.id == e.id && d.to == e.to && kind(&d.instr) == kind(&e.instr))
    };
    t.nodes.len() == u.nodes.len() && t.nodes.iter().zip(&u.nodes).all(same_node)
}

/// One group of the swaps of a first thread with others, as far as they move the same cells and values of the
/// first.
fn gathered(swaps: Vec<Swap>) -> Option<Group> {
    let mut swaps = swaps.into_iter();
    let first = swaps.next()?;
    let mut group = Group {
        members: vec![first.a, first.b],
        cells: first.new_cells.iter().map(|&c| vec![c, first.cell(c)]).collect(),
        values: Vec::new(),
    };
    for &(sort, v) in &first.new_values {
        let pair = [v, first.value(sort, v)];
        match group.values.iter_mut().find(|(s, _)| *s == sort) {
            // Two values of one sort for each member: no member's own.
            Some(_) => return None,
            None => group.values.push((sort, pair.to_vec())),
        }
    }
    for swap in swaps {
        let cells = group.cells.iter().map(|family| (swap.cell(family[0]), family));
        let values = group.values.iter().map(|(sort, family)| (swap.value(*sort, family[0]), family));
        let known: BTreeSet<u32> = group.cells.iter().flatten().copied().collect();
        let fits = swap.new_cells.len() == group.cells.len()
            && swap.new_values.len() == group.values.len()
            && cells.clone().all(|(c, _)| !known.contains(&c))
            && values.clone().all(|(v, family)| !family.contains(&v));
        if fits {
            let (cells, values): (Vec<u32>, Vec<Value>) =
                (cells.map(|(c, _)| c).collect(), values.map(|(v, _)| v).collect());
            group.members.push(swap.b);
            group.cells.iter_mut().zip(cells).for_each(|(family, c)| family.push(c));
            group.values.iter_mut().zip(values).for_each(|((_, family), v)| family.push(v));
        }
    }
    Some(group)
}

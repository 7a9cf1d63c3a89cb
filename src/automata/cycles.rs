//! Which cycles can a thread go round for ever, and what do they leave in its buffer? Acceleration
//! (`[LindenWolper10]`, Section 4).
//!
//! A *cycle* of thread p leads from a node to one below it that has the same configuration and the same languages for
//! all other buffers. On the way the others may do what they like; p stores and loads, and neither commits nor drains
//! its buffer. While others go round cycles of theirs on the way, p stands still, for what it did there could depend
//! on what its buffer holds. So whatever was in the buffer stays, and a word of one language W is appended to it.
//! Going round once more needs one thing: each load of p that looks at what was there before the cycle began must
//! find the same value again. It does, if every word of W that has an entry of that address has the value in the
//! newest one. Then p can go round as often as it likes, from any content of its buffer in the first node, and the
//! others can come along: every state below has one above from which the way leads to it. Several such cycles from
//! one configuration may be mixed if the words of each leave the loads of the others alone in the same way. So a
//! language L becomes L · (W1 | W2 | …)*, and that is exact.
//!
//! The paper asks for more and for less. Its cycles append one word, which misses loops around loops, and all
//! addresses count, not only those that are loaded on the way. On the other hand it mixes a cycle with all
//! that repeats in the language already, wherever that came from: contents that no run has can come of it.

use super::buffers::{Buffers, Lang};
use super::tree::{BufferEffect, Node, NodeId, SearchTree, Via};
use crate::model::{Addr, ThreadId, Value};
use crate::query::Limit;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A way round for one thread.
#[derive(Clone, Debug)]
pub(crate) struct Cycle {
    /// The nodes on the way, each the parent of the next.
    pub path: Vec<NodeId>,
    /// For each of them, what the thread has appended to its buffer since the first.
    pub appended: Vec<Lang>,
    /// What the thread's loads must find in what was there before.
    expected: BTreeSet<(Addr, Value)>,
    /// The threads that do something on the way, be it in cycles on the way.
    moving: BTreeSet<ThreadId>,
}

impl Cycle {
    /// What going round once appends.
    pub(crate) fn word(&self) -> Lang {
        *self.appended.last().expect("a path has a first node")
    }
}

impl SearchTree<'_> {
    /// A node that stands for all that the thread's cycles lead to, if a cycle ends in this one. It includes
    /// this one, and is not added to the tree.
    pub(crate) fn accelerated(&mut self, end: NodeId) -> Result<Option<Node>, Limit> {
        let mut took_away = vec![false; self.program.threads().len()];
        let mut below = end;
        while let Some(above) = self.node(below).parent {
            self.limits.spend(1)?;
            if let Via::Step { thread, effect, .. } = &self.node(below).via {
                took_away[thread.index()] |= effect.takes_away();
            }
            if let Some(t) = self.only_difference(above, end).filter(|t| !took_away[t.index()])
                && let Some(cycle) = self.cycle(above, end, t)?
            {
                return self.repeated(above, t, cycle).map(Some);
            }
            below = above;
        }
        Ok(None)
    }

    /// The one thread whose buffers differ, if that is all that does.
    fn only_difference(&self, above: NodeId, below: NodeId) -> Option<ThreadId> {
        let (a, b) = (self.node(above), self.node(below));
        if a.configuration != b.configuration {
            return None;
        }
        let mut different =
            self.program.thread_ids().filter(|t| a.buffers[t.index()] != b.buffers[t.index()]);
        different.next().filter(|_| different.next().is_none())
    }

    /// The way from the one node to the other as a cycle of the thread, if it is one.
    fn cycle(&mut self, above: NodeId, below: NodeId, t: ThreadId) -> Result<Option<Cycle>, Limit> {
        let base = self.buffer(above, t);
        let path = self.path(above, below);
        let mut cycle = Cycle {
            path,
            appended: vec![Buffers::EMPTY],
            expected: BTreeSet::new(),
            moving: BTreeSet::new(),
        };
        for k in 1..cycle.path.len() {
            let so_far = cycle.word();
            let via = self.node(cycle.path[k]).via.clone();
            match &via {
                Via::Start => {}
                Via::Step { thread, .. } => drop(cycle.moving.insert(*thread)),
                Via::Cycles { cycles, .. } => cycle.moving.extend(cycles.iter().flat_map(|c| &c.moving)),
            }
            let more = match via {
                Via::Step { thread, effect: BufferEffect::Store(letter), .. } if thread == t => {
                    self.buffers.store(so_far, letter)?
                }
                Via::Step { thread, effect: BufferEffect::Load { addr, value, memory_tells }, .. }
                    if thread == t =>
                {
                    if self.buffers.newest(so_far, addr)?.contains(&None) {
                        let newest = self.buffers.newest(base, addr)?;
                        if !newest.iter().all(|v| v.map_or(memory_tells, |v| v == value)) {
                            return Ok(None);
                        }
                        cycle.expected.insert((addr, value));
                    }
                    let kept = self.buffers.load(so_far, addr, value, true)?;
                    kept.expect("the way exists, so some content explains what was loaded")
                }
                Via::Cycles { thread, cycles } if thread == t => {
                    for &(addr, value) in cycles.iter().flat_map(|inner| &inner.expected) {
                        if self.buffers.newest(so_far, addr)?.contains(&None) {
                            cycle.expected.insert((addr, value));
                        }
                    }
                    let words: Vec<Lang> = cycles.iter().map(Cycle::word).collect();
                    self.buffers.repeat(so_far, &words)?
                }
                // What happens to the thread's buffer there depends on what was in it before.
                Via::Cycles { cycles, .. } if cycles.iter().any(|other| other.moving.contains(&t)) => {
                    return Ok(None);
                }
                _ => so_far,
            };
            cycle.appended.push(more);
        }
        Ok(self.agree(&cycle, &cycle)?.then_some(cycle))
    }

    /// Do the words of one cycle leave what the loads of another find as it is?
    fn agree(&mut self, one: &Cycle, other: &Cycle) -> Result<bool, Limit> {
        for &(addr, value) in &other.expected {
            let newest = self.buffers.newest(one.word(), addr)?;
            if newest.iter().flatten().any(|&v| v != value) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The node with the cycle repeated; mixed with those that lead to it already, if that can be.
    fn repeated(&mut self, above: NodeId, t: ThreadId, cycle: Cycle) -> Result<Node, Limit> {
        let (mut base, mut cycles) = (above, vec![]);
        if let (Via::Cycles { thread, cycles: known }, Some(parent)) =
            (self.node(above).via.clone(), self.node(above).parent)
            && thread == t
        {
            let mut all_agree = true;
            for other in known.iter() {
                all_agree &= self.agree(&cycle, other)? && self.agree(other, &cycle)?;
            }
            if all_agree {
                (base, cycles) = (parent, known.to_vec());
            }
        }
        cycles.push(cycle);
        let words: Vec<Lang> = cycles.iter().map(Cycle::word).collect();
        let Node { configuration, ref buffers, .. } = *self.node(base);
        let mut buffers = buffers.clone();
        buffers[t.index()] = self.buffers.repeat(buffers[t.index()], &words)?;
        let via = Via::Cycles { thread: t, cycles: Arc::from(cycles) };
        Ok(Node { configuration, buffers, parent: Some(base), via })
    }
}

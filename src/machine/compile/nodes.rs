//! What is known at each location of a thread?
//!
//! What it may touch from there on, whether its next step can change the goal (*visible*), whether that step
//! may close a cycle of the graph, and what a goal state may ask for that can no longer happen (*lost*).

use super::Compiler;
use super::code::{CEdge, CInstr};
use super::compiled::{CThread, Node};
use super::goal::{FAR, distance};
use super::jump_table;
use super::scheduling::{deterministic, retreating};
use super::slots::Numbering;
use crate::analysis::access::{self, Access};
use crate::analysis::interval::Interval;
use crate::machine::MemoryModel;
use crate::model::{Edge, EdgeId, Instr, Loc, Reg, ThreadId, Value};
use crate::query::{Limit, When};
use std::sync::Arc;

/// A goal that names more locations of a thread than this is not asked which of them are out of reach.
const MOST_NAMED: usize = 64;

/// What holds at each location of a thread.
struct Facts {
    may_close_cycle: Vec<bool>,
    visible: Vec<bool>,
    visible_effect: Vec<bool>,
    may_trap: Vec<bool>,
    lost: Vec<bool>,
    /// Whether a goal state may ask for it.
    named: Vec<bool>,
    /// The registers of the thread that have a field, and those of which not all values can be told apart:
    /// one bit each.
    fields: Vec<u64>,
    stand_ins: Vec<u64>,
}

impl Compiler<'_> {
    pub(super) fn thread(
        &self,
        t: ThreadId,
        numbering: &Numbering,
        slots: &[Option<Interval>],
    ) -> Result<CThread, Limit> {
        let thread = self.program.thread(t);
        let facts = self.facts(t, numbering, slots)?;
        self.limits.reserve(thread.graph().node_count() * size_of::<Node>())?;
        let mut nodes: Vec<Option<Node>> = vec![None; thread.graph().node_count() + 2];
        // Neighbours mostly have the same dead registers.
        let mut last: Arc<[u64]> = [].into();
        for loc in thread.locations() {
            self.limits.spend(8 + facts.fields.len())?;
            let mut node = self.node(t, loc, numbering, &facts);
            match node.dead == last {
                true => node.dead = last.clone(),
                false => last = node.dead.clone(),
            }
            nodes[numbering.node(loc) as usize] = Some(node);
        }
        for extra in [numbering.trap(), numbering.stuck()] {
            nodes[extra as usize] =
                Some(Node { plain: extra == numbering.stuck(), ..self.dead_end(t, &facts) });
        }
        let mut nodes: Vec<Node> = nodes.into_iter().map(|n| n.expect("every number names a node")).collect();
        Ok(CThread {
            jump_tables: jump_table::find(&mut nodes),
            nodes,
            node_of: numbering.nodes.clone(),
            to_end: numbering.spread(&distance(thread, &[thread.end()]), FAR),
            end: numbering.node(thread.end()),
            trap: numbering.trap(),
            stuck: numbering.stuck(),
        })
    }

    fn node(&self, t: ThreadId, loc: Loc, numbering: &Numbering, facts: &Facts) -> Node {
        let i = loc.index();
        let edges = self.program.thread(t).edges_from(loc);
        let known = |id: EdgeId, e: &Edge| {
            if e.instr.is_local() || self.only_buffers(&e.instr) || self.faint.is_faint(t, id) {
                return Some(Access::NONE);
            }
            let constant = e.instr.address().is_none_or(|a| a.constant().is_some());
            constant.then(|| access::of_instr(self.program, &e.instr, || self.intervals.address(t, e)))
        };
        let next = edges.iter().try_fold(Access::NONE, |all, (id, e)| Some(all.union(known(*id, e)?)));
        Node {
            scheduling_point: numbering.is_scheduling_point(loc),
            future: self.futures.at(t, loc),
            next,
            may_be_ample: self.reductions.por
                && deterministic(&edges)
                && !facts.may_close_cycle[i]
                && !facts.visible[i],
            may_trap: facts.may_trap[i],
            lost: facts.lost[i],
            visible: facts.visible[i],
            visible_effect: facts.visible_effect[i],
            named: self.observed.is_location(t, loc),
            plain: !facts.named[i],
            dead: without(&facts.fields, self.live.words(t, loc)),
            folded: if numbering.is_scheduling_point(loc) {
                self.folded(t, loc, &facts.stand_ins)
            } else {
                vec![]
            },
            live_cells: self.live_cells.at(t, loc),
            jump: None,
            edges: edges.into_iter().map(|(id, e)| self.edge(t, id, e, numbering)).collect(),
        }
    }

    /// A node from which nothing goes on.
    fn dead_end(&self, t: ThreadId, facts: &Facts) -> Node {
        let kept: Vec<u64> = words(self.program.thread(t).registers().len(), |r| {
            !self.reductions.liveness || self.observed.is_register(t, Reg(r as u16))
        });
        Node {
            edges: vec![],
            scheduling_point: true,
            future: Access::NONE,
            next: Some(Access::NONE),
            may_be_ample: false,
            may_trap: false,
            lost: true,
            visible: false,
            visible_effect: false,
            named: false,
            plain: false,
            dead: without(&facts.fields, kept.iter().copied()),
            folded: vec![],
            live_cells: 0,
            jump: None,
        }
    }

    fn facts(&self, t: ThreadId, numbering: &Numbering, slots: &[Option<Interval>]) -> Result<Facts, Limit> {
        let thread = self.program.thread(t);
        let registers = thread.registers().len();
        // Some walks over the graph, and one for each location that the goal names.
        self.limits.spend(8 * thread.graph().edge_count())?;
        let closes = retreating(thread, |_| false);
        let sources = |chosen: &dyn Fn(EdgeId, &Edge) -> bool| -> Vec<Loc> {
            thread.edges().filter(|(id, e)| chosen(*id, e)).map(|(_, e)| e.from).collect()
        };
        let in_next_step = |seeds: Vec<Loc>| thread.reaching(seeds, |e| !numbering.is_scheduling_point(e.to));
        let named = self.named_locs(t);
        let may_trap = thread.reaching(sources(&|_, e| self.may_trap(t, e)), |_| true);
        let could_trap = may_trap.contains(&true);
        let harmless = may_trap.iter().map(|may| could_trap && !may).collect();
        // With so many that finding a way to each would take long, every location counts as a loss.
        let lost = match named.len() {
            0..=MOST_NAMED => named.iter().fold(harmless, |lost: Vec<bool>, &goal| {
                let reaching = thread.reaching([goal], |_| true);
                lost.iter().zip(reaching).map(|(lost, reaches)| *lost || !reaches).collect()
            }),
            _ => vec![true; thread.graph().node_count()],
        };
        Ok(Facts {
            may_close_cycle: in_next_step(sources(&|id, _| closes[id.index()])),
            visible: in_next_step(sources(&|_, e| self.is_visible(t, e))),
            visible_effect: in_next_step(sources(&|_, e| self.is_visible(t, e) && !self.only_arrives(t, e))),
            may_trap,
            lost,
            named: thread.locations().map(|l| named.binary_search(&l).is_ok()).collect(),
            fields: words(registers, |r| slots[self.register_base[t.index()] + r].is_some()),
            stand_ins: words(registers, |r| self.stand_ins[t.index()].contains_key(&Reg(r as u16))),
        })
    }

    /// The locations of the thread that a goal state may ask for: its end among them if final states are
    /// looked at.
    fn named_locs(&self, t: ThreadId) -> Vec<Loc> {
        let mut named = self.observed.locations[t.index()].clone();
        if self.goal.clauses.iter().any(|c| c.when == When::Final) {
            named.push(self.program.thread(t).end());
        }
        named.sort();
        named.dedup();
        named
    }

    /// Can the thread go wrong on this edge, by what its registers may hold?
    fn may_trap(&self, t: ThreadId, edge: &Edge) -> bool {
        let cells = self.program.cells() as Value;
        let outside = |i: Interval| i.lo < 0 || i.hi >= cells;
        matches!(edge.instr, Instr::Assert(_))
            || edge.instr.exprs().iter().any(|e| e.may_divide_by_zero())
            || edge.instr.address().is_some() && outside(self.intervals.address(t, edge))
    }

    fn edge(&self, t: ThreadId, id: EdgeId, edge: &Edge, numbering: &Numbering) -> CEdge {
        let instr = match self.faint.is_faint(t, id) {
            true => CInstr::Nop,
            false => CInstr::new(&edge.instr, self.register_base[t.index()]),
        };
        CEdge { id, instr, to: numbering.node(edge.to) }
    }

    /// Does the instruction touch nothing but the thread's own buffer for now?
    fn only_buffers(&self, instr: &Instr) -> bool {
        self.model != MemoryModel::Sc && matches!(instr, Instr::Store { .. })
    }
}

/// A set of the numbers up to one of which something holds, one bit each.
fn words(count: usize, holds: impl Fn(usize) -> bool) -> Vec<u64> {
    let mut words = vec![0; count.div_ceil(u64::BITS as usize)];
    (0..count).filter(|&k| holds(k)).for_each(|k| words[k / 64] |= 1 << (k % 64));
    words
}

/// One set without another.
fn without(set: &[u64], other: impl Iterator<Item = u64>) -> Arc<[u64]> {
    set.iter().zip(other).map(|(a, b)| a & !b).collect()
}

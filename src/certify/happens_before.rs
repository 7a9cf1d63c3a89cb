//! What depends on what in a TSO computation?
//!
//! The happens-before relation of `[LazyTSO15]`, Section 4, which goes back to `[ShashaSnir88]`: program
//! order, the equivalence of a store with its flush, and conflicts on memory. A program is robust iff no TSO
//! computation has a cycle in it.
//!
//! Two things are not as in the paper. An early read happens before the next write that follows the store it
//! read from; without that, `programs/litmus/early-read.tso` would pass for robust. A `membarrier` is a fence in all
//! threads at once: it comes after all that they have done, and before all that they do next. And all events of a
//! `lock` … `unlock` block are one event, because nothing can come between them.
//!
//! Invariant: events of one class (a store and its flush, a block) are never ordered among themselves, unless
//! by way of an event outside. Everything here is read off the events alone, which are taken to be a
//! computation: whether they are, `semantics::replay` says. Not here: the shape of a witness, which is
//! `witness.rs`.

use crate::model::{Addr, ThreadId};
use crate::query::{Event, EventKind, Limit, Limits, Relation, Source};
use bit_set::BitSet;
use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::unionfind::UnionFind;
use petgraph::visit::{Dfs, EdgeRef};
use std::collections::{HashMap, VecDeque};

/// The nodes are the events, by their index. Program order and coherence are given by their immediate steps.
pub type Graph = DiGraph<(), Relation, u32>;

/// The happens-before relation of one computation. What happens after one event is found by walking: nobody
/// asks of more than a few, and the whole closure of a long computation would take more memory than
/// everything else.
#[derive(Clone, Debug)]
pub struct HappensBefore {
    graph: Graph,
    /// Per event, the first of the events that are one with it.
    class: Vec<usize>,
    /// Per event, its strongly connected component.
    component: Vec<usize>,
    /// Per component, whether it has several classes: then each of them happens after itself.
    cyclic: Vec<bool>,
}

impl HappensBefore {
    pub fn of(events: &[Event]) -> HappensBefore {
        let mut graph = Graph::with_capacity(events.len(), 4 * events.len());
        for _ in events {
            graph.add_node(());
        }
        order_threads(&mut graph, events);
        equate(&mut graph, events);
        order_memory(&mut graph, events);
        let class = classes(&graph);
        let (component, cyclic) = components(&graph, &class);
        HappensBefore { graph, class, component, cyclic }
    }

    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Are the two one event?
    pub fn same(&self, a: usize, b: usize) -> bool {
        self.class[a] == self.class[b]
    }

    /// The events that happen after one. Not because they are one event with it, but by a conflict or by
    /// program order.
    pub fn after(&self, event: usize) -> BitSet {
        let mut after: BitSet = BitSet::new();
        let mut walk = Dfs::new(&self.graph, NodeIndex::new(event));
        let own = self.component[event];
        while let Some(node) = walk.next(&self.graph) {
            if self.component[node.index()] != own || self.cyclic[own] {
                after.insert(node.index());
            }
        }
        after
    }

    /// Then no SC computation has this happens-before relation.
    pub fn is_cyclic(&self) -> bool {
        self.cyclic.contains(&true)
    }

    /// A cycle through as few classes as possible: events, each with its relation to the next, and the last
    /// with its relation to the first.
    ///
    /// All relations but `Same` lead from an event to a later one. So a cycle goes through a class that is
    /// torn apart, with other events between its own: it is enough to begin with those.
    pub fn cycle(&self, limits: &Limits) -> Result<Option<Vec<(usize, Relation)>>, Limit> {
        let mut members = vec![Vec::new(); self.class.len()];
        for (event, &class) in self.class.iter().enumerate() {
            members[class].push(event);
        }
        let torn = |own: &[usize]| own.last().is_some_and(|last| last - own[0] >= own.len());
        let cyclic = |class: usize| self.cyclic[self.component[class]];
        let mut shortest: Option<Vec<Link>> = None;
        for start in (0..members.len()).filter(|&class| torn(&members[class]) && cyclic(class)) {
            let most = shortest.as_ref().map_or(usize::MAX, |links| links.len() - 1);
            shortest = self.cycle_through(start, &members, most, limits)?.or(shortest);
        }
        Ok(shortest.map(|links| self.events_of(&links)))
    }

    /// The events of a cycle of classes.
    fn events_of(&self, links: &[Link]) -> Vec<(usize, Relation)> {
        let mut cycle = Vec::new();
        for (i, link) in links.iter().enumerate() {
            cycle.push((link.from, link.relation));
            if link.to != links[(i + 1) % links.len()].from {
                cycle.push((link.to, Relation::Same));
            }
        }
        cycle
    }

    /// Breadth-first search from the class back to it, in at most so many steps.
    fn cycle_through(
        &self,
        start: usize,
        members: &[Vec<usize>],
        most: usize,
        limits: &Limits,
    ) -> Result<Option<Vec<Link>>, Limit> {
        let mut came_by: Vec<Option<Link>> = vec![None; members.len()];
        limits.spend(1 + members.len() / 8)?;
        let mut overtaken = BitSet::new();
        let mut todo = VecDeque::from([(start, 1)]);
        while let Some((class, steps)) = todo.pop_front()
            && steps <= most
        {
            let links = self.links_from(&members[class], &mut overtaken);
            limits.spend(1 + links.len())?;
            for link in links {
                let to = self.class[link.to];
                if to == start {
                    return Ok(Some(self.walk_back(link, &came_by)));
                }
                came_by[to].get_or_insert_with(|| {
                    todo.push_back((to, steps + 1));
                    link
                });
            }
        }
        Ok(None)
    }

    fn walk_back(&self, last: Link, came_by: &[Option<Link>]) -> Vec<Link> {
        let mut links = vec![last];
        while let Some(link) = came_by[self.class[links[links.len() - 1].from]] {
            links.push(link);
        }
        links.reverse();
        links
    }

    /// The ways out of a class. Program order leads to everything that the thread does later, in one step;
    /// events in `overtaken` have been met in that way before, and all that follows them too.
    fn links_from(&self, members: &[usize], overtaken: &mut BitSet) -> Vec<Link> {
        let mut links = Vec::new();
        for &from in members {
            for edge in self.graph.edges(NodeIndex::new(from)) {
                let (to, relation) = (edge.target().index(), *edge.weight());
                if self.same(from, to) {
                    continue;
                }
                if relation == Relation::ProgramOrder {
                    let later = std::iter::successors(Some(to), |&e| self.next_of_thread(e));
                    let new = later.take_while(|&e| overtaken.insert(e));
                    links.extend(new.map(|to| Link { from, to, relation }));
                } else {
                    links.push(Link { from, to, relation });
                }
            }
        }
        links
    }

    fn next_of_thread(&self, event: usize) -> Option<usize> {
        let mut edges = self.graph.edges(NodeIndex::new(event));
        edges.find(|e| *e.weight() == Relation::ProgramOrder).map(|e| e.target().index())
    }
}

/// One step of a cycle, from one class to another.
#[derive(Clone, Copy, Debug)]
struct Link {
    from: usize,
    to: usize,
    relation: Relation,
}

fn relate(graph: &mut Graph, from: usize, relation: Relation, to: usize) {
    graph.add_edge(NodeIndex::new(from), NodeIndex::new(to), relation);
}

fn order_threads(graph: &mut Graph, events: &[Event]) {
    let mut last: HashMap<ThreadId, usize> = HashMap::new();
    // The last event that waited for all threads' buffers.
    let mut barrier: Option<usize> = None;
    for (i, event) in events.iter().enumerate().filter(|(_, e)| e.kind != EventKind::Flush) {
        if let Some(barrier) = barrier
            && events[barrier].thread() != event.thread()
            && last.get(&event.thread()).is_none_or(|&before| before < barrier)
        {
            relate(graph, barrier, Relation::Membarrier, i);
        }
        if event.kind == EventKind::Membarrier {
            for (_, &before) in last.iter().filter(|(thread, _)| **thread != event.thread()) {
                relate(graph, before, Relation::Membarrier, i);
            }
            barrier = Some(i);
        }
        if let Some(before) = last.insert(event.thread(), i) {
            relate(graph, before, Relation::ProgramOrder, i);
        }
    }
}

fn equate(graph: &mut Graph, events: &[Event]) {
    let mut same = |a, b| {
        relate(graph, a, Relation::Same, b);
        relate(graph, b, Relation::Same, a);
    };
    // The `lock` of the block that holds memory; there is one at a time, and its buffer was empty at its
    // beginning.
    let mut block: Option<usize> = None;
    for (i, event) in events.iter().enumerate() {
        if let Some(store) = event.store {
            same(store, i);
        }
        match block {
            Some(lock) if events[lock].thread() == event.thread() => {
                same(lock, i);
                if is_lock_or_unlock(event) {
                    block = None;
                }
            }
            None if is_lock_or_unlock(event) => block = Some(i),
            _ => {}
        }
    }
}

/// Locked instructions that act on memory have an address, or have gone wrong for want of one.
fn is_lock_or_unlock(event: &Event) -> bool {
    event.kind == EventKind::Locked && event.address.is_none() && event.trap.is_none()
}

/// What has happened to a cell so far.
#[derive(Default)]
struct History {
    last_write: Option<usize>,
    /// Who has read what the last write left, or what was there initially.
    readers: Vec<usize>,
}

impl History {
    fn read(&mut self, graph: &mut Graph, load: usize) {
        if let Some(write) = self.last_write {
            relate(graph, write, Relation::ReadsFrom, load);
        }
    }

    fn write(&mut self, graph: &mut Graph, write: usize) {
        if let Some(before) = self.last_write.replace(write) {
            relate(graph, before, Relation::Coherence, write);
        }
        for reader in self.readers.drain(..) {
            relate(graph, reader, Relation::FromRead, write);
        }
    }
}

/// Conflicts, in the order in which memory is reached. An early read takes part when its store does: from
/// then on it is a reader like others, and the next write comes after it.
fn order_memory(graph: &mut Graph, events: &[Event]) {
    let mut cells: HashMap<Addr, History> = HashMap::new();
    let mut early: HashMap<usize, Vec<usize>> = HashMap::new();
    for (i, event) in events.iter().enumerate() {
        let Some(address) = event.address else { continue };
        let cell = cells.entry(address).or_default();
        match (event.kind, event.source) {
            (EventKind::Load, Some(Source::Buffer(store))) => {
                relate(graph, store, Relation::ReadsFrom, i);
                early.entry(store).or_default().push(i);
            }
            (EventKind::Load, _) => {
                cell.read(graph, i);
                cell.readers.push(i);
            }
            (EventKind::Locked, _) => {
                cell.read(graph, i);
                cell.write(graph, i);
            }
            (EventKind::Flush, _) => {
                cell.write(graph, i);
                cell.readers.extend(event.store.and_then(|store| early.remove(&store)).into_iter().flatten());
            }
            _ => {}
        }
    }
}

fn classes(graph: &Graph) -> Vec<usize> {
    let mut sets: UnionFind<usize> = UnionFind::new(graph.node_count());
    for edge in graph.edge_references().filter(|e| *e.weight() == Relation::Same) {
        sets.union(edge.source().index(), edge.target().index());
    }
    let mut first: HashMap<usize, usize> = HashMap::new();
    sets.into_labeling().into_iter().enumerate().map(|(i, set)| *first.entry(set).or_insert(i)).collect()
}

/// Per event its component, and per component whether it has several classes. Classes lie inside components.
fn components(graph: &Graph, class: &[usize]) -> (Vec<usize>, Vec<bool>) {
    let components = kosaraju_scc(graph);
    let mut component = vec![0; graph.node_count()];
    for (c, members) in components.iter().enumerate() {
        members.iter().for_each(|m| component[m.index()] = c);
    }
    let several =
        |members: &Vec<NodeIndex<u32>>| members.iter().any(|m| class[m.index()] != class[members[0].index()]);
    (component, components.iter().map(several).collect())
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::front::tso;
    use crate::model::Program;
    use crate::query::{Act, Action, Goal, Model};
    use crate::semantics::{State, replay};
    use Relation::*;

    fn cycle_of(hb: &HappensBefore) -> Option<Vec<(usize, Relation)>> {
        hb.cycle(&Limits::default()).unwrap()
    }

    /// The simplified Dekker of Figure 1, with something to spare in both threads.
    pub const DEKKER: &str = "
        shared x, y, z
        thread p0; store [x], 1; load r, [y]; nop; end
        thread p1; store [y], 1; load r, [x]; load r, [z]; end
    ";

    pub const EARLY_READ: &str = "
        shared x, z
        thread p0; store [x], 1; store [z], 1; load r, [x]; end
        thread p1; store [x], 2; store [z], 2; end
    ";

    pub const BLOCK: &str = "
        shared x, y
        thread p0; lock; load r, [x]; store [y], 1; unlock; end
        thread p1; store [x], 2; load s, [y]; end
    ";

    pub fn program(source: &str) -> Program {
        tso::read(source, &[], &Limits::default()).expect("the source is a program").program
    }

    /// The run of a schedule: `0` lets thread 0 do its next instruction, `0!` flushes its oldest store.
    pub fn run(source: &str, schedule: &str) -> Vec<Event> {
        let program = program(source);
        let mut state = State::initial(&program);
        let mut actions = Vec::new();
        for word in schedule.split_whitespace() {
            let thread = ThreadId(word.trim_end_matches('!').parse().expect("a thread's number"));
            let steps = crate::semantics::tso::thread_steps(&program, &state, thread);
            let flush = word.ends_with('!');
            let step = steps.into_iter().find(|s| (s.event.action.act == Act::Flush) == flush);
            let step = step.unwrap_or_else(|| panic!("{word} is not possible after {actions:?}"));
            actions.push(step.event.action);
            state = step.state;
        }
        perform(&program, actions)
    }

    pub fn perform(program: &Program, actions: Vec<Action>) -> Vec<Event> {
        replay::perform(program, Model::Tso, &Goal::default(), actions, &Limits::default())
            .expect("the run is possible")
            .0
    }

    fn cycle(events: &[Event]) -> Option<Vec<(usize, Relation)>> {
        let hb = HappensBefore::of(events);
        assert_eq!(hb.is_cyclic(), cycle_of(&hb).is_some());
        cycle_of(&hb)
    }

    fn edges(hb: &HappensBefore, relation: Relation) -> Vec<(usize, usize)> {
        let edges = hb.graph().edge_references().filter(|e| *e.weight() == relation);
        edges.map(|e| (e.source().index(), e.target().index())).collect()
    }

    #[test]
    fn figure_4_is_a_cycle_of_four() {
        let events = run(DEKKER, "0 0 1 1! 1 0!");
        let around =
            [(0, ProgramOrder), (1, FromRead), (3, Same), (2, ProgramOrder), (4, FromRead), (5, Same)];
        assert_eq!(cycle(&events).expect("it is cyclic"), around);
    }

    #[test]
    fn the_cycle_skips_local_events() {
        let padded = "
            shared x, y
            thread p0; store [x], 1; nop; nop; load r, [y]; end
            thread p1; store [y], 1; nop; nop; nop; load r, [x]; end
        ";
        let cycle = cycle(&run(padded, "0 0 0 0 1 1! 1 1 1 1 0!")).expect("it is cyclic");
        assert_eq!(cycle.iter().filter(|(_, relation)| *relation != Same).count(), 4);
    }

    #[test]
    fn turns_make_no_cycle() {
        assert_eq!(cycle(&run(DEKKER, "0 0! 0 1 1! 1")), None);
        assert_eq!(cycle(&run(EARLY_READ, "0 0! 0 0! 0 1 1! 1 1!")), None);
        assert_eq!(cycle(&run(BLOCK, "1 1! 0 0 0 0! 0 1")), None);
    }

    #[test]
    fn a_delay_that_nobody_notices_makes_no_cycle() {
        assert_eq!(cycle(&run(DEKKER, "0 0 0! 1 1! 1")), None);
    }

    #[test]
    fn events_that_are_one_are_not_after_each_other() {
        let hb = HappensBefore::of(&run(BLOCK, "0 0 0 0! 0"));
        assert!((0..5).all(|a| (0..5).all(|b| hb.same(a, b) && !hb.after(a).contains(b))));
        let hb = HappensBefore::of(&run(EARLY_READ, "0 0 0 0! 0!"));
        assert!(hb.same(0, 3) && !hb.after(0).contains(3) && !hb.after(3).contains(0));
        assert!(hb.after(0).contains(2) && hb.after(3).contains(2) && !hb.after(2).contains(0));
    }

    #[test]
    fn an_early_read_comes_before_what_overwrites_its_store() {
        let events = run(EARLY_READ, "0 0 0 0! 1 1! 1 1! 0!");
        assert_eq!(events[2].source, Some(Source::Buffer(0)));
        let hb = HappensBefore::of(&events);
        assert_eq!(edges(&hb, ReadsFrom), [(0, 2)]);
        assert_eq!(edges(&hb, FromRead), [(2, 5)]);
        let around = [
            (1, ProgramOrder),
            (2, FromRead),
            (5, Same),
            (4, ProgramOrder),
            (6, Same),
            (7, Coherence),
            (8, Same),
        ];
        assert_eq!(cycle(&events).expect("it is cyclic"), around);
        let unread = run(EARLY_READ, "0 0 0! 1 1! 1 1! 0!");
        assert_eq!(cycle(&unread), None, "the stores alone have an SC order");
    }

    #[test]
    fn an_early_read_before_the_flush_of_its_store_is_before_nothing_in_memory() {
        let hb = HappensBefore::of(&run(EARLY_READ, "0 0 0 1 1!"));
        assert_eq!(edges(&hb, FromRead), []);
    }

    #[test]
    fn a_block_is_one_event() {
        let events = run(BLOCK, "1 1 0 0 0 0! 0 1!");
        let cycle = cycle(&events).expect("it is cyclic");
        assert_eq!(cycle.iter().filter(|(_, relation)| *relation != Same).count(), 3);
    }

    #[test]
    fn a_locked_instruction_reads_and_writes() {
        let source = "
            shared x
            thread p0; xchg r, [x], 1; end
            thread p1; load r, [x]; xchg r, [x], 2; load r, [x]; end
        ";
        let hb = HappensBefore::of(&run(source, "1 0 1 1"));
        assert_eq!(edges(&hb, ReadsFrom), [(1, 2), (2, 3)]);
        assert_eq!(edges(&hb, Coherence), [(1, 2)]);
        assert_eq!(edges(&hb, FromRead), [(0, 1)]);
        assert!(!hb.is_cyclic());
    }

    #[test]
    fn a_store_that_has_gone_wrong_is_in_no_conflict() {
        let source = "
            shared x
            thread p0; load r, [x]; store [7], 1; end
        ";
        let events = run(source, "0 0");
        assert!(events[1].trap.is_some());
        assert_eq!(HappensBefore::of(&events).graph().edge_count(), 1);
    }
}

//! Is there a cycle that meets every acceptance set? The strongly connected components of a graph, found on
//! the fly `[Couvreur99]`.
//!
//! One depth-first search keeps a stack of the components that its path runs through, each with the sets that
//! its edges meet. An edge back to an open component joins all those above it, and the search ends as soon as
//! one meets all sets: there are several, one for each promise of a formula and each condition of fairness,
//! and none has to be built into the graph. Invariant: of the states that are still open, those from a
//! component's rank up to the next one's are the component.
//!
//! What is found becomes a lasso: a shortest way to the component, then, inside it, shortest ways from one
//! set to the next and back.

use super::visited::{Corner, Inserted, Offset, Visited};
use crate::query::{Limit, Limits};
use std::collections::HashSet;

/// Acceptance sets, one bit each.
pub type Marks = u128;

/// A graph whose edges belong to acceptance sets. States are packed into words; equal words are equal states.
pub trait MarkedGraph {
    type Scratch;
    /// What an edge is told by.
    type Step: Clone;

    fn scratch(&self) -> Self::Scratch;

    /// All sets that there are.
    fn sets(&self) -> Marks;

    fn roots(&self, scratch: &mut Self::Scratch, each: &mut impl FnMut(&[u64]));

    /// Every edge from a state.
    fn follow(
        &self,
        scratch: &mut Self::Scratch,
        state: &[u64],
        each: &mut impl FnMut(&[u64], Marks, Self::Step),
    );
}

/// A run that ends in a cycle.
#[derive(Clone, Debug)]
pub struct FoundLasso<S> {
    pub prefix: Vec<S>,
    pub cycle: Vec<S>,
}

/// What came of a search for cycles.
#[derive(Debug)]
pub struct Emptiness<S> {
    pub lasso: Option<FoundLasso<S>>,
    /// What ended the search before it was complete.
    pub limit: Option<Limit>,
    pub states: u64,
    pub transitions: u64,
    pub bytes: u64,
}

/// What it costs to expand a state, in steps.
const EXPANSION: usize = 64;
/// States between two looks at the memory.
const LOOK: u64 = 1 << 16;

/// A cycle that meets all sets, reachable from a root, unless there is none.
pub fn accepting_lasso<G: MarkedGraph>(graph: &G, limits: &Limits) -> Emptiness<G::Step> {
    let mut search = Components::new(graph, limits);
    let ended = search.run().and_then(|found| match found {
        Some(rank) => search.lasso(rank).map(Some),
        None => Ok(None),
    });
    let (lasso, limit) = match ended {
        Ok(lasso) => (lasso, None),
        Err(limit) => (None, Some(limit)),
    };
    Emptiness {
        lasso,
        limit,
        states: search.ranks.len() as u64,
        transitions: search.transitions,
        bytes: search.bytes(),
    }
}

/// A component on the path of the search.
struct Component {
    /// Of its first state.
    rank: u32,
    /// Met by its edges.
    marks: Marks,
    /// Met by the edge that leads into it.
    entry: Marks,
}

/// A state on the path, and what is left to look at of its edges.
struct PathFrame {
    state: u32,
    /// The first of its edges, and the next one.
    edges: usize,
    next: usize,
    /// Where the words of its successors begin.
    words: usize,
}

struct Edge {
    start: usize,
    length: usize,
    marks: Marks,
}

struct Components<'a, G: MarkedGraph> {
    graph: &'a G,
    limits: &'a Limits,
    scratch: G::Scratch,
    seen: Numbered,
    /// Per state its place in the order of the search, from 1; 0 once its component is done with.
    ranks: Vec<u32>,
    /// States whose component is still open, in the order of their ranks.
    open: Vec<u32>,
    components: Vec<Component>,
    path: Vec<PathFrame>,
    edges: Vec<Edge>,
    words: Vec<u64>,
    transitions: u64,
}

impl<'a, G: MarkedGraph> Components<'a, G> {
    fn new(graph: &'a G, limits: &'a Limits) -> Self {
        Components {
            graph,
            limits,
            scratch: graph.scratch(),
            seen: Numbered::default(),
            ranks: vec![],
            open: vec![],
            components: vec![],
            path: vec![],
            edges: vec![],
            words: vec![],
            transitions: 0,
        }
    }

    fn bytes(&self) -> u64 {
        let path = self.path.capacity() * size_of::<PathFrame>() + self.edges.capacity() * size_of::<Edge>();
        let lists = 4 * (self.ranks.capacity() + self.open.capacity()) + 8 * self.words.capacity();
        self.seen.set.bytes() + (path + lists) as u64
    }

    /// The rank of a component that meets all sets.
    fn run(&mut self) -> Result<Option<u32>, Limit> {
        let mut roots: Vec<Vec<u64>> = Vec::new();
        self.graph.roots(&mut self.scratch, &mut |root| roots.push(root.to_vec()));
        for root in roots {
            let (state, new) = self.seen.number(&root)?;
            if new {
                self.enter(state, &root, 0)?;
                if let Some(rank) = self.descend()? {
                    return Ok(Some(rank));
                }
            }
        }
        Ok(None)
    }

    fn descend(&mut self) -> Result<Option<u32>, Limit> {
        while let Some(frame) = self.path.last_mut() {
            let Some(edge) = self.edges.get(frame.next) else {
                self.leave();
                continue;
            };
            frame.next += 1;
            let (words, marks) = (edge.start..edge.start + edge.length, edge.marks);
            let (state, new) = self.seen.number(&self.words[words.clone()])?;
            if new {
                let words = self.words[words].to_vec();
                self.enter(state, &words, marks)?;
            } else if let rank @ 1.. = self.ranks[state as usize]
                && self.join(rank, marks)
            {
                return Ok(Some(self.components.last().expect("it was joined").rank));
            }
        }
        Ok(None)
    }

    /// The search goes on from a state that it has not seen.
    fn enter(&mut self, state: u32, words: &[u64], entry: Marks) -> Result<(), Limit> {
        self.spend()?;
        let rank = self.open.len() as u32 + 1;
        self.ranks.push(rank);
        self.open.push(state);
        self.components.push(Component { rank, marks: 0, entry });
        let frame =
            PathFrame { state, edges: self.edges.len(), next: self.edges.len(), words: self.words.len() };
        let (edges, found) = (&mut self.edges, &mut self.words);
        self.graph.follow(&mut self.scratch, words, &mut |words, marks, _| {
            edges.push(Edge { start: found.len(), length: words.len(), marks });
            found.extend_from_slice(words);
        });
        self.transitions += (self.edges.len() - frame.edges) as u64;
        self.path.push(frame);
        Ok(())
    }

    fn spend(&self) -> Result<(), Limit> {
        self.limits.spend(EXPANSION)?;
        let states = self.ranks.len() as u64;
        self.limits.progress.store(states, std::sync::atomic::Ordering::Relaxed);
        if let Some(most) = self.limits.states.filter(|&most| states >= most) {
            return Err(Limit::States(most));
        }
        if states.is_multiple_of(LOOK) {
            self.limits.fits(0)?;
        }
        Ok(())
    }

    /// An edge leads back: everything on the path from that rank on is one component. Does it meet all sets?
    fn join(&mut self, rank: u32, edge: Marks) -> bool {
        let mut marks = edge;
        while let Some(top) = self.components.pop_if(|top| top.rank > rank) {
            marks |= top.marks | top.entry;
        }
        let own = self.components.last_mut().expect("the state is in an open component");
        own.marks |= marks;
        own.marks == self.graph.sets()
    }

    /// All edges of the last state have been looked at.
    fn leave(&mut self) {
        let frame = self.path.pop().expect("a state is left that was entered");
        self.edges.truncate(frame.edges);
        self.words.truncate(frame.words);
        let rank = self.ranks[frame.state as usize];
        if self.components.pop_if(|top| top.rank == rank).is_some() {
            for state in self.open.drain(rank as usize - 1..) {
                self.ranks[state as usize] = 0;
            }
        }
    }

    /// A lasso whose cycle lies in the component that was found.
    fn lasso(&mut self, rank: u32) -> Result<FoundLasso<G::Step>, Limit> {
        let mut roots: Vec<Vec<u64>> = Vec::new();
        self.graph.roots(&mut self.scratch, &mut |root| roots.push(root.to_vec()));
        let mut entry = None;
        for root in &roots {
            if self.known(root)?.is_some_and(|state| self.ranks[state as usize] >= rank) {
                entry = Some(root.clone());
            }
        }
        let (prefix, entry) = match entry {
            Some(entry) => (vec![], entry),
            None => {
                let way = self.way(roots, 0, |to_rank, _, _| to_rank >= rank)?;
                (way.steps, way.end)
            }
        };
        let home = self.known(&entry)?;
        let (mut cycle, mut at, mut left) = (Vec::new(), entry, self.graph.sets());
        while left != 0 {
            let way = self.way(vec![at], rank, |_, _, marks| marks & left != 0)?;
            left &= !way.marks;
            cycle.extend(way.steps);
            at = way.end;
        }
        if cycle.is_empty() || self.known(&at)? != home {
            cycle.extend(self.way(vec![at], rank, |_, to, _| Some(to) == home)?.steps);
        }
        Ok(FoundLasso { prefix, cycle })
    }

    /// The number of a state, if it was visited.
    fn known(&mut self, words: &[u64]) -> Result<Option<u32>, Limit> {
        let (state, _) = self.seen.number(words)?;
        Ok(Some(state).filter(|&state| (state as usize) < self.ranks.len()))
    }

    /// A shortest way through visited states of at least this rank, over one edge or more, whose last edge
    /// is as wanted: by the rank and the number of the state it leads to, and its marks.
    fn way(
        &mut self,
        starts: Vec<Vec<u64>>,
        least: u32,
        wanted: impl Fn(u32, u32, Marks) -> bool,
    ) -> Result<Passage<G::Step>, Limit> {
        let mut line: Traced<G::Step> = starts.into_iter().map(|start| (start, None)).collect();
        let mut visited = HashSet::new();
        let mut edges = Vec::new();
        for at in 0.. {
            self.limits.spend(EXPANSION)?;
            let (from, _) = line.get(at).expect("the component is connected, and reachable");
            self.graph.follow(&mut self.scratch, from, &mut |words, marks, step| {
                edges.push((words.to_vec(), marks, step));
            });
            for (words, marks, step) in edges.drain(..) {
                let Some(to) = self.known(&words)? else { continue };
                let rank = self.ranks[to as usize];
                if rank < least {
                    continue;
                }
                let found = wanted(rank, to, marks);
                if found || visited.insert(to) {
                    line.push((words, Some((at, step, marks))));
                }
                if found {
                    return Ok(told(line));
                }
            }
        }
        unreachable!("the line has an end, which is noticed")
    }
}

/// States that were found, each with the place of the one it was found from, and the edge between them.
type Traced<S> = Vec<(Vec<u64>, Option<(usize, S, Marks)>)>;

/// A way through the graph.
struct Passage<S> {
    steps: Vec<S>,
    /// Met on the way.
    marks: Marks,
    end: Vec<u64>,
}

/// The way to the last entry of the line, each of which was found from another.
fn told<S: Clone>(mut line: Traced<S>) -> Passage<S> {
    let (mut steps, mut all, mut at) = (Vec::new(), 0, line.len() - 1);
    while let Some((before, step, marks)) = &line[at].1 {
        steps.push(step.clone());
        all |= marks;
        at = *before;
    }
    steps.reverse();
    let (end, _) = line.pop().expect("the way leads somewhere");
    Passage { steps, marks: all, end }
}

/// States by number, in the order in which they are first met. A record's link is the number.
#[derive(Default)]
struct Numbered {
    set: Visited,
    corner: Corner,
    count: u32,
}

/// The table is looked after once for so many states.
const ROOM: usize = 64;

impl Numbered {
    /// The state's number, and whether it is new.
    fn number(&mut self, words: &[u64]) -> Result<(u32, bool), Limit> {
        let full = (self.count as usize).is_multiple_of(ROOM) && self.set.settle(&mut self.corner, ROOM + 1);
        if full && !self.set.grow(ROOM + 1, 1) {
            return Err(Limit::Memory(self.set.bytes()));
        }
        let (table, tag) = (self.set.lock(), self.set.tag(words));
        let link = Some(Offset(self.count as u64));
        match self.set.insert(&table, &mut self.corner, words, tag, link, 0) {
            Inserted::New(_) if self.count < u32::MAX - 1 => {
                self.count += 1;
                Ok((self.count - 1, true))
            }
            Inserted::Old(offset) | Inserted::Woken(offset, _) => {
                let Offset(number) = self.set.parent(offset).expect("every record has a number");
                Ok((number as u32, false))
            }
            Inserted::New(_) | Inserted::Exhausted => Err(Limit::Memory(self.set.bytes())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// States are numbers; edges have marks.
    struct Drawn(Vec<(u64, u64, Marks)>, Marks);

    impl MarkedGraph for Drawn {
        type Scratch = ();
        type Step = (u64, u64);

        fn scratch(&self) {}

        fn sets(&self) -> Marks {
            self.1
        }

        fn roots(&self, _: &mut (), each: &mut impl FnMut(&[u64])) {
            each(&[0]);
        }

        fn follow(&self, _: &mut (), state: &[u64], each: &mut impl FnMut(&[u64], Marks, (u64, u64))) {
            for &(from, to, marks) in self.0.iter().filter(|e| e.0 == state[0]) {
                each(&[to], marks, (from, to));
            }
        }
    }

    fn found(edges: &[(u64, u64, Marks)], sets: Marks) -> Option<(usize, Vec<(u64, u64)>)> {
        let graph = Drawn(edges.to_vec(), sets);
        let lasso = accepting_lasso(&graph, &Limits::default()).lasso?;
        Some((lasso.prefix.len(), lasso.cycle))
    }

    #[test]
    fn without_sets_every_cycle_counts() {
        assert_eq!(found(&[(0, 1, 0), (1, 2, 0)], 0), None);
        assert_eq!(found(&[(0, 1, 0), (1, 1, 0)], 0), Some((1, vec![(1, 1)])));
    }

    #[test]
    fn a_cycle_meets_all_sets_or_does_not_count() {
        let two = [(0, 1, 0), (1, 2, 0b01), (2, 1, 0), (2, 3, 0), (3, 2, 0b10)];
        assert_eq!(found(&two[..3], 0b11), None);
        let (prefix, cycle) = found(&two, 0b11).expect("there is one");
        assert_eq!((prefix, cycle.len()), (1, 4));
        assert_eq!(found(&[(0, 1, 0b11), (1, 2, 0b11), (2, 2, 0b01)], 0b11), None, "not on the way");
    }

    #[test]
    fn states_of_components_that_are_done_with_are_not_open() {
        let edges = [(0, 1, 0), (1, 1, 0b01), (0, 2, 0), (2, 1, 0b10), (2, 2, 0b10)];
        assert_eq!(found(&edges, 0b11), None);
    }

    #[test]
    fn a_search_ends_at_its_limit() {
        let line: Vec<_> = (0..100).map(|n| (n, n + 1, 0)).collect();
        let limits = Limits { states: Some(10), ..Limits::default() };
        let ended = accepting_lasso(&Drawn(line, 0), &limits);
        assert_eq!((ended.limit, ended.states), (Some(Limit::States(10)), 10));
    }
}

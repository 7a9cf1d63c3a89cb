//! Are triangular races found where the definition has them, and are programs without them robust? Random
//! programs with computed addresses, locked instructions, blocks, loops and errors.
//!
//! The other opinion is a naive search on the plain SC machine that remembers, for every store that could be
//! in a buffer, all that its thread has stored since; nothing of it is shared with the sources.
//! `OVERTAKE_PROGRAMS=20000 cargo test --release --test triangular` tries more programs than the default.

mod common;

use common::robustness::brute_robust;
use common::{SMALL, Shape, Taste, cases, program};
use overtake::analysis::interval::Intervals;
use overtake::certify::{Confirmed, race};
use overtake::engine::{self, Options, Pruning};
use overtake::front::tso;
use overtake::model::{Addr, Edge, Instr, Program, ThreadId};
use overtake::query::{Answer, Event, Limit, Limits, Race, Reductions};
use overtake::reach::Order;
use overtake::semantics::{State, sc};
use proptest::prelude::*;
use std::collections::{BTreeSet, HashSet};

const MOST: usize = 5_000;

/// What one thread has done, as far as races need to know.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Past {
    /// For every store that nothing has drained yet, the cells that the thread has stored to from it on.
    since: BTreeSet<BTreeSet<Addr>>,
    /// The cell that its last step has loaded, if that could overtake one of these stores.
    loaded: Option<Addr>,
}

impl Past {
    fn then(&mut self, instr: &Instr, event: &Event, in_block: bool) {
        self.loaded = None;
        match (instr, event.address) {
            _ if event.trap.is_some() => {}
            (Instr::Store { .. }, Some(cell)) => {
                let and_cell = |set: &BTreeSet<Addr>| set.iter().copied().chain([cell]).collect();
                self.since = self.since.iter().map(and_cell).collect();
                if !in_block {
                    self.since.insert(BTreeSet::from([cell]));
                }
            }
            (Instr::Load { .. }, Some(cell)) => {
                self.loaded = self.since.iter().any(|set| !set.contains(&cell)).then_some(cell);
            }
            (instr, _) if instr.drains_buffer() => self.since.clear(),
            _ => {}
        }
    }
}

/// Is there a triangular race? `None` if there are too many states to say.
fn brute_racy(program: &Program) -> Option<bool> {
    let start = (State::initial(program), vec![Past::default(); program.threads().len()]);
    let mut seen = HashSet::from([start.clone()]);
    let mut todo = vec![start];
    while let Some((state, pasts)) = todo.pop() {
        for step in sc::steps(program, &state) {
            let (event, t) = (&step.event, step.event.thread());
            let races = |(u, past): (usize, &Past)| u != t.index() && past.loaded == event.address;
            if writes(program, event) && pasts.iter().enumerate().any(races) {
                return Some(true);
            }
            let mut others = program.thread_ids().filter(|&u| u != t);
            let loaded = |u: ThreadId| pasts[u.index()].loaded;
            if others.any(|u| loaded(u).is_some_and(|cell| may_write_in_block(program, event, u, cell))) {
                return Some(true);
            }
            let mut pasts = pasts.clone();
            let instr = &program.thread(t).edge(event.edge).instr;
            pasts[t.index()].then(instr, event, state.lock == Some(t));
            let next = (step.state, pasts);
            if seen.insert(next.clone()) {
                todo.push(next);
            }
        }
        if seen.len() > MOST {
            return None;
        }
    }
    Some(false)
}

/// Does a block begin that may write the cell, and read another that thread `u` stores? By the text alone, as
/// far as values let threads come.
fn may_write_in_block(program: &Program, event: &Event, u: ThreadId, cell: Addr) -> bool {
    let thread = program.thread(event.thread());
    let lock = thread.edge(event.edge);
    let known = Intervals::of(program, &Limits::default()).unwrap();
    let mut inside = vec![];
    let mut places = vec![lock.to];
    for i in 0.. {
        let Some(&place) = places.get(i) else { break };
        let leaves = |e: &Edge| e.from == place && known.is_feasible(event.thread(), e);
        for (_, edge) in thread.edges().filter(|(_, e)| leaves(e) && e.instr != Instr::Unlock) {
            inside.push(edge);
            if !places.contains(&edge.to) {
                places.push(edge.to);
            }
        }
    }
    let cells = program.cells() as i64;
    let range = |t: ThreadId, e: &Edge| {
        let range = known.address(t, e);
        range.lo.max(0)..=range.hi.min(cells - 1)
    };
    let t = event.thread();
    let is_store = |e: &Edge| matches!(e.instr, Instr::Store { .. }) && known.is_feasible(u, e);
    let stores = program.thread(u).edges().filter(|(_, e)| is_store(e));
    let stored: Vec<_> = stores.map(|(_, e)| range(u, e)).collect();
    let cell = cell.0 as i64;
    let writes = inside.iter().any(|e| e.instr.writes_memory() && range(t, e).contains(&cell));
    // The same cell as what is loaded does not count, if it is surely that.
    let reads = inside.iter().filter(|e| e.instr.reads_memory() && range(t, e) != (cell..=cell));
    let mut read = reads.map(|e| range(t, e));
    let meets =
        read.any(|read| stored.iter().any(|s| (0..cells).any(|c| read.contains(&c) && s.contains(&c))));
    lock.instr == Instr::Lock && writes && meets
}

/// A `cas` that fails writes back what it found.
fn writes(program: &Program, event: &Event) -> bool {
    let instr = &program.thread(event.thread()).edge(event.edge).instr;
    matches!(instr, Instr::Store { .. } | Instr::Rmw { .. }) && event.trap.is_none()
}

fn ask(program: &Program, options: &Options) -> Answer<(), Confirmed<Race>> {
    let limits = Limits { states: Some(4 * MOST as u64), ..Limits::default() };
    let found = engine::triangular(program, options, &limits).expect("no internal error");
    if let Answer::Fails(race) = &found.answer {
        assert_eq!(race::check(program, race, &Limits::default()), Ok(Ok(())));
    }
    found.answer
}

/// The search says what the definition says, with and without its reductions.
fn same(program: &Program) -> Result<(), TestCaseError> {
    let Some(expected) = brute_racy(program) else { return Ok(()) };
    let without = |change: fn(&mut Reductions)| {
        let mut reductions = Reductions::ALL;
        change(&mut reductions);
        reductions
    };
    let ways = [
        (Reductions::ALL, Order::BreadthFirst, 1),
        (Reductions::ALL, Order::DepthFirst, 2),
        (Reductions::NONE, Order::BreadthFirst, 1),
        (without(|r| r.por = false), Order::BreadthFirst, 1),
        (without(|r| r.sleep = false), Order::BreadthFirst, 1),
        (without(|r| r.steps = false), Order::DepthFirst, 1),
        (without(|r| r.prune = false), Order::BreadthFirst, 1),
        (without(|r| r.faint = false), Order::BreadthFirst, 1),
        (without(|r| r.movers = false), Order::BreadthFirst, 1),
    ];
    let unpruned = ways.map(|way| (way, Pruning::Off));
    for ((reductions, order, workers), pruning) in unpruned.into_iter().chain([(ways[0], Pruning::On)]) {
        let options = Options { reductions, order, workers, pruning, ..Options::default() };
        let racy = match ask(program, &options) {
            Answer::Fails(_) => true,
            Answer::Holds(()) => false,
            // Going deep may mean following a counter without end, past the race.
            Answer::Unknown(Limit::States(_)) if expected && order == Order::DepthFirst => continue,
            Answer::Unknown(limit) => {
                return Err(TestCaseError::fail(format!("{limit:?} where brute force has an answer")));
            }
        };
        prop_assert_eq!(racy, expected, "{:?}, {:?}, {:?}", reductions, order, pruning);
    }
    Ok(())
}

/// Who has no race is robust, says the oracle.
fn sufficient(program: &Program) -> Result<(), TestCaseError> {
    let options = Options { workers: 1, ..Options::default() };
    if !matches!(ask(program, &options), Answer::Holds(())) {
        return Ok(());
    }
    let limits = Limits { states: Some(MOST as u64), ..Limits::default() };
    let found = engine::robust(program, &options, &limits).expect("no internal error");
    prop_assert!(!matches!(found.answer, Answer::Fails(_)), "race-free, and not robust");
    Ok(())
}

/// And so says the definition of robustness.
fn sufficient_by_definition(program: &Program) -> Result<(), TestCaseError> {
    if matches!(ask(program, &Options { workers: 1, ..Options::default() }), Answer::Holds(())) {
        prop_assert!(brute_robust(program, 10_000) != Some(false), "race-free, and not robust");
    }
    Ok(())
}

/// A block counts as a write for what it can come to, whether the text is trimmed first or not.
#[test]
fn what_no_value_lets_a_block_do_is_no_race() {
    let racy = |value: i64| {
        let source = format!(
            "shared x, y; thread p; store [y], 1; load r, [x]; end
             thread q; lock; load s, [y]; assume s == {value}; store [x], 1; unlock; end"
        );
        let program = tso::read(&source, &[], &Limits::default()).expect("a program").program;
        same(&program).expect("all ways agree");
        matches!(ask(&program, &Options::default()), Answer::Fails(_))
    };
    assert!(racy(0) && racy(1));
    assert!(!racy(5));
}

const STRAIGHT: Shape = Shape { loops: false, ..SMALL };
const WILD: Shape = Shape { taste: Taste::Wild, lines: (1, 5), ..SMALL };
/// So small that all computations can be enumerated.
const TINY: Shape = Shape { lines: (1, 3), ..DENSE };
/// Little variety, many meetings.
const DENSE: Shape = Shape { taste: Taste::Dense, lines: (2, 4), ..STRAIGHT };

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn it_says_what_the_definition_says(shown in program(STRAIGHT)) {
        same(&shown.0)?;
    }

    #[test]
    fn it_says_what_the_definition_says_of_programs_with_loops(shown in program(SMALL)) {
        same(&shown.0)?;
    }

    #[test]
    fn it_says_what_the_definition_says_of_dense_programs(shown in program(DENSE)) {
        same(&shown.0)?;
    }

    #[test]
    fn it_says_what_the_definition_says_of_wild_programs(shown in program(WILD)) {
        same(&shown.0)?;
    }

    #[test]
    fn who_has_no_race_is_robust(shown in program(SMALL)) {
        sufficient(&shown.0)?;
    }

    #[test]
    fn who_has_no_race_is_robust_among_dense_programs(shown in program(DENSE)) {
        sufficient(&shown.0)?;
    }

    #[test]
    fn who_has_no_race_is_robust_by_definition(shown in program(TINY)) {
        sufficient_by_definition(&shown.0)?;
    }

    #[test]
    fn who_has_no_race_is_robust_among_wild_programs(shown in program(WILD)) {
        sufficient(&shown.0)?;
    }
}

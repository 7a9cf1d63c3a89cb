//! Robustness by its definition: all computations of a program, one by one, and what each depends on.
//!
//! Only for programs without loops, and small ones. Nothing here knows `certify::happens_before`, except for
//! [`brute_robust`], which asks it about each computation.

use overtake::certify::happens_before::HappensBefore;
use overtake::model::{EdgeId, Program, ThreadId, Value};
use overtake::query::{Act, Event, EventKind, Model, Source};
use overtake::semantics::{State, Step, sc, tso};
use std::collections::{HashSet, VecDeque};

/// One instruction as it was executed: the thread, and how many it had executed before.
pub(crate) type Instance = (ThreadId, usize);

/// What a read got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Got {
    Initial,
    From(Instance),
}

/// What a thread did: the edge it took, the value it chose, what it read.
type Done = (EdgeId, Option<Value>, Option<Got>);

/// What remains of a computation if unrelated events may change places: what each thread did and from where
/// it read, and in which order each cell was written. Two computations with the same happens-before relation
/// have the same dependencies, and the other way round.
///
/// Stores that are in no cell's list are still in the buffer. So the dependencies determine the state,
/// and all that can follow.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Dependencies {
    threads: Vec<Vec<Done>>,
    cells: Vec<Vec<Instance>>,
}

/// A computation.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub state: State,
    pub events: Vec<Event>,
    pub dependencies: Dependencies,
    /// Per thread the stores in its buffer, oldest first: events and instances.
    pending: Vec<VecDeque<(usize, Instance)>>,
}

impl Run {
    fn new(program: &Program) -> Run {
        let threads = program.threads().len();
        let dependencies =
            Dependencies { threads: vec![vec![]; threads], cells: vec![vec![]; program.cells()] };
        Run {
            state: State::initial(program),
            events: vec![],
            dependencies,
            pending: vec![VecDeque::new(); threads],
        }
    }

    pub(crate) fn is_drained(&self) -> bool {
        self.pending.iter().all(VecDeque::is_empty)
    }

    fn next(&self, program: &Program, model: Model) -> Vec<Run> {
        let steps = match model {
            Model::Sc => sc::steps(program, &self.state),
            Model::Tso => tso::steps(program, &self.state, tso::Bound::Unbounded).0,
        };
        steps.into_iter().map(|step| self.then(step, model)).collect()
    }

    fn then(&self, step: Step, model: Model) -> Run {
        let mut run = self.clone();
        let Step { mut event, state } = step;
        run.state = state;
        let t = event.thread();
        let instance = (t, run.dependencies.threads[t.index()].len());
        let cell = event.address.map(|a| a.index());
        let mut got = cell.filter(|_| event.source.is_some()).map(|c| run.newest(c));
        if let Some(Source::Buffer(place)) = event.source {
            let (store, from) = run.pending[t.index()][place];
            event.source = Some(Source::Buffer(store));
            got = Some(Got::From(from));
        }
        match (event.kind, cell) {
            (EventKind::Store, Some(_)) if model == Model::Tso => {
                run.pending[t.index()].push_back((run.events.len(), instance));
            }
            (EventKind::Store | EventKind::Locked, Some(cell)) => run.dependencies.cells[cell].push(instance),
            (EventKind::Flush, Some(cell)) => {
                let (store, instance) =
                    run.pending[t.index()].pop_front().expect("there is a store to flush");
                event.store = Some(store);
                run.dependencies.cells[cell].push(instance);
            }
            _ => {}
        }
        if let Act::Step { edge, choice } = event.action.act {
            run.dependencies.threads[t.index()].push((edge, choice, got));
        }
        run.events.push(event);
        run
    }

    /// What memory holds.
    fn newest(&self, cell: usize) -> Got {
        self.dependencies.cells[cell].last().map_or(Got::Initial, |&instance| Got::From(instance))
    }
}

/// Which computations are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Every,
    /// One of those that have the same dependencies.
    OneOfAKind,
}

/// What to do after a computation has been looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    GoOn,
    /// Leave out what it could be continued to.
    TurnBack,
    Stop,
}

/// Shows all computations, unfinished ones too; `None` if that takes more steps than allowed, or was stopped.
pub(crate) fn runs(
    program: &Program,
    model: Model,
    wanted: Wanted,
    steps: usize,
    visit: &mut impl FnMut(&Run) -> Then,
) -> Option<()> {
    let mut todo = vec![Run::new(program)];
    let mut seen = HashSet::new();
    let mut taken = 0;
    while let Some(run) = todo.pop() {
        if wanted == Wanted::OneOfAKind && !seen.insert(run.dependencies.clone()) {
            continue;
        }
        match visit(&run) {
            Then::GoOn => {}
            Then::TurnBack => continue,
            Then::Stop => return None,
        }
        let next = run.next(program, model);
        taken += next.len();
        if taken > steps {
            return None;
        }
        todo.extend(next);
    }
    Some(())
}

/// The dependencies of all SC computations, finished or not.
pub(crate) fn sc_dependencies(program: &Program, steps: usize) -> Option<HashSet<Dependencies>> {
    let mut all = HashSet::new();
    runs(program, Model::Sc, Wanted::OneOfAKind, steps, &mut |run| {
        all.insert(run.dependencies.clone());
        Then::GoOn
    })?;
    Some(all)
}

/// Is the program robust? It is iff no TSO computation that leaves all buffers empty has a cyclic
/// happens-before relation. `None` if it takes more steps to say.
///
/// One computation for each set of dependencies will do, since they determine both the relation and what can
/// follow.
pub(crate) fn brute_robust(program: &Program, steps: usize) -> Option<bool> {
    let mut cyclic = false;
    let all = runs(program, Model::Tso, Wanted::OneOfAKind, steps, &mut |run| {
        cyclic = run.is_drained() && HappensBefore::of(&run.events).is_cyclic();
        if cyclic { Then::Stop } else { Then::GoOn }
    });
    if cyclic { Some(false) } else { all.map(|()| true) }
}

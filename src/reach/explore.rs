//! The search itself: one loop, whatever the machine, the order and the number of workers.
//!
//! A task is a stored state and the threads to explore from it. A frontier holds tasks: a queue (breadth first,
//! for short traces), a stack (depth first), or crossbeam's stealing queues for several workers. A worker
//! takes tasks in batches; between batches it publishes its counts, looks at the limits and lets the table of
//! `seen` grow. The search ends when a goal state is found, a limit is hit, or no task is left anywhere.
//! Invariant: a state is put into the frontier once when it is new, and again for each thread that wakes up.

use super::seen::{Corner, Inserted, Offset, Seen};
use super::{Machine, Sink, Sleep, Wanted};
use crate::verdict::{Action, Limit, Limits};
use crossbeam::deque::{Steal, Stealer, Worker};
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// Tasks between two looks at the clock.
const BATCH: usize = 64;
/// What the process uses apart from states and frontier.
const BASE_BYTES: u64 = 6 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    BreadthFirst,
    DepthFirst,
}

/// What a search found.
#[derive(Debug, Default)]
pub struct Found {
    /// The decisions that lead to a goal state.
    pub goal: Option<Vec<Action>>,
    /// What ended the search before it was complete.
    pub limit: Option<Limit>,
    pub states: u64,
    pub transitions: u64,
    /// Of the set of states and the frontier, at the end.
    pub bytes: u64,
}

/// Explores from the machine's initial state with so many workers.
pub fn explore<M: Machine>(machine: &M, limits: &Limits, order: Order, workers: usize) -> Found {
    let search = Search {
        machine,
        limits,
        workers: workers.max(1),
        seen: Seen::new(),
        stop: AtomicBool::new(false),
        ended: Mutex::new(Ended::default()),
        transitions: AtomicU64::new(0),
        waiting: AtomicU64::new(0),
    };
    let begin = search.begin();
    if search.workers == 1 {
        match order {
            Order::BreadthFirst => search.work(VecDeque::from(begin)),
            Order::DepthFirst => search.work(begin),
        }
    } else {
        search.work_together(begin, order);
    }
    search.found()
}

/// A state, and the threads to explore from it, in one word.
#[derive(Clone, Copy, Debug)]
struct Task(u64);

impl Task {
    const OTHERS: u64 = 1 << 63;

    fn new(offset: Offset, wanted: Wanted) -> Task {
        let others = if wanted.others { Task::OTHERS } else { 0 };
        Task(offset.0 << Sleep::BITS | wanted.threads as u64 | others)
    }

    fn offset(self) -> Offset {
        Offset((self.0 & !Task::OTHERS) >> Sleep::BITS)
    }

    fn wanted(self) -> Wanted {
        Wanted { threads: self.0 as Sleep, others: self.0 & Task::OTHERS != 0 }
    }
}

/// Where tasks wait.
trait Frontier {
    fn push(&mut self, task: Task);
    /// The next task; `None` if there is none left anywhere.
    fn pop(&mut self) -> Option<Task>;
    fn len(&self) -> usize;
}

impl Frontier for VecDeque<Task> {
    fn push(&mut self, task: Task) {
        self.push_back(task);
    }
    fn pop(&mut self) -> Option<Task> {
        self.pop_front()
    }
    fn len(&self) -> usize {
        VecDeque::len(self)
    }
}

impl Frontier for Vec<Task> {
    fn push(&mut self, task: Task) {
        Vec::push(self, task);
    }
    fn pop(&mut self) -> Option<Task> {
        Vec::pop(self)
    }
    fn len(&self) -> usize {
        Vec::len(self)
    }
}

/// One worker's queue and the ends of the others' from which it steals.
struct Stealing<'a> {
    own: Worker<Task>,
    others: &'a [Stealer<Task>],
    idle: &'a AtomicUsize,
    stop: &'a AtomicBool,
}

impl Stealing<'_> {
    fn steal(&self) -> Option<Task> {
        let attempt =
            || self.others.iter().map(|o| o.steal_batch_and_pop(&self.own)).collect::<Steal<Task>>();
        std::iter::repeat_with(attempt).find(|s| !s.is_retry()).and_then(Steal::success)
    }
}

impl Frontier for Stealing<'_> {
    fn push(&mut self, task: Task) {
        self.own.push(task);
    }

    /// Waits while other workers may still produce tasks. All are idle at once only if every queue is empty:
    /// a worker empties its own queue before it idles, and leaves idleness before it takes from another.
    /// Nobody comes back from that, so a worker that asks again only adds to the count.
    fn pop(&mut self) -> Option<Task> {
        if let Some(task) = self.own.pop().or_else(|| self.steal()) {
            return Some(task);
        }
        let workers = self.others.len();
        self.idle.fetch_add(1, Ordering::SeqCst);
        for spins in 0u32.. {
            if self.idle.load(Ordering::SeqCst) >= workers || self.stop.load(Ordering::Relaxed) {
                return None;
            }
            if self.others.iter().any(|o| !o.is_empty()) {
                self.idle.fetch_sub(1, Ordering::SeqCst);
                if let Some(task) = self.steal() {
                    return Some(task);
                }
                self.idle.fetch_add(1, Ordering::SeqCst);
            }
            if spins < 100 { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
        None
    }

    fn len(&self) -> usize {
        self.own.len()
    }
}

/// A worker that panics must not leave the others waiting for it.
struct StopOnPanic<'a>(&'a AtomicBool);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

#[derive(Default)]
struct Ended {
    goal: Option<Offset>,
    limit: Option<Limit>,
}

struct Search<'a, M: Machine> {
    machine: &'a M,
    limits: &'a Limits,
    workers: usize,
    seen: Seen,
    stop: AtomicBool,
    ended: Mutex<Ended>,
    transitions: AtomicU64,
    /// Tasks in all frontiers, as of the workers' last batches.
    waiting: AtomicU64,
}

impl<M: Machine> Search<'_, M> {
    /// Stores the initial state.
    fn begin(&self) -> Vec<Task> {
        let (mut tasks, mut corner) = (Vec::new(), Corner::default());
        self.seen.settle(&mut corner, self.workers);
        let table = self.seen.lock();
        let mut taker = Taker {
            search: self,
            table: &table,
            corner: &mut corner,
            frontier: &mut tasks,
            parent: None,
            transitions: 0,
            full: false,
        };
        let _ = self.machine.initial(&mut self.machine.scratch(), &mut taker);
        drop(table);
        self.seen.settle(&mut corner, self.workers);
        tasks
    }

    fn work_together(&self, begin: Vec<Task>, order: Order) {
        let new = || match order {
            Order::BreadthFirst => Worker::new_fifo(),
            Order::DepthFirst => Worker::new_lifo(),
        };
        let queues: Vec<Worker<Task>> = (0..self.workers).map(|_| new()).collect();
        let others: Vec<Stealer<Task>> = queues.iter().map(Worker::stealer).collect();
        begin.into_iter().for_each(|task| queues[0].push(task));
        let idle = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for own in queues {
                let frontier = Stealing { own, others: &others, idle: &idle, stop: &self.stop };
                scope.spawn(move || {
                    let _last_will = StopOnPanic(&self.stop);
                    self.work(frontier);
                });
            }
        });
    }

    /// One worker's life.
    fn work(&self, mut frontier: impl Frontier) {
        let mut scratch = self.machine.scratch();
        let (mut corner, mut words) = (Corner::default(), Vec::new());
        let mut counted = 0u64;
        loop {
            let full = self.seen.settle(&mut corner, self.workers);
            let now = frontier.len() as u64;
            self.waiting.fetch_add(now.wrapping_sub(counted), Ordering::Relaxed);
            counted = now;
            if self.stop.load(Ordering::Relaxed) || self.limit_hit(full) {
                return;
            }
            if full {
                self.seen.grow();
            }
            if !self.batch(&mut frontier, &mut scratch, &mut corner, &mut words) {
                self.seen.settle(&mut corner, self.workers);
                return;
            }
        }
    }

    /// Some tasks under one lock on the table. `false` if none are left.
    fn batch(
        &self,
        frontier: &mut impl Frontier,
        scratch: &mut M::Scratch,
        corner: &mut Corner,
        words: &mut Vec<u64>,
    ) -> bool {
        // The first task is awaited without the lock: others may need it to produce one.
        let Some(mut task) = frontier.pop() else { return false };
        let table = self.seen.lock();
        let mut transitions = 0;
        for left in (0..BATCH).rev() {
            let sleep = self.seen.read(task.offset(), words);
            let mut taker = Taker {
                search: self,
                table: &table,
                corner,
                frontier,
                parent: Some(task.offset()),
                transitions: 0,
                full: false,
            };
            let _ = self.machine.expand(scratch, words, task.wanted(), sleep, &mut taker);
            transitions += taker.transitions;
            if taker.full {
                // What was inserted stays; the rest is found when the task is done again in a larger table.
                frontier.push(task);
                break;
            }
            if left == 0 || frontier.len() == 0 || self.stop.load(Ordering::Relaxed) {
                break;
            }
            match frontier.pop() {
                Some(next) => task = next,
                None => break,
            }
        }
        self.transitions.fetch_add(transitions, Ordering::Relaxed);
        true
    }

    fn limit_hit(&self, about_to_grow: bool) -> bool {
        let states = self.seen.states();
        self.limits.progress.store(states, Ordering::Relaxed);
        let limit = self.limits.expired().or_else(|| {
            let most = self.limits.states?;
            (states > most).then_some(Limit::States(most))
        });
        let limit = limit.or_else(|| {
            let most = self.limits.memory?;
            let seen = if about_to_grow { self.seen.bytes_to_grow() } else { self.seen.bytes() };
            (seen + self.frontier_bytes() + BASE_BYTES > most).then_some(Limit::Memory(most))
        });
        match limit {
            Some(limit) => {
                self.end(|ended| ended.limit = Some(limit));
                true
            }
            None => false,
        }
    }

    /// Queues double their room when full, and hold old and new while they move.
    fn frontier_bytes(&self) -> u64 {
        self.waiting.load(Ordering::Relaxed) * 8 * 3
    }

    fn end(&self, how: impl FnOnce(&mut Ended)) {
        how(&mut self.ended.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
        self.stop.store(true, Ordering::Relaxed);
    }

    fn found(self) -> Found {
        let ended = self.ended.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        Found {
            goal: ended.goal.map(|goal| self.trace(goal)),
            limit: ended.limit.clone(),
            states: self.seen.states(),
            transitions: self.transitions.load(Ordering::Relaxed),
            bytes: self.seen.bytes() + self.frontier_bytes(),
        }
    }

    /// The decisions along the parents of a state.
    fn trace(&self, goal: Offset) -> Vec<Action> {
        let mut line = vec![goal];
        while let Some(parent) = self.seen.parent(line[line.len() - 1]) {
            line.push(parent);
        }
        let (mut from, mut to) = (Vec::new(), Vec::new());
        let mut actions = Vec::new();
        for (i, &offset) in line.iter().rev().enumerate() {
            self.seen.read(offset, &mut to);
            actions.extend(self.machine.path((i > 0).then_some(&from[..]), &to));
            std::mem::swap(&mut from, &mut to);
        }
        actions
    }
}

/// Puts the successors of one state into the set and the frontier.
struct Taker<'a, 's, M: Machine, F: Frontier> {
    search: &'a Search<'s, M>,
    table: &'a [AtomicU64],
    corner: &'a mut Corner,
    frontier: &'a mut F,
    parent: Option<Offset>,
    transitions: u64,
    full: bool,
}

impl<M: Machine, F: Frontier> Sink for Taker<'_, '_, M, F> {
    #[inline]
    fn state(&mut self, words: &[u64], sleep: Sleep, goal: impl FnOnce() -> bool) -> ControlFlow<()> {
        self.transitions += 1;
        match self.search.seen.insert(self.table, self.corner, words, self.parent, sleep) {
            Inserted::Old => {}
            Inserted::New(offset) => {
                if goal() {
                    self.search.end(|ended| ended.goal = Some(offset));
                    return ControlFlow::Break(());
                }
                self.frontier.push(Task::new(offset, Wanted { threads: !sleep, others: true }));
            }
            Inserted::Woken(offset, woken) => {
                self.frontier.push(Task::new(offset, Wanted { threads: woken, others: false }));
            }
            Inserted::Full => {
                self.full = true;
                return ControlFlow::Break(());
            }
            Inserted::Exhausted => {
                self.search.end(|ended| ended.limit = Some(Limit::Memory(self.search.seen.bytes())));
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }
}

//! The search itself: one loop, whatever the machine, the order and the number of workers.
//!
//! A task is a stored state and the threads to explore from it. A frontier holds tasks: a queue (breadth first,
//! for short traces), a stack (depth first), or crossbeam's stealing queues for several workers. A worker
//! takes tasks in batches: it expands them all, then looks all their successors up at once, which hides most of
//! the time that memory takes to answer. Between batches it publishes its counts, looks at the limits and
//! lets the table of `seen` grow. The search ends when a goal state is found, a limit is hit, or no task is left anywhere.
//! Invariant: a state is put into the frontier once when it is new, and again for each thread that wakes up.

use super::seen::{Corner, Inserted, Offset, Seen};
use super::{Machine, Sink, Sleep, Wanted};
use crate::verdict::{Action, Limit, Limits};
use crossbeam::deque::{Steal, Stealer, Worker};
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// Tasks that are expanded before their successors are looked up.
const BATCH: usize = 32;
/// A depth-first search that took many tasks at once would not be one.
const DEPTH_FIRST_BATCH: usize = 2;
/// With more successors than this, the batch ends early.
const MANY: usize = 1024;
/// Searches of no more states than this are left to one worker.
const SMALL: u64 = 4096;
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
        batch: match order {
            Order::BreadthFirst => BATCH,
            Order::DepthFirst => DEPTH_FIRST_BATCH,
        },
        seen: Seen::new(),
        stop: AtomicBool::new(false),
        ended: Mutex::new(Ended::default()),
        transitions: AtomicU64::new(0),
        waiting: AtomicU64::new(0),
    };
    // Most searches are small: one worker ends them sooner than several could begin.
    let alone = if search.workers == 1 { u64::MAX } else { SMALL };
    let mut desk = Desk::new(machine);
    let left = match order {
        Order::BreadthFirst => Vec::from(search.begin(&mut desk, VecDeque::new(), alone)),
        Order::DepthFirst => search.begin(&mut desk, Vec::new(), alone),
    };
    if !left.is_empty() && !search.stop.load(Ordering::Relaxed) {
        search.work_together(left, order);
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
    batch: usize,
    seen: Seen,
    stop: AtomicBool,
    ended: Mutex<Ended>,
    transitions: AtomicU64,
    /// Tasks in all frontiers, as of the workers' last batches.
    waiting: AtomicU64,
}

impl<M: Machine> Search<'_, M> {
    /// Explores from the initial state until so many states are stored; the tasks that are left then.
    fn begin<F: Frontier>(&self, desk: &mut Desk<M>, mut frontier: F, most: u64) -> F {
        self.machine.initial(&mut desk.scratch, &mut desk.found);
        self.look_up(desk, &mut frontier);
        self.work(desk, &mut frontier, most);
        frontier
    }

    fn work_together(&self, begin: Vec<Task>, order: Order) {
        let new = || match order {
            Order::BreadthFirst => Worker::new_fifo(),
            Order::DepthFirst => Worker::new_lifo(),
        };
        let queues: Vec<Worker<Task>> = (0..self.workers).map(|_| new()).collect();
        let others: Vec<Stealer<Task>> = queues.iter().map(Worker::stealer).collect();
        for (i, task) in begin.into_iter().enumerate() {
            queues[i % self.workers].push(task);
        }
        let idle = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for own in queues {
                let mut frontier = Stealing { own, others: &others, idle: &idle, stop: &self.stop };
                scope.spawn(move || {
                    let _last_will = StopOnPanic(&self.stop);
                    self.work(&mut Desk::new(self.machine), &mut frontier, u64::MAX);
                });
            }
        });
    }

    /// One worker's life, until so many states are stored.
    fn work(&self, desk: &mut Desk<M>, frontier: &mut impl Frontier, most: u64) {
        let mut counted = 0u64;
        while !self.stop.load(Ordering::Relaxed) && self.seen.states() <= most {
            let now = frontier.len() as u64;
            self.waiting.fetch_add(now.wrapping_sub(counted), Ordering::Relaxed);
            counted = now;
            let any = self.expand(desk, frontier);
            self.look_up(desk, frontier);
            if !any || self.limit_hit() {
                break;
            }
        }
        self.waiting.fetch_sub(counted, Ordering::Relaxed);
        self.seen.settle(&mut desk.corner, 0);
    }

    /// Expands some tasks; `false` if none are left anywhere.
    fn expand(&self, desk: &mut Desk<M>, frontier: &mut impl Frontier) -> bool {
        for done in 0..self.batch {
            // Only the first task is worth waiting for.
            if done > 0 && frontier.len() == 0 || desk.found.entries.len() > MANY {
                break;
            }
            let Some(task) = frontier.pop() else { return done > 0 };
            let sleep = self.seen.read(task.offset(), &mut desk.words);
            desk.found.parent = Some(task.offset());
            self.machine.expand(&mut desk.scratch, &desk.words, task.wanted(), sleep, &mut desk.found);
        }
        true
    }

    /// Looks up what was found, and puts what is new into the frontier.
    fn look_up(&self, desk: &mut Desk<M>, frontier: &mut impl Frontier) {
        let found = &mut desk.found;
        // The other workers may add as many before they next say so.
        let room = (found.entries.len() + MANY) * self.workers;
        if self.seen.settle(&mut desk.corner, room) {
            if self.memory_exceeded(self.seen.bytes_to_grow()) {
                return;
            }
            if !self.seen.grow(room) {
                return self.end(|ended| ended.limit = Some(Limit::Memory(self.seen.bytes())));
            }
        }
        let table = self.seen.lock();
        for entry in &mut found.entries {
            entry.tag = self.seen.tag(&found.words[entry.start..][..entry.len]);
        }
        desk.slots.clear();
        desk.slots.extend(found.entries.iter().map(|e| self.seen.touch(&table, e.tag)));
        let touched = found.entries.iter().zip(&desk.slots).map(|(e, s)| self.seen.touch_record(*s, e.tag));
        std::hint::black_box(touched.fold(0, |all, header| all | header));
        for entry in &found.entries {
            let words = &found.words[entry.start..][..entry.len];
            let done =
                self.seen.insert(&table, &mut desk.corner, words, entry.tag, entry.parent, entry.sleep);
            match done {
                Inserted::Old => {}
                Inserted::New(offset) => {
                    if self.machine.is_goal(&mut desk.scratch, words) {
                        return self.end(|ended| ended.goal = Some(offset));
                    }
                    frontier.push(Task::new(offset, Wanted { threads: !entry.sleep, others: true }));
                }
                Inserted::Woken(offset, woken) => {
                    frontier.push(Task::new(offset, Wanted { threads: woken, others: false }));
                }
                Inserted::Exhausted => {
                    return self.end(|ended| ended.limit = Some(Limit::Memory(self.seen.bytes())));
                }
            }
        }
        self.transitions.fetch_add(found.entries.len() as u64, Ordering::Relaxed);
        found.clear();
    }

    /// Has a limit been reached? Then the search ends.
    fn limit_hit(&self) -> bool {
        let states = self.seen.states();
        self.limits.progress.store(states, Ordering::Relaxed);
        let too_many = self.limits.states.filter(|&most| states > most).map(Limit::States);
        if let Some(limit) = self.limits.expired().or(too_many) {
            self.end(|ended| ended.limit = Some(limit));
            return true;
        }
        self.memory_exceeded(self.seen.bytes())
    }

    fn memory_exceeded(&self, seen: u64) -> bool {
        let most = match self.limits.memory {
            Some(most) if seen + self.frontier_bytes() + BASE_BYTES > most => most,
            _ => return false,
        };
        self.end(|ended| ended.limit = Some(Limit::Memory(most)));
        true
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

/// What a worker has before it.
struct Desk<M: Machine> {
    scratch: M::Scratch,
    corner: Corner,
    words: Vec<u64>,
    found: Successors,
    slots: Vec<u64>,
}

impl<M: Machine> Desk<M> {
    fn new(machine: &M) -> Self {
        Desk {
            scratch: machine.scratch(),
            corner: Corner::default(),
            words: Vec::new(),
            found: Successors::default(),
            slots: Vec::new(),
        }
    }
}

/// States that were found and not yet looked up.
#[derive(Default)]
struct Successors {
    words: Vec<u64>,
    entries: Vec<Entry>,
    parent: Option<Offset>,
}

struct Entry {
    start: usize,
    len: usize,
    tag: u64,
    parent: Option<Offset>,
    sleep: Sleep,
}

impl Successors {
    fn clear(&mut self) {
        self.words.clear();
        self.entries.clear();
    }
}

impl Sink for Successors {
    #[inline]
    fn state(&mut self, words: &[u64], sleep: Sleep) {
        let start = self.words.len();
        self.words.extend_from_slice(words);
        self.entries.push(Entry { start, len: words.len(), tag: 0, parent: self.parent, sleep });
    }
}

//! The search itself: one loop, whatever the machine, the order and the number of workers, and so one file.
//!
//! A task is a stored state and the threads to explore from it; `frontier` says which comes next. A worker
//! takes tasks in batches: it expands them all, then looks their successors up, a slice at once, which hides
//! most of the time that memory takes to answer. Between slices it publishes its counts and lets the table of
//! `visited` grow; between batches it looks at the limits. The search ends when the goals that are wanted are
//! found, a limit is hit, or no task is left anywhere. Invariant: a state is put into the frontier once when
//! it is new, and again for each thread that wakes up.

use super::frontier::{Frontier, Ranked, RankedShare, Share, Shared, Stealing, Task, Ties, Whole};
use super::partition::{ELSEWHERE, Together};
use super::peers::{Exchange, Peers};
use super::shorten::shortened;
use super::visited::{Corner, Inserted, Offset, Visited};
use super::{Budget, Found, Goals, Look, Machine, Order, Search, Sink, Sleep, Spent, Wanted};
use crate::query::{Limit, Limits};
use crossbeam_deque::{Stealer, Worker};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Tasks that are expanded before their successors are looked up.
const BATCH: usize = 32;
/// A search that follows its last or best find would not be one if it took many tasks at once: a few, and a
/// few more once it is no longer small.
const EAGER_BATCH: usize = 2;
const LATER_BATCH: usize = 8;
/// The number of tasks that wait is known up to so many for each worker.
const ROUGHLY: u64 = 256;
/// A state of more words than this, on average, counts for several.
const LONG_STATE: u64 = 16;
/// Successors that are looked up at once: enough to hide the time that memory takes, and few enough that
/// little room need be kept for them.
const SLICE: usize = 64;
/// A batch that takes longer than this is slow: states are large, or threads run far without stopping.
const SLOW: Duration = Duration::from_millis(2);
/// With more successors than this, the batch ends early.
const MANY: usize = 1024;
/// Searches of no more states than this are left to one worker.
pub const LEFT_TO_ONE: u64 = 4096;
/// What the process uses at least, apart from states and frontier.
const BASE_BYTES: u64 = 6 << 20;

/// States between two looks at the memory of the process.
const LOOK: u64 = 4096;

/// This part of the memory is left for what is only guessed: queues that have grown and not yet let go of
/// their old room, tables of searches before, and whatever else the allocator keeps.
const SLACK: u64 = 8;

/// Explores from the machine's initial state, until the goals that are wanted are found, everything has been
/// visited, or a limit is reached.
pub fn explore<M: Machine>(machine: &M, limits: &Limits, search: Search) -> Found<M::Step> {
    match explore_within(machine, limits, search, Budget::UNLIMITED) {
        Ok(found) => found,
        Err(Spent(_)) => unreachable!("what has no bound cannot be spent"),
    }
}

/// The same within a budget. Where the user allows no more states than the budget does, reaching that many is
/// the user's limit.
pub fn explore_within<M: Machine>(
    machine: &M,
    limits: &Limits,
    search: Search,
    budget: Budget,
) -> Result<Found<M::Step>, Spent<Found<M::Step>>> {
    let exchange = search.peers.map(Peers::exchange).filter(|exchange| exchange.count() > 1);
    let workers = if exchange.is_some() { 1 } else { search.workers.max(1) };
    let run = Run {
        machine,
        limits,
        budget,
        search: Search { workers, ..search },
        seen: Visited::new(),
        stop: AtomicBool::new(false),
        ended: Mutex::new(Ended::default()),
        transitions: AtomicU64::new(0),
        waiting: AtomicU64::new(0),
        enough: AtomicU64::new(u64::MAX),
        next_look: AtomicU64::new(LOOK),
    };
    // Most searches are small: one worker ends them sooner than several could begin.
    let alone = match exchange {
        Some(exchange) => exchange.alone(),
        None if workers == 1 => u64::MAX,
        None => LEFT_TO_ONE,
    };
    let mut desk = Desk::new(machine);
    let together = match search.order {
        Order::BreadthFirst => {
            let left = run.begin(&mut desk, VecDeque::new(), alone);
            run.go_on(exchange, &mut desk, left, |left| run.steal(left, Worker::new_fifo))
        }
        Order::DepthFirst => {
            let left = run.begin(&mut desk, Vec::new(), alone);
            run.go_on(exchange, &mut desk, left, |left| run.steal(left, Worker::new_lifo))
        }
        Order::BestFirst => {
            let left = run.begin(&mut desk, Ranked::new(Ties::Older), alone);
            run.go_on(exchange, &mut desk, left, |left| run.share_ranked(left, Ties::Older, |_| true))
        }
        Order::Hunt => {
            let goes_by_rank = |worker| worker % 2 == 1;
            let mut left = run.begin(&mut desk, Ranked::new(Ties::Newer), alone);
            if exchange.is_some_and(|exchange| !goes_by_rank(exchange.me())) {
                left.forget_ranks();
            }
            run.go_on(exchange, &mut desk, left, |left| run.share_ranked(left, Ties::Newer, goes_by_rank))
        }
    };
    run.found(together)
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
pub(super) struct Ended {
    pub goals: Vec<(usize, Offset)>,
    pub limit: Option<Limit>,
    /// The budget was spent.
    spent: bool,
}

pub(super) struct Run<'a, M: Machine> {
    pub machine: &'a M,
    pub limits: &'a Limits,
    budget: Budget,
    pub search: Search<'a>,
    pub seen: Visited,
    pub stop: AtomicBool,
    ended: Mutex<Ended>,
    transitions: AtomicU64,
    /// Tasks in all frontiers, as of the workers' last batches.
    pub waiting: AtomicU64,
    /// With so many states, the goals found so far will do.
    pub enough: AtomicU64,
    /// With so many states, the system is asked how much memory the process has.
    next_look: AtomicU64,
}

impl<M: Machine> Run<'_, M> {
    /// Explores from the initial state until so many states are stored; the tasks that are left then.
    fn begin<F: Frontier>(&self, desk: &mut Desk<M>, mut frontier: F, most: u64) -> F {
        self.machine.initial(&mut desk.scratch, &mut desk.found);
        self.look_up(desk, &mut frontier, 0);
        self.work(desk, &mut frontier, most);
        frontier
    }

    /// Others help with what is left: other processes, or other threads of this one.
    fn go_on<F: Whole>(
        &self,
        exchange: Option<&dyn Exchange>,
        desk: &mut Desk<M>,
        left: F,
        by_threads: impl FnOnce(F),
    ) -> Option<Together> {
        match exchange {
            Some(exchange) if left.len() > 0 && !self.stop.load(Ordering::Relaxed) => {
                Some(self.share(exchange, desk, left))
            }
            Some(_) => None,
            None => {
                by_threads(left);
                None
            }
        }
    }

    /// Several workers go on with what is left, on stealing queues.
    fn steal(&self, left: impl IntoIterator<Item = Task>, new: impl Fn() -> Worker<Task>) {
        let queues: Vec<Worker<Task>> = (0..self.search.workers).map(|_| new()).collect();
        let others: Vec<Stealer<Task>> = queues.iter().map(Worker::stealer).collect();
        for (i, task) in left.into_iter().enumerate() {
            queues[i % self.search.workers].push(task);
        }
        self.work_together(queues.into_iter().map(|own| Stealing { own, others: &others }).collect());
    }

    /// Several workers go on with what is left, on ranked queues.
    fn share_ranked(&self, left: Ranked, ties: Ties, by_rank: impl Fn(usize) -> bool) {
        let mut queues: Vec<Ranked> = (0..self.search.workers).map(|_| Ranked::new(ties)).collect();
        for (i, (task, rank)) in left.into_tasks().enumerate() {
            queues[i % self.search.workers].push(task, rank);
        }
        let all: Vec<Mutex<Ranked>> = queues.into_iter().map(Mutex::new).collect();
        self.work_together(
            (0..all.len())
                .map(|own| RankedShare { all: &all, own, by_rank: by_rank(own), new: vec![] })
                .collect(),
        );
    }

    fn work_together<S: Share + Send>(&self, shares: Vec<S>) {
        let left: usize = shares.iter().map(Share::len).sum();
        if left == 0 || self.stop.load(Ordering::Relaxed) {
            return;
        }
        let idle = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for share in shares {
                let mut frontier = Shared { share, idle: &idle, stop: &self.stop };
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
            if now.abs_diff(counted) >= ROUGHLY {
                self.waiting.fetch_add(now.wrapping_sub(counted), Ordering::Relaxed);
                counted = now;
            }
            let any = self.expand_batch(desk, frontier);
            let before = self.seen.states();
            self.look_up(desk, frontier, before);
            self.limits.progress.store(before, Ordering::Relaxed);
            if !any || self.limit_hit(before) {
                break;
            }
        }
        self.waiting.fetch_sub(counted, Ordering::Relaxed);
        self.transitions.fetch_add(std::mem::take(&mut desk.transitions), Ordering::Relaxed);
        self.seen.settle(&mut desk.corner, 0);
    }

    /// Expands some tasks; `false` if none are left anywhere.
    pub(super) fn expand_batch(&self, desk: &mut Desk<M>, frontier: &mut impl Frontier) -> bool {
        let begun = Instant::now();
        let any = self.expand(desk, frontier);
        desk.slow = begun.elapsed() >= SLOW;
        self.seen.settle(&mut desk.corner, 0);
        any
    }

    /// How many tasks are taken at once.
    pub(super) fn batch(&self) -> usize {
        match self.search.order {
            Order::BreadthFirst => BATCH,
            _ if self.seen.states() < LEFT_TO_ONE => EAGER_BATCH,
            _ => LATER_BATCH,
        }
    }

    fn expand(&self, desk: &mut Desk<M>, frontier: &mut impl Frontier) -> bool {
        for done in 0..self.batch() {
            // Only the first task is worth waiting for.
            if done > 0 && frontier.len() == 0 || desk.found.entries.len() > MANY {
                break;
            }
            if done > 0 && desk.slow && self.limits.expired().is_some() {
                break;
            }
            let Some(task) = frontier.pop() else { return done > 0 };
            let sleep = self.seen.read(task.offset(), &mut desk.words);
            desk.found.parent = Some(task.offset());
            self.machine.expand(&mut desk.scratch, &desk.words, task.wanted(), sleep, &mut desk.found);
        }
        true
    }

    /// Looks up what was found, and puts what is new into the frontier. So many states were stored before:
    /// patience is counted in whole batches, however they are sliced.
    pub(super) fn look_up(&self, desk: &mut Desk<M>, frontier: &mut impl Frontier, before: u64) {
        let Desk { scratch, corner, found, slots, transitions, arrived, origins, .. } = desk;
        for slice in found.entries.chunks_mut(SLICE) {
            if !self.make_room(corner, slice.len()) {
                return;
            }
            let table = self.seen.lock();
            for entry in &mut *slice {
                entry.tag = self.seen.tag(&found.words[entry.start..][..entry.len]);
            }
            slots.clear();
            slots.extend(slice.iter().map(|e| self.seen.touch(&table, e.tag)));
            let touched = slice.iter().zip(&*slots).map(|(e, s)| self.seen.touch_record(*s, e.tag));
            std::hint::black_box(touched.fold(0, |all, header| all | header));
            for entry in slice {
                let words = &found.words[entry.start..][..entry.len];
                let done = self.seen.insert(&table, corner, words, entry.tag, entry.parent, entry.sleep);
                match done {
                    Inserted::Old(_) => {}
                    Inserted::New(offset) => {
                        if !arrived.is_empty() && !self.adopt(offset, entry.parent, arrived, origins) {
                            return;
                        }
                        match self.machine.look(scratch, words) {
                            Look::Goal(number) => {
                                if self.reached(number, offset, before) {
                                    return;
                                }
                            }
                            Look::Rank(rank) => {
                                let wanted = Wanted { threads: !entry.sleep, others: true };
                                frontier.push(Task::new(offset, wanted), rank);
                            }
                        }
                    }
                    Inserted::Woken(offset, woken) => {
                        frontier.push(Task::new(offset, Wanted { threads: woken, others: false }), 0);
                    }
                    Inserted::Exhausted => {
                        drop(table);
                        return self.out_of_memory();
                    }
                }
            }
        }
        *transitions += found.entries.len() as u64;
        found.clear();
    }

    /// Notes with which process the parent of a new state lies. `false` if no number is left for it.
    #[cold]
    fn adopt(&self, offset: Offset, parent: Option<Offset>, arrived: &[u64], origins: &mut Vec<u64>) -> bool {
        let number = origins.len() as u64;
        if offset.0 >= ELSEWHERE || number >= ELSEWHERE - 1 {
            self.out_of_memory();
            return false;
        }
        let parent = parent.expect("what arrives has a parent").0;
        origins.push(arrived[(parent ^ ELSEWHERE) as usize]);
        self.seen.set_parent(offset, Offset(ELSEWHERE | number));
        true
    }

    /// Publishes what the worker has added, and sees to it that there is room for so many more. If there is
    /// none, the search ends.
    fn make_room(&self, corner: &mut Corner, wanted: usize) -> bool {
        // Each of the other workers may add a slice before it next says so.
        let room = wanted + SLICE * (self.search.workers - 1);
        if !self.seen.settle(corner, room) {
            return true;
        }
        if self.memory_exceeded(|| self.seen.bytes_to_grow()) {
            return false;
        }
        let grown = self.seen.grow(room, self.search.workers);
        if !grown {
            self.out_of_memory();
        }
        grown
    }

    fn out_of_memory(&self) {
        self.end(|ended| ended.limit = Some(Limit::Memory(self.seen.bytes())));
    }

    /// Notes a goal; `true` if no more are wanted.
    fn reached(&self, number: usize, offset: Offset, states: u64) -> bool {
        let mut ended = self.ended();
        if ended.goals.iter().all(|(known, _)| *known != number) {
            ended.goals.push((number, offset));
        }
        drop(ended);
        self.machine.reached(number);
        match self.search.goals {
            Goals::First => self.stop.store(true, Ordering::Relaxed),
            Goals::Several { patience } => {
                let _ = self.enough.fetch_min(states + patience, Ordering::Relaxed);
            }
        }
        self.search.goals == Goals::First
    }

    /// Has a limit been reached, or enough been found? Then the search ends.
    pub(super) fn limit_hit(&self, states: u64) -> bool {
        if states >= self.enough.load(Ordering::Relaxed) {
            self.stop.store(true, Ordering::Relaxed);
            return true;
        }
        let allowed = self.limits.states.filter(|&most| states > most);
        let expired = self.limits.expired();
        if expired.is_none() && self.is_spent(states, self.seen.words(), allowed) {
            self.end(|ended| ended.spent = true);
            return true;
        }
        if let Some(limit) = expired.or(allowed.map(Limit::States)) {
            self.end(|ended| ended.limit = Some(limit));
            return true;
        }
        if states >= self.next_look.load(Ordering::Relaxed) {
            self.next_look.store(states + LOOK, Ordering::Relaxed);
            return self.memory_exceeded(|| self.seen.bytes());
        }
        self.estimate_exceeded(|| self.seen.bytes())
    }

    /// Are there more states than the budget has, and did the user not allow as few?
    pub(super) fn is_spent(&self, states: u64, words: u64, allowed: Option<u64>) -> bool {
        let budget = self.budget.spent_by(states.max(words / LONG_STATE));
        budget.is_some_and(|budget| allowed.is_none_or(|allowed| budget < allowed))
    }

    /// Is there not enough for a set of states of that size? Nobody asks for it if there is no limit.
    fn memory_exceeded(&self, seen: impl Fn() -> u64) -> bool {
        if self.estimate_exceeded(&seen) {
            return true;
        }
        let fits = match self.limits.memory {
            Some(_) => self.limits.fits(seen().saturating_sub(self.seen.bytes())),
            None => Ok(()),
        };
        fits.map_err(|limit| self.end(|ended| ended.limit = Some(limit))).is_err()
    }

    /// The same by what states and frontier take, which is known without asking the system.
    fn estimate_exceeded(&self, seen: impl Fn() -> u64) -> bool {
        let most = match self.limits.memory {
            Some(most) if seen() + self.frontier_bytes() + BASE_BYTES > most - most / SLACK => most,
            _ => return false,
        };
        self.end(|ended| ended.limit = Some(Limit::Memory(most)));
        true
    }

    /// Queues double their room when full, and hold old and new while they move.
    fn frontier_bytes(&self) -> u64 {
        self.waiting.load(Ordering::Relaxed) * 8 * 3
    }

    pub(super) fn bytes(&self) -> u64 {
        self.seen.bytes() + self.frontier_bytes()
    }

    pub(super) fn counted(&self) -> u64 {
        self.transitions.load(Ordering::Relaxed)
    }

    pub(super) fn ended(&self) -> MutexGuard<'_, Ended> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, how: impl FnOnce(&mut Ended)) {
        how(&mut self.ended());
        self.stop.store(true, Ordering::Relaxed);
    }

    /// What came of the search, whether this process has searched by itself or together with others.
    fn found(self, together: Option<Together>) -> Result<Found<M::Step>, Spent<Found<M::Step>>> {
        let Together { goals: lines, mut limit, spent, states, transitions, bytes } =
            together.unwrap_or_else(|| self.by_itself());
        let any = !lines.is_empty();
        let mut goals = Vec::new();
        for (number, line) in lines {
            let line = shortened(self.machine, line, self.limits);
            match self.machine.trace(&line, self.limits) {
                Ok(actions) => goals.push((number, actions)),
                Err(reached) => limit = Some(reached),
            }
        }
        let spent = spent && !any && limit.is_none();
        let found = Found { goals, limit, states, transitions, bytes };
        if spent { Err(Spent(found)) } else { Ok(found) }
    }

    fn by_itself(&self) -> Together {
        let ended = self.ended();
        Together {
            goals: ended.goals.iter().map(|&(number, goal)| (number, self.line(goal))).collect(),
            limit: ended.limit.clone(),
            spent: ended.spent,
            states: self.seen.states(),
            transitions: self.counted(),
            bytes: self.bytes(),
        }
    }

    /// The states that lead to this one.
    fn line(&self, goal: Offset) -> Vec<Vec<u64>> {
        let mut line = vec![goal];
        while let Some(parent) = self.seen.parent(line[line.len() - 1]) {
            line.push(parent);
        }
        let words = |&offset: &Offset| {
            let mut words = Vec::new();
            self.seen.read(offset, &mut words);
            words
        };
        line.iter().rev().map(words).collect()
    }
}

/// What a worker has before it.
pub(super) struct Desk<M: Machine> {
    scratch: M::Scratch,
    pub corner: Corner,
    words: Vec<u64>,
    pub found: Successors,
    slots: Vec<u64>,
    /// The last batch took so long that the limits are looked at between tasks.
    slow: bool,
    /// Taken since they were last counted for all.
    pub transitions: u64,
    /// Where the parents of states lie that have just come from other processes.
    pub arrived: Vec<u64>,
    /// The same of those that were new.
    pub origins: Vec<u64>,
}

impl<M: Machine> Desk<M> {
    fn new(machine: &M) -> Self {
        Desk {
            scratch: machine.scratch(),
            corner: Corner::default(),
            words: Vec::new(),
            found: Successors::default(),
            slots: Vec::new(),
            slow: false,
            transitions: 0,
            arrived: Vec::new(),
            origins: Vec::new(),
        }
    }
}

/// States that were found and not yet looked up.
#[derive(Default)]
pub(super) struct Successors {
    pub words: Vec<u64>,
    pub entries: Vec<Entry>,
    parent: Option<Offset>,
}

pub(super) struct Entry {
    pub start: usize,
    pub len: usize,
    tag: u64,
    pub parent: Option<Offset>,
    pub sleep: Sleep,
}

impl Successors {
    fn clear(&mut self) {
        self.words.clear();
        self.entries.clear();
    }

    #[inline]
    pub(super) fn add(&mut self, words: &[u64], sleep: Sleep, parent: Option<Offset>) {
        let start = self.words.len();
        self.words.extend_from_slice(words);
        self.entries.push(Entry { start, len: words.len(), tag: 0, parent, sleep });
    }
}

impl Sink for Successors {
    #[inline]
    fn state(&mut self, words: &[u64], sleep: Sleep) {
        self.add(words, sleep, self.parent);
    }
}

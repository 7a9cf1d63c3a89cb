//! What is explored next? Frontiers hold tasks: a queue (breadth first, for short traces), a stack (depth
//! first), or one queue for each rank (best first). Several workers have one each and take from each other
//! when theirs is empty: crossbeam's stealing queues for the first two orders, ranked queues behind locks for
//! the third. Invariant: a task is handed out once.

use super::visited::Offset;
use super::{Sleep, Wanted};
use crossbeam_deque::{Steal, Stealer, Worker};
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A state, and the threads to explore from it, in one word.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task(u64);

impl Task {
    const OTHERS: u64 = 1 << 63;

    pub(crate) fn new(offset: Offset, wanted: Wanted) -> Task {
        let others = if wanted.others { Task::OTHERS } else { 0 };
        Task(offset.0 << Sleep::BITS | wanted.threads as u64 | others)
    }

    pub(crate) fn offset(self) -> Offset {
        Offset((self.0 & !Task::OTHERS) >> Sleep::BITS)
    }

    pub(crate) fn wanted(self) -> Wanted {
        Wanted { threads: self.0 as Sleep, others: self.0 & Task::OTHERS != 0 }
    }
}

/// Where tasks wait.
pub(crate) trait Frontier {
    fn push(&mut self, task: Task, rank: usize);
    /// The next task; `None` if there is none left anywhere.
    fn pop(&mut self) -> Option<Task>;
    fn len(&self) -> usize;
}

/// A frontier that one worker has to itself.
pub(crate) trait Whole: Frontier {
    /// Leaves only these tasks.
    fn retain(&mut self, keep: impl FnMut(Task) -> bool);
}

impl Frontier for VecDeque<Task> {
    fn push(&mut self, task: Task, _: usize) {
        self.push_back(task);
    }
    fn pop(&mut self) -> Option<Task> {
        self.pop_front()
    }
    fn len(&self) -> usize {
        VecDeque::len(self)
    }
}

impl Whole for VecDeque<Task> {
    fn retain(&mut self, mut keep: impl FnMut(Task) -> bool) {
        VecDeque::retain(self, |&task| keep(task));
    }
}

impl Frontier for Vec<Task> {
    fn push(&mut self, task: Task, _: usize) {
        Vec::push(self, task);
    }
    fn pop(&mut self) -> Option<Task> {
        Vec::pop(self)
    }
    fn len(&self) -> usize {
        Vec::len(self)
    }
}

impl Whole for Vec<Task> {
    fn retain(&mut self, mut keep: impl FnMut(Task) -> bool) {
        Vec::retain(self, |&task| keep(task));
    }
}

/// One queue for each rank.
#[derive(Debug)]
pub(crate) struct Ranked {
    queues: Vec<VecDeque<Task>>,
    /// No queue before this one has a task.
    first: usize,
    len: usize,
    ties: Ties,
    /// Whether ranks count.
    ranks: bool,
}

/// Which of two tasks of the same rank comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ties {
    Older,
    Newer,
}

impl Ranked {
    pub(crate) fn new(ties: Ties) -> Ranked {
        Ranked { queues: Vec::new(), first: 0, len: 0, ties, ranks: true }
    }

    /// From now on all have the same rank.
    pub(crate) fn forget_ranks(&mut self) {
        let all: VecDeque<Task> = self.queues.drain(..).flatten().collect();
        (self.queues, self.first, self.ranks) = (vec![all], 0, false);
    }

    /// Tasks with their ranks, lowest first.
    pub(crate) fn into_tasks(self) -> impl Iterator<Item = (Task, usize)> {
        let queues = self.queues.into_iter().enumerate();
        queues.flat_map(|(rank, queue)| queue.into_iter().map(move |task| (task, rank)))
    }
}

impl Frontier for Ranked {
    fn push(&mut self, task: Task, rank: usize) {
        let rank = if self.ranks { rank } else { 0 };
        if rank >= self.queues.len() {
            self.queues.resize_with(rank + 1, VecDeque::new);
        }
        self.queues[rank].push_back(task);
        self.first = self.first.min(rank);
        self.len += 1;
    }

    fn pop(&mut self) -> Option<Task> {
        let (at, task) = self.queues.iter_mut().enumerate().skip(self.first).find_map(|(rank, queue)| {
            let task = match self.ties {
                Ties::Older => queue.pop_front(),
                Ties::Newer => queue.pop_back(),
            };
            Some((rank, task?))
        })?;
        self.first = at;
        self.len -= 1;
        Some(task)
    }

    fn len(&self) -> usize {
        self.len
    }
}

impl Whole for Ranked {
    fn retain(&mut self, mut keep: impl FnMut(Task) -> bool) {
        self.queues.iter_mut().for_each(|queue| queue.retain(|&task| keep(task)));
        self.len = self.queues.iter().map(VecDeque::len).sum();
    }
}

/// One worker's tasks, and the way to those of the others.
pub(crate) trait Share {
    fn push(&mut self, task: Task, rank: usize);
    fn own(&mut self) -> Option<Task>;
    fn steal(&mut self) -> Option<Task>;
    fn others_have_some(&self) -> bool;
    fn len(&self) -> usize;
    fn workers(&self) -> usize;
}

/// A share of crossbeam's stealing queues.
pub(crate) struct Stealing<'a> {
    pub own: Worker<Task>,
    pub others: &'a [Stealer<Task>],
}

impl Share for Stealing<'_> {
    fn push(&mut self, task: Task, _: usize) {
        self.own.push(task);
    }

    fn own(&mut self) -> Option<Task> {
        self.own.pop()
    }

    fn steal(&mut self) -> Option<Task> {
        let attempt =
            || self.others.iter().map(|o| o.steal_batch_and_pop(&self.own)).collect::<Steal<Task>>();
        std::iter::repeat_with(attempt).find(|s| !s.is_retry()).and_then(Steal::success)
    }

    fn others_have_some(&self) -> bool {
        self.others.iter().any(|o| !o.is_empty())
    }

    fn len(&self) -> usize {
        self.own.len()
    }

    fn workers(&self) -> usize {
        self.others.len()
    }
}

/// A share of ranked queues.
pub(crate) struct RankedShare<'a> {
    pub all: &'a [Mutex<Ranked>],
    pub own: usize,
    /// Whether this worker looks at ranks at all.
    pub by_rank: bool,
    /// What it has found since it last took a task: the lock is worth taking once for all of them.
    pub new: Vec<(Task, usize)>,
}

impl RankedShare<'_> {
    fn of<T>(&self, worker: usize, act: impl FnOnce(&mut Ranked) -> T) -> T {
        act(&mut self.all[worker].lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }

    fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let (own, all) = (self.own, self.all.len());
        (1..all).map(move |k| (own + k) % all)
    }
}

impl Share for RankedShare<'_> {
    fn push(&mut self, task: Task, rank: usize) {
        self.new.push((task, if self.by_rank { rank } else { 0 }));
    }

    fn own(&mut self) -> Option<Task> {
        let mut new = std::mem::take(&mut self.new);
        let task = self.of(self.own, |tasks| {
            new.drain(..).for_each(|(task, rank)| tasks.push(task, rank));
            tasks.pop()
        });
        self.new = new;
        task
    }

    fn steal(&mut self) -> Option<Task> {
        self.others().find_map(|other| self.of(other, Ranked::pop))
    }

    fn others_have_some(&self) -> bool {
        self.others().any(|other| self.of(other, |tasks| Frontier::len(tasks)) > 0)
    }

    fn len(&self) -> usize {
        self.new.len() + self.of(self.own, |tasks| Frontier::len(tasks))
    }

    fn workers(&self) -> usize {
        self.all.len()
    }
}

/// The frontier of one worker among several.
pub(crate) struct Shared<'a, S> {
    pub share: S,
    pub idle: &'a AtomicUsize,
    pub stop: &'a AtomicBool,
}

impl<S: Share> Frontier for Shared<'_, S> {
    fn push(&mut self, task: Task, rank: usize) {
        self.share.push(task, rank);
    }

    /// Waits while other workers may still produce tasks. All are idle at once only if every queue is empty:
    /// a worker empties its own queue before it idles, and leaves idleness before it takes from another.
    /// Nobody comes back from that, so a worker that asks again only adds to the count.
    fn pop(&mut self) -> Option<Task> {
        if let Some(task) = self.share.own().or_else(|| self.share.steal()) {
            return Some(task);
        }
        self.idle.fetch_add(1, Ordering::SeqCst);
        for spins in 0u32.. {
            if self.idle.load(Ordering::SeqCst) >= self.share.workers() || self.stop.load(Ordering::Relaxed) {
                return None;
            }
            if self.share.others_have_some() {
                self.idle.fetch_sub(1, Ordering::SeqCst);
                if let Some(task) = self.share.steal() {
                    return Some(task);
                }
                self.idle.fetch_add(1, Ordering::SeqCst);
            }
            if spins < 100 { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
        None
    }

    fn len(&self) -> usize {
        self.share.len()
    }
}

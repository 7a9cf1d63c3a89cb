//! Which process has which states, and when is a search over that several processes share?
//!
//! A state belongs to the process that its hash names. Each process expands the states that are its own, keeps
//! the successors that are, and sends the others to their owners in batches, each with its parent. All begin
//! with the same states: the first few are looked at by each process alone, in the same order, and what waits
//! then is dropped by all but its owner. So short searches are not shared at all.
//!
//! Rounds (`peers`) say when to end. A process ends its round with what it has come to: how many states, a limit
//! or goals, whether tasks are left and whether anything was sent. Everything sent before the end of a round has
//! arrived before the end of the next one can be said. So if in one round nobody has tasks left at its end and
//! nobody sent anything in it, nothing is under way, and the search has ended: what could have arrived was sent
//! in rounds before, and had been looked at. All other ends are decided on the same statuses as well, hence by
//! all at once. Then totals, and what machines have noticed, are exchanged, and the lines that lead to goals are
//! put together from their owners. Invariant: a state is stored by its owner, once, and by the others only if it
//! was among the first few.

mod status;

use self::status::Status;
use super::explore::{Desk, Entry, Run, Successors};
use super::frontier::{Frontier, Task, Whole};
use super::peers::{Arrival, Exchange, PATIENCE, round};
use super::visited::{Offset, TAG_SHIFT};
use super::{Goals, Machine, Sleep};
use crate::query::Limit;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A parent with this bit is not an offset: it lies with another process, and the rest is its number among those.
pub(super) const ELSEWHERE: u64 = 1 << 33;

/// Words of a batch.
const BATCH_WORDS: usize = 1 << 13;
/// Tasks after which a process ends its round, if it has so many: a status is worth some work.
const ROUND_TASKS: usize = 1 << 10;
/// Words that may be under way from a process in one round; with more it waits for the others. All of them may have to
/// be held by the processes that they are for.
const ROUND_WORDS: usize = 1 << 17;

/// Where a parent lies: its process, and its offset there.
const OFFSET_BITS: u32 = 48;

const LEN_BITS: u32 = 14;
const SLEEP_BITS: u32 = 16;

/// What a search of several processes came to, the same for all of them.
pub(super) struct Together {
    pub goals: Vec<(usize, Vec<Vec<u64>>)>,
    pub limit: Option<Limit>,
    pub spent: bool,
    pub states: u64,
    pub transitions: u64,
    pub bytes: u64,
}

/// Words that are sent to one process.
#[derive(Default)]
struct Batch(Vec<u64>);

/// What goes to the others.
struct Post<'a> {
    exchange: &'a dyn Exchange,
    search: u64,
    batches: Vec<Batch>,
    recent: Recent,
    /// Words sent since a round ended everywhere.
    words: usize,
    /// Something was sent since this process ended its round.
    sent: bool,
    /// Of the whole search.
    counts: Counts,
}

/// States that were sent not long ago: most successors are found more than once, and once is enough. Exact for
/// what it has, which is what fits.
struct Recent(Vec<u64>);

/// What went out, and the batches that came in.
#[derive(Default)]
struct Counts {
    batches: u64,
    taken: u64,
    statuses: u64,
    words: u64,
}

const RECENT_BITS: u32 = 15;
const RECENT_WORDS: usize = 8;

/// How the search stands, by all statuses so far.
struct Standing {
    beginning: u64,
    /// States that all had looked at before.
    alone: u64,
    alone_words: u64,
    /// Goals with who has them, and where.
    goals: Vec<(usize, usize, u64)>,
    enough: u64,
}

/// Why the search is over.
enum End {
    Exhausted,
    /// Enough goals were found.
    Enough,
    Spent,
    Limit(Limit),
}

impl<M: Machine> Run<'_, M> {
    /// Goes on with what is left, together with the other processes.
    pub(super) fn share<F: Whole>(
        &self,
        exchange: &dyn Exchange,
        desk: &mut Desk<M>,
        mut frontier: F,
    ) -> Together {
        match self.search_together(exchange, desk, &mut frontier) {
            Ok(together) => together,
            Err(limit) => Together {
                goals: vec![],
                limit: Some(limit),
                spent: false,
                states: self.seen.states(),
                transitions: desk.transitions,
                bytes: self.bytes(),
            },
        }
    }

    fn search_together<F: Whole>(
        &self,
        exchange: &dyn Exchange,
        desk: &mut Desk<M>,
        frontier: &mut F,
    ) -> Result<Together, Limit> {
        let (me, count) = (exchange.me(), exchange.count());
        let alone = (self.seen.states(), desk.transitions + self.counted());
        let mut standing = self.standing(frontier.len(), alone);
        let mut words = Vec::new();
        frontier.retain(|task: Task| {
            self.seen.read(task.offset(), &mut words);
            owner(self.seen.tag(&words), count) == me
        });
        let mut post = Post::new(exchange, standing.beginning);
        let end = self.work_in_rounds(&mut post, desk, frontier, &mut standing)?;
        self.seen.settle(&mut desk.corner, 0);
        let (states, transitions) =
            (self.seen.states() - alone.0, desk.transitions + self.counted() - alone.1);
        let Counts { batches, taken, statuses, words } = post.counts;
        let told = [states, transitions, self.bytes(), batches, taken, statuses, words];
        let told = told.into_iter().chain(self.machine.knowledge()).collect();
        let mut together = Together {
            goals: vec![],
            limit: None,
            spent: false,
            states: alone.0,
            transitions: alone.1,
            bytes: 0,
        };
        let mut sum = Counts::default();
        for told in round(exchange, told)? {
            let [states, transitions, bytes, batches, taken, statuses, words, ref knowledge @ ..] = told[..]
            else {
                return Err(garbled());
            };
            sum.add(Counts { batches, taken, statuses, words });
            together.states += states;
            together.transitions += transitions;
            together.bytes += bytes;
            self.machine.learn(knowledge);
        }
        if let Some(peers) = self.search.peers {
            peers.add_sent(sum.batches + sum.statuses, sum.words);
        }
        match end {
            // Should an exchange lose something, then that must not pass for a search that has ended.
            End::Exhausted if sum.batches != sum.taken => return Err(garbled()),
            End::Exhausted | End::Enough => {}
            End::Spent => together.spent = true,
            End::Limit(limit) => together.limit = Some(limit),
        }
        for (number, process, offset) in standing.goals {
            together.goals.push((number, self.line_together(exchange, desk, process, offset)?));
        }
        Ok(together)
    }

    /// How things stand before anything is shared: what this process has seen is what all have seen.
    fn standing(&self, waiting: usize, (states, transitions): (u64, u64)) -> Standing {
        let mut hasher = foldhash::fast::FixedState::default().build_hasher();
        let words = self.seen.words();
        [states, transitions, words, waiting as u64].into_iter().for_each(|word| hasher.write_u64(word));
        let goals = self.ended().goals.iter().map(|&(number, offset)| (number, 0, offset.0)).collect();
        let enough = self.enough.load(Ordering::Relaxed);
        Standing { beginning: hasher.finish() >> 1, alone: states, alone_words: words, goals, enough }
    }

    /// Expands tasks, sends and takes in states, round by round, until all decide that it is over.
    fn work_in_rounds<F: Frontier>(
        &self,
        post: &mut Post<'_>,
        desk: &mut Desk<M>,
        frontier: &mut F,
        standing: &mut Standing,
    ) -> Result<End, Limit> {
        let mut has_ended_round = false;
        let mut tasks = 0;
        loop {
            let works = |frontier: &F, post: &Post<'_>| {
                frontier.len() > 0 && post.words < ROUND_WORDS && !self.stop.load(Ordering::Relaxed)
            };
            loop {
                let wait = has_ended_round && !works(frontier, post);
                match post.exchange.receive(if wait { PATIENCE } else { Duration::ZERO }) {
                    Arrival::Words(words) => self.take_in(&words, post, desk, frontier)?,
                    Arrival::Round(statuses) => {
                        (has_ended_round, tasks, post.words) = (false, 0, 0);
                        if let Some(end) = self.decide(statuses, standing)? {
                            return Ok(end);
                        }
                    }
                    Arrival::Lost(limit) => return Err(limit),
                    Arrival::Nothing if wait && !self.stop.load(Ordering::Relaxed) => {
                        self.limit_hit(self.seen.states());
                    }
                    Arrival::Nothing => break,
                }
            }
            if works(frontier, post) {
                tasks += self.batch();
                self.take_tasks(post, desk, frontier);
            }
            if !has_ended_round && (tasks >= ROUND_TASKS || !works(frontier, post)) {
                self.end_round(post, desk, frontier.len() == 0, standing);
                has_ended_round = true;
            }
        }
    }

    /// Expands some tasks, and looks up or sends what they lead to.
    fn take_tasks<F: Frontier>(&self, post: &mut Post<'_>, desk: &mut Desk<M>, frontier: &mut F) {
        self.expand_batch(desk, frontier);
        self.waiting.store(frontier.len() as u64, Ordering::Relaxed);
        self.route(post, desk);
        let before = self.seen.states();
        self.look_up(desk, frontier, before);
        self.limit_hit(before);
    }

    /// Hands what belongs to others over to the post.
    fn route(&self, post: &mut Post<'_>, desk: &mut Desk<M>) {
        let (me, count) = (post.exchange.me(), post.exchange.count());
        let Successors { words, entries, .. } = &mut desk.found;
        let all = entries.len();
        entries.retain(|entry| {
            let words = &words[entry.start..][..entry.len];
            let tag = self.seen.tag(words);
            let owner = owner(tag, count);
            if owner != me {
                post.send_state(owner, words, tag, entry);
            }
            owner == me
        });
        desk.transitions += (all - entries.len()) as u64;
    }

    /// Looks up states that others have found.
    fn take_in<F: Frontier>(
        &self,
        batch: &[u64],
        post: &mut Post<'_>,
        desk: &mut Desk<M>,
        frontier: &mut F,
    ) -> Result<(), Limit> {
        let [sender, search, ref states @ ..] = *batch else { return Err(garbled()) };
        if search != post.search {
            return Err(garbled());
        }
        if self.stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        post.counts.taken += 1;
        let mut rest = states;
        while let [header, ref behind @ ..] = *rest {
            let len = header as usize & ((1 << LEN_BITS) - 1);
            let sleep = (header >> LEN_BITS) as Sleep;
            let (words, behind) = behind.split_at_checked(len).ok_or_else(garbled)?;
            let parent = header >> (LEN_BITS + SLEEP_BITS);
            desk.arrived.push(sender << OFFSET_BITS | parent);
            desk.found.add(words, sleep, Some(Offset(ELSEWHERE | (desk.arrived.len() as u64 - 1))));
            rest = behind;
        }
        let before = self.seen.states();
        // Whoever sent them has counted them.
        let transitions = desk.transitions;
        self.look_up(desk, frontier, before);
        desk.transitions = transitions;
        desk.arrived.clear();
        Ok(())
    }

    fn end_round(&self, post: &mut Post<'_>, desk: &mut Desk<M>, idle: bool, standing: &Standing) {
        post.flush();
        self.seen.settle(&mut desk.corner, 0);
        let ended = self.ended();
        let status = Status {
            idle,
            sent: std::mem::take(&mut post.sent),
            stopped: self.stop.load(Ordering::Relaxed),
            limit: ended.limit.clone(),
            beginning: standing.beginning,
            states: self.seen.states() - standing.alone,
            words: self.seen.words() - standing.alone_words,
            goals: ended.goals.iter().map(|&(number, offset)| (number, offset.0)).collect(),
        };
        let (status, others) = (status.to_words(), post.exchange.count() as u64 - 1);
        post.counts.statuses += others;
        post.counts.words += others * status.len() as u64;
        post.exchange.end_round(status);
    }

    /// Is it over? Everybody decides the same.
    fn decide(&self, statuses: Vec<Vec<u64>>, standing: &mut Standing) -> Result<Option<End>, Limit> {
        let read = |words: Vec<u64>| Status::from_words(&words).ok_or_else(garbled);
        let statuses: Vec<Status> = statuses.into_iter().map(read).collect::<Result<_, _>>()?;
        if let Some(other) = statuses.iter().position(|s| s.beginning != standing.beginning) {
            return Err(Limit::Lost(format!("process {other} is at another search")));
        }
        let states = standing.alone + statuses.iter().map(|s| s.states).sum::<u64>();
        let words = standing.alone_words + statuses.iter().map(|s| s.words).sum::<u64>();
        self.limits.progress.store(states, Ordering::Relaxed);
        for (process, status) in statuses.iter().enumerate() {
            for &(number, offset) in &status.goals {
                if standing.goals.iter().all(|(known, ..)| *known != number) {
                    standing.goals.push((number, process, offset));
                    self.machine.reached(number);
                    if let Goals::Several { patience } = self.search.goals {
                        standing.enough = standing.enough.min(states + patience);
                    }
                }
            }
        }
        let first = self.search.goals == Goals::First && !standing.goals.is_empty();
        if first || states >= standing.enough {
            return Ok(Some(End::Enough));
        }
        let limit = statuses.iter().find_map(|s| s.limit.clone());
        let allowed = self.limits.states.filter(|&most| states > most);
        if limit.is_none() && self.is_spent(states, words, allowed) {
            return Ok(Some(End::Spent));
        }
        if let Some(limit) = limit.or(allowed.map(Limit::States)) {
            return Ok(Some(End::Limit(limit)));
        }
        if statuses.iter().any(|s| s.stopped) {
            return Ok(Some(if standing.goals.is_empty() { End::Spent } else { End::Enough }));
        }
        let is_over = statuses.iter().all(|s| s.idle && !s.sent);
        Ok(is_over.then_some(End::Exhausted))
    }

    /// The states that lead to one of another process, from an initial one on: each process tells what it has of
    /// the line, from its end to the beginning.
    fn line_together(
        &self,
        exchange: &dyn Exchange,
        desk: &Desk<M>,
        mut process: usize,
        mut offset: u64,
    ) -> Result<Vec<Vec<u64>>, Limit> {
        let mut line = Vec::new();
        loop {
            let own = if process == exchange.me() { self.segment(desk, Offset(offset)) } else { vec![] };
            let told = round(exchange, own)?.swap_remove(process);
            let [before, ref states @ ..] = told[..] else { return Err(garbled()) };
            let mut rest = states;
            while let [len, ref behind @ ..] = *rest {
                let (words, behind) = behind.split_at_checked(len as usize).ok_or_else(garbled)?;
                line.push(words.to_vec());
                rest = behind;
            }
            if before == u64::MAX {
                line.reverse();
                return Ok(line);
            }
            process = (before >> OFFSET_BITS) as usize;
            offset = before & ((1 << OFFSET_BITS) - 1);
            if process >= exchange.count() {
                return Err(garbled());
            }
        }
    }

    /// A state and those before it as far as they are here, and where the line goes on.
    fn segment(&self, desk: &Desk<M>, offset: Offset) -> Vec<u64> {
        let (mut told, mut words, mut at) = (vec![u64::MAX], Vec::new(), Some(offset));
        while let Some(here) = at {
            self.seen.read(here, &mut words);
            told.push(words.len() as u64);
            told.extend_from_slice(&words);
            at = self.seen.parent(here);
            if let Some(Offset(parent)) = at
                && parent & ELSEWHERE != 0
            {
                told[0] = desk.origins[(parent ^ ELSEWHERE) as usize];
                break;
            }
        }
        told
    }
}

impl<'a> Post<'a> {
    fn new(exchange: &'a dyn Exchange, search: u64) -> Post<'a> {
        let batches = (0..exchange.count()).map(|_| Batch::default()).collect();
        let recent = Recent(vec![0; RECENT_WORDS << RECENT_BITS]);
        Post { exchange, search, batches, recent, words: 0, sent: false, counts: Counts::default() }
    }

    fn send_state(&mut self, to: usize, words: &[u64], tag: u64, entry: &Entry) {
        let parent = entry.parent.map_or(0, |offset| offset.0);
        let sleep = (entry.sleep as u64) << LEN_BITS;
        if self.recent.has(words, tag, entry.sleep) {
            return;
        }
        let Batch(batch) = &mut self.batches[to];
        if batch.is_empty() {
            batch.extend([self.exchange.me() as u64, self.search]);
        }
        batch.push(parent << (LEN_BITS + SLEEP_BITS) | sleep | words.len() as u64);
        batch.extend_from_slice(words);
        if batch.len() >= BATCH_WORDS {
            self.deliver(to);
        }
    }

    fn flush(&mut self) {
        let filled: Vec<usize> =
            (0..self.batches.len()).filter(|&to| !self.batches[to].0.is_empty()).collect();
        filled.into_iter().for_each(|to| self.deliver(to));
    }

    fn deliver(&mut self, to: usize) {
        let batch = std::mem::take(&mut self.batches[to].0);
        self.words += batch.len();
        self.sent = true;
        self.counts.batches += 1;
        self.counts.words += batch.len() as u64;
        self.exchange.send(to, batch);
    }
}

impl Counts {
    fn add(&mut self, other: Counts) {
        self.batches += other.batches;
        self.taken += other.taken;
        self.statuses += other.statuses;
        self.words += other.words;
    }
}

impl Recent {
    /// Was the state sent not long ago, with no thread asleep that is awake now? If not, it is being sent now.
    fn has(&mut self, words: &[u64], tag: u64, sleep: Sleep) -> bool {
        if words.len() >= RECENT_WORDS {
            return false;
        }
        let place = (tag >> (u64::BITS - RECENT_BITS)) as usize * RECENT_WORDS;
        let slot = &mut self.0[place..][..RECENT_WORDS];
        let header = 1 << u32::BITS | (words.len() as u64) << SLEEP_BITS;
        let (known, asleep) = (slot[0] & !(Sleep::MAX as u64), slot[0] as Sleep);
        if known == header && asleep & !sleep == 0 && slot[1..][..words.len()] == *words {
            return true;
        }
        slot[0] = header | sleep as u64;
        slot[1..][..words.len()].copy_from_slice(words);
        false
    }
}

/// Who has the states with this tag. The set of visited states places them by other bits.
fn owner(tag: u64, count: usize) -> usize {
    (tag >> TAG_SHIFT) as usize % count
}

/// What another process sent makes no sense here.
fn garbled() -> Limit {
    Limit::Lost("another process is at something else".to_string())
}

//! Have we been here before? The exact set of visited states, shared by all workers without locks on the way.
//!
//! States are runs of machine words in an append-only arena, each behind a header word that holds its parent,
//! its length and its sleep set. The table beside it has one word per state: the top 30 bits of its hash as a
//! tag, and where it lies in the arena. A state counts as seen only if all its words are equal: tags save
//! comparisons, they never decide. Slots are claimed by compare-and-swap after the record is written, so a
//! reader that finds a slot finds the whole record. The place of a slot follows the top bits of the hash,
//! which the tag keeps, so growing the table is one pass over it and needs no rehashing; for that all workers
//! pause (they hold the table's read lock only for a batch of work at a time). Invariant: an offset, once
//! handed out, names the same state for the life of the set.

use bytemuck::{try_zeroed_slice_box, zeroed_slice_box};
use foldhash::fast::FixedState;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{OnceLock, RwLock, RwLockReadGuard};

const OFFSET_BITS: u32 = 34;
const LEN_BITS: u32 = 14;
pub const SLEEP_BITS: u32 = 16;
const OFFSET_MASK: u64 = (1 << OFFSET_BITS) - 1;
/// A parent that is none.
const ROOT: u64 = OFFSET_MASK;

/// The longest state that fits a header's length field.
pub const MAX_WORDS: usize = (1 << LEN_BITS) - 1;

/// The arena's chunks double in size up to a largest. All are so large that an allocator hands them out as
/// pages of their own, which cost nothing until they are touched and go back at once: a process may search
/// many times, and what one search has used must not count against the next.
const FIRST_CHUNK_BITS: u32 = 23;
const LAST_CHUNK_BITS: u32 = 24;
const DOUBLING: usize = (LAST_CHUNK_BITS - FIRST_CHUNK_BITS) as usize;
/// Words in the chunks before those of the largest size.
const DOUBLED: usize = ((1 << DOUBLING) - 1) << FIRST_CHUNK_BITS;
const MAX_OFFSET: usize = 1 << OFFSET_BITS;
const CHUNKS: usize = DOUBLING + ((MAX_OFFSET - DOUBLED) >> LAST_CHUNK_BITS);
/// Words that a worker takes from the arena at a time: few while there are few, so that little is taken in
/// vain; more later, so that workers seldom meet.
const FIRST_BLOCK: usize = 1 << 6;
const LAST_BLOCK: usize = 1 << 9;
/// The part of the arena so far that one block may be.
const BLOCK_SHARE: usize = 8;

const TAG_BITS: u32 = 64 - OFFSET_BITS;
/// The lowest bit of a tag.
pub(super) const TAG_SHIFT: u32 = OFFSET_BITS;
const FIRST_CAPACITY_BITS: u32 = 6;
/// Smaller tables lie in the processor's caches, where a longer way to a free slot costs little.
const LARGE_TABLE: usize = 1 << 16;
/// The tag has no bits to place a slot in a larger table.
const MAX_CAPACITY: usize = 1 << TAG_BITS;
/// A smaller table is copied sooner than a second thread has begun.
const WORTH_SHARING: usize = 1 << 18;

/// Where a state lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset(pub u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    New(Offset),
    /// Visited before; these threads were asleep there and no longer are.
    Woken(Offset, u16),
    /// Visited before.
    Old(Offset),
    /// No room is left that an offset could name.
    Exhausted,
}

type Table = Box<[AtomicU64]>;

pub struct Visited {
    chunks: Vec<OnceLock<Box<[AtomicU64]>>>,
    /// The first word of the arena that is not taken.
    free: AtomicUsize,
    table: RwLock<Table>,
    states: AtomicU64,
    hasher: FixedState,
}

/// A worker's own corner: where it writes next, and how many states it has added since it last said so.
#[derive(Default)]
pub struct Corner {
    next: usize,
    end: usize,
    inserted: u64,
}

impl Default for Visited {
    fn default() -> Self {
        Visited::new()
    }
}

impl Visited {
    pub fn new() -> Visited {
        Visited {
            chunks: (0..CHUNKS).map(|_| OnceLock::new()).collect(),
            free: AtomicUsize::new(0),
            table: RwLock::new(zeroed_slice_box(1 << FIRST_CAPACITY_BITS)),
            states: AtomicU64::new(0),
            hasher: FixedState::with_seed(0x6f76_6572_7461_6b65),
        }
    }

    pub fn states(&self) -> u64 {
        self.states.load(Ordering::Relaxed)
    }

    /// Of all states together.
    pub fn words(&self) -> u64 {
        self.free.load(Ordering::Relaxed) as u64
    }

    pub fn bytes(&self) -> u64 {
        8 * (self.free.load(Ordering::Relaxed) + self.lock().len()) as u64
    }

    /// What the set would use while its table grows.
    pub fn bytes_to_grow(&self) -> u64 {
        self.bytes() + 8 * 2 * self.lock().len() as u64
    }

    pub fn lock(&self) -> RwLockReadGuard<'_, Table> {
        self.table.read().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Publishes what the corner inserted, and says whether the table should grow before `wanted` more.
    pub fn settle(&self, corner: &mut Corner, wanted: usize) -> bool {
        let states = match std::mem::take(&mut corner.inserted) {
            0 => self.states(),
            new => self.states.fetch_add(new, Ordering::Relaxed) + new,
        };
        let capacity = self.lock().len();
        states as usize + wanted > most_states(capacity) && capacity < MAX_CAPACITY
    }

    /// Makes room for so many more states; `false` if there is no memory for that. All other workers have let
    /// go of the table, or wait.
    pub fn grow(&self, wanted: usize, workers: usize) -> bool {
        let mut table = self.table.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        let mut capacity = table.len();
        while self.states() as usize + wanted > most_states(capacity) && capacity < MAX_CAPACITY {
            capacity *= 2;
        }
        if capacity == table.len() {
            return true;
        }
        let Ok(larger) = try_zeroed_slice_box::<AtomicU64>(capacity) else { return false };
        // The other workers wait for the table anyway.
        let helpers = if table.len() < WORTH_SHARING { 1 } else { workers };
        let share = table.len().div_ceil(helpers);
        std::thread::scope(|scope| {
            let mut shares = table.chunks(share);
            let own = shares.next().unwrap_or_default();
            shares.for_each(|share| drop(scope.spawn(|| refill_table(&larger, share))));
            refill_table(&larger, own);
        });
        *table = larger;
        true
    }

    /// Where to look for a state; pass it on to `touch` and `insert`.
    #[inline]
    pub fn tag(&self, words: &[u64]) -> u64 {
        self.hash(words) & !OFFSET_MASK
    }

    /// Brings what `insert` will look at closer. Touching many states in a row and inserting them afterwards
    /// lets the processor wait for all of them at once.
    #[inline]
    pub fn touch(&self, table: &[AtomicU64], tag: u64) -> u64 {
        table[place(tag, table.len())].load(Ordering::Acquire)
    }

    /// The second half of touching: the record in the slot, if it may be the state's.
    #[inline]
    pub fn touch_record(&self, slot: u64, tag: u64) -> u64 {
        if slot == 0 || slot & !OFFSET_MASK != tag {
            return 0;
        }
        self.record(Offset((slot & OFFSET_MASK) - 1))[0].load(Ordering::Relaxed)
    }

    /// Adds the state, or finds it. `sleep` is met with the sleep set of a state found. There must be room:
    /// see `settle`.
    #[inline(always)]
    pub fn insert(
        &self,
        table: &[AtomicU64],
        corner: &mut Corner,
        words: &[u64],
        tag: u64,
        parent: Option<Offset>,
        sleep: u16,
    ) -> Inserted {
        let mut i = place(tag, table.len());
        let mut written = None;
        loop {
            let slot = table[i].load(Ordering::Acquire);
            if slot == 0 {
                let offset = match written {
                    Some(offset) => offset,
                    None => match self.write(corner, words, parent, sleep) {
                        Some(offset) => *written.insert(offset),
                        None => return Inserted::Exhausted,
                    },
                };
                let claim = tag | (offset.0 + 1);
                if table[i].compare_exchange(0, claim, Ordering::Release, Ordering::Relaxed).is_ok() {
                    corner.next += 1 + words.len();
                    corner.inserted += 1;
                    return Inserted::New(offset);
                }
                continue;
            }
            if slot & !OFFSET_MASK == tag {
                let offset = Offset((slot & OFFSET_MASK) - 1);
                let record = self.record(offset);
                if record.len() > words.len()
                    && length(record[0].load(Ordering::Relaxed)) == words.len()
                    && record[1..].iter().zip(words).all(|(a, b)| a.load(Ordering::Relaxed) == *b)
                {
                    return wake(&record[0], offset, sleep);
                }
            }
            i = (i + 1) & (table.len() - 1);
        }
    }

    /// Writes a record where the corner stands; it becomes permanent once its slot is claimed.
    fn write(
        &self,
        corner: &mut Corner,
        words: &[u64],
        parent: Option<Offset>,
        sleep: u16,
    ) -> Option<Offset> {
        let size = 1 + words.len();
        if corner.end - corner.next < size {
            self.refill(corner, size)?;
        }
        let offset = Offset(corner.next as u64);
        let record = self.record(offset);
        let parent = parent.map_or(ROOT, |p| p.0);
        let lengths = (words.len() as u64) << OFFSET_BITS;
        let header = parent | lengths | (sleep as u64) << (OFFSET_BITS + LEN_BITS);
        record[0].store(header, Ordering::Relaxed);
        for (cell, word) in record[1..].iter().zip(words) {
            cell.store(*word, Ordering::Relaxed);
        }
        Some(offset)
    }

    fn refill(&self, corner: &mut Corner, size: usize) -> Option<()> {
        if self.states() as usize > MAX_CAPACITY / 8 * 7 {
            return None;
        }
        let share = self.free.load(Ordering::Relaxed) / BLOCK_SHARE;
        let block = share.clamp(FIRST_BLOCK, LAST_BLOCK).max(size).next_multiple_of(FIRST_BLOCK);
        loop {
            let start = self.free.fetch_add(block, Ordering::Relaxed);
            let end = start + block;
            // The last offset would be mistaken for "no parent", so the last chunk stays unused.
            let (chunk, last) = (chunk_of(start).0, chunk_of(end - 1).0);
            if last + 1 >= CHUNKS {
                return None;
            }
            if chunk == last {
                self.allocate(chunk)?;
                (corner.next, corner.end) = (start, end);
                return Some(());
            }
        }
    }

    /// Makes sure that the chunk exists; `None` if there is no memory for it.
    fn allocate(&self, chunk: usize) -> Option<()> {
        if self.chunks[chunk].get().is_none() {
            let words = try_zeroed_slice_box(1 << (FIRST_CHUNK_BITS + chunk.min(DOUBLING) as u32)).ok()?;
            // Another worker may have been faster; one of the two is dropped.
            let _ = self.chunks[chunk].set(words);
        }
        Some(())
    }

    /// From the header of a record to the end of its chunk.
    #[inline]
    fn record(&self, offset: Offset) -> &[AtomicU64] {
        let (chunk, at) = chunk_of(offset.0 as usize);
        &self.chunks[chunk].get().expect("records lie in chunks that exist")[at..]
    }

    /// Copies the state into `words`, and gives its sleep set.
    #[inline]
    pub fn read(&self, offset: Offset, words: &mut Vec<u64>) -> u16 {
        let record = self.record(offset);
        let header = record[0].load(Ordering::Relaxed);
        words.clear();
        words.extend(record[1..=length(header)].iter().map(|w| w.load(Ordering::Relaxed)));
        (header >> (OFFSET_BITS + LEN_BITS)) as u16
    }

    pub fn parent(&self, offset: Offset) -> Option<Offset> {
        let parent = self.record(offset)[0].load(Ordering::Relaxed) & OFFSET_MASK;
        (parent != ROOT).then_some(Offset(parent))
    }

    /// Gives a state another parent. Only its own worker knows it so far.
    pub(super) fn set_parent(&self, offset: Offset, parent: Offset) {
        let header = &self.record(offset)[0];
        header.store(header.load(Ordering::Relaxed) & !OFFSET_MASK | parent.0, Ordering::Relaxed);
    }

    #[inline]
    fn hash(&self, words: &[u64]) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        words.iter().for_each(|&w| hasher.write_u64(w));
        hasher.finish()
    }
}

/// The chunk that an offset lies in, and where.
#[inline]
fn chunk_of(offset: usize) -> (usize, usize) {
    if offset < DOUBLED {
        let chunk = ((offset >> FIRST_CHUNK_BITS) + 1).ilog2() as usize;
        (chunk, offset - (((1 << chunk) - 1) << FIRST_CHUNK_BITS))
    } else {
        let beyond = offset - DOUBLED;
        (DOUBLING + (beyond >> LAST_CHUNK_BITS), beyond & ((1 << LAST_CHUNK_BITS) - 1))
    }
}

fn length(header: u64) -> usize {
    (header >> OFFSET_BITS) as usize & MAX_WORDS
}

/// Takes the threads that are not in `sleep` out of the record's sleep set.
#[inline]
fn wake(header: &AtomicU64, offset: Offset, sleep: u16) -> Inserted {
    const SHIFT: u32 = OFFSET_BITS + LEN_BITS;
    let asleep = (header.load(Ordering::Relaxed) >> SHIFT) as u16;
    if asleep & !sleep == 0 {
        return Inserted::Old(offset);
    }
    let keep = (sleep as u64) << SHIFT | ((1 << SHIFT) - 1);
    let before = (header.fetch_and(keep, Ordering::Relaxed) >> SHIFT) as u16;
    match before & !sleep {
        0 => Inserted::Old(offset),
        woken => Inserted::Woken(offset, woken),
    }
}

/// Where probing for a tag begins.
#[inline]
fn place(tag: u64, capacity: usize) -> usize {
    (tag >> (64 - capacity.trailing_zeros())) as usize
}

/// Puts what a part of the old table has into the larger one; others may do the same with other parts.
fn refill_table(larger: &[AtomicU64], old: &[AtomicU64]) {
    for slot in old.iter().map(|s| s.load(Ordering::Relaxed)).filter(|&s| s != 0) {
        let mut i = place(slot, larger.len());
        while larger[i].compare_exchange(0, slot, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            i = (i + 1) & (larger.len() - 1);
        }
    }
}

/// How far a table is filled before it grows. Beyond its room there are always free slots, where probing
/// ends.
fn most_states(capacity: usize) -> usize {
    if capacity < LARGE_TABLE { capacity / 4 * 3 } else { capacity / 2 }
}

#[cfg(test)]
mod tests;

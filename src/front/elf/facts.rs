//! What do all threads do to memory? Who touches which bytes, and which numbers are stored where.
//!
//! Memory that one thread alone touches, or that nobody writes, needs no cell: it is the thread's own, or constant. The
//! facts only ever grow, until nothing that is seen with them adds to them.

use super::bytes::Bytes;
use super::ops::mask;
use super::value::{FEW, Numbers, Value};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// How an instruction touches memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum AccessKind {
    Load,
    Store,
    Locked,
}

/// An access to shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SharedAccess {
    pub at: u64,
    pub bytes: u8,
    pub kind: AccessKind,
    /// The first instruction that was seen to do it.
    pub by: Option<u64>,
}

impl SharedAccess {
    pub(super) fn end(&self) -> u64 {
        self.at + u64::from(self.bytes)
    }
}

/// Who touches a byte.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Touch {
    threads: BTreeSet<u16>,
    written: bool,
}

/// A block of memory that is asked for while the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HeapBlock {
    pub bytes: u64,
    /// Which blocks can stand for each other, if it is always the same.
    pub class: Option<u64>,
}

/// What is known of the heap.
#[derive(Clone, Debug, Default)]
struct HeapFacts {
    /// By where they begin.
    blocks: BTreeMap<u64, HeapBlock>,
    /// Those that may be given back.
    freed: BTreeSet<u64>,
    /// Who asks for blocks of a class.
    takers: BTreeMap<u64, BTreeSet<u16>>,
    /// Who gives blocks of a class back, while others run.
    givers: BTreeMap<u64, BTreeSet<u16>>,
    /// Who may get a block that was given back.
    taken: BTreeMap<u64, BTreeSet<u16>>,
    /// The classes of those that a thread gave back that was alone, in this order.
    alone: Vec<Option<u64>>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct CodeFacts {
    touched: HashMap<u64, Touch>,
    shared: BTreeSet<u64>,
    /// What is stored in shared memory, by address and bytes.
    stored: BTreeMap<(u64, u8), Value>,
    /// All accesses to shared memory, with an instruction that does it.
    accesses: BTreeMap<(u64, u8, AccessKind), u64>,
    heap: HeapFacts,
    /// Has anything been added since somebody last looked?
    changed: bool,
}

impl CodeFacts {
    /// Has anything been added since the last question?
    pub(super) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// There is more to look at than before.
    pub(super) fn touched_anew(&mut self) {
        self.changed = true;
    }

    /// Bytes that have to be in memory, whoever touches them.
    pub(super) fn share(&mut self, address: u64, bytes: u64) {
        for at in address..address.saturating_add(bytes) {
            self.changed |= self.shared.insert(at);
        }
    }

    pub(super) fn is_shared(&self, address: u64, bytes: u8) -> bool {
        self.shared.range(address..address.saturating_add(u64::from(bytes))).next().is_some()
    }

    /// Who else is there, and does anybody write?
    pub(super) fn touches(&self, address: u64) -> Option<(bool, impl Iterator<Item = u16>)> {
        self.touched.get(&address).map(|touch| (touch.written, touch.threads.iter().copied()))
    }

    /// An instruction accesses these bytes.
    pub(super) fn touch(&mut self, thread: u16, address: u64, bytes: u8, access: AccessKind, by: u64) {
        let end = address.saturating_add(u64::from(bytes));
        let taken = self.heap.around(address).and_then(|block| self.heap.taken.get(&block));
        for at in address..end {
            let touch = self.touched.entry(at).or_default();
            touch.threads.insert(thread);
            touch.written |= access != AccessKind::Load;
            // Whoever gets a block again changes all of it.
            if let Some(takers) = taken {
                touch.threads.extend(takers);
                touch.written = true;
            }
            if touch.written && touch.threads.len() > 1 {
                self.changed |= self.shared.insert(at);
            }
        }
        if self.is_shared(address, bytes) {
            for at in address..end {
                self.changed |= self.shared.insert(at);
            }
            self.accesses.entry((address, bytes, access)).or_insert_with(|| {
                self.changed = true;
                by
            });
        }
    }

    pub(super) fn store(&mut self, address: u64, bytes: u8, value: &Value) {
        match self.stored.get_mut(&(address, bytes)) {
            Some(old) => {
                let joined = old.join(value);
                if joined != *old {
                    let numbers = joined.numbers.widened(&old.numbers);
                    *old = Value { numbers, ..joined };
                    self.changed = true;
                }
            }
            None => {
                self.stored.insert((address, bytes), value.clone());
                self.changed = true;
            }
        }
    }

    pub(super) fn accesses(&self) -> impl Iterator<Item = SharedAccess> {
        self.accesses.iter().map(|((at, bytes, kind), by)| SharedAccess {
            at: *at,
            bytes: *bytes,
            kind: *kind,
            by: Some(*by),
        })
    }

    /// All that a load of shared memory can find.
    pub(super) fn load(&self, address: u64, bytes: u8, initial: &Bytes) -> Value {
        let end = address + u64::from(bytes);
        let near = self.stored.range((address.saturating_sub(7), 0)..(end, 0));
        let near: Vec<_> = near.filter(|((at, size), _)| at + u64::from(*size) > address).collect();
        let mut borders = BTreeSet::from([address, end]);
        // What crosses a border of eight bytes may be found half changed.
        borders.extend((address / 8 + 1..).map(|word| 8 * word).take_while(|border| *border < end));
        for ((at, size), _) in &near {
            borders.extend([*at, at + u64::from(*size)].into_iter().filter(|b| (address..end).contains(b)));
        }
        let borders: Vec<u64> = borders.into_iter().collect();
        let mut whole = Value::constant(0);
        for pair in borders.windows(2) {
            let (from, to) = (pair[0], pair[1]);
            let size = (to - from) as u8;
            let mut part = match initial.number(from, size) {
                Some(number) => Value::constant(number),
                None => Value::undefined(),
            };
            if self.heap.around(from).is_some_and(|block| self.heap.taken.contains_key(&block)) {
                part = part.join(&Value::undefined());
            }
            for ((at, bytes), value) in &near {
                if *at <= from && at + u64::from(*bytes) >= to {
                    part = part.join(&extracted(value, 8 * (from - at) as u8, 8 * size, 8 * bytes));
                }
            }
            whole = combined(&whole, &part, 8 * (from - address) as u8, 8 * size);
        }
        whole
    }
}

impl HeapFacts {
    /// The block that the address is in.
    fn around(&self, address: u64) -> Option<u64> {
        let (start, block) = self.blocks.range(..=address).next_back()?;
        (address - start < block.bytes.max(1)).then_some(*start)
    }
}

/// Blocks of the heap.
impl CodeFacts {
    /// The block that begins there.
    pub(super) fn block(&self, start: u64) -> Option<HeapBlock> {
        self.heap.blocks.get(&start).copied()
    }

    pub(super) fn block_around(&self, address: u64) -> Option<u64> {
        self.heap.around(address)
    }

    /// The block that the address is in, if it may be given back.
    pub(super) fn freed(&self, address: u64) -> Option<u64> {
        self.heap.around(address).filter(|block| self.heap.freed.contains(block))
    }

    /// Those of a class that may be given back.
    pub(super) fn freed_of(&self, class: u64) -> Vec<u64> {
        let of_class = |at: &&u64| self.heap.blocks[*at].class == Some(class);
        self.heap.freed.iter().filter(of_class).copied().collect()
    }

    pub(super) fn allocated(&mut self, start: u64, block: HeapBlock) {
        let joined = match self.heap.blocks.get(&start) {
            Some(old) if *old == block => return,
            Some(old) => HeapBlock {
                bytes: old.bytes.max(block.bytes),
                class: old.class.filter(|class| block.class == Some(*class)),
            },
            None => block,
        };
        self.changed |= self.heap.blocks.insert(start, joined) != Some(joined);
    }

    pub(super) fn free(&mut self, start: u64) {
        self.changed |= self.heap.freed.insert(start);
    }

    /// Does the program give back what is not given out again?
    pub(super) fn keeps_freed(&self) -> bool {
        self.heap.freed.iter().any(|at| self.heap.blocks[at].class.is_none())
    }

    pub(super) fn frees(&self) -> bool {
        !self.heap.freed.is_empty()
    }

    pub(super) fn takers(&self, class: u64) -> BTreeSet<u16> {
        self.heap.takers.get(&class).cloned().unwrap_or_default()
    }

    /// The thread asks for blocks of this class.
    pub(super) fn takes(&mut self, thread: u16, class: u64) {
        self.changed |= self.heap.takers.entry(class).or_default().insert(thread);
    }

    /// The thread gives back such a block.
    pub(super) fn gives(&mut self, thread: u16, class: Option<u64>) {
        if let Some(class) = class {
            self.heap.givers.entry(class).or_default().insert(thread);
        }
    }

    /// Does a thread other than the first give back such blocks?
    pub(super) fn others_give(&self, class: u64) -> bool {
        self.heap.givers.get(&class).is_some_and(|givers| givers.iter().any(|thread| *thread != 0))
    }

    /// The thread may get this block again.
    pub(super) fn taken(&mut self, thread: u16, start: u64) {
        if !self.heap.taken.entry(start).or_default().insert(thread) {
            return;
        }
        self.changed = true;
        let end = start + self.heap.blocks.get(&start).map_or(0, |block| block.bytes);
        for at in start..end {
            let Some(touch) = self.touched.get_mut(&at) else { continue };
            touch.threads.insert(thread);
            touch.written = true;
            if touch.threads.len() > 1 {
                self.shared.insert(at);
            }
        }
    }

    /// A thread that is alone gives back a block.
    pub(super) fn given_back_alone(&mut self, class: Option<u64>) {
        self.heap.alone.push(class);
    }

    /// How many blocks were given back by a thread that was alone.
    pub(super) fn frees_alone(&self) -> usize {
        self.heap.alone.len()
    }

    /// The first of those that others than the first thread may want as well.
    pub(super) fn wanted_by_others(&self) -> Option<usize> {
        let wanted = |class: &Option<u64>| {
            class.is_some_and(|class| self.takers(class).iter().any(|thread| *thread != 0))
        };
        self.heap.alone.iter().position(wanted)
    }
}

/// So many bits of a value, from one on.
fn extracted(value: &Value, from: u8, bits: u8, whole: u8) -> Value {
    if from == 0 && bits == whole {
        return Value { defined: 64, ..value.clone() };
    }
    let numbers = match &value.numbers {
        Numbers::Few(few) => Numbers::of(few.iter().map(|n| n >> from & mask(bits)).collect()),
        Numbers::Range(..) => Numbers::all(bits),
    };
    Value { numbers, poison: value.poison, defined: 64 }
}

/// What is there, with so many more bits behind the first ones.
fn combined(low: &Value, high: &Value, at: u8, bits: u8) -> Value {
    if at == 0 {
        return high.clone();
    }
    let poison = low.poison || high.poison;
    let numbers = match (&low.numbers, &high.numbers) {
        (Numbers::Few(a), Numbers::Few(b)) if a.len() * b.len() <= FEW => {
            Numbers::of(a.iter().flat_map(|x| b.iter().map(move |y| x | y << at)).collect())
        }
        _ => Numbers::all((at + bits).min(64)),
    };
    Value { numbers, poison, defined: 64 }
}

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

#[derive(Clone, Debug, Default)]
pub(super) struct CodeFacts {
    touched: HashMap<u64, Touch>,
    shared: BTreeSet<u64>,
    /// What is stored in shared memory, by address and bytes.
    stored: BTreeMap<(u64, u8), Value>,
    /// All accesses to shared memory, with an instruction that does it.
    accesses: BTreeMap<(u64, u8, AccessKind), u64>,
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
        for at in address..end {
            let touch = self.touched.entry(at).or_default();
            touch.threads.insert(thread);
            touch.written |= access != AccessKind::Load;
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

//! What waits in a store buffer.
//!
//! A loop may store the same again and again while nothing that it reads changes: a buffer could hold any
//! number of copies, and a search through all those states would have no end. So an entry may be
//! *accelerated*: it stands for one copy or more, as many as it takes, as the omega of a coverability graph
//! does `[KarpMiller69]`. Why this is exact: the thread can go round the loop as often as it likes, so every
//! number of copies is reached; and of two neighbours that are equal the older can always be flushed right
//! before the younger, so more copies lead wherever fewer do. For the same reason a further copy next to an
//! accelerated one changes nothing.
//! Not here: which loops there are (`movers::transaction`), and how many copies a run really needs
//! (`concretise`).

use crate::analysis::interval::Interval;
use crate::model::{Bytes, Value};
use crate::reach::pack::{Reader, Writer};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pending {
    pub cell: u32,
    /// Where it changes a part of its cell only, the other bytes are the initial ones, so that the value is one
    /// that the cell may hold.
    pub value: Value,
    pub bytes: Bytes,
    /// There may be more of the same.
    pub accelerated: bool,
}

impl Pending {
    #[inline]
    pub(crate) fn one(cell: u32, value: Value) -> Pending {
        Pending { cell, value, bytes: Bytes::WHOLE, accelerated: false }
    }

    /// Would either be a copy of the other?
    #[inline]
    pub(crate) fn is_like(self, other: Pending) -> bool {
        (self.cell, self.value, self.bytes) == (other.cell, other.value, other.bytes)
    }
}

/// The store enters a buffer.
#[inline]
pub(crate) fn enter(buffer: &mut Vec<Pending>, store: Pending) {
    match buffer.last_mut() {
        Some(last) if last.is_like(store) && (last.accelerated || store.accelerated) => {
            last.accelerated = true
        }
        _ => buffer.push(store),
    }
}

/// The oldest entry of a buffer that is not empty leaves it, or one copy of it, if more of the same stay.
#[inline]
pub(crate) fn leave(buffer: &mut Vec<Pending>, stays: bool) -> Pending {
    if stays { buffer[0] } else { buffer.remove(0) }
}

/// The bits for the length of a buffer in a packed state.
const LENGTH_BITS: u32 = 16;
/// Buffers are not longer than this in states that are stored.
pub(crate) const LONGEST_BUFFER: usize = (1 << LENGTH_BITS) - 1;

/// How buffers are written down: their lengths, and then their entries one after the other, each in one piece
/// if it fits a word.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entries {
    cell_bits: u32,
    accelerated_bits: u32,
    bytes_bits: u32,
    value_bits: u32,
    lowest: Value,
}

impl Entries {
    /// For entries of so many cells with such values.
    pub(crate) fn new(cells: usize, contents: Interval, accelerates: bool, mixes_sizes: bool) -> Entries {
        let last = cells.max(1) as Value - 1;
        Entries {
            cell_bits: Interval { lo: 0, hi: last }.width(),
            accelerated_bits: u32::from(accelerates),
            bytes_bits: if mixes_sizes { u8::BITS } else { 0 },
            value_bits: contents.width(),
            lowest: contents.lo,
        }
    }

    fn low_bits(self) -> u32 {
        self.cell_bits + self.accelerated_bits + self.bytes_bits
    }

    fn fit_a_word(self) -> bool {
        self.low_bits() + self.value_bits <= 64
    }

    /// Appends the buffers, none of them too long.
    pub(crate) fn pack(self, buffers: &[Vec<Pending>], out: &mut Vec<u64>) {
        let (low_bits, one_piece) = (self.low_bits(), self.fit_a_word());
        let mut writer = Writer::new(out);
        buffers.iter().for_each(|buffer| writer.write(LENGTH_BITS, buffer.len() as u64));
        for store in buffers.iter().flatten() {
            // No bits are written for what is the same of all entries.
            let bytes = if self.bytes_bits == 0 { 0 } else { u64::from(store.bytes.0) };
            let beyond = self.cell_bits + self.accelerated_bits;
            let low = store.cell as u64 | (store.accelerated as u64) << self.cell_bits | bytes << beyond;
            let high = store.value.wrapping_sub(self.lowest) as u64;
            let fits = low >> low_bits == 0 && (self.value_bits == 64 || high >> self.value_bits == 0);
            assert!(fits, "a value left the interval that the analysis gave it");
            if one_piece {
                writer.write(low_bits + self.value_bits, low | high << low_bits);
            } else {
                writer.write(low_bits, low);
                writer.write(self.value_bits, high);
            }
        }
        writer.finish();
    }

    /// Fills the buffers, one for each thread.
    pub(crate) fn unpack(self, words: &[u64], buffers: &mut [Vec<Pending>]) {
        let (low_bits, one_piece) = (self.low_bits(), self.fit_a_word());
        let cells = (1 << self.cell_bits) - 1;
        let mut reader = Reader::new(words);
        for buffer in buffers.iter_mut() {
            buffer.clear();
            buffer.resize(reader.read(LENGTH_BITS) as usize, Pending::one(0, 0));
        }
        for store in buffers.iter_mut().flatten() {
            let (low, high) = if one_piece {
                let raw = reader.read(low_bits + self.value_bits);
                (raw & ((1 << low_bits) - 1), raw >> low_bits)
            } else {
                (reader.read(low_bits), reader.read(self.value_bits))
            };
            store.cell = (low & cells) as u32;
            store.accelerated = self.accelerated_bits != 0 && low >> self.cell_bits & 1 != 0;
            if self.bytes_bits != 0 {
                store.bytes = Bytes((low >> (self.cell_bits + self.accelerated_bits)) as u8);
            }
            store.value = self.lowest.wrapping_add(high as Value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_next_to_an_accelerated_entry_are_nothing_new() {
        let (one, omega, other) =
            (Pending::one(0, 1), Pending { accelerated: true, ..Pending::one(0, 1) }, Pending::one(0, 2));
        let filled = |stores: &[Pending]| {
            let mut buffer = Vec::new();
            stores.iter().for_each(|s| enter(&mut buffer, *s));
            buffer
        };
        assert_eq!(filled(&[one, one]), [one, one]);
        assert_eq!(filled(&[one, omega]), [omega]);
        assert_eq!(filled(&[omega, one, omega]), [omega]);
        assert_eq!(filled(&[omega, other, one, other]), [omega, other, one, other]);
    }
}

//! How is a state written down? As a few machine words, each value in as many bits as it needs.
//!
//! A working state is a flat list of values (`vals`): locations, the lock, registers, memory cells. A layout
//! gives each of them that can vary a field: its word, shift and width, the width from the interval
//! analysis. Values that never vary take no room. Fields do not straddle words.
//! Invariant: a packed state and its layout determine every value that anyone may still read. A value outside
//! its interval would break that, so packing checks each and stops the process instead: that would be a bug
//! in the analysis, and a wrong verdict is worse than none.

use crate::model::Value;
use crate::model::interval::Interval;

/// How many words back a field looks for room; keeps laying out linear.
const NEAR: usize = 8;

#[derive(Clone, Copy, Debug)]
struct Field {
    slot: u32,
    word: u32,
    shift: u32,
    mask: u64,
    lo: Value,
}

#[derive(Clone, Debug)]
pub struct Layout {
    fields: Vec<Field>,
    words: usize,
}

impl Layout {
    /// One field per slot with more than one value; widest first, each into the first recent word with room.
    pub fn new(slots: impl IntoIterator<Item = (usize, Interval)>) -> Layout {
        let mut varying: Vec<(usize, Interval)> = slots.into_iter().filter(|(_, i)| i.width() > 0).collect();
        varying.sort_by_key(|(_, i)| std::cmp::Reverse(i.width()));
        let (mut fields, mut used): (Vec<Field>, Vec<u32>) = (Vec::new(), Vec::new());
        for (slot, interval) in varying {
            let width = interval.width();
            let recent = used.len().saturating_sub(NEAR)..used.len();
            let word = recent.into_iter().find(|&w| used[w] + width <= 64).unwrap_or_else(|| {
                used.push(0);
                used.len() - 1
            });
            let mask = u64::MAX >> (64 - width);
            let shift = used[word];
            fields.push(Field { slot: slot as u32, word: word as u32, shift, mask, lo: interval.lo });
            used[word] += width;
        }
        fields.sort_by_key(|f| (f.word, f.shift));
        Layout { fields, words: used.len() }
    }

    pub fn words(&self) -> usize {
        self.words
    }

    /// Appends the packed values to `out`.
    #[inline]
    pub fn pack(&self, vals: &[Value], out: &mut Vec<u64>) {
        let start = out.len();
        out.resize(start + self.words, 0);
        let words = &mut out[start..];
        for f in &self.fields {
            let v = vals[f.slot as usize].wrapping_sub(f.lo) as u64;
            assert!(v <= f.mask, "a value left the interval that the analysis gave it");
            words[f.word as usize] |= v << f.shift;
        }
    }

    /// Fills in the values that have fields; the others keep what they have.
    #[inline]
    pub fn unpack(&self, words: &[u64], vals: &mut [Value]) {
        for f in &self.fields {
            let v = words[f.word as usize] >> f.shift & f.mask;
            vals[f.slot as usize] = f.lo.wrapping_add(v as Value);
        }
    }
}

/// A run of values of changing number after the fixed fields: the store buffers.
pub struct Stream {
    filled: u32,
}

impl Default for Stream {
    fn default() -> Self {
        Stream::new()
    }
}

impl Stream {
    /// Begins a new word.
    pub fn new() -> Stream {
        Stream { filled: 64 }
    }

    pub fn write(&mut self, out: &mut Vec<u64>, interval: Interval, value: Value) {
        let width = interval.width();
        let v = value.wrapping_sub(interval.lo) as u64;
        assert!(width == 64 || v >> width == 0, "a value left the interval that the analysis gave it");
        if self.filled + width > 64 {
            out.push(0);
            self.filled = 0;
        }
        if let Some(last) = out.last_mut().filter(|_| width > 0) {
            *last |= v << self.filled;
            self.filled += width;
        }
    }

    /// Reads what `write` wrote, in the same order; `words` begins where the stream did.
    pub fn read(&mut self, words: &[u64], at: &mut usize, interval: Interval) -> Value {
        let width = interval.width();
        if width == 0 {
            return interval.lo;
        }
        if self.filled + width > 64 {
            *at += 1;
            self.filled = 0;
        }
        let v = words[*at - 1] >> self.filled & (u64::MAX >> (64 - width));
        self.filled += width;
        interval.lo.wrapping_add(v as Value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn interval_and_value() -> impl Strategy<Value = (Interval, Value)> {
        let small = (-5i64..5, 0i64..9).prop_map(|(lo, more)| (lo, lo + more));
        let any = (any::<i64>(), any::<i64>()).prop_map(|(a, b)| (a.min(b), a.max(b)));
        prop_oneof![3 => small, 1 => any].prop_flat_map(|(lo, hi)| (Just(Interval { lo, hi }), lo..=hi))
    }

    proptest! {
        #[test]
        fn unpacking_gives_back_what_was_packed(slots in prop::collection::vec(interval_and_value(), 0..40)) {
            let layout = Layout::new(slots.iter().map(|s| s.0).enumerate());
            let vals: Vec<Value> = slots.iter().map(|s| s.1).collect();
            let mut words = Vec::new();
            layout.pack(&vals, &mut words);
            prop_assert_eq!(words.len(), layout.words());
            let mut back: Vec<Value> = slots.iter().map(|s| s.0.lo).collect();
            layout.unpack(&words, &mut back);
            prop_assert_eq!(back, vals);
        }

        #[test]
        fn a_stream_reads_back_in_order(slots in prop::collection::vec(interval_and_value(), 0..40)) {
            let (mut words, mut out) = (Vec::new(), Stream::new());
            slots.iter().for_each(|(i, v)| out.write(&mut words, *i, *v));
            let (mut stream, mut at) = (Stream::new(), 0);
            for (i, v) in slots {
                prop_assert_eq!(stream.read(&words, &mut at, i), v);
            }
        }
    }

    #[test]
    fn small_values_share_a_word() {
        let bit = Interval { lo: 0, hi: 1 };
        assert_eq!(Layout::new((0..64).map(|i| (i, bit))).words(), 1);
        assert_eq!(Layout::new((0..65).map(|i| (i, bit))).words(), 2);
        assert_eq!(Layout::new([(0, Interval::constant(7))]).words(), 0);
    }
}

//! How is a state written down? As a few machine words, each value in as many bits as it needs.
//!
//! A working state is a flat list of values (`vals`): locations, the lock, registers, memory cells. A layout
//! gives each of them that can vary a field: its word, shift and width, the width from the interval
//! analysis. Values that never vary take no room. Fields do not straddle words.
//! Invariant: a packed state and its layout determine every value that may still be read. A value outside
//! its interval would break that, so packing checks each and stops the process instead: that would be a bug
//! in the analysis, and a wrong verdict is worse than none.

use crate::analysis::interval::Interval;
use crate::model::Value;

/// How many words back a field looks for room; keeps laying out linear.
const NEAR: usize = 8;

/// Where one value lies.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    slot: u32,
    word: u32,
    shift: u32,
    mask: u64,
    lo: Value,
}

impl Field {
    /// For a value that never varies.
    pub fn constant(value: Value) -> Field {
        Field { slot: 0, word: 0, shift: 0, mask: 0, lo: value }
    }

    pub fn width(self) -> u32 {
        self.mask.count_ones()
    }

    /// A value as it is written down.
    #[inline]
    pub fn raw(self, value: Value) -> u64 {
        let raw = value.wrapping_sub(self.lo) as u64;
        assert!(raw <= self.mask, "a value left the interval that the analysis gave it");
        raw
    }

    #[inline]
    pub fn value(self, raw: u64) -> Value {
        self.lo.wrapping_add(raw as Value)
    }

    /// What the field's word says.
    #[inline]
    pub fn raw_in(self, word: u64) -> u64 {
        word >> self.shift & self.mask
    }

    #[inline]
    pub fn get(self, words: &[u64]) -> u64 {
        if self.mask == 0 { 0 } else { self.raw_in(words[self.word as usize]) }
    }

    #[inline]
    pub fn set(self, words: &mut [u64], raw: u64) {
        if self.mask != 0 {
            let word = &mut words[self.word as usize];
            *word = *word & !(self.mask << self.shift) | raw << self.shift;
        }
    }
}

/// The fields of some slots, and the bits of the words that they fill.
#[derive(Clone, Debug)]
pub struct Part {
    fields: Vec<Field>,
    masks: Vec<(usize, u64)>,
    /// The width of all fields together, if they lie in one word and are few bits.
    few: Option<u32>,
}

/// Parts of no more bits than this can be numbered.
const FEW: u32 = 12;

impl Part {
    /// How many words it touches.
    #[inline]
    pub fn words(&self) -> usize {
        self.masks.len()
    }

    /// The bits as a number, if they are few.
    #[inline]
    pub fn number(&self, words: &[u64]) -> Option<usize> {
        self.few?;
        let (word, mask) = self.masks[0];
        Some(((words[word] & mask) >> mask.trailing_zeros()) as usize)
    }

    /// How many numbers there are.
    pub fn numbers(&self) -> usize {
        self.few.map_or(0, |width| 1 << width)
    }

    /// The part's own bits, word by word.
    #[inline]
    pub fn bits(&self, words: &[u64]) -> impl Iterator<Item = u64> {
        self.masks.iter().map(|&(word, mask)| words[word] & mask)
    }

    /// Puts the first of the bits where `bits` takes it from.
    #[inline]
    pub fn set_first(&self, words: &mut [u64], bits: u64) {
        if let Some(&(word, mask)) = self.masks.first() {
            words[word] = words[word] & !mask | bits;
        }
    }

    /// Puts bits where `bits` takes them from.
    #[inline]
    pub fn set(&self, words: &mut [u64], bits: &[u64]) {
        for (&(word, mask), bits) in self.masks.iter().zip(bits) {
            words[word] = words[word] & !mask | bits;
        }
    }

    /// Fills in the part's values.
    pub fn unpack(&self, words: &[u64], vals: &mut [Value]) {
        self.fields.iter().for_each(|f| vals[f.slot as usize] = f.value(f.get(words)));
    }

    /// Writes the part's values, and nothing else.
    pub fn pack(&self, vals: &[Value], words: &mut [u64]) {
        self.fields.iter().for_each(|f| f.set(words, f.raw(vals[f.slot as usize])));
    }
}

#[derive(Clone, Debug)]
pub struct Layout {
    fields: Vec<Field>,
    words: usize,
}

impl Layout {
    /// One field per slot with more than one value; widest first, each into the first recent word with room.
    /// The slots of a group lie in one word, if they can.
    pub fn new(groups: impl IntoIterator<Item = Vec<(usize, Interval)>>) -> Layout {
        let mut varying: Vec<(u32, Vec<(usize, Interval)>)> = Vec::new();
        for mut group in groups {
            group.retain(|(_, i)| i.width() > 0);
            match group.iter().map(|(_, i)| i.width()).sum() {
                0 => {}
                together @ ..=64 => varying.push((together, group)),
                _ => varying.extend(group.into_iter().map(|slot| (slot.1.width(), vec![slot]))),
            }
        }
        varying.sort_by_key(|(width, _)| std::cmp::Reverse(*width));
        let (mut fields, mut used): (Vec<Field>, Vec<u32>) = (Vec::new(), Vec::new());
        for (width, group) in varying {
            let recent = used.len().saturating_sub(NEAR)..used.len();
            let word = recent.into_iter().find(|&w| used[w] + width <= 64).unwrap_or_else(|| {
                used.push(0);
                used.len() - 1
            });
            for (slot, interval) in group {
                let (shift, width) = (used[word], interval.width());
                let mask = u64::MAX >> (64 - width);
                fields.push(Field { slot: slot as u32, word: word as u32, shift, mask, lo: interval.lo });
                used[word] += width;
            }
        }
        fields.sort_by_key(|f| (f.word, f.shift));
        Layout { fields, words: used.len() }
    }

    /// Every slot for itself.
    pub fn loose(slots: impl IntoIterator<Item = (usize, Interval)>) -> Layout {
        Layout::new(slots.into_iter().map(|slot| vec![slot]))
    }

    /// Per slot its field, if it varies.
    pub fn by_slot(&self, slots: usize) -> Vec<Option<Field>> {
        let mut fields = vec![None; slots];
        self.fields.iter().for_each(|f| fields[f.slot as usize] = Some(*f));
        fields
    }

    /// The part of the slots that are chosen.
    pub fn part(&self, has: impl Fn(usize) -> bool) -> Part {
        let fields: Vec<Field> = self.fields.iter().filter(|f| has(f.slot as usize)).copied().collect();
        let mut masks: Vec<(usize, u64)> = Vec::new();
        for field in &fields {
            let mask = field.mask << field.shift;
            match masks.last_mut() {
                Some((word, bits)) if *word == field.word as usize => *bits |= mask,
                _ => masks.push((field.word as usize, mask)),
            }
        }
        let few = match masks[..] {
            [(_, mask)] => {
                Some(64 - mask.leading_zeros() - mask.trailing_zeros()).filter(|width| *width <= FEW)
            }
            _ => None,
        };
        Part { fields, masks, few }
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
            words[f.word as usize] |= f.raw(vals[f.slot as usize]) << f.shift;
        }
    }

    /// Fills in the values that have fields; the others keep what they have.
    #[inline]
    pub fn unpack(&self, words: &[u64], vals: &mut [Value]) {
        for f in &self.fields {
            vals[f.slot as usize] = f.value(f.raw_in(words[f.word as usize]));
        }
    }
}

/// Writes numbers of changing count after the fixed fields: the store buffers. None straddles two words.
pub struct Writer<'a> {
    out: &'a mut Vec<u64>,
    word: u64,
    filled: u32,
}

impl<'a> Writer<'a> {
    /// Begins a new word.
    pub fn new(out: &'a mut Vec<u64>) -> Self {
        Writer { out, word: 0, filled: 0 }
    }

    /// The number has no more bits than that, and at most 64.
    #[inline]
    pub fn write(&mut self, width: u32, raw: u64) {
        if self.filled + width > 64 {
            self.out.push(self.word);
            (self.word, self.filled) = (0, 0);
        }
        if width > 0 {
            self.word |= raw << self.filled;
            self.filled += width;
        }
    }

    pub fn finish(self) {
        if self.filled > 0 {
            self.out.push(self.word);
        }
    }
}

/// Reads what a `Writer` wrote, in the same order.
pub struct Reader<'a> {
    words: std::slice::Iter<'a, u64>,
    word: u64,
    read: u32,
}

impl<'a> Reader<'a> {
    /// The words begin where those of the writer did.
    pub fn new(words: &'a [u64]) -> Self {
        Reader { words: words.iter(), word: 0, read: 64 }
    }

    #[inline]
    pub fn read(&mut self, width: u32) -> u64 {
        if width == 0 {
            return 0;
        }
        if self.read + width > 64 {
            self.word = *self.words.next().expect("what was written is there");
            self.read = 0;
        }
        let raw = self.word >> self.read & (u64::MAX >> (64 - width));
        self.read += width;
        raw
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
            let layout = Layout::loose(slots.iter().map(|s| s.0).enumerate());
            let vals: Vec<Value> = slots.iter().map(|s| s.1).collect();
            let mut words = Vec::new();
            layout.pack(&vals, &mut words);
            prop_assert_eq!(words.len(), layout.words());
            let mut back: Vec<Value> = slots.iter().map(|s| s.0.lo).collect();
            layout.unpack(&words, &mut back);
            prop_assert_eq!(back, vals);
        }

        #[test]
        fn a_part_is_what_its_slots_are(slots in prop::collection::vec(interval_and_value(), 1..12), other in interval_and_value()) {
            let group: Vec<_> = slots.iter().map(|s| s.0).enumerate().collect();
            let layout = Layout::new([group, vec![(slots.len(), other.0)]]);
            let mut vals: Vec<Value> = slots.iter().map(|s| s.1).collect();
            vals.push(other.1);
            let mut words = Vec::new();
            layout.pack(&vals, &mut words);
            let part = layout.part(|slot| slot < slots.len());
            let together = slots.iter().map(|s| s.0.width()).sum::<u32>();
            prop_assert!(part.words() <= 1 || together > 64);
            let bits: Vec<u64> = part.bits(&words).collect();
            prop_assert!(part.number(&words).is_none_or(|n| n < part.numbers()));
            prop_assert_eq!(part.number(&words).is_some(), (1..=FEW).contains(&together));
            let lowest = |(i, v): (Interval, Value)| if i.width() > 0 { i.lo } else { v };
            let mut without = words.clone();
            part.set(&mut without, &vec![0; bits.len()]);
            let mut back = vals.clone();
            layout.unpack(&without, &mut back);
            prop_assert_eq!(&back[..slots.len()], &slots.iter().copied().map(lowest).collect::<Vec<_>>()[..]);
            prop_assert_eq!(back[slots.len()], other.1);
            let mut again = without.clone();
            part.set(&mut again, &bits);
            prop_assert_eq!(&again, &words);
            part.pack(&vals, &mut without);
            prop_assert_eq!(&without, &words);
        }

        #[test]
        fn what_was_written_is_read_in_order(slots in prop::collection::vec(interval_and_value(), 0..40)) {
            let raw = |(i, v): &(Interval, Value)| v.wrapping_sub(i.lo) as u64;
            let mut words = Vec::new();
            let mut writer = Writer::new(&mut words);
            slots.iter().for_each(|slot| writer.write(slot.0.width(), raw(slot)));
            writer.finish();
            let mut reader = Reader::new(&words);
            for slot in &slots {
                prop_assert_eq!(reader.read(slot.0.width()), raw(slot));
            }
        }
    }

    #[test]
    fn small_values_share_a_word() {
        let bit = Interval { lo: 0, hi: 1 };
        assert_eq!(Layout::loose((0..64).map(|i| (i, bit))).words(), 1);
        assert_eq!(Layout::loose((0..65).map(|i| (i, bit))).words(), 2);
        assert_eq!(Layout::loose([(0, Interval::constant(7))]).words(), 0);
    }
}

//! What can a thread read from its past, and which past offers at least as much as another?
//!
//! A past is what the thread may see of memory while its stores are, in the terms of TSO, still in its
//! buffer: the sets are memories that were there one after the other, the marks its own stores among them.
//! Plain definitions, on plain lists.

use super::{Past, Segment};
use crate::model::{Addr, Value};
use bit_set::BitSet;

type Pair = (Addr, Value);

/// What these cells hold in a memory.
pub(super) fn seen(memory: &[Value], cells: &[Addr]) -> Vec<Pair> {
    cells.iter().map(|&cell| (cell, memory[cell.index()])).collect()
}

/// Is every pair of the one set in the other? Both are in ascending order.
fn within(set: &[Pair], other: &[Pair]) -> bool {
    let mut other = other.iter();
    set.iter().all(|pair| other.find(|candidate| *candidate >= pair) == Some(pair))
}

impl Past {
    /// Nothing but one memory, as far as these cells are concerned; the empty past if there are none.
    pub fn of(memory: &[Value], relevant: &[Addr]) -> Past {
        if relevant.is_empty() {
            return Past::default();
        }
        Past { segments: vec![vec![seen(memory, relevant)]], marks: vec![] }
    }

    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Somebody has written: the new memory can be seen, too.
    pub fn append(&mut self, set: Vec<Pair>) {
        if set.is_empty() {
            return;
        }
        if self.segments.is_empty() {
            self.segments.push(vec![]);
        }
        let last = self.segments.last_mut().expect("there is one by now");
        if !last.last().is_some_and(|newest| within(&set, newest)) {
            last.push(set);
        }
    }

    /// The thread itself has written. Its earlier store to the cell no longer counts, and what the cell held
    /// before is hidden from it.
    pub fn mark(&mut self, cell: Addr, value: Value) {
        if self.segments.is_empty() {
            self.segments.push(vec![]);
        }
        if let Some(k) = self.marks.iter().position(|(marked, _)| *marked == cell) {
            self.unmark(k);
        }
        for set in self.segments.iter_mut().flatten() {
            set.retain(|(hidden, _)| *hidden != cell);
        }
        self.tidy();
        self.marks.push((cell, value));
        self.segments.push(vec![]);
    }

    /// The segments on both sides of a mark become one.
    fn unmark(&mut self, k: usize) {
        self.marks.remove(k);
        let behind = self.segments.remove(k + 1);
        self.segments[k].extend(behind);
    }

    fn tidy(&mut self) {
        self.segments.iter_mut().for_each(|segment| segment.retain(|set| !set.is_empty()));
    }

    /// What is left if only these cells count.
    pub fn restrict(&self, relevant: &BitSet) -> Past {
        let mut past = self.clone();
        if relevant.is_empty() || self.is_empty() {
            return Past::default();
        }
        for k in (0..past.marks.len()).rev() {
            if !relevant.contains(past.marks[k].0.index()) {
                past.unmark(k);
            }
        }
        for set in past.segments.iter_mut().flatten() {
            set.retain(|(cell, _)| relevant.contains(cell.index()));
        }
        past.tidy();
        past
    }

    /// The values that a load of the cell may take, each with the past that is left then. Of several places
    /// with the same value the earliest will do: what is left after the others is below.
    pub fn reads(&self, cell: Addr) -> Vec<(Value, Past)> {
        let mark = self.marks.iter().rposition(|(marked, _)| *marked == cell);
        let mut reads: Vec<(Value, Past)> =
            mark.map(|k| (self.marks[k].1, self.clone())).into_iter().collect();
        for k in mark.map_or(0, |k| k + 1)..self.segments.len() {
            for (at, set) in self.segments[k].iter().enumerate() {
                for &(_, value) in set.iter().filter(|(held, _)| *held == cell) {
                    if reads.iter().all(|(known, _)| *known != value) {
                        reads.push((value, self.from(k, at)));
                    }
                }
            }
        }
        reads
    }

    /// The past from one of its sets on.
    fn from(&self, segment: usize, at: usize) -> Past {
        let mut segments = self.segments[segment..].to_vec();
        segments[0].drain(..at);
        Past { segments, marks: self.marks[segment..].to_vec() }
    }

    /// Does the other past offer at least as much? Then a thread that has it can do all that one with this
    /// past can do, whatever happens meanwhile.
    ///
    /// The marks from some place on are those of the other from some place on, and each segment behind them
    /// lies below the other's. What comes before, if anything does, lies within a single set of the other,
    /// marks and all.
    pub fn is_below(&self, other: &Past) -> bool {
        if self.is_empty() {
            return true;
        }
        let most = self.marks.len().min(other.marks.len());
        !other.is_empty() && (0..=most).any(|common| self.is_below_from(other, common))
    }

    /// So many marks, the last ones, are in common.
    fn is_below_from(&self, other: &Past, common: usize) -> bool {
        let (here, there) = (self.marks.len() - common, other.marks.len() - common);
        let behind = self.segments[here + 1..].iter().zip(&other.segments[there + 1..]);
        if self.marks[here..] != other.marks[there..] || !behind.clone().all(|(s, o)| embeds(s, o)) {
            return false;
        }
        let (own, others) = (&self.segments[here], &other.segments[there]);
        if here == 0 && embeds(own, others) {
            return true;
        }
        let holds_front = |set: &Vec<Pair>| {
            self.marks[..here].iter().all(|mark| set.binary_search(mark).is_ok())
                && self.segments[..here].iter().flatten().all(|before| within(before, set))
        };
        (0..others.len()).any(|at| holds_front(&others[at]) && embeds(own, &others[at..]))
    }
}

/// Can each set be found within one of the other segment, in their order?
fn embeds(segment: &Segment, other: &[Vec<Pair>]) -> bool {
    let mut at = 0;
    segment.iter().all(|set| {
        at += other[at..].iter().take_while(|candidate| !within(set, candidate)).count();
        at < other.len()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `x0 y1 | x1 ! y2 | x1y2`: sets between bars, and a mark behind an exclamation mark. Cells are letters.
    fn past(text: &str) -> Past {
        let pairs = |word: &str| {
            let mut pairs: Vec<Pair> = word
                .as_bytes()
                .chunks(2)
                .map(|pair| (Addr(u32::from(pair[0] - b'x')), Value::from(pair[1] - b'0')))
                .collect();
            pairs.sort();
            pairs
        };
        let mut past = Past { segments: vec![vec![]], marks: vec![] };
        for part in text.split('|').map(str::trim).filter(|part| !part.is_empty()) {
            match part.strip_prefix('!') {
                Some(mark) => {
                    past.marks.push(pairs(mark.trim())[0]);
                    past.segments.push(vec![]);
                }
                None => past.segments.last_mut().unwrap().push(pairs(part)),
            }
        }
        past
    }

    #[test]
    fn loads_find_the_mark_or_what_lies_behind_it() {
        let own = past("x0y0 | x0y1 | !x2 | y1x2 | y1x3");
        let found = |cell: u32| own.reads(Addr(cell)).into_iter().map(|(v, _)| v).collect::<Vec<_>>();
        assert_eq!(found(0), [2, 3], "what x held before the own store is hidden");
        assert_eq!(found(1), [0, 1]);
        let left: Vec<Past> = own.reads(Addr(1)).into_iter().map(|(_, left)| left).collect();
        assert_eq!(left, [own.clone(), past("x0y1 | !x2 | y1x2 | y1x3")]);
    }

    #[test]
    fn an_own_store_hides_what_was_there() {
        let mut own = past("x0y0 | !x1 | x1y0 | x1y2");
        own.mark(Addr(0), 3);
        assert_eq!(own, past("y0 | y0 | y2 | !x3 |"));
        own.append(vec![(Addr(0), 3), (Addr(1), 2)]);
        assert_eq!(own, past("y0 | y0 | y2 | !x3 | x3y2"));
        let only: BitSet = [1].into_iter().collect();
        assert_eq!(own.restrict(&only), past("y0 | y0 | y2 | y2"));
    }

    #[test]
    fn what_offers_less_is_below() {
        let below = |a: &str, b: &str| past(a).is_below(&past(b));
        assert!(below("x1", "x0 | x1"), "a thread may leave the oldest behind");
        assert!(!below("x0", "x1"));
        assert!(below("x0 | x1", "x0x1"));
        assert!(!below("x0 | x1", "x1 | x0"), "time does not go back");
        assert!(below("!x1 | x1y0", "x1y0"), "nobody else has written: no trace is left");
        assert!(!below("y1 | !x1 | x1y0", "x1y0"), "y was 1 before");
        assert!(below("y0 | !x1 | x1y0", "y1 | !x2 | y0x2 | x1y0"));
        assert!(below("y0 | !x1 | x1y0", "y0 | !x1 | x0x1y0"));
        assert!(!below("y0 | !x1 | x1y0", "y0 | !x2 | x1y2"));
    }
}

//! What may a lagging thread still read? Its *past*, and which of two offers more.
//!
//! A past is a sequence of memories, oldest first, and of *marks*: the thread's own stores, each at the place
//! where it reached memory. A memory may be read any number of times or not at all, so it is the star of a
//! set of pairs (cell, value), and a past is a product of such stars and of marks, as the ideals of lossy
//! channels are products `[Abdulla04]`:
//!
//! ```text
//! A1* … An* · x=v · B1* … Bm* · y=w · C1* …
//! ```
//!
//! A load of x reads the mark on x, if there is one, and keeps the past; or it reads x in a set behind the
//! mark, and drops all that comes before that set.
//!
//! *Canonical form.* Rules 1, 2, 3 and 5 change nothing that anybody can read.
//!
//! 1. Pairs and marks of cells that are not relevant (`analysis::relevance`) go; segments whose mark goes join.
//! 2. Before a mark on x, no x can be read but the mark's: older pairs and marks of x go.
//! 3. Neighbours of which one contains the other are the larger one.
//! 4. The one *approximation*, by [`Level`]: sets of a segment are joined, which offers more to read.
//! 5. A first mark goes, with the segment before it, if the set behind it contains all of that.
//!
//! *Order.* A past is below another if whatever can be read from the one can be read from the other,
//! segment by segment; or from a set of the other that contains all of a beginning of the one.
//!
//! Sets, pairs and pasts are numbers here (`interned`); [`super::table`] remembers what was computed.

use super::interned::Interned;
use crate::analysis::relevance::Cells;
use crate::model::Value;

/// How much is joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// All sets of a segment are one.
    Joined,
    /// What lies between two copies of a set is joined, if there are more copies than so many.
    Repeated(u32),
    /// Nothing is joined.
    Exact,
}

impl Level {
    /// The next one, which joins less.
    pub fn refined(self) -> Level {
        match self {
            Level::Joined => Level::Repeated(1),
            Level::Repeated(copies) => Level::Repeated(copies + 1),
            Level::Exact => Level::Exact,
        }
    }
}

/// One factor of a past.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Factor {
    /// By its number; it is not empty.
    Set(u32),
    /// The pair's number.
    Mark(u32),
}

/// Pairs of cells and values, and sets of them.
#[derive(Debug)]
pub(crate) struct Sets {
    pairs: Vec<(u32, Value)>,
    /// Per cell its values, and the numbers of the pairs.
    by_cell: Vec<Vec<(Value, u32)>>,
    sets: Interned<u32>,
    space: Vec<u32>,
}

/// The empty set.
pub(crate) const EMPTY: u32 = 0;

impl Sets {
    pub(crate) fn new(cells: usize) -> Sets {
        let mut sets = Interned::default();
        sets.insert(&[]);
        Sets { pairs: Vec::new(), by_cell: vec![Vec::new(); cells], sets, space: Vec::new() }
    }

    #[inline]
    pub(crate) fn pair(&mut self, cell: u32, value: Value) -> u32 {
        let known = &mut self.by_cell[cell as usize];
        if let Some((_, number)) = known.iter().find(|(v, _)| *v == value) {
            return *number;
        }
        let number = self.pairs.len() as u32;
        known.push((value, number));
        self.pairs.push((cell, value));
        number
    }

    #[inline]
    pub(crate) fn value_of(&self, pair: u32) -> (u32, Value) {
        self.pairs[pair as usize]
    }

    #[inline]
    pub(crate) fn cell_of(&self, pair: u32) -> u32 {
        self.pairs[pair as usize].0
    }

    /// The pairs of a set, by their numbers, in ascending order.
    #[inline]
    pub(crate) fn get(&self, set: u32) -> &[u32] {
        self.sets.get(set)
    }

    /// The set of these pairs.
    pub(crate) fn of(&mut self, pairs: impl Iterator<Item = u32>) -> u32 {
        let mut space = std::mem::take(&mut self.space);
        space.clear();
        space.extend(pairs);
        space.sort_unstable();
        space.dedup();
        let (number, _) = self.sets.insert(&space);
        self.space = space;
        number
    }

    /// The pairs of cells of which that is true.
    fn filtered(&mut self, set: u32, keep: impl Fn(u32) -> bool) -> u32 {
        if self.get(set).iter().all(|&pair| keep(self.cell_of(pair))) {
            return set;
        }
        let mut space = std::mem::take(&mut self.space);
        space.clear();
        space.extend(self.get(set).iter().filter(|&&pair| keep(self.cell_of(pair))));
        let (number, _) = self.sets.insert(&space);
        self.space = space;
        number
    }

    fn union(&mut self, a: u32, b: u32) -> u32 {
        let both: Vec<u32> = self.get(a).iter().chain(self.get(b)).copied().collect();
        self.of(both.into_iter())
    }

    /// Is every pair of the one in the other?
    pub(crate) fn is_subset(&self, a: u32, b: u32) -> bool {
        let (small, large) = (self.get(a), self.get(b));
        if a == b || small.is_empty() {
            return true;
        }
        let mut rest = large.iter();
        small.len() <= large.len() && small.iter().all(|pair| rest.by_ref().any(|other| other == pair))
    }

    fn contains(&self, set: u32, pair: u32) -> bool {
        self.get(set).binary_search(&pair).is_ok()
    }

    /// Brings a past into its canonical form, but for rule 1.
    pub(crate) fn canonicalise(&mut self, factors: &mut Vec<Factor>, level: Level) {
        self.hide(factors);
        self.absorb(factors);
        match level {
            Level::Joined => self.join_segments(factors),
            Level::Repeated(copies) => self.join_repeated(factors, copies as usize),
            Level::Exact => {}
        }
        self.drop_front(factors);
    }

    /// Rule 1.
    pub(crate) fn restrict(&mut self, factors: &mut Vec<Factor>, relevant: &Cells) {
        for factor in factors.iter_mut() {
            if let Factor::Set(set) = factor {
                *set = self.filtered(*set, |cell| relevant.contain(cell));
            }
        }
        factors.retain(|factor| match factor {
            Factor::Set(set) => *set != EMPTY,
            Factor::Mark(pair) => relevant.contain(self.cell_of(*pair)),
        });
    }

    /// Rule 2.
    fn hide(&mut self, factors: &mut Vec<Factor>) {
        let mut marked: Vec<u32> = Vec::new();
        for k in (0..factors.len()).rev() {
            match factors[k] {
                Factor::Set(_) if marked.is_empty() => {}
                Factor::Set(set) => {
                    factors[k] = Factor::Set(self.filtered(set, |cell| !marked.contains(&cell)));
                }
                Factor::Mark(pair) if marked.contains(&self.cell_of(pair)) => factors[k] = Factor::Set(EMPTY),
                Factor::Mark(pair) => marked.push(self.cell_of(pair)),
            }
        }
        factors.retain(|factor| *factor != Factor::Set(EMPTY));
    }

    /// Rule 3.
    fn absorb(&self, factors: &mut Vec<Factor>) {
        let mut kept = 0;
        for k in 0..factors.len() {
            let factor = factors[k];
            if let Factor::Set(set) = factor {
                let before = |kept: usize| match kept.checked_sub(1).map(|last| factors[last]) {
                    Some(Factor::Set(before)) => Some(before),
                    _ => None,
                };
                while let Some(small) = before(kept)
                    && self.is_subset(small, set)
                {
                    kept -= 1;
                }
                if before(kept).is_some_and(|large| self.is_subset(set, large)) {
                    continue;
                }
            }
            factors[kept] = factor;
            kept += 1;
        }
        factors.truncate(kept);
    }

    fn join_segments(&mut self, factors: &mut Vec<Factor>) {
        let mut kept: Vec<Factor> = Vec::with_capacity(factors.len());
        for &factor in factors.iter() {
            match (kept.last_mut(), factor) {
                (Some(Factor::Set(all)), Factor::Set(set)) => *all = self.union(*all, set),
                _ => kept.push(factor),
            }
        }
        *factors = kept;
    }

    fn join_repeated(&mut self, factors: &mut Vec<Factor>, copies: usize) {
        while let Some((first, last)) = repeated(factors, copies) {
            let mut all = EMPTY;
            for factor in &factors[first..=last] {
                if let Factor::Set(set) = factor {
                    all = self.union(all, *set);
                }
            }
            factors.splice(first..=last, [Factor::Set(all)]);
            self.absorb(factors);
        }
    }

    /// Rule 5.
    fn drop_front(&self, factors: &mut Vec<Factor>) {
        loop {
            let Some(mark) = factors.iter().position(|p| matches!(p, Factor::Mark(_))) else { return };
            let Some(Factor::Set(behind)) = factors.get(mark + 1).copied() else { return };
            if !factors[..=mark].iter().all(|&factor| self.is_part_of(factor, behind)) {
                return;
            }
            factors.drain(..=mark);
        }
    }

    /// Can all that is read there be read in the set?
    fn is_part_of(&self, factor: Factor, set: u32) -> bool {
        match factor {
            Factor::Set(own) => self.is_subset(own, set),
            Factor::Mark(pair) => self.contains(set, pair),
        }
    }

    /// What a load of the cell may find: values, each with what of the past is left then. The earliest place
    /// of a value leaves the most, so no other is tried.
    pub(crate) fn reads(&self, factors: &[Factor], cell: u32) -> Vec<(Value, Vec<Factor>)> {
        let mut found: Vec<(Value, Vec<Factor>)> = Vec::new();
        let own = |factor: &Factor| matches!(factor, Factor::Mark(pair) if self.cell_of(*pair) == cell);
        if let Some(Factor::Mark(pair)) = factors.iter().find(|factor| own(factor)) {
            found.push((self.value_of(*pair).1, factors.to_vec()));
        }
        // Rule 2 has left no pair of the cell before the mark.
        for (k, factor) in factors.iter().enumerate() {
            let Factor::Set(set) = factor else { continue };
            for (of, value) in self.get(*set).iter().map(|&pair| self.value_of(pair)) {
                if of == cell && found.iter().all(|(known, _)| *known != value) {
                    found.push((value, factors[k..].to_vec()));
                }
            }
        }
        found
    }

    /// Is the first past below the second?
    pub(crate) fn is_below(&self, low: &[Factor], high: &[Factor]) -> bool {
        let (low, high) = (Segments::of(low), Segments::of(high));
        // How many marks of the first lie before what is matched segment by segment.
        (0..=low.marks.len()).any(|front| {
            let same = low.marks.len() - front;
            let Some(dropped) = high.marks.len().checked_sub(same) else { return false };
            low.marks[front..] == high.marks[dropped..]
                && (1..=same)
                    .all(|k| self.is_segment_below(low.segment(front + k), high.segment(dropped + k)))
                && self.is_front_below(&low, front, high.segment(dropped))
        })
    }

    /// Is a past up to and with its segment `front` below a segment?
    fn is_front_below(&self, low: &Segments<'_>, front: usize, high: &[Factor]) -> bool {
        if front == 0 {
            return self.is_segment_below(low.segment(0), high);
        }
        let (before, segment) = (low.up_to(front), low.segment(front));
        (0..high.len()).any(|k| {
            let Factor::Set(set) = high[k] else { unreachable!("segments have no marks") };
            before.iter().all(|&factor| self.is_part_of(factor, set))
                && self.is_segment_below(segment, &high[k..])
        })
    }

    /// Each set inside the first possible one, from left to right.
    fn is_segment_below(&self, low: &[Factor], high: &[Factor]) -> bool {
        let mut rest = high;
        low.iter().all(|&factor| {
            let Some(k) = rest.iter().position(|&other| match other {
                Factor::Set(set) => self.is_part_of(factor, set),
                Factor::Mark(_) => unreachable!("segments have no marks"),
            }) else {
                return false;
            };
            rest = &rest[k..];
            true
        })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.sets.bytes()
    }
}

/// The first set of a segment that occurs more often than so many times: from its first place to its last.
fn repeated(factors: &[Factor], copies: usize) -> Option<(usize, usize)> {
    let mut start = 0;
    for segment in factors.split(|factor| matches!(factor, Factor::Mark(_))) {
        for (k, factor) in segment.iter().enumerate() {
            let places = || (k..segment.len()).filter(|&j| segment[j] == *factor);
            if places().count() > copies {
                return Some((start + k, start + places().next_back().expect("it occurs")));
            }
        }
        start += segment.len() + 1;
    }
    None
}

/// A past between its marks.
struct Segments<'a> {
    factors: &'a [Factor],
    marks: Vec<u32>,
    /// Where the marks are.
    places: Vec<usize>,
}

impl<'a> Segments<'a> {
    fn of(factors: &'a [Factor]) -> Segments<'a> {
        let mark = |(k, factor): (usize, &Factor)| match factor {
            Factor::Mark(pair) => Some((k, *pair)),
            Factor::Set(_) => None,
        };
        let (places, marks) = factors.iter().enumerate().filter_map(mark).unzip();
        Segments { factors, marks, places }
    }

    /// What lies before so many marks, and behind those that come before them.
    fn segment(&self, k: usize) -> &'a [Factor] {
        let start = if k == 0 { 0 } else { self.places[k - 1] + 1 };
        &self.factors[start..self.places.get(k).copied().unwrap_or(self.factors.len())]
    }

    /// So many marks, and all that comes before them.
    fn up_to(&self, marks: usize) -> &'a [Factor] {
        &self.factors[..self.places.get(marks.wrapping_sub(1)).map_or(0, |place| place + 1)]
    }
}

//! What do threads have with them beside what lies in slots? Store buffers, or what other machines put in their
//! place: it names cells and values, so it is described and renamed with them.

use super::super::core::Pending;
use super::Orbit;
use crate::model::Value;

/// What threads have with them beside what lies in slots, in which cells and values are named: store buffers
/// here, and what other machines put in their place.
pub(crate) trait Carried {
    /// Says all there is to say of what the thread carries.
    fn describe(&self, t: usize, said: &mut Said<'_>);

    /// Does what the thread carries name a member of the group?
    fn names_member(&self, t: usize, names: &Names<'_>) -> bool;

    /// Every thread gets what another carried before, in other names.
    fn rename(&mut self, renamed: &Renamed<'_>);
}

/// Which cells and values stand for members of a group?
pub(crate) struct Names<'a> {
    pub(super) orbit: &'a Orbit,
    pub(super) memory: usize,
}

impl Names<'_> {
    /// Does the cell, or the value in it, stand for a member?
    #[inline]
    pub(crate) fn name(&self, cell: u32, value: Value) -> bool {
        let named = self.orbit.named_by(self.memory + cell as usize, value);
        self.orbit.family[cell as usize].is_some() || named.is_some()
    }
}

/// What is being said of one member of a group.
pub(crate) struct Said<'a> {
    pub names: Names<'a>,
    pub(super) member: usize,
    pub(super) ranks: &'a [usize],
    pub(super) key: Key<'a>,
}

impl Said<'_> {
    /// Something in which nobody is named.
    #[inline]
    pub(crate) fn plain(&mut self, v: Value) {
        self.key.plain(v);
    }

    /// A value in a cell, by what both are to the member.
    #[inline]
    pub(crate) fn pair(&mut self, cell: u32, value: Value) {
        let orbit = self.names.orbit;
        let (family, place) = match orbit.family[cell as usize] {
            None => (-1, Named::NoMember(cell as Value)),
            Some((family, named)) => (family as Value, Named::member(named, self.member, self.ranks)),
        };
        self.key.plain(family);
        self.key.named(place);
        self.key.named(orbit.naming(self.names.memory + cell as usize, value, self.member, self.ranks));
    }

    /// Several pairs in whatever order.
    pub(crate) fn pairs(&mut self, pairs: impl Iterator<Item = (u32, Value)>) {
        let from = self.key.words.len();
        pairs.for_each(|(cell, value)| self.pair(cell, value));
        let (described, rest) = self.key.words[from..].as_chunks_mut::<PAIR>();
        debug_assert!(rest.is_empty(), "a pair is so many words");
        described.sort_unstable();
    }
}

/// Words that describe a pair.
const PAIR: usize = 5;

/// The members of a group change places.
pub(crate) struct Renamed<'a> {
    pub(super) orbit: &'a Orbit,
    /// Per place in the new order the old one, and the reverse.
    pub(super) order: &'a [usize],
    pub(super) new_place: &'a [usize],
    pub(super) memory: usize,
}

impl Renamed<'_> {
    /// Which thread was this one before?
    #[inline]
    pub(crate) fn was(&self, t: usize) -> usize {
        self.orbit.place[t].map_or(t, |new| self.orbit.group.members[self.order[new]])
    }

    /// What a value in a cell is called now, and the cell.
    #[inline]
    pub(crate) fn pair(&self, cell: u32, value: Value) -> (u32, Value) {
        let cells = &self.orbit.group.cells;
        let place = self.orbit.family[cell as usize];
        let to = place.map_or(cell, |(family, old)| cells[family][self.new_place[old]]);
        (to, self.orbit.renamed(self.memory + cell as usize, value, self.new_place))
    }

    /// What tells this change of places from others of the program.
    pub(crate) fn key(&self) -> (usize, &[usize]) {
        (self.orbit.group.members[0], self.order)
    }
}

impl Carried for Vec<Vec<Pending>> {
    fn describe(&self, t: usize, said: &mut Said<'_>) {
        for &Pending { cell, value, bytes, accelerated } in self.get(t).into_iter().flatten() {
            said.plain(accelerated as Value | Value::from(bytes.0) << 1);
            said.pair(cell, value);
        }
    }

    fn names_member(&self, t: usize, names: &Names<'_>) -> bool {
        self.get(t).into_iter().flatten().any(|store| names.name(store.cell, store.value))
    }

    fn rename(&mut self, renamed: &Renamed<'_>) {
        let mut before = std::mem::take(self);
        self.extend((0..before.len()).map(|t| std::mem::take(&mut before[renamed.was(t)])));
        for store in self.iter_mut().flatten() {
            (store.cell, store.value) = renamed.pair(store.cell, store.value);
        }
    }
}

/// What a value is to the member that holds it.
#[derive(Clone, Copy)]
pub(super) enum Named {
    /// No name of a member.
    NoMember(Value),
    Itself,
    /// A member of this rank.
    Other(usize),
}

impl Named {
    #[inline]
    pub(crate) fn member(named: usize, holder: usize, ranks: &[usize]) -> Named {
        if named == holder { Named::Itself } else { Named::Other(ranks[named]) }
    }
}

/// What is said of one member after the other.
pub(super) struct Key<'a> {
    pub(super) words: &'a mut Vec<Value>,
    /// A member holds what stands for another.
    pub(super) crosses: bool,
}

impl Key<'_> {
    #[inline]
    pub(crate) fn plain(&mut self, v: Value) {
        self.words.push(v);
    }

    #[inline]
    pub(crate) fn named(&mut self, named: Named) {
        self.words.extend(match named {
            Named::NoMember(v) => [0, v],
            Named::Itself => [1, 0],
            Named::Other(rank) => [2, rank as Value],
        });
        self.crosses |= matches!(named, Named::Other(_));
    }
}

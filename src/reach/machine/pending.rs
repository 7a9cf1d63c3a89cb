//! What waits in a store buffer.
//!
//! A loop may store the same again and again while nothing that it reads changes: a buffer could hold any number of copies,
//! and a search through all those states would have no end. So an entry may stand for *many*: one copy or more, as many as it
//! takes. Why this is exact: the thread can go round the loop as often as it likes, so every number of copies is
//! reached; and of two neighbours that are equal the older can always be flushed right before the younger, so more copies
//! lead wherever fewer do. For the same reason a further copy next to many of its kind changes nothing.
//! Not here: which loops there are (`late`), and how many copies a run really needs (`trace`).

use crate::model::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pending {
    pub cell: u32,
    pub value: Value,
    /// There may be more of the same.
    pub many: bool,
}

impl Pending {
    #[inline]
    pub fn one(cell: u32, value: Value) -> Pending {
        Pending { cell, value, many: false }
    }

    /// Would either be a copy of the other?
    #[inline]
    pub fn is_like(self, other: Pending) -> bool {
        (self.cell, self.value) == (other.cell, other.value)
    }
}

/// The store enters a buffer.
#[inline]
pub(crate) fn enter(buffer: &mut Vec<Pending>, store: Pending) {
    match buffer.last_mut() {
        Some(last) if last.is_like(store) && (last.many || store.many) => last.many = true,
        _ => buffer.push(store),
    }
}

/// The oldest entry of a buffer that is not empty leaves it, or one copy of it, if more of the same stay.
#[inline]
pub(crate) fn leave(buffer: &mut Vec<Pending>, stays: bool) -> Pending {
    if stays { buffer[0] } else { buffer.remove(0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_next_to_many_are_nothing_new() {
        let (one, many, other) =
            (Pending::one(0, 1), Pending { many: true, ..Pending::one(0, 1) }, Pending::one(0, 2));
        let filled = |stores: &[Pending]| {
            let mut buffer = Vec::new();
            stores.iter().for_each(|s| enter(&mut buffer, *s));
            buffer
        };
        assert_eq!(filled(&[one, one]), [one, one]);
        assert_eq!(filled(&[one, many]), [many]);
        assert_eq!(filled(&[many, one, many]), [many]);
        assert_eq!(filled(&[many, other, one, other]), [many, other, one, other]);
    }
}

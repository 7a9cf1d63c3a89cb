//! Lists of words, each kept once and known by its number.
//!
//! All lists lie in one arena, and a hash table has their numbers: a list is a slice and nothing more. Used
//! for sets, for pasts and for the packed part of states.

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use std::hash::{BuildHasher, Hash};

#[derive(Debug)]
pub(crate) struct Interned<T> {
    words: Vec<T>,
    /// Where each list ends.
    ends: Vec<usize>,
    numbers: HashTable<u32>,
}

impl<T> Default for Interned<T> {
    fn default() -> Self {
        Interned { words: Vec::new(), ends: Vec::new(), numbers: HashTable::new() }
    }
}

impl<T: Copy + Eq + Hash> Interned<T> {
    /// How many lists there are.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    #[inline]
    pub(crate) fn get(&self, number: u32) -> &[T] {
        list(&self.words, &self.ends, number)
    }

    /// The number of the list, and whether it is new.
    #[inline]
    pub(crate) fn insert(&mut self, wanted: &[T]) -> (u32, bool) {
        let Interned { words, ends, numbers } = self;
        let hash = |of: &[T]| FixedState::with_seed(0).hash_one(of);
        let entry = numbers.entry(
            hash(wanted),
            |&number| list(words, ends, number) == wanted,
            |&number| hash(list(words, ends, number)),
        );
        match entry {
            hashbrown::hash_table::Entry::Occupied(known) => (*known.get(), false),
            hashbrown::hash_table::Entry::Vacant(new) => {
                let number = ends.len() as u32;
                new.insert(number);
                words.extend_from_slice(wanted);
                ends.push(words.len());
                (number, true)
            }
        }
    }

    /// Bytes that it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.words.capacity() * size_of::<T>()
            + self.ends.capacity() * size_of::<usize>()
            + self.numbers.capacity() * size_of::<u32>()
    }
}

#[inline]
fn list<'a, T>(words: &'a [T], ends: &[usize], number: u32) -> &'a [T] {
    let number = number as usize;
    let start = if number == 0 { 0 } else { ends[number - 1] };
    &words[start..ends[number]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_lists_have_one_number_and_the_numbers_count_up() {
        let mut interned = Interned::default();
        assert_eq!(interned.insert(&[]), (0, true));
        assert_eq!(interned.insert(&[1, 2]), (1, true));
        assert_eq!(interned.insert(&[2]), (2, true));
        assert_eq!(interned.insert(&[1, 2]), (1, false));
        assert_eq!((interned.get(0), interned.get(1), interned.len()), (&[][..], &[1, 2][..], 3));
    }
}

//! Things of which each is kept once, and known by its number.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

pub(crate) struct Interned<T> {
    all: Vec<Arc<T>>,
    numbers: HashMap<Arc<T>, u32>,
}

impl<T> Default for Interned<T> {
    fn default() -> Self {
        Interned { all: Vec::new(), numbers: HashMap::new() }
    }
}

impl<T: Eq + Hash> Interned<T> {
    /// The number of what is equal to this; a new one, if nothing is.
    pub(crate) fn number(&mut self, one: T) -> u32 {
        if let Some(known) = self.find(&one) {
            return known;
        }
        let number = self.all.len() as u32;
        let one = Arc::new(one);
        self.all.push(one.clone());
        self.numbers.insert(one, number);
        number
    }

    /// The number of what is equal to this, if there is such a thing.
    pub(crate) fn find(&self, one: &T) -> Option<u32> {
        self.numbers.get(one).copied()
    }

    pub(crate) fn get(&self, number: u32) -> &T {
        &self.all[number as usize]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.all.iter().map(|one| &**one)
    }
}

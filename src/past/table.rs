//! Pasts by their numbers, and what has been found out about them. Few pasts meet again and again, so every
//! operation on them (`ideal`) is done once and remembered.

use super::ideal::{Factor, Level, Sets};
use super::interned::Interned;
use crate::analysis::relevance::{Cells, Relevance};
use crate::machine::{Carried, Names, Renamed, Said};
use crate::model::Value;
use foldhash::fast::FixedState;
use std::collections::HashMap;

/// The number of a past.
pub(crate) type PastId = u32;

/// A thread that reads memory as it is now. At a store it is short for the past of that memory alone.
pub(crate) const IN_STEP: PastId = 0;

#[derive(Debug)]
pub(crate) struct PastTable {
    sets: Sets,
    /// The first is empty, and stands for a thread in step.
    pasts: Interned<Factor>,
    /// Memories as far as they are relevant: which cells are, and the pairs; and the set for each.
    memories: Interned<u32>,
    sets_of_memories: Vec<u32>,
    done: HashMap<(PastId, Operation), PastId, FixedState>,
    /// What loads find: where in `found`.
    loads: HashMap<(PastId, u32), (u32, u32), FixedState>,
    found: Vec<(Value, PastId)>,
    order: HashMap<(PastId, PastId), bool, FixedState>,
    /// Changes of places of threads.
    permutations: HashMap<(usize, Vec<usize>), u32>,
    space: Vec<Factor>,
    words: Vec<u32>,
}

/// What is made of a past.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Operation {
    /// Another thread has written: this is the memory now.
    Append(u32, Level),
    /// The thread itself has stored this pair, and this is the memory now; so much is relevant.
    Store {
        pair: u32,
        memory: u32,
        relevant: u32,
        level: Level,
    },
    Restrict(u32, Level),
    Rename(u32),
}

impl PastTable {
    pub(crate) fn new(cells: usize) -> PastTable {
        let mut pasts = Interned::default();
        pasts.insert(&[]);
        PastTable {
            sets: Sets::new(cells),
            pasts,
            memories: Interned::default(),
            sets_of_memories: Vec::new(),
            done: HashMap::default(),
            loads: HashMap::default(),
            found: Vec::new(),
            order: HashMap::default(),
            permutations: HashMap::new(),
            space: Vec::new(),
            words: Vec::new(),
        }
    }

    /// How many pasts there are.
    pub(crate) fn len(&self) -> usize {
        self.pasts.len()
    }

    pub(crate) fn factors(&self, past: PastId) -> &[Factor] {
        self.pasts.get(past)
    }

    pub(crate) fn sets(&self) -> &Sets {
        &self.sets
    }

    /// The set of what the relevant cells hold.
    pub(crate) fn memory(&mut self, relevance: &Relevance, relevant: u32, memory: &[Value]) -> u32 {
        let mut words = std::mem::take(&mut self.words);
        words.clear();
        words.push(relevant);
        let cells = &relevance.cells(relevant).list;
        words.extend(cells.iter().map(|&cell| self.sets.pair(cell, memory[cell as usize])));
        let (number, new) = self.memories.insert(&words);
        if new {
            let set = self.sets.of(words[1..].iter().copied());
            self.sets_of_memories.push(set);
        }
        self.words = words;
        self.sets_of_memories[number as usize]
    }

    /// The past of one memory.
    pub(crate) fn of_memory(&mut self, set: u32) -> PastId {
        self.pasts.insert(&[Factor::Set(set)]).0
    }

    /// The past, or that of a thread in step if there is nothing in it but this memory.
    #[inline]
    pub(crate) fn settled(&self, past: PastId, memory: u32) -> PastId {
        if *self.pasts.get(past) == [Factor::Set(memory)] { IN_STEP } else { past }
    }

    /// After another thread's write, with the memory now.
    pub(crate) fn appended(&mut self, past: PastId, memory: u32, level: Level) -> PastId {
        self.remembered(past, Operation::Append(memory, level), |sets, factors| {
            factors.push(Factor::Set(memory));
            sets.canonicalise(factors, level);
        })
    }

    /// After the thread's own store, with the memory now; so much is relevant behind it.
    pub(crate) fn stored(
        &mut self,
        past: PastId,
        (cell, value): (u32, Value),
        memory: u32,
        (relevant, cells): (u32, &Cells),
        level: Level,
    ) -> PastId {
        let pair = self.sets.pair(cell, value);
        self.remembered(past, Operation::Store { pair, memory, relevant, level }, |sets, factors| {
            factors.push(Factor::Mark(pair));
            sets.restrict(factors, cells);
            factors.push(Factor::Set(memory));
            sets.canonicalise(factors, level);
        })
    }

    /// As far as these cells are concerned.
    pub(crate) fn restricted(
        &mut self,
        past: PastId,
        (relevant, cells): (u32, &Cells),
        level: Level,
    ) -> PastId {
        if cells.is_empty() {
            return IN_STEP;
        }
        self.remembered(past, Operation::Restrict(relevant, level), |sets, factors| {
            sets.restrict(factors, cells);
            sets.canonicalise(factors, level);
        })
    }

    fn remembered(
        &mut self,
        past: PastId,
        operation: Operation,
        compute: impl FnOnce(&mut Sets, &mut Vec<Factor>),
    ) -> PastId {
        if let Some(&known) = self.done.get(&(past, operation)) {
            return known;
        }
        self.space.clear();
        self.space.extend_from_slice(self.pasts.get(past));
        compute(&mut self.sets, &mut self.space);
        let (result, _) = self.pasts.insert(&self.space);
        self.done.insert((past, operation), result);
        result
    }

    /// How many values a load of the cell may find.
    pub(crate) fn reads(&mut self, past: PastId, cell: u32) -> std::ops::Range<usize> {
        if let Some(&(from, to)) = self.loads.get(&(past, cell)) {
            return from as usize..to as usize;
        }
        let from = self.found.len();
        for (value, mut left) in self.sets.reads(self.pasts.get(past), cell) {
            // Nothing is joined that was not joined before.
            self.sets.canonicalise(&mut left, Level::Exact);
            let (left, _) = self.pasts.insert(&left);
            self.found.push((value, left));
        }
        self.loads.insert((past, cell), (from as u32, self.found.len() as u32));
        from..self.found.len()
    }

    /// One of them, and what is left of the past then.
    #[inline]
    pub(crate) fn read(&self, which: usize) -> (Value, PastId) {
        self.found[which]
    }

    /// Does the second offer all that the first does? Both belong to the same place and memory.
    #[inline]
    pub(crate) fn is_below(&mut self, low: PastId, high: PastId) -> bool {
        if low == high || low == IN_STEP {
            return true;
        }
        if high == IN_STEP {
            return false;
        }
        *self
            .order
            .entry((low, high))
            .or_insert_with(|| self.sets.is_below(self.pasts.get(low), self.pasts.get(high)))
    }

    /// The past in other names.
    fn renamed(&mut self, past: PastId, permutation: u32, renamed: &Renamed<'_>) -> PastId {
        let pair = |sets: &mut Sets, pair: u32| {
            let (cell, value) = sets.value_of(pair);
            let (cell, value) = renamed.pair(cell, value);
            sets.pair(cell, value)
        };
        self.remembered(past, Operation::Rename(permutation), |sets, factors| {
            for factor in factors {
                *factor = match *factor {
                    Factor::Mark(old) => Factor::Mark(pair(sets, old)),
                    Factor::Set(set) => {
                        let old = sets.get(set).to_vec();
                        let new: Vec<u32> = old.into_iter().map(|old| pair(sets, old)).collect();
                        Factor::Set(sets.of(new.into_iter()))
                    }
                };
            }
        })
    }

    /// Is a member of the group named in the past?
    fn names_member(&self, past: PastId, names: &Names<'_>) -> bool {
        let named = |pair: u32| {
            let (cell, value) = self.sets.value_of(pair);
            names.name(cell, value)
        };
        self.pasts.get(past).iter().any(|factor| match *factor {
            Factor::Mark(pair) => named(pair),
            Factor::Set(set) => self.sets.get(set).iter().any(|&pair| named(pair)),
        })
    }

    pub(crate) fn bytes(&self) -> usize {
        let entry = size_of::<(PastId, Operation, PastId)>();
        self.sets.bytes()
            + self.pasts.bytes()
            + self.memories.bytes()
            + self.done.capacity() * entry
            + self.order.capacity() * 12
            + self.loads.capacity() * 16
            + self.found.capacity() * 16
    }
}

/// The pasts of a state's threads.
pub(crate) struct Pasts<'a> {
    pub table: &'a mut PastTable,
    pub of: &'a mut [PastId],
}

impl Carried for Pasts<'_> {
    fn describe(&self, t: usize, said: &mut Said<'_>) {
        let (past, table) = (self.of[t], &*self.table);
        if past == IN_STEP || !table.names_member(past, &said.names) {
            said.plain(past as Value);
            return;
        }
        said.plain(-1);
        for factor in table.factors(past) {
            match *factor {
                Factor::Mark(pair) => {
                    let (cell, value) = table.sets.value_of(pair);
                    said.plain(0);
                    said.pair(cell, value);
                }
                Factor::Set(set) => {
                    let pairs = table.sets.get(set);
                    said.plain(pairs.len() as Value);
                    said.pairs(pairs.iter().map(|&pair| table.sets.value_of(pair)));
                }
            }
        }
        said.plain(-1);
    }

    fn names_member(&self, t: usize, names: &Names<'_>) -> bool {
        self.table.names_member(self.of[t], names)
    }

    fn rename(&mut self, renamed: &Renamed<'_>) {
        let next = self.table.permutations.len() as u32;
        let (group, order) = renamed.key();
        let permutation = *self.table.permutations.entry((group, order.to_vec())).or_insert(next);
        let before = self.of.to_vec();
        for t in 0..before.len() {
            self.of[t] = match before[renamed.was(t)] {
                IN_STEP => IN_STEP,
                past => self.table.renamed(past, permutation, renamed),
            };
        }
    }
}

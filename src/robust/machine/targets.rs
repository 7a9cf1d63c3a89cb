//! The attacks that a search is for, in the terms of the compiled program.

use super::super::attack::{Attacks, DelayedStore, Overtakers};
use crate::machine::Core;
use crate::model::EdgeId;
use bit_set::BitSet;
use std::sync::atomic::AtomicUsize;

/// A delayed store in the terms of the compiled program.
pub(super) struct AttackTarget {
    pub thread: usize,
    pub edge: EdgeId,
    /// The loads of its attacks, as an index.
    pub overtakers: usize,
    /// Attacks of this store that have not succeeded yet.
    pub open: AtomicUsize,
}

/// The loads of a thread that a target waits for.
pub(super) struct Loads {
    pub edges: BitSet,
    /// The nodes from which one of them can still be reached.
    pub leads_on: BitSet,
}

impl AttackTarget {
    pub(crate) fn new(store: &DelayedStore) -> AttackTarget {
        AttackTarget {
            thread: store.thread.index(),
            edge: store.edge,
            overtakers: store.overtakers,
            open: AtomicUsize::new(store.loads),
        }
    }
}

/// The loads that are waited for, in the terms of the compiled program; and their numbers, which begin at 0
/// in each thread.
pub(super) fn overtakers(attacks: &Attacks, core: &Core) -> (Vec<Loads>, Vec<Vec<usize>>) {
    let mut thread_of = vec![0; attacks.overtakers.len()];
    attacks.stores.iter().for_each(|s| thread_of[s.overtakers] = s.thread.index());
    let mut all = vec![BitSet::new(); core.code.threads.len()];
    for (set, &t) in attacks.overtakers.iter().zip(&thread_of) {
        all[t].union_with(&set.loads);
    }
    let numbered = |loads: &BitSet| {
        let mut numbers = vec![0; loads.iter().last().map_or(0, |last| last + 1)];
        loads.iter().enumerate().for_each(|(k, edge)| numbers[edge] = k);
        numbers
    };
    let one = |(set, &t): (&Overtakers, &usize)| {
        let node_of = &core.code.threads[t].node_of;
        let leads_on = set.leads_on.iter().map(|l| node_of[l] as usize).collect();
        Loads { edges: set.loads.clone(), leads_on }
    };
    let overtakers = attacks.overtakers.iter().zip(&thread_of).map(one).collect();
    (overtakers, all.iter().map(numbered).collect())
}

//! Which steps can be taken alone, and which orders of steps need not be tried? Partial-order reduction
//! `[Godefroid96]`.
//!
//! Two steps are *independent* if they touch no cell that one of them writes. A thread's *future* is all that
//! it may touch from where it stands. A thread's next step, alone, is an *ample set* (a persistent set of one
//! step) if it is independent of the futures of all other threads, cannot change what the goal says, has one
//! outcome, and cannot close a cycle of its thread's graph. The last condition is the cycle proviso, which
//! keeps a thread from running round while the others wait for ever. It is decided on the graph and not on
//! the search's stack, so that it does not depend on the order of the search or on other workers. Inside a
//! `lock` … `unlock` block no other thread can touch memory, so the owner's steps are ample too. Under TSO a
//! flush belongs to its thread, and is ample if no other thread may ever touch the cell and the goal does not
//! look at it.
//!
//! An ample step is taken at once, and the state before it is never stored. Ample steps commute with each
//! other, and stay ample whatever the others do; so taking them until there are none leads to one *normal
//! form*. Stored states are normal forms, and all threads are explored from each of them. Therefore sleep
//! sets ([`sleep`]) may be used on top without more ado: if p and q are independent in s, then q after p and
//! p after q have the same normal forms.
//!
//! The reduction is written once, for whatever holds a state and can take a step in it: a [`Position`].
//! `working` is that of a state in the making.

pub(super) mod sleep;
mod working;

pub(super) use working::{Working, beginning, futures, is_quiet, next_access};

use super::core::others;
use crate::analysis::access::Access;

/// A step that is an ample set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Ample {
    /// The thread's own next step.
    Step,
    /// The oldest store of its buffer reaches memory.
    Flush,
}

/// A state in which ample steps can be found and taken.
pub(super) trait Position {
    fn threads(&self) -> usize;

    /// The threads that have moved since the step began.
    fn moved(&self) -> &[usize];

    /// Everything the thread may still touch, by its stores in the buffer too.
    fn future(&self, t: usize) -> Access;

    /// The cell of the oldest store in the thread's buffer.
    fn oldest_store(&self, t: usize) -> Option<u32>;

    /// Does the goal look at the cell in states that are not final?
    fn is_observed(&self, cell: u32) -> bool;

    /// What the thread's next step touches, if it is determined, invisible, and closes no cycle.
    fn candidate(&mut self, t: usize) -> Option<Access>;

    /// Is that step possible now?
    fn can_step(&self, t: usize) -> bool;

    /// Does the thread's own block hold memory, so that no other thread can touch it?
    fn owns_memory(&self, t: usize) -> bool;

    /// Does another thread's block hold memory?
    fn is_blocked(&self, t: usize) -> bool;

    /// Is nothing in any buffer, and memory not locked?
    fn is_quiet(&self) -> bool;

    fn take(&mut self, t: usize, ample: Ample);
}

/// Takes ample steps until there are none. `space` is room for the others' futures.
pub(super) fn normalise(position: &mut impl Position, space: &mut Vec<Access>) {
    while let Some((t, ample)) = find_ample(position, space) {
        position.take(t, ample);
    }
}

fn find_ample(position: &mut impl Position, space: &mut Vec<Access>) -> Option<(usize, Ample)> {
    space.clear();
    space.extend((0..position.threads()).map(|t| position.future(t)));
    others(space);
    (0..position.threads()).find_map(|t| Some((t, ample(position, t, space[t])?)))
}

/// The thread's ample step, if it has one. `others` is what the other threads may still touch.
#[inline]
fn ample(position: &mut impl Position, t: usize, others: Access) -> Option<Ample> {
    if let Some(cell) = position.oldest_store(t)
        && !position.is_observed(cell)
        && (position.owns_memory(t) || !others.conflicts(Access::write(cell)))
        && !position.is_blocked(t)
    {
        return Some(Ample::Flush);
    }
    let next = position.candidate(t)?;
    let free = (position.owns_memory(t) || !others.conflicts(next)) && position.can_step(t);
    free.then_some(Ample::Step)
}

/// Is a state that follows a quiet normal form one too? A cheap test that settles most cases: nothing has
/// changed for the threads that have not moved if the futures of those that have are what they were. `before`
/// is a thread's future in that normal form, and `others`, per thread, what the other threads could touch
/// then.
#[inline]
pub(super) fn stays_normal<P: Position>(
    after: &mut P,
    before: impl Fn(usize) -> Access,
    others: &[Access],
) -> bool {
    let is_settled = |after: &mut P, t: usize| {
        after.future(t) == before(t) && after.candidate(t).is_none_or(|next| others[t].conflicts(next))
    };
    after.is_quiet() && (0..after.moved().len()).all(|i| is_settled(after, after.moved()[i]))
}

//! Sleep sets `[Godefroid96]`: of two independent steps only one order is taken, where the other leads to the
//! same states.
//!
//! Once a thread has been explored from a state it is *settled* there: whatever begins with its step has been
//! looked after. The successor by a later thread need not try it again, if the two steps are independent: it
//! sleeps there. A thread that moved by an ample step is awake. Sleep sets save transitions, not states.
//! Not here: waking threads when a state is found again with a smaller set (`reach::visited`).

use crate::analysis::access::Access;
use crate::reach::Sleep;

/// The threads whose steps from a state are, or have been, taken care of.
pub(in super::super) struct Settled {
    threads: Sleep,
    is_on: bool,
}

impl Settled {
    /// As the state was found with a sleep set; nothing is added if the reduction is off.
    pub(crate) fn new(sleep: Sleep, is_on: bool) -> Settled {
        Settled { threads: sleep, is_on }
    }

    #[inline]
    pub(crate) fn contains(&self, t: usize) -> bool {
        self.threads & bit(t) != 0
    }

    #[inline]
    pub(crate) fn insert(&mut self, t: usize) {
        if self.is_on {
            self.threads |= bit(t);
        }
    }

    /// The threads that sleep in the successors by thread `t`; `next` says what each thread's next step
    /// touches.
    #[inline]
    pub(crate) fn asleep_after(&self, t: usize, next: &[Access]) -> Sleep {
        let mut left = if self.is_on { self.threads } else { 0 };
        let mut kept = 0;
        while left != 0 {
            let u = left.trailing_zeros();
            left &= left - 1;
            if !next[u as usize].conflicts(next[t]) {
                kept |= 1 << u;
            }
        }
        kept
    }
}

/// A set of some threads, as far as they have bits.
#[inline]
pub(in super::super) fn set_of(threads: &[usize]) -> Sleep {
    threads.iter().fold(0, |all, &t| all | bit(t))
}

/// Nothing for the threads beyond the first few, which never sleep.
#[inline]
fn bit(t: usize) -> Sleep {
    if t < Sleep::BITS as usize { 1 << t } else { 0 }
}

//! What may a search spend on its own account? Whoever lets several searches take turns gives each a
//! [`Budget`]. It is not one of the user's limits, and having spent it is not an answer: [`Spent`] says so in
//! the type.

/// Most states that a search may store, if that is not up to the user's limits alone. Long states count for
/// several: their buffers are long, or their program has grown, and looking at them takes as much longer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget(Option<u64>);

impl Budget {
    pub const UNLIMITED: Budget = Budget(None);
    pub const NONE: Budget = Budget(Some(0));

    pub fn states(most: u64) -> Budget {
        Budget(Some(most))
    }

    /// The number of states, if they have been more.
    pub fn spent_by(self, states: u64) -> Option<u64> {
        self.0.filter(|&most| states > most)
    }

    pub fn exceeds(self, states: u64) -> bool {
        self.0.is_none_or(|most| most > states)
    }

    /// The smaller of the two.
    pub fn and(self, other: Budget) -> Budget {
        Budget(self.0.into_iter().chain(other.0).min())
    }
}

/// The budget was spent before anything was found; what came of it until then.
#[derive(Debug)]
pub struct Spent<T>(pub T);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smaller_of_two_budgets_counts_and_none_is_larger_than_any() {
        let (few, many) = (Budget::states(5), Budget::states(7));
        assert_eq!((few.and(many), many.and(Budget::UNLIMITED)), (few, many));
        assert_eq!(Budget::UNLIMITED.and(Budget::UNLIMITED), Budget::UNLIMITED);
        assert!(many.exceeds(5) && !few.exceeds(5) && Budget::UNLIMITED.exceeds(u64::MAX));
        assert_eq!((few.spent_by(5), few.spent_by(6), Budget::UNLIMITED.spent_by(6)), (None, Some(5), None));
        assert_eq!(Budget::NONE.spent_by(1), Some(0));
    }
}

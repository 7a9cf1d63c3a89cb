//! Which numbers can a variable have? A few, or a range; and perhaps none that anybody knows, where memory was never
//! written.

use super::ops::mask;

/// More are a range.
pub(super) const FEW: usize = 32;
/// What stands for "never written" in a cell or register of the translated program. No number that is shorter than
/// eight bytes looks like it, and no address.
pub(super) const POISON: i64 = 0x5eed_0bad_5eed_0bad;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Numbers {
    /// In order, each once.
    Few(Vec<u64>),
    /// Both included.
    Range(u64, u64),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Value {
    pub numbers: Numbers,
    /// May it have been left uninitialised?
    pub poison: bool,
    /// So many low bits are known to be meant; the others are anything, and 0 here.
    pub defined: u8,
}

impl Numbers {
    pub(super) fn of(mut numbers: Vec<u64>) -> Numbers {
        numbers.sort_unstable();
        numbers.dedup();
        match numbers.len() > FEW {
            true => Numbers::Range(numbers[0], *numbers.last().expect("there are many")),
            false => Numbers::Few(numbers),
        }
    }

    pub(super) fn none() -> Numbers {
        Numbers::Few(Vec::new())
    }

    /// All of so many bits.
    pub(super) fn all(bits: u8) -> Numbers {
        Numbers::Range(0, mask(bits))
    }

    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Numbers::Few(few) if few.is_empty())
    }

    pub(super) fn constant(&self) -> Option<u64> {
        match self {
            Numbers::Few(few) if few.len() == 1 => Some(few[0]),
            _ => None,
        }
    }

    pub(super) fn bounds(&self) -> Option<(u64, u64)> {
        match self {
            Numbers::Few(few) => Some((*few.first()?, *few.last()?)),
            Numbers::Range(lo, hi) => Some((*lo, *hi)),
        }
    }

    pub(super) fn join(&self, other: &Numbers) -> Numbers {
        match (self, other) {
            (Numbers::Few(a), Numbers::Few(b)) => {
                if b.iter().all(|n| a.binary_search(n).is_ok()) {
                    return self.clone();
                }
                Numbers::of(a.iter().chain(b).copied().collect())
            }
            _ => match (self.bounds(), other.bounds()) {
                (Some((a, b)), Some((c, d))) => Numbers::Range(a.min(c), b.max(d)),
                (None, _) => other.clone(),
                (_, None) => self.clone(),
            },
        }
    }

    /// A range that grows ends soon.
    pub(super) fn widened(&self, before: &Numbers) -> Numbers {
        let (Numbers::Range(lo, hi), Some((old_lo, old_hi))) = (self, before.bounds()) else {
            return self.clone();
        };
        let steps = [8, 16, 31, 32, 48, 63, 64].map(mask);
        let up = steps.into_iter().find(|step| step >= hi).unwrap_or(u64::MAX);
        Numbers::Range(if *lo < old_lo { 0 } else { *lo }, if *hi > old_hi { up } else { *hi })
    }

    /// Those that the condition lets through; of a range the ends alone are looked at.
    pub(super) fn filtered(&self, keep: impl Fn(u64) -> bool) -> Numbers {
        match self {
            Numbers::Few(few) => Numbers::Few(few.iter().copied().filter(|n| keep(*n)).collect()),
            range => range.clone(),
        }
    }

    pub(super) fn within(&self, lo: u64, hi: u64) -> Numbers {
        match self {
            Numbers::Few(_) => self.filtered(|n| (lo..=hi).contains(&n)),
            Numbers::Range(a, b) => {
                let (lo, hi) = (lo.max(*a), hi.min(*b));
                match hi.checked_sub(lo) {
                    None => Numbers::none(),
                    Some(more) if more < FEW as u64 => Numbers::Few((lo..=hi).collect()),
                    Some(_) => Numbers::Range(lo, hi),
                }
            }
        }
    }
}

impl Value {
    pub(super) fn constant(number: u64) -> Value {
        Value::of(Numbers::Few(vec![number]))
    }

    pub(super) fn of(numbers: Numbers) -> Value {
        Value { numbers, poison: false, defined: 64 }
    }

    pub(super) fn undefined() -> Value {
        Value { numbers: Numbers::none(), poison: true, defined: 64 }
    }

    pub(super) fn is_undefined(&self) -> bool {
        self.numbers.is_empty() && self.poison
    }

    /// The one number that it is for certain.
    pub(super) fn known(&self) -> Option<u64> {
        if self.poison { None } else { self.numbers.constant() }
    }

    /// Has the translated program a register for it?
    pub(super) fn is_held(&self) -> bool {
        self.known().is_none() && !self.is_undefined()
    }

    pub(super) fn join(&self, other: &Value) -> Value {
        let defined = match (self.is_undefined(), other.is_undefined()) {
            (true, false) => other.defined,
            (false, true) => self.defined,
            _ => self.defined.min(other.defined),
        };
        let low = |value: &Value| value.low(defined);
        Value { numbers: low(self).join(&low(other)), poison: self.poison || other.poison, defined }
    }

    /// The numbers with only so many low bits left.
    fn low(&self, defined: u8) -> Numbers {
        match &self.numbers {
            numbers if self.defined <= defined => numbers.clone(),
            Numbers::Few(few) => Numbers::of(few.iter().map(|n| n & mask(defined)).collect()),
            Numbers::Range(_, hi) if *hi <= mask(defined) => self.numbers.clone(),
            Numbers::Range(..) => Numbers::all(defined),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_numbers_are_a_range_which_ends() {
        let few = Numbers::of((0..40).collect());
        assert_eq!(few, Numbers::Range(0, 39));
        assert_eq!(few.widened(&Numbers::Range(0, 38)), Numbers::Range(0, 255));
        assert_eq!(few.within(3, 5), Numbers::Few(vec![3, 4, 5]));
    }

    #[test]
    fn what_is_meant_of_one_is_meant_of_both() {
        let byte = Value { numbers: Numbers::Few(vec![1]), poison: false, defined: 8 };
        let both = byte.join(&Value::constant(0x1ff));
        assert_eq!(both, Value { numbers: Numbers::Few(vec![1, 0xff]), poison: false, defined: 8 });
        assert!(Value::undefined().join(&byte).poison);
    }
}

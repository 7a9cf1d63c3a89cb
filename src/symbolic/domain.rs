//! Which values can a term have? A few that are listed, or all from one to another.
//!
//! This is what makes bit vectors short and aliases few. Every operation gives a superset of what can come out.

use crate::model::{BinOp, UnOp, Value};

/// So many values are listed one by one.
const LISTED: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Domain {
    /// In order, each once.
    Each(Vec<Value>),
    Range(Value, Value),
}

impl Domain {
    pub const NONE: Domain = Domain::Each(Vec::new());
    pub const ALL: Domain = Domain::Range(Value::MIN, Value::MAX);

    pub fn one(value: Value) -> Domain {
        Domain::Each(vec![value])
    }

    pub fn truth() -> Domain {
        Domain::Each(vec![0, 1])
    }

    pub fn range(lo: Value, hi: Value) -> Domain {
        match hi.checked_sub(lo) {
            Some(d) if (d as u64) < LISTED as u64 => Domain::Each((lo..=hi).collect()),
            _ => Domain::Range(lo, hi),
        }
    }

    pub fn of(mut values: Vec<Value>) -> Domain {
        values.sort_unstable();
        values.dedup();
        match values[..] {
            [lo, .., hi] if values.len() > LISTED => Domain::Range(lo, hi),
            _ => Domain::Each(values),
        }
    }

    pub fn bounds(&self) -> Option<(Value, Value)> {
        match self {
            Domain::Each(values) => Some((*values.first()?, *values.last()?)),
            Domain::Range(lo, hi) => Some((*lo, *hi)),
        }
    }

    pub fn is_empty(&self) -> bool {
        matches!(self, Domain::Each(values) if values.is_empty())
    }

    pub fn has(&self, value: Value) -> bool {
        match self {
            Domain::Each(values) => values.binary_search(&value).is_ok(),
            Domain::Range(lo, hi) => (*lo..=*hi).contains(&value),
        }
    }

    pub fn single(&self) -> Option<Value> {
        match self {
            Domain::Each(values) if values.len() == 1 => values.first().copied(),
            _ => None,
        }
    }

    /// The values, if they are listed.
    pub fn listed(&self) -> Option<&[Value]> {
        match self {
            Domain::Each(values) => Some(values),
            Domain::Range(..) => None,
        }
    }

    pub fn meets(&self, other: &Domain) -> bool {
        match (self, other) {
            (Domain::Each(values), other) | (other, Domain::Each(values)) => {
                values.iter().any(|v| other.has(*v))
            }
            (Domain::Range(a, b), Domain::Range(c, d)) => a <= d && c <= b,
        }
    }

    pub fn union(&self, other: &Domain) -> Domain {
        match (self, other) {
            (Domain::Each(a), Domain::Each(b)) => Domain::of([&a[..], b].concat()),
            (a, b) => match (a.bounds(), b.bounds()) {
                (Some((a, b)), Some((c, d))) => Domain::Range(a.min(c), b.max(d)),
                (Some((a, b)), None) | (None, Some((a, b))) => Domain::Range(a, b),
                (None, None) => Domain::NONE,
            },
        }
    }

    pub fn unary(op: UnOp, a: &Domain) -> Domain {
        match a {
            Domain::Each(values) => Domain::of(values.iter().map(|v| op.apply(*v)).collect()),
            _ if op == UnOp::Not => Domain::truth(),
            Domain::Range(lo, hi) => match (op, lo.checked_neg(), hi.checked_neg()) {
                (UnOp::BitNot, ..) => Domain::Range(!hi, !lo),
                (UnOp::Neg, Some(lo), Some(hi)) => Domain::Range(hi, lo),
                _ => Domain::ALL,
            },
        }
    }

    pub fn binary(op: BinOp, a: &Domain, b: &Domain) -> Domain {
        if a.is_empty() || b.is_empty() {
            return Domain::NONE;
        }
        if let (Domain::Each(x), Domain::Each(y)) = (a, b)
            && x.len() * y.len() <= LISTED * LISTED
        {
            let pairs = x.iter().flat_map(|x| y.iter().map(move |y| (*x, *y)));
            return Domain::of(pairs.map(|(x, y)| op.apply(x, y).unwrap_or(0)).collect());
        }
        use BinOp::*;
        if matches!(op, Or | And | Eq | Ne | Lt | Le | Gt | Ge) {
            return Domain::truth();
        }
        let (Some((a, b)), Some((c, d))) = (a.bounds(), b.bounds()) else { return Domain::NONE };
        let wide = |lo: Option<Value>, hi: Option<Value>| match (lo, hi) {
            (Some(lo), Some(hi)) => Domain::Range(lo, hi),
            _ => Domain::ALL,
        };
        match op {
            Add => wide(a.checked_add(c), b.checked_add(d)),
            Sub => wide(a.checked_sub(d), b.checked_sub(c)),
            BitAnd if a >= 0 || c >= 0 => {
                let most = if a >= 0 && c >= 0 {
                    b.min(d)
                } else if a >= 0 {
                    b
                } else {
                    d
                };
                Domain::Range(0, most)
            }
            BitOr | BitXor if a >= 0 && c >= 0 => {
                let bits = 64 - (b | d).leading_zeros();
                Domain::Range(0, if bits == 63 { Value::MAX } else { (1 << bits) - 1 })
            }
            _ => Domain::ALL,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn domain() -> impl Strategy<Value = Domain> {
        let near = -70i64..70;
        prop_oneof![
            prop::collection::vec(near.clone(), 1..5).prop_map(Domain::of),
            (near.clone(), 0i64..200).prop_map(|(lo, d)| Domain::range(lo, lo + d)),
            (any::<Value>(), any::<Value>()).prop_map(|(a, b)| Domain::Range(a.min(b), a.max(b))),
        ]
    }

    proptest! {
        #[test]
        fn nothing_that_can_come_out_is_missing(a in domain(), b in domain(), op in 0..18usize, pick: u64) {
            use BinOp::*;
            let all = [Or, And, BitOr, BitXor, BitAnd, Eq, Ne, Lt, Le, Gt, Ge, Shl, Shr, Add, Sub, Mul, Div, Rem];
            let one = |d: &Domain, n: u64| {
                let (lo, hi) = d.bounds().unwrap();
                d.listed().map_or_else(
                    || lo.wrapping_add((n % (hi.wrapping_sub(lo) as u64).saturating_add(1).max(1)) as i64),
                    |l| l[n as usize % l.len()],
                )
            };
            let (x, y) = (one(&a, pick), one(&b, pick >> 7));
            prop_assert!(a.has(x) && b.has(y));
            let out = all[op].apply(x, y).unwrap_or(0);
            prop_assert!(Domain::binary(all[op], &a, &b).has(out));
            for op in [UnOp::Neg, UnOp::Not, UnOp::BitNot] {
                prop_assert!(Domain::unary(op, &a).has(op.apply(x)));
            }
            prop_assert!(a.union(&b).has(x) && a.union(&b).has(y));
        }
    }
}

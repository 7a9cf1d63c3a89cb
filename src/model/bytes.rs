//! Which bytes of a cell does an access touch? All of them, unless a program mixes accesses of several sizes.
//!
//! A cell has eight. What an access does not touch, it neither reads nor changes: a load gives 0 there, and a
//! store leaves there what was there before. On x86 each store is one entry of the buffer and reaches memory at
//! once, whatever its size, and a load takes each byte from the newest own entry that has it, or else from memory.

use super::Value;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Bytes of a cell, one bit each, the lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(pub u8);

/// For each set of bytes their bits.
const BITS: [u64; 256] = {
    let mut bits = [0; 256];
    let mut set = 0;
    while set < 256 {
        let mut byte = 0;
        while byte < 8 {
            bits[set] |= if set >> byte & 1 != 0 { 0xff << (8 * byte) } else { 0 };
            byte += 1;
        }
        set += 1;
    }
    bits
};

impl Bytes {
    pub const NONE: Bytes = Bytes(0);
    pub const WHOLE: Bytes = Bytes(0xff);

    /// From byte `lo` up to, and with, byte `hi`, if there are such.
    pub fn range(lo: Value, hi: Value) -> Option<Bytes> {
        let fits = 0 <= lo && lo <= hi && hi < 8;
        fits.then(|| Bytes((0xff >> (7 - (hi - lo))) << lo))
    }

    /// The first and the last of them, if they lie side by side.
    pub fn ends(self) -> Option<(u32, u32)> {
        let (lo, len) = (self.0.trailing_zeros(), self.0.count_ones());
        (len > 0 && self.0.leading_zeros() + lo + len == 8).then(|| (lo, lo + len - 1))
    }

    #[inline]
    pub fn is_whole(&self) -> bool {
        *self == Bytes::WHOLE
    }

    #[inline]
    pub fn is_empty(self) -> bool {
        self == Bytes::NONE
    }

    #[inline]
    pub fn and(self, other: Bytes) -> Bytes {
        Bytes(self.0 & other.0)
    }

    #[inline]
    pub fn without(self, other: Bytes) -> Bytes {
        Bytes(self.0 & !other.0)
    }

    /// The bits of these bytes.
    #[inline]
    pub fn bits(self) -> Value {
        BITS[self.0 as usize] as Value
    }

    /// The value in these bytes, and 0 elsewhere.
    #[inline]
    pub fn of(self, value: Value) -> Value {
        value & self.bits()
    }

    /// What is left if these bytes of a cell get those of the value.
    #[inline]
    pub fn put(self, cell: Value, value: Value) -> Value {
        cell & !self.bits() | value & self.bits()
    }
}

impl Default for Bytes {
    fn default() -> Bytes {
        Bytes::WHOLE
    }
}

/// What stands behind an address: nothing, ` : 3` or ` : 2..4`.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ends() {
            _ if self.is_whole() => Ok(()),
            Some((lo, hi)) if lo == hi => write!(f, " : {lo}"),
            Some((lo, hi)) => write!(f, " : {lo}..{}", hi + 1),
            None => write!(f, " : {:#010b}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_bytes_side_by_side() {
        assert_eq!(Bytes::range(0, 7), Some(Bytes::WHOLE));
        assert_eq!(Bytes::range(2, 3), Some(Bytes(0b1100)));
        assert_eq!([Bytes::range(3, 2), Bytes::range(-1, 0), Bytes::range(0, 8)], [None; 3]);
        let side_by_side = (0..=255).map(Bytes).filter(|b| b.ends().is_some());
        for bytes in side_by_side {
            let (lo, hi) = bytes.ends().unwrap();
            assert_eq!(Bytes::range(lo.into(), hi.into()), Some(bytes));
        }
        assert_eq!((Bytes(0b101).ends(), Bytes::NONE.ends()), (None, None));
    }

    #[test]
    fn a_store_keeps_the_other_bytes() {
        let middle = Bytes(0b0110);
        assert_eq!(middle.bits(), 0xff_ff00);
        assert_eq!(middle.put(0x1122_3344, 0x5566_7788), 0x1166_7744);
        assert_eq!(middle.of(0x5566_7788), 0x66_7700);
        assert_eq!(Bytes(0x80).put(-1, 0), 0x00ff_ffff_ffff_ffff);
    }
}

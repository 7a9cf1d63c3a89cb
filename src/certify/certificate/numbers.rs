//! Numbers as bytes: seven bits in each, the lowest first, with the eighth set in all but the last (LEB128). A
//! signed number is doubled, and taken from -1 if it is negative, before that.

use super::Unreadable;
use crate::limits::{Limit, Limits};
use crate::model::Value;

/// More bytes are never taken from a body.
const MOST_BYTES: u64 = 1 << 32;

#[derive(Default)]
pub(super) struct Writer(Vec<u8>);

impl Writer {
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    pub(crate) fn number(&mut self, mut n: u64) {
        while n >= 1 << 7 {
            self.0.push(n as u8 | 1 << 7);
            n >>= 7;
        }
        self.0.push(n as u8);
    }

    pub(crate) fn value(&mut self, v: Value) {
        self.number((v << 1 ^ v >> 63) as u64);
    }

    /// How many there are, and each of them.
    pub(crate) fn list<T>(&mut self, list: &[T], mut one: impl FnMut(&mut Writer, &T)) {
        self.number(list.len() as u64);
        list.iter().for_each(|item| one(self, item));
    }
}

/// Reads numbers from a source whose end may come too soon or too late.
pub(super) struct Reader<'a, R> {
    from: R,
    chunk: Vec<u8>,
    at: usize,
    read: u64,
    limits: &'a Limits,
}

const CHUNK: usize = 1 << 16;

impl<'a, R: std::io::Read> Reader<'a, R> {
    pub(crate) fn new(from: R, limits: &'a Limits) -> Reader<'a, R> {
        Reader { from, chunk: vec![], at: 0, read: 0, limits }
    }

    /// The next byte, if there is one.
    fn byte(&mut self) -> Result<Option<u8>, Unreadable> {
        if self.at == self.chunk.len() {
            self.limits.spend(CHUNK / 8)?;
            self.chunk.resize(CHUNK, 0);
            let damaged = |e: std::io::Error| Unreadable::Wrong(format!("the body is damaged: {e}"));
            let count = self.from.read(&mut self.chunk).map_err(damaged)?;
            self.chunk.truncate(count);
            self.at = 0;
            self.read += count as u64;
            if self.read > MOST_BYTES {
                return Err(Unreadable::Wrong("the body is too large".to_string()));
            }
        }
        let byte = self.chunk.get(self.at).copied();
        self.at += 1;
        Ok(byte)
    }

    pub(crate) fn number(&mut self) -> Result<u64, Unreadable> {
        let mut n = 0u64;
        for shift in (0..64).step_by(7) {
            let early = || Unreadable::Wrong("the body ends early".to_string());
            let byte = self.byte()?.ok_or_else(early)?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            n |= bits << shift;
            if byte < 1 << 7 {
                return Ok(n);
            }
        }
        Err(Unreadable::Wrong("a number in the body has more than 64 bits".to_string()))
    }

    pub(crate) fn value(&mut self) -> Result<Value, Unreadable> {
        let n = self.number()?;
        Ok((n >> 1) as Value ^ -((n & 1) as Value))
    }

    /// A number that fits a smaller type.
    pub(crate) fn small<T: TryFrom<u64>>(&mut self) -> Result<T, Unreadable> {
        let n = self.number()?;
        T::try_from(n).map_err(|_| Unreadable::Wrong(format!("{n} is too large for what it stands for")))
    }

    /// As many as are announced, but room is made only for those that come.
    pub(crate) fn list<T>(
        &mut self,
        mut one: impl FnMut(&mut Self) -> Result<T, Unreadable>,
    ) -> Result<Vec<T>, Unreadable> {
        let count = self.number()?;
        let mut list = Vec::new();
        for _ in 0..count {
            if list.len() == list.capacity() {
                let bytes = 2 * list.len().max(4) * size_of::<T>();
                self.limits.spend(1)?;
                self.limits.reserve(bytes)?;
            }
            list.push(one(self)?);
        }
        list.shrink_to_fit();
        Ok(list)
    }

    /// Nothing may follow.
    pub(crate) fn end(mut self) -> Result<(), Unreadable> {
        match self.byte()? {
            None => Ok(()),
            Some(_) => Err(Unreadable::Wrong("something follows behind the body".to_string())),
        }
    }
}

/// What a limit says of writing.
pub(super) fn spend(limits: &Limits, bytes: usize) -> Result<(), Limit> {
    limits.spend(bytes / 8)?;
    limits.reserve(bytes)
}

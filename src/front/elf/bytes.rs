//! What does memory hold, byte by byte? Pages that are made when they are written; what was never written is
//! what its region says.

use std::collections::BTreeMap;
use std::sync::Arc;

const PAGE: u64 = 4096;

/// What the bytes of a region are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Code,
    Constants,
    Data,
    /// Stands for something in a library: it has an address, and nothing behind it.
    Library,
    /// A thread's own block: what the library knows of it, and its thread-local variables.
    ThreadBlock,
    Heap,
    /// What is known of blocks of a heap: a word for each, beside the heap.
    Words,
    Stack,
}

#[derive(Clone, Debug)]
pub(super) struct Region {
    pub start: u64,
    pub end: u64,
    pub kind: Kind,
}

impl Region {
    pub(super) fn is_writable(&self) -> bool {
        !matches!(self.kind, Kind::Code | Kind::Constants | Kind::Library)
    }
}

#[derive(Clone)]
struct Page {
    bytes: [u8; PAGE as usize],
    written: [u64; PAGE as usize / 64],
}

/// Memory can be copied for next to nothing.
#[derive(Clone, Default)]
pub(super) struct Bytes {
    pages: BTreeMap<u64, Arc<Page>>,
    /// In the order of their addresses.
    regions: Vec<Region>,
}

impl Bytes {
    pub(super) fn add_region(&mut self, region: Region) {
        let at = self.regions.partition_point(|r| r.start < region.start);
        self.regions.insert(at, region);
    }

    pub(super) fn region(&self, address: u64) -> Option<&Region> {
        let at = self.regions.partition_point(|r| r.start <= address).checked_sub(1)?;
        Some(&self.regions[at]).filter(|r| address < r.end)
    }

    /// Are all these bytes in one region?
    pub(super) fn holds(&self, address: u64, length: u64) -> bool {
        let last = address.checked_add(length);
        self.region(address).is_some_and(|r| last.is_some_and(|last| last <= r.end))
    }

    pub(super) fn set(&mut self, address: u64, byte: u8) {
        let at = (address % PAGE) as usize;
        let page = self.pages.entry(address / PAGE);
        let page = Arc::make_mut(page.or_insert_with(|| {
            Arc::new(Page { bytes: [0; PAGE as usize], written: [0; PAGE as usize / 64] })
        }));
        page.bytes[at] = byte;
        page.written[at / 64] |= 1 << (at % 64);
    }

    /// Nothing is known of the byte any more.
    pub(super) fn forget(&mut self, address: u64) {
        if let Some(page) = self.pages.get_mut(&(address / PAGE)) {
            let at = (address % PAGE) as usize;
            Arc::make_mut(page).written[at / 64] &= !(1 << (at % 64));
        }
    }

    /// Nothing is known any more of what lies between, if something does.
    pub(super) fn forget_all(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        for (number, page) in self.pages.range_mut(start / PAGE..end.div_ceil(PAGE)) {
            let page = Arc::make_mut(page);
            let first = number * PAGE;
            for at in start.max(first) - first..end.min(first + PAGE) - first {
                page.written[at as usize / 64] &= !(1 << (at % 64));
            }
        }
    }

    pub(super) fn write(&mut self, address: u64, bytes: &[u8]) {
        for (offset, byte) in bytes.iter().enumerate() {
            self.set(address.wrapping_add(offset as u64), *byte);
        }
    }

    pub(super) fn write_number(&mut self, address: u64, number: u64, length: u8) {
        self.write(address, &number.to_le_bytes()[..usize::from(length)]);
    }

    /// The byte, if it is known.
    pub(super) fn get(&self, address: u64) -> Option<u8> {
        let at = (address % PAGE) as usize;
        let page = self.pages.get(&(address / PAGE));
        if let Some(page) = page.filter(|page| page.written[at / 64] >> (at % 64) & 1 == 1) {
            return Some(page.bytes[at]);
        }
        match self.region(address)?.kind {
            Kind::Stack | Kind::Heap | Kind::Library => None,
            Kind::Code | Kind::Constants | Kind::Data | Kind::Words | Kind::ThreadBlock => Some(0),
        }
    }

    /// The number in so many bytes (eight at most), if all of them are known.
    pub(super) fn number(&self, address: u64, length: u8) -> Option<u64> {
        (0..u64::from(length)).rev().try_fold(0, |number, offset| {
            Some(number << 8 | u64::from(self.get(address.wrapping_add(offset))?))
        })
    }

    /// Up to so many bytes from here on, as far as they are known.
    pub(super) fn slice(&self, address: u64, length: usize) -> Vec<u8> {
        (0..length as u64).map_while(|offset| self.get(address.checked_add(offset)?)).collect()
    }

    /// The text that ends with a zero.
    pub(super) fn text(&self, address: u64) -> Option<String> {
        let bytes = self.slice(address, 4096);
        let end = bytes.iter().position(|b| *b == 0)?;
        Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_there_once_all_of_their_bytes_are() {
        let mut bytes = Bytes::default();
        bytes.add_region(Region { start: 4000, end: 9000, kind: Kind::Stack });
        assert_eq!(bytes.number(4094, 4), None);
        bytes.write_number(4094, 0x1234_5678, 4);
        assert_eq!(bytes.number(4094, 4), Some(0x1234_5678));
        assert_eq!(bytes.number(4095, 2), Some(0x3456));
        bytes.forget(4096);
        assert_eq!(bytes.number(4094, 4), None);
        assert!(bytes.holds(8992, 8) && !bytes.holds(8993, 8) && !bytes.holds(u64::MAX, 1));
    }
}

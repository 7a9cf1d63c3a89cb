//! Which cells does memory need? One for each group of accesses that share bytes, where that is exact, else one for
//! each piece.
//!
//! If every store to a group covers all of it, the group is one cell, and narrower loads take a part of it: what
//! compilers make by merging neighbouring fields looks so. Otherwise memory is cut at all borders of accesses, and an
//! access becomes several, in the order of addresses: that adds torn values and removes nothing, so that `safe` stays a
//! proof, and nothing else can be said.

use super::bytes::{Bytes, Kind};
use super::facts::{AccessKind, CodeFacts};
use super::goals::AskedCells;
use super::image::Image;
use super::value::POISON;
use crate::model::program::Variable;
use crate::model::{Addr, Value};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// A piece of memory that has a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub address: u64,
    pub bytes: u8,
    pub cell: Addr,
}

#[derive(Default)]
pub(super) struct Layout {
    pub variables: Vec<Variable>,
    /// By their addresses.
    cells: BTreeMap<u64, Cell>,
    /// Accesses that had to be split.
    pub split: BTreeSet<(u64, u8)>,
}

impl Layout {
    pub(super) fn new(facts: &CodeFacts, memory: &Bytes, image: &Image, wanted: &[AskedCells]) -> Layout {
        let mut all: Vec<(u64, u8, AccessKind)> = facts.accesses().collect();
        all.extend(wanted.iter().map(|w| (w.address, w.bytes, AccessKind::Load)));
        all.sort();
        let mut layout = Layout::default();
        let mut names = HashSet::new();
        let mut rest = &all[..];
        while let Some(&(start, bytes, _)) = rest.first() {
            let mut end = start + u64::from(bytes);
            let mut length = 0;
            while let Some(&(at, bytes, _)) = rest.get(length).filter(|(at, ..)| *at < end) {
                end = end.max(at + u64::from(bytes));
                length += 1;
            }
            let (group, others) = rest.split_at(length);
            layout.add(group, start, end, |at, bytes| cell(at, bytes, memory, image, &mut names));
            rest = others;
        }
        layout
    }

    fn add(
        &mut self,
        group: &[(u64, u8, AccessKind)],
        start: u64,
        end: u64,
        mut variable: impl FnMut(u64, u8) -> Variable,
    ) {
        let length = end - start;
        let aligned = start / 8 == (end - 1) / 8;
        let covers = |(at, bytes, access): &(u64, u8, AccessKind)| {
            *access == AccessKind::Load || *at == start && u64::from(*bytes) == length
        };
        let borders: BTreeSet<u64> = match aligned && group.iter().all(covers) {
            true => BTreeSet::from([start, end]),
            false => group.iter().flat_map(|(at, bytes, _)| [*at, at + u64::from(*bytes)]).collect(),
        };
        // No access is wider than eight bytes, so no piece is.
        let borders: Vec<u64> = borders.into_iter().collect();
        for pair in borders.windows(2) {
            let bytes = (pair[1] - pair[0]) as u8;
            let cell = Addr(self.variables.len() as u32);
            self.cells.insert(pair[0], Cell { address: pair[0], bytes, cell });
            self.variables.push(variable(pair[0], bytes));
        }
        for (at, bytes, access) in group {
            if self.cells(*at, *bytes).len() > 1 && *access != AccessKind::Locked {
                self.split.insert((*at, *bytes));
            }
        }
    }

    /// The cells that an access is about.
    pub(super) fn cells(&self, address: u64, bytes: u8) -> Vec<Cell> {
        let end = address + u64::from(bytes);
        let near = self.cells.range(address.saturating_sub(7)..end).map(|(_, cell)| *cell);
        near.filter(|cell| cell.address + u64::from(cell.bytes) > address).collect()
    }
}

fn cell(at: u64, bytes: u8, memory: &Bytes, image: &Image, names: &mut HashSet<String>) -> Variable {
    let initial = memory.number(at, bytes).map_or(POISON, |number| number as Value);
    let plain = name(at, memory, image);
    let mut name = plain.clone();
    let mut n = 2;
    while !names.insert(name.clone()) {
        name = format!("{plain}_{n}");
        n += 1;
    }
    Variable { name, init: vec![initial] }
}

/// What to call a place in memory.
pub(super) fn name(at: u64, memory: &Bytes, image: &Image) -> String {
    let word = |text: &str| {
        let plain: String = text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        if plain.starts_with(|c: char| c.is_ascii_digit()) { format!("_{plain}") } else { plain }
    };
    if let Some((name, offset)) = image.name(at) {
        return if offset == 0 { word(name) } else { format!("{}_{offset}", word(name)) };
    }
    match memory.region(at).map(|r| (r.kind, r.start, r.end)) {
        Some((Kind::Stack, _, end)) => format!("stack_{at:x}_{}", end - at),
        Some((Kind::Heap, ..)) => format!("heap_{at:x}"),
        Some((Kind::ThreadBlock, ..)) => format!("thread_{at:x}"),
        _ => format!("at_{at:x}"),
    }
}

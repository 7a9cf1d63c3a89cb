//! Which cells does memory need? One for each group of accesses that share bytes, if it lies within eight aligned bytes;
//! otherwise one for each piece.
//!
//! A processor accesses what lies within eight aligned bytes at once. If every store to a group changes all of it, what
//! loads a part takes it out of the whole: what compilers make by merging neighbouring fields looks so, and every engine
//! understands it. If some change a part, accesses to parts name their bytes, as the model has them. Groups that go
//! beyond eight aligned bytes have a cell for each eight. What is about two of them happens at once if it is a locked
//! instruction; else it happens in two parts, in either order, which is more than processors do that promise more.

use super::bytes::{Bytes, Kind};
use super::facts::{AccessKind, CodeFacts, SharedAccess};
use super::goals::AskedCells;
use super::image::Image;
use super::refusal::{Refusal, Result};
use super::value::POISON;
use crate::model::program::Variable;
use crate::model::{self, Addr, Value};
use std::collections::{BTreeMap, HashSet};

/// A piece of memory that has a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub address: u64,
    pub bytes: u8,
    pub cell: Addr,
    /// Do accesses to a part name their bytes?
    pub mixed: bool,
    /// Does a plain access, which has to name its bytes, touch a part?
    pub partly: bool,
}

impl Cell {
    /// Which of its bytes an access is about, as the model has it.
    pub(super) fn part(&self, from: u64, to: u64) -> model::Bytes {
        let whole = from <= self.address && to >= self.address + u64::from(self.bytes);
        let (lo, hi) = (from.max(self.address) - self.address, to - self.address - 1);
        match whole {
            true => model::Bytes::WHOLE,
            false => model::Bytes::range(lo as Value, hi.min(7) as Value).unwrap_or_default(),
        }
    }
}

#[derive(Default)]
pub(super) struct Layout {
    pub variables: Vec<Variable>,
    /// By their addresses.
    cells: BTreeMap<u64, Cell>,
}

impl Layout {
    /// Refuses what the model cannot say.
    pub(super) fn new(
        facts: &CodeFacts,
        memory: &Bytes,
        image: &Image,
        wanted: &[AskedCells],
    ) -> Result<Layout> {
        let mut all: Vec<SharedAccess> = facts.accesses().collect();
        all.extend(wanted.iter().map(|w| SharedAccess {
            at: w.address,
            bytes: w.bytes,
            kind: AccessKind::Load,
            by: None,
        }));
        all.sort();
        let mut layout = Layout::default();
        let mut names = HashSet::new();
        let mut rest = &all[..];
        while let Some(first) = rest.first() {
            let (start, mut end) = (first.at, first.end());
            let mut length = 0;
            while let Some(access) = rest.get(length).filter(|access| access.at < end) {
                end = end.max(access.end());
                length += 1;
            }
            let (group, others) = rest.split_at(length);
            let name = |at| name(at, memory, image);
            layout.add(group, start, end, |at, bytes| cell(at, bytes, memory, name(at), &mut names));
            layout.check(group, facts, memory, name)?;
            rest = others;
        }
        Ok(layout)
    }

    fn add(
        &mut self,
        group: &[SharedAccess],
        start: u64,
        end: u64,
        mut variable: impl FnMut(u64, u8) -> Variable,
    ) {
        for word in start / 8..=(end - 1) / 8 {
            let (start, end) = (start.max(8 * word), end.min(8 * word + 8));
            let within = |a: &SharedAccess| (a.at.max(start), a.end().min(end));
            let partial: Vec<AccessKind> = group
                .iter()
                .filter(|a| a.at < end && a.end() > start && within(a) != (start, end))
                .map(|a| a.kind)
                .collect();
            let mixed = partial.iter().any(|kind| *kind != AccessKind::Load);
            let partly = mixed && partial.iter().any(|kind| *kind != AccessKind::Locked);
            let bytes = (end - start) as u8;
            let cell = Addr(self.variables.len() as u32);
            self.cells.insert(start, Cell { address: start, bytes, cell, mixed, partly });
            self.variables.push(variable(start, bytes));
        }
    }

    fn check(
        &self,
        group: &[SharedAccess],
        facts: &CodeFacts,
        memory: &Bytes,
        name: impl Fn(u64) -> String,
    ) -> Result<()> {
        let refused = |access: &SharedAccess, why: String| {
            let refusal = Refusal::new(format!("`{}` {why}", name(access.at)));
            access.by.map_or(refusal.clone(), |by| refusal.at(by))
        };
        let partial = |a: &SharedAccess| (a.at, a.bytes) != (group[0].at, group[0].bytes);
        let parted = |a: &SharedAccess| self.cells(a.at, a.bytes).len() > 1;
        if !group.iter().any(|a| partial(a) || parted(a)) {
            return Ok(());
        }
        // What stands for "never written" is a whole cell's.
        let unwritten =
            |a: &&SharedAccess| a.kind != AccessKind::Store && facts.load(a.at, a.bytes, memory).poison;
        match group.iter().find(unwritten) {
            Some(access) => {
                let why = "may be read before it is written, in accesses of different sizes".to_string();
                let help = match memory.region(access.at).map(|region| region.kind) {
                    Some(Kind::Heap) => {
                        "write it before other threads run; what is freed is unwritten as well, unless --heap fresh"
                    }
                    _ => "write it once before other threads run",
                };
                Err(refused(access, why).help(help))
            }
            None => Ok(()),
        }
    }

    /// The cells that an access is about.
    pub(super) fn cells(&self, address: u64, bytes: u8) -> Vec<Cell> {
        self.between(address, address + u64::from(bytes))
    }

    /// The cells that have bytes between these addresses.
    pub(super) fn between(&self, address: u64, end: u64) -> Vec<Cell> {
        let near = self.cells.range(address.saturating_sub(7)..end).map(|(_, cell)| *cell);
        near.filter(|cell| cell.address + u64::from(cell.bytes) > address).collect()
    }
}

fn cell(at: u64, bytes: u8, memory: &Bytes, plain: String, names: &mut HashSet<String>) -> Variable {
    let initial = memory.number(at, bytes).map_or(POISON, |number| number as Value);
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
        Some((Kind::Words, ..)) => format!("block_{at:x}"),
        Some((Kind::ThreadBlock, ..)) => format!("thread_{at:x}"),
        _ => format!("at_{at:x}"),
    }
}

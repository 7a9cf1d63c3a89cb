//! Which line of which file did an instruction come from? As the debug information says.

use super::image::DebugSections;
use crate::limits::{Limit, Limits};
use gimli::{EndianSlice, LittleEndian, SectionId};
use std::collections::{BTreeMap, HashMap};

/// A line as the user knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SourceLine {
    pub file: String,
    pub line: u32,
    /// 0 if it is not known.
    pub column: u32,
}

#[derive(Default)]
pub(super) struct Lines {
    files: Vec<String>,
    /// By address: the file's place, line and column; none where a sequence ends.
    rows: BTreeMap<u64, Option<(usize, u32, u32)>>,
}

type Slice<'a> = EndianSlice<'a, LittleEndian>;

impl Lines {
    pub(super) fn new(objects: &[DebugSections], limits: &Limits) -> Result<Lines, Limit> {
        let mut lines = Lines::default();
        let mut numbers = HashMap::new();
        for object in objects {
            // What is wrong with debug information only makes places harder to find.
            let read = lines.add(object, &mut numbers, limits);
            if let Err(Wrong::Limit(limit)) = read {
                return Err(limit);
            }
        }
        Ok(lines)
    }

    fn add(
        &mut self,
        object: &DebugSections,
        numbers: &mut HashMap<String, usize>,
        limits: &Limits,
    ) -> Result<(), Wrong> {
        let load = |id: SectionId| -> Result<Slice<'_>, Wrong> {
            Ok(EndianSlice::new(object.get(id.name()).map_or(&[][..], |data| data), LittleEndian))
        };
        let dwarf = gimli::Dwarf::load(load)?;
        let mut units = dwarf.units();
        while let Some(header) = units.next()? {
            let unit = dwarf.unit(header)?;
            let Some(program) = unit.line_program.clone() else { continue };
            let mut rows = program.rows();
            while let Some((header, row)) = rows.next_row()? {
                limits.spend(8).map_err(Wrong::Limit)?;
                let entry = match (row.end_sequence(), row.line(), row.file(header)) {
                    (false, Some(line), Some(file)) => {
                        let name = dwarf.attr_string(&unit, file.path_name())?.to_string_lossy().into_owned();
                        let next = self.files.len();
                        let number = *numbers.entry(name.clone()).or_insert(next);
                        if number == next {
                            self.files.push(name);
                        }
                        let column = match row.column() {
                            gimli::ColumnType::LeftEdge => 0,
                            gimli::ColumnType::Column(column) => column.get(),
                        };
                        let short = |n: u64| u32::try_from(n).unwrap_or(0);
                        Some((number, short(line.get()), short(column)))
                    }
                    _ => None,
                };
                if entry.is_none() && self.rows.contains_key(&row.address()) {
                    continue;
                }
                self.rows.insert(row.address(), entry);
            }
        }
        Ok(())
    }

    pub(super) fn at(&self, address: u64) -> Option<SourceLine> {
        let (file, line, column) = (*self.rows.range(..=address).next_back()?.1)?;
        Some(SourceLine { file: self.files[file].clone(), line, column })
    }
}

enum Wrong {
    Limit(Limit),
    Debug,
}

impl From<gimli::Error> for Wrong {
    fn from(_: gimli::Error) -> Wrong {
        Wrong::Debug
    }
}

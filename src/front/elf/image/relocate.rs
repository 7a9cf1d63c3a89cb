//! What do relocations write, and where? Addresses, distances, and entries of the table of addresses.

use super::super::bytes::Kind;
use super::super::refusal::{Refusal, Result};
use super::{DebugSections, Linker, Unit};
use object::elf;
use object::{Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget, SymbolSection};

/// What a relocation is about.
struct RelocationTo {
    /// Tells it from others.
    key: String,
    address: u64,
    size: u64,
    /// How far behind the thread-local block's beginning, if it is in there.
    thread_local: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum LinkedName {
    Address,
    /// How far from a thread's own pointer.
    Offset,
    /// A pair: which module, and how far.
    Pair,
}

impl Linker<'_> {
    fn target(&mut self, unit: &Unit, target: RelocationTarget) -> Result<RelocationTo> {
        let wrong = || Refusal::new(format!("{}: a relocation names nothing", unit.name));
        let index = match target {
            RelocationTarget::Symbol(index) => index,
            RelocationTarget::Absolute => {
                return Ok(RelocationTo { key: String::new(), address: 0, size: 0, thread_local: None });
            }
            _ => return Err(wrong()),
        };
        let symbol = unit.file.symbol_by_index(index).map_err(|_| wrong())?;
        let name = symbol.name().unwrap_or_default();
        let key = if symbol.is_local() { format!("{}#{}", unit.name, index.0) } else { name.to_string() };
        let size = symbol.size();
        let found =
            |address, thread_local| Ok(RelocationTo { key: key.clone(), address, size, thread_local });
        // A weak definition gives way to another one, wherever it is used.
        let others = if symbol.is_local() { None } else { self.image.symbols.get(name) };
        if let Some(other) = others.filter(|other| other.is_global) {
            return found(other.address, None);
        }
        match symbol.section() {
            SymbolSection::Section(section) => match unit.sections.get(&section) {
                Some(start) => found(start.wrapping_add(symbol.address()), None),
                None => match unit.thread_local.get(&section) {
                    Some(start) => found(0, Some(start + symbol.address())),
                    // What is not loaded, such as debug information, counts from the beginning of its section.
                    None => found(symbol.address(), None),
                },
            },
            SymbolSection::Absolute => found(symbol.address(), None),
            SymbolSection::Undefined => {
                if let Some((_, at, _)) = self.image.thread_local.names.iter().find(|(n, ..)| n == name) {
                    return found(0, Some(*at));
                }
                if symbol.is_weak() && !(self.with.known)(name) {
                    return found(0, None);
                }
                let address = self.library(name)?;
                found(address, None)
            }
            _ => Err(wrong()),
        }
    }

    pub(super) fn relocate(&mut self, unit: &Unit) -> Result<()> {
        let mut debug = DebugSections::new();
        for section in unit.file.sections() {
            let name = section.name().unwrap_or_default().to_string();
            let at = unit.sections.get(&section.index()).copied();
            let own = unit.thread_local.get(&section.index()).copied();
            let is_debug = name.starts_with(".debug_");
            if at.is_none() && own.is_none() && !is_debug {
                continue;
            }
            let mut data = if is_debug { section.data().unwrap_or_default().to_vec() } else { Vec::new() };
            for (offset, relocation) in section.relocations() {
                self.with.limits.spend(16)?;
                let RelocationFlags::Elf { r_type } = relocation.flags() else { continue };
                if r_type == elf::R_X86_64_NONE {
                    continue;
                }
                let target = self.target(unit, relocation.target())?;
                let place = at.unwrap_or(0).wrapping_add(offset);
                let refused = |r: Refusal| if at.is_some() { r.at(place) } else { r };
                let value = self.value(r_type, &target, relocation.addend(), place).map_err(refused);
                let (value, length) = match value {
                    Ok(value) => value,
                    Err(_) if is_debug => continue,
                    Err(wrong) => return Err(wrong),
                };
                let bytes = &value.to_le_bytes()[..usize::from(length)];
                match (at, own) {
                    (Some(_), _) => {
                        if offset.saturating_add(u64::from(length)) > section.size() {
                            return Err(Refusal::new(format!(
                                "{}: a relocation is outside {name}",
                                unit.name
                            )));
                        }
                        self.image.bytes.write(place, bytes);
                    }
                    (None, Some(start)) => put(&mut self.image.thread_local.bytes, start + offset, bytes),
                    (None, None) => put(&mut data, offset, bytes),
                }
            }
            if is_debug {
                debug.insert(name.clone(), data);
            }
            if let Some(at) = at.filter(|_| name.starts_with(".init_array")) {
                self.gather(at, section.size());
            }
        }
        self.image.debug.push(debug);
        Ok(())
    }

    /// What a relocation writes, and in how many bytes.
    fn value(
        &mut self,
        kind: elf::RelocationType,
        target: &RelocationTo,
        addend: i64,
        place: u64,
    ) -> Result<(u64, u8)> {
        let sum = |a: u64, b: i64| a.wrapping_add_signed(b);
        let offset = |at: u64, size: u64| at.wrapping_sub(size);
        let whole = self.image.thread_local.size;
        let own = || {
            let why = format!("`{}` is used as a thread-local variable, and no file defines it", target.key);
            target.thread_local.ok_or_else(|| Refusal::new(why))
        };
        Ok(match kind {
            elf::R_X86_64_64 => match target.thread_local {
                Some(at) => (sum(at, addend), 8),
                None => (sum(target.address, addend), 8),
            },
            elf::R_X86_64_32 | elf::R_X86_64_32S => (sum(target.address, addend), 4),
            elf::R_X86_64_16 => (sum(target.address, addend), 2),
            elf::R_X86_64_8 => (sum(target.address, addend), 1),
            elf::R_X86_64_PC32 | elf::R_X86_64_PLT32 => (sum(target.address, addend).wrapping_sub(place), 4),
            elf::R_X86_64_PC64 => (sum(target.address, addend).wrapping_sub(place), 8),
            elf::R_X86_64_SIZE32 => (sum(target.size, addend), 4),
            elf::R_X86_64_SIZE64 => (sum(target.size, addend), 8),
            elf::R_X86_64_TPOFF32 => (sum(offset(own()?, whole), addend), 4),
            elf::R_X86_64_TPOFF64 => (sum(offset(own()?, whole), addend), 8),
            elf::R_X86_64_DTPOFF32 => (sum(target.thread_local.unwrap_or(0), addend), 4),
            elf::R_X86_64_DTPOFF64 => (sum(target.thread_local.unwrap_or(0), addend), 8),
            elf::R_X86_64_GOTPCREL | elf::R_X86_64_GOTPCRELX | elf::R_X86_64_REX_GOTPCRELX => {
                let entry = self.entry(LinkedName::Address, &target.key, &[target.address])?;
                (sum(entry, addend).wrapping_sub(place), 4)
            }
            elf::R_X86_64_GOTTPOFF => {
                let entry = self.entry(LinkedName::Offset, &target.key, &[offset(own()?, whole)])?;
                (sum(entry, addend).wrapping_sub(place), 4)
            }
            // `__tls_get_addr` adds the second word to the thread's pointer.
            elf::R_X86_64_TLSGD => {
                let entry = self.entry(LinkedName::Pair, &target.key, &[1, offset(own()?, whole)])?;
                (sum(entry, addend).wrapping_sub(place), 4)
            }
            elf::R_X86_64_TLSLD => {
                let entry = self.entry(LinkedName::Pair, "", &[1, offset(0, whole)])?;
                (sum(entry, addend).wrapping_sub(place), 4)
            }
            other => {
                let why = format!("a relocation of kind {} is not covered", other.0);
                return Err(Refusal::new(why).help("compile without -mcmodel=large and -mtls-dialect=gnu2"));
            }
        })
    }

    /// The entry of the table of addresses.
    fn entry(&mut self, wanted: LinkedName, key: &str, words: &[u64]) -> Result<u64> {
        let key = (wanted, key.to_string());
        if let Some(known) = self.got.get(&key) {
            return Ok(*known);
        }
        let at = self.room(8 * words.len() as u64, 8, Kind::Constants)?;
        for (n, word) in words.iter().enumerate() {
            self.image.bytes.write_number(at + 8 * n as u64, *word, 8);
        }
        self.got.insert(key, at);
        Ok(at)
    }
}

fn put(data: &mut [u8], offset: u64, bytes: &[u8]) {
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    if let Some(room) = start.checked_add(bytes.len()).and_then(|end| data.get_mut(start..end)) {
        room.copy_from_slice(bytes);
    }
}

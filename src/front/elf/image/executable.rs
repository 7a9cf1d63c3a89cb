//! Where does everything lie in what a linker has laid out already, an executable or a shared object?

use super::super::bytes::{Kind, Region};
use super::super::refusal::{Refusal, Result};
use super::{BASE, DebugSections, ElfFile, Image, Linker, MOST, Symbol, Unit};
use object::elf;
use object::{
    Object, ObjectSection, ObjectSegment, ObjectSymbol, RelocationFlags, RelocationTarget, SectionKind,
    SymbolIndex,
};

/// Position-independent executables are moved here, as they are by default without randomisation.
const PIE_BASE: u64 = 0x40_0000;

impl Linker<'_> {
    /// An executable, or a shared object, which the linker has laid out.
    pub(super) fn executable(mut self, unit: &Unit) -> Result<Image> {
        let file = &unit.file;
        let lowest = file.segments().map(|s| s.address()).min().unwrap_or(0);
        let base = if lowest < BASE { PIE_BASE } else { 0 };
        for segment in file.segments() {
            let (start, size) = (base + segment.address(), segment.size());
            let end = start.checked_add(size).filter(|end| *end < MOST);
            let Some(end) = end else {
                return Err(Refusal::new(format!("{}: a segment does not fit below {MOST:#x}", unit.name)));
            };
            if size == 0 || self.image.bytes.region(start).is_some() {
                continue;
            }
            let permissions = segment.permissions();
            let kind = match (permissions.writable(), permissions.executable()) {
                (_, true) => Kind::Code,
                (true, false) => Kind::Data,
                (false, false) => Kind::Constants,
            };
            self.image.bytes.add_region(Region { start, end, kind });
            self.next = self.next.max(end);
            let data = segment.data().map_err(|e| Refusal::new(format!("{}: {e}", unit.name)))?;
            self.with.limits.spend(data.len())?;
            self.image.bytes.write(start, data);
        }
        self.next = self.next.next_multiple_of(BASE);
        self.executable_thread_local(file, base);
        for symbol in file.symbols().chain(file.dynamic_symbols()) {
            let Ok(name) = symbol.name() else { continue };
            if !symbol.is_definition() || name.is_empty() {
                continue;
            }
            if symbol.kind() == object::SymbolKind::Tls {
                let own = (name.to_string(), symbol.address(), symbol.size());
                self.image.thread_local.names.push(own);
                continue;
            }
            let (address, size) = (base + symbol.address(), symbol.size());
            let is_code = symbol.kind() == object::SymbolKind::Text;
            let is_global = symbol.is_global();
            if (self.with.known)(name) && is_code {
                self.image.libraries.insert(address, name.to_string());
            }
            if is_global || !self.image.symbols.contains_key(name) {
                self.add(name, Symbol { address, size, is_code, is_global });
            }
        }
        self.dynamic(unit, base)?;
        let mut debug = DebugSections::new();
        for section in file.sections() {
            let name = section.name().unwrap_or_default();
            if name.starts_with(".debug_") {
                debug.insert(name.to_string(), section.data().unwrap_or_default().to_vec());
            }
            if name == ".init_array" && self.image.symbols.contains_key("main") {
                self.gather(base + section.address(), section.size());
            }
        }
        // The linker's own constructor registers what only the end of the process looks at.
        let own = self.image.symbols.get("frame_dummy").map(|s| s.address);
        self.image.constructors.retain(|at| Some(*at) != own);
        self.image.debug.push(debug);
        self.image.entry = Some(base + file.entry());
        self.finish()
    }

    fn executable_thread_local(&mut self, file: &ElfFile, base: u64) {
        let sections =
            file.sections().filter(|s| matches!(s.kind(), SectionKind::Tls | SectionKind::UninitializedTls));
        let sections: Vec<_> = sections.collect();
        let Some(start) = sections.iter().map(|s| s.address()).min() else { return };
        let end = sections.iter().map(|s| s.address().saturating_add(s.size())).max().unwrap_or(start);
        let own = &mut self.image.thread_local;
        own.size = (end - start).min(1 << 20).next_multiple_of(64);
        let bytes = &self.image.bytes;
        let of_file =
            sections.iter().filter(|s| s.kind() == SectionKind::Tls).map(|s| s.address() + s.size()).max();
        own.bytes = bytes.slice(base + start, of_file.map_or(0, |last| (last - start) as usize));
    }

    fn dynamic(&mut self, unit: &Unit, base: u64) -> Result<()> {
        let Some(relocations) = unit.file.dynamic_relocations() else { return Ok(()) };
        let whole = self.image.thread_local.size;
        for (offset, relocation) in relocations {
            self.with.limits.spend(16)?;
            let RelocationFlags::Elf { r_type } = relocation.flags() else { continue };
            let place = base.wrapping_add(offset);
            let symbol = match relocation.target() {
                RelocationTarget::Symbol(index) if index != SymbolIndex(0) => {
                    let table = unit.file.dynamic_symbol_table();
                    table.and_then(|t| object::ObjectSymbolTable::symbol_by_index(&t, index).ok())
                }
                _ => None,
            };
            let name = symbol.as_ref().and_then(|s| s.name().ok()).unwrap_or_default().to_string();
            let address = match &symbol {
                Some(s) if s.is_definition() => base + s.address(),
                Some(s) if s.is_weak() && !(self.with.known)(&name) => 0,
                Some(_) => self.library(&name)?,
                None => 0,
            };
            let addend = relocation.addend();
            let value = match r_type {
                elf::R_X86_64_RELATIVE => base.wrapping_add_signed(addend),
                elf::R_X86_64_GLOB_DAT | elf::R_X86_64_JUMP_SLOT => address,
                elf::R_X86_64_64 => address.wrapping_add_signed(addend),
                elf::R_X86_64_TPOFF64 => {
                    let at = symbol.as_ref().map_or(0, |s| s.address());
                    at.wrapping_add_signed(addend).wrapping_sub(whole)
                }
                elf::R_X86_64_DTPMOD64 => 1,
                elf::R_X86_64_DTPOFF64 => symbol.as_ref().map_or(0, |s| s.address()).wrapping_sub(whole),
                // Its value is the library's: whoever reads it is told.
                elf::R_X86_64_COPY | elf::R_X86_64_NONE => continue,
                // Chooses by processor among functions of a static library, which are known by name.
                elf::R_X86_64_IRELATIVE => continue,
                other => {
                    let why = format!("a relocation of kind {} is not covered", other.0);
                    return Err(Refusal::new(why).at(place));
                }
            };
            self.image.bytes.write_number(place, value, 8);
        }
        Ok(())
    }
}

//! Where does everything lie? The linker: sections get small addresses, relocations are applied, and what no file
//! defines gets an address of its own, behind which a library would be.
//!
//! With concrete addresses for everything pointers are numbers, and pointer arithmetic needs no rules. Page 0 stays
//! empty, so that a null pointer is outside memory like any other wrong address.

mod executable;
mod relocate;

use self::relocate::LinkedName;
use super::bytes::{Bytes, Kind, Region};
use super::refusal::{Refusal, Result};
use crate::limits::Limits;
use object::read::archive::ArchiveFile;
use object::{Architecture, Object, ObjectKind, ObjectSection, ObjectSymbol, SectionIndex, SectionKind};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Where the first section goes.
const BASE: u64 = 0x1000;
/// A byte of the C library: is there only one thread? That there may be others is true as well, and all that it costs
/// is locked instructions while nobody looks.
const SINGLE_THREADED: &str = "__libc_single_threaded";
/// What a library's function or variable takes of the addresses.
const LIBRARY_BYTES: u64 = 64;
/// Images are no larger than this, so that addresses stay below 2^31 whatever relocations ask for.
const MOST: u64 = 1 << 30;
/// Nothing else is asked of alignments.
const MOST_ALIGNED: u64 = 1 << 16;

/// A file, as it was given.
#[derive(Clone, Copy, Debug)]
pub struct CodeFile<'a> {
    pub name: &'a str,
    pub bytes: &'a [u8],
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Symbol {
    pub address: u64,
    pub size: u64,
    pub is_code: bool,
    pub is_global: bool,
}

/// What each thread gets a copy of.
#[derive(Clone, Debug, Default)]
pub(super) struct ThreadLocal {
    pub bytes: Vec<u8>,
    pub size: u64,
    /// Variables and how far behind the beginning of the block they are.
    pub names: Vec<(String, u64, u64)>,
}

/// Debug information of one object, with its relocations applied.
pub(super) type DebugSections = HashMap<String, Vec<u8>>;

pub(super) struct Image {
    pub bytes: Bytes,
    pub symbols: HashMap<String, Symbol>,
    /// All names of places, by address: name and size.
    pub names: BTreeMap<u64, (String, u64)>,
    /// What libraries define, by the address that stands for it.
    pub libraries: BTreeMap<u64, String>,
    pub thread_local: ThreadLocal,
    /// Functions that run before `main`.
    pub constructors: Vec<u64>,
    pub debug: Vec<DebugSections>,
    /// Where the entry of an executable is.
    pub entry: Option<u64>,
    /// Above everything.
    pub end: u64,
}

/// Is this a file that this front end reads?
pub fn is_code(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x7fELF") || bytes.starts_with(b"!<arch>\n") || bytes.starts_with(b"!<thin>\n")
}

/// What a file is that is machine code, and not ours.
pub fn foreign(bytes: &[u8]) -> Option<&'static str> {
    let mach = [
        [0xfe, 0xed, 0xfa, 0xce],
        [0xfe, 0xed, 0xfa, 0xcf],
        [0xce, 0xfa, 0xed, 0xfe],
        [0xcf, 0xfa, 0xed, 0xfe],
    ];
    match bytes {
        _ if mach.iter().any(|magic| bytes.starts_with(magic)) => Some("Mach-O"),
        _ if bytes.starts_with(b"MZ") => Some("PE"),
        _ if bytes.starts_with(b"\0asm") => Some("WebAssembly"),
        _ if bytes.starts_with(b"BC\xc0\xde") => Some("LLVM bitcode"),
        _ => None,
    }
}

type ElfFile<'a> = object::read::elf::ElfFile64<'a, object::Endianness>;

struct Unit<'a> {
    name: String,
    file: ElfFile<'a>,
    /// Where its sections went.
    sections: HashMap<SectionIndex, u64>,
    /// How far behind the beginning of the thread-local block its sections for that are.
    thread_local: HashMap<SectionIndex, u64>,
}

pub(super) struct Linking<'a> {
    pub limits: &'a Limits,
    /// Names that have to be there, if archives can give them.
    pub roots: &'a [String],
    /// Names that libraries define, even where a linked executable has them inside.
    pub known: &'a dyn Fn(&str) -> bool,
}

/// All files as one image.
pub(super) fn link(files: &[CodeFile], with: &Linking) -> Result<Image> {
    let mut units = Vec::new();
    let mut members = Vec::new();
    for file in files {
        match file.bytes.starts_with(b"!<") {
            true => members.extend(archive(file)?),
            false => units.push(unit(file.name, file.bytes)?),
        }
    }
    if let [one] = &units[..]
        && matches!(one.file.kind(), ObjectKind::Executable | ObjectKind::Dynamic)
    {
        return Linker::new(with).executable(one);
    }
    if let Some(other) = units.iter().find(|u| u.file.kind() != ObjectKind::Relocatable) {
        let why = format!("{} is linked already, and is looked at alone", other.name);
        return Err(Refusal::new(why).help("give the object files that it was made from"));
    }
    pull(&mut units, members, with);
    if units.is_empty() {
        return Err(Refusal::new("the archive has no object file that is asked for"));
    }
    Linker::new(with).objects(&mut units)
}

fn unit<'a>(name: &str, bytes: &'a [u8]) -> Result<Unit<'a>> {
    let wrong = |why: &str| Refusal::new(format!("{name} {why}"));
    let class = bytes.get(4).copied();
    if class == Some(1) {
        return Err(wrong("is for 32-bit machines").help("only x86-64 is read: compile without -m32"));
    }
    let file = ElfFile::parse(bytes).map_err(|e| wrong(&format!("cannot be read: {e}")))?;
    if file.architecture() != Architecture::X86_64 {
        let why = format!("is for {:?}, not for x86-64", file.architecture());
        return Err(wrong(&why).help("store buffers of other processors follow other rules"));
    }
    if !matches!(file.kind(), ObjectKind::Relocatable | ObjectKind::Executable | ObjectKind::Dynamic) {
        return Err(wrong("is no object file and no executable"));
    }
    Ok(Unit { name: name.to_string(), file, sections: HashMap::new(), thread_local: HashMap::new() })
}

fn archive<'a>(file: &CodeFile<'a>) -> Result<Vec<Unit<'a>>> {
    let wrong = |e: object::Error| Refusal::new(format!("{} cannot be read: {e}", file.name));
    let archive = ArchiveFile::parse(file.bytes).map_err(wrong)?;
    if archive.is_thin() {
        let why = format!("{} is a thin archive: it names files and does not hold them", file.name);
        return Err(Refusal::new(why).help("give the object files"));
    }
    let mut units = Vec::new();
    for member in archive.members() {
        let member = member.map_err(wrong)?;
        let data = member.data(file.bytes).map_err(wrong)?;
        if data.starts_with(b"\x7fELF") {
            units.push(unit(&format!("{}({})", file.name, String::from_utf8_lossy(member.name())), data)?);
        }
    }
    Ok(units)
}

/// Takes those members of archives that define what is missing.
fn pull<'a>(units: &mut Vec<Unit<'a>>, mut members: Vec<Unit<'a>>, with: &Linking) {
    loop {
        let (mut defined, mut wanted) = (HashSet::new(), HashSet::new());
        if units.is_empty() {
            wanted.insert("main".to_string());
        }
        wanted.extend(with.roots.iter().cloned());
        for unit in units.iter() {
            for symbol in unit.file.symbols() {
                let Ok(name) = symbol.name() else { continue };
                match symbol.is_undefined() {
                    true => wanted.insert(name.to_string()),
                    false => symbol.is_global() && defined.insert(name.to_string()),
                };
            }
        }
        let helps = |unit: &Unit| {
            let mut symbols = unit.file.symbols().filter(|s| s.is_global() && s.is_definition());
            symbols.any(|s| s.name().is_ok_and(|name| wanted.contains(name) && !defined.contains(name)))
        };
        match members.iter().position(helps) {
            Some(found) => units.push(members.remove(found)),
            None => return,
        }
    }
}

struct Linker<'a> {
    with: &'a Linking<'a>,
    image: Image,
    next: u64,
    /// Entries of the table of addresses: of symbols, and of thread-local variables in both ways to ask for them.
    got: HashMap<(LinkedName, String), u64>,
    /// Names that another definition may take.
    weak: HashSet<String>,
    of_libraries: HashMap<String, u64>,
}

impl<'a> Linker<'a> {
    fn new(with: &'a Linking<'a>) -> Linker<'a> {
        let image = Image {
            bytes: Bytes::default(),
            symbols: HashMap::new(),
            names: BTreeMap::new(),
            libraries: BTreeMap::new(),
            thread_local: ThreadLocal::default(),
            constructors: Vec::new(),
            debug: Vec::new(),
            entry: None,
            end: 0,
        };
        Linker {
            with,
            image,
            next: BASE,
            got: HashMap::new(),
            weak: HashSet::new(),
            of_libraries: HashMap::new(),
        }
    }

    /// Room for so many bytes.
    fn room(&mut self, size: u64, align: u64, kind: Kind) -> Result<u64> {
        let align = align.clamp(1, MOST_ALIGNED).next_power_of_two();
        let start = self.next.next_multiple_of(align);
        let end = start.checked_add(size.max(1)).filter(|end| *end < MOST);
        let Some(end) = end else {
            return Err(Refusal::new(format!("the program takes more than {} MiB", MOST >> 20)));
        };
        self.next = end;
        self.image.bytes.add_region(Region { start, end, kind });
        Ok(start)
    }

    fn objects(mut self, units: &mut [Unit]) -> Result<Image> {
        // Data first: the smaller addresses are, the fewer bits hold pointers to it.
        for kind in [Kind::Data, Kind::Constants, Kind::Code] {
            for unit in units.iter_mut() {
                self.place(unit, kind)?;
            }
            self.next = self.next.next_multiple_of(BASE);
        }
        for unit in units.iter_mut() {
            self.place_thread_local(unit)?;
        }
        self.image.thread_local.size = self.image.thread_local.size.next_multiple_of(MOST_ALIGNED.min(64));
        for unit in units.iter() {
            self.define(unit)?;
        }
        for unit in units.iter() {
            self.relocate(unit)?;
        }
        self.finish()
    }

    fn finish(mut self) -> Result<Image> {
        for name in super::calls::INTERNAL {
            self.library(name)?;
        }
        self.image.end = self.next.next_multiple_of(BASE);
        Ok(self.image)
    }

    fn place(&mut self, unit: &mut Unit, wanted: Kind) -> Result<()> {
        for section in unit.file.sections() {
            self.with.limits.spend(16)?;
            let name = section.name().unwrap_or_default();
            let kind = match section.kind() {
                SectionKind::Text => Kind::Code,
                // What only relocations write are constants once the program runs.
                SectionKind::ReadOnlyData
                | SectionKind::ReadOnlyDataWithRel
                | SectionKind::ReadOnlyString => Kind::Constants,
                _ if name.starts_with(".data.rel.ro") => Kind::Constants,
                SectionKind::Data | SectionKind::UninitializedData => Kind::Data,
                _ if name.starts_with(".init_array") || name.starts_with(".ctors") => Kind::Constants,
                _ => continue,
            };
            if kind != wanted || section.size() == 0 {
                continue;
            }
            let at = self.room(section.size(), section.align(), kind)?;
            unit.sections.insert(section.index(), at);
            if section.kind() != SectionKind::UninitializedData {
                let data = section.data().map_err(|e| Refusal::new(format!("{}: {name}: {e}", unit.name)))?;
                self.with.limits.spend(data.len())?;
                self.image.bytes.write(at, data);
            }
        }
        Ok(())
    }

    fn place_thread_local(&mut self, unit: &mut Unit) -> Result<()> {
        for section in unit.file.sections() {
            if !matches!(section.kind(), SectionKind::Tls | SectionKind::UninitializedTls) {
                continue;
            }
            let all = &mut self.image.thread_local;
            let start = all.size.next_multiple_of(section.align().clamp(1, 64).next_power_of_two());
            all.size = start.saturating_add(section.size());
            if all.size > 1 << 20 {
                return Err(Refusal::new("the thread-local variables take more than a MiB"));
            }
            unit.thread_local.insert(section.index(), start);
            if section.kind() == SectionKind::Tls {
                let data = section.data().map_err(|e| Refusal::new(format!("{}: {e}", unit.name)))?;
                all.bytes.resize(start as usize, 0);
                all.bytes.extend(data);
            }
        }
        Ok(())
    }

    /// Makes known what the unit defines.
    fn define(&mut self, unit: &Unit) -> Result<()> {
        for symbol in unit.file.symbols() {
            self.with.limits.spend(16)?;
            let Ok(name) = symbol.name() else { continue };
            if symbol.is_common() {
                if !self.image.symbols.contains_key(name) {
                    let at = self.room(symbol.size(), symbol.address().max(8), Kind::Data)?;
                    self.add(
                        name,
                        Symbol { address: at, size: symbol.size(), is_code: false, is_global: true },
                    );
                }
                continue;
            }
            let Some(index) = symbol.section_index() else { continue };
            if let Some(start) = unit.thread_local.get(&index) {
                let at = start + symbol.address();
                self.image.thread_local.names.push((name.to_string(), at, symbol.size()));
                continue;
            }
            let Some(start) = unit.sections.get(&index) else { continue };
            if name.is_empty() || symbol.kind() == object::SymbolKind::Section {
                continue;
            }
            let is_code = unit.file.section_by_index(index).is_ok_and(|s| s.kind() == SectionKind::Text);
            let (address, size) = (start.wrapping_add(symbol.address()), symbol.size());
            let found = Symbol { address, size, is_code, is_global: symbol.is_global() };
            let old_is_global = self.image.symbols.get(name).is_some_and(|old| old.is_global);
            match old_is_global {
                true if !found.is_global || symbol.is_weak() => {
                    self.image.names.entry(address).or_insert((name.to_string(), size));
                }
                true if !self.weak.remove(name) => {
                    return Err(Refusal::new(format!("`{name}` is defined twice, also in {}", unit.name)));
                }
                _ => {
                    if symbol.is_weak() {
                        self.weak.insert(name.to_string());
                    }
                    self.add(name, found);
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, name: &str, symbol: Symbol) {
        let named = self.image.names.entry(symbol.address).or_insert_with(|| (name.to_string(), symbol.size));
        // Of several names of one place, the one that says how large it is.
        if named.1 < symbol.size {
            *named = (name.to_string(), symbol.size);
        }
        self.image.symbols.insert(name.to_string(), symbol);
    }

    /// The address that stands for what a library defines.
    fn library(&mut self, name: &str) -> Result<u64> {
        if let Some(known) = self.of_libraries.get(name) {
            return Ok(*known);
        }
        if name == SINGLE_THREADED {
            let at = self.room(1, 1, Kind::Constants)?;
            self.image.bytes.set(at, 0);
            self.of_libraries.insert(name.to_string(), at);
            return Ok(at);
        }
        let at = self.room(LIBRARY_BYTES, LIBRARY_BYTES, Kind::Library)?;
        self.image.libraries.insert(at, name.to_string());
        self.of_libraries.insert(name.to_string(), at);
        Ok(at)
    }

    fn gather(&mut self, at: u64, size: u64) {
        let entries = (0..size / 8).filter_map(|n| self.image.bytes.number(at + 8 * n, 8));
        let entries: Vec<u64> = entries.filter(|entry| *entry != 0).collect();
        self.image.constructors.extend(entries);
    }
}

impl Image {
    /// Which place is this: `x`, `x+4`; the name that covers it.
    pub(super) fn name(&self, address: u64) -> Option<(&str, u64)> {
        let (start, (name, size)) = self.names.range(..=address).next_back()?;
        let offset = address - start;
        (offset == 0 || offset < *size).then_some((name.as_str(), offset))
    }

    /// The function whose code this is.
    pub(super) fn function(&self, address: u64) -> Option<&str> {
        if let Some(name) = self.libraries.get(&address) {
            return Some(name);
        }
        let (name, _) = self.name(address)?;
        Some(name)
    }
}

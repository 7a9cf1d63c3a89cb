//! Which formats are there? The one table: a row says how a format is called, what its files end in, and how
//! programs are read from it, written in it, and changed in the user's own text.
//!
//! Whoever offers formats to users reads the table; what is behind a row is the business of its folder.

use super::patch::{self, Dialect, Edit};
use super::promela::{self, Joining};
use super::{Diagnostic, Input, Severity, Unread, Unwritten, dve, elf, litmus, rmm, ron, trencher, tso};
use crate::analysis::isomorphism::isomorphic;
use crate::dve::System;
use crate::limits::Limits;
use crate::model::litmus::Litmus;
use crate::model::{Atom, Program, PropertyKind, SourceMap, Stretch, Value};
use std::path::Path;

/// A row of the table.
#[derive(Debug)]
pub struct Format {
    pub name: &'static str,
    /// What its files end in, the usual one first.
    pub extensions: &'static [&'static str],
    /// What it is, for help texts.
    pub what: &'static str,
    /// Do programs have parameters that the user may define?
    pub parameters: bool,
    /// May programs include files?
    pub includes: bool,
    /// Are the lines of a program's instructions those of the file that was read? Not where programs are
    /// data.
    pub lines: bool,
    /// Do fences say what they order? Otherwise only SC and TSO know what they mean.
    pub fence_kinds: bool,
    pub read: Option<ReadFormat>,
    pub write: Option<WriteFormat>,
    /// How the user's own text is changed, where that can be done.
    pub patch: Option<&'static Dialect>,
    /// What in the user's text is one, and in the program many.
    pub source_map: MapFormat,
    /// How a fence is written, beside an instruction of the program.
    pub fence: fn(instruction: &str) -> &'static str,
}

pub type ReadFormat = fn(&[u8], &Reading) -> Result<Contents, Unread>;
pub type MapFormat = fn(&str, &Program, &Reading) -> Result<SourceMap, Unread>;
pub type WriteFormat = fn(&Program, &Writing) -> Result<String, Unwritten>;

/// A program, with what a litmus test says beside it.
pub type ProgramContents = (Input, Option<Litmus>);

/// What was read.
#[derive(Clone, Debug)]
pub enum Contents {
    Program(Box<ProgramContents>),
    /// A model of another kind, and the warnings about it.
    System(System, Vec<Diagnostic>),
}

/// What a reader has to know beside the bytes.
#[derive(Clone, Copy, Debug)]
pub struct Reading<'a> {
    /// Values for the program's parameters.
    pub define: &'a [(String, Value)],
    /// Where the lines come from, if the text was put together from several files.
    pub stretches: &'a [Stretch],
    /// What is said of machine code beside the file, and the files that are linked with it.
    pub code: Option<(&'a elf::Options, &'a [elf::CodeFile<'a>])>,
    /// What the file is called.
    pub name: &'a str,
    pub limits: &'a Limits,
}

impl<'a> Reading<'a> {
    /// A text of its own.
    pub fn of_text(define: &'a [(String, Value)], limits: &'a Limits) -> Reading<'a> {
        Reading { define, stretches: &[], code: None, name: "", limits }
    }
}

/// What a writer has to know beside the program.
#[derive(Clone, Copy, Debug)]
pub struct Writing<'a> {
    /// The program's name.
    pub name: &'a str,
    /// What the test that the program came from says beside it.
    pub litmus: Option<&'a Litmus>,
    /// How much of a thread is one step of a SPIN model.
    pub steps: Joining,
    pub limits: &'a Limits,
}

pub static FORMATS: [Format; 8] = [
    Format {
        name: "tso",
        extensions: &["tso"],
        what: "The native language",
        parameters: true,
        includes: true,
        lines: true,
        fence_kinds: true,
        read: Some(|bytes, with| {
            alone(tso::read_spliced(text(bytes)?, with.stretches, with.define, with.limits))
        }),
        write: Some(|program, with| Ok(tso::write(program, with.limits)?)),
        patch: Some(&tso::DIALECT),
        source_map: |text, _, with| tso::source_map(text, with.define, with.limits),
        fence: tso::DIALECT.fence,
    },
    Format {
        name: "ron",
        extensions: &["ron"],
        what: "The program model itself",
        parameters: false,
        includes: false,
        lines: false,
        fence_kinds: true,
        read: Some(|bytes, with| alone(ron::read(text(bytes)?, with.limits))),
        write: Some(|program, with| Ok(ron::write(program, with.limits)?)),
        patch: None,
        source_map: no_copies,
        fence: |_| "fence",
    },
    Format {
        name: "litmus",
        extensions: &["litmus"],
        what: "x86 litmus tests",
        parameters: false,
        includes: false,
        lines: true,
        fence_kinds: true,
        read: Some(|bytes, with| {
            let read = litmus::read_test(text(bytes)?, with.limits);
            read.map(|(input, litmus)| Contents::Program(Box::new((input, Some(litmus)))))
        }),
        write: Some(|program, with| litmus::write(program, with.name, with.litmus, with.limits)),
        patch: Some(&litmus::DIALECT),
        source_map: no_copies,
        fence: litmus::DIALECT.fence,
    },
    Format {
        name: "trencher",
        extensions: &["txt"],
        what: "Trencher",
        parameters: false,
        includes: false,
        lines: true,
        fence_kinds: false,
        read: Some(|bytes, with| alone(trencher::read(text(bytes)?, with.limits))),
        write: Some(|program, with| trencher::write(program, with.limits)),
        patch: None,
        source_map: no_copies,
        fence: |_| "mfence",
    },
    Format {
        name: "rmm",
        extensions: &["rmm"],
        what: "Memorax",
        parameters: false,
        includes: false,
        lines: true,
        fence_kinds: true,
        read: Some(|bytes, with| alone(rmm::read(text(bytes)?, with.limits))),
        write: None,
        patch: Some(&rmm::DIALECT),
        source_map: |text, program, with| Ok(SourceMap::of_copies(program, &rmm::copies(text, with.limits)?)),
        fence: rmm::DIALECT.fence,
    },
    Format {
        name: "dve",
        extensions: &["dve"],
        what: "Models for DiVinE",
        parameters: false,
        includes: false,
        lines: true,
        fence_kinds: false,
        read: Some(|bytes, with| {
            dve::read(text(bytes)?, with.limits).map(|(system, warnings)| Contents::System(system, warnings))
        }),
        write: None,
        patch: None,
        source_map: no_copies,
        fence: |_| "fence",
    },
    Format {
        name: "elf",
        extensions: &["o", "a", "elf"],
        what: "x86-64 machine code: object files, archives, executables",
        parameters: false,
        includes: false,
        lines: false,
        fence_kinds: true,
        read: Some(|bytes, with| alone(code(bytes, with))),
        write: None,
        patch: None,
        source_map: |_, program, _| Ok(SourceMap::of_code(program)),
        fence: |_| "mfence",
    },
    Format {
        name: "promela",
        extensions: &["pml"],
        what: "A model under SC for SPIN",
        parameters: false,
        includes: false,
        lines: false,
        fence_kinds: false,
        read: None,
        write: Some(|program, with| promela::write(program, with.steps, with.limits)),
        patch: None,
        source_map: no_copies,
        fence: |_| "fence",
    },
];

/// The format of this name.
pub fn named(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}

pub fn readable() -> impl Iterator<Item = &'static Format> {
    FORMATS.iter().filter(|format| format.read.is_some())
}

pub fn writable() -> impl Iterator<Item = &'static Format> {
    FORMATS.iter().filter(|format| format.write.is_some())
}

/// The format that the bytes of a file tell, whatever its name.
pub fn of_bytes(bytes: &[u8]) -> Option<&'static Format> {
    elf::is_code(bytes).then(|| named("elf")).flatten()
}

/// The format that the name of a file tells, among those that are read.
pub fn of_path(path: &Path) -> Option<&'static Format> {
    let extension = path.extension()?.to_str()?;
    readable().find(|format| format.extensions.contains(&extension))
}

impl PartialEq for Format {
    fn eq(&self, other: &Format) -> bool {
        self.name == other.name
    }
}

impl Eq for Format {}

impl Format {
    /// Are its files models of another kind than programs?
    pub fn holds_models(&self) -> bool {
        self.name == "dve"
    }

    /// The program in a file of this format.
    pub fn parse(&self, bytes: &[u8], with: &Reading) -> Result<ProgramContents, Unread> {
        match self.contents(bytes, with)? {
            Contents::Program(program) => Ok(*program),
            Contents::System(..) => Err(wrong(format!("a model in {} is no program", self.name), None)),
        }
    }

    /// What a file of this format says. A format that is only written has nothing to say.
    pub fn contents(&self, bytes: &[u8], with: &Reading) -> Result<Contents, Unread> {
        match self.read {
            Some(read) => read(bytes, with),
            None => Err(wrong(format!("programs are not read from {}", self.name), None)),
        }
    }

    /// The program in this format, or why that cannot be done.
    pub fn written(&self, program: &Program, with: &Writing) -> Result<String, Unwritten> {
        with.limits.check()?;
        match self.write {
            Some(write) => write(program, with),
            None => Err(Unwritten::NoWriter(self.name)),
        }
    }

    /// The user's text with the edits made, if reading it gives the program that is meant.
    pub fn patched(&self, source: &str, edits: &[Edit], meant: &Program, with: &Reading) -> Option<String> {
        let text = patch::patch(source, self.patch?, edits)?;
        let (again, _) = self.parse(text.as_bytes(), with).ok()?;
        isomorphic(&again.program, meant, with.limits).unwrap_or(false).then_some(text)
    }

    /// The user's text with fences before what stands at these bytes, if that means the same to the properties.
    pub fn inserted(&self, source: &str, bytes: &[usize], meant: &Program, with: &Reading) -> Option<String> {
        let text = patch::insert(source, (self.fence)(""), bytes)?;
        let (again, _) = self.parse(text.as_bytes(), with).ok()?;
        let alike = || isomorphic(&again.program, meant, with.limits).unwrap_or(false);
        (arrivals_only_harm(meant) || alike()).then_some(text)
    }
}

/// Each thread has a text of its own.
fn no_copies(_: &str, program: &Program, _: &Reading) -> Result<SourceMap, Unread> {
    Ok(SourceMap::per_thread(program))
}

/// Can arrivals of threads only help the properties to fail? Then it makes no difference to them whether a
/// thread that waits at a new fence counts as standing at what comes behind it: it can be there at once.
fn arrivals_only_harm(program: &Program) -> bool {
    let at = |atom: &Atom| matches!(atom, Atom::At(..));
    let mut properties = program.properties().iter();
    properties.all(|p| match p.kind {
        PropertyKind::Forall => p.pred.clone().negated().grows_with(&at),
        _ => p.pred.grows_with(&at),
    })
}

fn code(bytes: &[u8], with: &Reading) -> Result<Input, Unread> {
    let options = elf::Options::default();
    let (options, others) = with.code.unwrap_or((&options, &[]));
    let files: Vec<elf::CodeFile> =
        std::iter::once(elf::CodeFile { name: with.name, bytes }).chain(others.iter().copied()).collect();
    elf::read(&files, options, with.limits)
}

fn alone(input: Result<Input, Unread>) -> Result<Contents, Unread> {
    input.map(|input| Contents::Program(Box::new((input, None))))
}

/// The bytes as text. The place of the first byte that is none is counted in what can be shown of the file,
/// with a replacement character there.
fn text(bytes: &[u8]) -> Result<&str, Unread> {
    str::from_utf8(bytes).map_err(|e| {
        let at = e.valid_up_to();
        let message = format!("this is not UTF-8 text: byte {:#04x} at offset {at}", bytes[at]);
        wrong(message, Some(at..at + char::REPLACEMENT_CHARACTER.len_utf8()))
    })
}

fn wrong(message: String, span: Option<std::ops::Range<usize>>) -> Unread {
    let label = if span.is_some() { "a program is text" } else { "" };
    Unread::Wrong(vec![Diagnostic {
        severity: Severity::Error,
        message,
        span,
        label: label.to_string(),
        help: None,
    }])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_and_extensions_are_told_apart() {
        let names: HashSet<_> = FORMATS.iter().map(|f| f.name).collect();
        let extensions: HashSet<_> = FORMATS.iter().flat_map(|f| f.extensions).collect();
        let all = FORMATS.iter().map(|f| f.extensions.len()).sum();
        assert_eq!((names.len(), extensions.len()), (FORMATS.len(), all));
        assert_eq!(of_path(Path::new("a/b.litmus")).map(|f| f.name), Some("litmus"));
        assert_eq!(of_path(Path::new("b.pml")), None, "it is only written");
    }

    #[test]
    fn what_is_no_text_is_an_error_with_its_place() {
        let limits = Limits::default();
        let with = Reading::of_text(&[], &limits);
        for format in readable().filter(|format| format.name != "elf") {
            let Err(Unread::Wrong(wrong)) = format.parse(b"ab\xff", &with) else { panic!("{}", format.name) };
            assert_eq!(wrong[0].span, Some(2..5), "{}", format.name);
        }
    }
}

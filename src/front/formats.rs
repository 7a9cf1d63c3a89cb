//! Which formats are there? The one table: a row says how a format is called, what its files end in, and how
//! programs are read from it, written in it, and changed in the user's own text.
//!
//! Whoever offers formats to users reads the table; what is behind a row is the business of its folder.

use super::patch::{self, Dialect, Edit};
use super::promela::{self, Joining};
use super::{Diagnostic, Input, Severity, Unread, Unwritten, litmus, rmm, ron, trencher, tso};
use crate::analysis::isomorphism::isomorphic;
use crate::limits::Limits;
use crate::model::litmus::Litmus;
use crate::model::{Program, Value};
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
    /// Are the lines of a program's instructions those of the file that was read? Not where programs are
    /// data.
    pub lines: bool,
    pub read: Option<ReadFormat>,
    pub write: Option<WriteFormat>,
    /// How the user's own text is changed, where that can be done.
    pub patch: Option<&'static Dialect>,
    /// How a fence is written, beside an instruction of the program.
    pub fence: fn(instruction: &str) -> &'static str,
}

pub type ReadFormat = fn(&[u8], &Reading) -> Result<Contents, Unread>;
pub type WriteFormat = fn(&Program, &Writing) -> Result<String, Unwritten>;

/// What was read, with what a litmus test says beside its program.
pub type Contents = (Input, Option<Litmus>);

/// What a reader has to know beside the bytes.
#[derive(Clone, Copy, Debug)]
pub struct Reading<'a> {
    /// Values for the program's parameters.
    pub define: &'a [(String, Value)],
    pub limits: &'a Limits,
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

pub static FORMATS: [Format; 6] = [
    Format {
        name: "tso",
        extensions: &["tso"],
        what: "The native language",
        parameters: true,
        lines: true,
        read: Some(|bytes, with| alone(tso::read(text(bytes)?, with.define, with.limits))),
        write: Some(|program, with| Ok(tso::write(program, with.limits)?)),
        patch: Some(&tso::DIALECT),
        fence: tso::DIALECT.fence,
    },
    Format {
        name: "ron",
        extensions: &["ron"],
        what: "The program model itself",
        parameters: false,
        lines: false,
        read: Some(|bytes, with| alone(ron::read(text(bytes)?, with.limits))),
        write: Some(|program, with| Ok(ron::write(program, with.limits)?)),
        patch: None,
        fence: |_| "fence",
    },
    Format {
        name: "litmus",
        extensions: &["litmus"],
        what: "x86 litmus tests",
        parameters: false,
        lines: true,
        read: Some(|bytes, with| {
            litmus::read_test(text(bytes)?, with.limits).map(|(input, litmus)| (input, Some(litmus)))
        }),
        write: Some(|program, with| litmus::write(program, with.name, with.litmus, with.limits)),
        patch: Some(&litmus::DIALECT),
        fence: litmus::DIALECT.fence,
    },
    Format {
        name: "trencher",
        extensions: &["txt"],
        what: "Trencher",
        parameters: false,
        lines: true,
        read: Some(|bytes, with| alone(trencher::read(text(bytes)?, with.limits))),
        write: Some(|program, with| trencher::write(program, with.limits)),
        patch: None,
        fence: |_| "mfence",
    },
    Format {
        name: "rmm",
        extensions: &["rmm"],
        what: "Memorax",
        parameters: false,
        lines: true,
        read: Some(|bytes, with| alone(rmm::read(text(bytes)?, with.limits))),
        write: None,
        patch: Some(&rmm::DIALECT),
        fence: rmm::DIALECT.fence,
    },
    Format {
        name: "promela",
        extensions: &["pml"],
        what: "A model under SC for SPIN",
        parameters: false,
        lines: false,
        read: None,
        write: Some(|program, with| promela::write(program, with.steps, with.limits)),
        patch: None,
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
    /// What a file of this format says. A format that is only written has nothing to say.
    pub fn parse(&self, bytes: &[u8], with: &Reading) -> Result<Contents, Unread> {
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
}

fn alone(input: Result<Input, Unread>) -> Result<Contents, Unread> {
    input.map(|input| (input, None))
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
        assert_eq!((names.len(), extensions.len()), (FORMATS.len(), FORMATS.len()));
        assert_eq!(of_path(Path::new("a/b.litmus")).map(|f| f.name), Some("litmus"));
        assert_eq!(of_path(Path::new("b.pml")), None, "it is only written");
    }

    #[test]
    fn what_is_no_text_is_an_error_with_its_place() {
        let with = Reading { define: &[], limits: &Limits::default() };
        for format in readable() {
            let Err(Unread::Wrong(wrong)) = format.parse(b"ab\xff", &with) else { panic!("{}", format.name) };
            assert_eq!(wrong[0].span, Some(2..5), "{}", format.name);
        }
    }
}

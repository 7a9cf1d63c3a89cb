//! Which text do a file and those it includes make together? Each included file stands behind the line that
//! asks for it, and that line becomes a comment, so that what comes out is a program in one piece.
//!
//! Files come from the caller: nothing is opened here. A file that is included again is there already, and
//! not repeated; one that includes itself, by whatever way, is an error. Every line keeps its columns, so a
//! place in the text is a place in one of the files.

use super::lex::TsoKind;
use crate::front::{Diagnostic, Severity};
use crate::limits::{Limit, Limits};
use crate::model::source::{LinePlace, Stretch, place};
use logos::Logos;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Files inside files.
const MAX_DEPTH: usize = 32;

/// A file, as whoever keeps files gives it.
#[derive(Clone, Debug)]
pub struct IncludedFile {
    /// The same for all names of one file.
    pub id: String,
    /// What users call it.
    pub name: String,
    pub text: String,
}

/// Finds a file by the name that stands in another one, whose own name comes first.
pub type Fetch<'a> = &'a dyn Fn(&str, &str) -> Result<IncludedFile, String>;

/// A program in one piece, and where its lines come from.
#[derive(Debug)]
pub struct Spliced {
    pub text: String,
    /// Empty if nothing was included.
    pub stretches: Vec<Stretch>,
    /// The files' own texts, by name.
    texts: HashMap<Option<String>, String>,
}

/// What is wrong with an `include`, in the file that has it.
#[derive(Debug)]
pub struct Unspliced {
    pub file: String,
    pub text: String,
    pub diagnostic: Box<Diagnostic>,
}

pub enum SpliceError {
    Wrong(Unspliced),
    Limit(Limit),
}

impl From<Limit> for SpliceError {
    fn from(limit: Limit) -> SpliceError {
        SpliceError::Limit(limit)
    }
}

pub fn splice(main: &IncludedFile, fetch: Fetch, limits: &Limits) -> Result<Spliced, SpliceError> {
    let empty = Spliced { text: String::new(), stretches: Vec::new(), texts: HashMap::new() };
    let mut splicer =
        Splicer { fetch, limits, open: Vec::new(), seen: HashSet::new(), spliced: empty, lines: 0 };
    splicer.file(main)?;
    let mut spliced = splicer.spliced;
    if spliced.texts.is_empty() {
        spliced.stretches.clear();
    }
    spliced.texts.insert(None, main.text.clone());
    Ok(spliced)
}

struct Splicer<'a> {
    fetch: Fetch<'a>,
    limits: &'a Limits,
    /// The files around, outermost first.
    open: Vec<String>,
    seen: HashSet<String>,
    spliced: Spliced,
    /// Complete lines of the text so far.
    lines: u32,
}

impl Splicer<'_> {
    fn file(&mut self, file: &IncludedFile) -> Result<(), SpliceError> {
        self.limits.reserve(file.text.len())?;
        self.limits.spend(file.text.len() / 4 + 1)?;
        self.open.push(file.id.clone());
        self.seen.insert(file.id.clone());
        let source = file.text.trim_start_matches('\u{FEFF}');
        let skipped = file.text.len() - source.len();
        let mut done = 0;
        for request in requests(source) {
            let at = skipped + request.whole.start..skipped + request.whole.end;
            let wrong = |message: String, help: &str| wrong(file, at.clone(), message, help);
            if let Some((message, help)) = request.misplaced {
                return Err(wrong(message.to_string(), help));
            }
            let end = source[request.whole.end..].find('\n').map_or(source.len(), |n| request.whole.end + n);
            self.stretch(file, line_of(source, done));
            self.copy(&source[done..request.whole.start]);
            self.copy("// ");
            self.copy_line(&source[request.whole.start..end]);
            done = (end + 1).min(source.len());
            let included = (self.fetch)(&file.name, request.name)
                .map_err(|why| wrong(format!("`{}` cannot be included: {why}", request.name), ""))?;
            if self.open.contains(&included.id) {
                let help = "files may not include each other in a cycle";
                return Err(wrong(format!("`{}` includes itself", request.name), help));
            }
            if self.open.len() == MAX_DEPTH {
                return Err(wrong("files are included too deeply".to_string(), ""));
            }
            if !self.seen.contains(&included.id) {
                self.file(&included)?;
                self.spliced.texts.insert(Some(included.name), included.text);
            }
        }
        self.stretch(file, line_of(source, done));
        match self.open.len() {
            // The end of a file that was read is the end of the text, as it is.
            1 => self.copy(&source[done..]),
            _ if source[done..].is_empty() => {}
            _ => self.copy_line(source[done..].strip_suffix('\n').unwrap_or(&source[done..])),
        }
        self.open.pop();
        Ok(())
    }

    /// From here on, lines are those of the file.
    fn stretch(&mut self, file: &IncludedFile, line: u32) {
        let name = (self.open.len() > 1).then(|| file.name.clone());
        self.spliced.stretches.push(Stretch { first: self.lines + 1, file: name, line });
    }

    fn copy(&mut self, text: &str) {
        self.lines += text.matches('\n').count() as u32;
        self.spliced.text += text;
    }

    fn copy_line(&mut self, text: &str) {
        self.copy(text);
        self.copy("\n");
    }
}

fn line_of(source: &str, offset: usize) -> u32 {
    source[..offset].matches('\n').count() as u32 + 1
}

fn wrong(file: &IncludedFile, span: Range<usize>, message: String, help: &str) -> SpliceError {
    let help = (!help.is_empty()).then(|| help.to_string());
    let diagnostic =
        Diagnostic { severity: Severity::Error, message, span: Some(span), label: String::new(), help };
    SpliceError::Wrong(Unspliced {
        file: file.name.clone(),
        text: file.text.clone(),
        diagnostic: Box::new(diagnostic),
    })
}

/// `include "lock.tso"`
struct Request<'s> {
    whole: Range<usize>,
    name: &'s str,
    /// What is wrong with its place, and a way out.
    misplaced: Option<(&'static str, &'static str)>,
}

fn requests(source: &str) -> Vec<Request<'_>> {
    let tokens: Vec<(TsoKind, Range<usize>)> =
        TsoKind::lexer(source).spanned().map(|(kind, at)| (kind.unwrap_or(TsoKind::Garbage), at)).collect();
    let kind = |i: usize| tokens.get(i).map_or(TsoKind::Newline, |(kind, _)| *kind);
    let begins = |i: usize| i == 0 || matches!(kind(i - 1), TsoKind::Newline | TsoKind::Semicolon);
    let mut inside = false;
    let mut found = Vec::new();
    for (i, (own, at)) in tokens.iter().enumerate().filter(|(i, _)| begins(*i)) {
        let word = &source[at.clone()];
        match (own, kind(i + 1)) {
            (TsoKind::Thread, _) => inside = true,
            (TsoKind::Name, TsoKind::Name) if word == "inline" => inside = true,
            (TsoKind::End, _) => inside = false,
            (TsoKind::Name, TsoKind::Text) if word == "include" => {
                let quoted = &tokens[i + 1].1;
                let misplaced = match kind(i + 2) {
                    _ if inside => Some(("`include` inside a thread", "files are included outside threads")),
                    TsoKind::Newline => None,
                    _ => Some(("an `include` ends its line", "nothing but a comment may follow")),
                };
                let name = &source[quoted.start + 1..quoted.end - 1];
                found.push(Request { whole: at.start..quoted.end, name, misplaced });
            }
            _ => {}
        }
    }
    found
}

impl Spliced {
    /// Where a place of the text is: in which file, with its own text, and where there.
    pub fn origin(&self, span: &Range<usize>) -> Origin<'_> {
        let start = span.start.min(self.text.len());
        let before = &self.text.as_bytes()[..start];
        let line_start = before.iter().rposition(|b| *b == b'\n').map_or(0, |n| n + 1);
        let number = before.iter().filter(|b| **b == b'\n').count() as u32 + 1;
        let LinePlace { file, line } = place(&self.stretches, number);
        let text = self.texts.get(&file.map(str::to_string)).map_or("", String::as_str);
        let own_start = match line {
            0 | 1 => text.len() - text.trim_start_matches('\u{FEFF}').len(),
            _ => text.match_indices('\n').nth(line as usize - 2).map_or(text.len(), |(n, _)| n + 1),
        };
        let shifted = |offset: usize| own_start + offset.saturating_sub(line_start);
        Origin { file, text, span: shifted(start)..shifted(span.end) }
    }
}

/// A place in one of the files.
#[derive(Debug, PartialEq, Eq)]
pub struct Origin<'a> {
    /// None for the file that was read.
    pub file: Option<&'a str>,
    pub text: &'a str,
    pub span: Range<usize>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, text: &str) -> IncludedFile {
        IncludedFile { id: name.to_string(), name: name.to_string(), text: text.to_string() }
    }

    /// Splices the first of these files.
    fn splice_all(files: &[(&str, &str)]) -> Result<Spliced, String> {
        let fetch = |_: &str, name: &str| {
            let found = files.iter().find(|(known, _)| *known == name);
            found.map(|(name, text)| file(name, text)).ok_or("there is none".to_string())
        };
        let (name, text) = files[0];
        splice(&file(name, text), &fetch, &Limits::default()).map_err(|e| match e {
            SpliceError::Wrong(Unspliced { file, diagnostic, .. }) => {
                format!("{file}: {}", diagnostic.message)
            }
            SpliceError::Limit(limit) => format!("{limit:?}"),
        })
    }

    #[test]
    fn files_stand_behind_the_lines_that_ask_for_them() {
        let main = ("main", "shared x\ninclude \"a\" // locks\nthread p\nend");
        let files = [main, ("a", "include \"b\"\nshared y\ninclude \"b\"\n"), ("b", "shared z")];
        let spliced = splice_all(&files).expect("all files are there");
        let lines: Vec<&str> = spliced.text.lines().collect();
        let expect = [
            ("shared x", "1"),
            ("// include \"a\" // locks", "2"),
            ("// include \"b\"", "1 of a"),
            ("shared z", "1 of b"),
            ("shared y", "2 of a"),
            ("// include \"b\"", "3 of a"),
            ("thread p", "3"),
            ("end", "4"),
        ];
        for (i, (line, from)) in expect.iter().enumerate() {
            let at = place(&spliced.stretches, i as u32 + 1);
            assert_eq!((lines[i], at.to_string().as_str()), (*line, *from));
        }
        let at = spliced.text.find('y').expect("it is there");
        assert_eq!(spliced.origin(&(at..at + 1)), Origin { file: Some("a"), text: files[1].1, span: 19..20 });
        let at = spliced.text.find("thread").expect("it is there");
        assert_eq!(spliced.origin(&(at..at + 6)), Origin { file: None, text: main.1, span: 30..36 });
    }

    #[test]
    fn what_cannot_be_included_is_said() {
        let wrong = |files: &[(&str, &str)]| splice_all(files).expect_err("an error");
        assert_eq!(wrong(&[("m", "include \"a\"")]), "m: `a` cannot be included: there is none");
        assert_eq!(wrong(&[("m", "include \"m\"")]), "m: `m` includes itself");
        let cycle = [("m", "include \"a\""), ("a", "\ninclude \"m\"")];
        assert_eq!(wrong(&cycle), "a: `m` includes itself");
        assert_eq!(wrong(&[("m", "thread p\ninclude \"a\"\nend")]), "m: `include` inside a thread");
        assert_eq!(wrong(&[("m", "include \"a\" shared x")]), "m: an `include` ends its line");
    }

    #[test]
    fn a_file_without_requests_stays_as_it_is() {
        let text = "shared include\nthread include\ninclude: include = 1\nend";
        let spliced = splice_all(&[("m", text)]).expect("nothing is asked for");
        assert_eq!((spliced.text.as_str(), spliced.stretches.len()), (text, 0));
    }
}

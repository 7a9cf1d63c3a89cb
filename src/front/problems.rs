//! What is wrong with the file, and where? Gathers problems from every stage of reading.
//!
//! A template is expanded many times, and a mistake in it is still one mistake: the same message at the same
//! place is kept once. Only so many are shown that a person would read them; the rest are counted.
//! Nothing here knows the language, only names and places.

use crate::front::{Diagnostic, Severity};
use std::collections::HashSet;

/// Shown of errors, and again of warnings.
pub const SHOWN: usize = 50;
/// Kept, so that those shown are the first ones of the file and memory stays bounded.
const KEPT: usize = 5_000;
/// Longer names are not compared: nobody mistypes them into another one.
const LONGEST_COMPARED: usize = 40;

/// Bytes of the source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub start: usize,
    pub end: usize,
}

impl Span {
    pub fn to(self, last: Span) -> Span {
        Span { start: self.start, end: last.end }
    }
}

/// Stands for a problem that has been reported, so that whoever meets it keeps quiet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reported;

/// A diagnostic in the making.
#[derive(Debug)]
pub struct Problem(Diagnostic);

impl Problem {
    pub fn error(message: impl Into<String>) -> Problem {
        Problem::new(Severity::Error, message.into())
    }

    pub fn warning(message: impl Into<String>) -> Problem {
        Problem::new(Severity::Warning, message.into())
    }

    fn new(severity: Severity, message: String) -> Problem {
        Problem(Diagnostic { severity, message, span: None, label: String::new(), help: None })
    }

    pub fn at(mut self, span: Span) -> Problem {
        self.0.span = Some(span.start..span.end);
        self
    }

    pub fn label(mut self, label: impl Into<String>) -> Problem {
        self.0.label = label.into();
        self
    }

    pub fn help(mut self, help: impl Into<String>) -> Problem {
        self.0.help = Some(help.into());
        self
    }

    /// "did you mean", if there is something that may have been meant.
    pub fn suggest(self, meant: Option<String>) -> Problem {
        match meant {
            Some(meant) => self.help(format!("did you mean `{meant}`?")),
            None => self,
        }
    }
}

pub struct Problems {
    /// Where each line begins.
    lines: Vec<usize>,
    kept: Vec<Diagnostic>,
    seen: HashSet<(usize, String)>,
    errors: usize,
    warnings: usize,
}

impl Problems {
    pub fn new(source: &str) -> Problems {
        let begins = source.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i + 1);
        Problems {
            lines: std::iter::once(0).chain(begins).collect(),
            kept: Vec::new(),
            seen: HashSet::new(),
            errors: 0,
            warnings: 0,
        }
    }

    /// Line numbers count from 1.
    pub fn line(&self, span: Span) -> u32 {
        self.lines.partition_point(|&begin| begin <= span.start) as u32
    }

    pub fn report(&mut self, problem: Problem) -> Reported {
        let diagnostic = problem.0;
        let place = diagnostic.span.as_ref().map_or(usize::MAX, |s| s.start);
        if self.kept.len() < KEPT && !self.seen.insert((place, diagnostic.message.clone())) {
            return Reported;
        }
        match diagnostic.severity {
            Severity::Error => self.errors += 1,
            Severity::Warning => self.warnings += 1,
        }
        if self.kept.len() < KEPT {
            self.kept.push(diagnostic);
        }
        Reported
    }

    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// The candidate nearest to a name, if it is near enough to be what was meant. Once there is more to
    /// show than a person reads, no time is spent on it.
    pub fn nearest<'a>(&self, name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
        let plenty = self.errors.max(self.warnings) >= SHOWN;
        if plenty || name.len() > LONGEST_COMPARED {
            return None;
        }
        let allowed = match name.len() {
            0..=1 => 0,
            2..=4 => 1,
            5..=8 => 2,
            _ => 3,
        };
        let letters = letters(name);
        let may_be_near = |c: &str| {
            // Each change of one letter adds one to the set of letters and takes one from it, at most.
            c.len().abs_diff(name.len()) <= allowed
                && (self::letters(c) ^ letters).count_ones() as usize <= 2 * allowed + 2
        };
        candidates
            .into_iter()
            .filter(|c| *c != name && may_be_near(c))
            .map(|c| (distance(name, c), c))
            .filter(|(distance, _)| *distance <= allowed)
            .min()
            .map(|(_, c)| c.to_string())
    }

    /// Everything to show, in the order of the file.
    pub fn finish(mut self) -> Vec<Diagnostic> {
        self.kept.sort_by_key(|d| d.span.as_ref().map_or(usize::MAX, |s| s.start));
        let mut shown = Vec::new();
        for (severity, word, total) in
            [(Severity::Error, "error", self.errors), (Severity::Warning, "warning", self.warnings)]
        {
            shown.extend(self.kept.iter().filter(|d| d.severity == severity).take(SHOWN).cloned());
            if let Some(more @ 1..) = total.checked_sub(SHOWN) {
                let plural = if more == 1 { "" } else { "s" };
                shown.push(Problem::new(severity, format!("{more} more {word}{plural} not shown")).0);
            }
        }
        shown.sort_by_key(|d| d.span.as_ref().map_or(usize::MAX, |s| s.start));
        shown
    }
}

/// The set of bytes in a name, roughly, and whatever their case.
fn letters(name: &str) -> u64 {
    name.bytes().fold(0, |set, b| set | 1 << (b.to_ascii_lowercase() & 63))
}

/// Letters' case is the cheapest of mistakes.
fn distance(a: &str, b: &str) -> usize {
    if a.eq_ignore_ascii_case(b) { 0 } else { strsim::osa_distance(a, b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_count_from_one() {
        let problems = Problems::new("a\nbc\n");
        let line = |start| problems.line(Span { start, end: start });
        assert_eq!([line(0), line(1), line(2), line(4), line(5)], [1, 1, 2, 2, 3]);
    }

    #[test]
    fn the_same_problem_at_the_same_place_is_kept_once() {
        let mut problems = Problems::new("");
        for _ in 0..3 {
            problems.report(Problem::error("no").at(Span { start: 1, end: 2 }));
        }
        assert_eq!(problems.finish().len(), 1);
    }

    #[test]
    fn too_many_problems_are_counted() {
        let mut problems = Problems::new("");
        for start in 0..SHOWN + 7 {
            problems.report(Problem::error("no").at(Span { start, end: start }));
        }
        let shown = problems.finish();
        assert_eq!(shown.len(), SHOWN + 1);
        assert_eq!(shown[SHOWN].message, "7 more errors not shown");
    }

    #[test]
    fn a_suggestion_is_near() {
        let problems = Problems::new("");
        let nearest = |name| problems.nearest(name, ["flag0", "flag1", "turn", "Ready"]);
        assert_eq!(nearest("flagg0"), Some("flag0".to_string()));
        assert_eq!(nearest("trun"), Some("turn".to_string()));
        assert_eq!(nearest("ready"), Some("Ready".to_string()));
        assert_eq!(nearest("elephant"), None);
        assert_eq!(nearest("t"), None);
    }
}

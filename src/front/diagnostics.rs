//! What is wrong with the file, and where? Gathers problems from every stage of reading.
//!
//! A template is expanded many times, and a mistake in it is still one mistake: the same message at the same
//! place is kept once. Only so many are shown that a person would read them; the rest are counted.
//! Nothing here knows the language, only names and places.
//!
//! A limit that is reached counts as a problem that has been reported, so that every stage ends as it does
//! after a mistake: whoever has much to do spends steps here ([`Problems::spend`]). What is found to be wrong
//! after that is not shown, for the file was not read to its end.

use crate::front::{Diagnostic, Severity, Unread};
use crate::limits::{Limit, Limits};
use crate::model::program::{ProgramParts, ThreadParts};
use crate::model::{Edge, Location, Program, Stretch, source};
use std::collections::HashSet;

/// Shown of errors, and again of warnings.
pub(crate) const SHOWN: usize = 50;
/// Kept, so that those shown are the first ones of the file and memory stays bounded.
const KEPT: usize = 5_000;
/// Longer names are not compared: nobody mistypes them into another one.
const LONGEST_COMPARED: usize = 40;
/// Longer words are cut short in messages.
const WORD_SHOWN: usize = 40;
/// What an instruction costs, in steps: so much that memory is looked at every few megabytes of them.
pub(crate) const INSTRUCTION: usize = 16;

/// Bytes of the source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub start: usize,
    pub end: usize,
}

impl Span {
    pub(crate) fn to(self, last: Span) -> Span {
        Span { start: self.start, end: last.end }
    }
}

/// Stands for a problem that has been reported, so that whoever meets it keeps quiet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reported;

/// What was read, unless a problem kept it from being read.
pub(crate) type Parsed<T> = Result<T, Reported>;

/// A diagnostic in the making.
#[derive(Debug)]
pub(crate) struct Problem(Diagnostic);

impl Problem {
    pub(crate) fn error(message: impl Into<String>) -> Problem {
        Problem::new(Severity::Error, message.into())
    }

    pub(crate) fn warning(message: impl Into<String>) -> Problem {
        Problem::new(Severity::Warning, message.into())
    }

    fn new(severity: Severity, message: String) -> Problem {
        Problem(Diagnostic { severity, message, span: None, label: String::new(), help: None })
    }

    pub(crate) fn at(mut self, span: Span) -> Problem {
        self.0.span = Some(span.start..span.end);
        self
    }

    pub(crate) fn label(mut self, label: impl Into<String>) -> Problem {
        self.0.label = label.into();
        self
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Problem {
        self.0.help = Some(help.into());
        self
    }

    /// Something that helps to understand, beside what helps out.
    pub(crate) fn note(mut self, note: impl Into<String>) -> Problem {
        let note = note.into();
        self.0.help = Some(match self.0.help {
            Some(help) => format!("{help} ({note})"),
            None => note,
        });
        self
    }

    /// "did you mean", if there is something that may have been meant.
    pub(crate) fn suggest(self, meant: Option<String>) -> Problem {
        match meant {
            Some(meant) => self.help(format!("did you mean `{meant}`?")),
            None => self,
        }
    }
}

/// A word of the source, as messages quote it.
pub(crate) fn shorten(word: &str) -> String {
    match word.char_indices().nth(WORD_SHOWN) {
        Some((cut, _)) => format!("{}…", &word[..cut]),
        None => word.to_string(),
    }
}

pub(crate) struct Problems<'l> {
    limits: &'l Limits,
    /// The first one that was reached.
    reached: Option<Limit>,
    /// Where each line begins.
    lines: Vec<usize>,
    /// Which files the lines come from.
    stretches: Vec<Stretch>,
    kept: Vec<Diagnostic>,
    seen: HashSet<(usize, String)>,
    errors: usize,
    warnings: usize,
}

impl<'l> Problems<'l> {
    pub(crate) fn new(source: &str, limits: &'l Limits) -> Problems<'l> {
        let mut problems = Problems {
            limits,
            reached: None,
            lines: vec![0],
            stretches: Vec::new(),
            kept: Vec::new(),
            seen: HashSet::new(),
            errors: 0,
            warnings: 0,
        };
        for (end, _) in source.match_indices('\n') {
            problems.lines.push(end + 1);
            if problems.spend(1).is_err() {
                break;
            }
        }
        problems
    }

    /// So many steps were done, or are about to be. Once a limit has been reached, there are no more.
    #[inline]
    pub(crate) fn spend(&mut self, steps: usize) -> Result<(), Reported> {
        match self.reached {
            None => self.limits.spend(steps).map_err(|limit| self.stop(limit)),
            Some(_) => Err(Reported),
        }
    }

    /// So many bytes are about to be taken at once.
    pub(crate) fn reserve(&mut self, bytes: usize) -> Result<(), Reported> {
        self.limits.reserve(bytes).map_err(|limit| self.stop(limit))
    }

    /// What an analysis found, unless it came to a limit.
    pub(crate) fn within<T>(
        &mut self,
        analysis: impl FnOnce(&Limits) -> Result<T, Limit>,
    ) -> Result<T, Reported> {
        analysis(self.limits).map_err(|limit| self.stop(limit))
    }

    fn stop(&mut self, limit: Limit) -> Reported {
        self.reached.get_or_insert(limit);
        Reported
    }

    /// The program that has these parts.
    pub(crate) fn program(&mut self, parts: ProgramParts) -> Result<Program, Reported> {
        self.reserve(parts.threads.iter().map(graph_bytes).sum())?;
        Program::new(parts).map_err(|invalid| {
            for rule in invalid {
                self.report(Problem::error(rule.to_string()));
            }
            Reported
        })
    }

    /// The text was put together from several files.
    pub(crate) fn with_stretches(mut self, stretches: &[Stretch]) -> Problems<'l> {
        self.stretches = stretches.to_vec();
        self
    }

    pub(crate) fn stretches(&self) -> &[Stretch] {
        &self.stretches
    }

    /// The line in the words of messages.
    pub(crate) fn line_name(&self, span: Span) -> String {
        source::place(&self.stretches, self.line(span)).to_string()
    }

    /// Line numbers count from 1.
    pub(crate) fn line(&self, span: Span) -> u32 {
        self.lines.partition_point(|&begin| begin <= span.start) as u32
    }

    pub(crate) fn report(&mut self, problem: Problem) -> Reported {
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

    pub(crate) fn has_errors(&self) -> bool {
        self.errors > 0 || self.reached.is_some()
    }

    /// The candidate nearest to a name, if it is near enough to be what was meant. Once there is more to
    /// show than a person reads, no time is spent on it.
    pub(crate) fn nearest<'a>(
        &self,
        name: &str,
        candidates: impl IntoIterator<Item = &'a str>,
    ) -> Option<String> {
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

    /// What was read, and the warnings; or why it was not.
    pub(crate) fn finish<T>(mut self, read: Result<T, Reported>) -> Result<(T, Vec<Diagnostic>), Unread> {
        match (self.reached.take(), read) {
            (Some(limit), _) => Err(Unread::Limit(limit)),
            (None, Ok(read)) if self.errors == 0 => Ok((read, self.shown())),
            _ => Err(Unread::Wrong(self.shown())),
        }
    }

    /// Everything to show, in the order of the file.
    pub(crate) fn shown(mut self) -> Vec<Diagnostic> {
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

/// The room that a thread needs once more when it becomes a graph. Names and expressions only move there.
fn graph_bytes(thread: &ThreadParts) -> usize {
    const LINKS: usize = 4 * size_of::<u32>();
    thread.edges.len() * (size_of::<Edge>() + LINKS)
        + thread.locations.len() * (size_of::<Location>() + LINKS)
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
        let limits = Limits::default();
        let problems = Problems::new("a\nbc\n", &limits);
        let line = |start| problems.line(Span { start, end: start });
        assert_eq!([line(0), line(1), line(2), line(4), line(5)], [1, 1, 2, 2, 3]);
    }

    #[test]
    fn the_same_problem_at_the_same_place_is_kept_once() {
        let limits = Limits::default();
        let mut problems = Problems::new("", &limits);
        for _ in 0..3 {
            problems.report(Problem::error("no").at(Span { start: 1, end: 2 }));
        }
        assert_eq!(problems.shown().len(), 1);
    }

    #[test]
    fn too_many_problems_are_counted() {
        let limits = Limits::default();
        let mut problems = Problems::new("", &limits);
        for start in 0..SHOWN + 7 {
            problems.report(Problem::error("no").at(Span { start, end: start }));
        }
        let shown = problems.shown();
        assert_eq!(shown.len(), SHOWN + 1);
        assert_eq!(shown[SHOWN].message, "7 more errors not shown");
    }

    #[test]
    fn a_suggestion_is_near() {
        let limits = Limits::default();
        let problems = Problems::new("", &limits);
        let nearest = |name| problems.nearest(name, ["flag0", "flag1", "turn", "Ready"]);
        assert_eq!(nearest("flagg0"), Some("flag0".to_string()));
        assert_eq!(nearest("trun"), Some("turn".to_string()));
        assert_eq!(nearest("ready"), Some("Ready".to_string()));
        assert_eq!(nearest("elephant"), None);
        assert_eq!(nearest("t"), None);
    }
}

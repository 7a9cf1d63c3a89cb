//! How does a person see what is wrong with a file? Each diagnostic with its place, the line it is on, and
//! the words it is about underlined.
//!
//! Only the lines shown are handed to the renderer, and of very long ones only the part around the mark, so
//! that fifty problems in a file of a million lines cost no more than in a file of ten.

use crate::front::{Diagnostic, Severity};
use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use std::ops::Range;

/// Wider than this, the renderer shows the part of a line around the mark.
const WIDTH: usize = 140;
/// Of lines longer than this, the renderer gets to see only so much before the mark and behind it.
const LONGEST_LINE: usize = 1000;
const AROUND_MARK: usize = 100;

/// All diagnostics as text, each followed by an empty line.
pub fn render(file: &str, source: &str, diagnostics: &[Diagnostic], color: bool) -> String {
    let renderer = if color { Renderer::styled() } else { Renderer::plain() };
    let renderer = renderer.decor_style(DecorStyle::Ascii).term_width(WIDTH);
    let lines = LineStarts::new(source);
    diagnostics.iter().map(|d| render_one(file, source, &lines, d, &renderer) + "\n\n").collect()
}

fn render_one(file: &str, source: &str, lines: &LineStarts, d: &Diagnostic, renderer: &Renderer) -> String {
    let level = match d.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let title = level.primary_title(visible(&d.message));
    let mut group = match &d.span {
        None => title.element(Origin::path(visible(file))),
        Some(span) => marked_line(title, file, source, lines, span, &d.label),
    };
    if let Some(help) = &d.help {
        group = group.element(Level::HELP.message(visible(help)));
    }
    renderer.render(&[group])
}

fn marked_line<'a>(
    title: annotate_snippets::Title<'a>,
    file: &str,
    source: &'a str,
    lines: &LineStarts,
    span: &Range<usize>,
    label: &'a str,
) -> Group<'a> {
    let place = lines.place(source, span);
    let cut = cut(source, &place);
    let mark = place.mark.start - cut.start..place.mark.end.min(cut.end) - cut.start;
    let annotation = AnnotationKind::Primary.span(mark);
    let annotation = if label.is_empty() { annotation } else { annotation.label(visible(label)) };
    let snippet = Snippet::source(&source[cut.clone()]).line_start(place.number).annotation(annotation);
    if cut == place.line {
        return title.element(snippet.path(visible(file)));
    }
    // The renderer counts columns in what it sees, so for a part of a line they are counted here.
    let column = source[place.line.start..place.mark.start].chars().count() + 1;
    title.element(Origin::path(visible(file)).line(place.number).char_column(column)).element(snippet)
}

/// One line of the source, by number and extent, and the marked part of it.
struct Place {
    number: usize,
    line: Range<usize>,
    mark: Range<usize>,
}

struct LineStarts(Vec<usize>);

impl LineStarts {
    fn new(source: &str) -> LineStarts {
        let after_breaks = source.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i + 1);
        LineStarts(std::iter::once(0).chain(after_breaks).collect())
    }

    /// Marks are kept inside the source and inside one line.
    fn place(&self, source: &str, span: &Range<usize>) -> Place {
        let start = boundary(source, span.start.min(source.len()));
        let number = self.0.partition_point(|begin| *begin <= start);
        let begin = self.0[number - 1];
        let next = self.0.get(number).copied().unwrap_or(source.len() + 1);
        let line = begin..begin + source[begin..next - 1].trim_end_matches('\r').len();
        let start = start.min(line.end);
        let mark = start..boundary(source, span.end.min(line.end)).max(start);
        Place { number, line, mark }
    }
}

/// The part of the line to show.
fn cut(source: &str, place: &Place) -> Range<usize> {
    if place.line.len() <= LONGEST_LINE {
        return place.line.clone();
    }
    let start = place.mark.start.saturating_sub(AROUND_MARK).max(place.line.start);
    let end = (place.mark.start + 2 * AROUND_MARK).min(place.line.end);
    boundary(source, start)..boundary(source, end)
}

/// The nearest place before `at` that does not split a character.
fn boundary(source: &str, at: usize) -> usize {
    (0..=at).rev().find(|i| source.is_char_boundary(*i)).unwrap_or(0)
}

/// Nothing in a message may steer the terminal.
fn visible(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{FFFD}' } else { c }).collect()
}

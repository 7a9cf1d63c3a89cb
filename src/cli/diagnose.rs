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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::tso;
    use crate::limits::Limits;

    /// What a user sees of a file that is wrong, or doubtful.
    fn check(source: &str, expect: &str) {
        let diagnostics = match tso::read(source, &[], &Limits::default()) {
            Ok(input) => input.warnings,
            Err(unread) => unread.diagnostics().to_vec(),
        };
        let shown = render("a.tso", source, &diagnostics, false);
        assert_eq!(shown.trim_end(), expect.trim(), "{shown}");
    }

    #[test]
    fn a_misspelt_instruction_is_shown() {
        check(
            "shared x\nthread p\n    laod r, [x]\nend\n",
            r#"
error: unknown instruction `laod`
 --> a.tso:3:5
  |
3 |     laod r, [x]
  |     ^^^^
  |
  = help: did you mean `load`?
"#,
        );
    }

    #[test]
    fn an_assignment_to_memory_is_shown() {
        check(
            "shared x\nthread p\n    x = 2 + 1\nend\n",
            r#"
error: `x` is a shared variable, not a register
 --> a.tso:3:5
  |
3 |     x = 2 + 1
  |     ^
  |
  = help: write `store [x], 2 + 1`
"#,
        );
    }

    #[test]
    fn an_address_without_brackets_is_shown() {
        check(
            "shared x\nthread p\n    load r, x\nend\n",
            r#"
error: expected `[`, found `x`
 --> a.tso:3:13
  |
3 |     load r, x
  |             ^ an address stands in brackets
  |
  = help: as in `load r, [x]`, or `[a + 2]` for a cell of an array
"#,
        );
    }

    #[test]
    fn memory_inside_an_expression_is_shown() {
        check(
            "shared x\nthread p\nl:  if [x] == 0 goto l\nend\n",
            r#"
error: an expression does not read memory
 --> a.tso:3:8
  |
3 | l:  if [x] == 0 goto l
  |        ^^^
  |
  = help: load it into a register first: `load r, [x]`
"#,
        );
    }

    #[test]
    fn a_misspelt_variable_is_shown() {
        check(
            "shared flag0\nthread p\n    load r, [flagg0]\nend\n",
            r#"
warning: register `flagg0` is read but never assigned
 --> a.tso:3:14
  |
3 |     load r, [flagg0]
  |              ^^^^^^ always 0
  |
  = help: did you mean `flag0`?
"#,
        );
    }

    #[test]
    fn a_misspelt_label_is_shown() {
        check(
            "thread p\nagain:\n    nop\n    goto agian\nend\n",
            r#"
error: unknown label `agian`
 --> a.tso:4:10
  |
4 |     goto agian
  |          ^^^^^ no such label in this thread
  |
  = help: did you mean `again`?
"#,
        );
    }

    #[test]
    fn a_missing_end_is_shown() {
        check(
            "thread p\n    nop\nthread q\n    nop\nend\n",
            r#"
error: thread `p` has no `end`
 --> a.tso:1:1
  |
1 | thread p
  | ^^^^^^ still open where the next declaration begins
"#,
        );
    }

    #[test]
    fn an_unclosed_bracket_is_shown() {
        check(
            "shared a[3\nthread p\nend\n",
            r#"
error: expected `]`, found the end of the line
 --> a.tso:1:11
  |
1 | shared a[3
  |           ^ the `[` is still open
"#,
        );
    }

    #[test]
    fn a_register_without_its_thread_is_shown() {
        check(
            "thread p0\n    r = 1\nend\nnever r == 1\n",
            r#"
error: unknown name `r`
 --> a.tso:4:7
  |
4 | never r == 1
  |       ^
  |
  = help: a register needs its thread: `p0.r`
"#,
        );
    }

    #[test]
    fn an_address_compared_is_shown() {
        check(
            "shared x\nthread p\nend\nexists x == 1\n",
            r#"
warning: this compares the address of `x`
 --> a.tso:4:8
  |
4 | exists x == 1
  |        ^ not its value
  |
  = help: a property asks for the value with `[x]`; a thread loads it first
"#,
        );
    }

    #[test]
    fn a_second_declaration_is_shown() {
        check(
            "shared x\nthread p\nend\nshared x\n",
            r#"
error: `x` is declared twice
 --> a.tso:4:8
  |
4 | shared x
  |        ^ already a shared variable, on line 1
"#,
        );
    }

    #[test]
    fn an_instruction_of_another_language_is_shown() {
        check(
            "thread p\n    mfence\nend\n",
            r#"
error: unknown instruction `mfence`
 --> a.tso:2:5
  |
2 |     mfence
  |     ^^^^^^
  |
  = help: did you mean `fence`?
"#,
        );
    }

    #[test]
    fn two_errors_in_one_file_are_both_shown() {
        check(
            "shared x\nthread p\n    store [x] 1\n    r = 8 / (3 - 3)\nend\n",
            r#"
error: expected `,` as in `store [x], 1`, found `1`
 --> a.tso:3:15
  |
3 |     store [x] 1
  |               ^

error: division by zero
 --> a.tso:4:11
  |
4 |     r = 8 / (3 - 3)
  |           ^ the right side is 0
"#,
        );
    }

    #[test]
    fn a_file_without_threads_is_refused() {
        check(
            "# empty\n",
            r#"
error: there are no threads in this file
--> a.tso
 = help: a program looks like `thread p0; nop; end`
"#,
        );
    }

    #[test]
    fn of_a_very_long_line_the_part_around_the_mark_is_shown() {
        let source = format!("thread p; {}lod r; {}end", "nop; ".repeat(100_000), "nop; ".repeat(100_000));
        let unread = tso::read(&source, &[], &Limits::default()).expect_err("`lod` is no instruction");
        let shown = render("a.tso", &source, unread.diagnostics(), false);
        assert!(shown.contains("--> a.tso:1:500011\n") && shown.contains(" lod r;"), "{shown}");
        assert!(shown.len() < 1000, "{shown}");
    }

    #[test]
    fn marks_outside_the_source_do_no_harm() {
        for span in [0..0, 2..100, 100..200, 4..5, Range { start: 5, end: 3 }] {
            let diagnostic = Diagnostic {
                severity: Severity::Warning,
                message: "a\u{1b}b".to_string(),
                span: Some(span),
                label: "c".to_string(),
                help: None,
            };
            let shown = render("a.tso", "é\r\né\n", &[diagnostic], false);
            assert!(shown.contains("warning: a\u{FFFD}b"), "{shown}");
        }
    }

    #[test]
    fn colours_are_there_when_asked_for() {
        let unread = tso::read("", &[], &Limits::default()).expect_err("an empty file is no program");
        assert!(render("a.tso", "", unread.diagnostics(), true).contains('\u{1b}'));
    }
}

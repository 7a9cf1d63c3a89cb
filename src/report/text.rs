//! The document for people: the verdict on a line of its own, then why, then, if asked for, what it cost.
//!
//! Blocks are set apart by empty lines. Runs have one row for each event and one column for each thread: the
//! instruction stands in its thread's column, as the file has it; to the right, what it did. If the columns
//! do not fit the width, there is one, with the thread's name in front; if that does not fit either, what a step did
//! stands below it. Local steps between those that touch
//! memory are folded away, unless they are asked for: rows keep the numbers of their events.

use super::document::{Block, ChangedLines, Document, Fact, Paragraph, SourceLine};
use super::steps::{RunRow, RunTable};
use super::table::{Align, Cell, Color, Table, Tone, paint};
use crate::query::Verdict;

#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Letters in a line.
    pub width: usize,
    /// Whether sentences are broken where they come to the width.
    pub wraps: bool,
    pub color: bool,
    /// Whether runs are shown with their local steps.
    pub local_steps: bool,
}

impl Style {
    fn color(self) -> Color {
        if self.color { Color::On } else { Color::Off }
    }
}

const INDENT: usize = 2;
/// Letters of a fact's label, blanks included.
const LABEL: usize = 14;

/// The first line: the verdict, behind the file's name if there are several files.
pub fn verdict(document: &Document<'_>, name_file: bool, style: Style) -> String {
    let tone = match document.verdict {
        Verdict::Holds => Tone::Good,
        Verdict::Fails => Tone::Bad,
        Verdict::Unknown => Tone::Doubtful,
    };
    let word = paint(document.word(), tone, style.color());
    if name_file { format!("{}: {word}\n", document.file) } else { format!("{word}\n") }
}

/// What the verdict rests on.
pub fn explanation(document: &Document<'_>, style: Style) -> String {
    blocks(&(document.explanation)(), style)
}

/// Blocks with an empty line between any two.
pub fn blocks(blocks: &[Block], style: Style) -> String {
    blocks.iter().filter(|b| b.is_told()).map(|b| block(b, style)).collect::<Vec<_>>().join("\n")
}

/// What it took to find it.
pub fn costs(document: &Document<'_>, style: Style) -> String {
    (document.costs)().iter().filter(|b| b.is_told()).map(|b| format!("\n{}", block(b, style))).collect()
}

fn block(block: &Block, style: Style) -> String {
    match block {
        Block::Paragraph(text) => paragraph(text, style),
        Block::Table(table) => fitted(table, style),
        Block::Run(steps) => run(steps, style),
        Block::Cycle(cycle) => cycle.table.as_ref().map_or(String::new(), |t| fitted(t, style)),
        Block::Fold(_) => String::new(),
        Block::Change(change) => changed(change, style),
        Block::Facts(facts) => facts.iter().map(fact).collect(),
    }
}

fn paragraph(text: &Paragraph, style: Style) -> String {
    let line = |line: &String| paint(&broken(line, 0, style), text.tone, style.color()) + "\n";
    text.lines.iter().map(line).chain(text.items.iter().map(|text| item(text, style))).collect()
}

fn item(text: &str, style: Style) -> String {
    format!("{:INDENT$}{}\n", "", broken(text, INDENT, style))
}

/// The table; rows that are longer than lines are go on below their last column, or as far to the left as leaves
/// room for them.
fn fitted(table: &Table, style: Style) -> String {
    let rows = table.render(INDENT, style.color());
    if !style.wraps || table.width(INDENT) <= style.width {
        return rows;
    }
    let last = table.last_column(INDENT);
    let below = if 2 * last <= style.width { last } else { 2 * INDENT };
    rows.lines().map(|row| broken_above(row, 0, below, style) + "\n").collect()
}

/// The sentence, that begins so far to the right, on as many lines as it takes; further ones begin further to
/// the right.
fn broken(text: &str, indent: usize, style: Style) -> String {
    broken_above(text, indent, indent + INDENT, style)
}

/// The same, where all lines but the first begin so far to the right as is said for those below.
fn broken_above(text: &str, indent: usize, below: usize, style: Style) -> String {
    if !style.wraps {
        return text.to_string();
    }
    let (mut lines, mut length) = (String::new(), indent);
    // Blanks that line things up are kept, but for those where a line is broken.
    let mut rest = text;
    while !rest.is_empty() {
        let blanks = rest.len() - rest.trim_start_matches(' ').len();
        let word = rest[blanks..].split(' ').next().unwrap_or_default();
        let letters = letters(word);
        if length + blanks + letters > style.width && length > below + INDENT {
            lines += &format!("\n{:below$}", "");
            length = below;
        } else {
            lines += &rest[..blanks];
            length += blanks;
        }
        lines += word;
        length += letters;
        rest = &rest[blanks + word.len()..];
    }
    lines
}

/// How wide a word is, whatever colour it has.
fn letters(word: &str) -> usize {
    let mut coloured = word.split('\u{1b}');
    let plain = coloured.next().map_or(0, |part| part.chars().count());
    plain
        + coloured.map(|part| part.split_once('m').map_or(0, |(_, rest)| rest.chars().count())).sum::<usize>()
}

fn fact(fact: &Fact) -> String {
    let indent = if fact.part { INDENT } else { 0 };
    format!("{:indent$}{:<width$}{}\n", "", fact.label, fact.value, width = LABEL - indent)
}

fn changed(change: &ChangedLines, style: Style) -> String {
    let green = |line: String| paint(&line, Tone::Good, style.color());
    let line = |line: &SourceLine| match line {
        SourceLine::Old(number, text) => format!("    {number:>6} | {text}\n"),
        SourceLine::Marked(number, text) => format!("  {}\n", green(format!("* {number:>6} | {text}"))),
        SourceLine::New(text) => format!("  {}\n", green(format!("  +      | {text}"))),
    };
    let places = change.places.iter().map(|place| item(place, style));
    places.chain(change.excerpt.iter().map(line)).collect()
}

fn run(steps: &RunTable, style: Style) -> String {
    let local_steps = style.local_steps;
    let fits = |table: &Table| table.width(INDENT) <= style.width;
    let wide = table(steps, Columns::PerThread, local_steps);
    if fits(&wide) {
        return wide.render(INDENT, style.color());
    }
    let narrow = table(steps, Columns::One, local_steps);
    // Without anyone to say how wide lines are, none is made shorter than it need be.
    if fits(&narrow) || !style.wraps {
        return narrow.render(INDENT, style.color());
    }
    stacked(steps, style)
}

/// Each step on a line of its own, and below it what it did.
fn stacked(steps: &RunTable, style: Style) -> String {
    let shown = |row: &RunRow| style.local_steps || row.starred || !row.local;
    let digits = steps.rows.len().to_string().len();
    let mut text = String::new();
    for (k, row) in steps.rows.iter().enumerate().filter(|(_, row)| shown(row)) {
        let star = if row.starred { "*" } else { " " };
        let number = paint(&format!("{:digits$}", k + 1), Tone::Quiet, style.color());
        let thread = paint(&steps.threads[row.thread], Tone::Head, style.color());
        let step = in_column(row, row.thread);
        let indent = 2 + digits + INDENT;
        let told = broken(&format!("{}  {}", steps.threads[row.thread], step.text), indent, style);
        let told = told.replacen(steps.threads[row.thread].as_str(), &thread, 1);
        text += &format!("{star} {number}  {told}\n");
        let line = if row.line.is_empty() { String::new() } else { format!("line {}: ", row.line) };
        let buffer = match row.buffer.as_deref() {
            Some(buffer) if buffer != "empty" => format!("; buffer: {buffer}"),
            _ => String::new(),
        };
        let below = broken(&format!("{line}{}{buffer}", row.effect), indent + INDENT, style);
        if !below.is_empty() {
            text += &format!("{:1$}{below}\n", "", indent + INDENT);
        }
    }
    text
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Columns {
    PerThread,
    /// One for all, and one for the thread's name.
    One,
}

fn table(steps: &RunTable, columns: Columns, local_steps: bool) -> Table {
    let shown = if columns == Columns::PerThread { steps.threads.len() } else { 2 };
    let mut aligned = vec![Align::Left, Align::Right];
    aligned.extend(vec![Align::Left; shown]);
    let has_asm = steps.rows.iter().any(|row| !row.asm.is_empty());
    aligned.extend(vec![Align::Left; has_asm as usize]);
    aligned.extend([Align::Right, Align::Left, Align::Left]);
    let mut table = Table::new(aligned);
    table.row(heading(steps, columns, has_asm));
    let shown = |row: &RunRow| local_steps || row.starred || !row.local;
    for (k, row) in steps.rows.iter().enumerate().filter(|(_, row)| shown(row)) {
        let star = if row.starred { "*" } else { "" };
        let mut cells = vec![Cell::new(star, Tone::Bad), Cell::new((k + 1).to_string(), Tone::Quiet)];
        match columns {
            Columns::PerThread => cells.extend((0..steps.threads.len()).map(|t| in_column(row, t))),
            Columns::One => {
                cells.push(Cell::new(steps.threads[row.thread].clone(), Tone::Head));
                cells.push(in_column(row, row.thread));
            }
        }
        cells.extend(has_asm.then(|| Cell::new(row.asm.clone(), Tone::Quiet)));
        cells.push(Cell::new(row.line.clone(), Tone::Quiet));
        cells.push(Cell::new(row.effect.clone(), row.effect_tone));
        cells.push(Cell::new(row.buffer.clone().unwrap_or_default(), Tone::Plain));
        table.row(cells);
    }
    table
}

fn heading(steps: &RunTable, columns: Columns, has_asm: bool) -> Vec<Cell> {
    let mut cells = vec![Cell::default(), Cell::default()];
    match columns {
        Columns::PerThread => {
            cells.extend(steps.threads.iter().map(|name| Cell::new(name.clone(), Tone::Head)))
        }
        Columns::One => cells.extend([Cell::default(), Cell::default()]),
    }
    cells.extend(has_asm.then(Cell::default));
    let lines = if steps.rows.iter().any(|row| !row.line.is_empty()) { "line" } else { "" };
    let buffers = if steps.rows.iter().any(|row| row.buffer.is_some()) { "buffer" } else { "" };
    cells.push(Cell::new(lines, Tone::Quiet));
    cells.push(Cell::default());
    cells.push(Cell::new(buffers, Tone::Quiet));
    cells
}

/// What a row shows in a thread's column: its instruction, and the bar of a block it holds.
fn in_column(row: &RunRow, t: usize) -> Cell {
    match (row.thread == t, row.block) {
        (true, Some((owner, bar))) if owner == t => Cell::new(format!("{bar} {}", row.text), row.tone),
        (true, _) => Cell::new(row.text.clone(), row.tone),
        (false, Some((owner, _))) if owner == t => Cell::new("│", Tone::Quiet),
        (false, _) => Cell::default(),
    }
}

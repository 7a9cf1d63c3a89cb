//! The document for people: the verdict on a line of its own, then why, then, if asked for, what it cost.
//!
//! Blocks are set apart by empty lines. Runs have one row for each event and one column for each thread: the
//! instruction stands in its thread's column, as the file has it; to the right, what it did. If the columns
//! do not fit the width, there is one, with the thread's name in front. Local steps between those that touch
//! memory are folded away, unless they are asked for: rows keep the numbers of their events.

use super::document::{Block, ChangedLines, Document, Fact, Paragraph, SourceLine};
use super::steps::{RunRow, RunTable};
use super::table::{Align, Cell, Color, Table, Tone, paint};
use crate::query::Verdict;

#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Letters in a line.
    pub width: usize,
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
    blocks.iter().map(|b| block(b, style)).collect::<Vec<_>>().join("\n")
}

/// What it took to find it.
pub fn costs(document: &Document<'_>, style: Style) -> String {
    (document.costs)().iter().map(|b| format!("\n{}", block(b, style))).collect()
}

fn block(block: &Block, style: Style) -> String {
    match block {
        Block::Paragraph(text) => paragraph(text, style),
        Block::Table(table) => table.render(INDENT, style.color()),
        Block::Run(steps) => run(steps, style),
        Block::Change(change) => changed(change, style),
        Block::Facts(facts) => facts.iter().map(fact).collect(),
    }
}

fn paragraph(text: &Paragraph, style: Style) -> String {
    let lines = text.lines.iter().map(|line| paint(line, text.tone, style.color()) + "\n");
    lines.chain(text.items.iter().map(item)).collect()
}

fn item(text: &String) -> String {
    format!("{:INDENT$}{text}\n", "")
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
    change.places.iter().map(item).chain(change.excerpt.iter().map(line)).collect()
}

fn run(steps: &RunTable, style: Style) -> String {
    let local_steps = style.local_steps;
    let wide = table(steps, Columns::PerThread, local_steps);
    let fits = wide.width(INDENT) <= style.width;
    let table = if fits { wide } else { table(steps, Columns::One, local_steps) };
    table.render(INDENT, style.color())
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
    aligned.extend([Align::Right, Align::Left, Align::Left]);
    let mut table = Table::new(aligned);
    table.row(heading(steps, columns));
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
        cells.push(Cell::new(row.line.clone(), Tone::Quiet));
        cells.push(Cell::new(row.effect.clone(), row.effect_tone));
        cells.push(Cell::new(row.buffer.clone().unwrap_or_default(), Tone::Plain));
        table.row(cells);
    }
    table
}

fn heading(steps: &RunTable, columns: Columns) -> Vec<Cell> {
    let mut cells = vec![Cell::default(), Cell::default()];
    match columns {
        Columns::PerThread => {
            cells.extend(steps.threads.iter().map(|name| Cell::new(name.clone(), Tone::Head)))
        }
        Columns::One => cells.extend([Cell::default(), Cell::default()]),
    }
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

//! Columns that line up: cells of plain text with a tone, padded before they are coloured.
//!
//! A column is as wide as its widest cell; cells to the right of it can be added without touching the rest.
//! The tones are the whole palette: what a tone looks like is decided here and nowhere else.

use anstyle::{AnsiColor, Style};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    #[default]
    Plain,
    /// Names of columns.
    Head,
    /// There for completeness.
    Quiet,
    /// A change of memory.
    Change,
    /// What went wrong.
    Bad,
    /// What is proved.
    Good,
    /// What is not known.
    Doubtful,
    /// A store that a load of its thread overtakes, and that load.
    Delayed,
    Overtaking,
}

impl Tone {
    fn style(self) -> Style {
        match self {
            Tone::Plain => Style::new(),
            Tone::Head => Style::new().bold(),
            Tone::Quiet => Style::new().dimmed(),
            Tone::Change => AnsiColor::Cyan.on_default(),
            Tone::Bad => AnsiColor::Red.on_default().bold(),
            Tone::Good => AnsiColor::Green.on_default().bold(),
            Tone::Doubtful => AnsiColor::Yellow.on_default().bold(),
            Tone::Delayed => AnsiColor::Yellow.on_default().bold(),
            Tone::Overtaking => AnsiColor::Blue.on_default().bold(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Color {
    On,
    Off,
}

pub fn paint(text: &str, tone: Tone, color: Color) -> String {
    let style = tone.style();
    match color {
        Color::On if style != Style::new() && !text.is_empty() => format!("{style}{text}{style:#}"),
        _ => text.to_string(),
    }
}

#[derive(Clone, Debug, Default)]
pub struct Cell {
    pub text: String,
    pub tone: Tone,
}

impl Cell {
    pub fn new(text: impl Into<String>, tone: Tone) -> Cell {
        Cell { text: text.into(), tone }
    }

    fn width(&self) -> usize {
        self.text.chars().count()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

const GAP: usize = 2;

#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<Align>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub fn new(columns: Vec<Align>) -> Table {
        Table { columns, rows: Vec::new() }
    }

    pub(crate) fn rows(&self) -> &[Vec<Cell>] {
        &self.rows
    }

    pub fn row(&mut self, cells: Vec<Cell>) {
        assert_eq!(cells.len(), self.columns.len(), "a row has one cell for each column");
        self.rows.push(cells);
    }

    fn widths(&self) -> Vec<usize> {
        let widest = |k: usize| self.rows.iter().map(|row| row[k].width()).max().unwrap_or(0);
        (0..self.columns.len()).map(widest).collect()
    }

    /// The length of the longest line.
    pub fn width(&self, indent: usize) -> usize {
        let used: Vec<usize> = self.widths().into_iter().filter(|&w| w > 0).collect();
        indent + used.iter().sum::<usize>() + GAP * used.len().saturating_sub(1)
    }

    /// Where the last column with any text begins.
    pub fn last_column(&self, indent: usize) -> usize {
        self.width(indent) - self.widths().into_iter().rfind(|&w| w > 0).unwrap_or(0)
    }

    /// One line for each row; columns without any text are left out, and so are blanks at the end of lines.
    pub fn render(&self, indent: usize, color: Color) -> String {
        let widths = self.widths();
        let mut text = String::new();
        for row in &self.rows {
            let (mut line, mut blanks) = (String::new(), indent);
            for (k, cell) in row.iter().enumerate().filter(|(k, _)| widths[*k] > 0) {
                let padding = widths[k] - cell.width();
                let (before, after) =
                    if self.columns[k] == Align::Right { (padding, 0) } else { (0, padding) };
                if !cell.text.is_empty() {
                    line.push_str(&" ".repeat(blanks + before));
                    line.push_str(&paint(&cell.text, cell.tone, color));
                    blanks = after + GAP;
                } else {
                    blanks += padding + GAP;
                }
            }
            text.push_str(&line);
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(vec![Align::Right, Align::Left, Align::Left, Align::Left]);
        let cell = |s: &str| Cell::new(s, Tone::Bad);
        table.row(vec![cell("9"), cell("a"), cell(""), cell("é")]);
        table.row(vec![cell("10"), cell(""), cell(""), cell("bb")]);
        table
    }

    #[test]
    fn columns_line_up_and_empty_ones_vanish() {
        assert_eq!(table().render(1, Color::Off), "  9  a  é\n 10     bb\n");
        assert_eq!(table().width(1), 10);
        assert_eq!(table().last_column(1), 8);
    }

    #[test]
    fn colour_changes_no_visible_letter() {
        let coloured = table().render(0, Color::On);
        let mut visible = String::new();
        for part in coloured.split('\u{1b}') {
            visible.push_str(
                part.split_once('m').filter(|_| part.starts_with('[')).map_or(part, |(_, rest)| rest),
            );
        }
        assert_eq!(visible, table().render(0, Color::Off));
        assert_ne!(coloured, visible);
    }
}

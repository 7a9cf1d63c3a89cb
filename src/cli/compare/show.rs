//! What the terminal gets: disagreements first, then the table; or JSON.

use crate::cli::terminal::Terminal;
use crate::compare::record::Comparison;
use crate::compare::table::{self, Mood};
use crate::compare::{json, own};
use crate::report::table::{Align, Cell, Color, Table, Tone, paint};

/// The command line that was typed, with the tool by its name.
pub fn command_line() -> String {
    let quoted = |word: String| if word.contains(' ') { format!("'{word}'") } else { word };
    let words = std::env::args_os().skip(1).map(|word| quoted(word.to_string_lossy().into_owned()));
    [own::NAME.to_string()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}

pub fn comparison(comparison: &Comparison, as_json: bool, terminal: &Terminal) {
    if as_json {
        let lines = json::objects(comparison).into_iter().map(|object| format!("{object}\n"));
        return terminal.print(&lines.collect::<String>());
    }
    let color = if terminal.color { Color::On } else { Color::Off };
    let mut text = disagreements(comparison, color) + &rows(comparison, color);
    text += &format!("\nTools: {}\n", comparison.circumstances.tools.join("; "));
    if comparison.circumstances.interrupted {
        text += "\nInterrupted: rows are missing.\n";
    }
    terminal.print(&text);
}

fn disagreements(comparison: &Comparison, color: Color) -> String {
    let mut text = String::new();
    for disagreement in &comparison.disagreements {
        let lines = disagreement.lines();
        text += &format!("{}\n", paint(&lines[0], Tone::Bad, color));
        for line in &lines[1..] {
            text += &format!("  {line}\n");
        }
        text.push('\n');
    }
    text
}

fn rows(comparison: &Comparison, color: Color) -> String {
    use Align::{Left, Right};
    let mut table = Table::new(vec![Left, Left, Left, Left, Right, Right, Left, Right, Left, Left]);
    let head = table::HEAD.iter().copied().chain([""]);
    table.row(head.map(|name| Cell::new(name, Tone::Head)).collect());
    for line in table::lines(comparison) {
        let tone = match line.mood {
            Mood::Proved => Tone::Good,
            Mood::Violated | Mood::Undecided => Tone::Doubtful,
            Mood::Absent => Tone::Quiet,
            Mood::Wrong => Tone::Bad,
        };
        let plain = if line.mood == Mood::Absent { Tone::Quiet } else { Tone::Plain };
        let cells = line.cells.into_iter().enumerate();
        let cells = cells.map(|(k, text)| Cell::new(text, if k == 3 { tone } else { plain }));
        table.row(cells.chain([Cell::new(line.note, Tone::Quiet)]).collect());
    }
    table.render(0, color)
}

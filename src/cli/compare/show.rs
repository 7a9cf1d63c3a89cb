//! What the terminal gets: disagreements first, then the table; or JSON.

use crate::cli::terminal::Terminal;
use crate::compare::record::Comparison;
use crate::compare::table::{self, Mood};
use crate::compare::{json, own, plot};
use crate::report::page::{self, SortedCell};
use crate::report::table::{Align, Cell, Color, Table, Tone, paint};

/// The command line that was typed, with the tool by its name.
pub(crate) fn command_line() -> String {
    let quoted = |word: String| if word.contains(' ') { format!("'{word}'") } else { word };
    let words = std::env::args_os().skip(1).map(|word| quoted(word.to_string_lossy().into_owned()));
    [own::NAME.to_string()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}

pub(crate) fn comparison(comparison: &Comparison, as_json: bool, terminal: &Terminal) {
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

/// The comparison as a page.
pub(crate) fn page(comparison: &Comparison) -> Result<String, String> {
    let mut last = [String::new(), String::new()];
    let row = |line: table::Line| {
        let tone = match line.mood {
            Mood::Proved => "good",
            Mood::Violated | Mood::Undecided => "doubtful",
            Mood::Absent => "quiet",
            Mood::Wrong => "bad",
        };
        let mut cells: Vec<SortedCell> = Vec::new();
        for (k, text) in line.cells.into_iter().enumerate() {
            // What is not repeated is there all the same, so that rows can be moved.
            let text = match last.get_mut(k) {
                Some(known) if text.is_empty() => known.clone(),
                Some(known) => {
                    known.clone_from(&text);
                    text
                }
                None => text,
            };
            let value = measure(&text);
            cells.push((text, value, if k == 3 { tone } else { "plain" }));
        }
        cells.push((line.note, String::new(), "quiet"));
        cells
    };
    let rows = table::lines(comparison).into_iter().map(row).collect();
    let worthwhile =
        comparison.programs().into_iter().filter(|program| plot::is_worthwhile(comparison, program));
    let curves = worthwhile.map(|program| plot::svg(comparison, program)).collect::<Result<Vec<_>, _>>()?;
    let head: Vec<&str> = table::HEAD.iter().copied().chain(["note"]).collect();
    let body = page::comparison(&head, rows, curves, comparison.circumstances.tools.join("; "));
    let (word, tone) = match comparison.disagreements.is_empty() {
        true => ("agree", "good"),
        false => ("disagree", "bad"),
    };
    Ok(page::page(&[page::section_of("overtake and its peers", word, tone, &command_line(), body)]))
}

/// What a cell is sorted by if it is a number with a unit.
fn measure(text: &str) -> String {
    let first = text.split_whitespace().next().unwrap_or_default();
    let Ok(number) = first.trim_end_matches('x').replace(',', "").parse::<f64>() else {
        return String::new();
    };
    let scale = match text.split_whitespace().nth(1) {
        Some("ms") => 1e-3,
        Some("KiB" | "kB") => 1024.0,
        Some("MiB" | "MB") => 1024.0 * 1024.0,
        Some("GiB" | "GB") => 1024.0 * 1024.0 * 1024.0,
        _ => 1.0,
    };
    (number * scale).to_string()
}

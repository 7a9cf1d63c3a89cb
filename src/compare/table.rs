//! What does a reader get to see of a row? A few short cells, the same for the terminal and for Markdown.

use super::record::{Comparison, Outcome, Ratio, Row, Spread, words};
use super::{Said, Verdict};

pub const HEAD: [&str; 9] =
    ["program", "asked", "tool", "answer", "states", "bytes each", "time", "memory", "to overtake"];

/// How a line is to be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    Proved,
    Violated,
    Undecided,
    /// It was not run.
    Absent,
    /// It contradicts what is known.
    Wrong,
}

pub struct Line {
    /// One for each column of [`HEAD`].
    pub cells: [String; 9],
    pub mood: Mood,
    /// What does not fit a column.
    pub note: String,
}

/// A line for each row; the name of a program and what is asked are not repeated.
pub fn lines(comparison: &Comparison) -> Vec<Line> {
    let mut lines = Vec::new();
    for group in comparison.groups() {
        let base = group.iter().find(|row| row.own);
        for (k, row) in group.iter().enumerate() {
            let mut line = line(comparison, row, base);
            if k > 0 {
                line.cells[0].clear();
                line.cells[1].clear();
            }
            lines.push(line);
        }
    }
    lines
}

fn line(comparison: &Comparison, row: &Row, base: Option<&Row>) -> Line {
    let refuted = comparison.disagreements.iter().any(|d| {
        (&d.program, d.question) == (&row.title(), row.question) && d.refuted.contains(&row.contestant)
    });
    let said = row.said();
    let (answer, detail) = match (&row.outcome, &said) {
        (Outcome::NotRun(why), _) => ("not run".to_string(), why.clone()),
        (_, None) => ("not run".to_string(), "interrupted".to_string()),
        (_, Some(said)) => {
            let (word, detail) = words(said, row.question);
            (if refuted { format!("WRONG: {word}") } else { word.to_string() }, detail.to_string())
        }
    };
    let ratio =
        base.filter(|base| *base != row).and_then(|b| row.ratio(b, comparison.circumstances.timeout_s));
    let cells = [
        row.title(),
        row.question.name().to_string(),
        row.contestant.clone(),
        answer,
        row.states().map_or(String::new(), |n| n.to_string()),
        row.state_bytes().map_or(String::new(), |bytes| format!("{bytes:.1}")),
        row.wall().map_or(String::new(), time),
        row.peak_kb().map_or(String::new(), memory),
        ratio.map_or(String::new(), shown_ratio),
    ];
    Line { cells, mood: mood(refuted, said.as_ref()), note: note(row, detail) }
}

fn mood(refuted: bool, said: Option<&Said>) -> Mood {
    match said {
        _ if refuted => Mood::Wrong,
        Some(Said::Answer(Verdict::Safe | Verdict::Fences(_))) => Mood::Proved,
        Some(Said::Answer(Verdict::Violated)) => Mood::Violated,
        Some(_) => Mood::Undecided,
        None => Mood::Absent,
    }
}

fn note(row: &Row, detail: String) -> String {
    let prepared =
        row.measured().and_then(|m| m.preparation_s).map(|s| format!("prepared in {}", seconds(s)));
    let parts = [Some(detail).filter(|d| !d.is_empty()), prepared];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// `3.1 ms`, or with its spread `3.1 ms (2.9-4.0)`.
fn time(spread: Spread) -> String {
    let (scale, unit) = unit(spread.median);
    let shown = |s: f64| significant(s * scale);
    match spread.least == spread.most {
        true => format!("{} {unit}", shown(spread.median)),
        false => format!("{} {unit} ({}-{})", shown(spread.median), shown(spread.least), shown(spread.most)),
    }
}

pub fn seconds(s: f64) -> String {
    let (scale, unit) = unit(s);
    format!("{} {unit}", significant(s * scale))
}

fn unit(seconds: f64) -> (f64, &'static str) {
    if seconds < 1.0 { (1000.0, "ms") } else { (1.0, "s") }
}

/// Three digits or so: more are noise.
fn significant(value: f64) -> String {
    match value {
        v if v >= 99.5 => format!("{v:.0}"),
        v if v >= 9.95 => format!("{v:.1}"),
        v if v >= 0.095 => format!("{v:.2}"),
        v => format!("{v:.4}"),
    }
}

fn memory(peak_kb: Option<u64>) -> String {
    peak_kb.map_or("little".to_string(), |kb| format!("{:.1} MiB", kb as f64 / 1024.0))
}

fn shown_ratio(ratio: Ratio) -> String {
    match ratio {
        Ratio::Known(s) if s.least == s.most => significant(s.median),
        Ratio::Known(s) => {
            format!("{} ({}-{})", significant(s.median), significant(s.least), significant(s.most))
        }
        Ratio::MoreThan(r) => format!("> {}", significant(r)),
        Ratio::LessThan(r) => format!("< {}", significant(r)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::judge::judge;
    use super::super::record::testing::*;
    use super::*;

    fn shown(rows: Vec<Row>) -> Vec<String> {
        let mut comparison = comparison(rows);
        let wrong: Vec<_> =
            comparison.groups().into_iter().filter(|g| super::super::judge::differ(g)).collect();
        comparison.disagreements = wrong.into_iter().map(|g| judge(g, None)).collect();
        lines(&comparison).into_iter().map(|l| format!("{}|{}", l.cells.join("|"), l.note)).collect()
    }

    #[test]
    fn cells_are_short() {
        let rows = vec![
            ran("lamport", 2, "overtake", &[(SAFE, 0.004), (SAFE, 0.005)]),
            ran("lamport", 2, "spin", &[(SAFE, 0.002), (SAFE, 0.002)]),
            ran("lamport", 2, "trencher", &[(Said::OutOfTime, 60.0)]),
            not_run("lamport", 2, "cbmc", "it reads C"),
        ];
        let expected = [
            "lamport, N = 2|tso|overtake|safe|10|31.2|4.50 ms (4.00-5.00)|5.9 MiB||",
            "||spin|safe|10|31.2|2.00 ms|5.9 MiB|0.45 (0.40-0.50)|prepared in 2.50 s",
            "||trencher|out-of-time|10|31.2|60.0 s|5.9 MiB|> 13333|",
            "||cbmc|not run||||||it reads C",
        ];
        assert_eq!(shown(rows), expected);
    }

    #[test]
    fn who_is_refuted_is_called_wrong() {
        let rows = vec![ran("p", 2, "overtake", &[(VIOLATED, 0.1)]), ran("p", 2, "trencher", &[(SAFE, 0.1)])];
        assert!(shown(rows)[1].contains("|WRONG: safe|"));
    }
}

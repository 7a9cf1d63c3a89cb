//! The comparison as a page: the circumstances, what is wrong first, then a table and a curve for each
//! program, and how to do it again. Markdown, for a folder of results.

use super::record::{Comparison, Outcome, Row};
use super::table::{self, Line};
use super::{Discipline, plot, table::seconds};
use std::fmt::Write;

/// The page; `stem` is what its companions (`.csv`, `.ron`, `-PROGRAM.svg`) begin with.
pub fn page(comparison: &Comparison, stem: &str) -> String {
    let mut text = format!("# overtake and other tools: {stem}\n\n");
    text += &circumstances(comparison, stem);
    text += &disagreements(comparison);
    let lines = table::lines(comparison);
    for program in comparison.programs() {
        text += &section(comparison, &lines, program, stem);
    }
    text + &commands(comparison)
}

fn circumstances(comparison: &Comparison, stem: &str) -> String {
    let c = &comparison.circumstances;
    let mut text = format!("Written by `{}`;\nevery run is a line of [{stem}.csv]({stem}.csv), ", c.command);
    let _ = writeln!(text, "and everything is in [{stem}.ron]({stem}.ron).\n");
    let _ = writeln!(text, "- date: {}", c.date);
    let _ = writeln!(text, "- machine: {}", c.machine);
    let _ = writeln!(
        text,
        "- load averages (1, 5, 15 minutes): {} before, {} after, which counts the runs themselves",
        c.load_before, c.load_after
    );
    let _ = writeln!(text, "- tools: {}", c.tools.join("; "));
    let _ = writeln!(
        text,
        "- runs: {} of each, taking turns; each within {} and {} MiB of address space; none is repeated after it ran \
         out or\n  failed, nor tried with a larger program",
        c.runs,
        seconds(c.timeout_s),
        c.memory >> 20
    );
    text + "- time: wall time of whole processes, the median, with the least and the most behind it; what has to be \
            prepared once, such\n  as compiling a verifier, is given apart\n- bytes each: what the tool says that a stored \
            state takes; overtake counts its tables, SPIN does not\n- memory: the most of any run; `little` is less \
            than the process that measures\n- to overtake: the tool's time divided by that of overtake with one \
            worker, run by run; above 1, overtake is faster\n"
        + if c.interrupted { "- **interrupted**: rows are missing\n" } else { "" }
        + "\n"
}

fn disagreements(comparison: &Comparison) -> String {
    if comparison.disagreements.is_empty() {
        return "No two tools disagreed.\n\n".to_string();
    }
    let mut text = String::from("## Disagreements\n\n");
    for disagreement in &comparison.disagreements {
        let lines = disagreement.lines();
        let _ = writeln!(text, "- **{}**: {}", lines[0], lines[1..].join("; "));
    }
    text + "\n"
}

fn section(comparison: &Comparison, lines: &[Line], program: &str, stem: &str) -> String {
    let own: Vec<(&Row, &Line)> =
        comparison.rows.iter().zip(lines).filter(|(row, _)| row.program == program).collect();
    let mut text = format!("## {program}\n\n");
    if plot::is_worthwhile(comparison, program) {
        let _ = writeln!(text, "![time over N]({})\n", plot::file_name(stem, program));
    }
    let _ = writeln!(text, "| {} | remarks |", table::HEAD.join(" | "));
    text += "|---|---|---|---|---:|---:|---:|---:|---:|---|\n";
    for (_, line) in own.iter().filter(|(row, _)| row.measured().is_some()) {
        let _ = writeln!(text, "| {} | {} |", line.cells.join(" | "), line.note.replace('|', "\\|"));
    }
    text + "\n" + &absent(own.iter().map(|(row, _)| *row))
}

/// Who was not run, and why: equal reasons once.
fn absent<'a>(rows: impl Iterator<Item = &'a Row>) -> String {
    let mut reasons: Vec<(&str, Discipline, &str, Vec<String>)> = Vec::new();
    for row in rows {
        let Outcome::NotRun(why) = &row.outcome else { continue };
        let size = row.size.map(|n| n.to_string());
        let known = |r: &&mut (&str, Discipline, &str, Vec<String>)| {
            (r.0, r.1, r.2) == (row.contestant.as_str(), row.question, why.as_str())
        };
        match reasons.iter_mut().find(known) {
            Some(reason) => reason.3.extend(size),
            None => reasons.push((&row.contestant, row.question, why, size.into_iter().collect())),
        }
    }
    let mut text = String::new();
    for (who, question, why, sizes) in &reasons {
        let sizes = if sizes.is_empty() { String::new() } else { format!(", N = {}", sizes.join(", ")) };
        let _ = writeln!(text, "- not run: {who} ({}{sizes}): {why}", question.name());
    }
    if text.is_empty() { text } else { text + "\n" }
}

/// The first program, at its largest, shows how everybody was asked.
fn commands(comparison: &Comparison) -> String {
    let programs = comparison.programs();
    let first = || comparison.rows.iter().filter(|row| programs.first() == Some(&row.program.as_str()));
    let largest = first().filter(|row| row.measured().is_some()).map(|row| row.size).max();
    let mut text = String::from(
        "## Commands\n\nEach tool works in a folder of its own, on the program as `overtake convert`",
    );
    text += " writes it for the tool. For the first one:\n\n";
    for row in first().filter(|row| Some(row.size) == largest) {
        for command in row.measured().map_or(&[][..], |m| &m.commands) {
            let _ = writeln!(text, "    {command}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::judge::judge;
    use super::super::record::testing::*;
    use super::*;

    #[test]
    fn the_page_shows_what_is_wrong_first_and_everything_else_after() {
        let mut comparison = comparison(vec![
            ran("lamport", 2, "overtake", &[(VIOLATED, 0.004)]),
            ran("lamport", 2, "trencher", &[(SAFE, 0.002)]),
            not_run("lamport", 2, "cbmc", "it reads C"),
            ran("lamport", 3, "overtake", &[(VIOLATED, 0.004)]),
            not_run("lamport", 3, "cbmc", "it reads C"),
        ]);
        assert!(page(&comparison, "compare").contains("\nNo two tools disagreed.\n"));
        comparison.disagreements = vec![judge(&comparison.rows[..2], None)];
        let page = page(&comparison, "compare");
        let places: Vec<_> = [
            "## Disagreements\n\n- **DISAGREEMENT about lamport, N = 2 (tso)**: overtake says violated",
            "## lamport\n\n![time over N](compare-lamport.svg)\n",
            "| lamport, N = 2 | tso | overtake | violated | 10 | 31.2 | 4.00 ms | 5.9 MiB |  |  |\n",
            "|  |  | trencher | WRONG: safe |",
            "- not run: cbmc (tso, N = 2, 3): it reads C\n",
            "## Commands\n",
            "    overtake program\n",
        ]
        .iter()
        .map(|part| page.find(part).unwrap_or_else(|| panic!("{part} is missing:\n{page}")))
        .collect();
        assert!(places.is_sorted(), "{page}");
    }
}

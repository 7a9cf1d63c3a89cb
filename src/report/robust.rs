//! How do SC and TSO differ? The witness for people: which store was overtaken by which load, what the other threads
//! did in between, why no SC run can look like that, and the whole run.

use super::table::{Align, Cell, Color, Table, Tone, paint};
use super::{capitalised, limit_reached, shortened, text};
use crate::model::Program;
use crate::verdict::{AttackCount, Event, Relation, RobustAnswer, Robustness, Witness};
use std::fmt::Write;

/// The first line: `robust`, `not-robust` or `unknown`, behind the file's name if there are several files.
pub fn verdict(robustness: &Robustness, file: Option<&str>, color: bool) -> String {
    let tone = match robustness.answer {
        RobustAnswer::Robust => Tone::Good,
        RobustAnswer::NotRobust(_) => Tone::Bad,
        RobustAnswer::Unknown(_) => Tone::Doubtful,
    };
    let color = if color { Color::On } else { Color::Off };
    let verdict = paint(robustness.verdict(), tone, color);
    match file {
        Some(file) => format!("{file}: {verdict}\n"),
        None => format!("{verdict}\n"),
    }
}

/// Why the answer is what it is, in a few words.
pub fn reason(robustness: &Robustness) -> String {
    match &robustness.answer {
        RobustAnswer::Robust if robustness.attacks.left == 0 => {
            "the program's text leaves no store that a load could overtake with effect".to_string()
        }
        RobustAnswer::Robust => {
            "no store that a load overtakes leads to a cycle of happens-before".to_string()
        }
        RobustAnswer::NotRobust(_) => "a run that no SC run is like was found and checked".to_string(),
        RobustAnswer::Unknown(limit) => limit_reached(limit),
    }
}

/// What the verdict rests on.
pub fn explanation(program: &Program, robustness: &Robustness, style: text::Style) -> String {
    match &robustness.answer {
        RobustAnswer::Robust => {
            format!("SC and TSO have the same behaviours: {}.\n", reason(robustness))
        }
        RobustAnswer::NotRobust(witness) => story(program, witness, style),
        RobustAnswer::Unknown(_) => {
            let (reason, states) = (capitalised(&reason(robustness)), robustness.stats.states);
            format!("{reason}; {states} states were visited, and no witness was found.\n")
        }
    }
}

fn story(program: &Program, witness: &Witness, style: text::Style) -> String {
    let event = |k: usize| in_words(program, &witness.events[k]);
    let name = program.thread(witness.thread()).name();
    let mut text = format!("Thread {name} delays {} past {}.\n", event(witness.store), event(witness.load));
    let path = witness.path();
    let between = shortened(path[1..path.len() - 1].iter().map(|&k| event(k)));
    if !between.is_empty() {
        let _ = writeln!(text, "On the way: {}.", between.join(", "));
    }
    text += "\nNo SC run can look like this. Each of these steps would have to come before the next, in a circle:\n\n";
    text += &circle(program, witness, style);
    text += "\nThe run, with the steps of the circle marked:\n\n";
    let starred: Vec<usize> = witness.cycle.iter().map(|(k, _)| *k).collect();
    text + &text::run(program, &witness.events, &starred, style)
}

/// The cycle of happens-before, one row for each of its events, beginning with the delayed store.
fn circle(program: &Program, witness: &Witness, style: text::Style) -> String {
    let mut cycle = witness.cycle.clone();
    let first = |wanted: &dyn Fn(usize) -> bool| cycle.iter().position(|(k, _)| wanted(*k));
    let store = first(&|k| k == witness.store);
    let start = store.or_else(|| first(&|k| witness.events[k].store == Some(witness.store)));
    cycle.rotate_left(start.unwrap_or(0));
    let mut table = Table::new(vec![Align::Left, Align::Right, Align::Left, Align::Left, Align::Left]);
    for (i, &(k, relation)) in cycle.iter().enumerate() {
        let next = cycle[(i + 1) % cycle.len()].0;
        let closed = if i + 1 == cycle.len() { ": the circle is closed" } else { "" };
        table.row(vec![
            Cell::new("row", Tone::Quiet),
            Cell::new((k + 1).to_string(), Tone::Quiet),
            Cell::new(program.thread(witness.events[k].thread()).name(), Tone::Head),
            Cell::new(plain(program, &witness.events[k]), Tone::Plain),
            Cell::new(format!("{}{closed}", leads(program, witness, k, relation, next)), Tone::Plain),
        ]);
    }
    table.render(2, if style.color { Color::On } else { Color::Off })
}

/// An instruction of the user's file, with its line.
fn in_words(program: &Program, event: &Event) -> String {
    let line = program.thread(event.thread()).edge(event.edge).line;
    match line {
        0 => format!("`{}`", plain(program, event)),
        line => format!("`{}` (line {line})", plain(program, event)),
    }
}

fn plain(program: &Program, event: &Event) -> String {
    let thread = program.thread(event.thread());
    text::instruction(program, thread, event)
}

/// What leads from an event of the cycle to the next.
fn leads(program: &Program, witness: &Witness, from: usize, relation: Relation, to: usize) -> String {
    let (event, next, row) = (&witness.events[from], &witness.events[to], to + 1);
    let cell = event.address.map_or("memory".to_string(), |a| program.cell_name(a));
    match relation {
        Relation::ProgramOrder => format!("comes before row {row} in its thread"),
        Relation::Same if event.store == Some(to) => {
            format!("is where the store of row {row} reaches memory")
        }
        Relation::Same if next.store == Some(from) => format!("reaches memory in row {row}"),
        Relation::Same => format!("is in one block with row {row}, and so one step"),
        Relation::ReadsFrom => format!("writes {cell}, which row {row} reads"),
        Relation::Coherence => format!("writes {cell} before row {row} does"),
        Relation::FromRead => format!("reads {cell} as it was before row {row} writes it"),
    }
}

/// What the search cost, and what became of the attacks.
pub fn costs(robustness: &Robustness, peak_kb: Option<u64>) -> String {
    let (s, a) = (&robustness.stats, &robustness.attacks);
    let mut text = format!("\n{}", attacks(a));
    let _ = write!(
        text,
        "states        {}\ntransitions   {}\nworkers       {}\ntime          {:.3} s\n",
        s.states,
        s.transitions,
        s.workers,
        s.time.as_secs_f64(),
    );
    if let Some(kb) = peak_kb {
        let _ = writeln!(text, "peak memory   {:.1} MiB", kb as f64 / 1024.0);
    }
    text
}

fn attacks(a: &AttackCount) -> String {
    format!(
        "attacks       {} pairs of a store and a load\n  fenced      {}, or without a way from the store to the load\n  \
         private     {}, where no other thread takes part\n  acyclic     {}, without a chain of conflicts back to the store\n  \
         searched    {}\n",
        a.total, a.fenced, a.private, a.acyclic, a.left
    )
}

//! How do SC and TSO differ? The witness for people: which store was overtaken by which load, what the other threads
//! did in between, why no SC run can look like that, and the whole run.

use super::table::{Color, Tone, paint};
use super::{limit_reached, text};
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
        RobustAnswer::Robust => "no store that a load overtakes leads to a cycle of happens-before".to_string(),
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
            let states = robustness.stats.states;
            format!("{}; {states} states were visited, and no witness was found.\n", reason(robustness))
        }
    }
}

fn story(program: &Program, witness: &Witness, style: text::Style) -> String {
    let event = |k: usize| in_words(program, &witness.events[k]);
    let name = program.thread(witness.thread()).name();
    let mut text = format!("Thread {name} delays {} past {}.\n", event(witness.store), event(witness.load));
    let path = witness.path();
    if path.len() > 2 {
        let between: Vec<String> = path[1..path.len() - 1].iter().map(|&k| event(k)).collect();
        let _ = writeln!(text, "On the way: {}.", between.join(", "));
    }
    let _ = writeln!(text, "\nNo SC run can look like this, for its steps would have to go in a circle:\n");
    for (k, relation) in &witness.cycle {
        let thread = program.thread(witness.events[*k].thread()).name();
        let _ = writeln!(text, "  row {:<4}{thread}: {}, {}", k + 1, plain(program, &witness.events[*k]), leads(*relation));
    }
    let _ = writeln!(text, "\nThe run, with everything flushed at its end:\n");
    text + &text::run(program, &witness.events, style)
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
fn leads(relation: Relation) -> &'static str {
    match relation {
        Relation::ProgramOrder => "before, in its thread,",
        Relation::Same => "which is one with",
        Relation::ReadsFrom => "whose value is read by",
        Relation::Coherence => "overwritten by",
        Relation::FromRead => "which reads before it is overwritten by",
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

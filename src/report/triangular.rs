//! Is there a triangular race? The race for people: which load could overtake which store, who writes what was loaded,
//! what that does and does not mean, and the run.

use super::robust::{in_words, spent};
use super::table::Tone;
use super::{capitalised, count_of, first_line, limit_reached, shortened, text};
use crate::model::Program;
use crate::query::{Model, Race, RaceAnswer, RaceFreedom};
use std::fmt::Write;

/// The first line: `race-free`, `racy` or `unknown`, behind the file's name if there are several files.
pub fn verdict(races: &RaceFreedom, file: Option<&str>, color: bool) -> String {
    let tone = match races.answer {
        RaceAnswer::RaceFree => Tone::Good,
        RaceAnswer::Racy(_) => Tone::Bad,
        RaceAnswer::Unknown(_) => Tone::Doubtful,
    };
    first_line(races.verdict(), tone, file, color)
}

/// Why the answer is what it is, in a few words.
pub fn reason(races: &RaceFreedom) -> String {
    match &races.answer {
        RaceAnswer::RaceFree if races.attackers == 0 => {
            "the program's text leaves no load behind a store that another thread could race with".to_string()
        }
        RaceAnswer::RaceFree => {
            "no SC run has a store, a load that could overtake it, and then another thread's write to what was \
             loaded"
                .to_string()
        }
        RaceAnswer::Racy(_) => "an SC run with a triangular race was found and checked".to_string(),
        RaceAnswer::Unknown(limit) => limit_reached(limit),
    }
}

/// What the verdict rests on.
pub fn explanation(program: &Program, races: &RaceFreedom, style: text::Style) -> String {
    let reason = reason(races);
    match &races.answer {
        RaceAnswer::RaceFree => {
            format!("There is no triangular race, so SC and TSO have the same behaviours: {reason}.\n")
        }
        RaceAnswer::Racy(race) => story(program, race, style),
        RaceAnswer::Unknown(_) => {
            let (reason, states) = (capitalised(&reason), races.stats.states);
            format!("{reason}; {states} states were visited, and no race was found.\n")
        }
    }
}

pub fn story(program: &Program, race: &Race, style: text::Style) -> String {
    let event = |k: usize| in_words(program, &race.events[k]);
    let name = |k: usize| program.thread(race.events[k].thread()).name();
    let (store, load, write) = (race.store, race.load, race.write);
    let mut text = format!("Thread {} may delay {} past {},\n", name(store), event(store), event(load));
    let then = match race.events[write].address {
        Some(_) => "overwrites what was loaded",
        None => "begins a block that may overwrite what was loaded",
    };
    let _ = writeln!(text, "and thread {} then {then}: {}.", name(write), event(write));
    let path = race.path();
    let between = shortened(path[1..path.len() - 1].iter().map(|&k| event(k)));
    if !between.is_empty() {
        let _ = writeln!(text, "On the way: {}.", between.join(", "));
    }
    text += "\nA race is a warning: the program may still be robust, which `overtake robust` without `--triangular` \
             decides.\n\nThe run under SC, with the three accesses marked:\n\n";
    text + &text::run(program, Model::Sc, &race.events, &[store, load, write], style)
}

/// What the search cost.
pub fn costs(races: &RaceFreedom, peak_kb: Option<u64>) -> String {
    let attackers = count_of(races.attackers as u64, "thread");
    let which = "with a load behind a store, of what others may write";
    format!("\nattackers     {attackers} {which}\n{}", spent(&races.stats, peak_kb))
}

//! Is there no triangular race? The race: which load could overtake which store, who writes what was loaded,
//! what that does and does not mean, and the run.

use super::document::{Block, Document, Fact};
use super::robust::{in_words, on_the_way, spent};
use super::{capitalised, count_of, json, limit_reached, steps};
use crate::certify::RaceFreedom;
use crate::model::Program;
use crate::query::{Answer, Model, Question, Race};
use serde_json::{Map, Value, json};

pub fn document<'a>(
    program: &'a Program,
    file: &'a str,
    found: &'a RaceFreedom,
    peak_kb: Option<u64>,
) -> Document<'a> {
    Document {
        question: Question::Triangular,
        verdict: found.answer.verdict(),
        file: file.to_string(),
        explanation: Box::new(|| explanation(program, found)),
        costs: Box::new(move || vec![Block::Facts(costs(found, peak_kb))]),
        warnings: vec![],
        fields: Box::new(move || fields(program, file, found, peak_kb)),
    }
}

fn costs(found: &RaceFreedom, peak_kb: Option<u64>) -> Vec<Fact> {
    let attackers = count_of(found.attackers as u64, "thread");
    let which = "with a load behind a store, of what others may write";
    let attackers = Fact::new("attackers", format!("{attackers} {which}"));
    [attackers].into_iter().chain(spent(&found.stats, peak_kb)).collect()
}

/// Why the answer is what it is, in a few words.
fn reason(found: &RaceFreedom) -> String {
    match &found.answer {
        Answer::Holds(()) if found.attackers == 0 => {
            "the program's text leaves no load behind a store that another thread could race with".to_string()
        }
        Answer::Holds(()) => {
            "no SC run has a store, a load that could overtake it, and then another thread's write to what was \
             loaded"
                .to_string()
        }
        Answer::Fails(_) => "an SC run with a triangular race was found and checked".to_string(),
        Answer::Unknown(limit) => limit_reached(limit),
    }
}

/// What the verdict rests on.
fn explanation(program: &Program, found: &RaceFreedom) -> Vec<Block> {
    let (reason, states) = (reason(found), found.stats.states);
    let told = match &found.answer {
        Answer::Holds(()) => {
            format!("There is no triangular race, so SC and TSO have the same behaviours: {reason}.")
        }
        Answer::Fails(race) => return story(program, race),
        Answer::Unknown(_) => {
            format!("{}; {states} states were visited, and no race was found.", capitalised(&reason))
        }
    };
    vec![Block::line(told)]
}

pub fn story(program: &Program, race: &Race) -> Vec<Block> {
    let event = |k: usize| in_words(program, &race.events[k]);
    let name = |k: usize| program.thread(race.events[k].thread()).name();
    let (store, load, write) = (race.store, race.load, race.write);
    let then = match race.events[write].address {
        Some(_) => "overwrites what was loaded",
        None => "begins a block that may overwrite what was loaded",
    };
    let delays = format!("Thread {} may delay {} past {},", name(store), event(store), event(load));
    let writes = format!("and thread {} then {then}: {}.", name(write), event(write));
    let way = on_the_way(program, &race.events, &race.path());
    vec![
        Block::lines([delays, writes].into_iter().chain(way).collect()),
        Block::line(
            "A race is a warning: the program may still be robust, which `overtake robust` without `--triangular` \
             decides.",
        ),
        Block::line("The run under SC, with the three accesses marked:"),
        steps::run(program, Model::Sc, &race.events, &[store, load, write]),
    ]
}

fn fields(program: &Program, file: &str, found: &RaceFreedom, peak_kb: Option<u64>) -> Map<String, Value> {
    let verdict = found.answer.verdict();
    let mut fields = json::common(Question::Triangular, verdict, file, &found.stats, peak_kb);
    let mut put = |more: Value| json::put(&mut fields, more);
    put(json!({
        "triangular": true,
        "model": Model::Tso.name(),
        "reason": reason(found),
        "attackers": found.attackers,
    }));
    match &found.answer {
        Answer::Fails(race) => put(json!({ "race": race_fields(program, race) })),
        Answer::Unknown(limit) => put(json!({ "limit": json::limit_name(limit) })),
        Answer::Holds(()) => {}
    }
    fields
}

/// Store, path, load and write as events, and the trace that ends with the write.
fn race_fields(program: &Program, race: &Race) -> Value {
    let of = |k: usize| json::event(program, &race.events[k]);
    json!({
        "thread": program.thread(race.thread()).name(),
        "store": of(race.store),
        "path": race.path().into_iter().map(of).collect::<Vec<_>>(),
        "load": of(race.load),
        "write": of(race.write),
        "at": { "store": race.store, "load": race.load, "write": race.write },
        "trace": json::events(program, &race.events),
    })
}

//! How many states and transitions do fixed searches take? A search that stores more than before is slower
//! than before, whatever the clock says, and one that stores less has either learned something or lost
//! something. One worker, breadth first: the counts are exact, and kept in `tests/data/counts.txt`.
//!
//! `OVERTAKE_BLESS=1 cargo test --test counts` writes the file anew; look at the difference before it is
//! kept.

use overtake::engine::{self, Choice, EXPLICIT, LAZY, Options};
use overtake::front::tso;
use overtake::query::{Goal, Limits, Model, Question};
use std::path::Path;

const LAZILY: Choice = Choice::Only(&LAZY);
const EXPLICITLY: Choice = Choice::Only(&EXPLICIT);

/// File below `programs`, its N, model, engine.
const RUNS: &[(&str, i64, Model, Choice)] = &[
    ("lamport/lamport1.tso", 4, Model::Sc, EXPLICITLY),
    ("lamport/lamport1.tso", 6, Model::Sc, EXPLICITLY),
    ("lamport/lamport1.tso", 4, Model::Tso, LAZILY),
    ("lamport/lamport1-fenced.tso", 3, Model::Tso, EXPLICITLY),
    ("lamport/lamport2.tso", 3, Model::Sc, EXPLICITLY),
    ("lamport/lamport2-lean.tso", 2, Model::Tso, LAZILY),
    ("peterson/filter.tso", 3, Model::Sc, EXPLICITLY),
    ("peterson/filter-fenced.tso", 3, Model::Tso, EXPLICITLY),
    ("burns/burns.tso", 3, Model::Sc, EXPLICITLY),
    ("dijkstra/dijkstra.tso", 3, Model::Sc, EXPLICITLY),
    ("bakery/bakery.tso", 3, Model::Sc, EXPLICITLY),
    ("szymanski/szymanski.tso", 3, Model::Sc, EXPLICITLY),
    ("ticket/ticket.tso", 3, Model::Tso, EXPLICITLY),
    ("mcs/mcs.tso", 3, Model::Sc, EXPLICITLY),
    ("diamond/diamond.tso", 20, Model::Tso, LAZILY),
    ("loop/loop.tso", 20, Model::Tso, LAZILY),
    ("loop/countup.tso", 40, Model::Tso, Choice::Auto),
];

fn count(&(file, n, model, engine): &(&str, i64, Model, Choice)) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs").join(file);
    let source = std::fs::read_to_string(path).expect("bundled programs are readable");
    let program = tso::read(&source, &[("N".to_string(), n)], &Limits::default())
        .expect("bundled programs are right")
        .program;
    let options = Options { model, engine, workers: 1, ..Options::default() };
    let outcome = engine::check(&program, &Goal::of(&program), &options, &Limits::default());
    let outcome = outcome.expect("no internal error");
    let (states, transitions) = (outcome.stats.states, outcome.stats.transitions);
    let (model, verdict) = (model.name(), Question::Check.word(outcome.answer.verdict()));
    let (initial, rest) = engine.name().split_at(1);
    let engine = initial.to_uppercase() + rest;
    format!("{file} N={n} {model} {engine}: {verdict}, {states} states, {transitions} transitions\n")
}

#[test]
fn searches_take_as_many_states_as_before() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/counts.txt");
    let now: String = RUNS.iter().map(count).collect();
    if std::env::var_os("OVERTAKE_BLESS").is_some() {
        std::fs::write(&file, now).expect("the file can be written");
        return;
    }
    let before = std::fs::read_to_string(&file).expect("the counts are kept");
    for (before, now) in before.lines().zip(now.lines()) {
        assert_eq!(now, before, "see the head of tests/counts.rs");
    }
    assert_eq!(now.lines().count(), before.lines().count(), "every run has its line");
}

//! Accesses of several sizes to one cell: what x86 does with them, and who refuses them.
//!
//! On a processor, where each of two threads stores its half of a word and loads the whole, both loads can miss the
//! other half. A partial overlap merges; it does not wait.

use overtake::engine::{self, Choice, ENGINES, Options};
use overtake::front::tso;
use overtake::model::Program;
use overtake::query::{Answer, Goal, Limit, Limits, Model, Outcomes};

fn program(source: &str) -> Program {
    tso::read(source, &[], &Limits::default()).expect("the test's source is readable").program
}

/// Is the program's property violated under SC, and under TSO?
fn violated(source: &str) -> [bool; 2] {
    let program = program(source);
    [Model::Sc, Model::Tso].map(|model| {
        let options = Options { model, ..Options::default() };
        let outcome = engine::check(&program, &Goal::of(&program), &options, &Limits::default());
        match outcome.expect("no internal error").answer {
            Answer::Fails(_) => true,
            Answer::Holds(_) => false,
            Answer::Unknown(limit) => panic!("{limit:?}: {source}"),
        }
    })
}

#[test]
fn each_half_may_be_missing_in_the_other_threads_whole() {
    let halves = "shared x
        thread p; store [x : 0..4], 1; load r, [x]; end
        thread q; store [x : 4..8], 1 << 32; load r, [x]; end
        exists p.r == 1 && q.r == 1 << 32";
    assert_eq!(violated(halves), [false, true]);
    let fenced = halves.replace("; load", "; fence; load");
    assert_eq!(violated(&fenced), [false, false]);
}

#[test]
fn a_wide_store_is_seen_at_once() {
    let torn = "shared x
        thread p; store [x], 0x101; end
        thread q; load r, [x : 1]; load s, [x : 0]; end
        exists q.r != 0 && q.s == 0";
    assert_eq!(violated(torn), [false, false]);
    let other_way = torn.replace("q.r != 0 && q.s == 0", "q.r == 0 && q.s != 0");
    assert_eq!(violated(&other_way), [true, true]);
}

#[test]
fn a_load_merges_its_own_stores_with_memory() {
    let merged = "shared x = 0x11223344
        thread p; store [x : 0], 0x55; store [x : 2], 0x660000; store [x : 0..2], 0x7788; load r, [x : 0..4]; end
        exists p.r == 0x11667788";
    assert_eq!(violated(merged), [true, true]);
    // Its own half is forwarded, and what it does not have comes from memory at that moment.
    let forwarded = "shared x, y
        thread p; store [x : 0], 1; load r, [x]; load s, [y]; end
        thread q; store [y], 1; load r, [x : 0]; fence; store [x : 1], 0x100; end
        exists p.r == 0x101 && p.s == 0";
    assert_eq!(violated(forwarded), [false, false]);
    let seen_before_its_store = "shared x, y
        thread p; store [x : 0], 1; load r, [x]; end
        thread q; store [x : 1], 0x100; load r, [x]; end
        exists p.r == 1 && q.r == 0x100";
    assert_eq!(violated(seen_before_its_store), [false, true]);
}

#[test]
fn a_byte_that_is_stored_leaves_the_others() {
    let kept = "shared x = 0x7fffffff00000000
        thread p; store [x : 0..4], -1; end
        thread q; store [x : 7], 0; end
        forall [x] == 0x00ffffffffffffff";
    assert_eq!(violated(kept), [false, false]);
}

#[test]
fn locked_instructions_take_the_whole_cell() {
    let counted = "shared x
        thread p; rmw r, [x], r & ~0xff | r + 1 & 0xff; end
        thread q; store [x : 1], 0x200; rmw r, [x], r & ~0xff | r + 1 & 0xff; end
        forall [x] == 0x202";
    assert_eq!(violated(counted), [false, false]);
}

const HALVES: &str = "shared x
    thread p; store [x : 0..4], 1; load r, [x]; end
    thread q; store [x : 4..8], 1 << 32; load r, [x]; end
    exists p.r == 0 && q.r == 0";

#[test]
fn who_knows_whole_cells_alone_says_so() {
    let program = program(HALVES);
    let limits = Limits::default();
    for entry in ENGINES.iter().copied() {
        let options = Options { engine: Choice::Only(entry), ..Options::default() };
        let answer = engine::check(&program, &Goal::of(&program), &options, &limits).expect("no bug").answer;
        match entry.name {
            "explicit" => assert!(matches!(answer, Answer::Holds(_)), "{answer:?}"),
            name => assert!(matches!(answer, Answer::Unknown(Limit::MixedSizes)), "{name}: {answer:?}"),
        }
    }
    let options = Options::default();
    let robust = engine::robust(&program, &options, &limits).expect("no bug").answer;
    assert!(matches!(robust, Answer::Unknown(Limit::MixedSizes)), "{robust:?}");
    let free = engine::triangular(&program, &options, &limits).expect("no bug").answer;
    assert!(matches!(free, Answer::Unknown(Limit::MixedSizes)), "{free:?}");
    let Outcomes { states, .. } = engine::outcomes(&program, &[], &options, &limits);
    assert_eq!(states.map(|all| all.len()), Ok(1), "final states are for the explicit engine");
}

#[test]
fn bytes_are_written_as_they_are_read() {
    let program = program(HALVES);
    let text = tso::write(&program, &Limits::default()).expect("it is small");
    assert!(text.contains("store [x : 0..4], 1") && text.contains("[x : 4..8]"), "{text}");
    let old = overtake::front::ron::write(&program, &Limits::default()).expect("it is small");
    let again = overtake::front::ron::read(&old, &Limits::default()).expect("it was written").program;
    assert_eq!(again.to_parts(), program.to_parts());
    assert_eq!(old.matches("bytes").count(), 2, "accesses of whole cells say nothing: {old}");
}

#[test]
fn what_is_no_byte_is_an_error_with_its_place() {
    let wrong = |access: &str| {
        let source = format!("shared x\nthread p\n  {access}\nend");
        let unread = tso::read(&source, &[], &Limits::default()).expect_err(access);
        let first = unread.diagnostics()[0].clone();
        (first.message, first.span.map(|span| source[span].to_string()))
    };
    let (message, at) = wrong("load r, [x : 8]");
    assert_eq!((message.as_str(), at.as_deref()), ("a cell has no such bytes", Some("8")));
    assert_eq!(wrong("store [x : 3..3], 1").0, "a cell has no such bytes");
    assert_eq!(wrong("xchg r, [x : 0..4], 1").0, "a locked instruction is one on a whole cell");
}

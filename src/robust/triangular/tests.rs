//! The corners of the definition, each with a program that lies on the one side and one that lies on the
//! other.

use super::*;
use crate::certify::race::{Broken, check};
use crate::front::tso;
use crate::query::Limits;

fn read(source: &str) -> Program {
    tso::read(source, &[], &Limits::default()).expect("the test's source is readable").program
}

fn options() -> RaceOptions {
    RaceOptions { reductions: Reductions::ALL, order: Order::BreadthFirst, workers: 1, peers: None }
}

fn found(source: &str) -> Option<Confirmed<Race>> {
    let reply = ask(&read(source), &options(), &Limits::default()).expect("no bug in overtake");
    assert_eq!(reply.limit, None);
    reply.race
}

/// Thread p with another that writes y.
fn racy(p: &str) -> bool {
    found(&format!("shared x, y, z, a[3]; thread p; {p}; end; thread q; store [y], 1; end")).is_some()
}

/// The other thread against one that stores to x and loads from y.
fn raced_by(q: &str) -> bool {
    found(&format!("shared x, y, z, a[3]; thread p; store [x], 1; load r, [y]; end; thread q; {q}; end"))
        .is_some()
}

#[test]
fn a_load_behind_a_store_to_another_cell_races() {
    assert!(racy("store [x], 1; load r, [y]"));
    assert!(racy("store [x], 1; load r, [z]; r = 2; load r, [y]"));
    assert!(!racy("load r, [y]; store [x], 1"));
    assert!(!racy("store [x], 1; load r, [z]"));
}

#[test]
fn a_load_that_the_own_buffer_answers_does_not() {
    assert!(!racy("store [y], 1; load r, [y]"));
    assert!(!racy("store [x], 1; store [y], 1; load r, [y]"));
    // The store to y may have left the buffer, and that to x not.
    assert!(racy("store [y], 1; store [x], 1; load r, [y]"));
}

#[test]
fn what_waits_for_the_buffer_ends_the_danger() {
    assert!(!racy("store [x], 1; fence; load r, [y]"));
    assert!(!racy("store [x], 1; xchg r, [z], 1; load r, [y]"));
    assert!(!racy("store [x], 1; cas r, [z], 5, 6; load r, [y]"));
    assert!(!racy("store [x], 1; lock; unlock; load r, [y]"));
    assert!(!racy("store [x], 1; lock; load r, [y]; unlock"));
    assert!(!racy("lock; store [x], 1; load r, [y]; unlock"));
    assert!(!racy("lock; store [x], 1; unlock; load r, [y]"));
    assert!(racy("fence; store [x], 1; load r, [y]; fence"));
    assert!(racy("lock; store [z], 1; unlock; store [x], 1; load r, [y]"));
    // Only on one of two ways.
    assert!(!racy("store [x], 1; load r, [z]; if r != 0 goto on; fence; on: load r, [y]"));
    assert!(racy("store [x], 1; r = any(0..=1); if r != 0 goto on; fence; on: load r, [y]"));
}

#[test]
fn whoever_writes_races() {
    assert!(raced_by("xchg r, [y], 0"));
    assert!(raced_by("add r, [y], 0"));
    assert!(raced_by("cas r, [y], 0, 0"));
    assert!(raced_by("cas r, [y], 1, 2"), "what fails writes back what it found");
    assert!(!raced_by("load r, [x]; assume r == 2; cas r, [y], 0, 2"));
    assert!(!raced_by("load r, [y]"));
    assert!(raced_by("lock; load r, [x]; store [y], 1; unlock"));
    assert!(!raced_by("lock; load r, [y]; store [z], 1; unlock"));
    // Under SC the block does not write; under TSO it may read x as it was.
    assert!(raced_by("lock; load r, [x]; assume r == 0; store [y], 1; unlock"));
    assert!(!raced_by("lock; load r, [z]; assume r != 0; store [y], 1; unlock"));
    assert!(!raced_by("lock; load r, [y]; assume r != 0; store [y], 1; unlock"));
    assert!(!raced_by("store [y], 1 / r"), "it goes wrong, and writes nothing");
    assert!(!raced_by("store [a + 3], 1; store [y], 1"), "it goes wrong before");
    assert!(raced_by("assert 1; store [y], 1"));
    assert!(!raced_by("assert 0; store [y], 1"));
}

#[test]
fn a_third_thread_in_its_block_changes_nothing() {
    let third = "shared x, y, z; thread p; store [x], 1; load r, [y]; end; thread q; store [y], 1; end;
                 thread s; lock; store [z], 1; unlock; end";
    assert!(found(third).is_some());
}

#[test]
fn what_the_attacker_does_later_does_not_count() {
    // To write y, q needs something that comes behind the store to x.
    let waits = "assume r == 1; store [y], 1";
    let with =
        |p: &str| found(&format!("shared x, y, z; thread p; {p}; end; thread q; load r, [z]; {waits}; end"));
    assert!(with("store [x], 1; load r, [y]; store [z], 1").is_none());
    assert!(with("store [z], 1; load r, [y]").is_some());
}

#[test]
fn computed_addresses_are_what_they_are() {
    let with =
        |p: &str, q: &str| found(&format!("shared a[70]; thread p; {p}; end; thread q; {q}; end")).is_some();
    assert!(with("store [a], 1; r = any(0..=1); load r, [a + r]", "store [a + 1], 1"));
    assert!(!with("store [a], 1; r = any(0..=1); load r, [a + r]", "store [a], 1"));
    assert!(with("r = any(60..=69); store [a + r], 1; load r, [a + 65]", "store [a + 65], 1"));
    assert!(!with("r = 65; store [a + r], 1; load r, [a + r]", "r = 65; store [a + r], 1"));
    // The register of the load is part of its address. Cells 3 and 65 share a class of accesses.
    assert!(with("r = 3; store [a], 1; load r, [a + r]", "r = any(2..=3); store [a + r], 1"));
    assert!(!with("r = 3; store [a], 1; load r, [a + r]", "store [a + 65], 1"));
    assert!(with("r = 6; store [a], 1; load r, [a + r / 2]", "r = any(0..=2); store [a + 6 / r], 1"));
}

#[test]
fn loops_may_lead_from_a_store_to_a_load_before_it() {
    assert!(racy("again: load r, [y]; store [x], 1; goto again"));
    assert!(!racy("again: load r, [y]; store [x], 1; fence; goto again"));
    assert!(racy("store [x], 1; wait: load r, [y]; if r == 0 goto wait"));
}

#[test]
fn others_may_have_to_move_between_store_and_load() {
    let source = "shared x, y, z; thread p; store [x], 1; wait: load r, [z]; if r == 0 goto wait; load r, [y]; end;
                  thread q; wait: load r, [x]; if r == 0 goto wait; store [z], 1; fence; load r, [z]; store [y], 1; end";
    let race = found(source).expect("there is a race");
    let line = |k: usize| (race.events[k].thread().0, race.events[k].address.map(|a| a.0));
    assert_eq!((line(race.store), race.events.len()), ((0, Some(0)), race.write + 1));
}

#[test]
fn what_a_thread_stored_before_it_went_wrong_is_seen() {
    let program = |wrong: &str| {
        format!(
            "shared x, y, z
             thread p; store [z], 1; load r, [y]; end
             thread q; {wrong}; end
             thread u; load a, [x]; assume a == 1; store [y], 1; end"
        )
    };
    assert!(found(&program("store [x], 1; r = 1 / s")).is_some());
    assert!(found(&program("xchg r, [x], 1; r = 1 / s")).is_some());
    assert!(found(&program("store [x], 1; load r, [s - 1]")).is_some());
    // What goes wrong itself stores nothing.
    assert!(found(&program("store [x], 1 / s")).is_none());
    assert!(found(&program("add r, [x], 1 / s")).is_none());
}

#[test]
fn the_judge_sees_what_is_wrong_with_a_race() {
    let program = read(
        "shared x, y; thread p; store [x], 1; fence; store [y], 1; load r, [x]; load s, [y]; end
         thread q; load s, [y]; store [x], 2; store [y], 2; end",
    );
    let step = |t: u16, e: u32| Action {
        thread: ThreadId(t),
        act: Act::Step { edge: crate::model::EdgeId(e), choice: None },
    };
    let order = [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (0, 4), (1, 2)];
    let events =
        follow(&program, Model::Sc, order.map(|(t, e)| step(t, e)), &Limits::default()).expect("a run");
    let judge = |store, load, write| {
        check(&program, &Race { events: events.clone(), store, load, write }, &Limits::default()).unwrap()
    };
    assert_eq!(judge(2, 3, 5), Ok(()));
    assert_eq!(judge(3, 2, 5), Err(Broken::Order));
    assert_eq!(judge(2, 3, 8), Err(Broken::Order));
    assert_eq!(judge(2, 4, 5), Err(Broken::Threads));
    assert_eq!(judge(2, 3, 6), Err(Broken::Threads));
    assert_eq!(judge(1, 3, 5), Err(Broken::Store));
    assert_eq!(judge(0, 2, 5), Err(Broken::Load));
    assert_eq!(judge(0, 3, 5), Err(Broken::Barrier));
    assert_eq!(judge(2, 6, 7), Err(Broken::Buffered));
    assert_eq!(judge(2, 3, 7), Err(Broken::Moved));
    assert_eq!(judge(2, 3, 4), Err(Broken::Write));
    let mut altered = Race { events, store: 2, load: 3, write: 5 };
    altered.events[3].value = Some(7);
    assert!(matches!(check(&program, &altered, &Limits::default()).unwrap(), Err(Broken::Replay(_))));
}

#[test]
fn a_store_in_a_block_is_no_beginning() {
    let program = read(
        "shared x, y; thread p; lock; store [x], 1; load r, [y]; unlock; end; thread q; store [y], 1; end",
    );
    let step = |t: u16, e: u32| Action {
        thread: ThreadId(t),
        act: Act::Step { edge: crate::model::EdgeId(e), choice: None },
    };
    let order = [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0)];
    let events =
        follow(&program, Model::Sc, order.map(|(t, e)| step(t, e)), &Limits::default()).expect("a run");
    assert_eq!(
        check(&program, &Race { events, store: 1, load: 2, write: 4 }, &Limits::default()).unwrap(),
        Err(Broken::Store)
    );
}

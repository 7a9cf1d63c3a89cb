//! Is the computation a witness against robustness?
//!
//! A *witness* (`[LazyTSO15]`, Figure 5) is a TSO computation with a happens-before cycle that delays as
//! little as possible: one thread, the *attacker*, delays a store past a load of its own, and what the other
//! threads do after the load leads back to the store. A program is robust iff it has none. [`witness`]
//! performs decisions on the plain TSO machine, moves what does not happen after the load before it, and
//! holds the result against the conditions W1 to W5 of the definition. Not here: looking for witnesses.

use super::happens_before::HappensBefore;
use super::{Confirmed, Doubt, MIXED_SIZES};
use crate::limits::Limits;
use crate::model::{Program, ThreadId};
use crate::query::{Act, Action, Event, EventKind, Model, Source, Witness};
use crate::semantics::replay::follow;
use bit_set::BitSet;
use std::collections::HashMap;
use thiserror::Error;

/// The computation that the decisions begin, once the attacker has flushed, as a witness.
pub fn witness(program: &Program, actions: &[Action], limits: &Limits) -> Result<Confirmed<Witness>, Doubt> {
    let refuted = |why: &str| Doubt::refuted(format!("the witness {why}"));
    if program.mixes_sizes() {
        return Err(refuted(MIXED_SIZES));
    }
    let walk = |actions: &[Action]| {
        let events = follow(program, Model::Tso, actions.iter().copied(), limits);
        events.map_err(|stopped| Doubt::stopped("the witness", stopped))
    };
    let (attacker, pending) = delaying(&walk(actions)?).ok_or_else(|| refuted("delays nothing"))?;
    let flushes = std::iter::repeat_n(Action { thread: attacker, act: Act::Flush }, pending);
    let events = walk(&actions.iter().copied().chain(flushes).collect::<Vec<_>>())?;
    let attack = attack(&events, attacker).ok_or_else(|| refuted("has no load that overtakes"))?;
    let (actions, Attack { store, load }) = normalised(&events, &attack);
    let events = walk(&actions)?;
    check_witness(&events, &Attack { store, load }).map_err(|broken| refuted(&broken.to_string()))?;
    let cycle = HappensBefore::of(&events).cycle(limits)?.ok_or_else(|| refuted("has no cycle"))?;
    Ok(Confirmed(Witness { events, store, load, cycle }))
}

/// The store that is delayed and the load that overtakes it, as events of a computation; both are the
/// attacker's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attack {
    pub store: usize,
    pub load: usize,
}

/// The first condition on witnesses that does not hold, and an event that shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Broken {
    #[error("event {0} is not the store or not the load of an attack: a thread's store, its load, its flush")]
    Shape(usize),
    #[error("W1: event {0} stores, is not the attacker's, and is not flushed at once")]
    W1(usize),
    #[error("W2: event {0} keeps the attack's store from being the first that is delayed, up to its load")]
    W2(usize),
    #[error("W3: event {0} is the attacker's, between the load and the flush")]
    W3(usize),
    #[error("W4: event {0} is not followed by its flush, or comes after the attack and is no harmless flush")]
    W4(usize),
    #[error("W5: event {0} does not happen after the load")]
    W5(usize),
}

/// Is the computation a witness τ1 · store · τ2 · load · τ3 · flush · τ4?
///
/// - W1: only the attacker delays stores; the other threads behave as under SC.
/// - W2: `store` is the attacker's first delayed store, nothing of the attacker's is flushed or needs to be
///   until `load`, and `load` reads memory.
/// - W3: `load` is the last event of the attacker's that overtakes the store.
/// - W4: after the flush the attacker's other stores follow, and nothing else. None is to the address of
///   `load`.
/// - W5: everything in τ3 happens after the load, and so does the flush. That closes a cycle: the flush is
///   the store, and the load comes after it in program order.
///
/// Further, `events` is a computation, and leaves all buffers empty.
pub fn check_witness(events: &[Event], attack: &Attack) -> Result<(), Broken> {
    let flush = check_shape(events, attack)?;
    let attacker = events[attack.store].thread();
    refuse(events, 0..events.len(), Broken::W1, |i, e| e.thread() != attacker && delayed(events, i))?;
    check_w2(events, attack)?;
    refuse(events, attack.load + 1..flush, Broken::W3, |_, e| e.thread() == attacker)?;
    let address = events[attack.load].address;
    let harmless = |e: &Event| e.thread() == attacker && e.kind == EventKind::Flush && e.address != address;
    refuse(events, flush + 1..events.len(), Broken::W4, |_, e| !harmless(e))?;
    let flushed: BitSet = events.iter().filter_map(|e| e.store).collect();
    refuse(events, 0..events.len(), Broken::W4, |i, e| buffers(e) && !flushed.contains(i))?;
    let after = HappensBefore::of(events).after(attack.load);
    refuse(events, attack.load + 1..flush + 1, Broken::W5, |i, _| !after.contains(i))
}

/// The flush of the attack's store, if store, load and flush are one thread's and in this order.
fn check_shape(events: &[Event], attack: &Attack) -> Result<usize, Broken> {
    let Attack { store, load } = *attack;
    let store_event = events.get(store).filter(|e| buffers(e)).ok_or(Broken::Shape(store))?;
    let is_load = |e: &&Event| e.kind == EventKind::Load && e.thread() == store_event.thread();
    events.get(load).filter(is_load).ok_or(Broken::Shape(load))?;
    let flush = flush_of(events, store).ok_or(Broken::Shape(store))?;
    if store < load && load < flush { Ok(flush) } else { Err(Broken::Shape(load)) }
}

fn check_w2(events: &[Event], attack: &Attack) -> Result<(), Broken> {
    let attacker = events[attack.store].thread();
    let own = |e: &Event| e.thread() == attacker;
    let drains = |e: &Event| matches!(e.kind, EventKind::Flush | EventKind::Fence | EventKind::Locked);
    refuse(events, 0..attack.store, Broken::W2, |i, e| own(e) && delayed(events, i))?;
    refuse(events, attack.store + 1..attack.load, Broken::W2, |_, e| own(e) && drains(e))?;
    let early = events[attack.load].source != Some(Source::Memory);
    if early { Err(Broken::W2(attack.load)) } else { Ok(()) }
}

/// The condition is broken at the first event of the range that is bad.
fn refuse(
    events: &[Event],
    range: std::ops::Range<usize>,
    broken: fn(usize) -> Broken,
    bad: impl Fn(usize, &Event) -> bool,
) -> Result<(), Broken> {
    match range.into_iter().find(|&i| bad(i, &events[i])) {
        Some(i) => Err(broken(i)),
        None => Ok(()),
    }
}

/// Does the event put a store into a buffer? Not one that has gone wrong.
fn buffers(event: &Event) -> bool {
    event.kind == EventKind::Store && event.trap.is_none()
}

/// Is this a store that is not followed by its flush at once?
fn delayed(events: &[Event], i: usize) -> bool {
    buffers(&events[i]) && events.get(i + 1).is_none_or(|next| next.store != Some(i))
}

/// Where the store reaches memory.
pub fn flush_of(events: &[Event], store: usize) -> Option<usize> {
    events.iter().position(|e| e.store == Some(store))
}

/// The decisions of a computation with W1 to W4, after every event between the load and the flush that does
/// not happen after the load has been moved directly before it; and where the attack is then.
///
/// The moved events keep their order. They do not depend on those they overtake, so the decisions are
/// possible, and have the same happens-before relation: if the flush happens after the load, they make a
/// witness.
pub fn normalised(events: &[Event], attack: &Attack) -> (Vec<Action>, Attack) {
    let Attack { store, load } = *attack;
    let flush = flush_of(events, store).unwrap_or(events.len());
    let after = HappensBefore::of(events).after(load);
    let (stay, moved): (Vec<usize>, Vec<usize>) = (load + 1..flush).partition(|&e| after.contains(e));
    let attack = Attack { store, load: load + moved.len() };
    let order = (0..load).chain(moved).chain([load]).chain(stay).chain(flush..events.len());
    (order.map(|i| events[i].action).collect(), attack)
}

/// The thread that still has stores in its buffer, and how many.
fn delaying(events: &[Event]) -> Option<(ThreadId, usize)> {
    let mut pending: HashMap<ThreadId, usize> = HashMap::new();
    for event in events.iter().filter(|e| e.trap.is_none()) {
        match event.kind {
            EventKind::Store => *pending.entry(event.thread()).or_default() += 1,
            EventKind::Flush => *pending.entry(event.thread()).or_default() -= 1,
            _ => {}
        }
    }
    let waiting = |t: ThreadId| pending.get(&t).copied().filter(|&stores| stores > 0);
    events.iter().map(|e| e.thread()).find_map(|t| Some((t, waiting(t)?)))
}

/// The attacker's first store that is not flushed at once, and its last load.
fn attack(events: &[Event], attacker: ThreadId) -> Option<Attack> {
    let own = |k: &usize| events[*k].thread() == attacker;
    let at_once = |k: usize| events.get(k + 1).is_some_and(|e| e.store == Some(k));
    let mut stores = (0..events.len()).filter(own).filter(|&k| events[k].kind == EventKind::Store);
    let store = stores.find(|&k| !at_once(k) && events[k].trap.is_none())?;
    let load = (0..events.len()).filter(own).rfind(|&k| events[k].kind == EventKind::Load)?;
    Some(Attack { store, load })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certify::happens_before::tests::{BLOCK, DEKKER, EARLY_READ, perform, program, run};

    #[test]
    fn figure_4_and_a_block_have_the_shape_of_witnesses() {
        let attack = Attack { store: 0, load: 1 };
        assert_eq!(check_witness(&run(DEKKER, "0 0 1 1! 1 0!"), &attack), Ok(()));
        assert_eq!(check_witness(&run(BLOCK, "1 1 0 0 0 0! 0 1!"), &attack), Ok(()));
    }

    #[test]
    fn an_attack_is_a_store_and_a_load_of_one_thread() {
        let events = run(DEKKER, "0 0 1 1! 1 0!");
        let check = |store, load| check_witness(&events, &Attack { store, load });
        assert_eq!(check(1, 0), Err(Broken::Shape(1)));
        assert_eq!(check(0, 4), Err(Broken::Shape(4)));
        assert_eq!(check(0, 9), Err(Broken::Shape(9)));
        assert_eq!(check(2, 4), Err(Broken::Shape(4)), "the flush came first");
        let unflushed = run(DEKKER, "0 0 1 1! 1");
        assert_eq!(check_witness(&unflushed, &Attack { store: 0, load: 1 }), Err(Broken::Shape(0)));
    }

    #[test]
    fn w1_helpers_do_not_delay() {
        let events = run(DEKKER, "0 0 1 1 1! 0!");
        assert!(HappensBefore::of(&events).is_cyclic());
        assert_eq!(check_witness(&events, &Attack { store: 0, load: 1 }), Err(Broken::W1(2)));
    }

    #[test]
    fn w2_the_store_is_the_first_that_is_delayed() {
        let two = "
            shared x, y, z
            thread p0; store [z], 1; store [x], 1; load r, [y]; end
            thread p1; store [y], 1; load r, [x]; end
        ";
        let events = run(two, "0 0 0 0! 1 1! 1 0!");
        assert_eq!(check_witness(&events, &Attack { store: 1, load: 2 }), Err(Broken::W2(0)));
        let events = run(two, "0 0! 0 0 1 1! 1 0!");
        assert_eq!(check_witness(&events, &Attack { store: 2, load: 3 }), Ok(()));
    }

    #[test]
    fn w2_nothing_drains_the_buffer_before_the_load() {
        let padded = "
            shared x, y
            thread p0; store [x], 1; nop; load r, [y]; end
            thread p1; store [y], 1; load r, [x]; end
        ";
        let mut events = run(padded, "0 0 0 1 1! 1 0!");
        let attack = Attack { store: 0, load: 2 };
        assert_eq!(check_witness(&events, &attack), Ok(()));
        for kind in [EventKind::Fence, EventKind::Locked, EventKind::Flush] {
            events[1].kind = kind;
            assert_eq!(check_witness(&events, &attack), Err(Broken::W2(1)));
        }
    }

    #[test]
    fn w2_the_load_reads_memory() {
        let events = run(EARLY_READ, "0 0! 0 0 1 1! 1 1! 0!");
        assert_eq!(check_witness(&events, &Attack { store: 2, load: 3 }), Ok(()));
        let events = run(EARLY_READ, "0 0 0 1 1! 1 1! 0! 0!");
        assert_eq!(check_witness(&events, &Attack { store: 0, load: 2 }), Err(Broken::W2(2)));
    }

    #[test]
    fn w3_the_attacker_stops_after_the_load() {
        let events = run(DEKKER, "0 0 1 1! 1 0 0!");
        assert_eq!(check_witness(&events, &Attack { store: 0, load: 1 }), Err(Broken::W3(5)));
    }

    #[test]
    fn w4_only_flushes_of_the_attacker_remain() {
        let attack = Attack { store: 0, load: 1 };
        assert_eq!(check_witness(&run(DEKKER, "0 0 1 1! 1 0! 1"), &attack), Err(Broken::W4(6)));
        assert_eq!(check_witness(&run(DEKKER, "0 0 1 1! 1 0! 0"), &attack), Err(Broken::W4(6)));
        let two = "
            shared x, y, z
            thread p0; store [x], 1; store [z], 1; load r, [y]; end
            thread p1; store [y], 1; load r, [x]; end
        ";
        let attack = Attack { store: 0, load: 2 };
        assert_eq!(check_witness(&run(two, "0 0 0 1 1! 1 0!"), &attack), Err(Broken::W4(1)));
        let mut events = run(two, "0 0 0 1 1! 1 0! 0!");
        assert_eq!(check_witness(&events, &attack), Ok(()));
        events[7].address = events[2].address;
        assert_eq!(check_witness(&events, &attack), Err(Broken::W4(7)));
    }

    #[test]
    fn w5_everything_happens_after_the_load() {
        let attack = Attack { store: 0, load: 1 };
        assert_eq!(check_witness(&run(DEKKER, "0 0 0!"), &attack), Err(Broken::W5(2)));
        let apart = "
            shared x, y, z
            thread p0; store [x], 1; load r, [y]; end
            thread p1; load r, [z]; store [y], 1; load r, [x]; end
        ";
        assert_eq!(check_witness(&run(apart, "0 0 1 1 1! 1 0!"), &attack), Err(Broken::W5(2)));
    }

    #[test]
    fn events_that_are_not_after_the_load_move_before_it() {
        let apart = "
            shared x, y, z
            thread p0; store [x], 1; load r, [y]; end
            thread p1; load r, [z]; store [y], 1; load r, [x]; end
            thread p2; store [z], 1; nop; end
        ";
        let events = run(apart, "0 0 1 2 2! 1 1! 2 1 0!");
        let (actions, attack) = normalised(&events, &Attack { store: 0, load: 1 });
        let threads: Vec<u16> = actions.iter().map(|a| a.thread.0).collect();
        assert_eq!(threads, [0, 1, 2, 2, 2, 0, 1, 1, 1, 0]);
        assert_eq!(attack, Attack { store: 0, load: 5 });
        assert_eq!(check_witness(&perform(&program(apart), actions), &attack), Ok(()));
    }
}

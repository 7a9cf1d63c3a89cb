//! States are found again, whoever put them where; threads wake once; room is kept.

use super::*;

fn insert(
    seen: &Visited,
    corner: &mut Corner,
    words: &[u64],
    parent: Option<Offset>,
    sleep: u16,
) -> Inserted {
    if seen.settle(corner, 16) {
        seen.grow(16, 2);
    }
    seen.insert(&seen.lock(), corner, words, seen.tag(words), parent, sleep)
}

#[test]
fn every_state_is_new_once_and_readable_for_ever() {
    let (seen, mut corner) = (Visited::new(), Corner::default());
    let state = |i: u64| vec![i % 7, i / 7, 3];
    let mut offsets = Vec::new();
    for i in 0..100_000 {
        let Inserted::New(offset) = insert(&seen, &mut corner, &state(i), offsets.last().copied(), 0) else {
            panic!("state {i} was not new");
        };
        offsets.push(offset);
    }
    let mut words = Vec::new();
    for i in 0..100_000 {
        let found = insert(&seen, &mut corner, &state(i), None, 0);
        assert_eq!(found, Inserted::Old(offsets[i as usize]));
        seen.read(offsets[i as usize], &mut words);
        assert_eq!(words, state(i));
        assert_eq!(seen.parent(offsets[i as usize]), offsets[..i as usize].last().copied());
    }
    seen.settle(&mut corner, 0);
    assert_eq!(seen.states(), 100_000);
}

#[test]
fn states_of_different_lengths_differ() {
    let (seen, mut corner) = (Visited::new(), Corner::default());
    assert!(matches!(insert(&seen, &mut corner, &[0], None, 0), Inserted::New(_)));
    assert!(matches!(insert(&seen, &mut corner, &[0, 0], None, 0), Inserted::New(_)));
    assert!(matches!(insert(&seen, &mut corner, &[0], None, 0), Inserted::Old(_)));
}

#[test]
fn a_smaller_sleep_set_wakes_each_thread_once() {
    let (seen, mut corner) = (Visited::new(), Corner::default());
    let Inserted::New(offset) = insert(&seen, &mut corner, &[9], None, 0b110) else { panic!() };
    assert_eq!(insert(&seen, &mut corner, &[9], None, 0b111), Inserted::Old(offset));
    assert_eq!(insert(&seen, &mut corner, &[9], None, 0b010), Inserted::Woken(offset, 0b100));
    assert_eq!(insert(&seen, &mut corner, &[9], None, 0b010), Inserted::Old(offset));
    assert_eq!(seen.read(offset, &mut Vec::new()), 0b010);
}

#[test]
fn workers_agree_on_who_was_first() {
    let seen = Visited::new();
    let news: Vec<u64> = std::thread::scope(|scope| {
        let worker = || {
            let mut corner = Corner::default();
            let all = (0..200_000u64).map(|i| insert(&seen, &mut corner, &[i / 2], None, 0));
            let new = all.filter(|done| matches!(done, Inserted::New(_))).count() as u64;
            seen.settle(&mut corner, 0);
            new
        };
        let handles = [scope.spawn(worker), scope.spawn(worker)];
        handles.map(|h| h.join().expect("the worker does not panic")).to_vec()
    });
    assert_eq!(news.iter().sum::<u64>(), 100_000);
    assert_eq!(seen.states(), 100_000);
}

#[test]
fn offsets_fill_one_chunk_after_the_other() {
    let mut expected = (0, 0);
    for offset in (0..DOUBLED + (3 << LAST_CHUNK_BITS)).step_by(LAST_BLOCK) {
        assert_eq!(chunk_of(offset), expected);
        expected.1 += LAST_BLOCK;
        if expected.1 == 1 << (FIRST_CHUNK_BITS + expected.0.min(DOUBLING) as u32) {
            expected = (expected.0 + 1, 0);
        }
    }
}

#[test]
fn long_records_do_not_straddle_chunks() {
    let (seen, mut corner) = (Visited::new(), Corner::default());
    let (mut offsets, mut words) = (Vec::new(), Vec::new());
    let state = |i: u64| vec![i; MAX_WORDS - FIRST_BLOCK * (i as usize % 5)];
    // More than the first chunk holds.
    for i in 0..(1u64 << FIRST_CHUNK_BITS) / MAX_WORDS as u64 + 50 {
        let Inserted::New(offset) = insert(&seen, &mut corner, &state(i), None, 0) else { panic!() };
        offsets.push(offset);
    }
    assert!(chunk_of(offsets[offsets.len() - 1].0 as usize).0 > 0);
    for (i, offset) in offsets.into_iter().enumerate() {
        seen.read(offset, &mut words);
        assert_eq!(words, state(i as u64));
    }
}

#[test]
fn few_states_take_little_room() {
    let (seen, mut corner) = (Visited::new(), Corner::default());
    for states in 1..24_000u64 {
        insert(&seen, &mut corner, &[states], None, 0);
        assert!(states < 300 || seen.bytes() <= 42 * states, "{} for {states}", seen.bytes());
    }
}

#[test]
fn room_for_all_workers_leaves_slots_free() {
    const WORKERS: usize = 8;
    const SLICE: usize = 64;
    let seen = Visited::new();
    let worker = |own: u64| {
        let mut corner = Corner::default();
        for slice in 0..40 {
            if seen.settle(&mut corner, WORKERS * SLICE) {
                seen.grow(WORKERS * SLICE, WORKERS);
            }
            let table = seen.lock();
            for i in 0..SLICE as u64 {
                let words = [own, slice, i];
                let done = seen.insert(&table, &mut corner, &words, seen.tag(&words), None, 0);
                assert!(matches!(done, Inserted::New(_)));
            }
            let taken = table.iter().filter(|s| s.load(Ordering::Relaxed) != 0).count();
            assert!(taken <= most_states(table.len()), "{taken} of {}", table.len());
        }
    };
    std::thread::scope(|scope| {
        (0..WORKERS as u64).for_each(|own| drop(scope.spawn(move || worker(own))));
    });
}

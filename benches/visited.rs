//! What does it cost to ask whether a state has been seen? States that are new and states that are not, of
//! one word, of a few, and of many, in batches as the explorer asks.

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use overtake::reach::visited::{Corner, Inserted, Visited};
use std::hint::black_box;
use std::time::Duration;

/// Enough that the table does not fit the caches nearest to the processor.
const STATES: u64 = 200_000;
const BATCH: usize = 64;

/// States that differ in few bits, as those of a program do.
fn states(words: usize) -> Vec<u64> {
    (0..STATES).flat_map(|i| (0..words as u64).map(move |w| i >> (w % 3) | w << 60)).collect()
}

/// Puts all states into the set, a batch at a time; says how many were new.
fn insert_all(seen: &Visited, corner: &mut Corner, states: &[u64], words: usize) -> u64 {
    let mut new = 0;
    let mut tags = Vec::with_capacity(BATCH);
    for batch in states.chunks(BATCH * words) {
        if seen.settle(corner, BATCH) {
            seen.grow(BATCH, 1);
        }
        let table = seen.lock();
        tags.clear();
        tags.extend(batch.chunks(words).map(|state| seen.tag(state)));
        let slots = tags.iter().map(|&tag| seen.touch_record(seen.touch(&table, tag), tag));
        black_box(slots.fold(0, |all, header| all | header));
        for (state, &tag) in batch.chunks(words).zip(&tags) {
            let done = seen.insert(&table, corner, state, tag, None, 0);
            new += matches!(done, Inserted::New(_)) as u64;
        }
    }
    seen.settle(corner, 0);
    new
}

fn seen(c: &mut Criterion) {
    let mut group = c.benchmark_group("visited set");
    group.sample_size(10).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
    group.throughput(Throughput::Elements(STATES));
    for words in [1, 3, 10] {
        let states = states(words);
        group.bench_function(BenchmarkId::new("new states, words", words), |b| {
            b.iter_batched(
                || (Visited::new(), Corner::default()),
                |(seen, mut corner)| {
                    assert_eq!(insert_all(&seen, &mut corner, &states, words), STATES);
                    seen
                },
                BatchSize::PerIteration,
            );
        });
        let (seen, mut corner) = (Visited::new(), Corner::default());
        insert_all(&seen, &mut corner, &states, words);
        println!("{words} words: {:.1} bytes per state", seen.bytes() as f64 / seen.states() as f64);
        group.bench_function(BenchmarkId::new("old states, words", words), |b| {
            b.iter(|| assert_eq!(insert_all(&seen, &mut corner, &states, words), 0));
        });
    }
    group.finish();
}

criterion_group!(benches, seen);
criterion_main!(benches);

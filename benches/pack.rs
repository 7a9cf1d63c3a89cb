//! What does it cost to write a state down and to read it back? Small values that share words, values that
//! need words of their own, and the entries of store buffers.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use overtake::analysis::interval::Interval;
use overtake::model::Value;
use overtake::reach::pack::{Layout, Reader, Writer};
use std::hint::black_box;
use std::time::Duration;

/// Intervals like those of a small mutual exclusion program: locations, registers, memory.
fn small(slots: usize) -> Vec<Interval> {
    (0..slots).map(|i| Interval { lo: 0, hi: [9, 1, 5, 3][i % 4] }).collect()
}

fn values(intervals: &[Interval]) -> Vec<Value> {
    intervals.iter().enumerate().map(|(i, interval)| (i as Value * 7) & interval.hi).collect()
}

fn fields(c: &mut Criterion) {
    let mut group = c.benchmark_group("packed fields");
    group
        .sample_size(20)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(500));
    let cases = [("16 small", small(16)), ("64 small", small(64)), ("16 full", vec![Interval::FULL; 16])];
    for (name, intervals) in cases {
        let layout = Layout::loose(intervals.iter().copied().enumerate());
        let mut vals = values(&intervals);
        let mut words = Vec::new();
        layout.pack(&vals, &mut words);
        println!("{name}: {} words", words.len());
        group.throughput(Throughput::Elements(intervals.len() as u64));
        group.bench_function(BenchmarkId::new("pack", name), |b| {
            let mut out = Vec::new();
            b.iter(|| {
                out.clear();
                layout.pack(black_box(&vals), &mut out);
                out[0]
            });
        });
        group.bench_function(BenchmarkId::new("unpack", name), |b| {
            b.iter(|| {
                layout.unpack(black_box(&words), &mut vals);
                vals[0]
            });
        });
    }
    group.finish();
}

fn buffers(c: &mut Criterion) {
    const ENTRIES: usize = 12;
    const BITS: u32 = 6;
    let mut group = c.benchmark_group("packed buffers");
    group
        .sample_size(20)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(500));
    group.throughput(Throughput::Elements(ENTRIES as u64));
    let write = |words: &mut Vec<u64>| {
        let mut writer = Writer::new(words);
        (0..ENTRIES as u64).for_each(|i| writer.write(BITS, i % 40));
        writer.finish();
    };
    group.bench_function("write", |b| {
        let mut words = Vec::new();
        b.iter(|| {
            words.clear();
            write(black_box(&mut words));
            words[0]
        });
    });
    let mut words = Vec::new();
    write(&mut words);
    group.bench_function("read", |b| {
        b.iter(|| {
            let mut reader = Reader::new(black_box(&words));
            (0..ENTRIES).map(|_| reader.read(BITS)).sum::<u64>()
        });
    });
    group.finish();
}

criterion_group!(benches, fields, buffers);
criterion_main!(benches);

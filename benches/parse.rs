//! How fast is a file read? The native language: a bundled program, one that unfolds to many threads, and a
//! long file that a machine has written.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use overtake::front::tso;
use overtake::limits::Limits;
use std::fmt::Write;
use std::hint::black_box;
use std::time::Duration;

const PETERSON: &str = include_str!("../programs/peterson/peterson.tso");
const FILTER: &str = include_str!("../programs/peterson/filter.tso");

/// Many threads of many lines, with labels, branches and computed addresses.
fn generated(threads: usize, lines: usize) -> String {
    let mut text = String::from("param N = 16\nshared a[N], flag = 1, turn\n");
    for t in 0..threads {
        let _ = writeln!(text, "\nthread t{t}");
        for i in 0..lines {
            let _ = match i % 5 {
                0 => writeln!(text, "l{i}:\n    store [a + (r + {i}) % N], {t} // line {i}"),
                1 => writeln!(text, "    load  r, [a + {}]", i % 16),
                2 => writeln!(text, "    if r == {i} && s != 0x{i:x} goto l{}", i - 2),
                3 => writeln!(text, "    s = (r << 2 | {t}) + s * 3"),
                _ => writeln!(text, "    cas   old, [turn], {t}, s"),
            };
        }
        text.push_str("end\n");
    }
    text.push_str("\nforbid t0@l0 && t1@l0 && [flag] == 0\n");
    text
}

fn parse(c: &mut Criterion) {
    let large = generated(50, 1_000);
    let mut group = c.benchmark_group("read .tso");
    group.sample_size(10).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
    let cases =
        [("peterson", PETERSON, None), ("filter, N = 12", FILTER, Some(12)), ("generated", &large[..], None)];
    for (name, source, processes) in cases {
        let defines: Vec<_> = processes.map(|n| ("N".to_string(), n)).into_iter().collect();
        let program = tso::read(source, &defines, &Limits::default()).expect("a program").program;
        let edges: usize = program.threads().iter().map(|t| t.graph().edge_count()).sum();
        println!("{name}: {} bytes, {} threads, {edges} edges", source.len(), program.threads().len());
        group.throughput(Throughput::Bytes(source.len() as u64));
        group.bench_function(name, |b| b.iter(|| tso::read(black_box(source), &defines, &Limits::default())));
    }
    group.finish();
}

criterion_group!(benches, parse);
criterion_main!(benches);

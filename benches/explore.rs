//! How fast is the search? Lamport's mutex under SC, with more and more processes, by one worker and by two.
//!
//! Before the times, one line for each size: the states and what each of them costs in memory.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use overtake::certify::Outcome;
use overtake::engine::{self, Options};
use overtake::front::tso;
use overtake::model::Program;
use overtake::query::{Goal, Limits, Model};
use std::hint::black_box;
use std::time::Duration;

const LAMPORT: &str = include_str!("../programs/lamport/lamport1.tso");

fn lamport(processes: i64) -> Program {
    tso::read(LAMPORT, &[("N".to_string(), processes)], &Limits::default())
        .expect("a bundled program")
        .program
}

fn check(program: &Program, workers: usize) -> Outcome {
    let options = Options { model: Model::Sc, workers, ..Options::default() };
    engine::check(program, &Goal::of(program), &options, &Limits::default()).expect("no internal error")
}

fn explore(c: &mut Criterion) {
    let mut group = c.benchmark_group("lamport1 under SC");
    group.sample_size(10).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    for processes in [3, 4, 5] {
        let program = lamport(processes);
        let stats = check(&program, 1).stats;
        println!(
            "N = {processes}: {} states, {} transitions, {:.1} bytes per state",
            stats.states, stats.transitions, stats.bytes_per_state
        );
        group.throughput(Throughput::Elements(stats.states));
        for workers in [1, 2] {
            let id = BenchmarkId::new(format!("N = {processes}"), format!("workers: {workers}"));
            group.bench_function(id, |b| b.iter(|| check(black_box(&program), workers)));
        }
    }
    group.finish();
}

criterion_group!(benches, explore);
criterion_main!(benches);

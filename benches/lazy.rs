//! How fast are answers under TSO? Programs that the lazy engine decides, whole: SC checks, oracle and
//! delays; and the oracle alone, on a program whose fences refute everything, on one where it has to search,
//! and on a large one.
//!
//! Before the times, one line for each program: the rounds, and the states of all of them.

use criterion::{Criterion, criterion_group, criterion_main};
use overtake::certify::{Outcome, Robustness};
use overtake::engine::{self, Options};
use overtake::front::tso;
use overtake::model::Program;
use overtake::query::{Goal, Limits};
use std::hint::black_box;
use std::time::Duration;

const LAMPORT: &str = include_str!("../programs/lamport/lamport1.tso");
const LAMPORT_FENCED: &str = include_str!("../programs/lamport/lamport1-fenced.tso");
const DEKKER: &str = include_str!("../programs/dekker/dekker.tso");
const DIAMOND: &str = include_str!("../programs/diamond/diamond.tso");
const LOOP: &str = include_str!("../programs/loop/loop.tso");
const TREIBER: &str = include_str!("../programs/treiber/treiber.tso");

fn read(source: &str, n: Option<i64>) -> Program {
    let defines: Vec<_> = n.map(|n| ("N".to_string(), n)).into_iter().collect();
    tso::read(source, &defines, &Limits::default()).expect("a bundled program").program
}

fn options() -> Options {
    Options { workers: 1, ..Options::default() }
}

fn check(program: &Program) -> Outcome {
    engine::check(program, &Goal::of(program), &options(), &Limits::default()).expect("no internal error")
}

fn robust(program: &Program) -> Robustness {
    engine::robust(program, &options(), &Limits::default()).expect("no internal error")
}

fn lazy(c: &mut Criterion) {
    let mut group = c.benchmark_group("check under TSO");
    group.sample_size(10).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
    let cases = [
        ("lamport1, N = 3", LAMPORT, Some(3)),
        ("lamport1, N = 4", LAMPORT, Some(4)),
        ("lamport1, N = 5", LAMPORT, Some(5)),
        ("dekker", DEKKER, None),
        ("diamond, N = 50", DIAMOND, Some(50)),
        ("diamond, N = 200", DIAMOND, Some(200)),
        ("loop, N = 50", LOOP, Some(50)),
        ("loop, N = 100", LOOP, Some(100)),
    ];
    for (name, source, n) in cases {
        let program = read(source, n);
        let outcome = check(&program);
        println!(
            "{name}: {:?}, {} rounds, {} states",
            outcome.answer.verdict(),
            outcome.stats.iterations,
            outcome.stats.states
        );
        group.bench_function(name, |b| b.iter(|| check(black_box(&program))));
    }
    group.finish();
}

fn oracle(c: &mut Criterion) {
    let mut group = c.benchmark_group("oracle");
    group.sample_size(20).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
    let cases = [
        ("lamport1-fenced, N = 4", LAMPORT_FENCED, Some(4)),
        ("treiber, N = 3", TREIBER, Some(3)),
        ("diamond, N = 200", DIAMOND, Some(200)),
    ];
    for (name, source, n) in cases {
        let program = read(source, n);
        let found = robust(&program);
        println!(
            "{name}: {:?}, {} of {} attacks searched",
            found.answer.verdict(),
            found.attacks.left,
            found.attacks.total
        );
        group.bench_function(name, |b| b.iter(|| robust(black_box(&program))));
    }
    group.finish();
}

criterion_group!(benches, lazy, oracle);
criterion_main!(benches);

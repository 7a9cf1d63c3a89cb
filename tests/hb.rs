//! Is happens-before what it should be? Robustness is defined without it: a TSO computation is harmless iff
//! some SC computation has the same dependencies. All computations of small random programs are held against
//! that, and so is the claim that witnesses are all one has to look for (`[LazyTSO15]`, Lemma 6).
//!
//! `OVERTAKE_PROGRAMS=20000 cargo test --release --test hb` tries more programs than the default.

mod common;

use common::robustness::{Run, Then, Wanted, brute_robust, runs, sc_dependencies};
use common::{SMALL, Shape, Shown, Taste, cases, program};
use overtake::certify::happens_before::HappensBefore;
use overtake::certify::witness::{Attack, Broken, check_witness, flush_of, normalised};
use overtake::front::tso;
use overtake::model::{Program, ThreadId};
use overtake::query::{Event, EventKind, Goal, Limits, Model, Relation};
use overtake::semantics::replay;
use petgraph::graph::NodeIndex;
use proptest::prelude::*;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

const STEPS: usize = 30_000;

/// Without loops, so that computations end.
const TINY: Shape = Shape { lines: (1, 3), threads: (2, 2), loops: false, ..SMALL };
const DENSE: Shape = Shape { lines: (2, 4), taste: Taste::Dense, registers: 1, ..TINY };
const THREE: Shape = Shape { lines: (1, 2), threads: (3, 3), ..DENSE };

/// Straight threads that do nothing but get into each other's way: two on two cells, or three on three.
fn conflicts() -> impl Strategy<Value = Shown> {
    let threads = |cells: &'static [&'static str], lines: usize| {
        let thread = prop::collection::vec(line(cells), 2..=lines);
        prop::collection::vec(thread, cells.len())
    };
    prop_oneof![3 => threads(&["x", "y"], 4), 1 => threads(&["x", "y", "z"], 2)].prop_map(|threads| {
        let thread = |(t, lines): (usize, &Vec<String>)| format!("thread p{t}; {}; end\n", lines.join("; "));
        let threads: String = threads.iter().enumerate().map(thread).collect();
        source(&format!("shared x, y, z\n{threads}"), &[])
    })
}

fn line(cells: &'static [&'static str]) -> impl Strategy<Value = String> {
    let cell = move || prop::sample::select(cells);
    let access = move || {
        prop_oneof![
            8 => (cell(), 1..3).prop_map(|(cell, value)| format!("store [{cell}], {value}")),
            8 => cell().prop_map(|cell| format!("load r, [{cell}]")),
            1 => (cell(), 1..3).prop_map(|(cell, value)| format!("xchg r, [{cell}], {value}")),
        ]
    };
    let block = prop::collection::vec(access(), 2..=3).prop_map(|inside| inside.join("; "));
    prop_oneof![
        14 => access(),
        1 => Just("fence".to_string()),
        2 => block.prop_map(|inside| format!("lock; {inside}; unlock")),
    ]
}

fn source(text: &str, defines: &[(String, i64)]) -> Shown {
    Shown(tso::read(text, defines, &Limits::default()).expect("the text is a program").program)
}

/// Computations with cycles and without.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    cyclic: usize,
    acyclic: usize,
}

/// Every computation that leaves the buffers empty is cyclic iff SC does not have its dependencies. `None` if
/// there are too many of them.
fn compare(program: &Program, wanted: Wanted) -> Option<Count> {
    let sc = sc_dependencies(program, STEPS)?;
    let mut count = Count::default();
    runs(program, Model::Tso, wanted, STEPS, &mut |run| {
        if run.is_drained() {
            let cyclic = check(run, sc.contains(&run.dependencies));
            *(if cyclic { &mut count.cyclic } else { &mut count.acyclic }) += 1;
        }
        Then::GoOn
    })?;
    Some(count)
}

/// Is the run cyclic?
fn check(run: &Run, sequential: bool) -> bool {
    let hb = HappensBefore::of(&run.events);
    assert_eq!(hb.is_cyclic(), !sequential, "{:#?}", run.events);
    let cycle = hb.cycle(&Limits::default()).unwrap();
    assert_eq!(cycle.is_some(), hb.is_cyclic());
    for (i, &(from, relation)) in cycle.iter().flatten().enumerate() {
        let next = cycle.iter().flatten().nth(i + 1).or(cycle.iter().flatten().next());
        let (to, _) = *next.expect("a cycle has events");
        assert!(
            is_related(&hb, &run.events, from, relation, to),
            "{from} {relation:?} {to} in {:#?}",
            run.events
        );
    }
    hb.is_cyclic()
}

fn is_related(hb: &HappensBefore, events: &[Event], from: usize, relation: Relation, to: usize) -> bool {
    let issued = |e: usize| events[e].kind != EventKind::Flush;
    match relation {
        Relation::Same => from != to && hb.same(from, to),
        _ if hb.same(from, to) => false,
        Relation::ProgramOrder => {
            from < to && events[from].thread() == events[to].thread() && issued(from) && issued(to)
        }
        _ => {
            let edges = hb.graph().edges_connecting(NodeIndex::new(from), NodeIndex::new(to));
            edges.into_iter().any(|e| *e.weight() == relation)
        }
    }
}

fn compare_all(shown: &Shown) {
    let Shown(program) = shown;
    let Some(few) = compare(program, Wanted::OneOfAKind) else { return };
    assert_eq!(brute_robust(program, STEPS), Some(few.cyclic == 0));
    if let Some(all) = compare(program, Wanted::Every) {
        assert_eq!(all.cyclic == 0, few.cyclic == 0, "one computation of a kind stands for all");
    }
}

/// Every SC computation, with each store flushed at once, has an acyclic happens-before relation.
fn sc_is_acyclic(program: &Program) {
    runs(program, Model::Sc, Wanted::Every, STEPS, &mut |run| {
        let actions = replay::as_tso(&run.events);
        let performed = replay::perform(program, Model::Tso, &Goal::default(), actions, &Limits::default());
        let (events, _) = performed.expect("every SC computation is one under TSO");
        assert!(!HappensBefore::of(&events).is_cyclic(), "{events:#?}");
        Then::GoOn
    });
}

/// The attacks of a computation: all pairs of a store and a load that it may have.
fn attacks(events: &[Event]) -> Vec<Attack> {
    let of = |kind: EventKind| (0..events.len()).filter(move |&i| events[i].kind == kind);
    of(EventKind::Store)
        .flat_map(|store| of(EventKind::Load).map(move |load| Attack { store, load }))
        .collect()
}

/// Is there a witness? Wherever W1 to W4 hold, and the flush happens after the load, moving events must make
/// one.
fn has_witness(program: &Program) -> Option<bool> {
    let of: Vec<Option<bool>> = program.thread_ids().map(|t| has_witness_by(program, t)).collect();
    if of.contains(&Some(true)) {
        Some(true)
    } else {
        of.into_iter().collect::<Option<Vec<bool>>>().map(|_| false)
    }
}

fn has_witness_by(program: &Program, attacker: ThreadId) -> Option<bool> {
    let mut found = false;
    let all = runs(program, Model::Tso, Wanted::Every, STEPS, &mut |run| {
        if helper_delays(&run.events, attacker) {
            return Then::TurnBack;
        }
        if run.is_drained() {
            for attack in attacks(&run.events) {
                found |= is_witness(program, run, &attack);
            }
        }
        Then::GoOn
    });
    if found { Some(true) } else { all.map(|()| false) }
}

/// Against W1, in the last two events.
fn helper_delays(events: &[Event], attacker: ThreadId) -> bool {
    let [.., before, last] = events else { return false };
    let stored = before.kind == EventKind::Store && before.trap.is_none();
    stored && before.thread() != attacker && last.store != Some(events.len() - 2)
}

fn is_witness(program: &Program, run: &Run, attack: &Attack) -> bool {
    match check_witness(&run.events, attack) {
        Ok(()) => {
            assert!(HappensBefore::of(&run.events).is_cyclic(), "a witness has a cycle: {:#?}", run.events);
            true
        }
        Err(Broken::W5(_)) => {
            let flush = flush_of(&run.events, attack.store).expect("the store is flushed");
            if HappensBefore::of(&run.events).after(attack.load).contains(flush) {
                let (actions, attack) = normalised(&run.events, attack);
                let performed =
                    replay::perform(program, Model::Tso, &Goal::default(), actions, &Limits::default());
                let (events, _) = performed.expect("moved events are possible");
                // `perform` ends with the first error of a thread.
                if events.len() == run.events.len() {
                    assert_eq!(check_witness(&events, &attack), Ok(()), "{events:#?}");
                }
            }
            false
        }
        Err(_) => false,
    }
}

/// Lemma 6.
fn witnesses_suffice(Shown(program): &Shown) {
    if let (Some(robust), Some(witness)) = (brute_robust(program, STEPS), has_witness(program)) {
        assert_eq!(robust, !witness);
    }
}

#[test]
fn a_locked_instruction_that_goes_wrong_opens_no_block() {
    let wrong = "
        shared x, y
        thread p0; store [x], 1; load r, [y]; xchg r, [9], 1; end
        thread p1; lock; store [x], 2; load r, [x]; unlock; end
    ";
    compare_all(&source(wrong, &[]));
}

#[derive(Deserialize)]
struct Row {
    file: String,
    #[serde(default)]
    define: BTreeMap<String, i64>,
    robust: bool,
}

/// The bundled programs of a family that have no loops, with their names and whether they are robust.
fn without_loops(folder: &Path) -> Vec<(String, Program, bool)> {
    let text = std::fs::read_to_string(folder.join("expected.ron")).expect("every family has expectations");
    let rows: Vec<Row> = ron::from_str(&text).expect("they can be read");
    let case = |row: Row| {
        let path = folder.join(&row.file);
        let text = std::fs::read_to_string(&path).expect("the program is there");
        let Shown(program) = source(&text, &row.define.into_iter().collect::<Vec<_>>());
        (path.display().to_string(), program, row.robust)
    };
    let straight = |p: &Program| !p.threads().iter().any(|t| petgraph::algo::is_cyclic_directed(t.graph()));
    rows.into_iter().map(case).filter(|(_, program, _)| straight(program)).collect()
}

#[test]
fn bundled_programs_are_as_robust_as_expected() {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs");
    let folders =
        programs.read_dir().expect("programs are bundled").map(|e| e.expect("it can be listed").path());
    let mut decided = 0;
    for (name, program, robust) in folders.filter(|f| f.is_dir()).flat_map(|f| without_loops(&f)) {
        for said in
            [brute_robust(&program, STEPS), has_witness(&program).map(|found| !found)].into_iter().flatten()
        {
            assert_eq!(said, robust, "{name}");
            decided += 1;
        }
    }
    assert!(decided > 60, "only {decided} answers");
}

proptest! {
    #![proptest_config(cases(40))]

    #[test]
    fn a_computation_is_cyclic_iff_sc_does_not_have_it(shown in program(TINY)) {
        compare_all(&shown);
    }

    #[test]
    fn a_computation_of_a_dense_program_is_cyclic_iff_sc_does_not_have_it(shown in program(DENSE)) {
        compare_all(&shown);
    }

    #[test]
    fn a_computation_of_three_threads_is_cyclic_iff_sc_does_not_have_it(shown in program(THREE)) {
        compare_all(&shown);
    }

    #[test]
    fn an_sc_computation_is_never_cyclic(Shown(program) in program(TINY)) {
        sc_is_acyclic(&program);
    }

    #[test]
    fn a_program_is_robust_iff_it_has_no_witness(shown in program(DENSE)) {
        witnesses_suffice(&shown);
    }
}

proptest! {
    // One in ten of these is not robust, one in a hundred of those above.
    #![proptest_config(cases(80))]

    #[test]
    fn a_computation_full_of_conflicts_is_cyclic_iff_sc_does_not_have_it(shown in conflicts()) {
        compare_all(&shown);
    }

    #[test]
    fn a_program_full_of_conflicts_is_robust_iff_it_has_no_witness(shown in conflicts()) {
        witnesses_suffice(&shown);
    }
}

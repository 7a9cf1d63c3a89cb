//! Are certificates worth something? Invariants and sets of attacks of random programs against the plain
//! machines, and what becomes of them when they are tampered with: whatever is accepted must be true.

mod common;

use common::producer::{Joining, Stops, produce, reach};
use common::robustness::brute_robust;
use common::{Naive, SMALL, Shape, Shown, Taste, cases, naive, pointed_program, program, template_program};
use overtake::certify::Doubt;
use overtake::certify::attacks::{self, Attempts, Harmless};
use overtake::certify::certificate::{About, Certificate, Grounds};
use overtake::certify::invariant::{Invariant, Members, STUCK, check};
use overtake::engine::certificate::{self, Uncertified};
use overtake::engine::{self, Options};
use overtake::model::program::ProgramParts;
use overtake::model::{Addr, Instr, Loc, Program, ThreadId};
use overtake::past::{self, Interchange};
use overtake::query::{Answer, Goal, Limits, Model};
use overtake::semantics::State;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

/// States of the plain machine, and of an invariant.
const MOST: usize = 20_000;
const MOST_IDEALS: usize = 3_000;
/// Steps in which robustness is settled by its definition, or left open.
const MOST_STEPS: usize = 30_000;

fn verdict(judged: Result<(), Doubt>) -> Result<(), String> {
    match judged {
        Ok(()) => Ok(()),
        Err(Doubt::Refuted(why)) => Err(why.to_string()),
        Err(Doubt::Limit(limit)) => panic!("there are no limits, and {limit:?} was reached"),
    }
}

fn accepts(program: &Program, model: Model, invariant: &Invariant) -> Result<(), String> {
    verdict(check(program, &Goal::of(program), model, invariant, &Limits::default()))
}

fn is_violated(program: &Program, model: Model) -> bool {
    naive(program, &Goal::of(program), model, None, MOST) == Naive::Violated
}

/// The set of all states of the machine of lagging readers excludes the goal iff the plain machine does not
/// reach it; a set that is closed for coarser reasons excludes it only then.
fn agrees(Shown(program): &Shown, model: Model) -> Result<(), TestCaseError> {
    let goal = Goal::of(program);
    let verdict = naive(program, &goal, model, None, MOST);
    for stops in [Stops::All, Stops::Few] {
        for joining in [Joining::Exact, Joining::Segments] {
            let how = (stops, joining);
            let Some(invariant) = produce(program, &goal, model, how, MOST_IDEALS) else { continue };
            let accepted = accepts(program, model, &invariant);
            if verdict == Naive::Violated {
                prop_assert!(accepted.is_err(), "{how:?} {} states", invariant.states.len());
            } else if verdict == Naive::Safe && joining == Joining::Exact {
                prop_assert_eq!(accepted, Ok(()), "{:?}", how);
            }
        }
    }
    Ok(())
}

fn shapes() -> impl Strategy<Value = Shown> {
    let straight = Shape { loops: false, ..SMALL };
    let dense = Shape { taste: Taste::Dense, blocks: false, ..SMALL };
    let reading = Shape { taste: Taste::Reading, ..SMALL };
    let wild = Shape { taste: Taste::Wild, lines: (2, 4), ..SMALL };
    let unfinished = Shape { unfinished: true, ..straight };
    prop_oneof![
        program(straight),
        pointed_program(straight, Model::Tso),
        program(SMALL),
        pointed_program(SMALL, Model::Tso),
        pointed_program(dense, Model::Tso),
        pointed_program(Shape { loops: false, ..dense }, Model::Tso),
        pointed_program(reading, Model::Tso),
        pointed_program(wild, Model::Tso),
        pointed_program(unfinished, Model::Tso),
    ]
}

/// Ways to tamper with a certificate, each aimed by some numbers.
const TAMPERINGS: &[fn(&mut Invariant, &mut Aim)] = &[
    // A state is missing.
    |inv, aim| {
        aim.remove(&mut inv.states);
    },
    // Several are.
    |inv, aim| {
        let keep = aim.next();
        let mut k = 0;
        inv.states.retain(|_| {
            k += 1;
            !(k * 7 + keep).is_multiple_of(3)
        });
    },
    // A past has less to offer.
    |inv, aim| {
        if let Some(past) = aim.pick(&mut inv.pasts)
            && let Some(segment) = aim.pick(&mut past.segments)
            && let Some(set) = aim.pick(segment)
        {
            aim.remove(set);
        }
    },
    |inv, aim| {
        if let Some(past) = aim.pick(&mut inv.pasts)
            && let Some(segment) = aim.pick(&mut past.segments)
        {
            aim.remove(segment);
        }
    },
    // A thread does not lag.
    |inv, aim| {
        if let Some(state) = aim.pick(&mut inv.states)
            && let Some(past) = aim.pick(&mut state.pasts)
        {
            *past = 0;
        }
    },
    // A register is said to be dead, here or everywhere.
    |inv, aim| {
        if let Some(places) = aim.pick(&mut inv.places)
            && let Some(place) = aim.pick(places)
        {
            aim.remove(&mut place.live);
        }
    },
    |inv, aim| {
        let (t, r) = (aim.next() % inv.places.len(), aim.next() as u16 % 4);
        inv.places[t].iter_mut().for_each(|place| place.live.retain(|live| live.0 != r));
        for state in inv.states.iter_mut().filter(|state| (r as usize) < state.registers[t].len()) {
            state.registers[t][r as usize] = 0;
        }
    },
    // A cell is said not to matter, here, in one thread or in all.
    |inv, aim| {
        if let Some(places) = aim.pick(&mut inv.places)
            && let Some(place) = aim.pick(places)
        {
            aim.remove(&mut place.relevant);
        }
    },
    |inv, aim| {
        let t = aim.next() % inv.places.len();
        inv.places[t].iter_mut().for_each(|place| place.relevant.clear());
        inv.states.iter_mut().for_each(|state| state.pasts[t] = 0);
    },
    |inv, aim| {
        let cell = Addr(aim.next() as u32 % 3);
        for place in inv.places.iter_mut().flatten() {
            place.relevant.retain(|c| *c != cell);
        }
        for set in inv.pasts.iter_mut().flat_map(|past| &mut past.segments).flatten() {
            set.retain(|(c, _)| *c != cell);
        }
    },
    // A thread is said to pass through.
    |inv, aim| {
        let t = aim.next() % inv.places.len();
        if let Some(place) = aim.pick(&mut inv.places[t]) {
            place.stop = false;
        }
        let Invariant { places, states, .. } = inv;
        states.retain(|state| places[t].get(state.at[t].index()).is_none_or(|place| place.stop));
    },
    // Memory or a register holds something else.
    |inv, aim| {
        let to = aim.next() as i64 % 3;
        if let Some(state) = aim.pick(&mut inv.states)
            && let Some(value) = aim.pick(&mut state.memory)
        {
            *value = to;
        }
    },
    |inv, aim| {
        let to = aim.next() as i64 % 3;
        if let Some(state) = aim.pick(&mut inv.states)
            && let Some(thread) = aim.pick(&mut state.registers)
            && let Some(value) = aim.pick(thread)
        {
            *value = to;
        }
    },
    // A thread stands elsewhere.
    |inv, aim| {
        let to = aim.next();
        if let Some(state) = aim.pick(&mut inv.states) {
            let t = to % state.at.len();
            state.at[t] = Loc((to / 8 % inv.places[t].len()) as u32);
        }
    },
    // A block is held, or not.
    |inv, aim| {
        let to = aim.next();
        if let Some(state) = aim.pick(&mut inv.states) {
            state.lock = if to % 3 == 0 { None } else { Some(ThreadId((to % state.at.len()) as u16)) };
        }
    },
];

/// Ways to claim a symmetry that need not be there.
const CLAIMS: &[fn(&mut Invariant, &mut Aim)] = &[
    // Any two threads may change places, with nothing or with two cells or two values.
    |inv, aim| {
        let threads = inv.places.len();
        let (a, b) = (aim.next() % threads, aim.next() % threads);
        let cells = |aim: &mut Aim| vec![Addr(aim.next() as u32 % 3), Addr(aim.next() as u32 % 3)];
        let values = |aim: &mut Aim| (0, vec![aim.next() as i64 % 3, aim.next() as i64 % 3]);
        let some = aim.next();
        let (cells, values) = (cells(aim), values(aim));
        inv.symmetry.register_sorts = inv.states[0].registers.iter().map(|r| vec![0; r.len()]).collect();
        inv.symmetry.cell_sorts = vec![0; inv.states[0].memory.len()];
        inv.symmetry.groups.push(Members {
            threads: vec![ThreadId(a as u16), ThreadId(b as u16)],
            cells: if some.is_multiple_of(2) { vec![cells] } else { vec![] },
            values: if some.is_multiple_of(3) { vec![values] } else { vec![] },
        });
    },
    // More cells, or fewer, move along, or other values.
    |inv, aim| {
        if let Some(group) = aim.pick(&mut inv.symmetry.groups) {
            aim.remove(&mut group.cells);
        }
    },
    |inv, aim| {
        if let Some(group) = aim.pick(&mut inv.symmetry.groups) {
            aim.remove(&mut group.values);
        }
    },
    |inv, aim| {
        let to = aim.next() as i64 % 3;
        if let Some(group) = aim.pick(&mut inv.symmetry.groups)
            && let Some((_, values)) = aim.pick(&mut group.values)
            && let Some(value) = aim.pick(values)
        {
            *value = to;
        }
    },
    // Values are of another sort.
    |inv, aim| {
        let to = aim.next() as u32 % 4;
        if let Some(sort) = aim.pick(&mut inv.symmetry.cell_sorts) {
            *sort = to;
        }
    },
    |inv, aim| {
        let to = aim.next() as u32 % 4;
        if let Some(sorts) = aim.pick(&mut inv.symmetry.register_sorts)
            && let Some(sort) = aim.pick(sorts)
        {
            *sort = to;
        }
    },
];

/// What is left of an invariant without the states that are against the goal as they are.
fn without_goal(program: &Program, mut invariant: Invariant) -> Invariant {
    let goal = Goal::of(program);
    invariant.states.retain(|state| {
        let at = state.at.iter().map(|&loc| if loc == STUCK { Loc::TRAP } else { loc }).collect();
        let (registers, memory) = (state.registers.clone(), state.memory.clone());
        let buffers = vec![Default::default(); state.at.len()];
        State { at, registers, memory, lock: state.lock, buffers }.against(program, &goal).is_none()
    });
    invariant
}

/// Numbers that say where to tamper.
struct Aim(Vec<usize>, usize);

impl Aim {
    fn next(&mut self) -> usize {
        self.1 += 1;
        self.0[self.1 % self.0.len()]
    }

    fn pick<'a, T>(&mut self, list: &'a mut [T]) -> Option<&'a mut T> {
        let k = self.next();
        if list.is_empty() { None } else { Some(&mut list[k % list.len()]) }
    }

    fn remove<T>(&mut self, list: &mut Vec<T>) {
        let k = self.next();
        if !list.is_empty() {
            list.remove(k % list.len());
        }
    }
}

/// The program without one of its fences, or with a locked instruction less strict.
fn weakened(program: &Program, aim: &mut Aim) -> Option<Program> {
    let mut parts: ProgramParts = program.to_parts();
    let edges = parts.threads.iter_mut().flat_map(|thread| &mut thread.edges);
    let mut fences: Vec<_> = edges.filter(|edge| edge.instr == Instr::Fence).collect();
    aim.pick(&mut fences)?.instr = Instr::Nop;
    drop(fences);
    Some(Program::new(parts).expect("a step that does nothing is allowed"))
}

/// Tampers with the invariants of a program, one way after the other: none that is accepted may claim what is
/// not true.
fn tampered(Shown(program): &Shown, aim: &mut Aim, model: Model) -> Result<(), TestCaseError> {
    let goal = Goal::of(program);
    let violated = is_violated(program, model);
    let plain = [(Stops::All, Joining::Exact), (Stops::Few, Joining::Segments)];
    let produced = plain.into_iter().filter_map(|how| produce(program, &goal, model, how, MOST_IDEALS / 4));
    // That of the engine may have a symmetry, and there is none of a program that is not safe.
    let proved = past::prove(program, &goal, Interchange::Allowed, &bounded()).ok().flatten();
    let proved = proved.filter(|_| model == Model::Tso);
    for whole in produced.chain(proved) {
        // Without its forbidden states, the set of a violated program is all the more tempting.
        let whole = if violated { without_goal(program, whole) } else { whole };
        if whole.states.is_empty() {
            continue;
        }
        for (k, tamper) in TAMPERINGS.iter().chain(CLAIMS).enumerate() {
            let mut invariant = whole.clone();
            for _ in 0..1 + aim.next() % 3 {
                tamper(&mut invariant, aim);
            }
            if aim.next().is_multiple_of(4) && !invariant.states.is_empty() {
                CLAIMS[aim.next() % CLAIMS.len()](&mut invariant, aim);
            }
            let judged = accepts(program, model, &invariant);
            prop_assert!(judged.is_err() || !violated, "way {k} of tampering is not noticed");
        }
        if let Some(other) = weakened(program, aim) {
            let judged = accepts(&other, model, &whole);
            prop_assert!(
                judged.is_err() || !is_violated(&other, model),
                "a fence is gone, and nobody notices"
            );
        }
    }
    Ok(())
}

fn bounded() -> Limits {
    Limits { states: Some(MOST as u64), ..Limits::default() }
}

/// Of so many random programs, those that are found to be safe have certificates that are accepted, but for one
/// in a hundred at most, for which there was no invariant before a limit was reached.
#[test]
fn nearly_all_that_is_safe_is_certified() {
    let mut runner = TestRunner::deterministic();
    let programs = prop_oneof![5 => shapes(), 1 => template_program(3, true)];
    let (mut safe, mut certified) = (0, 0);
    for _ in 0..cases(150).cases {
        let Shown(program) = programs.new_tree(&mut runner).expect("there is always another").current();
        let (goal, limits) = (Goal::of(&program), bounded());
        let options = Options::with_workers(1);
        let outcome = engine::check(&program, &goal, &options, &limits).expect("no internal error");
        if !matches!(outcome.answer, Answer::Holds(_)) {
            continue;
        }
        safe += 1;
        let about = About { program: &program, define: &[], property: None };
        match certificate::of_outcome(&about, &outcome, &limits) {
            Err(Uncertified::Limit(_)) => {}
            Err(why) => panic!("{why}: {:?}", Shown(program)),
            Ok(made) => {
                let file = made.write(&limits).expect("it is small");
                let read = Certificate::read(&file, &limits).expect("it was written just now");
                assert_eq!(read.verify(&program, &[], &limits), Ok(()));
                certified += 1;
            }
        }
    }
    println!("{certified} of {safe} safe programs are certified");
    assert!(certified * 100 >= safe * 99, "{certified} of {safe}");
}

/// A certificate survives being written and read.
fn survives(program: &Program, grounds: Grounds) -> Result<(), TestCaseError> {
    let about = About { program, define: &[("N".to_string(), 3)], property: None };
    let certificate = Certificate::new(&about, Model::Tso, grounds);
    let file = certificate.write(&Limits::default()).expect("there are no limits");
    prop_assert_eq!(Certificate::read(&file, &Limits::default()), Ok(certificate));
    Ok(())
}

/// All that attacks come to, with the machine of the checker.
fn harmless(program: &Program) -> Option<Harmless> {
    let (limits, places) =
        (Limits::default(), common::producer::places(program, &Goal::default(), Stops::All));
    let mut attempts = Attempts::new(program, &places, &limits).expect("the tables are right");
    let initial = attempts.initial().expect("there are no limits");
    let states = reach(initial, MOST_IDEALS, |row, next| attempts.steps(row, next).expect("no limits"))?;
    Some(Harmless { places, states })
}

fn robustness_agrees(Shown(program): &Shown, aim: &mut Aim) -> Result<(), TestCaseError> {
    let (Some(robust), Some(whole)) = (brute_robust(program, MOST_STEPS), harmless(program)) else {
        return Ok(());
    };
    let judged = |set: &Harmless| verdict(attacks::check(program, set, &Limits::default()));
    prop_assert_eq!(judged(&whole).is_ok(), robust);
    for _ in 0..6 {
        let mut set = whole.clone();
        match aim.next() % 3 {
            0 => aim.remove(&mut set.states),
            1 => {
                let limits = Limits::default();
                let attempts = Attempts::new(program, &set.places, &limits).expect("the tables are right");
                set.states.retain(|row| !attempts.succeeds(row));
            }
            _ => {
                let to = aim.next() as i64 % 3;
                if let Some(row) = aim.pick(&mut set.states)
                    && let Some(value) = aim.pick(row)
                {
                    *value = to;
                }
            }
        }
        prop_assert!(judged(&set).is_err() || robust);
    }
    if let Some(other) = weakened(program, aim)
        && let Some(robust) = brute_robust(&other, MOST_STEPS)
    {
        let still = verdict(attacks::check(&other, &whole, &Limits::default()));
        prop_assert!(still.is_err() || robust, "a fence is gone, and nobody notices");
    }
    survives(program, Grounds::Harmless(whole))
}

fn aims() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(any::<usize>(), 23)
}

proptest! {
    #![proptest_config(cases(15))]

    #[test]
    fn threads_change_places_only_if_they_may(shown in template_program(3, true), aims in aims()) {
        tampered(&shown, &mut Aim(aims, 0), Model::Tso)?;
    }
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn lagging_readers_reach_what_buffers_reach(shown in shapes()) {
        agrees(&shown, Model::Tso)?;
    }

    #[test]
    fn nobody_lags_under_sc(shown in shapes()) {
        agrees(&shown, Model::Sc)?;
    }

    #[test]
    fn what_is_accepted_is_true(shown in shapes(), aims in aims()) {
        tampered(&shown, &mut Aim(aims, 0), Model::Tso)?;
    }

    #[test]
    fn robust_programs_have_certificates(shown in shapes_without_loops(), aims in aims()) {
        robustness_agrees(&shown, &mut Aim(aims, 0))?;
    }

    #[test]
    fn files_are_read_as_they_were_written(shown in shapes(), flips in prop::collection::vec(any::<usize>(), 8)) {
        let goal = Goal::of(&shown.0);
        let how = (Stops::Few, Joining::Segments);
        if let Some(invariant) = produce(&shown.0, &goal, Model::Tso, how, MOST_IDEALS / 8) {
            survives(&shown.0, Grounds::Invariant(invariant.clone()))?;
            let about = About { program: &shown.0, define: &[], property: None };
            let certificate = Certificate::new(&about, Model::Tso, Grounds::Invariant(invariant));
            let file = certificate.write(&Limits::default()).expect("there are no limits");
            damaged(&shown.0, &file, &flips);
        }
    }
}

fn shapes_without_loops() -> impl Strategy<Value = Shown> {
    let straight = Shape { loops: false, lines: (2, 4), ..SMALL };
    let dense = Shape { taste: Taste::Dense, blocks: false, ..straight };
    let reading = Shape { taste: Taste::Reading, ..straight };
    prop_oneof![program(straight), program(dense), program(reading)]
}

/// No damage to a file makes its reader or its judge panic.
fn damaged(program: &Program, file: &[u8], flips: &[usize]) {
    let look = |file: &[u8]| {
        if let Ok(certificate) = Certificate::read(file, &Limits::default()) {
            let _ = certificate.verify(program, &[], &Limits::default());
        }
    };
    for &flip in flips {
        let mut other = file.to_vec();
        other[flip % file.len()] ^= 1 << (flip / file.len() % 8);
        look(&other);
        look(&file[..flip % file.len()]);
    }
}

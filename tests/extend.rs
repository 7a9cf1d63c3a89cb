//! Does an extended program do under TSO what the old one does? Random programs with loops, computed
//! addresses, locked instructions and blocks are extended along random paths, up to three times in a row, and
//! explored naively on the plain machines, before and after. And whatever an SC run of an extended program
//! shows must, projected, be a TSO run of the old one that reaches its goal.
//!
//! One corner is left out on purpose: a goal on memory inside another thread's block counts with frozen
//! buffers as they are, and the emulation says it does not count (see `extend::goal`). So only violations
//! with empty buffers have to be found again; violations of the extended program have to be true in any case.

mod common;

use common::{SMALL, Shape, Shown, Taste, cases, pointed_program, program};
use overtake::engine::{self, Options};
use overtake::extend::{DelayedPath, Extended, Form, Refused, extend, project};
use overtake::model::{
    Addr, Atom, BinOp, Edge, EdgeId, Expr, Instr, Loc, Pred, Program, Reg, ThreadId, Value,
};
use overtake::query::{Answer, Clause, Goal, Limits, Model, When};
use overtake::semantics::{State, replay, sc, tso};
use proptest::prelude::*;
use std::collections::{HashSet, VecDeque};

const MOST: usize = 20_000;
const STEPS: usize = 10;

const STRAIGHT: Shape = Shape { loops: false, ..SMALL };
const DENSE: Shape = Shape { taste: Taste::Dense, lines: (2, 5), threads: (2, 2), ..STRAIGHT };
/// Long enough for several stores and loads behind each other.
const LONG: Shape = Shape { taste: Taste::Dense, lines: (4, 7), threads: (2, 2), registers: 3, ..STRAIGHT };
/// With loops.
const ROUND: Shape = Shape { loops: true, lines: (2, 4), ..DENSE };
const WILD: Shape = Shape { taste: Taste::Wild, ..SMALL };

/// What a search on the plain TSO machine found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// A goal state, or an error of a thread.
    Violation,
    /// Only goal states with frozen buffers.
    Frozen,
    /// None, and nothing was left out.
    Nothing,
    /// None with buffers of this size, and larger ones were asked for.
    Bounded,
    /// None, and not everything was seen.
    Unknown,
}

impl Found {
    fn is_none(self) -> bool {
        matches!(self, Found::Nothing | Found::Bounded)
    }
}

fn search(program: &Program, goal: &Goal, bound: tso::Bound) -> Found {
    let start = State::initial(program);
    let mut seen = HashSet::from([start.clone()]);
    let mut todo = VecDeque::from([start]);
    let (mut complete, mut bounded, mut frozen) = (true, false, false);
    while let Some(state) = todo.pop_front() {
        if state.against(program, goal).is_some() {
            if state.buffers.iter().all(|b| b.is_empty()) {
                return Found::Violation;
            }
            frozen = true;
        }
        if seen.len() > MOST {
            complete = false;
            break;
        }
        let (steps, kept) = tso::steps(program, &state, bound);
        bounded |= kept;
        for step in steps {
            if step.event.trap.is_some() {
                return Found::Violation;
            }
            if seen.insert(step.state.clone()) {
                todo.push_back(step.state);
            }
        }
    }
    match complete {
        _ if frozen => Found::Frozen,
        false => Found::Unknown,
        true if bounded => Found::Bounded,
        true => Found::Nothing,
    }
}

fn waits(instr: &Instr) -> bool {
    instr.drains_buffer()
}

/// The walk from a store that the choices lead to, up to a load on it.
fn walk(program: &Program, thread: ThreadId, first: EdgeId, choices: &[usize]) -> Option<DelayedPath> {
    let graph = program.thread(thread);
    let mut edges = vec![first];
    let mut at = graph.edge(first).to;
    for choice in choices.iter().take(STEPS) {
        let possible = graph.edges_from(at);
        let possible: Vec<_> = possible.into_iter().filter(|(_, e)| !waits(&e.instr)).collect();
        let Some((id, edge)) = possible.get(choice % possible.len().max(1)) else { break };
        edges.push(*id);
        at = edge.to;
    }
    let is_load = |id: &EdgeId| matches!(graph.edge(*id).instr, Instr::Load { .. });
    let loads: Vec<usize> = (1..edges.len()).filter(|&i| is_load(&edges[i])).collect();
    let last = *loads.get(choices.last()? % loads.len().max(1))?;
    edges.truncate(last + 1);
    Some(DelayedPath { thread, edges })
}

/// Some delayed path of the program, if the choices find one.
fn path(program: &Program, choices: &[usize]) -> Option<DelayedPath> {
    let is_store = |i: &Instr| matches!(i, Instr::Store { .. });
    let stores = program.thread_ids().flat_map(|t| {
        let stores = program.thread(t).edges().filter(|(_, e)| is_store(&e.instr));
        stores.map(move |(id, _)| (t, id)).collect::<Vec<_>>()
    });
    let stores: Vec<(ThreadId, EdgeId)> = stores.collect();
    let from = choices.first()? % stores.len().max(1);
    let all = stores.iter().cycle().skip(from).take(stores.len());
    all.into_iter().find_map(|&(t, id)| walk(program, t, id, &choices[1..]))
}

/// What extensions did.
struct Made {
    new: Extended,
    /// Stores that may be issued at the same time.
    stores: usize,
    /// Locations inside the paths. With the thread there, what is not asked may be lost.
    inner: HashSet<(ThreadId, Loc)>,
}

/// The program extended along as many paths as there are lists of choices.
fn extended(program: &Program, goal: Goal, all: &[Vec<usize>], form: Form) -> Option<Made> {
    let mut now = Extended { program: program.clone(), goal };
    let (mut stores, mut inner) = (0, HashSet::new());
    for choices in all {
        let path = path(&now.program, choices)?;
        let thread = now.program.thread(path.thread);
        let is_store = |e: &&EdgeId| matches!(thread.edge(**e).instr, Instr::Store { .. });
        stores += path.edges.iter().filter(is_store).count();
        inner.extend(path.edges[1..].iter().map(|e| (path.thread, thread.edge(*e).from)));
        now = extend(&now.program, &now.goal, &path, form, &Limits::default()).expect("it is a path");
    }
    Some(Made { new: now, stores, inner })
}

/// What an SC run of the extended program shows is true of the program.
fn projected(program: &Program, goal: &Goal, new: &Extended) -> Result<bool, TestCaseError> {
    let options = Options { model: Model::Sc, workers: 1, ..Options::default() };
    let limits = Limits { states: Some(10 * MOST as u64), ..Limits::default() };
    let outcome = engine::check(&new.program, &new.goal, &options, &limits).expect("no internal error");
    let Answer::Fails(trace) = outcome.answer else { return Ok(false) };
    let actions: Vec<_> = trace.events.iter().map(|e| e.action).collect();
    let run = project(&new.program, &actions);
    let done = replay::perform(program, Model::Tso, goal, run, &Limits::default());
    let (_, against) = done.map_err(|m| TestCaseError::fail(format!("the projected run: {m}")))?;
    prop_assert!(against.is_some(), "the projected run does not reach the goal");
    Ok(true)
}

fn shown(new: &Extended) -> String {
    let goal: Vec<String> =
        new.goal.clauses.iter().map(|c| c.pred.show(&|a| new.program.show_atom(a))).collect();
    let threads = new.program.threads().iter().map(|t| {
        let edge = |(id, e): (EdgeId, &Edge)| {
            let text = t.show_instr(&new.program, &e.instr);
            format!("  {}: {} -> {}: {text}  {:?}\n", id.0, e.from.0, e.to.0, e.origin)
        };
        format!("{}\n{}", t.name(), t.edges().map(edge).collect::<String>())
    });
    format!("{}{}", threads.collect::<String>(), goal.join("\n"))
}

/// Where the threads are, what their registers hold, and memory.
type Facts = (Vec<Loc>, Vec<Vec<Value>>, Vec<Value>);

/// The states with empty buffers and no error, as far as `old` has their parts; `None` if there are too many.
fn drained(program: &Program, old: &Program, model: Model, bound: tso::Bound) -> Option<HashSet<Facts>> {
    let start = State::initial(program);
    let mut seen = HashSet::from([start.clone()]);
    let mut todo = VecDeque::from([start]);
    let mut all = HashSet::new();
    while let Some(state) = todo.pop_front() {
        let known = |t: ThreadId| state.at[t.index()].index() < old.thread(t).graph().node_count();
        if state.buffers.iter().all(|b| b.is_empty()) && program.thread_ids().all(known) {
            let mut registers = state.registers.clone();
            for t in program.thread_ids() {
                registers[t.index()].truncate(old.thread(t).registers().len());
            }
            all.insert((state.at.clone(), registers, state.memory.clone()));
        }
        if seen.len() > MOST {
            return None;
        }
        let steps = match model {
            Model::Sc => sc::steps(program, &state),
            Model::Tso => tso::steps(program, &state, bound).0,
        };
        for step in steps.into_iter().filter(|s| s.event.trap.is_none()) {
            if seen.insert(step.state.clone()) {
                todo.push_back(step.state);
            }
        }
    }
    Some(all)
}

/// Which facts of a state to ask for.
#[derive(Clone, Copy, Debug)]
enum Asked {
    All,
    /// All but memory.
    Threads,
    Some(u64),
    /// Some, and where threads are not instead of where they are.
    SomeElsewhere(u64),
}

fn asked() -> impl Strategy<Value = Asked> {
    prop_oneof![
        Just(Asked::All),
        Just(Asked::Threads),
        any::<u64>().prop_map(Asked::Some),
        any::<u64>().prop_map(Asked::SomeElsewhere),
    ]
}

fn goal((at, registers, memory): &Facts, asked: Asked) -> Goal {
    let equals = |a: Atom, v: Value| Expr::binary(BinOp::Eq, Expr::Atom(a), Expr::Const(v));
    let mut facts: Vec<Pred> = Vec::new();
    for (t, loc) in at.iter().enumerate() {
        let place = |l: u32| Expr::Atom(Atom::At(ThreadId(t as u16), vec![Loc(l)]));
        // Every thread has three locations or more.
        let other = |mask: u64| (mask >> 60) as u32 % 3;
        facts.push(match asked {
            Asked::SomeElsewhere(mask) if loc.0 != other(mask) => place(other(mask)).negated(),
            _ => place(loc.0),
        });
        let registers = registers[t].iter().enumerate();
        facts.extend(registers.map(|(r, v)| equals(Atom::Reg(ThreadId(t as u16), Reg(r as u16)), *v)));
    }
    if !matches!(asked, Asked::Threads) {
        facts.extend(memory.iter().enumerate().map(|(a, v)| equals(Atom::Mem(Addr(a as u32)), *v)));
    }
    let wanted = |i: usize| match asked {
        Asked::All | Asked::Threads => true,
        Asked::Some(mask) | Asked::SomeElsewhere(mask) => mask >> (i % 60) & 1 != 0,
    };
    let facts = facts.into_iter().enumerate().filter(|(i, _)| wanted(*i)).map(|(_, f)| f);
    let pred = facts.reduce(|a, b| Expr::binary(BinOp::And, a, b)).unwrap_or(Expr::Const(1));
    Goal { clauses: vec![Clause { when: When::Always, pred, property: 0 }], ..Goal::default() }
}

/// The state to ask for: one that SC does not have, and with a thread inside the paths, if there is any such.
fn interesting<'a>(
    (tso, sc): (&'a HashSet<Facts>, &HashSet<Facts>),
    inner: &HashSet<(ThreadId, Loc)>,
    pick: usize,
) -> &'a Facts {
    let inside = |(at, ..): &Facts| (0..).zip(at).any(|(t, loc)| inner.contains(&(ThreadId(t), *loc)));
    let rank = |f: &&Facts| (sc.contains(*f), !inside(f));
    let best = tso.iter().map(|f| rank(&f)).min().expect("there is the initial state");
    let mut all: Vec<&Facts> = tso.iter().filter(|f| rank(f) == best).collect();
    all.sort();
    all[pick % all.len()]
}

/// A state of the program under TSO is found after an extension that knows what is asked; all states with
/// no thread inside the paths are found anyway; and all states that are found are states of the program.
fn same_states(
    program: &Program,
    choices: &[Vec<usize>],
    (pick, asked): (usize, Asked),
    bound: Option<usize>,
) -> Result<(), TestCaseError> {
    let entries = |n| bound.map_or(tso::Bound::Unbounded, |b| tso::Bound::Entries(b + n));
    let states = |program: &Program, old, n| drained(program, old, Model::Tso, entries(n));
    let Some(Made { inner, .. }) = extended(program, Goal::default(), choices, Form::Exact) else {
        return Ok(());
    };
    let Some(before) = states(program, program, 0) else { return Ok(()) };
    let sc = drained(program, program, Model::Sc, entries(0)).unwrap_or_default();
    let goal = goal(interesting((&before, &sc), &inner, pick), asked);
    let Some(Made { new, stores, inner }) = extended(program, goal, choices, Form::Exact) else {
        return Ok(());
    };
    let after = search(&new.program, &new.goal, entries(0));
    prop_assert!(!after.is_none(), "a state is lost:\n{}", shown(&new));
    let Some(after) = states(&new.program, program, 0) else { return Ok(()) };
    let outside = |(at, _, _): &&Facts| program.thread_ids().all(|t| !inner.contains(&(t, at[t.index()])));
    let lost = before.difference(&after).find(outside);
    prop_assert!(lost.is_none(), "a state is lost: {lost:?}\n{}", shown(&new));
    let allowed = if bound.is_some() { states(program, program, stores) } else { Some(before) };
    let strange = allowed.as_ref().and_then(|allowed| after.difference(allowed).next());
    prop_assert!(strange.is_none(), "a state is new: {strange:?}\n{}", shown(&new));
    Ok(())
}

/// The same goals under TSO. `bound` is for buffers; those of the program may have to be longer than those of
/// the extended one.
fn same_answers(
    program: &Program,
    choices: &[Vec<usize>],
    bound: Option<usize>,
) -> Result<(), TestCaseError> {
    let goal = Goal::of(program);
    let Some(Made { new, stores, .. }) = extended(program, goal.clone(), choices, Form::Exact) else {
        return Ok(());
    };
    let entries = |n| bound.map_or(tso::Bound::Unbounded, |b| tso::Bound::Entries(b + n));
    let after = search(&new.program, &new.goal, entries(0));
    if search(program, &goal, entries(0)) == Found::Violation {
        prop_assert!(!after.is_none(), "a violation is lost:\n{}", shown(&new));
    }
    if matches!(after, Found::Violation | Found::Frozen) {
        let before = search(program, &goal, entries(stores));
        prop_assert!(!before.is_none(), "a violation is new:\n{}", shown(&new));
    }
    projected(program, &goal, &new)?;
    Ok(())
}

/// Additive: SC runs show nothing that TSO does not have, and all that they showed before.
fn nothing_new(program: &Program, choices: &[Vec<usize>]) -> Result<(), TestCaseError> {
    let goal = Goal::of(program);
    let Some(Made { new, .. }) = extended(program, goal.clone(), choices, Form::Additive) else {
        return Ok(());
    };
    let old = Extended { program: program.clone(), goal: goal.clone() };
    let before = projected(program, &goal, &old)?;
    let after = projected(program, &goal, &new)?;
    prop_assert!(after || !before, "a violation is lost:\n{}", shown(&new));
    Ok(())
}

/// Path after path, what SC shows of a state that only TSO has is true.
fn weak_state_shown(
    program: &Program,
    choices: &[Vec<usize>],
    (pick, asked): (usize, Asked),
    form: Form,
) -> Result<(), TestCaseError> {
    let states = |model| drained(program, program, model, tso::Bound::Unbounded);
    let (Some(tso), Some(sc)) = (states(Model::Tso), states(Model::Sc)) else { return Ok(()) };
    let mut weak: Vec<&Facts> = tso.difference(&sc).collect();
    weak.sort();
    let Some(state) = weak.get(pick % weak.len().max(1)) else { return Ok(()) };
    let goal = goal(state, asked);
    for times in 1..=choices.len() {
        let Some(Made { new, .. }) = extended(program, goal.clone(), &choices[..times], form) else { break };
        projected(program, &goal, &new)?;
    }
    Ok(())
}

/// A line of a program that is all about order: every store has its own value, every load its own register.
fn line(kind: u8, number: usize) -> String {
    let before = format!("r{}", number.saturating_sub(1));
    match kind {
        0 => format!("load r{number}, [x]"),
        1 => format!("load r{number}, [y]"),
        2 => format!("store [x], {number}"),
        3 => format!("store [y], {number}"),
        4 => format!("store [{before} & 1], {number}"),
        5 => format!("load r{number}, [1 - ({before} & 1)]"),
        6 => format!("assume {before} == 0"),
        7 => format!("if {before} > 0 goto out"),
        8 => format!("{before} = 9"),
        _ => "fence".to_string(),
    }
}

/// Instructions of the first thread beside others: where, which, and where they lead to. Forward, or round a
/// loop.
fn with_more_edges(program: &Program, more: &[[usize; 3]], loops: bool) -> Program {
    let mut parts = program.to_parts();
    let edges = &mut parts.threads[0].edges;
    let old = edges.clone();
    for [place, instr, to] in more.iter().map(|m| m.map(|i| i % old.len())) {
        let (from, to) = (old[place].from, if loops { old[to].from } else { old[to].to });
        if loops || from < to {
            edges.push(Edge { from, to, ..old[instr].clone() });
        }
    }
    Program::new(parts).expect("edges between locations are fine")
}

/// One thread that delays, and one that watches it.
fn watched_program(loops: bool) -> impl Strategy<Value = Shown> {
    let kind = prop_oneof![8 => 0u8..4, 3 => 4u8..9, 1 => Just(9u8)];
    let delaying = prop::collection::vec(kind, if loops { 1..3 } else { 2..6 });
    let watching = prop::collection::vec(0u8..4, if loops { 3..5 } else { 3..7 });
    let more = prop::collection::vec(any::<[usize; 3]>(), usize::from(loops)..3);
    (delaying, watching, more).prop_map(move |(delaying, watching, more)| {
        let lines = |from, kinds: &[u8]| -> String {
            kinds.iter().zip(from..).map(|(kind, i)| format!("  {}\n", line(*kind, i))).collect()
        };
        let source = format!(
            "shared x, y\nthread p\n  store [x], 1\n{}out: load last, [y]\nend\nthread q\n{}end\nforbid 0\n",
            lines(2, &delaying),
            lines(10, &watching)
        );
        let program =
            overtake::front::tso::read(&source, &[], &Limits::default()).expect("it is a program").program;
        Shown(with_more_edges(&program, &more, loops))
    })
}

fn choices(times: usize) -> impl Strategy<Value = Vec<Vec<usize>>> {
    prop::collection::vec(prop::collection::vec(any::<usize>(), 4..STEPS + 4), 1..=times)
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn extensions_keep_the_goals_of_a_program_without_loops(
        program in program(STRAIGHT), choices in choices(3)
    ) {
        same_answers(&program.0, &choices, None)?;
    }

    #[test]
    fn extensions_keep_what_a_run_shows(
        program in pointed_program(STRAIGHT, Model::Tso), choices in choices(2)
    ) {
        same_answers(&program.0, &choices, None)?;
    }

    #[test]
    fn extensions_keep_the_goals_of_a_program_with_loops(
        program in program(SMALL), choices in choices(3), bound in 1usize..3
    ) {
        same_answers(&program.0, &choices, Some(bound))?;
    }

    #[test]
    fn extensions_keep_the_goals_of_a_wild_program(
        program in program(WILD), choices in choices(2), bound in 1usize..3
    ) {
        same_answers(&program.0, &choices, Some(bound))?;
    }

    #[test]
    fn added_paths_show_nothing_new(
        program in program(SMALL),
        long in pointed_program(LONG, Model::Tso),
        choices in choices(3),
    ) {
        nothing_new(&program.0, &choices)?;
        nothing_new(&long.0, &choices)?;
    }

    #[test]
    fn an_extension_keeps_the_states_of_a_program_without_loops(
        program in program(STRAIGHT), choices in choices(2), ask in (any::<usize>(), asked())
    ) {
        same_states(&program.0, &choices, ask, None)?;
    }

    #[test]
    fn an_extension_keeps_the_states_of_a_dense_program(
        program in program(DENSE), choices in choices(1), ask in (any::<usize>(), asked())
    ) {
        same_states(&program.0, &choices, ask, None)?;
    }

    #[test]
    fn an_extension_keeps_the_states_of_a_watched_program(
        program in watched_program(false), choices in choices(1), ask in (any::<usize>(), asked())
    ) {
        same_states(&program.0, &choices, ask, None)?;
    }

    #[test]
    fn extensions_keep_the_states_of_a_watched_program(
        program in watched_program(false), choices in choices(3), ask in (any::<usize>(), asked())
    ) {
        same_states(&program.0, &choices, ask, None)?;
    }

    #[test]
    fn an_extension_keeps_the_states_of_a_watched_program_with_loops(
        program in watched_program(true),
        choices in choices(1),
        ask in (any::<usize>(), asked()),
        bound in 1usize..3,
    ) {
        same_states(&program.0, &choices, ask, Some(bound))?;
    }

    #[test]
    fn extensions_keep_the_states_of_a_long_program(
        program in program(LONG), choices in choices(3), ask in (any::<usize>(), asked())
    ) {
        same_states(&program.0, &choices, ask, None)?;
    }

    #[test]
    fn extensions_keep_the_states_of_a_program_with_loops(
        program in program(SMALL),
        dense in program(ROUND),
        choices in choices(2),
        ask in (any::<usize>(), asked()),
        bound in 1usize..3,
    ) {
        same_states(&program.0, &choices, ask, Some(bound))?;
        same_states(&dense.0, &choices, ask, Some(bound))?;
    }

    #[test]
    fn runs_to_states_that_only_tso_has_project(
        program in program(DENSE),
        watched in watched_program(false),
        choices in choices(3),
        ask in (any::<usize>(), asked()),
    ) {
        for form in [Form::Exact, Form::Additive] {
            weak_state_shown(&program.0, &choices, ask, form)?;
            weak_state_shown(&watched.0, &choices, ask, form)?;
        }
    }
}

#[test]
fn a_path_that_is_none_is_refused() {
    let source = "shared x, y
        thread p; store [x], 1; load r, [y]; fence; load s, [y]; end
        forbid p.r == 1";
    let program =
        overtake::front::tso::read(source, &[], &Limits::default()).expect("it is a program").program;
    let refused = |thread: u16, edges: &[u32]| {
        let edges = edges.iter().map(|e| EdgeId(*e)).collect();
        let path = DelayedPath { thread: ThreadId(thread), edges };
        extend(&program, &Goal::of(&program), &path, Form::Exact, &Limits::default()).err()
    };
    assert_eq!(refused(1, &[0, 1]), Some(Refused::NoSuchThread(1)));
    assert_eq!(refused(0, &[0, 9]), Some(Refused::NoSuchEdge(1)));
    assert_eq!(refused(0, &[]), Some(Refused::Ends));
    assert_eq!(refused(0, &[1]), Some(Refused::Ends));
    assert_eq!(refused(0, &[0, 3]), Some(Refused::Gap(1)));
    assert_eq!(refused(0, &[0, 1, 2, 3]), Some(Refused::Barrier(2)));
    assert_eq!(refused(0, &[0, 1]), None);
}

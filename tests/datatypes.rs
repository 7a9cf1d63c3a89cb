//! Tests of data types, and the axioms of memory models that they are asked under: what the solver says against
//! executions that are all enumerated and performed, against the explorer, and against what is known.

mod common;

use common::cases;
use overtake::certify::Remaining;
use overtake::datatype::{Calls, DataOptions, DataOutcome, Spec, check, fence_sets, written};
use overtake::engine::{self, Options};
use overtake::front::tso;
use overtake::limits::Limits;
use overtake::model::datatype::DataType;
use overtake::model::{Addr, Atom, EdgeId, FenceKinds, Instr, Loc, Program, Reg, ThreadId, Value};
use overtake::query::repair::{Change, Cheapest, Enough, Remedy};
use overtake::query::{Answer, Axioms, Goal, Model};
use overtake::repair::{Allowed, apply, repair_by_axioms};
use overtake::semantics::axioms::{Execution, Setting, Taken, perform};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, HashSet};

fn program(source: &str) -> Program {
    tso::read(source, &[], &Limits::default()).unwrap_or_else(|e| panic!("{e:?}\n{source}")).program
}

/// All registers, then all of memory.
fn everything(program: &Program) -> Vec<Atom> {
    let registers = program.thread_ids().flat_map(|t| {
        let count = program.thread(t).registers().len() as u16;
        (0..count).map(move |r| Atom::Reg(t, Reg(r)))
    });
    registers.chain((0..program.cells() as u32).map(|a| Atom::Mem(Addr(a)))).collect()
}

fn by_solver(program: &Program, model: Axioms) -> BTreeSet<Vec<Value>> {
    let found = engine::axiomatic_outcomes(program, &everything(program), model, &Limits::default()).unwrap();
    found.states.unwrap_or_else(|limit| panic!("{limit:?}"))
}

/// The shapes that everybody knows: threads, the final state that is asked for, and the models that allow it.
const SHAPES: [(&str, &str, &str, &str); 26] = [
    ("SB", "store [x], 1; load a, [y] | store [y], 1; load b, [x]", "a=0 b=0", "tps r"),
    ("SB+sl+sl", "store [x], 1; fence sl; load a, [y] | store [y], 1; fence sl; load b, [x]", "a=0 b=0", ""),
    ("SB+sl+po", "store [x], 1; fence sl; load a, [y] | store [y], 1; load b, [x]", "a=0 b=0", "tps r"),
    ("MP", "store [x], 1; store [y], 1 | load a, [y]; load b, [x]", "a=1 b=0", "ps r"),
    ("MP+ss+po", "store [x], 1; fence ss; store [y], 1 | load a, [y]; load b, [x]", "a=1 b=0", "r"),
    ("MP+po+ll", "store [x], 1; store [y], 1 | load a, [y]; fence ll; load b, [x]", "a=1 b=0", "ps r"),
    ("MP+ss+ll", "store [x], 1; fence ss; store [y], 1 | load a, [y]; fence ll; load b, [x]", "a=1 b=0", ""),
    ("LB", "load a, [x]; store [y], 1 | load b, [y]; store [x], 1", "a=1 b=1", "r"),
    ("LB+ls+po", "load a, [x]; fence ls; store [y], 1 | load b, [y]; store [x], 1", "a=1 b=1", "r"),
    ("LB+ls+ls", "load a, [x]; fence ls; store [y], 1 | load b, [y]; fence ls; store [x], 1", "a=1 b=1", ""),
    ("LB+datas", "load a, [x]; store [y], a | load b, [y]; store [x], b", "a=1 b=1", "r"),
    ("CoRR", "store [x], 1 | load a, [x]; load b, [x]", "a=1 b=0", "r"),
    ("CoRR+ll", "store [x], 1 | load a, [x]; fence ll; load b, [x]", "a=1 b=0", ""),
    ("CoRW1", "load a, [x]; store [x], 1", "a=1", ""),
    ("CoWR", "store [x], 1; load a, [x]", "a=0", ""),
    ("CoWW", "store [x], 1; store [x], 2 | load a, [x]; fence ll; load b, [x]", "a=2 b=1", ""),
    ("WRC", "store [x], 1 | load a, [x]; store [y], 1 | load b, [y]; load c, [x]", "a=1 b=1 c=0", "r"),
    (
        "WRC+ls+ll",
        "store [x], 1 | load a, [x]; fence ls; store [y], 1 | load b, [y]; fence ll; load c, [x]",
        "a=1 b=1 c=0",
        "",
    ),
    (
        "IRIW",
        "store [x], 1 | store [y], 1 | load a, [x]; load b, [y] | load c, [y]; load d, [x]",
        "a=1 b=0 c=1 d=0",
        "r",
    ),
    (
        "IRIW+ll+ll",
        "store [x], 1 | store [y], 1 | load a, [x]; fence ll; load b, [y] | load c, [y]; fence ll; load d, [x]",
        "a=1 b=0 c=1 d=0",
        "",
    ),
    ("n6", "store [x], 1; load a, [x]; load b, [y] | store [y], 1; store [x], 2", "a=1 b=0 x=1", "tps r"),
    ("S", "store [x], 2; store [y], 1 | load a, [y]; store [x], 1", "a=1 x=2", "ps r"),
    ("MP+rmw+po", "store [x], 1; cas o, [y], 0, 1 | load a, [y]; load b, [x]", "a=1 b=0", "s r"),
    ("MP+rmw+ll", "store [x], 1; cas o, [y], 0, 1 | load a, [y]; fence ll; load b, [x]", "a=1 b=0", "s r"),
    ("SB+rmws", "xchg o, [x], 1; load a, [y] | xchg o, [y], 1; load b, [x]", "a=0 b=0", "r"),
    ("two cas", "cas a, [x], 0, 1 | cas b, [x], 0, 1", "a=0 b=0", ""),
];

/// `t` TSO, `p` PSO, `s` PSO of SPARC, `r` relaxed.
fn letter(model: Axioms) -> char {
    match model {
        Axioms::Sc => 'c',
        Axioms::Tso => 't',
        Axioms::Pso => 'p',
        Axioms::PsoSparc => 's',
        Axioms::Relaxed => 'r',
    }
}

fn shape(threads: &str) -> Program {
    let bodies = threads.split('|').enumerate().map(|(k, body)| format!("thread t{k}\n{body}\nend\n"));
    program(&format!("shared x, y\n{}", bodies.collect::<String>()))
}

#[test]
fn shapes_are_allowed_where_they_are_known_to_be() {
    for (name, threads, asked, allowed) in SHAPES {
        let program = shape(threads);
        let atoms: Vec<(Atom, Value)> = asked.split(' ').map(|part| wanted(&program, part)).collect();
        let observed: Vec<Atom> = atoms.iter().map(|(a, _)| a.clone()).collect();
        let state: Vec<Value> = atoms.iter().map(|(_, v)| *v).collect();
        for model in Axioms::ALL {
            let found = engine::axiomatic_outcomes(&program, &observed, model, &Limits::default()).unwrap();
            let is_allowed = found.states.unwrap().contains(&state);
            assert_eq!(is_allowed, allowed.contains(letter(model)), "{name} under {}", model.name());
        }
    }
}

/// `a=1`: a register of whoever has it, or a cell.
fn wanted(program: &Program, part: &str) -> (Atom, Value) {
    let (name, value) = part.split_once('=').unwrap();
    let register = program.thread_ids().find_map(|t| {
        let found = program.thread(t).registers().iter().position(|r| r == name)?;
        Some(Atom::Reg(t, Reg(found as u16)))
    });
    let cell = || {
        let place = program.variables().iter().position(|v| v.name == name).unwrap();
        Atom::Mem(Addr(place as u32))
    };
    (register.unwrap_or_else(cell), value.parse().unwrap())
}

// ---- Executions, all enumerated. ----

/// What a thread can do if loads may read these values.
fn traces(program: &Program, t: ThreadId, values: &[Value]) -> Vec<Vec<Taken>> {
    let thread = program.thread(t);
    let mut all = Vec::new();
    let mut todo = vec![(thread.initial(), vec![0; thread.registers().len()], Vec::<Taken>::new())];
    while let Some((at, registers, taken)) = todo.pop() {
        if at == thread.end() {
            all.push(taken);
            continue;
        }
        for (edge, e) in thread.edges_from(at) {
            let eval = |e: &overtake::model::RegExpr| e.eval(&|r| registers[r.index()]).unwrap();
            let reads: Vec<Option<Value>> = match &e.instr {
                Instr::Load { .. } | Instr::Rmw { .. } => values.iter().map(|v| Some(*v)).collect(),
                Instr::Assume(e) if eval(e) == 0 => continue,
                _ => vec![None],
            };
            let picks: Vec<Option<Value>> = match e.instr {
                Instr::Any { lo, hi, .. } => (lo..=hi).map(Some).collect(),
                _ => vec![None],
            };
            for read in &reads {
                for choice in &picks {
                    let mut next = registers.clone();
                    match &e.instr {
                        Instr::Assign { dst, value } => next[dst.index()] = eval(value),
                        instr => {
                            if let (Some(dst), Some(value)) = (instr.target(), read.or(*choice)) {
                                next[dst.index()] = value;
                            }
                        }
                    }
                    let mut taken = taken.clone();
                    taken.push(Taken { edge, choice: *choice, read: *read, silent: false });
                    todo.push((e.to, next, taken));
                }
            }
        }
    }
    all
}

/// The accesses of a trace that take effect together.
fn together(program: &Program, t: usize, trace: &[Taken]) -> Vec<Vec<(usize, usize)>> {
    let mut groups: Vec<Vec<(usize, usize)>> = Vec::new();
    let mut open = false;
    for (step, taken) in trace.iter().enumerate() {
        let edge: EdgeId = taken.edge;
        match &program.thread(ThreadId(t as u16)).edge(edge).instr {
            Instr::Lock => {
                open = true;
                groups.push(vec![]);
            }
            Instr::Unlock => open = false,
            instr if instr.address().is_some() => match (open, groups.last_mut()) {
                (true, Some(last)) => last.push((t, step)),
                _ => groups.push(vec![(t, step)]),
            },
            _ => {}
        }
    }
    groups.retain(|g| !g.is_empty());
    groups
}

/// Whatever the axioms allow: every trace of every thread, in every order.
fn by_force(program: &Program, model: Axioms, values: &[Value]) -> BTreeSet<Vec<Value>> {
    let initial: Vec<Option<Value>> = program.initial_memory().iter().map(|v| Some(*v)).collect();
    let frees = HashSet::new();
    let setting = Setting { program, model, initial: &initial, first_cell: 0, frees: &frees };
    let mut states = BTreeSet::new();
    let mut chosen: Vec<Vec<Vec<Taken>>> = vec![vec![]];
    for t in program.thread_ids() {
        let own = traces(program, t, values);
        chosen = chosen
            .iter()
            .flat_map(|c| own.iter().map(|o| [&c[..], std::slice::from_ref(o)].concat()))
            .collect();
    }
    for threads in chosen {
        let groups: Vec<_> =
            threads.iter().enumerate().flat_map(|(t, trace)| together(program, t, trace)).collect();
        orders(&groups, &mut vec![], &mut |order| {
            let execution = Execution { threads: threads.clone(), order: order.to_vec() };
            if let Ok(done) = perform(&setting, &execution) {
                states.insert(done.registers.concat().into_iter().chain(done.memory).collect());
            }
        });
    }
    states
}

type Group = Vec<(usize, usize)>;

fn orders(left: &[Group], order: &mut Vec<Group>, each: &mut impl FnMut(&[Group])) {
    if left.is_empty() {
        return each(order);
    }
    for k in 0..left.len() {
        let mut rest = left.to_vec();
        order.push(rest.remove(k));
        orders(&rest, order, each);
        order.pop();
    }
}

/// A few instructions over two cells and values 0 and 1.
fn statement() -> impl Strategy<Value = String> {
    let cell = prop::sample::select(vec!["x", "y"]);
    let reg = prop::sample::select(vec!["r", "s"]);
    let value = prop::sample::select(vec!["0", "1", "1", "r", "s"]);
    let kinds = prop::sample::select(vec!["ll", "ls", "sl", "ss", "ll, ss", "sl, ls"]);
    prop_oneof![
        6 => (reg.clone(), cell.clone()).prop_map(|(r, x)| format!("load {r}, [{x}]")),
        6 => (cell.clone(), value.clone()).prop_map(|(x, v)| format!("store [{x}], {v}")),
        2 => kinds.prop_map(|k| format!("fence {k}")),
        1 => Just("fence".to_string()),
        1 => (reg.clone(), cell.clone(), value.clone()).prop_map(|(r, x, v)| format!("xchg {r}, [{x}], {v}")),
        1 => (reg.clone(), cell.clone(), value.clone(), value.clone())
            .prop_map(|(r, x, v, w)| format!("cas {r}, [{x}], {v}, {w}")),
        1 => (reg.clone(), cell.clone(), value.clone())
            .prop_map(|(r, x, v)| format!("if {r} == 1 {{ store [{x}], {v} }}")),
        1 => (reg.clone(), cell.clone()).prop_map(|(r, x)| format!("if {r} == 0 {{ load {r}, [{x}] }} else {{ fence ss }}")),
        1 => (reg.clone(), cell.clone(), value).prop_map(|(r, x, v)| format!("load {r}, [{x} ^ ({v} & 1)]")),
        1 => (reg.clone(), cell).prop_map(|(r, x)| format!("lock; load {r}, [{x}]; store [{x}], {r}; unlock")),
        1 => reg.prop_map(|r| format!("{r} = any(0..2)")),
    ]
}

fn threads() -> impl Strategy<Value = Vec<Vec<String>>> {
    prop_oneof![
        3 => prop::collection::vec(prop::collection::vec(statement(), 1..4), 2),
        1 => prop::collection::vec(prop::collection::vec(statement(), 1..3), 3),
    ]
}

fn few_accesses(program: &Program) -> bool {
    let count = |t: &overtake::model::Thread| t.edges().filter(|(_, e)| e.instr.address().is_some()).count();
    program.threads().iter().map(count).sum::<usize>() <= 6
}

fn text(threads: &[Vec<String>]) -> String {
    let bodies = threads.iter().enumerate().map(|(k, t)| format!("thread t{k}\n{}\nend\n", t.join("\n")));
    format!("shared x, y\n{}", bodies.collect::<String>())
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn the_solver_finds_what_enumeration_finds(threads in threads()) {
        let source = text(&threads);
        let program = program(&source);
        prop_assume!(few_accesses(&program));
        for model in Axioms::ALL {
            let (found, all) = (by_solver(&program, model), by_force(&program, model, &[0, 1]));
            prop_assert_eq!(found, all, "{} {}", model.name(), source);
        }
    }

    #[test]
    fn axioms_and_machines_agree(threads in prop::collection::vec(prop::collection::vec(statement(), 1..6), 2..4)) {
        let source = text(&threads);
        let program = program(&source);
        let atoms = everything(&program);
        for (model, axioms) in [(Model::Sc, Axioms::Sc), (Model::Tso, Axioms::Tso)] {
            let options = Options { model, ..Options::with_workers(1) };
            let explored = engine::outcomes(&program, &atoms, &options, &Limits::default());
            prop_assert_eq!(explored.states.unwrap(), by_solver(&program, axioms), "{}", source);
        }
    }
}

// ---- Fences of the four kinds, by force. ----

/// A kind of fence at a location of a thread.
type KindAt = (ThreadId, Loc, usize);

fn everywhere(program: &Program) -> Vec<KindAt> {
    let places = program.thread_ids().flat_map(|t| program.thread(t).locations().map(move |at| (t, at)));
    places.flat_map(|(t, at)| (0..4).map(move |kind| (t, at, kind))).collect()
}

fn fenced(program: &Program, fences: &[KindAt]) -> Program {
    let places: BTreeSet<(ThreadId, Loc)> = fences.iter().map(|(t, at, _)| (*t, *at)).collect();
    let changes: Vec<Change> = places.iter().map(|&(thread, at)| Change::Fence { thread, at }).collect();
    let mut parts = apply(program, &changes).unwrap().to_parts();
    for (t, own) in parts.threads.iter_mut().enumerate() {
        let old = program.threads()[t].edges().count();
        for edge in &mut own.edges[old..] {
            let here = fences.iter().filter(|(u, at, _)| u.index() == t && *at == edge.from);
            let kinds = here.fold(FenceKinds::NONE, |kinds, (_, _, kind)| kinds.and(FenceKinds::one(*kind)));
            edge.instr = Instr::Partial(kinds);
        }
    }
    Program::new(parts).unwrap()
}

/// Nothing where the axioms cannot be asked.
fn holds(program: &Program, model: Axioms) -> Option<bool> {
    let goal = Goal::of(program);
    match engine::axiomatic_check(program, &goal, model, &Limits::default()).unwrap().answer {
        Answer::Holds(()) => Some(true),
        Answer::Fails(_) => Some(false),
        Answer::Unknown(_) => None,
    }
}

fn subsets(all: &[KindAt], size: usize) -> Vec<Vec<KindAt>> {
    if size == 0 {
        return vec![vec![]];
    }
    let with = |k: usize| subsets(&all[k + 1..], size - 1).into_iter().map(move |rest| (k, rest));
    (0..all.len()).flat_map(with).map(|(k, rest)| [vec![all[k]], rest].concat()).collect()
}

fn of_kinds(program: &Program, model: Axioms, list: usize) -> Answer<Enough, Remaining> {
    let (allowed, limits) = (Allowed::default(), Limits::default());
    repair_by_axioms(program, model, list, &allowed, &limits).unwrap().answer
}

fn chosen(set: &[Remedy]) -> Vec<KindAt> {
    let each = set.iter().flat_map(|remedy| remedy.changes.iter().map(|c| (*c, remedy.kind.unwrap())));
    let mut all: Vec<KindAt> = each
        .map(|(change, kind)| match change {
            Change::Fence { thread, at } => (thread, at, kind),
            other => panic!("{other:?}"),
        })
        .collect();
    all.sort();
    all
}

/// The threads, with a property against final states that the model has and SC has not: this one or all of them;
/// nothing if there is none.
fn with_property(source: &str, model: Axioms, which: Option<prop::sample::Index>) -> Option<String> {
    let plain = program(source);
    let (weak, sc) = (by_solver(&plain, model), by_solver(&plain, Axioms::Sc));
    let mut extra: Vec<&Vec<Value>> = weak.difference(&sc).collect();
    if extra.is_empty() {
        return None;
    }
    if let Some(which) = which {
        extra = vec![extra[which.index(extra.len())]];
    }
    let atom = |atom: &Atom| match atom {
        Atom::Reg(t, r) => format!("t{}.{}", t.0, plain.thread(*t).registers()[r.index()]),
        Atom::Mem(Addr(cell)) => format!("[{}]", plain.variables()[*cell as usize].name),
        other => panic!("{other:?}"),
    };
    let atoms: Vec<String> = everything(&plain).iter().map(atom).collect();
    let state = |state: &Vec<Value>| {
        let equal = atoms.iter().zip(state).map(|(a, v)| format!("{a} == {v}"));
        format!("({})", equal.collect::<Vec<_>>().join(" && "))
    };
    let states: Vec<String> = extra.into_iter().map(state).collect();
    Some(format!("{source}never {}\n", states.join(" || ")))
}

/// Is the answer right, whatever else is tried? How many fences there are, if any are enough.
fn fences_are_fewest(program: &Program, model: Axioms) -> Result<Option<usize>, TestCaseError> {
    let all = everywhere(program);
    match of_kinds(program, model, 1) {
        Answer::Holds(enough) => {
            let set = chosen(&enough.sets[0]);
            prop_assert_eq!(
                (enough.cost as usize, &enough.cheapest),
                (enough.sets[0].len(), &Cheapest::Proved)
            );
            prop_assert_eq!(holds(&fenced(program, &set), model), Some(true));
            for size in 0..set.len().min(3) {
                for fewer in subsets(&all, size) {
                    prop_assert_eq!(holds(&fenced(program, &fewer), model), Some(false), "{:?}", fewer);
                }
            }
            Ok(Some(set.len()))
        }
        Answer::Fails(_) => {
            prop_assert_eq!(holds(&fenced(program, &all), model), Some(false));
            Ok(None)
        }
        Answer::Unknown(_) => {
            prop_assert_eq!(holds(program, model), None);
            Ok(None)
        }
    }
}

const WEAKER: [Axioms; 3] = [Axioms::Pso, Axioms::PsoSparc, Axioms::Relaxed];

proptest! {
    #![proptest_config(cases(120))]

    #[test]
    fn no_fewer_fences_are_enough(
        ways in (one_way("x", "y"), prop_oneof![one_way("x", "y"), one_way("y", "x")]),
        which: Option<prop::sample::Index>,
    ) {
        let source = text(&[ways.0, ways.1]);
        let stated: Vec<(Axioms, String)> =
            WEAKER.iter().filter_map(|&model| Some((model, with_property(&source, model, which)?))).collect();
        for (model, source) in stated {
            let found = fences_are_fewest(&program(&source), model);
            prop_assert!(matches!(found, Ok(Some(_))), "{} {source}: {found:?}", model.name());
        }
    }

    #[test]
    fn no_fewer_fences_prevent_errors(mut threads in threads(), asserted in prop::sample::select(vec!["r == 0", "r != 1", "r != s"])) {
        for thread in &mut threads {
            thread.insert(0, "r = 0; s = 2".to_string());
            thread.push(format!("assert {asserted}"));
        }
        let program = program(&text(&threads));
        prop_assume!(few_accesses(&program));
        for model in WEAKER {
            let found = fences_are_fewest(&program, model);
            prop_assert!(found.is_ok(), "{} {}: {found:?}", model.name(), text(&threads));
        }
    }

    /// Where every step is an access, every location is a place of its own.
    #[test]
    fn all_smallest_sets_are_listed(
        threads in prop::collection::vec(prop::collection::vec(plain_access(), 2..4), 2),
        which: Option<prop::sample::Index>,
    ) {
        let source = text(&threads);
        for model in WEAKER {
            let Some(source) = with_property(&source, model, which) else { continue };
            let program = program(&source);
            let Answer::Holds(enough) = of_kinds(&program, model, 1000) else { panic!("{source}") };
            if enough.cost > 2 {
                continue;
            }
            let listed: BTreeSet<Vec<KindAt>> = enough.sets.iter().map(|set| chosen(set)).collect();
            let good = |set: &Vec<KindAt>| holds(&fenced(&program, set), model) == Some(true);
            let all = subsets(&everywhere(&program), enough.cost as usize);
            let all: BTreeSet<Vec<KindAt>> = all.into_iter().filter(good).collect();
            prop_assert_eq!(listed, all, "{} {}", model.name(), source);
        }
    }
}

/// A thread that accesses one cell and then the other.
fn one_way(first: &'static str, second: &'static str) -> impl Strategy<Value = Vec<String>> {
    let access = |cell: &'static str| {
        prop_oneof![
            4 => prop::sample::select(vec!["r", "s"]).prop_map(move |r| format!("load {r}, [{cell}]")),
            4 => (1..3).prop_map(move |v| format!("store [{cell}], {v}")),
            1 => Just(format!("xchg r, [{cell}], 1")),
            1 => Just(format!("if r == 0 {{ load s, [{cell}] }}")),
            1 => Just(format!("c = any(0..2); if c == 1 {{ store [{cell}], 1 }} else {{ store [{cell}], 2; s = 1 }}")),
        ]
    };
    let more = prop_oneof![
        2 => Just("c = 0".to_string()),
        1 => prop::sample::select(vec!["ll", "ls", "sl", "ss"]).prop_map(|kind| format!("fence {kind}")),
        1 => Just("if s == 0 { load r, [y] }".to_string()),
        1 => Just("lock; load s, [x]; store [y], 1; unlock".to_string()),
    ];
    let between = prop::collection::vec(more, 0..2);
    (access(first), between, access(second)).prop_map(|(a, between, b)| [vec![a], between, vec![b]].concat())
}

fn plain_access() -> impl Strategy<Value = String> {
    let cell = prop::sample::select(vec!["x", "y"]);
    let reg = prop::sample::select(vec!["r", "s"]);
    prop_oneof![
        4 => (reg.clone(), cell.clone()).prop_map(|(r, x)| format!("load {r}, [{x}]")),
        4 => (cell.clone(), 1..3).prop_map(|(x, v)| format!("store [{x}], {v}")),
        1 => (reg, cell).prop_map(|(r, x)| format!("xchg {r}, [{x}], 1")),
    ]
}

#[test]
fn shapes_need_the_fences_that_are_known() {
    let fewest = |name: &str, model: Axioms| {
        let (_, threads, asked, _) = SHAPES.iter().find(|(n, ..)| *n == name).unwrap();
        let atoms: Vec<String> = asked
            .split(' ')
            .map(|part| {
                let (register, value) = part.split_once('=').unwrap();
                let thread = threads.split('|').position(|t| t.contains(&format!("load {register},")));
                format!("t{}.{register} == {value}", thread.unwrap())
            })
            .collect();
        let bodies = threads.split('|').enumerate().map(|(k, body)| format!("thread t{k}\n{body}\nend\n"));
        let text = format!("shared x, y\n{}never {}\n", bodies.collect::<String>(), atoms.join(" && "));
        match of_kinds(&program(&text), model, 1000) {
            Answer::Holds(enough) if enough.sets.len() == 1 => enough.sets[0]
                .iter()
                .map(|r| FenceKinds::WORDS[r.kind.unwrap()])
                .collect::<Vec<_>>()
                .join(" "),
            other => panic!("{name}: {other:?}"),
        }
    };
    for (name, pso, relaxed) in [
        ("SB", "sl sl", "sl sl"),
        ("SB+sl+po", "sl", "sl"),
        ("MP", "ss", "ss ll"),
        ("MP+ss+po", "", "ll"),
        ("LB", "", "ls ls"),
        ("WRC", "", "ls ll"),
        ("IRIW", "", "ll ll"),
    ] {
        assert_eq!(fewest(name, Axioms::Pso), pso, "{name}");
        assert_eq!(fewest(name, Axioms::Relaxed), relaxed, "{name}");
    }
}

#[test]
fn accesses_that_nothing_orders_have_an_order() {
    let program = program(&text(&[vec!["store [x], 0".to_string()], vec!["store [y], 0".to_string()]]));
    for model in Axioms::ALL {
        assert_eq!(by_solver(&program, model), by_force(&program, model, &[0, 1]), "{}", model.name());
    }
}

// ---- Data types. ----

fn bundled(name: &str, defines: &[(&str, Value)]) -> DataType {
    let path = format!("{}/datatypes/{name}.dt", env!("CARGO_MANIFEST_DIR"));
    let defines: Vec<(String, Value)> = defines.iter().map(|(n, v)| (n.to_string(), *v)).collect();
    let source = std::fs::read_to_string(path).unwrap();
    read(&source, &defines)
}

fn read(source: &str, defines: &[(String, Value)]) -> DataType {
    let read = tso::read_datatype(source, &[], defines, &Limits::default());
    read.unwrap_or_else(|e| panic!("{e:?}\n{source}")).0
}

fn options(model: Axioms) -> DataOptions {
    DataOptions { model, spec: Spec::Mined, bound: None, with: BTreeSet::new(), proving: false }
}

/// With all kinds of fences at these places.
fn with(datatype: &DataType, model: Axioms, places: &[&str]) -> DataOptions {
    let mut options = options(model);
    for place in places {
        let number = datatype.candidates.iter().position(|c| c.name == *place).unwrap();
        let kinds = datatype.candidates[number].kinds.each();
        options.with.extend((0..4).filter(|k| kinds[*k]).map(|k| (number, k)));
    }
    options
}

fn asked(datatype: &DataType, test: &str, options: &DataOptions) -> DataOutcome {
    let test = datatype.tests.iter().find(|t| t.name == test).unwrap();
    check(test, &datatype.candidates, options, &Limits::default()).unwrap()
}

fn passes(datatype: &DataType, test: &str, options: &DataOptions) -> bool {
    match asked(datatype, test, options).answer {
        Answer::Holds(()) => true,
        Answer::Fails(_) => false,
        Answer::Unknown(limit) => panic!("{test}: {limit:?}"),
    }
}

fn fewest(datatype: &DataType, tests: &[&str], model: Axioms) -> usize {
    let numbers: Vec<usize> =
        tests.iter().map(|n| datatype.tests.iter().position(|t| t.name == *n).unwrap()).collect();
    let found = fence_sets(datatype, &numbers, &options(model), &Limits::default()).unwrap();
    match found.answer {
        Answer::Holds(sets) => sets[0].len(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_two_lock_queue_needs_its_two_fences() {
    let queue = bundled("two_lock_queue", &[]);
    for model in [Axioms::Sc, Axioms::Tso] {
        assert!(["T0", "T1", "Tpc2", "Ti2"].iter().all(|t| passes(&queue, t, &options(model))));
    }
    assert!(!passes(&queue, "T0", &options(Axioms::PsoSparc)));
    assert!(passes(&queue, "T0", &options(Axioms::Pso)));
    assert!(passes(&queue, "T0", &with(&queue, Axioms::PsoSparc, &["publish"])));
    let repaired = with(&queue, Axioms::Relaxed, &["publish", "consume"]);
    assert!(["T0", "T1", "Tpc2", "Ti2"].iter().all(|t| passes(&queue, t, &repaired)));
    for one in ["publish", "consume"] {
        assert!(!passes(&queue, "T0", &with(&queue, Axioms::Relaxed, &[one])));
    }
    assert_eq!(fewest(&queue, &["T0", "T1"], Axioms::Relaxed), 2);
}

#[test]
fn commit_points_and_mined_specifications_agree() {
    let queue = bundled("two_lock_queue", &[]);
    for places in [&[][..], &["publish"], &["consume"], &["publish", "consume"]] {
        for model in Axioms::ALL {
            for test in ["T0", "T1", "Tpc2"] {
                let mined = with(&queue, model, places);
                let commit = DataOptions { spec: Spec::Commit, ..mined.clone() };
                let same = passes(&queue, test, &mined) == passes(&queue, test, &commit);
                assert!(same, "{test} {places:?} {}", model.name());
            }
        }
    }
}

/// The queue with a text replaced.
fn changed(from: &str, to: &str) -> DataType {
    let path = format!("{}/datatypes/two_lock_queue.dt", env!("CARGO_MANIFEST_DIR"));
    let source = std::fs::read_to_string(path).unwrap();
    assert!(source.contains(from));
    read(&source.replace(from, to), &[])
}

#[test]
fn the_five_problems_come_out() {
    // 1: the commit point is the load of `head`; nothing is wrong with the queue itself.
    let wrong = changed(
        "    load n, [head]\n    commit load h, [n.next]",
        "    commit load n, [head]\n    load h, [n.next]",
    );
    let commit = DataOptions { spec: Spec::Commit, ..options(Axioms::Sc) };
    assert!(!passes(&wrong, "T0", &commit) && passes(&wrong, "T0", &options(Axioms::Sc)));
    // 2: allocation has no fences of its own. 3 and 4 are the two fences, above.
    let bare = changed("alloc reuse", "alloc reuse unfenced");
    let both = with(&bare, Axioms::Relaxed, &["publish", "consume"]);
    assert!(["T0", "T1", "Tpc2"].iter().all(|t| passes(&bare, t, &both)));
    assert!(!passes(&bare, "Tpc3", &both));
    // 5: the fence of `release` behind its store.
    let late = changed("    fence ls, ss\n    store [l], 0", "    store [l], 0\n    fence ls, ss");
    for (model, places) in
        [(Axioms::Relaxed, vec!["publish", "consume"]), (Axioms::PsoSparc, vec!["publish"])]
    {
        let repaired = with(&late, model, &places);
        assert!(passes(&late, "T0", &repaired) && !passes(&late, "T1", &repaired), "{}", model.name());
    }
}

#[test]
fn stacks_need_two_fences_and_aba_is_found() {
    let stack = bundled("treiber_stack", &[]);
    for model in [Axioms::Sc, Axioms::Tso] {
        assert!(["T0", "Tpc2", "Ti2"].iter().all(|t| passes(&stack, t, &options(model))));
    }
    assert_eq!(fewest(&stack, &["T0", "Tpc2"], Axioms::Relaxed), 2);
    let reuse = bundled("treiber_reuse", &[]);
    assert!(passes(&reuse, "T0", &options(Axioms::Sc)));
    assert!(!passes(&reuse, "Taba", &options(Axioms::Sc)));
}

#[test]
fn a_ring_with_room_for_several_needs_store_load_fences_on_tso() {
    assert_eq!(fewest(&bundled("ring", &[]), &["T0", "Tpc2", "Tpc3"], Axioms::Tso), 0);
    let ring = bundled("ring", &[("ROOM", 3)]);
    assert!(!passes(&ring, "Tpc4", &options(Axioms::Tso)));
    let found = fence_sets(&ring, &[3], &options(Axioms::Tso), &Limits::default()).unwrap();
    let Answer::Holds(sets) = found.answer else { panic!("{:?}", found.answer) };
    // The third kind is `sl`.
    assert!(sets.iter().all(|set| set.len() == 2 && set.iter().all(|(_, kind)| *kind == 2)), "{sets:?}");
}

#[test]
fn what_the_solver_does_not_find_is_proved() {
    let queue = bundled("two_lock_queue", &[]);
    let proving = DataOptions { proving: true, ..with(&queue, Axioms::Relaxed, &["publish", "consume"]) };
    for test in ["T0", "Tpc2"] {
        assert_eq!(asked(&queue, test, &proving).proved, Some(true));
    }
}

/// What all threads of a test observe, by the explorer.
fn explored(datatype: &DataType, test: usize, model: Model) -> BTreeSet<Vec<Value>> {
    let own = &datatype.tests[test];
    let program = written(own, &options(Axioms::Sc), &Limits::default()).unwrap().unwrap();
    let atoms: Vec<Atom> = Calls::of(own).observed.iter().map(|(t, r)| Atom::Reg(*t, *r)).collect();
    let options = Options { model, ..Options::with_workers(1) };
    engine::outcomes(&program, &atoms, &options, &Limits::default()).states.unwrap()
}

#[test]
fn observations_are_those_of_the_explorer() {
    let all = [
        ("ring", vec!["T0", "Tpc2", "Tpc3"]),
        ("treiber_stack", vec!["T0", "Ti2"]),
        ("two_lock_queue", vec!["T0"]),
    ];
    for (name, tests) in all {
        let datatype = bundled(name, &[]);
        for (k, test) in datatype.tests.iter().enumerate().filter(|(_, t)| tests.contains(&&t.name[..])) {
            let program = written(test, &options(Axioms::Sc), &Limits::default()).unwrap().unwrap();
            let atoms: Vec<Atom> = Calls::of(test).observed.iter().map(|(t, r)| Atom::Reg(*t, *r)).collect();
            for (model, axioms) in [(Model::Sc, Axioms::Sc), (Model::Tso, Axioms::Tso)] {
                let found = engine::axiomatic_outcomes(&program, &atoms, axioms, &Limits::default()).unwrap();
                assert_eq!(found.states.unwrap(), explored(&datatype, k, model), "{name} {}", test.name);
            }
        }
    }
}

/// Small operations, and a test of two or three threads.
fn small() -> impl Strategy<Value = String> {
    let body = || prop::collection::vec(statement(), 1..3).prop_map(|s| s.join("\n"));
    let uses = prop::sample::select(vec![
        "f | g",
        "f | f",
        "f g | g",
        "f | g | g",
        "f(1) | f(0)",
        "f(any(0..2)) | g",
    ]);
    (body(), body(), uses).prop_map(|(f, g, test)| {
        format!(
            "datatype small\nshared x, y\nop f(v) -> a\nr = v & 1\n{f}\nreturn r + 2 * s\nend\nop g() -> a\n{g}\nreturn r + 2 * s\nend\ntest T = {test}\n"
        )
        .replace("f(1)", "f(1)")
    })
}

proptest! {
    #![proptest_config(cases(30))]

    #[test]
    fn small_data_types_agree_with_enumeration(source in small()) {
        // Cells begin behind null here, so that addresses are another matter.
        let source = source.replace(" ^ (", " + 0 * (").replace("test T = f |", "test T = f(1) |").replace("| f\n", "| f(0)\n").replace("test T = f g", "test T = f(1) g");
        let datatype = read(&source, &[]);
        let test = &datatype.tests[0];
        let program = written(test, &options(Axioms::Sc), &Limits::default()).unwrap().unwrap();
        prop_assume!(few_accesses(&program));
        let observed = Calls::of(test).observed;
        let mut first: BTreeMap<u16, usize> = BTreeMap::new();
        let mut total = 0;
        for t in program.thread_ids() {
            first.insert(t.0, total);
            total += program.thread(t).registers().len();
        }
        let project = |state: &Vec<Value>| -> Vec<Value> {
            observed.iter().map(|(t, r)| state[first[&t.0] + r.index()]).collect()
        };
        let calls: Vec<usize> = test.threads.iter().map(|t| t.calls.len()).collect();
        prop_assume!(calls.iter().sum::<usize>() <= 3);
        // Serial runs are those in which every operation is one block.
        let serial = serial_observations(&source);
        for model in Axioms::ALL {
            let seen: BTreeSet<Vec<Value>> = by_force(&program, model, &[0, 1]).iter().map(project).collect();
            let fails = seen.iter().any(|o| !serial.contains(o));
            let outcome = asked(&datatype, "T", &options(model));
            prop_assert_eq!(matches!(outcome.answer, Answer::Fails(_)), fails, "{} {}", model.name(), source);
            prop_assert_eq!(outcome.observations, serial.len(), "{}", source);
        }
    }
}

/// The same file with a block around the body of each operation, explored under SC.
fn serial_observations(source: &str) -> BTreeSet<Vec<Value>> {
    let bodies = source.replace("lock; ", "").replace("; unlock", "");
    let blocks = bodies
        .replace("\nr = v & 1\n", "\nlock\nr = v & 1\n")
        .replace("op g() -> a\n", "op g() -> a\nlock\n");
    let blocks = blocks.replace("\nreturn", "\nunlock\nreturn");
    explored(&read(&blocks, &[]), 0, Model::Sc)
}

#[test]
fn mistakes_in_operations_are_failures() {
    let source = |body: &str| {
        format!(
            "datatype d\nshared x\nstruct n {{ a, b }}\nalloc reuse\nop f() -> r\n{body}\nend\ntest T = f | f\ntest S = f f | f\n"
        )
    };
    let fails = |body: &str| !passes(&read(&source(body), &[]), "T", &options(Axioms::Sc));
    assert!(fails("load p, [x]\nload r, [p.b]"), "null");
    assert!(fails("add o, [x], 1\nassert o == 0"), "assertion");
    assert!(fails("new p, n\nfree p\nfree p"), "double free");
    assert!(fails("new p, n\nload r, [p.a]"), "unwritten field");
    assert!(!fails("new p, n\nstore [p.a], 1\nload r, [p.a]\nfree p"), "nothing");
    // Both ways of taking two locks.
    let locks = "datatype d\nshared a, b\nop f()\nxchg r, [a], 1; assume r == 0\nxchg r, [b], 1; assume r == 0\nstore [b], 0; store [a], 0\nend\nop g()\nxchg r, [b], 1; assume r == 0\nxchg r, [a], 1; assume r == 0\nstore [a], 0; store [b], 0\nend\ntest T = f | g\ntest S = f | f\n";
    let locks = read(locks, &[]);
    assert!(!passes(&locks, "T", &options(Axioms::Sc)) && passes(&locks, "S", &options(Axioms::Sc)));
}

/// A counter that notes, before it tries again, that somebody came between; nobody may see the note.
const NOTED: &str = "datatype noted
shared x, note
op raise()
again:
    load r, [x]
    cas o, [x], r, r + 1
    if o == r goto done
    store [note], 1
    goto again
done:
end
op look()
    add o, [x], 1
    load r, [note]
    assert r == 0
end
op spare()
    fence? idle: ss
end
test T = raise | look
";

#[test]
fn runs_within_a_bound_are_those_of_all_threads() {
    let noted = read(NOTED, &[]);
    let within = DataOptions { bound: Some(1), ..options(Axioms::Sc) };
    let one = asked(&noted, "T", &within);
    assert!(matches!(one.answer, Answer::Holds(())) && !one.bound_is_enough, "{:?}", one.answer);
    let two = asked(&noted, "T", &DataOptions { bound: Some(2), ..within });
    let all = asked(&noted, "T", &options(Axioms::Sc));
    for outcome in [two, all] {
        assert!(matches!(outcome.answer, Answer::Fails(_)));
        assert!(outcome.size.variables > 0 && outcome.size.loads > 0, "{:?}", outcome.size);
    }
}

#[test]
fn a_run_with_an_assumption_that_fails_is_left_out() {
    let source = |condition: &str| {
        format!(
            "datatype d\nshared x, y\nop f()\nload r, [y]\nstore [x], 1\nassume {condition}\nend\n\
             op g()\nload r, [x]\nassert r == 0\nstore [y], 1\nend\ntest T = f | g\n"
        )
    };
    // In the order of `g` and `f` nothing goes wrong; what goes wrong otherwise has `f` read 0.
    assert!(passes(&read(&source("r == 1"), &[]), "T", &options(Axioms::Sc)));
    assert!(!passes(&read(&source("r <= 1"), &[]), "T", &options(Axioms::Sc)));
}

#[test]
fn operations_that_no_test_calls_have_places_for_fences() {
    assert_eq!(read(NOTED, &[]).candidates.len(), 1);
    let wrong = NOTED.replace("fence? idle: ss", "nothing()");
    assert!(tso::read_datatype(&wrong, &[], &[], &Limits::default()).is_err());
}

#[test]
fn a_queue_without_locks_needs_more_fences_where_it_may_try_again() {
    for (tries, count) in [(1, 4), (2, 7)] {
        assert_eq!(
            fewest(&bundled("michael_scott_queue", &[("TRIES", tries)]), &["T1"], Axioms::Relaxed),
            count
        );
    }
}

/// The command line on a bundled file: the exit code, and what it prints as an object.
fn overtake(file: &str, args: &[&str]) -> (Option<i32>, serde_json::Value) {
    let path = format!("{}/datatypes/{file}.dt", env!("CARGO_MANIFEST_DIR"));
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_overtake"));
    let done = command.args(["datatype", &path, "--json"]).args(args).output().expect("the binary runs");
    (done.status.code(), serde_json::from_slice(&done.stdout).unwrap_or_default())
}

#[test]
fn the_command_answers_with_its_words_and_codes() {
    let queue = |args: &[&str]| overtake("two_lock_queue", args);
    let word = |found: &serde_json::Value| found["verdict"].as_str().unwrap_or_default().to_string();
    let (code, fails) = queue(&["--test", "T0", "--model", "relaxed"]);
    assert_eq!(
        (code, &word(&fails)[..], fails["failure"].as_str()),
        (Some(10), "fails", Some("observation"))
    );
    assert_eq!((fails["observations"].as_u64(), fails["bound"].as_u64()), (Some(2), Some(1)));
    assert!(fails["variables"].as_u64() > Some(0) && fails["clauses"].as_u64() > Some(0));
    assert!(fails["trace"].as_array().is_some_and(|trace| trace.len() > 5));
    let (code, one) = queue(&["--test", "T0", "--model", "relaxed", "--with", "publish:ss,consume"]);
    assert_eq!((code, &word(&one)[..]), (Some(0), "passes"));
    let (code, late) = queue(&["--test", "Tpc7", "--timeout", "500ms"]);
    assert_eq!((code, &word(&late)[..]), (Some(5), "unknown"));
    assert!(late["reason"].as_str().is_some_and(|why| why.ends_with("answered")), "{late}");
    // Even where there was no time to read the file.
    let (code, soon) = queue(&["--test", "T0", "--timeout", "0ms"]);
    assert_eq!(
        (code, &word(&soon)[..], soon["limit"].as_str()),
        (Some(5), "unknown", late["limit"].as_str())
    );
    let (code, found) = queue(&["--fences", "--test", "T0", "--model", "relaxed"]);
    assert_eq!((code, &word(&found)[..]), (Some(0), "found"));
    assert_eq!(found["sets"], serde_json::json!([["consume:ll", "publish:ss"]]));
    let (code, none) = overtake("treiber_reuse", &["--fences", "--test", "Taba"]);
    assert_eq!((code, &word(&none)[..]), (Some(10), "none"));
    for wrong in [&["--test", "T9"][..], &["--with", "nobody"], &["--with", "publish:ll"], &["--bound", "0"]]
    {
        assert_eq!(queue(wrong).0, Some(2), "{wrong:?}");
    }
}

//! Programs come back from their text: those of the language equal, any other one equivalent.

use super::*;
use crate::front::tso::read;
use crate::model::expr::Expr;
use crate::model::{Addr, BinOp, Bytes, FenceKinds, Location, PropertyKind, RmwOp, ThreadId, UnOp};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn reread(text: &str) -> Program {
    read(text, &[], &Limits::default()).unwrap_or_else(|errors| panic!("{errors:?}\n{text}")).program
}

/// What two readings of one program have in common.
fn without_places(program: &Program) -> ProgramParts {
    let mut parts = program.to_parts();
    for edge in parts.threads.iter_mut().flat_map(|t| &mut t.edges) {
        (edge.line, edge.text) = (0, String::new());
    }
    for property in &mut parts.properties {
        (property.line, property.text, property.cases) = (0, String::new(), vec![]);
    }
    parts
}

/// Programs from text come back equal.
fn check_text(source: &str) {
    let program = reread(source);
    let text = write(&program, &Limits::default()).unwrap();
    assert_eq!(without_places(&reread(&text)), without_places(&program), "{text}");
}

/// Programs from anywhere come back as text that does not change any more.
fn check_parts(parts: ProgramParts) -> String {
    let program = Program::new(parts).expect("a valid program");
    let text = write(&program, &Limits::default()).unwrap();
    let again = reread(&text);
    assert_eq!(write(&again, &Limits::default()).unwrap(), text);
    assert_eq!(again.variables().len(), program.variables().len());
    assert_eq!(again.threads().len(), program.threads().len());
    assert_eq!(again.properties().len(), program.properties().len());
    assert_eq!(behaviours(&again), behaviours(&program), "{text}");
    text
}

/// What each thread may do to memory, up to three steps of it, whatever its registers hold.
fn behaviours(program: &Program) -> Vec<BTreeSet<Vec<&'static str>>> {
    program
        .threads()
        .iter()
        .map(|thread| {
            let mut seen = BTreeSet::from([(thread.initial(), vec![])]);
            let mut todo = vec![(thread.initial(), vec![])];
            while let Some((loc, done)) = todo.pop() {
                for (_, edge) in thread.edges_from(loc).into_iter().filter(|(_, e)| !never_passes(&e.instr)) {
                    let mut done = done.clone();
                    done.extend(visible(&edge.instr));
                    if done.len() <= 3 && seen.insert((edge.to, done.clone())) {
                        todo.push((edge.to, done));
                    }
                }
            }
            seen.into_iter().map(|(_, done)| done).collect()
        })
        .collect()
}

/// Is it false whatever the registers hold? A few values tell, and tell the same of equal expressions.
fn never_passes(instr: &Instr) -> bool {
    let values = [0, 1, 7];
    matches!(instr, Instr::Assume(e) if values.iter().all(|v| e.eval(&|_| *v) == Ok(0)))
}

fn visible(instr: &Instr) -> Option<&'static str> {
    match instr {
        Instr::Load { .. } => Some("load"),
        Instr::Store { .. } => Some("store"),
        Instr::Rmw { .. } => Some("rmw"),
        Instr::Fence => Some("fence"),
        Instr::Partial(_) => Some("partial fence"),
        Instr::Lock => Some("lock"),
        Instr::Assert(_) => Some("assert"),
        _ => None,
    }
}

#[test]
fn programs_from_text_come_back_equal() {
    check_text("thread p\nend");
    check_text("shared x, y = -3, a[3], b[2] = 7, c[4] = {1, 0, 2}\nthread p\nl: m:\nend\nforbid p@m");
    check_text("thread p\ngoto b\na: nop\nb: nop\nend\nthread q\nhalt\nnop\nend\nthread r\nl: goto l\nend");
    check_text(
        "thread p[i in -1..=1]\nl: r = i\nif r == i goto l\nchoose l, m\nm:\nend\nforbid two i: p[i]@l",
    );
    check_text("thread p\nrepeat k in 0..3 { l: nop }\nend\nforbid p@l && !p@l || p@l");
    check_text("thread p\nrepeat k in 0..300 { l: nop }\nend\nforbid p@l || 0 && p@l_3 || p@l");
    check_text(
        "shared x\nthread p\nif !r goto l\nif 1 goto l\nif 0 goto l\nr = - -r - -1 - (q - 1)\nl: r = any(-3..3)\nend",
    );
    check_text(
        "thread p\nr = 0 - 9223372036854775807 - 1; q = -r; q = !(q == -1) * ~q % 3\nend\nexists p.r - p.q",
    );
}

#[test]
fn long_disjunctions_come_back_equal() {
    let many: Vec<String> = (0..200).map(|i| format!("p.r == {i}")).collect();
    check_text(&format!("thread p\nr = 1\nend\nnever {}\nforall {}", many.join(" || "), many.join(" && ")));
    check_text(
        "thread p[i in 0..40]\nc: r = 1\nend\nforbid two i: p[i]@c\nnever all i: p[i].r == 1 || p[i]@c",
    );
}

#[test]
fn the_text_is_the_one_a_person_would_write() {
    let source = "shared x, a[2] = 1\n\nthread p\n    store [x], 1\nspin:\n    load r, [a + 1]\n    if r == 0 goto spin\nend\n\nnever p.r == 0\n";
    assert_eq!(write(&reread(source), &Limits::default()).unwrap(), source);
}

fn edge(from: u32, to: u32, instr: Instr) -> Edge {
    Edge { from: Loc(from), to: Loc(to), instr, line: 0, text: String::new(), origin: None }
}

fn thread(name: &str, registers: &[&str], locations: usize, end: u32, edges: Vec<Edge>) -> ThreadParts {
    ThreadParts {
        name: name.to_string(),
        registers: registers.iter().map(|r| r.to_string()).collect(),
        locations: vec![Location::default(); locations],
        edges,
        initial: Loc(0),
        end: Loc(end),
    }
}

#[test]
fn a_location_with_mixed_ways_out_chooses_and_stays_itself() {
    let edges = vec![edge(0, 1, Instr::Fence), edge(0, 2, Instr::Lock), edge(2, 0, Instr::Unlock)];
    let at = Pred::Atom(Atom::At(ThreadId(0), vec![Loc(0)]));
    let text = check_parts(ProgramParts {
        memory: vec![],
        threads: vec![thread("p", &[], 3, 1, edges)],
        properties: vec![Property::new(PropertyKind::Forbid, at, 0)],
        no_hang: None,
        stretches: vec![],
        code: vec![],
    });
    let expect = "thread p\nL1:\n    choose L2, L3\nL2:\n    fence\n    halt\nL3:\n    lock\n    unlock\n    goto L1\nend\n\nforbid p@L1 || p@L2 || p@L3\n";
    assert_eq!(text, expect);
}

#[test]
fn opposite_assumptions_are_a_branch() {
    let compare = |op| Instr::Assume(Expr::binary(op, Expr::Atom(Reg(0)), Expr::Const(0)));
    let edges = vec![edge(0, 1, compare(BinOp::Eq)), edge(0, 0, compare(BinOp::Ne))];
    let text = check_parts(ProgramParts {
        threads: vec![thread("p", &["r"], 2, 1, edges)],
        ..ProgramParts::default()
    });
    assert_eq!(text, "thread p\nL1:\n    if r == 0 goto L2\n    goto L1\nL2:\nend\n");
}

#[test]
fn odd_names_dead_ends_and_silent_registers_can_be_written() {
    let load = Instr::Load {
        dst: Reg(1),
        addr: Expr::binary(BinOp::Div, Expr::Const(1), Expr::Const(0)),
        bytes: Bytes::WHOLE,
    };
    let asked = Pred::Atom(Atom::Reg(ThreadId(0), Reg(0)));
    let text = check_parts(ProgramParts {
        memory: vec![Variable { name: "q=".to_string(), init: vec![0] }],
        threads: vec![thread("load", &["q_", "zero"], 3, 2, vec![edge(0, 1, load)])],
        properties: vec![Property::new(PropertyKind::Never, asked, 0)],
        no_hang: None,
        stretches: vec![],
        code: vec![],
    });
    let expect = "shared q_\n\nthread load_\n    q__2 = 0\n    load zero, [1 / zero_2]\n    assume 0\nend\n\nnever load_.q__2\n";
    assert_eq!(text, expect);
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("x".to_string()),
        Just("r".to_string()),
        Just("load".to_string()),
        Just("q=".to_string()),
        Just("p[1]".to_string()),
        Just(String::new()),
        Just("zero".to_string()),
        Just("L1".to_string()),
        "[a-c]{1,2}",
    ]
}

fn distinct_names(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<String>> {
    prop::collection::hash_set(name(), count).prop_map(|names| {
        let mut names: Vec<String> = names.into_iter().collect();
        names.sort();
        names
    })
}

fn constant() -> impl Strategy<Value = Value> {
    prop_oneof![-2..4i64, Just(Value::MIN), Just(Value::MAX)]
}

fn binary_operator() -> impl Strategy<Value = BinOp> {
    use BinOp::*;
    prop::sample::select(vec![
        Or, And, BitOr, BitXor, BitAnd, Eq, Ne, Lt, Le, Gt, Ge, Shl, Shr, Add, Sub, Mul, Div, Rem,
    ])
}

/// Divisions in properties are by constants.
fn expr<A: fmt::Debug + Clone + 'static>(
    atom: impl Strategy<Value = A> + 'static,
    divisions: bool,
) -> impl Strategy<Value = Expr<A>> {
    let leaf = prop_oneof![constant().prop_map(Expr::Const), atom.prop_map(Expr::Atom)];
    leaf.prop_recursive(4, 16, 2, move |inner| {
        let unary = prop::sample::select(vec![UnOp::Neg, UnOp::Not, UnOp::BitNot]);
        let keep = move |op| match op {
            BinOp::Div | BinOp::Rem if !divisions => BinOp::Add,
            op => op,
        };
        prop_oneof![
            (unary, inner.clone()).prop_map(|(op, a)| Expr::unary(op, a)),
            (binary_operator(), inner.clone(), inner).prop_map(move |(op, a, b)| Expr::binary(
                keep(op),
                a,
                b
            )),
        ]
    })
}

fn instr(registers: usize) -> BoxedStrategy<Instr> {
    if registers == 0 {
        return prop_oneof![Just(Instr::Nop), Just(Instr::Fence), Just(Instr::Lock)].boxed();
    }
    let reg = move || (0..registers).prop_map(|r| Reg(r as u16));
    let e = move || expr(reg(), true);
    prop_oneof![
        Just(Instr::Nop),
        Just(Instr::Fence),
        (1..4usize).prop_map(|n| Instr::Partial(FenceKinds::one(n))),
        (reg(), e()).prop_map(|(dst, addr)| Instr::Load { dst, addr, bytes: Bytes::WHOLE }),
        (e(), e()).prop_map(|(addr, value)| Instr::Store { addr, value, bytes: Bytes::WHOLE }),
        (reg(), e()).prop_map(|(dst, value)| Instr::Assign { dst, value }),
        (reg(), constant()).prop_map(|(dst, lo)| Instr::Any { dst, lo, hi: lo.saturating_add(2) }),
        e().prop_map(Instr::Assume),
        e().prop_map(Instr::Assert),
        (reg(), e(), e(), e()).prop_map(|(dst, addr, old, new)| Instr::Rmw {
            dst,
            addr,
            op: RmwOp::Cas { old, new }
        }),
        (reg(), e(), e()).prop_map(|(dst, addr, new)| {
            let new = if new.may_divide_by_zero() { Expr::Const(1) } else { new };
            Instr::Rmw { dst, addr, op: RmwOp::New(Expr::binary(BinOp::BitOr, Expr::Atom(dst), new)) }
        }),
    ]
    .boxed()
}

fn any_thread() -> impl Strategy<Value = ThreadParts> {
    (distinct_names(0..4), 1..6usize).prop_flat_map(|(registers, count)| {
        let loc = move || (0..count as u32).prop_map(Loc);
        let location = prop::collection::vec(name(), 0..3).prop_map(Location::labelled);
        let edges = prop::collection::vec((loc(), loc(), instr(registers.len())), 0..10);
        let locations = prop::collection::vec(location, count);
        (locations, edges, loc(), loc()).prop_map(move |(locations, edges, initial, end)| ThreadParts {
            name: String::new(),
            registers: registers.clone(),
            locations,
            edges: (edges.into_iter())
                .filter(|(from, _, _)| *from != end)
                .map(|(from, to, instr)| edge(from.0, to.0, instr))
                .collect(),
            initial,
            end,
        })
    })
}

fn any_parts() -> impl Strategy<Value = ProgramParts> {
    let threads = (distinct_names(1..4), prop::collection::vec(any_thread(), 3));
    let threads = threads.prop_map(|(names, threads)| {
        let named = names.into_iter().zip(threads);
        named.map(|(name, thread)| ThreadParts { name, ..thread }).collect::<Vec<_>>()
    });
    let init = prop::collection::vec(constant(), 1..4);
    let memory = (distinct_names(1..4), prop::collection::vec(init, 3)).prop_map(|(names, inits)| {
        names.into_iter().zip(inits).map(|(name, init)| Variable { name, init }).collect::<Vec<_>>()
    });
    (memory, threads).prop_flat_map(|(memory, threads)| {
        let preds = prop::collection::vec(pred(&memory, &threads), 0..3);
        let property = |pred| Property::new(PropertyKind::Never, pred, 0);
        preds.prop_map(move |preds| ProgramParts {
            memory: memory.clone(),
            threads: threads.clone(),
            properties: preds.into_iter().map(property).collect(),
            no_hang: None,
            stretches: vec![],
            code: vec![],
        })
    })
}

fn pred(memory: &[Variable], threads: &[ThreadParts]) -> BoxedStrategy<Pred> {
    let cells: usize = memory.iter().map(|v| v.init.len()).sum();
    let sizes: Vec<(usize, usize)> = threads.iter().map(|t| (t.locations.len(), t.registers.len())).collect();
    let atom = (0..threads.len(), any::<u32>(), any::<u32>(), 0..3usize).prop_map(move |(t, n, m, kind)| {
        let (locations, registers) = sizes[t];
        let id = ThreadId(t as u16);
        let loc = |n: u32| Loc(n % locations as u32);
        match kind {
            0 => Atom::Mem(Addr(n % cells as u32)),
            1 if registers > 0 => Atom::Reg(id, Reg((n as usize % registers) as u16)),
            _ => Atom::At(id, vec![loc(n), loc(m)]),
        }
    });
    expr(atom, false).boxed()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn any_program_can_be_written_and_read(parts in any_parts()) {
        check_parts(parts);
    }
}

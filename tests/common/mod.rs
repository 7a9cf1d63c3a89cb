//! What several test programs share: random programs, and the plain machines explored naively.

#![allow(dead_code)] // each test program uses its own part

use overtake::model::program::{ProgramParts, ThreadParts};
use overtake::model::*;
use overtake::sem::{State, sc, tso};
use overtake::verdict::{Goal, Kind, Model};
use proptest::prelude::*;
use std::collections::{HashSet, VecDeque};

/// How many random programs a test tries: `default`, or what `OVERTAKE_PROGRAMS` says.
pub fn cases(default: u32) -> ProptestConfig {
    let cases = std::env::var("OVERTAKE_PROGRAMS").ok().and_then(|n| n.parse().ok()).unwrap_or(default);
    let shrink = 20_000;
    ProptestConfig { cases, max_shrink_iters: shrink, failure_persistence: None, ..ProptestConfig::default() }
}

/// What the plain machine says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naive {
    Violated,
    Safe,
    /// No violation found, and not everything was seen.
    Unknown,
}

/// Breadth-first search on the definitions in `sem`, with nothing clever in it.
pub fn naive(program: &Program, goal: &Goal, model: Model, bound: Option<usize>, most: usize) -> Naive {
    let bound = bound.map_or(tso::Bound::Unbounded, tso::Bound::Entries);
    let start = State::initial(program);
    let mut seen = HashSet::from([start.clone()]);
    let mut todo = VecDeque::from([start]);
    let mut complete = true;
    while let Some(state) = todo.pop_front() {
        if state.against(program, goal).is_some() {
            return Naive::Violated;
        }
        if seen.len() > most {
            return Naive::Unknown;
        }
        let (steps, kept) = match model {
            Model::Sc => (sc::steps(program, &state), false),
            Model::Tso => tso::steps(program, &state, bound),
        };
        complete &= !kept;
        for step in steps {
            if step.event.trap.is_some() {
                return Naive::Violated;
            }
            if seen.insert(step.state.clone()) {
                todo.push_back(step.state);
            }
        }
    }
    if complete { Naive::Safe } else { Naive::Unknown }
}

/// What random programs look like.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub threads: (usize, usize),
    pub lines: (usize, usize),
    pub loops: bool,
    /// Mostly stores, loads and assignments on few cells: little variety, many meetings.
    pub dense: bool,
}

const CELLS: i64 = 3;
const REGISTERS: u16 = 2;

fn constant() -> impl Strategy<Value = RegExpr> {
    prop_oneof![4 => 0i64..3, 1 => Just(-1)].prop_map(Expr::Const)
}

fn register() -> impl Strategy<Value = Reg> {
    (0..REGISTERS).prop_map(Reg)
}

fn value() -> impl Strategy<Value = RegExpr> {
    let reg = || register().prop_map(Expr::Atom);
    let sum = (reg(), 1i64..3).prop_map(|(r, c)| {
        let sum = Expr::binary(BinOp::Add, r, Expr::Const(c));
        Expr::binary(BinOp::BitAnd, sum, Expr::Const(3))
    });
    prop_oneof![5 => constant(), 3 => reg(), 2 => sum]
}

fn address() -> impl Strategy<Value = RegExpr> {
    let fixed = (0..CELLS).prop_map(Expr::Const);
    let computed = register().prop_map(|r| {
        let low = Expr::binary(BinOp::BitAnd, Expr::Atom(r), Expr::Const(1));
        Expr::binary(BinOp::Add, low, Expr::Const(1))
    });
    let raw = register().prop_map(Expr::Atom);
    prop_oneof![12 => fixed, 3 => computed, 1 => raw]
}

fn condition() -> impl Strategy<Value = RegExpr> {
    use BinOp::*;
    let op = prop_oneof![3 => Just(Eq), 2 => Just(Ne), 1 => Just(Lt), 1 => Just(Ge)];
    (op, register(), value()).prop_map(|(op, r, v)| Expr::binary(op, Expr::Atom(r), v))
}

fn instr() -> impl Strategy<Value = Instr> {
    let quotient = (register(), register(), register()).prop_map(|(dst, a, b)| Instr::Assign {
        dst,
        value: Expr::binary(BinOp::Div, Expr::Atom(a), Expr::Atom(b)),
    });
    let rmw = prop_oneof![
        value().prop_map(RmwOp::Swap),
        (0i64..2).prop_map(|v| RmwOp::Add(Expr::Const(v))),
        (value(), value()).prop_map(|(old, new)| RmwOp::Cas { old, new }),
    ];
    prop_oneof![
        20 => (register(), address()).prop_map(|(dst, addr)| Instr::Load { dst, addr }),
        20 => (address(), value()).prop_map(|(addr, value)| Instr::Store { addr, value }),
        4 => Just(Instr::Fence),
        16 => (register(), value()).prop_map(|(dst, value)| Instr::Assign { dst, value }),
        3 => (register(), 0i64..2, 0i64..2).prop_map(|(dst, lo, more)| Instr::Any { dst, lo, hi: lo + more }),
        5 => condition().prop_map(Instr::Assume),
        1 => condition().prop_map(Instr::Assert),
        6 => (register(), address(), rmw).prop_map(|(dst, addr, op)| Instr::Rmw { dst, addr, op }),
        1 => Just(Instr::Nop),
        1 => quotient,
    ]
}

fn dense_instr() -> impl Strategy<Value = Instr> {
    let address = || (0i64..2).prop_map(Expr::Const);
    let value = || (0i64..3).prop_map(Expr::Const);
    prop_oneof![
        8 => (register(), address()).prop_map(|(dst, addr)| Instr::Load { dst, addr }),
        8 => (address(), value()).prop_map(|(addr, value)| Instr::Store { addr, value }),
        6 => (register(), value()).prop_map(|(dst, value)| Instr::Assign { dst, value }),
        1 => Just(Instr::Fence),
        1 => (register(), address(), value()).prop_map(|(dst, addr, v)| Instr::Rmw {
            dst,
            addr,
            op: RmwOp::Swap(v)
        }),
        1 => (register(), 0i64..2).prop_map(|(dst, lo)| Instr::Any { dst, lo, hi: lo + 1 }),
        2 => condition().prop_map(Instr::Assume),
    ]
}

/// One line of a thread; targets are reduced to the lines there are.
#[derive(Clone, Debug)]
enum Line {
    One(Instr),
    If(RegExpr, usize),
    Choose(usize, usize),
    /// Two instructions side by side.
    Either(Instr, Instr, usize),
    Block(Vec<Instr>),
}

fn line(dense: bool) -> impl Strategy<Value = Line> {
    let instr = move || if dense { dense_instr().boxed() } else { instr().boxed() };
    prop_oneof![
        14 => instr().prop_map(Line::One),
        4 => (condition(), any::<usize>()).prop_map(|(c, l)| Line::If(c, l)),
        1 => (any::<usize>(), any::<usize>()).prop_map(|(a, b)| Line::Choose(a, b)),
        1 => (instr(), instr(), any::<usize>()).prop_map(|(a, b, l)| Line::Either(a, b, l)),
        2 => prop::collection::vec(instr(), 1..4).prop_map(Line::Block),
    ]
}

fn edge(from: usize, to: usize, instr: Instr) -> Edge {
    Edge {
        from: Loc(from as u32),
        to: Loc(to as u32),
        instr,
        line: from as u32 + 1,
        text: String::new(),
        origin: None,
    }
}

fn thread(name: String, lines: &[Line], loops: bool) -> ThreadParts {
    let end = lines.len();
    let target = |from: usize, pick: usize| {
        if loops { pick % (end + 1) } else { from + 1 + pick % (end - from) }
    };
    let mut locations = end + 1;
    let mut edges = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        match line {
            Line::One(instr) => edges.push(edge(i, i + 1, instr.clone())),
            Line::If(c, l) => {
                edges.push(edge(i, target(i, *l), Instr::Assume(c.clone())));
                edges.push(edge(i, i + 1, Instr::Assume(c.clone().negated())));
            }
            Line::Choose(a, b) => {
                edges.push(edge(i, target(i, *a), Instr::Nop));
                edges.push(edge(i, target(i, *b), Instr::Nop));
            }
            Line::Either(a, b, l) => {
                edges.push(edge(i, i + 1, a.clone()));
                edges.push(edge(i, target(i, *l), b.clone()));
            }
            Line::Block(body) => {
                let mut at = i;
                let inside = std::iter::once(&Instr::Lock).chain(body);
                for instr in inside {
                    edges.push(edge(at, locations, instr.clone()));
                    at = locations;
                    locations += 1;
                }
                edges.push(edge(at, i + 1, Instr::Unlock));
            }
        }
    }
    ThreadParts {
        name,
        registers: (0..REGISTERS).map(|r| format!("r{r}")).collect(),
        locations: vec![Location::default(); locations],
        edges,
        initial: Loc(0),
        end: Loc(end as u32),
    }
}

/// One fact to ask about, as raw numbers that are fitted to the program.
#[derive(Clone, Debug)]
enum Fact {
    At(usize, usize),
    Reg(usize, u16, i64),
    Mem(i64, i64),
}

fn fact() -> impl Strategy<Value = Fact> {
    prop_oneof![
        3 => (any::<usize>(), any::<usize>()).prop_map(|(t, l)| Fact::At(t, l)),
        2 => (any::<usize>(), 0..REGISTERS, 0i64..3).prop_map(|(t, r, v)| Fact::Reg(t, r, v)),
        1 => (0..CELLS, 0i64..3).prop_map(|(a, v)| Fact::Mem(a, v)),
    ]
}

fn property(kind: PropertyKind, facts: &[(Fact, bool)], threads: &[ThreadParts]) -> Property {
    let equals = |a: Atom, v: i64| Expr::binary(BinOp::Eq, Expr::Atom(a), Expr::Const(v));
    let pred = |(fact, positive): &(Fact, bool)| {
        let is = match fact {
            Fact::At(t, l) => {
                let t = t % threads.len();
                let loc = Loc((l % threads[t].locations.len()) as u32);
                Expr::Atom(Atom::At(ThreadId(t as u16), vec![loc]))
            }
            Fact::Reg(t, r, v) => equals(Atom::Reg(ThreadId((t % threads.len()) as u16), Reg(*r)), *v),
            Fact::Mem(a, v) => equals(Atom::Mem(Addr(*a as u32)), *v),
        };
        if *positive { is } else { is.negated() }
    };
    let all = facts.iter().map(pred).reduce(|a, b| Expr::binary(BinOp::And, a, b));
    Property { kind, pred: all.unwrap_or(Expr::Const(0)), line: 0 }
}

/// Random programs with one or two properties.
pub fn program(shape: Shape) -> impl Strategy<Value = Shown> {
    let lines = prop::collection::vec(line(shape.dense), shape.lines.0..=shape.lines.1);
    let threads = prop::collection::vec(lines, shape.threads.0..=shape.threads.1);
    let kind = prop_oneof![
        4 => Just(PropertyKind::Forbid),
        2 => Just(PropertyKind::Exists),
        1 => Just(PropertyKind::Never),
        1 => Just(PropertyKind::Forall),
    ];
    let fact = (fact(), prop::bool::weighted(0.85));
    let asked = prop::collection::vec((kind, prop::collection::vec(fact, 1..4)), 1..3);
    (threads, asked, 0i64..2).prop_map(move |(threads, asked, init)| {
        let name = |t: usize| format!("t{t}");
        let threads: Vec<ThreadParts> =
            threads.iter().enumerate().map(|(t, lines)| thread(name(t), lines, shape.loops)).collect();
        let properties = asked.iter().map(|(kind, facts)| property(*kind, facts, &threads)).collect();
        let cell = |(i, name): (usize, &str)| Variable {
            name: name.to_string(),
            init: vec![if i == 0 { init } else { 0 }],
        };
        let memory = ["x", "y", "z"].into_iter().enumerate().map(cell).collect();
        let parts = ProgramParts { memory, threads, properties };
        Shown(Program::new(parts).expect("the generator keeps the rules"))
    })
}

/// Where a random walk on the plain machine ends. Under TSO the buffers drain at the end, as far as they can.
fn walk(program: &Program, model: Model, choices: &[usize]) -> State {
    let mut state = State::initial(program);
    let steps = |state: &State| match model {
        Model::Sc => sc::steps(program, state),
        Model::Tso => tso::steps(program, state, tso::Bound::Unbounded).0,
    };
    for choice in choices {
        let mut possible = steps(&state);
        possible.retain(|s| s.event.trap.is_none());
        if !possible.is_empty() {
            state = possible.swap_remove(choice % possible.len()).state;
        }
    }
    while let Some(flush) = steps(&state).into_iter().find(|s| s.event.kind == Kind::Flush) {
        state = flush.state;
    }
    state
}

/// Random programs that forbid part of what is true at the end of one of their own runs: a goal that can be
/// reached, and perhaps only just.
pub fn pointed_program(shape: Shape, model: Model) -> impl Strategy<Value = Shown> {
    let choices = prop::collection::vec(any::<usize>(), 1..14);
    let masks = (any::<u32>(), any::<u32>());
    (program(shape), choices, masks).prop_map(move |(Shown(program), choices, (often, seldom))| {
        let state = walk(&program, model, &choices);
        let equals = |a: Atom, v: i64| Expr::binary(BinOp::Eq, Expr::Atom(a), Expr::Const(v));
        // A goal that names a location makes every reduction careful there, so few of them do.
        let at = |t: ThreadId| Expr::Atom(Atom::At(t, vec![state.at[t.index()]]));
        let places = program.thread_ids().filter(|t| often & seldom & 1 << (16 + t.0) != 0);
        let places: Vec<Pred> = places.map(at).collect();
        let mut facts = Vec::new();
        for t in program.thread_ids() {
            let registers = state.registers[t.index()].iter().enumerate();
            facts.extend(registers.map(|(r, &v)| equals(Atom::Reg(t, Reg(r as u16)), v)));
        }
        facts.extend(state.memory.iter().enumerate().map(|(a, &v)| equals(Atom::Mem(Addr(a as u32)), v)));
        let chosen = facts.into_iter().enumerate().filter(|(i, _)| often >> i & 1 != 0).map(|(_, f)| f);
        let pred =
            chosen.chain(places).reduce(|a, b| Expr::binary(BinOp::And, a, b)).unwrap_or(Expr::Const(1));
        let mut parts = program.to_parts();
        parts.properties = vec![Property { kind: PropertyKind::Forbid, pred, line: 0 }];
        Shown(Program::new(parts).expect("the generator keeps the rules"))
    })
}

/// A program as a test failure should show it.
pub struct Shown(pub Program);

impl std::fmt::Debug for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "\n{}", overtake::front::tso::write(&self.0))
    }
}

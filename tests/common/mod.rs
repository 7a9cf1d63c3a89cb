//! What several test programs share: random programs, and the plain machines explored naively.

#![allow(dead_code)] // each test program uses its own part

pub(crate) mod dve;
pub(crate) mod finals;
pub(crate) mod plain;
pub(crate) mod producer;
pub(crate) mod random;
pub(crate) mod robustness;
pub(crate) mod together;

use overtake::limits::Limits;
use overtake::model::program::{ProgramParts, ThreadParts};
use overtake::model::*;
use overtake::query::{EventKind, Goal, Model};
use overtake::semantics::{State, sc, tso};
use proptest::prelude::*;
use std::collections::{HashSet, VecDeque};
use std::ops::Range;

/// How many random programs a test tries: `default`, or what `OVERTAKE_PROGRAMS` says.
pub(crate) fn cases(default: u32) -> ProptestConfig {
    let cases = std::env::var("OVERTAKE_PROGRAMS").ok().and_then(|n| n.parse().ok()).unwrap_or(default);
    let shrink = 20_000;
    ProptestConfig { cases, max_shrink_iters: shrink, failure_persistence: None, ..ProptestConfig::default() }
}

/// What the plain machine says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Naive {
    Violated,
    Safe,
    /// No violation with buffers of this size, and larger ones were asked for.
    Bounded,
    /// No violation found, and not everything was seen.
    Unknown,
}

/// Breadth-first search on the definitions in `semantics`, with nothing clever in it.
pub(crate) fn naive(
    program: &Program,
    goal: &Goal,
    model: Model,
    bound: Option<usize>,
    most: usize,
) -> Naive {
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
    if complete { Naive::Safe } else { Naive::Bounded }
}

/// What random programs look like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub threads: (usize, usize),
    pub lines: (usize, usize),
    pub loops: bool,
    /// Three cells have names, the others are an array behind them.
    pub cells: i64,
    pub registers: u16,
    /// Threads before all others that have nothing to do.
    pub bystanders: usize,
    /// Whether there are `lock` … `unlock` blocks, but for tastes that have their own mind about it.
    pub blocks: bool,
    /// Whether threads may end inside blocks.
    pub unfinished: bool,
    /// Of so many instructions in a hundred, one expression divides by a register, which is often 0.
    pub faults: u8,
    pub(crate) taste: Taste,
    /// Whether loads and stores may touch a part of their cell.
    pub mixed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taste {
    /// Small numbers, few operators, `lock` and `unlock` in pairs.
    Tame,
    /// Mostly stores, loads and assignments of constants, on two cells.
    Dense,
    /// Mostly loads in rows, branches on what they found, and stores of it; no blocks.
    Reading,
    /// Numbers near the ends of their range, all operators, pointers, `lock` and `unlock` anywhere.
    Wild,
}

/// Two or three short threads.
pub(crate) const SMALL: Shape = Shape {
    threads: (2, 3),
    lines: (2, 5),
    loops: true,
    cells: 3,
    registers: 2,
    bystanders: 0,
    blocks: true,
    unfinished: false,
    faults: 1,
    taste: Taste::Tame,
    mixed: false,
};

/// Cells that share a class of accesses, and some that do not.
const APART: [i64; 7] = [0, 1, 2, 61, 62, 63, 124];

const EXTREMES: [i64; 12] = [
    i64::MIN,
    i64::MIN + 1,
    i64::MAX,
    i64::MAX - 1,
    1 << 62,
    -1 << 62,
    1 << 32,
    -1 << 31,
    63,
    64,
    -2,
    0x5555_5555_5555_5555,
];

const OPERATORS: [BinOp; 18] = {
    use BinOp::*;
    [Or, And, BitOr, BitXor, BitAnd, Eq, Ne, Lt, Le, Gt, Ge, Shl, Shr, Add, Sub, Mul, Div, Rem]
};

fn constant(shape: Shape) -> BoxedStrategy<RegExpr> {
    let tame = prop_oneof![4 => 0i64..3, 1 => Just(-1)].boxed();
    let wide = prop::sample::select(&[0x101, 0x102, 0x201, 0x10002][..]);
    let tame = if shape.mixed { prop_oneof![1 => tame, 2 => wide].boxed() } else { tame };
    match shape.taste {
        Taste::Tame | Taste::Dense | Taste::Reading => tame.prop_map(Expr::Const).boxed(),
        Taste::Wild => {
            prop_oneof![2 => tame, 1 => prop::sample::select(&EXTREMES[..])].prop_map(Expr::Const).boxed()
        }
    }
}

fn register(shape: Shape) -> impl Strategy<Value = Reg> {
    (0..shape.registers).prop_map(Reg)
}

fn value(shape: Shape) -> BoxedStrategy<RegExpr> {
    let reg = || register(shape).prop_map(Expr::Atom);
    let sum = (reg(), 1i64..3).prop_map(|(r, c)| {
        let sum = Expr::binary(BinOp::Add, r, Expr::Const(c));
        Expr::binary(BinOp::BitAnd, sum, Expr::Const(3))
    });
    let tame = prop_oneof![5 => constant(shape), 3 => reg(), 2 => sum].boxed();
    if shape.taste == Taste::Tame {
        return tame;
    }
    let unary = prop::sample::select(&[UnOp::Neg, UnOp::Not, UnOp::BitNot][..]);
    let operator = prop::sample::select(&OPERATORS[..]);
    prop_oneof![
        4 => tame.clone(),
        2 => (operator, tame.clone(), tame.clone()).prop_map(|(op, a, b)| Expr::binary(op, a, b)),
        1 => (unary, tame).prop_map(|(op, a)| Expr::unary(op, a)),
    ]
    .boxed()
}

fn cell(shape: Shape) -> BoxedStrategy<i64> {
    if shape.cells <= 3 {
        return (0..shape.cells).boxed();
    }
    let apart: Vec<i64> = APART.into_iter().filter(|a| *a < shape.cells).collect();
    prop::sample::select(apart).boxed()
}

fn address(shape: Shape) -> BoxedStrategy<RegExpr> {
    let fixed = cell(shape).prop_map(Expr::Const);
    let computed = (register(shape), cell(shape)).prop_map(move |(r, base)| {
        let low = Expr::binary(BinOp::BitAnd, Expr::Atom(r), Expr::Const(1));
        let base = base.clamp(0, shape.cells - 2);
        Expr::binary(BinOp::Add, low, Expr::Const(base))
    });
    let raw = register(shape).prop_map(Expr::Atom);
    match shape.taste {
        Taste::Tame | Taste::Dense | Taste::Reading => {
            prop_oneof![12 => fixed, 3 => computed, 1 => raw].boxed()
        }
        Taste::Wild => prop_oneof![20 => fixed, 4 => computed, 1 => raw, 1 => value(shape)].boxed(),
    }
}

fn condition(shape: Shape) -> impl Strategy<Value = RegExpr> {
    use BinOp::*;
    let op = prop_oneof![
        6 => Just(Eq), 4 => Just(Ne), 2 => Just(Lt), 2 => Just(Ge), 1 => Just(Gt), 1 => Just(Le)
    ];
    let plain = (op, register(shape), value(shape)).prop_map(|(op, r, v)| Expr::binary(op, Expr::Atom(r), v));
    let other = (prop::bool::ANY, value(shape)).prop_map(|(not, v)| if not { v.negated() } else { v });
    prop_oneof![9 => plain, 1 => other]
}

fn instr(shape: Shape) -> impl Strategy<Value = Instr> {
    let register = || register(shape);
    let (address, value) = (|| address(shape), || value(shape));
    let quotient = (register(), register(), register()).prop_map(|(dst, a, b)| Instr::Assign {
        dst,
        value: Expr::binary(BinOp::Div, Expr::Atom(a), Expr::Atom(b)),
    });
    let rmw = prop_oneof![
        value().prop_map(RmwOp::Swap),
        value().prop_map(RmwOp::Add),
        value().prop_map(RmwOp::And),
        value().prop_map(RmwOp::Or),
        value().prop_map(RmwOp::Xor),
        (value(), value()).prop_map(|(old, new)| RmwOp::Cas { old, new }),
    ];
    // A new value never divides by what may be 0.
    let whole = prop::sample::select(&OPERATORS[..OPERATORS.len() - 2]);
    let general = (register(), address(), whole, value()).prop_map(|(dst, addr, op, v)| {
        let v = if v.may_divide_by_zero() { Expr::Const(1) } else { v };
        Instr::Rmw { dst, addr, op: RmwOp::New(Expr::binary(op, Expr::Atom(dst), v)) }
    });
    let loose = match shape.taste {
        Taste::Tame | Taste::Dense | Taste::Reading => &[Instr::Nop][..],
        Taste::Wild => &[Instr::Nop, Instr::Lock, Instr::Lock, Instr::Unlock, Instr::Unlock],
    };
    prop_oneof![
        20 => (register(), address()).prop_map(|(dst, addr)| Instr::Load { dst, addr, bytes: Bytes::WHOLE }),
        20 => (address(), value()).prop_map(|(addr, value)| Instr::Store { addr, value, bytes: Bytes::WHOLE }),
        4 => fence(),
        16 => (register(), value()).prop_map(|(dst, value)| Instr::Assign { dst, value }),
        3 => (register(), -1i64..2, 0i64..3).prop_map(|(dst, lo, more)| Instr::Any { dst, lo, hi: lo + more }),
        5 => condition(shape).prop_map(Instr::Assume),
        1 => condition(shape).prop_map(Instr::Assert),
        6 => (register(), address(), rmw).prop_map(|(dst, addr, op)| Instr::Rmw { dst, addr, op }),
        2 => general,
        loose.len() as u32 => prop::sample::select(loose),
        1 => quotient,
    ]
}

/// Mostly a full one.
fn fence() -> impl Strategy<Value = Instr> {
    let kinds = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    prop_oneof![
        2 => Just(Instr::Fence),
        1 => kinds.prop_map(|(ll, ls, sl, ss)| match (FenceKinds { ll, ls, sl, ss }) {
            FenceKinds::NONE => Instr::Nop,
            some => Instr::Partial(some),
        }),
    ]
}

fn dense_instr(shape: Shape) -> impl Strategy<Value = Instr> {
    let register = || register(shape);
    let address = || (0i64..2).prop_map(Expr::Const);
    let value = || (0i64..3).prop_map(Expr::Const);
    prop_oneof![
        8 => (register(), address()).prop_map(|(dst, addr)| Instr::Load { dst, addr, bytes: Bytes::WHOLE }),
        8 => (address(), value()).prop_map(|(addr, value)| Instr::Store { addr, value, bytes: Bytes::WHOLE }),
        6 => (register(), value()).prop_map(|(dst, value)| Instr::Assign { dst, value }),
        1 => Just(Instr::Fence),
        1 => (register(), address(), value()).prop_map(|(dst, addr, v)| Instr::Rmw {
            dst,
            addr,
            op: RmwOp::Swap(v)
        }),
        1 => (register(), 0i64..2).prop_map(|(dst, lo)| Instr::Any { dst, lo, hi: lo + 1 }),
        2 => condition(shape).prop_map(Instr::Assume),
    ]
}

fn reading_instr(shape: Shape) -> impl Strategy<Value = Instr> {
    let register = || register(shape);
    let address = || (0i64..3).prop_map(Expr::Const);
    let loaded = || register().prop_map(Expr::Atom);
    prop_oneof![
        20 => (register(), address()).prop_map(|(dst, addr)| Instr::Load { dst, addr, bytes: Bytes::WHOLE }),
        7 => (address(), loaded()).prop_map(|(addr, value)| Instr::Store { addr, value, bytes: Bytes::WHOLE }),
        7 => (address(), constant(shape)).prop_map(|(addr, value)| Instr::Store { addr, value, bytes: Bytes::WHOLE }),
        5 => instr(shape),
    ]
}

/// Mostly of the lowest two.
fn bytes() -> impl Strategy<Value = Bytes> {
    let part = |lo, hi| Bytes::range(lo, hi).expect("a cell has such bytes");
    prop_oneof![3 => Just(Bytes::WHOLE), 3 => Just(part(0, 0)), 3 => Just(part(1, 1)), 1 => Just(part(0, 1)), 1 => Just(part(1, 7))]
}

/// The same access to these bytes.
fn cut((instr, only): (Instr, Bytes)) -> Instr {
    match instr {
        Instr::Load { dst, addr, .. } => Instr::Load { dst, addr, bytes: only },
        Instr::Store { addr, value, .. } => Instr::Store { addr, value, bytes: only },
        other => other,
    }
}

/// An instruction one of whose expressions, whichever it is, divides by a register.
fn faulty(sound: BoxedStrategy<Instr>, shape: Shape) -> impl Strategy<Value = Instr> {
    let op = prop::sample::select(&[BinOp::Div, BinOp::Rem][..]);
    (sound, register(shape), op, any::<usize>()).prop_map(|(mut instr, by, op, pick)| {
        let mut exprs = exprs_of(&mut instr);
        if !exprs.is_empty() {
            let pick = pick % exprs.len();
            let e = &mut *exprs[pick];
            *e = Expr::binary(op, e.clone(), Expr::Atom(by));
        }
        instr
    })
}

fn exprs_of(instr: &mut Instr) -> Vec<&mut RegExpr> {
    match instr {
        Instr::Load { addr, .. } => vec![addr],
        Instr::Store { addr, value, .. } => vec![addr, value],
        Instr::Assign { value, .. } => vec![value],
        Instr::Assume(e) | Instr::Assert(e) => vec![e],
        Instr::Rmw { addr, op: RmwOp::New(_), .. } => vec![addr],
        Instr::Rmw { addr, op, .. } => std::iter::once(addr).chain(op.operands_mut()).collect(),
        Instr::Any { .. } | Instr::Fence | Instr::Partial(_) | Instr::Membarrier => vec![],
        Instr::Lock | Instr::Unlock | Instr::Nop => vec![],
    }
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
    /// A block without an `unlock`; the thread ends behind it.
    Unfinished(Vec<Instr>),
    /// Two conditions that need not exclude each other.
    Branch(RegExpr, RegExpr, usize),
}

/// Two conditions, often on the same register, and then often about the same number.
fn branch(shape: Shape) -> impl Strategy<Value = (RegExpr, RegExpr)> {
    let equals = |r: Reg, v: i64| Expr::binary(BinOp::Eq, Expr::Atom(r), Expr::Const(v));
    let same = (register(shape), 0i64..2, 0i64..2).prop_map(move |(r, a, b)| (equals(r, a), equals(r, b)));
    prop_oneof![same, (condition(shape), condition(shape))]
}

fn line(shape: Shape) -> impl Strategy<Value = Line> {
    let instr = move || {
        let sound = match shape.taste {
            Taste::Dense => dense_instr(shape).boxed(),
            Taste::Reading => reading_instr(shape).boxed(),
            Taste::Tame | Taste::Wild => instr(shape).boxed(),
        };
        let sound = if shape.mixed { (sound, bytes()).prop_map(cut).boxed() } else { sound };
        let faults = u32::from(shape.faults);
        prop_oneof![100 - faults => sound.clone(), faults => faulty(sound, shape)]
    };
    let condition = || condition(shape);
    let blocks = if shape.taste == Taste::Reading || !shape.blocks { 0 } else { 2 };
    prop_oneof![
        14 => instr().prop_map(Line::One),
        4 => (condition(), any::<usize>()).prop_map(|(c, l)| Line::If(c, l)),
        1 => (any::<usize>(), any::<usize>()).prop_map(|(a, b)| Line::Choose(a, b)),
        1 => (instr(), instr(), any::<usize>()).prop_map(|(a, b, l)| Line::Either(a, b, l)),
        blocks => prop::collection::vec(instr(), 1..4).prop_map(Line::Block),
        2 * shape.unfinished as u32 => prop::collection::vec(instr(), 0..3).prop_map(Line::Unfinished),
        1 => (branch(shape), any::<usize>()).prop_map(|((a, b), l)| Line::Branch(a, b, l)),
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

fn thread(name: String, lines: &[Line], shape: Shape) -> ThreadParts {
    let end = lines.len();
    let target = |from: usize, pick: usize| {
        if shape.loops { pick % (end + 1) } else { from + 1 + pick % (end - from) }
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
            Line::Branch(a, b, l) => {
                edges.push(edge(i, i + 1, Instr::Assume(a.clone())));
                edges.push(edge(i, target(i, *l), Instr::Assume(b.clone())));
            }
            Line::Choose(a, b) => {
                edges.push(edge(i, target(i, *a), Instr::Nop));
                edges.push(edge(i, target(i, *b), Instr::Nop));
            }
            Line::Either(a, b, l) => {
                edges.push(edge(i, i + 1, a.clone()));
                edges.push(edge(i, target(i, *l), b.clone()));
            }
            Line::Block(body) | Line::Unfinished(body) => {
                let (last, to) = match line {
                    Line::Unfinished(_) => (Instr::Nop, end),
                    _ => (Instr::Unlock, i + 1),
                };
                let mut at = i;
                let inside = std::iter::once(&Instr::Lock).chain(body);
                for instr in inside {
                    edges.push(edge(at, locations, instr.clone()));
                    at = locations;
                    locations += 1;
                }
                edges.push(edge(at, to, last));
            }
        }
    }
    ThreadParts {
        name,
        registers: (0..shape.registers).map(|r| format!("r{r}")).collect(),
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
    /// One of two places.
    AtEither(usize, usize, usize),
    Reg(usize, u16, BinOp, i64),
    Mem(i64, BinOp, i64),
    /// A register and a cell are equal.
    Same(usize, u16, i64),
}

fn fact(shape: Shape) -> impl Strategy<Value = Fact> {
    use BinOp::*;
    let op = || prop_oneof![6 => Just(Eq), 1 => Just(Lt), 1 => Just(Ge), 1 => Just(Ne)];
    let number = || any::<usize>();
    prop_oneof![
        8 => (number(), number()).prop_map(|(t, l)| Fact::At(t, l)),
        1 => (number(), number(), number()).prop_map(|(t, l, m)| Fact::AtEither(t, l, m)),
        6 => (number(), 0..shape.registers, op(), 0i64..3).prop_map(|(t, r, op, v)| Fact::Reg(t, r, op, v)),
        3 => (cell(shape), op(), 0i64..3).prop_map(|(a, op, v)| Fact::Mem(a, op, v)),
        1 => (number(), 0..shape.registers, cell(shape)).prop_map(|(t, r, a)| Fact::Same(t, r, a)),
    ]
}

/// How a fact joins those before it.
#[derive(Clone, Debug)]
struct Asked {
    fact: Fact,
    positive: bool,
    and: bool,
}

fn property(kind: PropertyKind, facts: &[Asked], threads: &[ThreadParts]) -> Property {
    let compare = |op: BinOp, a: Atom, v: i64| Expr::binary(op, Expr::Atom(a), Expr::Const(v));
    let place = |t: usize, l: usize| Loc((l % threads[t].locations.len()) as u32);
    // Of the threads that do something.
    let busy: Vec<usize> = (0..threads.len()).filter(|t| !threads[*t].edges.is_empty()).collect();
    let thread = |t: &usize| busy[t % busy.len()];
    let id = |t: &usize| ThreadId(thread(t) as u16);
    let pred = |asked: &Asked| {
        let is = match &asked.fact {
            Fact::At(t, l) => Expr::Atom(Atom::At(id(t), vec![place(thread(t), *l)])),
            Fact::AtEither(t, l, m) => {
                let places = vec![place(thread(t), *l), place(thread(t), *m)];
                Expr::Atom(Atom::At(id(t), places))
            }
            Fact::Reg(t, r, op, v) => compare(*op, Atom::Reg(id(t), Reg(*r)), *v),
            Fact::Mem(a, op, v) => compare(*op, Atom::Mem(Addr(*a as u32)), *v),
            Fact::Same(t, r, a) => {
                let (register, cell) = (Atom::Reg(id(t), Reg(*r)), Atom::Mem(Addr(*a as u32)));
                Expr::binary(BinOp::Eq, Expr::Atom(register), Expr::Atom(cell))
            }
        };
        if asked.positive { is } else { is.negated() }
    };
    let join = |all: Option<Expr<Atom>>, asked: &Asked| match all {
        None => Some(pred(asked)),
        Some(all) => Some(Expr::binary(if asked.and { BinOp::And } else { BinOp::Or }, all, pred(asked))),
    };
    let all = facts.iter().fold(None, join);
    Property::new(kind, all.unwrap_or(Expr::Const(0)), 0)
}

/// Random programs with one or two properties.
pub(crate) fn program(shape: Shape) -> impl Strategy<Value = Shown> {
    program_with(shape, 1..3)
}

/// Random programs with so many properties.
pub(crate) fn program_with(shape: Shape, properties: Range<usize>) -> impl Strategy<Value = Shown> {
    let lines = prop::collection::vec(line(shape), shape.lines.0..=shape.lines.1);
    let threads = prop::collection::vec(lines, shape.threads.0..=shape.threads.1);
    let kind = prop_oneof![
        4 => Just(PropertyKind::Forbid),
        2 => Just(PropertyKind::Exists),
        1 => Just(PropertyKind::Never),
        1 => Just(PropertyKind::Forall),
    ];
    let asked = (fact(shape), prop::bool::weighted(0.85), prop::bool::weighted(0.9));
    let asked = asked.prop_map(|(fact, positive, and)| Asked { fact, positive, and });
    let asked = prop::collection::vec((kind, prop::collection::vec(asked, 1..4)), properties);
    (threads, asked, 0i64..2).prop_map(move |(threads, asked, init)| {
        let name = |t: usize| format!("t{t}");
        let idle = std::iter::repeat_n(vec![], shape.bystanders);
        let threads: Vec<ThreadParts> =
            idle.chain(threads).enumerate().map(|(t, lines)| thread(name(t), &lines, shape)).collect();
        let properties = asked.iter().map(|(kind, facts)| property(*kind, facts, &threads)).collect();
        let cell = |(i, name): (usize, &str)| Variable {
            name: name.to_string(),
            init: vec![if i == 0 { init } else { 0 }],
        };
        let mut memory: Vec<Variable> = ["x", "y", "z"].into_iter().enumerate().map(cell).collect();
        if shape.cells > 3 {
            memory.push(Variable { name: "a".to_string(), init: vec![0; shape.cells as usize - 3] });
        }
        let (no_hang, stretches, code) = (None, vec![], vec![]);
        let parts = ProgramParts { memory, threads, properties, no_hang, stretches, code };
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
    while let Some(flush) = steps(&state).into_iter().find(|s| s.event.kind == EventKind::Flush) {
        state = flush.state;
    }
    state
}

/// Random programs that forbid part of what is true at the end of one of their own runs: a goal that can be
/// reached, and perhaps only just.
pub(crate) fn pointed_program(shape: Shape, model: Model) -> impl Strategy<Value = Shown> {
    let choices = prop::collection::vec(any::<usize>(), 1..14);
    let masks = (any::<u32>(), any::<u32>());
    (program(shape), choices, masks).prop_map(move |(Shown(program), choices, (often, seldom))| {
        let state = walk(&program, model, &choices);
        let equals = |a: Atom, v: i64| Expr::binary(BinOp::Eq, Expr::Atom(a), Expr::Const(v));
        // A goal that names a location makes every reduction careful there, so few of them do.
        let at = |t: ThreadId| Expr::Atom(Atom::At(t, vec![state.at[t.index()]]));
        let places = program.thread_ids().filter(|t| often & seldom & 1 << ((16 + t.0) % 32) != 0);
        let places: Vec<Pred> = places.map(at).collect();
        let mut facts = Vec::new();
        for t in program.thread_ids() {
            let registers = state.registers[t.index()].iter().enumerate();
            facts.extend(registers.map(|(r, &v)| equals(Atom::Reg(t, Reg(r as u16)), v)));
        }
        facts.extend(state.memory.iter().enumerate().map(|(a, &v)| equals(Atom::Mem(Addr(a as u32)), v)));
        let chosen =
            facts.into_iter().enumerate().filter(|(i, _)| often >> (i % 32) & 1 != 0).map(|(_, f)| f);
        let pred =
            chosen.chain(places).reduce(|a, b| Expr::binary(BinOp::And, a, b)).unwrap_or(Expr::Const(1));
        let mut parts = program.to_parts();
        parts.properties = vec![Property::new(PropertyKind::Forbid, pred, 0)];
        Shown(Program::new(parts).expect("the generator keeps the rules"))
    })
}

/// Random programs whose goal leaves their registers alone until all is over: it names what memory holds, and
/// where some threads stand, at some point of one of their own runs, or also the registers if all threads
/// have ended there.
pub(crate) fn overseen_program(shape: Shape) -> impl Strategy<Value = Shown> {
    let choices = prop::collection::vec(any::<usize>(), 1..40);
    (program(shape), choices, any::<u32>()).prop_map(move |(Shown(program), choices, mask)| {
        let state = walk(&program, Model::Sc, &choices);
        let equals = |a: Atom, v: i64| Expr::binary(BinOp::Eq, Expr::Atom(a), Expr::Const(v));
        let ended = program.thread_ids().all(|t| state.at[t.index()] == program.thread(t).end());
        let mut facts = Vec::new();
        for t in program.thread_ids() {
            let registers = state.registers[t.index()].iter().enumerate();
            match ended {
                true => facts.extend(registers.map(|(r, &v)| equals(Atom::Reg(t, Reg(r as u16)), v))),
                false => facts.push(Expr::Atom(Atom::At(t, vec![state.at[t.index()]]))),
            }
        }
        facts.extend(state.memory.iter().enumerate().map(|(a, &v)| equals(Atom::Mem(Addr(a as u32)), v)));
        let chosen = facts.into_iter().enumerate().filter(|(i, _)| mask >> i & 3 != 0).map(|(_, f)| f);
        let pred = chosen.reduce(|a, b| Expr::binary(BinOp::And, a, b)).unwrap_or(Expr::Const(1));
        let kind = if ended { PropertyKind::Exists } else { PropertyKind::Forbid };
        let mut parts = program.to_parts();
        parts.properties = vec![Property::new(kind, pred, 0)];
        Shown(Program::new(parts).expect("the generator keeps the rules"))
    })
}

/// A program as a test failure should show it.
pub(crate) struct Shown(pub Program);

impl std::fmt::Debug for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "\n{}", overtake::front::tso::write(&self.0, &Limits::default()).unwrap())
    }
}

/// What a thread of a template does in one line; `i` is its index, and a place to go to is always ahead or at
/// `start`.
const TEMPLATE_LINES: &[&str] = &[
    "store [x], i",
    "store [x], 0",
    "store [y], i",
    "store [y], 1",
    "store [b + i], 1",
    "store [b + i], 0",
    "store [b + i], r",
    "store [own + i], i",
    "store [x], r",
    "load r, [x]",
    "load r, [y]",
    "load s, [b + i]",
    "load s, [b + 1]",
    "load r, [own + i]",
    "load s, [x + (s & 1)]",
    "r = i",
    "s = r",
    "s = 1",
    "r = any(0..=1)",
    "fence",
    "cas r, [x], 0, i",
    "xchg r, [y], i",
    "xchg r, [own + i], r",
    "add s, [b], 1",
    "lock",
    "unlock",
    "assume r != i",
    "assume r == 0",
    "assume s",
    "assert r != i || s == 0",
    "if r == i goto leave",
    "if r != 0 goto leave",
    "if r == s goto leave",
    "if s > 0 goto leave",
    "choose on, leave; on:",
];

const TEMPLATE_GOALS: &[&str] = &[
    "forbid two i: p[i]@leave",
    "forbid all i: p[i]@leave",
    "forbid all i: p[i].r == 0 && p[i]@leave",
    "forbid some i: p[i]@leave && p[i].r != 0 && [b] == 1",
    "forbid two i: p[i].r == [x] && p[i]@leave",
    "exists all i: p[i].r == 0",
    "exists some i: p[i].r == 2 && p[i].s == 1",
    "exists [x] == 1 && [y] == 2",
    "never two i: p[i].r != 0",
    "forall some i: p[i].r == [x]",
    "forbid p[2]@leave && [x] == 1",
];

/// What a thread that is not of the template does.
const STRANGERS: &[&str] = &[
    "",
    "load r, [x]; store [y], r",
    "store [x], 2; load r, [b + 2]",
    "load r, [y]; assume r == 2; store [x], 1",
];

/// A program whose threads are copies of one, but for an index that they store, compare and find their cells
/// with.
pub(crate) fn template_program(most_threads: i64, loops: bool) -> impl Strategy<Value = Shown> {
    let lines = prop::collection::vec(prop::sample::select(TEMPLATE_LINES), 2..6);
    let parts = (lines, prop::sample::select(TEMPLATE_GOALS), prop::sample::select(STRANGERS));
    let size = (2..=most_threads, 0i64..=1, any::<bool>());
    // Most begin where the text does; some threads of one template elsewhere.
    let begins =
        prop_oneof![3 => Just(vec![]), 1 => prop::collection::vec(any::<u32>(), most_threads as usize)];
    (parts, size, begins).prop_map(move |((lines, goal, stranger), (threads, first, again), begins)| {
        let mut body = String::new();
        for (k, line) in lines.iter().enumerate() {
            body += &format!("{}\n", line.replace("on", &format!("on{k}")));
        }
        let back = if loops && again { "if s == 0 goto start" } else { "nop" };
        let last = first + threads - 1;
        let stranger = if stranger.is_empty() { String::new() } else { format!("thread q; {stranger}; end\n") };
        let text = format!(
            "shared x, y, b[6], own[6]\nthread p[i in {first}..={last}]\nstart:\n{body}{back}\nleave: nop\nhalt\nr = 0; s = 0\nend\n\
             {stranger}{}\n",
            goal.replace("p[2]", &format!("p[{last}]"))
        );
        let read = overtake::front::tso::read(&text, &[], &Limits::default());
        let mut parts = read.unwrap_or_else(|e| panic!("{text}\n{e:?}")).program.to_parts();
        for (thread, begin) in parts.threads.iter_mut().zip(&begins) {
            thread.initial = Loc(begin % thread.locations.len() as u32);
        }
        Shown(Program::new(parts).expect("threads may begin anywhere"))
    })
}

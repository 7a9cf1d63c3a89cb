//! The shape of the text, on small programs; whether SPIN agrees about verdicts is asked in `tests/spin.rs`.

use super::{Joining, write};
use crate::limits::Limits;
use crate::model::program::{ProgramParts, ThreadParts};
use crate::model::{
    Addr, Atom, BinOp, Bytes, Edge, Expr, Instr, Loc, Location, Pred, Program, Property, PropertyKind, Reg,
    RegExpr, RmwOp, ThreadId, Value, Variable,
};

const R: Reg = Reg(0);

fn number(v: Value) -> RegExpr {
    Expr::Const(v)
}

fn reg() -> RegExpr {
    Expr::Atom(R)
}

fn equals(v: Value) -> RegExpr {
    Expr::binary(BinOp::Eq, reg(), number(v))
}

/// One thread with register `r`, memory `x` and `a[3]`, and these edges; the last location is its end.
fn program(edges: Vec<(u32, u32, Instr)>, properties: Vec<Property>) -> Program {
    let count = edges.iter().map(|(from, to, _)| from.max(to) + 1).max().unwrap_or(1);
    let edge = |(from, to, instr)| Edge {
        from: Loc(from),
        to: Loc(to),
        instr,
        line: 0,
        text: String::new(),
        origin: None,
    };
    let thread = ThreadParts {
        name: "p".into(),
        registers: vec!["r".into()],
        locations: vec![Location::default(); count as usize],
        edges: edges.into_iter().map(edge).collect(),
        initial: Loc(0),
        end: Loc(count - 1),
    };
    let memory = vec![
        Variable { name: "x".into(), init: vec![0] },
        Variable { name: "a".into(), init: vec![1, 2, 3] },
    ];
    Program::new(ProgramParts {
        memory,
        threads: vec![thread],
        properties,
        no_hang: None,
        stretches: vec![],
        code: vec![],
    })
    .expect("the test's program is valid")
}

fn property(kind: PropertyKind, pred: Pred) -> Property {
    Property::new(kind, pred, 0)
}

fn load(addr: RegExpr) -> Instr {
    Instr::Load { dst: R, addr, bytes: Bytes::WHOLE }
}

fn store(addr: RegExpr, value: RegExpr) -> Instr {
    Instr::Store { addr, value, bytes: Bytes::WHOLE }
}

fn joined(edges: Vec<(u32, u32, Instr)>, properties: Vec<Property>) -> String {
    write(&program(edges, properties), Joining::Joined, &Limits::default()).expect("Promela can say this")
}

#[track_caller]
fn has(text: &str, part: &str) {
    assert!(text.contains(part), "no `{part}` in\n{text}");
}

/// `load r, [x]; if r == 1 goto 2; goto 3`, and a use of r at 2.
fn load_and_branch() -> Vec<(u32, u32, Instr)> {
    vec![
        (0, 1, load(number(0))),
        (1, 2, Instr::Assume(equals(1))),
        (1, 3, Instr::Assume(equals(1).negated())),
        (2, 3, store(number(1), reg())),
    ]
}

#[test]
fn a_branch_on_a_load_is_a_guard_on_memory() {
    let text = joined(load_and_branch(), vec![]);
    has(&text, ":: d_step { (m_x == 1) -> r_r = m_x }; goto");
    has(&text, ":: (!(m_x == 1)); goto end3");
}

#[test]
fn literal_steps_are_one_per_instruction() {
    let text = write(&program(load_and_branch(), vec![]), Joining::Literal, &Limits::default())
        .expect("Promela can say this");
    has(&text, ":: r_r = m_x; goto end1");
    has(&text, ":: (r_r == 1); goto");
}

#[test]
fn a_location_that_a_property_names_is_not_skipped() {
    let at_branch = property(PropertyKind::Forbid, Expr::Atom(Atom::At(ThreadId(0), vec![Loc(1)])));
    let text = joined(load_and_branch(), vec![at_branch]);
    has(&text, ":: d_step { r_r = m_x; at_0 = 1; assert(!(at_0)) }; goto");
    has(&text, "(r_r == 1) -> at_0 = 0 }; goto");
}

#[test]
fn a_store_is_not_joined_to_a_branch_that_may_wait() {
    let edges =
        vec![(0, 1, load(number(0))), (1, 2, store(number(0), number(1))), (2, 3, Instr::Assume(equals(1)))];
    let text = joined(edges, vec![]);
    has(&text, ":: m_x = 1; goto end2");
    has(&text, "end2:\n    if\n    :: d_step { (r_r == 1) -> r_r = 0 }; goto end3");
}

#[test]
fn a_register_that_no_longer_matters_is_zero() {
    let edges =
        vec![(0, 1, load(number(0))), (1, 2, store(number(1), reg())), (2, 3, store(number(0), number(0)))];
    has(&joined(edges, vec![]), ":: d_step { m_a_0 = r_r; r_r = 0 }; goto");
}

#[test]
fn waiting_in_a_loop_is_waiting() {
    let edges = vec![
        (0, 1, load(number(0))),
        (1, 0, Instr::Assume(equals(0))),
        (1, 2, Instr::Assume(equals(0).negated())),
    ];
    has(&joined(edges, vec![]), "end0:\n    if\n    :: (!(m_x == 0)); goto end2\n    fi;");
}

#[test]
fn computed_addresses_make_an_array_of_what_they_may_touch() {
    let index = Expr::binary(BinOp::Add, number(1), reg());
    let edges = vec![(0, 1, Instr::Any { dst: R, lo: 0, hi: 2 }), (1, 2, store(index, number(300)))];
    let text = joined(edges, vec![]);
    has(&text, "short m_a[3] = {1, 2, 3};");
    has(&text, "bit m_x;");
    has(&text, ":: d_step { m_a[(1 + r_r) - 1] = 300; r_r = 0 }; goto");
    assert!(!text.contains("assert("), "every address is inside memory:\n{text}");
}

#[test]
fn an_access_outside_memory_and_a_division_by_zero_are_assertions() {
    let edges = vec![(0, 1, Instr::Any { dst: R, lo: 0, hi: 9 }), (1, 2, load(reg()))];
    let text = joined(edges, vec![]);
    has(&text, ":: d_step { (!(r_r < 4)) -> assert(false) }");
    let quotient = Expr::binary(BinOp::Div, number(6), reg());
    let text = joined(vec![(0, 1, store(number(0), quotient))], vec![]);
    has(&text, ":: d_step { (!(r_r != 0)) -> assert(false) }");
    let text = joined(vec![(0, 1, store(number(7), number(0)))], vec![]);
    has(&text, ":: d_step { (!(0)) -> assert(false) }");
}

#[test]
fn a_locked_instruction_evaluates_its_operands_first() {
    let swap = Instr::Rmw { dst: R, addr: number(0), op: RmwOp::Swap(reg()) };
    let text = joined(vec![(0, 1, swap), (1, 2, store(number(1), reg()))], vec![]);
    has(&text, "hidden int scratch;");
    has(&text, "d_step { scratch = m_x; m_x = r_r; r_r = scratch }");
    let cas = Instr::Rmw { dst: R, addr: number(0), op: RmwOp::Cas { old: number(0), new: number(1) } };
    let text = joined(vec![(0, 1, cas), (1, 2, store(number(1), reg()))], vec![]);
    has(&text, "d_step { r_r = m_x; m_x = (m_x == (0) -> 1 : m_x) }");
    let next = Expr::binary(BinOp::BitAnd, Expr::binary(BinOp::Add, reg(), number(1)), number(3));
    let general = Instr::Rmw { dst: R, addr: number(0), op: RmwOp::New(next) };
    let text = joined(vec![(0, 1, general), (1, 2, store(number(1), reg()))], vec![]);
    has(&text, "d_step { r_r = m_x; m_x = m_x + 1 & 3 }");
}

#[test]
fn memory_waits_while_another_thread_holds_it() {
    let edges = vec![(0, 1, Instr::Lock), (1, 2, store(number(0), number(1))), (2, 3, Instr::Unlock)];
    let text = joined(edges, vec![]);
    has(&text, "d_step { (owner == 0) -> owner = 1 }");
    has(&text, "d_step { (owner == 0 || owner == 1) -> m_x = 1 }");
    has(&text, "d_step { (owner == 1) -> owner = 0 }");
}

#[test]
fn final_states_are_judged_by_the_last_to_arrive() {
    let both = Expr::binary(
        BinOp::And,
        Expr::binary(BinOp::Eq, Expr::Atom(Atom::Reg(ThreadId(0), R)), Expr::Const(0)),
        Expr::Atom(Atom::Mem(Addr(0))),
    );
    let text = joined(vec![(0, 1, load(number(0)))], vec![property(PropertyKind::Exists, both)]);
    has(&text, "final_t_p_r_r = r_r; ended = ended + 1; assert(ended < 1 || (!(final_t_p_r_r == 0 && m_x)))");
}

#[test]
fn a_state_forbidden_from_the_start_is_found() {
    let start = property(PropertyKind::Forbid, Expr::Atom(Atom::At(ThreadId(0), vec![Loc(0)])));
    has(&joined(vec![(0, 1, Instr::Nop)], vec![start]), "violated_at_start");
}

#[test]
fn a_large_choice_is_a_loop_of_spins() {
    let edges = vec![(0, 1, Instr::Any { dst: R, lo: 0, hi: 999 }), (1, 2, store(number(0), reg()))];
    has(&joined(edges, vec![]), ":: select (r_r : 0 .. 999); goto");
}

#[test]
fn what_needs_more_than_32_bits_is_refused_by_name() {
    let edges = vec![(0, 1, store(number(0), number(1 << 40)))];
    let refusal = write(&program(edges, vec![]), Joining::Joined, &Limits::default())
        .expect_err("the constant is too large");
    let said = refusal.to_string();
    assert!(
        said.starts_with("thread `p`, line 0: `store [x], 1099511627776` cannot be written as Promela"),
        "{said}"
    );
    let shift = Expr::binary(BinOp::Shl, number(1), reg());
    assert!(
        write(&program(vec![(0, 1, store(number(0), shift))], vec![]), Joining::Joined, &Limits::default())
            .is_err()
    );
}

#[test]
fn an_access_without_any_memory_is_an_error() {
    let mut parts = program(vec![(0, 1, load(reg()))], vec![]).to_parts();
    parts.memory.clear();
    let program = Program::new(parts).expect("a program needs no memory");
    has(
        &write(&program, Joining::Joined, &Limits::default()).expect("Promela can say this"),
        "(!(0)) -> assert(false)",
    );
}

//! Can a forbidden state still be reached from here? The explicit engine is asked about the program that begins in a
//! given state: with the memory of that state, and threads that first set their registers, fill their buffers, and go
//! to where they are.
//!
//! What a thread does before it is there touches nothing but itself, and nothing of a forbidden state counts before
//! all are there. So every run of that program can be put in an order in which these steps come first, and what
//! remains is a run from the given state. Where a block holds memory this is not so: its owner would have to come
//! first.

use super::{Choice, EXPLICIT, Internal, Options, ShownRun, check, internal};
use crate::model::program::ThreadParts;
use crate::model::{Atom, BinOp, Edge, Expr, Instr, Loc, Location, Program, Reg, RegExpr, ThreadId};
use crate::query::{Act, Action, Answer, Clause, Goal, Limit, Limits};
use crate::semantics::State;
use crate::semantics::replay::{Stopped, perform};

/// What can come after a state.
#[derive(Clone, Debug)]
pub enum Onward {
    /// A forbidden state, by these decisions.
    Reachable(Vec<Action>),
    Unreachable,
    /// This limit was reached first, or it cannot be asked.
    Unknown(Result<Limit, &'static str>),
}

/// The state is the one that the decisions lead to.
pub fn onward(
    program: &Program,
    options: &Options,
    taken: &[Action],
    state: &State,
    limits: &Limits,
) -> Result<Onward, Internal> {
    if state.lock.is_some() {
        return Ok(Onward::Unknown(Err("a block holds memory; go on to its end first")));
    }
    if state.at.contains(&Loc::TRAP) {
        return Ok(Onward::Reachable(vec![]));
    }
    let Some((begun, goal)) = begun(program, state) else {
        return Ok(Onward::Unknown(Err("the program that begins here is too large")));
    };
    let options = Options { engine: Choice::Only(&EXPLICIT), run: ShownRun::Simplified, ..options.clone() };
    let trace = match check(&begun, &goal, &options, limits)?.answer {
        Answer::Holds(_) => return Ok(Onward::Unreachable),
        Answer::Unknown(limit) => return Ok(Onward::Unknown(Ok(limit))),
        Answer::Fails(trace) => trace,
    };
    let is_own = |action: &Action| match action.act {
        Act::Flush => true,
        Act::Step { edge, .. } => edge.index() < program.thread(action.thread).graph().edge_count(),
    };
    let rest: Vec<Action> = trace.events.iter().map(|e| e.action).filter(is_own).collect();
    // Believed only if the plain machine comes to a forbidden state in this way.
    let all = taken.iter().chain(&rest).copied();
    match perform(program, options.model, &Goal::of(program), all, limits) {
        Ok((events, Some(_))) => {
            Ok(Onward::Reachable(rest[..events.len().saturating_sub(taken.len())].to_vec()))
        }
        Err(Stopped::Limit(limit)) => Ok(Onward::Unknown(Ok(limit))),
        _ => Err(internal("a run from a state that was looked at does not replay")),
    }
}

/// The program that begins in the state, and the goal that counts once all threads are there.
fn begun(program: &Program, state: &State) -> Option<(Program, Goal)> {
    let mut parts = program.to_parts();
    let mut values = state.memory.iter().copied();
    for variable in &mut parts.memory {
        variable.init.iter_mut().zip(&mut values).for_each(|(cell, value)| *cell = value);
    }
    let mut there = Vec::new();
    for (thread, t) in parts.threads.iter_mut().zip(program.thread_ids()) {
        there.push(Atom::Reg(t, lead(thread, t, state)));
    }
    let begun = Program::new(parts).ok()?;
    let all = there.into_iter().map(Expr::Atom).reduce(|a, b| Expr::binary(BinOp::And, a, b))?;
    let Goal { clauses, ignores_errors } = Goal::of(program);
    let counts =
        |clause: Clause| Clause { pred: Expr::binary(BinOp::And, all.clone(), clause.pred), ..clause };
    Some((begun, Goal { clauses: clauses.into_iter().map(counts).collect(), ignores_errors }))
}

/// Lets the thread come to where it is in the state; the register that says that it is there.
fn lead(thread: &mut ThreadParts, t: ThreadId, state: &State) -> Reg {
    let there = Reg(thread.registers.len() as _);
    let mut name = "there".to_string();
    while thread.registers.contains(&name) {
        name.push('\'');
    }
    let set = |(k, &value): (usize, &i64)| Instr::Assign { dst: Reg(k as _), value: RegExpr::Const(value) };
    let registers = state.registers[t.index()].iter().enumerate().filter(|(_, value)| **value != 0).map(set);
    let stores = state.buffers[t.index()].iter().map(|waiting| Instr::Store {
        bytes: waiting.bytes,
        addr: RegExpr::Const(i64::from(waiting.addr.0)),
        value: RegExpr::Const(waiting.value),
    });
    let arrive = Instr::Assign { dst: there, value: RegExpr::Const(1) };
    let instrs: Vec<Instr> = registers.chain(stores).chain([arrive]).collect();
    thread.registers.push(name);
    let first = thread.locations.len() as u32;
    let count = instrs.len() as u32;
    thread.locations.extend((0..count).map(|_| Location::default()));
    for (k, instr) in (0..count).zip(instrs) {
        let to = if k + 1 == count { state.at[t.index()] } else { Loc(first + k + 1) };
        let text = String::new();
        thread.edges.push(Edge { from: Loc(first + k), to, instr, line: 0, text, origin: None });
    }
    thread.initial = Loc(first);
    there
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::tso;
    use crate::model::EdgeId;
    use crate::query::Model;
    use crate::semantics::replay::{follow, replay};

    const SB: &str = "shared x, y; thread p; store [x], 1; load r, [y]; end
                      thread q; store [y], 1; load s, [x]; end
                      never p.r == 0 && q.s == 0";

    fn asked(model: Model, decisions: &[(u16, Option<u32>)]) -> Onward {
        let limits = Limits::default();
        let program = tso::read(SB, &[], &limits).expect("a program").program;
        let action = |&(t, edge): &(u16, Option<u32>)| Action {
            thread: ThreadId(t),
            act: edge.map_or(Act::Flush, |e| Act::Step { edge: EdgeId(e), choice: None }),
        };
        let taken: Vec<Action> = decisions.iter().map(action).collect();
        let events = follow(&program, model, taken.iter().copied(), &limits).expect("it is possible");
        let state = replay(&program, model, &events, &limits).expect("it replays");
        let options = Options { model, ..Options::with_workers(1) };
        onward(&program, &options, &taken, &state, &limits).expect("no bug in overtake")
    }

    #[test]
    fn what_waits_in_buffers_is_part_of_the_state() {
        let is_open = |model, decisions: &[_]| matches!(asked(model, decisions), Onward::Reachable(_));
        assert!(is_open(Model::Tso, &[]));
        assert!(!is_open(Model::Sc, &[]));
        // While both stores wait, both loads may still overtake.
        assert!(is_open(Model::Tso, &[(0, Some(0)), (1, Some(0))]));
        assert!(is_open(Model::Tso, &[(0, Some(0)), (0, Some(1)), (1, Some(0))]));
        // Once one of them is in memory, the other thread sees it.
        assert!(!is_open(Model::Tso, &[(0, Some(0)), (0, None)]));
        assert!(!is_open(Model::Tso, &[(0, Some(0)), (0, Some(1)), (0, None)]));
        // Unless both have read.
        assert!(is_open(Model::Tso, &[(0, Some(0)), (1, Some(0)), (0, Some(1)), (1, Some(1)), (0, None)]));
    }

    #[test]
    fn the_way_on_ends_in_what_is_forbidden() {
        match asked(Model::Tso, &[(0, Some(0)), (0, Some(1))]) {
            Onward::Reachable(rest) => assert_eq!(rest.len(), 4),
            other => panic!("{other:?}"),
        }
    }
}

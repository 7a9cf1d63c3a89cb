//! Final states, found by the plain machines of `semantics` and by the explorer.

use overtake::engine::{self, Options, Pruning};
use overtake::model::{Addr, Atom, Expr, Program, Reg, ThreadId, Value};
use overtake::query::{Clause, Goal, Limits, Model, When};
use overtake::semantics::{State, sc, tso};
use std::collections::{BTreeSet, HashSet};

pub(crate) type States = BTreeSet<Vec<Value>>;

/// The final states by the plain machines; `None` if there are too many states.
pub(crate) fn by_definition(
    program: &Program,
    observed: &[Atom],
    model: Model,
    most: usize,
) -> Option<States> {
    let end = Goal {
        clauses: vec![Clause { when: When::Final, pred: Expr::Const(1), property: 0 }],
        ..Goal::default()
    };
    let start = State::initial(program);
    let (mut seen, mut todo, mut found) = (HashSet::from([start.clone()]), vec![start], States::new());
    while let Some(state) = todo.pop() {
        if state.against(program, &end).is_some() {
            let value = |atom: &Atom| match atom {
                Atom::Reg(t, r) => state.registers[t.index()][r.index()],
                Atom::Mem(a) => state.memory[a.index()],
                Atom::At(..) => unreachable!("locations are not observed"),
            };
            found.insert(observed.iter().map(value).collect());
        }
        let steps = match model {
            Model::Sc => sc::steps(program, &state),
            Model::Tso => tso::steps(program, &state, tso::Bound::Unbounded).0,
        };
        for step in steps {
            if seen.insert(step.state.clone()) {
                todo.push(step.state);
            }
        }
        if seen.len() > most {
            return None;
        }
    }
    Some(found)
}

/// With one worker, whatever the program's text says.
pub(crate) fn by_explorer(
    program: &Program,
    observed: &[Atom],
    model: Model,
    workers: usize,
) -> Option<States> {
    let pruning = if workers == 1 { Pruning::Off } else { Pruning::On };
    let options = Options { model, workers, pruning, ..Options::default() };
    let limits = Limits { states: Some(200_000), ..Limits::default() };
    engine::outcomes(program, observed, &options, &limits).states.ok()
}

/// Everything that a program has.
pub(crate) fn everything(program: &Program) -> Vec<Atom> {
    let of = |t: ThreadId| (0..program.thread(t).registers().len() as u16).map(move |r| Atom::Reg(t, Reg(r)));
    let cells = (0..program.cells() as u32).map(|a| Atom::Mem(Addr(a)));
    program.thread_ids().flat_map(of).chain(cells).collect()
}

//! Is a property true for no good reason? It is vacuous if no path of the control-flow graphs can lead to a
//! state against it: a label in dead code, or a final state where some thread has no way to its end.
//!
//! At first only the graphs count, not what registers and memory can hold: that is the engines' work. Where a property
//! of final states holds, it is then asked whether there is a final state at all: threads that wait for ever leave
//! none. The answer is a warning beside the verdict and never changes it.

use super::{Internal, Options, Pruning, ShownRun, check};
use crate::analysis::interval::{Interval, range};
use crate::model::{Atom, Expr, Loc, Program, Thread, ThreadId};
use crate::query::{Answer, Clause, Goal, Limits, Model, When};
use crate::semantics::{State, sc};
use std::collections::{BTreeSet, HashSet};

/// Steps of one thread after which another one has its turn.
const TURN: usize = 2_000;
/// Turns of all threads.
const TURNS: usize = 20;
/// States that are worth spending on whether there is a final state.
const EFFORT: u64 = 200_000;

/// If a limit is reached on the way, there are no more warnings.
pub(crate) fn warnings(program: &Program, goal: &Goal, limits: &Limits) -> Vec<String> {
    let within = |steps: usize| limits.spend(steps).is_ok();
    let mut warnings = Vec::new();
    if within(program.threads().iter().map(|t| t.graph().edge_count()).sum()) {
        let reachable: Vec<BTreeSet<Loc>> = program.threads().iter().map(Thread::reachable).collect();
        let clauses = goal.clauses.iter().take_while(|_| within(program.threads().len()));
        warnings.extend(clauses.filter_map(|c| warning(program, c, &reachable)));
    }
    warnings
}

fn warning(program: &Program, clause: &Clause, reachable: &[BTreeSet<Loc>]) -> Option<String> {
    let property = &program.properties()[clause.property];
    let place = match property.line {
        0 => format!("`{}`", property.kind.word()),
        line => format!("`{}` on line {}", property.kind.word(), program.place(line)),
    };
    let endless = || program.threads().iter().enumerate().find(|(t, th)| !reachable[*t].contains(&th.end()));
    if clause.when == When::Final
        && let Some((_, thread)) = endless()
    {
        return Some(format!("{place} is vacuous: thread `{}` has no path to its end", thread.name()));
    }
    let passed = |t: usize, l: &Loc| reachable[t].contains(l);
    let atom = |a: &Atom| match a {
        Atom::At(t, locs) if !locs.iter().any(|l| passed(t.index(), l)) => Interval::constant(0),
        Atom::At(..) => Interval::BOOL,
        Atom::Reg(..) | Atom::Mem(_) => Interval::FULL,
    };
    let never = range(&clause.pred, &atom) == Interval::constant(0);
    never.then(|| format!("{place} is vacuous: no path of the program leads to such a state"))
}

/// The warning that there is no final state, or that it is not known whether there is one, for what holds of all of
/// them.
pub(super) fn of_final_states(
    program: &Program,
    which: &str,
    options: &Options,
    limits: &Limits,
) -> Result<Option<String>, Internal> {
    if comes_to_an_end(program, limits) {
        return Ok(None);
    }
    let anywhere = Clause { when: When::Final, pred: Expr::Const(1), property: 0 };
    let goal = Goal { clauses: vec![anywhere], ignores_errors: true };
    let few = limits.with_states(limits.states.map_or(EFFORT, |asked| asked.min(EFFORT)));
    let mut unknown = false;
    // A final state under SC is one under TSO, and sooner found.
    for model in [Model::Sc, options.model] {
        let options = Options {
            model,
            run: ShownRun::AsFound,
            engine: Default::default(),
            effort: Some(EFFORT),
            pruning: Pruning::On,
            ..options.clone()
        };
        unknown = match check(program, &goal, &options, &few)?.answer {
            Answer::Fails(_) => return Ok(None),
            Answer::Holds(_) => false,
            Answer::Unknown(_) => true,
        };
    }
    Ok(Some(match unknown {
        true => format!("{which}, and it is not known whether any final state is reachable"),
        false => format!(
            "{which} only because no final state is reachable: not all threads can come to their ends \
             (`check --hang` asks why)"
        ),
    }))
}

/// Does a run under SC in which threads take long turns come to a final state? Most programs' do.
fn comes_to_an_end(program: &Program, limits: &Limits) -> bool {
    let mut state = State::initial(program);
    let at_end = |state: &State, t: ThreadId| state.at[t.index()] == program.thread(t).end();
    for _ in 0..TURNS {
        for t in program.thread_ids() {
            let mut seen = HashSet::new();
            for _ in 0..TURN {
                if at_end(&state, t) || !seen.insert(state.clone()) || limits.spend(100).is_err() {
                    break;
                }
                let mut steps = sc::thread_steps(program, &state, t).into_iter();
                match steps.find(|step| step.event.trap.is_none()) {
                    Some(step) => state = step.state,
                    None => break,
                }
            }
        }
        if program.thread_ids().all(|t| at_end(&state, t)) {
            return true;
        }
    }
    false
}

//! Is a property true for no good reason? It is vacuous if no path of the control-flow graphs can lead to a
//! state against it: a label in dead code, or a final state where some thread has no way to its end.
//!
//! Only the graphs count here, not what registers and memory can hold: that is the engines' work. The answer
//! is a warning beside the verdict and never changes it.

use crate::analysis::interval::{Interval, range};
use crate::model::{Atom, Loc, Program, Thread};
use crate::query::{Clause, Goal, Limits, When};
use std::collections::BTreeSet;

/// If a limit is reached on the way, there are no more warnings.
pub fn warnings(program: &Program, goal: &Goal, limits: &Limits) -> Vec<String> {
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

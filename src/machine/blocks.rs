//! Can the goal hold inside a `lock` … `unlock` block? There the others' store buffers are frozen and count as
//! they are, which engines without buffers have to know.

use crate::analysis::interval::{Interval, range};
use crate::model::{Atom, Program, Thread, ThreadId};
use crate::query::{Clause, Goal, When};

/// Can the goal hold while a thread is inside a block, so that it matters what is in the others' buffers?
pub fn may_hold_in_block(program: &Program, goal: &Goal) -> bool {
    if !program.has_locks() {
        return false;
    }
    let held: Vec<Vec<bool>> = program.threads().iter().map(Thread::inside_blocks).collect();
    goal.clauses.iter().any(|c| clause_may_hold(program, c, &held))
}

/// What is asked of one thread alone does not depend on buffers: the others' waiting stores might as well not
/// have been issued.
fn clause_may_hold(program: &Program, clause: &Clause, held: &[Vec<bool>]) -> bool {
    let mut threads = Vec::new();
    let mut memory = false;
    clause.pred.for_each_atom(&mut |atom| match atom {
        Atom::At(t, _) | Atom::Reg(t, _) => threads.push(*t),
        Atom::Mem(_) => memory = true,
    });
    threads.dedup();
    if clause.when == When::Always && !memory && threads.len() <= 1 {
        return false;
    }
    let holder = |u: ThreadId| {
        let inside = &held[u.index()];
        let atom = |a: &Atom| match a {
            Atom::At(t, locs) if *t == u && !locs.iter().any(|l| inside[l.index()]) => Interval::constant(0),
            Atom::At(..) => Interval::BOOL,
            Atom::Reg(..) | Atom::Mem(_) => Interval::FULL,
        };
        let possible = match clause.when {
            When::Always => inside.contains(&true),
            When::Final => inside[program.thread(u).end().index()],
        };
        possible && range(&clause.pred, &atom) != Interval::constant(0)
    };
    program.thread_ids().any(holder)
}

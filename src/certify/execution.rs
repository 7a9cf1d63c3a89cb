//! Does an execution show what it is said to show? It is performed by the axioms (`semantics::axioms`), and what
//! comes of it is held against the claim.

use super::{Confirmed, Doubt};
use crate::model::{EdgeId, Instr, Reg, ThreadId, Value};
use crate::query::{Answer, Goal, at, clause_holds};
use crate::semantics::axioms::{Execution, Performed, Setting, perform};
use crate::semantics::eval;
use std::collections::{BTreeSet, HashSet};

/// What an execution is said to show.
#[derive(Clone, Copy, Debug)]
pub enum ExecutionClaim<'a> {
    /// All threads end, and these registers have values that are not among those allowed.
    Unexplained { observed: &'a [(ThreadId, Reg)], allowed: &'a BTreeSet<Vec<Value>> },
    /// All threads end, and nothing else is asked.
    Complete,
    /// A thread goes wrong.
    Wrong,
    /// All threads have ended or wait for a condition that will never hold, and some do wait.
    Deadlock { waits: &'a HashSet<(ThreadId, EdgeId)> },
    /// A state is reached that the goal forbids.
    Reaches(&'a Goal),
}

/// An execution that the model allows, with what came of it.
#[derive(Clone, Debug)]
pub struct AllowedExecution {
    pub execution: Execution,
    pub performed: Performed,
}

/// The answer to `check`, under any of the models that are given by axioms.
#[derive(Clone, Debug)]
pub struct AxiomaticOutcome {
    pub answer: Answer<(), Confirmed<AllowedExecution>>,
    pub bound: u32,
    pub variables: usize,
    pub clauses: usize,
}

pub fn execution(
    setting: &Setting<'_>,
    execution: Execution,
    claim: ExecutionClaim<'_>,
) -> Result<Confirmed<AllowedExecution>, Doubt> {
    let performed = perform(setting, &execution)
        .map_err(|why| Doubt::refuted(format!("an execution does not replay: {why}")))?;
    let program = setting.program;
    let ended = |t: ThreadId| performed.at[t.index()] == program.thread(t).end();
    let all_end = program.thread_ids().all(ended);
    let shown = match claim {
        ExecutionClaim::Unexplained { observed, allowed } => {
            all_end && !allowed.contains(&observation(&performed, observed))
        }
        ExecutionClaim::Complete => all_end && performed.wrong.is_empty(),
        ExecutionClaim::Wrong => !performed.wrong.is_empty(),
        ExecutionClaim::Deadlock { waits } => {
            let waiting = program.thread_ids().filter(|t| !ended(*t)).collect::<Vec<_>>();
            let stuck = |t: &ThreadId| waits_for_good(setting, &performed, waits, *t);
            performed.wrong.is_empty() && !waiting.is_empty() && waiting.iter().all(stuck)
        }
        ExecutionClaim::Reaches(goal) => {
            let wrong = !goal.ignores_errors && !performed.wrong.is_empty();
            wrong || reaches(&performed, goal, all_end)
        }
    };
    match shown {
        true => Ok(Confirmed(AllowedExecution { execution, performed })),
        false => Err(Doubt::refuted("an execution does not show what it was found for".to_string())),
    }
}

/// What these registers hold in the end.
pub fn observation(performed: &Performed, observed: &[(ThreadId, Reg)]) -> Vec<Value> {
    observed.iter().map(|(t, r)| performed.registers[t.index()][r.index()]).collect()
}

/// The thread's last locked instruction read what its cell holds for good, and the condition behind it fails.
fn waits_for_good(
    setting: &Setting<'_>,
    performed: &Performed,
    waits: &HashSet<(ThreadId, EdgeId)>,
    t: ThreadId,
) -> bool {
    let registers = &performed.registers[t.index()];
    let fails = match setting.program.thread(t).edges_from(performed.at[t.index()])[..] {
        [(id, edge)] if waits.contains(&(t, id)) => {
            matches!(&edge.instr, Instr::Assume(e) if eval(registers, e) == Ok(0))
        }
        _ => false,
    };
    let own = performed.accesses.iter().filter(|a| a.thread == t.index());
    let last = own.max_by_key(|a| a.step);
    fails
        && last.is_some_and(|a| {
            a.written.is_none()
                && a.read.is_some()
                && a.read == performed.memory.get(a.addr as usize).copied()
        })
}

fn reaches(performed: &Performed, goal: &Goal, all_end: bool) -> bool {
    use crate::model::Atom;
    let atom = |a: &Atom| match a {
        Atom::At(t, locs) => at(performed.at[t.index()], locs),
        Atom::Reg(t, r) => performed.registers[t.index()][r.index()],
        Atom::Mem(a) => performed.memory[a.index()],
    };
    goal.clauses.iter().any(|c| clause_holds(c, || all_end, &atom))
}

//! What is asked? A memory model, and the states that must not be reached.

use crate::model::{Atom, Expr, Loc, Pred, Program, PropertyKind, Value};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    Sc,
    Tso,
}

impl Model {
    pub fn name(self) -> &'static str {
        match self {
            Model::Sc => "sc",
            Model::Tso => "tso",
        }
    }
}

/// The states that must not be reached: any clause holds, or a thread stands at [`Loc::TRAP`].
///
/// Under TSO a clause counts only while every buffer is empty, except that inside a `lock` … `unlock` block
/// the other threads' buffers are frozen and count as they are.
#[derive(Clone, Debug, Default)]
pub struct Goal {
    pub clauses: Vec<Clause>,
    /// Whether a thread that has gone wrong is no goal and just stands still.
    pub ignores_errors: bool,
}

#[derive(Clone, Debug)]
pub struct Clause {
    pub when: When,
    pub pred: Pred,
    /// Which of the program's properties this clause is against.
    pub property: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    Always,
    /// Every thread stands at its end.
    Final,
}

impl Goal {
    /// What `check` asks of a program: can a state against one of its properties be reached?
    pub fn of(program: &Program) -> Goal {
        let clause = |(property, p): (usize, &crate::model::Property)| {
            let (when, pred) = match p.kind {
                PropertyKind::Forbid => (When::Always, p.pred.clone()),
                PropertyKind::Exists | PropertyKind::Never => (When::Final, p.pred.clone()),
                PropertyKind::Forall => (When::Final, p.pred.clone().negated()),
            };
            Clause { when, pred, property }
        };
        let clauses = program.properties().iter().enumerate().map(clause).collect();
        Goal { clauses, ignores_errors: false }
    }

    /// The atoms whose value matters in every state, not in final ones alone.
    pub fn for_each_lasting_atom(&self, visit: &mut impl FnMut(&Atom)) {
        for clause in self.clauses.iter().filter(|c| c.when == When::Always) {
            clause.pred.for_each_atom(&mut |a| visit(a));
        }
    }

    /// Can a thread's arrival at a location only bring goal states about, and end none that is not final?
    pub fn grows_with_arrivals(&self) -> bool {
        let lasting = self.clauses.iter().filter(|c| c.when == When::Always);
        lasting.into_iter().all(|c| c.pred.grows_with(&|a| matches!(a, Atom::At(..))))
    }
}

/// Does the clause hold, given where the threads stand and what an atom is worth?
pub fn clause_holds(clause: &Clause, all_at_end: impl Fn() -> bool, atom: &impl Fn(&Atom) -> Value) -> bool {
    let counts = clause.when == When::Always || all_at_end();
    counts && holds(&clause.pred, atom)
}

fn holds(pred: &Expr<Atom>, atom: &impl Fn(&Atom) -> Value) -> bool {
    pred.eval(atom).expect("validity refuses predicates that may divide by zero") != 0
}

/// Is the thread at one of the locations that an atom names?
pub fn at(loc: Loc, locs: &[Loc]) -> Value {
    locs.contains(&loc) as Value
}

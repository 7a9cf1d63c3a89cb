//! Can all clauses hold at once? The one place that knows a SAT solver: batsat, asked again and again under
//! assumptions, with clauses added in between.
//!
//! Every clause that the solver is given or learns can be kept, so that `proof` can follow why there is no
//! solution.

use super::proof::Proof;
use crate::query::{Limit, Limits};
use batsat::{Callbacks, ClauseKind, Solver, SolverInterface, SolverOpts, Var, lbool};
use std::cell::RefCell;
use std::collections::HashSet;
use std::ops::Not;

/// A variable or its negation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lit(u32);

impl Lit {
    /// The first variable always holds.
    pub const TRUE: Lit = Lit(0);
    pub const FALSE: Lit = Lit(1);

    pub fn new(variable: usize, negated: bool) -> Lit {
        Lit(2 * variable as u32 + u32::from(negated))
    }

    pub fn variable(self) -> usize {
        (self.0 / 2) as usize
    }

    pub fn is_negated(self) -> bool {
        self.0 % 2 == 1
    }

    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl Not for Lit {
    type Output = Lit;

    fn not(self) -> Lit {
        Lit(self.0 ^ 1)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SolverReply {
    /// Whether each variable holds.
    Solution(Vec<bool>),
    /// Assumptions that cannot hold together.
    Core(Vec<Lit>),
}

/// What is asked of a solver.
pub(super) trait Sat {
    fn add(&mut self, clause: &[Lit]);
    /// A clause that follows from the others.
    fn remember(&mut self, clause: &[Lit]);
    fn solve(&mut self, assumptions: &[Lit]) -> Result<SolverReply, Limit>;
}

pub(super) struct Batsat<'l> {
    solver: Solver<SolverWatch<'l>>,
    limits: &'l Limits,
    variables: usize,
}

/// Looks after limits, and keeps what is learnt.
struct SolverWatch<'l> {
    limits: &'l Limits,
    reached: RefCell<Option<Limit>>,
    proof: Option<Proof>,
}

impl Callbacks for SolverWatch<'_> {
    fn on_new_clause(&mut self, clause: &[batsat::Lit], kind: ClauseKind) {
        if let (Some(proof), ClauseKind::Learnt) = (&mut self.proof, kind) {
            proof.learnt(clause.iter().map(|l| Lit::new(l.var().idx() as usize, !l.sign())).collect());
        }
    }

    fn stop(&self) -> bool {
        match self.limits.spend(1 << 10) {
            Ok(()) => false,
            Err(limit) => {
                *self.reached.borrow_mut() = Some(limit);
                true
            }
        }
    }
}

impl<'l> Batsat<'l> {
    /// With `proving`, all clauses are kept.
    pub(super) fn new(limits: &'l Limits, proving: bool) -> Batsat<'l> {
        let proof = proving.then(Proof::default);
        let watch = SolverWatch { limits, reached: RefCell::new(None), proof };
        let mut new = Batsat { solver: Solver::new(SolverOpts::default(), watch), limits, variables: 0 };
        new.add(&[Lit::TRUE]);
        new
    }

    fn lit(&mut self, lit: Lit) -> batsat::Lit {
        while self.variables <= lit.variable() {
            self.solver.new_var_default();
            self.variables += 1;
        }
        batsat::Lit::new(Var::unsafe_from_idx(lit.variable() as u32), !lit.is_negated())
    }

    fn put(&mut self, clause: &[Lit]) {
        let mut lits: Vec<batsat::Lit> = clause.iter().map(|l| self.lit(*l)).collect();
        self.solver.add_clause_reuse(&mut lits);
    }

    pub(super) fn proof(&self) -> Option<&Proof> {
        self.solver.cb().proof.as_ref()
    }
}

impl Sat for Batsat<'_> {
    fn add(&mut self, clause: &[Lit]) {
        if let Some(proof) = &mut self.solver.cb_mut().proof {
            proof.given(clause.to_vec());
        }
        self.put(clause);
    }

    fn remember(&mut self, clause: &[Lit]) {
        if let Some(proof) = &mut self.solver.cb_mut().proof {
            proof.learnt(clause.to_vec());
        }
        self.put(clause);
    }

    fn solve(&mut self, assumptions: &[Lit]) -> Result<SolverReply, Limit> {
        self.limits.spend(1)?;
        let assumed: Vec<batsat::Lit> = assumptions.iter().map(|l| self.lit(*l)).collect();
        let result = self.solver.solve_limited(&assumed);
        if result == lbool::TRUE {
            let holds = |v: usize| self.solver.value_var(Var::unsafe_from_idx(v as u32)) == lbool::TRUE;
            return Ok(SolverReply::Solution((0..self.variables).map(holds).collect()));
        }
        if result == lbool::FALSE {
            let named: HashSet<usize> =
                self.solver.unsat_core().iter().map(|l| l.var().idx() as usize).collect();
            let core = assumptions.iter().copied().filter(|l| named.contains(&l.variable()));
            return Ok(SolverReply::Core(core.collect()));
        }
        Err(self.solver.cb().reached.borrow().clone().unwrap_or(Limit::Cancelled))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn brute_force_agrees(
            clauses in prop::collection::vec(prop::collection::vec((1..7usize, any::<bool>()), 1..4), 0..30),
            assumed in prop::collection::vec((1..7usize, any::<bool>()), 0..4),
        ) {
            let lit = |&(v, n): &(usize, bool)| Lit::new(v, n);
            let clauses: Vec<Vec<Lit>> = clauses.iter().map(|c| c.iter().map(lit).collect()).collect();
            let assumed: Vec<Lit> = assumed.iter().map(lit).collect();
            let limits = Limits::default();
            let mut solver = Batsat::new(&limits, true);
            clauses.iter().for_each(|c| solver.add(c));
            let holds = |bits: u32, l: &Lit| (bits >> l.variable() & 1 == 1) != l.is_negated();
            let good = |bits: u32, assumed: &[Lit]| {
                clauses.iter().all(|c| c.iter().any(|l| holds(bits, l))) && assumed.iter().all(|l| holds(bits, l))
            };
            match solver.solve(&assumed).unwrap() {
                SolverReply::Solution(values) => {
                    let bits = values.iter().enumerate().fold(0, |bits, (v, b)| bits | u32::from(*b) << v);
                    prop_assert!(good(bits, &assumed));
                }
                SolverReply::Core(core) => {
                    prop_assert!(core.iter().all(|l| assumed.contains(l)), "{core:?} {assumed:?}");
                    prop_assert!(!(0..128).any(|bits| good(bits, &core)));
                    prop_assert!(solver.proof().unwrap().refutes(&core, &limits).unwrap());
                }
            }
        }
    }
}

//! Do the clauses really contradict each other? What a solver has learnt, checked step by step.
//!
//! Every learnt clause must follow from those before it by reverse unit propagation: assume that it is false,
//! and unit clauses alone lead to a contradiction. So must, at the end, the clause that says that not all
//! assumptions hold. Nothing of the solver is trusted; the clauses that it was given are.

use super::sat::Lit;
use crate::query::{Limit, Limits};

#[derive(Clone, Debug, Default)]
pub(super) struct Proof {
    /// In the order in which they came; whether each was learnt.
    clauses: Vec<(Vec<Lit>, bool)>,
}

impl Proof {
    pub(super) fn given(&mut self, clause: Vec<Lit>) {
        self.clauses.push((clause, false));
    }

    pub(super) fn learnt(&mut self, clause: Vec<Lit>) {
        self.clauses.push((clause, true));
    }

    /// Does it follow that these cannot hold together?
    pub(super) fn refutes(&self, assumptions: &[Lit], limits: &Limits) -> Result<bool, Limit> {
        let mut checker = ProofChecker::default();
        for (clause, learnt) in &self.clauses {
            limits.spend(clause.len())?;
            if *learnt && !checker.follows(clause, limits)? {
                return Ok(false);
            }
            checker.add(clause);
        }
        let refuted: Vec<Lit> = assumptions.iter().map(|l| !*l).collect();
        checker.follows(&refuted, limits)
    }
}

#[derive(Default)]
struct ProofChecker {
    clauses: Vec<Vec<Lit>>,
    /// For each literal the clauses that watch it: one of their first two.
    watches: Vec<Vec<usize>>,
    values: Vec<Option<bool>>,
    trail: Vec<Lit>,
    /// How much of the trail has been propagated.
    done: usize,
    contradiction: bool,
}

impl ProofChecker {
    fn value(&self, lit: Lit) -> Option<bool> {
        self.values.get(lit.variable()).copied().flatten().map(|value| value != lit.is_negated())
    }

    fn grow(&mut self, clause: &[Lit]) {
        let most = clause.iter().map(|l| l.variable() + 1).max().unwrap_or(0);
        if self.values.len() < most {
            self.values.resize(most, None);
            self.watches.resize(2 * most, Vec::new());
        }
    }

    fn set(&mut self, lit: Lit) {
        self.values[lit.variable()] = Some(!lit.is_negated());
        self.trail.push(lit);
    }

    /// Takes the clause for granted.
    fn add(&mut self, clause: &[Lit]) {
        self.grow(clause);
        let mut clause = clause.to_vec();
        clause.sort_unstable();
        clause.dedup();
        if clause.windows(2).any(|pair| pair[0] == !pair[1]) {
            return;
        }
        // What is not false comes first, to be watched.
        clause.sort_by_key(|l| self.value(*l) == Some(false));
        match clause[..] {
            [] => self.contradiction = true,
            [first, ..] if self.value(first) == Some(false) => self.contradiction = true,
            [first, ref rest @ ..] => {
                let unit = rest.first().is_none_or(|l| self.value(*l) == Some(false));
                if unit && self.value(first).is_none() {
                    self.set(first);
                }
            }
        }
        if clause.len() > 1 {
            clause[..2].iter().for_each(|l| self.watches[l.index()].push(self.clauses.len()));
            self.clauses.push(clause);
        }
        self.contradiction = self.contradiction || !self.propagate();
    }

    /// Everything that follows by unit clauses; false if that is a contradiction.
    fn propagate(&mut self) -> bool {
        while self.done < self.trail.len() {
            let falsified = !self.trail[self.done];
            self.done += 1;
            let mut watching = std::mem::take(&mut self.watches[falsified.index()]);
            let mut k = 0;
            while k < watching.len() {
                let number = watching[k];
                let mut clause = std::mem::take(&mut self.clauses[number]);
                if clause[0] == falsified {
                    clause.swap(0, 1);
                }
                let other = clause[0];
                let next = match self.value(other) {
                    Some(true) => None,
                    _ => (2..clause.len()).find(|&i| self.value(clause[i]) != Some(false)),
                };
                if let Some(next) = next {
                    clause.swap(1, next);
                    self.watches[clause[1].index()].push(number);
                    watching.swap_remove(k);
                } else {
                    k += 1;
                }
                self.clauses[number] = clause;
                if next.is_none() {
                    match self.value(other) {
                        Some(true) => {}
                        None => self.set(other),
                        Some(false) => {
                            self.watches[falsified.index()].append(&mut watching);
                            return false;
                        }
                    }
                }
            }
            self.watches[falsified.index()].append(&mut watching);
        }
        true
    }

    /// Do unit clauses lead to a contradiction once the clause is false?
    fn follows(&mut self, clause: &[Lit], limits: &Limits) -> Result<bool, Limit> {
        if self.contradiction {
            return Ok(true);
        }
        self.grow(clause);
        let before = self.trail.len();
        let mut contradiction = false;
        for lit in clause {
            match self.value(*lit) {
                Some(true) => contradiction = true,
                Some(false) => {}
                None => self.set(!*lit),
            }
        }
        contradiction = contradiction || !self.propagate();
        limits.spend(self.trail.len() - before)?;
        for lit in self.trail.drain(before..) {
            self.values[lit.variable()] = None;
        }
        self.done = before;
        Ok(contradiction)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lits(clause: &[i32]) -> Vec<Lit> {
        clause.iter().map(|l| Lit::new(l.unsigned_abs() as usize, *l < 0)).collect()
    }

    #[test]
    fn a_step_that_does_not_follow_is_noticed() {
        let mut proof = Proof::default();
        [[1, 2], [1, -2], [-1, 2]].iter().for_each(|c| proof.given(lits(c)));
        let limits = Limits::default();
        assert_eq!(proof.refutes(&[], &limits), Ok(false));
        let mut wrong = proof.clone();
        wrong.learnt(lits(&[-2]));
        assert_eq!(wrong.refutes(&[], &limits), Ok(false));
        proof.learnt(lits(&[1]));
        assert_eq!(proof.refutes(&lits(&[-2]), &limits), Ok(true));
        proof.given(lits(&[-1, -2]));
        assert_eq!(proof.refutes(&[], &limits), Ok(true));
    }
}

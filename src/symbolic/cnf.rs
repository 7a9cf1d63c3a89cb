//! Clauses and gates: what is said of literals, simplified by what is known to hold for good, and each gate
//! made once.

use super::sat::{Batsat, Lit, Sat, SolverReply};
use crate::query::{Limit, Limits};
use std::collections::HashMap;

pub struct Cnf<'l> {
    solver: Batsat<'l>,
    variables: usize,
    clauses: usize,
    ands: HashMap<(Lit, Lit), Lit>,
    xors: HashMap<(Lit, Lit), Lit>,
}

impl<'l> Cnf<'l> {
    pub fn new(limits: &'l Limits, proving: bool) -> Cnf<'l> {
        let solver = Batsat::new(limits, proving);
        Cnf { solver, variables: 1, clauses: 0, ands: HashMap::new(), xors: HashMap::new() }
    }

    /// Without the one that always holds.
    pub fn variables(&self) -> usize {
        self.variables - 1
    }

    pub fn clauses(&self) -> usize {
        self.clauses
    }

    pub fn fresh(&mut self) -> Lit {
        self.variables += 1;
        Lit::new(self.variables - 1, false)
    }

    pub fn clause(&mut self, lits: &[Lit]) {
        if lits.contains(&Lit::TRUE) {
            return;
        }
        let kept: Vec<Lit> = lits.iter().copied().filter(|l| *l != Lit::FALSE).collect();
        self.clauses += 1;
        self.solver.add(&kept);
    }

    pub fn and(&mut self, a: Lit, b: Lit) -> Lit {
        match (a, b) {
            (Lit::FALSE, _) | (_, Lit::FALSE) => Lit::FALSE,
            (Lit::TRUE, x) | (x, Lit::TRUE) => x,
            _ if a == b => a,
            _ if a == !b => Lit::FALSE,
            _ => {
                let key = (a.min(b), a.max(b));
                if let Some(known) = self.ands.get(&key) {
                    return *known;
                }
                let out = self.fresh();
                self.clause(&[!out, a]);
                self.clause(&[!out, b]);
                self.clause(&[out, !a, !b]);
                self.ands.insert(key, out);
                out
            }
        }
    }

    pub fn or(&mut self, a: Lit, b: Lit) -> Lit {
        !self.and(!a, !b)
    }

    pub fn all(&mut self, lits: impl IntoIterator<Item = Lit>) -> Lit {
        lits.into_iter().fold(Lit::TRUE, |all, l| self.and(all, l))
    }

    pub fn any(&mut self, lits: impl IntoIterator<Item = Lit>) -> Lit {
        let none = lits.into_iter().fold(Lit::TRUE, |all, l| self.and(all, !l));
        !none
    }

    pub fn xor(&mut self, a: Lit, b: Lit) -> Lit {
        match (a, b) {
            (Lit::FALSE, x) | (x, Lit::FALSE) => x,
            (Lit::TRUE, x) | (x, Lit::TRUE) => !x,
            _ if a == b => Lit::FALSE,
            _ if a == !b => Lit::TRUE,
            _ => {
                // The negations move to the outside.
                let negated = a.is_negated() != b.is_negated();
                let plain = |l: Lit| if l.is_negated() { !l } else { l };
                let (a, b) = (plain(a), plain(b));
                let key = (a.min(b), a.max(b));
                let out = match self.xors.get(&key) {
                    Some(known) => *known,
                    None => {
                        let out = self.fresh();
                        self.clause(&[!out, a, b]);
                        self.clause(&[!out, !a, !b]);
                        self.clause(&[out, !a, b]);
                        self.clause(&[out, a, !b]);
                        self.xors.insert(key, out);
                        out
                    }
                };
                if negated { !out } else { out }
            }
        }
    }

    /// The first one if the condition holds, else the second.
    pub fn choice(&mut self, condition: Lit, a: Lit, b: Lit) -> Lit {
        match condition {
            _ if a == b => a,
            Lit::TRUE => a,
            Lit::FALSE => b,
            _ => {
                let (yes, no) = (self.and(condition, a), self.and(!condition, b));
                self.or(yes, no)
            }
        }
    }

    /// What cannot hold together is remembered, which makes the next question easier.
    pub fn solve(&mut self, assumptions: &[Lit]) -> Result<SolverReply, Limit> {
        let mut reply = self.solver.solve(assumptions)?;
        match &mut reply {
            // The solver has not heard of those that no clause names: any value will do.
            SolverReply::Solution(values) => values.resize(self.variables, false),
            SolverReply::Core(core) => {
                let never: Vec<Lit> = core.iter().map(|l| !*l).collect();
                self.solver.remember(&never);
            }
        }
        Ok(reply)
    }

    /// Does what the solver learnt prove that these assumptions cannot hold together? Nothing if no record was
    /// kept.
    pub fn proved(&self, core: &[Lit], limits: &Limits) -> Result<Option<bool>, Limit> {
        self.solver.proof().map(|proof| proof.refutes(core, limits)).transpose()
    }
}

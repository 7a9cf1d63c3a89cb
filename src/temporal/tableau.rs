//! From a formula to an automaton: the tableau of Gerth, Peled, Vardi and Wolper `[Gerth95]`, with acceptance on
//! edges `[Couvreur99]`.
//!
//! A state of the automaton is a set of formulas that have to hold from now on. Expanding them says what must
//! hold at once, literals, and what must hold next; each way to do so is an edge. Every until is a set: an
//! edge belongs to it unless the until has to hold and what it waits for is put off.

use super::automaton::{Automaton, AutomatonEdge, Guard};
use crate::model::formula::{Connective, Formula};
use crate::query::{Limit, Limits};
use crate::reach::cycles::Marks;
use std::collections::{BTreeSet, HashMap};

/// What a formula costs to expand, in steps.
const STEP: usize = 16;

/// A formula in negation normal form, by its number in the table.
type Id = usize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Normal {
    True,
    False,
    Literal(usize, bool),
    And(Id, Id),
    Or(Id, Id),
    Next(Id),
    Until(Id, Id),
    Release(Id, Id),
}

/// All formulas that occur, each once.
#[derive(Default)]
struct FormulaTable {
    nodes: Vec<Normal>,
    ids: HashMap<Normal, Id>,
}

impl FormulaTable {
    fn add(&mut self, node: Normal) -> Id {
        let next = self.nodes.len();
        let id = *self.ids.entry(node).or_insert(next);
        if id == next {
            self.nodes.push(node);
        }
        id
    }

    fn truth(&mut self, value: bool) -> Id {
        self.add(if value { Normal::True } else { Normal::False })
    }

    fn and(&mut self, a: Id, b: Id) -> Id {
        match (self.nodes[a], self.nodes[b]) {
            (Normal::True, _) => b,
            (_, Normal::True) => a,
            (Normal::False, _) | (_, Normal::False) => self.truth(false),
            (Normal::Literal(p, x), Normal::Literal(q, y)) if p == q && x != y => self.truth(false),
            // G a && G b is G (a && b).
            (Normal::Release(f, a), Normal::Release(g, b)) if f == g && self.nodes[f] == Normal::False => {
                let both = self.and(a, b);
                self.release(f, both)
            }
            _ if a == b => a,
            _ => self.add(Normal::And(a.min(b), a.max(b))),
        }
    }

    fn or(&mut self, a: Id, b: Id) -> Id {
        match (self.nodes[a], self.nodes[b]) {
            (Normal::False, _) => b,
            (_, Normal::False) => a,
            (Normal::True, _) | (_, Normal::True) => self.truth(true),
            (Normal::Literal(p, x), Normal::Literal(q, y)) if p == q && x != y => self.truth(true),
            // F a || F b is F (a || b).
            (Normal::Until(t, a), Normal::Until(u, b)) if t == u && self.nodes[t] == Normal::True => {
                let either = self.or(a, b);
                self.until(t, either)
            }
            _ if a == b => a,
            _ => self.add(Normal::Or(a.min(b), a.max(b))),
        }
    }

    fn next(&mut self, a: Id) -> Id {
        match self.nodes[a] {
            Normal::True | Normal::False => a,
            _ => self.add(Normal::Next(a)),
        }
    }

    fn until(&mut self, a: Id, b: Id) -> Id {
        match (self.nodes[a], self.nodes[b]) {
            (_, Normal::True | Normal::False) | (Normal::False, _) => b,
            // a U (a U b) is a U b, and F (a U b) is F b.
            (_, Normal::Until(c, _)) if a == c => b,
            (Normal::True, Normal::Until(_, d)) => self.until(a, d),
            // F G F a is G F a.
            (Normal::True, Normal::Release(f, g)) if self.is_finally(f, g) => b,
            _ => self.add(Normal::Until(a, b)),
        }
    }

    fn release(&mut self, a: Id, b: Id) -> Id {
        match (self.nodes[a], self.nodes[b]) {
            (_, Normal::True | Normal::False) | (Normal::True, _) => b,
            // a R (a R b) is a R b, and G (a R b) is G b.
            (_, Normal::Release(c, _)) if a == c => b,
            (Normal::False, Normal::Release(_, d)) => self.release(a, d),
            // G F G a is F G a.
            (Normal::False, Normal::Until(t, g)) if self.is_globally(t, g) => b,
            _ => self.add(Normal::Release(a, b)),
        }
    }

    /// Is `f R g` a formula G F …?
    fn is_finally(&self, f: Id, g: Id) -> bool {
        let under = |id: Id| matches!(self.nodes[id], Normal::Until(t, _) if self.nodes[t] == Normal::True);
        self.nodes[f] == Normal::False && under(g)
    }

    /// Is `t U g` a formula F G …?
    fn is_globally(&self, t: Id, g: Id) -> bool {
        let under =
            |id: Id| matches!(self.nodes[id], Normal::Release(f, _) if self.nodes[f] == Normal::False);
        self.nodes[t] == Normal::True && under(g)
    }

    /// The formula, or its negation.
    fn normal(&mut self, formula: &Formula, positive: bool, limits: &Limits) -> Result<Id, Limit> {
        limits.spend(STEP)?;
        Ok(match formula {
            Formula::True => self.truth(positive),
            Formula::False => self.truth(!positive),
            Formula::Proposition(p) => self.add(Normal::Literal(*p, positive)),
            Formula::Not(a) => self.normal(a, !positive, limits)?,
            Formula::Next(a) => {
                let a = self.normal(a, positive, limits)?;
                self.next(a)
            }
            Formula::Finally(a) | Formula::Globally(a) => {
                let is_finally = matches!(formula, Formula::Finally(_)) == positive;
                let a = self.normal(a, positive, limits)?;
                let other = self.truth(is_finally);
                if is_finally { self.until(other, a) } else { self.release(other, a) }
            }
            Formula::Binary(connective, a, b) => self.connected(*connective, a, b, positive, limits)?,
        })
    }

    fn connected(
        &mut self,
        connective: Connective,
        a: &Formula,
        b: &Formula,
        positive: bool,
        limits: &Limits,
    ) -> Result<Id, Limit> {
        let iff = match connective {
            Connective::Iff => Some(positive),
            Connective::Xor => Some(!positive),
            _ => None,
        };
        if let Some(same) = iff {
            let (a, not_a) = (self.normal(a, true, limits)?, self.normal(a, false, limits)?);
            let (b, not_b) = (self.normal(b, same, limits)?, self.normal(b, !same, limits)?);
            let (both, neither) = (self.and(a, b), self.and(not_a, not_b));
            return Ok(self.or(both, neither));
        }
        let a = self.normal(a, positive != (connective == Connective::Implies), limits)?;
        let b = self.normal(b, positive, limits)?;
        Ok(match (connective, positive) {
            (Connective::And, true) | (Connective::Or | Connective::Implies, false) => self.and(a, b),
            (Connective::And, false) | (Connective::Or | Connective::Implies, true) => self.or(a, b),
            (Connective::Until, true) | (Connective::Release, false) => self.until(a, b),
            (Connective::Until, false) | (Connective::Release, true) => self.release(a, b),
            // a W b is b R (a || b), and its negation is (not b) U (not a && not b).
            (Connective::WeakUntil, true) => {
                let either = self.or(a, b);
                self.release(b, either)
            }
            (Connective::WeakUntil, false) => {
                let both = self.and(a, b);
                self.until(b, both)
            }
            (Connective::Iff | Connective::Xor, _) => unreachable!("these were split"),
        })
    }
}

/// One way to meet obligations: what has been dealt with, literals among it, and what is left for later.
#[derive(Clone, Default)]
struct Cover {
    todo: Vec<Id>,
    done: BTreeSet<Id>,
    next: BTreeSet<Id>,
    guard: Guard,
}

pub(crate) fn automaton(formula: &Formula, limits: &Limits) -> Result<Automaton, Limit> {
    let mut table = FormulaTable::default();
    let root = table.normal(formula, true, limits)?;
    let untils: Vec<(Id, Id)> = (table.nodes.iter().enumerate())
        .filter_map(|(id, node)| if let Normal::Until(_, b) = node { Some((id, *b)) } else { None })
        .collect();
    if untils.len() >= Marks::BITS as usize {
        return Err(Limit::ProgramSize(format!("the formula has {} promises", untils.len())));
    }
    let start = BTreeSet::from([root]);
    let mut numbers = HashMap::from([(start.clone(), 0)]);
    let mut obligations = vec![start];
    let mut states = Vec::new();
    while states.len() < obligations.len() {
        let mut edges = Vec::new();
        for cover in covers(&table, &obligations[states.len()], limits)? {
            let fulfilled = |(u, b): &(Id, Id)| !cover.done.contains(u) || cover.done.contains(b);
            let marks = (untils.iter().enumerate()).filter(|(_, u)| fulfilled(u)).map(|(i, _)| 1 << i).sum();
            let to = *numbers.entry(cover.next.clone()).or_insert_with(|| {
                obligations.push(cover.next.clone());
                obligations.len() - 1
            });
            edges.push(AutomatonEdge { guard: cover.guard, to, marks, name: 0 });
        }
        states.push(edges);
    }
    Ok(Automaton { states, sets: untils.len() })
}

/// Every way to meet the obligations.
fn covers(table: &FormulaTable, obligations: &BTreeSet<Id>, limits: &Limits) -> Result<Vec<Cover>, Limit> {
    let mut open = vec![Cover { todo: obligations.iter().copied().collect(), ..Cover::default() }];
    let mut found = Vec::new();
    while let Some(mut cover) = open.pop() {
        limits.spend(STEP)?;
        let Some(id) = cover.todo.pop() else {
            found.push(cover);
            continue;
        };
        if !cover.done.insert(id) {
            open.push(cover);
            continue;
        }
        match table.nodes[id] {
            Normal::False => {}
            Normal::True => open.push(cover),
            Normal::Literal(p, positive) => {
                let (own, other) = match positive {
                    true => (&mut cover.guard.hold, cover.guard.fail),
                    false => (&mut cover.guard.fail, cover.guard.hold),
                };
                *own |= 1 << p;
                if other >> p & 1 == 0 {
                    open.push(cover);
                }
            }
            Normal::And(a, b) => {
                cover.todo.extend([a, b]);
                open.push(cover);
            }
            Normal::Or(a, b) => {
                open.push(cover.clone().with(a));
                open.push(cover.with(b));
            }
            Normal::Next(a) => {
                cover.next.insert(a);
                open.push(cover);
            }
            Normal::Until(a, b) => {
                open.push(cover.clone().with(b));
                cover.next.insert(id);
                open.push(cover.with(a));
            }
            Normal::Release(a, b) => {
                let mut both = cover.clone().with(a);
                both.todo.push(b);
                open.push(both);
                cover.next.insert(id);
                open.push(cover.with(b));
            }
        }
    }
    Ok(found)
}

impl Cover {
    fn with(mut self, id: Id) -> Cover {
        self.todo.push(id);
        self
    }
}

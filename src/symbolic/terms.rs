//! What does a thread compute? Expressions over what it loads and picks, shared and folded as they are made.
//!
//! A term is a number in one list; equal terms are the same number. Conditions are terms like all others: what
//! is not zero holds. Guards of instructions are conjunctions in the order of the branches, which is how
//! [`Terms::implies`] and [`Terms::or`] recognise them.

use crate::model::{BinOp, Expr, UnOp, Value};
use std::collections::HashMap;

/// A term, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TermId(pub u32);

impl TermId {
    pub const FALSE: TermId = TermId(0);
    pub const TRUE: TermId = TermId(1);

    pub fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TermNode {
    Const(Value),
    /// What a load reads, or what is picked: by its number among them.
    Input(u32),
    Unary(UnOp, TermId),
    Binary(BinOp, TermId, TermId),
    /// The first one if the condition holds, else the second.
    Choice(TermId, TermId, TermId),
}

/// How deep an implication is looked for.
const DEPTH: u32 = 64;

#[derive(Clone, Debug)]
pub struct Terms {
    nodes: Vec<TermNode>,
    known: HashMap<TermNode, TermId>,
    inputs: u32,
}

impl Default for Terms {
    fn default() -> Terms {
        let mut terms = Terms { nodes: Vec::new(), known: HashMap::new(), inputs: 0 };
        terms.constant(0);
        terms.constant(1);
        terms
    }
}

impl Terms {
    pub fn node(&self, t: TermId) -> TermNode {
        self.nodes[t.index()]
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// How many inputs there are.
    pub fn inputs(&self) -> usize {
        self.inputs as usize
    }

    fn intern(&mut self, node: TermNode) -> TermId {
        let next = TermId(self.nodes.len() as u32);
        let term = *self.known.entry(node).or_insert(next);
        if term == next {
            self.nodes.push(node);
        }
        term
    }

    pub fn constant(&mut self, value: Value) -> TermId {
        self.intern(TermNode::Const(value))
    }

    pub fn value(&self, t: TermId) -> Option<Value> {
        match self.node(t) {
            TermNode::Const(value) => Some(value),
            _ => None,
        }
    }

    /// A value that the thread does not make itself.
    pub fn input(&mut self) -> TermId {
        self.inputs += 1;
        self.intern(TermNode::Input(self.inputs - 1))
    }

    /// Is it 0 or 1 whatever happens?
    fn is_truth(&self, t: TermId) -> bool {
        use BinOp::*;
        match self.node(t) {
            TermNode::Const(value) => value == 0 || value == 1,
            TermNode::Unary(op, _) => op == UnOp::Not,
            TermNode::Binary(op, ..) => matches!(op, Or | And | Eq | Ne | Lt | Le | Gt | Ge),
            TermNode::Choice(_, a, b) => self.is_truth(a) && self.is_truth(b),
            TermNode::Input(_) => false,
        }
    }

    pub fn unary(&mut self, op: UnOp, a: TermId) -> TermId {
        match self.node(a) {
            TermNode::Const(value) => self.constant(op.apply(value)),
            TermNode::Unary(UnOp::Not, inner) if op == UnOp::Not && self.is_truth(inner) => inner,
            TermNode::Binary(BinOp::Eq, x, y) if op == UnOp::Not => {
                self.intern(TermNode::Binary(BinOp::Ne, x, y))
            }
            TermNode::Binary(BinOp::Ne, x, y) if op == UnOp::Not => {
                self.intern(TermNode::Binary(BinOp::Eq, x, y))
            }
            _ => self.intern(TermNode::Unary(op, a)),
        }
    }

    pub fn not(&mut self, a: TermId) -> TermId {
        self.unary(UnOp::Not, a)
    }

    /// The condition that the term is not zero, as 0 or 1.
    pub fn truth(&mut self, a: TermId) -> TermId {
        match self.is_truth(a) {
            true => a,
            false => {
                let zero = TermId::FALSE;
                self.binary(BinOp::Ne, a, zero)
            }
        }
    }

    /// A division by zero is 0 here; that it must not happen is said elsewhere.
    pub fn binary(&mut self, op: BinOp, a: TermId, b: TermId) -> TermId {
        if let (Some(x), Some(y)) = (self.value(a), self.value(b)) {
            return self.constant(op.apply(x, y).unwrap_or(0));
        }
        match op {
            BinOp::And => self.and(a, b),
            BinOp::Or => self.or(a, b),
            BinOp::Eq if a == b => TermId::TRUE,
            BinOp::Ne if a == b => TermId::FALSE,
            BinOp::Add | BinOp::Sub | BinOp::BitOr | BinOp::BitXor if b == TermId::FALSE => a,
            BinOp::Add if a == TermId::FALSE => b,
            // Sums of a term and a number, so that addresses look alike.
            BinOp::Sub if self.value(b).is_some() => {
                let negated = self.unary(UnOp::Neg, b);
                self.binary(BinOp::Add, a, negated)
            }
            BinOp::Add if self.value(a).is_some() => self.binary(BinOp::Add, b, a),
            BinOp::Add => match (self.node(a), self.value(b)) {
                (TermNode::Binary(BinOp::Add, x, y), Some(c)) if self.value(y).is_some() => {
                    let sum = self.value(y).map_or(c, |d| d.wrapping_add(c));
                    let sum = self.constant(sum);
                    self.binary(BinOp::Add, x, sum)
                }
                _ => self.intern(TermNode::Binary(op, a, b)),
            },
            _ => self.intern(TermNode::Binary(op, a, b)),
        }
    }

    pub fn and(&mut self, a: TermId, b: TermId) -> TermId {
        let (a, b) = (self.truth(a), self.truth(b));
        match (a, b) {
            (TermId::FALSE, _) | (_, TermId::FALSE) => TermId::FALSE,
            (TermId::TRUE, x) | (x, TermId::TRUE) => x,
            _ if self.implies(a, b) => a,
            _ if self.excludes(a, b) => TermId::FALSE,
            _ => self.intern(TermNode::Binary(BinOp::And, a, b)),
        }
    }

    pub fn or(&mut self, a: TermId, b: TermId) -> TermId {
        let (a, b) = (self.truth(a), self.truth(b));
        match (a, b) {
            (TermId::TRUE, _) | (_, TermId::TRUE) => TermId::TRUE,
            (TermId::FALSE, x) | (x, TermId::FALSE) => x,
            _ if self.implies(a, b) => b,
            _ if self.implies(b, a) => a,
            _ => match self.parting(a, b) {
                Some((common, _)) => common,
                None => self.intern(TermNode::Binary(BinOp::Or, a, b)),
            },
        }
    }

    /// Are these the two ways behind one branch? The guard before it, and the condition that leads to `a`.
    pub fn parting(&mut self, a: TermId, b: TermId) -> Option<(TermId, TermId)> {
        let split = |terms: &Terms, t| match terms.node(t) {
            TermNode::Binary(BinOp::And, g, c) => (g, c),
            _ => (TermId::TRUE, t),
        };
        let ((g, c), (h, d)) = (split(self, a), split(self, b));
        (g == h && self.not(c) == d).then_some((g, c))
    }

    pub fn choice(&mut self, condition: TermId, a: TermId, b: TermId) -> TermId {
        match condition {
            _ if a == b => a,
            TermId::TRUE => a,
            TermId::FALSE => b,
            _ => self.intern(TermNode::Choice(condition, a, b)),
        }
    }

    /// An expression over leaves that are terms.
    pub fn of_expr<A>(&mut self, e: &Expr<A>, leaf: &impl Fn(&A) -> TermId) -> TermId {
        match e {
            Expr::Const(value) => self.constant(*value),
            Expr::Atom(a) => leaf(a),
            Expr::Unary(op, a) => {
                let a = self.of_expr(a, leaf);
                self.unary(*op, a)
            }
            Expr::Binary(op, a, b) => {
                let (a, b) = (self.of_expr(a, leaf), self.of_expr(b, leaf));
                self.binary(*op, a, b)
            }
        }
    }

    /// Does `b` hold wherever `a` does, as far as their shapes tell?
    pub fn implies(&self, a: TermId, b: TermId) -> bool {
        self.implies_at(a, b, DEPTH)
    }

    fn implies_at(&self, a: TermId, b: TermId, depth: u32) -> bool {
        if a == b || b == TermId::TRUE || a == TermId::FALSE {
            return true;
        }
        if depth == 0 {
            return false;
        }
        if let TermNode::Binary(BinOp::And, p, q) = self.node(b) {
            return self.implies_at(a, p, depth - 1) && self.implies_at(a, q, depth - 1);
        }
        match self.node(a) {
            TermNode::Binary(BinOp::And, p, q) => {
                self.implies_at(q, b, depth.min(8) - 1) || self.implies_at(p, b, depth - 1)
            }
            _ => false,
        }
    }

    /// Does a part of `a` say the opposite of `b`?
    fn excludes(&mut self, a: TermId, b: TermId) -> bool {
        let opposite = self.not(b);
        self.implies(a, opposite)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_that_part_and_meet_again_are_one() {
        let mut t = Terms::default();
        let (g, c) = (t.input(), t.input());
        let (g, c) = (t.truth(g), t.truth(c));
        let (yes, no) = (t.and(g, c), t.not(c));
        let (otherwise, no) = (no, t.and(g, no));
        assert_eq!(t.or(yes, no), g);
        assert!(t.implies(yes, g) && t.implies(yes, c) && !t.implies(g, yes));
        assert_eq!(t.and(yes, otherwise), TermId::FALSE);
    }

    #[test]
    fn addresses_are_sums_of_one_term_and_one_number() {
        let mut t = Terms::default();
        let (x, one, two) = (t.input(), t.constant(1), t.constant(2));
        let a = t.binary(BinOp::Add, x, one);
        let a = t.binary(BinOp::Add, one, a);
        assert_eq!(a, t.binary(BinOp::Add, x, two));
        assert_eq!(t.binary(BinOp::Sub, a, two), x);
    }
}

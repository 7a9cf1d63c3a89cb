//! How do numbers become literals? In two's complement, as short as their range allows.
//!
//! The last literal is the sign, and stands for all bits behind it. Sums, comparisons and bit operations are
//! circuits. Products, shifts and quotients are tables over the operands' values where those are listed; other
//! shifts and products are circuits as well, and other quotients are refused.

use super::cnf::Cnf;
use super::domain::Domain;
use super::ranges::Ranges;
use super::sat::Lit;
use super::terms::{TermId, TermNode, Terms};
use crate::model::{BinOp, UnOp, Value};
use std::rc::Rc;

/// Pairs of values that an operation is listed for.
const TABLE: usize = 512;

pub type BitVector = Rc<[Lit]>;

/// What circuits cannot do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooWide;

/// Words of terms, each made once.
pub(super) struct Words {
    known: Vec<Option<BitVector>>,
}

/// Bits that a number takes, its sign among them.
fn width(value: Value) -> usize {
    65 - if value < 0 { (!value).leading_zeros() } else { value.leading_zeros() } as usize
}

fn width_of(domain: &Domain) -> usize {
    domain.bounds().map_or(1, |(lo, hi)| width(lo).max(width(hi)))
}

pub fn constant(value: Value) -> BitVector {
    (0..width(value)).map(|k| if value >> k & 1 == 1 { Lit::TRUE } else { Lit::FALSE }).collect()
}

/// The bit of this place, also behind the end.
fn bit(word: &[Lit], k: usize) -> Lit {
    word[k.min(word.len() - 1)]
}

pub(super) fn equal(cnf: &mut Cnf, a: &[Lit], b: &[Lit]) -> Lit {
    let mut all = Lit::TRUE;
    for k in 0..a.len().max(b.len()) {
        let differs = cnf.xor(bit(a, k), bit(b, k));
        all = cnf.and(all, !differs);
        if all == Lit::FALSE {
            break;
        }
    }
    all
}

/// Clauses that say: if the conditions hold, the words are equal.
pub(super) fn force_equal(cnf: &mut Cnf, conditions: &[Lit], a: &[Lit], b: &[Lit]) {
    let negated: Vec<Lit> = conditions.iter().map(|l| !*l).collect();
    for k in 0..a.len().max(b.len()) {
        let (x, y) = (bit(a, k), bit(b, k));
        if x != y {
            cnf.clause(&[&negated[..], &[!x, y]].concat());
            cnf.clause(&[&negated[..], &[x, !y]].concat());
        }
    }
}

/// A word without bits that only repeat the sign.
fn trimmed(mut bits: Vec<Lit>, width: usize) -> BitVector {
    bits.truncate(width);
    while bits.len() > 1 && bits[bits.len() - 1] == bits[bits.len() - 2] {
        bits.pop();
    }
    bits.into()
}

impl Words {
    pub(super) fn new(terms: &Terms) -> Words {
        Words { known: vec![None; terms.len()] }
    }

    /// New literals for a value of this domain.
    pub(super) fn fresh(cnf: &mut Cnf, domain: &Domain) -> BitVector {
        let (lo, _) = domain.bounds().unwrap_or((0, 0));
        if let Some(value) = domain.single() {
            return constant(value);
        }
        let mut bits: Vec<Lit> = (0..width_of(domain) - 1).map(|_| cnf.fresh()).collect();
        bits.push(if lo < 0 { cnf.fresh() } else { Lit::FALSE });
        bits.into()
    }

    /// There are more terms by now.
    pub(super) fn extend(&mut self, terms: &Terms) {
        self.known.resize(terms.len(), None);
    }

    pub(super) fn known(&self, t: TermId) -> Option<&[Lit]> {
        self.known[t.index()].as_deref()
    }

    pub(super) fn set(&mut self, t: TermId, word: BitVector) {
        self.known[t.index()] = Some(word);
    }

    /// Does the term hold, that is, is it not zero?
    pub(super) fn holds(
        &mut self,
        cnf: &mut Cnf,
        terms: &Terms,
        ranges: &Ranges,
        t: TermId,
    ) -> Result<Lit, TooWide> {
        let word = self.word(cnf, terms, ranges, t)?;
        Ok(match word[..] {
            [] => Lit::FALSE,
            [single] => single,
            _ => cnf.any(word.iter().copied()),
        })
    }

    pub(super) fn word(
        &mut self,
        cnf: &mut Cnf,
        terms: &Terms,
        ranges: &Ranges,
        t: TermId,
    ) -> Result<BitVector, TooWide> {
        // Operands first, without recursion: terms may be deep.
        let mut todo = vec![t];
        while let Some(&next) = todo.last() {
            if self.known[next.index()].is_some() {
                todo.pop();
                continue;
            }
            let operands = match terms.node(next) {
                TermNode::Const(_) | TermNode::Input(_) => vec![],
                TermNode::Unary(_, a) => vec![a],
                TermNode::Binary(_, a, b) => vec![a, b],
                TermNode::Choice(c, a, b) => vec![c, a, b],
            };
            let open: Vec<TermId> =
                operands.into_iter().filter(|o| self.known[o.index()].is_none()).collect();
            if open.is_empty() {
                let word = self.made(cnf, terms, ranges, next)?;
                self.set(next, word);
                todo.pop();
            } else {
                todo.extend(open);
            }
        }
        Ok(self.of(t))
    }

    fn of(&self, t: TermId) -> BitVector {
        self.known[t.index()].clone().expect("operands were made before")
    }

    fn made(
        &mut self,
        cnf: &mut Cnf,
        terms: &Terms,
        ranges: &Ranges,
        t: TermId,
    ) -> Result<BitVector, TooWide> {
        let domain = ranges.of(t);
        if let Some(value) = domain.single() {
            return Ok(constant(value));
        }
        let full = width_of(domain);
        let word = match terms.node(t) {
            TermNode::Const(value) => constant(value),
            TermNode::Input(_) => Words::fresh(cnf, domain),
            TermNode::Unary(op, a) => match op {
                UnOp::Not => {
                    let holds = self.holds(cnf, terms, ranges, a)?;
                    vec![!holds, Lit::FALSE].into()
                }
                UnOp::BitNot => self.of(a).iter().map(|l| !*l).collect(),
                UnOp::Neg => {
                    let negated: Vec<Lit> = self.of(a).iter().map(|l| !*l).collect();
                    sum(cnf, &negated, &constant(0), Lit::TRUE, full)
                }
            },
            TermNode::Binary(op, a, b) => return self.binary(cnf, terms, ranges, (op, a, b), full),
            TermNode::Choice(c, a, b) => {
                let condition = self.holds(cnf, terms, ranges, c)?;
                let (a, b) = (self.of(a), self.of(b));
                let bits = (0..a.len().max(b.len())).map(|k| cnf.choice(condition, bit(&a, k), bit(&b, k)));
                trimmed(bits.collect(), full)
            }
        };
        Ok(word)
    }

    fn binary(
        &mut self,
        cnf: &mut Cnf,
        terms: &Terms,
        ranges: &Ranges,
        (op, a, b): (BinOp, TermId, TermId),
        full: usize,
    ) -> Result<BitVector, TooWide> {
        use BinOp::*;
        let (x, y) = (self.of(a), self.of(b));
        let truth =
            |l: Lit| -> BitVector { if l == Lit::FALSE { constant(0) } else { Rc::new([l, Lit::FALSE]) } };
        let width = x.len().max(y.len());
        let bitwise = |cnf: &mut Cnf, gate: fn(&mut Cnf<'_>, Lit, Lit) -> Lit| -> BitVector {
            trimmed((0..width).map(|k| gate(cnf, bit(&x, k), bit(&y, k))).collect(), full)
        };
        Ok(match op {
            Or | And => {
                let (a, b) = (self.holds(cnf, terms, ranges, a)?, self.holds(cnf, terms, ranges, b)?);
                truth(if op == Or { cnf.or(a, b) } else { cnf.and(a, b) })
            }
            BitOr => bitwise(cnf, |cnf, a, b| cnf.or(a, b)),
            BitXor => bitwise(cnf, |cnf, a, b| cnf.xor(a, b)),
            BitAnd => bitwise(cnf, |cnf, a, b| cnf.and(a, b)),
            Eq => truth(equal(cnf, &x, &y)),
            Ne => truth(!equal(cnf, &x, &y)),
            Lt => truth(less(cnf, &x, &y)),
            Ge => truth(!less(cnf, &x, &y)),
            Gt => truth(less(cnf, &y, &x)),
            Le => truth(!less(cnf, &y, &x)),
            Add => sum(cnf, &x, &y, Lit::FALSE, full),
            Sub => {
                let negated: Vec<Lit> = y.iter().map(|l| !*l).collect();
                sum(cnf, &x, &negated, Lit::TRUE, full)
            }
            Mul | Div | Rem | Shl | Shr => match (ranges.of(a).listed(), ranges.of(b).listed()) {
                (Some(p), Some(q)) if p.len() * q.len() <= TABLE => table(cnf, op, (&x, p), (&y, q), full),
                _ if op == Mul => product(cnf, &x, &y, full),
                _ if matches!(op, Shl | Shr) => shifted(cnf, op, &x, &y, full),
                _ => return Err(TooWide),
            },
        })
    }
}

/// A sum with a carry, of so many bits.
fn sum(cnf: &mut Cnf, a: &[Lit], b: &[Lit], mut carry: Lit, full: usize) -> BitVector {
    let mut bits = Vec::new();
    for k in 0..full.min(64) {
        let (x, y) = (bit(a, k), bit(b, k));
        let half = cnf.xor(x, y);
        bits.push(cnf.xor(half, carry));
        let (both, through) = (cnf.and(x, y), cnf.and(half, carry));
        carry = cnf.or(both, through);
    }
    trimmed(bits, full)
}

/// Signed comparison.
pub(super) fn less(cnf: &mut Cnf, a: &[Lit], b: &[Lit]) -> Lit {
    let width = a.len().max(b.len());
    let mut so_far = Lit::FALSE;
    for k in 0..width {
        let (x, y) = (bit(a, k), bit(b, k));
        // At the sign, the one that has it is less.
        let (smaller, larger) = if k + 1 == width { (y, x) } else { (x, y) };
        let (here, differs) = (cnf.and(!smaller, larger), cnf.xor(x, y));
        so_far = cnf.choice(differs, here, so_far);
    }
    so_far
}

/// The result for every pair of values.
fn table(
    cnf: &mut Cnf,
    op: BinOp,
    (x, p): (&[Lit], &[Value]),
    (y, q): (&[Lit], &[Value]),
    full: usize,
) -> BitVector {
    let mut bits = vec![Vec::new(); full];
    for &v in p {
        let is_v = equal(cnf, x, &constant(v));
        for &w in q {
            let is_w = equal(cnf, y, &constant(w));
            let here = cnf.and(is_v, is_w);
            let result = op.apply(v, w).unwrap_or(0);
            for (k, ways) in bits.iter_mut().enumerate() {
                if result >> k & 1 == 1 {
                    ways.push(here);
                }
            }
        }
    }
    let bits = bits.into_iter().map(|ways| cnf.any(ways)).collect();
    trimmed(bits, full)
}

fn product(cnf: &mut Cnf, a: &[Lit], b: &[Lit], full: usize) -> BitVector {
    let mut total = constant(0);
    for k in 0..full.min(64) {
        let factor = bit(b, k);
        let part = (0..full.min(64)).map(|i| if i < k { Lit::FALSE } else { cnf.and(factor, bit(a, i - k)) });
        let part: Vec<Lit> = part.collect();
        total = sum(cnf, &total, &part, Lit::FALSE, full);
    }
    total
}

/// By the low six bits of the count.
fn shifted(cnf: &mut Cnf, op: BinOp, a: &[Lit], count: &[Lit], full: usize) -> BitVector {
    let mut bits: Vec<Lit> = (0..64).map(|k| bit(a, k)).collect();
    for stage in 0..6 {
        let by = 1 << stage;
        let on = bit(count, stage);
        let moved = |k: usize| match op {
            BinOp::Shl if k < by => Lit::FALSE,
            BinOp::Shl => bits[k - by],
            _ => bits[(k + by).min(63)],
        };
        bits = (0..64).map(|k| cnf.choice(on, moved(k), bits[k])).collect();
    }
    trimmed(bits, full)
}

/// The number that a word has in a solution.
pub(super) fn value(word: &[Lit], solution: &[bool]) -> Value {
    let holds = |l: Lit| solution[l.variable()] != l.is_negated();
    (0..64).fold(0, |value, k| value | Value::from(holds(bit(word, k))) << k)
}

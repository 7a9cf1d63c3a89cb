//! What does the test ask? The properties of the program as one condition on final states.
//!
//! A condition compares registers and locations with numbers and with each other, for being equal. Whatever
//! else a predicate does is spelled out value by value, if few are possible.

use super::FORMAT;
use super::branch::is_comparison;
use super::layout::{LitmusLayout, LitmusRegisters};
use crate::analysis::interval::{Interval, Intervals};
use crate::front::x86::Arch;
use crate::front::{Inexpressible, const_fold};
use crate::model::{Atom, BinOp, Expr, Pred, Program, Property, PropertyKind, UnOp, Value};

/// Combinations of values that are tried for what is no comparison.
const MAX_COMBINATIONS: u64 = 256;
/// Conditions nested more deeply are not read.
const MAX_NESTING: usize = 90;

/// A quantifier and what it is about.
pub(crate) struct Condition {
    pub quantifier: &'static str,
    pub pred: Pred,
}

impl Condition {
    /// Nothing is asked without properties; several become one, which is violated if one of them is.
    pub(crate) fn of(program: &Program) -> Result<Option<Condition>, Inexpressible> {
        if let Some(forbid) = program.properties().iter().find(|p| p.kind == PropertyKind::Forbid) {
            return Err(refuse(program, forbid, "a test asks about final states alone"));
        }
        let at_end = |p: &Property| of_final_states(program, &p.pred);
        Ok(match program.properties() {
            [] => None,
            [one] => {
                let quantifier = match one.kind {
                    PropertyKind::Exists => "exists",
                    PropertyKind::Forall => "forall",
                    PropertyKind::Never | PropertyKind::Forbid => "~exists",
                };
                Some(Condition { quantifier, pred: at_end(one) })
            }
            several => {
                let wrong = several.iter().map(|p| match p.kind {
                    PropertyKind::Forall => at_end(p).negated(),
                    _ => at_end(p),
                });
                let pred = const_fold::join(wrong.collect(), &mut |a, b| Expr::binary(BinOp::Or, a, b));
                pred.map(|pred| Condition { quantifier: "~exists", pred })
            }
        })
    }

    pub(crate) fn atoms(&self) -> Vec<Atom> {
        let mut atoms = Vec::new();
        self.pred.for_each_atom(&mut |atom| atoms.push(atom.clone()));
        atoms
    }
}

/// In final states every thread is at its end, which settles all questions about locations.
fn of_final_states(program: &Program, pred: &Pred) -> Pred {
    match pred {
        Expr::Atom(Atom::At(t, locs)) => Expr::Const(locs.contains(&program.thread(*t).end()) as Value),
        Expr::Const(_) | Expr::Atom(_) => pred.clone(),
        Expr::Unary(op, a) => const_fold::unary(*op, of_final_states(program, a)),
        Expr::Binary(op, a, b) => {
            let (a, b) = (of_final_states(program, a), of_final_states(program, b));
            const_fold::binary(*op, a, b).expect("validity refuses predicates that may divide by zero")
        }
    }
}

fn refuse(program: &Program, property: &Property, why: &str) -> Inexpressible {
    Inexpressible {
        format: FORMAT,
        place: format!("the property in line {}", property.line),
        construct: format!("`{}`", property.show(program)),
        why: why.to_string(),
    }
}

/// Names for what a condition looks at.
pub(crate) struct ConditionNames<'a> {
    pub program: &'a Program,
    pub intervals: &'a Intervals,
    pub layout: &'a LitmusLayout,
    pub numbers: &'a [u64],
    pub registers: &'a [LitmusRegisters],
    pub arch: Arch,
    /// The program was read from a test, and need not be said in herd's words.
    pub was_read: bool,
}

/// A condition as it is written.
enum Prop {
    Const(bool),
    Compare(String),
    Not(Box<Prop>),
    And(Vec<Prop>),
    Or(Vec<Prop>),
}

impl ConditionNames<'_> {
    pub(crate) fn place(&self, atom: &Atom) -> String {
        match atom {
            Atom::Reg(t, r) => {
                let gpr = self.registers[t.index()].get(*r);
                format!("{}:{}", self.numbers[t.index()], gpr.name(self.arch))
            }
            Atom::Mem(cell) => self.layout.show(*cell),
            Atom::At(..) => unreachable!("locations have been settled"),
        }
    }

    pub(crate) fn condition(
        &self,
        condition: &Condition,
        constant: &impl Fn(Value) -> String,
    ) -> Result<String, Inexpressible> {
        let refused = |why: &str| match self.program.properties() {
            [first, ..] => refuse(self.program, first, why),
            [] => unreachable!("a condition comes from a property"),
        };
        let prop = self.prop(&condition.pred, constant).map_err(refused)?;
        if prop.depth() > MAX_NESTING {
            return Err(refused("it is nested too deeply"));
        }
        Ok(format!("{} ({})", condition.quantifier, prop.show(0)))
    }

    fn prop(&self, pred: &Pred, constant: &impl Fn(Value) -> String) -> Result<Prop, &'static str> {
        let compare = |a: &Atom, op: BinOp, right: String| {
            let sign = if op == BinOp::Eq { "=" } else { "!=" };
            Ok(Prop::Compare(format!("{}{sign}{right}", self.place(a))))
        };
        match pred {
            Expr::Const(c) => Ok(Prop::Const(*c != 0)),
            Expr::Atom(a) => compare(a, BinOp::Ne, "0".to_string()),
            Expr::Unary(UnOp::Not, a) => match &**a {
                Expr::Atom(a) => compare(a, BinOp::Eq, "0".to_string()),
                a => Ok(Prop::Not(Box::new(self.prop(a, constant)?))),
            },
            Expr::Binary(op @ (BinOp::And | BinOp::Or), a, b) => {
                let (a, b) = (self.prop(a, constant)?, self.prop(b, constant)?);
                Ok(if *op == BinOp::And { and(a, b) } else { or(a, b) })
            }
            Expr::Binary(op @ (BinOp::Eq | BinOp::Ne), a, b) => match (&**a, &**b) {
                (Expr::Atom(a), Expr::Const(c)) | (Expr::Const(c), Expr::Atom(a)) => {
                    compare(a, *op, constant(*c))
                }
                // herd compares elements of arrays with numbers alone.
                (Expr::Atom(a), Expr::Atom(b))
                    if self.was_read || !self.is_element(a) && !self.is_element(b) =>
                {
                    let right = match b {
                        Atom::Mem(_) => format!("[{}]", self.place(b)),
                        _ => self.place(b),
                    };
                    // It has `!=` before numbers alone.
                    let equal = compare(a, BinOp::Eq, right)?;
                    Ok(if *op == BinOp::Eq { equal } else { Prop::Not(Box::new(equal)) })
                }
                (truth, Expr::Const(c @ (0 | 1))) | (Expr::Const(c @ (0 | 1)), truth) if is_truth(truth) => {
                    let prop = self.prop(truth, constant)?;
                    Ok(if (*op == BinOp::Eq) == (*c == 1) { prop } else { Prop::Not(Box::new(prop)) })
                }
                _ => self.spelled_out(pred),
            },
            _ => self.spelled_out(pred),
        }
    }

    fn is_element(&self, atom: &Atom) -> bool {
        matches!(atom, Atom::Mem(cell) if self.layout.place(cell.index()).0.init.len() > 1)
    }

    /// All combinations of values for which the predicate holds.
    fn spelled_out(&self, pred: &Pred) -> Result<Prop, &'static str> {
        let mut atoms: Vec<&Atom> = Vec::new();
        pred.for_each_atom(&mut |a| {
            if !atoms.contains(&a) {
                atoms.push(a);
            }
        });
        let ranges: Vec<Interval> = atoms.iter().map(|a| self.range(a)).collect();
        let mut count = 1u64;
        for range in &ranges {
            let size = range.hi.abs_diff(range.lo).saturating_add(1);
            count = count.saturating_mul(size);
        }
        if count > MAX_COMBINATIONS {
            return Err("a condition compares for being equal alone, and too many values are possible here");
        }
        let (mut found, mut missed) = (Vec::new(), false);
        for n in 0..count {
            let values = combination(&ranges, n);
            let value =
                |atom: &Atom| atoms.iter().zip(&values).find(|(a, _)| **a == atom).map_or(0, |(_, v)| *v);
            match pred.eval(&value).expect("validity refuses predicates that may divide by zero") {
                0 => missed = true,
                _ => {
                    let equal = atoms
                        .iter()
                        .zip(&values)
                        .map(|(a, v)| Prop::Compare(format!("{}={v}", self.place(a))));
                    found.push(equal.reduce(and).unwrap_or(Prop::Const(true)));
                }
            }
        }
        if !missed {
            return Ok(Prop::Const(true));
        }
        Ok(found.into_iter().reduce(or).unwrap_or(Prop::Const(false)))
    }

    /// The values that are possible in a final state.
    fn range(&self, atom: &Atom) -> Interval {
        match atom {
            Atom::Reg(t, r) => {
                let end = self.program.thread(*t).end();
                self.intervals.register(*t, end, *r).unwrap_or(Interval::constant(0))
            }
            Atom::Mem(cell) => self.intervals.cell(cell.index()),
            Atom::At(..) => Interval::BOOL,
        }
    }
}

/// The n-th combination of values.
fn combination(ranges: &[Interval], mut n: u64) -> Vec<Value> {
    let mut values = Vec::new();
    for range in ranges {
        let size = range.hi.abs_diff(range.lo) + 1;
        values.push(range.lo + (n % size) as Value);
        n /= size;
    }
    values
}

fn is_truth(pred: &Pred) -> bool {
    match pred {
        Expr::Unary(op, _) => *op == UnOp::Not,
        Expr::Binary(op, ..) => is_comparison(*op) || matches!(op, BinOp::And | BinOp::Or),
        _ => false,
    }
}

fn and(a: Prop, b: Prop) -> Prop {
    Prop::And([a, b].into_iter().flat_map(|p| if let Prop::And(all) = p { all } else { vec![p] }).collect())
}

fn or(a: Prop, b: Prop) -> Prop {
    Prop::Or([a, b].into_iter().flat_map(|p| if let Prop::Or(all) = p { all } else { vec![p] }).collect())
}

impl Prop {
    fn depth(&self) -> usize {
        match self {
            Prop::Const(_) | Prop::Compare(_) => 1,
            Prop::Not(a) => a.depth() + 1,
            Prop::And(all) | Prop::Or(all) => all.iter().map(Prop::depth).max().unwrap_or(0) + 1,
        }
    }

    fn show(&self, outer: u8) -> String {
        let list = |all: &[Prop], sign: &str, level: u8| {
            all.iter().map(|p| p.show(level + 1)).collect::<Vec<_>>().join(sign)
        };
        let (level, text) = match self {
            Prop::Const(value) => (3, value.to_string()),
            Prop::Compare(text) => (3, text.clone()),
            Prop::Not(a) => (2, format!("not ({})", a.show(0))),
            Prop::And(all) => (1, list(all, r" /\ ", 1)),
            Prop::Or(all) => (0, list(all, r" \/ ", 0)),
        };
        if level < outer { format!("({text})") } else { text }
    }
}

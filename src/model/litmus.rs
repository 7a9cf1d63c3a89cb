//! What does a litmus test say beside its program? Its name, what its final states are to show, and its
//! condition.
//!
//! Plain data for whoever lists final states. The condition is also a property of the program, so that
//! `check` needs nothing from here.

use super::{Atom, Pred, Program, PropertyKind, Value};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Litmus {
    pub name: String,
    /// `Exists`, `Never` or `Forall`.
    pub kind: PropertyKind,
    pub pred: Pred,
    /// The predicate as litmus files write it, without quantifier.
    pub condition: String,
    /// The columns of a final state, in the order in which they are shown.
    pub observed: Vec<Observed>,
    /// The names of values that are addresses, in the order of the addresses, if some column may hold one.
    pub symbols: Vec<(Value, String)>,
    /// Bits of a register.
    pub bits: u32,
    /// How wide the program's variables are, in their order.
    pub widths: Vec<Width>,
    /// The addresses of the program's variables that the program computes with, in their order.
    pub addresses: Vec<Value>,
}

/// How many bits an element of a variable has, and whether the highest of them is a sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Width {
    pub bits: u32,
    pub signed: bool,
}

/// A register or a cell whose final value is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    pub name: String,
    pub atom: Atom,
    /// The low bits of the value that count, and whether the highest of them is a sign.
    pub bits: u32,
    pub signed: bool,
    /// Whether the value may be an address; otherwise it is a number, whatever it is.
    pub may_be_address: bool,
}

/// A value as it is shown. Numbers come before addresses, and each kind in its own order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shown {
    Number(i128),
    Address(String),
}

impl Litmus {
    /// What a program of another format says, if it has one property of final states.
    pub fn of(program: &Program, name: &str) -> Option<Litmus> {
        let of_final = program.properties().iter().filter(|p| p.kind != PropertyKind::Forbid);
        let [property] = of_final.collect::<Vec<_>>()[..] else { return None };
        let mut observed: Vec<Observed> = Vec::new();
        property.pred.for_each_atom(&mut |atom| {
            if !matches!(atom, Atom::At(..)) && observed.iter().all(|o| o.atom != *atom) {
                let name = program.show_atom(atom);
                let atom = atom.clone();
                observed.push(Observed { name, atom, bits: 64, signed: true, may_be_address: false });
            }
        });
        Some(Litmus {
            name: name.to_string(),
            kind: property.kind,
            pred: property.pred.clone(),
            condition: property.pred.show(&|a| program.show_atom(a)),
            observed,
            symbols: vec![],
            bits: 64,
            widths: vec![Width { bits: 64, signed: true }; program.variables().len()],
            addresses: vec![],
        })
    }

    /// Does the condition's predicate hold in a final state with these values of the observed places?
    pub fn holds(&self, program: &Program, values: &[Value]) -> bool {
        let value = |atom: &Atom| match atom {
            Atom::At(t, locs) => locs.contains(&program.thread(*t).end()) as Value,
            _ => {
                let column = self.observed.iter().position(|o| o.atom == *atom);
                values[column.expect("everything in the condition is observed")]
            }
        };
        self.pred.eval(&value).expect("validity refuses predicates that may divide by zero") != 0
    }

    pub fn show(&self, column: &Observed, value: Value) -> Shown {
        match self.symbols.binary_search_by_key(&value, |(address, _)| *address) {
            Ok(symbol) if column.may_be_address => Shown::Address(self.symbols[symbol].1.clone()),
            _ => Shown::Number(column.number(value)),
        }
    }
}

impl Observed {
    fn number(&self, value: Value) -> i128 {
        let unused = 64 - self.bits;
        match self.signed {
            true => i128::from(value << unused >> unused),
            false => i128::from((value as u64) << unused >> unused),
        }
    }
}

impl std::fmt::Display for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Shown::Number(number) => number.fmt(f),
            Shown::Address(name) => name.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Addr, Expr};

    #[test]
    fn values_are_shown_as_wide_as_their_place_and_addresses_by_name() {
        let column = |bits, signed| Observed {
            name: "x".into(),
            atom: Atom::Mem(Addr(0)),
            bits,
            signed,
            may_be_address: bits == 64,
        };
        let litmus = Litmus {
            name: "T".into(),
            kind: PropertyKind::Exists,
            pred: Expr::Const(1),
            condition: "true".into(),
            observed: vec![],
            symbols: vec![(4096, "y".into())],
            bits: 64,
            widths: vec![],
            addresses: vec![],
        };
        assert_eq!(litmus.show(&column(32, true), 0xffff_ffff).to_string(), "-1");
        assert_eq!(litmus.show(&column(32, false), -1).to_string(), "4294967295");
        assert_eq!(litmus.show(&column(64, false), -1).to_string(), "18446744073709551615");
        assert_eq!(litmus.show(&column(64, true), 4096).to_string(), "y");
        assert_eq!(litmus.show(&column(32, true), 4096).to_string(), "4096");
    }
}

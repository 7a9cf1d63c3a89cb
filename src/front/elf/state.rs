//! What is known of a thread at one place? The numbers that each variable can have, and which variables are equal.
//!
//! What a branch tells of one variable it tells of all that are equal to it: of a register and of the place on the
//! stack that it was loaded from.

mod simplify;

use super::bytes::Bytes;
use super::ops::*;
use super::value::{FEW, Numbers, Value};
use crate::model::{BinOp, Expr, UnOp};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// So many combinations of numbers are gone through one by one.
const COMBINATIONS: usize = 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SlotEntry {
    pub value: Value,
    /// Variables of one class are equal.
    class: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    entries: BTreeMap<Var, SlotEntry>,
    next: u32,
}

/// A term has no number that anybody knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Undefined;

impl State {
    /// What is not there is undefined, but for slots, of which memory knows.
    pub(super) fn get(&self, var: Var) -> Value {
        self.entries.get(&var).map_or_else(Value::undefined, |e| e.value.clone())
    }

    pub(super) fn has(&self, var: Var) -> bool {
        self.entries.contains_key(&var)
    }

    pub(super) fn known(&self, var: Var) -> Option<u64> {
        self.entries.get(&var).and_then(|e| e.value.known())
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = (Var, &Value)> {
        self.entries.iter().map(|(var, entry)| (*var, &entry.value))
    }

    pub(super) fn put(&mut self, var: Var, value: Value) {
        self.next += 1;
        self.entries.insert(var, SlotEntry { value, class: self.next });
    }

    /// The variable gets what another one has.
    pub(super) fn copy(&mut self, to: Var, from: Var) {
        match self.entries.get(&from) {
            Some(entry) => {
                let entry = entry.clone();
                self.entries.insert(to, entry);
            }
            None => self.put(to, Value::undefined()),
        }
    }

    pub(super) fn remove(&mut self, var: Var) {
        self.entries.remove(&var);
    }

    pub(super) fn retain(&mut self, keep: impl Fn(Var) -> bool) {
        self.entries.retain(|var, _| keep(*var));
    }

    /// The slots that share bytes with these.
    pub(super) fn slots(&self, address: u64, bytes: u64) -> Vec<(u64, u8)> {
        let from = Var::Slot(address.saturating_sub(7), 0);
        let to = Var::Slot(address.saturating_add(bytes), 0);
        let near = self.entries.range(from..to).filter_map(|(var, _)| match var {
            Var::Slot(at, size) => Some((*at, *size)),
            _ => None,
        });
        near.filter(|(at, size)| at + u64::from(*size) > address).collect()
    }

    /// What memory that is the thread's own holds, as a term over slots; and whether all of it is there. Bytes that
    /// no slot has are those of `background`.
    pub(super) fn memory(&self, address: u64, bytes: u8, background: &Bytes) -> (VarExpr, u8) {
        let near = self.slots(address, u64::from(bytes));
        if near == [(address, bytes)] {
            return (var(Var::Slot(address, bytes)), 8 * bytes);
        }
        let end = address + u64::from(bytes);
        let (mut whole, mut defined, mut at) = (constant(0), 0, address);
        while at < end {
            let place = constant(8 * (at - address));
            let piece =
                match near.iter().find(|(start, size)| (*start..start + u64::from(*size)).contains(&at)) {
                    Some((start, size)) => {
                        let upto = end.min(start + u64::from(*size));
                        let slot = var(Var::Slot(*start, *size));
                        let piece = cut(shr(slot, constant(8 * (at - start)), 64), 8 * (upto - at) as u8);
                        at = upto;
                        // What is undefined in a whole is so in its parts.
                        let value = self.get(Var::Slot(*start, *size));
                        (!value.is_undefined()).then_some(piece)
                    }
                    None => {
                        at += 1;
                        background.get(at - 1).map(|byte| constant(u64::from(byte)))
                    }
                };
            match piece {
                Some(piece) => whole = or(whole, shl(piece, place)),
                None => return (whole, defined),
            }
            defined = 8 * (at - address) as u8;
        }
        (whole, defined)
    }

    /// The number of the term, if it has one alone.
    pub(super) fn number(&self, term: &VarExpr) -> Option<u64> {
        self.numbers(term).ok().and_then(|numbers| numbers.constant())
    }

    /// Does somebody know what the term is, apart from what may be poison?
    pub(super) fn check(&self, term: &VarExpr) -> Result<(), Undefined> {
        if self.defined(term) == 64 { Ok(()) } else { Err(Undefined) }
    }

    /// How many of the term's low bits are made of bits that somebody knows.
    pub(super) fn defined(&self, term: &VarExpr) -> u8 {
        match term {
            Expr::Const(_) => 64,
            Expr::Atom(var) => {
                let value = self.get(*var);
                if value.is_undefined() { 0 } else { value.defined }
            }
            Expr::Unary(UnOp::BitNot | UnOp::Neg, a) => self.defined(a),
            Expr::Unary(UnOp::Not, a) => self.defined(a) / 64 * 64,
            Expr::Binary(op, a, b) => match (op, &**b) {
                (BinOp::BitAnd, Expr::Const(m)) => {
                    let known = self.defined(a);
                    let unknown = if known == 0 { *m as u64 } else { *m as u64 & !mask(known) };
                    unknown.trailing_zeros() as u8
                }
                (BinOp::BitOr, Expr::Const(-1)) => 64,
                (BinOp::BitAnd | BinOp::BitOr | BinOp::BitXor | BinOp::Add | BinOp::Sub | BinOp::Mul, _) => {
                    self.defined(a).min(self.defined(b))
                }
                _ => self.defined(a).min(self.defined(b)) / 64 * 64,
            },
        }
    }

    /// The variables in a term that may be poison.
    pub(super) fn poisonous(&self, term: &VarExpr) -> Vec<Var> {
        let mut found = Vec::new();
        term.for_each_atom(&mut |var| {
            if self.get(*var).poison && !found.contains(var) {
                found.push(*var);
            }
        });
        found
    }

    /// The variable, and what equals it, is not poison.
    pub(super) fn cleanse(&mut self, var: Var) {
        let Some(class) = self.entries.get(&var).map(|e| e.class) else { return };
        for entry in self.entries.values_mut().filter(|e| e.class == class) {
            entry.value.poison = false;
        }
    }

    /// The classes of variables that are not known, with the numbers of each, if there are few combinations.
    fn combinations(&self, term: &VarExpr) -> Option<Vec<(u32, Vec<u64>)>> {
        let mut classes: Vec<(u32, Vec<u64>)> = Vec::new();
        let (mut product, mut many) = (1usize, false);
        term.for_each_atom(&mut |var| {
            let Some(entry) = self.entries.get(var) else {
                many = true;
                return;
            };
            if classes.iter().any(|(class, _)| *class == entry.class) {
                return;
            }
            match &entry.value.numbers {
                Numbers::Few(few) => {
                    product = product.saturating_mul(few.len());
                    classes.push((entry.class, few.clone()));
                }
                Numbers::Range(..) => many = true,
            }
        });
        (!many && product <= COMBINATIONS).then_some(classes)
    }

    /// Goes through all combinations of numbers.
    fn each_combination(&self, term: &VarExpr, mut visit: impl FnMut(&[(u32, u64)], Option<u64>)) -> bool {
        let Some(classes) = self.combinations(term) else { return false };
        let total: usize = classes.iter().map(|(_, few)| few.len()).product();
        let mut chosen: Vec<(u32, u64)> = Vec::with_capacity(classes.len());
        for mut n in 0..total {
            chosen.clear();
            for (class, few) in &classes {
                chosen.push((*class, few[n % few.len()]));
                n /= few.len();
            }
            let number = |var: &Var| {
                let class = self.entries[var].class;
                let found = chosen.iter().find(|(c, _)| *c == class);
                found.map_or(0, |(_, number)| *number as i64)
            };
            visit(&chosen, term.eval(&number).ok().map(|value| value as u64));
        }
        true
    }

    /// All numbers that the term can have.
    pub(super) fn numbers(&self, term: &VarExpr) -> Result<Numbers, Undefined> {
        self.check(term)?;
        if let Expr::Atom(var) = term {
            return Ok(self.get(*var).numbers);
        }
        let mut all = BTreeSet::new();
        if self.each_combination(term, |_, value| all.extend(value)) {
            return Ok(Numbers::of(all.into_iter().collect()));
        }
        let (lo, hi) = self.bounds(term);
        Ok(Numbers::Range(0, u64::MAX).within(lo, hi))
    }

    /// The condition holds: is that possible?
    pub(super) fn refine(&mut self, condition: &VarExpr) -> bool {
        match self.number(condition) {
            Some(0) => return false,
            Some(_) => return true,
            None => {}
        }
        if let Expr::Binary(BinOp::And, a, b) = condition {
            return self.refine(a) && self.refine(b);
        }
        let mut left: BTreeMap<u32, BTreeSet<u64>> = BTreeMap::new();
        let mut possible = false;
        let gone_through = self.each_combination(condition, |chosen, value| {
            if value.is_some_and(|v| v != 0) {
                possible = true;
                chosen.iter().for_each(|(class, number)| {
                    left.entry(*class).or_default().insert(*number);
                });
            }
        });
        if gone_through {
            for entry in self.entries.values_mut() {
                if let Some(numbers) = left.get(&entry.class) {
                    entry.value.numbers = Numbers::Few(numbers.iter().copied().collect());
                }
            }
            return possible;
        }
        match condition {
            Expr::Binary(op, a, b) => self.compared(*op, a, b) && self.compared(mirrored(*op), b, a),
            _ => true,
        }
    }

    /// What a comparison tells of its left side.
    fn compared(&mut self, op: BinOp, a: &VarExpr, b: &VarExpr) -> bool {
        let Expr::Atom(var) = a else { return true };
        let (lo, hi) = self.bounds(b);
        let value = self.get(*var);
        let Some((own_lo, own_hi)) = value.numbers.bounds() else { return true };
        let plain = hi <= i64::MAX as u64 && own_hi <= i64::MAX as u64;
        let numbers = match op {
            BinOp::Eq => value.numbers.within(lo, hi),
            BinOp::Ne if lo == hi && own_lo == lo => value.numbers.within(lo.saturating_add(1), own_hi),
            BinOp::Ne if lo == hi && own_hi == hi => value.numbers.within(own_lo, hi.saturating_sub(1)),
            BinOp::Lt if plain && hi == 0 => Numbers::none(),
            BinOp::Lt if plain => value.numbers.within(0, hi - 1),
            BinOp::Le if plain => value.numbers.within(0, hi),
            BinOp::Gt if plain => value.numbers.within(lo + 1, u64::MAX),
            BinOp::Ge if plain => value.numbers.within(lo, u64::MAX),
            _ => return true,
        };
        let possible = !numbers.is_empty();
        let Some(class) = self.entries.get(var).map(|e| e.class) else { return true };
        for entry in self.entries.values_mut().filter(|e| e.class == class) {
            entry.value.numbers = numbers.clone();
        }
        possible
    }

    /// What is known of the variable, as another source tells it; it stays equal to others.
    pub(super) fn limit(&mut self, var: Var, value: Value) {
        if let Some(entry) = self.entries.get_mut(&var) {
            entry.value = value;
        }
    }

    /// Slots so that both states have the same ones, apart from what one of them has alone.
    fn pieces(&self, other: &State) -> BTreeSet<(u64, u8)> {
        let slots = |state: &State| {
            let all = state.entries.range(Var::Slot(0, 0)..Var::Slot(u64::MAX, u8::MAX));
            let all =
                all.filter_map(|(var, _)| if let Var::Slot(a, n) = var { Some((*a, *n)) } else { None });
            all.collect::<BTreeSet<_>>()
        };
        let (own, theirs) = (slots(self), slots(other));
        let mut pieces: BTreeSet<(u64, u8)> = own.intersection(&theirs).copied().collect();
        let odd: Vec<(u64, u8)> = own.symmetric_difference(&theirs).copied().collect();
        let borders: BTreeSet<u64> = odd.iter().flat_map(|(a, n)| [*a, a + u64::from(*n)]).collect();
        for (at, size) in odd {
            let end = at + u64::from(size);
            let mut start = at;
            for border in borders.range(at + 1..=end) {
                pieces.insert((start, (border - start) as u8));
                start = *border;
            }
        }
        pieces
    }

    /// What is known where both states may have come from.
    pub(super) fn join(&self, other: &State, background: &Bytes) -> State {
        let mut joined = State::default();
        let mut classes: HashMap<(u32, u32), u32> = HashMap::new();
        let mut fresh = u32::MAX;
        let slots: Vec<Var> = self.pieces(other).into_iter().map(|(a, n)| Var::Slot(a, n)).collect();
        let plain = self.entries.keys().chain(other.entries.keys()).filter(|v| !matches!(v, Var::Slot(..)));
        let plain: BTreeSet<Var> = plain.copied().collect();
        let vars: Vec<Var> = plain.into_iter().chain(slots).collect();
        for var in vars {
            let mut side = |state: &State| match state.entries.get(&var) {
                Some(entry) => entry.clone(),
                None => {
                    fresh -= 1;
                    SlotEntry { value: state.slot(var, background), class: fresh }
                }
            };
            let (a, b) = (side(self), side(other));
            let next = classes.len() as u32 + 1;
            let class = *classes.entry((a.class, b.class)).or_insert(next);
            joined.entries.insert(var, SlotEntry { value: a.value.join(&b.value), class });
        }
        joined.next = classes.len() as u32 + 1;
        joined
    }

    /// What a slot holds that the state may have in other pieces.
    pub(super) fn slot(&self, var: Var, background: &Bytes) -> Value {
        let Var::Slot(at, bytes) = var else { return Value::undefined() };
        let (term, defined) = self.memory(at, bytes, background);
        self.value(&term, defined, 8 * bytes)
    }

    /// What a term is of which so many bits are defined, out of so many.
    pub(super) fn value(&self, term: &VarExpr, defined: u8, bits: u8) -> Value {
        if defined == 0 {
            return Value::undefined();
        }
        if let Expr::Atom(var) = term {
            return self.get(*var);
        }
        match self.numbers(term) {
            Ok(numbers) => {
                let defined = if defined == bits { 64 } else { defined };
                Value { numbers, poison: !self.poisonous(term).is_empty(), defined }
            }
            Err(Undefined) => Value::undefined(),
        }
    }

    /// What is known of a term, if any of it is meant.
    pub(super) fn meaning(&self, term: &VarExpr) -> Value {
        match (term, self.numbers(term)) {
            (Expr::Atom(var), _) => self.get(*var),
            (_, Ok(numbers)) => Value::of(numbers),
            (Expr::Binary(BinOp::BitAnd, a, _), Err(Undefined)) => match &**a {
                Expr::Atom(var) => self.get(*var),
                _ => Value::undefined(),
            },
            _ => Value::undefined(),
        }
    }

    /// Ranges that grew since then end soon.
    pub(super) fn widened(mut self, before: &State) -> State {
        for (var, entry) in &mut self.entries {
            if let Some(old) = before.entries.get(var) {
                entry.value.numbers = entry.value.numbers.widened(&old.value.numbers);
            }
        }
        self
    }

    /// The same with classes numbered in the order of the variables, so that equal states look equal.
    pub(super) fn normal(&self) -> State {
        let mut numbers: HashMap<u32, u32> = HashMap::new();
        let mut entries = self.entries.clone();
        for entry in entries.values_mut() {
            let next = numbers.len() as u32 + 1;
            entry.class = *numbers.entry(entry.class).or_insert(next);
        }
        State { entries, next: numbers.len() as u32 + 1 }
    }
}

fn mirrored(op: BinOp) -> BinOp {
    match op {
        BinOp::Lt => BinOp::Gt,
        BinOp::Le => BinOp::Ge,
        BinOp::Gt => BinOp::Lt,
        BinOp::Ge => BinOp::Le,
        other => other,
    }
}

const _: () = assert!(FEW * FEW <= COMBINATIONS);

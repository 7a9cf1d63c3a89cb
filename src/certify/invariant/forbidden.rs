//! Is a state against the goal, or might it be?
//!
//! A register that is not live may hold anything, so a clause counts unless it is false whatever such
//! registers hold. While a block is held, the others' stores that are not yet in memory count as issued: a
//! thread that waits at a store may be anywhere that it can get to by loads from its past and *phantom*
//! stores, which nobody else sees. Where errors are forbidden its own need no such care, for it could make them
//! without the block.

use super::machine::{Machine, Point};
use super::{Past, STUCK};
use crate::certify::Doubt;
use crate::limits::Limits;
use crate::model::{Addr, Atom, BinOp, Expr, Instr, Loc, Pred, ThreadId, Value};
use crate::query::{Goal, Model, When, at};
use crate::semantics::{choices, eval, trap};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

/// What the goal says of a thread: whether it has ended, and what each of its atoms about the thread is worth,
/// if that is known.
type Aspect = (bool, Vec<Option<Value>>);

/// The goal, with its atoms numbered.
pub(super) struct Forbidden<'a> {
    clauses: Vec<(When, Expr<usize>)>,
    atoms: Vec<&'a Atom>,
    limits: &'a Limits,
    /// Where a thread may be by phantom stores.
    phantoms: HashMap<HeldUp, Rc<Vec<Aspect>>>,
}

/// A thread at a store: its location, registers and past.
type HeldUp = (usize, Loc, Vec<Value>, u32);

/// A thread that goes on by phantom stores, and what they would write.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Phantom {
    point: Point,
    past: Rc<Past>,
    issued: BTreeMap<Addr, Value>,
}

impl<'a> Forbidden<'a> {
    pub(crate) fn by(goal: &'a Goal, limits: &'a Limits) -> Forbidden<'a> {
        let mut atoms: Vec<&'a Atom> = Vec::new();
        for clause in &goal.clauses {
            clause.pred.for_each_atom(&mut |atom| {
                if !atoms.contains(&atom) {
                    atoms.push(atom);
                }
            });
        }
        let number = |atom: &Atom| atoms.iter().position(|known| *known == atom).expect("all were gathered");
        let numbered = |pred: &Pred| pred.map_atoms(&number);
        let clauses = goal.clauses.iter().map(|c| (c.when, numbered(&c.pred))).collect();
        Forbidden { clauses, atoms, limits, phantoms: HashMap::new() }
    }

    /// May a clause hold in the state, or in one that differs from it by phantom stores?
    pub(crate) fn may_be(&mut self, machine: &Machine<'_>, point: &Point) -> Result<bool, Doubt> {
        if self.clauses.is_empty() {
            return Ok(false);
        }
        let threads = point.pasts.len();
        let mut aspects = Vec::with_capacity(threads);
        for t in 0..threads {
            let elsewhere = point.lock().is_some_and(|owner| owner != t) && machine.model == Model::Tso;
            let waits = machine.spot(point, t).is_some_and(|spot| spot.stores);
            aspects.push(match elsewhere && waits {
                true => self.phantoms(machine, point, t)?,
                false => Rc::new(vec![self.aspect(machine, point, t)]),
            });
        }
        let memory = machine.memory_of(point);
        let mut picked = vec![0; threads];
        loop {
            self.limits.spend(1 + threads + self.atoms.len())?;
            if self.holds(&picked, &aspects, memory) {
                return Ok(true);
            }
            // The next combination.
            let Some(t) = (0..threads).find(|&t| picked[t] + 1 < aspects[t].len()) else { return Ok(false) };
            picked[t] += 1;
            picked[..t].fill(0);
        }
    }

    fn holds(&self, picked: &[usize], aspects: &[Rc<Vec<Aspect>>], memory: &[Value]) -> bool {
        let of = |t: usize| &aspects[t][picked[t]];
        let ended = (0..picked.len()).all(|t| of(t).0);
        let atom = |k: &usize| match self.atoms[*k] {
            Atom::At(t, _) | Atom::Reg(t, _) => of(t.index()).1[*k],
            Atom::Mem(cell) => Some(memory[cell.index()]),
        };
        let counts = |when: When| when == When::Always || ended;
        self.clauses.iter().any(|(when, pred)| counts(*when) && value(pred, &atom) != Some(0))
    }

    fn aspect(&self, machine: &Machine<'_>, point: &Point, t: usize) -> Aspect {
        let loc = point.at(t);
        let registers = machine.registers_of(point, t);
        let known = |r: usize| machine.live(point, t).contains(r);
        let worth = |atom: &&Atom| match atom {
            Atom::At(u, locs) if u.index() == t => Some(at(loc, locs)),
            Atom::Reg(u, r) if u.index() == t && known(r.index()) => Some(registers[r.index()]),
            _ => None,
        };
        let end = machine.program.thread(ThreadId(t as u16)).end();
        (loc != STUCK && loc == end, self.atoms.iter().map(worth).collect())
    }

    /// All aspects that the thread may have by phantom stores.
    fn phantoms(&mut self, machine: &Machine<'_>, point: &Point, t: usize) -> Result<Rc<Vec<Aspect>>, Doubt> {
        let known = (t, point.at(t), machine.registers_of(point, t).to_vec(), point.pasts[t]);
        if let Some(found) = self.phantoms.get(&known) {
            return Ok(found.clone());
        }
        let past = machine.pasts()[point.pasts[t] as usize].clone();
        let first = Phantom { point: point.clone(), past, issued: BTreeMap::new() };
        let mut seen = HashSet::from([first.clone()]);
        let mut todo = vec![first];
        let mut found = HashSet::new();
        while let Some(phantom) = todo.pop() {
            self.limits.spend(32 + phantom.point.key.len() / 8)?;
            found.insert(self.aspect(machine, &phantom.point, t));
            for next in phantom.steps(machine, t)? {
                if seen.insert(next.clone()) {
                    todo.push(next);
                }
            }
        }
        let found = Rc::new(found.into_iter().collect::<Vec<_>>());
        self.phantoms.insert(known, found.clone());
        Ok(found)
    }
}

impl Phantom {
    fn steps(&self, machine: &Machine<'_>, t: usize) -> Result<Vec<Phantom>, Doubt> {
        let mut steps = Vec::new();
        let ways = machine.spot(&self.point, t).map_or(0, |spot| spot.ways.len());
        for k in 0..ways {
            let way = machine.way(&self.point, t, k);
            let registers = machine.registers_of(&self.point, t);
            if way.edge.instr.drains_buffer() {
                continue;
            }
            if let Some(flaw) = way.flaw {
                return Err(Doubt::refuted(format!("an instruction of thread {t} {flaw}")));
            }
            match trap(machine.program, registers, &way.edge.instr) {
                None => self.take(machine, t, k, &mut steps)?,
                Some(_) if machine.ignores_errors => {
                    let mut wrong = self.clone();
                    machine.get_stuck(&mut wrong.point, t)?;
                    steps.push(wrong);
                }
                Some(_) => {}
            }
        }
        Ok(steps)
    }

    fn take(&self, machine: &Machine<'_>, t: usize, k: usize, steps: &mut Vec<Phantom>) -> Result<(), Doubt> {
        let way = machine.way(&self.point, t, k);
        let value = |e| {
            let registers = machine.registers_of(&self.point, t);
            eval(registers, e).expect("a division by zero has been noticed")
        };
        let mut next = self.clone();
        next.point.key[t] = way.edge.to.0 as Value;
        let slot = |r| machine.register_slot(t, r);
        match &way.edge.instr {
            Instr::Assume(e) if value(e) == 0 => {}
            Instr::Assign { dst, value: e } => {
                next.point.key[slot(*dst)] = value(e);
                steps.push(next);
            }
            Instr::Any { dst, .. } => {
                for choice in choices(&way.edge.instr).flatten() {
                    next.point.key[slot(*dst)] = choice;
                    steps.push(next.clone());
                }
            }
            Instr::Store { addr, value: e, .. } => {
                next.issued.insert(Addr(value(addr) as u32), value(e));
                steps.push(next);
            }
            Instr::Load { dst, addr, .. } => {
                let cell = Addr(value(addr) as u32);
                let reads = match self.issued.get(&cell) {
                    Some(&own) => vec![(own, Some(self.past.clone()))],
                    None => machine.reads(&self.point, Some(&self.past), t, cell)?,
                };
                for (read, left) in reads {
                    next.point.key[slot(*dst)] = read;
                    next.past = left.expect("a phantom reads from its past");
                    steps.push(next.clone());
                }
            }
            _ => steps.push(next),
        }
        steps.iter_mut().for_each(|phantom| machine.forget(&mut phantom.point, t));
        Ok(())
    }
}

/// What a predicate is worth, if that does not depend on what is unknown.
fn value(pred: &Expr<usize>, atom: &impl Fn(&usize) -> Option<Value>) -> Option<Value> {
    match pred {
        Expr::Const(c) => Some(*c),
        Expr::Atom(a) => atom(a),
        Expr::Unary(op, a) => Some(op.apply(value(a, atom)?)),
        Expr::Binary(op @ (BinOp::And | BinOp::Or), a, b) => {
            let decisive = |v: Value| (v != 0) == (*op == BinOp::Or);
            match (value(a, atom), value(b, atom)) {
                (Some(v), _) | (_, Some(v)) if decisive(v) => Some(Value::from(*op == BinOp::Or)),
                (Some(_), Some(_)) => Some(Value::from(*op == BinOp::And)),
                _ => None,
            }
        }
        Expr::Binary(op, a, b) => op.apply(value(a, atom)?, value(b, atom)?).ok(),
    }
}

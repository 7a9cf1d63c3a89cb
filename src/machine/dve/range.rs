//! Which values can each variable hold? An interval per variable, from all that is ever assigned
//! [Cousot77]: bounds that a guard puts on the process's own variables count for the effects behind it.
//! Values outside a type are errors and held by nobody, so every interval lies within its type.

use crate::analysis::interval::{Interval, range};
use crate::dve::{Direction, DveExpr, DveTransition, Lvalue, System};
use crate::model::{BinOp, Expr, Value};

/// After so many rounds, whatever still grows may hold anything.
const ROUNDS: usize = 300;

/// Per variable, what its elements can hold.
pub(crate) fn ranges(system: &System) -> Vec<Interval> {
    let initial = |values: &[Value]| {
        let all = values.iter().map(|v| Interval::constant(*v));
        all.reduce(Interval::join).expect("a variable has some element")
    };
    let mut known = Known {
        system,
        variables: system.variables.iter().map(|v| initial(&v.initial)).collect(),
        messages: system.channels.iter().map(|_| vec![]).collect(),
    };
    for round in 0.. {
        let before = known.variables.clone();
        let sent = known.messages.clone();
        known.round();
        if known.variables == before && known.messages == sent {
            break;
        }
        if round >= ROUNDS {
            for ((now, old), v) in known.variables.iter_mut().zip(&before).zip(&system.variables) {
                if *now != *old {
                    let (lo, hi) = v.kind.range();
                    *now = Interval { lo, hi };
                }
            }
            known.messages.iter_mut().flatten().for_each(|part| *part = Some(Interval::FULL));
        }
    }
    known.variables
}

struct Known<'a> {
    system: &'a System,
    variables: Vec<Interval>,
    /// Per channel and part, what was sent.
    messages: Vec<Vec<Option<Interval>>>,
}

impl Known<'_> {
    fn round(&mut self) {
        let system = self.system;
        for (process, p) in system.processes[..system.active()].iter().enumerate() {
            p.transitions.iter().for_each(|t| self.transition(process, t));
        }
    }

    fn transition(&mut self, process: usize, t: &DveTransition) {
        let mut here = self.variables.clone();
        let own = |v: usize| self.system.variables[v].owner == Some(process);
        if let Some(guard) = &t.guard
            && !bounded(guard, &own, &mut here)
        {
            return;
        }
        match t.sync.as_ref().map(|s| (s.channel, &s.direction)) {
            Some((channel, Direction::Send(values))) => {
                let parts = &mut self.messages[channel];
                parts.resize(parts.len().max(values.len()), None);
                for (part, value) in parts.iter_mut().zip(values) {
                    let sent = interval(value, &here);
                    *part = Some(part.map_or(sent, |known| known.join(sent)));
                }
            }
            Some((channel, Direction::Receive(places))) => {
                for (i, place) in places.iter().enumerate() {
                    if let Some(Some(sent)) = self.messages[channel].get(i).copied() {
                        self.assign(place, sent, &mut here);
                    }
                }
            }
            None => {}
        }
        for effect in &t.effects {
            let value = interval(&effect.value, &here);
            self.assign(&effect.target, value, &mut here);
        }
    }

    fn assign(&mut self, place: &Lvalue, value: Interval, here: &mut [Interval]) {
        let variable = &self.system.variables[place.variable];
        let (lo, hi) = variable.kind.range();
        let kept = Interval { lo: value.lo.max(lo), hi: value.hi.min(hi) };
        if kept.lo > kept.hi {
            return;
        }
        let all = &mut self.variables[place.variable];
        *all = all.join(kept);
        here[place.variable] = if variable.is_array { *all } else { kept };
    }
}

/// What an expression can be, if variables have these intervals.
fn interval(expr: &DveExpr, variables: &[Interval]) -> Interval {
    range(&over_variables(expr), &|v: &Option<usize>| v.map_or(Interval::BOOL, |v| variables[v]))
}

/// The expression over whole variables; a test of a state is nobody's.
fn over_variables(expr: &DveExpr) -> Expr<Option<usize>> {
    match expr {
        DveExpr::Number(n) => Expr::Const(*n),
        DveExpr::At { .. } => Expr::Atom(None),
        DveExpr::Read(place) => Expr::Atom(Some(place.variable)),
        DveExpr::Unary(op, a) => Expr::unary(*op, over_variables(a)),
        DveExpr::Binary(op, a, b) => Expr::binary(*op, over_variables(a), over_variables(b)),
    }
}

/// Narrows the process's own variables to what the guard lets through; `false` if it lets nothing through.
fn bounded(guard: &DveExpr, own: &impl Fn(usize) -> bool, here: &mut [Interval]) -> bool {
    match guard {
        DveExpr::Binary(BinOp::And, a, b) => bounded(a, own, here) && bounded(b, own, here),
        DveExpr::Binary(op, a, b) => {
            let (left, right) = (interval(a, here), interval(b, here));
            let mirrored = match op {
                BinOp::Lt => BinOp::Gt,
                BinOp::Le => BinOp::Ge,
                BinOp::Gt => BinOp::Lt,
                BinOp::Ge => BinOp::Le,
                op => *op,
            };
            [(a, left, *op, right), (b, right, mirrored, left)].into_iter().all(|(side, now, op, other)| {
                let DveExpr::Read(Lvalue { variable, index: None }) = &**side else { return true };
                if !own(*variable) {
                    return true;
                }
                let Interval { lo, hi } = now;
                let (lo, hi) = match op {
                    BinOp::Lt => (lo, hi.min(other.hi.saturating_sub(1))),
                    BinOp::Le => (lo, hi.min(other.hi)),
                    BinOp::Gt => (lo.max(other.lo.saturating_add(1)), hi),
                    BinOp::Ge => (lo.max(other.lo), hi),
                    BinOp::Eq => (lo.max(other.lo), hi.min(other.hi)),
                    _ => return true,
                };
                here[*variable] = Interval { lo, hi };
                lo <= hi
            })
        }
        _ => true,
    }
}

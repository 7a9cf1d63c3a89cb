//! Are two programs the same, but for how their locations and edges are numbered and where they come from?
//!
//! Threads are walked side by side from their initial locations, edge by edge in the order of the text. Labels do not
//! count, nor does what no walk reaches; the order of registers and unused ones do not either.

use super::{Atom, Expr, Instr, Loc, Program, Reg, RmwOp, Thread, ThreadId};
use std::collections::HashMap;

/// Do the programs have the same memory, steps and properties?
pub fn alike(a: &Program, b: &Program) -> bool {
    let same_size = a.threads().len() == b.threads().len() && a.properties().len() == b.properties().len();
    if !same_size || a.variables() != b.variables() {
        return false;
    }
    let walks: Option<Vec<Walk>> = a.threads().iter().zip(b.threads()).map(|(a, b)| Walk::of(a, b)).collect();
    let Some(walks) = walks else { return false };
    let properties = a.properties().iter().zip(b.properties());
    properties.into_iter().all(|(p, q)| p.kind == q.kind && walks_agree(a, b, &walks, &p.pred, &q.pred))
}

/// Which locations of two threads correspond.
struct Walk {
    to: HashMap<Loc, Loc>,
}

impl Walk {
    fn of(a: &Thread, b: &Thread) -> Option<Walk> {
        let mut to = HashMap::new();
        let mut todo = vec![(a.initial(), b.initial())];
        while let Some((x, y)) = todo.pop() {
            match to.insert(x, y) {
                Some(before) if before == y => continue,
                Some(_) => return None,
                None => {}
            }
            let (from_x, from_y) = (a.edges_from(x), b.edges_from(y));
            if from_x.len() != from_y.len() || (x == a.end()) != (y == b.end()) {
                return None;
            }
            for ((_, e), (_, f)) in from_x.into_iter().zip(from_y) {
                if named(a, &e.instr) != named(b, &f.instr) {
                    return None;
                }
                todo.push((e.to, f.to));
            }
        }
        (a.name() == b.name()).then_some(Walk { to })
    }
}

/// The instruction with its registers by name.
fn named(
    thread: &Thread,
    instr: &Instr,
) -> (std::mem::Discriminant<Instr>, Vec<Expr<String>>, Option<String>, u8) {
    let name = |r: &Reg| thread.register_name(*r).to_string();
    let mut exprs: Vec<Expr<String>> = instr.exprs().into_iter().map(|e| e.map_atoms(&name)).collect();
    let mut kind = 0;
    match instr {
        Instr::Any { lo, hi, .. } => exprs.extend([Expr::Const(*lo), Expr::Const(*hi)]),
        Instr::Rmw { op, .. } => {
            kind = match op {
                RmwOp::Swap(_) => 1,
                RmwOp::Add(_) => 2,
                RmwOp::Cas { .. } => 3,
            }
        }
        _ => {}
    }
    (std::mem::discriminant(instr), exprs, instr.target().map(|r| name(&r)), kind)
}

fn walks_agree(a: &Program, b: &Program, walks: &[Walk], p: &Expr<Atom>, q: &Expr<Atom>) -> bool {
    p.map_atoms(&|atom| spelled(a, atom, |t, l| walks[t.index()].to.get(&l).copied()))
        == q.map_atoms(&|atom| spelled(b, atom, |_, l| Some(l)))
}

/// An atom in words that both programs share. Locations that no walk reaches are left out: nobody is ever there.
fn spelled(program: &Program, atom: &Atom, place: impl Fn(ThreadId, Loc) -> Option<Loc>) -> String {
    match atom {
        Atom::At(t, locs) => {
            let mut locs: Vec<Loc> = locs.iter().filter_map(|&l| place(*t, l)).collect();
            locs.sort();
            locs.dedup();
            format!("{}@{locs:?}", t.0)
        }
        other => program.show_atom(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::tso;

    fn read(source: &str) -> Program {
        tso::read(source, &[]).expect("the test's source is readable").program
    }

    #[test]
    fn numbers_and_labels_do_not_count() {
        let a = read("shared x; thread p; L: store [x], 1; goto L; end; forbid p@L && [x] == 2");
        let b = read("shared x; thread p; goto M; M: K: store [x], 1; goto M; end; forbid p@K && [x] == 2");
        assert!(alike(&a, &a) && alike(&a, &b) && alike(&b, &a));
    }

    #[test]
    fn steps_and_properties_do() {
        let plain = "shared x; thread p; L: store [x], 1; load r, [x]; end; forbid p@L";
        let others = [
            "shared x; thread p; L: store [x], 2; load r, [x]; end; forbid p@L",
            "shared x; thread p; L: store [x], 1; load s, [x]; end; forbid p@L",
            "shared x; thread p; L: store [x], 1; fence; load r, [x]; end; forbid p@L",
            "shared x; thread p; store [x], 1; L: load r, [x]; end; forbid p@L",
            "shared x; thread q; L: store [x], 1; load r, [x]; end; forbid q@L",
            "shared y; thread p; L: store [y], 1; load r, [y]; end; forbid p@L",
            "shared x; thread p; L: store [x], 1; load r, [x]; end; never p@L",
            "shared x; thread p; L: xchg r, [x], 1; load r, [x]; end; forbid p@L",
        ];
        for other in others {
            assert!(!alike(&read(plain), &read(other)), "{other}");
        }
    }
}

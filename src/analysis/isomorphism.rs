//! Are two programs the same, but for how their locations and edges are numbered and where they come from?
//!
//! Threads are walked side by side from their initial locations, edge by edge in the order of the text.
//! Labels do not count, nor does what no walk reaches; the order of registers and unused ones do not either.

use super::liveness::{Live, Watched};
use crate::limits::{Limit, Limits};
use crate::model::{Atom, Bytes, Edge, Expr, Instr, Loc, Program, Reg, RmwOp, Thread, ThreadId};
use std::collections::HashMap;
use std::mem::{Discriminant, discriminant};

/// Do the programs have the same memory, steps and properties?
pub fn isomorphic(a: &Program, b: &Program, limits: &Limits) -> Result<bool, Limit> {
    let same_size = a.threads().len() == b.threads().len() && a.properties().len() == b.properties().len();
    if !same_size || a.variables() != b.variables() {
        return Ok(false);
    }
    let (of_a, of_b) = (live(a, limits)?, live(b, limits)?);
    let walk = |t: ThreadId| Walk::of(&Steps::of(a, t, &of_a), &Steps::of(b, t, &of_b));
    let walks: Option<Vec<Walk>> = a.thread_ids().map(walk).collect();
    let Some(walks) = walks else { return Ok(false) };
    let mut properties = a.properties().iter().zip(b.properties());
    Ok(properties.all(|(p, q)| p.kind == q.kind && walks_agree(a, b, &walks, &p.pred, &q.pred)))
}

/// Which locations of two threads correspond.
struct Walk {
    to: HashMap<Loc, Loc>,
}

impl Walk {
    fn of(a: &Steps, b: &Steps) -> Option<Walk> {
        let mut to = HashMap::new();
        let mut todo = vec![(a.thread.initial(), b.thread.initial())];
        while let Some((x, y)) = todo.pop() {
            match to.insert(x, y) {
                Some(before) if before == y => continue,
                Some(_) => return None,
                None => {}
            }
            let (from_x, from_y) = (a.thread.edges_from(x), b.thread.edges_from(y));
            if from_x.len() != from_y.len() || (x == a.thread.end()) != (y == b.thread.end()) {
                return None;
            }
            for ((_, e), (_, f)) in from_x.into_iter().zip(from_y) {
                if a.spelled(e) != b.spelled(f) {
                    return None;
                }
                todo.push((e.to, f.to));
            }
        }
        (a.thread.name() == b.thread.name()).then_some(Walk { to })
    }
}

/// A thread, and where its registers may still be looked at.
struct Steps<'a> {
    thread: &'a Thread,
    t: ThreadId,
    live: &'a Live,
}

/// Where a register may still be looked at, by the properties too.
fn live(program: &Program, limits: &Limits) -> Result<Live, Limit> {
    let mut watched = Watched::nothing(program);
    for property in program.properties() {
        property.pred.for_each_atom(&mut |atom| {
            if let Atom::Reg(u, r) = atom {
                watched.always[u.index()].push(*r);
            }
        });
    }
    Live::of(program, &watched, |_, _| false, limits)
}

impl<'a> Steps<'a> {
    fn of(program: &'a Program, t: ThreadId, live: &'a Live) -> Self {
        Steps { thread: program.thread(t), t, live }
    }

    /// The instruction with its registers by name. Where a value goes that is never looked at does not count.
    fn spelled(&self, edge: &Edge) -> Spelled {
        let instr = &edge.instr;
        let name = |r: &Reg| self.thread.register_name(*r).to_string();
        let mut exprs: Vec<Expr<String>> = instr.exprs().into_iter().map(|e| e.map_atoms(&name)).collect();
        if let Instr::Any { lo, hi, .. } = instr {
            exprs.extend([Expr::Const(*lo), Expr::Const(*hi)]);
        }
        let op = match instr {
            Instr::Rmw { op, .. } => Some(discriminant(op)),
            _ => None,
        };
        let target = instr.target().filter(|&r| self.live.is_live(self.t, edge.to, r)).map(|r| name(&r));
        Spelled { kind: discriminant(instr), op, bytes: instr.bytes(), exprs, target }
    }
}

/// An instruction in words that do not depend on numbers.
#[derive(PartialEq)]
struct Spelled {
    kind: Discriminant<Instr>,
    op: Option<Discriminant<RmwOp>>,
    bytes: Option<Bytes>,
    exprs: Vec<Expr<String>>,
    target: Option<String>,
}

fn walks_agree(a: &Program, b: &Program, walks: &[Walk], p: &Expr<Atom>, q: &Expr<Atom>) -> bool {
    p.map_atoms(&|atom| spelled(a, atom, |t, l| walks[t.index()].to.get(&l).copied()))
        == q.map_atoms(&|atom| spelled(b, atom, |_, l| Some(l)))
}

/// An atom in words that both programs share. Locations that no walk reaches are left out: nobody is ever
/// there.
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

    fn alike(a: &Program, b: &Program) -> bool {
        isomorphic(a, b, &Limits::default()).unwrap()
    }
    use crate::front::tso;

    fn read(source: &str) -> Program {
        tso::read(source, &[], &Limits::default()).expect("the test's source is readable").program
    }

    #[test]
    fn numbers_and_labels_do_not_count() {
        let a = read("shared x; thread p; L: store [x], 1; goto L; end; forbid p@L && [x] == 2");
        let b = read("shared x; thread p; goto M; M: K: store [x], 1; goto M; end; forbid p@K && [x] == 2");
        assert!(alike(&a, &a) && alike(&a, &b) && alike(&b, &a));
    }

    #[test]
    fn registers_count_if_they_are_looked_at() {
        let source =
            |r: &str, asked: &str| format!("shared x; thread p; load {r}, [x]; end; exists {asked} == 1");
        assert!(alike(&read(&source("r", "[x]")), &read(&source("s", "[x]"))));
        assert!(!alike(&read(&source("r", "p.r")), &read(&source("s", "p.s"))));
    }

    #[test]
    fn steps_and_properties_do() {
        let plain = "shared x; thread p; L: store [x], 1; load r, [x]; end; forbid p@L";
        let others = [
            "shared x; thread p; L: store [x], 2; load r, [x]; end; forbid p@L",
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

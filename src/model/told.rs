//! Which values of a register can still be told apart? If all that a thread ever does with a register is to compare it
//! with constants, then at a location the values that it will not be compared with from there on are all the same.
//!
//! Registers with any other use, and those that somebody else looks at, are left out. For the others: per location
//! the constants that matter, by backward data flow. It is to values what liveness is to registers.

use super::live::Watched;
use super::{BinOp, EdgeId, Expr, Instr, Loc, Program, Reg, RegExpr, Thread, ThreadId, UnOp, Value};
use std::collections::{BTreeMap, BTreeSet};

/// A register that is compared with more constants than this is left out: one bit each.
const MOST: usize = 64;

/// Per thread the registers that are only compared with constants.
#[derive(Clone, Debug)]
pub struct Told(Vec<BTreeMap<Reg, Compared>>);

#[derive(Clone, Debug, Default)]
struct Compared {
    constants: Vec<Value>,
    /// Per location which of them matter.
    matter: Vec<u64>,
}

impl Told {
    /// Edges that are `ignored` use nothing.
    pub fn of(program: &Program, watched: &Watched, ignored: impl Fn(ThreadId, EdgeId) -> bool) -> Told {
        let one = |t: ThreadId| {
            let looked_at = watched.always[t.index()].iter().chain(&watched.at_end[t.index()]);
            of_thread(program.thread(t), looked_at.copied().collect(), |edge| ignored(t, edge))
        };
        Told(program.thread_ids().map(one).collect())
    }

    pub fn nothing(program: &Program) -> Told {
        Told(vec![BTreeMap::new(); program.threads().len()])
    }

    /// All constants that the register is ever compared with, in ascending order, if nothing else is done with it.
    pub fn compared(&self, t: ThreadId, r: Reg) -> Option<&[Value]> {
        self.0[t.index()].get(&r).map(|of| &of.constants[..])
    }

    /// Those of them that it may still be compared with.
    pub fn constants(&self, t: ThreadId, loc: Loc, r: Reg) -> Option<Vec<Value>> {
        let of = self.0[t.index()].get(&r)?;
        let matters = |k: &usize| of.matter[loc.index()] >> k & 1 != 0;
        Some((0..of.constants.len()).filter(matters).map(|k| of.constants[k]).collect())
    }
}

fn of_thread(
    thread: &Thread,
    mut used: BTreeSet<Reg>,
    ignored: impl Fn(EdgeId) -> bool,
) -> BTreeMap<Reg, Compared> {
    // Only what comes from memory can be anything; other registers hold what the text says.
    let mut all: BTreeMap<Reg, Compared> = BTreeMap::new();
    let mut tests: Vec<(Loc, Reg, Value)> = Vec::new();
    for (_, edge) in thread.edges().filter(|(id, _)| !ignored(*id)) {
        if edge.instr.reads_memory() {
            all.extend(edge.instr.target().map(|r| (r, Compared::default())));
        }
        match &edge.instr {
            Instr::Assume(e) | Instr::Assert(e) => {
                test(e, &mut |r, c| tests.push((edge.from, r, c)), &mut |r| {
                    used.insert(r);
                });
            }
            instr => instr.exprs().iter().for_each(|e| {
                e.for_each_atom(&mut |r| {
                    used.insert(*r);
                })
            }),
        }
    }
    all.retain(|r, _| !used.contains(r));
    for (r, of) in &mut all {
        let own = tests.iter().filter(|(_, of, _)| of == r);
        of.constants = own.clone().map(|(_, _, c)| *c).collect();
        of.constants.sort();
        of.constants.dedup();
        if of.constants.len() <= MOST {
            let bit = |c: &Value| 1 << of.constants.binary_search(c).expect("it is among them");
            let seeds: Vec<(Loc, u64)> = own.map(|(at, _, c)| (*at, bit(c))).collect();
            of.matter = spread(thread, *r, &seeds);
        }
    }
    all.retain(|_, of| of.constants.len() <= MOST);
    all
}

/// What a condition compares with constants, and what it uses otherwise.
fn test(e: &RegExpr, compared: &mut impl FnMut(Reg, Value), used: &mut impl FnMut(Reg)) {
    match e {
        Expr::Const(_) => {}
        Expr::Atom(r) => compared(*r, 0),
        Expr::Unary(UnOp::Not, a) => test(a, compared, used),
        Expr::Binary(BinOp::And | BinOp::Or, a, b) => {
            test(a, compared, used);
            test(b, compared, used);
        }
        Expr::Binary(BinOp::Eq | BinOp::Ne, a, b) => match (&**a, &**b) {
            (Expr::Atom(r), Expr::Const(c)) | (Expr::Const(c), Expr::Atom(r)) => compared(*r, *c),
            _ => e.for_each_atom(&mut |r| used(*r)),
        },
        _ => e.for_each_atom(&mut |r| used(*r)),
    }
}

/// Backward data flow, up to where the register gets a new value.
fn spread(thread: &Thread, r: Reg, seeds: &[(Loc, u64)]) -> Vec<u64> {
    let mut into: Vec<Vec<Loc>> = vec![Vec::new(); thread.graph().node_count()];
    for (_, edge) in thread.edges().filter(|(_, e)| e.instr.target() != Some(r)) {
        into[edge.to.index()].push(edge.from);
    }
    let mut matter = vec![0; into.len()];
    let mut todo = Vec::new();
    for &(loc, bits) in seeds {
        matter[loc.index()] |= bits;
        todo.push(loc);
    }
    while let Some(loc) = todo.pop() {
        for from in &into[loc.index()] {
            let more = matter[from.index()] | matter[loc.index()];
            if more != matter[from.index()] {
                matter[from.index()] = more;
                todo.push(*from);
            }
        }
    }
    matter
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::tso;

    fn told(source: &str, label: &str) -> Option<Vec<Value>> {
        let program = tso::read(source, &[]).unwrap().program;
        let thread = &program.threads()[0];
        let at = thread.locations().find(|&l| thread.location(l).labels.iter().any(|name| name == label));
        let told = Told::of(&program, &Watched::nothing(&program), |_, _| false);
        told.constants(ThreadId(0), at.unwrap(), Reg(0))
    }

    #[test]
    fn a_register_that_is_tested_matters_by_its_tests() {
        let source =
            "shared x; thread p; load r, [x]; here: fence; if r == 3 goto out; assume r; out: nop; end";
        assert_eq!(told(source, "here"), Some(vec![0, 3]));
        assert_eq!(told(source, "out"), Some(vec![]));
    }

    #[test]
    fn a_register_that_is_used_otherwise_is_left_out() {
        let source = "shared x; thread p; load r, [x]; here: fence; assume r == 3; store [x], r; end";
        assert_eq!(told(source, "here"), None);
        assert_eq!(told("shared x; thread p; load r, [x]; here: fence; assume r < 3; end", "here"), None);
    }
}

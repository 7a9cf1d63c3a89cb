//! Which values of a register can still be told apart? If all that a thread ever does with a register is to
//! compare it with constants, then at a location the values that it will not be compared with from there on
//! are all the same.
//!
//! Registers with any other use, and those that a property looks at, are left out. For the others: per
//! location the constants that matter, by backward data flow. It is to values what liveness is to registers.

use super::liveness::Watched;
use super::solver::Backward;
use crate::limits::{Limit, Limits};
use crate::model::{BinOp, EdgeId, Expr, Instr, Loc, Program, Reg, RegExpr, Thread, ThreadId, UnOp, Value};
use std::collections::{BTreeMap, BTreeSet};

/// A register that is compared with more constants than this is left out: one bit each.
const MOST: usize = 64;
/// Registers of a thread that matter at more places than this, all together, are left out.
const MOST_PLACES: usize = 1 << 20;

/// Per thread the registers that are only compared with constants.
#[derive(Clone, Debug)]
pub struct LiveComparisons(Vec<BTreeMap<Reg, Compared>>);

#[derive(Clone, Debug, Default)]
struct Compared {
    constants: Vec<Value>,
    /// Which of them matter at the locations where some do, in ascending order.
    matter: Vec<(Loc, u64)>,
}

impl LiveComparisons {
    /// Edges that are `ignored` use nothing.
    pub fn of(
        program: &Program,
        watched: &Watched,
        ignored: impl Fn(ThreadId, EdgeId) -> bool,
        limits: &Limits,
    ) -> Result<LiveComparisons, Limit> {
        let one = |t: ThreadId| {
            let looked_at = watched.always[t.index()].iter().chain(&watched.at_end[t.index()]);
            of_thread(program.thread(t), looked_at.copied().collect(), |edge| ignored(t, edge), limits)
        };
        Ok(LiveComparisons(program.thread_ids().map(one).collect::<Result<_, _>>()?))
    }

    pub fn nothing(program: &Program) -> LiveComparisons {
        LiveComparisons(vec![BTreeMap::new(); program.threads().len()])
    }

    pub fn is_nothing(&self, t: ThreadId) -> bool {
        self.0[t.index()].is_empty()
    }

    /// The registers with which nothing else is done, and all constants that each is ever compared with, in
    /// ascending order.
    pub fn compared(&self, t: ThreadId) -> impl Iterator<Item = (Reg, &[Value])> {
        self.0[t.index()].iter().map(|(r, of)| (*r, &of.constants[..]))
    }

    /// Where the register may still be compared, in ascending order, and with which constants: one bit each.
    pub fn places(&self, t: ThreadId, r: Reg) -> &[(Loc, u64)] {
        self.0[t.index()].get(&r).map_or(&[], |of| &of.matter[..])
    }

    /// Those of them that it may still be compared with.
    pub fn constants(&self, t: ThreadId, loc: Loc, r: Reg) -> Option<Vec<Value>> {
        let of = self.0[t.index()].get(&r)?;
        let known = self.places(t, r).binary_search_by_key(&loc, |(at, _)| *at);
        let bits = known.map_or(0, |k| of.matter[k].1);
        Some((0..of.constants.len()).filter(|k| bits >> k & 1 != 0).map(|k| of.constants[k]).collect())
    }
}

fn of_thread(
    thread: &Thread,
    mut used: BTreeSet<Reg>,
    ignored: impl Fn(EdgeId) -> bool,
    limits: &Limits,
) -> Result<BTreeMap<Reg, Compared>, Limit> {
    // Only what comes from memory can be anything; other registers hold what the text says.
    let mut all: BTreeMap<Reg, Compared> = BTreeMap::new();
    let mut tests: Vec<(Reg, Loc, Value)> = Vec::new();
    for (_, edge) in thread.edges().filter(|(id, _)| !ignored(*id)) {
        if edge.instr.reads_memory() {
            all.extend(edge.instr.target().map(|r| (r, Compared::default())));
        }
        match &edge.instr {
            Instr::Assume(e) | Instr::Assert(e) => {
                test(e, &mut |r, c| tests.push((r, edge.from, c)), &mut |r| {
                    used.insert(r);
                });
            }
            instr => instr.uses(|r| {
                used.insert(r);
            }),
        }
    }
    all.retain(|r, _| !used.contains(r));
    tests.sort();
    let mut solver = Backward::new(thread);
    let mut matter = vec![0; thread.graph().node_count()];
    let mut left = MOST_PLACES;
    for (r, of) in &mut all {
        let own =
            tests.partition_point(|(other, ..)| other < r)..tests.partition_point(|(other, ..)| other <= r);
        let own = &tests[own];
        of.constants = own.iter().map(|(_, _, c)| *c).collect();
        of.constants.sort();
        of.constants.dedup();
        if of.constants.len() <= MOST {
            let bit = |c: &Value| 1 << of.constants.binary_search(c).expect("it is among them");
            let seeds: Vec<(Loc, u64)> = own.iter().map(|(_, at, c)| (*at, bit(c))).collect();
            of.matter = spread(&mut solver, *r, &seeds, &mut matter, limits)?;
            left = left.saturating_sub(of.matter.len());
        }
        if left == 0 {
            return Ok(BTreeMap::new());
        }
    }
    all.retain(|_, of| of.constants.len() <= MOST);
    Ok(all)
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

/// Where the constants of a register matter: from its tests back to where it gets a new value. One register
/// after the other, since each takes as long as the part of the graph where it matters. `matter` is 0
/// everywhere between two of them.
fn spread(
    solver: &mut Backward,
    r: Reg,
    seeds: &[(Loc, u64)],
    matter: &mut [u64],
    limits: &Limits,
) -> Result<Vec<(Loc, u64)>, Limit> {
    let mut reached = Vec::new();
    let mut add = |matter: &mut [u64], loc: Loc, bits: u64| {
        let before = matter[loc.index()];
        matter[loc.index()] |= bits;
        if before == 0 {
            reached.push(loc);
        }
        matter[loc.index()] != before
    };
    for &(loc, bits) in seeds {
        add(matter, loc, bits);
    }
    solver.run(seeds.iter().map(|(loc, _)| *loc), matter, limits, |_, edge, matter| {
        let bits = matter[edge.to.index()];
        Ok(edge.instr.target() != Some(r) && add(matter, edge.from, bits))
    })?;
    reached.sort_unstable();
    Ok(reached.into_iter().map(|loc| (loc, std::mem::take(&mut matter[loc.index()]))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::tso;

    fn told(source: &str, label: &str) -> Option<Vec<Value>> {
        let program = tso::read(source, &[], &Limits::default()).unwrap().program;
        let thread = &program.threads()[0];
        let at = thread.locations().find(|&l| thread.location(l).labels.iter().any(|name| name == label));
        let told =
            LiveComparisons::of(&program, &Watched::nothing(&program), |_, _| false, &Limits::default());
        told.unwrap().constants(ThreadId(0), at.unwrap(), Reg(0))
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

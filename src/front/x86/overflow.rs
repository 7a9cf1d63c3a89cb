//! How many bits can a value of this program need? Enough to leave out the cutting of results, for most
//! tests.
//!
//! At the start every value lies between -2^n and 2^n, for some n that covers all constants. A step may
//! produce a value of k more bits than the largest it was made from: 1 for a sum, none for a copy. If steps
//! that make values larger lie on no cycle each of them happens at most once, and n plus the sum of all k
//! bounds everything, whatever the order in which threads take turns. The intervals of `model` cannot see
//! this: they do not count how often memory is increased.

use super::Arch;
use crate::model::{BinOp, EdgeId, Expr, Instr, Program, RegExpr, RmwOp, Thread, UnOp, Value};
use petgraph::algo::kosaraju_scc;
use std::collections::BTreeSet;

/// Do all values keep within these widths by themselves, whatever happens?
pub(crate) fn nothing_is_cut_off(program: &Program, widths: &BTreeSet<u32>, arch: Arch) -> bool {
    let Some(bound) = BitBound::of(program) else { return false };
    widths.iter().all(|&bits| match bits == arch.bits() {
        true => bound.bits < bits,
        false => !bound.negative && bound.bits <= bits,
    })
}

/// All values of a program, at any time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BitBound {
    /// They lie between -2^bits and 2^bits, without the latter.
    pub bits: u32,
    pub negative: bool,
}

impl BitBound {
    /// A bound on all registers and cells, if there is one.
    pub(crate) fn of(program: &Program) -> Option<BitBound> {
        let mut all = BitBound { bits: 0, negative: false };
        program.initial_memory().iter().for_each(|v| all.include(*v));
        let mut growth = 0;
        for thread in program.threads() {
            let cyclic = on_cycles(thread);
            for (id, edge) in thread.edges() {
                let k = made(&edge.instr, &mut all)?;
                if k > 0 && cyclic(id) {
                    return None;
                }
                growth += k;
            }
        }
        all.bits = all.bits.checked_add(growth).filter(|bits| *bits < 64)?;
        Some(all)
    }

    fn include(&mut self, constant: Value) {
        self.negative |= constant < 0;
        let magnitude = if constant < 0 { !constant } else { constant };
        self.bits = self.bits.max(64 - magnitude.leading_zeros());
    }
}

/// Whether an edge can be taken twice in one run.
fn on_cycles(thread: &Thread) -> impl Fn(EdgeId) -> bool {
    let mut component = vec![0; thread.graph().node_count()];
    // Tarjan's algorithm would recurse as deep as the thread is long.
    for (number, nodes) in kosaraju_scc(thread.graph()).into_iter().enumerate() {
        nodes.into_iter().for_each(|node| component[node.index()] = number);
    }
    let ends: Vec<(usize, usize)> = thread.edges().map(|(_, e)| (e.from.index(), e.to.index())).collect();
    move |id| component[ends[id.index()].0] == component[ends[id.index()].1]
}

/// How many bits more than what it was made from the value has that the instruction leaves somewhere.
fn made(instr: &Instr, all: &mut BitBound) -> Option<u32> {
    match instr {
        Instr::Assign { value, .. } | Instr::Store { value, .. } => grown(value, all),
        Instr::Rmw { op: RmwOp::Swap(v) | RmwOp::New(v) | RmwOp::Cas { new: v, .. }, .. } => grown(v, all),
        Instr::Rmw { op: RmwOp::And(v) | RmwOp::Or(v) | RmwOp::Xor(v), .. } => grown(v, all),
        Instr::Rmw { op: RmwOp::Add(v), .. } => Some(grown(v, all)? + 1),
        Instr::Any { .. } => None,
        _ => Some(0),
    }
}

/// The same for an expression. What is in it besides registers goes into `all`.
fn grown(e: &RegExpr, all: &mut BitBound) -> Option<u32> {
    use BinOp::{Add, BitAnd, BitOr, BitXor, Div, Mul, Rem, Shl, Shr, Sub};
    if is_truth(e) {
        all.include(1);
        return Some(0);
    }
    match e {
        Expr::Const(c) => {
            all.include(*c);
            Some(0)
        }
        Expr::Atom(_) => Some(0),
        Expr::Unary(op, a) => {
            all.negative = true;
            Some(grown(a, all)? + (*op == UnOp::Neg) as u32)
        }
        Expr::Binary(op, a, b) => match (op, &**a, &**b) {
            // A mask bounds what it is laid over.
            (BitAnd, _, Expr::Const(mask)) if *mask >= 0 => grown(b, all),
            (Shr, _, Expr::Const(by)) => {
                all.negative = true;
                all.bits = all.bits.max(63 - (*by as u32 & 63));
                Some(0)
            }
            (Shl, _, Expr::Const(by)) => Some(grown(a, all)? + (*by as u32 & 63)),
            (Mul, factor, other) | (Mul, other, factor) if is_truth(factor) => grown(other, all),
            (Mul, _, Expr::Const(c)) => Some(grown(a, all)? + 64 - c.unsigned_abs().leading_zeros()),
            (Div | Rem, _, Expr::Const(_)) => grown(a, all),
            (Add | Sub | BitAnd | BitOr | BitXor, _, _) => {
                all.negative |= *op == Sub;
                Some(grown(a, all)?.max(grown(b, all)?) + matches!(op, Add | Sub) as u32)
            }
            _ => None,
        },
    }
}

/// Is it always 0 or 1?
fn is_truth(e: &RegExpr) -> bool {
    use BinOp::{And, Eq, Ge, Gt, Le, Lt, Ne, Or};
    matches!(e, Expr::Unary(UnOp::Not, _) | Expr::Binary(Or | And | Eq | Ne | Lt | Le | Gt | Ge, ..))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::tso;
    use crate::limits::Limits;

    fn bound(threads: &str) -> Option<BitBound> {
        BitBound::of(
            &tso::read(&format!("shared x, y = 5\n{threads}"), &[], &Limits::default())
                .expect("it is a program")
                .program,
        )
    }

    #[test]
    fn every_sum_adds_a_bit() {
        assert_eq!(bound("thread p\nstore [x], 1\nend"), Some(BitBound { bits: 3, negative: false }));
        assert_eq!(
            bound("thread p\nadd r, [x], 1\nr = r + r\nend\nthread q\nr = -3\nadd r, [x], 1\nend"),
            Some(BitBound { bits: 6, negative: true })
        );
    }

    #[test]
    fn what_grows_in_a_loop_has_no_bound() {
        assert_eq!(bound("thread p\nl: add r, [x], 1\ngoto l\nend"), None);
        assert_eq!(
            bound("thread p\nl: load r, [x]\nif r != y goto l\nadd r, [x], 1\nend"),
            Some(BitBound { bits: 4, negative: false })
        );
    }

    #[test]
    fn masks_and_comparisons_do_not_grow() {
        let masked =
            "thread p\nl: load r, [x]\nr = r - 7 & 15\ns = (r < 3) * r + 1 == 5\nstore [x], s\ngoto l\nend";
        assert_eq!(bound(masked), Some(BitBound { bits: 4, negative: false }));
        assert_eq!(bound("thread p\nr = 1 << 70\nload r, [x]\nr = r << 60\nend"), None);
    }
}

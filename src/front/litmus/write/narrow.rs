//! Do 32 bits do for a program? They do if no value needs more, on its way or at rest.
//!
//! A result that the program itself cuts to 32 bits may be computed there however large it would get, as long
//! as its low bits depend on low bits alone.

use crate::analysis::interval::{Interval, range};
use crate::front::x86::BitBound;
use crate::model::litmus::Litmus;
use crate::model::{BinOp, Expr, Program, Reg, RegExpr, UnOp, Value};

const LOW: Interval = Interval { lo: i32::MIN as Value, hi: i32::MAX as Value };

/// Is the program the same in 32 bits? Of a test that was read for such a processor it is known how large
/// values are.
pub(crate) fn suits(program: &Program, test: Option<&Litmus>) -> bool {
    let values = match test {
        Some(test) if test.bits == 32 => LOW,
        Some(_) => return false,
        None => match BitBound::of(program) {
            Some(BitBound { bits, .. }) if bits < 32 => Interval { lo: -(1 << bits), hi: (1 << bits) - 1 },
            _ => return false,
        },
    };
    let mut edges = program.threads().iter().flat_map(|t| t.edges());
    let small = edges.all(|(_, edge)| {
        let address = edge.instr.address();
        let others = edge.instr.exprs().into_iter().filter(|e| !address.is_some_and(|a| std::ptr::eq(a, *e)));
        // Addresses are bytes in a test that was read, and elsewhere numbers of cells, which 32 bits cannot
        // all scale.
        (test.is_some() || address.is_none_or(|a| a.constant().is_some()))
            && others.into_iter().all(|e| exact(e, values))
    });
    small && program.initial_memory().iter().all(|v| contains(LOW, *v))
}

fn contains(interval: Interval, value: Value) -> bool {
    interval.lo <= value && value <= interval.hi
}

/// Is the value, computed in 32 bits, the true one?
fn exact(e: &RegExpr, values: Interval) -> bool {
    if let Some(inner) = uncut(e) {
        return low(inner, values);
    }
    let shift_fits = |op: &BinOp, b: &RegExpr| {
        !matches!(op, BinOp::Shl | BinOp::Shr) || b.constant().is_some_and(|by| (0..32).contains(&by))
    };
    let parts = match e {
        Expr::Const(_) | Expr::Atom(_) => true,
        Expr::Unary(_, a) => exact(a, values),
        Expr::Binary(op, a, b) => shift_fits(op, b) && exact(a, values) && exact(b, values),
    };
    let grows = match e {
        Expr::Const(_) | Expr::Atom(_) => true,
        Expr::Unary(op, _) => *op == UnOp::Neg,
        Expr::Binary(op, ..) => matches!(op, BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Shl | BinOp::Div),
    };
    let fits = || {
        let range = range(e, &|_: &Reg| values);
        contains(LOW, range.lo) && contains(LOW, range.hi)
    };
    parts && (!grows || fits())
}

/// Are at least its low 32 bits the true ones?
fn low(e: &RegExpr, values: Interval) -> bool {
    let parts = match e {
        Expr::Unary(UnOp::Neg | UnOp::BitNot, a) => low(a, values),
        Expr::Binary(BinOp::Shl, a, by) => {
            by.constant().is_some_and(|by| (0..32).contains(&by)) && low(a, values)
        }
        Expr::Binary(op, a, b) => {
            let bitwise = matches!(
                op,
                BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::BitAnd | BinOp::BitOr | BinOp::BitXor
            );
            bitwise && low(a, values) && low(b, values)
        }
        _ => false,
    };
    parts || exact(e, values)
}

/// What is under a cut to 32 bits with sign, `e << 32 >> 32`.
pub(crate) fn uncut(e: &RegExpr) -> Option<&RegExpr> {
    let under = |e: &'_ RegExpr, wanted: BinOp| match e {
        Expr::Binary(op, _, by) => *op == wanted && **by == Expr::Const(32),
        _ => false,
    };
    match e {
        Expr::Binary(BinOp::Shr, shifted, _) if under(e, BinOp::Shr) && under(shifted, BinOp::Shl) => {
            match &**shifted {
                Expr::Binary(_, inner, _) => Some(inner),
                _ => None,
            }
        }
        _ => None,
    }
}

//! Which expressions mean the same in C's `int`? SPIN has C's operators and precedence over 32 bits.
//!
//! Checked once for the whole program, so that the rest of the writer can print expressions as they are:
//! constants must fit, and shifts must be by constants below 32, where both widths agree.

use super::super::Inexpressible;
use super::FORMAT;
use crate::model::{BinOp, Expr, Instr, Program, RegExpr, UnOp, Value};

pub(crate) fn fits(v: Value) -> bool {
    // Without -2^31, whose literal is not an `int` in C.
    v.unsigned_abs() <= i32::MAX as u64
}

pub(crate) fn check(program: &Program) -> Result<(), Inexpressible> {
    for variable in program.variables() {
        if let Some(v) = variable.init.iter().find(|v| !fits(**v)) {
            return Err(refusal(format!("variable `{}`", variable.name), v.to_string(), TOO_LARGE));
        }
    }
    for thread in program.threads() {
        for (_, edge) in thread.edges() {
            let problem = match &edge.instr {
                Instr::Any { lo, hi, .. } if !fits(*lo) || !fits(*hi) => Some(TOO_LARGE),
                instr => instr.exprs().into_iter().find_map(problem),
            };
            if let Some(why) = problem {
                let place = format!("thread `{}`, line {}", thread.name(), edge.line);
                let construct = format!("`{}`", thread.show_instr(program, &edge.instr));
                return Err(refusal(place, construct, why));
            }
        }
    }
    for property in program.properties() {
        if let Some(why) = problem(&property.pred) {
            let construct = format!("`{}`", property.show(program));
            return Err(refusal(format!("line {}", property.line), construct, why));
        }
    }
    Ok(())
}

const TOO_LARGE: &str = "SPIN's values have 32 bits";
const SHIFT: &str = "SPIN's values have 32 bits, so a shift must be by a constant below 32";

fn refusal(place: String, construct: String, why: &str) -> Inexpressible {
    Inexpressible { format: FORMAT, place, construct, why: why.to_string() }
}

fn problem<A>(e: &Expr<A>) -> Option<&'static str> {
    match e {
        Expr::Const(c) => (!fits(*c)).then_some(TOO_LARGE),
        Expr::Atom(_) => None,
        Expr::Unary(_, a) => problem(a),
        Expr::Binary(BinOp::Shl | BinOp::Shr, a, b) => match **b {
            Expr::Const(0..=31) => problem(a),
            _ => Some(SHIFT),
        },
        Expr::Binary(_, a, b) => problem(a).or_else(|| problem(b)),
    }
}

/// The condition under which evaluating the expression does not divide by zero; `None` if it never does.
pub(crate) fn safe(e: &RegExpr) -> Option<RegExpr> {
    if !e.may_divide_by_zero() {
        return None;
    }
    match e {
        Expr::Const(_) | Expr::Atom(_) => None,
        Expr::Unary(_, a) => safe(a),
        Expr::Binary(op, a, b) => {
            let right = match op {
                BinOp::Div | BinOp::Rem => both(safe(b), Some(nonzero(b))),
                BinOp::And => {
                    safe(b).map(|s| Expr::binary(BinOp::Or, Expr::unary(UnOp::Not, (**a).clone()), s))
                }
                BinOp::Or => safe(b).map(|s| Expr::binary(BinOp::Or, (**a).clone(), s)),
                _ => safe(b),
            };
            both(safe(a), right)
        }
    }
}

fn nonzero(e: &RegExpr) -> RegExpr {
    Expr::binary(BinOp::Ne, e.clone(), Expr::Const(0))
}

pub(crate) fn both(a: Option<RegExpr>, b: Option<RegExpr>) -> Option<RegExpr> {
    match (a, b) {
        (Some(a), Some(b)) => Some(Expr::binary(BinOp::And, a, b)),
        (a, b) => a.or(b),
    }
}

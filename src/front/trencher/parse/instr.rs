//! What does a transition do? Its instruction, with expressions in prefix form.

use super::{Draft, TrencherParser, Word};
use crate::front::diagnostics::{Parsed, Problem, Span, shorten};
use crate::model::expr::MAX_DEPTH;
use crate::model::{BinOp, Bytes, Expr, Instr, MAX_REGISTERS, Reg, RegExpr, UnOp};

const INSTRUCTIONS: [&str; 8] = ["write", "read", "local", "check", "mfence", "noop", "lock", "unlock"];
const OPERATORS: [(&str, BinOp); 14] = [
    ("==", BinOp::Eq),
    ("!=", BinOp::Ne),
    ("<", BinOp::Lt),
    ("<=", BinOp::Le),
    (">", BinOp::Gt),
    (">=", BinOp::Ge),
    ("&&", BinOp::And),
    ("||", BinOp::Or),
    ("+", BinOp::Add),
    ("-", BinOp::Sub),
    ("*", BinOp::Mul),
    ("&", BinOp::BitAnd),
    ("/", BinOp::Div),
    ("%", BinOp::Rem),
];
/// One level less than a model allows: an address may have to be shifted.
const DEEPEST: usize = MAX_DEPTH - 1;

impl<'s> TrencherParser<'s, '_> {
    /// The instruction, and the place of its address.
    pub(super) fn instruction(&mut self, word: Word<'s>, draft: &mut Draft<'s>) -> Parsed<(Instr, Span)> {
        let mut span = word.span;
        let instr = match word.text {
            "write" => {
                let value = self.expr("the value to write", draft)?;
                let first = self.next;
                let addr = self.expr("the address to write to, behind the value", draft)?;
                span = self.since(first);
                Instr::Store { addr, value, bytes: Bytes::WHOLE }
            }
            "read" => {
                let dst = self.target(draft)?;
                let first = self.next;
                let addr = self.expr("the address to read", draft)?;
                span = self.since(first);
                Instr::Load { dst, addr, bytes: Bytes::WHOLE }
            }
            "local" => {
                let dst = self.target(draft)?;
                Instr::Assign { dst, value: self.expr("the register's new value", draft)? }
            }
            "check" => Instr::Assume(self.expr("a condition", draft)?),
            "mfence" => Instr::Fence,
            "noop" => Instr::Nop,
            "lock" => Instr::Lock,
            "unlock" => Instr::Unlock,
            text => {
                let meant = self.problems.nearest(text, INSTRUCTIONS).or(foreign(text));
                let problem = Problem::error(format!("unknown instruction `{}`", shorten(text)))
                    .at(span)
                    .label("a transition is two states and an instruction");
                return Err(self.problems.report(problem.suggest(meant)));
            }
        };
        Ok((instr, span))
    }

    fn target(&mut self, draft: &mut Draft<'s>) -> Parsed<Reg> {
        let word = self.operand("a register")?;
        if is_number_like(word.text) || word.text == "!" || operator(word.text).is_some() {
            let problem =
                Problem::warning(format!("no expression can use the register `{}`", shorten(word.text)));
            self.problems.report(problem.at(word.span).label("means something else there"));
        }
        self.register(word, draft)
    }

    fn register(&mut self, word: Word<'s>, draft: &mut Draft<'s>) -> Parsed<Reg> {
        let number = draft.registers.number(word);
        if number < MAX_REGISTERS {
            return Ok(Reg(number as u16));
        }
        let problem = Problem::error(format!("a thread has at most {MAX_REGISTERS} registers"));
        Err(self.problems.report(problem.at(word.span)))
    }

    fn expr(&mut self, expected: &str, draft: &mut Draft<'s>) -> Parsed<RegExpr> {
        self.expr_at(1, expected, draft)
    }

    fn expr_at(&mut self, depth: usize, expected: &str, draft: &mut Draft<'s>) -> Parsed<RegExpr> {
        let word = self.operand(expected)?;
        if depth > DEEPEST {
            let problem =
                Problem::error(format!("this expression is nested more than {DEEPEST} levels deep"));
            return Err(self.problems.report(problem.at(word.span)));
        }
        if is_number_like(word.text) {
            return self.number(word);
        }
        if word.text == "!" {
            return Ok(Expr::unary(UnOp::Not, self.expr_at(depth + 1, "the operand of `!`", draft)?));
        }
        match operator(word.text) {
            Some(op) => {
                let left = self.expr_at(depth + 1, "the left operand", draft)?;
                let right = self.expr_at(depth + 1, "the right operand", draft)?;
                Ok(Expr::binary(op, left, right))
            }
            None if word.text.chars().all(|c| "=<>!&|+-*/%^~".contains(c)) => {
                let meant = self.problems.nearest(word.text, OPERATORS.map(|(text, _)| text));
                let meant = meant.or((word.text == "=").then(|| "==".to_string()));
                let problem = Problem::error(format!("`{}` is no operator", shorten(word.text)));
                Err(self.problems.report(problem.at(word.span).suggest(meant)))
            }
            None => Ok(Expr::Atom(self.register(word, draft)?)),
        }
    }

    fn number(&mut self, word: Word<'s>) -> Parsed<RegExpr> {
        let digits = word.text.trim_start_matches(['+', '-']);
        let problem = match word.text.parse::<i32>() {
            Ok(value) => return Ok(Expr::Const(value.into())),
            Err(_) if digits.bytes().all(|b| b.is_ascii_digit()) => {
                Problem::error(format!("`{}` does not fit 32 bits", shorten(word.text)))
            }
            Err(_) => Problem::error(format!("`{}` is no number", shorten(word.text)))
                .label("the name of a register does not begin like a number"),
        };
        Err(self.problems.report(problem.at(word.span)))
    }
}

fn operator(text: &str) -> Option<BinOp> {
    OPERATORS.iter().find(|(symbol, _)| *symbol == text).map(|(_, op)| *op)
}

/// A digit, perhaps behind a sign: this is never a register.
fn is_number_like(text: &str) -> bool {
    text.strip_prefix(['+', '-']).unwrap_or(text).starts_with(|c: char| c.is_ascii_digit())
}

/// What the instructions of other languages are called here.
fn foreign(text: &str) -> Option<String> {
    let meant = match text {
        "load" => "read",
        "store" => "write",
        "fence" => "mfence",
        "nop" | "skip" => "noop",
        "assume" => "check",
        "assign" => "local",
        _ => return None,
    };
    Some(meant.to_string())
}

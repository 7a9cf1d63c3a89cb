//! Expressions, by precedence climbing. All binary operators group to the left; `imply` binds weakest and
//! becomes `not … or …`, which evaluates the same sides.

use super::super::ast::{ExprText, LvalueText};
use super::super::lex::DveKind;
use super::DveParser;
use crate::front::diagnostics::{Parsed, Problem};
use crate::model::expr::MAX_DEPTH;
use crate::model::{BinOp, UnOp};

/// An operator between two operands.
enum Infix {
    Imply,
    Plain(BinOp),
}

impl Infix {
    fn precedence(&self) -> u8 {
        match self {
            Infix::Imply => 0,
            Infix::Plain(op) => op.precedence(),
        }
    }
}

fn infix(text: &str) -> Option<Infix> {
    Some(Infix::Plain(match text {
        "imply" => return Some(Infix::Imply),
        "or" | "||" => BinOp::Or,
        "and" | "&&" => BinOp::And,
        "|" => BinOp::BitOr,
        "^" => BinOp::BitXor,
        "&" => BinOp::BitAnd,
        "==" => BinOp::Eq,
        "!=" => BinOp::Ne,
        "<" => BinOp::Lt,
        "<=" => BinOp::Le,
        ">" => BinOp::Gt,
        ">=" => BinOp::Ge,
        "<<" => BinOp::Shl,
        ">>" => BinOp::Shr,
        "+" => BinOp::Add,
        "-" => BinOp::Sub,
        "*" => BinOp::Mul,
        "/" => BinOp::Div,
        "%" => BinOp::Rem,
        _ => return None,
    }))
}

impl<'s> DveParser<'s, '_, '_> {
    /// Nothing but an expression.
    pub(crate) fn whole_expression(&mut self) -> Parsed<ExprText<'s>> {
        let expr = self.expression()?;
        match self.token().kind {
            DveKind::EndOfFile => Ok(expr),
            _ => Err(self.unexpected("the end of the expression")),
        }
    }

    pub(crate) fn expression(&mut self) -> Parsed<ExprText<'s>> {
        Ok(self.climb(0, 0)?.0)
    }

    /// Operators that bind at least so tightly, and how deep the tree is.
    fn climb(&mut self, least: u8, depth: usize) -> Parsed<(ExprText<'s>, usize)> {
        let (mut left, mut height) = self.operand(depth)?;
        while let Some(op) = infix(self.token().text).filter(|op| op.precedence() >= least) {
            self.bump();
            let (right, other) = self.climb(op.precedence() + 1, depth + 1)?;
            height = self.height(height.max(other), depth)?;
            left = match op {
                Infix::Imply => {
                    let not = ExprText::Unary(UnOp::Not, Box::new(left));
                    height = self.height(height, depth)?;
                    ExprText::Binary(BinOp::Or, Box::new(not), Box::new(right))
                }
                Infix::Plain(op) => ExprText::Binary(op, Box::new(left), Box::new(right)),
            };
        }
        Ok((left, height))
    }

    /// One more than its parts, unless that is too deep to be walked.
    fn height(&mut self, below: usize, depth: usize) -> Parsed<usize> {
        if below + depth >= MAX_DEPTH {
            let why = format!("the expression is nested more than {MAX_DEPTH} deep");
            return Err(self.problems.report(Problem::error(why).at(self.token().span)));
        }
        Ok(below + 1)
    }

    fn operand(&mut self, depth: usize) -> Parsed<(ExprText<'s>, usize)> {
        self.height(0, depth)?;
        let token = self.token();
        let unary = match token.text {
            "-" => Some(UnOp::Neg),
            "~" => Some(UnOp::BitNot),
            "not" => Some(UnOp::Not),
            _ => None,
        };
        if let Some(op) = unary.filter(|_| token.kind != DveKind::Number) {
            self.bump();
            let (operand, below) = self.operand(depth + 1)?;
            return Ok((ExprText::Unary(op, Box::new(operand)), self.height(below, depth)?));
        }
        if self.eat("(").is_some() {
            let inner = self.climb(0, depth + 1)?;
            self.expect(")")?;
            return Ok(inner);
        }
        if self.is("!") {
            let problem =
                Problem::error("`!` is the mark of a send").at(token.span).help("negation is `not`");
            return Err(self.problems.report(problem));
        }
        for (word, value) in [("true", 1), ("false", 0)] {
            if self.eat(word).is_some() {
                return Ok((ExprText::Number(value), 1));
            }
        }
        if token.kind == DveKind::Number {
            return Ok((ExprText::Number(self.number("a number")?), 1));
        }
        let name = self.name("an expression")?;
        if self.eat(".").is_some() {
            return Ok((ExprText::At(name, self.name("the name of a state")?), 1));
        }
        if self.eat("->").is_some() {
            let own = self.name("the name of a variable")?;
            let (index, below) = self.bracketed(depth)?;
            return Ok((ExprText::Other(name, LvalueText { name: own, index }), below + 1));
        }
        let (index, below) = self.bracketed(depth)?;
        Ok((ExprText::Read(LvalueText { name, index }), below + 1))
    }

    /// An index, if there is one, and how deep it is.
    fn bracketed(&mut self, depth: usize) -> Parsed<(Option<Box<ExprText<'s>>>, usize)> {
        if self.eat("[").is_none() {
            return Ok((None, 0));
        }
        let (index, below) = self.climb(0, depth + 1)?;
        self.expect("]")?;
        Ok((Some(Box::new(index)), below))
    }
}

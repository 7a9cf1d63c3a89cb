//! How does an expression group? By C's precedence, climbed with one loop.
//!
//! Nesting is bounded, because reading an expression, walking it and dropping it all recurse. Long chains of
//! operators are no nesting: they become lists.

use super::{Parsed, Parser};
use crate::front::diagnostics::{Problem, Reported, Span, shorten};
use crate::front::tso::ast::{Expr, Name, ThreadRef};
use crate::front::tso::lex::{self, BadNumber, Kind};
use crate::model::{BinOp, UnOp, Value};

/// A level of an expression needs at most two of these, so the printed form of every tree the model takes
/// fits.
const MAX_NESTING: usize = 600;

impl<'s> Parser<'s, '_> {
    pub(super) fn expr(&mut self) -> Parsed<Expr<'s>> {
        self.climb(0)
    }

    /// An expression whose operators all bind at least as tightly as `lowest`.
    fn climb(&mut self, lowest: u8) -> Parsed<Expr<'s>> {
        self.deeper(|parser| {
            let mut left = parser.unary()?;
            while let Some(op) = binary_operator(parser.kind()).filter(|op| op.precedence() >= lowest) {
                let rest = parser.chain(op.precedence())?;
                left = Expr::Chain(Box::new(left), rest);
            }
            Ok(left)
        })
    }

    /// Operators of one precedence and what stands to their right.
    fn chain(&mut self, precedence: u8) -> Parsed<Vec<(BinOp, Span, Expr<'s>)>> {
        let mut rest = Vec::new();
        while let Some(op) = binary_operator(self.kind()).filter(|op| op.precedence() == precedence) {
            let span = self.span();
            self.bump();
            rest.push((op, span, self.climb(precedence + 1)?));
        }
        Ok(rest)
    }

    fn unary(&mut self) -> Parsed<Expr<'s>> {
        let op = match self.kind() {
            Kind::Minus => UnOp::Neg,
            Kind::Bang => UnOp::Not,
            Kind::Tilde => UnOp::BitNot,
            _ => return self.primary(),
        };
        let sign = self.span();
        self.bump();
        if op == UnOp::Neg
            && self.kind() == Kind::Number
            && lex::number(self.text()) == Err(BadNumber::OnlyNegative)
        {
            let span = sign.to(self.span());
            self.bump();
            return Ok(Expr::Number(Value::MIN, span));
        }
        let operand = self.deeper(Self::unary)?;
        Ok(Expr::Unary(op, sign, Box::new(operand)))
    }

    fn primary(&mut self) -> Parsed<Expr<'s>> {
        let span = self.span();
        match self.kind() {
            Kind::Number => self.number(),
            Kind::Name => {
                let name = Name { text: self.text(), span };
                self.bump();
                self.after_name(name)
            }
            Kind::LeftParen => {
                self.bump();
                let inner = self.expr()?;
                self.close(Kind::RightParen, span)?;
                Ok(inner)
            }
            Kind::LeftBracket => {
                self.bump();
                let address = self.expr()?;
                let close = self.close(Kind::RightBracket, span)?;
                Ok(Expr::Memory(Box::new(address), span.to(close)))
            }
            _ => Err(self.no_expression()),
        }
    }

    fn no_expression(&mut self) -> Reported {
        let text = self.text();
        if lex::KEYWORDS.contains(&text) {
            let problem = Problem::error(format!("expected an expression, found the reserved word `{text}`"))
                .at(self.span());
            return self.problems.report(problem);
        }
        self.unexpected("an expression")
    }

    fn number(&mut self) -> Parsed<Expr<'s>> {
        let (text, span) = (self.text(), self.span());
        let wrong = match lex::number(text) {
            Ok(value) => {
                self.bump();
                return Ok(Expr::Number(value, span));
            }
            Err(BadNumber::NotDigits) => {
                let problem = Problem::error(format!("`{}` is not a number", shorten(text))).at(span);
                problem.help("numbers are decimal, `0x…` or `0b…`; names do not start with a digit")
            }
            Err(BadNumber::TooLarge | BadNumber::OnlyNegative) => {
                Problem::error(format!("`{}` does not fit 64 bits", shorten(text)))
                    .at(span)
                    .help("values go from -9223372036854775808 to 9223372036854775807")
            }
        };
        Err(self.problems.report(wrong))
    }

    /// A name alone, or the thread of `t@label`, `t.r`, `p[2]@label` and `p[2].r`.
    fn after_name(&mut self, name: Name<'s>) -> Parsed<Expr<'s>> {
        let index = match self.eat(Kind::LeftBracket) {
            Some(open) => {
                let index = Box::new(self.expr()?);
                Some((index, self.close(Kind::RightBracket, open)?))
            }
            None => None,
        };
        if self.eat(Kind::At).is_some() {
            let label = self.name("a label of the thread")?;
            return Ok(Expr::At(ThreadRef { name, index: index.map(|(i, _)| i) }, label));
        }
        if self.eat(Kind::Dot).is_some() {
            let register = self.name("a register of the thread")?;
            return Ok(Expr::Register(ThreadRef { name, index: index.map(|(i, _)| i) }, register));
        }
        Ok(match index {
            Some((index, close)) => Expr::Index(name, index, name.span.to(close)),
            None => Expr::Name(name),
        })
    }

    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == MAX_NESTING {
            let problem = Problem::error("this expression is nested too deeply").at(self.span());
            return Err(self.problems.report(problem));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }
}

fn binary_operator(kind: Kind) -> Option<BinOp> {
    Some(match kind {
        Kind::OrOr => BinOp::Or,
        Kind::AndAnd => BinOp::And,
        Kind::Bar => BinOp::BitOr,
        Kind::Caret => BinOp::BitXor,
        Kind::Ampersand => BinOp::BitAnd,
        Kind::EqualsEquals => BinOp::Eq,
        Kind::NotEquals => BinOp::Ne,
        Kind::Less => BinOp::Lt,
        Kind::LessEquals => BinOp::Le,
        Kind::Greater => BinOp::Gt,
        Kind::GreaterEquals => BinOp::Ge,
        Kind::ShiftLeft => BinOp::Shl,
        Kind::ShiftRight => BinOp::Shr,
        Kind::Plus => BinOp::Add,
        Kind::Minus => BinOp::Sub,
        Kind::Star => BinOp::Mul,
        Kind::Slash => BinOp::Div,
        Kind::Percent => BinOp::Rem,
        _ => return None,
    })
}

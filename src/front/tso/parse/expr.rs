//! How does an expression group? By C's precedence, climbed with one loop.
//!
//! Nesting is bounded, because reading an expression, walking it and dropping it all recurse. Long chains of
//! operators are no nesting: they become lists.

use super::TsoParser;
use crate::front::diagnostics::{Parsed, Problem, Reported, Span, shorten};
use crate::front::tso::ast::{Expr, LabelRef, Name, ThreadRef};
use crate::front::tso::lex::{self, BadNumber, TsoKind};
use crate::model::{BinOp, UnOp, Value};

/// A level of an expression needs at most two of these, so the printed form of every tree the model takes
/// fits.
const MAX_NESTING: usize = 600;

impl<'s> TsoParser<'s, '_> {
    pub(super) fn expr(&mut self) -> Parsed<Expr<'s>> {
        self.climb(0)
    }

    /// An expression whose operators all bind at least as tightly as `lowest`.
    pub(super) fn climb(&mut self, lowest: u8) -> Parsed<Expr<'s>> {
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
            TsoKind::Minus => UnOp::Neg,
            TsoKind::Bang => UnOp::Not,
            TsoKind::Tilde => UnOp::BitNot,
            _ => return self.primary(),
        };
        let sign = self.span();
        self.bump();
        if op == UnOp::Neg
            && self.kind() == TsoKind::Number
            && lex::number(self.text()) == Err(BadNumber::OnlyNegative)
        {
            let span = sign.to(self.span());
            self.bump();
            return Ok(Expr::Number(Value::MIN, span));
        }
        let operand = self.deeper(Self::unary)?;
        Ok(Expr::Unary(op, sign, Box::new(operand)))
    }

    pub(super) fn primary(&mut self) -> Parsed<Expr<'s>> {
        let span = self.span();
        match self.kind() {
            TsoKind::Number => self.number(),
            TsoKind::Name => {
                let name = Name { text: self.text(), span };
                self.bump();
                self.after_name(name)
            }
            TsoKind::LeftParen => {
                self.bump();
                let inner = self.expr()?;
                self.close(TsoKind::RightParen, span)?;
                Ok(inner)
            }
            TsoKind::LeftBracket => {
                self.bump();
                let address = self.expr()?;
                let close = self.close(TsoKind::RightBracket, span)?;
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

    /// A name alone, `n.field`, or the thread of `t@label`, `t.r`, `p[2]@label` and `p[2].r`.
    fn after_name(&mut self, name: Name<'s>) -> Parsed<Expr<'s>> {
        let index = match self.eat(TsoKind::LeftBracket) {
            Some(open) => {
                let index = Box::new(self.expr()?);
                Some((index, self.close(TsoKind::RightBracket, open)?))
            }
            None => None,
        };
        if self.eat(TsoKind::At).is_some() {
            let label = self.label_ref()?;
            return Ok(Expr::At(ThreadRef { name, index: index.map(|(i, _)| i) }, label));
        }
        if self.eat(TsoKind::Dot).is_some() {
            let part = self.name("a register of the thread, or a field")?;
            return Ok(Expr::Dot(ThreadRef { name, index: index.map(|(i, _)| i) }, part));
        }
        Ok(match index {
            Some((index, close)) => Expr::Index(name, index, name.span.to(close)),
            None => Expr::Name(name),
        })
    }

    fn label_ref(&mut self) -> Parsed<LabelRef<'s>> {
        let first = self.name("a label of the thread")?;
        Ok(match self.eat(TsoKind::Dot) {
            Some(_) => LabelRef { inline: Some(first), name: self.name("a label of the `inline`")? },
            None => LabelRef { inline: None, name: first },
        })
    }

    /// An expression that is asked whether it holds.
    pub(super) fn condition(&mut self) -> Parsed<Expr<'s>> {
        let condition = self.expr()?;
        self.no_assignment().map(|()| condition)
    }

    pub(super) fn no_assignment(&mut self) -> Parsed<()> {
        if self.kind() != TsoKind::Equals {
            return Ok(());
        }
        let problem = Problem::error("`=` does not compare").at(self.span()).help("write `==`");
        Err(self.problems.report(problem))
    }

    pub(super) fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
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

pub(super) fn binary_operator(kind: TsoKind) -> Option<BinOp> {
    Some(match kind {
        TsoKind::OrOr => BinOp::Or,
        TsoKind::AndAnd => BinOp::And,
        TsoKind::Bar => BinOp::BitOr,
        TsoKind::Caret => BinOp::BitXor,
        TsoKind::Ampersand => BinOp::BitAnd,
        TsoKind::EqualsEquals => BinOp::Eq,
        TsoKind::NotEquals => BinOp::Ne,
        TsoKind::Less => BinOp::Lt,
        TsoKind::LessEquals => BinOp::Le,
        TsoKind::Greater => BinOp::Gt,
        TsoKind::GreaterEquals => BinOp::Ge,
        TsoKind::ShiftLeft => BinOp::Shl,
        TsoKind::ShiftRight => BinOp::Shr,
        TsoKind::Plus => BinOp::Add,
        TsoKind::Minus => BinOp::Sub,
        TsoKind::Star => BinOp::Mul,
        TsoKind::Slash => BinOp::Div,
        TsoKind::Percent => BinOp::Rem,
        _ => return None,
    })
}

//! How does an expression group? Sums of signed units; comparisons joined by `not`, `&&` and `||`, in this
//! order.
//!
//! Round brackets group sums, square brackets group conditions. Chains of `&&` and `||` may be of any length.
//! Sums have a limit, brackets and all, since a sum is as deep as it is long.

use super::RmmParser;
use crate::front::const_fold;
use crate::front::diagnostics::{Parsed, Problem};
use crate::front::rmm::ast::{Name, Term};
use crate::front::rmm::lex::RmmKind;
use crate::model::{BinOp, Expr, UnOp};

const COMPARISONS: [(&str, BinOp); 6] = [
    ("=", BinOp::Eq),
    ("!=", BinOp::Ne),
    ("<", BinOp::Lt),
    (">", BinOp::Gt),
    ("<=", BinOp::Le),
    (">=", BinOp::Ge),
];
/// Operators and brackets of one sum.
const MAX_SUM: usize = 100;
/// A condition becomes one level deeper when it is negated, and the model has its own limit.
const MAX_CONDITION: usize = 200;

type Tree<'s> = Expr<Name<'s>>;

impl<'s> RmmParser<'s, '_> {
    pub(super) fn sum(&mut self) -> Parsed<Term<'s>> {
        let first = self.next;
        let expr = self.whole_sum()?;
        Ok(Term { expr, span: self.since(first) })
    }

    fn whole_sum(&mut self) -> Parsed<Tree<'s>> {
        self.operators = 0;
        self.sum_tree()
    }

    fn one_more_operator(&mut self) -> Parsed<()> {
        self.operators += 1;
        if self.operators <= MAX_SUM {
            return Ok(());
        }
        let problem = Problem::error(format!("a sum has at most {MAX_SUM} operators and brackets"));
        Err(self.complain(problem.at(self.token().span)))
    }

    pub(super) fn condition(&mut self) -> Parsed<Term<'s>> {
        let first = self.next;
        let expr =
            self.deeper(|p| p.chain("||", BinOp::Or, |p| p.chain("&&", BinOp::And, Self::negation)))?;
        let span = self.since(first);
        if expr.depth() > MAX_CONDITION {
            let problem = Problem::error("this condition is nested too deeply").at(span);
            return Err(self.complain(problem));
        }
        Ok(Term { expr, span })
    }

    fn chain(
        &mut self,
        symbol: &str,
        op: BinOp,
        mut operand: impl FnMut(&mut Self) -> Parsed<Tree<'s>>,
    ) -> Parsed<Tree<'s>> {
        let mut operands = vec![operand(self)?];
        while self.eat(symbol).is_some() {
            operands.push(operand(self)?);
        }
        let joined = const_fold::join(operands, &mut |a, b| Expr::binary(op, a, b));
        Ok(joined.expect("a chain has at least one operand"))
    }

    fn negation(&mut self) -> Parsed<Tree<'s>> {
        match self.eat("not") {
            Some(_) => Ok(Expr::unary(UnOp::Not, self.comparison()?)),
            None => self.comparison(),
        }
    }

    fn comparison(&mut self) -> Parsed<Tree<'s>> {
        if self.eat("true").is_some() {
            return Ok(Expr::Const(1));
        }
        if self.eat("false").is_some() {
            return Ok(Expr::Const(0));
        }
        if self.eat("[").is_some() {
            let inner = self.condition()?;
            self.expect("]", "`]`, which closes the condition")?;
            return Ok(inner.expr);
        }
        let left = self.whole_sum()?;
        let Some((_, op)) = COMPARISONS.iter().find(|(symbol, _)| self.at(symbol)) else {
            return Err(self.unexpected("a comparison: `=`, `!=`, `<`, `>`, `<=` or `>=`"));
        };
        let symbol = self.bump();
        if symbol.is("=") && self.at("=") {
            let problem = Problem::error("equality is a single `=`").at(self.token().span);
            return Err(self.complain(problem));
        }
        let right = self.whole_sum()?;
        Ok(Expr::binary(*op, left, right))
    }

    fn sum_tree(&mut self) -> Parsed<Tree<'s>> {
        let mut sum = self.unit()?;
        loop {
            let op = match self.token().text {
                "+" => BinOp::Add,
                "-" => BinOp::Sub,
                "*" => {
                    let problem = Problem::error("there is no multiplication").at(self.token().span);
                    return Err(self.complain(problem));
                }
                _ => return Ok(sum),
            };
            self.one_more_operator()?;
            self.bump();
            sum = folded(op, sum, self.unit()?);
        }
    }

    fn unit(&mut self) -> Parsed<Tree<'s>> {
        let token = self.token();
        match (token.kind, token.text) {
            (RmmKind::Register, text) => {
                self.bump();
                Ok(Expr::Atom(Name { text, span: token.span }))
            }
            (RmmKind::Number, _) => Ok(Expr::Const(self.natural("a number")?)),
            (RmmKind::Symbol, "-") => {
                self.one_more_operator()?;
                self.bump();
                Ok(const_fold::unary(UnOp::Neg, self.unit()?))
            }
            (RmmKind::Symbol, "(") => {
                self.one_more_operator()?;
                self.bump();
                let inner = self.sum_tree()?;
                if COMPARISONS.iter().any(|(symbol, _)| self.at(symbol)) {
                    let problem = Problem::error("a condition in round brackets").at(self.token().span);
                    return Err(self.complain(problem.help("conditions are grouped by `[` and `]`")));
                }
                self.expect(")", "`)`")?;
                Ok(inner)
            }
            (RmmKind::Word, text) if token.is_name() => {
                let problem =
                    Problem::error(format!("`{}` in an expression", super::shorten(text))).at(token.span);
                let help = format!(
                    "expressions have registers and numbers: `read: $r := {}` first",
                    super::shorten(text)
                );
                Err(self.complain(problem.label("memory is read into a register first").help(help)))
            }
            _ => Err(self.unexpected("a register or a number")),
        }
    }
}

fn folded<'s>(op: BinOp, a: Tree<'s>, b: Tree<'s>) -> Tree<'s> {
    match (&a, &b) {
        (Expr::Const(x), Expr::Const(y)) => {
            op.apply(*x, *y).map_or_else(|_| Expr::binary(op, a, b), Expr::Const)
        }
        _ => Expr::binary(op, a, b),
    }
}

//! `ltl F` and `terminates`: formulas of temporal logic whose propositions are conditions, as in `forbid`.
//!
//! Unary operators and comparisons bind tightest, so that `F [x] == 1` is about `[x] == 1`; then U, W and R, then
//! `&&`, `^`, `||`, `->`, `<->`. Operators on the same level group to the right. The letters are operators where
//! an operator can stand, and names before `@` and `.`, and inside conditions.

use super::TsoParser;
use super::expr::binary_operator;
use crate::front::diagnostics::{Parsed, Problem, shorten};
use crate::front::tso::ast::{File, FormulaDecl, Temporal};
use crate::front::tso::lex::TsoKind;
use crate::model::BinOp;
use crate::model::formula::Connective;

/// The proposition that all threads have ended.
const TERMINATED: &str = "terminated";

impl<'s> TsoParser<'s, '_> {
    pub(super) fn formula_declaration(&mut self, file: &mut File<'s>) -> Parsed<()> {
        let start = self.span();
        self.bump();
        let (name, quantifiers) = self.property_head()?;
        let body = self.formula(0)?;
        let span = start.to(self.last_span());
        file.formulas.push(FormulaDecl { name, quantifiers, body, span });
        self.end_of_statement()
    }

    pub(super) fn terminates(&mut self, file: &mut File<'s>) -> Parsed<()> {
        let span = self.span();
        self.bump();
        let body = Temporal::Finally(Box::new(Temporal::Terminated));
        file.formulas.push(FormulaDecl { name: None, quantifiers: vec![], body, span });
        self.end_of_statement()
    }

    /// A formula whose connectives all bind at least as tightly as `lowest`.
    fn formula(&mut self, lowest: u8) -> Parsed<Temporal<'s>> {
        self.deeper(|parser| {
            let left = parser.temporal_operand()?;
            parser.formula_after(left, lowest)
        })
    }

    fn formula_after(&mut self, mut left: Temporal<'s>, lowest: u8) -> Parsed<Temporal<'s>> {
        while let Some(connective) = self.connective().filter(|c| c.precedence() >= lowest) {
            self.bump();
            // Equals group to the right.
            let right = self.formula(connective.precedence())?;
            left = Temporal::Binary(connective, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn connective(&self) -> Option<Connective> {
        Some(match self.kind() {
            TsoKind::DoubleArrow => Connective::Iff,
            TsoKind::Arrow => Connective::Implies,
            TsoKind::OrOr => Connective::Or,
            TsoKind::Caret => Connective::Xor,
            TsoKind::AndAnd => Connective::And,
            TsoKind::Name => match self.text() {
                "U" => Connective::Until,
                "W" => Connective::WeakUntil,
                "R" | "V" => Connective::Release,
                _ => return None,
            },
            _ => return None,
        })
    }

    fn temporal_operand(&mut self) -> Parsed<Temporal<'s>> {
        if let Some(words) = self.temporal_words() {
            self.bump();
            let operand = self.deeper(Self::temporal_operand)?;
            return Ok(words.bytes().rev().fold(operand, |a, op| prefixed(op, a)));
        }
        match (self.kind(), self.kind_after(1)) {
            (TsoKind::Diamond, _) => {
                self.bump();
                Ok(prefixed(b'F', self.deeper(Self::temporal_operand)?))
            }
            (TsoKind::LeftBracket, TsoKind::RightBracket) => {
                self.bump();
                self.bump();
                Ok(prefixed(b'G', self.deeper(Self::temporal_operand)?))
            }
            (TsoKind::Bang, _) if self.negates_a_formula() => {
                self.bump();
                Ok(Temporal::Not(Box::new(self.deeper(Self::temporal_operand)?)))
            }
            (TsoKind::LeftParen, _) if self.is_group(self.next) => {
                let open = self.span();
                self.bump();
                let inner = self.formula(0)?;
                self.close(TsoKind::RightParen, open)?;
                Ok(inner)
            }
            (TsoKind::Name, next) if self.text() == TERMINATED && !begins_a_path(next) => {
                self.bump();
                Ok(Temporal::Terminated)
            }
            _ => {
                let condition = self.climb(BinOp::BitOr.precedence())?;
                self.no_assignment()?;
                self.no_word_that_follows()?;
                Ok(Temporal::State(condition))
            }
        }
    }

    /// `G`, `GF` and the like, where they are operators.
    fn temporal_words(&self) -> Option<&'s str> {
        let text = self.text();
        let letters = self.kind() == TsoKind::Name && text.bytes().all(|b| b"GFX".contains(&b));
        (letters && !self.is_thread_at(self.next)).then_some(text)
    }

    /// Does a formula begin here that has an operator right away?
    pub(super) fn is_temporal(&self) -> bool {
        let next = self.text_at(self.next + 1);
        self.temporal_words().is_some() || ["U", "W", "R", "V"].contains(&next)
    }

    /// `X@label`, `X.r` or `X[1]@label`: a thread that is called like an operator.
    fn is_thread_at(&self, at: usize) -> bool {
        let kind = |i: usize| self.tokens.get(i).map_or(TsoKind::EndOfFile, |t| t.kind);
        match kind(at + 1) {
            TsoKind::LeftBracket => self.partner(at + 1).is_some_and(|close| begins_a_path(kind(close + 1))),
            next => begins_a_path(next),
        }
    }

    /// Does `!` stand before something that is no condition?
    fn negates_a_formula(&self) -> bool {
        let kind = |i: usize| self.tokens.get(i).map_or(TsoKind::EndOfFile, |t| t.kind);
        let mut at = self.next + 1;
        while kind(at) == TsoKind::Bang {
            at += 1;
        }
        let word = self.text_at(at);
        match kind(at) {
            TsoKind::Diamond => true,
            TsoKind::LeftBracket => kind(at + 1) == TsoKind::RightBracket,
            TsoKind::LeftParen => self.is_group(at),
            TsoKind::Name if word == TERMINATED => !begins_a_path(kind(at + 1)),
            TsoKind::Name => word.bytes().all(|b| b"GFX".contains(&b)) && !self.is_thread_at(at),
            _ => false,
        }
    }

    /// Do the parentheses hold a formula, and not the first part of a comparison or a sum?
    fn is_group(&self, open: usize) -> bool {
        let Some(close) = self.partner(open) else { return true };
        let after = self.tokens.get(close + 1).map_or(TsoKind::EndOfFile, |t| t.kind);
        match binary_operator(after) {
            Some(op) => matches!(op, BinOp::And | BinOp::Or | BinOp::BitXor),
            None => true,
        }
    }

    /// The bracket that closes this one, on the same line.
    fn partner(&self, open: usize) -> Option<usize> {
        let mut depth = 0usize;
        for (i, token) in self.tokens.iter().enumerate().skip(open) {
            match token.kind {
                TsoKind::LeftParen | TsoKind::LeftBracket => depth += 1,
                TsoKind::RightParen | TsoKind::RightBracket => {
                    depth = depth.checked_sub(1)?;
                    if depth == 0 {
                        return Some(i);
                    }
                }
                TsoKind::Newline | TsoKind::EndOfFile => return None,
                _ => {}
            }
        }
        None
    }

    /// A word behind a condition can only be an operator.
    fn no_word_that_follows(&mut self) -> Parsed<()> {
        if self.kind() != TsoKind::Name || self.connective().is_some() {
            return Ok(());
        }
        let word = shorten(self.text());
        let problem = Problem::error(format!("`{word}` is no operator between formulas")).at(self.span());
        Err(self.problems.report(problem.help("operators are U W R && ^ || -> <->")))
    }
}

fn begins_a_path(kind: TsoKind) -> bool {
    matches!(kind, TsoKind::At | TsoKind::Dot)
}

fn prefixed(op: u8, a: Temporal) -> Temporal {
    let a = Box::new(a);
    match op {
        b'G' => Temporal::Globally(a),
        b'F' => Temporal::Finally(a),
        _ => Temporal::Next(a),
    }
}

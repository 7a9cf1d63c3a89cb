//! What does an `ltl` property say? Its formula over numbered propositions, with quantifiers unfolded: each
//! condition becomes a predicate, and the same predicate is the same proposition.

use super::lower::lower;
use super::names::Local;
use super::query::Query;
use crate::front::const_fold;
use crate::front::diagnostics::{INSTRUCTION, Problem, Reported, Span};
use crate::front::tso::ast::{Expr, FormulaDecl, HowMany, Quantifier, Temporal};
use crate::model::expr::MAX_DEPTH;
use crate::model::formula::{Connective, Formula, MOST_PROPOSITIONS, StatedFormula};
use crate::model::{Atom, BinOp, Loc, Pred, ThreadId};

/// Formulas are as large as this at most.
const MOST_OPERATORS: usize = 2_000;

/// A formula that is being made.
struct FormulaMaking {
    span: Span,
    /// Where each thread ends.
    ends: Vec<Loc>,
    propositions: Vec<Pred>,
    operators: usize,
}

impl<'s> Query<'_, 's, '_> {
    pub(crate) fn formula(&mut self, stated: &FormulaDecl<'s>) -> Result<StatedFormula, Reported> {
        self.atoms = 0;
        let ends = self.cast.threads.iter().map(|t| t.parts.end).collect();
        let mut making = FormulaMaking { span: stated.span, ends, propositions: vec![], operators: 0 };
        let mut conditions = Vec::new();
        conditions_of(&stated.body, &mut conditions);
        let formula = self.unfolded(&stated.quantifiers, stated, &conditions, &mut making)?;
        let name = stated.name.map(|name| name.text.to_string());
        let (line, text) = (self.problems.line(stated.span), self.text_of(stated.span));
        Ok(StatedFormula { name, formula, propositions: making.propositions, line, text })
    }

    fn unfolded(
        &mut self,
        left: &[Quantifier<'s>],
        stated: &FormulaDecl<'s>,
        conditions: &[&Expr<'s>],
        making: &mut FormulaMaking,
    ) -> Result<Formula, Reported> {
        let Some((quantifier, inner)) = left.split_first() else {
            return self.temporal(&stated.body, making);
        };
        let mut cases = Vec::new();
        for value in self.values(quantifier, conditions)? {
            self.spend(1, making.span)?;
            self.locals.push((quantifier.var.text, Local::Constant(value)));
            let case = self.unfolded(inner, stated, conditions, making);
            self.locals.pop();
            cases.push(case?);
        }
        let (connective, cases) = match quantifier.how_many {
            HowMany::All => (Connective::And, cases),
            HowMany::Some => (Connective::Or, cases),
            HowMany::Two => (Connective::Or, self.formula_pairs(cases, making)?),
        };
        let empty = if connective == Connective::And { Formula::True } else { Formula::False };
        let mut join = |a, b| Formula::binary(connective, a, b);
        Ok(const_fold::join(cases, &mut join).unwrap_or(empty))
    }

    fn formula_pairs(
        &mut self,
        cases: Vec<Formula>,
        making: &mut FormulaMaking,
    ) -> Result<Vec<Formula>, Reported> {
        let mut pairs = Vec::new();
        for (k, first) in cases.iter().enumerate() {
            for second in &cases[k + 1..] {
                self.operator(making)?;
                pairs.push(Formula::binary(Connective::And, first.clone(), second.clone()));
            }
        }
        Ok(pairs)
    }

    fn temporal(&mut self, body: &Temporal<'s>, making: &mut FormulaMaking) -> Result<Formula, Reported> {
        self.operator(making)?;
        Ok(match body {
            Temporal::State(condition) => {
                let pred = self.condition(condition)?;
                self.proposition(pred, making)?
            }
            Temporal::Terminated => {
                let ended = |(t, end): (usize, &Loc)| Pred::Atom(Atom::At(ThreadId(t as u16), vec![*end]));
                let all = making.ends.iter().enumerate().map(ended).collect();
                let mut join = |a, b| Pred::binary(BinOp::And, a, b);
                let pred = const_fold::join(all, &mut join).unwrap_or(Pred::Const(1));
                self.proposition(pred, making)?
            }
            Temporal::Not(a) => self.temporal(a, making)?.negated(),
            Temporal::Next(a) => Formula::Next(Box::new(self.temporal(a, making)?)),
            Temporal::Finally(a) => Formula::Finally(Box::new(self.temporal(a, making)?)),
            Temporal::Globally(a) => Formula::Globally(Box::new(self.temporal(a, making)?)),
            Temporal::Binary(connective, a, b) => {
                Formula::binary(*connective, self.temporal(a, making)?, self.temporal(b, making)?)
            }
        })
    }

    /// What a condition says of a state.
    fn condition(&mut self, condition: &Expr<'s>) -> Result<Pred, Reported> {
        let pred = lower(self, condition)?;
        if pred.depth() <= MAX_DEPTH && !pred.may_divide_by_zero() {
            return Ok(pred);
        }
        let problem = match pred.depth() > MAX_DEPTH {
            true => Problem::error(format!("this condition is nested more than {MAX_DEPTH} levels deep")),
            false => Problem::error("this condition divides by something that may be zero"),
        };
        Err(self.problems.report(problem.at(condition.span())))
    }

    fn proposition(&mut self, pred: Pred, making: &mut FormulaMaking) -> Result<Formula, Reported> {
        if let Pred::Const(value) = pred {
            return Ok(if value == 0 { Formula::False } else { Formula::True });
        }
        let known = making.propositions.iter().position(|known| *known == pred);
        if let Some(number) = known {
            return Ok(Formula::Proposition(number));
        }
        if making.propositions.len() == MOST_PROPOSITIONS {
            let why = format!("this formula has more than {MOST_PROPOSITIONS} different conditions");
            return Err(self.problems.report(Problem::error(why).at(making.span)));
        }
        making.propositions.push(pred);
        Ok(Formula::Proposition(making.propositions.len() - 1))
    }

    fn operator(&mut self, making: &mut FormulaMaking) -> Result<(), Reported> {
        making.operators += 1;
        if making.operators <= MOST_OPERATORS {
            return self.problems.spend(INSTRUCTION);
        }
        let problem = Problem::error("this formula unfolds to too much").at(making.span);
        Err(self.problems.report(problem.help("quantify over smaller ranges")))
    }
}

fn conditions_of<'e, 's>(body: &'e Temporal<'s>, found: &mut Vec<&'e Expr<'s>>) {
    match body {
        Temporal::State(condition) => found.push(condition),
        Temporal::Terminated => {}
        Temporal::Not(a) | Temporal::Next(a) | Temporal::Finally(a) | Temporal::Globally(a) => {
            conditions_of(a, found);
        }
        Temporal::Binary(_, a, b) => {
            conditions_of(a, found);
            conditions_of(b, found);
        }
    }
}

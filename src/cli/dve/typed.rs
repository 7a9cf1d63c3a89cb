//! Expressions and formulas that the user typed, or that stand in a file of properties.

use super::super::{Exit, InputArgs, diagnose};
use super::{DveSource, Terminal};
use crate::dve::{DveExpr, System};
use crate::front::ltl::{self, Grouping, NamedFormula};
use crate::front::{Unread, dve};
use crate::model::formula::MOST_PROPOSITIONS;
use crate::query::Limits;
use crate::temporal::ltl::TemporalFormula;
use std::path::{Path, PathBuf};

/// Reads over one model. Whatever is wrong is shown, and only the exit comes back.
pub(crate) struct Typed<'a> {
    pub system: &'a System,
    definitions: Vec<(String, DveExpr)>,
    limits: &'a Limits,
    terminal: &'a Terminal,
}

/// A formula, and its text as it was understood.
pub(crate) struct TypedFormula {
    pub formula: TemporalFormula,
    pub text: String,
}

impl<'a> Typed<'a> {
    pub(crate) fn new(
        model: &'a DveSource,
        input: &InputArgs,
        limits: &'a Limits,
        terminal: &'a Terminal,
    ) -> Result<Typed<'a>, Exit> {
        let mut typed = Typed { system: &model.system, definitions: vec![], limits, terminal };
        for (name, text) in &input.define {
            typed.define("--define", name, text)?;
        }
        Ok(typed)
    }

    /// Definitions may use those before them.
    fn define(&mut self, place: &str, name: &str, text: &str) -> Result<(), Exit> {
        let expr = self.expression(place, text)?;
        self.definitions.push((name.to_string(), expr));
        Ok(())
    }

    pub(crate) fn expression(&self, place: &str, text: &str) -> Result<DveExpr, Exit> {
        dve::expression(text, self.system, &self.definitions, self.limits)
            .map_err(|unread| self.complain(place, text, &unread))
    }

    /// One formula, or all of a file whose name ends in `.ltl`.
    pub(crate) fn formulas(&mut self, text: &str) -> Result<Vec<TypedFormula>, Exit> {
        if !text.ends_with(".ltl") {
            let named = ltl::formula(text, Grouping::Explicit, self.limits)
                .map_err(|unread| self.complain("--ltl", text, &unread))?;
            return Ok(vec![self.resolved(named)?]);
        }
        let source = std::fs::read_to_string(Path::new(text)).map_err(|e| {
            self.terminal.error(&format!("{text}: {e}"));
            Exit::BadInput
        })?;
        let file = ltl::properties(&source, Grouping::Explicit, self.limits)
            .map_err(|unread| self.complain(text, &source, &unread))?;
        for (name, body) in &file.definitions {
            self.define(text, name, body)?;
        }
        if file.properties.is_empty() {
            self.terminal.error(&format!("{text}: there is no line that begins with #property"));
            return Err(Exit::BadInput);
        }
        file.properties.into_iter().map(|named| self.resolved(named)).collect()
    }

    fn resolved(&self, named: NamedFormula) -> Result<TypedFormula, Exit> {
        let text = named.show();
        let NamedFormula { formula, names } = named;
        if names.len() > MOST_PROPOSITIONS {
            self.terminal.error(&format!("a formula has at most {MOST_PROPOSITIONS} propositions"));
            return Err(Exit::BadInput);
        }
        let mut propositions = Vec::new();
        for name in &names {
            let known = self.definitions.iter().rev().find(|(known, _)| known == name);
            propositions.push(match known {
                Some((_, expr)) => expr.clone(),
                // What stood in braces.
                None => self.expression("--ltl", name)?,
            });
        }
        Ok(TypedFormula { formula: TemporalFormula { formula, propositions }, text })
    }

    fn complain(&self, name: &str, text: &str, unread: &Unread) -> Exit {
        match unread {
            Unread::Wrong(wrong) => {
                self.terminal.complain(&diagnose::render(name, text, wrong, self.terminal.color_errors));
                Exit::BadInput
            }
            Unread::Limit(limit) => self.terminal.limit_reached(&PathBuf::from(name), limit),
        }
    }
}

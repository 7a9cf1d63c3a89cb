//! DVE, the modelling language of DiVinE: `.dve` files, and expressions over a model that is known.
//!
//! Templates (`.mdve`) are for m4 to expand. Synchronous systems, probabilistic transitions and acceptance
//! other than Büchi's are refused with their place.

mod ast;
mod lex;
mod names;
mod parse;
pub mod program;
pub mod promela;
mod resolve;
#[cfg(test)]
mod tests;

use super::Unread;
use super::diagnostics::Problems;
use crate::dve::{DveExpr, System};
use crate::front::Diagnostic;
use crate::limits::Limits;
use names::Names;
use parse::DveParser;
use resolve::Scope;

/// A model, and what is doubtful about it.
pub fn read(source: &str, limits: &Limits) -> Result<(System, Vec<Diagnostic>), Unread> {
    let mut problems = Problems::new(source, limits);
    let system = DveParser::new(source, &mut problems).system();
    let system = system.and_then(|text| resolve::system(text, &mut problems));
    problems.finish(system)
}

/// An expression over the states of a model. Names that are defined stand for whole expressions; variables
/// of a process are written `P->x`.
pub fn expression(
    source: &str,
    system: &System,
    definitions: &[(String, DveExpr)],
    limits: &Limits,
) -> Result<DveExpr, Unread> {
    let mut problems = Problems::new(source, limits);
    let expr = DveParser::new(source, &mut problems).whole_expression();
    let scope = Scope { system, names: &Names::of(system), process: None, definitions };
    let expr = expr.and_then(|text| scope.expression(&text, &mut problems));
    problems.finish(expr).map(|(expr, _)| expr)
}

//! What does an expression mean? From names to the model's leaves, with constants folded on the way.
//!
//! The caller knows the leaves: registers in a thread, atoms in a property, none in a constant. A constant
//! division by zero is an error at its place, unless `&&` or `||` shields it: with `N = 0`,
//! `N != 0 && 8 / N == r` is just 0.

use crate::front::const_fold::{self, Leaf};
use crate::front::diagnostics::{Problem, Problems, Reported, Span};
use crate::front::tso::ast;
use crate::model::expr::MAX_DEPTH;
use crate::model::{BinOp, Expr, Value};

/// The grammar's trees are higher than the model's, by parentheses; not by more than this.
const MAX_LEVEL: usize = 2 * MAX_DEPTH;

/// Can an operand decide anything, or has what stands before it already?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Live,
    /// Looked at for its names alone.
    Dead,
}

/// Knows what the leaves of an expression mean, and reports those that mean nothing.
pub(crate) trait Leaves<'s> {
    type Leaf: Leaf;

    fn leaf(&mut self, e: &ast::Expr<'s>, role: Role) -> Result<Expr<Self::Leaf>, Reported>;

    /// Does the name stand for where a shared variable is?
    fn is_address(&self, _: &ast::Name<'s>) -> bool {
        false
    }

    fn problems(&mut self) -> &mut Problems<'s>;
}

pub(crate) fn lower<'s, L: Leaves<'s>>(leaves: &mut L, e: &ast::Expr<'s>) -> Result<Expr<L::Leaf>, Reported> {
    Lowering { leaves, level: 0 }.expr(e, Role::Live).map(|tree| tree.expr)
}

/// An expression and its height, which is watched while it grows.
struct Tree<A> {
    expr: Expr<A>,
    depth: usize,
}

struct Lowering<'a, L> {
    leaves: &'a mut L,
    level: usize,
}

impl<'s, L: Leaves<'s>> Lowering<'_, L> {
    fn expr(&mut self, e: &ast::Expr<'s>, role: Role) -> Result<Tree<L::Leaf>, Reported> {
        if self.level == MAX_LEVEL {
            return Err(self.too_deep(e.span()));
        }
        self.leaves.problems().spend(1)?;
        self.level += 1;
        let tree = match e {
            ast::Expr::Number(value, _) => Ok(Tree { expr: Expr::Const(*value), depth: 1 }),
            ast::Expr::Unary(op, span, a) => self.expr(a, role).and_then(|a| {
                let tree = grown(const_fold::unary(*op, a.expr), a.depth);
                self.within_bounds(tree, *span)
            }),
            ast::Expr::Chain(first, rest) => match rest.first() {
                Some((op @ (BinOp::And | BinOp::Or), span, _)) => {
                    self.connective(*op, *span, first, rest.iter().map(|(_, _, e)| e), role)
                }
                _ => self.arithmetic(first, rest, role),
            },
            _ => self.leaves.leaf(e, role).and_then(|expr| {
                let depth = expr.depth();
                self.within_bounds(Tree { expr, depth }, e.span())
            }),
        };
        self.level -= 1;
        tree
    }

    fn arithmetic(
        &mut self,
        first: &ast::Expr<'s>,
        rest: &[(BinOp, Span, ast::Expr<'s>)],
        role: Role,
    ) -> Result<Tree<L::Leaf>, Reported> {
        if let [(op, _, right)] = rest {
            self.warn_of_compared_address(*op, first, right);
        }
        // All operands are looked at, so that all that is wrong with them is found.
        let first = self.expr(first, role);
        let others: Vec<_> = rest.iter().map(|(_, _, e)| self.expr(e, role)).collect();
        let mut left = first?;
        for ((op, span, _), right) in rest.iter().zip(others) {
            let right = right?;
            let depth = left.depth.max(right.depth);
            let expr = match const_fold::binary(*op, left.expr, right.expr) {
                Ok(expr) => expr,
                Err(_) if role == Role::Dead => Expr::Const(0),
                Err(_) => {
                    let problem = Problem::error("division by zero").at(*span).label("the right side is 0");
                    return Err(self.leaves.problems().report(problem));
                }
            };
            left = self.within_bounds(grown(expr, depth), *span)?;
        }
        Ok(left)
    }

    /// `x == 1` compares the address of x, which is hardly ever meant.
    fn warn_of_compared_address(&mut self, op: BinOp, a: &ast::Expr<'s>, b: &ast::Expr<'s>) {
        let (ast::Expr::Name(name), ast::Expr::Number(..)) = (a, b) else { return };
        let compares = matches!(op, BinOp::Eq | BinOp::Ne | BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge);
        if compares && self.leaves.is_address(name) {
            let problem = Problem::warning(format!("this compares the address of `{}`", name.text))
                .at(name.span)
                .label("not its value")
                .help(format!(
                    "a property asks for the value with `[{0}]`; a thread loads it first",
                    name.text
                ));
            self.leaves.problems().report(problem);
        }
    }

    /// `&&` and `||`: operands behind a constant that decides are dead.
    fn connective<'e>(
        &mut self,
        op: BinOp,
        span: Span,
        first: &'e ast::Expr<'s>,
        rest: impl Iterator<Item = &'e ast::Expr<'s>>,
        role: Role,
    ) -> Result<Tree<L::Leaf>, Reported>
    where
        's: 'e,
    {
        let decides = |c: Value| (c != 0) == (op == BinOp::Or);
        let (mut operands, mut all_constant, mut decided) = (Vec::new(), true, false);
        let mut wrong = None;
        for e in std::iter::once(first).chain(rest) {
            let operand = match self.expr(e, if decided { Role::Dead } else { role }) {
                Ok(operand) => operand,
                Err(reported) => {
                    wrong = Some(reported);
                    continue;
                }
            };
            all_constant &= matches!(operand.expr, Expr::Const(_));
            decided |= all_constant && matches!(operand.expr, Expr::Const(c) if decides(c));
            operands.push(operand);
        }
        if let Some(reported) = wrong {
            return Err(reported);
        }
        let expr = Expr::Const((op == BinOp::Or) as Value);
        let joined = const_fold::join(operands, &mut |a: Tree<L::Leaf>, b: Tree<L::Leaf>| {
            let depth = a.depth.max(b.depth);
            let expr = const_fold::binary(op, a.expr, b.expr).unwrap_or(Expr::Const(0));
            grown(expr, depth)
        });
        match joined {
            Some(tree) if !decided => self.within_bounds(tree, span),
            _ => Ok(Tree { expr, depth: 1 }),
        }
    }

    fn within_bounds(&mut self, tree: Tree<L::Leaf>, span: Span) -> Result<Tree<L::Leaf>, Reported> {
        if tree.depth > MAX_DEPTH { Err(self.too_deep(span)) } else { Ok(tree) }
    }

    fn too_deep(&mut self, span: Span) -> Reported {
        let problem = Problem::error(format!("this expression is nested more than {MAX_DEPTH} levels deep"))
            .at(span)
            .help("compute a part of it into a register first");
        self.leaves.problems().report(problem)
    }
}

fn grown<A>(expr: Expr<A>, operands: usize) -> Tree<A> {
    let depth = match expr {
        Expr::Const(_) | Expr::Atom(_) => 1,
        _ => operands + 1,
    };
    Tree { expr, depth }
}

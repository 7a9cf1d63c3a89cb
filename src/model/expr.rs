//! What may a program compute? Expressions over 64-bit wrapping integers, with C's operators.
//!
//! One tree serves two readers: a thread's instructions, whose leaves are registers, and properties, whose
//! leaves are atoms such as `p0@critical`. The only way to fail is a division by zero; `&&` and `||` look at
//! their right side only if needed, so `d != 0 && n / d` never fails.
//! Nothing here knows what a leaf means: the caller hands in an environment.

use serde::{Deserialize, Serialize};

/// The value of every register, address and memory cell.
pub type Value = i64;

/// Deeper trees are refused when a program is built, so that walking one never exhausts the stack.
pub const MAX_DEPTH: usize = 256;

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Expr<A> {
    Const(Value),
    Atom(A),
    Unary(UnOp, Box<Expr<A>>),
    Binary(BinOp, Box<Expr<A>>, Box<Expr<A>>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum UnOp {
    Neg,
    Not,
    BitNot,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum BinOp {
    Or,
    And,
    BitOr,
    BitXor,
    BitAnd,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Shl,
    Shr,
    Add,
    Sub,
    Mul,
    Div,
    Rem,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DivisionByZero;

impl UnOp {
    pub fn apply(self, a: Value) -> Value {
        match self {
            UnOp::Neg => a.wrapping_neg(),
            UnOp::Not => (a == 0) as Value,
            UnOp::BitNot => !a,
        }
    }

    pub fn symbol(self) -> &'static str {
        match self {
            UnOp::Neg => "-",
            UnOp::Not => "!",
            UnOp::BitNot => "~",
        }
    }
}

impl BinOp {
    /// Shifts use the low six bits of their right side, as x86 does for 64-bit operands.
    #[inline]
    pub fn apply(self, a: Value, b: Value) -> Result<Value, DivisionByZero> {
        Ok(match self {
            BinOp::Or => (a != 0 || b != 0) as Value,
            BinOp::And => (a != 0 && b != 0) as Value,
            BinOp::BitOr => a | b,
            BinOp::BitXor => a ^ b,
            BinOp::BitAnd => a & b,
            BinOp::Eq => (a == b) as Value,
            BinOp::Ne => (a != b) as Value,
            BinOp::Lt => (a < b) as Value,
            BinOp::Le => (a <= b) as Value,
            BinOp::Gt => (a > b) as Value,
            BinOp::Ge => (a >= b) as Value,
            BinOp::Shl => a.wrapping_shl(b as u32),
            BinOp::Shr => a.wrapping_shr(b as u32),
            BinOp::Add => a.wrapping_add(b),
            BinOp::Sub => a.wrapping_sub(b),
            BinOp::Mul => a.wrapping_mul(b),
            BinOp::Div if b == 0 => return Err(DivisionByZero),
            BinOp::Div => a.wrapping_div(b),
            BinOp::Rem if b == 0 => return Err(DivisionByZero),
            BinOp::Rem => a.wrapping_rem(b),
        })
    }

    pub fn symbol(self) -> &'static str {
        match self {
            BinOp::Or => "||",
            BinOp::And => "&&",
            BinOp::BitOr => "|",
            BinOp::BitXor => "^",
            BinOp::BitAnd => "&",
            BinOp::Eq => "==",
            BinOp::Ne => "!=",
            BinOp::Lt => "<",
            BinOp::Le => "<=",
            BinOp::Gt => ">",
            BinOp::Ge => ">=",
            BinOp::Shl => "<<",
            BinOp::Shr => ">>",
            BinOp::Add => "+",
            BinOp::Sub => "-",
            BinOp::Mul => "*",
            BinOp::Div => "/",
            BinOp::Rem => "%",
        }
    }

    /// C's precedence: a higher number binds tighter. All binary operators associate to the left.
    pub fn precedence(self) -> u8 {
        match self {
            BinOp::Or => 1,
            BinOp::And => 2,
            BinOp::BitOr => 3,
            BinOp::BitXor => 4,
            BinOp::BitAnd => 5,
            BinOp::Eq | BinOp::Ne => 6,
            BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge => 7,
            BinOp::Shl | BinOp::Shr => 8,
            BinOp::Add | BinOp::Sub => 9,
            BinOp::Mul | BinOp::Div | BinOp::Rem => 10,
        }
    }
}

impl<A> Expr<A> {
    pub fn unary(op: UnOp, a: Expr<A>) -> Self {
        Expr::Unary(op, Box::new(a))
    }

    pub fn binary(op: BinOp, a: Expr<A>, b: Expr<A>) -> Self {
        Expr::Binary(op, Box::new(a), Box::new(b))
    }

    pub fn negated(self) -> Self {
        Expr::unary(UnOp::Not, self)
    }

    pub fn eval(&self, env: &impl Fn(&A) -> Value) -> Result<Value, DivisionByZero> {
        Ok(match self {
            Expr::Const(c) => *c,
            Expr::Atom(a) => env(a),
            Expr::Unary(op, a) => op.apply(a.eval(env)?),
            Expr::Binary(BinOp::And, a, b) => (a.eval(env)? != 0 && b.eval(env)? != 0) as Value,
            Expr::Binary(BinOp::Or, a, b) => (a.eval(env)? != 0 || b.eval(env)? != 0) as Value,
            Expr::Binary(op, a, b) => op.apply(a.eval(env)?, b.eval(env)?)?,
        })
    }

    /// The value, if the expression has no atoms and does not divide by zero.
    pub fn constant(&self) -> Option<Value> {
        if self.any_atom(&mut |_| true) { None } else { self.eval(&|_| 0).ok() }
    }

    /// The same expression over other atoms.
    pub fn map_atoms<B>(&self, map: &impl Fn(&A) -> B) -> Expr<B> {
        match self {
            Expr::Const(c) => Expr::Const(*c),
            Expr::Atom(a) => Expr::Atom(map(a)),
            Expr::Unary(op, a) => Expr::Unary(*op, Box::new(a.map_atoms(map))),
            Expr::Binary(op, a, b) => {
                Expr::Binary(*op, Box::new(a.map_atoms(map)), Box::new(b.map_atoms(map)))
            }
        }
    }

    /// Can such atoms, if they are conditions, only help the whole to hold?
    pub fn grows_with(&self, such: &impl Fn(&A) -> bool) -> bool {
        match self {
            Expr::Const(_) | Expr::Atom(_) => true,
            Expr::Binary(BinOp::And | BinOp::Or, a, b) => a.grows_with(such) && b.grows_with(such),
            _ => !self.any_atom(&mut |a| such(a)),
        }
    }

    pub fn for_each_atom<'a>(&'a self, visit: &mut impl FnMut(&'a A)) {
        self.any_atom(&mut |a| {
            visit(a);
            false
        });
    }

    fn any_atom<'a>(&'a self, found: &mut impl FnMut(&'a A) -> bool) -> bool {
        match self {
            Expr::Const(_) => false,
            Expr::Atom(a) => found(a),
            Expr::Unary(_, a) => a.any_atom(found),
            Expr::Binary(_, a, b) => a.any_atom(found) || b.any_atom(found),
        }
    }

    /// Does it divide by something other than a non-zero constant?
    pub fn may_divide_by_zero(&self) -> bool {
        match self {
            Expr::Const(_) | Expr::Atom(_) => false,
            Expr::Unary(_, a) => a.may_divide_by_zero(),
            Expr::Binary(op, a, b) => {
                let divides = matches!(op, BinOp::Div | BinOp::Rem);
                a.may_divide_by_zero()
                    || b.may_divide_by_zero()
                    || divides && matches!(b.constant(), None | Some(0))
            }
        }
    }

    /// A condition that never fails itself: does the expression have a value, that is, does it not divide by
    /// zero?
    pub fn defined(&self) -> Expr<A>
    where
        A: Clone,
    {
        let and = |a, b| Expr::binary(BinOp::And, a, b);
        if !self.may_divide_by_zero() {
            return Expr::Const(1);
        }
        match self {
            Expr::Const(_) | Expr::Atom(_) => Expr::Const(1),
            Expr::Unary(_, a) => a.defined(),
            Expr::Binary(BinOp::And, a, b) => {
                let skipped = Expr::unary(UnOp::Not, (**a).clone());
                and(a.defined(), Expr::binary(BinOp::Or, skipped, b.defined()))
            }
            Expr::Binary(BinOp::Or, a, b) => {
                and(a.defined(), Expr::binary(BinOp::Or, (**a).clone(), b.defined()))
            }
            Expr::Binary(op, a, b) => {
                let both = and(a.defined(), b.defined());
                if matches!(op, BinOp::Div | BinOp::Rem) { and(both, (**b).clone()) } else { both }
            }
        }
    }

    /// Height of the tree. The walk keeps its own stack, because it is what guards the recursive ones.
    pub fn depth(&self) -> usize {
        let (mut deepest, mut todo) = (0, vec![(self, 1)]);
        while let Some((e, depth)) = todo.pop() {
            deepest = deepest.max(depth);
            match e {
                Expr::Const(_) | Expr::Atom(_) => {}
                Expr::Unary(_, a) => todo.push((a, depth + 1)),
                Expr::Binary(_, a, b) => todo.extend([(&**a, depth + 1), (&**b, depth + 1)]),
            }
        }
        deepest
    }

    /// The expression as text, fully determined by precedence, with as few parentheses as that allows.
    pub fn show(&self, atom: &impl Fn(&A) -> String) -> String {
        self.show_at(0, atom)
    }

    fn show_at(&self, outer: u8, atom: &impl Fn(&A) -> String) -> String {
        match self {
            Expr::Const(c) => c.to_string(),
            Expr::Atom(a) => atom(a),
            Expr::Unary(op, a) => {
                let inner = a.show_at(11, atom);
                let space = if inner.starts_with('-') { " " } else { "" };
                format!("{}{space}{inner}", op.symbol())
            }
            Expr::Binary(op, a, b) => {
                let p = op.precedence();
                let text = format!("{} {} {}", a.show_at(p, atom), op.symbol(), b.show_at(p + 1, atom));
                if p < outer { format!("({text})") } else { text }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type E = Expr<u8>;

    fn value(e: E) -> Result<Value, DivisionByZero> {
        e.eval(&|&a| a as Value)
    }

    #[test]
    fn overflow_wraps() {
        let max = E::Const(Value::MAX);
        assert_eq!(value(E::binary(BinOp::Add, max, E::Const(1))), Ok(Value::MIN));
        let least = E::binary(BinOp::Div, E::Const(Value::MIN), E::Const(-1));
        assert_eq!(value(least), Ok(Value::MIN));
    }

    #[test]
    fn and_shields_a_division() {
        let quotient = E::binary(BinOp::Div, E::Const(1), E::Const(0));
        assert_eq!(value(quotient.clone()), Err(DivisionByZero));
        assert_eq!(value(E::binary(BinOp::And, E::Const(0), quotient)), Ok(0));
    }

    #[test]
    fn text_needs_no_more_parentheses_than_precedence_does() {
        let sum = E::binary(BinOp::Add, E::Atom(1), E::Const(2));
        let product = E::binary(BinOp::Mul, sum.clone(), E::Atom(3));
        let show = |e: &E| e.show(&|a| format!("r{a}"));
        assert_eq!(show(&product), "(r1 + 2) * r3");
        assert_eq!(show(&E::binary(BinOp::Eq, sum, E::Const(-4))), "r1 + 2 == -4");
        let right = E::binary(BinOp::Sub, E::Atom(1), E::binary(BinOp::Sub, E::Atom(2), E::Atom(3)));
        assert_eq!(show(&right), "r1 - (r2 - r3)");
    }

    #[test]
    fn a_division_by_a_non_zero_constant_is_harmless() {
        assert!(!E::binary(BinOp::Div, E::Atom(0), E::Const(2)).may_divide_by_zero());
        assert!(E::binary(BinOp::Rem, E::Const(2), E::Atom(0)).may_divide_by_zero());
    }
}

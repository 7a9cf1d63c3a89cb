//! What is asked of variables? Conditions in C's words over symbols: `x == 1 && y[2]:4 == 0`.
//!
//! A variable has the size that its symbol says; an element needs its own behind a colon. All are numbers with sign.

use super::image::Image;
use super::layout::Layout;
use super::refusal::{Refusal, Result};
use crate::model::{Atom, BinOp, Expr, Pred, Property, PropertyKind, UnOp, Value};

/// A place in memory that is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct AskedCells {
    pub(super) address: u64,
    pub(super) bytes: u8,
}

/// A condition, before there are cells.
#[derive(Clone, Debug)]
pub(super) struct SymbolGoal {
    kind: PropertyKind,
    text: String,
    condition: Expr<AskedCells>,
}

impl SymbolGoal {
    pub(super) fn parse(kind: PropertyKind, text: &str, image: &Image) -> Result<SymbolGoal> {
        let mut parser = Parser { rest: text, text, image };
        let condition = parser.level(0)?;
        parser.blanks();
        match parser.rest.is_empty() {
            true => Ok(SymbolGoal { kind, text: text.to_string(), condition }),
            false => Err(parser.wrong(&format!("`{}` is not expected", parser.rest))),
        }
    }

    pub(super) fn wanted(&self) -> Vec<AskedCells> {
        let mut all = Vec::new();
        self.condition.for_each_atom(&mut |wanted| all.push(*wanted));
        all
    }

    /// The same over cells.
    pub(super) fn property(&self, layout: &Layout) -> Property {
        let pred = over_cells(&self.condition, layout);
        let text = format!("{} {}", self.kind.word(), self.text);
        Property { text, ..Property::new(self.kind, pred, 0) }
    }
}

/// `x=1`: a place and what it is at first.
pub(super) fn initial(text: &str, image: &Image) -> Result<(AskedCells, u64)> {
    let wrong = || Refusal::new(format!("`{text}` is no name with a value, as in `x=1`"));
    let (name, value) = text.split_once('=').ok_or_else(wrong)?;
    let mut parser = Parser { rest: name, text, image };
    let Expr::Atom(wanted) = parser.level(UNARY)? else { return Err(wrong()) };
    let mut parser = Parser { rest: value, text, image };
    let value = parser.level(0)?.constant().ok_or_else(wrong)?;
    Ok((wanted, value as u64))
}

fn over_cells(condition: &Expr<AskedCells>, layout: &Layout) -> Pred {
    match condition {
        Expr::Const(c) => Expr::Const(*c),
        Expr::Unary(op, a) => Expr::unary(*op, over_cells(a, layout)),
        Expr::Binary(op, a, b) => Expr::binary(*op, over_cells(a, layout), over_cells(b, layout)),
        Expr::Atom(AskedCells { address, bytes }) => {
            let end = address + u64::from(*bytes);
            let number = |n: u64| Expr::Const(n as Value);
            let part = |cell: super::layout::Cell| {
                let (from, to) =
                    ((*address).max(cell.address), end.min(cell.address + u64::from(cell.bytes)));
                let whole = Expr::Atom(Atom::Mem(cell.cell));
                let down = Expr::binary(BinOp::Shr, whole, number(8 * (from - cell.address)));
                let own = Expr::binary(BinOp::BitAnd, down, number(super::ops::mask(8 * (to - from) as u8)));
                Expr::binary(BinOp::Shl, own, number(8 * (from - address)))
            };
            let cells = layout.cells(*address, *bytes);
            let whole = match cells[..] {
                [cell] if cell.address == *address && cell.bytes == *bytes => {
                    Expr::Atom(Atom::Mem(cell.cell))
                }
                _ => {
                    let parts = cells.into_iter().map(part);
                    parts.reduce(|a, b| Expr::binary(BinOp::BitOr, a, b)).unwrap_or(Expr::Const(0))
                }
            };
            let unused = || number(64 - 8 * u64::from(*bytes));
            match bytes {
                8 => whole,
                _ => Expr::binary(BinOp::Shr, Expr::binary(BinOp::Shl, whole, unused()), unused()),
            }
        }
    }
}

/// Operators by how tight they bind, the loosest first; longer ones before those that they begin with.
const LEVELS: [&[(&str, BinOp)]; 10] = [
    &[("||", BinOp::Or)],
    &[("&&", BinOp::And)],
    &[("|", BinOp::BitOr)],
    &[("^", BinOp::BitXor)],
    &[("&", BinOp::BitAnd)],
    &[("==", BinOp::Eq), ("!=", BinOp::Ne)],
    &[("<=", BinOp::Le), (">=", BinOp::Ge), ("<", BinOp::Lt), (">", BinOp::Gt)],
    &[("<<", BinOp::Shl), (">>", BinOp::Shr)],
    &[("+", BinOp::Add), ("-", BinOp::Sub)],
    &[("*", BinOp::Mul)],
];
const UNARY: usize = LEVELS.len();
/// Conditions are not nested deeper.
const DEEPEST: usize = 200;

struct Parser<'p> {
    rest: &'p str,
    text: &'p str,
    image: &'p Image,
}

impl<'p> Parser<'p> {
    fn wrong(&self, why: &str) -> Refusal {
        let column = self.text.len().saturating_sub(self.rest.len()) + 1;
        Refusal::new(format!("in the condition `{}`, column {column}: {why}", self.text))
    }

    fn blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn eat(&mut self, word: &str) -> bool {
        self.blanks();
        match self.rest.strip_prefix(word) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn level(&mut self, level: usize) -> Result<Expr<AskedCells>> {
        if level == UNARY {
            return self.unary();
        }
        let mut left = self.level(level + 1)?;
        loop {
            self.blanks();
            let here = LEVELS[level].iter().find(|(word, _)| {
                let doubled = word.len() == 1 && self.rest.starts_with(&word.repeat(2));
                self.rest.starts_with(word) && !doubled
            });
            let Some((word, op)) = here else { return Ok(left) };
            self.eat(word);
            let right = self.level(level + 1)?;
            left = Expr::binary(*op, left, right);
            if left.depth() > DEEPEST {
                return Err(self.wrong("this is too long"));
            }
        }
    }

    fn unary(&mut self) -> Result<Expr<AskedCells>> {
        self.blanks();
        let depth = self.text.len() - self.rest.len();
        if self.text[..depth].matches(['(', '!', '-', '~']).count() > DEEPEST {
            return Err(self.wrong("this is nested too deep"));
        }
        for (word, op) in [("!", UnOp::Not), ("-", UnOp::Neg), ("~", UnOp::BitNot)] {
            if self.eat(word) {
                return Ok(match self.unary()? {
                    Expr::Const(c) => Expr::Const(op.apply(c)),
                    inner => Expr::unary(op, inner),
                });
            }
        }
        if self.eat("(") {
            let inner = self.level(0)?;
            return if self.eat(")") { Ok(inner) } else { Err(self.wrong("`)` is missing")) };
        }
        match self.rest.chars().next() {
            Some(c) if c.is_ascii_digit() => self.number().map(Expr::Const),
            Some(c) if c.is_alphabetic() || c == '_' => self.place().map(Expr::Atom),
            _ => Err(self.wrong("a variable or a number is missing")),
        }
    }

    fn word(&mut self, part: impl Fn(char) -> bool) -> &'p str {
        let end = self.rest.find(|c: char| !part(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn number(&mut self) -> Result<Value> {
        let word = self.word(|c| c.is_ascii_alphanumeric());
        let number = match word.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => word.parse().ok(),
        };
        number.map(|n| n as Value).ok_or_else(|| self.wrong(&format!("`{word}` is no number")))
    }

    fn place(&mut self) -> Result<AskedCells> {
        let name = self.word(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '$'));
        let symbol = self.image.symbols.get(name).filter(|s| !s.is_code);
        let symbol =
            symbol.ok_or_else(|| self.wrong(&format!("no file defines a variable `{name}`")))?.clone();
        let index = if self.eat("[") {
            self.blanks();
            let index = self.number()?;
            if !self.eat("]") {
                return Err(self.wrong("`]` is missing"));
            }
            Some(index as u64)
        } else {
            None
        };
        let size = if self.eat(":") { Some(self.number()? as u64) } else { None };
        let bytes = match (size, index) {
            (Some(size), _) => size,
            (None, None) => symbol.size,
            (None, Some(_)) => {
                return Err(self.wrong(&format!("how wide is an element of `{name}`? `{name}[0]:4`")));
            }
        };
        if !matches!(bytes, 1 | 2 | 4 | 8) {
            return Err(
                self.wrong(&format!("`{name}` has {bytes} bytes: say which of them, as in `{name}[0]:4`"))
            );
        }
        let offset = index.unwrap_or(0).saturating_mul(bytes);
        if offset.saturating_add(bytes) > symbol.size.max(bytes) {
            return Err(self.wrong(&format!("`{name}` has {} bytes only", symbol.size)));
        }
        Ok(AskedCells { address: symbol.address + offset, bytes: bytes as u8 })
    }
}

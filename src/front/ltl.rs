//! Formulas of linear temporal logic as text, and `.ltl` files, which define propositions and list formulas.
//!
//! Unary operators bind tightest. DiVinE groups binary ones to the left whatever they are, everybody else by
//! precedence: where two of them stand side by side without parentheses and it could matter, both readings are
//! shown and neither is taken ([`Grouping::Explicit`]). Propositions begin with a lower-case letter and go on
//! up to the next capital, so that `GFp` and `pUq` are formulas; conditions may also stand in braces, in the
//! language of what is asked about, and are propositions of their own.

use super::Unread;
use super::diagnostics::{Parsed, Problem, Problems, Reported, Span};
use crate::limits::Limits;
use crate::model::expr::MAX_DEPTH;
use crate::model::formula::{Connective, Formula};

/// What to do with two binary operators side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grouping {
    /// Parentheses are required.
    Explicit,
    /// U, W and R bind tightest, then `&&`, `^` and `||`, then `->` and `<->`; equals group to the right.
    Precedence,
}

/// A formula, and the names of its propositions in the order of their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFormula {
    pub formula: Formula,
    pub names: Vec<String>,
}

impl NamedFormula {
    pub fn show(&self) -> String {
        self.formula.show(&self.names)
    }
}

/// One formula.
pub fn formula(source: &str, grouping: Grouping, limits: &Limits) -> Result<NamedFormula, Unread> {
    let mut problems = Problems::new(source, limits);
    let parsed = parse(source, 0, grouping, &mut problems);
    problems.finish(parsed).map(|(formula, _)| formula)
}

/// What a `.ltl` file says: lines that begin with `#define` or `#property`; all others are comments.
#[derive(Clone, Debug, Default)]
pub struct PropertyFile {
    /// Names and what they stand for.
    pub definitions: Vec<(String, String)>,
    pub properties: Vec<NamedFormula>,
}

pub fn properties(source: &str, grouping: Grouping, limits: &Limits) -> Result<PropertyFile, Unread> {
    let mut problems = Problems::new(source, limits);
    let mut file = PropertyFile::default();
    let (mut start, mut failed) = (0, false);
    for line in source.split_inclusive('\n') {
        let text = line.trim_start_matches([' ', '\t']);
        let at = start + line.len() - text.len();
        start += line.len();
        if let Some(rest) = text.strip_prefix("#define").filter(|r| r.starts_with([' ', '\t'])) {
            let (name, body) = rest.trim().split_once([' ', '\t']).unwrap_or((rest.trim(), ""));
            file.definitions.push((name.to_string(), body.trim().to_string()));
        } else if let Some(rest) = text.strip_prefix("#property").filter(|r| r.starts_with([' ', '\t'])) {
            match parse(rest.trim_end(), at + "#property".len(), grouping, &mut problems) {
                Ok(formula) => file.properties.push(formula),
                Err(Reported) => failed = true,
            }
        }
    }
    problems.finish(if failed { Err(Reported) } else { Ok(file) }).map(|(file, _)| file)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LtlToken<'s> {
    Name(&'s str),
    Unary(char),
    Binary(Connective),
    Open,
    Close,
    End,
}

/// Longer ones first; capitals are operators wherever they stand.
const OPERATORS: [(&str, LtlToken); 21] = [
    ("<->", LtlToken::Binary(Connective::Iff)),
    ("->", LtlToken::Binary(Connective::Implies)),
    ("&&", LtlToken::Binary(Connective::And)),
    ("||", LtlToken::Binary(Connective::Or)),
    ("[]", LtlToken::Unary('G')),
    ("<>", LtlToken::Unary('F')),
    ("!", LtlToken::Unary('!')),
    ("^", LtlToken::Binary(Connective::Xor)),
    ("*", LtlToken::Binary(Connective::And)),
    ("+", LtlToken::Binary(Connective::Or)),
    ("(", LtlToken::Open),
    (")", LtlToken::Close),
    ("X", LtlToken::Unary('X')),
    ("O", LtlToken::Unary('X')),
    ("G", LtlToken::Unary('G')),
    ("F", LtlToken::Unary('F')),
    ("U", LtlToken::Binary(Connective::Until)),
    ("W", LtlToken::Binary(Connective::WeakUntil)),
    ("R", LtlToken::Binary(Connective::Release)),
    ("V", LtlToken::Binary(Connective::Release)),
    ("=>", LtlToken::Binary(Connective::Implies)),
];

fn parse(source: &str, offset: usize, grouping: Grouping, problems: &mut Problems) -> Parsed<NamedFormula> {
    let tokens = tokens(source, offset, problems)?;
    let mut parser = LtlParser { tokens, next: 0, grouping, names: vec![], problems };
    let formula = parser.chain(0)?;
    match parser.token() {
        LtlToken::End => Ok(NamedFormula { formula, names: parser.names }),
        _ => Err(parser.unexpected("an operator or the end of the formula")),
    }
}

fn tokens<'s>(source: &'s str, offset: usize, problems: &mut Problems) -> Parsed<Vec<(LtlToken<'s>, Span)>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(c) = source[at..].chars().next() {
        problems.spend(1)?;
        let rest = &source[at..];
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '=';
        let (token, length) = if c.is_whitespace() {
            (None, c.len_utf8())
        } else if let Some((text, token)) = OPERATORS.iter().find(|(text, _)| rest.starts_with(text)) {
            (Some(*token), text.len())
        } else if c == '{' {
            let Some(length) = rest.find('}') else {
                let span = Span { start: offset + at, end: offset + at + 1 };
                return Err(problems
                    .report(Problem::error("the condition does not end").at(span).help("`}` ends it")));
            };
            (Some(LtlToken::Name(rest[1..length].trim())), length + 1)
        } else if c.is_ascii_lowercase() || c == '_' {
            let length = rest.find(|c: char| !is_name(c)).unwrap_or(rest.len());
            (Some(LtlToken::Name(&rest[..length])), length)
        } else {
            let span = Span { start: offset + at, end: offset + at + c.len_utf8() };
            let problem = Problem::error(format!("`{c}` means nothing in a formula")).at(span);
            let problem = match c.is_ascii_uppercase() {
                true => problem.help("propositions begin with a lower-case letter, and have no capitals"),
                false => problem.help("operators are G F X U W R ! && || ^ -> <->"),
            };
            return Err(problems.report(problem));
        };
        let span = Span { start: offset + at, end: offset + at + length };
        tokens.extend(token.map(|token| (token, span)));
        at += length;
    }
    let end = offset + source.len();
    tokens.push((LtlToken::End, Span { start: end, end }));
    Ok(tokens)
}

struct LtlParser<'s, 'p, 'l> {
    tokens: Vec<(LtlToken<'s>, Span)>,
    next: usize,
    grouping: Grouping,
    names: Vec<String>,
    problems: &'p mut Problems<'l>,
}

impl<'s> LtlParser<'s, '_, '_> {
    fn token(&self) -> LtlToken<'s> {
        self.tokens[self.next].0
    }

    fn bump(&mut self) -> (LtlToken<'s>, Span) {
        let token = self.tokens[self.next];
        self.next = (self.next + 1).min(self.tokens.len() - 1);
        token
    }

    fn unexpected(&mut self, expected: &str) -> Reported {
        let problem = Problem::error(format!("expected {expected}")).at(self.tokens[self.next].1);
        self.problems.report(problem)
    }

    /// Operands with binary operators between them.
    fn chain(&mut self, depth: usize) -> Parsed<Formula> {
        let mut operands = vec![self.operand(depth)?];
        let mut operators = Vec::new();
        while let LtlToken::Binary(connective) = self.token() {
            let (_, span) = self.bump();
            operators.push((connective, span));
            operands.push(self.operand(depth)?);
        }
        if operators.len() + depth >= MAX_DEPTH {
            return Err(self.too_deep());
        }
        self.group(operands, &operators)
    }

    fn group(&mut self, operands: Vec<Formula>, operators: &[(Connective, Span)]) -> Parsed<Formula> {
        let connectives: Vec<Connective> = operators.iter().map(|(c, _)| *c).collect();
        let same = connectives.windows(2).all(|pair| pair[0] == pair[1]);
        let associative =
            |c: Connective| matches!(c, Connective::And | Connective::Or | Connective::Iff | Connective::Xor);
        let clear = connectives.len() < 2 || same && associative(connectives[0]);
        if clear || self.grouping == Grouping::Precedence {
            return Ok(by_precedence(operands, &connectives));
        }
        let left = to_the_left(operands.clone(), &connectives).show(&self.names);
        let usual = by_precedence(operands, &connectives).show(&self.names);
        let place = operators[0].1.to(operators[operators.len() - 1].1);
        let problem = Problem::error("operators side by side without parentheses").at(place);
        let readings = match left == usual {
            true => format!("write {left}"),
            false => format!("DiVinE reads {left}, most others {usual}"),
        };
        Err(self.problems.report(problem.label("it is not clear how they group").help(readings)))
    }

    fn too_deep(&mut self) -> Reported {
        let problem = Problem::error(format!("the formula is nested more than {MAX_DEPTH} deep"));
        self.problems.report(problem.at(self.tokens[self.next].1))
    }

    fn operand(&mut self, depth: usize) -> Parsed<Formula> {
        if depth >= MAX_DEPTH {
            return Err(self.too_deep());
        }
        match self.token() {
            LtlToken::Unary(op) => {
                self.bump();
                let a = Box::new(self.operand(depth + 1)?);
                Ok(match op {
                    'X' => Formula::Next(a),
                    'G' => Formula::Globally(a),
                    'F' => Formula::Finally(a),
                    _ => Formula::Not(a),
                })
            }
            LtlToken::Open => {
                self.bump();
                let inner = self.chain(depth + 1)?;
                match self.token() {
                    LtlToken::Close => {
                        self.bump();
                        Ok(inner)
                    }
                    _ => Err(self.unexpected("`)`")),
                }
            }
            LtlToken::Name(name) => {
                self.bump();
                Ok(self.proposition(name))
            }
            _ => Err(self.unexpected("a proposition, a unary operator or `(`")),
        }
    }

    fn proposition(&mut self, name: &str) -> Formula {
        match name {
            "true" => return Formula::True,
            "false" => return Formula::False,
            _ => {}
        }
        let known = self.names.iter().position(|known| known == name);
        Formula::Proposition(known.unwrap_or_else(|| {
            self.names.push(name.to_string());
            self.names.len() - 1
        }))
    }
}

fn to_the_left(operands: Vec<Formula>, connectives: &[Connective]) -> Formula {
    let mut operands = operands.into_iter();
    let first = operands.next().expect("a chain has an operand");
    operands.zip(connectives).fold(first, |left, (right, c)| Formula::binary(*c, left, right))
}

/// Splits at the operator that binds weakest: the first of them, so that equals group to the right.
fn by_precedence(mut operands: Vec<Formula>, connectives: &[Connective]) -> Formula {
    let weakest = (0..connectives.len()).min_by_key(|&i| (connectives[i].precedence(), i));
    match weakest {
        None => operands.pop().expect("a chain has an operand"),
        Some(at) => {
            let right = operands.split_off(at + 1);
            let left = by_precedence(operands, &connectives[..at]);
            Formula::binary(connectives[at], left, by_precedence(right, &connectives[at + 1..]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, grouping: Grouping) -> String {
        match formula(text, grouping, &Limits::default()) {
            Ok(named) => named.show(),
            Err(wrong) => {
                let first = &wrong.diagnostics()[0];
                format!("{}: {}", first.message, first.help.clone().unwrap_or_default())
            }
        }
    }

    #[test]
    fn formulas_may_be_glued() {
        let explicit = |text| shown(text, Grouping::Explicit);
        assert_eq!(explicit("GFsomeoneincs"), "G F someoneincs");
        assert_eq!(explicit("!p1U(p1U(p1&& co))"), "!p1 U (p1 U (p1 && co))");
        assert_eq!(explicit("[](a -> <>b)"), "G (a -> F b)");
        assert_eq!(explicit("a && b && true"), "a && (b && true)");
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_not_read() {
        let explicit = |text| shown(text, Grouping::Explicit);
        let message = "operators side by side without parentheses: ";
        assert_eq!(
            explicit("a -> b U c"),
            format!("{message}DiVinE reads (a -> b) U c, most others a -> (b U c)")
        );
        assert_eq!(
            explicit("a U b U c"),
            format!("{message}DiVinE reads (a U b) U c, most others a U (b U c)")
        );
        assert_eq!(explicit("a && b || c"), format!("{message}write (a && b) || c"));
        assert_eq!(shown("a -> b U c && d", Grouping::Precedence), "a -> ((b U c) && d)");
        assert_eq!(shown("a -> b -> c", Grouping::Precedence), "a -> (b -> c)");
    }

    #[test]
    fn mistakes_have_places() {
        let place = |text: &str| {
            let wrong = formula(text, Grouping::Explicit, &Limits::default()).expect_err("it is wrong");
            wrong.diagnostics()[0].span.clone().expect("it has a place")
        };
        assert_eq!(place("G (a"), 4..4);
        assert_eq!(place("a U"), 3..3);
        assert_eq!(place("G Pa"), 2..3);
        assert_eq!(place("a b"), 2..3);
        let deep = format!("{}a{}", "(".repeat(100_000), ")".repeat(100_000));
        assert!(shown(&deep, Grouping::Explicit).contains("nested"));
    }

    #[test]
    fn files_have_definitions_and_properties_between_comments() {
        let text =
            "A comment.\n#define p (P.s)\n  #property G p\nprop: #property no\n#property F(!p)\n#defined x\n";
        let file = properties(text, Grouping::Explicit, &Limits::default()).expect("a file");
        assert_eq!(file.definitions, [("p".to_string(), "(P.s)".to_string())]);
        assert_eq!(file.properties.iter().map(NamedFormula::show).collect::<Vec<_>>(), ["G p", "F !p"]);
        let wrong = properties("x\n#property G (\n", Grouping::Explicit, &Limits::default());
        assert_eq!(wrong.expect_err("no").diagnostics()[0].span, Some(15..15));
    }
}

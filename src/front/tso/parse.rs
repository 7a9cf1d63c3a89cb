//! Does the file follow the grammar? Recursive descent, one statement at a time.
//!
//! A statement that does not is reported once and skipped to the end of its line, so that one run finds all
//! mistakes. What follows from a mistake is not reported: a misspelt `thread` still opens a thread, a thread
//! without `end` ends where the next one begins, and garbage was reported by the lexer. Statements are in
//! `body`, expressions in `expr`, steps from token to token in `cursor`; what names mean is not decided here.

mod body;
mod cursor;
mod expr;

use super::ast::*;
use super::lex::{self, TsoKind, TsoToken};
use crate::front::diagnostics::{Parsed, Problem, Problems, shorten};
use crate::model::PropertyKind;

/// Each one multiplies the cases of a property.
const MAX_QUANTIFIERS: usize = 8;

pub fn parse<'s>(source: &'s str, problems: &mut Problems<'s>) -> File<'s> {
    let tokens = lex::tokens(source, problems);
    let landmarks = landmarks(&tokens);
    let mut parser = TsoParser { source, tokens, landmarks, next: 0, depth: 0, problems };
    parser.file()
}

/// The places of every `thread` and `end`.
fn landmarks(tokens: &[TsoToken]) -> Vec<usize> {
    let is_landmark = |t: &TsoToken| matches!(t.kind, TsoKind::Thread | TsoKind::End);
    tokens.iter().enumerate().filter(|(_, t)| is_landmark(t)).map(|(i, _)| i).collect()
}

struct TsoParser<'s, 'p> {
    source: &'s str,
    tokens: Vec<TsoToken>,
    landmarks: Vec<usize>,
    next: usize,
    /// How many calls deep the expression being read is nested.
    depth: usize,
    problems: &'p mut Problems<'s>,
}

impl<'s> TsoParser<'s, '_> {
    fn file(&mut self) -> File<'s> {
        let mut file = File::default();
        // Instructions outside threads come in runs, of which one report is enough.
        let mut lost = false;
        loop {
            match self.kind() {
                TsoKind::EndOfFile => return file,
                TsoKind::Newline | TsoKind::Semicolon => self.bump(),
                _ => match self.declaration_word() {
                    Some(kind) => {
                        lost = false;
                        self.declaration(kind, &mut file);
                    }
                    None => {
                        self.lost_statement(lost);
                        lost = true;
                    }
                },
            }
        }
    }

    /// The declaration that begins here, be it misspelt.
    fn declaration_word(&mut self) -> Option<TsoKind> {
        let kind = self.kind();
        if lex::DECLARATIONS.iter().any(|(_, k)| *k == kind) {
            return Some(kind);
        }
        if kind != TsoKind::Name || !matches!(self.kind_after(1), TsoKind::Name | TsoKind::LeftBracket) {
            return None;
        }
        let word = self.text();
        let meant = self.problems.nearest(word, lex::DECLARATIONS.iter().map(|(w, _)| *w))?;
        let span = self.span();
        self.problems.report(
            Problem::error(format!("unknown declaration `{}`", shorten(word)))
                .at(span)
                .suggest(Some(meant.clone())),
        );
        lex::DECLARATIONS.iter().find(|(w, _)| *w == meant).map(|(_, k)| *k)
    }

    fn declaration(&mut self, kind: TsoKind, file: &mut File<'s>) {
        let first = self.next;
        let done = match kind {
            TsoKind::Shared => self.shared(file),
            TsoKind::Param => self.param(file),
            TsoKind::Thread => {
                self.thread(file);
                Ok(())
            }
            _ => self.property(kind, file),
        };
        if done.is_err() {
            self.skip_line();
            if matches!(kind, TsoKind::Shared | TsoKind::Param) {
                file.doubtful.extend(self.names_between(first, self.next));
            }
        }
    }

    /// Something that cannot stand outside a thread.
    fn lost_statement(&mut self, lost_before: bool) {
        let (kind, span) = (self.kind(), self.span());
        if !lost_before && kind != TsoKind::Garbage {
            let problem = match kind {
                TsoKind::End => Problem::error("`end` without a `thread`").at(span),
                TsoKind::RightBrace => Problem::error("`}` without a `repeat`").at(span),
                _ => Problem::error(format!("{} outside a thread", self.found()))
                    .at(span)
                    .label("expected a declaration or a property")
                    .help("instructions stand between `thread NAME` and `end`"),
            };
            self.problems.report(problem);
        }
        self.skip_line();
    }

    fn shared(&mut self, file: &mut File<'s>) -> Parsed<()> {
        self.bump();
        loop {
            let name = self.name("the name of a shared variable")?;
            let size = match self.eat(TsoKind::LeftBracket) {
                Some(open) => {
                    let size = self.expr()?;
                    self.close(TsoKind::RightBracket, open)?;
                    Some(size)
                }
                None => None,
            };
            let init = match self.eat(TsoKind::Equals) {
                Some(_) => self.init()?,
                None => Init::Zero,
            };
            file.shared.push(Shared { name, size, init });
            if self.eat(TsoKind::Comma).is_none() {
                return self.end_of_statement();
            }
        }
    }

    fn init(&mut self) -> Parsed<Init<'s>> {
        let Some(open) = self.eat(TsoKind::LeftBrace) else {
            return Ok(Init::Each(self.expr()?));
        };
        let mut values = Vec::new();
        while self.kind() != TsoKind::RightBrace {
            values.push(self.expr()?);
            if self.eat(TsoKind::Comma).is_none() {
                break;
            }
        }
        self.close(TsoKind::RightBrace, open)?;
        Ok(Init::List(values))
    }

    fn param(&mut self, file: &mut File<'s>) -> Parsed<()> {
        self.bump();
        let name = self.name("the name of a parameter")?;
        self.expect(TsoKind::Equals, "`=` and the parameter's value")?;
        let value = self.expr()?;
        file.params.push(Param { name, value });
        self.end_of_statement()
    }

    fn property(&mut self, word: TsoKind, file: &mut File<'s>) -> Parsed<()> {
        let kind = match word {
            TsoKind::Forbid => PropertyKind::Forbid,
            TsoKind::Exists => PropertyKind::Exists,
            TsoKind::Forall => PropertyKind::Forall,
            _ => PropertyKind::Never,
        };
        let start = self.span();
        self.bump();
        let mut quantifiers = Vec::new();
        while let Some(quantifier) = self.quantifier()? {
            if quantifiers.len() == MAX_QUANTIFIERS {
                let problem = Problem::error("too many quantifiers").at(quantifier.var.span);
                return Err(self.problems.report(problem));
            }
            quantifiers.push(quantifier);
        }
        let body = self.expr()?;
        let span = start.to(self.last_span());
        file.properties.push(Property { kind, quantifiers, body, span });
        self.end_of_statement()
    }

    fn quantifier(&mut self) -> Parsed<Option<Quantifier<'s>>> {
        if self.kind() != TsoKind::Name || self.kind_after(1) != TsoKind::Name {
            return Ok(None);
        }
        let how_many = match self.text() {
            "all" => HowMany::All,
            "two" => HowMany::Two,
            "some" => HowMany::Some,
            word => {
                let meant = self.problems.nearest(word, ["all", "two", "some"]);
                let problem = Problem::error(format!("unknown quantifier `{}`", shorten(word)))
                    .at(self.span())
                    .label("expected `all`, `two` or `some`")
                    .suggest(meant);
                return Err(self.problems.report(problem));
            }
        };
        self.bump();
        let var = self.name("the name of an index")?;
        let range = match self.eat(TsoKind::In) {
            Some(_) => Some(self.range()?),
            None => None,
        };
        self.expect(TsoKind::Colon, "`:` and what is asked of each")?;
        Ok(Some(Quantifier { how_many, var, range }))
    }

    fn range(&mut self) -> Parsed<Range<'s>> {
        let start = self.span();
        let lo = self.expr()?;
        let bound = match self.kind() {
            TsoKind::Range => Bound::Excluded,
            TsoKind::RangeInclusive => Bound::Included,
            _ => return Err(self.unexpected("`..` or `..=` and the end of the range")),
        };
        self.bump();
        let hi = self.expr()?;
        Ok(Range { lo, hi, bound, span: start.to(self.last_span()) })
    }
}

#[cfg(test)]
mod tests;

//! Does the file follow the grammar? Recursive descent, one statement at a time.
//!
//! A statement that does not is reported once and skipped to the end of its line, so that one run finds all
//! mistakes. What follows from a mistake is not reported: a misspelt `thread` still opens a thread, a thread
//! without `end` ends where the next one begins, and garbage was reported by the lexer. Statements are in
//! `body`, those with statements inside in `blocks`, expressions in `expr`, steps from token to token in
//! `cursor`, advice in `hints`; what names mean is not decided here.
//!
//! Words that came later than the first programs are not reserved: they are words of the language only where
//! a name could not stand.

mod blocks;
mod body;
mod cursor;
mod datatype;
mod expr;
mod hints;
mod temporal;

use super::ast::*;
use super::lex::{self, TsoKind, TsoToken};
use crate::front::diagnostics::{Parsed, Problem, Problems, shorten};
use crate::model::PropertyKind;

/// Each one multiplies the cases of a property.
const MAX_QUANTIFIERS: usize = 8;

pub(crate) fn parse<'s>(source: &'s str, problems: &mut Problems<'s>) -> File<'s> {
    let tokens = lex::tokens(source, problems);
    let mut parser =
        TsoParser { source, tokens, landmarks: Vec::new(), next: 0, depth: 0, is_datatype: false, problems };
    parser.is_datatype = parser.begins_datatype();
    parser.landmarks = (0..parser.tokens.len()).filter(|&i| parser.is_landmark(i)).collect();
    parser.file()
}

/// What may stand outside threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Declaration {
    Shared,
    Param(ParamKind),
    Struct,
    Inline,
    Thread,
    Property(PropertyKind),
    Formula,
    Terminates,
    NoHang,
    DataType,
    Alloc,
    Init,
    Operation,
    Test,
}

impl Declaration {
    fn named(word: &str, is_datatype: bool) -> Option<Declaration> {
        Some(match word {
            "datatype" if is_datatype => Declaration::DataType,
            "alloc" if is_datatype => Declaration::Alloc,
            "init" if is_datatype => Declaration::Init,
            "op" if is_datatype => Declaration::Operation,
            "test" if is_datatype => Declaration::Test,
            "shared" => Declaration::Shared,
            "param" => Declaration::Param(ParamKind::Open),
            "const" => Declaration::Param(ParamKind::Fixed),
            "struct" => Declaration::Struct,
            "inline" => Declaration::Inline,
            "thread" => Declaration::Thread,
            "forbid" => Declaration::Property(PropertyKind::Forbid),
            "exists" => Declaration::Property(PropertyKind::Exists),
            "forall" => Declaration::Property(PropertyKind::Forall),
            "never" => Declaration::Property(PropertyKind::Never),
            "ltl" => Declaration::Formula,
            "terminates" => Declaration::Terminates,
            _ => return None,
        })
    }
}

struct TsoParser<'s, 'p> {
    source: &'s str,
    tokens: Vec<TsoToken>,
    /// The places where threads and the like begin and end.
    landmarks: Vec<usize>,
    next: usize,
    /// Does the file describe a data type?
    is_datatype: bool,
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
                    Some(declaration) => {
                        lost = false;
                        self.declaration(declaration, &mut file);
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
    fn declaration_word(&mut self) -> Option<Declaration> {
        let word = self.text();
        if let Some(declaration) = Declaration::named(word, self.is_datatype) {
            return Some(declaration);
        }
        let text = |token: &TsoToken| &self.source[token.span.start..token.span.end];
        if word == "no" && self.tokens.get(self.next + 1).map(text) == Some("hang") {
            return Some(Declaration::NoHang);
        }
        if self.kind() != TsoKind::Name || !matches!(self.kind_after(1), TsoKind::Name | TsoKind::LeftBracket)
        {
            return None;
        }
        let known = lex::DECLARATIONS.iter().map(|(w, _)| *w).chain(lex::CONTEXTUAL_DECLARATIONS);
        let known = known.chain(lex::OF_DATATYPES.into_iter().filter(|_| self.is_datatype));
        let meant = self.problems.nearest(word, known)?;
        let span = self.span();
        self.problems.report(
            Problem::error(format!("unknown declaration `{}`", shorten(word)))
                .at(span)
                .suggest(Some(meant.clone())),
        );
        Declaration::named(&meant, self.is_datatype)
    }

    fn declaration(&mut self, declaration: Declaration, file: &mut File<'s>) {
        let first = self.next;
        let done = match declaration {
            Declaration::Shared => self.shared(file),
            Declaration::Param(kind) => self.param(kind, file),
            Declaration::Struct => self.structure(file),
            Declaration::Inline => {
                self.inline(file);
                Ok(())
            }
            Declaration::Thread => {
                self.thread(file);
                Ok(())
            }
            Declaration::Property(kind) => self.property(kind, file),
            Declaration::Formula => self.formula_declaration(file),
            Declaration::Terminates => self.terminates(file),
            Declaration::NoHang => self.no_hang(file),
            Declaration::DataType => self.datatype_name(file),
            Declaration::Alloc => self.alloc(file),
            Declaration::Init => {
                self.init_body(file);
                Ok(())
            }
            Declaration::Operation => {
                self.operation(file);
                Ok(())
            }
            Declaration::Test => self.test(file),
        };
        if done.is_err() {
            self.skip_line();
            if matches!(declaration, Declaration::Shared | Declaration::Param(_) | Declaration::Struct) {
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
                TsoKind::Name if self.text() == "include" && self.kind_after(1) == TsoKind::Text => {
                    Problem::error("nothing can be included here")
                        .at(span)
                        .help("only programs that are read from files can include others")
                }
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
        self.variables("the name of a shared variable", &mut file.shared)?;
        self.end_of_statement()
    }

    /// `x, y = 3, a[4] = {1, 2}`
    fn variables(&mut self, expected: &str, variables: &mut Vec<Shared<'s>>) -> Parsed<()> {
        loop {
            let name = self.name(expected)?;
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
            variables.push(Shared { name, size, init });
            if self.eat(TsoKind::Comma).is_none() {
                return Ok(());
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

    fn param(&mut self, kind: ParamKind, file: &mut File<'s>) -> Parsed<()> {
        self.bump();
        let what = match kind {
            ParamKind::Open => "parameter",
            ParamKind::Fixed => "constant",
        };
        let name = self.name(&format!("the name of a {what}"))?;
        self.expect(TsoKind::Equals, &format!("`=` and the {what}'s value"))?;
        let value = self.expr()?;
        file.params.push(Param { name, value, kind });
        self.end_of_statement()
    }

    /// `struct node { value, next }`, which may take several lines.
    fn structure(&mut self, file: &mut File<'s>) -> Parsed<()> {
        self.bump();
        let name = self.name("the name of a struct")?;
        let open = self.expect(TsoKind::LeftBrace, "`{` and the fields, as in `{ value, next }`")?;
        let mut fields = Vec::new();
        self.skip_newlines();
        while self.kind() != TsoKind::RightBrace {
            fields.push(self.name("the name of a field")?);
            self.skip_newlines();
            if self.eat(TsoKind::Comma).is_none() {
                break;
            }
            self.skip_newlines();
        }
        let close = self.close(TsoKind::RightBrace, open)?;
        if fields.is_empty() {
            let problem = Problem::error(format!("struct `{}` has no fields", name.text)).at(open.to(close));
            return Err(self.problems.report(problem));
        }
        file.structs.push(Struct { name, fields });
        self.end_of_statement()
    }

    fn property(&mut self, kind: PropertyKind, file: &mut File<'s>) -> Parsed<()> {
        let start = self.span();
        self.bump();
        let (name, quantifiers) = self.property_head()?;
        let body = self.condition()?;
        let span = start.to(self.last_span());
        file.properties.push(Property { kind, name, quantifiers, body, span });
        self.end_of_statement()
    }

    /// The name, if there is one, and the quantifiers.
    fn property_head(&mut self) -> Parsed<(Option<Name<'s>>, Vec<Quantifier<'s>>)> {
        let name = match (self.kind(), self.kind_after(1)) {
            (TsoKind::Name, TsoKind::Colon) => Some(self.name("the property's name")?),
            _ => None,
        };
        if name.is_some() {
            self.bump();
        }
        let mut quantifiers = Vec::new();
        while let Some(quantifier) = self.quantifier()? {
            if quantifiers.len() == MAX_QUANTIFIERS {
                let problem = Problem::error("too many quantifiers").at(quantifier.var.span);
                return Err(self.problems.report(problem));
            }
            quantifiers.push(quantifier);
        }
        Ok((name, quantifiers))
    }

    /// `no hang`
    fn no_hang(&mut self, file: &mut File<'s>) -> Parsed<()> {
        let start = self.span();
        self.bump();
        self.bump();
        file.no_hang.push(start.to(self.last_span()));
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
            _ if self.is_temporal() => return Ok(None),
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

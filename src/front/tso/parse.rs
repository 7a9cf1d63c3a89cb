//! Does the file follow the grammar? Recursive descent, one statement at a time.
//!
//! A statement that does not is reported once and skipped to the end of its line, so that one run finds all
//! mistakes. What follows from a mistake is not reported: a misspelt `thread` still opens a thread, a thread
//! without `end` ends where the next one begins, and garbage was reported by the lexer.
//! Statements are in `body`, expressions in `expr`; what names mean is not decided here.

mod body;
mod expr;

use super::ast::*;
use super::lex::{self, Kind, Token};
use crate::front::diagnostics::{Problem, Problems, Reported, Span};
use crate::model::PropertyKind;

/// Each one multiplies the cases of a property.
const MAX_QUANTIFIERS: usize = 8;
/// Longer words are cut short in messages.
const WORD_SHOWN: usize = 40;
/// What a token costs, with the part of the tree that it becomes.
const STEPS: usize = 4;

pub fn parse<'s>(source: &'s str, problems: &mut Problems<'s>) -> File<'s> {
    let tokens = lex::tokens(source, problems);
    let landmarks = landmarks(&tokens);
    let mut parser = Parser { source, tokens, landmarks, next: 0, depth: 0, problems };
    parser.file()
}

/// The places of every `thread` and `end`.
fn landmarks(tokens: &[Token]) -> Vec<usize> {
    let is_landmark = |t: &Token| matches!(t.kind, Kind::Thread | Kind::End);
    tokens.iter().enumerate().filter(|(_, t)| is_landmark(t)).map(|(i, _)| i).collect()
}

struct Parser<'s, 'p> {
    source: &'s str,
    tokens: Vec<Token>,
    landmarks: Vec<usize>,
    next: usize,
    /// How many calls deep the expression being read is nested.
    depth: usize,
    problems: &'p mut Problems<'s>,
}

type Parsed<T> = Result<T, Reported>;

impl<'s> Parser<'s, '_> {
    fn file(&mut self) -> File<'s> {
        let mut file = File::default();
        // Instructions outside threads come in runs, of which one report is enough.
        let mut lost = false;
        loop {
            match self.kind() {
                Kind::EndOfFile => return file,
                Kind::Newline | Kind::Semicolon => self.bump(),
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
    fn declaration_word(&mut self) -> Option<Kind> {
        let kind = self.kind();
        if lex::DECLARATIONS.iter().any(|(_, k)| *k == kind) {
            return Some(kind);
        }
        if kind != Kind::Name || !matches!(self.kind_after(1), Kind::Name | Kind::LeftBracket) {
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

    fn declaration(&mut self, kind: Kind, file: &mut File<'s>) {
        let first = self.next;
        let done = match kind {
            Kind::Shared => self.shared(file),
            Kind::Param => self.param(file),
            Kind::Thread => {
                self.thread(file);
                Ok(())
            }
            _ => self.property(kind, file),
        };
        if done.is_err() {
            self.skip_line();
            if matches!(kind, Kind::Shared | Kind::Param) {
                file.doubtful.extend(self.names_between(first, self.next));
            }
        }
    }

    /// Something that cannot stand outside a thread.
    fn lost_statement(&mut self, lost_before: bool) {
        let (kind, span) = (self.kind(), self.span());
        if !lost_before && kind != Kind::Garbage {
            let problem = match kind {
                Kind::End => Problem::error("`end` without a `thread`").at(span),
                Kind::RightBrace => Problem::error("`}` without a `repeat`").at(span),
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
            let size = match self.eat(Kind::LeftBracket) {
                Some(open) => {
                    let size = self.expr()?;
                    self.close(Kind::RightBracket, open)?;
                    Some(size)
                }
                None => None,
            };
            let init = match self.eat(Kind::Equals) {
                Some(_) => self.init()?,
                None => Init::Zero,
            };
            file.shared.push(Shared { name, size, init });
            if self.eat(Kind::Comma).is_none() {
                return self.end_of_statement();
            }
        }
    }

    fn init(&mut self) -> Parsed<Init<'s>> {
        let Some(open) = self.eat(Kind::LeftBrace) else {
            return Ok(Init::Each(self.expr()?));
        };
        let mut values = Vec::new();
        while self.kind() != Kind::RightBrace {
            values.push(self.expr()?);
            if self.eat(Kind::Comma).is_none() {
                break;
            }
        }
        self.close(Kind::RightBrace, open)?;
        Ok(Init::List(values))
    }

    fn param(&mut self, file: &mut File<'s>) -> Parsed<()> {
        self.bump();
        let name = self.name("the name of a parameter")?;
        self.expect(Kind::Equals, "`=` and the parameter's value")?;
        let value = self.expr()?;
        file.params.push(Param { name, value });
        self.end_of_statement()
    }

    fn property(&mut self, word: Kind, file: &mut File<'s>) -> Parsed<()> {
        let kind = match word {
            Kind::Forbid => PropertyKind::Forbid,
            Kind::Exists => PropertyKind::Exists,
            Kind::Forall => PropertyKind::Forall,
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
        if self.kind() != Kind::Name || self.kind_after(1) != Kind::Name {
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
        let range = match self.eat(Kind::In) {
            Some(_) => Some(self.range()?),
            None => None,
        };
        self.expect(Kind::Colon, "`:` and what is asked of each")?;
        Ok(Some(Quantifier { how_many, var, range }))
    }

    fn range(&mut self) -> Parsed<Range<'s>> {
        let start = self.span();
        let lo = self.expr()?;
        let bound = match self.kind() {
            Kind::Range => Bound::Excluded,
            Kind::RangeInclusive => Bound::Included,
            _ => return Err(self.unexpected("`..` or `..=` and the end of the range")),
        };
        self.bump();
        let hi = self.expr()?;
        Ok(Range { lo, hi, bound, span: start.to(self.last_span()) })
    }
}

/// The cursor, and the two ways to complain.
impl<'s> Parser<'s, '_> {
    fn kind(&self) -> Kind {
        self.tokens[self.next].kind
    }

    fn kind_after(&self, ahead: usize) -> Kind {
        self.tokens.get(self.next + ahead).map_or(Kind::EndOfFile, |t| t.kind)
    }

    fn span(&self) -> Span {
        self.tokens[self.next].span
    }

    fn last_span(&self) -> Span {
        self.tokens[self.next.saturating_sub(1)].span
    }

    fn text(&self) -> &'s str {
        let span = self.span();
        &self.source[span.start..span.end]
    }

    /// Never goes past the end of the file, and right there at a limit.
    fn bump(&mut self) {
        let last = self.tokens.len() - 1;
        self.next = match self.problems.spend(STEPS) {
            Ok(()) => (self.next + 1).min(last),
            Err(Reported) => last,
        };
    }

    fn eat(&mut self, kind: Kind) -> Option<Span> {
        let span = self.span();
        (self.kind() == kind).then(|| {
            self.bump();
            span
        })
    }

    fn expect(&mut self, kind: Kind, expected: &str) -> Parsed<Span> {
        self.eat(kind).ok_or_else(|| self.unexpected(expected))
    }

    /// Expects the partner of a bracket.
    fn close(&mut self, kind: Kind, open: Span) -> Parsed<Span> {
        let partner = match kind {
            Kind::RightBracket => "`]`",
            Kind::RightBrace => "`}`",
            _ => "`)`",
        };
        if self.kind() == kind {
            let span = self.span();
            self.bump();
            return Ok(span);
        }
        if self.kind() == Kind::Garbage {
            return Err(Reported);
        }
        let opened = &self.source[open.start..open.end];
        let problem = Problem::error(format!("expected {partner}, found {}", self.found()))
            .at(self.here())
            .label(format!("the `{opened}` is still open"));
        Err(self.problems.report(problem))
    }

    fn name(&mut self, expected: &str) -> Parsed<Name<'s>> {
        let (text, span) = (self.text(), self.span());
        if self.kind() == Kind::Name {
            self.bump();
            return Ok(Name { text, span });
        }
        if lex::KEYWORDS.contains(&text) {
            let problem = Problem::error(format!("`{text}` is a reserved word"))
                .at(span)
                .label(format!("expected {expected}"))
                .help(format!("`{text}_` would do"));
            return Err(self.problems.report(problem));
        }
        Err(self.unexpected(expected))
    }

    /// A statement ends with its line, before `;`, or before the `}` of a repeat on the same line.
    fn end_of_statement(&mut self) -> Parsed<()> {
        match self.kind() {
            Kind::Newline | Kind::Semicolon => {
                self.bump();
                Ok(())
            }
            Kind::EndOfFile | Kind::RightBrace => Ok(()),
            _ => Err(self.unexpected("the end of the line")),
        }
    }

    fn unexpected(&mut self, expected: &str) -> Reported {
        if self.kind() == Kind::Garbage {
            return Reported;
        }
        let problem = Problem::error(format!("expected {expected}, found {}", self.found())).at(self.here());
        self.problems.report(problem)
    }

    /// The current token, or the place right behind the last one if the line has ended.
    fn here(&self) -> Span {
        match self.kind() {
            Kind::Newline | Kind::EndOfFile if self.next > 0 => {
                let end = self.last_span().end;
                Span { start: end, end }
            }
            _ => self.span(),
        }
    }

    fn found(&self) -> String {
        match self.kind() {
            Kind::Newline => "the end of the line".to_string(),
            Kind::EndOfFile => "the end of the file".to_string(),
            _ => format!("`{}`", shorten(self.text())),
        }
    }

    fn names_between(&self, first: usize, end: usize) -> impl Iterator<Item = &'s str> + use<'s, '_> {
        let names = self.tokens[first..end].iter().filter(|t| t.kind == Kind::Name);
        names.map(|t| &self.source[t.span.start..t.span.end])
    }

    fn skip_line(&mut self) {
        while !matches!(self.kind(), Kind::Newline | Kind::EndOfFile) {
            self.bump();
        }
    }
}

fn shorten(word: &str) -> String {
    match word.char_indices().nth(WORD_SHOWN) {
        Some((cut, _)) => format!("{}…", &word[..cut]),
        None => word.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;

    /// The complaints about a file, each as `line: message`.
    fn check(source: &str, expect: &[&str]) {
        let limits = Limits::default();
        let mut problems = Problems::new(source, &limits);
        parse(source, &mut problems);
        let line = |offset: usize| source[..offset].matches('\n').count() + 1;
        let found: Vec<String> = problems
            .shown()
            .iter()
            .map(|d| format!("{}: {}", d.span.as_ref().map_or(0, |s| line(s.start)), d.message))
            .collect();
        assert_eq!(found, expect, "{source}");
    }

    fn check_body(body: &str, expect: &[&str]) {
        check(&format!("thread p\n{body}\nend\n"), expect);
    }

    #[test]
    fn every_statement_of_the_language_is_read() {
        check_body(
            "load r, [x]; store [x + 1], r * 2; fence; r = -1; r = any(0..=3); assume r; assert !r\n\
             l: goto l; if r == 1 goto l; choose l, m\n m:xchg r, [x], 1; cas r, [x], 0, 1; add r, [x], -1\n\
             lock; unlock; halt; nop",
            &[],
        );
        check("shared x, y = 3, a[4], b[3] = 7, c[4] = {1, 2}, d[2] = {}\nparam N = 2", &[]);
        check("thread p[i in 1..=N]; nop; end\nthread q[7]; end; thread r\nend", &[]);
        check_body("repeat k in 0..N { store [x], k; l: nop }\nrepeat k in 0..2 {\n}", &[]);
        check(
            "forbid two i: p[i]@c\nnever all i in 1..=2: some j: p[i].r == [x] + 1\nexists 1\nforall 0",
            &[],
        );
    }

    #[test]
    fn each_line_has_its_own_error() {
        check_body(
            "lod r, [x]\nload r [x]\nstore x, 1\nnop nop\ngoto 3",
            &[
                "2: unknown instruction `lod`",
                "3: expected `,` as in `load r, [x]`, found `[`",
                "4: expected `[`, found `x`",
                "5: expected the end of the line, found `nop`",
                "6: expected a label, found `3`",
            ],
        );
    }

    #[test]
    fn a_missing_end_is_found_where_the_next_thread_begins() {
        check("thread p\nnop\nthread q\nend", &["1: thread `p` has no `end`"]);
        check("thread p\nnop\nforbid p@x\nthread q\nend", &["1: thread `p` has no `end`"]);
        check("thread p\nnop\n", &["1: thread `p` has no `end`"]);
    }

    #[test]
    fn a_declaration_inside_a_thread_does_not_end_it() {
        check("thread p\nshared x\nnop\nend", &["2: `shared` inside a thread"]);
    }

    #[test]
    fn a_stray_end_is_one_error() {
        check("end\nshared x", &["1: `end` without a `thread`"]);
        check("nop\nfence\nend", &["1: `nop` outside a thread"]);
    }

    #[test]
    fn a_misspelt_declaration_still_declares() {
        check("thred p\nnop\nend", &["1: unknown declaration `thred`"]);
        check("forbiden p@l", &["1: unknown declaration `forbiden`"]);
    }

    #[test]
    fn braces_are_matched_after_errors() {
        check_body("while r {\nnop\n}\nnop", &["2: unknown instruction `while`"]);
        check_body("repeat k in 0..3\nnop\n}", &["2: expected `{`, found the end of the line"]);
        check_body(
            "repeat k 0..3 {\nnop\n}",
            &["2: expected `in` and a range, as in `repeat k in 0..3 {`, found `0`"],
        );
        check_body("repeat k in 0..3 {\nnop", &["2: `repeat` has no `}`"]);
        check_body("nop }", &["2: `}` without a `repeat`"]);
    }

    #[test]
    fn reserved_words_are_no_names() {
        check("shared end", &["1: `end` is a reserved word"]);
        check_body(
            "load add, [x]\nr = fence",
            &["2: `add` is a reserved word", "3: expected an expression, found the reserved word `fence`"],
        );
        check_body("goto: nop", &["2: `goto` is a reserved word"]);
    }

    #[test]
    fn numbers_out_of_range_are_errors() {
        check_body("r = -9223372036854775808; r = 0xffffffffffffffff", &[]);
        check_body("r = 9223372036854775808", &["2: `9223372036854775808` does not fit 64 bits"]);
        check_body("r = 12ab", &["2: `12ab` is not a number"]);
    }

    #[test]
    fn unclosed_brackets_are_named() {
        check_body(
            "load r, [x\nr = (1 + 2",
            &["2: expected `]`, found the end of the line", "3: expected `)`, found the end of the line"],
        );
        check(
            "shared a[3\nshared b = {1\n",
            &["1: expected `]`, found the end of the line", "2: expected `}`, found the end of the line"],
        );
    }

    #[test]
    fn depth_is_bounded_and_length_is_not() {
        let many = 100_000;
        check_body(
            &format!("r = {}1{}", "(".repeat(many), ")".repeat(many)),
            &["2: this expression is nested too deeply"],
        );
        check_body(&format!("r = {}1", "- ".repeat(many)), &["2: this expression is nested too deeply"]);
        check_body(&format!("r = 1{}", " + 1".repeat(many)), &[]);
        check(&format!("never {}1", "all i: ".repeat(many)), &["1: too many quantifiers"]);
        let nested = format!("{}{}", "repeat k in 0..1 {\n".repeat(33), "}\n".repeat(33));
        check_body(&nested, &["34: `repeat` is nested too deeply"]);
    }

    #[test]
    fn garbage_is_reported_once_per_run_and_nothing_follows_from_it() {
        check_body(
            "load r, [x] $$\nr = ? + 1\nnop",
            &["2: `$$` means nothing here", "3: `?` means nothing here"],
        );
        check("\0\0", &["1: `\\0\\0` means nothing here"]);
        check("thread p\r\nnop\r\nend\r\n", &[]);
    }

    #[test]
    fn labels_have_no_index() {
        check_body("l[3]: nop", &["2: labels have no index"]);
    }
}

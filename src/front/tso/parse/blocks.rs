//! What has statements inside? Threads, `inline`, `repeat`, `if` and `while` with braces.
//!
//! Whatever is wrong with a head, its body is read, so that braces and `end`s stay matched.

use super::TsoParser;
use super::body::Encloser;
use crate::front::diagnostics::{Parsed, Problem, Reported, Span, shorten};
use crate::front::tso::ast::{Arm, Expr, File, Inline, Name, Range, Stmt, ThreadDecl, ThreadIndex};
use crate::front::tso::lex::TsoKind;

/// Bodies inside bodies; more would unfold to more than anyone can check.
pub(crate) const MAX_NESTING: usize = 32;

/// How many tokens ahead a closing brace is looked for.
const SOON: usize = 1000;

impl<'s> TsoParser<'s, '_> {
    pub(super) fn thread(&mut self, file: &mut File<'s>) {
        let (header, body) = self.ended("thread", Encloser::Thread, Self::thread_header, file);
        if let Ok((name, index)) = header {
            file.threads.push(ThreadDecl { name, index, body });
        }
    }

    pub(super) fn inline(&mut self, file: &mut File<'s>) {
        let (header, body) = self.ended("inline", Encloser::Inline, Self::inline_header, file);
        if let Ok((name, params)) = header {
            file.inlines.push(Inline { name, params, body });
        }
    }

    /// A head, a body and `end`.
    pub(super) fn ended<T>(
        &mut self,
        what: &str,
        encloser: Encloser,
        header: fn(&mut Self) -> Parsed<(Name<'s>, T)>,
        file: &mut File<'s>,
    ) -> (Parsed<(Name<'s>, T)>, Vec<Stmt<'s>>) {
        let start = self.span();
        self.bump();
        let after_word = self.next;
        let header = header(self);
        if header.is_err() {
            self.skip_line();
            file.doubtful.extend(self.names_between(after_word, self.next));
        }
        let body = self.body(encloser, 0, file);
        if self.eat(TsoKind::End).is_none() {
            if let Ok((name, _)) = &header {
                let open = match self.kind() {
                    TsoKind::EndOfFile => "still open at the end of the file",
                    _ => "still open where the next declaration begins",
                };
                let problem = Problem::error(format!("{what} `{}` has no `end`", shorten(name.text)))
                    .at(start)
                    .label(open);
                self.problems.report(problem);
            }
        } else if self.end_of_statement().is_err() {
            self.skip_line();
        }
        (header, body)
    }

    fn thread_header(&mut self) -> Parsed<(Name<'s>, ThreadIndex<'s>)> {
        let name = self.name("the name of the thread")?;
        let index = match self.eat(TsoKind::LeftBracket) {
            Some(open) => {
                let index = self.thread_index()?;
                self.close(TsoKind::RightBracket, open)?;
                index
            }
            None => ThreadIndex::None,
        };
        self.end_of_statement()?;
        Ok((name, index))
    }

    fn thread_index(&mut self) -> Parsed<ThreadIndex<'s>> {
        if self.kind() == TsoKind::Name && self.kind_after(1) == TsoKind::In {
            let var = self.name("the name of the index")?;
            self.bump();
            return Ok(ThreadIndex::Each(var, self.range()?));
        }
        let index = self.expr()?;
        if matches!(self.kind(), TsoKind::Range | TsoKind::RangeInclusive) {
            let problem = Problem::error("the index of the threads has no name")
                .at(index.span())
                .help("write `thread p[i in 1..=3]`, and `i` in its body");
            return Err(self.problems.report(problem));
        }
        Ok(ThreadIndex::One(index))
    }

    fn inline_header(&mut self) -> Parsed<(Name<'s>, Vec<Name<'s>>)> {
        let name = self.name("the name of the `inline`")?;
        let params = self.params("`(` as in `inline acquire(l)`")?;
        self.end_of_statement()?;
        Ok((name, params))
    }

    pub(super) fn params(&mut self, expected: &str) -> Parsed<Vec<Name<'s>>> {
        let open = self.expect(TsoKind::LeftParen, expected)?;
        let mut params = Vec::new();
        while self.kind() != TsoKind::RightParen {
            params.push(self.name("the name of a parameter")?);
            if self.eat(TsoKind::Comma).is_none() {
                break;
            }
        }
        self.close(TsoKind::RightParen, open)?;
        Ok(params)
    }

    /// `NAME(e, …)`
    pub(super) fn call(&mut self) -> Parsed<Stmt<'s>> {
        let name = self.name("the name of an `inline`")?;
        let open = self.expect(TsoKind::LeftParen, "`(`")?;
        let mut args: Vec<Expr<'s>> = Vec::new();
        while self.kind() != TsoKind::RightParen {
            args.push(self.expr()?);
            if self.eat(TsoKind::Comma).is_none() {
                break;
            }
        }
        let close = self.close(TsoKind::RightParen, open)?;
        self.end_of_statement()?;
        Ok(Stmt::Call { name, args, span: name.span.to(close) })
    }

    pub(super) fn repeat(&mut self, level: usize, file: &mut File<'s>) -> Parsed<Stmt<'s>> {
        let start = self.span();
        let (header, body) = self.braced("repeat", level, Self::repeat_header, file)?;
        if body.is_closed {
            self.end_of_statement()?;
        } else {
            self.unclosed("repeat", start);
        }
        header.map(|(var, range)| Stmt::Repeat { var, range, body: body.statements })
    }

    fn repeat_header(&mut self) -> Parsed<(Name<'s>, Range<'s>)> {
        self.bump();
        let var = self.name("the name of a counter, as in `repeat k in 0..3 {`")?;
        self.expect(TsoKind::In, "`in` and a range, as in `repeat k in 0..3 {`")?;
        let range = self.range()?;
        self.expect(TsoKind::LeftBrace, "`{`")?;
        Ok((var, range))
    }

    pub(super) fn while_loop(&mut self, level: usize, file: &mut File<'s>) -> Parsed<Stmt<'s>> {
        let (arm, closed) = self.arm("while", level, file)?;
        if closed {
            self.end_of_statement()?;
        }
        arm.map(Stmt::While)
    }

    /// `if … { … }`, behind which `else` may stand, on the same line or the next.
    pub(super) fn branch(&mut self, level: usize, file: &mut File<'s>) -> Parsed<Stmt<'s>> {
        let mut arms = Vec::new();
        let mut otherwise = Vec::new();
        loop {
            let (arm, closed) = self.arm("if", level, file)?;
            arms.push(arm);
            if !closed {
                break;
            }
            if !self.eat_else() {
                self.end_of_statement()?;
                break;
            }
            if self.kind() == TsoKind::If {
                continue;
            }
            let start = self.span();
            let (_, body) = self.braced("else", level, Self::left_brace, file)?;
            if body.is_closed {
                self.end_of_statement()?;
            } else {
                self.unclosed("else", start);
            }
            otherwise = body.statements;
            break;
        }
        let arms = arms.into_iter().collect::<Parsed<Vec<Arm>>>()?;
        Ok(Stmt::Branch { arms, otherwise })
    }

    fn left_brace(&mut self) -> Parsed<()> {
        self.expect(TsoKind::LeftBrace, "`{`").map(|_| ())
    }

    fn eat_else(&mut self) -> bool {
        let before = self.next;
        self.skip_newlines();
        let is_else = self.kind() == TsoKind::Name
            && self.text() == "else"
            && matches!(self.kind_after(1), TsoKind::LeftBrace | TsoKind::If);
        match is_else {
            true => self.bump(),
            false => self.next = before,
        }
        is_else
    }

    /// A word, its condition and its body; whether the body is closed.
    fn arm(&mut self, word: &str, level: usize, file: &mut File<'s>) -> Parsed<(Parsed<Arm<'s>>, bool)> {
        let start = self.span();
        let (header, body) = self.braced(word, level, Self::condition_header, file)?;
        if !body.is_closed {
            self.unclosed(word, start);
        }
        let arm = header.map(|condition| {
            let head = start.to(condition.span());
            Arm { condition, head, body: body.statements }
        });
        Ok((arm, body.is_closed))
    }

    fn condition_header(&mut self) -> Parsed<Expr<'s>> {
        self.bump();
        let condition = self.condition()?;
        self.expect(TsoKind::LeftBrace, "`{`")?;
        Ok(condition)
    }

    fn unclosed(&mut self, word: &str, start: Span) {
        let problem =
            Problem::error(format!("`{word}` has no `}}`")).at(start).label("still open at the thread's end");
        self.problems.report(problem);
    }

    /// A head and a body between braces. Nothing if not even a brace is found.
    fn braced<T>(
        &mut self,
        word: &str,
        level: usize,
        header: fn(&mut Self) -> Parsed<T>,
        file: &mut File<'s>,
    ) -> Parsed<(Parsed<T>, Braced<'s>)> {
        if level == MAX_NESTING {
            let problem = Problem::error(format!("`{word}` is nested too deeply")).at(self.span());
            return Err(self.problems.report(problem));
        }
        let header = header(self);
        if header.is_err() && !self.skip_to_brace() && !self.brace_closes_soon() {
            return Err(Reported);
        }
        let statements = self.body(Encloser::Braces, level + 1, file);
        let is_closed = self.eat(TsoKind::RightBrace).is_some();
        Ok((header, Braced { statements, is_closed }))
    }

    /// Is there a `}` to close before the thread's end, as if only the `{` had been forgotten?
    fn brace_closes_soon(&self) -> bool {
        let mut open = 0;
        for token in self.tokens[self.next..].iter().take(SOON) {
            match token.kind {
                TsoKind::End | TsoKind::Thread => return false,
                TsoKind::LeftBrace => open += 1,
                TsoKind::RightBrace if open == 0 => return true,
                TsoKind::RightBrace => open -= 1,
                _ => {}
            }
        }
        false
    }

    /// After a bad header, the body may still be readable.
    fn skip_to_brace(&mut self) -> bool {
        while !matches!(self.kind(), TsoKind::LeftBrace | TsoKind::Newline | TsoKind::EndOfFile) {
            self.bump();
        }
        self.eat(TsoKind::LeftBrace).is_some()
    }
}

struct Braced<'s> {
    statements: Vec<Stmt<'s>>,
    is_closed: bool,
}

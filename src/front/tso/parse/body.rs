//! What stands between `thread` and `end`? Labels, instructions and `repeat`.
//!
//! Here most mistakes are made, so most of the advice is here too: words of other assembly languages,
//! assignments to memory, memory read without brackets.

use super::TsoParser;
use crate::front::diagnostics::{Parsed, Problem, Reported, Span, shorten};
use crate::front::tso::ast::{Expr, File, Name, Op, Range, Stmt, ThreadDecl, ThreadIndex};
use crate::front::tso::lex::{self, TsoKind};

/// Bodies inside bodies; more would unfold to more than anyone can check.
const MAX_REPEATS: usize = 32;

/// How many tokens ahead a closing brace is looked for.
const SOON: usize = 1000;

/// What other languages call our instructions.
const FOREIGN: [(&str, &str); 10] = [
    ("mfence", "fence"),
    ("jmp", "goto"),
    ("br", "goto"),
    ("xadd", "add"),
    ("cmpxchg", "cas"),
    ("mov", "load` or `store"),
    ("ld", "load"),
    ("st", "store"),
    ("skip", "nop"),
    ("while", "if … goto"),
];

/// Who encloses the statements being read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Encloser {
    Thread,
    Repeat,
}

impl<'s> TsoParser<'s, '_> {
    pub(super) fn thread(&mut self, file: &mut File<'s>) {
        let start = self.span();
        self.bump();
        let after_word = self.next;
        let header = self.thread_header();
        if header.is_err() {
            self.skip_line();
            file.doubtful.extend(self.names_between(after_word, self.next));
        }
        let body = self.body(Encloser::Thread, 0, file);
        if self.eat(TsoKind::End).is_none() {
            if let Ok((name, _)) = &header {
                let problem = Problem::error(format!("thread `{}` has no `end`", shorten(name.text)))
                    .at(start)
                    .label("still open where the next declaration begins");
                self.problems.report(problem);
            }
        } else if self.end_of_statement().is_err() {
            self.skip_line();
        }
        if let Ok((name, index)) = header {
            file.threads.push(ThreadDecl { name, index, body });
        }
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

    /// Statements up to, and without, what closes them. `file` takes declarations that strayed into a thread.
    fn body(&mut self, encloser: Encloser, level: usize, file: &mut File<'s>) -> Vec<Stmt<'s>> {
        let mut statements = Vec::new();
        // Braces that were skipped as part of a bad statement; theirs are the next closing ones.
        let mut open_braces = 0;
        loop {
            match self.kind() {
                TsoKind::Newline | TsoKind::Semicolon => self.bump(),
                TsoKind::EndOfFile | TsoKind::End | TsoKind::Thread => return statements,
                TsoKind::RightBrace if open_braces > 0 => {
                    open_braces -= 1;
                    self.bump();
                }
                TsoKind::RightBrace if encloser == Encloser::Repeat => return statements,
                TsoKind::RightBrace => {
                    let problem = Problem::error("`}` without a `repeat`").at(self.span());
                    self.problems.report(problem);
                    self.bump();
                }
                kind if lex::DECLARATIONS.iter().any(|(_, k)| *k == kind) => {
                    if !self.thread_goes_on() {
                        return statements;
                    }
                    self.stray_declaration(kind, file);
                    statements.push(Stmt::Bad);
                }
                _ => match self.statement(level, file) {
                    Ok(statement) => statements.push(statement),
                    Err(Reported) => {
                        statements.push(Stmt::Bad);
                        open_braces += self.skip_statement();
                    }
                },
            }
        }
    }

    /// Is there an `end` before the next `thread`? Then a declaration here stands inside a thread; otherwise
    /// the thread's `end` is missing.
    fn thread_goes_on(&self) -> bool {
        let next = self.landmarks.partition_point(|&i| i < self.next);
        self.landmarks.get(next).is_some_and(|&i| self.tokens[i].kind == TsoKind::End)
    }

    fn stray_declaration(&mut self, kind: TsoKind, file: &mut File<'s>) {
        let problem = Problem::error(format!("{} inside a thread", self.found()))
            .at(self.span())
            .help("declarations and properties stand outside threads");
        self.problems.report(problem);
        self.declaration(kind, file);
    }

    /// Goes to the end of a statement that could not be read, and counts the braces opened on the way.
    fn skip_statement(&mut self) -> usize {
        let mut open: usize = 0;
        loop {
            match self.kind() {
                TsoKind::Newline | TsoKind::EndOfFile | TsoKind::End | TsoKind::Thread => return open,
                TsoKind::Semicolon if open == 0 => return open,
                TsoKind::RightBrace if open == 0 => return open,
                TsoKind::RightBrace => open -= 1,
                TsoKind::LeftBrace => open += 1,
                _ => {}
            }
            self.bump();
        }
    }

    fn statement(&mut self, level: usize, file: &mut File<'s>) -> Parsed<Stmt<'s>> {
        match (self.kind(), self.kind_after(1)) {
            (TsoKind::Repeat, _) => self.repeat(level, file),
            (_, TsoKind::Colon) => self.label(),
            _ => {
                let start = self.span();
                let op = self.instruction()?;
                let span = start.to(self.last_span());
                self.end_of_statement()?;
                Ok(Stmt::Instr(op, span))
            }
        }
    }

    /// More may follow a label on its line.
    fn label(&mut self) -> Parsed<Stmt<'s>> {
        let name = self.name("a label")?;
        self.bump();
        Ok(Stmt::Label(name))
    }

    fn repeat(&mut self, level: usize, file: &mut File<'s>) -> Parsed<Stmt<'s>> {
        let start = self.span();
        if level == MAX_REPEATS {
            let problem = Problem::error("`repeat` is nested too deeply").at(start);
            return Err(self.problems.report(problem));
        }
        self.bump();
        let header = self.repeat_header();
        if header.is_err() && !self.skip_to_brace() && !self.brace_closes_soon() {
            return Err(Reported);
        }
        let body = self.body(Encloser::Repeat, level + 1, file);
        if self.eat(TsoKind::RightBrace).is_none() {
            let problem =
                Problem::error("`repeat` has no `}`").at(start).label("still open at the thread's end");
            self.problems.report(problem);
        } else {
            self.end_of_statement()?;
        }
        header.map(|(var, range)| Stmt::Repeat { var, range, body })
    }

    fn repeat_header(&mut self) -> Parsed<(Name<'s>, Range<'s>)> {
        let var = self.name("the name of a counter, as in `repeat k in 0..3 {`")?;
        self.expect(TsoKind::In, "`in` and a range, as in `repeat k in 0..3 {`")?;
        let range = self.range()?;
        self.expect(TsoKind::LeftBrace, "`{`")?;
        Ok((var, range))
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

    fn instruction(&mut self) -> Parsed<Op<'s>> {
        let kind = self.kind();
        if kind == TsoKind::Name {
            return self.assignment();
        }
        if kind == TsoKind::LeftBracket {
            return Err(self.store_like_an_assignment());
        }
        let simple = match kind {
            TsoKind::Fence => Some(Op::Fence),
            TsoKind::Lock => Some(Op::Lock),
            TsoKind::Unlock => Some(Op::Unlock),
            TsoKind::Halt => Some(Op::Halt),
            TsoKind::Nop => Some(Op::Nop),
            _ => None,
        };
        if let Some(op) = simple {
            self.bump();
            return Ok(op);
        }
        match kind {
            TsoKind::Load | TsoKind::Xchg | TsoKind::Add | TsoKind::Cas => self.read(kind),
            TsoKind::Store => {
                self.bump();
                let address = self.address("store [x], 1")?;
                Ok(Op::Store(address, self.operand("store [x], 1")?))
            }
            TsoKind::Assume => {
                self.bump();
                Ok(Op::Assume(self.expr()?))
            }
            TsoKind::Assert => {
                self.bump();
                Ok(Op::Assert(self.expr()?))
            }
            TsoKind::Goto | TsoKind::If | TsoKind::Choose => self.jump(kind),
            _ => Err(self.unexpected("an instruction or a label")),
        }
    }

    /// The instructions that put what they read into a register.
    fn read(&mut self, kind: TsoKind) -> Parsed<Op<'s>> {
        let example = match kind {
            TsoKind::Load => "load r, [x]",
            TsoKind::Xchg => "xchg r, [x], 1",
            TsoKind::Add => "add r, [x], 1",
            _ => "cas r, [x], 0, 1",
        };
        self.bump();
        let register = self.name("a register")?;
        self.comma(example)?;
        let address = self.address(example)?;
        Ok(match kind {
            TsoKind::Load => Op::Load(register, address),
            TsoKind::Xchg => Op::Xchg(register, address, self.operand(example)?),
            TsoKind::Add => Op::Add(register, address, self.operand(example)?),
            _ => Op::Cas(register, address, self.operand(example)?, self.operand(example)?),
        })
    }

    fn jump(&mut self, kind: TsoKind) -> Parsed<Op<'s>> {
        self.bump();
        match kind {
            TsoKind::Goto => Ok(Op::Goto(self.name("a label")?)),
            TsoKind::If => {
                let condition = self.expr()?;
                self.expect(TsoKind::Goto, "`goto` and a label")?;
                Ok(Op::If(condition, self.name("a label")?))
            }
            _ => {
                let mut labels = vec![self.name("a label")?];
                while self.eat(TsoKind::Comma).is_some() {
                    labels.push(self.name("a label")?);
                }
                Ok(Op::Choose(labels))
            }
        }
    }

    fn comma(&mut self, example: &str) -> Parsed<()> {
        self.expect(TsoKind::Comma, &format!("`,` as in `{example}`")).map(|_| ())
    }

    fn operand(&mut self, example: &str) -> Parsed<Expr<'s>> {
        self.comma(example)?;
        self.expr()
    }

    fn address(&mut self, example: &str) -> Parsed<Expr<'s>> {
        let Some(open) = self.eat(TsoKind::LeftBracket) else {
            if matches!(self.kind(), TsoKind::Name | TsoKind::Number) {
                let problem = Problem::error(format!("expected `[`, found {}", self.found()))
                    .at(self.span())
                    .label("an address stands in brackets")
                    .help(format!("as in `{example}`, or `[a + 2]` for a cell of an array"));
                return Err(self.problems.report(problem));
            }
            return Err(self.unexpected(&format!("`[` as in `{example}`")));
        };
        let address = self.expr()?;
        self.close(TsoKind::RightBracket, open)?;
        Ok(address)
    }

    /// `r = e`, `r = any(lo..hi)`, or a word that is no instruction.
    fn assignment(&mut self) -> Parsed<Op<'s>> {
        let name = Name { text: self.text(), span: self.span() };
        self.bump();
        if self.eat(TsoKind::Equals).is_none() {
            return Err(self.not_an_assignment(name));
        }
        match self.kind() {
            TsoKind::Any => {
                self.bump();
                let open = self.expect(TsoKind::LeftParen, "`(` as in `any(0..3)`")?;
                let range = self.range()?;
                self.close(TsoKind::RightParen, open)?;
                Ok(Op::Any(name, range))
            }
            TsoKind::LeftBracket => {
                let address = self.expr()?;
                let problem = Problem::error("memory is not read by an assignment").at(address.span());
                Err(self.problems.report(problem.help(format!(
                    "write `load {}, {}`",
                    name.text,
                    self.source[address.span().start..address.span().end].trim()
                ))))
            }
            _ => Ok(Op::Assign(name, self.expr()?)),
        }
    }

    fn not_an_assignment(&mut self, name: Name<'s>) -> Reported {
        let word = name.text;
        let problem = match self.kind() {
            TsoKind::EqualsEquals => {
                Problem::error("a comparison is not an instruction").at(self.span()).help(format!(
                    "`{word} = …` assigns; `assume {word} == …` waits; `assert {word} == …` checks"
                ))
            }
            TsoKind::LeftBracket if self.colon_follows_the_index() => {
                Problem::error("labels have no index").at(name.span)
            }
            _ => {
                let foreign =
                    FOREIGN.iter().find(|(theirs, _)| *theirs == word).map(|(_, ours)| ours.to_string());
                let meant = foreign.or_else(|| self.problems.nearest(word, lex::INSTRUCTIONS));
                Problem::error(format!("unknown instruction `{}`", shorten(word)))
                    .at(name.span)
                    .suggest(meant)
            }
        };
        self.problems.report(problem)
    }

    fn colon_follows_the_index(&self) -> bool {
        self.kind_after(2) == TsoKind::RightBracket && self.kind_after(3) == TsoKind::Colon
    }

    /// `[x] = 1`
    fn store_like_an_assignment(&mut self) -> Reported {
        let span = self.span();
        let problem = Problem::error("expected an instruction or a label, found `[`").at(span);
        let written = self.statement_text(span);
        match written.split_once('=') {
            Some((address, value)) if !value.starts_with('=') => self.problems.report(problem.help(format!(
                "write `store {}, {}`",
                shorten(address.trim()),
                shorten(value.trim())
            ))),
            _ => self.problems.report(problem),
        }
    }

    fn statement_text(&self, from: Span) -> &'s str {
        let rest = &self.tokens[self.next..];
        let ends = |k: TsoKind| matches!(k, TsoKind::Newline | TsoKind::Semicolon | TsoKind::EndOfFile);
        let last = rest.iter().take_while(|t| !ends(t.kind)).last().map_or(from, |t| t.span);
        &self.source[from.start..last.end]
    }
}

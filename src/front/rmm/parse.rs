//! Does the file follow the grammar? Recursive descent over the tokens that macros left.
//!
//! A statement or declaration that does not is reported once and skipped, so that one run finds all mistakes.
//! Statements are in `stmt`, expressions in `expr`; what names mean is not decided here.

mod expr;
mod stmt;

use super::ast::*;
use super::lex::{RESERVED, RmmKind, RmmToken};
use crate::analysis::interval::Interval;
use crate::front::diagnostics::{Parsed, Problem, Problems, Reported, Span, shorten};
use crate::model::{MAX_THREADS, Value};
use std::collections::HashSet;

const SECTIONS: [&str; 5] = ["process", "data", "registers", "text", "predicates"];
/// Statements inside statements, or conditions inside conditions.
const MAX_NESTING: usize = 100;
/// What a token costs, with the part of the tree that it becomes.
const STEPS: usize = 4;

pub(crate) fn parse<'s>(tokens: Vec<RmmToken<'s>>, problems: &mut Problems<'s>) -> File<'s> {
    let mut parser =
        RmmParser { tokens, next: 0, depth: 0, operators: 0, doubtful: HashSet::new(), problems };
    let mut file = parser.file();
    file.doubtful = parser.doubtful;
    file
}

struct RmmParser<'s, 'p> {
    tokens: Vec<RmmToken<'s>>,
    next: usize,
    depth: usize,
    /// Of the sum that is being read.
    operators: usize,
    doubtful: HashSet<&'s str>,
    problems: &'p mut Problems<'s>,
}

impl<'s> RmmParser<'s, '_> {
    fn file(&mut self) -> File<'s> {
        let mut file = File::default();
        if self.eat("forbidden").is_some() {
            self.goals(&mut file.goals);
        } else {
            self.no_goals();
        }
        if self.eat("predicates").is_some() {
            // Hints for an abstraction of another tool.
            self.skip_until(|t| t.is("data") || t.is("process"));
        }
        if self.at("data") {
            file.globals = self.section("a memory location");
        }
        while self.kind() != RmmKind::EndOfFile {
            match self.eat("process") {
                Some(span) => {
                    let process = self.process(span);
                    file.processes.extend(process);
                }
                None => {
                    self.unexpected_word("`process`", &["process", "data"]);
                    self.skip_until(|t| t.is("process"));
                }
            }
        }
        file
    }

    fn no_goals(&mut self) {
        let problem = Problem::error(format!("expected `forbidden`, found {}", self.found()));
        let meant = self.problems.nearest(self.token().text, ["forbidden"]);
        let help = "a file begins with the labels that must not be reached together: `forbidden CS CS`";
        let problem = match meant {
            Some(meant) => problem.suggest(Some(meant)),
            None => problem.help(help),
        };
        self.complain(problem.at(self.token().span));
        self.skip_until(|t| ["data", "process", "predicates"].iter().any(|w| t.is(w)));
    }

    fn goals(&mut self, goals: &mut Vec<Goal<'s>>) {
        loop {
            let (mut entries, first) = (Vec::new(), self.next);
            while self.token().is_name() || self.at("*") {
                let token = self.bump();
                entries.push(token.is_name().then_some(Name { text: token.text, span: token.span }));
            }
            if !self.at(";") {
                self.after_goal(&mut entries);
            }
            if entries.is_empty() {
                self.unexpected("a label of each process, or `*`");
            }
            let span = self.tokens[first].span.to(self.last_span());
            goals.push(Goal { entries, span });
            if self.eat(";").is_none() {
                return;
            }
        }
    }

    /// A label that was meant to begin the next section, or something that is no label.
    fn after_goal(&mut self, entries: &mut Vec<Option<Name<'s>>>) {
        const NEXT: [&str; 3] = ["process", "data", "predicates"];
        // Behind a misspelt `data` comes a name, and `=`.
        let back = if self.at("=") { 2 } else { 1 };
        let last = entries.len().checked_sub(back).and_then(|i| entries[i]);
        let meant = last.and_then(|last| self.problems.nearest(last.text, NEXT));
        let (begins, ends) = (self.at("process") || self.at("predicates"), self.kind() == RmmKind::EndOfFile);
        match (last, NEXT.into_iter().find(|w| Some(*w) == meant.as_deref())) {
            // Nothing else can stand between a misspelt `process` and these.
            (Some(last), Some(word)) if !begins && !ends => {
                let problem =
                    Problem::error(format!("unknown section `{}`", shorten(last.text))).at(last.span);
                self.complain(problem.suggest(meant));
                entries.truncate(entries.len() - back);
                self.next -= back;
                self.tokens[self.next].text = word;
            }
            _ if begins || ends || self.at("data") => {}
            _ => {
                self.unexpected("a label, `*` or `;`");
                self.skip_until(|t| t.is("data") || t.is("process"));
            }
        }
    }

    fn process(&mut self, span: Span) -> Option<Process<'s>> {
        let copies = self.copies().unwrap_or(1);
        let (mut locals, mut registers) = (None, None);
        while self.eat("text").is_none() {
            let (section, what) = match self.token().text {
                "data" => (&mut locals, "a memory location"),
                "registers" => (&mut registers, "a register"),
                _ => {
                    self.unexpected_word("`data`, `registers` or `text`", &["data", "registers", "text"]);
                    self.skip_until(|t| ["data", "registers", "text", "process"].iter().any(|w| t.is(w)));
                    if self.at("process") || self.kind() == RmmKind::EndOfFile {
                        return None;
                    }
                    continue;
                }
            };
            if section.is_some() {
                let problem = Problem::error(format!("a second `{}` section", self.token().text));
                self.complain(problem.at(self.token().span).label("a process has one at most"));
            }
            *section = Some(self.section(what));
        }
        let body = self.statements();
        if !self.at("process") && self.kind() != RmmKind::EndOfFile {
            self.after_statements();
        }
        let (locals, registers) = (locals.unwrap_or_default(), registers.unwrap_or_default());
        Some(Process { span, copies, locals, registers, body })
    }

    /// A misspelt `process`, or something that goes with no statement.
    fn after_statements(&mut self) {
        self.unexpected_word("`;` and a statement, or `process`", &["process"]);
        if self.token().is_name() && self.problems.nearest(self.token().text, ["process"]).is_some() {
            self.tokens[self.next].text = "process";
        }
        self.skip_until(|t| t.is("process"));
    }

    fn copies(&mut self) -> Parsed<usize> {
        if self.eat("(").is_none() {
            return Ok(1);
        }
        let span = self.token().span;
        let number = self.natural("how many processes there are")?;
        self.expect(")", "`)`")?;
        usize::try_from(number).ok().filter(|n| *n <= MAX_THREADS).ok_or_else(|| {
            let problem = Problem::error(format!("a program has at most {MAX_THREADS} processes"));
            self.complain(problem.at(span))
        })
    }

    /// One keyword and the declarations behind it.
    fn section(&mut self, what: &str) -> Vec<Decl<'s>> {
        let keyword = self.bump();
        let kind = if keyword.is("registers") { RmmKind::Register } else { RmmKind::Word };
        let mut decls = Vec::new();
        let mut tried = false;
        while self.kind() == kind && (kind == RmmKind::Register || self.token().is_name()) {
            tried = true;
            match self.declaration() {
                Ok(decl) => decls.push(decl),
                Err(_) => self.skip_declaration(),
            }
            if self.at(",") {
                let problem = Problem::error("no comma between declarations").at(self.token().span);
                self.complain(problem.help("they stand behind each other: `x = 0 y = 1`"));
                self.bump();
            }
        }
        if !tried {
            self.unexpected(&format!(
                "{what}, as in `{}`",
                if kind == RmmKind::Word { "x = 0" } else { "$r = 0" }
            ));
        }
        decls
    }

    fn skip_declaration(&mut self) {
        while self.kind() != RmmKind::EndOfFile && !SECTIONS.iter().any(|w| self.at(w)) {
            let next_begins = self.tokens.get(self.next + 1).is_some_and(|t| t.is("="));
            if matches!(self.kind(), RmmKind::Word | RmmKind::Register) && next_begins {
                return;
            }
            self.give_up_token();
        }
    }

    fn declaration(&mut self) -> Parsed<Decl<'s>> {
        let token = self.bump();
        let name = Name { text: token.text, span: token.span };
        self.doubtful.insert(name.text);
        self.expect("=", "`=` and the initial value")?;
        let value = self.token().span;
        let init = match self.eat("*") {
            Some(_) => None,
            None => Some(self.integer("the initial value, or `*` for any")?),
        };
        let domain = match self.eat(":") {
            Some(_) => self.domain()?,
            None => Interval::FULL,
        };
        self.doubtful.remove(name.text);
        if init.is_some_and(|v| v < domain.lo || v > domain.hi) {
            let problem = Problem::error("the initial value lies outside the domain").at(value);
            self.complain(problem.label(format!("not from {} to {}", domain.lo, domain.hi)));
        }
        Ok(Decl { name, init, domain })
    }

    fn domain(&mut self) -> Parsed<Interval> {
        if self.eat("Z").is_some() {
            return Ok(Interval::FULL);
        }
        let open = self.expect("[", "a domain, as in `[0:3]`, or `Z`")?;
        let lo = self.integer("the smallest value")?;
        self.expect(":", "`:` and the largest value")?;
        let hi = self.integer("the largest value")?;
        let close = self.expect("]", "`]`")?;
        if lo > hi {
            let problem = Problem::error("this domain is empty").at(open.to(close));
            return Err(self.complain(problem));
        }
        Ok(Interval { lo, hi })
    }

    fn integer(&mut self, expected: &str) -> Parsed<Value> {
        match self.eat("-") {
            Some(_) => Ok(-self.natural(expected)?),
            None => self.natural(expected),
        }
    }

    fn natural(&mut self, expected: &str) -> Parsed<Value> {
        if self.kind() != RmmKind::Number {
            return Err(self.unexpected(expected));
        }
        let token = self.bump();
        token.text.parse().map_err(|_| {
            let problem = Problem::error(format!("`{}` does not fit 64 bits", shorten(token.text)));
            self.complain(problem.at(token.span))
        })
    }
}

/// The cursor, and the ways to complain.
impl<'s> RmmParser<'s, '_> {
    fn token(&self) -> RmmToken<'s> {
        self.tokens[self.next]
    }

    fn kind(&self) -> RmmKind {
        self.token().kind
    }

    fn at(&self, text: &str) -> bool {
        self.token().is(text)
    }

    fn follows(&self, text: &str) -> bool {
        self.tokens.get(self.next + 1).is_some_and(|t| t.is(text))
    }

    /// Never goes past the end of the file, and right there at a limit.
    fn bump(&mut self) -> RmmToken<'s> {
        let (token, last) = (self.token(), self.tokens.len() - 1);
        self.next = match self.problems.spend(STEPS) {
            Ok(()) => (self.next + 1).min(last),
            Err(Reported) => last,
        };
        token
    }

    fn eat(&mut self, text: &str) -> Option<Span> {
        self.at(text).then(|| self.bump().span)
    }

    fn expect(&mut self, text: &str, expected: &str) -> Parsed<Span> {
        match self.eat(text) {
            Some(span) => Ok(span),
            None => Err(self.unexpected(expected)),
        }
    }

    fn last_span(&self) -> Span {
        self.tokens[self.next.saturating_sub(1)].span
    }

    /// From a token to the last one read, if macros left them in order.
    fn since(&self, first: usize) -> Span {
        let (start, end) = (self.tokens[first].span, self.last_span());
        if start.start <= end.start { start.to(end) } else { start }
    }

    fn unexpected(&mut self, expected: &str) -> Reported {
        if self.kind() == RmmKind::Garbage {
            return Reported;
        }
        let problem = Problem::error(format!("expected {expected}, found {}", self.found()));
        self.complain(problem.at(self.here()))
    }

    /// The same where one of these words could have been meant.
    fn unexpected_word(&mut self, expected: &str, words: &[&str]) -> Reported {
        if self.kind() == RmmKind::Garbage {
            return Reported;
        }
        let meant = match self.kind() {
            RmmKind::Word => self.problems.nearest(self.token().text, words.iter().copied()),
            _ => None,
        };
        let problem = Problem::error(format!("expected {expected}, found {}", self.found()));
        self.complain(problem.at(self.here()).suggest(meant))
    }

    /// Reports, and says which call of a macro this is in.
    fn complain(&mut self, problem: Problem) -> Reported {
        let call = self.token().call;
        match call {
            Some(call) => {
                let line = self.problems.line(call);
                self.problems.report(problem.note(format!("in the macro called on line {line}")))
            }
            None => self.problems.report(problem),
        }
    }

    /// The current token, or the place right behind the last one if the file has ended.
    fn here(&self) -> Span {
        match self.kind() {
            RmmKind::EndOfFile if self.next > 0 => {
                let end = self.last_span().end;
                Span { start: end, end }
            }
            _ => self.token().span,
        }
    }

    fn found(&self) -> String {
        match self.kind() {
            RmmKind::EndOfFile => "the end of the file".to_string(),
            _ => format!("`{}`", shorten(self.token().text)),
        }
    }

    fn name(&mut self, expected: &str) -> Parsed<Name<'s>> {
        let token = self.token();
        if token.is_name() {
            self.bump();
            return Ok(Name { text: token.text, span: token.span });
        }
        if token.kind == RmmKind::Word && RESERVED.contains(&token.text) {
            let problem = Problem::error(format!("`{}` is a reserved word", token.text)).at(token.span);
            return Err(self.complain(problem.label(format!("expected {expected}"))));
        }
        Err(self.unexpected(expected))
    }

    fn skip_until(&mut self, stop: impl Fn(&RmmToken) -> bool) {
        while self.kind() != RmmKind::EndOfFile && !stop(&self.token()) {
            self.give_up_token();
        }
    }

    /// Whatever this token names, nobody knows it now.
    fn give_up_token(&mut self) {
        let token = self.bump();
        if token.is_name() || token.kind == RmmKind::Register {
            self.doubtful.insert(token.text);
        }
    }

    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == MAX_NESTING {
            let problem = Problem::error("this is nested too deeply").at(self.token().span);
            return Err(self.complain(problem));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }
}

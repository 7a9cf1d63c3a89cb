//! Where in the file are we, and what stands there? The steps of the parser from token to token, and its two
//! ways to complain.

use super::super::ast::Name;
use super::super::lex::{self, TsoKind};
use super::TsoParser;
use crate::front::diagnostics::{Parsed, Problem, Reported, Span, shorten};

/// What a token costs, with the part of the tree that it becomes.
const STEPS: usize = 4;

impl<'s> TsoParser<'s, '_> {
    pub(super) fn kind(&self) -> TsoKind {
        self.tokens[self.next].kind
    }

    pub(super) fn kind_after(&self, ahead: usize) -> TsoKind {
        self.tokens.get(self.next + ahead).map_or(TsoKind::EndOfFile, |t| t.kind)
    }

    pub(super) fn span(&self) -> Span {
        self.tokens[self.next].span
    }

    pub(super) fn last_span(&self) -> Span {
        self.tokens[self.next.saturating_sub(1)].span
    }

    pub(super) fn text(&self) -> &'s str {
        self.text_at(self.next)
    }

    /// Never goes past the end of the file, and right there at a limit.
    pub(super) fn bump(&mut self) {
        let last = self.tokens.len() - 1;
        self.next = match self.problems.spend(STEPS) {
            Ok(()) => (self.next + 1).min(last),
            Err(Reported) => last,
        };
    }

    pub(super) fn eat(&mut self, kind: TsoKind) -> Option<Span> {
        let span = self.span();
        (self.kind() == kind).then(|| {
            self.bump();
            span
        })
    }

    pub(super) fn expect(&mut self, kind: TsoKind, expected: &str) -> Parsed<Span> {
        self.eat(kind).ok_or_else(|| self.unexpected(expected))
    }

    /// Expects the partner of a bracket.
    pub(super) fn close(&mut self, kind: TsoKind, open: Span) -> Parsed<Span> {
        let partner = match kind {
            TsoKind::RightBracket => "`]`",
            TsoKind::RightBrace => "`}`",
            _ => "`)`",
        };
        if self.kind() == kind {
            let span = self.span();
            self.bump();
            return Ok(span);
        }
        if self.kind() == TsoKind::Garbage {
            return Err(Reported);
        }
        let opened = &self.source[open.start..open.end];
        let problem = Problem::error(format!("expected {partner}, found {}", self.found()))
            .at(self.here())
            .label(format!("the `{opened}` is still open"));
        Err(self.problems.report(problem))
    }

    pub(super) fn name(&mut self, expected: &str) -> Parsed<Name<'s>> {
        let (text, span) = (self.text(), self.span());
        if self.kind() == TsoKind::Name {
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
    pub(super) fn end_of_statement(&mut self) -> Parsed<()> {
        match self.kind() {
            TsoKind::Newline | TsoKind::Semicolon => {
                self.bump();
                Ok(())
            }
            TsoKind::EndOfFile | TsoKind::RightBrace => Ok(()),
            _ => Err(self.unexpected("the end of the line")),
        }
    }

    pub(super) fn unexpected(&mut self, expected: &str) -> Reported {
        if self.kind() == TsoKind::Garbage {
            return Reported;
        }
        let problem = Problem::error(format!("expected {expected}, found {}", self.found())).at(self.here());
        self.problems.report(problem)
    }

    /// The current token, or the place right behind the last one if the line has ended.
    pub(super) fn here(&self) -> Span {
        match self.kind() {
            TsoKind::Newline | TsoKind::EndOfFile if self.next > 0 => {
                let end = self.last_span().end;
                Span { start: end, end }
            }
            _ => self.span(),
        }
    }

    pub(super) fn found(&self) -> String {
        match self.kind() {
            TsoKind::Newline => "the end of the line".to_string(),
            TsoKind::EndOfFile => "the end of the file".to_string(),
            _ => format!("`{}`", shorten(self.text())),
        }
    }

    pub(super) fn names_between(
        &self,
        first: usize,
        end: usize,
    ) -> impl Iterator<Item = &'s str> + use<'s, '_> {
        let names = self.tokens[first..end].iter().filter(|t| t.kind == TsoKind::Name);
        names.map(|t| &self.source[t.span.start..t.span.end])
    }

    /// Does a thread, or what is written like one, begin or end with this token?
    pub(super) fn is_landmark(&self, at: usize) -> bool {
        matches!(self.tokens[at].kind, TsoKind::Thread | TsoKind::End) || self.is_inline(at)
    }

    /// `inline NAME(`, and `op NAME(` of a data type
    pub(super) fn is_inline(&self, at: usize) -> bool {
        let ahead = self.tokens[at..].iter().take(3).map(|t| t.kind);
        let opens = self.text_at(at) == "inline" || self.is_datatype && self.text_at(at) == "op";
        opens && ahead.eq([TsoKind::Name, TsoKind::Name, TsoKind::LeftParen])
    }

    pub(super) fn text_at(&self, at: usize) -> &'s str {
        let span = self.tokens[at].span;
        &self.source[span.start..span.end]
    }

    pub(super) fn skip_newlines(&mut self) {
        while self.kind() == TsoKind::Newline {
            self.bump();
        }
    }

    pub(super) fn skip_line(&mut self) {
        while !matches!(self.kind(), TsoKind::Newline | TsoKind::EndOfFile) {
            self.bump();
        }
    }
}

//! Which words does a piece of a litmus test consist of? Tokens with their places in the file.
//!
//! The file's parts (`sections`) are tokenised one by one, since a bar or a semicolon means something else in
//! each. What is no token is reported here and left out.

use crate::front::diagnostics::{Problem, Problems, Span};
use crate::model::Value;
use logos::Logos;

#[derive(Logos, Clone, Copy, Debug, PartialEq, Eq)]
#[logos(skip r"[ \t\r\n\x0B\x0C]+")]
pub(crate) enum LitmusKind {
    #[regex(r"[A-Za-z_.][A-Za-z0-9_.]*")]
    Name,
    #[regex("[0-9][A-Za-z0-9_]*")]
    Number,
    #[token("$")]
    Dollar,
    #[token("%")]
    Percent,
    #[token("&")]
    Ampersand,
    #[token("*")]
    Star,
    #[token("+")]
    Plus,
    #[token("-")]
    Minus,
    #[token(",")]
    Comma,
    #[token(":")]
    Colon,
    #[token(";")]
    Semicolon,
    #[token("(")]
    LeftParen,
    #[token(")")]
    RightParen,
    #[token("[")]
    LeftBracket,
    #[token("]")]
    RightBracket,
    #[token("{")]
    LeftBrace,
    #[token("}")]
    RightBrace,
    #[token("=")]
    #[token("==")]
    Equals,
    #[token("!=")]
    #[token("<>")]
    Differs,
    #[token("=>")]
    Implies,
    #[token(r"/\")]
    And,
    #[token(r"\/")]
    Or,
    #[token("~")]
    Not,
    End,
}

/// What a token costs, with what it becomes.
const STEPS: usize = 4;

#[derive(Clone, Copy, Debug)]
pub(crate) struct LitmusToken<'s> {
    pub kind: LitmusKind,
    pub text: &'s str,
    pub span: Span,
}

/// The tokens of one part of the file. Reading past the last one gives `End`, as often as one likes.
pub(crate) struct Tokens<'s> {
    tokens: Vec<LitmusToken<'s>>,
    next: usize,
    end: Span,
}

impl<'s> Tokens<'s> {
    /// `clean` is the file without comments. At a limit, the part ends there.
    pub(crate) fn new(clean: &'s str, part: Span, problems: &mut Problems) -> Tokens<'s> {
        let mut tokens = Vec::new();
        for (kind, range) in LitmusKind::lexer(&clean[part.start..part.end]).spanned() {
            if problems.spend(STEPS).is_err() {
                break;
            }
            let span = Span { start: part.start + range.start, end: part.start + range.end };
            let text = &clean[span.start..span.end];
            match kind {
                Ok(kind) => tokens.push(LitmusToken { kind, text, span }),
                Err(()) => {
                    problems.report(garbage(text, span));
                }
            }
        }
        let end = tokens.last().map_or(part.start, |t| t.span.end);
        Tokens { tokens, next: 0, end: Span { start: end, end } }
    }

    pub(crate) fn peek(&self) -> LitmusToken<'s> {
        self.peek_at(0)
    }

    pub(crate) fn peek_at(&self, ahead: usize) -> LitmusToken<'s> {
        let none = LitmusToken { kind: LitmusKind::End, text: "", span: self.end };
        self.tokens.get(self.next + ahead).copied().unwrap_or(none)
    }

    pub(crate) fn next(&mut self) -> LitmusToken<'s> {
        let token = self.peek();
        self.next += 1;
        token
    }

    /// The next token, if it is of this kind.
    pub(crate) fn take(&mut self, kind: LitmusKind) -> Option<LitmusToken<'s>> {
        (self.peek().kind == kind).then(|| self.next())
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.next >= self.tokens.len()
    }

    /// Steps over everything up to the next token of this kind, and over that.
    pub(crate) fn skip_past(&mut self, kind: LitmusKind) {
        while !self.is_at_end() && self.next().kind != kind {}
    }

    /// All of it.
    pub(crate) fn span(&self) -> Span {
        self.tokens.first().map_or(self.end, |t| t.span).to(self.end)
    }
}

fn garbage(text: &str, span: Span) -> Problem {
    let shown: String = text.chars().take(8).flat_map(char::escape_debug).collect();
    let problem = Problem::error(format!("`{shown}` means nothing here")).at(span);
    if text == "#" { problem.help("comments are written (* like this *)") } else { problem }
}

/// The value of a number: decimal or `0x…`, up to 64 bits.
pub(crate) fn number(text: &str) -> Option<Value> {
    let value = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok()?,
        None => text.parse::<u64>().ok()?,
    };
    Some(value as Value)
}

/// A number with or without a sign before it.
pub(crate) fn signed_number(tokens: &mut Tokens, problems: &mut Problems) -> Option<Value> {
    let minus = tokens.take(LitmusKind::Minus);
    let token = tokens.peek();
    if token.kind != LitmusKind::Number {
        problems.report(expected("a number", token));
        return None;
    }
    tokens.next();
    match number(token.text) {
        Some(value) if minus.is_some() => Some(value.wrapping_neg()),
        Some(value) => Some(value),
        None => {
            let why = "a number is decimal or 0x and hexadecimal, and has at most 64 bits";
            problems
                .report(Problem::error(format!("`{}` is no number", token.text)).at(token.span).help(why));
            None
        }
    }
}

/// Something else stands where this was expected.
pub(crate) fn expected(what: &str, found: LitmusToken) -> Problem {
    let found_text = match found.kind {
        LitmusKind::End => "nothing".to_string(),
        _ => format!("`{}`", found.text),
    };
    Problem::error(format!("expected {what}, found {found_text}")).at(found.span)
}

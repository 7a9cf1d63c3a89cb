//! Which words does the text consist of? Tokens with their places; white space and comments are gone.
//!
//! What is no token becomes `Garbage`, reported here so that the parser can step over it in silence. Comments
//! of other languages are reported too, and taken for comments.

use crate::front::diagnostics::{Problem, Problems, Span};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RmmKind {
    /// A keyword or a name.
    Word,
    /// `$r`.
    Register,
    Number,
    Symbol,
    Garbage,
    EndOfFile,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct RmmToken<'s> {
    pub kind: RmmKind,
    pub text: &'s str,
    pub span: Span,
    /// The macro call that brought the token here, if it was one.
    pub call: Option<Span>,
}

impl RmmToken<'_> {
    pub(crate) fn is(&self, text: &str) -> bool {
        matches!(self.kind, RmmKind::Word | RmmKind::Symbol) && self.text == text
    }

    pub(crate) fn is_name(&self) -> bool {
        self.kind == RmmKind::Word && !RESERVED.contains(&self.text)
    }
}

/// Words that cannot be names.
pub(crate) const RESERVED: [&str; 34] = [
    "if",
    "then",
    "else",
    "while",
    "do",
    "read",
    "write",
    "syncwr",
    "syncrd",
    "fence",
    "ssfence",
    "llfence",
    "locked",
    "slocked",
    "cas",
    "goto",
    "true",
    "false",
    "my",
    "me",
    "other",
    "process",
    "not",
    "nop",
    "text",
    "data",
    "either",
    "or",
    "forbidden",
    "assume",
    "predicates",
    "registers",
    "macro",
    "endmacro",
];

/// Longer ones first.
const SYMBOLS: [&str; 22] = [
    ":=", "||", "&&", "!=", "<=", ">=", "=", "(", ")", ",", "-", "*", ";", ":", "{", "}", "<", ">", "+", "[",
    "]", "@",
];

/// All tokens, the last of which is the end of the file. At a limit, the file ends there.
pub(crate) fn tokens<'s>(source: &'s str, problems: &mut Problems) -> Vec<RmmToken<'s>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(c) = source[at..].chars().next() {
        if problems.spend(1).is_err() {
            break;
        }
        let rest = &source[at..];
        if c.is_ascii_whitespace() {
            at += 1;
        } else if rest.starts_with("/*") {
            at += comment(rest, at, problems);
        } else {
            let (kind, length) = token(rest);
            let token = RmmToken {
                kind,
                text: &rest[..length],
                span: Span { start: at, end: at + length },
                call: None,
            };
            if kind == RmmKind::Garbage {
                report(&token, problems);
            }
            if !is_foreign_comment(rest) {
                tokens.push(token);
            }
            at += length;
        }
    }
    let span = Span { start: source.len(), end: source.len() };
    tokens.push(RmmToken { kind: RmmKind::EndOfFile, text: "", span, call: None });
    tokens
}

/// The length of a comment, which ends at the first `*/` and does not nest.
fn comment(rest: &str, at: usize, problems: &mut Problems) -> usize {
    match rest[2..].find("*/") {
        Some(length) => length + 4,
        None => {
            let problem = Problem::warning("this comment has no end").at(Span { start: at, end: at + 2 });
            problems.report(problem.label("the rest of the file is part of it"));
            rest.len()
        }
    }
}

fn token(rest: &str) -> (RmmKind, usize) {
    let word = |text: &str| text.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
    match rest.as_bytes()[0] {
        b'$' if word(&rest[1..]) > 0 => (RmmKind::Register, 1 + word(&rest[1..])),
        b'0'..=b'9' if rest.bytes().take(word(rest)).all(|b| b.is_ascii_digit()) => {
            (RmmKind::Number, word(rest))
        }
        b'0'..=b'9' => (RmmKind::Garbage, word(rest)),
        b if b.is_ascii_alphabetic() || b == b'_' => (RmmKind::Word, word(rest)),
        _ => match SYMBOLS.iter().find(|s| rest.starts_with(**s)) {
            Some(symbol) => (RmmKind::Symbol, symbol.len()),
            None => (RmmKind::Garbage, garbage(rest)),
        },
    }
}

fn is_foreign_comment(rest: &str) -> bool {
    rest.starts_with("//") || rest.starts_with('#')
}

/// A comment of another language takes its line with it; otherwise one letter is enough.
fn garbage(rest: &str) -> usize {
    if is_foreign_comment(rest) {
        return rest.find(['\n', '\r']).unwrap_or(rest.len());
    }
    rest.chars().next().map_or(0, char::len_utf8)
}

fn report(token: &RmmToken, problems: &mut Problems) {
    let (first, text) = (token.text.chars().next().unwrap_or(' '), token.text);
    let problem = match first {
        _ if is_foreign_comment(text) => {
            Problem::error("comments have another form here").help("a comment is written `/* … */`")
        }
        '$' => Problem::error("a register needs a name").help("as in `$r0`"),
        '0'..='9' => Problem::error(format!("`{}` is no number", text.get(..40).unwrap_or(text))),
        c => Problem::error(format!("`{}` means nothing here", c.escape_debug())),
    };
    let start = token.span.start;
    let shown = if is_foreign_comment(text) { text.len().min(2) } else { text.len() };
    problems.report(problem.at(Span { start, end: start + shown }));
}

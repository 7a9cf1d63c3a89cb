//! Which words does a DVE model consist of? Tokens with their places; white space and comments are gone, and
//! so is a backslash at the end of a line.

use crate::front::diagnostics::{Problem, Problems, Span, shorten};
use logos::Logos;

#[derive(Logos, Clone, Copy, Debug, PartialEq, Eq)]
#[logos(skip r"[ \t\r\n\x0B\x0C]+")]
#[logos(skip(r"//[^\r\n]*", allow_greedy = true))]
#[logos(skip r"/\*([^*]|\*+[^*/])*\*+/")]
#[logos(skip r"\\\r?\n")]
pub(crate) enum DveKind {
    /// A keyword or a name.
    #[regex(r"[A-Za-z_][A-Za-z0-9_$#]*")]
    Word,
    #[regex("[0-9]+")]
    Number,
    #[token("->")]
    #[token("=>")]
    #[token("||")]
    #[token("&&")]
    #[token("<<")]
    #[token(">>")]
    #[token("<=")]
    #[token(">=")]
    #[token("==")]
    #[token("!=")]
    #[regex(r"[-=+*/%|&^<>!?~.,;:{}()\[\]]")]
    Symbol,
    #[token("/*")]
    OpenComment,
    Garbage,
    EndOfFile,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct DveToken<'s> {
    pub kind: DveKind,
    pub text: &'s str,
    pub span: Span,
}

impl DveToken<'_> {
    pub(crate) fn is(&self, text: &str) -> bool {
        matches!(self.kind, DveKind::Word | DveKind::Symbol) && self.text == text
    }

    pub(crate) fn is_name(&self) -> bool {
        self.kind == DveKind::Word && !KEYWORDS.contains(&self.text)
    }
}

/// Words that cannot be names.
pub(crate) const KEYWORDS: [&str; 29] = [
    "guard", "sync", "async", "effect", "process", "state", "init", "accept", "commit", "trans", "system",
    "true", "false", "and", "or", "not", "imply", "int", "byte", "const", "channel", "property", "assert",
    "buchi", "genbuchi", "streett", "rabin", "muller", "input",
];

/// All tokens, the last of which is the end of the file. At a limit, the file ends there.
pub(crate) fn tokens<'s>(source: &'s str, problems: &mut Problems) -> Vec<DveToken<'s>> {
    let mut tokens = Vec::new();
    for (kind, range) in DveKind::lexer(source).spanned() {
        if problems.spend(1).is_err() {
            break;
        }
        let (text, span) = (&source[range.clone()], Span { start: range.start, end: range.end });
        let kind = match kind {
            Ok(DveKind::OpenComment) => {
                problems.report(Problem::error("the comment does not end").at(span).help("`*/` ends it"));
                break;
            }
            Ok(kind) => kind,
            Err(()) => {
                let what = format!("`{}` means nothing here", shorten(text));
                problems.report(Problem::error(what).at(span));
                DveKind::Garbage
            }
        };
        tokens.push(DveToken { kind, text, span });
    }
    let span = Span { start: source.len(), end: source.len() };
    tokens.push(DveToken { kind: DveKind::EndOfFile, text: "", span });
    tokens
}

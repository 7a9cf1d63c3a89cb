//! Which words does the text consist of? Tokens with their places; white space and comments are gone.
//!
//! The end of a line is a token, because it ends a statement. What is no token at all becomes `Garbage`, one
//! per run of it, reported here so that the parser can step over it in silence.

use crate::front::diagnostics::{Problem, Problems, Span};
use crate::model::Value;
use logos::Logos;

#[derive(Logos, Clone, Copy, Debug, PartialEq, Eq)]
#[logos(skip r"[ \t\x0B\x0C]+")]
#[logos(skip(r"(//|#)[^\r\n]*", allow_greedy = true))]
pub(crate) enum TsoKind {
    #[token("\n")]
    #[token("\r\n")]
    Newline,
    #[token(";")]
    Semicolon,

    #[token("shared")]
    Shared,
    #[token("param")]
    Param,
    #[token("thread")]
    Thread,
    #[token("end")]
    End,
    #[token("repeat")]
    Repeat,
    #[token("in")]
    In,
    #[token("load")]
    Load,
    #[token("store")]
    Store,
    #[token("fence")]
    Fence,
    #[token("any")]
    Any,
    #[token("assume")]
    Assume,
    #[token("assert")]
    Assert,
    #[token("goto")]
    Goto,
    #[token("if")]
    If,
    #[token("choose")]
    Choose,
    #[token("xchg")]
    Xchg,
    #[token("cas")]
    Cas,
    #[token("add")]
    Add,
    #[token("lock")]
    Lock,
    #[token("unlock")]
    Unlock,
    #[token("halt")]
    Halt,
    #[token("nop")]
    Nop,
    #[token("forbid")]
    Forbid,
    #[token("exists")]
    Exists,
    #[token("forall")]
    Forall,
    #[token("never")]
    Never,

    #[regex("[A-Za-z_][A-Za-z0-9_]*")]
    Name,
    /// Digits and what stands right behind them; [`number`] says whether it is a number.
    #[regex("[0-9][A-Za-z0-9_]*")]
    Number,

    /// A file's name, between quotation marks.
    #[regex("\"[^\"\r\n]*\"")]
    Text,

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
    #[token(",")]
    Comma,
    #[token(":")]
    Colon,
    #[token("@")]
    At,
    #[token(".")]
    Dot,
    #[token("..")]
    Range,
    #[token("..=")]
    RangeInclusive,
    #[token("=")]
    Equals,
    #[token("||")]
    OrOr,
    #[token("&&")]
    AndAnd,
    #[token("|")]
    Bar,
    #[token("^")]
    Caret,
    #[token("&")]
    Ampersand,
    #[token("==")]
    EqualsEquals,
    #[token("!=")]
    NotEquals,
    #[token("<")]
    Less,
    #[token("<=")]
    LessEquals,
    #[token(">")]
    Greater,
    #[token(">=")]
    GreaterEquals,
    #[token("<<")]
    ShiftLeft,
    #[token(">>")]
    ShiftRight,
    #[token("+")]
    Plus,
    #[token("-")]
    Minus,
    #[token("*")]
    Star,
    #[token("/")]
    Slash,
    #[token("%")]
    Percent,
    #[token("->")]
    Arrow,
    #[token("<->")]
    DoubleArrow,
    #[token("<>")]
    Diamond,
    #[token("!")]
    Bang,
    #[token("~")]
    Tilde,
    #[token("?")]
    Question,

    Garbage,
    EndOfFile,
}

/// Words that cannot be names.
pub(crate) const KEYWORDS: [&str; 26] = [
    "shared", "param", "thread", "end", "repeat", "in", "load", "store", "fence", "any", "assume", "assert",
    "goto", "if", "choose", "xchg", "cas", "add", "lock", "unlock", "halt", "nop", "forbid", "exists",
    "forall", "never",
];

/// Words that begin a statement of a thread, for suggestions. Those that are not reserved mean it only where
/// no name could stand.
pub(crate) const INSTRUCTIONS: [&str; 26] = [
    "load", "store", "fence", "assume", "assert", "goto", "if", "choose", "xchg", "cas", "add", "lock",
    "unlock", "halt", "nop", "repeat", "end", "sub", "inc", "dec", "and", "or", "xor", "pause", "while",
    "local",
];

/// Words that begin something outside threads and are reserved.
pub(crate) const DECLARATIONS: [(&str, TsoKind); 7] = [
    ("shared", TsoKind::Shared),
    ("param", TsoKind::Param),
    ("thread", TsoKind::Thread),
    ("forbid", TsoKind::Forbid),
    ("exists", TsoKind::Exists),
    ("forall", TsoKind::Forall),
    ("never", TsoKind::Never),
];

/// Those of data types, which are not reserved either.
pub(crate) const OF_DATATYPES: [&str; 5] = ["datatype", "alloc", "init", "op", "test"];

/// Those that are not reserved.
pub(crate) const CONTEXTUAL_DECLARATIONS: [&str; 5] = ["const", "struct", "inline", "ltl", "terminates"];

#[derive(Clone, Copy, Debug)]
pub(crate) struct TsoToken {
    pub kind: TsoKind,
    pub span: Span,
}

/// The tokens of the source; the last one is `EndOfFile`. At a limit, the file ends there.
pub(crate) fn tokens(source: &str, problems: &mut Problems) -> Vec<TsoToken> {
    let mut tokens: Vec<TsoToken> = Vec::with_capacity(source.len() / 4);
    // Some editors begin a file with a byte order mark.
    let begin = source.len() - source.trim_start_matches('\u{FEFF}').len();
    for (result, range) in TsoKind::lexer(&source[begin..]).spanned() {
        if problems.spend(1).is_err() {
            break;
        }
        let span = Span { start: begin + range.start, end: begin + range.end };
        match (result, tokens.last_mut()) {
            (Ok(kind), _) => tokens.push(TsoToken { kind, span }),
            (Err(()), Some(last)) if last.kind == TsoKind::Garbage && last.span.end == span.start => {
                last.span.end = span.end;
            }
            (Err(()), _) => tokens.push(TsoToken { kind: TsoKind::Garbage, span }),
        }
    }
    for token in tokens.iter().filter(|t| t.kind == TsoKind::Garbage) {
        problems.report(garbage(&source[token.span.start..token.span.end], token.span));
    }
    let end = Span { start: source.len(), end: source.len() };
    tokens.push(TsoToken { kind: TsoKind::EndOfFile, span: end });
    tokens
}

fn garbage(text: &str, span: Span) -> Problem {
    let shown: String = text.chars().take(8).flat_map(char::escape_debug).collect();
    let problem = Problem::error(format!("`{shown}` means nothing here")).at(span);
    if text.starts_with('\r') {
        problem.help("lines end with a line feed, with or without a carriage return before it")
    } else if text.starts_with(char::is_alphabetic) {
        problem.help("names are made of the letters a to z and A to Z, digits and `_`")
    } else {
        problem
    }
}

/// Why a word that begins with a digit is no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadNumber {
    NotDigits,
    TooLarge,
    /// 2^63, which is a number only behind a minus sign.
    OnlyNegative,
}

/// The value of a number. Hexadecimal and binary numbers name bit patterns, so they may use all 64 bits.
pub(crate) fn number(text: &str) -> Result<Value, BadNumber> {
    let (digits, radix) = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&text[2..], 16),
        [b'0', b'b' | b'B', ..] => (&text[2..], 2),
        _ => (text, 10),
    };
    let mut value: Option<u64> = None;
    let mut overflow = false;
    for c in digits.chars().filter(|c| *c != '_') {
        let digit = u64::from(c.to_digit(radix).ok_or(BadNumber::NotDigits)?);
        let next = value.unwrap_or(0).checked_mul(u64::from(radix)).and_then(|v| v.checked_add(digit));
        overflow |= next.is_none();
        value = Some(next.unwrap_or(0));
    }
    match value {
        None => Err(BadNumber::NotDigits),
        Some(_) if overflow => Err(BadNumber::TooLarge),
        Some(v) if radix != 10 => Ok(v as Value),
        Some(v) if v == 1 << 63 => Err(BadNumber::OnlyNegative),
        Some(v) => Value::try_from(v).map_err(|_| BadNumber::TooLarge),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;

    fn kinds(source: &str) -> Vec<TsoKind> {
        tokens(source, &mut Problems::new(source, &Limits::default())).iter().map(|t| t.kind).collect()
    }

    #[test]
    fn comments_and_blanks_vanish_but_line_ends_stay() {
        use TsoKind::*;
        assert_eq!(kinds("nop // a ; b\n\tfence# c\r\n"), [Nop, Newline, Fence, Newline, EndOfFile]);
    }

    #[test]
    fn ranges_are_not_decimal_points() {
        use TsoKind::*;
        assert_eq!(kinds("1..=3"), [Number, RangeInclusive, Number, EndOfFile]);
        assert_eq!(kinds("p.r"), [Name, Dot, Name, EndOfFile]);
    }

    #[test]
    fn a_run_of_garbage_is_one_problem() {
        let source = "nop $$\0$ nop é\n\rnop";
        let limits = Limits::default();
        let mut problems = Problems::new(source, &limits);
        tokens(source, &mut problems);
        assert_eq!(problems.shown().len(), 3);
    }

    #[test]
    fn a_byte_order_mark_is_no_garbage() {
        assert_eq!(kinds("\u{FEFF}nop"), [TsoKind::Nop, TsoKind::EndOfFile]);
    }

    #[test]
    fn every_keyword_is_a_token_of_its_own() {
        for word in KEYWORDS {
            assert_ne!(kinds(word)[0], TsoKind::Name, "{word}");
        }
        assert_eq!(kinds("ending")[0], TsoKind::Name);
    }

    #[test]
    fn numbers_have_64_bits() {
        assert_eq!(number("1_000"), Ok(1000));
        assert_eq!(number("0xffff_ffff_ffff_ffff"), Ok(-1));
        assert_eq!(number("0b11"), Ok(3));
        assert_eq!(number("9223372036854775807"), Ok(Value::MAX));
        assert_eq!(number("9223372036854775808"), Err(BadNumber::OnlyNegative));
        assert_eq!(number("9223372036854775809"), Err(BadNumber::TooLarge));
        assert_eq!(number("0x1_0000_0000_0000_0000"), Err(BadNumber::TooLarge));
        assert_eq!(number("99999999999999999999999999"), Err(BadNumber::TooLarge));
        assert_eq!(number("12ab"), Err(BadNumber::NotDigits));
        assert_eq!(number("0x"), Err(BadNumber::NotDigits));
        assert_eq!(number("0b2"), Err(BadNumber::NotDigits));
    }
}

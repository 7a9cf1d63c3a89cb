//! What may have been meant? Words of other assembly languages, assignments to memory, operators of C.

use super::TsoParser;
use crate::front::diagnostics::{Problem, Reported, Span, shorten};
use crate::front::tso::ast::{LockedKind, Name};
use crate::front::tso::lex::{self, TsoKind};

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
    ("for", "repeat` or `while"),
];

impl<'s> TsoParser<'s, '_> {
    /// A name that begins no statement.
    pub(super) fn not_an_assignment(&mut self, name: Name<'s>) -> Reported {
        let word = name.text;
        let problem = match (self.kind(), self.kind_after(1)) {
            (TsoKind::EqualsEquals, _) => {
                Problem::error("a comparison is not an instruction").at(self.span()).help(format!(
                    "`{word} = …` assigns; `assume {word} == …` waits; `assert {word} == …` checks"
                ))
            }
            (TsoKind::LeftBracket, _) if self.colon_follows_the_index() => {
                Problem::error("labels have no index").at(name.span)
            }
            (_, TsoKind::Equals) if self.operator().is_some() => {
                let (operator, _) = self.operator().unwrap_or_default();
                let value = self.text_after(2);
                self.compound(name.span, word, operator, value)
            }
            (TsoKind::Plus, TsoKind::Plus) => self.compound(name.span, word, "+", "1"),
            (TsoKind::Minus, TsoKind::Minus) => self.compound(name.span, word, "-", "1"),
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

    /// `r += 1`
    fn compound(&self, at: Span, word: &str, operator: &str, value: &str) -> Problem {
        let (word, value) = (shorten(word), shorten(value));
        let locked = locked_word(operator).map_or(String::new(), |locked| {
            format!("; `{locked} [x], {value}` changes memory, and is locked")
        });
        Problem::error("there are no assignments with an operator")
            .at(at)
            .help(format!("write `{word} = {word} {operator} {value}` for a register{locked}"))
    }

    /// The operator that stands here, and the locked instruction that does the same to memory.
    fn operator(&self) -> Option<(&'static str, Option<&'static str>)> {
        let symbol = match self.kind() {
            TsoKind::Plus => "+",
            TsoKind::Minus => "-",
            TsoKind::Ampersand => "&",
            TsoKind::Bar => "|",
            TsoKind::Caret => "^",
            TsoKind::Star => "*",
            TsoKind::Slash => "/",
            TsoKind::Percent => "%",
            _ => return None,
        };
        Some((symbol, locked_word(symbol)))
    }

    fn colon_follows_the_index(&self) -> bool {
        self.kind_after(2) == TsoKind::RightBracket && self.kind_after(3) == TsoKind::Colon
    }

    /// `[x] = 1`, `[x] += 1`
    pub(super) fn store_like_an_assignment(&mut self) -> Reported {
        let span = self.span();
        let problem = Problem::error("expected an instruction or a label, found `[`").at(span);
        let written = self.statement_text(span);
        let Some((address, value)) = written.split_once('=').filter(|(_, value)| !value.starts_with('='))
        else {
            return self.problems.report(problem);
        };
        let (address, value) = (address.trim(), shorten(value.trim()));
        let operator = address.char_indices().next_back().map_or("", |(at, _)| &address[at..]);
        let help = match locked_word(operator) {
            Some(word) => {
                let address = shorten(address[..address.len() - operator.len()].trim());
                format!("write `{word} {address}, {value}`, which is locked, or load, compute and store")
            }
            None => format!("write `store {}, {value}`", shorten(address)),
        };
        self.problems.report(problem.help(help))
    }

    /// `lock add [x], 1`
    pub(super) fn lock_prefix(&mut self) -> Reported {
        let word = shorten(self.text());
        let problem = Problem::error("`lock` is a statement of its own").at(self.span());
        let help = match LockedKind::named(self.text()) {
            Some(_) => format!("`{word}` is locked by itself: leave out `lock`"),
            None => "`lock` begins a block that `unlock` ends, each on a line of its own".to_string(),
        };
        self.problems.report(problem.help(help))
    }

    /// `rmw [x], 1`
    pub(super) fn no_old_value(&mut self) -> Reported {
        let problem = Problem::error("`rmw` needs a register, which is the old value in the new one");
        let example = LockedKind::Rmw.example();
        self.problems.report(problem.at(self.span()).help(format!("as in `{example}`")))
    }

    /// `add x, 1`
    pub(super) fn no_memory(&mut self, how: LockedKind, register: Name<'s>) -> Reported {
        let r = shorten(register.text);
        let without_result = how.example().replace("r, ", "");
        let problem = Problem::error(format!("expected `[`, found {}", self.found()))
            .at(self.here())
            .label("an address stands in brackets")
            .help(format!(
                "`{}` or `{without_result}` changes memory; `{r} = {r} + 1` changes a register",
                how.example()
            ));
        self.problems.report(problem)
    }

    fn text_after(&self, ahead: usize) -> &'s str {
        match self.tokens.get(self.next + ahead) {
            Some(token) => self.statement_text(token.span),
            None => "",
        }
    }

    /// The rest of the statement from here on.
    fn statement_text(&self, from: Span) -> &'s str {
        let rest = &self.tokens[self.next..];
        let ends = |k: TsoKind| {
            matches!(k, TsoKind::Newline | TsoKind::Semicolon | TsoKind::RightBrace | TsoKind::EndOfFile)
        };
        let last = rest.iter().take_while(|t| !ends(t.kind)).last().map_or(from, |t| t.span);
        &self.source[from.start..last.end.max(from.start)]
    }
}

/// The locked instruction that combines the old value with another one by this operator.
fn locked_word(operator: &str) -> Option<&'static str> {
    Some(match operator {
        "+" => "add",
        "-" => "sub",
        "&" => "and",
        "|" => "or",
        "^" => "xor",
        _ => return None,
    })
}

//! What does the initial state say? Values of locations and of registers; whatever it does not mention is 0.

use super::lex::{LitmusKind, LitmusToken, Tokens, expected, number, signed_number};
use super::memory::{Initial, LitmusMemory, Type};
use crate::front::diagnostics::{Problem, Problems, Reported, Span};
use crate::front::x86::{Arch, Flag, Own, POINTER, register};
use crate::model::{MAX_CELLS, Value};

/// A register of a thread, as initial states and conditions name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct OfThread {
    /// The thread's number in the file.
    pub thread: u64,
    pub own: Own,
}

pub(crate) struct RegisterValue<'s> {
    pub register: OfThread,
    pub value: Initial<'s>,
    pub span: Span,
}

/// Reads the initial state; locations go to memory.
pub(crate) fn read<'s>(
    clean: &'s str,
    part: Span,
    memory: &mut LitmusMemory<'s>,
    problems: &mut Problems,
) -> Vec<RegisterValue<'s>> {
    let tokens = Tokens::new(clean, part, problems);
    let mut reader = InitReader { tokens, memory, problems, registers: vec![] };
    while !reader.tokens.is_at_end() {
        if reader.tokens.take(LitmusKind::Semicolon).is_some() {
            continue;
        }
        if reader.item().is_err() {
            reader.tokens.skip_past(LitmusKind::Semicolon);
        }
    }
    reader.registers
}

struct InitReader<'s, 'a, 'l> {
    tokens: Tokens<'s>,
    memory: &'a mut LitmusMemory<'s>,
    problems: &'a mut Problems<'l>,
    registers: Vec<RegisterValue<'s>>,
}

impl<'s> InitReader<'s, '_, '_> {
    fn item(&mut self) -> Result<(), Reported> {
        let start = self.tokens.peek().span;
        let ty = self.ty()?;
        if let Some(register) = of_thread(&mut self.tokens, self.memory.arch, self.problems) {
            let register = register?;
            let value = self.value()?;
            let span = start.to(self.before());
            if self.registers.iter().any(|r| r.register == register) {
                self.problems.report(Problem::error("this register is there twice").at(span));
            }
            self.registers.push(RegisterValue { register, value: value.unwrap_or(Initial::Const(0)), span });
        } else {
            let bracketed = self.tokens.take(LitmusKind::LeftBracket).is_some();
            let name = self.expect(LitmusKind::Name, "a location or a register")?;
            if bracketed {
                self.expect(LitmusKind::RightBracket, "`]`")?;
            }
            let initial = match self.tokens.peek().kind {
                LitmusKind::LeftBracket => self.array()?,
                _ => vec![self.value()?.unwrap_or(Initial::Const(0))],
            };
            self.memory.declare(name.text, ty, initial, name.span, self.problems);
        }
        match self.tokens.peek() {
            LitmusToken { kind: LitmusKind::Semicolon | LitmusKind::End, .. } => Ok(()),
            found => Err(self.problems.report(expected("`;`", found))),
        }
    }

    fn expect(&mut self, kind: LitmusKind, what: &str) -> Result<LitmusToken<'s>, Reported> {
        let token = self.tokens.peek();
        self.tokens.take(kind).ok_or_else(|| self.problems.report(expected(what, token)))
    }

    /// The last place that was read.
    fn before(&self) -> Span {
        let next = self.tokens.peek().span;
        Span { start: next.start, end: next.start }
    }

    /// The type before a name: words, and stars.
    fn ty(&mut self) -> Result<Option<Type>, Reported> {
        let mut ty: Option<Type> = None;
        let is_type = |tokens: &Tokens| {
            let behind = tokens.peek_at(1).kind;
            tokens.peek().kind == LitmusKind::Name
                && matches!(behind, LitmusKind::Name | LitmusKind::Star | LitmusKind::Number)
        };
        let mut unsigned = false;
        while is_type(&self.tokens) || ty.is_some() && self.tokens.peek().kind == LitmusKind::Star {
            let token = self.tokens.next();
            match type_word(token.text, self.memory.arch) {
                Some(TypeWord::Qualifier) => {}
                Some(TypeWord::Unsigned) => unsigned = true,
                Some(TypeWord::Type(new)) => ty = Some(new),
                None => {
                    let unknown = Problem::error(format!("`{}` is no type that is known here", token.text));
                    let help = "known are char, short, int, long, int8_t to int64_t, uint8_t to uint64_t, and pointers";
                    return Err(self.problems.report(unknown.at(token.span).help(help)));
                }
            }
        }
        if unsigned {
            ty = Some(Type { bits: ty.map_or(32, |t| t.bits), signed: false });
        }
        Ok(ty)
    }

    /// `= value`, if there is one.
    fn value(&mut self) -> Result<Option<Initial<'s>>, Reported> {
        match self.tokens.take(LitmusKind::Equals) {
            Some(_) => self.plain_value().map(Some),
            None => Ok(None),
        }
    }

    fn plain_value(&mut self) -> Result<Initial<'s>, Reported> {
        let address = self.tokens.take(LitmusKind::Ampersand).is_some();
        let token = self.tokens.peek();
        match token.kind {
            LitmusKind::Name => {
                self.tokens.next();
                self.memory.mention(token.text);
                Ok(Initial::AddressOf(token.text))
            }
            _ if address => Err(self.problems.report(expected("a location", token))),
            _ => {
                let value = signed_number(&mut self.tokens, self.problems).ok_or(Reported)?;
                self.memory.number(value);
                Ok(Initial::Const(value))
            }
        }
    }

    /// `[n]`, with or without `= {…}`.
    fn array(&mut self) -> Result<Vec<Initial<'s>>, Reported> {
        self.tokens.next();
        let size = self.tokens.peek();
        let length = signed_number(&mut self.tokens, self.problems).ok_or(Reported)?;
        self.expect(LitmusKind::RightBracket, "`]`")?;
        let Some(length) = usize::try_from(length).ok().filter(|n| (1..=MAX_CELLS).contains(n)) else {
            let message = format!("an array has from 1 to {MAX_CELLS} elements");
            return Err(self.problems.report(Problem::error(message).at(size.span)));
        };
        let mut values = Vec::new();
        if self.tokens.take(LitmusKind::Equals).is_some() {
            self.expect(LitmusKind::LeftBrace, "`{`")?;
            while self.tokens.peek().kind != LitmusKind::RightBrace {
                values.push(self.plain_value()?);
                if self.tokens.take(LitmusKind::Comma).is_none() {
                    break;
                }
            }
            self.expect(LitmusKind::RightBrace, "`}`")?;
        }
        if values.len() > length {
            let message = format!("{} values for {length} elements", values.len());
            return Err(self.problems.report(Problem::error(message).at(size.span)));
        }
        values.resize(length, Initial::Const(0));
        Ok(values)
    }
}

enum TypeWord {
    Qualifier,
    Unsigned,
    Type(Type),
}

fn type_word(word: &str, arch: Arch) -> Option<TypeWord> {
    let ty = |bits, signed| Some(TypeWord::Type(Type { bits, signed }));
    match word {
        "const" | "volatile" | "_Atomic" | "signed" => Some(TypeWord::Qualifier),
        "unsigned" => Some(TypeWord::Unsigned),
        "char" | "int8_t" => ty(8, true),
        "short" | "int16_t" => ty(16, true),
        "int" | "int32_t" | "atomic_int" => ty(32, true),
        "long" | "intptr_t" | "*" => ty(arch.bits(), true),
        "int64_t" => ty(64, true),
        "uint8_t" => ty(8, false),
        "uint16_t" => ty(16, false),
        "uint32_t" => ty(32, false),
        "uint64_t" => ty(64, false),
        "uintptr_t" => ty(arch.bits(), false),
        _ => None,
    }
}

/// `0:EAX` or `P0:EAX`, if one of them comes next.
pub(crate) fn of_thread(
    tokens: &mut Tokens,
    arch: Arch,
    problems: &mut Problems,
) -> Option<Result<OfThread, Reported>> {
    let first = tokens.peek();
    let digits = match first.kind {
        LitmusKind::Number => first.text,
        LitmusKind::Name => first.text.strip_prefix('P')?,
        _ => return None,
    };
    if tokens.peek_at(1).kind != LitmusKind::Colon {
        return None;
    }
    let thread: Value = number(digits).filter(|n| *n >= 0)?;
    tokens.next();
    tokens.next();
    tokens.take(LitmusKind::Percent);
    let name = tokens.next();
    let own = own(name, arch).map_err(|problem| problems.report(problem));
    Some(own.map(|own| OfThread { thread: thread as u64, own }))
}

fn own(name: LitmusToken, arch: Arch) -> Result<Own, Problem> {
    match (register(name.text, arch), Flag::named(name.text)) {
        (Some(part), _) if part.bits == arch.bits() => Ok(Own::Gpr(part.gpr)),
        (Some(part), _) => {
            let problem = Problem::error(format!("`{}` is a part of a register", name.text)).at(name.span);
            Err(problem.help(format!("outside instructions write the whole one, `{}`", part.gpr.name(arch))))
        }
        (None, Some(flag)) => Ok(Own::Flag(flag)),
        _ if name.text.eq_ignore_ascii_case(&POINTER.name(arch)) => Ok(Own::Gpr(POINTER)),
        _ if name.kind == LitmusKind::Name => {
            Err(Problem::error(format!("`{}` is not a register here", name.text)).at(name.span))
        }
        _ => Err(expected("a register", name)),
    }
}

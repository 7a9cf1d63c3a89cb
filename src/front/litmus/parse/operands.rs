//! What do the operands of an instruction say? Both orders and both syntaxes of addresses, as tests mix them.

use super::super::lex::{self, LitmusKind, LitmusToken, expected};
use super::{CodeCell, trimmed};
use crate::front::diagnostics::{Problem, Reported, Span};
use crate::front::x86::{Arch, GprPart, Mem, Operand, register};
use crate::model::Value;

impl<'s> CodeCell<'s, '_, '_> {
    /// The operands, destination first.
    pub(super) fn operands(&mut self) -> Result<Vec<(Operand<&'s str>, Span)>, Reported> {
        let mut operands = Vec::new();
        while !self.tokens.is_at_end() {
            if !operands.is_empty() && self.tokens.take(LitmusKind::Comma).is_none() {
                let found = self.tokens.peek();
                return Err(self.problems.report(expected("`,` or the end of the instruction", found)));
            }
            let start = self.tokens.peek().span;
            let operand = self.operand()?;
            let end = self.tokens.peek_at(0).span;
            operands.push((
                operand,
                trimmed(self.clean, Span { start: start.start, end: end.start.max(start.end) }),
            ));
        }
        if self.arch == Arch::X86_64 {
            operands.reverse();
        }
        Ok(operands)
    }

    fn operand(&mut self) -> Result<Operand<&'s str>, Reported> {
        let token = self.tokens.peek();
        match token.kind {
            LitmusKind::Dollar => {
                self.tokens.next();
                self.constant()
            }
            LitmusKind::Percent => Ok(Operand::Reg(self.register()?)),
            LitmusKind::LeftBracket | LitmusKind::LeftParen => Ok(Operand::Mem(self.place(Mem::default())?)),
            LitmusKind::Number | LitmusKind::Minus => {
                let offset = self.number()?;
                match self.tokens.peek().kind {
                    LitmusKind::LeftBracket | LitmusKind::LeftParen => {
                        Ok(Operand::Mem(self.place(Mem { offset, ..Mem::default() })?))
                    }
                    LitmusKind::Plus if self.tokens.peek_at(1).kind == LitmusKind::Name => {
                        self.tokens.next();
                        let name = self.tokens.next();
                        self.behind(name, offset)
                    }
                    _ => Ok(Operand::Const(offset)),
                }
            }
            LitmusKind::Name => self.named(token),
            _ => Err(self.problems.report(expected("an operand", token))),
        }
    }

    fn named(&mut self, token: LitmusToken<'s>) -> Result<Operand<&'s str>, Reported> {
        if let Some(part) = register(token.text, self.arch) {
            self.tokens.next();
            return Ok(Operand::Reg(part));
        }
        self.tokens.next();
        let bits = match &token.text.to_ascii_lowercase()[..] {
            "byte" => Some(8),
            "word" => Some(16),
            "dword" => Some(32),
            "qword" => Some(64),
            "offset" => return self.constant(),
            _ => None,
        };
        let followed = matches!(self.tokens.peek().kind, LitmusKind::LeftBracket | LitmusKind::LeftParen);
        if bits.is_some() && (followed || self.is_word("ptr")) {
            if self.is_word("ptr") {
                self.tokens.next();
            }
            return Ok(Operand::Mem(self.place(Mem { bits, ..Mem::default() })?));
        }
        self.behind(token, 0)
    }

    /// A place so far behind a name, and as much further as is written there: AT&T's `x+8(%rax)`.
    fn behind(&mut self, token: LitmusToken<'s>, offset: Value) -> Result<Operand<&'s str>, Reported> {
        let mut mem = Mem { symbol: Some(token.text), offset, ..Mem::default() };
        while matches!(self.tokens.peek().kind, LitmusKind::Plus | LitmusKind::Minus) {
            self.tokens.take(LitmusKind::Plus);
            mem.offset = mem.offset.wrapping_add(self.number()?);
        }
        let followed = matches!(self.tokens.peek().kind, LitmusKind::LeftBracket | LitmusKind::LeftParen);
        match self.arch {
            _ if followed => Ok(Operand::Mem(self.place(mem)?)),
            Arch::X86_64 => Ok(Operand::Mem(mem)),
            Arch::X86 => {
                let name = token.text;
                let wrong = Problem::error(format!("`{name}` is neither a register nor a place in memory"));
                let help = format!("write `[{name}]` for what lies there, `${name}` for its address");
                Err(self.problems.report(wrong.at(token.span).help(help)))
            }
        }
    }

    fn constant(&mut self) -> Result<Operand<&'s str>, Reported> {
        match self.tokens.peek().kind {
            LitmusKind::Name => Ok(Operand::AddressOf(self.tokens.next().text)),
            _ => Ok(Operand::Const(self.number()?)),
        }
    }

    fn number(&mut self) -> Result<Value, Reported> {
        // What is wrong has been reported, if there is no number.
        lex::signed_number(&mut self.tokens, self.problems).ok_or(Reported)
    }

    fn register(&mut self) -> Result<GprPart, Reported> {
        self.tokens.take(LitmusKind::Percent);
        let token = self.tokens.next();
        match register(token.text, self.arch) {
            Some(part) => Ok(part),
            None => {
                let problem = match token.kind {
                    LitmusKind::Name => {
                        Problem::error(format!("`{}` is not a register here", token.text)).at(token.span)
                    }
                    _ => expected("a register", token),
                };
                Err(self.problems.report(problem))
            }
        }
    }

    /// `[…]` or `(…)`, and what stands before it in `mem`.
    fn place(&mut self, mem: Mem<&'s str>) -> Result<Mem<&'s str>, Reported> {
        let open = self.tokens.next();
        let (close, sign) = match open.kind {
            LitmusKind::LeftBracket => (LitmusKind::RightBracket, "`]`"),
            LitmusKind::LeftParen => (LitmusKind::RightParen, "`)`"),
            _ => return Err(self.problems.report(expected("a place in memory", open))),
        };
        let mut mem = mem;
        // AT&T's `(,%rax,8)` has no base.
        if self.tokens.peek().kind != LitmusKind::Comma {
            self.term(&mut mem)?;
        }
        loop {
            match self.tokens.peek().kind {
                LitmusKind::Plus => {
                    self.tokens.next();
                    self.term(&mut mem)?;
                }
                LitmusKind::Minus => self.term(&mut mem)?,
                LitmusKind::Comma => {
                    self.tokens.next();
                    self.index(&mut mem)?;
                    break;
                }
                _ => break,
            }
        }
        match self.tokens.take(close) {
            Some(_) => Ok(mem),
            None => {
                let found = self.tokens.peek();
                Err(self.problems.report(expected(sign, found)))
            }
        }
    }

    /// One summand of an address: a name, a register with or without a factor, a number.
    fn term(&mut self, mem: &mut Mem<&'s str>) -> Result<(), Reported> {
        let token = self.tokens.peek();
        let is_register = token.kind == LitmusKind::Percent || register(token.text, self.arch).is_some();
        match token.kind {
            // A symbol relative to the instruction pointer is the symbol.
            LitmusKind::Percent
                if self.tokens.peek_at(1).text.eq_ignore_ascii_case("rip") && mem.symbol.is_some() =>
            {
                self.tokens.next();
                self.tokens.next();
            }
            LitmusKind::Name if token.text.eq_ignore_ascii_case("rip") && mem.symbol.is_some() => {
                self.tokens.next();
            }
            LitmusKind::Percent | LitmusKind::Name if is_register => {
                let part = self.register()?;
                let factor = self.tokens.take(LitmusKind::Star).is_some();
                let factor = if factor { Some(self.number()?) } else { None };
                return self.add(mem, part, factor, token);
            }
            LitmusKind::Name if mem.symbol.is_none() => mem.symbol = Some(self.tokens.next().text),
            LitmusKind::Number if self.tokens.peek_at(1).kind == LitmusKind::Star => {
                let factor = self.number()?;
                self.tokens.next();
                let part = self.register()?;
                return self.add(mem, part, Some(factor), token);
            }
            LitmusKind::Number | LitmusKind::Minus => mem.offset = mem.offset.wrapping_add(self.number()?),
            _ => return Err(self.problems.report(expected("a location, a register or a number", token))),
        }
        Ok(())
    }

    fn add(
        &mut self,
        mem: &mut Mem<&'s str>,
        part: GprPart,
        factor: Option<Value>,
        at: LitmusToken,
    ) -> Result<(), Reported> {
        if part.bits < 32 {
            let narrow = format!("an address cannot be made from a register of {} bits", part.bits);
            return Err(self.problems.report(Problem::error(narrow).at(at.span)));
        }
        if mem.parts().any(|other| other.bits != part.bits) {
            let mixed = Problem::error("the registers of an address have the same width").at(at.span);
            return Err(self.problems.report(mixed));
        }
        if factor.is_some_and(|f| !matches!(f, 1 | 2 | 4 | 8)) {
            let wrong = Problem::error("the factor of a register in an address is 1, 2, 4 or 8").at(at.span);
            return Err(self.problems.report(wrong));
        }
        match (factor, mem.base, mem.index) {
            (None, None, _) => mem.base = Some(part),
            (_, _, None) => mem.index = Some((part, factor.unwrap_or(1))),
            _ => {
                return Err(self
                    .problems
                    .report(Problem::error("an address has at most two registers").at(at.span)));
            }
        }
        Ok(())
    }

    /// AT&T's `, register, factor` inside parentheses.
    fn index(&mut self, mem: &mut Mem<&'s str>) -> Result<(), Reported> {
        let token = self.tokens.peek();
        let part = self.register()?;
        let factor = match self.tokens.take(LitmusKind::Comma) {
            Some(_) => self.number()?,
            None => 1,
        };
        self.add(mem, part, Some(factor), token)
    }
}

//! What stands between `thread` and `end`? Labels, instructions, and blocks of them.
//!
//! Here most mistakes are made; what may have been meant is in `hints`.

use super::{Declaration, TsoParser};
use crate::front::diagnostics::{Parsed, Problem, Reported};
use crate::front::tso::ast::{Bound, CellRef, Expr, File, Locked, LockedKind, Name, Op, Range, Stmt, Width};
use crate::front::tso::lex::TsoKind;
use crate::model::FenceKinds;

/// Who encloses the statements being read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Encloser {
    Thread,
    Inline,
    Braces,
}

impl<'s> TsoParser<'s, '_> {
    /// Statements up to, and without, what closes them. `file` takes declarations that strayed into a thread.
    pub(super) fn body(&mut self, encloser: Encloser, level: usize, file: &mut File<'s>) -> Vec<Stmt<'s>> {
        let mut statements = Vec::new();
        // Braces that were skipped as part of a bad statement; theirs are the next closing ones.
        let mut open_braces = 0;
        loop {
            match self.kind() {
                TsoKind::Newline | TsoKind::Semicolon => self.bump(),
                TsoKind::EndOfFile | TsoKind::End | TsoKind::Thread => {
                    statements.push(Stmt::Gap(self.span()));
                    return statements;
                }
                TsoKind::RightBrace if open_braces > 0 => {
                    open_braces -= 1;
                    self.bump();
                }
                TsoKind::RightBrace if encloser == Encloser::Braces => {
                    statements.push(Stmt::Gap(self.span()));
                    return statements;
                }
                TsoKind::RightBrace => {
                    let problem = Problem::error("`}` without a `{`").at(self.span());
                    self.problems.report(problem);
                    self.bump();
                }
                _ if self.is_inline(self.next) => return statements,
                _ => {
                    if let Some(declaration) = self.declared_here() {
                        if !self.thread_goes_on() {
                            return statements;
                        }
                        self.stray_declaration(declaration, file);
                        statements.push(Stmt::Bad);
                        continue;
                    }
                    statements.push(Stmt::Gap(self.span()));
                    match self.statement(encloser, level, file) {
                        Ok(statement) => statements.push(statement),
                        Err(Reported) => {
                            statements.push(Stmt::Bad);
                            open_braces += self.skip_statement();
                        }
                    }
                }
            }
        }
    }

    /// A declaration that begins here, inside a thread. A word that is not reserved begins one only if a name
    /// follows.
    fn declared_here(&self) -> Option<Declaration> {
        let contextual = self.kind() == TsoKind::Name;
        let begins = !contextual || self.kind_after(1) == TsoKind::Name;
        Declaration::named(self.text(), self.is_datatype).filter(|_| begins)
    }

    /// Is there an `end` before the next `thread`? Then a declaration here stands inside a thread; otherwise
    /// the thread's `end` is missing.
    fn thread_goes_on(&self) -> bool {
        let next = self.landmarks.partition_point(|&i| i < self.next);
        self.landmarks.get(next).is_some_and(|&i| self.tokens[i].kind == TsoKind::End)
    }

    fn stray_declaration(&mut self, declaration: Declaration, file: &mut File<'s>) {
        let problem = Problem::error(format!("{} inside a thread", self.found()))
            .at(self.span())
            .help("declarations and properties stand outside threads");
        self.problems.report(problem);
        self.declaration(declaration, file);
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

    pub(super) fn statement(
        &mut self,
        encloser: Encloser,
        level: usize,
        file: &mut File<'s>,
    ) -> Parsed<Stmt<'s>> {
        match (self.kind(), self.kind_after(1)) {
            (TsoKind::Repeat, _) => self.repeat(level, file),
            (_, TsoKind::Colon) => self.label(),
            (TsoKind::If, _) if self.brace_before_goto() => self.branch(level, file),
            (TsoKind::Name, TsoKind::Equals) => self.single(),
            (TsoKind::Name, _) if self.text() == "while" => self.while_loop(level, file),
            (TsoKind::Name, TsoKind::Name) if self.text() == "local" => self.local(encloser),
            (TsoKind::Name, TsoKind::LeftParen)
                if !(self.is_datatype && matches!(self.text(), "return" | "free")) =>
            {
                self.call()
            }
            (TsoKind::Name, _) if self.is_datatype => self.of_datatypes(encloser, level, file),
            _ => self.single(),
        }
    }

    pub(super) fn single(&mut self) -> Parsed<Stmt<'s>> {
        let start = self.span();
        let op = self.instruction()?;
        let span = start.to(self.last_span());
        self.end_of_statement()?;
        Ok(Stmt::Instr(op, span))
    }

    /// Does a block follow the condition, and not a jump?
    fn brace_before_goto(&self) -> bool {
        let ends = |k: &TsoKind| {
            use TsoKind::*;
            matches!(k, Newline | Semicolon | EndOfFile | Goto | LeftBrace)
        };
        self.tokens[self.next..].iter().map(|t| t.kind).find(ends) == Some(TsoKind::LeftBrace)
    }

    /// More may follow a label on its line.
    fn label(&mut self) -> Parsed<Stmt<'s>> {
        let name = self.name("a label")?;
        self.bump();
        Ok(Stmt::Label(name))
    }

    /// `local a[4], n = 1`
    fn local(&mut self, encloser: Encloser) -> Parsed<Stmt<'s>> {
        let start = self.span();
        self.bump();
        let mut variables = Vec::new();
        self.variables("the name of a variable of the thread's own", &mut variables)?;
        self.end_of_statement()?;
        if encloser == Encloser::Thread {
            return Ok(Stmt::Local(variables));
        }
        let problem = Problem::error("`local` stands in a thread, outside braces").at(start);
        Err(self.problems.report(problem.help("an `inline` gets addresses as its arguments")))
    }

    fn instruction(&mut self) -> Parsed<Op<'s>> {
        let kind = self.kind();
        match kind {
            TsoKind::Name => return self.contextual(),
            TsoKind::LeftBracket => return Err(self.store_like_an_assignment()),
            _ => {}
        }
        let simple = match kind {
            TsoKind::Lock => Some(Op::Lock),
            TsoKind::Unlock => Some(Op::Unlock),
            TsoKind::Halt => Some(Op::Halt),
            TsoKind::Nop => Some(Op::Nop),
            _ => None,
        };
        if let Some(op) = simple {
            self.bump();
            let is_word = !matches!(
                self.kind(),
                TsoKind::Newline | TsoKind::Semicolon | TsoKind::RightBrace | TsoKind::EndOfFile
            );
            return if kind == TsoKind::Lock && is_word { Err(self.lock_prefix()) } else { Ok(op) };
        }
        match kind {
            TsoKind::Fence => self.fence(),
            TsoKind::Load => self.load(Width::WHOLE),
            TsoKind::Store => self.store(Width::WHOLE),
            TsoKind::Xchg => self.locked(LockedKind::Xchg),
            TsoKind::Add => self.locked(LockedKind::Add),
            TsoKind::Cas => self.locked(LockedKind::Cas),
            TsoKind::Assume => {
                self.bump();
                Ok(Op::Assume(self.condition()?))
            }
            TsoKind::Assert => {
                self.bump();
                Ok(Op::Assert(self.condition()?))
            }
            TsoKind::Goto | TsoKind::If | TsoKind::Choose => self.jump(kind),
            _ => Err(self.unexpected("an instruction or a label")),
        }
    }

    /// An instruction that begins with a name, or with a word that is not reserved.
    fn contextual(&mut self) -> Parsed<Op<'s>> {
        let (word, next) = (self.text(), self.kind_after(1));
        if next == TsoKind::Equals {
            return self.assignment();
        }
        if word == "pause" {
            self.bump();
            return Ok(Op::Nop);
        }
        if word == "membarrier" {
            self.bump();
            return Ok(Op::Membarrier);
        }
        if let Some(how) = LockedKind::named(word) {
            return self.locked(how);
        }
        if let Some(width) = width(word, "load") {
            return self.load(width);
        }
        match width(word, "store") {
            Some(width) => self.store(width),
            None => self.assignment(),
        }
    }

    /// `fence`, or with what it orders: `fence ll, ls`
    fn fence(&mut self) -> Parsed<Op<'s>> {
        self.bump();
        if self.is_datatype && self.eat(TsoKind::Question).is_some() {
            return self.fence_place();
        }
        if self.kind() != TsoKind::Name {
            return Ok(Op::Fence);
        }
        let kinds = self.fence_kinds()?;
        Ok(if kinds == FenceKinds::ALL { Op::Fence } else { Op::Partial(kinds) })
    }

    pub(super) fn fence_kinds(&mut self) -> Parsed<FenceKinds> {
        let mut kinds = FenceKinds::NONE;
        loop {
            let Some(kind) = FenceKinds::named(self.text()) else {
                return Err(self.unexpected("`ll`, `ls`, `sl` or `ss`"));
            };
            kinds = kinds.and(kind);
            self.bump();
            if self.eat(TsoKind::Comma).is_none() {
                return Ok(kinds);
            }
        }
    }

    fn load(&mut self, width: Width) -> Parsed<Op<'s>> {
        let example = "load r, [x]";
        self.bump();
        let register = self.name("a register")?;
        self.comma(example)?;
        Ok(Op::Load(register, self.place(example)?, width))
    }

    fn store(&mut self, width: Width) -> Parsed<Op<'s>> {
        self.bump();
        let place = self.place("store [x], 1")?;
        Ok(Op::Store(place, self.operand("store [x], 1")?, width))
    }

    fn locked(&mut self, how: LockedKind) -> Parsed<Op<'s>> {
        let example = how.example();
        self.bump();
        let dst = match self.kind() {
            TsoKind::LeftBracket if how == LockedKind::Rmw => return Err(self.no_old_value()),
            TsoKind::LeftBracket => None,
            _ => {
                let register = self.name("a register or `[`")?;
                if self.kind() != TsoKind::Comma && how.operands() == 0 {
                    return Err(self.no_memory(how, register));
                }
                self.comma(example)?;
                if self.kind() != TsoKind::LeftBracket {
                    return Err(self.no_memory(how, register));
                }
                Some(register)
            }
        };
        let addr = self.address(example)?;
        let operands = (0..how.operands()).map(|_| self.operand(example)).collect::<Parsed<_>>()?;
        Ok(Op::Locked(Locked { how, dst, addr, operands }))
    }

    fn jump(&mut self, kind: TsoKind) -> Parsed<Op<'s>> {
        self.bump();
        match kind {
            TsoKind::Goto => Ok(Op::Goto(self.name("a label")?)),
            TsoKind::If => {
                let condition = self.condition()?;
                self.expect(TsoKind::Goto, "`goto` and a label, or `{`")?;
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

    /// The address of a whole cell.
    fn address(&mut self, example: &str) -> Parsed<Expr<'s>> {
        let CellRef { addr, bytes } = self.place(example)?;
        let Some(Range { span, .. }) = bytes else { return Ok(addr) };
        let problem = Problem::error("a locked instruction is one on a whole cell").at(span);
        Err(self.problems.report(problem.help("`rmw r, [x], e` can keep the other bytes of the old value")))
    }

    fn place(&mut self, example: &str) -> Parsed<CellRef<'s>> {
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
        let addr = self.expr()?;
        let bytes = match self.eat(TsoKind::Colon) {
            Some(_) => Some(self.bytes()?),
            None => None,
        };
        self.close(TsoKind::RightBracket, open)?;
        Ok(CellRef { addr, bytes })
    }

    /// `3`, or a range.
    fn bytes(&mut self) -> Parsed<Range<'s>> {
        if self.kind() != TsoKind::Number || self.kind_after(1) != TsoKind::RightBracket {
            return self.range();
        }
        let span = self.span();
        let lo = self.expr()?;
        let Expr::Number(byte, _) = lo else { unreachable!("a number is a number") };
        Ok(Range { lo, hi: Expr::Number(byte, span), bound: Bound::Included, span })
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
}

/// `load8`, `store32` and so on.
fn width(word: &str, instruction: &str) -> Option<Width> {
    let bits = word.strip_prefix(instruction)?;
    [8, 16, 32, 64].into_iter().find(|width: &u32| width.to_string() == bits).map(Width)
}

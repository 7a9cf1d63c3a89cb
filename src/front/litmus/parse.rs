//! Which instructions do the threads have? The rows of the program, cell by cell, as a list for each thread.
//!
//! Operands are brought into one order, destination first, whatever the architecture writes. Names of memory stay
//! names here: where they lie is decided when all of them are known (`memory`).

use super::lex::{self, Kind, Token, Tokens, expected};
use super::x86::{self, Arch, Op, Part, register};
use crate::front::diagnostics::{INSTRUCTION, Problem, Problems, Reported, Span};
use crate::model::{MAX_THREADS, Value};
use std::collections::HashMap;

pub struct Thread<'s> {
    pub name: &'s str,
    /// The number by which registers name it.
    pub number: u64,
    pub instructions: Vec<Instruction<'s>>,
    /// Each label with the instruction it stands before.
    pub labels: Vec<(&'s str, usize)>,
    /// The labels' places in the list.
    pub by_label: HashMap<&'s str, usize>,
}

pub struct Instruction<'s> {
    pub op: Op,
    pub locked: bool,
    /// The width that the mnemonic gives.
    pub bits: Option<u32>,
    /// Destination first.
    pub operands: Vec<(Operand<'s>, Span)>,
    pub mnemonic: &'s str,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum Operand<'s> {
    Const(Value),
    /// The address of a location, as a value.
    AddressOf(&'s str),
    Reg(Part),
    Mem(Mem<'s>),
    Label(&'s str),
}

/// A place in memory: the sum of what is there.
#[derive(Clone, Debug, Default)]
pub struct Mem<'s> {
    pub name: Option<&'s str>,
    pub offset: Value,
    pub base: Option<Part>,
    pub index: Option<(Part, Value)>,
    /// The width that `DWORD PTR` or the like gives.
    pub bits: Option<u32>,
}

impl Mem<'_> {
    pub fn is_direct(&self) -> bool {
        self.base.is_none() && self.index.is_none()
    }

    /// The registers that it is made from.
    pub fn parts(&self) -> impl Iterator<Item = Part> {
        self.base.into_iter().chain(self.index.map(|(part, _)| part))
    }
}

pub fn threads<'s>(clean: &'s str, program: Span, arch: Arch, problems: &mut Problems) -> Vec<Thread<'s>> {
    let mut rows = rows(clean, program, problems);
    if let Some(last) = rows.pop()
        && let Some(cell) = last.iter().find(|c| c.start < c.end)
    {
        let whole = cell.to(last[last.len() - 1]);
        problems.report(Problem::error("this row does not end with `;`").at(whole));
        rows.push(last);
    }
    let mut rows = rows.into_iter();
    let mut names = rows.next().unwrap_or_default();
    if names.len() > MAX_THREADS {
        let all = names[0].to(names[names.len() - 1]);
        problems.report(Problem::error(format!("at most {MAX_THREADS} threads are supported")).at(all));
        names.truncate(MAX_THREADS);
    }
    let mut threads: Vec<Thread> = names.iter().map(|cell| thread(clean, *cell, problems)).collect();
    if threads.is_empty() {
        problems.report(
            Problem::error("there are no threads in this test").help("their names go first: `P0 | P1 ;`"),
        );
    }
    let mut seen = std::collections::HashSet::new();
    for (thread, cell) in threads.iter().zip(&names) {
        if !seen.insert(thread.number) {
            problems.report(Problem::error(format!("thread `{}` is there twice", thread.name)).at(*cell));
        }
    }
    let mut pending: Vec<Option<Span>> = vec![None; threads.len()];
    for row in rows {
        if row.iter().all(|cell| cell.start == cell.end) && row.len() == 1 {
            continue;
        }
        if row.len() != threads.len() {
            problems.report(wrong_length(&row, threads.len()));
        }
        for ((cell, thread), lock) in row.iter().zip(&mut threads).zip(&mut pending) {
            let tokens = Tokens::new(clean, *cell, problems);
            let _ = Cell { clean, arch, tokens, problems }.read(thread, lock);
        }
    }
    for lock in pending.into_iter().flatten() {
        problems.report(Problem::error("no instruction follows this LOCK").at(lock));
    }
    threads
}

/// The cells of all rows, without the blanks around them. The last row is what stands behind the last `;`.
fn rows(clean: &str, program: Span, problems: &mut Problems) -> Vec<Vec<Span>> {
    let mut rows = vec![vec![]];
    let mut start = program.start;
    let ends = clean[program.start..program.end]
        .match_indices(['|', ';'])
        .map(|(i, what)| (program.start + i, what));
    for (end, what) in ends.chain([(program.end, ";")]) {
        if problems.spend(INSTRUCTION).is_err() {
            break;
        }
        let cell = trimmed(clean, Span { start, end });
        rows.last_mut().expect("there is always a row").push(cell);
        if what == ";" {
            rows.push(vec![]);
        }
        start = end + 1;
    }
    rows.pop();
    rows
}

fn trimmed(clean: &str, span: Span) -> Span {
    let text = &clean[span.start..span.end];
    let start = span.start + text.len() - text.trim_start().len();
    Span { start, end: start + text.trim().len() }
}

fn wrong_length(row: &[Span], threads: usize) -> Problem {
    let plural = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let message =
        format!("this row has {}, and there are {}", plural(row.len(), "cell"), plural(threads, "thread"));
    let marked = row.iter().find(|c| c.start < c.end).unwrap_or(&row[0]).to(row[row.len() - 1]);
    Problem::error(message).at(marked).help("cells are separated by `|`, rows by `;`; a cell may be blank")
}

fn thread<'s>(clean: &'s str, cell: Span, problems: &mut Problems) -> Thread<'s> {
    let name = &clean[cell.start..cell.end];
    let number = name.strip_prefix('P').and_then(|n| n.parse().ok());
    if number.is_none() {
        let wrong = Problem::error(format!("`{name}` is no name for a thread")).at(cell);
        problems.report(wrong.help("the first row has the threads' names, P0 | P1 | …"));
    }
    Thread {
        name,
        number: number.unwrap_or(u64::MAX),
        instructions: vec![],
        labels: vec![],
        by_label: HashMap::new(),
    }
}

/// One cell of a row.
struct Cell<'s, 'p, 'l> {
    clean: &'s str,
    arch: Arch,
    tokens: Tokens<'s>,
    problems: &'p mut Problems<'l>,
}

impl<'s> Cell<'s, '_, '_> {
    /// `lock` is a `LOCK` in an earlier cell of its own.
    fn read(mut self, thread: &mut Thread<'s>, lock: &mut Option<Span>) -> Result<(), Reported> {
        while self.tokens.peek().kind == Kind::Name && self.tokens.peek_at(1).kind == Kind::Colon {
            let label = self.tokens.next();
            self.tokens.next();
            if thread.by_label.insert(label.text, thread.labels.len()).is_some() {
                let twice = Problem::error(format!("label `{}` is there twice in this thread", label.text));
                self.problems.report(twice.at(label.span));
            }
            thread.labels.push((label.text, thread.instructions.len()));
        }
        let span = self.tokens.peek().span.to(self.tokens.span());
        if self.is_word("lock") {
            *lock = Some(self.tokens.next().span);
        }
        if self.is_word("rep") {
            self.tokens.next();
        }
        if self.tokens.is_at_end() {
            return Ok(());
        }
        let locked = lock.take();
        let instruction = self.instruction(span, locked)?;
        thread.instructions.push(instruction);
        Ok(())
    }

    fn is_word(&self, word: &str) -> bool {
        self.tokens.peek().text.eq_ignore_ascii_case(word)
    }

    fn instruction(&mut self, span: Span, locked: Option<Span>) -> Result<Instruction<'s>, Reported> {
        let word = self.tokens.next();
        let Some((op, bits)) = x86::mnemonic(word.text).filter(|_| word.kind == Kind::Name) else {
            return Err(self.unsupported(word));
        };
        if bits.is_some_and(|bits| bits > self.arch.bits()) {
            let wide =
                Problem::error(format!("`{}` has 64 bits, and the registers of X86 have 32", word.text));
            return Err(self.problems.report(wide.at(word.span).help("a 64-bit test begins with X86_64")));
        }
        let operands = match op {
            Op::Nop | Op::Ret => vec![],
            Op::Jump(_) => vec![self.target()?],
            _ => self.operands()?,
        };
        if !matches!(op, Op::Nop | Op::Ret) && !self.tokens.is_at_end() {
            let found = self.tokens.peek();
            return Err(self.problems.report(expected("the end of the instruction", found)));
        }
        let instruction =
            Instruction { op, locked: locked.is_some(), bits, operands, mnemonic: word.text, span };
        self.check_count(&instruction)?;
        match locked {
            Some(lock) if !may_lock(&instruction) => {
                let wrong =
                    Problem::error(format!("`{}` cannot have LOCK before it", &self.text(span))).at(lock);
                let help = "LOCK goes before an instruction that reads a place in memory and writes it: ADD, INC, \
                            CMPXCHG and their like";
                Err(self.problems.report(wrong.help(help)))
            }
            _ => Ok(instruction),
        }
    }

    fn text(&self, span: Span) -> &'s str {
        &self.clean[span.start..span.end]
    }

    fn unsupported(&mut self, word: Token) -> Reported {
        let problem = match word.kind {
            Kind::Name => Problem::error(format!("instruction `{}` is not supported", word.text)),
            _ => expected("an instruction", word),
        };
        let nearest = self.problems.nearest(&word.text.to_ascii_lowercase(), x86::MNEMONICS);
        let help = match nearest {
            Some(meant) => format!("did you mean `{meant}`? Supported are {}", x86::SUPPORTED),
            None => format!("supported are {}", x86::SUPPORTED),
        };
        self.problems.report(problem.at(word.span).help(help))
    }

    fn check_count(&mut self, i: &Instruction) -> Result<(), Reported> {
        let (least, most) = match i.op {
            Op::Nop | Op::Ret | Op::Fence => (0, 0),
            Op::Jump(_) | Op::One(_) | Op::Set(_) => (1, 1),
            Op::Shift(_) => (1, 2),
            _ => (2, 2),
        };
        if (least..=most).contains(&i.operands.len()) {
            return Ok(());
        }
        let takes = match most {
            0 => "no operands".to_string(),
            1 => "one operand".to_string(),
            _ => "two operands".to_string(),
        };
        let message = format!("`{}` takes {takes}, and here it has {}", i.mnemonic, i.operands.len());
        Err(self.problems.report(Problem::error(message).at(i.span)))
    }

    fn target(&mut self) -> Result<(Operand<'s>, Span), Reported> {
        let token = self.tokens.next();
        match token.kind {
            Kind::Name => Ok((Operand::Label(token.text), token.span)),
            _ => Err(self.problems.report(expected("a label", token))),
        }
    }

    /// The operands, destination first.
    fn operands(&mut self) -> Result<Vec<(Operand<'s>, Span)>, Reported> {
        let mut operands = Vec::new();
        while !self.tokens.is_at_end() {
            if !operands.is_empty() && self.tokens.take(Kind::Comma).is_none() {
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

    fn operand(&mut self) -> Result<Operand<'s>, Reported> {
        let token = self.tokens.peek();
        match token.kind {
            Kind::Dollar => {
                self.tokens.next();
                self.constant()
            }
            Kind::Percent => Ok(Operand::Reg(self.register()?)),
            Kind::LeftBracket | Kind::LeftParen => Ok(Operand::Mem(self.place(Mem::default())?)),
            Kind::Number | Kind::Minus => {
                let offset = self.number()?;
                match self.tokens.peek().kind {
                    Kind::LeftBracket | Kind::LeftParen => {
                        Ok(Operand::Mem(self.place(Mem { offset, ..Mem::default() })?))
                    }
                    Kind::Plus if self.tokens.peek_at(1).kind == Kind::Name => {
                        self.tokens.next();
                        let name = self.tokens.next();
                        self.behind(name, offset)
                    }
                    _ => Ok(Operand::Const(offset)),
                }
            }
            Kind::Name => self.named(token),
            _ => Err(self.problems.report(expected("an operand", token))),
        }
    }

    fn named(&mut self, token: Token<'s>) -> Result<Operand<'s>, Reported> {
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
        let followed = matches!(self.tokens.peek().kind, Kind::LeftBracket | Kind::LeftParen);
        if bits.is_some() && (followed || self.is_word("ptr")) {
            if self.is_word("ptr") {
                self.tokens.next();
            }
            return Ok(Operand::Mem(self.place(Mem { bits, ..Mem::default() })?));
        }
        self.behind(token, 0)
    }

    /// A place so far behind a name, and as much further as is written there: AT&T's `x+8(%rax)`.
    fn behind(&mut self, token: Token<'s>, offset: Value) -> Result<Operand<'s>, Reported> {
        let mut mem = Mem { name: Some(token.text), offset, ..Mem::default() };
        while matches!(self.tokens.peek().kind, Kind::Plus | Kind::Minus) {
            self.tokens.take(Kind::Plus);
            mem.offset = mem.offset.wrapping_add(self.number()?);
        }
        let followed = matches!(self.tokens.peek().kind, Kind::LeftBracket | Kind::LeftParen);
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

    fn constant(&mut self) -> Result<Operand<'s>, Reported> {
        match self.tokens.peek().kind {
            Kind::Name => Ok(Operand::AddressOf(self.tokens.next().text)),
            _ => Ok(Operand::Const(self.number()?)),
        }
    }

    fn number(&mut self) -> Result<Value, Reported> {
        // What is wrong has been reported, if there is no number.
        lex::signed_number(&mut self.tokens, self.problems).ok_or(Reported)
    }

    fn register(&mut self) -> Result<Part, Reported> {
        self.tokens.take(Kind::Percent);
        let token = self.tokens.next();
        match register(token.text, self.arch) {
            Some(part) => Ok(part),
            None => {
                let problem = match token.kind {
                    Kind::Name => {
                        Problem::error(format!("`{}` is not a register here", token.text)).at(token.span)
                    }
                    _ => expected("a register", token),
                };
                Err(self.problems.report(problem))
            }
        }
    }

    /// `[…]` or `(…)`, and what stands before it in `mem`.
    fn place(&mut self, mem: Mem<'s>) -> Result<Mem<'s>, Reported> {
        let open = self.tokens.next();
        let (close, sign) = match open.kind {
            Kind::LeftBracket => (Kind::RightBracket, "`]`"),
            Kind::LeftParen => (Kind::RightParen, "`)`"),
            _ => return Err(self.problems.report(expected("a place in memory", open))),
        };
        let mut mem = mem;
        // AT&T's `(,%rax,8)` has no base.
        if self.tokens.peek().kind != Kind::Comma {
            self.term(&mut mem)?;
        }
        loop {
            match self.tokens.peek().kind {
                Kind::Plus => {
                    self.tokens.next();
                    self.term(&mut mem)?;
                }
                Kind::Minus => self.term(&mut mem)?,
                Kind::Comma => {
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
    fn term(&mut self, mem: &mut Mem<'s>) -> Result<(), Reported> {
        let token = self.tokens.peek();
        let is_register = token.kind == Kind::Percent || register(token.text, self.arch).is_some();
        match token.kind {
            // A symbol relative to the instruction pointer is the symbol.
            Kind::Percent
                if self.tokens.peek_at(1).text.eq_ignore_ascii_case("rip") && mem.name.is_some() =>
            {
                self.tokens.next();
                self.tokens.next();
            }
            Kind::Name if token.text.eq_ignore_ascii_case("rip") && mem.name.is_some() => {
                self.tokens.next();
            }
            Kind::Percent | Kind::Name if is_register => {
                let part = self.register()?;
                let factor = self.tokens.take(Kind::Star).is_some();
                let factor = if factor { Some(self.number()?) } else { None };
                return self.add(mem, part, factor, token);
            }
            Kind::Name if mem.name.is_none() => mem.name = Some(self.tokens.next().text),
            Kind::Number if self.tokens.peek_at(1).kind == Kind::Star => {
                let factor = self.number()?;
                self.tokens.next();
                let part = self.register()?;
                return self.add(mem, part, Some(factor), token);
            }
            Kind::Number | Kind::Minus => mem.offset = mem.offset.wrapping_add(self.number()?),
            _ => return Err(self.problems.report(expected("a location, a register or a number", token))),
        }
        Ok(())
    }

    fn add(
        &mut self,
        mem: &mut Mem<'s>,
        part: Part,
        factor: Option<Value>,
        at: Token,
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
    fn index(&mut self, mem: &mut Mem<'s>) -> Result<(), Reported> {
        let token = self.tokens.peek();
        let part = self.register()?;
        let factor = match self.tokens.take(Kind::Comma) {
            Some(_) => self.number()?,
            None => 1,
        };
        self.add(mem, part, Some(factor), token)
    }
}

fn may_lock(i: &Instruction) -> bool {
    i.op.may_lock()
        && i.operands.iter().any(|(o, _)| matches!(o, Operand::Mem(_)))
        && (matches!(i.op, Op::Xchg | Op::Cmpxchg | Op::Xadd) || matches!(i.operands[0].0, Operand::Mem(_)))
}

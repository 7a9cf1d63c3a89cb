//! Which instructions do the threads have? The rows of the program, cell by cell, as a list for each thread.
//!
//! Operands are brought into one order, destination first, whatever the architecture writes. Names of memory
//! stay names here: where they lie is decided when all of them are known (`memory`).

mod operands;

use super::lex::{LitmusKind, LitmusToken, Tokens, expected};
use crate::front::diagnostics::{INSTRUCTION, Problem, Problems, Reported, Span};
use crate::front::x86::{self, Arch, Instruction, Op, Operand};
use crate::model::MAX_THREADS;
use std::collections::HashMap;

pub(crate) struct LitmusThread<'s> {
    pub name: &'s str,
    /// The number by which registers name it.
    pub number: u64,
    pub instructions: Vec<Instruction<&'s str>>,
    /// Each label with the instruction it stands before.
    pub labels: Vec<(&'s str, usize)>,
    /// The labels' places in the list.
    pub by_label: HashMap<&'s str, usize>,
}

pub(crate) fn threads<'s>(
    clean: &'s str,
    program: Span,
    arch: Arch,
    problems: &mut Problems,
) -> Vec<LitmusThread<'s>> {
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
    let mut threads: Vec<LitmusThread> = names.iter().map(|cell| thread(clean, *cell, problems)).collect();
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
            let _ = CodeCell { clean, arch, tokens, problems }.read(thread, lock);
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

fn thread<'s>(clean: &'s str, cell: Span, problems: &mut Problems) -> LitmusThread<'s> {
    let name = &clean[cell.start..cell.end];
    let number = name.strip_prefix('P').and_then(|n| n.parse().ok());
    if number.is_none() {
        let wrong = Problem::error(format!("`{name}` is no name for a thread")).at(cell);
        problems.report(wrong.help("the first row has the threads' names, P0 | P1 | …"));
    }
    LitmusThread {
        name,
        number: number.unwrap_or(u64::MAX),
        instructions: vec![],
        labels: vec![],
        by_label: HashMap::new(),
    }
}

/// One cell of a row.
struct CodeCell<'s, 'p, 'l> {
    clean: &'s str,
    arch: Arch,
    tokens: Tokens<'s>,
    problems: &'p mut Problems<'l>,
}

impl<'s> CodeCell<'s, '_, '_> {
    /// `lock` is a `LOCK` in an earlier cell of its own.
    fn read(mut self, thread: &mut LitmusThread<'s>, lock: &mut Option<Span>) -> Result<(), Reported> {
        while self.tokens.peek().kind == LitmusKind::Name && self.tokens.peek_at(1).kind == LitmusKind::Colon
        {
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

    fn instruction(&mut self, span: Span, locked: Option<Span>) -> Result<Instruction<&'s str>, Reported> {
        let word = self.tokens.next();
        let Some((op, bits)) = x86::mnemonic(word.text).filter(|_| word.kind == LitmusKind::Name) else {
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
        let instruction = Instruction {
            op,
            locked: locked.is_some(),
            bits,
            operands,
            mnemonic: word.text.to_string(),
            span,
        };
        self.check_count(&instruction)?;
        match locked {
            Some(lock) if !instruction.may_lock() => {
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

    fn unsupported(&mut self, word: LitmusToken) -> Reported {
        let problem = match word.kind {
            LitmusKind::Name => Problem::error(format!("instruction `{}` is not supported", word.text)),
            _ => expected("an instruction", word),
        };
        let nearest = self.problems.nearest(&word.text.to_ascii_lowercase(), x86::MNEMONICS);
        let help = match nearest {
            Some(meant) => format!("did you mean `{meant}`? Supported are {}", x86::SUPPORTED),
            None => format!("supported are {}", x86::SUPPORTED),
        };
        self.problems.report(problem.at(word.span).help(help))
    }

    fn check_count(&mut self, i: &Instruction<&str>) -> Result<(), Reported> {
        let (least, most) = i.op.operands();
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

    fn target(&mut self) -> Result<(Operand<&'s str>, Span), Reported> {
        let token = self.tokens.next();
        match token.kind {
            LitmusKind::Name => Ok((Operand::Label(token.text), token.span)),
            _ => Err(self.problems.report(expected("a label", token))),
        }
    }
}

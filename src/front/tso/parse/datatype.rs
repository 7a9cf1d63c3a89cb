//! What does a data type have that a program has not? Operations, the way it begins, tests, and a few
//! statements. All its words are words only where a name could not stand.

use super::TsoParser;
use super::body::Encloser;
use crate::front::diagnostics::{Parsed, Problem, shorten};
use crate::front::tso::ast::{
    AllocText, ArgText, DataTypeText, File, Invocation, Name, Op, Operation, Stmt, TestText,
};
use crate::front::tso::lex::TsoKind;
use crate::model::FenceKinds;

/// Parameters, and results.
type Signature<'s> = (Vec<Name<'s>>, Vec<Name<'s>>);

impl<'s> TsoParser<'s, '_> {
    /// Does the file begin with `datatype NAME`?
    pub(super) fn begins_datatype(&self) -> bool {
        let begin = self.tokens.iter().position(|t| !matches!(t.kind, TsoKind::Newline | TsoKind::Semicolon));
        begin.is_some_and(|at| {
            let kinds = self.tokens[at..].iter().take(2).map(|t| t.kind);
            self.text_at(at) == "datatype" && kinds.eq([TsoKind::Name, TsoKind::Name])
        })
    }

    /// `datatype NAME`
    pub(super) fn datatype_name(&mut self, file: &mut File<'s>) -> Parsed<()> {
        let start = self.span();
        self.bump();
        let name = self.name("the name of the data type")?;
        if file.datatype.is_some() {
            return Err(self.problems.report(Problem::error("a file describes one data type").at(start)));
        }
        file.datatype =
            Some(DataTypeText { name, alloc: None, init: None, operations: vec![], tests: vec![] });
        self.end_of_statement()
    }

    /// `alloc reuse unfenced`
    pub(super) fn alloc(&mut self, file: &mut File<'s>) -> Parsed<()> {
        let start = self.span();
        self.bump();
        let alloc = match self.text() {
            "fresh" => AllocText::Fresh,
            "reuse" => AllocText::Reuse,
            _ => return Err(self.unexpected("`fresh` or `reuse`")),
        };
        self.bump();
        let alloc = match (alloc, self.kind() == TsoKind::Name && self.text() == "unfenced") {
            (AllocText::Reuse, true) => {
                self.bump();
                AllocText::Unfenced
            }
            (alloc, _) => alloc,
        };
        let span = start.to(self.last_span());
        let twice = file.datatype.as_mut().and_then(|d| d.alloc.replace((alloc, span))).is_some();
        if twice {
            return Err(self.problems.report(Problem::error("`alloc` stands twice").at(span)));
        }
        self.end_of_statement()
    }

    /// `init … end`
    pub(super) fn init_body(&mut self, file: &mut File<'s>) {
        let start = self.span();
        let nameless = |parser: &mut Self| {
            let name = Name { text: "init", span: parser.last_span() };
            parser.end_of_statement().map(|()| (name, ()))
        };
        let (_, body) = self.ended("init", Encloser::Inline, nameless, file);
        if file.datatype.as_mut().and_then(|d| d.init.replace(body)).is_some() {
            self.problems.report(Problem::error("`init` stands twice").at(start));
        }
    }

    /// `op NAME(a, b) -> r … end`
    pub(super) fn operation(&mut self, file: &mut File<'s>) {
        let (header, body) = self.ended("op", Encloser::Inline, Self::operation_header, file);
        if let (Ok((name, (params, results))), Some(datatype)) = (header, &mut file.datatype) {
            datatype.operations.push(Operation { name, params, results, body });
        }
    }

    fn operation_header(&mut self) -> Parsed<(Name<'s>, Signature<'s>)> {
        let name = self.name("the name of the operation")?;
        let params = self.params("`(` as in `op push(v)`")?;
        let mut results = Vec::new();
        if self.eat(TsoKind::Arrow).is_some() {
            results.push(self.name("the name of a result")?);
            while self.eat(TsoKind::Comma).is_some() {
                results.push(self.name("the name of a result")?);
            }
        }
        self.end_of_statement()?;
        Ok((name, (params, results)))
    }

    /// `test T = push ; push*2 pop | pop`
    pub(super) fn test(&mut self, file: &mut File<'s>) -> Parsed<()> {
        self.bump();
        let name = self.name("the name of the test")?;
        self.expect(TsoKind::Equals, "`=` and the operations, as in `push | pop`")?;
        let start = self.span();
        let mut threads = vec![self.invocations()?];
        let initial = match self.eat(TsoKind::Semicolon) {
            Some(_) => std::mem::replace(&mut threads, vec![self.invocations()?]).remove(0),
            None => Vec::new(),
        };
        while self.eat(TsoKind::Bar).is_some() {
            threads.push(self.invocations()?);
        }
        let span = start.to(self.last_span());
        if let Some(datatype) = &mut file.datatype {
            datatype.tests.push(TestText { name, initial, threads, span });
        }
        match self.kind() {
            TsoKind::Newline | TsoKind::EndOfFile => Ok(()),
            _ => Err(self.unexpected("an operation, `|`, or the end of the line")),
        }
    }

    /// At least one.
    fn invocations(&mut self) -> Parsed<Vec<Invocation<'s>>> {
        let mut all = vec![self.invocation()?];
        while self.kind() == TsoKind::Name {
            all.push(self.invocation()?);
        }
        Ok(all)
    }

    fn invocation(&mut self) -> Parsed<Invocation<'s>> {
        let operation = self.name("an operation")?;
        let args = match self.eat(TsoKind::LeftParen) {
            Some(open) => {
                let mut args = Vec::new();
                while self.kind() != TsoKind::RightParen {
                    args.push(self.arg()?);
                    if self.eat(TsoKind::Comma).is_none() {
                        break;
                    }
                }
                self.close(TsoKind::RightParen, open)?;
                Some(args)
            }
            None => None,
        };
        let times = match self.eat(TsoKind::Star) {
            Some(_) => Some(self.primary()?),
            None => None,
        };
        let span = operation.span.to(self.last_span());
        Ok(Invocation { operation, args, times, span })
    }

    fn arg(&mut self) -> Parsed<ArgText<'s>> {
        if self.kind() != TsoKind::Any {
            return Ok(ArgText::Given(self.expr()?));
        }
        self.bump();
        let open = self.expect(TsoKind::LeftParen, "`(` as in `any(0..3)`")?;
        let range = self.range()?;
        self.close(TsoKind::RightParen, open)?;
        Ok(ArgText::Any(range))
    }

    /// A statement that begins with a name, in a data type.
    pub(super) fn of_datatypes(
        &mut self,
        encloser: Encloser,
        level: usize,
        file: &mut File<'s>,
    ) -> Parsed<Stmt<'s>> {
        let start = self.span();
        match self.text() {
            "return" => {
                self.bump();
                let mut values = Vec::new();
                let ends = |kind| {
                    use TsoKind::*;
                    matches!(kind, Newline | Semicolon | RightBrace | EndOfFile)
                };
                if !ends(self.kind()) {
                    values.push(self.expr()?);
                    while self.eat(TsoKind::Comma).is_some() {
                        values.push(self.expr()?);
                    }
                }
                let span = start.to(self.last_span());
                self.end_of_statement()?;
                Ok(Stmt::Return(values, span))
            }
            "commit" => {
                self.bump();
                let inner = self.statement(encloser, level, file)?;
                let accesses = matches!(inner, Stmt::Instr(Op::Load(..) | Op::Store(..) | Op::Locked(_), _));
                if !accesses {
                    let problem = Problem::error("a commit point is a load, a store or a locked instruction");
                    return Err(self.problems.report(problem.at(start)));
                }
                Ok(Stmt::Commit(Box::new(inner)))
            }
            "new" if self.kind_after(1) == TsoKind::Name => {
                self.bump();
                let register = self.name("a register")?;
                self.expect(TsoKind::Comma, "`,` as in `new n, node`")?;
                let structure = self.name("the name of a struct")?;
                let span = start.to(self.last_span());
                self.end_of_statement()?;
                Ok(Stmt::Instr(Op::New(register, structure), span))
            }
            "free" => {
                self.bump();
                let block = self.expr()?;
                let span = start.to(self.last_span());
                self.end_of_statement()?;
                Ok(Stmt::Instr(Op::Free(block), span))
            }
            _ => self.single(),
        }
    }

    /// `fence? NAME: ss, ll`, behind the question mark.
    pub(super) fn fence_place(&mut self) -> Parsed<Op<'s>> {
        let name = self.name("the name of the place")?;
        let kinds = match self.eat(TsoKind::Colon) {
            Some(_) => self.fence_kinds()?,
            None => FenceKinds::ALL,
        };
        if FenceKinds::named(name.text).is_some() {
            let problem = Problem::warning(format!("this place is called `{}`", shorten(name.text)));
            self.problems.report(problem.at(name.span).help("as in `fence? publish: ss`"));
        }
        Ok(Op::Place(name, kinds))
    }
}

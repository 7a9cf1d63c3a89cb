//! From tokens to a tree, by recursive descent. The first thing that does not fit ends it: what follows is
//! seldom worth a second message.

mod expr;

use super::ast::{
    ChannelText, Declaration, DirectionText, DveName, ExprText, LvalueText, ProcessText, SyncText,
    SystemText, TransitionText,
};
use super::lex::{self, DveKind, DveToken, KEYWORDS};
use crate::dve::DveType;
use crate::front::diagnostics::{Parsed, Problem, Problems, Reported, Span, shorten};
use crate::model::Value;

/// What a token costs, with the part of the tree that it becomes.
const STEPS: usize = 4;
/// No array or channel may be larger: the state would not be.
const MOST: usize = 1 << 12;

pub(crate) struct DveParser<'s, 'p, 'l> {
    tokens: Vec<DveToken<'s>>,
    next: usize,
    pub problems: &'p mut Problems<'l>,
}

impl<'s, 'p, 'l> DveParser<'s, 'p, 'l> {
    pub(crate) fn new(source: &'s str, problems: &'p mut Problems<'l>) -> Self {
        DveParser { tokens: lex::tokens(source, problems), next: 0, problems }
    }

    fn token(&self) -> DveToken<'s> {
        self.tokens[self.next]
    }

    fn is(&self, text: &str) -> bool {
        self.token().is(text)
    }

    /// Never goes past the end of the file, and right there at a limit.
    fn bump(&mut self) -> DveToken<'s> {
        let (token, last) = (self.token(), self.tokens.len() - 1);
        self.next = match self.problems.spend(STEPS) {
            Ok(()) => (self.next + 1).min(last),
            Err(Reported) => last,
        };
        token
    }

    fn eat(&mut self, text: &str) -> Option<Span> {
        self.is(text).then(|| self.bump().span)
    }

    fn expect(&mut self, text: &str) -> Parsed<Span> {
        self.eat(text).ok_or_else(|| self.unexpected(&format!("`{text}`")))
    }

    fn unexpected(&mut self, expected: &str) -> Reported {
        let token = self.token();
        let found = match token.kind {
            DveKind::Garbage => return Reported,
            DveKind::EndOfFile => "the end of the file".to_string(),
            _ => format!("`{}`", shorten(token.text)),
        };
        self.problems.report(Problem::error(format!("expected {expected}, found {found}")).at(token.span))
    }

    fn name(&mut self, expected: &str) -> Parsed<DveName<'s>> {
        let token = self.token();
        if token.is_name() {
            self.bump();
            return Ok(DveName { text: token.text, span: token.span });
        }
        if KEYWORDS.contains(&token.text) {
            let problem = Problem::error(format!("`{}` is a reserved word", token.text))
                .at(token.span)
                .label(format!("expected {expected}"));
            return Err(self.problems.report(problem));
        }
        Err(self.unexpected(expected))
    }

    fn number(&mut self, expected: &str) -> Parsed<Value> {
        let token = self.token();
        if token.kind != DveKind::Number {
            return Err(self.unexpected(expected));
        }
        self.bump();
        token.text.parse::<i32>().map(Value::from).map_err(|_| {
            let why = format!("{} is too large: numbers have 32 bits", shorten(token.text));
            self.problems.report(Problem::error(why).at(token.span))
        })
    }

    fn count(&mut self, what: &str) -> Parsed<usize> {
        let span = self.token().span;
        let number = self.number("a number")?;
        usize::try_from(number).ok().filter(|n| *n <= MOST).ok_or_else(|| {
            let why = format!("{what} of {number} is too large: {MOST} is the most");
            self.problems.report(Problem::error(why).at(span))
        })
    }

    /// One or more, with commas between them.
    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut all = vec![item(self)?];
        while self.eat(",").is_some() {
            all.push(item(self)?);
        }
        Ok(all)
    }

    /// The whole file.
    pub(crate) fn system(&mut self) -> Parsed<SystemText<'s>> {
        let mut system = SystemText::default();
        loop {
            if self.is("channel") {
                self.channels(&mut system.channels)?;
            } else if self.at_type() {
                self.declarations(&mut system.variables)?;
            } else if self.is("process") {
                system.processes.push(self.process()?);
            } else {
                break;
            }
        }
        self.expect("system")?;
        if self.is("sync") {
            let why = "processes that all step together are not supported";
            let problem = Problem::error(why).at(self.token().span).help("`system async;` is");
            return Err(self.problems.report(problem));
        }
        self.expect("async")?;
        if self.eat("property").is_some() {
            system.property = Some(self.name("the name of the property process")?);
        }
        self.expect(";")?;
        if self.token().kind != DveKind::EndOfFile {
            return Err(self.unexpected("the end of the file"));
        }
        Ok(system)
    }

    fn at_type(&self) -> bool {
        ["const", "byte", "int"].iter().any(|word| self.is(word))
    }

    fn kind(&mut self) -> Parsed<DveType> {
        match self.token() {
            token if token.is("byte") => Ok(DveType::Byte),
            token if token.is("int") => Ok(DveType::Int),
            _ => return Err(self.unexpected("`byte` or `int`")),
        }
        .inspect(|_| {
            self.bump();
        })
    }

    fn declarations(&mut self, all: &mut Vec<Declaration<'s>>) -> Parsed<()> {
        let constant = self.eat("const").is_some();
        let kind = self.kind()?;
        all.extend(self.list(|p| p.declaration(kind, constant))?);
        self.expect(";").map(|_| ())
    }

    fn declaration(&mut self, kind: DveType, constant: bool) -> Parsed<Declaration<'s>> {
        let name = self.name("the name of a variable")?;
        let mut size = None;
        if self.eat("[").is_some() {
            let span = self.token().span;
            size = Some(self.count("an array")?);
            if size == Some(0) {
                return Err(self.problems.report(Problem::error("an array has some elements").at(span)));
            }
            self.expect("]")?;
        }
        let mut initial = Vec::new();
        if self.eat("=").is_some() {
            if self.eat("{").is_some() {
                initial = self.list(|p| p.expression())?;
                self.expect("}")?;
            } else {
                initial.push(self.expression()?);
            }
        }
        Ok(Declaration { name, kind, constant, size, initial })
    }

    fn channels(&mut self, all: &mut Vec<ChannelText<'s>>) -> Parsed<()> {
        self.expect("channel")?;
        let mut types = None;
        if self.eat("{").is_some() {
            types = Some(self.list(|p| p.kind())?);
            self.expect("}")?;
        }
        let channels = self.list(|p| {
            let name = p.name("the name of a channel")?;
            let mut capacity = 0;
            if types.is_some() {
                p.expect("[")?;
                capacity = p.count("a channel")?;
                p.expect("]")?;
            }
            Ok(ChannelText { name, types: types.clone(), capacity })
        })?;
        all.extend(channels);
        self.expect(";").map(|_| ())
    }

    fn process(&mut self) -> Parsed<ProcessText<'s>> {
        self.expect("process")?;
        let mut process = ProcessText {
            name: self.name("the name of a process")?,
            variables: vec![],
            states: vec![],
            initial: None,
            committed: vec![],
            accepting: vec![],
            asserts: vec![],
            transitions: vec![],
        };
        self.expect("{")?;
        while self.at_type() {
            self.declarations(&mut process.variables)?;
        }
        self.expect("state")?;
        process.states = self.list(|p| p.name("the name of a state"))?;
        self.expect(";")?;
        while self.eat("}").is_none() {
            self.section(&mut process)?;
        }
        Ok(process)
    }

    fn section(&mut self, process: &mut ProcessText<'s>) -> Parsed<()> {
        let state = "the name of a state";
        match self.token().text {
            "init" => {
                self.bump();
                process.initial = Some(self.name(state)?);
            }
            "commit" => {
                self.bump();
                process.committed.extend(self.list(|p| p.name(state))?);
            }
            "accept" => {
                self.bump();
                self.eat("buchi");
                if ["genbuchi", "streett", "rabin", "muller"].iter().any(|word| self.is(word)) {
                    let problem = Problem::error("only Büchi acceptance is supported")
                        .at(self.token().span)
                        .help("`accept` with a list of states is");
                    return Err(self.problems.report(problem));
                }
                process.accepting.extend(self.list(|p| p.name(state))?);
            }
            "assert" => {
                self.bump();
                process.asserts.extend(self.list(|p| {
                    let at = p.name(state)?;
                    p.expect(":")?;
                    Ok((at, p.expression()?))
                })?);
            }
            "trans" => {
                self.bump();
                let mut from = None;
                let transitions = self.list(|p| {
                    let transition = p.transition(from)?;
                    from = Some(transition.from);
                    Ok(transition)
                })?;
                process.transitions.extend(transitions);
            }
            _ => return Err(self.unexpected("`init`, `commit`, `accept`, `assert`, `trans` or `}`")),
        }
        self.expect(";").map(|_| ())
    }

    /// A transition without a source has that of the one before it.
    fn transition(&mut self, before: Option<DveName<'s>>) -> Parsed<TransitionText<'s>> {
        let begin = self.token().span;
        let from = match before {
            Some(before) if self.is("->") => before,
            _ => self.name("the state that a transition begins in")?,
        };
        if self.is("=>") {
            let problem = Problem::error("probabilistic transitions are not supported").at(self.token().span);
            return Err(self.problems.report(problem));
        }
        self.expect("->")?;
        let to = self.name("the state that the transition leads to")?;
        self.expect("{")?;
        let mut guard = None;
        if self.eat("guard").is_some() {
            guard = Some(self.expression()?);
            self.expect(";")?;
        }
        let mut sync = None;
        if self.eat("sync").is_some() {
            sync = Some(self.sync()?);
            self.expect(";")?;
        }
        let mut effects = Vec::new();
        if self.eat("effect").is_some() {
            effects = self.list(|p| {
                let target = p.lvalue()?;
                p.expect("=")?;
                Ok((target, p.expression()?))
            })?;
            self.expect(";")?;
        }
        let end = self.eat("}").ok_or_else(|| {
            self.unexpected("`guard`, `sync` and `effect`, in this order and at most once, or `}`")
        })?;
        Ok(TransitionText { from, to, span: begin.to(end), guard, sync, effects })
    }

    fn sync(&mut self) -> Parsed<SyncText<'s>> {
        let channel = self.name("the name of a channel")?;
        let direction = if self.eat("!").is_some() {
            DirectionText::Send(self.parts(|p| p.expression())?)
        } else if self.eat("?").is_some() {
            DirectionText::Receive(self.parts(|p| p.lvalue())?)
        } else {
            return Err(self.unexpected("`!` or `?`"));
        };
        Ok(SyncText { channel, direction })
    }

    /// Nothing, one, or several in braces.
    fn parts<T>(&mut self, mut item: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        if self.is(";") {
            return Ok(vec![]);
        }
        if self.eat("{").is_none() {
            return Ok(vec![item(self)?]);
        }
        let all = self.list(item)?;
        self.expect("}")?;
        Ok(all)
    }

    fn lvalue(&mut self) -> Parsed<LvalueText<'s>> {
        let name = self.name("the name of a variable")?;
        Ok(LvalueText { name, index: self.index()? })
    }

    fn index(&mut self) -> Parsed<Option<Box<ExprText<'s>>>> {
        if self.eat("[").is_none() {
            return Ok(None);
        }
        let index = self.expression()?;
        self.expect("]")?;
        Ok(Some(Box::new(index)))
    }
}

//! What does the test ask? Its condition, and which registers and locations final states are to show.
//!
//! The condition is kept as it was written, flattened, since it is printed again; `Prop::pred` is what it
//! means.

use super::init::{OfThread, of_thread};
use super::lex::{LitmusKind, LitmusToken, Tokens, expected, signed_number};
use super::memory::LitmusMemory;
use crate::front::const_fold;
use crate::front::diagnostics::{Problem, Problems, Reported, Span};
use crate::model::{BinOp, Expr, Pred, PropertyKind, Value};
use std::collections::BTreeSet;

/// Deeper nesting is refused.
const MAX_NESTING: usize = 100;

pub(crate) struct LitmusQuestion<'s> {
    pub kind: PropertyKind,
    pub prop: Prop<'s>,
    /// What `locations` adds.
    pub locations: Vec<(LitmusPlace<'s>, Span)>,
    pub span: Span,
}

/// Something that has a value in a final state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LitmusPlace<'s> {
    Own(OfThread),
    Cell(&'s str, Option<usize>),
}

#[derive(Clone, Debug)]
pub(crate) enum Prop<'s> {
    Const(bool),
    Compare { left: (LitmusPlace<'s>, Span), equal: bool, right: (Right<'s>, Span) },
    Not(Box<Prop<'s>>),
    And(Vec<Prop<'s>>),
    Or(Vec<Prop<'s>>),
    Implies(Box<Prop<'s>>, Box<Prop<'s>>),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Right<'s> {
    Const(Value),
    AddressOf(&'s str),
    Place(LitmusPlace<'s>),
}

pub(crate) fn read<'s>(
    clean: &'s str,
    part: Span,
    memory: &mut LitmusMemory<'s>,
    problems: &mut Problems,
) -> LitmusQuestion<'s> {
    let tokens = Tokens::new(clean, part, problems);
    let span = tokens.span();
    let mut reader = ConditionReader { tokens, memory, problems, nesting: 0 };
    let mut question =
        LitmusQuestion { kind: PropertyKind::Forall, prop: Prop::Const(true), locations: vec![], span };
    let _ = reader.question(&mut question);
    question
}

struct ConditionReader<'s, 'a, 'l> {
    tokens: Tokens<'s>,
    memory: &'a mut LitmusMemory<'s>,
    problems: &'a mut Problems<'l>,
    nesting: usize,
}

impl<'s> ConditionReader<'s, '_, '_> {
    fn question(&mut self, question: &mut LitmusQuestion<'s>) -> Result<(), Reported> {
        if self.is_word("locations") {
            self.tokens.next();
            question.locations = self.locations()?;
            self.tokens.take(LitmusKind::Semicolon);
        }
        if self.tokens.is_at_end() {
            return Ok(());
        }
        question.span = self.tokens.peek().span;
        question.kind = self.quantifier()?;
        question.prop = self.disjunction()?;
        self.tokens.take(LitmusKind::Semicolon);
        if self.is_word("with") {
            let with = self.tokens.next();
            let warning = Problem::warning("what stands behind `with` is ignored").at(with.span);
            self.problems.report(warning.help("what is asked is the condition itself"));
            return Ok(());
        }
        match self.tokens.is_at_end() {
            true => Ok(()),
            false => {
                let found = self.tokens.peek();
                Err(self.problems.report(expected(r"`/\`, `\/` or the end of the condition", found)))
            }
        }
    }

    fn is_word(&self, word: &str) -> bool {
        self.tokens.peek().text == word
    }

    fn quantifier(&mut self) -> Result<PropertyKind, Reported> {
        let token = self.tokens.peek();
        let kind = match token.text {
            "(" => return Ok(PropertyKind::Exists),
            "exists" | "final" => PropertyKind::Exists,
            "forall" => PropertyKind::Forall,
            "~" => {
                self.tokens.next();
                if !self.is_word("exists") {
                    let found = self.tokens.peek();
                    return Err(self.problems.report(expected("`exists` behind `~`", found)));
                }
                PropertyKind::Never
            }
            "filter" | "observed" | "cases" => {
                let unsupported = Problem::error(format!("`{}` is not supported", token.text)).at(token.span);
                return Err(self
                    .problems
                    .report(unsupported.help("a test ends with exists, ~exists or forall")));
            }
            _ => return Err(self.problems.report(expected("exists, ~exists or forall", token))),
        };
        self.tokens.next();
        Ok(kind)
    }

    fn locations(&mut self) -> Result<Vec<(LitmusPlace<'s>, Span)>, Reported> {
        self.expect(LitmusKind::LeftBracket, "`[`")?;
        let mut places = Vec::new();
        while self.tokens.peek().kind != LitmusKind::RightBracket {
            places.push(self.place()?);
            // A type may follow, and says nothing new.
            while matches!(self.tokens.peek().kind, LitmusKind::Name | LitmusKind::Star) {
                self.tokens.next();
            }
            if self.tokens.take(LitmusKind::Semicolon).is_none() {
                break;
            }
        }
        self.expect(LitmusKind::RightBracket, "`;` or `]`")?;
        Ok(places)
    }

    fn expect(&mut self, kind: LitmusKind, what: &str) -> Result<LitmusToken<'s>, Reported> {
        let token = self.tokens.peek();
        self.tokens.take(kind).ok_or_else(|| self.problems.report(expected(what, token)))
    }

    fn disjunction(&mut self) -> Result<Prop<'s>, Reported> {
        self.list(LitmusKind::Or, Prop::Or, Self::conjunction)
    }

    fn conjunction(&mut self) -> Result<Prop<'s>, Reported> {
        self.list(LitmusKind::And, Prop::And, Self::implication)
    }

    fn list(
        &mut self,
        between: LitmusKind,
        join: fn(Vec<Prop<'s>>) -> Prop<'s>,
        item: fn(&mut Self) -> Result<Prop<'s>, Reported>,
    ) -> Result<Prop<'s>, Reported> {
        let first = item(self)?;
        if self.tokens.peek().kind != between {
            return Ok(first);
        }
        let mut all = vec![first];
        while self.tokens.take(between).is_some() {
            all.push(item(self)?);
        }
        Ok(join(all))
    }

    fn implication(&mut self) -> Result<Prop<'s>, Reported> {
        let mut chain = vec![self.literal()?];
        while self.tokens.take(LitmusKind::Implies).is_some() {
            chain.push(self.literal()?);
            if chain.len() > MAX_NESTING {
                return Err(self.too_deep());
            }
        }
        let last = chain.pop().expect("there is a first one");
        let implies = |then, when| Prop::Implies(Box::new(when), Box::new(then));
        Ok(chain.into_iter().rev().fold(last, implies))
    }

    fn too_deep(&mut self) -> Reported {
        let at = self.tokens.peek().span;
        self.problems.report(Problem::error("the condition is nested too deeply").at(at))
    }

    fn literal(&mut self) -> Result<Prop<'s>, Reported> {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            return Err(self.too_deep());
        }
        let token = self.tokens.peek();
        let prop = match (token.kind, token.text) {
            (LitmusKind::Not, _) | (_, "not") => {
                self.tokens.next();
                Prop::Not(Box::new(self.literal()?))
            }
            (LitmusKind::LeftParen, _) => {
                self.tokens.next();
                let inner = self.disjunction()?;
                self.expect(LitmusKind::RightParen, r"`/\`, `\/` or `)`")?;
                inner
            }
            (_, "true" | "false") => Prop::Const(self.tokens.next().text == "true"),
            _ => self.comparison()?,
        };
        self.nesting -= 1;
        Ok(prop)
    }

    fn comparison(&mut self) -> Result<Prop<'s>, Reported> {
        let left = self.place()?;
        let relation = self.tokens.next();
        let equal = match relation.kind {
            LitmusKind::Equals => true,
            LitmusKind::Differs => false,
            _ => return Err(self.problems.report(expected("`=`", relation))),
        };
        Ok(Prop::Compare { left, equal, right: self.right()? })
    }

    fn right(&mut self) -> Result<(Right<'s>, Span), Reported> {
        let token = self.tokens.peek();
        match (token.kind, self.tokens.peek_at(1).kind) {
            (LitmusKind::Number, LitmusKind::Colon)
            | (LitmusKind::Name, LitmusKind::Colon | LitmusKind::LeftBracket)
            | (LitmusKind::LeftBracket, _) => {
                let (place, span) = self.place()?;
                Ok((Right::Place(place), span))
            }
            (LitmusKind::Ampersand, _) | (LitmusKind::Name, _) => {
                self.tokens.take(LitmusKind::Ampersand);
                let name = self.expect(LitmusKind::Name, "a location")?;
                self.memory.mention(name.text);
                Ok((Right::AddressOf(name.text), name.span))
            }
            _ => {
                let value = signed_number(&mut self.tokens, self.problems).ok_or(Reported)?;
                self.memory.number(value);
                Ok((Right::Const(value), token.span))
            }
        }
    }

    /// A register of a thread, a location, or an element of an array.
    fn place(&mut self) -> Result<(LitmusPlace<'s>, Span), Reported> {
        let start = self.tokens.peek().span;
        if let Some(register) = of_thread(&mut self.tokens, self.memory.arch, self.problems) {
            let end = self.tokens.peek().span.start.max(start.end);
            return Ok((LitmusPlace::Own(register?), Span { start: start.start, end }));
        }
        let bracketed = self.tokens.take(LitmusKind::LeftBracket).is_some();
        let name = self.expect(LitmusKind::Name, "a register or a location")?;
        self.memory.mention(name.text);
        let mut element = None;
        if self.tokens.take(LitmusKind::LeftBracket).is_some() {
            let at = self.tokens.peek();
            let index = signed_number(&mut self.tokens, self.problems).ok_or(Reported)?;
            self.expect(LitmusKind::RightBracket, "`]`")?;
            element = Some(usize::try_from(index).map_err(|_| {
                self.problems.report(Problem::error("an element has a number from 0 up").at(at.span))
            })?);
        }
        if bracketed {
            self.expect(LitmusKind::RightBracket, "`]`")?;
        }
        Ok((LitmusPlace::Cell(name.text, element), name.span))
    }
}

impl<'s> Prop<'s> {
    /// Every register and location in it.
    pub(crate) fn for_each_place(&self, visit: &mut impl FnMut(LitmusPlace<'s>, Span)) {
        match self {
            Prop::Const(_) => {}
            Prop::Compare { left, right, .. } => {
                visit(left.0, left.1);
                if let (Right::Place(place), span) = right {
                    visit(*place, *span);
                }
            }
            Prop::Not(a) => a.for_each_place(visit),
            Prop::And(all) | Prop::Or(all) => all.iter().for_each(|a| a.for_each_place(visit)),
            Prop::Implies(a, b) => {
                a.for_each_place(visit);
                b.for_each_place(visit);
            }
        }
    }

    /// Every comparison of a place with an address.
    pub(crate) fn for_each_address(&self, visit: &mut impl FnMut(LitmusPlace<'s>, &'s str, Span)) {
        match self {
            Prop::Compare { left, right: (Right::AddressOf(name), span), .. } => visit(left.0, name, *span),
            Prop::Const(_) | Prop::Compare { .. } => {}
            Prop::Not(a) => a.for_each_address(visit),
            Prop::And(all) | Prop::Or(all) => all.iter().for_each(|a| a.for_each_address(visit)),
            Prop::Implies(a, b) => {
                a.for_each_address(visit);
                b.for_each_address(visit);
            }
        }
    }

    /// What it means, given what its comparisons mean.
    pub(crate) fn pred(&self, compare: &impl Fn(&LitmusPlace<'s>, bool, &Right<'s>) -> Pred) -> Pred {
        let join = |op: BinOp, all: &[Prop<'s>]| {
            let all = all.iter().map(|a| a.pred(compare)).collect();
            const_fold::join(all, &mut |a, b| Expr::binary(op, a, b))
                .unwrap_or(Expr::Const((op == BinOp::And) as Value))
        };
        match self {
            Prop::Const(value) => Expr::Const(*value as Value),
            Prop::Compare { left, equal, right } => compare(&left.0, *equal, &right.0),
            Prop::Not(a) => a.pred(compare).negated(),
            Prop::And(all) => join(BinOp::And, all),
            Prop::Or(all) => join(BinOp::Or, all),
            Prop::Implies(a, b) => Expr::binary(BinOp::Or, a.pred(compare).negated(), b.pred(compare)),
        }
    }

    /// As litmus files write it, with as few parentheses as possible.
    pub(crate) fn show(&self, place: &impl Fn(&LitmusPlace<'s>) -> String) -> String {
        self.show_at(0, place)
    }

    fn show_at(&self, outer: u8, place: &impl Fn(&LitmusPlace<'s>) -> String) -> String {
        let list = |all: &[Prop<'s>], sign: &str, level: u8| {
            all.iter().map(|a| a.show_at(level, place)).collect::<Vec<_>>().join(sign)
        };
        let (level, text) = match self {
            Prop::Const(value) => (4, value.to_string()),
            Prop::Compare { left, equal, right } => {
                let right = match &right.0 {
                    Right::Const(value) => value.to_string(),
                    Right::AddressOf(name) => name.to_string(),
                    Right::Place(p @ LitmusPlace::Cell(..)) => format!("[{}]", place(p)),
                    Right::Place(p) => place(p),
                };
                (4, format!("{}{}{right}", place(&left.0), if *equal { "=" } else { "!=" }))
            }
            Prop::Not(a) => (3, format!("not {}", a.show_at(5, place))),
            Prop::Implies(a, b) => (2, format!("{} => {}", a.show_at(3, place), b.show_at(2, place))),
            Prop::And(all) => (1, list(all, r" /\ ", 1)),
            Prop::Or(all) => (0, list(all, r" \/ ", 0)),
        };
        if level < outer { format!("({text})") } else { text }
    }
}

/// What final states show: the condition's places and the listed ones, registers first.
pub(crate) fn observed<'s>(question: &LitmusQuestion<'s>, memory: &LitmusMemory<'s>) -> Vec<LitmusPlace<'s>> {
    let mut places = BTreeSet::new();
    let mut add = |place: LitmusPlace<'s>, _| match place {
        LitmusPlace::Cell(name, None) if memory.len(name) > 1 => {
            places.extend((0..memory.len(name)).map(|i| LitmusPlace::Cell(name, Some(i))));
        }
        place => {
            places.insert(place);
        }
    };
    question.prop.for_each_place(&mut add);
    question.locations.iter().for_each(|(place, span)| add(*place, *span));
    places.into_iter().collect()
}

//! What does a property ask? Its predicate over threads, registers and memory, with quantifiers unfolded.
//!
//! `two i: P` is the disjunction of `P(i) && P(j)` over all pairs i < j. Without a range of its own, an index
//! takes the values that the threads `p[i]` in the body have.

use super::lower::{Leaves, Role, lower};
use super::names::{Local, Locals, Meaning, TsoNames, not_constant, shifted, used_too_early};
use super::thread::{Unrolled, inlined_label};
use crate::front::const_fold;
use crate::front::diagnostics::{INSTRUCTION, Problem, Problems, Reported, Span};
use crate::front::tso::ast::{Expr, File, HowMany, LabelRef, Name, Property, Quantifier, ThreadRef};
use crate::model::expr::MAX_DEPTH;
use crate::model::{self, Addr, Atom, BinOp, Case, Loc, Pred, PropertyKind, ThreadId, Value};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

/// What all quantifiers of one property may unfold to, in atoms and copies of atoms.
const MAX_ATOMS: usize = 2_000_000;
/// Properties that unfold to more than this are told without the indices that fail.
const MOST_TOLD: usize = 10_000;
/// Longer properties are cut short in reports.
const LONGEST_TEXT: usize = 400;

/// The threads of a program by what properties call them.
#[derive(Default)]
pub(crate) struct Cast<'s> {
    pub threads: Vec<Unrolled<'s>>,
    /// What each was made from: its template, or itself.
    pub owners: Vec<String>,
    /// `p` alone and `p[1]`, `p[2]`, … are one name each here.
    pub by_name: HashMap<&'s str, Named>,
}

#[derive(Default)]
pub(crate) struct Named {
    pub alone: Option<ThreadId>,
    pub indexed: BTreeMap<Value, ThreadId>,
}

impl Named {
    /// Was its definition wrong, so that nobody knows its threads?
    fn is_unknown(&self) -> bool {
        self.alone.is_none() && self.indexed.is_empty()
    }
}

pub(crate) struct Query<'a, 's, 'f> {
    pub source: &'s str,
    pub names: &'a TsoNames<'s, 'f>,
    pub cast: &'a Cast<'s>,
    pub cells: usize,
    pub problems: &'a mut Problems<'s>,
    pub locals: Locals<'s>,
    pub atoms: usize,
}

impl<'s> Query<'_, 's, '_> {
    /// No two properties have one name.
    pub(crate) fn check_names(&mut self, file: &File<'s>) {
        let mut lines = HashMap::new();
        let formulas = file.formulas.iter().filter_map(|f| f.name);
        for name in file.properties.iter().filter_map(|p| p.name).chain(formulas) {
            let line = self.problems.line(name.span);
            if let Some(first) = lines.insert(name.text, line) {
                let problem = Problem::error(format!("property `{}` is defined twice", name.text));
                self.problems.report(problem.at(name.span).label(format!("first on line {first}")));
            }
        }
    }

    pub(crate) fn property(&mut self, property: &Property<'s>) -> Result<model::Property, Reported> {
        self.atoms = 0;
        let pred = self.quantified(&property.quantifiers, property)?;
        if pred.depth() > MAX_DEPTH {
            let problem =
                Problem::error(format!("this property is nested more than {MAX_DEPTH} levels deep"));
            return Err(self.problems.report(problem.at(property.span)));
        }
        if pred.may_divide_by_zero() {
            let problem = Problem::error("this property divides by something that may be zero");
            return Err(self.problems.report(problem.at(property.body.span())));
        }
        let cases = if self.atoms <= MOST_TOLD { self.cases(property)? } else { vec![] };
        let text = self.text_of(property.span);
        let name = property.name.map(|name| name.text.to_string());
        let line = self.problems.line(property.span);
        Ok(model::Property { kind: property.kind, name, pred, line, text, cases })
    }

    /// A property as the file has it, in one line.
    pub(crate) fn text_of(&self, span: Span) -> String {
        let text: String = self.source[span.start..span.end].chars().take(LONGEST_TEXT).collect();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn quantified(&mut self, left: &[Quantifier<'s>], property: &Property<'s>) -> Result<Pred, Reported> {
        let Some((quantifier, inner)) = left.split_first() else {
            return lower(self, &property.body);
        };
        let mut cases = Vec::new();
        for value in self.values(quantifier, &[&property.body])? {
            self.spend(1, property.span)?;
            self.locals.push((quantifier.var.text, Local::Constant(value)));
            let case = self.quantified(inner, property);
            self.locals.pop();
            cases.push(case?);
        }
        self.combine(quantifier.how_many, cases, property.span)
    }

    /// The ways in which a state can be against the property, by the indices of the quantifiers that it
    /// begins with; none if it begins with none that one index, or two of them, settle.
    fn cases(&mut self, property: &Property<'s>) -> Result<Vec<Case>, Reported> {
        let cases = self.indexed(&property.quantifiers, property)?.into_iter();
        let against = |case: Case| match property.kind {
            PropertyKind::Forall => Case { pred: case.pred.negated(), ..case },
            _ => case,
        };
        Ok(cases.filter(|case| !case.indices.is_empty()).map(against).collect())
    }

    fn indexed(&mut self, left: &[Quantifier<'s>], property: &Property<'s>) -> Result<Vec<Case>, Reported> {
        let settles =
            |q: &Quantifier| (q.how_many == HowMany::All) == (property.kind == PropertyKind::Forall);
        let Some((quantifier, inner)) = left.split_first().filter(|(q, _)| settles(q)) else {
            return Ok(vec![Case { indices: String::new(), pred: self.quantified(left, property)? }]);
        };
        let var = quantifier.var.text;
        let values = self.values(quantifier, &[&property.body])?;
        let mut cases = Vec::new();
        let mut preds = Vec::new();
        for &value in &values {
            self.locals.push((var, Local::Constant(value)));
            match quantifier.how_many {
                HowMany::Two => preds.push(self.quantified(inner, property)),
                _ => cases.push(self.indexed(inner, property)),
            }
            self.locals.pop();
        }
        if quantifier.how_many == HowMany::Two {
            let preds = preds.into_iter().collect::<Result<_, _>>()?;
            let second = |k: usize| values[k + 1..].iter().map(move |j| (k, j));
            let pairs = (0..values.len()).flat_map(second);
            let named = pairs.map(|(k, j)| format!("{var} = {} and {j}", values[k]));
            let both = self.pairs(preds, property.span)?;
            return Ok(named.zip(both).map(|(indices, pred)| Case { indices, pred }).collect());
        }
        let mut all = Vec::new();
        for (value, cases) in values.iter().zip(cases) {
            all.extend(cases?.into_iter().map(|Case { indices, pred }| {
                let comma = if indices.is_empty() { "" } else { ", " };
                Case { indices: format!("{var} = {value}{comma}{indices}"), pred }
            }));
        }
        Ok(all)
    }

    fn combine(&mut self, how_many: HowMany, cases: Vec<Pred>, span: Span) -> Result<Pred, Reported> {
        let (op, cases) = match how_many {
            HowMany::All => (BinOp::And, cases),
            HowMany::Some => (BinOp::Or, cases),
            HowMany::Two => (BinOp::Or, self.pairs(cases, span)?),
        };
        let empty = Pred::Const((op == BinOp::And) as Value);
        Ok(const_fold::join(cases, &mut |a, b| junction(op, a, b)).unwrap_or(empty))
    }

    fn pairs(&mut self, cases: Vec<Pred>, span: Span) -> Result<Vec<Pred>, Reported> {
        let sizes: Vec<usize> = cases.iter().map(atoms).collect();
        let copies = sizes.iter().sum::<usize>().saturating_mul(cases.len());
        self.spend(copies, span)?;
        let mut pairs = Vec::new();
        for (i, first) in cases.iter().enumerate() {
            let second = cases[i + 1..].iter();
            pairs.extend(second.map(|second| junction(BinOp::And, first.clone(), second.clone())));
        }
        Ok(pairs)
    }

    pub(crate) fn spend(&mut self, atoms: usize, span: Span) -> Result<(), Reported> {
        self.atoms = self.atoms.saturating_add(atoms);
        if self.atoms <= MAX_ATOMS {
            return self.problems.spend(INSTRUCTION * atoms);
        }
        let problem = Problem::error("this property unfolds to too many cases").at(span);
        Err(self.problems.report(problem.help("quantify over smaller ranges")))
    }

    /// The values of an index.
    pub(crate) fn values(
        &mut self,
        quantifier: &Quantifier<'s>,
        bodies: &[&Expr<'s>],
    ) -> Result<Vec<Value>, Reported> {
        if let Some(range) = &quantifier.range {
            let (lo, hi) = self.names.range(range, &self.locals, self.problems)?;
            let count = (i128::from(hi) - i128::from(lo) + 1).max(0);
            self.spend(usize::try_from(count).unwrap_or(usize::MAX), range.span)?;
            return Ok((lo..=hi).collect());
        }
        let mut families: Vec<Name<'s>> = Vec::new();
        bodies.iter().for_each(|body| families_of(body, quantifier.var.text, &mut families));
        let mut found: Option<(Name<'s>, Vec<Value>)> = None;
        for family in families {
            let values = self.family(&family)?;
            match &found {
                Some((first, others)) if *others != values => {
                    let problem = Problem::error(format!(
                        "threads `{}` and `{}` have different indices",
                        first.text, family.text
                    ));
                    return Err(self.needs_range(problem, quantifier));
                }
                Some(_) => {}
                None => found = Some((family, values)),
            }
        }
        found.map(|(_, values)| values).ok_or_else(|| {
            let var = quantifier.var.text;
            let problem = Problem::error(format!("no thread here has the index `{var}`"));
            self.needs_range(problem, quantifier)
        })
    }

    fn needs_range(&mut self, problem: Problem, quantifier: &Quantifier<'s>) -> Reported {
        let var = quantifier.var.text;
        let problem = problem.at(quantifier.var.span).label("over which values?");
        self.problems.report(problem.help(format!("give it a range, as in `{var} in 1..=3:`")))
    }

    fn family(&mut self, name: &Name<'s>) -> Result<Vec<Value>, Reported> {
        match self.cast.by_name.get(name.text) {
            Some(named) if named.is_unknown() => Err(Reported),
            Some(named) if !named.indexed.is_empty() => Ok(named.indexed.keys().copied().collect()),
            Some(_) => Err(self.not_indexed(name)),
            None => Err(self.unknown_thread(name)),
        }
    }
}

fn junction(op: BinOp, a: Pred, b: Pred) -> Pred {
    const_fold::binary(op, a, b).unwrap_or_else(|_| unreachable!("`&&` and `||` do not divide"))
}

fn atoms(pred: &Pred) -> usize {
    let mut count = 1;
    pred.for_each_atom(&mut |_| count += 1);
    count
}

/// The threads `p[i]` in an expression.
fn families_of<'s>(e: &Expr<'s>, var: &str, found: &mut Vec<Name<'s>>) {
    match e {
        Expr::Number(..) | Expr::Name(_) | Expr::Index(..) => {}
        Expr::Unary(_, _, a) | Expr::Memory(a, _) => families_of(a, var, found),
        Expr::Chain(first, rest) => {
            families_of(first, var, found);
            rest.iter().for_each(|(_, _, e)| families_of(e, var, found));
        }
        Expr::At(t, _) | Expr::Dot(t, _) => {
            if matches!(t.index.as_deref(), Some(Expr::Name(index)) if index.text == var) {
                found.push(t.name);
            }
        }
    }
}

impl<'s> Leaves<'s> for Query<'_, 's, '_> {
    type Leaf = Atom;

    fn leaf(&mut self, e: &Expr<'s>, _: Role) -> Result<Pred, Reported> {
        self.spend(1, e.span())?;
        match e {
            Expr::Name(name) => self.name(name),
            Expr::Memory(address, span) => self.cell(address, *span).map(|a| Pred::Atom(Atom::Mem(a))),
            Expr::At(thread, label) => {
                let t = self.thread(thread)?;
                Ok(Pred::Atom(Atom::At(t, self.label(t, thread, label)?)))
            }
            Expr::Dot(base, field) if self.is_block(base, field) => {
                let address = self.name(&base.name)?;
                Ok(shifted(address, self.names.offset(field, self.problems)?))
            }
            Expr::Dot(thread, register) => {
                let t = self.thread(thread)?;
                self.register(t, thread, register)
            }
            Expr::Index(name, index, span) => Err(self.indexed_value(name, index, *span)),
            _ => unreachable!("lowering hands over leaves only"),
        }
    }

    fn is_address(&self, name: &Name<'s>) -> bool {
        matches!(self.names.meaning(name, &self.locals), Meaning::Address(_))
    }

    fn problems(&mut self) -> &mut Problems<'s> {
        self.problems
    }
}

/// The leaves of predicates.
impl<'s> Query<'_, 's, '_> {
    fn name(&mut self, name: &Name<'s>) -> Result<Pred, Reported> {
        match self.names.meaning(name, &self.locals) {
            Meaning::Constant(value) | Meaning::Address(value) => Ok(Pred::Const(value)),
            Meaning::Doubtful => Err(Reported),
            Meaning::TooEarly(declared) => Err(used_too_early(name, declared, self.problems)),
            Meaning::Argument(_) | Meaning::Unknown => {
                let problem = Problem::error(format!("unknown name `{}`", name.text)).at(name.span);
                let owner = self.cast.threads.iter().find(|t| t.registers.contains_key(name.text));
                let problem = if self.cast.by_name.contains_key(name.text) {
                    problem.help(format!("of a thread, ask `{0}@label` or `{0}.register`", name.text))
                } else if let Some(owner) = owner {
                    problem.help(format!("a register needs its thread: `{}.{}`", owner.parts.name, name.text))
                } else {
                    problem.suggest(self.problems.nearest(name.text, self.names.known(&self.locals)))
                };
                Err(self.problems.report(problem))
            }
        }
    }

    /// Is this a field of a block, and not a register of a thread?
    fn is_block(&self, base: &ThreadRef<'s>, field: &Name<'s>) -> bool {
        base.index.is_none()
            && self.names.is_field(field.text)
            && !self.cast.by_name.contains_key(base.name.text)
    }

    fn cell(&mut self, address: &Expr<'s>, span: Span) -> Result<Addr, Reported> {
        let Pred::Const(value) = lower(self, address)? else {
            return Err(not_constant(address.span(), self.problems));
        };
        match usize::try_from(value) {
            Ok(cell) if cell < self.cells => Ok(Addr(cell as u32)),
            _ if self.names.has_gaps() => Err(Reported),
            _ => {
                let problem = Problem::error(format!("there is no memory at address {value}")).at(span);
                let problem = match self.cells {
                    0 => problem.label("the file declares no shared variables"),
                    cells => problem.label(format!("addresses go from 0 to {}", cells - 1)),
                };
                Err(self.problems.report(problem))
            }
        }
    }

    /// `a[2]` where `[a + 2]` is meant, or a thread without a question.
    fn indexed_value(&mut self, name: &Name<'s>, index: &Expr<'s>, span: Span) -> Reported {
        let (name, index) = (name.text, index.span());
        let index = &self.source[index.start..index.end];
        let problem = Problem::error(format!("`{name}[{index}]` has no value")).at(span);
        self.problems.report(if self.cast.by_name.contains_key(name) {
            problem.help(format!("of a thread, ask `{name}[{index}]@label` or `{name}[{index}].register`"))
        } else {
            problem.help(format!("a cell of an array is `[{name} + {index}]`"))
        })
    }

    fn thread(&mut self, thread: &ThreadRef<'s>) -> Result<ThreadId, Reported> {
        let name = &thread.name;
        let index = match &thread.index {
            Some(index) => Some((self.names.constant(index, &self.locals, self.problems)?, index.span())),
            None => None,
        };
        let Some(named) = self.cast.by_name.get(name.text) else {
            return Err(self.unknown_thread(name));
        };
        match index {
            _ if named.is_unknown() => Err(Reported),
            None => named.alone.ok_or_else(|| {
                let example = named.indexed.keys().next().copied().unwrap_or(0);
                let problem = Problem::error(format!("which of the threads `{}`?", name.text)).at(name.span);
                self.problems.report(problem.help(format!("write `{}[{example}]`", name.text)))
            }),
            Some(_) if named.indexed.is_empty() => Err(self.not_indexed(name)),
            Some((index, span)) => named.indexed.get(&index).copied().ok_or_else(|| {
                let problem = Problem::error(format!("there is no thread `{}[{index}]`", name.text)).at(span);
                let range = named.indexed.keys().next().zip(named.indexed.keys().next_back());
                let problem = match range {
                    Some((lo, hi)) => {
                        problem.label(format!("indices of `{}` go from {lo} to {hi}", name.text))
                    }
                    None => problem,
                };
                self.problems.report(problem)
            }),
        }
    }

    fn unknown_thread(&mut self, name: &Name<'s>) -> Reported {
        if self.names.is_doubtful(name.text) {
            return Reported;
        }
        let meant = self.problems.nearest(name.text, self.cast.by_name.keys().copied());
        let problem = Problem::error(format!("unknown thread `{}`", name.text)).at(name.span).suggest(meant);
        self.problems.report(problem)
    }

    fn not_indexed(&mut self, name: &Name<'s>) -> Reported {
        let problem = Problem::error(format!("thread `{}` has no index", name.text)).at(name.span);
        self.problems.report(problem.help(format!("write `thread {}[i in 1..=3]` for several", name.text)))
    }

    fn label(&mut self, t: ThreadId, thread: &ThreadRef, label: &LabelRef<'s>) -> Result<Vec<Loc>, Reported> {
        let unrolled = &self.cast.threads[t.index()];
        let written = match &label.inline {
            Some(inline) => inlined_label(inline.text, label.name.text).into(),
            None => Cow::Borrowed(label.name.text),
        };
        if let Some(locs) = unrolled.labels.get(&written) {
            self.problems.spend(locs.len())?;
            return Ok(const_fold::places(locs.iter().copied()));
        }
        if !unrolled.complete {
            return Err(Reported);
        }
        let meant = self.problems.nearest(&written, unrolled.labels.keys().map(|l| l.as_ref()));
        let problem = Problem::error(format!("thread `{}` has no label `{written}`", thread.name.text))
            .at(label.name.span)
            .suggest(meant);
        Err(self.problems.report(problem))
    }

    fn register(&mut self, t: ThreadId, thread: &ThreadRef, name: &Name<'s>) -> Result<Pred, Reported> {
        let unrolled = &self.cast.threads[t.index()];
        if let Some(reg) = unrolled.registers.get(name.text) {
            return Ok(Pred::Atom(Atom::Reg(t, *reg)));
        }
        if let Some(address) = unrolled.local_memory.get(name.text) {
            return Ok(Pred::Const(*address));
        }
        if !unrolled.complete {
            return Err(Reported);
        }
        let problem =
            Problem::error(format!("thread `{}` has no register `{}`", thread.name.text, name.text))
                .at(name.span);
        let problem = match self.names.meaning(name, &Vec::new()) {
            Meaning::Address(_) => problem.help(format!("a shared variable is `[{}]`", name.text)),
            _ => problem
                .suggest(self.problems.nearest(name.text, unrolled.registers.keys().map(|r| r.as_str()))),
        };
        Err(self.problems.report(problem))
    }
}

//! Which variable, state or channel does each name mean? From the tree to a system, with initial values
//! computed. Mistakes in different places are reported together.

use super::ast::{
    Declaration, DirectionText, DveName, ExprText, LvalueText, ProcessText, SystemText, TransitionText,
};
use super::names::Names;
use crate::dve::{
    Assertion, Assignment, Channel, Direction, DveExpr, DveProcess, DveState, DveTransition, DveVariable,
    Lvalue, Sync, System,
};
use crate::front::diagnostics::{INSTRUCTION, Parsed, Problem, Problems, Reported, Span, shorten};
use crate::model::{BinOp, Value};
use std::collections::{HashMap, HashSet};

/// Who looks for names: a process or, outside of all of them, nobody.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    pub system: &'a System,
    pub names: &'a Names,
    pub process: Option<usize>,
    /// Names that stand for whole expressions.
    pub definitions: &'a [(String, DveExpr)],
}

pub(crate) fn system(mut text: SystemText, problems: &mut Problems) -> Parsed<System> {
    let has_property = text.property.is_some();
    if let Some(name) = text.property {
        let at = text.processes.iter().position(|p| p.name.text == name.text);
        let at = at.ok_or_else(|| {
            let names = text.processes.iter().map(|p| p.name.text);
            unknown("process", name, names, problems)
        })?;
        let property = text.processes.remove(at);
        text.processes.push(property);
    }
    let (variables, channels, processes) = (vec![], vec![], vec![]);
    let mut system = System { variables, channels, processes, has_property };
    declare(&mut system, &text, problems)?;
    let names = Names::of(&system);
    let mut failed = false;
    for (process, text) in text.processes.iter().enumerate() {
        for (at, condition) in &text.asserts {
            let scope = Scope { system: &system, names: &names, process: Some(process), definitions: &[] };
            let state = scope.state(process, *at, problems);
            let condition = scope.expression(condition, problems);
            match (state, condition) {
                (Ok(state), Ok(condition)) => {
                    let line = problems.line(at.span);
                    system.processes[process].asserts.push(Assertion { state, condition, line });
                }
                _ => failed = true,
            }
        }
        for transition in &text.transitions {
            problems.spend(INSTRUCTION)?;
            let scope = Scope { system: &system, names: &names, process: Some(process), definitions: &[] };
            match scope.transition(process, transition, problems) {
                Ok(transition) => system.processes[process].transitions.push(transition),
                Err(Reported) => failed = true,
            }
        }
    }
    if failed { Err(Reported) } else { messages_fit(&system, &text, problems).map(|()| system) }
}

/// Variables with their initial values, channels, and processes with their states.
fn declare(system: &mut System, text: &SystemText, problems: &mut Problems) -> Parsed<()> {
    let mut names = Names::default();
    let mut result = variables(system, &mut names, None, &text.variables, problems);
    for channel in &text.channels {
        if system.channels.iter().any(|c| c.name == channel.name.text) {
            result = Err(twice("channel", channel.name, problems));
        }
        let (name, types) = (channel.name.text.to_string(), channel.types.clone());
        system.channels.push(Channel { name, types, capacity: channel.capacity });
    }
    let mut known: HashSet<&str> = HashSet::new();
    for (number, process) in text.processes.iter().enumerate() {
        if !known.insert(process.name.text) {
            result = Err(twice("process", process.name, problems));
        }
        result = result.and(variables(system, &mut names, Some(number), &process.variables, problems));
        match states(process, problems) {
            Ok(process) => system.processes.push(process),
            Err(Reported) => return Err(Reported),
        }
    }
    result
}

fn variables(
    system: &mut System,
    names: &mut Names,
    owner: Option<usize>,
    declarations: &[Declaration],
    problems: &mut Problems,
) -> Parsed<()> {
    let mut result = Ok(());
    for declaration in declarations {
        problems.spend(INSTRUCTION)?;
        if names.variable(owner, declaration.name.text).is_some() {
            result = Err(twice("variable", declaration.name, problems));
            continue;
        }
        match variable(system, names, owner, declaration, problems) {
            Ok(variable) => {
                names.add_variable(owner, &variable.name, system.variables.len());
                system.variables.push(variable);
            }
            Err(Reported) => result = Err(Reported),
        }
    }
    result
}

fn variable(
    system: &System,
    names: &Names,
    owner: Option<usize>,
    declaration: &Declaration,
    problems: &mut Problems,
) -> Parsed<DveVariable> {
    let Declaration { name, kind, constant, size, initial } = declaration;
    let scope = Scope { system, names, process: owner, definitions: &[] };
    let mut values = vec![0; size.unwrap_or(1)];
    // Some models have longer lists than arrays; what is too much does not count.
    for (place, expr) in values.iter_mut().zip(initial) {
        let expr = scope.expression(expr, problems)?;
        let value = first_value(system, &expr);
        *place = value.filter(|v| kind.holds(*v)).ok_or_else(|| {
            let why = format!("the initial value of `{}` is none of its type", name.text);
            problems.report(Problem::error(why).at(name.span))
        })?;
    }
    let (name, is_array) = (name.text.to_string(), size.is_some());
    Ok(DveVariable { name, owner, kind: *kind, is_array, constant: *constant, initial: values })
}

/// An expression over the initial values of variables that are declared before it.
fn first_value(system: &System, expr: &DveExpr) -> Option<Value> {
    Some(match expr {
        DveExpr::Number(n) => *n,
        DveExpr::At { .. } => return None,
        DveExpr::Read(place) => {
            let index = match &place.index {
                Some(index) => usize::try_from(first_value(system, index)?).ok()?,
                None => 0,
            };
            *system.variables[place.variable].initial.get(index)?
        }
        DveExpr::Unary(op, a) => op.apply(first_value(system, a)?),
        DveExpr::Binary(op, a, b) => op.apply(first_value(system, a)?, first_value(system, b)?).ok()?,
    })
}

fn states(process: &ProcessText, problems: &mut Problems) -> Parsed<DveProcess> {
    let mut states: Vec<DveState> = Vec::new();
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    for state in &process.states {
        if numbers.insert(state.text, states.len()).is_some() {
            return Err(twice("state", *state, problems));
        }
        states.push(DveState { name: state.text.to_string(), committed: false, accepting: false });
    }
    let find = |word: &DveName, problems: &mut Problems| {
        let at = numbers.get(word.text).copied();
        at.ok_or_else(|| unknown("state", *word, states.iter().map(|s| &s.name[..]), problems))
    };
    let Some(initial) = &process.initial else {
        let why = format!("process `{}` has no initial state", process.name.text);
        let problem = Problem::error(why).at(process.name.span).help("`init` names one");
        return Err(problems.report(problem));
    };
    let initial = find(initial, problems)?;
    let committed: Vec<usize> =
        process.committed.iter().map(|word| find(word, problems)).collect::<Parsed<_>>()?;
    let accepting: Vec<usize> =
        process.accepting.iter().map(|word| find(word, problems)).collect::<Parsed<_>>()?;
    committed.into_iter().for_each(|state| states[state].committed = true);
    accepting.into_iter().for_each(|state| states[state].accepting = true);
    let name = process.name.text.to_string();
    Ok(DveProcess { name, states, initial, asserts: vec![], transitions: vec![] })
}

/// Every receiver finds as many parts as it takes, and typed channels carry as many as they say.
fn messages_fit(system: &System, text: &SystemText, problems: &mut Problems) -> Parsed<()> {
    let mut result = Ok(());
    let mut sent: Vec<Option<usize>> =
        system.channels.iter().map(|c| c.types.as_ref().map(Vec::len)).collect();
    let parts = |process: usize, number: usize| match &system.transition(process, number).sync {
        Some(Sync { channel, direction: Direction::Send(values) }) => Some((*channel, values.len(), true)),
        Some(Sync { channel, direction: Direction::Receive(places) }) => {
            Some((*channel, places.len(), false))
        }
        None => None,
    };
    for senders in [true, false] {
        for (process, p) in text.processes.iter().enumerate() {
            for (number, t) in p.transitions.iter().enumerate() {
                let Some((channel, count, sends)) = parts(process, number) else { continue };
                if sends != senders {
                    continue;
                }
                if count != *sent[channel].get_or_insert(count) {
                    let name = &system.channels[channel].name;
                    let why = format!("messages on `{name}` have different numbers of parts");
                    result = Err(problems.report(Problem::error(why).at(t.span)));
                }
            }
        }
    }
    result
}

impl Scope<'_> {
    fn transition(
        &self,
        process: usize,
        text: &TransitionText,
        problems: &mut Problems,
    ) -> Parsed<DveTransition> {
        let is_property = self.system.has_property && process + 1 == self.system.processes.len();
        let from = self.state(process, text.from, problems);
        let to = self.state(process, text.to, problems);
        let guard = text.guard.as_ref().map(|g| self.expression(g, problems)).transpose();
        let mut sync = None;
        if let Some(wanted) = &text.sync {
            if is_property {
                let why = "the property process takes part in no handshake";
                return Err(problems.report(Problem::error(why).at(wanted.channel.span)));
            }
            let channels = &self.system.channels;
            let channel = channels.iter().position(|c| c.name == wanted.channel.text).ok_or_else(|| {
                unknown("channel", wanted.channel, channels.iter().map(|c| &c.name[..]), problems)
            })?;
            let direction = match &wanted.direction {
                DirectionText::Send(values) => Direction::Send(
                    values.iter().map(|v| self.expression(v, problems)).collect::<Parsed<_>>()?,
                ),
                DirectionText::Receive(places) => Direction::Receive(
                    places.iter().map(|p| self.target(p, problems)).collect::<Parsed<_>>()?,
                ),
            };
            sync = Some(Sync { channel, direction });
        }
        if let Some((target, _)) = text.effects.first().filter(|_| is_property) {
            let why = "the property process only looks: it has no effects";
            return Err(problems.report(Problem::error(why).at(target.name.span)));
        }
        let effects = text.effects.iter().map(|(target, value)| {
            let (target, value) = (self.target(target, problems)?, self.expression(value, problems)?);
            Ok(Assignment { target, value })
        });
        let effects = effects.collect::<Parsed<_>>()?;
        let line = problems.line(text.span);
        Ok(DveTransition { from: from?, to: to?, guard: guard?, sync, effects, line })
    }

    fn state(&self, process: usize, word: DveName, problems: &mut Problems) -> Parsed<usize> {
        let states = &self.system.processes[process].states;
        let at = self.names.state(process, word.text);
        at.ok_or_else(|| unknown("state", word, states.iter().map(|s| &s.name[..]), problems))
    }

    /// What may be written.
    fn target(&self, text: &LvalueText, problems: &mut Problems) -> Parsed<Lvalue> {
        let place = self.lvalue(text, self.process, problems)?;
        if self.system.variables[place.variable].constant {
            let why = format!("`{}` is constant", text.name.text);
            return Err(problems.report(Problem::error(why).at(text.name.span)));
        }
        Ok(place)
    }

    fn lvalue(&self, text: &LvalueText, of: Option<usize>, problems: &mut Problems) -> Parsed<Lvalue> {
        let variables = &self.system.variables;
        let visible = |v: &DveVariable| v.owner.is_none() || v.owner == of;
        let variable = self.names.variable(of, text.name.text);
        let variable = variable.ok_or_else(|| {
            let names = variables.iter().filter(|v| visible(v)).map(|v| &v.name[..]);
            let defined = self.definitions.iter().map(|(name, _)| &name[..]);
            unknown("variable", text.name, names.chain(defined), problems)
        })?;
        if text.index.is_some() && !variables[variable].is_array {
            let why = format!("`{}` is no array", text.name.text);
            return Err(problems.report(Problem::error(why).at(text.name.span)));
        }
        let index = text.index.as_ref().map(|index| self.expression(index, problems)).transpose()?;
        Ok(Lvalue { variable, index: index.map(Box::new) })
    }

    pub(crate) fn expression(&self, text: &ExprText, problems: &mut Problems) -> Parsed<DveExpr> {
        problems.spend(1)?;
        Ok(match text {
            ExprText::Number(n) => DveExpr::Number(*n),
            ExprText::Read(place) => match self.defined(place) {
                Some(expr) => expr,
                None => DveExpr::Read(self.lvalue(place, self.process, problems)?),
            },
            ExprText::At(process, state) => {
                let process = self.process(*process, problems)?;
                DveExpr::At { process, state: self.state(process, *state, problems)? }
            }
            ExprText::Other(process, place) => {
                let process = self.process(*process, problems)?;
                DveExpr::Read(self.lvalue(place, Some(process), problems)?)
            }
            ExprText::Unary(op, a) => DveExpr::Unary(*op, Box::new(self.expression(a, problems)?)),
            ExprText::Binary(op, a, b) => self.binary(*op, a, b, problems)?,
        })
    }

    fn binary(&self, op: BinOp, a: &ExprText, b: &ExprText, problems: &mut Problems) -> Parsed<DveExpr> {
        Ok(DveExpr::binary(op, self.expression(a, problems)?, self.expression(b, problems)?))
    }

    fn defined(&self, place: &LvalueText) -> Option<DveExpr> {
        let found = self.definitions.iter().rev().find(|(name, _)| name == place.name.text);
        found.filter(|_| place.index.is_none()).map(|(_, expr)| expr.clone())
    }

    fn process(&self, word: DveName, problems: &mut Problems) -> Parsed<usize> {
        let processes = &self.system.processes;
        let at = self.names.process(word.text);
        if at.is_some_and(|at| self.system.has_property && at + 1 == processes.len()) {
            let why = format!("`{}` is the property process, and no part of the system", shorten(word.text));
            return Err(problems.report(Problem::error(why).at(word.span)));
        }
        at.ok_or_else(|| unknown("process", word, processes.iter().map(|p| &p.name[..]), problems))
    }
}

fn unknown<'a>(
    what: &str,
    word: DveName,
    known: impl IntoIterator<Item = &'a str>,
    problems: &mut Problems,
) -> Reported {
    let meant = problems.nearest(word.text, known);
    let problem = Problem::error(format!("there is no {what} `{}`", shorten(word.text)));
    problems.report(problem.at(word.span).suggest(meant))
}

fn twice(what: &str, word: DveName, problems: &mut Problems) -> Reported {
    let DveName { text, span } = word;
    let place = Span { start: span.start, end: span.end };
    problems.report(Problem::error(format!("there are two {what}s `{}`", shorten(text))).at(place))
}

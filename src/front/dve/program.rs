//! A DVE model as a program, so that it can be asked what TSO does to it: processes become threads, their
//! variables registers, and globals memory.
//!
//! A step of a program touches one cell, so a transition may read or write one element of a global variable,
//! and everything else that it does has to be the process's own business; what does more is refused with its
//! place. A transition that reads begins with its load, and its guard is an `assume` behind it: where that
//! refuses the value, the run could as well have taken no step. What goes wrong in DVE (an index, a range) is a
//! failing `assert`. Between its load or store and the next state, a thread stands at none of its labels.

use crate::dve::{Assertion, DveExpr, DveTransition, DveVariable, Lvalue, System};
use crate::front::{Inexpressible, Unwritten};
use crate::limits::Limits;
use crate::model::program::{ProgramParts, ThreadParts};
use crate::model::{
    Atom, BinOp, Bytes, Edge, Expr, Instr, Loc, Location, Pred, Program, Property, PropertyKind, Reg,
    RegExpr, ThreadId, UnOp, Value, Variable,
};

/// What a transition costs to translate, in steps.
const TRANSITION: usize = 256;

/// The model as a program that is to be written in this format.
pub fn program(system: &System, format: &'static str, limits: &Limits) -> Result<Program, Unwritten> {
    let translation = Translation { system, format };
    translation.refuse_whole_parts()?;
    let mut parts = ProgramParts { memory: translation.memory(), ..ProgramParts::default() };
    for (p, process) in system.processes.iter().enumerate() {
        limits.spend(TRANSITION * (1 + process.transitions.len()))?;
        parts.threads.push(translation.thread(p)?);
        for assertion in &process.asserts {
            parts.properties.push(translation.assertion(p, assertion)?);
        }
    }
    Program::new(parts).map_err(|wrong| {
        let why = wrong.first().map_or(String::new(), |first| first.to_string());
        translation.no("the model".to_string(), "it", &why)
    })
}

struct Translation<'a> {
    system: &'a System,
    format: &'static str,
}

/// A thread that is being made.
struct Making<'a> {
    translation: &'a Translation<'a>,
    process: usize,
    parts: ThreadParts,
    /// Where the next edge begins.
    at: Loc,
    /// The transition that edges are for.
    line: u32,
    place: String,
    /// The register that a load fills.
    loaded: Reg,
    /// The element that was loaded, if one was.
    read: Option<&'a Lvalue>,
    accesses: usize,
}

impl Translation<'_> {
    fn no(&self, place: String, construct: &str, why: &str) -> Unwritten {
        let (construct, why) = (construct.to_string(), why.to_string());
        Inexpressible { format: self.format, place, construct, why }.into()
    }

    fn refuse_whole_parts(&self) -> Result<(), Unwritten> {
        if let Some(channel) = self.system.channels.first() {
            let why = "threads talk through memory alone";
            return Err(self.no(format!("channel {}", channel.name), "a channel", why));
        }
        for process in &self.system.processes {
            if let Some(state) = process.states.iter().find(|s| s.committed) {
                let place = format!("process {}, state {}", process.name, state.name);
                return Err(self.no(place, "a committed state", "no thread can make the others wait"));
            }
        }
        match self.system.property() {
            None => Ok(()),
            Some(property) => {
                let place = format!("process {}", property.name);
                Err(self.no(place, "a property process", "the system alone is written"))
            }
        }
    }

    fn memory(&self) -> Vec<Variable> {
        let globals = self.system.variables.iter().filter(|v| is_memory(v));
        globals.map(|v| Variable { name: v.name.clone(), init: v.initial.clone() }).collect()
    }

    /// The address of a global variable's first element.
    fn address(&self, variable: usize) -> Value {
        let before = self.system.variables[..variable].iter().filter(|v| is_memory(v));
        before.map(|v| v.initial.len() as Value).sum()
    }

    /// The registers of a process: one for each element of its variables, in their order, and one for loads.
    fn registers(&self, process: usize) -> Vec<String> {
        let own = self.system.variables.iter().filter(|v| v.owner == Some(process) && !v.constant);
        let named = |v: &DveVariable| match v.is_array {
            false => vec![v.name.clone()],
            true => (0..v.initial.len()).map(|i| format!("{}_{i}", v.name)).collect(),
        };
        let mut names: Vec<String> = own.flat_map(named).collect();
        let mut loaded = "loaded".to_string();
        while names.contains(&loaded) {
            loaded.push('_');
        }
        names.push(loaded);
        names
    }

    fn register(&self, process: usize, variable: usize, element: usize) -> Reg {
        let own = |v: &&DveVariable| v.owner == Some(process) && !v.constant;
        let before: usize =
            self.system.variables[..variable].iter().filter(own).map(|v| v.initial.len()).sum();
        Reg((before + element) as u16)
    }

    fn thread(&self, process: usize) -> Result<ThreadParts, Unwritten> {
        let own = &self.system.processes[process];
        let leaves = |s: usize| own.transitions.iter().any(|t| t.from == s);
        let last: Vec<usize> = (0..own.states.len()).filter(|&s| !leaves(s)).collect();
        let state = |s: usize| Loc((s + 1) as u32);
        let mut locations = vec![Location::default()];
        locations.extend(own.states.iter().map(|s| Location::labelled(vec![s.name.clone()])));
        let registers = self.registers(process);
        let loaded = Reg((registers.len() - 1) as u16);
        let name = own.name.clone();
        // A thread begins with what its variables are.
        let (initial, end) =
            (Loc(0), if let [one] = last[..] { state(one) } else { Loc(locations.len() as u32) });
        if last.len() != 1 {
            locations.push(Location::default());
        }
        let parts = ThreadParts { name, registers, locations, edges: vec![], initial, end };
        let mut making = Making {
            translation: self,
            process,
            parts,
            at: initial,
            line: 0,
            place: String::new(),
            loaded,
            read: None,
            accesses: 0,
        };
        for (v, variable) in self.system.variables.iter().enumerate() {
            for (element, &value) in variable.initial.iter().enumerate() {
                if variable.owner == Some(process) && !variable.constant && value != 0 {
                    let dst = self.register(process, v, element);
                    making.go_on(Instr::Assign { dst, value: Expr::Const(value) });
                }
            }
        }
        match making.parts.edges.is_empty() {
            true => making.parts.initial = state(own.initial),
            false => making.arrive(state(own.initial)),
        }
        for (number, t) in own.transitions.iter().enumerate() {
            making.line = t.line;
            let shown = self.system.show_transition(process, t);
            making.place = format!("line {}, transition {}:{number}, {shown}", t.line, own.name);
            making.at = state(t.from);
            making.transition(t)?;
            making.arrive(state(t.to));
        }
        if last.len() > 1 {
            for from in last {
                making.at = state(from);
                making.edge(Instr::Nop, end);
            }
        }
        Ok(making.parts)
    }

    /// An assertion over what is the process's own.
    fn assertion(&self, process: usize, assertion: &Assertion) -> Result<Property, Unwritten> {
        let own = &self.system.processes[process];
        let (state, t) = (&own.states[assertion.state].name, ThreadId(process as u16));
        let place = format!("line {}, the assertion of {} in {state}", assertion.line, own.name);
        let condition =
            self.expr(&assertion.condition, &|place| self.own(process, place)).ok_or_else(|| {
                let why = "only what is the process's own is looked at";
                self.no(place, "its condition", why)
            })?;
        let at = Expr::Atom(Atom::At(t, vec![Loc((assertion.state + 1) as u32)]));
        let fails = condition.map_atoms(&|reg: &Reg| Atom::Reg(t, *reg)).negated();
        let pred: Pred = Expr::binary(BinOp::And, at, fails);
        Ok(Property::new(PropertyKind::Forbid, pred, assertion.line))
    }

    /// A value of the process's own: a constant, or an element of a variable that is known.
    fn own(&self, process: usize, place: &Lvalue) -> Option<RegExpr> {
        let variable = &self.system.variables[place.variable];
        let element = match place.index.as_deref() {
            None => 0,
            Some(index) => usize::try_from(constant(index)?).ok().filter(|&i| i < variable.initial.len())?,
        };
        if variable.constant {
            return Some(Expr::Const(variable.initial[element]));
        }
        let own = variable.owner == Some(process);
        own.then(|| Expr::Atom(self.register(process, place.variable, element)))
    }

    /// The expression over registers, if all its parts can be read.
    fn expr(&self, expr: &DveExpr, read: &dyn Fn(&Lvalue) -> Option<RegExpr>) -> Option<RegExpr> {
        Some(match expr {
            DveExpr::Number(n) => Expr::Const(*n),
            DveExpr::Read(place) => read(place)?,
            DveExpr::At { .. } => return None,
            DveExpr::Unary(op, a) => Expr::unary(*op, self.expr(a, read)?),
            DveExpr::Binary(op, a, b) => Expr::binary(*op, self.expr(a, read)?, self.expr(b, read)?),
        })
    }
}

/// Is the variable in memory? Constants are in the text.
fn is_memory(variable: &DveVariable) -> bool {
    variable.owner.is_none() && !variable.constant
}

fn constant(expr: &DveExpr) -> Option<Value> {
    match expr {
        DveExpr::Number(n) => Some(*n),
        _ => None,
    }
}

fn both(a: RegExpr, b: RegExpr) -> RegExpr {
    match (a, b) {
        (Expr::Const(1), b) => b,
        (a, Expr::Const(1)) => a,
        (a, b) => Expr::binary(BinOp::And, a, b),
    }
}

fn not(a: RegExpr) -> RegExpr {
    Expr::unary(UnOp::Not, a)
}

fn sum(base: Value, offset: RegExpr) -> RegExpr {
    match offset {
        Expr::Const(offset) => Expr::Const(base + offset),
        offset if base == 0 => offset,
        offset => Expr::binary(BinOp::Add, Expr::Const(base), offset),
    }
}

fn within(value: RegExpr, (lo, hi): (Value, Value)) -> RegExpr {
    match value {
        Expr::Const(n) => Expr::Const((lo <= n && n <= hi) as Value),
        value => both(
            Expr::binary(BinOp::Le, Expr::Const(lo), value.clone()),
            Expr::binary(BinOp::Le, value, Expr::Const(hi)),
        ),
    }
}

impl<'a> Making<'a> {
    fn edge(&mut self, instr: Instr, to: Loc) {
        let (line, text) = (self.line, String::new());
        self.parts.edges.push(Edge { from: self.at, to, instr, line, text, origin: None });
        self.at = to;
    }

    /// An edge to a place of its own.
    fn go_on(&mut self, instr: Instr) {
        let to = Loc(self.parts.locations.len() as u32);
        self.parts.locations.push(Location { labels: vec![], within: true });
        self.edge(instr, to);
    }

    /// The last edge leads here.
    fn arrive(&mut self, to: Loc) {
        match self
            .parts
            .edges
            .last_mut()
            .filter(|edge| edge.to == self.at && edge.to.index() + 1 == self.parts.locations.len())
        {
            Some(edge) => {
                edge.to = to;
                self.parts.locations.pop();
            }
            None => self.edge(Instr::Nop, to),
        }
        self.at = to;
    }

    fn no(&self, construct: &str, why: &str) -> Unwritten {
        self.translation.no(self.place.clone(), construct, why)
    }

    fn transition(&mut self, t: &'a DveTransition) -> Result<(), Unwritten> {
        (self.read, self.accesses) = (None, 0);
        if let Some(guard) = &t.guard {
            let (allowed, wrong) = self.value(guard)?;
            let wrong_or = |wrong: &RegExpr| Expr::binary(BinOp::Or, wrong.clone(), allowed.clone());
            let passed = wrong.as_ref().map_or_else(|| allowed.clone(), wrong_or);
            self.go_on(Instr::Assume(passed));
            self.never(wrong);
        }
        for effect in &t.effects {
            let (value, wrong) = self.value(&effect.value)?;
            self.never(wrong);
            self.write(&effect.target, value)?;
        }
        if self.accesses > 1 {
            return Err(self.no("a transition", "it accesses memory more than once"));
        }
        Ok(())
    }

    /// The run goes wrong if this holds.
    fn never(&mut self, wrong: Option<RegExpr>) {
        if let Some(wrong) = wrong {
            self.go_on(Instr::Assert(not(wrong)));
        }
    }

    /// The expression over registers, after the load that it needs; and when that load goes wrong.
    fn value(&mut self, expr: &'a DveExpr) -> Result<(RegExpr, Option<RegExpr>), Unwritten> {
        let mut reads = Vec::new();
        self.reads(expr, Expr::Const(1), &mut reads)?;
        let mut wrong = None;
        for (place, reached) in &reads {
            match self.read {
                None => wrong = self.load(place, reached.clone())?,
                Some(known)
                    if known == *place && place.index.as_deref().is_none_or(|i| constant(i).is_some()) => {}
                Some(_) => return Err(self.no("a transition", "it accesses memory more than once")),
            }
        }
        let (translation, process, loaded) = (self.translation, self.process, self.loaded);
        let read = |place: &Lvalue| match is_memory(&translation.system.variables[place.variable]) {
            true => Some(Expr::Atom(loaded)),
            false => translation.own(process, place),
        };
        let value = translation.expr(expr, &read).ok_or_else(|| {
            self.no("an expression", "it looks at other processes, or at an own array by a computed index")
        })?;
        Ok((value, wrong))
    }

    /// The elements of memory that an expression reads, each with the condition under which it does.
    fn reads(
        &self,
        expr: &'a DveExpr,
        reached: RegExpr,
        found: &mut Vec<(&'a Lvalue, RegExpr)>,
    ) -> Result<(), Unwritten> {
        match expr {
            DveExpr::Number(_) | DveExpr::At { .. } => Ok(()),
            DveExpr::Read(place) => {
                if is_memory(&self.translation.system.variables[place.variable]) {
                    found.push((place, reached));
                }
                Ok(())
            }
            DveExpr::Unary(_, a) => self.reads(a, reached, found),
            DveExpr::Binary(op, a, b) => {
                self.reads(a, reached.clone(), found)?;
                let behind = match op {
                    BinOp::And | BinOp::Or => {
                        let own = |place: &Lvalue| self.translation.own(self.process, place);
                        let left = self.translation.expr(a, &own);
                        // What depends on memory is read in any case: only a computed index has to know better.
                        left.map(|left| {
                            both(reached.clone(), if *op == BinOp::And { left } else { not(left) })
                        })
                    }
                    _ => Some(reached.clone()),
                };
                self.reads(b, behind.unwrap_or(reached), found)
            }
        }
    }

    /// Loads an element, or, where its index is wrong or not looked at, some other; says when it is wrong.
    fn load(&mut self, place: &'a Lvalue, reached: RegExpr) -> Result<Option<RegExpr>, Unwritten> {
        let base = self.translation.address(place.variable);
        let size = self.translation.system.variables[place.variable].initial.len();
        let (addr, wrong) = match place.index.as_deref() {
            None => (Expr::Const(base), None),
            Some(index) => {
                let own = |place: &Lvalue| self.translation.own(self.process, place);
                let index = self.translation.expr(index, &own).ok_or_else(|| {
                    self.no("an index", "it is not computed from the process's own variables alone")
                })?;
                let fits = within(index.clone(), (0, size as Value - 1));
                match fits {
                    Expr::Const(1) => (sum(base, index), None),
                    fits => {
                        let wrong = both(reached.clone(), not(fits.clone()));
                        let taken = not(not(both(reached, fits)));
                        (sum(base, Expr::binary(BinOp::Mul, taken, index)), Some(wrong))
                    }
                }
            }
        };
        self.go_on(Instr::Load { dst: self.loaded, addr, bytes: Bytes::WHOLE });
        (self.read, self.accesses) = (Some(place), self.accesses + 1);
        Ok(wrong)
    }

    fn write(&mut self, place: &'a Lvalue, value: RegExpr) -> Result<(), Unwritten> {
        let variable = &self.translation.system.variables[place.variable];
        let fits = within(value.clone(), variable.kind.range());
        if fits != Expr::Const(1) {
            self.go_on(Instr::Assert(fits));
        }
        if !is_memory(variable) {
            let dst = self
                .translation
                .own(self.process, place)
                .ok_or_else(|| self.no("an assignment", "an own array is written by a computed index"))?;
            let Expr::Atom(dst) = dst else { unreachable!("constants are not written") };
            self.go_on(Instr::Assign { dst, value });
            return Ok(());
        }
        let base = self.translation.address(place.variable);
        let addr = match place.index.as_deref() {
            None => Expr::Const(base),
            Some(index) => {
                let own = |place: &Lvalue| self.translation.own(self.process, place);
                let index = self.translation.expr(index, &own).ok_or_else(|| {
                    self.no("an index", "it is not computed from the process's own variables alone")
                })?;
                let fits = within(index.clone(), (0, variable.initial.len() as Value - 1));
                if fits != Expr::Const(1) {
                    self.go_on(Instr::Assert(fits));
                }
                sum(base, index)
            }
        };
        self.go_on(Instr::Store { addr, value, bytes: Bytes::WHOLE });
        self.accesses += 1;
        Ok(())
    }
}

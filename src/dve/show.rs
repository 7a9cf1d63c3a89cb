//! Parts of a model in the words of its language.

use super::{Direction, DveError, DveExpr, DveStep, DveTransition, Lvalue, System};
use crate::model::{BinOp, UnOp, Value};

impl System {
    /// The name of a variable or of an element of one.
    pub fn element_name(&self, variable: usize, element: usize) -> String {
        let v = &self.variables[variable];
        if v.is_array { format!("{}[{element}]", v.name) } else { v.name.clone() }
    }

    pub fn show_lvalue(&self, place: &Lvalue) -> String {
        let name = &self.variables[place.variable].name;
        match &place.index {
            Some(index) => format!("{name}[{}]", self.show_expr(index)),
            None => name.clone(),
        }
    }

    pub fn show_expr(&self, expr: &DveExpr) -> String {
        self.operand(expr, 0)
    }

    /// With parentheses where the operator around binds tighter.
    fn operand(&self, expr: &DveExpr, around: u8) -> String {
        let (own, text) = match expr {
            DveExpr::Number(n) => (u8::MAX, n.to_string()),
            DveExpr::Read(place) => (u8::MAX, self.show_lvalue(place)),
            &DveExpr::At { process, state } => {
                let p = &self.processes[process];
                (u8::MAX, format!("{}.{}", p.name, p.states[state].name))
            }
            DveExpr::Unary(op, a) => (UNARY, format!("{}{}", unary(*op), self.operand(a, UNARY))),
            DveExpr::Binary(op, a, b) => {
                let own = op.precedence();
                let (a, b) = (self.operand(a, own), self.operand(b, own + 1));
                (own, format!("{a} {} {b}", binary(*op)))
            }
        };
        if own < around { format!("({text})") } else { text }
    }

    /// `q2 -> q3 { effect x = 1; }`, as the file could have it.
    pub fn show_transition(&self, process: usize, t: &DveTransition) -> String {
        let states = &self.processes[process].states;
        let mut parts = Vec::new();
        parts.extend(t.guard.iter().map(|g| format!("guard {};", self.show_expr(g))));
        if let Some(sync) = &t.sync {
            let name = &self.channels[sync.channel].name;
            let (mark, list): (_, Vec<String>) = match &sync.direction {
                Direction::Send(values) => ("!", values.iter().map(|v| self.show_expr(v)).collect()),
                Direction::Receive(places) => ("?", places.iter().map(|p| self.show_lvalue(p)).collect()),
            };
            let list = if list.len() > 1 { format!("{{{}}}", list.join(", ")) } else { list.concat() };
            parts.push(format!("sync {name}{mark}{list};"));
        }
        let effects = t.effects.iter();
        let effects: Vec<String> = effects
            .map(|e| format!("{} = {}", self.show_lvalue(&e.target), self.show_expr(&e.value)))
            .collect();
        if !effects.is_empty() {
            parts.push(format!("effect {};", effects.join(", ")));
        }
        let body = if parts.is_empty() { "{}".to_string() } else { format!("{{ {} }}", parts.join(" ")) };
        format!("{} -> {} {body}", states[t.from].name, states[t.to].name)
    }

    /// The process, and what it does; in a handshake, both sides.
    pub fn show_step(&self, step: &DveStep) -> String {
        match *step {
            DveStep::Internal { process, transition } => {
                self.show_transition(process, self.transition(process, transition))
            }
            DveStep::Handshake { sender: (p, t), receiver: (q, u) } => {
                let (send, receive) = (self.transition(p, t), self.transition(q, u));
                let other = &self.processes[q].name;
                format!("{}; {other}: {}", self.show_transition(p, send), self.show_transition(q, receive))
            }
            DveStep::Flush { variable, element, .. } => {
                format!("flush {}", self.element_name(variable, element))
            }
            DveStep::Stutter => "nothing can happen any more".to_string(),
        }
    }

    pub fn show_error(&self, error: &DveError) -> String {
        let beyond = |value: Value, name: &str| format!("{value} is out of the range of {name}");
        match *error {
            DveError::DivisionByZero => "division by zero".to_string(),
            DveError::Index { variable, index } => {
                let v = &self.variables[variable];
                format!("{} has {} elements, and the index is {index}", v.name, v.initial.len())
            }
            DveError::Range { variable, value } => beyond(value, &self.variables[variable].name),
            DveError::Message { channel, value } => beyond(value, &self.channels[channel].name),
        }
    }
}

/// Tighter than any binary operator.
const UNARY: u8 = 20;

fn unary(op: UnOp) -> &'static str {
    match op {
        UnOp::Not => "not ",
        _ => op.symbol(),
    }
}

fn binary(op: BinOp) -> &'static str {
    match op {
        BinOp::Or => "or",
        BinOp::And => "and",
        _ => op.symbol(),
    }
}

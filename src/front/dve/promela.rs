//! A DVE model as Promela, for SPIN: one indivisible step for each step of the model, and as many states.
//!
//! All variables are global, with the process's name in front of its own, and so is the state that each
//! process is in: a test of another process is a comparison. A proctype is one loop with an option for each
//! transition; of a handshake, the sender has an option for each receiver. What goes wrong in DVE (a value that
//! its type does not hold) wraps in SPIN, so only models without errors have the same states. Channels with
//! room, committed states and property processes are refused.

use crate::dve::{Assignment, Direction, DveExpr, DveTransition, DveType, Lvalue, Sync, System};
use crate::front::{Inexpressible, Unwritten};
use crate::limits::Limits;
use crate::model::UnOp;

pub fn write(system: &System, limits: &Limits) -> Result<String, Unwritten> {
    refuse(system).map_or(Ok(()), |why| Err(Unwritten::from(why)))?;
    let writer = PromelaWriter { system };
    let mut text = String::new();
    for (v, variable) in system.variables.iter().enumerate() {
        limits.spend(variable.initial.len())?;
        let kind = if variable.kind == DveType::Byte { "byte" } else { "short" };
        let size = if variable.is_array { format!("[{}]", variable.initial.len()) } else { String::new() };
        let values: Vec<String> = variable.initial.iter().map(|n| n.to_string()).collect();
        let values = if variable.is_array { format!("{{{}}}", values.join(", ")) } else { values.concat() };
        text += &format!("{kind} {}{size} = {values};\n", writer.variable(v));
    }
    for process in &system.processes {
        text += &format!("byte at_{} = {};\n", process.name, process.initial);
    }
    // What a handshake carries is 0 between steps.
    text += "hidden short message;\n";
    for (p, process) in system.processes.iter().enumerate() {
        text += &format!("\nactive proctype run_{}()\n{{\nend:\n    do\n", process.name);
        for assertion in &process.asserts {
            let (at, e) = (assertion.state, writer.expr(&assertion.condition));
            text += &format!("    :: d_step {{ at_{} == {at} && !({e}) -> assert(false) }}\n", process.name);
        }
        for t in &process.transitions {
            limits.spend(OPTION)?;
            for option in writer.options(p, t) {
                text += &format!("    :: d_step {{ {option} }}\n");
            }
        }
        // A loop needs an option.
        text += "    :: false\n    od\n}\n";
    }
    Ok(text)
}

/// What the model has that is not written.
fn refuse(system: &System) -> Option<Inexpressible> {
    let no = |place: String, construct: &str, why: &str| {
        let (construct, why) = (construct.to_string(), why.to_string());
        Some(Inexpressible { format: "promela", place, construct, why })
    };
    for channel in &system.channels {
        let place = format!("channel {}", channel.name);
        if channel.capacity > 0 {
            return no(place, "a channel with room", "only handshakes are written");
        }
        if channel.types.as_ref().is_some_and(|types| types.len() > 1) {
            return no(place, "a message of several parts", "one part is all that is written");
        }
    }
    for process in &system.processes {
        if let Some(state) = process.states.iter().find(|s| s.committed) {
            let place = format!("process {}, state {}", process.name, state.name);
            return no(place, "a committed state", "SPIN has no such order between processes");
        }
    }
    let property = system.property()?;
    no(format!("process {}", property.name), "a property process", "the system alone is written")
}

/// What an option costs to write, in steps.
const OPTION: usize = 64;

struct PromelaWriter<'a> {
    system: &'a System,
}

impl PromelaWriter<'_> {
    fn variable(&self, v: usize) -> String {
        let variable = &self.system.variables[v];
        match variable.owner {
            Some(p) => format!("{}_{}", self.system.processes[p].name, variable.name),
            None => format!("g_{}", variable.name),
        }
    }

    fn place(&self, place: &Lvalue) -> String {
        let is_array = self.system.variables[place.variable].is_array;
        match &place.index {
            Some(index) => format!("{}[{}]", self.variable(place.variable), self.expr(index)),
            None if is_array => format!("{}[0]", self.variable(place.variable)),
            None => self.variable(place.variable),
        }
    }

    /// Every operand in parentheses: the tree is what counts.
    fn expr(&self, expr: &DveExpr) -> String {
        match expr {
            DveExpr::Number(n) => n.to_string(),
            DveExpr::Read(place) => self.place(place),
            DveExpr::At { process, state } => {
                format!("(at_{} == {state})", self.system.processes[*process].name)
            }
            DveExpr::Unary(UnOp::Not, a) => format!("!({})", self.expr(a)),
            DveExpr::Unary(op, a) => format!("{}({})", op.symbol(), self.expr(a)),
            DveExpr::Binary(op, a, b) => format!("({} {} {})", self.expr(a), op.symbol(), self.expr(b)),
        }
    }

    /// What has to hold for a transition to be taken.
    fn guard(&self, process: usize, t: &DveTransition) -> String {
        let at = format!("at_{} == {}", self.system.processes[process].name, t.from);
        t.guard.as_ref().map_or(at.clone(), |guard| format!("{at} && ({})", self.expr(guard)))
    }

    /// Its effects, and where it leads.
    fn effects(&self, process: usize, t: &DveTransition) -> String {
        let one = |e: &Assignment| format!("{} = {}; ", self.place(&e.target), self.expr(&e.value));
        let all: String = t.effects.iter().map(one).collect();
        format!("{all}at_{} = {}", self.system.processes[process].name, t.to)
    }

    /// The options of a transition: one, or one for each partner in a handshake.
    fn options(&self, process: usize, t: &DveTransition) -> Vec<String> {
        let Some(Sync { channel, direction }) = &t.sync else {
            return vec![format!("{} -> {}", self.guard(process, t), self.effects(process, t))];
        };
        let Direction::Send(values) = direction else { return vec![] };
        let mut all = Vec::new();
        for (q, other) in self.system.processes.iter().enumerate().filter(|(q, _)| *q != process) {
            for u in &other.transitions {
                let Some(Sync { channel: own, direction: Direction::Receive(places) }) = &u.sync else {
                    continue;
                };
                if own != channel {
                    continue;
                }
                let (mut before, mut after) = (String::new(), String::new());
                for (value, place) in values.iter().zip(places) {
                    before = format!("message = {}; {} = message; ", self.expr(value), self.place(place));
                    after = "; message = 0".to_string();
                }
                let guard = format!("{} && {}", self.guard(process, t), self.guard(q, u));
                let effects = format!("{}; {}", self.effects(q, u), self.effects(process, t));
                all.push(format!("{guard} -> {before}{effects}{after}"));
            }
        }
        all
    }
}

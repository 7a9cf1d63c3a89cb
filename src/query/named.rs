//! What is an event called? Its thread, instruction and cell by the names that they have in the program.

use super::evidence::{Against, Trace};
use super::trace::{Act, Event, EventKind, Source, Trap};
use crate::model::{Program, Value};
use std::fmt;

/// An event of a program, with the names of everything in it. Shown on one line: `p0: store [x], 1; x = 1 is buffered`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedEvent<'p> {
    pub thread: &'p str,
    pub kind: EventKind,
    /// The instruction, as it was written where that is known.
    pub text: String,
    /// The line of the user's file, if there is one.
    pub line: Option<u32>,
    /// The cell: `x`, or `a[2]`.
    pub cell: Option<String>,
    /// What was read, stored, flushed or assigned.
    pub value: Option<Value>,
    /// What a locked instruction left in memory.
    pub written: Option<Value>,
    pub source: Option<Source>,
    pub trap: Option<Trap>,
}

impl Event {
    /// The event as the program calls it.
    pub fn named<'p>(&self, program: &'p Program) -> NamedEvent<'p> {
        let thread = program.thread(self.thread());
        let edge = thread.edge(self.edge);
        let text = match (self.action.act, edge.text.is_empty()) {
            (Act::Flush, _) => "flush".to_string(),
            (_, true) => thread.show_instr(program, &edge.instr),
            (_, false) => edge.text.clone(),
        };
        NamedEvent {
            thread: thread.name(),
            kind: self.kind,
            text,
            line: (edge.line != 0).then(|| program.place(edge.line).line),
            cell: self.address.map(|cell| program.cell_name(cell)),
            value: self.value,
            written: self.written,
            source: self.source,
            trap: self.trap,
        }
    }
}

impl fmt::Display for NamedEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.thread, self.text)?;
        if let Some(line) = self.line {
            write!(f, " (line {line})")?;
        }
        if let (Some(cell), Some(value)) = (&self.cell, self.value) {
            let buffered = matches!(self.source, Some(Source::Buffer(_))) || self.kind == EventKind::Store;
            write!(f, "; {cell} = {value}{}", if buffered { " in the buffer" } else { "" })?;
        }
        if let Some(written) = self.written {
            write!(f, ", then {written}")?;
        }
        match self.trap {
            None => Ok(()),
            Some(Trap::Assertion) => write!(f, "; the assertion fails"),
            Some(Trap::DivisionByZero) => write!(f, "; divides by zero"),
            Some(Trap::OutOfRange(address)) => write!(f, "; there is no cell at {address}"),
        }
    }
}

impl Trace {
    /// The run with the program's names: a line for each event, and what it is against.
    pub fn named(&self, program: &Program) -> String {
        let mut text: String = self.events.iter().map(|e| format!("{}\n", e.named(program))).collect();
        text += &match self.against {
            Against::Property(k) => format!("against {}", program.properties()[k].show(program)),
            Against::Trap(t, _) => format!("an error of thread {}", program.thread(t).name()),
            Against::Hang => "memory never changes again, and not all threads end".to_string(),
        };
        text
    }
}

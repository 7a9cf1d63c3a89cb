//! What is a DVE model? Processes that move between named states, over shared variables and channels.
//!
//! A transition reads and writes any number of variables at once, so a model is not a [`Program`], whose
//! steps touch one cell each. The language is that of DiVinE; `front::dve` reads it, `semantics::dve` says
//! what it means, `machine::dve` explores it. A [`System`] is valid once it is built: every number in it is
//! in range, and trees are no deeper than `MAX_DEPTH`.
//!
//! [`Program`]: crate::model::Program

mod memory;
mod show;

pub use memory::{Memory, Site};

use crate::model::{BinOp, UnOp, Value};
use std::collections::{BTreeMap, VecDeque};

/// A whole model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct System {
    /// Global variables first, then those of processes.
    pub variables: Vec<DveVariable>,
    pub channels: Vec<Channel>,
    /// Those that take part, and behind them the property process, if there is one.
    pub processes: Vec<DveProcess>,
    /// Is the last process the property?
    pub has_property: bool,
}

/// What a variable can hold: values outside are errors of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DveType {
    Byte,
    Int,
}

impl DveType {
    pub fn range(self) -> (Value, Value) {
        match self {
            DveType::Byte => (0, 255),
            DveType::Int => (-32768, 32767),
        }
    }

    pub fn holds(self, value: Value) -> bool {
        let (lo, hi) = self.range();
        (lo..=hi).contains(&value)
    }
}

/// A scalar, or an array of one dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DveVariable {
    pub name: String,
    /// The process that it belongs to, unless it is global.
    pub owner: Option<usize>,
    pub kind: DveType,
    pub is_array: bool,
    pub constant: bool,
    /// One value for each element; a scalar has one.
    pub initial: Vec<Value>,
}

/// A channel of capacity 0 is a handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    pub name: String,
    /// The types of a message's parts; untyped channels take anything.
    pub types: Option<Vec<DveType>>,
    pub capacity: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DveProcess {
    pub name: String,
    pub states: Vec<DveState>,
    pub initial: usize,
    pub asserts: Vec<Assertion>,
    pub transitions: Vec<DveTransition>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DveState {
    pub name: String,
    pub committed: bool,
    pub accepting: bool,
}

/// Holds whenever its process is in the state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assertion {
    pub state: usize,
    pub condition: DveExpr,
    pub line: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DveTransition {
    pub from: usize,
    pub to: usize,
    pub guard: Option<DveExpr>,
    pub sync: Option<Sync>,
    /// Done from left to right, each after the ones before it.
    pub effects: Vec<Assignment>,
    pub line: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    pub target: Lvalue,
    pub value: DveExpr,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sync {
    pub channel: usize,
    pub direction: Direction,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Direction {
    Send(Vec<DveExpr>),
    Receive(Vec<Lvalue>),
}

/// A variable, or an element of one. An array without an index is its first element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lvalue {
    pub variable: usize,
    pub index: Option<Box<DveExpr>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DveExpr {
    Number(Value),
    Read(Lvalue),
    /// 1 if the process is in the state, else 0.
    At {
        process: usize,
        state: usize,
    },
    Unary(UnOp, Box<DveExpr>),
    Binary(BinOp, Box<DveExpr>, Box<DveExpr>),
}

/// How a model goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DveError {
    DivisionByZero,
    /// Of this variable.
    Index {
        variable: usize,
        index: Value,
    },
    /// The type of this variable does not hold the value.
    Range {
        variable: usize,
        value: Value,
    },
    /// The type of a message's part does not hold the value.
    Message {
        channel: usize,
        value: Value,
    },
}

/// All that a model can look at: one of its states.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Configuration {
    /// The states of all processes.
    pub at: Vec<usize>,
    /// Per variable, its elements.
    pub values: Vec<Vec<Value>>,
    pub channels: Vec<VecDeque<Vec<Value>>>,
    /// What waits, by process, variable and element.
    pub slots: BTreeMap<(usize, usize, usize), Value>,
}

/// What happens in one step of the system. Transitions are counted from 0 in their process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DveStep {
    Internal {
        process: usize,
        transition: usize,
    },
    /// Both sides of a handshake.
    Handshake {
        sender: (usize, usize),
        receiver: (usize, usize),
    },
    /// What waits in a slot goes to memory: the process's value for this element of a global variable.
    Flush {
        process: usize,
        variable: usize,
        element: usize,
    },
    /// Nothing else can happen.
    Stutter,
}

impl System {
    /// How many processes take part: all but the property.
    pub fn active(&self) -> usize {
        self.processes.len() - self.has_property as usize
    }

    /// The property process.
    pub fn property(&self) -> Option<&DveProcess> {
        self.processes.last().filter(|_| self.has_property)
    }

    pub fn transition(&self, process: usize, transition: usize) -> &DveTransition {
        &self.processes[process].transitions[transition]
    }

    /// The element that an lvalue names, given the value of its index.
    pub fn element(&self, place: &Lvalue, index: Option<Value>) -> Result<usize, DveError> {
        let size = self.variables[place.variable].initial.len();
        match index {
            None => Ok(0),
            Some(index) => usize::try_from(index)
                .ok()
                .filter(|&i| i < size)
                .ok_or(DveError::Index { variable: place.variable, index }),
        }
    }
}

impl DveExpr {
    /// Calls back with every part, from the outside in.
    pub fn visit(&self, each: &mut impl FnMut(&DveExpr)) {
        each(self);
        match self {
            DveExpr::Number(_) | DveExpr::At { .. } => {}
            DveExpr::Read(place) => place.index.iter().for_each(|index| index.visit(each)),
            DveExpr::Unary(_, a) => a.visit(each),
            DveExpr::Binary(_, a, b) => {
                a.visit(each);
                b.visit(each);
            }
        }
    }

    pub fn negated(self) -> DveExpr {
        DveExpr::Unary(UnOp::Not, Box::new(self))
    }

    pub fn binary(op: BinOp, a: DveExpr, b: DveExpr) -> DveExpr {
        DveExpr::Binary(op, Box::new(a), Box::new(b))
    }
}

impl DveTransition {
    /// Every expression that is evaluated, indices of targets included.
    pub fn expressions(&self) -> Vec<&DveExpr> {
        let mut all: Vec<&DveExpr> = self.guard.iter().collect();
        match self.sync.as_ref().map(|s| &s.direction) {
            Some(Direction::Send(values)) => all.extend(values),
            Some(Direction::Receive(places)) => {
                all.extend(places.iter().filter_map(|p| p.index.as_deref()));
            }
            None => {}
        }
        for effect in &self.effects {
            all.extend(effect.target.index.as_deref());
            all.push(&effect.value);
        }
        all
    }

    /// Every place that is written, in order: what is received, then the effects.
    pub fn targets(&self) -> impl Iterator<Item = &Lvalue> {
        let received = match self.sync.as_ref().map(|s| &s.direction) {
            Some(Direction::Receive(places)) => &places[..],
            _ => &[],
        };
        received.iter().chain(self.effects.iter().map(|e| &e.target))
    }
}

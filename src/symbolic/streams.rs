//! Which accesses can the threads of a program make? Lists of guarded loads, stores and fences, in SSA form: the
//! *predicated streams* of `[BurckhardtAlurMartin06]`.
//!
//! A load brings in an input, whose value is the memory model's business; all else is terms over inputs. How the
//! streams come from a program's text is told in `unroll`.

use super::terms::{TermId, TermNode, Terms};
use crate::model::{EdgeId, FenceKinds, Value};
use crate::query::{Limit, Trap};

/// A load, a store, or both at once.
#[derive(Clone, Debug)]
pub struct StreamAccess {
    pub thread: usize,
    pub edge: EdgeId,
    /// Accesses that nothing comes between have the same one.
    pub node: usize,
    pub guard: TermId,
    pub addr: TermId,
    /// What is read.
    pub load: Option<TermId>,
    /// The load only looks: it orders nothing, and no model knows of it.
    pub ghost: bool,
    /// Whether something is written, and what.
    pub store: Option<(TermId, TermId)>,
}

#[derive(Clone, Debug)]
pub struct Fence {
    pub guard: TermId,
    pub kinds: FenceKinds,
    /// Only if the place of this number has it.
    pub candidate: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    Access(usize),
    Fence(usize),
    /// A locked instruction or block, which some models let wait for all earlier stores.
    Locked {
        node: usize,
        guard: TermId,
    },
}

/// One edge that a thread may take.
#[derive(Clone, Debug)]
pub struct StepOf {
    pub edge: EdgeId,
    pub guard: TermId,
    /// What an `any` picks.
    pub choice: Option<TermId>,
    pub access: Option<usize>,
}

/// What one thread does.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    /// In the order of the program.
    pub items: Vec<Item>,
    pub steps: Vec<StepOf>,
    /// Does it come to its end, and with what in its registers?
    pub ends: Option<(TermId, Vec<TermId>)>,
    /// Edges of the unrolled text, for statistics.
    pub instructions: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Trap(Trap),
    /// A block is given back that nobody holds.
    DoubleFree,
    /// A round of waiting changes memory.
    LoudWait,
}

#[derive(Clone, Copy, Debug)]
pub struct ErrorAt {
    pub thread: usize,
    pub edge: EdgeId,
    pub guard: TermId,
    pub what: What,
}

/// A thread that would wait for good if the access read the last value of its cell.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    pub thread: usize,
    pub guard: TermId,
    pub access: usize,
}

/// All streams of a program, over one set of terms.
#[derive(Clone, Debug)]
pub struct Streams {
    pub terms: Terms,
    pub threads: Vec<Stream>,
    pub accesses: Vec<StreamAccess>,
    pub fences: Vec<Fence>,
    pub nodes: usize,
    /// What must hold.
    pub required: Vec<TermId>,
    pub errors: Vec<ErrorAt>,
    /// Threads that would go round more often than the bound, and when.
    pub overruns: Vec<(usize, TermId)>,
    pub waits: Vec<Wait>,
    /// For each input the values it may have, unless it is a load.
    pub picks: Vec<Option<(Value, Value)>>,
}

/// Why a program has no streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoStreams {
    Limit(Limit),
    Unsupported(&'static str),
}

impl From<Limit> for NoStreams {
    fn from(limit: Limit) -> NoStreams {
        NoStreams::Limit(limit)
    }
}

impl Streams {
    pub fn overrun(&mut self) -> TermId {
        let all = self.overruns.clone();
        all.into_iter().fold(TermId::FALSE, |any, (_, t)| self.terms.or(any, t))
    }

    /// What each term is worth if the inputs are worth this.
    pub fn values(&self, inputs: &[Value]) -> Vec<Value> {
        let mut values: Vec<Value> = Vec::with_capacity(self.terms.len());
        for t in 0..self.terms.len() {
            let of = |t: TermId| values[t.index()];
            let value = match self.terms.node(TermId(t as u32)) {
                TermNode::Const(value) => value,
                TermNode::Input(i) => inputs[i as usize],
                TermNode::Unary(op, a) => op.apply(of(a)),
                TermNode::Binary(op, a, b) => op.apply(of(a), of(b)).unwrap_or(0),
                TermNode::Choice(c, a, b) => {
                    if of(c) != 0 {
                        of(a)
                    } else {
                        of(b)
                    }
                }
            };
            values.push(value);
        }
        values
    }
}

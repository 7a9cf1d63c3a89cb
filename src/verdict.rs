//! The words that every engine and every report share: what is asked ([`Goal`]), what may be spent
//! ([`Limits`]), what happened ([`Event`], [`Trace`]) and what the answer is ([`Outcome`]).
//!
//! All of it is plain data. Who finds an answer is the engines' business, who prints it the reports'.

use crate::model::{Addr, Atom, EdgeId, Expr, Instr, Loc, Pred, Program, PropertyKind, ThreadId, Value};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    Sc,
    Tso,
}

impl Model {
    pub fn name(self) -> &'static str {
        match self {
            Model::Sc => "sc",
            Model::Tso => "tso",
        }
    }
}

/// The states that must not be reached: any clause holds, or a thread stands at [`Loc::TRAP`].
///
/// Under TSO a clause counts only while every buffer is empty, except that inside a `lock` … `unlock` block
/// the other threads' buffers are frozen and count as they are.
#[derive(Clone, Debug, Default)]
pub struct Goal {
    pub clauses: Vec<Clause>,
}

#[derive(Clone, Debug)]
pub struct Clause {
    pub when: When,
    pub pred: Pred,
    /// Which of the program's properties this clause is against.
    pub property: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    Always,
    /// Every thread stands at its end.
    Final,
}

impl Goal {
    /// What `check` asks of a program: can a state against one of its properties be reached?
    pub fn of(program: &Program) -> Goal {
        let clause = |(property, p): (usize, &crate::model::Property)| {
            let (when, pred) = match p.kind {
                PropertyKind::Forbid => (When::Always, p.pred.clone()),
                PropertyKind::Exists | PropertyKind::Never => (When::Final, p.pred.clone()),
                PropertyKind::Forall => (When::Final, p.pred.clone().negated()),
            };
            Clause { when, pred, property }
        };
        Goal { clauses: program.properties().iter().enumerate().map(clause).collect() }
    }

    /// The atoms whose value matters in every state, not in final ones alone.
    pub fn for_each_lasting_atom(&self, visit: &mut impl FnMut(&Atom)) {
        for clause in self.clauses.iter().filter(|c| c.when == When::Always) {
            clause.pred.for_each_atom(&mut |a| visit(a));
        }
    }
}

/// One way a thread can go wrong by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Trap {
    Assertion,
    DivisionByZero,
    OutOfRange(Value),
}

/// One scheduling decision: which thread does what. A sequence of them determines a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Action {
    pub thread: ThreadId,
    pub act: Act,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Act {
    /// The thread takes this edge; `choice` is the value that an `any` picks.
    Step { edge: EdgeId, choice: Option<Value> },
    /// The oldest store in the thread's buffer goes to memory.
    Flush,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Load,
    Store,
    Flush,
    Fence,
    Assign,
    Assume,
    Locked,
}

impl Kind {
    pub fn of(instr: &Instr) -> Kind {
        match instr {
            Instr::Load { .. } => Kind::Load,
            Instr::Store { .. } => Kind::Store,
            Instr::Fence => Kind::Fence,
            Instr::Assign { .. } | Instr::Any { .. } => Kind::Assign,
            Instr::Assume(_) | Instr::Assert(_) | Instr::Nop => Kind::Assume,
            Instr::Rmw { .. } | Instr::Lock | Instr::Unlock => Kind::Locked,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Kind::Load => "load",
            Kind::Store => "store",
            Kind::Flush => "flush",
            Kind::Fence => "fence",
            Kind::Assign => "assign",
            Kind::Assume => "assume",
            Kind::Locked => "locked",
        }
    }
}

/// Where a load's value came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    Memory,
    /// The own buffered store that is this event of the trace.
    Buffer(usize),
}

/// One step of a run, with everything a reader wants to know about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub action: Action,
    pub kind: Kind,
    /// The edge of the instruction; for a flush, that of its store.
    pub edge: EdgeId,
    pub address: Option<Addr>,
    /// The value read by a load or locked instruction, stored by a store, flushed, or assigned.
    pub value: Option<Value>,
    /// What a locked instruction left in memory.
    pub written: Option<Value>,
    pub source: Option<Source>,
    /// For a flush, the event of its store.
    pub store: Option<usize>,
    pub trap: Option<Trap>,
}

impl Event {
    pub fn thread(&self) -> ThreadId {
        self.action.thread
    }
}

/// A run from the initial state to a goal state.
#[derive(Clone, Debug)]
pub struct Trace {
    pub model: Model,
    pub events: Vec<Event>,
    pub against: Against,
}

/// What the last state of a trace is against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Against {
    /// This property of the program.
    Property(usize),
    /// This thread's own error.
    Trap(ThreadId, Trap),
}

/// What a run may spend, and the strings by which others watch and stop it.
#[derive(Debug, Default)]
pub struct Limits {
    pub deadline: Option<Instant>,
    /// The time the user allowed, for the report.
    pub timeout: Option<Duration>,
    /// Bytes the whole process may use.
    pub memory: Option<u64>,
    pub states: Option<u64>,
    /// Set by Ctrl-C.
    pub cancelled: AtomicBool,
    /// Stored states so far, for whoever shows progress.
    pub progress: AtomicU64,
}

impl Limits {
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self.deadline = Instant::now().checked_add(timeout);
        self
    }

    /// The limit of time or patience that has been reached, if any.
    pub fn expired(&self) -> Option<Limit> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Some(Limit::Cancelled);
        }
        self.deadline.filter(|&d| Instant::now() >= d).map(|_| Limit::Time(self.timeout.unwrap_or_default()))
    }
}

/// Which limit ended a run early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Limit {
    Time(Duration),
    Memory(u64),
    States(u64),
    Cancelled,
    /// Some buffer wanted to grow past the user's bound.
    Buffer(usize),
    /// One state needs more words than the explorer stores.
    StateSize(usize),
}

#[derive(Clone, Debug)]
pub enum Answer {
    Violated(Trace),
    Safe(Proof),
    Unknown(Limit),
}

/// Why `safe` is a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// Every state of the model was visited, and none is a goal state.
    Exhausted,
}

/// What became of the attacks that robustness is decided by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttackCount {
    /// Pairs of a store and a load of one thread.
    pub total: u64,
    /// Refuted because a fence lies on every way from the store to the load, or there is no way.
    pub fenced: u64,
    /// Refuted because nobody else writes what is loaded, or touches what is stored.
    pub private: u64,
    /// Refuted because no chain of conflicts leads from the load back to the store.
    pub acyclic: u64,
    /// Left to the search.
    pub left: u64,
}

#[derive(Clone, Debug, Default)]
pub struct Stats {
    pub states: u64,
    pub transitions: u64,
    /// Bytes of memory per stored state, table and links included.
    pub bytes_per_state: f64,
    /// Machine words of one packed state.
    pub words: usize,
    pub workers: usize,
    /// Rounds of refinement; 0 for an engine that has none.
    pub iterations: u64,
    /// The longest buffer met, under TSO.
    pub longest_buffer: usize,
    pub time: Duration,
}

#[derive(Clone, Debug)]
pub struct Outcome {
    pub answer: Answer,
    pub model: Model,
    pub engine: &'static str,
    pub stats: Stats,
    /// Things the user should know whatever the answer is.
    pub warnings: Vec<String>,
}

impl Outcome {
    pub fn verdict(&self) -> &'static str {
        match self.answer {
            Answer::Violated(_) => "violated",
            Answer::Safe(_) => "safe",
            Answer::Unknown(_) => "unknown",
        }
    }
}

/// Does the clause hold, given where the threads stand and what an atom is worth?
pub fn clause_holds(clause: &Clause, all_at_end: impl Fn() -> bool, atom: &impl Fn(&Atom) -> Value) -> bool {
    let counts = clause.when == When::Always || all_at_end();
    counts && holds(&clause.pred, atom)
}

fn holds(pred: &Expr<Atom>, atom: &impl Fn(&Atom) -> Value) -> bool {
    pred.eval(atom).expect("validity refuses predicates that may divide by zero") != 0
}

/// Is the thread at one of the locations that an atom names?
pub fn at(loc: Loc, locs: &[Loc]) -> Value {
    locs.contains(&loc) as Value
}

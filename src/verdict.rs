//! The words that every engine and every report share: what is asked ([`Goal`]), what may be spent
//! ([`Limits`], of the module of that name), what happened ([`Event`], [`Trace`]) and what the answer is ([`Outcome`]).
//!
//! All of it is plain data. Who finds an answer is the engines' business, who prints it the reports'.

pub mod repair;

pub use crate::limits::{Limit, Limits};

use crate::model::{Addr, Atom, EdgeId, Expr, Instr, Loc, Pred, Program, PropertyKind, ThreadId, Value};
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

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

    /// Can a thread's arrival at a location only bring goal states about, and end none that is not final?
    pub fn grows_with_arrivals(&self) -> bool {
        let lasting = self.clauses.iter().filter(|c| c.when == When::Always);
        lasting.into_iter().all(|c| c.pred.grows_with(&|a| matches!(a, Atom::At(..))))
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
    /// Has it been proved on the way that no SC run reaches the goal?
    pub safe_under_sc: bool,
}

impl Trace {
    /// The stores that a load of their own thread overtook, each with the last such load. A run under SC has none, and
    /// no flushes to tell by.
    pub fn delays(&self) -> Vec<(usize, usize)> {
        match self.model {
            Model::Sc => vec![],
            Model::Tso => delays(&self.events),
        }
    }
}

/// The stores that a load of their own thread overtook, each with the last such load: one that found its value in
/// memory while the store was waiting.
pub fn delays(events: &[Event]) -> Vec<(usize, usize)> {
    let mut flushed = vec![events.len(); events.len()];
    let mut loads: HashMap<ThreadId, Vec<usize>> = HashMap::new();
    for (k, event) in events.iter().enumerate() {
        if let Some(store) = event.store {
            flushed[store] = k;
        }
        if event.source == Some(Source::Memory) {
            loads.entry(event.thread()).or_default().push(k);
        }
    }
    let overtaker = |store: usize| {
        let own = loads.get(&events[store].thread())?;
        let last = own.partition_point(|&load| load < flushed[store]).checked_sub(1)?;
        Some(own[last]).filter(|&load| load > store)
    };
    let stores = (0..events.len()).filter(|&k| events[k].kind == Kind::Store);
    stores.filter_map(|store| Some((store, overtaker(store)?))).collect()
}

/// A run that no SC run is like: a thread delays a store past a load of its own, and what other threads do after
/// the load leads back to the store (lazy-tso-reachability, Figure 5).
#[derive(Clone, Debug)]
pub struct Witness {
    /// The whole computation, from the initial state.
    pub events: Vec<Event>,
    /// The event of the store that is overtaken.
    pub store: usize,
    /// The event of the load that overtakes it.
    pub load: usize,
    /// A cycle of the happens-before relation: events, each with what leads from it to the next.
    pub cycle: Vec<(usize, Relation)>,
}

impl Witness {
    pub fn thread(&self) -> ThreadId {
        self.events[self.store].thread()
    }

    /// The delaying thread's events from the store to the load.
    pub fn path(&self) -> Vec<usize> {
        (self.store..=self.load).filter(|&k| self.events[k].thread() == self.thread()).collect()
    }
}

/// A triangular race: an SC run in which a thread stores, then loads another cell while its store could still be in its
/// buffer, and then another thread writes that cell.
#[derive(Clone, Debug)]
pub struct Race {
    /// The whole run, from the initial state to the write.
    pub events: Vec<Event>,
    /// The thread's last store before the load.
    pub store: usize,
    pub load: usize,
    /// The other thread's write to what was loaded, the first since; or the beginning of a block that may write it.
    pub write: usize,
}

impl Race {
    /// The thread that stores and loads.
    pub fn thread(&self) -> ThreadId {
        self.events[self.store].thread()
    }

    /// Its events from the store to the load.
    pub fn path(&self) -> Vec<usize> {
        (self.store..=self.load).filter(|&k| self.events[k].thread() == self.thread()).collect()
    }
}

/// Why one event happens before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Relation {
    /// The thread does the one before the other.
    ProgramOrder,
    /// They are one event: a store and its flush, or parts of one block.
    Same,
    /// The one reads what the other wrote.
    ReadsFrom,
    /// The one write reaches memory before the other.
    Coherence,
    /// The one reads what the other overwrites.
    FromRead,
}

impl Relation {
    pub fn name(self) -> &'static str {
        match self {
            Relation::ProgramOrder => "po",
            Relation::Same => "same",
            Relation::ReadsFrom => "rf",
            Relation::Coherence => "co",
            Relation::FromRead => "fr",
        }
    }
}

/// What the last state of a trace is against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Against {
    /// This property of the program.
    Property(usize),
    /// This thread's own error.
    Trap(ThreadId, Trap),
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
    /// No path through the threads leads to a goal state with the values that registers and cells can have at all.
    Infeasible,
    /// No SC run reaches the goal, and the program, with so many delays built into it, is robust: TSO adds nothing. If
    /// `apart`, it is so apart from cells that nobody really reads.
    Robust { delays: usize, apart: bool },
}

/// Do SC and TSO have the same behaviours?
#[derive(Clone, Debug)]
pub enum RobustAnswer {
    Robust,
    NotRobust(Witness),
    Unknown(Limit),
}

#[derive(Clone, Debug)]
pub struct Robustness {
    pub answer: RobustAnswer,
    pub attacks: AttackCount,
    pub stats: Stats,
}

impl Robustness {
    pub fn verdict(&self) -> &'static str {
        match self.answer {
            RobustAnswer::Robust => "robust",
            RobustAnswer::NotRobust(_) => "not-robust",
            RobustAnswer::Unknown(_) => "unknown",
        }
    }
}

/// Is the program free of triangular races?
#[derive(Clone, Debug)]
pub enum RaceAnswer {
    RaceFree,
    Racy(Race),
    Unknown(Limit),
}

#[derive(Clone, Debug)]
pub struct RaceFreedom {
    pub answer: RaceAnswer,
    /// The threads whose stores and loads had to be searched, because the program's text does not settle them.
    pub attackers: usize,
    pub stats: Stats,
}

impl RaceFreedom {
    pub fn verdict(&self) -> &'static str {
        match self.answer {
            RaceAnswer::RaceFree => "race-free",
            RaceAnswer::Racy(_) => "racy",
            RaceAnswer::Unknown(_) => "unknown",
        }
    }
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
    /// What each round came to, for engines that have rounds.
    pub rounds: Vec<Round>,
    /// The longest buffer met, under TSO.
    pub longest_buffer: usize,
    /// Threads that may change places with others, in the last program explored.
    pub interchangeable: usize,
    pub time: Duration,
}

/// One round of refinement: an SC check, and what the oracle said.
#[derive(Clone, Debug, Default)]
pub struct Round {
    /// Locations and edges of the program, delays included.
    pub locations: usize,
    pub edges: usize,
    /// Stored by the SC check.
    pub states: u64,
    pub time: Duration,
    pub attacks: AttackCount,
    /// Stored by the oracle.
    pub oracle_states: u64,
    pub oracle_time: Duration,
    /// The delayed paths built in after this round.
    pub delays: Vec<Delay>,
}

/// A store that was delayed past a load, for the story: the thread, and the edges of the user's program.
#[derive(Clone, Copy, Debug)]
pub struct Delay {
    pub thread: ThreadId,
    pub store: EdgeId,
    pub load: EdgeId,
    /// Instructions from the one to the other.
    pub length: usize,
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

/// The final states of a program, as far as somebody looks at them.
#[derive(Clone, Debug)]
pub struct Outcomes {
    /// The values of what is observed, in the order in which it was asked for: each combination once, all that there
    /// are. Or the limit that ended the search before that was known.
    pub states: Result<BTreeSet<Vec<Value>>, Limit>,
    /// Those of them that no run reaches with all buffers empty: a thread ends inside a block, and stores of others never
    /// reach memory.
    pub frozen: BTreeSet<Vec<Value>>,
    /// Whether some run ends in an error of a thread, and so in no final state.
    pub goes_wrong: bool,
    pub model: Model,
    pub stats: Stats,
}

impl Outcomes {
    /// What there is to say if a limit was reached before anything was searched.
    pub fn unsearched(model: Model, limit: Limit, stats: Stats) -> Outcomes {
        Outcomes { states: Err(limit), frozen: BTreeSet::new(), goes_wrong: false, model, stats }
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

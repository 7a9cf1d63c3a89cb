//! The one door: a program and a goal go in, an [`Outcome`] comes out.
//!
//! Engines live side by side in this folder and do not know each other: `table` has them, `auto` gives them
//! their turns, `subject` is what they are asked about. Whatever they claim is judged by `certify`, on the
//! user's program: without evidence that it has confirmed there is no `violated`, no `not-robust` and no
//! `racy`. A claim that it refutes is a bug in overtake and is reported as one, never as a verdict.

mod auto;
mod automata;
pub mod certificate;
mod explicit;
mod hang;
mod lazy;
mod onward;
mod options;
mod outcomes;
mod parts;
mod past;
mod properties;
mod sat;
mod shortest;
mod subject;
mod table;
mod vacuity;

pub use crate::extend::Form;
pub use crate::robust::attack::Pruning;
pub use crate::semantics::hang::retrying;
pub use explicit::ExplicitOptions;
pub use hang::{Hanging, hang, hang_of_retrying};
pub use lazy::LazyOptions;
pub use onward::{Onward, onward};
pub use options::{Options, ShownRun};
pub use properties::{PropertyOutcomes, check_each};
pub use sat::{
    AxiomaticOutcomes, FencePlaces, FencedProgram, Unanswered, axiomatic_check, axiomatic_outcomes,
};
pub use table::{AUTOMATA, Choice, ENGINES, EXPLICIT, EngineEntry, LAZY, PAST};

use self::hang::hang as whether_it_hangs;
use crate::certify::{self, Checked, Confirmed, Doubt, Outcome, RaceFreedom, Refuted, Robustness};
use crate::machine::may_hold_in_block;
use crate::model::{Atom, Program};
use crate::query::{
    Action, Answer, Goal, Limit, Limits, Model, Outcomes, Proof, Question, Reductions, Stats, Witness,
};
use crate::reach::{Goals, LEFT_TO_ONE};
use crate::robust::oracle::{self, Reply};
use crate::robust::triangular::{self, RaceOptions};
use parts::doubted;
use std::time::Instant;
use subject::Subject;
use table::{Allowance, Engine, Turn, unknown_membarrier};
use thiserror::Error;
use vacuity::of_final_states;

/// States that one worker may store to find the witness that is shown.
const ALONE: u64 = 50_000;

/// A bug in overtake. The sentence is for the report that we ask for.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Internal(String);

/// Why the question cannot be asked of this program, if that is so: whoever would have to answer does not know one of
/// its instructions.
pub fn refusal(program: &Program, question: Question, options: &Options) -> Option<Limit> {
    let known = match (question, options.engine) {
        (Question::Robust | Question::Triangular, _) => false,
        (_, Choice::Auto) => true,
        (_, Choice::Only(entry)) => match entry.name {
            name if name == EXPLICIT.name => true,
            name => name == PAST.name && !program.has_locks(),
        },
    };
    unknown_membarrier(program).filter(|_| !known)
}

/// For those who build on engines and find that one has gone wrong.
pub fn internal(what: &str) -> Internal {
    Internal(what.to_string())
}

/// Can a state against the goal be reached?
pub fn check(
    program: &Program,
    goal: &Goal,
    options: &Options,
    limits: &Limits,
) -> Result<Outcome, Internal> {
    if let Some(refusal) = options.refusal() {
        return Err(internal(refusal));
    }
    let start = Instant::now();
    let mut outcome = match (Subject::of_goal(program, goal, options, limits), options.engine) {
        (Err(limit), _) => unsearched(options, Answer::Unknown(limit)),
        (Ok(subject), _) if subject.refuted => unsearched(options, Answer::Holds(Proof::Infeasible)),
        (Ok(subject), Choice::Auto) => auto::check(&subject, options, limits)?,
        (Ok(subject), Choice::Only(entry)) => alone(entry, &subject, options, limits)?,
    };
    outcome = shortest::show(program, goal, options, limits, outcome)?;
    outcome = doubted(program, outcome);
    outcome.warnings = vacuity::warnings(program, goal, limits);
    outcome.stats.traffic = options.traffic();
    outcome.stats.time = start.elapsed();
    Ok(outcome)
}

/// One engine, for as long as it takes.
fn alone(
    entry: &EngineEntry,
    subject: &Subject,
    options: &Options,
    limits: &Limits,
) -> Result<Outcome, Internal> {
    let mut engine = (entry.start)(subject, options, limits);
    let mut answer = (entry.blind_spot)(subject).map(Answer::Unknown);
    loop {
        if let Some(answer) = answer {
            return Ok(outcome(&*engine, answer, options));
        }
        answer = match engine.turn(Allowance::default())? {
            Turn::Answered(answer) => Some(answer),
            Turn::Progress => None,
            Turn::Spent => unreachable!("what has no bound cannot be spent"),
        };
    }
}

/// What the engine says, with what it took.
fn outcome(engine: &dyn Engine<'_>, answer: Checked, options: &Options) -> Outcome {
    Outcome {
        answer,
        model: options.model,
        engine: engine.name(),
        safe_under_sc: engine.safe_under_sc(),
        provenance: None,
        approximate: None,
        stats: engine.stats().clone(),
        warnings: vec![],
    }
}

/// No engine was asked.
fn unsearched(options: &Options, answer: Checked) -> Outcome {
    let stats = Stats { workers: options.workers, ..Stats::default() };
    let (model, engine) = (options.model, "static");
    Outcome {
        answer,
        model,
        engine,
        safe_under_sc: false,
        provenance: None,
        approximate: None,
        stats,
        warnings: vec![],
    }
}

/// If the property holds under SC and the program is robust, does it hold under TSO? Not where it looks into
/// `lock` blocks, while which other threads' stores are waiting.
pub fn robustness_suffices(program: &Program, goal: &Goal) -> bool {
    !may_hold_in_block(program, goal) && program.membarrier().is_none()
}

/// Attacks, pasts and sets of buffer contents are those of whole cells: none of what is proved of them has been
/// proved byte by byte.
fn mixed_sizes(program: &Program) -> Option<Limit> {
    program.mixes_sizes().then_some(Limit::MixedSizes)
}

/// Why nobody is asked about events of the program: what they are proved to be is not proved of these.
fn unknown_events(program: &Program) -> Option<Limit> {
    unknown_membarrier(program).or(mixed_sizes(program)).or(parts::any(program))
}

/// The program without loads and stores of what nobody really reads, as far as the goal is concerned: where
/// the program that is left is robust, the goal has nothing from TSO. Edges keep their numbers.
pub fn quiet(
    program: &Program,
    goal: &Goal,
    options: &Options,
    limits: &Limits,
) -> Result<Option<Program>, Limit> {
    let everything = Options { pruning: Pruning::Off, ..options.clone() };
    Ok(Subject::of_goal(program, goal, &everything, limits)?.into_program())
}

/// The program with the delays of so many rounds of the lazy engine built in, fewer if there are no more.
pub fn extended(
    program: &Program,
    goal: &Goal,
    options: &Options,
    limits: &Limits,
    rounds: u64,
) -> Result<Result<Program, Limit>, Internal> {
    if let Some(limit) = mixed_sizes(program) {
        return Ok(Err(limit));
    }
    match Subject::of(program, goal, options.pruning, limits) {
        Ok(subject) => lazy::extended(&subject, options, limits, rounds),
        Err(limit) => Ok(Err(limit)),
    }
}

/// Witnesses of different attacks, as far as they are found before so many states are stored after the first.
/// None, and no limit: the program is robust.
pub fn witnesses(
    program: &Program,
    options: &Options,
    limits: &Limits,
    patience: u64,
) -> Result<Witnesses, Internal> {
    let (witnesses, reply) = ask_oracle(program, options, Goals::Several { patience }, limits)?;
    Ok(Witnesses { witnesses, limit: reply.limit, stats: reply.stats })
}

/// What the oracle found.
#[derive(Debug)]
pub struct Witnesses {
    pub witnesses: Vec<Confirmed<Witness>>,
    /// What ended the search early.
    pub limit: Option<Limit>,
    pub stats: Stats,
}

/// Do SC and TSO have the same behaviours?
pub fn robust(program: &Program, options: &Options, limits: &Limits) -> Result<Robustness, Internal> {
    let (mut witnesses, reply) = ask_oracle(program, options, Goals::First, limits)?;
    let by_several = (options.workers > 1 || options.peers.is_some()) && reply.stats.states > LEFT_TO_ONE;
    if by_several && options.run == ShownRun::Simplest && !witnesses.is_empty() {
        // Which witness several workers or processes come by is luck: one worker finds the same every time.
        let (alone, again) =
            (Options { workers: 1, peers: None, ..options.clone() }, limits.with_states(ALONE));
        let (same, _) = ask_oracle(program, &alone, Goals::First, &again)?;
        witnesses = if same.is_empty() { witnesses } else { same };
    }
    let answer = match (witnesses.pop(), reply.limit) {
        (Some(witness), _) => Answer::Fails(witness),
        (None, Some(limit)) => Answer::Unknown(limit),
        (None, None) => Answer::Holds(()),
    };
    Ok(Robustness { answer, all: None, attacks: reply.attacks.count, stats: reply.stats })
}

/// The same, with every pair of a store and a load that overtakes it with effect, in the order of the text.
/// Threads that may change places count each for itself.
pub fn robust_all(program: &Program, options: &Options, limits: &Limits) -> Result<Robustness, Internal> {
    let reductions = Reductions { symmetry: false, ..options.reductions };
    let each = Options { reductions, ..options.clone() };
    let goals = Goals::Several { patience: u64::MAX / 2 };
    let (mut witnesses, reply) = ask_oracle(program, &each, goals, limits)?;
    witnesses.sort_by_key(|w| (w.thread(), w.events[w.store].edge, w.events[w.load].edge));
    let answer = match (witnesses.first(), &reply.limit) {
        (Some(witness), _) => Answer::Fails(witness.clone()),
        (None, Some(limit)) => Answer::Unknown(limit.clone()),
        (None, None) => Answer::Holds(()),
    };
    let all = Some((witnesses, reply.limit));
    Ok(Robustness { answer, all, attacks: reply.attacks.count, stats: reply.stats })
}

/// What the oracle says of the program, and the witnesses it found, in the program's own terms.
fn ask_oracle(
    program: &Program,
    options: &Options,
    goals: Goals,
    limits: &Limits,
) -> Result<(Vec<Confirmed<Witness>>, Reply), Internal> {
    let goal = Goal::default();
    let subject = match Subject::of(program, &goal, options.pruning, limits) {
        Ok(subject) => subject,
        Err(limit) => return Ok((vec![], Reply::unasked(options.workers, limit))),
    };
    if let Some(limit) = unknown_events(program) {
        return Ok((vec![], Reply::unasked(options.workers, limit)));
    }
    let mut reply = oracle::ask(subject.program(), &options.oracle(goals), limits);
    let mut witnesses = Vec::new();
    for suspect in std::mem::take(&mut reply.suspects) {
        let told = subject.tell(Model::Tso, &suspect.actions);
        match settled(certify::witness(program, &told, limits))? {
            Ok(witness) => witnesses.push(witness),
            Err(limit) => reply.limit = Some(limit),
        }
    }
    Ok((witnesses, reply))
}

/// Is the program free of triangular races? If so it is robust; if not it may be robust all the same.
///
/// What a block counts as depends on its text, so the program is asked about as it is: what the text refutes
/// is left out of the definition itself, and no switch changes the answer.
pub fn triangular(program: &Program, options: &Options, limits: &Limits) -> Result<RaceFreedom, Internal> {
    let Options { reductions, order, workers, ref peers, .. } = *options;
    if let Some(limit) = unknown_events(program) {
        let stats = Stats { workers, ..Stats::default() };
        return Ok(RaceFreedom { answer: Answer::Unknown(limit), attackers: 0, stats });
    }
    let reply =
        triangular::ask(program, &RaceOptions { reductions, order, workers, peers: peers.clone() }, limits)?;
    let answer = match (reply.race, reply.limit) {
        (Some(race), _) => Answer::Fails(race),
        (None, Some(limit)) => Answer::Unknown(limit),
        (None, None) => Answer::Holds(()),
    };
    Ok(RaceFreedom { answer, attackers: reply.attackers, stats: reply.stats })
}

/// Which final states are there, as far as these registers and cells are concerned?
pub fn outcomes(program: &Program, observed: &[Atom], options: &Options, limits: &Limits) -> Outcomes {
    let goal = Goal::default();
    match Subject::of(program, &goal, options.pruning, limits) {
        Ok(subject) => outcomes::find(subject.program(), observed, options, limits),
        Err(limit) => {
            let stats = Stats { workers: options.workers, ..Stats::default() };
            Outcomes::unsearched(options.model, limit, stats)
        }
    }
}

impl From<Refuted> for Internal {
    fn from(refuted: Refuted) -> Internal {
        Internal(refuted.to_string())
    }
}

/// The judge's word on an engine's claim: evidence, or the limit that was reached first.
fn settled<T>(judged: Result<T, Doubt>) -> Result<Result<T, Limit>, Internal> {
    match judged {
        Ok(evidence) => Ok(Ok(evidence)),
        Err(Doubt::Limit(limit)) => Ok(Err(limit)),
        Err(Doubt::Refuted(refuted)) => Err(refuted.into()),
    }
}

/// An engine's decisions, told of the user's program, as a run of it.
fn confirm(
    subject: &Subject,
    model: Model,
    actions: &[Action],
    limits: &Limits,
) -> Result<Checked, Internal> {
    let (program, goal) = (subject.user, subject.asked);
    let judged = settled(certify::run(program, goal, model, actions, limits))?;
    Ok(judged.map_or_else(Answer::Unknown, Answer::Fails))
}

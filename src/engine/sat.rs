//! Asks a SAT solver about all runs that a memory model's axioms allow (`crate::symbolic`): for programs without
//! loops, or whose loops are proved to go round so often at most.
//!
//! Each final state comes from a run that has been performed by the plain axioms. That there are no more is the
//! solver's word, once all known ones are ruled out.

use super::Internal;
use crate::certify::{self, AllowedExecution, AxiomaticOutcome, Confirmed, Doubt, ExecutionClaim};
use crate::model::{Addr, Atom, EdgeId, FenceKinds, Instr, Pred, Program, ThreadId, Value};
use crate::query::{Answer, Axioms, Goal, When};
use crate::query::{Limit, Limits};
use crate::semantics::axioms::Setting;
use crate::symbolic::{Encoding, Lit, NoStreams, Plan, Runs, Solution, Streams};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Rounds of a loop beyond which no proof is looked for.
const LARGEST_BOUND: u32 = 8;

/// What the axioms allow.
#[derive(Clone, Debug)]
pub struct AxiomaticOutcomes {
    pub states: Result<BTreeSet<Vec<Value>>, Limit>,
    pub bound: u32,
    pub variables: usize,
    pub clauses: usize,
}

/// Why there is no answer.
#[derive(Clone, Debug)]
pub enum Unanswered {
    Limit(Limit),
    Doubt(Internal),
}

impl From<Limit> for Unanswered {
    fn from(limit: Limit) -> Unanswered {
        Unanswered::Limit(limit)
    }
}

impl From<NoStreams> for Unanswered {
    fn from(why: NoStreams) -> Unanswered {
        Unanswered::Limit(match why {
            NoStreams::Limit(limit) => limit,
            NoStreams::Unsupported(what) => Limit::Inexpressible(what.to_string()),
        })
    }
}

impl From<Doubt> for Unanswered {
    fn from(doubt: Doubt) -> Unanswered {
        match doubt {
            Doubt::Limit(limit) => Unanswered::Limit(limit),
            Doubt::Refuted(refuted) => Unanswered::Doubt(refuted.into()),
        }
    }
}

/// All final states under the model, as far as these registers and cells are concerned.
pub fn axiomatic_outcomes(
    program: &Program,
    observed: &[Atom],
    model: Axioms,
    limits: &Limits,
) -> Result<AxiomaticOutcomes, Internal> {
    let mut found = AxiomaticOutcomes { states: Ok(BTreeSet::new()), bound: 1, variables: 0, clauses: 0 };
    let states = enough_rounds(program, model, &mut found.bound, limits)
        .and_then(|()| enumerate(program, observed, model, &mut found, limits));
    match states {
        Ok(states) => found.states = Ok(states),
        Err(Unanswered::Limit(limit)) => found.states = Err(limit),
        Err(Unanswered::Doubt(bug)) => return Err(bug),
    }
    Ok(found)
}

/// Can a state against the goal be reached under the model?
pub fn axiomatic_check(
    program: &Program,
    goal: &Goal,
    model: Axioms,
    limits: &Limits,
) -> Result<AxiomaticOutcome, Internal> {
    let mut outcome = AxiomaticOutcome { answer: Answer::Holds(()), bound: 1, variables: 0, clauses: 0 };
    let found = enough_rounds(program, model, &mut outcome.bound, limits)
        .and_then(|()| look_for(program, goal, model, &mut outcome, limits));
    match found {
        Ok(Some(run)) => outcome.answer = Answer::Fails(run),
        Ok(None) => {}
        Err(Unanswered::Limit(limit)) => outcome.answer = Answer::Unknown(limit),
        Err(Unanswered::Doubt(bug)) => return Err(bug),
    }
    Ok(outcome)
}

fn initial(program: &Program) -> Vec<Option<Value>> {
    program.initial_memory().iter().map(|v| Some(*v)).collect()
}

fn plan(bound: u32) -> Plan {
    Plan { bound, ..Plan::default() }
}

/// Raises the bound until no run exceeds it.
fn enough_rounds(
    program: &Program,
    model: Axioms,
    bound: &mut u32,
    limits: &Limits,
) -> Result<(), Unanswered> {
    loop {
        let mut streams = Streams::new(program, &plan(*bound), Runs::Partial, limits)?;
        if streams.overruns.is_empty() {
            return Ok(());
        }
        if model == Axioms::Relaxed {
            // Rounds too many could justify each other, out of thin air.
            return Err(Unanswered::Limit(Limit::Inexpressible("loops under the relaxed model".to_string())));
        }
        if program.has_locks() {
            return Err(Unanswered::Limit(Limit::Inexpressible("loops beside `lock` blocks".to_string())));
        }
        let overrun = streams.overrun();
        let mut encoding = Encoding::new(streams, &initial(program), model, false, limits)?;
        let asked = encoding.holds(overrun)?;
        if encoding.solve(&[asked])?.is_err() {
            return Ok(());
        }
        if *bound >= LARGEST_BOUND {
            return Err(Unanswered::Limit(Limit::Rounds(*bound)));
        }
        *bound += 1;
    }
}

/// A formula of complete runs.
fn complete<'l>(
    program: &Program,
    model: Axioms,
    plan: &Plan,
    limits: &'l Limits,
) -> Result<Encoding<'l>, Unanswered> {
    let streams = Streams::new(program, plan, Runs::Complete, limits)?;
    let mut encoding = Encoding::new(streams, &initial(program), model, false, limits)?;
    let ends: Vec<_> = encoding.streams.threads.iter().map(|s| s.ends.as_ref().map(|(g, _)| *g)).collect();
    for end in ends {
        let ended = match end {
            Some(guard) => encoding.holds(guard)?,
            None => Lit::FALSE,
        };
        encoding.cnf.clause(&[ended]);
    }
    Ok(encoding)
}

/// The value of an atom in final states, as literals.
fn word(
    encoding: &mut Encoding<'_>,
    program: &Program,
    atom: &Atom,
) -> Result<crate::symbolic::BitVector, Unanswered> {
    Ok(match atom {
        Atom::Reg(t, r) => match encoding.streams.threads[t.index()].ends.clone() {
            Some((_, registers)) => encoding.word(registers[r.index()])?,
            None => crate::symbolic::constant(0),
        },
        Atom::Mem(Addr(cell)) => encoding.last_value(*cell as usize)?,
        Atom::At(t, locs) => crate::symbolic::constant(Value::from(locs.contains(&program.thread(*t).end()))),
    })
}

fn enumerate(
    program: &Program,
    observed: &[Atom],
    model: Axioms,
    found: &mut AxiomaticOutcomes,
    limits: &Limits,
) -> Result<BTreeSet<Vec<Value>>, Unanswered> {
    let mut encoding = complete(program, model, &plan(found.bound), limits)?;
    let mut words = Vec::new();
    for atom in observed {
        words.push(word(&mut encoding, program, atom)?);
    }
    (found.variables, found.clauses) = (encoding.cnf.variables(), encoding.cnf.clauses());
    let mut states = BTreeSet::new();
    while let Ok(solution) = encoding.solve(&[])? {
        let run = confirmed(program, model, &encoding.streams, &solution, ExecutionClaim::Complete)?;
        let state: Vec<Value> = observed.iter().map(|a| value(program, &run, a)).collect();
        let differs = words.iter().zip(&state).map(|(w, v)| !encoding.word_is(w, *v)).collect::<Vec<_>>();
        if !states.insert(state) {
            return Err(Unanswered::Doubt(super::internal("the solver finds a final state twice")));
        }
        encoding.cnf.clause(&differs);
    }
    Ok(states)
}

fn value(program: &Program, run: &AllowedExecution, atom: &Atom) -> Value {
    match atom {
        Atom::Reg(t, r) => run.performed.registers[t.index()][r.index()],
        Atom::Mem(a) => run.performed.memory[a.index()],
        Atom::At(t, locs) => Value::from(locs.contains(&program.thread(*t).end())),
    }
}

fn confirmed(
    program: &Program,
    model: Axioms,
    streams: &Streams,
    solution: &Solution,
    claim: ExecutionClaim<'_>,
) -> Result<Confirmed<AllowedExecution>, Unanswered> {
    let (initial, frees) = (initial(program), HashSet::new());
    let setting = Setting { program, model, initial: &initial, first_cell: 0, frees: &frees };
    Ok(certify::execution(&setting, solution.execution(streams), claim)?)
}

fn look_for(
    program: &Program,
    goal: &Goal,
    model: Axioms,
    outcome: &mut AxiomaticOutcome,
    limits: &Limits,
) -> Result<Option<Confirmed<AllowedExecution>>, Unanswered> {
    let plan = plan(outcome.bound);
    for about in ABOUT {
        let Some(mut question) = about(program, goal, model, &plan, limits)? else { continue };
        let cnf = &question.encoding.cnf;
        (outcome.variables, outcome.clauses) = (cnf.variables(), cnf.clauses());
        if let Ok(solution) = question.encoding.solve(&[question.asked])? {
            let (streams, claim) = (&question.encoding.streams, question.claim(goal));
            return confirmed(program, model, streams, &solution, claim).map(Some);
        }
    }
    Ok(None)
}

/// A formula, and what is asked of it.
struct AxiomQuestion<'l> {
    encoding: Encoding<'l>,
    asked: Lit,
    /// Whether threads go wrong; otherwise final states are asked about.
    errors: bool,
}

impl AxiomQuestion<'_> {
    fn claim<'g>(&self, goal: &'g Goal) -> ExecutionClaim<'g> {
        if self.errors { ExecutionClaim::Wrong } else { ExecutionClaim::Reaches(goal) }
    }
}

type About =
    for<'l> fn(&Program, &Goal, Axioms, &Plan, &'l Limits) -> Result<Option<AxiomQuestion<'l>>, Unanswered>;

/// What there is to ask about a goal, one after the other.
const ABOUT: [About; 2] = [errors, finals];

/// Can a final state against the goal be reached? Nothing if it has no say in final states.
fn finals<'l>(
    program: &Program,
    goal: &Goal,
    model: Axioms,
    plan: &Plan,
    limits: &'l Limits,
) -> Result<Option<AxiomQuestion<'l>>, Unanswered> {
    if goal.clauses.is_empty() {
        return Ok(None);
    }
    let mut encoding = complete(program, model, plan, limits)?;
    let mut any = Vec::new();
    for clause in &goal.clauses {
        any.push(holds(&mut encoding, program, &clause.pred)?);
    }
    let asked = encoding.cnf.any(any);
    Ok(Some(AxiomQuestion { encoding, asked, errors: false }))
}

/// A predicate on final states as one literal.
fn holds(encoding: &mut Encoding<'_>, program: &Program, pred: &Pred) -> Result<Lit, Unanswered> {
    let mut atoms: Vec<Atom> = Vec::new();
    pred.for_each_atom(&mut |a| {
        if !atoms.contains(a) {
            atoms.push(a.clone());
        }
    });
    let mut inputs = Vec::new();
    for atom in &atoms {
        let word = word(encoding, program, atom)?;
        inputs.push(encoding.input(word));
    }
    let number =
        |a: &Atom| atoms.iter().position(|b| a == b).map_or(crate::symbolic::TermId::FALSE, |k| inputs[k]);
    let term = encoding.streams.terms.of_expr(pred, &number);
    Ok(encoding.holds_new(term)?)
}

/// Can a thread go wrong? Nothing if none ever can, or the goal does not mind.
fn errors<'l>(
    program: &Program,
    goal: &Goal,
    model: Axioms,
    plan: &Plan,
    limits: &'l Limits,
) -> Result<Option<AxiomQuestion<'l>>, Unanswered> {
    if goal.clauses.iter().any(|c| c.when != When::Final) {
        return Err(Unanswered::Limit(Limit::Inexpressible(
            "properties of states that are not final".to_string(),
        )));
    }
    if goal.ignores_errors {
        return Ok(None);
    }
    let streams = Streams::new(program, plan, Runs::Partial, limits)?;
    if streams.errors.is_empty() {
        return Ok(None);
    }
    let mut encoding = Encoding::new(streams, &initial(program), model, false, limits)?;
    let guards: Vec<_> = encoding.streams.errors.iter().map(|e| e.guard).collect();
    let errors = guards.into_iter().map(|g| encoding.holds(g)).collect::<Result<Vec<_>, _>>()?;
    let asked = encoding.cnf.any(errors);
    let blocks = program.threads().iter().any(|t| t.edges().any(|(_, e)| e.instr == Instr::Lock));
    if asked != Lit::FALSE && blocks {
        return Err(Unanswered::Limit(Limit::Inexpressible("errors beside `lock` blocks".to_string())));
    }
    Ok(Some(AxiomQuestion { encoding, asked, errors: true }))
}

/// Steps that do nothing, each the number of a place for fences. What several have in common is one place.
pub type FencePlaces = HashMap<(ThreadId, EdgeId), usize>;

/// A program that is asked about again and again, with other fences in its places: of each the number and the
/// kind.
pub struct FencedProgram<'a> {
    program: &'a Program,
    places: &'a FencePlaces,
    goal: &'a Goal,
    model: Axioms,
    questions: Vec<AxiomQuestion<'a>>,
}

impl<'a> FencedProgram<'a> {
    pub fn new(
        program: &'a Program,
        places: &'a FencePlaces,
        goal: &'a Goal,
        model: Axioms,
        limits: &'a Limits,
    ) -> Result<FencedProgram<'a>, Unanswered> {
        let mut bound = 1;
        enough_rounds(program, model, &mut bound, limits)?;
        let candidates = places.iter().map(|(step, number)| (*step, (*number, FenceKinds::ALL))).collect();
        let plan = Plan { candidates, ..plan(bound) };
        let mut questions = Vec::new();
        for about in ABOUT {
            questions.extend(about(program, goal, model, &plan, limits)?);
        }
        Ok(FencedProgram { program, places, goal, model, questions })
    }

    /// A run against the goal in spite of these fences.
    pub fn fails(
        &mut self,
        fences: &[(usize, usize)],
    ) -> Result<Option<Confirmed<AllowedExecution>>, Unanswered> {
        let program = self.with(fences);
        for question in &mut self.questions {
            let mut assumed: Vec<Lit> =
                fences.iter().map(|(place, kind)| question.encoding.place(*place, *kind)).collect();
            assumed.push(question.asked);
            if let Ok(solution) = question.encoding.solve(&assumed)? {
                let (streams, claim) = (&question.encoding.streams, question.claim(self.goal));
                return confirmed(&program, self.model, streams, &solution, claim).map(Some);
            }
        }
        Ok(None)
    }

    /// The program with these fences.
    pub fn with(&self, fences: &[(usize, usize)]) -> Program {
        let mut parts = self.program.to_parts();
        for ((t, edge), number) in self.places {
            let here = fences.iter().filter(|(place, _)| place == number);
            let kinds = here.fold(FenceKinds::NONE, |kinds, (_, kind)| kinds.and(FenceKinds::one(*kind)));
            if kinds != FenceKinds::NONE {
                parts.threads[t.index()].edges[edge.index()].instr = Instr::Partial(kinds);
            }
        }
        Program::new(parts).expect("a valid program is valid with fences in place of steps that do nothing")
    }
}

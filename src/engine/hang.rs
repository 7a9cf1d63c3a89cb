//! Can the program hang? Enumerates the states of the memory model, one after the other, and asks of each with
//! empty buffers what can still follow (`semantics::hang`).
//!
//! What hangs goes on hanging, so it makes no difference when it is noticed: local steps of a thread, where it
//! has no choice, are done at once with the step before them. All other steps are tried in every order. A
//! program with endlessly many states, such as one whose registers grow in a loop, ends at a limit.

use super::{Internal, doubted, settled};
use crate::certify::{self, Confirmed, Outcome};
use crate::model::{Bytes, Instr, Loc, Program, ThreadId};
use crate::query::{Action, Answer, Limit, Limits, Model, Proof, Stats, Trace, Waiting};
use crate::semantics::hang::{Outlook, outlook, retrying};
use crate::semantics::{State, Step, sc, tso};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

/// States that are stored if the user says nothing else.
const MOST_STATES: u64 = 2_000_000;

/// A buffer with so many stores more than the program has is filled by a loop: longer ones are left alone.
const MANY_STORES: usize = 100;

/// States of which it is left open what can follow before the search gives up.
const MOST_UNCLEAR: usize = 50;

/// Does the program hang, and if so, who waits for what?
#[derive(Clone, Debug)]
pub struct Hanging {
    /// The program whose waits try again, which the run is one of.
    pub program: Program,
    pub outcome: Outcome,
    pub waiting: Vec<Waiting>,
}

impl Hanging {
    /// The program whose waits try again, with what is asked of the one that it was made from.
    pub fn asked_of(&self, program: &Program) -> Program {
        let mut parts = self.program.to_parts();
        parts.properties = program.properties().to_vec();
        Program::new(parts).unwrap_or_else(|_| program.clone())
    }
}

/// Can a state be reached from which memory never changes again though not all threads end?
pub fn hang(program: &Program, model: Model, limits: &Limits) -> Result<Hanging, Internal> {
    match retrying(program) {
        Ok(program) => hang_of_retrying(program, model, limits),
        Err(_) => {
            let limit = Limit::ProgramSize("the ways back from where its threads wait".to_string());
            Ok(Hanging {
                program: program.clone(),
                outcome: outcome(Answer::Unknown(limit), model, Stats::default()),
                waiting: vec![],
            })
        }
    }
}

/// The same of a program whose waits try again.
pub fn hang_of_retrying(program: Program, model: Model, limits: &Limits) -> Result<Hanging, Internal> {
    let start = Instant::now();
    let mut search = HangSearch::new(&program, model, limits);
    let found = search.run();
    let stats = Stats {
        states: search.keys.len() as u64,
        transitions: search.transitions,
        workers: 1,
        time: start.elapsed(),
        ..Stats::default()
    };
    let mut waiting = vec![];
    let answer = match found {
        Ok(None) => Answer::Holds(Proof::Exhausted),
        Err(limit) => Answer::Unknown(limit),
        Ok(Some(actions)) => match settled(certify::hang(&program, model, &actions, limits))? {
            Ok((trace, waits)) => {
                waiting = waits;
                Answer::<_, Confirmed<Trace>>::Fails(trace)
            }
            Err(limit) => Answer::Unknown(limit),
        },
    };
    let outcome = doubted(&program, outcome(answer, model, stats));
    Ok(Hanging { outcome, program, waiting })
}

fn outcome(answer: certify::Checked, model: Model, stats: Stats) -> Outcome {
    let (engine, safe_under_sc) = ("explicit", false);
    let (provenance, approximate) = (None, None);
    Outcome { answer, model, engine, safe_under_sc, provenance, approximate, stats, warnings: vec![] }
}

struct HangSearch<'a> {
    program: &'a Program,
    model: Model,
    limits: &'a Limits,
    seen: HashMap<Arc<[u8]>, u32>,
    keys: Vec<Arc<[u8]>>,
    parents: Vec<u32>,
    transitions: u64,
}

impl<'a> HangSearch<'a> {
    fn new(program: &'a Program, model: Model, limits: &'a Limits) -> HangSearch<'a> {
        let (seen, keys, parents) = (HashMap::new(), Vec::new(), Vec::new());
        HangSearch { program, model, limits, seen, keys, parents, transitions: 0 }
    }

    /// Decisions that lead to a hang, if there are any.
    fn run(&mut self) -> Result<Option<Vec<Action>>, Limit> {
        let most = self.limits.states.unwrap_or(MOST_STATES);
        let (first, _) = self.beginning();
        let mut frontier = VecDeque::new();
        let stores = self.program.threads().iter().flat_map(|t| t.edges());
        let longest = MANY_STORES + stores.filter(|(_, e)| matches!(e.instr, Instr::Store { .. })).count();
        let (mut unclear, mut too_long) = (0, false);
        self.insert(&first, 0);
        frontier.push_back((0, first));
        while let Some((number, state)) = frontier.pop_front() {
            match outlook(self.program, self.model, &state, self.limits)? {
                Outlook::Hangs(_) => return self.path(number).map(Some),
                Outlook::Unclear if unclear == MOST_UNCLEAR => return Err(Limit::Growing),
                Outlook::Unclear => unclear += 1,
                Outlook::Open => {}
            }
            for (_, next) in self.successors(&state)? {
                self.transitions += 1;
                if next.buffers.iter().any(|buffer| buffer.len() > longest) {
                    too_long = true;
                    continue;
                }
                if let Some(new) = self.insert(&next, number) {
                    if self.keys.len() as u64 > most {
                        return Err(Limit::States(most));
                    }
                    frontier.push_back((new, next));
                }
            }
        }
        match (unclear, too_long) {
            (0, false) => Ok(None),
            (0, true) => Err(Limit::Buffer(longest)),
            _ => Err(Limit::Growing),
        }
    }

    /// The number of the state, if it is new.
    fn insert(&mut self, state: &State, parent: u32) -> Option<u32> {
        let key: Arc<[u8]> = key(state).into();
        if self.seen.contains_key(&key) {
            return None;
        }
        let number = self.keys.len() as u32;
        self.seen.insert(key.clone(), number);
        self.keys.push(key);
        self.parents.push(parent);
        self.limits.progress.store(self.keys.len() as u64, std::sync::atomic::Ordering::Relaxed);
        Some(number)
    }

    /// The initial state with the local steps of all threads done.
    fn beginning(&self) -> (State, Vec<Action>) {
        let (mut state, mut actions) = (State::initial(self.program), Vec::new());
        self.program.thread_ids().for_each(|t| self.settle(&mut state, t, &mut actions));
        (state, actions)
    }

    /// What follows a state. A thread that goes wrong is left out: that is no hang.
    fn successors(&self, state: &State) -> Result<Vec<(Vec<Action>, State)>, Limit> {
        let steps = match self.model {
            Model::Sc => sc::steps(self.program, state),
            Model::Tso => tso::steps(self.program, state, tso::Bound::Unbounded).0,
        };
        self.limits.spend(100 * (1 + steps.len()))?;
        let right = steps.into_iter().filter(|step| step.event.trap.is_none());
        let after = |Step { event, mut state }: Step| {
            let mut actions = vec![event.action];
            self.settle(&mut state, event.thread(), &mut actions);
            (actions, state)
        };
        Ok(right.map(after).collect())
    }

    /// Does what the thread does by itself and without a choice, once round at most.
    fn settle(&self, state: &mut State, t: ThreadId, actions: &mut Vec<Action>) {
        let own = self.program.thread(t);
        let mut visited: Vec<Loc> = Vec::new();
        loop {
            let at = state.at[t.index()];
            if at == Loc::TRAP || visited.contains(&at) {
                return;
            }
            visited.push(at);
            let is_plain = |instr: &Instr| instr.is_local() && !matches!(instr, Instr::Any { .. });
            if !own.edges_from(at).iter().all(|(_, e)| is_plain(&e.instr)) {
                return;
            }
            let mut steps = sc::thread_steps(self.program, state, t);
            match (steps.pop(), steps.is_empty()) {
                (Some(step), true) if step.event.trap.is_none() => {
                    actions.push(step.event.action);
                    *state = step.state;
                }
                _ => return,
            }
        }
    }

    /// The decisions that lead to a state.
    fn path(&self, mut number: u32) -> Result<Vec<Action>, Limit> {
        let mut line = Vec::new();
        while number != 0 {
            line.push(number);
            number = self.parents[number as usize];
        }
        let (mut state, mut actions) = self.beginning();
        for next in line.into_iter().rev() {
            let wanted = &self.keys[next as usize];
            let mut after = self.successors(&state)?.into_iter();
            let (taken, there) = after
                .find(|(_, s)| key(s)[..] == wanted[..])
                .expect("a state follows the one it was found from");
            actions.extend(taken);
            state = there;
        }
        Ok(actions)
    }
}

/// The state in few bytes: equal states are equal, and others are not.
fn key(state: &State) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(64);
    let mut put = |value: i64| {
        // Seven bits at a time, small numbers of either sign first.
        let mut rest = ((value << 1) ^ (value >> 63)) as u64;
        while rest >= 0x80 {
            bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        bytes.push(rest as u8);
    };
    state.at.iter().for_each(|loc| put(i64::from(loc.0)));
    state.registers.iter().flatten().for_each(|&value| put(value));
    state.memory.iter().for_each(|&value| put(value));
    put(state.lock.map_or(-1, |t| i64::from(t.0)));
    for buffer in &state.buffers {
        put(buffer.len() as i64);
        for store in buffer {
            put(i64::from(store.addr.0) << 8 | i64::from(Bytes::WHOLE.without(store.bytes).0));
            put(store.value);
        }
    }
    bytes
}

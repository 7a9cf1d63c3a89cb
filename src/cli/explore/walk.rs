//! What can be done with a program, one decision after the other, by the plain definition of its memory model.
//!
//! A decision is written `2.7` (thread 2 takes its edge 7), `2.7=5` (and picks 5), or `2f` (its oldest store goes to
//! memory).

use super::super::input::Source;
use crate::engine::{self, Onward, Options};
use crate::limits::Limits;
use crate::model::{EdgeId, Loc, Program, ThreadId};
use crate::query::{Act, Action, Against, Answer, Event, Goal, Model, Trace};
use crate::report::document::Block;
use crate::report::{json, pictures, steps};
use crate::semantics::replay::{as_tso, follow, replay};
use crate::semantics::{State, sc, tso};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

/// Values of one `any` that are offered.
const CHOICES: usize = 24;
/// How long a question about all that can follow may take, and one for a bug.
const PATIENCE: Duration = Duration::from_secs(5);
const BUG: Duration = Duration::from_secs(60);

pub(super) struct Walked<'a> {
    program: &'a Program,
    model: Model,
    actions: Vec<Action>,
    events: Vec<Event>,
    state: State,
}

fn action(key: &str) -> Option<Action> {
    if let Some(thread) = key.strip_suffix('f') {
        return Some(Action { thread: ThreadId(thread.parse().ok()?), act: Act::Flush });
    }
    let (step, choice) = match key.split_once('=') {
        Some((step, choice)) => (step, Some(choice.parse().ok()?)),
        None => (key, None),
    };
    let (thread, edge) = step.split_once('.')?;
    let act = Act::Step { edge: EdgeId(edge.parse().ok()?), choice };
    Some(Action { thread: ThreadId(thread.parse().ok()?), act })
}

fn key(action: Action) -> String {
    let t = action.thread.0;
    match action.act {
        Act::Flush => format!("{t}f"),
        Act::Step { edge, choice: None } => format!("{t}.{}", edge.0),
        Act::Step { edge, choice: Some(value) } => format!("{t}.{}={value}", edge.0),
    }
}

pub(super) fn model(name: &str) -> Model {
    if name == "sc" { Model::Sc } else { Model::Tso }
}

impl<'a> Walked<'a> {
    pub(super) fn new(
        source: &'a Source,
        model: Model,
        keys: &[String],
        limits: &Limits,
    ) -> Result<Walked<'a>, String> {
        let program = &source.program;
        let actions: Option<Vec<Action>> = keys.iter().map(|k| action(k)).collect();
        let actions = actions.ok_or("this is no run")?;
        let events = follow(program, model, actions.iter().copied(), limits).map_err(|e| e.to_string())?;
        let state = replay(program, model, &events, limits).map_err(|e| e.to_string())?;
        Ok(Walked { program, model, actions, events, state })
    }

    /// All that the page shows.
    pub(super) fn view(&self) -> Value {
        let threads: Value = self.program.thread_ids().map(|t| self.thread(t)).collect();
        let cells: Vec<Value> = (0..self.program.cells())
            .map(|a| {
                json!([
                    self.program.cell_name(crate::model::Addr(a as u32)),
                    self.state.memory[a].to_string()
                ])
            })
            .collect();
        let run = steps::run(self.program, self.model, &self.events, &[]);
        json!({
            "threads": threads,
            "memory": cells,
            "lock": self.state.lock.map(|t| self.program.thread(t).name()),
            "offers": self.offers(),
            "against": self.against(),
            "picture": pictures::inline(&run),
        })
    }

    fn thread(&self, t: ThreadId) -> Value {
        let (thread, at) = (self.program.thread(t), self.state.at[t.index()]);
        let lines: BTreeSet<u32> = thread.edges().map(|(_, e)| e.line).filter(|&line| line > 0).collect();
        let next: BTreeSet<u32> = match at {
            Loc::TRAP => BTreeSet::new(),
            at => thread.edges_from(at).iter().map(|(_, e)| e.line).filter(|&line| line > 0).collect(),
        };
        let registers = thread.registers().iter().zip(&self.state.registers[t.index()]);
        let waiting = self.state.buffers[t.index()].iter();
        json!({
            "name": thread.name(),
            "from": lines.first(), "to": lines.last(),
            "next": next,
            "at": thread.location_name(at),
            "ended": at == thread.end(),
            "trapped": at == Loc::TRAP,
            "registers": registers.map(|(name, value)| json!([name, value.to_string()])).collect::<Value>(),
            "buffer": waiting.map(|w| json!([self.program.cell_name(w.addr), w.value.to_string()])).collect::<Value>(),
        })
    }

    /// Everything that can happen next, and what it would do.
    fn offers(&self) -> Value {
        let mut offers = Vec::new();
        for t in self.program.thread_ids() {
            let at = self.state.at[t.index()];
            let edges = if at == Loc::TRAP { vec![] } else { self.program.thread(t).edges_from(at) };
            let mut left = CHOICES;
            let all = edges.into_iter().flat_map(|(edge, e)| {
                let choices = crate::semantics::choices(&e.instr).take(CHOICES);
                choices.map(move |choice| Action { thread: t, act: Act::Step { edge, choice } })
            });
            for action in all.chain([Action { thread: t, act: Act::Flush }]) {
                let step = match self.model {
                    Model::Sc => sc::decide(self.program, &self.state, action),
                    Model::Tso => tso::decide(self.program, &self.state, action),
                };
                if left == 0 || step.is_none() {
                    continue;
                }
                left -= 1;
                offers.push(self.offer(action));
            }
        }
        offers.into()
    }

    fn offer(&self, action: Action) -> Value {
        let all = self.actions.iter().copied().chain([action]);
        let events = follow(self.program, self.model, all, &Limits::default()).unwrap_or_default();
        let run = steps::run(self.program, self.model, &events, &[]);
        let (text, effect) = match &run {
            Block::Run(run) => {
                run.rows.last().map(|row| (row.text.clone(), row.effect.clone())).unwrap_or_default()
            }
            _ => Default::default(),
        };
        let kind = events.last().map_or("", |e| e.kind.name());
        json!({ "key": key(action), "thread": action.thread.index(), "text": text, "effect": effect, "kind": kind })
    }

    fn against(&self) -> Option<String> {
        let trapped = self.events.last().and_then(|e| Some(Against::Trap(e.thread(), e.trap?)));
        let against = trapped.or_else(|| self.state.against(self.program, &Goal::of(self.program)))?;
        let trace = Trace { model: self.model, events: self.events.clone(), against };
        match steps::trace(self.program, &trace) {
            [_, Block::Paragraph(ending)] => ending.lines.first().cloned(),
            _ => None,
        }
    }

    /// Can it still go wrong?
    pub(super) fn still(&self) -> Value {
        if self.against().is_some() {
            return json!({ "answer": "yes", "words": "It has gone wrong already.", "run": [] });
        }
        let options = Options { model: self.model, ..Options::with_workers(1) };
        let limits = Limits::default().with_timeout(PATIENCE);
        match engine::onward(self.program, &options, &self.actions, &self.state, &limits) {
            Ok(Onward::Reachable(rest)) => {
                let keys: Vec<String> = rest.into_iter().map(key).collect();
                json!({ "answer": "yes", "words": format!("Yes, in {} more steps.", keys.len()), "run": keys })
            }
            Ok(Onward::Unreachable) => {
                json!({ "answer": "no", "words": "No: whatever follows, nothing forbidden is reached." })
            }
            Ok(Onward::Unknown(Ok(limit))) => {
                json!({ "answer": "unknown", "words": format!("Unknown: {}.", crate::report::limit_reached(&limit)) })
            }
            Ok(Onward::Unknown(Err(why))) => {
                json!({ "answer": "unknown", "words": format!("Unknown: {why}.") })
            }
            Err(bug) => json!({ "answer": "unknown", "words": format!("A bug in overtake: {bug}") }),
        }
    }

    /// The run so far, as an answer of `--json`.
    pub(super) fn answer(&self, file: &str, define: &Value) -> Value {
        json!({
            "tool": "overtake", "version": env!("CARGO_PKG_VERSION"), "file": file, "command": "explore",
            "verdict": "explored", "model": self.model.name(), "trace_model": self.model.name(), "define": define,
            "reason": self.against().unwrap_or_default(),
            "trace": json::events(self.program, &self.events),
        })
    }

    pub(super) fn blocks(&self) -> Vec<Block> {
        let run = steps::run(self.program, self.model, &self.events, &[]);
        let ending = self.against().map(Block::line);
        [run].into_iter().chain(ending).collect()
    }
}

/// A run to a bug: to what is forbidden, or, where nothing is, one that no SC run is like.
pub(super) fn bug(source: &Source, model: Model) -> Value {
    let program = &source.program;
    let (options, limits) = (Options { model, ..Options::default() }, Limits::default().with_timeout(BUG));
    let stated = !program.properties().is_empty() || program.has_asserts();
    let found = match stated {
        true => engine::check(program, &Goal::of(program), &options, &limits).map(|outcome| {
            match outcome.answer {
                Answer::Fails(trace) => Ok((trace.model, trace.events.clone())),
                Answer::Holds(_) => Err("The program is safe: there is no bug to go to.".to_string()),
                Answer::Unknown(limit) => Err(format!("Unknown: {}.", crate::report::limit_reached(&limit))),
            }
        }),
        false if model == Model::Sc => {
            return json!({ "words": "Nothing is forbidden, and under SC no store waits." });
        }
        false => engine::robust(program, &options, &limits).map(|found| match found.answer {
            Answer::Fails(witness) => Ok((Model::Tso, witness.events.clone())),
            Answer::Holds(()) => Err("The program is robust: TSO adds nothing to it.".to_string()),
            Answer::Unknown(limit) => Err(format!("Unknown: {}.", crate::report::limit_reached(&limit))),
        }),
    };
    match found {
        Ok(Ok((found, events))) => {
            let actions = match (found, model) {
                (Model::Sc, Model::Tso) => as_tso(&events),
                _ => events.iter().map(|e| e.action).collect(),
            };
            let keys: Vec<String> = actions.into_iter().map(key).collect();
            json!({ "words": format!("A run of {} steps; go back and forth in it.", keys.len()), "run": keys })
        }
        Ok(Err(words)) => json!({ "words": words }),
        Err(bug) => json!({ "words": format!("A bug in overtake: {bug}") }),
    }
}

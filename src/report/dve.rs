//! What is there to tell of a DVE model? Its size, and runs of it: step by step, with what each changed; the
//! steps that are repeated for ever have a star.

use super::document::{Block, Document, Fact, Paragraph};
use super::scene::{Move, MoveKind, Scene};
use super::steps::{RunRow, RunTable};
use super::table::Tone;
use super::{capitalised, count_of, json, limit_reached, peak_memory};
use crate::certify::{DveAgainst, DveOutcome, DveRun};
use crate::dve::{Configuration, DveStep, DveVariable, Memory, Site, System};
use crate::model::source::LinePlace;
use crate::query::{Answer, Question, Stats};
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// What was asked of a model, in the words that reports have for it.
pub struct DveAsked<'a> {
    pub system: &'a System,
    pub file: &'a str,
    /// `sc` or `slots`.
    pub model: &'static str,
    pub memory: &'a Memory,
    /// The formula, or what else must not be.
    pub what: String,
}

/// An answer, and what it answers.
pub type DveAnswer<'a> = (DveAsked<'a>, DveOutcome);

/// The answers to all that was asked of a model; the worst decides.
pub fn document<'a>(answers: &'a [DveAnswer<'a>], peak_kb: Option<u64>) -> Document<'a> {
    // The first one of the worst.
    let (asked, outcome) =
        answers.iter().rev().max_by_key(|(_, a)| a.answer.verdict()).expect("something was asked");
    let stats = total(answers, &outcome.stats);
    let costs_of = stats.clone();
    Document {
        question: Question::Check,
        verdict: outcome.answer.verdict(),
        file: asked.file.to_string(),
        explanation: Box::new(|| answers.iter().flat_map(|(a, o)| explanation(a, o)).collect()),
        costs: Box::new(move || vec![costs(&costs_of, peak_kb)]),
        warnings: vec![],
        fields: Box::new(move || fields(answers, (asked, outcome), &stats, peak_kb)),
    }
}

/// What all answers together took.
fn total(answers: &[DveAnswer], decisive: &Stats) -> Stats {
    let sum = |part: fn(&Stats) -> u64| answers.iter().map(|(_, a)| part(&a.stats)).sum();
    Stats {
        states: sum(|s| s.states),
        transitions: sum(|s| s.transitions),
        time: answers.iter().map(|(_, a)| a.stats.time).sum(),
        ..decisive.clone()
    }
}

fn fields(
    answers: &[DveAnswer],
    (asked, outcome): (&DveAsked, &DveOutcome),
    stats: &Stats,
    peak_kb: Option<u64>,
) -> Map<String, Value> {
    let question = Question::Check;
    let mut fields = json::common(question, outcome.answer.verdict(), asked.file, stats, peak_kb);
    json::put(&mut fields, json!({ "model": asked.model }));
    json::put(&mut fields, given(asked.system, asked.memory));
    json::put(&mut fields, told(asked, outcome));
    if answers.len() > 1 {
        let one = |(i, (asked, outcome)): (usize, &DveAnswer)| {
            let mut one = Map::new();
            let verdict = question.word(outcome.answer.verdict());
            json::put(&mut one, json!({ "number": i + 1, "text": asked.what, "verdict": verdict }));
            json::put(&mut one, told(asked, outcome));
            Value::from(one)
        };
        let properties: Value = answers.iter().enumerate().map(one).collect();
        json::put(&mut fields, json!({ "properties": properties }));
    }
    fields
}

/// What there is to say of one answer, for scripts.
fn told(asked: &DveAsked, outcome: &DveOutcome) -> Value {
    let mut fields = Map::new();
    json::put(&mut fields, json!({ "asked": asked.what, "reason": reason(asked, outcome) }));
    match &outcome.answer {
        Answer::Fails(run) => {
            let trace = events(asked.system, run);
            let against = against(asked.system, run);
            json::put(
                &mut fields,
                json!({ "trace": trace, "cycle_from": run.cycle_from, "against": against }),
            );
        }
        Answer::Unknown(limit) => json::put(&mut fields, json!({ "limit": json::limit_name(limit) })),
        Answer::Holds(()) => {}
    }
    fields.into()
}

/// What a run is against.
fn against(system: &System, run: &DveRun) -> Value {
    match &run.against {
        DveAgainst::Error(error) => json!({ "kind": "error", "text": system.show_error(error) }),
        DveAgainst::Assertion(p, i) => {
            json!({ "kind": "assertion", "thread": system.processes[*p].name, "assertion": i })
        }
        DveAgainst::Forbidden(e) => json!({ "kind": "forbidden", "text": system.show_expr(e) }),
        DveAgainst::Deadlock => json!({ "kind": "deadlock" }),
        DveAgainst::Formula | DveAgainst::Property => json!({ "kind": "lasso" }),
    }
}

/// What was atomic, and what a barrier, where writes wait in slots.
fn given(system: &System, memory: &Memory) -> Value {
    let name = |process: usize, transition: usize| format!("{}:{transition}", system.processes[process].name);
    match memory {
        Memory::Sc => json!({}),
        Memory::Slots { atomic, barriers } => {
            let site =
                |s: &Site| format!("{}:{}", name(s.process, s.transition), system.variables[s.variable].name);
            let (atomic, barrier) = (atomic.iter().map(site), barriers.iter().map(|&(p, t)| name(p, t)));
            json!({ "atomic": atomic.collect::<Value>(), "barrier": barrier.collect::<Value>() })
        }
    }
}

/// The same for people.
fn explanation(asked: &DveAsked, outcome: &DveOutcome) -> Vec<Block> {
    let (reason, states) = (reason(asked, outcome), outcome.stats.states);
    match &outcome.answer {
        Answer::Fails(run) => {
            let lines = vec![format!("{}.", capitalised(&reason))];
            let ending = Block::Paragraph(Paragraph { lines, items: vec![], tone: Tone::Bad });
            let [head, table] = run_blocks(asked.system, run);
            vec![head, table, ending]
        }
        Answer::Holds(()) => vec![Block::line(format!("{} ({states} states stored).", capitalised(&reason)))],
        Answer::Unknown(_) => {
            vec![Block::line(format!("{}; {states} states were visited.", capitalised(&reason)))]
        }
    }
}

/// What the run is, and its steps.
pub fn run_blocks(system: &System, run: &DveRun) -> [Block; 2] {
    [Block::line(headline(run)), Block::Run(table(system, run))]
}

fn headline(run: &DveRun) -> String {
    let steps = count_of(run.steps.len() as u64, "step");
    match run.cycle_from {
        Some(from) => format!("A run of {steps}, the last {} for ever:", run.steps.len() - from),
        None => format!("A run of {steps}:"),
    }
}

fn reason(asked: &DveAsked, outcome: &DveOutcome) -> String {
    let system = asked.system;
    let run = match &outcome.answer {
        Answer::Holds(()) => return format!("all runs were looked at, and this holds: {}", asked.what),
        Answer::Unknown(limit) => return limit_reached(limit),
        Answer::Fails(run) => run,
    };
    match &run.against {
        DveAgainst::Error(error) => format!("the last step goes wrong: {}", system.show_error(error)),
        DveAgainst::Assertion(p, i) => {
            let (process, assertion) = (&system.processes[*p], &system.processes[*p].asserts[*i]);
            let (state, line) = (&process.states[assertion.state].name, assertion.line);
            let condition = system.show_expr(&assertion.condition);
            format!("the assertion of {} in state {state}, line {line}, fails: {condition}", process.name)
        }
        DveAgainst::Forbidden(e) => format!("forbidden: {}", system.show_expr(e)),
        DveAgainst::Deadlock => "nothing can happen any more: a deadlock".to_string(),
        DveAgainst::Formula => format!("{} does not hold on this run", asked.what),
        DveAgainst::Property => "the property process accepts this run".to_string(),
    }
}

fn costs(stats: &Stats, peak_kb: Option<u64>) -> Block {
    let per_state =
        format!("{:.1} bytes, of them {} for the packed state", stats.bytes_per_state, 8 * stats.words);
    let mut facts = vec![
        Fact::new("states", stats.states),
        Fact::new("transitions", stats.transitions),
        Fact::new("per state", per_state),
        Fact::new("workers", stats.workers),
        Fact::new("time", format!("{:.3} s", stats.time.as_secs_f64())),
    ];
    facts.extend(peak_memory(peak_kb));
    Block::Facts(facts)
}

/// Who takes a step; of a handshake, the sender.
pub fn actor(step: &DveStep) -> Option<usize> {
    match *step {
        DveStep::Internal { process, .. } | DveStep::Flush { process, .. } => Some(process),
        DveStep::Handshake { sender: (process, _), .. } => Some(process),
        DveStep::Stutter => None,
    }
}

fn line(system: &System, step: &DveStep) -> u32 {
    match *step {
        DveStep::Internal { process, transition } => system.transition(process, transition).line,
        DveStep::Handshake { sender: (p, t), .. } => system.transition(p, t).line,
        DveStep::Flush { .. } | DveStep::Stutter => 0,
    }
}

/// One row for each step.
fn table(system: &System, run: &DveRun) -> RunTable {
    let threads = system.processes[..system.active()].iter().map(|p| p.name.clone()).collect();
    let row = |(i, step): (usize, &DveStep)| {
        let to = run.states.get(i + 1);
        let is_flush = matches!(step, DveStep::Flush { .. });
        let effect = to.map_or("goes wrong".to_string(), |to| changes(system, &run.states[i], to));
        let slots = to.filter(|to| to.slots != run.states[i].slots).zip(actor(step));
        RunRow {
            local: false,
            starred: run.cycle_from.is_some_and(|from| i >= from),
            thread: actor(step).unwrap_or(0),
            line: LinePlace { file: None, line: line(system, step) }.short(),
            text: system.show_step(step),
            asm: String::new(),
            tone: if is_flush { Tone::Quiet } else { Tone::Plain },
            block: None,
            effect,
            effect_tone: if to.is_none() { Tone::Bad } else { Tone::Change },
            buffer: slots.map(|(to, process)| waiting(system, to, process)),
        }
    };
    let rows = run.steps.iter().enumerate().map(row).collect();
    RunTable { threads, rows, scene: scene(system, run) }
}

/// The elements of all variables, as variable and number.
fn elements(system: &System) -> Vec<(usize, usize)> {
    let variables = system.variables.iter().enumerate().filter(|(_, v)| !v.constant);
    variables.flat_map(|(v, variable)| (0..variable.initial.len()).map(move |i| (v, i))).collect()
}

/// What pictures show of a run: the elements of all variables, and what waits in slots.
fn scene(system: &System, run: &DveRun) -> Scene {
    let elements = elements(system);
    let number: HashMap<(usize, usize), usize> = elements.iter().enumerate().map(|(k, &e)| (e, k)).collect();
    let slots = |at: &Configuration, p: usize| -> Vec<(usize, i64)> {
        let own = at.slots.iter().filter(|((q, ..), _)| *q == p);
        own.filter_map(|((_, v, i), value)| Some((*number.get(&(*v, *i))?, *value))).collect()
    };
    let mut stores: HashMap<(usize, usize), usize> = HashMap::new();
    let mut waiting: Vec<Vec<(usize, i64)>> = vec![vec![]; system.active()];
    let step = |(i, step): (usize, &DveStep)| {
        let mut made = Move { line: line(system, step), ..Move::default() };
        let Some(to) = run.states.get(i + 1) else { return made };
        let from = &run.states[i];
        let value = |at: &Configuration, (v, e): (usize, usize)| at.values[v][e];
        let changed = elements.iter().enumerate().filter(|(_, e)| value(from, **e) != value(to, **e));
        made.memory = changed.map(|(k, e)| (k, value(to, *e))).collect();
        let Some(p) = actor(step) else { return made };
        let (old, new) = (&mut waiting[p], slots(to, p));
        while let Some(place) = old.iter().position(|one| !new.contains(one)) {
            let (cell, _) = old.remove(place);
            made.leaves.push(place);
            made.store = stores.remove(&(p, cell));
        }
        made.enters = new.into_iter().filter(|one| !old.contains(one)).collect();
        stores.extend(made.enters.iter().map(|(cell, _)| ((p, *cell), i)));
        old.extend(&made.enters);
        made.kind = match step {
            DveStep::Flush { .. } => MoveKind::Flush,
            _ if !made.enters.is_empty() => MoveKind::Store,
            _ => MoveKind::Local,
        };
        made
    };
    Scene {
        cells: elements.iter().map(|&(v, i)| system.element_name(v, i)).collect(),
        initial: elements.iter().map(|&(v, i)| system.variables[v].initial[i]).collect(),
        registers: vec![vec![]; system.active()],
        starts: vec![0; system.active()],
        moves: run.steps.iter().enumerate().map(step).collect(),
    }
}

/// Elements of variables that change.
pub fn changes(system: &System, from: &Configuration, to: &Configuration) -> String {
    let mut all = Vec::new();
    for (v, (old, new)) in from.values.iter().zip(&to.values).enumerate() {
        for (i, (old, new)) in old.iter().zip(new).enumerate().filter(|(_, (old, new))| old != new) {
            all.push(format!("{}: {old} -> {new}", system.element_name(v, i)));
        }
    }
    all.join(", ")
}

fn waiting(system: &System, at: &Configuration, process: usize) -> String {
    let own = at.slots.iter().filter(|((p, ..), _)| *p == process);
    let all: Vec<String> =
        own.map(|((_, v, i), value)| format!("{}={value}", system.element_name(*v, *i))).collect();
    if all.is_empty() { "empty".to_string() } else { all.join(" ") }
}

pub fn events(system: &System, run: &DveRun) -> Value {
    run.steps.iter().map(|step| event(system, step)).collect()
}

/// One step, with the numbers of transitions in their processes.
pub fn event(system: &System, step: &DveStep) -> Value {
    let name = |process: usize| &system.processes[process].name;
    let more = match *step {
        DveStep::Internal { process, transition } => {
            json!({ "kind": "step", "thread": name(process), "transition": transition })
        }
        DveStep::Handshake { sender: (p, t), receiver: (q, u) } => json!({
            "kind": "handshake", "thread": name(p), "transition": t,
            "receiver": { "thread": name(q), "transition": u },
        }),
        DveStep::Flush { process, variable, element } => json!({
            "kind": "flush", "thread": name(process), "address": system.element_name(variable, element),
        }),
        DveStep::Stutter => json!({ "kind": "stutter" }),
    };
    let mut fields = Map::new();
    json::put(&mut fields, more);
    json::put(&mut fields, json!({ "line": line(system, step), "text": system.show_step(step) }));
    fields.into()
}

/// The size of a state space, for people and for scripts.
pub struct Sizes {
    pub states: u64,
    pub transitions: u64,
    pub deadlocks: u64,
    pub errors: u64,
}

pub fn sizes_text(sizes: &Sizes) -> String {
    let Sizes { states, transitions, deadlocks, errors } = sizes;
    format!(
        "states       {states}\ntransitions  {transitions}\ndeadlocks    {deadlocks}\nerrors       {errors}\n"
    )
}

pub fn sizes_json(file: &str, model: &str, sizes: &Sizes, stats: &Stats, peak_kb: Option<u64>) -> Value {
    let mut fields = json::headed("show", "counted", file, stats, peak_kb);
    let Sizes { states, transitions, deadlocks, errors } = sizes;
    json::put(
        &mut fields,
        json!({ "model": model, "states": states, "transitions": transitions, "deadlocks": deadlocks, "errors": errors }),
    );
    fields.into()
}

/// The model as it was understood: variables, channels, and the transitions of each process.
pub fn listing(system: &System) -> String {
    let mut text = String::new();
    let variable = |v: &DveVariable| {
        let size = if v.is_array { format!("[{}]", v.initial.len()) } else { String::new() };
        let values: Vec<String> = v.initial.iter().map(|n| n.to_string()).collect();
        format!("{}{size} = {}", v.name, values.join(", "))
    };
    for v in system.variables.iter().filter(|v| v.owner.is_none()) {
        text += &format!("global {}\n", variable(v));
    }
    for channel in &system.channels {
        text += &format!("channel {}[{}]\n", channel.name, channel.capacity);
    }
    for (p, process) in system.processes.iter().enumerate() {
        let property = if p >= system.active() { " (property)" } else { "" };
        text += &format!("\nprocess {}{property}\n", process.name);
        for v in system.variables.iter().filter(|v| v.owner == Some(p)) {
            text += &format!("  local {}\n", variable(v));
        }
        for (i, t) in process.transitions.iter().enumerate() {
            text += &format!("  {i:>3}  {}\n", system.show_transition(p, t));
        }
    }
    text
}

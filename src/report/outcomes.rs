//! Which final states are there? A list in the shape that herd gives it, for people and scripts that know
//! herd.
//!
//! Where herd counts executions, states are counted here: an execution graph is nothing that exploring knows
//! of. So `Witnesses` and `Observation` have other numbers than herd's, with the same word between them.

use super::document::{Block, Fold};
use super::{count_of, json, limit_reached, steps};
use crate::certify::Confirmed;
use crate::model::litmus::{Litmus, Shown};
use crate::model::{Program, PropertyKind, Value as Number};
use crate::query::{Limit, Model, Outcomes, Stats, Trace};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The final states and what the condition says of them.
pub struct FinalStates<'a> {
    litmus: &'a Litmus,
    /// One row for each state, in their numbers' order.
    pub rows: Vec<FinalState>,
    /// States that satisfy the condition's predicate, and others.
    holds: usize,
    fails: usize,
}

/// A final state.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub struct FinalState {
    pub values: Vec<Shown>,
    /// Some stores never reach memory.
    pub frozen: bool,
}

impl<'a> FinalStates<'a> {
    pub fn new(program: &Program, litmus: &'a Litmus, outcomes: &Outcomes) -> Result<FinalStates<'a>, Limit> {
        let states = outcomes.states.as_ref().map_err(Clone::clone)?;
        let holds = states.iter().filter(|values| litmus.holds(program, values)).count();
        let row = |values: &Vec<_>| {
            let shown = litmus.observed.iter().zip(values).map(|(column, value)| litmus.show(column, *value));
            FinalState { values: shown.collect(), frozen: outcomes.frozen.contains(values) }
        };
        let mut rows: Vec<FinalState> = states.iter().map(row).collect();
        rows.sort();
        Ok(FinalStates { litmus, holds, fails: rows.len() - holds, rows })
    }

    /// How often the predicate holds: `Never`, `Sometimes` or `Always`.
    pub fn observation(&self) -> &'static str {
        match (self.holds, self.fails) {
            (0, _) => "Never",
            (_, 0) => "Always",
            _ => "Sometimes",
        }
    }

    /// Is the condition, with its quantifier, true? `Ok` or `No`.
    pub fn verdict(&self) -> &'static str {
        let holds = match self.litmus.kind {
            PropertyKind::Exists => self.holds > 0,
            PropertyKind::Never | PropertyKind::Forbid => self.holds == 0,
            PropertyKind::Forall => self.fails == 0,
        };
        if holds { "Ok" } else { "No" }
    }

    /// The states that agree with the condition, and those that do not.
    pub fn witnesses(&self) -> (usize, usize) {
        match self.litmus.kind {
            PropertyKind::Never | PropertyKind::Forbid => (self.fails, self.holds),
            PropertyKind::Exists | PropertyKind::Forall => (self.holds, self.fails),
        }
    }

    fn observation_line(&self) -> String {
        format!("Observation {} {} {} {}\n", self.litmus.name, self.observation(), self.holds, self.fails)
    }
}

/// What stands behind a state that no run reaches with all buffers empty.
const FROZEN: &str = " (with stores that a block has frozen)";

/// The condition with its quantifier.
pub fn condition(litmus: &Litmus) -> String {
    let quantifier = match litmus.kind {
        PropertyKind::Exists => "exists",
        PropertyKind::Never | PropertyKind::Forbid => "~exists",
        PropertyKind::Forall => "forall",
    };
    format!("{quantifier} ({})", litmus.condition)
}

/// The block of one test.
pub fn block(program: &Program, litmus: &Litmus, outcomes: &Outcomes) -> String {
    let kind = match litmus.kind {
        PropertyKind::Exists => "Allowed",
        PropertyKind::Never | PropertyKind::Forbid => "Forbidden",
        PropertyKind::Forall => "Required",
    };
    let name = &litmus.name;
    let head = format!("Test {name} {kind}\n");
    let time = format!("Time {name} {:.2}\n", outcomes.stats.time.as_secs_f64());
    let table = match FinalStates::new(program, litmus, outcomes) {
        Ok(table) => table,
        Err(limit) => return format!("{head}Unknown: {}\n{time}\n", limit_reached(&limit)),
    };
    let mut text = format!("{head}States {}\n", table.rows.len());
    for row in &table.rows {
        let cells = litmus
            .observed
            .iter()
            .zip(&row.values)
            .map(|(column, value)| format!("{}={value};", column.name));
        let mark = if row.frozen { FROZEN } else { "" };
        text += &(cells.collect::<Vec<_>>().join(" ") + mark + "\n");
    }
    let (positive, negative) = table.witnesses();
    text += &format!("{}\nWitnesses\nPositive: {positive} Negative: {negative}\n", table.verdict());
    text += &format!("Condition {}\n{}{time}\n", condition(litmus), table.observation_line());
    text
}

/// The same of a test that was not read to its end.
pub fn unread(name: &str, limit: &Limit) -> String {
    format!("Test {name}\nUnknown: {}\n\n", limit_reached(limit))
}

/// How often the condition's predicate holds, on one line.
pub fn summary(program: &Program, litmus: &Litmus, outcomes: &Outcomes) -> String {
    match FinalStates::new(program, litmus, outcomes) {
        Ok(table) => table.observation_line(),
        Err(limit) => summary_of_unknown(&litmus.name, &limit),
    }
}

pub fn summary_of_unknown(name: &str, limit: &Limit) -> String {
    format!("Observation {name} unknown: {}\n", limit_reached(limit))
}

/// Everything about one file's final states, for scripts.
pub fn object(
    program: &Program,
    litmus: &Litmus,
    file: &str,
    outcomes: &Outcomes,
    peak_kb: Option<u64>,
) -> Value {
    let table = FinalStates::new(program, litmus, outcomes);
    let verdict = table.as_ref().map_or("unknown", FinalStates::verdict);
    let mut fields = json::headed("outcomes", verdict, file, &outcomes.stats, peak_kb);
    let explored = fields.remove("states").unwrap_or_default();
    let mut put = |more: Value| json::put(&mut fields, more);
    put(json!({
        "explored": explored,
        "model": outcomes.model.name(),
        "test": litmus.name,
        "condition": condition(litmus),
        "goes_wrong": outcomes.goes_wrong,
    }));
    match table {
        Ok(table) => {
            let state = |row: &FinalState| values(litmus, &row.values);
            put(json!({ "states": table.rows.iter().map(state).collect::<Value>() }));
            let frozen: Vec<Value> = table.rows.iter().filter(|row| row.frozen).map(state).collect();
            if !frozen.is_empty() {
                put(json!({ "frozen": frozen }));
            }
            let (positive, negative) = table.witnesses();
            put(json!({
                "observation": table.observation(),
                "positive": positive,
                "negative": negative,
            }));
        }
        Err(limit) => put(json!({
            "limit": json::limit_name(&limit),
            "reason": limit_reached(&limit),
        })),
    }
    fields.into()
}

/// Final states for a page, each with a run to it where there is one at hand.
pub fn blocks(program: &Program, litmus: &Litmus, outcomes: &Outcomes, runs: &StateRuns) -> Vec<Block> {
    let table = match FinalStates::new(program, litmus, outcomes) {
        Ok(table) => table,
        Err(limit) => {
            return vec![Block::line(format!("Not all states are known: {}.", limit_reached(&limit)))];
        }
    };
    let (positive, negative) = table.witnesses();
    let observation = table.observation();
    let asked = format!(
        "`{}`: {observation}, in {positive} of {} final states.",
        condition(litmus),
        positive + negative
    );
    let state = |values: &Vec<Number>| {
        let cells = litmus.observed.iter().zip(values);
        let cells = cells.map(|(column, value)| format!("{}={}", column.name, litmus.show(column, *value)));
        let holds = if litmus.holds(program, values) { "  ← the condition" } else { "" };
        let title = format!("{}{holds}", cells.collect::<Vec<_>>().join(" "));
        let blocks = match runs.get(values) {
            Some(trace) => vec![steps::run(program, trace.model, &trace.events, &[])],
            None => vec![Block::line("No run was looked for: there are many states.")],
        };
        Block::Fold(Fold { title, blocks })
    };
    let states = outcomes.states.iter().flatten();
    let head = Block::line(format!(
        "{} Each state opens to a run that ends in it.",
        count_of(table.rows.len() as u64, "final state") + "."
    ));
    [Block::line(asked), head].into_iter().chain(states.map(state)).collect()
}

/// For final states, runs that end in them.
pub type StateRuns = BTreeMap<Vec<Number>, Confirmed<Trace>>;

/// The same of a test that was not read to its end.
pub fn unread_object(test: &str, file: &str, model: Model, limit: &Limit, peak_kb: Option<u64>) -> Value {
    let mut fields = json::headed("outcomes", "unknown", file, &Stats::default(), peak_kb);
    let explored = fields.remove("states").unwrap_or_default();
    json::put(
        &mut fields,
        json!({
            "explored": explored,
            "model": model.name(),
            "test": test,
            "limit": json::limit_name(limit),
            "reason": limit_reached(limit),
        }),
    );
    fields.into()
}

fn values(litmus: &Litmus, row: &[Shown]) -> Value {
    let value = |shown: &Shown| match shown {
        Shown::Number(number) => i64::try_from(*number).map_or_else(|_| (*number as u64).into(), Value::from),
        Shown::Address(name) => name.clone().into(),
    };
    litmus.observed.iter().zip(row).map(|(column, shown)| (column.name.clone(), value(shown))).collect()
}

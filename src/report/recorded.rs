//! A run that was told as JSON, read back: the decisions that it names, and what it is said to show.
//!
//! Nothing is believed here: what comes of the decisions is for `semantics` and `certify` to say, and what the run is
//! said to have done is held against that, field by field.

use super::json;
use crate::model::{EdgeId, Program, ThreadId};
use crate::query::{Act, Action, Event, Model};
use serde_json::Value;

/// A run out of an answer.
#[derive(Clone, Debug)]
pub struct Recorded<'j> {
    pub events: &'j [Value],
    /// The name of the memory model that it needs.
    pub model: &'j str,
    pub claim: RunClaim,
}

/// What a run is said to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunClaim {
    /// Its last state is forbidden.
    Forbidden,
    /// Its last state is one from which nothing changes any more.
    Hang,
    /// It comes back to where the event of this number begins, or, if that is behind all, nothing can follow.
    Lasso(usize),
    /// No SC run is like it: by the store, and the load that overtakes it.
    Witness { store: usize, load: usize },
    /// It has a triangular race.
    Race { store: usize, load: usize, write: usize },
    /// That it is possible.
    Possible,
}

/// The run of an answer, or why there is none.
pub fn run(answer: &Value) -> Result<Recorded<'_>, String> {
    if answer["changed"] == Value::Bool(true) {
        return Err("its run is one of the program with changes, not of the program".to_string());
    }
    let at = |part: &Value, name: &str| {
        let place = part["at"][name].as_u64().ok_or_else(|| format!("the `{name}` of its run has no place"));
        place.map(|place| place as usize)
    };
    let of = |part: &Value| part["trace"].is_array();
    let (part, model, claim) = if of(&answer["witness"]) {
        let part = &answer["witness"];
        (part, "tso", RunClaim::Witness { store: at(part, "store")?, load: at(part, "load")? })
    } else if of(&answer["race"]) {
        let part = &answer["race"];
        let (store, load, write) = (at(part, "store")?, at(part, "load")?, at(part, "write")?);
        (part, "sc", RunClaim::Race { store, load, write })
    } else {
        let model = answer["trace_model"].as_str().or(answer["model"].as_str()).unwrap_or("tso");
        let claim = match (answer["cycle_from"].as_u64(), answer["property"].as_str()) {
            (Some(from), _) => RunClaim::Lasso(from as usize),
            (None, Some("no hang")) => RunClaim::Hang,
            _ if answer["verdict"] == "explored" => RunClaim::Possible,
            _ => RunClaim::Forbidden,
        };
        (answer, model, claim)
    };
    match part["trace"].as_array() {
        Some(events) => Ok(Recorded { events, model, claim }),
        None => Err("it has no run".to_string()),
    }
}

/// The decision that an event names.
pub fn action(program: &Program, told: &Value) -> Result<Action, String> {
    let name = told["thread"].as_str().ok_or("it has no `thread`")?;
    let mut named = program.thread_ids().filter(|&t| program.thread(t).name() == name);
    let thread: ThreadId = named.next().ok_or_else(|| format!("there is no thread `{name}`"))?;
    if told["kind"] == "flush" {
        return Ok(Action { thread, act: Act::Flush });
    }
    let edge = told["edge"].as_u64().and_then(|e| u32::try_from(e).ok()).ok_or("it has no `edge`")?;
    let choice = match &told["choice"] {
        Value::Null => None,
        choice => Some(choice.as_i64().ok_or("its `choice` is not a whole number")?),
    };
    Ok(Action { thread, act: Act::Step { edge: EdgeId(edge), choice } })
}

/// Where an event is not what it is said to be.
pub fn difference(program: &Program, told: &Value, event: &Event) -> Option<String> {
    unlike(told, &json::event(program, event))
}

/// The first field of `ours` that `told` has another value for.
pub fn unlike(told: &Value, ours: &Value) -> Option<String> {
    let fields = ours.as_object()?;
    let (name, value) = fields.iter().find(|(name, value)| told.get(name) != Some(value))?;
    Some(match told.get(name) {
        Some(other) => format!("its `{name}` is {value}, not {other}"),
        None => format!("its `{name}` is {value}, which is not said"),
    })
}

/// The memory model of a program's run.
pub fn model(name: &str) -> Result<Model, String> {
    match name {
        "sc" => Ok(Model::Sc),
        "tso" => Ok(Model::Tso),
        _ => Err(format!("its run is one under the model `{name}`, which is not replayed")),
    }
}

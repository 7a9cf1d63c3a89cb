//! What do scripts get? One object for each file, with the fields that the command line promises.
//!
//! Fields may be added and are never renamed. What an event does not have (an address, a value) is left out.

use crate::model::{Program, Value as Number};
use crate::verdict::{Act, Against, Answer, Event, Limit, Outcome, Source, Trap};
use serde_json::{Map, Value, json};

/// One step of a trace. Events are counted from 0, as in the trace they stand in.
pub fn event(program: &Program, event: &Event) -> Value {
    let thread = program.thread(event.thread());
    let edge = thread.edge(event.edge);
    let text = if edge.text.is_empty() { thread.show_instr(program, &edge.instr) } else { edge.text.clone() };
    let mut fields = object(json!({
        "thread": thread.name(),
        "kind": event.kind.name(),
        "line": edge.line,
        "text": text,
    }));
    let mut add = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            fields.insert(name.to_string(), value);
        }
    };
    add("address", event.address.map(|a| program.cell_name(a).into()));
    add("value", event.value.map(Number::into));
    add("written", event.written.map(Number::into));
    add("source", event.source.map(source));
    add("store", event.store.map(Value::from));
    add("trap", event.trap.map(trap));
    if let Act::Step { choice, .. } = event.action.act {
        add("choice", choice.map(Number::into));
    }
    fields.into()
}

/// `memory`, or the event of the own store that was still in the buffer.
fn source(source: Source) -> Value {
    match source {
        Source::Memory => "memory".into(),
        Source::Buffer(event) => event.into(),
    }
}

fn trap(trap: Trap) -> Value {
    match trap {
        Trap::Assertion => "assertion".into(),
        Trap::DivisionByZero => "division by zero".into(),
        Trap::OutOfRange(_) => "access outside memory".into(),
    }
}

/// Everything about one file's outcome.
pub fn outcome(
    program: &Program,
    file: &str,
    command: &str,
    outcome: &Outcome,
    peak_kb: Option<u64>,
) -> Value {
    let stats = &outcome.stats;
    let mut fields = object(json!({
        "tool": "overtake",
        "version": env!("CARGO_PKG_VERSION"),
        "file": file,
        "command": command,
        "model": outcome.model.name(),
        "verdict": outcome.verdict(),
        "engine": outcome.engine,
        "iterations": stats.iterations,
        "states": stats.states,
        "transitions": stats.transitions,
        "bytes_per_state": stats.bytes_per_state,
        "state_words": stats.words,
        "workers": stats.workers,
        "longest_buffer": stats.longest_buffer,
        "time_ms": stats.time.as_secs_f64() * 1000.0,
        "peak_kb": peak_kb,
        "reason": super::reason(outcome),
        "warnings": outcome.warnings,
    }));
    match &outcome.answer {
        Answer::Violated(trace) => {
            fields.insert("against".into(), against(program, trace.against));
            let events = trace.events.iter().map(|e| event(program, e)).collect();
            fields.insert("trace".into(), Value::Array(events));
        }
        Answer::Unknown(limit) => {
            fields.insert("limit".into(), limit_name(limit).into());
        }
        Answer::Safe(_) => {}
    }
    fields.into()
}

fn against(program: &Program, against: Against) -> Value {
    match against {
        Against::Property(index) => {
            let property = &program.properties()[index];
            json!({ "line": property.line, "text": property.show(program) })
        }
        Against::Trap(t, error) => json!({ "thread": program.thread(t).name(), "trap": trap(error) }),
    }
}

fn limit_name(limit: &Limit) -> &'static str {
    match limit {
        Limit::Time(_) => "time",
        Limit::Memory(_) => "memory",
        Limit::States(_) => "states",
        Limit::Cancelled => "cancelled",
        Limit::Buffer(_) => "buffer",
        Limit::StateSize(_) => "state size",
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => unreachable!("the callers write objects"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::text::tests::{sb, sb_trace};
    use crate::verdict::{Model, Proof, Stats};

    fn with(answer: Answer) -> Outcome {
        Outcome { answer, model: Model::Tso, engine: "lazy", stats: Stats::default(), warnings: vec![] }
    }

    #[test]
    fn a_flush_names_its_store() {
        let (program, trace) = (sb(), sb_trace());
        let store = event(&program, &trace.events[0]);
        assert_eq!(
            store,
            json!({"thread": "p0", "kind": "store", "line": 3, "text": "store [x], 1", "address": "x", "value": 1})
        );
        let flush = event(&program, &trace.events[4]);
        assert_eq!(flush["kind"], "flush");
        assert_eq!(flush["store"], 0);
    }

    #[test]
    fn a_violation_carries_its_trace_and_its_property() {
        let program = sb();
        let value = outcome(&program, "sb.tso", "check", &with(Answer::Violated(sb_trace())), Some(7));
        assert_eq!(value["verdict"], "violated");
        assert_eq!(value["peak_kb"], 7);
        assert_eq!(value["trace"].as_array().map(Vec::len), Some(6));
        assert_eq!(value["against"]["text"], "never p0.r == 0 && p1.r == 0");
        assert_eq!(value["trace"][2]["source"], "memory");
    }

    #[test]
    fn what_is_unknown_names_its_limit() {
        let value = outcome(&sb(), "sb.tso", "check", &with(Answer::Unknown(Limit::States(9))), None);
        assert_eq!(value["limit"], "states");
        assert_eq!(value["reason"], "the limit of 9 states was reached");
        let value = outcome(&sb(), "sb.tso", "check", &with(Answer::Safe(Proof::Exhausted)), None);
        assert_eq!(value["verdict"], "safe");
        assert!(value.get("trace").is_none());
    }
}

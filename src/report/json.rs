//! The document for scripts: one object, with the fields that the command line promises.
//!
//! Fields may be added and are never renamed. What an event does not have (an address, a value) is left out.
//! The fields that answers to several questions share are made here; the others where the document is.

use super::document::Document;
use crate::model::code::CodeCall;
use crate::model::{Instr, Program, Value as Number};
use crate::query::{Act, AttackCount, Event, Limit, Question, Source, Stats, Traffic, Trap, Verdict};
use serde_json::{Map, Value, json};
use std::time::Duration;

pub fn render(document: &Document<'_>) -> Value {
    (document.fields)().into()
}

/// What every answer says.
pub fn common(
    question: Question,
    verdict: Verdict,
    file: &str,
    stats: &Stats,
    peak_kb: Option<u64>,
) -> Map<String, Value> {
    headed(question.command(), question.word(verdict), file, stats, peak_kb)
}

/// The same of a command with other verdicts.
pub fn headed(
    command: &str,
    verdict: &str,
    file: &str,
    stats: &Stats,
    peak_kb: Option<u64>,
) -> Map<String, Value> {
    let mut fields = object(json!({
        "tool": "overtake",
        "version": env!("CARGO_PKG_VERSION"),
        "file": file,
        "command": command,
        "verdict": verdict,
        "states": stats.states,
        "transitions": stats.transitions,
        "bytes_per_state": stats.bytes_per_state,
        "state_words": stats.words,
        "workers": stats.workers,
        "time_ms": milliseconds(stats.time),
        "peak_kb": peak_kb,
    }));
    if let Some(Traffic { processes, messages, bytes }) = stats.traffic {
        put(&mut fields, json!({ "processes": processes, "messages": messages, "sent_bytes": bytes }));
    }
    fields
}

/// Adds fields to others, in their order.
pub fn put(fields: &mut Map<String, Value>, more: Value) {
    fields.extend(object(more));
}

pub fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// A run, event by event.
pub fn events(program: &Program, events: &[Event]) -> Value {
    events.iter().map(|e| event(program, e)).collect()
}

/// One step of a trace. Events are counted from 0, as in the trace they stand in.
pub fn event(program: &Program, event: &Event) -> Value {
    let thread = program.thread(event.thread());
    let edge = thread.edge(event.edge);
    let text = program.words(thread, edge);
    let kind = match (&edge.instr, event.kind) {
        (Instr::Assert(_), _) => "assert",
        (_, kind) => kind.name(),
    };
    let mut fields = object(json!({
        "thread": thread.name(),
        "kind": kind,
        "line": program.place(edge.line).line,
        "text": text,
        "edge": event.edge.0,
    }));
    let mut add = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            fields.insert(name.to_string(), value);
        }
    };
    let code = program.code(edge.line);
    add("file", program.place(edge.line).file.filter(|_| code.is_none_or(|c| c.line != 0)).map(Value::from));
    if let Some(code) = code {
        add("column", (code.column != 0).then(|| code.column.into()));
        add("function", Some(code.function.as_str().into()));
        add("at", Some(code.at.as_str().into()));
        add("asm", Some(code.asm.as_str().into()));
        add("calls", (!code.calls.is_empty()).then(|| code.calls.iter().map(call).collect()));
    }
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

/// A function on the way to an instruction, and where it was called.
fn call(call: &CodeCall) -> Value {
    let mut fields = object(json!({ "function": call.function, "inlined": call.inlined }));
    fields.extend(call.file.as_ref().map(|file| ("file".to_string(), file.as_str().into())));
    let places = [("line", call.line), ("column", call.column)];
    fields.extend(places.into_iter().filter(|(_, n)| *n != 0).map(|(name, n)| (name.to_string(), n.into())));
    fields.into()
}

/// `memory`, or the event of the own store that was still in the buffer.
fn source(source: Source) -> Value {
    match source {
        Source::Memory => "memory".into(),
        Source::Merged => "merged".into(),
        Source::Buffer(event) => event.into(),
    }
}

pub fn trap(trap: Trap) -> Value {
    match trap {
        Trap::Assertion => "assertion".into(),
        Trap::DivisionByZero => "division by zero".into(),
        Trap::OutOfRange(_) => "access outside memory".into(),
    }
}

pub fn attacks(count: &AttackCount) -> Value {
    json!({
        "total": count.total,
        "fenced": count.fenced,
        "private": count.private,
        "acyclic": count.acyclic,
        "searched": count.left,
    })
}

pub fn limit_name(limit: &Limit) -> &'static str {
    match limit {
        Limit::Time(_) => "time",
        Limit::Memory(_) => "memory",
        Limit::States(_) => "states",
        Limit::Cancelled => "cancelled",
        Limit::Lost(_) => "lost",
        Limit::Buffer(_) => "buffer",
        Limit::StateSize(_) => "state size",
        Limit::Iterations(_) => "iterations",
        Limit::ProgramSize(_) => "program size",
        Limit::Additive => "additive",
        Limit::Overshadowed => "overshadowed",
        Limit::FrozenBuffers => "frozen buffers",
        Limit::Membarrier(_) => "membarrier",
        Limit::MixedSizes => "mixed sizes",
        Limit::InParts(_) => "access in parts",
        Limit::Undefined(_) => "undefined",
        Limit::Inexpressible(_) => "inexpressible",
        Limit::Rounds(_) => "rounds",
        Limit::Growing => "growing registers",
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
    use crate::report::steps::tests::{sb, sb_trace};

    #[test]
    fn a_flush_names_its_store() {
        let (program, trace) = (sb(), sb_trace());
        let store = event(&program, &trace.events[0]);
        assert_eq!(
            store,
            json!({"thread": "p0", "kind": "store", "line": 3, "text": "store [x], 1", "edge": 0, "address": "x", "value": 1})
        );
        let flush = event(&program, &trace.events[4]);
        assert_eq!(flush["kind"], "flush");
        assert_eq!(flush["store"], 0);
    }
}

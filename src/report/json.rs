//! What do scripts get? One object for each file, with the fields that the command line promises.
//!
//! Fields may be added and are never renamed. What an event does not have (an address, a value) is left out.

use super::outcomes::{Row, Table, condition};
use crate::model::litmus::{Litmus, Shown};
use crate::model::{Program, Value as Number};
use crate::query::{
    Act, Against, Answer, AttackCount, Delay, Event, Limit, Model, Outcome, Outcomes, Race, RaceAnswer,
    RaceFreedom, Relation, RobustAnswer, Robustness, Round, Source, Stats, Trace, Trap, Witness,
};
use serde_json::{Map, Value, json};
use std::time::Duration;

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
pub fn outcome(program: &Program, file: &str, outcome: &Outcome, peak_kb: Option<u64>) -> Value {
    let mut fields = common(file, "check", outcome.verdict(), &outcome.stats, peak_kb);
    fields.extend(object(json!({
        "model": outcome.model.name(),
        "engine": outcome.engine,
        "iterations": outcome.stats.iterations,
        "longest_buffer": outcome.stats.longest_buffer,
        "reason": super::reason(outcome),
        "warnings": outcome.warnings,
    })));
    if !outcome.stats.rounds.is_empty() {
        let rounds = outcome.stats.rounds.iter().map(|r| round(program, r)).collect();
        fields.insert("rounds".into(), Value::Array(rounds));
    }
    match &outcome.answer {
        Answer::Violated(trace) => {
            fields.insert("against".into(), against(program, trace.against));
            fields.insert("trace_model".into(), trace.model.name().into());
            fields.insert("safe_under_sc".into(), trace.safe_under_sc.into());
            fields.insert("delays".into(), delays(trace));
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

/// What every command says of its answer.
pub fn common(
    file: &str,
    command: &str,
    verdict: &str,
    stats: &Stats,
    peak_kb: Option<u64>,
) -> Map<String, Value> {
    object(json!({
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
    }))
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// A run, event by event.
pub fn events(program: &Program, events: &[Event]) -> Value {
    events.iter().map(|e| event(program, e)).collect()
}

/// Which stores of the trace are overtaken by which loads.
fn delays(trace: &Trace) -> Value {
    trace.delays().into_iter().map(|(store, load)| json!({ "store": store, "load": load })).collect()
}

/// One round of the lazy engine.
fn round(program: &Program, round: &Round) -> Value {
    let delay = |d: &Delay| {
        let thread = program.thread(d.thread);
        json!({
            "thread": thread.name(),
            "store_line": thread.edge(d.store).line,
            "load_line": thread.edge(d.load).line,
            "length": d.length,
        })
    };
    json!({
        "locations": round.locations,
        "edges": round.edges,
        "states": round.states,
        "time_ms": milliseconds(round.time),
        "attacks": attacks(&round.attacks),
        "oracle_states": round.oracle_states,
        "oracle_time_ms": milliseconds(round.oracle_time),
        "delays": round.delays.iter().map(delay).collect::<Vec<_>>(),
    })
}

fn attacks(count: &AttackCount) -> Value {
    json!({
        "total": count.total,
        "fenced": count.fenced,
        "private": count.private,
        "acyclic": count.acyclic,
        "searched": count.left,
    })
}

/// Everything about one file's robustness.
pub fn robustness(program: &Program, file: &str, robustness: &Robustness, peak_kb: Option<u64>) -> Value {
    let mut fields = common(file, "robust", robustness.verdict(), &robustness.stats, peak_kb);
    fields.insert("model".into(), Model::Tso.name().into());
    fields.insert("reason".into(), super::robust::reason(robustness).into());
    fields.insert("attacks".into(), attacks(&robustness.attacks));
    match &robustness.answer {
        RobustAnswer::NotRobust(found) => {
            fields.insert("witness".into(), witness(program, found));
        }
        RobustAnswer::Unknown(limit) => {
            fields.insert("limit".into(), limit_name(limit).into());
        }
        RobustAnswer::Robust => {}
    }
    fields.into()
}

/// Everything about the triangular races of one file.
pub fn races(program: &Program, file: &str, races: &RaceFreedom, peak_kb: Option<u64>) -> Value {
    let mut fields = common(file, "robust", races.verdict(), &races.stats, peak_kb);
    fields.insert("triangular".into(), true.into());
    fields.insert("model".into(), Model::Tso.name().into());
    fields.insert("reason".into(), super::triangular::reason(races).into());
    fields.insert("attackers".into(), races.attackers.into());
    match &races.answer {
        RaceAnswer::Racy(found) => {
            fields.insert("race".into(), race(program, found));
        }
        RaceAnswer::Unknown(limit) => {
            fields.insert("limit".into(), limit_name(limit).into());
        }
        RaceAnswer::RaceFree => {}
    }
    fields.into()
}

/// The final states of one file, and what its condition says of them.
pub fn outcomes(
    program: &Program,
    litmus: &Litmus,
    file: &str,
    outcomes: &Outcomes,
    peak_kb: Option<u64>,
) -> Value {
    let table = Table::new(program, litmus, outcomes);
    let verdict = table.as_ref().map_or("unknown", Table::verdict);
    let mut fields = common(file, "outcomes", verdict, &outcomes.stats, peak_kb);
    let explored = fields.remove("states");
    fields.insert("explored".into(), explored.unwrap_or_default());
    fields.insert("model".into(), outcomes.model.name().into());
    fields.insert("test".into(), litmus.name.clone().into());
    fields.insert("condition".into(), condition(litmus).into());
    fields.insert("goes_wrong".into(), outcomes.goes_wrong.into());
    match table {
        Ok(table) => {
            let state = |row: &Row| final_state(litmus, &row.values);
            fields.insert("states".into(), table.rows.iter().map(state).collect());
            let frozen: Vec<Value> = table.rows.iter().filter(|row| row.frozen).map(state).collect();
            if !frozen.is_empty() {
                fields.insert("frozen".into(), frozen.into());
            }
            fields.insert("observation".into(), table.observation().into());
            let (positive, negative) = table.witnesses();
            fields.insert("positive".into(), positive.into());
            fields.insert("negative".into(), negative.into());
        }
        Err(limit) => {
            fields.insert("limit".into(), limit_name(&limit).into());
            fields.insert("reason".into(), super::limit_reached(&limit).into());
        }
    }
    fields.into()
}

fn final_state(litmus: &Litmus, row: &[Shown]) -> Value {
    let value = |shown: &Shown| match shown {
        Shown::Number(number) => i64::try_from(*number).map_or_else(|_| (*number as u64).into(), Value::from),
        Shown::Address(name) => name.clone().into(),
    };
    litmus.observed.iter().zip(row).map(|(column, shown)| (column.name.clone(), value(shown))).collect()
}

/// Store, path and load as events; the trace, and the cycle by the events' places in it.
fn witness(program: &Program, witness: &Witness) -> Value {
    let of = |k: usize| event(program, &witness.events[k]);
    let cycle = |(k, relation): &(usize, Relation)| json!({ "event": k, "relation": relation.name() });
    json!({
        "thread": program.thread(witness.thread()).name(),
        "store": of(witness.store),
        "path": witness.path().into_iter().map(of).collect::<Vec<_>>(),
        "load": of(witness.load),
        "trace": witness.events.iter().map(|e| event(program, e)).collect::<Vec<_>>(),
        "cycle": witness.cycle.iter().map(cycle).collect::<Vec<_>>(),
    })
}

/// Store, path, load and write as events, and the trace that ends with the write.
fn race(program: &Program, race: &Race) -> Value {
    let of = |k: usize| event(program, &race.events[k]);
    json!({
        "thread": program.thread(race.thread()).name(),
        "store": of(race.store),
        "path": race.path().into_iter().map(of).collect::<Vec<_>>(),
        "load": of(race.load),
        "write": of(race.write),
        "trace": race.events.iter().map(|e| event(program, e)).collect::<Vec<_>>(),
    })
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

pub fn limit_name(limit: &Limit) -> &'static str {
    match limit {
        Limit::Time(_) => "time",
        Limit::Memory(_) => "memory",
        Limit::States(_) => "states",
        Limit::Cancelled => "cancelled",
        Limit::Buffer(_) => "buffer",
        Limit::StateSize(_) => "state size",
        Limit::Iterations(_) => "iterations",
        Limit::ProgramSize(_) => "program size",
        Limit::Additive => "additive",
        Limit::FrozenBuffers => "frozen buffers",
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
    use crate::query::Proof;
    use crate::report::text::tests::{sb, sb_trace};

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
        let value = outcome(&program, "sb.tso", &with(Answer::Violated(sb_trace())), Some(7));
        assert_eq!(value["verdict"], "violated");
        assert_eq!(value["peak_kb"], 7);
        assert_eq!(value["trace"].as_array().map(Vec::len), Some(6));
        assert_eq!(value["against"]["text"], "never p0.r == 0 && p1.r == 0");
        assert_eq!(value["trace"][2]["source"], "memory");
    }

    #[test]
    fn what_is_unknown_names_its_limit() {
        let value = outcome(&sb(), "sb.tso", &with(Answer::Unknown(Limit::States(9))), None);
        assert_eq!(value["limit"], "states");
        assert_eq!(value["reason"], "the limit of 9 states was reached");
        let value = outcome(&sb(), "sb.tso", &with(Answer::Safe(Proof::Exhausted)), None);
        assert_eq!(value["verdict"], "safe");
        assert!(value.get("trace").is_none());
    }
}

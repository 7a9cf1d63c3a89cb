//! Which writes of a DVE model have to be atomic, or transitions barriers? Or the run that nothing prevents.

use super::document::{Block, Document, Fact, Paragraph};
use super::table::Tone;
use super::{capitalised, count_of, dve, json, limit_reached, peak_memory};
use crate::dve::System;
use crate::query::{Answer, Question};
use crate::temporal::hazards::Fix;
use crate::temporal::synthesis::{Beyond, SufficientSets, Synthesis};
use serde_json::{Map, Value, json};

/// The model that was to be repaired, and the formulas that were to hold.
pub struct Repaired<'a> {
    pub system: &'a System,
    pub file: &'a str,
    pub formulas: &'a [&'a str],
}

pub fn document<'a>(model: &'a Repaired<'_>, found: &'a Synthesis, peak_kb: Option<u64>) -> Document<'a> {
    Document {
        question: Question::Fence,
        verdict: found.answer.verdict(),
        file: model.file.to_string(),
        explanation: Box::new(|| explanation(model, found)),
        costs: Box::new(move || vec![costs(found, peak_kb)]),
        warnings: vec![],
        fields: Box::new(move || fields(model, found, peak_kb)),
    }
}

fn reason(model: &Repaired, found: &Synthesis) -> String {
    match &found.answer {
        Answer::Unknown(limit) => limit_reached(limit),
        Answer::Fails(Beyond { formula, under_sc: true, .. }) => {
            format!("{} fails under SC already", model.formulas[*formula])
        }
        Answer::Fails(Beyond { formula, .. }) => {
            format!("no change of the allowed kinds makes {} hold", model.formulas[*formula])
        }
        Answer::Holds(enough) => {
            let proof = match enough.optimal {
                true => "and no cheaper set does",
                false => "and none of them can be taken back; cheaper sets were not ruled out",
            };
            let changes = enough.sets.first().map_or(0, Vec::len) as u64;
            let holds = if changes == 1 { "makes" } else { "make" };
            let all = model.formulas.join(" and ");
            format!("{} {holds} {all} hold with slots, {proof}", count_of(changes, "change"))
        }
    }
}

fn explanation(model: &Repaired, found: &Synthesis) -> Vec<Block> {
    let reason = format!("{}.", capitalised(&reason(model, found)));
    match &found.answer {
        Answer::Unknown(_) => vec![Block::line(reason)],
        Answer::Holds(SufficientSets { sets, more, .. }) => {
            let mut blocks = vec![Block::line(reason)];
            for (i, set) in sets.iter().enumerate() {
                let head = if sets.len() > 1 { vec![format!("Set {}:", i + 1)] } else { vec![] };
                let items = set.iter().map(|fix| shown(model.system, fix)).collect();
                blocks.push(Block::list(head, items));
            }
            blocks.extend(more.then(|| Block::line("There are more sets of this cost.")));
            blocks
        }
        Answer::Fails(Beyond { run, .. }) => {
            let ending = Paragraph { lines: vec![reason], items: vec![], tone: Tone::Bad };
            let [head, table] = dve::run_blocks(model.system, run);
            vec![head, table, Block::Paragraph(ending)]
        }
    }
}

fn shown(system: &System, fix: &Fix) -> String {
    let (process, transition, what) = match fix {
        Fix::Atomic(site) => {
            let variable = &system.variables[site.variable].name;
            (site.process, site.transition, format!("write to {variable} atomic"))
        }
        Fix::Barrier(p, t) => (*p, *t, "barrier".to_string()),
    };
    let t = system.transition(process, transition);
    let (name, text) = (&system.processes[process].name, system.show_transition(process, t));
    format!("{name}:{transition} (line {}): {text}: {what}", t.line)
}

fn costs(found: &Synthesis, peak_kb: Option<u64>) -> Block {
    let mut facts = vec![
        Fact::new("candidates", found.candidates),
        Fact::new("cores", found.cores),
        Fact::new("checks", found.checks),
        Fact::new("states", found.stats.states),
        Fact::new("time", format!("{:.3} s", found.stats.time.as_secs_f64())),
    ];
    facts.extend(peak_memory(peak_kb));
    Block::Facts(facts)
}

fn fields(model: &Repaired, found: &Synthesis, peak_kb: Option<u64>) -> Map<String, Value> {
    let verdict = found.answer.verdict();
    let mut fields = json::common(Question::Fence, verdict, model.file, &found.stats, peak_kb);
    let mut put = |more: Value| json::put(&mut fields, more);
    put(json!({
        "model": "slots",
        "for": "ltl",
        "asked": model.formulas,
        "reason": reason(model, found),
        "candidates": found.candidates,
        "cores": found.cores,
        "checks": found.checks,
    }));
    match &found.answer {
        Answer::Holds(SufficientSets { sets, cost, optimal, more }) => {
            let set = |set: &Vec<Fix>| set.iter().map(|fix| change(model.system, fix)).collect::<Value>();
            let sets: Value = sets.iter().map(set).collect();
            put(json!({ "sets": sets, "cost": cost, "optimal": optimal, "more": more }));
        }
        Answer::Fails(beyond) => put(json!({
            "sets": [], "optimal": true, "changed": true, "under_sc": beyond.under_sc,
            "trace": dve::events(model.system, &beyond.run), "cycle_from": beyond.run.cycle_from,
        })),
        Answer::Unknown(limit) => put(json!({ "limit": json::limit_name(limit) })),
    }
    fields
}

fn change(system: &System, fix: &Fix) -> Value {
    let name = |p: usize| &system.processes[p].name;
    match *fix {
        Fix::Atomic(site) => json!({
            "kind": "atomic", "process": name(site.process), "transition": site.transition,
            "variable": system.variables[site.variable].name,
            "line": system.transition(site.process, site.transition).line,
        }),
        Fix::Barrier(p, t) => json!({
            "kind": "barrier", "process": name(p), "transition": t, "line": system.transition(p, t).line,
        }),
    }
}

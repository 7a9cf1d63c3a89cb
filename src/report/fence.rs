//! Which cheapest changes repair the program? Each with the user's text around it, or the run that nothing
//! repairs.

use super::document::{Block, ChangedLines, Document, Fact, Fold, SourceLine};
use super::site::{self, Side, Site, around, around_spot, by_line, place};
use super::{axioms, capitalised, count_of, json, limit_reached, peak_memory, robust, steps, triangular};
use crate::certify::{Counterexample, Remaining, Repair};
use crate::model::source_map::Spot;
use crate::model::{FenceKinds, Program, SourceMap};
use crate::query::repair::{Aim, Change, Cheapest, Enough, Remedy};
use crate::query::{Answer, Axioms, Question};
use serde_json::{Map, Value, json};

/// The program that was to be repaired, as the user knows it.
#[derive(Clone, Copy, Debug)]
pub struct Patient<'a> {
    pub program: &'a Program,
    pub file: &'a str,
    /// The text that lines are numbers of; empty if there is none.
    pub source: &'a str,
    /// How the program's format writes a fence.
    pub fence: &'static str,
    /// The program's own fences, if the question was which of them can go.
    pub own: Option<&'a [Remedy]>,
    /// What is one change in the text.
    pub text: &'a SourceMap,
    pub per: Per,
    /// The model that fences of the four kinds were looked for under; otherwise it is TSO, and full ones.
    pub model: Option<Axioms>,
    /// For the first set of changes, each with a run of the program that has all the others, if one was looked for.
    pub prevented: &'a [Prevented],
}

/// What a change is needed for.
#[derive(Clone, Debug)]
pub struct Prevented {
    /// Its place in the set.
    pub change: usize,
    /// The program with all changes but this one, and a run that it has.
    pub program: Program,
    pub run: Counterexample,
}

/// What a place is one of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Per {
    /// The text: with all threads and rounds that it unfolds to.
    Source,
    /// One thread.
    Thread,
}

impl Per {
    /// As scripts get it.
    fn name(self) -> &'static str {
        match self {
            Per::Source => "source",
            Per::Thread => "thread",
        }
    }
}

pub fn document<'a>(patient: &'a Patient<'_>, repair: &'a Repair, peak_kb: Option<u64>) -> Document<'a> {
    Document {
        question: Question::Fence,
        verdict: repair.answer.verdict(),
        file: patient.file.to_string(),
        explanation: Box::new(|| match patient.own {
            Some(own) => vec![superfluous(patient, repair, own)],
            None => explanation(patient, repair),
        }),
        costs: Box::new(move || vec![Block::Facts(costs(repair, peak_kb))]),
        warnings: vec![],
        fields: Box::new(move || fields(patient, repair, peak_kb)),
    }
}

/// What was found, in one sentence.
fn reason(patient: &Patient<'_>, repair: &Repair) -> String {
    match &repair.answer {
        Answer::Holds(enough) => {
            let words = enough_words(patient.per, repair.aim, enough);
            patient
                .model
                .map_or(words.clone(), |model| format!("{words} (engine sat, model {})", model.name()))
        }
        Answer::Fails(Remaining::UnderSc(_)) if repair.aim == Aim::NoHang => {
            "the program hangs under SC already, where there are no buffers: no fence helps".to_string()
        }
        Answer::Fails(Remaining::UnderSc(_)) => {
            "the property fails under SC already, where there are no buffers: no fence helps".to_string()
        }
        Answer::Fails(Remaining::Whatever { .. } | Remaining::ByAxioms { .. }) => {
            "a run remains that none of the allowed changes prevents".to_string()
        }
        Answer::Unknown(limit) => limit_reached(limit),
    }
}

fn enough_words(per: Per, aim: Aim, enough: &Enough) -> String {
    let set = &enough.sets[0];
    if set.is_empty() {
        return format!(
            "{} as it is: nothing has to change",
            achieved(aim, "the program is", "the property holds")
        );
    }
    let what = match per {
        Per::Source => format!("{} in the source", in_words(set)),
        Per::Thread => format!("{}, counted in each thread,", in_words(set)),
    };
    let make = match (aim, set.len()) {
        (Aim::Robustness, 1) => "makes the program robust",
        (Aim::Robustness, _) => "make the program robust",
        (Aim::Property, 1) => "makes the property hold",
        (Aim::Property, _) => "make the property hold",
        (Aim::NoHang, 1) => "keeps the program from hanging",
        (Aim::NoHang, _) => "keep the program from hanging",
        (Aim::Triangular, 1) => "leaves no triangular race",
        (Aim::Triangular, _) => "leave no triangular race",
    };
    let least = match &enough.cheapest {
        Cheapest::Proved => "nothing cheaper does".to_string(),
        Cheapest::Open { undecided, limit } => format!(
            "whether something cheaper does is not known: {} could not be decided, since {}",
            count_of(*undecided as u64, "cheaper choice"),
            limit_reached(limit)
        ),
    };
    format!("{what} {make}, and {least}")
}

fn achieved(aim: Aim, program_is: &str, holds: &str) -> String {
    match aim {
        Aim::Robustness => format!("{program_is} robust"),
        Aim::Property => holds.to_string(),
        Aim::NoHang => format!("{program_is} without hangs"),
        Aim::Triangular => format!("{program_is} free of triangular races"),
    }
}

/// `2 fences and 1 locked store`.
fn in_words(set: &[Remedy]) -> String {
    let locked = set.iter().filter(|r| matches!(r.changes[0], Change::Atomic { .. })).count();
    let count = |n: usize, noun| (n > 0).then(|| count_of(n as u64, noun));
    let kinds = [count(set.len() - locked, "fence"), count(locked, "locked store")];
    kinds.into_iter().flatten().collect::<Vec<_>>().join(" and ")
}

/// The answer with the text around each change, or the run that remains.
fn explanation(patient: &Patient<'_>, repair: &Repair) -> Vec<Block> {
    let reason = format!("{}.", capitalised(&reason(patient, repair)));
    let rest = match &repair.answer {
        Answer::Holds(enough) => changes(patient, enough),
        Answer::Fails(Remaining::UnderSc(trace)) => steps::trace(patient.program, trace).into(),
        Answer::Fails(Remaining::Whatever { run, changed }) => remaining(changed, run),
        Answer::Fails(Remaining::ByAxioms { run, changed }) => vec![axioms::accesses(changed, run)],
        Answer::Unknown(_) => {
            let (found, least) = (runs_were(repair.cores), repair.lower_bound);
            let so_far = format!("So far {found} found; any repair costs at least {least}.");
            return vec![Block::lines(vec![reason, so_far])];
        }
    };
    let advice = code_advice(patient, repair).map(Block::line);
    [Block::line(reason)].into_iter().chain(rest).chain(advice).collect()
}

/// How to write a fence that object code needs.
fn code_advice(patient: &Patient<'_>, repair: &Repair) -> Option<&'static str> {
    let Answer::Holds(Enough { sets, .. }) = &repair.answer else { return None };
    let is_fence = |c: &Change| matches!(c, Change::Fence { .. } | Change::FenceBehind { .. });
    let full = sets.iter().flatten().filter(|remedy| remedy.kind.is_none());
    let any = full.flat_map(|remedy| &remedy.changes).any(is_fence);
    (any && !patient.program.code_lines().is_empty()).then_some(
        "A fence is an `mfence`, or `atomic_thread_fence(memory_order_seq_cst)` in the source; a barrier for the compiler \
         alone is not enough.",
    )
}

fn changes(patient: &Patient<'_>, enough: &Enough) -> Vec<Block> {
    let mut blocks = Vec::new();
    for (i, set) in enough.sets.iter().enumerate() {
        if enough.sets.len() > 1 {
            blocks.push(Block::line(format!("Set {} of {}:", i + 1, enough.sets.len())));
        }
        blocks.extend(by_line(patient.program, set).iter().map(|remedies| shown(patient, remedies)));
    }
    for Prevented { change, program, run } in patient.prevented {
        let title = format!("Without it: {}", told(patient, &enough.sets[0][*change]));
        blocks.push(Block::Fold(Fold { title, blocks: remaining(program, run) }));
    }
    if enough.more {
        blocks.push(Block::line("There are more sets of the same cost than these."));
    }
    blocks
}

fn runs_were(count: usize) -> String {
    format!("{} {}", count_of(count as u64, "run"), if count == 1 { "was" } else { "were" })
}

fn remaining(program: &Program, run: &Counterexample) -> Vec<Block> {
    match run {
        Counterexample::Witness(witness) => robust::story(program, witness),
        Counterexample::Trace(trace) => steps::trace(program, trace).into(),
        Counterexample::Race(race) => triangular::story(program, race),
    }
}

/// Remedies of the same lines: whose they are, and then, once, the text around with the new line marked.
fn shown(patient: &Patient<'_>, remedies: &[&Remedy]) -> Block {
    let places = remedies.iter().map(|remedy| told(patient, remedy)).collect();
    let is_fence = |c: &Change| matches!(c, Change::Fence { .. } | Change::FenceBehind { .. });
    let any = remedies.iter().any(|r| is_fence(&r.changes[0]));
    let fence =
        any.then(|| kinds(remedies).map_or(patient.fence.to_string(), |k| format!("fence {}", k.words())));
    // Several threads may have a line in common, and not what is put there.
    let differ = remedies
        .iter()
        .any(|r| r.kind != remedies[0].kind && r.changes[0].thread() != remedies[0].changes[0].thread());
    let excerpt = match (fence.as_deref(), remedies.first()) {
        (_, None) => vec![],
        _ if differ => vec![],
        (Some(fence), Some(Remedy { offset: Some(at), .. })) => {
            Spot::at(patient.source, *at).map_or(vec![], |spot| around_spot(patient.source, &spot, fence))
        }
        (_, Some(remedy)) => {
            let site = Site::of(patient.program, remedy.changes[0]);
            let around = || around(patient.source, site.line, fence.as_deref().zip(Some(site.side)));
            if site.is_one_line() { around() } else { vec![] }
        }
    };
    let numbered = excerpt.into_iter().map(|line| match line {
        SourceLine::Old(n, text) => SourceLine::Old(patient.program.place(n).line, text),
        SourceLine::Marked(n, text) => SourceLine::Marked(patient.program.place(n).line, text),
        SourceLine::New(text) => SourceLine::New(text),
    });
    Block::Change(ChangedLines { places, excerpt: numbered.collect() })
}

/// What these fences order together, if kinds are told apart.
fn kinds(remedies: &[&Remedy]) -> Option<FenceKinds> {
    let each = remedies.iter().filter_map(|r| r.kind).map(FenceKinds::one);
    each.reduce(FenceKinds::and)
}

/// ``thread p, in 2 copies: a fence before line 3: `load r, [x]` ``.
fn told(patient: &Patient<'_>, remedy: &Remedy) -> String {
    let mut owners: Vec<&str> = Vec::new();
    for change in &remedy.changes {
        let owner = patient.text.owners[change.thread().index()].as_str();
        if !owners.contains(&owner) {
            owners.push(owner);
        }
    }
    let threads = if owners.len() == 1 { "thread" } else { "threads" };
    let whose = match (owners.join(", "), remedy.copies) {
        (names, 1) => format!("{threads} {names}"),
        (names, copies) => format!("{threads} {names}, in {copies} copies"),
    };
    let is_fence = matches!(remedy.changes[0], Change::Fence { .. } | Change::FenceBehind { .. });
    match remedy.offset.filter(|_| is_fence).and_then(|at| Spot::at(patient.source, at)) {
        Some(spot) => format!("{whose}: a {} {}", named(remedy), site::told(patient.program, &spot)),
        None => place(patient.program, &whose, remedy.changes[0], named(remedy)),
    }
}

/// What is put there, if it is a fence.
fn named(remedy: &Remedy) -> &'static str {
    const NAMES: [&str; 4] = ["load-load fence", "load-store fence", "store-load fence", "store-store fence"];
    remedy.kind.map_or("fence", |kind| NAMES[kind])
}

/// The thread, or the template that the threads were made from.
fn owner<'a>(patient: &Patient<'a>, remedy: &Remedy) -> &'a str {
    &patient.text.owners[remedy.changes[0].thread().index()]
}

/// The program's own fences that can go.
fn superfluous(patient: &Patient<'_>, repair: &Repair, own: &[Remedy]) -> Block {
    let enough = match &repair.answer {
        Answer::Holds(enough) => enough,
        Answer::Unknown(_) | Answer::Fails(Remaining::UnderSc(_)) => {
            return Block::line(format!("{}.", capitalised(&reason(patient, repair))));
        }
        Answer::Fails(Remaining::Whatever { .. } | Remaining::ByAxioms { .. }) => {
            return Block::line(
                "Even with all its fences the program is not what was asked for, so none of them is superfluous. \
                 `overtake fence` without --prune says what is missing.",
            );
        }
    };
    let goes: Vec<&Remedy> = own.iter().filter(|f| !enough.sets[0].contains(f)).collect();
    let what = achieved(repair.aim, "the program stays", "the property still holds");
    let told = match (own.len(), goes.len()) {
        (0, _) => "The program has no fences.".to_string(),
        (all, 0) => format!("None of the {} can go.", count_of(all as u64, "fence")),
        (all, n) => format!("{n} of {} can go together, and {what}:", count_of(all as u64, "fence")),
    };
    let item = |fence: &Remedy| {
        let site = Site::of(patient.program, fence.changes[0]);
        format!("thread {}: the fence in line {}", owner(patient, fence), patient.program.place(site.line))
    };
    Block::list(vec![told], goes.into_iter().map(item).collect())
}

fn costs(repair: &Repair, peak_kb: Option<u64>) -> Vec<Fact> {
    let facts = [
        Fact::new("allowed", format!("{} changes", repair.allowed)),
        Fact::new("cores", repair.cores),
        Fact::new("checks", format!("{} programs", repair.checks)),
        Fact::new("at least", format!("{} in cost", repair.lower_bound)),
        Fact::new("states", repair.stats.states),
        Fact::new("time", format!("{:.3} s", repair.stats.time.as_secs_f64())),
    ];
    facts.into_iter().chain(peak_memory(peak_kb)).collect()
}

fn fields(patient: &Patient<'_>, repair: &Repair, peak_kb: Option<u64>) -> Map<String, Value> {
    let verdict = repair.answer.verdict();
    let mut fields = json::common(Question::Fence, verdict, patient.file, &repair.stats, peak_kb);
    let mut put = |more: Value| json::put(&mut fields, more);
    put(json!({
        "for": aim_name(repair.aim),
        "reason": reason(patient, repair),
        "per": patient.per.name(),
        "allowed": repair.allowed,
        "cores": repair.cores,
        "checks": repair.checks,
        "lower_bound": repair.lower_bound,
    }));
    if let Some(model) = patient.model {
        put(json!({ "model": model.name(), "engine": "sat" }));
    }
    match &repair.answer {
        Answer::Holds(enough) => put(enough_fields(patient, enough)),
        Answer::Fails(Remaining::UnderSc(trace)) => put(json!({
            "trace": json::events(patient.program, &trace.events),
            "trace_model": trace.model.name(),
        })),
        Answer::Fails(Remaining::Whatever { run, changed }) => {
            put(json!({ "trace": json::events(changed, run.events()), "changed": true }))
        }
        Answer::Fails(Remaining::ByAxioms { run, changed }) => {
            put(json!({ "trace": axioms::trace(changed, run), "changed": true }))
        }
        Answer::Unknown(limit) => put(json!({ "limit": json::limit_name(limit) })),
    }
    fields
}

fn enough_fields(patient: &Patient<'_>, enough: &Enough) -> Value {
    let one = |remedy: &Remedy| remedy_fields(patient, remedy);
    let set = |set: &Vec<Remedy>| set.iter().map(one).collect::<Value>();
    let (cost, optimal) = (enough.cost, enough.cheapest == Cheapest::Proved);
    match patient.own {
        Some(own) => json!({
            "cost": cost,
            "optimal": optimal,
            "kept": set(&enough.sets[0]),
            "superfluous": own.iter().filter(|f| !enough.sets[0].contains(f)).map(one).collect::<Value>(),
        }),
        None => json!({
            "cost": cost,
            "optimal": optimal,
            "fences": set(&enough.sets[0]),
            "sets": enough.sets.iter().map(set).collect::<Value>(),
            "more_sets": enough.more,
        }),
    }
}

fn remedy_fields(patient: &Patient<'_>, remedy: &Remedy) -> Value {
    let change = remedy.changes[0];
    let site = Site::of(patient.program, change);
    let spot = remedy.offset.and_then(|at| Spot::at(patient.source, at));
    let at = patient.program.place(spot.as_ref().map_or(site.line, |spot| spot.line));
    let (kind, place) = match change {
        Change::Fence { .. } if site.side == Side::Behind && remedy.offset.is_some() => ("fence", "before"),
        Change::Fence { .. } | Change::Keep { .. } => ("fence", site.side.name()),
        Change::FenceBehind { .. } => ("fence", "edge"),
        Change::Atomic { .. } => ("atomic", site.side.name()),
    };
    let mut object = json!({
        "thread": owner(patient, remedy),
        "after_line": patient.program.place(site.after).line,
        "line": at.line,
        "place": place,
        "label": spot.and_then(|spot| spot.label()).or(site.label),
        "kind": remedy.kind.map_or(kind, |kind| FenceKinds::WORDS[kind]),
        "copies": remedy.copies,
        "per": patient.per.name(),
    });
    if site.side == Side::Behind {
        object["after_lines"] = site.ends.iter().map(|&line| patient.program.place(line).line).collect();
    }
    let code = patient.program.code(site.line);
    if let Some(file) = at.file.filter(|_| code.is_none_or(|c| c.line != 0)) {
        object["file"] = file.into();
    }
    if let Some(code) = code {
        object["function"] = code.function.as_str().into();
        object["at"] = code.at.as_str().into();
        object["asm"] = code.asm.as_str().into();
    }
    object
}

fn aim_name(aim: Aim) -> &'static str {
    match aim {
        Aim::Robustness => "robustness",
        Aim::Property => "property",
        Aim::NoHang => "no-hang",
        Aim::Triangular => "triangular",
    }
}

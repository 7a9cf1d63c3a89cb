//! Which cheapest changes repair the program? Each with the user's text around it, or the run that nothing
//! repairs.

use super::document::{Block, ChangedLines, Document, Fact};
use super::site::{Side, Site, around, by_line, place};
use super::{capitalised, count_of, json, limit_reached, peak_memory, robust, steps, triangular};
use crate::certify::{Counterexample, Remaining, Repair};
use crate::model::Program;
use crate::query::repair::{Aim, Change, Cheapest, Enough};
use crate::query::{Answer, Question};
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
    pub own: Option<&'a [Change]>,
}

pub fn document(patient: &Patient<'_>, repair: &Repair, peak_kb: Option<u64>) -> Document {
    Document {
        question: Question::Fence,
        verdict: repair.answer.verdict(),
        file: patient.file.to_string(),
        explanation: match patient.own {
            Some(own) => vec![superfluous(patient.program, repair, own)],
            None => explanation(patient, repair),
        },
        costs: vec![Block::Facts(costs(repair, peak_kb))],
        warnings: vec![],
        fields: fields(patient, repair, peak_kb),
    }
}

/// What was found, in one sentence.
fn reason(repair: &Repair) -> String {
    match &repair.answer {
        Answer::Holds(enough) => enough_words(repair.aim, enough),
        Answer::Fails(Remaining::UnderSc(_)) => {
            "the property fails under SC already, where there are no buffers: no fence helps".to_string()
        }
        Answer::Fails(Remaining::Whatever { .. }) => {
            "a run remains that none of the allowed changes prevents".to_string()
        }
        Answer::Unknown(limit) => limit_reached(limit),
    }
}

fn enough_words(aim: Aim, enough: &Enough) -> String {
    let set = &enough.sets[0];
    if set.is_empty() {
        return format!(
            "{} as it is: nothing has to change",
            achieved(aim, "the program is", "the property holds")
        );
    }
    let what = in_words(set);
    let make = match (aim, set.len()) {
        (Aim::Robustness, 1) => "makes the program robust",
        (Aim::Robustness, _) => "make the program robust",
        (Aim::Property, 1) => "makes the property hold",
        (Aim::Property, _) => "make the property hold",
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
        Aim::Triangular => format!("{program_is} free of triangular races"),
    }
}

/// `2 fences and 1 locked store`.
fn in_words(set: &[Change]) -> String {
    let count = |wanted: fn(&Change) -> bool, noun| match set.iter().filter(|c| wanted(c)).count() as u64 {
        0 => None,
        n => Some(count_of(n, noun)),
    };
    let kinds = [
        count(|c| matches!(c, Change::Fence { .. }), "fence"),
        count(|c| matches!(c, Change::Atomic { .. }), "locked store"),
        count(|c| matches!(c, Change::Keep { .. }), "fence"),
    ];
    kinds.into_iter().flatten().collect::<Vec<_>>().join(" and ")
}

/// The answer with the text around each change, or the run that remains.
fn explanation(patient: &Patient<'_>, repair: &Repair) -> Vec<Block> {
    let reason = format!("{}.", capitalised(&reason(repair)));
    let rest = match &repair.answer {
        Answer::Holds(enough) => changes(patient, enough),
        Answer::Fails(Remaining::UnderSc(trace)) => steps::trace(patient.program, trace).into(),
        Answer::Fails(Remaining::Whatever { run, changed }) => remaining(changed, run),
        Answer::Unknown(_) => {
            let (found, least) = (runs_were(repair.cores), repair.lower_bound);
            let so_far = format!("So far {found} found; any repair costs at least {least}.");
            return vec![Block::lines(vec![reason, so_far])];
        }
    };
    [Block::line(reason)].into_iter().chain(rest).collect()
}

fn changes(patient: &Patient<'_>, enough: &Enough) -> Vec<Block> {
    let mut blocks = Vec::new();
    for (i, set) in enough.sets.iter().enumerate() {
        if enough.sets.len() > 1 {
            blocks.push(Block::line(format!("Set {} of {}:", i + 1, enough.sets.len())));
        }
        blocks.extend(by_line(patient.program, set).iter().map(|changes| shown(patient, changes)));
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

/// Changes of the same lines: whose they are, and then, once, the text around with the new line marked.
fn shown(patient: &Patient<'_>, changes: &[Change]) -> Block {
    let places = changes.iter().map(|&change| place(patient.program, change)).collect();
    let fence = changes.iter().any(|c| matches!(c, Change::Fence { .. })).then_some(patient.fence);
    let site = changes.first().map(|&c| Site::of(patient.program, c)).filter(Site::is_one_line);
    let excerpt = |site: Site<'_>| around(patient.source, site.line, fence.zip(Some(site.side)));
    Block::Change(ChangedLines { places, excerpt: site.map_or(vec![], excerpt) })
}

/// The program's own fences that can go.
fn superfluous(program: &Program, repair: &Repair, own: &[Change]) -> Block {
    let enough = match &repair.answer {
        Answer::Holds(enough) => enough,
        Answer::Unknown(_) | Answer::Fails(Remaining::UnderSc(_)) => {
            return Block::line(format!("{}.", capitalised(&reason(repair))));
        }
        Answer::Fails(Remaining::Whatever { .. }) => {
            return Block::line(
                "Even with all its fences the program is not what was asked for, so none of them is superfluous. \
                 `overtake fence` without --prune says what is missing.",
            );
        }
    };
    let goes: Vec<Change> = own.iter().copied().filter(|f| !enough.sets[0].contains(f)).collect();
    let what = achieved(repair.aim, "the program stays", "the property still holds");
    let told = match (own.len(), goes.len()) {
        (0, _) => "The program has no fences.".to_string(),
        (all, 0) => format!("None of the {} can go.", count_of(all as u64, "fence")),
        (all, n) => format!("{n} of {} can go together, and {what}:", count_of(all as u64, "fence")),
    };
    let item = |fence: Change| {
        let site = Site::of(program, fence);
        format!("thread {}: the fence in line {}", site.thread, site.line)
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
        "reason": reason(repair),
        "allowed": repair.allowed,
        "cores": repair.cores,
        "checks": repair.checks,
        "lower_bound": repair.lower_bound,
    }));
    match &repair.answer {
        Answer::Holds(enough) => put(enough_fields(patient, enough)),
        Answer::Fails(Remaining::UnderSc(trace)) => {
            put(json!({ "trace": json::events(patient.program, &trace.events) }))
        }
        Answer::Fails(Remaining::Whatever { run, changed }) => {
            put(json!({ "trace": json::events(changed, run.events()) }))
        }
        Answer::Unknown(limit) => put(json!({ "limit": json::limit_name(limit) })),
    }
    fields
}

fn enough_fields(patient: &Patient<'_>, enough: &Enough) -> Value {
    let one = |change: &Change| change_fields(patient.program, *change);
    let set = |set: &Vec<Change>| set.iter().map(one).collect::<Value>();
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

fn change_fields(program: &Program, change: Change) -> Value {
    let site = Site::of(program, change);
    let kind = match change {
        Change::Fence { .. } | Change::Keep { .. } => "fence",
        Change::Atomic { .. } => "atomic",
    };
    let mut object = json!({
        "thread": site.thread,
        "after_line": site.after,
        "line": site.line,
        "place": site.side.name(),
        "label": site.label,
        "kind": kind,
    });
    if site.side == Side::Behind {
        object["after_lines"] = site.ends.iter().copied().collect();
    }
    object
}

fn aim_name(aim: Aim) -> &'static str {
    match aim {
        Aim::Robustness => "robustness",
        Aim::Property => "property",
        Aim::Triangular => "triangular",
    }
}

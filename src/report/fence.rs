//! What has to change? Repairs for people and for scripts: each change with its thread, its line, and the user's text
//! around it.

use super::table::{Color, Tone, paint};
use super::{capitalised, count_of, first_line, json, limit_reached, robust, text, triangular};
use crate::model::{Edge, Loc, Program};
use crate::query::repair::{Aim, Change, Cheapest, Counterexample, Enough, Repair, RepairAnswer};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write;

/// How the program's format writes what is inserted.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    pub fence: &'static str,
}

/// Where the user can find a change.
pub struct Site<'a> {
    pub thread: &'a str,
    pub place: Place,
    /// The line of the instruction that the change is made at, before or behind, 0 if unknown.
    pub line: u32,
    /// The last line before it that leads here.
    pub after: u32,
    /// Where the change is at the thread's end: all lines that lead there.
    pub ends: BTreeSet<u32>,
    pub label: Option<&'a str>,
    /// The instruction, as the user wrote it.
    pub instruction: String,
}

/// Where a change is, as seen from an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Before,
    At,
    /// Behind the last instruction of its thread.
    Behind,
}

impl<'a> Site<'a> {
    pub fn of(program: &'a Program, change: Change) -> Site<'a> {
        let thread = program.thread(change.thread());
        let reachable = thread.reachable();
        let leads = |e: &Edge, at: Loc| e.to == at && reachable.contains(&e.from);
        let leads_to = |at: Loc| thread.edges().map(|(_, e)| e).filter(move |e| leads(e, at));
        let (at, place, edge) = match change {
            Change::Fence { at, .. } if at == thread.end() => {
                (at, Place::Behind, leads_to(at).max_by_key(|e| e.line))
            }
            Change::Fence { at, .. } => (at, Place::Before, thread.edges_from(at).first().map(|(_, e)| *e)),
            Change::Atomic { store: id, .. } | Change::Keep { fence: id, .. } => {
                (thread.edge(id).from, Place::At, Some(thread.edge(id)))
            }
        };
        let line = edge.map_or(0, |e| e.line);
        let before = match place {
            Place::Behind => Some(line),
            Place::Before | Place::At => leads_to(at).filter(|e| e.line < line).map(|e| e.line).max(),
        };
        let ends = match place {
            Place::Behind => leads_to(at).map(|e| e.line).collect(),
            Place::Before | Place::At => BTreeSet::new(),
        };
        let instruction = edge.map_or(String::new(), |e| match e.text.is_empty() {
            true => thread.show_instr(program, &e.instr),
            false => e.text.clone(),
        });
        Site {
            thread: thread.name(),
            place,
            line,
            after: before.unwrap_or(line.saturating_sub(1)),
            ends,
            label: thread.location(at).labels.first().map(String::as_str),
            instruction,
        }
    }

    /// Is one new line of text beside the instruction all that there is to it? Not at a thread's end to which several lines
    /// lead, or a label: what jumps there would pass such a line by.
    fn is_one_line(&self) -> bool {
        self.place != Place::Behind || self.ends.len() == 1 && self.label.is_none()
    }
}

pub fn verdict(repair: &Repair, file: Option<&str>, color: bool) -> String {
    let tone = match repair.answer {
        RepairAnswer::Enough(_) => Tone::Good,
        RepairAnswer::FailsUnderSc(_) | RepairAnswer::Remains { .. } => Tone::Bad,
        RepairAnswer::Unknown(_) => Tone::Doubtful,
    };
    first_line(repair.verdict(), tone, file, color)
}

/// What was found, in one sentence.
pub fn reason(repair: &Repair) -> String {
    match &repair.answer {
        RepairAnswer::Enough(enough) => enough_words(repair.aim, enough),
        RepairAnswer::FailsUnderSc(_) => {
            "the property fails under SC already, where there are no buffers: no fence helps".to_string()
        }
        RepairAnswer::Remains { .. } => "a run remains that none of the allowed changes prevents".to_string(),
        RepairAnswer::Unknown(limit) => limit_reached(limit),
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
pub fn explanation(
    program: &Program,
    source: &str,
    repair: &Repair,
    words: Words,
    style: text::Style,
) -> String {
    let mut told = format!("{}.\n", capitalised(&reason(repair)));
    match &repair.answer {
        RepairAnswer::Enough(enough) => {
            let several = enough.sets.len() > 1;
            for (i, set) in enough.sets.iter().enumerate() {
                if several {
                    let _ = write!(told, "\nSet {} of {}:\n", i + 1, enough.sets.len());
                }
                for changes in by_line(program, set) {
                    told += &shown(program, source, &changes, words, style);
                }
            }
            if enough.more {
                told += "\nThere are more sets of the same cost than these.\n";
            }
        }
        RepairAnswer::FailsUnderSc(trace) => {
            let _ = write!(told, "\n{}", text::trace(program, trace, style));
        }
        RepairAnswer::Remains { run, changed } => {
            let _ = write!(told, "\n{}", remaining(changed, run, style));
        }
        RepairAnswer::Unknown(_) => {
            let _ = writeln!(
                told,
                "So far {} found; any repair costs at least {}.",
                runs_were(repair.cores),
                repair.lower_bound
            );
        }
    }
    told
}

fn runs_were(count: usize) -> String {
    format!("{} {}", count_of(count as u64, "run"), if count == 1 { "was" } else { "were" })
}

fn remaining(program: &Program, run: &Counterexample, style: text::Style) -> String {
    match run {
        Counterexample::Witness(witness) => robust::story(program, witness, style),
        Counterexample::Trace(trace) => text::trace(program, trace, style),
        Counterexample::Race(race) => triangular::story(program, race, style),
    }
}

/// Lines of the user's text before and behind a change.
const CONTEXT: u32 = 2;

/// Changes of the same lines: whose they are, and then, once, the text around with the new line marked.
fn shown(program: &Program, source: &str, changes: &[Change], words: Words, style: text::Style) -> String {
    let mut told = "\n".to_string();
    for &change in changes {
        let _ = writeln!(told, "  {}", place(program, change));
    }
    let fence = changes.iter().any(|c| matches!(c, Change::Fence { .. })).then_some(words.fence);
    let site = changes.first().map(|&c| Site::of(program, c));
    let site = site.filter(Site::is_one_line);
    told + &site.map_or(String::new(), |site| around(source, site.line, fence.zip(Some(site.place)), style))
}

/// `thread p: a fence before line 3, at `wait`: `load r, [x]``.
fn place(program: &Program, change: Change) -> String {
    let site = Site::of(program, change);
    let what = match (change, site.place) {
        (Change::Fence { .. }, Place::Behind) => "a fence at its end, behind",
        (Change::Fence { .. }, _) => "a fence before",
        (Change::Atomic { .. }, _) => "a locked store in",
        (Change::Keep { .. }, _) => "the fence in",
    };
    let label = site.label.map_or(String::new(), |l| format!(", at `{l}`"));
    if !site.is_one_line() {
        let lines: Vec<String> = site.ends.iter().map(u32::to_string).collect();
        let s = if lines.len() == 1 { "" } else { "s" };
        return format!("thread {}: {what} line{s} {}{label}", site.thread, listed(&lines));
    }
    let line = if site.line == 0 { String::new() } else { format!(" line {}{label}:", site.line) };
    format!("thread {}: {what}{line} `{}`", site.thread, site.instruction)
}

/// `3`, `3 and 5`, `3, 5 and 7`.
fn listed(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// The lines around one, which is marked, or has the new one beside it.
fn around(source: &str, at: u32, inserted: Option<(&str, Place)>, style: text::Style) -> String {
    let color = if style.color { Color::On } else { Color::Off };
    let lines: Vec<&str> = source.lines().collect();
    let line = |n: u32| lines.get((n as usize).wrapping_sub(1)).copied();
    let Some(own) = line(at) else { return String::new() };
    let mut told = String::new();
    let behind = matches!(inserted, Some((_, Place::Behind))) as u32;
    for n in (at + behind).saturating_sub(CONTEXT).max(1)..at + behind + CONTEXT {
        let Some(text) = line(n) else { continue };
        let row = format!("{n:>6} | {text}");
        let _ = match inserted {
            Some((word, place)) if n == at => {
                let indent = &own[..own.len() - own.trim_start().len()];
                let new = paint(&format!("  +      | {indent}{word}"), Tone::Good, color);
                match place {
                    Place::Behind => writeln!(told, "    {row}\n  {new}"),
                    Place::Before | Place::At => writeln!(told, "  {new}\n    {row}"),
                }
            }
            None if n == at => writeln!(told, "  {}", paint(&format!("* {row}"), Tone::Good, color)),
            _ => writeln!(told, "    {row}"),
        };
    }
    told
}

/// Changes in the order of the text, those of one line together.
fn by_line(program: &Program, set: &[Change]) -> Vec<Vec<Change>> {
    let mut groups: Vec<((Place, u32), Vec<Change>)> = Vec::new();
    for &change in set {
        let Site { place, line, .. } = Site::of(program, change);
        let key = (place, line);
        match groups.iter_mut().find(|(k, _)| *k == key && line != 0) {
            Some((_, group)) => group.push(change),
            None => groups.push((key, vec![change])),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// The program's own fences that can go.
pub fn superfluous(program: &Program, repair: &Repair, own: &[Change]) -> String {
    let RepairAnswer::Enough(enough) = &repair.answer else {
        return match &repair.answer {
            RepairAnswer::Unknown(limit) => format!("{}.\n", capitalised(&limit_reached(limit))),
            RepairAnswer::FailsUnderSc(_) => format!("{}.\n", capitalised(&reason(repair))),
            _ => "Even with all its fences the program is not what was asked for, so none of them is superfluous. \
                  `overtake fence` without --prune says what is missing.\n"
                .to_string(),
        };
    };
    let kept = &enough.sets[0];
    let goes: Vec<Change> = own.iter().copied().filter(|f| !kept.contains(f)).collect();
    let what = achieved(repair.aim, "the program stays", "the property still holds");
    let mut told = match (own.len(), goes.len()) {
        (0, _) => return "The program has no fences.\n".to_string(),
        (all, 0) => return format!("None of the {} can go.\n", count_of(all as u64, "fence")),
        (all, n) => format!("{n} of {} can go together, and {what}:\n", count_of(all as u64, "fence")),
    };
    for fence in goes {
        let site = Site::of(program, fence);
        let _ = writeln!(told, "  thread {}: the fence in line {}", site.thread, site.line);
    }
    told
}

pub fn costs(repair: &Repair, peak_kb: Option<u64>) -> String {
    let mut text = format!(
        "\nallowed       {} changes\ncores         {}\nchecks        {} programs\nat least      {} in cost\n\
         states        {}\ntime          {:.3} s\n",
        repair.allowed,
        repair.cores,
        repair.checks,
        repair.lower_bound,
        repair.stats.states,
        repair.stats.time.as_secs_f64(),
    );
    if let Some(kb) = peak_kb {
        let _ = writeln!(text, "peak memory   {:.1} MiB", kb as f64 / 1024.0);
    }
    text
}

/// Everything about one file's repair. `own` are the program's fences, if the question was which of them can go.
pub fn object(
    program: &Program,
    file: &str,
    repair: &Repair,
    own: Option<&[Change]>,
    peak_kb: Option<u64>,
) -> Value {
    let mut fields = json::common(file, "fence", repair.verdict(), &repair.stats, peak_kb);
    let mut put = |key: &str, value: Value| {
        fields.insert(key.into(), value);
    };
    put("for", aim_name(repair.aim).into());
    put("reason", reason(repair).into());
    put("allowed", repair.allowed.into());
    put("cores", repair.cores.into());
    put("checks", repair.checks.into());
    put("lower_bound", repair.lower_bound.into());
    match &repair.answer {
        RepairAnswer::Enough(enough) => {
            put("cost", enough.cost.into());
            put("optimal", (enough.cheapest == Cheapest::Proved).into());
            let set = |set: &Vec<Change>| set.iter().map(|&c| change(program, c)).collect::<Value>();
            match own {
                Some(own) => {
                    let goes = own.iter().filter(|f| !enough.sets[0].contains(f));
                    put("kept", set(&enough.sets[0]));
                    put("superfluous", goes.map(|&c| change(program, c)).collect());
                }
                None => {
                    put("fences", set(&enough.sets[0]));
                    put("sets", enough.sets.iter().map(set).collect());
                    put("more_sets", enough.more.into());
                }
            }
        }
        RepairAnswer::FailsUnderSc(trace) => put("trace", json::events(program, &trace.events)),
        RepairAnswer::Remains { run, changed } => put("trace", json::events(changed, run.events())),
        RepairAnswer::Unknown(limit) => put("limit", json::limit_name(limit).into()),
    }
    fields.into()
}

fn change(program: &Program, change: Change) -> Value {
    let site = Site::of(program, change);
    let kind = match change {
        Change::Fence { .. } | Change::Keep { .. } => "fence",
        Change::Atomic { .. } => "atomic",
    };
    let place = match site.place {
        Place::Before => "before",
        Place::At => "at",
        Place::Behind => "after",
    };
    let mut object = json!({
        "thread": site.thread,
        "after_line": site.after,
        "line": site.line,
        "place": place,
        "label": site.label,
        "kind": kind,
    });
    if site.place == Place::Behind {
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

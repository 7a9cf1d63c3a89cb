//! Where can the user find a change? Its thread, its line, and the user's text around it.

use super::document::SourceLine;
use crate::model::source_map::Spot;
use crate::model::{Edge, Loc, Program};
use crate::query::repair::{Change, Remedy};
use std::collections::BTreeSet;

/// Where the user can find a change.
pub struct Site<'a> {
    pub thread: &'a str,
    pub side: Side,
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
pub enum Side {
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
        let (at, side, edge) = match change {
            Change::Fence { at, .. } if at == thread.end() => {
                (at, Side::Behind, leads_to(at).max_by_key(|e| e.line))
            }
            Change::Fence { at, .. } => (at, Side::Before, thread.edges_from(at).first().map(|(_, e)| *e)),
            Change::FenceBehind { edge, .. } => {
                let at = thread.edge(edge).to;
                let next = thread.edges_from(at).first().map(|(_, e)| *e);
                (at, Side::Before, next.or(Some(thread.edge(edge))))
            }
            Change::Atomic { store: id, .. } | Change::Keep { fence: id, .. } => {
                (thread.edge(id).from, Side::At, Some(thread.edge(id)))
            }
        };
        let line = edge.map_or(0, |e| e.line);
        let before = match side {
            Side::Behind => Some(line),
            Side::Before | Side::At => leads_to(at).filter(|e| e.line < line).map(|e| e.line).max(),
        };
        let ends = match side {
            Side::Behind => leads_to(at).map(|e| e.line).collect(),
            Side::Before | Side::At => BTreeSet::new(),
        };
        let instruction = edge.map_or(String::new(), |e| program.words(thread, e));
        Site {
            thread: thread.name(),
            side,
            line,
            after: before.unwrap_or(line.saturating_sub(1)),
            ends,
            label: thread.location(at).labels.first().map(String::as_str),
            instruction,
        }
    }

    /// Is one new line of text beside the instruction all that there is to it? Not at a thread's end to which
    /// several lines lead, or a label: what jumps there would pass such a line by.
    pub fn is_one_line(&self) -> bool {
        self.side != Side::Behind || self.ends.len() == 1 && self.label.is_none()
    }
}

impl Side {
    /// As scripts get it.
    pub fn name(self) -> &'static str {
        match self {
            Side::Before => "before",
            Side::At => "at",
            Side::Behind => "after",
        }
    }
}

/// ``thread p: a fence before line 3, at `wait`: `load r, [x]` ``, where `fence` is what such a fence is called.
pub fn place(program: &Program, whose: &str, change: Change, fence: &str) -> String {
    let site = Site::of(program, change);
    let what = match (change, site.side) {
        (Change::Fence { .. } | Change::FenceBehind { .. }, Side::Behind) => {
            format!("a {fence} at its end, behind")
        }
        (Change::Fence { .. } | Change::FenceBehind { .. }, _) => format!("a {fence} before"),
        (Change::Atomic { .. }, _) => "a locked store in".to_string(),
        (Change::Keep { .. }, _) => "the fence in".to_string(),
    };
    let label = site.label.map_or(String::new(), |l| format!(", at `{l}`"));
    if !site.is_one_line() {
        let lines: Vec<String> = site.ends.iter().map(|&line| program.place(line).to_string()).collect();
        let s = if lines.len() == 1 { "" } else { "s" };
        return format!("{whose}: {what} line{s} {}{label}", listed(&lines));
    }
    let line = match (site.line, program.code(site.line)) {
        (0, _) => String::new(),
        (_, Some(code)) if code.line == 0 => format!(" {}:", code.at),
        (_, Some(code)) => format!(" line {}, at {}:", code.place(), code.at),
        (line, None) => format!(" line {}{label}:", program.place(line)),
    };
    format!("{whose}: {what}{line} `{}`", site.instruction)
}

/// The lines around a place of the text, with a new one at the very place.
pub fn around_spot(source: &str, spot: &Spot<'_>, inserted: &str) -> Vec<SourceLine> {
    let lines: Vec<&str> = source.lines().collect();
    let old = |n: u32| Some(SourceLine::Old(n, lines.get(n.checked_sub(1)? as usize)?.to_string()));
    let [head, new, tail] = spot.rows(source, inserted);
    let before = (spot.line.saturating_sub(CONTEXT)..spot.line).filter_map(old);
    let head = head.map(|head| SourceLine::Old(spot.line, head));
    let here = [new.map(SourceLine::New), tail.map(|tail| SourceLine::Old(spot.line, tail))];
    let behind = (spot.line + 1..spot.line + CONTEXT).filter_map(old);
    before.chain(head).chain(here.into_iter().flatten()).chain(behind).collect()
}

/// ``before line 3, before the label `wait` ``, or ``before line 3: `load r, [x]` ``.
pub fn told(program: &Program, spot: &Spot<'_>) -> String {
    let line = program.place(spot.line);
    match spot.label() {
        Some(label) => format!("before line {line}, before the label `{label}`"),
        None => format!("before line {line}: `{}`", spot.words()),
    }
}

/// `3`, `3 and 5`, `3, 5 and 7`.
fn listed(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// Remedies in the order of the text, those of one line together.
pub fn by_line<'r>(program: &Program, set: &'r [Remedy]) -> Vec<Vec<&'r Remedy>> {
    let key = |remedy: &Remedy| {
        let Site { side, line, .. } = Site::of(program, remedy.changes[0]);
        (line != 0).then_some((side, line, remedy.offset))
    };
    let mut groups: Vec<Vec<&Remedy>> = Vec::new();
    for remedy in set {
        let own = key(remedy);
        match groups.iter_mut().find(|group| own.is_some() && key(group[0]) == own) {
            Some(group) => group.push(remedy),
            None => groups.push(vec![remedy]),
        }
    }
    groups
}

/// Lines of the user's text before and behind a change.
const CONTEXT: u32 = 2;

/// The lines around one, which is marked, or has the new one beside it.
pub fn around(source: &str, at: u32, inserted: Option<(&str, Side)>) -> Vec<SourceLine> {
    let lines: Vec<&str> = source.lines().collect();
    let line = |n: u32| lines.get((n as usize).wrapping_sub(1)).copied();
    let Some(own) = line(at) else { return vec![] };
    let indent = &own[..own.len() - own.trim_start().len()];
    let behind = matches!(inserted, Some((_, Side::Behind))) as u32;
    let numbers = (at + behind).saturating_sub(CONTEXT).max(1)..at + behind + CONTEXT;
    let shown = |n: u32| {
        let text = || line(n).unwrap_or_default().to_string();
        match inserted {
            Some((word, side)) if n == at => {
                let (old, new) = (SourceLine::Old(n, text()), SourceLine::New(format!("{indent}{word}")));
                if side == Side::Behind { vec![old, new] } else { vec![new, old] }
            }
            None if n == at => vec![SourceLine::Marked(n, text())],
            _ => vec![SourceLine::Old(n, text())],
        }
    };
    numbers.filter(|&n| line(n).is_some()).flat_map(shown).collect()
}

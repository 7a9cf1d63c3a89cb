//! Which graph does a list of instructions draw? One location per place where something happens.
//!
//! A `goto` is no step: its place is another name for the place it leads to, so both have the same location.
//! Only a cycle of gotos, which leads nowhere, needs a step of its own to go round on. Marks are no steps
//! either: `passages` tells which edges lead past each of them.
//! Invariant: locations and edges are numbered in the order of the text, and `end` is the last location.

use super::const_fold;
use super::diagnostics::{INSTRUCTION, Problems, Reported};
use crate::model::{Edge, EdgeId, Instr, Loc, Location, RegExpr, UnOp};
use std::collections::BTreeMap;

/// A label, by its place in the list of all labels of the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LabelId(pub usize);

/// A label with the name it has in the model, if it has one, and the step it stands before.
#[derive(Clone, Debug)]
pub(crate) struct Label {
    pub name: Option<String>,
    pub step: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct CfgStep {
    pub action: Action,
    pub line: u32,
    pub text: String,
    /// Goes on with the instruction that the step before it began.
    pub continues: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Action {
    Do(Instr),
    If(RegExpr, LabelId),
    /// Jumps unless the condition holds.
    Unless(RegExpr, LabelId),
    Choose(Vec<LabelId>),
    Goto(LabelId),
    Halt,
    /// No step either: the byte of the text that comes here, for [`passages`].
    Mark(usize),
}

pub(crate) struct Graph {
    pub locations: Vec<Location>,
    pub edges: Vec<Edge>,
    pub initial: Loc,
    pub end: Loc,
    /// Where each label stands.
    pub labels: Vec<Loc>,
}

pub(crate) fn graph(
    steps: Vec<CfgStep>,
    labels: Vec<Label>,
    problems: &mut Problems,
) -> Result<Graph, Reported> {
    problems.spend(steps.len())?;
    let places = Places::new(&steps, &labels);
    let at = |label: &LabelId| places.locs[labels[label.0].step];
    let mut locations = vec![Location::default(); places.count];
    let mut edges = Vec::with_capacity(steps.len());
    for (i, step) in steps.into_iter().enumerate() {
        problems.spend(INSTRUCTION)?;
        if places.home[i] != i {
            continue;
        }
        let (from, next) = (places.locs[i], places.locs[i + 1]);
        locations[from.index()].within = step.continues;
        let mut edge = |instr, to, text: &str| {
            edges.push(Edge { from, to, instr, line: step.line, text: text.to_string(), origin: None });
        };
        match step.action {
            Action::Do(instr) => edge(instr, next, &step.text),
            Action::If(e, label) => {
                edge(Instr::Assume(e.clone()), at(&label), &step.text);
                edge(Instr::Assume(const_fold::unary(UnOp::Not, e)), next, &step.text);
            }
            Action::Unless(e, label) => {
                edge(Instr::Assume(e.clone()), next, &step.text);
                edge(Instr::Assume(const_fold::unary(UnOp::Not, e)), at(&label), &step.text);
            }
            Action::Choose(targets) => {
                problems.spend(INSTRUCTION * targets.len())?;
                targets.iter().for_each(|label| edge(Instr::Nop, at(label), &step.text));
            }
            Action::Goto(_) | Action::Halt | Action::Mark(_) => edge(Instr::Nop, from, &step.text),
        }
    }
    let label_locs: Vec<Loc> = labels.iter().map(|label| places.locs[label.step]).collect();
    for (label, loc) in labels.into_iter().zip(&label_locs) {
        locations[loc.index()].labels.extend(label.name);
    }
    let (initial, end) = (places.locs[0], Loc(places.count as u32 - 1));
    Ok(Graph { locations, edges, initial, end, labels: label_locs })
}

/// The location of every step, and of the place behind the last one.
struct Places {
    /// The step at which something happens when control arrives at this one.
    home: Vec<usize>,
    locs: Vec<Loc>,
    count: usize,
}

impl Places {
    fn new(steps: &[CfgStep], labels: &[Label]) -> Places {
        let home = homes(steps, labels);
        let mut locs = vec![Loc(0); home.len()];
        let mut count = 0;
        for i in 0..home.len() {
            if home[i] == i {
                locs[i] = Loc(count as u32);
                count += 1;
            }
        }
        for i in 0..home.len() {
            locs[i] = locs[home[i]];
        }
        Places { home, locs, count }
    }
}

/// Follows gotos to where they lead. The first step of a cycle of gotos is the home of all of it.
fn homes(steps: &[CfgStep], labels: &[Label]) -> Vec<usize> {
    const UNKNOWN: usize = usize::MAX;
    let end = steps.len();
    let leads_to = |i: usize| match steps.get(i).map(|step| &step.action) {
        Some(Action::Goto(label)) => labels[label.0].step,
        Some(Action::Halt) => end,
        Some(Action::Mark(_)) => i + 1,
        _ => i,
    };
    let mut home = vec![UNKNOWN; end + 1];
    let mut on_path = vec![false; end + 1];
    for start in 0..=end {
        let (mut path, mut at) = (Vec::new(), start);
        while home[at] == UNKNOWN && !on_path[at] && leads_to(at) != at {
            on_path[at] = true;
            path.push(at);
            at = leads_to(at);
        }
        if on_path[at] {
            let cycle = path.iter().position(|&p| p == at).map_or(&path[..], |begin| &path[begin..]);
            at = cycle.iter().copied().min().unwrap_or(at);
            home[at] = at;
        }
        let found = if home[at] == UNKNOWN { at } else { home[at] };
        home[at] = found;
        for step in path {
            home[step] = found;
            on_path[step] = false;
        }
    }
    home
}

/// The first edge of each step that has any. Edges are numbered as [`graph`] numbers them.
pub(crate) fn first_edges(steps: &[CfgStep], labels: &[Label]) -> Vec<Option<EdgeId>> {
    let places = Places::new(steps, labels);
    let mut next = 0;
    let first = |(i, step): (usize, &CfgStep)| {
        let edge = EdgeId(next);
        let count = if places.home[i] == i { ways(i, &step.action, labels).len() as u32 } else { 0 };
        next += count;
        (count > 0).then_some(edge)
    };
    steps.iter().enumerate().map(first).collect()
}

/// What leads past one mark.
pub(crate) struct MarkPassage {
    /// What the mark says.
    pub mark: usize,
    pub edges: Vec<EdgeId>,
    /// The location that all of them lead to, if nothing else leads there.
    pub all: Option<Loc>,
}

/// The marks that control can come past, each with the edges that lead past it; and for each edge the mark
/// that its step stands behind. Edges are numbered as [`graph`] numbers them. Nothing is told of marks behind
/// which control goes round in a cycle of gotos.
pub(crate) fn passages(
    steps: &[CfgStep],
    labels: &[Label],
    problems: &mut Problems,
) -> Result<(Vec<MarkPassage>, Vec<Option<usize>>), Reported> {
    let places = Places::new(steps, labels);
    let mut walk = MarkWalk { steps, labels, home: &places.home, problems };
    let mut past: BTreeMap<usize, Vec<EdgeId>> = BTreeMap::new();
    let mut arriving = vec![0; places.count];
    let (mut marks, mut mark) = (Vec::new(), None);
    for (i, step) in steps.iter().enumerate() {
        if let Action::Mark(byte) = step.action {
            mark = Some(byte);
        }
        if places.home[i] != i {
            continue;
        }
        for start in ways(i, &step.action, labels) {
            let edge = EdgeId(marks.len() as u32);
            marks.push(mark);
            arriving[places.locs[start].index()] += 1;
            walk.marks_from(start, |mark| past.entry(mark).or_default().push(edge))?;
        }
    }
    let mut first = Vec::new();
    walk.marks_from(0, |mark| first.push(mark))?;
    let passage = |(at, edges): (usize, Vec<EdgeId>)| {
        let Action::Mark(mark) = steps[at].action else { unreachable!("only marks are gathered") };
        let loc = places.locs[at];
        let all = edges.len() == arriving[loc.index()] && (loc != places.locs[0] || first.contains(&at));
        MarkPassage { mark, edges, all: all.then_some(loc) }
    };
    Ok((past.into_iter().map(passage).collect(), marks))
}

/// Where each of the edges of a step leads, as a place in the list of steps.
fn ways(i: usize, action: &Action, labels: &[Label]) -> Vec<usize> {
    let at = |label: &LabelId| labels[label.0].step;
    match action {
        Action::Do(_) => vec![i + 1],
        Action::If(_, label) => vec![at(label), i + 1],
        Action::Unless(_, label) => vec![i + 1, at(label)],
        Action::Choose(targets) => targets.iter().map(at).collect(),
        Action::Goto(_) | Action::Halt | Action::Mark(_) => vec![i],
    }
}

/// Follows what is no step.
struct MarkWalk<'a, 'p, 's> {
    steps: &'a [CfgStep],
    labels: &'a [Label],
    home: &'a [usize],
    problems: &'p mut Problems<'s>,
}

impl MarkWalk<'_, '_, '_> {
    fn marks_from(&mut self, start: usize, mut visit: impl FnMut(usize)) -> Result<(), Reported> {
        let happens = |step: Option<&CfgStep>| {
            !step.is_some_and(|s| matches!(s.action, Action::Goto(_) | Action::Halt | Action::Mark(_)))
        };
        if !happens(self.steps.get(self.home[start])) {
            return Ok(());
        }
        let mut at = start;
        loop {
            self.problems.spend(1)?;
            match self.steps.get(at).map(|step| &step.action) {
                Some(Action::Mark(_)) => {
                    visit(at);
                    at += 1;
                }
                Some(Action::Goto(label)) => at = self.labels[label.0].step,
                _ => return Ok(()),
            }
        }
    }
}

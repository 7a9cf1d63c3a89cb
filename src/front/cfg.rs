//! Which graph does a list of instructions draw? One location per place where something happens.
//!
//! A `goto` is no step: its place is another name for the place it leads to, so both have the same location.
//! Only a circle of gotos, which leads nowhere, needs a step of its own to go round on.
//! Invariant: locations and edges are numbered in the order of the text, and `end` is the last location.

use super::const_fold;
use super::diagnostics::{INSTRUCTION, Problems, Reported};
use crate::model::{Edge, Instr, Loc, Location, RegExpr, UnOp};

/// A label, by its place in the list of all labels of the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LabelId(pub usize);

/// A label with the name it has in the model, and the step it stands before.
#[derive(Clone, Debug)]
pub struct Label {
    pub name: String,
    pub step: usize,
}

#[derive(Clone, Debug)]
pub struct CfgStep {
    pub action: Action,
    pub line: u32,
    pub text: String,
    /// Goes on with the instruction that the step before it began.
    pub continues: bool,
}

#[derive(Clone, Debug)]
pub enum Action {
    Do(Instr),
    If(RegExpr, LabelId),
    Choose(Vec<LabelId>),
    Goto(LabelId),
    Halt,
}

pub struct Graph {
    pub locations: Vec<Location>,
    pub edges: Vec<Edge>,
    pub initial: Loc,
    pub end: Loc,
    /// Where each label stands.
    pub labels: Vec<Loc>,
}

pub fn graph(steps: Vec<CfgStep>, labels: Vec<Label>, problems: &mut Problems) -> Result<Graph, Reported> {
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
            Action::Choose(targets) => {
                problems.spend(INSTRUCTION * targets.len())?;
                targets.iter().for_each(|label| edge(Instr::Nop, at(label), &step.text));
            }
            Action::Goto(_) | Action::Halt => edge(Instr::Nop, from, &step.text),
        }
    }
    let label_locs: Vec<Loc> = labels.iter().map(|label| places.locs[label.step]).collect();
    for (label, loc) in labels.into_iter().zip(&label_locs) {
        locations[loc.index()].labels.push(label.name);
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

/// Follows gotos to where they lead. The first step of a circle of gotos is the home of all of it.
fn homes(steps: &[CfgStep], labels: &[Label]) -> Vec<usize> {
    const UNKNOWN: usize = usize::MAX;
    let end = steps.len();
    let leads_to = |i: usize| match steps.get(i).map(|step| &step.action) {
        Some(Action::Goto(label)) => labels[label.0].step,
        Some(Action::Halt) => end,
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
            let circle = path.iter().position(|&p| p == at).map_or(&path[..], |begin| &path[begin..]);
            at = circle.iter().copied().min().unwrap_or(at);
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

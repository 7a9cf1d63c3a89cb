//! Which states are forbidden? Each goal is a property: processes at labels, at the same time.

use super::ast::{File, Goal, Name};
use super::flow::Process;
use super::names::RmmNames;
use crate::front::const_fold;
use crate::front::diagnostics::{Problem, Problems, Reported};
use crate::model::{Atom, BinOp, Expr, Pred, Property, PropertyKind, ThreadId};

pub(crate) fn properties<'s>(
    file: &File<'s>,
    names: &RmmNames<'s, '_>,
    processes: &[Process<'s>],
    problems: &mut Problems,
) -> Vec<Property> {
    let mut properties = Vec::new();
    for goal in &file.goals {
        if goal.entries.len() != processes.len() {
            // What could not be read may have been a process.
            if !problems.has_errors() {
                let (entries, count) = (goal.entries.len(), processes.len());
                let problem =
                    Problem::error(format!("a goal for {entries} processes, and there are {count}"));
                let help = "a goal has one label, or `*`, for each process; `;` stands between goals";
                problems.report(problem.at(goal.span).help(help));
            }
            continue;
        }
        if let Ok(pred) = predicate(goal, names, processes, problems) {
            let line = problems.line(goal.span);
            properties.push(Property::new(PropertyKind::Forbid, pred, line));
        }
    }
    properties
}

fn predicate<'s>(
    goal: &Goal<'s>,
    names: &RmmNames<'s, '_>,
    processes: &[Process<'s>],
    problems: &mut Problems,
) -> Result<Pred, Reported> {
    let mut places = Vec::new();
    let mut wrong = false;
    for (i, (entry, process)) in goal.entries.iter().zip(processes).enumerate() {
        let Some(label) = entry else { continue };
        match process.labels.get(label.text) {
            Some(loc) => places.push(Expr::Atom(Atom::At(ThreadId(i as u16), vec![*loc]))),
            None => {
                wrong = true;
                unknown(label, i, names, process, problems);
            }
        }
    }
    if wrong {
        return Err(Reported);
    }
    Ok(const_fold::join(places, &mut |a, b| Expr::binary(BinOp::And, a, b)).unwrap_or(Expr::Const(1)))
}

fn unknown<'s>(
    label: &Name<'s>,
    number: usize,
    names: &RmmNames<'s, '_>,
    process: &Process<'s>,
    problems: &mut Problems,
) {
    if names.is_doubtful(label.text) {
        return;
    }
    let meant = problems.nearest(label.text, process.labels.keys().copied());
    let problem = Problem::error(format!("process {number} has no label `{}`", label.text)).at(label.span);
    problems.report(problem.suggest(meant));
}

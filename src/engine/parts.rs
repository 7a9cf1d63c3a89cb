//! Is a run one of a processor, too, if it accesses memory across borders of eight bytes? The program does that in two
//! parts, which is more than processors do that do it at once. A run that needs this is none to show as a violation.
//!
//! A run needs nothing of the kind if nobody else comes between the parts of any access: moved together, they are one
//! access at once.

use crate::certify::Outcome;
use crate::model::{Addr, Program};
use crate::query::{Against, Answer, Event, EventKind, Limit, Model, Source, Trace};
use std::collections::BTreeSet;

/// The outcome, unless its run may be none of a processor.
pub(super) fn doubted(program: &Program, outcome: Outcome) -> Outcome {
    let Answer::Fails(trace) = &outcome.answer else { return outcome };
    let Some(line) = needed(program, trace) else { return outcome };
    let approximate = Some(trace.clone());
    Outcome { answer: Answer::Unknown(Limit::InParts(program.parted_words(line))), approximate, ..outcome }
}

/// Why the question is not asked: some access is in parts.
pub(super) fn any(program: &Program) -> Option<Limit> {
    program.parted().map(Limit::InParts)
}

/// What one instruction loads or stores in a run.
struct PartedAccess {
    /// Events of one thread, all loads or all stores.
    parts: Vec<usize>,
    /// Has the run all of them?
    complete: bool,
}

/// The line of an access whose parts others come between.
fn needed(program: &Program, trace: &Trace) -> Option<u32> {
    program.parted()?;
    let events = &trace.events;
    let edge = |k: usize| program.thread(events[k].thread()).edge(events[k].edge);
    for thread in 0..program.threads().len() {
        let is_own = |k: &usize| events[*k].thread().index() == thread && events[*k].kind != EventKind::Flush;
        let own: Vec<usize> = (0..events.len()).filter(is_own).collect();
        for steps in own.chunk_by(|a, b| edge(*a).line == edge(*b).line) {
            let (line, last) = (edge(steps[0]).line, steps[steps.len() - 1]);
            if !program.is_parted(line) {
                continue;
            }
            let after = program.thread(events[last].thread()).location(edge(last).to);
            let complete = !after.within || own.last() != Some(&last);
            for kind in [EventKind::Load, EventKind::Store] {
                let parts = steps.iter().copied().filter(|k| events[*k].kind == kind).collect();
                if !is_at_once(trace, &PartedAccess { parts, complete }) {
                    return Some(line);
                }
            }
        }
    }
    None
}

/// Does nobody else touch these cells from when the first part takes effect until the last one has?
fn is_at_once(trace: &Trace, access: &PartedAccess) -> bool {
    let events = &trace.events;
    let PartedAccess { parts, complete } = access;
    let Some(one) = parts.first().map(|first| &events[*first]) else { return true };
    let is_load = one.kind == EventKind::Load;
    if parts.len() == 1 && *complete || is_load && !complete {
        return true;
    }
    if is_load && parts.iter().any(|k| !matches!(events[*k].source, None | Some(Source::Memory))) {
        return false;
    }
    let effect = |part: usize| match is_load || trace.model == Model::Sc {
        true => Some(part),
        false => events.iter().position(|e| e.store == Some(part)),
    };
    let effects: Vec<Option<usize>> = parts.iter().map(|part| effect(*part)).collect();
    let Some(first) = effects.iter().flatten().min().copied() else { return true };
    let last = match effects.iter().copied().collect::<Option<Vec<usize>>>() {
        Some(all) if *complete => all.into_iter().max().unwrap_or(first),
        // Memory is half changed at the end: only where that is not looked at, it makes no difference.
        _ if matches!(trace.against, Against::Trap(..)) => events.len(),
        _ => return false,
    };
    let cells: BTreeSet<Addr> = parts.iter().filter_map(|k| events[*k].address).collect();
    let touches =
        |e: &Event| e.thread() != one.thread() && e.address.is_some_and(|cell| cells.contains(&cell));
    !events[first..last].iter().any(touches)
}

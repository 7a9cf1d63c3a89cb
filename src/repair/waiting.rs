//! Which stores wait in a run that is to be prevented, and what do their threads do meanwhile? A change that
//! prevents the run stands on such a path, or at the end of a thread whose stores never reach memory.

use crate::certify::Counterexample;
use crate::model::{EdgeId, Program, PropertyKind, ThreadId};
use crate::query::{Act, Against, Event, EventKind, Model, Trace, Witness};

/// What the threads of the run do while a store of theirs waits in the buffer: paths from the store to the
/// last step that could have waited for it.
pub(super) fn delayed_paths(run: &Counterexample) -> Vec<(ThreadId, Vec<EdgeId>)> {
    match run {
        Counterexample::Witness(witness) => vec![(witness.thread(), witness_path(witness))],
        Counterexample::Trace(trace) => trace_paths(trace),
        Counterexample::Race(race) => vec![path(&race.events, race.store, race.load)],
    }
}

/// The threads whose stores are in their buffers in the final state that the run is against, with the last
/// edge of each.
pub(super) fn frozen_at_the_end(program: &Program, run: &Counterexample) -> Vec<(ThreadId, EdgeId)> {
    let Counterexample::Trace(trace) = run else { return vec![] };
    let Against::Property(number) = trace.against else { return vec![] };
    match program.properties()[number].kind {
        PropertyKind::Forbid => vec![],
        _ => {
            let last = |store| path(&trace.events, store, trace.events.len() - 1);
            let frozen = never_flushed(&trace.events).map(last);
            frozen.filter_map(|(thread, steps)| Some((thread, *steps.last()?))).collect()
        }
    }
}

fn witness_path(witness: &Witness) -> Vec<EdgeId> {
    witness.path().iter().map(|&k| witness.events[k].edge).collect()
}

/// A store that never reaches memory waits to the end of its thread's part; others to the last load that
/// overtakes them.
fn trace_paths(trace: &Trace) -> Vec<(ThreadId, Vec<EdgeId>)> {
    if trace.model == Model::Sc {
        return vec![];
    }
    let events = &trace.events;
    let waiting = never_flushed(events).map(|k| (k, events.len() - 1));
    let overtaken = trace.delays().into_iter().filter(|(store, _)| is_flushed(events, *store));
    overtaken.chain(waiting).map(|(from, to)| path(events, from, to)).collect()
}

fn is_flushed(events: &[Event], store: usize) -> bool {
    events.iter().any(|e| e.store == Some(store))
}

/// The stores that never reach memory.
fn never_flushed(events: &[Event]) -> impl Iterator<Item = usize> {
    let stores =
        (0..events.len()).filter(|&k| events[k].kind == EventKind::Store && events[k].trap.is_none());
    stores.filter(|&k| !is_flushed(events, k))
}

/// The edges that the thread of the first event takes up to the last one.
fn path(events: &[Event], from: usize, to: usize) -> (ThreadId, Vec<EdgeId>) {
    let thread = events[from].thread();
    let own = events[from..=to].iter().filter(|e| e.thread() == thread);
    let steps = own.filter(|e| matches!(e.action.act, Act::Step { .. }));
    (thread, steps.map(|e| e.edge).collect())
}

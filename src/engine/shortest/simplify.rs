//! The same end by a simpler way: fewer delayed stores, fewer switches between threads.
//!
//! A run found by a search does things in the order in which the search came by them. Each change tried here
//! is performed on the plain machine and kept only if it still leads to the goal, so nothing depends on
//! getting the rules right twice. Every attempt walks the whole run: of long runs only whole threads and
//! rounds of loops are left out.

use crate::model::{Loc, Program, ThreadId};
use crate::query::{Act, Action, EventKind, Goal, Limits, Model};
use crate::semantics::replay::perform;
use std::collections::HashMap;
use std::ops::Range;

/// In runs of more decisions than this, single ones are not worth the time.
const LONG: usize = 400;
/// Decisions that all attempts together may walk, and how often a long run may be walked in any case.
const EFFORT: usize = 60_000;
const WALKS: usize = 30;

/// If a limit is reached on the way, the run stays as simple as it is by then.
pub(crate) fn simplified(
    program: &Program,
    goal: &Goal,
    model: Model,
    run: Vec<Action>,
    limits: &Limits,
) -> Vec<Action> {
    let left = EFFORT.max(WALKS * run.len());
    let mut simplifier = Simplifier { program, goal, model, left, limits };
    let Some(run) = simplifier.ends(&run) else { return run };
    let run = simplifier.without_threads(run);
    let run = simplifier.without_rounds(run);
    if run.len() > LONG {
        return run;
    }
    let run = simplifier.without_delays(run);
    let run = simplifier.with_fewer_delays(run);
    let run = simplifier.without_switches(run);
    simplifier.without_last_steps(run)
}

/// A run that is simple already, without steps that do not matter: threads end where the goal needs nothing
/// more of them, and do what is local to them when they are at it.
pub(crate) fn tidied(
    program: &Program,
    goal: &Goal,
    model: Model,
    run: Vec<Action>,
    limits: &Limits,
) -> Vec<Action> {
    let mut simplifier = Simplifier { program, goal, model, left: EFFORT, limits };
    let Some(run) = simplifier.ends(&run) else { return run };
    let late = simplifier.with_late_locals(&run);
    let run = simplifier.ends(&late).unwrap_or(run);
    let run = simplifier.without_threads(run);
    simplifier.without_last_steps(run)
}

struct Simplifier<'a> {
    program: &'a Program,
    goal: &'a Goal,
    model: Model,
    /// Decisions that may still be walked.
    left: usize,
    limits: &'a Limits,
}

impl Simplifier<'_> {
    /// The run up to the goal; `None` if it does not lead there, or there is no effort left to see.
    fn ends(&mut self, run: &[Action]) -> Option<Vec<Action>> {
        self.left = self.left.checked_sub(run.len())?;
        let walked = perform(self.program, self.model, self.goal, run.iter().copied(), self.limits);
        let (events, against) = walked.ok()?;
        against.map(|_| events.iter().map(|e| e.action).collect())
    }

    /// The run with some actions moved to the earlier place `to`, if it still leads to the goal.
    fn moved(&mut self, run: &[Action], from: Range<usize>, to: usize) -> Option<Vec<Action>> {
        let mut other = run.to_vec();
        other[to..from.end].rotate_right(from.len());
        self.ends(&other)
    }

    /// Leaves out threads.
    fn without_threads(&mut self, mut run: Vec<Action>) -> Vec<Action> {
        for t in self.program.thread_ids() {
            let others: Vec<Action> = run.iter().copied().filter(|a| a.thread != t).collect();
            if others.len() < run.len()
                && let Some(shorter) = self.ends(&others)
            {
                run = shorter;
            }
        }
        run
    }

    /// Leaves out what a thread does between two visits of a location: the longest such ways first.
    fn without_rounds(&mut self, mut run: Vec<Action>) -> Vec<Action> {
        for t in self.program.thread_ids() {
            let mut from = 0;
            while let Some(shorter) = self.without_round(&run, t, &mut from) {
                run = shorter;
            }
        }
        run
    }

    /// The run without a round that the thread begins at its decision number `from` or later.
    fn without_round(&mut self, run: &[Action], t: ThreadId, from: &mut usize) -> Option<Vec<Action>> {
        let (places, visits) = self.visits(run, t);
        let mut all: HashMap<Loc, Vec<usize>> = HashMap::new();
        for (k, &at) in visits.iter().enumerate() {
            all.entry(at).or_default().push(k);
        }
        while *from < places.len() && self.left >= run.len() {
            let again = all[&visits[*from]].iter().rev().take_while(|to| **to > *from);
            for &to in again.take(2) {
                let round = &places[*from..to];
                let rest = (0..run.len()).filter(|k| round.binary_search(k).is_err()).map(|k| run[k]);
                let shorter = self.ends(&rest.collect::<Vec<_>>());
                if shorter.is_some() {
                    return shorter;
                }
            }
            *from += 1;
        }
        None
    }

    /// The places of a thread's decisions in the run, and the locations before each of them and at the end.
    fn visits(&self, run: &[Action], t: ThreadId) -> (Vec<usize>, Vec<Loc>) {
        let thread = self.program.thread(t);
        let places: Vec<usize> = (0..run.len()).filter(|&k| run[k].thread == t).collect();
        let mut visits = vec![thread.initial()];
        for &k in &places {
            visits.push(match run[k].act {
                Act::Step { edge, .. } => thread.edge(edge).to,
                Act::Flush => visits[visits.len() - 1],
            });
        }
        (places, visits)
    }

    /// Leaves out what threads do at last: a step, or a store with its flush.
    fn without_last_steps(&mut self, mut run: Vec<Action>) -> Vec<Action> {
        for t in self.program.thread_ids() {
            loop {
                let own: Vec<usize> = (0..run.len()).rev().filter(|&k| run[k].thread == t).take(2).collect();
                let shorter = (1..=own.len()).find_map(|last| {
                    let rest = (0..run.len()).filter(|k| !own[..last].contains(k)).map(|k| run[k]);
                    self.ends(&rest.collect::<Vec<_>>())
                });
                match shorter {
                    Some(shorter) => run = shorter,
                    None => break,
                }
            }
        }
        run
    }

    /// Local steps come right before what their thread does next with memory, or else does last. So do fences:
    /// until its thread's next store, the buffer that one has found empty stays so.
    fn with_late_locals(&self, run: &[Action]) -> Vec<Action> {
        let mut put_off: Vec<Vec<Action>> = vec![Vec::new(); self.program.threads().len()];
        let mut late = Vec::with_capacity(run.len());
        let last = |t: ThreadId| run.iter().rposition(|a| a.thread == t);
        let last: Vec<Option<usize>> = self.program.thread_ids().map(last).collect();
        for (k, &action) in run.iter().enumerate() {
            let own = &mut put_off[action.thread.index()];
            own.push(action);
            if Some(k) == last[action.thread.index()] || !self.can_be_put_off(&action) {
                late.append(own);
            }
        }
        late
    }

    fn can_be_put_off(&self, action: &Action) -> bool {
        match action.act {
            Act::Step { edge, .. } => {
                let instr = &self.program.thread(action.thread).edge(edge).instr;
                instr.is_local() || instr.is_fence()
            }
            Act::Flush => false,
        }
    }

    /// Flushes stores at once where that does as well.
    fn without_delays(&mut self, mut run: Vec<Action>) -> Vec<Action> {
        let mut store = 0;
        while store < run.len() {
            if let Some(flush) = self.flush_of(&run, store).filter(|&f| f > store + 1)
                && let Some(better) = self.moved(&run, flush..flush + 1, store + 1)
            {
                run = better;
            }
            store += 1;
        }
        run
    }

    /// Flushes stores at once where it does as well if the others go first, and fewer wait for it. The last
    /// store is the first to be tried.
    fn with_fewer_delays(&mut self, mut run: Vec<Action>) -> Vec<Action> {
        for store in (0..run.len()).rev() {
            // A better run may have come to the goal sooner.
            if store < run.len()
                && let Some(flush) = self.flush_of(&run, store).filter(|&f| f > store + 1)
                && let Some(other) = self.after_others(&run, store, flush)
            {
                let other = self.without_delays(other);
                run = if self.delayed(&other) < self.delayed(&run) { other } else { run };
            }
        }
        run
    }

    /// The run with a store flushed at once, after what each of the others did while it waited and before
    /// they stored or flushed something themselves.
    fn after_others(&mut self, run: &[Action], store: usize, flush: usize) -> Option<Vec<Action>> {
        let mut busy = vec![run[store].thread];
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for &action in &run[store + 1..flush] {
            if action.act == Act::Flush || self.is_store(&action) {
                busy.push(action.thread);
            }
            if busy.contains(&action.thread) { after.push(action) } else { before.push(action) }
        }
        let at_once = [run[store], run[flush]];
        self.ends(&[&run[..store], &before, &at_once, &after, &run[flush + 1..]].concat())
    }

    /// How many stores are not flushed at once?
    fn delayed(&self, run: &[Action]) -> usize {
        let waits = |&k: &usize| self.is_store(&run[k]) && self.flush_of(run, k) != Some(k + 1);
        (0..run.len()).filter(waits).count()
    }

    fn is_store(&self, action: &Action) -> bool {
        match action.act {
            Act::Step { edge, .. } => {
                EventKind::of(&self.program.thread(action.thread).edge(edge).instr) == EventKind::Store
            }
            Act::Flush => false,
        }
    }

    /// Where the store at this place of the run is flushed; `None` if it is no store, or never.
    fn flush_of(&self, run: &[Action], store: usize) -> Option<usize> {
        if !self.is_store(&run[store]) {
            return None;
        }
        let thread = run[store].thread;
        let is_flush = |a: &Action| a.thread == thread && a.act == Act::Flush;
        let before = run[..store].iter().filter(|a| a.thread == thread && self.is_store(a)).count();
        (0..run.len()).filter(|&k| is_flush(&run[k])).nth(before)
    }

    /// Lets threads go on where they would otherwise be interrupted.
    fn without_switches(&mut self, mut run: Vec<Action>) -> Vec<Action> {
        let mut at = 1;
        while at < run.len() {
            let thread = run[at].thread;
            let on = run[at..].iter().take_while(|a| a.thread == thread).count();
            let before = run[..at].iter().rposition(|a| a.thread == thread).filter(|&k| k + 1 < at);
            match before.and_then(|last| self.moved(&run, at..at + on, last + 1)) {
                Some(better) if switches(&better) < switches(&run) => run = better,
                _ => at += on,
            }
        }
        run
    }
}

fn switches(run: &[Action]) -> usize {
    run.windows(2).filter(|pair| pair[0].thread != pair[1].thread).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::tso;
    use crate::model::EdgeId;

    #[test]
    fn one_delay_is_enough_where_two_were_found() {
        let source = "shared x, y; thread p; store [x], 1; load r, [y]; end
                      thread q; store [y], 1; load r, [x]; end
                      exists p.r == 0 && q.r == 0";
        let program = tso::read(source, &[], &Limits::default()).expect("a program").program;
        let step =
            |t: u16, e: u32| Action { thread: ThreadId(t), act: Act::Step { edge: EdgeId(e), choice: None } };
        let flush = |t: u16| Action { thread: ThreadId(t), act: Act::Flush };
        let run = vec![step(0, 0), step(1, 0), step(1, 1), step(0, 1), flush(0), flush(1)];
        let simpler = simplified(&program, &Goal::of(&program), Model::Tso, run, &Limits::default());
        assert_eq!(simpler, [step(0, 0), step(0, 1), step(1, 0), flush(1), step(1, 1), flush(0)]);
    }

    #[test]
    fn a_fence_waits_for_the_store_behind_it() {
        let source = "shared y; thread p; store [y], 1; end; thread q; fence; store [y], 2; end
                      exists [y] == 2";
        let program = tso::read(source, &[], &Limits::default()).expect("a program").program;
        let step =
            |t: u16, e: u32| Action { thread: ThreadId(t), act: Act::Step { edge: EdgeId(e), choice: None } };
        let run = vec![step(1, 0), step(0, 0), step(1, 1)];
        let tidy = tidied(&program, &Goal::of(&program), Model::Sc, run, &Limits::default());
        assert_eq!(tidy, [step(0, 0), step(1, 0), step(1, 1)]);
    }

    #[test]
    fn a_store_that_need_not_wait_does_not_and_threads_go_on() {
        let source = "shared x, y; thread p; store [x], 1; store [y], 1; end
                      thread q; load r, [y]; load s, [y]; end
                      exists q.s == 1";
        let program = tso::read(source, &[], &Limits::default()).expect("a program").program;
        let step =
            |t: u16, e: u32| Action { thread: ThreadId(t), act: Act::Step { edge: EdgeId(e), choice: None } };
        let flush = Action { thread: ThreadId(0), act: Act::Flush };
        let run = vec![step(0, 0), step(1, 0), step(0, 1), flush, flush, step(1, 1)];
        let simpler = simplified(&program, &Goal::of(&program), Model::Tso, run, &Limits::default());
        assert_eq!(simpler, [step(0, 0), flush, step(0, 1), flush, step(1, 0), step(1, 1)]);
    }
}

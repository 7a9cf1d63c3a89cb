//! Where does a thread not stop? At locations whose steps are local and cannot be seen by the goal, a thread
//! goes on at once, as part of the step that led there.
//!
//! Such a step touches nothing but the thread's own registers, nothing that others do makes it possible or
//! impossible, and it does not change what the goal says: neither end of it is a location that the goal
//! names, and the register that it writes is none that the goal names before the end. So a run whose thread
//! takes it later, or not at all, is as good as one whose thread takes it at once. A thread does not run into
//! a cycle of such steps, which it might never leave.

use super::steps::Successor;
use super::tree::SearchTree;
use crate::analysis::liveness::Watched;
use crate::model::{Atom, Edge, Instr, Loc, Program, ThreadId};
use crate::query::{Act, Action, Goal, Limit, Limits};
use petgraph::algo::tarjan_scc;
use petgraph::visit::{EdgeFiltered, EdgeRef};

/// Per thread and location whether it goes on at once.
pub(crate) struct Passing(Vec<Vec<bool>>);

impl Passing {
    /// Threads stop everywhere.
    pub(crate) fn nowhere(program: &Program) -> Passing {
        Passing(program.threads().iter().map(|t| vec![false; t.graph().node_count()]).collect())
    }

    pub(crate) fn of(
        program: &Program,
        goal: &Goal,
        watched: &Watched,
        limits: &Limits,
    ) -> Result<Passing, Limit> {
        let mut named: Vec<Vec<bool>> = Passing::nowhere(program).0;
        goal.for_each_lasting_atom(&mut |atom| {
            if let Atom::At(t, locs) = atom {
                locs.iter().for_each(|loc| named[t.index()][loc.index()] = true);
            }
        });
        let one = |t: ThreadId| {
            limits.spend(8 * program.thread(t).graph().edge_count())?;
            Ok(passed(program, t, &named[t.index()], watched))
        };
        program.thread_ids().map(one).collect::<Result<_, _>>().map(Passing)
    }

    fn at(&self, t: ThreadId, loc: Loc) -> bool {
        loc != Loc::TRAP && self.0[t.index()][loc.index()]
    }
}

fn passed(program: &Program, t: ThreadId, named: &[bool], watched: &Watched) -> Vec<bool> {
    let thread = program.thread(t);
    let is_unseen = |edge: &Edge| {
        let is_watched = edge.instr.target().is_some_and(|r| watched.always[t.index()].contains(&r));
        let is_local = edge.instr.is_local() && !matches!(edge.instr, Instr::Any { .. });
        is_local && !is_watched && !named[edge.from.index()] && !named[edge.to.index()]
    };
    let mut unseen = vec![true; named.len()];
    unseen[thread.end().index()] = false;
    thread.edges().filter(|(_, edge)| !is_unseen(edge)).for_each(|(_, e)| unseen[e.from.index()] = false);
    let between =
        EdgeFiltered::from_fn(thread.graph(), |e| unseen[e.source().index()] && unseen[e.target().index()]);
    // Components come after those that they lead to.
    let mut passed = vec![false; named.len()];
    for component in tarjan_scc(&between) {
        if let [location] = component[..] {
            let ends = |to: usize| to != location.index() && (passed[to] || !unseen[to]);
            let all_end = thread.graph().neighbors(location).all(|to| ends(to.index()));
            passed[location.index()] = unseen[location.index()] && all_end;
        }
    }
    passed
}

impl SearchTree<'_> {
    /// The thread goes on until it stops; as many successors as there are ways to do so.
    pub(crate) fn run_on(&self, begin: Successor) -> Result<Vec<Successor>, Limit> {
        let t = begin.thread;
        let (mut todo, mut stopped) = (vec![begin], Vec::new());
        while let Some(successor) = todo.pop() {
            let before = todo.len();
            let at = successor.state.at[t.index()];
            if self.passing.at(t, at) {
                for (edge, _) in self.program.thread(t).edges_from(at) {
                    let action = Action { thread: t, act: Act::Step { edge, choice: None } };
                    if let Some((state, trapped)) = self.decide(&successor.state, action, None)? {
                        let decisions = [&successor.decisions[..], &[action]].concat();
                        todo.push(Successor { state, decisions, trapped, ..successor });
                    }
                }
            }
            if todo.len() == before {
                stopped.push(successor);
            }
        }
        Ok(stopped)
    }
}

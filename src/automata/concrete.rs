//! Which run leads there? The way from the root to a node, walked backwards with one content of each buffer:
//! a store takes its entry off the end, a commit puts its entry in front, and where cycles were accelerated
//! the content says which of them were gone round, and how often.
//!
//! Every content of a node's language comes of one of its parent's by the edge between them, so the walk
//! never fails. What it finds is judged by `certify` all the same.

use super::buffers::Lang;
use super::cycles::Cycle;
use super::dfa::Letter;
use super::tree::{BufferEffect, NodeId, SearchTree, Via};
use crate::model::ThreadId;
use crate::query::{Action, Limit};
use std::collections::VecDeque;

/// The content of every thread's buffer.
type Contents = Vec<VecDeque<Letter>>;

impl SearchTree<'_> {
    /// Decisions from the initial state to a state that the node stands for. Buffers are empty there, but for
    /// those that are frozen and those of a run that ends in an error: they are as short as can be.
    pub(crate) fn run_to(&self, node: NodeId, trapped: bool) -> Result<Vec<Action>, Limit> {
        let mut contents = Contents::new();
        for t in self.program.thread_ids() {
            let any = trapped || self.held_up(node, t);
            let dfa = self.buffers.dfa(self.buffer(node, t));
            let word = if any { dfa.shortest(self.limits)?.unwrap_or_default() } else { vec![] };
            contents.push(word.into());
        }
        let mut backwards = Vec::new();
        self.unwind(&self.path(SearchTree::ROOT, node), &mut contents, None, &mut backwards)?;
        backwards.reverse();
        Ok(backwards)
    }

    /// Walks a path backwards. Along a cycle, its thread's content is what it has appended so far.
    fn unwind(
        &self,
        path: &[NodeId],
        contents: &mut Contents,
        along: Option<(ThreadId, &Cycle)>,
        backwards: &mut Vec<Action>,
    ) -> Result<(), Limit> {
        for k in (1..path.len()).rev() {
            self.limits.spend(1)?;
            match &self.node(path[k]).via {
                Via::Start => unreachable!("the root has no parent"),
                Via::Step { thread, decisions, effect } => {
                    backwards.extend(decisions.iter().rev());
                    let content = &mut contents[thread.index()];
                    match effect {
                        BufferEffect::Store(_) => drop(content.pop_back()),
                        BufferEffect::Commit(letter) => content.push_front(*letter),
                        BufferEffect::Nothing | BufferEffect::Load { .. } | BufferEffect::Drain => {}
                    }
                }
                Via::Cycles { thread, cycles } => {
                    let base = match along {
                        Some((t, outer)) if t == *thread => outer.appended[k - 1],
                        _ => self.buffer(path[k - 1], *thread),
                    };
                    self.unwind_cycles(base, *thread, cycles, contents, backwards)?;
                }
            }
        }
        Ok(())
    }

    /// Walks the thread's cycles backwards, as often as its content says, until it is one of the base.
    fn unwind_cycles(
        &self,
        base: Lang,
        thread: ThreadId,
        cycles: &[Cycle],
        contents: &mut Contents,
        backwards: &mut Vec<Action>,
    ) -> Result<(), Limit> {
        let t = thread.index();
        let mut word: Vec<Letter> = contents[t].iter().copied().collect();
        let words: Vec<Lang> = cycles.iter().map(Cycle::word).collect();
        let split = self.buffers.split(base, &words, &word)?;
        // A content behind cycles is one before them and what they append. If ever it is not, the run misses
        // something, and the judge refutes it.
        let Some(split) = split else { return Ok(()) };
        for (number, part) in split.parts.into_iter().rev() {
            contents[t] = word[part].iter().copied().collect();
            let cycle = &cycles[number];
            self.unwind(&cycle.path, contents, Some((thread, cycle)), backwards)?;
        }
        word.truncate(split.base);
        contents[t] = word.into();
        Ok(())
    }
}

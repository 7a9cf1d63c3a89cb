//! What has been found, and how? The tree of symbolic states: each is a configuration (locations, registers,
//! memory, who holds it) with a language for every thread's buffer, and stands for all states with that
//! configuration and a content of each language. Each but the first was found from its parent.
//!
//! Invariant: a tree is exact. Every state that a node stands for is reached by a run that follows the edges
//! from the root to it; `concrete` makes such runs.

use super::buffers::{Buffers, Lang};
use super::cycles::Cycle;
use super::dfa::Letter;
use super::interned::Interned;
use super::local::Passing;
use crate::analysis::liveness::Live;
use crate::limits::{Limit, Limits};
use crate::machine::watched;
use crate::model::{Addr, Program, ThreadId, Value};
use crate::query::{Action, Goal, Reductions};
use crate::semantics::State;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NodeId(u32);

pub(crate) struct Node {
    /// The number of the configuration, a state whose buffers are left empty.
    pub configuration: u32,
    /// One for each thread.
    pub buffers: Box<[Lang]>,
    pub parent: Option<NodeId>,
    pub via: Via,
}

/// How a node comes of its parent.
#[derive(Clone, Debug)]
pub(crate) enum Via {
    Start,
    /// A decision of a thread or about its buffer, and local steps that the thread takes at once.
    Step {
        thread: ThreadId,
        decisions: Box<[Action]>,
        effect: BufferEffect,
    },
    /// A thread goes round cycles that lead back to the parent's configuration, in any order, as often as it
    /// likes.
    Cycles {
        thread: ThreadId,
        cycles: Arc<[Cycle]>,
    },
}

/// What a decision does to its thread's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BufferEffect {
    /// Whatever is in the buffer stays there.
    Nothing,
    Store(Letter),
    /// The contents that explain the value stay.
    Load {
        addr: Addr,
        value: Value,
        memory_tells: bool,
    },
    /// Only the empty content stays.
    Drain,
    Commit(Letter),
}

impl BufferEffect {
    /// Does it do more than append to contents, or choose among them by their newest entries?
    pub(crate) fn takes_away(self) -> bool {
        matches!(self, BufferEffect::Drain | BufferEffect::Commit(_))
    }
}

/// The program, and the tree of what is known of it.
pub(crate) struct SearchTree<'a> {
    pub program: &'a Program,
    pub goal: &'a Goal,
    pub limits: &'a Limits,
    pub live: Live,
    pub passing: Passing,
    pub buffers: Buffers<'a>,
    pub configurations: Interned<State>,
    nodes: Vec<Node>,
}

impl<'a> SearchTree<'a> {
    /// With the initial state alone.
    pub(crate) fn new(
        program: &'a Program,
        goal: &'a Goal,
        reductions: Reductions,
        limits: &'a Limits,
    ) -> Result<Self, Limit> {
        let watched = watched(program, goal);
        let live = match reductions.liveness {
            true => Live::of(program, &watched, |_, _| false, limits)?,
            false => Live::everything(program),
        };
        let passing = match reductions.steps {
            true => Passing::of(program, goal, &watched, limits)?,
            false => Passing::nowhere(program),
        };
        let mut configurations = Interned::default();
        let configuration = configurations.number(State::initial(program));
        let buffers = vec![Buffers::EMPTY; program.threads().len()].into();
        let root = Node { configuration, buffers, parent: None, via: Via::Start };
        let buffers = Buffers::new(limits);
        Ok(SearchTree { program, goal, limits, live, passing, buffers, configurations, nodes: vec![root] })
    }

    pub(crate) const ROOT: NodeId = NodeId(0);

    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    pub(crate) fn add(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        NodeId(self.nodes.len() as u32 - 1)
    }

    /// A node's configuration, as a state with empty buffers.
    pub(crate) fn state(&self, id: NodeId) -> &State {
        self.configurations.get(self.node(id).configuration)
    }

    pub(crate) fn buffer(&self, id: NodeId, t: ThreadId) -> Lang {
        self.node(id).buffers[t.index()]
    }

    /// The node and those it comes from, up to the root.
    pub(crate) fn ancestors(&self, id: NodeId) -> impl Iterator<Item = NodeId> {
        std::iter::successors(Some(id), |&id| self.node(id).parent)
    }

    /// The nodes from an ancestor down to a node, both included.
    pub(crate) fn path(&self, from: NodeId, to: NodeId) -> Vec<NodeId> {
        let mut path: Vec<NodeId> = self.ancestors(to).take_while(|&id| id != from).collect();
        path.push(from);
        path.reverse();
        path
    }

    /// Is memory held by another thread's block?
    pub(crate) fn held_up(&self, id: NodeId, t: ThreadId) -> bool {
        self.state(id).lock.is_some_and(|owner| owner != t)
    }

    /// Does the node stand for all that the other, which has the same configuration, stands for?
    pub(crate) fn includes(&mut self, large: NodeId, small: &Node) -> Result<bool, Limit> {
        for t in self.program.thread_ids() {
            let (large, small) = (self.buffer(large, t), small.buffers[t.index()]);
            if !self.buffers.includes(large, small)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Are the state's buffers contents of the node's languages?
    pub(crate) fn has_contents(&self, id: NodeId, state: &State) -> bool {
        self.program.thread_ids().all(|t| {
            let entries = state.buffers[t.index()].iter().map(|pending| (pending.addr, pending.value));
            let word: Option<Vec<Letter>> = entries.map(|entry| self.buffers.known_letter(entry)).collect();
            word.is_some_and(|word| self.buffers.dfa(self.buffer(id, t)).accepts(&word))
        })
    }

    /// Does the node stand for a state against the goal?
    pub(crate) fn is_goal(&self, id: NodeId) -> bool {
        let drained = |t| self.held_up(id, t) || self.buffers.may_be_empty(self.buffer(id, t));
        self.program.thread_ids().all(drained) && self.state(id).against(self.program, self.goal).is_some()
    }
}

/// One of the two things that go on in a thread: it takes an edge, or its oldest store reaches memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activity {
    Thread(ThreadId),
    Commits(ThreadId),
}

impl Activity {
    pub(crate) fn thread(self) -> ThreadId {
        match self {
            Activity::Thread(t) | Activity::Commits(t) => t,
        }
    }
}

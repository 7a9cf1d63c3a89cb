//! Is a state against the goal reachable? Depth-first search for nodes that are not included in those found
//! already (`[LindenWolper10]`, Algorithm 3); `mod` says why nothing is missed.

use super::steps::Successor;
use super::tree::{Activity, Node, NodeId, SearchTree, Via};
use crate::model::Program;
use crate::query::{Action, Goal, Limit, Limits, Reductions};
use crate::reach::Budget;
use crate::semantics::State;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::Ordering;

/// Is the search over once a state against the goal is found?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errors {
    /// With the first of them.
    First,
    /// It goes on, and they are counted.
    Count,
}

/// What came of the search so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Decisions that lead to a state against the goal.
    Found(Vec<Action>),
    /// All is visited.
    Exhausted,
    /// The budget is spent.
    Spent,
}

/// What the search has cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Nodes that are kept: each stands for many states.
    pub stored: u64,
    /// Nodes that were looked at, included ones and those that cycles replace among them.
    pub visited: u64,
    /// The longest stack.
    pub depth: usize,
    /// Nodes that stand for a state against the goal, and steps that go wrong.
    pub errors: u64,
    /// Times that a cycle was accelerated.
    pub cycles: u64,
}

/// The search, which can be interrupted and go on.
pub struct AutomataSearch<'a> {
    tree: SearchTree<'a>,
    reductions: Reductions,
    /// The stored nodes of each configuration.
    stored: HashMap<u32, Vec<NodeId>>,
    /// Of each stored node, the processes that need not be tried.
    asleep: HashMap<NodeId, Sleep>,
    stack: Vec<Frame>,
    cost: Cost,
    /// What ended the search. Something may be lost then, so that it cannot go on.
    ended_by: Option<Limit>,
}

/// A node with processes to be tried.
struct Frame {
    node: NodeId,
    /// Those that need not be tried: the node's sleep set, and those that have had their turn.
    sleep: Sleep,
    /// The next is the last.
    todo: Vec<Activity>,
    /// What the process that is having its turn leads to, and with which sleep set.
    successors: Vec<Successor>,
    passed_on: Sleep,
}

/// A set of processes: two bits for each of the first threads. The others never sleep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sleep(u64);

impl Sleep {
    const THREADS: usize = 32;

    fn bit(process: Activity) -> u64 {
        let (t, commits) = match process {
            Activity::Thread(t) => (t.index(), 0),
            Activity::Commits(t) => (t.index(), 1),
        };
        if t < Sleep::THREADS { 1 << (2 * t + commits) } else { 0 }
    }

    fn contains(self, process: Activity) -> bool {
        self.0 & Sleep::bit(process) != 0
    }

    fn insert(&mut self, process: Activity) {
        self.0 |= Sleep::bit(process);
    }

    fn and(self, other: Sleep) -> Sleep {
        Sleep(self.0 & other.0)
    }

    fn without(self, other: Sleep) -> Sleep {
        Sleep(self.0 & !other.0)
    }

    fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl<'a> AutomataSearch<'a> {
    pub fn new(
        program: &'a Program,
        goal: &'a Goal,
        reductions: Reductions,
        limits: &'a Limits,
    ) -> Result<Self, Limit> {
        limits.check()?;
        Ok(AutomataSearch {
            tree: SearchTree::new(program, goal, reductions, limits)?,
            reductions,
            stored: HashMap::new(),
            asleep: HashMap::new(),
            stack: Vec::new(),
            cost: Cost::default(),
            ended_by: None,
        })
    }

    pub fn cost(&self) -> Cost {
        self.cost
    }

    /// States of the largest automaton.
    pub fn largest(&self) -> usize {
        self.tree.buffers.largest()
    }

    /// Is the state one of those that a stored node stands for? Registers that are dead are 0 there.
    pub fn stands_for(&self, state: &State) -> bool {
        let buffers = vec![VecDeque::new(); state.buffers.len()];
        let configuration = self.tree.configurations.find(&State { buffers, ..state.clone() });
        let nodes = configuration.and_then(|number| self.stored.get(&number));
        nodes.is_some_and(|nodes| nodes.iter().any(|&node| self.tree.has_contents(node, state)))
    }

    /// Goes on, until so many nodes are stored.
    pub fn explore(&mut self, budget: Budget, errors: Errors) -> Result<Progress, Limit> {
        if let Some(limit) = &self.ended_by {
            return Err(limit.clone());
        }
        let explored = self.go_on(budget, errors);
        self.ended_by = explored.as_ref().err().cloned();
        explored
    }

    fn go_on(&mut self, budget: Budget, errors: Errors) -> Result<Progress, Limit> {
        if self.cost.stored == 0 {
            self.cost.visited = 1;
            let found = self.keep(SearchTree::ROOT, Sleep::default());
            if let Some(run) = self.found(found, false, errors)? {
                return Ok(Progress::Found(run));
            }
        }
        while let Some(frame) = self.stack.last_mut() {
            let (node, sleep) = (frame.node, frame.passed_on);
            if let Some(successor) = frame.successors.pop() {
                let trapped = successor.trapped && !self.tree.goal.ignores_errors;
                let found = self.visit(node, successor, sleep)?;
                if let Some(run) = self.found(found, trapped, errors)? {
                    return Ok(Progress::Found(run));
                }
            } else if let Some(process) = frame.todo.pop() {
                self.begin(process)?;
            } else {
                self.stack.pop();
            }
            if self.is_spent(budget)? {
                return Ok(Progress::Spent);
            }
        }
        Ok(Progress::Exhausted)
    }

    /// A state against the goal was found, if one was: the run to it, if that is what is wanted.
    fn found(
        &mut self,
        node: Option<NodeId>,
        trapped: bool,
        errors: Errors,
    ) -> Result<Option<Vec<Action>>, Limit> {
        let Some(node) = node else { return Ok(None) };
        self.cost.errors += 1;
        match errors {
            Errors::First => self.tree.run_to(node, trapped).map(Some),
            Errors::Count => Ok(None),
        }
    }

    /// Are more nodes stored than the budget has, and did the user not allow as few?
    fn is_spent(&self, budget: Budget) -> Result<bool, Limit> {
        let (stored, limits) = (self.cost.stored, self.tree.limits);
        limits.progress.store(stored, Ordering::Relaxed);
        limits.spend(1)?;
        let allowed = limits.states.filter(|&most| stored > most);
        match (budget.spent_by(stored), allowed) {
            (Some(budget), allowed) if allowed.is_none_or(|allowed| budget < allowed) => Ok(true),
            (_, Some(allowed)) => Err(Limit::States(allowed)),
            (_, None) => Ok(false),
        }
    }

    /// The process has its turn in the topmost node.
    fn begin(&mut self, process: Activity) -> Result<(), Limit> {
        let frame = self.stack.last().expect("a process has its turn in a node");
        let (node, sleep) = (frame.node, frame.sleep);
        let mut passed_on = Sleep::default();
        for other in self.processes(sleep) {
            if self.tree.are_independent(node, process, other)? {
                passed_on.insert(other);
            }
        }
        let mut successors = self.tree.successors(node, process)?;
        successors.reverse();
        let frame = self.stack.last_mut().expect("it is still there");
        (frame.successors, frame.passed_on) = (successors, passed_on);
        if self.reductions.sleep {
            frame.sleep.insert(process);
        }
        Ok(())
    }

    /// The processes of a set, all steps of threads before all commits.
    fn processes(&self, set: Sleep) -> Vec<Activity> {
        let mut all = self.all_processes();
        all.retain(|&process| set.contains(process));
        all
    }

    fn all_processes(&self) -> Vec<Activity> {
        let threads = || self.tree.program.thread_ids();
        threads().map(Activity::Thread).chain(threads().map(Activity::Commits)).collect()
    }

    /// Looks at what a step leads to, and keeps it, or a node that includes it, if it is new. A node that
    /// stands for a state against the goal, if one was found.
    fn visit(&mut self, parent: NodeId, found: Successor, sleep: Sleep) -> Result<Option<NodeId>, Limit> {
        self.cost.visited += 1;
        let Successor { state, thread, decisions, effect, buffer, trapped } = found;
        let configuration = self.tree.configurations.number(state);
        let mut buffers = self.tree.node(parent).buffers.clone();
        buffers[thread.index()] = buffer;
        let via = Via::Step { thread, decisions: decisions.into(), effect };
        let node = Node { configuration, buffers, parent: Some(parent), via };
        if trapped && !self.tree.goal.ignores_errors {
            return Ok(Some(self.tree.add(node)));
        }
        if self.is_covered(&node, sleep)? {
            return Ok(None);
        }
        let mut id = self.tree.add(node);
        if self.reductions.repeats
            && let Some(node) = self.tree.accelerated(id)?
        {
            self.cost.cycles += 1;
            if self.is_covered(&node, sleep)? {
                return Ok(None);
            }
            id = self.tree.add(node);
        }
        Ok(self.keep(id, sleep))
    }

    /// Is there a stored node that includes this one? Processes that sleep there and not here wake up there.
    fn is_covered(&mut self, node: &Node, sleep: Sleep) -> Result<bool, Limit> {
        let mut best: Option<(NodeId, Sleep)> = None;
        let AutomataSearch { stored, asleep, tree, .. } = self;
        for &other in stored.get(&node.configuration).map_or(&[][..], Vec::as_slice) {
            tree.limits.spend(1)?;
            let woken = asleep[&other].without(sleep);
            if best.is_none_or(|(_, least)| woken.0.count_ones() < least.0.count_ones())
                && tree.includes(other, node)?
            {
                best = Some((other, woken));
            }
        }
        let Some((other, woken)) = best else { return Ok(false) };
        if !woken.is_empty() {
            let sleep = self.asleep[&other].and(sleep);
            self.asleep.insert(other, sleep);
            self.push(other, sleep, self.processes(woken));
        }
        Ok(true)
    }

    /// Stores the node, to be explored by all processes that are not asleep; the node, if it stands for a
    /// state against the goal.
    fn keep(&mut self, node: NodeId, sleep: Sleep) -> Option<NodeId> {
        self.cost.stored += 1;
        self.stored.entry(self.tree.node(node).configuration).or_default().push(node);
        self.asleep.insert(node, sleep);
        let mut todo = self.all_processes();
        todo.retain(|&process| !sleep.contains(process));
        self.push(node, sleep, todo);
        self.tree.is_goal(node).then_some(node)
    }

    fn push(&mut self, node: NodeId, sleep: Sleep, mut todo: Vec<Activity>) {
        todo.reverse();
        self.stack.push(Frame { node, sleep, todo, successors: vec![], passed_on: Sleep::default() });
        self.cost.depth = self.cost.depth.max(self.stack.len());
    }
}

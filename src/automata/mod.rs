//! Can a state against the goal be reached, however much waits in store buffers? A search through sets of
//! states, whose buffers' contents are regular languages (`[LindenWolper10]`).
//!
//! A node is a configuration (locations, registers, memory, who holds it) with one language for each thread's buffer,
//! and stands for all states made of that configuration and a content of each language. `dfa` is languages, `buffers`
//! what instructions do to them, `tree` the nodes that were found, `steps` their successors, `local` the steps that
//! come along, `cycles` the acceleration of loops that fill a buffer, `search` the order of it all, and `concrete`
//! turns a node into a run.
//!
//! **Why a run is one.** The tree is exact: each step makes of a node exactly what it makes of the states
//! that the node stands for, split by the values that it may find, since a thread's buffer is touched by
//! nobody else; and what cycles lead to, they lead to (`cycles` has the argument). So every node has a run to
//! each of its states. `certify` judges the one that is shown all the same.
//!
//! **Why `safe` is a proof.** Steps are monotone: what can happen in a state can happen in a node that stands
//! for it, and leads into a successor of the node. Without sleep sets that is all: the first node stands for
//! the initial state, every successor of a stored node is included in a stored one, acceleration only ever
//! makes a node larger, and so by induction the stored nodes stand for every state that can be reached. Each
//! of them was held against the goal when it was stored. A goal counts where buffers are empty, if they are
//! not frozen by another thread's block: that is so for some state of a node if and only if the empty word is
//! in all languages that count, for they are independent of each other.
//!
//! **Local steps** come along with the step before them (`local`), which the goal cannot see and nobody else can
//! tell. So stored nodes stand for every state that can be reached but for such steps that are still to come.
//!
//! **Sleep sets** `[Godefroid96]`. Each thread is two *processes*, its instructions and its commits. In every
//! node processes have their turns in a fixed order; a successor by one of them is visited with a set of
//! others that are *asleep*: those that were asleep in the node or had their turn in it before, and are
//! independent there of the one that moves. Independent means, for each state that the node stands for: the
//! one does not make the other possible or impossible, and the order of the two does not matter. The claim:
//!
//! > If a node was visited with sleep set Z, and a run from a state that it stands for has no rearrangement
//! > (by swaps of neighbours that are independent where they happen) which begins with a process in Z, then
//! > the run's last state is stood for by a stored node.
//!
//! The first node is visited with nothing asleep, so the claim covers every run. By induction on the run's
//! length. A visited node is stored with Z, or it is included in a stored node N. If N's sleep set is a
//! subset of Z, the run avoids it too. Otherwise the processes that are asleep in N and not in Z wake up: they
//! get another round of turns in N, whose sleep set shrinks to what it has in common with Z. So it is enough
//! to look at a stored node with rounds of turns R1, R2, …, Rk and the sleep set Z' after the last of them,
//! which the run avoids. If the run is empty, the node stands for its state. Of all processes with which a
//! rearrangement of the run can begin, none is in Z'; so all have had their turn. Take the latest round in
//! which one of them had its turn, and the first one p of these in that round, and rearrange the run to begin
//! with p. The node's successor was visited with a sleep set Z''. If the rest of the run could begin with a q
//! in Z'', then q is independent of p in the node, and the whole run could begin with q as well. But q was
//! asleep in that round or had its turn in it before p: in the first case it is in Z' or had its turn in a
//! later round, and none of the three can be. So the rest of the run avoids Z'', and it is shorter.
//!
//! Waking processes up in the including node N, and there alone, is what lets inclusion and sleep sets live
//! together: the paper intersects the sleep sets of all including nodes, of which no single one need have
//! taken the turns that are then taken for done.
//!
//! Not here: bounds on buffers, and SC, for which there is nothing to represent. That the search ends is not
//! promised: values may grow, and there are loops whose buffers grow in ways that are not accelerated.

pub mod buffers;
mod concrete;
mod cycles;
pub mod dfa;
mod interned;
mod local;
mod search;
mod steps;
mod tree;

pub use search::{AutomataSearch, Cost, Errors, Progress};

//! overtake finds the bugs that x86's store buffers put into concurrent programs, and proves programs free of
//! them.
//!
//! The first question is: can this program get into a state that it forbids? Under sequential consistency
//! ([`Model::Sc`](query::Model::Sc)) threads take turns and every store is in memory at once. Under x86's
//! total store order ([`Model::Tso`](query::Model::Tso)) a store waits in its thread's buffer, and later
//! loads overtake it. The answer is *violated*, with a run that has been replayed on a plain machine; *safe*,
//! which is a proof for all executions; or *unknown*, with the limit that was reached.
//!
//! The second question needs no forbidden states: does TSO add any behaviour to those of SC? If not, the
//! program is *robust*; otherwise a [`Witness`](query::Witness) shows a run that no SC run is like.
//!
//! # Example
//!
//! Each of two threads raises its flag and then looks at the other's. Can both find it down?
//!
//! ```
//! use overtake::engine::{self, Options};
//! use overtake::front::tso;
//! use overtake::query::{Answer, Goal, EventKind, Limits, Model};
//!
//! let source = "
//!     shared x, y
//!     thread p0
//!         store [x], 1
//!         load  r, [y]
//!     end
//!     thread p1
//!         store [y], 1
//!         load  r, [x]
//!     end
//!     never p0.r == 0 && p1.r == 0
//! ";
//! let program = tso::read(source, &[], &Limits::default()).expect("the source is a program").program;
//! let goal = Goal::of(&program);
//!
//! // Not if threads simply take turns.
//! let sc = Options { model: Model::Sc, ..Options::default() };
//! let outcome = engine::check(&program, &goal, &sc, &Limits::default())?;
//! assert!(matches!(outcome.answer, Answer::Holds(_)));
//!
//! // But on x86 they can: both loads overtake the store before them.
//! let outcome = engine::check(&program, &goal, &Options::default(), &Limits::default())?;
//! match &outcome.answer {
//!     Answer::Fails(trace) => {
//!         let loads = trace.events.iter().filter(|e| e.kind == EventKind::Load);
//!         assert!(loads.map(|e| e.value).eq([Some(0), Some(0)]));
//!     }
//!     Answer::Holds(_) => panic!("x86 has store buffers"),
//!     Answer::Unknown(limit) => panic!("the search ended early: {limit:?}"),
//! }
//!
//! // So the program is not robust. The witness names a store, and a load that overtakes it.
//! let robustness = engine::robust(&program, &Options::default(), &Limits::default())?;
//! let Answer::Fails(witness) = &robustness.answer else { panic!("TSO adds a behaviour") };
//! let kind = |event: usize| witness.events[event].kind;
//! assert_eq!((kind(witness.store), kind(witness.load)), (EventKind::Store, EventKind::Load));
//! # Ok::<(), engine::Internal>(())
//! ```
//!
//! # Without text, and in tests
//!
//! [`model::build`] puts programs together by calls, and [`assert_safe!`], [`assert_robust!`] and [`assert_violated!`] are
//! for tests, where they show the run of what fails. With `default-features = false` the checker comes alone, without
//! the command line and its dependencies. `examples/own-lock` is a crate that uses all of this.
//!
//! # Where things are
//!
//! Modules see those below them in this list, and never those above.
//!
//! | module | its question |
//! |---|---|
//! | `cli` | what was typed, and what does it mean? The only place with files and terminals |
//! | `report` | what do people and scripts get to see? Text, JSON, graphs |
//! | `cluster` | how do several processes reach each other that share a search? |
//! | `compare` | how do other tools answer, and how soon? Their commands, their outputs, the table |
//! | [`testing`] | is it safe, robust or violated, as a test expects? |
//! | [`temporal`] | does a model do what is asked of it, now and for ever? |
//! | [`engine`] | the one door: a program and a goal go in, an outcome comes out. Lazy and explicit engines |
//! | [`robust`] | do SC and TSO differ? Attacks, and the search for a witness or a triangular race |
//! | [`automata`] | can the goal be reached, however much waits in store buffers? Languages of contents |
//! | [`extend`] | which larger program does under SC what this one does when it delays stores? |
//! | [`reach`] | can the goal be reached? One search, made fast by storing little |
//! | [`datatype`] | does a data type behave like a serial one? Its tests, and the fences that it needs |
//! | [`symbolic`] | which runs do a model's axioms allow? A formula, and the SAT solver |
//! | [`certify`] | is the claim true? The judges of runs, witnesses and races, and the answers they let through |
//! | [`semantics`] | what do programs mean? Both memory models as plain definitions, and the replay of runs |
//! | [`front`] | from text to a program, and back: one file or folder for each format |
//! | [`query`] | the words that all share: goal, limits, trace, outcome |
//! | [`analysis`] | what does a program's text say about all its runs? Intervals, liveness, access sets |
//! | [`dve`] | what is a DVE model? Processes that move between named states |
//! | [`model`] | what is a program? Threads as graphs over one memory |
//! | [`limits`] | what may a run spend, and has it been spent? |

pub mod analysis;
pub mod automata;
pub mod certify;
#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "distributed")]
pub mod cluster;
#[cfg(feature = "compare")]
pub mod compare;
pub mod datatype;
pub mod dve;
pub mod engine;
pub mod extend;
pub mod front;
pub mod hitting;
pub mod limits;
pub mod machine;
pub mod model;
pub mod past;
pub mod query;
pub mod reach;
pub mod repair;
#[cfg(feature = "cli")]
pub mod report;
pub mod robust;
pub mod semantics;
pub mod symbolic;
pub mod temporal;
pub mod testing;

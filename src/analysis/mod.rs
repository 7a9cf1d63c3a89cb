//! What does a program's text say about all its runs? Analyses that hold under every interleaving and every
//! buffering.
//!
//! `interval` bounds values, `access` says which cells may still be touched, `liveness` which registers and cells
//! still matter, `faint` which cells nobody really reads, `comparisons` which values can still be told apart, `loops`
//! how deep in loops the text is, `isomorphism` whether two programs are the same but for numbering. `solver` is the
//! data-flow solver behind them. They read programs and know nothing of machines, engines or files; they end early,
//! with the limit as a value, where `limits` says so.

pub mod access;
pub mod comparisons;
pub mod faint;
pub mod interval;
pub mod isomorphism;
pub mod liveness;
pub mod loops;
pub mod relevance;
mod solver;

//! Is the program robust: has every TSO computation an SC computation with the same dependencies?
//!
//! Robust programs reach the same states under both models (lazy-tso-reachability, Section 4). `hb` says what
//! depends on what in one computation, and whether that computation is a witness against robustness.

pub mod hb;

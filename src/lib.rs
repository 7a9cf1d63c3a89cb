//! overtake finds the bugs that x86's store buffers put into concurrent programs.

pub mod cli;
pub mod engine;
pub mod front;
pub mod model;
pub mod reach;
pub mod report;
pub mod sem;
pub mod verdict;

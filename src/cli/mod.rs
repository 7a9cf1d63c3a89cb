//! What was typed, and what is shown: the only place that knows files and terminals.

pub mod diagnose;

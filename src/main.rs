//! The story: arguments, the command they name, its exit code. A panic is a bug of ours, and must not be
//! mistaken for a verdict.

use clap::Parser;
use overtake::cli::{Cli, Exit};
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = Cli::parse();
    std::panic::set_hook(Box::new(|panic| {
        eprintln!("internal error: {panic}\nThis is a bug in overtake. Please report it with the program.");
    }));
    // After a panic nothing of the command is looked at again.
    std::panic::catch_unwind(AssertUnwindSafe(|| cli.run())).unwrap_or(Exit::Internal).into()
}

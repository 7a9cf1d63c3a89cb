//! The built binary with real arguments: how it is started, what it printed, how it ended.

#![allow(dead_code)] // each test program uses its own part

use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

pub(crate) const VIOLATED: i32 = 10;
pub(crate) const UNKNOWN: i32 = 5;
pub(crate) const BAD_INPUT: i32 = 2;

/// What a run printed, and how it ended.
pub(crate) struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    pub(crate) fn new(output: Output) -> Ran {
        let text = |bytes| String::from_utf8(bytes).expect("output is text");
        let code = output.status.code().expect("no signal ended it");
        Ran { code, out: text(output.stdout), err: text(output.stderr) }
    }

    pub(crate) fn first_line(&self) -> &str {
        self.out.lines().next().unwrap_or_default()
    }

    /// The JSON objects, one per line.
    pub(crate) fn objects(&self) -> Vec<Value> {
        let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        self.out.lines().map(parse).collect()
    }
}

pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_overtake"));
    command.args(args).current_dir(env!("CARGO_MANIFEST_DIR")).env_remove("COLUMNS");
    command
}

pub(crate) fn overtake(args: &[&str]) -> Ran {
    Ran::new(command(args).stdin(Stdio::null()).output().expect("the binary starts"))
}

/// With `input` on standard input.
pub(crate) fn fed(args: &[&str], input: &[u8]) -> Ran {
    let mut child = command(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    // Who does not read to the end is free not to.
    let _ = child.stdin.take().expect("it is piped").write_all(input);
    Ran::new(child.wait_with_output().expect("the binary ends"))
}

/// A program of the native language on standard input.
pub(crate) fn check(source: &str, more: &[&str]) -> Ran {
    fed(&[&["check", "-", "--from", "tso"], more].concat(), source.as_bytes())
}

/// A file of our own, in the folder that cargo keeps for tests.
pub(crate) fn file(name: &str, contents: &[u8]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, contents).expect("the folder for tests is writable");
    path
}

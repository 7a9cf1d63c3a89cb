//! What is said of machine code beside its files: threads without a `main`, what is asked of its variables, and what
//! functions do that no file defines.

use super::limits;
use crate::front::elf::{Options, Reuse, Stub};
use clap::Args;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

// (No doc comment: clap would take it for the help of the commands that have these.)
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Machine code")]
pub(super) struct CodeArgs {
    /// Can a state be reached that satisfies this? Over variables of machine code, `x == 1 && y[2] == 0`, or of a DVE
    /// model (several times for several)
    #[arg(long, value_name = "EXPR")]
    pub forbid: Vec<String>,
    /// The same of the states in which all threads have ended
    #[arg(long, value_name = "EXPR")]
    pub never: Vec<String>,
    /// As --never, the way litmus tests ask it
    #[arg(long, value_name = "EXPR")]
    pub exists: Vec<String>,
    /// Runs this function as a thread, with a number or `&name` as its argument (once for each thread; there is no
    /// `main` then)
    #[arg(long, value_name = "FUNCTION[:ARG]")]
    pub thread: Vec<String>,
    /// The function that the program begins with, instead of `main`
    #[arg(long, value_name = "FUNCTION")]
    entry: Option<String>,
    /// What a function does that no file defines: nothing, what is forbidden, or return 0 or 1
    #[arg(long, value_name = "NAME=noop|fail|any", value_parser = stub)]
    stub: Vec<(String, Stub)>,
    /// Calling this function is forbidden, as calling `abort` is
    #[arg(long, value_name = "FUNCTION")]
    fail_at: Vec<String>,
    /// What a variable is at the beginning
    #[arg(long, value_name = "NAME=VALUE")]
    init: Vec<String>,
    /// How much each thread can allocate, 1MiB if nothing is said
    #[arg(long, value_name = "SIZE", value_parser = limits::size)]
    heap_size: Option<u64>,
    /// What becomes of memory that is freed: whoever asks for a block of the same size may get it (reuse, if nothing is
    /// said), or no address is given out twice (fresh)
    #[arg(long, value_name = "reuse|fresh", value_parser = reuse)]
    heap: Option<Reuse>,
    /// Files that are linked with the one that is read.
    #[arg(skip)]
    pub(super) linked: Vec<PathBuf>,
    /// Object files of sources that have been compiled.
    #[arg(skip)]
    pub(super) compiled: Arc<BTreeMap<PathBuf, Vec<u8>>>,
}

fn stub(text: &str) -> Result<(String, Stub), String> {
    let (name, what) = text.split_once('=').ok_or("expected NAME=noop, NAME=fail or NAME=any")?;
    let stub = match what.trim() {
        "noop" => Stub::Noop,
        "fail" => Stub::Fail,
        "any" => Stub::Any,
        other => return Err(format!("`{other}` is no stub; there are noop, fail and any")),
    };
    Ok((name.trim().to_string(), stub))
}

fn reuse(text: &str) -> Result<Reuse, String> {
    match text {
        "reuse" => Ok(Reuse::Reuse),
        "fresh" => Ok(Reuse::Fresh),
        other => Err(format!("`{other}` is no way to give out memory; there are reuse and fresh")),
    }
}

impl CodeArgs {
    /// As the front end takes it.
    pub(super) fn options(&self) -> Options {
        let thread = |text: &String| match text.split_once(':') {
            Some((name, argument)) => (name.trim().to_string(), Some(argument.trim().to_string())),
            None => (text.trim().to_string(), None),
        };
        let default = Options::default();
        Options {
            threads: self.thread.iter().map(thread).collect(),
            stubs: self.stub.iter().cloned().collect(),
            fail_at: self.fail_at.iter().cloned().collect(),
            heap: self.heap_size.unwrap_or(default.heap),
            reuse: self.heap.unwrap_or(default.reuse),
            entry: self.entry.clone(),
            forbid: self.forbid.clone(),
            never: self.never.clone(),
            exists: self.exists.clone(),
            init: self.init.clone(),
        }
    }

    /// The first option that was given and that is for machine code alone, or for DVE models as well.
    pub(super) fn given(&self) -> Option<&'static str> {
        let options = [
            (!self.forbid.is_empty(), "--forbid"),
            (!self.never.is_empty(), "--never"),
            (!self.exists.is_empty(), "--exists"),
            (!self.thread.is_empty(), "--thread"),
            (self.entry.is_some(), "--entry"),
            (!self.stub.is_empty(), "--stub"),
            (!self.fail_at.is_empty(), "--fail-at"),
            (!self.init.is_empty(), "--init"),
            (self.heap_size.is_some(), "--heap-size"),
            (self.heap.is_some(), "--heap"),
        ];
        options.into_iter().find(|(given, _)| *given).map(|(_, name)| name)
    }
}

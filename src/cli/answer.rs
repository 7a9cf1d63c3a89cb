//! How an answer leaves: as JSON or as text, with as much of it as was asked for; and the exit code that goes
//! with it.

use super::limits::peak_kb;
use super::terminal::Terminal;
use super::{Exit, SearchArgs};
use crate::query::{Limit, Model, Question, Stats, Verdict};
use crate::report::document::Document;
use crate::report::text::{self, Style};
use crate::report::{json, unread};
use serde_json::{Value, json as fields};
use std::path::{Path, PathBuf};

impl From<Verdict> for Exit {
    fn from(verdict: Verdict) -> Exit {
        match verdict {
            Verdict::Holds => Exit::Good,
            Verdict::Fails => Exit::Violated,
            Verdict::Unknown => Exit::Unknown,
        }
    }
}

/// Shows the document of one of the files.
pub fn show(document: &Document<'_>, args: &SearchArgs, terminal: &Terminal) -> Exit {
    let exit = Exit::from(document.verdict);
    if args.json {
        terminal.print(&format!("{}\n", json::render(document)));
        return exit;
    }
    for warning in &document.warnings {
        terminal.warning(&format!("{}: {warning}", document.file));
    }
    let style = Style { local_steps: args.verbose, ..terminal.style() };
    let mut told = text::verdict(document, args.files.len() > 1, style);
    if !args.quiet {
        told += &text::explanation(document, style);
    }
    if args.verbose {
        told += &text::costs(document, style);
    }
    terminal.print(&told);
    exit
}

/// What remains to be said of a file that a limit did not let be read.
pub fn show_unread(
    question: Question,
    file: &Path,
    model: Model,
    limit: &Limit,
    args: &SearchArgs,
    terminal: &Terminal,
) -> Exit {
    let name = file.display().to_string();
    show(&unread::document(question, &name, model, limit, peak_kb()), args, terminal)
}

/// Asks the question of each file, and gives the worst answer. With `--json` a file that gets no answer gets an
/// object all the same, with what was said of it.
pub fn each_file(
    question: Question,
    args: &SearchArgs,
    terminal: &Terminal,
    ask: impl Fn(&Path) -> Exit,
) -> Exit {
    let one = |file: &PathBuf| {
        terminal.heard();
        let exit = ask(file);
        if args.json && matches!(exit, Exit::BadInput | Exit::Internal) {
            terminal.print(&format!("{}\n", error_object(question.command(), file, &terminal.heard())));
        }
        exit
    };
    args.files.iter().map(one).max().unwrap_or(Exit::Good)
}

/// What scripts get of a file that gave no answer.
pub fn error_object(command: &str, file: &Path, said: &str) -> Value {
    let stats = Stats::default();
    let mut object = json::headed(command, "error", &file.display().to_string(), &stats, peak_kb());
    json::put(&mut object, fields!({ "reason": said.trim() }));
    object.into()
}

//! How an answer leaves: as JSON or as text, with as much of it as was asked for; and the exit code that goes
//! with it.

use super::limits::peak_kb;
use super::terminal::Terminal;
use super::{Exit, SearchArgs};
use crate::query::{Limit, Model, Question, Verdict};
use crate::report::document::Document;
use crate::report::{json, text, unread};
use std::path::Path;

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
pub fn show(document: Document, args: &SearchArgs, terminal: &Terminal) -> Exit {
    let exit = Exit::from(document.verdict);
    if args.json {
        terminal.print(&format!("{}\n", json::render(document)));
        return exit;
    }
    for warning in &document.warnings {
        terminal.warning(&format!("{}: {warning}", document.file));
    }
    let style = terminal.style();
    let mut told = text::verdict(&document, args.files.len() > 1, style);
    if !args.quiet {
        told += &text::explanation(&document, style);
    }
    if args.verbose {
        told += &text::costs(&document, style);
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
    show(unread::document(question, &name, model, limit, peak_kb()), args, terminal)
}

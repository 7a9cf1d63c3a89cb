//! How an answer leaves: as JSON or as text, with as much of it as was asked for; and the exit code that goes
//! with it.

use super::limits::peak_kb;
use super::terminal::Terminal;
use super::{Exit, SearchArgs, written};
use crate::engine::{self, Options};
use crate::model::Program;
use crate::query::{Axioms, Limit, Question, Verdict};
use crate::report::text::{self, Style};
use crate::report::unread;
use crate::report::{self, document::Document};
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
pub(crate) fn show(document: &Document<'_>, args: &SearchArgs, terminal: &Terminal) -> Exit {
    let exit = Exit::from(document.verdict);
    terminal.parts().add(document, &args.input, &args.output);
    if args.json {
        let object = terminal.parts().object(document, &args.input);
        terminal.print(&format!("{object}\n"));
        return exit;
    }
    for warning in &document.warnings {
        terminal.warning(&format!("{}: {warning}", document.file));
    }
    let style = Style { local_steps: args.verbose, ..terminal.style() };
    let mut told = text::verdict(document, args.files.len() > 1 || args.among_others, style);
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
pub(crate) fn show_unread(
    question: Question,
    file: &Path,
    model: impl Into<Axioms>,
    limit: &Limit,
    args: &SearchArgs,
    terminal: &Terminal,
) -> Exit {
    let name = file.display().to_string();
    show(&unread::document(question, &name, model.into(), limit, peak_kb()), args, terminal)
}

/// Asks the question of each file, and gives the worst answer. With `--json` a file that gets no answer gets an
/// object all the same, with what was said of it.
pub(crate) fn each_file(
    question: Question,
    args: &SearchArgs,
    terminal: &Terminal,
    ask: impl Fn(&Path) -> Exit,
) -> Exit {
    terminal.parts().wanted = args.output.wants_any();
    let one = |file: &PathBuf| {
        terminal.heard();
        let exit = ask(file);
        if matches!(exit, Exit::BadInput | Exit::Internal) {
            let said = terminal.heard();
            terminal.parts().add_error(question.command(), file, &said, &args.output);
            if args.json {
                terminal.print(&format!("{}\n", written::error_object(question.command(), file, &said)));
            }
        }
        exit
    };
    let worst = args.files.iter().map(one).max().unwrap_or(Exit::Good);
    worst.max(terminal.parts().write(&args.output, terminal))
}

/// Why those who are asked cannot answer for this program, if that is so, with the line that they do not know.
pub(super) fn refused(question: Question, program: &Program, options: &Options) -> Option<String> {
    engine::refusal(program, question, options).map(|limit| report::limit_reached(&limit))
}

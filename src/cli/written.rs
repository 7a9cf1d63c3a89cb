//! What is written into files beside the output: a page, pictures, a log for code scanning, a report for build servers.
//!
//! Each file that is asked about leaves its part here when its answer is shown, and all parts are written once the last
//! one is. So several inputs are sections of one page.

use super::input::Loaded;
use super::limits::peak_kb;
use super::terminal::Terminal;
use super::{Exit, InputArgs};
use crate::model::code::CodeLine;
use crate::model::source::{Stretch, place};
use crate::query::Verdict;
use crate::report::document::{Block, Document};
use crate::report::junit::{self, Case, CaseResult};
use crate::report::page::{self, ProgramText, Section, TextLine};
use crate::report::pictures::{self, Titled};
use crate::report::text::{self, Style};
use crate::report::{json, sarif};
use clap::Args;
use serde_json::{Value, json as fields};
use std::path::{Path, PathBuf};

// (No doc comment: clap would take it for the help of the commands.)
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Files beside the output")]
pub(crate) struct OutputArgs {
    /// Writes the answer as a page to look at: the run, step by step, the program, and why
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Writes pictures of the run, and of the cycle if there is one
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Writes what was found for code scanning (SARIF 2.1.0)
    #[arg(long, value_name = "FILE")]
    pub sarif: Option<PathBuf>,
    /// Writes a report as build servers read it (JUnit)
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
}

impl OutputArgs {
    pub(crate) fn wants_any(&self) -> bool {
        FILES.iter().any(|(path, _)| path(self).is_some())
    }
}

/// The files beside the output: where each is wanted, and what it says.
const FILES: [(OutputPath, Renderer); 4] = [
    (|output| &output.html, |parts| page::page(&parts.sections)),
    (|output| &output.svg, |parts| pictures::file(&parts.pictures)),
    (|output| &output.sarif, |parts| format!("{:#}\n", sarif::log(&parts.answers))),
    (|output| &output.junit, |parts| junit::suite("overtake", &parts.cases)),
];

type OutputPath = fn(&OutputArgs) -> &Option<PathBuf>;
type Renderer = fn(&Parts) -> String;

/// The parts of the files that have been asked about.
#[derive(Default)]
pub(crate) struct Parts {
    /// Whether texts are kept.
    pub wanted: bool,
    /// What the answers are about, beside a file: a level of optimisation, a test.
    pub aspect: String,
    /// The text of the file that is being asked about.
    pub text: Option<ProgramText>,
    /// What every answer about that file leaves out, beside what the answer itself warns of.
    pub left_out: Vec<String>,
    sections: Vec<Section>,
    pictures: Vec<Titled>,
    answers: Vec<Value>,
    cases: Vec<Case>,
}

/// One file's part that has no document.
pub(crate) struct ToldAnswer<'a> {
    pub object: &'a Value,
    pub verdict: Verdict,
    pub question: &'a str,
    pub blocks: &'a [Block],
    pub costs: &'a [Block],
    pub output: String,
}

const PLAIN: Style = Style { width: 120, color: false, local_steps: false, wraps: false };

impl Parts {
    /// The part of an answer.
    pub(crate) fn add(&mut self, document: &Document<'_>, input: &InputArgs, output: &OutputArgs) {
        if !output.wants_any() {
            return;
        }
        let object = self.object(document, input);
        if output.html.is_some() {
            let mut section =
                page::section(document, &self.left_out, self.text.as_ref(), self.sections.len());
            section.file = self.title(&section.file);
            self.sections.push(section);
        }
        if output.svg.is_some() {
            self.pictures.extend(pictures::of(
                &(document.explanation)(),
                &self.title(&document.file),
                self.pictures.len(),
            ));
        }
        let told = text::verdict(document, false, PLAIN) + &text::explanation(document, PLAIN);
        self.case(&object, document.verdict, told);
        self.answers.push(object);
        self.text = None;
    }

    /// What people call the part of a file.
    fn title(&self, file: &str) -> String {
        if self.aspect.is_empty() { file.to_string() } else { format!("{file}, {}", self.aspect) }
    }

    /// The answer as scripts get it.
    pub(crate) fn object(&self, document: &Document<'_>, input: &InputArgs) -> Value {
        let mut object = json::render(document);
        object["define"] = input.defined();
        if !self.left_out.is_empty() {
            let warnings = self.left_out.iter().chain(&document.warnings);
            object["warnings"] = warnings.cloned().collect();
        }
        object
    }

    /// The same of an answer that is told in another way.
    pub(crate) fn add_told(&mut self, told: ToldAnswer<'_>, output: &OutputArgs) {
        let ToldAnswer { object, verdict, question, blocks, costs, output: printed } = told;
        let text = |name: &str| object[name].as_str().unwrap_or_default().to_string();
        let (file, word) = (self.title(&text("file")), text("verdict"));
        if output.html.is_some() {
            let body = page::body(blocks, costs, self.text.as_ref(), self.sections.len());
            self.sections.push(page::section_of(&file, &word, page::tone_of(verdict), question, body));
        }
        if output.svg.is_some() {
            self.pictures.extend(pictures::of(blocks, &file, self.pictures.len()));
        }
        self.case(object, verdict, printed);
        self.answers.push(object.clone());
        self.text = None;
    }

    fn case(&mut self, object: &Value, verdict: Verdict, output: String) {
        let text = |name: &str| object[name].as_str().unwrap_or_default().to_string();
        let why = || format!("{}: {}", text("verdict"), text("reason"));
        let result = match verdict {
            Verdict::Holds => CaseResult::Passed,
            Verdict::Fails => CaseResult::Failed(why()),
            Verdict::Unknown => CaseResult::Error(why()),
        };
        let seconds = object["time_ms"].as_f64().unwrap_or(0.0) / 1000.0;
        let (class, name) = (format!("overtake {}", text("command")), self.title(&text("file")));
        self.cases.push(Case { class, name, seconds, result, output });
    }

    /// A case that is more than an answer, such as a test.
    pub(crate) fn add_case(&mut self, case: Case) {
        self.cases.push(case);
    }

    /// The part of a file that gave no answer.
    pub(crate) fn add_error(&mut self, command: &str, file: &Path, said: &str, output: &OutputArgs) {
        let (name, said) = (file.display().to_string(), said.trim().to_string());
        if output.html.is_some() {
            let body = page::complaint(&said);
            self.sections.push(page::section_of(&name, "error", "bad", "There is no answer", body));
        }
        let class = format!("overtake {command}");
        let result = CaseResult::Error(said.lines().next().unwrap_or("no answer").to_string());
        self.cases.push(Case { class, name, seconds: 0.0, result, output: said });
        self.text = None;
    }

    /// Writes all that was asked for. What cannot be written is wrong usage.
    pub(crate) fn write(&mut self, output: &OutputArgs, terminal: &Terminal) -> Exit {
        let mut exit = Exit::Good;
        for (path, text) in &FILES {
            let Some(path) = path(output) else { continue };
            if let Err(e) = std::fs::write(path, text(self)) {
                terminal.error(&format!("{}: {e}", path.display()));
                exit = Exit::BadInput;
            }
        }
        exit
    }
}

/// The text that the lines of a program are numbers of.
pub(crate) fn text_of(loaded: &Loaded) -> ProgramText {
    match loaded {
        Loaded::Program(source) => lines(&source.text, &source.stretches),
        Loaded::Model(model) => lines(&model.text, &[]),
    }
}

/// Longer ones are for `show`.
const LONGEST_LISTING: usize = 1_000;

/// Object code has a line for each instruction, with that of its source if there is one.
pub(crate) fn listing_of(loaded: &Loaded) -> Option<ProgramText> {
    let Loaded::Program(source) = loaded else { return None };
    let code = source.program.code_lines();
    let line = |code: &CodeLine| {
        let text = match &code.source {
            Some(source) => format!("{:<28}  {source}", code.asm),
            None => code.asm.clone(),
        };
        TextLine::new(code.place().short(), &text)
    };
    let is_short = (1..=LONGEST_LISTING).contains(&code.len());
    is_short.then(|| ProgramText { lines: code.iter().map(line).collect() })
}

pub(crate) fn lines(text: &str, stretches: &[Stretch]) -> ProgramText {
    let line = |(k, line): (usize, &str)| TextLine::new(place(stretches, k as u32 + 1).short(), line);
    ProgramText { lines: text.lines().enumerate().map(line).collect() }
}

/// Runs a command that prints an object. If it ends before that, what was said becomes one.
pub(crate) fn with_object(
    command: &str,
    file: &Path,
    json: bool,
    terminal: &Terminal,
    run: impl FnOnce() -> Exit,
) -> Exit {
    terminal.heard();
    let exit = run();
    let verdict = match exit {
        Exit::Unknown => "unknown",
        Exit::BadInput | Exit::Internal => "error",
        _ => return exit,
    };
    if json {
        let mut object = error_object(command, file, &terminal.heard());
        object["verdict"] = verdict.into();
        terminal.print(&format!("{object}\n"));
    }
    exit
}

/// What scripts get of a file that gave no answer.
pub(crate) fn error_object(command: &str, file: &Path, said: &str) -> Value {
    let stats = crate::query::Stats::default();
    let mut object = json::headed(command, "error", &file.display().to_string(), &stats, peak_kb());
    json::put(&mut object, fields!({ "reason": said.trim() }));
    object.into()
}

//! An answer as it is told, whoever it is told to: plain data, without width and without colour.
//!
//! One file for each question makes a [`Document`] of its answer; `text` and `json` render it. A renderer
//! knows documents and no answers, so that a new one serves every question, and a new question every
//! renderer. Most of a document is made when a renderer asks for it: a verdict alone costs no run in words.

use super::steps::RunTable;
use super::table::{Table, Tone};
use crate::query::{Question, Verdict};
use serde_json::{Map, Value};

/// What is made when it is asked for.
pub type Deferred<'a, T> = Box<dyn Fn() -> T + 'a>;

pub struct Document<'a> {
    pub question: Question,
    pub verdict: Verdict,
    pub file: String,
    /// What the verdict rests on.
    pub explanation: Deferred<'a, Vec<Block>>,
    /// What it took to find it.
    pub costs: Deferred<'a, Vec<Block>>,
    /// Things the user should know whatever the verdict is.
    pub warnings: Vec<String>,
    /// What scripts get, in this order.
    pub fields: Deferred<'a, Map<String, Value>>,
}

impl Document<'_> {
    /// The verdict, as this question calls it.
    pub fn word(&self) -> &'static str {
        self.question.word(self.verdict)
    }
}

/// A part of a document, apart from those around it.
#[derive(Clone, Debug)]
pub enum Block {
    Paragraph(Paragraph),
    Table(Table),
    /// A run, step by step.
    Run(RunTable),
    Change(ChangedLines),
    Facts(Vec<Fact>),
    /// Why no SC run is like the one beside it.
    Cycle(Cycle),
    /// What pages have room for, and text has not.
    Fold(Fold),
}

/// A part that opens when it is asked for.
#[derive(Clone, Debug)]
pub struct Fold {
    pub title: String,
    pub blocks: Vec<Block>,
}

/// A cycle of happens-before. What is one step of the run is one node: a store and its flush, a block.
#[derive(Clone, Debug, Default)]
pub struct Cycle {
    /// How text tells of it, if it does.
    pub table: Option<Table>,
    pub nodes: Vec<CycleNode>,
    pub edges: Vec<CycleEdge>,
}

#[derive(Clone, Debug)]
pub struct CycleNode {
    pub thread: String,
    pub text: String,
    /// The rows of the run that it stands for.
    pub rows: Vec<usize>,
}

/// By the places of nodes.
#[derive(Clone, Debug)]
pub struct CycleEdge {
    pub from: usize,
    pub to: usize,
    /// The relation: `po`, `rf`, `co` or `fr`.
    pub name: &'static str,
    pub words: String,
}

/// Lines of text, and below them items, if there are any.
#[derive(Clone, Debug, Default)]
pub struct Paragraph {
    pub lines: Vec<String>,
    pub items: Vec<String>,
    pub tone: Tone,
}

impl Block {
    /// Does text show it?
    pub(crate) fn is_told(&self) -> bool {
        match self {
            Block::Fold(_) | Block::Cycle(Cycle { table: None, .. }) => false,
            Block::Run(run) => !run.rows.is_empty(),
            _ => true,
        }
    }

    pub fn line(line: impl Into<String>) -> Block {
        Block::lines(vec![line.into()])
    }

    pub fn lines(lines: Vec<String>) -> Block {
        Block::list(lines, vec![])
    }

    pub fn list(lines: Vec<String>, items: Vec<String>) -> Block {
        Block::Paragraph(Paragraph { lines, items, tone: Tone::Plain })
    }
}

/// Where to change the program, and the user's text around.
#[derive(Clone, Debug)]
pub struct ChangedLines {
    pub places: Vec<String>,
    pub excerpt: Vec<SourceLine>,
}

/// One line of an excerpt.
#[derive(Clone, Debug)]
pub enum SourceLine {
    /// As it is, with its number.
    Old(u32, String),
    /// This is the one.
    Marked(u32, String),
    /// To be put in.
    New(String),
}

/// Something counted or measured.
#[derive(Clone, Debug)]
pub struct Fact {
    pub label: &'static str,
    pub value: String,
    /// It is a part of the fact before it.
    pub part: bool,
}

impl Fact {
    pub fn new(label: &'static str, value: impl ToString) -> Fact {
        Fact { label, value: value.to_string(), part: false }
    }

    pub fn part(label: &'static str, value: impl ToString) -> Fact {
        Fact { part: true, ..Fact::new(label, value) }
    }
}

//! An answer as a page that can be mailed: one file, without a network, complete with scripts switched off.
//!
//! The verdict comes first, then what it rests on. Runs are drawn as lanes, in pieces where they are long, and have the
//! state behind their last row beside them; the script of the page moves to other rows. Templates escape whatever they
//! are given, pictures escape what they write, and nothing but the page's own script may run.

use super::document::{Block, ChangedLines, Cycle, Document, Fact, Fold, Paragraph, SourceLine};
use super::picture::{self, Escaped, cycle, lanes};
use super::scene::number;
use super::steps::RunTable;
use super::table::{Table, Tone};
use crate::query::Verdict;
use askama::Template;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fmt::Write;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// Longer runs are cut into pieces of so many rows, which open one by one.
const PIECE: usize = 200;

/// The text of a program, line by line.
#[derive(Clone, Debug, Default)]
pub struct ProgramText {
    pub lines: Vec<TextLine>,
}

#[derive(Clone, Debug, Default)]
pub struct TextLine {
    /// What the user calls the line: its number, and its file if that is another one.
    pub label: String,
    pub text: String,
    marked: bool,
}

impl TextLine {
    pub fn new(label: String, text: &str) -> TextLine {
        TextLine { label, text: text.to_string(), marked: false }
    }
}

/// One input's part of a page.
#[derive(Clone, Debug)]
pub struct Section {
    pub file: String,
    word: String,
    tone: &'static str,
    question: String,
    warnings: Vec<String>,
    body: String,
}

#[derive(Template)]
#[template(path = "page.html")]
struct PageView<'a> {
    title: String,
    digest: String,
    css: String,
    js: &'a str,
    sections: &'a [Section],
    made: String,
}

#[derive(Template)]
#[template(path = "run.html")]
struct RunView {
    id: String,
    count: usize,
    whole: bool,
    pieces: Vec<Piece>,
    memory: Vec<(String, i64)>,
    threads: Vec<ThreadView>,
    data: String,
}

struct Piece {
    from: usize,
    to: usize,
    open: bool,
    svg: String,
}

struct ThreadView {
    name: String,
    buffer: Vec<(String, i64)>,
    registers: Vec<(String, i64)>,
}

#[derive(Template)]
#[template(path = "cycle.html")]
struct CycleView<'a> {
    run: String,
    svg: String,
    edges: Vec<(&'static str, &'a str)>,
}

#[derive(Template)]
#[template(path = "text.html")]
struct TextView {
    lines: Vec<TextLine>,
}

/// A cell of a table that can be sorted: what it shows, what it is sorted by if that is not the same, and its tone.
pub type SortedCell = (String, String, &'static str);

#[derive(Template)]
#[template(path = "compare.html")]
struct CompareView<'a> {
    head: &'a [&'a str],
    rows: Vec<Vec<SortedCell>>,
    curves: Vec<String>,
    tools: String,
}

/// A comparison: its table, and pictures of ours that are SVG already.
pub fn comparison(head: &[&str], rows: Vec<Vec<SortedCell>>, curves: Vec<String>, tools: String) -> String {
    rendered(&CompareView { head, rows, curves, tools })
}

/// The page.
pub fn page(sections: &[Section]) -> String {
    let title = match sections {
        [one] => format!("{}: {} – overtake", one.file, one.word),
        several => format!("{} files – overtake", several.len()),
    };
    let view = PageView {
        title,
        digest: digest(SCRIPT),
        css: style(),
        js: SCRIPT,
        sections,
        made: format!("overtake {}", env!("CARGO_PKG_VERSION")),
    };
    rendered(&view)
}

/// A script as the policy of a page names it.
pub fn digest(script: &str) -> String {
    base64(&Sha256::digest(script.as_bytes()))
}

/// How all pages look.
pub fn style() -> String {
    format!("{STYLE}{}", picture::STYLE)
}

/// A template writes into memory, which does not fail.
fn rendered(view: &impl Template) -> String {
    view.render().unwrap_or_else(|e| format!("<p>{}</p>", Escaped(&e.to_string())))
}

/// What an answer says, with the text that it is about, and what answers about that leave out. `number` is the
/// section's place on the page.
pub fn section(
    document: &Document<'_>,
    left_out: &[String],
    text: Option<&ProgramText>,
    number: usize,
) -> Section {
    let blocks = (document.explanation)();
    let costs = (document.costs)();
    let tone = tone_of(document.verdict);
    let command = document.question.command();
    Section {
        file: document.file.clone(),
        word: document.word().to_string(),
        tone,
        question: asked(command).to_string(),
        warnings: left_out.iter().chain(&document.warnings).cloned().collect(),
        body: body(&blocks, &costs, text, number),
    }
}

pub fn tone_of(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "good",
        Verdict::Fails => "bad",
        Verdict::Unknown => "doubtful",
    }
}

/// What is wrong with a file, as it was said.
pub fn complaint(said: &str) -> String {
    let line = |line: &str| format!("<div class=\"line\"><code>{}</code></div>", Escaped(line));
    format!("<div class=\"code\">{}</div>", said.lines().map(line).collect::<String>())
}

/// The same of what has no document.
pub fn section_of(file: &str, word: &str, tone: &'static str, question: &str, body: String) -> Section {
    let (file, word, question) = (file.to_string(), word.to_string(), question.to_string());
    Section { file, word, tone, question, warnings: vec![], body }
}

fn asked(command: &str) -> &'static str {
    match command {
        "check" => "Is a forbidden state reachable?",
        "robust" => "Do SC and TSO have the same behaviours?",
        "fence" => "Which fewest changes repair it?",
        "outcomes" => "Which final states are there?",
        _ => "",
    }
}

/// What the verdict rests on, the program's text, and what it took.
pub fn body(blocks: &[Block], costs: &[Block], text: Option<&ProgramText>, number: usize) -> String {
    let mut writer = BlockWriter { prefix: format!("s{number}"), runs: 0 };
    let told = writer.blocks(blocks);
    let costs = writer.blocks(costs);
    let text = text.map(|text| {
        let mut lines = text.lines.clone();
        mark(&mut lines, blocks);
        let shown = rendered(&TextView { lines });
        format!("<div class=\"program\"><h3>The program</h3>{shown}</div>")
    });
    let searched = match costs.is_empty() {
        true => String::new(),
        false => {
            format!("<details class=\"costs\" open><summary>What was searched</summary>{costs}</details>")
        }
    };
    format!(
        "<div class=\"columns\"><div class=\"story\">{told}{searched}</div>{}</div>",
        text.unwrap_or_default()
    )
}

/// Marks the lines that runs go through.
fn mark(lines: &mut [TextLine], blocks: &[Block]) {
    for block in blocks {
        match block {
            Block::Run(run) => {
                for step in run.scene.moves.iter().filter(|step| step.line > 0) {
                    if let Some(line) = lines.get_mut(step.line as usize - 1) {
                        line.marked = true;
                    }
                }
            }
            Block::Fold(fold) => mark(lines, &fold.blocks),
            _ => {}
        }
    }
}

/// Blocks as HTML. Runs are numbered on the way.
struct BlockWriter {
    prefix: String,
    runs: usize,
}

impl BlockWriter {
    fn blocks(&mut self, blocks: &[Block]) -> String {
        // A cycle is one of the run beside it.
        let run = format!("{}r{}", self.prefix, self.runs);
        blocks.iter().map(|block| self.block(block, &run)).collect()
    }

    fn block(&mut self, block: &Block, run: &str) -> String {
        match block {
            Block::Paragraph(text) => paragraph(text),
            Block::Table(table) => self::table(table),
            Block::Run(steps) => {
                let id = format!("{}r{}", self.prefix, self.runs);
                self.runs += 1;
                self::run(steps, id)
            }
            Block::Change(change) => changed(change),
            Block::Facts(facts) => self::facts(facts),
            Block::Cycle(found) => self.cycle(found, run),
            Block::Fold(Fold { title, blocks }) => {
                let inside = self.blocks(blocks);
                format!("<details class=\"fold\"><summary>{}</summary>{inside}</details>", quoted(title))
            }
        }
    }

    fn cycle(&self, found: &Cycle, run: &str) -> String {
        let svg = cycle::picture(found, run).inline("The cycle");
        let edges = found.edges.iter().map(|edge| (edge.name, &edge.words[..])).collect();
        rendered(&CycleView { run: run.to_string(), svg, edges })
    }
}

fn paragraph(text: &Paragraph) -> String {
    let mut html = format!("<p class=\"{}\">", tone(text.tone));
    for (k, line) in text.lines.iter().enumerate() {
        let _ = write!(html, "{}{}", if k > 0 { "<br>" } else { "" }, quoted(line));
    }
    html += "</p>";
    if !text.items.is_empty() {
        let items = text.items.iter().map(|item| format!("<li>{}</li>", quoted(item)));
        let _ = write!(html, "<ul>{}</ul>", items.collect::<String>());
    }
    html
}

/// Escaped text, with what stands in back quotes as code.
fn quoted(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let closed = text.matches('`').count().is_multiple_of(2);
    let part = |(k, part): (usize, &str)| match k % 2 {
        1 if closed => format!("<code>{}</code>", Escaped(part)),
        1 => format!("`{}", Escaped(part)),
        _ => Escaped(part).to_string(),
    };
    parts.map(part).collect()
}

fn tone(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "plain",
        Tone::Head => "head",
        Tone::Quiet => "quiet",
        Tone::Change => "change",
        Tone::Bad => "bad",
        Tone::Good => "good",
        Tone::Doubtful => "doubtful",
        Tone::Delayed => "delayed",
        Tone::Overtaking => "overtaking",
    }
}

fn table(table: &Table) -> String {
    let mut html = "<div class=\"wide\"><table>".to_string();
    for row in table.rows() {
        html += "<tr>";
        for cell in row {
            let _ = write!(html, "<td class=\"{}\">{}</td>", tone(cell.tone), Escaped(&cell.text));
        }
        html += "</tr>";
    }
    html + "</table></div>"
}

fn changed(change: &ChangedLines) -> String {
    let places = change.places.iter().map(|place| format!("<li>{}</li>", quoted(place)));
    let mut html = format!("<ul>{}</ul><div class=\"code change\">", places.collect::<String>());
    for line in &change.excerpt {
        let (class, label, text) = match line {
            SourceLine::Old(number, text) => ("line", number.to_string(), text),
            SourceLine::Marked(number, text) => ("line hit", number.to_string(), text),
            SourceLine::New(text) => ("line new", "+".to_string(), text),
        };
        let _ = write!(
            html,
            "<div class=\"{class}\"><span class=\"n\">{label}</span><code>{}</code></div>",
            Escaped(text)
        );
    }
    html + "</div>"
}

fn facts(facts: &[Fact]) -> String {
    let mut html = "<dl class=\"facts\">".to_string();
    for fact in facts {
        let part = if fact.part { " class=\"part\"" } else { "" };
        let _ = write!(html, "<dt{part}>{}</dt><dd>{}</dd>", Escaped(fact.label), Escaped(&fact.value));
    }
    html + "</dl>"
}

fn run(run: &RunTable, id: String) -> String {
    let (count, scene) = (run.rows.len(), &run.scene);
    let whole = count <= lanes::LONG;
    let step = if whole { count.max(1) } else { PIECE };
    let pieces = (0..count).step_by(step).enumerate().map(|(n, from)| {
        let to = (from + step).min(count);
        let rows = lanes::Rows::of(run, from..to);
        let svg = lanes::picture(run, &rows, &format!("{id}p{n}")).inline("The run");
        Piece { from, to, open: from == 0 || to == count, svg }
    });
    let pieces: Vec<Piece> = pieces.collect();
    let shown = scene.shown();
    let last = scene.last(run.rows.iter().map(|row| row.thread));
    let thread = |(t, name): (usize, &String)| ThreadView {
        name: name.clone(),
        buffer: last.buffers[t]
            .iter()
            .rev()
            .map(|&(cell, value)| (scene.cells[cell].clone(), value))
            .collect(),
        registers: scene.registers[t].iter().cloned().zip(last.registers[t].iter().copied()).collect(),
    };
    let data = json!({
        "threads": run.threads,
        "cells": scene.cells,
        "shown": shown,
        "initial": scene.initial.iter().map(|&value| number(value)).collect::<Value>(),
        "registers": scene.registers,
        "starts": scene.starts,
        "steps": run.rows.iter().zip(&scene.moves).map(|(row, step)| step.json(row.thread)).collect::<Value>(),
    });
    rendered(&RunView {
        id,
        count,
        whole,
        pieces,
        memory: shown.iter().map(|&cell| (scene.cells[cell].clone(), last.memory[cell])).collect(),
        threads: run.threads.iter().enumerate().map(thread).collect(),
        // Inside a script nothing is escaped, so nothing may look like its end.
        data: data.to_string().replace('<', "\\u003c"),
    })
}

/// As hashes of scripts are written.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let number = three.iter().enumerate().map(|(k, &b)| u32::from(b) << (16 - 8 * k)).sum::<u32>();
        for k in 0..4 {
            let letter = LETTERS[(number >> (18 - 6 * k)) as usize & 63] as char;
            text.push(if k <= three.len() { letter } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_written_as_browsers_read_them() {
        assert_eq!(
            (base64(b"Man"), base64(b"Ma"), base64(b"M")),
            ("TWFu".into(), "TWE=".into(), "TQ==".into())
        );
    }

    #[test]
    fn what_is_quoted_is_code() {
        assert_eq!(quoted("a `b<c` d"), "a <code>b&lt;c</code> d");
        assert_eq!(quoted("a `b"), "a `b");
    }
}

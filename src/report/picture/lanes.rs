//! A run as lanes: one column for each thread, time going down. A store is joined to its flush by the time that it
//! waits, and a load to the write whose value it reads; a store that is overtaken, and the load that overtakes it,
//! are drawn bold. Where threads are many their columns are narrow, and words stand beside them.

use super::{Escaped, Picture, cut};
use crate::report::scene::MoveKind;
use crate::report::steps::{RunRow, RunTable};
use std::fmt::Write;
use std::ops::Range;

/// Up to so many threads the words stand in the lanes.
const WIDE_THREADS: usize = 4;
/// From so many rows on, local steps between others are drawn as one.
pub(crate) const LONG: usize = 400;
/// The least room for the numbers of rows.
const GUTTER: u32 = 34;
const HEAD: u32 = 34;
const EVENT: u32 = 42;
const LOCAL: u32 = 20;
const NARROW: u32 = 34;
/// The part of a lane in which stores wait.
const QUEUE: u32 = 30;

/// Which rows of a run a picture shows, and where each lies.
pub(crate) struct Rows {
    range: Range<usize>,
    /// Per row of the range, where it begins, and how high it is; several local steps may share a place.
    places: Vec<(u32, u32)>,
    /// How many rows share the place, for the first of them.
    together: Vec<usize>,
    height: u32,
}

impl Rows {
    pub(crate) fn of(run: &RunTable, range: Range<usize>) -> Rows {
        let fold = run.rows.len() > LONG;
        let wide = run.threads.len() <= WIDE_THREADS;
        let (mut y, mut places, mut together) = (HEAD + 6, Vec::new(), Vec::new());
        let mut group: Option<usize> = None;
        for (k, row) in run.rows[range.clone()].iter().enumerate() {
            let folds = fold && row.local && !row.starred;
            let same = group.filter(|&first| folds && run.rows[range.start + first].thread == row.thread);
            together.push(1);
            if let Some(first) = same {
                together[first] += 1;
                places.push(places[first]);
                continue;
            }
            group = folds.then_some(k);
            let height = if row.local || !wide { LOCAL.max(if wide { 0 } else { 26 }) } else { EVENT };
            places.push((y, height));
            y += height;
        }
        Rows { range, places, together, height: y + 8 }
    }

    /// The middle of a row, if it is shown; otherwise the edge on whose side it lies.
    fn middle(&self, row: usize) -> u32 {
        match row.checked_sub(self.range.start) {
            None => HEAD,
            Some(k) if k >= self.places.len() => self.height,
            Some(k) => self.places[k].0 + self.places[k].1 / 2,
        }
    }
}

struct Drawing<'a> {
    run: &'a RunTable,
    rows: &'a Rows,
    wide: bool,
    /// The room for the numbers of rows.
    gutter: u32,
    /// The width of a lane, and of the words beside them.
    lane: u32,
    words: u32,
    id: &'a str,
}

/// The rows as a picture. `id` is one that no other picture around it has.
pub(crate) fn picture(run: &RunTable, rows: &Rows, id: &str) -> Picture {
    let wide = run.threads.len() <= WIDE_THREADS;
    let shown = &run.rows[rows.range.clone()];
    let longest = |part: fn(&RunRow) -> usize, px: f32| shown.iter().map(part).max().unwrap_or(0) as f32 * px;
    let words = longest(|row| row.text.chars().count(), 7.6)
        .max(longest(|row| brief(row).chars().count(), 6.7)) as u32;
    let (lane, words) = match wide {
        true => ((words + 18 + 12 + QUEUE).clamp(124, 300), 0),
        false => (
            NARROW,
            (longest(|row| row.text.chars().count() + brief(row).chars().count(), 7.6) as u32 + 150).min(560),
        ),
    };
    // Rows that are told together have two numbers.
    let numbers = if rows.together.iter().any(|n| *n > 1) { 2 } else { 1 };
    let digits = rows.range.end.checked_ilog10().unwrap_or(0) + 1;
    let gutter = GUTTER.max(7 * (numbers * (digits + 1)) + 6);
    let drawing = Drawing { run, rows, wide, gutter, lane, words, id };
    let width = gutter + lane * run.threads.len() as u32 + words + 6;
    Picture { width, height: rows.height, body: drawing.body() }
}

/// What a row did, in as few words as there are.
fn brief(row: &RunRow) -> String {
    let short = row.effect.split(", the store in row").next().unwrap_or_default();
    short
        .replace(", from memory", "")
        .replace(", from its own store in row", " ← row")
        .replace(" in the buffer", "")
}

impl Drawing<'_> {
    fn body(&self) -> String {
        let mut text = format!(
            "<defs><marker id=\"{}a\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" \
             orient=\"auto-start-reverse\"><path class=\"tip\" d=\"M0 0L8 4L0 8z\"/></marker></defs>",
            self.id
        );
        for (t, name) in self.run.threads.iter().enumerate() {
            self.lane(&mut text, t, name);
        }
        for k in self.rows.range.clone() {
            self.links(&mut text, k);
        }
        // What begins or ends in another piece of the run.
        for k in self.rows.range.end..self.run.rows.len() {
            self.waiting(&mut text, k);
        }
        for k in self.rows.range.clone() {
            self.row(&mut text, k);
        }
        text
    }

    fn left(&self, t: usize) -> u32 {
        self.gutter + self.lane * t as u32
    }

    fn lane(&self, text: &mut String, t: usize, name: &str) {
        let (x, width) = (self.left(t) + 3, self.lane - 6);
        let _ = write!(
            text,
            "<rect class=\"lane\" x=\"{x}\" y=\"2\" width=\"{width}\" height=\"{}\" rx=\"8\"/>",
            self.rows.height - 4
        );
        let shown = cut(name, (self.lane as usize / 8).max(3));
        let _ = write!(
            text,
            "<text class=\"name\" x=\"{}\" y=\"24\"><title>{}</title>{}</text>",
            x + width / 2,
            Escaped(name),
            Escaped(&shown)
        );
    }

    /// How a store waits, and where a load's value comes from.
    fn links(&self, text: &mut String, k: usize) {
        self.waiting(text, k);
        let (row, step) = (&self.run.rows[k], &self.run.scene.moves[k]);
        let y = self.rows.middle(k);
        if step.reads_initial && row.tone != crate::report::table::Tone::Quiet {
            let x = if self.wide { self.left(row.thread) + 9 } else { self.left(row.thread) + 5 };
            let _ = write!(text, "<circle class=\"init\" cx=\"{x}\" cy=\"{y}\" r=\"2.5\"/>");
        }
        let Some(write) = step.reads else { return };
        let (from, to) = (self.run.rows[write].thread, row.thread);
        let (above, left) =
            (self.rows.middle(write), |t: usize| self.left(t) + if self.wide { 12 } else { 8 });
        let right = |t: usize| self.left(t) + self.lane - if self.wide { QUEUE } else { 8 };
        let path = match from.cmp(&to) {
            std::cmp::Ordering::Equal => {
                let x = left(to);
                format!("M{x} {above}C{0} {above} {0} {y} {x} {y}", x.saturating_sub(12))
            }
            std::cmp::Ordering::Less => curve((right(from), above), (left(to), y)),
            std::cmp::Ordering::Greater => curve((left(from), above), (right(to), y)),
        };
        let _ = write!(text, "<path class=\"r\" d=\"{path}\" marker-end=\"url(#{}a)\"/>", self.id);
    }

    /// The time that a store waits, drawn by its flush, if a part of it lies among the rows shown.
    fn waiting(&self, text: &mut String, flush: usize) {
        let Some(store) = self.run.scene.moves[flush].store else { return };
        if store >= self.rows.range.end {
            return;
        }
        let (from, to) = (self.rows.middle(store), self.rows.middle(flush));
        let t = self.run.rows[flush].thread;
        let right = self.left(t) + self.lane;
        let bold = if self.run.scene.moves[store].overtaken_by.is_some() { " o" } else { "" };
        let path = match self.wide {
            true => {
                let edge = right - QUEUE;
                let x = right - QUEUE + 8 + 6 * (store as u32 % 3);
                let begin = if store >= self.rows.range.start {
                    format!("M{edge} {from}H{x}")
                } else {
                    format!("M{x} {from}")
                };
                let end = if flush < self.rows.range.end { format!("H{edge}") } else { String::new() };
                format!("{begin}V{to}{end}")
            }
            false => format!("M{0} {from}V{to}", right - 10 + (store as u32 % 2) * 4),
        };
        let _ = write!(text, "<path class=\"w{bold}\" d=\"{path}\"/>");
    }

    fn row(&self, text: &mut String, k: usize) {
        let (row, step) = (&self.run.rows[k], &self.run.scene.moves[k]);
        let (place, together) = (k - self.rows.range.start, self.rows.together[k - self.rows.range.start]);
        let (y, height) = self.rows.places[place];
        let shared = place > 0 && self.rows.places[place - 1].0 == y;
        if shared {
            return;
        }
        let overtakes = self.run.scene.moves[..k].iter().any(|s| s.overtaken_by == Some(k))
            && self.run.rows.len() <= LONG;
        let bold = if step.overtaken_by.is_some() || overtakes { " o" } else { "" };
        let bad = if row.effect_tone == crate::report::table::Tone::Bad { " bad" } else { "" };
        let mut open = |class: &str| {
            let star = if row.starred { " c" } else { "" };
            let _ = write!(text, "<g class=\"k {class}{bold}{bad}{star}\" data-k=\"{k}\">");
        };
        if together > 1 {
            open("q");
            let words = format!("{together} local steps");
            self.local(text, row.thread, (y, height), &format!("{}–{}", k + 1, k + together), &words);
        } else if row.local && self.wide {
            open("q");
            let words = if row.effect.is_empty() {
                row.text.clone()
            } else {
                format!("{}: {}", row.text, brief(row))
            };
            self.local(text, row.thread, (y, height), &(k + 1).to_string(), &words);
        } else {
            open(class(step.kind));
            self.event(text, k, (y, height));
        }
        text.push_str("</g>");
    }

    fn local(&self, text: &mut String, t: usize, (y, height): (u32, u32), number: &str, words: &str) {
        let _ = write!(
            text,
            "<text class=\"no\" x=\"{}\" y=\"{}\">{number}</text>",
            self.gutter - 4,
            y + height / 2 + 4
        );
        let x = if self.wide { self.left(t) + 16 } else { self.beside() };
        let room = if self.wide { (self.lane - QUEUE) / 7 } else { self.words / 8 };
        let shown = cut(words, room as usize);
        let title = if shown == words { String::new() } else { format!("<title>{}</title>", Escaped(words)) };
        let _ =
            write!(text, "<text x=\"{x}\" y=\"{}\">{title}{}</text>", y + height / 2 + 4, Escaped(&shown));
    }

    /// Where words begin that stand beside all lanes.
    fn beside(&self) -> u32 {
        self.left(self.run.threads.len()) + 10
    }

    fn event(&self, text: &mut String, k: usize, (y, height): (u32, u32)) {
        let row = &self.run.rows[k];
        let _ = write!(
            text,
            "<text class=\"no\" x=\"{}\" y=\"{}\">{}</text>",
            self.gutter - 4,
            y + height / 2 + 4,
            k + 1
        );
        if let Some((owner, _)) = row.block {
            let x = self.left(owner) + 5;
            let _ = write!(text, "<path class=\"block\" d=\"M{x} {y}v{height}\"/>");
        }
        if !self.wide {
            let (x, middle) = (self.left(row.thread) + self.lane / 2 - 3, y + height / 2);
            let _ = write!(text, "<circle cx=\"{x}\" cy=\"{middle}\" r=\"8\"/>");
            let words = [&self.run.threads[row.thread][..], &row.text, &brief(row)].join(" · ");
            let shown = cut(&words, self.words as usize / 8);
            let _ =
                write!(text, "<text x=\"{}\" y=\"{}\">{}</text>", self.beside(), middle + 4, Escaped(&shown));
            return;
        }
        let (x, width) = (self.left(row.thread) + 12, self.lane - 12 - QUEUE);
        let _ = write!(
            text,
            "<rect x=\"{x}\" y=\"{}\" width=\"{width}\" height=\"{}\" rx=\"6\"/>",
            y + 3,
            height - 6
        );
        let shown = cut(&row.text, (width as usize).saturating_sub(8) * 10 / 75);
        let title =
            if shown == row.text { String::new() } else { format!("<title>{}</title>", Escaped(&row.text)) };
        let effect = cut(&brief(row), (width as usize).saturating_sub(8) * 10 / 66);
        let lift = if effect.is_empty() { 25 } else { 18 };
        let _ = write!(text, "<text x=\"{}\" y=\"{}\">{title}{}</text>", x + 7, y + lift, Escaped(&shown));
        if !effect.is_empty() {
            let _ = write!(
                text,
                "<text class=\"e\" x=\"{}\" y=\"{}\">{}</text>",
                x + 7,
                y + 33,
                Escaped(&effect)
            );
        }
    }
}

/// From one side of a lane to that of another.
fn curve((x, y): (u32, u32), (to, down): (u32, u32)) -> String {
    let bend = (x.abs_diff(to) / 2).max(16);
    let (out, back) =
        if to > x { (x + bend, to.saturating_sub(bend)) } else { (x.saturating_sub(bend), to + bend) };
    format!("M{x} {y}C{out} {y} {back} {down} {to} {down}")
}

fn class(kind: MoveKind) -> &'static str {
    match kind {
        MoveKind::Store => "s",
        MoveKind::Load => "l",
        MoveKind::Flush => "f",
        MoveKind::Fence => "b",
        MoveKind::Locked => "x",
        MoveKind::Local => "n",
    }
}

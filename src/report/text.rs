//! How did it happen? A trace as people read it: one row for each event, one column for each thread.
//!
//! The instruction stands in its thread's column, as the file has it; to the right, what it did: the value it
//! read and from where, the memory it changed, the buffer it left. Stores that wait in a buffer and the flushes
//! that end the wait refer to each other by row. If the columns do not fit the width, there is one, with the
//! thread's name in front. Buffers, memory and registers are recomputed by walking the events; whether the events
//! are a run of the program is for others to judge.

use super::table::{Align, Cell, Color, Table, Tone, paint};
use super::{equation, trap_words};
use crate::model::{Addr, Atom, Expr, Instr, Program, PropertyKind, Thread, ThreadId, UnOp, Value};
use crate::query::{Against, Event, Kind, Model, Source, Trace};
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Letters in a line.
    pub width: usize,
    pub color: bool,
}

const INDENT: usize = 2;

/// A run to a forbidden state, and what that state is against.
pub fn trace(program: &Program, trace: &Trace, style: Style) -> String {
    let (table, walk) = walked(program, trace.model, &trace.events, &[], style);
    let ending = ending(program, trace, &walk);
    format!("{table}\n{}\n", paint(&ending, Tone::Bad, color(style)))
}

/// A run, with a star in front of some of its events.
pub fn run(program: &Program, model: Model, events: &[Event], starred: &[usize], style: Style) -> String {
    walked(program, model, events, starred, style).0
}

fn walked<'a>(
    program: &'a Program,
    model: Model,
    events: &[Event],
    starred: &[usize],
    style: Style,
) -> (String, Walk<'a>) {
    let mut walk = Walk::new(program, model);
    let mut rows: Vec<Row> = events.iter().enumerate().map(|(k, e)| walk.row(k, e)).collect();
    for &k in starred {
        rows[k].starred = true;
    }
    let wide = table(program, &rows, Layout::Columns);
    let table = if wide.width(INDENT) <= style.width { wide } else { table(program, &rows, Layout::Single) };
    (table.render(INDENT, color(style)), walk)
}

fn color(style: Style) -> Color {
    if style.color { Color::On } else { Color::Off }
}

/// What one event is, in words.
struct Row {
    starred: bool,
    thread: ThreadId,
    line: u32,
    text: String,
    tone: Tone,
    /// The thread inside a `lock` … `unlock` block, and how its bar looks in this row.
    block: Option<(ThreadId, char)>,
    effect: String,
    effect_tone: Tone,
    /// The thread's buffer afterwards, if it changed.
    buffer: Option<String>,
}

/// The state of the run, as far as the rows need it.
struct Walk<'a> {
    program: &'a Program,
    model: Model,
    memory: Vec<Value>,
    registers: Vec<Vec<Value>>,
    buffers: Vec<VecDeque<(Addr, Value)>>,
    owner: Option<ThreadId>,
}

impl<'a> Walk<'a> {
    fn new(program: &'a Program, model: Model) -> Self {
        let threads = program.threads();
        Walk {
            program,
            model,
            memory: program.initial_memory().to_vec(),
            registers: threads.iter().map(|t| vec![0; t.registers().len()]).collect(),
            buffers: vec![VecDeque::new(); threads.len()],
            owner: None,
        }
    }

    fn row(&mut self, index: usize, event: &Event) -> Row {
        let t = event.thread();
        let thread = self.program.thread(t);
        let edge = thread.edge(event.edge);
        let (effect, mut effect_tone) = match event.trap {
            Some(trap) => (trap_words(trap), Tone::Bad),
            None => self.effect(index, event, &edge.instr),
        };
        let quiet = matches!(event.kind, Kind::Assign | Kind::Assume) && event.trap.is_none();
        if quiet {
            effect_tone = Tone::Quiet;
        }
        let moved = event.trap.is_none()
            && (event.kind == Kind::Flush || event.kind == Kind::Store && self.model == Model::Tso);
        Row {
            starred: false,
            thread: t,
            line: edge.line,
            text: instruction(self.program, thread, event),
            tone: if quiet || event.kind == Kind::Flush { Tone::Quiet } else { Tone::Plain },
            block: self.block(t, event, &edge.instr),
            effect,
            effect_tone,
            buffer: moved.then(|| self.buffer(t)),
        }
    }

    /// Lets the event happen, and says what it did.
    fn effect(&mut self, index: usize, event: &Event, instr: &Instr) -> (String, Tone) {
        let (t, value) = (event.thread(), event.value.unwrap_or_default());
        if let Some(dst) = instr.target().filter(|_| event.kind != Kind::Flush) {
            self.registers[t.index()][dst.index()] = value;
        }
        match (event.kind, event.address) {
            (Kind::Load, _) => (self.loaded(t, instr, event), Tone::Plain),
            (Kind::Store, Some(a)) if self.model == Model::Tso => {
                self.buffers[t.index()].push_back((a, value));
                let name = self.program.cell_name(a);
                (format!("{} waits in the buffer", equation(&name, value)), Tone::Plain)
            }
            (Kind::Store, Some(a)) => (self.changed(a, value), Tone::Change),
            (Kind::Flush, Some(a)) => {
                self.buffers[t.index()].pop_front();
                (format!("{}{}", self.changed(a, value), flushed(index, event)), Tone::Change)
            }
            (Kind::Locked, Some(a)) => {
                let read = self.loaded(t, instr, event);
                let left = event.written.map(|v| self.changed(a, v));
                (left.map_or(read.clone(), |left| format!("{read}; {left}")), Tone::Change)
            }
            (Kind::Assign, _) => (self.assigned(t, instr, value), Tone::Quiet),
            (Kind::Assume, _) => (condition(self.program.thread(t), instr), Tone::Quiet),
            _ => (String::new(), Tone::Plain),
        }
    }

    fn assigned(&self, t: ThreadId, instr: &Instr, value: Value) -> String {
        let thread = self.program.thread(t);
        instr.target().map_or(String::new(), |dst| equation(thread.register_name(dst), value))
    }

    fn loaded(&self, t: ThreadId, instr: &Instr, event: &Event) -> String {
        let value = self.assigned(t, instr, event.value.unwrap_or_default());
        match event.source {
            Some(Source::Buffer(store)) => format!("{value}, from its own store in row {}", store + 1),
            _ => format!("{value}, from memory"),
        }
    }

    fn changed(&mut self, a: Addr, value: Value) -> String {
        let (name, cell) = (self.program.cell_name(a), &mut self.memory[a.index()]);
        let before = std::mem::replace(cell, value);
        if before == value { format!("{name} stays {value}") } else { format!("{name}: {before} -> {value}") }
    }

    fn buffer(&self, t: ThreadId) -> String {
        let waiting: Vec<String> = self.buffers[t.index()]
            .iter()
            .map(|(a, v)| format!("{}={v}", self.program.cell_name(*a)))
            .collect();
        if waiting.is_empty() { "empty".to_string() } else { waiting.join(" ") }
    }

    fn block(&mut self, t: ThreadId, event: &Event, instr: &Instr) -> Option<(ThreadId, char)> {
        match instr {
            Instr::Lock if event.kind == Kind::Locked => {
                self.owner = Some(t);
                Some((t, '┌'))
            }
            Instr::Unlock if event.kind == Kind::Locked => self.owner.take().map(|owner| (owner, '└')),
            _ => self.owner.map(|owner| (owner, '│')),
        }
    }

    fn value(&self, atom: &Atom) -> Option<Value> {
        match atom {
            Atom::At(..) => None,
            Atom::Reg(t, r) => Some(self.registers[t.index()][r.index()]),
            Atom::Mem(a) => Some(self.memory[a.index()]),
        }
    }
}

/// A flush that follows its store at once needs no reference.
fn flushed(index: usize, event: &Event) -> String {
    match event.store {
        Some(store) if store + 1 != index => format!(", the store in row {}", store + 1),
        _ => String::new(),
    }
}

/// The instruction as the file has it, or the flush of a store.
pub fn instruction(program: &Program, thread: &Thread, event: &Event) -> String {
    let edge = thread.edge(event.edge);
    match (event.kind, event.address) {
        (Kind::Flush, Some(a)) => format!("flush {}", program.cell_name(a)),
        _ if edge.text.is_empty() => thread.show_instr(program, &edge.instr),
        _ => edge.text.clone(),
    }
}

/// Which way a branch went.
fn condition(thread: &Thread, instr: &Instr) -> String {
    match instr {
        Instr::Assume(Expr::Unary(UnOp::Not, e)) => format!("{} is false", thread.show_expr(e)),
        Instr::Assume(e) if e.constant().is_none() => format!("{} is true", thread.show_expr(e)),
        _ => String::new(),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// One column for each thread.
    Columns,
    /// One for all, and one for the thread's name.
    Single,
}

fn table(program: &Program, rows: &[Row], layout: Layout) -> Table {
    let threads: Vec<ThreadId> = taking_part(program, rows);
    let shown = if layout == Layout::Columns { threads.len() } else { 2 };
    let mut columns = vec![Align::Left, Align::Right];
    columns.extend(vec![Align::Left; shown]);
    columns.extend([Align::Right, Align::Left, Align::Left]);
    let mut table = Table::new(columns);
    table.row(heading(program, rows, &threads, layout));
    for (k, row) in rows.iter().enumerate() {
        let star = if row.starred { "*" } else { "" };
        let mut cells = vec![Cell::new(star, Tone::Bad), Cell::new((k + 1).to_string(), Tone::Quiet)];
        match layout {
            Layout::Columns => cells.extend(threads.iter().map(|t| in_column(row, *t))),
            Layout::Single => {
                cells.push(Cell::new(program.thread(row.thread).name(), Tone::Head));
                cells.push(in_column(row, row.thread));
            }
        }
        let line = if row.line == 0 { String::new() } else { row.line.to_string() };
        cells.push(Cell::new(line, Tone::Quiet));
        cells.push(Cell::new(row.effect.clone(), row.effect_tone));
        cells.push(Cell::new(row.buffer.clone().unwrap_or_default(), Tone::Plain));
        table.row(cells);
    }
    table
}

/// Threads that do nothing need no column.
fn taking_part(program: &Program, rows: &[Row]) -> Vec<ThreadId> {
    program.thread_ids().filter(|t| rows.iter().any(|row| row.thread == *t)).collect()
}

fn heading(program: &Program, rows: &[Row], threads: &[ThreadId], layout: Layout) -> Vec<Cell> {
    let mut cells = vec![Cell::default(), Cell::default()];
    match layout {
        Layout::Columns => {
            cells.extend(threads.iter().map(|t| Cell::new(program.thread(*t).name(), Tone::Head)));
        }
        Layout::Single => cells.extend([Cell::default(), Cell::default()]),
    }
    let lines = if rows.iter().any(|row| row.line != 0) { "line" } else { "" };
    let buffers = if rows.iter().any(|row| row.buffer.is_some()) { "buffer" } else { "" };
    cells.push(Cell::new(lines, Tone::Quiet));
    cells.push(Cell::default());
    cells.push(Cell::new(buffers, Tone::Quiet));
    cells
}

/// What a row shows in a thread's column: its instruction, and the bar of a block it holds.
fn in_column(row: &Row, t: ThreadId) -> Cell {
    match (row.thread == t, row.block) {
        (true, Some((owner, bar))) if owner == t => Cell::new(format!("{bar} {}", row.text), row.tone),
        (true, _) => Cell::new(row.text.clone(), row.tone),
        (false, Some((owner, _))) if owner == t => Cell::new("│", Tone::Quiet),
        (false, _) => Cell::default(),
    }
}

/// What the last state is against, in the words of the file, and the values that make it so.
fn ending(program: &Program, trace: &Trace, walk: &Walk) -> String {
    match trace.against {
        Against::Trap(t, trap) => {
            let thread = program.thread(t);
            let words = format!("error of thread {}: {}", thread.name(), trap_words(trap));
            match trace.events.iter().rfind(|e| e.trap.is_some()) {
                Some(e) => format!(
                    "{words} in line {}: {}",
                    thread.edge(e.edge).line,
                    instruction(program, thread, e)
                ),
                None => words,
            }
        }
        Against::Property(index) => {
            let property = &program.properties()[index];
            let place =
                if property.line == 0 { String::new() } else { format!(" in line {}", property.line) };
            let verb = match property.kind {
                PropertyKind::Forbid | PropertyKind::Never => "forbidden",
                PropertyKind::Exists => "found, as asked",
                PropertyKind::Forall => "not what is required",
            };
            let mut values: Vec<String> = Vec::new();
            property.pred.for_each_atom(&mut |atom| {
                if let Some(v) = walk.value(atom) {
                    let text = equation(&program.show_atom(atom), v);
                    if !values.contains(&text) {
                        values.push(text);
                    }
                }
            });
            let values = if values.is_empty() { String::new() } else { format!(" ({})", values.join(", ")) };
            format!("{verb}{place}: {}{values}", property.show(program))
        }
    }
}

#[cfg(test)]
pub mod tests;

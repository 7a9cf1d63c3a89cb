//! How did it happen? A run as a table of its steps: what each event is, in the words of the file, and what
//! it did, the value it read and from where, the memory it changed, the buffer it left.
//!
//! Stores that wait in a buffer and the flushes that end the wait refer to each other by row. Buffers, memory
//! and registers are recomputed by walking the events; whether the events are a run of the program is for
//! `certify` to judge.

use super::document::{Block, Paragraph};
use super::scene::{Move, MoveKind, Scene};
use super::table::Tone;
use super::{equation, trap_words};
use crate::model::{
    Addr, Atom, Bytes, Case, Expr, Instr, Loc, Pred, Program, PropertyKind, Thread, ThreadId, UnOp, Value,
};
use crate::query::{Against, Event, EventKind, Model, Source, Trace, at, delays};
use std::collections::VecDeque;

/// The steps of a run.
#[derive(Clone, Debug)]
pub struct RunTable {
    /// The names of the threads that take part.
    pub threads: Vec<String>,
    pub rows: Vec<RunRow>,
    /// What pictures show of it.
    pub scene: Scene,
}

/// What one event is, in words. Threads are given by their places among those that take part.
#[derive(Clone, Debug)]
pub struct RunRow {
    pub starred: bool,
    /// A step between those that touch memory, without a choice, and not the last one of all.
    pub local: bool,
    pub thread: usize,
    /// In the words of a column, empty if there is none.
    pub line: String,
    pub text: String,
    pub tone: Tone,
    /// What machines see where the text is that of a source, or nothing.
    pub asm: String,
    /// The thread inside a `lock` … `unlock` block, and how its bar looks in this row.
    pub block: Option<(usize, char)>,
    pub effect: String,
    pub effect_tone: Tone,
    /// The thread's buffer afterwards, if it changed.
    pub buffer: Option<String>,
}

/// A run to a forbidden state, and what that state is against.
pub fn trace(program: &Program, trace: &Trace) -> [Block; 2] {
    let (steps, simulation) = walked(program, trace.model, &trace.events, &[]);
    let lines = vec![ending(program, trace, &simulation)];
    [Block::Run(steps), Block::Paragraph(Paragraph { lines, items: vec![], tone: Tone::Bad })]
}

/// The case of a quantified property that the last state of the run is against, if it is against such a one.
pub fn failing_case<'a>(program: &'a Program, trace: &Trace) -> Option<&'a Case> {
    walked(program, trace.model, &trace.events, &[]).1.failing_case(trace)
}

/// A run, with a star in front of some of its events.
pub fn run(program: &Program, model: Model, events: &[Event], starred: &[usize]) -> Block {
    Block::Run(walked(program, model, events, starred).0)
}

fn walked<'a>(
    program: &'a Program,
    model: Model,
    events: &[Event],
    starred: &[usize],
) -> (RunTable, Simulation<'a>) {
    // Threads that do nothing need no column.
    let takes_part = |t: &ThreadId| events.iter().any(|e| e.thread() == *t);
    let threads: Vec<ThreadId> = program.thread_ids().filter(takes_part).collect();
    let mut simulation = Simulation::new(program, model, &threads);
    let mut scene = simulation.scene(&threads);
    let mut rows = Vec::with_capacity(events.len());
    for (k, event) in events.iter().enumerate() {
        rows.push(simulation.row(k, event));
        scene.moves.push(simulation.moved(k, event));
    }
    if model == Model::Tso {
        for (store, load) in delays(events) {
            scene.moves[store].overtaken_by = Some(load);
            rows[store].tone = Tone::Delayed;
            rows[load].tone = Tone::Overtaking;
        }
    }
    for &k in starred {
        rows[k].starred = true;
    }
    if let Some(last) = rows.last_mut() {
        last.local = false;
    }
    let threads = threads.into_iter().map(|t| program.thread(t).name().to_string()).collect();
    (RunTable { threads, rows, scene }, simulation)
}

/// The state of the run, as far as the rows need it.
struct Simulation<'a> {
    program: &'a Program,
    model: Model,
    memory: Vec<Value>,
    at: Vec<Loc>,
    registers: Vec<Vec<Value>>,
    buffers: Vec<VecDeque<(Addr, Bytes, Value)>>,
    owner: Option<ThreadId>,
    /// Per cell the event that wrote it last.
    writers: Vec<Option<usize>>,
    /// Per thread its place among those that take part.
    places: Vec<usize>,
}

impl<'a> Simulation<'a> {
    fn new(program: &'a Program, model: Model, taking_part: &[ThreadId]) -> Self {
        let threads = program.threads();
        let mut places = vec![0; threads.len()];
        for (place, t) in taking_part.iter().enumerate() {
            places[t.index()] = place;
        }
        Simulation {
            program,
            model,
            memory: program.initial_memory().to_vec(),
            at: threads.iter().map(Thread::initial).collect(),
            registers: threads.iter().map(|t| vec![0; t.registers().len()]).collect(),
            buffers: vec![VecDeque::new(); threads.len()],
            owner: None,
            writers: vec![None; program.cells()],
            places,
        }
    }

    fn row(&mut self, index: usize, event: &Event) -> RunRow {
        let t = event.thread();
        let thread = self.program.thread(t);
        let edge = thread.edge(event.edge);
        let (effect, mut effect_tone) = match event.trap {
            Some(trap) => (trap_words(trap), Tone::Bad),
            None => self.effect(index, event, &edge.instr),
        };
        let quiet = matches!(event.kind, EventKind::Assign | EventKind::Assume) && event.trap.is_none();
        if quiet {
            effect_tone = Tone::Quiet;
        }
        let moved = event.trap.is_none()
            && (event.kind == EventKind::Flush || event.kind == EventKind::Store && self.model == Model::Tso);
        RunRow {
            starred: false,
            local: quiet && !matches!(edge.instr, Instr::Any { .. }),
            thread: self.places[t.index()],
            line: self.program.place(edge.line).short(),
            asm: match self.program.code(edge.line) {
                Some(code) if event.kind != EventKind::Flush && code.words() != code.asm => code.asm.clone(),
                _ => String::new(),
            },
            text: instruction(self.program, thread, event),
            tone: if quiet || event.kind == EventKind::Flush { Tone::Quiet } else { Tone::Plain },
            block: self.block(t, event, &edge.instr).map(|(owner, bar)| (self.places[owner.index()], bar)),
            effect,
            effect_tone,
            buffer: moved.then(|| self.buffer(t)),
        }
    }

    /// Where the run begins.
    fn scene(&self, threads: &[ThreadId]) -> Scene {
        Scene {
            cells: (0..self.program.cells()).map(|a| self.program.cell_name(Addr(a as u32))).collect(),
            initial: self.memory.clone(),
            registers: threads.iter().map(|&t| self.program.thread(t).registers().to_vec()).collect(),
            starts: threads.iter().map(|&t| self.line_ahead(t)).collect(),
            moves: Vec::new(),
        }
    }

    /// The line that the thread goes on with.
    fn line_ahead(&self, t: ThreadId) -> u32 {
        let edges = self.program.thread(t).edges_from(self.at[t.index()]);
        edges.first().map_or(0, |(_, edge)| edge.line)
    }

    /// What an event that has happened did, for pictures.
    fn moved(&mut self, index: usize, event: &Event) -> Move {
        let (t, value) = (event.thread(), event.value.unwrap_or_default());
        let edge = self.program.thread(t).edge(event.edge);
        let mut step = Move { line: edge.line, next: self.line_ahead(t), ..Move::default() };
        step.kind = match event.kind {
            EventKind::Load => MoveKind::Load,
            EventKind::Store => MoveKind::Store,
            EventKind::Flush => MoveKind::Flush,
            EventKind::Fence | EventKind::Membarrier => MoveKind::Fence,
            EventKind::Locked => MoveKind::Locked,
            EventKind::Assign | EventKind::Assume => MoveKind::Local,
        };
        if event.trap.is_some() {
            return Move { next: 0, ..step };
        }
        if let Some(dst) = edge.instr.target().filter(|_| event.kind != EventKind::Flush) {
            step.registers.push((dst.index(), value));
        }
        let Some(cell) = event.address.map(Addr::index) else { return step };
        match event.source {
            Some(Source::Buffer(store)) => step.reads = Some(store),
            Some(Source::Memory) => {
                step.reads = self.writers[cell];
                step.reads_initial = step.reads.is_none();
            }
            // No single store is what it reads.
            Some(Source::Merged) | None => {}
        }
        let written = match event.kind {
            EventKind::Store if self.model == Model::Tso => {
                step.enters.push((cell, value));
                None
            }
            EventKind::Store => Some(value),
            EventKind::Flush => {
                step.leaves.push(0);
                step.store = event.store;
                Some(value)
            }
            _ => event.written,
        };
        if written.is_some() {
            // A store to a part of a cell leaves what it had besides.
            step.memory.push((cell, self.memory[cell]));
            self.writers[cell] = Some(index);
        }
        step
    }

    /// Lets the event happen, and says what it did.
    fn effect(&mut self, index: usize, event: &Event, instr: &Instr) -> (String, Tone) {
        let (t, value) = (event.thread(), event.value.unwrap_or_default());
        if event.kind != EventKind::Flush {
            self.at[t.index()] = self.program.thread(t).edge(event.edge).to;
        }
        if let Some(dst) = instr.target().filter(|_| event.kind != EventKind::Flush) {
            self.registers[t.index()][dst.index()] = value;
        }
        let bytes = instr.bytes().unwrap_or_default();
        match (event.kind, event.address) {
            (EventKind::Load, _) => (self.loaded(t, instr, event), Tone::Plain),
            (EventKind::Store, Some(a)) if self.model == Model::Tso => {
                self.buffers[t.index()].push_back((a, bytes, value));
                let name = part(self.program, a, bytes);
                (format!("{} waits in the buffer", equation(&name, value)), Tone::Plain)
            }
            (EventKind::Store, Some(a)) => (self.changed(a, bytes, value), Tone::Change),
            (EventKind::Flush, Some(a)) => {
                self.buffers[t.index()].pop_front();
                (format!("{}{}", self.changed(a, bytes, value), flushed(index, event)), Tone::Change)
            }
            (EventKind::Locked, Some(a)) => {
                let read = self.loaded(t, instr, event);
                let left = event.written.map(|v| self.changed(a, bytes, v));
                (left.map_or(read.clone(), |left| format!("{read}; {left}")), Tone::Change)
            }
            (EventKind::Assign, _) => (self.assigned(t, instr, value), Tone::Quiet),
            (EventKind::Assume, _) => (condition(self.program.thread(t), instr), Tone::Quiet),
            _ => (String::new(), Tone::Plain),
        }
    }

    fn assigned(&self, t: ThreadId, instr: &Instr, value: Value) -> String {
        let thread = self.program.thread(t);
        instr.target().map_or(String::new(), |dst| equation(thread.register_name(dst), value))
    }

    fn loaded(&self, t: ThreadId, instr: &Instr, event: &Event) -> String {
        let (thread, found) = (self.program.thread(t), event.value.unwrap_or_default());
        let value = match thread.narrowed(thread.edge(event.edge)) {
            Some((_, dst, bits)) => equation(thread.register_name(dst), found & bits),
            None => self.assigned(t, instr, found),
        };
        match event.source {
            Some(Source::Buffer(store)) => format!("{value}, from its own store in row {}", store + 1),
            Some(Source::Merged) => format!("{value}, byte by byte from its own stores and memory"),
            _ => format!("{value}, from memory"),
        }
    }

    fn changed(&mut self, a: Addr, bytes: Bytes, value: Value) -> String {
        let (name, cell) = (self.program.cell_name(a), &mut self.memory[a.index()]);
        let value = bytes.put(*cell, value);
        let before = std::mem::replace(cell, value);
        if before == value { format!("{name} stays {value}") } else { format!("{name}: {before} -> {value}") }
    }

    fn buffer(&self, t: ThreadId) -> String {
        let waiting: Vec<String> = self.buffers[t.index()]
            .iter()
            .map(|(a, bytes, v)| format!("{}={v}", part(self.program, *a, *bytes)))
            .collect();
        if waiting.is_empty() { "empty".to_string() } else { waiting.join(" ") }
    }

    fn block(&mut self, t: ThreadId, event: &Event, instr: &Instr) -> Option<(ThreadId, char)> {
        match instr {
            Instr::Lock if event.kind == EventKind::Locked => {
                self.owner = Some(t);
                Some((t, '┌'))
            }
            Instr::Unlock if event.kind == EventKind::Locked => self.owner.take().map(|owner| (owner, '└')),
            _ => self.owner.map(|owner| (owner, '│')),
        }
    }

    fn value(&self, atom: &Atom) -> Value {
        match atom {
            Atom::At(t, locs) => at(self.at[t.index()], locs),
            Atom::Reg(t, r) => self.registers[t.index()][r.index()],
            Atom::Mem(a) => self.memory[a.index()],
        }
    }

    fn failing_case(&self, trace: &Trace) -> Option<&'a Case> {
        let Against::Property(index) = trace.against else { return None };
        self.program.properties()[index].cases.iter().find(|case| self.has(&case.pred))
    }

    fn has(&self, pred: &Pred) -> bool {
        pred.eval(&|atom| self.value(atom)).is_ok_and(|value| value != 0)
    }
}

/// A flush that follows its store at once needs no reference.
fn flushed(index: usize, event: &Event) -> String {
    match event.store {
        Some(store) if store + 1 != index => format!(", the store in row {}", store + 1),
        _ => String::new(),
    }
}

/// The name of a cell, or of some of its bytes.
fn part(program: &Program, a: Addr, bytes: Bytes) -> String {
    program.cell_name(a) + &bytes.to_string().replace(' ', "")
}

/// The instruction as the file has it, or the flush of a store.
pub fn instruction(program: &Program, thread: &Thread, event: &Event) -> String {
    let edge = thread.edge(event.edge);
    match (event.kind, event.address) {
        (EventKind::Flush, Some(a)) => format!("flush {}", program.cell_name(a)),
        _ => program.words(thread, edge),
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

/// What the last state is against, in the words of the file, and the values that make it so.
fn ending(program: &Program, trace: &Trace, simulation: &Simulation) -> String {
    match trace.against {
        Against::Trap(t, trap) => {
            let thread = program.thread(t);
            let words = format!("error of thread {}: {}", thread.name(), trap_words(trap));
            match trace.events.iter().rfind(|e| e.trap.is_some()) {
                Some(e) => format!(
                    "{words} in line {}: {}",
                    program.place(thread.edge(e.edge).line),
                    instruction(program, thread, e)
                ),
                None => words,
            }
        }
        Against::Hang => "from here on memory never changes, and not all threads end".to_string(),
        Against::Property(index) => {
            let property = &program.properties()[index];
            let place = if property.line == 0 {
                String::new()
            } else {
                format!(" in line {}", program.place(property.line))
            };
            let verb = match property.kind {
                PropertyKind::Forbid | PropertyKind::Never => "forbidden",
                PropertyKind::Exists => "reachable, as asked",
                PropertyKind::Forall => "not what is required",
            };
            let case = simulation.failing_case(trace);
            let (pred, indices) =
                case.map_or((&property.pred, None), |case| (&case.pred, Some(case.indices.clone())));
            let mut values: Vec<String> = Vec::from_iter(indices);
            pred.for_each_atom(&mut |atom| {
                let text = equation(&program.show_atom(atom), simulation.value(atom));
                if !matches!(atom, Atom::At(..)) && !values.contains(&text) {
                    values.push(text);
                }
            });
            let values = if values.is_empty() { String::new() } else { format!(" ({})", values.join(", ")) };
            format!("{verb}{place}: {}{values}", property.show(program))
        }
    }
}

#[cfg(test)]
pub mod tests;

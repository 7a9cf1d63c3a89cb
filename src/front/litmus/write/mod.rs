//! How is a program said as an x86 litmus test?
//!
//! Variables become locations of the test, registers the processor's, edges instructions. A test of 32 bits
//! (`X86`) is written where nothing needs more, one of 64 bits (`X86_64`) otherwise. A program that was read
//! from a litmus test keeps its widths, addresses, names and instructions; other programs have cells as wide
//! as registers, elements of arrays where they compute addresses, and only instructions that herd has, since
//! it is to read them. What a test cannot say is [`Inexpressible`]: questions about states that are not
//! final, assertions, choices that nothing decides, blocks, arithmetic that herd does not know, more
//! registers than there are. Invariant: reading what is written gives a program with the same final states
//! under SC and under TSO, and the same answer to its question.
//!
//! `layout` finds places and names; `code` writes threads, with `body` for what there is to write, `branch`,
//! `access` and `expr` for branches, memory and expressions; `condition` writes the question; `narrow` knows
//! what 32 bits can do, `syntax` how both processors spell it.

mod access;
mod body;
mod branch;
mod code;
mod condition;
mod expr;
mod layout;
mod narrow;
mod syntax;

use crate::analysis::interval::Intervals;
use crate::analysis::liveness::{Live, Watched};
use crate::front::x86::Arch;
use crate::front::{Inexpressible, Unwritten};
use crate::limits::Limits;
use crate::model::litmus::{Litmus, Width};
use crate::model::{Atom, Program, Reg, ThreadId, Value};
use body::Body;
use code::{Assembly, Column};
use condition::{Condition, ConditionNames};
use layout::{Group, LitmusLayout, LitmusRegisters, thread_numbers};
use std::fmt::Write;

const FORMAT: &str = "a litmus test";

/// Writes a program under this name. `test` is what was read along with it, if it was a litmus test.
pub fn write(
    program: &Program,
    name: &str,
    test: Option<&Litmus>,
    limits: &Limits,
) -> Result<String, Unwritten> {
    crate::front::only_ours(program, FORMAT)?;
    let intervals = Intervals::of(program, limits)?;
    let write_for = |arch: Arch| {
        // Widths and addresses are those of one processor.
        let kept = test.filter(|test| test.bits == arch.bits());
        LitmusWriter { program, intervals: &intervals, arch, test, kept, limits }.test(name)
    };
    // If there are too few registers in 32 bits, there may still be enough in 64.
    match narrow::suits(program, test).then(|| write_for(Arch::X86)) {
        None | Some(Err(Unwritten::Inexpressible(_))) => write_for(Arch::X86_64),
        Some(narrow) => narrow,
    }
}

struct LitmusWriter<'a> {
    program: &'a Program,
    intervals: &'a Intervals,
    arch: Arch,
    test: Option<&'a Litmus>,
    /// The test, if it is for the same processor.
    kept: Option<&'a Litmus>,
    limits: &'a Limits,
}

impl LitmusWriter<'_> {
    fn test(&self, name: &str) -> Result<String, Unwritten> {
        let condition = Condition::of(self.program)?;
        let mut layout = LitmusLayout::new(self.program, self.intervals, self.arch, self.kept);
        let asked = condition.as_ref().map_or(vec![], Condition::atoms);
        let mut listed: Vec<&Atom> = self.test.iter().flat_map(|t| &t.observed).map(|o| &o.atom).collect();
        listed.retain(|atom| !asked.contains(atom));
        let shown: Vec<&Atom> = asked.iter().chain(listed.iter().copied()).collect();
        let bodies: Vec<Body> = self.program.threads().iter().map(Body::new).collect();
        let registers = self.registers(&bodies, &shown)?;
        let mut watched = Watched::nothing(self.program);
        watched.at_end = self.program.thread_ids().map(|t| of_thread(&shown, t).collect()).collect();
        let live = Live::of(self.program, &watched, |_, _| false, self.limits)?;
        let mut columns = Vec::new();
        let mut taken = std::mem::take(&mut layout.names);
        for ((t, body), registers) in self.program.thread_ids().zip(&bodies).zip(&registers) {
            columns.push(Assembly::new(self, &layout, registers, t, &live).column(body, &mut taken)?);
        }
        let (program, intervals, arch) = (self.program, self.intervals, self.arch);
        let numbers = thread_numbers(program);
        let names = ConditionNames {
            program,
            intervals,
            layout: &layout,
            numbers: &numbers,
            registers: &registers,
            arch,
            was_read: self.test.is_some(),
        };
        let cells = columns.iter().flat_map(|column| &column.cells).map(String::len).sum();
        self.limits.reserve(cells)?;
        let mut text = self.header(name, &names);
        text += &self.initial(&names, &columns);
        text += &table(&numbers, columns.into_iter().map(|column| column.cells).collect());
        if !listed.is_empty() {
            let places: String = listed.iter().map(|atom| format!("{}; ", names.place(atom))).collect();
            let _ = writeln!(text, "locations [{}]", places.trim_end());
        }
        if let Some(condition) = &condition {
            text += &names.condition(condition, &|value| self.value(&layout, value))?;
            text.push('\n');
        }
        Ok(text)
    }

    fn registers(&self, bodies: &[Body], shown: &[&Atom]) -> Result<Vec<LitmusRegisters>, Inexpressible> {
        let place = |(t, body): (ThreadId, &Body)| {
            let thread = self.program.thread(t);
            let mut used = body.used.clone();
            used.extend(of_thread(shown, t));
            LitmusRegisters::new(thread, &used, self.arch, body.accumulates).ok_or_else(|| Inexpressible {
                format: FORMAT,
                place: format!("thread `{}`", thread.name()),
                construct: format!("a thread with {} registers", used.len()),
                why: "the processor has 16".to_string(),
            })
        };
        self.program.thread_ids().zip(bodies).map(place).collect()
    }

    /// The first line, and comments that say what has another name here.
    fn header(&self, name: &str, names: &ConditionNames) -> String {
        let name = self.test.map_or(name, |test| &test.name);
        let fits = |c: char| c.is_ascii_alphanumeric() || "+-_./[]".contains(c);
        let mut plain: String = name.chars().map(|c| if fits(c) { c } else { '_' }).collect();
        if plain.is_empty() {
            plain.push('_');
        }
        let arch = if self.arch == Arch::X86 { "X86" } else { "X86_64" };
        let mut text = format!("{arch} {plain}\n");
        let mut comments = Vec::new();
        for ((thread, number), registers) in
            self.program.threads().iter().zip(names.numbers).zip(names.registers)
        {
            let mut known = registers.comments(thread, self.arch);
            if thread.name() != format!("P{number}") {
                known.insert(0, format!("P{number} is {}", thread.name()));
            } else if let Some(first) = known.first_mut() {
                first.insert_str(0, &format!("P{number}: "));
            }
            comments.extend((!known.is_empty()).then(|| known.join(", ")));
        }
        for comment in comments.iter().chain(&names.layout.comments) {
            // Whatever names are made of, it must not end the comment, begin another or end the test.
            let safe = |c: char| !c.is_control() && !matches!(c, '*' | '(' | ')' | '<' | '"' | '{' | '}');
            let comment: String = comment.chars().map(|c| if safe(c) { c } else { '_' }).collect();
            let _ = writeln!(text, "(* {comment} *)");
        }
        text
    }

    fn initial(&self, names: &ConditionNames, columns: &[Column]) -> String {
        let mut text = "{".to_string();
        for Group { name, width, init, .. } in &names.layout.groups {
            let ty = type_name(*width);
            let values: Vec<String> = init.iter().map(|v| self.value(names.layout, *v)).collect();
            let _ = match &values[..] {
                [value] if ty == "int" => write!(text, " {name}={value};"),
                [value] => write!(text, " {ty} {name}={value};"),
                _ => write!(text, " {ty} {name}[{}]={{{}}};", values.len(), values.join(",")),
            };
        }
        for (column, number) in columns.iter().zip(names.numbers) {
            for (gpr, array) in &column.bases {
                let _ = write!(text, " {number}:{}={array};", gpr.name(self.arch));
            }
        }
        text + " }\n"
    }

    /// A number, by the name of a location if it is the address of one.
    fn value(&self, layout: &LitmusLayout, value: Value) -> String {
        match self.location_at(layout, value) {
            Some((name, 0)) => name,
            _ => value.to_string(),
        }
    }

    /// The location that a number is an address in or close to, and how many bytes behind its beginning that
    /// is.
    fn location_at(&self, layout: &LitmusLayout, value: Value) -> Option<(String, Value)> {
        let zone = layout.zones().iter().find(|zone| zone.is_near(value))?;
        let begin = |group: &Group| zone.address + (group.first - zone.cells.0) as Value * zone.bytes;
        let mut of_zone = layout.groups.iter().filter(|g| Value::from(g.width.bits) == zone.bytes * 8);
        let first = of_zone.next()?;
        let group = of_zone.take_while(|group| begin(group) <= value).last().unwrap_or(first);
        Some((group.name.clone(), value - begin(group)))
    }
}

/// Registers of the thread among these.
fn of_thread<'a>(atoms: &'a [&Atom], t: ThreadId) -> impl Iterator<Item = Reg> + 'a {
    atoms.iter().filter_map(move |atom| match atom {
        Atom::Reg(u, r) if *u == t => Some(*r),
        _ => None,
    })
}

fn type_name(width: Width) -> &'static str {
    match (width.bits, width.signed) {
        (8, true) => "int8_t",
        (8, false) => "uint8_t",
        (16, true) => "int16_t",
        (16, false) => "uint16_t",
        (32, true) => "int",
        (32, false) => "uint32_t",
        (_, true) => "int64_t",
        (_, false) => "uint64_t",
    }
}

/// One column for each thread, its number on top.
fn table(numbers: &[u64], mut columns: Vec<Vec<String>>) -> String {
    for (column, number) in columns.iter_mut().zip(numbers) {
        column.insert(0, format!("P{number}"));
    }
    if columns.is_empty() {
        columns.push(vec!["P0".to_string()]);
    }
    let widths: Vec<usize> = columns.iter().map(|c| c.iter().map(String::len).max().unwrap_or(0)).collect();
    // herd wants a row below the numbers, even if there is nothing in it.
    let rows = columns.iter().map(Vec::len).max().unwrap_or(0).max(2);
    let mut text = String::new();
    for row in 0..rows {
        let cell = |(column, width): (&Vec<String>, &usize)| {
            format!(" {:width$} ", column.get(row).map_or("", |cell| cell), width = *width)
        };
        let cells: Vec<String> = columns.iter().zip(&widths).map(cell).collect();
        let _ = writeln!(text, "{};", cells.join("|"));
    }
    text
}

//! What is in a program? Its memory, its threads edge by edge with what the analyses know, its properties.
//!
//! For each location of a thread: the registers that are live there, the cells that may still be read and
//! written from there on, and the edges out of it. Another column is one more cell in `thread_rows` and in
//! the heading above it.

use super::table::{Align, Cell, Color, Table, Tone};
use crate::analysis::access::Futures;
use crate::analysis::interval::Intervals;
use crate::analysis::liveness::{Live, Watched};
use crate::model::{Addr, Atom, Loc, Program, PropertyKind, Reg, ThreadId, Value, Variable};
use crate::query::{Limit, Limits};
use std::fmt::Write;

/// Cells of one set that are named; access sets are exact up to 62 cells.
const MAX_NAMED: usize = 8;
const MAX_EXACT: usize = 62;
/// Live registers of one location that are named.
const MAX_LIVE: usize = 32;
const INDENT: usize = 2;
/// What a row costs, in steps of an analysis.
const ROW: usize = 100;

/// The whole listing, statistics at its end.
pub fn listing(program: &Program, color: bool, limits: &Limits) -> Result<String, Limit> {
    let color = if color { Color::On } else { Color::Off };
    let facts = Facts {
        live: Live::of(program, &watched(program), |_, _| false, limits)?,
        futures: Futures::of(program, &Intervals::of(program, limits)?, |_, _| false, limits)?,
    };
    let mut parts = vec![memory(program, color)];
    for t in program.thread_ids() {
        parts.push(thread(program, t, &facts, color, limits)?);
    }
    parts.push(properties(program, color));
    parts.push(statistics(program));
    parts.retain(|part| !part.is_empty());
    Ok(parts.join("\n"))
}

struct Facts {
    live: Live,
    futures: Futures,
}

/// The registers that properties look at.
fn watched(program: &Program) -> Watched {
    let mut watched = Watched::nothing(program);
    for property in program.properties() {
        let list = match property.kind {
            PropertyKind::Forbid => &mut watched.always,
            _ => &mut watched.at_end,
        };
        property.pred.for_each_atom(&mut |atom| {
            if let Atom::Reg(t, r) = atom {
                list[t.index()].push(*r);
            }
        });
    }
    watched
}

fn head(names: &[&str]) -> Vec<Cell> {
    names.iter().map(|name| Cell::new(*name, Tone::Quiet)).collect()
}

fn plain(text: impl Into<String>) -> Cell {
    Cell::new(text, Tone::Plain)
}

fn memory(program: &Program, color: Color) -> String {
    if program.variables().is_empty() {
        return String::new();
    }
    let mut table = Table::new(vec![Align::Right, Align::Left, Align::Left]);
    table.row(head(&["address", "name", "initially"]));
    let mut address = 0;
    for variable in program.variables() {
        let last = address + variable.init.len() - 1;
        let place = if last == address { address.to_string() } else { format!("{address}..={last}") };
        table.row(vec![plain(place), plain(declared(variable)), plain(initial(&variable.init))]);
        address = last + 1;
    }
    format!("shared memory\n{}", table.render(INDENT, color))
}

fn declared(variable: &Variable) -> String {
    match variable.init.len() {
        1 => variable.name.clone(),
        cells => format!("{}[{cells}]", variable.name),
    }
}

fn initial(values: &[Value]) -> String {
    if values.iter().all(|v| *v == values[0]) {
        return values[0].to_string();
    }
    let named: Vec<String> = values.iter().take(MAX_NAMED).map(Value::to_string).collect();
    named.join(" ") + if values.len() > MAX_NAMED { " …" } else { "" }
}

fn thread(
    program: &Program,
    t: ThreadId,
    facts: &Facts,
    color: Color,
    limits: &Limits,
) -> Result<String, Limit> {
    let thread = program.thread(t);
    let left = [Align::Left, Align::Right, Align::Left, Align::Left, Align::Left, Align::Left, Align::Left];
    let mut table = Table::new(left.to_vec());
    table.row(head(&["at", "line", "instruction", "to", "live", "reads", "writes"]));
    for loc in thread.locations() {
        limits.spend(ROW)?;
        thread_rows(program, t, loc, facts, &mut table);
    }
    Ok(format!("thread {}\n{}", thread.name(), table.render(INDENT, color)))
}

/// One row for each edge out of the location; what holds at the location stands in the first.
fn thread_rows(program: &Program, t: ThreadId, loc: Loc, facts: &Facts, table: &mut Table) {
    let thread = program.thread(t);
    let future = facts.futures.at(t, loc);
    let live = facts.live.at(t, loc).iter().map(|r| thread.register_name(Reg(r as u16)));
    let about = [
        plain(registers(live)),
        plain(cells(program, |a| future.may_read(a))),
        plain(cells(program, |a| future.may_write(a))),
    ];
    let edges = thread.edges_from(loc);
    if edges.is_empty() {
        let mut row = vec![place(program, t, loc), plain(""), plain(""), plain("")];
        row.extend(about);
        return table.row(row);
    }
    for (k, (_, edge)) in edges.iter().enumerate() {
        let line = program.place(edge.line).short();
        let first = k == 0;
        let mut row = vec![if first { place(program, t, loc) } else { plain("") }];
        row.push(Cell::new(line, Tone::Quiet));
        row.push(plain(thread.show_instr(program, &edge.instr)));
        row.push(plain(thread.location_name(edge.to)));
        row.extend(about.iter().map(|cell| if first { cell.clone() } else { plain("") }));
        table.row(row);
    }
}

fn place(program: &Program, t: ThreadId, loc: Loc) -> Cell {
    let thread = program.thread(t);
    let labels = &thread.location(loc).labels;
    let mut names = if labels.is_empty() { vec![thread.location_name(loc)] } else { labels.clone() };
    if loc == thread.end() && !labels.is_empty() {
        names.push("<end>".to_string());
    }
    let tone = if labels.is_empty() { Tone::Quiet } else { Tone::Head };
    Cell::new(names.join(" "), tone)
}

/// Names of registers, as many as anyone will read.
fn registers<'a>(mut names: impl Iterator<Item = &'a str>) -> String {
    let named: Vec<&str> = names.by_ref().take(MAX_LIVE).collect();
    named.join(" ") + if names.next().is_some() { " …" } else { "" }
}

fn cells(program: &Program, chosen: impl Fn(u32) -> bool) -> String {
    if program.cells() > MAX_EXACT {
        return "…".to_string();
    }
    let all: Vec<u32> = (0..program.cells() as u32).filter(|a| chosen(*a)).collect();
    let named: Vec<String> = all.iter().take(MAX_NAMED).map(|a| program.cell_name(Addr(*a))).collect();
    named.join(" ") + if all.len() > MAX_NAMED { " …" } else { "" }
}

fn properties(program: &Program, color: Color) -> String {
    if program.properties().is_empty() && program.no_hang().is_none() {
        return String::new();
    }
    let mut table = Table::new(vec![Align::Right, Align::Left]);
    for property in program.properties() {
        let line = program.place(property.line).short();
        table.row(vec![Cell::new(line, Tone::Quiet), plain(property.show(program))]);
    }
    if let Some(line) = program.no_hang() {
        table.row(vec![Cell::new(program.place(line).short(), Tone::Quiet), plain("no hang".to_string())]);
    }
    format!("properties\n{}", table.render(INDENT, color))
}

/// How much there is of everything.
pub fn statistics(program: &Program) -> String {
    let locations: usize = program.threads().iter().map(|t| t.graph().node_count()).sum();
    let edges: usize = program.threads().iter().map(|t| t.graph().edge_count()).sum();
    let registers: usize = program.threads().iter().map(|t| t.registers().len()).sum();
    let counts = [
        ("threads", program.threads().len()),
        ("locations", locations),
        ("edges", edges),
        ("registers", registers),
        ("cells", program.cells()),
        ("properties", program.properties().len()),
    ];
    let mut text = String::from("statistics\n");
    for (name, count) in counts {
        let _ = writeln!(text, "  {name:<10}  {count}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::tso;

    #[test]
    fn a_listing_shows_memory_edges_properties_and_counts() {
        let source = "shared x, a[3] = {4, 5}\nthread p\ntop: load r, [x]\n if r == 0 goto top\n store [a + 1], r\nend\n\
                      never [x] == 2\n";
        let program = tso::read(source, &[], &Limits::default()).expect("the source is readable").program;
        let expected = "\
shared memory
  address  name  initially
        0  x     0
    1..=3  a[3]  4 5 0

thread p
  at     line  instruction       to     live  reads  writes
  top       3  load r, [x]       <1>          x      a[1]
  <1>       4  assume r == 0     top    r     x      a[1]
            4  assume !(r == 0)  <2>
  <2>       5  store [a + 1], r  <end>  r            a[1]
  <end>

properties
  7  never [x] == 2

statistics
  threads     1
  locations   4
  edges       4
  registers   1
  cells       4
  properties  1
";
        assert_eq!(listing(&program, false, &Limits::default()).unwrap(), expected);
    }
}

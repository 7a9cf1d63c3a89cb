//! Where does each cell and register live in the SPIN model, under which name and type?
//!
//! A cell whose address is always a constant is a global variable of its own. Cells that computed addresses
//! may touch form arrays, one for each stretch of memory that such accesses cover. Types are the smallest
//! that hold what the interval analysis says, since SPIN's speed hangs on the size of a state. Names carry a
//! prefix, so that no name of the program meets a word of Promela or of the C behind it.

use crate::analysis::interval::{Interval, Intervals};
use crate::model::{Addr, Edge, Program, Reg, RegExpr, ThreadId, Value};
use std::collections::HashSet;
use std::fmt::Write;

pub(crate) struct PromelaLayout {
    cells: Vec<PromelaCell>,
    arrays: Vec<Array>,
    processes: Vec<String>,
    registers: Vec<Vec<Variable>>,
    /// What may leave the 32 bits of an `int`, in the program's own words.
    pub beyond_int: Vec<String>,
    pub locks: bool,
}

enum PromelaCell {
    Plain(Variable),
    /// The index of the array; its place there follows from the address.
    In(usize),
}

struct Array {
    name: String,
    first: usize,
    length: usize,
    kind: &'static str,
}

struct Variable {
    name: String,
    kind: &'static str,
}

/// A register that a property watches in every state has to be global.
pub(crate) type IsGlobal<'a> = &'a dyn Fn(ThreadId, Reg) -> bool;

impl PromelaLayout {
    pub(crate) fn of(program: &Program, intervals: &Intervals, is_global: IsGlobal) -> PromelaLayout {
        let mut names = PromelaNames::default();
        let mut beyond_int = Vec::new();
        let arrays = arrays(program, intervals, &mut names);
        let cell = |a: usize| {
            if let Some(k) = arrays.iter().position(|s: &Array| (s.first..s.first + s.length).contains(&a)) {
                return PromelaCell::In(k);
            }
            let name = names.fresh("m", &program.cell_name(Addr(a as u32)));
            PromelaCell::Plain(Variable { name, kind: smallest(intervals.cell(a)) })
        };
        let cells = (0..program.cells()).map(cell).collect();
        for a in 0..program.cells() {
            if !fits_int(intervals.cell(a)) {
                beyond_int.push(program.cell_name(Addr(a as u32)));
            }
        }
        let processes = program.threads().iter().map(|t| names.fresh("t", t.name())).collect();
        let mut registers: Vec<Vec<Variable>> =
            program.thread_ids().map(|t| registers(program, intervals, t, &mut beyond_int)).collect();
        for (t, r) in program.thread_ids().flat_map(|t| all_registers(program, t)) {
            if is_global(t, r) {
                let thread = program.thread(t);
                registers[t.index()][r.index()].name =
                    names.fresh("g", &format!("{}_{}", thread.name(), thread.register_name(r)));
            }
        }
        PromelaLayout { cells, arrays, processes, registers, beyond_int, locks: program.has_locks() }
    }

    pub(crate) fn process(&self, t: ThreadId) -> &str {
        &self.processes[t.index()]
    }

    pub(crate) fn register(&self, t: ThreadId, r: Reg) -> &str {
        &self.registers[t.index()][r.index()].name
    }

    pub(crate) fn register_type(&self, t: ThreadId, r: Reg) -> &'static str {
        self.registers[t.index()][r.index()].kind
    }

    pub(crate) fn cell(&self, addr: Addr) -> String {
        match &self.cells[addr.index()] {
            PromelaCell::Plain(variable) => variable.name.clone(),
            PromelaCell::In(k) => {
                format!("{}[{}]", self.arrays[*k].name, addr.index() - self.arrays[*k].first)
            }
        }
    }

    /// The cell at an address of the range, given the address as text.
    pub(crate) fn computed(&self, range: Interval, text: &str) -> String {
        let first = range.lo.clamp(0, self.cells.len() as Value - 1) as usize;
        match &self.cells[first] {
            PromelaCell::Plain(variable) => variable.name.clone(),
            PromelaCell::In(k) if self.arrays[*k].first == 0 => format!("{}[{text}]", self.arrays[*k].name),
            PromelaCell::In(k) => format!("{}[({text}) - {}]", self.arrays[*k].name, self.arrays[*k].first),
        }
    }

    pub(crate) fn declarations(&self, program: &Program) -> String {
        let mut text = String::new();
        for (a, cell) in self.cells.iter().enumerate() {
            if let PromelaCell::Plain(v) = cell {
                let init = program.initial_memory()[a];
                let _ = writeln!(text, "{} {}{};", v.kind, v.name, initial(init));
            }
        }
        for array in &self.arrays {
            let cells = &program.initial_memory()[array.first..array.first + array.length];
            let _ = write!(text, "{} {}[{}]", array.kind, array.name, array.length);
            if cells.iter().any(|&v| v != 0) {
                let values: Vec<String> = cells.iter().map(Value::to_string).collect();
                let _ = write!(text, " = {{{}}}", values.join(", "));
            }
            text.push_str(";\n");
        }
        if self.locks {
            text.push_str(
                "byte owner; /* of memory, by `lock`: the thread counted from 1, 0 for nobody */\n",
            );
        }
        text
    }
}

pub(crate) fn all_registers(program: &Program, t: ThreadId) -> impl Iterator<Item = (ThreadId, Reg)> + use<> {
    (0..program.thread(t).registers().len()).map(move |r| (t, Reg(r as u16)))
}

fn initial(value: Value) -> String {
    if value == 0 { String::new() } else { format!(" = {value}") }
}

/// The stretches of memory that computed addresses may touch, those that overlap taken together.
fn arrays(program: &Program, intervals: &Intervals, names: &mut PromelaNames) -> Vec<Array> {
    let last = program.cells() as Value - 1;
    let mut ranges: Vec<(Value, Value)> = program
        .thread_ids()
        .flat_map(|t| program.thread(t).edges().map(move |(_, e)| (t, e)))
        .filter(|(t, e)| intervals.is_reachable(*t, e.from))
        .filter_map(|(t, e)| Some(intervals.address(t, computed_address(e)?)))
        .map(|range| (range.lo.max(0), range.hi.min(last)))
        .filter(|(lo, hi)| lo < hi)
        .collect();
    ranges.sort();
    let mut merged: Vec<(Value, Value)> = Vec::new();
    for (lo, hi) in ranges {
        match merged.last_mut() {
            Some(previous) if lo <= previous.1 => previous.1 = previous.1.max(hi),
            _ => merged.push((lo, hi)),
        }
    }
    let array = |(lo, hi): (Value, Value)| {
        let (first, length) = (lo as usize, (hi - lo) as usize + 1);
        let cells = (first..first + length).map(|a| intervals.cell(a)).reduce(Interval::join);
        // SPIN keeps an array of bits in bytes and warns about it.
        let kind = match cells.map_or("int", smallest) {
            "bit" => "byte",
            kind => kind,
        };
        Array { name: names.fresh("m", &variable_name(program, first)), first, length, kind }
    };
    merged.into_iter().map(array).collect()
}

fn computed_address(edge: &Edge) -> Option<&Edge> {
    edge.instr.address().filter(|a: &&RegExpr| a.constant().is_none()).map(|_| edge)
}

fn variable_name(program: &Program, cell: usize) -> String {
    let name = program.cell_name(Addr(cell as u32));
    name.split('[').next().unwrap_or_default().to_string()
}

fn registers(
    program: &Program,
    intervals: &Intervals,
    t: ThreadId,
    beyond: &mut Vec<String>,
) -> Vec<Variable> {
    let mut names = PromelaNames::default();
    let thread = program.thread(t);
    let one = |(r, name): (usize, &String)| {
        let reg = Reg(r as u16);
        let known = thread.locations().filter_map(|l| intervals.register(t, l, reg)).reduce(Interval::join);
        let range = known.unwrap_or(Interval::constant(0));
        if !fits_int(range) {
            beyond.push(format!("{}.{name}", thread.name()));
        }
        Variable { name: names.fresh("r", name), kind: smallest(range) }
    };
    thread.registers().iter().enumerate().map(one).collect()
}

fn fits_int(i: Interval) -> bool {
    i.lo >= i32::MIN as Value && i.hi <= i32::MAX as Value
}

fn smallest(i: Interval) -> &'static str {
    match (i.lo, i.hi) {
        (0.., ..=1) => "bit",
        (0.., ..=255) => "byte",
        (-32768.., ..=32767) => "short",
        _ => "int",
    }
}

/// Hands out names that are legal and distinct.
#[derive(Default)]
pub(crate) struct PromelaNames(HashSet<String>);

impl PromelaNames {
    pub(crate) fn fresh(&mut self, prefix: &str, wanted: &str) -> String {
        let legal: String = wanted
            .trim_end_matches(']')
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
            .collect();
        let base = format!("{prefix}_{legal}");
        let mut name = base.clone();
        for k in 2.. {
            if self.0.insert(name.clone()) {
                break;
            }
            name = format!("{base}__{k}");
        }
        name
    }
}

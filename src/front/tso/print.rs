//! How does one write a program down? As text that `read` takes back.
//!
//! A program that came from a `.tso` file comes back as it was, with templates and repetitions unfolded. Any
//! other program comes back equivalent: `plain` first gives it a form that has a spelling, and what is
//! printed here is that form, location by location in their order.

mod legal;
mod plain;

use crate::front::const_fold;
use crate::limits::{Limit, Limits, Text};
use crate::model::program::{ProgramParts, ThreadParts};
use crate::model::{
    Atom, Edge, FenceKinds, Instr, Loc, Pred, Program, Property, Reg, RegExpr, Value, Variable,
};
use std::collections::HashSet;
use std::fmt::{self, Write};

/// Declarations are broken into lines of about this length.
const WIDTH: usize = 100;

/// What a location costs, in steps, beside its text.
const LOCATION: usize = 16;

pub(crate) fn write(program: &Program, limits: &Limits) -> Result<String, Limit> {
    let mut parts = plain::plain(program, limits)?;
    label_targets(&mut parts, limits)?;
    Text::of(limits, |text| write_parts(&parts, text))
}

fn write_parts(parts: &ProgramParts, text: &mut Text) -> fmt::Result {
    let memory = Memory::new(&parts.memory);
    text.write_str(&shared(&parts.memory))?;
    for (i, thread) in parts.threads.iter().enumerate() {
        if i > 0 || !parts.memory.is_empty() {
            text.write_str("\n")?;
        }
        ThreadText { thread, memory: &memory }.write(text)?;
    }
    for (i, property) in parts.properties.iter().enumerate() {
        if i == 0 {
            text.write_str("\n")?;
        }
        writeln!(text, "{}", property_text(property, parts, &memory))?;
    }
    if parts.no_hang.is_some() {
        writeln!(text, "\nno hang")?;
    }
    Ok(())
}

fn shared(memory: &[Variable]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for declaration in memory.iter().map(declaration) {
        match lines.last_mut() {
            Some(line) if line.len() + declaration.len() < WIDTH => {
                *line += ", ";
                *line += &declaration;
            }
            _ => lines.push(format!("shared {declaration}")),
        }
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn declaration(variable: &Variable) -> String {
    let Variable { name, init } = variable;
    let size = if init.len() == 1 { String::new() } else { format!("[{}]", init.len()) };
    let given = init.iter().rposition(|v| *v != 0).map_or(0, |last| last + 1);
    match init[0] {
        _ if given == 0 => format!("{name}{size}"),
        value if init.iter().all(|v| *v == value) => format!("{name}{size} = {value}"),
        _ => {
            let values: Vec<String> = init[..given].iter().map(Value::to_string).collect();
            format!("{name}{size} = {{{}}}", values.join(", "))
        }
    }
}

/// Where control goes from a location, in the form that `plain` leaves.
enum Way<'a> {
    /// One instruction, and what comes behind it.
    On(&'a Instr, Loc),
    /// `if`: the condition, where it leads, and what comes behind it.
    Branch(&'a RegExpr, Loc, Loc),
    Choose(Vec<Loc>),
}

fn way<'a>(edges: &[&'a Edge]) -> Way<'a> {
    match edges {
        [edge] => Way::On(&edge.instr, edge.to),
        [Edge { instr: Instr::Assume(condition), to: taken, .. }, other] => {
            Way::Branch(condition, *taken, other.to)
        }
        _ => Way::Choose(edges.iter().map(|e| e.to).collect()),
    }
}

/// The edges of each location.
fn edges_by_location(thread: &ThreadParts) -> Vec<Vec<&Edge>> {
    let mut edges = vec![Vec::new(); thread.locations.len()];
    for edge in &thread.edges {
        edges[edge.from.index()].push(edge);
    }
    edges
}

/// Must one jump in order to get from the text of `from` to `to`?
fn needs_goto(thread: &ThreadParts, from: Loc, to: Loc) -> bool {
    to.0 != from.0 + 1 && to != thread.end
}

/// Gives a label to each location that is named in the text and has none.
fn label_targets(parts: &mut ProgramParts, limits: &Limits) -> Result<(), Limit> {
    let mut named: Vec<HashSet<Loc>> = parts.threads.iter().map(jump_targets).collect();
    for property in &parts.properties {
        property.pred.for_each_atom(&mut |atom| {
            if let Atom::At(t, locs) = atom {
                named[t.index()].extend(locs);
            }
        });
    }
    for (thread, named) in parts.threads.iter_mut().zip(named) {
        limits.spend(LOCATION * thread.locations.len())?;
        let taken: HashSet<&String> = thread.locations.iter().flat_map(|l| &l.labels).collect();
        let fresh: Vec<String> = (1..=taken.len() + named.len()).map(|n| format!("L{n}")).collect();
        let mut fresh = fresh.into_iter().filter(|l| !taken.contains(l)).collect::<Vec<_>>().into_iter();
        let unlabelled = thread.locations.iter_mut().enumerate().filter(|(_, l)| l.labels.is_empty());
        for (_, location) in unlabelled.filter(|(i, _)| named.contains(&Loc(*i as u32))) {
            location.labels.extend(fresh.next());
        }
    }
    Ok(())
}

fn jump_targets(thread: &ThreadParts) -> HashSet<Loc> {
    let mut targets = HashSet::new();
    let mut goto = |from, to| {
        if needs_goto(thread, from, to) {
            targets.insert(to);
        }
    };
    let mut named = Vec::new();
    for (from, edges) in edges_by_location(thread).iter().enumerate().filter(|(_, e)| !e.is_empty()) {
        let from = Loc(from as u32);
        match way(edges) {
            Way::On(_, to) => goto(from, to),
            Way::Branch(_, taken, other) => {
                named.push(taken);
                goto(from, other);
            }
            Way::Choose(ways) => named.extend(ways),
        }
    }
    if thread.initial != Loc(0) && thread.initial != thread.end {
        named.push(thread.initial);
    }
    targets.extend(named);
    targets
}

struct ThreadText<'a> {
    thread: &'a ThreadParts,
    memory: &'a Memory<'a>,
}

impl ThreadText<'_> {
    fn write(&self, text: &mut Text) -> fmt::Result {
        writeln!(text, "thread {}", self.thread.name)?;
        if self.thread.initial != Loc(0) {
            // Nothing stands before the first location, so this jumps unless it is the first one.
            self.jump(text, None, self.thread.initial)?;
        }
        for (from, edges) in edges_by_location(self.thread).iter().enumerate() {
            let from = Loc(from as u32);
            for label in &self.thread.locations[from.index()].labels {
                writeln!(text, "{label}:")?;
            }
            if from != self.thread.end {
                self.location(text, from, way(edges))?;
            }
        }
        text.write_str("end\n")
    }

    fn location(&self, text: &mut Text, from: Loc, way: Way) -> fmt::Result {
        text.spend(LOCATION)?;
        match &way {
            Way::On(instr, _) => writeln!(text, "    {}", self.instr(instr))?,
            Way::Branch(condition, taken, _) => {
                writeln!(text, "    if {} goto {}", self.expr(condition), self.label(*taken))?;
            }
            Way::Choose(ways) => {
                let labels: Vec<&str> = ways.iter().map(|to| self.label(*to)).collect();
                writeln!(text, "    choose {}", labels.join(", "))?;
            }
        }
        match way {
            Way::On(_, to) | Way::Branch(_, _, to) => self.jump(text, Some(from), to),
            Way::Choose(_) => Ok(()),
        }
    }

    fn jump(&self, text: &mut Text, from: Option<Loc>, to: Loc) -> fmt::Result {
        if from.is_some_and(|from| to.0 == from.0 + 1) {
            return Ok(());
        }
        if to == self.thread.end {
            return text.write_str("    halt\n");
        }
        writeln!(text, "    goto {}", self.label(to))
    }

    fn label(&self, loc: Loc) -> &str {
        let labels = &self.thread.locations[loc.index()].labels;
        labels.first().expect("locations that are jumped to were given labels")
    }

    fn expr(&self, e: &RegExpr) -> String {
        e.show(&|r| self.thread.registers[r.index()].clone())
    }

    fn address(&self, e: &RegExpr) -> String {
        match e {
            RegExpr::Const(address) => self.memory.cell(*address),
            _ => self.expr(e),
        }
    }

    fn instr(&self, instr: &Instr) -> String {
        let reg = |r: &Reg| &self.thread.registers[r.index()];
        match instr {
            Instr::Load { dst, addr, bytes } => format!("load {}, [{}{bytes}]", reg(dst), self.address(addr)),
            Instr::Store { addr, value, bytes } => {
                format!("store [{}{bytes}], {}", self.address(addr), self.expr(value))
            }
            Instr::Fence => "fence".to_string(),
            Instr::Partial(FenceKinds::NONE) => "nop".to_string(),
            Instr::Partial(kinds) => format!("fence {}", kinds.words()),
            Instr::Membarrier => "membarrier".to_string(),
            Instr::Assign { dst, value } => format!("{} = {}", reg(dst), self.expr(value)),
            Instr::Any { dst, lo, hi } => format!("{} = any({lo}..={hi})", reg(dst)),
            Instr::Assume(e) => format!("assume {}", self.expr(e)),
            Instr::Assert(e) => format!("assert {}", self.expr(e)),
            Instr::Rmw { dst, addr, op } => {
                let operands: Vec<String> = op.operands().into_iter().map(|e| self.expr(e)).collect();
                format!("{} {}, [{}], {}", op.word(), reg(dst), self.address(addr), operands.join(", "))
            }
            Instr::Lock => "lock".to_string(),
            Instr::Unlock => "unlock".to_string(),
            Instr::Nop => "nop".to_string(),
        }
    }
}

fn property_text(property: &Property, parts: &ProgramParts, memory: &Memory) -> String {
    let atom = |atom: &Atom| match atom {
        Atom::At(t, locs) => match locs.as_slice() {
            [_] => at(&parts.threads[t.index()], locs),
            _ => format!("({})", at(&parts.threads[t.index()], locs)),
        },
        Atom::Reg(t, r) => {
            let thread = &parts.threads[t.index()];
            format!("{}.{}", thread.name, thread.registers[r.index()])
        }
        Atom::Mem(a) => format!("[{}]", memory.cell(Value::from(a.0))),
    };
    let pred = match &property.pred {
        Pred::Atom(Atom::At(t, locs)) => at(&parts.threads[t.index()], locs),
        pred => pred.show(&atom),
    };
    let name = property.name.as_ref().map_or(String::new(), |name| format!("{name}: "));
    format!("{} {name}{pred}", property.kind.word())
}

/// `t@a || t@b || …`, in the shape in which it is read back.
fn at(thread: &ThreadParts, locs: &[Loc]) -> String {
    let place = |loc: &Loc| format!("{}@{}", thread.name, thread.locations[loc.index()].labels[0]);
    let places: Vec<(String, usize)> = locs.iter().map(|loc| (place(loc), 1)).collect();
    let joined = const_fold::join(places, &mut |(a, m), (b, n)| match n {
        1 => (a + " || " + &b, m + n),
        _ => (a + " || (" + &b + ")", m + n),
    });
    joined.map_or("0".to_string(), |(text, _)| text)
}

/// The names of addresses.
struct Memory<'a> {
    /// Each variable with its first address.
    variables: Vec<(usize, &'a Variable)>,
    cells: usize,
}

impl<'a> Memory<'a> {
    fn new(memory: &'a [Variable]) -> Memory<'a> {
        let mut cells = 0;
        let mut variables = Vec::new();
        for variable in memory {
            variables.push((cells, variable));
            cells += variable.init.len();
        }
        Memory { variables, cells }
    }

    /// `x`, `a + 2`, or the number if nothing has this address.
    fn cell(&self, address: Value) -> String {
        let Some(cell) = usize::try_from(address).ok().filter(|a| *a < self.cells) else {
            return address.to_string();
        };
        let (first, variable) =
            self.variables[self.variables.partition_point(|(first, _)| *first <= cell) - 1];
        match cell - first {
            0 => variable.name.clone(),
            offset => format!("{} + {offset}", variable.name),
        }
    }
}

#[cfg(test)]
mod tests;

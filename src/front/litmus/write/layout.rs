//! Where do the program's variables, threads and registers go, and what are they called there?
//!
//! A variable keeps its name if a litmus test can have it. Variables that one computed address may all hit
//! become one array, since only the elements of an array lie side by side for certain; an array that no
//! computed address hits becomes as many variables, since herd knows a place in an array by a register alone.
//! A register called like one of the processor's is that one.

use super::super::memory::Zone;
use crate::analysis::interval::{Interval, Intervals};
use crate::front::x86::{Arch, EAX, Gpr, register};
use crate::model::litmus::{Litmus, Width};
use crate::model::{Addr, Edge, Program, Reg, Thread, Value, Variable};
use std::collections::{BTreeSet, HashSet};

/// Words that mean something else in a litmus test: those around conditions, registers, sizes, and whatever
/// herd takes for an instruction, which may also end in a letter for its width.
const WORDS: &[&str] = &[
    "final",
    "forall",
    "exists",
    "locations",
    "filter",
    "observed",
    "cases",
    "with",
    "not",
    "and",
    "true",
    "false",
    "fault",
    "tag",
    "attrs",
    "pte",
    "pa",
    "oa",
    "instr",
    "label",
    "byte",
    "word",
    "dword",
    "qword",
    "ptr",
    "offset",
    "rip",
    "eip",
    "zf",
    "sf",
    "cf",
    "lock",
    "jmp",
    "je",
    "jne",
    "jle",
    "jlt",
    "jgt",
    "jge",
    "js",
    "jns",
    "setnb",
    "mfence",
    "lfence",
    "sfence",
    "movt",
    "movsd",
    "movd",
    "movnti",
    "movntdqa",
    "clflush",
    "clflushopt",
    "ret",
    "nop",
    "endbr64",
];
const WITH_WIDTHS: &[&str] = &[
    "add", "xor", "or", "shl", "mov", "dec", "inc", "cmp", "cmovc", "xchg", "uxch", "cmpxchg", "movnti",
    "ret", "nop",
];

/// More variables than this do not give their names to the array that they become.
const MAX_JOINED: usize = 4;

/// A location of the test: a variable, or several that lie side by side.
pub(crate) struct Group {
    pub name: String,
    pub width: Width,
    /// Its first cell.
    pub first: usize,
    pub init: Vec<Value>,
}

pub(crate) struct LitmusLayout {
    pub groups: Vec<Group>,
    /// All names that are taken.
    pub names: HashSet<String>,
    /// What cells are called where that cannot be guessed.
    pub comments: Vec<String>,
    of_cell: Vec<usize>,
    /// Where the cells of each width lie, if addresses are kept.
    zones: Vec<Zone>,
}

impl LitmusLayout {
    /// Widths and addresses are those of the `kept` test, if there is one.
    pub(crate) fn new(
        program: &Program,
        intervals: &Intervals,
        arch: Arch,
        kept: Option<&Litmus>,
    ) -> LitmusLayout {
        let variables = program.variables();
        let hits = match kept {
            Some(_) => vec![Hit::Whole; variables.len()],
            None => hits(program, intervals),
        };
        let register = Width { bits: arch.bits(), signed: true };
        let mut layout = LitmusLayout {
            groups: vec![],
            names: HashSet::new(),
            comments: vec![],
            of_cell: vec![],
            zones: vec![],
        };
        let mut next = 0;
        while next < variables.len() {
            let more = hits[next + 1..].iter().take_while(|hit| **hit == Hit::WithLast).count();
            let members = &variables[next..=next + more];
            let width = kept.map_or(register, |test| test.widths[next]);
            match (members, hits[next]) {
                ([array], Hit::Apart) if array.init.len() > 1 => layout.split(array, width),
                _ => layout.add(members, width),
            }
            next += more + 1;
        }
        if let Some(test) = kept {
            layout.zones = zones(&layout.groups, &test.addresses);
        }
        layout
    }

    /// A location for each element.
    fn split(&mut self, array: &Variable, width: Width) {
        for (i, &value) in array.init.iter().enumerate() {
            let name = plain_name(&format!("{}_{i}", array.name), &mut self.names);
            self.comments.push(format!("{name} is {}[{i}]", array.name));
            self.push(Group { name, width, first: self.of_cell.len(), init: vec![value] });
        }
    }

    fn add(&mut self, members: &[Variable], width: Width) {
        let wanted = match members {
            [one] => one.name.clone(),
            _ if members.len() > MAX_JOINED => "memory".to_string(),
            _ => members.iter().map(|v| &v.name[..]).collect::<Vec<_>>().join("_"),
        };
        let name = plain_name(&wanted, &mut self.names);
        let mut init = Vec::new();
        for variable in members {
            if variable.name != name {
                let first = if variable.init.len() == 1 { "" } else { "[0]" };
                self.comments.push(match members {
                    [_] => format!("{name} is {}", variable.name),
                    _ => format!("{name}[{}] is {}{first}", init.len(), variable.name),
                });
            }
            init.extend(&variable.init);
        }
        self.push(Group { name, width, first: self.of_cell.len(), init });
    }

    fn push(&mut self, group: Group) {
        self.of_cell.extend(std::iter::repeat_n(self.groups.len(), group.init.len()));
        self.groups.push(group);
    }

    /// The location of a cell, and which element of it the cell is.
    pub(crate) fn place(&self, cell: usize) -> (&Group, usize) {
        let group = &self.groups[self.of_cell[cell]];
        (group, cell - group.first)
    }

    pub(crate) fn zones(&self) -> &[Zone] {
        &self.zones
    }

    /// A cell as conditions name it.
    pub(crate) fn show(&self, cell: Addr) -> String {
        let (group, element) = self.place(cell.index());
        if group.init.len() == 1 { group.name.clone() } else { format!("{}[{element}]", group.name) }
    }
}

/// Each group is a variable here, and has its address.
fn zones(groups: &[Group], addresses: &[Value]) -> Vec<Zone> {
    let zone = |bits: u32| {
        let mut zone = Zone::empty(bits);
        let of_width = groups.iter().zip(addresses).filter(|(g, _)| g.width.bits == bits);
        for (n, (group, address)) in of_width.enumerate() {
            if n == 0 {
                (zone.address, zone.cells.0) = (*address, group.first);
            }
            zone.cells.1 = group.first + group.init.len();
        }
        zone
    };
    [8, 16, 32, 64].map(zone).to_vec()
}

/// What computed addresses want of a variable.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hit {
    /// None hits it.
    Apart,
    /// Its cells must lie side by side.
    Whole,
    /// It must lie right behind the variable before it.
    WithLast,
}

fn hits(program: &Program, intervals: &Intervals) -> Vec<Hit> {
    let of_cell: Vec<usize> = (program.variables().iter().enumerate())
        .flat_map(|(i, variable)| std::iter::repeat_n(i, variable.init.len()))
        .collect();
    let mut hits = vec![Hit::Apart; program.variables().len()];
    let Some(last) = of_cell.len().checked_sub(1) else { return hits };
    for t in program.thread_ids() {
        for (_, edge) in program.thread(t).edges() {
            if computed(edge) && intervals.is_reachable(t, edge.from) {
                let Interval { lo, hi } = intervals.address(t, edge);
                // What may lie outside memory is refused later, and a single cell has a name.
                if lo < 0 || hi > last as Value || lo == hi {
                    continue;
                }
                let (lo, hi) = (lo as usize, hi as usize);
                let (first, rest) = (of_cell[lo], of_cell[lo] + 1..=of_cell[hi]);
                if hits[first] == Hit::Apart {
                    hits[first] = Hit::Whole;
                }
                hits[rest].fill(Hit::WithLast);
            }
        }
    }
    hits
}

fn computed(edge: &Edge) -> bool {
    edge.instr.address().is_some_and(|address| address.constant().is_none())
}

fn is_word(lower: &str) -> bool {
    let stem = lower.strip_suffix(['b', 'w', 'l', 'q']).unwrap_or(lower);
    WORDS.contains(&lower) || WITH_WIDTHS.contains(&lower) || WITH_WIDTHS.contains(&stem)
}

/// A name that a litmus test can have, and none of those before it.
pub(crate) fn plain_name(wanted: &str, taken: &mut HashSet<String>) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    let mut base: String = wanted.chars().map(|c| if fits(c) { c } else { '_' }).collect();
    let lower = base.to_ascii_lowercase();
    let is_thread = lower.strip_prefix('p').is_some_and(|n| n.parse::<u64>().is_ok());
    let starts_well = base.starts_with(|c: char| c.is_ascii_alphabetic());
    let is_register = register(&lower, Arch::X86_64).is_some() || lower.starts_with("xmm");
    if !starts_well || is_thread || is_register || is_word(&lower) {
        base.insert_str(0, "v_");
    }
    let mut name = base.clone();
    for k in 2.. {
        if taken.insert(name.clone()) {
            break;
        }
        name = format!("{base}_{k}");
    }
    name
}

/// The threads' numbers: their own, if they are called P0, P1 and so on.
pub(crate) fn thread_numbers(program: &Program) -> Vec<u64> {
    let own = |thread: &Thread| {
        let number: u64 = thread.name().strip_prefix('P')?.parse().ok()?;
        (thread.name() == format!("P{number}")).then_some(number)
    };
    let numbers: Option<Vec<u64>> = program.threads().iter().map(own).collect();
    let distinct = |numbers: &Vec<u64>| numbers.iter().collect::<HashSet<_>>().len() == numbers.len();
    numbers.filter(distinct).unwrap_or_else(|| (0..program.threads().len() as u64).collect())
}

/// Where a thread's registers are, and which ones are left.
#[derive(Clone, Debug)]
pub(crate) struct LitmusRegisters {
    of: Vec<Option<Gpr>>,
    pub free: Vec<Gpr>,
}

impl LitmusRegisters {
    /// Places for the registers that are `used`; `None` if there are not enough. Whether the thread
    /// `accumulates`: then it needs the accumulator for itself now and then.
    pub(crate) fn new(
        thread: &Thread,
        used: &BTreeSet<Reg>,
        arch: Arch,
        accumulates: bool,
    ) -> Option<LitmusRegisters> {
        // The stack pointer comes last, and the accumulator before it if it has something else to do.
        let count = if arch == Arch::X86 { 8 } else { 16 };
        let late = |gpr: Gpr| (gpr == Gpr(7)) as u8 * 2 + (gpr == EAX && accumulates) as u8;
        let mut free: Vec<Gpr> = (0..count).map(Gpr).collect();
        free.sort_by_key(|gpr| late(*gpr));
        let mut of = vec![None; thread.registers().len()];
        for &reg in used {
            let named = register(thread.register_name(reg), arch).filter(|part| part.bits >= 32);
            if let Some(at) = named.and_then(|part| free.iter().position(|gpr| *gpr == part.gpr)) {
                of[reg.index()] = Some(free.remove(at));
            }
        }
        for &reg in used {
            if of[reg.index()].is_none() {
                of[reg.index()] = Some((!free.is_empty()).then(|| free.remove(0))?);
            }
        }
        free.retain(|gpr| *gpr != EAX || !accumulates);
        Some(LitmusRegisters { of, free })
    }

    /// Where a register is that was said to be used.
    pub(crate) fn get(&self, reg: Reg) -> Gpr {
        self.of[reg.index()].expect("all registers that are used have been placed")
    }

    /// Is one of the program's registers there?
    pub(crate) fn holds(&self, gpr: Gpr) -> bool {
        self.of.contains(&Some(gpr))
    }

    /// What the registers are called in the program, where that is something else.
    pub(crate) fn comments(&self, thread: &Thread, arch: Arch) -> Vec<String> {
        let moved = |(i, gpr): (usize, &Option<Gpr>)| {
            let (name, here) = (thread.register_name(Reg(i as u16)), gpr.as_ref()?.name(arch));
            (name != here).then(|| format!("{here} is {name}"))
        };
        self.of.iter().enumerate().filter_map(moved).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_where_a_test_can_have_them() {
        let mut taken = HashSet::new();
        let mut name = |wanted: &str| plain_name(wanted, &mut taken);
        assert_eq!(
            ["x", "x", "a[1]", "cx", "P0", "0x", "exists", "é", "add", "Xchgl", "sf", "xmm1"].map(&mut name),
            [
                "x", "x_2", "a_1_", "v_cx", "v_P0", "v_0x", "v_exists", "v__", "v_add", "v_Xchgl", "v_sf",
                "v_xmm1"
            ]
        );
    }
}

//! What is asked of a program, one thing at a time? Each of its properties, the asserts of each source line,
//! and, though no file says so, that no thread goes wrong otherwise.

use super::evidence::{Against, Trace};
use super::goal::Goal;
use super::trace::Trap;
use crate::model::{Edge, Instr, Program, PropertyKind, Thread};
use std::collections::{BTreeSet, HashMap, HashSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Asked {
    /// This property of the program.
    Property(usize),
    /// The asserts of this source line.
    Asserts(u32),
    /// No run ends in a hang.
    NoHang,
    /// No division by zero, and no access outside memory.
    Errors,
}

impl Asked {
    /// All that the file asks, in its order.
    pub fn of(program: &Program) -> Vec<Asked> {
        let properties = program.properties().iter().enumerate().map(|(k, p)| (p.line, Asked::Property(k)));
        let asserts = assert_lines(program).into_iter().map(|line| (line, Asked::Asserts(line)));
        let no_hang = program.no_hang().map(|line| (line, Asked::NoHang));
        let mut all: Vec<(u32, Asked)> = properties.chain(asserts).chain(no_hang).collect();
        all.sort_by_key(|(line, _)| *line);
        all.into_iter().map(|(_, asked)| asked).collect()
    }

    /// The one that a run is against.
    pub fn against_by(program: &Program, trace: &Trace) -> Asked {
        match trace.against {
            Against::Property(k) => Asked::Property(k),
            Against::Trap(_, Trap::Assertion) => {
                let failed = trace.events.iter().rfind(|e| e.trap.is_some());
                Asked::Asserts(failed.map_or(0, |e| program.thread(e.thread()).edge(e.edge).line))
            }
            Against::Hang => Asked::NoHang,
            Against::Trap(..) => Asked::Errors,
        }
    }

    pub fn name(self, program: &Program) -> Option<&str> {
        match self {
            Asked::Property(k) => program.properties()[k].name.as_deref(),
            Asked::Asserts(_) | Asked::NoHang | Asked::Errors => None,
        }
    }

    /// 0 if that is not known.
    pub fn line(self, program: &Program) -> u32 {
        match self {
            Asked::Property(k) => program.properties()[k].line,
            Asked::Asserts(line) => line,
            Asked::NoHang => program.no_hang().unwrap_or(0),
            Asked::Errors => 0,
        }
    }

    /// Is it a question after something, so that finding it is what was asked for?
    pub fn is_wish(self, program: &Program) -> bool {
        matches!(self, Asked::Property(k) if program.properties()[k].kind == PropertyKind::Exists)
    }
}

/// What is asked, as the file has it.
pub struct AskedTexts<'a> {
    program: &'a Program,
    /// The first assert of each line.
    asserts: HashMap<u32, (&'a Thread, &'a Edge)>,
}

impl<'a> AskedTexts<'a> {
    pub fn of(program: &'a Program) -> AskedTexts<'a> {
        let edges = program.threads().iter().flat_map(|t| t.edges().map(move |(_, e)| (t, e)));
        let mut asserts = HashMap::new();
        for (thread, edge) in edges.filter(|(_, e)| matches!(e.instr, Instr::Assert(_))) {
            asserts.entry(edge.line).or_insert((thread, edge));
        }
        AskedTexts { program, asserts }
    }

    pub fn text(&self, asked: Asked) -> String {
        match asked {
            Asked::Property(k) => self.program.properties()[k].show(self.program),
            Asked::Asserts(line) => {
                let first = self.asserts.get(&line);
                first.map_or("assert".to_string(), |(thread, edge)| self.program.words(thread, edge))
            }
            Asked::NoHang => "no hang".to_string(),
            Asked::Errors => "no division by zero, no access outside memory".to_string(),
        }
    }
}

/// The lines that have asserts.
fn assert_lines(program: &Program) -> BTreeSet<u32> {
    let edges = program.threads().iter().flat_map(|t| t.edges());
    edges.filter(|(_, e)| matches!(e.instr, Instr::Assert(_))).map(|(_, e)| e.line).collect()
}

/// The question whether any of these fails: the goal, and the program if asserts that are not asked about have
/// to be left aside. There a thread stops where such an assert would fail, and edges keep their numbers; all
/// its runs are runs of the program. Errors of threads count where they are asked about, and where asserts
/// are, which cannot be told from them beforehand.
pub fn question(program: &Program, asked: &[Asked]) -> (Option<Program>, Goal) {
    let asked: HashSet<Asked> = asked.iter().copied().collect();
    let Goal { mut clauses, .. } = Goal::of(program);
    clauses.retain(|c| asked.contains(&Asked::Property(c.property)));
    let ignores_errors = asked.iter().all(|a| matches!(a, Asked::Property(_) | Asked::NoHang));
    let is_other = |line: u32| !asked.contains(&Asked::Asserts(line));
    let others = !ignores_errors && assert_lines(program).into_iter().any(is_other);
    (others.then(|| without_asserts(program, is_other)), Goal { clauses, ignores_errors })
}

fn without_asserts(program: &Program, is_other: impl Fn(u32) -> bool) -> Program {
    let mut parts = program.to_parts();
    for edge in parts.threads.iter_mut().flat_map(|t| &mut t.edges) {
        if let Instr::Assert(e) = &edge.instr
            && is_other(edge.line)
        {
            edge.instr = Instr::Assume(e.clone());
        }
    }
    Program::new(parts).expect("a valid program is valid with conditions in place of asserts")
}

//! Where does the user's text come to lie in the unfolded program? One line of a template is in all its
//! threads, and one of a `repeat` in all its rounds.
//!
//! Plain data that a front end hands over beside the program, for those who want to change the text: each
//! place at which something could be inserted, with all its copies, and each statement with all its edges.

use super::{EdgeId, Instr, Loc, Program, ThreadId};
use std::collections::BTreeMap;
use std::ops::Range;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceMap {
    /// In the order of the text.
    pub places: Vec<SourcePlace>,
    /// In the order of the text.
    pub statements: Vec<Statement>,
    /// For each thread the name of what it was made from: its template, or itself.
    pub owners: Vec<String>,
}

/// A place between two things that stand in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourcePlace {
    /// The byte of the text before which it is, where places are as fine as that.
    pub offset: Option<usize>,
    /// One for each copy that control can come to.
    pub copies: Vec<Passage>,
}

/// Where a place is in one copy: what leads through it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Passage {
    /// Whatever comes to the location.
    All(ThreadId, Loc),
    /// These edges, which all lead to one location; others lead there past the place.
    Some(ThreadId, Vec<EdgeId>),
}

/// What one statement unfolds to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    pub offset: Option<usize>,
    pub edges: Vec<(ThreadId, EdgeId)>,
}

impl SourceMap {
    /// Every thread is a text of its own, and every location a place.
    pub fn per_thread(program: &Program) -> SourceMap {
        let alone: Vec<Range<u16>> = program.thread_ids().map(|t| t.0..t.0 + 1).collect();
        SourceMap::of_copies(program, &alone)
    }

    /// What was made from one instruction of object code is one place, whatever threads come to it, and through
    /// whatever calls.
    pub fn of_code(program: &Program) -> SourceMap {
        let mut places: BTreeMap<CodeKey, Vec<Passage>> = BTreeMap::new();
        let mut statements: BTreeMap<(CodeKey, bool), Vec<(ThreadId, EdgeId)>> = BTreeMap::new();
        let mut names: Vec<&str> = Vec::new();
        for t in program.thread_ids() {
            let thread = program.thread(t);
            for at in thread.locations() {
                // What lies within an instruction is no copy of the place before it.
                let first = thread.edges_from(at).first().map_or(0, |(_, edge)| edge.line);
                let line = if thread.location(at).within { 0 } else { first };
                places.entry(CodeKey::of(program, line, t, at.0)).or_default().push(Passage::All(t, at));
            }
            for (e, edge) in thread.edges() {
                let stores = matches!(edge.instr, Instr::Store { .. });
                let key = CodeKey::of(program, if stores { edge.line } else { 0 }, t, e.0);
                statements.entry((key, stores)).or_default().push((t, e));
            }
            names.push(thread.name());
        }
        // The second thread of a function has its name with a number behind it.
        let owner = |name: &&str| match name.rsplit_once('_') {
            Some((first, number)) if number.parse::<u32>().is_ok() && names.contains(&first) => {
                first.to_string()
            }
            _ => name.to_string(),
        };
        let offset = None;
        SourceMap {
            owners: names.iter().map(owner).collect(),
            places: places.into_values().map(|copies| SourcePlace { offset, copies }).collect(),
            statements: statements.into_values().map(|edges| Statement { offset, edges }).collect(),
        }
    }

    /// Ranges of threads are copies of one text each, location by location and edge by edge. Those that turn
    /// out not to be are told apart.
    pub fn of_copies(program: &Program, copies: &[Range<u16>]) -> SourceMap {
        let mut map = SourceMap::default();
        for range in copies {
            let threads: Vec<ThreadId> = range.clone().map(ThreadId).collect();
            match threads.iter().all(|&t| is_copy(program, threads[0], t)) {
                true => map.add_copies(program, &threads),
                false => threads.iter().for_each(|&t| map.add_copies(program, &[t])),
            }
        }
        map
    }

    fn add_copies(&mut self, program: &Program, threads: &[ThreadId]) {
        let Some((&first, &last)) = threads.first().zip(threads.last()) else { return };
        let (from, to) = (program.thread(first), program.thread(last));
        let places = from.locations().map(|at| SourcePlace {
            offset: None,
            copies: threads.iter().map(|&t| Passage::All(t, at)).collect(),
        });
        self.places.extend(places);
        let statements = from
            .edges()
            .map(|(e, _)| Statement { offset: None, edges: threads.iter().map(|&t| (t, e)).collect() });
        self.statements.extend(statements);
        let owner = match threads.len() {
            1 => from.name().to_string(),
            _ => format!("{}..={}", from.name(), to.name()),
        };
        self.owners.extend(threads.iter().map(|_| owner.clone()));
    }

    /// Is the thread one of several that were made from the same text?
    pub fn has_siblings(&self, t: ThreadId) -> bool {
        self.owners.iter().filter(|owner| **owner == self.owners[t.index()]).count() > 1
    }
}

/// An instruction, in the order of the text; or what is no instruction's, for itself.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct CodeKey<'p> {
    file: Option<&'p str>,
    line: u32,
    at: &'p str,
    /// Where a function of a library was called.
    called: Option<(&'p str, u32)>,
    alone: Option<(ThreadId, u32)>,
}

impl<'p> CodeKey<'p> {
    fn of(program: &'p Program, line: u32, thread: ThreadId, number: u32) -> CodeKey<'p> {
        let Some(code) = program.code(line) else {
            let alone = Some((thread, number));
            return CodeKey { file: None, line: 0, at: "", called: None, alone };
        };
        let is_library = code.at == code.asm;
        let called = code.calls.first().filter(|_| is_library).map(|call| (&call.function[..], call.line));
        CodeKey { file: code.file.as_deref(), line: code.line, at: &code.at, called, alone: None }
    }
}

/// Do the threads have the same graph, line by line?
fn is_copy(program: &Program, a: ThreadId, b: ThreadId) -> bool {
    let (a, b) = (program.thread(a), program.thread(b));
    let same_size =
        a.graph().node_count() == b.graph().node_count() && a.graph().edge_count() == b.graph().edge_count();
    let mut pairs = a.edges().zip(b.edges());
    same_size && pairs.all(|((_, e), (_, f))| (e.from, e.to, e.line) == (f.from, f.to, f.line))
}

impl Passage {
    pub fn thread(&self) -> ThreadId {
        match self {
            Passage::All(t, _) | Passage::Some(t, _) => *t,
        }
    }
}

/// A place of the user's text: before what stands at a byte of it.
#[derive(Clone, Copy, Debug)]
pub struct Spot<'a> {
    /// From 1.
    pub line: u32,
    /// The line before the byte, and from it on.
    head: &'a str,
    tail: &'a str,
}

impl<'a> Spot<'a> {
    pub fn at(source: &'a str, offset: usize) -> Option<Spot<'a>> {
        let (before, behind) = source.split_at_checked(offset)?;
        let line = before.matches('\n').count() as u32 + 1;
        let tail = behind.split('\n').next().unwrap_or_default();
        Some(Spot { line, head: before.rsplit('\n').next().unwrap_or_default(), tail })
    }

    /// The label that stands there.
    pub fn label(&self) -> Option<&'a str> {
        let name = self.tail.split_once(':')?.0.trim_end();
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        (!name.is_empty() && name.chars().all(is_name)).then_some(name)
    }

    /// What stands there, without what follows on the same line.
    pub fn words(&self) -> &'a str {
        let end = [";", "//", "#"].into_iter().filter_map(|stop| self.tail.find(stop)).min();
        self.tail[..end.unwrap_or(self.tail.len())].trim_end()
    }

    /// The rows that take the place of its row once more is inserted: what stood before, if anything did, the
    /// new one, and what stands there.
    pub fn rows(&self, source: &str, inserted: &str) -> [Option<String>; 3] {
        let margin = match self.head.trim().is_empty() {
            true => self.head.to_string(),
            false => " ".repeat(blanks(self.head).len() + 4),
        };
        let indent = if self.closes() { self.above(source).max(margin.clone()) } else { margin.clone() };
        let head = Some(self.head.trim_end()).filter(|head| !head.is_empty()).map(str::to_string);
        [head, Some(format!("{indent}{inserted}")), Some(format!("{margin}{}", self.tail))]
    }

    /// Does it stand further to the left than statements do?
    fn closes(&self) -> bool {
        self.head.trim().is_empty()
            && (self.label().is_some() || self.tail.starts_with('}') || self.words() == "end")
    }

    /// The blanks that statements begin with on the last line above: more than the line's own if it has a
    /// label in front.
    fn above(&self, source: &str) -> String {
        let mut above = source.lines().take(self.line as usize - 1).collect::<Vec<_>>().into_iter().rev();
        let Some(line) = above.find(|line| !line.trim().is_empty()) else { return String::new() };
        let (head, tail) = line.split_at(blanks(line).len());
        let labelled = Spot { line: 0, head, tail }.label().is_some();
        if labelled { format!("{head}    ") } else { head.to_string() }
    }
}

/// What the line begins with.
fn blanks(line: &str) -> &str {
    &line[..line.len() - line.trim_start().len()]
}

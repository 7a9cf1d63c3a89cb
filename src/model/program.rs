//! The program itself: shared variables, threads as graphs, properties; and the names of its parts.
//!
//! Addresses are the integers from 0 up, one per cell of the variables in their order. A thread's graph has
//! locations as nodes and instructions on edges; `end` is the location where the thread is finished and has
//! no way out. Two things can go wrong in a thread whatever the memory model: a failing `assert`, a division
//! by zero or an access outside memory takes it to [`Loc::TRAP`], which lies outside the graph.
//! Invariant: every `Program` has passed `validity`; all ids in it are in range.

use super::ids::{Addr, EdgeId, Loc, ThreadId};
use super::source::{self, LinePlace, Stretch};
use super::validity::{self, Invalid};
use super::{Atom, BinOp, CodeLine, Expr, FenceKinds, Instr, Property, Reg, RegExpr, Value};
use petgraph::graph::{DiGraph, EdgeIndex, NodeIndex};
use petgraph::visit::{Dfs, EdgeFiltered, EdgeRef, IntoNeighbors, Reversed, Visitable};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A named run of cells; `init` has one value per cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variable {
    pub name: String,
    pub init: Vec<Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Location {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// Lies in the middle of one instruction of the user's text: nothing can be inserted here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub within: bool,
}

impl Location {
    pub fn labelled(labels: Vec<String>) -> Location {
        Location { labels, within: false }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edge {
    pub from: Loc,
    pub to: Loc,
    pub instr: Instr,
    /// The line of the user's file, 0 if there is none.
    #[serde(default)]
    pub line: u32,
    /// The instruction as the user wrote it, with the constants of templates filled in.
    #[serde(default)]
    pub text: String,
    /// What the edge stands for in the user's program, in a derived program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
}

/// What an edge of a derived program stands for: the edge of the user's program, and what part of it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Origin {
    /// The instruction itself; a store reaches memory as well.
    Whole(EdgeId),
    /// A store is issued: it waits in auxiliary registers.
    Issue(EdgeId),
    /// A store that was issued before reaches memory.
    Flush(EdgeId),
    /// Book-keeping: nothing happens in the user's program.
    Nothing,
}

/// The parts of a thread, as a front end gathers them and as `.ron` files hold them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadParts {
    pub name: String,
    pub registers: Vec<String>,
    pub locations: Vec<Location>,
    pub edges: Vec<Edge>,
    pub initial: Loc,
    pub end: Loc,
}

/// The parts of a program; [`Program::new`] checks them and builds the graphs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramParts {
    pub memory: Vec<Variable>,
    pub threads: Vec<ThreadParts>,
    pub properties: Vec<Property>,
    /// The line on which `no hang` is asked for, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_hang: Option<u32>,
    /// Where lines come from, if not all from one file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stretches: Vec<Stretch>,
    /// Of a program that was made from object code: what its lines are, the first of which is line 1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub code: Vec<CodeLine>,
}

#[derive(Clone, Debug)]
pub struct Thread {
    name: String,
    registers: Vec<String>,
    graph: DiGraph<Location, Edge, u32>,
    initial: Loc,
    end: Loc,
}

#[derive(Clone, Debug)]
pub struct Program {
    memory: Vec<Variable>,
    initial_memory: Vec<Value>,
    threads: Vec<Thread>,
    properties: Vec<Property>,
    no_hang: Option<u32>,
    stretches: Vec<Stretch>,
    code: Vec<CodeLine>,
}

impl Program {
    /// Checks the parts, and reports everything that is wrong with them.
    pub fn new(parts: ProgramParts) -> Result<Program, Vec<Invalid>> {
        let wrong = validity::check(&parts);
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let initial_memory = parts.memory.iter().flat_map(|v| v.init.iter().copied()).collect();
        let ProgramParts { memory, threads, properties, no_hang, stretches, code } = parts;
        let threads = threads.into_iter().map(Thread::new).collect();
        Ok(Program { memory, initial_memory, threads, properties, no_hang, stretches, code })
    }

    pub fn to_parts(&self) -> ProgramParts {
        ProgramParts {
            memory: self.memory.clone(),
            threads: self.threads.iter().map(Thread::to_parts).collect(),
            properties: self.properties.clone(),
            no_hang: self.no_hang,
            stretches: self.stretches.clone(),
            code: self.code.clone(),
        }
    }

    pub fn into_parts(self) -> ProgramParts {
        ProgramParts {
            memory: self.memory,
            threads: self.threads.into_iter().map(Thread::into_parts).collect(),
            properties: self.properties,
            no_hang: self.no_hang,
            stretches: self.stretches,
            code: self.code,
        }
    }

    pub fn variables(&self) -> &[Variable] {
        &self.memory
    }

    pub fn initial_memory(&self) -> &[Value] {
        &self.initial_memory
    }

    /// The number of cells; addresses run from 0 up to it.
    pub fn cells(&self) -> usize {
        self.initial_memory.len()
    }

    /// The cell at a computed address, if there is one.
    #[inline]
    pub fn cell(&self, address: Value) -> Option<Addr> {
        usize::try_from(address).ok().filter(|&a| a < self.cells()).map(|a| Addr(a as u32))
    }

    pub fn threads(&self) -> &[Thread] {
        &self.threads
    }

    pub fn thread(&self, t: ThreadId) -> &Thread {
        &self.threads[t.index()]
    }

    pub fn thread_ids(&self) -> impl Iterator<Item = ThreadId> + use<> {
        (0..self.threads.len() as u16).map(ThreadId)
    }

    pub fn properties(&self) -> &[Property] {
        &self.properties
    }

    /// Where the user finds a line of the program.
    pub fn place(&self, line: u32) -> LinePlace<'_> {
        match self.code(line) {
            Some(code) => code.place(),
            None => source::place(&self.stretches, line),
        }
    }

    /// What the line is, in a program that was made from object code.
    pub fn code(&self, line: u32) -> Option<&CodeLine> {
        self.code.get((line as usize).checked_sub(1)?)
    }

    /// The instruction of an edge as the user knows it.
    pub fn words(&self, thread: &Thread, edge: &Edge) -> String {
        match (edge.text.is_empty(), self.code(edge.line)) {
            (true, Some(code)) => code.words().to_string(),
            (true, None) => thread.show_instr(self, &edge.instr),
            (false, _) => edge.text.clone(),
        }
    }

    pub fn has_asserts(&self) -> bool {
        self.threads.iter().any(|t| t.edges().any(|(_, e)| matches!(e.instr, Instr::Assert(_))))
    }

    /// May a thread end inside a `lock` … `unlock` block, which then holds memory for good?
    pub fn may_end_inside_block(&self) -> bool {
        self.has_locks() && self.threads.iter().any(|t| t.inside_blocks()[t.end.index()])
    }

    /// The first instruction that waits for all threads' buffers, if there is one: not every engine, and no
    /// other tool, knows what that is.
    pub fn membarrier(&self) -> Option<(&Thread, &Edge)> {
        let edges = self.threads.iter().flat_map(|t| t.edges().map(move |(_, e)| (t, e)));
        edges.into_iter().find(|(_, e)| e.instr == Instr::Membarrier)
    }

    /// The line on which the program asks that it never hangs, 0 if it has no lines.
    pub fn no_hang(&self) -> Option<u32> {
        self.no_hang
    }

    pub fn has_locks(&self) -> bool {
        self.threads.iter().any(|t| t.edges().any(|(_, e)| matches!(e.instr, Instr::Lock)))
    }

    /// Does some access touch a part of its cell only?
    pub fn mixes_sizes(&self) -> bool {
        let mut edges = self.threads.iter().flat_map(|t| t.edges());
        edges.any(|(_, e)| e.instr.bytes().is_some_and(|bytes| !bytes.is_whole()))
    }

    /// All instructions of object code, in the order in which lines count them.
    pub fn code_lines(&self) -> &[CodeLine] {
        &self.code
    }

    /// The same, with the text of the lines that instructions of object code come from, as far as it is known.
    pub fn with_sources(mut self, mut text: impl FnMut(&str, u32) -> Option<String>) -> Program {
        for code in &mut self.code {
            code.source = code.file.as_ref().and_then(|file| text(file, code.line));
        }
        self
    }

    /// The name of a cell: `x`, or `a[2]` inside an array.
    pub fn cell_name(&self, addr: Addr) -> String {
        let (variable, offset) = self.variable_at(addr);
        if variable.init.len() == 1 { variable.name.clone() } else { format!("{}[{offset}]", variable.name) }
    }

    /// The cell as the native language writes it inside brackets: `x`, or `a + 2`.
    pub fn cell_expr(&self, addr: Addr) -> String {
        match self.variable_at(addr) {
            (variable, 0) => variable.name.clone(),
            (variable, offset) => format!("{} + {offset}", variable.name),
        }
    }

    fn variable_at(&self, addr: Addr) -> (&Variable, usize) {
        let mut offset = addr.index();
        for variable in &self.memory {
            if offset < variable.init.len() {
                return (variable, offset);
            }
            offset -= variable.init.len();
        }
        unreachable!("an address in a program lies inside its memory")
    }

    pub fn show_atom(&self, atom: &Atom) -> String {
        match atom {
            Atom::At(t, locs) => {
                let thread = self.thread(*t);
                let places: Vec<String> =
                    locs.iter().map(|&l| format!("{}@{}", thread.name, thread.location_name(l))).collect();
                match places.len() {
                    1 => places[0].clone(),
                    _ => format!("({})", places.join(" || ")),
                }
            }
            Atom::Reg(t, r) => format!("{}.{}", self.thread(*t).name, self.thread(*t).register_name(*r)),
            Atom::Mem(a) => format!("[{}]", self.cell_expr(*a)),
        }
    }
}

impl Thread {
    fn new(parts: ThreadParts) -> Thread {
        let mut graph = DiGraph::with_capacity(parts.locations.len(), parts.edges.len());
        for location in parts.locations {
            graph.add_node(location);
        }
        for edge in parts.edges {
            graph.add_edge(NodeIndex::new(edge.from.index()), NodeIndex::new(edge.to.index()), edge);
        }
        Thread { name: parts.name, registers: parts.registers, graph, initial: parts.initial, end: parts.end }
    }

    pub fn to_parts(&self) -> ThreadParts {
        ThreadParts {
            name: self.name.clone(),
            registers: self.registers.clone(),
            locations: self.graph.node_weights().cloned().collect(),
            edges: self.graph.edge_weights().cloned().collect(),
            initial: self.initial,
            end: self.end,
        }
    }

    fn into_parts(self) -> ThreadParts {
        let (nodes, edges) = self.graph.into_nodes_edges();
        ThreadParts {
            name: self.name,
            registers: self.registers,
            locations: nodes.into_iter().map(|node| node.weight).collect(),
            edges: edges.into_iter().map(|edge| edge.weight).collect(),
            initial: self.initial,
            end: self.end,
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn registers(&self) -> &[String] {
        &self.registers
    }

    pub fn register_name(&self, r: Reg) -> &str {
        &self.registers[r.index()]
    }

    pub fn graph(&self) -> &DiGraph<Location, Edge, u32> {
        &self.graph
    }

    pub fn initial(&self) -> Loc {
        self.initial
    }

    pub fn end(&self) -> Loc {
        self.end
    }

    pub fn locations(&self) -> impl Iterator<Item = Loc> + use<> {
        (0..self.graph.node_count() as u32).map(Loc)
    }

    pub fn edges(&self) -> impl Iterator<Item = (EdgeId, &Edge)> {
        self.graph.edge_references().map(|e| (EdgeId(e.id().index() as u32), e.weight()))
    }

    pub fn edge(&self, id: EdgeId) -> &Edge {
        &self.graph[EdgeIndex::new(id.index())]
    }

    /// The edges out of a location, in the order of the program text.
    pub fn edges_from(&self, loc: Loc) -> Vec<(EdgeId, &Edge)> {
        let mut edges: Vec<_> = self
            .graph
            .edges(NodeIndex::new(loc.index()))
            .map(|e| (EdgeId(e.id().index() as u32), e.weight()))
            .collect();
        edges.sort_by_key(|(id, _)| *id);
        edges
    }

    /// For a load of which only low bits count: the step behind it that keeps them, the register that gets them,
    /// and these bits.
    pub fn narrowed(&self, load: &Edge) -> Option<(&Edge, Reg, Value)> {
        let found = load.instr.target().filter(|_| matches!(load.instr, Instr::Load { .. }))?;
        let [(_, cut)] = self.edges_from(load.to)[..] else { return None };
        match &cut.instr {
            Instr::Assign { dst, value: Expr::Binary(BinOp::BitAnd, whole, bits) } => match **bits {
                Expr::Const(bits) if **whole == Expr::Atom(found) && self.location(load.to).within => {
                    Some((cut, *dst, bits))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// The locations to which paths lead from the beginning, whatever values let through.
    pub fn reachable(&self) -> BTreeSet<Loc> {
        let mut walk = Dfs::new(&self.graph, NodeIndex::new(self.initial.index()));
        let nodes = std::iter::from_fn(|| walk.next(&self.graph));
        nodes.map(|node| Loc(node.index() as u32)).collect()
    }

    /// Per location whether a path leads there from one of `seeds`, themselves included, along edges that
    /// `open` lets pass.
    pub fn reachable_from(
        &self,
        seeds: impl IntoIterator<Item = Loc>,
        open: impl Fn(&Edge) -> bool,
    ) -> Vec<bool> {
        self.marked(&EdgeFiltered::from_fn(&self.graph, |e| open(e.weight())), seeds)
    }

    /// Per location whether a path leads from it to one of `seeds`, themselves included, along edges that
    /// `open` lets pass.
    pub fn reaching(&self, seeds: impl IntoIterator<Item = Loc>, open: impl Fn(&Edge) -> bool) -> Vec<bool> {
        self.marked(Reversed(&EdgeFiltered::from_fn(&self.graph, |e| open(e.weight()))), seeds)
    }

    /// The locations that walks from `seeds` come to.
    fn marked(
        &self,
        graph: impl IntoNeighbors + Visitable<NodeId = NodeIndex>,
        seeds: impl IntoIterator<Item = Loc>,
    ) -> Vec<bool> {
        let mut marked = vec![false; self.graph.node_count()];
        let mut walk = Dfs::empty(graph);
        for seed in seeds {
            walk.move_to(NodeIndex::new(seed.index()));
            while let Some(node) = walk.next(graph) {
                marked[node.index()] = true;
            }
        }
        marked
    }

    /// Per location whether the thread may be inside a `lock` … `unlock` block there.
    pub fn inside_blocks(&self) -> Vec<bool> {
        let locks = self.edges().filter(|(_, e)| e.instr == Instr::Lock);
        self.reachable_from(locks.map(|(_, e)| e.to), |e| e.instr != Instr::Unlock)
    }

    pub fn location(&self, loc: Loc) -> &Location {
        &self.graph[NodeIndex::new(loc.index())]
    }

    /// A label of the location, or a made-up name that no label can have.
    pub fn location_name(&self, loc: Loc) -> String {
        match loc {
            Loc::TRAP => "<error>".to_string(),
            _ => match self.location(loc).labels.first() {
                Some(label) => label.clone(),
                None if loc == self.end => "<end>".to_string(),
                None => format!("<{}>", loc.0),
            },
        }
    }

    pub fn show_expr(&self, e: &RegExpr) -> String {
        e.show(&|r| self.register_name(*r).to_string())
    }

    /// The instruction in the native language.
    pub fn show_instr(&self, program: &Program, instr: &Instr) -> String {
        let reg = |r: &Reg| self.register_name(*r);
        let expr = |e: &RegExpr| self.show_expr(e);
        let addr = |e: &RegExpr| match e.constant().and_then(|a| program.cell(a)) {
            Some(cell) => program.cell_expr(cell),
            None => self.show_expr(e),
        };
        match instr {
            Instr::Load { dst, addr: a, bytes } => format!("load {}, [{}{bytes}]", reg(dst), addr(a)),
            Instr::Store { addr: a, value, bytes } => format!("store [{}{bytes}], {}", addr(a), expr(value)),
            Instr::Fence => "fence".to_string(),
            Instr::Partial(FenceKinds::NONE) => "nop".to_string(),
            Instr::Partial(kinds) => format!("fence {}", kinds.words()),
            Instr::Membarrier => "membarrier".to_string(),
            Instr::Assign { dst, value } => format!("{} = {}", reg(dst), expr(value)),
            Instr::Any { dst, lo, hi } => format!("{} = any({lo}..={hi})", reg(dst)),
            Instr::Assume(e) => format!("assume {}", expr(e)),
            Instr::Assert(e) => format!("assert {}", expr(e)),
            Instr::Rmw { dst, addr: a, op } => {
                let operands: Vec<String> = op.operands().into_iter().map(expr).collect();
                format!("{} {}, [{}], {}", op.word(), reg(dst), addr(a), operands.join(", "))
            }
            Instr::Lock => "lock".to_string(),
            Instr::Unlock => "unlock".to_string(),
            Instr::Nop => "nop".to_string(),
        }
    }
}

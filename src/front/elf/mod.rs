//! What does machine code do? x86-64 object files, archives and executables, whatever language they came from.
//!
//! ```text
//! files ──image──▶ memory ──threads──▶ main has run alone ──graph──▶ places, known numbers ──emit──▶ Program
//! ```
//!
//! `image` is the linker. `lift` says what instructions do and `calls` what functions of libraries do, both in the
//! operations of `ops`, which `exec` performs on a `state` of what is known. `threads` lets `main` run alone with that;
//! `graph` finds all places of a thread, and `facts` what all threads do to memory, until neither changes; `layout`
//! makes cells of it and `emit` the threads of the model.

mod access;
mod bytes;
mod calls;
mod decode;
mod emit;
mod exec;
mod facts;
mod goals;
mod graph;
mod heap;
mod image;
mod layout;
mod lift;
mod lines;
mod ops;
mod refusal;
mod sink;
mod state;
mod threads;
mod tidy;
mod value;
mod vector;

pub use calls::Stub;
pub use heap::Reuse;
pub use image::{CodeFile, foreign, is_code};

use self::calls::Calls;
use self::decode::Code64;
use self::exec::{CodePlace, Creation, Exec, Root, World};
use self::facts::{AccessKind, CodeFacts};
use self::goals::{AskedCells, SymbolGoal};
use self::graph::CodeGraph;
use self::image::{Image, Linking, link};
use self::layout::Layout;
use self::lines::Lines;
use self::ops::{Flags, Lifted};
use self::refusal::{Refusal, Result};
use self::threads::{Beginning, Most};
use super::{Diagnostic, Input, Severity, Unread};
use crate::limits::Limits;
use crate::model::code::{CodeCall, CodeLine};
use crate::model::program::{ProgramParts, ThreadParts};
use crate::model::{Program, PropertyKind};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

/// Until nothing changes any more; what grows longer than this grows for ever.
const ROUNDS: usize = 60;

/// What the user says beside the files.
#[derive(Clone, Debug)]
pub struct Options {
    /// Threads by their functions, each with its argument, instead of `main`.
    pub threads: Vec<(String, Option<String>)>,
    pub stubs: BTreeMap<String, Stub>,
    pub fail_at: HashSet<String>,
    /// Bytes of each thread's heap.
    pub heap: u64,
    /// What becomes of memory that is given back.
    pub reuse: Reuse,
    pub entry: Option<String>,
    /// Conditions over variables that no state may have, and no final state.
    pub forbid: Vec<String>,
    pub never: Vec<String>,
    pub exists: Vec<String>,
    /// What variables are at the beginning: `x=1`.
    pub init: Vec<String>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            threads: vec![],
            stubs: BTreeMap::new(),
            fail_at: HashSet::new(),
            heap: 1 << 20,
            reuse: Reuse::default(),
            entry: None,
            forbid: vec![],
            never: vec![],
            exists: vec![],
            init: vec![],
        }
    }
}

/// The program that the files make.
pub fn read(files: &[CodeFile], options: &Options, limits: &Limits) -> std::result::Result<Input, Unread> {
    let mut roots: Vec<String> = options.threads.iter().map(|(name, _)| name.clone()).collect();
    roots.extend(options.entry.clone());
    let linking = Linking { limits, roots: &roots, known: &calls::is_known };
    let unread = |refusal: Refusal| refusal.unread(|at| format!("at {at:#x}"));
    let mut image = link(files, &linking).map_err(unread)?;
    for text in &options.init {
        let (AskedCells { address, bytes }, value) = goals::initial(text, &image).map_err(unread)?;
        image.bytes.write_number(address, value, bytes);
    }
    let goals = goals(options, &image).map_err(unread)?;
    let lines = Lines::new(&image.debug, limits)?;
    let calls = Calls::new(&options.stubs, &options.fail_at, &image.libraries);
    let code = Code64::new(&image.bytes);
    let world = World { code, image: &image, calls, limits, heap: options.heap, reuse: options.reuse };
    let made = CodeReader { world: &world, options, goals, lines: &lines, lifted: HashMap::new() }.program();
    made.map_err(|refusal| refusal.unread(|at| place(&world, &lines, at)))
}

/// What is freed is not used again.
fn kept() -> Diagnostic {
    let message =
        "the program frees memory, and some of it is not given out again here: what comes of addresses \
                   that are used again (ABA) is not found"
            .to_string();
    Diagnostic { severity: Severity::Warning, message, span: None, label: String::new(), help: None }
}

/// What the user asks.
fn goals(options: &Options, image: &Image) -> Result<Vec<SymbolGoal>> {
    let kinds = [
        (PropertyKind::Forbid, &options.forbid),
        (PropertyKind::Never, &options.never),
        (PropertyKind::Exists, &options.exists),
    ];
    let all = kinds.into_iter().flat_map(|(kind, texts)| texts.iter().map(move |text| (kind, text)));
    all.map(|(kind, text)| SymbolGoal::parse(kind, text, image)).collect()
}

/// A place in the code, for people.
fn place(world: &World, lines: &Lines, at: u64) -> String {
    let mut words = Vec::new();
    if let Some(line) = lines.at(at) {
        words.push(format!("{}:{}", line.file, line.line));
    }
    let function = world.image.function(at).map(|name| format!("in `{name}`"));
    words.extend(function);
    if !world.image.libraries.contains_key(&at) {
        let text = world.code.text(at);
        if !text.is_empty() {
            words.push(format!("`{text}`"));
        }
    }
    if words.is_empty() { format!("at {at:#x}") } else { words.join(", ") }
}

struct CodeReader<'r, 'a> {
    world: &'r World<'a>,
    options: &'r Options,
    goals: Vec<SymbolGoal>,
    lines: &'r Lines,
    lifted: HashMap<(u64, Flags), Rc<Lifted>>,
}

/// All threads with what they do.
struct Analysis {
    graphs: Vec<CodeGraph>,
    facts: CodeFacts,
}

impl CodeReader<'_, '_> {
    fn program(mut self) -> Result<Input> {
        let mut most = Most { steps: usize::MAX, frees: usize::MAX };
        loop {
            let mut beginning = self.beginning(most)?;
            let analysis = self.analyse(&mut beginning)?;
            match (conflict(&beginning, &analysis.facts), analysis.facts.wanted_by_others()) {
                // The step itself is not for a thread that is alone.
                (Some(step), _) => most.steps = step - 1,
                (None, Some(frees)) => most.frees = frees,
                (None, None) => return self.emitted(beginning, analysis),
            }
        }
    }

    fn beginning(&mut self, most: Most) -> Result<Beginning> {
        if self.options.threads.is_empty() {
            let name = self.options.entry.as_deref().unwrap_or("main");
            let main = self.world.image.symbols.get(name).filter(|s| s.is_code).map(|s| s.address);
            let main = main.ok_or_else(|| {
                let why = format!("there is no function `{name}`");
                Refusal::new(why)
                    .help("name the functions that run side by side: --thread left --thread right")
            })?;
            return threads::run_alone(self.world, &mut self.lifted, main, most);
        }
        let mut memory = self.world.image.bytes.clone();
        let mut roots = Vec::new();
        for (name, argument) in &self.options.threads {
            let function = self.symbol(name)?;
            let argument = match argument {
                Some(text) => self.argument(text)?,
                None => 0,
            };
            let root = threads::root(self.world, &mut memory, roots.len() + 1, function, argument)?;
            let own = root.state.known(ops::Var::Own).unwrap_or(0);
            memory.write_number(own + threads::START, 1, 8);
            roots.push(root);
        }
        let (contexts, beside, facts) = Default::default();
        Ok(Beginning { memory, roots, contexts, beside, facts })
    }

    fn symbol(&self, name: &str) -> Result<u64> {
        let found = self.world.image.symbols.get(name).map(|s| s.address);
        found.ok_or_else(|| Refusal::new(format!("no file defines `{name}`")))
    }

    /// A number, or `&` and the name of something.
    fn argument(&self, text: &str) -> Result<u64> {
        if let Some(name) = text.strip_prefix('&') {
            return self.symbol(name);
        }
        let number = match text.strip_prefix("0x") {
            Some(digits) => i64::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        };
        let why = || Refusal::new(format!("`{text}` is no number, and does not begin with `&` and a name"));
        number.map(|number| number as u64).ok_or_else(why)
    }

    fn analyse(&mut self, beginning: &mut Beginning) -> Result<Analysis> {
        let mut facts = beginning.facts.clone();
        for AskedCells { address, bytes } in self.goals.iter().flat_map(SymbolGoal::wanted) {
            facts.share(address, u64::from(bytes));
        }
        for _ in 0..ROUNDS {
            facts.take_changed();
            let mut graphs: Vec<CodeGraph> = Vec::new();
            let mut number = 0;
            while number < beginning.roots.len() {
                graphs.push(self.explore(beginning, number, &mut facts)?);
                number += 1;
            }
            if !facts.take_changed() {
                return Ok(Analysis { graphs, facts });
            }
        }
        let why = "what memory holds grows for ever, or for too long to be looked at";
        Err(Refusal::new(why).help("are addresses computed from counters without a bound?"))
    }

    fn explore(
        &mut self,
        beginning: &mut Beginning,
        number: usize,
        facts: &mut CodeFacts,
    ) -> Result<CodeGraph> {
        let Beginning { memory, roots, contexts, .. } = beginning;
        let Root { start, state, stack, .. } = roots[number].clone();
        let world = self.world;
        let mut more: Vec<(CodePlace, Creation, usize)> = Vec::new();
        let existing: Vec<(Option<(u16, CodePlace)>, usize)> =
            roots.iter().enumerate().map(|(n, root)| (root.creator, n)).collect();
        let first = roots.len();
        let mut create = |creation: Creation| {
            let key = Some((number as u16, creation.place));
            if let Some((_, n)) = existing.iter().find(|(creator, _)| *creator == key) {
                return Ok(threads::handle(world, *n));
            }
            let known = more.iter().position(|(place, ..)| *place == creation.place);
            let n = known.unwrap_or_else(|| {
                more.push((creation.place, creation, first + more.len()));
                more.len() - 1
            });
            let (_, before, n) = more[n];
            if (before.function, before.argument) != (creation.function, creation.argument) {
                return Err(Refusal::new(
                    "threads are created here with arguments that differ from call to call",
                ));
            }
            Ok(threads::handle(world, n))
        };
        // Room for those who are created on the way.
        let mut exec = Exec {
            world,
            thread: number as u16,
            stack,
            contexts,
            memory: &mut memory.clone(),
            facts,
            created: &mut create,
            alone: None,
            lifted: &mut self.lifted,
        };
        for n in first..first + 8 {
            let _ = threads::area(world, exec.memory, n);
        }
        let graph = CodeGraph::explore(&mut exec, start, &state)?;
        for (place, creation, n) in more {
            let at = graph.node(&CodePlace { op: 0, ..place });
            if at.is_some_and(|at| graph.is_on_cycle(at)) {
                let why = "threads are created in a loop that has no bound";
                return Err(Refusal::new(why)
                    .at(place.address)
                    .help("create a number of threads that is known"));
            }
            let mut root = threads::root(world, memory, n, creation.function, creation.argument)?;
            root.creator = Some((number as u16, creation.place));
            roots.push(root);
            facts.touched_anew();
        }
        Ok(graph)
    }

    fn emitted(&mut self, beginning: Beginning, analysis: Analysis) -> Result<Input> {
        let Beginning { mut memory, roots, mut contexts, .. } = beginning;
        let Analysis { graphs, mut facts } = analysis;
        let keeps = facts.frees() && self.options.reuse == Reuse::Fresh || facts.keeps_freed();
        let wanted: Vec<AskedCells> = self.goals.iter().flat_map(SymbolGoal::wanted).collect();
        let layout = Layout::new(&facts, &memory, self.world.image, &wanted)?;
        let mut parts = ProgramParts::default();
        let mut code = CodeTable {
            world: self.world,
            lines: self.lines,
            known: HashMap::new(),
            rows: vec![],
            thread: 0,
        };
        let mut names: HashMap<String, usize> = HashMap::new();
        let world = self.world;
        for (number, (root, graph)) in roots.iter().zip(&graphs).enumerate() {
            let count = names.entry(root.name.clone()).or_default();
            *count += 1;
            let plain: String =
                root.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
            let name = if *count == 1 { plain } else { format!("{plain}_{count}") };
            let mut create = |creation: Creation| {
                let key = Some((number as u16, creation.place));
                let n = roots.iter().position(|root| root.creator == key);
                n.map(|n| threads::handle(world, n)).ok_or_else(|| Refusal::new("a thread is created late"))
            };
            let mut exec = Exec {
                world,
                thread: number as u16,
                stack: root.stack,
                contexts: &mut contexts,
                memory: &mut memory,
                facts: &mut facts,
                created: &mut create,
                alone: None,
                lifted: &mut self.lifted,
            };
            let calls: HashMap<u32, Vec<u64>> =
                graph.nodes.iter().map(|n| (n.place.context, exec.contexts.calls(n.place.context))).collect();
            code.thread = number;
            let seen = |place: &CodePlace| code.number(place, &calls[&place.context]);
            let (thread, parted) = emit::thread(&mut exec, root, graph, &layout, name, seen)?;
            parts.threads.push(thread);
            for line in parted {
                code.rows[line as usize - 1].parted = true;
            }
        }
        code.in_order(&mut parts.threads);
        parts.code = code.rows;
        parts.properties = self.goals.iter().map(|goal| goal.property(&layout)).collect();
        parts.memory = layout.variables;
        let wrong = |wrong: Vec<crate::model::Invalid>| {
            let why: Vec<String> = wrong.iter().take(3).map(|w| w.to_string()).collect();
            Refusal::new(why.join("; "))
        };
        let program = Program::new(parts).map_err(wrong)?;
        let warnings = if keeps { vec![kept()] } else { vec![] };
        Ok(Input { program, warnings, formulas: vec![] })
    }
}

/// The table of instructions that lines of the program count in.
struct CodeTable<'t, 'a> {
    world: &'t World<'a>,
    lines: &'t Lines,
    /// By address and context: the number, and the first thread that came by.
    known: HashMap<(u64, u32), (u32, usize)>,
    rows: Vec<CodeLine>,
    /// Who comes by now.
    thread: usize,
}

impl CodeTable<'_, '_> {
    /// The number of an instruction, given where the calls around it return to.
    fn number(&mut self, place: &CodePlace, calls: &[u64]) -> u32 {
        let key = (place.address, place.context);
        if let Some((known, _)) = self.known.get(&key) {
            return *known;
        }
        let row = self.row(place.address, calls);
        self.rows.push(row);
        let number = self.rows.len() as u32;
        self.known.insert(key, (number, self.thread));
        number
    }

    /// Numbers the instructions as a listing has them: by threads, calls and addresses, however they were come by.
    fn in_order(&mut self, threads: &mut [ThreadParts]) {
        let mut all: Vec<_> = self.known.iter().map(|((at, call), (n, t))| (*t, *call, *at, *n)).collect();
        all.sort_unstable();
        let mut places = vec![0; all.len() + 1];
        let mut rows = Vec::with_capacity(all.len());
        for (_, _, _, old) in all {
            rows.push(std::mem::take(&mut self.rows[old as usize - 1]));
            places[old as usize] = rows.len() as u32;
        }
        self.rows = rows;
        for edge in threads.iter_mut().flat_map(|thread| &mut thread.edges) {
            edge.line = places[edge.line as usize];
        }
    }

    fn row(&self, at: u64, calls: &[u64]) -> CodeLine {
        let image = self.world.image;
        let function = |at: u64| image.function(at).unwrap_or("?").to_string();
        let call = |back: &u64| {
            // The call stands before what it returns to.
            let line = self.lines.at(back - 1);
            CodeCall {
                function: function(back - 1),
                file: line.as_ref().map(|l| l.file.clone()),
                line: line.map_or(0, |l| l.line),
                ..CodeCall::default()
            }
        };
        let calls: Vec<CodeCall> = calls.iter().map(call).collect();
        if let Some(name) = image.libraries.get(&at) {
            let (file, line) = calls.first().map_or((None, 0), |c| (c.file.clone(), c.line));
            let (at, asm) = (name.clone(), name.clone());
            return CodeLine { function: name.clone(), at, asm, file, line, calls, ..CodeLine::default() };
        }
        let offset = image.name(at).map_or(0, |(_, offset)| offset);
        let line = self.lines.at(at);
        CodeLine {
            function: function(at),
            at: format!("{}+{offset:#x}", function(at)),
            asm: self.world.code.text(at),
            file: line.as_ref().map(|l| l.file.clone()),
            line: line.as_ref().map_or(0, |l| l.line),
            column: line.map_or(0, |l| l.column),
            calls,
            ..CodeLine::default()
        }
    }
}

/// The first step of `main` beside others that matters to one of them.
fn conflict(beginning: &Beginning, facts: &CodeFacts) -> Option<usize> {
    let matters = |(_, at, bytes, access): &&(usize, u64, u8, AccessKind)| {
        (*at..at + u64::from(*bytes)).any(|byte| match facts.touches(byte) {
            Some((written, mut threads)) => {
                (written || *access != AccessKind::Load) && threads.any(|t| t != 0)
            }
            None => false,
        })
    };
    let touched = beginning.beside.touched.iter().filter(matters).map(|(step, ..)| *step);
    // A block that it was given might have been one of theirs.
    let given = beginning.beside.asked.iter().filter(|(_, class)| facts.others_give(*class));
    touched.chain(given.map(|(step, _)| *step)).min()
}

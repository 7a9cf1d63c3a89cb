//! Which programs do the tests of a data type stand for? Each thread of a test has the bodies of its operations
//! one after the other, as calls of an `inline`, with a step that does nothing before each.
//!
//! What a block is, is decided here: a run of cells behind all others. Where every block is new, the threads of a
//! test take them in turns, so that nobody else takes the same one. Where blocks come again, each has a cell
//! before its fields that says whether it is held; `new` picks any block and takes it if that cell is 0. All of it
//! is one expansion, and so one file.

use super::inlines::Inlines;
use super::instr::names_in;
use super::labels;
use super::names::{self, TsoNames};
use super::registers::Frame;
use super::thread::{Budget, GrowingMemory, ThreadExpander, Unroller};
use crate::front::cfg::{Action, CfgStep, LabelId, first_edges};
use crate::front::const_fold;
use crate::front::diagnostics::{INSTRUCTION, Problem, Problems, Reported, Span};
use crate::front::tso::ast::{
    AllocText, ArgText, DataTypeText, Expr, File, Init, Invocation, LockedKind, Name, Op, Operation, Shared,
    Stmt, TestText,
};
use crate::model::datatype::{Allocation, Candidate, DataCall, DataTest, DataThread, DataType, Heap, NULL};
use crate::model::{BinOp, Bytes, EdgeId, FenceKinds, Instr, MAX_THREADS, Reg, RegExpr, RmwOp, Value};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Operations of one thread; more than any solver can look at.
const MOST_CALLS: usize = 64;

/// What a step of an operation is, beside what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallMark {
    Begin,
    Wait,
    Alloc,
    Free,
    Place(usize),
    /// Of the call with this number.
    Commit(usize),
}

/// What is known while the operations of a thread unfold.
#[derive(Default)]
pub(crate) struct Operations {
    heap: Option<HeapText>,
    marks: Vec<(usize, CallMark)>,
    /// Where `return` goes, what it sets, and how deep in `inline`s that is allowed.
    back: Option<(LabelId, Vec<Reg>, usize)>,
    calls: usize,
    /// What has been taken of the blocks so far.
    taken: Option<Reg>,
    places: HashMap<String, usize>,
    pub(crate) candidates: Vec<Candidate>,
}

#[derive(Clone, Copy)]
struct HeapText {
    heap: Heap,
    fenced: bool,
    /// Which of the takers this thread is.
    taker: usize,
}

pub(crate) fn is_exchange(statement: &Stmt<'_>) -> bool {
    match statement {
        Stmt::Instr(Op::Locked(locked), _) => locked.how == LockedKind::Xchg,
        Stmt::Commit(inner) => is_exchange(inner),
        _ => false,
    }
}

/// The data type that the file describes.
pub(crate) fn data_type<'s>(
    source: &'s str,
    file: &mut File<'s>,
    defines: &[(String, Value)],
    problems: &mut Problems<'s>,
) -> Result<DataType, Reported> {
    let Some(text) = file.datatype.take() else {
        let problem = Problem::error("this file describes no data type");
        return Err(problems.report(problem.help("the first line is `datatype NAME`")));
    };
    let largest = file.structs.iter().map(|s| s.fields.len()).max().unwrap_or(0);
    let first_cell = largest as Value + 1;
    let name = Name { text: NULL, span: text.name.span };
    let size = Some(Expr::Number(first_cell, text.name.span));
    file.shared.insert(0, Shared { name, size, init: Init::Zero });
    for thread in &file.threads {
        let problem = Problem::error("a data type has no threads of its own").at(thread.name.span);
        problems.report(problem.help("`test T = …` says which operations run side by side"));
    }
    for property in &file.properties {
        let problem = Problem::error("a data type has no properties").at(property.span);
        problems.report(problem.help("`assert` can stand in an operation"));
    }
    let (names, memory) = names::declare(file, defines, problems);
    let inlines = Inlines::new(file, problems);
    let operations = operations(&text, problems);
    if let Some(init) = &text.init {
        labels::check(init, problems);
    }
    let mut unfolding = Unfolding {
        source,
        names: &names,
        inlines: &inlines,
        operations: &operations,
        text: &text,
        first_cell,
        largest,
        memory: GrowingMemory { cells: memory.iter().map(|v| v.init.len()).sum(), variables: memory },
        budget: Budget::new(),
        places: HashMap::new(),
        candidates: Vec::new(),
    };
    let mut tests: Vec<DataTest> = Vec::new();
    let mut known: HashMap<&str, Span> = HashMap::new();
    for test in &text.tests {
        if let Some(first) = known.insert(test.name.text, test.name.span) {
            let line = problems.line_name(first);
            let problem = Problem::error(format!("test `{}` is defined twice", test.name.text));
            problems.report(problem.at(test.name.span).label(format!("first on line {line}")));
            continue;
        }
        if let Ok(test) = unfolding.test(test, problems) {
            tests.push(test);
        }
    }
    if text.tests.is_empty() && !problems.has_errors() {
        let problem = Problem::error("there are no tests in this file").at(text.name.span);
        problems.report(problem.help("a test looks like `test T = push | pop`"));
    }
    match problems.has_errors() {
        true => Err(Reported),
        false => Ok(DataType { name: text.name.text.to_string(), tests, candidates: unfolding.candidates }),
    }
}

fn operations<'t, 's>(
    text: &'t DataTypeText<'s>,
    problems: &mut Problems<'s>,
) -> HashMap<&'s str, &'t Operation<'s>> {
    let mut known: HashMap<&str, &Operation> = HashMap::new();
    for operation in &text.operations {
        labels::check(&operation.body, problems);
        let mut seen: HashSet<&str> = HashSet::new();
        for name in operation.params.iter().filter(|name| !seen.insert(name.text)) {
            let problem = Problem::error(format!("parameter `{}` stands twice", name.text));
            problems.report(problem.at(name.span));
        }
        if let Some(first) = known.insert(operation.name.text, operation) {
            let line = problems.line_name(first.name.span);
            let problem = Problem::error(format!("operation `{}` is defined twice", operation.name.text));
            problems.report(problem.at(operation.name.span).label(format!("first on line {line}")));
        }
    }
    known
}

struct Unfolding<'a, 's, 'f> {
    source: &'s str,
    names: &'a TsoNames<'s, 'f>,
    inlines: &'a Inlines<'s, 'f>,
    operations: &'a HashMap<&'s str, &'a Operation<'s>>,
    text: &'a DataTypeText<'s>,
    first_cell: Value,
    /// Fields of the largest struct.
    largest: usize,
    memory: GrowingMemory,
    budget: Budget,
    places: HashMap<String, usize>,
    candidates: Vec<Candidate>,
}

/// What an operation is called with.
#[derive(Clone, Copy)]
enum Arg {
    Value(Value),
    Any(Value, Value),
}

/// An operation, its arguments, and the text of the call.
type Call<'a, 's> = (&'a Operation<'s>, Vec<Arg>, Span);

impl<'a, 's> Unfolding<'a, 's, '_> {
    fn test(&mut self, test: &TestText<'s>, problems: &mut Problems<'s>) -> Result<DataTest, Reported> {
        if test.threads.len() > MAX_THREADS - 1 {
            let problem = Problem::error("a test has too many threads").at(test.span);
            return Err(problems.report(problem));
        }
        let allocation = match self.text.alloc {
            Some((AllocText::Reuse | AllocText::Unfenced, _)) => Allocation::Reuse,
            _ => Allocation::Fresh,
        };
        let fenced = !matches!(self.text.alloc, Some((AllocText::Unfenced, _)));
        let heap = Heap {
            allocation,
            base: self.memory.cells,
            stride: (self.largest + usize::from(allocation == Allocation::Reuse)).max(1),
            takers: test.threads.len() + 1,
        };
        // Arguments that nobody gives are 1, 2, 3, … in the order of the text.
        let mut next = 1;
        let initial = self.calls(&test.initial, &mut next, problems)?;
        for (_, args, span) in &initial {
            if args.iter().any(|a| matches!(a, Arg::Any(..))) {
                let problem = Problem::error("before `;` arguments are given").at(*span);
                return Err(problems.report(problem.help("a test has one beginning")));
            }
        }
        let threads: Result<Vec<_>, Reported> =
            test.threads.iter().map(|t| self.calls(t, &mut next, problems)).collect();
        let of = |taker| HeapText { heap, fenced, taker };
        let init = self.text.init.as_deref().unwrap_or(&[]);
        let setup = self.thread("init".to_string(), of(0), init, &initial, problems)?;
        let mut unfolded = Vec::new();
        for (k, calls) in threads?.iter().enumerate() {
            unfolded.push(self.thread(format!("t{}", k + 1), of(k + 1), &[], calls, problems)?);
        }
        Ok(DataTest {
            name: test.name.text.to_string(),
            text: self.source[test.span.start..test.span.end]
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" "),
            line: problems.line(test.span),
            heap,
            first_cell: self.first_cell,
            memory: self.memory.variables.clone(),
            setup,
            threads: unfolded,
        })
    }

    fn calls(
        &self,
        invocations: &[Invocation<'s>],
        next: &mut Value,
        problems: &mut Problems<'s>,
    ) -> Result<Vec<Call<'a, 's>>, Reported> {
        let none = Vec::new();
        let mut calls = Vec::new();
        for invocation in invocations {
            let name = invocation.operation;
            let Some(operation) = self.operations.get(name.text).copied() else {
                let meant = problems.nearest(name.text, self.operations.keys().copied());
                let problem = Problem::error(format!("there is no operation `{}`", name.text)).at(name.span);
                return Err(problems.report(problem.suggest(meant)));
            };
            let times = match &invocation.times {
                Some(e) => self.names.constant(e, &none, problems)?,
                None => 1,
            };
            if !(1..=MOST_CALLS as Value).contains(&times) || calls.len() + times as usize > MOST_CALLS {
                let problem = Problem::error(format!("a thread calls from 1 to {MOST_CALLS} operations"));
                return Err(problems.report(problem.at(invocation.span)));
            }
            for _ in 0..times {
                let args = match &invocation.args {
                    None => operation
                        .params
                        .iter()
                        .map(|_| Arg::Value(std::mem::replace(next, *next + 1)))
                        .collect(),
                    Some(args) => self.args(args, problems)?,
                };
                if args.len() != operation.params.len() {
                    let count = operation.params.len();
                    let plural = if count == 1 { "" } else { "s" };
                    let problem = Problem::error(format!(
                        "`{}` takes {count} argument{plural}, and gets {}",
                        name.text,
                        args.len()
                    ));
                    return Err(problems.report(problem.at(invocation.span)));
                }
                calls.push((operation, args, invocation.span));
            }
        }
        Ok(calls)
    }

    fn args(&self, args: &[ArgText<'s>], problems: &mut Problems<'s>) -> Result<Vec<Arg>, Reported> {
        let none = Vec::new();
        let mut values = Vec::new();
        for arg in args {
            values.push(match arg {
                ArgText::Given(e) => Arg::Value(self.names.constant(e, &none, problems)?),
                ArgText::Any(range) => {
                    let (lo, hi) = self.names.range(range, &none, problems)?;
                    if lo > hi {
                        let problem = Problem::error("there is no value in this range").at(range.span);
                        return Err(problems.report(problem));
                    }
                    Arg::Any(lo, hi)
                }
            });
        }
        Ok(values)
    }

    fn thread(
        &mut self,
        name: String,
        heap: HeapText,
        init: &[Stmt<'s>],
        calls: &[Call<'a, 's>],
        problems: &mut Problems<'s>,
    ) -> Result<DataThread, Reported> {
        let unroller = Unroller {
            source: self.source,
            names: self.names,
            inlines: self.inlines,
            locals: Vec::new(),
            memory: &mut self.memory,
            problems,
            budget: &mut self.budget,
            mapped: false,
        };
        let mut thread = unroller.expander(HashSet::new());
        thread.operations.heap = Some(heap);
        thread.operations.places = std::mem::take(&mut self.places);
        thread.operations.candidates = std::mem::take(&mut self.candidates);
        let done = thread.unfold(init, calls);
        self.places = std::mem::take(&mut thread.operations.places);
        self.candidates = std::mem::take(&mut thread.operations.candidates);
        let drafts = done?;
        if !thread.complete {
            return Err(Reported);
        }
        let first = first_edges(&thread.steps, &thread.labels);
        let marks = std::mem::take(&mut thread.operations.marks);
        let parts = thread.finish(name)?.parts;
        let marked = |what: &dyn Fn(CallMark) -> bool| -> Vec<EdgeId> {
            marks.iter().filter(|(_, m)| what(*m)).filter_map(|(step, _)| first[*step]).collect()
        };
        let begins = marked(&|m| m == CallMark::Begin);
        let places = marks.iter().filter_map(|(step, m)| match m {
            CallMark::Place(place) => Some((first[*step]?, *place)),
            _ => None,
        });
        let finished = |(k, draft): (usize, Draft)| DataCall {
            operation: draft.operation,
            text: draft.text,
            begin: begins[k],
            args: draft.args,
            results: draft.results,
            commits: marked(&|m| m == CallMark::Commit(k)),
        };
        Ok(DataThread {
            calls: drafts.into_iter().enumerate().map(finished).collect(),
            waits: marked(&|m| m == CallMark::Wait),
            allocs: marked(&|m| m == CallMark::Alloc),
            frees: marked(&|m| m == CallMark::Free),
            candidates: places.collect(),
            parts,
        })
    }
}

/// A call whose edges are not known yet.
struct Draft {
    operation: String,
    text: String,
    args: Vec<Reg>,
    results: Vec<Reg>,
}

impl<'s> ThreadExpander<'_, 's, '_> {
    fn unfold(&mut self, init: &[Stmt<'s>], calls: &[Call<'_, 's>]) -> Result<Vec<Draft>, Reported> {
        self.body(init)?;
        let mut drafts = Vec::new();
        for call in calls {
            drafts.push(self.operation(call)?);
        }
        Ok(drafts)
    }

    fn operation(&mut self, (operation, args, span): &Call<'_, 's>) -> Result<Draft, Reported> {
        self.spend_round(1 + operation.params.len(), *span)?;
        let shown = args.iter().map(|arg| match arg {
            Arg::Value(value) => value.to_string(),
            Arg::Any(lo, hi) => format!("any({lo}..={hi})"),
        });
        let text = format!("{}({})", operation.name.text, shown.collect::<Vec<_>>().join(", "));
        self.operations.marks.push((self.steps.len(), CallMark::Begin));
        self.plain(Instr::Nop, &text, *span);
        let frame = self.new_frame(operation.name.text);
        let caller = (std::mem::replace(&mut self.frame, frame), std::mem::take(&mut self.scopes));
        let mut own = Vec::new();
        for (param, arg) in operation.params.iter().zip(args) {
            let dst =
                self.registers.get(frame, param.text).ok_or_else(|| self.too_many_registers(param.span))?;
            self.registers.assign(dst);
            own.push(dst);
            let (instr, value) = match *arg {
                Arg::Value(value) => (Instr::Assign { dst, value: RegExpr::Const(value) }, value.to_string()),
                Arg::Any(lo, hi) => (Instr::Any { dst, lo, hi }, format!("any({lo}..={hi})")),
            };
            self.plain(instr, &format!("{} = {value}", param.text), *span);
        }
        // Results have registers of their own, whatever the operation uses their names for.
        let number = frame.call.map_or(0, |(_, number)| number);
        self.frames += 1;
        let apart = Frame { id: self.frames, call: Some((operation.name.text, number)) };
        let mut results = Vec::new();
        for result in &operation.results {
            let dst =
                self.registers.get(apart, result.text).ok_or_else(|| self.too_many_registers(result.span))?;
            self.registers.assign(dst);
            results.push(dst);
        }
        let exit = self.anonymous_label();
        self.operations.back = Some((exit, results.clone(), self.calls.len()));
        self.calls.push(operation.name.text);
        let done = self.body(&operation.body);
        self.calls.pop();
        self.operations.back = None;
        self.operations.calls += 1;
        (self.frame, self.scopes) = caller;
        self.place(exit);
        done.map(|()| Draft { operation: operation.name.text.to_string(), text, args: own, results })
    }

    /// A step that the user has not written as such.
    fn plain(&mut self, instr: Instr, text: &str, span: Span) {
        let line = self.context.problems.line(span);
        self.steps.push(CfgStep {
            action: Action::Do(instr),
            line,
            text: text.to_string(),
            continues: false,
        });
    }

    /// `return e, …`
    pub(super) fn give_back(&mut self, values: &[Expr<'s>], span: Span) -> Result<(), Reported> {
        self.spend(values.len() + 1, span)?;
        let (exit, results) = match &self.operations.back {
            Some((exit, results, depth)) if self.calls.len() == depth + 1 => (*exit, results.clone()),
            _ => {
                let problem = Problem::error("`return` stands in an operation, and in no `inline`").at(span);
                self.context.problems.report(problem);
                self.complete = false;
                return Ok(());
            }
        };
        if values.len() > results.len() {
            let problem = Problem::error(format!(
                "the operation has {} result{}, and {} are given back",
                results.len(),
                if results.len() == 1 { "" } else { "s" },
                values.len()
            ));
            self.context.problems.report(problem.at(span));
            self.complete = false;
            return Ok(());
        }
        let text = self.shown(names_in(values), span);
        for (dst, value) in results.into_iter().zip(values) {
            match self.expr(value) {
                Ok(value) => self.plain(Instr::Assign { dst, value }, &text, span),
                Err(Reported) => self.complete = false,
            }
        }
        self.goto(exit, span)
    }

    /// `commit STATEMENT`
    pub(super) fn commit(&mut self, inner: &Stmt<'s>) -> Result<(), Reported> {
        if self.operations.back.is_none() {
            if let Stmt::Instr(_, span) = inner {
                let problem = Problem::error("`commit` stands in an operation").at(*span);
                self.context.problems.report(problem);
            }
            self.complete = false;
            return Ok(());
        }
        let first = self.steps.len();
        self.inner_statement(inner)?;
        let call = self.operations.calls;
        let steps: Range<usize> = first..self.steps.len();
        let accesses = |step: &usize| match &self.steps[*step].action {
            Action::Do(instr) => instr.address().is_some(),
            _ => false,
        };
        let marks: Vec<_> = steps.filter(accesses).map(|step| (step, CallMark::Commit(call))).collect();
        self.operations.marks.extend(marks);
        Ok(())
    }

    /// A condition right behind an exchange is waited for.
    pub(super) fn note_wait(&mut self, op: &Op<'s>, behind_exchange: bool) {
        if behind_exchange && matches!(op, Op::Assume(_)) && self.operations.heap.is_some() {
            self.operations.marks.push((self.steps.len(), CallMark::Wait));
        }
    }

    /// `new r, node`
    pub(super) fn new_block(
        &mut self,
        register: &Name<'s>,
        structure: &Name<'s>,
        op: &Op<'s>,
        span: Span,
    ) -> Result<(), Reported> {
        self.context.problems.spend(8 * INSTRUCTION)?;
        if self.context.names.cells_of(structure.text).is_none() {
            let meant = self.context.problems.nearest(structure.text, self.context.names.structs());
            let problem = Problem::error(format!("there is no struct `{}`", structure.text));
            return Err(self.context.problems.report(problem.at(structure.span).suggest(meant)));
        }
        let Some(HeapText { heap, fenced, taker }) = self.operations.heap else { return Err(Reported) };
        let dst = self.target(register, op)?;
        let text = self.shown(vec![], span);
        let (base, stride) = (heap.base as Value, heap.stride as Value);
        let sum = |a, b| const_fold::binary(BinOp::Add, a, b).unwrap_or(RegExpr::Const(0));
        if heap.allocation == Allocation::Fresh {
            let taken = match self.operations.taken {
                Some(taken) => taken,
                None => {
                    let frame = Frame { id: u32::MAX - 1, call: Some(("blocks", 1)) };
                    let taken = self.registers.get(frame, "taken");
                    taken.ok_or_else(|| self.too_many_registers(span))?
                }
            };
            self.operations.taken = Some(taken);
            let first = RegExpr::Const(base + stride * taker as Value);
            let more = RegExpr::Const(stride * heap.takers as Value);
            self.plain(Instr::Assign { dst, value: sum(RegExpr::Atom(taken), first) }, &text, span);
            self.operations.marks.push((self.steps.len() - 1, CallMark::Alloc));
            self.continue_step(Action::Do(Instr::Assign {
                dst: taken,
                value: sum(RegExpr::Atom(taken), more),
            }));
            return Ok(());
        }
        let old = self.registers.unused().ok_or_else(|| self.too_many_registers(span))?;
        self.operations.marks.push((self.steps.len(), CallMark::Alloc));
        self.plain(Instr::Any { dst, lo: 0, hi: 0 }, &text, span);
        let number = const_fold::binary(BinOp::Mul, RegExpr::Atom(dst), RegExpr::Const(stride));
        let value = sum(number.unwrap_or(RegExpr::Const(0)), RegExpr::Const(base + 1));
        let is_free = const_fold::binary(BinOp::Eq, RegExpr::Atom(old), RegExpr::Const(0));
        let held = sum(RegExpr::Atom(dst), RegExpr::Const(-1));
        let mut steps = vec![
            Instr::Assign { dst, value },
            Instr::Rmw { dst: old, addr: held, op: RmwOp::Swap(RegExpr::Const(1)) },
            Instr::Assume(is_free.unwrap_or(RegExpr::Const(1))),
        ];
        if fenced {
            steps.push(Instr::Partial(FenceKinds::LFENCE));
        }
        steps.into_iter().for_each(|instr| self.continue_step(Action::Do(instr)));
        Ok(())
    }

    /// `free e`
    pub(super) fn free_block(&mut self, block: &Expr<'s>, span: Span) -> Result<(), Reported> {
        let Some(HeapText { heap, fenced, .. }) = self.operations.heap else { return Err(Reported) };
        let e = self.condition(block)?;
        let text = self.shown(names_in([block]), span);
        if heap.allocation == Allocation::Fresh {
            self.plain(Instr::Nop, &text, span);
            return Ok(());
        }
        let op = |op, a, b| const_fold::binary(op, a, b).unwrap_or(RegExpr::Const(0));
        let (first, stride) = (heap.base as Value + 1, heap.stride as Value);
        let inside = op(BinOp::Ge, e.clone(), RegExpr::Const(first));
        let number = op(BinOp::Sub, e.clone(), RegExpr::Const(first));
        let rest = op(BinOp::Rem, number, RegExpr::Const(stride));
        let is_block = op(BinOp::And, inside, op(BinOp::Eq, rest, RegExpr::Const(0)));
        self.plain(Instr::Assert(is_block), &text, span);
        if fenced {
            let kinds = FenceKinds { ls: true, ss: true, ..FenceKinds::NONE };
            self.continue_step(Action::Do(Instr::Partial(kinds)));
        }
        self.operations.marks.push((self.steps.len(), CallMark::Free));
        let addr = op(BinOp::Add, e, RegExpr::Const(-1));
        self.continue_step(Action::Do(Instr::Store { addr, value: RegExpr::Const(0), bytes: Bytes::WHOLE }));
        Ok(())
    }

    /// `fence? NAME: ss`
    pub(super) fn fence_place(
        &mut self,
        name: &Name<'s>,
        kinds: FenceKinds,
        span: Span,
    ) -> Result<(), Reported> {
        let line = self.context.problems.line(span);
        let next = self.operations.candidates.len();
        let place = *self.operations.places.entry(name.text.to_string()).or_insert(next);
        if place == next {
            self.operations.candidates.push(Candidate { name: name.text.to_string(), kinds, line });
        } else if self.operations.candidates[place].kinds != kinds {
            let line = self.operations.candidates[place].line;
            let problem = Problem::error(format!("place `{}` has other kinds on line {line}", name.text));
            return Err(self.context.problems.report(problem.at(name.span)));
        }
        self.operations.marks.push((self.steps.len(), CallMark::Place(place)));
        self.plain(Instr::Nop, &self.shown(vec![], span), span);
        Ok(())
    }
}

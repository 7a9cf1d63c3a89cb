//! Which programs do the tests of a data type stand for? Each thread of a test has the bodies of its operations
//! one after the other (`operations`), on memory with a run of cells behind all others for blocks.

use super::inlines::Inlines;
use super::labels;
use super::names::{self, TsoNames};
use super::operations::{Arg, Call, CallMark, Draft, HeapText};
use super::thread::{Budget, GrowingMemory, Unroller};
use crate::front::cfg::first_edges;
use crate::front::diagnostics::{Problem, Problems, Reported, Span};
use crate::front::tso::ast::{
    AllocText, ArgText, DataTypeText, Expr, File, Init, Invocation, Name, Operation, Shared, Stmt, TestText,
};
use crate::model::datatype::{Allocation, Candidate, DataCall, DataTest, DataThread, DataType, Heap, NULL};
use crate::model::{EdgeId, MAX_THREADS, Value};
use std::collections::{HashMap, HashSet};

/// Operations of one thread; more than any solver can look at.
const MOST_CALLS: usize = 64;

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
    let called = text.tests.iter().flat_map(|t| t.threads.iter().flatten().chain(&t.initial));
    let called: HashSet<&str> = called.map(|invocation| invocation.operation.text).collect();
    for operation in text.operations.iter().filter(|o| !called.contains(o.name.text)) {
        unfolding.uncalled(operation, problems).ok();
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

impl<'a, 's> Unfolding<'a, 's, '_> {
    fn test(&mut self, test: &TestText<'s>, problems: &mut Problems<'s>) -> Result<DataTest, Reported> {
        if test.threads.len() > MAX_THREADS - 1 {
            let problem = Problem::error("a test has too many threads").at(test.span);
            return Err(problems.report(problem));
        }
        let HeapText { heap, fenced, .. } = self.heap(test.threads.len());
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

    /// What no test calls may be wrong all the same, and has places for fences.
    fn uncalled(
        &mut self,
        operation: &'a Operation<'s>,
        problems: &mut Problems<'s>,
    ) -> Result<(), Reported> {
        let args = operation.params.iter().map(|_| Arg::Value(1)).collect();
        let calls = [(operation, args, operation.name.span)];
        self.thread("uncalled".to_string(), self.heap(1), &[], &calls, problems)?;
        Ok(())
    }

    /// Blocks behind all other cells, for so many threads.
    fn heap(&self, threads: usize) -> HeapText {
        let allocation = match self.text.alloc {
            Some((AllocText::Reuse | AllocText::Unfenced, _)) => Allocation::Reuse,
            _ => Allocation::Fresh,
        };
        let fenced = !matches!(self.text.alloc, Some((AllocText::Unfenced, _)));
        let heap = Heap {
            allocation,
            base: self.memory.cells,
            stride: (self.largest + usize::from(allocation == Allocation::Reuse)).max(1),
            takers: threads + 1,
        };
        HeapText { heap, fenced, taker: 1 }
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

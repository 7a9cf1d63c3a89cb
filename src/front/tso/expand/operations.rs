//! What do the operations of a data type do? Each is unfolded as a call of an `inline`, with a step that does nothing
//! before it; what only operations say (`return`, `commit`, `new`, `free`, places for fences) becomes instructions,
//! and marks on them.
//!
//! What a block is, is decided here: a run of cells behind all others. Where every block is new, the threads of a
//! test take them in turns, so that nobody else takes the same one. Where blocks come again, each has a cell
//! before its fields that says whether it is held; `new` picks any block and takes it if that cell is 0.

use super::instr::names_in;
use super::registers::Frame;
use super::thread::ThreadExpander;
use crate::front::cfg::{Action, CfgStep, LabelId};
use crate::front::const_fold;
use crate::front::diagnostics::{INSTRUCTION, Problem, Reported, Span};
use crate::front::tso::ast::{Expr, LockedKind, Name, Op, Operation, Stmt};
use crate::model::datatype::{Allocation, Candidate, Heap};
use crate::model::{BinOp, Bytes, FenceKinds, Instr, Reg, RegExpr, RmwOp, Value};
use std::collections::HashMap;
use std::ops::Range;

/// What a step of an operation is, beside what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallMark {
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
    pub(super) heap: Option<HeapText>,
    pub(super) marks: Vec<(usize, CallMark)>,
    /// Where `return` goes, what it sets, and how deep in `inline`s that is allowed.
    back: Option<(LabelId, Vec<Reg>, usize)>,
    calls: usize,
    /// What has been taken of the blocks so far.
    taken: Option<Reg>,
    pub(super) places: HashMap<String, usize>,
    pub(crate) candidates: Vec<Candidate>,
}

#[derive(Clone, Copy)]
pub(super) struct HeapText {
    pub heap: Heap,
    pub fenced: bool,
    /// Which of the takers this thread is.
    pub taker: usize,
}

pub(crate) fn is_exchange(statement: &Stmt<'_>) -> bool {
    match statement {
        Stmt::Instr(Op::Locked(locked), _) => locked.how == LockedKind::Xchg,
        Stmt::Commit(inner) => is_exchange(inner),
        _ => false,
    }
}

/// What an operation is called with.
#[derive(Clone, Copy)]
pub(super) enum Arg {
    Value(Value),
    Any(Value, Value),
}

/// An operation, its arguments, and the text of the call.
pub(super) type Call<'a, 's> = (&'a Operation<'s>, Vec<Arg>, Span);

/// A call whose edges are not known yet.
pub(super) struct Draft {
    pub operation: String,
    pub text: String,
    pub args: Vec<Reg>,
    pub results: Vec<Reg>,
}

impl<'s> ThreadExpander<'_, 's, '_> {
    pub(super) fn unfold(
        &mut self,
        init: &[Stmt<'s>],
        calls: &[Call<'_, 's>],
    ) -> Result<Vec<Draft>, Reported> {
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

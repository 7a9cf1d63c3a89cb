//! Which instructions does one thread have? Its text with `repeat` unrolled and every name looked up.
//!
//! A name is a counter, an index, a parameter, a shared variable's address, or else a register. Labels inside
//! `repeat` exist once per copy; in the model the copy with k = 2 of `wait` is called `wait_2`.
//! The steps that come out are strung into a graph by `flow`.

use super::lower::{Leaves, Role, lower};
use super::names::{Locals, Meaning, TsoNames, used_too_early};
use crate::front::cfg::{self, Action, CfgStep, Label, LabelId};
use crate::front::diagnostics::{INSTRUCTION, Problem, Problems, Reported, Span};
use crate::front::tso::ast::{Expr, Name, Op, Range, Stmt};
use crate::model::expr::MAX_DEPTH;
use crate::model::program::ThreadParts;
use crate::model::{self, Instr, Loc, MAX_REGISTERS, Reg, RegExpr, RmwOp, Value};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// More than this, in all threads together, is a mistake in a range.
pub const MAX_INSTRUCTIONS: usize = 1_000_000;

/// Longer instructions are cut short in traces.
const LONGEST_TEXT: usize = 400;

/// What the rest of the file may still unfold to.
pub struct Budget {
    instructions: usize,
    /// Labels and rounds of empty `repeat`s cost time too.
    rounds: usize,
}

impl Budget {
    pub fn new() -> Budget {
        Budget { instructions: MAX_INSTRUCTIONS + 1, rounds: 2 * MAX_INSTRUCTIONS }
    }
}

/// A thread in the model, and what properties call its parts.
pub struct Unrolled<'s> {
    pub parts: ThreadParts,
    /// Every location that a label stands for: as written, or else by the name of a copy.
    pub labels: HashMap<Cow<'s, str>, Vec<Loc>>,
    pub registers: HashMap<&'s str, Reg>,
    /// Is there anything in the text that could not be read? Then parts may be missing here.
    pub complete: bool,
}

pub struct Unroller<'a, 's, 'f> {
    pub source: &'s str,
    pub names: &'a TsoNames<'s, 'f>,
    pub locals: Locals<'s>,
    pub problems: &'a mut Problems<'s>,
    pub budget: &'a mut Budget,
}

impl<'s> Unroller<'_, 's, '_> {
    /// Nothing comes back once the budget is spent, or a limit reached.
    pub fn thread(self, name: String, body: &[Stmt<'s>]) -> Result<Unrolled<'s>, Reported> {
        self.problems.spend(body.len())?;
        let mut thread = ThreadExpander {
            own_labels: own_labels(body).collect(),
            copy_labels: HashSet::new(),
            context: self,
            copies: Vec::new(),
            registers: TsoRegisters::default(),
            scopes: Vec::new(),
            labels: Vec::new(),
            written: Vec::new(),
            steps: Vec::new(),
            complete: true,
        };
        thread.body(body)?;
        thread.warn_of_unassigned_registers();
        thread.finish(name)
    }
}

fn own_labels<'b, 's: 'b>(body: &'b [Stmt<'s>]) -> impl Iterator<Item = &'s str> + use<'b, 's> {
    body.iter().filter_map(|s| if let Stmt::Label(name) = s { Some(name.text) } else { None })
}

struct ThreadExpander<'a, 's, 'f> {
    context: Unroller<'a, 's, 'f>,
    /// Labels outside every `repeat`, which keep their names.
    own_labels: HashSet<&'s str>,
    /// The names of labels inside.
    copy_labels: HashSet<String>,
    /// The counters of the `repeat`s around.
    copies: Vec<Value>,
    registers: TsoRegisters<'s>,
    scopes: Vec<HashMap<&'s str, LabelId>>,
    labels: Vec<Label>,
    /// The labels as written.
    written: Vec<&'s str>,
    steps: Vec<CfgStep>,
    complete: bool,
}

/// Registers in order of appearance, and what happens to each.
#[derive(Default)]
struct TsoRegisters<'s> {
    ids: HashMap<&'s str, Reg>,
    names: Vec<&'s str>,
    assigned: Vec<bool>,
    first_read: Vec<Option<Span>>,
}

impl<'s> ThreadExpander<'_, 's, '_> {
    fn body(&mut self, body: &[Stmt<'s>]) -> Result<(), Reported> {
        let scope = own_labels(body).map(|name| (name, self.new_label(name))).collect();
        self.scopes.push(scope);
        for statement in body {
            match statement {
                Stmt::Label(name) => self.place_label(name),
                Stmt::Bad => self.complete = false,
                Stmt::Instr(op, span) => {
                    self.spend(op.jumps().len().max(1), *span)?;
                    self.complete &= self.instruction(op, *span).is_ok();
                }
                Stmt::Repeat { var, range, body } => {
                    let context = &mut self.context;
                    let Ok((lo, hi)) = context.names.range(range, &context.locals, context.problems) else {
                        self.complete = false;
                        continue;
                    };
                    for k in lo..=hi {
                        self.copy(var, k, body, range.span)?;
                    }
                }
            }
        }
        self.scopes.pop();
        Ok(())
    }

    fn copy(&mut self, var: &Name<'s>, k: Value, body: &[Stmt<'s>], span: Span) -> Result<(), Reported> {
        let labels = own_labels(body).count();
        if self.context.budget.rounds <= labels {
            self.context.budget.rounds = 0;
            let problem = Problem::error("this `repeat` goes round too often").at(span);
            return Err(self.context.problems.report(problem));
        }
        self.context.budget.rounds -= 1 + labels;
        self.context.problems.spend(INSTRUCTION * (1 + labels))?;
        self.context.locals.push((var.text, k));
        self.copies.push(k);
        let done = self.body(body);
        self.copies.pop();
        self.context.locals.pop();
        done
    }

    /// A choice costs as much as it has ways.
    fn spend(&mut self, instructions: usize, span: Span) -> Result<(), Reported> {
        self.context.problems.spend(INSTRUCTION * instructions)?;
        let budget = &mut self.context.budget.instructions;
        *budget = budget.saturating_sub(instructions);
        if *budget > 0 {
            return Ok(());
        }
        let problem =
            Problem::error(format!("the program unfolds to more than {MAX_INSTRUCTIONS} instructions"))
                .at(span)
                .label("the limit is reached here")
                .help("look at the ranges of `repeat` and of threads");
        Err(self.context.problems.report(problem))
    }

    /// Makes a label of this copy, to be placed when its statement comes.
    fn new_label(&mut self, name: &'s str) -> LabelId {
        let mut unique = name.to_string();
        if !self.copies.is_empty() {
            for k in &self.copies {
                unique += &format!("_{k}").replace('-', "m");
            }
            while self.own_labels.contains(unique.as_str()) || !self.copy_labels.insert(unique.clone()) {
                unique.push('_');
            }
        }
        self.labels.push(Label { name: unique, step: 0 });
        self.written.push(name);
        LabelId(self.labels.len() - 1)
    }

    fn place_label(&mut self, name: &Name<'s>) {
        if let Some(id) = self.scopes.last().and_then(|scope| scope.get(name.text)) {
            self.labels[id.0].step = self.steps.len();
        }
    }

    /// A label that does not exist was reported when the text was checked.
    fn label(&self, name: &Name<'s>) -> Result<LabelId, Reported> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name.text)).copied().ok_or(Reported)
    }

    fn instruction(&mut self, op: &Op<'s>, span: Span) -> Result<(), Reported> {
        let action = self.action(op)?;
        let line = self.context.problems.line(span);
        let text = self.text(op, span);
        self.steps.push(CfgStep { action, line, text, continues: false });
        Ok(())
    }

    fn action(&mut self, op: &Op<'s>) -> Result<Action, Reported> {
        let instr = match op {
            Op::Goto(label) => return Ok(Action::Goto(self.label(label)?)),
            Op::If(e, label) => return Ok(Action::If(self.condition(e)?, self.label(label)?)),
            Op::Choose(labels) => {
                return labels.iter().map(|l| self.label(l)).collect::<Result<_, _>>().map(Action::Choose);
            }
            Op::Halt => return Ok(Action::Halt),
            Op::Load(dst, addr) => Instr::Load { dst: self.target(dst, op)?, addr: self.expr(addr)? },
            Op::Store(addr, value) => Instr::Store { addr: self.expr(addr)?, value: self.expr(value)? },
            Op::Fence => Instr::Fence,
            Op::Assign(dst, value) => Instr::Assign { dst: self.target(dst, op)?, value: self.expr(value)? },
            Op::Any(dst, range) => self.any(dst, op, range)?,
            Op::Assume(e) => Instr::Assume(self.expr(e)?),
            Op::Assert(e) => Instr::Assert(self.expr(e)?),
            Op::Xchg(dst, addr, v) => self.rmw(dst, op, addr, |t| Ok(RmwOp::Swap(t.expr(v)?)))?,
            Op::Add(dst, addr, v) => self.rmw(dst, op, addr, |t| Ok(RmwOp::Add(t.expr(v)?)))?,
            Op::Cas(dst, addr, old, new) => {
                self.rmw(dst, op, addr, |t| Ok(RmwOp::Cas { old: t.expr(old)?, new: t.expr(new)? }))?
            }
            Op::Lock => Instr::Lock,
            Op::Unlock => Instr::Unlock,
            Op::Nop => Instr::Nop,
        };
        Ok(Action::Do(instr))
    }
}

/// The parts of instructions.
impl<'s> ThreadExpander<'_, 's, '_> {
    fn expr(&mut self, e: &Expr<'s>) -> Result<RegExpr, Reported> {
        lower(self, e)
    }

    /// A branch needs the condition's negation too, which is one level higher.
    fn condition(&mut self, e: &Expr<'s>) -> Result<RegExpr, Reported> {
        let condition = self.expr(e)?;
        if condition.depth() < MAX_DEPTH {
            return Ok(condition);
        }
        let problem =
            Problem::error(format!("this condition is nested {MAX_DEPTH} levels deep")).at(e.span());
        Err(self.context.problems.report(problem.help("compute a part of it into a register first")))
    }

    fn rmw(
        &mut self,
        dst: &Name<'s>,
        op: &Op<'s>,
        addr: &Expr<'s>,
        change: impl FnOnce(&mut Self) -> Result<RmwOp, Reported>,
    ) -> Result<Instr, Reported> {
        Ok(Instr::Rmw { dst: self.target(dst, op)?, addr: self.expr(addr)?, op: change(self)? })
    }

    fn any(&mut self, dst: &Name<'s>, op: &Op<'s>, range: &Range<'s>) -> Result<Instr, Reported> {
        let dst = self.target(dst, op)?;
        let context = &mut self.context;
        let (lo, hi) = context.names.range(range, &context.locals, context.problems)?;
        if lo > hi {
            let problem = Problem::error("there is no value in this range").at(range.span);
            return Err(context.problems.report(problem.help("`lo..hi` ends before hi, `lo..=hi` with it")));
        }
        Ok(Instr::Any { dst, lo, hi })
    }

    /// The register that an instruction assigns to.
    fn target(&mut self, name: &Name<'s>, op: &Op<'s>) -> Result<Reg, Reported> {
        let what = match self.context.names.meaning(name, &self.context.locals) {
            Meaning::Unknown => {
                let reg = self.register(name)?;
                self.registers.assigned[reg.index()] = true;
                return Ok(reg);
            }
            Meaning::Doubtful => return Err(Reported),
            Meaning::Address(_) => {
                let problem = Problem::error(format!("`{}` is a shared variable, not a register", name.text));
                let help = match op {
                    Op::Assign(_, value) => {
                        format!("write `store [{}], {}`", name.text, self.written(value.span()))
                    }
                    _ => format!("use a register here, and `store [{}], …` behind it", name.text),
                };
                return Err(self.context.problems.report(problem.at(name.span).help(help)));
            }
            Meaning::TooEarly(_) => "a parameter",
            Meaning::Constant(_) if self.context.locals.iter().any(|(local, _)| *local == name.text) => {
                "an index or counter"
            }
            Meaning::Constant(_) => "a parameter",
        };
        let problem = Problem::error(format!("`{}` is {what}, and keeps its value", name.text)).at(name.span);
        Err(self.context.problems.report(problem.help("use another name for the register")))
    }

    fn register(&mut self, name: &Name<'s>) -> Result<Reg, Reported> {
        let registers = &mut self.registers;
        if let Some(reg) = registers.ids.get(name.text) {
            return Ok(*reg);
        }
        if registers.names.len() == MAX_REGISTERS {
            let problem = Problem::error(format!("a thread has at most {MAX_REGISTERS} registers"));
            return Err(self.context.problems.report(problem.at(name.span).label("one too many")));
        }
        let reg = Reg(registers.names.len() as u16);
        registers.ids.insert(name.text, reg);
        registers.names.push(name.text);
        registers.assigned.push(false);
        registers.first_read.push(None);
        Ok(reg)
    }

    fn written(&self, span: Span) -> &'s str {
        &self.context.source[span.start..span.end]
    }

    /// The instruction as written, with single blanks, and values in place of the constants' names.
    fn text(&self, op: &Op<'s>, span: Span) -> String {
        let mut constants: Vec<(Span, Value)> = Vec::new();
        for e in op.exprs() {
            e.for_each_name(&mut |name| {
                if let Meaning::Constant(value) = self.context.names.meaning(name, &self.context.locals) {
                    constants.push((name.span, value));
                }
            });
        }
        // A very long instruction is told by its beginning; a choice has its text on each of its edges.
        let span = Span { end: span.end.min(span.start + LONGEST_TEXT), ..span };
        constants.retain(|(name, _)| name.end <= span.end);
        let (mut text, mut at) = (String::with_capacity(span.end - span.start), span.start);
        for (name, value) in constants {
            text += self.written(Span { start: at, end: name.start });
            match value {
                0.. => text += &value.to_string(),
                _ => text += &format!("({value})"),
            }
            at = name.end;
        }
        text += self.written(Span { start: at, end: span.end });
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

impl<'s> Leaves<'s> for ThreadExpander<'_, 's, '_> {
    type Leaf = Reg;

    fn leaf(&mut self, e: &Expr<'s>, role: Role) -> Result<RegExpr, Reported> {
        let Expr::Name(name) = e else {
            return Err(self.not_in_a_thread(e));
        };
        match self.context.names.meaning(name, &self.context.locals) {
            Meaning::Constant(value) | Meaning::Address(value) => Ok(model::Expr::Const(value)),
            Meaning::Doubtful => Err(Reported),
            Meaning::TooEarly(declared) => Err(used_too_early(name, declared, self.context.problems)),
            // A register that nothing looks at is there all the same: properties may ask for it.
            Meaning::Unknown => {
                let reg = self.register(name)?;
                if role == Role::Live {
                    self.registers.first_read[reg.index()].get_or_insert(name.span);
                }
                Ok(model::Expr::Atom(reg))
            }
        }
    }

    fn is_address(&self, name: &Name<'s>) -> bool {
        matches!(self.context.names.meaning(name, &self.context.locals), Meaning::Address(_))
    }

    fn problems(&mut self) -> &mut Problems<'s> {
        self.context.problems
    }
}

/// The end of a thread: what is doubtful in it, and the graph.
impl<'s> ThreadExpander<'_, 's, '_> {
    fn not_in_a_thread(&mut self, e: &Expr<'s>) -> Reported {
        let problem = match e {
            Expr::Memory(..) => Problem::error("an expression does not read memory")
                .help(format!("load it into a register first: `load r, {}`", self.written(e.span()))),
            Expr::Index(array, index, _) => {
                let (array, index) = (array.text, self.written(index.span()));
                Problem::error("an expression does not read memory").help(format!(
                    "`{array} + {index}` is the cell's address; `load r, [{array} + {index}]` reads it"
                ))
            }
            _ => Problem::error("a thread sees only its own registers")
                .help("`@` and `.` belong to properties, outside threads"),
        };
        self.context.problems.report(problem.at(e.span()))
    }

    fn warn_of_unassigned_registers(&mut self) {
        if !self.complete {
            return;
        }
        let registers = &self.registers;
        let assigned =
            || registers.names.iter().zip(&registers.assigned).filter(|(_, a)| **a).map(|(n, _)| *n);
        for (i, name) in registers.names.iter().enumerate() {
            let Some(span) = registers.first_read[i].filter(|_| !registers.assigned[i]) else { continue };
            let known = self.context.names.known(&self.context.locals).chain(assigned());
            let meant = self.context.problems.nearest(name, known);
            let problem = Problem::warning(format!("register `{name}` is read but never assigned"))
                .at(span)
                .label("always 0")
                .suggest(meant);
            self.context.problems.report(problem);
        }
    }

    fn finish(self, name: String) -> Result<Unrolled<'s>, Reported> {
        let graph = cfg::graph(self.steps, self.labels, self.context.problems)?;
        let mut labels: HashMap<Cow<str>, Vec<Loc>> = HashMap::new();
        for (written, loc) in self.written.into_iter().zip(graph.labels) {
            labels.entry(Cow::Borrowed(written)).or_default().push(loc);
        }
        for (loc, location) in graph.locations.iter().enumerate() {
            for copy in location.labels.iter().filter(|name| self.copy_labels.contains(*name)) {
                labels.entry(Cow::Owned(copy.clone())).or_insert_with(|| vec![Loc(loc as u32)]);
            }
        }
        Ok(Unrolled {
            parts: ThreadParts {
                name,
                registers: self.registers.names.iter().map(|r| r.to_string()).collect(),
                locations: graph.locations,
                edges: graph.edges,
                initial: graph.initial,
                end: graph.end,
            },
            labels,
            registers: self.registers.ids,
            complete: self.complete,
        })
    }
}

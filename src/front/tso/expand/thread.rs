//! Which instructions does one thread have? Its text with blocks and calls unfolded and every name looked up.
//!
//! A name is a counter, an index, a parameter, a shared variable's address, or else a register. Labels inside
//! `repeat` exist once per copy; in the model the copy with k = 2 of `wait` is called `wait_2`. `if` and
//! `while` become jumps to labels that have no name.
//! The steps that come out are strung into a graph by `cfg`; single instructions are in `instr`, calls in
//! `inlines`.

use super::inlines::Inlines;
use super::instr::names_in;
use super::names::{self, Local, Locals, TsoNames};
use super::operations::{Operations, is_exchange};
use super::registers::{Frame, TsoRegisters};
use crate::front::cfg::{self, Action, CfgStep, Label, LabelId, MarkPassage};
use crate::front::diagnostics::{INSTRUCTION, Problem, Problems, Reported, Span};
use crate::front::tso::ast::{Arm, Name, Shared, Stmt, own_labels};
use crate::model::program::ThreadParts;
use crate::model::{Loc, MAX_CELLS, Reg, Value, Variable};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// More than this, in all threads together, is a mistake in a range.
pub(crate) const MAX_INSTRUCTIONS: usize = 1_000_000;

/// What the rest of the file may still unfold to.
pub(crate) struct Budget {
    instructions: usize,
    /// Labels and rounds of empty `repeat`s cost time too.
    rounds: usize,
}

impl Budget {
    pub(crate) fn new() -> Budget {
        Budget { instructions: MAX_INSTRUCTIONS + 1, rounds: 2 * MAX_INSTRUCTIONS }
    }
}

/// The shared memory as far as it is known.
pub(crate) struct GrowingMemory {
    pub variables: Vec<Variable>,
    pub cells: usize,
}

/// A thread in the model, and what properties call its parts.
pub(crate) struct Unrolled<'s> {
    pub parts: ThreadParts,
    /// Every location that a label stands for: as written, or else by the name of a copy.
    pub labels: HashMap<Cow<'s, str>, Vec<Loc>>,
    pub registers: HashMap<String, Reg>,
    /// Addresses of memory of its own.
    pub local_memory: HashMap<&'s str, Value>,
    /// Is there anything in the text that could not be read? Then parts may be missing here.
    pub complete: bool,
    /// Where the text has come to lie, if that is wanted.
    pub text: Option<TextOfThread>,
}

/// The gaps of the text that control can come through, and for each edge the gap before its statement.
pub(crate) struct TextOfThread {
    pub gaps: Vec<MarkPassage>,
    pub statements: Vec<Option<usize>>,
}

/// What properties call a label of an `inline`.
pub(crate) fn inlined_label(inline: &str, label: &str) -> String {
    format!("{inline}.{label}")
}

pub(crate) struct Unroller<'a, 's, 'f> {
    pub source: &'s str,
    pub names: &'a TsoNames<'s, 'f>,
    pub inlines: &'a Inlines<'s, 'f>,
    pub locals: Locals<'s>,
    /// Grows by what threads have of their own.
    pub memory: &'a mut GrowingMemory,
    pub problems: &'a mut Problems<'s>,
    pub budget: &'a mut Budget,
    /// Is it to be told where the text comes to lie?
    pub mapped: bool,
}

impl<'a, 's, 'f> Unroller<'a, 's, 'f> {
    /// Nothing comes back once the budget is spent, or a limit reached.
    pub(crate) fn thread(self, name: String, body: &[Stmt<'s>]) -> Result<Unrolled<'s>, Reported> {
        self.problems.spend(body.len())?;
        let own_labels = own_labels(body).iter().map(|label| label.text).collect();
        let mut thread = self.expander(own_labels);
        thread.declare(&name, body);
        thread.body(body)?;
        thread.warn_of_unassigned_registers();
        thread.finish(name)
    }

    pub(super) fn expander(self, own_labels: HashSet<&'s str>) -> ThreadExpander<'a, 's, 'f> {
        ThreadExpander {
            own_labels,
            copy_labels: HashSet::new(),
            context: self,
            copies: Vec::new(),
            frame: Frame::THREAD,
            frames: 0,
            calls: Vec::new(),
            call_counts: HashMap::new(),
            registers: TsoRegisters::default(),
            local_memory: HashMap::new(),
            scopes: Vec::new(),
            labels: Vec::new(),
            written: Vec::new(),
            steps: Vec::new(),
            complete: true,
            operations: Operations::default(),
        }
    }
}

pub(crate) struct ThreadExpander<'a, 's, 'f> {
    pub(super) context: Unroller<'a, 's, 'f>,
    /// Labels outside every `repeat`, which keep their names.
    own_labels: HashSet<&'s str>,
    /// The names of labels inside, and of those of calls.
    copy_labels: HashSet<String>,
    /// The counters of the `repeat`s around.
    pub(super) copies: Vec<Value>,
    pub(super) frame: Frame<'s>,
    pub(super) frames: u32,
    /// The `inline`s around.
    pub(super) calls: Vec<&'s str>,
    pub(super) call_counts: HashMap<&'s str, u32>,
    pub(super) registers: TsoRegisters<'s>,
    local_memory: HashMap<&'s str, Value>,
    pub(super) scopes: Vec<HashMap<&'s str, LabelId>>,
    pub(super) labels: Vec<Label>,
    /// What properties call each label, if they can.
    written: Vec<Option<Cow<'s, str>>>,
    pub(super) steps: Vec<CfgStep>,
    pub(super) complete: bool,
    /// What has to be known of the operations of a data type.
    pub(super) operations: Operations,
}

impl<'s> ThreadExpander<'_, 's, '_> {
    /// Gives the thread its own memory, behind all other.
    fn declare(&mut self, thread: &str, body: &[Stmt<'s>]) {
        let locals = body.iter().filter_map(|s| if let Stmt::Local(all) = s { Some(all) } else { None });
        for variable in locals.flatten() {
            if self.context.problems.spend(INSTRUCTION).is_ok() {
                self.variable(thread, variable);
            }
        }
    }

    fn variable(&mut self, thread: &str, variable: &Shared<'s>) {
        let Unroller { names, locals, memory, problems, .. } = &mut self.context;
        let name = variable.name;
        let size = names::size(variable, names, locals, problems);
        let address = memory.cells;
        let problem = if self.local_memory.contains_key(name.text) {
            Problem::error(format!("`{}` is declared twice", name.text)).at(name.span)
        } else if address + size > MAX_CELLS {
            let problem = Problem::error(format!("the shared memory has more than {MAX_CELLS} cells"));
            problem.at(name.span).label("does not fit any more")
        } else {
            let init = names::cells(variable, size, names, locals, problems);
            memory.variables.push(Variable { name: format!("{thread}.{}", name.text), init });
            memory.cells += size;
            self.local_memory.insert(name.text, address as Value);
            locals.push((name.text, Local::Address(address as Value)));
            return;
        };
        problems.report(problem);
        self.complete = false;
    }

    /// Statements with labels of their own.
    pub(super) fn body(&mut self, body: &[Stmt<'s>]) -> Result<(), Reported> {
        let own = own_labels(body);
        let scope = own.iter().map(|name| (name.text, self.new_label(name.text))).collect();
        self.scopes.push(scope);
        let done = self.statements(body);
        self.scopes.pop();
        done
    }

    fn statements(&mut self, body: &[Stmt<'s>]) -> Result<(), Reported> {
        // Is the statement before this one a locked instruction that exchanges?
        let mut locked = false;
        for statement in body {
            match statement {
                Stmt::Gap(span) => self.mark(span.start),
                Stmt::Label(name) => self.place_label(name),
                Stmt::Bad => self.complete = false,
                Stmt::Local(_) => {}
                Stmt::Instr(op, span) => {
                    self.spend(op.jumps().len().max(1), *span)?;
                    self.note_wait(op, locked);
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
                Stmt::Branch { arms, otherwise } => self.branch(arms, otherwise)?,
                Stmt::While(arm) => {
                    let (head, exit) = (self.anonymous_label(), self.anonymous_label());
                    self.place(head);
                    self.unless(arm, exit)?;
                    self.statements(&arm.body)?;
                    self.goto(head, arm.head)?;
                    self.place(exit);
                }
                Stmt::Call { name, args, span } => self.call(name, args, *span)?,
                Stmt::Return(values, span) => self.give_back(values, *span)?,
                Stmt::Commit(inner) => self.commit(inner)?,
            }
            locked = match statement {
                Stmt::Gap(_) => locked,
                other => is_exchange(other),
            };
        }
        Ok(())
    }

    pub(super) fn inner_statement(&mut self, statement: &Stmt<'s>) -> Result<(), Reported> {
        self.statements(std::slice::from_ref(statement))
    }

    fn mark(&mut self, byte: usize) {
        if self.context.mapped {
            let (line, text, continues) = (0, String::new(), false);
            self.steps.push(CfgStep { action: Action::Mark(byte), line, text, continues });
        }
    }

    fn branch(&mut self, arms: &[Arm<'s>], otherwise: &[Stmt<'s>]) -> Result<(), Reported> {
        let exit = self.anonymous_label();
        for (i, arm) in arms.iter().enumerate() {
            let next = self.anonymous_label();
            self.unless(arm, next)?;
            self.statements(&arm.body)?;
            if i + 1 < arms.len() || !otherwise.is_empty() {
                self.goto(exit, arm.head)?;
            }
            self.place(next);
        }
        self.statements(otherwise)?;
        self.place(exit);
        Ok(())
    }

    /// Goes on with what follows if the condition holds, and to the label otherwise.
    fn unless(&mut self, arm: &Arm<'s>, label: LabelId) -> Result<(), Reported> {
        self.spend(1, arm.head)?;
        match self.condition(&arm.condition) {
            Ok(condition) => {
                self.step(Action::Unless(condition, label), names_in([&arm.condition]), arm.head)
            }
            Err(Reported) => self.complete = false,
        }
        Ok(())
    }

    pub(super) fn goto(&mut self, label: LabelId, span: Span) -> Result<(), Reported> {
        self.spend(1, span)?;
        self.step(Action::Goto(label), Vec::new(), span);
        Ok(())
    }

    /// A step with its text, in which these names may be replaced.
    pub(super) fn step(&mut self, action: Action, names: Vec<Name<'s>>, span: Span) {
        let line = self.context.problems.line(span);
        let text = self.shown(names, span);
        self.steps.push(CfgStep { action, line, text, continues: false });
    }

    /// The instruction goes on with this.
    pub(super) fn continue_step(&mut self, action: Action) {
        if let Some(CfgStep { line, text, .. }) = self.steps.last().cloned() {
            self.steps.push(CfgStep { action, line, text, continues: true });
        }
    }

    fn copy(&mut self, var: &Name<'s>, k: Value, body: &[Stmt<'s>], span: Span) -> Result<(), Reported> {
        self.spend_round(1 + own_labels(body).len(), span)?;
        self.context.locals.push((var.text, Local::Constant(k)));
        self.copies.push(k);
        let done = self.body(body);
        self.copies.pop();
        self.context.locals.pop();
        done
    }

    /// A round of a `repeat`, or a call.
    pub(super) fn spend_round(&mut self, cost: usize, span: Span) -> Result<(), Reported> {
        if self.context.budget.rounds < cost {
            self.context.budget.rounds = 0;
            let what = if self.copies.is_empty() && !self.calls.is_empty() { "call" } else { "`repeat`" };
            let problem = Problem::error(format!("this {what} goes round too often")).at(span);
            return Err(self.context.problems.report(problem));
        }
        self.context.budget.rounds -= cost;
        self.context.problems.spend(INSTRUCTION * cost)
    }

    /// A choice costs as much as it has ways.
    pub(super) fn spend(&mut self, instructions: usize, span: Span) -> Result<(), Reported> {
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
        let mut unique = self.frame.qualified(name);
        if self.frame != Frame::THREAD || !self.copies.is_empty() {
            for k in &self.copies {
                unique += &format!("_{k}").replace('-', "m");
            }
            while self.own_labels.contains(unique.as_str()) || !self.copy_labels.insert(unique.clone()) {
                unique.push('_');
            }
        }
        self.labels.push(Label { name: Some(unique), step: 0 });
        self.written.push(Some(match self.frame.call {
            Some((inline, _)) => Cow::Owned(inlined_label(inline, name)),
            None => Cow::Borrowed(name),
        }));
        LabelId(self.labels.len() - 1)
    }

    pub(super) fn anonymous_label(&mut self) -> LabelId {
        self.labels.push(Label { name: None, step: 0 });
        self.written.push(None);
        LabelId(self.labels.len() - 1)
    }

    pub(super) fn place(&mut self, label: LabelId) {
        self.labels[label.0].step = self.steps.len();
    }

    fn place_label(&mut self, name: &Name<'s>) {
        if let Some(id) = self.scopes.last().and_then(|scope| scope.get(name.text)) {
            self.place(*id);
        }
    }

    /// A label that does not exist was reported when the text was checked.
    pub(super) fn label(&self, name: &Name<'s>) -> Result<LabelId, Reported> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name.text)).copied().ok_or(Reported)
    }
}

/// The end of a thread: what is doubtful in it, and the graph.
impl<'s> ThreadExpander<'_, 's, '_> {
    pub(super) fn warn_of_unassigned_registers(&mut self) {
        if !self.complete {
            return;
        }
        for (name, span) in self.registers.never_assigned() {
            let known = self.context.names.known(&self.context.locals).chain(self.registers.assigned());
            let meant = self.context.problems.nearest(name, known);
            let problem = Problem::warning(format!("register `{name}` is read but never assigned"))
                .at(span)
                .label("always 0")
                .suggest(meant);
            self.context.problems.report(problem);
        }
    }

    pub(super) fn finish(self, name: String) -> Result<Unrolled<'s>, Reported> {
        let text = match self.context.mapped {
            true => {
                let (gaps, statements) = cfg::passages(&self.steps, &self.labels, self.context.problems)?;
                Some(TextOfThread { gaps, statements })
            }
            false => None,
        };
        let graph = cfg::graph(self.steps, self.labels, self.context.problems)?;
        let mut labels: HashMap<Cow<str>, Vec<Loc>> = HashMap::new();
        for (written, loc) in self.written.into_iter().zip(graph.labels) {
            if let Some(written) = written {
                labels.entry(written).or_default().push(loc);
            }
        }
        for (loc, location) in graph.locations.iter().enumerate() {
            for copy in location.labels.iter().filter(|name| self.copy_labels.contains(*name)) {
                labels.entry(Cow::Owned(copy.clone())).or_insert_with(|| vec![Loc(loc as u32)]);
            }
        }
        let names = self.registers.names();
        let registers = names.iter().cloned().zip((0..).map(Reg)).collect();
        Ok(Unrolled {
            parts: ThreadParts {
                name,
                registers: names,
                locations: graph.locations,
                edges: graph.edges,
                initial: graph.initial,
                end: graph.end,
            },
            labels,
            registers,
            local_memory: self.local_memory,
            complete: self.complete,
            text,
        })
    }
}

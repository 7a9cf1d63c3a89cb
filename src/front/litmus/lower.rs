//! Which steps do a test's threads take? What instructions do is known to `x86`; here it learns where the
//! locations and labels are that a test names, and how a thread begins.

use super::memory::LitmusMemory;
use super::parse::LitmusThread;
use crate::front::cfg::{self, Label, LabelId};
use crate::front::const_fold;
use crate::front::diagnostics::{INSTRUCTION, Problem, Problems, Reported, Span};
use crate::front::x86::{Flag, Form, Lowering, Own, Resolver, ThreadRegisters};
use crate::model::{BinOp, Expr, RegExpr, Value};
use std::collections::{BTreeSet, HashMap};

pub(crate) struct Lowered {
    pub graph: cfg::Graph,
    /// The widths to which something was not cut, if the form is plain.
    pub uncut: BTreeSet<u32>,
}

/// What all threads have in common.
pub(crate) struct Context<'s, 'a> {
    pub source: &'s str,
    pub memory: &'a LitmusMemory<'s>,
    pub form: Form,
}

/// One thread. `first` are the values that its registers start with; `flags` those that the test looks at.
pub(crate) fn lower<'s>(
    thread: &LitmusThread<'s>,
    first: &[(Own, Value, Span)],
    flags: &[Flag],
    registers: &mut ThreadRegisters,
    context: &Context<'s, '_>,
    problems: &mut Problems,
) -> Result<Lowered, Reported> {
    let conditions = thread.instructions.iter().filter_map(|i| i.op.condition());
    let used = conditions.flat_map(|c| c.flags).chain(flags).copied().collect();
    let resolver = ThreadNames { context, labels: &thread.by_label, problems, instruction: Span::default() };
    let mut lowering = Lowering::new(context.memory.arch, context.form, registers, used, resolver);
    for (own, value, span) in first {
        go_to(*span, &mut lowering);
        lowering.start_with(*own, *value);
    }
    lowering.start_with_flags(|flag| first.iter().any(|(own, v, _)| *own == Own::Flag(flag) && *v != 0));
    let mut begins = Vec::with_capacity(thread.instructions.len() + 1);
    for i in &thread.instructions {
        begins.push(lowering.next_step());
        lowering.resolver.problems.spend(INSTRUCTION)?;
        go_to(i.span, &mut lowering);
        lowering.instruction(i);
    }
    begins.push(lowering.next_step());
    let label = |(name, at): &(&str, usize)| Label { name: Some(name.to_string()), step: begins[*at] };
    let labels = thread.labels.iter().map(label).collect();
    let (steps, uncut) = lowering.finish();
    Ok(Lowered { graph: cfg::graph(steps, labels, problems)?, uncut })
}

fn go_to(span: Span, lowering: &mut Lowering<ThreadNames>) {
    let names = &mut lowering.resolver;
    names.instruction = span;
    let (line, text) = (names.problems.line(span), &names.context.source[span.start..span.end]);
    lowering.at(line, text.split_whitespace().collect::<Vec<_>>().join(" "));
}

/// The names that a thread's instructions use.
struct ThreadNames<'s, 'a, 'l> {
    context: &'a Context<'s, 'a>,
    labels: &'a HashMap<&'s str, usize>,
    problems: &'a mut Problems<'l>,
    /// The instruction at hand.
    instruction: Span,
}

impl<'s> Resolver for ThreadNames<'s, '_, '_> {
    type Symbol = &'s str;

    fn displaced(&self, registers: Option<RegExpr>, name: Option<&'s str>, offset: Value) -> RegExpr {
        let add = |a, b| const_fold::binary(BinOp::Add, a, b).expect("nothing here divides by zero");
        let begin = name.map(|name| self.context.memory.address(name));
        // A constant that is part of an address has to look like one.
        let (known, far) = match begin.map(|begin| begin.wrapping_add(offset)) {
            Some(known) if self.context.memory.is_near(known) => (known, None),
            _ => (offset, begin),
        };
        let known = (known != 0).then_some(Expr::Const(known));
        let sum = registers.into_iter().chain(known).reduce(add).unwrap_or(Expr::Const(0));
        match far {
            Some(begin) => Expr::binary(BinOp::Add, sum, Expr::Const(begin)),
            None => sum,
        }
    }

    fn cell(&mut self, name: &'s str, offset: Value) -> RegExpr {
        match self.context.memory.cell(name, offset) {
            Some(cell) => Expr::Const(cell as Value),
            None => {
                let message = format!("nothing lies {offset} bytes behind the beginning of `{name}`");
                self.problems.report(Problem::error(message).at(self.instruction));
                Expr::Const(0)
            }
        }
    }

    fn cell_at(&self, address: RegExpr, bits: u32) -> RegExpr {
        self.context.memory.zone(bits).cell_at(address)
    }

    fn label(&mut self, name: &'s str, at: Span) -> Option<LabelId> {
        let label = self.labels.get(name).map(|label| LabelId(*label));
        if label.is_none() {
            let meant = self.problems.nearest(name, self.labels.keys().copied());
            let unknown = Problem::error(format!("unknown label `{name}`")).at(at);
            self.problems.report(unknown.label("no such label in this thread").suggest(meant));
        }
        label
    }
}

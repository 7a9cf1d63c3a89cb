//! What does one instruction of a thread do? Its operands in the model's terms, and the text that traces show.

use super::lower::{Leaves, Role, lower};
use super::names::{Local, Meaning, shifted, used_too_early};
use super::thread::ThreadExpander;
use crate::front::cfg::Action;
use crate::front::const_fold;
use crate::front::diagnostics::{Problem, Problems, Reported, Span};
use crate::front::tso::ast::{CellRef, Expr, Locked, LockedKind, Name, Op, Range, ThreadRef, Width};
use crate::model::expr::MAX_DEPTH;
use crate::model::{self, BinOp, Bytes, Instr, MAX_REGISTERS, Reg, RegExpr, RmwOp, UnOp};

/// Longer instructions are cut short in traces.
const LONGEST_TEXT: usize = 400;

impl<'s> ThreadExpander<'_, 's, '_> {
    pub(super) fn instruction(&mut self, op: &Op<'s>, span: Span) -> Result<(), Reported> {
        match op {
            Op::New(register, structure) => return self.new_block(register, structure, op, span),
            Op::Free(block) => return self.free_block(block, span),
            Op::Place(name, kinds) => return self.fence_place(name, *kinds, span),
            _ => {}
        }
        let mut action = self.action(op)?;
        let cut = match (op, &mut action) {
            // What is found is nowhere to be seen before it is cut.
            (Op::Load(_, _, width), Action::Do(Instr::Load { dst, .. })) if *width != Width::WHOLE => {
                let found = self.registers.unused().ok_or_else(|| self.too_many_registers(span))?;
                let dst = std::mem::replace(dst, found);
                Some(Instr::Assign { dst, value: masked(RegExpr::Atom(found), *width) })
            }
            _ => None,
        };
        let names = names_in(op.exprs()).into_iter().chain(op.target().copied()).collect();
        self.step(action, names, span);
        cut.into_iter().for_each(|cut| self.continue_step(Action::Do(cut)));
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
            Op::Load(dst, place, _) => {
                let (dst, addr) = (self.target(dst, op)?, self.expr(&place.addr)?);
                Instr::Load { dst, addr, bytes: self.bytes(place)? }
            }
            Op::Store(place, value, width) => {
                let (addr, value) = (self.expr(&place.addr)?, self.cut(value, *width)?);
                Instr::Store { addr, value, bytes: self.bytes(place)? }
            }
            Op::Fence => Instr::Fence,
            Op::Partial(kinds) => Instr::Partial(*kinds),
            Op::Membarrier => Instr::Membarrier,
            Op::Assign(dst, value) => Instr::Assign { dst: self.target(dst, op)?, value: self.expr(value)? },
            Op::Any(dst, range) => self.any(dst, op, range)?,
            Op::Assume(e) => Instr::Assume(self.expr(e)?),
            Op::Assert(e) => Instr::Assert(self.expr(e)?),
            Op::Locked(locked) => self.locked(locked, op)?,
            Op::Lock => Instr::Lock,
            Op::Unlock => Instr::Unlock,
            Op::Nop | Op::New(..) | Op::Free(_) | Op::Place(..) => Instr::Nop,
        };
        Ok(Action::Do(instr))
    }

    pub(super) fn expr(&mut self, e: &Expr<'s>) -> Result<RegExpr, Reported> {
        lower(self, e)
    }

    fn bytes(&mut self, place: &CellRef<'s>) -> Result<Bytes, Reported> {
        let Some(range) = &place.bytes else { return Ok(Bytes::WHOLE) };
        let context = &mut self.context;
        let (lo, hi) = context.names.range(range, &context.locals, context.problems)?;
        Bytes::range(lo, hi).ok_or_else(|| {
            let problem = Problem::error("a cell has no such bytes").at(range.span);
            self.context
                .problems
                .report(problem.help("it has eight: 0 is the lowest, and `0..8` are all of them"))
        })
    }

    /// The value's low bits.
    fn cut(&mut self, e: &Expr<'s>, width: Width) -> Result<RegExpr, Reported> {
        match width {
            Width::WHOLE => self.expr(e),
            _ => Ok(masked(self.shallow(e)?, width)),
        }
    }

    /// A branch needs the condition's negation too, which is one level higher.
    pub(super) fn condition(&mut self, e: &Expr<'s>) -> Result<RegExpr, Reported> {
        self.shallow(e)
    }

    /// An expression with room for one more level.
    fn shallow(&mut self, e: &Expr<'s>) -> Result<RegExpr, Reported> {
        let expr = self.expr(e)?;
        if expr.depth() < MAX_DEPTH {
            return Ok(expr);
        }
        let problem =
            Problem::error(format!("this expression is nested {MAX_DEPTH} levels deep")).at(e.span());
        Err(self.context.problems.report(problem.help("compute a part of it into a register first")))
    }

    fn locked(&mut self, locked: &Locked<'s>, op: &Op<'s>) -> Result<Instr, Reported> {
        let Locked { how, dst, addr, operands } = locked;
        let dst = match dst {
            Some(dst) => self.target(dst, op)?,
            None => self.registers.unused().ok_or_else(|| self.too_many_registers(addr.span()))?,
        };
        let addr = self.expr(addr)?;
        // As many as the kind of instruction has.
        let mut operand = |i: usize| match how {
            LockedKind::Sub => self.shallow(&operands[i]),
            _ => self.expr(&operands[i]),
        };
        let op = match how {
            LockedKind::Xchg => RmwOp::Swap(operand(0)?),
            LockedKind::Cas => RmwOp::Cas { old: operand(0)?, new: operand(1)? },
            LockedKind::Add => RmwOp::Add(operand(0)?),
            LockedKind::Sub => RmwOp::Add(const_fold::unary(UnOp::Neg, operand(0)?)),
            LockedKind::Inc => RmwOp::Add(RegExpr::Const(1)),
            LockedKind::Dec => RmwOp::Add(RegExpr::Const(-1)),
            LockedKind::And => RmwOp::And(operand(0)?),
            LockedKind::Or => RmwOp::Or(operand(0)?),
            LockedKind::Xor => RmwOp::Xor(operand(0)?),
            LockedKind::Rmw => RmwOp::New(self.new_value(&operands[0])?),
        };
        Ok(Instr::Rmw { dst, addr, op })
    }

    /// Computed between reading and writing, where nothing can go wrong.
    fn new_value(&mut self, e: &Expr<'s>) -> Result<RegExpr, Reported> {
        let new = self.expr(e)?;
        if !new.may_divide_by_zero() {
            return Ok(new);
        }
        let problem = Problem::error("the new value may be a division by zero").at(e.span());
        Err(self.context.problems.report(problem.help("divide by constants here, or outside, by a register")))
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
    pub(super) fn target(&mut self, name: &Name<'s>, op: &Op<'s>) -> Result<Reg, Reported> {
        let given = self.context.locals.iter().rev().find(|(local, _)| *local == name.text);
        let given = match given {
            Some((_, Local::Argument(argument))) => Some(argument.clone()),
            _ => None,
        };
        if let Some(argument) = given {
            let reg = Self::register_given(name, &argument);
            let reg = reg.map_err(|problem| self.context.problems.report(problem))?;
            self.registers.assign(reg);
            return Ok(reg);
        }
        let what = match self.context.names.meaning(name, &self.context.locals) {
            Meaning::Unknown | Meaning::Argument(_) => {
                let reg = self.register(name)?;
                self.registers.assign(reg);
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
        let reg = self.registers.get(self.frame, name.text);
        reg.ok_or_else(|| self.too_many_registers(name.span))
    }

    pub(super) fn too_many_registers(&mut self, span: Span) -> Reported {
        let problem = Problem::error(format!("a thread has at most {MAX_REGISTERS} registers"));
        self.context.problems.report(problem.at(span).label("one too many"))
    }

    fn written(&self, span: Span) -> &'s str {
        &self.context.source[span.start..span.end]
    }

    /// The text as written, with single blanks, values in place of the constants' names, and in an `inline`
    /// the caller's words in place of parameters. These are the names in it that may be replaced.
    pub(super) fn shown(&self, mut names: Vec<Name<'s>>, span: Span) -> String {
        // A very long instruction is told by its beginning; a choice has its text on each of its edges.
        let span = Span { end: span.end.min(span.start + LONGEST_TEXT), ..span };
        names.retain(|name| name.span.end <= span.end);
        names.sort_by_key(|name| name.span.start);
        let (mut text, mut at) = (String::with_capacity(span.end - span.start), span.start);
        for name in names {
            if let Some(by) = self.replacement(&name) {
                text += self.written(Span { start: at, end: name.span.start });
                text += &by;
                at = name.span.end;
            }
        }
        text += self.written(Span { start: at, end: span.end });
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn replacement(&self, name: &Name<'s>) -> Option<String> {
        let local = self.context.locals.iter().rev().find(|(local, _)| *local == name.text);
        if let Some((_, Local::Argument(argument))) = local {
            return Some(argument.text.clone());
        }
        match self.context.names.meaning(name, &self.context.locals) {
            Meaning::Constant(value @ 0..) => Some(value.to_string()),
            Meaning::Constant(value) => Some(format!("({value})")),
            _ => None,
        }
    }
}

fn masked(value: RegExpr, width: Width) -> RegExpr {
    const_fold::binary(BinOp::BitAnd, value, RegExpr::Const(width.mask()))
        .unwrap_or_else(|_| unreachable!("`&` does not divide"))
}

/// Every name that stands for a value.
pub(crate) fn names_in<'b, 's: 'b>(exprs: impl IntoIterator<Item = &'b Expr<'s>>) -> Vec<Name<'s>> {
    let mut names = Vec::new();
    exprs.into_iter().for_each(|e| e.for_each_name(&mut |name| names.push(*name)));
    names
}

impl<'s> Leaves<'s> for ThreadExpander<'_, 's, '_> {
    type Leaf = Reg;

    fn leaf(&mut self, e: &Expr<'s>, role: Role) -> Result<RegExpr, Reported> {
        let name = match e {
            Expr::Name(name) => name,
            Expr::Dot(ThreadRef { name, index: None }, field) if !self.is_thread_register(name, field) => {
                let base = self.leaf(&Expr::Name(*name), role)?;
                return Ok(shifted(base, self.context.names.offset(field, self.context.problems)?));
            }
            _ => return Err(self.not_in_a_thread(e)),
        };
        match self.context.names.meaning(name, &self.context.locals) {
            Meaning::Constant(value) | Meaning::Address(value) => Ok(model::Expr::Const(value)),
            Meaning::Argument(argument) => Ok(argument.expr.clone()),
            Meaning::Doubtful => Err(Reported),
            Meaning::TooEarly(declared) => Err(used_too_early(name, declared, self.context.problems)),
            // A register that nothing looks at is there all the same: properties may ask for it.
            Meaning::Unknown => {
                let reg = self.register(name)?;
                if role == Role::Live {
                    self.registers.read(reg, name.span);
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

impl<'s> ThreadExpander<'_, 's, '_> {
    /// Without structs, a dot can only have been meant for another thread's register.
    fn is_thread_register(&self, thread: &Name<'s>, register: &Name<'s>) -> bool {
        let names = self.context.names;
        !names.has_fields() && !names.is_doubtful(thread.text) && !names.is_doubtful(register.text)
    }

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
}

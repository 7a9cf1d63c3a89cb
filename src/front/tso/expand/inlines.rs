//! What is written once and used in many places? `inline NAME(x) … end`.
//!
//! A call stands for the text of its body, with registers and labels of its own, and with the caller's
//! expressions for parameters. An argument that is a register can be assigned to; that is how results come
//! back.

use super::instr::names_in;
use super::labels;
use super::names::{Argument, Local};
use super::registers::Frame;
use super::thread::ThreadExpander;
use crate::front::diagnostics::{INSTRUCTION, Problem, Problems, Reported, Span};
use crate::front::tso::ast::{Expr, File, Inline, Name, own_labels};
use crate::model;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// Calls inside calls.
const MAX_CALLS: usize = 32;

pub(crate) struct Inlines<'s, 'f> {
    by_name: HashMap<&'s str, &'f Inline<'s>>,
}

impl<'s, 'f> Inlines<'s, 'f> {
    pub(crate) fn new(file: &'f File<'s>, problems: &mut Problems<'s>) -> Inlines<'s, 'f> {
        let mut by_name: HashMap<&str, &Inline> = HashMap::new();
        for inline in &file.inlines {
            labels::check(&inline.body, problems);
            check_params(inline, problems);
            match by_name.get(inline.name.text) {
                Some(first) => {
                    let line = problems.line_name(first.name.span);
                    let problem = Problem::error(format!("inline `{}` is defined twice", inline.name.text));
                    problems.report(problem.at(inline.name.span).label(format!("first on line {line}")));
                }
                None => {
                    by_name.insert(inline.name.text, inline);
                }
            }
        }
        Inlines { by_name }
    }
}

fn check_params<'s>(inline: &Inline<'s>, problems: &mut Problems<'s>) {
    let mut seen: HashSet<&str> = HashSet::new();
    for param in inline.params.iter().filter(|param| !seen.insert(param.text)) {
        let problem = Problem::error(format!("parameter `{}` stands twice", param.text)).at(param.span);
        problems.report(problem);
    }
}

impl<'s, 'f> ThreadExpander<'_, 's, 'f> {
    /// The statements of the `inline`, here.
    pub(super) fn call(&mut self, name: &Name<'s>, args: &[Expr<'s>], span: Span) -> Result<(), Reported> {
        let Ok(inline) = self.callee(name, args.len(), span) else {
            self.complete = false;
            return Ok(());
        };
        self.spend_round(1 + own_labels(&inline.body).len(), span)?;
        let given = inline.params.iter().zip(args).map(|(param, arg)| self.argument(param, arg));
        let Ok(given) = given.collect::<Result<Vec<_>, Reported>>() else {
            self.complete = false;
            return Ok(());
        };
        let frame = self.new_frame(inline.name.text);
        let caller = (
            std::mem::replace(&mut self.frame, frame),
            std::mem::replace(&mut self.context.locals, given),
            std::mem::take(&mut self.scopes),
            std::mem::take(&mut self.copies),
        );
        self.calls.push(inline.name.text);
        let done = self.body(&inline.body);
        self.calls.pop();
        (self.frame, self.context.locals, self.scopes, self.copies) = caller;
        done
    }

    fn callee(&mut self, name: &Name<'s>, args: usize, span: Span) -> Result<&'f Inline<'s>, Reported> {
        let Some(inline) = self.context.inlines.by_name.get(name.text).copied() else {
            if self.context.names.is_doubtful(name.text) {
                return Err(Reported);
            }
            let known = self.context.inlines.by_name.keys().copied();
            let meant = self.context.problems.nearest(name.text, known);
            let problem = Problem::error(format!("there is no inline `{}`", name.text)).at(name.span);
            return Err(self.context.problems.report(problem.suggest(meant)));
        };
        let problem = if args != inline.params.len() {
            let count = inline.params.len();
            let plural = if count == 1 { "" } else { "s" };
            Problem::error(format!("`{}` takes {count} argument{plural}, and gets {args}", name.text))
        } else if self.calls.contains(&name.text) {
            Problem::error(format!("`{}` calls itself", name.text)).help("it would never end to unfold")
        } else if self.calls.len() == MAX_CALLS {
            Problem::error("calls are nested too deeply")
        } else {
            return Ok(inline);
        };
        Err(self.context.problems.report(problem.at(span)))
    }

    fn argument(&mut self, param: &Name<'s>, arg: &Expr<'s>) -> Result<(&'s str, Local), Reported> {
        self.context.problems.spend(INSTRUCTION)?;
        let expr = self.expr(arg)?;
        let text = self.shown(names_in([arg]), arg.span());
        let simple = matches!(arg, Expr::Name(_) | Expr::Number(..) | Expr::Dot(..));
        let text = if simple { text } else { format!("({text})") };
        Ok((param.text, Local::Argument(Rc::new(Argument { expr, text }))))
    }

    pub(super) fn new_frame(&mut self, inline: &'s str) -> Frame<'s> {
        self.frames += 1;
        let number = self.call_counts.entry(inline).or_insert(0);
        *number += 1;
        Frame { id: self.frames, call: Some((inline, *number)) }
    }

    /// The register that an argument is, if it is one.
    pub(super) fn register_given(name: &Name<'s>, argument: &Argument) -> Result<model::Reg, Problem> {
        match argument.expr {
            model::Expr::Atom(reg) => Ok(reg),
            _ => Err(Problem::error(format!("`{}` stands for `{}` here", name.text, argument.text))
                .at(name.span)
                .label("not a register, and cannot be assigned to")),
        }
    }
}

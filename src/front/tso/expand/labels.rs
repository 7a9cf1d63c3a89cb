//! Do the labels of a thread make sense? Checked once on its text, before any template or `repeat` unfolds.
//!
//! The braces of a `repeat` are a scope: its labels can be jumped to from inside it. Text behind a jump that no
//! label precedes can never run, which is allowed, and worth a warning.

use crate::front::diagnostics::{Problem, Problems, Span};
use crate::front::tso::ast::{Arm, Name, Stmt, own_labels};
use std::collections::{HashMap, HashSet};

/// The labels of a thread, or of an `inline`.
pub(crate) fn check<'s>(body: &[Stmt<'s>], problems: &mut Problems<'s>) {
    let mut checker = Checker { problems, scopes: Vec::new(), hidden: HashSet::new() };
    hidden_labels(body, 0, &mut checker.hidden);
    checker.body(body, Flow::Arrives);
}

/// Can the text at this point be reached from the text before it?
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Arrives,
    /// No, and nothing has been said about it yet.
    Stops,
}

struct Checker<'s, 'p> {
    problems: &'p mut Problems<'s>,
    scopes: Vec<HashMap<&'s str, Span>>,
    /// Labels inside braces, to explain why a jump does not find them.
    hidden: HashSet<&'s str>,
}

impl<'s> Checker<'s, '_> {
    fn body(&mut self, body: &[Stmt<'s>], flow: Flow) -> Flow {
        let scope = self.scope(body);
        self.scopes.push(scope);
        let flow = self.statements(body, flow);
        self.scopes.pop();
        flow
    }

    fn statements(&mut self, body: &[Stmt<'s>], mut flow: Flow) -> Flow {
        for statement in body {
            if self.problems.spend(1).is_err() {
                break;
            }
            flow = match statement {
                Stmt::Gap(_) => flow,
                Stmt::Label(_) | Stmt::Bad => Flow::Arrives,
                Stmt::Local(_) => flow,
                Stmt::Repeat { body, .. } => self.body(body, flow),
                Stmt::Branch { arms, otherwise } => self.branch(arms, otherwise, flow),
                Stmt::While(arm) => {
                    self.arrives(flow, arm.head);
                    self.statements(&arm.body, Flow::Arrives);
                    Flow::Arrives
                }
                Stmt::Call { span, .. } => self.arrives(flow, *span),
                Stmt::Return(_, span) => {
                    self.arrives(flow, *span);
                    Flow::Stops
                }
                Stmt::Commit(inner) => self.statements(std::slice::from_ref(inner), flow),
                Stmt::Instr(op, span) => {
                    self.arrives(flow, *span);
                    op.jumps().iter().for_each(|label| self.jump(label));
                    if op.never_goes_on() { Flow::Stops } else { Flow::Arrives }
                }
            };
        }
        flow
    }

    fn branch(&mut self, arms: &[Arm<'s>], otherwise: &[Stmt<'s>], mut flow: Flow) -> Flow {
        let mut ends = Vec::new();
        for arm in arms {
            flow = self.arrives(flow, arm.head);
            ends.push(self.statements(&arm.body, Flow::Arrives));
        }
        ends.push(self.statements(otherwise, Flow::Arrives));
        if ends.contains(&Flow::Arrives) { Flow::Arrives } else { Flow::Stops }
    }

    /// Something stands here that is meant to be reached.
    fn arrives(&mut self, flow: Flow, span: Span) -> Flow {
        if flow == Flow::Stops {
            self.unreachable(span);
        }
        Flow::Arrives
    }

    fn scope(&mut self, body: &[Stmt<'s>]) -> HashMap<&'s str, Span> {
        let mut scope: HashMap<&str, Span> = HashMap::new();
        for name in own_labels(body) {
            match scope.get(name.text) {
                None => {
                    scope.insert(name.text, name.span);
                }
                Some(first) => {
                    let line = self.problems.line_name(*first);
                    let problem = Problem::error(format!("label `{}` stands twice in its thread", name.text))
                        .at(name.span)
                        .label(format!("first on line {line}"));
                    self.problems.report(problem);
                }
            }
        }
        scope
    }

    fn jump(&mut self, label: &Name<'s>) {
        if self.scopes.iter().any(|scope| scope.contains_key(label.text)) {
            return;
        }
        let problem = Problem::error(format!("unknown label `{}`", label.text)).at(label.span);
        let problem = if self.hidden.contains(label.text) {
            problem
                .help("there is one inside a `repeat`, where it can be reached only from inside the braces")
        } else {
            let known = self.scopes.iter().flat_map(|scope| scope.keys().copied());
            problem.label("no such label in this thread").suggest(self.problems.nearest(label.text, known))
        };
        self.problems.report(problem);
    }

    fn unreachable(&mut self, span: Span) {
        let problem = Problem::warning("this instruction can never run")
            .at(span)
            .label("the one before it jumps away, and no label leads here");
        self.problems.report(problem);
    }
}

fn hidden_labels<'s>(body: &[Stmt<'s>], level: usize, hidden: &mut HashSet<&'s str>) {
    for statement in body {
        match statement {
            Stmt::Label(name) if level > 0 => hidden.extend([name.text]),
            Stmt::Repeat { body, .. } => hidden_labels(body, level + 1, hidden),
            Stmt::While(arm) => hidden_labels(&arm.body, level, hidden),
            Stmt::Branch { arms, otherwise } => {
                arms.iter().for_each(|arm| hidden_labels(&arm.body, level, hidden));
                hidden_labels(otherwise, level, hidden);
            }
            _ => {}
        }
    }
}

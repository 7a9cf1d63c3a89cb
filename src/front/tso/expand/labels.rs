//! Do the labels of a thread make sense? Checked once on its text, before any template or `repeat` unfolds.
//!
//! Each pair of braces is a scope: its labels can be jumped to from inside it. Text behind a jump that no
//! label precedes can never run, which is allowed, and worth a warning.

use crate::front::diagnostics::{Problem, Problems, Span};
use crate::front::tso::ast::{Name, Stmt, ThreadDecl};
use std::collections::{HashMap, HashSet};

pub fn check<'s>(thread: &ThreadDecl<'s>, problems: &mut Problems<'s>) {
    let mut checker = Checker { problems, scopes: Vec::new(), hidden: HashSet::new() };
    hidden_labels(&thread.body, 0, &mut checker.hidden);
    checker.body(&thread.body, Flow::Arrives);
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
    fn body(&mut self, body: &[Stmt<'s>], mut flow: Flow) -> Flow {
        let scope = self.scope(body);
        self.scopes.push(scope);
        for statement in body {
            if self.problems.spend(1).is_err() {
                break;
            }
            flow = match statement {
                Stmt::Label(_) | Stmt::Bad => Flow::Arrives,
                Stmt::Repeat { body, .. } => self.body(body, flow),
                Stmt::Instr(op, span) => {
                    if flow == Flow::Stops {
                        self.unreachable(*span);
                    }
                    op.jumps().iter().for_each(|label| self.jump(label));
                    if op.never_goes_on() { Flow::Stops } else { Flow::Arrives }
                }
            };
        }
        self.scopes.pop();
        flow
    }

    fn scope(&mut self, body: &[Stmt<'s>]) -> HashMap<&'s str, Span> {
        let mut scope: HashMap<&str, Span> = HashMap::new();
        for statement in body {
            let Stmt::Label(name) = statement else { continue };
            match scope.get(name.text) {
                None => {
                    scope.insert(name.text, name.span);
                }
                Some(first) => {
                    let line = self.problems.line(*first);
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
            _ => {}
        }
    }
}

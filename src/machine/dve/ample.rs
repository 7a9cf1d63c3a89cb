//! Which steps can be taken alone? A partial-order reduction for models: ample sets of one process, known from
//! the text [Godefroid96], right for formulas without X [Peled94].
//!
//! A state of a process is *ample* if all transitions from it are local and invisible: without channels and
//! barriers, over variables that are the process's own and that nobody else looks at, and without change to
//! anything that was asked about. Where such a process can move, and cannot go wrong, its moves are taken
//! alone: nobody can prevent them, tell them apart from standing still, or be prevented by them. So that
//! nobody is put off for ever, every cycle has to pass a state where all move: of the ample states of a
//! process, those that lead back are not, and so no process goes round in them. That is decided once, from
//! the text, and depends on no search.

use crate::dve::{DveExpr, DveTransition, Memory, System};
use std::collections::BTreeSet;

/// What must not be changed unnoticed.
#[derive(Default)]
struct Seen {
    variables: BTreeSet<usize>,
    /// By process.
    states: BTreeSet<(usize, usize)>,
}

impl Seen {
    fn look(&mut self, expr: &DveExpr) {
        expr.visit(&mut |part| match part {
            DveExpr::Read(place) => drop(self.variables.insert(place.variable)),
            &DveExpr::At { process, state } => drop(self.states.insert((process, state))),
            _ => {}
        });
    }
}

/// Per process and state, whether it is ample. `asked` are all expressions whose values matter.
pub(crate) fn ample(system: &System, memory: &Memory, asked: &[DveExpr]) -> Vec<Vec<bool>> {
    let mut visible = Seen::default();
    asked.iter().for_each(|expr| visible.look(expr));
    let processes = &system.processes[..system.active()];
    let any_committed = processes.iter().flat_map(|p| &p.states).any(|s| s.committed);
    let mut all = Vec::new();
    for (p, process) in processes.iter().enumerate() {
        let mut others = Seen::default();
        let foreign = processes.iter().enumerate().filter(|(q, _)| *q != p);
        foreign
            .flat_map(|(_, q)| q.transitions.iter().flat_map(|t| t.expressions()))
            .for_each(|e| others.look(e));
        let is_hidden = |number: usize, t: &DveTransition| {
            !memory.is_barrier(p, number)
                && is_local(system, p, t, &others)
                && is_invisible(p, t, &visible)
                && is_invisible(p, t, &others)
        };
        let mut own = vec![!any_committed; process.states.len()];
        for (number, t) in process.transitions.iter().enumerate() {
            own[t.from] &= is_hidden(number, t);
        }
        break_cycles(&process.transitions, &mut own);
        all.push(own);
    }
    all
}

fn is_local(system: &System, process: usize, t: &DveTransition, others: &Seen) -> bool {
    let mut read = Seen::default();
    t.expressions().into_iter().for_each(|e| read.look(e));
    let own = |v: &usize| system.variables[*v].owner == Some(process);
    let readable = |v: &usize| own(v) || system.variables[*v].constant;
    t.sync.is_none()
        && read.variables.iter().all(readable)
        && read.states.iter().all(|(p, _)| *p == process)
        && t.targets().all(|place| own(&place.variable) && !others.variables.contains(&place.variable))
}

fn is_invisible(process: usize, t: &DveTransition, seen: &Seen) -> bool {
    let moves = t.from != t.to;
    let ends = [(process, t.from), (process, t.to)];
    !(moves && ends.iter().any(|end| seen.states.contains(end)))
        && t.targets().all(|place| !seen.variables.contains(&place.variable))
}

/// Takes out the states that a way through ample states leads back to.
fn break_cycles(transitions: &[DveTransition], ample: &mut [bool]) {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    let mut ways: Vec<Vec<usize>> = vec![Vec::new(); ample.len()];
    for t in transitions {
        ways[t.from].push(t.to);
    }
    let mut marks = vec![Mark::New; ample.len()];
    for root in 0..ample.len() {
        if marks[root] != Mark::New {
            continue;
        }
        marks[root] = Mark::Open;
        let mut path = vec![(root, 0)];
        while let Some((from, next)) = path.last_mut() {
            let way = ways[*from].get(*next).filter(|_| ample[*from]);
            let Some(&to) = way else {
                marks[*from] = Mark::Done;
                path.pop();
                continue;
            };
            *next += 1;
            match marks[to] {
                _ if !ample[to] => {}
                Mark::New => {
                    marks[to] = Mark::Open;
                    path.push((to, 0));
                }
                Mark::Open => ample[to] = false,
                Mark::Done => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::dve::read;
    use crate::limits::Limits;

    /// Names of the ample states of the first process.
    fn of(source: &str, asked: &str) -> String {
        let (system, _) = read(source, &Limits::default()).expect("a model");
        let expr = crate::front::dve::expression(asked, &system, &[], &Limits::default()).expect("one");
        let own = ample(&system, &Memory::Sc, &[expr]).remove(0);
        let names = system.processes[0].states.iter().zip(own).filter(|(_, ample)| *ample);
        names.map(|(s, _)| &s.name[..]).collect::<Vec<_>>().join(" ")
    }

    fn model(transitions: &str, other: &str) -> String {
        format!(
            "byte x; process P {{ byte l; state a, b, c; init a; trans {transitions}; }} \
             process Q {{ byte m; state s; init s; trans s -> s {{ {other} }}; }} system async;"
        )
    }

    #[test]
    fn local_steps_are_ample_and_those_that_somebody_sees_are_not() {
        let steps = "a -> b { effect l = 1; }, b -> c { guard x == 0; }, c -> c { guard l == 2; }";
        assert_eq!(of(&model(steps, ""), "x == 1"), "a");
        assert_eq!(of(&model(steps, ""), "P->l == 1"), "", "it is asked about");
        assert_eq!(of(&model(steps, ""), "P.b"), "");
        assert_eq!(of(&model(steps, "guard P->l == 1;"), "x == 1"), "", "the other looks at it");
        assert_eq!(of(&model(steps, "guard P.b;"), "x == 1"), "");
        assert_eq!(of(&model(steps, "effect x = 1;"), "x == 1"), "a");
    }

    #[test]
    fn nobody_goes_round_in_ample_states() {
        let round = "a -> b {}, b -> c { effect l = 1 - l % 2; }, c -> a {}";
        assert_eq!(of(&model(round, ""), "x == 1"), "b c");
        assert_eq!(of(&model("a -> a {}, a -> b {}", ""), "x == 1"), "b c", "those without steps never move");
    }
}

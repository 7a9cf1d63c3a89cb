//! Formulas on runs of programs: known answers, and random programs against a rival that knows no product.
//!
//! The rival makes the graph of all states, and looks for a fair cycle by removing what cannot be on one.

mod common;

use common::dve::Dice;
use overtake::cli::expectations::{self, Expected, LIST};
use overtake::front::ltl::{self, Grouping};
use overtake::front::tso;
use overtake::limits::Limits;
use overtake::model::formula::{Formula, StatedFormula};
use overtake::model::{Pred, Program};
use overtake::query::{Answer, Limit, Model, Verdict};
use overtake::semantics::State;
use overtake::semantics::liveness::{Actor, thread_steps};
use overtake::temporal::program::{LivenessOptions, ProgramFormula, formula};
use proptest::prelude::*;
use std::collections::HashMap;
use std::path::Path;

/// The program without what was added, and the predicates that were.
fn read(source: &str, predicates: &[&str]) -> (Program, Vec<Pred>) {
    let added: String = predicates.iter().map(|p| format!("forbid {p}\n")).collect();
    let text = format!("{source}\n{added}");
    let program = match tso::read(&text, &[], &Limits::default()) {
        Ok(input) => input.program,
        Err(wrong) => panic!("{:?}\n{text}", wrong.diagnostics()),
    };
    let preds = program.properties().iter().map(|p| p.pred.clone()).collect();
    (program, preds)
}

fn judged(source: &str, text: &str, model: Model, fair: bool) -> Answer<(), usize> {
    let named = ltl::formula(text, Grouping::Precedence, &Limits::default()).expect("a formula");
    let names: Vec<&str> = named.names.iter().map(|n| &n[..]).collect();
    let (program, propositions) = read(source, &names);
    let asked = ProgramFormula { formula: named.formula, propositions };
    let options = LivenessOptions { model, buffer: 4, fair };
    let outcome = formula(&program, &asked, options, &Limits::default()).expect("what is found is confirmed");
    match outcome.answer {
        Answer::Holds(()) => Answer::Holds(()),
        Answer::Fails(lasso) => Answer::Fails(lasso.events.len() - lasso.cycle_from),
        Answer::Unknown(limit) => Answer::Unknown(limit),
    }
}

fn verdict(source: &str, text: &str, model: Model, fair: bool) -> Verdict {
    judged(source, text, model, fair).verdict()
}

const LOCK: &str = "
shared taken
thread p
again:
    xchg r, [taken], 1
    if r != 0 goto again
critical:
    store [taken], 0
    goto again
end
thread q
again:
    xchg r, [taken], 1
    if r != 0 goto again
critical:
    store [taken], 0
    goto again
end
";

const HANDOVER: &str = "
shared x
thread p
    store [x], 1
end
thread q
wait:
    load r, [x]
    if r == 0 goto wait
end
";

#[test]
fn a_spin_lock_starves_somebody_but_never_everybody() {
    for model in [Model::Sc, Model::Tso] {
        assert_eq!(verdict(LOCK, "G F {p@critical}", model, true), Verdict::Fails);
        assert_eq!(verdict(LOCK, "G F ({p@critical} || {q@critical})", model, true), Verdict::Holds);
        assert_eq!(verdict(LOCK, "G F ({p@critical} || {q@critical})", model, false), Verdict::Fails);
        assert_eq!(verdict(LOCK, "G !({p@critical} && {q@critical})", model, true), Verdict::Holds);
    }
}

#[test]
fn a_store_arrives_if_flushing_is_fair() {
    assert_eq!(verdict(HANDOVER, "F {q.r == 1}", Model::Tso, true), Verdict::Holds);
    assert_eq!(verdict(HANDOVER, "F {q.r == 1}", Model::Tso, false), Verdict::Fails);
    assert_eq!(verdict(HANDOVER, "F G {q.r == 1}", Model::Sc, true), Verdict::Holds);
}

#[test]
fn a_wait_waits_for_another_value() {
    let wait = "shared x\nthread p\n store [x], 1\nend\nthread q\n load r, [x]\n assume r == 1\nend\n";
    for model in [Model::Sc, Model::Tso] {
        assert_eq!(verdict(wait, "F {q.r == 1}", model, true), Verdict::Holds);
    }
    let stuck = wait.replace("store [x], 1", "store [x], 2");
    assert!(matches!(judged(&stuck, "F {q.r == 1}", Model::Tso, true), Answer::Fails(0)), "nothing happens");
}

#[test]
fn what_needs_longer_buffers_is_not_known() {
    let endless = "shared x\nthread p\nagain:\n store [x], 1\n goto again\nend\n";
    assert_eq!(verdict(endless, "G F {[x] == 1}", Model::Sc, true), Verdict::Holds);
    let answer = judged(endless, "G F {[x] == 1}", Model::Tso, true);
    assert!(matches!(answer, Answer::Unknown(Limit::Buffer(4))), "{answer:?}");
}

/// The formulas that a program states, as they are understood.
fn stated(text: &str) -> Vec<String> {
    let input = match tso::read(text, &[], &Limits::default()) {
        Ok(input) => input,
        Err(wrong) => return wrong.diagnostics().iter().map(|d| d.message.clone()).collect(),
    };
    let shown = |f: &StatedFormula| {
        let names: Vec<String> =
            f.propositions.iter().map(|p| p.show(&|a| input.program.show_atom(a))).collect();
        f.formula.show(&names)
    };
    input.formulas.iter().map(shown).collect()
}

#[test]
fn files_state_formulas() {
    let of = |formula: &str| {
        let threads = "thread p[i in 0..=1]\na:\n load r, [x]\nb:\nend\nthread G\nl:\n nop\nend\n";
        stated(&format!("shared x, y\n{threads}{formula}\n")).concat()
    };
    assert_eq!(of("ltl G F p[0]@a"), "G F {p[0]@a}");
    assert_eq!(of("ltl GF p[0]@a"), "G F {p[0]@a}");
    assert_eq!(of("ltl [] <> [x] == 1"), "G F {[x] == 1}");
    assert_eq!(of("ltl F [x] + 1 == 2"), "F {[x] + 1 == 2}");
    assert_eq!(of("ltl F ([x] + 1) * 2 == 2"), "F {([x] + 1) * 2 == 2}");
    assert_eq!(of("ltl G !p[0]@a"), "G {!p[0]@a}");
    assert_eq!(of("ltl !F p[0]@a"), "!(F {p[0]@a})".replace(['(', ')'], ""));
    assert_eq!(of("ltl !(F p[0]@a)"), "!F {p[0]@a}");
    assert_eq!(of("ltl ![x] == 1"), "{![x] == 1}");
    assert_eq!(of("ltl [x] == 1 U [y] == 2"), "{[x] == 1} U {[y] == 2}");
    assert_eq!(
        of("ltl [x] == 1 -> [y] == 2 U p[1].r == 3 && X [x] == 1"),
        "{[x] == 1} -> (({[y] == 2} U {p[1].r == 3}) && X {[x] == 1})"
    );
    assert_eq!(of("ltl G G@l"), "G {G@l}");
    assert_eq!(of("ltl G (G@l || (p[0]@a))"), "G ({G@l} || {p[0]@a})");
    assert_eq!(of("ltl n: all i: F p[i]@b"), "F {p[0]@b} && F {p[1]@b}");
    assert_eq!(of("ltl some i in 0..=1: G p[i]@a"), "G {p[0]@a} || G {p[1]@a}");
    assert_eq!(of("ltl F 1 == 1"), "F true");
    assert!(of("terminates").starts_with("F {") && of("terminates") == of("ltl F terminated"));
    assert_eq!(of("ltl G"), "expected an expression, found the end of the line");
    assert_eq!(of("ltl p[0]@a Q p[1]@a"), "`Q` is no operator between formulas");
    assert_eq!(of("ltl [x] = 1"), "`=` does not compare");
    assert_eq!(of("ltl F r == 1"), "unknown name `r`");
    let deep = format!("ltl {}p[0]@a{}", "(".repeat(100_000), ")".repeat(100_000));
    assert!(of(&deep).contains("nested"));
    assert!(of(&format!("ltl {}p[0]@a", "!G".repeat(100_000))).contains("nested"));
}

/// What stands beside bundled programs that state formulas.
#[test]
fn bundled_programs_do_what_is_said_of_their_formulas() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/liveness");
    let list = std::fs::read_to_string(folder.join(LIST)).expect("there is a list");
    let rows = expectations::list(&list).expect("it is one");
    assert!(rows.len() > 3);
    for row in rows {
        let text = std::fs::read_to_string(folder.join(&row.file)).expect("the program is there");
        let input = tso::read(&text, &[], &Limits::default()).expect("it is one");
        let (sc, tso) = row.ltl.expect("the formulas are why it is here");
        for (model, buffer, expected) in [(Model::Sc, 0, sc), (Model::Tso, 8, tso)] {
            let options = LivenessOptions { model, buffer, fair: true };
            let verdicts = input.formulas.iter().map(|stated| {
                let outcome =
                    formula(&input.program, &ProgramFormula::of(stated), options, &Limits::default());
                outcome.expect("what is found is confirmed").answer.verdict()
            });
            let told = if expected == Expected::Safe { Verdict::Holds } else { Verdict::Fails };
            assert_eq!(verdicts.max(), Some(told), "{} under {model:?}", row.file);
        }
    }
}

/// Is there a fair run that stays, from some time on, in states of one kind?
fn stays(program: &Program, model: Model, fair: bool, kind: impl Fn(&State) -> bool) -> Option<bool> {
    let start = State::initial(program);
    let mut numbers = HashMap::from([(start.clone(), 0)]);
    let (mut states, mut edges) = (vec![start], Vec::new());
    let actors = Actor::all(program);
    while edges.len() < states.len() {
        let from = states[edges.len()].clone();
        let all: Vec<_> = program.thread_ids().flat_map(|t| thread_steps(program, model, &from, t)).collect();
        let ready: Vec<bool> = actors.iter().map(|a| all.iter().any(|s| a.took(s))).collect();
        let mut out = Vec::new();
        for step in &all {
            if step.state.buffers.iter().any(|b| b.len() > 4) {
                return None;
            }
            let to = *numbers.entry(step.state.clone()).or_insert_with(|| {
                states.push(step.state.clone());
                states.len() - 1
            });
            let who = actors.iter().position(|a| a.took(step));
            out.push((to, who));
        }
        if all.is_empty() {
            out.push((edges.len(), None));
        }
        if states.len() > 2_000 {
            return None;
        }
        edges.push((out, ready));
    }
    // Components of the states of that kind, by petgraph; fair if each actor acts inside or is not ready.
    let mut graph = petgraph::graph::DiGraph::<usize, Option<usize>>::new();
    let nodes: Vec<_> = states.iter().enumerate().map(|(i, s)| kind(s).then(|| graph.add_node(i))).collect();
    for (from, (out, _)) in edges.iter().enumerate() {
        for (to, who) in out {
            if let (Some(a), Some(b)) = (nodes[from], nodes[*to]) {
                graph.add_edge(a, b, *who);
            }
        }
    }
    let components = petgraph::algo::tarjan_scc(&graph);
    Some(components.iter().any(|component| {
        let inside = |n: &petgraph::graph::NodeIndex| component.contains(n);
        let within: Vec<Option<usize>> = graph
            .edge_indices()
            .filter(|e| graph.edge_endpoints(*e).is_some_and(|(a, b)| inside(&a) && inside(&b)))
            .map(|e| graph[e])
            .collect();
        let served = |actor: usize| {
            within.contains(&Some(actor)) || component.iter().any(|n| !edges[graph[*n]].1[actor])
        };
        !within.is_empty() && (!fair || (0..actors.len()).all(served))
    }))
}

fn random_program(dice: &mut Dice) -> String {
    let mut text = "shared x, y\n".to_string();
    for name in ["p", "q"] {
        text += &format!("thread {name}\n    r = 0\na:\n");
        for _ in 0..2 + dice.roll(3) {
            text += dice.pick(&[
                "    store [x], 1\n",
                "    store [y], 1\n",
                "    store [x], 0\n",
                "    load r, [x]\n",
                "    load r, [y]\n",
                "    fence\n",
                "    xchg r, [x], 1\n",
                "    if r == 1 goto a\n",
                "    if r == 0 goto a\n",
                "    assume r == 0\n",
                "    r = 1 - r\n",
            ]);
        }
        text += if dice.one_in(2) { "    fence\n    goto a\nend\n" } else { "end\n" };
    }
    text
}

proptest! {
    #![proptest_config(common::cases(300))]

    #[test]
    fn random_programs_are_judged_as_the_rival_judges_them(seed in any::<u64>()) {
        let mut dice = Dice::new(seed);
        let text = random_program(&mut dice);
        let condition = dice.pick(&["[x] == 1", "[y] == 0", "p.r == 1", "q@a", "p.r == q.r"]);
        let (program, preds) = read(&text, &[condition]);
        let (model, fair) = (if dice.one_in(2) { Model::Sc } else { Model::Tso }, !dice.one_in(4));
        // Never again what the condition says, so G F of it fails.
        let Some(bad) = stays(&program, model, fair, |s| !s.has(&preds[0])) else { return Ok(()) };
        let again = Formula::Globally(Box::new(Formula::Finally(Box::new(Formula::Proposition(0)))));
        let asked = ProgramFormula { formula: again, propositions: preds };
        let options = LivenessOptions { model, buffer: 4, fair };
        let outcome = formula(&program, &asked, options, &Limits::default()).expect("what is found is confirmed");
        let expected = if bad { Verdict::Fails } else { Verdict::Holds };
        prop_assert_eq!(outcome.answer.verdict(), expected, "{}\nG F {{{}}} {:?} fair {}", text, condition, model, fair);
    }
}

//! Are hangs found where there are any? The whole state graph of small programs with spin loops, by the plain
//! machines, has terminal strongly connected components that only read, or it has none; and the search says
//! the same.
//!
//! `OVERTAKE_PROGRAMS=2000 cargo test --release --test hang` tries more programs than the default.

mod common;
#[path = "common/ran.rs"]
mod ran;

use common::{SMALL, Shape, Taste, cases, program};
use overtake::engine;
use overtake::limits::Limits;
use overtake::model::{EdgeId, Instr, Loc, Program, ThreadId};
use overtake::query::{Answer, EventKind, Limit, Model};
use overtake::semantics::{State, sc, tso};
use petgraph::algo::tarjan_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use proptest::prelude::*;
use ran::{VIOLATED, overtake};
use std::collections::HashMap;

/// Larger graphs are left alone.
const MOST: usize = 3_000;

/// A state, and by which edge each thread came to where it stands.
type Node = (State, Vec<Option<EdgeId>>);

/// Where a thread goes back to because all it could do is assume what does not hold.
fn retries(program: &Program, (state, last): &Node, t: ThreadId) -> Option<Loc> {
    let (own, at) = (program.thread(t), state.at[t.index()]);
    if at == Loc::TRAP || own.edges_from(at).is_empty() {
        return None;
    }
    let only_assumes = own.edges_from(at).iter().all(|(_, e)| matches!(e.instr, Instr::Assume(_)));
    if !only_assumes || !sc::thread_steps(program, state, t).is_empty() {
        return None;
    }
    let repeats = |instr: &Instr| {
        let mut own_target = false;
        instr.uses(|r| own_target |= Some(r) == instr.target());
        matches!(instr, Instr::Load { .. } | Instr::Rmw { .. }) && !own_target
    };
    let mut edge = own.edge(last[t.index()]?);
    // A narrow load is one load, though it takes two edges: the second has the same text.
    if edge.text.starts_with("load8") && !edge.instr.reads_memory() {
        edge = own.edges().map(|(_, e)| e).find(|e| e.to == edge.from)?;
    }
    repeats(&edge.instr).then_some(edge.from)
}

fn successors(program: &Program, node: &Node, model: Model) -> Vec<Node> {
    let (state, last) = node;
    let steps = match model {
        Model::Sc => sc::steps(program, state),
        Model::Tso => tso::steps(program, state, tso::Bound::Unbounded).0,
    };
    let mut all = Vec::new();
    for step in steps {
        let mut last = last.clone();
        if step.event.kind != EventKind::Flush {
            last[step.event.thread().index()] = Some(step.event.edge);
        }
        all.push((step.state, last));
    }
    for t in program.thread_ids() {
        if let Some(from) = retries(program, node, t) {
            let (mut state, mut last) = node.clone();
            state.at[t.index()] = from;
            last[t.index()] = None;
            all.push((state, last));
        }
    }
    all
}

/// Are all buffers empty, but for those that a block freezes?
fn is_drained(program: &Program, state: &State) -> bool {
    let frozen = |t: ThreadId| state.lock.is_some_and(|owner| owner != t);
    program.thread_ids().all(|t| state.buffers[t.index()].is_empty() || frozen(t))
}

/// Is there a terminal component with empty buffers, one memory, no thread gone wrong and not all at their
/// ends? `None` if the graph is too large.
fn by_components(program: &Program, model: Model) -> Option<bool> {
    let mut graph: DiGraph<Node, ()> = DiGraph::new();
    let mut numbers: HashMap<Node, NodeIndex> = HashMap::new();
    let start = (State::initial(program), vec![None; program.threads().len()]);
    let first = graph.add_node(start.clone());
    numbers.insert(start, first);
    let mut todo = vec![first];
    while let Some(node) = todo.pop() {
        for next in successors(program, &graph[node].clone(), model) {
            let to = *numbers.entry(next.clone()).or_insert_with(|| {
                let to = graph.add_node(next);
                todo.push(to);
                to
            });
            graph.update_edge(node, to, ());
        }
        if graph.node_count() > MOST {
            return None;
        }
    }
    let hangs = |part: &Vec<NodeIndex>| {
        let is_terminal = part.iter().all(|&n| graph.neighbors(n).all(|to| part.contains(&to)));
        let memory = &graph[part[0]].0.memory;
        let ended = |s: &State| program.thread_ids().all(|t| s.at[t.index()] == program.thread(t).end());
        is_terminal
            && part.iter().all(|&n| graph[n].0.memory == *memory && !graph[n].0.at.contains(&Loc::TRAP))
            && part.iter().any(|&n| is_drained(program, &graph[n].0))
            && !part.iter().any(|&n| ended(&graph[n].0))
    };
    Some(tarjan_scc(&graph).iter().any(hangs))
}

/// Whether there was anything to compare, and if so, whether it hangs.
fn agrees(program: &Program, model: Model) -> Result<Option<bool>, TestCaseError> {
    let Some(hangs) = by_components(program, model) else { return Ok(None) };
    let found = engine::hang(program, model, &Limits::default()).expect("no internal error");
    match found.outcome.answer {
        Answer::Fails(_) => prop_assert!(hangs, "{:?}: {:?}", model, found.waiting),
        Answer::Holds(_) => prop_assert!(!hangs, "{:?}", model),
        Answer::Unknown(limit) => prop_assert!(false, "{limit:?}"),
    }
    Ok(Some(hangs))
}

/// What threads that wait for each other do; `#` is a number of its own.
const PARTS: &[&str] = &[
    "store [x], 1",
    "store [x], 0",
    "store [y], 1",
    "store [z], 1",
    "load r, [x]",
    "load s, [y]",
    "l#: load r, [x]; if r == 0 goto l#",
    "l#: load s, [y]; if s != 1 goto l#",
    "l#: load r, [z]; load s, [x]; if r == s goto l#",
    "l#: store [z], 1; load r, [y]; if r == 0 goto l#",
    "load r, [x]; assume r == 1",
    "load s, [y]; assume s == 0",
    "load8 r, [z]; assume r != 1",
    "cas r, [x], 0, 1; assume r == 0",
    "xchg r, [y], 1; assume r == 0",
    "l#: cas r, [z], 0, 1; if r != 0 goto l#",
    "load r, [y]; if r == 1 goto l#; load s, [x]; l#:",
    "choose l#, m#; l#: store [y], 0; m#:",
    "if s == 0 goto l#; load r, [x]; l#: assume r == 1",
    "choose l#, m#; l#: load r, [x]; goto n#; m#: load8 r, [y]; n#: assume r == 1",
    "assume r == 0",
    "assume s == 1",
    "fence",
    "lock; load r, [x]; store [y], r; unlock",
    "lock; load r, [z]; assume r == 1; unlock",
];

fn waiting_threads() -> impl Strategy<Value = String> {
    let thread = || prop::collection::vec(prop::sample::select(PARTS), 1..5);
    prop::collection::vec(thread(), 2..4).prop_map(|threads| {
        let mut text = "shared x, y, z\n".to_string();
        for (t, parts) in threads.iter().enumerate() {
            let numbered = parts.iter().enumerate().map(|(n, part)| part.replace('#', &n.to_string()));
            let body: Vec<String> = numbered.collect();
            text += &format!("thread p{t}; {}; halt; r = 0; s = 0; end\n", body.join("; "));
        }
        text
    })
}

fn read(source: &str) -> Program {
    let read = overtake::front::tso::read(source, &[], &Limits::default());
    read.unwrap_or_else(|e| panic!("{e:?}\n{source}")).program
}

const TINY: Shape = Shape { threads: (2, 2), lines: (2, 5), taste: Taste::Tame, ..SMALL };

proptest! {
    #![proptest_config(cases(250))]

    #[test]
    fn threads_that_wait_for_each_other(source in waiting_threads()) {
        for model in [Model::Sc, Model::Tso] {
            agrees(&read(&source), model)?;
        }
    }

    #[test]
    fn any_programs(p in program(TINY)) {
        for model in [Model::Sc, Model::Tso] {
            agrees(&p.0, model)?;
        }
    }
}

#[track_caller]
fn verdict(args: &[&str]) -> String {
    overtake(args).first_line().to_string()
}

#[test]
fn a_lost_handover_is_a_hang_under_both_models() {
    for model in ["sc", "tso"] {
        let lost = overtake(&["check", "--hang", "--model", model, "programs/hang/mcs-lost-handover.tso"]);
        assert_eq!((lost.code, lost.first_line()), (VIOLATED, "violated"));
        assert!(lost.out.contains("reads locked["), "{}", lost.out);
        assert_eq!(verdict(&["check", "--hang", "--model", model, "programs/mcs/mcs.tso"]), "safe");
    }
    assert_eq!(verdict(&["check", "programs/hang/mcs-lost-handover.tso"]), "safe");
}

#[test]
fn a_wakeup_is_lost_under_tso_alone() {
    let lost = "programs/hang/lost-wakeup.tso";
    assert_eq!(verdict(&["check", lost]), "safe", "all final states are as they should be");
    assert_eq!(verdict(&["check", "--hang", "--model", "sc", lost]), "safe");
    let ran = overtake(&["check", "--hang", "--json", lost]);
    let object = ran.objects().remove(0);
    assert_eq!((ran.code, object["verdict"].as_str()), (VIOLATED, Some("violated")));
    let waiting = &object["waiting"];
    assert_eq!(waiting.as_array().map(Vec::len), Some(1), "{waiting}");
    assert_eq!(waiting[0]["thread"], "sleeper");
    assert_eq!(waiting[0]["reads"], serde_json::json!([{ "address": "wake", "value": 0 }]));
    assert_eq!(verdict(&["check", "--hang", "programs/hang/wakeup-fenced.tso"]), "safe");
}

#[test]
fn the_fence_against_a_lost_wakeup_is_found() {
    let out = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("wakeup.tso").display().to_string();
    let ran = overtake(&["fence", "--for", "no-hang", "programs/hang/lost-wakeup.tso", "-o", &out]);
    assert_eq!((ran.code, ran.first_line()), (0, "found"), "{}", ran.out);
    assert!(ran.out.contains("1 fence in the source keeps the program from hanging"), "{}", ran.out);
    assert_eq!(verdict(&["check", "--hang", &out]), "safe");
    let none = overtake(&["fence", "--for", "no-hang", "programs/hang/mcs-lost-handover.tso"]);
    assert_eq!((none.code, none.first_line()), (VIOLATED, "none"), "{}", none.out);
}

#[test]
fn registers_that_grow_leave_it_open() {
    let source = "shared x; thread p; l: r = r + 1; load s, [x]; if s == 0 goto l; end";
    let found = engine::hang(&read(source), Model::Sc, &Limits::default()).expect("no internal error");
    assert!(matches!(found.outcome.answer, Answer::Unknown(Limit::Growing)), "{:?}", found.outcome.answer);
}

/// A mutex that looks too early waits; an assumption of its own stops a thread for good.
#[test]
fn an_assumption_behind_a_load_waits() {
    let hangs = |source: &str, model| {
        let found = engine::hang(&read(source), model, &Limits::default()).expect("no internal error");
        matches!(found.outcome.answer, Answer::Fails(_))
    };
    for model in [Model::Sc, Model::Tso] {
        assert!(!hangs(
            "shared x; thread p; store [x], 1; end; thread q; load r, [x]; assume r == 1; end",
            model
        ));
        assert!(!hangs(
            "shared x; thread p; store [x], 257; end; thread q; load8 r, [x]; assume r == 1; end",
            model
        ));
        assert!(hangs(
            "shared x; thread p; store [x], 1; end; thread q; load r, [x]; assume r == 2; end",
            model
        ));
        assert!(hangs("shared x; thread p; store [x], 1; end; thread q; assume r == 1; end", model));
        let own_cut =
            "shared x; thread p; store [x], 257; end; thread q; load s, [x]; r = s & 255; assume r == 1; end";
        assert!(hangs(own_cut, model), "the assumption is not right behind the load");
        let jumped = "shared x = 1; thread p; if r == 0 goto l; load s, [x]; l: assume s == 1; r = 1; end";
        assert!(hangs(jumped, model), "the load has never been done");
        for load in ["load", "load8"] {
            let moved = format!("shared x[2] = {{1, 2}}; thread q; {load} r, [x + r]; assume r == 2; end");
            assert!(hangs(&moved, model), "the same load again would be another one");
        }
        let livelock = "shared x; thread p; l: store [x], 1; fence; store [x], 0; fence; load r, [x]; if r == 0 goto l; end";
        assert!(!hangs(livelock, model), "memory changes");
        let silent = "shared x; thread p; l: store [x], 0; load r, [x]; if r == 0 goto l; end";
        assert!(hangs(silent, Model::Sc), "what is there already changes nothing");
    }
}
